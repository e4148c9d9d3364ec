//! Build a version from an older, known-good one (*catalog* §6.2, D14).

use catalog_rules::contracts::inventory as contract;
use catalog_rules::contracts::inventory::{CommitInput, CommitOutput, Intent};
use catalog_rules::contracts::operations::{CorrectInput, OperationOutput};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;

/// The workflow's name.
pub const NAME: &str = "correct";
/// Its definition version.
pub const VERSION: u32 = 1;

const CORRECT: StepDef<CommitInput, CommitOutput> = StepDef::new("correct", contract::COMMIT, RetryPolicy::LOCAL);

/// Gives the products the states of the older version, in a new one. What was withdrawn or retired since stays so, and no
/// later edition is dropped.
///
/// # Errors
/// The failure of the step: the older version cannot be read, or a version after it was not confirmed.
pub async fn correct<C: Context>(ctx: &mut C, input: CorrectInput) -> Result<OperationOutput, Interrupt> {
    let CorrectInput { to, products, confirmed_unread, cause } = input;
    let intent = Intent::Correct { to, products, confirmed_unread };
    Ok(ctx.step(&CORRECT, &CommitInput { intent, cause }).await?.into())
}
