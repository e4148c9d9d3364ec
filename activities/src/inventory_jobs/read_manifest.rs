//! Settles which manifest an edition is reinstated with (*catalog* §6.4, reinstate).

use catalog_rules::contracts::inventory::{ReadManifestInput, ReadManifestOutput};
use catalog_rules::ids::Sha256Hex;
use catalog_rules::inventory::Refusal;
use catalog_rules::layout;
use engine_rules::activity::ActivityContext;

use super::InventoryDeps;
use crate::inventory::InventoryError;

/// The SHA-256 of the edition's manifest as it is now: the edition is reinstated with this one or not at all. Changes
/// nothing.
///
/// # Errors
/// [`InventoryError::Refused`] when there is no manifest.
pub fn read_manifest(
    deps: &InventoryDeps,
    _ctx: &ActivityContext,
    input: ReadManifestInput,
) -> Result<ReadManifestOutput, InventoryError> {
    let ReadManifestInput { product_id: product, edition_id: edition } = input;
    match deps.store.get(&layout::manifest(&product, &edition))? {
        Some(bytes) => Ok(ReadManifestOutput { manifest_sha256: Sha256Hex::of(&bytes) }),
        None => Err(Box::new(Refusal::ManifestMissing { product, edition }).into()),
    }
}
