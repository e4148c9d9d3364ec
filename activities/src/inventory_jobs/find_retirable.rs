//! Settles which editions are old enough to be retired (*catalog* §6.4 retention, D30).

use std::collections::{BTreeMap, BTreeSet};

use catalog_rules::contracts::inventory::{FindRetirableInput, FindRetirableOutput, RETIRED_AT_ONCE};
use catalog_rules::ids::{EditionId, ProductId};
use catalog_rules::inventory::{Base, Facts, artefact_records, retirable};
use catalog_rules::layout;
use catalog_rules::manifest::Manifest;
use engine_rules::activity::ActivityContext;

use super::{InventoryDeps, known_leaf};
use crate::inventory::InventoryError;

/// The superseded and withdrawn editions whose window is over, that nothing cites, and that are not the last superseded
/// edition of their product and schema version: that one stays, to be rolled back to. Changes nothing.
///
/// # Errors
/// [`InventoryError::Refused`] when a product is unknown, or the manifest of an entry of an older writer is missing.
pub fn find_retirable(
    deps: &InventoryDeps,
    _ctx: &ActivityContext,
    input: FindRetirableInput,
) -> Result<FindRetirableOutput, InventoryError> {
    let inventory = deps.inventory()?;
    for product in &input.products {
        known_leaf(&inventory, product)?;
    }
    let leaves = inventory.leaves()?;
    let head = inventory.head();
    let base = Base::whole(&head.root, &head.root_sha256, &leaves);
    let mut facts = Facts { retention: deps.retention.clone(), ..Facts::default() };
    // Entries of older writers have no records: their manifests have.
    for leaf in leaves.values() {
        for entry in leaf.editions.iter().filter(|entry| entry.artefacts.is_none()) {
            let path = layout::manifest(&leaf.product_id, &entry.edition_id);
            let manifest = deps.store.get(&path)?.and_then(|bytes| Manifest::decode(&bytes).ok());
            if let Some(manifest) = manifest {
                facts.records.insert(entry.edition_id.clone(), artefact_records(&manifest)?);
            }
        }
    }
    let found = retirable(&base, &facts, &deps.retention, deps.store.now()?)?;
    let wanted = found.into_iter().filter(|(product, _)| input.products.is_empty() || input.products.contains(product));
    let wanted: Vec<_> = wanted.collect();
    let left = wanted.len().saturating_sub(RETIRED_AT_ONCE);
    let mut editions: BTreeMap<ProductId, BTreeSet<EditionId>> = BTreeMap::new();
    for (product, edition) in wanted.into_iter().take(RETIRED_AT_ONCE) {
        editions.entry(product).or_default().insert(edition);
    }
    Ok(FindRetirableOutput { editions, left: u64::try_from(left).unwrap_or(u64::MAX) })
}
