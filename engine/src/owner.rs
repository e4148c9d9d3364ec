//! A process proves that it lives by a lock that the system takes from it when it dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use uuid::Uuid;

use crate::error::EngineError;

/// How long a lease runs, in milliseconds: what decides where the lock cannot tell. Long enough for a machine that is
/// short of everything, short enough for a release at 08:30 to be taken over by 08:31.
pub(crate) const LEASE_MS: i64 = 30_000;

/// How often a lease is renewed, in milliseconds.
pub(crate) const RENEW_MS: u64 = 10_000;

/// The lock of this process.
#[derive(Debug)]
pub(crate) struct OwnerLock {
    pub(crate) id: Uuid,
    /// Held open, and with it the lock, until this is dropped or the process dies.
    file: Mutex<File>,
}

/// What a lock tells of another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    /// The lock is held.
    Held,
    /// The lock is free: an id is never used again, so its process is dead for good.
    Free,
    /// The file system cannot tell, or somebody deleted the file of the lock: the lease decides.
    Unknown,
}

fn directory(state_dir: &Path) -> PathBuf {
    state_dir.join("owners")
}

fn lock_path(state_dir: &Path, owner_id: &str) -> PathBuf {
    directory(state_dir).join(owner_id)
}

impl OwnerLock {
    /// Takes the lock of the new owner `id`. The owner's row comes after it, so that whoever knows the id finds the lock
    /// held.
    pub(crate) fn take(state_dir: &Path, id: Uuid) -> Result<Self, EngineError> {
        Ok(Self { id, file: Mutex::new(Self::create(state_dir, id)?) })
    }

    /// Takes the lock again if somebody deleted its file: others would then not see that this process lives.
    pub(crate) fn keep(&self, state_dir: &Path) -> Result<(), EngineError> {
        if lock_path(state_dir, &self.id.to_string()).exists() {
            return Ok(());
        }
        tracing::warn!(owner = %self.id, "somebody deleted the lock of this process: it is taken again");
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Self::create(state_dir, self.id)?;
        Ok(())
    }

    /// Gives the lock of an owner that never was in the journal back, and removes its file.
    pub(crate) fn discard(self, state_dir: &Path) {
        // A file that stays harms nobody: its id is never used again.
        let _ = std::fs::remove_file(lock_path(state_dir, &self.id.to_string()));
    }

    fn create(state_dir: &Path, id: Uuid) -> Result<File, EngineError> {
        let folder = directory(state_dir);
        let path = lock_path(state_dir, &id.to_string());
        let error = |doing| {
            let path = path.clone();
            move |source| EngineError::Io { path, doing, source }
        };
        std::fs::create_dir_all(&folder).map_err(error("create the folder of the owners' locks"))?;
        let mut file = OpenOptions::new()
            .create_new(true)
            .write(true)
            .open(&path)
            .map_err(error("create the lock of this process"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(error("take the lock of this process")(ErrorKind::WouldBlock.into()));
            }
            Err(TryLockError::Error(cause)) => {
                tracing::warn!(%cause, path = %path.display(), "this file system has no locks: the lease decides");
            }
        }
        if let Err(cause) = writeln!(file, "{}", std::process::id()) {
            // A full disk: without a row in the journal nobody would ever clear the file away.
            let _ = std::fs::remove_file(&path);
            return Err(error("write the lock of this process")(cause));
        }
        Ok(file)
    }
}

/// Whether the process of `owner_id` holds its lock. Shared, so that two who look at once do not take each other for it.
pub(crate) fn probe(state_dir: &Path, owner_id: &str) -> Probe {
    match File::open(lock_path(state_dir, owner_id)) {
        Err(_) => Probe::Unknown,
        Ok(file) => match file.try_lock_shared() {
            Ok(()) => Probe::Free,
            Err(TryLockError::WouldBlock) => Probe::Held,
            Err(TryLockError::Error(_)) => Probe::Unknown,
        },
    }
}

/// Whether the owner lives, by its lock, or by its lease where the lock cannot tell.
pub(crate) fn is_alive(probe: Probe, lease_until_at_ms: i64, now_ms: i64) -> bool {
    match probe {
        Probe::Held => true,
        Probe::Free => false,
        Probe::Unknown => now_ms < lease_until_at_ms,
    }
}

/// Removes the lock file of a dead owner. Only for an id that is in the journal: its process took the lock before, so
/// that a free lock is never one that is about to be taken.
pub(crate) fn remove_dead(state_dir: &Path, owner_id: &str) {
    let path = lock_path(state_dir, owner_id);
    let Ok(file) = File::open(&path) else { return };
    if file.try_lock().is_ok() {
        // A file that stays is found again at the next start.
        let _ = std::fs::remove_file(&path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_tells_the_living_from_the_dead() {
        let folder = tempfile::tempdir().expect("a folder");
        let id = Uuid::from_u128(7);
        assert_eq!(probe(folder.path(), &id.to_string()), Probe::Unknown, "no file: somebody deleted it");
        let lock = OwnerLock::take(folder.path(), id).expect("a lock");
        assert_eq!(probe(folder.path(), &id.to_string()), Probe::Held);
        remove_dead(folder.path(), &id.to_string());
        assert!(lock_path(folder.path(), &id.to_string()).exists(), "never unlinked while it is held");
        drop(lock);
        assert_eq!(probe(folder.path(), &id.to_string()), Probe::Free);
        remove_dead(folder.path(), &id.to_string());
        assert!(!lock_path(folder.path(), &id.to_string()).exists());
    }

    #[test]
    fn a_lock_whose_file_was_deleted_is_taken_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let id = Uuid::from_u128(9);
        let lock = OwnerLock::take(folder.path(), id).expect("a lock");
        std::fs::remove_dir_all(directory(folder.path())).expect("somebody cleans up");
        assert_eq!(probe(folder.path(), &id.to_string()), Probe::Unknown, "not taken for dead");
        lock.keep(folder.path()).expect("it is taken again");
        assert_eq!(probe(folder.path(), &id.to_string()), Probe::Held);
        lock.keep(folder.path()).expect("nothing is to be done");
        drop(lock);
        assert_eq!(probe(folder.path(), &id.to_string()), Probe::Free);
    }

    #[test]
    fn two_who_look_at_once_both_find_it_free() {
        let folder = tempfile::tempdir().expect("a folder");
        let id = Uuid::from_u128(8);
        drop(OwnerLock::take(folder.path(), id).expect("a lock"));
        let other = File::open(lock_path(folder.path(), &id.to_string())).expect("the file");
        other.lock_shared().expect("another who looks");
        assert_eq!(probe(folder.path(), &id.to_string()), Probe::Free);
    }

    #[test]
    fn the_lease_decides_only_where_the_lock_cannot_tell() {
        for (probe, lease, alive) in [
            (Probe::Held, 0, true),
            (Probe::Free, i64::MAX, false),
            (Probe::Unknown, 101, true),
            (Probe::Unknown, 100, false),
        ] {
            assert_eq!(is_alive(probe, lease, 100), alive, "{probe:?} until {lease}");
        }
    }
}
