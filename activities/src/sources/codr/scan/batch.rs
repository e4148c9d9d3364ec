//! One batch of observations while it is filled.

use std::sync::Arc;

use duckdb::arrow::array::{ArrayRef, BooleanBuilder, Int16Builder, Int64Builder, StringBuilder};
use duckdb::arrow::datatypes::SchemaRef;
use duckdb::arrow::error::ArrowError;
use duckdb::arrow::record_batch::RecordBatch;

use super::super::table::TableLayout;
use super::BATCH_ROWS;

/// The columns beside the dimensions of a table of the ordinary layout.
struct Ordinary {
    unit: StringBuilder,
    multiplier: StringBuilder,
    decimals: Int16Builder,
    vector: StringBuilder,
    terminated: BooleanBuilder,
}

/// What an observation of the ordinary layout has beside the columns of every layout.
pub(super) struct OrdinaryCells<'a> {
    pub(super) unit: Option<&'a str>,
    pub(super) multiplier: Option<&'static str>,
    pub(super) decimals: Option<i16>,
    pub(super) vector: Option<&'a str>,
    pub(super) terminated: bool,
}

pub(super) struct Batch {
    schema: SchemaRef,
    pub(super) dimensions: Vec<StringBuilder>,
    period: StringBuilder,
    value: StringBuilder,
    status: StringBuilder,
    symbol: StringBuilder,
    dguid: StringBuilder,
    ordinary: Option<Ordinary>,
    line: Int64Builder,
    pub(super) rows: usize,
}

fn strings(bytes_a_row: usize) -> StringBuilder {
    StringBuilder::with_capacity(BATCH_ROWS, BATCH_ROWS * bytes_a_row)
}

impl Batch {
    pub(super) fn new(layout: &TableLayout, dimensions: usize) -> Self {
        let schema = layout.batch_schema();
        let ordinary = schema.fields().find("VECTOR").is_some();
        Self {
            schema,
            dimensions: (0..dimensions).map(|_| strings(4)).collect(),
            period: strings(10),
            value: strings(10),
            status: strings(1),
            symbol: strings(1),
            dguid: strings(16),
            ordinary: ordinary.then(|| Ordinary {
                unit: strings(4),
                multiplier: strings(1),
                decimals: Int16Builder::with_capacity(BATCH_ROWS),
                vector: strings(12),
                terminated: BooleanBuilder::with_capacity(BATCH_ROWS),
            }),
            line: Int64Builder::with_capacity(BATCH_ROWS),
            rows: 0,
        }
    }

    /// Ends a row whose members were appended to `dimensions`.
    #[allow(clippy::too_many_arguments, reason = "one argument a column")]
    pub(super) fn end_row(
        &mut self,
        period: &str,
        value: Option<&str>,
        status: Option<&'static str>,
        symbol: Option<&'static str>,
        dguid: Option<&str>,
        ordinary: Option<OrdinaryCells<'_>>,
        line: u64,
    ) {
        self.period.append_value(period);
        self.value.append_option(value);
        self.status.append_option(status);
        self.symbol.append_option(symbol);
        self.dguid.append_option(dguid);
        if let (Some(columns), Some(cells)) = (&mut self.ordinary, ordinary) {
            columns.unit.append_option(cells.unit);
            columns.multiplier.append_option(cells.multiplier);
            columns.decimals.append_option(cells.decimals);
            columns.vector.append_option(cells.vector);
            columns.terminated.append_value(cells.terminated);
        }
        self.line.append_value(i64::try_from(line).unwrap_or(i64::MAX));
        self.rows += 1;
    }

    /// The batch, and an empty one in its place; none when it holds no rows.
    pub(super) fn finish(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        if self.rows == 0 {
            return Ok(None);
        }
        self.rows = 0;
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        for dimension in &mut self.dimensions {
            columns.push(Arc::new(dimension.finish()));
        }
        for column in [&mut self.period, &mut self.value, &mut self.status, &mut self.symbol, &mut self.dguid] {
            columns.push(Arc::new(column.finish()));
        }
        if let Some(ordinary) = &mut self.ordinary {
            columns.push(Arc::new(ordinary.unit.finish()));
            columns.push(Arc::new(ordinary.multiplier.finish()));
            columns.push(Arc::new(ordinary.decimals.finish()));
            columns.push(Arc::new(ordinary.vector.finish()));
            columns.push(Arc::new(ordinary.terminated.finish()));
        }
        columns.push(Arc::new(self.line.finish()));
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map(Some)
    }
}
