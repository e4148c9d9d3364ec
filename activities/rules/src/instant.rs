//! Instants of the documents: RFC 3339 in UTC, ending in `Z`.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A point in time, to the microsecond. It is written as `2026-10-09T12:30:00.412000Z`; any RFC 3339 text that ends in
/// `Z` is read (*catalog* §6.2: "an RFC 3339 UTC instant ending in `Z`").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Instant(Timestamp);

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
        Self(Timestamp::from_microsecond(us).unwrap_or(if us < 0 { Timestamp::MIN } else { Timestamp::MAX }))
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
        self.0.as_microsecond()
    }

    /// This instant and `ms` milliseconds more.
    #[must_use]
    pub fn plus_ms(self, ms: i64) -> Self {
        Self::from_us(self.as_us().saturating_add(ms.saturating_mul(1000)))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}", self.0)
    }
}

impl FromStr for Instant {
    type Err = BadInstant;
    fn from_str(text: &str) -> Result<Self, BadInstant> {
        let bad = || BadInstant { found: text.to_owned() };
        if !text.ends_with('Z') {
            return Err(bad());
        }
        let at: Timestamp = text.parse().map_err(|_| bad())?;
        Ok(Self::from_us(at.as_microsecond()))
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
        for bad in ["2026-10-09T12:30:00", "2026-10-09T12:30:00+00:00", "yesterday"] {
            assert!(bad.parse::<Instant>().is_err(), "{bad} passed");
        }
    }
}
