//! The table that a product's rows become.

use std::fmt;
use std::sync::Arc;

use catalog_rules::ids::ProductId;
use duckdb::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

use super::dialect::{Dialect, Layout};

/// The schema in the lake that holds this source's tables.
pub const LAKE_SCHEMA: &str = "codr";
/// The last column of each batch: the physical line of the row in its file, from 1. It is no column of the table; a
/// writer stages it, and names two lines when a key comes twice.
pub const LINE_COLUMN: &str = "_line";
/// The id and column of the time dimension.
pub const TIME_PERIOD: &str = "TIME_PERIOD";
/// The id and column of the measure.
pub const OBS_VALUE: &str = "OBS_VALUE";

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnRole {
    /// A dimension's member.
    Dimension,
    /// The period.
    Time,
    /// The value.
    Measure,
    /// What is said of the value or its series.
    Attribute,
}

/// The type of a column in the lake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SqlType {
    /// `VARCHAR`.
    Varchar,
    /// `SMALLINT`.
    SmallInt,
    /// `BOOLEAN`.
    Boolean,
    /// `DECIMAL(precision, scale)`.
    Decimal {
        /// How many digits in all: 18 or 38.
        precision: u32,
        /// How many of them after the point.
        scale: u32,
    },
}

impl fmt::Display for SqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Varchar => f.write_str("VARCHAR"),
            Self::SmallInt => f.write_str("SMALLINT"),
            Self::Boolean => f.write_str("BOOLEAN"),
            Self::Decimal { precision, scale } => write!(f, "DECIMAL({precision},{scale})"),
        }
    }
}

/// A column of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name in the lake, equal to the component's id.
    pub name: String,
    /// Its type in the lake. For the measure it is known after the rows were read; until then it is `VARCHAR`, as the
    /// batches deliver it.
    pub sql_type: SqlType,
    /// What it holds.
    pub role: ColumnRole,
    /// The id of the component of the data structure that it holds.
    pub component: String,
}

/// The table of a product in the lake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableLayout {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub table: String,
    /// Its columns in order, as in the batches.
    pub columns: Vec<Column>,
    /// The columns that its rows are sorted by: the dimensions and then the period, so that a series stands together.
    pub sort_by: Vec<String>,
    /// The columns that tell a row from every other: the same as `sort_by`.
    pub key: Vec<String>,
}

/// `product_id` as part of an identifier of SDMX and of a table's name: `.` becomes `_`.
pub(super) fn identifier(product_id: &ProductId) -> String {
    product_id.as_str().replace('.', "_")
}

/// The id of the dimension at `position`, from 1. It holds in each language and each release, which a name does not.
pub(super) fn dimension_id(position: usize) -> String {
    if position == 1 { "GEO".to_owned() } else { format!("DIM_{position}") }
}

impl TableLayout {
    pub(super) fn of(product_id: &ProductId, dialect: &Dialect) -> Self {
        let column =
            |name: &str, sql_type, role| Column { name: name.to_owned(), sql_type, role, component: name.to_owned() };
        let mut columns: Vec<Column> = (1..=dialect.dimensions())
            .map(|position| column(&dimension_id(position), SqlType::Varchar, ColumnRole::Dimension))
            .collect();
        columns.push(column(TIME_PERIOD, SqlType::Varchar, ColumnRole::Time));
        let key: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        columns.push(column(OBS_VALUE, SqlType::Varchar, ColumnRole::Measure));
        let attribute = |name, sql_type| column(name, sql_type, ColumnRole::Attribute);
        columns.push(attribute("OBS_STATUS", SqlType::Varchar));
        columns.push(attribute("SYMBOL", SqlType::Varchar));
        columns.push(attribute("DGUID", SqlType::Varchar));
        // A census table has none of these.
        if dialect.layout == Layout::Ordinary {
            columns.push(attribute("UNIT_MEASURE", SqlType::Varchar));
            columns.push(attribute("UNIT_MULT", SqlType::Varchar));
            columns.push(attribute("DECIMALS", SqlType::SmallInt));
            columns.push(attribute("VECTOR", SqlType::Varchar));
            columns.push(attribute("TERMINATED", SqlType::Boolean));
        }
        Self {
            schema: LAKE_SCHEMA.to_owned(),
            table: format!("t{}", identifier(product_id).replace('-', "_").to_lowercase()),
            columns,
            sort_by: key.clone(),
            key,
        }
    }

    /// The schema of the batches: the columns and [`LINE_COLUMN`].
    pub(super) fn batch_schema(&self) -> SchemaRef {
        let mut fields: Vec<Field> = self
            .columns
            .iter()
            .map(|column| {
                let data_type = match column.sql_type {
                    SqlType::Varchar | SqlType::Decimal { .. } => DataType::Utf8,
                    SqlType::SmallInt => DataType::Int16,
                    SqlType::Boolean => DataType::Boolean,
                };
                Field::new(&column.name, data_type, true)
            })
            .collect();
        fields.push(Field::new(LINE_COLUMN, DataType::Int64, false));
        Arc::new(Schema::new(fields))
    }
}
