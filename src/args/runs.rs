//! `jobctl runs …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

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
