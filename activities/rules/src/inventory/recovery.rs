//! Recoveries as decisions (D16; *catalog* §6.7): a damaged head, and an Inventory that is gone. Each is refused where
//! history would be lost, and names it.

use std::collections::{BTreeMap, BTreeSet};

use super::draft::Draft;
use super::leaf::{EntryState, Leaf};
use super::operation::{Base, Facts, Record, Times};
use super::refusal::{RecoveryRefusal, Refusal};
use super::root::{EventKind, Root, Seq};
use super::version::{By, NextVersion, first_root, first_with};
use super::{CatalogJson, Current, Document as _, DocumentError, FormatVersion};
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;

/// What stands at the place of a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootFound {
    /// Nothing.
    Absent,
    /// A valid root of that version.
    Valid,
    /// A root of a newer major version: not damaged.
    Newer(FormatVersion),
    /// Bytes that are no root of that version.
    Invalid,
}

impl RootFound {
    /// What `bytes`, found at the place of version `seq`, are.
    #[must_use]
    pub fn of(seq: Seq, bytes: Option<&[u8]>) -> Self {
        match bytes.map(Root::decode) {
            None => Self::Absent,
            Some(Ok(root)) if root.seq == seq => Self::Valid,
            Some(Err(DocumentError::Major { found, .. })) if found.major > super::INVENTORY_FORMAT.major => {
                Self::Newer(found)
            }
            Some(Ok(_) | Err(_)) => Self::Invalid,
        }
    }
}

/// A head that may be deleted: under the catalog's lock, with a copy kept in the state directory, and only while its
/// bytes are those that were judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairHead {
    /// The version whose root is deleted.
    pub seq: Seq,
    /// The SHA-256 of the bytes that were judged.
    pub sha256: Sha256Hex,
    /// The version that is the head afterwards.
    pub head: Seq,
}

/// What stands around a head that is to be deleted.
#[derive(Debug, Clone, Copy)]
pub struct HeadFacts<'a> {
    /// The last version that is valid and follows the one before it.
    pub last_valid: Seq,
    /// Its root, and the SHA-256 of that root's stored bytes, where they are known.
    pub base: Option<(&'a Root, &'a Sha256Hex)>,
    /// What stands at the place of the version itself.
    pub bytes: Option<&'a [u8]>,
    /// What stands at the versions after it, up to the first that is absent.
    pub after: &'a [(Seq, RootFound)],
    /// `CURRENT`, where it is there.
    pub current: Option<&'a Current>,
}

/// Whether the root of `seq` may be deleted (D16): it fails validation or does not follow the last valid version, and
/// stands after that. `confirm_committed` is a person's word that what a committed version did may be undone.
///
/// # Errors
/// [`RecoveryRefusal`] when it is absent, valid, of a newer format, not the next one, when a valid version was built on
/// it, or when it was committed and nobody confirmed that.
pub fn repair_head(seq: Seq, facts: &HeadFacts<'_>, confirm_committed: bool) -> Result<RepairHead, Box<Refusal>> {
    let HeadFacts { last_valid, base, bytes, after, current } = *facts;
    match RootFound::of(seq, bytes) {
        RootFound::Absent => return Err(RecoveryRefusal::HeadAbsent { seq, last_valid }.into()),
        RootFound::Valid if !is_off_chain(base, bytes) => return Err(RecoveryRefusal::HeadValid { seq }.into()),
        RootFound::Newer(found) => return Err(RecoveryRefusal::HeadNewer { seq, found }.into()),
        RootFound::Valid | RootFound::Invalid => {}
    }
    for (next, found) in after.iter().filter(|(next, _)| *next > seq) {
        match found {
            RootFound::Valid | RootFound::Newer(_) => {
                return Err(RecoveryRefusal::HeadBuiltOn { seq, next: *next }.into());
            }
            RootFound::Absent | RootFound::Invalid => {}
        }
    }
    let expected = last_valid.next();
    if seq != expected {
        return Err(RecoveryRefusal::HeadNotNext { seq, last_valid, expected }.into());
    }
    let found = Sha256Hex::of(bytes.unwrap_or_default());
    // A hint far ahead of everything that is there tells nothing (D32).
    let is_there = |named: Seq| named == seq || after.iter().any(|(next, _)| *next == named);
    if let Some(current) = current.filter(|current| is_there(current.seq) && !confirm_committed) {
        let (current, named) = (current.seq, current.root_sha256.clone());
        return Err(RecoveryRefusal::HeadCommitted { seq, current, named, found }.into());
    }
    Ok(RepairHead { seq, sha256: found, head: last_valid })
}

/// Whether the valid root in `bytes` is not the one after `base`.
fn is_off_chain(base: Option<(&Root, &Sha256Hex)>, bytes: Option<&[u8]>) -> bool {
    let root = bytes.and_then(|bytes| Root::decode(bytes).ok());
    matches!((root, base), (Some(root), Some((base, sha256))) if !root.chains_to(base, sha256))
}

/// What is left of an Inventory.
#[derive(Debug, Clone, Default)]
pub struct Remains {
    /// The newest valid version, where there is one.
    pub valid: Option<Seq>,
    /// The paths of roots, of `inventory/HISTORY` and of history segments that are still there, whatever they hold.
    pub objects: Vec<String>,
    /// The leaves that are still there and can be read.
    pub leaves: Vec<Leaf>,
    /// `CURRENT`, where it is there: it tells how many versions there were.
    pub current: Option<Current>,
}

/// What a person says of an Inventory that is to be rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RebuildAsked {
    /// Whether editions wait for a release from now on.
    pub embargo: bool,
    /// The word that versions 1 to this one are lost and that none of them rolled back, withdrew or retired anything; 0
    /// where it is not known how many there were.
    pub lost_through: Option<u64>,
}

/// A rebuilt Inventory: write `catalog.json` with the new epoch, then the version, then `CURRENT`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rebuilt {
    /// The epoch after the lost one, so that readers accept a version with a lower number.
    pub restore_epoch: u64,
    /// Version 1 of the new chain.
    pub version: NextVersion,
}

/// The Inventory that the manifests of a catalog give (*catalog* §6.7), for a catalog that was never rolled back: of
/// each product's chain the last edition is live and the others superseded. With embargo on, the last one is embargoed,
/// never due by itself, and the one before it live, since no manifest tells whether it was released.
///
/// `editions` are all sealed editions of the catalog. The facts hold their manifests as fetched.
///
/// # Errors
/// [`RecoveryRefusal`] that names what would be lost: a valid version or unread objects that are there, history that
/// nobody vouched for, a withdrawn edition in a leaf that is left, two editions on one base; [`Refusal`] by an invariant.
pub fn rebuild_inventory(
    catalog: &CatalogJson,
    remains: &Remains,
    editions: &[Record],
    asked: RebuildAsked,
    facts: &Facts,
    by: &By,
    now: Instant,
) -> Result<Rebuilt, Box<Refusal>> {
    check_remains(catalog, remains, asked)?;
    let restore_epoch =
        catalog.restore_epoch.max(remains.current.as_ref().map_or(0, |current| current.restore_epoch)) + 1;
    let kind = EventKind::Restore;
    let root = first_root(restore_epoch, asked.embargo, kind, None, by, now);
    let (root_sha256, leaves) = (Sha256Hex::of(&root.encode()?), BTreeMap::new());
    let base = Base::whole(&root, &root_sha256, &leaves);
    let mut draft = Draft::new(&base, facts, Times { now, at: now });

    let mut products: BTreeMap<&ProductId, Vec<&Record>> = BTreeMap::new();
    for record in editions {
        products.entry(&record.product_id).or_default().push(record);
    }
    for (product, mut records) in products {
        records.sort_by(|a, b| a.entry.edition_id.cmp(&b.entry.edition_id));
        check_forks(product, &records)?;
        draft.replace(leaf_of(product, &records, asked.embargo, now));
        for record in records {
            super::record::manifest(product, &record.entry.edition_id, &record.entry.manifest_sha256, facts)?;
            let state = draft.leaf(product)?.entry(&record.entry.edition_id).map(|entry| entry.state);
            if matches!(state, Some(EntryState::Live | EntryState::Embargoed)) {
                draft.comes_in(product, &record.entry.edition_id);
            }
        }
    }
    let outcome = draft.finish(None)?;
    Ok(Rebuilt { restore_epoch, version: first_with(root.clone(), outcome)? })
}

fn check_remains(catalog: &CatalogJson, remains: &Remains, asked: RebuildAsked) -> Result<(), Box<Refusal>> {
    if let Some(seq) = remains.valid {
        return Err(RecoveryRefusal::StillReadable { seq }.into());
    }
    let mut objects = remains.objects.clone();
    if catalog.format_version.major >= 2 {
        objects.insert(0, format!("catalog.json of format {}", catalog.format_version));
    }
    if !objects.is_empty() {
        return Err(RecoveryRefusal::Remains { objects }.into());
    }
    for leaf in &remains.leaves {
        if let Some(entry) = leaf.editions.iter().find(|entry| entry.state == EntryState::Withdrawn) {
            let (product, edition) = (leaf.product_id.clone(), entry.edition_id.clone());
            return Err(RecoveryRefusal::RolledBack { product, edition }.into());
        }
    }
    let through = remains.current.as_ref().map(|current| current.seq);
    if asked.lost_through == Some(through.map_or(0, Seq::get)) {
        return Ok(());
    }
    Err(RecoveryRefusal::HistoryLost { through }.into())
}

fn check_forks(product: &ProductId, records: &[&Record]) -> Result<(), Box<Refusal>> {
    let mut bases: BTreeMap<_, Vec<EditionId>> = BTreeMap::new();
    for record in records {
        let entry = &record.entry;
        bases.entry((&entry.previous, &entry.schema_version)).or_default().push(entry.edition_id.clone());
    }
    match bases.into_iter().find(|(_, editions)| editions.len() > 1) {
        None => Ok(()),
        Some(((previous, _), editions)) => {
            Err(RecoveryRefusal::Forked { product: product.clone(), previous: previous.clone(), editions }.into())
        }
    }
}

/// The leaf of one product, whose records are in the order of their ids and do not fork.
fn leaf_of(product: &ProductId, records: &[&Record], embargo: bool, now: Instant) -> Leaf {
    let kind = records.first().map_or(super::Kind::Data, |record| record.kind);
    let mut leaf = Leaf::empty(product.clone(), kind);
    for record in records {
        let followers = |of: &EditionId| {
            let schema = &record.entry.schema_version;
            let follows =
                |other: &&&Record| other.entry.previous.as_ref() == Some(of) && other.entry.schema_version == *schema;
            records.iter().find(follows).map(|other| other.entry.edition_id.clone())
        };
        let next = followers(&record.entry.edition_id);
        let state = match (&next, embargo) {
            (None, false) => EntryState::Live,
            (None, true) => EntryState::Embargoed,
            (Some(next), true) if followers(next).is_none() => EntryState::Live,
            (Some(_), true | false) => EntryState::Superseded,
        };
        leaf.insert(record.entry.clone().into_entry(state, now, None));
    }
    leaf
}

/// The paths below `inventory/` and `history/` that [`Remains::objects`] wants: everything but leaves.
#[must_use]
pub fn tells_history(paths: &BTreeSet<String>) -> Vec<String> {
    paths.iter().filter(|path| !path.starts_with("inventory/leaves/")).cloned().collect()
}
