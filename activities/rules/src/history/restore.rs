//! A restore to an older version, in the order of *catalog* §6.9, and an unfinished one that goes on (D14, D15).

use std::collections::{BTreeMap, BTreeSet};

use super::cache::{ETag, RootFacts, SegmentFacts, SegmentRef};
use super::choose::run;
use super::known::{Known, Read, Stage, newest_of, ready};
use super::opt_in::HistoryFields;
use super::orphans::{Orphan, Wanted, adopt};
use super::refusal::HistoryRefusal;
use super::segments::{SegmentDraft, SegmentLimits, SegmentRoot};
use super::steps::RestoreStep;
use crate::ids::Sha256Hex;
use crate::inventory::{CatalogHistory, CatalogJson, History, Root, SegmentKind, Seq};
use crate::layout;

/// What a person asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreAsked {
    /// S: the version to go back to.
    pub to: Seq,
    /// The versions after it that cannot be read, and that the person confirms by name.
    pub confirmed_unread: BTreeSet<Seq>,
}

/// A restore that was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restore {
    /// S.
    pub to: Seq,
    /// The epoch that it goes to.
    pub restore_epoch: u64,
    /// The first step that is not done.
    pub step: RestoreStep,
}

/// A root above S that step 4 deletes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Discarded {
    /// The version.
    pub seq: Seq,
    /// Its path.
    pub path: String,
    /// The condition of the delete.
    pub etag: ETag,
    /// The SHA-256 of its bytes; `None` when they are no root.
    pub root_sha256: Option<Sha256Hex>,
}

/// What a restore on an opted-in catalog does, from `restore.step` on.
#[derive(Debug, Clone, PartialEq)]
pub struct RestorePlan {
    /// S, the new epoch, and where it begins.
    pub restore: Restore,
    /// The SHA-256 of root S.
    pub to_sha256: Sha256Hex,
    /// The orphans that an interrupted attempt left and that are adopted, in chain order.
    pub adopted: Vec<SegmentFacts>,
    /// The orphans that are left.
    pub orphans: Vec<Orphan>,
    /// The segments that step 1 writes, in chain order; none when there is no root above S.
    pub drafts: Vec<SegmentDraft>,
    /// The roots that step 4 deletes, from the highest down, so that readers never see a gap below a discarded root.
    pub deletes: Vec<Discarded>,
}

impl RestorePlan {
    /// `HISTORY.newest_segment` before the first of [`RestorePlan::drafts`] is written.
    #[must_use]
    pub fn previous(&self, history: &History) -> Option<SegmentRef> {
        self.adopted.last().map(|segment| segment.at.clone()).or_else(|| newest_of(history))
    }
}

/// The restore that was begun on an opted-in catalog and not finished, if there is one (D15).
///
/// # Errors
/// [`HistoryRefusal::UnfinishedRestore`] when `HISTORY` is of an epoch before `catalog.json`'s, which no restore leaves;
/// [`HistoryRefusal`] when a root or segment that it needs is damaged.
pub fn restore_found(known: &Known) -> Result<Stage<Option<Restore>>, HistoryRefusal> {
    known.since()?;
    let (catalog, restore_epoch) = (known.catalog.restore_epoch, known.history.restore_epoch);
    let head = known.head;
    if known.roots.contains_key(&head) && known.damage(head).is_none() {
        let stamp = ready!(known.stamp(head)?);
        // The root of the new epoch is written last.
        if catalog == restore_epoch && stamp.restore_epoch == restore_epoch {
            return without_current(known, head);
        }
        if catalog > restore_epoch || stamp.restore_epoch > restore_epoch {
            return Err(HistoryRefusal::UnfinishedRestore {
                catalog,
                history: restore_epoch,
                head: stamp.restore_epoch,
            });
        }
    } else if catalog == restore_epoch && restore_epoch == 0 {
        return Ok(Stage::Ready(None));
    }
    ready!(known.all_segments());
    let chain = known.chain()?;
    let mut discarded = false;
    for seq in known.roots.keys().rev() {
        let is_unread = |segment: &&&SegmentFacts| segment.unread.contains(seq);
        let restores = || chain.iter().filter(|segment| segment.kind == SegmentKind::Restore);
        match known.whole(*seq) {
            Ok(Stage::Read(reads)) => return Ok(Stage::Read(reads)),
            Ok(Stage::Ready(facts)) if facts.restore_epoch == restore_epoch => {
                // Below the head of another epoch: a writer of the new epoch cannot have been here yet.
                return if catalog == restore_epoch { Ok(Stage::Ready(None)) } else { Err(unfinished(known, facts)) };
            }
            Ok(Stage::Ready(facts)) => {
                let is_recorded = recorded_by(restores(), facts).is_some()
                    || restores().filter(is_unread).any(|segment| segment.restore_epoch == facts.restore_epoch)
                    || recorded_by(chain.iter(), facts).is_some();
                if is_recorded {
                    discarded = true;
                    continue;
                }
                let step = match (catalog < restore_epoch, discarded) {
                    (true, _) => RestoreStep::BumpEpoch,
                    (false, true) => RestoreStep::DeleteRoots,
                    (false, false) => RestoreStep::WriteRoot,
                };
                return Ok(Stage::Ready(Some(Restore { to: *seq, restore_epoch, step })));
            }
            Err(_) if restores().any(|segment| is_unread(&segment)) => discarded = true,
            // A damaged head without an unfinished restore is not this one's business.
            Err(_) if catalog == restore_epoch && !discarded => return Ok(Stage::Ready(None)),
            Err(refusal) => return Err(refusal),
        }
    }
    let found = "is not there: nothing is left of the epoch before".to_owned();
    Err(HistoryRefusal::TargetUnread { to: known.head, found })
}

/// The first root of an epoch that `CURRENT` has not come to: only step 6 is missing.
fn without_current(known: &Known, head: Seq) -> Result<Stage<Option<Restore>>, HistoryRefusal> {
    let restore_epoch = known.history.restore_epoch;
    let Some(to) = head.before().filter(|to| known.roots.contains_key(to)) else { return Ok(Stage::Ready(None)) };
    if known.current.restore_epoch >= restore_epoch || known.damage(to).is_some() {
        return Ok(Stage::Ready(None));
    }
    let is_first = ready!(known.stamp(to)?).restore_epoch < restore_epoch;
    Ok(Stage::Ready(is_first.then_some(Restore { to, restore_epoch, step: RestoreStep::WriteCurrent })))
}

fn unfinished(known: &Known, facts: &RootFacts) -> HistoryRefusal {
    HistoryRefusal::UnfinishedRestore {
        catalog: known.catalog.restore_epoch,
        history: known.history.restore_epoch,
        head: facts.restore_epoch,
    }
}

/// The SHA-256 on the line of `facts`' version and epoch, if it is the same.
fn recorded_by<'s>(mut segments: impl Iterator<Item = &'s &'s SegmentFacts>, facts: &RootFacts) -> Option<()> {
    let same = |segment: &SegmentFacts| {
        segment.restore_epoch == facts.restore_epoch
            && segment.lines.iter().any(|line| line.seq == facts.seq && line.root_sha256 == facts.root_sha256)
    };
    segments.any(|segment| same(segment)).then_some(())
}

/// What a restore to `asked` does on an opted-in catalog. An unfinished restore to the same version goes on.
///
/// # Errors
/// [`HistoryRefusal`] when another restore is unfinished, S is not retained, readable and on the chain of the newest
/// version, or a version after it was not read and not confirmed by name (D14).
pub fn plan_restore(
    known: &Known,
    asked: &RestoreAsked,
    limits: SegmentLimits,
) -> Result<Stage<RestorePlan>, HistoryRefusal> {
    let to = asked.to;
    if let Some(restore) = ready!(restore_found(known)?) {
        if restore.to != to {
            return Err(HistoryRefusal::RestoreUnfinished { asked: to, to: restore.to });
        }
        return resumed(known, restore);
    }
    if !known.roots.contains_key(&to) {
        let found = if to > known.head { "is above the newest version" } else { "is not in inventory/" };
        return Err(HistoryRefusal::TargetUnread { to, found: found.to_owned() });
    }
    ready!(known.all_segments());
    ready!(readable(known, to)?);
    let target = ready!(target(known, to)?);
    if recorded_by(known.chain()?.iter(), target).is_some() {
        // The next expiry deletes it.
        let found = "has expired, and only its root is not deleted yet".to_owned();
        return Err(HistoryRefusal::TargetUnread { to, found });
    }
    let after = after(known, target)?;
    let unconfirmed = after.iter().filter(|(_, item)| item.needs_word()).map(|(seq, _)| *seq);
    let unread: Vec<Seq> = unconfirmed.filter(|seq| !asked.confirmed_unread.contains(seq)).collect();
    if !unread.is_empty() {
        return Err(HistoryRefusal::UnreadVersions { to, unread });
    }
    let drafts = drafts(known, target, &after, limits);
    let seqs: Vec<Seq> = drafts.iter().flat_map(SegmentDraft::seqs).collect();
    let unread: BTreeSet<Seq> = drafts.iter().flat_map(|draft| draft.unread.iter().copied()).collect();
    let wanted = Wanted { kind: SegmentKind::Restore, seqs: &seqs, unread: &unread, newest: known.newest() };
    let (adopted, orphans) = adopt(known, &wanted)?;
    let adopted: Vec<_> = adopted.into_iter().cloned().collect();
    let done: BTreeSet<Seq> = adopted.iter().flat_map(|segment| segment.roots.iter().copied()).collect();
    let rest = after.into_iter().filter(|(seq, _)| !done.contains(seq)).collect();
    Ok(Stage::Ready(RestorePlan {
        restore: Restore { to, restore_epoch: known.history.restore_epoch + 1, step: RestoreStep::WriteSegments },
        to_sha256: target.root_sha256.clone(),
        adopted,
        orphans,
        drafts: self::drafts(known, target, &rest, limits),
        deletes: deletes(known, to),
    }))
}

fn resumed(known: &Known, restore: Restore) -> Result<Stage<RestorePlan>, HistoryRefusal> {
    let target = ready!(known.whole(restore.to)?);
    Ok(Stage::Ready(RestorePlan {
        restore,
        to_sha256: target.root_sha256.clone(),
        adopted: Vec::new(),
        orphans: Vec::new(),
        drafts: Vec::new(),
        deletes: if restore.step <= RestoreStep::DeleteRoots { deletes(known, restore.to) } else { Vec::new() },
    }))
}

/// Nothing, once S and every listed root above it was read, damaged ones included.
fn readable(known: &Known, to: Seq) -> Result<Stage<()>, HistoryRefusal> {
    let mut reads = BTreeSet::new();
    for seq in known.roots.keys().filter(|seq| **seq >= to) {
        match known.whole(*seq) {
            Ok(Stage::Read(more)) => reads.extend(more),
            Ok(Stage::Ready(_)) | Err(_) => {}
        }
    }
    Ok(if reads.is_empty() { Stage::Ready(()) } else { Stage::<()>::Read(reads) })
}

/// S, which the newest version was built on as far as anything tells.
fn target(known: &Known, to: Seq) -> Result<Stage<&RootFacts>, HistoryRefusal> {
    let facts = match known.whole(to) {
        Ok(Stage::Ready(facts)) => facts,
        Ok(Stage::Read(_)) => return Ok(Stage::need(Read::Root(to))),
        Err(_) => {
            let found = known.damage(to).unwrap_or("is not there").to_owned();
            return Err(HistoryRefusal::TargetUnread { to, found: format!("cannot be read: {found}") });
        }
    };
    if to == known.head {
        return Ok(Stage::Ready(facts));
    }
    let names = |previous: &Option<Option<Sha256Hex>>| match previous {
        // Without history fields, nothing else can be told.
        None => true,
        Some(previous) => previous.as_ref() == Some(&facts.root_sha256),
    };
    let next = to.next();
    let chain = known.chain()?;
    let mut lines = chain.iter().flat_map(|segment| &segment.lines).filter(|line| line.seq == next).peekable();
    let is_built_on = match known.facts(next) {
        Some(root) if names(&root.previous_root_sha256) => true,
        // Unread: it was confirmed, or it will be asked for.
        None if lines.peek().is_none() => true,
        Some(_) | None => lines.any(|line| names(&line.previous_root_sha256)),
    };
    if is_built_on { Ok(Stage::Ready(facts)) } else { Err(HistoryRefusal::TargetOffChain { to, head: known.head }) }
}

/// A version after S that is not recorded yet.
enum After<'k> {
    /// It gets a line.
    Line(&'k RootFacts, &'k ETag),
    /// It gets none: it cannot be read, is missing, or another root of its number and epoch has one.
    Unread,
}

impl After<'_> {
    /// Whether a person has to confirm it: nobody can tell what it withdrew.
    fn needs_word(&self) -> bool {
        match self {
            Self::Line(facts, _) => !facts.has_history(),
            Self::Unread => true,
        }
    }
}

fn after<'k>(known: &'k Known, target: &RootFacts) -> Result<BTreeMap<Seq, After<'k>>, HistoryRefusal> {
    let chain = known.chain()?;
    let last = known.roots.keys().next_back().copied().unwrap_or(target.seq).max(known.head);
    let mut recorded: BTreeMap<(Seq, u64), BTreeSet<&Sha256Hex>> = BTreeMap::new();
    for segment in chain.iter().filter(|segment| segment.restore_epoch >= target.restore_epoch) {
        for line in &segment.lines {
            recorded.entry((line.seq, segment.restore_epoch)).or_default().insert(&line.root_sha256);
        }
    }
    let mut after = BTreeMap::new();
    for seq in run(target.seq.next(), last) {
        let item = match (known.roots.get(&seq), known.facts(seq)) {
            (Some(etag), Some(facts)) => match recorded.get(&(seq, facts.restore_epoch)) {
                Some(lines) if lines.contains(&facts.root_sha256) => continue,
                Some(_) => After::Unread,
                None => After::Line(facts, etag),
            },
            (Some(_), None) => After::Unread,
            (None, _) => {
                let epochs = recorded.range((seq, 0)..=(seq, u64::MAX));
                if seq.get() <= known.history.expired_through && epochs.count() > 0 {
                    continue;
                }
                After::Unread
            }
        };
        after.insert(seq, item);
    }
    Ok(after)
}

/// The segments of the versions after S: one an epoch, split at the limits.
fn drafts(
    known: &Known,
    target: &RootFacts,
    after: &BTreeMap<Seq, After<'_>>,
    limits: SegmentLimits,
) -> Vec<SegmentDraft> {
    let epochs: BTreeMap<Seq, u64> = after
        .iter()
        .filter_map(|(seq, item)| match item {
            After::Line(facts, _) => Some((*seq, facts.restore_epoch)),
            After::Unread => known.facts(*seq).map(|facts| (*seq, facts.restore_epoch)),
        })
        .collect();
    let mut drafts: Vec<SegmentDraft> = Vec::new();
    let mut bytes = 0;
    for (seq, item) in after {
        // One that cannot be read is of the epoch of the next one that can, or else of the one that ends now.
        let above = epochs.range(seq..).next().map(|(_, epoch)| *epoch);
        let restore_epoch = above.unwrap_or(known.history.restore_epoch.max(target.restore_epoch));
        let line_bytes = match item {
            After::Line(facts, _) => facts.line_bytes,
            After::Unread => 0,
        };
        // A header of numbers, and its fixed fields.
        let more = line_bytes.saturating_add(42);
        let fits = drafts.last().is_some_and(|draft| {
            draft.restore_epoch == restore_epoch
                && draft.roots.len() + draft.unread.len() < limits.lines
                && bytes + more <= limits.bytes
        });
        if !fits {
            drafts.push(SegmentDraft {
                kind: SegmentKind::Restore,
                restore_epoch,
                roots: Vec::new(),
                leaves: Vec::new(),
                unread: Vec::new(),
            });
            bytes = 2_048;
        }
        bytes = bytes.saturating_add(more);
        if let Some(draft) = drafts.last_mut() {
            match item {
                After::Line(facts, etag) => draft.roots.push(SegmentRoot {
                    seq: *seq,
                    root_sha256: facts.root_sha256.clone(),
                    etag: (*etag).clone(),
                }),
                After::Unread => draft.unread.push(*seq),
            }
        }
    }
    drafts
}

fn deletes(known: &Known, to: Seq) -> Vec<Discarded> {
    let above = known.roots.iter().rev().filter(|(seq, _)| **seq > to);
    let delete = |(seq, etag): (&Seq, &ETag)| Discarded {
        seq: *seq,
        path: layout::root(*seq),
        etag: etag.clone(),
        root_sha256: known.facts(*seq).map(|facts| facts.root_sha256.clone()),
    };
    above.map(delete).collect()
}

/// What a restore on a 1.0 catalog does before it writes its root, which follows the head (D15).
#[derive(Debug, Clone, PartialEq)]
pub struct PlainRestore {
    /// `catalog.json` of the new epoch; `None` when an interrupted restore wrote it.
    pub catalog: Option<CatalogJson>,
    /// The new epoch.
    pub restore_epoch: u64,
}

/// What a restore to `asked` does on a 1.0 catalog: bump the epoch, then write S's content after `head`, the newest
/// version, by [`restored_version`](super::restored_version). `read` are the versions from S to the head, as they were
/// read. Safe to repeat: an epoch that no version has yet is the one of an interrupted restore, which goes on to the S
/// that is asked for now.
///
/// # Errors
/// [`HistoryRefusal`] when S is not there or cannot be read, or a version after it has no change list and was not
/// confirmed by name (D14).
pub fn plan_plain_restore(
    catalog: &CatalogJson,
    head: &Root,
    asked: &RestoreAsked,
    read: &BTreeMap<Seq, HistoryFields>,
) -> Result<PlainRestore, HistoryRefusal> {
    let to = asked.to;
    let found = match read.get(&to) {
        Some(HistoryFields::Both | HistoryFields::None) if to <= head.seq => None,
        Some(HistoryFields::Unreadable) => Some("cannot be read"),
        Some(HistoryFields::Both | HistoryFields::None) => Some("is above the newest version"),
        None => Some("is not in inventory/"),
    };
    if let Some(found) = found {
        return Err(HistoryRefusal::TargetUnread { to, found: found.to_owned() });
    }
    let after = run(to.next(), head.seq).filter(|seq| read.get(seq) != Some(&HistoryFields::Both));
    let unread: Vec<Seq> = after.filter(|seq| !asked.confirmed_unread.contains(seq)).collect();
    if !unread.is_empty() {
        return Err(HistoryRefusal::UnreadVersions { to, unread });
    }
    let restore_epoch = head.restore_epoch + 1;
    if catalog.restore_epoch == restore_epoch {
        return Ok(PlainRestore { catalog: None, restore_epoch });
    }
    if catalog.restore_epoch != head.restore_epoch {
        let epoch = catalog.restore_epoch;
        return Err(HistoryRefusal::UnfinishedRestore { catalog: epoch, history: epoch, head: head.restore_epoch });
    }
    Ok(PlainRestore { catalog: Some(catalog_restored(catalog, to, restore_epoch)), restore_epoch })
}

/// Step 2: `HISTORY` of the new epoch. `newest` is the last segment of step 1, `None` where there is none; `now` is
/// `HISTORY` as it was read just before it is replaced.
///
/// # Errors
/// [`HistoryRefusal::HistoryChanged`] when somebody wrote it since the plan was made on `planned`.
pub fn history_restored(
    planned: &History,
    now: &History,
    restore: &Restore,
    newest: Option<&SegmentRef>,
) -> Result<History, HistoryRefusal> {
    if planned != now {
        return Err(HistoryRefusal::HistoryChanged);
    }
    let newest = newest.cloned().or_else(|| newest_of(now));
    Ok(History {
        restore_epoch: restore.restore_epoch,
        expired_through: now.expired_through.min(restore.to.get()),
        newest_segment: newest.as_ref().map(|newest| newest.path.clone()),
        newest_segment_sha256: newest.map(|newest| newest.sha256),
        ..now.clone()
    })
}

/// Step 3: `catalog.json` of the new epoch. A restore to before `since_seq` moves it to the version after S, the first
/// with history fields on the new branch (D15). On a 1.0 catalog only the epoch changes.
#[must_use]
pub fn catalog_restored(catalog: &CatalogJson, to: Seq, restore_epoch: u64) -> CatalogJson {
    let since = catalog.history.as_ref().map(|history| history.since_seq);
    let since = since.map(|since| if to < since { to.next() } else { since });
    CatalogJson { restore_epoch, history: since.map(|since_seq| CatalogHistory { since_seq }), ..catalog.clone() }
}
