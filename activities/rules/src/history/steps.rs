//! The steps of an expiry and of a restore, as a run records them (DESIGN §3).

/// A step of an expiry (*catalog* §6.9); the steps are one section under one lock (D9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExpiryStep {
    /// `CURRENT` is brought up to the head.
    AdvanceCurrent,
    /// The candidates are chosen.
    Choose,
    /// The chain over them is verified.
    Verify,
    /// Orphans are adopted, and the other segments written.
    WriteSegments,
    /// `HISTORY` names the newest segment.
    AdvanceHistory,
    /// The roots that a line records are deleted.
    DeleteRoots,
    /// The leaves that no retained root names are deleted.
    DeleteLeaves,
    /// `HISTORY` says how far the deletions came.
    AdvanceCleaned,
    /// What was deleted is logged.
    Log,
}

impl ExpiryStep {
    /// Every step, in order.
    pub const ALL: [Self; 9] = [
        Self::AdvanceCurrent,
        Self::Choose,
        Self::Verify,
        Self::WriteSegments,
        Self::AdvanceHistory,
        Self::DeleteRoots,
        Self::DeleteLeaves,
        Self::AdvanceCleaned,
        Self::Log,
    ];

    /// The step's name within a run.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AdvanceCurrent => "expire.0_advance_current",
            Self::Choose => "expire.1_choose",
            Self::Verify => "expire.2_verify",
            Self::WriteSegments => "expire.3_write_segments",
            Self::AdvanceHistory => "expire.4_advance_history",
            Self::DeleteRoots => "expire.5_delete_roots",
            Self::DeleteLeaves => "expire.6_delete_leaves",
            Self::AdvanceCleaned => "expire.7_advance_cleaned",
            Self::Log => "expire.8_log",
        }
    }
}

/// A step of a restore (*catalog* §6.9, Restores), in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RestoreStep {
    /// The roots after S go into segments. None where there are no such roots, or on a 1.0 catalog.
    WriteSegments,
    /// `HISTORY` has the new epoch. Not on a 1.0 catalog.
    AdvanceHistory,
    /// `catalog.json` has the new epoch.
    BumpEpoch,
    /// The roots above S are deleted. Not on a 1.0 catalog.
    DeleteRoots,
    /// The root of the new epoch is written.
    WriteRoot,
    /// `CURRENT` names it.
    WriteCurrent,
}

impl RestoreStep {
    /// Every step, in order.
    pub const ALL: [Self; 6] = [
        Self::WriteSegments,
        Self::AdvanceHistory,
        Self::BumpEpoch,
        Self::DeleteRoots,
        Self::WriteRoot,
        Self::WriteCurrent,
    ];

    /// The step's name within a run.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WriteSegments => "restore.1_write_segments",
            Self::AdvanceHistory => "restore.2_advance_history",
            Self::BumpEpoch => "restore.3_bump_epoch",
            Self::DeleteRoots => "restore.4_delete_roots",
            Self::WriteRoot => "restore.5_write_root",
            Self::WriteCurrent => "restore.6_write_current",
        }
    }
}
