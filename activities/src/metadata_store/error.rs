//! What goes wrong with a store.

use std::path::PathBuf;

use catalog_rules::sdmx::model::UrnText;
use duckdb::arrow::error::ArrowError;
use engine_rules::failure::{ActivityError, Disposition};

use crate::fs::Trouble;

/// Why the artefact store was not written or read.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// DuckDB refused a statement.
    #[error("the artefact store (metadata.duckdb): DuckDB failed to {doing}")]
    DuckDb {
        /// What was being done, such as `write code`.
        doing: String,
        /// What DuckDB said.
        source: duckdb::Error,
    },
    /// Rows did not become a batch for DuckDB, or a batch from it was not what the tables say.
    #[error("the artefact store (metadata.duckdb): the rows of {table} could not be passed to or from DuckDB")]
    Arrow {
        /// The table.
        table: &'static str,
        /// What was wrong with them.
        source: ArrowError,
    },
    /// Two items of an artefact, or two artefacts, have the same name.
    #[error("edition §4: {urn} stands twice among what is to be stored; a URN names one artefact or item: keep one")]
    Duplicate {
        /// The URN.
        urn: UrnText,
    },
    /// An item is its own ancestor.
    #[error("edition §4: the parents of {item} in {urn} lead back to it; give it a parent that is not below it")]
    ParentLoop {
        /// The artefact.
        urn: UrnText,
        /// The item's id.
        item: String,
    },
    /// A number that its column cannot hold.
    #[error("edition §4: {urn} has {found} as {field}, and the store holds {range}; correct the value in the source")]
    OutOfRange {
        /// The artefact.
        urn: UrnText,
        /// The field.
        field: &'static str,
        /// The value.
        found: i64,
        /// What the column holds.
        range: &'static str,
    },
    /// A stored artefact of a class that is not read here.
    #[error(
        "edition §4: the store holds {urn} of the class {found}, which this program does not read; open it with one \
         whose schema_version is the manifest's"
    )]
    Class {
        /// The artefact.
        urn: UrnText,
        /// Its class.
        found: String,
    },
    /// An artefact of a class that is not written here yet.
    #[error("edition §4: {urn} is of the class {found}, which this program does not store yet; leave it out")]
    NotStored {
        /// The artefact.
        urn: UrnText,
        /// Its class.
        found: &'static str,
    },
    /// A stored value that the column never holds when it was written here.
    #[error(
        "edition §4: {table}.{column} holds {found}, expected {expected}; the store is damaged or of another schema"
    )]
    Value {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The value.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
    /// Stored rows that belong to nothing in the store.
    #[error("edition §4: rows of {table} belong to {owner}, which the store does not hold; the store is damaged")]
    Orphan {
        /// The table.
        table: &'static str,
        /// The owner that the rows name.
        owner: String,
    },
    /// A file that must not be there yet.
    #[error("edition §7: {path} is there already, and the sealed store is written into a fresh file; remove it first")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A write-ahead log beside a store that should be at rest.
    #[error(
        "edition §7: {path} is beside the store, so rows lie outside the file that its checksum covers; close every \
         connection that wrote the store, or open and close it once"
    )]
    WalLeft {
        /// The log.
        path: PathBuf,
    },
    /// DuckDB does not say at which storage version a file was written.
    #[error("edition §7: DuckDB gives the storage version of {path} as {found:?}, expected such as v1.0.0+")]
    StorageVersion {
        /// The store.
        path: PathBuf,
        /// What DuckDB gave.
        found: String,
    },
}

impl MetadataError {
    pub(super) fn duckdb(doing: impl Into<String>) -> impl FnOnce(duckdb::Error) -> Self {
        let doing = doing.into();
        move |source| Self::DuckDb { doing, source }
    }

    pub(super) fn arrow(table: &'static str) -> impl FnOnce(ArrowError) -> Self {
        move |source| Self::Arrow { table, source }
    }
}

impl ActivityError for MetadataError {
    fn code(&self) -> &'static str {
        match self {
            Self::DuckDb { .. } => "metadata.duckdb",
            Self::Arrow { .. } => "metadata.arrow",
            Self::Duplicate { .. } => "metadata.duplicate",
            Self::ParentLoop { .. } => "metadata.parent_loop",
            Self::OutOfRange { .. } => "metadata.out_of_range",
            Self::Class { .. } => "metadata.class",
            Self::NotStored { .. } => "metadata.not_stored",
            Self::Value { .. } => "metadata.value",
            Self::Orphan { .. } => "metadata.orphan",
            Self::Exists { .. } => "metadata.exists",
            Self::WalLeft { .. } => "metadata.wal_left",
            Self::StorageVersion { .. } => "metadata.storage_version",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            // Only a disk may do better the next time; a broken constraint or a wrong statement will not.
            Self::DuckDb { source, .. } => {
                Trouble::of_duckdb(source).map_or(Disposition::Terminal, Trouble::disposition)
            }
            Self::Arrow { .. }
            | Self::Duplicate { .. }
            | Self::ParentLoop { .. }
            | Self::OutOfRange { .. }
            | Self::Class { .. }
            | Self::NotStored { .. }
            | Self::Value { .. }
            | Self::Orphan { .. }
            | Self::Exists { .. }
            | Self::WalLeft { .. }
            | Self::StorageVersion { .. } => Disposition::Terminal,
        }
    }
    fn hint(&self) -> Option<String> {
        match self {
            Self::DuckDb { source, .. } => Trouble::of_duckdb(source).and_then(Trouble::hint).map(ToOwned::to_owned),
            Self::Arrow { .. }
            | Self::Duplicate { .. }
            | Self::ParentLoop { .. }
            | Self::OutOfRange { .. }
            | Self::Class { .. }
            | Self::NotStored { .. }
            | Self::Value { .. }
            | Self::Orphan { .. }
            | Self::Exists { .. }
            | Self::WalLeft { .. }
            | Self::StorageVersion { .. } => None,
        }
    }
}
