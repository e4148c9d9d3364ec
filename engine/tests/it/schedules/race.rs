//! Two daemons on one state.

use engine::{KeyPolicy, ScheduleDef};
use engine_rules::clock::Clock as _;
use engine_rules::schedule::Misfire;

use super::{DAY_MS, MINUTE_MS, count, fire, schedule, ticks};
use crate::sim::{SimClock, open_at};
use crate::support::registry;

#[tokio::test(flavor = "multi_thread")]
async fn two_engines_on_one_state_fire_each_tick_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SimClock::at("2026-11-30T13:00:00Z");
    let (one, two) =
        tokio::join!(open_at(folder.path(), registry(), &clock), open_at(folder.path(), registry(), &clock));
    let schedules = [
        schedule("a", "* * * * *"),
        schedule("b", "*/2 * * * *"),
        ScheduleDef { misfire: Misfire::RunAll, ..schedule("c", "1,3,5 9 * * *") },
    ];
    let (first, second) = tokio::join!(one.sync_schedules(&schedules), two.sync_schedules(&schedules));
    let added = first.expect("a sync").added.len() + second.expect("a sync").added.len();
    assert_eq!(added, 3, "each is added by one of them");
    let mut fired = [0, 0];
    for _ in 0..90 {
        clock.advance(MINUTE_MS.unsigned_abs());
        let (first, second) = tokio::join!(
            tokio::spawn({
                let one = one.clone();
                async move { fire(&one).await.len() }
            }),
            tokio::spawn({
                let two = two.clone();
                async move { fire(&two).await.len() }
            })
        );
        fired[0] += first.expect("no panic");
        fired[1] += second.expect("no panic");
    }
    assert_eq!(fired[0] + fired[1], 90 + 45 + 3, "{fired:?}");
    assert_eq!(count(folder.path()).await, (138, 138, 0));

    // A backlog that both work on.
    clock.advance((3 * DAY_MS + 10_000).unsigned_abs());
    let (first, second) = tokio::join!(
        tokio::spawn({
            let one = one.clone();
            async move { fire(&one).await.len() }
        }),
        tokio::spawn({
            let two = two.clone();
            async move { fire(&two).await.len() }
        })
    );
    // Of a and b the tick on time; of c those within a day.
    assert_eq!(first.expect("no panic") + second.expect("no panic"), 1 + 1 + 3);
    let rows = ticks(&one.reader()).await;
    assert_eq!(rows.len(), 138 + 3 * 1_440 + 3 * 720 + 3 * 3);
    assert_eq!(count(folder.path()).await.0, 138 + 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_held_holds_a_tick_and_names_the_holder() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SimClock::at("2026-11-30T13:20:00Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    let with = |name: &str, key_policy| ScheduleDef {
        concurrency_key: Some("release".to_owned()),
        key_policy,
        ..schedule(name, "30 8 * * *")
    };
    engine
        .sync_schedules(&[with("forbid", KeyPolicy::Forbid), with("queue", KeyPolicy::Queue)])
        .await
        .expect("they are loaded");
    let first = engine.trigger_schedule("forbid", &crate::support::jane(), false).await.expect("the key is free");
    assert!(!first.queued);
    clock.set_wall_ms(clock.now_ms() + 10 * MINUTE_MS);
    let fired = fire(&engine).await;
    assert_eq!(fired[0].outcome, engine::FiredOutcome::Held { holder: first.run_id });
    assert!(matches!(fired[1].outcome, engine::FiredOutcome::Started(_)));
    let rows = ticks(&engine.reader()).await;
    assert_eq!((rows[0].outcome.as_str(), rows[0].run_id, rows[0].holder_run_id), ("held", None, Some(first.run_id)));
    let reason = rows[0].reason.clone().expect("a reason");
    assert!(reason.contains(&first.run_id.to_string()) && reason.contains("release"), "{reason}");
    assert_eq!(rows[1].outcome, "started");
    // The run in the queue begins once the first has ended, and then the key is free again.
    crate::support::succeeded(engine.drive(first.run_id).await.expect("it is driven"));
    assert_eq!(engine.drain(4).await.expect("it drains"), 1);
    clock.set_wall_ms(clock.now_ms() + DAY_MS);
    let fired = fire(&engine).await;
    assert!(matches!(fired[0].outcome, engine::FiredOutcome::Started(_)), "{fired:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_missed_ticks_with_one_key_the_first_starts_and_the_others_are_held() {
    let folder = tempfile::tempdir().expect("a folder");
    let clock = SimClock::at("2026-11-30T13:00:00Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    let all = ScheduleDef {
        misfire: Misfire::RunAll,
        concurrency_key: Some("release".to_owned()),
        ..schedule("all", "*/10 * * * *")
    };
    let queued = ScheduleDef {
        name: "queued".to_owned(),
        concurrency_key: Some("other".to_owned()),
        key_policy: KeyPolicy::Queue,
        ..all.clone()
    };
    engine.sync_schedules(&[all, queued]).await.expect("they are loaded");
    clock.set_wall_ms(clock.now_ms() + 30 * MINUTE_MS);
    let fired = fire(&engine).await;
    let holders: Vec<_> = fired.iter().filter(|tick| tick.schedule == "all").map(|tick| tick.outcome).collect();
    let engine::FiredOutcome::Started(first) = holders[0] else { panic!("{holders:?}") };
    let held = engine::FiredOutcome::Held { holder: first };
    assert_eq!(holders[1..], [held, held]);
    assert_eq!(count(folder.path()).await, (1 + 3, 1 + 3, 2), "and those that may queue stand in line");
    assert_eq!(engine.drain(4).await.expect("it drains"), 4);
}
