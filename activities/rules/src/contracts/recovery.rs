//! Recoveries of the Inventory: a damaged head (D16), and an Inventory that is gone (*catalog* §6.7).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::publish::Cause;
use crate::ids::Sha256Hex;

/// Deletes a damaged root at the head.
pub const REPAIR_HEAD: &str = "recovery.repair_head";
/// Builds an Inventory from the manifests.
pub const REBUILD_INVENTORY: &str = "recovery.rebuild_inventory";

/// Input of [`REPAIR_HEAD`], and of the workflow of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairHeadInput {
    /// The version whose root is damaged.
    pub seq: u64,
    /// A person's word that it was committed, and that what it did may be undone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirm_committed: bool,
    /// Who asked, and why.
    pub cause: Cause,
}

/// Output of [`REPAIR_HEAD`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairHeadOutput {
    /// The version whose root is gone.
    pub seq: u64,
    /// The SHA-256 of the bytes that it had.
    pub sha256: Sha256Hex,
    /// The version that is the head now.
    pub head: u64,
    /// Where the copy is kept.
    pub kept: String,
    /// Whether an earlier attempt had deleted it already.
    pub already: bool,
}

/// Input of [`REBUILD_INVENTORY`], and of the workflow of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebuildInventoryInput {
    /// Whether editions wait for a release from now on.
    pub embargo: bool,
    /// A person's word that versions 1 to this one are lost and took nothing back; 0 where their number is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_through: Option<u64>,
    /// Who asked, and why.
    pub cause: Cause,
}

/// Output of [`REBUILD_INVENTORY`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebuildInventoryOutput {
    /// The new restore epoch.
    pub restore_epoch: u64,
    /// The SHA-256 of root 1.
    pub root_sha256: Sha256Hex,
    /// How many products the Inventory has.
    pub products: u64,
    /// How many editions it has, by state.
    pub states: BTreeMap<String, u64>,
    /// Whether an earlier attempt had done it already.
    pub already: bool,
}
