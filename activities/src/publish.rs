//! The activities of the publish and fold workflows on a local catalog, one a file (DESIGN §3).
//!
//! Each is safe to repeat: it recognises its own work and takes it. Each reads what it needs of the catalog itself.

mod abandon;
mod build;
mod check;
mod discard;
mod fold;
mod open;
mod overlays;
mod record;
mod resolve_source;
mod seal;
mod source;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use catalog_rules::contracts::publish::Cause;
use catalog_rules::ids::{EditionId, ProductId};
use catalog_rules::inventory::{By, Mark, OwnWork, Producer};
use catalog_rules::layout;
use engine_rules::activity::ActivityContext;
use engine_rules::clock::Clock;

pub use abandon::{AbandonError, abandon};
pub use build::{BuildError, build};
pub use check::{CheckError, check};
pub use discard::{DiscardError, discard};
pub use fold::{FoldError, fold};
pub use open::{OpenError, open};
pub use overlays::{OverlaysError, read_overlay, resolve_overlays};
pub use record::{RecordError, record};
pub use resolve_source::{ResolveSourceError, resolve_source};
pub use seal::{SealError, seal};

use crate::duck::DuckSettings;
use crate::edition::{ProductFolder, Tools};
use crate::fs::Fs;
use crate::inventory::{FullInventory, InventoryError, Writer, fetch_from};
use crate::store::Store;

/// The points at which a test ends the process, beside those of the modules that the activities call.
pub const CRASH_POINTS: &[&str] = &["publish.record.before_journal_cleared", "publish.record.after_journal_cleared"];

/// What the activities work with: one value for a process.
pub struct PublishDeps {
    catalog: PathBuf,
    store: Arc<dyn Store>,
    fs: Arc<dyn Fs>,
    clock: Arc<dyn Clock>,
    duck: DuckSettings,
    cache: Option<PathBuf>,
    /// The editions that this process sealed: their fingerprints were computed from what it wrote (*edition* §6).
    sealed_here: Mutex<BTreeSet<EditionId>>,
}

impl std::fmt::Debug for PublishDeps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PublishDeps").field("catalog", &self.catalog).finish_non_exhaustive()
    }
}

impl PublishDeps {
    /// The means to publish into the local catalog at `catalog`, which `store` reads and writes.
    #[must_use]
    pub fn new(
        catalog: PathBuf,
        store: Arc<dyn Store>,
        fs: Arc<dyn Fs>,
        clock: Arc<dyn Clock>,
        duck: DuckSettings,
    ) -> Self {
        Self { catalog, store, fs, clock, duck, cache: None, sealed_here: Mutex::default() }
    }

    /// The same with an index over the catalog's leaves in the folder `cache`, by which a version of one product reads
    /// one leaf ([`LeafCache`](crate::inventory::LeafCache)). The folder need not exist, and may be deleted at any time.
    #[must_use]
    pub fn cached_in(mut self, cache: PathBuf) -> Self {
        self.cache = Some(cache);
        self
    }

    fn writer(&self) -> Result<Writer, InventoryError> {
        let writer = Writer::open(Arc::clone(&self.store))?;
        Ok(match &self.cache {
            Some(folder) => writer.cached_in(folder.clone()),
            None => writer,
        })
    }

    fn product(&self, product_id: &ProductId) -> std::io::Result<ProductFolder> {
        ProductFolder::new(&self.catalog.join(layout::product(product_id)))
    }

    fn tools<'a>(&'a self, context: &'a ActivityContext) -> Tools<'a> {
        Tools { fs: self.fs.as_ref(), clock: self.clock.as_ref(), duck: &self.duck, context }
    }

    fn note_sealed(&self, edition: &EditionId) {
        self.sealed_here.lock().unwrap_or_else(PoisonError::into_inner).insert(edition.clone());
    }

    fn was_sealed_here(&self, edition: &EditionId) -> bool {
        self.sealed_here.lock().unwrap_or_else(PoisonError::into_inner).contains(edition)
    }
}

/// This program, as a root or a manifest names it.
#[must_use]
pub fn producer() -> Producer {
    Producer { name: "jobctl".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }
}

/// What the newest version of the Inventory knows of the edition.
fn recorded_as(
    deps: &PublishDeps,
    product_id: &ProductId,
    edition: &EditionId,
) -> Result<Option<Mark>, InventoryError> {
    let inventory = FullInventory::open(fetch_from(Arc::clone(&deps.store)))?;
    Ok(inventory.marks(product_id)?.get(edition).copied())
}

/// What to do about a sealed edition that lost files.
fn restore_hint() -> String {
    "restore the edition's folder from a backup (catalog §10.3); nothing of it is deleted".to_owned()
}

/// Who writes a version, for work of this step. `part` tells apart several versions of one step.
fn by(ctx: &ActivityContext, cause: &Cause, part: Option<&EditionId>) -> By {
    let step = match part {
        Some(edition) => format!("{}/{edition}", ctx.step),
        None => ctx.step.clone(),
    };
    By {
        actor: cause.actor.clone(),
        reason: cause.reason.clone(),
        producer: producer(),
        own_work: Some(OwnWork { run_id: ctx.run_id.clone(), step }),
    }
}
