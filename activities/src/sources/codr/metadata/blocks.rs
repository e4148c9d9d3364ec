//! Tells the blocks apart and reads their records.

use std::sync::Arc;

use super::super::dialect::{delimiter, shortened};
use super::super::error::CodrError;
use super::super::finding::{FindingKind, Findings};
use super::super::language::{Language, folded};
use super::super::record::{Border, Split, split_by_borders, split_strict, undoubled};
use super::{Correction, Cube, MemberAttribute, MetaDimension, MetaMember, Metadata};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Cube,
    Dimensions,
    Members,
    Legend,
    Surveys,
    Subjects,
    Notes,
    Corrections,
    Attributes,
    Unknown,
}

/// Headers by their first two cells, folded; an empty second cell matches any. The French ones stand in two forms,
/// since published tables and their guide do not agree.
const HEADERS: [(Block, &str, &str); 27] = [
    (Block::Cube, "cube title", ""),
    (Block::Cube, "titre du cube", ""),
    (Block::Dimensions, "dimension id", "dimension name"),
    (Block::Dimensions, "numero d'identification de la dimension", "nom de la dimension"),
    (Block::Dimensions, "identificateur de la dimension", "nom de la dimension"),
    (Block::Members, "dimension id", "member name"),
    (Block::Members, "numero d'identification de la dimension", "nom du membre"),
    (Block::Members, "identificateur de la dimension", "nom du membre"),
    (Block::Attributes, "dimension id", "member id"),
    (Block::Attributes, "numero d'identification de la dimension", "numero d'identification du membre"),
    (Block::Attributes, "identificateur de la dimension", "identificateur du membre"),
    (Block::Legend, "symbol legend", ""),
    (Block::Legend, "legende symbole", ""),
    (Block::Legend, "legende des symboles", ""),
    (Block::Legend, "description", "symbol"),
    (Block::Legend, "description", "symbole"),
    (Block::Surveys, "survey code", ""),
    (Block::Surveys, "code d'enquete", ""),
    (Block::Surveys, "code de l'enquete", ""),
    (Block::Subjects, "subject code", ""),
    (Block::Subjects, "code du sujet", ""),
    (Block::Notes, "note id", ""),
    (Block::Notes, "numero d'identification de la note", ""),
    (Block::Notes, "identificateur de la note", ""),
    (Block::Corrections, "correction id", ""),
    (Block::Corrections, "numero d'identification de la correction", ""),
    (Block::Corrections, "identificateur de la correction", ""),
];

/// Over how many lines a record with lost quotes is looked for.
const REPAIR_LINES: usize = 4;

fn header(line: &str, delimiter: u8) -> Option<(Block, usize)> {
    let mut cells = split_by_borders(line, delimiter, Border::Any);
    let first = folded(&cells[0]);
    let second = cells.get(1).map(|cell| folded(cell)).unwrap_or_default();
    let found = HEADERS.iter().find(|(_, one, two)| first == *one && (two.is_empty() || second == *two))?;
    while cells.len() > 1 && cells.last().is_some_and(String::is_empty) {
        cells.pop();
    }
    Some((found.0, cells.len()))
}

/// Reads the metadata CSV `bytes` of `file`.
///
/// # Errors
/// [`CodrError::MetadataBlock`] without a cube block at the start, [`CodrError::MetadataRecord`] with the line for a
/// record that cannot be read, [`CodrError::DuplicateMember`], [`CodrError::NotUtf8`].
pub(in super::super) fn parse(file: &Arc<str>, bytes: &[u8], findings: &mut Findings) -> Result<Metadata, CodrError> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|fault| CodrError::NotUtf8 {
        file: file.to_string(),
        line: 1 + bytes[..fault.valid_up_to()].iter().filter(|b| **b == b'\n').count() as u64,
    })?;
    let first = text.lines().next().unwrap_or_default();
    let delimiter = delimiter(first);
    let language = match header(first, delimiter) {
        Some((Block::Cube, _)) if folded(first).contains("titre du cube") => Language::French,
        Some((Block::Cube, _)) => Language::English,
        _ => {
            return Err(CodrError::MetadataBlock {
                file: file.to_string(),
                block: "Cube Title",
                expected: "a metadata CSV, whose first line begins with Cube Title or Titre du cube",
            });
        }
    };
    let mut parser = Parser {
        file,
        findings,
        delimiter,
        text,
        at: 0,
        line: 1,
        block: Block::Unknown,
        width: 0,
        pending: None,
        out: Metadata {
            file: Arc::clone(file),
            language,
            cube: Cube::default(),
            dimensions: Vec::new(),
            members: Vec::new(),
            attributes: Vec::new(),
            surveys: Vec::new(),
            subjects: Vec::new(),
            notes: Vec::new(),
            corrections: Vec::new(),
        },
    };
    parser.run()?;
    if parser.out.cube.product_id.is_empty() {
        return Err(CodrError::MetadataBlock {
            file: file.to_string(),
            block: "Cube Title",
            expected: "one record with the table's title and product id",
        });
    }
    Ok(parser.out)
}

struct Parser<'a> {
    file: &'a Arc<str>,
    findings: &'a mut Findings,
    delimiter: u8,
    text: &'a str,
    at: usize,
    line: u64,
    block: Block,
    /// How many cells the block's header has.
    width: usize,
    /// The lines of a note or a correction so far.
    pending: Option<String>,
    out: Metadata,
}

impl<'a> Parser<'a> {
    fn run(&mut self) -> Result<(), CodrError> {
        let mut begins = true;
        while self.at < self.text.len() {
            let line = self.peek(1);
            let free_text = matches!(self.block, Block::Notes | Block::Corrections);
            if line.trim().is_empty() {
                match &mut self.pending {
                    Some(pending) if free_text => pending.push('\n'),
                    Some(_) | None => {}
                }
                begins = true;
                self.advance(1);
            } else if let Some((block, width)) = header(line.trim_end(), self.delimiter) {
                self.finish_text();
                (self.block, self.width) = (block, width);
                begins = false;
                self.advance(1);
            } else if free_text {
                self.text_line(line);
                self.advance(1);
            } else if begins {
                let file = self.file;
                self.findings.note(FindingKind::UnknownBlock, file, Some(self.line), self.line, || {
                    format!("a block begins with {:?}, which no header of a metadata CSV does", shortened(line))
                });
                self.block = Block::Unknown;
                begins = false;
                self.advance(1);
            } else if matches!(self.block, Block::Unknown | Block::Legend) {
                self.advance(1);
            } else {
                self.record()?;
            }
        }
        self.finish_text();
        Ok(())
    }

    /// The next `lines` physical lines, without the last line end.
    fn peek(&self, lines: usize) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.match_indices('\n').nth(lines - 1).map_or(rest.len(), |(at, _)| at);
        rest[..end].trim_end_matches('\r')
    }

    fn advance(&mut self, lines: usize) {
        let rest = &self.text[self.at..];
        let len = rest.match_indices('\n').nth(lines - 1).map_or(rest.len(), |(at, _)| at + 1);
        self.advance_bytes(len);
    }

    fn advance_bytes(&mut self, len: usize) {
        self.line += self.text[self.at..self.at + len].matches('\n').count() as u64;
        self.at += len;
    }

    /// A line of notes or corrections: one that begins with an id begins a record, any other goes on with it.
    fn text_line(&mut self, line: &str) {
        let closed = self.pending.as_ref().is_none_or(|text| text.trim_end().ends_with('"'));
        let after_id = strip_id(line, self.delimiter);
        let begins = match self.block {
            Block::Corrections => after_id.is_some_and(|rest| is_date(rest.trim_start_matches('"'))),
            _ => after_id.is_some_and(|rest| rest.starts_with('"') || closed),
        };
        if begins {
            self.finish_text();
            self.pending = Some(line.to_owned());
        } else if let Some(pending) = &mut self.pending {
            pending.push('\n');
            pending.push_str(line);
        }
    }

    fn finish_text(&mut self) {
        let Some(record) = self.pending.take() else { return };
        let delimiter = char::from(self.delimiter);
        let Some((id, rest)) = record.split_once(delimiter) else { return };
        let id = id.trim_matches('"').to_owned();
        match self.block {
            Block::Notes => self.out.notes.push((id, unquoted(rest, delimiter))),
            Block::Corrections => {
                let (date, text) = rest.split_once(delimiter).unwrap_or((rest, ""));
                self.out.corrections.push(Correction {
                    id,
                    date: date.trim_matches('"').to_owned(),
                    text: unquoted(text, delimiter),
                });
            }
            Block::Cube
            | Block::Dimensions
            | Block::Members
            | Block::Legend
            | Block::Surveys
            | Block::Subjects
            | Block::Attributes
            | Block::Unknown => {}
        }
    }

    /// Reads one record of a block of cells.
    fn record(&mut self) -> Result<(), CodrError> {
        let line = self.line;
        let mut spans = Vec::new();
        let rest = &self.text[self.at..];
        let mut cells = match split_strict(rest.as_bytes(), self.delimiter, true, &mut spans) {
            Split::Done { len, .. } if spans.len() >= self.width => {
                self.advance_bytes(len);
                spans.iter().map(|(begin, end)| undoubled(&rest[*begin as usize..*end as usize])).collect()
            }
            Split::Done { .. } | Split::NeedMore | Split::Malformed => self.repair(),
        };
        // A member's cells beyond the header's may be note ids, and its last one a blank definition.
        while self.block != Block::Members && cells.len() > self.width && cells.last().is_some_and(String::is_empty) {
            cells.pop();
        }
        let extra = cells.len().saturating_sub(self.width);
        cells.resize(cells.len().max(self.width), String::new());
        let cells: Vec<&str> = cells.iter().map(|cell| cell.trim()).collect();
        match self.block {
            Block::Cube => self.cube(&cells, extra, line),
            Block::Dimensions => self.dimension(&cells, extra, line),
            Block::Members => self.member(&cells, extra, line),
            Block::Attributes => self.attribute(&cells, line),
            Block::Surveys => {
                self.out.surveys.push(pair(&cells));
                Ok(())
            }
            Block::Subjects => {
                self.out.subjects.push(pair(&cells));
                Ok(())
            }
            Block::Legend | Block::Notes | Block::Corrections | Block::Unknown => Ok(()),
        }
    }

    /// Cuts the next record by its borders, over as few lines as give enough cells, and moves behind it.
    fn repair(&mut self) -> Vec<String> {
        let mut best = split_by_borders(self.peek(1), self.delimiter, Border::Any);
        let mut taken = 1;
        for lines in 2..=REPAIR_LINES {
            if best.len() >= self.width {
                break;
            }
            let more = split_by_borders(self.peek(lines), self.delimiter, Border::Any);
            if more.len() == self.width {
                (best, taken) = (more, lines);
            }
        }
        self.advance(taken);
        best
    }

    fn bad(&self, line: u64, block: &'static str, cells: &[&str], expected: &'static str) -> CodrError {
        CodrError::MetadataRecord {
            file: self.file.to_string(),
            line,
            block,
            found: shortened(&cells.join(" | ")),
            expected,
        }
    }

    fn cube(&mut self, cells: &[&str], extra: usize, line: u64) -> Result<(), CodrError> {
        // Cells beyond the header's are further note ids, which some writers leave without quotes.
        let at = |position: usize| if position > 4 { position + extra } else { position };
        let cell = |position: usize| cells.get(at(position)).copied().unwrap_or_default().to_owned();
        if self.width < 10 || !self.out.cube.product_id.is_empty() {
            return Err(self.bad(line, "Cube Title", cells, "one record of at least 10 cells"));
        }
        self.out.cube = Cube {
            title: cell(0),
            product_id: cell(1),
            line,
            cansim_id: cell(2),
            url: cell(3),
            notes: note_ids(&cells[4..=4 + extra]),
            archive_status: cell(5).split_whitespace().collect::<Vec<_>>().join(" "),
            frequency: cell(6),
            start: cell(7),
            end: cell(8),
            dimensions: cell(9).parse().ok(),
        };
        if self.out.cube.product_id.is_empty() {
            return Err(self.bad(line, "Cube Title", cells, "a product id in the second cell"));
        }
        Ok(())
    }

    fn dimension(&mut self, cells: &[&str], extra: usize, line: u64) -> Result<(), CodrError> {
        let next = self.out.dimensions.len() + 1;
        let position = cells[0].parse().ok().filter(|position| *position == next);
        let (Some(position), true) = (position, self.width >= 3 && !cells[1].is_empty()) else {
            return Err(self.bad(
                line,
                "Dimension ID, Dimension name",
                cells,
                "dimensions numbered from 1, each with a name",
            ));
        };
        self.out.dimensions.push(MetaDimension {
            position,
            name: cells[1].to_owned(),
            notes: note_ids(&cells[2..=2 + extra]),
            definition: if self.width > 3 { cells[cells.len() - 1].to_owned() } else { String::new() },
        });
        Ok(())
    }

    fn member(&mut self, cells: &[&str], extra: usize, line: u64) -> Result<(), CodrError> {
        const EXPECTED: &str = "a dimension's id, a name, a code, a member's id and its parent's id";
        if self.width < 6 {
            return Err(self.bad(line, "Dimension ID, Member Name", cells, EXPECTED));
        }
        let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n > 0);
        let parent = match cells[4] {
            "" | "0" => Some(None),
            text => number(text).map(Some),
        };
        let (Ok(position), Some(id), Some(parent)) = (cells[0].parse(), number(cells[3]), parent) else {
            return Err(self.bad(line, "Dimension ID, Member Name", cells, EXPECTED));
        };
        let rest = &cells[6..];
        let notes = if extra == 0 {
            rest.len().min(1)
        } else {
            rest.iter().take_while(|cell| cell.starts_with(|c: char| c.is_ascii_digit())).count()
        };
        let definition = match self.width {
            ..8 => "",
            8 => rest[notes..].iter().rfind(|cell| !cell.is_empty()).copied().unwrap_or_default(),
            9.. if extra == 0 => cells[cells.len() - 1],
            9.. => "",
        };
        self.out.members.push(MetaMember {
            line,
            position,
            id,
            name: cells[1].to_owned(),
            classification: cells[2].trim_start_matches('[').trim_end_matches(']').to_owned(),
            parent,
            terminated: cells[5] == "t",
            notes: note_ids(&rest[..notes]),
            definition: definition.to_owned(),
        });
        Ok(())
    }

    fn attribute(&mut self, cells: &[&str], line: u64) -> Result<(), CodrError> {
        let number = |at: usize| cells.get(at).and_then(|cell| cell.parse::<u32>().ok());
        let (Some(position), Some(member)) = (number(0), number(1)) else {
            return Err(self.bad(line, "Dimension ID, Member ID", cells, "the ids of a dimension and of a member"));
        };
        let cell = |at: usize| cells.get(at).copied().unwrap_or_default().to_owned();
        let label = if cell(5).is_empty() { cell(4) } else { cell(5) };
        self.out.attributes.push(MemberAttribute {
            position: position as usize,
            member,
            key: cell(2),
            title: cell(3),
            label,
            value: cell(6),
        });
        Ok(())
    }
}

fn pair(cells: &[&str]) -> (String, String) {
    (cells[0].to_owned(), cells.get(1).copied().unwrap_or_default().to_owned())
}

/// Note ids as `1;2;3`, whatever joins them in the file.
fn note_ids(cells: &[&str]) -> String {
    let ids: Vec<&str> =
        cells.iter().flat_map(|cell| cell.split([';', ','])).map(str::trim).filter(|id| !id.is_empty()).collect();
    ids.join(";")
}

/// What follows `id<delimiter>` at the start of `line`.
fn strip_id(line: &str, delimiter: u8) -> Option<&str> {
    let rest = line.strip_prefix('"').unwrap_or(line);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &rest[digits..];
    let rest = rest.strip_prefix('"').unwrap_or(rest);
    if digits == 0 { None } else { rest.strip_prefix(char::from(delimiter)) }
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 10
        && bytes[..10]
            .iter()
            .enumerate()
            .all(|(at, b)| if at == 4 || at == 7 { *b == b'-' } else { b.is_ascii_digit() })
}

/// A text without its outer pair of quotes. Inner quotes are made single where all of them were doubled.
fn unquoted(text: &str, delimiter: char) -> String {
    let text = text.trim();
    let Some(inner) = text.strip_prefix('"') else {
        return text.trim_end_matches(delimiter).to_owned();
    };
    let inner = inner.trim_end_matches(delimiter);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let doubled = inner.split(|c| c != '"').all(|run| run.len() % 2 == 0);
    if doubled { undoubled(inner) } else { inner.to_owned() }
}
