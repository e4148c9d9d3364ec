//! A new edition over the same data files, with other artefacts (*edition* §5.6).

use std::fs;
use std::path::Path;

use catalog_rules::ids::{EditionId, ProductId};
use catalog_rules::manifest::{Manifest, STORE_NAME};
use catalog_rules::sdmx::model::Artefact;
use engine_rules::crash;
use engine_rules::failure::{ActivityError as _, Disposition, Failure};

use super::Tools;
use super::build::{begin, carry_lazy, refuse_damaged, refuse_unless_next};
use super::error::{EditionError, io_error};
use super::layout::{EditionFolder, ProductFolder};
use super::list::discard;
use super::reader::{read_manifest, refuse_versions};
use crate::duck::{Access, STORE, Session};
use crate::metadata_store::{Form, MetadataStore, compact};

/// Which edition is folded into which.
#[derive(Clone, Copy)]
pub struct FoldOrder<'a> {
    /// The product's folder.
    pub product_dir: &'a Path,
    /// The product.
    pub product_id: &'a ProductId,
    /// The new edition. The caller minted it.
    pub edition_id: &'a EditionId,
    /// The sealed edition that is folded.
    pub previous: &'a EditionId,
    /// Given every artefact of the folded edition, those that are others now. Their URNs are those that they had.
    pub change: &'a dyn Fn(Vec<Artefact>) -> Result<Vec<Artefact>, Failure>,
}

impl std::fmt::Debug for FoldOrder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FoldOrder")
            .field("product_dir", &self.product_dir)
            .field("edition_id", &self.edition_id)
            .field("previous", &self.previous)
            .finish_non_exhaustive()
    }
}

/// What a fold did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Folded {
    /// The artefacts that were replaced.
    pub replaced: u64,
}

/// Builds the unsealed edition `edition_id`: the store of `previous` with the changed artefacts in place of those of
/// their URNs, and a copy of its lake's catalog, byte for byte, so that it reads the same data files. Bindings and lazy
/// files are those of `previous`. A half-written edition of the same id is discarded first, so it is safe to repeat.
///
/// The artefacts are changed and stored before anything in the product's folder changes: a change that is refused leaves
/// it byte for byte as it was.
///
/// # Errors
/// As [`build`](super::build); [`EditionError::Source`] with the refusal of the change.
pub fn fold(tools: &Tools<'_>, order: &FoldOrder<'_>) -> Result<Folded, EditionError> {
    let product = ProductFolder::new(order.product_dir).map_err(io_error("find", order.product_dir))?;
    let folder = product.edition(order.edition_id);
    refuse_unless_next(&product, order.edition_id)?;
    let from = product.edition(order.previous);
    let manifest = read_manifest(&from, order.product_id, order.previous)?;
    refuse_damaged(order.previous, &from, &manifest)?;
    let mut session = Session::open_on_disk(tools.duck, &format!("fold-{}", order.edition_id))?;
    session.heed(&tools.context.cancel);
    refuse_versions(&session, &from, &manifest)?;

    let store = session.scratch().join(STORE_NAME);
    // The sealed store has lost the keys that guard writing; its copy gets them back.
    compact(session.connection(), &from.store(), &store, Form::Keyed)?;
    session.attach(&store, STORE, Access::Write)?;
    let metadata = MetadataStore::new(session.connection(), STORE);
    let changed = (order.change)(metadata.read_artefacts()?).map_err(EditionError::Source)?;
    metadata.write_artefacts(&changed)?;
    metadata.set_edition(order.edition_id, Some(order.previous))?;
    session.detach(STORE)?;
    if tools.context.cancel.is_cancelled() {
        return Err(EditionError::Cancelled);
    }
    crash::point("edition.build.staged");

    begin(tools, &product, order.edition_id)?;
    let filled = fill(&from, &manifest, &folder, &store);
    if filled.as_ref().is_err_and(|error| error.disposition() == Disposition::Terminal) {
        // Nobody will go on with it, and it would keep the next build out.
        discard(tools.fs, product.path(), order.edition_id)?;
    }
    filled.map(|()| Folded { replaced: changed.len() as u64 })
}

/// Fills the edition's folder.
fn fill(from: &EditionFolder, manifest: &Manifest, folder: &EditionFolder, store: &Path) -> Result<(), EditionError> {
    fs::copy(store, folder.store()).map_err(io_error("write", &folder.store()))?;
    crash::point("edition.build.artefacts_written");
    if from.lake().exists() {
        fs::copy(from.lake(), folder.lake()).map_err(io_error("write", &folder.lake()))?;
    }
    carry_lazy(from, manifest, folder)?;
    crash::point("edition.build.rows_written");
    Ok(())
}
