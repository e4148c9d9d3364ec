//! Times as a person writes them on the command line, in this machine's time zone.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ZonedDateTime};

use crate::exit::Ended;

fn now(now_ms: i64, zone: &TimeZone) -> Result<ZonedDateTime, Ended> {
    let now = Timestamp::from_millisecond(now_ms);
    now.map(|now| now.to_zoned_datetime(zone.clone())).map_err(|error| Ended::usage(format!("the clock: {error}")))
}

fn ago(text: &str, now: &ZonedDateTime) -> Option<i64> {
    let span: Span = text.parse().ok().filter(|span: &Span| !span.is_negative())?;
    now.checked_sub(span).ok().map(|then| then.timestamp().as_millisecond())
}

/// The time that lies `text` before now, such as `90d`, `12h` or `6mo`, in milliseconds since 1970-01-01T00:00:00Z. Days
/// and longer are those of the local calendar.
///
/// # Errors
/// Usage, saying what was found and what is expected.
pub fn before(option: &str, text: &str, now_ms: i64) -> Result<i64, Ended> {
    ago(text, &now(now_ms, &TimeZone::system())?)
        .ok_or_else(|| Ended::usage(format!("{option} is {text:?}; expected a span of time, such as 90d, 12h or 6mo")))
}

/// The time that `text` names, in milliseconds since 1970-01-01T00:00:00Z: an instant of RFC 3339, a local day (its
/// beginning), a local time with or without its day (else today's), or a span back from now.
///
/// # Errors
/// Usage, saying what was found and what is expected.
pub fn since(text: &str, now_ms: i64) -> Result<i64, Ended> {
    point("--since", text, now_ms)
}

/// As [`since`], for another option.
///
/// # Errors
/// Usage, saying what was found and what is expected.
pub fn point(option: &str, text: &str, now_ms: i64) -> Result<i64, Ended> {
    point_in(option, text, now_ms, &TimeZone::system())
}

fn point_in(option: &str, text: &str, now_ms: i64, zone: &TimeZone) -> Result<i64, Ended> {
    let now = now(now_ms, zone)?;
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at.as_millisecond());
    }
    // A day alone has no time of day, and a time of day alone no day: each parser would take more than its own.
    let (has_day, has_time) = (text.contains('-'), text.contains(':'));
    let local = match (has_day, has_time) {
        (true, true) => text.parse::<DateTime>().ok(),
        (true, false) => text.parse::<Date>().ok().map(|day| day.to_datetime(Time::midnight())),
        (false, true) => text.parse::<Time>().ok().map(|time| now.date().to_datetime(time)),
        (false, false) => None,
    };
    let at = match local {
        Some(local) => local.to_zoned_datetime(zone.clone()).ok().map(|at| at.timestamp().as_millisecond()),
        None => ago(text, &now),
    };
    at.ok_or_else(|| {
        Ended::usage(format!(
            "{option} is {text:?}; expected an instant such as 2026-11-30T08:30:00-05:00, a day such as 2026-11-30, a time \
             of today such as 08:30, or a span back from now such as 12h"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toronto() -> TimeZone {
        TimeZone::get("America/Toronto").unwrap()
    }

    #[test]
    fn a_time_is_an_instant_a_day_a_time_of_today_or_a_span_back() {
        let now_ms = "2026-11-30T15:00:00Z".parse::<Timestamp>().unwrap().as_millisecond();
        for (text, expected) in [
            ("2026-11-30T08:30:00-05:00", "2026-11-30T13:30:00Z"),
            ("2026-11-30T08:30:00Z", "2026-11-30T08:30:00Z"),
            ("2026-11-30T08:30", "2026-11-30T13:30:00Z"),
            ("2026-11-30", "2026-11-30T05:00:00Z"),
            ("2026-07-01", "2026-07-01T04:00:00Z"),
            ("08:30", "2026-11-30T13:30:00Z"),
            ("08:30:15", "2026-11-30T13:30:15Z"),
            ("12h", "2026-11-30T03:00:00Z"),
            ("90 minutes", "2026-11-30T13:30:00Z"),
            ("1d", "2026-11-29T15:00:00Z"),
            // Over the end of summer time, a day is a day of the calendar.
            ("30d", "2026-10-31T14:00:00Z"),
            ("1mo", "2026-10-30T14:00:00Z"),
        ] {
            let found =
                point_in("--since", text, now_ms, &toronto()).unwrap_or_else(|ended| panic!("{text}: {ended:?}"));
            assert_eq!(Timestamp::from_millisecond(found).unwrap().to_string(), expected, "{text}");
        }
        for text in ["", "yesterday", "2026-13-01", "25:00", "-12h", "12", "2026-11-30T08:30:00+99:00", "12h ago"] {
            let ended = point_in("--since", text, now_ms, &toronto()).unwrap_err();
            assert!(ended.failure.message.contains("expected"), "{text}: {}", ended.failure.message);
        }
    }

    #[test]
    fn a_span_lies_before_now() {
        let now_ms = 1_800_000_000_000;
        assert_eq!(before("--older-than", "36h", now_ms).unwrap(), now_ms - 36 * 3_600_000);
        assert_eq!(before("--older-than", "0s", now_ms).unwrap(), now_ms);
        for text in ["-1d", "soon", "1d ago", "99999y"] {
            let message = before("--older-than", text, now_ms).unwrap_err().failure.message;
            assert!(message.contains("--older-than") && message.contains("expected"), "{message}");
        }
    }
}
