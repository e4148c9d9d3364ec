//! Rows on their way into a table: gathered by column and appended in batches, which is what makes a list of half a
//! million codes a matter of seconds.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog_rules::instant::Instant;
use catalog_rules::sdmx::model::SentinelValue;
use duckdb::Connection;
use duckdb::arrow::array::{
    Array as _, ArrayBuilder, ArrayRef, BooleanBuilder, Float64Builder, Int16Builder, Int32Builder, Int64Builder,
    ListBuilder, MapBuilder, StringBuilder, StructBuilder, TimestampMicrosecondBuilder,
};
use duckdb::arrow::datatypes::{DataType, Field, Fields, Schema};
use duckdb::arrow::error::ArrowError;
use duckdb::arrow::record_batch::RecordBatch;

use super::error::MetadataError;
use super::schema::{LANGUAGES, SENTINELS, Table};

/// One value of a row. `Null` fits every column.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell<'a> {
    Null,
    Text(&'a str),
    Small(i16),
    Int(i32),
    Big(i64),
    Bool(bool),
    Double(f64),
    Time(Instant),
    Languages(&'a BTreeMap<String, String>),
    Texts(&'a [String]),
    Sentinels(&'a [SentinelValue]),
}

impl<'a> Cell<'a> {
    pub(super) fn text(text: Option<&'a String>) -> Self {
        text.map_or(Self::Null, |text| Self::Text(text))
    }

    pub(super) fn bool(value: Option<bool>) -> Self {
        value.map_or(Self::Null, Self::Bool)
    }

    pub(super) fn double(value: Option<f64>) -> Self {
        value.map_or(Self::Null, Self::Double)
    }

    pub(super) fn time(value: Option<Instant>) -> Self {
        value.map_or(Self::Null, Self::Time)
    }

    pub(super) fn texts(texts: Option<&'a Vec<String>>) -> Self {
        texts.map_or(Self::Null, |texts| Self::Texts(texts))
    }
}

type LanguagesBuilder = MapBuilder<StringBuilder, StringBuilder>;

enum Builder {
    Text(StringBuilder),
    Small(Int16Builder),
    Int(Int32Builder),
    Big(Int64Builder),
    Bool(BooleanBuilder),
    Double(Float64Builder),
    Time(TimestampMicrosecondBuilder),
    Languages(LanguagesBuilder),
    Texts(ListBuilder<StringBuilder>),
    Sentinels(ListBuilder<StructBuilder>),
}

fn languages_builder() -> LanguagesBuilder {
    MapBuilder::new(None, StringBuilder::new(), StringBuilder::new())
}

fn sentinels_builder() -> ListBuilder<StructBuilder> {
    let texts = languages_builder().finish().data_type().clone();
    let fields = Fields::from(vec![
        Field::new("value", DataType::Utf8, true),
        Field::new("name", texts.clone(), true),
        Field::new("description", texts, true),
    ]);
    let builders: Vec<Box<dyn ArrayBuilder>> =
        vec![Box::new(StringBuilder::new()), Box::new(languages_builder()), Box::new(languages_builder())];
    ListBuilder::new(StructBuilder::new(fields, builders))
}

impl Builder {
    /// The builder for a column of this declaration.
    fn of(declared: &str) -> Self {
        match declared.split(' ').next().unwrap_or_default() {
            _ if declared == LANGUAGES => Self::Languages(languages_builder()),
            _ if declared == SENTINELS => Self::Sentinels(sentinels_builder()),
            "SMALLINT" => Self::Small(Int16Builder::new()),
            "INTEGER" => Self::Int(Int32Builder::new()),
            "BIGINT" => Self::Big(Int64Builder::new()),
            "BOOLEAN" => Self::Bool(BooleanBuilder::new()),
            "DOUBLE" => Self::Double(Float64Builder::new()),
            "TIMESTAMP" => Self::Time(TimestampMicrosecondBuilder::new()),
            "VARCHAR[]" => Self::Texts(ListBuilder::new(StringBuilder::new())),
            _ => Self::Text(StringBuilder::new()),
        }
    }

    /// Whether `cell` fits the column, and if so appends it.
    fn push(&mut self, cell: Cell<'_>) -> Result<bool, ArrowError> {
        match (self, cell) {
            (Self::Text(b), Cell::Text(text)) => b.append_value(text),
            (Self::Text(b), Cell::Null) => b.append_null(),
            (Self::Small(b), Cell::Small(value)) => b.append_value(value),
            (Self::Small(b), Cell::Null) => b.append_null(),
            (Self::Int(b), Cell::Int(value)) => b.append_value(value),
            (Self::Int(b), Cell::Null) => b.append_null(),
            (Self::Big(b), Cell::Big(value)) => b.append_value(value),
            (Self::Big(b), Cell::Null) => b.append_null(),
            (Self::Bool(b), Cell::Bool(value)) => b.append_value(value),
            (Self::Bool(b), Cell::Null) => b.append_null(),
            (Self::Double(b), Cell::Double(value)) => b.append_value(value),
            (Self::Double(b), Cell::Null) => b.append_null(),
            (Self::Time(b), Cell::Time(value)) => b.append_value(value.as_us()),
            (Self::Time(b), Cell::Null) => b.append_null(),
            (Self::Languages(b), Cell::Languages(texts)) => push_languages(b, texts)?,
            (Self::Languages(b), Cell::Null) => b.append(false)?,
            (Self::Texts(b), Cell::Texts(texts)) => {
                texts.iter().for_each(|text| b.values().append_value(text));
                b.append(true);
            }
            (Self::Texts(b), Cell::Null) => b.append(false),
            (Self::Sentinels(b), Cell::Sentinels(sentinels)) => {
                for sentinel in sentinels {
                    push_sentinel(b.values(), sentinel)?;
                }
                b.append(true);
            }
            (Self::Sentinels(b), Cell::Null) => b.append(false),
            (
                Self::Text(_)
                | Self::Small(_)
                | Self::Int(_)
                | Self::Big(_)
                | Self::Bool(_)
                | Self::Double(_)
                | Self::Time(_)
                | Self::Languages(_)
                | Self::Texts(_)
                | Self::Sentinels(_),
                _,
            ) => return Ok(false),
        }
        Ok(true)
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(b) => Arc::new(b.finish()),
            Self::Small(b) => Arc::new(b.finish()),
            Self::Int(b) => Arc::new(b.finish()),
            Self::Big(b) => Arc::new(b.finish()),
            Self::Bool(b) => Arc::new(b.finish()),
            Self::Double(b) => Arc::new(b.finish()),
            Self::Time(b) => Arc::new(b.finish()),
            Self::Languages(b) => Arc::new(b.finish()),
            Self::Texts(b) => Arc::new(b.finish()),
            Self::Sentinels(b) => Arc::new(b.finish()),
        }
    }
}

fn push_languages(builder: &mut LanguagesBuilder, texts: &BTreeMap<String, String>) -> Result<(), ArrowError> {
    for (language, text) in texts {
        builder.keys().append_value(language);
        builder.values().append_value(text);
    }
    builder.append(true)
}

fn push_sentinel(builder: &mut StructBuilder, sentinel: &SentinelValue) -> Result<(), ArrowError> {
    let shape = || ArrowError::SchemaError("a sentinel value has a text and two maps".to_owned());
    builder.field_builder::<StringBuilder>(0).ok_or_else(shape)?.append_value(&sentinel.value);
    push_languages(builder.field_builder(1).ok_or_else(shape)?, &sentinel.name)?;
    push_languages(builder.field_builder(2).ok_or_else(shape)?, &sentinel.description)?;
    builder.append(true);
    Ok(())
}

/// How many rows are gathered before they are appended: enough to make the call cheap, and few megabytes.
const BATCH_ROWS: usize = 32_768;

/// The rows gathered for one table.
pub(super) struct Rows {
    table: &'static Table,
    builders: Vec<Builder>,
    rows: usize,
}

impl Rows {
    pub(super) fn new(table: &'static Table) -> Self {
        let builders = table.columns().map(|(_, declared)| Builder::of(declared)).collect();
        Self { table, builders, rows: 0 }
    }

    /// Adds a row, one cell for each column in order, and appends a full batch to the table.
    pub(super) fn push(&mut self, target: &Target<'_>, row: &[Cell<'_>]) -> Result<(), MetadataError> {
        let shape = |what: String| MetadataError::arrow(self.table.name)(ArrowError::SchemaError(what));
        if row.len() != self.builders.len() {
            return Err(shape(format!("{} cells for {} columns", row.len(), self.builders.len())));
        }
        for ((builder, cell), (column, declared)) in self.builders.iter_mut().zip(row).zip(self.table.columns()) {
            if !builder.push(*cell).map_err(MetadataError::arrow(self.table.name))? {
                return Err(shape(format!("{cell:?} for {column} {declared}")));
            }
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS { self.flush(target) } else { Ok(()) }
    }

    /// Appends what was gathered to the table.
    pub(super) fn flush(&mut self, target: &Target<'_>) -> Result<(), MetadataError> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        let table = self.table.name;
        let arrays: Vec<ArrayRef> = self.builders.iter_mut().map(Builder::finish).collect();
        let fields: Vec<Field> = self
            .table
            .columns()
            .zip(&arrays)
            .map(|((name, _), array)| Field::new(name, array.data_type().clone(), true))
            .collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(MetadataError::arrow(table))?;
        let failed = || MetadataError::duckdb(format!("write {table}"));
        if !self.table.has_sequence() {
            return target.append(table, target.catalog, target.schema, batch).map_err(failed());
        }
        // An appender cannot find the sequence of a default in an attached database, a statement can.
        let (columns, into) = (self.table.column_list(), format!("{}.\"{table}\"", target.qualified()));
        let run = |sql: String| target.conn.execute_batch(&sql);
        run(format!("CREATE OR REPLACE TEMP TABLE {STAGE} AS SELECT {columns} FROM {into} LIMIT 0"))
            .and_then(|()| target.append(STAGE, "temp", "main", batch))
            .and_then(|()| run(format!("INSERT INTO {into} ({columns}) SELECT {columns} FROM temp.main.{STAGE}")))
            .and_then(|()| run(format!("DROP TABLE temp.main.{STAGE}")))
            .map_err(failed())
    }
}

/// The temporary table through which rows go that no appender can append.
const STAGE: &str = "jobctl_metadata_stage";

/// Where rows go.
#[derive(Clone, Copy)]
pub(super) struct Target<'c> {
    pub(super) conn: &'c Connection,
    pub(super) catalog: &'c str,
    pub(super) schema: &'c str,
}

impl Target<'_> {
    fn append(&self, table: &str, catalog: &str, schema: &str, batch: RecordBatch) -> Result<(), duckdb::Error> {
        let mut appender = self.conn.appender_to_catalog_and_db(table, catalog, schema)?;
        appender.append_record_batch(batch)?;
        appender.flush()
    }

    /// The catalog and the schema, quoted.
    pub(super) fn qualified(&self) -> String {
        format!("{}.{}", identifier(self.catalog), identifier(self.schema))
    }
}

/// `name` as a quoted identifier.
pub(super) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `text` as a quoted literal.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
