//! Dates and instants of messages, which are freer than those of the documents.

use catalog_rules::instant::Instant;
use jiff::civil::{Date, DateTime};

/// An instant: RFC 3339 with any offset, or without one (then UTC), or a date alone (then its midnight in UTC). What it
/// says below a microsecond is cut off.
pub(super) fn instant(text: &str) -> Option<Instant> {
    let (date, rest) = match text.split_once(['T', 't']) {
        Some((date, rest)) => (date, rest),
        None => return instant_of(self::date(text)?, "00:00:00", 0),
    };
    let (time, offset) = match rest.find(['Z', 'z', '+', '-']) {
        Some(at) => rest.split_at(at),
        None => (rest, "Z"),
    };
    let offset_minutes = match offset.as_bytes() {
        [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), a, b, b':', c, d] if [a, b, c, d].iter().all(|digit| digit.is_ascii_digit()) => {
            let number = |tens: u8, ones: u8| i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
            let minutes = number(*a, *b) * 60 + number(*c, *d);
            if minutes > 14 * 60 {
                return None;
            }
            if *sign == b'-' { -minutes } else { minutes }
        }
        _ => return None,
    };
    instant_of(strict_date(date)?, time, offset_minutes)
}

fn instant_of(date: Date, time: &str, offset_minutes: i64) -> Option<Instant> {
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let shape = whole.bytes().map(|byte| if byte.is_ascii_digit() { '0' } else { char::from(byte) });
    let shape: String = shape.collect();
    if shape != "00:00:00" || fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // The day may end at 24:00:00 (ISO 8601).
    let (date, whole) = if whole == "24:00:00" && fraction.bytes().all(|byte| byte == b'0') {
        (date.tomorrow().ok()?, "00:00:00")
    } else {
        (date, whole)
    };
    let at: DateTime = format!("{date}T{whole}").parse().ok()?;
    let epoch = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
    let whole_us = i64::try_from(at.duration_since(epoch).as_micros()).ok()?;
    let fraction_us: i64 = format!("{fraction:0<6}")[..6].parse().ok()?;
    let us = whole_us + fraction_us - offset_minutes * 60_000_000;
    let instant = Instant::from_us(us);
    // Beyond the years that a document can name, an instant is held at their end: that is another one.
    (instant.as_us() == us).then_some(instant)
}

/// A date: `2000-01-01`, or the date of an instant.
pub(super) fn date(text: &str) -> Option<Date> {
    match text.split_once(['T', 't']) {
        Some((date, _)) => {
            instant(text)?;
            strict_date(date)
        }
        None => strict_date(text),
    }
}

fn strict_date(text: &str) -> Option<Date> {
    let shape: String = text.bytes().map(|byte| if byte.is_ascii_digit() { '0' } else { char::from(byte) }).collect();
    if shape == "0000-00-00" { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_reference_data_is_read() {
        for (text, expected) in [
            ("2020-01-01T00:00:00+00:00", "2020-01-01T00:00:00.000000Z"),
            ("2020-01-01T12:00:00-05:00", "2020-01-01T17:00:00.000000Z"),
            ("0001-01-01T00:00:00+00:00", "0001-01-01T00:00:00.000000Z"),
            ("9999-12-31T23:59:59.999999+00:00", "9999-12-31T23:59:59.999999Z"),
            ("2020-06-01T00:00:00", "2020-06-01T00:00:00.000000Z"),
            ("2020-06-01T12:30:15.5-05:00", "2020-06-01T17:30:15.500000Z"),
            ("2020-06-01T00:00:00.1234567Z", "2020-06-01T00:00:00.123456Z"),
            ("2021-06-01T00:00:00-12:45", "2021-06-01T12:45:00.000000Z"),
            ("2021-06-01", "2021-06-01T00:00:00.000000Z"),
            ("2021-06-01T24:00:00Z", "2021-06-02T00:00:00.000000Z"),
        ] {
            assert_eq!(instant(text).map(|at| at.to_string()).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "",
            "2020",
            "2020-13-01",
            "2020-01-01T25:00:00Z",
            "2020-01-01T00:00Z",
            "0001-01-01T00:00:00+01:00",
            "2020-01-01T00:00:00+15:00",
            "2020-01-01T00:00:00.Z",
            "2020-01-01 00:00:00",
            "1e3-01-01",
        ] {
            assert_eq!(instant(text), None, "{text}");
        }
        assert_eq!(date("2000-01-01T00:00:00Z"), date("2000-01-01"));
        assert_eq!(date("2000-01"), None);
    }
}
