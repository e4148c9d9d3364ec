//! Who works on which run, and carrying it out.

mod claim;
pub(crate) mod crew;
pub(crate) mod family;
mod interrupted;
mod orders;
mod owners;
mod rehearsal;
mod replay;
mod requeue;

use std::sync::Arc;

use engine_rules::context::Interrupt;
use engine_rules::crash;
use engine_rules::failure::{Disposition, Failure};
use engine_rules::limits::bounded;
use engine_rules::state::{RunEvent, RunState};
use serde_json::Value;

use crate::catch::Caught;
use crate::context::{Carry, End, EngineContext, Mode, RunHandle, operator};
use crate::control::RunControl;
use crate::engine::{Inner, Outcome};
use crate::error::{EngineError, WriteError};
use crate::events::EventKind;
use crate::id::RunId;
use crate::journal;
use crate::registry::{INPUT_UNREADABLE, Registry, WorkflowEnd, panicked};
use crate::writer::{RunChange, RunWrite};

pub(crate) use claim::{interrupted, resume, take_over};
pub(crate) use crew::{drain, recover};
pub(crate) use interrupted::Whose;
pub(crate) use orders::{cancel, pause, signal};
pub(crate) use owners::{clear_dead_locks, end_owner, keep_alive, register_owner};
pub use rehearsal::{Difference, History, Rehearsal};
pub use replay::{PlannedStep, ReplayFrom, ReplayPlan};

/// Marks a run as worked on in this process, for as long as it is held.
struct Active {
    inner: Arc<Inner>,
    run_id: RunId,
}

impl Active {
    fn enter(inner: &Arc<Inner>, run_id: RunId, control: Arc<RunControl>) -> Result<Self, EngineError> {
        let mut active = inner.active();
        if active.contains_key(&run_id) {
            return Err(EngineError::AlreadyDriven { run: run_id });
        }
        active.insert(run_id, control);
        Ok(Self { inner: inner.clone(), run_id })
    }
}

impl Active {
    /// Orders for the run reach `control` from now on.
    fn listen(&self, control: Arc<RunControl>) {
        self.inner.active().insert(self.run_id, control);
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.inner.active().remove(&self.run_id);
    }
}

pub(crate) async fn drive(inner: &Arc<Inner>, run_id: RunId) -> Result<Outcome, EngineError> {
    let (active, handle) = loop {
        // First of all, so that of two who drive a run at once one is refused.
        let active = Active::enter(inner, run_id, Arc::default())?;
        match claim::claim(inner, run_id).await {
            Ok(claim::Claimed::Mine(handle)) => break (active, *handle),
            Ok(claim::Claimed::Ended(outcome)) => return Ok(outcome),
            Err(error) => {
                drop(active);
                // Whoever took the run meanwhile found it marked, and left it to us.
                if !inner.ready().contains_key(&run_id) {
                    return Err(error);
                }
            }
        }
    };
    active.listen(handle.control.clone());
    // A task of its own, so that the run goes on when nobody waits for it any more.
    let task = tokio::spawn(run_to_end(active, handle));
    task.await.map_err(|_| EngineError::Closed)?
}

async fn run_to_end(active: Active, handle: RunHandle) -> Result<Outcome, EngineError> {
    let inner = active.inner.clone();
    let run_id = handle.run_id;
    let (workflow, epoch) = (handle.workflow.clone(), handle.epoch);
    inner.emit(run_id, || {
        if handle.fresh { EventKind::RunStarted { workflow } } else { EventKind::RunTakenOver { workflow, epoch } }
    });
    let outcome = carry_out(inner.clone(), handle).await;
    // The run is no longer worked on before those who watch hear of it.
    drop(active);
    if let Ok(outcome) = &outcome {
        let ended = match outcome {
            Outcome::Succeeded(_) => Some((RunState::Succeeded, None)),
            Outcome::Failed { failure, .. } => Some((RunState::Failed, Some(failure.clone()))),
            Outcome::Blocked { failure, .. } => Some((RunState::Blocked, Some(failure.clone()))),
            Outcome::Cancelled => Some((RunState::Cancelled, None)),
            Outcome::Paused => Some((RunState::Paused, None)),
            Outcome::Fenced | Outcome::Released => None,
        };
        if let Some((state, failure)) = ended {
            inner.emit(run_id, || EventKind::RunEnded { state, failure });
        }
    }
    outcome
}

async fn carry_out(inner: Arc<Inner>, mut handle: RunHandle) -> Result<Outcome, EngineError> {
    let recorded = match (handle.fresh, handle.recorded.take()) {
        (true, _) => Vec::new(),
        (false, Some(recorded)) => recorded,
        (false, None) => journal::load(&inner.readers, inner.clock.as_ref(), handle.run_no).await?,
    };
    let carry = origin_of(&inner, &handle).await?;
    let fresh = handle.fresh;
    let (workflow, version, input) = (handle.workflow.clone(), handle.version, handle.input.clone());
    let mut ctx = EngineContext::new(inner.clone(), handle, recorded).with(Mode::Live, carry);
    let Some(function) = inner.registry.find_workflow(&workflow, version) else {
        let failure = definition_missing(&inner.registry, &workflow, version);
        return block(&mut ctx, failure).await;
    };
    let returned = Caught(function(&mut ctx, &input)).await;
    if let Some(end) = ctx.end.take() {
        return ended(end);
    }
    if ctx.is_cleaning() {
        return end_cleaned(&mut ctx, returned).await;
    }
    match returned {
        Err(panic) => block(&mut ctx, panicked(&panic)).await,
        Ok(Ok(output)) => finish(&mut ctx, output).await,
        // A workflow may fail with words of its own, of any length.
        Ok(Err(WorkflowEnd::Interrupt(Interrupt::Failed(failure)))) => match failure.disposition {
            Disposition::Operator => block(&mut ctx, bounded(failure)).await,
            Disposition::Retry | Disposition::Terminal => fail(&mut ctx, bounded(failure)).await,
        },
        Ok(Err(WorkflowEnd::Interrupt(Interrupt::Suspended | Interrupt::Cancelled))) => {
            let failure = operator(
                "engine.suspended_without_cause",
                format!("the workflow {workflow} stopped, but nothing told it to"),
                "this is a fault of the program: report it",
            );
            block(&mut ctx, failure).await
        }
        // A new program that no longer reads the input of an old run must not end it, recorded steps or none, also where it
        // takes it from the queue.
        Ok(Err(WorkflowEnd::Unfit(failure))) if fresh && failure.code != INPUT_UNREADABLE => {
            fail(&mut ctx, failure).await
        }
        Ok(Err(WorkflowEnd::Unfit(failure))) => {
            let way_out = "go on with the program that began the run (jobctl runs resume RUN), or end this run and start \
                           a new one: jobctl runs cancel RUN --reason …";
            let hint = failure.hint.or_else(|| Some(way_out.to_owned()));
            block(&mut ctx, Failure { disposition: Disposition::Operator, hint, ..failure }).await
        }
    }
}

/// What a replay carries over; nothing where its origin was purged.
async fn origin_of(inner: &Inner, handle: &RunHandle) -> Result<Option<Carry>, EngineError> {
    let Some(before_top) = handle.carry_before_top else { return Ok(None) };
    let Some((number, origin)) = journal::origin(&inner.readers, inner.clock.as_ref(), handle.run_no).await? else {
        return Ok(None);
    };
    let rows = journal::load(&inner.readers, inner.clock.as_ref(), number).await?;
    Ok(Some(Carry::new(number, origin, rows, before_top, inner.registry.minted_by(&handle.workflow))))
}

/// The run was cancelled and its workflow has cleaned up: it ends as cancelled. Where the clean-up failed, that is kept.
async fn end_cleaned(
    ctx: &mut EngineContext,
    returned: Result<Result<String, WorkflowEnd>, String>,
) -> Result<Outcome, EngineError> {
    let failure = match returned {
        Ok(Ok(_)) | Ok(Err(WorkflowEnd::Interrupt(Interrupt::Cancelled | Interrupt::Suspended))) => None,
        Ok(Err(WorkflowEnd::Interrupt(Interrupt::Failed(failure)) | WorkflowEnd::Unfit(failure))) => Some(failure),
        Err(panic) => Some(panicked(&panic)),
    };
    let step = failure.as_ref().and_then(|_| ctx.failed_step.clone());
    let write = RunWrite::new(ctx.run.run_no, ctx.run.epoch);
    let _ = ctx.end_cancelled(write, failure, step).await;
    ctx.end.take().map_or(Err(EngineError::Closed), ended)
}

async fn finish(ctx: &mut EngineContext, output: String) -> Result<Outcome, EngineError> {
    if let Some(recorded) = ctx.left_over() {
        return block(ctx, ended_early(&recorded)).await;
    }
    if let Some(section) = ctx.open_section() {
        let failure = operator(
            "engine.open_section",
            format!("the workflow ended within its section {section}"),
            "this is a fault of the program: report it",
        );
        return block(ctx, failure).await;
    }
    let value = serde_json::from_str(&output).unwrap_or(Value::Null);
    match end(ctx, RunEvent::Succeed, Some(output), None, None).await? {
        true => Ok(Outcome::Succeeded(value)),
        false => Ok(Outcome::Fenced),
    }
}

pub(crate) fn definition_missing(registry: &Registry, workflow: &str, version: u32) -> Failure {
    operator(
        "engine.definition_missing",
        format!(
            "the run began under version {version} of the workflow {workflow}; this program has {:?}",
            registry.versions(workflow)
        ),
        "go on with a program that has that version (jobctl runs resume RUN), or end this run and start a new one: \
         jobctl runs cancel RUN --reason …",
    )
}

pub(crate) fn ended_early(recorded: &str) -> Failure {
    operator(
        "engine.replay_mismatch",
        format!(
            "the workflow ended before it asked for all that the journal holds: recorded {recorded}, requested the end"
        ),
        "go on with the program that began the run, or end this run and start a new one: \
         jobctl runs cancel RUN --reason …",
    )
}

async fn fail(ctx: &mut EngineContext, failure: Failure) -> Result<Outcome, EngineError> {
    let step = ctx.failed_step.clone();
    match end(ctx, RunEvent::Fail, None, Some(failure.clone()), step.clone()).await? {
        true => Ok(Outcome::Failed { failure, step }),
        false => Ok(Outcome::Fenced),
    }
}

async fn block(ctx: &mut EngineContext, failure: Failure) -> Result<Outcome, EngineError> {
    let write = RunWrite::new(ctx.run.run_no, ctx.run.epoch);
    let step = ctx.failed_step.clone();
    let _ = ctx.block(write, failure, step).await;
    ctx.end.take().map_or(Err(EngineError::Closed), ended)
}

fn ended(end: End) -> Result<Outcome, EngineError> {
    match end {
        End::Blocked { failure, step } => Ok(Outcome::Blocked { failure, step }),
        End::Cancelled => Ok(Outcome::Cancelled),
        End::Paused => Ok(Outcome::Paused),
        End::Released => Ok(Outcome::Released),
        End::Fenced => Ok(Outcome::Fenced),
        End::Engine(error) => Err(error),
        // Of a run that is only looked at: it has no outcome.
        End::Rehearsed { .. } => Err(EngineError::Closed),
    }
}

/// Records how the run ended; `false` when another owner was faster.
async fn end(
    ctx: &mut EngineContext,
    event: RunEvent,
    output: Option<String>,
    failure: Option<Failure>,
    failed_step: Option<String>,
) -> Result<bool, EngineError> {
    let state = ctx.state().after(event).map_err(|fault| EngineError::Corrupt {
        subject: format!("run {}", ctx.run.run_id),
        found: fault.to_string(),
        expected: "a transition of the engine's tables",
    })?;
    let mut write = RunWrite::new(ctx.run.run_no, ctx.run.epoch);
    let ended_at_ms = Some(ctx.inner.clock.now_ms());
    write.run = Some(RunChange { output, failure, failed_step, ended_at_ms, ..RunChange::to(state) });
    crash::point("engine.run_end.before");
    match ctx.inner.writer.write(write).await {
        Ok(()) => {
            crash::point("engine.run_end.after");
            Ok(true)
        }
        Err(WriteError::Fenced) => Ok(false),
        Err(WriteError::Engine(error)) => Err(error),
    }
}
