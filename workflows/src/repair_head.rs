//! Delete a damaged root at the head of the Inventory (D16). It is a run, so that who did it and why is kept.

use catalog_rules::contracts::recovery as contract;
use catalog_rules::contracts::recovery::{RepairHeadInput, RepairHeadOutput};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;

/// The workflow's name.
pub const NAME: &str = "repair-head";
/// Its definition version.
pub const VERSION: u32 = 1;

const STEP: StepDef<RepairHeadInput, RepairHeadOutput> =
    StepDef::new("repair_head", contract::REPAIR_HEAD, RetryPolicy::LOCAL);

/// Keeps a copy of the damaged root in the state directory and deletes it; the next version can follow then.
///
/// # Errors
/// The failure of the step: a refusal names what would be lost, and nothing was changed.
pub async fn repair_head<C: Context>(ctx: &mut C, input: RepairHeadInput) -> Result<RepairHeadOutput, Interrupt> {
    ctx.step(&STEP, &input).await
}
