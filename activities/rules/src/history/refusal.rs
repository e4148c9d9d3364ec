//! Every reason for which opt-in, expiry and restore stop: the rule, what was found, what was expected, what to do.

use crate::ids::{CatalogId, Sha256Hex};
use crate::inventory::{DocumentError, Refusal, RetentionFault, Seq};

use super::opt_in::StoreKind;

/// A refusal of opt-in, expiry or restore. What was written before it stands, and a rerun goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum HistoryRefusal {
    /// The catalog keeps every version.
    #[error("catalog §6.1: catalog.json is of format 1.x, so this catalog keeps every version; expected 2.x")]
    NotOptedIn,
    /// A store where nobody can hold the catalog's lock (H21).
    #[error("H21: the catalog is on {store}, which has no lease that a writer could hold; expected Azure or a disk")]
    StoreWithoutLease {
        /// The store.
        store: StoreKind,
    },
    /// The newest version has no change list.
    #[error("catalog §6.1 (opt-in): version {seq}, the newest, carries no history fields; expected both")]
    HeadWithoutHistory {
        /// The newest version.
        seq: Seq,
    },
    /// A writer without history fields wrote after one with them.
    #[error(
        "catalog §6.1 (opt-in): version {without} carries no history fields, and version {with} before it does; \
         expected them in every version from the first that has them"
    )]
    HistoryInterrupted {
        /// The version with them.
        with: Seq,
        /// The later version without.
        without: Seq,
    },
    /// A `HISTORY` that no opt-in left.
    #[error(
        "catalog §6.1 (opt-in): catalog.json is of format 1.x, and inventory/HISTORY is there with {found}; expected \
         none, or the one that an interrupted opt-in leaves"
    )]
    HistoryForeign {
        /// What it says.
        found: String,
    },
    /// A document of another catalog.
    #[error("catalog §6.9: {document} is of catalog {found}; expected {expected}, as in catalog.json")]
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
        "D15: a restore was not finished: catalog.json has restore epoch {catalog}, inventory/HISTORY {history}, the \
         newest version {head}; expected one epoch"
    )]
    UnfinishedRestore {
        /// `catalog.json`'s epoch.
        catalog: u64,
        /// `HISTORY`'s epoch.
        history: u64,
        /// The newest version's epoch.
        head: u64,
    },
    /// The windows contradict each other (D33).
    #[error(transparent)]
    Retention(#[from] RetentionFault),
    /// A version that has to be there is not.
    #[error("catalog §6.9: the root of version {seq} is neither in inventory/ nor in a segment; expected one of them")]
    RootMissing {
        /// The version.
        seq: Seq,
    },
    /// A root that cannot be read, so that nobody knows which leaves it names.
    #[error("catalog §6.9 step 6: the root of version {seq} cannot be read ({why}); expected every root readable")]
    RootDamaged {
        /// The version.
        seq: Seq,
        /// Why.
        why: String,
    },
    /// A root with other bytes than when the plan was made.
    #[error("catalog §6.9: the root of version {seq} has SHA-256 {found}; expected {expected}, as planned")]
    RootChanged {
        /// The version.
        seq: Seq,
        /// Its SHA-256 now.
        found: Sha256Hex,
        /// The SHA-256 in the plan.
        expected: Sha256Hex,
    },
    /// The chain of hashes.
    #[error(
        "catalog §6.9 step 2: version {seq} names {} as the version before it, whose SHA-256 is {expected}",
        found.as_ref().map_or("nothing", Sha256Hex::as_str)
    )]
    ChainBroken {
        /// The version.
        seq: Seq,
        /// Its `previous_root_sha256`.
        found: Option<Sha256Hex>,
        /// The SHA-256 of the version before it.
        expected: Sha256Hex,
    },
    /// A segment that is named and not there.
    #[error("catalog §6.9: segment {path} is not there, and {named_by} names it")]
    SegmentMissing {
        /// Its path.
        path: String,
        /// What names it.
        named_by: String,
    },
    /// A segment that is named and cannot be read.
    #[error("catalog §6.9: segment {path} cannot be read: {why}")]
    SegmentDamaged {
        /// Its path.
        path: String,
        /// Why.
        why: String,
    },
    /// A segment with other bytes than those that were linked.
    #[error("catalog §6.9: segment {path} has SHA-256 {found}; expected {expected}, as {named_by} says")]
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
    /// `cleaned_through` names no segment of the chain.
    #[error(
        "catalog §6.9: cleaned_through names {path}, which is not on the chain from newest_segment; expected it there"
    )]
    CleanedOffChain {
        /// The path that it names.
        path: String,
    },
    /// Somebody wrote `HISTORY` since the plan was made.
    #[error("catalog §6.9: inventory/HISTORY changed since the plan was made; expected it unchanged under the lock")]
    HistoryChanged,
    /// A restore to a version that is not there.
    #[error("catalog §6.9 (restore): version {to} {found}; expected a version that is retained and readable")]
    TargetUnread {
        /// The version asked for.
        to: Seq,
        /// What stands there.
        found: String,
    },
    /// A restore to a root that the head was not built on.
    #[error(
        "catalog §6.9 (restore): version {to} is not on the chain of the newest version, {head}: a stale writer left \
         it; expected a version that the newest one was built on"
    )]
    TargetOffChain {
        /// The version asked for.
        to: Seq,
        /// The newest version.
        head: Seq,
    },
    /// Versions after the target that nobody read (D14).
    #[error(
        "D14: versions {} after {to} cannot be read, or carry no change list, so what they withdrew or retired would \
         come back unseen; expected each of them to be confirmed",
        seqs(unread)
    )]
    UnreadVersions {
        /// The version asked for.
        to: Seq,
        /// The versions.
        unread: Vec<Seq>,
    },
    /// Another restore has to be finished first.
    #[error("D15: a restore to version {to} was not finished, and version {asked} was asked for; expected {to}")]
    RestoreUnfinished {
        /// The version asked for.
        asked: Seq,
        /// The version of the unfinished restore.
        to: Seq,
    },
    /// A leaf that the restored version needs.
    #[error("catalog §6.9 (restore): the leaf of product {product} in version {to} cannot be read; expected it there")]
    TargetLeaf {
        /// The version asked for.
        to: Seq,
        /// The product.
        product: crate::ids::ProductId,
    },
    /// A rule of the Inventory.
    #[error(transparent)]
    Version(#[from] Box<Refusal>),
    /// A document that would not be valid; nothing that a caller does should lead here.
    #[error("the document would not be valid: {0}")]
    Invalid(#[from] DocumentError),
}

const BACKUP: &str = "restore it from a backup (catalog §10.3), then check: jobctl verify";

impl HistoryRefusal {
    /// The stable code: `history.` and the rule in short.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotOptedIn => "history.not_opted_in",
            Self::StoreWithoutLease { .. } => "history.store_without_lease",
            Self::HeadWithoutHistory { .. } => "history.head_without_history",
            Self::HistoryInterrupted { .. } => "history.interrupted",
            Self::HistoryForeign { .. } => "history.foreign",
            Self::OtherCatalog { .. } => "history.other_catalog",
            Self::UnfinishedRestore { .. } => "history.unfinished_restore",
            Self::Retention(fault) => fault.code(),
            Self::RootMissing { .. } => "history.root_missing",
            Self::RootDamaged { .. } => "history.root_damaged",
            Self::RootChanged { .. } => "history.root_changed",
            Self::ChainBroken { .. } => "history.chain_broken",
            Self::SegmentMissing { .. } => "history.segment_missing",
            Self::SegmentDamaged { .. } => "history.segment_damaged",
            Self::SegmentChanged { .. } => "history.segment_changed",
            Self::CleanedOffChain { .. } => "history.cleaned_off_chain",
            Self::HistoryChanged => "history.changed",
            Self::TargetUnread { .. } => "history.target_unread",
            Self::TargetOffChain { .. } => "history.target_off_chain",
            Self::UnreadVersions { .. } => "history.unread_versions",
            Self::RestoreUnfinished { .. } => "history.restore_unfinished",
            Self::TargetLeaf { .. } => "history.target_leaf",
            Self::Version(refusal) => refusal.code(),
            Self::Invalid(_) => "history.invalid_document",
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::NotOptedIn => "opt in first, if old versions are to expire: jobctl run opt-in-expiry".to_owned(),
            Self::StoreWithoutLease { .. } => {
                "keep every version on this store; a catalog that is to expire belongs on Azure or on a disk".to_owned()
            }
            Self::HeadWithoutHistory { .. } | Self::HistoryInterrupted { .. } => {
                "upgrade every writer, then let one write a version (jobctl run describe); versions without history \
                 fields between others keep a catalog from ever opting in, so export it to a new one: jobctl run export"
                    .to_owned()
            }
            Self::HistoryForeign { .. } => {
                "find out who wrote it; if catalog.json came from an older backup, bring back the newer one; if nothing \
                 ever expired, move inventory/HISTORY away, then: jobctl run opt-in-expiry"
                    .to_owned()
            }
            Self::OtherCatalog { document, .. } => {
                format!("{document} belongs to another catalog: bring back this catalog's from a backup")
            }
            Self::UnfinishedRestore { .. } => {
                "finish the restore first: find its run (jobctl runs list) and resume it, or start it again: jobctl run \
                 restore --to-seq N, N as jobctl verify names it"
                    .to_owned()
            }
            Self::Retention(fault) => fault.fix(),
            Self::RootMissing { seq } | Self::RootDamaged { seq, .. } => {
                format!("inventory/{:012}.json: {BACKUP}", seq.get())
            }
            Self::RootChanged { .. } | Self::ChainBroken { .. } => {
                "a version was altered: find out by what (jobctl verify) before anything is deleted, and bring back the \
                 bytes that the chain names from a backup"
                    .to_owned()
            }
            Self::SegmentMissing { path, .. }
            | Self::SegmentDamaged { path, .. }
            | Self::SegmentChanged { path, .. } => format!("{path}: {BACKUP}"),
            Self::CleanedOffChain { .. } => {
                "bring back inventory/HISTORY from a backup that is as new as history/, then: jobctl verify".to_owned()
            }
            Self::HistoryChanged => "start again, on what is there now: jobctl run prune".to_owned(),
            Self::TargetUnread { .. } | Self::TargetOffChain { .. } => {
                "name a version that is there: jobctl inventory log, then jobctl run restore --to-seq N".to_owned()
            }
            Self::UnreadVersions { to, unread } => format!(
                "bring them back from a backup, or confirm them: jobctl run restore --to-seq {to} --confirm-unread {}",
                seqs(unread)
            ),
            Self::RestoreUnfinished { to, .. } => format!("finish that one first: jobctl run restore --to-seq {to}"),
            Self::TargetLeaf { .. } => format!("inventory/leaves/: {BACKUP}; or restore to another version"),
            Self::Version(refusal) => refusal.fix(),
            Self::Invalid(_) => "this is a fault of jobctl: report it with this message".to_owned(),
        }
    }
}

/// Version numbers as a list for the command line.
pub(super) fn seqs(seqs: &[Seq]) -> String {
    seqs.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
