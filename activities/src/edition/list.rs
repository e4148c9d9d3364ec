//! Which editions a product has, and the end of an unsealed one (*edition* §1).

use std::fs;
use std::path::Path;

use catalog_rules::ids::EditionId;
use catalog_rules::manifest::{Manifest, ManifestError};

use super::error::{EditionError, io_error};
use super::layout::{EditionFolder, ProductFolder};
use crate::fs::{Fs, remove_durably};

/// An edition found in a product's folder.
#[derive(Debug)]
pub struct ListedEdition {
    /// Its id, by its folder's name.
    pub edition_id: EditionId,
    /// What its manifest says.
    pub state: EditionState,
}

impl ListedEdition {
    /// When the edition's build started, in milliseconds since 1970: the id carries it.
    #[must_use]
    pub fn started_at_ms(&self) -> u64 {
        self.edition_id.minted_at_ms()
    }
}

/// Whether an edition is sealed.
#[derive(Debug)]
pub enum EditionState {
    /// It has this manifest.
    Sealed(Box<Manifest>),
    /// It has none: it is being built, or its build was interrupted.
    Unsealed,
    /// It has one that is not read here.
    Unreadable(ManifestError),
}

/// Every edition in the product's folder, by id, so in the order in which their builds started. Only manifests are
/// read. A product without a folder has none.
///
/// # Errors
/// [`EditionError::Io`] when a folder or a manifest cannot be read at all.
pub fn list(product: &Path) -> Result<Vec<ListedEdition>, EditionError> {
    let product = ProductFolder::new(product).map_err(io_error("find", product))?;
    let mut editions = Vec::new();
    for edition_id in edition_ids(&product)? {
        let path = product.edition(&edition_id).manifest();
        let state = match fs::read(&path) {
            Ok(bytes) => match Manifest::decode(&bytes) {
                Ok(manifest) => EditionState::Sealed(Box::new(manifest)),
                Err(error) => EditionState::Unreadable(error),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => EditionState::Unsealed,
            Err(error) => return Err(io_error("read", &path)(error)),
        };
        editions.push(ListedEdition { edition_id, state });
    }
    Ok(editions)
}

/// The ids of the editions without a manifest, in the order in which their builds started. There is at most one unless
/// something else than this program wrote here.
///
/// # Errors
/// [`EditionError::Io`] when a folder cannot be read.
pub fn unsealed(product: &Path) -> Result<Vec<EditionId>, EditionError> {
    let product = ProductFolder::new(product).map_err(io_error("find", product))?;
    let ids = edition_ids(&product)?;
    Ok(ids.into_iter().filter(|id| !product.edition(id).manifest().exists()).collect())
}

/// The ids by which folders of the product are named, in order.
fn edition_ids(product: &ProductFolder) -> Result<Vec<EditionId>, EditionError> {
    let entries = match fs::read_dir(product.path()) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_error("list", product.path())(error)),
    };
    let mut ids = Vec::new();
    for entry in entries {
        let entry = entry.map_err(io_error("list", product.path()))?;
        let id = entry.file_name().to_str().and_then(|name| name.parse::<EditionId>().ok());
        if let Some(id) = id.filter(|_| entry.path().is_dir()) {
            ids.push(id);
        }
    }
    ids.sort();
    Ok(ids)
}

/// Deletes the unsealed edition `id` and its journal entry. Its data files stay, for garbage collection. Safe to
/// repeat: an edition that is not there counts as discarded.
///
/// # Errors
/// [`EditionError::DiscardsSealed`] for a sealed one; [`EditionError::Io`] when the disk fails, and then it can be
/// called again.
pub fn discard(fs: &dyn Fs, product: &Path, id: &EditionId) -> Result<(), EditionError> {
    let product = ProductFolder::new(product).map_err(io_error("find", product))?;
    let folder = product.edition(id);
    if folder.manifest().exists() {
        return Err(EditionError::DiscardsSealed { edition_id: id.clone() });
    }
    // The entry first: an entry without its edition would read as a seal to be finished.
    if product.journal().is_dir() {
        let entry = product.journal_entry(id);
        remove_durably(fs, &entry).map_err(io_error("remove", &entry))?;
    }
    remove_folder(fs, &product, &folder)
}

/// Removes an unsealed edition's folder, durably.
pub(super) fn remove_folder(fs: &dyn Fs, product: &ProductFolder, folder: &EditionFolder) -> Result<(), EditionError> {
    if folder.path().is_dir() {
        fs::remove_dir_all(folder.path()).map_err(io_error("remove", folder.path()))?;
        fs.fsync_dir(product.path()).map_err(io_error("fsync", product.path()))?;
    }
    Ok(())
}
