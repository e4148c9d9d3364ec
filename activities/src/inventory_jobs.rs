//! The activities of the operations on the Inventory, one a file (*catalog* §6.4, DESIGN §3).
//!
//! What a step settles before a version is written (which editions are live, what is old enough) is recorded as ids; the
//! one that writes reads the head itself, holds every rule against it, and recognises its own work.

mod advance_current;
mod commit;
mod find_retirable;
mod find_ripples;
mod live_editions;
mod preflight;
mod read_manifest;
mod rollback_moves;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use catalog_rules::ids::{EditionId, ProductId};
use catalog_rules::inventory::{Leaf, Refusal, Retention, TransitionRefusal};
use engine_rules::clock::Clock;

pub use advance_current::advance_current;
pub use commit::commit;
pub use find_retirable::find_retirable;
pub use find_ripples::{RipplesError, find_ripples};
pub use live_editions::live_editions;
pub use preflight::preflight;
pub use read_manifest::read_manifest;
pub use rollback_moves::rollback_moves;

use crate::inventory::{FolderFiles, FullInventory, InventoryError, Writer, fetch_from};
use crate::store::Store;

/// What the activities work with: one value for a process.
pub struct InventoryDeps {
    catalog: PathBuf,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    retention: Retention,
    cache: Option<PathBuf>,
}

impl std::fmt::Debug for InventoryDeps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InventoryDeps").field("catalog", &self.catalog).finish_non_exhaustive()
    }
}

impl InventoryDeps {
    /// The means to change the Inventory of the local catalog at `catalog`, which `store` reads and writes.
    #[must_use]
    pub fn new(catalog: PathBuf, store: Arc<dyn Store>, clock: Arc<dyn Clock>, retention: Retention) -> Self {
        Self { catalog, store, clock, retention, cache: None }
    }

    /// The same with an index over the catalog's leaves in the folder `cache`, by which a decision reads the leaves of
    /// the products that change ([`LeafCache`](crate::inventory::LeafCache)). The folder need not exist, and may be
    /// deleted at any time.
    #[must_use]
    pub fn cached_in(mut self, cache: PathBuf) -> Self {
        self.cache = Some(cache);
        self
    }

    fn writer(&self) -> Result<Writer, InventoryError> {
        let writer = Writer::open(Arc::clone(&self.store))?;
        let files = Arc::new(FolderFiles(self.catalog.clone()));
        let writer = writer.retention(self.retention.clone()).files(files).clock(Arc::clone(&self.clock));
        Ok(match &self.cache {
            Some(folder) => writer.cached_in(folder.clone()),
            None => writer,
        })
    }

    /// The newest version, which must be valid: what is settled on an older one would not be what a writer finds (D16).
    fn inventory(&self) -> Result<FullInventory, InventoryError> {
        FullInventory::open(fetch_from(Arc::clone(&self.store)))?.as_base()
    }
}

/// The leaf of a product that the Inventory must know.
fn known_leaf(inventory: &FullInventory, product: &ProductId) -> Result<Arc<Leaf>, InventoryError> {
    inventory
        .leaf(product)?
        .ok_or_else(|| Box::<Refusal>::from(TransitionRefusal::UnknownProduct { product: product.clone() }).into())
}

/// What is live of the product is what the caller saw, where they said what that was (*catalog* §6.4, `if_live`).
fn check_if_live(leaf: &Leaf, if_live: &BTreeSet<EditionId>) -> Result<(), InventoryError> {
    let found: Vec<_> = leaf.live().map(|entry| entry.edition_id.clone()).collect();
    if if_live.is_empty() || found.iter().all(|edition| if_live.contains(edition)) {
        return Ok(());
    }
    let (product, expected) = (leaf.product_id.clone(), if_live.iter().cloned().collect());
    Err(Box::<Refusal>::from(TransitionRefusal::LiveChanged { product, expected, found }).into())
}
