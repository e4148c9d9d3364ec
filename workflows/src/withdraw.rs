//! Cancel an embargoed edition, or take back all that is live of a product (*catalog* §6.4, D22).

use std::collections::BTreeMap;

use catalog_rules::contracts::inventory as contract;
use catalog_rules::contracts::inventory::{CommitInput, CommitOutput, Intent, LiveEditionsInput, LiveEditionsOutput};
use catalog_rules::contracts::operations::{OperationOutput, WithdrawInput};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;

use crate::ripples::with_ripples;

/// The workflow's name.
pub const NAME: &str = "withdraw";
/// Its definition version.
pub const VERSION: u32 = 1;

const CANCEL: StepDef<CommitInput, CommitOutput> = StepDef::new("cancel", contract::COMMIT, RetryPolicy::LOCAL);
const LIVE_EDITIONS: StepDef<LiveEditionsInput, LiveEditionsOutput> =
    StepDef::new("live_editions", contract::LIVE_EDITIONS, RetryPolicy::LOCAL);
const WITHDRAW_LIVE: StepDef<CommitInput, CommitOutput> =
    StepDef::new("withdraw_live", contract::COMMIT, RetryPolicy::LOCAL);

/// Withdraws the embargoed edition; or, where none is named, every live edition of the product, which then has no head.
/// What is live is recorded first, so that however often the run is interrupted it takes back the same editions.
///
/// # Errors
/// The failure of the step that failed for good: the edition does not wait, nothing is live, or what is live changed.
pub async fn withdraw<C: Context>(ctx: &mut C, input: WithdrawInput) -> Result<OperationOutput, Interrupt> {
    let WithdrawInput { product_id, edition_id, if_live, cause } = input;
    if let Some(edition_id) = edition_id {
        let intent = Intent::Cancel { product_id, edition_id };
        return Ok(ctx.step(&CANCEL, &CommitInput { intent, cause }).await?.into());
    }
    let looking = LiveEditionsInput { product_id: product_id.clone(), if_live };
    let LiveEditionsOutput { if_live } = ctx.step(&LIVE_EDITIONS, &looking).await?;
    let withdrawn = BTreeMap::from([(product_id.clone(), if_live.clone())]);
    let intent = Intent::WithdrawLive { product_id, if_live };
    let version = ctx.step(&WITHDRAW_LIVE, &CommitInput { intent, cause }).await?;
    with_ripples(ctx, version, withdrawn).await
}

#[cfg(test)]
mod tests;
