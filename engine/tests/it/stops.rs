//! A person ends or holds a run: what its workflow still does.

use engine::{Engine, EngineContext, EngineError, KeyPolicy, Outcome, Registry, RunId, Start, StartRun};
use engine_rules::activity::ActivityContext;
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::failure::Disposition;
use engine_rules::retry::RetryPolicy;
use engine_rules::state::RunState;
use serde_json::json;

use crate::child::{Order, aborts, log, work_registry};
use crate::support::{Broken, QUICK, detail, jane, open, registry, sleep_ms, start, succeeded, until};

const LONG: StepDef<(), ()> = StepDef::new("long", "test.long", QUICK);
const TIDY: StepDef<(), ()> = StepDef::new("tidy", "test.tidy", QUICK);
const SLOWLY: RetryPolicy =
    RetryPolicy { first_delay_ms: 60_000, factor: 1.0, cap_ms: 60_000, attempts: 3, jitter_percent: 0 };
const REFUSED: StepDef<(), ()> = StepDef::new("refused", "test.refused", SLOWLY);
const STUCK: StepDef<(), ()> = StepDef::new("stuck", "test.stuck", QUICK);

/// A step, after which a cancel is cleaned up.
async fn tidies<C: Context>(ctx: &mut C, which: String) -> Result<(), Interrupt> {
    let step = match which.as_str() {
        "long" => &LONG,
        "refused" => &REFUSED,
        _ => &STUCK,
    };
    match ctx.step(step, &()).await {
        Err(Interrupt::Cancelled) => {
            ctx.step(&TIDY, &()).await?;
            Err(Interrupt::Cancelled)
        }
        other => other,
    }
}

fn tidy_registry(folder: &std::path::Path) -> Registry {
    let mut registry = registry();
    registry.workflow("tidies", 1, tidies::<EngineContext>);
    let (long, tidy) = (log(folder), log(folder));
    registry.activity("test.long", move |ctx: ActivityContext, (): ()| {
        let log = long.clone();
        async move {
            log.add("long");
            tokio::select! {
                () = ctx.cancel.cancelled() => {
                    log.add("the body cleans up");
                    Err(Broken("stopped", Disposition::Retry))
                }
                () = sleep_ms(60_000) => Ok(()),
            }
        }
    });
    registry.activity("test.refused", |_ctx, (): ()| async { Err::<(), _>(Broken("later", Disposition::Retry)) });
    registry.activity("test.stuck", |_ctx, (): ()| async { Err::<(), _>(Broken("a person", Disposition::Operator)) });
    registry.activity("test.tidy", move |ctx: ActivityContext, (): ()| {
        let log = tidy.clone();
        async move {
            assert!(!ctx.cancel.is_cancelled(), "a cancel does not stop what cleans up after it");
            log.add("tidy");
            Ok::<_, Broken>(())
        }
    });
    registry
}

fn driving(engine: &Engine, run: RunId) -> tokio::task::JoinHandle<Result<Outcome, EngineError>> {
    let engine = engine.clone();
    tokio::spawn(async move { engine.drive(run).await })
}

async fn ends_as(driving: tokio::task::JoinHandle<Result<Outcome, EngineError>>, outcome: Outcome) {
    assert_eq!(driving.await.expect("no panic").expect("it is driven"), outcome);
}

async fn until_state(engine: &Engine, run: RunId, state: RunState) {
    for _ in 0..500 {
        if detail(engine, run).await.run.state == state {
            return;
        }
        sleep_ms(10).await;
    }
    panic!("it is not {state}: {:?}", detail(engine, run).await.run);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_reaches_a_sixty_second_step_at_once_and_its_clean_up_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), tidy_registry(folder.path())).await;
    let run = start(&engine, StartRun::new("tidies", json!("long"), "jane")).await;
    let drives = driving(&engine, run);
    let log = log(folder.path());
    until("the body runs", || log.count("long") == 1).await;
    engine.cancel(run, &jane()).await.expect("it is cancelled");
    ends_as(drives, Outcome::Cancelled).await;
    assert_eq!(log.lines(), ["long", "the body cleans up", "tidy"]);
    let seen = detail(&engine, run).await;
    assert_eq!(seen.run.failure, None, "the clean-up went well");
    let states: Vec<_> = seen.steps.iter().map(|step| (step.label.as_str(), step.state.as_str())).collect();
    assert_eq!(states, [("long", "failed"), ("tidy", "succeeded")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_or_waiting_run_that_is_cancelled_cleans_up_and_gives_its_key_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), tidy_registry(folder.path())).await;
    for (which, state) in [("stuck", RunState::Blocked), ("refused", RunState::Waiting)] {
        let new = || StartRun::new("tidies", json!(which), "jane").key("the key", KeyPolicy::Forbid);
        let run = start(&engine, new()).await;
        let drives = driving(&engine, run);
        until_state(&engine, run, state).await;
        assert!(matches!(engine.start(new()).await.expect("it is answered"), Start::Busy { .. }));
        engine.cancel(run, &jane()).await.expect("it is cancelled");
        let _ = drives.await.expect("no panic").expect("it is driven");
        assert_eq!(detail(&engine, run).await.run.state, RunState::Cancelled, "{which}");
        let next = start(&engine, new()).await;
        engine.cancel(next, &jane()).await.expect("it is cancelled");
    }
    // A run that never began leaves nothing to tidy but is told of the cancel all the same.
    assert_eq!(log(folder.path()).count("tidy"), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_a_person_ends_does_not_wait_for_a_person() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut registry = tidy_registry(folder.path());
    registry.activity("test.tidy", |_ctx, (): ()| async { Err::<(), _>(Broken("it sticks", Disposition::Operator)) });
    let engine = open(folder.path(), registry).await;
    let run = start(&engine, StartRun::new("tidies", json!("stuck"), "jane")).await;
    engine.drive(run).await.expect("it is driven");
    engine.cancel(run, &jane()).await.expect("it is cancelled");
    let seen = detail(&engine, run).await;
    assert_eq!(seen.run.state, RunState::Cancelled);
    let failure = seen.run.failure.expect("what stuck is kept");
    assert_eq!((failure.message.as_str(), seen.run.failed_step.as_deref()), ("it sticks", Some("tidy")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_whose_program_is_gone_ends_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), tidy_registry(folder.path())).await;
    let run = start(&engine, StartRun::new("tidies", json!("stuck"), "jane")).await;
    engine.drive(run).await.expect("it is driven");
    let other = open(folder.path(), registry()).await;
    other.cancel(run, &jane()).await.expect("it is cancelled");
    let seen = detail(&other, run).await;
    assert_eq!(seen.run.state, RunState::Cancelled);
    assert_eq!(seen.run.failure.expect("no clean-up").code, "engine.definition_missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_in_the_clean_up_leaves_it_to_the_next() {
    let folder = tempfile::tempdir().expect("a folder");
    for point in ["engine.result.before", "engine.result.after", "engine.run_end.before"] {
        let state = folder.path().join(point);
        let order = Order::Cancel { point: point.to_owned() };
        aborts(&state, &order);
        let engine = open(&state, work_registry(&log(&state))).await;
        let [run] = engine.interrupted().await.expect("they are listed")[..] else { panic!("{point}") };
        assert_eq!(engine.drive(run).await.expect("it is driven"), Outcome::Cancelled, "{point}");
        let seen = detail(&engine, run).await;
        let states: Vec<_> = seen.steps.iter().map(|step| (step.label.as_str(), step.state.as_str())).collect();
        assert_eq!(states, [("first", "succeeded"), ("stuck", "failed"), ("third", "succeeded")], "{point}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_stops_before_its_next_step_and_goes_on_with_what_is_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), work_registry(&log(folder.path()))).await;
    let other = open(folder.path(), registry()).await;
    let run = start(&engine, StartRun::new("slow_then", json!(null), "jane")).await;
    let drives = driving(&engine, run);
    let log = log(folder.path());
    until("the first step runs", || log.count("slow") == 1).await;
    other.pause(run, &jane()).await.expect("it is paused");
    other.pause(run, &jane()).await.expect("a repeat is safe");
    ends_as(drives, Outcome::Paused).await;
    assert_eq!(log.lines(), ["slow"], "the step at work came to its end, and nothing after it");
    let error = engine.drive(run).await.expect_err("a person holds it");
    assert!(matches!(error, EngineError::WrongState { state: RunState::Paused, .. }), "{error:?}");
    engine.resume(run, &jane()).await.expect("it is resumed");
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!([1, 2]));
    assert_eq!(log.lines(), ["slow", "second"]);
    let actions: Vec<_> = detail(&engine, run).await.audit.into_iter().map(|row| row.action).collect();
    assert_eq!(actions, ["pause", "pause", "resume"]);
    let error = engine.pause(run, &jane()).await.expect_err("it ended");
    assert!(matches!(error, EngineError::WrongState { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_run_is_paused_at_once_and_not_taken_over() {
    let folder = tempfile::tempdir().expect("a folder");
    aborts(folder.path(), &Order::Run { workflow: "work".to_owned(), point: "test.second".to_owned(), hit: 1 });
    let engine = open(folder.path(), work_registry(&log(folder.path()))).await;
    let run = engine.interrupted().await.expect("they are listed")[0];
    engine.pause(run, &jane()).await.expect("it is paused");
    assert_eq!(engine.interrupted().await.expect("they are listed"), []);
    engine.resume(run, &jane()).await.expect("it is resumed");
    succeeded(engine.drive(run).await.expect("it is driven"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_blocks_before_it_hears_of_a_cancel_does_not_stay_blocked() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut registry = tidy_registry(folder.path());
    let state = folder.path().to_owned();
    // The cancel is in the journal just before the body asks for a person, and no process has had the time to look.
    registry.activity("test.stuck", move |_ctx, (): ()| {
        let state = state.clone();
        async move {
            sqlx::query("UPDATE run SET cancel_requested_at_ms = 1 WHERE ended_at_ms IS NULL")
                .execute(&mut crate::support::outsider(&state).await)
                .await
                .expect("it is told");
            Err::<(), _>(Broken("a person", Disposition::Operator))
        }
    });
    let engine = open(folder.path(), registry).await;
    let run = start(&engine, StartRun::new("tidies", json!("stuck"), "jane")).await;
    assert_eq!(engine.drive(run).await.expect("it is driven"), Outcome::Cancelled);
    assert_eq!(detail(&engine, run).await.run.state, RunState::Cancelled);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_put_back_into_the_queue_goes_on_as_one_that_a_person_resumed() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), tidy_registry(folder.path())).await;
    let run = start(&engine, StartRun::new("tidies", json!("stuck"), "jane")).await;
    let blocked = |outcome| assert!(matches!(outcome, Outcome::Blocked { .. }), "{outcome:?}");
    blocked(engine.drive(run).await.expect("it is driven"));
    for attempt in 2..=5 {
        engine.requeue(run, &jane()).await.expect("it is queued");
        assert_eq!(detail(&engine, run).await.run.state, RunState::Queued);
        blocked(engine.drive(run).await.expect("it is driven"));
        assert_eq!(detail(&engine, run).await.steps[0].attempt, attempt, "a person grants new attempts");
    }
}
