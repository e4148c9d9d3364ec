//! Rows on their way out of a table: each column in turn, checked against what the table says it holds.

use catalog_rules::instant::Instant;
use catalog_rules::sdmx::model::{InternationalString, SentinelValue};
use duckdb::arrow::array::{Array, AsArray as _, MapArray, StringArray};
use duckdb::arrow::datatypes::{Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType};
use duckdb::arrow::error::ArrowError;
use duckdb::arrow::record_batch::RecordBatch;

use super::error::MetadataError;
use super::rows::Target;
use super::schema::{Table, quoted};

/// Calls `each` with every row of `table`, all columns, in the table's order.
pub(super) fn scan(
    target: &Target<'_>,
    table: &'static Table,
    mut each: impl FnMut(&mut Cursor<'_>) -> Result<(), MetadataError>,
) -> Result<(), MetadataError> {
    let failed = || MetadataError::duckdb(format!("read {}", table.name));
    let sql = format!(
        "SELECT {} FROM {}.\"{}\" ORDER BY {}",
        table.column_list(),
        target.qualified(),
        table.name,
        quoted(table.order)
    );
    let mut statement = target.conn.prepare(&sql).map_err(failed())?;
    for batch in statement.query_arrow([]).map_err(failed())? {
        for row in 0..batch.num_rows() {
            each(&mut Cursor { table, batch: &batch, row, column: 0 })?;
        }
    }
    Ok(())
}

/// One row; each call takes the next column.
pub(super) struct Cursor<'b> {
    table: &'static Table,
    batch: &'b RecordBatch,
    row: usize,
    column: usize,
}

impl<'b> Cursor<'b> {
    /// The next column, or `None` for a null.
    fn next<T>(&mut self, read: impl FnOnce(&'b dyn Array, usize) -> Option<T>) -> Result<Option<T>, MetadataError> {
        let at = self.column;
        self.column += 1;
        let shape = |what: &str| {
            let found = self.batch.schema().fields().get(at).map(|field| field.to_string()).unwrap_or_default();
            MetadataError::arrow(self.table.name)(ArrowError::SchemaError(format!("column {at}, {found}: {what}")))
        };
        let array: &'b dyn Array = self.batch.columns().get(at).ok_or_else(|| shape("missing"))?.as_ref();
        if array.is_null(self.row) {
            return Ok(None);
        }
        read(array, self.row).map(Some).ok_or_else(|| shape("another type"))
    }

    fn name(&self, column: usize) -> &'static str {
        self.table.columns().nth(column).map_or("?", |(name, _)| name)
    }

    /// What says that the column read last holds something else than it should.
    pub(super) fn bad(&self, found: impl std::fmt::Debug, expected: &'static str) -> MetadataError {
        let column = self.name(self.column.saturating_sub(1));
        MetadataError::Value { table: self.table.name, column, found: format!("{found:?}"), expected }
    }

    fn some<T>(&self, value: Option<T>) -> Result<T, MetadataError> {
        value.ok_or_else(|| self.bad("NULL", "a value"))
    }

    pub(super) fn skip(&mut self, columns: usize) {
        self.column += columns;
    }

    pub(super) fn opt_text(&mut self) -> Result<Option<String>, MetadataError> {
        self.next(|array, row| Some(array.as_string_opt::<i32>()?.value(row).to_owned()))
    }

    pub(super) fn text(&mut self) -> Result<String, MetadataError> {
        let text = self.opt_text()?;
        self.some(text)
    }

    pub(super) fn opt_small(&mut self) -> Result<Option<i64>, MetadataError> {
        self.next(|array, row| Some(array.as_primitive_opt::<Int16Type>()?.value(row).into()))
    }

    pub(super) fn opt_int(&mut self) -> Result<Option<i64>, MetadataError> {
        self.next(|array, row| Some(array.as_primitive_opt::<Int32Type>()?.value(row).into()))
    }

    pub(super) fn int(&mut self) -> Result<i64, MetadataError> {
        let value = self.opt_int()?;
        self.some(value)
    }

    pub(super) fn big(&mut self) -> Result<i64, MetadataError> {
        let value = self.next(|array, row| Some(array.as_primitive_opt::<Int64Type>()?.value(row)))?;
        self.some(value)
    }

    pub(super) fn opt_double(&mut self) -> Result<Option<f64>, MetadataError> {
        self.next(|array, row| Some(array.as_primitive_opt::<Float64Type>()?.value(row)))
    }

    pub(super) fn opt_bool(&mut self) -> Result<Option<bool>, MetadataError> {
        self.next(|array, row| Some(array.as_boolean_opt()?.value(row)))
    }

    pub(super) fn bool(&mut self) -> Result<bool, MetadataError> {
        let value = self.opt_bool()?;
        self.some(value)
    }

    pub(super) fn opt_time(&mut self) -> Result<Option<Instant>, MetadataError> {
        self.next(|array, row| {
            let us = array.as_primitive_opt::<TimestampMicrosecondType>()?.value(row);
            Some(Instant::from_us(us))
        })
    }

    pub(super) fn time(&mut self) -> Result<Instant, MetadataError> {
        let value = self.opt_time()?;
        self.some(value)
    }

    /// A map of languages; a null is an empty one.
    pub(super) fn languages(&mut self) -> Result<InternationalString, MetadataError> {
        Ok(self.next(|array, row| languages(array.as_map_opt()?, row))?.unwrap_or_default())
    }

    pub(super) fn opt_texts(&mut self) -> Result<Option<Vec<String>>, MetadataError> {
        self.next(|array, row| {
            let list = array.as_list_opt::<i32>()?.value(row);
            Some(list.as_string_opt::<i32>()?.iter().map(|text| text.unwrap_or_default().to_owned()).collect())
        })
    }

    /// A list; a null is an empty one.
    pub(super) fn texts(&mut self) -> Result<Vec<String>, MetadataError> {
        Ok(self.opt_texts()?.unwrap_or_default())
    }

    pub(super) fn sentinels(&mut self) -> Result<Vec<SentinelValue>, MetadataError> {
        let sentinels = self.next(|array, row| {
            let list = array.as_list_opt::<i32>()?.value(row);
            let fields = list.as_struct_opt()?;
            let value: &StringArray = fields.column(0).as_string_opt()?;
            let (name, description) = (fields.column(1).as_map_opt()?, fields.column(2).as_map_opt()?);
            (0..fields.len())
                .map(|at| {
                    Some(SentinelValue {
                        value: value.value(at).to_owned(),
                        name: languages(name, at)?,
                        description: languages(description, at)?,
                    })
                })
                .collect()
        })?;
        Ok(sentinels.unwrap_or_default())
    }

    /// A member of an enum, by its value in the store.
    pub(super) fn opt_member<T>(
        &mut self,
        expected: &'static str,
        of: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, MetadataError> {
        match self.opt_text()? {
            None => Ok(None),
            Some(found) => of(&found).map(Some).ok_or_else(|| self.bad(found, expected)),
        }
    }
}

fn languages(map: &MapArray, row: usize) -> Option<InternationalString> {
    let entries = map.value(row);
    let (keys, values) = (entries.column(0).as_string_opt::<i32>()?, entries.column(1).as_string_opt::<i32>()?);
    Some((0..entries.len()).map(|at| (keys.value(at).to_owned(), values.value(at).to_owned())).collect())
}
