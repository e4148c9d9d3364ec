//! `jobctl runs resume`.

use engine::{Engine, EngineError, Mutation, RunId};
use serde_json::json;

use super::{is_interrupted, named, reader};
use crate::cli::publish::stay;
use crate::exit::{Ended, Exit};
use crate::output::Output;
use crate::wire::{World, engine_error};

pub(super) async fn one(world: &World, out: Output, run: &str, reason: String) -> Result<Exit, Ended> {
    let (_, run_id) = named(world, run).await?;
    let engine = world.engine().await?;
    let by = Mutation { actor: world.actor.clone(), reason };
    engine.resume(run_id, &by).await.map_err(|error| engine_error(&error))?;
    let ended = stay(world, &engine, out, run_id, &title(&engine, run_id).await?).await?;
    out.document("runs.resume", json!({ "runs": [ended.document(&[])] }));
    Ok(ended.exit)
}

/// Puts the run into the queue. One that is interrupted needs no word: the daemon takes it over as it is.
pub(super) async fn detached(world: &World, out: Output, run: &str, reason: String) -> Result<Exit, Ended> {
    let (reader, run_id) = named(world, run).await?;
    let row = reader.row(run_id).await.map_err(|error| engine_error(&error))?;
    if is_interrupted(&row) {
        out.line(format!("run {run_id} is interrupted: jobctl serve takes it over"));
    } else {
        let engine = world.engine().await?;
        let by = Mutation { actor: world.actor.clone(), reason };
        engine.requeue(run_id, &by).await.map_err(|error| engine_error(&error))?;
        out.line(format!("run {run_id} is in the queue: jobctl serve carries it out"));
    }
    out.line(format!("  jobctl runs watch {run_id} follows it"));
    out.document("runs.resume", json!({ "runs": [{ "run_id": run_id.to_string(), "exit_code": Exit::Done as u8 }] }));
    Ok(Exit::Done)
}

async fn title(engine: &Engine, run_id: RunId) -> Result<String, Ended> {
    let run = engine.reader().run(run_id).await.map_err(|error| engine_error(&error))?.run;
    let product = run.labels.get("product").map(|product| format!(" {product}")).unwrap_or_default();
    Ok(format!("{}{product}", run.workflow))
}

/// Goes on with every run whose process is gone. The exit code is the first that is not 0.
pub(super) async fn interrupted(world: &World, out: Output) -> Result<Exit, Ended> {
    let mut exit = Exit::Done;
    let mut documents = Vec::new();
    if reader(world).await?.is_some() {
        let engine = world.engine().await?;
        for run_id in engine.interrupted().await.map_err(|error| engine_error(&error))? {
            match engine.take_over(run_id).await {
                Ok(()) => {}
                Err(EngineError::OwnedElsewhere { .. } | EngineError::WrongState { .. }) => continue,
                Err(error) => return Err(engine_error(&error)),
            }
            let ended = stay(world, &engine, out, run_id, &title(&engine, run_id).await?).await?;
            documents.push(ended.document(&[]));
            if exit == Exit::Done {
                exit = ended.exit;
            }
        }
    }
    if documents.is_empty() {
        out.line("no run is interrupted");
    }
    out.document("runs.resume", json!({ "runs": documents }));
    Ok(exit)
}
