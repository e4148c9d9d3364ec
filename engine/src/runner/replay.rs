//! A new run that begins at a step of one that ended (DESIGN §2.2, Replay).

use std::collections::BTreeSet;
use std::sync::Arc;

use engine_rules::crash;
use engine_rules::digest::{canonical_json, digest_text};
use engine_rules::limits::check_payload;
use engine_rules::state::RunState;
use serde_json::Value;
use sqlx::{Row as _, SqliteConnection};

use super::rehearsal::looked_at;
use crate::catch::Caught;
use crate::context::{Carry, End, EngineContext, Mode, Planning, RunHandle, SECTION_DIFFERS};
use crate::engine::{Engine, Inner, Mutation};
use crate::error::EngineError;
use crate::id::RunId;
use crate::journal;
use crate::read::{RunDetail, StepRow};
use crate::start::{Start, check_mutation};

/// From where a run is replayed, and with what.
#[derive(Debug, Clone)]
pub struct ReplayFrom {
    /// The step to begin at: its name, its label or its place, as the run asked for it. A step of a section stands for
    /// the section.
    pub step: String,
    /// The input; `None` is the origin's. The concurrency key and the labels stay the origin's, so it must be about the
    /// same thing.
    pub input: Option<Value>,
    /// Leaves the run in the queue for another process.
    pub detached: bool,
}

/// What a replay would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayPlan {
    /// The run to be replayed.
    pub origin_run_id: RunId,
    /// Its workflow.
    pub workflow: String,
    /// The definition version that the replay runs under: the newest.
    pub version: u32,
    /// The step that it begins at, by its label.
    pub from: String,
    /// What it asks for, in order, as far as that can be told before it is done.
    pub steps: Vec<PlannedStep>,
    /// Whether that is all. Otherwise more is carried out after it.
    pub is_whole: bool,
}

/// A step, or a section, of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// Its label.
    pub label: String,
    /// The run whose result is carried over; `None` where it is carried out.
    pub carried_from: Option<String>,
}

/// A replay that can be recorded.
struct Prepared {
    origin: RunDetail,
    version: u32,
    from: String,
    before_top: u32,
    input: String,
    planning: Planning,
    is_whole: bool,
}

impl Engine {
    /// What [`Engine::replay`] would carry over and what it would carry out. Nothing is recorded.
    ///
    /// # Errors
    /// As [`Engine::replay`].
    pub async fn plan_replay(&self, run_id: RunId, from: &ReplayFrom) -> Result<ReplayPlan, EngineError> {
        let prepared = prepare(self, run_id, from).await?;
        let steps = prepared.planning.steps.into_iter();
        Ok(ReplayPlan {
            origin_run_id: run_id,
            workflow: prepared.origin.run.workflow,
            version: prepared.version,
            from: prepared.from,
            steps: steps.map(|(label, carried_from)| PlannedStep { label, carried_from }).collect(),
            is_whole: prepared.is_whole,
        })
    }

    /// Records a new run that replays `run_id` from a step: of the same workflow, under this program's newest definition,
    /// with the same concurrency key and labels, and with a row in the audit trail of both. When it returns, the run
    /// survives a power cut; [`Engine::drive`] carries it out, or goes on with it.
    ///
    /// What the origin recorded before the step is carried over when the run asks for it: the same kind, name and input.
    /// A section is carried over whole. From the first thing on that is asked for with another input all is carried out
    /// anew, and where the replay begins at or before the step that uses an identity up
    /// ([`crate::Registry::mints`]), so is the step that mints it. A repeat starts a further run, or finds its key held.
    ///
    /// # Errors
    /// [`EngineError::NotEnded`], [`EngineError::PurgeBegun`], [`EngineError::UnknownStep`], [`EngineError::InputRefused`],
    /// [`EngineError::UnknownRun`], [`EngineError::UnknownWorkflow`], [`EngineError::PayloadTooLarge`],
    /// [`EngineError::TextTooLong`]; nothing is recorded then.
    pub async fn replay(&self, run_id: RunId, from: &ReplayFrom, by: &Mutation) -> Result<Start, EngineError> {
        check_mutation(by)?;
        let prepared = prepare(self, run_id, from).await?;
        record(&self.0, Arc::new(prepared), from.detached, by).await
    }
}

async fn prepare(engine: &Engine, run_id: RunId, from: &ReplayFrom) -> Result<Prepared, EngineError> {
    let inner = &engine.0;
    let origin = engine.reader().run(run_id).await?;
    if !origin.run.state.is_terminal() {
        return Err(EngineError::NotEnded { run: run_id, state: origin.run.state });
    }
    if origin.run.purge_begun_at_ms.is_some() {
        return Err(EngineError::PurgeBegun { run: run_id });
    }
    let workflow = &origin.run.workflow;
    let version = inner.newest_version(workflow)?;
    let (from_top, label) = step(&origin, &from.step)?;
    let input = canonical_json(from.input.as_ref().unwrap_or(&origin.run.input));
    check_payload("the input", input.len())?;
    let refused = |failure: engine_rules::failure::Failure| EngineError::InputRefused { found: failure.message };
    inner.registry.check_input(workflow, version, &input).map_err(refused)?;
    let number = journal::number(&inner.readers, inner.clock.as_ref(), run_id).await?;
    let number = number.ok_or_else(|| EngineError::UnknownRun { run: run_id.to_string() })?;
    let rows = journal::load(&inner.readers, inner.clock.as_ref(), number).await?;
    let mut before_top = from_top;
    loop {
        let carry = Carry::new(number, run_id, rows.clone(), before_top, inner.registry.minted_by(workflow));
        let handle = looked_at(run_id, workflow.clone(), version, input.clone());
        let (planning, is_whole) = plan(inner, handle, carry).await;
        // What an earlier step mints must be minted anew where a difference comes before its use.
        match planning.differs_at_top {
            Some(top) if top < before_top => before_top = top,
            Some(_) | None => {
                return Ok(Prepared { origin, version, from: label, before_top, input, planning, is_whole });
            }
        }
    }
}

/// Runs the workflow against the origin's results, as far as they tell what it asks for.
async fn plan(inner: &Arc<Inner>, handle: RunHandle, carry: Carry) -> (Planning, bool) {
    let Some(function) = inner.registry.find_workflow(&handle.workflow, handle.version) else {
        return (Planning::default(), false);
    };
    let input = handle.input.clone();
    let mut ctx =
        EngineContext::new(inner.clone(), handle, Vec::new()).with(Mode::Plan(Planning::default()), Some(carry));
    let returned = Caught(function(&mut ctx, &input)).await;
    let end = ctx.end.take();
    let is_whole = end.is_none() && returned.is_ok();
    let Mode::Plan(mut planning) = std::mem::replace(&mut ctx.mode, Mode::Rehearsal) else {
        return (Planning::default(), false);
    };
    if let Some(End::Blocked { failure, .. }) = end
        && failure.code == SECTION_DIFFERS
    {
        planning.differs_at_top = planning.section_at_top;
    }
    (planning, is_whole)
}

/// The place of the step that `named` names among those that the run asked for, and its label.
fn step(origin: &RunDetail, named: &str) -> Result<(u32, String), EngineError> {
    let label = |step: &StepRow| step.section.clone().unwrap_or_else(|| step.label.clone());
    let is_named = |step: &&StepRow| {
        [&step.label, &step.name, &step.position].contains(&&named.to_owned())
            || step.section.as_deref() == Some(named)
            || step.top.to_string() == named
    };
    let found: BTreeSet<_> = origin.steps.iter().filter(is_named).map(|step| (step.top, label(step))).collect();
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (first, _) => {
            let known: BTreeSet<_> = origin.steps.iter().map(|step| (step.top, label(step))).collect();
            Err(EngineError::UnknownStep {
                run: origin.run.run_id,
                step: named.to_owned(),
                several: first.is_some(),
                known: known.into_iter().map(|(top, label)| format!("{top} {label}")).collect(),
            })
        }
    }
}

// $1 the new id, $2 the origin's, $3 the version, $4 the state, $5 the input, $6 its digest, $7 the step, $8 the place
// before which results are carried over, $9 the actor, $10 the reason, $11 the owner or NULL, $12 the epoch, $13 the time,
// $14 when it began or NULL.
const REPLAY: &str = "INSERT INTO run (run_id, workflow, version, state, input, input_digest, labels, concurrency_key, \
     concurrency_policy, origin_run_id, origin_step, carry_before_top, actor, reason, owner_no, epoch, created_at_ms, \
     started_at_ms) SELECT $1, o.workflow, $3, $4, $5, $6, o.labels, o.concurrency_key, 'forbid', o.run_id, $7, $8, $9, \
     $10, $11, $12, $13, $14 FROM run o WHERE o.run_id = $2 AND o.state IN ('succeeded', 'failed', 'cancelled') \
     AND NOT EXISTS (SELECT 1 FROM purge_begun b WHERE b.run_no = o.run_no) RETURNING run_no";

/// What became of the record.
enum Answer {
    Started { run_no: i64 },
    Busy { holder: RunId },
    Gone,
}

async fn record(
    inner: &Arc<Inner>,
    prepared: Arc<Prepared>,
    detached: bool,
    by: &Mutation,
) -> Result<Start, EngineError> {
    let (run_id, now_ms, owner_no) = (RunId(inner.clock.new_id()), inner.clock.now_ms(), inner.owner_no);
    let origin = prepared.origin.run.run_id;
    let (new, by) = (prepared.clone(), by.clone());
    crash::point("engine.run_row.before");
    let state = if detached { RunState::Queued } else { RunState::Running };
    let _arriving = inner.arriving.read().await;
    let answer = inner
        .writer
        .exclusive("record the replay", move |connection| {
            let (new, by) = (new.clone(), by.clone());
            Box::pin(async move {
                if let Some(key) = &new.origin.run.concurrency_key
                    && let Some(holder) = holder(connection, key).await?
                {
                    return Ok(Answer::Busy { holder });
                }
                let row = sqlx::query(REPLAY)
                    .bind(run_id.to_string())
                    .bind(origin.to_string())
                    .bind(new.version)
                    .bind(state.as_str())
                    .bind(&new.input)
                    .bind(digest_text(&new.input))
                    .bind(&new.from)
                    .bind(new.before_top)
                    .bind(&by.actor)
                    .bind(&by.reason)
                    .bind((!detached).then_some(owner_no))
                    .bind(i64::from(!detached))
                    .bind(now_ms)
                    .bind((!detached).then_some(now_ms))
                    .fetch_optional(&mut *connection)
                    .await?;
                let Some(row) = row else { return Ok(Answer::Gone) };
                let details = serde_json::json!({ "run_id": run_id, "origin_run_id": origin, "step": new.from });
                for run in [origin, run_id] {
                    sqlx::query(
                        "INSERT INTO audit (at_ms, actor, action, run_id, reason, details) VALUES (?, ?, ?, ?, ?, ?)",
                    )
                    .bind(now_ms)
                    .bind(&by.actor)
                    .bind("replay")
                    .bind(run.to_string())
                    .bind(&by.reason)
                    .bind(details.to_string())
                    .execute(&mut *connection)
                    .await?;
                }
                Ok(Answer::Started { run_no: row.try_get(0)? })
            })
        })
        .await?;
    crash::point("engine.run_row.after");
    let run_no = match answer {
        Answer::Busy { holder } => return Ok(Start::Busy { holder }),
        Answer::Gone => return Err(EngineError::UnknownRun { run: origin.to_string() }),
        Answer::Started { run_no } => run_no,
    };
    let run = &prepared.origin.run;
    let mut handle = looked_at(run_id, run.workflow.clone(), prepared.version, prepared.input.clone());
    handle.epoch = 1;
    handle.carry_before_top = Some(prepared.before_top);
    handle.fresh = true;
    Ok(Start::Started(inner.recorded(handle, run_no, state)))
}

/// The run that holds the concurrency key, or stands in line for it.
async fn holder(connection: &mut SqliteConnection, key: &str) -> Result<Option<RunId>, sqlx::Error> {
    let holder: Option<String> = sqlx::query_scalar(
        "SELECT run_id FROM run WHERE concurrency_key = ? \
         AND state IN ('queued', 'running', 'waiting', 'paused', 'blocked') ORDER BY run_no LIMIT 1",
    )
    .bind(key)
    .fetch_optional(connection)
    .await?;
    holder.map(|id| id.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))).transpose()
}
