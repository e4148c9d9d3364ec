//! The invariants that look beyond one document (*catalog* §6.5 items 4, 6, 7 and 8).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use super::leaf::{ArtefactRecords, EntryState, Kind, Leaf, LeafEntry};
use super::refusal::Refusal;
use crate::ids::{EditionId, ProductId};

/// Chain continuity (item 6): every entry was built on an edition of its product that is recorded or retired; and no
/// edition is both. `tombstones` are the product's.
///
/// # Errors
/// [`Refusal::ChainBroken`] and [`Refusal::RecordedAndRetired`].
pub fn check_chain(leaf: &Leaf, tombstones: &BTreeSet<&EditionId>) -> Result<(), Box<Refusal>> {
    let product = || leaf.product_id.clone();
    for entry in &leaf.editions {
        let edition = || entry.edition_id.clone();
        if tombstones.contains(&entry.edition_id) {
            return Err(Box::new(Refusal::RecordedAndRetired {
                product: product(),
                edition: edition(),
                state: entry.state,
            }));
        }
        if let Some(previous) = &entry.previous
            && leaf.entry(previous).is_none()
            && !tombstones.contains(previous)
        {
            return Err(Box::new(Refusal::ChainBroken {
                product: product(),
                edition: edition(),
                previous: previous.clone(),
            }));
        }
    }
    Ok(())
}

/// Whether an entry counts for the structure rules: live or embargoed.
pub(super) fn counts(entry: &LeafEntry) -> bool {
    match entry.state {
        EntryState::Live | EntryState::Embargoed => true,
        EntryState::Superseded | EntryState::Withdrawn => false,
    }
}

/// Whether others are compared with what an entry of a product of `kind` holds: a structure edition is a home while it
/// is live or embargoed; a data edition is compared with while it is live, since an embargoed one is looked at when it
/// enters live.
pub(super) fn is_compared(kind: Kind, entry: &LeafEntry) -> bool {
    match kind {
        Kind::Structure => counts(entry),
        Kind::Data => entry.state == EntryState::Live,
    }
}

/// The artefact records of an entry, its own or those of `records`.
pub(super) fn records_of<'a>(
    product: &ProductId,
    entry: &'a LeafEntry,
    records: &'a BTreeMap<EditionId, ArtefactRecords>,
) -> Result<&'a ArtefactRecords, Box<Refusal>> {
    entry
        .artefacts
        .as_ref()
        .or_else(|| records.get(&entry.edition_id))
        .ok_or_else(|| Box::new(Refusal::RecordsUnread { product: product.clone(), edition: entry.edition_id.clone() }))
}

/// A full artefact as an edition of the base version holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The product.
    pub product_id: ProductId,
    /// What the product holds.
    pub kind: Kind,
    /// The edition.
    pub edition_id: EditionId,
    /// Whether it is live; else it is embargoed.
    pub is_live: bool,
    /// The artefact's fingerprint there.
    pub fingerprint: String,
}

/// Who holds which full artefact in the base version: an index over all its leaves, so that a version of one product
/// needs no other leaf. Without one, [`Base`](super::Base) holds every leaf.
pub trait Holders: fmt::Debug {
    /// The editions that hold the full artefact `urn` and that others are compared with, live structure and data
    /// editions and embargoed structure editions, but those of products for which `except` is true. Once two products are given for one kind, fingerprint and state, further ones may be left out.
    fn full(&self, urn: &str, except: &dyn Fn(&ProductId) -> bool) -> Vec<Holder>;
}

/// What such an index keeps of one leaf: each full artefact that others are compared with, with its URN.
///
/// # Errors
/// [`Refusal::RecordsUnread`] for an entry without records that `records` does not hold either.
pub fn holders_in<'a>(
    leaf: &'a Leaf,
    records: &'a BTreeMap<EditionId, ArtefactRecords>,
) -> Result<Vec<(&'a str, Holder)>, Box<Refusal>> {
    let mut found = Vec::new();
    for entry in leaf.editions.iter().filter(|entry| is_compared(leaf.kind, entry)) {
        let held = records_of(&leaf.product_id, entry, records)?;
        let full = held.iter().filter(|(_, record)| record.partial_of.is_none());
        found.extend(full.map(|(urn, record)| {
            let holder = Holder {
                product_id: leaf.product_id.clone(),
                kind: leaf.kind,
                edition_id: entry.edition_id.clone(),
                is_live: entry.state == EntryState::Live,
                fingerprint: record.fingerprint.clone(),
            };
            (urn.as_str(), holder)
        }));
    }
    Ok(found)
}

/// One holder, found in a leaf at hand or given by an index.
struct Holding<'a> {
    product: Cow<'a, ProductId>,
    kind: Kind,
    edition: Cow<'a, EditionId>,
    is_live: bool,
    fingerprint: Cow<'a, str>,
}

impl From<Holder> for Holding<'_> {
    fn from(holder: Holder) -> Self {
        Self {
            product: Cow::Owned(holder.product_id),
            kind: holder.kind,
            edition: Cow::Owned(holder.edition_id),
            is_live: holder.is_live,
            fingerprint: Cow::Owned(holder.fingerprint),
        }
    }
}

/// The leaves among which one looks for holders.
pub(super) struct Around<'a> {
    /// The leaves of the version that is made: all of them, or those that differ from the base version's.
    pub(super) leaves: &'a BTreeMap<&'a ProductId, &'a Leaf>,
    /// The holders in the base version of every other product.
    pub(super) others: Option<&'a dyn Holders>,
    /// The records of entries that lack them.
    pub(super) records: &'a BTreeMap<EditionId, ArtefactRecords>,
}

/// Who holds which full artefact in a version, for the artefacts that the incoming editions name: one look at every
/// leaf, however many editions come in.
pub(super) struct Structures<'a> {
    holdings: HashMap<&'a str, Vec<Holding<'a>>>,
    records: &'a BTreeMap<EditionId, ArtefactRecords>,
}

impl<'a> Structures<'a> {
    /// The holdings of the artefacts that the editions `incoming` name.
    ///
    /// # Errors
    /// [`Refusal::RecordsUnread`] when a live or embargoed entry has no artefact records.
    pub(super) fn over(around: &Around<'a>, incoming: &[(&ProductId, &EditionId)]) -> Result<Self, Box<Refusal>> {
        let records = around.records;
        let mut holdings: HashMap<&str, Vec<Holding<'_>>> = HashMap::new();
        for (product, edition) in incoming {
            let Some((product, leaf)) = around.leaves.get_key_value(*product) else { continue };
            let Some(entry) = leaf.entry(edition) else { continue };
            holdings.extend(records_of(product, entry, records)?.keys().map(|urn| (urn.as_str(), Vec::new())));
        }
        if holdings.is_empty() {
            return Ok(Self { holdings, records });
        }
        for (product, leaf) in around.leaves {
            for entry in leaf.editions.iter().filter(|entry| is_compared(leaf.kind, entry)) {
                for (urn, record) in records_of(product, entry, records)? {
                    if record.partial_of.is_none()
                        && let Some(found) = holdings.get_mut(urn.as_str())
                    {
                        found.push(Holding {
                            product: Cow::Borrowed(product),
                            kind: leaf.kind,
                            edition: Cow::Borrowed(&entry.edition_id),
                            is_live: entry.state == EntryState::Live,
                            fingerprint: Cow::Borrowed(&record.fingerprint),
                        });
                    }
                }
            }
        }
        if let Some(others) = around.others {
            for (urn, found) in &mut holdings {
                let known = |product: &ProductId| around.leaves.contains_key(product);
                found.extend(others.full(urn, &known).into_iter().map(Holding::from));
                // In the order in which all leaves would give them, so that a refusal names the same one.
                found.sort_by(|a, b| (&a.product, &a.edition).cmp(&(&b.product, &b.edition)));
            }
        }
        Ok(Self { holdings, records })
    }

    /// Items 4, 7 and 8 for one of the incoming editions.
    ///
    /// # Errors
    /// The [`Refusal`] of the first rule that does not hold.
    pub(super) fn check(&self, leaf: &Leaf, entry: &LeafEntry) -> Result<(), Box<Refusal>> {
        match leaf.kind {
            Kind::Structure => self.check_structure_edition(leaf, entry),
            Kind::Data => self.check_data_edition(leaf, entry),
        }
    }

    /// Where products of `kind` other than `not` hold the full artefact `urn`.
    fn elsewhere<'s>(&'s self, not: &'s ProductId, kind: Kind, urn: &str) -> impl Iterator<Item = &'s Holding<'a>> {
        let found = self.holdings.get(urn).map_or(&[][..], Vec::as_slice);
        found.iter().filter(move |holding| holding.kind == kind && *holding.product != *not)
    }

    fn check_structure_edition(&self, leaf: &Leaf, entry: &LeafEntry) -> Result<(), Box<Refusal>> {
        // Item 7 speaks of live editions: an embargoed one is asked when it enters live.
        if entry.state != EntryState::Live {
            return Ok(());
        }
        for (urn, record) in records_of(&leaf.product_id, entry, self.records)? {
            if record.partial_of.is_some() {
                continue;
            }
            let mut holdings = self.elsewhere(&leaf.product_id, Kind::Structure, urn);
            if let Some(home) = holdings.find(|holding| holding.is_live) {
                return Err(Box::new(Refusal::TwoHomes {
                    product: leaf.product_id.clone(),
                    edition: entry.edition_id.clone(),
                    urn: urn.clone(),
                    home: home.product.clone().into_owned(),
                }));
            }
        }
        Ok(())
    }

    fn check_data_edition(&self, leaf: &Leaf, entry: &LeafEntry) -> Result<(), Box<Refusal>> {
        let (product, edition) = (|| leaf.product_id.clone(), || entry.edition_id.clone());
        for (urn, record) in records_of(&leaf.product_id, entry, self.records)? {
            let homes: Vec<_> = self.elsewhere(&leaf.product_id, Kind::Structure, urn).collect();
            let needed = record.partial_of.as_ref().unwrap_or(&record.fingerprint);
            let Some(home) = homes.first() else {
                if record.partial_of.is_some() {
                    return Err(Box::new(Refusal::PartialWithoutHome {
                        product: product(),
                        edition: edition(),
                        urn: urn.clone(),
                    }));
                }
                if entry.state == EntryState::Live {
                    self.check_shared(leaf, entry, urn, &record.fingerprint)?;
                }
                continue;
            };
            let mut same = homes.iter().filter(|home| home.fingerprint == needed.as_str()).peekable();
            let Some(first) = same.peek().copied() else {
                let mut fingerprints: Vec<_> = homes.iter().map(|home| home.fingerprint.as_ref()).collect();
                fingerprints.sort_unstable();
                fingerprints.dedup();
                return Err(Box::new(Refusal::NotAsAtHome {
                    product: product(),
                    edition: edition(),
                    urn: urn.clone(),
                    found: needed.clone(),
                    home: home.product.clone().into_owned(),
                    expected: fingerprints.join(" or "),
                }));
            };
            if entry.state == EntryState::Live && !same.any(|home| home.is_live) {
                return Err(Box::new(Refusal::PublishOrder {
                    product: product(),
                    edition: edition(),
                    urn: urn.clone(),
                    needed: needed.clone(),
                    home: first.product.clone().into_owned(),
                    home_edition: first.edition.clone().into_owned(),
                }));
            }
        }
        Ok(())
    }

    /// Item 4, second case: among the editions that will be live, a full artefact without a home has one fingerprint.
    fn check_shared(&self, leaf: &Leaf, entry: &LeafEntry, urn: &str, fingerprint: &str) -> Result<(), Box<Refusal>> {
        let mut holdings = self.elsewhere(&leaf.product_id, Kind::Data, urn);
        let other = holdings.find(|holding| holding.is_live && holding.fingerprint != fingerprint);
        match other {
            None => Ok(()),
            Some(other) => Err(Box::new(Refusal::SharedArtefactDiffers {
                product: leaf.product_id.clone(),
                edition: entry.edition_id.clone(),
                urn: urn.to_owned(),
                found: fingerprint.to_owned(),
                other: other.product.clone().into_owned(),
                other_edition: other.edition.clone().into_owned(),
                expected: other.fingerprint.clone().into_owned(),
            })),
        }
    }
}
