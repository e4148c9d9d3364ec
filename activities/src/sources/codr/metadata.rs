//! The metadata CSV: blocks with a header each, in the dialects of 2018, 2019 to 2021, and since.

mod blocks;

use std::sync::Arc;

use super::error::CodrError;
use super::language::Language;

pub(super) use blocks::parse;

/// What a metadata CSV says of its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Metadata {
    pub(super) file: Arc<str>,
    pub(super) language: Language,
    pub(super) cube: Cube,
    pub(super) dimensions: Vec<MetaDimension>,
    pub(super) members: Vec<MetaMember>,
    pub(super) attributes: Vec<MemberAttribute>,
    /// Codes and names of the surveys.
    pub(super) surveys: Vec<(String, String)>,
    /// Codes and names of the subjects.
    pub(super) subjects: Vec<(String, String)>,
    /// Ids and texts of the notes; texts may hold HTML.
    pub(super) notes: Vec<(String, String)>,
    pub(super) corrections: Vec<Correction>,
}

/// The block `Cube`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Cube {
    pub(super) title: String,
    pub(super) product_id: String,
    /// The physical line of the record.
    pub(super) line: u64,
    pub(super) cansim_id: String,
    pub(super) url: String,
    /// Ids of notes about the whole table, joined by `;`.
    pub(super) notes: String,
    pub(super) archive_status: String,
    pub(super) frequency: String,
    pub(super) start: String,
    pub(super) end: String,
    /// How many dimensions the table has, where it is said.
    pub(super) dimensions: Option<usize>,
}

/// A record of the block `Dimensions`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MetaDimension {
    pub(super) position: usize,
    pub(super) name: String,
    pub(super) notes: String,
    pub(super) definition: String,
}

/// A record of the block `Members`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MetaMember {
    pub(super) line: u64,
    pub(super) position: usize,
    pub(super) id: u32,
    pub(super) name: String,
    /// The classification code without its brackets; empty for none.
    pub(super) classification: String,
    /// The parent's id; none for a root.
    pub(super) parent: Option<u32>,
    pub(super) terminated: bool,
    pub(super) notes: String,
    pub(super) definition: String,
}

/// A record of the block of member attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MemberAttribute {
    pub(super) position: usize,
    pub(super) member: u32,
    pub(super) key: String,
    pub(super) title: String,
    pub(super) label: String,
    pub(super) value: String,
}

/// A record of the block `Corrections`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Correction {
    pub(super) id: String,
    pub(super) date: String,
    pub(super) text: String,
}

impl Metadata {
    /// Refuses the metadata of another product than `product_id`. The id may be written `14-10-0287-01`: its last two
    /// digits are a view of the same table.
    pub(super) fn of_product(&self, product_id: &str) -> Result<(), CodrError> {
        let digits: String = self.cube.product_id.chars().filter(char::is_ascii_digit).collect();
        let table = if digits.len() == 10 { &digits[..8] } else { digits.as_str() };
        if table == product_id {
            return Ok(());
        }
        Err(CodrError::OtherProduct {
            file: self.file.to_string(),
            line: self.cube.line,
            found: self.cube.product_id.clone(),
            expected: product_id.to_owned(),
        })
    }
}

#[cfg(test)]
pub(super) fn parse_text(text: &str) -> Result<(Metadata, Vec<super::Finding>), CodrError> {
    let mut findings = super::finding::Findings::default();
    parse(&"m.csv".into(), text.as_bytes(), &mut findings).map(|metadata| (metadata, findings.into_list()))
}

#[cfg(test)]
mod tests;
