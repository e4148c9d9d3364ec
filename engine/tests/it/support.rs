//! A small workflow and an engine in a folder of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{Engine, EngineConfig, EngineContext, Mutation, Outcome, Registry, RunDetail, RunId, Start, StartRun};
use engine_rules::clock::Clock;
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::failure::{ActivityError, Disposition, Failure};
use engine_rules::retry::RetryPolicy;
use serde_json::Value;
use sqlx::{ConnectOptions as _, SqliteConnection};

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
    registry.activity("test.add", |_ctx, (a, b): (i64, i64)| async move { Ok::<_, Broken>(a + b) });
    registry.blocking_activity("test.double", |_ctx, n: i64| Ok::<_, Broken>(n * 2));
    registry
}

/// An error of an activity, of any disposition.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub &'static str, pub Disposition);

impl ActivityError for Broken {
    fn code(&self) -> &'static str {
        "test.broken"
    }

    fn disposition(&self) -> Disposition {
        self.1
    }

    fn hint(&self) -> Option<String> {
        Some("mend it".to_owned())
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

pub fn blocked(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Blocked { failure, .. } => failure,
        other => panic!("{other:?}"),
    }
}

pub fn jane() -> Mutation {
    Mutation { actor: "jane".to_owned(), reason: "for the test".to_owned() }
}

/// A connection of somebody else to the state database.
pub async fn outsider(state: &Path) -> SqliteConnection {
    sqlx::sqlite::SqliteConnectOptions::new()
        .filename(state.join("state.db"))
        .connect()
        .await
        .expect("the database opens")
}

/// A file to which each body adds a line, so that a test can count what really ran.
#[derive(Debug, Clone)]
pub struct Log(pub PathBuf);

impl Log {
    pub fn add(&self, line: &str) {
        use std::io::Write as _;
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&self.0).expect("the log opens");
        file.write_all(format!("{line}\n").as_bytes()).expect("the log is written");
    }

    pub fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.0).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    pub fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|found| *found == line).count()
    }
}

pub async fn sleep_ms(ms: u64) {
    let clock: Arc<dyn Clock> = Arc::new(engine::SystemClock::new());
    clock.sleep_ms(ms).await;
}

/// Waits until `condition` holds, at most ten seconds.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..1_000 {
        if condition() {
            return;
        }
        sleep_ms(10).await;
    }
    panic!("ten seconds passed, and not yet: {what}");
}
