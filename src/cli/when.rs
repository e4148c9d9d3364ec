//! Times as a person writes them on the command line, in this machine's time zone or the catalog's.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
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

/// The instant of a release (D21): one with its offset, or a local time of `zone` that is one instant. A time of day alone
/// is today's, where `now_ms` is given.
///
/// # Errors
/// Usage, saying what was found and what is expected; a local time that does not exist, or comes twice, is refused.
pub fn release(option: &str, text: &str, zone: &TimeZone, now_ms: Option<i64>) -> Result<Timestamp, Ended> {
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Ok(instant);
    }
    let today = || Some(now(now_ms?, zone).ok()?.date());
    let local = match (text.contains('-'), text.contains(':')) {
        (true, true) => text.parse::<DateTime>().ok(),
        (false, true) => today().and_then(|day| Some(day.to_datetime(text.parse::<Time>().ok()?))),
        (true | false, false) => None,
    };
    let local = local.ok_or_else(|| {
        Ended::usage(format!(
            "{option} is {text:?}; expected a local time such as 2026-12-04T08:30, or an instant such as \
             2026-12-04T08:30:00-05:00"
        ))
    })?;
    one_instant(text, local, zone)
}

/// The one instant that the local time `local`, written as `text`, is in `zone`.
///
/// # Errors
/// Usage, where the clock jumps over it or shows it twice.
pub fn one_instant(text: &str, local: DateTime, zone: &TimeZone) -> Result<Timestamp, Ended> {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    let trouble = match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { .. } => None,
        AmbiguousOffset::Gap { .. } => Some("does not exist"),
        AmbiguousOffset::Fold { .. } => Some("comes twice"),
    };
    if let Some(trouble) = trouble {
        let name = zone.iana_name().unwrap_or("this machine's time zone");
        return Err(Ended::usage(format!("the local time {text} {trouble} in {name}; expected one instant"))
            .with_hint("give it with an offset, such as 2026-11-01T01:30:00-04:00"));
    }
    ambiguous.unambiguous().map_err(|error| Ended::usage(format!("{text}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_has_one_instant_or_is_refused() {
        let now_ms = "2026-12-04T12:00:00Z".parse::<Timestamp>().unwrap().as_millisecond();
        for (text, expected) in [
            ("2026-12-04T08:30", "2026-12-04T13:30:00Z"),
            ("2026-12-04 08:30:15", "2026-12-04T13:30:15Z"),
            ("2026-07-04T08:30", "2026-07-04T12:30:00Z"),
            ("2026-12-04T08:30:00-08:00", "2026-12-04T16:30:00Z"),
            ("2026-12-04T13:30:00Z", "2026-12-04T13:30:00Z"),
            ("08:30", "2026-12-04T13:30:00Z"),
        ] {
            let found = release("--release-at", text, &toronto(), Some(now_ms)).unwrap();
            assert_eq!(found.to_string(), expected, "{text}");
        }
        for (text, word) in [
            ("2026-03-08T02:30", "does not exist in America/Toronto"),
            ("2026-11-01T01:30", "comes twice in America/Toronto"),
            ("2026-12-04", "expected a local time"),
            ("tomorrow", "expected a local time"),
            ("1d", "expected a local time"),
            ("", "expected a local time"),
        ] {
            let message = release("--release-at", text, &toronto(), Some(now_ms)).unwrap_err().failure.message;
            assert!(message.contains(word), "{text}: {message}");
        }
        assert!(release("--release-at", "08:30", &toronto(), None).is_err(), "a schedule has no today");
    }

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
