//! Recording sealed editions, one or the inbox's (*catalog* §6.4, §11.2, D10, D19–D21), and what it asks of each.

use std::collections::BTreeSet;

use super::CANONICAL_FORMS;
use super::batch::{Action, Batch, Candidate, Mode};
use super::change::Mark;
use super::leaf::{EntryState, Leaf, LeafEntry, Lifecycle, SchemaVersion};
use super::operation::{
    Base, ContentFingerprint, Done, Facts, Folded, ManifestFacts, Record, RefusedEdition, Registration, Times, Verdict,
};
use super::pending::PendingRegistration;
use super::refusal::{Refusal, TransitionRefusal};
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;

/// The edition that a new one at `schema_version` must be built on (*catalog* §6.4, D10): the live one at that schema,
/// else the live one at the highest older schema, else none.
///
/// # Errors
/// The live entry at the lowest newer schema, when editions are live only there.
pub fn expected_previous<'a>(
    leaf: Option<&'a Leaf>,
    schema_version: &SchemaVersion,
) -> Result<Option<&'a LeafEntry>, &'a LeafEntry> {
    let Some(leaf) = leaf else { return Ok(None) };
    let up_to = leaf.live().filter(|entry| entry.schema_version <= *schema_version);
    match up_to.max_by(|a, b| a.schema_version.cmp(&b.schema_version)) {
        Some(entry) => Ok(Some(entry)),
        None => leaf.live().min_by(|a, b| a.schema_version.cmp(&b.schema_version)).map_or(Ok(None), Err),
    }
}

/// Records one sealed edition. One that the base knows already, in any state or as a tombstone, is not recorded again.
pub(super) fn record(base: &Base<'_>, new: &Record, facts: &Facts, times: Times) -> Result<Verdict, Box<Refusal>> {
    if let Some(mark) = known(base, new)? {
        return Ok(Verdict::Already(Done { mark: Some(mark), refused: Vec::new() }));
    }
    let candidate = Candidate::new(&new.product_id, &new.entry.edition_id, new.kind, Action::Record(new));
    let state = if base.root.embargo { EntryState::Embargoed } else { EntryState::Live };
    let batch = Batch::run(base, facts, times, vec![candidate], Mode::AllOrNone)?;
    Ok(Verdict::Change(Box::new(batch.draft.finish_unchecked(Some(state.into()))?)))
}

/// Folds the inbox: every registration whose edition the Inventory does not know is recorded or refused, each for
/// itself (*catalog* §11.2, D20).
pub(super) fn fold(
    base: &Base<'_>,
    inbox: &[Registration],
    facts: &Facts,
    times: Times,
) -> Result<Verdict, Box<Refusal>> {
    let mut refused: Vec<RefusedEdition> = Vec::new();
    let mut fresh: Vec<(&Registration, &Record)> = Vec::new();
    let mut seen = BTreeSet::new();
    for registration in inbox {
        let pending = &registration.pending;
        let again = !seen.insert((&pending.product_id, &pending.edition_id));
        if again || knows(base, &pending.product_id, &pending.edition_id).is_some() {
            continue;
        }
        let checked = match &registration.record {
            Ok(record) => check_registration(registration, record, facts, times.now).map(|()| record),
            Err(found) => {
                refused.push(found.clone());
                continue;
            }
        };
        match checked {
            Ok(record) => fresh.push((registration, record)),
            Err(refusal) => refused.push(RefusedEdition::of(&pending.product_id, &pending.edition_id, &refusal)),
        }
    }
    let rivals = |a: &Record, b: &Record| {
        a.product_id == b.product_id
            && a.entry.edition_id != b.entry.edition_id
            && a.entry.previous == b.entry.previous
            && a.entry.schema_version == b.entry.schema_version
    };
    let mut candidates = Vec::new();
    for (_, new) in &fresh {
        match fresh.iter().find(|(_, other)| rivals(new, other)) {
            None => {
                candidates.push(Candidate::new(&new.product_id, &new.entry.edition_id, new.kind, Action::Register(new)))
            }
            Some((_, other)) => {
                let refusal = two_pending(new, &other.entry.edition_id).into();
                refused.push(RefusedEdition::of(&new.product_id, &new.entry.edition_id, &refusal));
            }
        }
    }
    let batch = Batch::run(base, facts, times, candidates, Mode::WhatCan)?;
    refused.extend(batch.refused);
    if batch.accepted.is_empty() {
        return Ok(Verdict::Already(Done { mark: None, refused }));
    }
    let folded = fresh.iter().filter(|(_, record)| {
        batch
            .accepted
            .iter()
            .any(|(product, edition)| (product, edition) == (&record.product_id, &record.entry.edition_id))
    });
    let folded = folded.map(|(registration, record)| Folded {
        product_id: record.product_id.clone(),
        edition_id: record.entry.edition_id.clone(),
        actor: registration.pending.actor.clone(),
        reason: registration.pending.reason.clone(),
    });
    let folded = folded.collect();
    let mut outcome = batch.draft.finish_unchecked(None)?;
    outcome.refused = refused;
    outcome.folded = folded;
    Ok(Verdict::Change(Box::new(outcome)))
}

/// Whether an edition may be registered: no other registration of its product waits to be folded (D20). `inbox` are the
/// registrations of the product, and `base` holds its leaf.
///
/// # Errors
/// [`TransitionRefusal::AnotherRegistered`] with the other one.
pub fn admit_registration(
    base: &Base<'_>,
    inbox: &[PendingRegistration],
    new: &PendingRegistration,
) -> Result<(), Box<Refusal>> {
    let other = inbox.iter().find(|other| {
        other.product_id == new.product_id
            && other.edition_id != new.edition_id
            && knows(base, &other.product_id, &other.edition_id).is_none()
    });
    match other {
        None => Ok(()),
        Some(other) => Err(TransitionRefusal::AnotherRegistered {
            product: new.product_id.clone(),
            edition: new.edition_id.clone(),
            other: other.edition_id.clone(),
        }
        .into()),
    }
}

fn two_pending(new: &Record, other: &EditionId) -> TransitionRefusal {
    TransitionRefusal::TwoPending {
        product: new.product_id.clone(),
        edition: new.entry.edition_id.clone(),
        other: other.clone(),
        previous: new.entry.previous.clone(),
        schema: new.entry.schema_version.clone(),
        registered: true,
    }
}

/// What the base knows of an edition.
pub(super) fn knows(base: &Base<'_>, product: &ProductId, edition: &EditionId) -> Option<Mark> {
    if let Some(entry) = base.leaf(product).and_then(|leaf| leaf.entry(edition)) {
        return Some(entry.state.into());
    }
    base.root.tombstone(product, edition).map(|_| Mark::Tombstone)
}

/// What the base knows of the edition, which must be the same one: an entry of another manifest is refused.
fn known(base: &Base<'_>, new: &Record) -> Result<Option<Mark>, Box<Refusal>> {
    let entry = base.leaf(&new.product_id).and_then(|leaf| leaf.entry(&new.entry.edition_id));
    match entry.filter(|entry| entry.manifest_sha256 != new.entry.manifest_sha256) {
        None => Ok(knows(base, &new.product_id, &new.entry.edition_id)),
        Some(entry) => Err(Box::new(Refusal::ManifestDiffers {
            product: new.product_id.clone(),
            edition: new.entry.edition_id.clone(),
            found: new.entry.manifest_sha256.clone(),
            expected: entry.manifest_sha256.clone(),
        })),
    }
}

/// The registration is of its manifest, and not from an old backup (*catalog* §11.2).
fn check_registration(
    registration: &Registration,
    record: &Record,
    facts: &Facts,
    now: Instant,
) -> Result<(), Box<Refusal>> {
    let pending = &registration.pending;
    let minted_at = Instant::from_ms(i64::try_from(pending.edition_id.minted_at_ms()).unwrap_or(i64::MAX));
    let window_from = now.plus_ms(-facts.retention.tombstone_ms());
    if minted_at < window_from {
        return Err(TransitionRefusal::PendingTooOld {
            product: pending.product_id.clone(),
            edition: pending.edition_id.clone(),
            minted_at,
            window_from,
        }
        .into());
    }
    let previous = |id: &Option<EditionId>| id.as_ref().map_or_else(|| "null".to_owned(), ToString::to_string);
    for (field, found, expected) in [
        ("product_id", pending.product_id.to_string(), record.product_id.to_string()),
        ("edition_id", pending.edition_id.to_string(), record.entry.edition_id.to_string()),
        ("previous", previous(&pending.previous), previous(&record.entry.previous)),
        ("manifest_sha256", pending.manifest_sha256.to_string(), record.entry.manifest_sha256.to_string()),
        ("kind", pending.kind.to_string(), record.kind.to_string()),
    ] {
        if found != expected {
            let (product, edition) = (pending.product_id.clone(), pending.edition_id.clone());
            return Err(TransitionRefusal::RegistrationDiffers { product, edition, field, found, expected }.into());
        }
    }
    Ok(())
}

/// What a new edition is asked by itself, before it is put into a version.
pub(super) fn admit(
    base: &Base<'_>,
    new: &Record,
    facts: &Facts,
    now: Instant,
    registered: bool,
) -> Result<(), Box<Refusal>> {
    let leaf = base.leaf(&new.product_id);
    check_manifest(new, facts)?;
    if let Some(leaf) = leaf {
        check_product(leaf, new, facts)?;
    }
    let asked = Asked {
        product: &new.product_id,
        edition: &new.entry.edition_id,
        previous: new.entry.previous.as_ref(),
        schema: &new.entry.schema_version,
        embargoed: false,
    };
    check_fast_forward(leaf, &asked)?;
    // A time that has come is no reason to wait.
    if let (false, Some(release_at)) = (base.root.embargo, new.release_at.filter(|at| *at > now)) {
        let (product, edition) = (new.product_id.clone(), new.entry.edition_id.clone());
        return Err(Box::new(Refusal::ReleaseAtWithoutEmbargo { product, edition, release_at }));
    }
    check_supersedes(leaf, new)?;
    let rival = leaf.into_iter().flat_map(|leaf| &leaf.editions).find(|entry| {
        entry.state == EntryState::Embargoed
            && entry.previous == new.entry.previous
            && entry.schema_version == new.entry.schema_version
            && new.supersedes.as_ref() != Some(&entry.edition_id)
    });
    match rival {
        // A record of this machine waits beside the other one: a person says which of them is released.
        Some(rival) if registered => Err(two_pending(new, &rival.edition_id).into()),
        Some(_) | None => Ok(()),
    }
}

fn check_manifest(new: &Record, facts: &Facts) -> Result<(), Box<Refusal>> {
    let (product, edition) = (&new.product_id, &new.entry.edition_id);
    manifest(product, edition, &new.entry.manifest_sha256, facts)?;
    check_form(product, edition, &new.content)
}

/// Item 2: the manifest as fetched now is the one that was sealed.
pub(super) fn manifest<'f>(
    product: &ProductId,
    edition: &EditionId,
    expected: &Sha256Hex,
    facts: &'f Facts,
) -> Result<&'f ManifestFacts, Box<Refusal>> {
    let (product, edition) = (|| product.clone(), || edition.clone());
    match facts.manifests.get(&edition()) {
        None => Err(Box::new(Refusal::ManifestMissing { product: product(), edition: edition() })),
        Some(found) if found.sha256 == *expected => Ok(found),
        Some(found) => Err(Box::new(Refusal::ManifestDiffers {
            product: product(),
            edition: edition(),
            found: found.sha256.clone(),
            expected: expected.clone(),
        })),
    }
}

/// Items 2 and 3 for an entry that becomes live: its manifest is there, as recorded, and of a known canonical form.
pub(super) fn check_entry_manifest(product: &ProductId, entry: &LeafEntry, facts: &Facts) -> Result<(), Box<Refusal>> {
    let found = manifest(product, &entry.edition_id, &entry.manifest_sha256, facts)?;
    match &found.content {
        Some(content) => check_form(product, &entry.edition_id, content),
        None => {
            Err(Box::new(Refusal::ManifestUnreadable { product: product.clone(), edition: entry.edition_id.clone() }))
        }
    }
}

fn check_form(product: &ProductId, edition: &EditionId, content: &ContentFingerprint) -> Result<(), Box<Refusal>> {
    if CANONICAL_FORMS.contains(&content.canonical_form.as_str()) {
        return Ok(());
    }
    let found = content.canonical_form.clone();
    Err(Box::new(Refusal::CanonicalForm { product: product.clone(), edition: edition.clone(), found }))
}

/// The product stays what it is, and final means final (*catalog* §6.5 item 5).
fn check_product(leaf: &Leaf, new: &Record, facts: &Facts) -> Result<(), Box<Refusal>> {
    let (product, edition) = (new.product_id.clone(), new.entry.edition_id.clone());
    if leaf.kind != new.kind {
        return Err(Box::new(Refusal::KindDiffers { product, edition, found: new.kind, expected: leaf.kind }));
    }
    match (leaf.lifecycle, new.lifecycle) {
        (Lifecycle::Revisable, None | Some(Lifecycle::Revisable | Lifecycle::Final)) => Ok(()),
        (Lifecycle::Final, Some(Lifecycle::Revisable)) => Err(Box::new(Refusal::FinalReopened { product, edition })),
        (Lifecycle::Final, None | Some(Lifecycle::Final)) => {
            let previous = new.entry.previous.as_ref().and_then(|previous| leaf.entry(previous));
            let previous = match previous {
                Some(entry) => Some(manifest(&new.product_id, &entry.edition_id, &entry.manifest_sha256, facts)?),
                None => None,
            };
            let content = previous.and_then(|found| found.content.as_ref());
            if content.is_some_and(|content| content.equals(&new.content)) {
                return Ok(());
            }
            let expected = content.map_or_else(|| "none to compare with".to_owned(), ContentFingerprint::text);
            Err(Box::new(Refusal::FinalChanged { product, edition, found: new.content.text(), expected }))
        }
    }
}

/// An edition whose base is looked at.
pub(super) struct Asked<'a> {
    pub(super) product: &'a ProductId,
    pub(super) edition: &'a EditionId,
    pub(super) previous: Option<&'a EditionId>,
    pub(super) schema: &'a SchemaVersion,
    /// Whether it is recorded and waits.
    pub(super) embargoed: bool,
}

/// Fast-forward (*catalog* §6.4, D10): the edition was built on the live one.
pub(super) fn check_fast_forward(leaf: Option<&Leaf>, asked: &Asked<'_>) -> Result<(), Box<Refusal>> {
    let (product, edition) = (asked.product.clone(), asked.edition.clone());
    let name = |entry: &LeafEntry| (entry.edition_id.clone(), entry.schema_version.clone());
    let expected = expected_previous(leaf, asked.schema).map_err(|live| Refusal::SchemaBehind {
        product: product.clone(),
        edition: edition.clone(),
        schema: asked.schema.clone(),
        live: live.edition_id.clone(),
        live_schema: live.schema_version.clone(),
    })?;
    if expected.map(|entry| &entry.edition_id) == asked.previous {
        return Ok(());
    }
    let withdrawn = asked.previous.and_then(|previous| leaf?.entry(previous));
    if let Some(entry) = withdrawn.filter(|entry| entry.state == EntryState::Withdrawn) {
        return Err(TransitionRefusal::BuiltOnWithdrawn {
            product,
            edition,
            previous: entry.edition_id.clone(),
            live: expected.map(name),
            embargoed: asked.embargoed,
        }
        .into());
    }
    Err(Box::new(Refusal::NotFastForward {
        product,
        edition,
        previous: asked.previous.cloned(),
        expected: expected.map(name),
    }))
}

/// What a record supersedes is embargoed and built on the same edition at the same schema.
fn check_supersedes(leaf: Option<&Leaf>, new: &Record) -> Result<(), Box<Refusal>> {
    let Some(old) = &new.supersedes else { return Ok(()) };
    let product = || new.product_id.clone();
    let Some(entry) = leaf.and_then(|leaf| leaf.entry(old)) else {
        return Err(TransitionRefusal::UnknownEdition { product: product(), edition: old.clone() }.into());
    };
    check_rivals(
        &new.product_id,
        entry,
        (&new.entry.edition_id, new.entry.previous.as_ref(), &new.entry.schema_version),
    )
}

/// An embargoed edition may be cancelled for another one that would replace the same live edition.
pub(super) fn check_rivals(
    product: &ProductId,
    old: &LeafEntry,
    (by, previous, schema): (&EditionId, Option<&EditionId>, &SchemaVersion),
) -> Result<(), Box<Refusal>> {
    if old.state != EntryState::Embargoed {
        return Err(TransitionRefusal::WrongState {
            product: product.clone(),
            edition: old.edition_id.clone(),
            found: old.state,
            expected: "embargoed, to be superseded before its release",
        }
        .into());
    }
    if old.previous.as_ref() == previous && old.schema_version == *schema && old.edition_id != *by {
        return Ok(());
    }
    Err(TransitionRefusal::NotSameBase {
        product: product.clone(),
        edition: old.edition_id.clone(),
        by: by.clone(),
        previous: old.previous.clone(),
        by_previous: previous.cloned(),
    }
    .into())
}
