//! The schedules and what became of their ticks.

use std::collections::{BTreeMap, HashMap};

use engine_rules::schedule::Cursor;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::Value;
use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Sqlite};

use super::{AuditRow, Columns, Reader, audit_row};
use crate::error::{EngineError, storage};
use crate::id::RunId;
use crate::schedules::ScheduleDef;

/// A schedule as the state database has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScheduleRow {
    /// Its name.
    pub name: String,
    /// The workflow that it starts.
    pub workflow: String,
    /// The input of each run.
    pub input: Value,
    /// Its cron expression.
    pub cron: String,
    /// The IANA name of its time zone.
    pub time_zone: String,
    /// `run-once`, `skip` or `run-all`.
    pub misfire: String,
    /// How old a missed tick may be and still start a run, in milliseconds.
    pub catch_up_ms: i64,
    /// The concurrency key of its runs.
    pub concurrency_key: Option<String>,
    /// `forbid` or `queue`.
    pub concurrency_policy: String,
    /// The labels of its runs.
    pub labels: BTreeMap<String, String>,
    /// The local time up to which its ticks were decided, as `yyyy-mm-ddThh:mm:ss`; `None` before the first.
    pub cursor_local: Option<String>,
    /// The instant up to which its ticks were decided.
    pub cursor_at_ms: Option<i64>,
    /// Since when it is paused.
    pub paused_at_ms: Option<i64>,
    /// Who paused it.
    pub paused_by: Option<String>,
    /// Why.
    pub paused_reason: Option<String>,
    /// Since when the configuration has it no more.
    pub removed_at_ms: Option<i64>,
    /// When it was first recorded.
    pub created_at_ms: i64,
    /// When it was last changed.
    pub changed_at_ms: i64,
    /// The tick that was decided last.
    pub last_tick: Option<TickRow>,
}

impl ScheduleRow {
    /// Whether the state database has it as `definition` says, so that loading the definition would change nothing.
    #[must_use]
    pub fn fits(&self, definition: &ScheduleDef) -> bool {
        let Ok(timing) = definition.timing() else { return false };
        self.removed_at_ms.is_none()
            && self.name == definition.name
            && self.workflow == definition.workflow
            && self.input == definition.input
            && self.cron == timing.cron.as_str()
            && timing.time_zone.iana_name() == Some(self.time_zone.as_str())
            && self.misfire == definition.misfire.as_str()
            && self.catch_up_ms == definition.catch_up_ms
            && self.concurrency_key == definition.concurrency_key
            && self.concurrency_policy == definition.key_policy.as_str()
            && self.labels == definition.labels
    }

    /// How far its ticks were decided: the tick after this is the next one.
    #[must_use]
    pub fn cursor(&self, time_zone: &TimeZone) -> Option<Cursor> {
        let at = Timestamp::from_millisecond(self.cursor_at_ms?).ok()?;
        match &self.cursor_local {
            None => Some(Cursor::now(at, time_zone)),
            Some(local) => Some(Cursor { local: local.parse().ok()?, at }),
        }
    }
}

/// What became of a tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TickRow {
    /// The schedule.
    pub schedule: String,
    /// The tick's name: the local time, with its offset where elapsed time is followed.
    pub local_time: String,
    /// The zone that this is a time of.
    pub time_zone: String,
    /// When it was due.
    pub due_at_ms: i64,
    /// `started`, `skipped`, or `held` when another run had the key.
    pub outcome: String,
    /// Why it started no run.
    pub reason: Option<String>,
    /// The run that it started.
    pub run_id: Option<RunId>,
    /// The run that had the key.
    pub holder_run_id: Option<RunId>,
    /// When that was decided.
    pub decided_at_ms: i64,
}

/// Which ticks to list. Empty fields do not restrict.
#[derive(Debug, Clone, Default)]
pub struct TickFilter {
    /// Of this schedule.
    pub schedule: Option<String>,
    /// Only those that started no run: skipped, or held.
    pub only_skipped: bool,
    /// The newest of them only.
    pub limit: Option<u32>,
}

impl Reader {
    /// The schedules, also those that left the configuration, by name.
    ///
    /// # Errors
    /// [`EngineError::Storage`], [`EngineError::Corrupt`].
    pub async fn schedules(&self) -> Result<Vec<ScheduleRow>, EngineError> {
        let mut snapshot = self.pool.begin().await.map_err(storage("read the schedules"))?;
        let rows = sqlx::query("SELECT * FROM schedule ORDER BY name")
            .fetch_all(&mut *snapshot)
            .await
            .map_err(storage("read the schedules"))?;
        let last = sqlx::query(
            "SELECT t.* FROM schedule s JOIN tick t ON t.tick_no = \
             (SELECT max(tick_no) FROM tick WHERE schedule = s.name)",
        )
        .fetch_all(&mut *snapshot)
        .await
        .map_err(storage("read the last ticks"))?;
        let mut last = last
            .iter()
            .map(|row| tick_row(row).map(|tick| (tick.schedule.clone(), tick)))
            .collect::<Result<HashMap<_, _>, _>>()?;
        let mut schedules = rows.iter().map(schedule_row).collect::<Result<Vec<_>, _>>()?;
        for schedule in &mut schedules {
            schedule.last_tick = last.remove(&schedule.name);
        }
        Ok(schedules)
    }

    /// The ticks that `filter` lets through, newest decision first.
    ///
    /// # Errors
    /// [`EngineError::Storage`], [`EngineError::Corrupt`].
    pub async fn ticks(&self, filter: &TickFilter) -> Result<Vec<TickRow>, EngineError> {
        let mut query: QueryBuilder<Sqlite> = QueryBuilder::new("SELECT * FROM tick WHERE true");
        if let Some(schedule) = &filter.schedule {
            query.push(" AND schedule = ").push_bind(schedule.clone());
        }
        if filter.only_skipped {
            // The text of a partial index, so it must stand exactly so.
            query.push(" AND outcome <> 'started'");
        }
        query.push(" ORDER BY tick_no DESC");
        if let Some(limit) = filter.limit {
            query.push(" LIMIT ").push_bind(limit);
        }
        let rows = query.build().fetch_all(&self.pool).await.map_err(storage("list the ticks"))?;
        rows.iter().map(tick_row).collect()
    }

    /// What persons did to a schedule, oldest first.
    ///
    /// # Errors
    /// [`EngineError::Storage`].
    pub async fn schedule_audit(&self, schedule: &str) -> Result<Vec<AuditRow>, EngineError> {
        let rows = sqlx::query("SELECT * FROM audit WHERE schedule = ? ORDER BY audit_no")
            .bind(schedule)
            .fetch_all(&self.pool)
            .await
            .map_err(storage("read what was done to the schedule"))?;
        rows.iter().map(audit_row).collect::<Result<_, _>>().map_err(storage("read a row"))
    }
}

fn schedule_row(row: &SqliteRow) -> Result<ScheduleRow, EngineError> {
    let columns = Columns { row, subject: "a schedule" };
    let missing = |name: &'static str| columns.corrupt(String::new(), name);
    Ok(ScheduleRow {
        name: columns.get("name")?,
        workflow: columns.get("workflow")?,
        input: columns.json("input")?.ok_or_else(|| missing("an input"))?,
        cron: columns.get("cron")?,
        time_zone: columns.get("time_zone")?,
        misfire: columns.get("misfire")?,
        catch_up_ms: columns.get("catch_up_ms")?,
        concurrency_key: columns.get("concurrency_key")?,
        concurrency_policy: columns.get("concurrency_policy")?,
        labels: columns.json("labels")?.ok_or_else(|| missing("labels"))?,
        cursor_local: columns.get("cursor_local")?,
        cursor_at_ms: columns.get("cursor_at_ms")?,
        paused_at_ms: columns.get("paused_at_ms")?,
        paused_by: columns.get("paused_by")?,
        paused_reason: columns.get("paused_reason")?,
        removed_at_ms: columns.get("removed_at_ms")?,
        created_at_ms: columns.get("created_at_ms")?,
        changed_at_ms: columns.get("changed_at_ms")?,
        last_tick: None,
    })
}

fn tick_row(row: &SqliteRow) -> Result<TickRow, EngineError> {
    let columns = Columns { row, subject: "a tick" };
    Ok(TickRow {
        schedule: columns.get("schedule")?,
        local_time: columns.get("local_time")?,
        time_zone: columns.get("time_zone")?,
        due_at_ms: columns.get("due_at_ms")?,
        outcome: columns.get("outcome")?,
        reason: columns.get("reason")?,
        run_id: columns.id("run_id")?,
        holder_run_id: columns.id("holder_run_id")?,
        decided_at_ms: columns.get("decided_at_ms")?,
    })
}
