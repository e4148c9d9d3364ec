//! A filesystem for tests: it writes down each call, and fails the one it was told to.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::{Fs, RealFs};

/// What a filesystem was asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The operation: the name of the method of [`Fs`].
    pub operation: &'static str,
    /// The path, or the source of a rename.
    pub path: String,
    /// The target of a rename.
    pub to: Option<String>,
}

/// The real filesystem, with each call that changes something written down, and one of them failing if asked.
#[derive(Debug, Default)]
pub struct RecordingFs {
    calls: Mutex<Vec<Call>>,
    fail_at: Option<usize>,
}

impl RecordingFs {
    /// A filesystem that fails no call.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A filesystem whose call number `n` (from 0) fails before it does anything, as on a full disk.
    #[must_use]
    pub fn failing_at(n: usize) -> Self {
        Self { calls: Mutex::default(), fail_at: Some(n) }
    }

    /// The calls so far, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, operation: &'static str, path: &Path, to: Option<&Path>) -> io::Result<()> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(Call { operation, path: path.display().to_string(), to: to.map(|to| to.display().to_string()) });
        if self.fail_at == Some(calls.len() - 1) {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the test's disk is full"));
        }
        Ok(())
    }
}

impl Fs for RecordingFs {
    fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        RealFs.read(path)
    }

    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.note("write_new", path, None)?;
        RealFs.write_new(path, bytes)
    }

    fn fsync_file(&self, path: &Path) -> io::Result<()> {
        self.note("fsync_file", path, None)?;
        RealFs.fsync_file(path)
    }

    fn fsync_dir(&self, path: &Path) -> io::Result<()> {
        self.note("fsync_dir", path, None)?;
        RealFs.fsync_dir(path)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note("rename_new", from, Some(to))?;
        RealFs.rename_new(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note("rename", from, Some(to))?;
        RealFs.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<bool> {
        self.note("remove_file", path, None)?;
        RealFs.remove_file(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.note("create_dir_all", path, None)?;
        RealFs.create_dir_all(path)
    }
}
