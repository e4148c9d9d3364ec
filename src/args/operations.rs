//! The operations on the Inventory, each a run (*catalog* §6.4).

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::OnOff;

/// What every operation takes.
#[derive(Debug, Clone, Default, Args)]
pub struct How {
    /// Why, for the Inventory's record; who takes something back is asked for it
    #[arg(long)]
    pub reason: Option<String>,
    /// Leave the run to jobctl serve instead of staying with it
    #[arg(long)]
    pub detach: bool,
    /// Say what would change, or which rule refuses it, and change nothing: not even a run is recorded
    #[arg(long, conflicts_with = "detach")]
    pub dry_run: bool,
}

const RELEASE: &str = "\
Without --product, every embargoed edition whose time has come by the store's clock is released as far as the rules let it: \
what a rule refuses stays embargoed, and is told with the rule, the editions and the ways out, here and by jobctl inventory \
show. The exit code is 3 only where nothing at all was released and something was refused.

With --product, every embargoed edition of the products is released whatever its time, all in one version or none.";

#[derive(Debug, Clone, Args)]
#[command(after_help = RELEASE)]
pub struct Release {
    /// A product whose embargoed editions are released now; again for further ones, which go into the same version
    #[arg(long)]
    pub product: Vec<String>,
    /// Of the one product, this edition only; again for further ones
    #[arg(long, requires = "product")]
    pub edition: Vec<String>,
    /// With --dry-run: what would be released at that time: 2026-12-04T08:30 in the catalog's time zone, 08:30 (today there),
    /// or an instant with its offset
    #[arg(long, value_name = "TIME", requires = "dry_run", conflicts_with = "product")]
    pub as_of: Option<String>,
    #[command(flatten)]
    pub how: How,
}

const ROLLBACK: &str = "\
The live edition becomes withdrawn, and the superseded edition that it was built on becomes live again, in a new version. An \
edition that is built on the withdrawn one, embargoed or on its way, is refused from then on: the rollback names each with \
what to do. What is live is recorded first: if somebody else changes it meanwhile, the rollback is refused instead of going \
back further.";

#[derive(Debug, Clone, Args)]
#[command(after_help = ROLLBACK)]
pub struct Rollback {
    /// The product; again for further ones, which go back in the same version
    #[arg(long, required = true)]
    pub product: Vec<String>,
    /// The superseded edition that becomes live, instead of the one that the live edition was built on; again for another
    /// product or store schema
    #[arg(long, value_name = "EDITION")]
    pub to: Vec<String>,
    /// Go on only if this edition is what is live; again for another product or store schema
    #[arg(long, value_name = "EDITION")]
    pub if_live: Vec<String>,
    #[command(flatten)]
    pub how: How,
}

#[derive(Debug, Clone, Args)]
pub struct Withdraw {
    /// The product
    #[arg(long)]
    pub product: String,
    #[command(flatten)]
    pub what: WithdrawWhat,
    /// With --live: go on only if this edition is what is live; again for another store schema
    #[arg(long, value_name = "EDITION", requires = "live")]
    pub if_live: Vec<String>,
    #[command(flatten)]
    pub how: How,
}

/// What is withdrawn.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub struct WithdrawWhat {
    /// The embargoed edition that is cancelled
    #[arg(long)]
    pub edition: Option<String>,
    /// Take back all that is live, without a replacement: readers no longer find the product
    #[arg(long)]
    pub live: bool,
}

#[derive(Debug, Clone, Args)]
pub struct Supersede {
    /// The product
    #[arg(long)]
    pub product: String,
    /// The embargoed edition that is cancelled
    #[arg(long)]
    pub edition: String,
    /// The embargoed edition that stays, built on the same live edition
    #[arg(long, value_name = "EDITION")]
    pub by: String,
    #[command(flatten)]
    pub how: How,
}

const REINSTATE: &str = "\
The edition becomes superseded: jobctl run rollback --product PRODUCT --to EDITION makes it live. Its manifest and every file \
that it lists are read and compared first, so this takes as long as reading them. It must be retired: a withdrawn edition is \
retired first (jobctl run retire --product PRODUCT --edition EDITION --before-window). It is refused from one day before the \
data/ GC window ends.";

#[derive(Debug, Clone, Args)]
#[command(after_help = REINSTATE)]
pub struct Reinstate {
    /// The product
    #[arg(long)]
    pub product: String,
    /// The retired edition
    #[arg(long)]
    pub edition: String,
    #[command(flatten)]
    pub how: How,
}

const RETIRE: &str = "\
Without --edition, every superseded or withdrawn edition is retired whose window is over ([retention] retire_days) and that \
no live or embargoed edition cites; of each product and store schema one superseded edition stays, to be rolled back to.";

#[derive(Debug, Clone, Args)]
#[command(after_help = RETIRE)]
pub struct Retire {
    /// Only editions of this product; again for further ones
    #[arg(long)]
    pub product: Vec<String>,
    /// This edition of the one product; again for further ones
    #[arg(long, requires = "product")]
    pub edition: Vec<String>,
    /// Retire it although its window is not over
    #[arg(long, requires = "edition")]
    pub before_window: bool,
    #[command(flatten)]
    pub how: How,
}

#[derive(Debug, Clone, Args)]
pub struct Reschedule {
    /// The product
    #[arg(long)]
    pub product: String,
    /// The embargoed edition
    #[arg(long)]
    pub edition: String,
    #[command(flatten)]
    pub when: RescheduleWhen,
    #[command(flatten)]
    pub how: How,
}

/// The new time.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub struct RescheduleWhen {
    /// The new time: 2026-12-04T08:30 in the catalog's time zone ([catalog] time_zone, else this machine's), or an instant with
    /// its offset, such as 2026-12-04T08:30:00-05:00
    #[arg(long, value_name = "TIME")]
    pub release_at: Option<String>,
    /// No time: it waits until jobctl run release --product names it
    #[arg(long)]
    pub never: bool,
}

#[derive(Debug, Clone, Args)]
pub struct SupersedeSchema {
    /// The old store schema, such as 2.51, as jobctl inventory products shows it
    #[arg(long, value_name = "VERSION")]
    pub schema: String,
    /// Only this product; again for further ones: all of them or none. Without it, every product with a newer live schema
    #[arg(long)]
    pub product: Vec<String>,
    #[command(flatten)]
    pub how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LifecycleName {
    /// Each later edition carries the same content
    Final,
    /// Each edition may revise the one before it
    Revisable,
}

#[derive(Debug, Clone, Args)]
pub struct SetLifecycle {
    /// The product
    #[arg(long)]
    pub product: String,
    /// Its lifecycle from now on
    #[arg(long, value_enum)]
    pub lifecycle: LifecycleName,
    #[command(flatten)]
    pub how: How,
}

#[derive(Debug, Clone, Args)]
pub struct Embargo {
    /// On: what is published from now on waits for a release. Off: it is live at once; what waits already goes on waiting
    #[arg(value_enum)]
    pub embargo: OnOff,
    #[command(flatten)]
    pub how: How,
}

#[derive(Debug, Clone, Args)]
pub struct Describe {
    #[command(flatten)]
    pub what: DescribeWhat,
    /// The language of the title
    #[arg(long, default_value = "en", conflicts_with = "file")]
    pub language: String,
    #[command(flatten)]
    pub how: How,
}

/// What changes of the description.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub struct DescribeWhat {
    /// The catalog's title; everything else of the description stays
    #[arg(long)]
    pub title: Option<String>,
    /// A file with a JSON object that takes the place of the whole section extensions.statcat, as jobctl inventory log --json
    /// prints it
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

const CORRECT: &str = "\
The products get the states that they had in version N, in a new version. Nothing is dropped: what was withdrawn or retired \
since stays so, and a later edition stays, superseded. Without --product, every product and the description are corrected; one that was first published after N stays as it is. \
A version after N that cannot be read could have withdrawn something: it is named, and --confirm-unread takes it on.";

#[derive(Debug, Clone, Args)]
#[command(after_help = CORRECT)]
pub struct Correct {
    /// The known-good version
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub to: u64,
    /// Only this product; again for further ones
    #[arg(long)]
    pub product: Vec<String>,
    /// Versions after it that cannot be read
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    pub confirm_unread: Vec<u64>,
    #[command(flatten)]
    pub how: How,
}
