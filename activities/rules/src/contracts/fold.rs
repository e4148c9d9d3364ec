//! Fold: apply overlays to the live edition of a product for good, as a new edition over the same data files
//! (*edition* §5.6). Opening, sealing, checking and recording are those of [`super::publish`].

use serde::{Deserialize, Serialize};

use super::publish::Cause;
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;

/// Reads the overlays and records which bytes they are.
pub const RESOLVE_OVERLAYS: &str = "fold.resolve_overlays";
/// Builds the unsealed edition: the folded one's store with the changed artefacts, over the same data files.
pub const FOLD: &str = "fold.fold";

/// What a fold is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoldInput {
    /// The product.
    pub product_id: ProductId,
    /// The overlays, in the order in which they are applied, as absolute paths.
    pub overlays: Vec<String>,
    /// Whose entries are applied, with those for everybody; absent applies every entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// Who asked, and why.
    pub cause: Cause,
    /// When the new edition may be released, where the catalog's embargo is on; absent is never due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_at: Option<Instant>,
}

/// What a fold has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoldOutput {
    /// The product.
    pub product_id: ProductId,
    /// The new edition.
    pub edition_id: EditionId,
    /// The edition that was folded.
    pub previous: Option<EditionId>,
    /// Its observations, which are those of the folded edition.
    pub rows: u64,
    /// How many artefacts are others now.
    pub changed: u64,
    /// Its content fingerprint (*edition* §9).
    pub content_fingerprint: Option<Sha256Hex>,
    /// The edition's state in the Inventory: `live`, or `embargoed`.
    pub state: String,
    /// The Inventory version that recorded it.
    pub seq: u64,
}

/// Input of [`RESOLVE_OVERLAYS`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolveOverlaysInput {
    /// The overlays, as absolute paths.
    pub overlays: Vec<String>,
    /// For whom they are applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
}

/// An overlay as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlayFile {
    /// The file, as an absolute path.
    pub path: String,
    /// Its size.
    pub size_bytes: u64,
    /// The SHA-256 of its bytes.
    pub sha256: Sha256Hex,
    /// The overlay's id.
    pub id: String,
    /// Its digest as applied (*edition* §5.4).
    pub digest: Sha256Hex,
}

/// Output of [`RESOLVE_OVERLAYS`]: the fold refuses an overlay that is another by then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolveOverlaysOutput {
    /// The overlays, in the order in which they are applied.
    pub overlays: Vec<OverlayFile>,
    /// What of them cannot have the effect that was meant, a sentence each, the first of them.
    #[serde(default)]
    pub findings: Vec<String>,
}

/// Input of [`FOLD`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoldStepInput {
    /// The product.
    pub product_id: ProductId,
    /// The edition to build.
    pub edition_id: EditionId,
    /// The edition to fold; without one there is nothing to fold.
    pub previous: Option<EditionId>,
    /// The overlays as they were when the run began.
    pub overlays: Vec<OverlayFile>,
    /// For whom they are applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
}

/// Output of [`FOLD`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FoldStepOutput {
    /// How many artefacts are others now.
    pub changed: u64,
    /// The URNs of the first of them.
    pub artefacts: Vec<String>,
    /// How many entries and texts applied to the audience.
    pub applied: u64,
    /// How many of these selected nothing in this edition.
    pub without_target: u64,
    /// The first of these, as `entries[3] of labels`.
    #[serde(default)]
    pub untargeted: Vec<String>,
}
