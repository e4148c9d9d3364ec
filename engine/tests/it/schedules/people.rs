//! What persons do about schedules.

use engine::{EngineError, Mutation, Outcome, ScheduleDef, TickFilter};
use engine_rules::clock::Clock as _;
use engine_rules::failure::ActivityError as _;
use engine_rules::schedule::Misfire;

use super::{DAY_MS, HOUR_MS, MINUTE_MS, count, fire, outcomes, runs, schedule, ticks};
use crate::sim::{SimClock, open_at};
use crate::support::{detail, jane, registry};

fn by(reason: &str) -> Mutation {
    Mutation { actor: "jane".to_owned(), reason: reason.to_owned() }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ticks_of_a_paused_schedule_are_skipped_with_who_and_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SimClock::at("2026-11-30T13:00:00Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    let daily = ScheduleDef { misfire: Misfire::RunAll, catch_up_ms: 10 * DAY_MS, ..schedule("daily", "30 8 * * *") };
    engine.sync_schedules(std::slice::from_ref(&daily)).await.expect("it is loaded");
    engine.pause_schedule("daily", &by("the source is late")).await.expect("it is paused");
    engine.pause_schedule("daily", &by("once more")).await.expect("again is no error");
    clock.set_wall_ms(clock.now_ms() + 31 * MINUTE_MS);
    assert_eq!(fire(&engine).await, []);
    // Of the next two days no daemon decides; the resuming does, before anything may fire.
    clock.set_wall_ms(clock.now_ms() + 2 * DAY_MS);
    engine.resume_schedule("daily", &by("it came")).await.expect("it is resumed");
    assert_eq!(fire(&engine).await, []);
    let rows = ticks(&engine.reader()).await;
    assert_eq!(
        outcomes(&rows),
        [("2026-11-30T08:30:00", "skipped"), ("2026-12-01T08:30:00", "skipped"), ("2026-12-02T08:30:00", "skipped")]
    );
    for row in &rows {
        assert_eq!(row.reason.as_deref(), Some("the schedule is paused by jane: the source is late"));
    }
    clock.set_wall_ms(clock.now_ms() + DAY_MS);
    assert_eq!(fire(&engine).await.len(), 1);
    let audit = engine.reader().schedule_audit("daily").await.expect("the audit reads");
    let audit: Vec<_> =
        audit.iter().map(|row| (row.actor.as_str(), row.action.as_str(), row.reason.as_str())).collect();
    assert_eq!(
        audit,
        [("jane", "pause", "the source is late"), ("jane", "pause", "once more"), ("jane", "resume", "it came")]
    );
    // What is new in the configuration resumes nothing.
    engine.pause_schedule("daily", &by("again")).await.expect("it is paused");
    engine.sync_schedules(&[ScheduleDef { catch_up_ms: DAY_MS, ..daily }]).await.expect("a change");
    let row = &engine.reader().schedules().await.expect("they read")[0];
    assert_eq!((row.paused_by.as_deref(), row.paused_reason.as_deref()), (Some("jane"), Some("again")));
    assert_eq!(row.last_tick.as_ref().map(|tick| tick.outcome.as_str()), Some("started"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tick_that_was_due_while_paused_says_so_whatever_changed_since() {
    for change in ["cron", "removed"] {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = SimClock::at("2026-11-30T13:00:00Z");
        let engine = open_at(folder.path(), registry(), &clock).await;
        engine.sync_schedules(&[schedule("daily", "30 8 * * *")]).await.expect("it is loaded");
        engine.pause_schedule("daily", &by("the source is late")).await.expect("it is paused");
        clock.set_wall_ms(clock.now_ms() + HOUR_MS);
        let new = match change {
            "cron" => vec![schedule("daily", "0 10 * * *")],
            _ => Vec::new(),
        };
        engine.sync_schedules(&new).await.expect("a change");
        let rows = ticks(&engine.reader()).await;
        assert_eq!(outcomes(&rows), [("2026-11-30T08:30:00", "skipped")]);
        assert!(
            rows[0].reason.as_deref().is_some_and(|reason| reason.contains("paused by jane")),
            "{change}: {rows:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_starts_a_run_now_and_decides_no_tick() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SimClock::at("2026-11-30T13:00:00Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    let daily = ScheduleDef { concurrency_key: Some("release".to_owned()), ..schedule("daily", "30 8 * * *") };
    engine.sync_schedules(&[daily]).await.expect("it is loaded");
    engine.pause_schedule("daily", &jane()).await.expect("it is paused");
    let first = engine.trigger_schedule("daily", &by("a correction"), false).await.expect("also while paused");
    let error = engine.trigger_schedule("daily", &by("twice"), true).await.expect_err("the key is held");
    assert!(
        matches!(&error, EngineError::ScheduleHeld { holder, key, .. } if *holder == first.run_id && key == "release"),
        "{error:?}"
    );
    assert!(error.hint().is_some_and(|hint| hint.contains("jobctl runs show")));
    assert_eq!(count(folder.path()).await, (1, 0, 0), "nothing of the refused one is recorded");
    let outcome = engine.drive(first.run_id).await.expect("it is driven");
    assert!(matches!(outcome, Outcome::Succeeded(_)));
    let run = detail(&engine, first.run_id).await;
    assert_eq!((run.run.schedule.as_deref(), run.run.actor.as_str()), (Some("daily"), "jane"));
    assert_eq!(run.run.reason.as_deref(), Some("a correction"));
    assert_eq!(run.audit.iter().map(|row| row.action.as_str()).collect::<Vec<_>>(), ["trigger"]);
    let audit = engine.reader().schedule_audit("daily").await.expect("the audit reads");
    assert_eq!(audit.iter().map(|row| row.action.as_str()).collect::<Vec<_>>(), ["pause", "trigger"]);
    // Detached, it waits for whoever drains the queue.
    let second = engine.trigger_schedule("daily", &by("again"), true).await.expect("the key is free");
    assert!(second.queued);
    assert_eq!(engine.drain(1).await.expect("it drains"), 1);
    assert!(runs(&engine.reader()).await.iter().all(|run| run.state.is_terminal()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_that_is_not_there_is_told_with_those_that_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SimClock::at("2026-11-30T13:00:00Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    engine
        .sync_schedules(&[schedule("daily", "30 8 * * *"), schedule("gone", "@hourly")])
        .await
        .expect("they are loaded");
    engine.sync_schedules(&[schedule("daily", "30 8 * * *")]).await.expect("one left");
    let long = Mutation { actor: "jane".to_owned(), reason: "x".repeat(5_000) };
    for (name, by, words) in [
        ("dayly", jane(), "\"daily\""),
        ("gone", jane(), "left the configuration"),
        ("daily", long, "the reason has 5000 bytes"),
    ] {
        let errors = [
            engine.pause_schedule(name, &by).await.expect_err("refused"),
            engine.resume_schedule(name, &by).await.expect_err("refused"),
            engine.trigger_schedule(name, &by, true).await.expect_err("refused"),
        ];
        for error in errors {
            assert!(error.to_string().contains(words), "{error}");
        }
    }
    assert_eq!(engine.reader().schedule_audit("daily").await.expect("it reads"), []);
    assert_eq!(count(folder.path()).await, (0, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn ticks_are_listed_newest_first_by_schedule_and_by_whether_they_started_a_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SimClock::at("2026-11-30T13:00:00Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    engine
        .sync_schedules(&[schedule("daily", "30 8 * * *"), schedule("hourly", "@hourly")])
        .await
        .expect("they are loaded");
    clock.set_wall_ms(clock.now_ms() + 3 * HOUR_MS + 1);
    fire(&engine).await;
    let list = async |schedule: Option<&str>, only_skipped, limit| {
        let filter = TickFilter { schedule: schedule.map(str::to_owned), only_skipped, limit };
        let rows = engine.reader().ticks(&filter).await.expect("the ticks read");
        rows.into_iter().map(|tick| tick.local_time).collect::<Vec<_>>()
    };
    let (nine, ten, eleven) = ("2026-11-30T09:00:00-05:00", "2026-11-30T10:00:00-05:00", "2026-11-30T11:00:00-05:00");
    assert_eq!(list(Some("hourly"), false, None).await, [eleven, ten, nine]);
    assert_eq!(list(Some("hourly"), false, Some(1)).await, [eleven]);
    assert_eq!(list(Some("hourly"), true, None).await, [ten, nine]);
    assert_eq!(list(None, true, Some(1)).await, [ten]);
    assert_eq!(list(None, false, None).await.len(), 4);
    assert_eq!(list(Some("nothing"), false, None).await, Vec::<String>::new());
}
