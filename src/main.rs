//! `jobctl`: the command line of the catalog's jobs. It parses, wires, calls and prints; everything else is elsewhere.

mod args;
mod cli;
mod config;
mod exit;
mod output;
mod signals;
mod start;
mod terminal;
mod wire;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command};
use crate::exit::Exit;
use crate::output::Output;

fn main() -> ExitCode {
    #[cfg(feature = "crash-points")]
    crash_points::install();
    // Not a command: how this program watches over the programs that it runs.
    if std::env::args_os().nth(1).is_some_and(|word| word == activities::process::SUPERVISE) {
        return match activities::process::supervise(&engine::SystemClock::new()) {
            Ok(()) => Exit::Done.into(),
            Err(error) => {
                Output::new(false).ended(&exit::Ended::usage(error.to_string()));
                Exit::Usage.into()
            }
        };
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            if !error.use_stderr() {
                let _ = error.print();
                return Exit::Done.into();
            }
            // The command line could not be read, so neither could --json: it is looked for among the words.
            let json = std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json");
            if json {
                Output::new(true).ended(&exit::Ended::from(error));
            } else {
                let _ = error.print();
            }
            return Exit::Usage.into();
        }
    };
    let out = Output::new(cli.global.json);
    init_tracing(out);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            out.ended(&exit::Ended::usage(format!("the asynchronous runtime did not start: {error}")));
            return Exit::Failed.into();
        }
    };
    // A step that outlasts the daemon's grace is left to the next owner: its thread is not waited for.
    let leaves_steps = matches!(cli.command, Command::Serve(_));
    let exit = match runtime.block_on(cli::run(cli, out)) {
        Ok(exit) => exit,
        Err(ended) => {
            out.ended(&ended);
            ended.exit
        }
    };
    if leaves_steps {
        runtime.shutdown_background();
    }
    if let Some(fault) = Output::failure() {
        out.ended(&exit::Ended::usage(format!("the output could not be written: {fault}")));
        if exit == Exit::Done {
            return Exit::Failed.into();
        }
    }
    exit.into()
}

fn init_tracing(out: Output) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("JOBCTL_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(out.has_error_colour())
        .init();
}

/// The crash tests' hook: `JOBCTL_CRASH_AT=point[:n]` ends the process at the n-th passage of a point, and
/// `JOBCTL_CRASH_TRACE=file` writes down each passage.
#[cfg(feature = "crash-points")]
mod crash_points {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{LazyLock, Mutex};

    static AT: LazyLock<Option<(String, usize)>> = LazyLock::new(|| {
        let text = std::env::var("JOBCTL_CRASH_AT").ok()?;
        match text.rsplit_once(':') {
            Some((name, n)) => Some((name.to_owned(), n.parse().ok()?)),
            None => Some((text, 1)),
        }
    });
    static TRACE: LazyLock<Option<Mutex<std::fs::File>>> = LazyLock::new(|| {
        let path = std::env::var_os("JOBCTL_CRASH_TRACE")?;
        std::fs::OpenOptions::new().create(true).append(true).open(path).ok().map(Mutex::new)
    });
    static PASSED: AtomicUsize = AtomicUsize::new(0);

    pub fn install() {
        engine_rules::crash::install(|name| {
            if let Some(Ok(mut file)) = TRACE.as_ref().map(Mutex::lock) {
                let _ = writeln!(file, "{name}");
            }
            if let Some((at, n)) = AT.as_ref()
                && at == name
                && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *n
            {
                std::process::abort();
            }
        });
    }
}
