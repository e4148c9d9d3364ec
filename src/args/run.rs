//! `jobctl run …`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::operations::{
    Correct, Describe, Embargo, Reinstate, Release, Reschedule, Retire, Rollback, SetLifecycle, Supersede,
    SupersedeSchema, Withdraw,
};
use super::overlay::Fold;
use super::recovery::Recovery;

#[derive(Debug, Subcommand)]
pub enum Run {
    /// Build, seal, check and record an edition of a product
    Publish(Publish),
    /// Apply overlays to the live edition for good: a new edition over the same data files
    Fold(Fold),
    /// Make embargoed editions live: those whose time has come, or those of the products that are named
    Release(Release),
    /// Take back what is live of a product and make the edition before it live again
    Rollback(Rollback),
    /// Cancel an embargoed edition, or take back all that is live of a product without a replacement
    Withdraw(Withdraw),
    /// Cancel an embargoed edition in favour of another one that waits beside it
    Supersede(Supersede),
    /// Bring a retired edition back, as one that may be rolled back to
    Reinstate(Reinstate),
    /// Retire superseded and withdrawn editions: they become tombstones, and their files may be collected
    Retire(Retire),
    /// Set or clear the time at which an embargoed edition is released
    Reschedule(Reschedule),
    /// End an old store schema: its live editions become superseded where a newer schema is live
    SupersedeSchema(SupersedeSchema),
    /// Make a product final, or revisable again
    SetLifecycle(SetLifecycle),
    /// Turn the catalog's embargo on or off: whether what is published waits for a release
    Embargo(Embargo),
    /// Change the catalog's description
    Describe(Describe),
    /// Build a version from an older, known-good one; what was withdrawn or retired since stays so
    Correct(Correct),
    #[command(flatten)]
    Recovery(Recovery),
}

/// The words after `jobctl run`, as a schedule has them.
#[derive(Debug, Parser)]
#[command(name = "jobctl run", no_binary_name = true, disable_help_flag = true, disable_help_subcommand = true)]
pub struct RunWords {
    #[command(subcommand)]
    pub run: Run,
}

#[derive(Debug, Args)]
pub struct Publish {
    /// The product, such as 14100287
    #[arg(long)]
    pub product: String,
    /// A full-table zip, a CSV or a folder with both CSVs, instead of the configured source; give it once a language
    #[arg(long, value_name = "PATH")]
    pub source: Vec<PathBuf>,
    /// The metadata CSV, where it stands elsewhere than beside the data
    #[arg(long, value_name = "PATH", requires = "source")]
    pub metadata: Vec<PathBuf>,
    /// The product is final: a later edition must carry the same content
    #[arg(long = "final")]
    pub is_final: bool,
    /// When it may be released, in a catalog with its embargo on: 2026-12-04T08:30 in the catalog's time zone, or an instant
    /// with its offset; without it, never by itself
    #[arg(long, value_name = "TIME")]
    pub release_at: Option<String>,
    /// Why, for the Inventory's record
    #[arg(long)]
    pub reason: Option<String>,
    /// Wait for a run of the same product to end instead of exiting with 4
    #[arg(long)]
    pub wait: bool,
    /// Leave the run to jobctl serve instead of staying with it; with --wait also behind a run of the same product
    #[arg(long)]
    pub detach: bool,
}
