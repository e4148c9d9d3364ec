//! What an activity sees of the run that called it.

use std::fmt;
use std::sync::Arc;

pub use crate::token::CancelToken;

/// How far a step is: shown to a person, never recorded as a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// What is counted, such as `rows` or `files`.
    pub unit: &'static str,
    /// How many are done.
    pub done: u64,
    /// How many there are in all, where that is known.
    pub total: Option<u64>,
}

/// A sign of life of a step at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beat {
    /// It is at work, and has nothing to count.
    Alive,
    /// It is at work, and this far.
    Progress(Progress),
}

/// Who is told of signs of life.
pub type BeatSink = Arc<dyn Fn(Beat) + Send + Sync>;

/// What an activity is given beside its input.
#[derive(Clone)]
pub struct ActivityContext {
    /// The run.
    pub run_id: String,
    /// The step's name within the run.
    pub step: String,
    /// Which attempt this is, from 1. Attempts that crashed count.
    pub attempt: u32,
    /// Set when the activity should stop.
    pub cancel: CancelToken,
    beats: BeatSink,
}

impl fmt::Debug for ActivityContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActivityContext")
            .field("run_id", &self.run_id)
            .field("step", &self.step)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

impl ActivityContext {
    /// A context for attempt `attempt` of `step` in run `run_id`.
    #[must_use]
    pub fn new(run_id: String, step: String, attempt: u32, cancel: CancelToken, beats: BeatSink) -> Self {
        Self { run_id, step, attempt, cancel, beats }
    }

    /// A context that nobody watches, for tests and for tools that run an activity by itself.
    #[must_use]
    pub fn detached() -> Self {
        Self::new("detached".to_owned(), "detached".to_owned(), 1, CancelToken::new(), Arc::new(|_| {}))
    }

    /// Tells whoever watches how far the step is. It is a heartbeat as well.
    pub fn progress(&self, unit: &'static str, done: u64, total: Option<u64>) {
        (self.beats)(Beat::Progress(Progress { unit, done, total }));
    }

    /// Tells that the step is at work: one with a limit of silence ([`crate::context::StepDef::silence_ms`]) is given up
    /// without it. After the attempt ended it changes nothing.
    pub fn heartbeat(&self) {
        (self.beats)(Beat::Alive);
    }
}
