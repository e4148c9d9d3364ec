//! Runs that nobody works on any more: found, decided about, and taken over many at a time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use engine_rules::crash;
use engine_rules::recovery::{OwnerState, RunPlan, leaves_runs_behind, plan_run};
use sqlx::Row as _;

use super::claim::{How, STANDING, Standing, handle};
use crate::context::RunHandle;
use crate::db::patient;
use crate::engine::Inner;
use crate::error::{EngineError, storage};
use crate::id::RunId;
use crate::journal;
use crate::owner::{is_alive, probe};
use crate::writer::{Fence, Take, TakeOver};

/// How many runs are looked at in one query.
const PAGE_RUNS: i64 = 1_000;

/// A run that is to be taken over, as it stood when that was decided.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interrupted {
    pub run_id: RunId,
    fence: Fence,
    how: How,
}

impl Interrupted {
    /// What the plan says of a run that stands so; `None` where it is to be left alone.
    pub(super) fn of(run_id: RunId, standing: &Standing) -> Option<Self> {
        let fence = Fence { run_no: standing.run_no, epoch: standing.epoch, owner_no: standing.owner_no };
        match plan_run(standing.state, standing.owner) {
            RunPlan::TakeOver => Some(Self { run_id, fence, how: How::left_by(standing.owner) }),
            RunPlan::Leave | RunPlan::Claim => None,
        }
    }
}

/// Which runs to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Those of other processes, and those that were given back.
    Others,
    /// Those of this process as well: an error of the database may have stopped one.
    OursToo,
}

/// The oldest of the interrupted runs, at most `most`. Each owner is asked for its life once.
pub(crate) async fn find(inner: &Inner, whose: Whose, most: usize) -> Result<Vec<Interrupted>, EngineError> {
    let owners = patient(inner.clock.as_ref(), || {
        sqlx::query(
            "SELECT r.owner_no, o.owner_id, o.lease_until_at_ms FROM (SELECT DISTINCT owner_no FROM run \
             WHERE state IN ('running', 'waiting') AND state IN ('queued', 'running', 'waiting', 'paused', 'blocked')) r \
             LEFT JOIN owner o ON o.owner_no = r.owner_no",
        )
        .fetch_all(&inner.readers)
    });
    let owners = owners.await.map_err(storage("read the owners of runs"))?;
    let mut alive: HashMap<i64, bool> = HashMap::new();
    let mut suspects = Vec::new();
    for row in &owners {
        let read = || -> Result<(Option<i64>, Option<String>, Option<i64>), sqlx::Error> {
            Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))
        };
        let (owner_no, owner_id, lease) = read().map_err(storage("read the owners of runs"))?;
        let owner = match (owner_no, owner_id) {
            (Some(owner_no), _) if owner_no == inner.owner_no => match whose {
                Whose::OursToo => OwnerState::HereIdle,
                Whose::Others => OwnerState::HereActive,
            },
            (Some(owner_no), Some(owner_id)) => {
                let lives = is_alive(probe(&inner.state_dir, &owner_id), lease.unwrap_or(0), inner.clock.now_ms());
                alive.insert(owner_no, lives);
                if lives { OwnerState::Alive } else { OwnerState::Dead }
            }
            (_, None) | (None, Some(_)) => OwnerState::None,
        };
        if leaves_runs_behind(owner) {
            suspects.push(owner_no);
        }
    }
    if suspects.is_empty() {
        return Ok(Vec::new());
    }
    let numbers: Vec<i64> = suspects.iter().copied().flatten().collect();
    let (numbers, given_back) = (serde_json::Value::from(numbers).to_string(), suspects.contains(&None));
    let mut found = Vec::new();
    let mut after = 0_i64;
    loop {
        let arriving = match whose {
            Whose::OursToo => Some(inner.arriving.write().await),
            Whose::Others => None,
        };
        // Before the rows are read: a run that ends meanwhile leaves both, and its row is then an old one.
        let mut here: HashSet<RunId> = inner.ready().keys().copied().collect();
        here.extend(inner.active().keys());
        let rows = patient(inner.clock.as_ref(), || {
            sqlx::query(sqlx::AssertSqlSafe(format!(
                "{STANDING} WHERE r.state IN ('running', 'waiting') \
                 AND r.state IN ('queued', 'running', 'waiting', 'paused', 'blocked') AND r.run_no > ?1 \
                 AND (r.owner_no IN (SELECT value FROM json_each(?2)) OR (?3 AND r.owner_no IS NULL)) \
                 ORDER BY r.run_no LIMIT ?4"
            )))
            .bind(after)
            .bind(numbers.clone())
            .bind(given_back)
            .bind(PAGE_RUNS)
            .fetch_all(&inner.readers)
        });
        let rows = rows.await.map_err(storage("read the runs"))?;
        for row in &rows {
            let (run_id, standing) = Standing::read(inner, row, false, &mut alive)?;
            after = standing.run_no;
            if !here.contains(&run_id) {
                found.extend(Interrupted::of(run_id, &standing));
            }
        }
        drop(arriving);
        if found.len() >= most || (rows.len() as i64) < PAGE_RUNS {
            found.truncate(most);
            return Ok(found);
        }
    }
}

/// Makes this process the owner of those of `runs` that nobody else took since, in one transaction: each with a new
/// epoch, so that whatever its old owner still writes is fenced. With what the journal holds of them, as far as that is
/// small.
pub(crate) async fn take(inner: &Arc<Inner>, runs: &[Interrupted]) -> Result<Vec<RunHandle>, EngineError> {
    let over = TakeOver { owner_no: inner.owner_no, runs: runs.iter().map(|run| run.fence).collect() };
    crash::point("engine.take_over.before");
    let taken = inner.writer.take(Take::Over(over)).await?;
    crash::point("engine.take_over.after");
    let how: HashMap<i64, How> = runs.iter().map(|run| (run.fence.run_no, run.how)).collect();
    let mut handles: Vec<RunHandle> = taken
        .into_iter()
        .filter_map(|run| {
            let how = *how.get(&run.run_no)?;
            Some(handle(run, how))
        })
        .collect();
    if handles.len() > 1 {
        let numbers: Vec<i64> = handles.iter().map(|handle| handle.run_no).collect();
        match journal::load_many(&inner.readers, inner.clock.as_ref(), &numbers).await {
            Ok(mut journals) => {
                for handle in &mut handles {
                    handle.recorded = journals.remove(&handle.run_no);
                }
            }
            // One damaged row must not hold up the others: each run reads its own, and the damaged one fails alone.
            Err(error) => tracing::warn!(%error, "the journals of several runs are read one by one"),
        }
    }
    Ok(handles)
}
