//! What happens to the runs of this process, as it happens: for a terminal.

use engine_rules::activity::Progress;
use engine_rules::failure::Failure;
use engine_rules::position::Position;
use engine_rules::state::RunState;
use serde_json::Value;
use tokio::sync::broadcast;

use crate::id::RunId;

/// How many events a watcher may lag behind before the oldest are dropped. Nothing that counts is lost: the journal has
/// it.
pub(crate) const BUFFERED_EVENTS: usize = 4096;

/// Something that happened to a run of this process.
#[derive(Debug, Clone)]
pub struct Event {
    /// The run.
    pub run_id: RunId,
    /// When, in milliseconds since 1970-01-01T00:00:00Z.
    pub at_ms: i64,
    /// What.
    pub kind: EventKind,
}

/// What happened. Steps are named by their label, such as `seal` or `expire#2.0_advance_current`.
#[derive(Debug, Clone)]
pub enum EventKind {
    /// The run began in this process.
    RunStarted {
        /// Its workflow.
        workflow: String,
    },
    /// The run goes on in this process, from another that died or after a person resumed it.
    RunTakenOver {
        /// Its workflow.
        workflow: String,
        /// Which owner this is, counted from 1.
        epoch: i64,
    },
    /// The step has its result in the journal from before: it is not carried out again.
    StepReplayed {
        /// Its place.
        position: Position,
        /// Its label.
        step: String,
        /// How long it took then, in microseconds.
        duration_us: Option<u64>,
        /// The run whose result this is, where a replay carried it over.
        carried_from: Option<String>,
    },
    /// An attempt begins.
    StepStarted {
        /// Its place.
        position: Position,
        /// Its label.
        step: String,
        /// Which attempt, from 1.
        attempt: u32,
    },
    /// An attempt tells how far it is.
    StepProgress {
        /// Its place.
        position: Position,
        /// Its label.
        step: String,
        /// How far.
        progress: Progress,
    },
    /// The step's output is recorded.
    StepSucceeded {
        /// Its place.
        position: Position,
        /// Its label.
        step: String,
        /// Which attempt, from 1.
        attempt: u32,
        /// How long that attempt took, in microseconds.
        duration_us: u64,
        /// What it gave.
        output: Value,
    },
    /// The attempt failed and another follows.
    StepRetrying {
        /// Its place.
        position: Position,
        /// Its label.
        step: String,
        /// Which attempt failed, from 1.
        attempt: u32,
        /// How long that attempt took, in microseconds.
        duration_us: u64,
        /// Why.
        failure: Failure,
        /// When the next one begins, in milliseconds from now.
        delay_ms: u64,
    },
    /// The step's failure is recorded, or blocks the run.
    StepFailed {
        /// Its place.
        position: Position,
        /// Its label.
        step: String,
        /// Which attempt, from 1.
        attempt: u32,
        /// How long that attempt took, in microseconds.
        duration_us: u64,
        /// Why.
        failure: Failure,
    },
    /// The run does not go on in this process: it ended, or it is blocked.
    RunEnded {
        /// How it stands.
        state: RunState,
        /// Why, where it failed or is blocked.
        failure: Option<Failure>,
    },
}

/// A stream of [`Event`]s.
#[derive(Debug)]
pub struct Events(pub(crate) broadcast::Receiver<Event>);

impl Events {
    /// The next event; `None` once the engine is gone. A watcher that lags far behind misses the oldest.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            match self.0.recv().await {
                Ok(event) => return Some(event),
                Err(broadcast::error::RecvError::Lagged(missed)) => {
                    tracing::debug!(missed, "a watcher lags behind");
                }
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    /// An event that is there already; `None` when there is none now.
    pub fn try_next(&mut self) -> Option<Event> {
        loop {
            match self.0.try_recv() {
                Ok(event) => return Some(event),
                Err(broadcast::error::TryRecvError::Lagged(missed)) => {
                    tracing::debug!(missed, "a watcher lags behind");
                }
                Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed) => return None,
            }
        }
    }
}
