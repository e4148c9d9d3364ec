//! Another process, which is this test binary again and does what its environment says.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use engine::{EngineContext, KeyPolicy, PurgePlan, Registry, ReplayFrom, Start, StartRun};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::crash;
use engine_rules::failure::Disposition;
use engine_rules::retention::Cutoff;
use engine_rules::retry::RetryPolicy;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{Broken, Log, QUICK, open, registry, start};

const ORDER: &str = "ENGINE_TEST_ORDER";

/// What the child does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Order {
    /// Starts a run of this workflow and drives it, and aborts at the `hit`th meeting of the point.
    Run { workflow: String, point: String, hit: u32 },
    /// Resumes the one interrupted run and drives it, and aborts at the `hit`th meeting of the point.
    Resume { point: String, hit: u32 },
    /// Replays the one run from this step and drives the replay, and aborts at the `hit`th meeting of the point.
    Replay { step: String, point: String, hit: u32 },
    /// Starts so many runs of the workflow `held`, has each at its second step, says so, and stays until it is killed.
    Leave { runs: u32 },
    /// Recovers what is interrupted, and aborts at the `hit`th meeting of the point.
    Recover { in_flight: usize, point: String, hit: u32 },
    /// Carries out a run until it is blocked, then cancels it, and aborts at the point.
    Cancel { point: String },
    /// Waits for the file `go`, then starts a run with the key `the key`, and prints what came of it.
    Race,
    /// Waits for the file `go`, then opens the engine and carries out a run.
    Open,
    /// Starts this many runs and carries them out, eight at once.
    Many { runs: u32 },
    /// Fires the schedules that are due, and aborts at the `hit`th meeting of the point.
    Fire { point: String, hit: u32 },
    /// Purges what ended before.
    Purge { ended_before_ms: i64 },
}

fn command(state: &Path, order: &Order) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this test has a path"));
    command
        .args(["child::obeys", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(ORDER, serde_json::to_string(&(state, order)).expect("an order"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub fn spawn(state: &Path, order: &Order) -> Child {
    command(state, order).spawn().expect("the child starts")
}

/// Runs the child to its end.
pub fn run(state: &Path, order: &Order) -> Output {
    command(state, order).output().expect("the child runs")
}

/// Has a child leave so many runs open at their second step, and kills it.
pub fn leave(state: &Path, runs: u32) {
    use std::io::BufRead as _;
    let mut child = spawn(state, &Order::Leave { runs });
    let stdout = std::io::BufReader::new(child.stdout.take().expect("it is piped"));
    let told = stdout.lines().map_while(Result::ok).any(|line| line == "open");
    child.kill().expect("it is killed");
    let status = child.wait().expect("it is dead");
    assert!(told && status.signal() == Some(9), "the child ended before its runs were open: {status}");
}

/// Runs the child and asserts that it aborted, which it does only at its point.
pub fn aborts(state: &Path, order: &Order) {
    let output = run(state, order);
    assert_eq!(
        output.status.signal(),
        Some(6),
        "{order:?} was not reached: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

pub fn log(state: &Path) -> Log {
    Log(state.join("log"))
}

const FIRST: StepDef<(), usize> = StepDef::new("first", "work.first", QUICK);
const SECOND: StepDef<usize, usize> = StepDef::new("second", "work.second", QUICK);
const THIRD: StepDef<usize, usize> = StepDef::new("third", "work.third", QUICK);
const ONCE: StepDef<(), usize> = StepDef::new("once", "work.first", RetryPolicy::NEVER);
const REFUSED: StepDef<(), usize> = StepDef::new("refused", "work.refused", QUICK);
const HELD: StepDef<usize, usize> = StepDef::new("held", "work.held", QUICK);
const SLOWER: StepDef<(), usize> = StepDef::new("slow", "work.slower", QUICK);
const STUCK: StepDef<(), ()> = StepDef::new("stuck", "work.stuck", QUICK);
const SLOW: StepDef<(), usize> = StepDef::new("slow", "work.slow", QUICK);

/// Three steps, each of which gives how many bodies ran before it: another number whenever it runs again.
pub async fn work<C: Context>(ctx: &mut C, _input: ()) -> Result<Vec<usize>, Interrupt> {
    let first = ctx.step(&FIRST, &()).await?;
    let second = ctx.step(&SECOND, &first).await?;
    let third = ctx.step(&THIRD, &second).await?;
    Ok(vec![first, second, third])
}

/// The same within a section, with an id and a time before it.
pub async fn locked<C: Context>(ctx: &mut C, _input: ()) -> Result<(u32, Vec<usize>), Interrupt> {
    let id = ctx.new_id().await?;
    let now = ctx.now_ms().await?;
    assert!(now > 0 && !id.is_nil());
    let iteration = ctx.begin_section("locked").await?;
    let first = ctx.step(&FIRST, &()).await?;
    let second = ctx.step(&SECOND, &first).await?;
    ctx.end_section().await?;
    let third = ctx.step(&THIRD, &second).await?;
    Ok((iteration, vec![first, second, third]))
}

/// One step that is never tried twice.
pub async fn once<C: Context>(ctx: &mut C, _input: ()) -> Result<usize, Interrupt> {
    ctx.step(&ONCE, &()).await
}

/// A refusal that the workflow answers with its code, then a slow step.
pub async fn refused<C: Context>(ctx: &mut C, _input: ()) -> Result<String, Interrupt> {
    let refusal = match ctx.step(&REFUSED, &()).await {
        Ok(_) => "no refusal".to_owned(),
        Err(Interrupt::Failed(failure)) => serde_json::to_string(&failure).expect("a failure is JSON"),
        Err(interrupt) => return Err(interrupt),
    };
    ctx.step(&SLOW, &()).await?;
    Ok(refusal)
}

/// A step, one in which the first process stays until it is killed, and one more.
pub async fn held<C: Context>(ctx: &mut C, _input: ()) -> Result<Vec<usize>, Interrupt> {
    let first = ctx.step(&FIRST, &()).await?;
    let held = ctx.step(&HELD, &first).await?;
    let third = ctx.step(&THIRD, &held).await?;
    Ok(vec![first, held, third])
}

/// A step, a wait, a signal or none, a step.
pub async fn waits<C: Context>(ctx: &mut C, _input: ()) -> Result<(usize, Option<u32>, usize), Interrupt> {
    let first = ctx.step(&FIRST, &()).await?;
    let begun_at_ms = ctx.now_ms().await?;
    ctx.sleep_until("a_while", begun_at_ms + 100).await?;
    let word = ctx.signal("word", Some(begun_at_ms + 200)).await?;
    let second = ctx.step(&SECOND, &first).await?;
    Ok((first, word, second))
}

/// A step, one that blocks, and where the run is cancelled there, one that cleans up.
pub async fn stuck<C: Context>(ctx: &mut C, _input: ()) -> Result<(), Interrupt> {
    let first = ctx.step(&FIRST, &()).await?;
    match ctx.step(&STUCK, &()).await {
        Err(Interrupt::Cancelled) => ctx.step(&THIRD, &first).await.map(|_| ()),
        other => other,
    }
}

/// A slow step and another.
pub async fn slow_then<C: Context>(ctx: &mut C, _input: ()) -> Result<(usize, usize), Interrupt> {
    let slow = ctx.step(&SLOWER, &()).await?;
    Ok((slow, ctx.step(&SECOND, &slow).await?))
}

/// One slow step.
pub async fn slow<C: Context>(ctx: &mut C, _input: ()) -> Result<usize, Interrupt> {
    ctx.step(&SLOW, &()).await
}

pub fn work_registry(log: &Log) -> Registry {
    let mut registry = registry();
    registry.workflow("work", 1, work::<EngineContext>);
    registry.workflow("locked", 1, locked::<EngineContext>);
    registry.workflow("once", 1, once::<EngineContext>);
    registry.workflow("refused", 1, refused::<EngineContext>);
    registry.workflow("held", 1, held::<EngineContext>);
    registry.workflow("slow", 1, slow::<EngineContext>);
    registry.workflow("stuck", 1, stuck::<EngineContext>);
    registry.workflow("slow_then", 1, slow_then::<EngineContext>);
    registry.activity("work.stuck", |_ctx, (): ()| async { Err::<(), _>(Broken("a person", Disposition::Operator)) });
    registry.workflow("waits", 1, waits::<EngineContext>);
    crate::children::add_to(&mut registry, log);
    for name in ["first", "second", "third"] {
        let log = log.clone();
        let body = move || {
            log.add(name);
            let ran = log.lines().len();
            crash::point(&format!("test.{name}"));
            Ok::<_, Broken>(ran)
        };
        let activity = format!("work.{name}");
        match name {
            "first" => registry.blocking_activity(&activity, move |_ctx, (): ()| body()),
            _ => registry.blocking_activity(&activity, move |_ctx, _: usize| body()),
        };
    }
    let held = log.clone();
    registry.activity("work.held", move |ctx, first: usize| {
        let log = held.clone();
        async move {
            log.add("held");
            log.add(&format!("{} held", ctx.run_id));
            if ctx.attempt == 1 {
                std::future::pending::<()>().await;
            }
            Ok::<_, Broken>(first)
        }
    });
    registry.activity("work.refused", |_ctx, (): ()| async {
        Err::<usize, _>(Broken("no: \"é\" is not a key", Disposition::Terminal))
    });
    let slower = log.clone();
    registry.activity("work.slower", move |_ctx, (): ()| {
        let log = slower.clone();
        async move {
            log.add("slow");
            crate::support::sleep_ms(1_000).await;
            Ok::<_, Broken>(log.lines().len())
        }
    });
    let log = log.clone();
    registry.activity("work.slow", move |_ctx, (): ()| {
        let log = log.clone();
        async move {
            log.add("slow");
            crate::support::sleep_ms(60).await;
            crash::point("test.slow");
            Ok::<_, Broken>(log.lines().len())
        }
    });
    registry
}

static CRASH_AT: OnceLock<(String, u32)> = OnceLock::new();
static MET: AtomicU32 = AtomicU32::new(0);

fn abort_at(point: String, hit: u32) {
    CRASH_AT.set((point, hit)).expect("one order a process");
    crash::install(|name| {
        if CRASH_AT.get().is_some_and(|(point, hit)| name == point && MET.fetch_add(1, Ordering::SeqCst) + 1 == *hit) {
            std::process::abort();
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "what other tests run as another process"]
async fn obeys() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let (state, order): (std::path::PathBuf, Order) = serde_json::from_str(&order).expect("an order");
    let log = log(&state);
    match order {
        Order::Run { workflow, point, hit } => {
            let engine = open(&state, work_registry(&log)).await;
            abort_at(point, hit);
            let run = start(&engine, StartRun::new(workflow, json!(null), "child")).await;
            let outcome = engine.drive(run).await.expect("it is driven");
            panic!("{outcome:?} without meeting the point");
        }
        Order::Resume { point, hit } => {
            let engine = open(&state, work_registry(&log)).await;
            abort_at(point, hit);
            let runs = engine.interrupted().await.expect("they are listed");
            engine.take_over(runs[0]).await.expect("it is taken over");
            let outcome = engine.drive(runs[0]).await.expect("it is driven");
            panic!("{outcome:?} without meeting the point");
        }
        Order::Replay { step, point, hit } => {
            let engine = open(&state, work_registry(&log)).await;
            let runs = engine.reader().runs(&Default::default()).await.expect("the runs read");
            abort_at(point, hit);
            let from = ReplayFrom { step, input: None, detached: false };
            match engine.replay(runs[0].run_id, &from, &crate::support::jane()).await.expect("it is replayed") {
                Start::Started(started) => {
                    let outcome = engine.drive(started.run_id).await.expect("it is driven");
                    panic!("{outcome:?} without meeting the point");
                }
                Start::Busy { holder } => panic!("{holder} holds the key"),
            }
        }
        Order::Leave { runs } => {
            let engine = open(&state, work_registry(&log)).await;
            for _ in 0..runs {
                let run = start(&engine, StartRun::new("held", json!(null), "child")).await;
                let engine = engine.clone();
                tokio::spawn(async move { engine.drive(run).await });
            }
            while log.count("held") < runs as usize {
                crate::support::sleep_ms(5).await;
            }
            println!("\nopen");
            std::future::pending::<()>().await;
        }
        Order::Recover { in_flight, point, hit } => {
            let engine = open(&state, work_registry(&log)).await;
            abort_at(point, hit);
            let runs = engine.recover(in_flight).await.expect("they are recovered");
            panic!("{runs} runs without meeting the point");
        }

        Order::Cancel { point } => {
            let engine = open(&state, work_registry(&log)).await;
            let run = start(&engine, StartRun::new("stuck", json!(null), "child")).await;
            crate::support::blocked(engine.drive(run).await.expect("it is driven"));
            abort_at(point, 1);
            engine.cancel(run, &crate::support::jane()).await.expect("it is cancelled");
            panic!("it was cancelled without meeting the point");
        }
        Order::Fire { point, hit } => {
            let engine = open(&state, registry()).await;
            abort_at(point, hit);
            let fired = engine.fire_due_schedules().await.expect("the ticks are decided");
            panic!("{fired:?} without meeting the point");
        }
        Order::Race => {
            let engine = open(&state, registry()).await;
            log.add("ready");
            crate::support::until("the signal", || state.join("go").exists()).await;
            let run = StartRun::new("sum", json!([1, 2]), "child").key("the key", KeyPolicy::Forbid);
            match engine.start(run).await.expect("it is answered") {
                Start::Started(started) => println!("\nstarted {}", started.run_id),
                Start::Busy { holder } => println!("\nbusy {holder}"),
            }
        }
        Order::Open => {
            log.add("ready");
            crate::support::until("the signal", || state.join("go").exists()).await;
            let engine = open(&state, registry()).await;
            let run = start(&engine, StartRun::new("sum", json!([1, 2]), "child")).await;
            assert_eq!(crate::support::succeeded(engine.drive(run).await.expect("it is driven")), json!(6));
            engine.close().await;
        }
        Order::Purge { ended_before_ms } => {
            let engine = open(&state, registry()).await;
            let cutoff = Cutoff { ended_before_ms, failed_ended_before_ms: None };
            engine.purge(PurgePlan::new(cutoff, crate::support::jane())).await.expect("it is purged");
        }
        Order::Many { runs } => {
            let engine = open(&state, registry()).await;
            let mut flight = tokio::task::JoinSet::new();
            for number in 0..runs {
                if number >= 8 {
                    flight.join_next().await.expect("a run").expect("no panic");
                }
                let engine = engine.clone();
                flight.spawn(async move {
                    let run = start(&engine, StartRun::new("sum", json!([number, 2]), "child")).await;
                    let sum = crate::support::succeeded(engine.drive(run).await.expect("it is driven"));
                    assert_eq!(sum, json!((number + 2) * 2));
                });
            }
            while let Some(joined) = flight.join_next().await {
                joined.expect("no panic");
            }
            engine.close().await;
        }
    }
}
