//! The clock jumps, and the misfire policy decides.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{ScheduleDef, StartRun};
use engine_rules::clock::Clock as _;
use engine_rules::schedule::Misfire;
use serde_json::json;

use super::{DAY_MS, MINUTE_MS, count, fire, outcomes, runs, schedule, ticks};
use crate::sim::{SimClock, open_at};
use crate::support::{registry, start};

const POLICIES: [Misfire; 3] = [Misfire::RunOnce, Misfire::Skip, Misfire::RunAll];

/// A minutely and a daily schedule by each policy, after a jump: how many ticks started a run and how many did not.
async fn after_jump(jump_ms: i64) -> BTreeMap<String, (usize, usize)> {
    let folder = tempfile::tempdir().expect("a folder");
    // 08:20:10 in Toronto.
    let clock = SimClock::at("2026-11-30T13:20:10Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    let schedules: Vec<ScheduleDef> = POLICIES
        .into_iter()
        .flat_map(|misfire| {
            [("minutely", "* * * * *"), ("daily", "30 8 * * *")]
                .map(|(name, cron)| ScheduleDef { misfire, ..schedule(&format!("{name} {misfire}"), cron) })
        })
        .collect();
    engine.sync_schedules(&schedules).await.expect("they are loaded");
    clock.set_wall_ms(clock.now_ms() + jump_ms);
    let fired = fire(&engine).await;
    assert_eq!(fire(&engine).await, [], "once");
    let mut found: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let ticks = ticks(&engine.reader()).await;
    for tick in &ticks {
        let counts = found.entry(tick.schedule.clone()).or_default();
        match tick.outcome.as_str() {
            "started" => counts.0 += 1,
            _ => {
                assert!(tick.reason.as_ref().is_some_and(|reason| reason.contains("missed by")), "{tick:?}");
                counts.1 += 1;
            }
        }
    }
    let started = found.values().map(|counts| counts.0).sum::<usize>();
    assert_eq!(fired.len(), started);
    let started = i64::try_from(started).expect("a count");
    let skipped = i64::try_from(ticks.len()).expect("a count") - started;
    assert_eq!(count(folder.path()).await, (started, started, skipped), "a run a started tick, and no other");
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jump_of_78_minutes_is_decided_by_the_policy() {
    let found = after_jump(78 * MINUTE_MS).await;
    for (schedule, counts) in [
        // One tick is ten seconds old and so on time; with run-once it makes up for the 77 before it.
        ("minutely run-once", (1, 77)),
        ("minutely skip", (1, 77)),
        ("minutely run-all", (78, 0)),
        ("daily run-once", (1, 0)),
        ("daily skip", (0, 1)),
        ("daily run-all", (1, 0)),
    ] {
        assert_eq!(found[schedule], counts, "{schedule}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jump_of_30_days_is_decided_by_the_policy() {
    let found = after_jump(30 * DAY_MS).await;
    for (schedule, counts) in [
        ("minutely run-once", (1, 43_199)),
        ("minutely skip", (1, 43_199)),
        ("minutely run-all", (1_440, 41_760)),
        ("daily run-once", (1, 29)),
        ("daily skip", (0, 30)),
        ("daily run-all", (1, 29)),
    ] {
        assert_eq!(found[schedule], counts, "{schedule}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backward_jump_fires_nothing_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SimClock::at("2026-11-30T12:59:00Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    let schedules = [schedule("hourly", "@hourly"), schedule("daily", "30 8 * * *")];
    engine.sync_schedules(&schedules).await.expect("they are loaded");
    clock.set_wall_ms(clock.now_ms() + 32 * MINUTE_MS);
    assert_eq!(fire(&engine).await.len(), 2);
    let before = count(folder.path()).await;
    for back_ms in [MINUTE_MS, 78 * MINUTE_MS, 30 * DAY_MS] {
        let now_ms = clock.now_ms();
        clock.set_wall_ms(now_ms - back_ms);
        assert_eq!(fire(&engine).await, []);
        clock.set_wall_ms(now_ms);
        assert_eq!(fire(&engine).await, [], "nor on the way forward");
    }
    // Even where a change of the times puts the cursor back before what was decided.
    clock.set_wall_ms(clock.now_ms() - 60 * MINUTE_MS);
    engine
        .sync_schedules(&[schedule("hourly", "0 * * * *"), schedule("daily", "30 8,9 * * *")])
        .await
        .expect("a change");
    clock.set_wall_ms(clock.now_ms() + 60 * MINUTE_MS);
    assert_eq!(fire(&engine).await, []);
    assert_eq!(count(folder.path()).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_hours_of_a_fold_fire_where_time_that_passes_is_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SimClock::at("2026-11-01T04:30:00Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    let schedules = [schedule("hourly", "@hourly"), schedule("nightly", "0 1 * * *")];
    engine.sync_schedules(&schedules).await.expect("they are loaded");
    while clock.now_ms() < crate::sim::instant_ms("2026-11-01T07:30:00Z") {
        clock.set_wall_ms(clock.now_ms() + 10 * MINUTE_MS);
        fire(&engine).await;
    }
    let ticks = ticks(&engine.reader()).await;
    let of = |name: &str| ticks.iter().filter(|tick| tick.schedule == name).cloned().collect::<Vec<_>>();
    assert_eq!(
        outcomes(&of("hourly")),
        [
            ("2026-11-01T01:00:00-04:00", "started"),
            ("2026-11-01T01:00:00-05:00", "started"),
            ("2026-11-01T02:00:00-05:00", "started")
        ]
    );
    assert_eq!(outcomes(&of("nightly")), [("2026-11-01T01:00:00", "started")]);
    assert_eq!(runs(&engine.reader()).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_of_a_month_holds_up_no_other_writer_and_keeps_its_progress() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SimClock::at("2026-11-30T13:20:10Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    let minutely = ScheduleDef { misfire: Misfire::Skip, ..schedule("minutely", "* * * * *") };
    engine.sync_schedules(&[minutely]).await.expect("it is loaded");
    clock.set_wall_ms(clock.now_ms() + 30 * DAY_MS);
    let done = Arc::new(AtomicBool::new(false));
    let firing = tokio::spawn({
        let (engine, done) = (engine.clone(), done.clone());
        async move {
            let fired = fire(&engine).await;
            done.store(true, Ordering::SeqCst);
            fired.len()
        }
    });
    let mut beside = 0;
    let mut seen = Vec::new();
    while !done.load(Ordering::SeqCst) {
        start(&engine, StartRun { detached: true, ..StartRun::new("sum", json!([1, 2]), "jane") }).await;
        beside += 1;
        seen.push(count(folder.path()).await.2);
    }
    assert_eq!(firing.await.expect("it fires"), 1);
    assert!(beside > 10, "{beside} runs began beside the backlog");
    assert!(seen.is_sorted() && seen.first() < seen.last(), "the rows came bit by bit: {seen:?}");
    assert_eq!(count(folder.path()).await, (beside + 1, 1, 43_199));
}
