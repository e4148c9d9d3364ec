//! The version that an operation is making, until it is checked.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Map;

use super::INVENTORY_FORMAT;
use super::change::Mark;
use super::invariants::{Around, Structures, check_chain};
use super::leaf::{EntryState, Leaf, LeafEntry};
use super::operation::{Base, Facts, Outcome, Record, Times};
use super::refusal::{Refusal, TransitionRefusal};
use super::root::Tombstone;
use crate::ids::{EditionId, ProductId};

/// A working copy of the base version: the leaves that change, the tombstones if they do, and what comes in.
#[derive(Clone)]
pub(super) struct Draft<'a> {
    pub(super) base: &'a Base<'a>,
    pub(super) facts: &'a Facts,
    pub(super) times: Times,
    leaves: BTreeMap<ProductId, Leaf>,
    retired: Option<Vec<Tombstone>>,
    /// The editions that become live or embargoed here (*catalog* §6.5 item 4).
    incoming: BTreeSet<(ProductId, EditionId)>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(base: &'a Base<'a>, facts: &'a Facts, times: Times) -> Self {
        Self { base, facts, times, leaves: BTreeMap::new(), retired: None, incoming: BTreeSet::new() }
    }

    /// The leaf of `product` as it stands now.
    pub(super) fn leaf(&self, product: &ProductId) -> Result<&Leaf, Box<Refusal>> {
        let found = self.leaves.get(product).or_else(|| self.base.leaf(product));
        found.ok_or_else(|| TransitionRefusal::UnknownProduct { product: product.clone() }.into())
    }

    /// The entry of an edition, which must be in the leaf. `expected` says what state was needed, for a tombstone.
    pub(super) fn entry(
        &self,
        product: &ProductId,
        edition: &EditionId,
        expected: &'static str,
    ) -> Result<&LeafEntry, Box<Refusal>> {
        let leaf = self.leaf(product)?;
        if let Some(entry) = leaf.entry(edition) {
            return Ok(entry);
        }
        Err(match self.base.root.tombstone(product, edition) {
            Some(tombstone) => TransitionRefusal::from((tombstone, expected)).into(),
            None => TransitionRefusal::UnknownEdition { product: product.clone(), edition: edition.clone() }.into(),
        })
    }

    /// The leaf of `product`, to be changed.
    pub(super) fn edit(&mut self, product: &ProductId) -> Result<&mut Leaf, Box<Refusal>> {
        if !self.leaves.contains_key(product) {
            let mut leaf = self.leaf(product)?.clone();
            leaf.format_version = leaf.format_version.max(INVENTORY_FORMAT);
            self.leaves.insert(product.clone(), leaf);
        }
        self.leaves
            .get_mut(product)
            .ok_or_else(|| TransitionRefusal::UnknownProduct { product: product.clone() }.into())
    }

    /// Puts a whole leaf in the place of the product's.
    pub(super) fn replace(&mut self, leaf: Leaf) {
        self.leaves.insert(leaf.product_id.clone(), leaf);
    }

    /// Gives an edition another state, from now on. Its other fields stay as they are.
    pub(super) fn set_state(
        &mut self,
        product: &ProductId,
        edition: &EditionId,
        state: EntryState,
    ) -> Result<(), Box<Refusal>> {
        let at = self.times.at;
        let leaf = self.edit(product)?;
        for entry in leaf.editions.iter_mut().filter(|entry| entry.edition_id == *edition) {
            entry.state = state;
            entry.state_changed_at = at;
            entry.release_at = None;
        }
        match state {
            EntryState::Live | EntryState::Embargoed => {
                self.comes_in(product, edition);
            }
            EntryState::Superseded | EntryState::Withdrawn => {
                self.incoming.remove(&(product.clone(), edition.clone()));
            }
        }
        Ok(())
    }

    /// Marks an edition as one that becomes live or embargoed in this version.
    pub(super) fn comes_in(&mut self, product: &ProductId, edition: &EditionId) {
        self.incoming.insert((product.clone(), edition.clone()));
    }

    /// Makes an edition of the leaf live, and the live one at its schema version superseded.
    pub(super) fn go_live(&mut self, product: &ProductId, edition: &EditionId) -> Result<(), Box<Refusal>> {
        let leaf = self.leaf(product)?;
        let head = leaf.entry(edition).and_then(|entry| leaf.head(&entry.schema_version));
        if let Some(head) = head.map(|head| head.edition_id.clone()).filter(|head| head != edition) {
            self.set_state(product, &head, EntryState::Superseded)?;
        }
        self.set_state(product, edition, EntryState::Live)
    }

    /// Puts a new edition into the product's leaf, live or embargoed, and withdraws the one that it supersedes.
    pub(super) fn record(&mut self, new: &Record) -> Result<(), Box<Refusal>> {
        let product = &new.product_id;
        let (at, embargo) = (self.times.at, self.base.root.embargo);
        if self.leaf(product).is_err() {
            self.replace(Leaf::empty(product.clone(), new.kind));
        }
        if let Some(old) = &new.supersedes {
            self.set_state(product, old, EntryState::Withdrawn)?;
        }
        let leaf = self.edit(product)?;
        if let Some(lifecycle) = new.lifecycle {
            leaf.lifecycle = lifecycle;
        }
        leaf.insert(new.entry.clone().into_entry(EntryState::Embargoed, at, new.release_at));
        let edition = &new.entry.edition_id;
        if embargo {
            self.comes_in(product, edition);
            return Ok(());
        }
        self.go_live(product, edition)
    }

    /// The tombstones as they stand now.
    pub(super) fn retired(&self) -> &[Tombstone] {
        self.retired.as_deref().unwrap_or(&self.base.root.retired)
    }

    /// The tombstones, to be changed.
    pub(super) fn edit_retired(&mut self) -> &mut Vec<Tombstone> {
        self.retired.get_or_insert_with(|| self.base.root.retired.clone())
    }

    /// Every leaf at hand of the version that is being made.
    pub(super) fn after(&self) -> BTreeMap<&ProductId, &Leaf> {
        let mut after: BTreeMap<_, _> = self.base.leaves.iter().map(|(id, leaf)| (id, leaf.as_ref())).collect();
        after.extend(&self.leaves);
        after
    }

    /// Item 6 for the leaves that change: each entry's `previous` is known, and nothing is recorded and retired.
    fn check_chains(&self) -> Result<(), Box<Refusal>> {
        let mut tombstones: BTreeMap<&ProductId, BTreeSet<&EditionId>> = BTreeMap::new();
        for tombstone in self.retired().iter().filter(|tombstone| self.leaves.contains_key(&tombstone.product_id)) {
            tombstones.entry(&tombstone.product_id).or_default().insert(&tombstone.edition_id);
        }
        let none = BTreeSet::new();
        let mut leaves = self.leaves.iter();
        leaves.try_for_each(|(product, leaf)| check_chain(leaf, tombstones.get(product).unwrap_or(&none)))
    }

    /// What the structure rules say of each of `editions`, which are in the version that is being made.
    pub(super) fn structure_refusals(
        &self,
        editions: &[(ProductId, EditionId)],
    ) -> Result<Vec<Option<Box<Refusal>>>, Box<Refusal>> {
        if editions.is_empty() {
            return Ok(Vec::new());
        }
        let after = self.after();
        let incoming: Vec<_> = editions.iter().map(|(product, edition)| (product, edition)).collect();
        let around = Around { leaves: &after, others: self.base.holders, records: &self.facts.records };
        let structures = Structures::over(&around, &incoming)?;
        let check = |(product, edition): &(ProductId, EditionId)| {
            let found = after.get(product).and_then(|leaf| Some((*leaf, leaf.entry(edition)?)));
            found.and_then(|(leaf, entry)| structures.check(leaf, entry).err())
        };
        Ok(editions.iter().map(check).collect())
    }

    /// What changes, once every rule of *catalog* §6.5 holds for what comes in.
    pub(super) fn finish(self, mark: Option<Mark>) -> Result<Outcome, Box<Refusal>> {
        let incoming: Vec<_> = self.incoming.iter().cloned().collect();
        if let Some(refusal) = self.structure_refusals(&incoming)?.into_iter().flatten().next() {
            return Err(refusal);
        }
        self.finish_unchecked(mark)
    }

    /// The same for what [`batch`](super::batch) has checked already.
    pub(super) fn finish_unchecked(self, mark: Option<Mark>) -> Result<Outcome, Box<Refusal>> {
        self.check_chains()?;
        Ok(Outcome { leaves: self.leaves, retired: self.retired, mark, ..Outcome::default() })
    }
}

impl Leaf {
    /// The leaf of a product that has no edition yet.
    pub(super) fn empty(product_id: ProductId, kind: super::leaf::Kind) -> Self {
        Self {
            format_version: INVENTORY_FORMAT,
            product_id,
            kind,
            lifecycle: super::leaf::Lifecycle::Revisable,
            editions: Vec::new(),
            other: Map::new(),
        }
    }

    /// Puts an entry in its place, by edition id.
    pub(super) fn insert(&mut self, entry: LeafEntry) {
        let place = self.editions.partition_point(|known| known.edition_id < entry.edition_id);
        self.editions.insert(place, entry);
    }
}
