//! The lock of a catalog on this machine (*catalog* §6.9): an OS lock on `<catalog>/LOCK`, created once and never
//! unlinked, free again when its holder ends in any way.

#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::thread;

use engine_rules::clock::Clock;
use engine_rules::failure::{ActivityError, Disposition};

/// How long a writer waits for the lock: some versions' worth of fsyncs, and less than a person's patience.
pub const LOCK_WAIT_MS: u64 = 30_000;

/// How long a waiting writer sleeps between two looks: short beside the fsyncs of a version.
const LOOK_EVERY_MS: u64 = 10;

/// The lock, held until it is dropped. Processes exclude each other, and so do the threads of one process.
#[derive(Debug)]
pub struct CatalogLock {
    // Closing the file frees the lock.
    _file: File,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else held it all the time.
    #[error("catalog §6.9: another process is writing to this catalog: {path} was locked for {waited_ms} ms")]
    Busy {
        /// The lock file.
        path: String,
        /// How long this writer waited.
        waited_ms: u64,
    },
    /// The lock file cannot be opened or locked.
    #[error("catalog §6.9: the catalog's lock file {path} cannot be locked: {source}")]
    Io {
        /// The lock file.
        path: String,
        /// What the system says.
        source: io::Error,
    },
}

impl ActivityError for LockError {
    fn code(&self) -> &'static str {
        match self {
            Self::Busy { .. } => "catalog.busy",
            Self::Io { .. } => "store.lock",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Busy { .. } => Disposition::Retry,
            Self::Io { .. } => Disposition::Operator,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Busy { path, .. } => {
                format!("wait for the other process to end (fuser {path} names it), then resume")
            }
            Self::Io { .. } => "the catalog must be on a local disk that this user may write to".to_owned(),
        })
    }
}

impl CatalogLock {
    /// Takes the lock at `path`, creating the file if it is not there, and waits at most `wait_ms` for its holder.
    ///
    /// # Errors
    /// [`LockError::Busy`] when the time is up; [`LockError::Io`] when the file cannot be opened or locked.
    pub fn acquire(path: &Path, clock: &dyn Clock, wait_ms: u64) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { path: path.display().to_string(), source };
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(failed)?;
        let start_us = clock.monotonic_us();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Err(TryLockError::WouldBlock) => {}
            }
            let waited_ms = clock.monotonic_us().saturating_sub(start_us) / 1000;
            if waited_ms >= wait_ms {
                return Err(LockError::Busy { path: path.display().to_string(), waited_ms });
            }
            sleep(clock, LOOK_EVERY_MS.min(wait_ms - waited_ms)).map_err(failed)?;
        }
    }
}

/// Sleeps on this thread, whatever it is: the sleep itself runs on a thread with a small runtime of its own, since a
/// clock may need one, and this thread may be one that a runtime needs.
fn sleep(clock: &dyn Clock, ms: u64) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    thread::scope(|scope| scope.spawn(move || runtime.block_on(async { clock.sleep_ms(ms).await })).join())
        .map_err(|_| io::Error::other("the clock failed"))
}
