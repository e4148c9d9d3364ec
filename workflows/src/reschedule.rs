//! Set or clear the time of an embargoed edition's release (D27).

use catalog_rules::contracts::inventory as contract;
use catalog_rules::contracts::inventory::{CommitInput, CommitOutput, Intent};
use catalog_rules::contracts::operations::{OperationOutput, RescheduleInput};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;

/// The workflow's name.
pub const NAME: &str = "reschedule";
/// Its definition version.
pub const VERSION: u32 = 1;

const RESCHEDULE: StepDef<CommitInput, CommitOutput> = StepDef::new("reschedule", contract::COMMIT, RetryPolicy::LOCAL);

/// Gives the edition another time. It stays embargoed, even where the time has come: a release makes it live.
///
/// # Errors
/// The failure of the step: the edition does not wait.
pub async fn reschedule<C: Context>(ctx: &mut C, input: RescheduleInput) -> Result<OperationOutput, Interrupt> {
    let RescheduleInput { product_id, edition_id, release_at, cause } = input;
    let intent = Intent::Reschedule { product_id, edition_id, release_at };
    Ok(ctx.step(&RESCHEDULE, &CommitInput { intent, cause }).await?.into())
}
