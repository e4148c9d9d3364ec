//! The Inventory (*catalog* §6): its documents, what may change in them, and what a change becomes.
//!
//! Everything here is a function of values. A writer fetches the head, asks [`plan`] what its operation makes of it,
//! writes what comes back, and asks again when somebody else was faster.

mod catalog;
mod change;
mod document;
mod from_manifest;
mod invariants;
mod leaf;
mod operation;
mod refusal;
mod repair;
mod root;
#[cfg(test)]
mod tests;
mod version;

pub use catalog::{CatalogHistory, CatalogJson, Current, History, WriterStage};
pub use change::{Change, EntryChange, EntrySummary, LeafChange, Mark, MissingLeaf, Side, changes_between};
pub use document::{Document, DocumentError, FormatVersion};
pub use from_manifest::artefact_records;
pub use invariants::{check_chain, check_structures};
pub use leaf::{ArtefactRecord, ArtefactRecords, EntryState, Kind, Leaf, LeafEntry, Lifecycle, SchemaVersion};
pub use operation::{
    Base, ContentFingerprint, Facts, NewEntry, Operation, Outcome, Record, Verdict, expected_previous, verdict,
};
pub use refusal::Refusal;
pub use repair::{Mode, Repair, Sealed, repair_plan};
pub use root::{Event, EventKind, Producer, ProductRef, Root, Seq, Tombstone};
pub use version::{By, Decision, EncodedLeaf, NextVersion, OwnWork, created_at, first_version, next_version, plan};

/// The Inventory format that this writer writes, in roots and leaves (*catalog* §6.3, Versioning).
pub const INVENTORY_FORMAT: FormatVersion = FormatVersion { major: 1, minor: 2 };

/// The canonical forms whose fingerprints this writer knows (*catalog* §6.5 item 3).
pub const CANONICAL_FORMS: [&str; 1] = ["1"];

/// How far a base version's `created_at` may be ahead of the writer's clock (*catalog* §6.6).
pub const MAX_BASE_AHEAD_MS: i64 = 5 * 60 * 1000;
