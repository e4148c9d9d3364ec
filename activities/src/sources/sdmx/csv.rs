//! Data of SDMX-CSV 1.0 and 2.0 (and 2.1, which has the same form), a record at a time.
//!
//! **Memory.** One record, of at most [`RECORD_BYTES`], and the header.

mod error;
mod field;
mod header;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufRead as _, Read};

use ::csv::{ReaderBuilder, StringRecord, Terminator};
use catalog_rules::sdmx::model::{DataStructure, Representation, UrnText};

pub use error::CsvError;
pub use field::values;
pub use header::{Column, ColumnKind, Header, Shape, Version};

use super::input::Input;

/// How large one record may be: a row of long texts in many languages is far below it, a quote that is never closed
/// is not.
pub const RECORD_BYTES: usize = 16 * 1024 * 1024;

/// The components that a message may have columns of, and whether their values are codes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Components {
    coded: BTreeMap<String, bool>,
}

impl Components {
    /// The components of a data structure.
    #[must_use]
    pub fn of(structure: &DataStructure) -> Self {
        let mut coded = BTreeMap::new();
        let mut add = |id: &str, representation: Option<&Representation>| {
            let is_coded = matches!(representation, Some(Representation::Enumerated(_)));
            coded.insert(id.to_owned(), is_coded);
        };
        structure.dimensions.iter().for_each(|one| add(&one.id, one.representation.as_ref()));
        structure.time_dimension.iter().for_each(|one| add(&one.id, None));
        structure.measure_dimension.iter().for_each(|one| add(&one.id, one.representation.as_ref()));
        structure.measures.iter().for_each(|one| add(&one.id, one.representation.as_ref()));
        structure.attributes.iter().for_each(|one| add(&one.id, one.representation.as_ref()));
        structure.metadata_attributes.iter().for_each(|one| add(&one.id, None));
        Self { coded }
    }

    /// Components by id, and whether each is coded.
    #[must_use]
    pub fn new(components: impl IntoIterator<Item = (String, bool)>) -> Self {
        Self { coded: components.into_iter().collect() }
    }

    fn is_coded(&self, id: &str) -> Option<bool> {
        // A nested metadata attribute has the ids of those above it before its own.
        let first = id.split(['.', '[']).next().unwrap_or_default();
        self.coded.get(id).or_else(|| self.coded.get(first)).copied()
    }
}

/// What is to be done with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// `I`, and what a message means that names none.
    Information,
    /// `A`.
    Append,
    /// `M`.
    Merge,
    /// `R`.
    Replace,
    /// `D`.
    Delete,
}

impl Action {
    fn of(text: &str) -> Option<Self> {
        Some(match text.trim() {
            "I" => Self::Information,
            "A" => Self::Append,
            "M" => Self::Merge,
            "R" => Self::Replace,
            "D" => Self::Delete,
            _ => return None,
        })
    }
}

/// What a row says of one component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell<'a> {
    /// Nothing.
    Omitted,
    /// `~`: the dimension does not matter for what the row is of.
    SwitchedOff,
    /// `NaN` or `#N/A`: missing on purpose.
    Missing,
    /// A value: a code's id without its name, or a text as it is. For a column of another [`Shape`] than
    /// [`Shape::Single`] the text of all values, which [`values`] takes apart.
    Value(Cow<'a, str>),
}

/// A row of a message.
#[derive(Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// The line on which it begins, from 1.
    pub line: u64,
    /// What it is data of, by URN: a dataflow, a data structure or a provision agreement.
    pub structure: &'a UrnText,
    /// What is to be done with it.
    pub action: Action,
    /// What it says, one cell for each column of [`ColumnKind::Component`], in their order.
    pub cells: Vec<Cell<'a>>,
}

/// Reads a message row by row.
pub struct CsvReader<R> {
    reader: ::csv::Reader<Input<R>>,
    header: Header,
    record: StringRecord,
    /// The text that named the structure of the row before, and its URN.
    structure: (String, String, UrnText),
}

impl<R: Read> CsvReader<R> {
    /// Opens a message and reads its header. `components` are those of the data structure that it is data of: a column of
    /// anything else is [`ColumnKind::Custom`].
    ///
    /// # Errors
    /// [`CsvError`] for what is no SDMX-CSV, or has a header that cannot be used.
    pub fn open(input: R, components: &Components) -> Result<Self, CsvError> {
        let mut input = Input::new(input);
        input.skip_mark().map_err(|_| CsvError::Empty)?;
        let start =
            String::from_utf8_lossy(input.fill_buf().map_err(CsvError::Io)?).chars().take(80).collect::<String>();
        let separator = header::separator(&start)?;
        input.limit(RECORD_BYTES);
        let mut reader = ReaderBuilder::new()
            .delimiter(separator)
            .has_headers(false)
            .flexible(true)
            .terminator(Terminator::Any(b'\n'))
            .from_reader(input);
        let mut record = StringRecord::new();
        take(&mut reader, &mut record)?;
        let header = Header::of(&record, separator, components)?;
        Ok(Self { reader, header, record, structure: Default::default() })
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The line on which the record begins. The CSV reader tells where it began to look, before any empty lines.
    fn line(&self) -> u64 {
        let looked = self.record.position().map_or(1, ::csv::Position::line);
        let within: usize = self.record.iter().map(|text| text.matches('\n').count()).sum();
        let after = self.reader.position().line();
        looked.max(after.saturating_sub(within as u64 + 1))
    }

    /// The next row; none at the end.
    ///
    /// # Errors
    /// [`CsvError`], naming the line, for a row that is not of the header's form.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, CsvError> {
        loop {
            self.reader.get_mut().begin();
            if !take(&mut self.reader, &mut self.record)? {
                return Ok(None);
            }
            // An empty line is no row.
            if self.record.len() != 1 || !self.record[0].trim().is_empty() {
                break;
            }
        }
        let line = self.line();
        let (found, expected) = (self.record.len(), self.header.columns.len());
        if found != expected {
            return Err(CsvError::Width { line, found, expected });
        }
        let (mut kind, mut id, mut action) = ("dataflow", "", Action::Information);
        for (column, text) in self.header.columns.iter().zip(&self.record) {
            match &column.kind {
                ColumnKind::Structure if self.header.version == Version::V1 => id = text,
                ColumnKind::Structure => kind = text,
                ColumnKind::StructureId => id = text,
                ColumnKind::Action if text.is_empty() => {}
                ColumnKind::Action => {
                    action = Action::of(text).ok_or_else(|| CsvError::Action { line, found: text.to_owned() })?;
                }
                ColumnKind::Label | ColumnKind::Key | ColumnKind::Custom | ColumnKind::Component { .. } => {}
            }
        }
        if (self.structure.0.as_str(), self.structure.1.as_str()) != (kind, id) {
            let urn = field::structure(kind, id, line)?;
            self.structure = (kind.to_owned(), id.to_owned(), urn);
        }
        let header = &self.header;
        let components = header.columns.iter().zip(&self.record);
        let cells = components.filter_map(|(column, text)| match &column.kind {
            ColumnKind::Component { shape, is_coded, .. } => Some(field::cell(text, header, shape, *is_coded)),
            ColumnKind::Structure
            | ColumnKind::StructureId
            | ColumnKind::Action
            | ColumnKind::Label
            | ColumnKind::Key
            | ColumnKind::Custom => None,
        });
        Ok(Some(Row { line, structure: &self.structure.2, action, cells: cells.collect() }))
    }
}

/// Reads a record; false at the end. A carriage return before the end of the line is not part of it: the CSV reader
/// would take it for the end, and count the line after it wrong.
fn take<R: Read>(reader: &mut ::csv::Reader<Input<R>>, record: &mut StringRecord) -> Result<bool, CsvError> {
    let line = reader.position().line();
    let is_there = reader.read_record(record).map_err(|error| {
        let is_over = reader.get_ref().is_over();
        match error.into_kind() {
            ::csv::ErrorKind::Io(_) if is_over => CsvError::TooLarge { line, limit_bytes: RECORD_BYTES },
            ::csv::ErrorKind::Io(error) => CsvError::Io(error),
            ::csv::ErrorKind::Utf8 { pos, .. } => CsvError::Encoding { line: pos.map_or(line, |pos| pos.line()) },
            other => CsvError::Malformed { line, found: format!("{other:?}") },
        }
    })?;
    let last = record.len().saturating_sub(1);
    if record.get(last).is_some_and(|text| text.ends_with('\r')) {
        let position = record.position().cloned();
        let text = record[last].trim_end_matches('\r').to_owned();
        record.truncate(last);
        record.push_field(&text);
        record.set_position(position);
    }
    Ok(is_there)
}

#[cfg(test)]
mod tests;
