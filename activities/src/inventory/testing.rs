//! A made-up catalog of many products, for tests and measurements: the same documents for the same numbers.
//!
//! Everything that the Inventory and its verification read is really there: leaves, roots, a manifest for each edition
//! with the artefacts and bindings of a published table, and the listed files with their digests, a few bytes each. The
//! DuckDB and Parquet files hold a line of text instead of tables, so an edition of it cannot be opened or checked.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use catalog_rules::ids::{CatalogId, EditionId, ProductId, Sha256Hex, hex};
use catalog_rules::instant::Instant;
use catalog_rules::inventory::{
    Base, By, CatalogJson, Document as _, DocumentError, EntryState, EventKind, INVENTORY_FORMAT, Kind, Leaf,
    LeafEntry, Lifecycle, NewEntry, NextVersion, Outcome, Producer, Refusal, Tombstone, first_version, next_version,
};
use catalog_rules::layout;
use catalog_rules::manifest::{
    self, ArtefactEntry, BindingCount, Digests, EditionFile, FORMAT_VERSION, FilePart, JobctlExtension, Manifest, Root,
    Stability, TableParts, Tier,
};
use md5::Digest as _;
use serde_json::Map;
use uuid::Uuid;

use super::head::Head;

/// Editions of each product: two of the past, and one that is live or waits.
pub const EDITIONS: u64 = 3;
/// Full artefacts of a structure product.
const HOMED: u64 = 40;
/// Parts that a data product holds, where it holds any.
const PARTS: u64 = 4;
/// One data product in so many holds parts.
const WITH_PARTS: u64 = 3;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The shape of a made-up catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyntheticCatalog {
    /// Data products. Each has the artefacts of a published table: its own lists, concepts, structure and dataflow, and
    /// three lists that all products share; every third one holds parts of lists of structure products too.
    pub data_products: u64,
    /// Structure products, each with forty full lists.
    pub structure_products: u64,
    /// Data products whose newest edition is embargoed and due.
    pub due: u64,
    /// Data products whose newest edition is embargoed and never due by itself.
    pub waiting: u64,
    /// Tombstones, spread over the data products.
    pub tombstones: u64,
    /// Whether the newest version has the embargo on.
    pub embargo: bool,
    /// Whether entries have no artefact records, as an older writer left them.
    pub without_records: bool,
}

/// Why a catalog was not made.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The disk.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The rules.
    #[error(transparent)]
    Refused(#[from] Box<Refusal>),
    /// A document.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

impl SyntheticCatalog {
    /// The id of data product `n`.
    #[must_use]
    pub fn data_product(n: u64) -> ProductId {
        fixed(&format!("{}", 10_100_000 + n))
    }

    /// The id of structure product `n`.
    #[must_use]
    pub fn structure_product(n: u64) -> ProductId {
        fixed(&format!("structure-{n:03}"))
    }

    /// The catalog's name.
    #[must_use]
    pub fn catalog_id() -> CatalogId {
        fixed("01a18e76-2bad-7480-abfe-2ba8a6889a45")
    }

    /// The id of edition `n` of product number `of`; it rises with `n`, and those before 0 are tombstones.
    #[must_use]
    pub fn edition_id(of: u64, n: i64) -> EditionId {
        let ms = u128::from(of) + u128::from((1_700_000_000_000 + n * DAY_MS).unsigned_abs());
        fixed(&Uuid::from_u128(ms << 80 | 7 << 76 | 0b10 << 62 | u128::from(of)).hyphenated().to_string())
    }

    /// How many tombstones data product `n` has.
    fn tombstones_of(&self, n: u64) -> u64 {
        self.tombstones * (n + 1) / self.data_products.max(1) - self.tombstones * n / self.data_products.max(1)
    }

    /// Whether data product `n` holds parts of lists of structure products.
    #[must_use]
    pub fn holds_parts(n: u64) -> bool {
        n.is_multiple_of(WITH_PARTS)
    }

    /// The state of the newest edition of data product `n`.
    #[must_use]
    pub fn newest(&self, n: u64) -> EntryState {
        // Spread over the products, as tables of many subjects are due on one day.
        let held = self.due + self.waiting;
        let every = self.data_products.checked_div(held).unwrap_or(u64::MAX).max(1);
        if n.is_multiple_of(every) && n / every < held { EntryState::Embargoed } else { EntryState::Live }
    }

    /// Whether the embargoed edition of data product `n` is due.
    fn is_due(&self, n: u64) -> bool {
        let every = self.data_products.checked_div(self.due + self.waiting).unwrap_or(u64::MAX).max(1);
        n / every < self.due
    }

    /// The manifest of edition `n` of data product `of`, and the content of each file that is new in it.
    #[must_use]
    pub fn manifest(&self, of: u64, n: i64) -> (Manifest, Vec<(String, Vec<u8>)>) {
        let (product, edition) = (Self::data_product(of), Self::edition_id(of, n));
        let urn = |package: &str, class: &str, id: &str| {
            format!("urn:sdmx:org.sdmx.infomodel.{package}.{class}=STC:{id}(1.0)")
        };
        let list = |id: &str| urn("codelist", "Codelist", id);
        let mut full: Vec<String> =
            (0..2 + of % 6).map(|dimension| list(&format!("CL_{product}_DIM_{}", dimension + 2))).collect();
        full.extend(["GEO", "UNIT_MEASURE"].map(|name| list(&format!("CL_{product}_{name}"))));
        full.extend(["CL_OBS_STATUS", "CL_SYMBOL", "CL_UNIT_MULT"].map(list));
        full.push(urn("conceptscheme", "ConceptScheme", &format!("CS_{product}")));
        let structure = urn("datastructure", "DataStructure", &format!("DSD_{product}"));
        let dataflow = urn("datastructure", "Dataflow", &format!("DF_{product}"));
        full.extend([structure.clone(), dataflow.clone()]);
        let mut artefacts: Vec<_> = full.into_iter().map(|urn| artefact(urn, None)).collect();
        if Self::holds_parts(of) && self.structure_products > 0 {
            let parts = (0..PARTS).map(|part| homed(of % self.structure_products, (of + 7 * part) % HOMED));
            artefacts.extend(parts.map(|urn| artefact(urn, Some(product.as_str()))));
        }
        let mut new = Vec::new();
        let mut files = Vec::new();
        for k in 0..=n.max(0) {
            let made_by = Self::edition_id(of, k);
            let path = format!("codr/t{product}/ducklake-{made_by}.parquet");
            let content = format!("observations of {made_by}\n").into_bytes();
            let carried_from = (k < n).then(|| made_by.clone());
            files.push(file(path.clone(), Root::Data, Tier::Remote, &content, carried_from));
            if k == n {
                new.push((format!("{}/{path}", layout::data(&product)), content));
            }
        }
        for name in [manifest::STORE_NAME, manifest::LAKE_NAME] {
            let content = format!("{name} of {edition}\n").into_bytes();
            files.push(file(name.to_owned(), Root::Edition, Tier::Required, &content, None));
            new.push((format!("{}/{name}", layout::edition(&product, &edition)), content));
        }
        let rows = 70_000 + n.unsigned_abs();
        let fingerprint = FilePart { sum: u128::from(rows) << 61, rows };
        let mut section =
            JobctlExtension { format_version: manifest::EXTENSION_FORMAT.to_owned(), ..Default::default() };
        let parts = TableParts {
            table: format!("codr.t{product}"),
            columns: Sha256Hex::of(b"columns"),
            duckdb_version: "1.5.5".to_owned(),
            canonical_form: manifest::CANONICAL_FORM.to_owned(),
            files: files.iter().filter(|file| file.root == Root::Data).map(|f| (f.path.clone(), fingerprint)).collect(),
        };
        section.fingerprints.insert(dataflow.clone(), parts);
        let bindings = vec![BindingCount {
            dataflow,
            observations: rows,
            structural_version: structure,
            fingerprint,
            structure_fingerprint: Sha256Hex::of(b"structure"),
        }];
        let previous = (n > 0 || self.tombstones_of(of) > 0).then(|| Self::edition_id(of, n - 1));
        let mut sealed = seal(product, edition, previous, files, bindings, artefacts);
        sealed.extensions.insert(manifest::EXTENSION_NAME.to_owned(), section.write());
        (finished(sealed), new)
    }

    fn structure_manifest(&self, of: u64, n: i64) -> (Manifest, Vec<(String, Vec<u8>)>) {
        let number = self.data_products + of;
        let (product, edition) = (Self::structure_product(of), Self::edition_id(number, n));
        let content = format!("artefacts of {edition}\n").into_bytes();
        let files = vec![file(manifest::STORE_NAME.to_owned(), Root::Edition, Tier::Required, &content, None)];
        let path = format!("{}/{}", layout::edition(&product, &edition), manifest::STORE_NAME);
        let artefacts = (0..HOMED).map(|list| artefact(homed(of, list), None)).collect();
        let previous = (n > 0).then(|| Self::edition_id(number, n - 1));
        (finished(seal(product, edition, previous, files, Vec::new(), artefacts)), vec![(path, content)])
    }

    /// Writes the catalog into the empty folder `folder`, quickly and without a thought of power cuts, at version 3: an
    /// empty one, one that records everything, and one that says whether the embargo is on.
    ///
    /// # Errors
    /// [`GenerateError`] when the disk fails.
    pub fn generate(&self, folder: &Path, now: Instant) -> Result<Head, GenerateError> {
        fs::create_dir_all(folder.join(layout::LEAVES))?;
        fs::write(folder.join(layout::CATALOG), CatalogJson::new(Self::catalog_id()).encode()?)?;
        fs::write(folder.join(layout::LOCK), b"")?;
        let by = By {
            actor: "bench@here".to_owned(),
            reason: "made up".to_owned(),
            producer: Producer { name: "jobctl".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            own_work: None,
        };
        let at = |n: i64| now.plus_ms(n - EDITIONS.cast_signed());
        let head = written(folder, first_version(0, true, None, &by, at(0))?)?;
        let mut outcome = Outcome::default();
        for of in 0..self.data_products {
            let mut leaf = empty(Self::data_product(of), Kind::Data);
            for n in 0..EDITIONS.cast_signed() {
                let state = match n + 1 - EDITIONS.cast_signed() {
                    0 => self.newest(of),
                    -1 if self.newest(of) == EntryState::Embargoed => EntryState::Live,
                    _ => EntryState::Superseded,
                };
                let due = (state == EntryState::Embargoed && self.is_due(of)).then(|| now.plus_ms(-1000));
                leaf.editions.push(self.edition(folder, self.manifest(of, n), state, now, due)?);
            }
            outcome.leaves.insert(leaf.product_id.clone(), leaf);
        }
        for of in 0..self.structure_products {
            let mut leaf = empty(Self::structure_product(of), Kind::Structure);
            for n in 0..EDITIONS.cast_signed() {
                let newest = n + 1 == EDITIONS.cast_signed();
                let state = if newest { EntryState::Live } else { EntryState::Superseded };
                leaf.editions.push(self.edition(folder, self.structure_manifest(of, n), state, now, None)?);
            }
            outcome.leaves.insert(leaf.product_id.clone(), leaf);
        }
        let tombstone = |of: u64, n: u64| Tombstone {
            product_id: Self::data_product(of),
            edition_id: Self::edition_id(of, -1 - n.cast_signed()),
            retired_at: now.plus_ms(-DAY_MS),
        };
        let retired = (0..self.data_products).flat_map(|of| (0..self.tombstones_of(of)).map(move |n| (of, n)));
        outcome.retired = Some(retired.map(|(of, n)| tombstone(of, n)).collect());
        let nothing = BTreeMap::new();
        let base = Base::whole(&head.root, &head.root_sha256, &nothing);
        let all = next_version(&base, 0, outcome, EventKind::Seal, &by, at(1))?;
        let leaves: BTreeMap<_, Arc<Leaf>> = BTreeMap::new();
        let head = written(folder, all)?;
        let base = Base::whole(&head.root, &head.root_sha256, &leaves);
        let outcome = Outcome { embargo: Some(self.embargo), ..Outcome::default() };
        written(folder, next_version(&base, 0, outcome, EventKind::EmbargoChange, &by, at(2))?)
    }

    fn edition(
        &self,
        folder: &Path,
        (manifest, files): (Manifest, Vec<(String, Vec<u8>)>),
        state: EntryState,
        at: Instant,
        release_at: Option<Instant>,
    ) -> Result<LeafEntry, GenerateError> {
        let bytes = manifest.encode();
        let path = layout::manifest(&manifest.product_id, &manifest.edition_id);
        for (path, content) in files.iter().map(|(path, bytes)| (path, bytes)).chain([(&path, &bytes)]) {
            let path = folder.join(path);
            if let Err(error) = fs::write(&path, content) {
                if error.kind() != io::ErrorKind::NotFound {
                    return Err(error.into());
                }
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder)?;
                }
                fs::write(&path, content)?;
            }
        }
        let entry = NewEntry::from_manifest(&manifest, Sha256Hex::of(&bytes))?;
        Ok(LeafEntry {
            edition_id: entry.edition_id,
            previous: entry.previous,
            state,
            manifest_sha256: entry.manifest_sha256,
            schema_version: entry.schema_version,
            state_changed_at: at,
            release_at,
            structure_source: None,
            artefacts: (!self.without_records).then_some(entry.artefacts),
            dataflows: Some(entry.dataflows),
            pull_bytes: Some(entry.pull_bytes),
            other: Map::new(),
        })
    }
}

fn empty(product_id: ProductId, kind: Kind) -> Leaf {
    Leaf {
        format_version: INVENTORY_FORMAT,
        product_id,
        kind,
        lifecycle: Lifecycle::Revisable,
        editions: Vec::new(),
        other: Map::new(),
    }
}

/// The URN of list `list` of structure product `of`.
fn homed(of: u64, list: u64) -> String {
    format!("urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_CLASSIFICATION_{of:03}_{list:02}(1.0)")
}

/// A full artefact, or the part of it that `part_of` holds.
fn artefact(urn: String, part_of: Option<&str>) -> ArtefactEntry {
    let full = Sha256Hex::of(urn.as_bytes());
    ArtefactEntry {
        stability: Stability::Legacy,
        partial: part_of.is_some(),
        fingerprint: part_of.map_or_else(|| full.clone(), |holder| Sha256Hex::of(format!("{urn} {holder}").as_bytes())),
        partial_of: part_of.map(|_| full),
        urn,
    }
}

fn file(path: String, root: Root, tier: Tier, content: &[u8], carried_from: Option<EditionId>) -> EditionFile {
    let digests = Digests {
        sha256: Sha256Hex::of(content),
        md5: hex(&md5::Md5::digest(content)),
        crc32c: format!("{:08x}", crc32c::crc32c(content)),
        others: BTreeMap::new(),
    };
    EditionFile { path, size_bytes: content.len() as u64, digests, root, tier, carried_from }
}

fn seal(
    product_id: ProductId,
    edition_id: EditionId,
    previous: Option<EditionId>,
    files: Vec<EditionFile>,
    bindings: Vec<BindingCount>,
    artefacts: Vec<ArtefactEntry>,
) -> Manifest {
    let lake = files.iter().any(|file| file.path == manifest::LAKE_NAME);
    Manifest {
        format_version: FORMAT_VERSION.to_owned(),
        product_id,
        created_at: Instant::from_ms(i64::try_from(edition_id.minted_at_ms()).unwrap_or(i64::MAX)),
        edition_id,
        previous,
        producer: manifest::Producer { name: "jobctl".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
        sdmxlib_version: concat!("0+jobctl.", env!("CARGO_PKG_VERSION")).to_owned(),
        schema_version: "2.52-jobctl.1".to_owned(),
        duckdb_version: "1.5.5".to_owned(),
        duckdb_storage_version: 68,
        ducklake_version: lake.then(|| "d8a1881e".to_owned()),
        ducklake_spec_version: lake.then(|| "1.0".to_owned()),
        data_path: manifest::DATA_PATH.to_owned(),
        files,
        bindings,
        artefacts,
        canonical_form: manifest::CANONICAL_FORM.to_owned(),
        content_fingerprint: None,
        producer_fields: Map::new(),
        extensions: BTreeMap::new(),
        provenance: None,
    }
}

fn finished(mut manifest: Manifest) -> Manifest {
    manifest.sort();
    manifest.content_fingerprint = Some(manifest.computed_content_fingerprint());
    manifest
}

/// Writes a version, its leaves first, and `CURRENT` last.
fn written(folder: &Path, version: NextVersion) -> Result<Head, GenerateError> {
    for leaf in version.leaves {
        fs::write(folder.join(layout::leaf(&leaf.sha256)), leaf.bytes)?;
    }
    fs::write(folder.join(layout::root(version.root.seq)), version.root_bytes)?;
    let head = Head { root: version.root, root_sha256: version.root_sha256 };
    fs::write(folder.join(layout::CURRENT), head.current().encode())?;
    Ok(head)
}

/// An identifier of a fixed form.
fn fixed<T: std::str::FromStr>(text: &str) -> T {
    match text.parse() {
        Ok(id) => id,
        Err(_) => unreachable!("a fixed text is of its form"),
    }
}
