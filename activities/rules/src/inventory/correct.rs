//! A version built from an older, known-good one (*catalog* §6.2; D14).

use std::collections::BTreeSet;

use super::MissingLeaf;
use super::change::{Change, Mark};
use super::draft::Draft;
use super::invariants::counts;
use super::leaf::{EntryState, Leaf, LeafEntry};
use super::operation::{Base, Done, Facts, Outcome, Times, Verdict};
use super::record::check_entry_manifest;
use super::refusal::{RecoveryRefusal, Refusal};
use super::root::{Root, Seq};
use crate::ids::{EditionId, ProductId};

/// What a correction was asked for.
pub(super) struct Correction<'o> {
    pub(super) to: Seq,
    pub(super) products: Option<&'o BTreeSet<ProductId>>,
    pub(super) confirmed_unread: &'o BTreeSet<Seq>,
}

/// Gives the products the states of the older version, and drops nothing (D14): what a version since withdrew or
/// retired stays as the head has it; a later edition keeps its entry, superseded if the older version's edition takes
/// its place; a product keeps a head wherever it has one; and an edition that is embargoed again is never due by
/// itself.
pub(super) fn correct(
    base: &Base<'_>,
    asked: &Correction<'_>,
    facts: &Facts,
    times: Times,
) -> Result<Verdict, Box<Refusal>> {
    let good = target(base, asked, facts)?;
    let taken = taken_back(asked.to, base, asked, facts)?;
    let mut draft = Draft::new(base, facts, times);
    let in_scope = |product: &&ProductId| asked.products.is_none_or(|products| products.contains(*product));
    for product in good.products.keys().filter(in_scope) {
        let reference = &good.products[product];
        if base.root.products.get(product) == Some(reference) {
            continue;
        }
        let known = facts.correction.leaves.get(product);
        let known =
            known.ok_or_else(|| MissingLeaf { product: product.clone(), sha256: reference.leaf_sha256.clone() })?;
        merge(&mut draft, known, &taken)?;
    }
    for product in asked.products.into_iter().flatten() {
        // One that is in neither version is a slip of the pen.
        if !good.products.contains_key(product) {
            draft.leaf(product)?;
        }
    }
    let outcome = Outcome { built_from: Some(asked.to), ..draft.finish(None)? };
    let outcome = if asked.products.is_none() { with_settings(base, good, outcome) } else { outcome };
    if outcome.leaves.is_empty() && outcome.statcat.is_none() && outcome.embargo.is_none() {
        return Ok(Verdict::Already(Done::default()));
    }
    Ok(Verdict::Change(Box::new(outcome)))
}

fn target<'f>(base: &Base<'_>, asked: &Correction<'_>, facts: &'f Facts) -> Result<&'f Root, Box<Refusal>> {
    if asked.to >= base.root.seq {
        return Err(RecoveryRefusal::NotOlder { to: asked.to, head: base.root.seq }.into());
    }
    let good = facts.correction.root.as_ref().filter(|root| root.seq == asked.to);
    good.ok_or_else(|| RecoveryRefusal::TargetUnread { to: asked.to }.into())
}

/// The editions that a version after the older one withdrew or retired. Each of those versions was read, or a person
/// confirmed that it was not.
fn taken_back(
    to: Seq,
    base: &Base<'_>,
    asked: &Correction<'_>,
    facts: &Facts,
) -> Result<BTreeSet<EditionId>, Box<Refusal>> {
    let mut taken = BTreeSet::new();
    let mut unread = Vec::new();
    let mut seq = to.next();
    while seq <= base.root.seq {
        match facts.correction.since.get(&seq) {
            Some(Some(changes)) => taken.extend(withdrawn_or_retired(changes)),
            Some(None) | None if asked.confirmed_unread.contains(&seq) => {}
            Some(None) | None => unread.push(seq),
        }
        seq = seq.next();
    }
    if unread.is_empty() { Ok(taken) } else { Err(RecoveryRefusal::UnreadVersions { to, unread }.into()) }
}

fn withdrawn_or_retired(changes: &[Change]) -> impl Iterator<Item = EditionId> {
    let items = changes.iter().flat_map(|change| &change.entries);
    items.filter(|item| matches!(item.to, Some(Mark::Withdrawn | Mark::Tombstone))).map(|item| item.edition_id.clone())
}

/// The states of the older leaf, laid over the head's.
fn merge(draft: &mut Draft<'_>, good: &Leaf, taken: &BTreeSet<EditionId>) -> Result<(), Box<Refusal>> {
    let (product, times) = (&good.product_id, draft.times);
    let head = draft.leaf(product).ok().cloned();
    let mut leaf = head.clone().unwrap_or_else(|| Leaf { editions: Vec::new(), ..good.clone() });
    leaf.lifecycle = good.lifecycle;
    for older in &good.editions {
        let retired = draft.retired().iter().any(|tombstone| tombstone.edition_id == older.edition_id);
        let is_taken = taken.contains(&older.edition_id);
        if retired || (is_taken && leaf.entry(&older.edition_id).is_some()) {
            continue;
        }
        let mut entry = leaf.entry(&older.edition_id).unwrap_or(older).clone();
        leaf.editions.retain(|known| known.edition_id != older.edition_id);
        let (state, release_at) = match older.state {
            // An edition that was dropped, and withdrawn before that.
            _ if is_taken => (EntryState::Withdrawn, None),
            // A time that has come again would release it at once; one that it has now, it keeps.
            EntryState::Embargoed => {
                let kept = entry.state == EntryState::Embargoed && entry.release_at == older.release_at;
                (EntryState::Embargoed, older.release_at.filter(|at| kept || *at > times.now))
            }
            EntryState::Live | EntryState::Superseded | EntryState::Withdrawn => (older.state, None),
        };
        let known = head.as_ref().and_then(|head| head.entry(&older.edition_id));
        if known.is_none_or(|known| known.state != state) {
            entry.state_changed_at = times.at;
        }
        (entry.state, entry.release_at) = (state, release_at);
        leaf.insert(entry);
    }
    keep_heads(&mut leaf, head.as_ref(), good, times);
    if head.as_ref() == Some(&leaf) {
        return Ok(());
    }
    let before =
        |entry: &LeafEntry| head.as_ref().and_then(|head| head.entry(&entry.edition_id)).map(|entry| entry.state);
    let comes_in = |entry: &&LeafEntry| counts(entry) && before(entry) != Some(entry.state);
    let incoming: Vec<LeafEntry> = leaf.editions.iter().filter(comes_in).cloned().collect();
    leaf.format_version = leaf.format_version.max(super::INVENTORY_FORMAT);
    draft.replace(leaf);
    for entry in &incoming {
        check_entry_manifest(product, entry, draft.facts)?;
        draft.comes_in(product, &entry.edition_id);
    }
    Ok(())
}

/// One live edition a schema version, and one wherever the head has one: of two, the older version's stays.
fn keep_heads(leaf: &mut Leaf, head: Option<&Leaf>, good: &Leaf, times: Times) {
    let is_good = |entry: &LeafEntry| good.entry(&entry.edition_id).is_some_and(|g| g.state == EntryState::Live);
    let live: Vec<_> = leaf.live().map(|entry| (entry.schema_version.clone(), is_good(entry))).collect();
    for entry in leaf.editions.iter_mut().filter(|entry| entry.state == EntryState::Live) {
        let rivals = live.iter().filter(|(schema, _)| *schema == entry.schema_version).count();
        if rivals > 1 && !is_good(entry) {
            entry.state = EntryState::Superseded;
            entry.state_changed_at = times.at;
        }
    }
    for was in head.into_iter().flat_map(Leaf::live) {
        if leaf.head(&was.schema_version).is_none() {
            for entry in leaf.editions.iter_mut().filter(|entry| entry.edition_id == was.edition_id) {
                entry.clone_from(was);
            }
        }
    }
}

/// The description of the older version; and the embargo, if it was on: a correction never turns it off.
fn with_settings(base: &Base<'_>, good: &Root, mut outcome: Outcome) -> Outcome {
    let section = |root: &Root| root.extensions.get("statcat").and_then(|section| section.as_object()).cloned();
    outcome.statcat = section(good).filter(|was| section(base.root).as_ref() != Some(was));
    outcome.embargo = (good.embargo && !base.root.embargo).then_some(true);
    outcome
}
