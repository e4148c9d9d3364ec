//! What the narrow repair finds to do (*catalog* §6.7, D11), and the operation that records a sealed edition.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog_rules::ids::{EditionId, ProductId, Sha256Hex};
use catalog_rules::instant::Instant;
use catalog_rules::inventory::{Lifecycle, Mode, Operation, Record, Refusal, Repair, Sealed, repair_plan};
use catalog_rules::layout;
use catalog_rules::manifest::Manifest;
use catalog_rules::seal_journal::JournalEntry;

use super::error::InventoryError;
use super::reader::{FullInventory, fetch_from};
use crate::store::Store;

/// What is to be done about the entries of the seal journal of `product`, oldest edition first; empty without any.
/// Reads only. The caller carries it out under the product's key: a [`Repair::Record`] runs `check(at=publish)` first
/// and records with `release_at` `None`, and a refusal for good by either removes the journal's entry (D11).
///
/// # Errors
/// [`InventoryError::Journal`] when an entry cannot be read; [`InventoryError`] when the Inventory cannot.
pub fn repairs(store: &Arc<dyn Store>, product: &ProductId, mode: Mode) -> Result<Vec<Repair>, InventoryError> {
    let mut journal = Vec::new();
    for name in store.list(&layout::journals(product))?.objects {
        let Some(edition_id) = name.strip_suffix(".json").and_then(|id| id.parse::<EditionId>().ok()) else { continue };
        let path = layout::journal(product, &edition_id);
        let Some(bytes) = store.get(&path)? else { continue };
        JournalEntry::decode(&edition_id, &bytes).map_err(|source| InventoryError::Journal { path, source })?;
        let has_manifest = store.get(&layout::manifest(product, &edition_id))?.is_some();
        journal.push(Sealed { edition_id, has_manifest });
    }
    if journal.is_empty() {
        return Ok(Vec::new());
    }
    let inventory = FullInventory::open(fetch_from(Arc::clone(store)))?;
    let head = inventory.marks(product)?;
    let mut named = BTreeMap::new();
    for sealed in journal.iter().filter(|sealed| !head.contains_key(&sealed.edition_id)) {
        if let Some(seq) = inventory.newest_naming(product, &sealed.edition_id)? {
            named.insert(sealed.edition_id.clone(), seq);
        }
    }
    Ok(repair_plan(&journal, &head, &named, mode))
}

/// The operation that records `edition` of `product`, made from its manifest in the store, which must have this
/// SHA-256. `lifecycle` `None` leaves the product's as it is; `release_at` `None` is never due by itself.
///
/// # Errors
/// [`InventoryError::Refused`] when the manifest is missing, is another one, or holds a partial without its base;
/// [`InventoryError::Manifest`] when it cannot be read.
pub fn record_operation(
    store: &dyn Store,
    product: &ProductId,
    edition: &EditionId,
    manifest_sha256: &Sha256Hex,
    lifecycle: Option<Lifecycle>,
    release_at: Option<Instant>,
) -> Result<Operation, InventoryError> {
    let (product, edition) = (product.clone(), edition.clone());
    let path = layout::manifest(&product, &edition);
    let Some(bytes) = store.get(&path)? else {
        return Err(Box::new(Refusal::ManifestMissing { product, edition }).into());
    };
    let found = Sha256Hex::of(&bytes);
    if found != *manifest_sha256 {
        let expected = manifest_sha256.clone();
        return Err(Box::new(Refusal::ManifestDiffers { product, edition, found, expected }).into());
    }
    let manifest =
        Manifest::decode(&bytes).map_err(|source| InventoryError::Manifest { path: path.clone(), source })?;
    if (&manifest.product_id, &manifest.edition_id) != (&product, &edition) {
        return Err(InventoryError::Misplaced { path, product: manifest.product_id, edition: manifest.edition_id });
    }
    Ok(Operation::Record(Box::new(Record::from_manifest(&manifest, found, lifecycle, release_at)?)))
}
