//! Several editions in one version: what can go in does, the rest is refused one by one (*catalog* §6.4, §6.5, D27).

use super::draft::Draft;
use super::invariants::records_of;
use super::leaf::{EntryState, Kind};
use super::operation::{Base, Facts, Record, RefusedEdition, Times};
use super::record::{Asked, admit, check_entry_manifest, check_fast_forward};
use super::refusal::Refusal;
use crate::ids::{EditionId, ProductId};
use crate::instant::Instant;

/// What is to be done with an edition.
#[derive(Clone, Copy)]
pub(super) enum Action<'a> {
    /// Put it into its leaf.
    Record(&'a Record),
    /// The same from the inbox, where a rival that is recorded stands against it.
    Register(&'a Record),
    /// Make an embargoed one live.
    Release,
}

/// An edition that should go into the version.
#[derive(Clone)]
pub(super) struct Candidate<'a> {
    product: ProductId,
    edition: EditionId,
    kind: Kind,
    action: Action<'a>,
}

impl<'a> Candidate<'a> {
    pub(super) fn new(product: &ProductId, edition: &EditionId, kind: Kind, action: Action<'a>) -> Self {
        Self { product: product.clone(), edition: edition.clone(), kind, action }
    }

    fn id(&self) -> (ProductId, EditionId) {
        (self.product.clone(), self.edition.clone())
    }

    /// What the edition is asked by itself.
    fn admit(&self, base: &Base<'_>, facts: &Facts, now: Instant) -> Result<(), Box<Refusal>> {
        match self.action {
            Action::Record(record) => admit(base, record, facts, now, false),
            Action::Register(record) => admit(base, record, facts, now, true),
            Action::Release => {
                let leaf = base.leaf(&self.product);
                let Some(entry) = leaf.and_then(|leaf| leaf.entry(&self.edition)) else { return Ok(()) };
                check_entry_manifest(&self.product, entry, facts)?;
                let asked = Asked {
                    product: &self.product,
                    edition: &self.edition,
                    previous: entry.previous.as_ref(),
                    schema: &entry.schema_version,
                    embargoed: true,
                };
                check_fast_forward(leaf, &asked)
            }
        }
    }

    fn apply(&self, draft: &mut Draft<'_>) -> Result<(), Box<Refusal>> {
        match self.action {
            Action::Record(record) | Action::Register(record) => draft.record(record),
            Action::Release => draft.go_live(&self.product, &self.edition),
        }
    }
}

/// Whether one refusal refuses everything.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The first refusal is the answer.
    AllOrNone,
    /// What is refused stays out, and the rest is tried again without it, until nothing more is refused.
    WhatCan,
}

/// What became of the candidates.
pub(super) struct Batch<'a> {
    /// The version with everything that was accepted; its structure rules hold.
    pub(super) draft: Draft<'a>,
    pub(super) accepted: Vec<(ProductId, EditionId)>,
    pub(super) refused: Vec<RefusedEdition>,
}

impl<'a> Batch<'a> {
    /// Decides on all candidates together.
    ///
    /// Structure editions come first, since no data edition stands against one (*catalog* §6.5 item 8); then the data
    /// editions. A refused edition changes what the others see: products that share a changed artefact are so refused
    /// together, and one that is only in the way of a refused one is not.
    ///
    /// # Errors
    /// The first refusal with [`Mode::AllOrNone`]; else only what makes a decision impossible.
    pub(super) fn run(
        base: &'a Base<'a>,
        facts: &'a Facts,
        times: Times,
        candidates: Vec<Candidate<'_>>,
        mode: Mode,
    ) -> Result<Self, Box<Refusal>> {
        let mut refused = Vec::new();
        let mut admitted = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            match candidate.admit(base, facts, times.now) {
                Ok(()) => admitted.push(candidate),
                Err(refusal) if mode == Mode::AllOrNone => return Err(refusal),
                Err(refusal) => refused.push(RefusedEdition::of(&candidate.product, &candidate.edition, &refusal)),
            }
        }
        let (structures, data): (Vec<_>, Vec<_>) =
            admitted.into_iter().partition(|candidate| candidate.kind == Kind::Structure);
        let mut draft = Draft::new(base, facts, times);
        let mut accepted = Vec::new();
        for stage in [structures, data] {
            let settled = settle(draft, stage, mode)?;
            draft = settled.draft;
            accepted.extend(settled.accepted);
            refused.extend(settled.refused);
        }
        refused.sort_by(|a, b| (&a.product_id, &a.edition_id).cmp(&(&b.product_id, &b.edition_id)));
        Ok(Self { draft, accepted, refused })
    }
}

/// The fixpoint: everything that is left is put on top of `start`, and what a rule refuses is taken out, until nothing
/// is.
fn settle<'a>(start: Draft<'a>, mut left: Vec<Candidate<'_>>, mode: Mode) -> Result<Batch<'a>, Box<Refusal>> {
    let mut refused = Vec::new();
    loop {
        let mut draft = start.clone();
        for candidate in &left {
            candidate.apply(&mut draft)?;
        }
        let ids: Vec<_> = left.iter().map(Candidate::id).collect();
        let mut found = draft.structure_refusals(&ids)?;
        let Some(first) = found.iter().position(Option::is_some) else {
            return Ok(Batch { draft, accepted: ids, refused });
        };
        if mode == Mode::AllOrNone
            && let Some(refusal) = found.swap_remove(first)
        {
            return Err(refusal);
        }
        let mut verdicts = Vec::with_capacity(left.len());
        for (candidate, refusal) in left.iter().zip(found) {
            let bystander = match &refusal {
                Some(refusal) => is_bystander(&start, candidate, refusal)?,
                None => false,
            };
            verdicts.push((refusal, bystander));
        }
        let to_blame = verdicts.iter().any(|(refusal, bystander)| refusal.is_some() && !bystander);
        let mut kept = Vec::with_capacity(left.len());
        for (candidate, (refusal, bystander)) in left.into_iter().zip(verdicts) {
            match refusal {
                Some(refusal) if !(to_blame && bystander) => {
                    refused.push(RefusedEdition::of(&candidate.product, &candidate.edition, &refusal));
                }
                Some(_) | None => kept.push(candidate),
            }
        }
        left = kept;
    }
}

/// Whether the edition is refused only because another candidate changes what it holds unchanged: once that one is
/// gone, nothing stands against it.
fn is_bystander(start: &Draft<'_>, candidate: &Candidate<'_>, refusal: &Refusal) -> Result<bool, Box<Refusal>> {
    let records = &start.facts.records;
    let holds = |product: Option<&ProductId>, kind: Kind, urn: &str, fingerprint: Option<&str>| {
        let fits = |print: &str| fingerprint.is_none_or(|fingerprint| fingerprint == print);
        for (holder, leaf) in start.base.leaves.iter().filter(|(_, leaf)| leaf.kind == kind) {
            for entry in leaf.editions.iter().filter(|entry| entry.state == EntryState::Live) {
                let record = records_of(holder, entry, records)?.get(urn);
                let full = record.filter(|record| record.partial_of.is_none() && fits(&record.fingerprint));
                if full.is_some() && product.is_none_or(|product| product == holder) {
                    return Ok(true);
                }
            }
        }
        let known = |product: &ProductId| start.base.leaves.contains_key(product);
        let others = start.base.holders.map(|others| others.full(urn, &known)).unwrap_or_default();
        Ok(others.iter().any(|other| {
            other.is_live
                && other.kind == kind
                && fits(&other.fingerprint)
                && product.is_none_or(|product| *product == other.product_id)
        }))
    };
    if let Refusal::SharedArtefactDiffers { urn, found, .. } = refusal {
        holds(None, Kind::Data, urn, Some(found))
    } else if let Refusal::TwoHomes { urn, .. } = refusal {
        holds(Some(&candidate.product), Kind::Structure, urn, None)
    } else {
        Ok(false)
    }
}
