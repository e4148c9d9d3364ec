//! Runs that this process carries out side by side, and where it takes them from.

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

use super::interrupted::{Interrupted, Whose};
use super::{Active, claim, interrupted, run_to_end};
use crate::BoxFuture;
use crate::catch::Caught;
use crate::context::RunHandle;
use crate::engine::{Inner, Outcome};
use crate::error::EngineError;
use crate::id::RunId;
use crate::slots::Slots;

/// How many interrupted runs are looked up at once: what is known of each is small, and there may be very many.
const FOUND_AT_ONCE: usize = 1_000;

/// How many runs one transaction takes over at most.
const TAKEN_AT_ONCE: usize = 256;

/// How soon a crew that works until nothing is left takes further runs, in milliseconds, where half of its slots do not
/// become free before.
const DRAIN_LOOK_MS: u64 = 50;

/// The longest wait before what failed is tried again, in milliseconds: ten seconds where the database failed, and five
/// minutes where it was one run, which then is damaged rather than the database.
const LONGEST_RETRY_MS: u64 = 10_000;
const LONGEST_LOST_MS: u64 = 5 * 60 * 1_000;

/// Runs of this process that an error stopped, and when each is tried again.
#[derive(Debug, Clone, Default)]
struct Lost(Arc<Mutex<HashMap<RunId, LostRun>>>);

#[derive(Debug, Clone, Copy)]
struct LostRun {
    delay_ms: u64,
    again_at_us: u64,
}

impl Lost {
    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, LostRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, run_id: RunId, first_ms: u64, now_us: u64) {
        let mut runs = self.runs();
        let delay_ms = runs.get(&run_id).map_or(first_ms, |lost| lost.delay_ms.saturating_mul(2).min(LONGEST_LOST_MS));
        runs.insert(run_id, LostRun { delay_ms, again_at_us: now_us.saturating_add(delay_ms.saturating_mul(1_000)) });
    }

    fn remove(&self, run_id: RunId) {
        self.runs().remove(&run_id);
    }

    fn is_due(&self, run_id: RunId, now_us: u64) -> bool {
        self.runs().get(&run_id).is_none_or(|lost| lost.again_at_us <= now_us)
    }

    fn any_due(&self, now_us: u64) -> bool {
        self.runs().values().any(|lost| lost.again_at_us <= now_us)
    }
}

/// Where a crew takes its runs from.
#[derive(Debug)]
pub(crate) struct Sources {
    /// `None` where interrupted runs are not looked for.
    interrupted: Option<Whose>,
    queue: bool,
    found: VecDeque<Interrupted>,
    interrupted_dry: bool,
    queue_dry: bool,
    lost: Lost,
}

impl Sources {
    pub(crate) fn new(interrupted: Option<Whose>, queue: bool) -> Self {
        let (interrupted_dry, queue_dry) = (interrupted.is_none(), !queue);
        Self { interrupted, queue, found: VecDeque::new(), interrupted_dry, queue_dry, lost: Lost::default() }
    }

    fn is_dry(&self) -> bool {
        self.interrupted_dry && self.queue_dry
    }

    /// There may be something again in the queue.
    fn look_into_queue(&mut self) {
        self.queue_dry = !self.queue;
    }

    /// There may be something again everywhere; among the runs of this process only after it lost one.
    fn look_again(&mut self, ours_too: bool) {
        self.look_into_queue();
        // What was found a while ago may have got an owner since.
        self.found.clear();
        if self.interrupted.is_some() {
            self.interrupted = Some(if ours_too { Whose::OursToo } else { Whose::Others });
            self.interrupted_dry = false;
        }
    }

    /// Nothing more, until it is looked again.
    fn rest(&mut self) {
        self.found.clear();
        (self.interrupted_dry, self.queue_dry) = (true, true);
    }

    /// Takes runs, at most `room`: interrupted ones before those that did not begin. With an error come the runs that
    /// were taken before it.
    async fn take(mut self, inner: Arc<Inner>, room: usize) -> Haul {
        let (mut taken_over, mut queued) = (Vec::new(), Vec::new());
        let result = self.fill(&inner, room, &mut taken_over, &mut queued).await;
        Haul { sources: self, taken_over, queued, result }
    }

    async fn fill(
        &mut self,
        inner: &Arc<Inner>,
        room: usize,
        taken_over: &mut Vec<Taken>,
        queued: &mut Vec<Taken>,
    ) -> Result<(), EngineError> {
        while taken_over.len() < room && !self.interrupted_dry {
            if self.found.is_empty()
                && let Some(whose) = self.interrupted
            {
                self.found = interrupted::find(inner, whose, FOUND_AT_ONCE).await?.into();
                let now_us = inner.clock.monotonic_us();
                self.found.retain(|run| self.lost.is_due(run.run_id, now_us));
            }
            let most = (room - taken_over.len()).min(TAKEN_AT_ONCE).min(self.found.len());
            let some: Vec<_> = self.found.drain(..most).collect();
            if some.is_empty() {
                self.interrupted_dry = true;
            } else {
                take_over(inner, some, taken_over).await?;
            }
        }
        let room = room.saturating_sub(taken_over.len());
        if room > 0 && !self.queue_dry {
            let _arriving = inner.arriving.read().await;
            let handles = claim::claim_queued(inner, room).await?;
            self.queue_dry = handles.is_empty();
            for handle in handles {
                match Active::enter(inner, handle.run_id, handle.control.clone()) {
                    Ok(active) => queued.push((active, handle)),
                    // Somebody here waits for this very run: it is theirs.
                    Err(_) => {
                        inner.ready().insert(handle.run_id, handle);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Takes over those of `runs` that nobody in this process drives.
async fn take_over(inner: &Arc<Inner>, runs: Vec<Interrupted>, taken: &mut Vec<Taken>) -> Result<(), EngineError> {
    // Active first, so that nobody here takes them for idle once they are this process's.
    let mut active = HashMap::new();
    for run in &runs {
        if let Ok(entered) = Active::enter(inner, run.run_id, Arc::default()) {
            active.insert(run.run_id, entered);
        }
    }
    let runs: Vec<_> = runs.into_iter().filter(|run| active.contains_key(&run.run_id)).collect();
    for handle in interrupted::take(inner, &runs).await? {
        if let Some(active) = active.remove(&handle.run_id) {
            active.listen(handle.control.clone());
            taken.push((active, handle));
        }
    }
    Ok(())
}

/// A run that is this process's, and marked as worked on.
type Taken = (Active, RunHandle);

/// What was taken.
struct Haul {
    sources: Sources,
    taken_over: Vec<Taken>,
    queued: Vec<Taken>,
    result: Result<(), EngineError>,
}

/// How a run left this process; a panic is the engine's own, because those of workflows and activities are failures.
type Landing = (RunId, Result<Result<Outcome, EngineError>, String>);

/// What a crew tells of its work.
pub(crate) enum News<'a> {
    /// So many runs of dead owners are now this process's.
    TakenOver(usize),
    /// So many runs came from the queue.
    Queued(usize),
    /// A run does not go on in this process.
    Landed(&'a Outcome),
    /// The run was stopped by this, and is tried again.
    Lost(RunId, &'a str),
    /// Runs could not be taken for now.
    Refused(&'a EngineError),
}

/// When a crew is at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// When nothing is left to be taken and all have landed, or at the first error.
    NothingLeft,
    /// Only when it is told.
    Told,
}

/// Runs in flight.
pub(crate) struct Crew {
    inner: Arc<Inner>,
    in_flight: usize,
    look_ms: u64,
    slots: Slots,
    flight: JoinSet<Landing>,
    taking: Option<BoxFuture<'static, Haul>>,
    sources: Option<Sources>,
    lost: Lost,
    /// A run landed while runs were being taken: it may have held the key of one in the queue.
    landed_since: bool,
}

impl Crew {
    pub(crate) fn new(inner: &Arc<Inner>, in_flight: usize, look_ms: u64, sources: Sources) -> Self {
        let in_flight = in_flight.max(1);
        Self {
            inner: inner.clone(),
            in_flight,
            look_ms: look_ms.max(1),
            slots: Slots::new(in_flight),
            flight: JoinSet::new(),
            taking: None,
            lost: sources.lost.clone(),
            sources: Some(sources),
            landed_since: false,
        }
    }

    /// Works until nothing is left to be taken, and answers how many runs it took. After an error nothing more is taken,
    /// and what is in flight lands first: no run is dropped in the middle of a step.
    async fn work(mut self) -> Result<u64, EngineError> {
        let mut taken = 0;
        let result = {
            let mut hear = |news: News<'_>| match news {
                News::TakenOver(count) | News::Queued(count) => taken += count as u64,
                News::Landed(_) | News::Lost(..) | News::Refused(_) => {}
            };
            let result = self.go_on(Until::NothingLeft, pending(), &mut hear).await;
            self.land_all(&mut hear).await;
            result
        };
        result.map(|()| taken)
    }

    /// Works until `told` is ready. What an error stops is tried again, later and later.
    pub(crate) async fn work_until(
        &mut self,
        told: impl Future<Output = ()> + Send,
        hear: &mut (dyn FnMut(News<'_>) + Send),
    ) {
        // Nothing ends it but `told`.
        let _ = self.go_on(Until::Told, told, hear).await;
    }

    /// Waits until all runs have landed, and takes none.
    pub(crate) async fn land_all(&mut self, hear: &mut (dyn FnMut(News<'_>) + Send)) {
        if let Some(taking) = &mut self.taking {
            let haul = taking.await;
            self.taking = None;
            let _ = self.bring_in(haul, hear);
        }
        while let Some(landed) = self.flight.join_next().await {
            if let Ok((run_id, result)) = landed {
                let _ = self.land(run_id, result, hear);
            }
        }
    }

    /// Leaves the runs that are still in flight to themselves, and answers how many they are. A step at work is not broken
    /// off: its body might go on without anybody who records it.
    pub(crate) fn leave(mut self) -> usize {
        let aloft = self.flight.len();
        self.flight.detach_all();
        aloft
    }

    async fn go_on(
        &mut self,
        until: Until,
        told: impl Future<Output = ()> + Send,
        hear: &mut (dyn FnMut(News<'_>) + Send),
    ) -> Result<(), EngineError> {
        let clock = self.inner.clock.clone();
        let mut told = std::pin::pin!(told);
        let mut tick = clock.sleep_ms(self.look_ms);
        // Taking waits until half of the slots are free, because one transaction takes many; but never for long.
        let mut is_eager = true;
        let mut retry_ms = self.look_ms;
        loop {
            let room = self.slots.free();
            if room > 0
                && (is_eager || room * 2 >= self.in_flight)
                && let Some(sources) = self.sources.take_if(|sources| !sources.is_dry())
            {
                is_eager = false;
                self.landed_since = false;
                self.taking = Some(Box::pin(sources.take(self.inner.clone(), room)));
            }
            if until == Until::NothingLeft && self.taking.is_none() && self.flight.is_empty() && room > 0 {
                return Ok(());
            }
            let Self { taking, flight, slots, .. } = self;
            tokio::select! {
                () = &mut told => return Ok(()),
                haul = async { Some(taking.as_mut()?.await) }, if taking.is_some() => {
                    self.taking = None;
                    let Some(haul) = haul else { continue };
                    match (self.bring_in(haul, hear), until) {
                        (Ok(()), _) => retry_ms = self.look_ms,
                        (Err(error), Until::NothingLeft) => return Err(error),
                        (Err(error), Until::Told) => {
                            hear(News::Refused(&error));
                            if let Some(sources) = &mut self.sources {
                                sources.rest();
                            }
                            retry_ms = retry_ms.saturating_mul(2).min(LONGEST_RETRY_MS);
                            tick = clock.sleep_ms(retry_ms);
                        }
                    }
                }
                Some(landed) = flight.join_next() => {
                    // The runtime ends: there is nothing to land any more.
                    let Ok((run_id, result)) = landed else { continue };
                    match (self.land(run_id, result, hear), until) {
                        (Ok(()), _) | (Err(_), Until::Told) => {}
                        (Err(error), Until::NothingLeft) => return Err(error),
                    }
                }
                () = slots.freed() => {}
                () = &mut tick => {
                    is_eager = true;
                    if until == Until::Told {
                        let ours_too = self.lost.any_due(clock.monotonic_us());
                        if let Some(sources) = &mut self.sources {
                            sources.look_again(ours_too);
                        }
                    }
                    tick = clock.sleep_ms(self.look_ms);
                }
            }
        }
    }

    /// Begins what was taken.
    fn bring_in(&mut self, haul: Haul, hear: &mut (dyn FnMut(News<'_>) + Send)) -> Result<(), EngineError> {
        let Haul { mut sources, taken_over, queued, result } = haul;
        if self.landed_since {
            sources.look_into_queue();
        }
        self.sources = Some(sources);
        if !taken_over.is_empty() {
            hear(News::TakenOver(taken_over.len()));
        }
        if !queued.is_empty() {
            hear(News::Queued(queued.len()));
        }
        for (active, handle) in taken_over.into_iter().chain(queued) {
            self.launch(active, handle);
        }
        result
    }

    fn launch(&mut self, active: Active, mut handle: RunHandle) {
        let run_id = handle.run_id;
        let slot = self.slots.slot();
        handle.slot = slot.clone();
        // At once, so that nothing is taken for it twice; where a run that woke was faster, in its task.
        slot.enter_now();
        self.flight.spawn(async move {
            let run = async move {
                slot.enter().await;
                run_to_end(active, handle).await
            };
            (run_id, Caught(Box::pin(run)).await)
        });
    }

    /// Tells how a run left; the error that stopped it, where one did.
    fn land(
        &mut self,
        run_id: RunId,
        result: Result<Result<Outcome, EngineError>, String>,
        hear: &mut (dyn FnMut(News<'_>) + Send),
    ) -> Result<(), EngineError> {
        self.landed_since = true;
        if let Some(sources) = &mut self.sources {
            sources.look_into_queue();
        }
        let (why, error) = match result {
            Ok(Ok(outcome)) => {
                self.lost.remove(run_id);
                hear(News::Landed(&outcome));
                return Ok(());
            }
            Ok(Err(error)) => (error.to_string(), error),
            Err(panic) => (format!("a panic of the engine: {panic}"), EngineError::Closed),
        };
        self.lost.add(run_id, self.look_ms, self.inner.clock.monotonic_us());
        hear(News::Lost(run_id, &why));
        Err(error)
    }
}

/// Takes runs from the queue and carries them out until none is left that could begin.
pub(crate) async fn drain(inner: &Arc<Inner>, in_flight: usize) -> Result<u64, EngineError> {
    Crew::new(inner, in_flight, DRAIN_LOOK_MS, Sources::new(None, true)).work().await
}

/// Takes over what is interrupted and carries it out.
pub(crate) async fn recover(inner: &Arc<Inner>, in_flight: usize) -> Result<u64, EngineError> {
    Crew::new(inner, in_flight, DRAIN_LOOK_MS, Sources::new(Some(Whose::OursToo), false)).work().await
}
