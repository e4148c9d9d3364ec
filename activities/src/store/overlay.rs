//! A store on which writes are only imagined, for dry runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use catalog_rules::instant::Instant;

use super::{Answer, Delete, Guard, Listing, Store, StoreError, checked};
use crate::lock::LockError;

/// What was written by path; `None` for what was deleted.
type Written = BTreeMap<String, Option<Bytes>>;

/// What another store holds, and what was written on top of it, which is kept in memory and is gone with the value. The
/// store beneath is only read: nothing of it changes, and its lock is not taken.
#[derive(Clone)]
pub struct OverlayStore {
    beneath: Arc<dyn Store>,
    written: Arc<Mutex<Written>>,
    now: Option<Instant>,
}

impl fmt::Debug for OverlayStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverlayStore").field("place", &self.beneath.place()).finish_non_exhaustive()
    }
}

impl OverlayStore {
    /// Nothing written yet, on top of `beneath`.
    #[must_use]
    pub fn over(beneath: Arc<dyn Store>) -> Self {
        Self { beneath, written: Arc::default(), now: None }
    }

    /// The same at another time than the store's own.
    #[must_use]
    pub fn at(mut self, now: Instant) -> Self {
        self.now = Some(now);
        self
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn found(&self, written: &Written, path: &str) -> Result<Option<Bytes>, StoreError> {
        match written.get(checked(path)?) {
            Some(found) => Ok(found.clone()),
            None => self.beneath.get(path),
        }
    }
}

impl Store for OverlayStore {
    fn place(&self) -> String {
        self.beneath.place()
    }

    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        self.found(&self.written(), path)
    }

    fn create_once(&self, path: &str, bytes: &Bytes) -> Result<Answer, StoreError> {
        let mut written = self.written();
        if self.found(&written, path)?.is_some() {
            return Ok(Answer::Lost);
        }
        written.insert(path.to_owned(), Some(bytes.clone()));
        Ok(Answer::Won)
    }

    fn replace_once(&self, path: &str, expected: Option<&Bytes>, bytes: &Bytes) -> Result<Answer, StoreError> {
        let mut written = self.written();
        if self.found(&written, path)?.as_ref() != expected {
            return Ok(Answer::Lost);
        }
        written.insert(path.to_owned(), Some(bytes.clone()));
        Ok(Answer::Won)
    }

    fn delete(&self, path: &str) -> Result<bool, StoreError> {
        let mut written = self.written();
        let there = self.found(&written, path)?.is_some();
        written.insert(path.to_owned(), None);
        Ok(there)
    }

    fn delete_if(&self, path: &str, expected: &Bytes) -> Result<Delete, StoreError> {
        let mut written = self.written();
        match self.found(&written, path)? {
            None => Ok(Delete::Absent),
            Some(found) if found != *expected => Ok(Delete::Changed(found)),
            Some(_) => {
                written.insert(path.to_owned(), None);
                Ok(Delete::Done)
            }
        }
    }

    fn list(&self, folder: &str) -> Result<Listing, StoreError> {
        let listing = self.beneath.list(folder)?;
        let (mut objects, mut folders): (BTreeSet<_>, BTreeSet<_>) =
            (listing.objects.into_iter().collect(), listing.folders.into_iter().collect());
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        for (path, bytes) in self.written().iter() {
            match path.strip_prefix(&prefix).map(|inner| (inner, inner.split_once('/'))) {
                Some((name, None)) if bytes.is_some() => drop(objects.insert(name.to_owned())),
                Some((name, None)) => drop(objects.remove(name)),
                Some((_, Some((name, _)))) if bytes.is_some() => drop(folders.insert(name.to_owned())),
                Some((_, Some(_))) | None => {}
            }
        }
        Ok(Listing { objects: objects.into_iter().collect(), folders: folders.into_iter().collect() })
    }

    fn now(&self) -> Result<Instant, StoreError> {
        self.now.map_or_else(|| self.beneath.now(), Ok)
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
