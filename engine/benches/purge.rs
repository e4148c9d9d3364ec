//! How long a purge takes, and how long others wait for it meanwhile.
//!
//! Finished one-step runs, 1,000,000 or as many as the first argument says, are purged while this process starts and
//! carries out runs and another connection, as another process would, writes as well. One JSON line.

#![allow(clippy::expect_used, reason = "a benchmark stops at the first surprise")]

use std::convert::Infallible;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Engine, EngineConfig, EngineContext, Mutation, PurgePlan, Registry, Start, StartRun, SystemClock};
use engine_rules::clock::Clock as _;
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retention::Cutoff;
use engine_rules::retry::RetryPolicy;
use serde_json::json;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tokio::task::JoinHandle;

const RUNS: u32 = 1_000_000;

/// The seeded runs ended one a millisecond from here.
const OLD_MS: i64 = 1_700_000_000_000;

/// How long the load runs without a purge, in milliseconds.
const ALONE_MS: u64 = 5_000;

const STEP: StepDef<u32, u32> = StepDef::new("step", "bench.step", RetryPolicy::LOCAL);

async fn one<C: Context>(ctx: &mut C, input: u32) -> Result<u32, Interrupt> {
    ctx.step(&STEP, &input).await
}

async fn open(state: &Path) -> Engine {
    let mut registry = Registry::new();
    registry.workflow("one", 1, one::<EngineContext>);
    registry.activity("bench.step", |_ctx, number: u32| async move { Ok::<_, Infallible>(number + 1) });
    Engine::open(EngineConfig::new(state), registry).await.expect("the engine opens")
}

async fn connect(state: &Path, synchronous: SqliteSynchronous) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(state.join("state.db")).synchronous(synchronous);
    options.connect().await.expect("the database opens")
}

async fn seed(state: &Path, runs: u32) {
    let mut db = connect(state, SqliteSynchronous::Off).await;
    for sql in [
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $1) \
         INSERT INTO run (run_id, workflow, version, state, input, input_digest, output, labels, concurrency_policy, \
         actor, owner_no, epoch, created_at_ms, started_at_ms, ended_at_ms) \
         SELECT printf('00000000-0000-7000-8000-%012x', i), 'one', 1, 'succeeded', '1', \
         '6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b', '2', '{\"product\":\"14100287\"}', 'forbid', \
         'bench', 1, 1, $2 + i, $2 + i, $2 + i FROM n",
        "INSERT INTO step (run_no, top, iteration, sub, kind, name, activity, state, input_digest, input, output, attempt, \
         forgiven, epoch, first_started_at_ms, started_at_ms, ended_at_ms, duration_us) \
         SELECT run_no, 1, 1, 0, 'activity', 'step', 'bench.step', 'succeeded', input_digest, '1', '2', 1, 0, 1, \
         started_at_ms, started_at_ms, ended_at_ms, 10 FROM run WHERE $1 > 0 AND $2 > 0",
    ] {
        sqlx::query(sql).bind(runs).bind(OLD_MS).execute(&mut db).await.expect("rows");
    }
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut db).await.expect("it is cut back");
    db.close().await.expect("it closes");
}

/// The longest wait in microseconds, and how many writes there were.
type Waited = (u64, u64);

/// Starts runs and carries them out, through the writer that the purge uses.
async fn start_runs(engine: Engine, clock: Arc<SystemClock>, stop: Arc<AtomicBool>) -> Waited {
    let (mut longest_us, mut writes) = (0, 0);
    while !stop.load(Ordering::SeqCst) {
        let begun_us = clock.monotonic_us();
        let start = engine.start(StartRun::new("one", json!(1), "bench")).await.expect("it starts");
        longest_us = longest_us.max(clock.monotonic_us() - begun_us);
        let Start::Started(run) = start else { unreachable!("it has no key") };
        engine.drive(run.run_id).await.expect("it is driven");
        writes += 1;
    }
    (longest_us, writes)
}

/// Writes as another process would.
async fn write_past(state: std::path::PathBuf, clock: Arc<SystemClock>, stop: Arc<AtomicBool>) -> Waited {
    let mut db = connect(&state, SqliteSynchronous::Full).await;
    let (mut longest_us, mut writes) = (0, 0);
    while !stop.load(Ordering::SeqCst) {
        let begun_us = clock.monotonic_us();
        for sql in ["BEGIN IMMEDIATE", "UPDATE owner SET host = host", "COMMIT"] {
            sqlx::query(sql).execute(&mut db).await.expect("it writes");
        }
        longest_us = longest_us.max(clock.monotonic_us() - begun_us);
        writes += 1;
        clock.sleep_ms(10).await;
    }
    (longest_us, writes)
}

/// Both of them.
struct Load {
    stop: Arc<AtomicBool>,
    starts: JoinHandle<Waited>,
    past: JoinHandle<Waited>,
}

impl Load {
    fn begin(state: &Path, engine: &Engine, clock: &Arc<SystemClock>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let starts = tokio::spawn(start_runs(engine.clone(), clock.clone(), stop.clone()));
        let past = tokio::spawn(write_past(state.to_owned(), clock.clone(), stop.clone()));
        Self { stop, starts, past }
    }

    async fn end(self) -> (Waited, Waited) {
        self.stop.store(true, Ordering::SeqCst);
        (self.starts.await.expect("no panic"), self.past.await.expect("no panic"))
    }
}

async fn bench(state: &Path, runs: u32) -> serde_json::Value {
    let clock = Arc::new(SystemClock::new());
    let engine = open(state).await;
    let begun_us = clock.monotonic_us();
    seed(state, runs).await;
    let seeded_us = clock.monotonic_us() - begun_us;
    // What the two wait for each other without a purge.
    let load = Load::begin(state, &engine, &clock);
    clock.sleep_ms(ALONE_MS).await;
    let (alone_start, alone_past) = load.end().await;
    let load = Load::begin(state, &engine, &clock);
    let ended_before_ms = OLD_MS + i64::from(runs);
    let by = Mutation { actor: "bench".to_owned(), reason: "the bench".to_owned() };
    let plan = PurgePlan::new(Cutoff { ended_before_ms, failed_ended_before_ms: None }, by);
    let begun_us = clock.monotonic_us();
    let report = engine.purge(plan).await.expect("it is purged");
    let wall_us = clock.monotonic_us() - begun_us;
    let ((start_us, started), (past_us, written)) = load.end().await;
    assert_eq!((report.runs, report.finished), (u64::from(runs), true));
    engine.close().await;
    let ms = |us: u64| us as f64 / 1_000.0;
    json!({
        "bench": "engine",
        "case": "purge",
        "runs": report.runs,
        "steps": report.steps,
        "seed_s": (ms(seeded_us) / 100.0).round() / 10.0,
        "wall_s": (ms(wall_us) / 100.0).round() / 10.0,
        "runs_per_s": (report.runs as f64 / ms(wall_us) * 1_000.0).round(),
        "transactions": report.transactions,
        "longest_transaction_ms": ms(report.longest_transaction_us).round(),
        "longest_writer_wait_ms": ms(start_us).round(),
        "longest_other_process_wait_ms": ms(past_us).round(),
        "longest_writer_wait_without_ms": ms(alone_start.0).round(),
        "longest_other_process_wait_without_ms": ms(alone_past.0).round(),
        "runs_started_meanwhile": started,
        "writes_of_other_process": written,
        "file_mb": std::fs::metadata(state.join("state.db")).map(|file| file.len() >> 20).ok(),
        "wal_mb": std::fs::metadata(state.join("state.db-wal")).map(|file| file.len() >> 20).ok(),
        "peak_mb": peak_mb(),
    })
}

/// The most memory that this process had, where the system tells.
fn peak_mb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kb| kb / 1024)
}

fn main() {
    // `cargo bench` adds arguments of its own.
    let runs = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(RUNS);
    // Beside the build, where the disk is the one that counts, not in a temporary file system in memory.
    let beside = std::env::current_exe().expect("this program has a path");
    let state = tempfile::tempdir_in(beside.parent().expect("a folder")).expect("a folder");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let report = runtime.block_on(bench(state.path(), runs));
    writeln!(std::io::stdout(), "{report}").expect("stdout is open");
}
