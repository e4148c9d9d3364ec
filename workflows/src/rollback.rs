//! Take back what is live and make earlier editions live again (*catalog* §6.4, D22).

use std::collections::BTreeMap;

use catalog_rules::contracts::inventory as contract;
use catalog_rules::contracts::inventory::{CommitInput, CommitOutput, Intent, RollbackMovesInput, RollbackMovesOutput};
use catalog_rules::contracts::operations::{OperationOutput, RollbackInput};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;

use crate::ripples::with_ripples;

/// The workflow's name.
pub const NAME: &str = "rollback";
/// Its definition version.
pub const VERSION: u32 = 1;

const ROLLBACK_MOVES: StepDef<RollbackMovesInput, RollbackMovesOutput> =
    StepDef::new("rollback_moves", contract::ROLLBACK_MOVES, RetryPolicy::LOCAL);
const ROLLBACK: StepDef<CommitInput, CommitOutput> = StepDef::new("rollback", contract::COMMIT, RetryPolicy::LOCAL);

/// Rolls the products back in one version, which moves forward like any other.
///
/// The first step records what is taken back (X) and what becomes live instead (Y), so that however often the run is
/// interrupted it takes back the same editions; where somebody else changed what is live meanwhile, it is refused. The
/// last step names the editions that are built on what was taken back.
///
/// # Errors
/// The failure of the step that failed for good: nothing to take back or to go back to, or live editions that changed.
pub async fn rollback<C: Context>(ctx: &mut C, input: RollbackInput) -> Result<OperationOutput, Interrupt> {
    let RollbackInput { products, to, if_live, cause } = input;
    let RollbackMovesOutput { products } =
        ctx.step(&ROLLBACK_MOVES, &RollbackMovesInput { products, to, if_live }).await?;
    let withdrawn: BTreeMap<_, _> = products
        .iter()
        .map(|(product, moves)| (product.clone(), moves.iter().map(|step| step.from.clone()).collect()))
        .collect();
    let version = ctx.step(&ROLLBACK, &CommitInput { intent: Intent::Rollback { products }, cause }).await?;
    with_ripples(ctx, version, withdrawn).await
}

#[cfg(test)]
mod tests;
