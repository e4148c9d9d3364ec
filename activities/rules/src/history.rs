//! Old versions of a catalog that opted in (*catalog* §6.1, §6.9; D1, D14, D15, D31): the opt-in, the expiry into
//! history segments, the restore, and what `verify` holds against it all.
//!
//! Everything here is a function of values, as in [`inventory`](crate::inventory). What has to be read is asked for:
//! a function answers [`Stage::Read`] with the objects that it needs, the caller reads them into [`Known`] and asks
//! again. What was read once is kept in the [`Cache`], by path and `ETag`, so a later run reads what is new and no more.

mod anchor;
mod cache;
mod chain;
mod choose;
mod crash;
mod expiry;
mod gates;
mod known;
mod opt_in;
mod orphans;
mod refusal;
mod restore;
mod restored;
mod segments;
mod steps;
#[cfg(test)]
mod tests;
mod verify;
mod verify_finding;

pub use anchor::{Anchor, AnchorRoot, check_anchor, newest_anchor};
pub use cache::{Cache, ETag, LineFacts, RootFacts, SegmentFacts, SegmentRef};
pub use choose::{Choice, ExpiryRules, Stop, choose, verify_chain};
pub use crash::{CrashRule, crash_rule};
pub use expiry::{
    DeletionLogLine, ExpiryPlan, Forecast, KeptRoot, LeafDelete, RemovedRoot, RootDelete, Why, history_advanced,
    history_cleaned, leaf_deletes, plan_expiry,
};
pub use gates::{Gate, GateFault, Pod, PodAnswer, PodCheck, PodGroup, Pods, gates, pod_check};
pub use known::{Known, Read, RootStamp, STAMP_BYTES, Stage};
pub use opt_in::{HistoryFields, OptIn, StoreKind, opt_in};
pub use orphans::Orphan;
pub use refusal::HistoryRefusal;
pub use restore::{
    Discarded, PlainRestore, Restore, RestoreAsked, RestorePlan, catalog_restored, history_restored,
    plan_plain_restore, plan_restore, restore_found,
};
pub use restored::{TakenBack, restored_version};
pub use segments::{BuiltSegment, SegmentDraft, SegmentLimits, SegmentRoot, Written, line_of};
pub use steps::{ExpiryStep, RestoreStep};
pub use verify::{Evidence, check_history};
pub use verify_finding::HistoryFinding;
