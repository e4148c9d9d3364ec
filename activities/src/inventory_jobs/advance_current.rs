//! Brings `CURRENT` up to the newest version (*catalog* §6.6).

use catalog_rules::contracts::inventory::{AdvanceCurrentOutput, Nothing};
use engine_rules::activity::ActivityContext;

use super::InventoryDeps;
use crate::inventory::InventoryError;

/// Brings `CURRENT` up to the newest version, as a release does when it starts. After it returns, `CURRENT` names that
/// version or a later one. Repeats are safe.
///
/// # Errors
/// [`InventoryError`] when the head is not valid, or the store fails.
pub fn advance_current(
    deps: &InventoryDeps,
    _ctx: &ActivityContext,
    _input: Nothing,
) -> Result<AdvanceCurrentOutput, InventoryError> {
    let seq = deps.writer()?.advance_current()?;
    Ok(AdvanceCurrentOutput { seq: seq.get() })
}
