//! Delete an unsealed edition (*edition* §1). It is a run, so that it never meets a publish of the same product, and so
//! that who did it and why is kept.

use catalog_rules::contracts::edition as contract;
use catalog_rules::contracts::edition::{DiscardInput, DiscardOutput};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;

/// The workflow's name.
pub const NAME: &str = "discard";
/// Its definition version.
pub const VERSION: u32 = 1;

const DISCARD: StepDef<DiscardInput, DiscardOutput> = StepDef::new("discard", contract::DISCARD, RetryPolicy::LOCAL);

/// Deletes the unsealed edition and its entry in the seal journal. Its data files are left to garbage collection.
///
/// # Errors
/// The failure of the step: a sealed edition is refused.
pub async fn discard<C: Context>(ctx: &mut C, input: DiscardInput) -> Result<DiscardOutput, Interrupt> {
    ctx.step(&DISCARD, &input).await
}
