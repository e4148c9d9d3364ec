//! The seal (*edition* §7, *catalog* §11.1): from an unsealed edition to one that never changes again.

mod journal;
mod record;

use std::collections::BTreeMap;
use std::path::Path;

use catalog_rules::ids::{EditionId, ProductId, Sha256Hex};
use catalog_rules::instant::Instant;
use catalog_rules::manifest::{
    BindingCount, CANONICAL_FORM, DATA_PATH, EXTENSION_FORMAT, EXTENSION_NAME, EditionFile, FORMAT_VERSION,
    JobctlExtension, LAKE_NAME, Manifest, Producer, Provenance, STORE_NAME,
};
use catalog_rules::seal_journal::JournalEntry;
use engine_rules::crash;
use engine_rules::failure::{ActivityError as _, Disposition};
use serde_json::{Map, Value};

pub use journal::{clear_journal, read_journal};

use self::record::Phases;
use super::check::first_file_difference;
use super::error::{EditionError, io_error};
use super::files::{TierRule, data_entry, edition_entry, edition_paths};
use super::layout::{EditionFolder, ProductFolder};
use super::reader::{newest_storage, read_manifest, read_manifest_at};
use super::settle::settle;
use super::structures::Structures;
use super::{Tools, coverage, lake};
use crate::duck::{Access, DuckError, STORE, Session, wal_of};
use crate::fs::{Create, TEMPORARY_PREFIX, create_exclusive, remove_durably, sweep_temporaries};
use crate::metadata_store::{Form, MetadataStore, SCHEMA_VERSION, compact, sdmxlib_version};

/// The producer's name in a manifest.
pub const PRODUCER: &str = "jobctl";

/// What to seal, and what the manifest says beside what is found.
#[derive(Debug, Clone)]
pub struct SealOrder<'a> {
    /// The product's folder.
    pub product_dir: &'a Path,
    /// The product.
    pub product_id: &'a ProductId,
    /// The edition, as [`build`](super::build) left it.
    pub edition_id: &'a EditionId,
    /// The edition that it extends, as it was given to [`build`](super::build).
    pub previous: Option<&'a EditionId>,
    /// What built the edition, where it is not this program: a fold keeps what the folded edition says (*edition* §5.6).
    pub producer: Option<Producer>,
    /// Whether the product is final: then each table is merged into one file, or one for each partition.
    pub is_final: bool,
    /// Where files of the edition's folder are placed, where not by default.
    pub tiers: &'a [TierRule],
    /// The producer's own fields.
    pub producer_fields: Map<String, Value>,
    /// Sections of other packages. That of this program is filled by the seal.
    pub extensions: BTreeMap<String, Map<String, Value>>,
    /// Where fetched content came from.
    pub provenance: Option<Provenance>,
}

/// How long a phase of a seal took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phase {
    /// `journal`, `lake`, `store`, `availability`, `artefacts`, `fingerprint`, `files` or `manifest`.
    pub name: &'static str,
    /// Microseconds.
    pub took_us: u64,
}

/// A sealed edition.
#[derive(Debug, Clone)]
pub struct Sealed {
    /// Its manifest.
    pub manifest: Manifest,
    /// The SHA-256 of the manifest's bytes.
    pub manifest_sha256: Sha256Hex,
    /// How many bytes the manifest has.
    pub manifest_size_bytes: u64,
    /// Whether the manifest was there already and its files were those that it lists.
    pub was_sealed: bool,
    /// The phases in order; none when it was sealed already.
    pub phases: Vec<Phase>,
}

impl Sealed {
    /// How many data files keep the digests of the previous manifest.
    #[must_use]
    pub fn carried_files(&self) -> usize {
        self.manifest.files.iter().filter(|file| file.carried_from.is_some()).count()
    }

    /// How many files were hashed.
    #[must_use]
    pub fn hashed_files(&self) -> usize {
        self.manifest.files.len() - self.carried_files()
    }
}

/// Seals the edition: journal entry, lake settled, store compacted with its availability, fingerprints, everything
/// fsynced, and the manifest last, created exclusively. After it returns, the edition is durable and never changes.
///
/// Safe to repeat, also after a kill anywhere inside: a manifest that is there is verified against every file and
/// taken; a journal entry without a manifest is sealed again. A refusal that trying again cannot mend removes the
/// journal entry.
///
/// # Errors
/// [`EditionError::NotBuilt`] when there is nothing to seal, [`EditionError::Uncoded`] for a coded value that is no
/// code, [`EditionError::SealedOtherwise`] when the manifest that is there does not fit; a write-ahead log that no
/// seal of this edition left is refused; else what the disk or DuckDB said.
pub fn seal(tools: &Tools<'_>, order: &SealOrder<'_>) -> Result<Sealed, EditionError> {
    let product = ProductFolder::new(order.product_dir).map_err(io_error("find", order.product_dir))?;
    let folder = product.edition(order.edition_id);
    if folder.manifest().exists() {
        return take(tools, order, &folder);
    }
    let previous = match order.previous {
        Some(id) => Some((id, read_manifest(&product.edition(id), order.product_id, id)?)),
        None => None,
    };
    if !folder.store().exists() {
        return Err(EditionError::NotBuilt { path: folder.path().to_owned(), missing: STORE_NAME });
    }
    let mut phases = Phases::start(tools.clock);
    enter_journal(tools, order, &product, &folder)?;
    crash::point("edition.seal.journal_written");
    phases.end("journal");

    let sealed = write(tools, order, &folder, previous.as_ref().map(|(id, manifest)| (*id, manifest)), phases);
    if let Err(error) = &sealed
        && error.disposition() == Disposition::Terminal
        && !folder.manifest().exists()
    {
        let entry = product.journal_entry(order.edition_id);
        remove_durably(tools.fs, &entry).map_err(io_error("remove", &entry))?;
    }
    sealed
}

/// Writes the journal entry, or finds the one that an interrupted seal of this edition left.
fn enter_journal(
    tools: &Tools<'_>,
    order: &SealOrder<'_>,
    product: &ProductFolder,
    folder: &EditionFolder,
) -> Result<(), EditionError> {
    let path = product.journal_entry(order.edition_id);
    tools.fs.create_dir_all(&product.journal()).map_err(io_error("create", &product.journal()))?;
    for dir in [product.journal().as_path(), folder.path()] {
        sweep_temporaries(tools.fs, dir).map_err(io_error("sweep", dir))?;
    }
    if let Some(found) = journal::read(tools.fs, &path, order.edition_id)? {
        return journal::must_be(&found, order, &path);
    }
    // Without an entry no seal wrote here, so a log is a build that did not end, and its rows are not whole.
    for database in [folder.store(), folder.lake()] {
        if wal_of(&database).exists() {
            return Err(DuckError::WriteAheadLog { path: wal_of(&database) }.into());
        }
    }
    let entry = JournalEntry {
        product_id: order.product_id.clone(),
        edition_id: order.edition_id.clone(),
        previous: order.previous.cloned(),
        sealed_at: Instant::from_ms(tools.clock.now_ms()),
    };
    match create_exclusive(tools.fs, &path, &entry.encode()).map_err(io_error("create", &path))? {
        Create::Won => Ok(()),
        Create::Exists => match journal::read(tools.fs, &path, order.edition_id)? {
            Some(found) => journal::must_be(&found, order, &path),
            None => Ok(()),
        },
    }
}

fn write(
    tools: &Tools<'_>,
    order: &SealOrder<'_>,
    folder: &EditionFolder,
    previous: Option<(&EditionId, &Manifest)>,
    mut phases: Phases<'_>,
) -> Result<Sealed, EditionError> {
    let mut session = Session::open(tools.duck, &format!("seal-{}", order.edition_id))?;
    session.heed(&tools.context.cancel);
    let has_lake = folder.lake().exists();
    if has_lake {
        settle(&session, folder, order.is_final)?;
    }
    crash::point("edition.seal.lake_settled");
    phases.end("lake");

    let compacted = folder.path().join(format!("{TEMPORARY_PREFIX}{STORE_NAME}"));
    compact(session.connection(), &folder.store(), &compacted, Form::Sealed)?;
    session.attach(&compacted, STORE, Access::Write)?;
    let structures = Structures::read(&session)?;
    if !has_lake && !structures.bindings.is_empty() {
        return Err(EditionError::NotBuilt { path: folder.path().to_owned(), missing: LAKE_NAME });
    }
    must_extend(&session, order, folder)?;
    phases.end("store");

    if has_lake {
        session.attach_lake(&folder.lake(), folder.data(), Access::Read)?;
    }
    let mut availability = Vec::with_capacity(structures.bindings.len());
    for binding in &structures.bindings {
        let coverage = coverage::scan(&session, &structures, binding)?;
        coverage::refuse_uncoded(binding, coverage.uncoded)?;
        availability.push(coverage.availability);
    }
    MetadataStore::new(session.connection(), STORE).write_availability(&availability)?;
    session.detach(STORE)?;
    crash::point("edition.seal.availability_written");
    let sync = |path: &Path| tools.fs.fsync_file(path).map_err(io_error("fsync", path));
    sync(&compacted)?;
    tools.fs.rename(&compacted, &folder.store()).map_err(io_error("rename", &compacted))?;
    tools.fs.fsync_dir(folder.path()).map_err(io_error("fsync", folder.path()))?;
    crash::point("edition.seal.store_compacted");
    phases.end("availability");

    let artefact_fingerprints = structures.fingerprints()?;
    let artefacts = structures.entries(&artefact_fingerprints, previous.map(|(_, manifest)| manifest));
    phases.end("artefacts");

    let versions = session.versions()?;
    let mut own = JobctlExtension { format_version: EXTENSION_FORMAT.to_owned(), ..JobctlExtension::default() };
    let mut bindings = Vec::with_capacity(structures.bindings.len());
    for binding in &structures.bindings {
        let (fingerprint, parts) = record::table(&session, folder, binding, &versions, previous.map(|(_, m)| m))?;
        own.fingerprints.insert(binding.dataflow.clone(), parts);
        bindings.push(BindingCount {
            dataflow: binding.dataflow.clone(),
            observations: fingerprint.rows,
            structural_version: structures.structural_version(binding),
            fingerprint,
            structure_fingerprint: structures.structure_fingerprint(&binding.dataflow, &artefact_fingerprints),
        });
    }
    let lake_files = if has_lake { record::data_files(&session, folder)? } else { BTreeMap::new() };
    let spec_version = if has_lake { Some(lake::spec_version(&session)?) } else { None };
    drop(session);
    phases.end("fingerprint");

    let storage = newest_storage(folder)?;
    let files = list_files(tools, order, folder, &lake_files, previous)?;
    crash::point("edition.seal.synced");
    phases.end("files");

    let mut extensions = order.extensions.clone();
    extensions.insert(EXTENSION_NAME.to_owned(), own.write());
    let mut manifest = Manifest {
        format_version: FORMAT_VERSION.to_owned(),
        product_id: order.product_id.clone(),
        edition_id: order.edition_id.clone(),
        previous: order.previous.cloned(),
        created_at: Instant::from_ms(tools.clock.now_ms()),
        producer: order
            .producer
            .clone()
            .unwrap_or_else(|| Producer { name: PRODUCER.to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() }),
        sdmxlib_version: sdmxlib_version(),
        schema_version: SCHEMA_VERSION.to_owned(),
        duckdb_version: versions.duckdb,
        duckdb_storage_version: storage,
        ducklake_version: has_lake.then_some(versions.ducklake),
        ducklake_spec_version: spec_version,
        data_path: DATA_PATH.to_owned(),
        files,
        bindings,
        artefacts,
        canonical_form: CANONICAL_FORM.to_owned(),
        content_fingerprint: None,
        producer_fields: order.producer_fields.clone(),
        extensions,
        provenance: order.provenance.clone(),
    };
    manifest.sort();
    manifest.content_fingerprint = Some(manifest.computed_content_fingerprint());
    // What this program would refuse to read is not written either.
    let problems = manifest.validate();
    if !problems.is_empty() {
        let source = catalog_rules::manifest::ManifestError::Invalid { problems };
        return Err(EditionError::Manifest { path: folder.manifest(), source });
    }
    let bytes = manifest.encode();
    crash::point("edition.seal.before_manifest");
    let path = folder.manifest();
    match create_exclusive(tools.fs, &path, &bytes).map_err(io_error("create", &path))? {
        Create::Won => {}
        // Another seal of this edition was faster: what it sealed is taken if it is what lies here.
        Create::Exists => return take(tools, order, folder),
    }
    crash::point("edition.seal.after_manifest");
    phases.end("manifest");
    Ok(Sealed {
        manifest_sha256: Sha256Hex::of(&bytes),
        manifest_size_bytes: bytes.len() as u64,
        manifest,
        was_sealed: false,
        phases: phases.done(),
    })
}

/// The store must be of this edition, built on the same previous one.
fn must_extend(session: &Session, order: &SealOrder<'_>, folder: &EditionFolder) -> Result<(), EditionError> {
    let meta = MetadataStore::new(session.connection(), STORE).meta()?;
    let none = "none";
    for (field, expected) in
        [("edition_id", Some(order.edition_id.as_str())), ("previous", order.previous.map(EditionId::as_str))]
    {
        let found = meta.get(field).map(String::as_str);
        if found != expected {
            return Err(EditionError::OtherEdition {
                path: folder.store(),
                field,
                found: found.unwrap_or(none).to_owned(),
                expected: expected.unwrap_or(none).to_owned(),
            });
        }
    }
    Ok(())
}

/// Hashes and fsyncs every file of the edition, and every folder that names one.
fn list_files(
    tools: &Tools<'_>,
    order: &SealOrder<'_>,
    folder: &EditionFolder,
    lake_files: &BTreeMap<String, u64>,
    previous: Option<(&EditionId, &Manifest)>,
) -> Result<Vec<EditionFile>, EditionError> {
    let paths = edition_paths(folder.path())?;
    let total = (paths.len() + lake_files.len()) as u64;
    let mut files: Vec<EditionFile> = Vec::with_capacity(paths.len() + lake_files.len());
    for (path, size_bytes) in lake_files {
        files.push(data_entry(folder, path, *size_bytes, previous)?);
        tools.context.progress("files", files.len() as u64, Some(total));
    }
    for path in &paths {
        files.push(edition_entry(folder, path, order.tiers)?);
        tools.context.progress("files", files.len() as u64, Some(total));
    }
    for file in files.iter().filter(|file| file.carried_from.is_none()) {
        let path = folder.file(file.root, &file.path);
        tools.fs.fsync_file(&path).map_err(io_error("fsync", &path))?;
    }
    for dir in record::folders(folder, &files) {
        tools.fs.fsync_dir(&dir).map_err(io_error("fsync", &dir))?;
    }
    Ok(files)
}

/// Takes a manifest that is there, after comparing every file with it.
fn take(tools: &Tools<'_>, order: &SealOrder<'_>, folder: &EditionFolder) -> Result<Sealed, EditionError> {
    let path = folder.manifest();
    let manifest = read_manifest(folder, order.product_id, order.edition_id)?;
    let (bytes, _) = read_manifest_at(folder)?;
    if manifest.previous.as_ref() != order.previous {
        let text = |id: Option<&EditionId>| id.map_or_else(|| "null".to_owned(), ToString::to_string);
        return Err(EditionError::OtherEdition {
            path,
            field: "previous",
            found: text(manifest.previous.as_ref()),
            expected: text(order.previous),
        });
    }
    // A seal that was killed while it created the manifest may have left its temporary file.
    sweep_temporaries(tools.fs, folder.path()).map_err(io_error("sweep", folder.path()))?;
    if let Some(detail) = first_file_difference(folder, &manifest)? {
        return Err(EditionError::SealedOtherwise { edition_id: order.edition_id.clone(), detail });
    }
    // The last fsync may be what failed before.
    tools.fs.fsync_file(&path).map_err(io_error("fsync", &path))?;
    tools.fs.fsync_dir(folder.path()).map_err(io_error("fsync", folder.path()))?;
    Ok(Sealed {
        manifest_sha256: Sha256Hex::of(&bytes),
        manifest_size_bytes: bytes.len() as u64,
        manifest,
        was_sealed: true,
        phases: Vec::new(),
    })
}
