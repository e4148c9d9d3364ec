//! A workflow's view of the engine.
//!
//! A workflow is an async function over [`Context`]. It asks for its steps in the same order each time it runs, so that
//! a run that was interrupted is run again from the top and finds the recorded results. Nothing of a backend shows.

use std::future::Future;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::failure::Failure;
use crate::retry::RetryPolicy;

/// A step as a workflow names it: which activity, with which input and output, and when it is tried again.
#[derive(Debug)]
pub struct StepDef<I, O> {
    /// The step's name, unique within its workflow: what an operator reads and replays from.
    pub name: &'static str,
    /// The activity that carries it out.
    pub activity: &'static str,
    /// When it is tried again.
    pub retry: RetryPolicy,
    io: PhantomData<fn(I) -> O>,
}

impl<I, O> StepDef<I, O> {
    /// The step `name`, carried out by `activity`.
    #[must_use]
    pub const fn new(name: &'static str, activity: &'static str, retry: RetryPolicy) -> Self {
        Self { name, activity, retry, io: PhantomData }
    }
}

/// Why a workflow does not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Interrupt {
    /// The step failed for good; a workflow may clean up and return it.
    #[error(transparent)]
    Failed(Failure),
    /// The run ends or waits here in this process: it was fenced, cancelled, blocked, or waits for something. A
    /// workflow returns it at once.
    #[error("the run does not go on here")]
    Suspended,
}

/// What a workflow can ask for. Every answer is recorded before it is given, and the same on every later run.
///
/// A workflow is run again from the top after an interruption. It must ask for the same things in the same order, so it
/// may depend on its input and on recorded answers only: no clock, no randomness, no file, no iteration over a hash map.
/// A difference from the journal blocks the run and shows both sides (DESIGN §2.2, Determinism).
///
/// # Sections
/// Steps under a lock of the catalog stand between [`Context::begin_section`] and [`Context::end_section`]. A section
/// that was begun and not ended when the run was interrupted starts again as a new iteration: its steps are carried out
/// anew, on a fresh lock, and the records of the old iteration are kept, marked abandoned (DESIGN §2.2, D9).
///
/// ```
/// # use engine_rules::context::{Context, Interrupt, StepDef};
/// # use engine_rules::retry::RetryPolicy;
/// const LOCK: StepDef<(), u64> = StepDef::new("0_lock", "catalog.lock", RetryPolicy::LOCAL);
/// const DELETE: StepDef<u64, u64> = StepDef::new("1_delete", "catalog.delete_roots", RetryPolicy::LOCAL);
///
/// async fn expire<C: Context>(ctx: &mut C, _input: ()) -> Result<u64, Interrupt> {
///     ctx.begin_section("expire").await?;
///     let lease = ctx.step(&LOCK, &()).await?;
///     let deleted = ctx.step(&DELETE, &lease).await?;
///     ctx.end_section().await?;
///     Ok(deleted)
/// }
/// ```
pub trait Context: Send {
    /// The result of `step` with `input`: recorded, or carried out now, at least once, and recorded.
    ///
    /// # Errors
    /// [`Interrupt::Failed`] with the recorded failure when the step failed for good.
    fn step<I, O>(&mut self, step: &StepDef<I, O>, input: &I) -> impl Future<Output = Result<O, Interrupt>> + Send
    where
        I: Serialize + Sync,
        O: Serialize + DeserializeOwned + Send;

    /// The time, in milliseconds since 1970-01-01T00:00:00Z, when the run first came here.
    ///
    /// # Errors
    /// [`Interrupt::Suspended`] when the run does not go on here.
    fn now_ms(&mut self) -> impl Future<Output = Result<i64, Interrupt>> + Send;

    /// An id that was minted when the run first came here, greater than those minted before it in the same process.
    ///
    /// # Errors
    /// [`Interrupt::Suspended`] when the run does not go on here.
    fn new_id(&mut self) -> impl Future<Output = Result<Uuid, Interrupt>> + Send;

    /// Begins the section `name` and answers its iteration, from 1. Sections do not nest.
    ///
    /// # Errors
    /// [`Interrupt::Suspended`] when the run does not go on here.
    fn begin_section(&mut self, name: &'static str) -> impl Future<Output = Result<u32, Interrupt>> + Send;

    /// Ends the section: from now on its steps are replayed from the journal, never carried out again.
    ///
    /// # Errors
    /// [`Interrupt::Suspended`] when the run does not go on here.
    fn end_section(&mut self) -> impl Future<Output = Result<(), Interrupt>> + Send;
}
