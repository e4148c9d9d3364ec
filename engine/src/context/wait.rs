//! What a run waits for: a time, a signal.

use std::sync::Arc;

use engine_rules::context::Interrupt;
use engine_rules::crash;
use engine_rules::digest::{canonical_json, digest_text};
use engine_rules::state::{RunEvent, StepEvent, StepState};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use sqlx::Row as _;

use super::{Ask, EngineContext, kind};
use crate::db::patient;
use crate::error::storage;
use crate::journal::Recorded;
use crate::writer::StepWrite;

/// How long a run that waits for a time goes without a look at the clock, in milliseconds: a machine that was asleep, or
/// whose clock was set, is noticed so soon.
const CLOCK_LOOK_MS: u64 = 1_000;

/// How long a run that waits for a signal goes without a look at the journal, in milliseconds, should a word of it have
/// been lost.
const SIGNAL_LOOK_MS: u64 = 5_000;

impl EngineContext {
    /// Waits until `at_ms`.
    pub(super) async fn wait_until(&mut self, name: &'static str, at_ms: i64) -> Result<(), Interrupt> {
        let input: Arc<str> = canonical_json(&json!({ "until_at_ms": at_ms })).into();
        let ask = Ask { kind: kind::SLEEP, name, activity: None, digest: digest_text(&input), input: Some(&input) };
        let Some(mut row) = self.begin_wait(&ask, Some(at_ms)).await? else { return Ok(()) };
        loop {
            let left_ms = at_ms.saturating_sub(self.inner.clock.now_ms());
            let Ok(left_ms @ 1..) = u64::try_from(left_ms) else { break };
            self.wait_a_while(&mut row, left_ms.min(CLOCK_LOOK_MS)).await?;
        }
        self.end_wait(row, None, None).await
    }

    /// Waits for the signal `name`, and takes it.
    pub(super) async fn wait_for_signal<T>(
        &mut self,
        name: &'static str,
        deadline_at_ms: Option<i64>,
    ) -> Result<Option<T>, Interrupt>
    where
        T: Serialize + DeserializeOwned + Send,
    {
        let input: Arc<str> = canonical_json(&json!({ "deadline_at_ms": deadline_at_ms })).into();
        let ask = Ask { kind: kind::SIGNAL, name, activity: None, digest: digest_text(&input), input: Some(&input) };
        let label = self.label(name);
        let text = match self.begin_wait(&ask, deadline_at_ms).await {
            Ok(Some(row)) => self.take_signal(row, name, deadline_at_ms).await?,
            Ok(None) => self.replayed.take(),
            Err(interrupt) => return Err(interrupt),
        };
        let Some(text) = text else { return Ok(None) };
        match self.decode(&text, &label) {
            Ok(payload) => Ok(payload),
            Err(failure) => Err(self.block(self.new_write(), failure, Some(label)).await),
        }
    }

    async fn take_signal(
        &mut self,
        mut row: StepWrite,
        name: &'static str,
        deadline_at_ms: Option<i64>,
    ) -> Result<Option<String>, Interrupt> {
        loop {
            if let Some((signal_no, payload)) = self.open_signal(name).await? {
                self.end_wait(row, Some(payload.clone()), Some(signal_no)).await?;
                return Ok(Some(payload));
            }
            let left_ms = deadline_at_ms.map(|at_ms| at_ms.saturating_sub(self.inner.clock.now_ms()));
            if left_ms.is_some_and(|left_ms| left_ms <= 0) {
                self.end_wait(row, None, None).await?;
                return Ok(None);
            }
            let left_ms = left_ms.and_then(|left_ms| u64::try_from(left_ms).ok());
            let most_ms = left_ms.map_or(SIGNAL_LOOK_MS, |left_ms| left_ms.min(CLOCK_LOOK_MS));
            self.wait_a_while(&mut row, most_ms).await?;
        }
    }

    /// The oldest signal `name` that no step took.
    async fn open_signal(&mut self, name: &str) -> Result<Option<(i64, String)>, Interrupt> {
        let inner = self.inner.clone();
        let run_no = self.run.run_no;
        let row = patient(inner.clock.as_ref(), || {
            sqlx::query(
                "SELECT signal_no, payload FROM signal WHERE run_no = ? AND name = ? AND taken_at_ms IS NULL \
                 ORDER BY signal_no LIMIT 1",
            )
            .bind(run_no)
            .bind(name)
            .fetch_optional(&inner.readers)
        });
        let read = async {
            let Some(row) = row.await? else { return Ok(None) };
            Ok(Some((row.try_get(0)?, row.try_get(1)?)))
        };
        read.await.map_err(|error| self.stop(super::End::Engine(storage("look for signals")(error))))
    }

    /// Looks the wait up in the journal, and records its beginning where it is new. `None` when it has ended before: what
    /// it gave is in `replayed`.
    pub(super) async fn begin_wait(
        &mut self,
        ask: &Ask<'_>,
        due_at_ms: Option<i64>,
    ) -> Result<Option<StepWrite>, Interrupt> {
        let found = self.ask(ask).await?;
        if let Some(row) = found.as_ref().filter(|row| row.state.is_recorded()) {
            self.replayed.clone_from(&row.output);
            self.advance();
            return Ok(None);
        }
        self.before_new(ask, found.as_ref()).await?;
        self.crashed = false;
        let mut row = self.open_wait(ask, found.as_ref());
        row.next_attempt_at_ms = due_at_ms;
        let mut change = self.change(RunEvent::Wait)?;
        change.wake_at_ms = due_at_ms;
        self.state = change.state;
        let mut write = self.new_write();
        write.step = Some(row.clone());
        write.run = Some(change);
        crash::point("engine.wait_begin.before");
        self.write(write).await?;
        crash::point("engine.wait_begin.after");
        self.run.slot.leave();
        row.input = None;
        Ok(Some(row))
    }

    fn open_wait(&self, ask: &Ask<'_>, found: Option<&Recorded>) -> StepWrite {
        let mut row = self.done(ask, None);
        row.state = StepState::Running;
        row.ended_at_ms = None;
        row.duration_us = None;
        if let Some(found) = found {
            row.started_at_ms = found.started_at_ms;
            row.input = None;
        }
        row
    }

    /// Waits at most `most_ms`, less where there is news.
    ///
    /// # Errors
    /// Where the run is to stop: with what that means recorded.
    pub(super) async fn wait_a_while(&mut self, row: &mut StepWrite, most_ms: u64) -> Result<(), Interrupt> {
        if !self.must_stop() {
            let inner = self.inner.clone();
            // In a section the wait does not end with the drain, so it must not be looked at again and again.
            let heeds_drain = self.section.is_none();
            tokio::select! {
                () = inner.clock.sleep_ms(most_ms) => {}
                () = self.run.control.news.notified() => {}
                () = inner.draining.cancelled(), if heeds_drain => {}
            }
        }
        if self.must_tell_of_cancel() {
            self.stand_in_line().await;
            let why = "the run was cancelled while it waited".to_owned();
            return Err(self.tell_of_cancel(row.clone(), why).await);
        }
        match self.stop_here().await {
            Some(interrupt) => Err(interrupt),
            None => Ok(()),
        }
    }

    /// Waits for a slot to go on with. `false` where the run is to stop first, for which it needs none.
    pub(super) async fn stand_in_line(&self) -> bool {
        loop {
            if self.must_stop() && !self.must_tell_of_cancel() {
                return false;
            }
            let heeds_drain = self.section.is_none() && !self.inner.draining.is_cancelled();
            tokio::select! {
                biased;
                () = self.run.slot.enter() => return true,
                () = self.run.control.news.notified() => {}
                () = self.inner.draining.cancelled(), if heeds_drain => {}
            }
        }
    }

    /// Records what the wait gave; the run goes on.
    pub(super) async fn end_wait(
        &mut self,
        mut row: StepWrite,
        output: Option<String>,
        take_signal: Option<i64>,
    ) -> Result<(), Interrupt> {
        if !self.stand_in_line().await
            && let Some(interrupt) = self.stop_here().await
        {
            return Err(interrupt);
        }
        row.state = row.state.after(StepEvent::Succeed).map_err(|fault| self.fault(&fault.to_string()))?;
        let now_ms = self.inner.clock.now_ms();
        row.output = output;
        row.ended_at_ms = Some(now_ms);
        let waited_ms = u64::try_from(now_ms.saturating_sub(row.started_at_ms)).unwrap_or(0);
        row.duration_us = Some(waited_ms.saturating_mul(1_000));
        let mut write = self.new_write();
        write.step = Some(row);
        write.take_signal = take_signal;
        write.run = self.wake();
        crash::point("engine.wait_end.before");
        self.write(write).await?;
        crash::point("engine.wait_end.after");
        self.advance();
        Ok(())
    }
}
