//! `jobctl runs …`: what the runs did, and what to do with those that stopped. Each command in a file of its own; what
//! several of them use is here.

mod cancel;
mod document;
mod export;
mod import;
mod list;
mod pause;
pub mod purge;
mod rehearse;
mod replay;
mod resume;
mod show;
mod signal;
mod watch;

use engine::{EngineError, ExportError, Reader, RunFilter, RunId, RunRow};
use engine_rules::failure::ActivityError as _;
use engine_rules::state::RunState;

use super::publish::with_run;
use crate::args::Runs;
use crate::exit::{Ended, Exit};
use crate::output::Output;
use crate::wire::{World, engine_error};

/// How long a command waits for a run in another process to do as it was told before it says that it was told, in
/// milliseconds.
const SETTLES_WITHIN_MS: u64 = 2_000;

/// How often it looks meanwhile, in milliseconds.
const LOOK_EVERY_MS: u64 = 100;

/// How many runs are looked through for one by the end of its id.
const LOOKED_THROUGH: u32 = 10_000;

/// Carries out `jobctl runs …`.
///
/// # Errors
/// An unknown run, or what the engine fails with.
pub async fn runs(world: &World, out: Output, args: Runs) -> Result<Exit, Ended> {
    match args {
        Runs::List(args) => list::list(world, out, &args).await,
        Runs::Show { run } => show::show(world, out, &run).await,
        Runs::Resume { run, reason, detach } => {
            let reason = reason.unwrap_or_else(|| "jobctl runs resume".to_owned());
            match run {
                Some(run) if detach => resume::detached(world, out, &run, reason).await,
                Some(run) => resume::one(world, out, &run, reason).await,
                None => resume::interrupted(world, out).await,
            }
        }
        Runs::Watch { run, jsonl } => watch::watch(world, out, &run, jsonl).await,
        Runs::Cancel { run, reason } => cancel::cancel(world, out, &run, reason).await,
        Runs::Pause { run, reason } => pause::pause(world, out, &run, reason).await,
        Runs::Signal { run, name, payload, reason } => {
            signal::signal(world, out, &run, &name, payload.as_deref(), reason).await
        }
        Runs::Export { run, output } => export::export(world, out, &run, output.as_deref()).await,
        Runs::Import(args) => import::import(world, out, args).await,
        Runs::Purge(args) => purge::purge(world, out, args).await,
        Runs::Replay(args) => replay::replay(world, out, args).await,
        Runs::Rehearse { histories } => rehearse::rehearse(world, out, &histories).await,
    }
}

/// The reader of the state, or `None` where there is no state yet. A state of an older program is brought up first.
async fn reader(world: &World) -> Result<Option<Reader>, Ended> {
    let mut opened = Reader::open(&world.config.state, world.clock.clone()).await;
    if opened.as_ref().is_err_and(EngineError::is_older_schema) {
        world.engine().await?.close().await;
        opened = Reader::open(&world.config.state, world.clock.clone()).await;
    }
    match opened {
        Ok(reader) => Ok(Some(reader)),
        Err(EngineError::NoState { .. }) => Ok(None),
        Err(error) => Err(engine_error(&error)),
    }
}

/// A run's state; one whose process is gone is interrupted, whatever its row says.
fn state(run: &RunRow) -> String {
    if is_interrupted(run) { "interrupted".to_owned() } else { run.state.to_string() }
}

fn is_interrupted(run: &RunRow) -> bool {
    matches!(run.state, RunState::Running | RunState::Waiting) && run.owner.as_ref().is_none_or(|owner| !owner.alive)
}

/// Whether `id` is one that `text` names: by itself, by a beginning or an end, or by both with `…` between.
fn is_named(id: RunId, text: &str) -> bool {
    let id = id.to_string();
    // An empty text, or a lone `…`, names no run: a variable that is not set must not cancel the only one there is.
    if !text.contains(|c: char| c.is_ascii_hexdigit()) {
        return false;
    }
    match text.split_once('…').or_else(|| text.split_once("...")) {
        Some((beginning, end)) => id.starts_with(beginning) && id.ends_with(end),
        None => id.starts_with(text) || id.ends_with(text),
    }
}

/// The one run of `found`.
fn only(found: Vec<RunId>, text: &str) -> Result<RunId, EngineError> {
    match found.as_slice() {
        [run] => Ok(*run),
        [] => Err(EngineError::UnknownRun { run: text.to_owned() }),
        [..] => Err(EngineError::AmbiguousRun { prefix: text.to_owned(), runs: found }),
    }
}

/// The run that `text` names: an id, a beginning or an end of one, or both with `…` between.
async fn find(reader: &Reader, text: &str) -> Result<RunId, EngineError> {
    match reader.find(text).await {
        Err(EngineError::UnknownRun { .. }) => {}
        other => return other,
    }
    let filter = RunFilter { limit: Some(LOOKED_THROUGH), ..RunFilter::default() };
    let runs = reader.runs(&filter).await?;
    only(runs.iter().map(|run| run.run_id).filter(|id| is_named(*id, text)).collect(), text)
}

/// The imported run that `text` names.
async fn find_imported(reader: &Reader, text: &str) -> Result<RunId, EngineError> {
    let ids = reader.imported_ids().await?;
    only(ids.into_iter().filter(|id| is_named(*id, text)).collect(), text)
}

/// The run of this state that `text` names. One that was imported is refused as such.
async fn named(world: &World, text: &str) -> Result<(Reader, RunId), Ended> {
    let unknown = || engine_error(&EngineError::UnknownRun { run: text.to_owned() });
    let reader = reader(world).await?.ok_or_else(unknown)?;
    match find(&reader, text).await {
        Ok(run) => Ok((reader, run)),
        Err(error @ EngineError::UnknownRun { .. }) => match find_imported(&reader, text).await {
            Ok(run) => Err(engine_error(&EngineError::Imported { run })),
            Err(_) => Err(engine_error(&error)),
        },
        Err(error) => Err(engine_error(&error)),
    }
}

/// An error of an export or import as a command ends with it.
fn export_error(error: ExportError) -> Ended {
    match error {
        ExportError::Engine(error) => engine_error(&error),
        refused @ (ExportError::TooLarge { .. }
        | ExportError::Unreadable { .. }
        | ExportError::Foreign { .. }
        | ExportError::Version { .. }
        | ExportError::Damaged { .. }
        | ExportError::Lives { .. }
        | ExportError::Differs { .. }) => {
            let mut ended = Ended::from(refused.to_failure());
            if let ExportError::Lives { run } = refused {
                ended.failure.hint = ended.failure.hint.map(|hint| with_run(&hint, run));
            }
            ended
        }
    }
}

/// The state of a run that was told something, once it `is_done` or ended, or after a while in any case.
async fn settled(
    world: &World,
    reader: &Reader,
    run_id: RunId,
    is_done: impl Fn(RunState) -> bool,
) -> Result<RunState, Ended> {
    let mut left_ms = SETTLES_WITHIN_MS;
    loop {
        let state = reader.run(run_id).await.map_err(|error| engine_error(&error))?.run.state;
        if state.is_terminal() || is_done(state) || left_ms == 0 {
            return Ok(state);
        }
        let part_ms = left_ms.min(LOOK_EVERY_MS);
        world.clock.sleep_ms(part_ms).await;
        left_ms -= part_ms;
    }
}
