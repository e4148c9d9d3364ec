//! Settles which live editions are taken back (D22).

use catalog_rules::contracts::inventory::{LiveEditionsInput, LiveEditionsOutput};
use catalog_rules::inventory::{Refusal, TransitionRefusal};
use engine_rules::activity::ActivityContext;

use super::{InventoryDeps, check_if_live, known_leaf};
use crate::inventory::InventoryError;

/// The editions of the product that are live now, one a schema version. What is recorded here is what is taken back,
/// however often that is tried. Changes nothing.
///
/// # Errors
/// [`InventoryError::Refused`] when the product is unknown, nothing of it is live, or something else is live than was
/// expected.
pub fn live_editions(
    deps: &InventoryDeps,
    _ctx: &ActivityContext,
    input: LiveEditionsInput,
) -> Result<LiveEditionsOutput, InventoryError> {
    let leaf = known_leaf(&deps.inventory()?, &input.product_id)?;
    check_if_live(&leaf, &input.if_live)?;
    let if_live: std::collections::BTreeSet<_> = leaf.live().map(|entry| entry.edition_id.clone()).collect();
    if if_live.is_empty() {
        return Err(Box::<Refusal>::from(TransitionRefusal::NothingLive { product: input.product_id }).into());
    }
    Ok(LiveEditionsOutput { if_live })
}
