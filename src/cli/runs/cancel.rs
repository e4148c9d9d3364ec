//! `jobctl runs cancel`.

use engine::Mutation;
use serde_json::json;

use super::{named, settled};
use crate::cli::cancelled::{Remains, take_back};
use crate::cli::reason::reason;
use crate::exit::{Ended, Exit};
use crate::output::Output;
use crate::wire::{World, engine_error};

pub(super) async fn cancel(world: &World, out: Output, run: &str, why: Option<String>) -> Result<Exit, Ended> {
    let (_, run_id) = named(world, run).await?;
    let by = Mutation { actor: world.actor.clone(), reason: reason(out, why)? };
    let engine = world.engine().await?;
    engine.cancel(run_id, &by).await.map_err(|error| engine_error(&error))?;
    let state = settled(world, &engine.reader(), run_id, |_| false).await?;
    if state.is_terminal() {
        out.line(format!("run {run_id} is {state}"));
    } else {
        out.line(format!("run {run_id} is told to stop: it does so at the end of what it is at"));
    }
    let remains = take_back(world, &engine.reader(), run_id).await?;
    if let Some(remains) = &remains {
        remains.tell(out);
    }
    out.document(
        "runs.cancel",
        json!({
            "run_id": run_id.to_string(),
            "state": state.to_string(),
            "edition": remains.as_ref().and_then(Remains::edition),
            "versions": remains.as_ref().and_then(Remains::versions),
        }),
    );
    Ok(Exit::Done)
}
