//! Deciding the ticks that are due, and recording each with its run.

use std::collections::HashSet;
use std::sync::Arc;

use engine_rules::crash;
use engine_rules::limits::{REASON_LIMIT_BYTES, cut};
use engine_rules::schedule::{
    Cursor, Decided, ON_TIME_TOLERANCE_MS, Standing, TICKS_AT_ONCE, Tick, TickPlan, plan_ticks, span_words,
};
use jiff::Timestamp;
use serde_json::json;
use sqlx::SqliteConnection;

use super::stored::Stored;
use super::{Fired, FiredOutcome};
use crate::engine::Inner;
use crate::error::EngineError;
use crate::start::new_run;
use crate::writer::{NewRun, StartAnswer, start_within};

/// How many bytes of input the runs of one transaction have at most: 8 MiB, so that memory stays small.
const BATCH_INPUT_BYTES: usize = 8 * 1024 * 1024;

pub(super) async fn fire_due(inner: &Inner) -> Result<Vec<Fired>, EngineError> {
    let mut fired = Vec::new();
    // A batch a schedule and round, so that the backlog of one does not hold up the others.
    let mut left: Option<HashSet<String>> = None;
    loop {
        let mut again = HashSet::new();
        for stored in Stored::all(inner).await? {
            let name = stored.definition.name.clone();
            if stored.removed || left.as_ref().is_some_and(|left| !left.contains(&name)) || !is_ours(inner, &stored) {
                continue;
            }
            match advance(inner, &stored, &stored.standing(), now(inner)).await {
                Ok(Advance::Nothing) => {}
                Ok(Advance::Decided { fired: more, is_more }) => {
                    fired.extend(more);
                    if is_more {
                        again.insert(name);
                    }
                }
                // Another process decided something of it, or a person changed it: look again.
                Ok(Advance::Overtaken) => {
                    again.insert(name);
                }
                Err(error @ (EngineError::Storage { .. } | EngineError::Closed)) => return Err(error),
                // One schedule that cannot be read must not keep the others from firing.
                Err(error) => tracing::error!(%error, schedule = name, "the schedule does not fire"),
            }
        }
        if again.is_empty() {
            return Ok(fired);
        }
        left = Some(again);
    }
}

pub(super) async fn next_due_ms(inner: &Inner) -> Result<Option<i64>, EngineError> {
    let mut earliest: Option<i64> = None;
    for stored in Stored::all(inner).await? {
        if stored.removed || !is_ours(inner, &stored) {
            continue;
        }
        let next = stored.timing().and_then(|timing| {
            let cursor = stored.cursor(&timing)?;
            Ok(timing.ticks_after(cursor).next())
        });
        match next {
            Ok(Some(tick)) => {
                let at_ms = tick.at.as_millisecond();
                earliest = Some(earliest.map_or(at_ms, |earliest| earliest.min(at_ms)));
            }
            Ok(None) => {}
            Err(error) => tracing::error!(%error, schedule = stored.definition.name, "the schedule does not fire"),
        }
    }
    Ok(earliest)
}

/// Whether this program has the schedule's workflow. Where it does not, a newer one put the schedule there.
fn is_ours(inner: &Inner, stored: &Stored) -> bool {
    let is_ours = inner.newest_version(&stored.definition.workflow).is_ok();
    if !is_ours {
        tracing::debug!(
            schedule = stored.definition.name,
            workflow = stored.definition.workflow,
            "this program does not have the workflow: the schedule is left to one that does"
        );
    }
    is_ours
}

/// Now, as the time of the ticks.
pub(super) fn now(inner: &Inner) -> Timestamp {
    Timestamp::from_millisecond(inner.clock.now_ms()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// What became of a batch.
pub(super) enum Advance {
    /// No tick is due.
    Nothing,
    /// The ticks are recorded.
    Decided { fired: Vec<Fired>, is_more: bool },
    /// The row is no more as it was read; nothing was written.
    Overtaken,
}

/// Decides and records the schedule's next ticks, at most [`TICKS_AT_ONCE`].
pub(super) async fn advance(
    inner: &Inner,
    stored: &Stored,
    standing: &Standing,
    now: Timestamp,
) -> Result<Advance, EngineError> {
    let timing = stored.timing()?;
    // Each run has the input once more.
    let most = TICKS_AT_ONCE.min(BATCH_INPUT_BYTES / stored.definition.input.len().max(1)).max(1);
    let plan = plan_ticks(&timing, stored.cursor(&timing)?, now, standing, most);
    if plan.decisions.is_empty() {
        return Ok(Advance::Nothing);
    }
    let batch = Arc::new(TickBatch::new(inner, stored, &plan)?);
    crash::point("engine.ticks.before");
    let work = batch.clone();
    let recorded = inner
        .writer
        .exclusive("record the ticks", move |connection| {
            let work = work.clone();
            Box::pin(async move { work.record(connection).await })
        })
        .await?;
    crash::point("engine.ticks.after");
    match recorded {
        None => Ok(Advance::Overtaken),
        Some(fired) => {
            let skipped = plan.decisions.len() - fired.len();
            if skipped > 0 {
                tracing::info!(schedule = stored.definition.name, skipped, "ticks were skipped");
            }
            Ok(Advance::Decided { fired, is_more: plan.is_more })
        }
    }
}

/// Records every tick up to `until` as skipped, and answers the row that is then there; `None` when it was overtaken by a
/// change other than of the cursor.
pub(super) async fn settle(
    inner: &Inner,
    mut stored: Stored,
    standing: &Standing,
    until: Timestamp,
) -> Result<Option<Stored>, EngineError> {
    loop {
        match advance(inner, &stored, standing, until).await? {
            Advance::Nothing => return Ok(Some(stored)),
            Advance::Decided { .. } | Advance::Overtaken => {}
        }
        let revision = stored.revision;
        match Stored::find(inner, &stored.definition.name).await? {
            Some(now) if now.revision == revision => stored = now,
            Some(_) | None => return Ok(None),
        }
    }
}

/// Ticks and their runs, to be recorded in one transaction.
struct TickBatch {
    stored: Stored,
    cursor: Cursor,
    now_ms: i64,
    ticks: Vec<PlannedTick>,
}

struct PlannedTick {
    tick: Tick,
    /// The run to be started, or why there is none.
    run: Result<Box<NewRun>, String>,
}

impl TickBatch {
    fn new(inner: &Inner, stored: &Stored, plan: &TickPlan) -> Result<Self, EngineError> {
        let name = &stored.definition.name;
        let planned = plan.decisions.iter().map(|decision| {
            let run = match &decision.decided {
                Decided::Skip(reason) => Err(cut(reason.to_string(), REASON_LIMIT_BYTES)),
                Decided::Fire { late_ms } => {
                    let late = match *late_ms > ON_TIME_TOLERANCE_MS {
                        true => format!(", caught up {} late", span_words(*late_ms)),
                        false => String::new(),
                    };
                    let reason =
                        format!("tick {} {} of schedule {name}{late}", decision.tick.id(), stored.definition.time_zone);
                    Ok(Box::new(new_run(inner, stored.start_run(format!("schedule:{name}"), reason)?)?))
                }
            };
            Ok(PlannedTick { tick: decision.tick, run })
        });
        Ok(Self {
            stored: stored.clone(),
            cursor: plan.cursor,
            now_ms: inner.clock.now_ms(),
            ticks: planned.collect::<Result<_, EngineError>>()?,
        })
    }

    /// `None` when the row is no more as it was read.
    async fn record(&self, connection: &mut SqliteConnection) -> Result<Option<Vec<Fired>>, sqlx::Error> {
        let stored = &self.stored;
        let moved = sqlx::query(
            "UPDATE schedule SET cursor_local = ?1, cursor_at_ms = ?2 WHERE schedule_no = ?3 AND revision = ?4 \
             AND cursor_at_ms IS ?5 AND cursor_local IS ?6",
        )
        .bind(self.cursor.local_text())
        .bind(self.cursor.at.as_millisecond())
        .bind(stored.schedule_no)
        .bind(stored.revision)
        .bind(stored.cursor_at_ms)
        .bind(&stored.cursor_local)
        .execute(&mut *connection)
        .await?;
        if moved.rows_affected() == 0 {
            return Ok(None);
        }
        crash::point("engine.ticks.cursor");
        // After the clock went back and the times were changed, the cursor may stand before ticks that were decided.
        let decided = self.decided(connection).await?;
        let mut fired = Vec::new();
        let mut rows = Vec::new();
        let mut together = Vec::new();
        for planned in &self.ticks {
            let id = planned.tick.id();
            if decided.contains(&id.0) {
                continue;
            }
            let row = |outcome: &str, reason: Option<String>, run: Option<String>, holder: Option<String>| {
                json!([id.0, planned.tick.at.as_millisecond(), outcome, reason, run, holder])
            };
            let run = match &planned.run {
                Ok(run) => run,
                Err(reason) => {
                    rows.push(row("skipped", Some(reason.clone()), None, None));
                    continue;
                }
            };
            let outcome = if run.concurrency_key.is_some() && run.concurrency_policy == "forbid" {
                // Each of them may hold the key against the next.
                let answers = start_within(connection, &[run], self.now_ms).await?;
                match answers.as_slice() {
                    [StartAnswer::Busy { holder }] => FiredOutcome::Held { holder: *holder },
                    [..] => FiredOutcome::Started(run.run_id),
                }
            } else {
                together.push(run.as_ref());
                FiredOutcome::Started(run.run_id)
            };
            rows.push(match outcome {
                FiredOutcome::Started(run_id) => row("started", None, Some(run_id.to_string()), None),
                FiredOutcome::Held { holder } => {
                    let key = run.concurrency_key.as_deref().unwrap_or_default();
                    let reason = format!("run {holder} has the key {key}");
                    row("held", Some(reason), None, Some(holder.to_string()))
                }
            });
            let due_at_ms = planned.tick.at.as_millisecond();
            fired.push(Fired { schedule: stored.definition.name.clone(), tick: id, due_at_ms, outcome });
        }
        start_within(connection, &together, self.now_ms).await?;
        crash::point("engine.ticks.runs");
        sqlx::query(
            "INSERT INTO tick (schedule, time_zone, local_time, due_at_ms, outcome, reason, run_id, holder_run_id, \
             decided_at_ms) SELECT ?1, ?2, v->>0, v->>1, v->>2, v->>3, v->>4, v->>5, ?3 \
             FROM (SELECT value AS v FROM json_each(?4))",
        )
        .bind(&stored.definition.name)
        .bind(&self.stored.definition.time_zone)
        .bind(self.now_ms)
        .bind(json!(rows).to_string())
        .execute(&mut *connection)
        .await?;
        Ok(Some(fired))
    }

    /// Those of the ticks that have a row.
    async fn decided(&self, connection: &mut SqliteConnection) -> Result<HashSet<String>, sqlx::Error> {
        let ids: Vec<String> = self.ticks.iter().map(|planned| planned.tick.id().0).collect();
        let found: Vec<String> = sqlx::query_scalar(
            "SELECT local_time FROM tick WHERE schedule = ?1 AND time_zone = ?2 \
             AND local_time IN (SELECT value FROM json_each(?3))",
        )
        .bind(&self.stored.definition.name)
        .bind(&self.stored.definition.time_zone)
        .bind(json!(ids).to_string())
        .fetch_all(connection)
        .await?;
        Ok(found.into_iter().collect())
    }
}

#[cfg(test)]
mod tests;
