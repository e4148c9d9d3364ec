//! Why a program did not end well.

use std::io;
use std::path::PathBuf;

use engine_rules::failure::{ActivityError, Disposition};

use crate::hint::{quoted, word};

/// Why a program did not end well.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no such program.
    #[error("there is no program {program:?}")]
    NotFound {
        /// The program.
        program: String,
    },
    /// The program is there and could not be started.
    #[error("the program {program:?} could not be started")]
    NotStarted {
        /// The program.
        program: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Its working folder is not there.
    #[error("the working folder {} of the program {program:?} is not there, or is no folder", folder.display())]
    NoFolder {
        /// The program.
        program: String,
        /// The folder.
        folder: PathBuf,
    },
    /// It ended with another code than 0.
    #[error("the program {program:?} ended with exit code {code}, expected 0{}", said(stderr))]
    Failed {
        /// The program.
        program: String,
        /// Its exit code.
        code: i32,
        /// The last lines of its standard error.
        stderr: String,
    },
    /// A signal ended it that this process did not send.
    #[error("the program {program:?} was ended by signal {signal}{}{}", signal_name(*signal), said(stderr))]
    Signalled {
        /// The program.
        program: String,
        /// The signal.
        signal: i32,
        /// The last lines of its standard error.
        stderr: String,
    },
    /// It ran longer than it may.
    #[error("the program {program:?} ran longer than {timeout_ms} ms and was ended{}", said(stderr))]
    TimedOut {
        /// The program.
        program: String,
        /// How long it may run, in milliseconds.
        timeout_ms: u64,
        /// The last lines of its standard error.
        stderr: String,
    },
    /// Its step was told to stop.
    #[error("the program {program:?} was ended, because its step was told to stop{}", said(stderr))]
    Cancelled {
        /// The program.
        program: String,
        /// The last lines of its standard error.
        stderr: String,
    },
    /// The program of an earlier attempt, or something that it started, still lives.
    #[error(
        "the program {program:?} of an earlier attempt of this step still lives ({holder}), or what it started does"
    )]
    StillRuns {
        /// The program.
        program: String,
        /// What the lock says of who took it.
        holder: String,
        /// The lock.
        lock: PathBuf,
    },
    /// Processes of its group did not die.
    #[error("processes of the group {group} that the program {program:?} started cannot be ended")]
    Survivors {
        /// The program.
        program: String,
        /// The process group.
        group: i32,
    },
    /// The process that watches over the program failed or was killed.
    #[error("the process that watches over the program {program:?} could not {doing}")]
    Supervisor {
        /// The program.
        program: String,
        /// What was to be done.
        doing: String,
        /// What the system said to it, where it could still tell.
        #[source]
        source: Option<io::Error>,
    },
    /// This process could not do its own part.
    #[error("this process could not {doing}")]
    Io {
        /// What was to be done.
        doing: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl CommandError {
    pub(super) fn not_started(program: String, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { program },
            _ => Self::NotStarted { program, source },
        }
    }
}

/// What the program said last, as the end of a message.
fn said(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!("; the last lines of its standard error:\n{stderr}") }
}

/// The names of the signals that have one number on all systems.
fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        6 => " (SIGABRT)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

/// Names what was being done when the system refused.
pub(super) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> CommandError {
    move |source| CommandError::Io { doing, source }
}

impl ActivityError for CommandError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "command.not_found",
            Self::NotStarted { .. } => "command.not_started",
            Self::NoFolder { .. } => "command.no_folder",
            Self::Failed { .. } => "command.failed",
            Self::Signalled { .. } => "command.signalled",
            Self::TimedOut { .. } => "command.timed_out",
            Self::Cancelled { .. } => "command.cancelled",
            Self::StillRuns { .. } => "command.still_runs",
            Self::Survivors { .. } => "command.survivors",
            Self::Supervisor { .. } => "command.supervisor",
            Self::Io { .. } => "command.io",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            // What a program's failure means is known to who asked for it; what made it fail may pass.
            Self::Failed { .. }
            | Self::Signalled { .. }
            | Self::TimedOut { .. }
            | Self::Cancelled { .. }
            | Self::StillRuns { .. }
            | Self::Supervisor { .. } => Disposition::Retry,
            Self::NotFound { .. }
            | Self::NotStarted { .. }
            | Self::NoFolder { .. }
            | Self::Survivors { .. }
            | Self::Io { .. } => Disposition::Operator,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotFound { program } => format!(
                "install it, or name it by its whole path in jobctl.toml (command -v {} tells it); then jobctl runs resume \
                 RUN",
                quoted(program)
            ),
            Self::NotStarted { program, .. } => {
                format!("see that this user may execute it (ls -l {}); then jobctl runs resume RUN", quoted(program))
            }
            Self::NoFolder { folder, .. } => {
                format!("create it (mkdir -p {}) or name another; then jobctl runs resume RUN", word(folder))
            }
            Self::Failed { program, .. } => {
                format!("try {} by hand; jobctl runs show RUN holds what it said", quoted(program))
            }
            Self::Signalled { .. } => {
                "see what ended it (memory, a person): journalctl -k, or dmesg; jobctl runs resume RUN tries again"
                    .to_owned()
            }
            Self::TimedOut { .. } => "see why it takes so long, or give it more time in jobctl.toml".to_owned(),
            Self::Cancelled { .. } => "nothing is to be done".to_owned(),
            Self::StillRuns { lock, .. } => {
                format!("see who it is (fuser -v {}) and end it; then jobctl runs resume RUN", word(lock))
            }
            Self::Survivors { group, .. } => {
                format!(
                    "see who they are (ps -g {group}) and end them (sudo kill -9 -- -{group}); then jobctl runs resume RUN"
                )
            }
            Self::Supervisor { .. } => {
                "see what ended it (memory, a person): journalctl -k, or dmesg; jobctl runs resume RUN tries again"
                    .to_owned()
            }
            Self::Io { .. } => {
                "see that the state directory may be written to, and that this user may have more processes and files \
                 (ulimit -a); then jobctl runs resume RUN"
                    .to_owned()
            }
        })
    }
}
