//! Runs the narrow repair, picks what to build on, mints the edition id (*catalog* §6.7, D10, D11).

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog_rules::contracts::publish::{Cause, OpenInput, OpenOutput, Repair};
use catalog_rules::ids::{BadId, EditionId, ProductId};
use catalog_rules::inventory::{
    Mode, Refusal, Repair as Decision, SchemaVersion, Sealed, expected_previous, repair_plan,
};
use catalog_rules::layout;
use engine_rules::activity::ActivityContext;
use engine_rules::failure::{ActivityError, Disposition};

use super::PublishDeps;
use super::check::{CheckError, findings_text};
use super::record::{RecordError, Subject, clear_journal, commit};
use crate::edition::{self, CheckOptions, EditionError, Profile};
use crate::inventory::{FullInventory, InventoryError, fetch_from};
use crate::metadata_store::SCHEMA_VERSION;
use crate::store::StoreError;

/// Why a publish cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The Inventory could not be read.
    #[error(transparent)]
    Inventory(#[from] Box<InventoryError>),
    /// A seal that was interrupted could not be recorded, and trying again may help.
    #[error("the repair of edition {edition}, sealed and not recorded (catalog §6.7): {source}")]
    Record {
        /// The edition.
        edition: EditionId,
        /// What stood in the way.
        source: Box<RecordError>,
    },
    /// An edition that was sealed and not recorded could not be checked.
    #[error("the repair of edition {edition}, sealed and not recorded (catalog §6.7): {source}")]
    Check {
        /// The edition.
        edition: EditionId,
        /// What stood in the way.
        source: Box<CheckError>,
    },
    /// The product's folder cannot be read.
    #[error(transparent)]
    Edition(#[from] Box<EditionError>),
    /// Editions of the product are live only at store schemas that are newer than this program's.
    #[error(
        "product {product_id} is live at store schema {found} and this program writes {expected}: an edition at an older \
         schema cannot follow (catalog §6.4)"
    )]
    SchemaAhead {
        /// The product.
        product_id: ProductId,
        /// The schema of the live edition.
        found: String,
        /// This program's.
        expected: &'static str,
    },
    /// The clock gave no id of version 7.
    #[error(transparent)]
    Id(#[from] BadId),
    /// The folder of the product cannot be named.
    #[error("the folder of product {product_id}: {source}")]
    Folder {
        /// The product.
        product_id: ProductId,
        /// What the system says.
        source: std::io::Error,
    },
}

impl From<InventoryError> for OpenError {
    fn from(error: InventoryError) -> Self {
        Self::Inventory(Box::new(error))
    }
}

impl ActivityError for OpenError {
    fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.code(),
            Self::Inventory(error) => error.code(),
            Self::Record { source, .. } => source.code(),
            Self::Check { source, .. } => source.code(),
            Self::Edition(error) => error.code(),
            Self::SchemaAhead { .. } => "catalog.schema_ahead",
            Self::Id(_) => "publish.id",
            Self::Folder { .. } => "publish.folder",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Store(error) => error.disposition(),
            Self::Inventory(error) => error.disposition(),
            Self::Record { source, .. } => source.disposition(),
            Self::Check { source, .. } => source.disposition(),
            Self::Edition(error) => error.disposition(),
            Self::SchemaAhead { .. } | Self::Id(_) => Disposition::Terminal,
            Self::Folder { .. } => Disposition::Retry,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Store(error) => error.hint(),
            Self::Inventory(error) => error.hint(),
            Self::Record { source, .. } => source.hint(),
            Self::Check { source, .. } => source.hint(),
            Self::Edition(error) => error.hint(),
            Self::SchemaAhead { .. } => Some("publish with the newer jobctl that wrote the live edition".to_owned()),
            Self::Id(_) | Self::Folder { .. } => None,
        }
    }
}

/// Opens the publish of a product.
///
/// After it returns, `CURRENT` names the newest version, every seal of the product that an earlier run did not come to
/// record is recorded or known to be refused, and the new edition has an id and an edition to extend. The id is minted
/// anew each time this runs; nothing is created under it yet.
///
/// # Errors
/// [`OpenError`]. A repair that a rule refuses for good is no error: it is told in the output.
pub fn open(deps: &PublishDeps, ctx: &ActivityContext, input: OpenInput) -> Result<OpenOutput, OpenError> {
    deps.writer()?.advance_current()?;
    let repaired = repair(deps, ctx, &input.product_id, &input.cause)?;
    let inventory = FullInventory::open(fetch_from(Arc::clone(&deps.store)))?;
    let leaf = inventory.leaf(&input.product_id)?;
    let previous = expected_previous(leaf.as_deref(), &SchemaVersion::new(SCHEMA_VERSION)).map_err(|live| {
        OpenError::SchemaAhead {
            product_id: input.product_id.clone(),
            found: live.schema_version.as_str().to_owned(),
            expected: SCHEMA_VERSION,
        }
    })?;
    let edition_id = EditionId::from_uuid(deps.clock.new_id())?;
    let now = deps.store.now()?;
    // The rule that would refuse it once it is sealed (catalog §6.4), while nothing is built yet.
    if let (false, Some(release_at)) = (inventory.head().root.embargo, input.release_at.filter(|at| *at > now)) {
        let (product, edition) = (input.product_id, edition_id);
        let refusal = Refusal::ReleaseAtWithoutEmbargo { product, edition, release_at };
        return Err(InventoryError::from(Box::new(refusal)).into());
    }
    Ok(OpenOutput { edition_id, previous: previous.map(|entry| entry.edition_id.clone()), repaired })
}

/// The narrow repair: only what this machine's seal journal lists is looked at, and each entry is checked in full and
/// against every rule before it is recorded, embargo honoured.
fn repair(
    deps: &PublishDeps,
    ctx: &ActivityContext,
    product_id: &ProductId,
    cause: &Cause,
) -> Result<Vec<Repair>, OpenError> {
    let journal = journal(deps, product_id)?;
    if journal.is_empty() {
        return Ok(Vec::new());
    }
    let inventory = FullInventory::open(fetch_from(Arc::clone(&deps.store)))?;
    let head = inventory.marks(product_id)?;
    let mut named = BTreeMap::new();
    for sealed in journal.iter().filter(|sealed| !head.contains_key(&sealed.edition_id)) {
        if let Some(seq) = inventory.newest_naming(product_id, &sealed.edition_id)? {
            named.insert(sealed.edition_id.clone(), seq);
        }
    }
    let mut repaired = Vec::new();
    for decision in repair_plan(&journal, &head, &named, Mode::Local) {
        let (edition_id, outcome) = match decision {
            Decision::Unfinished { edition } => {
                if deps.store.list(&layout::edition(product_id, &edition))?.objects.is_empty() {
                    clear_journal(deps, product_id, &edition)?;
                    (edition, "its seal had begun and its folder is gone: the journal entry was removed".to_owned())
                } else {
                    continue;
                }
            }
            Decision::Clear { edition, mark } => {
                clear_journal(deps, product_id, &edition)?;
                (edition, format!("recorded before, {mark}"))
            }
            Decision::Gone { edition, seq } => {
                clear_journal(deps, product_id, &edition)?;
                (edition, format!("version {seq} named it and it was taken out since: not recorded again"))
            }
            Decision::Record { edition } => {
                let outcome = record_sealed(deps, ctx, product_id, &edition, cause)?;
                (edition, outcome)
            }
            Decision::ResumeRun { edition } => (edition, "sealed on a server: resume its run".to_owned()),
        };
        repaired.push(Repair { edition_id, outcome });
    }
    Ok(repaired)
}

/// Checks and records one edition that was sealed and not recorded.
fn record_sealed(
    deps: &PublishDeps,
    ctx: &ActivityContext,
    product_id: &ProductId,
    edition: &EditionId,
    cause: &Cause,
) -> Result<String, OpenError> {
    let folder = deps
        .product(product_id)
        .map_err(|source| OpenError::Folder { product_id: product_id.clone(), source })?
        .edition(edition);
    let options = CheckOptions { fingerprints: true, ..CheckOptions::at(Profile::Publish) };
    let report = edition::check(&deps.tools(ctx), folder.path(), &options).map_err(Box::new)?;
    if !report.findings.is_empty() {
        clear_journal(deps, product_id, edition)?;
        return Ok(format!("not recorded, its check has findings: {}", findings_text(&report.findings)));
    }
    let subject = Subject { product_id, edition_id: edition, manifest_sha256: None, lifecycle: None, release_at: None };
    match commit(deps, ctx, &subject, cause, Some(edition)) {
        Ok(committed) => {
            clear_journal(deps, product_id, edition)?;
            let state = committed.state.map_or_else(|| "unknown".to_owned(), |mark| mark.to_string());
            Ok(format!("checked and recorded, {state} in version {}", committed.seq))
        }
        Err(error) if error.disposition() == Disposition::Terminal => {
            clear_journal(deps, product_id, edition)?;
            Ok(format!("not recorded, and never again by a repair: {error}"))
        }
        Err(error) => Err(OpenError::Record { edition: edition.clone(), source: Box::new(error) }),
    }
}

/// The entries of the product's seal journal. A file there that is no entry is left alone.
fn journal(deps: &PublishDeps, product_id: &ProductId) -> Result<Vec<Sealed>, OpenError> {
    let mut entries = Vec::new();
    for name in deps.store.list(&layout::journals(product_id))?.objects {
        let Some(Ok(edition_id)) = name.strip_suffix(".json").map(str::parse::<EditionId>) else { continue };
        let has_manifest = deps.store.get(&layout::manifest(product_id, &edition_id))?.is_some();
        entries.push(Sealed { edition_id, has_manifest });
    }
    Ok(entries)
}
