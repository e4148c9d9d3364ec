//! Several catalogs in one store, for a case that compares them.

use std::sync::Arc;

use bytes::Bytes;
use catalog_rules::instant::Instant;

use super::world::Place;
use crate::lock::LockError;
use crate::store::{Answer, Delete, Guard, Listing, Store, StoreError};

/// The folder `name` of `place` as a place of its own. Its lock is the whole store's.
pub(super) fn within(place: &Place, name: &str) -> Place {
    let store = Arc::new(Within { store: Arc::clone(&place.store), name: name.to_owned() });
    Place { store, cache: place.cache.as_ref().map(|folder| folder.join(name)) }
}

struct Within {
    store: Arc<dyn Store>,
    name: String,
}

impl Within {
    fn path(&self, path: &str) -> String {
        format!("{}/{path}", self.name)
    }
}

impl Store for Within {
    fn place(&self) -> String {
        self.path(&self.store.place())
    }

    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        self.store.get(&self.path(path))
    }

    fn create_once(&self, path: &str, bytes: &Bytes) -> Result<Answer, StoreError> {
        self.store.create_once(&self.path(path), bytes)
    }

    fn replace_once(&self, path: &str, expected: Option<&Bytes>, bytes: &Bytes) -> Result<Answer, StoreError> {
        self.store.replace_once(&self.path(path), expected, bytes)
    }

    fn delete(&self, path: &str) -> Result<bool, StoreError> {
        self.store.delete(&self.path(path))
    }

    fn delete_if(&self, path: &str, expected: &Bytes) -> Result<Delete, StoreError> {
        self.store.delete_if(&self.path(path), expected)
    }

    fn list(&self, folder: &str) -> Result<Listing, StoreError> {
        let folder = if folder.is_empty() { self.name.clone() } else { self.path(folder) };
        self.store.list(&folder)
    }

    fn now(&self) -> Result<Instant, StoreError> {
        self.store.now()
    }

    fn persist(&self, path: &str) -> Result<(), StoreError> {
        self.store.persist(&self.path(path))
    }

    fn prepare(&self) -> Result<(), StoreError> {
        self.store.prepare()
    }

    fn lock(&self) -> Result<Guard, LockError> {
        self.store.lock()
    }
}
