//! A small workflow and an engine in a folder of its own.

use std::path::Path;

use engine::{Engine, EngineConfig, EngineContext, Outcome, Registry, RunDetail, RunId, Start, StartRun};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::failure::Failure;
use engine_rules::retry::RetryPolicy;
use serde_json::{Value, json};

/// Retries at once, so that a test does not wait.
pub const QUICK: RetryPolicy =
    RetryPolicy { first_delay_ms: 1, factor: 1.0, cap_ms: 1, attempts: 3, jitter_percent: 0 };

pub const ADD: StepDef<(i64, i64), i64> = StepDef::new("add", "test.add", QUICK);
pub const DOUBLE: StepDef<i64, i64> = StepDef::new("double", "test.double", QUICK);

/// Adds its two numbers and doubles the sum.
pub async fn sum<C: Context>(ctx: &mut C, input: (i64, i64)) -> Result<i64, Interrupt> {
    let sum = ctx.step(&ADD, &input).await?;
    ctx.step(&DOUBLE, &sum).await
}

pub fn registry() -> Registry {
    let mut registry = Registry::new();
    registry.workflow("sum", 1, sum::<EngineContext>);
    registry.activity("test.add", |_ctx, (a, b): (i64, i64)| async move { Ok::<_, Never>(a + b) });
    registry.blocking_activity("test.double", |_ctx, n: i64| Ok::<_, Never>(n * 2));
    registry
}

/// An error that does not happen.
#[derive(Debug, thiserror::Error)]
#[error("never")]
pub enum Never {}

impl engine_rules::failure::ActivityError for Never {
    fn code(&self) -> &'static str {
        match *self {}
    }

    fn disposition(&self) -> engine_rules::failure::Disposition {
        match *self {}
    }
}

pub async fn open(state: &Path, registry: Registry) -> Engine {
    Engine::open(EngineConfig::new(state), registry).await.expect("the engine opens")
}

pub async fn start(engine: &Engine, run: StartRun) -> RunId {
    match engine.start(run).await.expect("the run starts") {
        Start::Started(started) => started.run_id,
        Start::Busy { holder } => panic!("{holder} holds the key"),
    }
}

pub async fn detail(engine: &Engine, run: RunId) -> RunDetail {
    engine.reader().run(run).await.expect("the run reads")
}

pub fn succeeded(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Succeeded(value) => value,
        other => panic!("{other:?}"),
    }
}

#[allow(dead_code, reason = "used where a failure is told apart")]
pub fn failure(code: &str) -> Failure {
    serde_json::from_value(json!({"code": code, "message": "m", "disposition": "terminal"})).expect("a failure")
}
