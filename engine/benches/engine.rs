//! How fast the engine is, durable throughout: each acknowledged result is on the disk.
//!
//! A: 1,000 runs of 10 trivial steps, 64 in flight. B: one run of 1,000 steps. C: 10,000 one-step runs, recorded first and
//! then drained. D: a process opens 7,000 runs of 10 steps and is killed in the ninth step of each; timed from opening the
//! engine again until all are done. fan_out: one run with 7,000 children of one step, sixteen at a time. cancel: 200
//! runs whose step waits for a minute, each cancelled in turn: from the call until the step is told, and until the run has
//! ended; and 40 more that are cancelled by another owner, through the database. One JSON line a case, each in a process of
//! its own so that its peak memory is its own. With names of cases as arguments, those only.

#![allow(clippy::expect_used, reason = "a benchmark stops at the first surprise")]

use std::convert::Infallible;
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use engine::{Engine, EngineConfig, EngineContext, Mutation, Outcome, Registry, Start, StartRun, SystemClock};
use engine_rules::activity::ActivityContext;
use engine_rules::clock::Clock as _;
use engine_rules::context::{ChildDef, ChildStart, Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// The runs of case D, how many steps each has, and in which of them its process is killed, from 0.
const OPEN_RUNS: u32 = 7_000;
const OPEN_STEPS: u32 = 10;
const KILLED_IN: u32 = 8;

/// Steps before this one have their result from before and are not timed.
static FIRST_TIMED: AtomicU32 = AtomicU32::new(0);

const STEP: StepDef<u32, u32> = StepDef::new("step", "bench.step", RetryPolicy::LOCAL);

/// How long each step took, in microseconds, as its workflow saw it.
static LATENCIES_US: Mutex<Vec<u64>> = Mutex::new(Vec::new());
static CLOCK: OnceLock<SystemClock> = OnceLock::new();

fn now_us() -> u64 {
    CLOCK.get_or_init(SystemClock::new).monotonic_us()
}

async fn steps<C: Context>(ctx: &mut C, count: u32) -> Result<u32, Interrupt> {
    let mut latencies = Vec::with_capacity(count as usize);
    let mut last = 0;
    for number in 0..count {
        let began = now_us();
        last = ctx.step(&STEP, &number).await?;
        if number >= FIRST_TIMED.load(Ordering::Relaxed) {
            latencies.push(now_us() - began);
        }
    }
    LATENCIES_US.lock().expect("nobody panicked").extend(latencies);
    Ok(last)
}

const CHILDREN: ChildDef<u32, u32> = ChildDef::new("children", "steps");

/// So many children of one step each, sixteen at a time.
async fn fan_out<C: Context>(ctx: &mut C, count: u32) -> Result<usize, Interrupt> {
    let starts = vec![ChildStart::new(1); count as usize];
    Ok(ctx.fan_out(&CHILDREN, &starts, 16).await?.len())
}

const LONG: StepDef<(), ()> = StepDef::new("long", "bench.long", RetryPolicy::LOCAL);

async fn long<C: Context>(ctx: &mut C, _input: ()) -> Result<(), Interrupt> {
    ctx.step(&LONG, &()).await?;
    ctx.step(&STEP, &1).await.map(|_| ())
}

/// When the step of the run at hand began, and when it was told to stop, in microseconds; 0 for not yet.
static BEGUN_US: AtomicU64 = AtomicU64::new(0);
static TOLD_US: AtomicU64 = AtomicU64::new(0);

/// A step that would take a minute.
async fn wait_a_minute(ctx: ActivityContext) {
    let clock = SystemClock::new();
    BEGUN_US.store(now_us().max(1), Ordering::SeqCst);
    tokio::select! {
        () = ctx.cancel.cancelled() => TOLD_US.store(now_us(), Ordering::SeqCst),
        () = clock.sleep_ms(60_000) => {}
    }
}

/// Cancels so many runs by `by`, one after the other: how long until the step was told, and until the run had ended.
async fn cancel_runs(engine: &Engine, by: &Engine, count: u32) -> (Vec<u64>, Vec<u64>) {
    let who = Mutation { actor: "bench".to_owned(), reason: "the bench".to_owned() };
    let (mut told, mut ended) = (Vec::new(), Vec::new());
    for _ in 0..count {
        BEGUN_US.store(0, Ordering::SeqCst);
        let run = StartRun::new("long", json!(null), "bench");
        let Ok(Start::Started(run)) = engine.start(run).await else { unreachable!("it has no key") };
        let driving = tokio::spawn({
            let engine = engine.clone();
            async move { engine.drive(run.run_id).await }
        });
        while BEGUN_US.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let began = now_us();
        by.cancel(run.run_id, &who).await.expect("it is cancelled");
        let outcome = driving.await.expect("no panic").expect("it is driven");
        assert_eq!(outcome, Outcome::Cancelled);
        ended.push(now_us() - began);
        told.push(TOLD_US.load(Ordering::SeqCst).saturating_sub(began));
    }
    told.sort_unstable();
    ended.sort_unstable();
    (told, ended)
}

async fn open(state: &Path) -> Engine {
    let mut registry = Registry::new();
    registry.workflow("fan_out", 1, fan_out::<EngineContext>);
    registry.workflow("long", 1, long::<EngineContext>);
    registry.workflow("steps", 1, steps::<EngineContext>);
    registry.activity("bench.long", |ctx, (): ()| async move {
        wait_a_minute(ctx).await;
        Ok::<_, Infallible>(())
    });
    registry.activity("bench.step", |_ctx, number: u32| async move { Ok::<_, Infallible>(number + 1) });
    Engine::open(EngineConfig::new(state), registry).await.expect("the engine opens")
}

/// Opens the runs of case D, says so, and stays in their steps until it is killed.
async fn open_runs(state: &Path) {
    let stuck = Arc::new(AtomicU32::new(0));
    let mut registry = Registry::new();
    registry.workflow("steps", 1, steps::<EngineContext>);
    let counted = stuck.clone();
    registry.activity("bench.step", move |_ctx, number: u32| {
        let counted = counted.clone();
        async move {
            if number == KILLED_IN {
                counted.fetch_add(1, Ordering::Relaxed);
                std::future::pending::<()>().await;
            }
            Ok::<_, Infallible>(number + 1)
        }
    });
    let engine = Engine::open(EngineConfig::new(state), registry).await.expect("the engine opens");
    for number in 0..OPEN_RUNS {
        let run = start(&engine, OPEN_STEPS, false).await;
        let engine = engine.clone();
        tokio::spawn(async move { engine.drive(run).await });
        while number.saturating_sub(stuck.load(Ordering::Relaxed)) >= 256 {
            tokio::task::yield_now().await;
        }
    }
    while stuck.load(Ordering::Relaxed) < OPEN_RUNS {
        tokio::task::yield_now().await;
    }
    writeln!(std::io::stdout(), "open").expect("stdout is open");
    std::future::pending::<()>().await;
}

/// Has the runs of case D opened by a process, and kills it.
fn leave_runs_open(program: &Path, state: &Path) {
    let mut child =
        Command::new(program).arg(OPENING).arg(state).stdout(Stdio::piped()).spawn().expect("the child starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("it is piped");
    std::io::BufReader::new(stdout).read_line(&mut line).expect("the child tells");
    assert_eq!(line.trim(), "open", "the child died before its runs were open");
    child.kill().expect("it is killed");
    child.wait().expect("it is dead");
}

/// What the process is told that is to be killed.
const OPENING: &str = "D-opening";

async fn start(engine: &Engine, count: u32, detached: bool) -> engine::RunId {
    let run = StartRun { detached, ..StartRun::new("steps", json!(count), "bench") };
    match engine.start(run).await.expect("the run starts") {
        Start::Started(started) => started.run_id,
        Start::Busy { holder } => unreachable!("{holder} has no key"),
    }
}

async fn run_case(case: &str, state: &Path) -> Value {
    let began = now_us();
    let engine = open(state).await;
    // Opening is part of what is timed where it is a restart.
    let began = if case == "D" { began } else { now_us() };
    let (runs, steps, mut extra) = match case {
        "A" => {
            let mut flight = JoinSet::new();
            for number in 0..1_000_u32 {
                if number >= 64 {
                    flight.join_next().await.expect("runs in flight").expect("no panic");
                }
                let engine = engine.clone();
                flight.spawn(async move {
                    let run = start(&engine, 10, false).await;
                    let outcome = engine.drive(run).await.expect("it is driven");
                    assert!(matches!(outcome, Outcome::Succeeded(_)), "{outcome:?}");
                });
            }
            while let Some(joined) = flight.join_next().await {
                joined.expect("no panic");
            }
            (1_000, 10_000, json!({}))
        }
        "B" => {
            let run = start(&engine, 1_000, false).await;
            let outcome = engine.drive(run).await.expect("it is driven");
            assert!(matches!(outcome, Outcome::Succeeded(_)), "{outcome:?}");
            (1, 1_000, json!({}))
        }
        "C" => {
            let mut flight = JoinSet::new();
            for number in 0..10_000_u32 {
                if number >= 64 {
                    flight.join_next().await.expect("runs in flight").expect("no panic");
                }
                let engine = engine.clone();
                flight.spawn(async move {
                    start(&engine, 1, true).await;
                });
            }
            while let Some(joined) = flight.join_next().await {
                joined.expect("no panic");
            }
            let recorded = now_us();
            assert_eq!(engine.drain(64).await.expect("the queue drains"), 10_000);
            let drained_s = seconds(now_us() - recorded);
            (10_000, 10_000, json!({"enqueue_s": seconds(recorded - began), "drain_s": drained_s}))
        }
        "D" => {
            FIRST_TIMED.store(KILLED_IN, Ordering::Relaxed);
            assert_eq!(engine.recover(256).await.expect("they are recovered"), u64::from(OPEN_RUNS));
            (OPEN_RUNS, OPEN_RUNS * (OPEN_STEPS - KILLED_IN), json!({}))
        }
        "fan_out" => {
            let run = StartRun::new("fan_out", json!(7_000), "bench");
            let Ok(Start::Started(run)) = engine.start(run).await else { unreachable!("it has no key") };
            let outcome = engine.drive(run.run_id).await.expect("it is driven");
            assert_eq!(outcome, Outcome::Succeeded(json!(7_000)));
            (7_001, 7_000, json!({}))
        }
        "cancel" => {
            let (told, ended) = cancel_runs(&engine, &engine, 200).await;
            let other = open(state).await;
            let (told_there, ended_there) = cancel_runs(&engine, &other, 40).await;
            other.close().await;
            LATENCIES_US.lock().expect("nobody panicked").extend(told);
            let elsewhere = json!({
                "ended_p50_us": ended[ended.len() / 2],
                "elsewhere_p50_us": told_there[told_there.len() / 2],
                "elsewhere_p99_us": told_there[told_there.len() * 99 / 100],
                "elsewhere_ended_p50_us": ended_there[ended_there.len() / 2],
            });
            (240, 200, elsewhere)
        }
        other => unreachable!("there is no case {other}"),
    };
    let wall_s = seconds(now_us() - began);
    engine.close().await;
    let busy_s = extra["drain_s"].as_f64().unwrap_or(wall_s);
    let mut latencies = std::mem::take(&mut *LATENCIES_US.lock().expect("nobody panicked"));
    latencies.sort_unstable();
    assert_eq!(latencies.len(), steps as usize, "every step was seen");
    let mut report = json!({
        "bench": "engine",
        "case": case,
        "steps_per_s": (f64::from(steps) / busy_s).round(),
        "runs_per_s": (f64::from(runs) / busy_s * 10.0).round() / 10.0,
        "p50_us": latencies[latencies.len() / 2],
        "p99_us": latencies[latencies.len() * 99 / 100],
        "wall_s": wall_s,
        "peak_mb": peak_mb(),
        "fsync_p50_us": fsync_p50_us(state),
    });
    let fields = report.as_object_mut().expect("an object");
    fields.append(extra.as_object_mut().expect("an object"));
    report
}

fn seconds(us: u64) -> f64 {
    (us as f64 / 1_000.0).round() / 1_000.0
}

/// The raw price of a durable write on this disk.
fn fsync_p50_us(folder: &Path) -> u64 {
    let mut file = std::fs::File::create(folder.join("fsync")).expect("a file");
    let mut times: Vec<u64> = (0..200)
        .map(|_| {
            file.write_all(&[7; 4096]).expect("it is written");
            let began = now_us();
            file.sync_data().expect("it is synced");
            now_us() - began
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// The most memory that this process had, where the system tells.
fn peak_mb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kb| kb / 1024)
}

fn main() {
    // `cargo bench` adds arguments of its own.
    let cases: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    if let [one, state] = cases.as_slice()
        && Path::new(state).is_dir()
    {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        if one == OPENING {
            runtime.block_on(open_runs(Path::new(state)));
            return;
        }
        let report = runtime.block_on(run_case(one, Path::new(state)));
        writeln!(std::io::stdout(), "{report}").expect("stdout is open");
        return;
    }
    let cases =
        if cases.is_empty() { ["A", "B", "C", "D", "fan_out", "cancel"].map(str::to_owned).to_vec() } else { cases };
    // Beside the build, where the disk is the one that counts, not in a temporary file system in memory.
    let beside = std::env::current_exe().expect("this program has a path");
    for case in cases {
        let state = tempfile::tempdir_in(beside.parent().expect("a folder")).expect("a folder");
        if case == "D" {
            leave_runs_open(&beside, state.path());
        }
        let status = Command::new(&beside).arg(&case).arg(state.path()).status().expect("the case runs");
        assert!(status.success(), "case {case} failed");
    }
}
