//! What a version tells: pure answers over roots and leaves (*history*, "What a reader can answer").

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::change::{Change, EntrySummary, Mark, MissingLeaf, Side, changes_between};
use super::leaf::{EntryState, Kind, Leaf, LeafEntry, Lifecycle, SchemaVersion};
use super::operation::{Folded, RefusedEdition};
use super::root::{Event, Root, Seq};
use super::version::{folded_in, refused_in};
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;

/// One version, with the leaves that a question needs.
#[derive(Debug, Clone, Copy)]
pub struct VersionView<'a> {
    /// Its root.
    pub root: &'a Root,
    /// Its leaves, at least those of the products whose leaf is another one in the version that it is compared with.
    pub leaves: &'a BTreeMap<ProductId, Arc<Leaf>>,
}

/// What changed in a version, who did it and why: from the root alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VersionSummary {
    /// The version.
    pub seq: Seq,
    /// The version that it was built from.
    pub built_from: Option<Seq>,
    /// When it was written.
    pub created_at: Instant,
    /// Who, why, what kind.
    pub event: Event,
    /// Whether sealed editions wait for a release.
    pub embargo: bool,
    /// What became of which product; `None` when the root carries no change list.
    pub changes: Option<Vec<Change>>,
    /// The editions that the version's batch refused.
    pub refused: Vec<RefusedEdition>,
    /// Who registered the editions that it folded.
    pub folded: Vec<Folded>,
}

impl VersionSummary {
    /// The summary of the version whose root this is.
    #[must_use]
    pub fn of(root: &Root) -> Self {
        Self {
            seq: root.seq,
            built_from: root.previous_inventory,
            created_at: root.created_at,
            event: root.event.clone(),
            embargo: root.embargo,
            changes: root.changes.clone(),
            refused: refused_in(root),
            folded: folded_in(root),
        }
    }
}

/// A product whose lifecycle differs between two versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LifecycleChange {
    /// The product.
    pub product_id: ProductId,
    /// Before; `None` for a product that is new.
    pub from: Option<Lifecycle>,
    /// After; `None` for a product that is gone.
    pub to: Option<Lifecycle>,
}

/// What differs between two versions, near or far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diff {
    /// The one version.
    pub from: Seq,
    /// The other version.
    pub to: Seq,
    /// What became of which product.
    pub changes: Vec<Change>,
    /// The lifecycles that differ.
    pub lifecycles: Vec<LifecycleChange>,
    /// The embargo of the second, when it differs.
    pub embargo: Option<bool>,
    /// Whether the description differs.
    pub description: bool,
}

/// What differs from version `from` to version `to`; the second may be the older one.
///
/// # Errors
/// [`MissingLeaf`] when a leaf of a product that differs was not handed over.
pub fn diff(from: &VersionView<'_>, to: &VersionView<'_>) -> Result<Diff, MissingLeaf> {
    let (old, new) = (
        |product: &ProductId| from.leaves.get(product).map(Arc::as_ref),
        |product: &ProductId| to.leaves.get(product).map(Arc::as_ref),
    );
    let changes = changes_between(
        &Side { products: &from.root.products, retired: &from.root.retired, leaf: &old },
        &Side { products: &to.root.products, retired: &to.root.retired, leaf: &new },
    )?;
    let lifecycle = |view: &VersionView<'_>, product| view.leaves.get(product).map(|leaf| leaf.lifecycle);
    let lifecycles = changes.iter().filter_map(|change| {
        let product = &change.product_id;
        let (before, after) = (lifecycle(from, product), lifecycle(to, product));
        let in_both = change.leaf_sha256.from.is_some() && change.leaf_sha256.to.is_some();
        (in_both && before != after).then(|| LifecycleChange { product_id: product.clone(), from: before, to: after })
    });
    Ok(Diff {
        from: from.root.seq,
        to: to.root.seq,
        lifecycles: lifecycles.collect(),
        changes,
        embargo: (from.root.embargo != to.root.embargo).then_some(to.root.embargo),
        description: from.root.extensions.get("statcat") != to.root.extensions.get("statcat"),
    })
}

/// A product's head for the readers of one schema version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeadView {
    /// The schema version.
    pub schema_version: SchemaVersion,
    /// The live edition.
    pub edition_id: EditionId,
    /// Since when it is live.
    pub live_since: Instant,
}

/// One edition of a product, recorded or retired.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EditionView {
    /// The edition.
    pub edition_id: EditionId,
    /// Its state, or that it is a tombstone.
    pub mark: Mark,
    /// Since when.
    pub since: Instant,
    /// What it was built on; unknown for a tombstone.
    pub previous: Option<EditionId>,
    /// Its store schema; unknown for a tombstone.
    pub schema_version: Option<SchemaVersion>,
    /// When it may be released.
    pub release_at: Option<Instant>,
    /// The SHA-256 of its manifest; unknown for a tombstone.
    pub manifest_sha256: Option<Sha256Hex>,
    /// The dataflows of its bindings, where the entry has them.
    pub dataflows: Option<Vec<String>>,
    /// The bytes of its required files, where the entry has them.
    pub pull_bytes: Option<u64>,
}

impl From<&LeafEntry> for EditionView {
    fn from(entry: &LeafEntry) -> Self {
        Self {
            edition_id: entry.edition_id.clone(),
            mark: entry.state.into(),
            since: entry.state_changed_at,
            previous: entry.previous.clone(),
            schema_version: Some(entry.schema_version.clone()),
            release_at: entry.release_at,
            manifest_sha256: Some(entry.manifest_sha256.clone()),
            dataflows: entry.dataflows.clone(),
            pull_bytes: entry.pull_bytes,
        }
    }
}

/// Everything that a version knows of a product.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProductView {
    /// The product.
    pub product_id: ProductId,
    /// What it holds.
    pub kind: Kind,
    /// Whether its content may change.
    pub lifecycle: Lifecycle,
    /// Its heads, by schema version, the newest last.
    pub heads: Vec<HeadView>,
    /// Its editions by id, tombstones among them.
    pub editions: Vec<EditionView>,
}

/// What the version of `root` knows of the product whose leaf this is.
#[must_use]
pub fn product_view(root: &Root, leaf: &Leaf) -> ProductView {
    let mut editions: Vec<_> = leaf.editions.iter().map(EditionView::from).collect();
    let tombstones = root.retired.iter().filter(|tombstone| tombstone.product_id == leaf.product_id);
    editions.extend(tombstones.map(|tombstone| EditionView {
        edition_id: tombstone.edition_id.clone(),
        mark: Mark::Tombstone,
        since: tombstone.retired_at,
        previous: None,
        schema_version: None,
        release_at: None,
        manifest_sha256: None,
        dataflows: None,
        pull_bytes: None,
    }));
    editions.sort_by(|a, b| a.edition_id.cmp(&b.edition_id));
    ProductView {
        product_id: leaf.product_id.clone(),
        kind: leaf.kind,
        lifecycle: leaf.lifecycle,
        heads: heads(leaf),
        editions,
    }
}

fn heads(leaf: &Leaf) -> Vec<HeadView> {
    let mut heads: Vec<_> = leaf
        .live()
        .map(|entry| HeadView {
            schema_version: entry.schema_version.clone(),
            edition_id: entry.edition_id.clone(),
            live_since: entry.state_changed_at,
        })
        .collect();
    heads.sort_by(|a, b| a.schema_version.cmp(&b.schema_version));
    heads
}

/// One line of a list of products.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProductRow {
    /// The product.
    pub product_id: ProductId,
    /// What it holds.
    pub kind: Kind,
    /// Whether its content may change.
    pub lifecycle: Lifecycle,
    /// Its heads, by schema version, the newest last.
    pub heads: Vec<HeadView>,
    /// How many editions wait for a release.
    pub embargoed: usize,
    /// The earliest time of a release among them.
    pub next_release_at: Option<Instant>,
    /// How many editions may be rolled back to.
    pub superseded: usize,
    /// How many editions were taken back.
    pub withdrawn: usize,
    /// How many editions are retired.
    pub tombstones: usize,
}

/// Every product of a version, by its id.
#[must_use]
pub fn product_rows(root: &Root, leaves: &BTreeMap<ProductId, Arc<Leaf>>) -> Vec<ProductRow> {
    let mut tombstones: BTreeMap<&ProductId, usize> = BTreeMap::new();
    for tombstone in &root.retired {
        *tombstones.entry(&tombstone.product_id).or_default() += 1;
    }
    let row = |leaf: &Arc<Leaf>| {
        let in_state = |state: EntryState| leaf.editions.iter().filter(move |entry| entry.state == state);
        ProductRow {
            product_id: leaf.product_id.clone(),
            kind: leaf.kind,
            lifecycle: leaf.lifecycle,
            heads: heads(leaf),
            embargoed: in_state(EntryState::Embargoed).count(),
            next_release_at: in_state(EntryState::Embargoed).filter_map(|entry| entry.release_at).min(),
            superseded: in_state(EntryState::Superseded).count(),
            withdrawn: in_state(EntryState::Withdrawn).count(),
            tombstones: tombstones.get(&leaf.product_id).copied().unwrap_or_default(),
        }
    };
    leaves.values().map(row).collect()
}

/// An edition that waits, until when, and why it is still waiting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EmbargoedView {
    /// The product.
    pub product_id: ProductId,
    /// The edition.
    pub edition_id: EditionId,
    /// Its store schema.
    pub schema_version: SchemaVersion,
    /// When it may be released; `None` is never due by itself.
    pub release_at: Option<Instant>,
    /// Whether that time has come.
    pub due: bool,
    /// Why the last batch refused it.
    pub refused: Option<RefusedEdition>,
}

/// What is embargoed until when, the next release first and what is never due last. `refused` are the refusals of the
/// newest version that persists any.
#[must_use]
pub fn embargoed(
    leaves: &BTreeMap<ProductId, Arc<Leaf>>,
    refused: &[RefusedEdition],
    now: Instant,
) -> Vec<EmbargoedView> {
    let of_leaf = |leaf: &Arc<Leaf>| {
        let waiting = leaf.editions.iter().filter(|entry| entry.state == EntryState::Embargoed);
        let view = |entry: &LeafEntry| EmbargoedView {
            product_id: leaf.product_id.clone(),
            edition_id: entry.edition_id.clone(),
            schema_version: entry.schema_version.clone(),
            release_at: entry.release_at,
            due: entry.release_at.is_some_and(|at| at <= now),
            refused: refused.iter().find(|refused| refused.edition_id == entry.edition_id).cloned(),
        };
        waiting.map(view).collect::<Vec<_>>()
    };
    let mut found: Vec<_> = leaves.values().flat_map(of_leaf).collect();
    found.sort_by_key(|view| (view.release_at.is_none(), view.release_at));
    found
}

/// The version that was the newest at `at`, among versions of one chain with the times at which they were written.
#[must_use]
pub fn version_at(versions: impl IntoIterator<Item = (Seq, Instant)>, at: Instant) -> Option<Seq> {
    versions.into_iter().filter(|(_, written)| *written <= at).map(|(seq, _)| seq).max()
}

/// A change list that does not follow from the versions before it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "catalog §6.3: the change list of version {seq} says that edition {edition} of {product} was {}, and the versions \
     before it say {}", mark(*.found), mark(*.expected)
)]
pub struct ReplayBroken {
    /// The version.
    pub seq: Seq,
    /// The product.
    pub product: ProductId,
    /// The edition.
    pub edition: EditionId,
    /// What the change list says.
    pub found: Option<Mark>,
    /// What it should say.
    pub expected: Option<Mark>,
}

fn mark(mark: Option<Mark>) -> String {
    mark.map_or_else(|| "unknown".to_owned(), |mark| mark.to_string())
}

/// The states of all editions at one version, followed through the change lists: from nothing before version 1, or from
/// a checkpoint, through roots and segment lines alike.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Replay {
    entries: BTreeMap<(ProductId, EditionId), EntrySummary>,
    tombstones: BTreeSet<(ProductId, EditionId)>,
}

impl Replay {
    /// The states at a version whose root and leaves are there.
    #[must_use]
    pub fn at(root: &Root, leaves: &BTreeMap<ProductId, Arc<Leaf>>) -> Self {
        let entries = leaves.iter().flat_map(|(product, leaf)| {
            leaf.editions.iter().map(|entry| ((product.clone(), entry.edition_id.clone()), EntrySummary::from(entry)))
        });
        let tombstones = root.retired.iter().map(|t| (t.product_id.clone(), t.edition_id.clone()));
        Self { entries: entries.collect(), tombstones: tombstones.collect() }
    }

    /// Follows the change list of version `seq`, the one after the version that this is at.
    ///
    /// # Errors
    /// [`ReplayBroken`] when an item's `from` is not what is known.
    pub fn apply(&mut self, seq: Seq, changes: &[Change]) -> Result<(), ReplayBroken> {
        for change in changes {
            for item in &change.entries {
                let key = (change.product_id.clone(), item.edition_id.clone());
                let known = match self.entries.get(&key) {
                    Some(entry) => Some(entry.state.into()),
                    None => self.tombstones.contains(&key).then_some(Mark::Tombstone),
                };
                if known != item.from {
                    let (product, edition) = key;
                    return Err(ReplayBroken { seq, product, edition, found: item.from, expected: known });
                }
                self.entries.remove(&key);
                self.tombstones.remove(&key);
                match (&item.entry, item.to) {
                    (Some(entry), _) => drop(self.entries.insert(key, entry.clone())),
                    (None, Some(_)) => drop(self.tombstones.insert(key)),
                    (None, None) => {}
                }
            }
        }
        Ok(())
    }

    /// What is live, by product and schema version.
    pub fn live(&self) -> impl Iterator<Item = (&ProductId, &EntrySummary)> {
        self.in_state(EntryState::Live)
    }

    /// What is in `state`, by product and edition.
    pub fn in_state(&self, state: EntryState) -> impl Iterator<Item = (&ProductId, &EntrySummary)> {
        let entries = self.entries.iter().filter(move |(_, entry)| entry.state == state);
        entries.map(|((product, _), entry)| (product, entry))
    }

    /// What is known of an edition.
    #[must_use]
    pub fn mark(&self, product: &ProductId, edition: &EditionId) -> Option<Mark> {
        let key = (product.clone(), edition.clone());
        let state = self.entries.get(&key).map(|entry| entry.state.into());
        state.or_else(|| self.tombstones.contains(&key).then_some(Mark::Tombstone))
    }
}
