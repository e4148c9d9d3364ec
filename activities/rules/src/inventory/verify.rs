//! A version looked at from scratch, and one version after another: what `verify` reports (*catalog* §6.5, §6.9, §10.3).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::change::{Side, changes_between};
use super::document::Document as _;
use super::invariants::{check_chain, counts, records_of};
use super::leaf::{ArtefactRecords, EntryState, Kind, Leaf, LeafEntry};
use super::refusal::Refusal;
use super::root::{EventKind, Root, Seq};
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;

/// A data edition whose structures moved on (*catalog* §6.5 item 4, Stale): derived, never recorded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stale {
    /// The product.
    pub product: ProductId,
    /// The edition, live or embargoed.
    pub edition: EditionId,
    /// Its state.
    pub state: EntryState,
    /// The artefact.
    pub urn: String,
    /// The fingerprint that the edition holds, or that its part was cut from.
    pub found: String,
    /// The home, and its live edition, if it has one.
    pub home: (ProductId, Option<EditionId>),
}

/// What is wrong with a version.
#[derive(Debug, thiserror::Error)]
pub enum VersionFinding {
    /// A product without its leaf, or a leaf of another product.
    #[error("catalog §6.2: the leaf of product {product} is not there, or is another product's")]
    Leaf {
        /// The product.
        product: ProductId,
    },
    /// A rule of one product, or of one edition.
    #[error(transparent)]
    Rule(Box<Refusal>),
    /// A full artefact without a home that is live with two fingerprints.
    #[error(
        "catalog §6.5 item 4: {urn} has no home and is live with {fingerprints} fingerprints, one of them in edition \
         {edition} of {product}"
    )]
    SharedDiffers {
        /// The artefact.
        urn: String,
        /// How many fingerprints.
        fingerprints: usize,
        /// A product that holds it.
        product: ProductId,
        /// Its edition.
        edition: EditionId,
    },
    /// A part whose whole nobody holds any more.
    #[error("catalog §6.5 item 4: edition {edition} of {product} holds a part of {urn}, which has no home any more")]
    Orphan {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The artefact.
        urn: String,
    },
    /// A data edition that holds an old copy.
    #[error(
        "catalog §6.5 item 4: {} edition {} of {} is stale: it holds {} at {}, and its home {} moved on{}",
        .0.state, .0.edition, .0.product, .0.urn, .0.found, .0.home.0,
        .0.home.1.as_ref().map_or_else(String::new, |edition| format!(" to edition {edition}"))
    )]
    Stale(Stale),
}

impl VersionFinding {
    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::Leaf { .. } => "restore inventory/leaves from a backup (catalog §10.3)".to_owned(),
            Self::Rule(refusal) => refusal.fix(),
            Self::SharedDiffers { product, .. } | Self::Orphan { product, .. } | Self::Stale(Stale { product, .. }) => {
                format!("publish it again from the structures of now: jobctl run publish --product {product}")
            }
        }
    }
}

/// Whether the version of `root` with `leaves` keeps every invariant that the Inventory can tell by itself: one live
/// edition a schema version, whole chains, one home an artefact, one fingerprint for what has no home; and which data
/// editions are stale. Entries without artefact records take theirs from `records`, and are passed over without.
#[must_use]
pub fn check_version(
    root: &Root,
    leaves: &BTreeMap<ProductId, Arc<Leaf>>,
    records: &BTreeMap<EditionId, ArtefactRecords>,
) -> Vec<VersionFinding> {
    let mut findings = Vec::new();
    let mut tombstones: BTreeMap<&ProductId, BTreeSet<&EditionId>> = BTreeMap::new();
    for tombstone in &root.retired {
        tombstones.entry(&tombstone.product_id).or_default().insert(&tombstone.edition_id);
    }
    if let Err(error) = root.validate() {
        findings.push(VersionFinding::Rule(error.into()));
    }
    let none = BTreeSet::new();
    for product in root.products.keys() {
        let Some(leaf) = leaves.get(product).filter(|leaf| leaf.product_id == *product) else {
            findings.push(VersionFinding::Leaf { product: product.clone() });
            continue;
        };
        let document = leaf.validate().map_err(Box::<Refusal>::from);
        let chain = check_chain(leaf, tombstones.get(product).unwrap_or(&none));
        findings.extend([document, chain].into_iter().filter_map(Result::err).map(VersionFinding::Rule));
    }
    check_artefacts(leaves, records, &mut findings);
    findings
}

/// A live or embargoed edition that holds an artefact, full or in part.
struct Held<'a> {
    product: &'a ProductId,
    entry: &'a LeafEntry,
    /// Of the full artefact.
    fingerprint: &'a str,
    is_part: bool,
}

/// Who holds which artefact.
type Holders<'a> = BTreeMap<&'a str, Vec<Held<'a>>>;

fn check_artefacts<'a>(
    leaves: &'a BTreeMap<ProductId, Arc<Leaf>>,
    records: &'a BTreeMap<EditionId, ArtefactRecords>,
    findings: &mut Vec<VersionFinding>,
) {
    let (mut homes, mut data) = (Holders::new(), Holders::new());
    for (product, leaf) in leaves {
        for entry in leaf.editions.iter().filter(|entry| counts(entry)) {
            let Ok(held) = records_of(product, entry, records) else { continue };
            for (urn, record) in held {
                let is_part = record.partial_of.is_some();
                let fingerprint = record.partial_of.as_ref().unwrap_or(&record.fingerprint).as_str();
                let held = Held { product, entry, fingerprint, is_part };
                match leaf.kind {
                    Kind::Structure if is_part => {}
                    Kind::Structure => homes.entry(urn).or_default().push(held),
                    Kind::Data => data.entry(urn).or_default().push(held),
                }
            }
        }
    }
    let is_live = |held: &&Held<'_>| held.entry.state == EntryState::Live;
    for (urn, held) in &homes {
        let live: Vec<_> = held.iter().filter(is_live).collect();
        if let Some(second) = live.iter().find(|held| held.product != live[0].product) {
            findings.push(VersionFinding::Rule(Box::new(Refusal::TwoHomes {
                product: second.product.clone(),
                edition: second.entry.edition_id.clone(),
                urn: (*urn).to_owned(),
                home: live[0].product.clone(),
            })));
        }
    }
    for (urn, held) in &data {
        match homes.get(urn) {
            Some(home) => findings.extend(stale(urn, held, home).map(VersionFinding::Stale)),
            None => homeless(urn, held, findings),
        }
    }
}

fn stale<'a>(urn: &'a str, held: &'a [Held<'_>], home: &'a [Held<'_>]) -> impl Iterator<Item = Stale> {
    let old = held.iter().filter(|held| !home.iter().any(|home| home.fingerprint == held.fingerprint));
    let live = home.iter().find(|home| home.entry.state == EntryState::Live);
    old.filter_map(move |held| {
        let any = live.or_else(|| home.first())?;
        Some(Stale {
            product: held.product.clone(),
            edition: held.entry.edition_id.clone(),
            state: held.entry.state,
            urn: urn.to_owned(),
            found: held.fingerprint.to_owned(),
            home: (any.product.clone(), live.map(|live| live.entry.edition_id.clone())),
        })
    })
}

fn homeless(urn: &str, held: &[Held<'_>], findings: &mut Vec<VersionFinding>) {
    for part in held.iter().filter(|held| held.is_part) {
        findings.push(VersionFinding::Orphan {
            product: part.product.clone(),
            edition: part.entry.edition_id.clone(),
            urn: urn.to_owned(),
        });
    }
    let live: Vec<_> = held.iter().filter(|held| !held.is_part && held.entry.state == EntryState::Live).collect();
    let prints: BTreeSet<_> = live.iter().map(|held| held.fingerprint).collect();
    let products: BTreeSet<_> = live.iter().map(|held| held.product).collect();
    // A product's own schema versions are not compared with one another.
    if let Some(last) = live.last().filter(|_| prints.len() > 1 && products.len() > 1) {
        findings.push(VersionFinding::SharedDiffers {
            urn: urn.to_owned(),
            fingerprints: prints.len(),
            product: last.product.clone(),
            edition: last.entry.edition_id.clone(),
        });
    }
}

/// What a field that may be null says.
fn plain<T: std::fmt::Display>(value: Option<&T>) -> String {
    value.map_or_else(|| "nothing".to_owned(), T::to_string)
}

/// What is wrong with a version as the one after another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepFinding {
    /// The chain of hashes.
    #[error("catalog §6.2: version {seq} names {} as the SHA-256 of the version before it; expected {expected}", plain(found.as_ref()))]
    Chain {
        /// The version.
        seq: Seq,
        /// Its `previous_root_sha256`.
        found: Option<Sha256Hex>,
        /// The SHA-256 of the version before it.
        expected: Sha256Hex,
    },
    /// The numbers.
    #[error("catalog §6.2: version {seq} follows version {base}, and was built from {} by {kind}", plain(built_from.as_ref()))]
    Numbers {
        /// The version.
        seq: Seq,
        /// The version before it.
        base: Seq,
        /// The version that it was built from.
        built_from: Option<Seq>,
        /// What it did.
        kind: EventKind,
    },
    /// The time.
    #[error("catalog §6.6: version {seq} was written at {found}; expected {expected} or later")]
    Time {
        /// The version.
        seq: Seq,
        /// Its time.
        found: Instant,
        /// The earliest time.
        expected: Instant,
    },
    /// The epoch.
    #[error("catalog §6.1: version {seq} has restore epoch {found}, below {base}, that of the version before it")]
    Epoch {
        /// The version.
        seq: Seq,
        /// Its epoch.
        found: u64,
        /// The epoch of the version before it.
        base: u64,
    },
    /// The change list.
    #[error("catalog §6.3: the change list of version {seq} is not what changed{}",
        product.as_ref().map_or_else(String::new, |product| format!(", first at product {product}")))]
    Changes {
        /// The version.
        seq: Seq,
        /// The first product that differs.
        product: Option<ProductId>,
    },
}

/// A version with all its leaves.
#[derive(Debug, Clone, Copy)]
pub struct Whole<'a> {
    /// Its root.
    pub root: &'a Root,
    /// The SHA-256 of the root's stored bytes.
    pub root_sha256: &'a Sha256Hex,
    /// Its leaves, at least those of the products that differ from the other version's.
    pub leaves: &'a BTreeMap<ProductId, Arc<Leaf>>,
}

/// Whether `new` follows `base`: the chain, the numbers, the time, the epoch and the change list. A root without history
/// fields is asked for its numbers alone (H19).
#[must_use]
pub fn check_step(base: &Whole<'_>, new: &Whole<'_>) -> Vec<StepFinding> {
    let (old, root) = (base.root, new.root);
    let seq = root.seq;
    let mut findings = Vec::new();
    let built_from_base = root.previous_inventory == Some(old.seq);
    let may_be_older = root.event.kind == EventKind::Correct && root.previous_inventory < Some(old.seq);
    if seq != old.seq.next() || !(built_from_base || may_be_older) {
        findings.push(StepFinding::Numbers {
            seq,
            base: old.seq,
            built_from: root.previous_inventory,
            kind: root.event.kind.clone(),
        });
    }
    if root.restore_epoch < old.restore_epoch {
        findings.push(StepFinding::Epoch { seq, found: root.restore_epoch, base: old.restore_epoch });
    }
    let (Some(previous), Some(changes)) = (&root.previous_root_sha256, &root.changes) else { return findings };
    if previous.as_ref() != Some(base.root_sha256) {
        findings.push(StepFinding::Chain { seq, found: previous.clone(), expected: base.root_sha256.clone() });
    }
    let earliest = old.created_at.plus_ms(1);
    if root.created_at < earliest {
        findings.push(StepFinding::Time { seq, found: root.created_at, expected: earliest });
    }
    let before = |product: &ProductId| base.leaves.get(product).map(Arc::as_ref);
    let after = |product: &ProductId| new.leaves.get(product).map(Arc::as_ref);
    let computed = changes_between(
        &Side { products: &old.products, retired: &old.retired, leaf: &before },
        &Side { products: &root.products, retired: &root.retired, leaf: &after },
    );
    match computed {
        Ok(computed) if computed == *changes => {}
        Ok(computed) => {
            let differs = computed.iter().find(|change| !changes.contains(change));
            let product = differs.or_else(|| changes.iter().find(|change| !computed.contains(change)));
            findings.push(StepFinding::Changes { seq, product: product.map(|change| change.product_id.clone()) });
        }
        Err(missing) => findings.push(StepFinding::Changes { seq, product: Some(missing.product) }),
    }
    findings
}

/// The structure editions that the publish check of one product's structure edition is given (*catalog* §6.5 item 9):
/// the live and embargoed ones of the other structure products.
#[must_use]
pub fn structures_beside(
    leaves: &BTreeMap<ProductId, Arc<Leaf>>,
    product: &ProductId,
) -> Vec<(ProductId, EditionId, Sha256Hex)> {
    let others = leaves.iter().filter(|(other, leaf)| *other != product && leaf.kind == Kind::Structure);
    let editions = others.flat_map(|(other, leaf)| leaf.editions.iter().map(move |entry| (other, entry)));
    editions
        .filter(|(_, entry)| counts(entry))
        .map(|(other, entry)| (other.clone(), entry.edition_id.clone(), entry.manifest_sha256.clone()))
        .collect()
}
