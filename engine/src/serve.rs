//! The daemon's loop: carries out what waits in the queue and what dead processes left, until it is told to end.

use std::sync::Arc;

use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::BoxFuture;
use crate::catch::Caught;
use crate::engine::{Engine, Outcome};
use crate::error::EngineError;
use crate::runner::Whose;
use crate::runner::crew::{Crew, News, Sources};

/// How soon what is called over and over is called again at the earliest, in milliseconds.
const SOONEST_MS: u64 = 10;

/// How soon it is called again after it failed, in milliseconds, where its interval is longer.
const AGAIN_MS: u64 = 10_000;

/// How [`Engine::serve`] works.
#[derive(Debug)]
pub struct ServeOptions {
    /// How many runs are at work at once at most. Runs that wait for a time, a signal, a child or their next attempt do
    /// not count.
    pub in_flight: usize,
    /// How often the queue and the runs of other processes are looked at, in milliseconds.
    pub look_ms: u64,
    /// How long the steps at work may take to end once it is told to end, in milliseconds.
    pub grace_ms: u64,
    /// What else is done meanwhile, such as starting what the schedules say.
    pub every: Vec<Periodic>,
}

impl ServeOptions {
    /// So many runs at once; a look every 250 ms, so that a dead process's runs go on within a second; and half a minute
    /// for the steps at work at the end.
    #[must_use]
    pub fn new(in_flight: usize) -> Self {
        Self { in_flight, look_ms: 250, grace_ms: 30_000, every: Vec::new() }
    }

    /// The same with something that is done over and over.
    #[must_use]
    pub fn every(mut self, periodic: Periodic) -> Self {
        self.every.push(periodic);
        self
    }
}

type Work = Arc<dyn Fn(Engine) -> BoxFuture<'static, Result<Option<u64>, EngineError>> + Send + Sync>;

/// Something that [`Engine::serve`] does over and over, beside its runs and beside the others of its kind. It is never
/// called twice at once in one process; several processes may call theirs at the same time.
pub struct Periodic {
    name: &'static str,
    interval_ms: u64,
    work: Work,
}

impl Periodic {
    /// Calls `work` at once and then again each time after so many milliseconds, or earlier where it answers after how
    /// many. An error or a panic is logged, and it is called again after the interval or ten seconds.
    pub fn new<F, R>(name: &'static str, interval_ms: u64, work: F) -> Self
    where
        F: Fn(Engine) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Option<u64>, EngineError>> + Send + 'static,
    {
        Self { name, interval_ms, work: Arc::new(move |engine| Box::pin(work(engine))) }
    }

    async fn repeat(self, engine: Engine, mut stop: watch::Receiver<bool>) {
        let clock = engine.0.clock.clone();
        loop {
            let (work, engine) = (self.work.clone(), engine.clone());
            let called: BoxFuture<'_, _> = Box::pin(async move { work(engine).await });
            let next_ms = match Caught(called).await {
                Ok(Ok(next_ms)) => next_ms.unwrap_or(self.interval_ms).min(self.interval_ms),
                Ok(Err(error)) => {
                    tracing::warn!(%error, what = self.name, "it failed, and is tried again");
                    self.interval_ms.min(AGAIN_MS)
                }
                Err(panic) => {
                    tracing::error!(%panic, what = self.name, "its code panicked, and is tried again");
                    self.interval_ms.min(AGAIN_MS)
                }
            };
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = clock.sleep_ms(next_ms.max(SOONEST_MS)) => {}
            }
        }
    }
}

impl std::fmt::Debug for Periodic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Periodic")
            .field("name", &self.name)
            .field("interval_ms", &self.interval_ms)
            .finish_non_exhaustive()
    }
}

/// What [`Engine::serve`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct ServeReport {
    /// Runs that came from the queue.
    pub taken: u64,
    /// Runs that a dead process left, or that one gave back.
    pub taken_over: u64,
    /// Runs that ended with an output.
    pub succeeded: u64,
    /// Runs that ended with a failure.
    pub failed: u64,
    /// Runs that a person must look at.
    pub blocked: u64,
    /// Runs that a person ended.
    pub cancelled: u64,
    /// Runs that a person holds.
    pub paused: u64,
    /// Runs that were given back at the end: whoever comes first goes on with them.
    pub given_back: u64,
    /// Runs that another process took over.
    pub fenced: u64,
    /// Runs that were still at work at the end: the next owner goes on with them.
    pub left: u64,
}

impl ServeReport {
    fn hear(&mut self, news: &News<'_>) {
        match news {
            News::Queued(count) => self.taken += *count as u64,
            News::TakenOver(count) => self.taken_over += *count as u64,
            News::Landed(outcome) => match outcome {
                Outcome::Succeeded(_) => self.succeeded += 1,
                Outcome::Failed { .. } => self.failed += 1,
                Outcome::Blocked { .. } => self.blocked += 1,
                Outcome::Cancelled => self.cancelled += 1,
                Outcome::Paused => self.paused += 1,
                Outcome::Released => self.given_back += 1,
                Outcome::Fenced => self.fenced += 1,
            },
            News::Lost(run_id, why) => tracing::error!(%run_id, why, "a run was stopped, and is taken up again"),
            News::Refused(error) => {
                let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
                tracing::warn!(%error, cause, "runs cannot be taken for now, and it is tried again");
            }
        }
    }
}

impl Engine {
    /// Carries out the runs in the queue, oldest first and within their keys, and those that dead processes left, within a
    /// second of their death; as many at once as `options` say. Several processes may serve one state. An error of the
    /// database is logged and waited out. A slot belongs to the run that is at work, in memory, so its end gives it back
    /// whatever that end is.
    ///
    /// Once `shutdown` is ready nothing more is taken, each run stops before its next step and is given back, and the
    /// steps at work have `options.grace_ms` to end; what is at work longer goes on until this process ends and is the
    /// next owner's then. [`Engine::close`] is the caller's.
    ///
    /// # Errors
    /// [`EngineError::Closed`] when the writer of this process has stopped, so that nothing can be recorded any more.
    pub async fn serve(
        &self,
        options: ServeOptions,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<ServeReport, EngineError> {
        let clock = self.0.clock.clone();
        let (stop, stopped) = watch::channel(false);
        let mut periodics = JoinSet::new();
        for periodic in options.every {
            periodics.spawn(periodic.repeat(self.clone(), stopped.clone()));
        }
        let mut report = ServeReport::default();
        let closed = Notify::new();
        let mut is_closed = false;
        let mut hear = |news: News<'_>| {
            if let News::Refused(EngineError::Closed) = news {
                is_closed = true;
                closed.notify_one();
            }
            report.hear(&news);
        };
        // Runs of this process that nobody drives as it begins are left from an error: no life is older than this.
        let sources = Sources::new(Some(Whose::OursToo), true);
        let mut crew = Crew::new(&self.0, options.in_flight, options.look_ms, sources);
        let told = async {
            tokio::select! {
                () = shutdown => {}
                () = closed.notified() => {}
            }
        };
        crew.work_until(told, &mut hear).await;
        let _ = stop.send(true);
        self.begin_drain();
        tokio::select! {
            () = async {
                crew.land_all(&mut hear).await;
                while periodics.join_next().await.is_some() {}
            } => {}
            () = clock.sleep_ms(options.grace_ms) => {}
        }
        let left = crew.leave();
        if is_closed {
            return Err(EngineError::Closed);
        }
        report.left = left as u64;
        Ok(report)
    }
}
