//! The filesystem as a port, and the two ways in which a document becomes visible: whole, or not at all.
//!
//! Everything that a crash may interrupt goes through [`Fs`], so that a test can write down the order of the calls and
//! fail each of them in turn.

mod real;
pub mod testing;
#[cfg(test)]
mod tests;
mod trouble;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub use real::RealFs;
pub use trouble::Trouble;

/// The calls on a filesystem that decide what a crash leaves behind.
pub trait Fs: Send + Sync {
    /// The bytes of the file at `path`, or `None` when there is none.
    ///
    /// # Errors
    /// Whatever the system says, but for an absent file.
    fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>>;

    /// Writes `bytes` to a new file at `path`; it does not reach the disk by this. The file must not be there yet.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when it is; else whatever the system says.
    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Brings the content of the file at `path` to the disk.
    ///
    /// # Errors
    /// Whatever the system says.
    fn fsync_file(&self, path: &Path) -> io::Result<()>;

    /// Brings the names in the directory at `path` to the disk. A filesystem that cannot do this for a directory
    /// (EINVAL, ENOTSUP, EOPNOTSUPP) counts as done (*edition* §7).
    ///
    /// # Errors
    /// Whatever else the system says.
    fn fsync_dir(&self, path: &Path) -> io::Result<()>;

    /// Gives the file at `from` the name `to`, unless `to` is taken: never replaces.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when `to` is taken; [`io::ErrorKind::Unsupported`] when the filesystem has
    /// neither a no-replace rename nor hard links; else whatever the system says.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives the file at `from` the name `to`, replacing what was there.
    ///
    /// # Errors
    /// Whatever the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes the file at `path`; an absent file counts as removed. Returns whether there was one.
    ///
    /// # Errors
    /// Whatever the system says.
    fn remove_file(&self, path: &Path) -> io::Result<bool>;

    /// Creates the directory at `path` and its parents, each made durable in its parent.
    ///
    /// # Errors
    /// Whatever the system says.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
}

/// What became of an exclusive create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Create {
    /// The name is now taken by exactly these bytes, durably.
    Won,
    /// The name was taken already.
    Exists,
}

static TEMPORARY: AtomicU64 = AtomicU64::new(0);

/// The beginning of the name of every temporary file that this module makes.
pub const TEMPORARY_PREFIX: &str = ".jobctl-tmp-";

fn write_temporary(fs: &dyn Fs, path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let dir = directory_of(path)?;
    loop {
        let n = TEMPORARY.fetch_add(1, Ordering::Relaxed);
        let temporary = dir.join(format!("{TEMPORARY_PREFIX}{}-{n}", std::process::id()));
        match fs.write_new(&temporary, bytes) {
            Ok(()) => return Ok(temporary),
            // Left by an earlier process of the same number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                let _ = fs.remove_file(&temporary);
                return Err(error);
            }
        }
    }
}

fn directory_of(path: &Path) -> io::Result<&Path> {
    path.parent()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("{} has no folder", path.display())))
}

/// Creates the file at `path` with exactly `bytes`, whole and durable before it is visible, unless the name is taken
/// (*catalog* §6.6, *edition* §7): temporary file, fsync of it, no-replace rename, fsync of the directory.
///
/// After [`Create::Won`] a power cut loses nothing. After [`Create::Exists`] nothing was changed; whose bytes are there
/// is for the caller to read. A crash leaves at most a temporary file, which [`sweep_temporaries`] removes.
///
/// # Errors
/// Whatever the system says. After an error from the last fsync the name may be taken by these bytes: read it back.
pub fn create_exclusive(fs: &dyn Fs, path: &Path, bytes: &[u8]) -> io::Result<Create> {
    let temporary = write_temporary(fs, path, bytes)?;
    let placed = fs.fsync_file(&temporary).and_then(|()| fs.rename_new(&temporary, path));
    match placed {
        Ok(()) => {
            fs.fsync_dir(directory_of(path)?)?;
            Ok(Create::Won)
        }
        Err(error) => {
            let _ = fs.remove_file(&temporary);
            if error.kind() == io::ErrorKind::AlreadyExists { Ok(Create::Exists) } else { Err(error) }
        }
    }
}

/// How many files are brought to the disk at once: enough for its journal to take several in one turn.
const FSYNCS_AT_ONCE: usize = 8;

/// Creates several files, each as [`create_exclusive`] does, with their fsyncs at once and one of each folder at the end.
///
/// When it returns, every name that was free is taken by its bytes and survives a power cut. Nothing is visible before
/// its content is on the disk.
///
/// # Errors
/// Whatever the system says. Each file may be there or not then, whole in any case: create it again by itself.
pub fn create_exclusive_all(fs: &dyn Fs, files: &[(PathBuf, &[u8])]) -> io::Result<Vec<Create>> {
    let mut temporaries = VecDeque::with_capacity(files.len());
    let placed = place_all(fs, files, &mut temporaries);
    // What is left of them was not renamed.
    for temporary in temporaries {
        let _ = fs.remove_file(&temporary);
    }
    placed
}

fn place_all(fs: &dyn Fs, files: &[(PathBuf, &[u8])], temporaries: &mut VecDeque<PathBuf>) -> io::Result<Vec<Create>> {
    for (path, bytes) in files {
        temporaries.push_back(write_temporary(fs, path, bytes)?);
    }
    let share = temporaries.len().div_ceil(FSYNCS_AT_ONCE).max(1);
    std::thread::scope(|scope| {
        let sync = |files: &[PathBuf]| files.iter().try_for_each(|file| fs.fsync_file(file));
        let mut shares = temporaries.make_contiguous().chunks(share);
        let first = shares.next();
        let others: Vec<_> = shares.map(|share| scope.spawn(move || sync(share))).collect();
        let mut all = first.map_or(Ok(()), sync);
        for other in others {
            match other.join() {
                Ok(synced) => all = all.and(synced),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    })?;
    let mut created = Vec::with_capacity(files.len());
    let mut folders = BTreeSet::new();
    for (path, _) in files {
        let Some(temporary) = temporaries.front() else { break };
        created.push(match fs.rename_new(temporary, path) {
            Ok(()) => {
                folders.insert(directory_of(path)?);
                temporaries.pop_front();
                Create::Won
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs.remove_file(temporary)?;
                temporaries.pop_front();
                Create::Exists
            }
            Err(error) => return Err(error),
        });
    }
    folders.into_iter().try_for_each(|folder| fs.fsync_dir(folder))?;
    Ok(created)
}

/// Puts `bytes` at `path` in place of whatever was there: temporary file, fsync of it, rename, fsync of the directory.
/// A reader sees the old bytes or the new, never a part.
///
/// # Errors
/// Whatever the system says.
pub fn replace(fs: &dyn Fs, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = write_temporary(fs, path, bytes)?;
    if let Err(error) = fs.fsync_file(&temporary).and_then(|()| fs.rename(&temporary, path)) {
        let _ = fs.remove_file(&temporary);
        return Err(error);
    }
    fs.fsync_dir(directory_of(path)?)
}

/// Removes the file at `path` durably; an absent file counts as removed.
///
/// # Errors
/// Whatever the system says.
pub fn remove_durably(fs: &dyn Fs, path: &Path) -> io::Result<()> {
    if fs.remove_file(path)? {
        fs.fsync_dir(directory_of(path)?)?;
    }
    Ok(())
}

/// Removes the temporary files that a crash left in the directory at `dir`. Only for a directory that no other process
/// writes to now.
///
/// # Errors
/// Whatever the system says.
pub fn sweep_temporaries(fs: &dyn Fs, dir: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY_PREFIX) {
            fs.remove_file(&entry.path())?;
        }
    }
    Ok(())
}
