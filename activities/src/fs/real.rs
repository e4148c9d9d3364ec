//! The system's own filesystem.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::Fs;

/// The filesystem of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFs;

impl Fs for RealFs {
    fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        match fs::read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        let written = file.write_all(bytes);
        if written.is_err() {
            // A full disk must not leave half a file behind.
            let _ = fs::remove_file(path);
        }
        written
    }

    fn fsync_file(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn fsync_dir(&self, path: &Path) -> io::Result<()> {
        match File::open(path)?.sync_all() {
            Ok(()) => Ok(()),
            Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::INVAL | Errno::NOTSUP) => Ok(()),
                // On Linux ENOTSUP and EOPNOTSUPP are one number, elsewhere two.
                Some(errno) if errno == Errno::OPNOTSUPP => Ok(()),
                Some(_) | None => Err(error),
            },
        }
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            // This filesystem does not know the flag: a hard link never replaces either.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match fs::hard_link(from, to) {
                Ok(()) => fs::remove_file(from),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
                Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
                    Some(Errno::PERM | Errno::NOTSUP | Errno::NOSYS) => Err(io::Error::new(
                        io::ErrorKind::Unsupported,
                        format!(
                            "the filesystem of {} has neither a no-replace rename nor hard links, and a document must \
                             be created whole and exclusively (catalog §6.6); put the catalog on another filesystem",
                            to.display()
                        ),
                    )),
                    Some(_) | None => Err(error),
                },
            },
            Err(errno) => Err(errno.into()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<bool> {
        match fs::remove_file(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            self.create_dir_all(parent)?;
            match fs::create_dir(path) {
                Ok(()) => self.fsync_dir(parent),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
                Err(error) => Err(error),
            }
        } else {
            fs::create_dir_all(path)
        }
    }
}
