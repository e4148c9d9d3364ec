//! The durable engine: a journal in SQLite, a runner that goes on where a killed process stopped, and what a person sees
//! of both (DESIGN §2).
//!
//! ```no_run
//! use std::convert::Infallible;
//!
//! use engine::{Engine, EngineConfig, Outcome, Registry, Start, StartRun};
//! use engine_rules::context::{Context, Interrupt, StepDef};
//! use engine_rules::retry::RetryPolicy;
//!
//! const GREET: StepDef<String, String> = StepDef::new("greet", "demo.greet", RetryPolicy::LOCAL);
//!
//! async fn hello<C: Context>(ctx: &mut C, name: String) -> Result<String, Interrupt> {
//!     ctx.step(&GREET, &name).await
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut registry = Registry::new();
//! registry.workflow("hello", 1, hello::<engine::EngineContext>);
//! registry.activity("demo.greet", |_ctx, name: String| async move {
//!     Ok::<_, Infallible>(format!("hello {name}"))
//! });
//! let engine = Engine::open(EngineConfig::new("state"), registry).await?;
//! if let Start::Started(run) = engine.start(StartRun::new("hello", serde_json::json!("world"), "jane")).await? {
//!     let outcome = engine.drive(run.run_id).await?;
//!     assert!(matches!(outcome, Outcome::Succeeded(_)));
//! }
//! # Ok(())
//! # }
//! ```

mod catch;
pub mod clock;
mod context;
mod control;
mod db;
mod engine;
mod error;
mod events;
mod export;
mod id;
mod import;
mod journal;
mod owner;
mod purge;
mod read;
mod registry;
mod runner;
mod schedules;
mod serve;
mod slots;
mod start;
mod writer;

use std::future::Future;
use std::pin::Pin;

pub use clock::SystemClock;
pub use context::EngineContext;
pub use engine::{Engine, EngineConfig, Mutation, Outcome};
pub use error::EngineError;
pub use events::{Event, EventKind, Events};
pub use export::{ExportError, ExportedChild, ExportedSignal, RunExport};
pub use id::RunId;
pub use import::{IfOther, Imported, ImportedRow};
pub use purge::{PurgePlan, PurgeReport};
pub use read::{
    AttemptRow, AuditRow, ChildRow, Children, OwnerRow, Reader, RunDetail, RunFilter, RunRow, ScheduleRow, StepRow,
    TickFilter, TickRow,
};
pub use registry::{Registry, WorkflowFn};
pub use runner::{Difference, History, PlannedStep, Rehearsal, ReplayFrom, ReplayPlan};
pub use schedules::{Fired, FiredOutcome, ScheduleDef, Synced, find_time_zone};
pub use serve::{Periodic, ServeOptions, ServeReport};
pub use start::{KeyPolicy, Start, StartRun, Started};

/// The crash points of a run that waits for a time or a signal.
pub const WAIT_CRASH_POINTS: &[&str] =
    &["engine.wait_begin.before", "engine.wait_begin.after", "engine.wait_end.before", "engine.wait_end.after"];

/// The crash points of a run that starts children.
pub const CHILD_CRASH_POINTS: &[&str] = &["engine.child_rows.before", "engine.child_rows.after"];

/// The crash points of firing a schedule; a run that a person starts does not meet them.
pub const SCHEDULE_CRASH_POINTS: &[&str] =
    &["engine.ticks.before", "engine.ticks.cursor", "engine.ticks.runs", "engine.ticks.after"];

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The engine's crash points ([`engine_rules::crash::point`]), in the order in which a run meets them. Each is named
/// after what it stands before or after; those of steps are met once a step, those of children once a batch of them.
pub const CRASH_POINTS: &[&str] = &[
    "engine.run_row.before",
    "engine.run_row.after",
    "engine.take_over.before",
    "engine.take_over.after",
    "engine.step_start.before",
    "engine.step_start.after",
    "engine.result.before",
    "engine.result.after",
    "engine.run_end.before",
    "engine.run_end.after",
];
