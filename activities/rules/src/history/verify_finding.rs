//! What `verify` finds of roots, segments and `HISTORY`, as data (*catalog* §6.9).

use crate::ids::{CatalogId, Sha256Hex};
use crate::instant::Instant;
use crate::inventory::Seq;
use crate::layout;

/// One thing that is not as *catalog* §6.9 wants it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum HistoryFinding {
    /// A document of another catalog.
    #[error("{document} is of catalog {found}; expected {expected}")]
    OtherCatalog {
        /// Its path.
        document: String,
        /// The catalog that it names.
        found: CatalogId,
        /// This catalog.
        expected: CatalogId,
    },
    /// The epochs are not one (D15).
    #[error(
        "catalog.json has restore epoch {catalog}, inventory/HISTORY {history}, the newest version {head}; expected one"
    )]
    UnfinishedRestore {
        /// `catalog.json`'s epoch.
        catalog: u64,
        /// `HISTORY`'s epoch.
        history: u64,
        /// The newest version's epoch.
        head: u64,
        /// S, where it can be told.
        to: Option<Seq>,
    },
    /// An expiry that was interrupted after its segments were named.
    #[error(
        "the roots and leaves of {segment} may not all be deleted; expected cleaned_through to name it or a later one"
    )]
    Interrupted {
        /// The segment.
        segment: String,
    },
    /// A root that cannot be read.
    #[error("the root of version {seq} cannot be read: {why}")]
    RootDamaged {
        /// The version.
        seq: Seq,
        /// Why.
        why: String,
    },
    /// A version that is recorded nowhere.
    #[error("versions {from} to {to} are neither roots nor lines of a segment; expected each to be one of them")]
    VersionMissing {
        /// The lowest.
        from: Seq,
        /// The highest.
        to: Seq,
    },
    /// A version above `expired_through` that is no root any more.
    #[error(
        "version {seq} is above expired_through {expired_through}, and is recorded in {segment} only; expected a root"
    )]
    RootExpired {
        /// The version.
        seq: Seq,
        /// `HISTORY.expired_through`.
        expired_through: u64,
        /// The segment that records it.
        segment: String,
    },
    /// The chain of hashes.
    #[error("version {seq} names {found} as the version before it, whose SHA-256 is {expected}")]
    Chain {
        /// The version.
        seq: Seq,
        /// Its `previous_root_sha256`.
        found: Sha256Hex,
        /// The SHA-256 of what is there.
        expected: Sha256Hex,
    },
    /// The order of numbers and epochs.
    #[error(
        "version {seq} of epoch {restore_epoch} follows version {before} of epoch {before_epoch}; expected both to rise"
    )]
    Order {
        /// The version.
        seq: Seq,
        /// Its epoch.
        restore_epoch: u64,
        /// The version before it.
        before: Seq,
        /// That one's epoch.
        before_epoch: u64,
    },
    /// The time.
    #[error("version {seq} was written at {found}; expected {expected} or later")]
    Time {
        /// The version.
        seq: Seq,
        /// Its time.
        found: Instant,
        /// The earliest time.
        expected: Instant,
    },
    /// One version with two hashes.
    #[error(
        "version {seq} of epoch {restore_epoch} has SHA-256 {found}, and {segment} records {expected}; expected one"
    )]
    KeyDiffers {
        /// The version.
        seq: Seq,
        /// Its epoch.
        restore_epoch: u64,
        /// The SHA-256 of the root, or of another line.
        found: Sha256Hex,
        /// The SHA-256 of the line.
        expected: Sha256Hex,
        /// The segment of that line.
        segment: String,
    },
    /// A root that is still there although its segment was cleaned.
    #[error(
        "version {seq} of epoch {restore_epoch} is recorded in {segment}, and its root is there; expected it deleted"
    )]
    NotDeleted {
        /// The version.
        seq: Seq,
        /// Its epoch.
        restore_epoch: u64,
        /// The segment that records it.
        segment: String,
    },
    /// A root that no newer version was built on.
    #[error(
        "the root of version {seq} of epoch {restore_epoch} is not on the chain of the newest version; expected it there"
    )]
    OffChain {
        /// The version.
        seq: Seq,
        /// Its epoch.
        restore_epoch: u64,
    },
    /// A root below `expired_through` that should have gone.
    #[error(
        "version {seq} is at or below expired_through {expired_through} and is no checkpoint of the chain; expected it in a segment"
    )]
    NotExpired {
        /// The version.
        seq: Seq,
        /// `HISTORY.expired_through`.
        expired_through: u64,
    },
    /// A leaf of a retained root.
    #[error("leaf {leaf_sha256}, which the root of version {seq} names, is not there; expected it")]
    LeafMissing {
        /// The newest version that names it.
        seq: Seq,
        /// The leaf.
        leaf_sha256: Sha256Hex,
    },
    /// A segment that is named and not there.
    #[error("segment {path}, which {named_by} names, is not there; expected it")]
    SegmentMissing {
        /// Its path.
        path: String,
        /// What names it.
        named_by: String,
    },
    /// A segment that is named and cannot be read.
    #[error("segment {path}, which {named_by} names, cannot be read: {why}")]
    SegmentDamaged {
        /// Its path.
        path: String,
        /// What names it.
        named_by: String,
        /// Why.
        why: String,
    },
    /// A segment that was edited.
    #[error("segment {path} has SHA-256 {found}; expected {expected}, as {named_by} says")]
    SegmentChanged {
        /// Its path.
        path: String,
        /// Its SHA-256.
        found: Sha256Hex,
        /// The SHA-256 that is named.
        expected: Sha256Hex,
        /// What names it.
        named_by: String,
    },
    /// A segment that the chain does not reach.
    #[error("segment {path} is not on the chain from newest_segment; expected every segment on it")]
    SegmentUnlinked {
        /// Its path.
        path: String,
        /// Whether it follows the newest one: an orphan of an interrupted run.
        is_orphan: bool,
    },
    /// Two segments of one version.
    #[error("segments {path} and {other} both hold version {seq} of epoch {restore_epoch}; expected one")]
    SegmentsOverlap {
        /// The newer one.
        path: String,
        /// The older one.
        other: String,
        /// The version.
        seq: Seq,
        /// Its epoch.
        restore_epoch: u64,
    },
    /// A line of the wrong kind of segment.
    #[error("version {seq} is on the chain of the newest version, and {segment}, a restore's, records it as discarded")]
    WrongKind {
        /// The version.
        seq: Seq,
        /// The segment.
        segment: String,
    },
    /// `cleaned_through` off the chain.
    #[error("cleaned_through names {path}, which is not on the chain from newest_segment; expected it there")]
    CleanedOffChain {
        /// The path that it names.
        path: String,
    },
    /// A version without history fields.
    #[error("version {seq} carries no history fields, and since_seq is {since_seq}; expected both")]
    NoHistoryFields {
        /// The version.
        seq: Seq,
        /// `catalog.json`'s.
        since_seq: Seq,
    },
    /// A checkpoint that expired.
    #[error("version {seq} is a checkpoint, and {segment} records it as expired; expected its root")]
    CheckpointExpired {
        /// The version.
        seq: Seq,
        /// The segment that records it.
        segment: String,
    },
    /// The anchored root is not what it was.
    #[error("version {seq} of epoch {restore_epoch} has SHA-256 {}; the anchor says {expected}",
        found.as_ref().map_or("none: it is recorded nowhere", Sha256Hex::as_str))]
    AnchorRoot {
        /// The version.
        seq: Seq,
        /// Its epoch.
        restore_epoch: u64,
        /// Its SHA-256 now.
        found: Option<Sha256Hex>,
        /// The anchor's.
        expected: Sha256Hex,
    },
    /// The anchored segment is not on the chain.
    #[error(
        "segment {path} with SHA-256 {expected} is not on the chain from newest_segment; the anchor says that it was"
    )]
    AnchorSegment {
        /// Its path.
        path: String,
        /// The anchor's SHA-256.
        expected: Sha256Hex,
    },
}

impl HistoryFinding {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::OtherCatalog { .. } => "history.other_catalog",
            Self::UnfinishedRestore { .. } => "history.unfinished_restore",
            Self::Interrupted { .. } => "history.interrupted_expiry",
            Self::RootDamaged { .. } => "root.invalid",
            Self::VersionMissing { .. } => "version.missing",
            Self::RootExpired { .. } => "root.missing",
            Self::Chain { .. } => "version.chain",
            Self::Order { .. } => "version.order",
            Self::Time { .. } => "version.time",
            Self::KeyDiffers { .. } => "version.two_hashes",
            Self::NotDeleted { .. } => "root.not_deleted",
            Self::OffChain { .. } => "root.off_chain",
            Self::NotExpired { .. } => "root.not_expired",
            Self::LeafMissing { .. } => "leaf.missing",
            Self::SegmentMissing { .. } => "segment.missing",
            Self::SegmentDamaged { .. } => "segment.invalid",
            Self::SegmentChanged { .. } => "segment.changed",
            Self::SegmentUnlinked { is_orphan: true, .. } => "segment.orphan",
            Self::SegmentUnlinked { is_orphan: false, .. } => "segment.unlinked",
            Self::SegmentsOverlap { .. } => "segment.overlap",
            Self::WrongKind { .. } => "segment.kind",
            Self::CleanedOffChain { .. } => "history.cleaned_off_chain",
            Self::NoHistoryFields { .. } => "version.no_history_fields",
            Self::CheckpointExpired { .. } => "checkpoint.expired",
            Self::AnchorRoot { .. } => "anchor.root",
            Self::AnchorSegment { .. } => "anchor.segment",
        }
    }

    /// What it is about: a path within the catalog.
    #[must_use]
    pub fn subject(&self) -> String {
        match self {
            Self::OtherCatalog { document, .. } => document.clone(),
            Self::UnfinishedRestore { .. } | Self::CleanedOffChain { .. } => layout::HISTORY.to_owned(),
            Self::Interrupted { segment }
            | Self::KeyDiffers { segment, .. }
            | Self::WrongKind { segment, .. }
            | Self::CheckpointExpired { segment, .. } => segment.clone(),
            Self::RootDamaged { seq, .. }
            | Self::VersionMissing { to: seq, .. }
            | Self::RootExpired { seq, .. }
            | Self::Chain { seq, .. }
            | Self::Order { seq, .. }
            | Self::Time { seq, .. }
            | Self::NotDeleted { seq, .. }
            | Self::OffChain { seq, .. }
            | Self::NotExpired { seq, .. }
            | Self::NoHistoryFields { seq, .. }
            | Self::AnchorRoot { seq, .. } => layout::root(*seq),
            Self::LeafMissing { leaf_sha256, .. } => layout::leaf(leaf_sha256),
            Self::SegmentMissing { path, .. }
            | Self::SegmentDamaged { path, .. }
            | Self::SegmentChanged { path, .. }
            | Self::SegmentUnlinked { path, .. }
            | Self::SegmentsOverlap { path, .. }
            | Self::AnchorSegment { path, .. } => path.clone(),
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        let backup = |what: &str| format!("bring {what} back from a backup (catalog §10.3), then: jobctl verify");
        match self {
            Self::OtherCatalog { document, .. } => backup(&format!("this catalog's {document}")),
            Self::UnfinishedRestore { to: Some(to), .. } => {
                format!("finish it: jobctl run restore --to-seq {to}")
            }
            Self::UnfinishedRestore { to: None, .. } => backup("catalog.json and inventory/HISTORY of one time"),
            Self::Interrupted { .. } => "the next expiry finishes it; or now: jobctl run prune".to_owned(),
            Self::RootDamaged { .. } | Self::RootExpired { .. } | Self::VersionMissing { .. } => backup("it"),
            Self::Chain { .. } | Self::KeyDiffers { .. } => {
                "a version was altered: find out by whom, and bring back the bytes that the chain names from a backup"
                    .to_owned()
            }
            Self::Order { .. } | Self::Time { .. } => {
                "nothing can be mended in a version that stands; find the writer whose clock or epoch was wrong".to_owned()
            }
            Self::NotDeleted { .. } | Self::OffChain { .. } | Self::NotExpired { .. } => {
                "a writer without the lock left it, or a backup brought it back: compare it with the segment, keep a \
                 copy, and move it away"
                    .to_owned()
            }
            Self::LeafMissing { .. } => backup("the leaf"),
            Self::SegmentMissing { .. } | Self::SegmentDamaged { .. } | Self::SegmentChanged { .. } => {
                backup("the segment")
            }
            Self::SegmentUnlinked { is_orphan: true, .. } => {
                "the next expiry adopts it where it fits: jobctl run prune; else it stays, and does no harm".to_owned()
            }
            Self::SegmentUnlinked { is_orphan: false, .. } => {
                "an interrupted run left it, or inventory/HISTORY is older than history/: compare with a backup; nothing \
                 under history/ is ever deleted"
                    .to_owned()
            }
            Self::SegmentsOverlap { .. } | Self::WrongKind { .. } | Self::CheckpointExpired { .. } => {
                "two writers worked at once, or inventory/HISTORY went back in time: find out which (jobctl runs list), \
                 and report it"
                    .to_owned()
            }
            Self::CleanedOffChain { .. } => backup("inventory/HISTORY"),
            Self::NoHistoryFields { .. } => {
                "upgrade the writer that wrote it: versions from it on do not expire".to_owned()
            }
            Self::AnchorRoot { .. } | Self::AnchorSegment { .. } => {
                "what was published outside does not hold any more: stop every writer, keep the catalog as it is, and \
                 compare it with the backups back to the time of the anchor"
                    .to_owned()
            }
        }
    }
}
