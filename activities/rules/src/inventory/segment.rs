//! History segments (*catalog* §6.9): the roots that an expiry or a restore removed, in JSON Lines.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::change::{Change, check_changes};
use super::document::{Document, DocumentError, FormatVersion, nullable, present, rises};
use super::root::{Event, Producer, Root, Seq};
use crate::ids::{CatalogId, Sha256Hex};
use crate::instant::Instant;

/// A segment is split when it has this many lines (*catalog* §6.9).
pub const MAX_SEGMENT_LINES: usize = 1_000;
/// A segment is split before it passes this size (*catalog* §6.9).
pub const MAX_SEGMENT_BYTES: usize = 64 * 1024 * 1024;

const RULE: &str = "catalog §6.9";

/// What removed the roots of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SegmentKind {
    /// Their retention window.
    Expiry,
    /// A restore to a version before them.
    Restore,
}

/// The first line of a segment: the plan, written before anything is deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SegmentHeader {
    /// `1.0`.
    pub format_version: FormatVersion,
    /// `catalog.json`'s.
    pub catalog_id: CatalogId,
    /// What removed the roots.
    pub kind: SegmentKind,
    /// The epoch of the roots, which names the segment's folder.
    pub restore_epoch: u64,
    /// The lowest of `roots`.
    pub first: Seq,
    /// The highest of `roots`.
    pub last: Seq,
    /// The segment before this one, whatever its epoch; `null` for the catalog's first.
    #[serde(deserialize_with = "nullable")]
    pub previous_segment: Option<String>,
    /// The SHA-256 of that segment.
    #[serde(deserialize_with = "nullable")]
    pub previous_segment_sha256: Option<Sha256Hex>,
    /// When the segment was written, in the store's time.
    pub expired_at: Instant,
    /// Who wrote it.
    pub actor: String,
    /// Each root that the run deletes, ascending.
    pub roots: Vec<Seq>,
    /// Each leaf that may go with them; empty in a restore's segment.
    pub leaves: Vec<Sha256Hex>,
    /// The roots that a restore deletes and could not read; empty in an expiry's segment.
    pub unread: Vec<Seq>,
    /// Fields of a newer minor, kept.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Document for SegmentHeader {
    const NAME: &'static str = "header of a history segment";
    const RULE: &'static str = RULE;
    const MAJORS: &'static str = "1";

    fn format_version(&self) -> FormatVersion {
        self.format_version
    }

    fn knows(major: u32) -> bool {
        major == 1
    }

    fn validate(&self) -> Result<(), DocumentError> {
        let rule = |found: &str, expected: &'static str| {
            Err(DocumentError::Rule { document: Self::NAME, rule: RULE, found: found.to_owned(), expected })
        };
        if !rises(self.roots.iter()) || !rises(self.unread.iter()) {
            return rule("roots or unread out of order", "each once, ascending");
        }
        if (Some(&self.first), Some(&self.last)) != (self.roots.first(), self.roots.last()) {
            return rule("first and last that are not those of roots", "the lowest and the highest of roots");
        }
        if self.previous_segment.is_some() != self.previous_segment_sha256.is_some() {
            return rule("previous_segment without previous_segment_sha256, or the reverse", "both or neither");
        }
        if self.unread.iter().any(|seq| self.roots.binary_search(seq).is_err()) {
            return rule("an unread root that is not among roots", "unread as a part of roots");
        }
        match self.kind {
            SegmentKind::Expiry if !self.unread.is_empty() => rule("unread roots in an expiry", "every root read"),
            SegmentKind::Restore if !self.leaves.is_empty() => rule("leaves in a restore", "no leaves"),
            SegmentKind::Expiry | SegmentKind::Restore => Ok(()),
        }
    }
}

/// A further line of a segment: a removed root without `products` and `retired`, and the SHA-256 of its bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SegmentLine {
    /// The root's.
    pub format_version: FormatVersion,
    /// The root's.
    pub seq: Seq,
    /// The root's.
    #[serde(deserialize_with = "nullable")]
    pub previous_inventory: Option<Seq>,
    /// The root's.
    pub restore_epoch: u64,
    /// The root's.
    pub created_at: Instant,
    /// The root's.
    pub producer: Producer,
    /// The root's.
    pub embargo: bool,
    /// The root's.
    pub event: Event,
    /// The root's.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extensions: Map<String, Value>,
    /// The root's; absent when the root carried no history fields, which a restore's segment may hold.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub previous_root_sha256: Option<Option<Sha256Hex>>,
    /// The root's, present with the field before it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<Change>>,
    /// The root's fields of a newer minor.
    #[serde(flatten)]
    pub other: Map<String, Value>,
    /// The SHA-256 of the root's stored bytes; the last field.
    pub root_sha256: Sha256Hex,
}

impl SegmentLine {
    /// The line of `root`, whose stored bytes have the SHA-256 `root_sha256`.
    #[must_use]
    pub fn of(root: &Root, root_sha256: Sha256Hex) -> Self {
        Self {
            format_version: root.format_version,
            seq: root.seq,
            previous_inventory: root.previous_inventory,
            restore_epoch: root.restore_epoch,
            created_at: root.created_at,
            producer: root.producer.clone(),
            embargo: root.embargo,
            event: root.event.clone(),
            extensions: root.extensions.clone(),
            previous_root_sha256: root.previous_root_sha256.clone(),
            changes: root.changes.clone(),
            other: root.other.clone(),
            root_sha256,
        }
    }

    /// Whether the line carries the history fields (H19).
    #[must_use]
    pub fn has_history(&self) -> bool {
        self.previous_root_sha256.is_some() && self.changes.is_some()
    }
}

impl Document for SegmentLine {
    const NAME: &'static str = "line of a history segment";
    const RULE: &'static str = RULE;
    const MAJORS: &'static str = "1";

    fn format_version(&self) -> FormatVersion {
        self.format_version
    }

    fn knows(major: u32) -> bool {
        major == 1
    }

    fn validate(&self) -> Result<(), DocumentError> {
        check_changes(Self::NAME, RULE, self.seq, self.previous_root_sha256.as_ref(), self.changes.as_deref())
    }
}

/// A whole segment.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// The plan.
    pub header: SegmentHeader,
    /// One line a removed root that could be read, ascending.
    pub lines: Vec<SegmentLine>,
}

impl Segment {
    /// The segment in `bytes`, complete and consistent in itself.
    ///
    /// # Errors
    /// [`DocumentError`] for a line that cannot be read, a missing newline at the end, or lines that are not those
    /// that the header names.
    pub fn decode(bytes: &[u8]) -> Result<Self, DocumentError> {
        let Some(text) = bytes.strip_suffix(b"\n") else {
            return Err(rule("no newline at its end", "JSON Lines, each line ended by one newline"));
        };
        let mut lines = text.split(|byte| *byte == b'\n');
        let header = SegmentHeader::decode(lines.next().unwrap_or_default())?;
        let lines = lines.map(SegmentLine::decode).collect::<Result<Vec<_>, _>>()?;
        let segment = Self { header, lines };
        segment.validate()?;
        Ok(segment)
    }

    /// The bytes of the segment: compact JSON, one document a line.
    ///
    /// # Errors
    /// [`DocumentError`] when the segment is not consistent in itself.
    pub fn encode(&self) -> Result<Vec<u8>, DocumentError> {
        self.header.validate()?;
        self.validate()?;
        let mut bytes = self.header.encode()?;
        bytes.push(b'\n');
        for line in &self.lines {
            bytes.extend(line.encode()?);
            bytes.push(b'\n');
        }
        Ok(bytes)
    }

    fn validate(&self) -> Result<(), DocumentError> {
        let header = &self.header;
        let expected = header.roots.iter().filter(|seq| header.unread.binary_search(seq).is_err());
        if !self.lines.iter().map(|line| &line.seq).eq(expected) {
            return Err(rule("lines of other roots than its header names", "one line a root, but for unread ones"));
        }
        for line in &self.lines {
            line.validate()?;
            if line.restore_epoch != header.restore_epoch {
                return Err(rule("a line of another restore_epoch", "the epoch of its header"));
            }
            if header.kind == SegmentKind::Expiry && !line.has_history() {
                return Err(rule("a line without history fields", "history fields in every line of an expiry"));
            }
        }
        Ok(())
    }
}

fn rule(found: &str, expected: &'static str) -> DocumentError {
    DocumentError::Rule { document: "history segment", rule: RULE, found: found.to_owned(), expected }
}
