//! A store that fails as stores do (DESIGN §7), for tests: by a script, or by chance from a seed.
//!
//! It wraps any [`Store`]. A call fails before anything is done, or after; its answer is dropped; the store commits and
//! answers 500; a write lands long after its client gave up; a client is killed between two calls. Whatever is done is
//! written down, and something else may be made to happen just before or after a call: another writer, at that point.

mod script;
#[cfg(test)]
mod tests;
mod turns;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use catalog_rules::instant::Instant;

use super::{Answer, Delete, Guard, Listing, Store, StoreError};
use crate::lock::LockError;
use script::Line;
pub use script::{Act, Call, CallKind, Chance, Fault, Hook, Late, Odds, On};
use turns::Turns;

/// The server's side of a simulated store, shared by its clients.
pub struct Simulated {
    inner: Arc<dyn Store>,
    takes_lock: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    script: Vec<Line>,
    chance: Option<(Chance, Odds)>,
    killed: Vec<usize>,
    under_way: Vec<UnderWay>,
    advanced_ms: i64,
    turns: Option<Arc<Turns>>,
}

/// A write whose client gave up.
struct UnderWay {
    write: Write,
    lands: Lands,
}

enum Lands {
    AtCall(usize),
    AtMs(i64),
}

/// A write as it is sent.
#[derive(Clone)]
enum Write {
    Create(String, Bytes),
    Replace(String, Option<Bytes>, Bytes),
    Delete(String),
    DeleteIf(String, Bytes),
}

impl Write {
    /// Carries the write out, for nobody who waits.
    fn land(&self, store: &dyn Store) {
        let outcome = match self {
            Self::Create(path, bytes) => store.create_once(path, bytes).map(|_| ()),
            Self::Replace(path, expected, bytes) => store.replace_once(path, expected.as_ref(), bytes).map(|_| ()),
            Self::Delete(path) => store.delete(path).map(|_| ()),
            Self::DeleteIf(path, expected) => store.delete_if(path, expected).map(|_| ()),
        };
        if let Err(error) = outcome {
            tracing::warn!(%error, "a late write did not land");
        }
    }
}

impl Simulated {
    /// A store over `inner` that does as `inner` does until it is told otherwise.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { inner, takes_lock: true, state: Mutex::default() })
    }

    /// The same, whose clients take no lock: somebody who does not keep to the protocol, or a store without one.
    #[must_use]
    pub fn without_lock(inner: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { inner, takes_lock: false, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client of this store.
    #[must_use]
    pub fn client(self: &Arc<Self>, client: usize) -> Arc<dyn Store> {
        Arc::new(Client { server: Arc::clone(self), client })
    }

    /// The store that is wrapped, where nothing fails and nothing is counted.
    #[must_use]
    pub fn inner(&self) -> &Arc<dyn Store> {
        &self.inner
    }

    /// Does `act` at the call of number `nth`, from 0 and counted from now on, among those that `on` means. Lines are
    /// independent of each other; the first line with a fault decides what becomes of a call.
    pub fn at(&self, on: On, nth: usize, act: Act) {
        self.state().script.push(Line { on, skip: nth, act: Some(act) });
    }

    /// Fails by chance from now on, the same way for the same seed and the same calls. A script goes before chance.
    pub fn fail_by_chance(&self, seed: u64, odds: Odds) {
        self.state().chance = Some((Chance::new(seed), odds));
    }

    /// Fails no more: no script, no chance. What is under way stays so.
    pub fn calm(&self) {
        let mut state = self.state();
        state.script.clear();
        state.chance = None;
        state.killed.clear();
    }

    /// Whether every line of the script was reached.
    #[must_use]
    pub fn is_played(&self) -> bool {
        self.state().script.iter().all(|line| line.act.is_none())
    }

    /// Lets a client that was killed call again, as its next process.
    pub fn revive(&self, client: usize) {
        self.state().killed.retain(|killed| *killed != client);
    }

    /// Moves the store's time on. What is late by its time lands.
    pub fn advance_ms(&self, ms: i64) {
        self.state().advanced_ms += ms;
        self.land_due();
    }

    /// Everything that is under way lands now, in the order in which it was sent.
    pub fn land_all(&self) {
        let landing: Vec<_> = self.state().under_way.drain(..).collect();
        landing.iter().for_each(|late| late.write.land(self.inner.as_ref()));
    }

    /// How many writes are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.state().under_way.len()
    }

    /// The calls so far.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// How many calls so far `on` means.
    #[must_use]
    pub fn count(&self, on: &On) -> usize {
        self.state().calls.iter().filter(|call| on.is(call.kind, &call.path)).count()
    }

    /// Runs `jobs` at once, each as a client of its own by its number. One of them runs at a time, and the seed decides
    /// at every call who goes on, so that the same seed is the same race. For stores without a lock: whoever waits for
    /// one would keep its turn.
    ///
    /// # Panics
    /// When a job does.
    pub fn race<T: Send>(self: &Arc<Self>, seed: u64, jobs: Vec<Job<'_, T>>) -> Vec<T> {
        let turns = Arc::new(Turns::new(seed, jobs.len()));
        self.state().turns = Some(Arc::clone(&turns));
        let outcomes = std::thread::scope(|scope| {
            let threads: Vec<_> = jobs
                .into_iter()
                .enumerate()
                .map(|(n, job)| {
                    let (store, turns) = (self.client(n), Arc::clone(&turns));
                    scope.spawn(move || {
                        turns.enter(n);
                        let _leaves = Leaves(&turns, n);
                        job(store)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
        });
        self.state().turns = None;
        outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    }

    fn land_due(&self) {
        let Ok(now) = self.inner.now() else { return };
        let landing: Vec<_> = {
            let mut state = self.state();
            let (calls, now_ms) = (state.calls.len(), now.as_ms() + state.advanced_ms);
            let due = |late: &mut UnderWay| match late.lands {
                Lands::AtCall(call) => call <= calls,
                Lands::AtMs(ms) => ms <= now_ms,
            };
            state.under_way.extract_if(.., due).collect()
        };
        landing.iter().for_each(|late| late.write.land(self.inner.as_ref()));
    }

    /// Writes a call down and does what the script has for it before it. Gives its fault, and what is to be done after.
    fn begin(&self, client: usize, kind: CallKind, path: &str) -> (Option<Fault>, Vec<Hook>) {
        let turns = self.state().turns.clone();
        if let Some(turns) = turns {
            turns.pass(client);
        }
        self.land_due();
        let (mut before, mut after, mut fault) = (Vec::new(), Vec::new(), None);
        {
            let mut state = self.state();
            let state = &mut *state;
            for line in state.script.iter_mut().filter(|line| line.act.is_some() && line.on.is(kind, path)) {
                if line.skip > 0 {
                    line.skip -= 1;
                    continue;
                }
                match line.act.take() {
                    Some(Act::Fault(found)) => fault = fault.or(Some(found)),
                    Some(Act::Before(hook)) => before.push(hook),
                    Some(Act::After(hook)) => after.push(hook),
                    None => {}
                }
            }
            // What has no way to fail is not made to.
            let spared = matches!(kind, CallKind::Now | CallKind::Prepare | CallKind::Lock);
            if let (None, Some((chance, odds)), false) = (fault, &mut state.chance, spared) {
                fault = chance.fault(kind, odds);
            }
            if state.killed.contains(&client) {
                fault = Some(Fault::Killed);
            } else if matches!(fault, Some(Fault::Killed | Fault::KilledAfter)) {
                state.killed.push(client);
            }
            let n = state.calls.len();
            state.calls.push(Call { n, client, kind, path: path.to_owned(), fault });
        }
        before.into_iter().for_each(|hook| hook(&self.inner));
        (fault, after)
    }

    fn send_late(&self, write: Write, late: Late) -> Result<(), StoreError> {
        let now_ms = self.inner.now()?.as_ms();
        let mut state = self.state();
        let lands = match late {
            Late::Calls(calls) => Lands::AtCall(state.calls.len() + calls),
            Late::Ms(ms) => Lands::AtMs(now_ms + state.advanced_ms + ms),
        };
        state.under_way.push(UnderWay { write, lands });
        Ok(())
    }
}

/// What one of those who race does.
pub type Job<'a, T> = Box<dyn FnOnce(Arc<dyn Store>) -> T + Send + 'a>;

struct Leaves<'a>(&'a Turns, usize);

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

/// One client of a simulated store.
struct Client {
    server: Arc<Simulated>,
    client: usize,
}

fn lost(kind: CallKind, path: &str) -> StoreError {
    let operation = match kind {
        CallKind::Get => "read",
        CallKind::Create => "create",
        CallKind::Replace => "replace",
        CallKind::Delete | CallKind::DeleteIf => "delete",
        CallKind::List => "list",
        CallKind::Now => "ask for the time, at",
        CallKind::Persist => "sync",
        CallKind::Prepare => "prepare",
        CallKind::Lock => "lock",
    };
    let source = io::Error::new(io::ErrorKind::ConnectionReset, "the simulated connection was lost");
    StoreError::Io { operation, path: path.to_owned(), source }
}

impl Client {
    /// A call that changes nothing: it is done, or it fails.
    fn look<T>(
        &self,
        kind: CallKind,
        path: &str,
        look: impl FnOnce(&dyn Store) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (fault, after) = self.server.begin(self.client, kind, path);
        let outcome = match fault {
            None => look(self.server.inner.as_ref()),
            Some(_) => Err(lost(kind, path)),
        };
        after.into_iter().for_each(|hook| hook(&self.server.inner));
        outcome
    }

    /// A call that changes something. `taken` is the answer of a client that met its own work, `unknown` the one to a
    /// dropped answer.
    fn write<T>(
        &self,
        kind: CallKind,
        path: &str,
        write: Write,
        carry_out: impl FnOnce(&dyn Store) -> Result<T, StoreError>,
        taken: impl FnOnce() -> T,
        unknown: impl FnOnce(StoreError) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let (fault, after) = self.server.begin(self.client, kind, path);
        let inner = self.server.inner.as_ref();
        let outcome = match fault {
            None => carry_out(inner),
            Some(Fault::Refused | Fault::Killed) => Err(lost(kind, path)),
            Some(Fault::NotDone) => unknown(lost(kind, path)),
            Some(Fault::Done) => carry_out(inner).and_then(|_| unknown(lost(kind, path))),
            Some(Fault::DoneAndTaken) => carry_out(inner).map(|_| taken()),
            Some(Fault::KilledAfter) => carry_out(inner).and_then(|_| Err(lost(kind, path))),
            Some(Fault::Late(late)) => self.server.send_late(write, late).and_then(|()| unknown(lost(kind, path))),
        };
        after.into_iter().for_each(|hook| hook(&self.server.inner));
        outcome
    }
}

impl Store for Client {
    fn place(&self) -> String {
        self.server.inner.place()
    }

    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        self.look(CallKind::Get, path, |store| store.get(path))
    }

    fn create_once(&self, path: &str, bytes: &Bytes) -> Result<Answer, StoreError> {
        let write = Write::Create(path.to_owned(), bytes.clone());
        let carry_out = |store: &dyn Store| store.create_once(path, bytes);
        self.write(CallKind::Create, path, write, carry_out, || Answer::Lost, |error| Ok(Answer::Unknown(error)))
    }

    fn replace_once(&self, path: &str, expected: Option<&Bytes>, bytes: &Bytes) -> Result<Answer, StoreError> {
        let write = Write::Replace(path.to_owned(), expected.cloned(), bytes.clone());
        let carry_out = |store: &dyn Store| store.replace_once(path, expected, bytes);
        self.write(CallKind::Replace, path, write, carry_out, || Answer::Lost, |error| Ok(Answer::Unknown(error)))
    }

    fn delete(&self, path: &str) -> Result<bool, StoreError> {
        let write = Write::Delete(path.to_owned());
        self.write(CallKind::Delete, path, write, |store| store.delete(path), || false, Err)
    }

    fn delete_if(&self, path: &str, expected: &Bytes) -> Result<Delete, StoreError> {
        let write = Write::DeleteIf(path.to_owned(), expected.clone());
        let carry_out = |store: &dyn Store| store.delete_if(path, expected);
        self.write(CallKind::DeleteIf, path, write, carry_out, || Delete::Absent, Err)
    }

    fn list(&self, folder: &str) -> Result<Listing, StoreError> {
        self.look(CallKind::List, folder, |store| store.list(folder))
    }

    fn now(&self) -> Result<Instant, StoreError> {
        let now = self.look(CallKind::Now, "", |store| store.now())?;
        Ok(now.plus_ms(self.server.state().advanced_ms))
    }

    fn persist(&self, path: &str) -> Result<(), StoreError> {
        self.look(CallKind::Persist, path, |store| store.persist(path))
    }

    fn prepare(&self) -> Result<(), StoreError> {
        self.look(CallKind::Prepare, "", |store| store.prepare())
    }

    fn lock(&self) -> Result<Guard, LockError> {
        let (fault, after) = self.server.begin(self.client, CallKind::Lock, "");
        let outcome = match fault {
            None if self.server.takes_lock => self.server.inner.lock(),
            None => Ok(Guard::NotNeeded),
            Some(_) => Err(LockError::Busy { path: self.server.inner.place(), waited_ms: 0 }),
        };
        after.into_iter().for_each(|hook| hook(&self.server.inner));
        outcome
    }
}
