//! Publish: build, seal, check and record one edition of a product on a local catalog.

use serde::{Deserialize, Serialize};

use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;
use crate::inventory::Lifecycle;

/// Runs the narrow repair, picks `previous`, mints the edition id.
pub const OPEN: &str = "publish.open";
/// Finds the source and records its digest.
pub const RESOLVE_SOURCE: &str = "publish.resolve_source";
/// Creates or resumes the unsealed edition and ingests structures and observations.
pub const BUILD: &str = "publish.build";
/// Seals the edition: journal entry first, manifest last.
pub const SEAL: &str = "publish.seal";
/// Checks the sealed edition at the profile `publish`.
pub const CHECK: &str = "publish.check";
/// Writes the Inventory version that records the edition.
pub const RECORD: &str = "publish.record";
/// Takes back the seal journal's entry of an edition that was refused or cancelled.
pub const ABANDON: &str = "publish.abandon";

/// Who asked for a change of the catalog, and why: what an Inventory version's event records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Who, as the system knows them; never taken from the caller's word on a server.
    pub actor: String,
    /// Why, in a person's words.
    pub reason: String,
}

/// The files of a source, as a person or the configuration named them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SourceInput {
    /// A Statistics Canada full table: one file a language.
    Codr {
        /// Zips, CSVs or folders, at most one a language, as absolute paths.
        files: Vec<String>,
        /// Metadata CSVs that stand elsewhere than beside the data, at most one a language, as absolute paths.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        metadata: Vec<String>,
    },
}

/// What a publish run is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishInput {
    /// The product.
    pub product_id: ProductId,
    /// Where its data comes from.
    pub source: SourceInput,
    /// Who asked, and why.
    pub cause: Cause,
    /// The product's lifecycle from now on; absent leaves it as it is, and makes a new product revisable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Lifecycle>,
    /// When it may be released; absent is never due by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_at: Option<Instant>,
}

/// What a publish run has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishOutput {
    /// The product.
    pub product_id: ProductId,
    /// The new edition.
    pub edition_id: EditionId,
    /// The edition that it extends.
    pub previous: Option<EditionId>,
    /// Its observations.
    pub rows: u64,
    /// Its content fingerprint (*edition* §9).
    pub content_fingerprint: Option<Sha256Hex>,
    /// The edition's state in the Inventory: `live`, or `embargoed`.
    pub state: String,
    /// The Inventory version that recorded it.
    pub seq: u64,
}

/// Input of [`OPEN`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenInput {
    /// The product.
    pub product_id: ProductId,
    /// Who asked, and why: a repair records an Inventory version under it.
    pub cause: Cause,
    /// When the edition is to be released: a catalog that does not wait is told before anything is built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_at: Option<Instant>,
}

/// An edition that an earlier run sealed and did not come to record, and what was done about it (*catalog* §6.7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repair {
    /// The edition.
    pub edition_id: EditionId,
    /// What was done, in a sentence.
    pub outcome: String,
}

/// Output of [`OPEN`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenOutput {
    /// The new edition's id.
    pub edition_id: EditionId,
    /// The edition to extend: the product's live one at this schema version, or at the highest older one.
    pub previous: Option<EditionId>,
    /// What the narrow repair did.
    #[serde(default)]
    pub repaired: Vec<Repair>,
}

/// Input of [`RESOLVE_SOURCE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolveSourceInput {
    /// The product.
    pub product_id: ProductId,
    /// Where its data comes from.
    pub source: SourceInput,
}

/// One file of a source as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    /// The file, as an absolute path.
    pub path: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its digest.
    pub sha256: Sha256Hex,
    /// The members that are read, where it is an archive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<String>,
}

/// Output of [`RESOLVE_SOURCE`]: the build refuses a source that is another by then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolveSourceOutput {
    /// The files, in a fixed order.
    pub files: Vec<SourceFile>,
    /// One digest over all of them.
    pub sha256: Sha256Hex,
}

/// Input of [`BUILD`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildInput {
    /// The product.
    pub product_id: ProductId,
    /// The edition to build.
    pub edition_id: EditionId,
    /// The edition to extend.
    pub previous: Option<EditionId>,
    /// Where the data comes from.
    pub source: SourceInput,
    /// The source as it was when the run began.
    pub resolved: ResolveSourceOutput,
}

/// Output of [`BUILD`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildOutput {
    /// The observations of the edition.
    pub rows: u64,
    /// Data files that this build wrote.
    pub new_files: u64,
    /// Their size.
    pub new_bytes: u64,
    /// What the source was accepted with, a sentence each.
    #[serde(default)]
    pub findings: Vec<String>,
}

/// Input of [`SEAL`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealInput {
    /// The product.
    pub product_id: ProductId,
    /// The edition to seal.
    pub edition_id: EditionId,
    /// The edition that it extends.
    pub previous: Option<EditionId>,
    /// The product's lifecycle from now on; absent leaves it as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Lifecycle>,
    /// The edition is folded from `previous`: its manifest keeps what that one says of its producer, the producer's own
    /// fields, other packages' sections and provenance (*edition* §5.6), and the tiers of its files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_fold: bool,
}

/// Output of [`SEAL`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealOutput {
    /// The SHA-256 of `manifest.json`.
    pub manifest_sha256: Sha256Hex,
    /// The edition's content fingerprint.
    pub content_fingerprint: Option<Sha256Hex>,
    /// The table fingerprint of each binding, `<sum>:<count>`.
    pub table_fingerprints: Vec<String>,
    /// The files that the manifest lists.
    pub files: u64,
    /// How many of them were hashed now.
    pub hashed: u64,
    /// How many were carried from the previous manifest.
    pub carried: u64,
    /// Observations over all bindings.
    pub rows: u64,
}

/// Input of [`CHECK`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckInput {
    /// The product.
    pub product_id: ProductId,
    /// The edition to check.
    pub edition_id: EditionId,
    /// The manifest that the seal wrote.
    pub manifest_sha256: Sha256Hex,
}

/// Output of [`CHECK`]: there was no finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckOutput {
    /// The checks that ran, in order.
    pub checks: Vec<String>,
    /// Whether every fingerprint was computed again. The process that sealed the edition may leave that out.
    pub fingerprints_recomputed: bool,
}

/// Input of [`RECORD`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordInput {
    /// The product.
    pub product_id: ProductId,
    /// The edition to record.
    pub edition_id: EditionId,
    /// The manifest that was sealed and checked.
    pub manifest_sha256: Sha256Hex,
    /// The product's lifecycle from now on; absent leaves it as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Lifecycle>,
    /// Who asked, and why.
    pub cause: Cause,
    /// When it may be released; absent is never due by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_at: Option<Instant>,
}

/// Output of [`RECORD`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordOutput {
    /// The Inventory version that holds the edition.
    pub seq: u64,
    /// The edition's state there: `live`, `embargoed`, `superseded`, `withdrawn` or `tombstone`.
    pub state: String,
    /// The edition that it replaced.
    pub superseded: Option<EditionId>,
    /// Whether it was recorded already, so that nothing was written.
    pub already: bool,
}

/// Input of [`ABANDON`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbandonInput {
    /// The product.
    pub product_id: ProductId,
    /// The edition whose journal entry goes.
    pub edition_id: EditionId,
    /// An edition that is not sealed goes too: the run was cancelled, and nobody would go on with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discard_unsealed: bool,
}

/// Output of [`ABANDON`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbandonOutput {
    /// Whether there was an entry.
    pub had_entry: bool,
    /// Whether there was an unsealed edition, which is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub discarded: bool,
}
