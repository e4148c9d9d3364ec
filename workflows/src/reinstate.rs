//! Turn a retired edition into a superseded one, which may be rolled back to (*catalog* §6.4, D30).

use catalog_rules::contracts::inventory as contract;
use catalog_rules::contracts::inventory::{CommitInput, CommitOutput, Intent, ReadManifestInput, ReadManifestOutput};
use catalog_rules::contracts::operations::{OperationOutput, ReinstateInput};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;

/// The workflow's name.
pub const NAME: &str = "reinstate";
/// Its definition version.
pub const VERSION: u32 = 1;

const READ_MANIFEST: StepDef<ReadManifestInput, ReadManifestOutput> =
    StepDef::new("read_manifest", contract::READ_MANIFEST, RetryPolicy::LOCAL);
const REINSTATE: StepDef<CommitInput, CommitOutput> = StepDef::new("reinstate", contract::COMMIT, RetryPolicy::LOCAL);

/// Reinstates the edition, once its manifest and every listed file verify. The manifest that is verified is the one that
/// the first step found.
///
/// # Errors
/// The failure of the step that failed for good: no tombstone, files that do not verify, a window that closes.
pub async fn reinstate<C: Context>(ctx: &mut C, input: ReinstateInput) -> Result<OperationOutput, Interrupt> {
    let ReinstateInput { product_id, edition_id, cause } = input;
    let reading = ReadManifestInput { product_id: product_id.clone(), edition_id: edition_id.clone() };
    let ReadManifestOutput { manifest_sha256 } = ctx.step(&READ_MANIFEST, &reading).await?;
    let intent = Intent::Reinstate { product_id, edition_id, manifest_sha256 };
    Ok(ctx.step(&REINSTATE, &CommitInput { intent, cause }).await?.into())
}
