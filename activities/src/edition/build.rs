//! The build of an edition (*edition* §7, *catalog* §11.1): its folder, its artefacts, its rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use catalog_rules::ids::{EditionId, ProductId, Sha256Hex};
use catalog_rules::manifest::{CANONICAL_FORM, LAKE_NAME, Manifest, Root, STORE_NAME, Tier};
use catalog_rules::sdmx::model::{Artefact, DataflowBinding, UrnText};
use catalog_rules::sdmx::urn::class_of;
use engine_rules::crash;
use engine_rules::failure::{ActivityError as _, Disposition};

use super::error::{EditionError, io_error};
use super::lake::{self, LakeTable};
use super::layout::{EditionFolder, ProductFolder};
use super::list::{discard, unsealed};
use super::reader::{read_manifest, refuse_versions};
use super::source::{ArtefactSource, ObservationSource};
use super::stage::{Staged, stage};
use super::structures::Structures;
use super::{Tools, coverage, rows};
use crate::duck::{Access, LAKE, STORE, Session, wal_of};
use crate::metadata_store::{Form, MetadataStore, compact};

/// A dataflow's rows and where they go.
#[derive(Clone, Copy)]
pub struct BoundTable<'a> {
    /// The binding to store; it names the table.
    pub binding: &'a DataflowBinding,
    /// The rows.
    pub source: &'a dyn ObservationSource,
}

impl std::fmt::Debug for BoundTable<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BoundTable").field("binding", self.binding).finish_non_exhaustive()
    }
}

/// What to build.
#[derive(Clone, Copy)]
pub struct BuildOrder<'a> {
    /// The product's folder; it is created when it is not there.
    pub product_dir: &'a Path,
    /// The product.
    pub product_id: &'a ProductId,
    /// The new edition. The caller minted it.
    pub edition_id: &'a EditionId,
    /// The sealed edition that it extends.
    pub previous: Option<&'a EditionId>,
    /// Every artefact that the edition is to hold, asked for once all rows were read.
    pub artefacts: &'a dyn ArtefactSource,
    /// Every table that it is to hold.
    pub tables: &'a [BoundTable<'a>],
}

impl std::fmt::Debug for BuildOrder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BuildOrder")
            .field("product_dir", &self.product_dir)
            .field("edition_id", &self.edition_id)
            .field("previous", &self.previous)
            .finish_non_exhaustive()
    }
}

/// What a build did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// Rows of all tables.
    pub rows: u64,
    /// Data files that the edition has and the previous one has not.
    pub new_files: u64,
    /// Their size.
    pub new_bytes: u64,
    /// The tables, in the order's order.
    pub tables: Vec<BuiltTable>,
}

/// What became of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltTable {
    /// The bound dataflow.
    pub dataflow: UrnText,
    /// Its rows.
    pub rows: u64,
    /// The rows that were written into new data files; 0 when nothing changed.
    pub new_rows: u64,
    /// The previous edition's data files that are used again.
    pub kept_files: u64,
}

/// Builds the unsealed edition `edition_id`: the artefacts and rows of the order, on top of `previous` where there is
/// one. A half-written edition of the same id is discarded first, so it is safe to repeat.
///
/// The sources are read to their end, and the artefacts stored, before anything in the product's folder changes: a
/// source that is refused, rows that are no set of observations and artefacts that cannot be stored leave it byte for
/// byte as it was.
///
/// # Errors
/// [`EditionError::OtherUnsealed`] when the product has another unsealed edition, [`EditionError::AlreadySealed`] when
/// this one is sealed, a variant for each fault of the rows, [`EditionError::Cancelled`]; else what the disk or DuckDB
/// said.
pub fn build(tools: &Tools<'_>, order: &BuildOrder<'_>) -> Result<Built, EditionError> {
    let product = ProductFolder::new(order.product_dir).map_err(io_error("find", order.product_dir))?;
    let folder = product.edition(order.edition_id);
    refuse_unless_next(&product, order.edition_id)?;
    let previous = match order.previous {
        Some(id) => Some((product.edition(id), read_manifest(&product.edition(id), order.product_id, id)?)),
        None => None,
    };
    if let (Some(id), Some((folder, manifest))) = (order.previous, &previous) {
        refuse_damaged(id, folder, manifest)?;
    }
    let mut session = Session::open_on_disk(tools.duck, &format!("build-{}", order.edition_id))?;
    session.heed(&tools.context.cancel);
    if let Some((folder, manifest)) = &previous {
        refuse_versions(&session, folder, manifest)?;
    }
    let mut staged = Vec::with_capacity(order.tables.len());
    for (number, table) in order.tables.iter().enumerate() {
        staged.push((LakeTable::of(table.binding)?, take_in(tools, &session, number, table)?));
    }
    let artefacts = order.artefacts.artefacts().map_err(EditionError::Source)?;
    let structures = Structures::of(&artefacts, order.tables.iter().map(|table| table.binding.clone()).collect());
    for ((_, staged), table) in staged.iter().zip(order.tables) {
        // The seal looks again, at what is stored; here a refusal still changes nothing.
        let uncoded = coverage::uncoded(&session, &staged.table, &structures, table.binding)?;
        coverage::refuse_uncoded(table.binding, uncoded)?;
    }
    let store = session.scratch().join(STORE_NAME);
    write_artefacts(&session, order, &artefacts, &store, &structures, previous.as_ref())?;
    crash::point("edition.build.staged");

    begin(tools, &product, order.edition_id)?;

    let built = fill(tools, &session, order, &folder, previous.as_ref(), &store, &staged);
    if built.as_ref().is_err_and(|error| error.disposition() == Disposition::Terminal) {
        // Nobody will go on with it, and it would keep the next build out.
        discard(tools.fs, product.path(), order.edition_id)?;
    }
    built
}

/// Creates the edition's folder, empty, in place of what an earlier attempt left of it.
pub(super) fn begin(tools: &Tools<'_>, product: &ProductFolder, edition_id: &EditionId) -> Result<(), EditionError> {
    refuse_unless_next(product, edition_id)?;
    discard(tools.fs, product.path(), edition_id)?;
    let create = |path: &Path| tools.fs.create_dir_all(path).map_err(io_error("create", path));
    create(&product.data())?;
    create(product.edition(edition_id).path())?;
    if let Err(refused) = refuse_unless_next(product, edition_id) {
        // Another build started at the same moment: neither has written anything, and both step back.
        discard(tools.fs, product.path(), edition_id)?;
        return Err(refused);
    }
    crash::point("edition.build.directory_created");
    Ok(())
}

/// Fills the edition's folder.
fn fill(
    tools: &Tools<'_>,
    session: &Session,
    order: &BuildOrder<'_>,
    folder: &EditionFolder,
    previous: Option<&(EditionFolder, Manifest)>,
    store: &Path,
    staged: &[(LakeTable, Staged)],
) -> Result<Built, EditionError> {
    fs::copy(store, folder.store()).map_err(io_error("write", &folder.store()))?;
    crash::point("edition.build.artefacts_written");
    let mut built = write_rows(tools, session, order, folder, previous, staged)?;
    if let Some((from, manifest)) = previous {
        carry_lazy(from, manifest, folder)?;
    }
    crash::point("edition.build.rows_written");
    built.rows = built.tables.iter().map(|table| table.rows).sum();
    Ok(built)
}

/// Refuses to build on an edition that lost a file, before the source is read: whether its bytes are those that were
/// sealed is for a check to say.
pub(super) fn refuse_damaged(id: &EditionId, folder: &EditionFolder, manifest: &Manifest) -> Result<(), EditionError> {
    let damaged = |path: &Path, found: String, expected: String| EditionError::PreviousDamaged {
        edition_id: id.clone(),
        path: path.to_owned(),
        found,
        expected,
    };
    // Of every tier: a build reads the whole lake.
    for file in &manifest.files {
        let path = folder.file(file.root, &file.path);
        let expected = || format!("{} bytes, as its manifest lists", file.size_bytes);
        match fs::metadata(&path) {
            Ok(found) if found.len() == file.size_bytes => {}
            Ok(found) => return Err(damaged(&path, format!("has {} bytes", found.len()), expected())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(damaged(&path, "is missing".to_owned(), expected()));
            }
            Err(error) => return Err(io_error("look at", &path)(error)),
        }
    }
    for path in [wal_of(&folder.store()), wal_of(&folder.lake())] {
        if path.exists() {
            let expected = "no such file: something opened the sealed edition to write to it (edition §4)".to_owned();
            return Err(damaged(&path, "is there".to_owned(), expected));
        }
    }
    Ok(())
}

/// Refuses unless `edition_id` is the product's only unsealed edition, or is not there yet and no other is.
pub(super) fn refuse_unless_next(product: &ProductFolder, edition_id: &EditionId) -> Result<(), EditionError> {
    if product.edition(edition_id).manifest().exists() {
        return Err(EditionError::AlreadySealed { edition_id: edition_id.clone() });
    }
    match unsealed(product.path())?.into_iter().find(|id| id != edition_id) {
        Some(found) => {
            Err(EditionError::OtherUnsealed { product: product.path().to_owned(), found, wanted: edition_id.clone() })
        }
        None => Ok(()),
    }
}

fn take_in(
    tools: &Tools<'_>,
    session: &Session,
    number: usize,
    table: &BoundTable<'_>,
) -> Result<Staged, EditionError> {
    let columns = table.source.columns();
    coverage::check_columns(columns.iter().map(|column| column.name.as_str()), table.binding)?;
    stage(tools, session, number, table.source)
}

/// Stores the order's artefacts and bindings in a fresh store at `path`, outside the product.
fn write_artefacts(
    session: &Session,
    order: &BuildOrder<'_>,
    artefacts: &[Artefact],
    path: &Path,
    structures: &Structures,
    previous: Option<&(EditionFolder, Manifest)>,
) -> Result<(), EditionError> {
    let mut keep = BTreeSet::new();
    if let Some((previous, manifest)) = previous {
        // The sealed store has lost the keys that guard writing; its copy gets them back.
        compact(session.connection(), &previous.store(), path, Form::Keyed)?;
        keep = unchanged(order, structures, manifest)?;
    }
    session.attach(path, STORE, Access::Write)?;
    let store = MetadataStore::new(session.connection(), STORE);
    if previous.is_none() {
        store.create(Form::Keyed)?;
    }
    store.retain(&keep)?;
    let changed: Vec<Artefact> = artefacts.iter().filter(|artefact| !keep.contains(&artefact.urn())).cloned().collect();
    store.write_artefacts(&changed)?;
    for table in order.tables {
        store.write_binding(table.binding)?;
    }
    store.set_edition(order.edition_id, order.previous)?;
    session.detach(STORE)?;
    Ok(())
}

/// The artefacts of the order that the previous edition holds with the same content. A dataflow counts only while it
/// is bound: what is not kept loses its binding with it.
fn unchanged(
    order: &BuildOrder<'_>,
    structures: &Structures,
    previous: &Manifest,
) -> Result<BTreeSet<UrnText>, EditionError> {
    if previous.canonical_form != CANONICAL_FORM {
        return Ok(BTreeSet::new());
    }
    let is_bound = |urn: &UrnText| order.tables.iter().any(|table| table.binding.dataflow == *urn);
    let before: BTreeMap<&UrnText, &Sha256Hex> =
        previous.artefacts.iter().map(|entry| (&entry.urn, &entry.fingerprint)).collect();
    let mut now = structures.fingerprints()?;
    now.retain(|urn, fingerprint| {
        before.get(urn) == Some(&&*fingerprint) && (class_of(urn) != "Dataflow" || is_bound(urn))
    });
    Ok(now.into_keys().collect())
}

fn write_rows(
    tools: &Tools<'_>,
    session: &Session,
    order: &BuildOrder<'_>,
    folder: &EditionFolder,
    previous: Option<&(EditionFolder, Manifest)>,
    staged: &[(LakeTable, Staged)],
) -> Result<Built, EditionError> {
    let mut built = Built { rows: 0, new_files: 0, new_bytes: 0, tables: Vec::with_capacity(staged.len()) };
    let inherited = previous.map(|(folder, _)| folder.lake()).filter(|lake| lake.exists());
    if let Some(lake) = &inherited {
        fs::copy(lake, folder.lake()).map_err(io_error("write", &folder.lake()))?;
    } else if staged.is_empty() {
        return Ok(built);
    }
    session.attach_lake(&folder.lake(), folder.data(), Access::Write)?;
    session.run("set up the lake", &format!("CALL {LAKE}.set_option('data_inlining_row_limit', 0)"))?;
    rows::drop_others(session, &staged.iter().map(|(table, _)| table.clone()).collect())?;
    for ((table, staged), bound) in staged.iter().zip(order.tables) {
        if tools.context.cancel.is_cancelled() {
            return Err(EditionError::Cancelled);
        }
        let written = rows::write(session, table, staged)?;
        built.tables.push(BuiltTable {
            dataflow: bound.binding.dataflow.clone(),
            rows: staged.rows,
            new_rows: written.new_rows,
            kept_files: written.kept_files,
        });
    }
    let before: BTreeSet<&str> = previous
        .iter()
        .flat_map(|(_, manifest)| manifest.files_of(Root::Data))
        .map(|file| file.path.as_str())
        .collect();
    for file in lake::referenced_files(session)? {
        if file.is_current && !file.deletes && !before.contains(file.path.as_str()) {
            built.new_files += 1;
            built.new_bytes += file.size_bytes;
        }
    }
    session.detach(LAKE)?;
    Ok(built)
}

/// Copies the previous edition's own files that it places as lazy, such as a search index (*edition* §7).
pub(super) fn carry_lazy(
    from: &EditionFolder,
    manifest: &Manifest,
    folder: &EditionFolder,
) -> Result<(), EditionError> {
    let lazy = manifest.files_of(Root::Edition).filter(|file| file.tier == Tier::Lazy);
    for file in lazy.filter(|file| !matches!(file.path.as_str(), STORE_NAME | LAKE_NAME)) {
        let (source, target) = (from.file(Root::Edition, &file.path), folder.file(Root::Edition, &file.path));
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(io_error("create", parent))?;
        }
        fs::copy(&source, &target).map_err(io_error("write", &target))?;
    }
    Ok(())
}
