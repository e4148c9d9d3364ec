//! Writing a version (*catalog* §6.6): leaves, then the root, which is the commit point, then `CURRENT`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use catalog_rules::ids::{EditionId, ProductId, Sha256Hex};
use catalog_rules::instant::Instant;
use catalog_rules::inventory::{
    ArtefactRecords, Base, By, Current, Decision, Facts, Leaf, LeavesNeeded, MAX_BASE_AHEAD_MS, ManifestFacts, Mark,
    NextVersion, Operation, OwnWork, Refusal, RefusedEdition, Seq, WriterStage, artefact_records, needs, plan,
    refused_in,
};
use catalog_rules::layout;
use catalog_rules::manifest::Manifest;
use engine_rules::crash;
use uuid::Uuid;

use super::error::InventoryError;
use super::head::{Alert, Head, RootFault, find_head};
use super::init::open_catalog;
use super::reader::LeafCache;
use crate::store::{Create, Replace, Store};

/// How many races a writer loses before it says so: far more than there are writers.
const MAX_RACES: u32 = 64;

/// How many versions back a writer looks for its own root, when the run's id does not tell when the run began.
const OWN_WORK_DEPTH: u32 = 256;

/// What became of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The version that did it; when somebody else had done it, the newest version.
    pub seq: Seq,
    /// The SHA-256 of that version's root.
    pub root_sha256: Sha256Hex,
    /// What the newest version knows of the edition; `None` for an operation without one.
    pub state: Option<Mark>,
    /// Whether it was done before, by this step or by somebody else, so that nothing was written now.
    pub already: bool,
    /// The editions that a batch refused, by product; they are persisted with the version (*catalog* §6.4).
    pub refused: Vec<RefusedEdition>,
}

/// The writer of a catalog's Inventory.
pub struct Writer {
    store: Arc<dyn Store>,
    leaves: LeafCache,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("place", &self.store.place()).finish_non_exhaustive()
    }
}

impl Writer {
    /// The writer of the catalog in `store`.
    ///
    /// # Errors
    /// [`InventoryError`] when the place is no catalog, of an older layout, or one that this writer may not write to.
    pub fn open(store: Arc<dyn Store>) -> Result<Self, InventoryError> {
        open_catalog(store.as_ref())?.admit_writer(WriterStage::One)?;
        Ok(Self { store, leaves: LeafCache::default() })
    }

    /// Carries out `operation` in one version of the Inventory, under the catalog's lock, and brings `CURRENT` forward.
    ///
    /// Every precondition is evaluated against the newest version, and again after each lost race. Safe to repeat: a
    /// root that the same step of the same run wrote, and an edition that is recorded or retired, are recognised, and
    /// nothing is written again.
    ///
    /// # Errors
    /// [`InventoryError::Refused`] by a rule of the catalog, with nothing written; [`InventoryError`] otherwise.
    pub fn commit(&self, operation: &Operation, by: &By) -> Result<Committed, InventoryError> {
        let _lock = self.store.lock()?;
        let catalog = open_catalog(self.store.as_ref())?;
        catalog.admit_writer(WriterStage::One)?;
        let mut last = None;
        for _ in 0..MAX_RACES {
            let head = self.head()?;
            if head.root.restore_epoch != catalog.restore_epoch {
                return Err(InventoryError::UnfinishedRestore {
                    catalog: catalog.restore_epoch,
                    seq: head.seq(),
                    root: head.root.restore_epoch,
                });
            }
            if let Some(committed) = self.try_commit(&head, operation, by)? {
                return Ok(committed);
            }
            last = Some(head.seq());
        }
        Err(InventoryError::Contended { races: MAX_RACES, seq: last.unwrap_or(Seq::FIRST) })
    }

    /// Brings `CURRENT` up to the newest version, as a release does when it starts (*catalog* §6.6).
    ///
    /// # Errors
    /// [`InventoryError`] when the head is not valid or the store fails.
    pub fn advance_current(&self) -> Result<Seq, InventoryError> {
        let _lock = self.store.lock()?;
        let head = self.head()?;
        advance_current(self.store.as_ref(), &head)?;
        Ok(head.seq())
    }

    /// The newest version, which must be valid: a version can only follow the one before it (D16).
    fn head(&self) -> Result<Head, InventoryError> {
        let found = find_head(&|path| self.store.get(path), None)?;
        for alert in found.alerts {
            match alert {
                Alert::InvalidRoot { seq, fault } if seq > found.head.seq() => {
                    return Err(InventoryError::HeadInvalid { seq, fault });
                }
                Alert::InvalidRoot { .. }
                | Alert::CurrentMissing
                | Alert::CurrentUnreadable
                | Alert::CurrentAbsent { .. }
                | Alert::OlderEpoch { .. } => tracing::warn!(head = %found.head.seq(), "{alert}"),
            }
        }
        Ok(found.head)
    }

    /// One attempt on `head`; `None` when another writer was faster.
    fn try_commit(&self, head: &Head, operation: &Operation, by: &By) -> Result<Option<Committed>, InventoryError> {
        if let Some(own) = by.own_work.as_ref().map(|own| self.own_version(head, own)).transpose()?.flatten() {
            let refused = refused_in(&own.root);
            return self.already(head, &own, self.mark(head, operation)?, refused).map(Some);
        }
        let now = self.store.now()?;
        let leaves = self.leaves_for(head, operation)?;
        let base = Base::whole(&head.root, &head.root_sha256, &leaves);
        let facts = self.facts(&base, operation, now)?;
        match plan(&base, head.root.restore_epoch, operation, &facts, by, now)? {
            Decision::Already(done) => self.already(head, head, done.mark, done.refused).map(Some),
            Decision::Write(version) => self.write(*version),
        }
    }

    /// The leaves of `head` that a decision on `operation` needs.
    fn leaves_for(&self, head: &Head, operation: &Operation) -> Result<BTreeMap<ProductId, Arc<Leaf>>, InventoryError> {
        let fetch = |path: &str| self.store.get(path);
        match operation.leaves_needed() {
            LeavesNeeded::None => Ok(BTreeMap::new()),
            // No index is kept of who holds which artefact, so every leaf is read.
            LeavesNeeded::All | LeavesNeeded::Across(_) => self.leaves.leaves(&fetch, &head.root),
            LeavesNeeded::Of(products) => {
                let named = products.into_iter().filter_map(|product| {
                    let sha256 = head.root.leaf_sha256(&product)?;
                    Some(self.leaves.leaf(&fetch, &product, sha256).map(|leaf| (product, leaf)))
                });
                named.collect()
            }
        }
    }

    fn write(&self, version: NextVersion) -> Result<Option<Committed>, InventoryError> {
        crash::point("inventory.before_leaves");
        for leaf in version.leaves {
            let path = layout::leaf(&leaf.sha256);
            if let Create::Lost(found) = self.store.create(&path, &Bytes::from(leaf.bytes))? {
                let fault = super::error::LeafFault::Hash { found: Sha256Hex::of(&found) };
                return Err(InventoryError::Leaf { product: leaf.product_id, path, fault });
            }
        }
        crash::point("inventory.after_leaves");
        let path = layout::root(version.root.seq);
        if let Create::Lost(_) = self.store.create(&path, &Bytes::from(version.root_bytes))? {
            return Ok(None);
        }
        crash::point("inventory.after_root");
        let head = Head { root: version.root, root_sha256: version.root_sha256 };
        advance_current(self.store.as_ref(), &head)?;
        crash::point("inventory.after_current");
        Ok(Some(Committed {
            seq: head.seq(),
            root_sha256: head.root_sha256,
            state: version.mark,
            already: false,
            refused: version.refused,
        }))
    }

    /// What was done before: the newest version is made durable, since a crash may have come before that, and
    /// `CURRENT` is brought up to it.
    fn already(
        &self,
        head: &Head,
        by: &Head,
        state: Option<Mark>,
        refused: Vec<RefusedEdition>,
    ) -> Result<Committed, InventoryError> {
        self.store.persist(&layout::root(head.seq()))?;
        advance_current(self.store.as_ref(), head)?;
        Ok(Committed { seq: by.seq(), root_sha256: by.root_sha256.clone(), state, already: true, refused })
    }

    /// The version that this step of this run wrote, looking back to when the run began.
    fn own_version(&self, head: &Head, own: &OwnWork) -> Result<Option<Head>, InventoryError> {
        let began = Uuid::parse_str(&own.run_id).ok().and_then(|id| id.get_timestamp()).map(|at| {
            let (seconds, nanos) = at.to_unix();
            let ms = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000) + i64::from(nanos / 1_000_000);
            Instant::from_ms(ms.saturating_sub(MAX_BASE_AHEAD_MS))
        });
        let mut depth = 0;
        let (mut seq, mut version) = (head.seq(), Some(head.clone()));
        loop {
            if let Some(version) = version.take() {
                if own.wrote(&version.root) {
                    return Ok(Some(version));
                }
                if began.is_some_and(|began| version.root.created_at < began) {
                    return Ok(None);
                }
            }
            depth += 1;
            let before = seq.before().filter(|_| began.is_some() || depth < OWN_WORK_DEPTH);
            let Some(before) = before else { return Ok(None) };
            seq = before;
            let Some(bytes) = self.store.get(&layout::root(seq))? else { return Ok(None) };
            // One that is damaged is passed over: what it recorded, the leaves tell.
            version = Head::decode(seq, &bytes).ok();
        }
    }

    /// What `head` knows of the edition that `operation` is about.
    fn mark(&self, head: &Head, operation: &Operation) -> Result<Option<Mark>, InventoryError> {
        let Operation::Record(record) = operation else { return Ok(None) };
        let (product, edition) = (&record.product_id, &record.entry.edition_id);
        if let Some(sha256) = head.root.leaf_sha256(product) {
            let leaf = self.leaves.leaf(&|path| self.store.get(path), product, sha256)?;
            if let Some(entry) = leaf.entry(edition) {
                return Ok(Some(entry.state.into()));
            }
        }
        Ok(head.root.tombstone(product, edition).map(|_| Mark::Tombstone))
    }

    /// What the rules ask for beyond the Inventory: manifests as they are now, and the records of entries that lack
    /// them.
    fn facts(&self, base: &Base<'_>, operation: &Operation, now: Instant) -> Result<Facts, InventoryError> {
        let mut facts = Facts::default();
        let needs = needs(base, operation, &facts, now);
        for (product, edition) in needs.manifests {
            if let Some(bytes) = self.store.get(&layout::manifest(&product, &edition))? {
                facts.manifests.insert(edition, ManifestFacts::of(&bytes));
            }
        }
        for (product, edition) in needs.records {
            let entry = base.leaf(&product).and_then(|leaf| leaf.entry(&edition));
            let Some(sha256) = entry.map(|entry| &entry.manifest_sha256) else { continue };
            if let Some(found) = self.records(&product, &edition, sha256)? {
                facts.records.insert(edition, found);
            }
        }
        Ok(facts)
    }

    fn records(
        &self,
        product: &ProductId,
        edition: &EditionId,
        sha256: &Sha256Hex,
    ) -> Result<Option<ArtefactRecords>, InventoryError> {
        let manifest = self.manifest(product, edition, sha256)?;
        Ok(manifest.as_ref().map(artefact_records).transpose()?)
    }

    /// The manifest of a recorded edition; `None` when it is not there or not readable, which the rules then refuse.
    fn manifest(
        &self,
        product: &ProductId,
        edition: &EditionId,
        sha256: &Sha256Hex,
    ) -> Result<Option<Manifest>, InventoryError> {
        let Some(bytes) = self.store.get(&layout::manifest(product, edition))? else { return Ok(None) };
        let found = Sha256Hex::of(&bytes);
        if found != *sha256 {
            let (product, edition, expected) = (product.clone(), edition.clone(), sha256.clone());
            return Err(Box::new(Refusal::ManifestDiffers { product, edition, found, expected }).into());
        }
        Ok(Manifest::decode(&bytes).ok())
    }
}

/// Brings `CURRENT` up to `head`, forward only (*catalog* §6.6). A hint that names a version which is not there, or not
/// as it says, counts as missing (D32). The caller holds the catalog's lock, where there is one.
///
/// # Errors
/// [`InventoryError::Store`] when the store fails; the version stands all the same, and the next writer or reader finds
/// it without the hint.
pub fn advance_current(store: &dyn Store, head: &Head) -> Result<(), InventoryError> {
    let new = Bytes::from(head.current().encode());
    let mut found = store.get(layout::CURRENT)?;
    for _ in 0..MAX_RACES {
        if found.as_ref() == Some(&new) {
            return Ok(());
        }
        let hint = found.as_deref().and_then(Current::decode);
        if let Some(hint) = hint.filter(|hint| (hint.restore_epoch, hint.seq) > (head.root.restore_epoch, head.seq()))
            && let Some(bytes) = store.get(&layout::root(hint.seq))?
            && hint.root_sha256 == Sha256Hex::of(&bytes)
        {
            return Ok(());
        }
        match store.replace(layout::CURRENT, found.as_ref(), &new)? {
            Replace::Done => return Ok(()),
            Replace::Changed(now) => found = now,
        }
    }
    Err(InventoryError::Contended { races: MAX_RACES, seq: head.seq() })
}

impl Head {
    /// The version that `bytes` of root `seq` hold, for callers that read a root by themselves.
    ///
    /// # Errors
    /// [`RootFault`] when they are not a valid root of that version.
    pub fn from_bytes(seq: Seq, bytes: &[u8]) -> Result<Self, RootFault> {
        Self::decode(seq, bytes)
    }
}
