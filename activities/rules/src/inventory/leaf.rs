//! The leaf of a product (*catalog* §6.3).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::document::{Document, DocumentError, FormatVersion, nullable, rises};
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;

/// What a product holds (*catalog* §8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Observations with their structures.
    Data,
    /// Full structures, and no observations.
    Structure,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Data => "data",
            Self::Structure => "structure",
        })
    }
}

/// Whether a product's content may still change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// Final means final (*catalog* §6.5 item 5).
    Final,
    /// Each edition may revise the one before it.
    Revisable,
}

/// The state of a recorded edition (*catalog* §6.4). Retirement is a tombstone, never a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryState {
    /// Recorded, and not to be seen before its release.
    Embargoed,
    /// The product's head at its schema version.
    Live,
    /// Replaced by a newer one; a target of a rollback.
    Superseded,
    /// Taken back or cancelled.
    Withdrawn,
}

impl fmt::Display for EntryState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Embargoed => "embargoed",
            Self::Live => "live",
            Self::Superseded => "superseded",
            Self::Withdrawn => "withdrawn",
        })
    }
}

/// The version of the store schema that an edition was written at, such as `2.52` or `2.52-jobctl.1`. Equality is by
/// the text; the order is by its numbers, and a suffix comes before the version that it leads to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SchemaVersion(String);

impl SchemaVersion {
    /// The version with this text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SchemaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Dotted parts, numbers by value and before words.
fn compare_parts(a: &str, b: &str) -> Ordering {
    let part = |text: &str| match text.parse::<u64>() {
        Ok(n) => (n, String::new()),
        Err(_) => (u64::MAX, text.to_owned()),
    };
    a.split('.').map(part).cmp(b.split('.').map(part))
}

impl Ord for SchemaVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        fn split(text: &str) -> (&str, Option<&str>) {
            text.split_once('-').map_or((text, None), |(version, suffix)| (version, Some(suffix)))
        }
        let ((a, a_suffix), (b, b_suffix)) = (split(&self.0), split(&other.0));
        let suffixes = || match (a_suffix, b_suffix) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(a), Some(b)) => compare_parts(a, b),
        };
        compare_parts(a, b).then_with(suffixes).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for SchemaVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What a leaf keeps of an artefact of its edition's manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtefactRecord {
    /// The artefact's fingerprint (*edition* §9).
    pub fingerprint: String,
    /// For a partial, the fingerprint of the full artefact that it was cut from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_of: Option<String>,
}

/// The artefact records of an edition, by URN.
pub type ArtefactRecords = BTreeMap<String, ArtefactRecord>;

/// One edition in its product's leaf.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeafEntry {
    /// The edition.
    pub edition_id: EditionId,
    /// Its manifest's `previous`.
    #[serde(deserialize_with = "nullable")]
    pub previous: Option<EditionId>,
    /// Its state.
    pub state: EntryState,
    /// The SHA-256 of its manifest.
    pub manifest_sha256: Sha256Hex,
    /// The store schema that it was written at.
    pub schema_version: SchemaVersion,
    /// When it took its state.
    pub state_changed_at: Instant,
    /// For an embargoed edition, when it may be released; `null` is never due.
    #[serde(deserialize_with = "nullable")]
    pub release_at: Option<Instant>,
    /// Where the structures came from when a registry is authoritative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structure_source: Option<Map<String, Value>>,
    /// The artefact records of its manifest; absent in entries of older writers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artefacts: Option<ArtefactRecords>,
    /// Routing field: the dataflows of its bindings, sorted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataflows: Option<Vec<String>>,
    /// Routing field: the bytes of its required files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_bytes: Option<u64>,
    /// Fields of a newer minor; a transition copies them unchanged.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// `inventory/leaves/<sha256>.json` (*catalog* §6.3): a product's editions that are not retired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Leaf {
    /// The Inventory format.
    pub format_version: FormatVersion,
    /// The product.
    pub product_id: ProductId,
    /// What it holds.
    pub kind: Kind,
    /// Whether its content may change.
    pub lifecycle: Lifecycle,
    /// Its editions, sorted by id.
    pub editions: Vec<LeafEntry>,
    /// Fields of a newer minor; a writer copies them unchanged.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Leaf {
    /// The entry of `edition`.
    #[must_use]
    pub fn entry(&self, edition: &EditionId) -> Option<&LeafEntry> {
        self.editions.iter().find(|entry| entry.edition_id == *edition)
    }

    /// The live entry at `schema_version`: the product's head for readers of that schema (*catalog* §6.4).
    #[must_use]
    pub fn head(&self, schema_version: &SchemaVersion) -> Option<&LeafEntry> {
        self.live().find(|entry| entry.schema_version == *schema_version)
    }

    /// The live entries, one a schema version.
    pub fn live(&self) -> impl Iterator<Item = &LeafEntry> {
        self.editions.iter().filter(|entry| entry.state == EntryState::Live)
    }
}

impl Document for Leaf {
    const NAME: &'static str = "Inventory leaf";
    const RULE: &'static str = "catalog §6.3";
    const MAJORS: &'static str = "1";

    fn format_version(&self) -> FormatVersion {
        self.format_version
    }

    fn knows(major: u32) -> bool {
        major == 1
    }

    fn validate(&self) -> Result<(), DocumentError> {
        let error = |rule: &'static str, found: String, expected: &'static str| {
            Err(DocumentError::Rule { document: Self::NAME, rule, found, expected })
        };
        if !rises(self.editions.iter().map(|entry| &entry.edition_id)) {
            return error(Self::RULE, "editions out of order or twice".to_owned(), "each once, sorted by edition_id");
        }
        for entry in &self.editions {
            let id = &entry.edition_id;
            if entry.release_at.is_some() && entry.state != EntryState::Embargoed {
                return error(
                    Self::RULE,
                    format!("{} edition {id} with a release_at", entry.state),
                    "release_at null unless embargoed",
                );
            }
            if entry.previous.as_ref() == Some(id) {
                return error("catalog §6.5 item 6", format!("edition {id} as its own previous"), "an earlier edition");
            }
            match (&entry.dataflows, entry.pull_bytes) {
                (None, None) => {}
                (Some(dataflows), Some(_)) => {
                    if !rises(dataflows.iter()) {
                        let found = format!("edition {id} with unsorted or repeated dataflows");
                        return error(Self::RULE, found, "dataflows sorted, each once");
                    }
                }
                (Some(_), None) | (None, Some(_)) => {
                    return error(
                        Self::RULE,
                        format!("edition {id} with one of dataflows and pull_bytes"),
                        "both or neither",
                    );
                }
            }
        }
        let mut live: Vec<_> = self.live().map(|entry| &entry.schema_version).collect();
        live.sort_unstable();
        if !rises(live.into_iter()) {
            return error(
                "catalog §6.5 item 1",
                format!("two live editions of {} at one schema version", self.product_id),
                "at most one live edition a schema version",
            );
        }
        Ok(())
    }
}
