//! A person ends a run.

use engine::{EngineContext, EngineError, KeyPolicy, Outcome, Start, StartRun, SystemClock};
use engine_rules::clock::Clock as _;
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::failure::Disposition;
use engine_rules::state::RunState;
use serde_json::json;

use crate::child::{Order, aborts, log, work_registry};
use crate::support::{Broken, QUICK, detail, jane, open, registry, start};

const WAITS: StepDef<(), ()> = StepDef::new("waits", "test.waits", QUICK);

async fn waits<C: Context>(ctx: &mut C, in_section: bool) -> Result<(), Interrupt> {
    if in_section {
        ctx.begin_section("locked").await?;
    }
    ctx.step(&WAITS, &()).await?;
    if in_section {
        ctx.end_section().await?;
    }
    ctx.step(&WAITS, &()).await
}

/// An activity that waits for its token, at most so long.
async fn waiting_engine(folder: &std::path::Path, at_most_ms: u64) -> engine::Engine {
    let mut registry = registry();
    registry.workflow("waits", 1, waits::<EngineContext>);
    let log = log(folder);
    registry.blocking_activity("test.waits", move |ctx, (): ()| {
        log.add("waits");
        let clock = SystemClock::new();
        while clock.monotonic_us() < at_most_ms * 1_000 {
            if ctx.cancel.is_cancelled() {
                return Err(Broken("stopped", Disposition::Retry));
            }
            std::thread::yield_now();
        }
        Ok(())
    });
    open(folder, registry).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_reaches_a_long_step_within_a_second() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = waiting_engine(folder.path(), 60_000).await;
    // From this process, and from another one.
    for elsewhere in [false, true] {
        let run = start(&engine, StartRun::new("waits", json!(false), "jane")).await;
        let driving = tokio::spawn({
            let engine = engine.clone();
            async move { engine.drive(run).await }
        });
        let log = log(folder.path());
        let bodies = if elsewhere { 2 } else { 1 };
        crate::support::until("the body runs", || log.count("waits") == bodies).await;
        let clock = SystemClock::new();
        if elsewhere {
            let other = open(folder.path(), registry()).await;
            other.cancel(run, &jane()).await.expect("it is cancelled");
        } else {
            engine.cancel(run, &jane()).await.expect("it is cancelled");
        }
        assert_eq!(driving.await.expect("no panic").expect("it is driven"), Outcome::Cancelled);
        let took_us = clock.monotonic_us();
        assert!(took_us < 1_000_000, "{took_us} µs");
        let seen = detail(&engine, run).await;
        assert_eq!(seen.run.state, RunState::Cancelled);
        assert_eq!(seen.audit[0].action, "cancel");
        let outcomes: Vec<_> = seen.steps[0].attempts.iter().map(|attempt| attempt.outcome.as_str()).collect();
        assert_eq!(outcomes, ["cancelled"]);
        assert!(engine.cancel(run, &jane()).await.is_err(), "it ended, and that never changes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_waits_for_the_end_of_a_section() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = waiting_engine(folder.path(), 300).await;
    let run = start(&engine, StartRun::new("waits", json!(true), "jane")).await;
    let driving = tokio::spawn({
        let engine = engine.clone();
        async move { engine.drive(run).await }
    });
    let log = log(folder.path());
    crate::support::until("the body runs", || log.count("waits") == 1).await;
    engine.cancel(run, &jane()).await.expect("it is cancelled");
    assert_eq!(driving.await.expect("no panic").expect("it is driven"), Outcome::Cancelled);
    let labels: Vec<_> =
        detail(&engine, run).await.steps.into_iter().map(|step| (step.label, step.state.as_str())).collect();
    let whole = ["locked#1 section", "locked.waits", "locked#1 section_end"].map(|label| (label, "succeeded"));
    let expected: Vec<_> = whole.into_iter().chain([("waits", "failed")]).collect();
    let labels: Vec<_> = labels.iter().map(|(label, state)| (label.as_str(), *state)).collect();
    assert_eq!(labels, expected, "the section is whole, and what comes after it is told of the cancel");
    assert_eq!(log.count("waits"), 1, "nothing ran after the section");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_nobody_works_on_is_cancelled_at_once_and_gives_its_key_back() {
    let folder = tempfile::tempdir().expect("a folder");
    aborts(folder.path(), &Order::Run { workflow: "work".to_owned(), point: "test.second".to_owned(), hit: 1 });
    let engine = open(folder.path(), work_registry(&log(folder.path()))).await;
    let dead = engine.interrupted().await.expect("they are listed")[0];
    engine.cancel(dead, &jane()).await.expect("it is cancelled");
    assert_eq!(engine.drive(dead).await.expect("it ended"), Outcome::Cancelled);

    let with_key = || StartRun::new("sum", json!([1, 2]), "jane").key("the key", KeyPolicy::Forbid);
    let unbegun = start(&engine, with_key()).await;
    assert_eq!(engine.start(with_key()).await.expect("it is answered"), Start::Busy { holder: unbegun });
    engine.cancel(unbegun, &jane()).await.expect("it is cancelled");
    assert_eq!(engine.drive(unbegun).await.expect("it ended"), Outcome::Cancelled);
    let next = start(&engine, with_key()).await;
    let error = engine.resume(unbegun, &jane()).await.expect_err("it ended");
    assert!(matches!(error, EngineError::WrongState { state: RunState::Cancelled, .. }), "{error:?}");
    engine.cancel(next, &jane()).await.expect("it is cancelled");
}
