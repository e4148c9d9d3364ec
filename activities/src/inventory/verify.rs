//! Everything that a catalog says, held against what is there (*catalog* §10.3, verify-catalog; D32): the chain of
//! roots, the leaves, the invariants, the manifests, the listed files.

mod files;
mod finding;
mod product;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use catalog_rules::ids::{EditionId, ProductId, Sha256Hex};
use catalog_rules::inventory::{
    ArtefactRecords, Current, Kind, Leaf, Seq, StepFinding, VersionFinding, Whole, WriterStage, admit_base, check_step,
    check_version, expunged,
};
use catalog_rules::layout;

use super::error::{InventoryError, LeafFault};
use super::head::{Alert, Head, RootFault, find_head};
use super::init::open_catalog;
use super::leaves::{decode_leaf, several};
use crate::store::Store;
use files::FilesAsked;
pub(super) use files::check_files;
pub use finding::Finding;
use product::LookedAt;

/// What [`verify`] looked at, and what it found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The newest version.
    pub seq: Seq,
    /// The SHA-256 of its root.
    pub root_sha256: Sha256Hex,
    /// How many versions were read.
    pub versions: u64,
    /// How many leaves were read.
    pub leaves: u64,
    /// How many editions of the newest version were held against their manifests.
    pub editions: u64,
    /// How many listed files were looked at.
    pub files: u64,
    /// How many bytes of them were hashed.
    pub hashed_bytes: u64,
    /// What is wrong, by subject and code.
    pub findings: Vec<Finding>,
}

/// Checks the catalog that is in `store` and whose files are under `folder`: every version's root, its place in the
/// chain, its leaves and its invariants; every manifest of the newest version and what the entries say of it; every
/// file that those manifests list, with its size, and with `full` its digests. It only reads, and takes no lock.
///
/// What it finds is looked at once more from a fresh head, and what is gone by then is not reported: a version that was
/// being written, or an edition that was being deleted.
///
/// # Errors
/// What keeps it from looking: no catalog, no valid version at all, a store that does not answer, or a catalog that
/// expires its versions, which this program does not know.
pub fn verify(store: &dyn Store, folder: &Path, full: bool) -> Result<Verified, InventoryError> {
    let first = Look::new(store, folder, full, None).all()?;
    if first.findings.is_empty() {
        return Ok(first);
    }
    let key = |finding: &Finding| (finding.code, finding.subject.clone());
    let suspects: BTreeSet<_> = first.findings.iter().map(key).collect();
    let again = Look::new(store, folder, full, Some(suspects.iter().map(|(_, subject)| subject.clone()).collect()));
    let again = again.all()?;
    let findings = again.findings.into_iter().filter(|finding| suspects.contains(&key(finding))).collect();
    Ok(Verified { seq: again.seq, root_sha256: again.root_sha256, findings, ..first })
}

/// A version on the chain, as far as it can be read.
struct Link {
    head: Head,
    /// Its leaves that can be read.
    leaves: BTreeMap<ProductId, Arc<Leaf>>,
    /// The products whose leaf cannot.
    without_leaf: BTreeSet<ProductId>,
}

struct Look<'a> {
    store: &'a dyn Store,
    files: FilesAsked<'a>,
    leaves: HashMap<Sha256Hex, Option<Arc<Leaf>>>,
    versions: u64,
    editions: u64,
    looked_at: u64,
    hashed_bytes: u64,
    findings: BTreeSet<Finding>,
    /// The rules that were told of an earlier version.
    rules: HashSet<String>,
}

impl<'a> Look<'a> {
    /// `only`: the subjects to which the look at files is limited.
    fn new(store: &'a dyn Store, folder: &'a Path, full: bool, only: Option<BTreeSet<String>>) -> Self {
        Self {
            store,
            files: FilesAsked { folder, full, only },
            leaves: HashMap::new(),
            versions: 0,
            editions: 0,
            looked_at: 0,
            hashed_bytes: 0,
            findings: BTreeSet::new(),
            rules: HashSet::new(),
        }
    }

    fn add(&mut self, finding: Finding) {
        self.findings.insert(finding);
    }

    fn all(mut self) -> Result<Verified, InventoryError> {
        let catalog = open_catalog(self.store)?;
        catalog.admit_writer(WriterStage::One)?;
        let found = find_head(&|path| self.store.get(path), None)?;
        self.hint(&found.head, &found.alerts)?;
        if let Err(refusal) = admit_base(&catalog, None, &found.head.root) {
            self.add(Finding::of_refusal(layout::CATALOG.to_owned(), &refusal));
        }
        let records = self.newest(&found.head)?;
        self.chain(&found.head, &records)?;
        self.beyond(&found.head)?;
        let mut findings: Vec<_> = self.findings.into_iter().collect();
        findings.sort_by(|a, b| (&a.subject, a.code).cmp(&(&b.subject, b.code)));
        let leaves = self.leaves.values().filter(|leaf| leaf.is_some()).count();
        Ok(Verified {
            seq: found.head.seq(),
            root_sha256: found.head.root_sha256,
            versions: self.versions,
            leaves: u64::try_from(leaves).unwrap_or(u64::MAX),
            editions: self.editions,
            files: self.looked_at,
            hashed_bytes: self.hashed_bytes,
            findings,
        })
    }

    /// `CURRENT` against the newest version.
    fn hint(&mut self, head: &Head, alerts: &[Alert]) -> Result<(), InventoryError> {
        let current = self.store.get(layout::CURRENT)?.and_then(|bytes| Current::decode(&bytes));
        for alert in alerts {
            self.add(Finding::of_alert(alert, head.seq(), current.as_ref().map(|current| current.seq)));
        }
        if let Some(current) = current.filter(|current| current.seq < head.seq()) {
            self.add(Finding::current_behind(current.seq, head.seq()));
        }
        Ok(())
    }

    /// The manifests of the newest version and what they list; and the artefact records of entries that lack them.
    fn newest(&mut self, head: &Head) -> Result<BTreeMap<EditionId, ArtefactRecords>, InventoryError> {
        let gone = expunged(&head.root);
        let (leaves, _) = self.leaves_of(head)?;
        let leaves: Vec<_> = leaves.iter().collect();
        let one = |(product, leaf): &(&ProductId, &Arc<Leaf>)| {
            let entries = leaf.editions.iter().filter(|entry| !gone.contains(&entry.edition_id));
            LookedAt::product(self.store, &self.files, product, entries)
        };
        // Hashing is for the disk to set the pace: one file after the other.
        let looked_at = if self.files.full { leaves.iter().map(one).collect() } else { several(&leaves, one) }?;
        let mut records = BTreeMap::new();
        for product in looked_at {
            self.editions += product.editions;
            self.looked_at += product.files;
            self.hashed_bytes += product.hashed_bytes;
            self.findings.extend(product.findings);
            records.extend(product.records);
        }
        Ok(records)
    }

    /// Roots that no search finds, since one below them is not there: they would be found once it is written.
    fn beyond(&mut self, head: &Head) -> Result<(), InventoryError> {
        let names = self.store.list(layout::INVENTORY)?.objects;
        let seqs = names.iter().filter_map(|name| layout::seq_of_root(&format!("{}/{name}", layout::INVENTORY)));
        let above: BTreeSet<_> = seqs.filter(|seq| *seq > head.seq()).collect();
        let mut missing = head.seq().next();
        while above.contains(&missing) {
            missing = missing.next();
        }
        for seq in above.range(missing..) {
            self.add(Finding::root_beyond(*seq, missing));
        }
        Ok(())
    }

    /// Every version from the first to `head`: its root, its leaves, its invariants, and that it follows the one before.
    fn chain(&mut self, head: &Head, records: &BTreeMap<EditionId, ArtefactRecords>) -> Result<(), InventoryError> {
        let mut before: Option<Link> = None;
        let mut seq = Seq::FIRST;
        loop {
            let link = self.link(seq)?;
            if let Some(link) = &link {
                self.version(link, seq == head.seq(), records);
                if let Some(before) = &before {
                    self.step(before, link, seq == head.seq());
                }
            }
            before = link;
            if seq >= head.seq() {
                return Ok(());
            }
            seq = seq.next();
        }
    }

    fn link(&mut self, seq: Seq) -> Result<Option<Link>, InventoryError> {
        let Some(bytes) = self.store.get(&layout::root(seq))? else {
            self.add(Finding::root_missing(seq));
            return Ok(None);
        };
        self.versions += 1;
        match Head::decode(seq, &bytes) {
            Ok(head) => {
                let (leaves, without_leaf) = self.leaves_of(&head)?;
                Ok(Some(Link { head, leaves, without_leaf }))
            }
            Err(fault) => {
                let finding = Finding::root_invalid(seq, &fault);
                // The head's, of which the search for it told already.
                if !self.findings.iter().any(|known| (known.code, &known.subject) == (finding.code, &finding.subject)) {
                    self.add(finding);
                }
                Ok(None)
            }
        }
    }

    /// The leaves of a version: those that can be read, and the products of the others.
    #[allow(clippy::type_complexity, reason = "taken apart at once by both callers")]
    fn leaves_of(
        &mut self,
        head: &Head,
    ) -> Result<(BTreeMap<ProductId, Arc<Leaf>>, BTreeSet<ProductId>), InventoryError> {
        self.read_leaves(head)?;
        let (mut leaves, mut without) = (BTreeMap::new(), BTreeSet::new());
        for (product, reference) in &head.root.products {
            match self.leaf(head.seq(), product, &reference.leaf_sha256) {
                Some(leaf) => drop(leaves.insert(product.clone(), leaf)),
                None => drop(without.insert(product.clone())),
            }
        }
        Ok((leaves, without))
    }

    /// Reads the leaves of a version that were not read yet.
    fn read_leaves(&mut self, head: &Head) -> Result<(), InventoryError> {
        let named = head.root.products.iter().map(|(product, reference)| (product, &reference.leaf_sha256));
        let wanted: Vec<_> = named.filter(|(_, sha256)| !self.leaves.contains_key(*sha256)).collect();
        let read = several(&wanted, |(product, sha256)| {
            let bytes = self.store.get(&layout::leaf(sha256))?;
            Ok::<_, InventoryError>(decode_leaf(bytes.as_deref(), product, sha256))
        })?;
        for ((product, sha256), leaf) in wanted.into_iter().zip(read) {
            // Of two products that name one leaf, the other one is told of below.
            if self.leaves.contains_key(sha256) {
                continue;
            }
            let leaf = match leaf {
                Ok(leaf) => Some(Arc::new(leaf)),
                Err(fault) => {
                    self.add(Finding::leaf(head.seq(), product, sha256, &fault));
                    None
                }
            };
            self.leaves.insert(sha256.clone(), leaf);
        }
        Ok(())
    }

    fn leaf(&mut self, seq: Seq, product: &ProductId, sha256: &Sha256Hex) -> Option<Arc<Leaf>> {
        let known = self.leaves.get(sha256).cloned().flatten()?;
        if known.product_id == *product {
            return Some(known);
        }
        let found = known.product_id.clone();
        self.add(Finding::leaf(seq, product, sha256, &LeafFault::Product { found }));
        None
    }

    fn version(&mut self, link: &Link, is_newest: bool, records: &BTreeMap<EditionId, ArtefactRecords>) {
        for finding in check_version(&link.head.root, &link.leaves, records) {
            let told = match &finding {
                // Told where the leaf was read.
                VersionFinding::Leaf { product } => !link.without_leaf.contains(product),
                // Told of the first version that broke it.
                VersionFinding::Rule(_) | VersionFinding::SharedDiffers { .. } => {
                    self.rules.insert(finding.to_string())
                }
                // Of an older version, nobody can or must do anything about it.
                VersionFinding::Orphan { .. } | VersionFinding::Stale(_) => is_newest && self.is_whole(link),
            };
            if told {
                self.add(Finding::of_version(link.head.seq(), &finding));
            }
        }
    }

    /// Whether every structure leaf could be read, as far as one can tell: a home that is in a damaged leaf is missed.
    fn is_whole(&self, link: &Link) -> bool {
        link.without_leaf.is_empty() || link.leaves.values().all(|leaf| leaf.kind == Kind::Data)
    }

    fn step(&mut self, before: &Link, link: &Link, is_newest: bool) {
        let blocking = if is_newest { before.head.check_next(&link.head).err() } else { None };
        let base = Whole { root: &before.head.root, root_sha256: &before.head.root_sha256, leaves: &before.leaves };
        let new = Whole { root: &link.head.root, root_sha256: &link.head.root_sha256, leaves: &link.leaves };
        let is_whole = before.without_leaf.is_empty() && link.without_leaf.is_empty();
        for finding in check_step(&base, &new) {
            let told = match &finding {
                // It cannot be told without the leaves.
                StepFinding::Changes { .. } => is_whole,
                StepFinding::Chain { .. }
                | StepFinding::Numbers { .. }
                | StepFinding::Time { .. }
                | StepFinding::Epoch { .. } => true,
            };
            if told {
                self.add(Finding::of_step(&finding, blocking.as_ref()));
            }
        }
    }
}
