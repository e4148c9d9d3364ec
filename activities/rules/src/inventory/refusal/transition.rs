//! The refusals of the transitions (*catalog* §6.4) beyond those of a record.

use super::ids;
use crate::ids::{EditionId, ProductId};
use crate::instant::Instant;
use crate::inventory::leaf::{EntryState, SchemaVersion};
use crate::inventory::root::Tombstone;

/// A transition that a rule of the catalog forbids. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransitionRefusal {
    /// A product that the Inventory does not know.
    #[error("catalog §6.3: the Inventory has no product {product}; expected one that `inventory products` lists")]
    UnknownProduct {
        /// The product.
        product: ProductId,
    },
    /// An edition that the Inventory does not know.
    #[error("catalog §6.4: the Inventory has no edition {edition} of {product}, in any state or as a tombstone")]
    UnknownEdition {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
    },
    /// An edition that is retired.
    #[error(
        "catalog §6.4: edition {edition} of {product} was retired at {retired_at}; expected {expected}: a retired \
         edition comes back by reinstate only"
    )]
    Retired {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// When it was retired.
        retired_at: Instant,
        /// The state that was needed.
        expected: &'static str,
    },
    /// An edition in another state than the transition starts from.
    #[error("catalog §6.4: edition {edition} of {product} is {found}; expected {expected}")]
    WrongState {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// Its state.
        found: EntryState,
        /// The state that was needed.
        expected: &'static str,
    },
    /// An edition built on one that was taken back (*catalog* §6.4, rollback ripples).
    #[error(
        "catalog §6.4 (fast-forward after a rollback): edition {edition} of {product} was built on edition {previous}, \
         which was withdrawn; {}",
        live.as_ref().map_or_else(
            || "no edition of the product is live".to_owned(),
            |(id, schema)| format!("expected the live edition {id} (schema {schema})"),
        )
    )]
    BuiltOnWithdrawn {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The withdrawn edition.
        previous: EditionId,
        /// The edition that it should have been built on.
        live: Option<(EditionId, SchemaVersion)>,
        /// Whether the edition is recorded as embargoed, so that it has to be cancelled.
        embargoed: bool,
    },
    /// Two editions that would replace the same live one (*catalog* §11.2).
    #[error(
        "catalog §11.2: edition {edition} of {product} and edition {other} were both built on {} at schema {schema}; \
         expected one of them",
        previous.as_ref().map_or_else(|| "nothing".to_owned(), |id| format!("edition {id}"))
    )]
    TwoPending {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The other one.
        other: EditionId,
        /// What both were built on.
        previous: Option<EditionId>,
        /// The schema version of both.
        schema: SchemaVersion,
        /// Whether the edition is only registered: then `drop-pending` removes it, else `withdraw` does.
        registered: bool,
    },
    /// Another registration of the product waits to be folded (D20).
    #[error(
        "D20: edition {other} of {product} is registered and not folded yet; expected no other registration when \
         edition {edition} is registered"
    )]
    AnotherRegistered {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The one that is registered.
        other: EditionId,
    },
    /// No edition that waits.
    #[error("catalog §6.4 (release): no edition of {product} is embargoed, so there is nothing to release")]
    NothingEmbargoed {
        /// The product.
        product: ProductId,
    },
    /// Somebody changed the live editions meanwhile (*catalog* §6.4, rollback is conditional).
    #[error(
        "catalog §6.4 (if_live): {product} has live {}; expected {}, as when the operation was asked for",
        ids(found),
        ids(expected)
    )]
    LiveChanged {
        /// The product.
        product: ProductId,
        /// The editions that were live.
        expected: Vec<EditionId>,
        /// The editions that are live.
        found: Vec<EditionId>,
    },
    /// No live edition.
    #[error("catalog §6.4: no edition of {product} is live; expected one to take back")]
    NothingLive {
        /// The product.
        product: ProductId,
    },
    /// No superseded edition (D22).
    #[error("catalog §6.4 (rollback): {product} has live {} and no superseded edition to go back to", ids(live))]
    NothingToRollBackTo {
        /// The product.
        product: ProductId,
        /// Its live editions.
        live: Vec<EditionId>,
    },
    /// A target at a schema version at which nothing is live.
    #[error(
        "catalog §6.4 (rollback): edition {to} of {product} has schema {schema}, at which no edition is live (live: \
         {}); expected one of the schema that is rolled back",
        ids(live)
    )]
    RollbackSchema {
        /// The product.
        product: ProductId,
        /// The target.
        to: EditionId,
        /// Its schema.
        schema: SchemaVersion,
        /// The live editions.
        live: Vec<EditionId>,
    },
    /// A rollback that leaves a live schema version as it is, or takes one back twice (D22).
    #[error(
        "D22: a rollback takes back all live editions of {product} in one version: {}; it was asked for {}",
        ids(live),
        ids(moves)
    )]
    RollbackIncomplete {
        /// The product.
        product: ProductId,
        /// The live editions.
        live: Vec<EditionId>,
        /// The editions that the rollback names.
        moves: Vec<EditionId>,
    },
    /// A pending edition that is not the other one's rival (*catalog* §6.4, supersede_pending).
    #[error(
        "catalog §6.4 (supersede): edition {by} of {product} was built on {}, and edition {edition} on {}; expected \
         both on the same live edition at one schema version",
        ids(by_previous),
        ids(previous)
    )]
    NotSameBase {
        /// The product.
        product: ProductId,
        /// The edition that should be withdrawn.
        edition: EditionId,
        /// The edition that takes its place.
        by: EditionId,
        /// What the first was built on.
        previous: Option<EditionId>,
        /// What the second was built on.
        by_previous: Option<EditionId>,
    },
    /// A retired edition whose files do not verify, or were not looked at (*catalog* §6.4, reinstate).
    #[error(
        "catalog §6.4 (reinstate): edition {edition} of {product} does not verify: {}; expected its manifest and every \
         listed file as sealed",
        findings.first().map_or("its files were not checked", String::as_str)
    )]
    NotVerified {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// What was found.
        findings: Vec<String>,
    },
    /// A tombstone whose bytes may go any time now (D30).
    #[error(
        "D30: edition {edition} of {product} was retired at {retired_at}, and GC may delete it from {deletable_at}; \
         expected more than one day left"
    )]
    WindowCloses {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// When it was retired.
        retired_at: Instant,
        /// From when GC may delete it.
        deletable_at: Instant,
    },
    /// An edition whose bytes were deleted for good (D29).
    #[error("D29: edition {edition} of {product} was expunged; expected one whose bytes are there")]
    Expunged {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
    },
    /// Not long enough superseded or withdrawn (*catalog* §6.4, retention).
    #[error(
        "catalog §6.4 (retention): edition {edition} of {product} is {state} since {since}, and its window ends at \
         {until}; expected an instant past it"
    )]
    InsideWindow {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// Its state.
        state: EntryState,
        /// Since when.
        since: Instant,
        /// When the window ends.
        until: Instant,
    },
    /// A structure edition that parts were cut from (*catalog* §11.4).
    #[error(
        "catalog §11.4: edition {by_edition} of {by} holds a part of {urn} that was cut from edition {edition} of \
         structure product {product}; expected no live or embargoed edition that cites it"
    )]
    Cited {
        /// The structure product.
        product: ProductId,
        /// Its edition.
        edition: EditionId,
        /// The artefact.
        urn: String,
        /// The product that cites it.
        by: ProductId,
        /// Its edition.
        by_edition: EditionId,
    },
    /// Readers of the old schema would lose their edition (D27).
    #[error(
        "D27 (supersede-schema): edition {edition} of {product} is live at schema {schema}, and no edition of the \
         product is live at a newer one"
    )]
    NoNewerSchema {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// Its schema.
        schema: SchemaVersion,
    },
    /// Nothing is live at that schema.
    #[error("D27 (supersede-schema): no edition is live at schema {schema}; expected a schema that is live{}",
        product.as_ref().map_or_else(String::new, |product| format!(" in product {product}")))]
    NothingAtSchema {
        /// The schema.
        schema: SchemaVersion,
        /// The product that was named.
        product: Option<ProductId>,
    },
    /// A product that would become final while another content waits (*catalog* §6.5 item 5).
    #[error(
        "catalog §6.5 item 5: {product} would become final while it has embargoed {}; expected no edition that waits",
        ids(embargoed)
    )]
    FinalWhilePending {
        /// The product.
        product: ProductId,
        /// Its embargoed editions.
        embargoed: Vec<EditionId>,
    },
    /// A registration from an old backup (*catalog* §11.2).
    #[error(
        "catalog §11.2: pending edition {edition} of {product} was minted at {minted_at}, before the tombstone window \
         that began at {window_from}; expected a newer one, since it may have been withdrawn and forgotten"
    )]
    PendingTooOld {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The time in its id.
        minted_at: Instant,
        /// When the window began.
        window_from: Instant,
    },
    /// A registration that is not what the manifest says (D19).
    #[error(
        "D19: the registration of edition {edition} of {product} has {field} {found}; expected {expected}, as its \
         manifest says"
    )]
    RegistrationDiffers {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The field.
        field: &'static str,
        /// What the registration says.
        found: String,
        /// What the manifest says.
        expected: String,
    },
}

impl TransitionRefusal {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownProduct { .. } => "catalog.unknown_product",
            Self::UnknownEdition { .. } => "catalog.unknown_edition",
            Self::Retired { .. } => "catalog.retired",
            Self::WrongState { .. } => "catalog.wrong_state",
            Self::BuiltOnWithdrawn { .. } => "catalog.built_on_withdrawn",
            Self::TwoPending { .. } => "catalog.two_pending",
            Self::AnotherRegistered { .. } => "catalog.another_registered",
            Self::NothingEmbargoed { .. } => "catalog.nothing_embargoed",
            Self::LiveChanged { .. } => "catalog.live_changed",
            Self::NothingLive { .. } => "catalog.nothing_live",
            Self::NothingToRollBackTo { .. } => "catalog.nothing_to_roll_back_to",
            Self::RollbackSchema { .. } => "catalog.rollback_schema",
            Self::RollbackIncomplete { .. } => "catalog.rollback_incomplete",
            Self::NotSameBase { .. } => "catalog.not_same_base",
            Self::NotVerified { .. } => "catalog.not_verified",
            Self::WindowCloses { .. } => "catalog.window_closes",
            Self::Expunged { .. } => "catalog.expunged",
            Self::InsideWindow { .. } => "catalog.inside_window",
            Self::Cited { .. } => "catalog.cited",
            Self::NoNewerSchema { .. } => "catalog.no_newer_schema",
            Self::NothingAtSchema { .. } => "catalog.nothing_at_schema",
            Self::FinalWhilePending { .. } => "catalog.final_while_pending",
            Self::PendingTooOld { .. } => "catalog.pending_too_old",
            Self::RegistrationDiffers { .. } => "catalog.registration_differs",
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::UnknownProduct { .. } => "see which there are: jobctl inventory products".to_owned(),
            Self::UnknownEdition { product, .. } => {
                format!("see the product's editions: jobctl inventory product {product}")
            }
            Self::Retired { product, edition, .. } => {
                format!("bring it back first: jobctl run reinstate --product {product} --edition {edition}")
            }
            Self::WrongState { product, edition, found, .. } => wrong_state(product, edition, *found),
            Self::BuiltOnWithdrawn { product, edition, embargoed: true, .. } => format!(
                "cancel it: jobctl run withdraw --product {product} --edition {edition} --reason …; then build again from \
                 its source (jobctl run publish --product {product} --source …, with --release-at if it is to wait)"
            ),
            Self::BuiltOnWithdrawn { product, edition, embargoed: false, .. } => format!(
                "build again from its source: jobctl run publish --product {product} --source …; what is sealed of \
                 {edition} stays unrecorded, and what is not sealed goes by jobctl edition discard {edition} --product \
                 {product} --reason …"
            ),
            Self::TwoPending { product, edition, other, registered: true, .. } => format!(
                "keep one: jobctl run drop-pending --product {product} --edition {edition}, or upload one that \
                 supersedes {other}"
            ),
            Self::TwoPending { product, edition, other, registered: false, .. } => format!(
                "keep one: jobctl run supersede --product {product} --edition {edition} --by {other}, or the other way \
                 round"
            ),
            Self::AnotherRegistered { product, other, .. } => format!(
                "wait for the next release, which folds it, or remove it: jobctl run drop-pending --product {product} \
                 --edition {other}"
            ),
            Self::NothingEmbargoed { product } => {
                format!("see the product's editions: jobctl inventory product {product}")
            }
            Self::LiveChanged { product, .. } => format!(
                "look at what changed: jobctl inventory product {product}; then ask again, which starts from what is \
                 live now"
            ),
            Self::NothingLive { product } => format!(
                "publish the product: jobctl run publish --product {product}; or bring back an edition that is \
                 superseded, by a version N in which it was live (jobctl inventory log --product {product}): jobctl run \
                 correct --to N --product {product} --reason …"
            ),
            Self::NothingToRollBackTo { product, .. } => format!(
                "take the live edition back without a replacement: jobctl run withdraw --product {product} --live \
                 --reason …"
            ),
            Self::RollbackSchema { product, .. } | Self::RollbackIncomplete { product, .. } => format!(
                "name one superseded edition for each live schema version, or none: jobctl run rollback --product \
                 {product} --reason …"
            ),
            Self::NotSameBase { product, edition, .. } => {
                format!("cancel it instead: jobctl run withdraw --product {product} --edition {edition} --reason …")
            }
            Self::NotVerified { product, edition, .. } => {
                format!("restore products/{product}/{edition} and its data files from a backup, then reinstate again")
            }
            Self::WindowCloses { product, .. } | Self::Expunged { product, .. } => {
                format!("publish the product again: jobctl run publish --product {product}")
            }
            Self::InsideWindow { product, edition, .. } => format!(
                "wait for it, or waive the window: jobctl run retire --product {product} --edition {edition} \
                 --before-window --reason …"
            ),
            Self::Cited { by, .. } => {
                format!("publish {by} again from the structures of now, then retire: jobctl run publish --product {by}")
            }
            Self::NoNewerSchema { product, .. } => {
                format!("publish it at the newer schema first: jobctl run publish --product {product}")
            }
            Self::NothingAtSchema { .. } => "see which schemas are live: jobctl inventory products".to_owned(),
            Self::FinalWhilePending { product, .. } => format!(
                "release it first (jobctl run release --product {product}), or cancel it (jobctl run withdraw \
                 --product {product} --edition … --reason …)"
            ),
            Self::PendingTooOld { product, edition, .. } => format!(
                "remove the registration: jobctl run drop-pending --product {product} --edition {edition}; then \
                 publish again: jobctl run publish --product {product}"
            ),
            Self::RegistrationDiffers { product, edition, .. } => format!(
                "remove the registration: jobctl run drop-pending --product {product} --edition {edition}; then upload \
                 again"
            ),
        }
    }
}

/// What becomes of an edition that is in `found`, and how one gets elsewhere.
fn wrong_state(product: &ProductId, edition: &EditionId, found: EntryState) -> String {
    match found {
        EntryState::Embargoed => format!(
            "it waits: it can be released (jobctl run release --product {product}) or cancelled (jobctl run withdraw \
             --product {product} --edition {edition} --reason …)"
        ),
        EntryState::Live => format!(
            "it is live already; should it be wrong: jobctl run rollback --product {product} --reason …, or jobctl run \
             withdraw --product {product} --live --reason …"
        ),
        EntryState::Superseded => format!(
            "nobody is shown it; it can be made live again (jobctl run rollback --product {product} --to {edition} \
             --reason …) or be retired (jobctl run retire --product {product} --edition {edition})"
        ),
        EntryState::Withdrawn => format!(
            "a withdrawn edition is never routed again by itself: retire it (jobctl run retire --product {product} \
             --edition {edition} --before-window --reason …) and then reinstate it, or publish again"
        ),
    }
}

impl From<(&Tombstone, &'static str)> for TransitionRefusal {
    fn from((tombstone, expected): (&Tombstone, &'static str)) -> Self {
        Self::Retired {
            product: tombstone.product_id.clone(),
            edition: tombstone.edition_id.clone(),
            retired_at: tombstone.retired_at,
            expected,
        }
    }
}
