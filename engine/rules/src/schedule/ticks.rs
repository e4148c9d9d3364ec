//! The ticks of an expression in a time zone: local times, mapped to instants.

use std::fmt;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::cron::{CronExpression, CronKind};

/// What names a tick within its schedule and time zone, and what no two ticks share: the local time as
/// `yyyy-mm-ddThh:mm:ss`; where elapsed time is followed, with its offset from UTC, because a local time may then come
/// twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TickId(pub String);

impl fmt::Display for TickId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Mapping {
    /// Its name in documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Gap => "gap",
            Self::FoldFirst => "fold-first",
            Self::FoldSecond => "fold-second",
        }
    }
}

/// How a local time came to its instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mapping {
    /// It is one instant.
    Plain,
    /// It does not exist that day: the clock was put forward over it. The instant is the first after the gap.
    Gap,
    /// It comes twice that day, because the clock was put back. The instant is the first of the two.
    FoldFirst,
    /// It is the second of the two.
    FoldSecond,
}

/// A time that an expression names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    kind: CronKind,
    /// The local time that matched. Where a wall-clock time falls into a gap, no clock of the zone shows it.
    pub local: DateTime,
    /// When it is due.
    pub at: Timestamp,
    /// The zone's offset from UTC at that instant.
    pub offset: Offset,
    /// How the local time came to the instant.
    pub mapping: Mapping,
}

impl Tick {
    /// Its name, unique within its schedule and time zone.
    #[must_use]
    pub fn id(&self) -> TickId {
        match self.kind {
            CronKind::WallClock => TickId(local_text(self.local)),
            CronKind::Elapsed => TickId(format!("{}{}", local_text(self.local), offset_text(self.offset))),
        }
    }

    /// The local time that a clock of the zone shows when it is due: [`Tick::local`], but for a gap.
    #[must_use]
    pub fn shown(&self) -> DateTime {
        self.offset.to_datetime(self.at)
    }

    /// The offset from UTC, as `+hh:mm`.
    #[must_use]
    pub fn offset_text(&self) -> String {
        offset_text(self.offset)
    }

    /// The cursor of a schedule of which this is the last tick that was decided.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        Cursor { local: self.local, at: self.at }
    }
}

/// `yyyy-mm-ddThh:mm:ss`.
pub(super) fn local_text(local: DateTime) -> String {
    local.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

/// `+hh:mm`; with seconds where a zone of long ago has them.
fn offset_text(offset: Offset) -> String {
    let seconds = offset.seconds();
    let (sign, seconds) = (if seconds < 0 { '-' } else { '+' }, seconds.unsigned_abs());
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if seconds == 0 {
        format!("{sign}{hours:02}:{minutes:02}")
    } else {
        format!("{sign}{hours:02}:{minutes:02}:{seconds:02}")
    }
}

/// How far a schedule was decided: nothing up to this local time and this instant is decided again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The local time. A wall-clock tick comes after it by this, whatever the rules of the zone have become since.
    pub local: DateTime,
    /// The instant. No tick before it is given.
    pub at: Timestamp,
}

impl Cursor {
    /// Everything up to `now` is decided: for a schedule that is new, or whose times were changed.
    #[must_use]
    pub fn now(now: Timestamp, time_zone: &TimeZone) -> Self {
        Self { local: time_zone.to_datetime(now), at: now }
    }

    /// A tick that is due at `from` or later comes after this.
    #[must_use]
    pub fn before(from: Timestamp, time_zone: &TimeZone) -> Self {
        let before = from.checked_sub(SignedDuration::from_millis(1)).unwrap_or(from);
        Self { local: time_zone.to_datetime(before), at: before }
    }

    /// The local time as the journal keeps it, `yyyy-mm-ddThh:mm:ss`.
    #[must_use]
    pub fn local_text(&self) -> String {
        local_text(self.local)
    }
}

/// The ticks after a cursor, in the order in which they are due. Ends with the calendar.
#[derive(Debug, Clone)]
pub struct Ticks<'a> {
    cron: &'a CronExpression,
    time_zone: &'a TimeZone,
    cursor: Cursor,
    /// The stretch of one offset that the cursor is in: the offset, and where it ends.
    stretch: Option<(Offset, Option<Timestamp>)>,
}

impl<'a> Ticks<'a> {
    /// The ticks of `cron` in `time_zone` after `cursor`.
    #[must_use]
    pub fn after(cron: &'a CronExpression, time_zone: &'a TimeZone, cursor: Cursor) -> Self {
        Self { cron, time_zone, cursor, stretch: None }
    }

    /// The next local time on the wall, mapped to its one instant: the first at which the wall shows it or a later time.
    fn next_wall_clock(&mut self) -> Option<Tick> {
        let mut local = self.cursor.local;
        loop {
            local = self.cron.next_match(local)?;
            let ambiguous = self.time_zone.to_ambiguous_timestamp(local);
            let (at, mapping) = match ambiguous.offset() {
                AmbiguousOffset::Unambiguous { offset } => (offset.to_timestamp(local).ok()?, Mapping::Plain),
                AmbiguousOffset::Fold { before, .. } => (before.to_timestamp(local).ok()?, Mapping::FoldFirst),
                AmbiguousOffset::Gap { before, .. } => {
                    // By the old offset it lies behind the change, so the last change up to there is the gap's end.
                    let beyond = before.to_timestamp(local).ok()?;
                    let look = beyond.checked_add(SignedDuration::from_secs(1)).ok()?;
                    (self.time_zone.preceding(look).next().map_or(beyond, |change| change.timestamp()), Mapping::Gap)
                }
            };
            // A time whose first occurrence was over when the schedule began.
            if at < self.cursor.at {
                continue;
            }
            return Some(Tick { kind: CronKind::WallClock, local, at, offset: self.time_zone.to_offset(at), mapping });
        }
    }

    /// The next instant at which time that passes matches, stretch of one offset by stretch.
    fn next_elapsed(&mut self) -> Option<Tick> {
        loop {
            let (offset, end) = *self.stretch.get_or_insert_with(|| {
                let end = self.time_zone.following(self.cursor.at).next().map(|change| change.timestamp());
                (self.time_zone.to_offset(self.cursor.at), end)
            });
            let matched = self.cron.next_match(offset.to_datetime(self.cursor.at));
            let within = matched
                .and_then(|local| Some((local, offset.to_timestamp(local).ok()?)))
                .filter(|(_, at)| end.is_none_or(|end| *at < end));
            if let Some((local, at)) = within {
                return Some(self.elapsed(local, at, offset));
            }
            let end = end?;
            let next_offset = self.time_zone.to_offset(end);
            let (shown_before, shown) = (offset.to_datetime(end), next_offset.to_datetime(end));
            self.cursor = Cursor { local: shown, at: end };
            self.stretch = None;
            // What the clock jumped over, and what it shows now, is one tick.
            let is_due = match shown_before < shown {
                true => self.cron.first_match_from(shown_before).is_some_and(|local| local <= shown),
                false => self.cron.matches(shown),
            };
            if is_due {
                return Some(self.elapsed(shown, end, next_offset));
            }
        }
    }

    fn elapsed(&self, local: DateTime, at: Timestamp, offset: Offset) -> Tick {
        let mapping = match self.time_zone.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Fold { before, .. } if before == offset => Mapping::FoldFirst,
            AmbiguousOffset::Fold { .. } => Mapping::FoldSecond,
            AmbiguousOffset::Unambiguous { .. } if !self.cron.matches(local) => Mapping::Gap,
            AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Gap { .. } => Mapping::Plain,
        };
        Tick { kind: CronKind::Elapsed, local, at, offset, mapping }
    }
}

impl Iterator for Ticks<'_> {
    type Item = Tick;

    fn next(&mut self) -> Option<Tick> {
        let tick = match self.cron.kind() {
            CronKind::WallClock => self.next_wall_clock(),
            CronKind::Elapsed => self.next_elapsed(),
        }?;
        self.cursor = tick.cursor();
        Some(tick)
    }
}

#[cfg(test)]
mod tests;
