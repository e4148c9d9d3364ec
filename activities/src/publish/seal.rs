//! Seals the edition (*edition* §7, *catalog* §11.1 step 4).

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog_rules::contracts::publish::{SealInput, SealOutput};
use catalog_rules::ids::{BadId, EditionId, ProductId};
use catalog_rules::inventory::Lifecycle;
use catalog_rules::layout;
use catalog_rules::manifest::{Manifest, ManifestError, Producer, Provenance, Root};
use engine_rules::activity::ActivityContext;
use engine_rules::failure::{ActivityError, Disposition};
use serde_json::{Map, Value};

use super::{PublishDeps, restore_hint};
use crate::edition::{self, EditionError, SealOrder, TierRule};
use crate::fs::Trouble;
use crate::inventory::{FullInventory, InventoryError, fetch_from};
use crate::store::StoreError;

/// Why an edition was not sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The seal refused, or the disk or DuckDB failed.
    #[error(transparent)]
    Edition(#[from] Box<EditionError>),
    /// The Inventory could not be read.
    #[error(transparent)]
    Inventory(#[from] Box<InventoryError>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The edition that is folded has no manifest any more.
    #[error(
        "edition {edition} of product {product_id} has no manifest.json, and what is folded keeps what it says (edition \
         §5.6)"
    )]
    FoldedMissing {
        /// The product.
        product_id: ProductId,
        /// The edition.
        edition: EditionId,
    },
    /// The manifest of the edition that is folded cannot be read.
    #[error("edition {edition}: {source}")]
    Folded {
        /// The edition.
        edition: EditionId,
        /// What is wrong with it.
        source: ManifestError,
    },
    /// A digest of the manifest has no form of a digest.
    #[error(transparent)]
    Digest(#[from] BadId),
    /// The folder of the product cannot be named.
    #[error("the folder of product {product_id}: {source}")]
    Folder {
        /// The product.
        product_id: ProductId,
        /// What the system says.
        source: std::io::Error,
    },
}

impl ActivityError for SealError {
    fn code(&self) -> &'static str {
        match self {
            Self::Edition(error) => error.code(),
            Self::Inventory(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::FoldedMissing { .. } => "catalog.manifest_lost",
            Self::Folded { .. } => "catalog.manifest_unreadable",
            Self::Digest(_) => "publish.digest",
            Self::Folder { .. } => "publish.folder",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Edition(error) => error.disposition(),
            Self::Inventory(error) => error.disposition(),
            Self::Store(error) => error.disposition(),
            Self::FoldedMissing { .. } | Self::Folded { .. } => Disposition::Operator,
            Self::Digest(_) => Disposition::Terminal,
            Self::Folder { source, .. } => Trouble::of(source).disposition(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Edition(error) => error.hint(),
            Self::Inventory(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::FoldedMissing { .. } | Self::Folded { .. } => Some(restore_hint()),
            Self::Folder { source, .. } => Trouble::of(source).hint().map(ToOwned::to_owned),
            Self::Digest(_) => None,
        }
    }
}

/// Seals the edition that the build left: journal entry first, manifest last.
///
/// After it returns, the edition is durable and never changes. A manifest of this id that is there is verified and
/// taken, a journal entry without one is sealed again, so repeats are safe.
///
/// # Errors
/// [`SealError`].
pub fn seal(deps: &PublishDeps, ctx: &ActivityContext, input: SealInput) -> Result<SealOutput, SealError> {
    let product = deps
        .product(&input.product_id)
        .map_err(|source| SealError::Folder { product_id: input.product_id.clone(), source })?;
    // What names the product's folder: whoever made it may have died before its name was durable.
    for folder in product.path().ancestors().skip(1).take_while(|folder| folder.starts_with(&deps.catalog)) {
        deps.fs
            .fsync_dir(folder)
            .map_err(|source| SealError::Folder { product_id: input.product_id.clone(), source })?;
    }
    let kept = match &input.previous {
        Some(folded) if input.is_fold => kept(deps, &input.product_id, folded)?,
        Some(_) | None => Kept::default(),
    };
    let order = SealOrder {
        product_dir: product.path(),
        product_id: &input.product_id,
        edition_id: &input.edition_id,
        previous: input.previous.as_ref(),
        producer: kept.producer,
        is_final: is_final(deps, &input.product_id, input.lifecycle)?,
        tiers: &kept.tiers,
        producer_fields: kept.producer_fields,
        extensions: kept.extensions,
        provenance: kept.provenance,
    };
    let sealed = edition::seal(&deps.tools(ctx), &order).map_err(Box::new)?;
    if !sealed.was_sealed {
        deps.note_sealed(&input.edition_id);
    }
    for phase in &sealed.phases {
        tracing::debug!(phase = phase.name, took_us = phase.took_us, "sealed");
    }
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let manifest = &sealed.manifest;
    Ok(SealOutput {
        manifest_sha256: sealed.manifest_sha256.clone(),
        content_fingerprint: manifest.content_fingerprint.clone(),
        table_fingerprints: manifest.bindings.iter().map(|binding| binding.fingerprint.to_string()).collect(),
        files: count(manifest.files.len()),
        hashed: count(sealed.hashed_files()),
        carried: count(sealed.carried_files()),
        rows: manifest.bindings.iter().map(|binding| binding.observations).sum(),
    })
}

/// What a folded edition's manifest hands on.
#[derive(Default)]
struct Kept {
    producer: Option<Producer>,
    producer_fields: Map<String, Value>,
    extensions: BTreeMap<String, Map<String, Value>>,
    provenance: Option<Provenance>,
    /// One rule a file of the edition's folder: its whole path.
    tiers: Vec<TierRule>,
}

fn kept(deps: &PublishDeps, product_id: &ProductId, folded: &EditionId) -> Result<Kept, SealError> {
    let bytes = deps
        .store
        .get(&layout::manifest(product_id, folded))?
        .ok_or_else(|| SealError::FoldedMissing { product_id: product_id.clone(), edition: folded.clone() })?;
    let manifest = Manifest::decode(&bytes).map_err(|source| SealError::Folded { edition: folded.clone(), source })?;
    let tiers = manifest.files_of(Root::Edition).map(|file| TierRule { prefix: file.path.clone(), tier: file.tier });
    Ok(Kept {
        tiers: tiers.collect(),
        producer: Some(manifest.producer),
        producer_fields: manifest.producer_fields,
        extensions: manifest.extensions,
        provenance: manifest.provenance,
    })
}

/// Whether the product is final: as asked, else as the Inventory has it.
fn is_final(deps: &PublishDeps, product_id: &ProductId, asked: Option<Lifecycle>) -> Result<bool, SealError> {
    let lifecycle = match asked {
        Some(lifecycle) => lifecycle,
        None => FullInventory::open(fetch_from(Arc::clone(&deps.store)))
            .and_then(|inventory| inventory.leaf(product_id))
            .map_err(Box::new)?
            .map_or(Lifecycle::Revisable, |leaf| leaf.lifecycle),
    };
    Ok(lifecycle == Lifecycle::Final)
}
