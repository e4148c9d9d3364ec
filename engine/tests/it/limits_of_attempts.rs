//! What ends an attempt before its body does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use engine::{Engine, EngineConfig, EngineContext, Outcome, Registry, StartRun};
use engine_rules::activity::ActivityContext;
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::failure::Disposition;
use engine_rules::state::StepState;
use serde_json::json;

use crate::support::{Broken, QUICK, blocked, detail, registry, sleep_ms, start, succeeded, until};

const LIMITED: StepDef<(), u32> = StepDef::new("limited", "test.limited", QUICK).timeout_ms(150);
const SILENT: StepDef<(), u32> = StepDef::new("silent", "test.limited", QUICK).silence_ms(150);
const NEXT: StepDef<u32, u32> = StepDef::new("next", "test.next", QUICK);

async fn limited<C: Context>(ctx: &mut C, is_silent: bool) -> Result<u32, Interrupt> {
    let attempt = ctx.step(if is_silent { &SILENT } else { &LIMITED }, &()).await?;
    ctx.step(&NEXT, &attempt).await
}

fn limited_registry() -> Registry {
    let mut registry = registry();
    registry.workflow("limited", 1, limited::<EngineContext>);
    registry.activity("test.next", |_ctx, attempt: u32| async move { Ok::<_, Broken>(attempt) });
    registry
}

async fn open(folder: &std::path::Path, registry: Registry) -> Engine {
    let config = EngineConfig { stop_grace_ms: 100, ..EngineConfig::new(folder) };
    Engine::open(config, registry).await.expect("the engine opens")
}

fn outcomes(detail: &engine::RunDetail) -> Vec<&str> {
    detail.steps[0].attempts.iter().map(|attempt| attempt.outcome.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_times_out_and_returns_late_cannot_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut registry = limited_registry();
    // The first body returns 60 ms after it was told that its time is up, within the grace.
    registry.activity("test.limited", |ctx: ActivityContext, (): ()| async move {
        if ctx.attempt == 1 {
            ctx.cancel.cancelled().await;
            sleep_ms(60).await;
        }
        Ok::<_, Broken>(ctx.attempt)
    });
    let engine = open(folder.path(), registry).await;
    let run = start(&engine, StartRun::new("limited", json!(false), "jane")).await;
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(2));
    let seen = detail(&engine, run).await;
    assert_eq!(outcomes(&seen), ["timed_out", "succeeded"]);
    let failure = seen.steps[0].attempts[0].failure.as_ref().expect("why");
    assert_eq!(failure.code, "engine.step_timed_out");
    assert!(failure.message.contains("150 ms"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_waits_and_does_not_heed_its_token_is_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut registry = limited_registry();
    let finished = Arc::new(AtomicU32::new(0));
    let count = finished.clone();
    registry.activity("test.limited", move |ctx: ActivityContext, (): ()| {
        let count = count.clone();
        async move {
            if ctx.attempt == 1 {
                sleep_ms(700).await;
            }
            count.fetch_add(1, Ordering::SeqCst);
            Ok::<_, Broken>(ctx.attempt)
        }
    });
    let engine = open(folder.path(), registry).await;
    let run = start(&engine, StartRun::new("limited", json!(false), "jane")).await;
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(2));
    sleep_ms(700).await;
    assert_eq!(finished.load(Ordering::SeqCst), 1, "the first body never went on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_further_body_never_begins_beside_one_that_cannot_be_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut registry = limited_registry();
    let bodies = Arc::new(AtomicU32::new(0));
    let count = bodies.clone();
    registry.blocking_activity("test.limited", move |_ctx, (): ()| {
        count.fetch_add(1, Ordering::SeqCst);
        std::thread::park_timeout(std::time::Duration::from_millis(1_000));
        Ok::<u32, Broken>(1)
    });
    let engine = open(folder.path(), registry).await;
    let run = start(&engine, StartRun::new("limited", json!(false), "jane")).await;
    let failure = blocked(engine.drive(run).await.expect("it is driven"));
    assert_eq!(failure.code, "engine.body_does_not_end");
    assert_eq!(bodies.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_step_is_given_up_and_one_that_gives_signs_of_life_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut registry = limited_registry();
    registry.activity("test.limited", |ctx: ActivityContext, (): ()| async move {
        if ctx.attempt == 1 {
            sleep_ms(1_000).await;
        }
        for _ in 0..12 {
            sleep_ms(40).await;
            ctx.heartbeat();
        }
        Ok::<_, Broken>(ctx.attempt)
    });
    let engine = open(folder.path(), registry).await;
    let run = start(&engine, StartRun::new("limited", json!(true), "jane")).await;
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(2));
    let seen = detail(&engine, run).await;
    assert_eq!(outcomes(&seen), ["timed_out", "succeeded"]);
    assert_eq!(seen.steps[0].attempts[0].failure.as_ref().expect("why").code, "engine.step_silent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_after_completion_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut registry = limited_registry();
    let beats = Arc::new(AtomicU32::new(0));
    let count = beats.clone();
    registry.activity("test.limited", move |ctx: ActivityContext, (): ()| {
        let count = count.clone();
        async move {
            // Long enough for one sign of life to be in the journal.
            ctx.progress("rows", 7, Some(9));
            sleep_ms(20).await;
            let late = ctx.clone();
            tokio::spawn(async move {
                for _ in 0..20 {
                    sleep_ms(100).await;
                    late.progress("rows", 1_000, None);
                    late.heartbeat();
                    count.fetch_add(1, Ordering::SeqCst);
                }
            });
            sleep_ms(1_100).await;
            Ok::<_, Broken>(ctx.attempt)
        }
    });
    let engine = open(folder.path(), registry).await;
    let run = start(&engine, StartRun::new("limited", json!(true), "jane")).await;
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(1));
    let before = detail(&engine, run).await;
    assert!(before.steps[0].heartbeat_at_ms.is_some(), "{:?}", before.steps[0]);
    until("the beats that are late", || beats.load(Ordering::SeqCst) == 20).await;
    assert_eq!(detail(&engine, run).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_uses_up_its_attempts_by_time_fails_with_what_was_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut registry = limited_registry();
    registry.activity("test.limited", |ctx: ActivityContext, (): ()| async move {
        ctx.cancel.cancelled().await;
        Err::<u32, _>(Broken("stopped", Disposition::Terminal))
    });
    let engine = open(folder.path(), registry).await;
    let run = start(&engine, StartRun::new("limited", json!(false), "jane")).await;
    let Outcome::Failed { failure, step } = engine.drive(run).await.expect("it is driven") else { panic!() };
    assert_eq!((failure.code.as_str(), step.as_deref()), ("engine.step_timed_out", Some("limited")));
    let seen = detail(&engine, run).await;
    assert_eq!((seen.steps[0].attempt, seen.steps[0].state), (3, StepState::Failed));
    assert_eq!(outcomes(&seen), ["timed_out", "timed_out", "timed_out"]);
}
