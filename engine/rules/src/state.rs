//! The states of a run and of a step, and what leads from one to the other (DESIGN §2.2).
//!
//! Live writes and recovery both ask these two tables; no table has a wildcard over states, so a new state does not
//! compile until each of its transitions is decided.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a run stands. In the order in which a run may come there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Waits for a process, or for its concurrency key.
    Queued,
    /// A process works on it.
    Running,
    /// Waits for a time, a signal or a child.
    Waiting,
    /// A person holds it.
    Paused,
    /// A person must decide or mend something; its failure says what.
    Blocked,
    /// Ended with an output.
    Succeeded,
    /// Ended with a failure.
    Failed,
    /// Ended by a person.
    Cancelled,
}

/// What happens to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEvent {
    /// A process takes it from the queue.
    Claim,
    /// It waits for a time, a signal or a child.
    Wait,
    /// What it waited for came.
    Wake,
    /// A person holds it.
    Pause,
    /// It needs a person.
    Block,
    /// A person lets it go on.
    Resume,
    /// A person lets it go on, in whichever process comes first.
    Requeue,
    /// Another process takes it from a dead owner.
    TakeOver,
    /// Its function returned an output.
    Succeed,
    /// Its function returned a failure.
    Fail,
    /// A person ends it.
    Cancel,
}

/// A transition that the table does not have: a fault of the engine, never of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{subject} that is {state} cannot {event}")]
pub struct IllegalTransition {
    /// `a run` or `a step`.
    pub subject: &'static str,
    /// The state it is in.
    pub state: &'static str,
    /// What was asked for.
    pub event: &'static str,
}

impl RunState {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Running,
        Self::Waiting,
        Self::Paused,
        Self::Blocked,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Its name in the journal and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Blocked => "blocked",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether the run ended: a terminal state never changes.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed | Self::Cancelled => true,
            Self::Queued | Self::Running | Self::Waiting | Self::Paused | Self::Blocked => false,
        }
    }

    /// Whether a process must be alive behind it.
    #[must_use]
    pub const fn needs_owner(self) -> bool {
        match self {
            Self::Running | Self::Waiting => true,
            Self::Queued | Self::Paused | Self::Blocked | Self::Succeeded | Self::Failed | Self::Cancelled => false,
        }
    }

    /// Whether it holds its concurrency key. A queued run stands in line for it.
    #[must_use]
    pub const fn holds_key(self) -> bool {
        match self {
            Self::Running | Self::Waiting | Self::Paused | Self::Blocked => true,
            Self::Queued | Self::Succeeded | Self::Failed | Self::Cancelled => false,
        }
    }

    /// The state after `event`.
    ///
    /// # Errors
    /// [`IllegalTransition`] when the table has no such transition.
    pub const fn after(self, event: RunEvent) -> Result<Self, IllegalTransition> {
        use RunEvent::{Block, Cancel, Claim, Fail, Pause, Requeue, Resume, Succeed, TakeOver, Wait, Wake};
        let illegal = Err(IllegalTransition { subject: "a run", state: self.as_str(), event: event.as_str() });
        match self {
            Self::Queued => match event {
                Claim => Ok(Self::Running),
                Cancel => Ok(Self::Cancelled),
                Wait | Wake | Pause | Block | Resume | Requeue | TakeOver | Succeed | Fail => illegal,
            },
            Self::Running => match event {
                TakeOver => Ok(Self::Running),
                Wait => Ok(Self::Waiting),
                Pause => Ok(Self::Paused),
                Block => Ok(Self::Blocked),
                Succeed => Ok(Self::Succeeded),
                Fail => Ok(Self::Failed),
                Cancel => Ok(Self::Cancelled),
                Claim | Wake | Resume | Requeue => illegal,
            },
            // A run that waited is run again from the top by whoever takes it over, and waits again.
            Self::Waiting => match event {
                Wake | TakeOver => Ok(Self::Running),
                Pause => Ok(Self::Paused),
                Block => Ok(Self::Blocked),
                Cancel => Ok(Self::Cancelled),
                Claim | Wait | Resume | Requeue | Succeed | Fail => illegal,
            },
            Self::Paused | Self::Blocked => match event {
                Resume => Ok(Self::Running),
                Requeue => Ok(Self::Queued),
                Cancel => Ok(Self::Cancelled),
                Claim | Wait | Wake | Pause | Block | TakeOver | Succeed | Fail => illegal,
            },
            Self::Succeeded | Self::Failed | Self::Cancelled => illegal,
        }
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl RunEvent {
    /// Every event.
    pub const ALL: [Self; 11] = [
        Self::Claim,
        Self::Wait,
        Self::Wake,
        Self::Pause,
        Self::Block,
        Self::Resume,
        Self::Requeue,
        Self::TakeOver,
        Self::Succeed,
        Self::Fail,
        Self::Cancel,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Claim => "be claimed",
            Self::Wait => "wait",
            Self::Wake => "be woken",
            Self::Pause => "be paused",
            Self::Block => "be blocked",
            Self::Resume => "be resumed",
            Self::Requeue => "be put back into the queue",
            Self::TakeOver => "be taken over",
            Self::Succeed => "succeed",
            Self::Fail => "fail",
            Self::Cancel => "be cancelled",
        }
    }
}

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    /// Asked for, not begun.
    Pending,
    /// An attempt is under way.
    Running,
    /// An attempt ended without a result and another will follow, at a time or after a person.
    Retrying,
    /// Has its output, for ever.
    Succeeded,
    /// Has its failure, for ever.
    Failed,
    /// Belongs to an iteration of a section that was started again; kept to be read.
    Abandoned,
}

/// What happens to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepEvent {
    /// An attempt begins.
    Start,
    /// The attempt gave an output.
    Succeed,
    /// The step failed for good.
    Fail,
    /// The attempt failed, and another follows.
    Retry,
    /// The attempt's process died.
    Crash,
    /// The section that it belongs to starts again.
    Abandon,
}

impl StepState {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Running, Self::Retrying, Self::Succeeded, Self::Failed, Self::Abandoned];

    /// Its name in the journal.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
        }
    }

    /// The state of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether the step has a result, which never changes.
    #[must_use]
    pub const fn is_recorded(self) -> bool {
        match self {
            Self::Succeeded | Self::Failed => true,
            Self::Pending | Self::Running | Self::Retrying | Self::Abandoned => false,
        }
    }

    /// The state after `event`.
    ///
    /// # Errors
    /// [`IllegalTransition`] when the table has no such transition.
    pub const fn after(self, event: StepEvent) -> Result<Self, IllegalTransition> {
        use StepEvent::{Abandon, Crash, Fail, Retry, Start, Succeed};
        let illegal = Err(IllegalTransition { subject: "a step", state: self.as_str(), event: event.as_str() });
        match self {
            // A start may be written behind its body: the journal then sees the result, or the crash, of a pending step.
            Self::Pending => match event {
                Start => Ok(Self::Running),
                Crash => Ok(Self::Retrying),
                Fail => Ok(Self::Failed),
                Abandon => Ok(Self::Abandoned),
                Succeed | Retry => illegal,
            },
            Self::Running => match event {
                Succeed => Ok(Self::Succeeded),
                Fail => Ok(Self::Failed),
                Retry | Crash => Ok(Self::Retrying),
                Abandon => Ok(Self::Abandoned),
                Start => illegal,
            },
            Self::Retrying => match event {
                Start => Ok(Self::Running),
                Fail => Ok(Self::Failed),
                Abandon => Ok(Self::Abandoned),
                Succeed | Retry | Crash => illegal,
            },
            Self::Succeeded | Self::Failed => match event {
                Abandon => Ok(Self::Abandoned),
                Start | Succeed | Fail | Retry | Crash => illegal,
            },
            Self::Abandoned => illegal,
        }
    }
}

impl fmt::Display for StepState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl StepEvent {
    /// Every event.
    pub const ALL: [Self; 6] = [Self::Start, Self::Succeed, Self::Fail, Self::Retry, Self::Crash, Self::Abandon];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Succeed => "succeed",
            Self::Fail => "fail",
            Self::Retry => "be tried again",
            Self::Crash => "crash",
            Self::Abandon => "be abandoned",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_runs() {
        let mut table = String::new();
        for state in RunState::ALL {
            for event in RunEvent::ALL {
                if let Ok(next) = state.after(event) {
                    table.push_str(&format!("{state} {event:?} {next}\n"));
                }
            }
        }
        assert_eq!(
            table,
            "queued Claim running\nqueued Cancel cancelled\n\
             running Wait waiting\nrunning Pause paused\nrunning Block blocked\nrunning TakeOver running\n\
             running Succeed succeeded\nrunning Fail failed\nrunning Cancel cancelled\n\
             waiting Wake running\nwaiting Pause paused\nwaiting Block blocked\nwaiting TakeOver running\n\
             waiting Cancel cancelled\n\
             paused Resume running\npaused Requeue queued\npaused Cancel cancelled\n\
             blocked Resume running\nblocked Requeue queued\nblocked Cancel cancelled\n"
        );
    }

    #[test]
    fn the_table_of_steps() {
        let mut table = String::new();
        for state in StepState::ALL {
            for event in StepEvent::ALL {
                if let Ok(next) = state.after(event) {
                    table.push_str(&format!("{state} {event:?} {next}\n"));
                }
            }
        }
        assert_eq!(
            table,
            "pending Start running\npending Fail failed\npending Crash retrying\npending Abandon abandoned\n\
             running Succeed succeeded\nrunning Fail failed\nrunning Retry retrying\nrunning Crash retrying\n\
             running Abandon abandoned\n\
             retrying Start running\nretrying Fail failed\nretrying Abandon abandoned\n\
             succeeded Abandon abandoned\nfailed Abandon abandoned\n"
        );
    }

    #[test]
    fn a_terminal_state_never_changes() {
        for state in RunState::ALL.into_iter().filter(|state| state.is_terminal()) {
            for event in RunEvent::ALL {
                assert!(state.after(event).is_err(), "{state} {event:?}");
            }
        }
    }

    #[test]
    fn a_result_never_changes() {
        for state in StepState::ALL.into_iter().filter(|state| state.is_recorded()) {
            for event in StepEvent::ALL {
                assert!(matches!(state.after(event), Err(_) | Ok(StepState::Abandoned)), "{state} {event:?}");
            }
        }
    }

    #[test]
    fn every_state_that_holds_a_key_or_an_owner_can_end() {
        for state in RunState::ALL.into_iter().filter(|state| !state.is_terminal()) {
            assert!(state.after(RunEvent::Cancel).is_ok_and(RunState::is_terminal), "{state}");
        }
    }

    #[test]
    fn names_read_back() {
        for state in RunState::ALL {
            assert_eq!(RunState::from_name(state.as_str()), Some(state));
        }
        for state in StepState::ALL {
            assert_eq!(StepState::from_name(state.as_str()), Some(state));
        }
        assert_eq!(RunState::from_name("abandoned"), None);
    }
}
