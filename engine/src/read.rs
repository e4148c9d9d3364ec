//! Reading the journal, from any process, also while others write.

mod children;
mod schedules;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine_rules::clock::Clock;
use engine_rules::failure::Failure;
use engine_rules::position::{Position, step_label};
use engine_rules::state::{RunState, StepState};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, QueryBuilder, Row as _, Sqlite, SqliteConnection, SqlitePool};

use crate::context::{tells_of_cancel, tells_of_time};
use crate::db;
use crate::error::{EngineError, storage};
use crate::id::RunId;
use crate::owner::{is_alive, probe};

pub use children::{ChildRow, Children};
pub use schedules::{ScheduleRow, TickFilter, TickRow};

/// A run, with all that is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    /// Its id.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow: String,
    /// The definition version that it began under.
    pub version: u32,
    /// How it stands.
    pub state: RunState,
    /// Its input.
    pub input: Value,
    /// Its output, once it succeeded.
    pub output: Option<Value>,
    /// Why it failed or is blocked.
    pub failure: Option<Failure>,
    /// At which step.
    pub failed_step: Option<String>,
    /// What it is about.
    pub labels: BTreeMap<String, String>,
    /// Its concurrency key.
    pub concurrency_key: Option<String>,
    /// `forbid` or `queue`.
    pub concurrency_policy: String,
    /// The run that it belongs to.
    pub parent_run_id: Option<RunId>,
    /// The run that it replays.
    pub origin_run_id: Option<RunId>,
    /// The step that it replays from.
    pub origin_step: Option<String>,
    /// The schedule that started it.
    pub schedule: Option<String>,
    /// Who started it.
    pub actor: String,
    /// Why.
    pub reason: Option<String>,
    /// The key that started it once.
    pub idempotency_key: Option<String>,
    /// The process that works on it, or did last.
    pub owner: Option<OwnerRow>,
    /// How many owners it had.
    pub epoch: i64,
    /// When a person asked for its end.
    pub cancel_requested_at_ms: Option<i64>,
    /// When a person asked for it to be held.
    pub pause_requested_at_ms: Option<i64>,
    /// When it is due, while it waits for a time.
    pub wake_at_ms: Option<i64>,
    /// When it was recorded.
    pub created_at_ms: i64,
    /// When it first began.
    pub started_at_ms: Option<i64>,
    /// When it ended.
    pub ended_at_ms: Option<i64>,
    /// When its purge began: its history is no longer whole, and the next purge ends it.
    #[serde(default)]
    pub purge_begun_at_ms: Option<i64>,
    /// How many of its steps have a result.
    pub steps_recorded: u32,
    /// The step that it last asked for.
    pub current_step: Option<String>,
}

/// A process that works on runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerRow {
    /// Its id.
    pub owner_id: String,
    /// Its process id.
    pub pid: i64,
    /// Its machine.
    pub host: String,
    /// The program's version.
    pub version: String,
    /// Whether it lives.
    pub alive: bool,
}

/// A step of a run, with all that is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRow {
    /// Its place, as text.
    pub position: String,
    /// Its place among the steps and sections of the run.
    pub top: u32,
    /// The iteration of its section.
    pub iteration: u32,
    /// Its place within the section.
    pub sub: u32,
    /// `activity`, or what else the workflow asked for: `now`, `new_id`, `section`, `section_end`, `sleep`, `signal`,
    /// `child`, `fan_out`.
    pub kind: String,
    /// Its name within its workflow or section.
    pub name: String,
    /// Its section.
    pub section: Option<String>,
    /// Its name as an operator reads it, such as `expire#2.0_advance_current`.
    pub label: String,
    /// The activity that carries it out.
    pub activity: Option<String>,
    /// How it stands.
    pub state: StepState,
    /// Its input.
    pub input: Option<Value>,
    /// The digest of its input.
    pub input_digest: String,
    /// Its output.
    pub output: Option<Value>,
    /// Why it failed, or its last attempt did.
    pub failure: Option<Failure>,
    /// Its latest attempt, from 1.
    pub attempt: u32,
    /// How many attempts no longer count.
    pub forgiven: u32,
    /// When its next attempt, or what it waits for, is due.
    pub next_attempt_at_ms: Option<i64>,
    /// When the attempt at work last gave a sign of life.
    pub heartbeat_at_ms: Option<i64>,
    /// How far it was then: `{unit, done, total}`.
    pub progress: Option<Value>,
    /// The run whose result this is, where it was carried over.
    pub carried_from: Option<String>,
    /// Which owner of the run recorded it.
    pub epoch: i64,
    /// When its first attempt began.
    pub first_started_at_ms: i64,
    /// When its latest attempt began.
    pub started_at_ms: i64,
    /// When its latest attempt ended.
    pub ended_at_ms: Option<i64>,
    /// How long its latest attempt took, in microseconds.
    pub duration_us: Option<u64>,
    /// Every attempt, oldest first.
    pub attempts: Vec<AttemptRow>,
}

/// An attempt of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRow {
    /// Which, from 1.
    pub attempt: u32,
    /// `running`, `succeeded`, `failed`, `crashed`, `timed_out` or `cancelled`.
    pub outcome: String,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// Which owner of the run it belonged to.
    pub epoch: i64,
    /// When it began; unknown where its process died before that was recorded.
    pub started_at_ms: Option<i64>,
    /// When it ended.
    pub ended_at_ms: Option<i64>,
    /// How long it took, in microseconds.
    pub duration_us: Option<u64>,
}

/// What a person did to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRow {
    /// When.
    pub at_ms: i64,
    /// Who.
    pub actor: String,
    /// What.
    pub action: String,
    /// Why.
    pub reason: String,
    /// What else is to be known: of a replay, both runs and the step.
    #[serde(default)]
    pub details: Option<Value>,
}

/// A run with its steps and what persons did to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunDetail {
    /// The run.
    pub run: RunRow,
    /// Its steps, in the order of their places; abandoned iterations before those that replaced them.
    pub steps: Vec<StepRow>,
    /// What persons did.
    pub audit: Vec<AuditRow>,
    /// The runs that it started.
    #[serde(default)]
    pub children: Children,
}

/// Which runs to list. Empty fields do not restrict.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// In one of these states.
    pub states: Vec<RunState>,
    /// Of this workflow.
    pub workflow: Option<String>,
    /// With these labels.
    pub labels: BTreeMap<String, String>,
    /// Started by this run, directly.
    pub parent: Option<RunId>,
    /// Recorded at or after this time.
    pub since_at_ms: Option<i64>,
    /// The newest of them only.
    pub limit: Option<u32>,
}

/// Reads the journal and never writes. A busy writer does not hold it up.
#[derive(Clone)]
pub struct Reader {
    pub(crate) pool: SqlitePool,
    state_dir: PathBuf,
    pub(crate) clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("state_dir", &self.state_dir).finish_non_exhaustive()
    }
}

const RUN_COLUMNS: &str = "SELECT r.*, o.owner_id, o.pid, o.host, o.version AS owner_version, o.lease_until_at_ms, \
     (SELECT b.begun_at_ms FROM purge_begun b WHERE b.run_no = r.run_no) AS purge_begun_at_ms, \
     (SELECT count(*) FROM step s WHERE s.run_no = r.run_no AND s.kind = 'activity' \
        AND s.state IN ('succeeded', 'failed')) AS steps_recorded, \
     (SELECT json_array(s.section, s.iteration, s.name) FROM step s WHERE s.run_no = r.run_no \
        AND s.kind IN ('activity', 'sleep', 'signal', 'child', 'fan_out') AND s.state <> 'abandoned' \
        ORDER BY s.top DESC, s.iteration DESC, s.sub DESC LIMIT 1) AS current_step \
     FROM run r LEFT JOIN owner o ON o.owner_no = r.owner_no";

impl Reader {
    /// Opens the state in `state_dir` for reading.
    ///
    /// # Errors
    /// [`EngineError::NoState`] when there is none; [`EngineError::Schema`] when it is another program's.
    pub async fn open(state_dir: &Path, clock: Arc<dyn Clock>) -> Result<Self, EngineError> {
        let pool = db::open_readers(state_dir, 2).await?;
        db::check_schema(&pool, &db::path(state_dir)).await?;
        Ok(Self::over(pool, state_dir.to_owned(), clock))
    }

    pub(crate) fn over(pool: SqlitePool, state_dir: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self { pool, state_dir, clock }
    }

    /// The runs that `filter` lets through, newest first.
    ///
    /// # Errors
    /// [`EngineError::Storage`], [`EngineError::Corrupt`].
    pub async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, EngineError> {
        let mut query: QueryBuilder<Sqlite> = QueryBuilder::new(RUN_COLUMNS);
        query.push(" WHERE true");
        if !filter.states.is_empty() {
            query.push(" AND r.state IN (");
            let mut states = query.separated(", ");
            for state in &filter.states {
                states.push_bind(state.as_str());
            }
            query.push(")");
        }
        if let Some(workflow) = &filter.workflow {
            query.push(" AND r.workflow = ").push_bind(workflow.clone());
        }
        for (name, value) in &filter.labels {
            if name == "product" {
                // The text of an index, so it must stand exactly so.
                query.push(" AND json_extract(labels, '$.product') = ").push_bind(value.clone());
            } else {
                query.push(" AND EXISTS (SELECT 1 FROM json_each(r.labels) WHERE key = ").push_bind(name.clone());
                query.push(" AND value = ").push_bind(value.clone()).push(")");
            }
        }
        if let Some(parent) = filter.parent {
            query.push(" AND r.parent_run_id = ").push_bind(parent.to_string());
        }
        if let Some(since) = filter.since_at_ms {
            query.push(" AND r.created_at_ms >= ").push_bind(since);
        }
        query.push(" ORDER BY r.run_no DESC");
        if let Some(limit) = filter.limit {
            query.push(" LIMIT ").push_bind(limit);
        }
        let rows = query.build().fetch_all(&self.pool).await.map_err(storage("list the runs"))?;
        let mut alive = HashMap::new();
        rows.iter().map(|row| self.run_row(row, &mut alive)).collect()
    }

    /// The run whose id begins with `prefix`.
    ///
    /// # Errors
    /// [`EngineError::UnknownRun`], [`EngineError::AmbiguousRun`].
    pub async fn find(&self, prefix: &str) -> Result<RunId, EngineError> {
        let unknown = || EngineError::UnknownRun { run: prefix.to_owned() };
        let lower = prefix.to_ascii_lowercase();
        if lower.is_empty() || !lower.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
            return Err(unknown());
        }
        let rows: Vec<String> =
            sqlx::query_scalar("SELECT run_id FROM run WHERE run_id >= ?1 AND run_id < ?1 || 'g' LIMIT 6")
                .bind(lower)
                .fetch_all(&self.pool)
                .await
                .map_err(storage("find the run"))?;
        let runs = rows.iter().map(|id| parse_id(id)).collect::<Result<Vec<_>, _>>()?;
        match runs.as_slice() {
            [] => Err(unknown()),
            [run] => Ok(*run),
            [..] => Err(EngineError::AmbiguousRun { prefix: prefix.to_owned(), runs }),
        }
    }

    /// The run, its steps with their attempts, and what persons did to it, as they stood at one moment.
    ///
    /// # Errors
    /// [`EngineError::UnknownRun`], [`EngineError::Storage`], [`EngineError::Corrupt`].
    pub async fn run(&self, run_id: RunId) -> Result<RunDetail, EngineError> {
        // One read transaction, so that the parts fit together.
        let mut snapshot = self.pool.begin().await.map_err(storage("read the run"))?;
        self.detail(&mut snapshot, run_id).await
    }

    /// The same on a connection that holds one moment.
    pub(crate) async fn detail(
        &self,
        snapshot: &mut SqliteConnection,
        run_id: RunId,
    ) -> Result<RunDetail, EngineError> {
        let row = sqlx::query(AssertSqlSafe(format!("{RUN_COLUMNS} WHERE r.run_id = ?")))
            .bind(run_id.to_string())
            .fetch_optional(&mut *snapshot)
            .await
            .map_err(storage("read the run"))?
            .ok_or_else(|| EngineError::UnknownRun { run: run_id.to_string() })?;
        let run_no: i64 = row.try_get("run_no").map_err(storage("read the run"))?;
        let steps = sqlx::query("SELECT * FROM step WHERE run_no = ? ORDER BY top, iteration, sub")
            .bind(run_no)
            .fetch_all(&mut *snapshot)
            .await
            .map_err(storage("read the run's steps"))?;
        let attempts = sqlx::query("SELECT * FROM attempt WHERE run_no = ? ORDER BY top, iteration, sub, attempt")
            .bind(run_no)
            .fetch_all(&mut *snapshot)
            .await
            .map_err(storage("read the run's attempts"))?;
        let audit = sqlx::query("SELECT * FROM audit WHERE run_id = ? ORDER BY audit_no")
            .bind(run_id.to_string())
            .fetch_all(&mut *snapshot)
            .await
            .map_err(storage("read what was done to the run"))?;
        let children = children::of(snapshot, run_id).await?;
        let run = self.run_row(&row, &mut HashMap::new())?;
        let mut steps = steps.iter().map(step_row).collect::<Result<Vec<_>, _>>()?;
        let mut by_place: HashMap<Position, Vec<AttemptRow>> = HashMap::new();
        for row in &attempts {
            let (position, attempt) = attempt_row(row)?;
            by_place.entry(position).or_default().push(attempt);
        }
        for step in &mut steps {
            let position = Position { top: step.top, iteration: step.iteration, sub: step.sub };
            step.attempts = by_place.remove(&position).unwrap_or_default();
            // The latest attempt stands in the step itself until another follows it.
            if step.attempts.last().is_none_or(|last| last.attempt < step.attempt) {
                step.attempts.extend(latest_attempt(step));
            }
        }
        let audit = audit.iter().map(audit_row).collect::<Result<_, _>>().map_err(storage("read the run"))?;
        Ok(RunDetail { run, steps, audit, children })
    }

    /// The run alone, without its steps.
    ///
    /// # Errors
    /// [`EngineError::UnknownRun`], [`EngineError::Storage`], [`EngineError::Corrupt`].
    pub async fn row(&self, run_id: RunId) -> Result<RunRow, EngineError> {
        let row = sqlx::query(AssertSqlSafe(format!("{RUN_COLUMNS} WHERE r.run_id = ?")))
            .bind(run_id.to_string())
            .fetch_optional(&self.pool)
            .await
            .map_err(storage("read the run"))?
            .ok_or_else(|| EngineError::UnknownRun { run: run_id.to_string() })?;
        self.run_row(&row, &mut HashMap::new())
    }

    fn run_row(&self, row: &SqliteRow, alive: &mut HashMap<String, bool>) -> Result<RunRow, EngineError> {
        let columns = Columns { row, subject: "a run" };
        let owner = match columns.get::<Option<String>>("owner_id")? {
            None => None,
            Some(owner_id) => {
                let lease: i64 = columns.get("lease_until_at_ms")?;
                let now_ms = self.clock.now_ms();
                let alive = *alive
                    .entry(owner_id.clone())
                    .or_insert_with(|| is_alive(probe(&self.state_dir, &owner_id), lease, now_ms));
                let (pid, host, version) = (columns.get("pid")?, columns.get("host")?, columns.get("owner_version")?);
                Some(OwnerRow { owner_id, pid, host, version, alive })
            }
        };
        let current: Option<(Option<String>, u32, String)> = columns.json("current_step")?;
        Ok(RunRow {
            run_id: parse_id(&columns.get::<String>("run_id")?)?,
            workflow: columns.get("workflow")?,
            version: columns.get("version")?,
            state: columns.run_state()?,
            input: columns.json("input")?.unwrap_or(Value::Null),
            output: columns.json("output")?,
            failure: columns.json("failure")?,
            failed_step: columns.get("failed_step")?,
            labels: columns.json("labels")?.unwrap_or_default(),
            concurrency_key: columns.get("concurrency_key")?,
            concurrency_policy: columns.get("concurrency_policy")?,
            parent_run_id: columns.id("parent_run_id")?,
            origin_run_id: columns.id("origin_run_id")?,
            origin_step: columns.get("origin_step")?,
            schedule: columns.get("schedule")?,
            actor: columns.get("actor")?,
            reason: columns.get("reason")?,
            idempotency_key: columns.get("idempotency_key")?,
            owner,
            epoch: columns.get("epoch")?,
            cancel_requested_at_ms: columns.get("cancel_requested_at_ms")?,
            pause_requested_at_ms: columns.get("pause_requested_at_ms")?,
            wake_at_ms: columns.get("wake_at_ms")?,
            created_at_ms: columns.get("created_at_ms")?,
            started_at_ms: columns.get("started_at_ms")?,
            ended_at_ms: columns.get("ended_at_ms")?,
            purge_begun_at_ms: columns.get("purge_begun_at_ms")?,
            steps_recorded: columns.get("steps_recorded")?,
            current_step: current.map(|(section, iteration, name)| step_label(section.as_deref(), iteration, &name)),
        })
    }
}

/// A row's columns by name, with errors that say which.
struct Columns<'r> {
    row: &'r SqliteRow,
    subject: &'static str,
}

impl<'r> Columns<'r> {
    fn get<T>(&self, name: &str) -> Result<T, EngineError>
    where
        T: sqlx::Decode<'r, Sqlite> + sqlx::Type<Sqlite>,
    {
        self.row.try_get(name).map_err(storage("read a row"))
    }

    fn json<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>, EngineError> {
        let Some(text) = self.get::<Option<String>>(name)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|_| self.corrupt(text, "the JSON of this program"))
    }

    fn id(&self, name: &str) -> Result<Option<RunId>, EngineError> {
        self.get::<Option<String>>(name)?.map(|text| parse_id(&text)).transpose()
    }

    fn run_state(&self) -> Result<RunState, EngineError> {
        let state: String = self.get("state")?;
        RunState::from_name(&state).ok_or_else(|| self.corrupt(state, "a state of a run"))
    }

    fn corrupt(&self, found: String, expected: &'static str) -> EngineError {
        EngineError::Corrupt { subject: self.subject.to_owned(), found, expected }
    }
}

pub(crate) fn parse_id(text: &str) -> Result<RunId, EngineError> {
    text.parse().map_err(|_| EngineError::Corrupt {
        subject: "a run".to_owned(),
        found: text.to_owned(),
        expected: "an id",
    })
}

fn step_row(row: &SqliteRow) -> Result<StepRow, EngineError> {
    let columns = Columns { row, subject: "a step" };
    let position =
        Position { top: columns.get("top")?, iteration: columns.get("iteration")?, sub: columns.get("sub")? };
    let name: String = columns.get("name")?;
    let kind: String = columns.get("kind")?;
    let section: Option<String> = columns.get("section")?;
    let state: String = columns.get("state")?;
    let label = match kind.as_str() {
        "section" | "section_end" => step_label(None, 1, &format!("{name}#{} {kind}", position.iteration)),
        _ => step_label(section.as_deref(), position.iteration, &name),
    };
    Ok(StepRow {
        position: position.to_string(),
        top: position.top,
        iteration: position.iteration,
        sub: position.sub,
        label,
        kind,
        name,
        section,
        activity: columns.get("activity")?,
        state: StepState::from_name(&state).ok_or_else(|| columns.corrupt(state, "a state of a step"))?,
        input: columns.json("input")?,
        input_digest: columns.get("input_digest")?,
        output: columns.json("output")?,
        failure: columns.json("failure")?,
        attempt: columns.get("attempt")?,
        forgiven: columns.get("forgiven")?,
        next_attempt_at_ms: columns.get("next_attempt_at_ms")?,
        heartbeat_at_ms: columns.get("heartbeat_at_ms")?,
        progress: columns.json("progress")?,
        carried_from: columns.get("carried_from")?,
        epoch: columns.get("epoch")?,
        first_started_at_ms: columns.get("first_started_at_ms")?,
        started_at_ms: columns.get("started_at_ms")?,
        ended_at_ms: columns.get("ended_at_ms")?,
        duration_us: columns.get::<Option<i64>>("duration_us")?.map(i64::unsigned_abs),
        attempts: Vec::new(),
    })
}

fn attempt_row(row: &SqliteRow) -> Result<(Position, AttemptRow), EngineError> {
    let columns = Columns { row, subject: "an attempt" };
    let position =
        Position { top: columns.get("top")?, iteration: columns.get("iteration")?, sub: columns.get("sub")? };
    let attempt = AttemptRow {
        attempt: columns.get("attempt")?,
        outcome: columns.get("outcome")?,
        failure: columns.json("failure")?,
        epoch: columns.get("epoch")?,
        started_at_ms: columns.get("started_at_ms")?,
        ended_at_ms: columns.get("ended_at_ms")?,
        duration_us: columns.get::<Option<i64>>("duration_us")?.map(i64::unsigned_abs),
    };
    Ok((position, attempt))
}

/// The attempt that the step's own row tells of.
fn latest_attempt(step: &StepRow) -> Option<AttemptRow> {
    let outcome = match step.state {
        StepState::Running => "running",
        StepState::Succeeded => "succeeded",
        StepState::Failed if step.failure.as_ref().is_some_and(tells_of_cancel) => "cancelled",
        StepState::Failed if step.failure.as_ref().is_some_and(tells_of_time) => "timed_out",
        StepState::Failed => "failed",
        StepState::Abandoned if step.output.is_some() => "succeeded",
        StepState::Abandoned if step.failure.is_some() => "failed",
        StepState::Abandoned => "crashed",
        StepState::Pending | StepState::Retrying => return None,
    };
    Some(AttemptRow {
        attempt: step.attempt,
        outcome: outcome.to_owned(),
        failure: step.failure.clone(),
        epoch: step.epoch,
        started_at_ms: Some(step.started_at_ms),
        ended_at_ms: step.ended_at_ms,
        duration_us: step.duration_us,
    })
}

fn audit_row(row: &SqliteRow) -> Result<AuditRow, sqlx::Error> {
    Ok(AuditRow {
        at_ms: row.try_get("at_ms")?,
        actor: row.try_get("actor")?,
        action: row.try_get("action")?,
        reason: row.try_get("reason")?,
        // Written by this program, so it is JSON; a row that it cannot read is still shown.
        details: row.try_get::<Option<String>, _>("details")?.and_then(|text| serde_json::from_str(&text).ok()),
    })
}
