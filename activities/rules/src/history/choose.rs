//! Steps 1 and 2 of an expiry: which roots go, and that the chain over them holds (*catalog* §6.9).

use std::collections::BTreeSet;

use super::cache::SegmentFacts;
use super::known::{Known, Read, RootStamp, Stage, ready};
use super::refusal::HistoryRefusal;
use super::segments::SegmentLimits;
use crate::ids::Sha256Hex;
use crate::instant::Instant;
use crate::inventory::{DAY_MS, Retention, SegmentKind, Seq};

/// What an expiry goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpiryRules {
    /// W: how long a version stays after the one that replaced it was written, in milliseconds.
    pub window_ms: i64,
    /// K: how many of the newest roots always stay.
    pub keep_roots: u64,
    /// Where segments are split.
    pub limits: SegmentLimits,
}

impl ExpiryRules {
    /// The rules that the configured windows give.
    ///
    /// # Errors
    /// [`HistoryRefusal::Retention`] when the windows contradict each other (D33).
    pub fn of(retention: &Retention) -> Result<Self, HistoryRefusal> {
        if let Some(fault) = retention.check().into_iter().next() {
            return Err(fault.into());
        }
        let window_ms = i64::from(retention.version_days) * DAY_MS;
        Ok(Self { window_ms, keep_roots: retention.keep_roots, limits: SegmentLimits::default() })
    }
}

/// Why no further root goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The version was replaced within the window.
    Young {
        /// The version.
        seq: Seq,
    },
    /// The version is among the newest K.
    Newest {
        /// The version.
        seq: Seq,
    },
    /// The version is the one that `CURRENT` names, or above it.
    Current {
        /// The version.
        seq: Seq,
    },
    /// The version carries no history fields, which `verify` reports.
    NoHistoryFields {
        /// The version.
        seq: Seq,
    },
    /// There is no version yet above those that expired.
    NothingAbove,
}

/// The roots that go now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The versions, ascending: a contiguous run, checkpoints excepted.
    pub candidates: Vec<Seq>,
    /// The checkpoints within the run, which stay.
    pub checkpoints: Vec<Seq>,
    /// Why the run ends where it does.
    pub stop: Stop,
    /// The first version that was looked at.
    pub(super) start: Seq,
}

/// What is known of the version before another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Before {
    pub(super) sha256: Sha256Hex,
    pub(super) stamp: RootStamp,
}

/// The UTC month of an instant, which sorts as text: `2026-10`.
pub(super) fn month(at: Instant) -> String {
    at.to_string().chars().take(7).collect()
}

/// Whether a version is a checkpoint (H4): `since_seq`, the first of its epoch, or the first of its month.
pub(super) fn is_checkpoint(since: Seq, seq: Seq, stamp: RootStamp, before: Option<RootStamp>) -> bool {
    let first = |before: RootStamp| {
        stamp.restore_epoch != before.restore_epoch || month(stamp.created_at) > month(before.created_at)
    };
    seq == since || seq == Seq::FIRST || before.is_some_and(first)
}

/// Step 1: the roots that go at `now`, the store's time.
///
/// # Errors
/// [`HistoryRefusal`] when the catalog has not opted in, a restore is unfinished, a version above `expired_through` is
/// missing or damaged, or a segment that is needed is.
pub fn choose(known: &Known, rules: &ExpiryRules, now: Instant) -> Result<Stage<Choice>, HistoryRefusal> {
    let since = known.since()?;
    ready!(known.check_ground()?);
    let first = known.history.expired_through.saturating_add(1).max(since.get());
    let Some(start) = Seq::new(first).filter(|start| *start <= known.head) else {
        return Ok(Stage::Ready(nothing(known.head, Stop::NothingAbove)));
    };
    // The highest that K and CURRENT allow.
    let newest = known.head.get().saturating_sub(rules.keep_roots);
    let allowed = newest.min(known.current.seq.get().saturating_sub(1));
    let over = |seq: Seq| if seq.get() > newest { Stop::Newest { seq } } else { Stop::Current { seq } };
    if start.get() > allowed {
        return Ok(Stage::Ready(nothing(start, over(start))));
    }
    let cutoff = now.plus_ms(-rules.window_ms);
    let replaced_before = |seq: Seq| -> Result<Stage<bool>, HistoryRefusal> {
        Ok(Stage::Ready(ready!(known.stamp(seq.next())?).created_at < cutoff))
    };
    // Times rise along the chain, so when the first one stays, all do, and nothing more is read.
    if !ready!(replaced_before(start)?) {
        return Ok(Stage::Ready(nothing(start, Stop::Young { seq: start })));
    }
    let upto = ready!(last_replaced(start, allowed, &replaced_before)?);
    // By bisection it is known how far to read; the walk itself goes by every root.
    ready!(known.all_whole(run(start, upto.next()))?);

    let mut choice = nothing(start, Stop::NothingAbove);
    let mut before = if start == since { None } else { Some(ready!(predecessor(known, start)?).stamp) };
    let mut seq = start;
    choice.stop = loop {
        if seq.get() > allowed {
            break over(seq);
        }
        let facts = ready!(known.whole(seq)?);
        if !facts.has_history() {
            break Stop::NoHistoryFields { seq };
        }
        let stamp = RootStamp { restore_epoch: facts.restore_epoch, created_at: facts.created_at };
        if is_checkpoint(since, seq, stamp, before) {
            choice.checkpoints.push(seq);
        } else if ready!(replaced_before(seq)?) {
            choice.candidates.push(seq);
        } else {
            break Stop::Young { seq };
        }
        before = Some(stamp);
        seq = seq.next();
    };
    if let Some(last) = choice.candidates.last() {
        choice.checkpoints.retain(|seq| seq < last);
    } else {
        choice.checkpoints.clear();
    }
    Ok(Stage::Ready(choice))
}

fn nothing(start: Seq, stop: Stop) -> Choice {
    Choice { candidates: Vec::new(), checkpoints: Vec::new(), stop, start }
}

/// Every version from `first` to `last`.
pub(super) fn run(first: Seq, last: Seq) -> impl Iterator<Item = Seq> {
    std::iter::successors(Some(first), |seq| Some(seq.next())).take_while(move |seq| *seq <= last)
}

/// The highest version from `start` to `allowed` that was replaced before the window, by bisection over ranged reads.
/// The one at `start` was.
fn last_replaced(
    start: Seq,
    allowed: u64,
    replaced_before: &dyn Fn(Seq) -> Result<Stage<bool>, HistoryRefusal>,
) -> Result<Stage<Seq>, HistoryRefusal> {
    let (mut low, mut above) = (start, allowed.saturating_add(1));
    while low.get() + 1 < above {
        let Some(middle) = Seq::new(low.get().midpoint(above)) else { break };
        if ready!(replaced_before(middle)?) { low = middle } else { above = middle.get() }
    }
    Ok(Stage::Ready(low))
}

/// The version before `seq` on the chain: a line of a segment, or a root. `seq` itself was read whole.
pub(super) fn predecessor(known: &Known, seq: Seq) -> Result<Stage<Before>, HistoryRefusal> {
    let facts = ready!(known.whole(seq)?);
    let Some(at) = seq.before() else { return Err(HistoryRefusal::RootMissing { seq }) };
    let Some(Some(expected)) = facts.previous_root_sha256.clone() else {
        // No history fields: nothing says which one it is, so it is the root before it.
        let before = ready!(known.whole(at)?);
        let stamp = RootStamp { restore_epoch: before.restore_epoch, created_at: before.created_at };
        return Ok(Stage::Ready(Before { sha256: before.root_sha256.clone(), stamp }));
    };
    let mut other = None;
    if known.roots.contains_key(&at) {
        let before = ready!(known.whole(at)?);
        if before.root_sha256 == expected {
            let stamp = RootStamp { restore_epoch: before.restore_epoch, created_at: before.created_at };
            return Ok(Stage::Ready(Before { sha256: expected, stamp }));
        }
        other = Some(before.root_sha256.clone());
    }
    ready!(known.all_segments());
    for segment in known.chain()? {
        for line in segment.lines.iter().filter(|line| line.seq == at) {
            if line.root_sha256 == expected {
                let stamp = RootStamp { restore_epoch: segment.restore_epoch, created_at: line.created_at };
                return Ok(Stage::Ready(Before { sha256: expected, stamp }));
            }
            if segment.kind == SegmentKind::Expiry {
                other.get_or_insert_with(|| line.root_sha256.clone());
            }
        }
    }
    Err(match other {
        Some(other) => HistoryRefusal::ChainBroken { seq, found: Some(expected), expected: other },
        None => HistoryRefusal::RootMissing { seq: at },
    })
}

/// Step 2: the chain from the version before the candidates to the first retained root above them, over the SHA-256 of
/// their stored bytes.
///
/// # Errors
/// [`HistoryRefusal::ChainBroken`] on the first mismatch; [`HistoryRefusal`] as in [`choose`].
pub fn verify_chain(known: &Known, choice: &Choice) -> Result<Stage<()>, HistoryRefusal> {
    let Some(last) = choice.candidates.last() else { return Ok(Stage::Ready(())) };
    ready!(known.all_whole(run(choice.start, last.next()))?);
    // A version before `since_seq` may carry no history fields, and `since_seq` stays: the chain begins there.
    let mut before = match choice.start == known.since()? {
        true => None,
        false => Some(ready!(predecessor(known, choice.start)?).sha256),
    };
    for seq in run(choice.start, last.next()) {
        let facts = ready!(known.whole(seq)?);
        // The one above the candidates may be the one without history fields that ended the walk.
        if let (Some(expected), Some(found)) = (before, &facts.previous_root_sha256)
            && found.as_ref() != Some(&expected)
        {
            return Err(HistoryRefusal::ChainBroken { seq, found: found.clone(), expected });
        }
        before = Some(facts.root_sha256.clone());
    }
    Ok(Stage::Ready(()))
}

/// The expiry segments of the chain after `cleaned_through`, the oldest first: their roots and leaves may not all be
/// deleted. Nothing is read when there are none.
pub(super) fn pending(known: &Known) -> Result<Stage<Vec<&SegmentFacts>>, HistoryRefusal> {
    if known.history.cleaned_through == known.history.newest_segment {
        return Ok(Stage::Ready(Vec::new()));
    }
    ready!(known.all_segments());
    let chain = known.chain()?;
    let after = match &known.history.cleaned_through {
        None => chain.len(),
        Some(path) => chain
            .iter()
            .position(|segment| segment.at.path == *path)
            .ok_or_else(|| HistoryRefusal::CleanedOffChain { path: path.clone() })?,
    };
    let expiries = chain.into_iter().take(after).filter(|segment| segment.kind == SegmentKind::Expiry);
    let mut pending: Vec<_> = expiries.collect();
    pending.reverse();
    Ok(Stage::Ready(pending))
}

/// The reads of every listed root that was not read whole yet, readable or not.
pub(super) fn unread_roots(known: &Known) -> BTreeSet<Read> {
    let unread = known.roots.keys().filter(|seq| known.facts(**seq).is_none() && known.damage(**seq).is_none());
    unread.map(|seq| Read::Root(*seq)).collect()
}
