//! A catalog in a folder of this machine.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, PoisonError};

use bytes::Bytes;
use catalog_rules::instant::Instant;
use catalog_rules::layout;
use engine_rules::clock::Clock;

use super::{Answer, Create, Delete, Guard, Listing, Store, StoreError, checked};
use crate::fs::{self, Fs, TEMPORARY_PREFIX};
use crate::lock::{CatalogLock, LOCK_WAIT_MS, LockError};

/// The store of a catalog in a local folder. Synced folders and network shares are unsupported (*catalog* §6.6).
///
/// Time is this machine's. [`Store::replace`] is safe against the threads that share this value; against others it is
/// for the caller to hold the catalog's lock.
pub struct LocalStore {
    root: PathBuf,
    fs: Arc<dyn Fs>,
    clock: Arc<dyn Clock>,
    lock_wait_ms: u64,
    /// The folders that are known to survive a power cut.
    folders: Mutex<HashSet<PathBuf>>,
    replacing: Mutex<()>,
    swept: Once,
}

impl fmt::Debug for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalStore").field("root", &self.root).finish_non_exhaustive()
    }
}

impl LocalStore {
    /// The store at the folder `root`, which need not exist yet.
    #[must_use]
    pub fn new(root: PathBuf, fs: Arc<dyn Fs>, clock: Arc<dyn Clock>) -> Self {
        Self {
            root,
            fs,
            clock,
            lock_wait_ms: LOCK_WAIT_MS,
            folders: Mutex::default(),
            replacing: Mutex::default(),
            swept: Once::new(),
        }
    }

    /// The same store, waiting at most `lock_wait_ms` for the catalog's lock.
    #[must_use]
    pub fn with_lock_wait_ms(mut self, lock_wait_ms: u64) -> Self {
        self.lock_wait_ms = lock_wait_ms;
        self
    }

    /// The folder of the catalog.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, path: &str) -> Result<PathBuf, StoreError> {
        Ok(self.root.join(checked(path)?))
    }

    /// Removes the temporary files that killed writers left where versions are written. Only under the catalog's lock:
    /// nobody else writes there then. What cannot be removed now is in nobody's way.
    fn sweep(&self) {
        for folder in ["", layout::INVENTORY, layout::LEAVES] {
            let folder = self.root.join(folder);
            match fs::sweep_temporaries(self.fs.as_ref(), &folder) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => tracing::warn!(folder = %folder.display(), %error, "temporary files were left"),
            }
        }
    }

    /// Creates the folder of `path` and everything up to the catalog's, and makes sure once a process that their names
    /// survive a power cut, whoever made them.
    fn make_folder_of(&self, path: &Path) -> io::Result<()> {
        let Some(folder) = path.parent() else { return Ok(()) };
        let mut known = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(folder) {
            return Ok(());
        }
        self.fs.create_dir_all(folder)?;
        for inner in folder.ancestors().take_while(|inner| *inner != self.root && inner.starts_with(&self.root)) {
            if let Some(outer) = inner.parent() {
                self.fs.fsync_dir(outer)?;
            }
        }
        known.insert(folder.to_owned());
        Ok(())
    }
}

fn failed(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Io { operation, path: path.display().to_string(), source }
}

impl Store for LocalStore {
    fn place(&self) -> String {
        self.root.display().to_string()
    }

    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        let path = self.path(path)?;
        match self.fs.read(&path) {
            Ok(bytes) => Ok(bytes.map(Bytes::from)),
            // A file where a folder of the path should be: there is no such object.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
            Err(error) => Err(failed("read", &path)(error)),
        }
    }

    fn create_once(&self, path: &str, bytes: &Bytes) -> Result<Answer, StoreError> {
        let path = self.path(path)?;
        self.make_folder_of(&path).map_err(failed("create the folder of", &path))?;
        Ok(match fs::create_exclusive(self.fs.as_ref(), &path, bytes) {
            Ok(fs::Create::Won) => Answer::Won,
            Ok(fs::Create::Exists) => Answer::Lost,
            Err(error) => Answer::Unknown(failed("create", &path)(error)),
        })
    }

    fn create_all(&self, objects: &[(String, Bytes)]) -> Result<Vec<Create>, StoreError> {
        if objects.len() > 1 {
            let mut files = Vec::with_capacity(objects.len());
            for (path, bytes) in objects {
                let path = self.path(path)?;
                self.make_folder_of(&path).map_err(failed("create the folder of", &path))?;
                files.push((path, bytes.as_ref()));
            }
            // What another one holds, and what an error left open, is looked at one by one below.
            match fs::create_exclusive_all(self.fs.as_ref(), &files) {
                Ok(created) if created.iter().all(|it| *it == fs::Create::Won) => {
                    return Ok(vec![Create::Won; objects.len()]);
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "several objects could not be created at once"),
            }
        }
        objects.iter().map(|(path, bytes)| self.create(path, bytes)).collect()
    }

    fn replace_once(&self, path: &str, expected: Option<&Bytes>, bytes: &Bytes) -> Result<Answer, StoreError> {
        let file = self.path(path)?;
        self.make_folder_of(&file).map_err(failed("create the folder of", &file))?;
        let _one_at_a_time = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.get(path)?.as_ref() != expected {
            return Ok(Answer::Lost);
        }
        Ok(match fs::replace(self.fs.as_ref(), &file, bytes) {
            Ok(()) => Answer::Won,
            Err(error) => Answer::Unknown(failed("replace", &file)(error)),
        })
    }

    fn delete(&self, path: &str) -> Result<bool, StoreError> {
        let path = self.path(path)?;
        let there = self.fs.read(&path).map_err(failed("read", &path))?.is_some();
        fs::remove_durably(self.fs.as_ref(), &path).map_err(failed("delete", &path))?;
        Ok(there)
    }

    fn delete_if(&self, path: &str, expected: &Bytes) -> Result<Delete, StoreError> {
        let file = self.path(path)?;
        let _one_at_a_time = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        match self.get(path)? {
            None => return Ok(Delete::Absent),
            Some(found) if found != *expected => return Ok(Delete::Changed(found)),
            Some(_) => {}
        }
        fs::remove_durably(self.fs.as_ref(), &file).map_err(failed("delete", &file))?;
        Ok(Delete::Done)
    }

    fn list(&self, folder: &str) -> Result<Listing, StoreError> {
        let folder = if folder.is_empty() { self.root.clone() } else { self.path(folder)? };
        let mut listing = Listing::default();
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(listing);
            }
            Err(error) => return Err(failed("list", &folder)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(failed("list", &folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(TEMPORARY_PREFIX) {
                continue;
            }
            let is_folder = entry.file_type().map_err(failed("list", &folder))?.is_dir();
            if is_folder { &mut listing.folders } else { &mut listing.objects }.push(name);
        }
        listing.objects.sort_unstable();
        listing.folders.sort_unstable();
        Ok(listing)
    }

    fn now(&self) -> Result<Instant, StoreError> {
        Ok(Instant::from_ms(self.clock.now_ms()))
    }

    fn persist(&self, path: &str) -> Result<(), StoreError> {
        let path = self.path(path)?;
        let folder = path.parent().unwrap_or(&self.root);
        self.fs.fsync_file(&path).and_then(|()| self.fs.fsync_dir(folder)).map_err(failed("sync", &path))
    }

    fn prepare(&self) -> Result<(), StoreError> {
        self.fs.create_dir_all(&self.root).map_err(failed("create", &self.root))
    }

    fn lock(&self) -> Result<Guard, LockError> {
        let path = self.root.join(layout::LOCK);
        let lock = CatalogLock::acquire(&path, self.clock.as_ref(), self.lock_wait_ms)?;
        self.swept.call_once(|| self.sweep());
        Ok(Guard::Local(lock))
    }
}
