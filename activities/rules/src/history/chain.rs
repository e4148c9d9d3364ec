//! Every recorded version, as a root or as a line, and the chain of hashes through them.

use std::collections::BTreeMap;

use super::cache::SegmentFacts;
use super::known::{Known, RootStamp};
use super::verify_finding::HistoryFinding;
use crate::ids::Sha256Hex;
use crate::inventory::{SegmentKind, Seq};

/// A version that is a root or a line of a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'k> {
    pub(super) seq: Seq,
    pub(super) stamp: RootStamp,
    pub(super) sha256: &'k Sha256Hex,
    pub(super) previous: Option<Option<&'k Sha256Hex>>,
    /// The segment whose line it is; `None` for a root.
    pub(super) segment: Option<&'k SegmentFacts>,
}

impl Entry<'_> {
    fn is_discarded(&self) -> bool {
        self.segment.is_some_and(|segment| segment.kind == SegmentKind::Restore)
    }
}

/// All versions, by number and by hash.
pub(super) struct Index<'k> {
    /// Roots first, then lines of newer segments before those of older ones.
    by_seq: BTreeMap<Seq, Vec<Entry<'k>>>,
    by_sha256: BTreeMap<&'k Sha256Hex, Entry<'k>>,
    /// Versions that a restore could not read.
    unread: std::collections::BTreeSet<Seq>,
}

impl<'k> Index<'k> {
    /// The readable roots of `known`, and the lines of `segments`, the newest first.
    pub(super) fn of(known: &'k Known, segments: &[&'k SegmentFacts]) -> Self {
        let mut index =
            Self { by_seq: BTreeMap::new(), by_sha256: BTreeMap::new(), unread: std::collections::BTreeSet::new() };
        for facts in known.roots.keys().filter_map(|seq| known.facts(*seq)) {
            index.add(Entry {
                seq: facts.seq,
                stamp: RootStamp { restore_epoch: facts.restore_epoch, created_at: facts.created_at },
                sha256: &facts.root_sha256,
                previous: facts.previous_root_sha256.as_ref().map(Option::as_ref),
                segment: None,
            });
        }
        for segment in segments {
            index.unread.extend(segment.unread.iter().copied());
            for line in &segment.lines {
                index.add(Entry {
                    seq: line.seq,
                    stamp: RootStamp { restore_epoch: segment.restore_epoch, created_at: line.created_at },
                    sha256: &line.root_sha256,
                    previous: line.previous_root_sha256.as_ref().map(Option::as_ref),
                    segment: Some(segment),
                });
            }
        }
        index
    }

    fn add(&mut self, entry: Entry<'k>) {
        self.by_seq.entry(entry.seq).or_default().push(entry);
        self.by_sha256.entry(entry.sha256).or_insert(entry);
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry<'k>> {
        self.by_seq.values().flatten()
    }

    pub(super) fn get(&self, sha256: &Sha256Hex) -> Option<&Entry<'k>> {
        self.by_sha256.get(sha256)
    }

    pub(super) fn at(&self, seq: Seq) -> &[Entry<'k>] {
        self.by_seq.get(&seq).map_or(&[], Vec::as_slice)
    }

    pub(super) fn is_unread(&self, seq: Seq) -> bool {
        self.unread.contains(&seq)
    }

    /// The chain from `from` down to version 1, and what is wrong with it. Where a link is missing or wrong, it goes on
    /// with what stands in its place, so that one fault is told once.
    pub(super) fn walk(&self, from: Entry<'k>, findings: &mut Vec<HistoryFinding>) -> Vec<Entry<'k>> {
        let mut chain = vec![from];
        let mut entry = from;
        while let Some(at) = entry.seq.before() {
            let next = match entry.previous.flatten() {
                Some(sha256) => match self.get(sha256) {
                    Some(before) => Some(*before),
                    None => self.in_place(at, &entry, sha256, findings),
                },
                // No history fields: the root before it is the one.
                None => self.at(at).iter().find(|before| !before.is_discarded()).copied().or_else(|| {
                    findings.push(HistoryFinding::VersionMissing { from: at, to: at });
                    self.lower(at, &entry)
                }),
            };
            let Some(next) = next else { break };
            self.check_step(&next, &entry, findings);
            chain.push(next);
            // A hash that leads up again would lead round in a circle.
            if next.seq >= entry.seq {
                break;
            }
            entry = next;
        }
        chain
    }

    /// What stands where the version with `sha256` should: another root or line of its number, or the next lower one.
    fn in_place(
        &self,
        at: Seq,
        above: &Entry<'k>,
        sha256: &Sha256Hex,
        findings: &mut Vec<HistoryFinding>,
    ) -> Option<Entry<'k>> {
        // What a restore discarded is of another branch, and says nothing of this one.
        let fits = |other: &&Entry<'k>| !other.is_discarded() && other.stamp.restore_epoch <= above.stamp.restore_epoch;
        if let Some(other) = self.at(at).iter().find(fits) {
            findings.push(HistoryFinding::Chain {
                seq: above.seq,
                found: sha256.clone(),
                expected: other.sha256.clone(),
            });
            return Some(*other);
        }
        let lower = self.lower(at, above);
        let from = lower.as_ref().map_or(Seq::FIRST, |lower| lower.seq.next());
        findings.push(HistoryFinding::VersionMissing { from, to: at });
        lower
    }

    fn lower(&self, below: Seq, above: &Entry<'k>) -> Option<Entry<'k>> {
        let fits = |entry: &&Entry<'k>| !entry.is_discarded() && entry.stamp.restore_epoch <= above.stamp.restore_epoch;
        self.by_seq.range(..below).rev().find_map(|(_, entries)| entries.iter().find(fits)).copied()
    }

    fn check_step(&self, before: &Entry<'k>, entry: &Entry<'k>, findings: &mut Vec<HistoryFinding>) {
        if before.stamp.restore_epoch > entry.stamp.restore_epoch || before.seq >= entry.seq {
            findings.push(HistoryFinding::Order {
                seq: entry.seq,
                restore_epoch: entry.stamp.restore_epoch,
                before: before.seq,
                before_epoch: before.stamp.restore_epoch,
            });
        }
        let earliest = before.stamp.created_at.plus_ms(1);
        if entry.previous.is_some() && entry.stamp.created_at < earliest {
            let (seq, found) = (entry.seq, entry.stamp.created_at);
            findings.push(HistoryFinding::Time { seq, found, expected: earliest });
        }
    }
}
