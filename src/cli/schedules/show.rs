//! Ticks and schedules as tables and documents show them.

use catalog_rules::instant::Instant;
use engine::{ScheduleRow, TickRow};
use engine_rules::schedule::{CronKind, Mapping, Tick};
use serde_json::{Value, json};

use crate::output::{moment, short};

/// What a clock of the zone shows when the tick is due, with its day of the week and its offset.
pub fn local(tick: &Tick) -> String {
    format!("{} {}", tick.shown().strftime("%a %Y-%m-%d %H:%M"), tick.offset_text())
}

/// The instant in UTC.
pub fn utc(tick: &Tick) -> String {
    utc_ms(tick.at.as_millisecond())
}

/// An instant in UTC, to the minute, as ticks are.
pub fn utc_ms(at_ms: i64) -> String {
    match jiff::Timestamp::from_millisecond(at_ms) {
        Ok(at) => at.strftime("%Y-%m-%d %H:%MZ").to_string(),
        Err(_) => at_ms.to_string(),
    }
}

/// What is special about the tick's local time.
pub fn note(tick: &Tick) -> String {
    let time = tick.local.strftime("%H:%M");
    match tick.mapping {
        Mapping::Plain => String::new(),
        Mapping::Gap if tick.local != tick.shown() => {
            format!("the clock jumps over {time} that day: the first instant after the jump")
        }
        Mapping::Gap => "for the times that the clock jumps over that day".to_owned(),
        Mapping::FoldFirst => format!("{time} comes twice that day: the first"),
        Mapping::FoldSecond => format!("{time} comes twice that day: the second"),
    }
}

/// Which clock an expression follows, in words.
pub fn follows(kind: CronKind) -> &'static str {
    match kind {
        CronKind::WallClock => "each local time that matches fires exactly once",
        CronKind::Elapsed => "follows time that passes, so a local time that comes twice fires twice",
    }
}

/// Why the tick started no run, and how to look at the run that was in its way.
pub fn held(tick: &TickRow) -> String {
    let reason = tick.reason.as_deref().unwrap_or("another run had the key");
    match tick.holder_run_id {
        Some(holder) => format!("{reason}: jobctl runs show {}", short(&holder.to_string())),
        None => reason.to_owned(),
    }
}

/// An instant as documents have it.
pub fn instant(at_ms: i64) -> Value {
    json!(Instant::from_ms(at_ms))
}

/// A tick to come.
pub fn tick_document(schedule: &str, time_zone: &str, tick: &Tick) -> Value {
    json!({
        "schedule": if schedule.is_empty() { None } else { Some(schedule) },
        "tick": tick.id().0,
        "local_time": tick.shown().strftime("%Y-%m-%dT%H:%M:%S").to_string(),
        "offset": tick.offset_text(),
        "time_zone": time_zone,
        "due_at": instant(tick.at.as_millisecond()),
        "mapping": tick.mapping.as_str(),
    })
}

/// A tick that was decided.
pub fn tick_row_document(tick: &TickRow) -> Value {
    json!({
        "schedule": tick.schedule,
        "tick": tick.local_time,
        "time_zone": tick.time_zone,
        "due_at": instant(tick.due_at_ms),
        "outcome": tick.outcome,
        "reason": tick.reason,
        "run_id": tick.run_id.map(|run_id| run_id.to_string()),
        "holder_run_id": tick.holder_run_id.map(|run_id| run_id.to_string()),
        "decided_at": instant(tick.decided_at_ms),
    })
}

/// Since when, by whom and why a schedule is paused.
pub fn paused(row: &ScheduleRow) -> String {
    format!(
        "since {} by {}: {}",
        row.paused_at_ms.map(moment).unwrap_or_default(),
        row.paused_by.as_deref().unwrap_or_default(),
        row.paused_reason.as_deref().unwrap_or_default()
    )
}

/// The same as a document.
pub fn paused_document(row: &ScheduleRow) -> Value {
    json!({
        "at": row.paused_at_ms.map(instant),
        "by": row.paused_by,
        "reason": row.paused_reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_that_another_run_held_up_names_that_run_and_how_to_look_at_it() {
        let holder = "01a18e76-2bad-7480-abfe-2ba8a6889a45".parse().unwrap();
        let tick = TickRow {
            schedule: "morning".to_owned(),
            local_time: "2026-11-30T08:30".to_owned(),
            time_zone: "America/Toronto".to_owned(),
            due_at_ms: 0,
            outcome: "held".to_owned(),
            reason: Some(format!("run {holder} has the key release")),
            run_id: None,
            holder_run_id: Some(holder),
            decided_at_ms: 0,
        };
        let text = held(&tick);
        assert!(text.contains("has the key release") && text.ends_with("jobctl runs show 01a1…889a45"), "{text}");
    }
}
