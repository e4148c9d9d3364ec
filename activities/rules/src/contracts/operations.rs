//! What the runs of the operations on the Inventory (*catalog* §6.4) are asked for, and what they have done.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::inventory::{CommitOutput, Ripple, Warning};
use super::publish::Cause;
use crate::ids::{EditionId, ProductId};
use crate::instant::Instant;
use crate::inventory::{Lifecycle, SchemaVersion, Seq};

/// What a release is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseInput {
    /// Every embargoed edition of these products, whatever its time; empty: every edition whose time has come.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub products: BTreeSet<ProductId>,
    /// Of the one product that is named, these editions only.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub editions: BTreeSet<EditionId>,
    /// Who asked, and why.
    pub cause: Cause,
}

/// What a rollback is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackInput {
    /// The products, which go back in one version.
    pub products: BTreeSet<ProductId>,
    /// The superseded editions that become live; where none is named, the one that the live edition was built on.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub to: BTreeSet<EditionId>,
    /// What must be live now for it to go on; empty: whatever is.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub if_live: BTreeSet<EditionId>,
    /// Who asked, and why.
    pub cause: Cause,
}

/// What a withdrawal is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WithdrawInput {
    /// The product.
    pub product_id: ProductId,
    /// The embargoed edition that is cancelled; `None` takes back every live edition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edition_id: Option<EditionId>,
    /// Where nothing is named: what must be live now for it to go on; empty: whatever is.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub if_live: BTreeSet<EditionId>,
    /// Who asked, and why.
    pub cause: Cause,
}

/// What a supersession before release is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupersedeInput {
    /// The product.
    pub product_id: ProductId,
    /// The embargoed edition that is cancelled.
    pub edition_id: EditionId,
    /// The embargoed edition that stays.
    pub by: EditionId,
    /// Who asked, and why.
    pub cause: Cause,
}

/// What a reinstatement is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReinstateInput {
    /// The product.
    pub product_id: ProductId,
    /// The retired edition.
    pub edition_id: EditionId,
    /// Who asked, and why.
    pub cause: Cause,
}

/// What a retirement is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetireInput {
    /// Only editions of these products; empty: of every product.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub products: BTreeSet<ProductId>,
    /// Of the one product that is named, these editions; empty: every one that is old enough.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub editions: BTreeSet<EditionId>,
    /// A person's word that the window need not be over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub before_window: bool,
    /// Who asked, and why.
    pub cause: Cause,
}

/// What a change of the time of a release is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RescheduleInput {
    /// The product.
    pub product_id: ProductId,
    /// The embargoed edition.
    pub edition_id: EditionId,
    /// The new time; `None` is never due.
    pub release_at: Option<Instant>,
    /// Who asked, and why.
    pub cause: Cause,
}

/// What the end of an old schema version is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupersedeSchemaInput {
    /// The old schema version.
    pub schema_version: SchemaVersion,
    /// These products, all or none; `None`: every product that can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub products: Option<BTreeSet<ProductId>>,
    /// Who asked, and why.
    pub cause: Cause,
}

/// What a change of a lifecycle is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetLifecycleInput {
    /// The product.
    pub product_id: ProductId,
    /// The lifecycle from now on.
    pub lifecycle: Lifecycle,
    /// Who asked, and why.
    pub cause: Cause,
}

/// What a change of the embargo is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbargoInput {
    /// Whether sealed editions wait for a release from now on.
    pub on: bool,
    /// Who asked, and why.
    pub cause: Cause,
}

/// What a change of the catalog's description is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DescribeInput {
    /// What changes.
    pub description: DescriptionChange,
    /// Who asked, and why.
    pub cause: Cause,
}

/// What becomes of the section `statcat` of the root's extensions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum DescriptionChange {
    /// These titles, by language, take the place of the ones that are there; everything else stays.
    Title {
        /// The titles by language.
        title: BTreeMap<String, String>,
    },
    /// This takes the place of the whole section.
    Replace {
        /// The new section.
        section: Map<String, Value>,
    },
}

/// What a correction is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorrectInput {
    /// The known-good version.
    pub to: Seq,
    /// The products that are corrected; `None` is all, and the description with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub products: Option<BTreeSet<ProductId>>,
    /// The versions after it that cannot be read, confirmed one by one.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub confirmed_unread: BTreeSet<Seq>,
    /// Who asked, and why.
    pub cause: Cause,
}

/// What an operation's run has done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationOutput {
    /// The version, and what it changed.
    #[serde(flatten)]
    pub version: CommitOutput,
    /// What a person should see to, and what held nothing up.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// The editions that are built on what was taken back.
    #[serde(default)]
    pub ripples: Vec<Ripple>,
}

impl From<CommitOutput> for OperationOutput {
    fn from(version: CommitOutput) -> Self {
        Self { version, warnings: Vec::new(), ripples: Vec::new() }
    }
}
