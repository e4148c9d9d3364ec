//! What else grows: idempotency keys, owners, ticks.

use std::sync::Arc;

use sqlx::Row as _;

use super::family::json_list;
use super::{Gone, Purge};
use crate::db::patient;
use crate::error::{EngineError, storage};
use crate::owner::{is_alive, probe, remove_dead};

/// How many small rows one transaction deletes at most.
const ROWS: i64 = 1_000;

/// An owner that no run names. $1 the cutoff. The newest stays, so that its number is never given again.
macro_rules! idle_owner {
    () => {
        "owner.lease_until_at_ms < $1 AND ifnull(owner.ended_at_ms, owner.lease_until_at_ms) < $1 \
         AND owner.owner_no < (SELECT max(owner_no) FROM owner) \
         AND NOT EXISTS (SELECT 1 FROM run r WHERE r.owner_no = owner.owner_no AND r.ended_at_ms IS NOT NULL) \
         AND owner.owner_no NOT IN (SELECT r.owner_no FROM run r WHERE r.owner_no IS NOT NULL \
           AND r.state IN ('queued', 'running', 'waiting', 'paused', 'blocked'))"
    };
}

const IDLE_OWNERS: &str = concat!(
    "SELECT owner_no, owner_id, lease_until_at_ms FROM owner WHERE owner_no > $2 AND ",
    idle_owner!(),
    " ORDER BY owner_no LIMIT $3"
);

const DELETE_OWNERS: &str =
    concat!("DELETE FROM owner WHERE owner_no IN (SELECT value FROM json_each($2)) AND ", idle_owner!());

// $1 the cutoff, $2 the last one that was looked at, $3 how many.
const OLD_TICKS: &str = "SELECT tick_no FROM tick t WHERE tick_no > $2 AND decided_at_ms < $1 AND due_at_ms < $1 \
     AND local_time < (SELECT max(local_time) FROM tick n WHERE n.schedule = t.schedule) ORDER BY tick_no LIMIT $3";

impl Purge<'_> {
    /// Keys whose window ended: they name a run no longer, whether it is there or not.
    pub(super) async fn idempotency_keys(&mut self) -> Result<(), EngineError> {
        let now_ms = self.now_ms;
        if self.plan.dry_run {
            let count: i64 = sqlx::query_scalar("SELECT count(*) FROM idempotency WHERE expires_at_ms <= ?")
                .bind(now_ms)
                .fetch_one(&self.inner.readers)
                .await
                .map_err(storage("count the idempotency keys"))?;
            self.report.idempotency_keys = count.unsigned_abs();
            return Ok(());
        }
        while !self.is_over() {
            let gone = self.commit(move |connection| {
                Box::pin(async move {
                    let deleted = sqlx::query(
                        "DELETE FROM idempotency WHERE (workflow, key) IN (SELECT workflow, key FROM idempotency \
                         WHERE expires_at_ms <= ? ORDER BY expires_at_ms LIMIT ?)",
                    )
                    .bind(now_ms)
                    .bind(ROWS)
                    .execute(connection)
                    .await?;
                    Ok(Gone { idempotency_keys: deleted.rows_affected(), ..Gone::default() })
                })
            });
            if gone.await?.idempotency_keys == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Processes that are gone, with their lock files.
    pub(super) async fn owners(&mut self) -> Result<(), EngineError> {
        let (cutoff_ms, inner) = (self.plan.cutoff.ended_before_ms, self.inner);
        let mut last = i64::MIN;
        while !self.is_over() {
            let rows = patient(inner.clock.as_ref(), || {
                sqlx::query(IDLE_OWNERS).bind(cutoff_ms).bind(last).bind(ROWS).fetch_all(&inner.readers)
            })
            .await
            .map_err(storage("look for owners without runs"))?;
            let Some(newest) = rows.last() else { break };
            last = newest.try_get(0).map_err(storage("look for owners without runs"))?;
            let mut dead = Vec::new();
            for row in &rows {
                let read = || -> Result<(i64, String, i64), sqlx::Error> {
                    Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
                };
                let (owner_no, owner_id, lease_ms) = read().map_err(storage("look for owners without runs"))?;
                // A process that was stopped for long has no lease and is alive: its lock tells.
                if !is_alive(probe(&inner.state_dir, &owner_id), lease_ms, self.now_ms) {
                    if !self.plan.dry_run {
                        remove_dead(&inner.state_dir, &owner_id);
                    }
                    dead.push(owner_no);
                }
            }
            if self.plan.dry_run {
                self.report.owners += dead.len() as u64;
            } else if !dead.is_empty() {
                let list: Arc<str> = json_list(dead).into();
                self.commit(move |connection| {
                    let list = list.clone();
                    Box::pin(async move {
                        let deleted =
                            sqlx::query(DELETE_OWNERS).bind(cutoff_ms).bind(&*list).execute(connection).await?;
                        Ok(Gone { owners: deleted.rows_affected(), ..Gone::default() })
                    })
                })
                .await?;
            }
        }
        Ok(())
    }

    /// What became of the times of schedules, but for the last of each.
    pub(super) async fn ticks(&mut self) -> Result<(), EngineError> {
        let (cutoff_ms, inner) = (self.plan.cutoff.ended_before_ms, self.inner);
        let mut last = i64::MIN;
        while !self.is_over() {
            let ticks: Vec<i64> = patient(inner.clock.as_ref(), || {
                sqlx::query_scalar(OLD_TICKS).bind(cutoff_ms).bind(last).bind(ROWS).fetch_all(&inner.readers)
            })
            .await
            .map_err(storage("look for old ticks"))?;
            let Some(newest) = ticks.last() else { break };
            last = *newest;
            if self.plan.dry_run {
                self.report.ticks += ticks.len() as u64;
                continue;
            }
            let list: Arc<str> = json_list(ticks).into();
            self.commit(move |connection| {
                let list = list.clone();
                Box::pin(async move {
                    let deleted = sqlx::query("DELETE FROM tick WHERE tick_no IN (SELECT value FROM json_each(?))")
                        .bind(&*list)
                        .execute(connection)
                        .await?;
                    Ok(Gone { ticks: deleted.rows_affected(), ..Gone::default() })
                })
            })
            .await?;
        }
        Ok(())
    }
}
