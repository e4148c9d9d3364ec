//! The configuration changes.

use engine::{ScheduleDef, Synced};
use engine_rules::clock::Clock as _;
use engine_rules::schedule::Misfire;
use serde_json::json;

use super::{DAY_MS, HOUR_MS, MINUTE_MS, count, fire, outcomes, runs, schedule, ticks};
use crate::sim::{SimClock, open_at};
use crate::support::registry;

fn changed(name: &str) -> Synced {
    Synced { changed: vec![name.to_owned()], ..Synced::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn editing_a_cron_expression_replays_no_past_tick() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SimClock::at("2026-11-30T13:00:00Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    let with = |cron: &str| [ScheduleDef { misfire: Misfire::RunAll, ..schedule("daily", cron) }];
    assert_eq!(engine.sync_schedules(&with("30 8 * * *")).await.expect("it is loaded").added, ["daily"]);
    assert_eq!(engine.sync_schedules(&with("30  8 * * *")).await.expect("spaces say nothing"), Synced::default());
    // 12:00 in Toronto: 08:30 was missed, and 09:00 and 11:00 of the new times never were.
    clock.set_wall_ms(clock.now_ms() + 4 * HOUR_MS);
    assert_eq!(engine.sync_schedules(&with("0 9,11,13 * * *")).await.expect("it is loaded"), changed("daily"));
    assert_eq!(fire(&engine).await, []);
    let rows = ticks(&engine.reader()).await;
    assert_eq!(outcomes(&rows), [("2026-11-30T08:30:00", "skipped")]);
    let reason = rows[0].reason.as_deref().expect("a reason");
    assert!(reason.contains("changed before this tick was decided"), "{reason}");
    clock.set_wall_ms(clock.now_ms() + HOUR_MS);
    fire(&engine).await;
    assert_eq!(
        outcomes(&ticks(&engine.reader()).await),
        [("2026-11-30T08:30:00", "skipped"), ("2026-11-30T13:00:00", "started")]
    );
    assert_eq!(count(folder.path()).await, (1, 1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_anything_but_the_times_leaves_a_missed_tick_to_the_new_definition() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SimClock::at("2026-11-30T13:00:00Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    let daily = ScheduleDef { misfire: Misfire::Skip, ..schedule("daily", "30 8 * * *") };
    engine.sync_schedules(std::slice::from_ref(&daily)).await.expect("it is loaded");
    // The daemon was down over 08:30, and came back with another input.
    clock.set_wall_ms(clock.now_ms() + HOUR_MS);
    let edited = ScheduleDef { misfire: Misfire::RunOnce, input: json!([20, 1]), ..daily };
    assert_eq!(engine.sync_schedules(&[edited]).await.expect("it is loaded"), changed("daily"));
    assert_eq!(fire(&engine).await.len(), 1);
    let runs = runs(&engine.reader()).await;
    assert_eq!(runs[0].input, json!([20, 1]));
    assert_eq!((runs[0].schedule.as_deref(), runs[0].actor.as_str()), (Some("daily"), "schedule:daily"));
    let reason = runs[0].reason.as_deref().expect("a reason");
    assert!(reason.contains("2026-11-30T08:30:00 America/Toronto") && reason.contains("30 min late"), "{reason}");
    assert_eq!(runs[0].labels["product"], "14100287");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_change_of_zone_the_same_local_time_is_another_tick() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SimClock::at("2026-11-30T13:00:00Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    let daily = schedule("daily", "30 8 * * *");
    engine.sync_schedules(std::slice::from_ref(&daily)).await.expect("it is loaded");
    clock.set_wall_ms(clock.now_ms() + 40 * MINUTE_MS);
    assert_eq!(fire(&engine).await.len(), 1);
    let west = ScheduleDef { time_zone: "america/vancouver".to_owned(), ..daily };
    assert_eq!(engine.sync_schedules(&[west]).await.expect("it is loaded"), changed("daily"));
    clock.set_wall_ms(clock.now_ms() + 3 * HOUR_MS);
    assert_eq!(fire(&engine).await.len(), 1);
    let rows = ticks(&engine.reader()).await;
    assert_eq!(
        rows.iter().map(|tick| tick.time_zone.as_str()).collect::<Vec<_>>(),
        ["America/Toronto", "America/Vancouver"]
    );
    assert_eq!(outcomes(&rows), [("2026-11-30T08:30:00", "started"), ("2026-11-30T08:30:00", "started")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_that_left_the_configuration_never_fires_and_its_ticks_stay() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SimClock::at("2026-11-30T13:00:00Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    let daily = ScheduleDef { misfire: Misfire::RunAll, catch_up_ms: 10 * DAY_MS, ..schedule("daily", "30 8 * * *") };
    engine.sync_schedules(&[daily.clone(), schedule("other", "0 9 * * *")]).await.expect("they are loaded");
    clock.set_wall_ms(clock.now_ms() + 31 * MINUTE_MS);
    assert_eq!(fire(&engine).await.len(), 1);
    // A day and a missed tick later it leaves.
    clock.set_wall_ms(clock.now_ms() + DAY_MS);
    let synced = engine.sync_schedules(&[schedule("other", "0 9 * * *")]).await.expect("a sync");
    assert_eq!(synced, Synced { removed: vec!["daily".to_owned()], ..Synced::default() });
    assert_eq!(engine.sync_schedules(&[schedule("other", "0 9 * * *")]).await.expect("a sync"), Synced::default());
    clock.set_wall_ms(clock.now_ms() + 3 * DAY_MS);
    fire(&engine).await;
    let of_daily =
        |rows: Vec<engine::TickRow>| rows.into_iter().filter(|tick| tick.schedule == "daily").collect::<Vec<_>>();
    let rows = of_daily(ticks(&engine.reader()).await);
    assert_eq!(outcomes(&rows), [("2026-11-30T08:30:00", "started"), ("2026-12-01T08:30:00", "skipped")]);
    assert!(rows[1].reason.as_deref().is_some_and(|reason| reason.contains("left the configuration")), "{rows:?}");
    // Back again, it begins from now: nothing of the days between.
    assert_eq!(engine.put_schedule(&daily).await.expect("it is back").added, ["daily"]);
    fire(&engine).await;
    assert_eq!(of_daily(ticks(&engine.reader()).await).len(), 2);
    clock.set_wall_ms(clock.now_ms() + DAY_MS);
    fire(&engine).await;
    let rows = of_daily(ticks(&engine.reader()).await);
    assert_eq!(outcomes(&rows)[2..], [("2026-12-05T08:30:00", "started")]);
}
