//! What a person must decide.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{EngineContext, EngineError, KeyPolicy, Outcome, Start, StartRun};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::failure::Disposition;
use engine_rules::state::RunState;
use serde_json::json;

use crate::support::{ADD, Broken, QUICK, blocked, detail, jane, open, registry, start, succeeded};

const ASKS: StepDef<(), u32> = StepDef::new("asks", "test.asks", QUICK);

async fn asks<C: Context>(ctx: &mut C, input: (i64, i64)) -> Result<i64, Interrupt> {
    let sum = ctx.step(&ADD, &input).await?;
    Ok(sum + i64::from(ctx.step(&ASKS, &()).await?))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_failure_blocks_at_its_step_and_the_run_goes_on_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let mended = Arc::new(AtomicBool::new(false));
    let mut registry = registry();
    registry.workflow("asks", 1, asks::<EngineContext>);
    let flag = mended.clone();
    registry.activity("test.asks", move |ctx, (): ()| {
        let mended = flag.load(Ordering::SeqCst);
        async move { if mended { Ok(ctx.attempt) } else { Err(Broken("the key is lost", Disposition::Operator)) } }
    });
    let engine = open(folder.path(), registry).await;
    let with_key = || StartRun::new("asks", json!([1, 2]), "jane").key("product 1", KeyPolicy::Forbid);
    let run = start(&engine, with_key()).await;
    let outcome = engine.drive(run).await.expect("it is driven");
    let Outcome::Blocked { failure, step } = outcome else { panic!("{outcome:?}") };
    assert_eq!((failure.message.as_str(), step.as_deref()), ("the key is lost", Some("asks")));
    let seen = detail(&engine, run).await;
    assert_eq!((seen.run.state, seen.run.failure, seen.run.failed_step), (RunState::Blocked, Some(failure), step));
    assert!(seen.run.ended_at_ms.is_none());

    let error = engine.drive(run).await.expect_err("a blocked run is not driven without a person");
    assert!(matches!(error, EngineError::WrongState { state: RunState::Blocked, .. }), "{error:?}");
    assert_eq!(engine.start(with_key()).await.expect("it is answered"), Start::Busy { holder: run });
    assert_eq!(engine.interrupted().await.expect("they are listed"), [], "nobody takes over what waits for a person");

    mended.store(true, Ordering::SeqCst);
    engine.resume(run, &jane()).await.expect("it is resumed");
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(5), "3, and the second attempt");
    let seen = detail(&engine, run).await;
    assert_eq!((seen.run.state, seen.run.failure), (RunState::Succeeded, None));
    assert_eq!(seen.audit.len(), 1);
    assert_eq!(seen.audit[0].reason, "for the test");
    let again = start(&engine, with_key()).await;
    assert_ne!(again, run, "the key is free again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_blocks_the_run_and_not_the_engine() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut registry = registry();
    registry.workflow("asks", 1, asks::<EngineContext>);
    registry.blocking_activity("test.asks", |_ctx, (): ()| -> Result<u32, Broken> { panic!("seven is not eight") });
    registry.workflow("inline", 1, inline_panic);
    let engine = open(folder.path(), registry).await;
    let run = start(&engine, StartRun::new("asks", json!([1, 2]), "jane")).await;
    let failure = blocked(engine.drive(run).await.expect("it is driven"));
    assert_eq!(failure.code, "engine.panic");
    assert!(failure.message.contains("seven is not eight"), "{}", failure.message);

    let run = start(&engine, StartRun::new("inline", json!(null), "jane")).await;
    let failure = blocked(engine.drive(run).await.expect("it is driven"));
    assert!(failure.message.contains("in the workflow"), "{}", failure.message);

    let run = start(&engine, StartRun::new("sum", json!([1, 2]), "jane")).await;
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(6));
}

async fn inline_panic(_ctx: &mut EngineContext, _input: ()) -> Result<(), Interrupt> {
    panic!("in the workflow")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_activity_or_definition_blocks_until_a_program_has_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut without = engine::Registry::new();
    without.workflow("sum", 1, crate::support::sum::<EngineContext>);
    let engine = open(folder.path(), without).await;
    let run = start(&engine, StartRun::new("sum", json!([1, 2]), "jane")).await;
    let failure = blocked(engine.drive(run).await.expect("it is driven"));
    assert_eq!(failure.code, "engine.activity_missing");
    engine.close().await;

    let mut newer = engine::Registry::new();
    newer.workflow("sum", 2, crate::support::sum::<EngineContext>);
    let engine = open(folder.path(), newer).await;
    engine.resume(run, &jane()).await.expect("it is resumed");
    let failure = blocked(engine.drive(run).await.expect("it is driven"));
    assert_eq!(failure.code, "engine.definition_missing");
    assert!(failure.message.contains("version 1") && failure.message.contains("[2]"), "{}", failure.message);
    engine.close().await;

    let engine = open(folder.path(), registry()).await;
    engine.resume(run, &jane()).await.expect("it is resumed");
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(6));
}
