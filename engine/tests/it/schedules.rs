//! Schedules on a database file, by a clock that the tests move.

mod changes;
mod crash;
mod jumps;
mod people;
mod race;
mod refusals;
mod year;

use std::collections::BTreeMap;
use std::path::Path;

use engine::{Engine, Fired, KeyPolicy, Reader, RunFilter, RunRow, ScheduleDef, TickFilter, TickRow};
use engine_rules::schedule::Misfire;
use serde_json::json;
use sqlx::Row as _;

use crate::support::outsider;

pub const MINUTE_MS: i64 = 60_000;
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// A schedule of the workflow `sum` in Toronto, without a key.
pub fn schedule(name: &str, cron: &str) -> ScheduleDef {
    ScheduleDef {
        name: name.to_owned(),
        workflow: "sum".to_owned(),
        input: json!([1, 2]),
        cron: cron.to_owned(),
        time_zone: "America/Toronto".to_owned(),
        misfire: Misfire::RunOnce,
        catch_up_ms: DAY_MS,
        concurrency_key: None,
        key_policy: KeyPolicy::Forbid,
        labels: BTreeMap::from([("product".to_owned(), "14100287".to_owned())]),
    }
}

pub async fn fire(engine: &Engine) -> Vec<Fired> {
    engine.fire_due_schedules().await.expect("the ticks are decided")
}

/// Every tick, oldest first.
pub async fn ticks(reader: &Reader) -> Vec<TickRow> {
    let mut ticks = reader.ticks(&TickFilter::default()).await.expect("the ticks read");
    ticks.reverse();
    ticks
}

pub async fn runs(reader: &Reader) -> Vec<RunRow> {
    let mut runs = reader.runs(&RunFilter::default()).await.expect("the runs read");
    runs.reverse();
    runs
}

/// The names and outcomes of the ticks.
pub fn outcomes(ticks: &[TickRow]) -> Vec<(&str, &str)> {
    ticks.iter().map(|tick| (tick.local_time.as_str(), tick.outcome.as_str())).collect()
}

/// How many runs, ticks that started one, and ticks that did not there are, counted where no reader of ours is between.
pub async fn count(state: &Path) -> (i64, i64, i64) {
    let row = sqlx::query(
        "SELECT (SELECT count(*) FROM run), (SELECT count(*) FROM tick t JOIN run r ON r.run_id = t.run_id \
         WHERE t.outcome = 'started' AND r.schedule = t.schedule), (SELECT count(*) FROM tick WHERE outcome <> 'started')",
    )
    .fetch_one(&mut outsider(state).await)
    .await
    .expect("a count");
    (row.get(0), row.get(1), row.get(2))
}
