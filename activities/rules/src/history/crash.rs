//! Where an interrupted expiry goes on (*catalog* §6.9, Crashes).

use serde::Serialize;

use super::choose::pending;
use super::known::{Known, Read, Stage, ready};
use super::orphans::unreached;
use super::refusal::HistoryRefusal;
use super::steps::ExpiryStep;
use crate::inventory::{SegmentKind, Seq};

/// What an interrupted expiry left. A new one begins at step 0 all the same (D9) and finishes it on its way; this tells
/// an operator where that is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CrashRule {
    /// The first step that has something to do about it; `None` when nothing was interrupted.
    #[serde(serialize_with = "step_name")]
    pub step: Option<ExpiryStep>,
    /// The segments whose roots and leaves may not all be deleted, the oldest first.
    pub pending: Vec<String>,
    /// The roots among theirs that are still there, as their lines say.
    pub roots_left: Vec<Seq>,
    /// The segments that `HISTORY` does not name, and that follow the newest: they are adopted where they fit.
    pub orphans: Vec<String>,
}

#[expect(clippy::ref_option, reason = "the signature that serde asks for")]
fn step_name<S: serde::Serializer>(step: &Option<ExpiryStep>, to: S) -> Result<S::Ok, S::Error> {
    match step {
        Some(step) => to.serialize_some(step.as_str()),
        None => to.serialize_none(),
    }
}

/// What an interrupted expiry left, from what is found: `HISTORY` and segments, then the roots that they name.
///
/// # Errors
/// [`HistoryRefusal`] when the catalog has not opted in, a restore is unfinished, or the chain of segments is damaged.
pub fn crash_rule(known: &Known) -> Result<Stage<CrashRule>, HistoryRefusal> {
    ready!(known.check_ground()?);
    ready!(known.all_segments());
    let pending = ready!(pending(known)?);
    let mut roots_left = Vec::new();
    let mut reads = std::collections::BTreeSet::new();
    for (segment, line) in pending.iter().flat_map(|segment| segment.lines.iter().map(move |line| (segment, line))) {
        if !known.roots.contains_key(&line.seq) {
            continue;
        }
        match known.facts(line.seq) {
            Some(facts) if facts.root_sha256 == line.root_sha256 && facts.restore_epoch == segment.restore_epoch => {
                roots_left.push(line.seq);
            }
            None if known.damage(line.seq).is_none() => drop(reads.insert(Read::Root(line.seq))),
            Some(_) | None => {}
        }
    }
    if !reads.is_empty() {
        return Ok(Stage::Read(reads));
    }
    let chain = known.chain()?;
    let mut newest = known.newest();
    let mut orphans = Vec::new();
    let (unreached, _) = unreached(known, &chain);
    while let Some(next) =
        unreached.iter().find(|orphan| orphan.kind == SegmentKind::Expiry && orphan.previous == newest)
    {
        newest = Some(next.at.clone());
        orphans.push(next.at.path.clone());
    }
    let step = if known.current.seq < known.head {
        Some(ExpiryStep::AdvanceCurrent)
    } else if !orphans.is_empty() {
        Some(ExpiryStep::WriteSegments)
    } else if !roots_left.is_empty() {
        Some(ExpiryStep::DeleteRoots)
    } else if !pending.is_empty() {
        Some(ExpiryStep::DeleteLeaves)
    } else {
        None
    };
    let pending = pending.iter().map(|segment| segment.at.path.clone()).collect();
    Ok(Stage::Ready(CrashRule { step, pending, roots_left, orphans }))
}
