//! Change the catalog's description (*catalog* §6.2, `extensions.statcat`).

use catalog_rules::contracts::inventory as contract;
use catalog_rules::contracts::inventory::{CommitInput, CommitOutput, Intent};
use catalog_rules::contracts::operations::{DescribeInput, OperationOutput};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;

/// The workflow's name.
pub const NAME: &str = "describe";
/// Its definition version.
pub const VERSION: u32 = 1;

const DESCRIBE: StepDef<CommitInput, CommitOutput> = StepDef::new("describe", contract::COMMIT, RetryPolicy::LOCAL);

/// Changes the description. No edition changes.
///
/// # Errors
/// The failure of the step: the version would not be valid.
pub async fn describe<C: Context>(ctx: &mut C, input: DescribeInput) -> Result<OperationOutput, Interrupt> {
    let DescribeInput { description, cause } = input;
    let intent = Intent::Describe { description };
    Ok(ctx.step(&DESCRIBE, &CommitInput { intent, cause }).await?.into())
}
