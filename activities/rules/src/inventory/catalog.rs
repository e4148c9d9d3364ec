//! `catalog.json`, `CURRENT` and `inventory/HISTORY` (*catalog* §6.1, §6.9).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::document::{Document, DocumentError, FormatVersion, nullable};
use super::refusal::Refusal;
use super::root::{Root, Seq};
use crate::ids::{CatalogId, Sha256Hex};

/// `catalog.json` (*catalog* §6.1): written at creation, rewritten only to bump the epoch or to opt in to expiry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CatalogJson {
    /// `1.0`, or `2.0` once the catalog expires its old versions.
    pub format_version: FormatVersion,
    /// The catalog's name, kept by a full export.
    pub catalog_id: CatalogId,
    /// Raised by a restore of the whole catalog; readers reset their floor when it changes.
    pub restore_epoch: u64,
    /// Present in 2.x only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<CatalogHistory>,
    /// Fields of a newer minor, kept.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What `catalog.json` 2.x says of expiry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CatalogHistory {
    /// The lowest version from which every root carries the history fields.
    pub since_seq: Seq,
}

/// What a writer can do (*catalog* §6.1): stage 2 takes the catalog lock and checks `expired_through`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterStage {
    /// Writes the history fields; knows nothing of expiry.
    One,
    /// Writes on a catalog that expires, too.
    Two,
}

impl CatalogJson {
    /// A new catalog's document.
    #[must_use]
    pub fn new(catalog_id: CatalogId) -> Self {
        Self {
            format_version: FormatVersion { major: 1, minor: 0 },
            catalog_id,
            restore_epoch: 0,
            history: None,
            other: Map::new(),
        }
    }

    /// Whether a writer of `stage` may write to this catalog.
    ///
    /// # Errors
    /// [`Refusal::CatalogExpires`] for a 2.x catalog and a writer of stage 1 (H6).
    pub fn admit_writer(&self, stage: WriterStage) -> Result<(), Box<Refusal>> {
        match (self.format_version.major, stage) {
            (0 | 1, WriterStage::One | WriterStage::Two) | (_, WriterStage::Two) => Ok(()),
            (_, WriterStage::One) => Err(Box::new(Refusal::CatalogExpires { found: self.format_version })),
        }
    }
}

impl Document for CatalogJson {
    const NAME: &'static str = "catalog.json";
    const RULE: &'static str = "catalog §6.1";
    const MAJORS: &'static str = "1 and 2";

    fn format_version(&self) -> FormatVersion {
        self.format_version
    }

    fn knows(major: u32) -> bool {
        matches!(major, 1 | 2)
    }

    fn validate(&self) -> Result<(), DocumentError> {
        let expires = self.format_version.major == 2;
        if expires == self.history.is_some() {
            return Ok(());
        }
        Err(DocumentError::Rule {
            document: Self::NAME,
            rule: Self::RULE,
            found: format!("format {} {} history", self.format_version, if expires { "without" } else { "with" }),
            expected: "history in 2.x and only there",
        })
    }
}

/// `CURRENT` (*catalog* §6.1): a hint. Nothing trusts it without verifying the root that it names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Current {
    /// The version it names.
    pub seq: Seq,
    /// The SHA-256 of that version's root.
    pub root_sha256: Sha256Hex,
    /// That root's epoch.
    pub restore_epoch: u64,
}

impl Current {
    /// The hint in `bytes`, or `None` when they are not one: a hint that cannot be read counts as missing.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// The bytes of the hint.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // Three fields that always have a JSON form.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// `inventory/HISTORY` (*catalog* §6.9): what an opted-in catalog knows of its expired versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// `1.0`.
    pub format_version: FormatVersion,
    /// `catalog.json`'s.
    pub catalog_id: CatalogId,
    /// The catalog's epoch; a restore writes it here first.
    pub restore_epoch: u64,
    /// The highest version that expiry removed; 0 before the first.
    pub expired_through: u64,
    /// The newest segment's path.
    #[serde(deserialize_with = "nullable")]
    pub newest_segment: Option<String>,
    /// The SHA-256 of that segment.
    #[serde(deserialize_with = "nullable")]
    pub newest_segment_sha256: Option<Sha256Hex>,
    /// The newest segment whose roots and leaves are deleted.
    #[serde(deserialize_with = "nullable")]
    pub cleaned_through: Option<String>,
    /// Fields of a newer minor, kept.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Document for History {
    const NAME: &'static str = "inventory/HISTORY";
    const RULE: &'static str = "catalog §6.9";
    const MAJORS: &'static str = "1";

    fn format_version(&self) -> FormatVersion {
        self.format_version
    }

    fn knows(major: u32) -> bool {
        major == 1
    }

    fn validate(&self) -> Result<(), DocumentError> {
        if self.newest_segment.is_some() == self.newest_segment_sha256.is_some() {
            return Ok(());
        }
        Err(DocumentError::Rule {
            document: Self::NAME,
            rule: Self::RULE,
            found: "newest_segment without newest_segment_sha256, or the reverse".to_owned(),
            expected: "both or neither",
        })
    }
}

/// Whether a version may follow `head` on the catalog that `catalog` and `history` describe, both read under the
/// catalog's lock (*catalog* §6.6, D15).
///
/// # Errors
/// [`Refusal::HistoryMissing`] for a 2.x catalog without `HISTORY`; [`Refusal::UnfinishedRestore`] when the epochs are
/// not one; [`Refusal::BaseExpired`] when expiry removed the head's number, so that its name could be used twice.
pub fn admit_base(catalog: &CatalogJson, history: Option<&History>, head: &Root) -> Result<(), Box<Refusal>> {
    if catalog.format_version.major >= 2 && history.is_none() {
        return Err(Box::new(Refusal::HistoryMissing));
    }
    let epoch = history.map_or(catalog.restore_epoch, |history| history.restore_epoch);
    if epoch != catalog.restore_epoch || head.restore_epoch != epoch {
        return Err(Box::new(Refusal::UnfinishedRestore {
            catalog: catalog.restore_epoch,
            history: history.map(|history| history.restore_epoch),
            head: head.restore_epoch,
        }));
    }
    let expired_through = history.map_or(0, |history| history.expired_through);
    if head.seq.get() <= expired_through {
        return Err(Box::new(Refusal::BaseExpired { seq: head.seq, expired_through }));
    }
    Ok(())
}

/// Whether the version whose root was just created counts, by `catalog.json` and `HISTORY` as they are read again after
/// it (D1). A refusal means that it was not committed: the writer deletes its own root, if its bytes are still those
/// that it wrote.
///
/// # Errors
/// As [`admit_base`]: the lease fences `HISTORY` only, and a paused writer may come back to an expired number or an old
/// epoch.
pub fn check_committed(catalog: &CatalogJson, history: Option<&History>, created: &Root) -> Result<(), Box<Refusal>> {
    admit_base(catalog, history, created)
}
