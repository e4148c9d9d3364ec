//! `jobctl runs cancel`.

use engine::Mutation;
use serde_json::json;

use super::named;
use crate::cli::cancelled::{Remains, take_back};
use crate::exit::{Ended, Exit};
use crate::output::Output;
use crate::wire::{World, engine_error};

pub(super) async fn cancel(world: &World, out: Output, run: &str, reason: String) -> Result<Exit, Ended> {
    let (_, run_id) = named(world, run).await?;
    let engine = world.engine().await?;
    engine
        .cancel(run_id, &Mutation { actor: world.actor.clone(), reason })
        .await
        .map_err(|error| engine_error(&error))?;
    let state = engine.reader().run(run_id).await.map_err(|error| engine_error(&error))?.run.state;
    if state.is_terminal() {
        out.line(format!("run {run_id} is {state}"));
    } else {
        out.line(format!("run {run_id} is told to stop: it does so at the end of what it is at"));
    }
    let remains = take_back(world, &engine.reader(), run_id).await?;
    if let Some(remains) = &remains {
        remains.tell(out);
    }
    let left = remains.as_ref().map(Remains::document);
    out.document("runs.cancel", json!({ "run_id": run_id.to_string(), "state": state.to_string(), "edition": left }));
    Ok(Exit::Done)
}
