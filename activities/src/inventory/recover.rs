//! Recoveries carried out: a damaged head (D16), and an Inventory that is gone (*catalog* §6.7).

mod head;
mod rebuild;
#[cfg(test)]
mod tests;

pub use head::{HeadRepair, RepairedHead, repair_head};
pub use rebuild::{RebuildInventory, RebuiltInventory, rebuild_inventory};
