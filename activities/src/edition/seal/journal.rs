//! The seal journal on the disk (*edition* §1, *catalog* §6.7).

use std::path::Path;

use catalog_rules::ids::EditionId;
use catalog_rules::seal_journal::JournalEntry;

use super::SealOrder;
use crate::edition::error::{EditionError, io_error};
use crate::edition::layout::ProductFolder;
use crate::fs::{Fs, remove_durably};

/// The product's journal: every seal that was started and not yet recorded, by edition id.
///
/// # Errors
/// [`EditionError::Journal`] for a file that is no entry; [`EditionError::Io`].
pub fn read_journal(fs: &dyn Fs, product: &Path) -> Result<Vec<JournalEntry>, EditionError> {
    let product = ProductFolder::new(product).map_err(io_error("find", product))?;
    let folder = product.journal();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_error("list", &folder)(error)),
    };
    let mut ids = Vec::new();
    for entry in entries {
        let name = entry.map_err(io_error("list", &folder))?.file_name();
        // Temporary files of a crash have other names.
        let id = name.to_str().and_then(|name| name.strip_suffix(".json")).and_then(|id| id.parse::<EditionId>().ok());
        ids.extend(id);
    }
    ids.sort();
    let mut journal = Vec::with_capacity(ids.len());
    for id in ids {
        journal.extend(read(fs, &product.journal_entry(&id), &id)?);
    }
    Ok(journal)
}

/// Removes the journal entry of an edition, durably: the Inventory records it now, or it never will. An entry that is
/// not there counts as removed.
///
/// # Errors
/// [`EditionError::Io`].
pub fn clear_journal(fs: &dyn Fs, product: &Path, id: &EditionId) -> Result<(), EditionError> {
    let product = ProductFolder::new(product).map_err(io_error("find", product))?;
    if !product.journal().is_dir() {
        return Ok(());
    }
    let path = product.journal_entry(id);
    remove_durably(fs, &path).map_err(io_error("remove", &path))
}

pub(super) fn read(fs: &dyn Fs, path: &Path, id: &EditionId) -> Result<Option<JournalEntry>, EditionError> {
    let Some(bytes) = fs.read(path).map_err(io_error("read", path))? else { return Ok(None) };
    match JournalEntry::decode(id, &bytes) {
        Ok(entry) => Ok(Some(entry)),
        Err(source) => Err(EditionError::Journal { path: path.to_owned(), source }),
    }
}

/// Refuses an entry of another seal than the one that is ordered.
pub(super) fn must_be(found: &JournalEntry, order: &SealOrder<'_>, path: &Path) -> Result<(), EditionError> {
    let other = |field, found: String, expected: String| {
        Err(EditionError::OtherEdition { path: path.to_owned(), field, found, expected })
    };
    if found.product_id != *order.product_id {
        return other("product_id", found.product_id.to_string(), order.product_id.to_string());
    }
    if found.previous.as_ref() != order.previous {
        let text = |id: Option<&EditionId>| id.map_or_else(|| "null".to_owned(), ToString::to_string);
        return other("previous", text(found.previous.as_ref()), text(order.previous));
    }
    Ok(())
}
