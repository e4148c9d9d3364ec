//! The invariants that look beyond one document (*catalog* §6.5 items 4, 6, 7 and 8).

use std::collections::BTreeMap;

use super::leaf::{ArtefactRecords, EntryState, Kind, Leaf, LeafEntry};
use super::refusal::Refusal;
use super::root::Root;
use crate::ids::{EditionId, ProductId};

/// Chain continuity (item 6): every entry was built on an edition of its product that is recorded or retired; and no
/// edition is both.
///
/// # Errors
/// [`Refusal::ChainBroken`] and [`Refusal::RecordedAndRetired`].
pub fn check_chain(leaf: &Leaf, root: &Root) -> Result<(), Box<Refusal>> {
    let product = || leaf.product_id.clone();
    for entry in &leaf.editions {
        let edition = || entry.edition_id.clone();
        if root.tombstone(&leaf.product_id, &entry.edition_id).is_some() {
            return Err(Box::new(Refusal::RecordedAndRetired {
                product: product(),
                edition: edition(),
                state: entry.state,
            }));
        }
        if let Some(previous) = &entry.previous
            && leaf.entry(previous).is_none()
            && root.tombstone(&leaf.product_id, previous).is_none()
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

/// The structure rules (items 4, 7 and 8) for the editions that enter a version, given all its leaves. Entries without
/// artefact records take theirs from `records`.
///
/// # Errors
/// The [`Refusal`] of the first rule that does not hold.
pub fn check_structures(
    after: &BTreeMap<&ProductId, &Leaf>,
    incoming: &[(&ProductId, &EditionId)],
    records: &BTreeMap<EditionId, ArtefactRecords>,
) -> Result<(), Box<Refusal>> {
    let catalog = Catalog { after, records };
    for (product, edition) in incoming {
        let found = after.get(product).and_then(|leaf| Some((*leaf, leaf.entry(edition)?)));
        let Some((leaf, entry)) = found else { continue };
        match leaf.kind {
            Kind::Structure => catalog.check_structure_edition(leaf, entry)?,
            Kind::Data => catalog.check_data_edition(leaf, entry)?,
        }
    }
    Ok(())
}

struct Catalog<'a> {
    after: &'a BTreeMap<&'a ProductId, &'a Leaf>,
    records: &'a BTreeMap<EditionId, ArtefactRecords>,
}

/// A full artefact as another product holds it.
struct Holding<'a> {
    product: &'a ProductId,
    entry: &'a LeafEntry,
    fingerprint: &'a str,
}

impl<'a> Catalog<'a> {
    fn records_of(&self, product: &ProductId, entry: &'a LeafEntry) -> Result<&'a ArtefactRecords, Box<Refusal>> {
        entry.artefacts.as_ref().or_else(|| self.records.get(&entry.edition_id)).ok_or_else(|| {
            Box::new(Refusal::RecordsUnread { product: product.clone(), edition: entry.edition_id.clone() })
        })
    }

    /// Where other products of `kind` hold the full artefact `urn`, live or embargoed.
    fn holdings(&self, not: &ProductId, kind: Kind, urn: &str) -> Result<Vec<Holding<'a>>, Box<Refusal>> {
        let mut found = Vec::new();
        for (product, leaf) in self.after.iter().filter(|(product, leaf)| **product != not && leaf.kind == kind) {
            for entry in &leaf.editions {
                let counts = match entry.state {
                    EntryState::Live | EntryState::Embargoed => true,
                    EntryState::Superseded | EntryState::Withdrawn => false,
                };
                if !counts {
                    continue;
                }
                if let Some(record) = self.records_of(product, entry)?.get(urn)
                    && record.partial_of.is_none()
                {
                    found.push(Holding { product, entry, fingerprint: &record.fingerprint });
                }
            }
        }
        Ok(found)
    }

    fn check_structure_edition(&self, leaf: &Leaf, entry: &'a LeafEntry) -> Result<(), Box<Refusal>> {
        // Item 7 speaks of live editions: an embargoed one is asked when it enters live.
        if entry.state != EntryState::Live {
            return Ok(());
        }
        for (urn, record) in self.records_of(&leaf.product_id, entry)? {
            if record.partial_of.is_some() {
                continue;
            }
            let holdings = self.holdings(&leaf.product_id, Kind::Structure, urn)?;
            if let Some(home) = holdings.iter().find(|holding| holding.entry.state == EntryState::Live) {
                return Err(Box::new(Refusal::TwoHomes {
                    product: leaf.product_id.clone(),
                    edition: entry.edition_id.clone(),
                    urn: urn.clone(),
                    home: home.product.clone(),
                }));
            }
        }
        Ok(())
    }

    fn check_data_edition(&self, leaf: &Leaf, entry: &'a LeafEntry) -> Result<(), Box<Refusal>> {
        let (product, edition) = (|| leaf.product_id.clone(), || entry.edition_id.clone());
        for (urn, record) in self.records_of(&leaf.product_id, entry)? {
            let homes = self.holdings(&leaf.product_id, Kind::Structure, urn)?;
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
            let mut same = homes.iter().filter(|home| home.fingerprint == *needed).peekable();
            let Some(first) = same.peek().copied() else {
                let mut fingerprints: Vec<_> = homes.iter().map(|home| home.fingerprint).collect();
                fingerprints.dedup();
                return Err(Box::new(Refusal::NotAsAtHome {
                    product: product(),
                    edition: edition(),
                    urn: urn.clone(),
                    found: needed.clone(),
                    home: home.product.clone(),
                    expected: fingerprints.join(" or "),
                }));
            };
            if entry.state == EntryState::Live && !same.any(|home| home.entry.state == EntryState::Live) {
                return Err(Box::new(Refusal::PublishOrder {
                    product: product(),
                    edition: edition(),
                    urn: urn.clone(),
                    needed: needed.clone(),
                    home: first.product.clone(),
                    home_edition: first.entry.edition_id.clone(),
                }));
            }
        }
        Ok(())
    }

    /// Item 4, second case: among the editions that will be live, a full artefact without a home has one fingerprint.
    fn check_shared(&self, leaf: &Leaf, entry: &LeafEntry, urn: &str, fingerprint: &str) -> Result<(), Box<Refusal>> {
        let holdings = self.holdings(&leaf.product_id, Kind::Data, urn)?;
        let other = holdings
            .iter()
            .find(|holding| holding.entry.state == EntryState::Live && holding.fingerprint != fingerprint);
        match other {
            None => Ok(()),
            Some(other) => Err(Box::new(Refusal::SharedArtefactDiffers {
                product: leaf.product_id.clone(),
                edition: entry.edition_id.clone(),
                urn: urn.to_owned(),
                found: fingerprint.to_owned(),
                other: other.product.clone(),
                other_edition: other.entry.edition_id.clone(),
                expected: other.fingerprint.to_owned(),
            })),
        }
    }
}
