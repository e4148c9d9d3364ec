//! Which leaves a decision is given, with an index of the others or without one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use catalog_rules::ids::ProductId;
use catalog_rules::inventory::{Leaf, LeavesNeeded, Operation};

use super::super::cache::LeafCache;
use super::super::error::InventoryError;
use super::super::head::Head;
use super::{Ground, Writer};

/// The index of a writer's catalog, opened when it is needed first.
pub(super) struct CacheIn {
    folder: PathBuf,
    opened: Mutex<Option<LeafCache>>,
}

impl CacheIn {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, opened: Mutex::default() }
    }
}

/// An index that reflects the version asked for, while it is looked at.
pub(super) struct Index<'a>(MutexGuard<'a, Option<LeafCache>>);

impl Index<'_> {
    pub(super) fn cache(&self) -> Option<&LeafCache> {
        self.0.as_ref()
    }
}

/// Leaves by product.
type LeavesByProduct = BTreeMap<ProductId, Arc<Leaf>>;

impl Writer {
    /// The leaves of `head` that a decision on `operation` needs, and the index of the others where they are not all.
    pub(super) fn leaves_for(
        &self,
        ground: &Ground,
        head: &Head,
        operation: &Operation,
    ) -> Result<(LeavesByProduct, Option<Index<'_>>), InventoryError> {
        let named = match operation.leaves_needed() {
            LeavesNeeded::None => return Ok((BTreeMap::new(), None)),
            LeavesNeeded::Of(products) => return Ok((self.leaves_of(head, &products)?, None)),
            LeavesNeeded::All => return Ok((self.all_leaves(head)?, None)),
            LeavesNeeded::Across(products) => Some(products),
            LeavesNeeded::WithEmbargoed => None,
        };
        let index = self.index(ground, head)?;
        let Some(cache) = index.as_ref().and_then(Index::cache) else { return Ok((self.all_leaves(head)?, None)) };
        let mut products = named.unwrap_or_else(|| cache.with_embargoed());
        products.extend(cache.opaque());
        let leaves = self.leaves_of(head, &products)?;
        Ok((leaves, index))
    }

    fn all_leaves(&self, head: &Head) -> Result<LeavesByProduct, InventoryError> {
        self.leaves.all(&|path| self.store.get(path), &head.root)
    }

    /// The leaves of those of `products` that `head` has.
    fn leaves_of(&self, head: &Head, products: &BTreeSet<ProductId>) -> Result<LeavesByProduct, InventoryError> {
        let named = products.iter().filter_map(|product| Some((product, head.root.leaf_sha256(product)?)));
        self.leaves.some(&|path| self.store.get(path), named)
    }

    /// The index of this writer, brought to `head`.
    fn index(&self, ground: &Ground, head: &Head) -> Result<Option<Index<'_>>, InventoryError> {
        let Some(cache) = &self.cache else { return Ok(None) };
        let mut opened = cache.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let index = opened.get_or_insert_with(|| LeafCache::open(&cache.folder, &ground.catalog.catalog_id));
        index.bring_to(&head.root, &head.root_sha256, &|path| self.store.get(path))?;
        Ok(Some(Index(opened)))
    }

    /// Brings the file of the index up to date, if one was asked.
    pub(super) fn save_index(&self) {
        let Some(cache) = &self.cache else { return };
        let mut opened = cache.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = opened.as_mut()
            && let Err(error) = index.save()
        {
            tracing::warn!(path = %index.path().display(), %error, "the leaf cache was not written");
        }
    }
}
