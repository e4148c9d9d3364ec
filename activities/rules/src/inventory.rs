//! The Inventory (*catalog* §6): its documents, what may change in them, and what a change becomes.
//!
//! Everything here is a function of values. A writer fetches the head, asks [`plan`] what its operation makes of it,
//! writes what comes back, and asks again when somebody else was faster.

mod batch;
mod catalog;
mod change;
mod correct;
mod decide;
mod document;
mod draft;
mod from_manifest;
mod invariants;
mod leaf;
mod operation;
mod pending;
mod query;
mod record;
mod recovery;
mod refusal;
mod release;
mod repair;
mod retention;
mod rollback;
mod root;
mod segment;
mod settings;
#[cfg(test)]
mod tests;
mod tombstone;
mod verify;
mod verify_entry;
mod version;

pub use catalog::{CatalogHistory, CatalogJson, Current, History, WriterStage, admit_base, check_committed};
pub use change::{Change, EntryChange, EntrySummary, LeafChange, Mark, MissingLeaf, Side, changes_between};
pub use decide::{LeavesNeeded, Needs, needs, verdict};
pub use document::{Document, DocumentError, FormatVersion};
pub use from_manifest::artefact_records;
pub use invariants::{Holder, Holders, check_chain, holders_in};
pub use leaf::{ArtefactRecord, ArtefactRecords, EntryState, Kind, Leaf, LeafEntry, Lifecycle, SchemaVersion};
pub use operation::{
    Base, ContentFingerprint, CorrectionFacts, Done, Facts, Folded, ManifestFacts, NewEntry, Operation, Outcome,
    Record, RefusedEdition, Registration, Release, RollbackMove, Times, Verdict,
};
pub use pending::{PENDING_FORMAT, PendingRegistration};
pub use query::{
    Diff, EditionView, EmbargoedView, HeadView, LifecycleChange, ProductRow, ProductView, Replay, ReplayBroken,
    VersionSummary, VersionView, diff, embargoed, product_rows, product_view, version_at,
};
pub use record::{admit_registration, expected_previous};
pub use recovery::{
    HeadFacts, RebuildAsked, Rebuilt, Remains, RepairHead, RootFound, rebuild_inventory, repair_head, tells_history,
};
pub use refusal::{RecoveryRefusal, Refusal, TransitionRefusal};
pub use repair::{Mode, Repair, Sealed, repair_plan};
pub use retention::{DAY_MS, MIN_KEEP_ROOTS, Retention, RetentionFault};
pub use rollback::rollback_moves;
pub use root::{Event, EventKind, Producer, ProductRef, Root, Seq, Tombstone};
pub use segment::{MAX_SEGMENT_BYTES, MAX_SEGMENT_LINES, Segment, SegmentHeader, SegmentKind, SegmentLine};
pub use tombstone::{expunged, retirable};
pub use verify::{Stale, StepFinding, VersionFinding, Whole, check_step, check_version, structures_beside};
pub use verify_entry::{EntryFinding, check_entry, read_entry};
pub use version::{
    By, Decision, EncodedLeaf, NextVersion, OwnWork, Stamp, created_at, first_version, folded_in, next_version, plan,
    refused_in, store_time, written_by,
};

/// The Inventory format that this writer writes, in roots and leaves (*catalog* §6.3, Versioning).
pub const INVENTORY_FORMAT: FormatVersion = FormatVersion { major: 1, minor: 2 };

/// The canonical forms whose fingerprints this writer knows (*catalog* §6.5 item 3).
pub const CANONICAL_FORMS: [&str; 1] = ["1"];

/// How far a job's clock may be ahead of the store's (D33): the store tells whole seconds, and a machine that is off by
/// more has no time service.
pub const MAX_CLOCK_AHEAD_MS: i64 = 60 * 1000;

/// How far a base version's `created_at` may be ahead of the writer's clock (*catalog* §6.6).
pub const MAX_BASE_AHEAD_MS: i64 = 5 * 60 * 1000;
