//! Becoming the owner of a run: from the queue, from a dead process, or by a person's word.

use std::collections::HashMap;
use std::sync::Arc;

use engine_rules::crash;
use engine_rules::failure::Failure;
use engine_rules::recovery::{OwnerState, RunPlan, plan_run};
use engine_rules::state::{RunEvent, RunState};
use serde_json::Value;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;
use tokio::sync::{RwLockReadGuard, RwLockWriteGuard};

use super::interrupted::{self, Interrupted, Whose};
use crate::context::RunHandle;
use crate::control::RunControl;
use crate::db::patient;
use crate::engine::{Inner, Mutation, Outcome};
use crate::error::{EngineError, storage};
use crate::id::RunId;
use crate::owner::{is_alive, probe};
use crate::slots::Slot;
use crate::writer::{ClaimedRun, Take, TakeQueued};

use super::orders::audit;

/// How often a run in the queue looks whether it may begin, in milliseconds.
const QUEUE_LOOK_MS: u64 = 200;

pub(super) enum Claimed {
    Mine(Box<RunHandle>),
    Ended(Outcome),
}

/// What decides about a run.
pub(super) struct Standing {
    pub run_no: i64,
    pub state: RunState,
    pub epoch: i64,
    pub owner_no: Option<i64>,
    pub owner: OwnerState,
    pid: i64,
    host: String,
}

pub(super) const STANDING: &str = "SELECT r.run_no, r.run_id, r.state, r.epoch, r.owner_no, o.owner_id, o.pid, o.host, \
     o.lease_until_at_ms FROM run r LEFT JOIN owner o ON o.owner_no = r.owner_no";

impl Standing {
    /// `asking`: whether the caller itself is who has the run marked as active here.
    pub(super) fn read(
        inner: &Inner,
        row: &SqliteRow,
        asking: bool,
        probed: &mut HashMap<i64, bool>,
    ) -> Result<(RunId, Self), EngineError> {
        let read = |row: &SqliteRow| -> Result<_, sqlx::Error> {
            Ok((
                row.try_get::<i64, _>("run_no")?,
                row.try_get::<String, _>("run_id")?,
                row.try_get::<String, _>("state")?,
                row.try_get::<i64, _>("epoch")?,
                row.try_get::<Option<i64>, _>("owner_no")?,
                row.try_get::<Option<String>, _>("owner_id")?,
                row.try_get::<Option<i64>, _>("pid")?,
                row.try_get::<Option<String>, _>("host")?,
                row.try_get::<Option<i64>, _>("lease_until_at_ms")?,
            ))
        };
        let (run_no, id, state, epoch, owner_no, owner_id, pid, host, lease) =
            read(row).map_err(storage("read the run"))?;
        let corrupt = |found: &str, expected| EngineError::Corrupt {
            subject: format!("run number {run_no}"),
            found: found.to_owned(),
            expected,
        };
        let run_id: RunId = id.parse().map_err(|_| corrupt(&id, "an id"))?;
        let state = RunState::from_name(&state).ok_or_else(|| corrupt(&state, "a state of a run"))?;
        let owner = match (owner_no, owner_id) {
            (Some(owner_no), _) if owner_no == inner.owner_no => {
                // In this order: a run goes from the one into the other, and is entered there first.
                if inner.ready().contains_key(&run_id) || (!asking && inner.active().contains_key(&run_id)) {
                    OwnerState::HereActive
                } else {
                    OwnerState::HereIdle
                }
            }
            (Some(owner_no), Some(owner_id)) => {
                let alive = *probed.entry(owner_no).or_insert_with(|| {
                    is_alive(probe(&inner.state_dir, &owner_id), lease.unwrap_or(0), inner.clock.now_ms())
                });
                if alive { OwnerState::Alive } else { OwnerState::Dead }
            }
            (_, None) | (None, Some(_)) => OwnerState::None,
        };
        let (pid, host) = (pid.unwrap_or(0), host.unwrap_or_default());
        let standing = Self { run_no, state, epoch, owner_no, owner, pid, host };
        Ok((run_id, standing))
    }

    pub async fn of(inner: &Inner, run_id: RunId, asking: bool) -> Result<Self, EngineError> {
        let row = patient(inner.clock.as_ref(), || {
            sqlx::query(sqlx::AssertSqlSafe(format!("{STANDING} WHERE r.run_id = ?")))
                .bind(run_id.to_string())
                .fetch_optional(&inner.readers)
        });
        let row = row
            .await
            .map_err(storage("read the run"))?
            .ok_or_else(|| EngineError::UnknownRun { run: run_id.to_string() })?;
        Ok(Self::read(inner, &row, asking, &mut HashMap::new())?.1)
    }

    /// Why the run cannot be taken from its owner.
    pub fn not_free(&self, run: RunId, what: &'static str) -> EngineError {
        match self.owner {
            OwnerState::Alive => EngineError::OwnedElsewhere { run, pid: self.pid, host: self.host.clone() },
            OwnerState::HereActive => EngineError::AlreadyDriven { run },
            OwnerState::None | OwnerState::Dead | OwnerState::HereIdle => {
                EngineError::WrongState { run, state: self.state, what }
            }
        }
    }
}

/// Makes the run this process's, or answers how it ended. The caller has marked it as active.
pub(super) async fn claim(inner: &Arc<Inner>, run_id: RunId) -> Result<Claimed, EngineError> {
    loop {
        // Taken in a statement of its own: the guard of the map must not be held while the journal is asked.
        let ready = inner.ready().remove(&run_id);
        if let Some(handle) = ready {
            return Ok(Claimed::Mine(Box::new(handle)));
        }
        let standing = Standing::of(inner, run_id, true).await?;
        if standing.state.is_terminal() {
            return ended(inner, run_id).await.map(Claimed::Ended);
        }
        match plan_run(standing.state, standing.owner) {
            RunPlan::Leave => return Err(standing.not_free(run_id, "be driven")),
            RunPlan::TakeOver => {
                let (_settled, standing) = match settle(inner, run_id, standing, true).await? {
                    Settled::Free(guard, standing) => (guard, standing),
                    Settled::Changed => continue,
                };
                match take_one(inner, run_id, &standing).await? {
                    Some(handle) => return Ok(Claimed::Mine(Box::new(handle))),
                    // Another part of this process was faster, and left it to whoever drives it: us.
                    None if inner.ready().contains_key(&run_id) => {}
                    None => return Err(Standing::of(inner, run_id, false).await?.not_free(run_id, "be taken over")),
                }
            }
            RunPlan::Claim => match take_queued(inner, Some(run_id), 1).await?.pop() {
                Some(handle) => return Ok(Claimed::Mine(Box::new(handle))),
                None => inner.clock.sleep_ms(QUEUE_LOOK_MS).await,
            },
        }
    }
}

/// Takes up to `most` runs from the queue that may begin. The caller holds the door of arriving runs.
pub(super) async fn claim_queued(inner: &Arc<Inner>, most: usize) -> Result<Vec<RunHandle>, EngineError> {
    take_queued(inner, None, most).await
}

/// What became of a run that was to be taken over, once no other claim of this process is on its way.
pub(super) enum Settled<'a> {
    /// It stands so, and stays so for as long as the guard is held.
    Free(Guard<'a>, Standing),
    /// Somebody here was about to drive it.
    Changed,
}

/// Held until the run stands in `active` or `ready`.
pub(super) enum Guard<'a> {
    /// Its owner is dead: its epoch decides among all who come.
    Shared(#[expect(dead_code, reason = "held, not used")] RwLockReadGuard<'a, ()>),
    /// Its owner is this process.
    Alone(#[expect(dead_code, reason = "held, not used")] RwLockWriteGuard<'a, ()>),
}

/// A run of this process that nobody here works on may be one that was taken a moment ago: that is believed only when no
/// claim is on its way.
pub(super) async fn settle(
    inner: &Inner,
    run_id: RunId,
    standing: Standing,
    asking: bool,
) -> Result<Settled<'_>, EngineError> {
    match standing.owner {
        OwnerState::None | OwnerState::Dead | OwnerState::Alive | OwnerState::HereActive => {
            Ok(Settled::Free(Guard::Shared(inner.arriving.read().await), standing))
        }
        OwnerState::HereIdle => {
            let guard = inner.arriving.write().await;
            let now = Standing::of(inner, run_id, asking).await?;
            Ok(match (now.owner, now.epoch == standing.epoch && now.state == standing.state) {
                (OwnerState::HereIdle, true) => Settled::Free(Guard::Alone(guard), now),
                (OwnerState::HereIdle, false)
                | (OwnerState::None | OwnerState::Alive | OwnerState::Dead | OwnerState::HereActive, _) => {
                    Settled::Changed
                }
            })
        }
    }
}

pub(super) async fn take_queued(
    inner: &Arc<Inner>,
    only: Option<RunId>,
    most: usize,
) -> Result<Vec<RunHandle>, EngineError> {
    let take = TakeQueued { owner_no: inner.owner_no, only, most };
    let runs = inner.writer.take(Take::Queued(take)).await?;
    Ok(runs.into_iter().map(|run| handle(run, How::Queued)).collect())
}

/// The one run, taken over; `None` when somebody was faster.
async fn take_one(inner: &Arc<Inner>, run_id: RunId, standing: &Standing) -> Result<Option<RunHandle>, EngineError> {
    let Some(run) = Interrupted::of(run_id, standing) else { return Ok(None) };
    Ok(interrupted::take(inner, &[run]).await?.pop())
}

#[derive(Debug, Clone, Copy)]
pub(super) enum How {
    /// From the queue.
    Queued,
    /// From an owner that gave it back.
    Released,
    /// From a process that died.
    Crashed,
    /// By a person.
    Resumed { crashed: bool },
}

impl How {
    /// How a run is taken over whose owner is `owner`: an owner that gave it back left no attempt open.
    pub(super) fn left_by(owner: OwnerState) -> Self {
        match owner {
            OwnerState::None => Self::Released,
            OwnerState::Alive | OwnerState::Dead | OwnerState::HereActive | OwnerState::HereIdle => Self::Crashed,
        }
    }
}

pub(super) fn handle(run: ClaimedRun, how: How) -> RunHandle {
    let control = RunControl::default();
    if run.cancel_requested {
        control.cancel();
    }
    if run.pause_requested {
        control.pause();
    }
    RunHandle {
        run_no: run.run_no,
        run_id: run.run_id,
        epoch: run.epoch,
        workflow: run.workflow,
        version: run.version,
        input: run.input,
        carry_before_top: run.carry_before_top,
        fresh: matches!(how, How::Queued) && run.epoch == 1,
        crashed: matches!(how, How::Crashed | How::Resumed { crashed: true }),
        // Also one that a person put back into the queue, when it is taken from there.
        resumed: matches!(how, How::Resumed { .. }) || (matches!(how, How::Queued) && run.is_requeued),
        control: Arc::new(control),
        recorded: None,
        slot: Slot::default(),
    }
}

pub(super) fn transition(state: RunState, event: RunEvent) -> Result<RunState, EngineError> {
    state.after(event).map_err(|fault| EngineError::Corrupt {
        subject: "a run".to_owned(),
        found: fault.to_string(),
        expected: "a transition of the engine's tables",
    })
}

pub(crate) async fn interrupted(inner: &Arc<Inner>) -> Result<Vec<RunId>, EngineError> {
    let runs = interrupted::find(inner, Whose::OursToo, usize::MAX).await?;
    Ok(runs.into_iter().map(|run| run.run_id).collect())
}

pub(crate) async fn take_over(inner: &Arc<Inner>, run_id: RunId) -> Result<(), EngineError> {
    let standing = Standing::of(inner, run_id, false).await?;
    if plan_run(standing.state, standing.owner) != RunPlan::TakeOver {
        return Err(standing.not_free(run_id, "be taken over"));
    }
    let (_settled, standing) = match settle(inner, run_id, standing, false).await? {
        Settled::Free(guard, standing) => (guard, standing),
        Settled::Changed => return Err(Standing::of(inner, run_id, false).await?.not_free(run_id, "be taken over")),
    };
    let Some(handle) = take_one(inner, run_id, &standing).await? else {
        return Err(Standing::of(inner, run_id, false).await?.not_free(run_id, "be taken over"));
    };
    inner.ready().insert(run_id, handle);
    Ok(())
}

pub(crate) async fn resume(inner: &Arc<Inner>, run_id: RunId, by: &Mutation) -> Result<(), EngineError> {
    let standing = Standing::of(inner, run_id, false).await?;
    let (event, crashed) = match standing.state {
        RunState::Paused | RunState::Blocked => (RunEvent::Resume, false),
        RunState::Running | RunState::Waiting => match plan_run(standing.state, standing.owner) {
            RunPlan::TakeOver => (RunEvent::TakeOver, matches!(How::left_by(standing.owner), How::Crashed)),
            RunPlan::Leave | RunPlan::Claim => return Err(standing.not_free(run_id, "be resumed")),
        },
        RunState::Queued | RunState::Succeeded | RunState::Failed | RunState::Cancelled => {
            return Err(EngineError::WrongState { run: run_id, state: standing.state, what: "be resumed" });
        }
    };
    let (_settled, standing) = match settle(inner, run_id, standing, false).await? {
        Settled::Free(guard, standing) => (guard, standing),
        Settled::Changed => return Err(Standing::of(inner, run_id, false).await?.not_free(run_id, "be resumed")),
    };
    let state = transition(standing.state, event)?;
    let handle = seize(inner, run_id, &standing, state, How::Resumed { crashed }, Some(by)).await?;
    inner.ready().insert(run_id, handle);
    Ok(())
}

/// Becomes the owner of a run that stands as `standing`; whoever was faster counted its epoch up.
pub(super) async fn seize(
    inner: &Arc<Inner>,
    run_id: RunId,
    standing: &Standing,
    state: RunState,
    how: How,
    by: Option<&Mutation>,
) -> Result<RunHandle, EngineError> {
    let (owner_no, run_no, epoch, now_ms) = (inner.owner_no, standing.run_no, standing.epoch, inner.clock.now_ms());
    let by = by.cloned();
    crash::point("engine.take_over.before");
    let taken: Option<ClaimedRun> = inner
        .writer
        .exclusive("take the run over", move |connection| {
            let by = by.clone();
            Box::pin(async move {
                let row = sqlx::query(
                    "UPDATE run SET state = ?1, owner_no = ?2, epoch = epoch + 1, failure = NULL, failed_step = NULL, \
                     pause_requested_at_ms = NULL WHERE run_no = ?3 AND epoch = ?4 \
                     AND state NOT IN ('succeeded', 'failed', 'cancelled') \
                     RETURNING run_no, run_id, epoch, workflow, version, input, cancel_requested_at_ms, \
                     pause_requested_at_ms, requeued_at_ms, carry_before_top",
                )
                .bind(state.as_str())
                .bind(owner_no)
                .bind(run_no)
                .bind(epoch)
                .fetch_optional(&mut *connection)
                .await?;
                let Some(row) = row else { return Ok(None) };
                if let Some(by) = by {
                    sqlx::query(
                        "UPDATE step SET forgiven = attempt WHERE run_no = ? AND state IN ('running', 'retrying')",
                    )
                    .bind(run_no)
                    .execute(&mut *connection)
                    .await?;
                    audit(connection, now_ms, &by, "resume", run_id).await?;
                }
                ClaimedRun::read(&row).map(Some)
            })
        })
        .await?;
    crash::point("engine.take_over.after");
    match taken {
        Some(run) => Ok(handle(run, how)),
        None => {
            let now = Standing::of(inner, run_id, false).await?;
            Err(now.not_free(run_id, "be taken over"))
        }
    }
}

/// How a run ended, from the journal.
async fn ended(inner: &Inner, run_id: RunId) -> Result<Outcome, EngineError> {
    let row = patient(inner.clock.as_ref(), || {
        sqlx::query("SELECT state, output, failure, failed_step FROM run WHERE run_id = ?")
            .bind(run_id.to_string())
            .fetch_one(&inner.readers)
    });
    let row = row.await.map_err(storage("read the run"))?;
    let read = |column: &str| row.try_get::<Option<String>, _>(column).map_err(storage("read the run"));
    let state = read("state")?.unwrap_or_default();
    let corrupt = |found: String, expected| EngineError::Corrupt { subject: format!("run {run_id}"), found, expected };
    match RunState::from_name(&state) {
        Some(RunState::Succeeded) => {
            let output = read("output")?.unwrap_or_else(|| "null".to_owned());
            let value: Value = serde_json::from_str(&output).map_err(|_| corrupt(output, "JSON"))?;
            Ok(Outcome::Succeeded(value))
        }
        Some(RunState::Failed) => {
            let text = read("failure")?.unwrap_or_default();
            let failure: Failure = serde_json::from_str(&text).map_err(|_| corrupt(text, "a failure"))?;
            Ok(Outcome::Failed { failure, step: read("failed_step")? })
        }
        Some(RunState::Cancelled) => Ok(Outcome::Cancelled),
        Some(RunState::Queued | RunState::Running | RunState::Waiting | RunState::Paused | RunState::Blocked)
        | None => Err(corrupt(state, "a state in which a run has ended")),
    }
}
