//! The whole plan of an expiry, and what steps 4 to 8 make of it (*catalog* §6.9).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::cache::{ETag, SegmentFacts, SegmentRef};
use super::choose::{Choice, ExpiryRules, choose, is_checkpoint, pending, predecessor, verify_chain};
use super::known::{Known, RootStamp, Stage, newest_of, ready};
use super::orphans::{Orphan, Wanted, adopt};
use super::refusal::HistoryRefusal;
use super::segments::{SegmentDraft, drafts};
use crate::ids::Sha256Hex;
use crate::instant::Instant;
use crate::inventory::{History, SegmentKind, Seq};
use crate::layout;

/// A version that a line of a segment records, or will record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemovedRoot {
    /// The version.
    pub seq: Seq,
    /// Its epoch.
    pub restore_epoch: u64,
    /// The SHA-256 on its line.
    pub root_sha256: Sha256Hex,
}

/// A root that is deleted, once a segment that `HISTORY` names records it. Only while its bytes have this SHA-256: with
/// the `ETag` under which they were hashed, or compared once more.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RootDelete {
    /// The version.
    pub seq: Seq,
    /// Its path.
    pub path: String,
    /// The condition of the delete.
    pub etag: ETag,
    /// The SHA-256 on its line.
    pub root_sha256: Sha256Hex,
}

/// Why a root at or below `expired_through` stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The first version of a month, of an epoch, or with history fields.
    Checkpoint,
    /// It is from before the opt-in's `since_seq`.
    BeforeHistory,
    /// A line of its version says other bytes, or none records it: a stale writer created it, or it was changed. An
    /// alert.
    Unmatched,
}

/// A root at or below `expired_through` that is reported and kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct KeptRoot {
    /// The version.
    pub seq: Seq,
    /// The SHA-256 of its bytes.
    pub root_sha256: Sha256Hex,
    /// Why.
    pub why: Why,
}

/// A leaf that is deleted, with the condition that nobody wrote it since.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeafDelete {
    /// The SHA-256 of its bytes.
    pub leaf_sha256: Sha256Hex,
    /// Its path.
    pub path: String,
    /// The condition of the delete.
    pub etag: ETag,
}

/// What an expiry does. A dry run makes the same plan and carries nothing out.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpiryPlan {
    /// Step 1.
    pub choice: Choice,
    /// What an interrupted run had recorded and not deleted, the oldest first (the crash rule).
    pub pending: Vec<SegmentFacts>,
    /// The orphans that step 3 adopts, in chain order.
    pub adopted: Vec<SegmentFacts>,
    /// The orphans that it reports and leaves. An alert.
    pub orphans: Vec<Orphan>,
    /// The segments that it writes, in chain order.
    pub drafts: Vec<SegmentDraft>,
    /// What step 4 writes into `HISTORY`.
    pub expired_through: u64,
    /// Step 5.
    pub root_deletes: Vec<RootDelete>,
    /// The roots at or below `expired_through` that stay.
    pub kept: Vec<KeptRoot>,
    /// The leaves that the headers of step 6 list.
    pub header_leaves: BTreeSet<Sha256Hex>,
    /// Those among them that no root which stays names: what step 6 deletes if nothing is written in between.
    pub leaves: BTreeSet<Sha256Hex>,
}

/// What a dry run tells, and what a run can be held against afterwards: equal for both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forecast {
    /// The versions that go into segments.
    pub versions: Vec<Seq>,
    /// How many segments are written.
    pub segments_written: usize,
    /// The orphans that are adopted.
    pub segments_adopted: usize,
    /// `HISTORY.expired_through` afterwards.
    pub expired_through: u64,
    /// The roots that are deleted, by version.
    pub roots_deleted: Vec<Seq>,
    /// The leaves that are deleted.
    pub leaves_deleted: Vec<Sha256Hex>,
}

/// Steps 1 to 3, and the forecast of 4 to 7: everything that an expiry would do at `now`, the store's time. It asks for
/// the segments first when the last run was interrupted, for a few beginnings of roots, and only when there is something
/// to expire for the roots that are not in the cache.
///
/// # Errors
/// [`HistoryRefusal`] as in [`choose`] and [`verify_chain`]; a root of any version that cannot be read stops it, since
/// nobody knows which leaves it names.
pub fn plan_expiry(known: &Known, rules: &ExpiryRules, now: Instant) -> Result<Stage<ExpiryPlan>, HistoryRefusal> {
    let choice = ready!(choose(known, rules, now)?);
    let pending: Vec<_> = ready!(pending(known)?).into_iter().cloned().collect();
    let mut plan = ExpiryPlan {
        expired_through: choice.candidates.last().map_or(known.history.expired_through, |last| last.get()),
        choice,
        pending,
        adopted: Vec::new(),
        orphans: Vec::new(),
        drafts: Vec::new(),
        root_deletes: Vec::new(),
        kept: Vec::new(),
        header_leaves: BTreeSet::new(),
        leaves: BTreeSet::new(),
    };
    if plan.choice.candidates.is_empty() && plan.pending.is_empty() {
        return Ok(Stage::Ready(plan));
    }
    ready!(known.all_segments());
    ready!(known.all_whole(known.roots.keys().copied())?);
    ready!(verify_chain(known, &plan.choice)?);

    let unread = BTreeSet::new();
    let wanted =
        Wanted { kind: SegmentKind::Expiry, seqs: &plan.choice.candidates, unread: &unread, newest: known.newest() };
    let (adopted, orphans) = adopt(known, &wanted)?;
    let done: usize = adopted.iter().map(|segment| segment.roots.len()).sum();
    plan.adopted = adopted.into_iter().cloned().collect();
    plan.orphans = orphans;

    let mut removed = recorded(plan.pending.iter().chain(&plan.adopted));
    let rest = plan.choice.candidates.get(done..).unwrap_or_default();
    for seq in rest {
        let facts = ready!(known.whole(*seq)?);
        removed.insert(RemovedRoot {
            seq: *seq,
            restore_epoch: facts.restore_epoch,
            root_sha256: facts.root_sha256.clone(),
        });
    }
    plan.root_deletes = root_deletes(known, &removed)?;
    let goes: BTreeSet<Seq> = plan.root_deletes.iter().map(|delete| delete.seq).collect();
    plan.kept = kept(known, &goes, plan.expired_through)?;

    let stays = known.roots.keys().filter(|seq| !goes.contains(seq));
    let named = known.cache.named_by(stays.copied());
    plan.drafts = ready!(drafts(known, rest, &|leaf| named.contains(leaf), rules.limits)?);
    let written = plan.drafts.iter().flat_map(|draft| &draft.leaves);
    let told = plan.pending.iter().chain(&plan.adopted).flat_map(|segment| &segment.leaves);
    plan.header_leaves = written.chain(told).cloned().collect();
    let is_named = |leaf: &Sha256Hex| known.cache.number_of(leaf).is_some_and(|number| named.contains(number));
    plan.leaves = plan.header_leaves.iter().filter(|leaf| !is_named(leaf)).cloned().collect();
    Ok(Stage::Ready(plan))
}

impl ExpiryPlan {
    /// Whether there is nothing to do at all.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.choice.candidates.is_empty() && self.pending.is_empty()
    }

    /// What a dry run tells. `present` are the leaves that are there: one that is gone already is not deleted again.
    #[must_use]
    pub fn forecast(&self, present: &BTreeSet<Sha256Hex>) -> Forecast {
        Forecast {
            versions: self.choice.candidates.clone(),
            segments_written: self.drafts.len(),
            segments_adopted: self.adopted.len(),
            expired_through: self.expired_through,
            roots_deleted: self.root_deletes.iter().map(|delete| delete.seq).collect(),
            leaves_deleted: self.leaves.intersection(present).cloned().collect(),
        }
    }

    /// `HISTORY.newest_segment` before the first of [`ExpiryPlan::drafts`] is written.
    #[must_use]
    pub fn previous(&self, history: &History) -> Option<SegmentRef> {
        self.adopted.last().map(|segment| segment.at.clone()).or_else(|| newest_of(history))
    }

    /// The kept roots that a person should look at.
    pub fn alerts(&self) -> impl Iterator<Item = &KeptRoot> {
        self.kept.iter().filter(|kept| kept.why == Why::Unmatched)
    }
}

fn recorded<'s>(segments: impl Iterator<Item = &'s SegmentFacts>) -> BTreeSet<RemovedRoot> {
    let lines = segments.flat_map(|segment| segment.lines.iter().map(|line| (segment.restore_epoch, line)));
    lines
        .map(|(restore_epoch, line)| RemovedRoot {
            seq: line.seq,
            restore_epoch,
            root_sha256: line.root_sha256.clone(),
        })
        .collect()
}

/// Step 5: a listed root goes when its bytes match its line; any other one stays.
fn root_deletes(known: &Known, removed: &BTreeSet<RemovedRoot>) -> Result<Vec<RootDelete>, HistoryRefusal> {
    let mut deletes = Vec::new();
    for (seq, etag) in &known.roots {
        let Some(facts) = known.facts(*seq) else { return Err(HistoryRefusal::RootMissing { seq: *seq }) };
        let root_sha256 = facts.root_sha256.clone();
        let line = RemovedRoot { seq: *seq, restore_epoch: facts.restore_epoch, root_sha256: root_sha256.clone() };
        if removed.contains(&line) {
            deletes.push(RootDelete { seq: *seq, path: layout::root(*seq), etag: etag.clone(), root_sha256 });
        }
    }
    Ok(deletes)
}

/// The roots that stay at or below `expired_through`, and why each does.
fn kept(known: &Known, goes: &BTreeSet<Seq>, expired_through: u64) -> Result<Vec<KeptRoot>, HistoryRefusal> {
    let since = known.since()?;
    let mut kept = Vec::new();
    let below = known.roots.keys().filter(|seq| seq.get() <= expired_through && !goes.contains(seq));
    for seq in below {
        let Some(facts) = known.facts(*seq) else { continue };
        let stamp = RootStamp { restore_epoch: facts.restore_epoch, created_at: facts.created_at };
        let why = if *seq < since {
            Why::BeforeHistory
        } else if is_on_chain(known, *seq)? {
            let before = if *seq == since { None } else { chain_stamp(known, *seq)? };
            if is_checkpoint(since, *seq, stamp, before) { Why::Checkpoint } else { Why::Unmatched }
        } else {
            Why::Unmatched
        };
        kept.push(KeptRoot { seq: *seq, root_sha256: facts.root_sha256.clone(), why });
    }
    Ok(kept)
}

/// Whether a version above names this root as the one before it: a root, or a line.
fn is_on_chain(known: &Known, seq: Seq) -> Result<bool, HistoryRefusal> {
    let Some(facts) = known.facts(seq) else { return Ok(false) };
    let names =
        |previous: &Option<Option<Sha256Hex>>| previous.as_ref().and_then(Option::as_ref) == Some(&facts.root_sha256);
    if known.facts(seq.next()).is_some_and(|next| names(&next.previous_root_sha256)) {
        return Ok(true);
    }
    let chain = known.chain()?;
    let mut lines = chain.iter().flat_map(|segment| &segment.lines).filter(|line| line.seq == seq.next());
    Ok(lines.any(|line| names(&line.previous_root_sha256)))
}

fn chain_stamp(known: &Known, seq: Seq) -> Result<Option<RootStamp>, HistoryRefusal> {
    match predecessor(known, seq) {
        Ok(Stage::Ready(before)) => Ok(Some(before.stamp)),
        Ok(Stage::Read(_)) | Err(HistoryRefusal::RootMissing { .. } | HistoryRefusal::ChainBroken { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Step 4: `HISTORY` names the newest segment and the highest version that it removed. `now` is `HISTORY` as it was read
/// just before it is replaced; `planned` is the one that the plan was made on.
///
/// # Errors
/// [`HistoryRefusal::HistoryChanged`] when somebody wrote it since.
pub fn history_advanced(
    planned: &History,
    now: &History,
    newest: &SegmentRef,
    expired_through: u64,
) -> Result<History, HistoryRefusal> {
    if planned != now {
        return Err(HistoryRefusal::HistoryChanged);
    }
    Ok(History {
        expired_through: expired_through.max(now.expired_through),
        newest_segment: Some(newest.path.clone()),
        newest_segment_sha256: Some(newest.sha256.clone()),
        ..now.clone()
    })
}

/// Step 7: everything up to the newest segment is deleted. `planned` is the one that step 4 wrote.
///
/// # Errors
/// [`HistoryRefusal::HistoryChanged`] when somebody wrote it since.
pub fn history_cleaned(planned: &History, now: &History) -> Result<History, HistoryRefusal> {
    if planned != now {
        return Err(HistoryRefusal::HistoryChanged);
    }
    Ok(History { cleaned_through: now.newest_segment.clone(), ..now.clone() })
}

/// Step 6, after the roots were deleted: the leaves of `header_leaves` that no root names. `known` holds a LIST of
/// `inventory/` from after step 5, and `etags` the leaves that are there, listed before it: a leaf that a writer puts in
/// between has another `ETag`, and stays.
///
/// # Errors
/// [`HistoryRefusal::RootDamaged`] when a root cannot be read, so that nobody knows what it names.
pub fn leaf_deletes(
    known: &Known,
    header_leaves: &BTreeSet<Sha256Hex>,
    etags: &BTreeMap<Sha256Hex, ETag>,
) -> Result<Stage<Vec<LeafDelete>>, HistoryRefusal> {
    let there: BTreeMap<_, _> = etags.iter().filter(|(leaf, _)| header_leaves.contains(*leaf)).collect();
    if there.is_empty() {
        return Ok(Stage::Ready(Vec::new()));
    }
    ready!(known.all_whole(known.roots.keys().copied())?);
    let named = known.cache.named_by(known.roots.keys().copied());
    let is_named = |leaf: &Sha256Hex| known.cache.number_of(leaf).is_some_and(|number| named.contains(number));
    let gone = there.into_iter().filter(|(leaf, _)| !is_named(leaf));
    let delete = |(leaf, etag): (&Sha256Hex, &ETag)| LeafDelete {
        leaf_sha256: leaf.clone(),
        path: layout::leaf(leaf),
        etag: etag.clone(),
    };
    Ok(Stage::Ready(gone.map(delete).collect()))
}

/// A line of the deletion log: one object that step 5 or 6 deleted, or found gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletionLogLine {
    /// The store's time.
    pub deleted_at: Instant,
    /// The run that deleted it.
    pub run_id: String,
    /// Its path within the catalog.
    pub path: String,
    /// The SHA-256 of its bytes.
    pub sha256: Sha256Hex,
}

impl DeletionLogLine {
    /// The line of a deleted root.
    #[must_use]
    pub fn of_root(delete: &RootDelete, run_id: &str, deleted_at: Instant) -> Self {
        let (path, sha256) = (delete.path.clone(), delete.root_sha256.clone());
        Self { deleted_at, run_id: run_id.to_owned(), path, sha256 }
    }

    /// The line of a deleted leaf.
    #[must_use]
    pub fn of_leaf(delete: &LeafDelete, run_id: &str, deleted_at: Instant) -> Self {
        let (path, sha256) = (delete.path.clone(), delete.leaf_sha256.clone());
        Self { deleted_at, run_id: run_id.to_owned(), path, sha256 }
    }
}
