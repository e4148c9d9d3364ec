//! Records a sealed and checked edition in the Inventory (*catalog* §6.6, §11.1 step 6).

use std::sync::Arc;

use catalog_rules::contracts::publish::{Cause, RecordInput, RecordOutput};
use catalog_rules::ids::{EditionId, ProductId, Sha256Hex};
use catalog_rules::instant::Instant;
use catalog_rules::inventory::{Lifecycle, Mark, Operation, Record, Refusal, Seq};
use catalog_rules::layout;
use catalog_rules::manifest::{Manifest, ManifestError};
use engine_rules::activity::ActivityContext;
use engine_rules::crash;
use engine_rules::failure::{ActivityError, Disposition};

use super::{PublishDeps, by};
use crate::inventory::{Committed, FullInventory, InventoryError, fetch_from};
use crate::store::StoreError;

/// Why an edition was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The Inventory refused, or could not be read or written.
    #[error(transparent)]
    Inventory(#[from] Box<InventoryError>),
    /// The edition has no manifest any more.
    #[error(
        "edition {edition} of product {product_id} has no manifest.json, and only a sealed edition is recorded (catalog §6.7)"
    )]
    ManifestMissing {
        /// The product.
        product_id: ProductId,
        /// The edition.
        edition: EditionId,
    },
    /// The edition has another manifest than was sealed.
    #[error(
        "edition {edition} of product {product_id}: its manifest.json has SHA-256 {found}, expected {expected}, the one \
         that was sealed and checked (catalog §6.5 item 2)"
    )]
    ManifestDiffers {
        /// The product.
        product_id: ProductId,
        /// The edition.
        edition: EditionId,
        /// What is there.
        found: Sha256Hex,
        /// What was sealed.
        expected: Sha256Hex,
    },
    /// The manifest cannot be read.
    #[error("edition {edition}: {source}")]
    Manifest {
        /// The edition.
        edition: EditionId,
        /// What is wrong with it.
        source: ManifestError,
    },
    /// The manifest cannot become an entry.
    #[error("edition {edition}: {source}")]
    Entry {
        /// The edition.
        edition: EditionId,
        /// The rule.
        source: Box<Refusal>,
    },
}

impl From<InventoryError> for RecordError {
    fn from(error: InventoryError) -> Self {
        Self::Inventory(Box::new(error))
    }
}

impl ActivityError for RecordError {
    fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.code(),
            Self::Inventory(error) => error.code(),
            Self::ManifestMissing { .. } => "catalog.manifest_missing",
            Self::ManifestDiffers { .. } => "catalog.manifest_differs",
            Self::Manifest { .. } => "catalog.manifest_unreadable",
            Self::Entry { source, .. } => source.code(),
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Store(error) => error.disposition(),
            Self::Inventory(error) => error.disposition(),
            Self::ManifestMissing { .. }
            | Self::ManifestDiffers { .. }
            | Self::Manifest { .. }
            | Self::Entry { .. } => Disposition::Terminal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Store(error) => error.hint(),
            Self::Inventory(error) => error.hint(),
            Self::ManifestMissing { .. } | Self::ManifestDiffers { .. } | Self::Manifest { .. } => {
                Some("somebody changed the sealed edition: find out who, then publish again".to_owned())
            }
            Self::Entry { source, .. } => Some(source.fix()),
        }
    }
}

/// Records the edition: live with embargo off, embargoed with embargo on (D21).
///
/// After it returns, the edition is in the newest version, `CURRENT` names that version or a later one, and the seal
/// journal holds no entry for it. An edition that the Inventory knows already, in any state or as a tombstone, is not
/// written again and its state is reported. Repeats are safe.
///
/// # Errors
/// [`RecordError`]; a refusal by a rule is `Terminal` and leaves the Inventory as it was.
pub fn record(deps: &PublishDeps, ctx: &ActivityContext, input: RecordInput) -> Result<RecordOutput, RecordError> {
    let subject = Subject {
        product_id: &input.product_id,
        edition_id: &input.edition_id,
        manifest_sha256: Some(&input.manifest_sha256),
        lifecycle: input.lifecycle,
        release_at: input.release_at,
    };
    let committed = commit(deps, ctx, &subject, &input.cause, None)?;
    let superseded = superseded_by(deps, &input.product_id, committed.seq)?;
    clear_journal(deps, &input.product_id, &input.edition_id)?;
    Ok(RecordOutput {
        seq: committed.seq.get(),
        state: committed.state.map_or_else(|| "unknown".to_owned(), |mark| mark.to_string()),
        superseded,
        already: committed.already,
    })
}

/// What is to be recorded.
pub(super) struct Subject<'a> {
    pub product_id: &'a ProductId,
    pub edition_id: &'a EditionId,
    /// The manifest that was sealed; `None` takes the one that is there.
    pub manifest_sha256: Option<&'a Sha256Hex>,
    pub lifecycle: Option<Lifecycle>,
    /// `None` is never due.
    pub release_at: Option<Instant>,
}

/// Writes the version that records `subject`, or recognises that it is recorded.
pub(super) fn commit(
    deps: &PublishDeps,
    ctx: &ActivityContext,
    subject: &Subject<'_>,
    cause: &Cause,
    part: Option<&EditionId>,
) -> Result<Committed, RecordError> {
    let edition = || subject.edition_id.clone();
    let product_id = || subject.product_id.clone();
    let bytes = deps
        .store
        .get(&layout::manifest(subject.product_id, subject.edition_id))?
        .ok_or_else(|| RecordError::ManifestMissing { product_id: product_id(), edition: edition() })?;
    let found = Sha256Hex::of(&bytes);
    if let Some(expected) = subject.manifest_sha256.filter(|expected| **expected != found) {
        let expected = expected.clone();
        return Err(RecordError::ManifestDiffers { product_id: product_id(), edition: edition(), found, expected });
    }
    let manifest = Manifest::decode(&bytes).map_err(|source| RecordError::Manifest { edition: edition(), source })?;
    let record = Record::from_manifest(&manifest, found, subject.lifecycle, subject.release_at)
        .map_err(|source| RecordError::Entry { edition: edition(), source })?;
    Ok(deps.writer()?.commit(&Operation::Record(Box::new(record)), &by(ctx, cause, part))?)
}

/// The edition that version `seq` replaced by another of the product.
fn superseded_by(deps: &PublishDeps, product_id: &ProductId, seq: Seq) -> Result<Option<EditionId>, RecordError> {
    let inventory = FullInventory::open(fetch_from(Arc::clone(&deps.store)))?;
    let version = inventory.version(seq)?;
    let changes = version.iter().filter_map(|version| version.root.changes.as_deref()).flatten();
    let entries = changes.filter(|change| change.product_id == *product_id).flat_map(|change| &change.entries);
    let mut superseded = entries.filter(|entry| entry.from == Some(Mark::Live) && entry.to == Some(Mark::Superseded));
    Ok(superseded.next().map(|entry| entry.edition_id.clone()))
}

/// Removes the journal's entry of an edition that is recorded, durably.
pub(super) fn clear_journal(
    deps: &PublishDeps,
    product_id: &ProductId,
    edition_id: &EditionId,
) -> Result<(), StoreError> {
    crash::point("publish.record.before_journal_cleared");
    deps.store.delete(&layout::journal(product_id, edition_id))?;
    crash::point("publish.record.after_journal_cleared");
    Ok(())
}
