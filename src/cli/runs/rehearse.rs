//! `jobctl runs rehearse`: whether this program would go on with runs as they are recorded.

use std::path::Path;

use engine::{History, Rehearsal, RunExport};
use serde_json::{Value, json};

use super::export_error;
use super::show::history;
use crate::cli::publish::with_run;
use crate::exit::{Ended, Exit};
use crate::output::Output;
use crate::wire::World;

/// Rehearses each history, a run of the state or the file of an exported one, and says what came of it. Nothing is carried
/// out and nothing written. The exit code is 5 where this program would not go on with one.
///
/// # Errors
/// A file that is no exported run, an unknown run.
pub(super) async fn rehearse(world: &World, out: Output, histories: &[String]) -> Result<Exit, Ended> {
    let registry = world.registry();
    let mut documents = Vec::new();
    let mut exit = Exit::Done;
    for name in histories {
        let history = read(world, name).await?;
        let rehearsal = registry.rehearse(world.clock.clone(), &history).await;
        tell(out, name, &rehearsal);
        documents.push(document(name, &rehearsal));
        if rehearsal.difference.is_some() {
            exit = Exit::Blocked;
        }
    }
    out.document("runs.rehearse", json!({ "histories": documents }));
    Ok(exit)
}

async fn read(world: &World, name: &str) -> Result<History, Ended> {
    let path = Path::new(name);
    if path.is_file() || path.extension().is_some_and(|extension| extension == "json") {
        let text =
            std::fs::read_to_string(path).map_err(|error| Ended::usage(format!("{name} cannot be read: {error}")))?;
        let stands: Value = serde_json::from_str(&text).unwrap_or_default();
        if stands.get("schema").is_some() {
            // An export says what it holds, so it is held to that.
            let RunExport { run, steps, .. } = RunExport::parse(&text).map_err(export_error)?;
            return Ok(History { run, steps });
        }
        return serde_json::from_str(&text).map_err(|error| {
            Ended::usage(format!("{name} is not the export of a run: {error}"))
                .with_hint("jobctl runs export RUN writes such a file")
        });
    }
    Ok(history(world, name).await?.0.into())
}

fn tell(out: Output, name: &str, rehearsal: &Rehearsal) {
    let Rehearsal { workflow, version, recorded, agreed, last, difference, .. } = rehearsal;
    let up_to = last.as_ref().map(|(place, label)| format!(", up to {place} {label}")).unwrap_or_default();
    let what = match difference {
        None => out.green("agrees"),
        Some(_) => out.red("differs"),
    };
    out.line(format!("{name}  {workflow} version {version}  {what}: {agreed} of {recorded} recorded{up_to}"));
    if let Some(difference) = difference {
        let at = difference.step.as_ref().map(|step| format!(" at {step}")).unwrap_or_default();
        out.line(format!("  {}{at}: {}", difference.failure.code, difference.failure.message));
        if let Some(hint) = &difference.failure.hint {
            out.line(format!("  hint: {}", with_run(hint, rehearsal.run_id)));
        }
    }
}

fn document(name: &str, rehearsal: &Rehearsal) -> Value {
    json!({
        "history": name,
        "run_id": rehearsal.run_id,
        "workflow": rehearsal.workflow,
        "definition_version": rehearsal.version,
        "recorded": rehearsal.recorded,
        "agreed": rehearsal.agreed,
        "agrees": rehearsal.difference.is_none(),
        "last": rehearsal.last.as_ref().map(|(position, label)| json!({ "position": position, "label": label })),
        "step": rehearsal.difference.as_ref().and_then(|difference| difference.step.as_ref()),
        "failure": rehearsal.difference.as_ref().map(|difference| &difference.failure),
    })
}
