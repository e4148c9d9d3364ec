//! Definitions that are refused, and rows that cannot be carried out.

use engine::{KeyPolicy, ScheduleDef};
use engine_rules::clock::Clock as _;
use engine_rules::failure::ActivityError as _;
use serde_json::json;

use super::{DAY_MS, count, fire, schedule};
use crate::sim::{SimClock, open_at};
use crate::support::{outsider, registry};

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_cannot_fire_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SimClock::at("2026-11-30T13:00:00Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    let good = schedule("good", "30 8 * * *");
    let bad = |change: fn(&mut ScheduleDef)| {
        let mut bad = schedule("bad", "30 8 * * *");
        change(&mut bad);
        bad
    };
    for (definition, code, words) in [
        (bad(|s| s.cron = "0 8 31 2 *".to_owned()), "schedule.cron_never", "\"bad\": \"0 8 31 2 *\" never matches"),
        (bad(|s| s.cron = "30 8 * * 1-5".to_owned()), "schedule.cron_numeric_weekday", "1-5"),
        (bad(|s| s.time_zone = "America/Torronto".to_owned()), "schedule.time_zone", "America/Torronto"),
        (bad(|s| s.time_zone = String::new()), "schedule.time_zone", "\"\""),
        (bad(|s| s.time_zone = "Etc/Unknown".to_owned()), "schedule.time_zone", "Etc/Unknown"),
        (bad(|s| s.workflow = "summ".to_owned()), "engine.unknown_workflow", "summ"),
        (bad(|s| s.catch_up_ms = -1), "schedule.catch_up", "-1 ms"),
        (bad(|s| s.catch_up_ms = 1_000 * DAY_MS), "schedule.catch_up", "expected 0 to 31622400000"),
        (bad(|s| s.name = "x".repeat(201)), "engine.text_too_long", "the schedule's name"),
        (bad(|s| s.concurrency_key = Some("k".repeat(501))), "engine.text_too_long", "concurrency key"),
        (bad(|s| s.input = json!("x".repeat(2 << 20))), "engine.payload_too_large", "2097154"),
        (bad(|s| s.name = "good".to_owned()), "schedule.duplicate", "\"good\""),
    ] {
        let error = engine.sync_schedules(&[good.clone(), definition]).await.expect_err(words);
        assert_eq!(error.code(), code);
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.hint().is_some_and(|hint| !hint.is_empty()));
    }
    assert_eq!(engine.reader().schedules().await.expect("they read"), []);
    assert_eq!(engine.next_due_ms().await.expect("a look"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_that_cannot_be_carried_out_here_keeps_no_other_from_firing() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SimClock::at("2026-11-30T13:00:00Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    let names = ["another program's", "broken", "good"];
    engine.sync_schedules(&names.map(|name| schedule(name, "30 8 * * *"))).await.expect("they are loaded");
    let mut other = outsider(folder.path()).await;
    for sql in [
        "UPDATE schedule SET workflow = 'of tomorrow' WHERE name = 'another program''s'",
        "UPDATE schedule SET time_zone = 'Mars/Olympus' WHERE name = 'broken'",
    ] {
        sqlx::query(sql).execute(&mut other).await.expect("a change");
    }
    let due_ms = engine.next_due_ms().await.expect("a look").expect("one is good");
    clock.set_wall_ms(due_ms);
    let fired = fire(&engine).await;
    assert_eq!(fired.iter().map(|tick| tick.schedule.as_str()).collect::<Vec<_>>(), ["good"]);
    assert!(engine.next_due_ms().await.expect("a look").expect("one is good") > clock.now_ms(), "no daemon spins");
    // Back in this program's configuration, all fire again; the tick of another program's was only left.
    engine.sync_schedules(&names.map(|name| schedule(name, "30 8 * * *"))).await.expect("they are loaded");
    let fired = fire(&engine).await;
    assert_eq!(fired.iter().map(|tick| tick.schedule.as_str()).collect::<Vec<_>>(), ["another program's"]);
    clock.set_wall_ms(clock.now_ms() + DAY_MS);
    assert_eq!(fire(&engine).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_has_another_key_is_not_in_a_schedules_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SimClock::at("2026-11-30T13:00:00Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    let with = |name: &str, key: Option<&str>| ScheduleDef {
        concurrency_key: key.map(str::to_owned),
        key_policy: KeyPolicy::Forbid,
        ..schedule(name, "30 8 * * *")
    };
    engine
        .sync_schedules(&[with("a", Some("one")), with("b", Some("two")), with("c", None), with("d", None)])
        .await
        .expect("they are loaded");
    clock.set_wall_ms(engine.next_due_ms().await.expect("a look").expect("there are some"));
    assert_eq!(fire(&engine).await.len(), 4);
    assert_eq!(count(folder.path()).await, (4, 4, 0));
}
