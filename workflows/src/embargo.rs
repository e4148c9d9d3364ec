//! Turn the catalog's embargo on or off (*catalog* §6.4).

use catalog_rules::contracts::inventory as contract;
use catalog_rules::contracts::inventory::{CommitInput, CommitOutput, Intent};
use catalog_rules::contracts::operations::{EmbargoInput, OperationOutput};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;

/// The workflow's name.
pub const NAME: &str = "embargo";
/// Its definition version.
pub const VERSION: u32 = 1;

const EMBARGO: StepDef<CommitInput, CommitOutput> = StepDef::new("set_embargo", contract::COMMIT, RetryPolicy::LOCAL);

/// From the version on that this writes, a sealed edition waits for a release, or does not. What waits already goes on
/// waiting.
///
/// # Errors
/// The failure of the step: a rule stands against it.
pub async fn embargo<C: Context>(ctx: &mut C, input: EmbargoInput) -> Result<OperationOutput, Interrupt> {
    let EmbargoInput { on, cause } = input;
    let intent = Intent::Embargo { on };
    Ok(ctx.step(&EMBARGO, &CommitInput { intent, cause }).await?.into())
}
