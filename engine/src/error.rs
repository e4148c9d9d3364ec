//! Why the engine could not do what it was asked for.

use std::path::PathBuf;

use engine_rules::failure::{ActivityError, Disposition};
use engine_rules::state::RunState;

use crate::id::RunId;

/// An error of the engine itself. What goes wrong in a run is recorded in the run, as a failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The state database refused.
    #[error("the state database could not {doing}")]
    Storage {
        /// What was being done.
        doing: &'static str,
        /// What SQLite or the system said.
        #[source]
        source: sqlx::Error,
    },
    /// The writer of this process has stopped, so nothing can be recorded any more.
    #[error("the writer of the state database has stopped")]
    Closed,
    /// A setting that durability rests on is not in force.
    #[error("the state database {path} has {setting} = {found}, but durable results need {expected}")]
    NotDurable {
        /// The database.
        path: PathBuf,
        /// The setting.
        setting: &'static str,
        /// What was read back.
        found: String,
        /// What must be read back.
        expected: &'static str,
    },
    /// The database was written by another version of this program.
    #[error("the schema of the state database {path} does not fit this program")]
    Schema {
        /// The database.
        path: PathBuf,
        /// How they differ.
        #[source]
        source: sqlx::migrate::MigrateError,
    },
    /// There is no state database yet.
    #[error("there is no state database at {path}")]
    NoState {
        /// Where it would be.
        path: PathBuf,
    },
    /// The state directory could not be used.
    #[error("{path}: could not {doing}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// No workflow of this name is known.
    #[error("there is no workflow {name:?}; there are {known:?}")]
    UnknownWorkflow {
        /// What was asked for.
        name: String,
        /// What this program has.
        known: Vec<String>,
    },
    /// No run of this id is known.
    #[error("there is no run {run}")]
    UnknownRun {
        /// What was asked for.
        run: String,
    },
    /// The beginning of an id fits several runs.
    #[error("{prefix} is the beginning of several runs: {}", .runs.iter().map(RunId::to_string).collect::<Vec<_>>().join(", "))]
    AmbiguousRun {
        /// What was asked for.
        prefix: String,
        /// Some of the runs that it fits.
        runs: Vec<RunId>,
    },
    /// The input of a run is larger than the journal holds.
    #[error("the input has {size_bytes} bytes; the journal holds at most {limit_bytes}")]
    PayloadTooLarge {
        /// Its size.
        size_bytes: usize,
        /// The limit.
        limit_bytes: usize,
    },
    /// A name, key, label or reason is longer than the journal holds.
    #[error("{what} has {size_bytes} bytes; at most {limit_bytes} are allowed")]
    TextTooLong {
        /// Which text.
        what: &'static str,
        /// Its size.
        size_bytes: usize,
        /// The limit.
        limit_bytes: usize,
    },
    /// The idempotency key was used for a run with another input.
    #[error("the idempotency key {key:?} started run {run} with another input")]
    IdempotencyConflict {
        /// The key.
        key: String,
        /// The run that it started.
        run: RunId,
    },
    /// The run is in a state in which this cannot be done.
    #[error("run {run} is {state}, so it cannot {what}")]
    WrongState {
        /// The run.
        run: RunId,
        /// Its state.
        state: RunState,
        /// What was asked for.
        what: &'static str,
    },
    /// Only a run that ended can be replayed.
    #[error("run {run} is {state}; only a run that ended can be replayed")]
    NotEnded {
        /// The run.
        run: RunId,
        /// Its state.
        state: RunState,
    },
    /// The run asked for no step of this name, or for several.
    #[error("{step:?} names {} of run {run}, which asked for: {}", if *.several { "several steps" } else { "no step" }, .known.join(", "))]
    UnknownStep {
        /// The run.
        run: RunId,
        /// What was asked for.
        step: String,
        /// Whether it names more than one.
        several: bool,
        /// What the run asked for: place and name.
        known: Vec<String>,
    },
    /// The input is none that the workflow reads.
    #[error("{found}")]
    InputRefused {
        /// What the workflow says of it.
        found: String,
    },
    /// Another process works on the run.
    #[error("another process works on run {run} (process {pid} on {host})")]
    OwnedElsewhere {
        /// The run.
        run: RunId,
        /// The process.
        pid: i64,
        /// Its machine.
        host: String,
    },
    /// This process works on the run already.
    #[error("this process works on run {run} already")]
    AlreadyDriven {
        /// The run.
        run: RunId,
    },
    /// A row of the journal cannot be read.
    #[error("the journal's row of {subject} cannot be read: {found:?} is not {expected}")]
    Corrupt {
        /// Which row.
        subject: String,
        /// What was found.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
}

impl ActivityError for EngineError {
    fn code(&self) -> &'static str {
        match self {
            Self::Storage { .. } => "engine.storage",
            Self::Closed => "engine.closed",
            Self::NotDurable { .. } => "engine.not_durable",
            Self::Schema { .. } => "engine.schema",
            Self::NoState { .. } => "engine.no_state",
            Self::Io { .. } => "engine.io",
            Self::UnknownWorkflow { .. } => "engine.unknown_workflow",
            Self::UnknownRun { .. } => "engine.unknown_run",
            Self::AmbiguousRun { .. } => "engine.ambiguous_run",
            Self::PayloadTooLarge { .. } => "engine.payload_too_large",
            Self::TextTooLong { .. } => "engine.text_too_long",
            Self::IdempotencyConflict { .. } => "engine.idempotency_conflict",
            Self::WrongState { .. } => "engine.wrong_state",
            Self::NotEnded { .. } => "engine.not_ended",
            Self::UnknownStep { .. } => "engine.unknown_step",
            Self::InputRefused { .. } => "engine.input_refused",
            Self::OwnedElsewhere { .. } => "engine.owned_elsewhere",
            Self::AlreadyDriven { .. } => "engine.already_driven",
            Self::Corrupt { .. } => "engine.corrupt",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Storage { .. } | Self::Closed | Self::NotDurable { .. } | Self::Schema { .. } => {
                Disposition::Operator
            }
            Self::NoState { .. } | Self::Io { .. } | Self::Corrupt { .. } => Disposition::Operator,
            Self::UnknownWorkflow { .. }
            | Self::UnknownRun { .. }
            | Self::AmbiguousRun { .. }
            | Self::PayloadTooLarge { .. }
            | Self::TextTooLong { .. }
            | Self::IdempotencyConflict { .. }
            | Self::WrongState { .. }
            | Self::NotEnded { .. }
            | Self::UnknownStep { .. }
            | Self::InputRefused { .. }
            | Self::OwnedElsewhere { .. }
            | Self::AlreadyDriven { .. } => Disposition::Terminal,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Storage { source, .. } if is_damaged(source) => {
                "the state database is damaged: restore the state directory from a backup, or keep a copy and move it \
                 away; without it the past runs are lost and nothing of the catalog is: the next publish of a product \
                 records what was sealed"
            }
            Self::Storage { .. } => {
                "check the space and the permissions of the state directory; the runs go on where they stopped: \
                 jobctl runs resume"
            }
            Self::Closed => "start the program again; interrupted runs go on where they stopped: jobctl runs resume",
            Self::NotDurable { .. } => "put the state directory on a local disk, not on a network share",
            Self::Schema { .. } => "use the version of jobctl that wrote it last, or a newer one",
            Self::NoState { .. } => "run a workflow first, or name the state directory with --state",
            Self::Io { .. } => "check that the directory exists and that this user may write to it",
            Self::UnknownWorkflow { .. } => "jobctl run --help names the workflows",
            Self::UnknownRun { .. } | Self::AmbiguousRun { .. } => "jobctl runs list names the runs",
            Self::PayloadTooLarge { .. } => "put the content into a file and give its path and digest",
            Self::TextTooLong { .. } => "use a shorter one",
            Self::IdempotencyConflict { .. } => "use another key for another input",
            Self::WrongState { state, .. } => match state {
                RunState::Queued => {
                    "the end of the run that holds its key lets it begin: jobctl runs list --in running"
                }
                RunState::Running | RunState::Waiting => "jobctl runs show RUN says what it does",
                RunState::Paused | RunState::Blocked => "jobctl runs resume RUN lets it go on",
                RunState::Succeeded | RunState::Failed | RunState::Cancelled => {
                    "it ended, and that never changes; start a new run"
                }
            },
            Self::NotEnded { state, .. } => match state {
                RunState::Paused | RunState::Blocked => {
                    "jobctl runs resume RUN lets it go on where it stands; jobctl runs cancel RUN --reason … ends it, and \
                     then it can be replayed"
                }
                RunState::Queued
                | RunState::Running
                | RunState::Waiting
                | RunState::Succeeded
                | RunState::Failed
                | RunState::Cancelled => {
                    "wait for its end (jobctl runs show RUN says where it stands), or end it: jobctl runs cancel RUN \
                     --reason …"
                }
            },
            Self::UnknownStep { several: false, .. } => {
                "give a step by its name, or by its place: jobctl runs show RUN names them"
            }
            Self::UnknownStep { several: true, .. } => "give its place, the number in front of its name",
            Self::InputRefused { .. } => "jobctl runs show RUN --json has the input that the run began with",
            Self::OwnedElsewhere { .. } | Self::AlreadyDriven { .. } => "jobctl runs show RUN says where it stands",
            Self::Corrupt { .. } => "keep a copy of the state directory and report this",
        };
        Some(hint.to_owned())
    }
}

/// Whether SQLite found the database itself damaged.
fn is_damaged(error: &sqlx::Error) -> bool {
    const CORRUPT: i32 = 11;
    const NOT_A_DATABASE: i32 = 26;
    sqlite_code(error).is_some_and(|code| matches!(code, CORRUPT | NOT_A_DATABASE))
}

/// SQLite's own number for the error, without the upper bits that say which kind of it.
pub(crate) fn sqlite_code(error: &sqlx::Error) -> Option<i32> {
    let code = error.as_database_error()?.code()?;
    code.parse::<i32>().ok().map(|code| code & 0xff)
}

/// How writing to the journal failed, for the run that asked.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// Another owner took the run over, or it ended.
    Fenced,
    /// The database refused.
    Engine(EngineError),
}

/// Names what was being done when the database refused.
pub(crate) fn storage(doing: &'static str) -> impl FnOnce(sqlx::Error) -> EngineError {
    move |source| EngineError::Storage { doing, source }
}
