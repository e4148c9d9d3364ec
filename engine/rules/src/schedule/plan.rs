//! What becomes of the ticks that are due.

use std::fmt;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::cron::CronExpression;
use super::ticks::{Cursor, Tick, Ticks};

/// How late a tick may be decided and still be on time, in milliseconds: one minute. A daemon that is busy, or that is
/// started anew, misses nothing by that; a tick that is older was missed, and the misfire policy decides.
pub const ON_TIME_TOLERANCE_MS: i64 = 60_000;

/// How many ticks are decided at once: 256, few enough that their transaction holds up no other for long. A month of
/// minutely ticks are 43,200.
pub const TICKS_AT_ONCE: usize = 256;

/// What becomes of ticks that were missed. None that is older than the catch-up window fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfire {
    /// One run for all of them, at the newest; none where a later tick is on time, since that one makes up for them.
    RunOnce,
    /// None fires.
    Skip,
    /// Each fires.
    RunAll,
}

impl Misfire {
    /// Its name in the configuration and the journal.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunOnce => "run-once",
            Self::Skip => "skip",
            Self::RunAll => "run-all",
        }
    }

    /// The policy of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::RunOnce, Self::Skip, Self::RunAll].into_iter().find(|policy| policy.as_str() == name)
    }
}

impl fmt::Display for Misfire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// When a schedule fires, and what it does about ticks that were missed.
#[derive(Debug, Clone)]
pub struct Timing {
    /// The expression.
    pub cron: CronExpression,
    /// The zone that it is matched in.
    pub time_zone: TimeZone,
    /// What becomes of missed ticks.
    pub misfire: Misfire,
    /// How old a missed tick may be and still fire, in milliseconds.
    pub catch_up_ms: i64,
}

impl Timing {
    /// The ticks after `cursor`.
    #[must_use]
    pub fn ticks_after(&self, cursor: Cursor) -> Ticks<'_> {
        Ticks::after(&self.cron, &self.time_zone, cursor)
    }
}

/// Whether a schedule fires at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It does.
    Live,
    /// A person paused it: its ticks are skipped.
    Paused {
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// Its times are about to change: what the old times left undecided is skipped.
    Changed,
    /// It left the configuration: what it left undecided is skipped.
    Removed,
}

/// Why a tick started no run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// A person paused the schedule.
    Paused {
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// The times of the schedule changed before the tick was decided.
    Changed,
    /// The schedule left the configuration before the tick was decided.
    Removed,
    /// It is older than the catch-up window.
    TooOld {
        /// How late it was, in milliseconds.
        late_ms: i64,
        /// The window, in milliseconds.
        catch_up_ms: i64,
    },
    /// It was missed, and the policy is `skip`.
    Missed {
        /// How late it was, in milliseconds.
        late_ms: i64,
    },
    /// It was missed, and the policy is `run-once`: a later tick fires for it.
    MadeUpFor {
        /// How late it was, in milliseconds.
        late_ms: i64,
    },
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused { by, reason } => write!(f, "the schedule is paused by {by}: {reason}"),
            Self::Changed => f.write_str("the schedule's times were changed before this tick was decided"),
            Self::Removed => f.write_str("the schedule left the configuration before this tick was decided"),
            Self::TooOld { late_ms, catch_up_ms } => write!(
                f,
                "missed by {}, which is more than the catch-up window of {}",
                span_words(*late_ms),
                span_words(*catch_up_ms)
            ),
            Self::Missed { late_ms } => {
                write!(f, "missed by {}, and the policy skip runs no missed tick", span_words(*late_ms))
            }
            Self::MadeUpFor { late_ms } => write!(
                f,
                "missed by {}; the policy run-once starts one run for all ticks that were missed, and a later one is due",
                span_words(*late_ms)
            ),
        }
    }
}

/// What becomes of one tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decided {
    /// It starts a run, unless its concurrency key is held.
    Fire {
        /// How late, in milliseconds.
        late_ms: i64,
    },
    /// It starts none.
    Skip(SkipReason),
}

/// A tick and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The tick.
    pub tick: Tick,
    /// What becomes of it.
    pub decided: Decided,
}

/// What is to be carried out at once: the decisions and the cursor in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TickPlan {
    /// The ticks, in the order in which they were due.
    pub decisions: Vec<Decision>,
    /// The cursor once they are recorded.
    pub cursor: Cursor,
    /// Whether more are due: plan again from the cursor.
    pub is_more: bool,
}

/// Decides the ticks that are due at `now`, at most `most` of them, oldest first. The same answer for the same arguments;
/// and cutting the work into batches decides nothing differently, since each tick is judged by itself and its successor.
#[must_use]
pub fn plan_ticks(timing: &Timing, cursor: Cursor, now: Timestamp, standing: &Standing, most: usize) -> TickPlan {
    let mut plan = TickPlan { decisions: Vec::new(), cursor, is_more: false };
    let mut due = timing.ticks_after(cursor).take_while(|tick| tick.at <= now).peekable();
    while plan.decisions.len() < most {
        let Some(tick) = due.next() else { return plan };
        let decided = decide(timing, &tick, due.peek(), now, standing);
        plan.cursor = tick.cursor();
        plan.decisions.push(Decision { tick, decided });
    }
    plan.is_more = due.peek().is_some();
    plan
}

fn decide(timing: &Timing, tick: &Tick, next_due: Option<&Tick>, now: Timestamp, standing: &Standing) -> Decided {
    let late_ms = now.as_millisecond().saturating_sub(tick.at.as_millisecond());
    let catch_up_ms = timing.catch_up_ms;
    match standing {
        Standing::Paused { by, reason } => {
            return Decided::Skip(SkipReason::Paused { by: by.clone(), reason: reason.clone() });
        }
        Standing::Changed => return Decided::Skip(SkipReason::Changed),
        Standing::Removed => return Decided::Skip(SkipReason::Removed),
        Standing::Live => {}
    }
    if late_ms <= ON_TIME_TOLERANCE_MS {
        return Decided::Fire { late_ms };
    }
    match timing.misfire {
        Misfire::Skip => Decided::Skip(SkipReason::Missed { late_ms }),
        Misfire::RunOnce | Misfire::RunAll if late_ms > catch_up_ms => {
            Decided::Skip(SkipReason::TooOld { late_ms, catch_up_ms })
        }
        Misfire::RunAll => Decided::Fire { late_ms },
        Misfire::RunOnce => match next_due {
            Some(_) => Decided::Skip(SkipReason::MadeUpFor { late_ms }),
            None => Decided::Fire { late_ms },
        },
    }
}

/// A span for a person, by its two largest units: `2 d 4 h`, `3 h 20 min`, `78 s`.
#[must_use]
pub fn span_words(ms: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    let seconds = ms.max(0) / 1000;
    let (large, large_name, small, small_name) = match seconds {
        DAY.. => (seconds / DAY, "d", seconds % DAY / HOUR, "h"),
        HOUR..DAY => (seconds / HOUR, "h", seconds % HOUR / MINUTE, "min"),
        120..HOUR => (seconds / MINUTE, "min", seconds % MINUTE, "s"),
        _ => (seconds, "s", 0, ""),
    };
    if small == 0 { format!("{large} {large_name}") } else { format!("{large} {large_name} {small} {small_name}") }
}

#[cfg(test)]
mod tests;
