//! Why the engine could not do what it was asked for.

use std::path::PathBuf;

use engine_rules::failure::{ActivityError, Disposition};
use engine_rules::limits::PayloadTooLarge;
use engine_rules::schedule::CronFault;
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
    /// A payload is larger than the journal holds.
    #[error(transparent)]
    PayloadTooLarge(#[from] PayloadTooLarge),
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
    /// The idempotency key started a run that was purged since: what came of it is no longer known.
    #[error("the idempotency key {key:?} started run {run}, whose record was purged")]
    IdempotencyPurged {
        /// The key.
        key: String,
        /// The run that it started.
        run: RunId,
    },
    /// The run was imported: it is here to be read only.
    #[error("run {run} was imported, so it is here to be read and never goes on here")]
    Imported {
        /// The run.
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
    /// What is left of the run is not whole.
    #[error("the purge of run {run} has begun: what is left of it is not whole, so it cannot be replayed")]
    PurgeBegun {
        /// The run.
        run: RunId,
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
    /// A schedule has a cron expression that is refused.
    #[error("schedule {schedule:?}: {source}")]
    BadCron {
        /// The schedule.
        schedule: String,
        /// What was found, and what was expected.
        source: CronFault,
    },
    /// No time zone of this name is known on this machine.
    #[error("there is no time zone {found:?}; expected an IANA name, such as America/Toronto")]
    UnknownTimeZone {
        /// What was asked for.
        found: String,
    },
    /// A catch-up window that cannot be meant.
    #[error("schedule {schedule:?} has a catch-up window of {found_ms} ms; expected 0 to {most_ms}")]
    BadCatchUp {
        /// The schedule.
        schedule: String,
        /// The window.
        found_ms: i64,
        /// The longest one.
        most_ms: i64,
    },
    /// Two schedules have one name.
    #[error("two schedules are named {schedule:?}; expected a name of its own for each")]
    DuplicateSchedule {
        /// The name.
        schedule: String,
    },
    /// No schedule of this name is known.
    #[error("there is no schedule {schedule:?} in the state database; there are {known:?}")]
    UnknownSchedule {
        /// What was asked for.
        schedule: String,
        /// The schedules there are.
        known: Vec<String>,
    },
    /// The schedule is no more in the configuration.
    #[error("schedule {schedule:?} left the configuration, so it does nothing any more")]
    ScheduleRemoved {
        /// The schedule.
        schedule: String,
    },
    /// A schedule was to be triggered, and another run has its key.
    #[error("schedule {schedule:?} starts runs with the key {key:?}, which run {holder} has")]
    ScheduleHeld {
        /// The schedule.
        schedule: String,
        /// The key.
        key: String,
        /// The run that has it.
        holder: RunId,
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
            Self::PayloadTooLarge(refused) => refused.code(),
            Self::TextTooLong { .. } => "engine.text_too_long",
            Self::IdempotencyConflict { .. } => "engine.idempotency_conflict",
            Self::IdempotencyPurged { .. } => "engine.idempotency_purged",
            Self::Imported { .. } => "engine.imported",
            Self::WrongState { .. } => "engine.wrong_state",
            Self::NotEnded { .. } => "engine.not_ended",
            Self::PurgeBegun { .. } => "engine.purge_begun",
            Self::UnknownStep { .. } => "engine.unknown_step",
            Self::InputRefused { .. } => "engine.input_refused",
            Self::OwnedElsewhere { .. } => "engine.owned_elsewhere",
            Self::AlreadyDriven { .. } => "engine.already_driven",
            Self::Corrupt { .. } => "engine.corrupt",
            Self::BadCron { source, .. } => source.code(),
            Self::UnknownTimeZone { .. } => "schedule.time_zone",
            Self::BadCatchUp { .. } => "schedule.catch_up",
            Self::DuplicateSchedule { .. } => "schedule.duplicate",
            Self::UnknownSchedule { .. } => "schedule.unknown",
            Self::ScheduleRemoved { .. } => "schedule.removed",
            Self::ScheduleHeld { .. } => "schedule.key_held",
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
            | Self::PayloadTooLarge(_)
            | Self::TextTooLong { .. }
            | Self::IdempotencyConflict { .. }
            | Self::IdempotencyPurged { .. }
            | Self::Imported { .. }
            | Self::WrongState { .. }
            | Self::NotEnded { .. }
            | Self::PurgeBegun { .. }
            | Self::UnknownStep { .. }
            | Self::InputRefused { .. }
            | Self::OwnedElsewhere { .. }
            | Self::AlreadyDriven { .. } => Disposition::Terminal,
            Self::BadCron { .. }
            | Self::UnknownTimeZone { .. }
            | Self::BadCatchUp { .. }
            | Self::DuplicateSchedule { .. }
            | Self::UnknownSchedule { .. }
            | Self::ScheduleRemoved { .. } => Disposition::Terminal,
            Self::ScheduleHeld { .. } => Disposition::Retry,
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
            Self::PayloadTooLarge(refused) => return refused.hint(),
            Self::TextTooLong { .. } => "use a shorter one",
            Self::IdempotencyConflict { .. } => "use another key for another input",
            Self::IdempotencyPurged { .. } => {
                "it ran and is not started again under this key before the key's window ends; should it run once more, use \
                 another key"
            }
            Self::Imported { .. } => "jobctl runs show RUN reads it; whatever else is done where it was exported",
            Self::WrongState { state, .. } => match state {
                RunState::Queued => {
                    "it begins when the run that holds its key has ended, where one does (jobctl runs list --in running), \
                     and a process takes it: jobctl serve does"
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
            Self::PurgeBegun { .. } => "start a new run",
            Self::UnknownStep { several: false, .. } => {
                "give a step by its name, or by its place: jobctl runs show RUN names them"
            }
            Self::UnknownStep { several: true, .. } => "give its place, the number in front of its name",
            Self::InputRefused { .. } => "jobctl runs show RUN --json has the input that the run began with",
            Self::OwnedElsewhere { .. } | Self::AlreadyDriven { .. } => "jobctl runs show RUN says where it stands",
            Self::Corrupt { .. } => "keep a copy of the state directory and report this",
            Self::BadCron { source, .. } => return source.hint(),
            Self::UnknownTimeZone { .. } => {
                "correct the name; the zones are those of /usr/share/zoneinfo, or where that is missing those that this \
                 program brings"
            }
            Self::BadCatchUp { .. } => "a day is 86,400,000 ms",
            Self::DuplicateSchedule { .. } => "rename one of them",
            Self::UnknownSchedule { .. } | Self::ScheduleRemoved { .. } => "jobctl schedules list names the schedules",
            Self::ScheduleHeld { .. } => "jobctl runs show RUN says where the run stands; try again once it has ended",
        };
        Some(hint.to_owned())
    }
}

impl EngineError {
    /// Whether the state database is of an older program: [`Engine::open`](crate::Engine::open) brings it up, which a
    /// reader never does.
    #[must_use]
    pub const fn is_older_schema(&self) -> bool {
        matches!(self, Self::Schema { source: sqlx::migrate::MigrateError::VersionTooOld(..), .. })
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
