//! Settles what a rollback takes back and what becomes live instead (*catalog* §6.4, D22).

use std::collections::{BTreeMap, BTreeSet};

use catalog_rules::contracts::inventory::{RollbackMovesInput, RollbackMovesOutput};
use catalog_rules::ids::{EditionId, ProductId};
use catalog_rules::inventory::rollback_moves as moves_of;
use engine_rules::activity::ActivityContext;

use super::{InventoryDeps, check_if_live, known_leaf};
use crate::inventory::InventoryError;

/// The moves of each product: X, which is live now, and Y, which becomes live instead. What is recorded here is what is
/// taken back, however often that is tried: a retry after somebody else's change is refused, and never goes back further.
/// Changes nothing.
///
/// # Errors
/// [`InventoryError::Refused`] when a product is unknown, nothing of it is live, something else is live than
/// was expected, there is nothing to go back to, or a target is none.
pub fn rollback_moves(
    deps: &InventoryDeps,
    _ctx: &ActivityContext,
    input: RollbackMovesInput,
) -> Result<RollbackMovesOutput, InventoryError> {
    let inventory = deps.inventory()?;
    let mut leaves = BTreeMap::new();
    for product in &input.products {
        let leaf = known_leaf(&inventory, product)?;
        check_if_live(&leaf, &input.if_live)?;
        leaves.insert(product.clone(), leaf);
    }
    let mut targets: BTreeMap<&ProductId, BTreeSet<EditionId>> = BTreeMap::new();
    for edition in input.to {
        let home = leaves.iter().find(|(_, leaf)| leaf.entry(&edition).is_some());
        // One that no product knows is refused with the first.
        if let Some((product, _)) = home.or_else(|| leaves.iter().next()) {
            targets.entry(product).or_default().insert(edition);
        }
    }
    let none = BTreeSet::new();
    let mut products = BTreeMap::new();
    for (product, leaf) in &leaves {
        products.insert(product.clone(), moves_of(leaf, targets.get(product).unwrap_or(&none))?);
    }
    Ok(RollbackMovesOutput { products })
}
