//! What the columns of a bound table hold: its availability, and whether coded values are codes (*edition* §4).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use catalog_rules::sdmx::model::{DataflowBinding, UrnText};

use super::error::{EditionError, UNCODED_NAMED, UncodedValue};
use super::lake::{self, LakeTable};
use super::structures::Structures;
use crate::duck::{DuckError, Session, identifier};
use crate::metadata_store::{Availability, DimensionValues};

/// A coded column that holds what is no code of its list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncodedColumn {
    pub column: String,
    pub enumeration: UrnText,
    /// Some of the values, the most frequent first.
    pub values: Vec<UncodedValue>,
    /// How many more there are.
    pub more: u64,
}

/// What a scan of a bound table found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    pub availability: Availability,
    pub uncoded: Vec<UncodedColumn>,
}

/// Scans each dimension and each coded column of a binding's table once.
///
/// # Errors
/// [`EditionError::BoundColumn`] when the table lacks a column that the binding names; else what DuckDB said.
pub fn scan(session: &Session, structures: &Structures, binding: &DataflowBinding) -> Result<Coverage, EditionError> {
    let table = LakeTable::of(binding)?;
    let found = lake::columns(session, &table)?;
    check_columns(found.iter().map(|(name, _)| name.as_str()), binding)?;
    let dimensions = structures.dimension_columns(binding);
    let mut held = held(session, &table.sql(), dimensions.iter().map(|(_, column)| column.as_str()))?;
    let uncoded = uncoded_in(session, &table.sql(), structures, binding, &mut held)?;
    let dimensions = dimensions.iter().map(|(dimension, column)| DimensionValues {
        dimension: dimension.clone(),
        values: held.get(column).into_iter().flatten().map(|held| held.value.clone()).collect(),
    });
    let availability = Availability {
        dataflow: binding.dataflow.clone(),
        observations: lake::count(session, &table)?,
        dimensions: dimensions.collect(),
    };
    Ok(Coverage { availability, uncoded })
}

/// The coded columns of `table`, as SQL names it, that hold what is no code.
pub fn uncoded(
    session: &Session,
    table: &str,
    structures: &Structures,
    binding: &DataflowBinding,
) -> Result<Vec<UncodedColumn>, DuckError> {
    uncoded_in(session, table, structures, binding, &mut Held::new())
}

/// Refuses the first column that holds what is no code.
pub fn refuse_uncoded(binding: &DataflowBinding, uncoded: Vec<UncodedColumn>) -> Result<(), EditionError> {
    match uncoded.into_iter().next() {
        None => Ok(()),
        Some(UncodedColumn { column, enumeration, values, more }) => {
            Err(EditionError::Uncoded { table: binding.table_location.clone(), column, enumeration, values, more })
        }
    }
}

/// The distinct values of columns, each with its row count.
type Held = BTreeMap<String, Vec<UncodedValue>>;

fn held<'a>(session: &Session, table: &str, columns: impl Iterator<Item = &'a str>) -> Result<Held, DuckError> {
    columns.map(|column| Ok((column.to_owned(), values(session, table, column)?))).collect()
}

fn uncoded_in(
    session: &Session,
    table: &str,
    structures: &Structures,
    binding: &DataflowBinding,
    held: &mut Held,
) -> Result<Vec<UncodedColumn>, DuckError> {
    let mut uncoded = Vec::new();
    for (column, enumeration, list) in structures.coded_columns(binding) {
        let held = match held.entry(column.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(values(session, table, &column)?),
        };
        let codes: HashSet<&str> = list.codes.iter().map(|code| code.id.as_str()).collect();
        let mut values: Vec<_> = held.iter().filter(|held| !codes.contains(held.value.as_str())).cloned().collect();
        values.sort_by(|a, b| b.rows.cmp(&a.rows).then_with(|| a.value.cmp(&b.value)));
        let more = values.len().saturating_sub(UNCODED_NAMED) as u64;
        values.truncate(UNCODED_NAMED);
        if !values.is_empty() {
            uncoded.push(UncodedColumn { column, enumeration, values, more });
        }
    }
    Ok(uncoded)
}

/// The distinct values of a column with their row counts, by text. NULL is no value.
fn values(session: &Session, table: &str, column: &str) -> Result<Vec<UncodedValue>, DuckError> {
    let column = identifier(column);
    let sql = format!(
        "SELECT {column}::VARCHAR AS v, count(*) FROM {table} WHERE {column} IS NOT NULL GROUP BY v ORDER BY v"
    );
    session
        .rows("read the values of a column", &sql, [], |row| Ok(UncodedValue { value: row.get(0)?, rows: row.get(1)? }))
}

/// Refuses a binding that names a column which is not among `found`.
pub fn check_columns<'a>(found: impl Iterator<Item = &'a str>, binding: &DataflowBinding) -> Result<(), EditionError> {
    let found: BTreeSet<&str> = found.collect();
    let bound = [&binding.dimension_columns, &binding.measure_columns, &binding.attribute_columns];
    match bound.into_iter().flatten().find(|(_, column)| !found.contains(column.as_str())) {
        None => Ok(()),
        Some((component, column)) => Err(EditionError::BoundColumn {
            dataflow: binding.dataflow.clone(),
            component: component.clone(),
            column: column.clone(),
            table: binding.table_location.clone(),
        }),
    }
}
