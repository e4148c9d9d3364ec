//! What a store can fail with.

use std::io;

use engine_rules::failure::{ActivityError, Disposition};

/// Why a store did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk refused.
    #[error("{operation} {path}: {source}")]
    Io {
        /// What was tried: `read`, `create`, `replace`, `delete`, `list`.
        operation: &'static str,
        /// The path on the disk.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// The answer to a write was lost, and it cannot be seen (D2).
    #[error("the write of {path} got no answer and is not there now; it may still land: {source}")]
    Unsettled {
        /// The path.
        path: String,
        /// What was answered instead.
        source: Box<StoreError>,
    },
    /// A name that was taken a moment ago and is not there now.
    #[error("{path} was there when it was to be created, and gone when it was read")]
    Vanished {
        /// The path.
        path: String,
    },
    /// A path that could leave the catalog.
    #[error("{path:?} is not a path within a catalog: expected names joined by '/', none of them empty, '.' or '..'")]
    BadPath {
        /// The path.
        path: String,
    },
}

impl StoreError {
    pub(super) fn unsettled(path: &str, source: Self) -> Self {
        Self::Unsettled { path: path.to_owned(), source: Box::new(source) }
    }
}

impl ActivityError for StoreError {
    fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "store.io",
            Self::Unsettled { .. } => "store.unsettled",
            Self::Vanished { .. } => "store.vanished",
            Self::BadPath { .. } => "store.bad_path",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull
                | io::ErrorKind::QuotaExceeded
                | io::ErrorKind::PermissionDenied
                | io::ErrorKind::ReadOnlyFilesystem
                | io::ErrorKind::Unsupported => Disposition::Operator,
                _ => Disposition::Retry,
            },
            Self::Unsettled { source, .. } => source.disposition(),
            Self::Vanished { .. } => Disposition::Retry,
            Self::BadPath { .. } => Disposition::Terminal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Some("make room on the disk, then resume the run".to_owned())
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some("let this user write to the catalog's folder, then resume the run".to_owned())
                }
                _ => None,
            },
            Self::Unsettled { source, .. } => source.hint(),
            Self::Vanished { .. } | Self::BadPath { .. } => None,
        }
    }
}
