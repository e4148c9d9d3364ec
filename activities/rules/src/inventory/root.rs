//! The root of a version (*catalog* §6.2).

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;

use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::change::{Change, check_changes};
use super::document::{Document, DocumentError, FormatVersion, nullable, present, rises};
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;
use crate::layout;

/// The number of an Inventory version, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(NonZeroU64);

impl Seq {
    /// The first version.
    pub const FIRST: Self = Self(NonZeroU64::MIN);

    /// Version `n`, or `None` for 0.
    #[must_use]
    pub fn new(n: u64) -> Option<Self> {
        NonZeroU64::new(n).map(Self)
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0.get()
    }

    /// The version after this one. The last number there is has none after it and stays.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The version before this one, or `None` before the first.
    #[must_use]
    pub fn before(self) -> Option<Self> {
        Self::new(self.get() - 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The library that wrote a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Producer {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// What a version did. A writer records one of the ten kinds; a reader takes any text (*catalog* §6.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum EventKind {
    /// An edition was recorded.
    Seal,
    /// Embargoed editions went live.
    Release,
    /// A live edition was taken back for an earlier one.
    Rollback,
    /// An edition was cancelled or taken back.
    Withdraw,
    /// Editions became tombstones.
    Retire,
    /// A tombstone became an edition again.
    Reinstate,
    /// The embargo, or a time of release, changed.
    EmbargoChange,
    /// The catalog was restored to an earlier version.
    Restore,
    /// A version was built from an older, known-good one.
    Correct,
    /// The catalog's description changed, and nothing else.
    Describe,
    /// A kind of a newer minor version.
    Other(String),
}

impl EventKind {
    /// The kind as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Seal => "seal",
            Self::Release => "release",
            Self::Rollback => "rollback",
            Self::Withdraw => "withdraw",
            Self::Retire => "retire",
            Self::Reinstate => "reinstate",
            Self::EmbargoChange => "embargo-change",
            Self::Restore => "restore",
            Self::Correct => "correct",
            Self::Describe => "describe",
            Self::Other(kind) => kind,
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<String> for EventKind {
    fn from(text: String) -> Self {
        match text.as_str() {
            "seal" => Self::Seal,
            "release" => Self::Release,
            "rollback" => Self::Rollback,
            "withdraw" => Self::Withdraw,
            "retire" => Self::Retire,
            "reinstate" => Self::Reinstate,
            "embargo-change" => Self::EmbargoChange,
            "restore" => Self::Restore,
            "correct" => Self::Correct,
            "describe" => Self::Describe,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl From<EventKind> for String {
    fn from(kind: EventKind) -> String {
        kind.as_str().to_owned()
    }
}

/// Who acted, why, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// From the writer's identity, never from the caller.
    pub actor: String,
    /// In a person's words.
    pub reason: String,
    /// What the version did.
    pub kind: EventKind,
}

/// Where a product's leaf is. Written as `{leaf, leaf_sha256}`; the path follows from the hash.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "ProductRefDocument")]
pub struct ProductRef {
    /// The SHA-256 of the leaf's bytes.
    pub leaf_sha256: Sha256Hex,
}

#[derive(Deserialize)]
struct ProductRefDocument {
    leaf: String,
    leaf_sha256: Sha256Hex,
}

/// A leaf's path that is not the one its hash gives.
#[derive(Debug, thiserror::Error)]
#[error("leaf {found:?} where leaf_sha256 gives {expected:?}")]
struct LeafPath {
    found: String,
    expected: String,
}

impl TryFrom<ProductRefDocument> for ProductRef {
    type Error = LeafPath;
    fn try_from(document: ProductRefDocument) -> Result<Self, LeafPath> {
        let expected = layout::leaf(&document.leaf_sha256);
        if document.leaf == expected {
            Ok(Self { leaf_sha256: document.leaf_sha256 })
        } else {
            Err(LeafPath { found: document.leaf, expected })
        }
    }
}

impl Serialize for ProductRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("ProductRef", 2)?;
        object.serialize_field("leaf", &layout::leaf(&self.leaf_sha256))?;
        object.serialize_field("leaf_sha256", &self.leaf_sha256)?;
        object.end()
    }
}

/// A retired edition: kept so that it stays distinguishable from one that was never recorded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Tombstone {
    /// The product.
    pub product_id: ProductId,
    /// The edition.
    pub edition_id: EditionId,
    /// When it was retired.
    pub retired_at: Instant,
}

/// `inventory/<seq>.json` (*catalog* §6.2): one version of the Inventory, and what it changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Root {
    /// The Inventory format.
    pub format_version: FormatVersion,
    /// This version's number.
    pub seq: Seq,
    /// The version this one was built from: `seq - 1`, but for a correction.
    #[serde(deserialize_with = "nullable")]
    pub previous_inventory: Option<Seq>,
    /// `catalog.json`'s when this was written.
    pub restore_epoch: u64,
    /// When it was written; rises along the chain. The fifth field, so that a reader finds it in the first 1 KiB.
    pub created_at: Instant,
    /// The library that wrote it.
    pub producer: Producer,
    /// Whether a sealed edition waits for its release.
    pub embargo: bool,
    /// Each product's leaf.
    pub products: BTreeMap<ProductId, ProductRef>,
    /// The tombstones.
    pub retired: Vec<Tombstone>,
    /// Who acted, why, and how.
    pub event: Event,
    /// Sections of other packages, by their name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extensions: Map<String, Value>,
    /// History field: the SHA-256 of the bytes of root `seq - 1`; `Some(None)` for version 1, `None` when the root
    /// carries no history fields.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub previous_root_sha256: Option<Option<Sha256Hex>>,
    /// History field: what differs from root `seq - 1`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub changes: Option<Vec<Change>>,
    /// Fields of a newer minor.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Root {
    /// The SHA-256 of the leaf of `product` in this version.
    #[must_use]
    pub fn leaf_sha256(&self, product: &ProductId) -> Option<&Sha256Hex> {
        self.products.get(product).map(|reference| &reference.leaf_sha256)
    }

    /// The tombstone of `edition` of `product`.
    #[must_use]
    pub fn tombstone(&self, product: &ProductId, edition: &EditionId) -> Option<&Tombstone> {
        self.retired.iter().find(|tombstone| tombstone.product_id == *product && tombstone.edition_id == *edition)
    }

    /// Whether this root carries the history fields; no rule asks its format version instead (H19).
    #[must_use]
    pub fn has_history(&self) -> bool {
        self.previous_root_sha256.is_some() && self.changes.is_some()
    }

    /// Whether this root names `base`, the version before it, whose stored bytes have the SHA-256 `base_sha256`
    /// (*catalog* §6.2). Of another restore epoch, of another number or without history fields, nothing tells (H19).
    #[must_use]
    pub fn chains_to(&self, base: &Self, base_sha256: &Sha256Hex) -> bool {
        let is_told = self.seq == base.seq.next() && self.restore_epoch == base.restore_epoch;
        match &self.previous_root_sha256 {
            Some(previous) if is_told => previous.as_ref() == Some(base_sha256),
            Some(_) | None => true,
        }
    }
}

impl Document for Root {
    const NAME: &'static str = "Inventory root";
    const RULE: &'static str = "catalog §6.2";
    const MAJORS: &'static str = "1";

    fn format_version(&self) -> FormatVersion {
        self.format_version
    }

    fn knows(major: u32) -> bool {
        major == 1
    }

    fn validate(&self) -> Result<(), DocumentError> {
        let rule = |found: String, expected: &'static str| {
            Err(DocumentError::Rule { document: Self::NAME, rule: Self::RULE, found, expected })
        };
        let first = self.seq == Seq::FIRST;
        match self.previous_inventory {
            None if !first => return rule(format!("seq {} and no previous_inventory", self.seq), "a lower version"),
            Some(previous) if previous >= self.seq => {
                return rule(format!("seq {} built from {previous}", self.seq), "a previous_inventory below seq");
            }
            None | Some(_) => {}
        }
        check_changes(Self::NAME, Self::RULE, self.seq, self.previous_root_sha256.as_ref(), self.changes.as_deref())?;
        for change in self.changes.iter().flatten() {
            if change.leaf_sha256.to.as_ref() != self.leaf_sha256(&change.product_id) {
                return rule(
                    format!("a change of {} that leads to another leaf than products names", change.product_id),
                    "leaf_sha256.to as in products",
                );
            }
        }
        let mut tombstones: Vec<_> = self.retired.iter().map(|t| (&t.product_id, &t.edition_id)).collect();
        tombstones.sort_unstable();
        if !rises(tombstones.into_iter()) {
            return rule("an edition retired twice".to_owned(), "one tombstone an edition");
        }
        Ok(())
    }
}
