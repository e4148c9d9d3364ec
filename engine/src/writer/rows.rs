//! What can be written, as values.

use engine_rules::failure::Failure;
use engine_rules::position::Position;
use engine_rules::state::{RunState, StepState};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::id::RunId;

/// A run that begins.
#[derive(Debug)]
pub(crate) struct NewRun {
    pub run_id: RunId,
    pub workflow: String,
    pub version: u32,
    /// Left in the queue even if nothing stands in its way.
    pub detached: bool,
    pub input: String,
    pub input_digest: String,
    pub labels: String,
    pub concurrency_key: Option<String>,
    pub concurrency_policy: &'static str,
    pub parent_run_id: Option<RunId>,
    pub origin_run_id: Option<RunId>,
    pub origin_step: Option<String>,
    pub schedule: Option<String>,
    pub actor: String,
    pub reason: Option<String>,
    pub idempotency_key: Option<String>,
    pub idempotency_window_ms: i64,
    pub owner_no: i64,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StartAnswer {
    Started {
        run_no: i64,
        state: RunState,
    },
    /// Its idempotency key started this run before.
    Existing {
        run_id: RunId,
        input_digest: String,
        /// The run is no longer in the journal.
        purged: bool,
    },
    /// This run holds its concurrency key.
    Busy {
        holder: RunId,
    },
}

impl NewRun {
    /// What two runs of one batch must not share.
    pub fn exclusive_keys(&self) -> impl Iterator<Item = String> {
        let concurrency = self.concurrency_key.as_ref().map(|key| format!("key {key}"));
        let idempotency = self.idempotency_key.as_ref().map(|key| format!("once {} {key}", self.workflow));
        concurrency.into_iter().chain(idempotency)
    }

    pub fn payload_bytes(&self) -> usize {
        self.input.len() + self.labels.len()
    }
}

/// What a run has to record at once, all of it or nothing, and only while it has this epoch.
#[derive(Debug)]
pub(crate) struct RunWrite {
    pub run_no: i64,
    pub epoch: i64,
    /// The section that begins here starts again: its rows are abandoned.
    pub abandon_from_top: Option<u32>,
    pub attempt: Option<AttemptWrite>,
    pub step: Option<StepWrite>,
    pub run: Option<RunChange>,
    /// The signal that the step takes.
    pub take_signal: Option<i64>,
    pub beat: Option<BeatWrite>,
}

impl RunWrite {
    pub fn new(run_no: i64, epoch: i64) -> Self {
        Self {
            run_no,
            epoch,
            abandon_from_top: None,
            attempt: None,
            step: None,
            run: None,
            take_signal: None,
            beat: None,
        }
    }

    pub fn payload_bytes(&self) -> usize {
        let step = self.step.as_ref().map_or(0, |step| {
            step.input.as_ref().map_or(0, |input| input.len()) + step.output.as_ref().map_or(0, String::len)
        });
        step + self.run.as_ref().and_then(|run| run.output.as_ref()).map_or(0, String::len)
    }
}

/// A step as it now stands.
#[derive(Debug, Clone)]
pub(crate) struct StepWrite {
    pub position: Position,
    pub kind: &'static str,
    pub name: &'static str,
    pub section: Option<&'static str>,
    pub activity: Option<&'static str>,
    pub state: StepState,
    pub input_digest: String,
    /// Left as it is where this is `None` and the row is there.
    pub input: Option<std::sync::Arc<str>>,
    pub output: Option<String>,
    pub failure: Option<Failure>,
    pub attempt: u32,
    pub forgiven: u32,
    pub next_attempt_at_ms: Option<i64>,
    pub started_at_ms: i64,
    pub ended_at_ms: Option<i64>,
    pub duration_us: Option<u64>,
}

/// An attempt that ended and is not its step's result.
#[derive(Debug, Clone)]
pub(crate) struct AttemptWrite {
    pub position: Position,
    pub attempt: u32,
    pub outcome: &'static str,
    pub failure: Option<Failure>,
    pub started_at_ms: Option<i64>,
    pub ended_at_ms: Option<i64>,
    pub duration_us: Option<u64>,
}

/// How the run now stands.
#[derive(Debug, Clone)]
pub(crate) struct RunChange {
    pub state: RunState,
    pub output: Option<String>,
    pub failure: Option<Failure>,
    pub failed_step: Option<String>,
    pub ended_at_ms: Option<i64>,
    /// When a run that waits is due.
    pub wake_at_ms: Option<i64>,
    /// The run is given back: whoever comes first takes it over.
    pub is_released: bool,
}

impl RunChange {
    /// The run stands in `state`, and nothing else is to be said of it.
    pub fn to(state: RunState) -> Self {
        Self {
            state,
            output: None,
            failure: None,
            failed_step: None,
            ended_at_ms: None,
            wake_at_ms: None,
            is_released: false,
        }
    }
}

/// A sign of life of the attempt at work; without effect once the attempt has ended.
#[derive(Debug, Clone)]
pub(crate) struct BeatWrite {
    pub position: Position,
    pub attempt: u32,
    pub at_ms: i64,
    pub progress: Option<String>,
}

/// Runs to be taken from the queue: the oldest that may begin.
#[derive(Debug, Clone)]
pub(crate) struct TakeQueued {
    pub owner_no: i64,
    /// This run and no other.
    pub only: Option<RunId>,
    pub most: usize,
}

/// Runs to be taken from owners that were found dead, or that gave them back.
#[derive(Debug, Clone)]
pub(crate) struct TakeOver {
    pub owner_no: i64,
    pub runs: Vec<Fence>,
}

/// A run as it stood when it was decided to take it: whoever was faster changed one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence {
    pub run_no: i64,
    pub epoch: i64,
    pub owner_no: Option<i64>,
}

/// Runs to be taken, from one side or the other.
#[derive(Debug, Clone)]
pub(crate) enum Take {
    Queued(TakeQueued),
    Over(TakeOver),
}

impl Take {
    pub fn owner_no(&self) -> i64 {
        match self {
            Self::Queued(take) => take.owner_no,
            Self::Over(take) => take.owner_no,
        }
    }
}

/// A run that now belongs to whoever asked.
#[derive(Debug)]
pub(crate) struct ClaimedRun {
    pub run_no: i64,
    pub run_id: RunId,
    pub epoch: i64,
    pub workflow: String,
    pub version: u32,
    pub input: String,
    pub cancel_requested: bool,
    /// Set for a replay: what its origin recorded before this place is carried over.
    pub carry_before_top: Option<u32>,
    pub pause_requested: bool,
    pub is_requeued: bool,
}

impl ClaimedRun {
    /// What every statement that takes a run gives back.
    pub fn read(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        let id: String = row.try_get("run_id")?;
        Ok(Self {
            run_no: row.try_get("run_no")?,
            run_id: id.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
            epoch: row.try_get("epoch")?,
            workflow: row.try_get("workflow")?,
            version: row.try_get("version")?,
            input: row.try_get("input")?,
            cancel_requested: row.try_get::<Option<i64>, _>("cancel_requested_at_ms")?.is_some(),
            carry_before_top: row.try_get("carry_before_top")?,
            pause_requested: row.try_get::<Option<i64>, _>("pause_requested_at_ms")?.is_some(),
            is_requeued: row.try_get::<Option<i64>, _>("requeued_at_ms")?.is_some(),
        })
    }
}
