//! Every reason for which a rule of the catalog refuses an operation: the rule, what was found, what was expected, and
//! what to do.

mod recovery;
mod transition;

pub use recovery::RecoveryRefusal;
pub use transition::TransitionRefusal;

use super::change::MissingLeaf;
use super::document::{DocumentError, FormatVersion};
use super::leaf::{EntryState, Kind, SchemaVersion};
use super::root::Seq;
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;

/// A refusal by a rule of the catalog. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A catalog that expires, and a writer that knows nothing of expiry (H6).
    #[error(
        "catalog §6.1: catalog.json has format {found}, so this catalog expires its old versions, and this program \
         cannot write to such a catalog; expected format 1.x"
    )]
    CatalogExpires {
        /// Its version.
        found: FormatVersion,
    },
    /// A catalog that expires without its `HISTORY` (*catalog* §6.1).
    #[error(
        "catalog §6.1: catalog.json is of format 2.x, and inventory/HISTORY is missing, so it is unknown which versions \
         expired; expected both"
    )]
    HistoryMissing,
    /// The epochs are not one (D15).
    #[error(
        "D15: a restore was not finished: catalog.json has restore epoch {catalog}, {}the newest version {head}; \
         expected one epoch",
        history.map_or_else(String::new, |history| format!("inventory/HISTORY {history}, "))
    )]
    UnfinishedRestore {
        /// `catalog.json`'s epoch.
        catalog: u64,
        /// `HISTORY`'s epoch.
        history: Option<u64>,
        /// The newest version's epoch.
        head: u64,
    },
    /// A number that expiry removed (*catalog* §6.6, D1).
    #[error(
        "catalog §6.6: version {seq} is not above version {expired_through}, through which versions expired, so its \
         name could be used twice; expected a newer head"
    )]
    BaseExpired {
        /// The version.
        seq: Seq,
        /// The highest version that expired.
        expired_through: u64,
    },
    /// The job's clock runs ahead of the store's (*catalog* §6.4, D33).
    #[error(
        "catalog §6.4 (the release clock): this machine's clock reads {clock}, more than 60 s ahead of the store's, \
         which reads {store}"
    )]
    ClockAhead {
        /// This machine's clock.
        clock: Instant,
        /// The store's.
        store: Instant,
    },
    /// The base version is too far in the future (*catalog* §6.6).
    #[error(
        "catalog §6.6: the newest version was written at {base}, more than 5 minutes ahead of this clock, which reads \
         {now}"
    )]
    ClockBehind {
        /// The base version's time.
        base: Instant,
        /// This writer's clock.
        now: Instant,
    },
    /// Not built on the live edition (*catalog* §6.4, fast-forward; D10).
    #[error(
        "catalog §6.4 (fast-forward): edition {edition} of {product} was built on {}, and {}",
        previous.as_ref().map_or_else(|| "nothing".to_owned(), |id| format!("edition {id}")),
        expected.as_ref().map_or_else(
            || "no edition of the product is live".to_owned(),
            |(id, schema)| format!("the live edition is {id} (schema {schema})"),
        )
    )]
    NotFastForward {
        /// The product.
        product: ProductId,
        /// The edition that should go in.
        edition: EditionId,
        /// What it was built on.
        previous: Option<EditionId>,
        /// What it should have been built on.
        expected: Option<(EditionId, SchemaVersion)>,
    },
    /// Only newer schemas are live (D10).
    #[error(
        "catalog §6.4 (fast-forward, D10): edition {edition} of {product} has store schema {schema}, and the product \
         is live only at newer schemas (edition {live} at {live_schema})"
    )]
    SchemaBehind {
        /// The product.
        product: ProductId,
        /// The edition that should go in.
        edition: EditionId,
        /// Its schema.
        schema: SchemaVersion,
        /// A live edition.
        live: EditionId,
        /// Its schema.
        live_schema: SchemaVersion,
    },
    /// The manifest is not there (*catalog* §6.5 item 2).
    #[error("catalog §6.5 item 2: edition {edition} of {product} has no manifest in the catalog, so it is not sealed")]
    ManifestMissing {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
    },
    /// The manifest is another one (*catalog* §6.5 item 2).
    #[error(
        "catalog §6.5 item 2: the manifest of edition {edition} of {product} has SHA-256 {found}; expected {expected}"
    )]
    ManifestDiffers {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The SHA-256 that was found.
        found: Sha256Hex,
        /// The SHA-256 that was expected.
        expected: Sha256Hex,
    },
    /// Fingerprints of a form that this writer does not know (*catalog* §6.5 item 3).
    #[error("catalog §6.5 item 3: edition {edition} of {product} has canonical form {found:?}; known: \"1\"")]
    CanonicalForm {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// Its form.
        found: String,
    },
    /// Another content for a final product (*catalog* §6.5 item 5).
    #[error(
        "catalog §6.5 item 5: product {product} is final, and edition {edition} has content fingerprint {found}, where \
         its live edition has {expected}"
    )]
    FinalChanged {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// Its content fingerprint.
        found: String,
        /// The one that it should have.
        expected: String,
    },
    /// A final product would become revisable by the way (*catalog* §6.5 item 5).
    #[error("catalog §6.5 item 5: product {product} is final, and edition {edition} was sealed as revisable")]
    FinalReopened {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
    },
    /// The product holds something else (*catalog* §6.3).
    #[error("catalog §6.3: product {product} is a {expected} product, and edition {edition} is a {found} edition")]
    KindDiffers {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The edition's kind.
        found: Kind,
        /// The product's kind.
        expected: Kind,
    },
    /// An edition built on one that nobody knows (*catalog* §6.5 item 6).
    #[error(
        "catalog §6.5 item 6: edition {edition} of {product} was built on {previous}, which is neither recorded nor \
         retired"
    )]
    ChainBroken {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The edition that is missing.
        previous: EditionId,
    },
    /// An edition that is recorded and retired at once (*catalog* §6.2).
    #[error("catalog §6.2: edition {edition} of {product} would be {state} and have a tombstone")]
    RecordedAndRetired {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// Its state.
        state: EntryState,
    },
    /// A time of release in a catalog that does not wait (*catalog* §6.4, D21).
    #[error(
        "catalog §6.4: edition {edition} of {product} is to be released at {release_at}, and this catalog has its \
         embargo off, so it would be live at once"
    )]
    ReleaseAtWithoutEmbargo {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The time asked for.
        release_at: Instant,
    },
    /// A full artefact that is not its home's (*catalog* §6.5 item 4, first case).
    #[error(
        "catalog §6.5 item 4: edition {edition} of {product} holds {urn} with fingerprint {found}, and its home, \
         structure product {home}, holds it with {expected}"
    )]
    NotAsAtHome {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The artefact.
        urn: String,
        /// Its fingerprint, or the fingerprint that the partial was cut from.
        found: String,
        /// The home.
        home: ProductId,
        /// The home's fingerprints.
        expected: String,
    },
    /// A partial whose full artefact nobody holds (*catalog* §6.5 item 4, first case).
    #[error(
        "catalog §6.5 item 4: edition {edition} of {product} holds a part of {urn}, and no live or embargoed structure \
         product holds the whole"
    )]
    PartialWithoutHome {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The artefact.
        urn: String,
    },
    /// A partial that does not say what it was cut from (*catalog* §6.5 item 4).
    #[error("catalog §6.5 item 4: edition {edition} of {product} holds a part of {urn} without partial_of")]
    PartialWithoutBase {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The artefact.
        urn: String,
    },
    /// A shared artefact without a home that changes in one product only (*catalog* §6.5 item 4, second case).
    #[error(
        "catalog §6.5 item 4: edition {edition} of {product} holds {urn} with fingerprint {found}, and live edition \
         {other_edition} of {other} holds it with {expected}"
    )]
    SharedArtefactDiffers {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The artefact.
        urn: String,
        /// Its fingerprint.
        found: String,
        /// The other product.
        other: ProductId,
        /// Its live edition.
        other_edition: EditionId,
        /// The fingerprint there.
        expected: String,
    },
    /// Two structure products with one full artefact (*catalog* §6.5 item 7).
    #[error(
        "catalog §6.5 item 7: edition {edition} of structure product {product} holds {urn}, whose home is structure \
         product {home}"
    )]
    TwoHomes {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The artefact.
        urn: String,
        /// Its home.
        home: ProductId,
    },
    /// A data edition before the structure edition that it was cut from (*catalog* §6.5 item 8).
    #[error(
        "catalog §6.5 item 8: edition {edition} of {product} needs {urn} at fingerprint {needed} live, and structure \
         product {home} has it only embargoed, in edition {home_edition}"
    )]
    PublishOrder {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The artefact.
        urn: String,
        /// The fingerprint that it needs.
        needed: String,
        /// The home.
        home: ProductId,
        /// The embargoed edition that holds it.
        home_edition: EditionId,
    },
    /// An entry without artefact records, whose manifest was not read (*catalog* §6.3).
    #[error(
        "catalog §6.5: the entry of edition {edition} of {product} has no artefact records, and its manifest could \
         not be read for them"
    )]
    RecordsUnread {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
    },
    /// A manifest of a recorded edition that cannot be read any more (*catalog* §6.5 item 3).
    #[error(
        "catalog §6.5 item 3: the manifest of edition {edition} of {product} cannot be read, so its canonical form is \
         unknown; expected manifest format 3.x"
    )]
    ManifestUnreadable {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
    },
    /// A transition that is not possible from here (*catalog* §6.4).
    #[error(transparent)]
    Transition(#[from] TransitionRefusal),
    /// A correction or a recovery that would lose something (D14, D16).
    #[error(transparent)]
    Recovery(#[from] RecoveryRefusal),
    /// A version that would not be valid; nothing that a caller does should lead here.
    #[error("the new version would not be valid: {0}")]
    Invalid(#[from] DocumentError),
    /// A leaf that the decision needs was not handed over.
    #[error(transparent)]
    MissingLeaf(#[from] MissingLeaf),
}

impl Refusal {
    /// The stable code: `catalog.` and the rule in short.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::CatalogExpires { .. } => "catalog.expires",
            Self::HistoryMissing => "catalog.history_missing",
            Self::UnfinishedRestore { .. } => "catalog.unfinished_restore",
            Self::BaseExpired { .. } => "catalog.base_expired",
            Self::ClockAhead { .. } => "catalog.clock_ahead",
            Self::ClockBehind { .. } => "catalog.clock_behind",
            Self::NotFastForward { .. } => "catalog.not_fast_forward",
            Self::SchemaBehind { .. } => "catalog.schema_behind",
            Self::ManifestMissing { .. } => "catalog.manifest_missing",
            Self::ManifestDiffers { .. } => "catalog.manifest_differs",
            Self::CanonicalForm { .. } => "catalog.canonical_form",
            Self::FinalChanged { .. } => "catalog.final_changed",
            Self::FinalReopened { .. } => "catalog.final_reopened",
            Self::KindDiffers { .. } => "catalog.kind_differs",
            Self::ChainBroken { .. } => "catalog.chain_broken",
            Self::RecordedAndRetired { .. } => "catalog.recorded_and_retired",
            Self::ReleaseAtWithoutEmbargo { .. } => "catalog.release_at_without_embargo",
            Self::NotAsAtHome { .. } => "catalog.not_as_at_home",
            Self::PartialWithoutHome { .. } => "catalog.partial_without_home",
            Self::PartialWithoutBase { .. } => "catalog.partial_without_base",
            Self::SharedArtefactDiffers { .. } => "catalog.shared_artefact_differs",
            Self::TwoHomes { .. } => "catalog.two_homes",
            Self::PublishOrder { .. } => "catalog.publish_order",
            Self::RecordsUnread { .. } => "catalog.records_unread",
            Self::ManifestUnreadable { .. } => "catalog.manifest_unreadable",
            Self::Transition(refusal) => refusal.code(),
            Self::Recovery(refusal) => refusal.code(),
            Self::Invalid(_) => "catalog.invalid_version",
            Self::MissingLeaf(_) => "catalog.missing_leaf",
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::CatalogExpires { .. } => "use a jobctl that supports history segments (catalog §6.9)".to_owned(),
            Self::HistoryMissing => "restore inventory/HISTORY from a backup (catalog §10.3)".to_owned(),
            Self::UnfinishedRestore { .. } => {
                "finish the restore first: find its run (jobctl runs list) and resume that one by jobctl runs resume"
                    .to_owned()
            }
            Self::BaseExpired { .. } => "look for the newest version and try again: jobctl inventory show".to_owned(),
            Self::ClockAhead { .. } => "set this machine's clock, then resume the run".to_owned(),
            Self::ClockBehind { .. } => {
                "set this machine's clock (or find out which machine's clock runs ahead), then resume the run"
                    .to_owned()
            }
            Self::NotFastForward { product, edition, .. } => format!(
                "this edition cannot be released: leave {edition} unrecorded and publish again, which builds on the \
                 live edition: jobctl run publish --product {product}"
            ),
            Self::SchemaBehind { product, live_schema, .. } => format!(
                "publish with the jobctl that writes schema {live_schema}: jobctl run publish --product {product}"
            ),
            Self::ManifestMissing { product, .. } => {
                format!(
                    "an edition that was sealed lost it: restore it from a backup (catalog §10.3); one that was not is \
                     sealed by its run (jobctl runs list --in interrupted) or by jobctl run publish --product {product}"
                )
            }
            Self::ManifestDiffers { .. } => {
                "a sealed edition was changed: find out by what (jobctl edition check), restore it, and try again"
                    .to_owned()
            }
            Self::CanonicalForm { .. } => "use the jobctl that sealed the edition, or a newer one".to_owned(),
            Self::FinalChanged { product, .. } | Self::FinalReopened { product, .. } => {
                format!(
                    "a final product does not change; make it revisable first: jobctl run set-lifecycle --product \
                     {product} --lifecycle revisable"
                )
            }
            Self::KindDiffers { .. } => {
                "publish it under a product id of its own: jobctl run publish --product ANOTHER_ID".to_owned()
            }
            Self::ChainBroken { product, .. } => {
                format!("publish again, which builds on the live edition: jobctl run publish --product {product}")
            }
            Self::RecordedAndRetired { product, edition, .. } => format!(
                "a retired edition comes back by reinstate only: jobctl run reinstate --product {product} --edition \
                 {edition}"
            ),
            Self::ReleaseAtWithoutEmbargo { .. } => {
                "publish without --release-at, or turn the catalog's embargo on first: jobctl run embargo on".to_owned()
            }
            Self::NotAsAtHome { product, home, .. } => {
                format!(
                    "publish it again with the structures that {home} holds now: jobctl run publish --product {product}"
                )
            }
            Self::PartialWithoutHome { product, urn, .. } => {
                format!(
                    "publish the structure product that holds {urn} first, or publish {product} again with the full \
                     artefact: jobctl run publish --product {product}"
                )
            }
            Self::PartialWithoutBase { product, .. } => {
                format!(
                    "publish it again with the full artefact at hand, so that the part names it: jobctl run publish \
                     --product {product}"
                )
            }
            Self::SharedArtefactDiffers { product, other, .. } => {
                format!(
                    "release both with the same artefact in one version (jobctl run release --product {product} \
                     --product {other}; a rollback takes several products, too), or give it a new version"
                )
            }
            Self::TwoHomes { product, home, urn, .. } => format!(
                "take {urn} out of {product}, or out of {home} first, and publish that one again: jobctl run publish \
                 --product {home}"
            ),
            Self::PublishOrder { home, .. } => {
                format!("release the structure edition first: jobctl run release --product {home}")
            }
            Self::RecordsUnread { product, edition } => {
                format!("restore products/{product}/{edition}/manifest.json, then try again")
            }
            Self::ManifestUnreadable { .. } => "use the jobctl that sealed the edition, or a newer one".to_owned(),
            Self::Transition(refusal) => refusal.fix(),
            Self::Recovery(refusal) => refusal.fix(),
            Self::Invalid(_) | Self::MissingLeaf(_) => {
                "this is a fault of jobctl: report it with this message".to_owned()
            }
        }
    }
}

impl From<DocumentError> for Box<Refusal> {
    fn from(error: DocumentError) -> Self {
        Self::new(error.into())
    }
}

impl From<MissingLeaf> for Box<Refusal> {
    fn from(error: MissingLeaf) -> Self {
        Self::new(error.into())
    }
}

impl From<TransitionRefusal> for Box<Refusal> {
    fn from(error: TransitionRefusal) -> Self {
        Self::new(error.into())
    }
}

impl From<RecoveryRefusal> for Box<Refusal> {
    fn from(error: RecoveryRefusal) -> Self {
        Self::new(error.into())
    }
}

/// Edition ids in a sentence.
fn ids<'a>(editions: impl IntoIterator<Item = &'a EditionId>) -> String {
    let ids: Vec<_> = editions.into_iter().map(EditionId::as_str).collect();
    if ids.is_empty() { "none".to_owned() } else { ids.join(", ") }
}

/// Version numbers as a list for the command line.
fn seqs(seqs: &[Seq]) -> String {
    seqs.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
