//! Roots, segments and `HISTORY` held against one another (*catalog* §6.9, verify-catalog).

use std::collections::{BTreeMap, BTreeSet};

use super::cache::{SegmentFacts, SegmentRef};
use super::chain::{Entry, Index};
use super::choose::{is_checkpoint, unread_roots};
use super::known::{Known, Stage};
use super::refusal::HistoryRefusal;
use super::restore::restore_found;
use super::verify_finding::HistoryFinding;
use crate::ids::Sha256Hex;
use crate::inventory::{SegmentKind, Seq};
use crate::layout;

/// What is held against what.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// `catalog.json`, `HISTORY`, and every listed root and segment; the head is the newest valid version.
    pub known: &'a Known,
    /// The leaves that a LIST shows; `None` when they are looked at elsewhere.
    pub leaves: Option<&'a BTreeSet<Sha256Hex>>,
}

/// Everything that is wrong with the history of a catalog that opted in: sorted, each once. It asks for every listed
/// root and segment that is not in the cache: a verification that trusts no earlier read begins with an empty one.
///
/// # Errors
/// [`HistoryRefusal::NotOptedIn`] for a catalog that keeps every version.
pub fn check_history(evidence: &Evidence<'_>) -> Result<Stage<Vec<HistoryFinding>>, HistoryRefusal> {
    let known = evidence.known;
    let since = known.since()?;
    let unread = unread_roots(known);
    if !unread.is_empty() {
        return Ok(Stage::Read(unread));
    }
    if let Stage::Read(reads) = known.all_segments() {
        return Ok(Stage::Read(reads));
    }
    let mut look = Look { known, since, findings: Vec::new() };
    look.ground();
    let segments = look.segments();
    let index = Index::of(known, &segments);
    look.overlaps(&segments);
    look.keys(&segments, &index);
    look.chains(&index);
    if let Some(leaves) = evidence.leaves {
        look.leaves(leaves);
    }
    look.findings.sort();
    look.findings.dedup();
    Ok(Stage::Ready(look.findings))
}

/// The chain of segments as far as it can be followed, the newest first, and what is wrong with it.
pub(super) fn follow<'k>(
    known: &'k Known,
    mut next: Option<SegmentRef>,
    mut named_by: String,
    findings: &mut Vec<HistoryFinding>,
) -> Vec<&'k SegmentFacts> {
    let mut chain: Vec<&SegmentFacts> = Vec::new();
    while let Some(SegmentRef { path, sha256 }) = next.take() {
        if let Some(why) = known.segment_damage(&path) {
            findings.push(HistoryFinding::SegmentDamaged { path, named_by, why: why.to_owned() });
            break;
        }
        let listed = known.segments.contains(&path);
        let Some(facts) = known.cache.segment(&path).filter(|_| listed) else {
            findings.push(HistoryFinding::SegmentMissing { path, named_by });
            break;
        };
        // Links go back in time only; a circle would need a hash of itself, or a second fault.
        if chain.iter().any(|segment| segment.at.path == path) {
            break;
        }
        if facts.at.sha256 != sha256 {
            let found = facts.at.sha256.clone();
            findings.push(HistoryFinding::SegmentChanged { path: path.clone(), found, expected: sha256, named_by });
        }
        if facts.catalog_id != known.catalog.catalog_id {
            let (found, expected) = (facts.catalog_id.clone(), known.catalog.catalog_id.clone());
            findings.push(HistoryFinding::OtherCatalog { document: path.clone(), found, expected });
        }
        named_by = path;
        next = facts.previous.clone();
        chain.push(facts);
    }
    chain
}

struct Look<'k> {
    known: &'k Known,
    since: Seq,
    findings: Vec<HistoryFinding>,
}

impl<'k> Look<'k> {
    fn ground(&mut self) {
        let (catalog, history) = (&self.known.catalog, &self.known.history);
        if history.catalog_id != catalog.catalog_id {
            self.findings.push(HistoryFinding::OtherCatalog {
                document: layout::HISTORY.to_owned(),
                found: history.catalog_id.clone(),
                expected: catalog.catalog_id.clone(),
            });
        }
        let head = self.known.facts(self.known.head).map_or(history.restore_epoch, |facts| facts.restore_epoch);
        if catalog.restore_epoch != history.restore_epoch || head != history.restore_epoch {
            let to = match restore_found(self.known) {
                Ok(Stage::Ready(found)) => found.map(|restore| restore.to),
                Ok(Stage::Read(_)) | Err(_) => None,
            };
            self.findings.push(HistoryFinding::UnfinishedRestore {
                catalog: catalog.restore_epoch,
                history: history.restore_epoch,
                head,
                to,
            });
        }
        for seq in self.known.roots.keys() {
            if let Some(why) = self.known.damage(*seq) {
                self.findings.push(HistoryFinding::RootDamaged { seq: *seq, why: why.to_owned() });
            }
        }
    }

    /// Links, orphans, and how far the deletions came.
    fn segments(&mut self) -> Vec<&'k SegmentFacts> {
        let newest = self.known.newest();
        let chain = follow(self.known, newest.clone(), layout::HISTORY.to_owned(), &mut self.findings);
        let reached: BTreeSet<&str> = chain.iter().map(|segment| segment.at.path.as_str()).collect();
        for path in self.known.segments.iter().filter(|path| !reached.contains(path.as_str())) {
            // One that is named and damaged was told of already.
            let is_told = |finding: &HistoryFinding| finding.subject() == *path;
            if !self.findings.iter().any(is_told) {
                let is_orphan = self.known.cache.segment(path).is_some_and(|segment| segment.previous == newest);
                self.findings.push(HistoryFinding::SegmentUnlinked { path: path.clone(), is_orphan });
            }
        }
        let cleaned = self.known.history.cleaned_through.as_deref();
        let after = match cleaned {
            None => chain.len(),
            Some(path) => chain.iter().position(|segment| segment.at.path == path).unwrap_or_else(|| {
                self.findings.push(HistoryFinding::CleanedOffChain { path: path.to_owned() });
                0
            }),
        };
        for segment in chain.iter().take(after).filter(|segment| segment.kind == SegmentKind::Expiry) {
            self.findings.push(HistoryFinding::Interrupted { segment: segment.at.path.clone() });
        }
        chain
    }

    fn is_interrupted(&self, segment: &SegmentFacts) -> bool {
        let told = HistoryFinding::Interrupted { segment: segment.at.path.clone() };
        self.findings.contains(&told)
            || self.findings.iter().any(|finding| matches!(finding, HistoryFinding::UnfinishedRestore { .. }))
    }

    fn overlaps(&mut self, chain: &[&SegmentFacts]) {
        let mut holders: BTreeMap<(u64, Seq), &str> = BTreeMap::new();
        for segment in chain {
            for seq in &segment.roots {
                // A number without a line says nothing of a version: another segment may hold its line.
                let has_line = !segment.unread.contains(seq);
                let path = segment.at.path.as_str();
                if !has_line {
                    continue;
                }
                if let Some(newer) = holders.insert((segment.restore_epoch, *seq), path) {
                    self.findings.push(HistoryFinding::SegmentsOverlap {
                        path: newer.to_owned(),
                        other: path.to_owned(),
                        seq: *seq,
                        restore_epoch: segment.restore_epoch,
                    });
                }
            }
        }
    }

    /// A version that is a root and a line, or two lines.
    fn keys(&mut self, chain: &[&'k SegmentFacts], index: &Index<'k>) {
        for segment in chain {
            for line in &segment.lines {
                let restore_epoch = segment.restore_epoch;
                let same = index.at(line.seq).iter().filter(|entry| entry.stamp.restore_epoch == restore_epoch);
                for entry in same {
                    let (seq, segment_path) = (line.seq, segment.at.path.clone());
                    if *entry.sha256 != line.root_sha256 {
                        self.findings.push(HistoryFinding::KeyDiffers {
                            seq,
                            restore_epoch,
                            found: entry.sha256.clone(),
                            expected: line.root_sha256.clone(),
                            segment: segment_path,
                        });
                    } else if entry.segment.is_none() && !self.is_interrupted(segment) {
                        self.findings.push(HistoryFinding::NotDeleted { seq, restore_epoch, segment: segment_path });
                    }
                }
            }
        }
    }

    /// The chain of the newest version, and the branches that restores discarded.
    fn chains(&mut self, index: &Index<'k>) {
        let known = self.known;
        let Some(head) = index.at(known.head).iter().find(|entry| entry.segment.is_none()) else { return };
        let mut told = Vec::new();
        let chain = index.walk(*head, &mut told);
        self.findings.extend(told);
        for (n, entry) in chain.iter().enumerate() {
            self.on_chain(entry, chain.get(n + 1));
        }
        let on_chain: BTreeSet<&Sha256Hex> = chain.iter().map(|entry| entry.sha256).collect();
        for entry in index.entries().filter(|entry| !on_chain.contains(entry.sha256)) {
            match entry.segment {
                None => self.off_chain(entry, index),
                // What a restore discarded still leads down to the version that it kept.
                Some(_) => self.branch(entry, index),
            }
        }
    }

    fn on_chain(&mut self, entry: &Entry<'_>, before: Option<&Entry<'_>>) {
        let seq = entry.seq;
        let expired_through = self.known.history.expired_through;
        if seq >= self.since && entry.previous.is_none() {
            self.findings.push(HistoryFinding::NoHistoryFields { seq, since_seq: self.since });
        }
        let is_checkpoint = is_checkpoint(self.since, seq, entry.stamp, before.map(|before| before.stamp));
        match entry.segment {
            Some(segment) => {
                let path = segment.at.path.clone();
                if segment.kind == SegmentKind::Restore {
                    self.findings.push(HistoryFinding::WrongKind { seq, segment: path.clone() });
                } else if is_checkpoint && seq >= self.since && before.is_some_and(|before| before.seq.next() == seq) {
                    self.findings.push(HistoryFinding::CheckpointExpired { seq, segment: path.clone() });
                }
                if seq.get() > expired_through {
                    self.findings.push(HistoryFinding::RootExpired { seq, expired_through, segment: path });
                }
            }
            None => {
                let should_be = !is_checkpoint && seq.get() <= expired_through && seq >= self.since;
                if should_be && !self.is_recorded(entry) {
                    self.findings.push(HistoryFinding::NotExpired { seq, expired_through });
                }
            }
        }
    }

    /// Whether a line records this root: then it is told of as not deleted, or the expiry as interrupted.
    fn is_recorded(&self, entry: &Entry<'_>) -> bool {
        let mut lines = self.known.cache_segments().flat_map(|segment| &segment.lines);
        lines.any(|line| line.root_sha256 == *entry.sha256)
    }

    fn off_chain(&mut self, entry: &Entry<'_>, index: &Index<'_>) {
        let unfinished =
            self.findings.iter().any(|finding| matches!(finding, HistoryFinding::UnfinishedRestore { .. }));
        let same_key = index
            .at(entry.seq)
            .iter()
            .any(|other| other.segment.is_some() && other.stamp.restore_epoch == entry.stamp.restore_epoch);
        // Above the newest valid version, and with a line of its own, it is told of elsewhere.
        if !unfinished && !same_key {
            let (seq, restore_epoch) = (entry.seq, entry.stamp.restore_epoch);
            self.findings.push(HistoryFinding::OffChain { seq, restore_epoch });
        }
    }

    fn branch(&mut self, entry: &Entry<'_>, index: &Index<'_>) {
        let (Some(Some(previous)), Some(at)) = (entry.previous, entry.seq.before()) else { return };
        if index.get(previous).is_some() || index.is_unread(at) {
            return;
        }
        let others = index.at(at).iter().filter(|other| other.stamp.restore_epoch <= entry.stamp.restore_epoch);
        self.findings.push(match others.max_by_key(|other| other.stamp.restore_epoch) {
            Some(other) => {
                HistoryFinding::Chain { seq: entry.seq, found: previous.clone(), expected: other.sha256.clone() }
            }
            None => HistoryFinding::VersionMissing { from: at, to: at },
        });
    }

    fn leaves(&mut self, present: &BTreeSet<Sha256Hex>) {
        let mut missing: BTreeMap<&Sha256Hex, Seq> = BTreeMap::new();
        for seq in self.known.roots.keys().filter(|seq| self.known.facts(**seq).is_some()) {
            for leaf in self.known.cache.leaves_of(*seq).filter(|leaf| !present.contains(*leaf)) {
                missing.insert(leaf, *seq);
            }
        }
        let missing = missing.into_iter();
        self.findings.extend(missing.map(|(leaf, seq)| HistoryFinding::LeafMissing { seq, leaf_sha256: leaf.clone() }));
    }
}
