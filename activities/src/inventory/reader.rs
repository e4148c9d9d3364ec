//! Readers of the Inventory, over a function that fetches (*catalog* §6.4, The live view).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use catalog_rules::ids::{EditionId, ProductId, Sha256Hex};
use catalog_rules::instant::Instant;
use catalog_rules::inventory::{
    ArtefactRecords, EntryState, Kind, Leaf, LeafEntry, MAX_BASE_AHEAD_MS, Mark, Root, SchemaVersion, Seq, written_by,
};
use catalog_rules::layout;

use super::error::InventoryError;
use super::head::{Alert, Head, find_head};
use super::leaves::{Kept, Leaves};
use crate::store::{Store, StoreError};

/// How a reader gets an object: its bytes, or `None` when there is none.
pub type Fetch = Box<dyn Fn(&str) -> Result<Option<Bytes>, StoreError> + Send + Sync>;

/// A [`Fetch`] that asks `store`.
#[must_use]
pub fn fetch_from(store: Arc<dyn Store>) -> Fetch {
    Box::new(move |path| store.get(path))
}

struct Chain<T> {
    fetch: Fetch,
    head: Head,
    leaves: Leaves<T>,
    alerts: Vec<Alert>,
}

impl<T: Kept> Chain<T> {
    fn open(fetch: Fetch) -> Result<Self, InventoryError> {
        let found = find_head(&fetch, None)?;
        Ok(Self { fetch, head: found.head, leaves: Leaves::default(), alerts: found.alerts })
    }

    /// Looks for a newer version. On an error the last one stays.
    fn refresh(&mut self) -> Result<bool, InventoryError> {
        let found = find_head(&self.fetch, Some(self.head.clone()))?;
        let moved = found.head.root_sha256 != self.head.root_sha256;
        self.head = found.head;
        self.alerts = found.alerts;
        if moved {
            self.leaves.keep(&self.head.root);
        }
        Ok(moved)
    }

    fn leaf(&self, root: &Root, product: &ProductId) -> Result<Option<Arc<T>>, InventoryError> {
        root.leaf_sha256(product).map(|sha256| self.leaves.one(&self.fetch, product, sha256)).transpose()
    }

    fn all(&self) -> Result<BTreeMap<ProductId, Arc<T>>, InventoryError> {
        self.leaves.all(&self.fetch, &self.head.root)
    }
}

/// A live edition, as routing needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveEdition {
    /// The product.
    pub product_id: ProductId,
    /// What the product holds.
    pub kind: Kind,
    /// The edition.
    pub edition_id: EditionId,
    /// The SHA-256 of its manifest: verify it before anything else of the edition is read.
    pub manifest_sha256: Sha256Hex,
    /// The store schema that it was written at.
    pub schema_version: SchemaVersion,
    /// When it went live.
    pub live_since: Instant,
    /// The dataflows of its bindings; `None` in entries of older writers.
    pub dataflows: Option<Vec<String>>,
    /// The bytes of its required files; `None` in entries of older writers.
    pub pull_bytes: Option<u64>,
    /// Its artefact records; `None` in entries of older writers.
    pub artefacts: Option<ArtefactRecords>,
}

/// The live editions of a leaf: all that a reader of the live view keeps of it.
struct LiveLeaf {
    product_id: ProductId,
    editions: Vec<LiveEdition>,
}

impl Kept for LiveLeaf {
    fn of(leaf: Leaf) -> Self {
        let Leaf { product_id, kind, editions, .. } = leaf;
        let live = editions.into_iter().filter(|entry| entry.state == EntryState::Live).map(|entry| LiveEdition {
            product_id: product_id.clone(),
            kind,
            edition_id: entry.edition_id,
            manifest_sha256: entry.manifest_sha256,
            schema_version: entry.schema_version,
            live_since: entry.state_changed_at,
            dataflows: entry.dataflows,
            pull_bytes: entry.pull_bytes,
            artefacts: entry.artefacts,
        });
        Self { editions: live.collect(), product_id }
    }

    fn product(&self) -> &ProductId {
        &self.product_id
    }
}

/// What the public may see: live editions and nothing else. A product without one is not in it.
pub struct LiveInventory(Chain<LiveLeaf>);

impl fmt::Debug for LiveInventory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveInventory").field("seq", &self.seq()).finish_non_exhaustive()
    }
}

impl LiveInventory {
    /// Reads the newest version.
    ///
    /// # Errors
    /// [`InventoryError`] when there is none, or the store cannot tell.
    pub fn open(fetch: Fetch) -> Result<Self, InventoryError> {
        Chain::open(fetch).map(Self)
    }

    /// Looks for a newer version, and says whether there is one. On an error the last one stays.
    ///
    /// # Errors
    /// [`InventoryError`] when the store cannot tell, or the fallback fails closed.
    pub fn refresh(&mut self) -> Result<bool, InventoryError> {
        self.0.refresh()
    }

    /// The version that is shown.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.0.head.seq()
    }

    /// What the last look passed over.
    #[must_use]
    pub fn alerts(&self) -> &[Alert] {
        &self.0.alerts
    }

    /// The live editions of `product`, one a schema version.
    ///
    /// # Errors
    /// [`InventoryError::Leaf`] when the product's leaf is missing or damaged.
    pub fn product(&self, product: &ProductId) -> Result<Vec<LiveEdition>, InventoryError> {
        let leaf = self.0.leaf(&self.0.head.root, product)?;
        Ok(leaf.map(|leaf| leaf.editions.clone()).unwrap_or_default())
    }

    /// The head of `product` for readers of `schema_version`.
    ///
    /// # Errors
    /// [`InventoryError::Leaf`] when the product's leaf is missing or damaged.
    pub fn head(
        &self,
        product: &ProductId,
        schema_version: &SchemaVersion,
    ) -> Result<Option<LiveEdition>, InventoryError> {
        let leaf = self.0.leaf(&self.0.head.root, product)?;
        Ok(leaf.and_then(|leaf| leaf.editions.iter().find(|live| live.schema_version == *schema_version).cloned()))
    }

    /// All live editions, by product.
    ///
    /// # Errors
    /// [`InventoryError::Leaf`] when a leaf is missing or damaged.
    pub fn editions(&self) -> Result<Vec<LiveEdition>, InventoryError> {
        Ok(self.0.all()?.values().flat_map(|leaf| leaf.editions.iter().cloned()).collect())
    }
}

/// Everything, embargoed editions included: for jobs and operators only.
pub struct FullInventory(Chain<Leaf>);

impl fmt::Debug for FullInventory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FullInventory").field("seq", &self.head().seq()).finish_non_exhaustive()
    }
}

impl FullInventory {
    /// Reads the newest version.
    ///
    /// # Errors
    /// [`InventoryError`] when there is none, or the store cannot tell.
    pub fn open(fetch: Fetch) -> Result<Self, InventoryError> {
        Chain::open(fetch).map(Self)
    }

    /// Looks for a newer version, and says whether there is one. On an error the last one stays.
    ///
    /// # Errors
    /// [`InventoryError`] when the store cannot tell, or the fallback fails closed.
    pub fn refresh(&mut self) -> Result<bool, InventoryError> {
        self.0.refresh()
    }

    /// The newest version.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.0.head
    }

    /// This version for one who goes on from it: nothing that is not valid stands above it (D16).
    ///
    /// # Errors
    /// [`InventoryError::HeadInvalid`] with the lowest version that does.
    pub fn as_base(mut self) -> Result<Self, InventoryError> {
        match Alert::take_blocking(&mut self.0.alerts, self.0.head.seq()) {
            Some((seq, fault)) => Err(InventoryError::HeadInvalid { seq, fault }),
            None => Ok(self),
        }
    }

    /// What the last look passed over.
    #[must_use]
    pub fn alerts(&self) -> &[Alert] {
        &self.0.alerts
    }

    /// The leaf of `product` in the newest version.
    ///
    /// # Errors
    /// [`InventoryError::Leaf`] when it is missing or damaged.
    pub fn leaf(&self, product: &ProductId) -> Result<Option<Arc<Leaf>>, InventoryError> {
        self.0.leaf(&self.0.head.root, product)
    }

    /// All leaves of the newest version.
    ///
    /// # Errors
    /// [`InventoryError::Leaf`] when one is missing or damaged.
    pub fn leaves(&self) -> Result<BTreeMap<ProductId, Arc<Leaf>>, InventoryError> {
        self.0.all()
    }

    /// What the newest version knows of the editions of `product`: states and tombstones.
    ///
    /// # Errors
    /// [`InventoryError::Leaf`] when the product's leaf is missing or damaged.
    pub fn marks(&self, product: &ProductId) -> Result<BTreeMap<EditionId, Mark>, InventoryError> {
        marks(&self.0, &self.0.head.root, product)
    }

    /// Version `seq`, or `None` when its root is not there.
    ///
    /// # Errors
    /// [`InventoryError::VersionInvalid`] when its root is not valid.
    pub fn version(&self, seq: Seq) -> Result<Option<Head>, InventoryError> {
        if seq == self.0.head.seq() {
            return Ok(Some(self.0.head.clone()));
        }
        let Some(bytes) = (self.0.fetch)(&layout::root(seq))? else { return Ok(None) };
        Head::decode(seq, &bytes).map(Some).map_err(|fault| InventoryError::VersionInvalid { seq, fault })
    }

    /// The version that was the newest at `at`, or `None` when there was none yet or its root is not there any more. A
    /// root that is not valid is passed over, as a reader of that time did.
    ///
    /// # Errors
    /// [`InventoryError::Store`] when the store cannot tell.
    pub fn version_at(&self, at: Instant) -> Result<Option<Head>, InventoryError> {
        let mut next = Some(self.0.head.seq());
        while let Some(seq) = next {
            match self.version(seq) {
                Ok(Some(version)) if version.root.created_at <= at => return Ok(Some(version)),
                Ok(Some(_)) | Err(InventoryError::VersionInvalid { .. }) => next = seq.before(),
                Ok(None) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The versions that the run `run_id` wrote, newest first, looking back to `since`: what stands of a run that was
    /// ended in the middle. Versions that cannot be read are passed over.
    ///
    /// # Errors
    /// [`InventoryError::Store`] when the store cannot tell.
    pub fn written_by(&self, run_id: &str, since: Instant) -> Result<Vec<Head>, InventoryError> {
        let since = since.plus_ms(-MAX_BASE_AHEAD_MS);
        let (mut found, mut next) = (Vec::new(), Some(self.head().seq()));
        while let Some(seq) = next {
            match self.version(seq) {
                Ok(None) => break,
                Ok(Some(version)) if version.root.created_at < since => break,
                Ok(Some(version)) if written_by(&version.root, run_id).is_some() => found.push(version),
                Ok(Some(_)) | Err(InventoryError::VersionInvalid { .. }) => {}
                Err(error) => return Err(error),
            }
            next = seq.before();
        }
        Ok(found)
    }

    /// The leaves of `products` in `version`, which need not be the newest; products that it does not have are left out.
    ///
    /// # Errors
    /// [`InventoryError::Leaf`] when one is missing or damaged.
    pub fn leaves_in<'a>(
        &self,
        version: &Head,
        products: impl IntoIterator<Item = &'a ProductId>,
    ) -> Result<BTreeMap<ProductId, Arc<Leaf>>, InventoryError> {
        let named = products.into_iter().filter_map(|product| Some((product, version.root.leaf_sha256(product)?)));
        self.0.leaves.some(&self.0.fetch, named)
    }

    /// The newest version that names `edition` of `product`, in a leaf or as a tombstone; versions from before the
    /// edition was minted are not looked at (*catalog* §6.7: "no Inventory version within retention names it").
    ///
    /// # Errors
    /// [`InventoryError`] when a root or a leaf cannot be read.
    pub fn newest_naming(&self, product: &ProductId, edition: &EditionId) -> Result<Option<Seq>, InventoryError> {
        // A version that names it was written after it was minted, by a clock at most so far behind.
        let minted_ms = i64::try_from(edition.minted_at_ms()).unwrap_or(i64::MAX);
        let since = Instant::from_ms(minted_ms.saturating_sub(MAX_BASE_AHEAD_MS));
        let mut next = Some(self.0.head.seq());
        while let Some(version) = next.map(|seq| self.version(seq)).transpose()?.flatten() {
            if version.root.created_at < since {
                break;
            }
            if marks(&self.0, &version.root, product)?.contains_key(edition) {
                return Ok(Some(version.seq()));
            }
            next = version.seq().before();
        }
        Ok(None)
    }

    /// The embargoed editions, by product, with the time at which each may be released.
    ///
    /// # Errors
    /// [`InventoryError::Leaf`] when a leaf is missing or damaged.
    pub fn embargoed(&self) -> Result<Vec<(ProductId, LeafEntry)>, InventoryError> {
        let embargoed = |leaf: &Arc<Leaf>| {
            let entries = leaf.editions.iter().filter(|entry| entry.state == EntryState::Embargoed);
            entries.map(|entry| (leaf.product_id.clone(), entry.clone())).collect::<Vec<_>>()
        };
        Ok(self.leaves()?.values().flat_map(embargoed).collect())
    }
}

fn marks(chain: &Chain<Leaf>, root: &Root, product: &ProductId) -> Result<BTreeMap<EditionId, Mark>, InventoryError> {
    let tombstones = root.retired.iter().filter(|tombstone| tombstone.product_id == *product);
    let mut marks: BTreeMap<_, _> =
        tombstones.map(|tombstone| (tombstone.edition_id.clone(), Mark::Tombstone)).collect();
    if let Some(leaf) = chain.leaf(root, product)? {
        marks.extend(leaf.editions.iter().map(|entry| (entry.edition_id.clone(), entry.state.into())));
    }
    Ok(marks)
}
