//! The version that a restore writes: S as it was, without what was taken back since (D14).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::refusal::HistoryRefusal;
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;
use crate::inventory::{
    Base, By, Document as _, EncodedLeaf, EntryState, Event, EventKind, INVENTORY_FORMAT, Leaf, Mark, NextVersion,
    ProductRef, Refusal, Root, SegmentLine, Seq, Side, Tombstone, changes_between, created_at,
};

const JOBCTL: &str = "jobctl";

/// When a version was, in the order of epochs and numbers.
type At = (u64, Seq);

/// What the versions after S took back: read from their lines in segments, and from those that are still roots. Give it
/// every recorded version above S, in any order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TakenBack {
    marks: BTreeMap<(ProductId, EditionId), (At, Option<Mark>)>,
    retired: BTreeMap<(ProductId, EditionId), Tombstone>,
    embargo: Option<(At, bool)>,
    expunged: Vec<Value>,
}

impl TakenBack {
    /// Adds a version that a segment records.
    pub fn add_line(&mut self, line: &SegmentLine) {
        let at = (line.restore_epoch, line.seq);
        self.add(at, line.embargo, &line.extensions);
        for change in line.changes.iter().flatten() {
            for item in &change.entries {
                self.mark(at, (change.product_id.clone(), item.edition_id.clone()), item.to);
            }
        }
    }

    /// Adds a version whose root is there.
    pub fn add_root(&mut self, root: &Root) {
        self.add_line(&SegmentLine::of(root, Sha256Hex::of(b"")));
        let known = root.retired.iter().map(|dead| ((dead.product_id.clone(), dead.edition_id.clone()), dead.clone()));
        self.retired.extend(known);
    }

    fn add(&mut self, at: At, embargo: bool, extensions: &Map<String, Value>) {
        if self.embargo.is_none_or(|(known, _)| known <= at) {
            self.embargo = Some((at, embargo));
        }
        for value in expunged_of(extensions) {
            if !self.expunged.contains(value) {
                self.expunged.push(value.clone());
            }
        }
    }

    fn mark(&mut self, at: At, key: (ProductId, EditionId), to: Option<Mark>) {
        let known = self.marks.entry(key).or_insert((at, to));
        if known.0 <= at {
            *known = (at, to);
        }
    }

    /// What became of an edition after S, in the end.
    fn last(&self, product: &ProductId, edition: &EditionId) -> Option<Mark> {
        self.marks.get(&(product.clone(), edition.clone())).and_then(|(_, mark)| *mark)
    }
}

fn expunged_of(extensions: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let listed = extensions.get(JOBCTL).and_then(|section| section.get("expunged")).and_then(Value::as_array);
    listed.into_iter().flatten()
}

/// The version after `base` that holds the content of `good`, version S, in `restore_epoch`. On an opted-in catalog
/// `base` is S itself; on a 1.0 catalog it is the head, whose number the new version follows (D15).
///
/// `leaves` are all of S's. What a version after S withdrew stays withdrawn, and what one retired stays a tombstone; an
/// edition that S does not know and that was withdrawn becomes a tombstone, so that its registration is never folded
/// again. Where the live edition was taken back, the one that was live instead is. An embargo that was on at the end
/// stays on, and a time of release that has come is dropped: nothing is released by the restore itself.
///
/// # Errors
/// [`HistoryRefusal::TargetLeaf`] when a leaf of S is not among `leaves`; [`HistoryRefusal::Version`] when the base is
/// ahead of the clock.
pub fn restored_version(
    base: &Base<'_>,
    good: &Root,
    leaves: &BTreeMap<ProductId, Arc<Leaf>>,
    taken: &TakenBack,
    restore_epoch: u64,
    by: &By,
    now: Instant,
) -> Result<NextVersion, HistoryRefusal> {
    let at = created_at(base.root, now)?;
    let mut retired: BTreeMap<(ProductId, EditionId), Tombstone> =
        good.retired.iter().map(|dead| ((dead.product_id.clone(), dead.edition_id.clone()), dead.clone())).collect();
    let mut new = BTreeMap::new();
    for product in good.products.keys() {
        let leaf = leaves.get(product);
        let leaf = leaf.ok_or_else(|| HistoryRefusal::TargetLeaf { to: good.seq, product: product.clone() })?;
        new.insert(product.clone(), restored_leaf(leaf, taken, at, now));
    }
    for ((product, edition), (_, mark)) in &taken.marks {
        let is_recorded = new.get(product).is_some_and(|leaf| leaf.entry(edition).is_some());
        let dead = match mark {
            Some(Mark::Tombstone) => true,
            Some(Mark::Withdrawn) => !is_recorded,
            Some(Mark::Live | Mark::Embargoed | Mark::Superseded) | None => false,
        };
        let key = (product.clone(), edition.clone());
        if dead && !retired.contains_key(&key) {
            let of_base = base.root.tombstone(product, edition).or_else(|| taken.retired.get(&key));
            let fresh = Tombstone { product_id: product.clone(), edition_id: edition.clone(), retired_at: at };
            retired.insert(key, of_base.cloned().unwrap_or(fresh));
        }
    }
    let retired: Vec<_> = retired.into_values().collect();
    let (mut products, mut encoded) = (BTreeMap::new(), Vec::new());
    for (product_id, leaf) in &new {
        let known = good.products.get(product_id);
        if let Some(known) = known.filter(|_| leaves.get(product_id).is_some_and(|old| **old == *leaf)) {
            products.insert(product_id.clone(), known.clone());
            continue;
        }
        leaf.validate()?;
        let bytes = leaf.encode()?;
        let sha256 = Sha256Hex::of(&bytes);
        products.insert(product_id.clone(), ProductRef { leaf_sha256: sha256.clone() });
        encoded.push(EncodedLeaf { product_id: product_id.clone(), sha256, bytes });
    }
    let before = |product: &ProductId| base.leaf(product).or_else(|| leaf_of_base(base, good, leaves, product));
    let after = |product: &ProductId| new.get(product);
    let changes = changes_between(
        &Side { products: &base.root.products, retired: &base.root.retired, leaf: &before },
        &Side { products: &products, retired: &retired, leaf: &after },
    )
    .map_err(|missing| HistoryRefusal::Version(Box::new(Refusal::from(missing))))?;
    let root = Root {
        format_version: INVENTORY_FORMAT,
        seq: base.root.seq.next(),
        previous_inventory: Some(base.root.seq),
        restore_epoch,
        created_at: at,
        producer: by.producer.clone(),
        embargo: good.embargo || base.root.embargo || taken.embargo.is_some_and(|(_, embargo)| embargo),
        products,
        retired,
        event: Event { actor: by.actor.clone(), reason: by.reason.clone(), kind: EventKind::Restore },
        extensions: extensions(base.root, good, taken, by),
        previous_root_sha256: Some(Some(base.root_sha256.clone())),
        changes: Some(changes),
        other: Map::new(),
    };
    root.validate()?;
    let root_bytes = root.encode()?;
    let root_sha256 = Sha256Hex::of(&root_bytes);
    Ok(NextVersion { leaves: encoded, root, root_bytes, root_sha256, mark: None, refused: Vec::new() })
}

/// S's leaf, where the base names the same one.
fn leaf_of_base<'a>(
    base: &Base<'_>,
    good: &Root,
    leaves: &'a BTreeMap<ProductId, Arc<Leaf>>,
    product: &ProductId,
) -> Option<&'a Leaf> {
    let same = base.root.leaf_sha256(product) == good.leaf_sha256(product);
    leaves.get(product).filter(|_| same).map(Arc::as_ref)
}

fn restored_leaf(old: &Leaf, taken: &TakenBack, at: Instant, now: Instant) -> Leaf {
    let product = &old.product_id;
    let mut leaf = old.clone();
    leaf.editions.retain(|entry| taken.last(product, &entry.edition_id) != Some(Mark::Tombstone));
    for entry in &mut leaf.editions {
        if taken.last(product, &entry.edition_id) == Some(Mark::Withdrawn) && entry.state != EntryState::Withdrawn {
            (entry.state, entry.state_changed_at, entry.release_at) = (EntryState::Withdrawn, at, None);
        }
        if entry.state == EntryState::Embargoed {
            entry.release_at = entry.release_at.filter(|due| *due > now);
        }
    }
    let lost: BTreeSet<_> = old.live().map(|entry| entry.schema_version.clone()).collect();
    for schema in lost.into_iter().filter(|schema| leaf.head(schema).is_none()).collect::<Vec<_>>() {
        let instead = leaf.editions.iter_mut().find(|entry| {
            entry.schema_version == schema
                && matches!(entry.state, EntryState::Superseded | EntryState::Embargoed)
                && taken.last(product, &entry.edition_id) == Some(Mark::Live)
        });
        if let Some(entry) = instead {
            (entry.state, entry.state_changed_at, entry.release_at) = (EntryState::Live, at, None);
        }
    }
    if leaf != *old {
        leaf.format_version = leaf.format_version.max(INVENTORY_FORMAT);
    }
    leaf
}

/// S's sections; of our own, who wrote this version, and every edition that was ever expunged (D29).
fn extensions(base: &Root, good: &Root, taken: &TakenBack, by: &By) -> Map<String, Value> {
    let mut sections = good.extensions.clone();
    sections.remove(JOBCTL);
    let mut own = Map::new();
    if let Some(work) = &by.own_work {
        own.insert("run_id".to_owned(), json!(work.run_id));
        own.insert("step".to_owned(), json!(work.step));
    }
    let mut expunged: Vec<Value> = Vec::new();
    for value in expunged_of(&good.extensions).chain(expunged_of(&base.extensions)).chain(&taken.expunged) {
        if !expunged.contains(value) {
            expunged.push(value.clone());
        }
    }
    if !expunged.is_empty() {
        own.insert("expunged".to_owned(), Value::Array(expunged));
    }
    if !own.is_empty() {
        own.insert("format_version".to_owned(), json!("1.0"));
        sections.insert(JOBCTL.to_owned(), Value::Object(own));
    }
    sections
}
