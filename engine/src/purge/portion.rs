//! One transaction's worth of runs, and runs that are too large for one.

use std::collections::HashMap;
use std::sync::Arc;

use engine_rules::retention::{Weight, divide};
use sqlx::{Row as _, SqliteConnection};

use super::family::{Item, json_list};
use super::{Gone, Purge};
use crate::db::patient;
use crate::error::{EngineError, storage};

/// What may have changed since the run was judged. `run` is the row that is looked at.
macro_rules! still_goes {
    () => {
        "run.state IN ('succeeded', 'failed', 'cancelled') \
         AND NOT EXISTS (SELECT 1 FROM run o WHERE o.origin_run_id = run.run_id \
           AND o.state IN ('queued', 'running', 'waiting', 'paused', 'blocked')) \
         AND NOT EXISTS (SELECT 1 FROM run p WHERE p.run_id = run.parent_run_id \
           AND p.state IN ('queued', 'running', 'waiting', 'paused', 'blocked')) \
         AND NOT EXISTS (SELECT 1 FROM run c WHERE c.parent_run_id = run.run_id)"
    };
}

// $1 the runs. What belongs to them goes with them; a run that has a child stays, so a level goes after those below it.
const DELETE_RUNS: &str = concat!(
    "DELETE FROM run WHERE run_no IN (SELECT value FROM json_each($1)) AND ",
    still_goes!(),
    " RETURNING run_no"
);

const STILL_GOES: &str = concat!("SELECT EXISTS (SELECT 1 FROM run WHERE run_no = $1 AND ", still_goes!(), ")");

/// From where a large run is cut off. Its history goes from the end, so that what is left is always one that it had.
#[derive(Debug, Clone, Copy)]
enum Cut {
    /// From this place on: top, iteration, sub.
    Steps(i64, i64, i64),
    /// From this signal on.
    Signals(i64),
}

impl Purge<'_> {
    /// Deletes the runs with all that belongs to them, in one transaction. Those that no longer may go stay.
    pub(super) async fn delete_portion(&mut self, items: &[Item], begins: Option<i64>) -> Result<(), EngineError> {
        let steps: Arc<HashMap<i64, u64>> = Arc::new(items.iter().map(|item| (item.run_no, item.steps)).collect());
        // Items come by depth.
        let levels: Arc<Vec<String>> = Arc::new(
            items
                .chunk_by(|one, two| one.depth == two.depth)
                .map(|level| json_list(level.iter().map(|item| item.run_no)))
                .collect(),
        );
        let now_ms = self.now_ms;
        self.commit(move |connection| {
            let (levels, steps) = (levels.clone(), steps.clone());
            Box::pin(async move {
                let mut gone = Gone::default();
                if let Some(head) = begins {
                    begin(connection, head, now_ms).await?;
                }
                for level in levels.iter() {
                    let deleted: Vec<i64> =
                        sqlx::query_scalar(DELETE_RUNS).bind(level).fetch_all(&mut *connection).await?;
                    gone.runs += deleted.len() as u64;
                    gone.steps += deleted.iter().filter_map(|run_no| steps.get(run_no)).sum::<u64>();
                }
                Ok(gone)
            })
        })
        .await
        .map(|_| ())
    }

    /// Deletes the history of a run that is too large for one transaction, from its end. `false` when the run no longer
    /// may go, or the time is up.
    pub(super) async fn shrink(&mut self, item: &Item, head: i64) -> Result<bool, EngineError> {
        let (run_no, now_ms) = (item.run_no, self.now_ms);
        for cut in self.cuts(run_no).await? {
            if self.is_over() {
                return Ok(false);
            }
            let stopped = Arc::new(std::sync::atomic::AtomicBool::new(false));
            let stop = stopped.clone();
            self.commit(move |connection| {
                let stop = stop.clone();
                Box::pin(async move {
                    let goes: bool = sqlx::query_scalar(STILL_GOES).bind(run_no).fetch_one(&mut *connection).await?;
                    stop.store(!goes, std::sync::atomic::Ordering::SeqCst);
                    if !goes {
                        return Ok(Gone::default());
                    }
                    begin(connection, head, now_ms).await?;
                    cut_off(connection, run_no, cut).await
                })
            })
            .await?;
            if stopped.load(std::sync::atomic::Ordering::SeqCst) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Where the run is to be cut, the end first.
    async fn cuts(&self, run_no: i64) -> Result<Vec<Cut>, EngineError> {
        let clock = self.inner.clock.as_ref();
        let steps = patient(clock, || {
            sqlx::query(
                "SELECT s.top, s.iteration, s.sub, \
                 1 + (SELECT count(*) FROM attempt a WHERE a.run_no = s.run_no AND a.top = s.top \
                   AND a.iteration = s.iteration AND a.sub = s.sub) AS rows, \
                 ifnull(octet_length(s.input), 0) + ifnull(octet_length(s.output), 0) \
                 + ifnull(octet_length(s.failure), 0) + ifnull((SELECT sum(octet_length(a.failure)) FROM attempt a \
                   WHERE a.run_no = s.run_no AND a.top = s.top AND a.iteration = s.iteration AND a.sub = s.sub), 0) \
                 AS bytes FROM step s WHERE s.run_no = ? ORDER BY s.top DESC, s.iteration DESC, s.sub DESC",
            )
            .bind(run_no)
            .fetch_all(&self.inner.readers)
        })
        .await
        .map_err(storage("read the steps of a finished run"))?;
        let signals = patient(clock, || {
            sqlx::query(
                "SELECT signal_no, 1 AS rows, octet_length(payload) AS bytes FROM signal WHERE run_no = ? \
                 ORDER BY signal_no DESC",
            )
            .bind(run_no)
            .fetch_all(&self.inner.readers)
        })
        .await
        .map_err(storage("read the signals of a finished run"))?;
        let read = || -> Result<Vec<Cut>, sqlx::Error> {
            let mut cuts = Vec::new();
            for (rows, of_steps) in [(&signals, false), (&steps, true)] {
                let weights = rows
                    .iter()
                    .map(|row| {
                        let (rows, bytes): (i64, i64) = (row.try_get("rows")?, row.try_get("bytes")?);
                        Ok(Weight { rows: rows.unsigned_abs(), bytes: bytes.unsigned_abs() })
                    })
                    .collect::<Result<Vec<_>, sqlx::Error>>()?;
                for range in divide(weights, &self.plan.portion) {
                    let Some(row) = rows.get(range.end.saturating_sub(1)) else { continue };
                    cuts.push(match of_steps {
                        true => Cut::Steps(row.try_get(0)?, row.try_get(1)?, row.try_get(2)?),
                        false => Cut::Signals(row.try_get(0)?),
                    });
                }
            }
            Ok(cuts)
        };
        read().map_err(storage("read the steps of a finished run"))
    }
}

/// Notes that the purge of this family is begun, so that a later one ends it.
async fn begin(connection: &mut SqliteConnection, head: i64, now_ms: i64) -> Result<(), sqlx::Error> {
    sqlx::query("INSERT OR IGNORE INTO purge_begun (run_no, begun_at_ms) SELECT run_no, $2 FROM run WHERE run_no = $1")
        .bind(head)
        .bind(now_ms)
        .execute(connection)
        .await
        .map(|_| ())
}

async fn cut_off(connection: &mut SqliteConnection, run_no: i64, cut: Cut) -> Result<Gone, sqlx::Error> {
    match cut {
        Cut::Signals(from) => {
            sqlx::query("DELETE FROM signal WHERE run_no = ? AND signal_no >= ?")
                .bind(run_no)
                .bind(from)
                .execute(connection)
                .await?;
            Ok(Gone::default())
        }
        Cut::Steps(top, iteration, sub) => {
            sqlx::query("DELETE FROM attempt WHERE run_no = ? AND (top, iteration, sub) >= (?, ?, ?)")
                .bind(run_no)
                .bind(top)
                .bind(iteration)
                .bind(sub)
                .execute(&mut *connection)
                .await?;
            let deleted = sqlx::query("DELETE FROM step WHERE run_no = ? AND (top, iteration, sub) >= (?, ?, ?)")
                .bind(run_no)
                .bind(top)
                .bind(iteration)
                .bind(sub)
                .execute(connection)
                .await?;
            Ok(Gone { steps: deleted.rows_affected(), ..Gone::default() })
        }
    }
}
