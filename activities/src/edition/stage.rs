//! The rows of a source in a table of the session's own, outside the catalog: a source that is refused half way leaves
//! the catalog as it was.

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::thread;

use duckdb::arrow::array::{Array, AsArray, StringArray};
use duckdb::arrow::datatypes::{DataType, Int64Type};
use duckdb::arrow::record_batch::RecordBatch;

use super::Tools;
use super::error::{ColumnFault, EditionError};
use super::source::{ColumnRole, ColumnType, LINE_COLUMN, ObservationColumn, ObservationSource, SourceError, Stop};
use crate::duck::{DuckError, Session, identifier};

/// Batches that may wait between the source's thread and the one that stages.
const BATCHES_AHEAD: usize = 2;
/// Names that DuckLake gives a meaning of its own.
const RESERVED: [&str; 5] = ["filename", "file_row_number", "rowid", "snapshot_id", LINE_COLUMN];

/// A column as it will be in the lake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LakeColumn {
    pub name: String,
    pub role: ColumnRole,
    /// DuckDB's type, such as `VARCHAR` or `DECIMAL(18,2)`.
    pub sql_type: String,
}

/// Staged rows.
#[derive(Debug)]
pub struct Staged {
    /// The table of the session, quoted.
    pub table: String,
    pub columns: Vec<LakeColumn>,
    pub rows: u64,
}

impl Staged {
    /// The columns that make a row's key, quoted.
    pub fn key(&self) -> Vec<String> {
        let key = |column: &&LakeColumn| matches!(column.role, ColumnRole::Dimension | ColumnRole::TimePeriod);
        self.columns.iter().filter(key).map(|column| identifier(&column.name)).collect()
    }

    /// The time dimension's column, quoted.
    pub fn time(&self) -> Option<String> {
        self.columns.iter().find(|column| column.role == ColumnRole::TimePeriod).map(|column| identifier(&column.name))
    }

    /// A query for the rows in the lake's types.
    pub fn select(&self) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|column| {
                let name = identifier(&column.name);
                match column.role {
                    ColumnRole::Measure => format!("CAST({name} AS {}) AS {name}", column.sql_type),
                    ColumnRole::Dimension | ColumnRole::TimePeriod | ColumnRole::Attribute => name,
                }
            })
            .collect();
        format!("SELECT {} FROM {}", columns.join(", "), self.table)
    }
}

/// Takes in all rows of `source` as the session's table number `number`, and refuses what is no set of observations.
///
/// # Errors
/// [`EditionError::Source`] when the source is refused, a variant of its own for each fault of the rows, and
/// [`EditionError::Cancelled`].
pub fn stage(
    tools: &Tools<'_>,
    session: &Session,
    number: usize,
    source: &dyn ObservationSource,
) -> Result<Staged, EditionError> {
    let columns = source.columns();
    check_columns(&columns)?;
    let name = format!("stage_{number}");
    let list: Vec<String> =
        columns.iter().map(|column| format!("{} {}", identifier(&column.name), column.column_type.sql())).collect();
    session
        .run("create a staging table", &format!("CREATE TABLE {name} ({}, {LINE_COLUMN} BIGINT)", list.join(", ")))?;
    let mut measures: Vec<Width> = columns.iter().map(|_| Width::default()).collect();
    let rows = append(tools, session, &name, source, &columns, &mut measures)?;
    let columns = columns
        .into_iter()
        .zip(&measures)
        .map(|(column, width)| {
            let sql_type = match column.role {
                ColumnRole::Measure => width.sql_type(&column.name)?,
                ColumnRole::Dimension | ColumnRole::TimePeriod | ColumnRole::Attribute => {
                    column.column_type.sql().to_owned()
                }
            };
            Ok(LakeColumn { name: column.name, role: column.role, sql_type })
        })
        .collect::<Result<_, EditionError>>()?;
    let staged = Staged { table: name, columns, rows };
    refuse_duplicates(session, &staged)?;
    Ok(staged)
}

fn check_columns(columns: &[ObservationColumn]) -> Result<(), EditionError> {
    let mut seen = BTreeSet::new();
    for column in columns {
        let lower = column.name.to_lowercase();
        let fault = if column.name.is_empty() || RESERVED.contains(&lower.as_str()) {
            Some(ColumnFault::Reserved)
        } else if !seen.insert(lower) {
            Some(ColumnFault::Twice)
        } else {
            None
        };
        if let Some(fault) = fault {
            return Err(EditionError::Columns { column: column.name.clone(), fault });
        }
    }
    let typed =
        |column: &&ObservationColumn| column.role != ColumnRole::Attribute && column.column_type != ColumnType::Text;
    if let Some(column) = columns.iter().find(typed) {
        return Err(EditionError::Columns { column: column.name.clone(), fault: ColumnFault::NotText });
    }
    if let Some(second) = columns.iter().filter(|column| column.role == ColumnRole::TimePeriod).nth(1) {
        return Err(EditionError::Columns { column: second.name.clone(), fault: ColumnFault::SecondTime });
    }
    let is_key = |column: &ObservationColumn| matches!(column.role, ColumnRole::Dimension | ColumnRole::TimePeriod);
    if !columns.iter().any(is_key) {
        return Err(EditionError::Columns { column: String::new(), fault: ColumnFault::NoKey });
    }
    Ok(())
}

fn append(
    tools: &Tools<'_>,
    session: &Session,
    table: &str,
    source: &dyn ObservationSource,
    columns: &[ObservationColumn],
    measures: &mut [Width],
) -> Result<u64, EditionError> {
    let total = source.expected_rows();
    let mut appender = session.connection().appender(table).map_err(DuckError::sql("stage rows"))?;
    let mut rows = 0;
    let received = thread::scope(|scope| {
        let (send, batches) = mpsc::sync_channel::<RecordBatch>(BATCHES_AHEAD);
        let reader = scope.spawn(move || source.for_each_batch(&mut |batch| send.send(batch).map_err(|_| Stop)));
        let mut staged = Ok(());
        // Leaving the loop drops the receiver, which stops the source at its next batch.
        while let Ok(batch) = batches.recv() {
            staged = (|| {
                if tools.context.cancel.is_cancelled() {
                    return Err(EditionError::Cancelled);
                }
                inspect(&batch, columns, measures)?;
                rows += batch.num_rows() as u64;
                appender.append_record_batch(batch).map_err(DuckError::sql("stage rows"))?;
                tools.context.progress("rows", rows, total);
                Ok(())
            })();
            if staged.is_err() {
                break;
            }
        }
        drop(batches);
        let read = match reader.join() {
            Ok(read) => read,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        staged?;
        match read {
            Ok(()) => Ok(()),
            Err(SourceError::Refused(failure)) => Err(EditionError::Source(failure)),
            Err(SourceError::Stopped) => Err(EditionError::Cancelled),
        }
    });
    received?;
    appender.flush().map_err(DuckError::sql("stage rows"))?;
    Ok(rows)
}

/// Looks at a batch before it is staged: its columns, its keys and the width of its measures.
fn inspect(batch: &RecordBatch, columns: &[ObservationColumn], measures: &mut [Width]) -> Result<(), EditionError> {
    let schema = batch.schema();
    let expected = columns.iter().map(|column| (column.name.as_str(), column.column_type.arrow()));
    let expected: Vec<_> = expected.chain([(LINE_COLUMN, DataType::Int64)]).collect();
    let found: Vec<_> =
        schema.fields().iter().map(|field| (field.name().as_str(), field.data_type().clone())).collect();
    if found != expected {
        return Err(EditionError::Batch {
            found: found.iter().map(|(name, kind)| format!("{name} {kind}")).collect::<Vec<_>>().join(", "),
            expected: expected.iter().map(|(name, kind)| format!("{name} {kind}")).collect::<Vec<_>>().join(", "),
        });
    }
    let lines = batch.column(columns.len()).as_primitive::<Int64Type>();
    for ((index, column), width) in columns.iter().enumerate().zip(measures) {
        let values = || -> &StringArray { batch.column(index).as_string() };
        match column.role {
            ColumnRole::Dimension | ColumnRole::TimePeriod => {
                let values = values();
                if let Some(row) =
                    (0..values.len()).find(|row| values.is_null(*row)).filter(|_| values.null_count() > 0)
                {
                    return Err(EditionError::MissingKey { column: column.name.clone(), line: lines.value(row) });
                }
            }
            ColumnRole::Measure => {
                let values = values();
                for row in 0..values.len() {
                    if values.is_valid(row) {
                        width.take(&column.name, values.value(row), lines.value(row))?;
                    }
                }
            }
            ColumnRole::Attribute => {}
        }
    }
    Ok(())
}

/// How wide the values of a measure are: digits before the point and after it, each with the line of the widest.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Width {
    whole: (usize, i64),
    fraction: (usize, i64),
}

/// Digits that DuckDB holds in a 64-bit and in a 128-bit decimal.
const NARROW_DIGITS: usize = 18;
const WIDE_DIGITS: usize = 38;

impl Width {
    fn take(&mut self, column: &str, text: &str, line: i64) -> Result<(), EditionError> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let numeric = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !numeric(whole) || !numeric(fraction) {
            return Err(EditionError::NotADecimal { column: column.to_owned(), found: text.to_owned(), line });
        }
        let fraction = if digits.len() == whole.len() { 0 } else { fraction.len() };
        let whole = whole.trim_start_matches('0').len();
        if whole > self.whole.0 {
            self.whole = (whole, line);
        }
        if fraction > self.fraction.0 {
            self.fraction = (fraction, line);
        }
        Ok(())
    }

    fn sql_type(&self, column: &str) -> Result<String, EditionError> {
        let ((whole, whole_line), (fraction, fraction_line)) = (self.whole, self.fraction);
        match whole + fraction {
            0..=NARROW_DIGITS => Ok(format!("DECIMAL({NARROW_DIGITS},{fraction})")),
            digits if digits <= WIDE_DIGITS => Ok(format!("DECIMAL({WIDE_DIGITS},{fraction})")),
            _ => Err(EditionError::TooWide {
                column: column.to_owned(),
                whole,
                whole_line,
                fraction,
                fraction_line,
                digits: WIDE_DIGITS,
            }),
        }
    }
}

/// Refuses two rows of one key. The hash of the key alone tells that there are none, without holding the keys.
fn refuse_duplicates(session: &Session, staged: &Staged) -> Result<(), EditionError> {
    const PURPOSE: &str = "look for duplicate observations";
    let (table, key) = (&staged.table, staged.key().join(", "));
    let sql = format!("SELECT count(*) FROM (SELECT hash({key}) AS h FROM {table} GROUP BY h HAVING count(*) > 1)");
    let suspects: i64 = session.row(PURPOSE, &sql, |row| row.get(0))?;
    if suspects == 0 {
        return Ok(());
    }
    let columns = staged.key();
    let sql = format!(
        "SELECT min({LINE_COLUMN}), max({LINE_COLUMN}), {key} FROM {table}
         WHERE hash({key}) IN (SELECT hash({key}) AS h FROM {table} GROUP BY h HAVING count(*) > 1)
         GROUP BY {key} HAVING count(*) > 1 ORDER BY 1 LIMIT 1"
    );
    let found = session.rows(PURPOSE, &sql, [], |row| {
        let key = (0..columns.len()).map(|index| row.get::<_, String>(index + 2)).collect::<Result<Vec<_>, _>>()?;
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, key))
    })?;
    match found.into_iter().next() {
        None => Ok(()),
        Some((first_line, second_line, values)) => {
            let names = staged.columns.iter().filter(|column| columns.contains(&identifier(&column.name)));
            let key = names.zip(values).map(|(column, value)| (column.name.clone(), value)).collect();
            Err(EditionError::Duplicate { key, first_line, second_line })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn width(values: &[&str]) -> Result<String, EditionError> {
        let mut width = Width::default();
        for (line, value) in values.iter().enumerate() {
            width.take("OBS_VALUE", value, line as i64 + 2)?;
        }
        width.sql_type("OBS_VALUE")
    }

    #[test]
    fn the_type_is_the_narrowest_that_holds_every_value_exactly() {
        for (values, expected) in [
            (&[][..], "DECIMAL(18,0)"),
            (&["0", "-0"], "DECIMAL(18,0)"),
            (&["1", "2.5", "-100.25"], "DECIMAL(18,2)"),
            (&["1.10"], "DECIMAL(18,2)"),
            (&["0.000"], "DECIMAL(18,3)"),
            (&["123456789012345678"], "DECIMAL(18,0)"),
            (&["000123456789012345678"], "DECIMAL(18,0)"),
            (&["1234567890123456789"], "DECIMAL(38,0)"),
            (&["123456789012345678", "0.1"], "DECIMAL(38,1)"),
            (&["12345678901234567890123456789012345678"], "DECIMAL(38,0)"),
        ] {
            assert_eq!(width(values).unwrap(), expected, "{values:?}");
        }
    }

    #[test]
    fn a_value_that_does_not_fit_or_is_no_decimal_is_named_with_its_line() {
        let wide = width(&["1", "123456789012345678901234567890", "0.123456789"]).unwrap_err();
        assert!(
            matches!(wide, EditionError::TooWide { whole: 30, whole_line: 3, fraction: 9, fraction_line: 4, .. }),
            "{wide:?}"
        );
        for bad in ["", "-", ".5", "5.", "1e5", "+1", "1,000", " 1", "--1", "NaN", "1.2.3", "٣"] {
            let error = width(&["1", bad]).unwrap_err();
            assert!(matches!(error, EditionError::NotADecimal { line: 3, .. }), "{bad:?}: {error:?}");
        }
    }
}
