//! Schedules from the configuration to their ticks, as a person sees them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use engine::{Engine, EngineConfig, EngineContext, Registry, SystemClock};
use engine_rules::clock::Clock;
use serde_json::Value;

use crate::support::env::Env;
use crate::support::table::Table;

const PRODUCT: &str = "99100001";

/// A catalog, a source, and a schedule that publishes it every day at 08:30 in Toronto.
fn env(more: &str) -> Env {
    let env = Env::with_catalog();
    Table::new(PRODUCT, 3).write_zip(&env.path("in.zip"));
    let file = env.path("jobctl.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let schedule = format!(
        "{text}\n[schedules.daily]\nrun = \"publish --product {PRODUCT} --source in.zip --reason 'the daily release'\"\n\
         cron = \"30 8 * * *\"\ntime_zone = \"America/Toronto\"\n{more}"
    );
    std::fs::write(file, schedule).unwrap();
    env
}

/// One field of each tick of a document.
fn field<'a>(document: &'a Value, name: &str) -> Vec<&'a str> {
    document["ticks"].as_array().unwrap().iter().map(|tick| tick[name].as_str().unwrap()).collect()
}

#[test]
fn a_preview_shows_0830_in_toronto_on_both_sides_of_a_change_of_clock() {
    let env = Env::empty();
    let preview =
        |from: &str| env.json(["schedules", "preview", "30 8 * * *", "--time-zone", "America/Toronto", "--from", from]);
    let spring = preview("2026-03-06");
    assert_eq!(spring["schema"], "jobctl.schedules.preview/1");
    assert_eq!(spring["follows"], "wall-clock");
    assert_eq!(
        field(&spring, "local_time"),
        [
            "2026-03-06T08:30:00",
            "2026-03-07T08:30:00",
            "2026-03-08T08:30:00",
            "2026-03-09T08:30:00",
            "2026-03-10T08:30:00"
        ]
    );
    assert_eq!(
        field(&spring, "due_at"),
        [
            "2026-03-06T13:30:00.000000Z",
            "2026-03-07T13:30:00.000000Z",
            "2026-03-08T12:30:00.000000Z",
            "2026-03-09T12:30:00.000000Z",
            "2026-03-10T12:30:00.000000Z"
        ]
    );
    let autumn = preview("2026-10-31T08:30");
    assert_eq!(field(&autumn, "offset"), ["-04:00", "-05:00", "-05:00", "-05:00", "-05:00"]);
    env.jobctl([
        "schedules",
        "preview",
        "30 2 * * *",
        "--time-zone",
        "America/Toronto",
        "--from",
        "2026-03-08",
        "-n",
        "1",
    ])
    .exits(0)
    .says(&["Sun 2026-03-08 03:00 -04:00", "America/Toronto", "2026-03-08 07:00Z", "jumps over 02:30"]);
    assert!(std::fs::read_dir(env.path("")).unwrap().next().is_none(), "a preview leaves nothing");
}

#[test]
fn the_next_firings_are_known_before_there_is_a_state() {
    let env = env(
        "[schedules.hourly]\nrun = \"publish --product 99100001 --source in.zip --wait\"\ncron = \"@hourly\"\ntime_zone = \"UTC\"\n",
    );
    let next = env.json(["schedules", "next", "daily"]);
    assert_eq!(next["schema"], "jobctl.schedules.next/1");
    let local = field(&next, "local_time");
    assert_eq!(local.len(), 5);
    assert!(local.iter().all(|time| time.ends_with("T08:30:00")), "{local:?}");
    let all = env.json(["schedules", "next", "-n", "40"]);
    assert!(field(&all, "due_at").is_sorted());
    let daily = field(&all, "schedule").into_iter().filter(|name| *name == "daily").count();
    assert!((1..=2).contains(&daily), "of 40 firings all but one or two are hourly: {all}");
    let list = env.json(["schedules", "list"]);
    assert_eq!(list["schema"], "jobctl.schedules.list/1");
    assert_eq!(list["schedules"][0]["state"], "not loaded");
    assert_eq!(list["schedules"][0]["concurrency_policy"], "forbid");
    assert_eq!(list["schedules"][1]["concurrency_policy"], "queue");
    env.jobctl(["schedules", "list"]).exits(0).says(&["daily", "30 8 * * *", "America/Toronto", "jobctl serve"]);
    env.jobctl(["schedules", "next", "dayly"]).exits(2).says(&["dayly", "daily, hourly", "hint:"]);
    env.jobctl(["schedules", "pause", "dayly", "--reason", "x"]).exits(2).says(&["dayly", "daily, hourly"]);
    assert!(!env.path("state").exists(), "what only reads creates nothing, and neither does a refusal");
}

#[test]
fn a_schedule_that_cannot_be_meant_is_refused_with_the_fix() {
    for (found, instead, words) in [
        ("30 8 * * *", "30 8 * * 1-5", ["schedules.daily.cron", "1-5", "MON-FRI"]),
        ("30 8 * * *", "0 8 31 2 *", ["schedules.daily.cron", "never matches", "hint:"]),
        ("America/Toronto", "America/Torronto", ["schedules.daily.time_zone", "America/Torronto", "hint:"]),
        ("--source", "--sauce", ["schedules.daily.run", "--sauce", "hint:"]),
        ("cron =", "chron =", ["jobctl.toml", "chron", "hint:"]),
    ] {
        let env = env("");
        let file = env.path("jobctl.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let (head, schedule) = text.split_once("[schedules.daily]").unwrap();
        std::fs::write(&file, format!("{head}[schedules.daily]{}", schedule.replacen(found, instead, 1))).unwrap();
        env.jobctl(["schedules", "list"]).exits(2).says(&words);
    }
    let env = Env::empty();
    env.jobctl(["schedules", "preview", "30 8 1 * MON", "--time-zone", "UTC"]).exits(2).says(&[
        "day of the month (1)",
        "day of the week (MON)",
        "two schedules",
    ]);
    env.jobctl(["schedules", "preview", "30 8 * * *", "--time-zone", "America/Toronto", "--from", "2026-11-01T01:30"])
        .exits(2)
        .says(&["comes twice", "-04:00"]);
}

/// Time, some days ahead.
struct Ahead(SystemClock, i64);

impl Clock for Ahead {
    fn now_ms(&self) -> i64 {
        self.0.now_ms() + self.1
    }

    fn monotonic_us(&self) -> u64 {
        self.0.monotonic_us()
    }

    fn new_id(&self) -> uuid::Uuid {
        self.0.new_id()
    }

    fn chance(&self) -> f64 {
        self.0.chance()
    }

    fn sleep_ms(&self, ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.0.sleep_ms(ms)
    }
}

/// What a daemon decides that looks again after three days and a half.
fn fire_in_three_days(env: &Env) -> usize {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut config = EngineConfig::new(env.path("state"));
        config.clock = Arc::new(Ahead(SystemClock::new(), 84 * 60 * 60 * 1000));
        let mut registry = Registry::new();
        registry.workflow("publish", 1, workflows::publish::publish::<EngineContext>);
        let engine = Engine::open(config, registry).await.unwrap();
        let fired = engine.fire_due_schedules().await.unwrap().len();
        engine.close().await;
        fired
    })
}

#[test]
fn a_paused_schedule_leaves_its_skipped_ticks_and_a_trigger_publishes() {
    let env = env("");
    let paused = env.json(["schedules", "pause", "daily", "--reason", "the source is late"]);
    assert_eq!(
        (paused["schema"].as_str(), paused["state"].as_str()),
        (Some("jobctl.schedules.pause/1"), Some("paused"))
    );
    env.jobctl(["schedules", "list"]).exits(0).says(&["paused", "the source is late"]);
    assert_eq!(fire_in_three_days(&env), 0);
    let ticks = env.json(["schedules", "ticks", "daily", "--skipped"]);
    assert_eq!(ticks["schema"], "jobctl.schedules.ticks/1");
    let outcomes = field(&ticks, "outcome");
    assert!((3..=4).contains(&outcomes.len()) && outcomes.iter().all(|outcome| *outcome == "skipped"), "{ticks}");
    assert!(field(&ticks, "tick").iter().all(|tick| tick.ends_with("T08:30:00")), "{ticks}");
    env.jobctl(["schedules", "ticks", "-n", "1"]).exits(0).says(&[
        "daily",
        "skipped",
        "paused by",
        "the source is late",
    ]);
    env.jobctl(["schedules", "ticks", "dayly"]).exits(2).says(&["dayly", "daily"]);
    // This process's clock is days behind the one by which they were decided.
    env.jobctl(["schedules", "resume", "daily", "--reason", "it came"]).exits(0).says(&["daily is on", "fires next"]);
    env.jobctl(["schedules", "list"]).exits(0).says(&["ahead", "the clock went back"]);
    let resumed = env.json(["schedules", "resume", "daily", "--reason", "it came"]);
    assert_eq!(
        (resumed["schema"].as_str(), resumed["state"].as_str()),
        (Some("jobctl.schedules.resume/1"), Some("on"))
    );

    let run = env.json(["schedules", "trigger", "daily", "--reason", "a correction"]);
    assert_eq!(
        (run["schema"].as_str(), run["state"].as_str()),
        (Some("jobctl.schedules.trigger/1"), Some("succeeded"))
    );
    let shown = env.json(["runs", "show", run["run_id"].as_str().unwrap()]);
    assert_eq!(shown["run"]["schedule"], "daily");
    assert_eq!(shown["run"]["input"]["cause"]["reason"], "the daily release");
    assert_eq!(shown["audit"][0]["action"], "trigger");
    assert_eq!(shown["audit"][0]["reason"], "a correction");
    // A run that waits in the queue has the key, so a second one is refused.
    let queued = env.json(["schedules", "trigger", "daily", "--reason", "once more", "--detach"]);
    assert_eq!(queued["state"], "queued");
    env.jobctl(["schedules", "trigger", "daily", "--reason", "twice"]).exits(4).says(&[
        "publish:99100001",
        queued["run_id"].as_str().unwrap(),
        "jobctl runs show",
    ]);
    for command in ["pause", "resume", "trigger"] {
        env.jobctl(["schedules", command, "daily"]).exits(2).says(&["--reason"]);
    }
}
