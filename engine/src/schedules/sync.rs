//! Making the schedules of the state database those of the configuration.

use std::collections::BTreeSet;

use engine_rules::digest::canonical_json;
use engine_rules::limits::NAME_LIMIT_BYTES;
use engine_rules::schedule::{Cursor, Standing, Timing};
use jiff::Timestamp;

use super::fire::{now, settle};
use super::stored::{Definition, Stored};
use super::{ScheduleDef, Synced};
use crate::engine::Inner;
use crate::error::EngineError;
use crate::start::{StartRun, check_text, check_texts, labels_text};

pub(super) async fn sync(inner: &Inner, schedules: &[ScheduleDef], is_all: bool) -> Result<Synced, EngineError> {
    let mut names = BTreeSet::new();
    let mut checked = Vec::with_capacity(schedules.len());
    for schedule in schedules {
        if !names.insert(schedule.name.clone()) {
            return Err(EngineError::DuplicateSchedule { schedule: schedule.name.clone() });
        }
        checked.push(check(inner, schedule)?);
    }
    let mut synced = Synced::default();
    for (definition, timing) in &checked {
        let change = put(inner, definition, timing).await?;
        match change {
            Change::None => {}
            Change::Added => synced.added.push(definition.name.clone()),
            Change::Changed => synced.changed.push(definition.name.clone()),
        }
    }
    if is_all {
        for stored in Stored::all(inner).await? {
            let name = stored.definition.name.clone();
            if !stored.removed && !names.contains(&name) && remove(inner, stored).await? {
                synced.removed.push(name);
            }
        }
    }
    Ok(synced)
}

/// The definition in the texts of the journal, all of it looked at.
fn check(inner: &Inner, schedule: &ScheduleDef) -> Result<(Definition, Timing), EngineError> {
    let timing = schedule.timing()?;
    inner.newest_version(&schedule.workflow)?;
    check_text("the schedule's name", &schedule.name, NAME_LIMIT_BYTES)?;
    let input = canonical_json(&schedule.input);
    let run = StartRun {
        concurrency_key: schedule.concurrency_key.clone(),
        labels: schedule.labels.clone(),
        ..StartRun::new(schedule.workflow.clone(), serde_json::Value::Null, String::new())
    };
    check_texts(&run, input.len())?;
    let definition = Definition {
        name: schedule.name.clone(),
        workflow: schedule.workflow.clone(),
        input,
        cron: timing.cron.to_string(),
        // As the zone's own data spell it.
        time_zone: timing.time_zone.iana_name().unwrap_or(&schedule.time_zone).to_owned(),
        misfire: schedule.misfire.as_str(),
        catch_up_ms: schedule.catch_up_ms,
        concurrency_key: schedule.concurrency_key.clone(),
        key_policy: schedule.key_policy.as_str(),
        labels: labels_text(schedule.labels.clone()),
    };
    Ok((definition, timing))
}

enum Change {
    None,
    Added,
    Changed,
}

async fn put(inner: &Inner, definition: &Definition, timing: &Timing) -> Result<Change, EngineError> {
    loop {
        let now = now(inner);
        let Some(stored) = Stored::find(inner, &definition.name).await? else {
            if insert(inner, definition, now).await? {
                return Ok(Change::Added);
            }
            continue;
        };
        if !stored.removed && stored.definition == *definition {
            return Ok(Change::None);
        }
        let change = if stored.removed { Change::Added } else { Change::Changed };
        let is_retimed =
            stored.definition.cron != definition.cron || stored.definition.time_zone != definition.time_zone;
        let (stored, cursor) = if stored.removed {
            (Some(stored), Some(Cursor::now(now, &timing.time_zone)))
        } else if is_retimed {
            let settled = match stored.timing() {
                Ok(_) => {
                    let standing = stored.standing_or(Standing::Changed);
                    settle(inner, stored, &standing, now).await?
                }
                // Times that cannot be read name no ticks.
                Err(_) => Some(stored),
            };
            (settled, Some(Cursor::now(now, &timing.time_zone)))
        } else {
            (Some(stored), None)
        };
        let Some(stored) = stored else { continue };
        if update(inner, &stored, definition, cursor, now).await? {
            return Ok(change);
        }
    }
}

async fn insert(inner: &Inner, definition: &Definition, now: Timestamp) -> Result<bool, EngineError> {
    let (definition, now_ms) = (definition.clone(), now.as_millisecond());
    inner
        .writer
        .exclusive("record the schedule", move |connection| {
            let definition = definition.clone();
            Box::pin(async move {
                let added = sqlx::query(
                    "INSERT INTO schedule (name, workflow, input, cron, time_zone, misfire, catch_up_ms, \
                     concurrency_key, concurrency_policy, labels, cursor_at_ms, created_at_ms, changed_at_ms) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11, ?11) ON CONFLICT (name) DO NOTHING",
                )
                .bind(&definition.name)
                .bind(&definition.workflow)
                .bind(&definition.input)
                .bind(&definition.cron)
                .bind(&definition.time_zone)
                .bind(definition.misfire)
                .bind(definition.catch_up_ms)
                .bind(&definition.concurrency_key)
                .bind(definition.key_policy)
                .bind(&definition.labels)
                .bind(now_ms)
                .execute(connection)
                .await?;
                Ok(added.rows_affected() == 1)
            })
        })
        .await
}

/// Writes the definition, and where there is one the cursor, over the row as it was read.
async fn update(
    inner: &Inner,
    stored: &Stored,
    definition: &Definition,
    cursor: Option<Cursor>,
    now: Timestamp,
) -> Result<bool, EngineError> {
    let (stored, definition, now_ms) = (stored.clone(), definition.clone(), now.as_millisecond());
    inner
        .writer
        .exclusive("record the schedule", move |connection| {
            let (stored, definition) = (stored.clone(), definition.clone());
            Box::pin(async move {
                let cursor_local = cursor.map(|cursor| cursor.local_text()).or_else(|| stored.cursor_local.clone());
                let cursor_at_ms = cursor.map(|cursor| cursor.at.as_millisecond()).or(stored.cursor_at_ms);
                let changed = sqlx::query(
                    "UPDATE schedule SET workflow = ?1, input = ?2, cron = ?3, time_zone = ?4, misfire = ?5, \
                     catch_up_ms = ?6, concurrency_key = ?7, concurrency_policy = ?8, labels = ?9, \
                     cursor_local = ?10, cursor_at_ms = ?11, removed_at_ms = NULL, changed_at_ms = ?12, \
                     revision = revision + 1 WHERE schedule_no = ?13 AND revision = ?14 AND cursor_at_ms IS ?15 \
                     AND cursor_local IS ?16",
                )
                .bind(&definition.workflow)
                .bind(&definition.input)
                .bind(&definition.cron)
                .bind(&definition.time_zone)
                .bind(definition.misfire)
                .bind(definition.catch_up_ms)
                .bind(&definition.concurrency_key)
                .bind(definition.key_policy)
                .bind(&definition.labels)
                .bind(cursor_local)
                .bind(cursor_at_ms)
                .bind(now_ms)
                .bind(stored.schedule_no)
                .bind(stored.revision)
                .bind(stored.cursor_at_ms)
                .bind(&stored.cursor_local)
                .execute(connection)
                .await?;
                Ok(changed.rows_affected() == 1)
            })
        })
        .await
}

/// Marks a schedule as gone, with what it left undecided skipped; `false` when somebody else did.
async fn remove(inner: &Inner, mut stored: Stored) -> Result<bool, EngineError> {
    loop {
        let now = now(inner);
        let name = stored.definition.name.clone();
        let settled = match stored.timing() {
            Ok(_) => {
                let standing = stored.standing_or(Standing::Removed);
                settle(inner, stored, &standing, now).await?
            }
            Err(_) => Some(stored),
        };
        if let Some(settled) = settled {
            let (schedule_no, revision, now_ms) = (settled.schedule_no, settled.revision, now.as_millisecond());
            let removed: bool = inner
                .writer
                .exclusive("remove the schedule", move |connection| {
                    Box::pin(async move {
                        let removed = sqlx::query(
                            "UPDATE schedule SET removed_at_ms = ?1, changed_at_ms = ?1, revision = revision + 1 \
                             WHERE schedule_no = ?2 AND revision = ?3",
                        )
                        .bind(now_ms)
                        .bind(schedule_no)
                        .bind(revision)
                        .execute(connection)
                        .await?;
                        Ok(removed.rows_affected() == 1)
                    })
                })
                .await?;
            if removed {
                return Ok(true);
            }
        }
        match Stored::find(inner, &name).await? {
            Some(again) if !again.removed => stored = again,
            Some(_) | None => return Ok(false),
        }
    }
}
