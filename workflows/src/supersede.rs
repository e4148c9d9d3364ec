//! Cancel an embargoed edition for another one that waits (*catalog* §6.4, supersede_pending).

use catalog_rules::contracts::inventory as contract;
use catalog_rules::contracts::inventory::{CommitInput, CommitOutput, Intent};
use catalog_rules::contracts::operations::{OperationOutput, SupersedeInput};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;

/// The workflow's name.
pub const NAME: &str = "supersede";
/// Its definition version.
pub const VERSION: u32 = 1;

const SUPERSEDE: StepDef<CommitInput, CommitOutput> = StepDef::new("supersede", contract::COMMIT, RetryPolicy::LOCAL);

/// Withdraws the one edition in favour of the other, which stays embargoed. Both were built on the same live edition.
///
/// # Errors
/// The failure of the step: the editions are no rivals, or one of them does not wait any more.
pub async fn supersede<C: Context>(ctx: &mut C, input: SupersedeInput) -> Result<OperationOutput, Interrupt> {
    let SupersedeInput { product_id, edition_id, by, cause } = input;
    let intent = Intent::Supersede { product_id, edition_id, by };
    Ok(ctx.step(&SUPERSEDE, &CommitInput { intent, cause }).await?.into())
}
