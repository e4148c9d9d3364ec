//! `jobctl schedules …`.

use clap::Subcommand;

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
