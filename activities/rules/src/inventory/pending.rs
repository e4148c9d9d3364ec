//! A pending registration (*catalog* §11.2, D19): what an upload leaves in the inbox for the release job.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::document::{Document, DocumentError, FormatVersion, nullable};
use super::leaf::{Kind, Lifecycle};
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;

/// `pending/<product_id>/<edition_id>.json`: an uploaded edition that waits to be folded. Built from recorded inputs
/// only, so that a step that runs again writes the same bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingRegistration {
    /// `1.0`.
    pub format_version: FormatVersion,
    /// The product.
    pub product_id: ProductId,
    /// The uploaded edition.
    pub edition_id: EditionId,
    /// Its manifest's `previous`.
    #[serde(deserialize_with = "nullable")]
    pub previous: Option<EditionId>,
    /// The SHA-256 of its manifest.
    pub manifest_sha256: Sha256Hex,
    /// When it may be released; `null` is never due.
    #[serde(deserialize_with = "nullable")]
    pub release_at: Option<Instant>,
    /// What the edition holds.
    pub kind: Kind,
    /// The product's lifecycle from now on; `null` leaves it as it is.
    #[serde(deserialize_with = "nullable")]
    pub lifecycle: Option<Lifecycle>,
    /// Where the structures came from when a registry is authoritative.
    #[serde(deserialize_with = "nullable")]
    pub structure_source: Option<Map<String, Value>>,
    /// The embargoed edition that this one takes the place of; the fold withdraws it in the same version.
    #[serde(deserialize_with = "nullable")]
    pub supersedes: Option<EditionId>,
    /// Who uploaded it.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// Fields of a newer minor, kept.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The format that is written here.
pub const PENDING_FORMAT: FormatVersion = FormatVersion { major: 1, minor: 0 };

impl Document for PendingRegistration {
    const NAME: &'static str = "pending registration";
    const RULE: &'static str = "catalog §11.2";
    const MAJORS: &'static str = "1";

    fn format_version(&self) -> FormatVersion {
        self.format_version
    }

    fn knows(major: u32) -> bool {
        major == 1
    }

    fn validate(&self) -> Result<(), DocumentError> {
        let own = |other: &Option<EditionId>| other.as_ref() == Some(&self.edition_id);
        if own(&self.previous) || own(&self.supersedes) {
            return Err(DocumentError::Rule {
                document: Self::NAME,
                rule: Self::RULE,
                found: format!("edition {} as its own previous or supersedes", self.edition_id),
                expected: "another edition",
            });
        }
        Ok(())
    }
}
