//! End an old schema version (*catalog* §9.2 step 5, D27).

use catalog_rules::contracts::inventory as contract;
use catalog_rules::contracts::inventory::{CommitInput, CommitOutput, Intent};
use catalog_rules::contracts::operations::{OperationOutput, SupersedeSchemaInput};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;

/// The workflow's name.
pub const NAME: &str = "supersede-schema";
/// Its definition version.
pub const VERSION: u32 = 1;

const SUPERSEDE_SCHEMA: StepDef<CommitInput, CommitOutput> =
    StepDef::new("supersede_schema", contract::COMMIT, RetryPolicy::LOCAL);

/// Supersedes the live editions at the schema version, where a newer one is live. Without named products, those that have no
/// newer one are told in the output and refuse nothing else.
///
/// # Errors
/// The failure of the step: nothing is at that schema version, or a named product has no newer live edition.
pub async fn supersede_schema<C: Context>(
    ctx: &mut C,
    input: SupersedeSchemaInput,
) -> Result<OperationOutput, Interrupt> {
    let SupersedeSchemaInput { schema_version, products, cause } = input;
    let intent = Intent::SupersedeSchema { schema_version, products };
    Ok(ctx.step(&SUPERSEDE_SCHEMA, &CommitInput { intent, cause }).await?.into())
}
