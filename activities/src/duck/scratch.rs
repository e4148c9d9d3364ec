//! The scratch folders of sessions: each is its session's alone, and those of dead processes go.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::DuckError;

/// The beginning of the name of every scratch folder.
const PREFIX: &str = "jobctl-";
/// The file in a scratch folder whose lock says that its session lives.
const ALIVE: &str = "alive.lock";
/// The file beside the scratch folders whose lock is held while one comes or dead ones go.
const GATE: &str = "scratch.lock";

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A scratch folder. It goes with the value; where the process dies first, the next session that starts beside it
/// removes it, because the lock in it is free then.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    /// Held open, and with it the lock.
    _alive: File,
}

impl Scratch {
    /// Makes a new folder in `parent`, which is created when it is not there, and clears away those whose processes
    /// are gone. No other session has it, whatever its `name`, which only says what it is for.
    pub(super) fn create(parent: &Path, name: &str) -> Result<Self, DuckError> {
        let io = |operation, path: &Path| {
            let path = path.to_owned();
            move |source| DuckError::Io { operation, path, source }
        };
        fs::create_dir_all(parent).map_err(io("create the scratch folder", parent))?;
        let gate = parent.join(GATE);
        let gate = open(&gate).map_err(io("open", &gate))?;
        // Between its creation and its lock a folder looks dead. Without locks nothing is ever cleared away.
        if gate.lock().is_ok() {
            clear_dead(parent);
        }
        let path = loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("{PREFIX}{name}-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => break path,
                // Another machine's process of this number, or one whose folder could not be cleared away.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io("create the scratch folder", &path)(error)),
            }
        };
        let alive = open(&path.join(ALIVE)).inspect_err(|_| {
            let _ = fs::remove_dir(&path);
        });
        let alive = alive.map_err(io("lock the scratch folder", &path))?;
        // It is new: nobody else holds it. A filesystem without locks has none to take.
        let _ = alive.try_lock();
        Ok(Self { path, _alive: alive })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        match fs::remove_dir_all(&self.path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(folder = %self.path.display(), %error, "a scratch folder was left behind");
            }
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).open(path)
}

/// Removes the scratch folders in `parent` whose sessions are gone. One that cannot be looked at or removed is left for
/// the next time.
fn clear_dead(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let path = entry.path();
        let is_dead = match File::open(path.join(ALIVE)) {
            Ok(alive) => alive.try_lock().is_ok(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        if is_dead {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(parent: &Path) -> usize {
        fs::read_dir(parent).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
    }

    #[test]
    fn what_the_dead_left_goes_and_what_the_living_use_stays() {
        let parent = tempfile::tempdir().unwrap();
        let living = Scratch::create(parent.path(), "seal-1").unwrap();
        fs::write(living.path().join("spill"), "rows").unwrap();
        for (name, locked) in [("jobctl-build-7-99-0", true), ("jobctl-seal-2", false)] {
            fs::create_dir_all(parent.path().join(name).join("spill")).unwrap();
            if locked {
                fs::write(parent.path().join(name).join(ALIVE), "").unwrap();
            }
        }
        fs::create_dir(parent.path().join("somebody-else")).unwrap();
        let second = Scratch::create(parent.path(), "seal-1").unwrap();
        assert_ne!(living.path(), second.path(), "two sessions of one name share nothing");
        assert_eq!(fs::read(living.path().join("spill")).unwrap(), b"rows");
        assert_eq!(folders(parent.path()), 3, "the living one, the new one, and what is not ours");
        drop(living);
        drop(second);
        assert_eq!(folders(parent.path()), 1);
    }

    #[test]
    fn a_parent_that_goes_is_made_again() {
        let parent = tempfile::tempdir().unwrap();
        let inner = parent.path().join("tmp");
        let first = Scratch::create(&inner, "a").unwrap();
        fs::remove_dir_all(&inner).unwrap();
        let second = Scratch::create(&inner, "a").unwrap();
        assert!(second.path().is_dir());
        drop(first);
        assert!(second.path().is_dir(), "the first took away only its own");
    }
}
