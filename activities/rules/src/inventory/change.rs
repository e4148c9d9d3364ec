//! The change list of a root (*catalog* §6.3, *history* H14, H18).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::document::{DocumentError, nullable, rises};
use super::leaf::{EntryState, Leaf, LeafEntry, SchemaVersion};
use super::root::{ProductRef, Seq, Tombstone};
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;

/// What a version knows of an edition: a state, or its tombstone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// See [`EntryState::Embargoed`].
    Embargoed,
    /// See [`EntryState::Live`].
    Live,
    /// See [`EntryState::Superseded`].
    Superseded,
    /// See [`EntryState::Withdrawn`].
    Withdrawn,
    /// In the `retired` list; no fifth state (H18).
    Tombstone,
}

impl Mark {
    /// The state, unless it is a tombstone.
    #[must_use]
    pub fn state(self) -> Option<EntryState> {
        match self {
            Self::Embargoed => Some(EntryState::Embargoed),
            Self::Live => Some(EntryState::Live),
            Self::Superseded => Some(EntryState::Superseded),
            Self::Withdrawn => Some(EntryState::Withdrawn),
            Self::Tombstone => None,
        }
    }
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.state() {
            Some(state) => state.fmt(f),
            None => f.pad("tombstone"),
        }
    }
}

impl From<EntryState> for Mark {
    fn from(state: EntryState) -> Self {
        match state {
            EntryState::Embargoed => Self::Embargoed,
            EntryState::Live => Self::Live,
            EntryState::Superseded => Self::Superseded,
            EntryState::Withdrawn => Self::Withdrawn,
        }
    }
}

/// The seven fields of a [`LeafEntry`] that a change list keeps (H14).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntrySummary {
    /// The edition.
    pub edition_id: EditionId,
    /// Its manifest's `previous`.
    #[serde(deserialize_with = "nullable")]
    pub previous: Option<EditionId>,
    /// Its state.
    pub state: EntryState,
    /// The SHA-256 of its manifest.
    pub manifest_sha256: Sha256Hex,
    /// The store schema that it was written at.
    pub schema_version: SchemaVersion,
    /// When it took its state.
    pub state_changed_at: Instant,
    /// When it may be released.
    #[serde(deserialize_with = "nullable")]
    pub release_at: Option<Instant>,
}

impl From<&LeafEntry> for EntrySummary {
    fn from(entry: &LeafEntry) -> Self {
        Self {
            edition_id: entry.edition_id.clone(),
            previous: entry.previous.clone(),
            state: entry.state,
            manifest_sha256: entry.manifest_sha256.clone(),
            schema_version: entry.schema_version.clone(),
            state_changed_at: entry.state_changed_at,
            release_at: entry.release_at,
        }
    }
}

/// A product's leaf before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeafChange {
    /// In the base version; `null` for a product that is new.
    #[serde(deserialize_with = "nullable")]
    pub from: Option<Sha256Hex>,
    /// In this version; `null` for a product that is gone.
    #[serde(deserialize_with = "nullable")]
    pub to: Option<Sha256Hex>,
}

/// What became of one edition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryChange {
    /// The edition.
    pub edition_id: EditionId,
    /// What the base version knew of it.
    #[serde(deserialize_with = "nullable")]
    pub from: Option<Mark>,
    /// What this version knows of it; `null` when it drops the tombstone.
    #[serde(deserialize_with = "nullable")]
    pub to: Option<Mark>,
    /// The new entry, when `to` is a state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntrySummary>,
}

/// What became of one product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The product.
    pub product_id: ProductId,
    /// Its leaf before and after.
    pub leaf_sha256: LeafChange,
    /// Its editions that differ, sorted by id.
    pub entries: Vec<EntryChange>,
}

impl Change {
    pub(super) fn validate(&self) -> Result<(), DocumentError> {
        let rule = |found: String, expected: &'static str| {
            Err(DocumentError::Rule { document: "Inventory root", rule: "catalog §6.3", found, expected })
        };
        if !rises(self.entries.iter().map(|item| &item.edition_id)) {
            return rule(format!("entry items of {} out of order", self.product_id), "sorted by edition_id, each once");
        }
        for item in &self.entries {
            let id = &item.edition_id;
            match (&item.entry, item.to.and_then(Mark::state)) {
                (Some(entry), Some(state)) if entry.state == state && entry.edition_id == *id => {}
                (None, None) => {}
                (Some(_), Some(_)) => {
                    return rule(
                        format!("an entry of {id} that is not what `to` says"),
                        "the new entry of this edition",
                    );
                }
                (Some(_), None) | (None, Some(_)) => {
                    return rule(
                        format!("an item of {id} with `entry` missing or too much"),
                        "`entry` when `to` is a state, and only then",
                    );
                }
            }
        }
        Ok(())
    }
}

/// The history fields of a root, or of its line in a segment: both or neither, and as the format says.
pub(super) fn check_changes(
    document: &'static str,
    rule: &'static str,
    seq: Seq,
    previous_root_sha256: Option<&Option<Sha256Hex>>,
    changes: Option<&[Change]>,
) -> Result<(), DocumentError> {
    let fault = |found: &str, expected: &'static str| {
        Err(DocumentError::Rule { document, rule, found: found.to_owned(), expected })
    };
    let first = seq == Seq::FIRST;
    match (previous_root_sha256, changes) {
        (None, None) => Ok(()),
        (Some(_), None) | (None, Some(_)) => fault("one of previous_root_sha256 and changes", "both or neither"),
        (Some(base), Some(_)) if base.is_none() != first => fault(
            if first { "a previous_root_sha256 in version 1" } else { "previous_root_sha256 null" },
            "null in version 1 and only there",
        ),
        (Some(_), Some(changes)) => {
            if !rises(changes.iter().map(|change| &change.product_id)) {
                return fault("changes out of order", "one item a product, sorted by product_id");
            }
            changes.iter().try_for_each(Change::validate)
        }
    }
}

/// One of two versions that are compared.
pub struct Side<'a> {
    /// Each product's leaf.
    pub products: &'a BTreeMap<ProductId, ProductRef>,
    /// The tombstones.
    pub retired: &'a [Tombstone],
    /// The leaf of a product, for those that differ.
    pub leaf: &'a dyn Fn(&ProductId) -> Option<&'a Leaf>,
}

/// A leaf that was not handed over, and that the comparison needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the leaf {sha256} of product {product} is needed to tell what changed")]
pub struct MissingLeaf {
    /// The product.
    pub product: ProductId,
    /// The leaf.
    pub sha256: Sha256Hex,
}

/// The change list from `base` to `new`, sorted by product (*catalog* §6.3).
///
/// # Errors
/// [`MissingLeaf`] when a leaf of a product that differs was not handed over.
pub fn changes_between<'a>(base: &Side<'a>, new: &Side<'a>) -> Result<Vec<Change>, MissingLeaf> {
    let mut differ: BTreeSet<&ProductId> = BTreeSet::new();
    for (product, reference) in new.products {
        if base.products.get(product) != Some(reference) {
            differ.insert(product);
        }
    }
    differ.extend(base.products.keys().filter(|product| !new.products.contains_key(product)));
    if base.retired != new.retired {
        let (before, after): (BTreeSet<_>, BTreeSet<_>) = (base.retired.iter().collect(), new.retired.iter().collect());
        differ.extend(before.symmetric_difference(&after).map(|tombstone| &tombstone.product_id));
    }
    let tombstones = |side: &Side<'a>| {
        let mut by_product: BTreeMap<&ProductId, Vec<&Tombstone>> = BTreeMap::new();
        for tombstone in side.retired.iter().filter(|tombstone| differ.contains(&tombstone.product_id)) {
            by_product.entry(&tombstone.product_id).or_default().push(tombstone);
        }
        by_product
    };
    let (before, after) = (tombstones(base), tombstones(new));
    let of = |product: &ProductId| {
        let none: &[&Tombstone] = &[];
        change_of(
            product,
            (base, before.get(product).map_or(none, Vec::as_slice)),
            (new, after.get(product).map_or(none, Vec::as_slice)),
        )
    };
    differ.iter().map(|product| of(product)).collect()
}

fn change_of<'a>(
    product: &ProductId,
    (base, base_retired): (&Side<'a>, &[&'a Tombstone]),
    (new, new_retired): (&Side<'a>, &[&'a Tombstone]),
) -> Result<Change, MissingLeaf> {
    let (before, after) = (editions(product, base, base_retired)?, editions(product, new, new_retired)?);
    let ids: BTreeSet<&EditionId> = before.keys().chain(after.keys()).copied().collect();
    let entries = ids
        .into_iter()
        .filter(|id| before.get(id) != after.get(id))
        .map(|id| {
            let entry = after.get(id).and_then(|known| known.entry());
            EntryChange {
                edition_id: id.clone(),
                from: before.get(id).map(Known::mark),
                to: after.get(id).map(Known::mark),
                entry: entry.map(EntrySummary::from),
            }
        })
        .collect();
    let sha256 = |side: &Side<'_>| side.products.get(product).map(|reference| reference.leaf_sha256.clone());
    Ok(Change { product_id: product.clone(), leaf_sha256: LeafChange { from: sha256(base), to: sha256(new) }, entries })
}

#[derive(PartialEq)]
enum Known<'a> {
    Entry(&'a LeafEntry),
    Tombstone(&'a Tombstone),
}

impl<'a> Known<'a> {
    fn mark(&self) -> Mark {
        match self {
            Self::Entry(entry) => entry.state.into(),
            Self::Tombstone(_) => Mark::Tombstone,
        }
    }

    fn entry(&self) -> Option<&'a LeafEntry> {
        match self {
            Self::Entry(entry) => Some(entry),
            Self::Tombstone(_) => None,
        }
    }
}

fn editions<'a>(
    product: &ProductId,
    side: &Side<'a>,
    retired: &[&'a Tombstone],
) -> Result<BTreeMap<&'a EditionId, Known<'a>>, MissingLeaf> {
    let mut known: BTreeMap<_, _> =
        retired.iter().map(|tombstone| (&tombstone.edition_id, Known::Tombstone(tombstone))).collect();
    if let Some(reference) = side.products.get(product) {
        let leaf = (side.leaf)(product)
            .ok_or_else(|| MissingLeaf { product: product.clone(), sha256: reference.leaf_sha256.clone() })?;
        known.extend(leaf.editions.iter().map(|entry| (&entry.edition_id, Known::Entry(entry))));
    }
    Ok(known)
}
