//! The exit codes, and how a failure comes to one.

use engine_rules::failure::{Disposition, Failure};

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// The run failed.
    Failed = 1,
    /// The command line or the configuration cannot be used.
    Usage = 2,
    /// Refused by a rule of the catalog.
    Refused = 3,
    /// A key or a lock is held by somebody else.
    Busy = 4,
    /// A person must decide.
    Blocked = 5,
    /// There are findings.
    Findings = 6,
}

impl Exit {
    /// The exit code of a run that ended with `failure`.
    #[must_use]
    pub fn of(failure: &Failure) -> Self {
        match failure.disposition {
            Disposition::Operator => Self::Blocked,
            Disposition::Retry | Disposition::Terminal => match failure.code.as_str() {
                "catalog.busy" => Self::Busy,
                code if code.starts_with("catalog.") => Self::Refused,
                _ => Self::Failed,
            },
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// What a command ends with when it does not end well: what to say, and the exit code.
#[derive(Debug)]
pub struct Ended {
    /// What was wrong: the code, the message and the hint.
    pub failure: Failure,
    /// The exit code.
    pub exit: Exit,
}

impl Ended {
    /// A usage error.
    pub fn usage(message: impl Into<String>) -> Self {
        let failure = Failure {
            code: "usage".to_owned(),
            message: message.into(),
            disposition: Disposition::Terminal,
            hint: None,
        };
        Self { failure, exit: Exit::Usage }
    }

    /// This error with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.failure.hint = Some(hint.into());
        self
    }

    /// This error with another exit code.
    #[must_use]
    pub fn with_exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        let exit = Exit::of(&failure);
        Self { failure, exit }
    }
}

impl From<crate::config::ConfigError> for Ended {
    fn from(error: crate::config::ConfigError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<catalog_rules::ids::BadId> for Ended {
    fn from(error: catalog_rules::ids::BadId) -> Self {
        Self::usage(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_its_exit_code() {
        for (code, disposition, exit) in [
            ("codr.unknown_member", Disposition::Terminal, Exit::Failed),
            ("catalog.not_fast_forward", Disposition::Terminal, Exit::Refused),
            ("catalog.busy", Disposition::Retry, Exit::Busy),
            ("engine.replay_mismatch", Disposition::Operator, Exit::Blocked),
        ] {
            let failure = Failure { code: code.to_owned(), message: String::new(), disposition, hint: None };
            assert_eq!(Exit::of(&failure), exit, "{code}");
        }
    }
}
