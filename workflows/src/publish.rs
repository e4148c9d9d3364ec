//! Publish one edition of a product on a local catalog (DESIGN §3, *catalog* §11.1).

use catalog_rules::contracts::publish as contract;
use catalog_rules::contracts::publish::{
    AbandonInput, AbandonOutput, BuildInput, BuildOutput, CheckInput, CheckOutput, OpenInput, OpenOutput, PublishInput,
    PublishOutput, RecordInput, RecordOutput, ResolveSourceInput, ResolveSourceOutput, SealInput, SealOutput,
};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::failure::Failure;
use engine_rules::retry::RetryPolicy;

/// The workflow's name.
pub const NAME: &str = "publish";
/// Its definition version: a run goes on under the version that it began with.
pub const VERSION: u32 = 1;

const OPEN: StepDef<OpenInput, OpenOutput> = StepDef::new("open", contract::OPEN, RetryPolicy::LOCAL);
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
/// (D11); the sealed directory stays for a person to look at.
///
/// # Errors
/// The failure of the step that failed for good.
pub async fn publish<C: Context>(ctx: &mut C, input: PublishInput) -> Result<PublishOutput, Interrupt> {
    let PublishInput { product_id, source, cause, lifecycle } = input;
    let opened = ctx.step(&OPEN, &OpenInput { product_id: product_id.clone(), cause: cause.clone() }).await?;
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
    ctx.step(&BUILD, &building).await?;

    let sealing = SealInput {
        product_id: product_id.clone(),
        edition_id: edition_id.clone(),
        previous: previous.clone(),
        lifecycle,
    };
    let abandoning = AbandonInput { product_id: product_id.clone(), edition_id: edition_id.clone() };
    let sealed = match ctx.step(&SEAL, &sealing).await {
        Ok(sealed) => sealed,
        Err(Interrupt::Failed(failure)) => return Err(abandon(ctx, &abandoning, failure).await),
        Err(Interrupt::Suspended) => return Err(Interrupt::Suspended),
    };

    let checking = CheckInput {
        product_id: product_id.clone(),
        edition_id: edition_id.clone(),
        manifest_sha256: sealed.manifest_sha256.clone(),
    };
    match ctx.step(&CHECK, &checking).await {
        Ok(CheckOutput { .. }) => {}
        Err(Interrupt::Failed(failure)) => return Err(abandon(ctx, &abandoning, failure).await),
        Err(Interrupt::Suspended) => return Err(Interrupt::Suspended),
    }

    let recording = RecordInput {
        product_id: product_id.clone(),
        edition_id: edition_id.clone(),
        manifest_sha256: sealed.manifest_sha256,
        lifecycle,
        cause,
    };
    let recorded = match ctx.step(&RECORD, &recording).await {
        Ok(recorded) => recorded,
        Err(Interrupt::Failed(failure)) => return Err(abandon(ctx, &abandoning, failure).await),
        Err(Interrupt::Suspended) => return Err(Interrupt::Suspended),
    };

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

/// Takes the journal entry back and returns the failure that made it necessary. Where that fails too, the first
/// failure is still the one that a person must see; the entry left behind is told of at the next `open`.
async fn abandon<C: Context>(ctx: &mut C, abandoning: &AbandonInput, failure: Failure) -> Interrupt {
    match ctx.step(&ABANDON, abandoning).await {
        Ok(AbandonOutput { .. }) | Err(Interrupt::Failed(_)) => Interrupt::Failed(failure),
        Err(Interrupt::Suspended) => Interrupt::Suspended,
    }
}

#[cfg(test)]
mod tests;
