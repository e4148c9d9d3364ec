//! The segments that a run writes (*catalog* §6.9 step 3): which roots go into which, and their bytes.

use std::collections::BTreeSet;

use serde_json::Map;
use uuid::Uuid;

use super::cache::{Cache, ETag, SegmentFacts, SegmentRef};
use super::known::{Known, Stage, ready};
use super::refusal::HistoryRefusal;
use crate::ids::{CatalogId, Sha256Hex};
use crate::instant::Instant;
use crate::inventory::{
    Document as _, DocumentError, FormatVersion, MAX_SEGMENT_BYTES, MAX_SEGMENT_LINES, Root, Segment, SegmentHeader,
    SegmentKind, SegmentLine, Seq,
};
use crate::layout;

/// Where a segment is split, whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentLimits {
    /// The most lines after the header.
    pub lines: usize,
    /// The most bytes; a root whose line alone is longer has a segment of its own.
    pub bytes: u64,
}

impl Default for SegmentLimits {
    fn default() -> Self {
        Self { lines: MAX_SEGMENT_LINES, bytes: u64::try_from(MAX_SEGMENT_BYTES).unwrap_or(u64::MAX) }
    }
}

/// A root that goes into a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentRoot {
    /// The version.
    pub seq: Seq,
    /// The SHA-256 that its bytes have to have when its line is made.
    pub root_sha256: Sha256Hex,
    /// Its `ETag` when that was found.
    pub etag: ETag,
}

/// A segment that is to be written. Its bytes are made when it is written, so that no more than one is in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentDraft {
    /// What removes the roots.
    pub kind: SegmentKind,
    /// Their epoch.
    pub restore_epoch: u64,
    /// The roots that get a line, ascending.
    pub roots: Vec<SegmentRoot>,
    /// The leaves that may go with them.
    pub leaves: Vec<Sha256Hex>,
    /// The versions that a restore could not read.
    pub unread: Vec<Seq>,
}

/// Who writes a segment, and when by the store's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The catalog.
    pub catalog_id: CatalogId,
    /// The store's time.
    pub expired_at: Instant,
    /// The writer's identity.
    pub actor: String,
}

/// A segment as it is to be created, exclusively and completely.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltSegment {
    /// Its path and the SHA-256 of its bytes.
    pub at: SegmentRef,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What is kept of it.
    pub facts: SegmentFacts,
}

/// The line of root `seq`, whose stored `bytes` were read for it.
///
/// # Errors
/// [`HistoryRefusal::RootChanged`] when they are not those of the plan; [`HistoryRefusal::RootDamaged`] when they are no
/// root.
pub fn line_of(root: &SegmentRoot, bytes: &[u8]) -> Result<SegmentLine, HistoryRefusal> {
    let seq = root.seq;
    let found = Sha256Hex::of(bytes);
    if found != root.root_sha256 {
        return Err(HistoryRefusal::RootChanged { seq, found, expected: root.root_sha256.clone() });
    }
    let decoded = Root::decode(bytes).map_err(|error| HistoryRefusal::RootDamaged { seq, why: error.to_string() })?;
    Ok(SegmentLine::of(&decoded, found))
}

impl SegmentDraft {
    /// Every version that the segment removes, read or not.
    #[must_use]
    pub fn seqs(&self) -> Vec<Seq> {
        let all: BTreeSet<Seq> = self.roots.iter().map(|root| root.seq).chain(self.unread.iter().copied()).collect();
        all.into_iter().collect()
    }

    /// The segment with these `lines`, one for each of [`SegmentDraft::roots`], after `previous`, which is
    /// `HISTORY.newest_segment` for the first and the one written before for the others. `id` is a new UUIDv7.
    ///
    /// # Errors
    /// [`HistoryRefusal::RootChanged`] when a line is not of the planned bytes; [`HistoryRefusal::Invalid`] when the
    /// lines are not those of the plan.
    pub fn build(
        &self,
        lines: Vec<SegmentLine>,
        previous: Option<&SegmentRef>,
        id: Uuid,
        by: &Written,
    ) -> Result<BuiltSegment, HistoryRefusal> {
        for (line, root) in lines.iter().zip(&self.roots) {
            if line.seq == root.seq && line.root_sha256 != root.root_sha256 {
                let (found, expected) = (line.root_sha256.clone(), root.root_sha256.clone());
                return Err(HistoryRefusal::RootChanged { seq: line.seq, found, expected });
            }
        }
        let roots = self.seqs();
        let (Some(first), Some(last)) = (roots.first().copied(), roots.last().copied()) else {
            return Err(DocumentError::Rule {
                document: "history segment",
                rule: "catalog §6.9",
                found: "no root".to_owned(),
                expected: "at least one",
            }
            .into());
        };
        let header = self.header(roots, (first, last), previous, by);
        let bytes = Segment { header, lines }.encode()?;
        let path = layout::segment(self.restore_epoch, first, last, id);
        let facts = SegmentFacts::of(&path, &bytes).map_err(|found| DocumentError::Rule {
            document: "history segment",
            rule: "catalog §6.9",
            found,
            expected: "what can be read again",
        })?;
        Ok(BuiltSegment { at: facts.at.clone(), bytes, facts })
    }

    fn header(
        &self,
        roots: Vec<Seq>,
        (first, last): (Seq, Seq),
        previous: Option<&SegmentRef>,
        by: &Written,
    ) -> SegmentHeader {
        SegmentHeader {
            format_version: FormatVersion { major: 1, minor: 0 },
            catalog_id: by.catalog_id.clone(),
            kind: self.kind,
            restore_epoch: self.restore_epoch,
            first,
            last,
            previous_segment: previous.map(|previous| previous.path.clone()),
            previous_segment_sha256: previous.map(|previous| previous.sha256.clone()),
            expired_at: by.expired_at,
            actor: by.actor.clone(),
            roots,
            leaves: self.leaves.clone(),
            unread: self.unread.clone(),
            other: Map::new(),
        }
    }
}

/// The most bytes that a header without roots and leaves has: its fixed fields, a link of the longest form, and an actor
/// of any reasonable length.
const HEADER_BYTES: u64 = 2_048;

/// What a number in a list of `roots` takes, with its comma.
fn number_bytes(seq: Seq) -> u64 {
    u64::from(seq.get().ilog10()) + 2
}

/// What a hash in a list of `leaves` takes, with its quotes and comma.
const LEAF_BYTES: u64 = 67;

/// The segments that `seqs` go into, in chain order: one an epoch, split at the limits. `is_kept` tells, by its number in
/// the cache, whether a leaf is named by a root that stays; the others go with the segments that name them.
pub(super) fn drafts(
    known: &Known,
    seqs: &[Seq],
    is_kept: &dyn Fn(u32) -> bool,
    limits: SegmentLimits,
) -> Result<Stage<Vec<SegmentDraft>>, HistoryRefusal> {
    ready!(known.all_whole(seqs.iter().copied())?);
    let mut drafts = Vec::new();
    let mut open: Option<Open> = None;
    for seq in seqs {
        let facts = ready!(known.whole(*seq)?);
        let Some(etag) = known.roots.get(seq) else { return Err(HistoryRefusal::RootMissing { seq: *seq }) };
        let named: Vec<u32> = known.cache.leaf_numbers(*seq).iter().copied().filter(|leaf| !is_kept(*leaf)).collect();
        let new = |open: &Open| named.iter().filter(|leaf| !open.leaves.contains(leaf)).count();
        let with = |bytes: u64, leaves: usize| {
            let leaves = u64::try_from(leaves).unwrap_or(u64::MAX).saturating_mul(LEAF_BYTES);
            bytes.saturating_add(facts.line_bytes).saturating_add(number_bytes(*seq)).saturating_add(leaves)
        };
        let fits = open.as_ref().is_some_and(|open| {
            open.restore_epoch == facts.restore_epoch
                && open.roots.len() < limits.lines
                && with(open.bytes, new(open)) <= limits.bytes
        });
        if !fits {
            drafts.extend(open.take().map(|open| open.close(&known.cache)));
        }
        let segment = open.get_or_insert_with(|| Open::new(facts.restore_epoch));
        segment.bytes = with(segment.bytes, new(segment));
        segment.leaves.extend(named);
        segment.roots.push(SegmentRoot { seq: *seq, root_sha256: facts.root_sha256.clone(), etag: etag.clone() });
    }
    drafts.extend(open.take().map(|open| open.close(&known.cache)));
    Ok(Stage::Ready(drafts))
}

/// A segment that is being filled.
struct Open {
    restore_epoch: u64,
    roots: Vec<SegmentRoot>,
    leaves: BTreeSet<u32>,
    bytes: u64,
}

impl Open {
    fn new(restore_epoch: u64) -> Self {
        Self { restore_epoch, roots: Vec::new(), leaves: BTreeSet::new(), bytes: HEADER_BYTES }
    }

    fn close(self, cache: &Cache) -> SegmentDraft {
        // By hash, so that the bytes do not depend on the order in which a cache came to know them.
        let leaves: BTreeSet<_> = self.leaves.iter().filter_map(|number| cache.leaf(*number).cloned()).collect();
        SegmentDraft {
            kind: SegmentKind::Expiry,
            restore_epoch: self.restore_epoch,
            roots: self.roots,
            leaves: leaves.into_iter().collect(),
            unread: Vec::new(),
        }
    }
}
