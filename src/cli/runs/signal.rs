//! `jobctl runs signal`.

use engine::Mutation;
use serde_json::{Value, json};

use super::named;
use crate::cli::reason::reason;
use crate::exit::{Ended, Exit};
use crate::output::Output;
use crate::wire::{World, engine_error};

pub(super) async fn signal(
    world: &World,
    out: Output,
    run: &str,
    name: &str,
    payload: Option<&str>,
    why: Option<String>,
) -> Result<Exit, Ended> {
    let payload: Value = match payload {
        None => Value::Null,
        Some(text) => serde_json::from_str(text).map_err(|error| {
            Ended::usage(format!("--payload is {text:?}, which is not JSON: {error}"))
                .with_hint("quote a text twice: --payload '\"yes\"'")
        })?,
    };
    let (_, run_id) = named(world, run).await?;
    let by = Mutation { actor: world.actor.clone(), reason: reason(out, why)? };
    let engine = world.engine().await?;
    engine.signal(run_id, name, &payload, &by).await.map_err(|error| engine_error(&error))?;
    out.line(format!("run {run_id} was sent {name}: it takes it as soon as it waits for it"));
    out.document("runs.signal", json!({ "run_id": run_id.to_string(), "signal": name, "payload": payload }));
    Ok(Exit::Done)
}
