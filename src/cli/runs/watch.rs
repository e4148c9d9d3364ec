//! `jobctl runs watch`: follows a run of any process by what the journal says.

use std::collections::HashMap;

use engine::{Event, EventKind, Outcome, RunDetail, RunRow, StepRow};
use engine_rules::position::Position;
use engine_rules::state::{RunState, StepState};
use serde_json::{Value, json};

use super::document::{instant, run_json, step_json};
use super::{is_interrupted, named};
use crate::cli::publish::tell;
use crate::exit::{Ended, Exit};
use crate::output::{Output, duration, moment};
use crate::terminal::Watcher;
use crate::wire::{World, engine_error};

/// How often the journal is read, in milliseconds; less often where a look takes long, so that watching stays cheap.
const LOOK_MS: u64 = 250;
const LOOK_SHARE: u64 = 4;

pub(super) async fn watch(world: &World, out: Output, run: &str, is_stream: bool) -> Result<Exit, Ended> {
    let (reader, run_id) = named(world, run).await?;
    let lines = if is_stream { out.quiet() } else { out };
    let mut look =
        Look { lines, out, is_stream, watcher: None, stands: String::new(), epoch: 0, steps: HashMap::new() };
    let (detail, outcome) = loop {
        let began_us = world.clock.monotonic_us();
        let detail = reader.run(run_id).await.map_err(|error| engine_error(&error))?;
        look.at(&detail);
        if let Some(outcome) = outcome(&detail.run) {
            break (detail, outcome);
        }
        let took_ms = world.clock.monotonic_us().saturating_sub(began_us) / 1_000;
        world.clock.sleep_ms(LOOK_MS.max(took_ms.saturating_mul(LOOK_SHARE))).await;
    };
    if let Some(watcher) = &mut look.watcher {
        watcher.clear();
    }
    let run = &detail.run;
    let ended_at_ms = run.ended_at_ms.or_else(|| detail.steps.iter().filter_map(|step| step.ended_at_ms).max());
    let begun_at_ms = run.started_at_ms.unwrap_or(run.created_at_ms);
    let took_ms = ended_at_ms.unwrap_or(begun_at_ms).saturating_sub(begun_at_ms);
    let took = duration(u64::try_from(took_ms).unwrap_or(0).saturating_mul(1_000));
    let ended = tell(lines, run_id, outcome, &took);
    if is_stream {
        look.stream("ended", ended.document(&[]));
    } else {
        out.document("runs.watch", ended.document(&[]));
    }
    Ok(ended.exit)
}

/// How the run ended, or why it does not go on without a person; `None` while it may go on.
fn outcome(run: &RunRow) -> Option<Outcome> {
    let step = run.failed_step.clone();
    match run.state {
        RunState::Queued | RunState::Running | RunState::Waiting => None,
        RunState::Succeeded => Some(Outcome::Succeeded(run.output.clone().unwrap_or(Value::Null))),
        RunState::Cancelled => Some(Outcome::Cancelled),
        RunState::Paused => Some(Outcome::Paused),
        RunState::Failed => run.failure.clone().map(|failure| Outcome::Failed { failure, step }),
        RunState::Blocked => run.failure.clone().map(|failure| Outcome::Blocked { failure, step }),
    }
}

/// What was told of a step.
#[derive(Default)]
struct Told {
    /// The latest attempt whose beginning was.
    begun: u32,
    /// The latest attempt whose end was.
    ended: u32,
    is_result: bool,
}

/// What was told so far.
struct Look {
    /// For lines: says nothing in a stream.
    lines: Output,
    out: Output,
    is_stream: bool,
    watcher: Option<Watcher>,
    stands: String,
    epoch: i64,
    steps: HashMap<String, Told>,
}

impl Look {
    fn stream(&self, event: &str, mut fields: Value) {
        if let Some(fields) = fields.as_object_mut() {
            fields.insert("event".to_owned(), event.into());
        }
        if self.is_stream {
            self.out.stream("runs.watch", fields);
        }
    }

    /// Tells what is new.
    fn at(&mut self, detail: &RunDetail) {
        let run = &detail.run;
        let lines = self.lines;
        let mut watcher = self.watcher.take().unwrap_or_else(|| {
            let product = run.labels.get("product").map(|product| format!(" {product}")).unwrap_or_default();
            lines.line(format!("{}{product}  run {}", run.workflow, run.run_id));
            self.stream("run", json!({ "run": run_json(run) }));
            Watcher::new(lines, run.run_id.to_string())
        });
        if self.epoch > 0 && run.epoch > self.epoch {
            watcher.clear();
            lines.line("  taken up by another process");
            self.stream("taken_up", json!({ "run_id": run.run_id.to_string(), "epoch": run.epoch }));
        }
        self.epoch = run.epoch;
        for step in detail.steps.iter().filter(|step| step.kind == "activity") {
            self.step(&mut watcher, run, step);
        }
        let stands = stands(detail);
        if stands != self.stands {
            if !stands.is_empty() {
                watcher.clear();
                lines.line(format!("  {stands}"));
            }
            let fields = json!({
                "run_id": run.run_id.to_string(),
                "state": run.state.to_string(),
                "interrupted": is_interrupted(run),
                "waits_until": run.wake_at_ms.map(instant),
            });
            self.stream("stands", fields);
            self.stands = stands;
        }
        self.watcher = Some(watcher);
    }

    fn step(&mut self, watcher: &mut Watcher, run: &RunRow, step: &StepRow) {
        let mut told = self.steps.remove(&step.position).unwrap_or_default();
        let position = Position { top: step.top, iteration: step.iteration, sub: step.sub };
        let label = &step.label;
        let duration_us = step.duration_us.unwrap_or(0);
        let show = |watcher: &mut Watcher, kind| {
            watcher.show(&Event { run_id: run.run_id, at_ms: step.started_at_ms, kind });
        };
        let is_result = step.state.is_recorded();
        for attempt in &step.attempts {
            // The last attempt of a step with a result is told as the result.
            let is_over = !matches!(attempt.outcome.as_str(), "running" | "succeeded");
            if attempt.attempt <= told.ended || !is_over || (is_result && attempt.attempt == step.attempt) {
                continue;
            }
            told.ended = attempt.attempt;
            let why = attempt.failure.as_ref().map(|failure| format!(": {}", failure.message)).unwrap_or_default();
            let time = attempt.duration_us.map(duration).unwrap_or_default();
            watcher.step(label, &time, &format!("attempt {} {}{why}", attempt.attempt, attempt.outcome));
            let fields = json!({
                "run_id": run.run_id.to_string(),
                "step": label,
                "attempt": attempt.attempt,
                "outcome": attempt.outcome,
                "failure": attempt.failure,
                "duration_us": attempt.duration_us,
            });
            self.stream("attempt_ended", fields);
        }
        match step.state {
            StepState::Running if !told.is_result => {
                if told.begun < step.attempt {
                    told.begun = step.attempt;
                    show(watcher, EventKind::StepStarted { position, step: label.clone(), attempt: step.attempt });
                }
                let number = |name| step.progress.as_ref().and_then(|progress| progress.get(name)?.as_u64());
                if let (Some(done), Some(progress)) = (number("done"), &step.progress) {
                    let unit = progress.get("unit").and_then(Value::as_str).unwrap_or_default();
                    watcher.progress(done, number("total"), unit);
                }
            }
            StepState::Succeeded | StepState::Failed if !told.is_result => {
                told.is_result = true;
                let (step_name, attempt) = (label.clone(), step.attempt);
                let kind = match (&step.output, &step.failure) {
                    (_, Some(failure)) => {
                        let failure = failure.clone();
                        EventKind::StepFailed { position, step: step_name, attempt, duration_us, failure }
                    }
                    (output, None) => {
                        let output = output.clone().unwrap_or(Value::Null);
                        EventKind::StepSucceeded { position, step: step_name, attempt, duration_us, output }
                    }
                };
                show(watcher, kind);
                self.stream("step_ended", json!({ "run_id": run.run_id.to_string(), "step": step_json(step) }));
            }
            StepState::Pending
            | StepState::Retrying
            | StepState::Abandoned
            | StepState::Running
            | StepState::Succeeded
            | StepState::Failed => {}
        }
        self.steps.insert(step.position.clone(), told);
    }
}

/// Why nothing happens for now, where nothing does.
fn stands(detail: &RunDetail) -> String {
    let run = &detail.run;
    if is_interrupted(run) {
        return format!(
            "interrupted: no process works on it; jobctl serve goes on with it, or jobctl runs resume {}",
            run.run_id
        );
    }
    match run.state {
        RunState::Queued => "in the queue: it begins when jobctl serve comes to it and its key is free".to_owned(),
        RunState::Waiting => {
            let at = detail.steps.iter().rev().find(|step| !step.state.is_recorded()).map(|step| &step.label);
            let at = at.map(|label| format!(" at {label}")).unwrap_or_default();
            let until = run.wake_at_ms.map(|at_ms| format!(" until {}", moment(at_ms))).unwrap_or_default();
            format!("waits{at}{until}")
        }
        RunState::Running
        | RunState::Paused
        | RunState::Blocked
        | RunState::Succeeded
        | RunState::Failed
        | RunState::Cancelled => String::new(),
    }
}
