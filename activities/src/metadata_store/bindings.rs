//! Bindings and their availability (*edition* §4).

use std::collections::BTreeSet;

use catalog_rules::sdmx::model::{DataflowBinding, UrnText};
use catalog_rules::sdmx::urn::{BadUrn, Urn, binding_urn, version_sort};

use super::MetadataStore;
use super::cursor::scan;
use super::error::MetadataError;
use super::rows::{Cell, Rows, literal};
use super::schema;

/// The class of a binding in `artefact`.
pub(super) const CLASS: &str = "DataflowBinding";

/// The database in which a bound table is, whatever it is attached as.
const LAKE: &str = "lake";

/// What a binding's table holds: the answer to the availability query without a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Availability {
    /// The bound dataflow, by URN.
    pub dataflow: UrnText,
    /// How many observation rows the table holds.
    pub observations: u64,
    /// The values of each dimension, in the order of the dimensions.
    pub dimensions: Vec<DimensionValues>,
}

/// The values of one dimension that observations have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DimensionValues {
    /// The dimension's id.
    pub dimension: String,
    /// Its values, in the order in which they are to be read back.
    pub values: Vec<String>,
}

impl MetadataStore<'_> {
    /// Writes `binding` in place of the stored one of its dataflow. Safe to repeat.
    ///
    /// # Errors
    /// [`MetadataError::Value`] when the binding's dataflow is no URN with a version, [`MetadataError::DuckDb`]
    /// otherwise.
    pub fn write_binding(&self, binding: &DataflowBinding) -> Result<(), MetadataError> {
        let urn = binding_urn(&binding.dataflow);
        let dataflow: Result<Urn, BadUrn> = binding.dataflow.parse();
        let Some((dataflow, version)) = dataflow.ok().and_then(|urn| Some((urn.clone(), urn.version?))) else {
            return Err(MetadataError::Value {
                table: "dataflow_binding",
                column: "dataflow_urn",
                found: binding.dataflow.clone(),
                expected: "the URN of a dataflow at its version",
            });
        };
        self.transaction(|| {
            self.delete([&urn].into_iter())?;
            let mut writer = super::Writer::new(self.target);
            writer.put(
                &schema::ARTEFACT,
                &[
                    Cell::Text(&urn),
                    Cell::Text(CLASS),
                    Cell::Text(&dataflow.agency),
                    Cell::Text(&dataflow.id),
                    Cell::Text(&version),
                    Cell::Text(&version_sort(&version)),
                    Cell::Bool(false),
                    Cell::Null,
                    Cell::Bool(false),
                    Cell::Null,
                    Cell::Null,
                    Cell::Bool(false),
                    Cell::Bool(false),
                    Cell::Null,
                    Cell::Null,
                    Cell::Null,
                    Cell::Null,
                    Cell::Null,
                ],
            )?;
            let reference = [Cell::Text(&urn), Cell::Text(&binding.dataflow), Cell::Text("dataflow"), Cell::Null];
            writer.put(&schema::ARTEFACT_REF, &reference)?;
            writer.put(
                &schema::DATAFLOW_BINDING,
                &[
                    Cell::Text(&urn),
                    Cell::Text(&binding.dataflow),
                    Cell::Text(&binding.table_location),
                    Cell::Text(LAKE),
                    Cell::Languages(&binding.dimension_columns),
                    Cell::Languages(&binding.measure_columns),
                    Cell::Languages(&binding.attribute_columns),
                    Cell::Text(&binding.structural_version),
                    Cell::Text(&binding.source_registry),
                    Cell::Time(binding.materialized_at),
                    Cell::Time(binding.bound_at),
                    Cell::Null,
                ],
            )?;
            writer.finish()
        })
    }

    /// Every stored binding, by dataflow.
    ///
    /// # Errors
    /// [`MetadataError::Value`] for a binding to another database than the lake, [`MetadataError::DuckDb`] otherwise.
    pub fn read_bindings(&self) -> Result<Vec<DataflowBinding>, MetadataError> {
        let mut bindings = Vec::new();
        scan(&self.target, &schema::DATAFLOW_BINDING, |row| {
            row.skip(1);
            let (dataflow, table_location) = (row.text()?, row.text()?);
            let role = row.text()?;
            if role != LAKE {
                return Err(row.bad(role, "lake"));
            }
            bindings.push(DataflowBinding {
                dataflow,
                table_location,
                dimension_columns: row.languages()?,
                measure_columns: row.languages()?,
                attribute_columns: row.languages()?,
                structural_version: row.text()?,
                source_registry: row.text()?,
                materialized_at: row.time()?,
                bound_at: row.time()?,
            });
            Ok(())
        })?;
        Ok(bindings)
    }

    /// Deletes the binding and the availability of every dataflow that is not in `keep`.
    pub(super) fn retain_bindings(&self, keep: &BTreeSet<UrnText>) -> Result<(), MetadataError> {
        let bound = self.read_bindings()?;
        let gone = bound.iter().filter(|binding| !keep.contains(&binding.dataflow));
        let gone: Vec<UrnText> = gone.map(|binding| binding_urn(&binding.dataflow)).collect();
        self.delete(gone.iter())?;
        let kept = keep.iter().map(|urn| literal(urn)).collect::<Vec<_>>().join(", ");
        let unkept = if kept.is_empty() { "true".to_owned() } else { format!("dataflow_urn NOT IN ({kept})") };
        self.delete_availability(&unkept)
    }

    fn delete_availability(&self, condition: &str) -> Result<(), MetadataError> {
        let schema = self.target.qualified();
        let delete = |table: &str| format!("DELETE FROM {schema}.\"{table}\" WHERE {condition};");
        let sql = [delete(schema::AVAILABILITY.name), delete(schema::AVAILABILITY_VALUE.name)].concat();
        self.batch("delete availability", &sql)
    }

    /// Writes `availability` in place of all that is stored: an edition holds its own bindings' availability and no
    /// other (*edition* §7). An empty slice leaves none. Safe to repeat.
    ///
    /// # Errors
    /// [`MetadataError::DuckDb`], also when a dataflow stands twice.
    pub fn write_availability(&self, availability: &[Availability]) -> Result<(), MetadataError> {
        self.transaction(|| {
            self.delete_availability("true")?;
            let (mut rows, mut values) = (Rows::new(&schema::AVAILABILITY), Rows::new(&schema::AVAILABILITY_VALUE));
            for one in availability {
                let observations = i64::try_from(one.observations).unwrap_or(i64::MAX);
                rows.push(&self.target, &[Cell::Text(&one.dataflow), Cell::Big(observations)])?;
                for (at, dimension) in (0..).zip(&one.dimensions) {
                    for (place, value) in (0..).zip(&dimension.values) {
                        values.push(
                            &self.target,
                            &[
                                Cell::Text(&one.dataflow),
                                Cell::Int(at),
                                Cell::Text(&dimension.dimension),
                                Cell::Int(place),
                                Cell::Text(value),
                            ],
                        )?;
                    }
                }
            }
            rows.flush(&self.target)?;
            values.flush(&self.target)
        })
    }

    /// The stored availability, by dataflow. A dimension without values is not in it.
    ///
    /// # Errors
    /// [`MetadataError`] when it cannot be read.
    pub fn read_availability(&self) -> Result<Vec<Availability>, MetadataError> {
        let mut all: Vec<Availability> = Vec::new();
        scan(&self.target, &schema::AVAILABILITY, |row| {
            let (dataflow, observations) = (row.text()?, row.big()?);
            let observations = u64::try_from(observations).map_err(|_| row.bad(observations, "0 or more"))?;
            all.push(Availability { dataflow, observations, dimensions: Vec::new() });
            Ok(())
        })?;
        scan(&self.target, &schema::AVAILABILITY_VALUE, |row| {
            let dataflow = row.text()?;
            row.skip(1);
            let dimension = row.text()?;
            row.skip(1);
            let value = row.text()?;
            let Some(one) = all.iter_mut().find(|one| one.dataflow == dataflow) else {
                return Err(MetadataError::Orphan { table: "availability_value", owner: dataflow });
            };
            match one.dimensions.last_mut().filter(|last| last.dimension == dimension) {
                Some(last) => last.values.push(value),
                None => one.dimensions.push(DimensionValues { dimension, values: vec![value] }),
            }
            Ok(())
        })?;
        Ok(all)
    }
}
