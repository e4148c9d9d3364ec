//! The workflow's view on top of the journal.

mod attempt;
mod body;
mod carry;
mod children;
mod stop;
mod wait;

use std::collections::VecDeque;
use std::sync::Arc;

use engine_rules::context::{ChildDef, ChildEnd, ChildStart, Context, Interrupt, StepDef};
use engine_rules::digest::{canonical_json, digest_text};
use engine_rules::failure::{Disposition, Failure};
use engine_rules::limits::{HISTORY_LIMIT_STEPS, NAME_LIMIT_BYTES, bounded, cut};
use engine_rules::position::{Position, step_label};
use engine_rules::state::{RunEvent, RunState, StepState};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::control::RunControl;
use crate::engine::Inner;
use crate::error::{EngineError, WriteError};
use crate::events::EventKind;
use crate::id::RunId;
use crate::journal::Recorded;
use crate::slots::Slot;
use crate::writer::{RunChange, RunWrite, StepWrite};

pub(crate) use attempt::tells_of_time;
pub(crate) use carry::{Carry, Mode, Planning, SECTION_DIFFERS};
pub(crate) use stop::tells_of_cancel;

/// A section is started again at most this often before a person must look: without a limit, a section that kills its
/// process would do so for ever, because each iteration counts its attempts anew.
const SECTION_ITERATIONS: u32 = 10;

/// How much of an input is shown where it differs from the recorded one, in bytes: enough to see the difference of most.
const SHOWN_INPUT_BYTES: usize = 2_000;

/// The kinds of rows that a run leaves. Their names are what the journal holds.
mod kind {
    pub(super) const ACTIVITY: &str = "activity";
    pub(super) const NOW: &str = "now";
    pub(super) const NEW_ID: &str = "new_id";
    pub(super) const SECTION: &str = "section";
    pub(super) const SECTION_END: &str = "section_end";
    pub(super) const SLEEP: &str = "sleep";
    pub(super) const SIGNAL: &str = "signal";
    pub(super) const CHILD: &str = "child";
    pub(super) const FAN_OUT: &str = "fan_out";
}

/// What a run that goes on in this process is known by.
#[derive(Debug, Clone)]
pub(crate) struct RunHandle {
    pub run_no: i64,
    pub run_id: RunId,
    pub epoch: i64,
    pub workflow: String,
    pub version: u32,
    pub input: String,
    /// Set for a replay: what its origin recorded before this place is carried over.
    pub carry_before_top: Option<u32>,
    /// Nothing is recorded of it yet.
    pub fresh: bool,
    /// It was taken from a process that died: its open step is charged an attempt.
    pub crashed: bool,
    /// A person let it go on.
    pub resumed: bool,
    pub control: Arc<RunControl>,
    /// What the journal holds of it, where that was read together with others.
    pub recorded: Option<Vec<Recorded>>,
    /// Its place among the runs that are at work.
    pub slot: Slot,
}

/// Why a run does not go on in this process.
#[derive(Debug)]
pub(crate) enum End {
    /// Recorded as blocked.
    Blocked { failure: Failure, step: Option<String> },
    /// Recorded as cancelled.
    Cancelled,
    /// Recorded as paused.
    Paused,
    /// Recorded as nobody's, for whoever comes first.
    Released,
    /// Another owner took it over, or it ended.
    Fenced,
    /// The journal cannot be written; nothing was recorded.
    Engine(EngineError),
    /// Only rehearsed or planned: it asks for this, of which nothing is recorded.
    Rehearsed { asks_for: String },
}

/// The engine's [`Context`]: each answer is in the journal before it is given.
#[derive(Debug)]
pub struct EngineContext {
    pub(crate) inner: Arc<Inner>,
    pub(crate) run: RunHandle,
    recorded: VecDeque<Recorded>,
    /// The origin of a replay, where it is still there.
    carry: Option<Carry>,
    pub(crate) mode: Mode,
    asked: u32,
    next_top: u32,
    section: Option<Section>,
    crashed: bool,
    /// Running, or waiting.
    state: RunState,
    /// The workflow was told that the run is cancelled: what it still asks for is its clean-up.
    cleaning: bool,
    /// What the wait that was looked up last gave, where it had ended before.
    replayed: Option<String>,
    pub(crate) end: Option<End>,
    /// The last step that failed for good, for the record of the run.
    pub(crate) failed_step: Option<String>,
}

#[derive(Debug, Clone, Copy)]
struct Section {
    name: &'static str,
    top: u32,
    iteration: u32,
    next_sub: u32,
}

/// The next thing that the workflow asks for.
struct Ask<'a> {
    kind: &'static str,
    name: &'static str,
    activity: Option<&'static str>,
    input: Option<&'a Arc<str>>,
    digest: String,
}

impl EngineContext {
    pub(crate) fn new(inner: Arc<Inner>, run: RunHandle, recorded: Vec<Recorded>) -> Self {
        let crashed = run.crashed;
        Self {
            inner,
            run,
            recorded: recorded.into(),
            carry: None,
            mode: Mode::Live,
            asked: 0,
            next_top: 1,
            section: None,
            crashed,
            state: RunState::Running,
            cleaning: false,
            replayed: None,
            end: None,
            failed_step: None,
        }
    }

    /// The same for a replay, or for a look at what a run would do.
    pub(crate) fn with(mut self, mode: Mode, carry: Option<Carry>) -> Self {
        self.mode = mode;
        self.carry = carry;
        self
    }

    /// How much of what is recorded the workflow did not ask for yet.
    pub(crate) fn left(&self) -> usize {
        self.recorded.len()
    }

    /// What the journal holds and the workflow did not ask for, once it returned.
    pub(crate) fn left_over(&self) -> Option<String> {
        self.recorded.front().map(|row| describe(&row.kind, row.section.as_deref(), row.position, &row.name))
    }

    /// Running, or waiting.
    pub(crate) fn state(&self) -> RunState {
        self.state
    }

    /// The section that was begun and not ended.
    pub(crate) fn open_section(&self) -> Option<&'static str> {
        self.section.map(|section| section.name)
    }

    fn position(&self) -> Position {
        match self.section {
            None => Position::top(self.next_top),
            Some(section) => Position { top: section.top, iteration: section.iteration, sub: section.next_sub },
        }
    }

    fn advance(&mut self) {
        match &mut self.section {
            None => self.next_top += 1,
            Some(section) => section.next_sub += 1,
        }
    }

    fn label(&self, name: &str) -> String {
        match self.section {
            None => step_label(None, 1, name),
            Some(section) => step_label(Some(section.name), section.iteration, name),
        }
    }

    pub(crate) fn emit(&self, kind: impl FnOnce() -> EventKind) {
        if !self.mode.is_live() {
            return;
        }
        self.inner.emit(self.run.run_id, kind);
    }

    /// Writes what this run has to record; where that fails the run ends here.
    async fn write(&mut self, write: RunWrite) -> Result<(), Interrupt> {
        if !self.mode.is_live() {
            let asks_for = write.step.map(|row| describe(row.kind, row.section, row.position, row.name));
            return Err(
                self.stop(End::Rehearsed { asks_for: asks_for.unwrap_or_else(|| "a change of its state".to_owned()) })
            );
        }
        match self.inner.writer.write(write).await {
            Ok(()) => Ok(()),
            Err(WriteError::Fenced) => Err(self.stop(End::Fenced)),
            Err(WriteError::Engine(error)) => Err(self.stop(End::Engine(error))),
        }
    }

    fn stop(&mut self, end: End) -> Interrupt {
        // The first reason counts: what comes after it is its consequence.
        if self.end.is_none() {
            self.end = Some(end);
        }
        Interrupt::Suspended
    }

    fn new_write(&self) -> RunWrite {
        RunWrite::new(self.run.run_no, self.run.epoch)
    }

    /// Records that a person must act, with what else is to be recorded. A run that is to end does not wait for a person: it
    /// ends, with this failure to be read.
    pub(crate) async fn block(&mut self, mut write: RunWrite, failure: Failure, step: Option<String>) -> Interrupt {
        if !self.mode.is_live() {
            return self.stop(End::Blocked { failure, step });
        }
        if self.run.control.is_cancelled() {
            return self.end_cancelled(write, Some(failure), step).await;
        }
        let mut change = match self.change(RunEvent::Block) {
            Ok(change) => change,
            Err(interrupt) => return interrupt,
        };
        change.failure = Some(failure.clone());
        change.failed_step.clone_from(&step);
        write.run = Some(change);
        if let Err(interrupt) = self.write(write).await {
            return interrupt;
        }
        match self.is_to_end().await {
            Ok(false) => self.stop(End::Blocked { failure, step }),
            Ok(true) => self.end_cancelled(self.new_write(), Some(failure), step).await,
            Err(interrupt) => interrupt,
        }
    }

    /// How the run stands after `event`.
    fn change(&mut self, event: RunEvent) -> Result<RunChange, Interrupt> {
        match self.state.after(event) {
            Ok(state) => Ok(RunChange::to(state)),
            Err(fault) => Err(self.fault(&fault.to_string())),
        }
    }

    /// A fault of the engine itself: the run stops here and nothing is recorded.
    fn fault(&mut self, what: &str) -> Interrupt {
        self.stop(End::Engine(EngineError::Corrupt {
            subject: format!("run {}", self.run.run_id),
            found: what.to_owned(),
            expected: "a transition of the engine's tables",
        }))
    }

    /// Compares `ask` with the journal. `Some` is what the journal holds for it; `None` means that it is new.
    async fn ask(&mut self, ask: &Ask<'_>) -> Result<Option<Recorded>, Interrupt> {
        if self.end.is_some() {
            return Err(Interrupt::Suspended);
        }
        self.asked += 1;
        if self.asked > HISTORY_LIMIT_STEPS {
            let failure = operator(
                "engine.history_too_long",
                format!(
                    "the run asks for more than {HISTORY_LIMIT_STEPS} steps, which is the most that a run may have"
                ),
                "cancel it and divide the work among child runs: jobctl runs cancel RUN --reason …",
            );
            let label = self.label(ask.name);
            return Err(self.block(self.new_write(), failure, Some(label)).await);
        }
        if ask.name.len() > NAME_LIMIT_BYTES {
            let failure = operator(
                "engine.name_too_long",
                format!("the step's name has {} bytes; at most {NAME_LIMIT_BYTES} are allowed", ask.name.len()),
                "this is a fault of the program: report it",
            );
            return Err(self.block(self.new_write(), failure, None).await);
        }
        let verdict = self.verdict(ask);
        let Some(found) = self.recorded.front() else { return self.carry_over(ask, verdict).await };
        let position = self.position();
        let same_digest = found.input_digest == ask.digest;
        if found.position == position && found.kind == ask.kind && found.name == ask.name && same_digest {
            let found = self.recorded.pop_front();
            if found.as_ref().is_some_and(|row| row.failure.as_ref().is_some_and(stop::tells_of_cancel)) {
                return Err(self.told_of_cancel());
            }
            return Ok(found);
        }
        let recorded = describe(&found.kind, found.section.as_deref(), found.position, &found.name);
        let requested = describe(ask.kind, self.section.map(|section| section.name), position, ask.name);
        let (differs_by_input, place) = (recorded == requested, found.position);
        let (digest, carried_from) = (found.input_digest.clone(), found.carried_from.clone());
        let what = if differs_by_input {
            let (recorded, requested) = match (self.recorded_input(place).await, ask.input) {
                (Some(recorded), Some(requested)) => {
                    (cut(recorded, SHOWN_INPUT_BYTES), cut(requested.to_string(), SHOWN_INPUT_BYTES))
                }
                (Some(_) | None, Some(_) | None) => (digest, ask.digest.clone()),
            };
            format!("the input differs: recorded {recorded}, requested {requested}")
        } else {
            format!("recorded {recorded}, requested {requested}")
        };
        if let (Some(origin), Some(section)) = (&carried_from, self.section.filter(|_| ask.kind != kind::SECTION)) {
            let failure = carry::section_differs(section.name, origin, self.carry.as_ref(), position, &what);
            let label = self.label(ask.name);
            return Err(self.block(self.new_write(), failure, Some(label)).await);
        }
        let failure = operator(
            "engine.replay_mismatch",
            format!("at {position} the workflow does not ask for what the journal holds: {what}"),
            "go on with the program that began the run, or end this run and start a new one: \
             jobctl runs cancel RUN --reason …",
        );
        let label = self.label(ask.name);
        Err(self.block(self.new_write(), failure, Some(label)).await)
    }

    /// The input of a recorded step, to be shown; `None` where the journal does not tell.
    async fn recorded_input(&self, place: Position) -> Option<String> {
        if !self.mode.is_live() {
            return None;
        }
        let input =
            sqlx::query_scalar("SELECT input FROM step WHERE run_no = ? AND top = ? AND iteration = ? AND sub = ?")
                .bind(self.run.run_no)
                .bind(place.top)
                .bind(place.iteration)
                .bind(place.sub)
                .fetch_optional(&self.inner.readers);
        // What cannot be read is shown by its digest.
        input.await.ok().flatten().flatten()
    }

    /// A value that is recorded when the run first comes here.
    async fn value<T>(&mut self, kind: &'static str, mint: impl FnOnce(&Inner) -> T + Send) -> Result<T, Interrupt>
    where
        T: Serialize + DeserializeOwned + Send,
    {
        let ask = Ask { kind, name: kind, activity: None, input: None, digest: String::new() };
        let recorded = self.ask(&ask).await?;
        let text = match recorded.and_then(|row| row.output) {
            Some(text) => {
                self.advance();
                text
            }
            None => {
                self.before_new(&ask, None).await?;
                self.crashed = false;
                let text = serde_json::to_string(&mint(&self.inner)).map_err(|error| self.fault(&error.to_string()))?;
                let mut write = self.new_write();
                write.step = Some(self.done(&ask, Some(text.clone())));
                self.write(write).await?;
                self.advance();
                text
            }
        };
        serde_json::from_str(&text).map_err(|error| self.fault(&error.to_string()))
    }

    /// A row that is complete as soon as it is asked for.
    fn done(&self, ask: &Ask<'_>, output: Option<String>) -> StepWrite {
        let now_ms = self.inner.clock.now_ms();
        StepWrite {
            position: self.position(),
            kind: ask.kind,
            name: ask.name,
            section: self.section.map(|section| section.name),
            activity: ask.activity,
            state: StepState::Succeeded,
            input_digest: ask.digest.clone(),
            input: ask.input.cloned(),
            output,
            failure: None,
            attempt: 1,
            forgiven: 0,
            next_attempt_at_ms: None,
            started_at_ms: now_ms,
            ended_at_ms: Some(now_ms),
            duration_us: Some(0),
        }
    }

    fn decode<O: DeserializeOwned>(&self, text: &str, step: &str) -> Result<O, Failure> {
        serde_json::from_str(text).map_err(|error| {
            operator(
                "engine.output_unreadable",
                format!("the recorded output of {step} does not fit this program's type: {error}"),
                "go on with the program that began the run, or end this run and start a new one: \
                 jobctl runs cancel RUN --reason …",
            )
        })
    }
}

impl Context for EngineContext {
    async fn step<I, O>(&mut self, step: &StepDef<I, O>, input: &I) -> Result<O, Interrupt>
    where
        I: Serialize + Sync,
        O: Serialize + DeserializeOwned + Send,
    {
        let input: Arc<str> = match serde_json::to_value(input) {
            Ok(value) => canonical_json(&value).into(),
            Err(error) => {
                let failure = operator(
                    "engine.input_unwritable",
                    format!("the input of {} cannot be written as JSON: {error}", step.name),
                    "this is a fault of the program: report it",
                );
                let label = self.label(step.name);
                return Err(self.block(self.new_write(), failure, Some(label)).await);
            }
        };
        let ask = Ask {
            kind: kind::ACTIVITY,
            name: step.name,
            activity: Some(step.activity),
            digest: digest_text(&input),
            input: Some(&input),
        };
        let limits = body::Limits { retry: step.retry, timeout_ms: step.timeout_ms, silence_ms: step.silence_ms };
        let text = self.carry_out(&ask, &limits).await?;
        match self.decode(&text, step.name) {
            Ok(output) => Ok(output),
            Err(failure) => {
                let label = self.label(step.name);
                Err(self.block(self.new_write(), failure, Some(label)).await)
            }
        }
    }

    async fn now_ms(&mut self) -> Result<i64, Interrupt> {
        self.value(kind::NOW, |inner| inner.clock.now_ms()).await
    }

    async fn new_id(&mut self) -> Result<Uuid, Interrupt> {
        self.value(kind::NEW_ID, |inner| inner.clock.new_id()).await
    }

    async fn sleep_until(&mut self, name: &'static str, at_ms: i64) -> Result<(), Interrupt> {
        self.wait_until(name, at_ms).await
    }

    async fn signal<T>(&mut self, name: &'static str, deadline_at_ms: Option<i64>) -> Result<Option<T>, Interrupt>
    where
        T: Serialize + DeserializeOwned + Send,
    {
        self.wait_for_signal(name, deadline_at_ms).await
    }

    async fn child<I, O>(&mut self, def: &ChildDef<I, O>, child: &ChildStart<I>) -> Result<O, Interrupt>
    where
        I: Serialize + Sync,
        O: Serialize + DeserializeOwned + Send,
    {
        self.one_child(def, child).await
    }

    async fn fan_out<I, O>(
        &mut self,
        def: &ChildDef<I, O>,
        children: &[ChildStart<I>],
        limit: u32,
    ) -> Result<Vec<ChildEnd<O>>, Interrupt>
    where
        I: Serialize + Sync,
        O: Serialize + DeserializeOwned + Send,
    {
        self.all_children(def, children, limit).await
    }

    async fn begin_section(&mut self, name: &'static str) -> Result<u32, Interrupt> {
        if let Some(open) = self.section {
            let failure = operator(
                "engine.nested_section",
                format!("the section {name} begins within the section {}", open.name),
                "this is a fault of the program: report it",
            );
            return Err(self.block(self.new_write(), failure, Some(name.to_owned())).await);
        }
        let top = self.next_top;
        // The digest holds the name, so that another section at this place is a difference.
        let ask = Ask { kind: kind::SECTION, name, activity: None, input: None, digest: digest_text(name) };
        // A later iteration stands at another place than the first; what is compared is which section it is.
        let iteration = self.recorded.front().filter(|row| row.position.top == top && row.position.sub == 0);
        let iteration = iteration.map_or(1, |row| row.position.iteration);
        self.section = Some(Section { name, top, iteration, next_sub: 0 });
        let found = match self.ask(&ask).await {
            Ok(found) => found,
            Err(interrupt) => {
                self.section = None;
                self.next_top = top + 1;
                return Err(interrupt);
            }
        };
        // One that was carried over keeps the iteration that it had.
        let iteration = found.as_ref().map_or(iteration, |row| row.position.iteration);
        let found = found.is_some();
        let ended = self.recorded.iter().any(|row| row.position.top == top && row.kind == kind::SECTION_END);
        if found && ended {
            self.section = Some(Section { name, top, iteration, next_sub: 1 });
            return Ok(iteration);
        }
        let iteration = if found { iteration.saturating_add(1) } else { 1 };
        // Before the section stands: within it a cancel waits for its end.
        self.section = None;
        if let Some(interrupt) = self.stop_before_section(&ask, Position { top, iteration, sub: 0 }, found).await {
            return Err(interrupt);
        }
        self.crashed = false;
        if iteration > SECTION_ITERATIONS && !self.run.resumed {
            let failure = operator(
                "engine.section_restarted_too_often",
                format!("the section {name} was begun {} times and never ended", iteration - 1),
                "see why in jobctl runs show RUN; jobctl runs resume RUN begins it once more",
            );
            return Err(self.block(self.new_write(), failure, Some(name.to_owned())).await);
        }
        // All that is recorded after the beginning of a section that did not end belongs to it.
        self.recorded.clear();
        self.section = Some(Section { name, top, iteration, next_sub: 0 });
        let mut write = self.new_write();
        write.abandon_from_top = found.then_some(top);
        write.step = Some(self.done(&ask, None));
        self.write(write).await?;
        self.section = Some(Section { name, top, iteration, next_sub: 1 });
        Ok(iteration)
    }

    async fn end_section(&mut self) -> Result<(), Interrupt> {
        let Some(open) = self.section else {
            let failure = operator(
                "engine.no_section",
                "a section ends that did not begin".to_owned(),
                "this is a fault of the program: report it",
            );
            return Err(self.block(self.new_write(), failure, None).await);
        };
        let ask = Ask { kind: kind::SECTION_END, name: open.name, activity: None, input: None, digest: String::new() };
        if self.ask(&ask).await?.is_none() {
            let mut write = self.new_write();
            write.step = Some(self.done(&ask, None));
            self.write(write).await?;
        }
        self.section = None;
        self.next_top = open.top + 1;
        Ok(())
    }
}

fn describe(kind: &str, section: Option<&str>, position: Position, name: &str) -> String {
    match kind {
        kind::ACTIVITY => format!("step {} at {position}", step_label(section, position.iteration, name)),
        kind::SECTION => format!("the beginning of section {name} at {position}"),
        kind::SECTION_END => format!("the end of section {name} at {position}"),
        kind::SLEEP | kind::SIGNAL | kind::CHILD | kind::FAN_OUT => {
            format!("{kind} {} at {position}", step_label(section, position.iteration, name))
        }
        other => format!("{other} at {position}"),
    }
}

/// A failure that a person must look at.
pub(crate) fn operator(code: &str, message: String, hint: &str) -> Failure {
    bounded(Failure { code: code.to_owned(), message, disposition: Disposition::Operator, hint: Some(hint.to_owned()) })
}
