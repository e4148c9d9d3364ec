//! `jobctl serve`: the daemon. It carries out what waits in the queue and what dead processes left, and writes a line for
//! each thing that happens.

mod periodic;

use std::collections::HashMap;

use engine::{Engine, Event, EventKind, Fired, FiredOutcome, PurgeReport, RunId, ServeOptions, ServeReport};
use engine_rules::failure::Failure;
use engine_rules::state::RunState;
use serde_json::{Value, json};

use self::periodic::Note;
use super::cancelled::take_back;
use super::publish::with_run;
use crate::args::Serve;
use crate::exit::{Ended, Exit};
use crate::output::{Output, duration, moment};
use crate::signals::told_to_end;
use crate::terminal::{findings, summary};
use crate::wire::{World, engine_error};

/// How long closing the state database may take at the end, in milliseconds: another process may hold it.
const CLOSE_WITHIN_MS: u64 = 5_000;

/// Serves until it is told to end.
///
/// # Errors
/// What the engine fails with as it begins; and when the writer of the state database has stopped, so that nothing can be
/// recorded any more.
pub async fn serve(world: &World, out: Output, args: &Serve) -> Result<Exit, Ended> {
    let end = told_to_end()?;
    let engine = world.engine().await?;
    engine.sync_schedules(&world.config.schedules).await.map_err(|error| engine_error(&error))?;
    let (notes, mut noted) = tokio::sync::mpsc::unbounded_channel();
    let mut log = Log { world, out, is_stream: args.jsonl, engine: &engine, titles: HashMap::new() };
    let mut events = engine.subscribe();
    let mut options = ServeOptions::new(args.in_flight as usize);
    options.grace_ms = u64::from(args.grace).saturating_mul(1_000);
    options.every.extend([periodic::schedules(world, notes.clone()), periodic::retention(world, notes)]);
    log.began(args);
    let (told, mut was_told) = tokio::sync::oneshot::channel();
    let shutdown = async move {
        let _ = end.await;
        let _ = told.send(());
    };
    let served = {
        let serving = engine.serve(options, shutdown);
        let mut serving = std::pin::pin!(serving);
        let mut is_ending = false;
        loop {
            tokio::select! {
                biased;
                Some(event) = events.next() => log.hear(&event).await,
                Some(note) = noted.recv() => log.note(&note),
                _ = &mut was_told, if !is_ending => {
                    is_ending = true;
                    log.ending(args);
                }
                served = &mut serving => break served,
            }
        }
    };
    while let Some(event) = events.try_next() {
        log.hear(&event).await;
    }
    while let Ok(note) = noted.try_recv() {
        log.note(&note);
    }
    if was_told.try_recv().is_ok() {
        log.ending(args);
    }
    let report = served.map_err(|error| engine_error(&error));
    if let Ok(report) = &report {
        log.ended(report);
    }
    tokio::select! {
        () = engine.clone().close() => {}
        () = world.clock.sleep_ms(CLOSE_WITHIN_MS) => tracing::warn!("the state database is held by another process: this one does not sign off"),
    }
    report.map(|_| Exit::Done)
}

/// What the daemon writes.
struct Log<'a> {
    world: &'a World,
    out: Output,
    is_stream: bool,
    engine: &'a Engine,
    /// What each run at work is, as a person names it.
    titles: HashMap<RunId, Title>,
}

#[derive(Clone)]
struct Title {
    workflow: String,
    product: Option<String>,
}

impl std::fmt::Display for Title {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.workflow)?;
        self.product.iter().try_for_each(|product| write!(f, " {product}"))
    }
}

impl Log<'_> {
    /// A line, or an object of the stream.
    fn write(&self, at_ms: i64, event: &str, line: &str, mut fields: Value) {
        if !self.is_stream {
            self.out.line(format!("{}  {line}", moment(at_ms)).trim_end());
            return;
        }
        if let Some(fields) = fields.as_object_mut() {
            fields.insert("event".to_owned(), event.into());
            fields.insert("at".to_owned(), json!(catalog_rules::instant::Instant::from_ms(at_ms)));
        }
        self.out.stream("serve", fields);
    }

    fn now_ms(&self) -> i64 {
        self.world.clock.now_ms()
    }

    fn began(&self, args: &Serve) {
        let state = self.world.config.state.display().to_string();
        let line = format!(
            "{:<11} process {}, state {state}, {} at work at once at most",
            "serving",
            std::process::id(),
            args.in_flight
        );
        let fields = json!({ "pid": std::process::id(), "state_dir": state, "in_flight": args.in_flight });
        self.write(self.now_ms(), "serving", &line, fields);
    }

    fn ending(&self, args: &Serve) {
        let line = format!(
            "{:<11} nothing more is taken; steps at work have {} s to end; a second signal ends it at once",
            "ending", args.grace
        );
        self.write(self.now_ms(), "ending", &line, json!({ "grace_s": args.grace }));
    }

    fn ended(&self, report: &ServeReport) {
        let counted = [
            (report.taken, "taken"),
            (report.taken_over, "taken over"),
            (report.succeeded, "succeeded"),
            (report.failed, "failed"),
            (report.blocked, "blocked"),
            (report.cancelled, "cancelled"),
            (report.paused, "paused"),
            (report.given_back, "given back"),
            (report.fenced, "taken over by another process"),
            (report.left, "left at work for the next owner"),
        ];
        let told: Vec<_> =
            counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        let told = if told.is_empty() { "no run".to_owned() } else { told.join(", ") };
        self.write(self.now_ms(), "ended", &format!("{:<11} {told}", "ended"), json!({ "report": report }));
        self.out.document("serve", json!({ "report": report }));
    }

    fn note(&self, note: &Note) {
        match note {
            Note::Fired(fired) => self.fired(fired),
            Note::Purged(report) if report.runs == 0 && report.idempotency_keys == 0 => {}
            Note::Purged(report) => self.purged(report),
        }
    }

    fn fired(&self, fired: &Fired) {
        let Fired { schedule, tick, due_at_ms, outcome } = fired;
        let (became, run_id, holder) = match outcome {
            FiredOutcome::Started(run_id) => (format!("run {run_id} is in the queue"), Some(run_id), None),
            FiredOutcome::Held { holder } => (format!("not started: run {holder} has its key"), None, Some(holder)),
        };
        let fields = json!({
            "schedule": schedule,
            "tick": tick.to_string(),
            "due_at": catalog_rules::instant::Instant::from_ms(*due_at_ms),
            "run_id": run_id.map(ToString::to_string),
            "holder": holder.map(ToString::to_string),
        });
        let line = format!("{:<11} {schedule:<18}  tick {tick}: {became}", "fired");
        self.write(self.now_ms(), "schedule_fired", &line, fields);
    }

    fn purged(&self, report: &PurgeReport) {
        let PurgeReport { runs, steps, idempotency_keys, .. } = report;
        let line = format!("{:<11} {runs} runs with {steps} steps, {idempotency_keys} idempotency keys", "purged");
        self.write(self.now_ms(), "purged", &line, json!({ "report": report }));
    }

    async fn hear(&mut self, event: &Event) {
        let (at_ms, run_id) = (event.at_ms, event.run_id);
        match &event.kind {
            EventKind::RunStarted { workflow } => {
                self.begin(at_ms, run_id, workflow, None).await;
            }
            EventKind::RunTakenOver { workflow, epoch } => {
                self.begin(at_ms, run_id, workflow, Some(*epoch)).await;
            }
            EventKind::StepStarted { .. } | EventKind::StepProgress { .. } | EventKind::StepReplayed { .. } => {}
            EventKind::StepSucceeded { step, attempt, duration_us, output, .. } => {
                let what = format!("{:>8}   {}", duration(*duration_us), summary(step, output));
                let fields = json!({ "attempt": attempt, "duration_us": duration_us, "output": output });
                self.step(at_ms, run_id, "step_succeeded", step, &what, fields);
                for finding in findings(step, output) {
                    let fields = json!({ "finding": finding });
                    self.step(at_ms, run_id, "finding", step, &format!("{:>8}   note: {finding}", ""), fields);
                }
            }
            EventKind::StepRetrying { step, attempt, duration_us, failure, delay_ms, .. } => {
                let what = format!(
                    "{:>8}   attempt {attempt} failed, again in {}: {}",
                    duration(*duration_us),
                    duration(delay_ms.saturating_mul(1_000)),
                    failure.message
                );
                let fields = json!({
                    "attempt": attempt, "duration_us": duration_us, "failure": failure, "delay_ms": delay_ms,
                });
                self.step(at_ms, run_id, "step_retrying", step, &what, fields);
            }
            EventKind::StepFailed { step, attempt, duration_us, failure, .. } => {
                let what = format!("{:>8}   failed: {}", duration(*duration_us), failure.message);
                let fields = json!({ "attempt": attempt, "duration_us": duration_us, "failure": failure });
                self.step(at_ms, run_id, "step_failed", step, &what, fields);
            }
            EventKind::RunEnded { state, failure } => self.end(at_ms, run_id, *state, failure.as_ref()).await,
        }
    }

    async fn begin(&mut self, at_ms: i64, run_id: RunId, workflow: &str, epoch: Option<i64>) {
        // Only for the line: a run is told of without its product rather than not at all.
        let product = self.engine.reader().row(run_id).await.ok().and_then(|run| run.labels.get("product").cloned());
        let title = Title { workflow: workflow.to_owned(), product };
        let (event, what) = match epoch {
            None => ("run_started", "taken"),
            Some(_) => ("run_taken_over", "taken over"),
        };
        let mut fields = run_fields(run_id, Some(&title));
        if let (Some(fields), Some(epoch)) = (fields.as_object_mut(), epoch) {
            fields.insert("epoch".to_owned(), epoch.into());
        }
        self.write(at_ms, event, &format!("{what:<11} {title:<18}  run {run_id}", title = title.to_string()), fields);
        self.titles.insert(run_id, title);
    }

    fn step(&self, at_ms: i64, run_id: RunId, event: &str, step: &str, what: &str, more: Value) {
        let title = self.titles.get(&run_id);
        let name = title.map(Title::to_string).unwrap_or_else(|| run_id.to_string());
        let mut fields = run_fields(run_id, title);
        if let (Some(fields), Value::Object(more)) = (fields.as_object_mut(), more) {
            fields.insert("step".to_owned(), step.into());
            fields.extend(more);
        }
        self.write(at_ms, event, &format!("{:<11} {name:<18}  {step:<17}{what}", ""), fields);
    }

    async fn end(&mut self, at_ms: i64, run_id: RunId, state: RunState, failure: Option<&Failure>) {
        let title = self.titles.remove(&run_id);
        let name = title.as_ref().map(Title::to_string).unwrap_or_default();
        let what = match state {
            RunState::Succeeded => "done".to_owned(),
            RunState::Queued
            | RunState::Running
            | RunState::Waiting
            | RunState::Paused
            | RunState::Blocked
            | RunState::Failed
            | RunState::Cancelled => state.to_string(),
        };
        let mut line = format!("{what:<11} {name:<18}  run {run_id}");
        if let Some(failure) = failure {
            line.push_str(&format!("  {}: {}", failure.code, failure.message.lines().next().unwrap_or_default()));
            if let Some(hint) = &failure.hint {
                line.push_str(&format!("; {}", with_run(hint, run_id)));
            }
        }
        let mut fields = run_fields(run_id, title.as_ref());
        if let Some(fields) = fields.as_object_mut() {
            fields.insert("state".to_owned(), state.to_string().into());
            fields.insert("failure".to_owned(), json!(failure));
        }
        self.write(at_ms, "run_ended", &line, fields);
        if state == RunState::Cancelled {
            self.tell_what_is_left(at_ms, run_id).await;
        }
    }

    /// What a cancelled publish leaves in the catalog. The daemon goes on where that cannot be told.
    async fn tell_what_is_left(&self, at_ms: i64, run_id: RunId) {
        match take_back(self.world, &self.engine.reader(), run_id).await {
            Ok(Some(remains)) => {
                let (edition, versions) = (remains.edition(), remains.versions());
                let kind = if edition.is_some() { "edition_left" } else { "versions_left" };
                let fields = json!({ "run_id": run_id.to_string(), "edition": edition, "versions": versions });
                self.write(at_ms, kind, &format!("{:<11} {}", "", remains.text()), fields);
            }
            Ok(None) => {}
            Err(ended) => tracing::warn!(
                %run_id,
                "what the cancelled run left in the catalog cannot be told: {}; its next publish looks again",
                ended.failure.message
            ),
        }
    }
}

fn run_fields(run_id: RunId, title: Option<&Title>) -> Value {
    json!({
        "run_id": run_id.to_string(),
        "workflow": title.map(|title| &title.workflow),
        "product": title.and_then(|title| title.product.as_ref()),
    })
}
