//! What a resumed run finds of itself.

use std::collections::HashMap;

use engine_rules::clock::Clock;
use engine_rules::failure::Failure;
use engine_rules::position::Position;
use engine_rules::state::StepState;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row as _, SqlitePool};

use crate::db::patient;
use crate::error::{EngineError, storage};
use crate::id::RunId;

/// A row of the journal, as replay needs it.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub position: Position,
    pub kind: String,
    pub name: String,
    pub section: Option<String>,
    pub state: StepState,
    pub input_digest: String,
    pub output: Option<String>,
    pub failure: Option<Failure>,
    pub attempt: u32,
    pub forgiven: u32,
    pub next_attempt_at_ms: Option<i64>,
    pub started_at_ms: i64,
    pub duration_us: Option<u64>,
    /// The run whose result this is, where it was carried over.
    pub carried_from: Option<String>,
}

/// How much of the journals of several runs is read at once, in bytes of output: 8 MiB, so that many small runs come in
/// one query and memory stays small with large ones.
const TOGETHER_BYTES: i64 = 8 * 1024 * 1024;

/// What one step takes beside its output, for the same sum: its texts and its place in memory.
const ROW_BYTES: i64 = 512;

const COLUMNS: &str = "SELECT run_no, top, iteration, sub, kind, name, section, state, input_digest, output, failure, \
     attempt, forgiven, next_attempt_at_ms, started_at_ms, duration_us, carried_from FROM step";

/// The steps of a run in the order in which it asked for them, without those of abandoned iterations.
pub(crate) async fn load(readers: &SqlitePool, clock: &dyn Clock, run_no: i64) -> Result<Vec<Recorded>, EngineError> {
    let rows = patient(clock, || {
        sqlx::query(AssertSqlSafe(format!(
            "{COLUMNS} WHERE run_no = ? AND state <> 'abandoned' ORDER BY top, iteration, sub"
        )))
        .bind(run_no)
        .fetch_all(readers)
    })
    .await
    .map_err(storage("read the run"))?;
    rows.iter().map(|row| recorded(row).map(|(_, recorded)| recorded)).collect()
}

/// The same of each of the runs, in one query. Those that do not fit into [`TOGETHER_BYTES`] together are left out: each
/// is read by itself when it goes on.
pub(crate) async fn load_many(
    readers: &SqlitePool,
    clock: &dyn Clock,
    runs: &[i64],
) -> Result<HashMap<i64, Vec<Recorded>>, EngineError> {
    let all = serde_json::Value::from(runs).to_string();
    let sizes = patient(clock, || {
        sqlx::query_as::<_, (i64, i64)>(
            "SELECT run_no, sum(coalesce(octet_length(output), 0) + ?2) FROM step \
             WHERE run_no IN (SELECT value FROM json_each(?1)) AND state <> 'abandoned' GROUP BY run_no",
        )
        .bind(all.clone())
        .bind(ROW_BYTES)
        .fetch_all(readers)
    });
    let sizes: HashMap<i64, i64> = sizes.await.map_err(storage("read the runs"))?.into_iter().collect();
    let mut together_bytes = 0_i64;
    let fits = |run_no: &i64| {
        let size_bytes = sizes.get(run_no).copied().unwrap_or(0);
        let fits = size_bytes <= TOGETHER_BYTES - together_bytes;
        together_bytes += if fits { size_bytes } else { 0 };
        fits
    };
    let chosen: Vec<i64> = runs.iter().copied().filter(fits).collect();
    let numbers = serde_json::Value::from(chosen.as_slice()).to_string();
    let rows = patient(clock, || {
        sqlx::query(AssertSqlSafe(format!(
            "{COLUMNS} WHERE run_no IN (SELECT value FROM json_each(?)) AND state <> 'abandoned' \
             ORDER BY run_no, top, iteration, sub"
        )))
        .bind(numbers.clone())
        .fetch_all(readers)
    });
    let rows = rows.await.map_err(storage("read the runs"))?;
    let mut journals: HashMap<i64, Vec<Recorded>> = chosen.into_iter().map(|run_no| (run_no, Vec::new())).collect();
    for row in &rows {
        let (run_no, recorded) = recorded(row)?;
        journals.entry(run_no).or_default().push(recorded);
    }
    Ok(journals)
}

fn recorded(row: &SqliteRow) -> Result<(i64, Recorded), EngineError> {
    let number = |column: &str| -> Result<u32, sqlx::Error> { row.try_get(column) };
    let place = || -> Result<(i64, Position), sqlx::Error> {
        let position = Position { top: number("top")?, iteration: number("iteration")?, sub: number("sub")? };
        Ok((row.try_get("run_no")?, position))
    };
    let (run_no, position) = place().map_err(storage("read the run"))?;
    let state: String = row.try_get("state").map_err(storage("read the run"))?;
    let state = StepState::from_name(&state).ok_or_else(|| corrupt(run_no, position, &state, "a state of a step"))?;
    let failure: Option<String> = row.try_get("failure").map_err(storage("read the run"))?;
    let failure = failure
        .map(|text| serde_json::from_str(&text).map_err(|_| corrupt(run_no, position, &text, "a failure")))
        .transpose()?;
    let fields = || -> Result<Recorded, sqlx::Error> {
        Ok(Recorded {
            position,
            kind: row.try_get("kind")?,
            name: row.try_get("name")?,
            section: row.try_get("section")?,
            state,
            input_digest: row.try_get("input_digest")?,
            output: row.try_get("output")?,
            failure,
            attempt: number("attempt")?,
            forgiven: number("forgiven")?,
            next_attempt_at_ms: row.try_get("next_attempt_at_ms")?,
            started_at_ms: row.try_get("started_at_ms")?,
            duration_us: row.try_get::<Option<i64>, _>("duration_us")?.map(|us| us.unsigned_abs()),
            carried_from: row.try_get("carried_from")?,
        })
    };
    fields().map(|recorded| (run_no, recorded)).map_err(storage("read the run"))
}

/// The number and the id of the run that `run_no` replays; `None` once that one was purged.
pub(crate) async fn origin(
    readers: &SqlitePool,
    clock: &dyn Clock,
    run_no: i64,
) -> Result<Option<(i64, RunId)>, EngineError> {
    let row = patient(clock, || {
        sqlx::query("SELECT o.run_no, o.run_id FROM run r JOIN run o ON o.run_id = r.origin_run_id WHERE r.run_no = ?")
            .bind(run_no)
            .fetch_optional(readers)
    });
    let Some(row) = row.await.map_err(storage("read the run's origin"))? else { return Ok(None) };
    let (number, id): (i64, String) =
        (|| Ok((row.try_get(0)?, row.try_get(1)?)))().map_err(storage("read the run's origin"))?;
    let run_id = id.parse().map_err(|_| EngineError::Corrupt {
        subject: format!("run number {number}"),
        found: id,
        expected: "an id",
    })?;
    Ok(Some((number, run_id)))
}

/// The number of a run; `None` where there is none of this id.
pub(crate) async fn number(readers: &SqlitePool, clock: &dyn Clock, run_id: RunId) -> Result<Option<i64>, EngineError> {
    let number = patient(clock, || {
        sqlx::query_scalar("SELECT run_no FROM run WHERE run_id = ?").bind(run_id.to_string()).fetch_optional(readers)
    });
    number.await.map_err(storage("read the run"))
}

fn corrupt(run_no: i64, position: Position, found: &str, expected: &'static str) -> EngineError {
    EngineError::Corrupt {
        subject: format!("step {position} of run number {run_no}"),
        found: found.to_owned(),
        expected,
    }
}
