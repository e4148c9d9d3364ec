//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    /// Read the Inventory: which edition of each product is live, and how that came to be
    #[command(subcommand)]
    Inventory(Inventory),
    /// The editions on this disk
    #[command(subcommand)]
    Edition(Edition),
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

#[derive(Debug, Subcommand)]
pub enum Run {
    /// Build, seal, check and record an edition of a product
    Publish(Publish),
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
    /// Why, for the Inventory's record
    #[arg(long)]
    pub reason: Option<String>,
    /// Wait for a run of the same product to end instead of exiting with 4
    #[arg(long)]
    pub wait: bool,
}

#[derive(Debug, Subcommand)]
pub enum Runs {
    /// List the runs, newest first
    List(RunsList),
    /// Show a run: each step with its time, result, attempts and failure; with --json, its input and output too
    Show {
        /// The run: its id, or a beginning or an end of it that no other run has
        run: String,
    },
    /// Go on with runs that were interrupted or are blocked
    Resume {
        /// The run; without it, every run whose process is gone
        run: Option<String>,
        /// Why, for the audit
        #[arg(long)]
        reason: Option<String>,
    },
    /// End a run that has not ended; what it has not recorded by then is never recorded
    Cancel {
        /// The run
        run: String,
        /// Why, for the audit
        #[arg(long)]
        reason: String,
    },
    /// Begin anew at a step of a run that ended, with the results before it carried over
    Replay(RunsReplay),
    /// Say whether this program would go on with runs as they are recorded; exit code 5 where it would not
    Rehearse {
        /// A run, or the file of an exported one
        #[arg(required = true, value_name = "RUN|FILE")]
        histories: Vec<String>,
    },
}

#[derive(Debug, Args)]
#[command(after_help = REPLAY)]
pub struct RunsReplay {
    /// The run: its id, or a beginning or an end of it that no other run has
    pub run: String,
    /// The step to begin at: its name, or its place in the run
    #[arg(long, value_name = "STEP")]
    pub from: String,
    /// Another input, such as source=PATH; again for further ones
    #[arg(long = "set", value_name = "INPUT=VALUE")]
    pub set: Vec<String>,
    /// Why, for the audit
    #[arg(long, required_unless_present = "dry_run")]
    pub reason: Option<String>,
    /// Leave it in the queue instead of staying with it
    #[arg(long, conflicts_with = "dry_run")]
    pub detach: bool,
    /// Say what would be carried over and what carried out, and do neither
    #[arg(long)]
    pub dry_run: bool,
}

const REPLAY: &str = "The replay is a new run, under this program's newest definition of the workflow. What the run \
recorded before STEP is carried over; from the first step on that is asked for with another input, all is carried out \
anew. A publish that is replayed from its seal or an earlier step mints a new edition id.\n\n\
--set source=PATH is what --source is to run publish, once a language; metadata=PATH likewise. Else NAME=VALUE sets a \
field that the input has, as runs show --json prints it: dots lead into it, and a VALUE that is JSON is read as such.";

#[derive(Debug, Args)]
pub struct RunsList {
    /// Only runs that failed
    #[arg(long, conflicts_with = "state_is")]
    pub failed: bool,
    /// Only runs in this state, such as running or blocked
    #[arg(long = "in", value_name = "STATE")]
    pub state_is: Option<String>,
    /// Only runs of this product
    #[arg(long)]
    pub product: Option<String>,
    /// How many at the most
    #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}

#[derive(Debug, Subcommand)]
pub enum Inventory {
    /// The newest version: each product with its live edition
    Show,
    /// The versions, newest first: when, who, why and what changed
    Log {
        /// How many at the most
        #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
    },
}

#[derive(Debug, Subcommand)]
pub enum Edition {
    /// List the editions of a product, or of every product
    List {
        /// Only this product
        #[arg(long)]
        product: Option<String>,
    },
    /// Show an edition's manifest in short
    Show(EditionRef),
    /// Check an edition; exit code 6 when there are findings
    Check {
        #[command(flatten)]
        edition: EditionRef,
        /// Which checks: where it is sealed, where a copy lands, or each time it is opened
        #[arg(long, value_enum, default_value = "publish")]
        at: At,
        /// Leave out the recomputation of fingerprints at publish
        #[arg(long)]
        no_fingerprints: bool,
        /// Another edition of the product whose content this one must equal
        #[arg(long, value_name = "EDITION")]
        expect: Option<String>,
    },
    /// List the files that a copy of the edition needs, one path a line under the product's folder
    Files {
        #[command(flatten)]
        edition: EditionRef,
        /// Only these tiers
        #[arg(long, value_delimiter = ',', value_enum)]
        tiers: Vec<Tier>,
        /// The manifest alone, for the second step of a copy
        #[arg(long, conflicts_with = "tiers")]
        manifest: bool,
    },
    /// Copy a sealed edition into another product folder, the manifest last
    Copy {
        #[command(flatten)]
        edition: EditionRef,
        /// The edition's new folder, named by its edition id; its data goes into data/ beside it
        destination: PathBuf,
        /// Only these tiers
        #[arg(long, value_delimiter = ',', value_enum)]
        tiers: Vec<Tier>,
    },
    /// Delete an unsealed edition; its data files are left to garbage collection
    Discard {
        #[command(flatten)]
        edition: EditionRef,
        /// Why
        #[arg(long)]
        reason: String,
    },
}

/// Names an edition: by product and id, or by its folder.
#[derive(Debug, Args)]
pub struct EditionRef {
    /// The edition's id (or a beginning or an end of it), or the path of its folder
    pub edition: String,
    /// The product, where the id alone does not tell
    #[arg(long)]
    pub product: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum At {
    Publish,
    Receive,
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tier {
    Required,
    Lazy,
    Remote,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Cli::command().debug_assert();
    }
}
