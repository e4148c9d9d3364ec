//! What a seal measures and records of the lake.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use catalog_rules::manifest::{CANONICAL_FORM, EditionFile, Manifest, Root, TableFingerprint, TableParts};
use catalog_rules::sdmx::model::DataflowBinding;
use engine_rules::clock::Clock;

use super::Phase;
use crate::duck::{Session, Versions};
use crate::edition::error::EditionError;
use crate::edition::lake::{self, LakeTable};
use crate::edition::layout::EditionFolder;

/// A stopwatch over the phases.
pub(super) struct Phases<'a> {
    clock: &'a dyn Clock,
    since_us: u64,
    phases: Vec<Phase>,
}

impl<'a> Phases<'a> {
    pub(super) fn start(clock: &'a dyn Clock) -> Self {
        Self { clock, since_us: clock.monotonic_us(), phases: Vec::new() }
    }

    pub(super) fn end(&mut self, name: &'static str) {
        let now_us = self.clock.monotonic_us();
        self.phases.push(Phase { name, took_us: now_us.saturating_sub(self.since_us) });
        self.since_us = now_us;
    }

    pub(super) fn done(self) -> Vec<Phase> {
        self.phases
    }
}

/// The data files that the lake references, by path under `data/`, with the sizes that it records.
pub(super) fn data_files(session: &Session, folder: &EditionFolder) -> Result<BTreeMap<String, u64>, EditionError> {
    let files = lake::referenced_files(session)?;
    if let Some(outside) = files.iter().find(|file| !file.is_relative) {
        return Err(EditionError::OutsideData { path: folder.lake(), found: outside.path.clone() });
    }
    Ok(files.into_iter().map(|file| (file.path, file.size_bytes)).collect())
}

/// The fingerprint of a binding's table and the parts that it is the sum of. A file that the previous edition summed
/// is not read again while its rows' text cannot have changed (D5).
pub(super) fn table(
    session: &Session,
    folder: &EditionFolder,
    binding: &DataflowBinding,
    versions: &Versions,
    previous: Option<&Manifest>,
) -> Result<(TableFingerprint, TableParts), EditionError> {
    let table = LakeTable::of(binding)?;
    let mut record = TableParts {
        table: table.to_string(),
        columns: lake::columns_digest(session, &table)?,
        duckdb_version: versions.duckdb.clone(),
        canonical_form: CANONICAL_FORM.to_owned(),
        files: BTreeMap::new(),
    };
    // A column of this name hides DuckLake's own, by which the parts are told apart.
    let hidden = lake::columns(session, &table)?.iter().any(|(name, _)| name.eq_ignore_ascii_case("filename"));
    if !hidden {
        let known = previous.and_then(Manifest::jobctl).and_then(|mut own| own.fingerprints.remove(&binding.dataflow));
        let known = known.filter(|known| TableParts { files: BTreeMap::new(), ..known.clone() } == record);
        let files: BTreeSet<String> = lake::referenced_files(session)?
            .into_iter()
            .filter(|file| file.is_current && file.table == table)
            .map(|file| file.path)
            .collect();
        if let Some(known) = known {
            record.files.extend(known.files.into_iter().filter(|(file, _)| files.contains(file)));
        }
        let unknown: Vec<&str> =
            files.iter().filter(|file| !record.files.contains_key(*file)).map(String::as_str).collect();
        let parts = lake::fingerprint_parts(session, folder.data(), &table, Some(&unknown))?;
        record.files.extend(parts);
        let rows = lake::count(session, &table)?;
        let total = TableFingerprint::total(record.files.values().copied());
        if let Some(total) = total.filter(|total| total.rows == rows) {
            return Ok((total, record));
        }
    }
    // The parts do not add up to the table: they are of no use to anybody.
    record.files.clear();
    Ok((lake::fingerprint(session, &table)?, record))
}

/// The folders that name the files which this edition wrote, the innermost first, up to the product's.
pub(super) fn folders(folder: &EditionFolder, files: &[EditionFile]) -> Vec<PathBuf> {
    let mut folders = BTreeSet::from([folder.path().to_owned()]);
    folders.extend(folder.path().parent().map(ToOwned::to_owned));
    for file in files.iter().filter(|file| file.carried_from.is_none()) {
        let path = folder.file(file.root, &file.path);
        let top = match file.root {
            Root::Edition => folder.path(),
            Root::Data => folder.data(),
        };
        folders.extend(path.ancestors().skip(1).take_while(|dir| dir.starts_with(top)).map(ToOwned::to_owned));
    }
    let mut folders: Vec<PathBuf> = folders.into_iter().collect();
    folders.sort_by_key(|dir| std::cmp::Reverse(dir.components().count()));
    folders
}
