//! Carrying out a step: its attempts, and what is recorded of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine_rules::activity::{ActivityContext, CancelToken, ProgressSink};
use engine_rules::context::Interrupt;
use engine_rules::crash;
use engine_rules::failure::{ActivityError as _, Failure};
use engine_rules::limits::check_payload;
use engine_rules::position::Position;
use engine_rules::recovery::{OpenRecord, OpenStep, StepPlan, plan_step, start_comes_first};
use engine_rules::retry::{AfterFailure, RetryPolicy};
use engine_rules::state::{IllegalTransition, StepEvent, StepState};
use serde_json::Value;

use super::{Ask, EngineContext, operator};
use crate::catch::Caught;
use crate::error::WriteError;
use crate::events::{Event, EventKind};
use crate::journal::Recorded;
use crate::registry::{ActivityHandler, panicked};
use crate::writer::{AttemptWrite, RunWrite, StepWrite};

/// How often progress is told at most: every 50 ms, which is as fast as a person sees.
const PROGRESS_EVERY_US: u64 = 50_000;

/// How often a step that waits for its next attempt looks whether the run was cancelled, in milliseconds.
const CANCEL_LOOK_MS: u64 = 200;

/// A step that is being carried out.
struct Live {
    label: String,
    row: StepWrite,
    /// Whether the row is in the journal, with its input.
    written: bool,
}

impl Live {
    fn go(&mut self, event: StepEvent) -> Result<(), IllegalTransition> {
        self.row.state = self.row.state.after(event)?;
        Ok(())
    }

    /// The row as it is to be written: the input only once.
    fn row(&self) -> StepWrite {
        let mut row = self.row.clone();
        if self.written {
            row.input = None;
        }
        row
    }
}

/// How an attempt ended.
struct Attempted {
    result: Result<String, Failure>,
    duration_us: u64,
    ended_at_ms: i64,
}

impl EngineContext {
    /// The output of the step as JSON text: from the journal, or from its body.
    pub(super) async fn carry_out(&mut self, ask: &Ask<'_>, policy: &RetryPolicy) -> Result<String, Interrupt> {
        let found = self.ask(ask).await?;
        let label = self.label(ask.name);
        let position = self.position();
        let plan = plan_step(
            OpenStep { recorded: found.as_ref().map(open_record), crashed: self.crashed },
            policy,
            self.inner.clock.now_ms(),
        );
        let mut live = Live { label, row: self.open_row(ask, found.as_ref()), written: found.is_some() };
        match plan {
            StepPlan::Recorded => self.replay(found, live.label, position),
            StepPlan::Exhausted { lost } => {
                self.crashed = false;
                return Err(self.exhausted(live, lost, found.as_ref()).await);
            }
            StepPlan::Attempt { attempt, lost, wait_ms } => {
                self.crashed = false;
                let size_bytes = ask.input.map_or(0, |input| input.len());
                if let Err(refused) = check_payload(format!("the input of {}", live.label), size_bytes) {
                    live.row.input = None;
                    return self.refuse(live, refused.to_failure()).await;
                }
                let Some(handler) = ask.activity.and_then(|name| self.inner.registry.find_activity(name)) else {
                    let failure = operator(
                        "engine.activity_missing",
                        format!("this program has no activity {}", ask.activity.unwrap_or(ask.name)),
                        "go on with a program that has it: jobctl runs resume RUN",
                    );
                    let label = live.label;
                    return Err(self.block(self.new_write(), failure, Some(label)).await);
                };
                if let Some(lost) = lost {
                    self.record_lost(&mut live, lost, found.as_ref()).await?;
                }
                self.attempts(live, handler, policy, attempt, wait_ms).await
            }
        }
    }

    /// Attempt after attempt, until the step has a result or the run stops here.
    async fn attempts(
        &mut self,
        mut live: Live,
        handler: ActivityHandler,
        policy: &RetryPolicy,
        mut attempt: u32,
        mut wait_ms: u64,
    ) -> Result<String, Interrupt> {
        let input = live.row.input.clone().unwrap_or_else(|| Arc::from("null"));
        loop {
            self.wait(wait_ms).await;
            if self.must_stop() {
                return Err(self.cancelled(self.new_write()).await);
            }
            live.row.attempt = attempt;
            live.row.started_at_ms = self.inner.clock.now_ms();
            live.row.next_attempt_at_ms = None;
            live.row.failure = None;
            self.legal(live.go(StepEvent::Start))?;
            let position = live.row.position;
            self.emit(|| EventKind::StepStarted { position, step: live.label.clone(), attempt });
            let attempted = self.attempt(&mut live, &handler, input.clone(), policy).await?;
            crash::point("engine.result.before");
            live.row.ended_at_ms = Some(attempted.ended_at_ms);
            live.row.duration_us = Some(attempted.duration_us);
            let failure = match attempted.result {
                Ok(output) => return self.succeed(live, output).await,
                Err(failure) => failure,
            };
            if self.must_stop() {
                return Err(self.stop_at(live, failure).await);
            }
            let used = attempt.saturating_sub(live.row.forgiven);
            match policy.after_failure(used, failure.disposition, self.inner.clock.chance()) {
                AfterFailure::Fail => return self.fail(live, failure).await,
                AfterFailure::Block => return Err(self.block_at(live, failure).await),
                AfterFailure::Again { delay_ms } => {
                    self.record_retry(&mut live, failure, delay_ms).await?;
                    attempt = attempt.saturating_add(1);
                    wait_ms = delay_ms;
                }
            }
        }
    }

    /// Waits, but not longer than a person who cancels.
    async fn wait(&self, mut wait_ms: u64) {
        while wait_ms > 0 && !self.must_stop() {
            let part_ms = wait_ms.min(CANCEL_LOOK_MS);
            self.inner.clock.sleep_ms(part_ms).await;
            wait_ms -= part_ms;
        }
    }

    /// One attempt: the body, and beside it the record that it began. For the first attempt of several that record may
    /// come late, or never where the result is there first.
    async fn attempt(
        &mut self,
        live: &mut Live,
        handler: &ActivityHandler,
        input: Arc<str>,
        policy: &RetryPolicy,
    ) -> Result<Attempted, Interrupt> {
        let inner = self.inner.clone();
        let attempt = live.row.attempt;
        // Cancel waits for the end of a section, so its steps have a token of their own.
        let cancel = if self.section.is_some() { CancelToken::new() } else { self.run.cancel.clone() };
        let context = ActivityContext::new(
            self.run.run_id.to_string(),
            live.label.clone(),
            attempt,
            cancel.clone(),
            self.progress_sink(live.row.position, &live.label),
        );
        let mut start = RunWrite::new(self.run.run_no, self.run.epoch);
        start.step = Some(live.row());
        let behind = !start_comes_first(policy, attempt);
        if !behind {
            crash::point("engine.step_start.before");
            self.write(start).await?;
            crash::point("engine.step_start.after");
            live.written = true;
            return Ok(self.body(handler, context, input).await);
        }
        let mut body = std::pin::pin!(self.body(handler, context, input));
        let first = tokio::select! {
            // The body first: where it is done at once no timer is made.
            biased;
            attempted = &mut body => Some(attempted),
            () = async { inner.clock.sleep_ms(inner.start_behind_ms).await } => None,
        };
        if let Some(attempted) = first {
            return Ok(attempted);
        }
        let record = async {
            crash::point("engine.step_start.before");
            let written = inner.writer.write(start).await;
            if written.is_err() {
                // Nothing that the body still does can be recorded.
                cancel.cancel();
            } else {
                crash::point("engine.step_start.after");
            }
            written
        };
        let (written, attempted) = tokio::join!(record, &mut body);
        match written {
            Ok(()) => {
                live.written = true;
                Ok(attempted)
            }
            Err(WriteError::Fenced) => Err(self.stop(super::End::Fenced)),
            Err(WriteError::Engine(error)) => Err(self.stop(super::End::Engine(error))),
        }
    }

    /// The body itself, timed.
    fn body(
        &self,
        handler: &ActivityHandler,
        context: ActivityContext,
        input: Arc<str>,
    ) -> impl Future<Output = Attempted> + Send + use<> {
        let clock = self.inner.clock.clone();
        let body = Caught(handler(context, input));
        async move {
            let began_us = clock.monotonic_us();
            let result = body.await.unwrap_or_else(|panic| Err(panicked(&panic)));
            let duration_us = clock.monotonic_us().saturating_sub(began_us);
            Attempted { result, duration_us, ended_at_ms: clock.now_ms() }
        }
    }

    fn replay(&mut self, found: Option<Recorded>, label: String, position: Position) -> Result<String, Interrupt> {
        let Some(row) = found else { return Err(self.fault("a recorded step without a record")) };
        self.advance();
        let duration_us = row.duration_us;
        self.emit(|| EventKind::StepReplayed { position, step: label.clone(), duration_us });
        match row.failure {
            Some(failure) => {
                self.failed_step = Some(label);
                Err(Interrupt::Failed(failure))
            }
            None => Ok(row.output.unwrap_or_else(|| "null".to_owned())),
        }
    }

    async fn succeed(&mut self, mut live: Live, output: String) -> Result<String, Interrupt> {
        self.legal(live.go(StepEvent::Succeed))?;
        live.row.output = Some(output.clone());
        self.commit_result(&live).await?;
        let (position, attempt) = (live.row.position, live.row.attempt);
        let duration_us = live.row.duration_us.unwrap_or(0);
        self.emit(|| EventKind::StepSucceeded {
            position,
            step: live.label,
            attempt,
            duration_us,
            output: serde_json::from_str(&output).unwrap_or(Value::Null),
        });
        Ok(output)
    }

    async fn fail(&mut self, mut live: Live, failure: Failure) -> Result<String, Interrupt> {
        self.legal(live.go(StepEvent::Fail))?;
        live.row.failure = Some(failure.clone());
        self.commit_result(&live).await?;
        self.emit_failed(&live, &failure);
        self.failed_step = Some(live.label);
        Err(Interrupt::Failed(failure))
    }

    /// A step that fails before any attempt.
    async fn refuse(&mut self, mut live: Live, failure: Failure) -> Result<String, Interrupt> {
        live.row.ended_at_ms = Some(live.row.started_at_ms);
        live.row.duration_us = Some(0);
        self.fail(live, failure).await
    }

    async fn commit_result(&mut self, live: &Live) -> Result<(), Interrupt> {
        let mut write = self.new_write();
        write.step = Some(live.row());
        self.write(write).await?;
        crash::point("engine.result.after");
        self.advance();
        Ok(())
    }

    async fn record_retry(&mut self, live: &mut Live, failure: Failure, delay_ms: u64) -> Result<(), Interrupt> {
        self.legal(live.go(StepEvent::Retry))?;
        let due = self.inner.clock.now_ms().saturating_add(i64::try_from(delay_ms).unwrap_or(i64::MAX));
        live.row.next_attempt_at_ms = Some(due);
        self.commit_attempt(live, "failed", &failure).await?;
        let (position, attempt) = (live.row.position, live.row.attempt);
        let duration_us = live.row.duration_us.unwrap_or(0);
        self.emit(|| EventKind::StepRetrying {
            position,
            step: live.label.clone(),
            attempt,
            duration_us,
            failure,
            delay_ms,
        });
        live.row.ended_at_ms = None;
        live.row.duration_us = None;
        Ok(())
    }

    async fn commit_attempt(
        &mut self,
        live: &mut Live,
        outcome: &'static str,
        failure: &Failure,
    ) -> Result<(), Interrupt> {
        live.row.failure = Some(failure.clone());
        let mut write = self.new_write();
        write.attempt = Some(ended_attempt(&live.row, outcome));
        write.step = Some(live.row());
        self.write(write).await?;
        crash::point("engine.result.after");
        live.written = true;
        Ok(())
    }

    /// The attempt failed and a person must act before the next.
    async fn block_at(&mut self, mut live: Live, failure: Failure) -> Interrupt {
        if let Err(interrupt) = self.legal(live.go(StepEvent::Retry)) {
            return interrupt;
        }
        live.row.failure = Some(failure.clone());
        let mut write = self.new_write();
        write.attempt = Some(ended_attempt(&live.row, "failed"));
        write.step = Some(live.row());
        self.emit_failed(&live, &failure);
        let interrupt = self.block(write, failure, Some(live.label)).await;
        crash::point("engine.result.after");
        interrupt
    }

    /// The attempt stopped because the run is to end.
    async fn stop_at(&mut self, mut live: Live, failure: Failure) -> Interrupt {
        if let Err(interrupt) = self.legal(live.go(StepEvent::Retry)) {
            return interrupt;
        }
        live.row.failure = Some(failure);
        let mut write = self.new_write();
        write.attempt = Some(ended_attempt(&live.row, "cancelled"));
        write.step = Some(live.row());
        self.cancelled(write).await
    }

    /// Records the attempt that died with its process.
    async fn record_lost(&mut self, live: &mut Live, lost: u32, found: Option<&Recorded>) -> Result<(), Interrupt> {
        let write = self.lost_write(live, lost, found)?;
        self.write(write).await?;
        live.written = true;
        Ok(())
    }

    fn lost_write(&mut self, live: &mut Live, lost: u32, found: Option<&Recorded>) -> Result<RunWrite, Interrupt> {
        self.legal(live.go(StepEvent::Crash))?;
        live.row.attempt = lost;
        let mut write = self.new_write();
        write.attempt = Some(AttemptWrite {
            position: live.row.position,
            attempt: lost,
            outcome: "crashed",
            failure: None,
            started_at_ms: found.map(|row| row.started_at_ms),
            ended_at_ms: None,
            duration_us: None,
        });
        write.step = Some(live.row());
        Ok(write)
    }

    async fn exhausted(&mut self, mut live: Live, lost: Option<u32>, found: Option<&Recorded>) -> Interrupt {
        let write = match lost {
            None => self.new_write(),
            Some(lost) => match self.lost_write(&mut live, lost, found) {
                Ok(write) => write,
                Err(interrupt) => return interrupt,
            },
        };
        let attempts = live.row.attempt;
        let failure = operator(
            "engine.attempts_crashed",
            format!("the process ended during attempt {attempts} of {}, the last that its policy allows", live.label),
            "see what ended it (memory, a kill, power); jobctl runs resume RUN tries the step again",
        );
        self.emit_failed(&live, &failure);
        self.block(write, failure, Some(live.label)).await
    }

    fn open_row(&self, ask: &Ask<'_>, found: Option<&Recorded>) -> StepWrite {
        let mut row = self.done(ask, None);
        row.state = found.map_or(StepState::Pending, |found| found.state);
        row.attempt = found.map_or(1, |found| found.attempt);
        row.forgiven = found.map_or(0, |found| found.forgiven);
        row.ended_at_ms = None;
        row.duration_us = None;
        row
    }

    fn legal(&mut self, transition: Result<(), IllegalTransition>) -> Result<(), Interrupt> {
        transition.map_err(|fault| self.fault(&fault.to_string()))
    }

    fn emit_failed(&self, live: &Live, failure: &Failure) {
        self.emit(|| EventKind::StepFailed {
            position: live.row.position,
            step: live.label.clone(),
            attempt: live.row.attempt,
            duration_us: live.row.duration_us.unwrap_or(0),
            failure: failure.clone(),
        });
    }

    /// Tells of progress, but not more often than a person sees; the last word, all of it done, always.
    fn progress_sink(&self, position: Position, label: &str) -> ProgressSink {
        let events = self.inner.events.clone();
        if events.receiver_count() == 0 {
            return Arc::new(|_| {});
        }
        let (clock, run_id, step) = (self.inner.clock.clone(), self.run.run_id, label.to_owned());
        let last_us = AtomicU64::new(0);
        Arc::new(move |progress| {
            let now_us = clock.monotonic_us();
            let last = last_us.load(Ordering::Relaxed);
            let complete = progress.total == Some(progress.done);
            if !complete && last != 0 && now_us.saturating_sub(last) < PROGRESS_EVERY_US {
                return;
            }
            last_us.store(now_us.max(1), Ordering::Relaxed);
            let kind = EventKind::StepProgress { position, step: step.clone(), progress };
            let _ = events.send(Event { run_id, at_ms: clock.now_ms(), kind });
        })
    }
}

fn open_record(row: &Recorded) -> OpenRecord {
    OpenRecord {
        state: row.state,
        attempt: row.attempt,
        forgiven: row.forgiven,
        next_attempt_at_ms: row.next_attempt_at_ms,
    }
}

fn ended_attempt(row: &StepWrite, outcome: &'static str) -> AttemptWrite {
    AttemptWrite {
        position: row.position,
        attempt: row.attempt,
        outcome,
        failure: row.failure.clone(),
        started_at_ms: Some(row.started_at_ms),
        ended_at_ms: row.ended_at_ms,
        duration_us: row.duration_us,
    }
}
