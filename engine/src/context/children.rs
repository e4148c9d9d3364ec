//! Child runs: one, or many with a limit. What the workflow asks for, what is refused, and what is recorded of the ends.

mod raise;

use std::sync::Arc;

use engine_rules::context::{ChildDef, ChildEnd, ChildStart, Interrupt};
use engine_rules::crash;
use engine_rules::digest::{canonical_json, digest_text};
use engine_rules::failure::{ActivityError as _, Disposition, Failure};
use engine_rules::limits::{
    CHILD_FAILURES_LIMIT, CHILD_MESSAGE_LIMIT_BYTES, KEY_LIMIT_BYTES, PAYLOAD_LIMIT_BYTES, check_payload, cut,
};
use engine_rules::state::{RunEvent, RunState, StepEvent, StepState};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Ask, End, EngineContext, kind, operator};
use crate::error::EngineError;
use crate::events::EventKind;
use crate::runner::family::{self, EndedChild, Place};
use crate::writer::StepWrite;

/// How many children are read at a time: their outputs are in memory once more, in what is recorded.
const ENDS_AT_A_TIME: usize = 500;

/// A child as it is to be started.
struct Seed {
    input: String,
    labels: String,
    key: Option<String>,
}

/// The children that a workflow asks for.
struct Litter {
    kind: &'static str,
    name: &'static str,
    workflow: &'static str,
    limit: u32,
    seeds: Vec<Seed>,
    /// The step's input: all of them.
    input: Arc<str>,
    /// A key, label or its value that is longer than the journal holds.
    too_long: Option<(u32, &'static str, usize)>,
}

impl Litter {
    fn new<I: Serialize, O>(
        kind: &'static str,
        def: &ChildDef<I, O>,
        children: &[ChildStart<I>],
        limit: u32,
    ) -> Result<Self, serde_json::Error> {
        let mut seeds = Vec::with_capacity(children.len());
        let mut too_long = None;
        let mut input = String::from("{\"children\":[");
        for (index, child) in (0..).zip(children) {
            let value = serde_json::to_value(child)?;
            if index > 0 {
                input.push(',');
            }
            input.push_str(&canonical_json(&value));
            let texts = child.labels.iter().flat_map(|(name, value)| [("a label", name), ("a label", value)]);
            let texts = texts.chain(child.key.iter().map(|key| ("the concurrency key", key)));
            for (what, text) in texts {
                if text.len() > KEY_LIMIT_BYTES {
                    too_long.get_or_insert((index, what, text.len()));
                }
            }
            seeds.push(Seed {
                input: canonical_json(value.get("input").unwrap_or(&Value::Null)),
                labels: canonical_json(value.get("labels").unwrap_or(&json!({}))),
                key: child.key.clone(),
            });
        }
        input.push_str("],\"workflow\":");
        input.push_str(&Value::from(def.workflow).to_string());
        input.push('}');
        let (name, workflow) = (def.name, def.workflow);
        Ok(Self { kind, name, workflow, limit, seeds, input: input.into(), too_long })
    }
}

impl EngineContext {
    pub(super) async fn one_child<I, O>(&mut self, def: &ChildDef<I, O>, child: &ChildStart<I>) -> Result<O, Interrupt>
    where
        I: Serialize + Sync,
        O: Serialize + DeserializeOwned + Send,
    {
        let litter = Litter::new(kind::CHILD, def, std::slice::from_ref(child), 1);
        self.children(def.name, litter).await
    }

    pub(super) async fn all_children<I, O>(
        &mut self,
        def: &ChildDef<I, O>,
        children: &[ChildStart<I>],
        limit: u32,
    ) -> Result<Vec<ChildEnd<O>>, Interrupt>
    where
        I: Serialize + Sync,
        O: Serialize + DeserializeOwned + Send,
    {
        let litter = Litter::new(kind::FAN_OUT, def, children, limit);
        self.children(def.name, litter).await
    }

    async fn children<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
        litter: Result<Litter, serde_json::Error>,
    ) -> Result<T, Interrupt> {
        let label = self.label(name);
        let text = match litter {
            Ok(litter) => self.litter(&litter).await?,
            Err(error) => {
                let failure = operator(
                    "engine.input_unwritable",
                    format!("the input of a child of {name} cannot be written as JSON: {error}"),
                    "this is a fault of the program: report it",
                );
                return Err(self.block(self.new_write(), failure, Some(label)).await);
            }
        };
        match self.decode(&text, &label) {
            Ok(ends) => Ok(ends),
            Err(failure) => Err(self.block(self.new_write(), failure, Some(label)).await),
        }
    }

    /// The step's output as JSON text: from the journal, or once every child has ended.
    async fn litter(&mut self, litter: &Litter) -> Result<String, Interrupt> {
        let label = self.label(litter.name);
        let ask = Ask {
            kind: litter.kind,
            name: litter.name,
            activity: None,
            digest: digest_text(&litter.input),
            input: Some(&litter.input),
        };
        if let Some(section) = self.section {
            let failure = operator(
                "engine.children_in_section",
                format!(
                    "{label} starts children within the section {}: they do not have its lock, and would outlive it",
                    section.name
                ),
                "this is a fault of the program: report it",
            );
            return Err(self.block(self.new_write(), failure, Some(label)).await);
        }
        let position = self.position();
        let found = self.ask(&ask).await?;
        if found.as_ref().is_some_and(|row| row.state.is_recorded()) {
            return self.replay(found, label, position);
        }
        if found.is_none() {
            self.before_new(&ask, None).await?;
            if let Some(failure) = self.refuses(litter, &label).await? {
                let mut row = self.done(&ask, None);
                row.state = StepState::Pending;
                row.input = None;
                return self.end_failed(row, label, failure).await;
            }
        }
        self.crashed = false;
        let mut row = self.open_wait(&ask, found.as_ref());
        let change = self.change(RunEvent::Wait)?;
        self.state = change.state;
        let mut write = self.new_write();
        write.step = Some(row.clone());
        write.run = Some(change);
        self.write(write).await?;
        row.input = None;
        self.emit(|| EventKind::StepStarted { position, step: label.clone(), attempt: 1 });
        let place = Place {
            parent: self.run.run_id,
            parent_no: self.run.run_no,
            epoch: self.run.epoch,
            position: position.to_string(),
        };
        self.raise(litter, &label, &place, &row, found.is_some()).await?;
        let ended = match litter.kind {
            kind::CHILD => self.only_end(&place).await?,
            _ => self.all_ends(&place, &label, litter.seeds.len()).await?,
        };
        match ended {
            Ok(output) => self.end_succeeded(row, label, output).await,
            Err(failure) => self.end_failed(row, label, failure).await,
        }
    }

    /// Why no child is started, where none is. What is refused once is refused on every later run too, so it is recorded.
    async fn refuses(&mut self, litter: &Litter, label: &str) -> Result<Option<Failure>, Interrupt> {
        let refusal = |code: &str, message, hint: &str| {
            let (code, hint) = (code.to_owned(), Some(hint.to_owned()));
            Ok(Some(Failure { code, message, disposition: Disposition::Terminal, hint }))
        };
        if self.cleaning {
            return refusal(
                "engine.children_in_clean_up",
                format!("the run is cancelled, so {label} starts no children"),
                "a workflow that cleans up does so in steps of its own",
            );
        }
        let size_bytes = litter.input.len();
        let children = litter.seeds.len();
        let subject = || format!("the inputs of the {children} children of {label} together");
        if let Err(error) = check_payload(subject(), size_bytes) {
            let failure = error.to_failure();
            let hint = "divide the children among several fan-outs, or write what is large to a file or an object and \
                        pass its path and digest";
            return Ok(Some(Failure { hint: Some(hint.to_owned()), ..failure }));
        }
        if let Some((index, what, size_bytes)) = litter.too_long {
            return refusal(
                "engine.text_too_long",
                format!(
                    "{what} of child {index} of {label} has {size_bytes} bytes; at most {KEY_LIMIT_BYTES} are allowed"
                ),
                "use a shorter one",
            );
        }
        if litter.seeds.iter().all(|seed| seed.key.is_none()) {
            return Ok(None);
        }
        let held = family::keys_of_family(&self.inner, self.run.run_id).await.map_err(|error| self.lost(error))?;
        for (index, seed) in litter.seeds.iter().enumerate() {
            let Some((key, holder)) = held.iter().find(|(key, _)| Some(key) == seed.key.as_ref()) else { continue };
            return refusal(
                "engine.key_held_by_family",
                format!(
                    "child {index} of {label} would wait for ever for the key {key:?}: run {holder}, which waits for \
                     it, has that key"
                ),
                "this is a fault of the program: report it",
            );
        }
        Ok(None)
    }

    /// How the one child ended: its output, or the failure of the step.
    async fn only_end(&mut self, place: &Place) -> Result<Result<String, Failure>, Interrupt> {
        let end = self.ends(place, 0, 1).await?.pop();
        let Some(end) = end else { return Err(self.fault("a child that has ended and is not in the journal")) };
        Ok(match end.state {
            RunState::Failed => Err(end.failure.unwrap_or_else(no_failure)),
            RunState::Cancelled => Err(Failure {
                code: "engine.child_cancelled".to_owned(),
                message: "the child was cancelled".to_owned(),
                disposition: Disposition::Terminal,
                hint: Some("jobctl runs show CHILD says who cancelled it, and why".to_owned()),
            }),
            RunState::Succeeded
            | RunState::Queued
            | RunState::Running
            | RunState::Waiting
            | RunState::Paused
            | RunState::Blocked => Ok(end.output.unwrap_or_else(|| "null".to_owned())),
        })
    }

    /// The ends of all, as a list of [`ChildEnd`], or that they are more than the journal holds.
    async fn all_ends(
        &mut self,
        place: &Place,
        label: &str,
        total: usize,
    ) -> Result<Result<String, Failure>, Interrupt> {
        let mut text = String::from("[");
        let (mut size_bytes, mut failures) = (2, 0);
        for first in (0..total).step_by(ENDS_AT_A_TIME) {
            for end in self.ends(place, first, (first + ENDS_AT_A_TIME).min(total)).await? {
                let one = one_end(end, &mut failures);
                size_bytes += one.len() + usize::from(size_bytes > 2);
                // What is refused is counted to its end, and not kept.
                if size_bytes <= PAYLOAD_LIMIT_BYTES {
                    if text.len() > 1 {
                        text.push(',');
                    }
                    text.push_str(&one);
                }
            }
        }
        if let Err(error) = check_payload(format!("the ends of the {total} children of {label} together"), size_bytes) {
            let failure = error.to_failure();
            let hint = "let each child write what is large to a file or an object and give its path and digest; what \
                        each gave is in jobctl runs show CHILD";
            return Ok(Err(Failure { hint: Some(hint.to_owned()), ..failure }));
        }
        text.push(']');
        Ok(Ok(text))
    }

    async fn ends(&mut self, place: &Place, first: usize, end: usize) -> Result<Vec<EndedChild>, Interrupt> {
        let ends = family::ends(&self.inner, place, first, end).await.map_err(|error| self.lost(error))?;
        let expected = first..end;
        if ends.iter().map(|end| end.index as usize).eq(expected.clone()) {
            return Ok(ends);
        }
        let label = place.position.clone();
        Err(self.missing(&label, expected.len() - ends.len().min(expected.len())).await)
    }

    /// Children are no longer in the journal: what became of them is not known, and a second body must not begin.
    async fn missing(&mut self, label: &str, missing: usize) -> Interrupt {
        let failure = operator(
            "engine.children_missing",
            format!("of the children of {label} {missing} are no longer in the journal"),
            "somebody removed them: end this run (jobctl runs cancel RUN --reason …) and start a new one",
        );
        self.block(self.new_write(), failure, Some(label.to_owned())).await
    }

    async fn end_succeeded(&mut self, row: StepWrite, label: String, output: String) -> Result<String, Interrupt> {
        crash::point("engine.result.before");
        let position = row.position;
        let duration_us = self.waited_us(&row);
        self.end_wait(row, Some(output.clone()), None).await?;
        crash::point("engine.result.after");
        self.emit(|| EventKind::StepSucceeded {
            position,
            step: label,
            attempt: 1,
            duration_us,
            output: serde_json::from_str(&output).unwrap_or(Value::Null),
        });
        Ok(output)
    }

    async fn end_failed(&mut self, mut row: StepWrite, label: String, failure: Failure) -> Result<String, Interrupt> {
        crash::point("engine.result.before");
        row.state = row.state.after(StepEvent::Fail).map_err(|fault| self.fault(&fault.to_string()))?;
        row.failure = Some(failure.clone());
        row.ended_at_ms = Some(self.inner.clock.now_ms());
        let duration_us = self.waited_us(&row);
        row.duration_us = Some(duration_us);
        let position = row.position;
        let mut write = self.new_write();
        write.step = Some(row);
        write.run = self.wake();
        self.write(write).await?;
        crash::point("engine.result.after");
        self.advance();
        self.emit(|| EventKind::StepFailed {
            position,
            step: label.clone(),
            attempt: 1,
            duration_us,
            failure: failure.clone(),
        });
        self.failed_step = Some(label);
        Err(Interrupt::Failed(failure))
    }

    fn waited_us(&self, row: &StepWrite) -> u64 {
        let waited_ms = self.inner.clock.now_ms().saturating_sub(row.started_at_ms);
        u64::try_from(waited_ms).unwrap_or(0).saturating_mul(1_000)
    }

    /// The journal cannot be asked: the run stops here and stands where it was last recorded.
    fn lost(&mut self, error: EngineError) -> Interrupt {
        self.stop(End::Engine(error))
    }
}

/// A [`ChildEnd`] as JSON text, around the output as the child gave it.
fn one_end(end: EndedChild, failures: &mut usize) -> String {
    match end.state {
        RunState::Cancelled => "\"cancelled\"".to_owned(),
        RunState::Failed => {
            *failures += 1;
            let failure = end.failure.unwrap_or_else(no_failure);
            let failure = match *failures > CHILD_FAILURES_LIMIT {
                true => Failure { message: String::new(), hint: None, ..failure },
                false => Failure { message: cut(failure.message, CHILD_MESSAGE_LIMIT_BYTES), ..failure },
            };
            json!({ "failed": failure }).to_string()
        }
        RunState::Succeeded
        | RunState::Queued
        | RunState::Running
        | RunState::Waiting
        | RunState::Paused
        | RunState::Blocked => format!("{{\"succeeded\":{}}}", end.output.as_deref().unwrap_or("null")),
    }
}

/// The journal of a run that failed always says why.
fn no_failure() -> Failure {
    Failure {
        code: "engine.corrupt".to_owned(),
        message: "the journal does not say why the child failed".to_owned(),
        disposition: Disposition::Terminal,
        hint: None,
    }
}
