//! What is to be done about what a dead process left behind: decisions only, made from what the journal holds.

use crate::retry::RetryPolicy;
use crate::state::{RunState, StepState};

/// What is known of the process that a run belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerState {
    /// The run belongs to no process.
    None,
    /// Its lock is held, or its lease runs.
    Alive,
    /// Its lock is free, or its lease ran out where the lock cannot tell.
    Dead,
    /// It is this process, which works on the run.
    HereActive,
    /// It is this process, which does not work on the run: an error of the database stopped it.
    HereIdle,
}

/// What is to be done about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPlan {
    /// Nothing: it ended, somebody works on it, or a person must act.
    Leave,
    /// It waits in the queue for whoever comes.
    Claim,
    /// Its owner is dead, or lost it: take it over with a new epoch.
    TakeOver,
}

/// What is to be done about a run in `state` whose owner is `owner`.
#[must_use]
pub const fn plan_run(state: RunState, owner: OwnerState) -> RunPlan {
    match state {
        RunState::Queued => RunPlan::Claim,
        RunState::Running | RunState::Waiting => match owner {
            OwnerState::Alive | OwnerState::HereActive => RunPlan::Leave,
            OwnerState::None | OwnerState::Dead | OwnerState::HereIdle => RunPlan::TakeOver,
        },
        RunState::Paused | RunState::Blocked | RunState::Succeeded | RunState::Failed | RunState::Cancelled => {
            RunPlan::Leave
        }
    }
}

/// Whether any run of `owner` is to be taken over. Which ones, [`plan_run`] says: an owner is asked for its life once,
/// however many runs it left.
#[must_use]
pub fn leaves_runs_behind(owner: OwnerState) -> bool {
    RunState::ALL.into_iter().any(|state| plan_run(state, owner) == RunPlan::TakeOver)
}

/// The step that a resumed run asks for and that has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenStep {
    /// What the journal says; `None` where it holds nothing of the step.
    pub recorded: Option<OpenRecord>,
    /// Whether the run was taken from a process that died, and this is the first thing that it asks for without a
    /// result: the step that was open.
    pub crashed: bool,
}

/// What the journal holds of an open step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenRecord {
    /// Its state.
    pub state: StepState,
    /// Its latest attempt, from 1.
    pub attempt: u32,
    /// How many of its attempts no longer count, because a person resumed the run after them.
    pub forgiven: u32,
    /// When the next attempt is due.
    pub next_attempt_at_ms: Option<i64>,
}

/// What is to be done about an open step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepPlan {
    /// Begin attempt `attempt`.
    Attempt {
        /// The number of the attempt that begins.
        attempt: u32,
        /// The attempt that was lost with its process, to be recorded first.
        lost: Option<u32>,
        /// How long to wait first, in milliseconds.
        wait_ms: u64,
    },
    /// Every attempt that the policy allows is used up, the last by a crash: a person must decide.
    Exhausted {
        /// The attempt that was lost with its process, where it is still to be recorded.
        lost: Option<u32>,
    },
    /// The step has a result: this is not an open step.
    Recorded,
}

/// Whether the start of attempt `attempt` must be in the journal before its body begins. Only the first attempt of a step
/// with more than one may be written behind; so a crash can leave at most one attempt unrecorded, and which one is known.
#[must_use]
pub fn start_comes_first(policy: &RetryPolicy, attempt: u32) -> bool {
    attempt > 1 || policy.allowed_attempts() == 1
}

/// What is to be done about `open` at `now_ms`. An attempt whose process died is charged, recorded or not: an attempt of
/// three that crashed leaves two.
#[must_use]
pub fn plan_step(open: OpenStep, policy: &RetryPolicy, now_ms: i64) -> StepPlan {
    const FIRST: StepPlan = StepPlan::Attempt { attempt: 1, lost: None, wait_ms: 0 };
    let Some(record) = open.recorded else {
        return if open.crashed && !start_comes_first(policy, 1) { after_loss(1, 0, policy) } else { FIRST };
    };
    match record.state {
        StepState::Succeeded | StepState::Failed | StepState::Abandoned => StepPlan::Recorded,
        StepState::Pending => FIRST,
        StepState::Running => after_loss(record.attempt, record.forgiven, policy),
        StepState::Retrying => {
            // Each later start is recorded before its body, so this attempt is the last that began.
            if record.attempt.saturating_sub(record.forgiven) >= policy.allowed_attempts() {
                return StepPlan::Exhausted { lost: None };
            }
            let due = record.next_attempt_at_ms.unwrap_or(now_ms);
            // The clock may have jumped since: never wait longer than the policy's longest delay.
            let wait_ms = u64::try_from(due.saturating_sub(now_ms)).unwrap_or(0).min(policy.cap_ms);
            StepPlan::Attempt { attempt: record.attempt.saturating_add(1), lost: None, wait_ms }
        }
    }
}

fn after_loss(lost: u32, forgiven: u32, policy: &RetryPolicy) -> StepPlan {
    if lost.saturating_sub(forgiven) >= policy.allowed_attempts() {
        StepPlan::Exhausted { lost: Some(lost) }
    } else {
        StepPlan::Attempt { attempt: lost.saturating_add(1), lost: Some(lost), wait_ms: 0 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const THREE: RetryPolicy =
        RetryPolicy { first_delay_ms: 10, factor: 2.0, cap_ms: 1_000, attempts: 3, jitter_percent: 0 };

    fn record(state: StepState, attempt: u32, forgiven: u32) -> OpenStep {
        OpenStep { recorded: Some(OpenRecord { state, attempt, forgiven, next_attempt_at_ms: None }), crashed: true }
    }

    #[test]
    fn a_run_is_taken_over_only_from_the_dead() {
        use OwnerState::{Alive, Dead, HereActive, HereIdle, None};
        for owner in [None, Alive, Dead, HereActive, HereIdle] {
            let expected = match owner {
                Alive | HereActive => RunPlan::Leave,
                None | Dead | HereIdle => RunPlan::TakeOver,
            };
            assert_eq!(plan_run(RunState::Running, owner), expected, "{owner:?}");
            assert_eq!(plan_run(RunState::Waiting, owner), expected, "{owner:?}");
            assert_eq!(plan_run(RunState::Queued, owner), RunPlan::Claim);
            for state in RunState::ALL.into_iter().filter(|state| !state.needs_owner() && *state != RunState::Queued) {
                assert_eq!(plan_run(state, owner), RunPlan::Leave, "{state} {owner:?}");
            }
            assert_eq!(leaves_runs_behind(owner), expected == RunPlan::TakeOver, "{owner:?}");
        }
    }

    #[test]
    fn a_crashed_attempt_is_charged_recorded_or_not() {
        let unrecorded = OpenStep { recorded: None, crashed: true };
        let second = StepPlan::Attempt { attempt: 2, lost: Some(1), wait_ms: 0 };
        assert_eq!(plan_step(unrecorded, &THREE, 0), second);
        assert_eq!(plan_step(record(StepState::Running, 1, 0), &THREE, 0), second);
        let third = StepPlan::Attempt { attempt: 3, lost: Some(2), wait_ms: 0 };
        assert_eq!(plan_step(record(StepState::Running, 2, 0), &THREE, 0), third);
        assert_eq!(plan_step(record(StepState::Running, 3, 0), &THREE, 0), StepPlan::Exhausted { lost: Some(3) });
    }

    #[test]
    fn nothing_is_charged_without_a_crash() {
        let first = StepPlan::Attempt { attempt: 1, lost: None, wait_ms: 0 };
        assert_eq!(plan_step(OpenStep { recorded: None, crashed: false }, &THREE, 0), first);
        // A start that comes first and is not recorded did not happen.
        assert_eq!(plan_step(OpenStep { recorded: None, crashed: true }, &RetryPolicy::NEVER, 0), first);
    }

    #[test]
    fn a_delay_goes_on_where_it_was_and_a_clock_that_jumped_is_not_waited_for() {
        let open = |due| OpenStep {
            recorded: Some(OpenRecord {
                state: StepState::Retrying,
                attempt: 1,
                forgiven: 0,
                next_attempt_at_ms: Some(due),
            }),
            crashed: true,
        };
        assert_eq!(plan_step(open(500), &THREE, 100), StepPlan::Attempt { attempt: 2, lost: None, wait_ms: 400 });
        assert_eq!(plan_step(open(500), &THREE, 900), StepPlan::Attempt { attempt: 2, lost: None, wait_ms: 0 });
        let jumped = plan_step(open(30 * 86_400_000), &THREE, 0);
        assert_eq!(jumped, StepPlan::Attempt { attempt: 2, lost: None, wait_ms: 1_000 });
    }

    #[test]
    fn a_person_grants_new_attempts() {
        let exhausted = StepPlan::Exhausted { lost: None };
        assert_eq!(plan_step(record(StepState::Retrying, 3, 0), &THREE, 0), exhausted);
        let fourth = StepPlan::Attempt { attempt: 4, lost: None, wait_ms: 0 };
        assert_eq!(plan_step(record(StepState::Retrying, 3, 3), &THREE, 0), fourth);
        let crashed = StepPlan::Attempt { attempt: 4, lost: Some(3), wait_ms: 0 };
        assert_eq!(plan_step(record(StepState::Running, 3, 3), &THREE, 0), crashed);
    }

    #[test]
    fn a_recorded_step_is_never_run_again() {
        for state in [StepState::Succeeded, StepState::Failed, StepState::Abandoned] {
            assert_eq!(plan_step(record(state, 1, 0), &THREE, 0), StepPlan::Recorded, "{state}");
        }
    }

    proptest! {
        /// Whatever was recorded, a step never gets more bodies than its policy allows since a person last resumed it.
        #[test]
        fn crashes_never_add_attempts(attempts in 2..20_u32, crash_recorded in proptest::collection::vec(any::<bool>(), 40)) {
            let policy = RetryPolicy { attempts, ..THREE };
            let mut journal: Option<OpenRecord> = None;
            let mut bodies = 0;
            for recorded in crash_recorded {
                match plan_step(OpenStep { recorded: journal, crashed: bodies > 0 }, &policy, 0) {
                    StepPlan::Attempt { attempt, .. } => {
                        bodies += 1;
                        prop_assert_eq!(attempt, bodies);
                        if recorded || start_comes_first(&policy, attempt) {
                            let state = StepState::Running;
                            journal = Some(OpenRecord { state, attempt, forgiven: 0, next_attempt_at_ms: None });
                        }
                    }
                    StepPlan::Exhausted { .. } => break,
                    StepPlan::Recorded => prop_assert!(false, "nothing has a result"),
                }
            }
            prop_assert_eq!(bodies, attempts);
        }
    }
}
