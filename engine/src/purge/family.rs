//! Which runs go: families are looked up, judged, divided into portions.

use engine_rules::retention::{Member, Weight, divide, judge};
use engine_rules::state::RunState;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::Purge;
use crate::db::patient;
use crate::error::{EngineError, storage};

/// How many runs are looked at in one query: two portions of small ones.
const LOOKED_AT: i64 = 600;

// $1 and $2 the end and the number of the last run that was looked at, $3 the cutoff, $4 how many. A run whose parent is
// no longer there is a head as well.
const ENDED: &str = "SELECT r.run_no, r.ended_at_ms, r.state, \
     r.parent_run_id IS NULL OR NOT EXISTS (SELECT 1 FROM run p WHERE p.run_id = r.parent_run_id) AS is_head, \
     EXISTS (SELECT 1 FROM run c WHERE c.parent_run_id = r.run_id) AS has_children \
     FROM run r WHERE r.ended_at_ms IS NOT NULL AND (r.ended_at_ms, r.run_no) > ($1, $2) AND r.ended_at_ms < $3 \
     AND r.run_no NOT IN (SELECT run_no FROM purge_begun) \
     ORDER BY r.ended_at_ms, r.run_no LIMIT $4";

/// $1 the runs, each a family of its own.
const SINGLES: &str = "WITH m(run_no, depth) AS (SELECT value, 0 FROM json_each($1)) ";

/// $1 the head.
const FAMILY: &str = "WITH RECURSIVE m(run_no, run_id, depth) AS (SELECT run_no, run_id, 0 FROM run WHERE run_no = $1 \
     UNION ALL SELECT c.run_no, c.run_id, m.depth + 1 FROM m JOIN run c ON c.parent_run_id = m.run_id) ";

/// What is known of each member, the deepest first. `octet_length` reads a text's length and not the text.
const MEMBERS: &str = "SELECT m.run_no, m.depth, r.state, r.ended_at_ms, \
     EXISTS (SELECT 1 FROM run o WHERE o.origin_run_id = r.run_id \
       AND o.state IN ('queued', 'running', 'waiting', 'paused', 'blocked')) AS replayed, \
     (SELECT count(*) FROM step s WHERE s.run_no = m.run_no) AS steps, \
     (SELECT count(*) FROM attempt a WHERE a.run_no = m.run_no) \
       + (SELECT count(*) FROM signal g WHERE g.run_no = m.run_no) AS others, \
     ifnull(octet_length(r.input), 0) + ifnull(octet_length(r.output), 0) \
       + ifnull((SELECT sum(ifnull(octet_length(s.input), 0) + ifnull(octet_length(s.output), 0) \
           + ifnull(octet_length(s.failure), 0)) FROM step s WHERE s.run_no = m.run_no), 0) \
       + ifnull((SELECT sum(octet_length(a.failure)) FROM attempt a WHERE a.run_no = m.run_no), 0) \
       + ifnull((SELECT sum(octet_length(g.payload)) FROM signal g WHERE g.run_no = m.run_no), 0) AS bytes \
     FROM m JOIN run r ON r.run_no = m.run_no ORDER BY m.depth DESC, m.run_no";

/// A run that goes, or may.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub run_no: i64,
    /// How many parents stand above it. Who is deeper goes first, so that no run is ever without its parent.
    pub depth: i64,
    pub steps: u64,
    pub weight: Weight,
    member: Member,
}

impl Item {
    fn read(row: &SqliteRow) -> Result<Self, EngineError> {
        let read = || -> Result<_, sqlx::Error> {
            let number = |column: &str| row.try_get::<i64, _>(column);
            let (steps, others, bytes) = (number("steps")?, number("others")?, number("bytes")?);
            let state: String = row.try_get("state")?;
            Ok((number("run_no")?, number("depth")?, steps, others, bytes, state))
        };
        let (run_no, depth, steps, others, bytes, state) = read().map_err(storage("read the finished runs"))?;
        let state = state_of(run_no, &state)?;
        let rows = steps.unsigned_abs() + others.unsigned_abs() + 1;
        let ended_at_ms = row.try_get("ended_at_ms").map_err(storage("read the finished runs"))?;
        let replayed = row.try_get("replayed").map_err(storage("read the finished runs"))?;
        Ok(Self {
            run_no,
            depth,
            steps: steps.unsigned_abs(),
            weight: Weight { rows, bytes: bytes.unsigned_abs() },
            member: Member { state, ended_at_ms, replayed },
        })
    }
}

/// A run that ended.
struct Found {
    run_no: i64,
    ended_at_ms: i64,
    state: RunState,
    is_head: bool,
    has_children: bool,
}

impl Found {
    fn read(row: &SqliteRow) -> Result<Self, EngineError> {
        let read = || -> Result<(i64, i64, String, bool, bool), sqlx::Error> {
            Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?, row.try_get(4)?))
        };
        let (run_no, ended_at_ms, state, is_head, has_children) = read().map_err(storage("look for finished runs"))?;
        Ok(Self { run_no, ended_at_ms, state: state_of(run_no, &state)?, is_head, has_children })
    }
}

fn state_of(run_no: i64, name: &str) -> Result<RunState, EngineError> {
    RunState::from_name(name).ok_or_else(|| EngineError::Corrupt {
        subject: format!("run number {run_no}"),
        found: name.to_owned(),
        expected: "a state of a run",
    })
}

impl Purge<'_> {
    /// Ends what an earlier purge began and did not end, whatever the age.
    pub(super) async fn begun_families(&mut self) -> Result<(), EngineError> {
        let begun: Vec<i64> = patient(self.inner.clock.as_ref(), || {
            sqlx::query_scalar("SELECT run_no FROM purge_begun ORDER BY run_no").fetch_all(&self.inner.readers)
        })
        .await
        .map_err(storage("read which purges were begun"))?;
        for head in begun {
            if self.is_over() {
                break;
            }
            self.family(head, true).await?;
        }
        Ok(())
    }

    /// Looks at every run that ended before the cutoff, the oldest end first.
    pub(super) async fn families(&mut self) -> Result<(), EngineError> {
        let mut last = (i64::MIN, i64::MIN);
        while !self.is_over() {
            let rows = patient(self.inner.clock.as_ref(), || {
                sqlx::query(ENDED)
                    .bind(last.0)
                    .bind(last.1)
                    .bind(self.plan.cutoff.latest_ms())
                    .bind(LOOKED_AT)
                    .fetch_all(&self.inner.readers)
            })
            .await
            .map_err(storage("look for finished runs"))?;
            let (mut singles, mut heads) = (Vec::new(), Vec::new());
            for row in &rows {
                let found = Found::read(row)?;
                last = (found.ended_at_ms, found.run_no);
                if !found.is_head {
                    continue;
                }
                // What stays by its own end is not looked at closely: the runs that failed are there at each purge.
                let alone = Member { state: found.state, ended_at_ms: Some(found.ended_at_ms), replayed: false };
                match judge(found.state, [alone], Some(&self.plan.cutoff)) {
                    Ok(()) if found.has_children => heads.push(found.run_no),
                    Ok(()) => singles.push(found.run_no),
                    Err(why) => self.report.stays(why),
                }
            }
            self.singles(&singles).await?;
            for head in heads {
                if self.is_over() {
                    break;
                }
                self.family(head, false).await?;
            }
            if rows.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Runs without children: many go in one transaction.
    async fn singles(&mut self, run_nos: &[i64]) -> Result<(), EngineError> {
        if run_nos.is_empty() {
            return Ok(());
        }
        let mut items = self.members(SINGLES, &json_list(run_nos.iter().copied())).await?;
        let (cutoff, report) = (self.plan.cutoff, &mut self.report);
        items.retain(|item| match judge(item.member.state, [item.member], Some(&cutoff)) {
            Ok(()) => true,
            Err(why) => {
                report.stays(why);
                false
            }
        });
        self.delete(&items, None).await
    }

    /// A head and all that belongs to it.
    async fn family(&mut self, head: i64, begun: bool) -> Result<(), EngineError> {
        let items = self.members(FAMILY, &head.to_string()).await?;
        let Some(state) = items.iter().find(|item| item.run_no == head).map(|item| item.member.state) else {
            // Another purge was faster.
            return Ok(());
        };
        let cutoff = (!begun).then_some(&self.plan.cutoff);
        match judge(state, items.iter().map(|item| item.member), cutoff) {
            Ok(()) => self.delete(&items, Some(head)).await,
            Err(why) => {
                self.report.stays(why);
                Ok(())
            }
        }
    }

    async fn members(&self, which: &'static str, of: &str) -> Result<Vec<Item>, EngineError> {
        let rows = patient(self.inner.clock.as_ref(), || {
            sqlx::query(AssertSqlSafe(format!("{which}{MEMBERS}"))).bind(of.to_owned()).fetch_all(&self.inner.readers)
        })
        .await
        .map_err(storage("read the finished runs"))?;
        rows.iter().map(Item::read).collect()
    }

    /// Portion after portion, until the time is up.
    async fn delete(&mut self, items: &[Item], head: Option<i64>) -> Result<(), EngineError> {
        if self.plan.dry_run {
            self.report.runs += items.len() as u64;
            self.report.steps += items.iter().map(|item| item.steps).sum::<u64>();
            return Ok(());
        }
        let portion = self.plan.portion;
        let portions = divide(items.iter().map(|item| item.weight), &portion);
        let count = portions.len();
        for (number, range) in portions.into_iter().enumerate() {
            if self.is_over() {
                return Ok(());
            }
            let mut items = items[range].to_vec();
            if let [large] = items.as_mut_slice()
                && !portion.holds(large.weight)
            {
                if !self.shrink(large, head.unwrap_or(large.run_no)).await? {
                    return Ok(());
                }
                // They went already, and were counted.
                large.steps = 0;
            }
            // The last portion ends the family, so nothing is begun.
            let begins = head.filter(|_| number + 1 < count);
            self.delete_portion(&items, begins).await?;
        }
        Ok(())
    }
}

/// Numbers as the JSON that a statement reads.
pub(super) fn json_list(numbers: impl IntoIterator<Item = i64>) -> String {
    let numbers: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
    format!("[{}]", numbers.join(","))
}
