//! The children of a run, for reading: how many stand how, and the first that a person may want to see.

use std::collections::BTreeMap;

use engine_rules::failure::Failure;
use engine_rules::state::RunState;
use serde::{Deserialize, Serialize};
use sqlx::sqlite::SqliteConnection;

use super::{Columns, parse_id};
use crate::error::{EngineError, storage};
use crate::id::RunId;

/// How many children are listed one by one: as many as a person reads. The others are in the list of runs, by their parent.
const LISTED: u32 = 20;

/// The runs that a run started, directly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Children {
    /// How many stand in which state; states without any are left out.
    pub by_state: BTreeMap<RunState, u64>,
    /// The first twenty that did not succeed, or not yet: blocked ones first, then those that failed or were cancelled,
    /// then those that have not ended; each in the order in which they were started.
    pub not_succeeded: Vec<ChildRow>,
}

impl Children {
    /// How many there are in the journal. A fan-out starts its children as places come free, so there may be more to come.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_state.values().sum()
    }
}

/// A child of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildRow {
    /// Its id.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow: String,
    /// The place of the step that started it, as text.
    pub position: Option<String>,
    /// Its place among the children of that step, from 0.
    pub index: Option<u32>,
    /// How it stands.
    pub state: RunState,
    /// What it is about.
    pub labels: BTreeMap<String, String>,
    /// Why it failed or is blocked.
    pub failure: Option<Failure>,
    /// At which step.
    pub failed_step: Option<String>,
}

/// The children of `run_id` as they stand in the transaction of `snapshot`.
pub(super) async fn of(snapshot: &mut SqliteConnection, run_id: RunId) -> Result<Children, EngineError> {
    let counts = sqlx::query("SELECT state, count(*) AS runs FROM run WHERE parent_run_id = ? GROUP BY state")
        .bind(run_id.to_string())
        .fetch_all(&mut *snapshot)
        .await
        .map_err(storage("count the children"))?;
    if counts.is_empty() {
        return Ok(Children::default());
    }
    let rows = sqlx::query(
        "SELECT run_id, workflow, parent_position, parent_index, state, labels, failure, failed_step FROM run \
         WHERE parent_run_id = ? AND state <> 'succeeded' ORDER BY CASE state WHEN 'blocked' THEN 0 \
         WHEN 'failed' THEN 1 WHEN 'cancelled' THEN 1 ELSE 2 END, run_no LIMIT ?",
    )
    .bind(run_id.to_string())
    .bind(LISTED)
    .fetch_all(&mut *snapshot)
    .await
    .map_err(storage("read the children"))?;
    let mut children = Children::default();
    for row in &counts {
        let columns = Columns { row, subject: "a child" };
        let runs: i64 = columns.get("runs")?;
        children.by_state.insert(columns.run_state()?, runs.unsigned_abs());
    }
    for row in &rows {
        let columns = Columns { row, subject: "a child" };
        children.not_succeeded.push(ChildRow {
            run_id: parse_id(&columns.get::<String>("run_id")?)?,
            workflow: columns.get("workflow")?,
            position: columns.get("parent_position")?,
            index: columns.get("parent_index")?,
            state: columns.run_state()?,
            labels: columns.json("labels")?.unwrap_or_default(),
            failure: columns.json("failure")?,
            failed_step: columns.get("failed_step")?,
        });
    }
    Ok(children)
}
