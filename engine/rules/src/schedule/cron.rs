//! A cron expression: five fields or a nickname (D8).

use std::fmt;
use std::str::FromStr;

use ::cron::{Schedule, TimeUnitSpec as _};
use jiff::civil::{Date, DateTime, Time};

use crate::failure::{ActivityError, Disposition};

/// Which clock an expression follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CronKind {
    /// Hour and minute are numbers, or lists of numbers: times of day as they stand on the wall. Each local time that
    /// matches fires exactly once: in a gap at the first instant after it, in a fold at its first occurrence.
    WallClock,
    /// Hour or minute has a wildcard, a step or a range: time that passes. Both instants of a repeated local time fire, a
    /// match in a gap fires at the first instant after it, and ticks that then fall on one instant are one tick.
    Elapsed,
}

impl CronKind {
    /// Its name in documents.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WallClock => "wall-clock",
            Self::Elapsed => "elapsed",
        }
    }
}

/// A field of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The first.
    Minute,
    /// The second.
    Hour,
    /// The third.
    DayOfMonth,
    /// The fourth.
    Month,
    /// The fifth.
    DayOfWeek,
}

impl Field {
    const ALL: [Self; 5] = [Self::Minute, Self::Hour, Self::DayOfMonth, Self::Month, Self::DayOfWeek];

    /// The smallest and the largest value; those of the week are SUN to SAT.
    fn bounds(self) -> (u32, u32) {
        match self {
            Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek => (1, 7),
        }
    }

    fn values(self) -> &'static str {
        match self {
            Self::Minute => "numbers from 0 to 59",
            Self::Hour => "numbers from 0 to 23",
            Self::DayOfMonth => "numbers from 1 to 31",
            Self::Month => "numbers from 1 to 12, or JAN to DEC",
            Self::DayOfWeek => "the names SUN, MON, TUE, WED, THU, FRI, SAT, of which SUN is the first",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of the month",
            Self::Month => "month",
            Self::DayOfWeek => "day of the week",
        })
    }
}

/// The names that stand for five fields.
const NICKNAMES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * SUN"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The longest that a month can be, from January.
const MONTH_DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// Why a text is no cron expression of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronFault {
    /// Not five fields.
    #[error(
        "the cron expression {found:?} has {} field{}; expected five (minute, hour, day of the month, month, day of the \
         week), or @hourly, @daily, @weekly, @monthly or @yearly",
        fields.len(),
        if fields.len() == 1 { "" } else { "s" }
    )]
    FieldCount {
        /// The expression.
        found: String,
        /// Its fields.
        fields: Vec<String>,
    },
    /// A nickname that is none.
    #[error(
        "the cron expression {found:?} is no name for times; expected @hourly, @daily, @weekly, @monthly or @yearly"
    )]
    UnknownNickname {
        /// The expression.
        found: String,
    },
    /// Weekdays as numbers, which programs count from different days.
    #[error(
        "the day of the week {value:?} in {found:?} is a number, which crontab counts from 0 = Sunday and other programs \
         from 1 = Sunday; expected names"
    )]
    NumericWeekday {
        /// The expression.
        found: String,
        /// Its fifth field.
        value: String,
        /// The expression with the names that crontab would read, where there is one.
        named: Option<String>,
    },
    /// Both day fields restrict, which programs join by "or" or by "and".
    #[error(
        "{found:?} sets both the day of the month ({day}) and the day of the week ({weekday}), which some programs read as \
         either and others as both; expected one of them to be *"
    )]
    BothDays {
        /// The expression.
        found: String,
        /// Its third field.
        day: String,
        /// Its fifth field.
        weekday: String,
    },
    /// A field that cannot be read.
    #[error("the {field} {value:?} in {found:?} cannot be read; expected {}: one, a list a,b, a range a-b, a step */n or \
             a-b/n, or *", field.values())]
    BadField {
        /// The expression.
        found: String,
        /// Which field.
        field: Field,
        /// The field.
        value: String,
    },
    /// A step that begins at a number, which programs read differently.
    #[error(
        "the {field} {value:?} in {found:?} has a step after a single number, which some programs ignore; expected a \
             range before the step"
    )]
    OpenStep {
        /// The expression.
        found: String,
        /// Which field.
        field: Field,
        /// The field.
        value: String,
        /// The same as a range.
        ranged: String,
    },
    /// A step that leaves the field at once.
    #[error(
        "the step {step} of the {field} {value:?} in {found:?} matches one value only; expected a step from 1 to {most}"
    )]
    WideStep {
        /// The expression.
        found: String,
        /// Which field.
        field: Field,
        /// The field.
        value: String,
        /// The step.
        step: String,
        /// The widest step.
        most: u32,
    },
    /// No day has such a date.
    #[error("{found:?} never matches: no month that it names has a day that it names; expected a day that exists")]
    NeverMatches {
        /// The expression.
        found: String,
    },
}

impl ActivityError for CronFault {
    fn code(&self) -> &'static str {
        match self {
            Self::FieldCount { .. } => "schedule.cron_fields",
            Self::UnknownNickname { .. } => "schedule.cron_nickname",
            Self::NumericWeekday { .. } => "schedule.cron_numeric_weekday",
            Self::BothDays { .. } => "schedule.cron_both_days",
            Self::BadField { .. } => "schedule.cron_field",
            Self::OpenStep { .. } => "schedule.cron_open_step",
            Self::WideStep { .. } => "schedule.cron_wide_step",
            Self::NeverMatches { .. } => "schedule.cron_never",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::FieldCount { .. }
            | Self::UnknownNickname { .. }
            | Self::NumericWeekday { .. }
            | Self::BothDays { .. }
            | Self::BadField { .. }
            | Self::OpenStep { .. }
            | Self::WideStep { .. }
            | Self::NeverMatches { .. } => Disposition::Terminal,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::FieldCount { fields, .. } => match fields.as_slice() {
                [_, five @ ..] if five.len() == 5 => {
                    format!("a tick falls on a whole minute: leave out the seconds, which come first: {:?}", five.join(" "))
                }
                [_, five @ .., _] if five.len() == 5 => {
                    format!("leave out the seconds, which come first, and the year, which comes last: {:?}", five.join(" "))
                }
                _ => "\"30 8 * * *\" is every day at 08:30; jobctl schedules preview --time-zone ZONE CRON shows when an expression fires".to_owned(),
            },
            Self::UnknownNickname { .. } => {
                "write @daily for every midnight, or five fields: \"30 8 * * *\" is every day at 08:30".to_owned()
            }
            Self::NumericWeekday { named: Some(named), .. } => {
                format!("write {named:?} if it was meant as in a crontab, and look at it with jobctl schedules preview --time-zone ZONE CRON")
            }
            Self::NumericWeekday { named: None, .. } => {
                "write SUN, MON, TUE, WED, THU, FRI or SAT, with commas between, or a range such as MON-FRI".to_owned()
            }
            Self::BothDays { .. } => "write * for one of them; for either, make two schedules".to_owned(),
            Self::BadField { field, value, .. } => match field {
                Field::DayOfWeek if value.contains('-') => {
                    "a range goes up from SUN to SAT: write a list across the week's end, such as FRI,SAT,SUN".to_owned()
                }
                _ if value.contains('?') => "write * for any".to_owned(),
                _ if value.contains('-') => "a range goes up: write a list across the end, such as 22,23,0,1".to_owned(),
                Field::Minute | Field::Hour | Field::DayOfMonth | Field::Month | Field::DayOfWeek => {
                    "\"30 8 * * *\" is every day at 08:30; jobctl schedules preview --time-zone ZONE CRON shows when an expression fires".to_owned()
                }
            },
            Self::OpenStep { ranged, .. } => format!("write {ranged:?}"),
            Self::WideStep { .. } => {
                "cron counts steps within the field, anew in each hour or day: list the values, or make several schedules"
                    .to_owned()
            }
            Self::NeverMatches { .. } => "correct the day or the month".to_owned(),
        })
    }
}

/// A cron expression that matches now and then. Its sets have a bit a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronExpression {
    text: String,
    kind: CronKind,
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    /// From 1 = Sunday.
    weekdays: u64,
}

impl CronExpression {
    /// The text that it was read from, with single spaces.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Which clock it follows.
    #[must_use]
    pub fn kind(&self) -> CronKind {
        self.kind
    }

    /// The first time after `after` that matches, by the calendar alone.
    #[must_use]
    pub(super) fn next_match(&self, after: DateTime) -> Option<DateTime> {
        if self.matches_date(after.date())
            && let Some(time) = self.next_time(Some(after.time()))
        {
            return Some(after.date().to_datetime(time));
        }
        let mut date = after.date();
        loop {
            date =
                if has(self.months, date.month()) { date.tomorrow() } else { date.last_of_month().tomorrow() }.ok()?;
            if self.matches_date(date) {
                return self.next_time(None).map(|time| date.to_datetime(time));
            }
        }
    }

    /// `from` itself where it matches, else the first time after it.
    pub(super) fn first_match_from(&self, from: DateTime) -> Option<DateTime> {
        if self.matches(from) { Some(from) } else { self.next_match(from) }
    }

    /// Whether the local time `at` matches, to the nanosecond.
    pub(super) fn matches(&self, at: DateTime) -> bool {
        (at.second(), at.subsec_nanosecond()) == (0, 0)
            && has(self.hours, at.hour())
            && has(self.minutes, at.minute())
            && self.matches_date(at.date())
    }

    fn matches_date(&self, date: Date) -> bool {
        has(self.months, date.month())
            && has(self.days, date.day())
            && has(self.weekdays, date.weekday().to_sunday_one_offset())
    }

    fn next_time(&self, after: Option<Time>) -> Option<Time> {
        let first = |set: u64, from: i8| (from..60).find(|value| has(set, *value));
        if let Some(after) = after {
            if has(self.hours, after.hour())
                && let Some(minute) = first(self.minutes, after.minute() + 1)
            {
                return Time::new(after.hour(), minute, 0, 0).ok();
            }
            let hour = first(self.hours, after.hour() + 1)?;
            return Time::new(hour, first(self.minutes, 0)?, 0, 0).ok();
        }
        Time::new(first(self.hours, 0)?, first(self.minutes, 0)?, 0, 0).ok()
    }
}

fn has(set: u64, value: i8) -> bool {
    u32::try_from(value).is_ok_and(|value| set >> value & 1 == 1)
}

impl fmt::Display for CronExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for CronExpression {
    type Err = CronFault;

    /// Reads an expression.
    ///
    /// # Errors
    /// [`CronFault`], which says what was found and names the fix.
    fn from_str(text: &str) -> Result<Self, CronFault> {
        let written: Vec<&str> = text.split_ascii_whitespace().collect();
        let found = written.join(" ");
        let meant = match written.as_slice() {
            [name] if name.starts_with('@') => NICKNAMES
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
                .map(|(_, fields)| *fields)
                .ok_or_else(|| CronFault::UnknownNickname { found: found.clone() })?,
            _ => found.as_str(),
        }
        .to_owned();
        let fields: Vec<&str> = meant.split(' ').filter(|field| !field.is_empty()).collect();
        let Ok(five) = <[&str; 5]>::try_from(fields.as_slice()) else {
            let fields = fields.into_iter().map(str::to_owned).collect();
            return Err(CronFault::FieldCount { found, fields });
        };
        let [minute, hour, day, month, weekday] = five;
        if weekday
            .split(',')
            .any(|item| item.split('/').next().is_some_and(|days| days.contains(|c: char| c.is_ascii_digit())))
        {
            let named = crontab_weekdays(weekday)
                .map(|names| [minute, hour, day, month, &names].join(" "))
                .filter(|named| named.parse::<Self>().is_ok());
            return Err(CronFault::NumericWeekday { found, value: weekday.to_owned(), named });
        }
        let mut sets = [0; 5];
        for ((field, value), set) in Field::ALL.into_iter().zip(five).zip(&mut sets) {
            check_steps(&found, field, value)?;
            *set = read(field, value).ok_or_else(|| CronFault::BadField {
                found: found.clone(),
                field,
                value: value.to_owned(),
            })?;
        }
        let [minutes, hours, days, months, weekdays] = sets;
        let restricts = |field: Field, set: u64| set != all(field);
        if restricts(Field::DayOfMonth, days) && restricts(Field::DayOfWeek, weekdays) {
            return Err(CronFault::BothDays { found, day: day.to_owned(), weekday: weekday.to_owned() });
        }
        let exists = |(month, most): (u32, u32)| months >> month & 1 == 1 && (1..=most).any(|day| days >> day & 1 == 1);
        if !(1..).zip(MONTH_DAYS).any(exists) {
            return Err(CronFault::NeverMatches { found });
        }
        // Numbers and lists of numbers are times of day; everything else is a rhythm.
        let is_fixed = |value: &str| value.chars().all(|c| c.is_ascii_digit() || c == ',');
        let kind = if is_fixed(minute) && is_fixed(hour) { CronKind::WallClock } else { CronKind::Elapsed };
        Ok(Self { text: found, kind, minutes, hours, days, months, weekdays })
    }
}

fn all(field: Field) -> u64 {
    let (least, most) = field.bounds();
    (least..=most).fold(0, |set, value| set | 1 << value)
}

/// The values of a field, a bit each; `None` when it cannot be read. The grammar is that of the crate `cron`, less what is
/// not in a crontab.
fn read(field: Field, value: &str) -> Option<u64> {
    if !value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '*' | ',' | '-' | '/')) {
        return None;
    }
    let alone = Field::ALL.map(|other| if other == field { value } else { "*" }).join(" ");
    let schedule: Schedule = format!("0 {alone}").parse().ok()?;
    let bits = |values: &mut dyn Iterator<Item = u32>| values.fold(0_u64, |set, value| set | 1 << value);
    let set = match field {
        Field::Minute => bits(&mut schedule.minutes().iter()),
        Field::Hour => bits(&mut schedule.hours().iter()),
        Field::DayOfMonth => bits(&mut schedule.days_of_month().iter()),
        Field::Month => bits(&mut schedule.months().iter()),
        Field::DayOfWeek => bits(&mut schedule.days_of_week().iter()),
    };
    (set != 0).then_some(set)
}

fn check_steps(found: &str, field: Field, value: &str) -> Result<(), CronFault> {
    let (least, most) = field.bounds();
    for item in value.split(',') {
        let Some((from, step)) = item.split_once('/') else { continue };
        if from != "*" && !from.contains('-') {
            let end = if field == Field::DayOfWeek { "SAT".to_owned() } else { most.to_string() };
            let ranged = value.replacen(item, &format!("{from}-{end}/{step}"), 1);
            return Err(CronFault::OpenStep { found: found.to_owned(), field, value: value.to_owned(), ranged });
        }
        if step.chars().all(|c| c.is_ascii_digit())
            && !step.parse::<u32>().is_ok_and(|step| (1..=most - least).contains(&step))
        {
            let (found, value, step) = (found.to_owned(), value.to_owned(), step.to_owned());
            return Err(CronFault::WideStep { found, field, value, step, most: most - least });
        }
    }
    Ok(())
}

/// Numbers of weekdays, as a crontab counts them, as names.
fn crontab_weekdays(value: &str) -> Option<String> {
    let name = |part: &str| match part.parse::<usize>() {
        Ok(number) => WEEKDAYS.get(number % 7).filter(|_| number <= 7).map(|name| (*name).to_owned()),
        Err(_) => Some(part.to_owned()),
    };
    let item = |item: &str| {
        let (days, step) = item.split_once('/').map_or((item, None), |(days, step)| (days, Some(step)));
        let days = days.split('-').map(name).collect::<Option<Vec<_>>>()?.join("-");
        Some(step.map_or_else(|| days.clone(), |step| format!("{days}/{step}")))
    };
    Some(value.split(',').map(item).collect::<Option<Vec<_>>>()?.join(","))
}

#[cfg(test)]
mod tests;
