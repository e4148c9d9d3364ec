//! Reading and writing the Inventory of a catalog (*catalog* §6.6): what [`catalog_rules::inventory`] decides, carried
//! out on a [`Store`](crate::store::Store).

mod cache;
pub mod conformance;
mod error;
mod head;
mod init;
mod leaves;
mod reader;
mod recover;
pub mod testing;
#[cfg(test)]
pub(crate) mod tests;
mod verify;
mod writer;

pub use cache::{Brought, LeafCache, Reflected};
pub use error::{InventoryError, LeafFault};
pub use head::{Alert, Head, RootFault};
pub use init::{Init, Initialised, init_catalog, open_catalog};
pub use reader::{Fetch, FullInventory, LiveEdition, LiveInventory, fetch_from};
pub use recover::{HeadRepair, RebuildInventory, RebuiltInventory, RepairedHead, rebuild_inventory, repair_head};
pub use verify::{Finding, Verified, verify};
pub use writer::{Committed, FolderFiles, ListedFiles, StoreFiles, Writer, advance_current};

/// The crash points of this module, in the order in which a version reaches them.
pub const CRASH_POINTS: &[&str] =
    &["inventory.before_leaves", "inventory.after_leaves", "inventory.after_root", "inventory.after_current"];

/// The crash points of the creation of a catalog, in order.
pub const INIT_CRASH_POINTS: &[&str] = &["inventory.after_catalog_json", "inventory.after_first_root"];

/// The crash points of the recoveries, in order: of a damaged head, then of a lost Inventory.
pub const RECOVERY_CRASH_POINTS: &[&str] = &[
    "inventory.repair.after_copy",
    "inventory.repair.after_delete",
    "inventory.rebuild.after_epoch",
    "inventory.rebuild.after_root",
];
