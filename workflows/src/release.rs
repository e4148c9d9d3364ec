//! Release embargoed editions on a local catalog (DESIGN §3, *catalog* §6.4, §11.2 step 4).

use catalog_rules::contracts::inventory as contract;
use catalog_rules::contracts::inventory::{
    AdvanceCurrentOutput, CommitInput, CommitOutput, Intent, Nothing, PreflightOutput,
};
use catalog_rules::contracts::operations::{OperationOutput, ReleaseInput};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;

/// The workflow's name.
pub const NAME: &str = "release";
/// Its definition version.
pub const VERSION: u32 = 1;

const ADVANCE_CURRENT: StepDef<Nothing, AdvanceCurrentOutput> =
    StepDef::new("advance_current", contract::ADVANCE_CURRENT, RetryPolicy::LOCAL);
const PREFLIGHT: StepDef<Nothing, PreflightOutput> = StepDef::new("preflight", contract::PREFLIGHT, RetryPolicy::LOCAL);
const RELEASE_DUE: StepDef<CommitInput, CommitOutput> =
    StepDef::new("release_due", contract::COMMIT, RetryPolicy::LOCAL);
const RELEASE_NAMED: StepDef<CommitInput, CommitOutput> =
    StepDef::new("release_named", contract::COMMIT, RetryPolicy::LOCAL);

/// Releases what is due, or what is named, in one version.
///
/// What is due is released as far as the rules let it, and what they refuse is persisted with the version and told in the
/// output: the run has done its work. What is named is released whole, or refused whole. Interrupted before the version,
/// everything stays embargoed and nothing is lost.
///
/// # Errors
/// The failure of the step that failed for good: a clock that is ahead, or a refusal of what is named.
pub async fn release<C: Context>(ctx: &mut C, input: ReleaseInput) -> Result<OperationOutput, Interrupt> {
    let ReleaseInput { products, editions, cause } = input;
    let AdvanceCurrentOutput { .. } = ctx.step(&ADVANCE_CURRENT, &Nothing {}).await?;
    let PreflightOutput { warnings } = ctx.step(&PREFLIGHT, &Nothing {}).await?;
    let (step, intent) = match products.first() {
        None => (&RELEASE_DUE, Intent::ReleaseDue),
        Some(product) if !editions.is_empty() => {
            (&RELEASE_NAMED, Intent::ReleaseEditions { product_id: product.clone(), editions })
        }
        Some(_) => (&RELEASE_NAMED, Intent::ReleaseProducts { products }),
    };
    let version = ctx.step(step, &CommitInput { intent, cause }).await?;
    Ok(OperationOutput { warnings, ..version.into() })
}

#[cfg(test)]
mod tests;
