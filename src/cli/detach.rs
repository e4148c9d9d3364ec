//! Leaving a run to the daemon.

use engine::{Engine, KeyPolicy, RunId, Start, StartRun};
use serde_json::json;

use crate::exit::{Ended, Exit};
use crate::output::Output;
use crate::wire::engine_error;

/// Records `run` in the queue; `Err` is the run that holds its key, where the policy forbids to stand in line for it.
///
/// # Errors
/// What the engine fails with.
pub async fn enqueue(engine: &Engine, run: StartRun) -> Result<Result<RunId, RunId>, Ended> {
    let run = StartRun { detached: true, ..run };
    Ok(match engine.start(run).await.map_err(|error| engine_error(&error))? {
        Start::Started(started) => Ok(started.run_id),
        Start::Busy { holder } => Err(holder),
    })
}

/// Who waits for another run's key stands in line for it; who does not is refused.
pub const fn policy(waits: bool) -> KeyPolicy {
    if waits { KeyPolicy::Queue } else { KeyPolicy::Forbid }
}

/// Says that the run is in the queue, and what takes it.
pub fn tell(out: Output, command: &str, title: &str, run_id: RunId) -> Exit {
    out.line(format!("{title}  run {run_id}"));
    out.line("in the queue: jobctl serve carries it out");
    out.line(format!("  jobctl runs watch {run_id} follows it"));
    out.document(
        command,
        json!({
            "run_id": run_id.to_string(),
            "state": "queued",
            "output": null,
            "failure": null,
            "exit_code": Exit::Done as u8,
            "taken_up": [],
        }),
    );
    Exit::Done
}
