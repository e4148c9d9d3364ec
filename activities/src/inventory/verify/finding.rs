//! What `verify` finds, as data.

use catalog_rules::ids::{EditionId, ProductId, Sha256Hex};
use catalog_rules::inventory::{EntryFinding, Refusal, Seq, StepFinding, VersionFinding};
use catalog_rules::layout;
use serde::Serialize;

use super::{Alert, LeafFault, RootFault};

/// One thing that is not as it has to be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// What kind of thing, such as `file.size`.
    pub code: &'static str,
    /// What it is about: a path within the catalog, or a product, edition or version.
    pub subject: String,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: String,
    /// What a person can do about it.
    pub fix: String,
}

/// How a file of an edition comes back.
pub(super) fn whole_edition(product: &ProductId, edition: &EditionId) -> String {
    format!("{RESTORE}; then check the edition: jobctl edition check {edition} --product {product}")
}

const CURRENT_FIX: &str = "nothing has to be done: readers find the newest version without it, and the next version that \
                           is written puts it right";

const RESTORE: &str = "restore it from a backup (catalog §10.3)";

impl Finding {
    fn new(code: &'static str, subject: String, found: String, expected: impl Into<String>, fix: String) -> Self {
        Self { code, subject, found, expected: expected.into(), fix }
    }

    /// What the search for `newest` passed over; `current` is the version that `CURRENT` names.
    pub(super) fn of_alert(alert: &Alert, newest: Seq, current: Option<Seq>) -> Self {
        let hint = |code, found: String, expected: &str| {
            Self::new(code, layout::CURRENT.to_owned(), found, expected, CURRENT_FIX.to_owned())
        };
        match alert {
            Alert::InvalidRoot { seq, fault } if *seq > newest => {
                Self { fix: fault.fix(*seq), ..Self::root_invalid(*seq, fault) }
            }
            // A newer version is valid. The root itself is looked at with the chain.
            Alert::InvalidRoot { seq, fault: fault @ (RootFault::Hash { .. } | RootFault::Epoch { .. }) }
                if current == Some(*seq) =>
            {
                hint("current.differs", format!("version {seq}, and of its root: {fault}"), "that root as it is")
            }
            Alert::InvalidRoot { seq, fault } => Self::root_invalid(*seq, fault),
            Alert::CurrentMissing => hint("current.missing", "no CURRENT".to_owned(), "the newest version's name"),
            Alert::CurrentUnreadable => {
                hint("current.unreadable", "bytes that are no hint".to_owned(), "seq, root_sha256, restore_epoch")
            }
            Alert::CurrentAbsent { seq } => {
                hint("current.absent", format!("version {seq}, which is not there"), "a version that is there")
            }
            Alert::OlderEpoch { found, held } => {
                hint("current.epoch", format!("restore epoch {found}"), &format!("restore epoch {held}"))
            }
        }
    }

    pub(super) fn current_behind(found: Seq, newest: Seq) -> Self {
        Self::new(
            "current.behind",
            layout::CURRENT.to_owned(),
            format!("version {found}"),
            format!("version {newest}, the newest"),
            CURRENT_FIX.to_owned(),
        )
    }

    pub(super) fn root_missing(seq: Seq) -> Self {
        let path = layout::root(seq);
        Self::new("root.missing", path, "no root".to_owned(), format!("the root of version {seq}"), RESTORE.to_owned())
    }

    /// `missing`: the first version below it that is not there.
    pub(super) fn root_beyond(seq: Seq, missing: Seq) -> Self {
        let path = layout::root(seq);
        let fix = format!(
            "compare inventory/ with a backup: if the backup has version {missing}, versions were lost, so restore it \
             whole (catalog §10.3); if not, no writer of this catalog wrote {path}: move it out of inventory/ before \
             other versions reach it"
        );
        let expected = format!("no root above version {missing}, which is not there");
        Self::new("root.beyond_gap", path, format!("a root of version {seq}"), expected, fix)
    }

    pub(super) fn root_invalid(seq: Seq, fault: &RootFault) -> Self {
        let path = layout::root(seq);
        Self::new("root.invalid", path, fault.to_string(), format!("the root of version {seq}"), RESTORE.to_owned())
    }

    pub(super) fn leaf(seq: Seq, product: &ProductId, sha256: &Sha256Hex, fault: &LeafFault) -> Self {
        let path = layout::leaf(sha256);
        let code = match fault {
            LeafFault::Missing => "leaf.missing",
            LeafFault::Hash { .. } => "leaf.digest",
            LeafFault::Document(_) => "leaf.invalid",
            LeafFault::Product { .. } => "leaf.product",
        };
        let expected = format!("the leaf of product {product} as version {seq} names it");
        Self::new(code, path, fault.to_string(), expected, RESTORE.to_owned())
    }

    pub(super) fn of_refusal(subject: String, refusal: &Refusal) -> Self {
        Self::new(refusal.code(), subject, refusal.to_string(), "what the rule says", refusal.fix())
    }

    /// `path`: the manifest's.
    pub(super) fn of_entry(path: String, finding: &EntryFinding) -> Self {
        let (code, expected) = match finding {
            EntryFinding::Missing { .. } => ("manifest.missing", "the manifest that the entry names".to_owned()),
            EntryFinding::Differs { expected, .. } => ("manifest.digest", format!("SHA-256 {expected}")),
            EntryFinding::Unreadable { .. } => ("manifest.unreadable", "a manifest of format 3.x".to_owned()),
            EntryFinding::Field { field, .. } => ("entry.field", format!("{field} as the manifest gives it")),
        };
        Self::new(code, path, finding.to_string(), expected, finding.fix())
    }

    pub(super) fn of_version(seq: Seq, finding: &VersionFinding) -> Self {
        let version = || layout::root(seq);
        let edition = |product: &ProductId, edition: &EditionId| format!("edition {edition} of {product}");
        let (code, subject, expected) = match finding {
            VersionFinding::Leaf { product } => ("leaf.product", version(), format!("the leaf of product {product}")),
            VersionFinding::Rule(refusal) => (refusal.code(), version(), "what the rule says".to_owned()),
            VersionFinding::SharedDiffers { .. } => {
                ("version.shared_differs", version(), "one fingerprint, live in every product".to_owned())
            }
            VersionFinding::Orphan { product, edition: id, .. } => {
                ("version.orphan", edition(product, id), "a structure product that is its home".to_owned())
            }
            VersionFinding::Stale(stale) => {
                ("version.stale", edition(&stale.product, &stale.edition), "the copy that its home has now".to_owned())
            }
        };
        Self::new(code, subject, finding.to_string(), expected, finding.fix())
    }

    /// `blocking`: what keeps a version from following this one, where it is the newest.
    pub(super) fn of_step(finding: &StepFinding, blocking: Option<&RootFault>) -> Self {
        let (code, seq, expected) = match finding {
            StepFinding::Chain { seq, expected, .. } => ("step.chain", seq, format!("previous_root_sha256 {expected}")),
            StepFinding::Numbers { seq, base, .. } => ("step.numbers", seq, format!("built from version {base}")),
            StepFinding::Time { seq, expected, .. } => ("step.time", seq, format!("{expected} or later")),
            StepFinding::Epoch { seq, base, .. } => ("step.epoch", seq, format!("restore epoch {base} or higher")),
            StepFinding::Changes { seq, .. } => {
                ("step.changes", seq, "what differs from the version before".to_owned())
            }
        };
        let path = layout::root(*seq);
        let fix = match (finding, blocking) {
            (StepFinding::Chain { .. }, Some(fault)) => fault.fix(*seq),
            (_, _) => format!(
                "find out which of the two versions is another than was written, and restore it from a backup (catalog \
                 §10.3): {path} or the one before it"
            ),
        };
        Self::new(code, path, finding.to_string(), expected, fix)
    }
}
