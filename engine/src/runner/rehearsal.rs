//! Whether this program would go on with a run that another one recorded.

use std::sync::Arc;

use engine_rules::clock::Clock;
use engine_rules::context::Interrupt;
use engine_rules::digest::canonical_json;
use engine_rules::failure::Failure;
use engine_rules::limits::bounded;
use engine_rules::position::Position;
use engine_rules::state::{RunState, StepState};
use serde::{Deserialize, Serialize};

use super::{definition_missing, ended_early};
use crate::catch::Caught;
use crate::context::{End, EngineContext, Mode, RunHandle, operator};
use crate::control::RunControl;
use crate::engine::Inner;
use crate::id::RunId;
use crate::journal::Recorded;
use crate::read::{RunDetail, RunRow, StepRow};
use crate::registry::{Registry, WorkflowEnd, panicked};
use crate::slots::Slot;

/// What a rehearsal needs of a run. A [`RunDetail`] has it, and so has the JSON of an exported run, whatever else it holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// The run.
    pub run: RunRow,
    /// Its steps, in the order of their places.
    pub steps: Vec<StepRow>,
}

impl From<RunDetail> for History {
    fn from(detail: RunDetail) -> Self {
        Self { run: detail.run, steps: detail.steps }
    }
}

/// What a rehearsal came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rehearsal {
    /// The run.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow: String,
    /// The definition version that it began under.
    pub version: u32,
    /// How many things the journal holds of it, without abandoned iterations.
    pub recorded: usize,
    /// How many of them, from the first on, the workflow asks for as they are recorded.
    pub agreed: usize,
    /// The place and the label of the last of these.
    pub last: Option<(String, String)>,
    /// Where this program would not go on as the journal has it.
    pub difference: Option<Difference>,
}

/// Why this program would not go on with a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What the run would be blocked with: both sides are in its message.
    pub failure: Failure,
    /// At which step, where it is at one.
    pub step: Option<String>,
}

impl Registry {
    /// Runs the definition that `history` began under against what it recorded, and says whether it asks for the same and,
    /// for a run that ended, whether it ends so. Nothing is carried out and nothing written; no state is needed. Needs a
    /// tokio runtime.
    pub async fn rehearse(&self, clock: Arc<dyn Clock>, history: &History) -> Rehearsal {
        let run = &history.run;
        let kept: Vec<&StepRow> = history.steps.iter().filter(|step| step.state != StepState::Abandoned).collect();
        let mut rehearsal = Rehearsal {
            run_id: run.run_id,
            workflow: run.workflow.clone(),
            version: run.version,
            recorded: kept.len(),
            agreed: 0,
            last: None,
            difference: None,
        };
        let Some(function) = self.find_workflow(&run.workflow, run.version) else {
            let failure = definition_missing(self, &run.workflow, run.version);
            rehearsal.difference = Some(Difference { failure, step: None });
            return rehearsal;
        };
        let inner = Arc::new(Inner::without_state(self.clone(), clock));
        let handle = looked_at(run.run_id, run.workflow.clone(), run.version, canonical_json(&run.input));
        let recorded = kept.iter().map(|step| recorded(step)).collect();
        let input = handle.input.clone();
        let mut ctx = EngineContext::new(inner, handle, recorded).with(Mode::Rehearsal, None);
        let returned = Caught(function(&mut ctx, &input)).await;
        rehearsal.agreed = rehearsal.recorded - ctx.left();
        rehearsal.last =
            rehearsal.agreed.checked_sub(1).map(|last| (kept[last].position.clone(), kept[last].label.clone()));
        rehearsal.difference = match ctx.end.take() {
            Some(End::Blocked { failure, step }) => Some(Difference { failure, step }),
            Some(End::Rehearsed { asks_for }) => goes_on(history, &asks_for),
            Some(End::Engine(error)) => Some(at_no_step(engine_rules::failure::ActivityError::to_failure(&error))),
            Some(End::Cancelled | End::Paused | End::Released | End::Fenced) => None,
            None => ends(history, &ctx, returned),
        };
        rehearsal
    }
}

/// A run that is only looked at.
pub(super) fn looked_at(run_id: RunId, workflow: String, version: u32, input: String) -> RunHandle {
    RunHandle {
        run_no: 0,
        run_id,
        epoch: 0,
        workflow,
        version,
        input,
        carry_before_top: None,
        fresh: false,
        crashed: false,
        resumed: false,
        control: Arc::new(RunControl::default()),
        recorded: None,
        slot: Slot::default(),
    }
}

fn recorded(step: &StepRow) -> Recorded {
    Recorded {
        position: Position { top: step.top, iteration: step.iteration, sub: step.sub },
        kind: step.kind.clone(),
        name: step.name.clone(),
        section: step.section.clone(),
        state: step.state,
        input_digest: step.input_digest.clone(),
        output: step.output.as_ref().map(ToString::to_string),
        failure: step.failure.clone(),
        attempt: step.attempt,
        forgiven: step.forgiven,
        next_attempt_at_ms: step.next_attempt_at_ms,
        started_at_ms: step.started_at_ms,
        duration_us: step.duration_us,
        carried_from: step.carried_from.clone(),
    }
}

fn at_no_step(failure: Failure) -> Difference {
    Difference { failure, step: None }
}

fn mismatch(message: String) -> Option<Difference> {
    let hint = "a definition that asks for other things gets a new version, beside the one that old runs began under";
    Some(at_no_step(operator("engine.replay_mismatch", message, hint)))
}

/// The workflow asks for more than is recorded: so does a run that has not ended, or was ended by a person.
fn goes_on(history: &History, asks_for: &str) -> Option<Difference> {
    match history.run.state {
        RunState::Succeeded | RunState::Failed => mismatch(format!(
            "the workflow does not end where the journal has its end: recorded the end, requested {asks_for}"
        )),
        RunState::Queued
        | RunState::Running
        | RunState::Waiting
        | RunState::Paused
        | RunState::Blocked
        | RunState::Cancelled => None,
    }
}

/// The workflow returned.
fn ends(
    history: &History,
    ctx: &EngineContext,
    returned: Result<Result<String, WorkflowEnd>, String>,
) -> Option<Difference> {
    let run = &history.run;
    let recorded = run.failure.as_ref().map_or_else(|| run.state.to_string(), ToString::to_string);
    match returned {
        Err(panic) => Some(at_no_step(panicked(&panic))),
        Ok(Err(WorkflowEnd::Unfit(failure))) if run.failure.as_ref() == Some(&failure) => None,
        Ok(Err(WorkflowEnd::Unfit(failure))) => Some(at_no_step(failure)),
        Ok(Ok(_) | Err(WorkflowEnd::Interrupt(_))) if ctx.left() > 0 => {
            ctx.left_over().map(|left| at_no_step(ended_early(&left)))
        }
        Ok(Ok(_)) => match (run.state, ctx.open_section()) {
            (_, Some(section)) => mismatch(format!("the workflow ended within its section {section}")),
            (RunState::Failed, None) => mismatch(format!(
                "the workflow ends otherwise than the journal has it: recorded the failure {recorded}, requested success"
            )),
            (_, None) => None,
        },
        // As it would be recorded.
        Ok(Err(WorkflowEnd::Interrupt(Interrupt::Failed(failure)))) => match run.state {
            RunState::Succeeded => mismatch(format!(
                "the workflow ends otherwise than the journal has it: recorded success, requested the failure {failure}"
            )),
            RunState::Failed if run.failure.as_ref() != Some(&bounded(failure.clone())) => mismatch(format!(
                "the workflow ends otherwise than the journal has it: recorded the failure {recorded}, requested the \
                 failure {failure}"
            )),
            RunState::Failed
            | RunState::Queued
            | RunState::Running
            | RunState::Waiting
            | RunState::Paused
            | RunState::Blocked
            | RunState::Cancelled => None,
        },
        Ok(Err(WorkflowEnd::Interrupt(Interrupt::Cancelled))) if run.state == RunState::Cancelled => None,
        Ok(Err(WorkflowEnd::Interrupt(Interrupt::Cancelled | Interrupt::Suspended))) => {
            mismatch(format!("the workflow stopped, but nothing told it to: recorded {recorded}"))
        }
    }
}
