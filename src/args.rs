//! The command line.

mod overlay;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use overlay::{Fold, Overlay, OverlayToken};

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

#[derive(Debug, Subcommand)]
pub enum Run {
    /// Build, seal, check and record an edition of a product
    Publish(Publish),
    /// Apply overlays to the live edition for good: a new edition over the same data files
    Fold(Fold),
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
        /// Put a paused or blocked run into the queue for jobctl serve instead of staying with it
        #[arg(long, requires = "run")]
        detach: bool,
    },
    /// Follow a run of any process, and end with its exit code when it ends or stops for a person
    Watch {
        /// The run
        run: String,
        /// Print a JSON object for each thing that happens, one a line, instead of text
        #[arg(long, conflicts_with = "json")]
        jsonl: bool,
    },
    /// End a run that has not ended; what it has not recorded by then is never recorded
    Cancel {
        /// The run
        run: String,
        /// Why, for the audit; asked for at a terminal
        #[arg(long)]
        reason: Option<String>,
    },
    /// Begin anew at a step of a run that ended, with the results before it carried over
    Replay(RunsReplay),
    /// Say whether this program would go on with runs as they are recorded; exit code 5 where it would not
    Rehearse {
        /// A run, or the file of an exported one
        #[arg(required = true, value_name = "RUN|FILE")]
        histories: Vec<String>,
    },
    /// Hold a run: it stops before its next step, or at once where it waits, until runs resume
    Pause {
        /// The run
        run: String,
        /// Why, for the audit; asked for at a terminal
        #[arg(long)]
        reason: Option<String>,
    },
    /// Send a run what it waits for
    Signal {
        /// The run
        run: String,
        /// The signal's name, as runs show tells what the run waits for
        name: String,
        /// What goes with it, as JSON
        #[arg(long, value_name = "JSON")]
        payload: Option<String>,
        /// Why, for the audit; asked for at a terminal
        #[arg(long)]
        reason: Option<String>,
    },
    /// Write a run as one JSON document: all that show knows of it
    Export {
        /// The run
        run: String,
        /// The file to write, which must not be there yet; without it, standard output
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Read an exported run into this state, for show alone: it never goes on here
    Import(RunsImport),
    /// Delete finished runs that are old enough; a run stays while it, its parent, its children or a replay of it are not
    /// finished
    Purge(RunsPurge),
}

#[derive(Debug, Args)]
pub struct RunsImport {
    /// The file that jobctl runs export wrote, of at most 32 MiB
    pub file: PathBuf,
    /// Put it in the place of what was imported of the same run before
    #[arg(long)]
    pub replace: bool,
    /// Why, for the audit
    #[arg(long)]
    pub reason: String,
}

#[derive(Debug, Args)]
pub struct RunsPurge {
    /// Runs that ended longer ago than this, such as 90d, 12h or 6mo; without it, as [retention] in jobctl.toml says
    #[arg(long, value_name = "SPAN")]
    pub older_than: Option<String>,
    /// Also those that failed; without it, --older-than leaves them
    #[arg(long, requires = "older_than")]
    pub failed_too: bool,
    /// Count what would go, and delete nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Why, for the audit
    #[arg(long, required_unless_present = "dry_run")]
    pub reason: Option<String>,
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
    /// Why, for the audit; asked for at a terminal
    #[arg(long)]
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
    /// Only runs in this state: queued, running, waiting, interrupted, paused, blocked, succeeded, failed, cancelled
    #[arg(long = "in", value_name = "STATE")]
    pub state_is: Option<String>,
    /// Only runs of this product
    #[arg(long)]
    pub product: Option<String>,
    /// Only runs of this workflow
    #[arg(long, value_name = "NAME")]
    pub workflow: Option<String>,
    /// Only runs that this run started
    #[arg(long, value_name = "RUN")]
    pub parent: Option<String>,
    /// Only runs with this label; several must all be there
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    pub label: Vec<(String, String)>,
    /// Only runs begun since then: 2026-11-30T08:30:00-05:00, 2026-11-30, 08:30 (today, here) or 12h (back from now)
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// The runs that were imported, instead of this state's own
    #[arg(long)]
    pub imported: bool,
    /// How many at the most
    #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
}

/// A label as the command line has it.
fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("expected a name, '=' and a value, such as product=14100287".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
pub enum Schedules {
    /// List the schedules: when each fires next, whether it is paused, and its last tick
    List,
    /// Show the next firings, of one schedule or of all together
    Next {
        /// The schedule
        name: Option<String>,
        /// How many
        #[arg(short = 'n', long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// Show when a cron expression would fire, without a schedule
    #[command(after_help = CRON)]
    Preview {
        /// The expression, in quotes: minute, hour, day of the month, month, day of the week
        cron: String,
        /// The IANA name of the time zone, such as America/Toronto
        #[arg(long, value_name = "ZONE")]
        time_zone: String,
        /// Firings from this time on: a local time of the zone, or an instant that ends in Z; without it, from now
        #[arg(long, value_name = "TIME")]
        from: Option<String>,
        /// How many
        #[arg(short = 'n', long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// Skip the schedule's ticks until it is resumed
    Pause {
        /// The schedule
        name: String,
        /// Why, for the audit and for each tick that is skipped; asked for at a terminal
        #[arg(long)]
        reason: Option<String>,
    },
    /// Let a paused schedule fire again; what was due meanwhile stays skipped
    Resume {
        /// The schedule
        name: String,
        /// Why, for the audit; asked for at a terminal
        #[arg(long)]
        reason: Option<String>,
    },
    /// Start the schedule's run now, whatever its expression says, and stay with it
    Trigger {
        /// The schedule
        name: String,
        /// Why, for the audit; asked for at a terminal
        #[arg(long)]
        reason: Option<String>,
        /// Leave the run in the queue, to jobctl serve
        #[arg(long)]
        detach: bool,
    },
    /// List what became of the ticks, newest first: which started a run, and why the others did not
    Ticks {
        /// Only of this schedule
        name: Option<String>,
        /// Only those that started no run
        #[arg(long)]
        skipped: bool,
        /// How many at the most
        #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
    },
}

const CRON: &str = "Each field holds a value, a list a,b, a range a-b, a step */n or a-b/n, or *; days of the week are \
names, SUN to SAT. @hourly, @daily, @weekly, @monthly and @yearly stand for five fields. Where hour and minute are \
numbers or lists of them, each local time fires once: one that the clock jumps over, at the first instant after the jump; \
one that comes twice, at the first. With a wildcard, step or range in hour or minute, time that passes is followed, and both \
fire.";

#[derive(Debug, Subcommand)]
pub enum Inventory {
    /// The newest version: who wrote it and why, each product with its live edition, and what waits for a release
    Show,
    /// The versions, newest first: when, who, why and what changed
    Log {
        /// Only versions that changed this product
        #[arg(long)]
        product: Option<String>,
        /// How many at the most
        #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
    },
    /// What differs between two versions, near or far; without either, what the newest version changed
    Diff {
        /// The one version; the version before the newest, if it is left out
        #[arg(value_parser = clap::value_parser!(u64).range(1..))]
        from: Option<u64>,
        /// The other version; the newest, if it is left out
        #[arg(value_parser = clap::value_parser!(u64).range(1..))]
        to: Option<u64>,
    },
    /// Every product: what is live, what waits for a release until when, and what was refused why
    Products(InventoryAt),
    /// One product: each of its editions with its state, since when, and by which version, whom and why
    Product {
        /// The product, such as 14100287
        product: String,
        #[command(flatten)]
        at: InventoryAt,
    },
}

/// Which version of the Inventory is read.
#[derive(Debug, Args)]
pub struct InventoryAt {
    /// The version that was the newest then: 2026-11-30T08:30:00-05:00, 2026-11-30, 08:30 (today, here) or 12h (back from
    /// now)
    #[arg(long, value_name = "TIME", conflicts_with = "seq")]
    pub at: Option<String>,
    /// The version with this number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub seq: Option<u64>,
}

#[derive(Debug, Args)]
pub struct Verify {
    /// Read every listed file and compare its SHA-256, instead of its size alone
    #[arg(long)]
    pub full: bool,
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
