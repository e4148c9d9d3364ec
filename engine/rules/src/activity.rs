//! What an activity sees of the run that called it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once when the run is cancelled or the step's time is up; an activity looks at it between units of work.
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token that nobody has set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the token; there is no way back.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether the token was set.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

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

/// Who is told of progress.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

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
    progress: ProgressSink,
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
    pub fn new(run_id: String, step: String, attempt: u32, cancel: CancelToken, progress: ProgressSink) -> Self {
        Self { run_id, step, attempt, cancel, progress }
    }

    /// A context that nobody watches, for tests and for tools that run an activity by itself.
    #[must_use]
    pub fn detached() -> Self {
        Self::new("detached".to_owned(), "detached".to_owned(), 1, CancelToken::new(), Arc::new(|_| {}))
    }

    /// Tells whoever watches how far the step is.
    pub fn progress(&self, unit: &'static str, done: u64, total: Option<u64>) {
        (self.progress)(Progress { unit, done, total });
    }
}
