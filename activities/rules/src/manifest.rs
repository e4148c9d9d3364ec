//! The manifest of an edition, format 3.0 (*edition* §2, *catalog* §4.2).

mod jobctl;
#[cfg(test)]
mod tests;
mod text;
mod validate;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

pub use jobctl::{EXTENSION_FORMAT, EXTENSION_NAME, FilePart, JobctlExtension, TableParts};
pub use validate::{ManifestFault, ManifestProblem};

use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;
pub use crate::sdmx::fingerprint::TableFingerprint;
use crate::sdmx::model::UrnText;
pub use crate::sdmx::urn::Stability;

/// The manifest format that is written here.
pub const FORMAT_VERSION: &str = "3.0";
/// The major version that is read here: any 3.x.
pub const FORMAT_MAJOR: u64 = 3;
/// The form of the text that every fingerprint hashes (*edition* §9).
pub const CANONICAL_FORM: &str = "1";
/// The file's name in the edition directory.
pub const MANIFEST_NAME: &str = "manifest.json";
/// The name reserved for a detached signature: never listed, never a finding.
pub const SIGNATURE_NAME: &str = "manifest.json.sig";
/// The artefact store's name in the edition directory.
pub const STORE_NAME: &str = "metadata.duckdb";
/// The DuckLake catalog's name in the edition directory.
pub const LAKE_NAME: &str = "tables.ducklake";
/// Where the data files are, from the edition directory.
pub const DATA_PATH: &str = "../data/";

/// What seals an edition: `manifest.json` (*edition* §2). Fields that this version does not know are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// `major.minor`, such as `3.0`.
    pub format_version: String,
    /// The producer's stable name for the product.
    pub product_id: ProductId,
    /// The edition's id, which names its directory.
    pub edition_id: EditionId,
    /// The edition that this one extends, `None` for a product's first.
    #[serde(deserialize_with = "nullable")]
    pub previous: Option<EditionId>,
    /// When the manifest was written.
    pub created_at: Instant,
    /// What sealed the edition.
    pub producer: Producer,
    /// The version of sdmxlib that wrote the manifest; `0+jobctl.<version>` when it was this program (D25).
    pub sdmxlib_version: String,
    /// The store schema of `metadata.duckdb`.
    pub schema_version: String,
    /// The DuckDB release that wrote the DuckDB files.
    pub duckdb_version: String,
    /// The newest storage version among the DuckDB files, by their headers (*edition* §4).
    pub duckdb_storage_version: u64,
    /// The DuckLake extension that wrote `tables.ducklake`, `None` for an edition without one.
    #[serde(deserialize_with = "nullable")]
    pub ducklake_version: Option<String>,
    /// The DuckLake format that the catalog records, `None` for an edition without one.
    #[serde(deserialize_with = "nullable")]
    pub ducklake_spec_version: Option<String>,
    /// Where the data files are, from the edition directory: [`DATA_PATH`].
    pub data_path: String,
    /// Every file of the edition directory but the manifest, and every data file that the lake references; sorted by
    /// root, then path.
    pub files: Vec<EditionFile>,
    /// One for each bound dataflow, sorted by dataflow.
    pub bindings: Vec<BindingCount>,
    /// One for each maintainable artefact but the bindings, sorted by URN.
    pub artefacts: Vec<ArtefactEntry>,
    /// The form of the text that the fingerprints hash: [`CANONICAL_FORM`].
    pub canonical_form: String,
    /// The product fingerprint (*edition* §9).
    #[serde(default)]
    pub content_fingerprint: Option<Sha256Hex>,
    /// The producer's own fields, carried and not interpreted.
    #[serde(default, deserialize_with = "null_as_default")]
    pub producer_fields: Map<String, Value>,
    /// Sections of other packages by name, each an object, carried and not interpreted.
    #[serde(default, deserialize_with = "null_as_default")]
    pub extensions: BTreeMap<String, Map<String, Value>>,
    /// Where a fetched edition came from.
    #[serde(default)]
    pub provenance: Option<Provenance>,
}

/// What sealed an edition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Producer {
    /// The builder's name.
    pub name: String,
    /// The builder's version.
    pub version: String,
}

/// A file of the edition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditionFile {
    /// `/`-separated, relative to the directory that `root` names.
    pub path: String,
    /// Size in bytes.
    #[serde(rename = "size")]
    pub size_bytes: u64,
    /// Digests of the content.
    pub digests: Digests,
    /// Which directory `path` is relative to.
    pub root: Root,
    /// Where a server places it.
    pub tier: Tier,
    /// The edition whose manifest `size_bytes` and `digests` were copied from, `None` when this edition hashed it.
    #[serde(default)]
    pub carried_from: Option<EditionId>,
}

/// The directory that a file's path is relative to. The order is the manifest's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Root {
    /// `data_path`, shared by the product's editions.
    Data,
    /// The edition directory.
    Edition,
}

/// Where a server places a file (*edition* §7, *catalog* §7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Pulled before a server is ready.
    Required,
    /// Pulled to a local disk on first use.
    Lazy,
    /// Read remotely by byte range.
    Remote,
}

/// A file's digests by algorithm, in lowercase hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digests {
    /// The integrity anchor.
    pub sha256: Sha256Hex,
    /// What Azure keeps: 32 digits.
    pub md5: String,
    /// What S3 and GCS keep: 8 digits, big-endian.
    pub crc32c: String,
    /// Others that a store adds; carried, never compared here.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

/// A bound dataflow: how many rows, and what they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingCount {
    /// The bound dataflow's URN.
    pub dataflow: UrnText,
    /// How many rows the binding's table holds.
    pub observations: u64,
    /// The URN of the data structure that the binding was written against.
    pub structural_version: UrnText,
    /// The table fingerprint.
    pub fingerprint: TableFingerprint,
    /// The structure fingerprint of the dataflow.
    pub structure_fingerprint: Sha256Hex,
}

/// A maintainable artefact of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtefactEntry {
    /// The URN at its pinned version.
    pub urn: UrnText,
    /// Whether the version alone holds the content fixed.
    pub stability: Stability,
    /// Whether it is a subset of the full scheme.
    pub partial: bool,
    /// The SHA-256 of its canonical text.
    pub fingerprint: Sha256Hex,
    /// For a partial, the fingerprint of the full artefact that it was cut from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_of: Option<Sha256Hex>,
}

/// Where a fetched edition came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The registry's stable id.
    pub source: String,
    /// The REST endpoint fetched from.
    pub endpoint: String,
    /// The version of the SDMX REST API spoken to it.
    pub api: String,
    /// When the fetch started.
    pub retrieved_at: Instant,
    /// The dataflow's URN, at the version that it resolved to.
    pub dataflow: UrnText,
    /// The data key asked for, `None` for every series.
    #[serde(default)]
    pub key: Option<String>,
    /// The inclusive `startPeriod` asked for.
    #[serde(default)]
    pub start: Option<String>,
    /// The inclusive `endPeriod` asked for.
    #[serde(default)]
    pub end: Option<String>,
    /// Whether observations were left out on purpose.
    #[serde(default, deserialize_with = "null_as_default")]
    pub structures_only: bool,
    /// The URN of every structural artefact fetched, sorted.
    #[serde(default, deserialize_with = "null_as_default")]
    pub artefacts: Vec<UrnText>,
}

/// Why bytes are not a manifest that is read here.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// They are no JSON object.
    #[error("edition §2: a manifest is a JSON object; this one is not")]
    NotJson {
        /// Where and why, as far as it is JSON at all.
        #[source]
        detail: Option<serde_json::Error>,
    },
    /// They hold no `format_version`.
    #[error(
        "edition §2: this manifest.json has no format_version, so it is a builder's own format from before 3.0; \
         expected format_version 3.x. Publish the product again to seal a new edition"
    )]
    NoFormatVersion,
    /// Its `format_version` is no `major.minor`.
    #[error("edition §2: the manifest's format_version is {found}; expected \"major.minor\", such as \"3.0\"")]
    BadFormatVersion {
        /// The value as JSON.
        found: String,
    },
    /// Another major version.
    #[error(
        "edition §2: the manifest's format_version is {found}; only 3.x is read. A 2.x catalog is rebuilt by \
         publishing its products again"
    )]
    OtherMajor {
        /// The version.
        found: String,
    },
    /// A field is missing or of another type.
    #[error("edition §2: the manifest does not have the fields of format 3.0")]
    Shape {
        /// Which field and where.
        #[source]
        detail: serde_json::Error,
    },
    /// The fields are there, and some contradict the format or one another.
    #[error("{}", validate::list(.problems))]
    Invalid {
        /// Each of them.
        problems: Vec<ManifestProblem>,
    },
}

impl Manifest {
    /// The manifest in `bytes`, of any format 3.x, valid by [`Manifest::validate`] (*edition* §2, Versions).
    ///
    /// # Errors
    /// [`ManifestError`] when the bytes are no manifest, one of another major version, or one that contradicts the
    /// format.
    pub fn decode(bytes: &[u8]) -> Result<Self, ManifestError> {
        let manifest = match serde_json::from_slice::<Self>(bytes) {
            Ok(manifest) if is_object(bytes) && major(&manifest.format_version) == Some(FORMAT_MAJOR) => manifest,
            // Only what is no such manifest is worth a second pass, which tells why.
            Ok(_) | Err(_) => Self::decode_by_parts(bytes)?,
        };
        let problems = manifest.validate();
        if problems.is_empty() { Ok(manifest) } else { Err(ManifestError::Invalid { problems }) }
    }

    /// The same, looking at the version before anything else.
    fn decode_by_parts(bytes: &[u8]) -> Result<Self, ManifestError> {
        let value: Value =
            serde_json::from_slice(bytes).map_err(|detail| ManifestError::NotJson { detail: Some(detail) })?;
        let object = value.as_object().ok_or(ManifestError::NotJson { detail: None })?;
        let version = object.get("format_version").ok_or(ManifestError::NoFormatVersion)?;
        let bad = || ManifestError::BadFormatVersion { found: version.to_string() };
        let text = version.as_str().ok_or_else(bad)?;
        if major(text).ok_or_else(bad)? != FORMAT_MAJOR {
            return Err(ManifestError::OtherMajor { found: text.to_owned() });
        }
        serde_json::from_slice(bytes).map_err(|detail| ManifestError::Shape { detail })
    }

    /// Puts files, bindings and artefacts in the manifest's order. Call it before [`Manifest::encode`].
    pub fn sort(&mut self) {
        self.files.sort_by(|a, b| (a.root, &a.path).cmp(&(b.root, &b.path)));
        self.bindings.sort_by(|a, b| a.dataflow.cmp(&b.dataflow));
        self.artefacts.sort_by(|a, b| a.urn.cmp(&b.urn));
        if let Some(provenance) = &mut self.provenance {
            provenance.artefacts.sort();
        }
    }

    /// Everything that contradicts the format or another field; empty for a valid manifest.
    #[must_use]
    pub fn validate(&self) -> Vec<ManifestProblem> {
        validate::validate(self)
    }

    /// The manifest as it is written: JSON indented by two spaces, the fields in the specification's order, a newline
    /// at the end.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        pretty(self)
    }

    /// The files of `root`, in the manifest's order.
    pub fn files_of(&self, root: Root) -> impl Iterator<Item = &EditionFile> {
        self.files.iter().filter(move |file| file.root == root)
    }

    /// The product fingerprint of the artefacts and bindings listed here (*edition* §9).
    #[must_use]
    pub fn computed_content_fingerprint(&self) -> Sha256Hex {
        crate::sdmx::fingerprint::content_fingerprint(
            &self.artefacts.iter().map(|entry| (entry.urn.clone(), entry.fingerprint.clone())).collect(),
            &self.bindings.iter().map(|binding| (binding.dataflow.clone(), binding.fingerprint)).collect(),
        )
    }

    /// The section of this program in `extensions`, when it is there and of a format that is read here.
    #[must_use]
    pub fn jobctl(&self) -> Option<JobctlExtension> {
        self.extensions.get(EXTENSION_NAME).and_then(JobctlExtension::read)
    }
}

/// Whether JSON text is an object: a list of all fields in order reads as one too.
fn is_object(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'{')
}

/// The major version of a `major.minor`.
fn major(version: &str) -> Option<u64> {
    let (major, minor) = version.split_once('.')?;
    minor.parse::<u64>().ok()?;
    major.parse().ok()
}

/// `value` as JSON indented by two spaces, with a newline at the end. `value` has text keys only and no number that
/// JSON lacks.
pub(crate) fn pretty<T: Serialize>(value: &T) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// A field that must be there and may be `null`.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(input: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(input)
}

/// A field whose `null` means its default.
fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(input: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(input)?.unwrap_or_default())
}
