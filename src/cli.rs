//! The commands, one file each.

mod cancelled;
mod detach;
mod edition;
mod fold;
mod init;
mod inventory;
mod operation;
mod overlay;
mod publish;
mod reason;
pub mod recovery;
mod runs;
mod schedules;
mod sdmx;
mod serve;
mod verify;
pub mod when;

use clap::CommandFactory as _;
pub use publish::with_run;
use serde_json::json;

use crate::args::{Cli, Command, Run};
use crate::config::{Config, Overrides};
use crate::exit::{Ended, Exit};
use crate::output::Output;
use crate::wire::World;

/// Carries out the command.
///
/// # Errors
/// [`Ended`] with what to say and the exit code.
pub async fn run(cli: Cli, out: Output) -> Result<Exit, Ended> {
    let global = cli.global;
    let world = || -> Result<World, Ended> {
        let overrides =
            Overrides { config: global.config.clone(), catalog: global.catalog.clone(), state: global.state.clone() };
        let folder = std::env::current_dir()
            .map_err(|error| Ended::usage(format!("the working folder cannot be told: {error}")))?;
        Ok(World::new(Config::load(&overrides, &folder)?))
    };
    match cli.command {
        Command::Init(args) => init::init(&world()?, out, &args),
        Command::Run(Run::Publish(args)) => publish::publish(&world()?, out, args).await,
        Command::Run(Run::Fold(args)) => fold::fold(&world()?, out, args).await,
        Command::Run(Run::Recovery(args)) => recovery::recovery(&world()?, out, args).await,
        Command::Run(run) => operation::operation(&world()?, out, run).await,
        Command::Runs(args) => runs::runs(&world()?, out, args).await,
        Command::Serve(args) => serve::serve(&world()?, out, &args).await,
        Command::Schedules(args) => schedules::schedules(&world()?, out, args).await,
        Command::Inventory(args) => inventory::inventory(&world()?, out, &args),
        Command::Verify(args) => verify::verify(&world()?, out, &args),
        Command::Edition(args) => edition::edition(&world()?, out, args).await,
        Command::Sdmx(args) => sdmx::sdmx(out, &args),
        Command::Overlay(args) => overlay::overlay(world, out, args),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "jobctl", &mut text);
            text_or_document(out, "completions", &text);
            Ok(Exit::Done)
        }
        Command::Man => {
            let mut text = Vec::new();
            clap_mangen::Man::new(Cli::command())
                .render(&mut text)
                .map_err(|error| Ended::usage(format!("the manual page cannot be written: {error}")))?;
            text_or_document(out, "man", &text);
            Ok(Exit::Done)
        }
    }
}

/// A text that is itself what was asked for.
fn text_or_document(out: Output, command: &str, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    out.line(text.trim_end());
    out.document(command, json!({ "text": text }));
}
