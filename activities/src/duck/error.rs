//! What can go wrong between this program and DuckDB.

use std::io;
use std::path::PathBuf;

use engine_rules::failure::{ActivityError, Disposition};

use crate::fs::Trouble;

use super::{EXTENSIONS_VARIABLE, SETUP_COMMAND};

/// Why DuckDB did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum DuckError {
    /// DuckDB did not load the DuckLake extension.
    #[error(
        "DuckDB {duckdb_version} has no DuckLake extension in {}; bring it with: {SETUP_COMMAND}",
        directory.as_ref().map_or_else(|| "its default folder".to_owned(), |folder| folder.display().to_string())
    )]
    MissingExtension {
        /// The DuckDB release that the extension must be of.
        duckdb_version: String,
        /// Where it was looked for.
        directory: Option<PathBuf>,
        /// What DuckDB said.
        #[source]
        source: duckdb::Error,
    },
    /// A statement failed.
    #[error("DuckDB could not {purpose}")]
    Sql {
        /// What the statement was for.
        purpose: &'static str,
        /// What DuckDB said.
        #[source]
        source: duckdb::Error,
    },
    /// The run was cancelled before the statement began.
    #[error("the run was cancelled before DuckDB could {purpose}")]
    Stopped {
        /// What the statement was for.
        purpose: &'static str,
    },
    /// A write-ahead log stands beside a database that is to be read as it is.
    #[error(
        "edition §4: {} is beside its database, so a connection was not closed and the database is not whole; a reader \
         would take in rows that no digest covers",
        path.display()
    )]
    WriteAheadLog {
        /// The log.
        path: PathBuf,
    },
    /// A path is not UTF-8.
    #[error("the path {} is not UTF-8, and DuckDB cannot be told of it; rename the folder", path.display())]
    PathNotText {
        /// The path.
        path: PathBuf,
    },
    /// A file is not a database of DuckDB.
    #[error("edition §4: {} is not a DuckDB database: {found}, expected {expected}", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The filesystem failed.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// What was to be done.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl DuckError {
    /// Names what a failed statement was for.
    pub(crate) fn sql(purpose: &'static str) -> impl FnOnce(duckdb::Error) -> Self {
        move |source| Self::Sql { purpose, source }
    }
}

impl ActivityError for DuckError {
    fn code(&self) -> &'static str {
        match self {
            Self::MissingExtension { .. } => "duck.missing_extension",
            Self::Sql { .. } => "duck.sql",
            Self::Stopped { .. } => "duck.stopped",
            Self::WriteAheadLog { .. } => "catalog.write_ahead_log",
            Self::PathNotText { .. } => "duck.path_not_text",
            Self::NotADatabase { .. } => "catalog.not_a_database",
            Self::Io { .. } => "duck.io",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::MissingExtension { .. } => Disposition::Operator,
            Self::Sql { source, .. } => Trouble::of_duckdb(source).map_or(Disposition::Terminal, Trouble::disposition),
            Self::Io { source, .. } => Trouble::of(source).disposition(),
            Self::Stopped { .. } => Disposition::Retry,
            Self::WriteAheadLog { .. } | Self::PathNotText { .. } | Self::NotADatabase { .. } => Disposition::Terminal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::MissingExtension { .. } => {
                Some(format!("{SETUP_COMMAND}, or set {EXTENSIONS_VARIABLE} to the folder that holds v<version>/"))
            }
            Self::WriteAheadLog { .. } => Some("publish the product again: jobctl run publish --product …".to_owned()),
            Self::Sql { source, .. } => Trouble::of_duckdb(source).and_then(Trouble::hint).map(ToOwned::to_owned),
            Self::Io { source, .. } => Trouble::of(source).hint().map(ToOwned::to_owned),
            Self::Stopped { .. } | Self::PathNotText { .. } | Self::NotADatabase { .. } => None,
        }
    }
}
