//! The refusals of corrections and recoveries (D14, D16; *catalog* §6.7).

use super::{ids, seqs};
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::inventory::document::FormatVersion;
use crate::inventory::root::Seq;
use crate::layout;

/// A correction or a recovery that would lose something. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryRefusal {
    /// A correction to a version that is not an older one.
    #[error("catalog §6.2 (correct): version {to} is no older version than {head}, the newest; expected a lower one")]
    NotOlder {
        /// The version asked for.
        to: Seq,
        /// The newest version.
        head: Seq,
    },
    /// A correction to a version that cannot be read.
    #[error("catalog §6.2 (correct): version {to} cannot be read; expected a known-good version")]
    TargetUnread {
        /// The version asked for.
        to: Seq,
    },
    /// Versions between that nobody read: what they withdrew could come back (D14).
    #[error(
        "D14: versions {} after {to} cannot be read, or carry no change list, so what they withdrew or retired would \
         come back unseen; expected each of them to be confirmed",
        seqs(unread)
    )]
    UnreadVersions {
        /// The version asked for.
        to: Seq,
        /// The versions that were not read.
        unread: Vec<Seq>,
    },
    /// There is nothing at the head to repair.
    #[error("D16: there is no root of version {seq}; expected the damaged one that follows version {last_valid}")]
    HeadAbsent {
        /// The version asked for.
        seq: Seq,
        /// The last valid version.
        last_valid: Seq,
    },
    /// The root is sound.
    #[error("D16: version {seq} is valid; only a root that fails validation is deleted")]
    HeadValid {
        /// The version asked for.
        seq: Seq,
    },
    /// The root is not the first after the last valid one.
    #[error("D16: version {seq} does not follow version {last_valid}, the last valid one; expected {expected}")]
    HeadNotNext {
        /// The version asked for.
        seq: Seq,
        /// The last valid version.
        last_valid: Seq,
        /// The version after it.
        expected: Seq,
    },
    /// The root is of a newer format, not damaged.
    #[error("D16: version {seq} has format {found}, which a newer program wrote; it is not damaged")]
    HeadNewer {
        /// The version asked for.
        seq: Seq,
        /// Its format.
        found: FormatVersion,
    },
    /// A valid version follows the damaged one: its history would go.
    #[error(
        "D16: version {next} after {seq} is valid and was built on it, so deleting {seq} would lose history; expected \
         no valid version after it"
    )]
    HeadBuiltOn {
        /// The version asked for.
        seq: Seq,
        /// The valid version after it.
        next: Seq,
    },
    /// The root was committed, so what its version did would be undone.
    #[error(
        "D16: CURRENT names version {current} with SHA-256 {named}, so version {seq} was committed, and its root has \
         SHA-256 {found} now; deleting it undoes what it did, a withdrawal too; expected a version that was never \
         committed"
    )]
    HeadCommitted {
        /// The version asked for.
        seq: Seq,
        /// The version that `CURRENT` names: this one, or one after it.
        current: Seq,
        /// The SHA-256 that `CURRENT` gives it.
        named: Sha256Hex,
        /// The SHA-256 of the root of the version asked for.
        found: Sha256Hex,
    },
    /// The Inventory can be read, so nothing is rebuilt.
    #[error("catalog §6.7 (rebuild-inventory): version {seq} is valid; expected an Inventory without a valid version")]
    StillReadable {
        /// The newest valid version.
        seq: Seq,
    },
    /// Objects of the Inventory that are there and cannot be read.
    #[error(
        "catalog §6.7 (rebuild-inventory): {} of the Inventory still there, which may tell what was withdrawn: {}; \
         expected none",
        objects.len(), objects.join(", ")
    )]
    Remains {
        /// Their paths.
        objects: Vec<String>,
    },
    /// History that is gone, and that nobody vouched for.
    #[error(
        "catalog §6.7 (rebuild-inventory): {} would be lost, and with them what was rolled back, withdrawn or retired, \
         which no manifest records; expected a catalog that was never rolled back",
        through.map_or_else(
            || "an unknown number of versions".to_owned(),
            |through| format!("the history of versions 1 to {through}"),
        )
    )]
    HistoryLost {
        /// The highest version that is known to have been, where anything tells.
        through: Option<Seq>,
    },
    /// A leaf that tells of a rollback.
    #[error(
        "catalog §6.7 (rebuild-inventory): a leaf that is left says that edition {edition} of {product} was withdrawn, \
         and a rebuilt Inventory would release it again; expected a catalog that was never rolled back"
    )]
    RolledBack {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
    },
    /// Two editions with one base: one of them was withdrawn or waits.
    #[error(
        "catalog §6.7 (rebuild-inventory): editions {} of {product} were built on the same edition{}, so one of them \
         was taken back or waits, which no manifest records; expected one chain of editions",
        ids(editions),
        previous.as_ref().map_or_else(String::new, |previous| format!(" {previous}")),
    )]
    Forked {
        /// The product.
        product: ProductId,
        /// What they were built on.
        previous: Option<EditionId>,
        /// The editions.
        editions: Vec<EditionId>,
    },
}

impl RecoveryRefusal {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotOlder { .. } => "catalog.correct_not_older",
            Self::TargetUnread { .. } => "catalog.correct_target_unread",
            Self::UnreadVersions { .. } => "catalog.unread_versions",
            Self::HeadAbsent { .. } => "catalog.head_absent",
            Self::HeadValid { .. } => "catalog.head_valid",
            Self::HeadNotNext { .. } => "catalog.head_not_next",
            Self::HeadNewer { .. } => "catalog.head_newer",
            Self::HeadBuiltOn { .. } => "catalog.head_built_on",
            Self::HeadCommitted { .. } => "catalog.head_committed",
            Self::StillReadable { .. } => "catalog.still_readable",
            Self::Remains { .. } => "catalog.inventory_remains",
            Self::HistoryLost { .. } => "catalog.history_lost",
            Self::RolledBack { .. } => "catalog.rolled_back",
            Self::Forked { .. } => "catalog.forked",
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::NotOlder { .. } => "see the versions: jobctl inventory log".to_owned(),
            Self::TargetUnread { to } => {
                format!("restore version {to} from a backup, or name another: jobctl inventory log")
            }
            Self::UnreadVersions { to, unread } => format!(
                "restore them from a backup, or confirm them: jobctl run correct --to {to} --confirm-unread {}",
                seqs(unread)
            ),
            Self::HeadAbsent { .. } => {
                "nothing is to be repaired; see the newest version: jobctl inventory show".to_owned()
            }
            Self::HeadValid { .. } => {
                "nothing is to be deleted; where a writer refuses it all the same, see what is wrong: jobctl verify"
                    .to_owned()
            }
            Self::HeadNotNext { seq, expected, .. } => format!(
                "repair the first damaged one: jobctl run repair-head --seq {expected}; where nothing stands there, see \
                 what to do about {seq}: jobctl verify"
            ),
            Self::HeadNewer { .. } => "use the newer jobctl".to_owned(),
            Self::HeadBuiltOn { seq, next } => format!(
                "restore version {seq} from a backup (catalog §10.3); then check: jobctl verify; where no backup has it, \
                 find out what wrote {seq} and the versions from {next} on, and keep those that no writer of this \
                 catalog wrote outside inventory/"
            ),
            Self::HeadCommitted { seq, .. } => format!(
                "restore {} from a backup (catalog §10.3); or, if what version {seq} did may be undone, so that what it \
                 withdrew is live again: jobctl run repair-head --seq {seq} --confirm-committed --reason …",
                layout::root(*seq)
            ),
            Self::StillReadable { .. } => {
                "see what is wrong (jobctl verify); a damaged head is mended by jobctl run repair-head --seq N, a wrong \
                 version by jobctl run correct --to N"
                    .to_owned()
            }
            Self::Remains { .. } => {
                "restore inventory/ from a backup (catalog §10.3), or move these objects away once their history is \
                 known"
                    .to_owned()
            }
            Self::HistoryLost { through } => format!(
                "restore inventory/ from a backup (catalog §10.3); only if nothing was ever rolled back, withdrawn or \
                 retired: jobctl run rebuild-inventory --lost-through {} --embargo on (off where nothing waited for a \
                 release)",
                through.map_or(0, Seq::get)
            ),
            Self::RolledBack { .. } => "restore inventory/ from a backup (catalog §10.3)".to_owned(),
            Self::Forked { product, .. } => format!(
                "restore inventory/ from a backup (catalog §10.3), or move the edition that must not be live out of \
                 products/{product} and rebuild again"
            ),
        }
    }
}
