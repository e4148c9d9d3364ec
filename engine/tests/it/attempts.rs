//! Attempts are counted, whatever ends them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use engine::{EngineContext, Outcome, StartRun};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::failure::{Disposition, Failure};
use engine_rules::state::StepState;
use serde_json::json;

use crate::child::{Order, aborts, log, work_registry};
use crate::support::{Broken, QUICK, blocked, detail, jane, open, registry, start, succeeded};

const SHAKY: StepDef<u32, u32> = StepDef::new("shaky", "test.shaky", QUICK);

async fn shaky<C: Context>(ctx: &mut C, fails: u32) -> Result<u32, Interrupt> {
    ctx.step(&SHAKY, &fails).await
}

/// An engine whose one activity fails as often as its input says, and then gives its attempt.
async fn shaky_engine(folder: &std::path::Path, disposition: Disposition) -> engine::Engine {
    let mut registry = registry();
    registry.workflow("shaky", 1, shaky::<EngineContext>);
    let calls = Arc::new(AtomicU32::new(0));
    registry.activity("test.shaky", move |ctx, fails: u32| {
        let calls = calls.clone();
        async move {
            match calls.fetch_add(1, Ordering::SeqCst) < fails {
                true => Err(Broken("the disk is away", disposition)),
                false => Ok(ctx.attempt),
            }
        }
    });
    open(folder, registry).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_tried_again_as_its_policy_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = shaky_engine(folder.path(), Disposition::Retry).await;
    let run = start(&engine, StartRun::new("shaky", json!(2), "jane")).await;
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(3));
    let detail = detail(&engine, run).await;
    let attempts: Vec<_> = detail.steps[0].attempts.iter().map(|a| (a.attempt, a.outcome.as_str())).collect();
    assert_eq!(attempts, [(1, "failed"), (2, "failed"), (3, "succeeded")]);
    assert_eq!(detail.steps[0].attempts[0].failure.as_ref().map(|f| f.message.as_str()), Some("the disk is away"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_fails_with_its_last_failure_when_its_attempts_are_used_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = shaky_engine(folder.path(), Disposition::Retry).await;
    let run = start(&engine, StartRun::new("shaky", json!(9), "jane")).await;
    let outcome = engine.drive(run).await.expect("it is driven");
    let Outcome::Failed { failure, step } = outcome else { panic!("{outcome:?}") };
    assert_eq!((failure.code.as_str(), step.as_deref()), ("test.broken", Some("shaky")));
    let detail = detail(&engine, run).await;
    assert_eq!(detail.run.failure, Some(failure));
    assert_eq!(detail.steps[0].attempts.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_failure_is_not_tried_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = shaky_engine(folder.path(), Disposition::Terminal).await;
    let run = start(&engine, StartRun::new("shaky", json!(1), "jane")).await;
    assert!(matches!(engine.drive(run).await.expect("it is driven"), Outcome::Failed { .. }));
    assert_eq!(detail(&engine, run).await.steps[0].attempts.len(), 1);
}

/// An attempt of three that crashed leaves two: whether its start was recorded (slow) or not (first).
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_crashed_is_charged() {
    for (workflow, point, label, recorded) in
        [("slow", "test.slow", "slow", true), ("work", "test.first", "first", false)]
    {
        let folder = tempfile::tempdir().expect("a folder");
        aborts(folder.path(), &Order::Run { workflow: workflow.to_owned(), point: point.to_owned(), hit: 1 });
        aborts(folder.path(), &Order::Resume { point: point.to_owned(), hit: 1 });
        let log = log(folder.path());
        let engine = open(folder.path(), work_registry(&log)).await;
        let run = engine.interrupted().await.expect("they are listed")[0];
        let seen = detail(&engine, run).await;
        let open_step = seen.steps.iter().find(|step| step.label == label).expect("the step is open");
        assert_eq!((open_step.state, open_step.attempt), (StepState::Running, 2), "{workflow}");
        drop(engine);

        // The third and last attempt crashes as well: now a person must look.
        aborts(folder.path(), &Order::Resume { point: point.to_owned(), hit: 1 });
        let engine = open(folder.path(), work_registry(&log)).await;
        engine.take_over(run).await.expect("it is taken over");
        let failure = blocked(engine.drive(run).await.expect("it is driven"));
        assert_eq!(failure.code, "engine.attempts_crashed");
        assert_eq!(log.count(label), 3, "three bodies, and not a fourth");
        let seen = detail(&engine, run).await;
        let attempts = &seen.steps.iter().find(|step| step.label == label).expect("the step").attempts;
        let outcomes: Vec<_> = attempts.iter().map(|a| (a.attempt, a.outcome.as_str())).collect();
        assert_eq!(outcomes, [(1, "crashed"), (2, "crashed"), (3, "crashed")]);
        assert_eq!(
            attempts[0].started_at_ms.is_some(),
            recorded,
            "{workflow}: a start that was not recorded is unknown"
        );

        engine.resume(run, &jane()).await.expect("it is resumed");
        succeeded(engine.drive(run).await.expect("it is driven"));
        assert_eq!(log.count(label), 4, "a person grants new attempts");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_is_never_tried_twice_asks_a_person_after_a_crash() {
    let folder = tempfile::tempdir().expect("a folder");
    aborts(folder.path(), &Order::Run { workflow: "once".to_owned(), point: "test.first".to_owned(), hit: 1 });
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let run = engine.interrupted().await.expect("they are listed")[0];
    assert_eq!(blocked(engine.drive(run).await.expect("it is driven")).code, "engine.attempts_crashed");
    assert_eq!(log.count("first"), 1);
    engine.resume(run, &jane()).await.expect("it is resumed");
    succeeded(engine.drive(run).await.expect("it is driven"));
    assert_eq!(log.count("first"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_is_never_tried_twice_and_did_not_begin_is_not_charged() {
    let folder = tempfile::tempdir().expect("a folder");
    let point = "engine.step_start.before".to_owned();
    aborts(folder.path(), &Order::Run { workflow: "once".to_owned(), point, hit: 1 });
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let run = engine.interrupted().await.expect("they are listed")[0];
    succeeded(engine.drive(run).await.expect("it is driven"));
    assert_eq!(log.count("first"), 1);
}

/// The failure that a workflow sees when it is replayed is the one that it saw live, byte for byte.
#[tokio::test(flavor = "multi_thread")]
async fn a_replayed_failure_equals_the_live_one() {
    let live = {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = open(folder.path(), work_registry(&log(folder.path()))).await;
        let run = start(&engine, StartRun::new("refused", json!(null), "jane")).await;
        succeeded(engine.drive(run).await.expect("it is driven"))
    };
    let folder = tempfile::tempdir().expect("a folder");
    aborts(folder.path(), &Order::Run { workflow: "refused".to_owned(), point: "test.slow".to_owned(), hit: 1 });
    let engine = open(folder.path(), work_registry(&log(folder.path()))).await;
    let run = engine.interrupted().await.expect("they are listed")[0];
    let replayed = succeeded(engine.drive(run).await.expect("it is driven"));
    assert_eq!(replayed, live);
    let failure: Failure = serde_json::from_str(replayed.as_str().expect("a text")).expect("a failure");
    assert_eq!((failure.code.as_str(), failure.hint.as_deref()), ("test.broken", Some("mend it")));
}
