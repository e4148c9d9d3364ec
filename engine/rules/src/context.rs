//! A workflow's view of the engine.
//!
//! A workflow is an async function over [`Context`]. It asks for its steps in the same order each time it runs, so that
//! a run that was interrupted is run again from the top and finds the recorded results. Nothing of a backend shows.

use std::future::Future;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

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
pub trait Context: Send {
    /// The result of `step` with `input`: recorded, or carried out now, at least once, and recorded.
    ///
    /// # Errors
    /// [`Interrupt::Failed`] with the recorded failure when the step failed for good.
    fn step<I, O>(&mut self, step: &StepDef<I, O>, input: &I) -> impl Future<Output = Result<O, Interrupt>> + Send
    where
        I: Serialize + Sync,
        O: Serialize + DeserializeOwned + Send;
}
