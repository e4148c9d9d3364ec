//! What a rollback and a withdrawal tell last: the editions that are built on what was taken back.

use std::collections::{BTreeMap, BTreeSet};

use catalog_rules::contracts::inventory as contract;
use catalog_rules::contracts::inventory::{CommitOutput, FindRipplesInput, FindRipplesOutput, Warning};
use catalog_rules::contracts::operations::OperationOutput;
use catalog_rules::ids::{EditionId, ProductId};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;

const FIND_RIPPLES: StepDef<FindRipplesInput, FindRipplesOutput> =
    StepDef::new("find_ripples", contract::FIND_RIPPLES, RetryPolicy::LOCAL);

/// `version` with the editions that are built on those that it withdrew. The version stands whatever becomes of the look:
/// a look that failed is a warning.
pub(crate) async fn with_ripples<C: Context>(
    ctx: &mut C,
    version: CommitOutput,
    withdrawn: BTreeMap<ProductId, BTreeSet<EditionId>>,
) -> Result<OperationOutput, Interrupt> {
    let mut output = OperationOutput::from(version);
    match ctx.step(&FIND_RIPPLES, &FindRipplesInput { withdrawn }).await {
        Ok(FindRipplesOutput { ripples }) => output.ripples = ripples,
        Err(Interrupt::Failed(failure)) => output.warnings.push(Warning {
            code: failure.code,
            message: format!("editions built on what was withdrawn could not be looked for: {}", failure.message),
            fix: failure.hint.unwrap_or_else(|| "see what waits: jobctl inventory products".to_owned()),
        }),
        Err(interrupt @ (Interrupt::Cancelled | Interrupt::Suspended)) => return Err(interrupt),
    }
    Ok(output)
}
