//! One attempt of a step: its body, and what ends it before its time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use engine_rules::activity::{ActivityContext, Beat, BeatSink, CancelToken, Progress};
use engine_rules::context::Interrupt;
use engine_rules::crash;
use engine_rules::failure::{Disposition, Failure};
use engine_rules::position::Position;
use engine_rules::recovery::start_comes_first;
use serde_json::json;
use tokio::task::JoinHandle;

use super::body::{Limits, Live};
use super::{End, EngineContext, operator};
use crate::catch::Caught;
use crate::error::WriteError;
use crate::events::{Event, EventKind};
use crate::registry::{ActivityHandler, panicked};
use crate::writer::{BeatWrite, RunWrite};

/// How often progress is told to those who watch in this process at most: every 50 ms, which is as fast as a person sees.
const PROGRESS_EVERY_US: u64 = 50_000;

/// How often a sign of life goes into the journal, in milliseconds: for a person who watches from another process.
const BEAT_EVERY_MS: u64 = 1_000;

/// How an attempt ended.
pub(super) struct Attempted {
    pub ended: Ended,
    pub duration_us: u64,
    pub ended_at_ms: i64,
}

pub(super) enum Ended {
    /// Its body gave this.
    Returned(Result<String, Failure>),
    /// It was given up: its time was up, or it did not end when it was told to. What its body gives is not looked at.
    GivenUp(Failure),
}

/// Why a body was told to stop.
enum Told {
    /// The run is cancelled, or is no longer this process's.
    Stop,
    /// Its time is up.
    TimeIsUp(Failure),
}

/// The signs of life of one attempt.
struct Beats {
    last_us: AtomicU64,
    progress: Mutex<Option<Progress>>,
}

impl EngineContext {
    /// One attempt: the body, and beside it the record that it began. For the first attempt of several that record may
    /// come late, or never where the result is there first.
    pub(super) async fn attempt(
        &mut self,
        live: &mut Live,
        handler: &ActivityHandler,
        input: Arc<str>,
        limits: &Limits,
    ) -> Result<Attempted, Interrupt> {
        let clock = self.inner.clock.clone();
        let attempt = live.row.attempt;
        let grace_ms = self.inner.stop_grace_ms;
        // Cancel waits for the end of a section, and does not stop what cleans up after it.
        let is_shielded = self.section.is_some() || self.cleaning;
        let cancel = if is_shielded { CancelToken::new() } else { self.run.control.cancel.clone() };
        // Its own, so that the end of its time is not the end of the run.
        let token = CancelToken::new();
        if cancel.is_cancelled() {
            token.cancel();
        }
        let began_us = clock.monotonic_us();
        let beats = Arc::new(Beats { last_us: AtomicU64::new(began_us), progress: Mutex::new(None) });
        let sink = self.beat_sink(live.row.position, &live.label, beats.clone());
        let context =
            ActivityContext::new(self.run.run_id.to_string(), live.label.clone(), attempt, token.clone(), sink);
        let mut start = RunWrite::new(self.run.run_no, self.run.epoch);
        start.step = Some(live.row());
        start.run = self.wake();
        let mut start = Some(start);
        if start_comes_first(&limits.retry, attempt)
            && let Some(start) = start.take()
        {
            crash::point("engine.step_start.before");
            self.write(start).await?;
            crash::point("engine.step_start.after");
            live.written = true;
        }
        let mut body = Box::pin(Caught((handler.function)(context, input)));
        let mut recording: Option<JoinHandle<Result<(), WriteError>>> = None;
        let mut told: Option<(Told, u64)> = None;
        let mut beat_ms = BEAT_EVERY_MS;
        let mut lost: Option<WriteError> = None;
        let ended = loop {
            let past_ms = clock.monotonic_us().saturating_sub(began_us) / 1_000;
            let silent_ms = clock.monotonic_us().saturating_sub(beats.last_us.load(Ordering::Relaxed)) / 1_000;
            let left = |limit_ms: Option<u64>, past_ms: u64| limit_ms.map(|limit| limit.saturating_sub(past_ms));
            let waits = match &told {
                Some((_, since_ms)) => [Some((since_ms + grace_ms).saturating_sub(past_ms)), None],
                None => [left(limits.timeout_ms, past_ms), left(limits.silence_ms, silent_ms)],
            };
            let next_ms = if start.is_some() { self.inner.start_behind_ms } else { beat_ms.saturating_sub(past_ms) };
            let wait_ms = waits.into_iter().flatten().fold(next_ms, u64::min).max(1);
            tokio::select! {
                // The body first: where it is done at once no timer is made.
                biased;
                result = &mut body => break Ended::Returned(result.unwrap_or_else(|panic| Err(panicked(&panic)))),
                written = async { recording.as_mut()?.await.ok() }, if recording.is_some() => {
                    recording = None;
                    match written {
                        Some(Ok(())) => live.written = true,
                        Some(Err(error)) => {
                            // Nothing that the body still does can be recorded.
                            lost = Some(error);
                            token.cancel();
                            told.get_or_insert((Told::Stop, past_ms));
                        }
                        None => {}
                    }
                }
                () = cancel.cancelled(), if told.is_none() => {
                    token.cancel();
                    told = Some((Told::Stop, past_ms));
                }
                () = clock.sleep_ms(wait_ms) => {}
            }
            let past_ms = clock.monotonic_us().saturating_sub(began_us) / 1_000;
            if past_ms >= self.inner.start_behind_ms
                && let Some(start) = start.take()
            {
                let writer = self.inner.writer.clone();
                recording = Some(tokio::spawn(async move {
                    crash::point("engine.step_start.before");
                    let written = writer.write(start).await;
                    if written.is_ok() {
                        crash::point("engine.step_start.after");
                    }
                    written
                }));
            }
            if past_ms >= beat_ms && start.is_none() {
                beat_ms = past_ms + BEAT_EVERY_MS;
                self.record_beat(live.row.position, attempt, &beats, &token);
            }
            match &told {
                None => {
                    let silent_us = clock.monotonic_us().saturating_sub(beats.last_us.load(Ordering::Relaxed));
                    if let Some(failure) = time_is_up(&live.label, limits, past_ms, silent_us / 1_000) {
                        token.cancel();
                        told = Some((Told::TimeIsUp(failure), past_ms));
                    }
                }
                Some((why, since_ms)) if past_ms >= since_ms + grace_ms => match (why, handler.is_blocking) {
                    (Told::Stop, false) => break Ended::GivenUp(dropped(&live.label, grace_ms)),
                    (Told::TimeIsUp(failure), false) => break Ended::GivenUp(failure.clone()),
                    // Nothing ends a thread from outside. A cancelled run waits for it; where its time is up, a further
                    // body must not begin beside it, so a person is told.
                    (Told::Stop, true) => told = Some((Told::Stop, past_ms)),
                    (Told::TimeIsUp(failure), true) => break Ended::GivenUp(endless(&live.label, failure, grace_ms)),
                },
                Some(_) => {}
            }
        };
        // A late result is no result.
        let ended = match (ended, told) {
            (Ended::Returned(_), Some((Told::TimeIsUp(failure), _))) => Ended::GivenUp(failure),
            (ended, _) => ended,
        };
        if let Some(recording) = recording {
            match recording.await {
                Ok(Ok(())) => live.written = true,
                Ok(Err(error)) => lost = Some(error),
                Err(_) => {}
            }
        }
        match lost {
            Some(WriteError::Fenced) => return Err(self.stop(End::Fenced)),
            Some(WriteError::Engine(error)) => return Err(self.stop(End::Engine(error))),
            None => {}
        }
        let duration_us = clock.monotonic_us().saturating_sub(began_us);
        Ok(Attempted { ended, duration_us, ended_at_ms: clock.now_ms() })
    }

    /// Puts the last sign of life into the journal, beside the body. A run that was taken over learns of it so.
    fn record_beat(&self, position: Position, attempt: u32, beats: &Beats, token: &CancelToken) {
        let progress = beats.progress.lock().unwrap_or_else(PoisonError::into_inner).take();
        let progress = progress.map(|it| json!({ "unit": it.unit, "done": it.done, "total": it.total }).to_string());
        let mut write = self.new_write();
        write.beat = Some(BeatWrite { position, attempt, at_ms: self.inner.clock.now_ms(), progress });
        let (writer, token) = (self.inner.writer.clone(), token.clone());
        tokio::spawn(async move {
            match writer.write(write).await {
                Ok(()) | Err(WriteError::Engine(_)) => {}
                Err(WriteError::Fenced) => token.cancel(),
            }
        });
    }

    /// Notes each sign of life, and tells of progress, but not more often than a person sees; the last word, all of it
    /// done, always.
    fn beat_sink(&self, position: Position, label: &str, beats: Arc<Beats>) -> BeatSink {
        let events = self.inner.events.clone();
        let (clock, run_id, step) = (self.inner.clock.clone(), self.run.run_id, label.to_owned());
        let told_us = AtomicU64::new(0);
        Arc::new(move |beat| {
            let now_us = clock.monotonic_us();
            beats.last_us.store(now_us, Ordering::Relaxed);
            let progress = match beat {
                Beat::Alive => return,
                Beat::Progress(progress) => progress,
            };
            *beats.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(progress.clone());
            if events.receiver_count() == 0 {
                return;
            }
            let last = told_us.load(Ordering::Relaxed);
            let complete = progress.total == Some(progress.done);
            if !complete && last != 0 && now_us.saturating_sub(last) < PROGRESS_EVERY_US {
                return;
            }
            told_us.store(now_us.max(1), Ordering::Relaxed);
            let kind = EventKind::StepProgress { position, step: step.clone(), progress };
            let _ = events.send(Event { run_id, at_ms: clock.now_ms(), kind });
        })
    }
}

/// The codes of the failures of an attempt that was over a limit.
const TIMED_OUT: &str = "engine.step_timed_out";
const SILENT: &str = "engine.step_silent";

/// Whether a failure is not the body's, but tells that its time was up.
pub(crate) fn tells_of_time(failure: &Failure) -> bool {
    failure.code == TIMED_OUT || failure.code == SILENT
}

/// The failure of an attempt that is over one of its limits.
fn time_is_up(label: &str, limits: &Limits, past_ms: u64, silent_ms: u64) -> Option<Failure> {
    let (code, message) = match (limits.timeout_ms, limits.silence_ms) {
        (Some(limit_ms), _) if past_ms >= limit_ms => (
            TIMED_OUT,
            format!("an attempt of {label} may take {limit_ms} ms, and this one was still at work after {past_ms} ms"),
        ),
        (_, Some(limit_ms)) if silent_ms >= limit_ms => {
            (SILENT, format!("{label} must give a sign of life every {limit_ms} ms, and gave none for {silent_ms} ms"))
        }
        (Some(_) | None, Some(_) | None) => return None,
    };
    Some(Failure { code: code.to_owned(), message, disposition: Disposition::Retry, hint: None })
}

fn dropped(label: &str, grace_ms: u64) -> Failure {
    Failure {
        code: "engine.body_dropped".to_owned(),
        message: format!("{label} was told to stop and was still at work {grace_ms} ms later, so it was dropped"),
        disposition: Disposition::Retry,
        hint: None,
    }
}

fn endless(label: &str, failure: &Failure, grace_ms: u64) -> Failure {
    operator(
        "engine.body_does_not_end",
        format!(
            "{}; it was told to stop and still runs {grace_ms} ms later. A second body of {label} must not begin \
             beside it",
            failure.message
        ),
        "end the process that works on it (jobctl runs show RUN names it), then: jobctl runs resume RUN",
    )
}
