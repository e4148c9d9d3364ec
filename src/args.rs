//! The command line.

mod edition;
mod inventory;
mod operations;
mod overlay;
mod recovery;
mod run;
mod runs;
mod schedules;
mod sdmx;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use edition::{At, Edition, EditionRef, Tier};
pub use inventory::{Inventory, InventoryAt};
pub use operations::{How, LifecycleName};
pub use overlay::{Fold, Overlay, OverlayToken};
pub use recovery::Recovery;
pub use run::{Publish, Run, RunWords};
pub use runs::{Runs, RunsImport, RunsList, RunsPurge, RunsReplay};
pub use schedules::Schedules;
pub use sdmx::{Inspect, Sdmx};

/// Runs the publish, release and garbage-collection jobs of a sharded catalog, and never loses its place.
#[derive(Debug, Parser)]
#[command(name = "jobctl", version, max_term_width = 110, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 the run failed, 2 usage, 3 refused by a rule of the catalog, 4 busy \
(key or lock held), 5 blocked: a person must decide, 6 findings.";

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// The configuration file; jobctl.toml in the working folder if there is one
    #[arg(long, global = true, value_name = "FILE", env = "JOBCTL_CONFIG")]
    pub config: Option<PathBuf>,
    /// The catalog's folder, instead of the configured one
    #[arg(long, global = true, value_name = "URL")]
    pub catalog: Option<String>,
    /// The folder of the state database, instead of the configured one
    #[arg(long, global = true, value_name = "FOLDER")]
    pub state: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Create a catalog in an empty folder, and a commented jobctl.toml
    Init(Init),
    /// Start a run of a workflow and stay with it
    #[command(subcommand)]
    Run(Run),
    /// The runs: what they did, and what to do with those that stopped
    #[command(subcommand)]
    Runs(Runs),
    /// Carry out what waits in the queue and what dead processes left, until it is told to end (SIGINT or SIGTERM)
    Serve(Serve),
    /// The schedules of jobctl.toml: when they fire, and what became of their ticks
    #[command(subcommand)]
    Schedules(Schedules),
    /// Read the Inventory: which edition of each product is live, and how that came to be
    #[command(subcommand)]
    Inventory(Inventory),
    /// Hold the whole catalog against what is there: versions, leaves, manifests, files; exit code 6 when there are
    /// findings
    Verify(Verify),
    /// The editions on this disk
    #[command(subcommand)]
    Edition(Edition),
    /// SDMX messages: what a file holds, and what is wrong with it
    #[command(subcommand)]
    Sdmx(Sdmx),
    /// Overlays: whether they are valid, their digests, the effective token of a server that applies them
    #[command(subcommand)]
    Overlay(Overlay),
    /// Print the completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
}

#[derive(Debug, Args)]
pub struct Init {
    /// Whether editions are recorded under embargo instead of going live at once
    #[arg(long, value_enum, default_value = "off")]
    pub embargo: OnOff,
    /// The catalog's title
    #[arg(long)]
    pub title: Option<String>,
    /// Why, for the Inventory's record
    #[arg(long)]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnOff {
    On,
    Off,
}

#[derive(Debug, Args)]
pub struct Serve {
    /// How many runs are at work at once at most; those that wait do not count
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub in_flight: u32,
    /// How long steps at work may take to end once it is told to end
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=86_400))]
    pub grace: u32,
    /// Print a JSON object for each thing that happens, one a line, instead of text
    #[arg(long, conflicts_with = "json")]
    pub jsonl: bool,
}

#[derive(Debug, Args)]
pub struct Verify {
    /// Read every listed file and compare its SHA-256, instead of its size alone
    #[arg(long)]
    pub full: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Cli::command().debug_assert();
    }
}
