//! Threads that take turns: one runs at a time, and chance says at each call who goes on.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::Chance;

/// The turns of a race.
pub(super) struct Turns {
    state: Mutex<State>,
    moved: Condvar,
}

struct State {
    chance: Chance,
    /// Those who are not here yet.
    missing: usize,
    /// Those who are under way.
    running: BTreeSet<usize>,
    turn: Option<usize>,
}

impl Turns {
    pub(super) fn new(seed: u64, clients: usize) -> Self {
        let state = State { chance: Chance::new(seed), missing: clients, running: BTreeSet::new(), turn: None };
        Self { state: Mutex::new(state), moved: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Comes in, and waits until everybody is here and it is this client's turn.
    pub(super) fn enter(&self, client: usize) {
        let mut state = self.state();
        state.missing = state.missing.saturating_sub(1);
        state.running.insert(client);
        if state.missing == 0 {
            state.next();
        }
        self.wait(state, client);
    }

    /// Lets chance choose who goes on, and waits for the next turn. Whoever is not in the race goes on.
    pub(super) fn pass(&self, client: usize) {
        let mut state = self.state();
        if !state.running.contains(&client) {
            return;
        }
        state.next();
        self.wait(state, client);
    }

    /// Goes out of the race.
    pub(super) fn leave(&self, client: usize) {
        let mut state = self.state();
        state.running.remove(&client);
        state.next();
        self.moved.notify_all();
    }

    fn wait(&self, mut state: MutexGuard<'_, State>, client: usize) {
        self.moved.notify_all();
        while state.turn != Some(client) {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl State {
    fn next(&mut self) {
        let running: Vec<_> = self.running.iter().copied().collect();
        self.turn = self.chance.pick(&running).copied();
    }
}
