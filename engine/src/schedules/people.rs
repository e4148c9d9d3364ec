//! What persons do about schedules; each leaves a row in the audit trail.

use std::sync::Arc;

use engine_rules::schedule::Standing;
use sqlx::SqliteConnection;

use super::fire::{now, settle};
use super::stored::Stored;
use crate::engine::{Inner, Mutation};
use crate::error::EngineError;
use crate::id::RunId;
use crate::start::{KeyPolicy, Started, begun, check_mutation, new_run};
use crate::writer::{StartAnswer, start_within};

pub(super) async fn pause(inner: &Inner, name: &str, by: &Mutation) -> Result<(), EngineError> {
    check_mutation(by)?;
    loop {
        let stored = Stored::live(inner, name).await?;
        let pausing = stored.paused.is_none();
        let sql = "UPDATE schedule SET paused_at_ms = ?1, paused_by = ?2, paused_reason = ?3, changed_at_ms = ?1, \
                   revision = revision + 1 WHERE schedule_no = ?4 AND revision = ?5";
        if change(inner, &stored, by, "pause", pausing.then_some(sql)).await? {
            return Ok(());
        }
    }
}

pub(super) async fn resume(inner: &Inner, name: &str, by: &Mutation) -> Result<(), EngineError> {
    check_mutation(by)?;
    loop {
        let mut stored = Stored::live(inner, name).await?;
        let standing = stored.standing();
        let resuming = match standing {
            Standing::Live | Standing::Changed | Standing::Removed => false,
            Standing::Paused { .. } => true,
        };
        if resuming {
            // What was due meanwhile belongs to the pause, also where no daemon was there to decide it.
            match settle(inner, stored, &standing, now(inner)).await? {
                Some(settled) => stored = settled,
                None => continue,
            }
        }
        let sql = "UPDATE schedule SET paused_at_ms = NULL, paused_by = NULL, paused_reason = NULL, \
                   changed_at_ms = ?1, revision = revision + 1 WHERE schedule_no = ?4 AND revision = ?5";
        if change(inner, &stored, by, "resume", resuming.then_some(sql)).await? {
            return Ok(());
        }
    }
}

/// Changes the row as it was read, where there is something to change, and records who did; `false` when it is no more as
/// it was read.
async fn change(
    inner: &Inner,
    stored: &Stored,
    by: &Mutation,
    action: &'static str,
    sql: Option<&'static str>,
) -> Result<bool, EngineError> {
    let (stored, by, now_ms) = (stored.clone(), by.clone(), inner.clock.now_ms());
    inner
        .writer
        .exclusive("change the schedule", move |connection| {
            let (stored, by) = (stored.clone(), by.clone());
            Box::pin(async move {
                if let Some(sql) = sql {
                    let changed = sqlx::query(sql)
                        .bind(now_ms)
                        .bind(&by.actor)
                        .bind(&by.reason)
                        .bind(stored.schedule_no)
                        .bind(stored.revision)
                        .execute(&mut *connection)
                        .await?;
                    if changed.rows_affected() == 0 {
                        return Ok(false);
                    }
                }
                audit(connection, now_ms, &by, action, &stored.definition.name, None).await?;
                Ok(true)
            })
        })
        .await
}

pub(super) async fn trigger(inner: &Inner, name: &str, by: &Mutation, detached: bool) -> Result<Started, EngineError> {
    check_mutation(by)?;
    loop {
        let stored = Stored::live(inner, name).await?;
        let mut run = stored.start_run(by.actor.clone(), by.reason.clone())?;
        run.detached = detached;
        run.key_policy = KeyPolicy::Forbid;
        let run = Arc::new(new_run(inner, run)?);
        let handle = begun(&run);
        let (now_ms, by, work) = (inner.clock.now_ms(), by.clone(), run.clone());
        let (schedule_no, revision, schedule) = (stored.schedule_no, stored.revision, name.to_owned());
        let _arriving = inner.arriving.read().await;
        let answer: Option<StartAnswer> = inner
            .writer
            .exclusive("start the schedule's run", move |connection| {
                let (by, run, schedule) = (by.clone(), work.clone(), schedule.clone());
                Box::pin(async move {
                    let as_read: bool = sqlx::query_scalar(
                        "SELECT EXISTS (SELECT 1 FROM schedule WHERE schedule_no = ? AND revision = ?)",
                    )
                    .bind(schedule_no)
                    .bind(revision)
                    .fetch_one(&mut *connection)
                    .await?;
                    if !as_read {
                        return Ok(None);
                    }
                    let answer = start_within(connection, &[&*run], now_ms).await?.into_iter().next();
                    if let Some(StartAnswer::Started { .. }) = &answer {
                        audit(connection, now_ms, &by, "trigger", &schedule, Some(run.run_id)).await?;
                    }
                    Ok(answer)
                })
            })
            .await?;
        match answer {
            None => {}
            Some(StartAnswer::Started { run_no, state }) => return Ok(inner.recorded(handle, run_no, state)),
            Some(StartAnswer::Busy { holder }) => {
                let key = run.concurrency_key.clone().unwrap_or_default();
                return Err(EngineError::ScheduleHeld { schedule: name.to_owned(), key, holder });
            }
            Some(StartAnswer::Existing { run_id, .. }) => {
                return Ok(Started { run_id, queued: true, existing: true });
            }
        }
    }
}

async fn audit(
    connection: &mut SqliteConnection,
    now_ms: i64,
    by: &Mutation,
    action: &'static str,
    schedule: &str,
    run_id: Option<RunId>,
) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT INTO audit (at_ms, actor, action, run_id, schedule, reason) VALUES (?, ?, ?, ?, ?, ?)")
        .bind(now_ms)
        .bind(&by.actor)
        .bind(action)
        .bind(run_id.map(|run_id| run_id.to_string()))
        .bind(schedule)
        .bind(&by.reason)
        .execute(connection)
        .await
        .map(|_| ())
}
