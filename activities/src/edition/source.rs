//! Where the observations of a build come from.

use std::fmt;

use duckdb::arrow::record_batch::RecordBatch;
use engine_rules::failure::Failure;

/// The name of the last column of every batch: the line of the source that a row came from, counted from 1, as Int64.
/// It names rows in refusals and is not stored.
pub const LINE_COLUMN: &str = "_line";

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnRole {
    /// A dimension: part of the key, never absent.
    Dimension,
    /// The time dimension: part of the key, never absent.
    TimePeriod,
    /// A measure, as exact decimal text (`-12.50`), absent as null.
    Measure,
    /// An attribute, absent as null.
    Attribute,
}

/// A column of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservationColumn {
    /// Its name in the table.
    pub name: String,
    /// What it holds.
    pub role: ColumnRole,
}

/// The receiver of batches wants no more: something else failed, or the step was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop;

/// Why a source did not deliver all of its rows.
#[derive(Debug)]
pub enum SourceError {
    /// The source is not what it says.
    Refused(Failure),
    /// The receiver stopped it.
    Stopped,
}

impl From<Stop> for SourceError {
    fn from(Stop: Stop) -> Self {
        Self::Stopped
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(failure) => failure.fmt(f),
            Self::Stopped => f.write_str("the receiver stopped the source"),
        }
    }
}

impl std::error::Error for SourceError {}

/// Rows, in batches, always the same ones in the same order.
///
/// A batch has the source's columns in their order, each of type Utf8, and then [`LINE_COLUMN`]. It is called on a
/// thread of its own, so that reading and staging overlap.
pub trait ObservationSource: Sync {
    /// The columns, in the table's order.
    fn columns(&self) -> Vec<ObservationColumn>;

    /// How many rows there will be, where the source knows.
    fn expected_rows(&self) -> Option<u64> {
        None
    }

    /// Gives each batch to `each`, and stops when it says so.
    ///
    /// # Errors
    /// [`SourceError::Refused`] when the source is not what it says, [`SourceError::Stopped`] when `each` stopped it.
    fn for_each_batch(&self, each: &mut dyn FnMut(RecordBatch) -> Result<(), Stop>) -> Result<(), SourceError>;
}
