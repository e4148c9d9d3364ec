//! `jobctl runs …`: what the runs did, and what to do with those that stopped.

use engine::{Engine, EngineError, Mutation, Reader, RunDetail, RunFilter, RunId, RunRow, StepRow};
use engine_rules::state::RunState;
use serde_json::{Value, json};

use super::cancelled::{Remains, take_back};
use super::publish::{stay, with_run};
use super::rehearse::rehearse;
use super::replay::replay;
use crate::args::{Runs, RunsList};
use crate::exit::{Ended, Exit};
use crate::output::{Output, duration, moment, short};
use crate::terminal::summary;
use crate::wire::{World, engine_error};

/// How many runs are looked through for one by the end of its id.
const LOOKED_THROUGH: u32 = 10_000;

/// Carries out `jobctl runs …`.
///
/// # Errors
/// An unknown run, or what the engine fails with.
pub async fn runs(world: &World, out: Output, args: Runs) -> Result<Exit, Ended> {
    match args {
        Runs::List(args) => list(world, out, &args).await,
        Runs::Show { run } => show(world, out, &run).await,
        Runs::Resume { run, reason } => {
            let reason = reason.unwrap_or_else(|| "jobctl runs resume".to_owned());
            match run {
                Some(run) => resume_one(world, out, &run, reason).await,
                None => resume_interrupted(world, out).await,
            }
        }
        Runs::Cancel { run, reason } => cancel(world, out, &run, reason).await,
        Runs::Replay(args) => {
            let (_, run_id) = named(world, &args.run).await?;
            replay(world, out, run_id, args).await
        }
        Runs::Rehearse { histories } => rehearse(world, out, &histories).await,
    }
}

/// The reader of the state, or `None` where there is no state yet.
async fn reader(world: &World) -> Result<Option<Reader>, Ended> {
    match Reader::open(&world.config.state, world.clock.clone()).await {
        Ok(reader) => Ok(Some(reader)),
        Err(EngineError::NoState { .. }) => Ok(None),
        Err(error) => Err(engine_error(&error)),
    }
}

async fn list(world: &World, out: Output, args: &RunsList) -> Result<Exit, Ended> {
    let mut filter = RunFilter { limit: Some(args.limit), ..RunFilter::default() };
    if args.failed {
        filter.states = vec![RunState::Failed, RunState::Blocked];
    }
    if let Some(state) = &args.state_is {
        let state = RunState::from_name(state).ok_or_else(|| {
            Ended::usage(format!(
                "{state:?} is no state of a run: queued, running, waiting, paused, blocked, succeeded, failed, cancelled"
            ))
        })?;
        filter.states = vec![state];
    }
    if let Some(product) = &args.product {
        filter.labels.insert("product".to_owned(), product.clone());
    }
    let runs = match reader(world).await? {
        Some(reader) => reader.runs(&filter).await.map_err(|error| engine_error(&error))?,
        None => Vec::new(),
    };
    let rows = runs.iter().map(|run| {
        let why = run.failure.as_ref().map(|f| f.message.lines().next().unwrap_or_default().to_owned());
        [
            short(&run.run_id.to_string()),
            run.workflow.clone(),
            run.labels.get("product").cloned().unwrap_or_default(),
            state(run),
            moment(run.created_at_ms),
            step_of(run),
            why.unwrap_or_default(),
        ]
    });
    if runs.is_empty() {
        out.line("no runs");
    } else {
        out.table(["RUN", "WORKFLOW", "PRODUCT", "STATE", "BEGUN", "STEP", "WHY"], rows.collect());
    }
    out.document("runs.list", json!({ "runs": runs.iter().map(run_json).collect::<Vec<_>>() }));
    Ok(Exit::Done)
}

/// A run's state; one whose process is gone is interrupted, whatever its row says.
fn state(run: &RunRow) -> String {
    if is_interrupted(run) { "interrupted".to_owned() } else { run.state.to_string() }
}

fn is_interrupted(run: &RunRow) -> bool {
    matches!(run.state, RunState::Running | RunState::Waiting) && run.owner.as_ref().is_none_or(|owner| !owner.alive)
}

fn step_of(run: &RunRow) -> String {
    run.failed_step.clone().or_else(|| run.current_step.clone()).unwrap_or_default()
}

fn instant(at_ms: i64) -> Value {
    json!(catalog_rules::instant::Instant::from_ms(at_ms))
}

fn run_json(run: &RunRow) -> Value {
    json!({
        "run_id": run.run_id.to_string(),
        "workflow": run.workflow,
        "definition_version": run.version,
        "product": run.labels.get("product"),
        "labels": run.labels,
        "state": run.state.to_string(),
        "interrupted": is_interrupted(run),
        "step": run.failed_step.as_ref().or(run.current_step.as_ref()),
        "steps_recorded": run.steps_recorded,
        "input": run.input,
        "output": run.output,
        "failure": run.failure,
        "actor": run.actor,
        "reason": run.reason,
        "concurrency_key": run.concurrency_key,
        "origin_run_id": run.origin_run_id.as_ref().map(ToString::to_string),
        "origin_step": run.origin_step,
        "epoch": run.epoch,
        "owner": run.owner.as_ref().map(|owner| json!({
            "owner_id": owner.owner_id, "pid": owner.pid, "host": owner.host, "alive": owner.alive,
        })),
        "created_at": instant(run.created_at_ms),
        "started_at": run.started_at_ms.map(instant),
        "ended_at": run.ended_at_ms.map(instant),
    })
}

fn step_json(step: &StepRow) -> Value {
    json!({
        "position": step.position,
        "name": step.name,
        "label": step.label,
        "section": step.section,
        "iteration": step.iteration,
        "activity": step.activity,
        "state": step.state.to_string(),
        "input": step.input,
        "input_digest": step.input_digest,
        "output": step.output,
        "failure": step.failure,
        "carried_from": step.carried_from,
        "attempt": step.attempt,
        "started_at": instant(step.started_at_ms),
        "ended_at": step.ended_at_ms.map(instant),
        "duration_us": step.duration_us,
        "attempts": step.attempts.iter().map(|attempt| json!({
            "attempt": attempt.attempt,
            "outcome": attempt.outcome,
            "failure": attempt.failure,
            "epoch": attempt.epoch,
            "started_at": attempt.started_at_ms.map(instant),
            "ended_at": attempt.ended_at_ms.map(instant),
            "duration_us": attempt.duration_us,
        })).collect::<Vec<_>>(),
    })
}

/// The run that `text` names: an id, a beginning or an end of one, or both with `…` between.
pub(super) async fn find(reader: &Reader, text: &str) -> Result<RunId, Ended> {
    let (beginning, end) = text.split_once('…').or_else(|| text.split_once("...")).unwrap_or((text, ""));
    match reader.find(text).await {
        Ok(run) => return Ok(run),
        Err(EngineError::UnknownRun { .. }) => {}
        Err(error) => return Err(engine_error(&error)),
    }
    let filter = RunFilter { limit: Some(LOOKED_THROUGH), ..RunFilter::default() };
    let runs = reader.runs(&filter).await.map_err(|error| engine_error(&error))?;
    let fits = |run: &&RunRow| {
        let id = run.run_id.to_string();
        if end.is_empty() { id.ends_with(beginning) } else { id.starts_with(beginning) && id.ends_with(end) }
    };
    let found: Vec<_> = runs.iter().filter(fits).map(|run| run.run_id).collect();
    match found.as_slice() {
        [run] => Ok(*run),
        [] => Err(engine_error(&EngineError::UnknownRun { run: text.to_owned() })),
        [..] => Err(engine_error(&EngineError::AmbiguousRun { prefix: text.to_owned(), runs: found })),
    }
}

async fn named(world: &World, text: &str) -> Result<(Reader, RunId), Ended> {
    let unknown = || engine_error(&EngineError::UnknownRun { run: text.to_owned() });
    let reader = reader(world).await?.ok_or_else(unknown)?;
    let run = find(&reader, text).await?;
    Ok((reader, run))
}

async fn show(world: &World, out: Output, run: &str) -> Result<Exit, Ended> {
    let (reader, run_id) = named(world, run).await?;
    let detail = reader.run(run_id).await.map_err(|error| engine_error(&error))?;
    tell(out, &detail);
    out.document(
        "runs.show",
        json!({
            "run": run_json(&detail.run),
            "steps": detail.steps.iter().map(step_json).collect::<Vec<_>>(),
            "audit": detail.audit.iter().map(|row| json!({
                "at": instant(row.at_ms), "actor": row.actor, "action": row.action, "reason": row.reason,
                "details": row.details,
            })).collect::<Vec<_>>(),
        }),
    );
    Ok(Exit::Done)
}

fn tell(out: Output, detail: &RunDetail) {
    let run = &detail.run;
    let product = run.labels.get("product").map(|product| format!(" {product}")).unwrap_or_default();
    out.line(format!("{}{product}  run {}  {}", run.workflow, run.run_id, state(run)));
    out.line(format!("  begun {} by {}{}", moment(run.created_at_ms), run.actor, because(run.reason.as_deref())));
    if let (Some(origin), Some(step)) = (run.origin_run_id, &run.origin_step) {
        out.line(format!("  replays run {origin} from {step}"));
    }
    if let (Some(started), Some(ended)) = (run.started_at_ms, run.ended_at_ms) {
        out.line(format!("  ended {}, after {}", moment(ended), duration(us(ended - started))));
    }
    if let Some(owner) = run.owner.as_ref().filter(|_| !run.state.is_terminal()) {
        let gone = if owner.alive { "" } else { ", which is gone" };
        out.line(format!("  owner: process {} on {}{gone}", owner.pid, owner.host));
    }
    out.line("");
    let begun = detail.steps.iter().map(|step| step.first_started_at_ms).min().unwrap_or(run.created_at_ms);
    let end = run.ended_at_ms.or_else(|| detail.steps.iter().filter_map(|s| s.ended_at_ms).max()).unwrap_or(begun);
    for step in &detail.steps {
        let what = step.output.as_ref().map(|output| summary(&step.name, output)).unwrap_or_default();
        let what = match &step.carried_from {
            Some(maker) => format!("carried over from {}  {what}", short(maker)),
            None => what,
        };
        out.line(
            format!(
                "  {:<17}{:<10}{:>9}  {}  {what}",
                step.label,
                step.state.to_string(),
                step.duration_us.map(duration).unwrap_or_default(),
                waterfall(begun, end, step)
            )
            .trim_end(),
        );
        if step.attempts.len() > 1 || step.failure.is_some() {
            for attempt in &step.attempts {
                let why = attempt.failure.as_ref().map(|f| format!(": {} {}", f.code, f.message)).unwrap_or_default();
                out.line(format!("      attempt {} {}{why}", attempt.attempt, attempt.outcome));
            }
        }
        if let Some(failure) = &step.failure {
            out.line(format!("      {:?}  {}", failure.disposition, failure.code));
            for line in failure.message.lines() {
                out.line(format!("      {line}"));
            }
            if let Some(hint) = &failure.hint {
                out.line(format!("      hint: {}", with_run(hint, run.run_id)));
            }
            if let Some(input) = &step.input {
                out.line(format!("      input: {input}"));
            }
        }
    }
    if let Some(failure) = run.failure.as_ref().filter(|_| detail.steps.iter().all(|step| step.failure.is_none())) {
        out.line(format!("  {}: {}", failure.code, failure.message));
        if let Some(hint) = &failure.hint {
            out.line(format!("  hint: {}", with_run(hint, run.run_id)));
        }
    }
    for row in &detail.audit {
        let to = row.details.as_ref().and_then(|details| details["run_id"].as_str());
        let to = to.filter(|to| *to != run.run_id.to_string()).map(|to| format!(" as run {to}")).unwrap_or_default();
        out.line(format!("  {} {}{to} by {}: {}", moment(row.at_ms), row.action, row.actor, row.reason));
    }
}

fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

fn us(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or_default().saturating_mul(1000)
}

/// When a step ran within its run, as a bar of twenty places.
fn waterfall(begun: i64, end: i64, step: &StepRow) -> String {
    const PLACES: i64 = 20;
    let span = (end - begun).max(1);
    let place = |at: i64| ((at - begun) * PLACES / span).clamp(0, PLACES);
    let from = place(step.first_started_at_ms).min(PLACES - 1);
    let to = place(step.ended_at_ms.unwrap_or(end)).max(from + 1);
    (0..PLACES).map(|at| if (from..to).contains(&at) { '█' } else { '·' }).collect()
}

async fn resume_one(world: &World, out: Output, run: &str, reason: String) -> Result<Exit, Ended> {
    let (_, run_id) = named(world, run).await?;
    let engine = world.engine().await?;
    let by = Mutation { actor: world.actor.clone(), reason };
    engine.resume(run_id, &by).await.map_err(|error| engine_error(&error))?;
    let ended = stay(world, &engine, out, run_id, &title(&engine, run_id).await?).await?;
    out.document("runs.resume", json!({ "runs": [ended.document(&[])] }));
    Ok(ended.exit)
}

async fn title(engine: &Engine, run_id: RunId) -> Result<String, Ended> {
    let run = engine.reader().run(run_id).await.map_err(|error| engine_error(&error))?.run;
    let product = run.labels.get("product").map(|product| format!(" {product}")).unwrap_or_default();
    Ok(format!("{}{product}", run.workflow))
}

/// Goes on with every run whose process is gone. The exit code is the first that is not 0.
async fn resume_interrupted(world: &World, out: Output) -> Result<Exit, Ended> {
    let mut exit = Exit::Done;
    let mut documents = Vec::new();
    if reader(world).await?.is_some() {
        let engine = world.engine().await?;
        for run_id in engine.interrupted().await.map_err(|error| engine_error(&error))? {
            match engine.take_over(run_id).await {
                Ok(()) => {}
                Err(EngineError::OwnedElsewhere { .. } | EngineError::WrongState { .. }) => continue,
                Err(error) => return Err(engine_error(&error)),
            }
            let ended = stay(world, &engine, out, run_id, &title(&engine, run_id).await?).await?;
            documents.push(ended.document(&[]));
            if exit == Exit::Done {
                exit = ended.exit;
            }
        }
    }
    if documents.is_empty() {
        out.line("no run is interrupted");
    }
    out.document("runs.resume", json!({ "runs": documents }));
    Ok(exit)
}

async fn cancel(world: &World, out: Output, run: &str, reason: String) -> Result<Exit, Ended> {
    let (_, run_id) = named(world, run).await?;
    let engine = world.engine().await?;
    engine
        .cancel(run_id, &Mutation { actor: world.actor.clone(), reason })
        .await
        .map_err(|error| engine_error(&error))?;
    let state = engine.reader().run(run_id).await.map_err(|error| engine_error(&error))?.run.state;
    if state.is_terminal() {
        out.line(format!("run {run_id} is {state}"));
    } else {
        out.line(format!("run {run_id} is told to stop: it does so at the end of what it is at"));
    }
    let remains = take_back(world, &engine.reader(), run_id).await?;
    if let Some(remains) = &remains {
        remains.tell(out);
    }
    let left = remains.as_ref().map(Remains::document);
    out.document("runs.cancel", json!({ "run_id": run_id.to_string(), "state": state.to_string(), "edition": left }));
    Ok(Exit::Done)
}
