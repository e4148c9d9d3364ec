//! The steps of the operations on the Inventory (*catalog* §6.4).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::operations::DescriptionChange;
use super::publish::Cause;
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;
use crate::inventory::{Lifecycle, Mark, RefusedEdition, RollbackMove, SchemaVersion, Seq};

/// Brings `CURRENT` up to the newest version.
pub const ADVANCE_CURRENT: &str = "inventory.advance_current";
/// Looks at what would hold a release up: clocks and windows.
pub const PREFLIGHT: &str = "inventory.preflight";
/// Writes one version of the Inventory.
pub const COMMIT: &str = "inventory.commit";
/// Settles what a rollback takes back and what becomes live instead.
pub const ROLLBACK_MOVES: &str = "inventory.rollback_moves";
/// Settles which live editions are taken back.
pub const LIVE_EDITIONS: &str = "inventory.live_editions";
/// Settles which editions are old enough to be retired.
pub const FIND_RETIRABLE: &str = "inventory.find_retirable";
/// Settles which manifest an edition is reinstated with.
pub const READ_MANIFEST: &str = "inventory.read_manifest";
/// Looks for editions that are built on what was taken back.
pub const FIND_RIPPLES: &str = "inventory.find_ripples";

/// How many editions a record tells one by one; the version's own change list has them all. A journal's record is at most
/// 1 MiB, and a release of a whole catalog changes more editions than fit it.
pub const CHANGES_TOLD: usize = 1_000;
/// How many refusals a record tells one by one, for the same reason; the version persists them all.
pub const REFUSALS_TOLD: usize = 300;
/// How many editions one run retires at most: they are recorded before they are retired.
pub const RETIRED_AT_ONCE: usize = 5_000;

/// Input of a step that needs none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nothing {}

/// Output of [`ADVANCE_CURRENT`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdvanceCurrentOutput {
    /// The newest version then.
    pub seq: u64,
}

/// Output of [`PREFLIGHT`]: nothing stands in the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreflightOutput {
    /// What a person should see to, and what does not hold a release up.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// Something that a person should see to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Which kind, stable and dotted.
    pub code: String,
    /// What was found and what was expected.
    pub message: String,
    /// What to do.
    pub fix: String,
}

/// What one version of the Inventory is to do: intent alone, to be held against whatever the head is by then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
pub enum Intent {
    /// Release what is due.
    ReleaseDue,
    /// Release every embargoed edition of these products.
    ReleaseProducts {
        /// The products.
        products: BTreeSet<ProductId>,
    },
    /// Release these editions.
    ReleaseEditions {
        /// The product.
        product_id: ProductId,
        /// Its editions.
        editions: BTreeSet<EditionId>,
    },
    /// Roll back, as [`ROLLBACK_MOVES`] settled it.
    Rollback {
        /// The moves of each product.
        products: BTreeMap<ProductId, Vec<RollbackMove>>,
    },
    /// Cancel an embargoed edition.
    Cancel {
        /// The product.
        product_id: ProductId,
        /// The edition.
        edition_id: EditionId,
    },
    /// Take back what was live, as [`LIVE_EDITIONS`] settled it.
    WithdrawLive {
        /// The product.
        product_id: ProductId,
        /// The editions that were live when it was asked for.
        if_live: BTreeSet<EditionId>,
    },
    /// Cancel an embargoed edition for its rival.
    Supersede {
        /// The product.
        product_id: ProductId,
        /// The edition that is cancelled.
        edition_id: EditionId,
        /// The one that stays.
        by: EditionId,
    },
    /// Turn a tombstone into a superseded edition.
    Reinstate {
        /// The product.
        product_id: ProductId,
        /// The edition.
        edition_id: EditionId,
        /// Its manifest, as [`READ_MANIFEST`] found it.
        manifest_sha256: Sha256Hex,
    },
    /// Turn editions into tombstones.
    Retire {
        /// The editions by product.
        editions: BTreeMap<ProductId, BTreeSet<EditionId>>,
        /// The window need not be over.
        before_window: bool,
    },
    /// Set or clear the time of a release.
    Reschedule {
        /// The product.
        product_id: ProductId,
        /// The edition.
        edition_id: EditionId,
        /// The new time.
        release_at: Option<Instant>,
    },
    /// Supersede the live editions of an old schema version.
    SupersedeSchema {
        /// The schema version.
        schema_version: SchemaVersion,
        /// These products, or every one that can be.
        products: Option<BTreeSet<ProductId>>,
    },
    /// Set a product's lifecycle.
    SetLifecycle {
        /// The product.
        product_id: ProductId,
        /// The lifecycle.
        lifecycle: Lifecycle,
    },
    /// Turn the embargo on or off.
    Embargo {
        /// On.
        on: bool,
    },
    /// Change the catalog's description.
    Describe {
        /// What changes.
        description: DescriptionChange,
    },
    /// Build a version from an older one.
    Correct {
        /// The known-good version.
        to: Seq,
        /// The products; `None` is all.
        products: Option<BTreeSet<ProductId>>,
        /// The versions after it that cannot be read, confirmed one by one.
        confirmed_unread: BTreeSet<Seq>,
    },
}

/// Input of [`COMMIT`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitInput {
    /// What the version is to do.
    #[serde(flatten)]
    pub intent: Intent,
    /// Who asked, and why.
    pub cause: Cause,
}

/// Output of [`COMMIT`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitOutput {
    /// The version that this step wrote; where there was nothing to write, the newest one.
    pub seq: u64,
    /// The SHA-256 of its root.
    pub root_sha256: Sha256Hex,
    /// There was nothing to write: it was so before.
    pub already: bool,
    /// How many editions the version brought into which state.
    pub counts: BTreeMap<String, u64>,
    /// What became of the editions, by product: at most [`CHANGES_TOLD`].
    pub changes: Vec<EditionChange>,
    /// What changed beside the states of editions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<SettingChange>,
    /// How many editions a batch refused.
    pub refused_count: u64,
    /// The editions that it refused, each with the rule and what to do: at most [`REFUSALS_TOLD`].
    pub refused: Vec<RefusedEdition>,
}

impl CommitOutput {
    /// Whether the version changed nothing that was asked for, because rules refused all of it.
    #[must_use]
    pub fn is_all_refused(&self) -> bool {
        self.refused_count > 0 && self.counts.is_empty() && self.settings.is_empty()
    }
}

/// What became of one edition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditionChange {
    /// The product.
    pub product_id: ProductId,
    /// The edition.
    pub edition_id: EditionId,
    /// What the version before knew of it.
    pub from: Option<Mark>,
    /// What the version knows of it.
    pub to: Option<Mark>,
    /// When it may be released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_at: Option<Instant>,
}

/// What changed beside the states of editions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChange {
    /// `lifecycle`, `embargo` or `description`.
    pub setting: String,
    /// The product, for a lifecycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product_id: Option<ProductId>,
    /// The value from now on; `None` for a description, which the version holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// Input of [`ROLLBACK_MOVES`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackMovesInput {
    /// The products.
    pub products: BTreeSet<ProductId>,
    /// The editions that are to become live.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub to: BTreeSet<EditionId>,
    /// What must be live now for it to go on; empty: whatever is.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub if_live: BTreeSet<EditionId>,
}

/// Output of [`ROLLBACK_MOVES`]: what the rollback takes back however often it is tried (D22).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackMovesOutput {
    /// The moves of each product.
    pub products: BTreeMap<ProductId, Vec<RollbackMove>>,
}

/// Input of [`LIVE_EDITIONS`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveEditionsInput {
    /// The product.
    pub product_id: ProductId,
    /// What must be live now for it to go on; empty: whatever is.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub if_live: BTreeSet<EditionId>,
}

/// Output of [`LIVE_EDITIONS`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveEditionsOutput {
    /// What is live, one a schema version.
    pub if_live: BTreeSet<EditionId>,
}

/// Input of [`FIND_RETIRABLE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindRetirableInput {
    /// Only of these products; empty: of all.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub products: BTreeSet<ProductId>,
}

/// Output of [`FIND_RETIRABLE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindRetirableOutput {
    /// The editions by product, at most [`RETIRED_AT_ONCE`].
    pub editions: BTreeMap<ProductId, BTreeSet<EditionId>>,
    /// How many more there are, for the next run.
    pub left: u64,
}

/// Input of [`READ_MANIFEST`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadManifestInput {
    /// The product.
    pub product_id: ProductId,
    /// The edition.
    pub edition_id: EditionId,
}

/// Output of [`READ_MANIFEST`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadManifestOutput {
    /// The SHA-256 of its manifest.
    pub manifest_sha256: Sha256Hex,
}

/// Input of [`FIND_RIPPLES`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindRipplesInput {
    /// The editions that were taken back, by product.
    pub withdrawn: BTreeMap<ProductId, BTreeSet<EditionId>>,
}

/// Output of [`FIND_RIPPLES`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindRipplesOutput {
    /// The editions that will be refused, by product.
    pub ripples: Vec<Ripple>,
}

/// Where an edition stands that is built on what was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RippleState {
    /// Recorded, and refused at its release.
    Embargoed,
    /// Sealed and not recorded, and refused when it is.
    Sealed,
    /// Being built, and refused by its run.
    Unsealed,
}

/// An edition that a rollback or a withdrawal leaves without its base (*catalog* §6.4, rollback ripples).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ripple {
    /// The product.
    pub product_id: ProductId,
    /// The edition.
    pub edition_id: EditionId,
    /// The withdrawn edition that it is built on; `None` for one that is being built and does not tell.
    pub built_on: Option<EditionId>,
    /// Where it stands.
    pub state: RippleState,
    /// What to do.
    pub fix: String,
}
