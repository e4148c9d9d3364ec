//! `jobctl runs list`.

use engine::{RunFilter, RunRow};
use engine_rules::state::RunState;
use serde_json::json;

use super::document::{imported_json, run_json};
use super::{is_interrupted, named, reader, state};
use crate::args::RunsList;
use crate::cli::when;
use crate::exit::{Ended, Exit};
use crate::output::{Output, moment, short};
use crate::wire::{World, engine_error};

/// What a run that is at work by its row and whose process is gone is called.
const INTERRUPTED: &str = "interrupted";

pub(super) async fn list(world: &World, out: Output, args: &RunsList) -> Result<Exit, Ended> {
    let mut filter = RunFilter { limit: Some(args.limit), ..RunFilter::default() };
    if args.failed {
        filter.states = vec![RunState::Failed, RunState::Blocked];
    }
    let only_interrupted = args.state_is.as_deref() == Some(INTERRUPTED);
    if only_interrupted {
        filter.states = vec![RunState::Running, RunState::Waiting];
    } else if let Some(state) = &args.state_is {
        let state = RunState::from_name(state).ok_or_else(|| {
            Ended::usage(format!(
                "{state:?} is no state of a run: queued, running, waiting, interrupted, paused, blocked, succeeded, failed, \
                 cancelled"
            ))
        })?;
        filter.states = vec![state];
    }
    filter.workflow.clone_from(&args.workflow);
    filter.labels.extend(args.label.iter().cloned());
    if let Some(product) = &args.product {
        filter.labels.insert("product".to_owned(), product.clone());
    }
    if let Some(since) = &args.since {
        filter.since_at_ms = Some(when::since(since, world.clock.now_ms())?);
    }
    if let Some(parent) = &args.parent {
        filter.parent = Some(named(world, parent).await?.1);
    }
    if args.imported {
        return imported(world, out, &filter).await;
    }
    let runs = match reader(world).await? {
        Some(reader) => reader.runs(&filter).await.map_err(|error| engine_error(&error))?,
        None => Vec::new(),
    };
    let runs: Vec<_> = runs.into_iter().filter(|run| !only_interrupted || is_interrupted(run)).collect();
    let rows = runs.iter().map(|run| {
        [
            short(&run.run_id.to_string()),
            run.workflow.clone(),
            run.labels.get("product").cloned().unwrap_or_default(),
            state(run),
            moment(run.created_at_ms),
            step_of(run),
            why(run),
        ]
    });
    if runs.is_empty() {
        out.line("no runs");
    } else {
        out.table(["RUN", "WORKFLOW", "PRODUCT", "STATE", "BEGUN", "STEP", "WHY"], rows.collect());
    }
    out.document("runs.list", json!({ "runs": runs.iter().map(run_json).collect::<Vec<_>>() }));
    Ok(Exit::Done)
}

/// The runs that were imported.
async fn imported(world: &World, out: Output, filter: &RunFilter) -> Result<Exit, Ended> {
    let runs = match reader(world).await? {
        Some(reader) => reader.imported(filter).await.map_err(|error| engine_error(&error))?,
        None => Vec::new(),
    };
    let rows = runs.iter().map(|row| {
        [
            short(&row.run.run_id.to_string()),
            row.run.workflow.clone(),
            row.run.labels.get("product").cloned().unwrap_or_default(),
            state(&row.run),
            moment(row.run.created_at_ms),
            moment(row.at_ms),
            row.by.clone(),
            why(&row.run),
        ]
    });
    if runs.is_empty() {
        out.line("no imported runs");
    } else {
        out.table(["RUN", "WORKFLOW", "PRODUCT", "STATE", "BEGUN", "IMPORTED", "BY", "WHY"], rows.collect());
    }
    let documents: Vec<_> = runs
        .iter()
        .map(|row| {
            let mut document = run_json(&row.run);
            document["imported"] = imported_json(row);
            document
        })
        .collect();
    out.document("runs.list", json!({ "runs": documents }));
    Ok(Exit::Done)
}

fn why(run: &RunRow) -> String {
    run.failure.as_ref().and_then(|failure| failure.message.lines().next()).unwrap_or_default().to_owned()
}

fn step_of(run: &RunRow) -> String {
    run.failed_step.clone().or_else(|| run.current_step.clone()).unwrap_or_default()
}
