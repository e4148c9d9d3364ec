//! A run as it is to be started.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine_rules::digest::{canonical_json, digest_text};
use engine_rules::limits::{KEY_LIMIT_BYTES, LABELS_LIMIT_BYTES, NAME_LIMIT_BYTES, REASON_LIMIT_BYTES, check_payload};
use serde_json::Value;

use crate::context::RunHandle;
use crate::control::RunControl;
use crate::engine::{Inner, Mutation};
use crate::error::EngineError;
use crate::id::RunId;
use crate::slots::Slot;
use crate::writer::NewRun;

/// How long an idempotency key is kept unless the caller says otherwise, in milliseconds: seven days, longer than a
/// weekend with its holiday.
const IDEMPOTENCY_WINDOW_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// What a run does that finds its concurrency key held by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPolicy {
    /// It does not start.
    Forbid,
    /// It waits in the queue until all runs with the key that came before it have ended.
    Queue,
}

impl KeyPolicy {
    /// Its name in the journal.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forbid => "forbid",
            Self::Queue => "queue",
        }
    }

    /// The policy of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Forbid, Self::Queue].into_iter().find(|policy| policy.as_str() == name)
    }
}

/// A run to be started.
#[derive(Debug, Clone)]
pub struct StartRun {
    /// The workflow's name.
    pub workflow: String,
    /// Its input, at most [`PAYLOAD_LIMIT_BYTES`](engine_rules::limits::PAYLOAD_LIMIT_BYTES) as JSON.
    pub input: Value,
    /// At most one live run has this key, in one state database.
    pub concurrency_key: Option<String>,
    /// What happens when another has it.
    pub key_policy: KeyPolicy,
    /// What the run is about, such as `product`; `runs list` filters by them.
    pub labels: BTreeMap<String, String>,
    /// Who starts it.
    pub actor: String,
    /// Why, in the words of a person.
    pub reason: Option<String>,
    /// A second start with this key, within the window, names the first run instead of starting another.
    pub idempotency_key: Option<String>,
    /// How long the idempotency key is kept, in milliseconds.
    pub idempotency_window_ms: i64,
    /// The run that this one belongs to.
    pub parent_run_id: Option<RunId>,
    /// The run that this one replays.
    pub origin_run_id: Option<RunId>,
    /// The step that it replays from.
    pub origin_step: Option<String>,
    /// The schedule that started it.
    pub schedule: Option<String>,
    /// Leaves the run in the queue for another process, even where nothing stands in its way.
    pub detached: bool,
}

impl StartRun {
    /// A run of `workflow` with `input`, started by `actor`, without a key.
    #[must_use]
    pub fn new(workflow: impl Into<String>, input: Value, actor: impl Into<String>) -> Self {
        Self {
            workflow: workflow.into(),
            input,
            concurrency_key: None,
            key_policy: KeyPolicy::Forbid,
            labels: BTreeMap::new(),
            actor: actor.into(),
            reason: None,
            idempotency_key: None,
            idempotency_window_ms: IDEMPOTENCY_WINDOW_MS,
            parent_run_id: None,
            origin_run_id: None,
            origin_step: None,
            schedule: None,
            detached: false,
        }
    }

    /// The same with a concurrency key.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>, policy: KeyPolicy) -> Self {
        self.concurrency_key = Some(key.into());
        self.key_policy = policy;
        self
    }

    /// The same with a label.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }
}

/// What a start came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// The run is in the journal.
    Started(Started),
    /// This run has the concurrency key; nothing was started.
    Busy {
        /// The run that has it.
        holder: RunId,
    },
}

/// A run that is in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    /// Its id.
    pub run_id: RunId,
    /// It waits in the queue: for its key, or for another process where it was started detached.
    pub queued: bool,
    /// It was started before, with the same idempotency key.
    pub existing: bool,
}

/// `run` as it is recorded, under the newest version of its workflow.
///
/// # Errors
/// [`EngineError::UnknownWorkflow`], [`EngineError::PayloadTooLarge`], [`EngineError::TextTooLong`].
pub(crate) fn new_run(inner: &Inner, run: StartRun) -> Result<NewRun, EngineError> {
    let version = inner.newest_version(&run.workflow)?;
    let input = canonical_json(&run.input);
    check_texts(&run, input.len())?;
    Ok(NewRun {
        run_id: RunId(inner.clock.new_id()),
        version,
        detached: run.detached,
        input_digest: digest_text(&input),
        input,
        labels: labels_text(run.labels),
        concurrency_key: run.concurrency_key,
        concurrency_policy: run.key_policy.as_str(),
        parent_run_id: run.parent_run_id,
        origin_run_id: run.origin_run_id,
        origin_step: run.origin_step,
        schedule: run.schedule,
        actor: run.actor,
        reason: run.reason,
        idempotency_key: run.idempotency_key,
        idempotency_window_ms: run.idempotency_window_ms,
        owner_no: inner.owner_no,
        workflow: run.workflow,
    })
}

/// Labels as the journal keeps them.
pub(crate) fn labels_text(labels: BTreeMap<String, String>) -> String {
    canonical_json(&labels.into_iter().map(|(name, value)| (name, Value::from(value))).collect())
}

/// What this process drives once `new` is recorded as its own.
pub(crate) fn begun(new: &NewRun) -> RunHandle {
    RunHandle {
        run_no: 0,
        run_id: new.run_id,
        epoch: 1,
        workflow: new.workflow.clone(),
        version: new.version,
        input: new.input.clone(),
        carry_before_top: None,
        fresh: true,
        crashed: false,
        resumed: false,
        control: Arc::new(RunControl::default()),
        recorded: None,
        slot: Slot::default(),
    }
}

pub(crate) fn check_texts(run: &StartRun, input_bytes: usize) -> Result<(), EngineError> {
    check_payload("the input", input_bytes)?;
    check_text("the workflow's name", &run.workflow, NAME_LIMIT_BYTES)?;
    check_text("the actor", &run.actor, KEY_LIMIT_BYTES)?;
    for (what, text, limit) in [
        ("the concurrency key", &run.concurrency_key, KEY_LIMIT_BYTES),
        ("the idempotency key", &run.idempotency_key, KEY_LIMIT_BYTES),
        ("the reason", &run.reason, REASON_LIMIT_BYTES),
        ("the origin's step", &run.origin_step, NAME_LIMIT_BYTES),
        ("the schedule's name", &run.schedule, NAME_LIMIT_BYTES),
    ] {
        if let Some(text) = text {
            check_text(what, text, limit)?;
        }
    }
    for (name, value) in &run.labels {
        check_text("a label", name, KEY_LIMIT_BYTES)?;
        check_text("a label", value, KEY_LIMIT_BYTES)?;
    }
    let labels_bytes = run.labels.iter().map(|(name, value)| name.len() + value.len()).sum();
    if labels_bytes > LABELS_LIMIT_BYTES {
        let what = "all labels together";
        return Err(EngineError::TextTooLong { what, size_bytes: labels_bytes, limit_bytes: LABELS_LIMIT_BYTES });
    }
    Ok(())
}

pub(crate) fn check_mutation(by: &Mutation) -> Result<(), EngineError> {
    check_text("the actor", &by.actor, KEY_LIMIT_BYTES)?;
    check_text("the reason", &by.reason, REASON_LIMIT_BYTES)
}

pub(crate) fn check_text(what: &'static str, text: &str, limit_bytes: usize) -> Result<(), EngineError> {
    if text.len() <= limit_bytes {
        return Ok(());
    }
    Err(EngineError::TextTooLong { what, size_bytes: text.len(), limit_bytes })
}
