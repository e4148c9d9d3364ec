//! The store of a catalog as a port (DESIGN §4): what the write and read protocol of *catalog* §6.6 needs, and no more.
//!
//! Paths are those of [`catalog_rules::layout`]: relative, `/` between the parts. The calls block; an activity runs on a
//! thread of its own. An implementation answers a conditional write as `Won`, `Lost` or `Unknown` and never tries it
//! again by itself (D2); the provided methods settle what is unknown by reading back.

pub mod contract;
mod error;
mod local;
mod memory;
mod overlay;
pub mod simulated;
#[cfg(test)]
pub(crate) mod tests;

use bytes::Bytes;
use catalog_rules::instant::Instant;

pub use error::StoreError;
pub use local::LocalStore;
pub use memory::MemoryStore;
pub use overlay::OverlayStore;

use crate::lock::{CatalogLock, LockError};

/// What a store answered to a write that has a condition, once, without trying again (D2).
#[derive(Debug)]
pub enum Answer {
    /// It was written.
    Won,
    /// The condition did not hold.
    Lost,
    /// The answer was lost, or says neither: it may have been written, or still be.
    Unknown(StoreError),
}

/// What became of an exclusive create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Create {
    /// The object is there with exactly these bytes, durably, and nobody wrote other ones.
    Won,
    /// The name is taken by these other bytes.
    Lost(Bytes),
}

/// What became of a conditional replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replace {
    /// The object has the new bytes, durably.
    Done,
    /// The object was not what the caller expected: this is what is there.
    Changed(Option<Bytes>),
}

/// What became of a conditional delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delete {
    /// The object had the expected bytes and is gone, durably.
    Done,
    /// There was none.
    Absent,
    /// It has these other bytes, and stays.
    Changed(Bytes),
}

/// What is directly in a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The names of the objects, sorted.
    pub objects: Vec<String>,
    /// The names of the folders, sorted.
    pub folders: Vec<String>,
}

/// The right to change a catalog, until it is dropped.
#[derive(Debug)]
pub enum Guard {
    /// The lock of a catalog on this disk.
    Local(CatalogLock),
    /// A store where the exclusive create suffices (D31).
    NotNeeded,
}

/// Where a catalog is.
pub trait Store: Send + Sync {
    /// The place as a person reads it: a path or an address.
    fn place(&self) -> String;

    /// The whole object at `path`, or `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot tell.
    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError>;

    /// Tries once to create the object at `path`, complete before it is visible, unless the name is taken.
    ///
    /// # Errors
    /// [`StoreError`] when nothing was tried.
    fn create_once(&self, path: &str, bytes: &Bytes) -> Result<Answer, StoreError>;

    /// Tries once to put `bytes` at `path` if what is there now is `expected` (`None`: nothing). Compared by bytes; on
    /// a local store under the lock of the catalog (D4).
    ///
    /// # Errors
    /// [`StoreError`] when nothing was tried.
    fn replace_once(&self, path: &str, expected: Option<&Bytes>, bytes: &Bytes) -> Result<Answer, StoreError>;

    /// Removes the object at `path` durably. Returns whether there was one.
    ///
    /// # Errors
    /// [`StoreError`] when it may still be there.
    fn delete(&self, path: &str) -> Result<bool, StoreError>;

    /// Removes the object at `path` durably if its bytes are `expected`. Compared as [`Store::replace_once`] does.
    ///
    /// # Errors
    /// [`StoreError`] when it may still be there.
    fn delete_if(&self, path: &str, expected: &Bytes) -> Result<Delete, StoreError>;

    /// What is directly in `folder` (`""` for the root of the catalog); empty when there is no such folder.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot tell.
    fn list(&self, folder: &str) -> Result<Listing, StoreError>;

    /// The store's time (D33).
    ///
    /// # Errors
    /// [`StoreError`] when the store does not say.
    fn now(&self) -> Result<Instant, StoreError>;

    /// Makes the object at `path`, which is there, survive a power cut. A store that acknowledges only what is durable
    /// has nothing to do.
    ///
    /// # Errors
    /// [`StoreError`] when it may not survive one.
    fn persist(&self, path: &str) -> Result<(), StoreError>;

    /// Creates the place itself, if it is not there. A container is made by its operator and is left alone.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be created.
    fn prepare(&self) -> Result<(), StoreError>;

    /// Takes the catalog's lock, waiting a bounded time for whoever holds it (*catalog* §6.9). Not reentrant.
    ///
    /// # Errors
    /// [`LockError::Busy`] when the time is up.
    fn lock(&self) -> Result<Guard, LockError>;

    /// Creates the object at `path` exclusively and completely (*catalog* §6.6), and settles an unknown answer by
    /// reading back (D2). Safe to repeat: the same bytes at the same name are [`Create::Won`] again.
    ///
    /// # Errors
    /// [`StoreError::Unsettled`] when the answer was lost and nothing is there yet: it may still land. [`StoreError`]
    /// when nothing was tried, or reading back failed.
    fn create(&self, path: &str, bytes: &Bytes) -> Result<Create, StoreError> {
        let lost_answer = match self.create_once(path, bytes)? {
            Answer::Won => return Ok(Create::Won),
            Answer::Lost => None,
            Answer::Unknown(source) => Some(source),
        };
        match (self.get(path)?, lost_answer) {
            (Some(found), _) if found == *bytes => {
                self.persist(path)?;
                Ok(Create::Won)
            }
            (Some(found), _) => Ok(Create::Lost(found)),
            (None, Some(source)) => Err(StoreError::unsettled(path, source)),
            (None, None) => Err(StoreError::Vanished { path: path.to_owned() }),
        }
    }

    /// Replaces the object at `path` if it is what the caller expects, and settles an unknown answer by reading back.
    ///
    /// # Errors
    /// [`StoreError::Unsettled`] when the answer was lost and the old bytes are still there. [`StoreError`] when
    /// nothing was tried, or reading back failed.
    fn replace(&self, path: &str, expected: Option<&Bytes>, bytes: &Bytes) -> Result<Replace, StoreError> {
        let lost_answer = match self.replace_once(path, expected, bytes)? {
            Answer::Won => return Ok(Replace::Done),
            Answer::Lost => None,
            Answer::Unknown(source) => Some(source),
        };
        let found = self.get(path)?;
        if found.as_ref() == Some(bytes) {
            self.persist(path)?;
            return Ok(Replace::Done);
        }
        match lost_answer {
            Some(source) if found.as_ref() == expected => Err(StoreError::unsettled(path, source)),
            Some(_) | None => Ok(Replace::Changed(found)),
        }
    }
}

/// Whether `path` stays within a catalog: names joined by `/`, none of them empty, `.` or `..`.
fn checked(path: &str) -> Result<&str, StoreError> {
    let ok = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\\', '\0']);
    if path.split('/').all(ok) { Ok(path) } else { Err(StoreError::BadPath { path: path.to_owned() }) }
}
