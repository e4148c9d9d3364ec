//! What is kept of roots and segments after they were read once. Neither ever changes, so what is known of an object
//! holds as long as the store shows it with the same `ETag` (*catalog* §6.9 step 6).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{CatalogId, Sha256Hex};
use crate::instant::Instant;
use crate::inventory::{Document as _, Root, Segment, SegmentKind, SegmentLine, Seq};
use crate::layout;

/// What a store calls the state of an object: an `ETag`, or on a disk whatever tells one state from another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ETag(String);

impl ETag {
    /// The tag as the store gave it.
    #[must_use]
    pub fn new(tag: impl Into<String>) -> Self {
        Self(tag.into())
    }

    /// The tag as the store gave it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What expiry needs of a root, without its products and changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootFacts {
    /// The version.
    pub seq: Seq,
    /// Its epoch.
    pub restore_epoch: u64,
    /// When it was written.
    pub created_at: Instant,
    /// The SHA-256 of its stored bytes.
    pub root_sha256: Sha256Hex,
    /// As in the root: `None` when it carries no history fields.
    #[serde(default, with = "twice", skip_serializing_if = "Option::is_none")]
    pub previous_root_sha256: Option<Option<Sha256Hex>>,
    /// The length of its line in a segment, with the newline.
    pub line_bytes: u64,
}

/// An optional field that may be `null`, told apart from an absent one.
mod twice {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<T: Serialize, S: Serializer>(value: &Option<Option<T>>, to: S) -> Result<S::Ok, S::Error> {
        value.as_ref().and_then(Option::as_ref).serialize(to)
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Option<T>>, D::Error> {
        Option::deserialize(from).map(Some)
    }
}

impl RootFacts {
    /// Whether the root carries the history fields (H19).
    #[must_use]
    pub fn has_history(&self) -> bool {
        self.previous_root_sha256.is_some()
    }
}

/// A segment by its path and the SHA-256 of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SegmentRef {
    /// Its path within the catalog.
    pub path: String,
    /// The SHA-256 of its bytes.
    pub sha256: Sha256Hex,
}

/// What is kept of a line of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineFacts {
    /// The version.
    pub seq: Seq,
    /// When it was written.
    pub created_at: Instant,
    /// The SHA-256 that the root's bytes had.
    pub root_sha256: Sha256Hex,
    /// As in the root.
    #[serde(default, with = "twice", skip_serializing_if = "Option::is_none")]
    pub previous_root_sha256: Option<Option<Sha256Hex>>,
}

impl From<&SegmentLine> for LineFacts {
    fn from(line: &SegmentLine) -> Self {
        Self {
            seq: line.seq,
            created_at: line.created_at,
            root_sha256: line.root_sha256.clone(),
            previous_root_sha256: line.previous_root_sha256.clone(),
        }
    }
}

/// What expiry needs of a segment, without the changes in its lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentFacts {
    /// The segment.
    pub at: SegmentRef,
    /// The catalog that it names.
    pub catalog_id: CatalogId,
    /// What removed its roots.
    pub kind: SegmentKind,
    /// The epoch of its roots.
    pub restore_epoch: u64,
    /// When it was written.
    pub expired_at: Instant,
    /// The segment before it.
    pub previous: Option<SegmentRef>,
    /// The versions that it removes.
    pub roots: Vec<Seq>,
    /// Those among them that could not be read.
    pub unread: Vec<Seq>,
    /// The leaves that may go with them.
    pub leaves: Vec<Sha256Hex>,
    /// Its lines.
    pub lines: Vec<LineFacts>,
}

impl SegmentFacts {
    /// What `bytes`, found at `path`, say.
    ///
    /// # Errors
    /// A sentence, when they are no segment, or not the one that their path names.
    pub fn of(path: &str, bytes: &[u8]) -> Result<Self, String> {
        let Segment { header, lines } = Segment::decode(bytes).map_err(|error| error.to_string())?;
        let name = layout::segment_name(path).ok_or_else(|| "its name is not a segment's".to_owned())?;
        if (name.restore_epoch, name.first, name.last) != (header.restore_epoch, header.first, header.last) {
            return Err("its name is not the one that its header gives".to_owned());
        }
        let previous = header.previous_segment.zip(header.previous_segment_sha256);
        Ok(Self {
            at: SegmentRef { path: path.to_owned(), sha256: Sha256Hex::of(bytes) },
            catalog_id: header.catalog_id,
            kind: header.kind,
            restore_epoch: header.restore_epoch,
            expired_at: header.expired_at,
            previous: previous.map(|(path, sha256)| SegmentRef { path, sha256 }),
            roots: header.roots,
            unread: header.unread,
            leaves: header.leaves,
            lines: lines.iter().map(LineFacts::from).collect(),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CachedRoot {
    etag: ETag,
    facts: RootFacts,
    /// The leaves that it names, as numbers of the cache's list; sorted.
    leaves: Vec<u32>,
}

/// Some leaves of a cache: thousands of roots name millions of times the same ones.
#[derive(Debug)]
pub(super) struct LeafNumbers(Vec<bool>);

impl LeafNumbers {
    pub(super) fn contains(&self, number: u32) -> bool {
        usize::try_from(number).ok().and_then(|number| self.0.get(number)).copied().unwrap_or_default()
    }
}

/// Roots by path and `ETag`, with the leaves that each names, and segments by path. A lost or unreadable cache costs
/// reads and nothing else.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "CacheDocument", into = "CacheDocument")]
pub struct Cache {
    roots: BTreeMap<Seq, CachedRoot>,
    segments: BTreeMap<String, SegmentFacts>,
    /// Every leaf that a root names, once: a root of 7,000 products names almost the same ones as the root before it.
    leaves: Vec<Sha256Hex>,
    numbers: HashMap<Sha256Hex, u32>,
}

#[derive(Serialize, Deserialize)]
struct CacheDocument {
    roots: Vec<CachedRoot>,
    segments: Vec<SegmentFacts>,
    leaves: Vec<Sha256Hex>,
}

impl From<CacheDocument> for Cache {
    fn from(document: CacheDocument) -> Self {
        let numbered = document.leaves.iter().zip(0_u32..);
        let known = u32::try_from(document.leaves.len()).unwrap_or(u32::MAX);
        // A root that names a leaf which the list does not have is read again.
        let whole = document.roots.into_iter().filter(|root| root.leaves.iter().all(|leaf| *leaf < known));
        Self {
            numbers: numbered.map(|(leaf, number)| (leaf.clone(), number)).collect(),
            roots: whole.map(|root| (root.facts.seq, root)).collect(),
            segments: document.segments.into_iter().map(|segment| (segment.at.path.clone(), segment)).collect(),
            leaves: document.leaves,
        }
    }
}

impl From<Cache> for CacheDocument {
    fn from(cache: Cache) -> Self {
        Self {
            roots: cache.roots.into_values().collect(),
            segments: cache.segments.into_values().collect(),
            leaves: cache.leaves,
        }
    }
}

impl Cache {
    /// What is known of root `seq`, if it has this `ETag`.
    #[must_use]
    pub fn root(&self, seq: Seq, etag: &ETag) -> Option<&RootFacts> {
        self.roots.get(&seq).filter(|root| root.etag == *etag).map(|root| &root.facts)
    }

    /// What is known of the segment at `path`. Segments are created once and never rewritten.
    #[must_use]
    pub fn segment(&self, path: &str) -> Option<&SegmentFacts> {
        self.segments.get(path)
    }

    /// Keeps what `bytes`, read of root `seq` with this `ETag`, say.
    ///
    /// # Errors
    /// A sentence, when they are no root of that version; nothing is kept then.
    pub fn keep_root(&mut self, seq: Seq, etag: ETag, bytes: &[u8]) -> Result<Root, String> {
        let root = Root::decode(bytes).map_err(|error| error.to_string())?;
        if root.seq != seq {
            return Err(format!("it says that it is version {}", root.seq));
        }
        let root_sha256 = Sha256Hex::of(bytes);
        let line = SegmentLine::of(&root, root_sha256.clone()).encode().map_err(|error| error.to_string())?;
        let facts = RootFacts {
            seq,
            restore_epoch: root.restore_epoch,
            created_at: root.created_at,
            root_sha256,
            previous_root_sha256: root.previous_root_sha256.clone(),
            line_bytes: u64::try_from(line.len()).unwrap_or(u64::MAX).saturating_add(1),
        };
        let leaves: BTreeSet<u32> = root.products.values().map(|leaf| self.number(&leaf.leaf_sha256)).collect();
        self.roots.insert(seq, CachedRoot { etag, facts, leaves: leaves.into_iter().collect() });
        Ok(root)
    }

    /// Keeps what is known of a segment.
    pub fn keep_segment(&mut self, segment: SegmentFacts) {
        self.segments.insert(segment.at.path.clone(), segment);
    }

    /// Drops the roots that the store does not show any more with these `ETag`s, and the leaves that only they named.
    pub fn retain(&mut self, listed: &BTreeMap<Seq, ETag>) {
        self.roots.retain(|seq, root| listed.get(seq) == Some(&root.etag));
        let used = self.named_by(self.roots.keys().copied());
        let numbers = (0_u32..).zip(&self.leaves).filter(|(number, _)| used.contains(*number));
        let new: HashMap<u32, u32> = numbers.clone().map(|(number, _)| number).zip(0_u32..).collect();
        let leaves: Vec<_> = numbers.map(|(_, leaf)| leaf.clone()).collect();
        for root in self.roots.values_mut() {
            root.leaves = root.leaves.iter().filter_map(|number| new.get(number).copied()).collect();
        }
        self.numbers = leaves.iter().cloned().zip(0_u32..).collect();
        self.leaves = leaves;
    }

    /// The leaves that any of `seqs` names.
    pub(super) fn named_by(&self, seqs: impl Iterator<Item = Seq>) -> LeafNumbers {
        let mut named = vec![false; self.leaves.len()];
        for number in seqs.flat_map(|seq| self.leaf_numbers(seq)) {
            if let Some(named) = usize::try_from(*number).ok().and_then(|number| named.get_mut(number)) {
                *named = true;
            }
        }
        LeafNumbers(named)
    }

    /// The numbers of the leaves that root `seq` names; none for a root that is not kept.
    pub(super) fn leaf_numbers(&self, seq: Seq) -> &[u32] {
        self.roots.get(&seq).map_or(&[], |root| root.leaves.as_slice())
    }

    pub(super) fn leaf(&self, number: u32) -> Option<&Sha256Hex> {
        self.leaves.get(usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// The leaves that root `seq` names; none for a root that is not kept.
    pub fn leaves_of(&self, seq: Seq) -> impl Iterator<Item = &Sha256Hex> {
        self.leaf_numbers(seq).iter().filter_map(|number| self.leaf(*number))
    }

    /// The number of `leaf`, if a kept root names it.
    pub(super) fn number_of(&self, leaf: &Sha256Hex) -> Option<u32> {
        self.numbers.get(leaf).copied()
    }

    fn number(&mut self, leaf: &Sha256Hex) -> u32 {
        if let Some(number) = self.numbers.get(leaf) {
            return *number;
        }
        // 2^32 leaves would be more than any catalog can list.
        let number = u32::try_from(self.leaves.len()).unwrap_or(u32::MAX);
        self.leaves.push(leaf.clone());
        self.numbers.insert(leaf.clone(), number);
        number
    }
}
