//! The transitions (*catalog* §6.4): what an operation makes of the head, or the rule that refuses it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::change::Mark;
use super::invariants::{check_chain, check_structures};
use super::leaf::{ArtefactRecords, EntryState, Kind, Leaf, LeafEntry, Lifecycle, SchemaVersion};
use super::refusal::Refusal;
use super::root::{EventKind, Root, Tombstone};
use super::{CANONICAL_FORMS, INVENTORY_FORMAT};
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;

/// The fingerprint of an edition's content and the form of the text that it hashes. Fingerprints of different forms are
/// never compared (*edition* §9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentFingerprint {
    /// The manifest's `canonical_form`.
    pub canonical_form: String,
    /// The manifest's `content_fingerprint`.
    pub value: Option<String>,
}

impl ContentFingerprint {
    fn equals(&self, other: &Self) -> bool {
        self.canonical_form == other.canonical_form && self.value.is_some() && self.value == other.value
    }

    fn text(&self) -> String {
        format!("{} (form {})", self.value.as_deref().unwrap_or("null"), self.canonical_form)
    }
}

/// What a manifest gives to the entry of its edition.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEntry {
    /// The edition.
    pub edition_id: EditionId,
    /// What it was built on.
    pub previous: Option<EditionId>,
    /// The SHA-256 of its manifest.
    pub manifest_sha256: Sha256Hex,
    /// The store schema that it was written at.
    pub schema_version: SchemaVersion,
    /// Where the structures came from when a registry is authoritative.
    pub structure_source: Option<Map<String, Value>>,
    /// Its artefact records.
    pub artefacts: ArtefactRecords,
    /// The dataflows of its bindings, in any order.
    pub dataflows: Vec<String>,
    /// The bytes of its required files.
    pub pull_bytes: u64,
}

impl NewEntry {
    fn into_entry(self, state: EntryState, at: Instant, release_at: Option<Instant>) -> LeafEntry {
        let mut dataflows = self.dataflows;
        dataflows.sort_unstable();
        dataflows.dedup();
        LeafEntry {
            edition_id: self.edition_id,
            previous: self.previous,
            state,
            manifest_sha256: self.manifest_sha256,
            schema_version: self.schema_version,
            state_changed_at: at,
            release_at,
            structure_source: self.structure_source,
            artefacts: Some(self.artefacts),
            dataflows: Some(dataflows),
            pull_bytes: Some(self.pull_bytes),
            other: Map::new(),
        }
    }
}

/// Records a sealed edition: live with embargo off, embargoed with embargo on (D21).
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The product.
    pub product_id: ProductId,
    /// What the edition holds.
    pub kind: Kind,
    /// The product's lifecycle from now on; `None` leaves it as it is, and makes a new product revisable.
    pub lifecycle: Option<Lifecycle>,
    /// What its manifest says.
    pub entry: NewEntry,
    /// Its content, for a product that is final.
    pub content: ContentFingerprint,
    /// When it may be released; `None` is never due.
    pub release_at: Option<Instant>,
}

/// What a caller may ask of the Inventory.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Record a sealed edition.
    Record(Box<Record>),
    /// Replace the catalog's description, the section `statcat` of the root's extensions.
    Describe(Map<String, Value>),
}

impl Operation {
    /// The kind of event that the operation records.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Record(_) => EventKind::Seal,
            Self::Describe(_) => EventKind::Describe,
        }
    }
}

/// What a decision needs beyond the Inventory; the caller reads it from manifests.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The SHA-256 of the bytes of the incoming edition's manifest, as fetched now; `None` when it is not there.
    pub manifest_sha256: Option<Sha256Hex>,
    /// The content of the edition that the incoming one was built on. Needed for a final product only.
    pub previous_content: Option<ContentFingerprint>,
    /// The artefact records of editions whose entries lack them.
    pub records: BTreeMap<EditionId, ArtefactRecords>,
}

/// The version that an operation starts from.
#[derive(Debug, Clone, Copy)]
pub struct Base<'a> {
    /// Its root.
    pub root: &'a Root,
    /// The SHA-256 of the root's stored bytes.
    pub root_sha256: &'a Sha256Hex,
    /// Its leaves.
    pub leaves: &'a BTreeMap<ProductId, Arc<Leaf>>,
}

/// What an operation changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The leaves that change.
    pub leaves: BTreeMap<ProductId, Leaf>,
    /// The tombstones, when they change.
    pub retired: Option<Vec<Tombstone>>,
    /// The section `statcat` of the extensions, when it changes.
    pub statcat: Option<Map<String, Value>>,
    /// What became of the edition that the operation is about.
    pub mark: Option<Mark>,
}

/// What a rule says of an operation that it does not refuse.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Somebody did it already: nothing is to be written.
    Already(Option<Mark>),
    /// This is what changes.
    Change(Outcome),
}

/// What `operation` makes of `base` at the instant `at` (*catalog* §6.4, §6.5). The instant is the new version's
/// `created_at`.
///
/// An edition that the base already knows, in any state or as a tombstone, is [`Verdict::Already`]: so a step that
/// committed and lost its answer finds its own work, and a withdrawn edition never goes live again by itself.
///
/// # Errors
/// [`Refusal`] with the first rule that forbids it.
pub fn verdict(base: &Base<'_>, operation: &Operation, facts: &Facts, at: Instant) -> Result<Verdict, Box<Refusal>> {
    match operation {
        Operation::Record(new) => record(base, new, facts, at),
        Operation::Describe(section) => {
            let same = base.root.extensions.get("statcat").is_some_and(|now| now.as_object() == Some(section));
            if same {
                return Ok(Verdict::Already(None));
            }
            Ok(Verdict::Change(Outcome {
                leaves: BTreeMap::new(),
                retired: None,
                statcat: Some(section.clone()),
                mark: None,
            }))
        }
    }
}

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

fn record(base: &Base<'_>, new: &Record, facts: &Facts, at: Instant) -> Result<Verdict, Box<Refusal>> {
    let product = || new.product_id.clone();
    let edition = || new.entry.edition_id.clone();
    let leaf = base.leaves.get(&new.product_id).map(Arc::as_ref);

    if let Some(entry) = leaf.and_then(|leaf| leaf.entry(&new.entry.edition_id)) {
        if entry.manifest_sha256 == new.entry.manifest_sha256 {
            return Ok(Verdict::Already(Some(entry.state.into())));
        }
        return Err(Box::new(Refusal::ManifestDiffers {
            product: product(),
            edition: edition(),
            found: new.entry.manifest_sha256.clone(),
            expected: entry.manifest_sha256.clone(),
        }));
    }
    if base.root.tombstone(&new.product_id, &new.entry.edition_id).is_some() {
        return Ok(Verdict::Already(Some(Mark::Tombstone)));
    }

    check_manifest(new, facts)?;
    if let Some(leaf) = leaf {
        check_product(leaf, new, facts)?;
    }
    check_fast_forward(leaf, new)?;

    let state = if base.root.embargo { EntryState::Embargoed } else { EntryState::Live };
    if let (EntryState::Live, Some(release_at)) = (state, new.release_at) {
        return Err(Box::new(Refusal::ReleaseAtWithoutEmbargo { product: product(), edition: edition(), release_at }));
    }
    let leaf = with_entry(leaf, new, state, at);

    let mut after: BTreeMap<&ProductId, &Leaf> = base.leaves.iter().map(|(id, leaf)| (id, leaf.as_ref())).collect();
    after.insert(&new.product_id, &leaf);
    check_chain(&leaf, base.root)?;
    check_structures(&after, &[(&new.product_id, &new.entry.edition_id)], &facts.records)?;

    Ok(Verdict::Change(Outcome {
        leaves: BTreeMap::from([(new.product_id.clone(), leaf)]),
        retired: None,
        statcat: None,
        mark: Some(state.into()),
    }))
}

fn check_manifest(new: &Record, facts: &Facts) -> Result<(), Box<Refusal>> {
    let (product, edition) = (new.product_id.clone(), new.entry.edition_id.clone());
    match &facts.manifest_sha256 {
        None => return Err(Box::new(Refusal::ManifestMissing { product, edition })),
        Some(found) if *found != new.entry.manifest_sha256 => {
            let expected = new.entry.manifest_sha256.clone();
            return Err(Box::new(Refusal::ManifestDiffers { product, edition, found: found.clone(), expected }));
        }
        Some(_) => {}
    }
    if CANONICAL_FORMS.contains(&new.content.canonical_form.as_str()) {
        Ok(())
    } else {
        Err(Box::new(Refusal::CanonicalForm { product, edition, found: new.content.canonical_form.clone() }))
    }
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
        (Lifecycle::Final, None | Some(Lifecycle::Final)) => match &facts.previous_content {
            Some(previous) if previous.equals(&new.content) => Ok(()),
            previous => Err(Box::new(Refusal::FinalChanged {
                product,
                edition,
                found: new.content.text(),
                expected: previous.as_ref().map_or_else(|| "none to compare with".to_owned(), ContentFingerprint::text),
            })),
        },
    }
}

fn check_fast_forward(leaf: Option<&Leaf>, new: &Record) -> Result<(), Box<Refusal>> {
    let (product, edition) = (new.product_id.clone(), new.entry.edition_id.clone());
    let expected = expected_previous(leaf, &new.entry.schema_version).map_err(|live| Refusal::SchemaBehind {
        product: product.clone(),
        edition: edition.clone(),
        schema: new.entry.schema_version.clone(),
        live: live.edition_id.clone(),
        live_schema: live.schema_version.clone(),
    })?;
    if expected.map(|entry| &entry.edition_id) == new.entry.previous.as_ref() {
        return Ok(());
    }
    Err(Box::new(Refusal::NotFastForward {
        product,
        edition,
        previous: new.entry.previous.clone(),
        expected: expected.map(|entry| (entry.edition_id.clone(), entry.schema_version.clone())),
    }))
}

/// The product's leaf with the new entry; when it goes live, the live one at its schema is superseded.
fn with_entry(leaf: Option<&Leaf>, new: &Record, state: EntryState, at: Instant) -> Leaf {
    let mut leaf = leaf.cloned().unwrap_or_else(|| Leaf {
        format_version: INVENTORY_FORMAT,
        product_id: new.product_id.clone(),
        kind: new.kind,
        lifecycle: Lifecycle::Revisable,
        editions: Vec::new(),
        other: Map::new(),
    });
    leaf.format_version = leaf.format_version.max(INVENTORY_FORMAT);
    if let Some(lifecycle) = new.lifecycle {
        leaf.lifecycle = lifecycle;
    }
    if state == EntryState::Live {
        for entry in &mut leaf.editions {
            if entry.state == EntryState::Live && entry.schema_version == new.entry.schema_version {
                entry.state = EntryState::Superseded;
                entry.state_changed_at = at;
            }
        }
    }
    leaf.editions.push(new.entry.clone().into_entry(state, at, new.release_at));
    leaf.editions.sort_by(|a, b| a.edition_id.cmp(&b.edition_id));
    leaf
}
