//! History does not grow without bound, and what is still needed is never deleted.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use engine::{
    Engine, EngineConfig, EngineError, PurgePlan, PurgeReport, RunFilter, RunId, Start, StartRun, SystemClock,
};
use engine_rules::clock::Clock;
use engine_rules::failure::ActivityError as _;
use engine_rules::retention::{Cutoff, Portion, Weight};
use serde_json::{Value, json};
use sqlx::SqliteConnection;
use uuid::Uuid;

use crate::child::{Order, spawn};
use crate::support::{jane, open, outsider, registry, sleep_ms, start, succeeded};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The time at which the seeded runs ended, or a little later.
const OLD_MS: i64 = 1_700_000_000_000;

fn before(ended_before_ms: i64) -> PurgePlan {
    PurgePlan::new(Cutoff { ended_before_ms, failed_ended_before_ms: None }, jane())
}

/// What ended in the seeded time, however it ended.
fn old() -> PurgePlan {
    let ended_before_ms = OLD_MS + DAY_MS;
    PurgePlan::new(Cutoff { ended_before_ms, failed_ended_before_ms: Some(ended_before_ms) }, jane())
}

fn id(number: u32) -> String {
    format!("00000000-0000-7000-8000-{number:012x}")
}

/// `count` runs, numbered from `first`, with `steps` steps each.
async fn seed(db: &mut SqliteConnection, first: u32, count: u32, steps: u32) {
    sqlx::query(
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $2) \
         INSERT INTO run (run_id, workflow, version, state, input, input_digest, output, labels, concurrency_policy, \
         actor, epoch, created_at_ms, started_at_ms, ended_at_ms) \
         SELECT printf('00000000-0000-7000-8000-%012x', $1 + i), 'sum', 1, 'succeeded', '[1,2]', 'd', '6', \
         '{\"product\":\"14100287\"}', 'forbid', 'seed', 1, $3 + i, $3 + i, $3 + i FROM n",
    )
    .bind(first)
    .bind(count)
    .bind(OLD_MS)
    .execute(&mut *db)
    .await
    .expect("runs");
    seed_steps(db, first, count, steps).await;
}

async fn seed_steps(db: &mut SqliteConnection, first: u32, count: u32, steps: u32) {
    sqlx::query(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $3) \
         INSERT INTO step (run_no, top, iteration, sub, kind, name, activity, state, input_digest, input, output, \
         attempt, forgiven, epoch, first_started_at_ms, started_at_ms, ended_at_ms, duration_us) \
         SELECT r.run_no, n.i, 1, 0, 'activity', 'step', 'test.step', 'succeeded', 'd', '[1,2]', '\"' || hex(zeroblob(100)) \
         || '\"', 1, 0, 1, r.started_at_ms, r.started_at_ms, r.ended_at_ms, 10 FROM run r, n \
         WHERE $3 > 0 AND r.run_id BETWEEN printf('00000000-0000-7000-8000-%012x', $1) \
         AND printf('00000000-0000-7000-8000-%012x', $1 + $2 - 1)",
    )
    .bind(first)
    .bind(count)
    .bind(steps)
    .execute(db)
    .await
    .expect("steps");
}

/// One run of any state, with a parent or an origin where it has one.
async fn seed_one(db: &mut SqliteConnection, number: u32, state: &str, parent: Option<u32>, origin: Option<u32>) {
    let ended = matches!(state, "succeeded" | "failed" | "cancelled").then_some(OLD_MS + i64::from(number));
    sqlx::query(
        "INSERT INTO run (run_id, workflow, version, state, input, input_digest, labels, concurrency_policy, actor, epoch, \
         parent_run_id, origin_run_id, created_at_ms, ended_at_ms) \
         VALUES (?, 'sum', 1, ?, '[1,2]', 'd', '{}', 'forbid', 'seed', 1, ?, ?, ?, ?)",
    )
    .bind(id(number))
    .bind(state)
    .bind(parent.map(id))
    .bind(origin.map(id))
    .bind(OLD_MS)
    .bind(ended)
    .execute(db)
    .await
    .expect("a run");
}

async fn number(db: &mut SqliteConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(db).await.expect("a number")
}

/// The numbers of the seeded runs that are there.
async fn left(db: &mut SqliteConnection) -> Vec<u32> {
    let ids: Vec<String> = sqlx::query_scalar("SELECT run_id FROM run WHERE actor = 'seed' ORDER BY run_id")
        .fetch_all(db)
        .await
        .expect("ids");
    ids.iter().map(|id| u32::from_str_radix(&id[28..], 16).expect("a number")).collect()
}

async fn audits(db: &mut SqliteConnection) -> Vec<Value> {
    let rows: Vec<String> = sqlx::query_scalar("SELECT details FROM audit WHERE action = 'purge' ORDER BY audit_no")
        .fetch_all(db)
        .await
        .expect("the audit trail");
    rows.iter().map(|text| serde_json::from_str(text).expect("JSON")).collect()
}

type Consequence = Box<dyn FnOnce() + Send>;

/// The system's clock, shifted; its monotonic time can go by with each look at it, and a look can have a consequence.
#[derive(Default)]
struct TestClock {
    system: SystemClock,
    shift_ms: AtomicI64,
    us_a_look: AtomicU64,
    looks: AtomicU64,
    at_look: Mutex<Option<(u64, Consequence)>>,
}

impl Clock for TestClock {
    fn now_ms(&self) -> i64 {
        self.system.now_ms() + self.shift_ms.load(Ordering::SeqCst)
    }

    fn monotonic_us(&self) -> u64 {
        let looks = self.looks.fetch_add(1, Ordering::SeqCst) + 1;
        let due = self.at_look.lock().expect("nobody panicked").take_if(|(at, _)| *at <= looks);
        if let Some((_, consequence)) = due {
            consequence();
        }
        match self.us_a_look.load(Ordering::SeqCst) {
            0 => self.system.monotonic_us(),
            us => us * looks,
        }
    }

    fn new_id(&self) -> Uuid {
        self.system.new_id()
    }

    fn chance(&self) -> f64 {
        self.system.chance()
    }

    fn sleep_ms(&self, ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.system.sleep_ms(ms)
    }
}

async fn with_clock(state: &Path) -> (Engine, Arc<TestClock>) {
    let clock = Arc::new(TestClock::default());
    let config = EngineConfig { clock: clock.clone(), ..EngineConfig::new(state) };
    (Engine::open(config, registry()).await.expect("the engine opens"), clock)
}

/// Somebody who writes all the time, through an engine or past it, and how long one write took at the longest.
struct Load {
    stop: Arc<AtomicBool>,
    longest_us: Arc<AtomicU64>,
    tasks: Vec<tokio::task::JoinHandle<u64>>,
}

impl Load {
    fn begin(state: &Path, engine: &Engine) -> Self {
        let (stop, longest_us) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let clock = Arc::new(SystemClock::new());
        let mut tasks = Vec::new();
        {
            let (stop, longest, clock, engine) = (stop.clone(), longest_us.clone(), clock.clone(), engine.clone());
            tasks.push(tokio::spawn(async move {
                let mut writes = 0;
                while !stop.load(Ordering::SeqCst) {
                    let begun_us = clock.monotonic_us();
                    let run = start(&engine, StartRun::new("sum", json!([1, 2]), "jane")).await;
                    longest.fetch_max(clock.monotonic_us() - begun_us, Ordering::SeqCst);
                    succeeded(engine.drive(run).await.expect("it is driven"));
                    writes += 1;
                }
                writes
            }));
        }
        let (stopped, longest, state) = (stop.clone(), longest_us.clone(), state.to_owned());
        tasks.push(tokio::spawn(async move {
            let mut db = outsider(&state).await;
            let mut writes = 0;
            while !stopped.load(Ordering::SeqCst) {
                let begun_us = clock.monotonic_us();
                for sql in ["BEGIN IMMEDIATE", "UPDATE owner SET host = host", "COMMIT"] {
                    sqlx::query(sql).execute(&mut db).await.expect("another process writes");
                }
                longest.fetch_max(clock.monotonic_us() - begun_us, Ordering::SeqCst);
                writes += 1;
                sleep_ms(1).await;
            }
            writes
        }));
        Self { stop, longest_us, tasks }
    }

    /// How long a write took at the longest, in milliseconds.
    async fn end(self) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        for task in self.tasks {
            assert!(task.await.expect("no panic") > 0, "each wrote something");
        }
        self.longest_us.load(Ordering::SeqCst) / 1_000
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_of_twenty_thousand_runs_under_load_keeps_its_progress_when_killed_and_holds_nobody_up() {
    const RUNS: u32 = 20_000;
    const RECENT: u32 = 50;
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), registry()).await;
    let mut db = outsider(folder.path()).await;
    seed(&mut db, 0, RUNS + RECENT, 3).await;
    let cutoff_ms = OLD_MS + i64::from(RUNS);
    let count = "SELECT count(*) FROM run WHERE actor = 'seed'";

    let load = Load::begin(folder.path(), &engine);
    let mut child = spawn(folder.path(), &Order::Purge { ended_before_ms: cutoff_ms });
    while number(&mut db, count).await > i64::from(RUNS / 2) {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before it was killed");
        sleep_ms(5).await;
    }
    child.kill().expect("it is killed");
    child.wait().expect("it is gone");
    let kept = number(&mut db, count).await;
    assert!(kept > i64::from(RECENT), "it was killed in the middle");
    let killed_wait_ms = load.end().await;
    let audit = audits(&mut db).await;
    assert_eq!((audit.len(), &audit[0]["finished"]), (1, &json!(false)));
    assert_eq!(audit[0]["runs"], json!(i64::from(RUNS + RECENT) - kept), "the trail says what went before the kill");

    let load = Load::begin(folder.path(), &engine);
    let report = engine.purge(before(cutoff_ms)).await.expect("it is purged");
    let wait_ms = load.end().await;
    println!("longest wait of another writer: {killed_wait_ms} ms and {wait_ms} ms; {report:?}");
    assert!(killed_wait_ms.max(wait_ms) < 5_000, "{killed_wait_ms} ms and {wait_ms} ms");
    assert!(report.finished);
    assert_eq!((report.runs, report.steps), (kept.unsigned_abs() - 50, (kept.unsigned_abs() - 50) * 3));
    assert_eq!(left(&mut db).await, (RUNS..RUNS + RECENT).collect::<Vec<_>>());
    assert_eq!(number(&mut db, "SELECT count(*) FROM step WHERE activity = 'test.step'").await, i64::from(RECENT) * 3);
    let audit = audits(&mut db).await;
    assert_eq!(audit.len(), 2);
    assert_eq!((&audit[1]["runs"], &audit[1]["finished"]), (&json!(report.runs), &json!(true)));
    assert!(engine.purge(before(cutoff_ms)).await.expect("it is purged").finished);
    assert_eq!(audits(&mut db).await.len(), 2, "a purge of nothing leaves no row");

    // The same again fits into the room that was freed.
    let pages = number(&mut db, "PRAGMA page_count").await;
    seed(&mut db, RUNS * 2, RUNS * 9 / 10, 3).await;
    assert_eq!(number(&mut db, "PRAGMA page_count").await, pages, "freed pages are used again");
    let check: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut db).await.expect("a check");
    assert_eq!(check, "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_lives_or_whose_family_or_replay_lives_is_never_purged() {
    for live in ["queued", "running", "waiting", "paused", "blocked"] {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = open(folder.path(), registry()).await;
        let mut db = outsider(folder.path()).await;
        for (number, state, parent, origin) in [
            // Not finished.
            (1, live, None, None),
            // A live parent reads its children's ends; so does a parent of a parent.
            (10, live, None, None),
            (11, "succeeded", Some(10), None),
            (12, "failed", Some(11), None),
            // A live descendant.
            (20, "cancelled", None, None),
            (21, "succeeded", Some(20), None),
            (22, live, Some(21), None),
            // A live replay of the run, and of a child.
            (30, "succeeded", None, None),
            (31, live, None, Some(30)),
            (40, "succeeded", None, None),
            (41, "succeeded", Some(40), None),
            (42, live, None, Some(41)),
            // What may go: a family of three, a finished replay and its origin.
            (50, "succeeded", None, None),
            (51, "succeeded", Some(50), None),
            (52, "failed", Some(51), None),
            (60, "failed", None, None),
            (61, "succeeded", None, Some(60)),
            // A child whose parent is nowhere.
            (70, "cancelled", Some(9_999), None),
        ] {
            seed_one(&mut db, number, state, parent, origin).await;
        }
        let expected = [1, 10, 11, 12, 20, 21, 22, 30, 31, 40, 41, 42];
        let dry = engine.purge(PurgePlan { dry_run: true, ..old() }).await.expect("it is counted");
        assert_eq!((dry.runs, left(&mut db).await.len()), (6, 18), "{live}");
        // In one transaction, and in as many as there are.
        for items in [1, 300] {
            let plan = old();
            let report = engine.purge(PurgePlan { portion: Portion { items, ..plan.portion }, ..plan }).await;
            let report = report.expect("it is purged");
            assert_eq!(left(&mut db).await, expected, "{live}");
            assert_eq!((report.stay_live, report.stay_replayed), (1, 2), "{live}: {report:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_runs_stay_until_their_own_time_and_families_until_their_last_member() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), registry()).await;
    let mut db = outsider(folder.path()).await;
    // A run ended as many milliseconds after the old time as its number says.
    for (number, state, parent) in
        [(1, "failed", None), (2, "succeeded", None), (3, "cancelled", None), (4, "succeeded", None)]
    {
        seed_one(&mut db, number, state, parent, None).await;
    }
    seed_one(&mut db, 30, "failed", Some(4), None).await;
    let report = engine.purge(before(OLD_MS + 20)).await.expect("it is purged");
    assert_eq!(left(&mut db).await, [1, 4, 30]);
    assert_eq!((report.runs, report.stay_failed, report.stay_recent), (2, 1, 1));
    assert_eq!(report.transactions, 3, "one for the runs, one that found no key, one for the end");
    let cutoff = |ms| Cutoff { ended_before_ms: OLD_MS + 20, failed_ended_before_ms: Some(OLD_MS + ms) };
    engine.purge(PurgePlan::new(cutoff(1), jane())).await.expect("it is purged");
    assert_eq!(left(&mut db).await, [1, 4, 30], "it ended at that time, not before it");
    engine.purge(PurgePlan::new(cutoff(2), jane())).await.expect("it is purged");
    assert_eq!(left(&mut db).await, [4, 30]);
    engine.purge(before(OLD_MS + 31)).await.expect("it is purged");
    assert_eq!(left(&mut db).await, [0_u32; 0], "the head decides how the family ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_of_seven_thousand_children_goes_after_them_in_many_transactions() {
    const CHILDREN: u32 = 7_000;
    let folder = tempfile::tempdir().expect("a folder");
    let (engine, clock) = with_clock(folder.path()).await;
    let mut db = outsider(folder.path()).await;
    seed_one(&mut db, 1, "succeeded", None, None).await;
    seed(&mut db, 100, CHILDREN, 1).await;
    // A run that ended never changes, but for a test.
    sqlx::raw_sql(
        "DROP TRIGGER run_terminal_is_immutable; \
         UPDATE run SET parent_run_id = '00000000-0000-7000-8000-000000000001' WHERE run_no > 1",
    )
    .execute(&mut db)
    .await
    .expect("children");
    clock.us_a_look.store(1_000, Ordering::SeqCst);
    let orphans = "SELECT count(*) FROM run c WHERE parent_run_id IS NOT NULL \
                   AND NOT EXISTS (SELECT 1 FROM run p WHERE p.run_id = c.parent_run_id)";
    let mut calls = Vec::new();
    loop {
        // Each look at the clock takes a millisecond, so this is a few transactions.
        let report = engine.purge(PurgePlan { budget_ms: Some(20), ..old() }).await.expect("it is purged");
        assert_eq!(number(&mut db, orphans).await, 0, "children go before their parent");
        calls.push(report);
        if report.finished {
            break;
        }
        if left(&mut db).await.is_empty() {
            continue;
        }
        let parent = id(1).parse::<RunId>().expect("an id");
        let seen = engine.reader().run(parent).await.expect("the parent is there");
        assert!(seen.run.purge_begun_at_ms.is_some(), "whoever reads it is told");
    }
    assert!(calls.len() > 3, "{} calls", calls.len());
    assert_eq!(calls.iter().map(|call| call.runs).sum::<u64>(), u64::from(CHILDREN) + 1);
    assert_eq!(left(&mut db).await, [0_u32; 0]);
    assert_eq!(number(&mut db, "SELECT count(*) FROM purge_begun").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_too_large_for_one_transaction_goes_from_its_end_and_what_was_begun_is_ended() {
    const STEPS: u32 = 4_000;
    let folder = tempfile::tempdir().expect("a folder");
    let (engine, clock) = with_clock(folder.path()).await;
    let mut db = outsider(folder.path()).await;
    seed(&mut db, 1, 1, STEPS).await;
    sqlx::raw_sql(
        "INSERT INTO attempt (run_no, top, iteration, sub, attempt, outcome, epoch) \
         SELECT run_no, top, iteration, sub, 1, 'failed', 1 FROM step WHERE top % 10 = 0; \
         INSERT INTO signal (run_no, name, payload, actor, sent_at_ms) \
         SELECT run_no, 's', '\"' || hex(zeroblob(50000)) || '\"', 'jane', 1 FROM step WHERE top <= 50",
    )
    .execute(&mut db)
    .await
    .expect("attempts and signals");
    let portion = Portion { items: 300, weight: Weight { rows: 500, bytes: 1_000_000 } };
    clock.us_a_look.store(1_000, Ordering::SeqCst);
    let report = engine.purge(PurgePlan { portion, budget_ms: Some(30), ..old() }).await.expect("it is purged");
    assert!(!report.finished && report.transactions > 3, "{report:?}");
    assert_eq!(report.runs, 0);
    let steps = number(&mut db, "SELECT count(*) FROM step").await;
    assert_eq!(steps, i64::from(STEPS) - report.steps as i64);
    assert!(steps > 0 && steps < i64::from(STEPS), "{steps} steps are left");
    assert_eq!(number(&mut db, "SELECT max(top) FROM step").await, steps, "what is left is a beginning");
    assert_eq!(number(&mut db, "SELECT count(*) FROM attempt").await, steps / 10);

    // A younger cutoff is no longer met; the rest goes all the same.
    let report = engine.purge(PurgePlan { portion, ..before(1) }).await.expect("it is purged");
    assert_eq!((report.runs, report.steps, report.finished), (1, steps.unsigned_abs(), true));
    for table in ["SELECT count(*) FROM step", "SELECT count(*) FROM attempt", "SELECT count(*) FROM signal"] {
        assert_eq!(number(&mut db, table).await, 0, "{table}");
    }
}

/// The purge looks for what may go, and then deletes it: in between, a replay may begin.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_begins_to_be_replayed_while_it_is_purged_stays_or_was_gone_before() {
    let mut stayed = 0;
    for look in 1..=12 {
        let folder = tempfile::tempdir().expect("a folder");
        let (engine, clock) = with_clock(folder.path()).await;
        let mut db = outsider(folder.path()).await;
        seed(&mut db, 1, 1, 1).await;
        let state = folder.path().to_owned();
        let replay = move || {
            let begin = async move {
                let mut db = outsider(&state).await;
                sqlx::query(
                    "INSERT INTO run (run_id, workflow, version, state, input, input_digest, labels, \
                     concurrency_policy, actor, epoch, origin_run_id, created_at_ms) \
                     SELECT 'replay', 'sum', 1, 'running', '[1,2]', 'd', '{}', 'forbid', 'jane', 1, run_id, 1 \
                     FROM run WHERE actor = 'seed'",
                )
                .execute(&mut db)
                .await
                .expect("a replay begins");
            };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            std::thread::spawn(move || runtime.block_on(begin)).join().expect("no panic");
        };
        let at = clock.looks.load(Ordering::SeqCst) + look;
        *clock.at_look.lock().expect("nobody panicked") = Some((at, Box::new(replay)));
        engine.purge(old()).await.expect("it is purged");
        let replays = number(&mut db, "SELECT count(*) FROM run WHERE run_id = 'replay'").await;
        assert_eq!(left(&mut db).await.len() as i64, replays, "at look {look}");
        stayed += replays;
    }
    assert!(stayed > 2, "the replay was often enough in time: {stayed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_whose_run_was_purged_never_gives_a_stale_result_and_starts_no_second_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let (engine, clock) = with_clock(folder.path()).await;
    let once = |input| StartRun {
        idempotency_key: Some("08:30".to_owned()),
        idempotency_window_ms: 2 * DAY_MS,
        ..StartRun::new("sum", input, "jane")
    };
    let run = start(&engine, once(json!([1, 2]))).await;
    succeeded(engine.drive(run).await.expect("it is driven"));
    clock.shift_ms.store(DAY_MS, Ordering::SeqCst);
    let report = engine.purge(before(clock.now_ms())).await.expect("it is purged");
    assert_eq!((report.runs, report.idempotency_keys), (1, 0), "the key outlives its run");

    let error = engine.start(once(json!([1, 2]))).await.expect_err("what came of it is no longer known");
    assert!(matches!(&error, EngineError::IdempotencyPurged { run: named, .. } if *named == run), "{error:?}");
    assert_eq!(error.code(), "engine.idempotency_purged");
    assert!(error.to_string().contains(&run.to_string()) && error.to_string().contains("purged"), "{error}");
    assert!(error.hint().is_some());
    let error = engine.start(once(json!([1, 3]))).await.expect_err("another input is another order");
    assert!(matches!(error, EngineError::IdempotencyConflict { run: named, .. } if named == run), "{error:?}");
    assert_eq!(engine.reader().runs(&RunFilter::default()).await.expect("the runs read"), [], "nothing was started");

    // Its window ends: the key goes, and is new again.
    clock.shift_ms.store(3 * DAY_MS, Ordering::SeqCst);
    let report = engine.purge(before(0)).await.expect("it is purged");
    assert_eq!(report.idempotency_keys, 1);
    match engine.start(once(json!([1, 3]))).await.expect("it is answered") {
        Start::Started(started) => assert!(started.run_id != run && !started.existing),
        Start::Busy { holder } => panic!("{holder}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_used_again_after_its_window_starts_a_new_run_also_before_any_purge() {
    let folder = tempfile::tempdir().expect("a folder");
    let (engine, clock) = with_clock(folder.path()).await;
    let once = || StartRun { idempotency_key: Some("k".to_owned()), ..StartRun::new("sum", json!([1, 2]), "jane") };
    let first = start(&engine, once()).await;
    succeeded(engine.drive(first).await.expect("it is driven"));
    clock.shift_ms.store(8 * DAY_MS, Ordering::SeqCst);
    let second = start(&engine, once()).await;
    assert_ne!(second, first);
    succeeded(engine.drive(second).await.expect("it is driven"));
    // The first run goes; the key is the second's and stays.
    let report = engine.purge(before(clock.now_ms() - DAY_MS)).await.expect("it is purged");
    assert_eq!((report.runs, report.idempotency_keys), (1, 0));
    assert_eq!(start(&engine, once()).await, second);
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_without_runs_and_ticks_but_the_last_go_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), registry()).await;
    let mut db = outsider(folder.path()).await;
    sqlx::raw_sql(
        "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 2600) \
         INSERT INTO owner (owner_no, owner_id, pid, host, version, started_at_ms, lease_until_at_ms, ended_at_ms) \
         SELECT i, 'owner ' || i, 1, 'h', '0', 1, 2, iif(i % 2, 2, NULL) FROM n; \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) \
         INSERT INTO tick (schedule, local_time, due_at_ms, outcome, decided_at_ms) \
         SELECT iif(i <= 1400, 'dead', 'alive'), printf('2020-01-01T%06d', i), i, 'started', \
         iif(i <= 1450, i, 9000000000000) FROM n",
    )
    .execute(&mut db)
    .await
    .expect("owners and ticks");
    seed(&mut db, 1, 2, 0).await;
    seed_one(&mut db, 10, "blocked", None, None).await;
    sqlx::raw_sql(
        "DROP TRIGGER run_terminal_is_immutable; UPDATE run SET owner_no = 99 + run_no; \
         UPDATE run SET ended_at_ms = 9000000000000 WHERE run_no = 2",
    )
    .execute(&mut db)
    .await
    .expect("their runs");
    let dry = engine.purge(PurgePlan { dry_run: true, ..before(OLD_MS + DAY_MS) }).await.expect("it is counted");
    let report = engine.purge(before(OLD_MS + DAY_MS)).await.expect("it is purged");
    // The first one's run goes with this purge; two have runs that stay, and the newest stays for its number.
    assert_eq!((report.runs, report.owners, report.ticks), (1, 2501 - 3, 1399 + 50), "{report:?}");
    assert_eq!(
        (dry.runs, dry.owners, dry.ticks),
        (1, 2501 - 4, 1399 + 50),
        "what the purge itself frees is not counted"
    );
    let owners: Vec<i64> =
        sqlx::query_scalar("SELECT owner_no FROM owner ORDER BY owner_no").fetch_all(&mut db).await.expect("owners");
    assert_eq!(owners, [1, 101, 102, 2600], "the engine's own, those with runs, and the newest");
    let last = "SELECT count(*) FROM tick WHERE schedule = 'dead'";
    assert_eq!(number(&mut db, last).await, 1, "the last time that was decided stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_was_stopped_for_long_and_lives_keeps_its_owner() {
    let folder = tempfile::tempdir().expect("a folder");
    let stopped = open(folder.path(), registry()).await;
    let mut db = outsider(folder.path()).await;
    let engine = open(folder.path(), registry()).await;
    sqlx::query("UPDATE owner SET lease_until_at_ms = 1").execute(&mut db).await.expect("its lease ran out");
    let report = engine.purge(old()).await.expect("it is purged");
    assert_eq!(report.owners, 0, "its lock is held");
    stopped.close().await;
    sqlx::query("UPDATE owner SET lease_until_at_ms = 1, ended_at_ms = 1 WHERE owner_no = 1")
        .execute(&mut db)
        .await
        .expect("it ended long ago");
    assert_eq!(engine.purge(old()).await.expect("it is purged").owners, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_within_a_budget_of_no_time_changes_nothing_and_says_that_it_is_not_done() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), registry()).await;
    let mut db = outsider(folder.path()).await;
    seed(&mut db, 1, 10, 1).await;
    let report = engine.purge(PurgePlan { budget_ms: Some(0), ..old() }).await.expect("it is answered");
    assert_eq!(report, PurgeReport::default());
    assert_eq!(left(&mut db).await.len(), 10);
    let long = PurgePlan { by: engine::Mutation { reason: "x".repeat(5_000), ..jane() }, ..old() };
    assert!(matches!(engine.purge(long).await, Err(EngineError::TextTooLong { .. })));
}
