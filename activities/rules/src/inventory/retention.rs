//! The retention windows and their order (*catalog* §11.6, D28, D30, D33).

use serde::{Deserialize, Serialize};

/// A day in milliseconds.
pub const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// The fewest newest roots that are kept (*history* H17).
pub const MIN_KEEP_ROOTS: u64 = 2;

/// The section `[retention]` of the configuration: each window in days, unless its name says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// How long a backup is kept.
    pub backup_days: u32,
    /// How long a retired edition's directory, and a data file that no manifest lists, stay.
    pub gc_days: u32,
    /// How long a tombstone tells a retired edition from one that was never recorded; a pending registration that is
    /// older is refused.
    pub tombstone_days: u32,
    /// W: how long an Inventory version stays, from the time of the version that replaced it.
    pub version_days: u32,
    /// K: how many of the newest roots always stay.
    pub keep_roots: u64,
    /// How long a superseded or withdrawn edition stays before it may be retired.
    pub retire_days: u32,
    /// How long a result that no live edition needs stays (D28).
    pub results_grace_days: u32,
    /// The longest time from one poll of a pod to the end of its next fetch, in seconds.
    pub poll_and_fetch_s: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            backup_days: 35,
            gc_days: 35,
            tombstone_days: 90,
            version_days: 36,
            keep_roots: 10,
            retire_days: 30,
            results_grace_days: 30,
            poll_and_fetch_s: 300,
        }
    }
}

/// An inequality that does not hold: a release warns, and gc, prune and expiry refuse to start (D33).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RetentionFault {
    /// A file of a backup could be gone from the store that a restore of the backup needs it in.
    #[error(
        "catalog §11.6: backup retention is {backup_days} days, above the data/ GC window of {gc_days} days; expected \
         at most as long"
    )]
    BackupAboveGc {
        /// The backup retention.
        backup_days: u32,
        /// The GC window.
        gc_days: u32,
    },
    /// A retired edition's bytes would outlive its tombstone.
    #[error(
        "catalog §11.6: the data/ GC window is {gc_days} days, above the tombstone window of {tombstone_days} days; \
         expected at most as long"
    )]
    GcAboveTombstone {
        /// The GC window.
        gc_days: u32,
        /// The tombstone window.
        tombstone_days: u32,
    },
    /// GC could not read the versions that it needs.
    #[error(
        "catalog §11.6: Inventory versions are kept {version_days} days, and the data/ GC window is {gc_days} days; \
         expected at least one day more than it"
    )]
    VersionsBelowGc {
        /// W.
        version_days: u32,
        /// The GC window.
        gc_days: u32,
    },
    /// A pod could lose its leaves between two polls.
    #[error(
        "catalog §11.6: pods poll and fetch within {poll_and_fetch_s} s, and Inventory versions are kept \
         {version_days} days; expected less than that"
    )]
    PollAboveVersions {
        /// The time of a poll and a fetch.
        poll_and_fetch_s: u32,
        /// W.
        version_days: u32,
    },
    /// The fallback of the readers would have no reach.
    #[error("catalog §11.6: {keep_roots} of the newest roots are kept; expected at least {MIN_KEEP_ROOTS}")]
    TooFewRoots {
        /// K.
        keep_roots: u64,
    },
}

impl RetentionFault {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::BackupAboveGc { .. } => "retention.backup_above_gc",
            Self::GcAboveTombstone { .. } => "retention.gc_above_tombstone",
            Self::VersionsBelowGc { .. } => "retention.versions_below_gc",
            Self::PollAboveVersions { .. } => "retention.poll_above_versions",
            Self::TooFewRoots { .. } => "retention.too_few_roots",
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        let set = |key: &str, at_least: u64| format!("set {key} to at least {at_least} in [retention] of jobctl.toml");
        match self {
            Self::BackupAboveGc { backup_days, .. } => set("gc_days", (*backup_days).into()),
            Self::GcAboveTombstone { gc_days, .. } => set("tombstone_days", (*gc_days).into()),
            Self::VersionsBelowGc { gc_days, .. } => set("version_days", u64::from(*gc_days) + 1),
            Self::PollAboveVersions { poll_and_fetch_s, .. } => {
                set("version_days", u64::from(*poll_and_fetch_s) / (24 * 60 * 60) + 1)
            }
            Self::TooFewRoots { .. } => set("keep_roots", MIN_KEEP_ROOTS),
        }
    }
}

impl Retention {
    /// Every inequality of *catalog* §11.6 that does not hold; empty when all do.
    #[must_use]
    pub fn check(&self) -> Vec<RetentionFault> {
        let Self { backup_days, gc_days, tombstone_days, version_days, keep_roots, poll_and_fetch_s, .. } = *self;
        let mut faults = Vec::new();
        if backup_days > gc_days {
            faults.push(RetentionFault::BackupAboveGc { backup_days, gc_days });
        }
        if gc_days > tombstone_days {
            faults.push(RetentionFault::GcAboveTombstone { gc_days, tombstone_days });
        }
        if u64::from(version_days) < u64::from(gc_days) + 1 {
            faults.push(RetentionFault::VersionsBelowGc { version_days, gc_days });
        }
        if u64::from(poll_and_fetch_s) >= u64::from(version_days) * 24 * 60 * 60 {
            faults.push(RetentionFault::PollAboveVersions { poll_and_fetch_s, version_days });
        }
        if keep_roots < MIN_KEEP_ROOTS {
            faults.push(RetentionFault::TooFewRoots { keep_roots });
        }
        faults
    }

    /// The tombstone window in milliseconds.
    #[must_use]
    pub fn tombstone_ms(&self) -> i64 {
        i64::from(self.tombstone_days) * DAY_MS
    }

    /// The GC window in milliseconds.
    #[must_use]
    pub fn gc_ms(&self) -> i64 {
        i64::from(self.gc_days) * DAY_MS
    }

    /// How long an edition stays before it may be retired, in milliseconds.
    #[must_use]
    pub fn retire_ms(&self) -> i64 {
        i64::from(self.retire_days) * DAY_MS
    }
}
