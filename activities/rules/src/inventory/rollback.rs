//! Taking back (*catalog* §6.4): rollback, cancel, withdraw, supersede.

use std::collections::{BTreeMap, BTreeSet};

use super::change::Mark;
use super::draft::Draft;
use super::leaf::{EntryState, Leaf, LeafEntry};
use super::operation::{Base, Done, Facts, RollbackMove, Times, Verdict};
use super::record::{check_entry_manifest, check_rivals};
use super::refusal::{Refusal, TransitionRefusal};
use crate::ids::{EditionId, ProductId};

/// The moves of a rollback of the product whose leaf this is (D22): every live edition is taken back; at each schema
/// version the target is the one of `to` there, else the edition that the live one was built on, if it is superseded,
/// else the one that was superseded last. A schema version without any is left without a head, as long as another has
/// a target. The caller records the moves before it asks for the rollback, so that a retry takes back the same editions.
///
/// # Errors
/// [`TransitionRefusal`] when nothing is live, nothing can be gone back to, or a target is not superseded or of a
/// schema version at which nothing is live.
pub fn rollback_moves(leaf: &Leaf, to: &BTreeSet<EditionId>) -> Result<Vec<RollbackMove>, Box<Refusal>> {
    let product = || leaf.product_id.clone();
    let live: Vec<&LeafEntry> = leaf.live().collect();
    let live_ids = || live.iter().map(|entry| entry.edition_id.clone()).collect::<Vec<_>>();
    if live.is_empty() {
        return Err(TransitionRefusal::NothingLive { product: product() }.into());
    }
    let mut targets = BTreeMap::new();
    for edition in to {
        let entry = leaf
            .entry(edition)
            .ok_or_else(|| TransitionRefusal::UnknownEdition { product: product(), edition: edition.clone() })?;
        check_target(&leaf.product_id, entry)?;
        let known = targets.insert(&entry.schema_version, entry);
        if known.is_some() || !live.iter().any(|live| live.schema_version == entry.schema_version) {
            let (to, schema) = (edition.clone(), entry.schema_version.clone());
            return Err(TransitionRefusal::RollbackSchema { product: product(), to, schema, live: live_ids() }.into());
        }
    }
    let moves: Vec<_> = live
        .iter()
        .map(|entry| {
            let target = targets.get(&entry.schema_version).copied().or_else(|| default_target(leaf, entry));
            RollbackMove { from: entry.edition_id.clone(), to: target.map(|target| target.edition_id.clone()) }
        })
        .collect();
    if moves.iter().all(|step| step.to.is_none()) {
        return Err(TransitionRefusal::NothingToRollBackTo { product: product(), live: live_ids() }.into());
    }
    Ok(moves)
}

fn default_target<'a>(leaf: &'a Leaf, live: &LeafEntry) -> Option<&'a LeafEntry> {
    let candidates = || {
        let same =
            |entry: &&LeafEntry| entry.state == EntryState::Superseded && entry.schema_version == live.schema_version;
        leaf.editions.iter().filter(same)
    };
    candidates()
        .find(|entry| live.previous.as_ref() == Some(&entry.edition_id))
        .or_else(|| candidates().max_by_key(|entry| (entry.state_changed_at, entry.edition_id.clone())))
}

fn check_target(product: &ProductId, entry: &LeafEntry) -> Result<(), Box<Refusal>> {
    if entry.state == EntryState::Superseded {
        return Ok(());
    }
    Err(TransitionRefusal::WrongState {
        product: product.clone(),
        edition: entry.edition_id.clone(),
        found: entry.state,
        expected: "superseded, to be rolled back to",
    }
    .into())
}

/// The live editions are those that were live when the operation was asked for.
fn check_if_live(leaf: &Leaf, expected: &BTreeSet<EditionId>) -> Result<(), Box<Refusal>> {
    let found: BTreeSet<_> = leaf.live().map(|entry| entry.edition_id.clone()).collect();
    if found == *expected {
        return Ok(());
    }
    Err(TransitionRefusal::LiveChanged {
        product: leaf.product_id.clone(),
        expected: expected.iter().cloned().collect(),
        found: found.into_iter().collect(),
    }
    .into())
}

/// A rollback: conditional, forward, all live schema versions of each product at once.
pub(super) fn rollback(
    base: &Base<'_>,
    products: &BTreeMap<ProductId, Vec<RollbackMove>>,
    facts: &Facts,
    times: Times,
) -> Result<Verdict, Box<Refusal>> {
    let mut draft = Draft::new(base, facts, times);
    for (product, moves) in products {
        take_back(&mut draft, product, moves)?;
    }
    Ok(Verdict::Change(Box::new(draft.finish(Some(Mark::Live))?)))
}

fn take_back(draft: &mut Draft<'_>, product: &ProductId, moves: &[RollbackMove]) -> Result<(), Box<Refusal>> {
    let leaf = draft.leaf(product)?.clone();
    let from: BTreeSet<_> = moves.iter().map(|step| step.from.clone()).collect();
    let live: Vec<_> = leaf.live().map(|entry| entry.edition_id.clone()).collect();
    if live.is_empty() {
        return Err(TransitionRefusal::NothingLive { product: product.clone() }.into());
    }
    let part_of_live = from.len() < live.len() && from.iter().all(|edition| live.contains(edition));
    if part_of_live || from.len() != moves.len() {
        let moves = moves.iter().map(|step| step.from.clone()).collect();
        return Err(TransitionRefusal::RollbackIncomplete { product: product.clone(), live, moves }.into());
    }
    check_if_live(&leaf, &from)?;
    if moves.iter().all(|step| step.to.is_none()) {
        return Err(TransitionRefusal::NothingToRollBackTo { product: product.clone(), live }.into());
    }
    for step in moves {
        draft.set_state(product, &step.from, EntryState::Withdrawn)?;
        let Some(to) = &step.to else { continue };
        let target = draft.entry(product, to, "superseded, to be rolled back to")?.clone();
        check_target(product, &target)?;
        if leaf.entry(&step.from).is_none_or(|from| from.schema_version != target.schema_version) {
            let (to, schema) = (to.clone(), target.schema_version);
            return Err(TransitionRefusal::RollbackSchema { product: product.clone(), to, schema, live }.into());
        }
        check_entry_manifest(product, &target, draft.facts)?;
        draft.set_state(product, to, EntryState::Live)?;
    }
    Ok(())
}

/// Cancels an embargoed edition.
pub(super) fn cancel(
    base: &Base<'_>,
    product: &ProductId,
    edition: &EditionId,
    facts: &Facts,
    times: Times,
) -> Result<Verdict, Box<Refusal>> {
    let mut draft = Draft::new(base, facts, times);
    let expected = "embargoed, to be cancelled";
    let found = draft.entry(product, edition, expected)?.state;
    match found {
        EntryState::Withdrawn => Ok(already(Mark::Withdrawn)),
        EntryState::Embargoed => {
            draft.set_state(product, edition, EntryState::Withdrawn)?;
            Ok(Verdict::Change(Box::new(draft.finish(Some(Mark::Withdrawn))?)))
        }
        EntryState::Live | EntryState::Superseded => {
            let (product, edition) = (product.clone(), edition.clone());
            Err(TransitionRefusal::WrongState { product, edition, found, expected }.into())
        }
    }
}

/// Takes back every live edition without a replacement (D22): the product is left without a head.
pub(super) fn withdraw_live(
    base: &Base<'_>,
    product: &ProductId,
    if_live: &BTreeSet<EditionId>,
    facts: &Facts,
    times: Times,
) -> Result<Verdict, Box<Refusal>> {
    let mut draft = Draft::new(base, facts, times);
    let leaf = draft.leaf(product)?;
    if leaf.live().next().is_none() {
        let withdrawn = |edition| leaf.entry(edition).is_some_and(|entry| entry.state == EntryState::Withdrawn);
        if !if_live.is_empty() && if_live.iter().all(withdrawn) {
            return Ok(already(Mark::Withdrawn));
        }
        return Err(TransitionRefusal::NothingLive { product: product.clone() }.into());
    }
    check_if_live(leaf, if_live)?;
    for edition in if_live {
        draft.set_state(product, edition, EntryState::Withdrawn)?;
    }
    Ok(Verdict::Change(Box::new(draft.finish(Some(Mark::Withdrawn))?)))
}

/// Cancels an embargoed edition for another one that is recorded and built on the same live edition.
pub(super) fn supersede(
    base: &Base<'_>,
    product: &ProductId,
    edition: &EditionId,
    by: &EditionId,
    facts: &Facts,
    times: Times,
) -> Result<Verdict, Box<Refusal>> {
    let mut draft = Draft::new(base, facts, times);
    let old = draft.entry(product, edition, "embargoed, to be superseded before its release")?;
    let new = draft.entry(product, by, "embargoed, to take the other one's place")?;
    if old.state == EntryState::Withdrawn {
        return Ok(already(Mark::Withdrawn));
    }
    check_rivals(product, old, (by, new.previous.as_ref(), &new.schema_version))?;
    if new.state != EntryState::Embargoed {
        return Err(TransitionRefusal::WrongState {
            product: product.clone(),
            edition: by.clone(),
            found: new.state,
            expected: "embargoed, to take the other one's place",
        }
        .into());
    }
    draft.set_state(product, edition, EntryState::Withdrawn)?;
    Ok(Verdict::Change(Box::new(draft.finish(Some(Mark::Withdrawn))?)))
}

fn already(mark: Mark) -> Verdict {
    Verdict::Already(Done { mark: Some(mark), refused: Vec::new() })
}
