//! A run and its steps as documents.

use engine::{ImportedRow, RunRow, StepRow};
use serde_json::{Value, json};

use super::is_interrupted;

pub(super) fn instant(at_ms: i64) -> Value {
    json!(catalog_rules::instant::Instant::from_ms(at_ms))
}

pub(super) fn run_json(run: &RunRow) -> Value {
    json!({
        "run_id": run.run_id.to_string(),
        "workflow": run.workflow,
        "definition_version": run.version,
        "product": run.labels.get("product"),
        "labels": run.labels,
        "state": run.state.to_string(),
        "interrupted": is_interrupted(run),
        "step": run.failed_step.as_ref().or(run.current_step.as_ref()),
        "steps_recorded": run.steps_recorded,
        "input": run.input,
        "output": run.output,
        "failure": run.failure,
        "actor": run.actor,
        "reason": run.reason,
        "concurrency_key": run.concurrency_key,
        "parent_run_id": run.parent_run_id.as_ref().map(ToString::to_string),
        "origin_run_id": run.origin_run_id.as_ref().map(ToString::to_string),
        "origin_step": run.origin_step,
        "schedule": run.schedule,
        "epoch": run.epoch,
        "owner": run.owner.as_ref().map(|owner| json!({
            "owner_id": owner.owner_id, "pid": owner.pid, "host": owner.host, "alive": owner.alive,
        })),
        "created_at": instant(run.created_at_ms),
        "started_at": run.started_at_ms.map(instant),
        "ended_at": run.ended_at_ms.map(instant),
        "waits_until": run.wake_at_ms.map(instant),
        "cancel_requested_at": run.cancel_requested_at_ms.map(instant),
        "pause_requested_at": run.pause_requested_at_ms.map(instant),
        "purge_begun_at": run.purge_begun_at_ms.map(instant),
    })
}

/// How a run came to be imported.
pub(super) fn imported_json(row: &ImportedRow) -> Value {
    json!({ "at": instant(row.at_ms), "by": row.by, "reason": row.reason, "digest": row.digest })
}

pub(super) fn step_json(step: &StepRow) -> Value {
    json!({
        "position": step.position,
        "name": step.name,
        "label": step.label,
        "section": step.section,
        "iteration": step.iteration,
        "kind": step.kind,
        "activity": step.activity,
        "carried_from": step.carried_from,
        "state": step.state.to_string(),
        "input": step.input,
        "input_digest": step.input_digest,
        "output": step.output,
        "failure": step.failure,
        "attempt": step.attempt,
        "next_attempt_at": step.next_attempt_at_ms.map(instant),
        "heartbeat_at": step.heartbeat_at_ms.map(instant),
        "progress": step.progress,
        "started_at": instant(step.started_at_ms),
        "ended_at": step.ended_at_ms.map(instant),
        "duration_us": step.duration_us,
        "attempts": step.attempts.iter().map(|attempt| json!({
            "attempt": attempt.attempt,
            "outcome": attempt.outcome,
            "failure": attempt.failure,
            "epoch": attempt.epoch,
            "started_at": attempt.started_at_ms.map(instant),
            "ended_at": attempt.ended_at_ms.map(instant),
            "duration_us": attempt.duration_us,
        })).collect::<Vec<_>>(),
    })
}
