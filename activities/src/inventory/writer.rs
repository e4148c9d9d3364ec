//! Writing a version (*catalog* §6.6): leaves, then the root, which is the commit point, then `CURRENT`.

mod cached;
mod facts;
mod files;
mod own;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use catalog_rules::ids::Sha256Hex;
use catalog_rules::instant::Instant;
use catalog_rules::inventory::{
    Base, By, CatalogJson, Current, Decision, Document as _, EncodedLeaf, History, Holders, Leaf, Mark, NextVersion,
    Operation, Refusal, RefusedEdition, Retention, Root, Seq, WriterStage, admit_base, check_committed, plan,
    refused_in, store_time,
};
use catalog_rules::layout;
use engine_rules::clock::Clock;
use engine_rules::crash;

use super::error::{InventoryError, LeafFault};
use super::head::{Alert, Found, Head, RootFault, find_base};
use super::init::open_catalog;
use super::leaves::Leaves;
use crate::store::{Create, Delete, Replace, Store};
use cached::{CacheIn, Index};
pub use files::{FolderFiles, ListedFiles, StoreFiles};

/// How many races a writer loses before it says so: far more than there are writers.
const MAX_RACES: u32 = 64;

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

/// What one attempt came to.
enum Attempt {
    Done(Committed),
    /// Another writer was faster, or the version does not count (D1).
    Lost,
}

/// The writer of a catalog's Inventory.
pub struct Writer {
    store: Arc<dyn Store>,
    leaves: Leaves<Leaf>,
    cache: Option<CacheIn>,
    files: Arc<dyn ListedFiles>,
    retention: Retention,
    clock: Option<Arc<dyn Clock>>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("place", &self.store.place()).finish_non_exhaustive()
    }
}

impl Writer {
    /// The writer of the catalog in `store`, with the default windows. Files that an operation has to verify are read
    /// through the store, and the store's clock is not held against another.
    ///
    /// # Errors
    /// [`InventoryError`] when the place is no catalog, of an older layout, or one that this writer may not write to.
    pub fn open(store: Arc<dyn Store>) -> Result<Self, InventoryError> {
        open_catalog(store.as_ref())?.admit_writer(WriterStage::One)?;
        let files = Arc::new(StoreFiles(Arc::clone(&store)));
        let (leaves, retention) = (Leaves::default(), Retention::default());
        Ok(Self { store, leaves, cache: None, files, retention, clock: None })
    }

    /// The same writer with a [`LeafCache`](super::LeafCache) in `folder`, so that it reads the leaves of the products
    /// that change and no other. A cache that cannot be read or written costs time and nothing else.
    #[must_use]
    pub fn cached_in(mut self, folder: PathBuf) -> Self {
        self.cache = Some(CacheIn::new(folder));
        self
    }

    /// The same writer with the configured windows (*catalog* §11.6).
    #[must_use]
    pub fn retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// The same writer, which verifies files by `files`.
    #[must_use]
    pub fn files(mut self, files: Arc<dyn ListedFiles>) -> Self {
        self.files = files;
        self
    }

    /// The same writer, which refuses to work when `clock` is ahead of the store's (D33).
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
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
        let committed = self.commit_under_lock(operation, by);
        self.save_index();
        committed
    }

    fn commit_under_lock(&self, operation: &Operation, by: &By) -> Result<Committed, InventoryError> {
        let _lock = self.store.lock()?;
        let mut last = Seq::FIRST;
        for _ in 0..MAX_RACES {
            let ground = self.ground()?;
            let head = self.head()?;
            ground.admit(&head.root)?;
            match self.attempt(&ground, &head, operation, by)? {
                Attempt::Done(committed) => return Ok(committed),
                Attempt::Lost => last = head.seq(),
            }
        }
        Err(InventoryError::Contended { races: MAX_RACES, seq: last })
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

    /// What says which versions count. Read again for every attempt: a restore may begin at any time.
    fn ground(&self) -> Result<Ground, InventoryError> {
        let catalog = open_catalog(self.store.as_ref())?;
        catalog.admit_writer(WriterStage::One)?;
        Ok(Ground { history: self.history(&catalog)?, catalog })
    }

    fn history(&self, catalog: &CatalogJson) -> Result<Option<History>, InventoryError> {
        if catalog.format_version.major < 2 {
            return Ok(None);
        }
        let Some(bytes) = self.store.get(layout::HISTORY)? else { return Ok(None) };
        let decoded = History::decode(&bytes);
        decoded.map(Some).map_err(|source| InventoryError::Document { path: layout::HISTORY.to_owned(), source })
    }

    /// The newest version, which must be valid and follow the one before it: a version can only follow such a one (D16).
    fn head(&self) -> Result<Head, InventoryError> {
        let Found { head, mut alerts } = find_base(&|path| self.store.get(path))?;
        if let Some((seq, fault)) = Alert::take_blocking(&mut alerts, head.seq()) {
            return Err(InventoryError::HeadInvalid { seq, fault });
        }
        for alert in alerts {
            tracing::warn!(head = %head.seq(), "{alert}");
        }
        Ok(head)
    }

    /// One attempt on `head`.
    fn attempt(&self, ground: &Ground, head: &Head, operation: &Operation, by: &By) -> Result<Attempt, InventoryError> {
        if let Some(own) = by.own_work.as_ref().map(|own| self.own_version(head, own)).transpose()?.flatten() {
            let (mark, refused) = (self.mark(head, operation)?, refused_in(&own.root));
            return self.already(head, &own, mark, refused).map(Attempt::Done);
        }
        match self.decide(ground, head, operation, by)? {
            Decision::Already(done) => self.already(head, head, done.mark, done.refused).map(Attempt::Done),
            Decision::Write(version) => self.write(*version),
        }
    }

    fn decide(&self, ground: &Ground, head: &Head, operation: &Operation, by: &By) -> Result<Decision, InventoryError> {
        let now = self.now()?;
        let (leaves, index) = self.leaves_for(ground, head, operation)?;
        let holders = index.as_ref().and_then(Index::cache).map(|cache| cache as &dyn Holders);
        let base = Base { holders, ..Base::whole(&head.root, &head.root_sha256, &leaves) };
        let facts = self.facts(&base, operation, now)?;
        Ok(plan(&base, ground.catalog.restore_epoch, operation, &facts, by, now)?)
    }

    /// The time that a decision goes by.
    fn now(&self) -> Result<Instant, InventoryError> {
        let now = self.store.now()?;
        match &self.clock {
            Some(clock) => Ok(store_time(now, Instant::from_ms(clock.now_ms()))?),
            None => Ok(now),
        }
    }

    fn write(&self, version: NextVersion) -> Result<Attempt, InventoryError> {
        crash::point("inventory.before_leaves");
        let leaf = |leaf: EncodedLeaf| (layout::leaf(&leaf.sha256), Bytes::from(leaf.bytes));
        let products: Vec<_> = version.leaves.iter().map(|leaf| leaf.product_id.clone()).collect();
        let leaves: Vec<_> = version.leaves.into_iter().map(leaf).collect();
        let created = self.store.create_all(&leaves)?;
        for ((product, (path, _)), created) in products.into_iter().zip(leaves).zip(created) {
            if let Create::Lost(found) = created {
                let fault = LeafFault::Hash { found: Sha256Hex::of(&found) };
                return Err(InventoryError::Leaf { product, path, fault });
            }
        }
        crash::point("inventory.after_leaves");
        let path = layout::root(version.root.seq);
        let root_bytes = Bytes::from(version.root_bytes);
        if let Create::Lost(_) = self.store.create(&path, &root_bytes)? {
            return Ok(Attempt::Lost);
        }
        crash::point("inventory.after_root");
        if let Err(refusal) = self.stands(&version.root)? {
            self.take_back(&version.root, &root_bytes)?;
            return match *refusal {
                // Expiry went by while this writer was at work: it tries once more, on what is the head now.
                Refusal::BaseExpired { .. } => Ok(Attempt::Lost),
                refusal => Err(Box::new(refusal).into()),
            };
        }
        let head = Head { root: version.root, root_sha256: version.root_sha256 };
        advance_current(self.store.as_ref(), &head)?;
        crash::point("inventory.after_current");
        Ok(Attempt::Done(Committed {
            seq: head.seq(),
            root_sha256: head.root_sha256,
            state: version.mark,
            already: false,
            refused: version.refused,
        }))
    }

    /// Whether a version that was just created counts, by `catalog.json` and `HISTORY` as they are now (D1).
    fn stands(&self, created: &Root) -> Result<Result<(), Box<Refusal>>, InventoryError> {
        let catalog = open_catalog(self.store.as_ref())?;
        Ok(check_committed(&catalog, self.history(&catalog)?.as_ref(), created))
    }

    /// Deletes this writer's own root, which does not count, unless a version was built on it.
    fn take_back(&self, created: &Root, bytes: &Bytes) -> Result<(), InventoryError> {
        if self.store.get(&layout::root(created.seq.next()))?.is_some() {
            return Ok(());
        }
        match self.store.delete_if(&layout::root(created.seq), bytes)? {
            Delete::Done | Delete::Absent | Delete::Changed(_) => Ok(()),
        }
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

    /// What `head` knows of the edition that `operation` is about.
    fn mark(&self, head: &Head, operation: &Operation) -> Result<Option<Mark>, InventoryError> {
        let Some((product, edition)) = operation.edition() else { return Ok(None) };
        if let Some(sha256) = head.root.leaf_sha256(product) {
            let leaf = self.leaves.one(&|path| self.store.get(path), product, sha256)?;
            if let Some(entry) = leaf.entry(edition) {
                return Ok(Some(entry.state.into()));
            }
        }
        Ok(head.root.tombstone(product, edition).map(|_| Mark::Tombstone))
    }
}

/// What says which versions count: `catalog.json`, and `HISTORY` on a catalog that expires.
struct Ground {
    catalog: CatalogJson,
    history: Option<History>,
}

impl Ground {
    fn admit(&self, head: &Root) -> Result<(), Box<Refusal>> {
        admit_base(&self.catalog, self.history.as_ref(), head)
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
