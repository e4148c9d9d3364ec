//! Releases (*catalog* §6.4, §11.2 step 4; D21, D27).

use std::collections::BTreeSet;

use super::batch::{Action, Batch, Candidate, Mode};
use super::change::Mark;
use super::draft::Draft;
use super::leaf::{EntryState, Leaf, LeafEntry, SchemaVersion};
use super::operation::{Base, Done, Facts, RefusedEdition, Release, Times, Verdict};
use super::refusal::{Refusal, TransitionRefusal};
use super::version::refused_in;
use crate::ids::{EditionId, ProductId};

/// Every edition that is due at `now`, by product: embargoed, with a `release_at` that has come.
pub(super) fn due<'a>(base: &Base<'a>, times: Times) -> Vec<(&'a Leaf, &'a LeafEntry)> {
    let due =
        |entry: &&LeafEntry| entry.state == EntryState::Embargoed && entry.release_at.is_some_and(|at| at <= times.now);
    base.leaves.values().flat_map(|leaf| leaf.editions.iter().filter(due).map(|entry| (leaf.as_ref(), entry))).collect()
}

/// Releases what was selected. A batch of what is due persists each refusal; it writes no version when nothing is
/// released and the head's refusals are the same.
pub(super) fn release(
    base: &Base<'_>,
    selection: &Release,
    facts: &Facts,
    times: Times,
) -> Result<Verdict, Box<Refusal>> {
    let (selected, mode) = match selection {
        Release::Due => (due(base, times), Mode::WhatCan),
        Release::Products(products) => (of_products(base, products)?, Mode::AllOrNone),
        Release::Editions(editions) => (these(base, editions, facts, times)?, Mode::AllOrNone),
    };
    if selected.is_empty() && mode == Mode::AllOrNone {
        // Every edition that was named is live.
        return Ok(Verdict::Already(Done { mark: Some(Mark::Live), refused: Vec::new() }));
    }
    let mut refused = Vec::new();
    let mut candidates = Vec::new();
    for (leaf, entry) in &selected {
        let rival = selected.iter().find(|(other_leaf, other)| {
            leaf.product_id == other_leaf.product_id
                && entry.edition_id != other.edition_id
                && entry.schema_version == other.schema_version
        });
        match rival {
            None => candidates.push(Candidate::new(&leaf.product_id, &entry.edition_id, leaf.kind, Action::Release)),
            Some((_, other)) => {
                let refusal = Refusal::from(TransitionRefusal::TwoPending {
                    product: leaf.product_id.clone(),
                    edition: entry.edition_id.clone(),
                    other: other.edition_id.clone(),
                    previous: entry.previous.clone(),
                    schema: entry.schema_version.clone(),
                    registered: false,
                });
                if mode == Mode::AllOrNone {
                    return Err(Box::new(refusal));
                }
                refused.push(RefusedEdition::of(&leaf.product_id, &entry.edition_id, &refusal));
            }
        }
    }
    let batch = Batch::run(base, facts, times, candidates, mode)?;
    refused.extend(batch.refused);
    refused.sort_by(|a, b| (&a.product_id, &a.edition_id).cmp(&(&b.product_id, &b.edition_id)));
    if batch.accepted.is_empty() && refused == refused_in(base.root) {
        return Ok(Verdict::Already(Done { mark: None, refused }));
    }
    let mark = (!batch.accepted.is_empty()).then_some(Mark::Live);
    let mut outcome = batch.draft.finish_unchecked(mark)?;
    outcome.refused = refused;
    Ok(Verdict::Change(Box::new(outcome)))
}

/// Every embargoed edition of the products, each of which must have one.
fn of_products<'a>(
    base: &Base<'a>,
    products: &BTreeSet<ProductId>,
) -> Result<Vec<(&'a Leaf, &'a LeafEntry)>, Box<Refusal>> {
    let mut selected = Vec::new();
    for product in products {
        let leaf = base.leaf(product).ok_or_else(|| TransitionRefusal::UnknownProduct { product: product.clone() })?;
        let before = selected.len();
        let waiting = leaf.editions.iter().filter(|entry| entry.state == EntryState::Embargoed);
        selected.extend(waiting.map(|entry| (leaf, entry)));
        if selected.len() == before {
            return Err(TransitionRefusal::NothingEmbargoed { product: product.clone() }.into());
        }
    }
    Ok(selected)
}

/// The named editions that are not live yet, each of which must be embargoed.
fn these<'a>(
    base: &'a Base<'a>,
    editions: &BTreeSet<(ProductId, EditionId)>,
    facts: &Facts,
    times: Times,
) -> Result<Vec<(&'a Leaf, &'a LeafEntry)>, Box<Refusal>> {
    let draft = Draft::new(base, facts, times);
    let mut selected = Vec::new();
    for (product, edition) in editions {
        let state = draft.entry(product, edition, "embargoed, to be released")?.state;
        match state {
            EntryState::Live => {}
            EntryState::Embargoed => {
                let leaf = base.leaf(product);
                selected.extend(leaf.and_then(|leaf| Some((leaf, leaf.entry(edition)?))));
            }
            EntryState::Superseded | EntryState::Withdrawn => {
                return Err(TransitionRefusal::WrongState {
                    product: product.clone(),
                    edition: edition.clone(),
                    found: state,
                    expected: "embargoed, to be released",
                }
                .into());
            }
        }
    }
    Ok(selected)
}

/// Supersedes the live editions of an old schema version, where a newer one is live (*catalog* §9.2 step 5, D27).
pub(super) fn supersede_schema(
    base: &Base<'_>,
    schema: &SchemaVersion,
    products: Option<&BTreeSet<ProductId>>,
    facts: &Facts,
    times: Times,
) -> Result<Verdict, Box<Refusal>> {
    let mut draft = Draft::new(base, facts, times);
    let mut refused = Vec::new();
    let mut superseded = false;
    let named = products.is_some();
    let all = || base.leaves.keys().cloned().collect();
    for product in &products.cloned().unwrap_or_else(all) {
        let leaf = draft.leaf(product)?;
        let Some(old) = leaf.head(schema).map(|entry| entry.edition_id.clone()) else {
            if named && !leaf.editions.iter().any(|entry| entry.schema_version == *schema) {
                let (schema, product) = (schema.clone(), Some(product.clone()));
                return Err(TransitionRefusal::NothingAtSchema { schema, product }.into());
            }
            continue;
        };
        if leaf.live().any(|entry| entry.schema_version > *schema) {
            draft.set_state(product, &old, EntryState::Superseded)?;
            superseded = true;
            continue;
        }
        let refusal =
            TransitionRefusal::NoNewerSchema { product: product.clone(), edition: old.clone(), schema: schema.clone() };
        if named {
            return Err(refusal.into());
        }
        refused.push(RefusedEdition::of(product, &old, &refusal.into()));
    }
    if !superseded {
        if refused.is_empty() && !named && !base.leaves.values().any(|leaf| knows_schema(leaf, schema)) {
            return Err(TransitionRefusal::NothingAtSchema { schema: schema.clone(), product: None }.into());
        }
        return Ok(Verdict::Already(Done { mark: None, refused }));
    }
    let mut outcome = draft.finish(Some(Mark::Superseded))?;
    outcome.refused = refused;
    Ok(Verdict::Change(Box::new(outcome)))
}

fn knows_schema(leaf: &Leaf, schema: &SchemaVersion) -> bool {
    leaf.editions.iter().any(|entry| entry.schema_version == *schema)
}
