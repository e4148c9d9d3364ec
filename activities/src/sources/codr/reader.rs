//! Records of a data file, one at a time, in memory that does not grow with the file.

use std::io::{self, Read};
use std::sync::Arc;

use super::error::CodrError;
use super::locate::is_damage;
use super::record::{Border, Span, Split, split_by_borders, split_strict, undoubled};

/// The longest record that is read, in bytes. A label has at most a few hundred characters, and a census row a few
/// thousand cells.
const RECORD_LIMIT: usize = 4 << 20;
/// How much is read at a time, in bytes.
const CHUNK: usize = 256 << 10;
/// Over how many lines a record with lost quotes is looked for: a label may end in a line break.
const REPAIR_LINES: usize = 4;

/// One record: its text, the spans of its cells and where it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    text: &'a str,
    cells: &'a [Span],
    /// The physical line at which it begins, from 1.
    pub(super) line: u64,
    /// Whether its inner quotes were lost.
    pub(super) repaired: bool,
}

impl<'a> Record<'a> {
    /// How many cells it has.
    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Cell `index`, from 0; empty beyond the last.
    pub(super) fn cell(&self, index: usize) -> &'a str {
        let (begin, end) = self.cells.get(index).copied().unwrap_or_default();
        self.text.get(begin as usize..end as usize).unwrap_or_default()
    }
}

/// Reads records from `input`. Blank lines are passed over, a byte order mark too.
pub(super) struct RecordReader<R> {
    input: R,
    file: Arc<str>,
    /// Whether `input` is a member of an archive, whose faults are the archive's.
    archived: bool,
    delimiter: u8,
    /// How many cells a record must have; none while the header is read.
    expected: Option<usize>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
    line: u64,
    cells: Vec<Span>,
    scratch: String,
}

impl<R: Read> RecordReader<R> {
    /// A reader at the start of `file`.
    pub(super) fn new(input: R, file: Arc<str>, archived: bool) -> Result<Self, CodrError> {
        let mut reader = Self {
            input,
            file,
            archived,
            delimiter: b',',
            expected: None,
            buffer: vec![0; CHUNK],
            start: 0,
            end: 0,
            at_end: false,
            line: 1,
            cells: Vec::new(),
            scratch: String::new(),
        };
        while reader.end < 3 && !reader.at_end {
            reader.fill()?;
        }
        if reader.buffer[..reader.end].starts_with(b"\xEF\xBB\xBF") {
            reader.start = 3;
        }
        Ok(reader)
    }

    /// The bytes of the first physical line, without consuming them: what a header is told from.
    pub(super) fn first_line(&mut self) -> Result<String, CodrError> {
        loop {
            let bytes = &self.buffer[self.start..self.end];
            if let Some(length) = bytes.iter().position(|b| *b == b'\n') {
                return self.text_of(self.start..self.start + length);
            }
            if self.at_end {
                return self.text_of(self.start..self.end);
            }
            self.check_limit()?;
            self.fill()?;
        }
    }

    fn text_of(&self, range: std::ops::Range<usize>) -> Result<String, CodrError> {
        std::str::from_utf8(&self.buffer[range])
            .map(|text| text.trim_end_matches('\r').to_owned())
            .map_err(|_| CodrError::NotUtf8 { file: self.file.to_string(), line: self.line })
    }

    /// Sets what separates cells.
    pub(super) fn set_delimiter(&mut self, delimiter: u8) {
        self.delimiter = delimiter;
    }

    /// Sets how many cells each further record has.
    pub(super) fn expect_cells(&mut self, expected: usize) {
        self.expected = Some(expected);
    }

    /// The next record, or none at the end of the file. It has the expected number of cells.
    pub(super) fn next(&mut self) -> Result<Option<Record<'_>>, CodrError> {
        let (len, doubled, repaired) = loop {
            if self.start == self.end && self.at_end {
                return Ok(None);
            }
            match split_strict(&self.buffer[self.start..self.end], self.delimiter, self.at_end, &mut self.cells) {
                Split::NeedMore => {
                    self.check_limit()?;
                    self.fill()?;
                }
                Split::Done { len, .. } if self.cells.len() == 1 && self.cells[0].0 == self.cells[0].1 => {
                    self.start += len;
                    self.line += 1;
                }
                Split::Done { len, doubled } if self.expected.is_none_or(|n| n == self.cells.len()) => {
                    break (len, doubled, false);
                }
                Split::Done { .. } | Split::Malformed => break (self.repair()?, false, true),
            }
        };
        let line = self.line;
        let bytes = &self.buffer[self.start..self.start + len];
        self.line += count_lines(bytes);
        self.start += len;
        let not_utf8 = |found: &[u8], at: usize| CodrError::NotUtf8 {
            file: self.file.to_string(),
            line: line + count_lines(&found[..at]),
        };
        if repaired {
            return Ok(Some(Record { text: &self.scratch, cells: &self.cells, line, repaired }));
        }
        let text = std::str::from_utf8(bytes).map_err(|fault| not_utf8(bytes, fault.valid_up_to()))?;
        if !doubled {
            return Ok(Some(Record { text, cells: &self.cells, line, repaired }));
        }
        self.scratch.clear();
        for cell in &mut self.cells {
            let begin = self.scratch.len();
            self.scratch.push_str(&undoubled(&text[cell.0 as usize..cell.1 as usize]));
            *cell = spans(begin, self.scratch.len());
        }
        Ok(Some(Record { text: &self.scratch, cells: &self.cells, line, repaired }))
    }

    /// Cuts the record at `start` by its borders, over as few lines as give the expected number of cells, into
    /// `scratch` and `cells`; the length of these lines is returned.
    fn repair(&mut self) -> Result<usize, CodrError> {
        let mut lines = 1;
        loop {
            let bytes = &self.buffer[self.start..self.end];
            let ends = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1);
            let Some(len) = ends.clone().nth(lines - 1).or(self.at_end.then_some(bytes.len())) else {
                self.check_limit()?;
                self.fill()?;
                continue;
            };
            let text = std::str::from_utf8(&bytes[..len]).map_err(|fault| CodrError::NotUtf8 {
                file: self.file.to_string(),
                line: self.line + count_lines(&bytes[..fault.valid_up_to()]),
            })?;
            let record = text.strip_suffix('\n').unwrap_or(text);
            let record = record.strip_suffix('\r').unwrap_or(record);
            let found = split_by_borders(record, self.delimiter, Border::Quoted);
            // A label goes on in the next line when no quote ends this one, or when the next begins with its quote.
            let next = &bytes[len..];
            if found.len() < self.expected.unwrap_or(1) && lines < REPAIR_LINES {
                if next.len() < 2 && !self.at_end {
                    self.check_limit()?;
                    self.fill()?;
                    continue;
                }
                let goes_on = !record.ends_with('"') || next.starts_with(&[b'"', self.delimiter]);
                if goes_on && !next.is_empty() {
                    lines += 1;
                    continue;
                }
            }
            if let Some(expected) = self.expected
                && found.len() != expected
            {
                // Told of the first line alone: what follows it is likely a record of its own.
                let first = record.split('\n').next().unwrap_or(record);
                let found = split_by_borders(first.trim_end_matches('\r'), self.delimiter, Border::Any).len();
                return Err(CodrError::CellCount { file: self.file.to_string(), line: self.line, found, expected });
            }
            self.scratch.clear();
            self.cells.clear();
            for cell in &found {
                let begin = self.scratch.len();
                self.scratch.push_str(cell);
                self.cells.push(spans(begin, self.scratch.len()));
            }
            return Ok(len);
        }
    }

    fn check_limit(&self) -> Result<(), CodrError> {
        if self.end - self.start < RECORD_LIMIT {
            return Ok(());
        }
        Err(CodrError::RecordTooLong { file: self.file.to_string(), line: self.line, limit: RECORD_LIMIT })
    }

    /// Reads more behind what is left, which moves to the front.
    fn fill(&mut self) -> Result<(), CodrError> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < CHUNK / 2 {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(read) => self.end += read,
                Err(fault) if fault.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(self.read_fault(source)),
            }
            return Ok(());
        }
    }

    fn read_fault(&self, source: io::Error) -> CodrError {
        if self.archived && is_damage(&source) {
            CodrError::BadArchive { file: self.file.to_string(), source }
        } else {
            CodrError::Io { file: self.file.to_string(), doing: "reading its rows", source }
        }
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|b| **b == b'\n').count() as u64
}

#[allow(clippy::cast_possible_truncation, reason = "a record is at most a few MiB")]
const fn spans(begin: usize, end: usize) -> Span {
    (begin as u32, end as u32)
}

#[cfg(test)]
mod tests;
