//! `jobctl runs show`.

use engine::{AttemptRow, Children, EngineError, ImportedRow, RunDetail, RunExport, RunRow, StepRow};
use engine_rules::failure::Failure;
use engine_rules::state::{RunState, StepState};
use serde_json::json;

use super::document::{imported_json, instant, run_json, step_json};
use super::{export_error, find, find_imported, reader, state};
use crate::cli::publish::with_run;
use crate::exit::{Ended, Exit};
use crate::output::{Output, duration, grouped, moment, short};
use crate::terminal::summary;
use crate::wire::{World, engine_error};

/// The code of the failure that tells where a run was cancelled.
const CANCELLED: &str = "engine.cancelled";

/// All that is known of the run that `run` names, of this state or imported.
pub(super) async fn history(world: &World, run: &str) -> Result<(RunDetail, Option<ImportedRow>), Ended> {
    let unknown = || engine_error(&EngineError::UnknownRun { run: run.to_owned() });
    let reader = reader(world).await?.ok_or_else(unknown)?;
    match find(&reader, run).await {
        Ok(run_id) => Ok((reader.run(run_id).await.map_err(|error| engine_error(&error))?, None)),
        Err(error @ EngineError::UnknownRun { .. }) => match find_imported(&reader, run).await {
            Ok(run_id) => {
                let (row, export) = reader.imported_run(run_id).await.map_err(export_error)?;
                let RunExport { run, steps, audit, .. } = export;
                Ok((RunDetail { run, steps, audit, children: Children::default() }, Some(row)))
            }
            Err(EngineError::UnknownRun { .. }) => Err(engine_error(&error)),
            Err(error) => Err(engine_error(&error)),
        },
        Err(error) => Err(engine_error(&error)),
    }
}

pub(super) async fn show(world: &World, out: Output, run: &str) -> Result<Exit, Ended> {
    let (detail, imported) = history(world, run).await?;
    tell(out, &detail, imported.as_ref());
    let mut document = json!({
        "run": run_json(&detail.run),
        "steps": detail.steps.iter().map(step_json).collect::<Vec<_>>(),
        "children": detail.children,
        "audit": detail.audit.iter().map(|row| json!({
            "at": instant(row.at_ms), "actor": row.actor, "action": row.action, "reason": row.reason,
            "details": row.details,
        })).collect::<Vec<_>>(),
    });
    if let Some(imported) = &imported {
        document["imported"] = imported_json(imported);
    }
    out.document("runs.show", document);
    Ok(Exit::Done)
}

fn tell(out: Output, detail: &RunDetail, imported: Option<&ImportedRow>) {
    let run = &detail.run;
    let product = run.labels.get("product").map(|product| format!(" {product}")).unwrap_or_default();
    out.line(format!("{}{product}  run {}  {}", run.workflow, run.run_id, state(run)));
    if let Some(ImportedRow { at_ms, by, reason, .. }) = imported {
        out.line(format!("  imported {} by {by}: {reason}; it is here to be read only", moment(*at_ms)));
    }
    if let Some(begun) = run.purge_begun_at_ms {
        out.line(format!("  its purge began {}: what is left of it is not whole", moment(begun)));
    }
    out.line(format!("  begun {} by {}{}", moment(run.created_at_ms), run.actor, because(run.reason.as_deref())));
    if let (Some(origin), Some(step)) = (run.origin_run_id, &run.origin_step) {
        out.line(format!("  replays run {origin} from {step}"));
    }
    if let (Some(started), Some(ended)) = (run.started_at_ms, run.ended_at_ms) {
        out.line(format!("  ended {}, after {}", moment(ended), duration(us(ended - started))));
    }
    if run.epoch > 1 {
        let times = if run.epoch == 2 { "once".to_owned() } else { format!("{} times", run.epoch - 1) };
        out.line(format!("  changed hands {times}: a process died, gave it back, or a person resumed it"));
    }
    if let Some(owner) = run.owner.as_ref().filter(|_| !run.state.is_terminal()) {
        let gone = if owner.alive { "" } else { ", which is gone" };
        out.line(format!("  owner: process {} on {}{gone}", owner.pid, owner.host));
    }
    if run.state == RunState::Waiting
        && let Some(step) = detail.steps.iter().rev().find(|step| !step.state.is_recorded())
    {
        out.line(format!("  waits at {}{}", step.label, awaited(run, step)));
    }
    if run.state.needs_owner() {
        for (at_ms, what) in [(run.cancel_requested_at_ms, "to end"), (run.pause_requested_at_ms, "to stop")] {
            if let Some(at_ms) = at_ms {
                out.line(format!("  told {what} at {}", moment(at_ms)));
            }
        }
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
        let what = if step.state == StepState::Running { progress(step) } else { what };
        out.line(
            format!(
                "  {:<17}{:<10}{:>9}  {}  {what}",
                step.label,
                step_state(run, step),
                step.duration_us.map(duration).unwrap_or_default(),
                waterfall(begun, end, step)
            )
            .trim_end(),
        );
        if let Some(failure) = step.failure.as_ref().filter(|failure| failure.code == CANCELLED) {
            out.line(format!("      {}", failure.message));
            let others = step.attempts.iter().filter(|attempt| attempt.outcome != "cancelled");
            others.for_each(|attempt| tell_attempt(out, attempt, None));
            continue;
        }
        if step.attempts.len() > 1 || step.failure.is_some() {
            step.attempts.iter().for_each(|attempt| tell_attempt(out, attempt, step.failure.as_ref()));
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
    tell_children(out, run, &detail.children);
    for row in &detail.audit {
        let to = row.details.as_ref().and_then(|details| details["run_id"].as_str());
        let to = to.filter(|to| *to != run.run_id.to_string()).map(|to| format!(" as run {to}")).unwrap_or_default();
        out.line(format!("  {} {}{to} by {}: {}", moment(row.at_ms), row.action, row.actor, row.reason));
    }
}

/// A step's state; one at which its run was cancelled has failed in the journal, which is not how a person calls it.
/// One whose next attempt a person must grant is blocked.
fn step_state(run: &RunRow, step: &StepRow) -> String {
    let is_cancelled = step.failure.as_ref().is_some_and(|failure| failure.code == CANCELLED);
    let stands_here = run.failed_step.as_ref() == Some(&step.label);
    if is_cancelled {
        "cancelled".to_owned()
    } else if stands_here && run.state == RunState::Blocked && step.state == StepState::Retrying {
        "blocked".to_owned()
    } else {
        step.state.to_string()
    }
}

/// How many children stand how, and those that a person may want to see.
fn tell_children(out: Output, run: &RunRow, children: &Children) {
    if children.total() == 0 {
        return;
    }
    let counts: Vec<_> =
        children.by_state.iter().map(|(state, count)| format!("{} {state}", grouped(*count))).collect();
    out.line(format!(
        "  children: {}  (jobctl runs list --parent {})",
        counts.join(", "),
        short(&run.run_id.to_string())
    ));
    for child in &children.not_succeeded {
        let at = child.failed_step.as_ref().map(|step| format!(" at {step}")).unwrap_or_default();
        let labels: Vec<_> = child.labels.values().cloned().collect();
        let why = child.failure.as_ref().and_then(|failure| failure.message.lines().next()).unwrap_or_default();
        out.line(
            format!(
                "    {}  {} {}  {}{at}  {why}",
                short(&child.run_id.to_string()),
                child.workflow,
                labels.join(" "),
                child.state
            )
            .trim_end(),
        );
    }
}

/// An attempt, when it began and what became of it; why, unless that is `told` below.
fn tell_attempt(out: Output, attempt: &AttemptRow, told: Option<&Failure>) {
    let at = attempt.started_at_ms.map(|at_ms| format!(", begun {}", moment(at_ms))).unwrap_or_default();
    let outcome = match attempt.outcome.as_str() {
        "crashed" => "crashed: its process was gone",
        other => other,
    };
    let failure = attempt.failure.as_ref().filter(|failure| told != Some(failure));
    let why = failure.map(|f| format!(": {} {}", f.code, first_line(&f.message))).unwrap_or_default();
    out.line(format!("      attempt {} {outcome}{at}{why}", attempt.attempt));
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// What a waiting run waits for.
fn awaited(run: &RunRow, step: &StepRow) -> String {
    let until = run.wake_at_ms.map(|at_ms| format!(" until {}", moment(at_ms))).unwrap_or_default();
    match step.kind.as_str() {
        "sleep" => until,
        "signal" => {
            format!(" for a signal{until}: jobctl runs signal {} {} --payload … --reason …", run.run_id, step.name)
        }
        "child" | "fan_out" => " for its children".to_owned(),
        _ => format!(" for its next attempt{until}"),
    }
}

/// How far the attempt at work was at its last sign of life.
fn progress(step: &StepRow) -> String {
    let Some(progress) = &step.progress else { return String::new() };
    let number = |key: &str| progress[key].as_u64().map(grouped);
    let unit = progress["unit"].as_str().unwrap_or_default();
    let at = step.heartbeat_at_ms.map(|at_ms| format!(", at {}", moment(at_ms))).unwrap_or_default();
    match (number("done"), number("total")) {
        (Some(done), Some(total)) => format!("{done} of {total} {unit}{at}"),
        (Some(done), None) => format!("{done} {unit}{at}"),
        (None, _) => String::new(),
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
