//! What reading and writing the Inventory can fail with.

use catalog_rules::ids::{CatalogId, ProductId, Sha256Hex};
use catalog_rules::inventory::{DocumentError, Refusal, Seq};
use catalog_rules::layout;
use engine_rules::failure::{ActivityError, Disposition};

use super::head::RootFault;
use crate::hint::quoted;
use crate::lock::LockError;
use crate::store::StoreError;

/// Why the Inventory was not read or not changed. After an error of [`Writer::commit`](super::Writer::commit) nothing
/// was changed that a reader sees, unless [`InventoryError::Store`] says that a write may still land.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// A rule of the catalog.
    #[error(transparent)]
    Refused(#[from] Box<Refusal>),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The catalog's lock.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A folder of an older layout.
    #[error("catalog §4.1: {place} holds {found}, so it is a catalog of manifest format 2.x; this program reads 3.x")]
    OtherLayout {
        /// The place.
        place: String,
        /// The file that gives it away.
        found: String,
    },
    /// A folder without `catalog.json`.
    #[error("catalog §4.1: {place} is not a catalog: it has no catalog.json{}", also(.found))]
    NotACatalog {
        /// The place.
        place: String,
        /// Something else that it holds.
        found: Option<String>,
    },
    /// A folder that is not empty.
    #[error("catalog §4.1: a catalog is created in an empty folder, and {place} holds {found}")]
    NotEmpty {
        /// The place.
        place: String,
        /// Something that it holds.
        found: String,
    },
    /// A catalog is there already.
    #[error("catalog §6.1: {place} is a catalog already: {catalog_id}, at version {seq}")]
    Exists {
        /// The place.
        place: String,
        /// Its name.
        catalog_id: CatalogId,
        /// Its newest version.
        seq: Seq,
    },
    /// `catalog.json` or `HISTORY` cannot be read.
    #[error("{path}: {source}")]
    Document {
        /// The path within the catalog.
        path: String,
        /// What is wrong.
        source: DocumentError,
    },
    /// A catalog that expires without its `HISTORY`.
    #[error(
        "catalog §6.1: catalog.json is of format 2.x, and inventory/HISTORY is missing, so no version can be trusted"
    )]
    NoHistory,
    /// No version of the Inventory.
    #[error(
        "catalog §6.6: no valid version of the Inventory was found above version {above} in restore epoch \
         {restore_epoch}"
    )]
    NoVersion {
        /// Where the search began.
        above: u64,
        /// The catalog's epoch.
        restore_epoch: u64,
    },
    /// The newest root is damaged, so nothing can be built on it (D16).
    #[error(
        "catalog §6.6: version {seq} at the head of the Inventory is not valid ({fault}), so no version can follow it"
    )]
    HeadInvalid {
        /// The version.
        seq: Seq,
        /// What is wrong with it.
        fault: RootFault,
    },
    /// An older root is damaged.
    #[error("catalog §6.2: version {seq} of the Inventory is not valid: {fault}")]
    VersionInvalid {
        /// The version.
        seq: Seq,
        /// What is wrong with it.
        fault: RootFault,
    },
    /// A leaf that the root names is missing or damaged.
    #[error("catalog §6.3: the leaf of product {product}, {path}, {fault}")]
    Leaf {
        /// The product.
        product: ProductId,
        /// Its path.
        path: String,
        /// What is wrong with it.
        fault: LeafFault,
    },
    /// Other writers were always faster.
    #[error("catalog §6.6: {races} other versions were written while this one was tried, the last of them {seq}")]
    Contended {
        /// How many races were lost.
        races: u32,
        /// The newest version.
        seq: Seq,
    },
}

fn also(found: &Option<String>) -> String {
    found.as_ref().map_or_else(String::new, |found| format!(" and holds {found}"))
}

/// What is wrong with a leaf.
#[derive(Debug, thiserror::Error)]
pub enum LeafFault {
    /// It is not there.
    #[error("is missing")]
    Missing,
    /// Its bytes are others.
    #[error("has SHA-256 {found}")]
    Hash {
        /// Their SHA-256.
        found: Sha256Hex,
    },
    /// Its bytes are no leaf.
    #[error("cannot be read: {0}")]
    Document(DocumentError),
    /// It is another product's.
    #[error("is of product {found}")]
    Product {
        /// The product.
        found: ProductId,
    },
}

impl ActivityError for InventoryError {
    fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::Store(error) => error.code(),
            Self::Lock(error) => error.code(),
            Self::OtherLayout { .. } => "catalog.other_layout",
            Self::NotACatalog { .. } => "catalog.not_a_catalog",
            Self::NotEmpty { .. } => "catalog.not_empty",
            Self::Exists { .. } => "catalog.exists",
            Self::Document { .. } => "catalog.document",
            Self::NoHistory => "catalog.no_history",
            Self::NoVersion { .. } => "catalog.no_version",
            Self::HeadInvalid { .. } => "catalog.head_invalid",
            Self::VersionInvalid { .. } => "catalog.version_invalid",
            Self::Leaf { .. } => "catalog.leaf",
            Self::Contended { .. } => "catalog.contended",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Refused(refusal) => match refusal.as_ref() {
                Refusal::ClockBehind { .. }
                | Refusal::ClockAhead { .. }
                | Refusal::HistoryMissing
                | Refusal::UnfinishedRestore { .. }
                | Refusal::RecordsUnread { .. } => Disposition::Operator,
                Refusal::BaseExpired { .. } => Disposition::Retry,
                Refusal::CatalogExpires { .. }
                | Refusal::NotFastForward { .. }
                | Refusal::SchemaBehind { .. }
                | Refusal::ManifestMissing { .. }
                | Refusal::ManifestDiffers { .. }
                | Refusal::CanonicalForm { .. }
                | Refusal::FinalChanged { .. }
                | Refusal::FinalReopened { .. }
                | Refusal::KindDiffers { .. }
                | Refusal::ChainBroken { .. }
                | Refusal::RecordedAndRetired { .. }
                | Refusal::ReleaseAtWithoutEmbargo { .. }
                | Refusal::NotAsAtHome { .. }
                | Refusal::PartialWithoutHome { .. }
                | Refusal::PartialWithoutBase { .. }
                | Refusal::SharedArtefactDiffers { .. }
                | Refusal::TwoHomes { .. }
                | Refusal::PublishOrder { .. }
                | Refusal::ManifestUnreadable { .. }
                | Refusal::Transition(_)
                | Refusal::Recovery(_)
                | Refusal::Invalid(_)
                | Refusal::MissingLeaf(_) => Disposition::Terminal,
            },
            Self::Store(error) => error.disposition(),
            Self::Lock(error) => error.disposition(),
            Self::OtherLayout { .. } | Self::NotACatalog { .. } | Self::NotEmpty { .. } | Self::Exists { .. } => {
                Disposition::Terminal
            }
            Self::Document { .. }
            | Self::NoHistory
            | Self::NoVersion { .. }
            | Self::HeadInvalid { .. }
            | Self::VersionInvalid { .. }
            | Self::Leaf { .. } => Disposition::Operator,
            Self::Contended { .. } => Disposition::Retry,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Refused(refusal) => refusal.fix(),
            Self::Store(error) => return error.hint(),
            Self::Lock(error) => return error.hint(),
            Self::OtherLayout { .. } => "create a new catalog elsewhere and publish the products again".to_owned(),
            Self::NotACatalog { place, found } => match found {
                None => format!("create one there: jobctl init --catalog {}", quoted(place)),
                Some(_) => "name the folder of a catalog with --catalog, or an empty one to jobctl init".to_owned(),
            },
            Self::NotEmpty { .. } => "name an empty folder, or one that is not there yet".to_owned(),
            Self::Exists { place, .. } => {
                format!("nothing is to be done; look at it: jobctl inventory show --catalog {}", quoted(place))
            }
            Self::Document { path, .. } => format!("restore {path} from a backup"),
            Self::NoHistory => "restore inventory/HISTORY from a backup (catalog §10.3)".to_owned(),
            Self::NoVersion { .. } => {
                "if the catalog is new, run jobctl init again to finish it; else restore inventory/ from a backup"
                    .to_owned()
            }
            Self::HeadInvalid { seq, fault } => fault.fix(*seq),
            Self::VersionInvalid { seq, .. } => format!("restore {} from a backup (catalog §10.3)", layout::root(*seq)),
            Self::Leaf { path, .. } => format!("restore {path} from a backup (catalog §10.3)"),
            Self::Contended { .. } => return None,
        })
    }
}
