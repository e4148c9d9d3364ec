//! How a failure is told apart and recorded.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is to be done about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// Trying again may help: the step's retry policy decides when and how often.
    Retry,
    /// Trying again cannot help: the step fails, and with it the run.
    Terminal,
    /// A person must decide or mend something: the run is blocked until then and goes on at this step.
    Operator,
}

/// A failure as it is recorded: a wire type, so that a replayed failure is equal, byte for byte, to the live one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Which kind of failure, stable and dotted, such as `codr.unknown_member`. A refusal by a rule of the catalog
    /// begins with `catalog.`.
    pub code: String,
    /// What was found and what was expected, in one or more lines.
    pub message: String,
    /// What is to be done.
    pub disposition: Disposition,
    /// What a person can do about it, with the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Failure {}

/// An error enum of an activity: each variant has a code, a disposition and, where there is one, a hint.
pub trait ActivityError: std::error::Error {
    /// The stable, dotted code of this variant.
    fn code(&self) -> &'static str;
    /// What is to be done about this variant.
    fn disposition(&self) -> Disposition;
    /// What a person can do, with the command.
    fn hint(&self) -> Option<String> {
        None
    }
    /// The failure as it is recorded. The message holds the error and its sources, each once.
    fn to_failure(&self) -> Failure {
        let mut message = self.to_string();
        let mut source = self.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !message.contains(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            source = cause.source();
        }
        Failure { code: self.code().to_owned(), message, disposition: self.disposition(), hint: self.hint() }
    }
}

/// For an activity that cannot fail.
impl ActivityError for std::convert::Infallible {
    fn code(&self) -> &'static str {
        match *self {}
    }

    fn disposition(&self) -> Disposition {
        match *self {}
    }
}
