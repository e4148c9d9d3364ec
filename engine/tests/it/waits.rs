//! Runs that wait for a time or a signal.

use engine::{Engine, EngineContext, EngineError, Outcome, Registry, RunId, StartRun, WAIT_CRASH_POINTS};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::limits::PAYLOAD_LIMIT_BYTES;
use engine_rules::state::RunState;
use serde_json::json;

use crate::child::{Order, aborts, log, work_registry};
use crate::support::{
    Broken, QUICK, blocked, detail, jane, open, outsider, registry, sleep_ms, start, succeeded, until,
};

const NOTE: StepDef<String, usize> = StepDef::new("note", "test.note", QUICK);

async fn sleeper<C: Context>(ctx: &mut C, until_at_ms: i64) -> Result<usize, Interrupt> {
    ctx.step(&NOTE, &"before".to_owned()).await?;
    ctx.sleep_until("wait_until_due", until_at_ms).await?;
    ctx.step(&NOTE, &"after".to_owned()).await
}

async fn listener<C: Context>(ctx: &mut C, deadline_at_ms: Option<i64>) -> Result<Vec<Option<u32>>, Interrupt> {
    let mut words = Vec::new();
    for _ in 0..3 {
        words.push(ctx.signal("word", deadline_at_ms).await?);
    }
    Ok(words)
}

fn waiting_registry(folder: &std::path::Path) -> Registry {
    let mut registry = registry();
    registry.workflow("sleeper", 1, sleeper::<EngineContext>);
    registry.workflow("listener", 1, listener::<EngineContext>);
    let log = log(folder);
    registry.activity("test.note", move |_ctx, line: String| {
        let log = log.clone();
        async move {
            log.add(&line);
            Ok::<_, Broken>(log.lines().len())
        }
    });
    registry
}

fn driving(engine: &Engine, run: RunId) -> tokio::task::JoinHandle<Result<Outcome, EngineError>> {
    let engine = engine.clone();
    tokio::spawn(async move { engine.drive(run).await })
}

async fn until_waiting(engine: &Engine, run: RunId) {
    for _ in 0..500 {
        if detail(engine, run).await.run.state == RunState::Waiting {
            return;
        }
        sleep_ms(10).await;
    }
    panic!("it does not wait: {:?}", detail(engine, run).await.run);
}

fn now_ms() -> i64 {
    use engine_rules::clock::Clock as _;
    engine::SystemClock::new().now_ms()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_waits_until_its_time_and_is_seen_to_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), waiting_registry(folder.path())).await;
    let due_at_ms = now_ms() + 400;
    let run = start(&engine, StartRun::new("sleeper", json!(due_at_ms), "jane")).await;
    let drives = driving(&engine, run);
    until_waiting(&engine, run).await;
    let seen = detail(&engine, run).await;
    assert_eq!(seen.run.wake_at_ms, Some(due_at_ms));
    assert_eq!((seen.steps[1].kind.as_str(), seen.steps[1].label.as_str()), ("sleep", "wait_until_due"));
    assert_eq!(succeeded(drives.await.expect("no panic").expect("it is driven")), json!(2));
    assert!(now_ms() >= due_at_ms);
    let seen = detail(&engine, run).await;
    assert_eq!((seen.run.state, seen.run.wake_at_ms), (RunState::Succeeded, None));
    // A time that has passed is not waited for.
    let run = start(&engine, StartRun::new("sleeper", json!(due_at_ms), "jane")).await;
    succeeded(engine.drive(run).await.expect("it is driven"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_at_any_point_of_a_wait_leaves_a_run_that_waits_on() {
    for point in WAIT_CRASH_POINTS {
        for hit in 1..=2 {
            let folder = tempfile::tempdir().expect("a folder");
            aborts(folder.path(), &Order::Run { workflow: "waits".to_owned(), point: (*point).to_owned(), hit });
            let log = log(folder.path());
            let engine = open(folder.path(), work_registry(&log)).await;
            let [run] = engine.interrupted().await.expect("they are listed")[..] else { panic!("{point} {hit}") };
            let output = succeeded(engine.drive(run).await.expect("it is driven"));
            assert_eq!(output, json!([1, null, 2]), "{point} {hit}");
            assert_eq!(log.lines(), ["first", "second"], "{point} {hit}: a wait that died charges no attempt");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_signal_is_taken_once_in_the_order_in_which_it_was_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), waiting_registry(folder.path())).await;
    let other = open(folder.path(), registry()).await;
    let run = start(&engine, StartRun::new("listener", json!(null), "jane")).await;
    // Before anybody waits for it, and one that nobody waits for.
    engine.signal(run, "word", &json!(1), &jane()).await.expect("it is sent");
    engine.signal(run, "other", &json!("nobody's"), &jane()).await.expect("it is sent");
    let drives = driving(&engine, run);
    until_waiting(&engine, run).await;
    engine.signal(run, "word", &json!(2), &jane()).await.expect("it is sent");
    // From another process.
    other.signal(run, "word", &json!(3), &jane()).await.expect("it is sent");
    assert_eq!(succeeded(drives.await.expect("no panic").expect("it is driven")), json!([1, 2, 3]));
    let late = engine.signal(run, "word", &json!(4), &jane()).await.expect_err("it ended");
    assert!(matches!(late, EngineError::WrongState { state: RunState::Succeeded, .. }), "{late:?}");
    let actions: Vec<_> = detail(&engine, run).await.audit.into_iter().map(|row| row.action).collect();
    assert_eq!(actions, ["signal"; 4]);
    let taken: Vec<(String, Option<String>)> =
        sqlx::query_as("SELECT payload, taken_by FROM signal ORDER BY signal_no")
            .fetch_all(&mut outsider(folder.path()).await)
            .await
            .expect("the table reads");
    let taken: Vec<_> = taken.iter().map(|(payload, by)| (payload.as_str(), by.as_deref())).collect();
    assert_eq!(taken, [("1", Some("1")), ("\"nobody's\"", None), ("2", Some("2")), ("3", Some("3"))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_is_waited_for_until_its_deadline() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), waiting_registry(folder.path())).await;
    let run = start(&engine, StartRun::new("listener", json!(now_ms() + 100), "jane")).await;
    engine.signal(run, "word", &json!(7), &jane()).await.expect("it is sent");
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!([7, null, null]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_does_not_fit_blocks_and_one_over_the_limit_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), waiting_registry(folder.path())).await;
    let run = start(&engine, StartRun::new("listener", json!(null), "jane")).await;
    let long = "x".repeat(PAYLOAD_LIMIT_BYTES);
    let error = engine.signal(run, "word", &json!(long), &jane()).await.expect_err("it is too long");
    assert!(matches!(error, EngineError::PayloadTooLarge { .. }), "{error:?}");
    engine.signal(run, "word", &json!("seven"), &jane()).await.expect("it is sent");
    let failure = blocked(engine.drive(run).await.expect("it is driven"));
    assert_eq!(failure.code, "engine.output_unreadable");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_run_is_cancelled_and_paused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), waiting_registry(folder.path())).await;
    let other = open(folder.path(), registry()).await;
    let far = now_ms() + 3_600_000;
    for (workflow, input) in [("sleeper", json!(far)), ("listener", json!(null))] {
        let run = start(&engine, StartRun::new(workflow, input.clone(), "jane")).await;
        let drives = driving(&engine, run);
        until_waiting(&engine, run).await;
        other.pause(run, &jane()).await.expect("it is paused");
        assert_eq!(drives.await.expect("no panic").expect("it is driven"), Outcome::Paused);
        assert_eq!(detail(&engine, run).await.run.state, RunState::Paused);
        engine.resume(run, &jane()).await.expect("it is resumed");
        let drives = driving(&engine, run);
        until_waiting(&engine, run).await;
        engine.cancel(run, &jane()).await.expect("it is cancelled");
        assert_eq!(drives.await.expect("no panic").expect("it is driven"), Outcome::Cancelled);
        let seen = detail(&engine, run).await;
        assert_eq!(
            seen.steps.last().and_then(|step| step.failure.clone()).map(|it| it.code),
            Some("engine.cancelled".into())
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_process_gives_its_runs_back_and_no_attempt_is_charged() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), waiting_registry(folder.path())).await;
    let due_at_ms = now_ms() + 1_000;
    let run = start(&engine, StartRun::new("sleeper", json!(due_at_ms), "jane")).await;
    let drives = driving(&engine, run);
    until_waiting(&engine, run).await;
    engine.begin_drain();
    assert_eq!(drives.await.expect("no panic").expect("it is driven"), Outcome::Released);
    // While the first process still lives.
    let next = open(folder.path(), waiting_registry(folder.path())).await;
    assert_eq!(next.interrupted().await.expect("they are listed"), [run]);
    assert_eq!(succeeded(next.drive(run).await.expect("it is driven")), json!(2));
    assert_eq!(log(folder.path()).lines(), ["before", "after"]);
    let seen = detail(&next, run).await;
    assert!(seen.steps.iter().all(|step| step.attempt == 1), "no attempt was charged");
    let after = start(&engine, StartRun::new("sleeper", json!(0), "jane")).await;
    assert_eq!(engine.drive(after).await.expect("it is driven"), Outcome::Released, "what comes later goes back too");
    until("nothing is lost", || log(folder.path()).lines().len() == 2).await;
    succeeded(next.drive(after).await.expect("it is driven"));
}
