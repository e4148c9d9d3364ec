//! How many runs are at work at once. A slot is held by the run that works, in memory, and by nobody else: whatever becomes
//! of the run, its end gives the slot back.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The slots of a crew.
#[derive(Debug, Clone)]
pub(crate) struct Slots(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    free: Arc<Semaphore>,
    /// Told whenever a slot becomes free.
    freed: Notify,
}

impl Slots {
    pub(crate) fn new(count: usize) -> Self {
        let free = Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS)));
        Self(Arc::new(Shared { free, freed: Notify::new() }))
    }

    pub(crate) fn free(&self) -> usize {
        self.0.free.available_permits()
    }

    /// Waits until a slot becomes free, or one became so since the last call.
    pub(crate) async fn freed(&self) {
        self.0.freed.notified().await;
    }

    /// The slot of a run that has yet to [`Slot::enter`].
    pub(crate) fn slot(&self) -> Slot {
        Slot(Some(Arc::new(Place { slots: self.clone(), permit: Mutex::new(None) })))
    }
}

/// A run's slot. One that is driven by itself belongs to no crew and is never held up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slot(Option<Arc<Place>>);

#[derive(Debug)]
struct Place {
    slots: Slots,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Place {
    fn is_held(&self) -> bool {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn put(&self, permit: Option<OwnedSemaphorePermit>) {
        let old = std::mem::replace(&mut *self.permit.lock().unwrap_or_else(PoisonError::into_inner), permit);
        if old.is_some() {
            // Free before those are told who look for it.
            drop(old);
            self.slots.0.freed.notify_one();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.put(None);
    }
}

impl Slot {
    /// Takes a slot that is free now, so that it is no longer counted as free.
    pub(crate) fn enter_now(&self) {
        if let Some(place) = &self.0
            && !place.is_held()
            && let Ok(permit) = place.slots.0.free.clone().try_acquire_owned()
        {
            place.put(Some(permit));
        }
    }

    /// Waits for a free slot, behind those who came before; at once where it is held already.
    pub(crate) async fn enter(&self) {
        if let Some(place) = &self.0
            && !place.is_held()
            // The semaphore is never closed.
            && let Ok(permit) = place.slots.0.free.clone().acquire_owned().await
        {
            place.put(Some(permit));
        }
    }

    /// Gives the slot to others, because the run waits; to go on it must [`Slot::enter`] again.
    pub(crate) fn leave(&self) {
        if let Some(place) = &self.0 {
            place.put(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slot_comes_back_however_its_run_ends() {
        let slots = Slots::new(2);
        let (one, two) = (slots.slot(), slots.slot());
        one.enter_now();
        two.enter().await;
        assert_eq!(slots.free(), 0);
        slots.slot().enter_now();
        drop(one);
        slots.freed().await;
        assert_eq!(slots.free(), 1);
        let panicking = tokio::spawn(async move {
            let slot = two;
            if slot.0.is_some() {
                panic!("the run of slot {slot:?} ends badly");
            }
        });
        assert!(panicking.await.is_err());
        assert_eq!(slots.free(), 2);
    }

    #[tokio::test]
    async fn who_waits_has_no_slot_and_who_goes_on_has_one_again() {
        let slots = Slots::new(1);
        let one = slots.slot();
        one.enter().await;
        let other = slots.slot();
        one.leave();
        assert_eq!(slots.free(), 1);
        other.enter().await;
        assert_eq!(slots.free(), 0);
        drop(other);
        one.enter().await;
        one.enter().await;
        assert_eq!(slots.free(), 0);
        drop(one);
        assert_eq!(slots.free(), 1);
    }

    #[tokio::test]
    async fn a_run_without_a_crew_is_never_held_up() {
        let slot = Slot::default();
        slot.enter().await;
        slot.leave();
        slot.enter().await;
    }
}
