//! Build an Inventory from the manifests (*catalog* §6.7), for a catalog that was never rolled back.

use catalog_rules::contracts::recovery as contract;
use catalog_rules::contracts::recovery::{RebuildInventoryInput, RebuildInventoryOutput};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;

/// The workflow's name.
pub const NAME: &str = "rebuild-inventory";
/// Its definition version.
pub const VERSION: u32 = 1;

const STEP: StepDef<RebuildInventoryInput, RebuildInventoryOutput> =
    StepDef::new("rebuild_inventory", contract::REBUILD_INVENTORY, RetryPolicy::LOCAL);

/// Writes version 1 of a new epoch from every sealed edition.
///
/// # Errors
/// The failure of the step: a refusal names what would be lost, and nothing was changed.
pub async fn rebuild_inventory<C: Context>(
    ctx: &mut C,
    input: RebuildInventoryInput,
) -> Result<RebuildInventoryOutput, Interrupt> {
    ctx.step(&STEP, &input).await
}
