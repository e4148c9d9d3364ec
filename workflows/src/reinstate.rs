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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scripted::{Scripted, now};
    use crate::single_steps::version;

    #[test]
    fn the_manifest_that_was_found_is_the_one_that_comes_back() {
        let (edition, sha256) = ("01a18e76-2bad-7480-abfe-2ba8a6889a45", "b".repeat(64));
        let ctx = Scripted::default().answer("read_manifest", json!({"manifest_sha256": sha256}));
        let mut ctx = ctx.answer("reinstate", version(7));
        let input = json!({"product_id": "1", "edition_id": edition, "cause": {"actor": "a", "reason": "r"}});
        now(reinstate(&mut ctx, serde_json::from_value(input).unwrap())).unwrap();
        assert_eq!(ctx.names(), ["read_manifest", "reinstate"]);
        assert_eq!(ctx.asked[1].1["manifest_sha256"], json!(sha256));
        assert_eq!(ctx.asked[1].1["operation"], "reinstate");
    }
}
