//! Tombstones (*catalog* §6.4, §11.3, §11.4; D29, D30): retire and reinstate.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::change::Mark;
use super::draft::Draft;
use super::invariants::{counts, records_of};
use super::leaf::{EntryState, Kind, Leaf, LeafEntry, SchemaVersion};
use super::operation::{Base, Done, Facts, NewEntry, Times, Verdict};
use super::record::manifest;
use super::refusal::{Refusal, TransitionRefusal};
use super::retention::{DAY_MS, Retention};
use super::root::{Root, Tombstone};
use super::version::JOBCTL;
use crate::ids::{EditionId, ProductId};
use crate::instant::Instant;

const EXPECTED: &str = "superseded or withdrawn, to be retired";

/// Retires editions: all of them, or none. Those that are tombstones already are left as they are.
pub(super) fn retire(
    base: &Base<'_>,
    editions: &BTreeSet<(ProductId, EditionId)>,
    before_window: bool,
    facts: &Facts,
    times: Times,
) -> Result<Verdict, Box<Refusal>> {
    let mut draft = Draft::new(base, facts, times);
    let mut retired = Vec::new();
    for (product, edition) in editions {
        if base.root.tombstone(product, edition).is_some() {
            continue;
        }
        let entry = draft.entry(product, edition, EXPECTED)?;
        match entry.state {
            EntryState::Superseded | EntryState::Withdrawn => {}
            EntryState::Live | EntryState::Embargoed => {
                return Err(TransitionRefusal::WrongState {
                    product: product.clone(),
                    edition: edition.clone(),
                    found: entry.state,
                    expected: EXPECTED,
                }
                .into());
            }
        }
        let until = entry.state_changed_at.plus_ms(facts.retention.retire_ms());
        if !before_window && until > times.now {
            return Err(TransitionRefusal::InsideWindow {
                product: product.clone(),
                edition: edition.clone(),
                state: entry.state,
                since: entry.state_changed_at,
                until,
            }
            .into());
        }
        if let Some(refusal) = cited(base, draft.leaf(product)?, entry, facts)? {
            return Err(refusal.into());
        }
        draft.edit(product)?.editions.retain(|entry| entry.edition_id != *edition);
        retired.push(Tombstone { product_id: product.clone(), edition_id: edition.clone(), retired_at: times.at });
    }
    if retired.is_empty() {
        return Ok(Verdict::Already(Done { mark: Some(Mark::Tombstone), refused: Vec::new() }));
    }
    draft.edit_retired().extend(retired);
    Ok(Verdict::Change(Box::new(draft.finish(Some(Mark::Tombstone))?)))
}

/// A live or embargoed data edition whose part was cut from this structure edition (*catalog* §11.4), unless a live or
/// embargoed structure edition holds the same full artefact: then the part still verifies against that one.
fn cited(
    base: &Base<'_>,
    leaf: &Leaf,
    entry: &LeafEntry,
    facts: &Facts,
) -> Result<Option<TransitionRefusal>, Box<Refusal>> {
    match leaf.kind {
        Kind::Data => return Ok(None),
        Kind::Structure => {}
    }
    let held: BTreeMap<&str, &str> = records_of(&leaf.product_id, entry, &facts.records)?
        .iter()
        .filter(|(_, record)| record.partial_of.is_none())
        .map(|(urn, record)| (urn.as_str(), record.fingerprint.as_str()))
        .collect();
    let (mut kept, mut cited) = (BTreeSet::new(), Vec::new());
    for (product, other) in base.leaves {
        for counting in other.editions.iter().filter(|entry| counts(entry)) {
            for (urn, record) in records_of(product, counting, &facts.records)? {
                let found = record.partial_of.as_ref().unwrap_or(&record.fingerprint);
                match (other.kind, &record.partial_of) {
                    _ if held.get(urn.as_str()) != Some(&found.as_str()) => {}
                    (Kind::Structure, None) => drop(kept.insert(urn.as_str())),
                    (Kind::Data, Some(_)) => cited.push((urn, product, counting)),
                    (Kind::Structure, Some(_)) | (Kind::Data, None) => {}
                }
            }
        }
    }
    if let Some((urn, by, citing)) = cited.into_iter().find(|(urn, ..)| !kept.contains(urn.as_str())) {
        return Ok(Some(TransitionRefusal::Cited {
            product: leaf.product_id.clone(),
            edition: entry.edition_id.clone(),
            urn: urn.clone(),
            by: by.clone(),
            by_edition: citing.edition_id.clone(),
        }));
    }
    Ok(None)
}

/// The editions whose bytes were deleted for good, as the version carries them on (D29): edition ids, or objects with
/// an `edition_id`.
#[must_use]
pub fn expunged(root: &Root) -> BTreeSet<EditionId> {
    let listed = root.extensions.get(JOBCTL).and_then(|section| section.get("expunged")).and_then(Value::as_array);
    let id = |item: &Value| item.as_str().or_else(|| item.get("edition_id")?.as_str())?.parse().ok();
    listed.into_iter().flatten().filter_map(id).collect()
}

/// Turns a tombstone into a superseded edition, with what its manifest gives to an entry.
pub(super) fn reinstate(
    base: &Base<'_>,
    product: &ProductId,
    new: &NewEntry,
    facts: &Facts,
    times: Times,
) -> Result<Verdict, Box<Refusal>> {
    let mut draft = Draft::new(base, facts, times);
    let edition = &new.edition_id;
    let leaf = draft.leaf(product)?;
    if let Some(entry) = leaf.entry(edition) {
        return match entry.state {
            EntryState::Superseded => Ok(Verdict::Already(Done { mark: Some(Mark::Superseded), refused: Vec::new() })),
            EntryState::Embargoed | EntryState::Live | EntryState::Withdrawn => Err(TransitionRefusal::WrongState {
                product: product.clone(),
                edition: edition.clone(),
                found: entry.state,
                expected: "a tombstone, to be reinstated",
            }
            .into()),
        };
    }
    let Some(tombstone) = base.root.tombstone(product, edition) else {
        return Err(TransitionRefusal::UnknownEdition { product: product.clone(), edition: edition.clone() }.into());
    };
    if expunged(base.root).contains(edition) {
        return Err(TransitionRefusal::Expunged { product: product.clone(), edition: edition.clone() }.into());
    }
    let deletable_at = tombstone.retired_at.plus_ms(facts.retention.gc_ms());
    if times.now >= deletable_at.plus_ms(-DAY_MS) {
        return Err(TransitionRefusal::WindowCloses {
            product: product.clone(),
            edition: edition.clone(),
            retired_at: tombstone.retired_at,
            deletable_at,
        }
        .into());
    }
    manifest(product, edition, &new.manifest_sha256, facts)?;
    match facts.files.get(edition) {
        Some(findings) if findings.is_empty() => {}
        findings => {
            return Err(TransitionRefusal::NotVerified {
                product: product.clone(),
                edition: edition.clone(),
                findings: findings.cloned().unwrap_or_default(),
            }
            .into());
        }
    }
    draft.edit(product)?.insert(new.clone().into_entry(EntryState::Superseded, times.at, None));
    draft.edit_retired().retain(|known| (&known.product_id, &known.edition_id) != (product, edition));
    Ok(Verdict::Change(Box::new(draft.finish(Some(Mark::Superseded))?)))
}

/// The editions that a prune would retire now (*catalog* §6.4, D30): superseded or withdrawn for longer than the
/// window, cited by nobody, and not the last superseded edition of its product and schema version.
///
/// # Errors
/// [`Refusal::RecordsUnread`] when the records of an entry are needed and not known.
pub fn retirable(
    base: &Base<'_>,
    facts: &Facts,
    retention: &Retention,
    now: Instant,
) -> Result<BTreeSet<(ProductId, EditionId)>, Box<Refusal>> {
    let mut found = BTreeSet::new();
    for (product, leaf) in base.leaves {
        let mut newest: BTreeMap<&SchemaVersion, &LeafEntry> = BTreeMap::new();
        for entry in leaf.editions.iter().filter(|entry| entry.state == EntryState::Superseded) {
            let known = newest.entry(&entry.schema_version).or_insert(entry);
            if (known.state_changed_at, &known.edition_id) < (entry.state_changed_at, &entry.edition_id) {
                *known = entry;
            }
        }
        for entry in &leaf.editions {
            let old = entry.state_changed_at.plus_ms(retention.retire_ms()) <= now;
            let may = match entry.state {
                EntryState::Withdrawn => old,
                EntryState::Superseded => {
                    old && newest.get(&entry.schema_version).is_none_or(|kept| kept.edition_id != entry.edition_id)
                }
                EntryState::Live | EntryState::Embargoed => false,
            };
            if may && cited(base, leaf, entry, facts)?.is_none() {
                found.insert((product.clone(), entry.edition_id.clone()));
            }
        }
    }
    Ok(found)
}
