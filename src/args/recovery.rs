//! The recoveries of the Inventory, each a run that a person starts (D16; *catalog* §6.7).

use clap::{Args, Subcommand};

use super::OnOff;

#[derive(Debug, Subcommand)]
pub enum Recovery {
    /// Delete a damaged version at the head of the Inventory, once a copy is kept, so that others can follow again
    RepairHead(RepairHead),
    /// Build an Inventory that is gone from the editions of a catalog that was never rolled back
    RebuildInventory(RebuildInventory),
}

const REPAIR_HEAD: &str = "\
Restore the version from a backup wherever there is one. Only a version that fails validation, or does not follow the one \
before it, and that stands after the last valid one is deleted, and only while its bytes are those that were judged. One that \
CURRENT names was committed: what it did, such as a withdrawal, is undone with it, so it is deleted only with \
--confirm-committed. The copy is kept in the state directory, under repaired/.";

#[derive(Debug, Args)]
#[command(after_help = REPAIR_HEAD)]
pub struct RepairHead {
    /// The damaged version, as the refusal of a writer or jobctl verify names it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seq: u64,
    /// Your word that the version was committed, that no backup has it, and that what it did may be undone
    #[arg(long)]
    pub confirm_committed: bool,
    #[command(flatten)]
    pub how: RecoveryHow,
}

const REBUILD_INVENTORY: &str = "\
Restore inventory/ from a backup wherever there is one: manifests do not tell what was rolled back, withdrawn or retired, \
when an edition was released, or who did what. Of each product the last edition becomes live and the others superseded; with \
--embargo on, the last one waits for a release by name and the one before it is live. The restore epoch rises, so that \
readers let go of the lost versions.";

#[derive(Debug, Args)]
#[command(after_help = REBUILD_INVENTORY)]
pub struct RebuildInventory {
    /// Your word that versions 1 to N are lost and that none of them took anything back; 0 where their number is not known
    #[arg(long, value_name = "N")]
    pub lost_through: Option<u64>,
    /// Whether what is published from now on waits for a release
    #[arg(long, value_enum)]
    pub embargo: OnOff,
    #[command(flatten)]
    pub how: RecoveryHow,
}

/// What every recovery takes.
#[derive(Debug, Clone, Args)]
pub struct RecoveryHow {
    /// Why, for the record
    #[arg(long)]
    pub reason: Option<String>,
    /// Say what would be done, or which rule refuses it, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}
