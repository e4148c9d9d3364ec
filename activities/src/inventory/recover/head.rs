//! Deleting a damaged root at the head, so that a version can follow again (D16).

use std::path::{Path, PathBuf};

use bytes::Bytes;
use catalog_rules::ids::Sha256Hex;
use catalog_rules::inventory::{Current, HeadFacts, RootFound, Seq, WriterStage, repair_head as judge};
use catalog_rules::layout;
use engine_rules::crash;

use super::super::error::InventoryError;
use super::super::head::find_base;
use super::super::init::open_catalog;
use super::super::writer::advance_current;
use crate::fs::{self, Fs};
use crate::store::{Delete, Store, StoreError};

/// The damaged head that is to be deleted.
#[expect(missing_debug_implementations, reason = "a disk has none")]
pub struct HeadRepair<'a> {
    /// The version whose root is damaged.
    pub seq: Seq,
    /// A person's word that it was committed, and that what it did may be undone.
    pub confirm_committed: bool,
    /// Where the copy is kept: a folder of this run alone, so that a repeat finds its own copy.
    pub keep: &'a Path,
    /// The disk that the folder is on.
    pub fs: &'a dyn Fs,
    /// Only judge, and change nothing.
    pub dry_run: bool,
}

/// A head that was repaired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairedHead {
    /// The version whose root is gone, or would be.
    pub seq: Seq,
    /// The SHA-256 of the bytes that it had.
    pub sha256: Sha256Hex,
    /// The version that is the head now.
    pub head: Seq,
    /// Where the copy is.
    pub kept: PathBuf,
    /// Whether an earlier attempt of the same run had deleted it already.
    pub already: bool,
}

/// Deletes the damaged root of version `seq`, under the catalog's lock, and only while its bytes are those that were
/// judged; a copy is on the disk before. `CURRENT` names the last valid version afterwards. Safe to repeat by the run
/// that the folder belongs to.
///
/// # Errors
/// [`InventoryError::Refused`] with [`RecoveryRefusal`](catalog_rules::inventory::RecoveryRefusal) when the root is
/// absent, valid, newer, not the one after the last valid version, built on, or committed without a person's word for it;
/// nothing is deleted then.
pub fn repair_head(store: &dyn Store, asked: &HeadRepair<'_>) -> Result<RepairedHead, InventoryError> {
    let _lock = if asked.dry_run { None } else { Some(store.lock()?) };
    open_catalog(store)?.admit_writer(WriterStage::One)?;
    let last = find_base(&|path| store.get(path))?.head;
    let path = layout::root(asked.seq);
    let kept = asked.keep.join(format!("{:012}.json", asked.seq.get()));
    let bytes = store.get(&path)?;
    if bytes.is_none()
        && let Some(copy) = asked.fs.read(&kept).map_err(|source| on_disk("read", &kept, source))?
    {
        advance_current(store, &last)?;
        let sha256 = Sha256Hex::of(&copy);
        return Ok(RepairedHead { seq: asked.seq, sha256, head: last.seq(), kept, already: true });
    }
    let current = store.get(layout::CURRENT)?.and_then(|bytes| Current::decode(&bytes));
    let facts = HeadFacts {
        last_valid: last.seq(),
        base: Some((&last.root, &last.root_sha256)),
        bytes: bytes.as_deref(),
        after: &above(store, asked.seq)?,
        current: current.as_ref(),
    };
    let judged = judge(asked.seq, &facts, asked.confirm_committed)?;
    let bytes = bytes.unwrap_or_default();
    if !asked.dry_run {
        keep(asked.fs, &kept, &bytes)?;
        crash::point("inventory.repair.after_copy");
        if let Delete::Changed(_) = store.delete_if(&path, &bytes)? {
            return Err(InventoryError::Contended { races: 1, seq: asked.seq });
        }
        crash::point("inventory.repair.after_delete");
        advance_current(store, &last)?;
    }
    Ok(RepairedHead { seq: judged.seq, sha256: judged.sha256, head: judged.head, kept, already: false })
}

/// What stands at the versions after `seq`, up to the first that is absent.
fn above(store: &dyn Store, seq: Seq) -> Result<Vec<(Seq, RootFound)>, InventoryError> {
    let mut found = Vec::new();
    let mut next = seq.next();
    while let Some(bytes) = store.get(&layout::root(next))? {
        found.push((next, RootFound::of(next, Some(&bytes))));
        next = next.next();
    }
    Ok(found)
}

/// Keeps a copy, durably. One of the same bytes may be there from an attempt that was interrupted.
fn keep(fs: &dyn Fs, path: &Path, bytes: &Bytes) -> Result<(), InventoryError> {
    let failed = |source| on_disk("keep a copy at", path, source);
    if let Some(folder) = path.parent() {
        fs.create_dir_all(folder).map_err(failed)?;
    }
    match fs::create_exclusive(fs, path, bytes).map_err(failed)? {
        fs::Create::Won => Ok(()),
        fs::Create::Exists if fs.read(path).map_err(failed)?.as_deref() == Some(bytes.as_ref()) => Ok(()),
        // Other bytes stood there when an earlier attempt looked: they are kept as well, and so are these.
        fs::Create::Exists => {
            let other = path.with_extension(format!("{}.json", Sha256Hex::of(bytes)));
            let failed = |source| on_disk("keep a copy at", &other, source);
            fs::create_exclusive(fs, &other, bytes).map(drop).map_err(failed)
        }
    }
}

fn on_disk(operation: &'static str, path: &Path, source: std::io::Error) -> InventoryError {
    StoreError::Io { operation, path: path.display().to_string(), source }.into()
}
