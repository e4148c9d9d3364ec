//! Segments that `HISTORY` does not reach: what an interrupted run left, adopted only where it fits exactly
//! (*catalog* §6.9 step 3).

use std::collections::BTreeSet;

use serde::Serialize;

use super::cache::{SegmentFacts, SegmentRef};
use super::known::Known;
use super::refusal::HistoryRefusal;
use crate::inventory::{SegmentKind, Seq};

/// A segment that is reported and left.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Orphan {
    /// Its path.
    pub path: String,
    /// Why it is not adopted.
    pub why: String,
}

/// The listed segments that the chain does not reach: those that can be read, and those that cannot.
pub(super) fn unreached<'k>(known: &'k Known, chain: &[&SegmentFacts]) -> (Vec<&'k SegmentFacts>, Vec<Orphan>) {
    let reached: BTreeSet<&str> = chain.iter().map(|segment| segment.at.path.as_str()).collect();
    let (mut readable, mut damaged) = (Vec::new(), Vec::new());
    for path in known.segments.iter().filter(|path| !reached.contains(path.as_str())) {
        match (known.segment_damage(path), known.cache.segment(path)) {
            (None, Some(facts)) => readable.push(facts),
            (why, _) => {
                let why = format!("it cannot be read: {}", why.unwrap_or("it was not read"));
                damaged.push(Orphan { path: path.clone(), why });
            }
        }
    }
    (readable, damaged)
}

/// What a segment has to hold to be adopted.
pub(super) struct Wanted<'a> {
    /// What removes the roots.
    pub(super) kind: SegmentKind,
    /// The versions, ascending: an adopted segment holds the next ones of them, in order and without a gap.
    pub(super) seqs: &'a [Seq],
    /// Those among them that have no line.
    pub(super) unread: &'a BTreeSet<Seq>,
    /// `HISTORY.newest_segment`.
    pub(super) newest: Option<SegmentRef>,
}

/// The orphans that are adopted, in chain order, and those that are left. The adopted ones begin at the lowest version,
/// link one to the other from `HISTORY.newest_segment` on, and each of their lines is a root as it is stored now.
///
/// # Errors
/// [`HistoryRefusal`] when the chain cannot be followed.
pub(super) fn adopt<'k>(
    known: &'k Known,
    wanted: &Wanted<'_>,
) -> Result<(Vec<&'k SegmentFacts>, Vec<Orphan>), HistoryRefusal> {
    let chain = known.chain()?;
    let (candidates, mut left) = unreached(known, &chain);
    let mut adopted: Vec<&SegmentFacts> = Vec::new();
    let mut rest = wanted.seqs;
    let mut newest = wanted.newest.clone();
    // Two interrupted runs can both have linked to the same segment: the first that fits is taken.
    while let Some(next) = candidates.iter().find(|orphan| misfit(known, wanted, orphan, &newest, rest).is_none()) {
        rest = rest.get(next.roots.len()..).unwrap_or_default();
        newest = Some(next.at.clone());
        adopted.push(next);
    }
    for orphan in candidates {
        if adopted.iter().all(|taken| taken.at != orphan.at) {
            let why = misfit(known, wanted, orphan, &newest, rest);
            let why = why.unwrap_or_else(|| "it holds the same versions as one that was adopted".to_owned());
            left.push(Orphan { path: orphan.at.path.clone(), why });
        }
    }
    left.sort();
    Ok((adopted, left))
}

/// Why `orphan` cannot follow `newest` with the first of `rest`, or `None` when it can.
fn misfit(
    known: &Known,
    wanted: &Wanted<'_>,
    orphan: &SegmentFacts,
    newest: &Option<SegmentRef>,
    rest: &[Seq],
) -> Option<String> {
    if orphan.catalog_id != known.catalog.catalog_id {
        return Some(format!("it is of catalog {}", orphan.catalog_id));
    }
    if orphan.kind != wanted.kind {
        return Some("another kind of run wrote it".to_owned());
    }
    if orphan.previous != *newest {
        let names = orphan.previous.as_ref().map_or("no segment", |previous| previous.path.as_str());
        return Some(format!("it follows {names}, which is not the newest"));
    }
    if rest.is_empty() || rest.get(..orphan.roots.len()) != Some(orphan.roots.as_slice()) {
        return Some("its versions are not the next ones to go".to_owned());
    }
    for line in &orphan.lines {
        let stored = known.facts(line.seq).filter(|facts| facts.restore_epoch == orphan.restore_epoch);
        if stored.is_none_or(|facts| facts.root_sha256 != line.root_sha256) {
            return Some(format!("its line of version {} is not the root that is stored", line.seq));
        }
    }
    let without_line = orphan.roots.iter().filter(|seq| wanted.unread.contains(seq));
    (!without_line.eq(&orphan.unread)).then(|| "other versions could not be read when it was written".to_owned())
}
