//! Processes that work on a state until they are told to end or are killed: this test binary again.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use engine::{EngineContext, EngineError, KeyPolicy, Reader, Registry, RunFilter, RunId, StartRun, SystemClock};
use engine_rules::clock::Clock as _;
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::crash;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use crate::child::{log, work_registry};
use crate::support::{Broken, QUICK, detail, open, sleep_ms, start, succeeded};

const ORDER: &str = "ENGINE_TEST_WORK";

/// What the process does.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Work {
    /// Starts runs, some of which queue for a key, carries out its own and others', and recovers what dead processes left;
    /// for so long.
    Everything { for_ms: u64 },
    /// Reads in all ways, for so long.
    Read { for_ms: u64 },
    /// Starts this many runs of `held` and carries them out; they wait for the file `go`.
    Hold { runs: u32 },
    /// Starts this many runs of `workflow` that queue for one key, and drains the queue; aborts at the `hit`th meeting of
    /// the point.
    Queue { workflow: String, runs: u32, point: String, hit: u32 },
    /// Recovers and drains everything; aborts at the `hit`th meeting of the point.
    Recover { point: String, hit: u32 },
    /// Carries out one run of `maps`.
    Maps,
}

const HELD: StepDef<(), ()> = StepDef::new("held", "worker.held", QUICK);

/// One step whose body says whose it is and waits for the file `go`.
async fn held<C: Context>(ctx: &mut C, _input: ()) -> Result<(), Interrupt> {
    ctx.step(&HELD, &()).await
}

/// The workflows of the child, `held`, and those of `maps`.
pub fn worker_registry(state: &Path) -> Registry {
    let log = log(state);
    let mut registry = work_registry(&log);
    registry.workflow("held", 1, held::<EngineContext>);
    let go = state.join("go");
    registry.activity("worker.held", move |ctx, (): ()| {
        let (log, go) = (log.clone(), go.clone());
        async move {
            log.add(&ctx.run_id);
            while !go.exists() {
                sleep_ms(10).await;
            }
            Ok::<_, Broken>(())
        }
    });
    crate::upgrade::with_maps(&mut registry);
    registry
}

fn command(state: &Path, work: &Work) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this test has a path"));
    command
        .args(["worker::works", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(ORDER, serde_json::to_string(&(state, work)).expect("an order"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub fn spawn(state: &Path, work: &Work) -> Child {
    command(state, work).spawn().expect("the process starts")
}

/// The process to its end, on a disk on which no file may grow beyond `blocks` of 512 bytes.
pub fn run_on_a_full_disk(state: &Path, work: &Work, blocks: u32) -> std::process::Output {
    let plain = command(state, work);
    let mut shell = Command::new("sh");
    // Without the signal a write that goes too far fails, as on a full disk.
    shell.arg("-c").arg(format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"")).arg(plain.get_program());
    shell.args(plain.get_args());
    for (name, value) in plain.get_envs() {
        shell.env(name, value.expect("only what is set"));
    }
    shell.stdin(Stdio::null()).output().expect("the process runs")
}

/// Waits for the process, asserts that it ended well, and gives what it printed.
pub fn ends_well(child: Child) -> String {
    let output = child.wait_with_output().expect("the process ends");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    assert!(!stderr.contains("locked") && !stderr.contains("busy"), "{stderr}");
    stdout.into_owned()
}

/// Takes over what dead processes left and drains the queue until nothing is left to do, as a daemon does; other processes
/// may do the same. Answers which runs it took over.
pub async fn recover(engine: &engine::Engine) -> Vec<RunId> {
    let mut taken = Vec::new();
    loop {
        let interrupted = engine.interrupted().await.expect("they are listed");
        for run in &interrupted {
            match engine.drive(*run).await {
                Ok(_) => taken.push(*run),
                Err(EngineError::OwnedElsewhere { .. } | EngineError::AlreadyDriven { .. }) => {}
                Err(other) => panic!("{run}: {other:?}"),
            }
        }
        if engine.drain(4).await.expect("it drains") == 0 && interrupted.is_empty() {
            return taken;
        }
    }
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "what other tests run as another process"]
async fn works() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let (state, work): (std::path::PathBuf, Work) = serde_json::from_str(&order).expect("an order");
    match work {
        Work::Everything { for_ms } => {
            let (runs, taken) = everything(&state, for_ms).await;
            println!("\ncarried out {runs}, recovered {taken}");
        }
        Work::Read { for_ms } => println!("\nlooked {}", read(&state, for_ms).await),
        Work::Hold { runs } => {
            let engine = open(&state, worker_registry(&state)).await;
            let mut flight = tokio::task::JoinSet::new();
            for _ in 0..runs {
                let run = start(&engine, StartRun::new("held", json!(null), "worker")).await;
                let engine = engine.clone();
                flight.spawn(async move { succeeded(engine.drive(run).await.expect("it is driven")) });
            }
            flight.join_all().await;
            engine.close().await;
        }
        Work::Queue { workflow, runs, point, hit } => {
            let engine = open(&state, worker_registry(&state)).await;
            abort_at(point, hit);
            for _ in 0..runs {
                let run = StartRun::new(workflow.clone(), json!(null), "worker").key("the key", KeyPolicy::Queue);
                let run = start(&engine, run).await;
                // Only the first begins at once; the others are in the queue.
                if detail(&engine, run).await.run.state != engine_rules::state::RunState::Queued {
                    let engine = engine.clone();
                    tokio::spawn(async move { engine.drive(run).await });
                }
            }
            while engine.drain(4).await.expect("it drains") > 0 || !all_ended(&engine).await {
                sleep_ms(5).await;
            }
            engine.close().await;
        }
        Work::Recover { point, hit } => {
            let engine = open(&state, worker_registry(&state)).await;
            abort_at(point, hit);
            recover(&engine).await;
            engine.close().await;
        }
        Work::Maps => {
            let engine = open(&state, worker_registry(&state)).await;
            let run = start(&engine, StartRun::new("maps", crate::upgrade::map_as_json(), "worker")).await;
            succeeded(engine.drive(run).await.expect("it is driven"));
            engine.close().await;
        }
    }
}

pub async fn all_ended(engine: &engine::Engine) -> bool {
    let runs = engine.reader().runs(&RunFilter::default()).await.expect("the runs read");
    runs.iter().all(|run| run.state.is_terminal())
}

async fn everything(state: &Path, for_ms: u64) -> (u32, usize) {
    let engine = open(state, worker_registry(state)).await;
    let clock = SystemClock::new();
    let (mut number, mut taken) = (0_u32, 0);
    while clock.monotonic_us() < for_ms * 1_000 {
        let mut flight = tokio::task::JoinSet::new();
        for _ in 0..4 {
            number += 1;
            let input = json!([number, 2]);
            let expected = json!((number + 2) * 2);
            let run = start(&engine, StartRun::new("sum", input, "worker")).await;
            let engine = engine.clone();
            flight.spawn(async move {
                assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), expected);
            });
        }
        // These meet those of other processes; whoever drains takes them.
        let queued = StartRun { detached: true, ..StartRun::new("sum", json!([1, 2]), "worker") };
        start(&engine, queued.key(format!("key {}", number % 3), KeyPolicy::Queue)).await;
        flight.join_all().await;
        taken += recover(&engine).await.len();
    }
    engine.close().await;
    (number, taken)
}

async fn read(state: &Path, for_ms: u64) -> u32 {
    let clock = Arc::new(SystemClock::new());
    crate::support::until("there is a state", || state.join("state.db").exists()).await;
    let mut looks = 0;
    while clock.monotonic_us() < for_ms * 1_000 {
        // Each look as a command of its own would.
        let reader = match Reader::open(state, clock.clone()).await {
            Ok(reader) => reader,
            // The first worker is about to bring the schema up.
            Err(EngineError::NoState { .. }) if looks == 0 => continue,
            Err(other) => panic!("{other}"),
        };
        let product = BTreeMap::from([("product".to_owned(), "none".to_owned())]);
        let none = RunFilter { labels: product, ..RunFilter::default() };
        assert_eq!(reader.runs(&none).await.expect("the runs read"), []);
        let newest = RunFilter { limit: Some(5), ..RunFilter::default() };
        for run in reader.runs(&newest).await.expect("the runs read") {
            let found = reader.find(&run.run_id.to_string()).await.expect("it is found");
            assert_eq!(reader.run(found).await.expect("the run reads").run.run_id, run.run_id);
        }
        looks += 1;
        sleep_ms(5).await;
    }
    looks
}
