//! Builds the unsealed edition from its source (*edition* §7, *catalog* §11.1 steps 1 and 2).

use std::borrow::Cow;
use std::sync::{Mutex, OnceLock, PoisonError};

use catalog_rules::contracts::publish::{BuildInput, BuildOutput};
use catalog_rules::ids::{EditionId, ProductId};
use catalog_rules::instant::Instant;
use catalog_rules::inventory::{Mark, SchemaVersion};
use catalog_rules::sdmx::model::{Artefact, DataflowBinding};
use duckdb::arrow::record_batch::RecordBatch;
use engine_rules::activity::ActivityContext;
use engine_rules::failure::{ActivityError, Disposition, Failure};

use super::source::{identity, refusal, spec};
use super::{PublishDeps, recorded_as, restore_hint};
use crate::edition::{
    self, ArtefactSource, BoundTable, BuildOrder, ColumnRole, ColumnType, EditionError, ObservationColumn,
    ObservationSource, SourceError, Stop,
};
use crate::inventory::{FullInventory, InventoryError, fetch_from};
use crate::metadata_store::SCHEMA_VERSION;
use crate::sources::codr::{self, CodrError, CodrSource, ProductStructure, ReadError, SqlType, TableLayout};

/// Why an edition was not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The source is not what it says, or not what the run recorded.
    #[error(transparent)]
    Codr(#[from] CodrError),
    /// The edition could not be built.
    #[error(transparent)]
    Edition(#[from] Box<EditionError>),
    /// The Inventory could not be read.
    #[error(transparent)]
    Inventory(#[from] Box<InventoryError>),
    /// The edition to extend is not live any more (D24).
    #[error(
        "edition {previous} of product {product_id} was live when the run began, and now {} is (catalog §6.4, \
         fast-forward)",
        found.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string)
    )]
    StaleBase {
        /// The product.
        product_id: ProductId,
        /// What the run builds on.
        previous: EditionId,
        /// What is live now.
        found: Option<EditionId>,
    },
    /// An edition that the Inventory names has lost its manifest, so it looks as if it were never sealed.
    #[error(
        "edition {edition} of product {product_id} is {mark} in the Inventory, and its manifest.json is missing (catalog \
         §6.5 item 2)"
    )]
    ManifestLost {
        /// The product.
        product_id: ProductId,
        /// The edition.
        edition: EditionId,
        /// What the Inventory says of it.
        mark: Mark,
    },
    /// The folder of the product cannot be named.
    #[error("the folder of product {product_id}: {source}")]
    Folder {
        /// The product.
        product_id: ProductId,
        /// What the system says.
        source: std::io::Error,
    },
}

impl From<EditionError> for BuildError {
    fn from(error: EditionError) -> Self {
        Self::Edition(Box::new(error))
    }
}

impl From<InventoryError> for BuildError {
    fn from(error: InventoryError) -> Self {
        Self::Inventory(Box::new(error))
    }
}

impl ActivityError for BuildError {
    fn code(&self) -> &'static str {
        match self {
            Self::Codr(error) => error.code(),
            Self::Edition(error) => error.code(),
            Self::Inventory(error) => error.code(),
            Self::StaleBase { .. } => "catalog.stale_base",
            Self::ManifestLost { .. } => "catalog.manifest_lost",
            Self::Folder { .. } => "publish.folder",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Codr(error) => error.disposition(),
            Self::Edition(error) => error.disposition(),
            Self::Inventory(error) => error.disposition(),
            Self::StaleBase { .. } => Disposition::Terminal,
            Self::ManifestLost { .. } => Disposition::Operator,
            Self::Folder { .. } => Disposition::Retry,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Codr(error) => error.hint(),
            Self::Edition(error) => error.hint(),
            Self::Inventory(error) => error.hint(),
            Self::StaleBase { product_id, .. } => {
                Some(format!("publish again, on what is live now: jobctl run publish --product {product_id}"))
            }
            Self::ManifestLost { .. } => Some(restore_hint()),
            Self::Folder { .. } => None,
        }
    }

    fn to_failure(&self) -> Failure {
        match self {
            // A source's refusal comes through the edition whole, with its own code.
            Self::Edition(error) => refusal(error.to_failure()),
            Self::Codr(error) => refusal(error.to_failure()),
            Self::Inventory(error) => error.to_failure(),
            Self::StaleBase { .. } | Self::ManifestLost { .. } | Self::Folder { .. } => Failure {
                code: self.code().to_owned(),
                message: self.to_string(),
                disposition: self.disposition(),
                hint: self.hint(),
            },
        }
    }
}

/// Builds the unsealed edition of the recorded id from the recorded bytes of the source.
///
/// The source is read to its end into a staging database outside the catalog before anything in the catalog changes, so
/// that a source that is refused leaves it byte for byte as it was. What an earlier attempt left of this edition is
/// discarded and built again, so repeats are safe.
///
/// # Errors
/// [`BuildError`]; refusals of the source are `Terminal`.
pub fn build(deps: &PublishDeps, ctx: &ActivityContext, input: BuildInput) -> Result<BuildOutput, BuildError> {
    let BuildInput { product_id, edition_id, previous, source, resolved } = input;
    still_live(deps, &product_id, previous.as_ref())?;
    let product =
        deps.product(&product_id).map_err(|source| BuildError::Folder { product_id: product_id.clone(), source })?;
    let tools = deps.tools(ctx);
    let codr = codr::open(&spec(&product_id, &source), &identity(&resolved))?;
    let rows = CodrRows::new(codr);
    let binding = rows.bound(Instant::from_ms(deps.clock.now_ms()));
    let order = BuildOrder {
        product_dir: product.path(),
        product_id: &product_id,
        edition_id: &edition_id,
        previous: previous.as_ref(),
        artefacts: &rows,
        tables: &[BoundTable { binding: &binding, source: &rows }],
    };
    let built = match edition::build(&tools, &order) {
        Ok(built) => built,
        Err(EditionError::Duplicate { key, first_line, second_line }) => {
            return Err(rows.duplicate(key, first_line, second_line).into());
        }
        Err(EditionError::OtherUnsealed { product, found, wanted }) => {
            return Err(match recorded_as(deps, &product_id, &found)? {
                Some(mark) => BuildError::ManifestLost { product_id, edition: found, mark },
                None => EditionError::OtherUnsealed { product, found, wanted }.into(),
            });
        }
        Err(error) => return Err(error.into()),
    };
    Ok(BuildOutput {
        rows: built.rows,
        new_files: built.new_files,
        new_bytes: built.new_bytes,
        findings: rows.findings(),
    })
}

/// Refuses a base that was live when the run began and is not any more (D24).
pub(super) fn still_live(
    deps: &PublishDeps,
    product_id: &ProductId,
    previous: Option<&EditionId>,
) -> Result<(), BuildError> {
    let Some(previous) = previous else { return Ok(()) };
    let inventory = FullInventory::open(fetch_from(std::sync::Arc::clone(&deps.store)))?;
    let Some(leaf) = inventory.leaf(product_id)? else { return Ok(()) };
    if leaf.live().any(|entry| entry.edition_id == *previous) {
        return Ok(());
    }
    let found = leaf.head(&SchemaVersion::new(SCHEMA_VERSION)).map(|entry| entry.edition_id.clone());
    Err(BuildError::StaleBase { product_id: product_id.clone(), previous: previous.clone(), found })
}

/// The rows of a codr source, read once, and the structures that are known after them.
struct CodrRows {
    table: TableLayout,
    rows_from: String,
    binding: (String, String),
    source: Mutex<Option<CodrSource>>,
    structure: OnceLock<ProductStructure>,
}

impl CodrRows {
    fn new(source: CodrSource) -> Self {
        let table = source.table().clone();
        let (dataflow, data_structure) = source.urns();
        Self {
            rows_from: source.rows_from().0.to_owned(),
            table,
            binding: (dataflow, data_structure),
            source: Mutex::new(Some(source)),
            structure: OnceLock::new(),
        }
    }

    fn bound(&self, at: Instant) -> DataflowBinding {
        let columns = |role: codr::ColumnRole| {
            let of_role = self.table.columns.iter().filter(move |column| column.role == role);
            of_role.map(|column| (column.component.clone(), column.name.clone()))
        };
        let (dataflow, data_structure) = self.binding.clone();
        DataflowBinding {
            dataflow,
            table_location: format!("{}.{}", self.table.schema, self.table.table),
            dimension_columns: columns(codr::ColumnRole::Dimension).chain(columns(codr::ColumnRole::Time)).collect(),
            measure_columns: columns(codr::ColumnRole::Measure).collect(),
            attribute_columns: columns(codr::ColumnRole::Attribute).collect(),
            structural_version: short_urn(&data_structure),
            source_registry: "local".to_owned(),
            materialized_at: at,
            bound_at: at,
        }
    }

    /// A key that comes twice, in the source's own words: its file, period and coordinate.
    fn duplicate(&self, key: Vec<(String, String)>, first_line: i64, second_line: i64) -> CodrError {
        let (time, members): (Vec<_>, Vec<_>) = key.into_iter().partition(|(column, _)| column == codr::TIME_PERIOD);
        let line = |line: i64| u64::try_from(line).unwrap_or_default();
        CodrError::DuplicateObservation {
            file: self.rows_from.clone(),
            time_period: time.into_iter().map(|(_, period)| period).collect(),
            coordinate: members.into_iter().map(|(_, member)| member).collect::<Vec<_>>().join("."),
            first_line: line(first_line),
            second_line: line(second_line),
        }
    }

    fn findings(&self) -> Vec<String> {
        let findings = self.structure.get().map(|structure| structure.findings.as_slice()).unwrap_or_default();
        findings.iter().map(ToString::to_string).collect()
    }
}

/// `STC:DSD_14100287(1.0)` of a URN that ends in it.
fn short_urn(urn: &str) -> String {
    urn.rsplit_once('=').map_or(urn, |(_, short)| short).to_owned()
}

impl ObservationSource for CodrRows {
    fn columns(&self) -> Vec<ObservationColumn> {
        let column = |column: &codr::Column| ObservationColumn {
            name: column.name.clone(),
            role: match column.role {
                codr::ColumnRole::Dimension => ColumnRole::Dimension,
                codr::ColumnRole::Time => ColumnRole::TimePeriod,
                codr::ColumnRole::Measure => ColumnRole::Measure,
                codr::ColumnRole::Attribute => ColumnRole::Attribute,
            },
            column_type: match column.sql_type {
                // The measure's exact type is chosen once every value was seen; until then it is text.
                SqlType::Varchar | SqlType::Decimal { .. } => ColumnType::Text,
                SqlType::SmallInt => ColumnType::SmallInt,
                SqlType::Boolean => ColumnType::Boolean,
            },
        };
        self.table.columns.iter().map(column).collect()
    }

    fn for_each_batch(&self, each: &mut dyn FnMut(RecordBatch) -> Result<(), Stop>) -> Result<(), SourceError> {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Read once: a build asks for the rows of a table once.
        let Some(source) = source else { return Err(SourceError::Stopped) };
        match source.for_each_batch(each) {
            Ok(structure) => {
                let _ = self.structure.set(structure);
                Ok(())
            }
            Err(ReadError::Source(error)) => Err(SourceError::Refused(error.to_failure())),
            Err(ReadError::Receiver(Stop)) => Err(SourceError::Stopped),
        }
    }
}

impl ArtefactSource for CodrRows {
    fn artefacts(&self) -> Result<Cow<'_, [Artefact]>, Failure> {
        Ok(Cow::Borrowed(self.structure.get().map(|structure| structure.artefacts.as_slice()).unwrap_or_default()))
    }
}
