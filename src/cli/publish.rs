//! `jobctl run publish`: takes up what was interrupted, starts the run, stays with it.

use activities::publish::resolve_source;
use catalog_rules::contracts::operations::OperationOutput;
use catalog_rules::contracts::publish::{PublishInput, PublishOutput, ResolveSourceInput, ResolveSourceOutput};
use catalog_rules::ids::ProductId;
use engine::{Engine, Outcome, RunFilter, RunId, Start, StartRun};
use engine_rules::activity::ActivityContext;
use engine_rules::failure::{ActivityError as _, Disposition, Failure};
use engine_rules::state::RunState;
use serde_json::{Value, json};

use super::cancelled::{take_back, take_back_all};
use super::detach;
use super::recovery::recovered;
use crate::args::Publish;
use crate::exit::{Ended, Exit};
use crate::output::{Output, duration, grouped, short};
use crate::signals::told_to_end;
use crate::start::{Origin, publish_input, publish_run};
use crate::terminal::{Watcher, tell_operation, version_outcome};
use crate::wire::{World, engine_error};

/// How often a run that waits for another looks again.
const WAIT_MS: u64 = 250;

/// How often it is looked at a run that seems to have lost its process, before that is said.
const LOOKS: u32 = 4;

/// Publishes a product and stays with the run.
///
/// # Errors
/// Usage, a key held by another run, or what the engine fails with. A run that failed is told and gives its exit code.
pub async fn publish(world: &World, out: Output, args: Publish) -> Result<Exit, Ended> {
    let folder =
        std::env::current_dir().map_err(|error| Ended::usage(format!("the working folder cannot be told: {error}")))?;
    let origin = Origin {
        sources: &world.config.sources,
        zone: &world.config.time_zone,
        folder: &folder,
        actor: world.actor.clone(),
        reason: "jobctl run publish".to_owned(),
    };
    let input = publish_input(&args, &origin)?;
    let product_id = input.product_id.clone();
    activities::inventory::open_catalog(world.store.as_ref()).map_err(|error| Ended::from(error.to_failure()))?;
    let engine = world.engine().await?;
    if args.detach {
        take_back_all(world, &engine.reader(), &product_id).await?;
        let run = publish_run(&args, &input, &origin)?;
        return match detach::enqueue(&engine, StartRun { key_policy: detach::policy(args.wait), ..run }).await? {
            Ok(run_id) => Ok(detach::tell(out, "run.publish", &format!("publish {product_id}"), run_id)),
            Err(holder) => Err(busy(&engine, &product_id, holder).await?),
        };
    }
    if let Some(exit) = take_up_interrupted(world, &engine, out, &input).await? {
        return Ok(exit);
    }
    let mut told = None;
    let run_id = loop {
        take_back_all(world, &engine.reader(), &product_id).await?;
        let run = publish_run(&args, &input, &origin)?;
        match engine.start(run).await.map_err(|error| engine_error(&error))? {
            Start::Started(started) => break started.run_id,
            Start::Busy { holder } => {
                let busy = busy(&engine, &product_id, holder).await?;
                if !args.wait || busy.exit == Exit::Blocked {
                    return Err(busy);
                }
                if told != Some(holder) {
                    out.line(format!("waits for run {holder}: jobctl runs show {holder} says where it stands"));
                    told = Some(holder);
                }
            }
        }
        world.clock.sleep_ms(WAIT_MS).await;
        if let Some(exit) = take_up_interrupted(world, &engine, out, &input).await? {
            return Ok(exit);
        }
    };
    let ended = stay(world, &engine, out, run_id, &format!("publish {product_id}")).await?;
    out.document("run.publish", ended.document(&[]));
    Ok(ended.exit)
}

/// What a command ends with that finds the product's key held by the run `holder`.
///
/// # Errors
/// What the engine fails with.
pub async fn busy(engine: &Engine, product_id: &ProductId, holder: RunId) -> Result<Ended, Ended> {
    let again = format!(
        "jobctl runs show {holder} says where it stands; with --wait, jobctl run publish --product {product_id} waits for it \
         to end"
    );
    held(engine, &Held { subject: format!("product {product_id}"), again }, holder).await
}

/// A concurrency key that is held, in words.
pub struct Held {
    /// What the key keeps apart.
    pub subject: String,
    /// What to do while the holder is at work.
    pub again: String,
}

/// What a command ends with that finds its key held by the run `holder`.
///
/// # Errors
/// What the engine fails with.
pub async fn held(engine: &Engine, key: &Held, holder: RunId) -> Result<Ended, Ended> {
    let Held { subject, again } = key;
    let mut looks = 0;
    let (run, is_alive) = loop {
        let run = engine.reader().run(holder).await.map_err(|error| engine_error(&error))?.run;
        let is_alive = run.owner.as_ref().is_some_and(|owner| owner.alive);
        let is_left = matches!(run.state, RunState::Running | RunState::Waiting) && !is_alive;
        // A run that ends, or changes hands, has no owner for a moment.
        looks += 1;
        if !is_left || looks == LOOKS {
            break (run, is_alive);
        }
        engine.clock().sleep_ms(WAIT_MS).await;
    };
    let stands = match run.state {
        RunState::Blocked | RunState::Paused => Some(run.state.to_string()),
        RunState::Running | RunState::Waiting if !is_alive => Some("interrupted: its process is gone".to_owned()),
        RunState::Queued
        | RunState::Running
        | RunState::Waiting
        | RunState::Succeeded
        | RunState::Failed
        | RunState::Cancelled => None,
    };
    let (code, message, disposition, hint, exit) = match stands {
        Some(stands) => (
            "engine.key_blocked",
            format!("run {holder} of {subject} is {stands}"),
            Disposition::Operator,
            format!(
                "jobctl runs show {holder} says why; jobctl runs resume {holder} goes on with it, jobctl runs cancel \
                 {holder} --reason … ends it"
            ),
            Exit::Blocked,
        ),
        None if run.state == RunState::Queued => (
            "engine.key_held",
            format!("run {holder} of {subject} waits in the queue"),
            Disposition::Retry,
            format!(
                "jobctl serve carries it out, and jobctl runs watch {holder} follows it; jobctl runs cancel {holder} \
                 --reason … ends it"
            ),
            Exit::Busy,
        ),
        None => (
            "engine.key_held",
            format!("run {holder} is at work on {subject}"),
            Disposition::Retry,
            again.clone(),
            Exit::Busy,
        ),
    };
    let failure = Failure { code: code.to_owned(), message, disposition, hint: Some(hint) };
    Ok(Ended { failure, exit })
}

/// Finishes the product's runs that a dead process left. `Some` when one of them did what is asked for now.
async fn take_up_interrupted(
    world: &World,
    engine: &Engine,
    out: Output,
    input: &PublishInput,
) -> Result<Option<Exit>, Ended> {
    let filter = RunFilter {
        states: vec![RunState::Running, RunState::Waiting],
        workflow: Some(workflows::publish::NAME.to_owned()),
        labels: [("product".to_owned(), input.product_id.to_string())].into(),
        ..RunFilter::default()
    };
    let mut runs = engine.reader().runs(&filter).await.map_err(|error| engine_error(&error))?;
    runs.sort_by_key(|run| run.created_at_ms);
    for run in runs {
        if run.owner.as_ref().is_some_and(|owner| owner.alive) {
            continue;
        }
        match engine.take_over(run.run_id).await {
            Ok(()) => {}
            // Somebody else was faster: it is theirs now.
            Err(engine::EngineError::OwnedElsewhere { .. } | engine::EngineError::WrongState { .. }) => continue,
            Err(error) => return Err(engine_error(&error)),
        }
        let ended =
            stay(world, engine, out, run.run_id, &format!("publish {} (interrupted)", input.product_id)).await?;
        if ended.exit == Exit::Done && same_work(world, engine, run.run_id, &run.input, input).await? {
            out.document("run.publish", ended.document(&[run.run_id]));
            return Ok(Some(Exit::Done));
        }
        if ended.exit == Exit::Blocked {
            out.document("run.publish", ended.document(&[run.run_id]));
            return Ok(Some(Exit::Blocked));
        }
    }
    Ok(None)
}

/// Whether the run that was taken up published what is asked for: the same source, with the bytes that it has now.
async fn same_work(
    world: &World,
    engine: &Engine,
    run_id: RunId,
    run_input: &Value,
    input: &PublishInput,
) -> Result<bool, Ended> {
    let Ok(theirs) = serde_json::from_value::<PublishInput>(run_input.clone()) else { return Ok(false) };
    if theirs.source != input.source || theirs.lifecycle != input.lifecycle {
        return Ok(false);
    }
    let detail = engine.reader().run(run_id).await.map_err(|error| engine_error(&error))?;
    let recorded = detail.steps.iter().find(|step| step.name == "resolve_source").and_then(|step| step.output.clone());
    let Some(Ok(recorded)) = recorded.map(serde_json::from_value::<ResolveSourceOutput>) else { return Ok(false) };
    let asked = ResolveSourceInput { product_id: input.product_id.clone(), source: input.source.clone() };
    let deps = world.publish_deps();
    let now = tokio::task::spawn_blocking(move || resolve_source(&deps, &ActivityContext::detached(), asked)).await;
    Ok(matches!(now, Ok(Ok(now)) if now.sha256 == recorded.sha256))
}

/// How a run ended, as a command tells it.
pub struct RunEnd {
    run_id: RunId,
    state: &'static str,
    output: Option<Value>,
    failure: Option<Failure>,
    /// The exit code.
    pub exit: Exit,
}

impl RunEnd {
    /// The run as a document.
    pub fn document(&self, taken_up: &[RunId]) -> Value {
        json!({
            "run_id": self.run_id.to_string(),
            "state": self.state,
            "output": self.output,
            "failure": self.failure,
            "exit_code": self.exit as u8,
            "taken_up": taken_up.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }
}

/// Drives a run in this process, showing each step, and tells how it ended.
///
/// # Errors
/// What the engine fails with.
pub async fn stay(world: &World, engine: &Engine, out: Output, run_id: RunId, title: &str) -> Result<RunEnd, Ended> {
    let mut events = engine.subscribe();
    let begun_us = world.clock.monotonic_us();
    out.line(format!("{title}  run {run_id}"));
    let mut watcher = Watcher::new(out, run_id.to_string());
    let driven = {
        let drive = engine.drive(run_id);
        let mut drive = std::pin::pin!(drive);
        let mut told = told_to_end()?;
        let mut is_told = false;
        loop {
            tokio::select! {
                biased;
                Some(event) = events.next() => watcher.show(&event),
                driven = &mut drive => break driven,
                Ok(()) = &mut told, if !is_told => {
                    is_told = true;
                    watcher.clear();
                    out.line("interrupted: the run is given back after the step at work; interrupt again to end at once");
                    engine.begin_drain();
                }
            }
        }
    };
    while let Some(event) = events.try_next() {
        watcher.show(&event);
    }
    watcher.clear();
    let outcome = driven.map_err(|error| engine_error(&error))?;
    if matches!(outcome, Outcome::Cancelled)
        && let Some(remains) = take_back(world, &engine.reader(), run_id).await?
    {
        remains.tell(out);
    }
    let took = duration(world.clock.monotonic_us().saturating_sub(begun_us));
    Ok(tell(out, run_id, outcome, &took))
}

/// Says how the run left the process that worked on it, `took` after it began.
pub fn tell(out: Output, run_id: RunId, outcome: Outcome, took: &str) -> RunEnd {
    let end = |state, output, failure, exit| RunEnd { run_id, state, output, failure, exit };
    match outcome {
        Outcome::Succeeded(output) => {
            if let Ok(done) = serde_json::from_value::<OperationOutput>(output.clone()) {
                let exit = tell_operation(out, &done);
                out.line(format!("{} in {took}: {}", out.green("done"), version_outcome(&done.version)));
                return end("succeeded", Some(output), None, exit);
            }
            if let Some(what) = recovered(&output) {
                out.line(format!("{} in {took}: {what}", out.green("done")));
                return end("succeeded", Some(output), None, Exit::Done);
            }
            let what = serde_json::from_value::<PublishOutput>(output.clone()).map(|it| {
                format!(
                    "{} edition {} is {} in version {}, {} rows",
                    it.product_id,
                    it.edition_id,
                    it.state,
                    it.seq,
                    grouped(it.rows)
                )
            });
            out.line(format!("{} in {took}: {}", out.green("done"), what.unwrap_or_default()));
            end("succeeded", Some(output), None, Exit::Done)
        }
        Outcome::Failed { mut failure, step } => {
            failure.hint = failure.hint.map(|hint| with_run(&hint, run_id));
            out.line(format!("{} after {took}{}", out.red("failed"), at(step.as_deref())));
            if !out.is_json() {
                out.ended(&Ended::from(failure.clone()));
            }
            let exit = Exit::of(&failure);
            end("failed", None, Some(failure), exit)
        }
        Outcome::Blocked { mut failure, step } => {
            out.line(format!("{} after {took}{}", out.red("blocked"), at(step.as_deref())));
            let next = format!("then: jobctl runs resume {}", short(&run_id.to_string()));
            failure.hint = Some(match failure.hint.map(|hint| with_run(&hint, run_id)) {
                Some(hint) if hint.contains("runs resume") => hint,
                Some(hint) => format!("{hint}; {next}"),
                None => next,
            });
            if !out.is_json() {
                out.ended(&Ended::from(failure.clone()).with_exit(Exit::Blocked));
            }
            end("blocked", None, Some(failure), Exit::Blocked)
        }
        Outcome::Cancelled => {
            out.line("cancelled");
            end("cancelled", None, None, Exit::Failed)
        }
        Outcome::Paused => {
            out.line("paused");
            out.line(format!("  jobctl runs resume {run_id} --reason … lets it go on"));
            end("paused", None, None, Exit::Blocked)
        }
        Outcome::Released => {
            out.line(format!("given back: jobctl runs resume {run_id} goes on with it, or jobctl serve does"));
            end("released", None, None, Exit::Failed)
        }
        Outcome::Fenced => {
            out.line("another process took the run over");
            end("fenced", None, None, Exit::Busy)
        }
    }
}

/// A hint's commands with the run's id in place of `RUN`, as a recorded hint has it, so that they can be copied.
pub fn with_run(hint: &str, run_id: RunId) -> String {
    let words: Vec<String> = hint
        .split(' ')
        .map(|word| match word.strip_prefix("RUN") {
            Some(rest) if !rest.starts_with(|c: char| c.is_alphanumeric()) => format!("{run_id}{rest}"),
            Some(_) | None => word.to_owned(),
        })
        .collect();
    words.join(" ")
}

fn at(step: Option<&str>) -> String {
    step.map(|step| format!(" at {step}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_the_run_that_it_speaks_of() {
        let run: RunId = "01a22cee-31cf-7805-a9e4-541ecb41bbd5".parse().unwrap();
        assert_eq!(
            with_run("resume it (jobctl runs resume RUN), or jobctl runs cancel RUN --reason …; RUNNING", run),
            format!("resume it (jobctl runs resume {run}), or jobctl runs cancel {run} --reason …; RUNNING")
        );
    }
}
