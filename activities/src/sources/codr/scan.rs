//! Turns records into observations, and observations into batches.

mod batch;
mod row;
mod units;

use std::io::Read;
use std::sync::Arc;

use duckdb::arrow::record_batch::RecordBatch;

use super::dialect::Dialect;
use super::error::CodrError;
use super::finding::{FindingKind, Findings};
use super::members::{Dimension, Slots};
use super::reader::RecordReader;
use super::table::TableLayout;

pub(super) use units::Units;

/// How many observations a batch holds: a multiple of the engine's vector of 2,048.
pub(super) const BATCH_ROWS: usize = 32_768;

/// Why reading rows stopped.
#[derive(Debug)]
pub enum ReadError<E> {
    /// The source was refused.
    Source(CodrError),
    /// The receiver of the batches failed, or wants no more.
    Receiver(E),
}

impl<E> From<CodrError> for ReadError<E> {
    fn from(error: CodrError) -> Self {
        Self::Source(error)
    }
}

/// What the rows of one file told.
#[derive(Debug)]
pub(super) struct Scanned {
    /// Per dimension, the members that the rows name.
    pub(super) slots: Vec<Slots>,
    pub(super) units: Units,
    pub(super) observations: u64,
    pub(super) numbers: Numbers,
}

/// How wide the values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Numbers {
    /// The most digits before the point, without leading zeros.
    pub(super) integer_digits: u32,
    /// The most digits after the point.
    pub(super) scale: u32,
    /// The most decimals that a row declares.
    pub(super) declared: u32,
}

/// The most digits of an exact decimal column.
pub(super) const MOST_DIGITS: u32 = 38;

/// Who is given the batches of a table.
pub(super) type Receiver<'a, E> = &'a mut dyn FnMut(RecordBatch) -> Result<(), E>;

/// A file and what its header told.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) file: &'a Arc<str>,
    /// Whether it is a member of an archive.
    pub(super) archived: bool,
    pub(super) delimiter: u8,
    pub(super) dialect: &'a Dialect,
    pub(super) dimensions: &'a [Dimension],
}

/// Reads every row of `input`. Batches of a table go to its receiver; without one the rows are only looked at, for
/// their labels.
pub(super) fn scan<E>(
    input: impl Read,
    source: Source<'_>,
    findings: &mut Findings,
    table: Option<(&TableLayout, Receiver<'_, E>)>,
) -> Result<Scanned, ReadError<E>> {
    let Source { file, archived, delimiter, dialect, dimensions } = source;
    let mut reader = RecordReader::new(input, Arc::clone(file), archived)?;
    reader.set_delimiter(delimiter);
    // The header, which was looked at before.
    reader.next()?;
    reader.expect_cells(dialect.cells);
    let mut receive = None;
    let mut batch = None;
    if let Some((layout, receiver)) = table {
        batch = Some(batch::Batch::new(layout, dialect.dimensions()));
        receive = Some(receiver);
    }
    let mut rows = row::Rows::new(file, dialect, dimensions, batch);
    while let Some(record) = reader.next()? {
        if record.repaired {
            findings.note(FindingKind::LostQuotes, file, Some(record.line), 0, || {
                "a label lost its inner quotes; its cells were told apart by their borders".to_owned()
            });
        }
        rows.take(&record, findings)?;
        if rows.full()
            && let Some(receiver) = receive.as_deref_mut()
            && let Some(batch) = rows.finish_batch()?
        {
            receiver(batch).map_err(ReadError::Receiver)?;
        }
    }
    if let Some(receiver) = receive
        && let Some(batch) = rows.finish_batch()?
    {
        receiver(batch).map_err(ReadError::Receiver)?;
    }
    let scanned = rows.into_scanned();
    if scanned.observations == 0 {
        return Err(CodrError::NoRows { file: file.to_string() }.into());
    }
    Ok(scanned)
}
