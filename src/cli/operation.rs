//! `jobctl run release`, `rollback` and the other operations on the Inventory: a run each, or a dry run without one.

mod dry;
mod named;

use engine::{Engine, RunId, Start};
use engine_rules::failure::ActivityError as _;

use super::publish::{Held, held, stay};
use super::reason::reason;
use super::{detach, when};
use crate::args::Run;
use crate::exit::{Ended, Exit};
use crate::output::Output;
use crate::start::{Asked, Origin, asked, command, how, how_mut, needs_reason};
use crate::wire::{World, engine_error};

/// Carries the operation out and stays with its run; or says what it would do.
///
/// # Errors
/// Usage, a key held by another run, a place that is no catalog, or what the engine fails with. A run that failed is told
/// and gives its exit code.
pub async fn operation(world: &World, out: Output, mut run: Run) -> Result<Exit, Ended> {
    activities::inventory::open_catalog(world.store.as_ref()).map_err(|error| Ended::from(error.to_failure()))?;
    named::in_full(world, &mut run)?;
    named::as_seen(world, &mut run)?;
    let is_dry = how(&run).is_some_and(|how| how.dry_run);
    if needs_reason(&run)
        && !is_dry
        && let Some(how) = how_mut(&mut run)
    {
        how.reason = Some(reason(out, how.reason.take())?);
    }
    let folder =
        std::env::current_dir().map_err(|error| Ended::usage(format!("the working folder cannot be told: {error}")))?;
    let origin = Origin {
        sources: &world.config.sources,
        zone: &world.config.time_zone,
        folder: &folder,
        actor: world.actor.clone(),
        reason: format!("jobctl run {}", command(&run).unwrap_or_default()),
    };
    let asked = asked(&run, &origin)?.ok_or_else(|| Ended::usage("these words are no operation on the Inventory"))?;
    if is_dry {
        let at = match &run {
            Run::Release(args) => args.as_of.as_deref(),
            _ => None,
        };
        let now_ms = world.clock.now_ms();
        let at = at.map(|text| when::release("--as-of", text, &world.config.time_zone, Some(now_ms))).transpose()?;
        if let Some(past) = at.filter(|at| at.as_millisecond() < now_ms) {
            return Err(Ended::usage(format!("--as-of is {past}, which is past; expected a time to come")).with_hint(
                "without --as-of it says what a release would do now; jobctl inventory log says what was done",
            ));
        }
        return dry::run(world, out, asked, at).await;
    }
    let given = how(&run).cloned().unwrap_or_default();
    let start = asked.start(given.reason, &origin)?;
    let document = format!("run.{}", asked.workflow());
    let engine = world.engine().await?;
    if given.detach {
        return match detach::enqueue(&engine, start).await? {
            Ok(run_id) => Ok(detach::tell(out, &document, &asked.title(), run_id)),
            Err(holder) => Err(busy(&engine, &asked, holder).await?),
        };
    }
    let run_id = match engine.start(start).await.map_err(|error| engine_error(&error))? {
        Start::Started(started) => started.run_id,
        Start::Busy { holder } => return Err(busy(&engine, &asked, holder).await?),
    };
    let ended = stay(world, &engine, out, run_id, &asked.title()).await?;
    out.document(&document, ended.document(&[]));
    Ok(ended.exit)
}

/// What a command ends with that finds its key held by the run `holder`.
async fn busy(engine: &Engine, asked: &Asked, holder: RunId) -> Result<Ended, Ended> {
    let workflow = asked.workflow();
    let held_by = Held {
        subject: match workflow {
            workflows::release::NAME => "releases".to_owned(),
            _ => "what takes live editions back".to_owned(),
        },
        again: format!("jobctl runs watch {holder} follows it to its end; then jobctl run {workflow} again"),
    };
    held(engine, &held_by, holder).await
}
