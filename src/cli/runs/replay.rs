//! `jobctl runs replay`: a run that ended begins anew at one of its steps.

use std::path::PathBuf;

use catalog_rules::contracts::publish::{Cause, SourceInput};
use catalog_rules::ids::ProductId;
use engine::{Engine, Mutation, ReplayFrom, ReplayPlan, RunId, RunRow, Start};
use serde_json::{Value, json};

use super::named;
use crate::args::RunsReplay;
use crate::cli::cancelled::take_back_all;
use crate::cli::publish::{busy, stay};
use crate::cli::reason::reason;
use crate::exit::{Ended, Exit};
use crate::output::{Output, short};
use crate::start::{codr, to_value};
use crate::wire::{World, engine_error};

/// The fields of an input that say who asked and what the run is about. The first is whoever replays; the second goes with
/// the run's key and labels.
const CAUSE: &str = "cause";
const PRODUCT: &str = "product_id";

/// Replays the run and stays with the replay, or says what it would do.
///
/// # Errors
/// Usage, a key held by another run, or what the engine fails with. A run that failed is told and gives its exit code.
pub(super) async fn replay(world: &World, out: Output, args: RunsReplay) -> Result<Exit, Ended> {
    let (_, run_id) = named(world, &args.run).await?;
    let reason = if args.dry_run { "a dry run".to_owned() } else { reason(out, args.reason)? };
    let engine = world.engine().await?;
    let origin = engine.reader().run(run_id).await.map_err(|error| engine_error(&error))?.run;
    let input = changed(&origin.workflow, origin.input.clone(), &args.set)?;
    let from = ReplayFrom { step: args.from, input: Some(input), detached: args.detach };
    let cause = Cause { actor: world.actor.clone(), reason: reason.clone() };
    let (from, plan) = caused(&engine, run_id, from, &cause).await?;
    if args.dry_run {
        tell_plan(out, &plan);
        out.document("runs.replay", plan_json(&plan));
        return Ok(Exit::Done);
    }
    let product: Option<ProductId> = origin.labels.get("product").map(|product| product.parse()).transpose()?;
    if let Some(product_id) = &product {
        take_back_all(world, &engine.reader(), product_id).await?;
    }
    let by = Mutation { actor: world.actor.clone(), reason };
    let replay = match engine.replay(run_id, &from, &by).await.map_err(|error| engine_error(&error))? {
        Start::Started(started) => started.run_id,
        Start::Busy { holder } => return Err(held(&engine, product.as_ref(), run_id, holder).await?),
    };
    if args.detach {
        out.line(format!("{} is in the queue: jobctl serve carries it out", title(&origin, replay, &plan)));
        let body = json!({ "run_id": replay, "origin_run_id": run_id, "from": plan.from, "state": "queued" });
        out.document("runs.replay", body);
        return Ok(Exit::Done);
    }
    let what = format!("{} (replay of {} from {})", name(&origin), short(&run_id.to_string()), plan.from);
    let ended = stay(world, &engine, out, replay, &what).await?;
    let mut document = ended.document(&[]);
    document["origin_run_id"] = json!(run_id);
    document["from"] = json!(plan.from);
    out.document("runs.replay", document);
    Ok(ended.exit)
}

fn name(run: &RunRow) -> String {
    let product = run.labels.get("product").map(|product| format!(" {product}")).unwrap_or_default();
    format!("{}{product}", run.workflow)
}

fn title(origin: &RunRow, replay: RunId, plan: &ReplayPlan) -> String {
    format!("{} run {replay}, a replay of {} from {},", name(origin), plan.origin_run_id, plan.from)
}

/// The replay in the name of who asks for it now, where that changes nothing of what is carried over. What was made under
/// the origin's cause is otherwise recorded under it; the audit trail has who replayed.
async fn caused(
    engine: &Engine,
    run_id: RunId,
    from: ReplayFrom,
    cause: &Cause,
) -> Result<(ReplayFrom, ReplayPlan), Ended> {
    let plan = engine.plan_replay(run_id, &from).await.map_err(|error| engine_error(&error))?;
    let Some(mut input) = from.input.clone().filter(|input| input.get(CAUSE).is_some()) else {
        return Ok((from, plan));
    };
    input[CAUSE] = to_value(cause)?;
    let caused = ReplayFrom { input: Some(input), ..from.clone() };
    let caused_plan = engine.plan_replay(run_id, &caused).await.map_err(|error| engine_error(&error))?;
    Ok(if caused_plan == plan { (caused, plan) } else { (from, plan) })
}

/// What to end with where another run holds the key.
async fn held(engine: &Engine, product: Option<&ProductId>, run_id: RunId, holder: RunId) -> Result<Ended, Ended> {
    let again = format!("jobctl runs show {holder} says where it stands; once it has ended, replay {run_id} again");
    match product {
        Some(product_id) => {
            let busy = busy(engine, product_id, holder).await?;
            Ok(if busy.exit == Exit::Busy { busy.with_hint(again) } else { busy })
        }
        None => Ok(Ended::usage(format!("run {holder} holds the key of run {run_id}"))
            .with_hint(again)
            .with_exit(Exit::Busy)),
    }
}

/// `input` with what `--set` says.
fn changed(workflow: &str, mut input: Value, sets: &[String]) -> Result<Value, Ended> {
    let (mut sources, mut metadata) = (Vec::new(), Vec::new());
    for set in sets {
        let Some((name, value)) = set.split_once('=') else {
            return Err(Ended::usage(format!("--set {set:?} has no \"=\"; expected INPUT=VALUE, such as source=PATH")));
        };
        match (workflow, name) {
            (workflows::publish::NAME, "source") => sources.push(value),
            (workflows::publish::NAME, "metadata") => metadata.push(value),
            _ => set_field(&mut input, name, value)?,
        }
    }
    if !sources.is_empty() || !metadata.is_empty() {
        let SourceInput::Codr { mut files, metadata } = codr(&sources, &metadata, &folder()?)?;
        if files.is_empty() {
            let recorded = serde_json::from_value(input["source"].clone());
            let SourceInput::Codr { files: recorded, .. } = recorded.map_err(|error| {
                Ended::usage(format!("the run's own source cannot be read: {error}"))
                    .with_hint("--set source=PATH as well")
            })?;
            files = recorded;
        }
        input["source"] = to_value(&SourceInput::Codr { files, metadata })?;
    }
    Ok(input)
}

/// What relative paths are relative to.
fn folder() -> Result<PathBuf, Ended> {
    std::env::current_dir().map_err(|error| Ended::usage(format!("the working folder cannot be told: {error}")))
}

/// Sets a field that the input has.
fn set_field(input: &mut Value, name: &str, text: &str) -> Result<(), Ended> {
    let mut parts = name.split('.');
    match parts.next() {
        Some(CAUSE) => {
            return Err(Ended::usage("the cause of a replay is who replays and --reason; it cannot be set"));
        }
        Some(PRODUCT) => {
            return Err(Ended::usage("a replay is of the same product, whose key it holds; the product cannot be set")
                .with_hint("start a run of the other product"));
        }
        Some(_) | None => {}
    }
    let mut found = input;
    for part in name.split('.') {
        let known: Vec<String> = match &*found {
            Value::Object(members) => members.keys().cloned().collect(),
            Value::Array(items) => (0..items.len()).map(|index| index.to_string()).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        };
        let place = match found {
            Value::Object(members) => members.get_mut(part),
            Value::Array(items) => part.parse().ok().and_then(|index: usize| items.get_mut(index)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        };
        found = place.ok_or_else(|| {
            Ended::usage(format!("the run's input has no field {name:?}; where {part:?} would be, it has {known:?}"))
                .with_hint("jobctl runs show RUN --json has the input that the run began with")
        })?;
    }
    *found = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    Ok(())
}

fn tell_plan(out: Output, plan: &ReplayPlan) {
    let ReplayPlan { origin_run_id, workflow, version, from, .. } = plan;
    out.line(format!(
        "a replay of {workflow} run {origin_run_id} from {from}, under definition version {version}, would:"
    ));
    let rows = plan.steps.iter().map(|step| match &step.carried_from {
        Some(maker) => [step.label.clone(), format!("carry over the result of run {}", short(maker))],
        None => [step.label.clone(), "carry it out".to_owned()],
    });
    out.table(["STEP", "WHAT"], rows.collect());
    if !plan.is_whole {
        out.line("  … and then what follows from these");
    }
}

fn plan_json(plan: &ReplayPlan) -> Value {
    json!({
        "dry_run": true,
        "origin_run_id": plan.origin_run_id,
        "workflow": plan.workflow,
        "definition_version": plan.version,
        "from": plan.from,
        "steps": plan.steps.iter().map(|step| json!({
            "label": step.label,
            "carried_from": step.carried_from,
        })).collect::<Vec<_>>(),
        "is_whole": plan.is_whole,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input() -> Value {
        json!({
            "product_id": "14100287",
            "source": {"kind": "codr", "files": ["/in/a.zip"]},
            "cause": {"actor": "joe", "reason": "r"},
            "lifecycle": "final",
        })
    }

    fn set(workflow: &str, sets: &[&str]) -> Result<Value, String> {
        let sets: Vec<_> = sets.iter().map(|set| (*set).to_owned()).collect();
        changed(workflow, input(), &sets).map_err(|ended| ended.failure.message)
    }

    #[test]
    fn a_field_that_the_input_has_is_set_as_json_or_as_text() {
        assert_eq!(set("other", &["lifecycle=null"]).unwrap()["lifecycle"], Value::Null);
        assert_eq!(set("other", &["lifecycle=revisable"]).unwrap()["lifecycle"], "revisable");
        assert_eq!(set("other", &["source.files.0=/in/b=c.zip"]).unwrap()["source"]["files"], json!(["/in/b=c.zip"]));
        assert_eq!(set("other", &["source.files=[1, 2]"]).unwrap()["source"]["files"], json!([1, 2]));
        assert_eq!(set("publish", &[]).unwrap(), input());
    }

    #[test]
    fn a_source_is_a_path_of_the_working_folder_and_comes_once_a_language() {
        let folder = std::env::current_dir().unwrap();
        let path = |name: &str| folder.join(name).display().to_string();
        let one = set("publish", &["source=a.zip", "source=b.zip"]).unwrap();
        assert_eq!(one["source"], json!({"kind": "codr", "files": [path("a.zip"), path("b.zip")]}));
        let metadata = set("publish", &["metadata=m.csv"]).unwrap();
        assert_eq!(metadata["source"], json!({"kind": "codr", "files": ["/in/a.zip"], "metadata": [path("m.csv")]}));
        assert!(set("publish", &["source=a", "source=b", "source=c"]).unwrap_err().contains("3 times"));
    }

    #[test]
    fn what_cannot_be_set_is_refused_by_name() {
        for (sets, word) in [
            ("sauce=a.zip", "\"sauce\""),
            ("source.path=a.zip", "\"files\""),
            ("source.files.7=a.zip", "\"0\""),
            ("lifecycle.state=x", "lifecycle.state"),
            ("no equals sign", "INPUT=VALUE"),
            ("cause.actor=somebody", "--reason"),
            ("product_id=14100288", "same product"),
        ] {
            let refused = set("other", &[sets]).unwrap_err();
            assert!(refused.contains(word), "{sets}: {word:?} is not in {refused}");
        }
    }
}
