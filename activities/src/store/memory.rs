//! A catalog in memory, for tests: as a container behaves, without a lock.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use catalog_rules::instant::Instant;
use engine_rules::clock::Clock;

use super::{Answer, Delete, Guard, Listing, Store, StoreError, checked};
use crate::lock::LockError;

/// Objects in memory. Clones share them. Writers exclude each other by the exclusive create alone, so their races are
/// real ones.
#[derive(Clone)]
pub struct MemoryStore {
    objects: Arc<Mutex<BTreeMap<String, Bytes>>>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("objects", &self.objects().len()).finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty store with this time.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { objects: Arc::default(), clock }
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Bytes>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn place(&self) -> String {
        "memory".to_owned()
    }

    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        Ok(self.objects().get(checked(path)?).cloned())
    }

    fn create_once(&self, path: &str, bytes: &Bytes) -> Result<Answer, StoreError> {
        checked(path)?;
        let mut objects = self.objects();
        if objects.contains_key(path) {
            return Ok(Answer::Lost);
        }
        objects.insert(path.to_owned(), bytes.clone());
        Ok(Answer::Won)
    }

    fn replace_once(&self, path: &str, expected: Option<&Bytes>, bytes: &Bytes) -> Result<Answer, StoreError> {
        checked(path)?;
        let mut objects = self.objects();
        if objects.get(path) != expected {
            return Ok(Answer::Lost);
        }
        objects.insert(path.to_owned(), bytes.clone());
        Ok(Answer::Won)
    }

    fn delete(&self, path: &str) -> Result<bool, StoreError> {
        Ok(self.objects().remove(checked(path)?).is_some())
    }

    fn delete_if(&self, path: &str, expected: &Bytes) -> Result<Delete, StoreError> {
        checked(path)?;
        let mut objects = self.objects();
        match objects.get(path) {
            None => return Ok(Delete::Absent),
            Some(found) if found != expected => return Ok(Delete::Changed(found.clone())),
            Some(_) => {}
        }
        objects.remove(path);
        Ok(Delete::Done)
    }

    fn list(&self, folder: &str) -> Result<Listing, StoreError> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut listing = Listing::default();
        for path in self.objects().keys() {
            let Some(inner) = path.strip_prefix(&prefix) else { continue };
            match inner.split_once('/') {
                None => listing.objects.push(inner.to_owned()),
                Some((name, _)) if listing.folders.last().is_none_or(|last| last != name) => {
                    listing.folders.push(name.to_owned());
                }
                Some(_) => {}
            }
        }
        listing.folders.sort_unstable();
        listing.folders.dedup();
        Ok(listing)
    }

    fn now(&self) -> Result<Instant, StoreError> {
        Ok(Instant::from_ms(self.clock.now_ms()))
    }

    fn persist(&self, _path: &str) -> Result<(), StoreError> {
        Ok(())
    }

    fn prepare(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn lock(&self) -> Result<Guard, LockError> {
        Ok(Guard::NotNeeded)
    }
}
