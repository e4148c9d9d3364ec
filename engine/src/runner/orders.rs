//! What persons order: an end, a pause. The journal has it first; the run at work learns of it within a second.

use std::sync::Arc;

use engine_rules::recovery::OwnerState;
use engine_rules::state::{RunEvent, RunState};
use sqlx::{Row as _, SqliteConnection};

use super::claim::{How, Settled, Standing, seize, settle, take_queued, transition};
use crate::engine::{Inner, Mutation};
use crate::error::EngineError;
use crate::id::RunId;

/// How soon a run that is to end, and that somebody here holds for a moment, is looked at again, in milliseconds.
const LOOK_AGAIN_MS: u64 = 5;

/// Leaves a row in the audit trail.
pub(super) async fn audit(
    connection: &mut SqliteConnection,
    now_ms: i64,
    by: &Mutation,
    action: &'static str,
    run_id: RunId,
) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO audit (at_ms, actor, action, run_id, reason) VALUES (?, ?, ?, ?, ?)")
        .bind(now_ms)
        .bind(&by.actor)
        .bind(action)
        .bind(run_id.to_string())
        .bind(&by.reason)
        .execute(connection)
        .await
        .map(|_| ())
}

// The run and all that it started, directly or not, that have not ended: each is told to end, and one that never began
// has ended. One statement, so that a child is either in it or finds its parent told when it is to be started.
const CANCEL: &str = "WITH RECURSIVE family (run_id) AS (SELECT ?1 UNION SELECT r.run_id FROM run r JOIN family f \
     ON r.parent_run_id = f.run_id) \
     UPDATE run SET cancel_requested_at_ms = coalesce(cancel_requested_at_ms, ?2), \
     state = CASE WHEN state = 'queued' AND epoch = 0 THEN 'cancelled' ELSE state END, \
     ended_at_ms = CASE WHEN state = 'queued' AND epoch = 0 THEN ?2 END \
     WHERE run_id IN (SELECT run_id FROM family) AND state NOT IN ('succeeded', 'failed', 'cancelled') \
     RETURNING run_id, state";

pub(crate) async fn cancel(inner: &Arc<Inner>, run_id: RunId, by: &Mutation) -> Result<(), EngineError> {
    let standing = Standing::of(inner, run_id, false).await?;
    let ended = |state| EngineError::WrongState { run: run_id, state, what: "be cancelled" };
    if standing.state.is_terminal() {
        return Err(ended(standing.state));
    }
    let now_ms = inner.clock.now_ms();
    let order = by.clone();
    let told: Vec<(RunId, RunState)> = inner
        .writer
        .exclusive("cancel the run", move |connection| {
            let by = order.clone();
            Box::pin(async move {
                let rows =
                    sqlx::query(CANCEL).bind(run_id.to_string()).bind(now_ms).fetch_all(&mut *connection).await?;
                let told = rows.iter().map(told).collect::<Result<Vec<_>, _>>()?;
                if told.iter().any(|(told, _)| *told == run_id) {
                    audit(connection, now_ms, &by, "cancel", run_id).await?;
                }
                Ok(told)
            })
        })
        .await?;
    if told.iter().all(|(told, _)| *told != run_id) {
        return Err(ended(Standing::of(inner, run_id, false).await?.state));
    }
    for (told, _) in &told {
        if let Some(control) = inner.active().get(told) {
            control.cancel();
        }
    }
    // The newest first: a parent that is carried out to its end finds its children ended.
    let mut open: Vec<RunId> = told.iter().filter(|(_, state)| !state.is_terminal()).map(|(run, _)| *run).collect();
    open.sort_unstable_by(|one, two| two.cmp(one));
    for run in open {
        clean_up(inner, run).await?;
    }
    Ok(())
}

fn told(row: &sqlx::sqlite::SqliteRow) -> Result<(RunId, RunState), sqlx::Error> {
    let (id, state): (String, String) = (row.try_get(0)?, row.try_get(1)?);
    let unexpected = || sqlx::Error::Protocol(format!("the journal gave a run {id:?} that is {state:?}"));
    let run_id = id.parse().map_err(|_| unexpected())?;
    Ok((run_id, RunState::from_name(&state).ok_or_else(unexpected)?))
}

/// Carries out here a run that is to end and that nobody works on, so that its workflow cleans up.
async fn clean_up(inner: &Arc<Inner>, run_id: RunId) -> Result<(), EngineError> {
    loop {
        let begun_here = inner.ready().get(&run_id).map(|handle| handle.control.clone());
        if let Some(control) = begun_here {
            control.cancel();
        } else {
            let standing = Standing::of(inner, run_id, false).await?;
            let (event, how) = match standing.state {
                RunState::Succeeded | RunState::Failed | RunState::Cancelled => return Ok(()),
                RunState::Paused | RunState::Blocked => (RunEvent::Resume, How::Released),
                // One that was put back after it had begun. Where its turn has not come, it ends when it does.
                RunState::Queued => {
                    let _arriving = inner.arriving.read().await;
                    match take_queued(inner, Some(run_id), 1).await?.pop() {
                        Some(handle) => {
                            inner.ready().insert(run_id, handle);
                            continue;
                        }
                        None => return Ok(()),
                    }
                }
                RunState::Running | RunState::Waiting => match standing.owner {
                    OwnerState::Alive | OwnerState::HereActive => return Ok(()),
                    OwnerState::None | OwnerState::Dead | OwnerState::HereIdle => {
                        (RunEvent::TakeOver, How::left_by(standing.owner))
                    }
                },
            };
            let (_settled, standing) = match settle(inner, run_id, standing, false).await? {
                Settled::Free(guard, standing) => (guard, standing),
                Settled::Changed => continue,
            };
            let state = transition(standing.state, event)?;
            match seize(inner, run_id, &standing, state, how, None).await {
                Ok(handle) => {
                    inner.ready().insert(run_id, handle);
                }
                // It moved on between the look and the change: look again.
                Err(
                    EngineError::OwnedElsewhere { .. }
                    | EngineError::AlreadyDriven { .. }
                    | EngineError::WrongState { .. },
                ) => continue,
                Err(error) => return Err(error),
            }
        }
        return match super::drive(inner, run_id).await {
            // Somebody here looks whether they may work on it, and it is left to nobody until they have looked.
            Err(EngineError::AlreadyDriven { .. }) if inner.ready().contains_key(&run_id) => {
                inner.clock.sleep_ms(LOOK_AGAIN_MS).await;
                continue;
            }
            Ok(_) | Err(EngineError::AlreadyDriven { .. } | EngineError::OwnedElsewhere { .. }) => Ok(()),
            Err(error) => Err(error),
        };
    }
}

pub(crate) async fn pause(inner: &Arc<Inner>, run_id: RunId, by: &Mutation) -> Result<(), EngineError> {
    loop {
        let standing = Standing::of(inner, run_id, false).await?;
        let is_unbegun = inner.ready().contains_key(&run_id) && !inner.active().contains_key(&run_id);
        let at_once = match standing.state {
            RunState::Running | RunState::Waiting => match standing.owner {
                OwnerState::Alive => false,
                OwnerState::HereActive => is_unbegun,
                OwnerState::None | OwnerState::Dead | OwnerState::HereIdle => true,
            },
            RunState::Paused => return Ok(()),
            RunState::Queued | RunState::Blocked | RunState::Succeeded | RunState::Failed | RunState::Cancelled => {
                return Err(EngineError::WrongState { run: run_id, state: standing.state, what: "be paused" });
            }
        };
        // Nobody here begins with it between this look and the change.
        let (_settled, standing) = match settle(inner, run_id, standing, false).await? {
            Settled::Free(guard, standing) => (guard, standing),
            Settled::Changed => continue,
        };
        let paused = transition(standing.state, RunEvent::Pause)?;
        let (run_no, epoch, now_ms, by) = (standing.run_no, standing.epoch, inner.clock.now_ms(), by.clone());
        let done: bool = inner
            .writer
            .exclusive("pause the run", move |connection| {
                let by = by.clone();
                Box::pin(async move {
                    let changed = sqlx::query(
                        "UPDATE run SET pause_requested_at_ms = ?1, state = CASE WHEN ?2 THEN ?3 ELSE state END, \
                         epoch = epoch + ?2 WHERE run_no = ?4 AND epoch = ?5 AND state IN ('running', 'waiting')",
                    )
                    .bind(now_ms)
                    .bind(at_once)
                    .bind(paused.as_str())
                    .bind(run_no)
                    .bind(epoch)
                    .execute(&mut *connection)
                    .await?;
                    if changed.rows_affected() == 0 {
                        return Ok(false);
                    }
                    audit(connection, now_ms, &by, "pause", run_id).await?;
                    Ok(true)
                })
            })
            .await?;
        // Otherwise the run moved on between the look and the change: look again.
        if done {
            if at_once {
                inner.ready().remove(&run_id);
            } else if let Some(control) = inner.active().get(&run_id) {
                control.pause();
            }
            return Ok(());
        }
    }
}

pub(crate) async fn signal(
    inner: &Arc<Inner>,
    run_id: RunId,
    name: &str,
    payload: String,
    by: &Mutation,
) -> Result<(), EngineError> {
    let standing = Standing::of(inner, run_id, false).await?;
    let (run_no, now_ms, by, name) = (standing.run_no, inner.clock.now_ms(), by.clone(), name.to_owned());
    let sent: bool = inner
        .writer
        .exclusive("record the signal", move |connection| {
            let (by, name, payload) = (by.clone(), name.clone(), payload.clone());
            Box::pin(async move {
                let sent = sqlx::query(
                    "INSERT INTO signal (run_no, name, payload, actor, sent_at_ms) SELECT run_no, ?, ?, ?, ? FROM run \
                     WHERE run_no = ? AND state NOT IN ('succeeded', 'failed', 'cancelled')",
                )
                .bind(name)
                .bind(payload)
                .bind(&by.actor)
                .bind(now_ms)
                .bind(run_no)
                .execute(&mut *connection)
                .await?;
                if sent.rows_affected() == 0 {
                    return Ok(false);
                }
                audit(connection, now_ms, &by, "signal", run_id).await?;
                Ok(true)
            })
        })
        .await?;
    if !sent {
        let state = Standing::of(inner, run_id, false).await?.state;
        return Err(EngineError::WrongState { run: run_id, state, what: "take a signal" });
    }
    if let Some(control) = inner.active().get(&run_id) {
        control.tell();
    }
    Ok(())
}

/// Tells each run of this process what the journal holds for it: that it is to end or to stop, or that a signal came.
pub(crate) async fn pass_orders(inner: &Inner) -> Result<(), sqlx::Error> {
    if inner.active().is_empty() {
        return Ok(());
    }
    let rows = sqlx::query(
        "SELECT run_id, 'cancel' FROM run WHERE owner_no = ?1 AND cancel_requested_at_ms IS NOT NULL \
           AND ended_at_ms IS NULL \
         UNION ALL SELECT run_id, 'pause' FROM run WHERE owner_no = ?1 AND pause_requested_at_ms IS NOT NULL \
           AND ended_at_ms IS NULL AND state IN ('running', 'waiting') \
         UNION ALL SELECT DISTINCT r.run_id, 'signal' FROM signal s JOIN run r ON r.run_no = s.run_no \
           WHERE s.taken_at_ms IS NULL AND r.owner_no = ?1 AND r.state = 'waiting'",
    )
    .bind(inner.owner_no)
    .fetch_all(&inner.readers)
    .await?;
    for row in rows {
        let (id, order): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        let Some(control) = id.parse().ok().and_then(|id: RunId| inner.active().get(&id).cloned()) else { continue };
        match order.as_str() {
            "cancel" => control.cancel(),
            "pause" => control.pause(),
            _ => control.tell(),
        }
    }
    Ok(())
}
