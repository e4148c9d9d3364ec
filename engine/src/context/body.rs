//! Carrying out a step: its attempts, and what is recorded of each.

use std::sync::Arc;

use engine_rules::context::Interrupt;
use engine_rules::crash;
use engine_rules::failure::{ActivityError as _, Failure};
use engine_rules::limits::check_payload;
use engine_rules::position::Position;
use engine_rules::recovery::{OpenRecord, OpenStep, StepPlan, plan_step};
use engine_rules::retry::{AfterFailure, RetryPolicy};
use engine_rules::state::{IllegalTransition, RunEvent, StepEvent, StepState};
use serde_json::Value;

use super::attempt::{Attempted, Ended};
use super::{Ask, EngineContext, operator};
use crate::events::EventKind;
use crate::journal::Recorded;
use crate::registry::ActivityHandler;
use crate::writer::{AttemptWrite, RunWrite, StepWrite};

/// From which delay on a run that waits for its next attempt is told as waiting, in milliseconds: shorter ones are over
/// before anybody looks.
const WAITING_FROM_MS: u64 = 1_000;

/// What limits the attempts of a step.
pub(super) struct Limits {
    pub retry: RetryPolicy,
    pub timeout_ms: Option<u64>,
    pub silence_ms: Option<u64>,
}

/// A step that is being carried out.
pub(super) struct Live {
    pub label: String,
    pub row: StepWrite,
    /// Whether the row is in the journal, with its input.
    pub written: bool,
}

impl Live {
    fn go(&mut self, event: StepEvent) -> Result<(), IllegalTransition> {
        self.row.state = self.row.state.after(event)?;
        Ok(())
    }

    /// The row as it is to be written: the input only once.
    pub fn row(&self) -> StepWrite {
        let mut row = self.row.clone();
        if self.written {
            row.input = None;
        }
        row
    }
}

impl EngineContext {
    /// The output of the step as JSON text: from the journal, or from its body.
    pub(super) async fn carry_out(&mut self, ask: &Ask<'_>, limits: &Limits) -> Result<String, Interrupt> {
        let policy = &limits.retry;
        let found = self.ask(ask).await?;
        if found.as_ref().is_none_or(|row| !row.state.is_recorded()) {
            self.before_new(ask, found.as_ref()).await?;
        }
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
                self.attempts(live, handler, limits, attempt, wait_ms).await
            }
        }
    }

    /// Attempt after attempt, until the step has a result or the run stops here.
    async fn attempts(
        &mut self,
        mut live: Live,
        handler: ActivityHandler,
        limits: &Limits,
        mut attempt: u32,
        mut wait_ms: u64,
    ) -> Result<String, Interrupt> {
        let policy = &limits.retry;
        let input = live.row.input.clone().unwrap_or_else(|| Arc::from("null"));
        loop {
            self.wait(wait_ms).await;
            if self.must_tell_of_cancel() {
                let why = format!("the run was cancelled before attempt {attempt}");
                return Err(self.tell_of_cancel(live.row(), why).await);
            }
            if let Some(interrupt) = self.stop_here().await {
                return Err(interrupt);
            }
            live.row.attempt = attempt;
            live.row.started_at_ms = self.inner.clock.now_ms();
            live.row.next_attempt_at_ms = None;
            live.row.failure = None;
            self.legal(live.go(StepEvent::Start))?;
            let position = live.row.position;
            self.emit(|| EventKind::StepStarted { position, step: live.label.clone(), attempt });
            let Attempted { ended, duration_us, ended_at_ms } =
                self.attempt(&mut live, &handler, input.clone(), limits).await?;
            crash::point("engine.result.before");
            live.row.ended_at_ms = Some(ended_at_ms);
            live.row.duration_us = Some(duration_us);
            let (failure, outcome) = match ended {
                Ended::Returned(Ok(output)) => return self.succeed(live, output).await,
                Ended::Returned(Err(failure)) => (failure, "failed"),
                Ended::GivenUp(failure) => (failure, "timed_out"),
            };
            if self.must_tell_of_cancel() {
                let why = format!("the run was cancelled during attempt {attempt}: {}", failure.message);
                return Err(self.tell_of_cancel(live.row(), why).await);
            }
            let used = attempt.saturating_sub(live.row.forgiven);
            match policy.after_failure(used, failure.disposition, self.inner.clock.chance()) {
                AfterFailure::Fail => return self.fail(live, failure).await,
                AfterFailure::Block => return Err(self.block_at(live, failure, outcome).await),
                AfterFailure::Again { delay_ms } => {
                    self.record_retry(&mut live, failure, outcome, delay_ms).await?;
                    attempt = attempt.saturating_add(1);
                    wait_ms = delay_ms;
                }
            }
        }
    }

    /// Waits, but not longer than until the run is to stop.
    async fn wait(&self, wait_ms: u64) {
        if wait_ms == 0 || self.must_stop() {
            return;
        }
        self.run.slot.leave();
        self.sleep(wait_ms).await;
        self.stand_in_line().await;
    }

    async fn sleep(&self, wait_ms: u64) {
        let inner = &self.inner;
        let mut sleep = std::pin::pin!(inner.clock.sleep_ms(wait_ms));
        loop {
            tokio::select! {
                () = &mut sleep => return,
                () = self.run.control.news.notified() => {}
                () = inner.draining.cancelled() => {}
            }
            if self.must_stop() {
                return;
            }
            if inner.draining.is_cancelled() {
                // Within a section: the step goes on, and nothing is to be heard of the drain again.
                return sleep.await;
            }
        }
    }

    pub(super) fn replay(
        &mut self,
        found: Option<Recorded>,
        label: String,
        position: Position,
    ) -> Result<String, Interrupt> {
        let Some(row) = found else { return Err(self.fault("a recorded step without a record")) };
        self.advance();
        let (duration_us, carried_from) = (row.duration_us, row.carried_from);
        self.emit(|| EventKind::StepReplayed { position, step: label.clone(), duration_us, carried_from });
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

    async fn record_retry(
        &mut self,
        live: &mut Live,
        failure: Failure,
        outcome: &'static str,
        delay_ms: u64,
    ) -> Result<(), Interrupt> {
        self.legal(live.go(StepEvent::Retry))?;
        let due = self.inner.clock.now_ms().saturating_add(i64::try_from(delay_ms).unwrap_or(i64::MAX));
        live.row.next_attempt_at_ms = Some(due);
        live.row.failure = Some(failure.clone());
        let mut write = self.new_write();
        write.attempt = Some(ended_attempt(&live.row, outcome));
        write.step = Some(live.row());
        if delay_ms >= WAITING_FROM_MS {
            let mut change = self.change(RunEvent::Wait)?;
            change.wake_at_ms = Some(due);
            self.state = change.state;
            write.run = Some(change);
        }
        self.write(write).await?;
        crash::point("engine.result.after");
        live.written = true;
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

    /// The attempt failed and a person must act before the next.
    async fn block_at(&mut self, mut live: Live, failure: Failure, outcome: &'static str) -> Interrupt {
        if let Err(interrupt) = self.legal(live.go(StepEvent::Retry)) {
            return interrupt;
        }
        live.row.failure = Some(failure.clone());
        let mut write = self.new_write();
        write.attempt = Some(ended_attempt(&live.row, outcome));
        write.step = Some(live.row());
        self.emit_failed(&live, &failure);
        let interrupt = self.block(write, failure, Some(live.label)).await;
        crash::point("engine.result.after");
        interrupt
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
