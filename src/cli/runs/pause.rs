//! `jobctl runs pause`.

use engine::Mutation;
use engine_rules::state::RunState;
use serde_json::json;

use super::{named, settled};
use crate::cli::reason::reason;
use crate::exit::{Ended, Exit};
use crate::output::Output;
use crate::wire::{World, engine_error};

pub(super) async fn pause(world: &World, out: Output, run: &str, why: Option<String>) -> Result<Exit, Ended> {
    let (_, run_id) = named(world, run).await?;
    let by = Mutation { actor: world.actor.clone(), reason: reason(out, why)? };
    let engine = world.engine().await?;
    engine.pause(run_id, &by).await.map_err(|error| engine_error(&error))?;
    let state = settled(world, &engine.reader(), run_id, |state| state == RunState::Paused).await?;
    if state == RunState::Paused || state.is_terminal() {
        out.line(format!("run {run_id} is {state}"));
    } else {
        out.line(format!("run {run_id} is told to stop: it does so before its next step"));
    }
    if !state.is_terminal() {
        out.line(format!("  jobctl runs resume {run_id} --reason … lets it go on"));
    }
    out.document("runs.pause", json!({ "run_id": run_id.to_string(), "state": state.to_string() }));
    Ok(Exit::Done)
}
