//! A schedule as the state database has it.

use engine_rules::schedule::{Cursor, Misfire, Standing, Timing};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use crate::db::patient;
use crate::engine::Inner;
use crate::error::{EngineError, storage};
use crate::schedules::find_time_zone;
use crate::start::{KeyPolicy, StartRun};

/// A row of the table `schedule`.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub schedule_no: i64,
    pub revision: i64,
    pub definition: Definition,
    pub cursor_local: Option<String>,
    pub cursor_at_ms: Option<i64>,
    pub created_at_ms: i64,
    pub paused: Option<(String, String)>,
    pub removed: bool,
}

/// What the configuration says of a schedule, in the texts of the journal: equal texts are an equal definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Definition {
    pub name: String,
    pub workflow: String,
    pub input: String,
    pub cron: String,
    pub time_zone: String,
    pub misfire: &'static str,
    pub catch_up_ms: i64,
    pub concurrency_key: Option<String>,
    pub key_policy: &'static str,
    pub labels: String,
}

/// What is wrong with a row that cannot be read; its schedule fires nothing.
fn corrupt(name: &str, found: &str, expected: &'static str) -> EngineError {
    EngineError::Corrupt { subject: format!("schedule {name}"), found: found.to_owned(), expected }
}

impl Stored {
    fn read(row: &SqliteRow) -> Result<Self, EngineError> {
        let text = |column: &str| row.try_get::<String, _>(column).map_err(storage("read a schedule"));
        let opt_text = |column: &str| row.try_get::<Option<String>, _>(column).map_err(storage("read a schedule"));
        let number = |column: &str| row.try_get::<i64, _>(column).map_err(storage("read a schedule"));
        let opt_number = |column: &str| row.try_get::<Option<i64>, _>(column).map_err(storage("read a schedule"));
        let (name, misfire, policy) = (text("name")?, text("misfire")?, text("concurrency_policy")?);
        let misfire =
            Misfire::from_name(&misfire).ok_or_else(|| corrupt(&name, &misfire, "run-once, skip or run-all"))?.as_str();
        let key_policy =
            KeyPolicy::from_name(&policy).ok_or_else(|| corrupt(&name, &policy, "forbid or queue"))?.as_str();
        let paused = match opt_number("paused_at_ms")? {
            Some(_) => {
                Some((opt_text("paused_by")?.unwrap_or_default(), opt_text("paused_reason")?.unwrap_or_default()))
            }
            None => None,
        };
        Ok(Self {
            schedule_no: number("schedule_no")?,
            revision: number("revision")?,
            cursor_local: opt_text("cursor_local")?,
            cursor_at_ms: opt_number("cursor_at_ms")?,
            created_at_ms: number("created_at_ms")?,
            paused,
            removed: opt_number("removed_at_ms")?.is_some(),
            definition: Definition {
                name,
                workflow: text("workflow")?,
                input: text("input")?,
                cron: text("cron")?,
                time_zone: text("time_zone")?,
                misfire,
                catch_up_ms: number("catch_up_ms")?,
                concurrency_key: opt_text("concurrency_key")?,
                key_policy,
                labels: text("labels")?,
            },
        })
    }

    pub async fn all(inner: &Inner) -> Result<Vec<Self>, EngineError> {
        let rows = patient(inner.clock.as_ref(), || {
            sqlx::query("SELECT * FROM schedule ORDER BY name").fetch_all(&inner.readers)
        });
        rows.await.map_err(storage("read the schedules"))?.iter().map(Self::read).collect()
    }

    pub async fn find(inner: &Inner, name: &str) -> Result<Option<Self>, EngineError> {
        let row = patient(inner.clock.as_ref(), || {
            sqlx::query("SELECT * FROM schedule WHERE name = ?").bind(name).fetch_optional(&inner.readers)
        });
        row.await.map_err(storage("read the schedule"))?.as_ref().map(Self::read).transpose()
    }

    /// The schedule of this name that a person may act on.
    pub async fn live(inner: &Inner, name: &str) -> Result<Self, EngineError> {
        match Self::find(inner, name).await? {
            Some(stored) if stored.removed => Err(EngineError::ScheduleRemoved { schedule: name.to_owned() }),
            Some(stored) => Ok(stored),
            None => {
                let all = Self::all(inner).await?.into_iter().filter(|stored| !stored.removed);
                let known = all.map(|stored| stored.definition.name).collect();
                Err(EngineError::UnknownSchedule { schedule: name.to_owned(), known })
            }
        }
    }

    /// When it fires.
    pub fn timing(&self) -> Result<Timing, EngineError> {
        let definition = &self.definition;
        let cron = definition
            .cron
            .parse()
            .map_err(|source| EngineError::BadCron { schedule: definition.name.clone(), source })?;
        let misfire = Misfire::from_name(definition.misfire)
            .ok_or_else(|| corrupt(&definition.name, definition.misfire, "run-once, skip or run-all"))?;
        Ok(Timing {
            cron,
            time_zone: find_time_zone(&definition.time_zone)?,
            misfire,
            catch_up_ms: definition.catch_up_ms,
        })
    }

    /// How far it was decided.
    pub fn cursor(&self, timing: &Timing) -> Result<Cursor, EngineError> {
        let name = &self.definition.name;
        let at_ms = self.cursor_at_ms.unwrap_or(self.created_at_ms);
        let at = Timestamp::from_millisecond(at_ms).map_err(|_| corrupt(name, &at_ms.to_string(), "an instant"))?;
        match &self.cursor_local {
            None => Ok(Cursor::now(at, &timing.time_zone)),
            Some(local) => {
                let local = local.parse().map_err(|_| corrupt(name, local, "a local time"))?;
                Ok(Cursor { local, at })
            }
        }
    }

    /// Whether its ticks fire.
    pub fn standing(&self) -> Standing {
        match &self.paused {
            Some((by, reason)) => Standing::Paused { by: by.clone(), reason: reason.clone() },
            None => Standing::Live,
        }
    }

    /// That it is paused, else `otherwise`: the first reason for which a tick is skipped is the one that is told.
    pub fn standing_or(&self, otherwise: Standing) -> Standing {
        match self.standing() {
            paused @ Standing::Paused { .. } => paused,
            Standing::Live | Standing::Changed | Standing::Removed => otherwise,
        }
    }

    /// A run of it.
    pub fn start_run(&self, actor: String, reason: String) -> Result<StartRun, EngineError> {
        let definition = &self.definition;
        let json = |text: &str| -> Result<Value, EngineError> {
            serde_json::from_str(text).map_err(|_| corrupt(&definition.name, text, "JSON"))
        };
        let labels = serde_json::from_value(json(&definition.labels)?)
            .map_err(|_| corrupt(&definition.name, &definition.labels, "an object of texts"))?;
        let mut run = StartRun::new(definition.workflow.clone(), json(&definition.input)?, actor);
        run.labels = labels;
        run.reason = Some(reason);
        run.schedule = Some(definition.name.clone());
        run.detached = true;
        run.concurrency_key.clone_from(&definition.concurrency_key);
        run.key_policy = KeyPolicy::from_name(definition.key_policy)
            .ok_or_else(|| corrupt(&definition.name, definition.key_policy, "forbid or queue"))?;
        Ok(run)
    }
}
