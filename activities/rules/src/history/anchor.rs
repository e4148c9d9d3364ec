//! Hashes that were published outside the catalog, and the proof that nothing below them was altered or removed
//! (*history*, Goals; *catalog* §6.9).

use serde::{Deserialize, Serialize};

use super::cache::SegmentRef;
use super::chain::Index;
use super::choose::unread_roots;
use super::known::{Known, Stage};
use super::refusal::HistoryRefusal;
use super::verify::follow;
use super::verify_finding::HistoryFinding;
use crate::ids::Sha256Hex;
use crate::inventory::Seq;
use crate::layout;

/// A version by its number, epoch and hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchorRoot {
    /// The version.
    pub seq: Seq,
    /// Its epoch.
    pub restore_epoch: u64,
    /// The SHA-256 of its root.
    pub root_sha256: Sha256Hex,
}

/// The newest root and the newest segment of a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// The newest version.
    pub root: AnchorRoot,
    /// The newest segment; `None` before the first.
    pub segment: Option<SegmentRef>,
}

/// The anchor of now: for publishing outside the catalog.
///
/// # Errors
/// [`HistoryRefusal::RootMissing`] when the newest version is not listed.
pub fn newest_anchor(known: &Known) -> Result<Stage<Anchor>, HistoryRefusal> {
    Ok(match known.whole(known.head)? {
        Stage::Read(reads) => Stage::Read(reads),
        Stage::Ready(facts) => Stage::Ready(Anchor {
            root: AnchorRoot {
                seq: facts.seq,
                restore_epoch: facts.restore_epoch,
                root_sha256: facts.root_sha256.clone(),
            },
            segment: known.newest(),
        }),
    })
}

/// Whether the catalog still holds every version that it held at `anchor`, unaltered: the anchored segment is on the
/// chain and the segments below it link down to the first, and the anchored root is a root or a line, whose chain of
/// hashes leads down to version 1, or to the first version with history fields. A version that a restore discarded
/// later is a line of its segment.
///
/// It asks for every listed root and segment that is not in the cache.
///
/// # Errors
/// [`HistoryRefusal::NotOptedIn`] for a catalog that keeps every version.
pub fn check_anchor(known: &Known, anchor: &Anchor) -> Result<Stage<Vec<HistoryFinding>>, HistoryRefusal> {
    known.since()?;
    let unread = unread_roots(known);
    if !unread.is_empty() {
        return Ok(Stage::Read(unread));
    }
    if let Stage::Read(reads) = known.all_segments() {
        return Ok(Stage::Read(reads));
    }
    let mut findings = Vec::new();
    let chain = follow(known, known.newest(), layout::HISTORY.to_owned(), &mut findings);
    if let Some(segment) = &anchor.segment {
        if !chain.iter().any(|known| known.at == *segment) {
            findings
                .push(HistoryFinding::AnchorSegment { path: segment.path.clone(), expected: segment.sha256.clone() });
        }
        // What hangs on the anchor itself is checked also when the links to it are lost.
        let _ = follow(known, Some(segment.clone()), "the anchor".to_owned(), &mut findings);
    }
    let index = Index::of(known, &chain);
    let AnchorRoot { seq, restore_epoch, root_sha256 } = &anchor.root;
    match index.get(root_sha256) {
        Some(entry) if (entry.seq, entry.stamp.restore_epoch) == (*seq, *restore_epoch) => {
            index.walk(*entry, &mut findings);
        }
        Some(_) | None => {
            let there = index.at(*seq).iter().find(|entry| entry.stamp.restore_epoch == *restore_epoch);
            findings.push(HistoryFinding::AnchorRoot {
                seq: *seq,
                restore_epoch: *restore_epoch,
                found: there.map(|entry| entry.sha256.clone()),
                expected: root_sha256.clone(),
            });
        }
    }
    findings.sort();
    findings.dedup();
    Ok(Stage::Ready(findings))
}
