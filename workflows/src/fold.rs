//! Fold overlays into the live edition of a product, as a new edition over the same data files (*edition* §5.6).

use catalog_rules::contracts::fold as contract;
use catalog_rules::contracts::fold::{
    FoldInput, FoldOutput, FoldStepInput, FoldStepOutput, ResolveOverlaysInput, ResolveOverlaysOutput,
};
use catalog_rules::contracts::publish::{AbandonInput, OpenInput, OpenOutput, SealInput};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;

use crate::publish::{OPEN, finish, take_back};

/// The workflow's name.
pub const NAME: &str = "fold";
/// Its definition version: a run goes on under the version that it began with.
pub const VERSION: u32 = 1;

const RESOLVE_OVERLAYS: StepDef<ResolveOverlaysInput, ResolveOverlaysOutput> =
    StepDef::new("resolve_overlays", contract::RESOLVE_OVERLAYS, RetryPolicy::LOCAL);
const FOLD: StepDef<FoldStepInput, FoldStepOutput> = StepDef::new("fold", contract::FOLD, RetryPolicy::LOCAL);

/// Folds overlays: opens, reads them, builds the new edition, and seals, checks and records it as a publish does.
///
/// After it returns, the new edition is recorded in the Inventory, with the folded one as its `previous`, and the seal
/// journal holds no entry for it. The folded edition is left as it was. Refusals and cancels end as those of
/// [`publish`](crate::publish::publish).
///
/// # Errors
/// The failure of the step that failed for good.
pub async fn fold<C: Context>(ctx: &mut C, input: FoldInput) -> Result<FoldOutput, Interrupt> {
    let FoldInput { product_id, overlays, audience, cause, release_at } = input;
    let opening = OpenInput { product_id: product_id.clone(), cause: cause.clone(), release_at };
    let opened = ctx.step(&OPEN, &opening).await?;
    let OpenOutput { edition_id, previous, .. } = opened;

    let resolving = ResolveOverlaysInput { overlays, audience: audience.clone() };
    let resolved = ctx.step(&RESOLVE_OVERLAYS, &resolving).await?;

    let folding = FoldStepInput {
        product_id: product_id.clone(),
        edition_id: edition_id.clone(),
        previous: previous.clone(),
        overlays: resolved.overlays,
        audience,
    };
    let folded = match ctx.step(&FOLD, &folding).await {
        Ok(folded) => folded,
        // What an attempt that crashed left would keep the product's next publish out.
        Err(Interrupt::Cancelled) => {
            let abandoning = AbandonInput {
                product_id: product_id.clone(),
                edition_id: edition_id.clone(),
                discard_unsealed: false,
            };
            return Err(take_back(ctx, &abandoning, Interrupt::Cancelled).await);
        }
        Err(interrupt) => return Err(interrupt),
    };

    let sealing = SealInput {
        product_id: product_id.clone(),
        edition_id: edition_id.clone(),
        previous: previous.clone(),
        lifecycle: None,
        is_fold: true,
    };
    let (sealed, recorded) = finish(ctx, sealing, cause, release_at).await?;
    Ok(FoldOutput {
        product_id,
        edition_id,
        previous,
        rows: sealed.rows,
        changed: folded.changed,
        content_fingerprint: sealed.content_fingerprint,
        state: recorded.state,
        seq: recorded.seq,
    })
}

#[cfg(test)]
mod tests;
