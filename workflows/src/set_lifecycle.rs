//! Make a product final, or revisable again (D27, *catalog* §6.5 item 5).

use catalog_rules::contracts::inventory as contract;
use catalog_rules::contracts::inventory::{CommitInput, CommitOutput, Intent};
use catalog_rules::contracts::operations::{OperationOutput, SetLifecycleInput};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;

/// The workflow's name.
pub const NAME: &str = "set-lifecycle";
/// Its definition version.
pub const VERSION: u32 = 1;

const SET_LIFECYCLE: StepDef<CommitInput, CommitOutput> =
    StepDef::new("set_lifecycle", contract::COMMIT, RetryPolicy::LOCAL);

/// Sets the lifecycle. No edition changes.
///
/// # Errors
/// The failure of the step: the product would become final while another content waits.
pub async fn set_lifecycle<C: Context>(ctx: &mut C, input: SetLifecycleInput) -> Result<OperationOutput, Interrupt> {
    let SetLifecycleInput { product_id, lifecycle, cause } = input;
    let intent = Intent::SetLifecycle { product_id, lifecycle };
    Ok(ctx.step(&SET_LIFECYCLE, &CommitInput { intent, cause }).await?.into())
}
