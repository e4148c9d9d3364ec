//! What a caller may ask of the Inventory, and what the answer looks like (*catalog* §6.4).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::change::{Change, Mark};
use super::invariants::Holders;
use super::leaf::{ArtefactRecords, EntryState, Kind, Leaf, LeafEntry, Lifecycle, SchemaVersion};
use super::pending::PendingRegistration;
use super::refusal::Refusal;
use super::retention::Retention;
use super::root::{EventKind, Root, Seq, Tombstone};
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
    pub(super) fn equals(&self, other: &Self) -> bool {
        self.canonical_form == other.canonical_form && self.value.is_some() && self.value == other.value
    }

    pub(super) fn text(&self) -> String {
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
    pub(super) fn into_entry(self, state: EntryState, at: Instant, release_at: Option<Instant>) -> LeafEntry {
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
    /// The embargoed edition whose place it takes: withdrawn in the same version (D19).
    pub supersedes: Option<EditionId>,
}

/// A registration of the inbox, and what the manifest of its edition says.
#[derive(Debug, Clone, PartialEq)]
pub struct Registration {
    /// The document in `pending/`.
    pub pending: PendingRegistration,
    /// What the manifest makes of it; the refusal when it makes nothing.
    pub record: Result<Box<Record>, RefusedEdition>,
}

/// Which embargoed editions are to be released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Release {
    /// Every one whose `release_at` has come by the store's clock: what can be released is, the rest is refused one by
    /// one.
    Due,
    /// Every embargoed edition of these products, whatever its `release_at`: all of them, or none (D21).
    Products(BTreeSet<ProductId>),
    /// These editions: all of them, or none.
    Editions(BTreeSet<(ProductId, EditionId)>),
}

/// One live edition that is taken back, and the superseded one that becomes live instead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackMove {
    /// The live edition, X.
    pub from: EditionId,
    /// The superseded edition of the same schema version, Y; `None` leaves that schema version without a head.
    pub to: Option<EditionId>,
}

/// An operation on the Inventory. It carries intent (ids, what was live when it was asked for), never a state of the
/// catalog, so that it can be evaluated against any head.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Record a sealed edition.
    Record(Box<Record>),
    /// Record what the inbox holds: what can be recorded is, the rest is refused one by one (*catalog* §11.2).
    Fold(Vec<Registration>),
    /// Release embargoed editions.
    Release(Release),
    /// Take back all live editions of each product and make earlier ones live (D22), one move a live edition; the moves
    /// come from [`rollback_moves`](super::rollback_moves). Products that share a changed artefact, or a structure
    /// product and what was cut from it, go back in one version.
    Rollback(BTreeMap<ProductId, Vec<RollbackMove>>),
    /// Cancel an embargoed edition.
    Cancel {
        /// The product.
        product_id: ProductId,
        /// The edition.
        edition_id: EditionId,
    },
    /// Take back all live editions of a product without a replacement (D22).
    WithdrawLive {
        /// The product.
        product_id: ProductId,
        /// The editions that were live when it was asked for; refused when others are.
        if_live: BTreeSet<EditionId>,
    },
    /// Cancel an embargoed edition for another one, recorded and built on the same live edition.
    Supersede {
        /// The product.
        product_id: ProductId,
        /// The edition that is cancelled.
        edition_id: EditionId,
        /// The edition that takes its place.
        by: EditionId,
    },
    /// Turn a tombstone into a superseded edition.
    Reinstate {
        /// The product.
        product_id: ProductId,
        /// What the manifest of the edition says.
        entry: Box<NewEntry>,
    },
    /// Turn superseded and withdrawn editions into tombstones: all of them, or none.
    Retire {
        /// The editions.
        editions: BTreeSet<(ProductId, EditionId)>,
        /// A person's word that the window need not be over.
        before_window: bool,
    },
    /// Set or clear the time of an embargoed edition's release (D27).
    Reschedule {
        /// The product.
        product_id: ProductId,
        /// The edition.
        edition_id: EditionId,
        /// The new time; `None` is never due.
        release_at: Option<Instant>,
    },
    /// Supersede the live editions of an old schema version (*catalog* §9.2 step 5, D27).
    SupersedeSchema {
        /// The old schema version.
        schema_version: SchemaVersion,
        /// These products: all of them, or none. `None` means every product that can be, the rest refused one by one.
        products: Option<BTreeSet<ProductId>>,
    },
    /// Set a product's lifecycle (D27).
    SetLifecycle {
        /// The product.
        product_id: ProductId,
        /// The lifecycle from now on.
        lifecycle: Lifecycle,
    },
    /// Turn the embargo on or off. Editions that are embargoed stay so.
    Embargo(bool),
    /// Replace the catalog's description, the section `statcat` of the root's extensions.
    Describe(Map<String, Value>),
    /// Build a version from an older, known-good one (D14). What it found is in [`Facts::correction`].
    Correct {
        /// The known-good version.
        to: Seq,
        /// The products that are corrected; `None` is all, and the description with them.
        products: Option<BTreeSet<ProductId>>,
        /// The versions after it that cannot be read, confirmed one by one.
        confirmed_unread: BTreeSet<Seq>,
    },
}

impl Operation {
    /// The kind of event that the operation records.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Record(_) | Self::Fold(_) | Self::SetLifecycle { .. } => EventKind::Seal,
            Self::Release(_) | Self::SupersedeSchema { .. } => EventKind::Release,
            Self::Rollback(_) => EventKind::Rollback,
            Self::Cancel { .. } | Self::WithdrawLive { .. } | Self::Supersede { .. } => EventKind::Withdraw,
            Self::Reinstate { .. } => EventKind::Reinstate,
            Self::Retire { .. } => EventKind::Retire,
            Self::Reschedule { .. } | Self::Embargo(_) => EventKind::EmbargoChange,
            Self::Describe(_) => EventKind::Describe,
            Self::Correct { .. } => EventKind::Correct,
        }
    }
}

impl Operation {
    /// The one edition that the operation is about; `None` when there may be several, or none.
    #[must_use]
    pub fn edition(&self) -> Option<(&ProductId, &EditionId)> {
        match self {
            Self::Record(new) => Some((&new.product_id, &new.entry.edition_id)),
            Self::Cancel { product_id, edition_id }
            | Self::Supersede { product_id, edition_id, .. }
            | Self::Reschedule { product_id, edition_id, .. } => Some((product_id, edition_id)),
            Self::Reinstate { product_id, entry } => Some((product_id, &entry.edition_id)),
            Self::Fold(_)
            | Self::Release(_)
            | Self::Rollback(_)
            | Self::WithdrawLive { .. }
            | Self::Retire { .. }
            | Self::SupersedeSchema { .. }
            | Self::SetLifecycle { .. }
            | Self::Embargo(_)
            | Self::Describe(_)
            | Self::Correct { .. } => None,
        }
    }
}

/// What was fetched of a manifest now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestFacts {
    /// The SHA-256 of its bytes.
    pub sha256: Sha256Hex,
    /// Its content; `None` when the bytes are no manifest of a format that is read here.
    pub content: Option<ContentFingerprint>,
}

/// What a correction needs to know of older versions.
#[derive(Debug, Clone, Default)]
pub struct CorrectionFacts {
    /// The known-good version's root, `None` when it cannot be read.
    pub root: Option<Root>,
    /// Its leaves, at least those of the products that are corrected and differ from the head's.
    pub leaves: BTreeMap<ProductId, Arc<Leaf>>,
    /// The change list of every version after it up to the head; `None` for one that cannot be read or has none.
    pub since: BTreeMap<Seq, Option<Vec<Change>>>,
}

/// What a decision needs beyond the Inventory. [`needs`](super::needs) says what of it an operation asks for.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The manifests as fetched now, by edition; an edition without one is missing here.
    pub manifests: BTreeMap<EditionId, ManifestFacts>,
    /// The artefact records of editions whose entries lack them.
    pub records: BTreeMap<EditionId, ArtefactRecords>,
    /// What a full check of every listed file found, by edition; an edition that was not checked is missing here.
    pub files: BTreeMap<EditionId, Vec<String>>,
    /// The configured windows.
    pub retention: Retention,
    /// Older versions, for a correction.
    pub correction: CorrectionFacts,
}

/// The version that an operation starts from.
#[derive(Debug, Clone, Copy)]
pub struct Base<'a> {
    /// Its root.
    pub root: &'a Root,
    /// The SHA-256 of the root's stored bytes.
    pub root_sha256: &'a Sha256Hex,
    /// Its leaves: those that the operation needs, by [`Operation::leaves_needed`](super::LeavesNeeded).
    pub leaves: &'a BTreeMap<ProductId, Arc<Leaf>>,
    /// Who holds which artefact, where `leaves` are not all.
    pub holders: Option<&'a dyn Holders>,
}

impl<'a> Base<'a> {
    /// The base version with every leaf at hand.
    #[must_use]
    pub fn whole(root: &'a Root, root_sha256: &'a Sha256Hex, leaves: &'a BTreeMap<ProductId, Arc<Leaf>>) -> Self {
        Self { root, root_sha256, leaves, holders: None }
    }

    /// The leaf of `product`.
    #[must_use]
    pub fn leaf(&self, product: &ProductId) -> Option<&'a Leaf> {
        self.leaves.get(product).map(Arc::as_ref)
    }
}

/// An edition that a batch refused, as it is persisted with the version (*catalog* §6.4, "persisting each refusal's
/// reason").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedEdition {
    /// The product.
    pub product_id: ProductId,
    /// The edition.
    pub edition_id: EditionId,
    /// The refusal's code.
    pub code: String,
    /// The rule, what was found, what was expected.
    pub message: String,
    /// What to do.
    pub fix: String,
}

impl RefusedEdition {
    /// `refusal` of an edition, as data.
    #[must_use]
    pub fn of(product_id: &ProductId, edition_id: &EditionId, refusal: &Refusal) -> Self {
        Self {
            product_id: product_id.clone(),
            edition_id: edition_id.clone(),
            code: refusal.code().to_owned(),
            message: refusal.to_string(),
            fix: refusal.fix(),
        }
    }
}

/// Who registered an edition that a fold recorded, and why: kept with the version beside the job's own event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folded {
    /// The product.
    pub product_id: ProductId,
    /// The edition.
    pub edition_id: EditionId,
    /// Who uploaded it.
    pub actor: String,
    /// Why.
    pub reason: String,
}

/// What an operation changes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// The leaves that change.
    pub leaves: BTreeMap<ProductId, Leaf>,
    /// The tombstones, when they change.
    pub retired: Option<Vec<Tombstone>>,
    /// The section `statcat` of the extensions, when it changes.
    pub statcat: Option<Map<String, Value>>,
    /// The embargo, when it changes.
    pub embargo: Option<bool>,
    /// The version that this one is built from, when it is not the base version.
    pub built_from: Option<Seq>,
    /// The editions that a batch refused.
    pub refused: Vec<RefusedEdition>,
    /// The registrations that a fold recorded.
    pub folded: Vec<Folded>,
    /// What became of the edition that the operation is about.
    pub mark: Option<Mark>,
}

/// What there is to say when nothing is to be written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Done {
    /// What the head knows of the edition that the operation is about.
    pub mark: Option<Mark>,
    /// The editions that a batch refused.
    pub refused: Vec<RefusedEdition>,
}

/// What a rule says of an operation that it does not refuse.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Somebody did it already, or there is nothing to do: nothing is to be written.
    Already(Done),
    /// This is what changes.
    Change(Box<Outcome>),
}

/// The two times of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The store's clock: what is due is due by it.
    pub now: Instant,
    /// The new version's `created_at`, which may be a little later.
    pub at: Instant,
}
