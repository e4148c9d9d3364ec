//! Where a run stops before its next step: because a person ends or holds it, or because this process is to end.

use engine_rules::context::Interrupt;
use engine_rules::crash;
use engine_rules::failure::{Disposition, Failure};
use engine_rules::position::Position;
use engine_rules::state::{RunEvent, StepEvent, StepState};

use super::{Ask, End, EngineContext};
use crate::db::patient;
use crate::error::storage;
use crate::journal::Recorded;
use crate::writer::{RunChange, RunWrite, StepWrite};

/// The code of the failure that tells a workflow, now and in every later run, where it was cancelled.
const CANCELLED: &str = "engine.cancelled";

/// Whether a recorded failure is not the step's own, but tells that the run was cancelled there.
pub(crate) fn tells_of_cancel(failure: &Failure) -> bool {
    failure.code == CANCELLED
}

/// What is recorded of a step at which the run was cancelled.
fn cancelled_at(why: String) -> Failure {
    Failure { code: CANCELLED.to_owned(), message: why, disposition: Disposition::Terminal, hint: None }
}

impl EngineContext {
    /// Whether the run was cancelled and its workflow is to be told here: not within a section, and once.
    pub(super) fn must_tell_of_cancel(&self) -> bool {
        self.section.is_none() && !self.cleaning && self.run.control.is_cancelled()
    }

    /// Whether anything stops the run before its next step. Nothing does within a section.
    pub(super) fn must_stop(&self) -> bool {
        let asked = || self.run.control.is_paused() && !self.run.control.is_cancelled();
        self.section.is_none() && (self.must_tell_of_cancel() || self.inner.draining.is_cancelled() || asked())
    }

    /// Called before anything that has no result yet: `found` is what the journal holds of it.
    ///
    /// # Errors
    /// Where the run stops here: with what that means recorded.
    pub(super) async fn before_new(&mut self, ask: &Ask<'_>, found: Option<&Recorded>) -> Result<(), Interrupt> {
        if !self.mode.is_live() {
            return Err(self.rehearsed(ask));
        }
        if self.must_tell_of_cancel() {
            let mut row = self.done(ask, None);
            if let Some(found) = found {
                row.state = found.state;
                row.attempt = found.attempt;
                row.forgiven = found.forgiven;
                row.started_at_ms = found.started_at_ms;
                row.input = None;
            } else {
                row.state = StepState::Pending;
            }
            return Err(self.tell_of_cancel(row, "the run was cancelled before this step".to_owned()).await);
        }
        match self.stop_here().await {
            Some(interrupt) => Err(interrupt),
            None => Ok(()),
        }
    }

    /// The same before an iteration of a section; `found` tells whether an earlier one did not end.
    pub(super) async fn stop_before_section(
        &mut self,
        ask: &Ask<'_>,
        position: Position,
        found: bool,
    ) -> Option<Interrupt> {
        if !self.mode.is_live() {
            return Some(self.rehearsed(ask));
        }
        if !self.must_tell_of_cancel() {
            return self.stop_here().await;
        }
        self.recorded.clear();
        let row = StepWrite { position, state: StepState::Pending, ..self.done(ask, None) };
        let mut write = self.new_write();
        write.abandon_from_top = found.then_some(position.top);
        Some(self.tell_with(write, row, "the run was cancelled before this section".to_owned()).await)
    }

    /// Stops where a person holds the run or this process is to end.
    pub(super) async fn stop_here(&mut self) -> Option<Interrupt> {
        if !self.must_stop() {
            return None;
        }
        if self.inner.draining.is_cancelled() {
            return Some(self.release().await);
        }
        // A cancel that came just now: what begins next is told of it.
        if self.must_tell_of_cancel() {
            return None;
        }
        let change = match self.change(RunEvent::Pause) {
            Ok(change) => change,
            Err(interrupt) => return Some(interrupt),
        };
        let mut write = self.new_write();
        write.run = Some(change);
        if let Err(interrupt) = self.write(write).await {
            return Some(interrupt);
        }
        match self.is_to_end().await {
            Ok(false) => Some(self.stop(End::Paused)),
            Ok(true) => None,
            Err(interrupt) => Some(interrupt),
        }
    }

    /// Whether a person ended the run, also where this process has not heard of it: asked once the run was to stop for a
    /// person. From then on it has heard.
    pub(super) async fn is_to_end(&mut self) -> Result<bool, Interrupt> {
        let (inner, run_no) = (self.inner.clone(), self.run.run_no);
        let asked = patient(inner.clock.as_ref(), || {
            sqlx::query_scalar("SELECT cancel_requested_at_ms IS NOT NULL FROM run WHERE run_no = ?")
                .bind(run_no)
                .fetch_one(&inner.readers)
        });
        let is_to_end: bool =
            asked.await.map_err(|error| self.stop(End::Engine(storage("ask whether the run is to end")(error))))?;
        if is_to_end {
            self.run.control.cancel();
        }
        Ok(is_to_end)
    }

    /// Gives the run back: whoever comes first takes it over.
    async fn release(&mut self) -> Interrupt {
        let mut write = self.new_write();
        write.run = Some(RunChange { is_released: true, ..RunChange::to(self.state) });
        match self.write(write).await {
            Ok(()) => self.stop(End::Released),
            Err(interrupt) => interrupt,
        }
    }

    /// Records at the step `row` that the run was cancelled there. From now on the workflow cleans up.
    pub(super) async fn tell_of_cancel(&mut self, row: StepWrite, why: String) -> Interrupt {
        let write = self.new_write();
        self.tell_with(write, row, why).await
    }

    async fn tell_with(&mut self, mut write: RunWrite, mut row: StepWrite, why: String) -> Interrupt {
        row.state = match row.state.after(StepEvent::Fail) {
            Ok(state) => state,
            Err(fault) => return self.fault(&fault.to_string()),
        };
        row.failure = Some(cancelled_at(why));
        row.next_attempt_at_ms = None;
        row.ended_at_ms = Some(self.inner.clock.now_ms());
        row.duration_us = Some(row.duration_us.unwrap_or(0));
        write.step = Some(row);
        if let Some(wake) = self.wake() {
            write.run = Some(wake);
        }
        match self.write(write).await {
            Ok(()) => self.told_of_cancel(),
            Err(interrupt) => interrupt,
        }
    }

    /// The workflow is told, and goes on from the place after this one.
    pub(super) fn told_of_cancel(&mut self) -> Interrupt {
        self.advance();
        self.crashed = false;
        self.cleaning = true;
        Interrupt::Cancelled
    }

    /// The change that lets a waiting run go on; `None` where it does not wait.
    pub(super) fn wake(&mut self) -> Option<RunChange> {
        let state = self.state.after(RunEvent::Wake).ok()?;
        self.state = state;
        Some(RunChange::to(state))
    }

    /// Whether the workflow was told of a cancel, so that the run ends as cancelled whatever it returned.
    pub(crate) fn is_cleaning(&self) -> bool {
        self.cleaning
    }

    /// Records that the run ends as cancelled, with what else is to be recorded.
    pub(crate) async fn end_cancelled(
        &mut self,
        mut write: RunWrite,
        failure: Option<Failure>,
        failed_step: Option<String>,
    ) -> Interrupt {
        let mut change = match self.change(RunEvent::Cancel) {
            Ok(change) => change,
            Err(interrupt) => return interrupt,
        };
        change.ended_at_ms = Some(self.inner.clock.now_ms());
        change.failure = failure;
        change.failed_step = failed_step;
        write.run = Some(change);
        crash::point("engine.run_end.before");
        match self.write(write).await {
            Ok(()) => {
                crash::point("engine.run_end.after");
                self.stop(End::Cancelled)
            }
            Err(interrupt) => interrupt,
        }
    }
}
