//! When a schedule fires (DESIGN §2.2, Schedules; §8, D8): the cron expression, its ticks in a time zone, and what becomes
//! of each tick that is due.
//!
//! Nothing here asks what time it is or looks a time zone up: both come in as values.

mod cron;
mod plan;
mod ticks;

pub use self::cron::{CronExpression, CronFault, CronKind, Field};
pub use plan::{
    Decided, Decision, Misfire, ON_TIME_TOLERANCE_MS, SkipReason, Standing, TICKS_AT_ONCE, TickPlan, Timing,
    plan_ticks, span_words,
};
pub use ticks::{Cursor, Mapping, Tick, TickId, Ticks};
