//! Where the observations of a build come from.

use std::borrow::Cow;
use std::fmt;

use catalog_rules::sdmx::model::Artefact;
use duckdb::arrow::datatypes::DataType;
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

/// How a batch delivers a column, and for all but measures the type that it has in the lake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Utf8, `VARCHAR`. Dimensions, the time dimension and measures are always delivered so.
    Text,
    /// Int16, `SMALLINT`.
    SmallInt,
    /// Boolean, `BOOLEAN`.
    Boolean,
}

impl ColumnType {
    pub(super) fn sql(self) -> &'static str {
        match self {
            Self::Text => "VARCHAR",
            Self::SmallInt => "SMALLINT",
            Self::Boolean => "BOOLEAN",
        }
    }

    pub(super) fn arrow(self) -> DataType {
        match self {
            Self::Text => DataType::Utf8,
            Self::SmallInt => DataType::Int16,
            Self::Boolean => DataType::Boolean,
        }
    }
}

/// A column of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservationColumn {
    /// Its name in the table.
    pub name: String,
    /// What it holds.
    pub role: ColumnRole,
    /// How it is delivered. Only an attribute may be anything else than [`ColumnType::Text`].
    pub column_type: ColumnType,
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
/// A batch has the source's columns in their order, each of its [`ColumnType`], and then [`LINE_COLUMN`]. It is called on a
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

/// Where the artefacts of a build come from. They are asked for once, after every row was read, since some lists are
/// known only then (a table's units, or its members where it came without a description).
pub trait ArtefactSource: Sync {
    /// Every artefact that the edition is to hold.
    ///
    /// # Errors
    /// The refusal of the source.
    fn artefacts(&self) -> Result<Cow<'_, [Artefact]>, Failure>;
}

impl ArtefactSource for Vec<Artefact> {
    fn artefacts(&self) -> Result<Cow<'_, [Artefact]>, Failure> {
        Ok(Cow::Borrowed(self))
    }
}
