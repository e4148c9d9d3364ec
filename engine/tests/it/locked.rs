//! Every kind of write, while somebody else holds the database.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use engine::{
    Engine, EngineConfig, EngineContext, KeyPolicy, Outcome, Reader, Registry, RunFilter, RunId, StartRun, SystemClock,
};
use engine_rules::clock::Clock;
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::failure::Disposition;
use engine_rules::retry::RetryPolicy;
use engine_rules::state::RunState;
use serde_json::json;
use uuid::Uuid;

use crate::child::{Order, aborts, log};
use crate::support::{Broken, QUICK, blocked, detail, jane, open, outsider, sleep_ms, start, succeeded, until};
use crate::worker::{all_ended, worker_registry};

const ASKS: StepDef<(), ()> = StepDef::new("asks", "locked.asks", QUICK);
const SHAKY: StepDef<u32, u32> = StepDef::new(
    "shaky",
    "locked.shaky",
    RetryPolicy { first_delay_ms: 1, factor: 1.0, cap_ms: 1, attempts: 4, jitter_percent: 0 },
);
const SEIZED: StepDef<u32, u32> = StepDef::new("seized", "locked.shaky", QUICK);

async fn asks<C: Context>(ctx: &mut C, _input: ()) -> Result<(), Interrupt> {
    ctx.step(&ASKS, &()).await
}

/// Every kind of row: a time, an id, attempts that fail, a section.
async fn mixed<C: Context>(ctx: &mut C, number: u32) -> Result<u32, Interrupt> {
    ctx.now_ms().await?;
    ctx.new_id().await?;
    let shaky = ctx.step(&SHAKY, &number).await?;
    ctx.begin_section("seized").await?;
    let seized = ctx.step(&SEIZED, &shaky).await?;
    ctx.end_section().await?;
    Ok(seized)
}

fn registry(folder: &Path) -> Registry {
    let mut registry = worker_registry(folder);
    registry.workflow("asks", 1, asks::<EngineContext>);
    registry.workflow("mixed", 1, mixed::<EngineContext>);
    let mended = folder.join("mended");
    registry.activity("locked.asks", move |_ctx, (): ()| {
        let mended = mended.exists();
        async move { if mended { Ok(()) } else { Err(Broken("ask a person", Disposition::Operator)) } }
    });
    registry.activity("locked.shaky", |ctx, number: u32| async move {
        sleep_ms(u64::from(number % 3) * 4).await;
        if ctx.attempt <= number % 3 { Err(Broken("not yet", Disposition::Retry)) } else { Ok(number) }
    });
    registry
}

type Op = (&'static str, Pin<Box<dyn Future<Output = ()> + Send>>);

/// Runs in every state from which something can be written of them.
struct Stage {
    dead: RunId,
    held: RunId,
    holding: tokio::task::JoinHandle<Outcome>,
    blocked: RunId,
    queued: RunId,
    behind: RunId,
    leaving: Engine,
}

impl Stage {
    async fn set(folder: &Path, engine: &Engine) -> Self {
        aborts(folder, &Order::Run { workflow: "work".to_owned(), point: "test.second".to_owned(), hit: 1 });
        let dead = engine.interrupted().await.expect("they are listed")[0];
        let held = StartRun::new("held", json!(null), "jane").key("the key", KeyPolicy::Forbid);
        let held = start(engine, held).await;
        let holding = tokio::spawn({
            let engine = engine.clone();
            async move { engine.drive(held).await.expect("it is driven") }
        });
        let log = log(folder);
        until("the body runs", || log.count(&held.to_string()) == 1).await;
        let asks = start(engine, StartRun::new("asks", json!(null), "jane")).await;
        blocked(engine.drive(asks).await.expect("it is driven"));
        std::fs::write(folder.join("mended"), "").expect("it is mended");
        let queued = StartRun { detached: true, ..StartRun::new("sum", json!([1, 2]), "jane") };
        let queued = start(engine, queued).await;
        let behind = StartRun::new("sum", json!([1, 2]), "jane").key("the key", KeyPolicy::Queue);
        let behind = start(engine, behind).await;
        let leaving = open(folder, registry(folder)).await;
        Self { dead, held, holding, blocked: asks, queued, behind, leaving }
    }

    /// What can be written, each as somebody who asks for it.
    fn operations(self, folder: &Path, config: impl Fn() -> EngineConfig, engine: &Engine) -> Vec<Op> {
        let e = || engine.clone();
        let (starts, takes, resumes, cancels, drains) = (e(), e(), e(), e(), e());
        let (opens, folder) = (config(), folder.to_owned());
        let state = registry(&folder);
        vec![
            (
                "a start",
                Box::pin(async move {
                    let run = start(&starts, StartRun::new("mixed", json!(2), "jane")).await;
                    assert_eq!(succeeded(starts.drive(run).await.expect("it is driven")), json!(2));
                }),
            ),
            (
                "a result",
                Box::pin(async move {
                    std::fs::write(folder.join("go"), "").expect("the body may end");
                    assert_eq!(self.holding.await.expect("no panic"), Outcome::Succeeded(json!(null)), "{}", self.held);
                }),
            ),
            (
                "a taking-over",
                Box::pin(async move {
                    takes.take_over(self.dead).await.expect("it is taken over");
                    assert_eq!(succeeded(takes.drive(self.dead).await.expect("it is driven")), json!([1, 4, 5]));
                }),
            ),
            (
                "a person's resume",
                Box::pin(async move {
                    resumes.resume(self.blocked, &jane()).await.expect("it is resumed");
                    assert_eq!(succeeded(resumes.drive(self.blocked).await.expect("it is driven")), json!(null));
                }),
            ),
            (
                "a cancel",
                Box::pin(async move {
                    cancels.cancel(self.behind, &jane()).await.expect("it is cancelled");
                }),
            ),
            (
                "a run from the queue",
                Box::pin(async move {
                    assert_eq!(succeeded(drains.drive(self.queued).await.expect("it is driven")), json!(6));
                }),
            ),
            (
                "an opening",
                Box::pin(async move {
                    Engine::open(opens, state).await.expect("it opens").close().await;
                }),
            ),
            ("a sign-off", Box::pin(async move { self.leaving.close().await })),
        ]
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_held_for_ten_seconds_delays_every_kind_of_write_and_fails_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), registry(folder.path())).await;
    let stage = Stage::set(folder.path(), &engine).await;
    let dead = stage.dead;
    let mut other = outsider(folder.path()).await;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.expect("the lock is free");
    let clock = SystemClock::new();
    let operations = stage.operations(folder.path(), || EngineConfig::new(folder.path()), &engine);
    let mut asked: Vec<_> = operations.into_iter().map(|(name, asking)| (name, tokio::spawn(asking))).collect();
    // Who only reads is not held up.
    let reading = async {
        let reader = Reader::open(folder.path(), Arc::new(SystemClock::new())).await.expect("it opens");
        assert_eq!(reader.runs(&RunFilter::default()).await.expect("the runs read").len(), 5);
        assert_eq!(reader.run(dead).await.expect("the run reads").run.state, RunState::Running);
        assert_eq!(reader.find(&dead.to_string()).await.expect("it is found"), dead);
        assert_eq!(engine.interrupted().await.expect("they are listed"), [dead]);
    };
    tokio::time::timeout(Duration::from_secs(5), reading).await.expect("reading does not wait");
    sleep_ms(10_000 - (clock.monotonic_us() / 1_000).min(9_000)).await;
    for (name, asking) in &asked {
        assert!(!asking.is_finished(), "{name}: nothing can be recorded, so nothing is acknowledged");
    }
    sqlx::query("COMMIT").execute(&mut other).await.expect("the lock is given back");
    for (name, asking) in &mut asked {
        asking.await.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    assert!(all_ended(&engine).await);
}

/// The system's clock, which counts how often the engine was told that the database is busy.
struct Counting {
    clock: SystemClock,
    told_busy: AtomicU32,
}

/// What the engine sleeps after it was told, in milliseconds; the control of the test below holds this number.
const AFTER_BUSY_MS: u64 = 5;

impl Clock for Counting {
    fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    fn monotonic_us(&self) -> u64 {
        self.clock.monotonic_us()
    }

    fn new_id(&self) -> Uuid {
        self.clock.new_id()
    }

    fn chance(&self) -> f64 {
        self.clock.chance()
    }

    fn sleep_ms(&self, ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        if ms == AFTER_BUSY_MS {
            self.told_busy.fetch_add(1, Ordering::SeqCst);
        }
        self.clock.sleep_ms(ms)
    }
}

/// A transaction that begins with a read and then writes is told at once that the database is busy, however long it would
/// wait: while somebody else writes, or has written since it read. One that begins IMMEDIATE waits within SQLite.
#[tokio::test(flavor = "multi_thread")]
async fn every_write_transaction_begins_immediate() {
    for busy_wait_ms in [15_000, 0] {
        let folder = tempfile::tempdir().expect("a folder");
        let counting = Arc::new(Counting { clock: SystemClock::new(), told_busy: AtomicU32::new(0) });
        let config = || EngineConfig {
            clock: counting.clone(),
            // Not the number that is counted.
            start_behind_ms: AFTER_BUSY_MS + 2,
            busy_wait_ms,
            ..EngineConfig::new(folder.path())
        };
        let engine = Engine::open(config(), registry(folder.path())).await.expect("it opens");
        let stage = Stage::set(folder.path(), &engine).await;
        let mut other = outsider(folder.path()).await;
        sqlx::query("CREATE TABLE other (n)").execute(&mut other).await.expect("a table of somebody else");
        for (name, operation) in stage.operations(folder.path(), config, &engine) {
            sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.expect("the lock is free");
            let asking = tokio::spawn(operation);
            sleep_ms(60).await;
            assert!(!asking.is_finished(), "{name} writes");
            // Whoever has read by now has read what no longer is.
            sqlx::query("INSERT INTO other VALUES (1)").execute(&mut other).await.expect("it is written");
            sqlx::query("COMMIT").execute(&mut other).await.expect("the lock is given back");
            asking.await.unwrap_or_else(|error| panic!("{name}: {error}"));
            let told = counting.told_busy.load(Ordering::SeqCst);
            match busy_wait_ms {
                0 => assert!(told > 0, "{name}: the control is told, so the test above would see it"),
                _ => assert_eq!(told, 0, "{name} was told that the database is busy instead of waiting for it"),
            }
        }
    }
}

/// A generator of numbers that is its seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Takes the lock at random moments, with and without a change, until it is to stop.
async fn get_in_the_way(folder: PathBuf, seed: u64, stop: Arc<AtomicBool>, held: Arc<AtomicU32>) {
    let mut chance = Chance(seed);
    let mut other = outsider(&folder).await;
    sqlx::query("PRAGMA busy_timeout = 0").execute(&mut other).await.expect("a pragma");
    while !stop.load(Ordering::SeqCst) {
        let begin = if chance.below(4) == 0 { "BEGIN EXCLUSIVE" } else { "BEGIN IMMEDIATE" };
        // As rude as the engine is here: both try again at once.
        if sqlx::query(begin).execute(&mut other).await.is_err() {
            tokio::task::yield_now().await;
            continue;
        }
        if chance.below(2) == 0 {
            sqlx::query("UPDATE owner SET version = version").execute(&mut other).await.expect("it is written");
        }
        sleep_ms(chance.below(40)).await;
        sqlx::query("COMMIT").execute(&mut other).await.expect("the lock is given back");
        if chance.below(3) == 0 {
            // In the way of whoever wants the log to begin anew; it may be busy itself.
            let _ = sqlx::query("PRAGMA wal_checkpoint(RESTART)").execute(&mut other).await;
        }
        held.fetch_add(1, Ordering::SeqCst);
        sleep_ms(chance.below(12)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_busy_at_any_statement_ends_no_run_as_failed() {
    let seed = SystemClock::new().new_id().as_u64_pair().1;
    println!("seed {seed}");
    let folder = tempfile::tempdir().expect("a folder");
    // SQLite does not wait at all, so that the engine is told at whatever statement it is.
    let config = EngineConfig { busy_wait_ms: 0, ..EngineConfig::new(folder.path()) };
    let engine = Engine::open(config, registry(folder.path())).await.expect("it opens");
    let (stop, held) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let outsiders: Vec<_> = (0..2)
        .map(|number| tokio::spawn(get_in_the_way(folder.path().to_owned(), seed ^ number, stop.clone(), held.clone())))
        .collect();
    let clock = SystemClock::new();
    // As long as it takes to be in the way of everything.
    while held.load(Ordering::SeqCst) < 60 {
        assert!(clock.monotonic_us() < 60_000_000, "held {held:?} times in a minute");
        let mut flight = tokio::task::JoinSet::new();
        for number in 0..12 {
            let engine = engine.clone();
            flight.spawn(async move {
                let run = start(&engine, StartRun::new("mixed", json!(number), "jane")).await;
                (number, engine.drive(run).await)
            });
        }
        for number in 0..3 {
            let run = StartRun { detached: true, ..StartRun::new("sum", json!([number, 2]), "jane") };
            start(&engine, run.key("the key", KeyPolicy::Queue)).await;
        }
        engine.drain(3).await.expect("it drains");
        for (number, outcome) in flight.join_all().await {
            assert_eq!(succeeded(outcome.expect("it is driven")), json!(number));
        }
    }
    stop.store(true, Ordering::SeqCst);
    for outsider in outsiders {
        outsider.await.expect("no panic");
    }
    assert!(all_ended(&engine).await);
    for run in engine.reader().runs(&RunFilter::default()).await.expect("the runs read") {
        assert_eq!(run.state, RunState::Succeeded, "{run:?}");
        assert!(detail(&engine, run.run_id).await.steps.iter().all(|step| step.failure.is_none()));
    }
}
