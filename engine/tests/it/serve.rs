//! The daemon's loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use engine::{
    Engine, EngineContext, EngineError, KeyPolicy, Periodic, RunFilter, RunId, RunRow, ServeOptions, ServeReport,
    StartRun,
};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::failure::Disposition;
use engine_rules::state::RunState;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::child::{Order, leave, log, spawn, work_registry};
use crate::support::{Broken, Log, QUICK, detail, jane, open, outsider, sleep_ms, start, until};

/// A daemon in this process, and how it is told to end.
struct Daemon {
    engine: Engine,
    end: oneshot::Sender<()>,
    serving: JoinHandle<Result<ServeReport, EngineError>>,
}

impl Daemon {
    fn begin(engine: &Engine, options: ServeOptions) -> Self {
        let (end, ended) = oneshot::channel::<()>();
        let served = engine.clone();
        let shutdown = async {
            let _ = ended.await;
        };
        let serving = tokio::spawn(async move { served.serve(options, shutdown).await });
        Self { engine: engine.clone(), end, serving }
    }

    async fn end(self) -> ServeReport {
        self.end.send(()).expect("it serves");
        self.serving.await.expect("no panic").expect("it served")
    }

    /// Waits until all of the runs are in one of the states.
    async fn until(&self, what: &str, runs: &[RunId], states: &[RunState]) {
        for _ in 0..1_000 {
            let all = list(&self.engine).await;
            if runs.iter().all(|run| all.iter().any(|row| row.run_id == *run && states.contains(&row.state))) {
                return;
            }
            sleep_ms(10).await;
        }
        panic!("ten seconds passed, and not yet: {what}: {:?}", list(&self.engine).await);
    }
}

async fn list(engine: &Engine) -> Vec<RunRow> {
    engine.reader().runs(&RunFilter::default()).await.expect("the runs read")
}

fn quick(in_flight: usize) -> ServeOptions {
    ServeOptions { look_ms: 50, grace_ms: 10_000, ..ServeOptions::new(in_flight) }
}

fn detached(workflow: &str) -> StartRun {
    StartRun { detached: true, ..StartRun::new(workflow, json!(null), "jane") }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_with_concurrency_one_is_carried_out_in_its_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let daemon = Daemon::begin(&engine, quick(1));
    let mut runs = Vec::new();
    for number in 0..12 {
        let key = format!("key {}", number % 3);
        runs.push(start(&engine, detached("work").key(key, KeyPolicy::Queue)).await);
    }
    daemon.until("all have ended", &runs, &[RunState::Succeeded]).await;
    let report = daemon.end().await;
    assert_eq!((report.taken, report.succeeded, report.left), (12, 12, 0), "{report:?}");
    let mut began: Vec<_> = list(&engine).await.into_iter().map(|run| (run.started_at_ms, run.run_id)).collect();
    began.sort();
    assert_eq!(began.into_iter().map(|(_, run)| run).collect::<Vec<_>>(), runs, "oldest first");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runs_of_a_process_that_dies_go_on_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let daemon = Daemon::begin(&engine, ServeOptions::new(4));
    let mut child = spawn(folder.path(), &Order::Leave { runs: 6 });
    until("the other process is at work", || log.count("held") == 6).await;
    let runs: Vec<_> = list(&engine).await.into_iter().map(|run| run.run_id).collect();
    sleep_ms(1_000).await;
    assert_eq!((log.count("held"), log.count("third")), (6, 0), "it lives, so it is left alone");
    child.kill().expect("it is killed");
    child.wait().expect("it is dead");
    for _ in 0..300 {
        if log.count("third") == 6 {
            break;
        }
        sleep_ms(10).await;
    }
    assert_eq!(log.count("third"), 6, "three seconds passed");
    daemon.until("all have ended", &runs, &[RunState::Succeeded]).await;
    let report = daemon.end().await;
    assert_eq!((report.taken, report.taken_over, report.succeeded), (0, 6, 6), "{report:?}");
    assert_eq!((log.count("first"), log.count("held")), (6, 12));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_daemons_share_a_queue_and_what_is_interrupted() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    leave(folder.path(), 20);
    let (one, two) = (open(folder.path(), work_registry(&log)).await, open(folder.path(), work_registry(&log)).await);
    let mut runs: Vec<_> = list(&one).await.into_iter().map(|run| run.run_id).collect();
    let daemons = [Daemon::begin(&one, quick(2)), Daemon::begin(&two, quick(2))];
    for _ in 0..20 {
        runs.push(start(&one, detached("work")).await);
    }
    daemons[0].until("all have ended", &runs, &[RunState::Succeeded]).await;
    let mut taken = 0;
    for daemon in daemons {
        let report = daemon.end().await;
        taken += report.taken + report.taken_over;
        assert_eq!(report.taken + report.taken_over, report.succeeded, "{report:?}");
    }
    assert_eq!(taken, 40);
    assert_eq!((log.count("first"), log.count("held"), log.count("third")), (40, 40, 40));
}

const ODD: StepDef<String, ()> = StepDef::new("odd", "test.odd", QUICK);

/// A workflow that does what its input says.
async fn odd<C: Context>(ctx: &mut C, input: String) -> Result<(), Interrupt> {
    assert_ne!(input, "the workflow panics");
    ctx.step(&ODD, &input).await
}

fn odd_registry(log: &Log) -> engine::Registry {
    let mut registry = work_registry(log);
    registry.workflow("odd", 1, odd::<EngineContext>);
    let log = log.clone();
    registry.activity("test.odd", move |ctx, input: String| {
        let log = log.clone();
        async move {
            log.add(&input);
            match input.as_str() {
                "the body panics" => panic!("as it was told"),
                "waits for its cancel" => {
                    while !ctx.cancel.is_cancelled() {
                        sleep_ms(5).await;
                    }
                    Err(Broken("stopped", Disposition::Retry))
                }
                "fails" => Err(Broken("it failed", Disposition::Terminal)),
                _ => Ok(()),
            }
        }
    });
    registry
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_holder_a_cancelled_run_and_a_panic_give_their_slot_and_their_key_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    // The holder of the key dies with its process.
    let mut child = spawn(folder.path(), &Order::Leave { runs: 1 });
    until("the other process is at work", || log.count("held") == 1).await;
    let mut other = outsider(folder.path()).await;
    sqlx::query("UPDATE run SET concurrency_key = 'the key'").execute(&mut other).await.expect("it holds the key");
    let engine = open(folder.path(), odd_registry(&log)).await;
    let holder = list(&engine).await[0].run_id;
    let daemon = Daemon::begin(&engine, quick(1));
    let odd = |input: &str, key: &str| StartRun {
        detached: true,
        ..StartRun::new("odd", json!(input), "jane").key(key, KeyPolicy::Queue)
    };
    let waiting = start(&engine, odd("ends", "the key")).await;
    sleep_ms(300).await;
    assert_eq!(log.count("ends"), 0, "the key is held");
    child.kill().expect("it is killed");
    child.wait().expect("it is dead");
    daemon.until("the holder, then who waited", &[holder, waiting], &[RunState::Succeeded]).await;

    // One slot: each of these would stop the daemon for good if it kept it.
    for (round, input) in ["the body panics", "the workflow panics", "fails", "waits for its cancel"].iter().enumerate()
    {
        let run = start(&engine, odd(input, &format!("key {round}"))).await;
        if *input == "waits for its cancel" {
            until("it waits", || log.count(input) == 1).await;
            let next = start(&engine, odd("ends", &format!("key {round}"))).await;
            sleep_ms(200).await;
            assert_eq!(log.count("ends"), 2 * round + 1, "it has the only slot");
            engine.cancel(run, &jane()).await.expect("it is cancelled");
            daemon.until(input, &[run], &[RunState::Cancelled]).await;
            daemon.until("the next has its key", &[next], &[RunState::Succeeded]).await;
            continue;
        }
        daemon.until(input, &[run], &[RunState::Blocked, RunState::Failed]).await;
        if list(&engine).await.iter().any(|row| row.run_id == run && row.state == RunState::Blocked) {
            // A blocked run keeps its key until a person ends it, and never a slot.
            let other = start(&engine, odd("ends", "another key")).await;
            daemon.until("another runs", &[other], &[RunState::Succeeded]).await;
            engine.cancel(run, &jane()).await.expect("it is cancelled");
        } else {
            let other = start(&engine, odd("ends", "another key")).await;
            daemon.until("another runs", &[other], &[RunState::Succeeded]).await;
        }
        let next = start(&engine, odd("ends", &format!("key {round}"))).await;
        daemon.until("the next has its key", &[next], &[RunState::Succeeded]).await;
    }
    let report = daemon.end().await;
    let ended = (report.blocked, report.failed, report.cancelled, report.left);
    assert_eq!(ended, (2, 1, 1, 0), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_fails_for_a_while_is_waited_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let daemon = Daemon::begin(&engine, quick(2));
    let mut other = outsider(folder.path()).await;
    for fault in [
        // Runs cannot be taken; results cannot be recorded; ends cannot.
        "CREATE TRIGGER fault BEFORE UPDATE OF owner_no ON run BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
        "CREATE TRIGGER fault BEFORE INSERT ON step WHEN NEW.name = 'second' BEGIN SELECT RAISE(ABORT, 'full'); END",
        "CREATE TRIGGER fault BEFORE UPDATE OF output ON run BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
    ] {
        let before = log.count("third");
        sqlx::query(fault).execute(&mut other).await.expect("the fault is there");
        let runs = [start(&engine, detached("work")).await, start(&engine, detached("work")).await];
        sleep_ms(400).await;
        assert!(!daemon.serving.is_finished(), "{fault}");
        assert!(list(&engine).await.iter().all(|run| !runs.contains(&run.run_id) || !run.state.is_terminal()));
        sqlx::query("DROP TRIGGER fault").execute(&mut other).await.expect("the fault is gone");
        daemon.until(fault, &runs, &[RunState::Succeeded]).await;
        // A body may run again whose result was lost, and none whose result is recorded.
        assert_eq!(log.count("first"), before + 2, "{fault}");
    }
    // Held for a while by another process.
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.expect("the lock is free");
    let starting = {
        let engine = engine.clone();
        tokio::spawn(async move { start(&engine, detached("work")).await })
    };
    sleep_ms(1_500).await;
    sqlx::query("COMMIT").execute(&mut other).await.expect("the lock is given back");
    let run = starting.await.expect("no panic");
    daemon.until("the run behind the lock", &[run], &[RunState::Succeeded]).await;
    let report = daemon.end().await;
    assert_eq!((report.succeeded, report.failed, report.blocked), (7, 0, 0), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_over_and_over_goes_on_after_errors_and_panics() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    // Each call leaves a run in the queue; the second fails and the third panics after it.
    let periodic = Periodic::new("starts runs", 20, move |engine| {
        let calls = counted.clone();
        async move {
            let call = calls.fetch_add(1, Ordering::SeqCst);
            if call < 6 {
                start(&engine, detached("work")).await;
            }
            match call {
                1 => Err(EngineError::Closed),
                2 => panic!("as it was told"),
                _ => Ok(Some(0)),
            }
        }
    });
    let slow = Periodic::new("takes for ever", 1, |_engine| std::future::pending());
    let daemon = Daemon::begin(&engine, ServeOptions { grace_ms: 300, ..quick(2) }.every(periodic).every(slow));
    until("it was called again and again", || calls.load(Ordering::SeqCst) > 8 && log.count("third") == 6).await;
    let report = daemon.end().await;
    assert_eq!((report.taken, report.succeeded), (6, 6), "{report:?}");
    let calls_at_end = calls.load(Ordering::SeqCst);
    sleep_ms(100).await;
    assert_eq!(calls.load(Ordering::SeqCst), calls_at_end, "nothing goes on after its end");
    assert_eq!(detail(&engine, list(&engine).await[0].run_id).await.steps.len(), 3);
}

/// A step; a wait for the time that the input names, or none; a step.
async fn patient<C: Context>(ctx: &mut C, input: (String, i64)) -> Result<(), Interrupt> {
    let (name, until_at_ms) = input;
    ctx.step(&ODD, &format!("{name} begins")).await?;
    if until_at_ms > 0 {
        ctx.sleep_until("a_time", until_at_ms).await?;
    }
    ctx.step(&ODD, &format!("{name} ends")).await
}

fn patient_registry(log: &Log) -> engine::Registry {
    let mut registry = odd_registry(log);
    registry.workflow("patient", 1, patient::<EngineContext>);
    registry
}

fn waits(name: &str, until_at_ms: i64) -> StartRun {
    StartRun { detached: true, ..StartRun::new("patient", json!([name, until_at_ms]), "jane") }
}

const FAR_AT_MS: i64 = 7_258_118_400_000;

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_wait_take_no_slot_from_one_that_wants_to_run() {
    many_wait(500).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nightly_seven_thousand_runs_that_wait_take_no_slot_from_one_that_wants_to_run() {
    many_wait(7_000).await;
}

async fn many_wait(count: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), patient_registry(&log)).await;
    let daemon = Daemon::begin(&engine, ServeOptions { grace_ms: 60_000, ..quick(2) });
    for _ in 0..count {
        start(&engine, waits("many", FAR_AT_MS)).await;
    }
    let waiting = || async {
        let filter = RunFilter { states: vec![RunState::Waiting], ..RunFilter::default() };
        engine.reader().runs(&filter).await.expect("the runs read").len()
    };
    let mut looks = 0;
    while waiting().await < count {
        looks += 1;
        assert!(looks < 1_200, "a minute passed, and {} wait", waiting().await);
        sleep_ms(50).await;
    }
    let run = start(&engine, waits("one", 0)).await;
    daemon.until("the one that wants to run", &[run], &[RunState::Succeeded]).await;
    // At the end they are given back, and another process goes on with them, charging no attempt.
    let report = daemon.end().await;
    assert_eq!((report.taken, report.given_back, report.left), (count as u64 + 1, count as u64, 0), "{report:?}");
    assert_eq!(engine.interrupted().await.expect("they are listed").len(), count);
    assert_eq!(log.count("many begins"), count);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_wake_at_once_are_at_work_one_after_the_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut registry = work_registry(&log);
    registry.workflow("patient", 1, patient::<EngineContext>);
    let counters = (now.clone(), most.clone());
    registry.activity("test.odd", move |_ctx, _input: String| {
        let (now, most) = counters.clone();
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            sleep_ms(10).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, Broken>(())
        }
    });
    let engine = open(folder.path(), registry).await;
    let daemon = Daemon::begin(&engine, quick(2));
    use engine_rules::clock::Clock as _;
    let due_at_ms = engine::SystemClock::new().now_ms() + 1_500;
    let mut runs = Vec::new();
    for number in 0..20 {
        runs.push(start(&engine, waits(&number.to_string(), due_at_ms)).await);
    }
    daemon.until("all have ended", &runs, &[RunState::Succeeded]).await;
    assert_eq!(most.load(Ordering::SeqCst), 2, "as many at once as there are slots");
    assert_eq!(daemon.end().await.succeeded, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_told_to_end_lets_steps_at_work_end_and_gives_the_runs_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let daemon = Daemon::begin(&engine, quick(4));
    let mut runs = Vec::new();
    for _ in 0..8 {
        runs.push(start(&engine, detached("slow_then")).await);
    }
    until("four are at work", || log.count("slow") == 4).await;
    let report = daemon.end().await;
    assert_eq!((report.taken, report.given_back, report.succeeded, report.left), (4, 4, 0, 0), "{report:?}");
    assert_eq!(log.count("second"), 0);
    for run in &runs[..4] {
        let detail = detail(&engine, *run).await;
        assert_eq!((detail.run.state, detail.run.owner.is_none()), (RunState::Running, true));
        assert_eq!(detail.steps[0].state.as_str(), "succeeded", "the step at work ended and is recorded");
    }
    // The next daemon finishes them, and no step runs again.
    let next = open(folder.path(), work_registry(&log)).await;
    let daemon = Daemon::begin(&next, quick(4));
    daemon.until("all have ended", &runs, &[RunState::Succeeded]).await;
    let report = daemon.end().await;
    assert_eq!((report.taken, report.taken_over), (4, 4), "{report:?}");
    assert_eq!((log.count("slow"), log.count("second")), (8, 8));
    for run in &runs {
        assert!(detail(&next, *run).await.steps.iter().all(|step| step.attempt == 1), "nothing was charged");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_outlasts_the_grace_is_left_and_the_daemon_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let daemon = Daemon::begin(&engine, ServeOptions { grace_ms: 100, ..quick(4) });
    let run = start(&engine, detached("held")).await;
    until("it is at work", || log.count("held") == 1).await;
    let report = daemon.end().await;
    assert_eq!((report.left, report.given_back), (1, 0), "{report:?}");
    assert_eq!(engine.interrupted().await.expect("they are listed"), [], "its body is still at work here");
    let next = open(folder.path(), work_registry(&log)).await;
    assert!(matches!(next.take_over(run).await, Err(EngineError::OwnedElsewhere { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_run_that_is_put_into_the_queue_goes_on_in_whichever_process_comes() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), odd_registry(&log)).await;
    let run = start(&engine, StartRun::new("stuck", json!(null), "jane").key("the key", KeyPolicy::Queue)).await;
    crate::support::blocked(engine.drive(run).await.expect("it is driven"));
    engine.requeue(run, &jane()).await.expect("it is in the queue");
    let seen = detail(&engine, run).await;
    assert_eq!((seen.run.state, seen.run.owner.is_none(), &seen.run.failure), (RunState::Queued, true, &None));
    assert_eq!(seen.audit.iter().map(|row| row.action.as_str()).collect::<Vec<_>>(), ["resume"]);
    let again = engine.requeue(run, &jane()).await.expect_err("it is there already");
    assert!(matches!(again, EngineError::WrongState { state: RunState::Queued, .. }), "{again:?}");
    let other = open(folder.path(), odd_registry(&log)).await;
    let daemon = Daemon::begin(&other, quick(1));
    daemon.until("it is blocked again", &[run], &[RunState::Blocked]).await;
    let seen = detail(&engine, run).await;
    let attempts: Vec<_> = seen.steps[1].attempts.iter().map(|attempt| attempt.attempt).collect();
    assert_eq!(attempts, [1, 2], "the recorded step did not run again, and a new attempt was granted");
    assert_eq!(log.count("first"), 1);
    daemon.end().await;
}
