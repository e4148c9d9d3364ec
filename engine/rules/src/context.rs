//! A workflow's view of the engine.
//!
//! A workflow is an async function over [`Context`]. It asks for its steps in the same order each time it runs, so that
//! a run that was interrupted is run again from the top and finds the recorded results. Nothing of a backend shows.

use std::collections::BTreeMap;
use std::future::Future;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
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
    /// How long one attempt may take, in milliseconds; `None` has no limit.
    pub timeout_ms: Option<u64>,
    /// How long an attempt may go without a heartbeat or progress, in milliseconds; `None` has no limit.
    pub silence_ms: Option<u64>,
    io: PhantomData<fn(I) -> O>,
}

impl<I, O> StepDef<I, O> {
    /// The step `name`, carried out by `activity`.
    #[must_use]
    pub const fn new(name: &'static str, activity: &'static str, retry: RetryPolicy) -> Self {
        Self { name, activity, retry, timeout_ms: None, silence_ms: None, io: PhantomData }
    }

    /// The same with a limit on the time of one attempt. An attempt that is over it has failed, and may be tried again;
    /// what its body still returns is not recorded.
    #[must_use]
    pub const fn timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.timeout_ms = Some(timeout_ms);
        self
    }

    /// The same with a limit on the time without a sign of life
    /// ([`crate::activity::ActivityContext::heartbeat`] or `progress`).
    #[must_use]
    pub const fn silence_ms(mut self, silence_ms: u64) -> Self {
        self.silence_ms = Some(silence_ms);
        self
    }
}

/// Child runs as a workflow names them: which workflow, with which input and output.
#[derive(Debug)]
pub struct ChildDef<I, O> {
    /// The step's name, unique within its workflow.
    pub name: &'static str,
    /// The workflow that the children run.
    pub workflow: &'static str,
    io: PhantomData<fn(I) -> O>,
}

impl<I, O> ChildDef<I, O> {
    /// The step `name`, whose children run `workflow`.
    #[must_use]
    pub const fn new(name: &'static str, workflow: &'static str) -> Self {
        Self { name, workflow, io: PhantomData }
    }
}

/// One child run to be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildStart<I> {
    /// Its input.
    pub input: I,
    /// Its concurrency key; it waits in line for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl<I> ChildStart<I> {
    /// A child with `input`, without a key and labels.
    #[must_use]
    pub const fn new(input: I) -> Self {
        Self { input, key: None, labels: BTreeMap::new() }
    }

    /// The same with a concurrency key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The same with a label.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }
}

/// How a child of a fan-out ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildEnd<O> {
    /// With this output.
    Succeeded(O),
    /// With this failure. Of more than a hundred failures the later ones have their code only.
    Failed(Failure),
    /// By a person, who ended it alone.
    Cancelled,
}

/// Why a workflow does not go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Interrupt {
    /// The step failed for good; a workflow may clean up and return it.
    #[error(transparent)]
    Failed(Failure),
    /// A person ends the run. A workflow may ask for steps that clean up, which are carried out as any other, and then
    /// returns it; whatever it returns, the run ends as cancelled.
    #[error("the run is cancelled")]
    Cancelled,
    /// The run does not go on in this process: it was fenced, blocked, paused or given back. A workflow returns it at
    /// once.
    #[error("the run does not go on here")]
    Suspended,
}

/// What a workflow can ask for. Every answer is recorded before it is given, and the same on every later run.
///
/// A workflow is run again from the top after an interruption. It must ask for the same things in the same order, so it
/// may depend on its input and on recorded answers only: no clock, no randomness, no file, no iteration over a hash map.
/// A difference from the journal blocks the run and shows both sides (DESIGN §2.2, Determinism).
///
/// # Cancellation
/// A run that a person cancels is told so by [`Interrupt::Cancelled`]: once, by the next thing that it asks for and that
/// has no result yet, outside a section. That too is recorded, so a workflow that cleans up is interrupted and goes on
/// like any other.
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

    /// Waits until `at_ms` (milliseconds since 1970-01-01T00:00:00Z) by the clock of the machine, however often the
    /// process dies meanwhile. A time that has passed is not waited for.
    ///
    /// # Errors
    /// [`Interrupt::Cancelled`]; [`Interrupt::Suspended`] when the run does not go on here.
    fn sleep_until(&mut self, name: &'static str, at_ms: i64) -> impl Future<Output = Result<(), Interrupt>> + Send;

    /// Waits for the signal `name` and takes the oldest that no step took yet: each is taken once. `None` when none came
    /// by `deadline_at_ms`.
    ///
    /// # Errors
    /// [`Interrupt::Cancelled`]; [`Interrupt::Suspended`] when the run does not go on here. A payload that does not fit
    /// `T` blocks the run.
    fn signal<T>(
        &mut self,
        name: &'static str,
        deadline_at_ms: Option<i64>,
    ) -> impl Future<Output = Result<Option<T>, Interrupt>> + Send
    where
        T: Serialize + DeserializeOwned + Send;

    /// Starts a child run, once, and waits for its end. As [`Context::fan_out`] with one child.
    ///
    /// # Errors
    /// [`Interrupt::Failed`] with the child's failure, or with `engine.child_cancelled` where a person ended it alone;
    /// [`Interrupt::Cancelled`]; [`Interrupt::Suspended`], also when the child is blocked: then this run is blocked too
    /// and names it.
    fn child<I, O>(
        &mut self,
        def: &ChildDef<I, O>,
        child: &ChildStart<I>,
    ) -> impl Future<Output = Result<O, Interrupt>> + Send
    where
        I: Serialize + Sync,
        O: Serialize + DeserializeOwned + Send;

    /// Starts the children, each once however often this run is interrupted, and waits for the ends of all, which come
    /// back in the order of `children`. A child that fails does not stop the others.
    ///
    /// At most `limit` (at least one) are at work at a time, here and in other processes together. A child that stands in
    /// line for its key, that is blocked, or that a person holds takes no place from the others; 256 in line are enough
    /// that no more are started. They are started as places come free, under the newest version of their workflow that
    /// the program then has.
    ///
    /// The inputs together ([`PAYLOAD_LIMIT_BYTES`](crate::limits::PAYLOAD_LIMIT_BYTES)), and the ends together, must
    /// each fit the journal. Of a failure's message the first 2,000 bytes come back.
    ///
    /// # Errors
    /// [`Interrupt::Failed`] with `engine.payload_too_large`; with `engine.key_held_by_family` where a child would wait
    /// for a key that this run, or one that it is a child of, holds; with `engine.children_in_clean_up` once the run was
    /// told that it is cancelled. No child is started then, but where it is the ends that are too large.
    /// [`Interrupt::Cancelled`]: every child has ended then, and none is started any more.
    /// [`Interrupt::Suspended`], also when children are blocked: the others end first, then this run is blocked too
    /// (`engine.child_blocked`) and names them; a person who resumes it resumes them with it. Within a section the run is
    /// blocked: children do not have its lock, and would outlive it.
    fn fan_out<I, O>(
        &mut self,
        def: &ChildDef<I, O>,
        children: &[ChildStart<I>],
        limit: u32,
    ) -> impl Future<Output = Result<Vec<ChildEnd<O>>, Interrupt>> + Send
    where
        I: Serialize + Sync,
        O: Serialize + DeserializeOwned + Send;

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
