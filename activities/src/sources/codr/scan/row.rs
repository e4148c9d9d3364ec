//! One record, checked cell by cell.

use std::sync::Arc;

use duckdb::arrow::record_batch::RecordBatch;

use super::super::decimal;
use super::super::dialect::{Dialect, Layout, shortened};
use super::super::error::CodrError;
use super::super::finding::{FindingKind, Findings};
use super::super::frozen::{POWER_CODES, POWERS};
use super::super::language::Language;
use super::super::marks::{self, Marks};
use super::super::members::{Dimension, Slots, without_code};
use super::super::period;
use super::super::reader::Record;
use super::batch::{Batch, OrdinaryCells};
use super::{BATCH_ROWS, MOST_DIGITS, Numbers, Scanned, Units};

/// How many columns follow the dimensions of the ordinary layout.
const TAIL: usize = 11;

/// The columns after the dimensions of the ordinary layout, by their place from the first of them.
const UOM: usize = 0;
const UOM_ID: usize = 1;
const SCALAR_FACTOR: usize = 2;
const SCALAR_ID: usize = 3;
const VECTOR: usize = 4;
const COORDINATE: usize = 5;
const VALUE: usize = 6;
const STATUS: usize = 7;
const SYMBOL: usize = 8;
const TERMINATED: usize = 9;
const DECIMALS: usize = 10;

pub(super) struct Rows<'a> {
    file: &'a Arc<str>,
    dialect: &'a Dialect,
    dimensions: &'a [Dimension],
    slots: Vec<Slots>,
    units: Units,
    observations: u64,
    numbers: Numbers,
    batch: Option<Batch>,
    /// The point of values in this language.
    point: u8,
    raw_period: String,
    period: String,
    value: String,
    status: (String, Marks),
    symbol: (String, Marks),
    scalar: (String, String, Option<&'static str>),
}

impl<'a> Rows<'a> {
    pub(super) fn new(
        file: &'a Arc<str>,
        dialect: &'a Dialect,
        dimensions: &'a [Dimension],
        batch: Option<Batch>,
    ) -> Self {
        Self {
            file,
            dialect,
            dimensions,
            slots: dimensions.iter().map(Slots::of).collect(),
            units: Units::default(),
            observations: 0,
            numbers: Numbers::default(),
            batch,
            point: match dialect.language {
                Language::English => b'.',
                Language::French => b',',
            },
            raw_period: String::new(),
            period: String::new(),
            value: String::new(),
            status: Default::default(),
            symbol: Default::default(),
            scalar: Default::default(),
        }
    }

    pub(super) fn full(&self) -> bool {
        self.batch.as_ref().is_some_and(|batch| batch.rows >= BATCH_ROWS)
    }

    pub(super) fn finish_batch(&mut self) -> Result<Option<RecordBatch>, CodrError> {
        let Some(batch) = &mut self.batch else { return Ok(None) };
        batch.finish().map_err(|source| CodrError::Batch { file: self.file.to_string(), source })
    }

    pub(super) fn into_scanned(self) -> Scanned {
        Scanned { slots: self.slots, units: self.units, observations: self.observations, numbers: self.numbers }
    }

    /// Takes one record: one observation, or one per member of a census table's last dimension.
    pub(super) fn take(&mut self, record: &Record<'_>, findings: &mut Findings) -> Result<(), CodrError> {
        let line = record.line;
        self.read_period(record.cell(0), line, findings)?;
        match &self.dialect.layout {
            Layout::Ordinary => self.ordinary(record, findings),
            Layout::Census { members } => {
                let dialect = self.dialect;
                let coordinate_at = 3 + dialect.names.len() - 1;
                for (at, member) in members.iter().enumerate() {
                    let value_at = coordinate_at + 1 + 2 * at;
                    self.read_coordinate(record, coordinate_at, Some(member.id), findings)?;
                    let marks = self.read_marks(record.cell(value_at + 1), "", line)?;
                    let has_value = self.read_value(record.cell(value_at), line, || member.label.clone())?;
                    self.check_value(has_value, marks, None, line, findings);
                    self.end(record, has_value, marks, None);
                }
                Ok(())
            }
        }
    }

    fn ordinary(&mut self, record: &Record<'_>, findings: &mut Findings) -> Result<(), CodrError> {
        let line = record.line;
        let tail = record.len() - TAIL;
        self.read_coordinate(record, tail + COORDINATE, None, findings)?;
        let marks = self.read_marks(record.cell(tail + STATUS), record.cell(tail + SYMBOL), line)?;
        let has_value = self.read_value(record.cell(tail + VALUE), line, || {
            match self.dialect.language {
                Language::English => "VALUE",
                Language::French => "VALEUR",
            }
            .to_owned()
        })?;
        let decimals = self.read_decimals(record.cell(tail + DECIMALS), line)?;
        self.check_value(has_value, marks, decimals, line, findings);
        let unit = self
            .units
            .take(record.cell(tail + UOM_ID), record.cell(tail + UOM), self.file, line, findings)
            .map_err(|()| {
                let found = format!("{} ({})", record.cell(tail + UOM_ID), record.cell(tail + UOM).trim());
                self.bad_cell(line, "UOM_ID", &found, "a unit's id, a number without leading zeros")
            })?;
        let multiplier =
            self.read_scalar(record.cell(tail + SCALAR_ID), record.cell(tail + SCALAR_FACTOR), line, findings)?;
        let vector = match record.cell(tail + VECTOR) {
            "" | "0" => None,
            text => {
                let digits = text.strip_prefix('v').unwrap_or_default();
                if !(1..=10).contains(&digits.len()) || !digits.bytes().all(|b| b.is_ascii_digit()) {
                    return Err(self.bad_cell(line, "VECTOR", text, "v and 1 to 10 digits, or blank"));
                }
                Some(text)
            }
        };
        let terminated = match record.cell(tail + TERMINATED) {
            "" => marks.terminated,
            "t" => true,
            text => return Err(self.bad_cell(line, "TERMINATED", text, "t or blank")),
        };
        self.end(record, has_value, marks, Some(OrdinaryCells { unit, multiplier, decimals, vector, terminated }));
        Ok(())
    }

    fn end(&mut self, record: &Record<'_>, has_value: bool, marks: Marks, ordinary: Option<OrdinaryCells<'_>>) {
        self.observations += 1;
        if let Some(batch) = &mut self.batch {
            let value = has_value.then_some(self.value.as_str());
            let dguid = Some(record.cell(2).trim()).filter(|dguid| !dguid.is_empty());
            batch.end_row(&self.period, value, marks.status, marks.symbol, dguid, ordinary, record.line);
        }
    }

    fn bad_cell(&self, line: u64, column: &'static str, found: &str, expected: &'static str) -> CodrError {
        CodrError::BadCell { file: self.file.to_string(), line, column, found: shortened(found), expected }
    }

    fn read_period(&mut self, raw: &str, line: u64, findings: &mut Findings) -> Result<(), CodrError> {
        if raw == self.raw_period && !raw.is_empty() {
            return Ok(());
        }
        let Some(period) = period::parse(raw) else {
            return Err(CodrError::BadPeriod { file: self.file.to_string(), line, found: shortened(raw) });
        };
        self.period.clear();
        period.write(raw, &mut self.period);
        if period != period::Period::Same {
            findings.note(FindingKind::PeriodSpan, self.file, Some(line), 0, || {
                format!("{raw} is kept as the time range {}", self.period)
            });
        }
        self.raw_period.clear();
        self.raw_period.push_str(raw);
        Ok(())
    }

    /// Splits the coordinate of `record` into one member per dimension. `last` is the member of a census table's last
    /// dimension, which the coordinate does not name.
    fn read_coordinate(
        &mut self,
        record: &Record<'_>,
        at: usize,
        last: Option<u32>,
        findings: &mut Findings,
    ) -> Result<(), CodrError> {
        let line = record.line;
        let coordinate = record.cell(at);
        let expected = self.dimensions.len() - usize::from(last.is_some());
        if coordinate.is_empty() {
            return Err(CodrError::MissingCoordinate { file: self.file.to_string(), line, expected });
        }
        let mut parts = 0;
        let mut rest = coordinate;
        loop {
            let (part, more) = rest.split_once('.').map_or((rest, None), |(part, more)| (part, Some(more)));
            if parts < expected {
                let Some(member) = member_id(part) else {
                    let found = shortened(coordinate);
                    return Err(CodrError::BadCoordinate { file: self.file.to_string(), line, found, part: parts + 1 });
                };
                let label = record.cell(if parts == 0 { 1 } else { 2 + parts });
                self.take_member(parts, member, label, coordinate, line, findings)?;
                if let Some(batch) = &mut self.batch {
                    batch.dimensions[parts].append_value(part);
                }
            }
            parts += 1;
            match more {
                Some(more) => rest = more,
                None => break,
            }
        }
        if parts != expected {
            let found = shortened(coordinate);
            return Err(CodrError::CoordinateParts { file: self.file.to_string(), line, found, parts, expected });
        }
        if let Some(member) = last {
            self.take_census_member(expected, member, coordinate, line)?;
        }
        Ok(())
    }

    fn take_member(
        &mut self,
        at: usize,
        member: u32,
        label: &str,
        coordinate: &str,
        line: u64,
        findings: &mut Findings,
    ) -> Result<(), CodrError> {
        let Some(slot) = self.slots[at].find(member) else {
            return Err(self.unknown(at, member, coordinate, line));
        };
        if self.slots[at].labels[slot].as_deref() == Some(label) {
            return Ok(());
        }
        let (file, dimension, language) = (self.file, &self.dimensions[at], self.dialect.language);
        let slots = &mut self.slots[at];
        let known =
            dimension.members.get(&member).and_then(|known| known.names.get(language.tag()).map(|n| (known, n)));
        let expected = match (known, &slots.first_labels[slot]) {
            (Some((known, name)), _) => {
                let plain = same_text(without_code(label, &known.classification));
                (plain != same_text(name) && same_text(label) != same_text(name)).then(|| name.clone())
            }
            (None, Some(first)) => (same_text(first) != same_text(label)).then(|| first.to_string()),
            (None, None) => None,
        };
        if let Some(expected) = expected {
            let subject = (at as u64) << 32 | u64::from(member);
            findings.note(FindingKind::LabelDiffers, file, Some(line), subject, || {
                format!(
                    "member {member} of dimension {} ({}) is called {:?} here and {:?} before or in the metadata; the coordinate holds",
                    at + 1,
                    dimension.name(),
                    shortened(label),
                    shortened(&expected),
                )
            });
        }
        slots.first_labels[slot].get_or_insert_with(|| label.into());
        slots.labels[slot] = Some(label.into());
        Ok(())
    }

    /// The last dimension's member of a census table, named by the header.
    fn take_census_member(&mut self, at: usize, member: u32, coordinate: &str, line: u64) -> Result<(), CodrError> {
        let Some(slot) = self.slots[at].find(member) else {
            let coordinate = format!("{coordinate}.{member}");
            return Err(self.unknown(at, member, &coordinate, line));
        };
        if self.slots[at].first_labels[slot].is_none()
            && let Layout::Census { members } = &self.dialect.layout
            && let Some(named) = members.iter().find(|named| named.id == member)
        {
            let name = self.dimensions[at].names.get(self.dialect.language.tag()).map_or("", String::as_str);
            let label = named.label.strip_prefix(name).and_then(|rest| rest.trim_start().strip_prefix(':'));
            let label = label.or_else(|| named.label.split_once(':').map(|(_, label)| label)).unwrap_or(&named.label);
            self.slots[at].first_labels[slot] = Some(label.trim().into());
        }
        if let Some(batch) = &mut self.batch {
            let mut digits = [0; 10];
            batch.dimensions[at].append_value(written(member, &mut digits));
        }
        Ok(())
    }

    fn unknown(&self, at: usize, member: u32, coordinate: &str, line: u64) -> CodrError {
        let dimension = &self.dimensions[at];
        CodrError::UnknownMember {
            file: self.file.to_string(),
            line,
            coordinate: shortened(coordinate),
            position: at + 1,
            dimension: dimension.name().to_owned(),
            member,
            members: dimension.members.len(),
            lowest: dimension.members.keys().next().copied().unwrap_or_default(),
            highest: dimension.members.keys().next_back().copied().unwrap_or_default(),
        }
    }

    fn read_marks(&mut self, status: &str, symbol: &str, line: u64) -> Result<Marks, CodrError> {
        let unknown = |found: &str| CodrError::UnknownStatus {
            file: self.file.to_string(),
            line,
            found: shortened(found),
            expected: marks::KNOWN,
        };
        for (text, known) in [(status, &mut self.status), (symbol, &mut self.symbol)] {
            if known.0 != text {
                known.1 = marks::parse(text).ok_or_else(|| unknown(text))?;
                known.0.clear();
                known.0.push_str(text);
            }
        }
        let (one, two) = (self.status.1, self.symbol.1);
        if one.status.is_some() && two.status.is_some() || one.symbol.is_some() && two.symbol.is_some() {
            return Err(unknown(&format!("{status},{symbol}")));
        }
        let terminated = one.terminated || two.terminated;
        if terminated && self.dialect.layout != Layout::Ordinary {
            // A census table has no series, and its rows no place to keep this.
            return Err(unknown(status));
        }
        Ok(Marks { status: one.status.or(two.status), symbol: one.symbol.or(two.symbol), terminated })
    }

    /// Reads a value into `self.value`; whether there is one. A blank is no value, never zero.
    fn read_value(&mut self, raw: &str, line: u64, column: impl Fn() -> String) -> Result<bool, CodrError> {
        if raw.is_empty() {
            return Ok(false);
        }
        let mut value = std::mem::take(&mut self.value);
        value.clear();
        let digits = decimal::normalise(raw, self.point, &mut value);
        self.value = value;
        let Some(digits) = digits else {
            return Err(CodrError::BadValue {
                file: self.file.to_string(),
                line,
                column: column(),
                found: shortened(raw),
                expected: match self.dialect.language {
                    Language::English => "a plain decimal such as -12.50, or blank",
                    Language::French => "a plain decimal with a comma such as -12,50, or blank",
                },
            });
        };
        if digits.scale > self.numbers.scale || digits.integer > self.numbers.integer_digits {
            self.numbers.scale = self.numbers.scale.max(digits.scale);
            self.numbers.integer_digits = self.numbers.integer_digits.max(digits.integer);
            let total = self.numbers.scale + self.numbers.integer_digits;
            if total > MOST_DIGITS {
                return Err(CodrError::ValueTooWide {
                    file: self.file.to_string(),
                    line,
                    found: shortened(raw),
                    digits: total,
                    integer_digits: self.numbers.integer_digits,
                    scale: self.numbers.scale,
                });
            }
        }
        Ok(true)
    }

    fn read_decimals(&mut self, raw: &str, line: u64) -> Result<Option<i16>, CodrError> {
        if raw.is_empty() {
            return Ok(None);
        }
        let digits = raw.bytes().all(|b| b.is_ascii_digit());
        match raw.parse::<u8>().ok().filter(|decimals| digits && *decimals <= 15) {
            Some(decimals) => {
                self.numbers.declared = self.numbers.declared.max(u32::from(decimals));
                Ok(Some(i16::from(decimals)))
            }
            None => Err(self.bad_cell(line, "DECIMALS", raw, "a number from 0 to 15, or blank")),
        }
    }

    fn check_value(&self, has_value: bool, marks: Marks, decimals: Option<i16>, line: u64, findings: &mut Findings) {
        if !has_value {
            if marks.status.is_none() {
                findings.note(FindingKind::BlankWithoutStatus, self.file, Some(line), 0, || {
                    "a row has neither a value nor a status; its value is kept as missing".to_owned()
                });
            }
            return;
        }
        if marks.without_value() {
            findings.note(FindingKind::ValueBesideStatus, self.file, Some(line), 0, || {
                format!("the value {} stands beside the status {}", self.value, marks.status.unwrap_or_default())
            });
        }
        if let Some(decimals) = decimals {
            let found = self.value.split_once('.').map_or(0, |(_, after)| after.len());
            if usize::try_from(decimals) != Ok(found) {
                findings.note(FindingKind::DecimalsDiffer, self.file, Some(line), 0, || {
                    format!("the value {} has {found} decimals, and its row says {decimals}", self.value)
                });
            }
        }
    }

    fn read_scalar(
        &mut self,
        id: &str,
        text: &str,
        line: u64,
        findings: &mut Findings,
    ) -> Result<Option<&'static str>, CodrError> {
        if self.scalar.0 == id && self.scalar.1 == text {
            return Ok(self.scalar.2);
        }
        let power = match id.as_bytes() {
            [] if text.trim().is_empty() => None,
            [b @ b'0'..=b'9'] => Some(usize::from(b - b'0')),
            _ => return Err(self.bad_cell(line, "SCALAR_ID", id, "a digit from 0 to 9")),
        };
        if let Some(power) = power {
            let expected = match self.dialect.language {
                Language::English => POWERS[power].0,
                Language::French => POWERS[power].1,
            };
            if !text.trim().is_empty() && text.trim() != expected {
                findings.note(FindingKind::ScalarTextDiffers, self.file, Some(line), power as u64, || {
                    format!("scalar factor {power} is called {:?}; expected {expected:?}; the id holds", text.trim())
                });
            }
        }
        self.scalar.0.clear();
        self.scalar.0.push_str(id);
        self.scalar.1.clear();
        self.scalar.1.push_str(text);
        self.scalar.2 = power.map(|power| POWER_CODES[power]);
        Ok(self.scalar.2)
    }
}

/// A member's id: digits without leading zeros, not zero.
fn member_id(part: &str) -> Option<u32> {
    let bytes = part.as_bytes();
    if !(1..=9).contains(&bytes.len()) || bytes[0] == b'0' {
        return None;
    }
    bytes.iter().try_fold(0u32, |id, b| b.is_ascii_digit().then(|| id * 10 + u32::from(b - b'0')))
}

/// A label as it is compared: without quotes, which some tables lose, and with single spaces.
fn same_text(label: &str) -> String {
    label.replace('"', "").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `number` in decimal digits, within `digits`.
fn written(number: u32, digits: &mut [u8; 10]) -> &str {
    let mut rest = number;
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    std::str::from_utf8(&digits[at..]).unwrap_or_default()
}
