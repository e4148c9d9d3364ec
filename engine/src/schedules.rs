//! Schedules: what the configuration asks for, which ticks are due, and what a person does about them (DESIGN §2.2,
//! Schedules). [`engine_rules::schedule`] decides; this carries it out.

mod fire;
mod people;
mod stored;
mod sync;

use std::collections::BTreeMap;

use engine_rules::schedule::{Misfire, TickId, Timing};
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::engine::{Engine, Mutation};

use crate::error::EngineError;
use crate::id::RunId;
use crate::start::{KeyPolicy, Started};

/// The longest catch-up window, in milliseconds: 366 days. An older tick is history.
const CATCH_UP_LIMIT_MS: i64 = 366 * 24 * 60 * 60 * 1000;

/// A schedule as the configuration has it.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleDef {
    /// Its name: the same name is the same schedule.
    pub name: String,
    /// The workflow that it starts.
    pub workflow: String,
    /// The input of each run.
    pub input: Value,
    /// When, as five fields or a nickname ([`engine_rules::schedule::CronExpression`]).
    pub cron: String,
    /// The IANA name of the time zone that the expression is matched in.
    pub time_zone: String,
    /// What becomes of ticks that were missed.
    pub misfire: Misfire,
    /// How old a missed tick may be and still start a run, in milliseconds.
    pub catch_up_ms: i64,
    /// The concurrency key of each run.
    pub concurrency_key: Option<String>,
    /// Whether a tick that finds the key held starts nothing, or a run that waits in the queue.
    pub key_policy: KeyPolicy,
    /// The labels of each run.
    pub labels: BTreeMap<String, String>,
}

impl ScheduleDef {
    /// When it fires. Looks the time zone up on this machine.
    ///
    /// # Errors
    /// [`EngineError::BadCron`], [`EngineError::UnknownTimeZone`], [`EngineError::BadCatchUp`].
    pub fn timing(&self) -> Result<Timing, EngineError> {
        if !(0..=CATCH_UP_LIMIT_MS).contains(&self.catch_up_ms) {
            return Err(EngineError::BadCatchUp {
                schedule: self.name.clone(),
                found_ms: self.catch_up_ms,
                most_ms: CATCH_UP_LIMIT_MS,
            });
        }
        let cron = self.cron.parse().map_err(|source| EngineError::BadCron { schedule: self.name.clone(), source })?;
        let time_zone = find_time_zone(&self.time_zone)?;
        Ok(Timing { cron, time_zone, misfire: self.misfire, catch_up_ms: self.catch_up_ms })
    }
}

/// The time zone of this IANA name, as this machine knows it.
///
/// # Errors
/// [`EngineError::UnknownTimeZone`].
pub fn find_time_zone(name: &str) -> Result<TimeZone, EngineError> {
    TimeZone::get(name)
        .ok()
        .filter(|zone| !zone.is_unknown() && zone.iana_name().is_some())
        .ok_or_else(|| EngineError::UnknownTimeZone { found: name.to_owned() })
}

/// What [`Engine::sync_schedules`] found different, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Synced {
    /// New, or back in the configuration.
    pub added: Vec<String>,
    /// Changed.
    pub changed: Vec<String>,
    /// No more in the configuration.
    pub removed: Vec<String>,
}

/// A tick that was to start a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    /// The schedule.
    pub schedule: String,
    /// The tick's name within its schedule and zone: its local time.
    pub tick: TickId,
    /// When it was due.
    pub due_at_ms: i64,
    /// What became of it.
    pub outcome: FiredOutcome,
}

/// What became of a tick that was to start a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FiredOutcome {
    /// This run is in the queue.
    Started(RunId),
    /// Another run has the key, so none was started.
    Held {
        /// The run that has it.
        holder: RunId,
    },
}

impl Engine {
    /// Makes the schedules of the state database those of the configuration. A schedule that is new, or is back, has no
    /// past: its first tick comes after now. Where the expression or the zone changed, what the old times left undecided
    /// is skipped and nothing of the past is replayed; any other change leaves what is undecided to the new policy. One
    /// that left the configuration never fires again; its row and its ticks stay. All definitions are looked at before
    /// anything is written. Safe to repeat, also by several processes at once.
    ///
    /// # Errors
    /// [`EngineError::BadCron`], [`EngineError::UnknownTimeZone`], [`EngineError::BadCatchUp`],
    /// [`EngineError::UnknownWorkflow`], [`EngineError::DuplicateSchedule`], and what [`Engine::start`] refuses of names,
    /// keys and sizes; nothing is written then.
    pub async fn sync_schedules(&self, schedules: &[ScheduleDef]) -> Result<Synced, EngineError> {
        sync::sync(&self.0, schedules, true).await
    }

    /// The same for one schedule, and without a word on the others.
    ///
    /// # Errors
    /// As [`Engine::sync_schedules`].
    pub async fn put_schedule(&self, schedule: &ScheduleDef) -> Result<Synced, EngineError> {
        sync::sync(&self.0, std::slice::from_ref(schedule), false).await
    }

    /// Decides every tick that is due, and queues the runs of those that fire; who drains the queue carries them out.
    /// A tick, its run and the schedule's cursor are one transaction, so that of several processes on one state, each
    /// tick is decided by one, once. A long backlog is decided in batches, each durable by itself and oldest first, with
    /// the schedules taking turns. Answers the ticks that started a run or found their key held; those that were skipped
    /// have their rows ([`crate::Reader::ticks`]). A schedule whose workflow this program does not have is left to one
    /// that does. Safe to repeat.
    ///
    /// # Errors
    /// [`EngineError::Storage`]: what was decided by then stays decided.
    pub async fn fire_due_schedules(&self) -> Result<Vec<Fired>, EngineError> {
        fire::fire_due(&self.0).await
    }

    /// When the next tick of any schedule is due, in milliseconds since 1970-01-01T00:00:00Z; in the past where one is
    /// due already, and `None` where there is no schedule. Ticks of a paused schedule count: their rows are written too.
    ///
    /// # Errors
    /// [`EngineError::Storage`].
    pub async fn next_due_ms(&self) -> Result<Option<i64>, EngineError> {
        fire::next_due_ms(&self.0).await
    }

    /// From now on the schedule's ticks are skipped, with this as their reason. Leaves a row in the audit trail. Safe to
    /// repeat: the first pausing stands.
    ///
    /// # Errors
    /// [`EngineError::UnknownSchedule`], [`EngineError::ScheduleRemoved`], [`EngineError::TextTooLong`].
    pub async fn pause_schedule(&self, name: &str, by: &Mutation) -> Result<(), EngineError> {
        people::pause(&self.0, name, by).await
    }

    /// The schedule fires again; what was due while it was paused is skipped, decided or not. Leaves a row in the audit
    /// trail. Safe to repeat.
    ///
    /// # Errors
    /// [`EngineError::UnknownSchedule`], [`EngineError::ScheduleRemoved`], [`EngineError::TextTooLong`].
    pub async fn resume_schedule(&self, name: &str, by: &Mutation) -> Result<(), EngineError> {
        people::resume(&self.0, name, by).await
    }

    /// Starts a run of the schedule now, whatever its expression says and also while it is paused; no tick is decided by
    /// it. Leaves a row in the audit trail that names schedule and run. With `detached` the run is left in the queue;
    /// without, [`Engine::drive`] carries it out. Each call starts a run.
    ///
    /// # Errors
    /// [`EngineError::ScheduleHeld`] when another run has the key, whatever the policy: nothing is recorded then.
    /// [`EngineError::UnknownSchedule`], [`EngineError::ScheduleRemoved`], [`EngineError::UnknownWorkflow`],
    /// [`EngineError::TextTooLong`].
    pub async fn trigger_schedule(&self, name: &str, by: &Mutation, detached: bool) -> Result<Started, EngineError> {
        people::trigger(&self.0, name, by, detached).await
    }
}
