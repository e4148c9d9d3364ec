//! Instants of the documents: RFC 3339 in UTC, ending in `Z`.

use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;
use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};

/// A point in time, to the microsecond, within the years 0001 to 9999. It is written as `2026-10-09T12:30:00.412000Z`;
/// any RFC 3339 text that ends in `Z` is read (*catalog* §6.2: "an RFC 3339 UTC instant ending in `Z`"), and what it
/// says below a microsecond is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Instant {
    /// Microseconds since [`EPOCH`]. A jiff Timestamp would end a day early: at 9999-12-30T22:00:00Z.
    us: i64,
}

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
/// 0001-01-01T00:00:00Z.
const FIRST_US: i64 = -62_135_596_800_000_000;
/// 9999-12-31T23:59:59.999999Z.
const LAST_US: i64 = 253_402_300_799_999_999;

/// A text that is not an instant of the documents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not an RFC 3339 instant in UTC that ends in Z")]
pub struct BadInstant {
    /// The text as it was found.
    pub found: String,
}

impl Instant {
    /// The instant `us` microseconds after 1970-01-01T00:00:00Z, held within the years that a document can name.
    #[must_use]
    pub fn from_us(us: i64) -> Self {
        Self { us: us.clamp(FIRST_US, LAST_US) }
    }

    /// The instant `ms` milliseconds after 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn from_ms(ms: i64) -> Self {
        Self::from_us(ms.saturating_mul(1000))
    }

    /// Milliseconds since 1970-01-01T00:00:00Z, rounded down.
    #[must_use]
    pub fn as_ms(self) -> i64 {
        self.as_us().div_euclid(1000)
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn as_us(self) -> i64 {
        self.us
    }

    /// This instant and `ms` milliseconds more.
    #[must_use]
    pub fn plus_ms(self, ms: i64) -> Self {
        Self::from_us(self.as_us().saturating_add(ms.saturating_mul(1000)))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}Z", EPOCH.saturating_add(SignedDuration::from_micros(self.us)))
    }
}

impl FromStr for Instant {
    type Err = BadInstant;
    fn from_str(text: &str) -> Result<Self, BadInstant> {
        let bad = || BadInstant { found: text.to_owned() };
        let civil = text.strip_suffix('Z').ok_or_else(bad)?;
        // The shape is checked here because a civil time is also read without its time, and with an offset or a zone.
        let (whole, fraction) = civil.split_once('.').unwrap_or((civil, "0"));
        let shape: String = whole.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        if shape != "0000-00-00T00:00:00" || fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad());
        }
        let at: DateTime = whole.parse().map_err(|_| bad())?;
        let fraction_us: i64 = format!("{fraction:0<6}")[..6].parse().map_err(|_| bad())?;
        let whole_us = i64::try_from(at.duration_since(EPOCH).as_micros()).map_err(|_| bad())?;
        let us = whole_us + fraction_us;
        if (FIRST_US..=LAST_US).contains(&us) { Ok(Self { us }) } else { Err(bad()) }
    }
}

impl TryFrom<String> for Instant {
    type Error = BadInstant;
    fn try_from(text: String) -> Result<Self, BadInstant> {
        text.parse()
    }
}

impl From<Instant> for String {
    fn from(at: Instant) -> String {
        at.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_written_with_microseconds_and_z() {
        let at: Instant = "2026-10-09T12:30:00.412Z".parse().unwrap();
        assert_eq!(at.to_string(), "2026-10-09T12:30:00.412000Z");
        assert_eq!(Instant::from_ms(0).to_string(), "1970-01-01T00:00:00.000000Z");
        assert_eq!(at.plus_ms(1).as_us(), at.as_us() + 1000);
        for bad in [
            "2026-10-09T12:30:00",
            "2026-10-09T12:30:00+00:00",
            "2026-10-09T12:30:00+00:00Z",
            "2026-10-09T12:30:00.Z",
            "2026-10-09T12:30:00.-1Z",
            "2026-10-09 12:30:00Z",
            "2026-10-09Z",
            "2026-02-30T12:30:00Z",
            "2026-10-09T24:30:00Z",
            "0000-10-09T12:30:00Z",
            "yesterday",
        ] {
            assert!(bad.parse::<Instant>().is_err(), "{bad} passed");
        }
    }

    #[test]
    fn every_microsecond_of_the_years_with_four_digits_can_be_said() {
        for (text, us) in [
            ("0001-01-01T00:00:00.000000Z", FIRST_US),
            ("1969-12-31T23:59:59.999999Z", -1),
            ("9999-12-31T23:59:59.999999Z", LAST_US),
        ] {
            assert_eq!(text.parse::<Instant>().unwrap().as_us(), us);
            assert_eq!(Instant::from_us(us).to_string(), text);
        }
        assert_eq!("1969-12-31T23:59:59.9999999999Z".parse::<Instant>().unwrap().as_us(), -1);
        assert_eq!(Instant::from_us(i64::MIN).as_us(), FIRST_US);
        assert_eq!(Instant::from_us(i64::MAX).as_us(), LAST_US);
    }
}
