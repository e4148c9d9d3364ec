//! Publish one edition of a product on a local catalog (DESIGN §3, *catalog* §11.1).

use catalog_rules::contracts::publish as contract;
use catalog_rules::contracts::publish::{
    AbandonInput, AbandonOutput, BuildInput, BuildOutput, Cause, CheckInput, CheckOutput, OpenInput, OpenOutput,
    PublishInput, PublishOutput, RecordInput, RecordOutput, ResolveSourceInput, ResolveSourceOutput, SealInput,
    SealOutput,
};
use catalog_rules::instant::Instant;
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::failure::Disposition;
use engine_rules::retry::RetryPolicy;

/// The workflow's name.
pub const NAME: &str = "publish";
/// Its definition version: a run goes on under the version that it began with.
pub const VERSION: u32 = 1;

pub(crate) const OPEN: StepDef<OpenInput, OpenOutput> = StepDef::new("open", contract::OPEN, RetryPolicy::LOCAL);
const RESOLVE_SOURCE: StepDef<ResolveSourceInput, ResolveSourceOutput> =
    StepDef::new("resolve_source", contract::RESOLVE_SOURCE, RetryPolicy::LOCAL);
const BUILD: StepDef<BuildInput, BuildOutput> = StepDef::new("build", contract::BUILD, RetryPolicy::LOCAL);
const SEAL: StepDef<SealInput, SealOutput> = StepDef::new("seal", contract::SEAL, RetryPolicy::LOCAL);
const CHECK: StepDef<CheckInput, CheckOutput> = StepDef::new("check", contract::CHECK, RetryPolicy::LOCAL);
const RECORD: StepDef<RecordInput, RecordOutput> = StepDef::new("record", contract::RECORD, RetryPolicy::LOCAL);
const ABANDON: StepDef<AbandonInput, AbandonOutput> = StepDef::new("abandon", contract::ABANDON, RetryPolicy::LOCAL);

/// Publishes one edition: opens, resolves the source, builds, seals, checks and records it.
///
/// After it returns, the edition is recorded in the Inventory and the seal journal holds no entry for it. A refusal at
/// the seal, the check or the record takes the journal entry back, so that no later repair records what was refused
/// (D11); the sealed directory stays for a person to look at. After a failure that only gave up trying, the entry stays.
///
/// # Errors
/// The failure of the step that failed for good. A publish that is cancelled takes the journal entry back as
/// well, and an edition that is not sealed.
pub async fn publish<C: Context>(ctx: &mut C, input: PublishInput) -> Result<PublishOutput, Interrupt> {
    let PublishInput { product_id, source, cause, lifecycle, release_at } = input;
    let opening = OpenInput { product_id: product_id.clone(), cause: cause.clone(), release_at };
    let opened = ctx.step(&OPEN, &opening).await?;
    let OpenOutput { edition_id, previous, .. } = opened;

    let resolving = ResolveSourceInput { product_id: product_id.clone(), source: source.clone() };
    let resolved = ctx.step(&RESOLVE_SOURCE, &resolving).await?;

    let building = BuildInput {
        product_id: product_id.clone(),
        edition_id: edition_id.clone(),
        previous: previous.clone(),
        source,
        resolved,
    };
    let abandoning =
        AbandonInput { product_id: product_id.clone(), edition_id: edition_id.clone(), discard_unsealed: false };
    match ctx.step(&BUILD, &building).await {
        Ok(BuildOutput { .. }) => {}
        // What an attempt that crashed left would keep the product's next publish out.
        Err(Interrupt::Cancelled) => return Err(take_back(ctx, &abandoning, Interrupt::Cancelled).await),
        Err(interrupt) => return Err(interrupt),
    }

    let sealing = SealInput {
        product_id: product_id.clone(),
        edition_id: edition_id.clone(),
        previous: previous.clone(),
        lifecycle,
        is_fold: false,
    };
    let (sealed, recorded) = finish(ctx, sealing, cause, release_at).await?;

    Ok(PublishOutput {
        product_id,
        edition_id,
        previous,
        rows: sealed.rows,
        content_fingerprint: sealed.content_fingerprint,
        state: recorded.state,
        seq: recorded.seq,
    })
}

/// Seals the edition that was built, checks it and records it: how a publish ends, and everything else that makes an
/// edition.
///
/// # Errors
/// As [`publish`], whose promises about the journal entry these are.
pub(crate) async fn finish<C: Context>(
    ctx: &mut C,
    sealing: SealInput,
    cause: Cause,
    release_at: Option<Instant>,
) -> Result<(SealOutput, RecordOutput), Interrupt> {
    let (product_id, edition_id) = (sealing.product_id.clone(), sealing.edition_id.clone());
    let abandoning =
        AbandonInput { product_id: product_id.clone(), edition_id: edition_id.clone(), discard_unsealed: false };
    let sealed = match ctx.step(&SEAL, &sealing).await {
        Ok(sealed) => sealed,
        Err(interrupt) => return Err(take_back(ctx, &abandoning, interrupt).await),
    };

    let checking = CheckInput {
        product_id: product_id.clone(),
        edition_id: edition_id.clone(),
        manifest_sha256: sealed.manifest_sha256.clone(),
    };
    match ctx.step(&CHECK, &checking).await {
        Ok(CheckOutput { .. }) => {}
        Err(interrupt) => return Err(take_back(ctx, &abandoning, interrupt).await),
    }

    let recording = RecordInput {
        product_id,
        edition_id,
        manifest_sha256: sealed.manifest_sha256.clone(),
        lifecycle: sealing.lifecycle,
        cause,
        release_at,
    };
    match ctx.step(&RECORD, &recording).await {
        Ok(recorded) => Ok((sealed, recorded)),
        Err(interrupt) => Err(take_back(ctx, &abandoning, interrupt).await),
    }
}

/// Returns what ends the run. A refusal takes the journal entry back first, so that no repair records what was refused
/// (D11); where that fails too, the first failure is still the one that a person must see, and the entry left behind is
/// told of at the next `open`. So does a cancel, since a repair could not tell what a person stopped from what a crash
/// did. A disk or a lock that gave up is no refusal: the entry stays, and the product's next publish records what was
/// sealed, once its check and every rule pass it.
pub(crate) async fn take_back<C: Context>(ctx: &mut C, abandoning: &AbandonInput, interrupt: Interrupt) -> Interrupt {
    match &interrupt {
        Interrupt::Cancelled => {}
        Interrupt::Suspended => return interrupt,
        Interrupt::Failed(failure) => match failure.disposition {
            Disposition::Terminal => {}
            Disposition::Retry | Disposition::Operator => return interrupt,
        },
    }
    let is_cancelled = matches!(interrupt, Interrupt::Cancelled);
    let cancelled = AbandonInput { discard_unsealed: true, ..abandoning.clone() };
    match ctx.step(&ABANDON, if is_cancelled { &cancelled } else { abandoning }).await {
        Ok(AbandonOutput { .. }) | Err(Interrupt::Failed(_)) => interrupt,
        // Cancelled while it takes a refusal back: once more, and this time the cancel does not stop it.
        Err(Interrupt::Cancelled) => match ctx.step(&ABANDON, &cancelled).await {
            Ok(AbandonOutput { .. }) | Err(Interrupt::Failed(_) | Interrupt::Cancelled) => Interrupt::Cancelled,
            Err(Interrupt::Suspended) => Interrupt::Suspended,
        },
        Err(Interrupt::Suspended) => Interrupt::Suspended,
    }
}

#[cfg(test)]
mod tests;
