//! `jobctl run repair-head` and `jobctl run rebuild-inventory`.

use activities::recovery::{RecoveryDeps, RecoveryError, by, told};
use catalog_rules::contracts::publish::Cause;
use catalog_rules::contracts::recovery::{
    RebuildInventoryInput, RebuildInventoryOutput, RepairHeadInput, RepairHeadOutput,
};
use engine::{KeyPolicy, Start, StartRun};
use engine_rules::failure::ActivityError as _;
use serde_json::{Value, json};

use super::publish::{Held, held, stay};
use super::reason::reason;
use crate::args::{OnOff, Recovery};
use crate::exit::{Ended, Exit};
use crate::output::Output;
use crate::start::to_value;
use crate::wire::{World, engine_error};

/// The concurrency key of the recoveries of a catalog.
const KEY: &str = "recovery";

/// Carries the recovery out and stays with its run; or says what it would do.
///
/// # Errors
/// Usage, another recovery at work, a place that is no catalog, a rule, or what the engine fails with.
pub async fn recovery(world: &World, out: Output, recovery: Recovery) -> Result<Exit, Ended> {
    activities::inventory::open_catalog(world.store.as_ref()).map_err(|error| Ended::from(error.to_failure()))?;
    let how = match &recovery {
        Recovery::RepairHead(args) => &args.how,
        Recovery::RebuildInventory(args) => &args.how,
    };
    let is_dry = how.dry_run;
    let reason = if is_dry { how.reason.clone().unwrap_or_default() } else { reason(out, how.reason.clone())? };
    let cause = Cause { actor: world.actor.clone(), reason: reason.clone() };
    let (workflow, title, input, planned) = match recovery {
        Recovery::RepairHead(args) => {
            let input = RepairHeadInput { seq: args.seq, confirm_committed: args.confirm_committed, cause };
            let planned = is_dry.then(|| plan_head(world, &input)).transpose()?;
            (workflows::repair_head::NAME, format!("repair-head {}", args.seq), to_value(&input)?, planned)
        }
        Recovery::RebuildInventory(args) => {
            let embargo = args.embargo == OnOff::On;
            let input = RebuildInventoryInput { embargo, lost_through: args.lost_through, cause };
            let planned = is_dry.then(|| plan_inventory(world, &input)).transpose()?;
            (workflows::rebuild_inventory::NAME, "rebuild-inventory".to_owned(), to_value(&input)?, planned)
        }
    };
    let command = format!("run.{workflow}");
    if let Some(planned) = planned {
        out.line(format!("dry run of {title}: nothing is changed"));
        out.line(format!("would be: {}", recovered(&planned).unwrap_or_default()));
        let done = Exit::Done as u8;
        out.document(&command, json!({"dry_run": true, "run_id": null, "state": "would_succeed", "output": planned, "failure": null, "exit_code": done}));
        return Ok(Exit::Done);
    }
    let engine = world.engine().await?;
    let start = StartRun { reason: Some(reason), ..StartRun::new(workflow, input, world.actor.clone()) };
    let run_id = match engine.start(start.key(KEY, KeyPolicy::Forbid)).await.map_err(|error| engine_error(&error))? {
        Start::Started(started) => started.run_id,
        Start::Busy { holder } => {
            let subject = Held {
                subject: "recoveries of the Inventory".to_owned(),
                again: format!("jobctl runs watch {holder} follows it to its end; then jobctl run {workflow} again"),
            };
            return Err(held(&engine, &subject, holder).await?);
        }
    };
    let ended = stay(world, &engine, out, run_id, &title).await?;
    out.document(&command, ended.document(&[]));
    Ok(ended.exit)
}

fn deps(world: &World) -> RecoveryDeps {
    world.recovery_deps()
}

fn refused(error: &RecoveryError) -> Ended {
    Ended::from(error.to_failure())
}

fn plan_head(world: &World, input: &RepairHeadInput) -> Result<Value, Ended> {
    let planned = deps(world).head(input, "dry-run", true).map_err(|error| refused(&error))?;
    to_value(&json!({"seq": planned.seq, "sha256": planned.sha256, "head": planned.head}))
}

fn plan_inventory(world: &World, input: &RebuildInventoryInput) -> Result<Value, Ended> {
    let planned = deps(world).inventory(input, &by(&input.cause, None), true).map_err(|error| refused(&error))?;
    let mut output = to_value(&told(&planned))?;
    if let Some(fields) = output.as_object_mut() {
        // Its time is not the one that will be written.
        fields.remove("root_sha256");
    }
    Ok(output)
}

/// What a recovery has done, in a sentence; `None` for the output of something else.
pub fn recovered(output: &Value) -> Option<String> {
    if let Ok(done) = serde_json::from_value::<RepairHeadOutput>(output.clone()) {
        let before = if done.already { ", by an earlier attempt" } else { "" };
        return Some(format!(
            "version {} was deleted{before} and version {} is the newest; the copy is {}",
            done.seq, done.head, done.kept
        ));
    }
    if let Ok(done) = serde_json::from_value::<RebuildInventoryOutput>(output.clone()) {
        return Some(rebuilt(done.restore_epoch, done.products, &json!(done.states)));
    }
    // What a dry run tells lacks what only the doing gives.
    match (output.get("head"), output.get("restore_epoch"), output.get("states")) {
        (Some(head), None, None) => {
            Some(format!("version {} deleted, a copy kept, and version {head} the newest", output["seq"]))
        }
        (None, Some(epoch), Some(states)) => Some(rebuilt(epoch.as_u64()?, output.get("products")?.as_u64()?, states)),
        _ => None,
    }
}

fn rebuilt(epoch: u64, products: u64, states: &Value) -> String {
    let states = states.as_object().into_iter().flatten();
    let states: Vec<_> = states.map(|(state, count)| format!("{count} {state}")).collect();
    let noun = if products == 1 { "product" } else { "products" };
    format!("version 1 of restore epoch {epoch}: {products} {noun}, editions: {}", states.join(", "))
}
