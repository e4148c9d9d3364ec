//! What an error of the disk asks for: whether it passes by itself, or a person must act before the step can go on.

use std::error::Error;
use std::io;

use engine_rules::failure::Disposition;
use rustix::io::Errno;

/// What stands between a step and its surroundings. Nothing of it is a fault of the catalog or of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// No room is left, or no more of it is allowed.
    Full,
    /// This user may not do it, or the filesystem is read-only.
    Denied,
    /// The place itself is unfit: a name too long for it, or something that its filesystem cannot do.
    Unfit,
    /// DuckDB may not take the memory that it needs.
    Memory,
    /// It may have passed by the next attempt.
    Passing,
}

impl Trouble {
    /// What the system's answer means.
    #[must_use]
    pub fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => return Self::Full,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => return Self::Denied,
            io::ErrorKind::InvalidFilename | io::ErrorKind::Unsupported | io::ErrorKind::FileTooLarge => {
                return Self::Unfit;
            }
            _ => {}
        }
        // An error that carries another has its own kind; what it says is then all that there is.
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NAMETOOLONG | Errno::LOOP) => Self::Unfit,
            Some(_) => Self::Passing,
            None => Self::told_by(&error.to_string()).unwrap_or(Self::Passing),
        }
    }

    /// What DuckDB's message means, or `None` when it tells of no trouble with its surroundings. DuckDB passes the
    /// system's error on as text only.
    #[must_use]
    pub fn of_duckdb(error: &dyn Error) -> Option<Self> {
        let text = error.to_string();
        // A fatal error is a write or an fsync that failed where DuckDB cannot go on; a new session can.
        let passing = || ["IO Error", "FATAL Error"].iter().any(|kind| text.contains(kind)).then_some(Self::Passing);
        Self::told_by(&text).or_else(passing)
    }

    fn told_by(text: &str) -> Option<Self> {
        const TOLD: &[(&str, Trouble)] = &[
            ("No space left on device", Trouble::Full),
            ("Disk quota exceeded", Trouble::Full),
            // DuckDB fills at most what was free when it began to spill.
            ("max_temp_directory_size", Trouble::Full),
            ("Permission denied", Trouble::Denied),
            ("Operation not permitted", Trouble::Denied),
            ("Read-only file system", Trouble::Denied),
            ("File name too long", Trouble::Unfit),
            ("File too large", Trouble::Unfit),
            ("Out of Memory Error", Trouble::Memory),
        ];
        TOLD.iter().find(|(words, _)| text.contains(words)).map(|(_, trouble)| *trouble)
    }

    /// Whether the step is tried again, or waits for a person. A run that waits keeps its place: when the cause is
    /// gone, it goes on from the step that stopped.
    #[must_use]
    pub fn disposition(self) -> Disposition {
        match self {
            Self::Full | Self::Denied | Self::Unfit | Self::Memory => Disposition::Operator,
            Self::Passing => Disposition::Retry,
        }
    }

    /// What the person is to do.
    #[must_use]
    pub fn hint(self) -> Option<&'static str> {
        match self {
            Self::Full => Some("make room on that disk, then: jobctl runs resume RUN"),
            Self::Denied => Some("let this user read and write there, then: jobctl runs resume RUN"),
            Self::Unfit => Some(
                "put the catalog and the state on a local filesystem, under a shorter path, then: jobctl runs resume RUN",
            ),
            Self::Memory => Some("raise memory_limit_mb under [duckdb] in jobctl.toml, then: jobctl runs resume RUN"),
            Self::Passing => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_person_can_mend_is_not_tried_again() {
        for (errno, trouble) in [
            (Errno::NOSPC, Trouble::Full),
            (Errno::DQUOT, Trouble::Full),
            (Errno::ACCESS, Trouble::Denied),
            (Errno::PERM, Trouble::Denied),
            (Errno::ROFS, Trouble::Denied),
            (Errno::NAMETOOLONG, Trouble::Unfit),
            (Errno::FBIG, Trouble::Unfit),
            (Errno::IO, Trouble::Passing),
            (Errno::NOENT, Trouble::Passing),
        ] {
            let error = io::Error::from(errno);
            assert_eq!(Trouble::of(&error), trouble, "{error}");
            // As another library hands it on: wrapped, with its words only.
            assert_eq!(Trouble::of(&io::Error::other(error.to_string())).disposition(), trouble.disposition());
            let expected = if trouble == Trouble::Passing { Disposition::Retry } else { Disposition::Operator };
            assert_eq!(trouble.disposition(), expected, "{error}");
            assert_eq!(trouble.hint().is_some(), trouble != Trouble::Passing, "{error}");
        }
    }

    #[test]
    fn what_duckdb_says_of_its_surroundings_is_told_from_its_other_errors() {
        for (text, trouble) in [
            ("IO Error: Could not write file \"x\": No space left on device: Error code 1", Some(Trouble::Full)),
            (
                "FATAL Error: the database has been invalidated. Original error: \"Could not write file: No space \
                 left on device\"",
                Some(Trouble::Full),
            ),
            ("IO Error: Cannot open file \"x\": Permission denied", Some(Trouble::Denied)),
            ("IO Error: Cannot open file \"x\": Read-only file system", Some(Trouble::Denied)),
            ("IO Error: Could not read from file \"x\": Input/output error", Some(Trouble::Passing)),
            (
                "Out of Memory Error: failed to allocate data of size 16.0 MiB (100.0 MiB/100.0 MiB used)",
                Some(Trouble::Memory),
            ),
            ("Out of Memory Error: failed to offload data block … see max_temp_directory_size", Some(Trouble::Full)),
            ("FATAL Error: fsync failed!", Some(Trouble::Passing)),
            ("Constraint Error: Duplicate key", None),
        ] {
            assert_eq!(Trouble::of_duckdb(&io::Error::other(text)), trouble, "{text}");
        }
    }
}
