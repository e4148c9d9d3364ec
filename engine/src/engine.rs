//! The engine as its users see it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine_rules::activity::CancelToken;
use engine_rules::clock::Clock;
use engine_rules::crash;
use engine_rules::digest::canonical_json;
use engine_rules::failure::Failure;
use engine_rules::limits::{NAME_LIMIT_BYTES, check_payload};
use engine_rules::state::RunState;
use serde_json::Value;
use sqlx::SqlitePool;
use tokio::sync::{RwLock, broadcast};

use crate::clock::SystemClock;
use crate::context::RunHandle;
use crate::control::RunControl;
use crate::db;
use crate::error::EngineError;
use crate::events::{BUFFERED_EVENTS, Event, EventKind, Events};
use crate::export::ExportError;
use crate::id::RunId;
use crate::import::{self, IfOther, Imported};
use crate::owner::OwnerLock;
use crate::purge::{self, PurgePlan, PurgeReport};
use crate::read::Reader;
use crate::registry::Registry;
use crate::runner;
use crate::start::{Start, StartRun, Started, begun, check_mutation, check_text, new_run};
use crate::writer::{StartAnswer, Writer};

/// How many connections read at most: enough to resume many runs at once, few enough to stay small.
const READERS: u32 = 4;

/// Where the engine keeps its state, and what it takes time and chance from.
#[derive(Clone)]
pub struct EngineConfig {
    /// The directory of the state database and of the owners' locks; created if it is not there. It must be on a local
    /// disk.
    pub state_dir: PathBuf,
    /// Time, ids and chance.
    pub clock: Arc<dyn Clock>,
    /// How long the body of a step's first attempt may run before its start is recorded, in milliseconds. A step that is
    /// done before that is recorded once, complete.
    pub start_behind_ms: u64,
    /// How long a body that was told to stop may take for it, in milliseconds. Then one that only waits is dropped; one
    /// that blocks its thread cannot be ended from outside.
    pub stop_grace_ms: u64,
    /// How long SQLite itself waits for another process that holds the database, in milliseconds, before the engine hears
    /// of it and tries again. It tries for ever, so this only says how often that is logged.
    pub busy_wait_ms: u32,
}

impl EngineConfig {
    /// The state in `state_dir`, with the system's clock.
    #[must_use]
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        Self {
            state_dir: state_dir.into(),
            clock: Arc::new(SystemClock::new()),
            start_behind_ms: 5,
            stop_grace_ms: 10_000,
            busy_wait_ms: db::BUSY_WAIT_MS,
        }
    }
}

impl std::fmt::Debug for EngineConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineConfig")
            .field("state_dir", &self.state_dir)
            .field("start_behind_ms", &self.start_behind_ms)
            .field("busy_wait_ms", &self.busy_wait_ms)
            .finish_non_exhaustive()
    }
}

/// Who changes a run by hand, and why; both are kept in the audit trail.
#[derive(Debug, Clone)]
pub struct Mutation {
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
}

/// How a run stands when this process no longer works on it.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It ended with this output.
    Succeeded(Value),
    /// It ended with this failure.
    Failed {
        /// Why.
        failure: Failure,
        /// The step that failed, where one did.
        step: Option<String>,
    },
    /// A person must act; then [`Engine::resume`].
    Blocked {
        /// Why.
        failure: Failure,
        /// The step at which it stands, where it is one.
        step: Option<String>,
    },
    /// A person ended it.
    Cancelled,
    /// A person holds it; then [`Engine::resume`].
    Paused,
    /// This process gave it back ([`Engine::begin_drain`]); whoever comes first takes it over.
    Released,
    /// Another process took it over, or ended it; nothing more of this process is recorded.
    Fenced,
}

/// The engine of this process. Clones are the same engine.
#[derive(Debug, Clone)]
pub struct Engine(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub state_dir: PathBuf,
    pub clock: Arc<dyn Clock>,
    pub start_behind_ms: u64,
    pub stop_grace_ms: u64,
    pub registry: Registry,
    pub writer: Writer,
    pub readers: SqlitePool,
    pub events: broadcast::Sender<Event>,
    pub owner_no: i64,
    /// The runs that this process works on.
    pub active: Mutex<HashMap<RunId, Arc<RunControl>>>,
    /// Set once this process is to end: its runs stop before their next step.
    pub draining: CancelToken,
    /// The runs that belong to this process and that nobody drives yet.
    pub ready: Mutex<HashMap<RunId, RunHandle>>,
    /// Read by who makes a run this process's, until it is among the active or the ready: who asks which runs of this
    /// process nobody works on must not see it in between.
    pub arriving: RwLock<()>,
    /// Held for as long as the engine lives. An engine that only rehearses owns nothing and has none.
    pub lock: Option<OwnerLock>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("state_dir", &self.state_dir)
            .field("owner_no", &self.owner_no)
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// An engine without a state: what would be written is refused as closed, and nothing can be read.
    pub fn without_state(registry: Registry, clock: Arc<dyn Clock>) -> Self {
        Self {
            state_dir: PathBuf::new(),
            clock,
            start_behind_ms: 0,
            stop_grace_ms: 0,
            registry,
            writer: Writer::closed(),
            readers: db::no_readers(),
            events: broadcast::Sender::new(1),
            owner_no: 0,
            active: Mutex::new(HashMap::new()),
            draining: CancelToken::new(),
            ready: Mutex::new(HashMap::new()),
            arriving: RwLock::new(()),
            lock: None,
        }
    }

    /// The version under which a new run of `workflow` begins.
    pub fn newest_version(&self, workflow: &str) -> Result<u32, EngineError> {
        self.registry.newest_version(workflow).ok_or_else(|| EngineError::UnknownWorkflow {
            name: workflow.to_owned(),
            known: self.registry.workflow_names().map(str::to_owned).collect(),
        })
    }

    /// Tells those who watch; costs nothing while nobody does.
    pub fn emit(&self, run_id: RunId, kind: impl FnOnce() -> EventKind) {
        if self.events.receiver_count() > 0 {
            let _ = self.events.send(Event { run_id, at_ms: self.clock.now_ms(), kind: kind() });
        }
    }

    pub fn active(&self) -> MutexGuard<'_, HashMap<RunId, Arc<RunControl>>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn ready(&self) -> MutexGuard<'_, HashMap<RunId, RunHandle>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new run is in the journal. One that is not in the queue is this process's, to be driven.
    pub fn recorded(&self, mut handle: RunHandle, run_no: i64, state: RunState) -> Started {
        let (run_id, queued) = (handle.run_id, !state.needs_owner());
        if !queued {
            handle.run_no = run_no;
            self.ready().insert(run_id, handle);
        }
        Started { run_id, queued, existing: false }
    }
}

impl Engine {
    /// Opens the state in `config.state_dir`, creating it where there is none, and registers this process as an owner.
    /// Needs a tokio runtime. Several processes may open the same state, also a fresh one, at once.
    ///
    /// # Errors
    /// [`EngineError::NotDurable`] when the database does not keep what it acknowledges; [`EngineError::Schema`] when a
    /// newer program wrote it.
    pub async fn open(config: EngineConfig, registry: Registry) -> Result<Self, EngineError> {
        let mut connection = db::open_writer(&config.state_dir).await?;
        db::set_busy_wait(&mut connection, config.busy_wait_ms).await?;
        let readers = db::open_readers(&config.state_dir, READERS).await?;
        let writer = Writer::spawn(connection, config.clock.clone());
        let lock = OwnerLock::take(&config.state_dir, config.clock.new_id())?;
        let owner_no = match runner::register_owner(&writer, &lock, config.clock.now_ms()).await {
            Ok(owner_no) => owner_no,
            Err(error) => {
                // A lock that the journal does not know is cleared away by nobody else.
                lock.discard(&config.state_dir);
                return Err(error);
            }
        };
        let inner = Arc::new(Inner {
            state_dir: config.state_dir,
            clock: config.clock,
            start_behind_ms: config.start_behind_ms,
            stop_grace_ms: config.stop_grace_ms,
            registry,
            writer,
            readers,
            events: broadcast::Sender::new(BUFFERED_EVENTS),
            owner_no,
            active: Mutex::new(HashMap::new()),
            draining: CancelToken::new(),
            ready: Mutex::new(HashMap::new()),
            arriving: RwLock::new(()),
            lock: Some(lock),
        });
        runner::clear_dead_locks(&inner).await;
        tokio::spawn(runner::keep_alive(Arc::downgrade(&inner), inner.clock.clone()));
        Ok(Self(inner))
    }

    /// Records a new run. When it returns, the run survives a power cut; [`Engine::drive`] carries it out. Looking at the
    /// concurrency key, taking it and recording the run is one transaction, and the key is free again as soon as the run
    /// ends, however it ends.
    ///
    /// # Errors
    /// [`EngineError::UnknownWorkflow`], [`EngineError::PayloadTooLarge`], [`EngineError::TextTooLong`],
    /// [`EngineError::IdempotencyConflict`], and [`EngineError::IdempotencyPurged`] where the run that the key started was
    /// purged within the key's window; nothing is recorded then.
    pub async fn start(&self, run: StartRun) -> Result<Start, EngineError> {
        let inner = &self.0;
        let new = new_run(inner, run)?;
        let handle = begun(&new);
        let (key, digest) = (new.idempotency_key.clone(), new.input_digest.clone());
        crash::point("engine.run_row.before");
        let _arriving = inner.arriving.read().await;
        let answer = inner.writer.start(new).await?;
        crash::point("engine.run_row.after");
        match answer {
            StartAnswer::Busy { holder } => Ok(Start::Busy { holder }),
            StartAnswer::Existing { run_id, input_digest, .. } if input_digest != digest => {
                Err(EngineError::IdempotencyConflict { key: key.unwrap_or_default(), run: run_id })
            }
            StartAnswer::Existing { run_id, purged: true, .. } => {
                Err(EngineError::IdempotencyPurged { key: key.unwrap_or_default(), run: run_id })
            }
            StartAnswer::Existing { run_id, .. } => {
                Ok(Start::Started(Started { run_id, queued: false, existing: true }))
            }
            StartAnswer::Started { run_no, state } => Ok(Start::Started(inner.recorded(handle, run_no, state))),
        }
    }

    /// Carries the run out in this process, until it ends or does not go on here. A run that waits in the queue is waited
    /// for; one that a dead process left is taken over; one that ended answers how. The run goes on when the caller
    /// stops waiting.
    ///
    /// # Errors
    /// [`EngineError::WrongState`] for a run that is paused or blocked ([`Engine::resume`]),
    /// [`EngineError::OwnedElsewhere`], [`EngineError::AlreadyDriven`], [`EngineError::UnknownRun`]; and
    /// [`EngineError::Storage`] when the journal could not be written: the run then stands where it was last recorded.
    pub async fn drive(&self, run_id: RunId) -> Result<Outcome, EngineError> {
        runner::drive(&self.0, run_id).await
    }

    /// The runs that a dead process left behind, or that this one lost to an error of the database, oldest first.
    ///
    /// # Errors
    /// [`EngineError::Storage`].
    pub async fn interrupted(&self) -> Result<Vec<RunId>, EngineError> {
        runner::interrupted(&self.0).await
    }

    /// Makes this process the owner of an interrupted run, with a new epoch: whatever its old owner still writes is
    /// fenced. [`Engine::drive`] then goes on with it. The attempt that was open is charged.
    ///
    /// # Errors
    /// [`EngineError::OwnedElsewhere`] when its owner lives, or another was faster; [`EngineError::WrongState`].
    pub async fn take_over(&self, run_id: RunId) -> Result<(), EngineError> {
        runner::take_over(&self.0, run_id).await
    }

    /// Lets a run go on that is blocked, paused or interrupted: by a person, so the attempts of its open step before now no
    /// longer count. [`Engine::drive`] then goes on with it, and with those of its children that are blocked or paused.
    /// Leaves a row in the audit trail, of each.
    ///
    /// # Errors
    /// [`EngineError::WrongState`] for a run that ended or waits in the queue, [`EngineError::OwnedElsewhere`] for one that
    /// another process works on, [`EngineError::AlreadyDriven`] for one that this process does.
    pub async fn resume(&self, run_id: RunId, by: &Mutation) -> Result<(), EngineError> {
        check_mutation(by)?;
        runner::resume(&self.0, run_id, by).await
    }

    /// Ends a run and its children. One that another process works on is told to stop: the step at work sees its token set
    /// within a second, and the run ends once its workflow has cleaned up, or at the end of its section. One that nobody
    /// works on is carried out here until it ends, so that its workflow cleans up, and one that never began ends at once.
    /// Leaves a row in the audit trail. Repeats are safe until the run has ended.
    ///
    /// # Errors
    /// [`EngineError::WrongState`] for a run that ended.
    pub async fn cancel(&self, run_id: RunId, by: &Mutation) -> Result<(), EngineError> {
        check_mutation(by)?;
        runner::cancel(&self.0, run_id, by).await
    }

    /// Holds a run: it stops before its next step, or at the end of its section, with what is recorded; one that waits, at
    /// once. [`Engine::resume`] lets it go on. Leaves a row in the audit trail. Repeats are safe.
    ///
    /// # Errors
    /// [`EngineError::WrongState`] for a run that waits in the queue, is blocked, or ended.
    pub async fn pause(&self, run_id: RunId, by: &Mutation) -> Result<(), EngineError> {
        check_mutation(by)?;
        runner::pause(&self.0, run_id, by).await
    }

    /// Sends a run the signal `name` with `payload`. When it returns, the signal is in the journal, and the run takes it as
    /// soon as it waits for it: each signal is taken once, by the order in which they were sent. A repeat is a further
    /// signal. Leaves a row in the audit trail.
    ///
    /// # Errors
    /// [`EngineError::WrongState`] for a run that ended; [`EngineError::PayloadTooLarge`].
    pub async fn signal(&self, run_id: RunId, name: &str, payload: &Value, by: &Mutation) -> Result<(), EngineError> {
        check_mutation(by)?;
        check_text("the signal's name", name, NAME_LIMIT_BYTES)?;
        let payload = canonical_json(payload);
        check_payload("the signal's payload", payload.len())?;
        runner::signal(&self.0, run_id, name, payload, by).await
    }

    /// Lets each run of this process stop before its next step, or at the end of its section, and gives it back, a parent
    /// after the children that it drives: its [`Outcome`] is [`Outcome::Released`], and whoever comes first takes it over,
    /// without an attempt charged. There is
    /// no way back; what is driven from now on is given back at once.
    pub fn begin_drain(&self) {
        self.0.draining.cancel();
        for control in self.0.active().values() {
            control.tell();
        }
    }

    /// Takes runs from the queue, oldest first, and carries them out, at most `in_flight` at once, until none is left that
    /// could begin. Children that never began are left to their parent where that is at work. Answers how many it took.
    ///
    /// # Errors
    /// [`EngineError::Storage`].
    pub async fn drain(&self, in_flight: usize) -> Result<u64, EngineError> {
        runner::drain(&self.0, in_flight).await
    }

    /// Deletes finished runs that ended before the plan's times, with what belongs to them, in transactions of a bounded
    /// size between which other writers come in. What is committed stays done when the process dies in the middle; the
    /// next call goes on. Two calls at once are safe. See [`PurgePlan`] for what is kept (DESIGN §2.2, Retention).
    ///
    /// # Errors
    /// [`EngineError::TextTooLong`], [`EngineError::Storage`]; what was purged until then is purged.
    pub async fn purge(&self, plan: PurgePlan) -> Result<PurgeReport, EngineError> {
        check_mutation(&plan.by)?;
        purge::purge(&self.0, plan).await
    }

    /// Keeps an exported run for reading (DESIGN §2.2, §10). `text` is the file as
    /// [`RunExport::to_text`](crate::RunExport::to_text) wrote it. It is a document of its own and no run of this state:
    /// nothing takes it up, changes it or purges it. Importing the same content again changes nothing. Leaves a row in
    /// the audit trail.
    ///
    /// # Errors
    /// [`ExportError`], saying where the file is damaged; nothing is kept then.
    pub async fn import(&self, text: &str, by: &Mutation, if_other: IfOther) -> Result<Imported, ExportError> {
        check_mutation(by)?;
        import::import(&self.0, text, by, if_other).await
    }

    /// What happens to the runs of this process from now on.
    #[must_use]
    pub fn subscribe(&self) -> Events {
        Events(self.0.events.subscribe())
    }

    /// The clock that the engine works by.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        self.0.clock.as_ref()
    }

    /// What the journal holds, for reading.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::over(self.0.readers.clone(), self.0.state_dir.clone(), self.0.clock.clone())
    }

    /// Ends the engine in order: what was asked to be written is written. Runs that are still driven stand where they
    /// were last recorded, and are taken over by another process.
    pub async fn close(self) {
        runner::end_owner(&self.0).await;
        self.0.writer.close().await;
        self.0.readers.close().await;
    }
}
