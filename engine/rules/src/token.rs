//! A flag that is set once, and that can be waited for without any runtime.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Set once when the run is cancelled or the step's time is up. A body that computes looks at it between units of work;
/// one that waits selects on [`CancelToken::cancelled`].
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_set: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    wakers: HashMap<u64, Waker>,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CancelToken {
    /// A token that nobody has set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the token and wakes whoever waits for it; there is no way back. Repeats are safe.
    pub fn cancel(&self) {
        self.0.is_set.store(true, Ordering::SeqCst);
        let wakers = std::mem::take(&mut self.0.waiting().wakers);
        for waker in wakers.into_values() {
            waker.wake();
        }
    }

    /// Whether the token was set.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.is_set.load(Ordering::SeqCst)
    }

    /// Completes once the token is set; at once where it is set already.
    #[must_use]
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { token: self.clone(), place: None }
    }
}

/// What [`CancelToken::cancelled`] gives.
#[derive(Debug)]
pub struct Cancelled {
    token: CancelToken,
    place: Option<u64>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.token.is_cancelled() {
            return Poll::Ready(());
        }
        let place = {
            let mut waiting = self.token.0.waiting();
            let place = self.place.unwrap_or_else(|| {
                waiting.next += 1;
                waiting.next
            });
            waiting.wakers.insert(place, cx.waker().clone());
            place
        };
        self.place = Some(place);
        // It may have been set between the look and the entry, by one who did not see the entry.
        if self.token.is_cancelled() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.token.0.waiting().wakers.remove(&place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_is_woken_and_leaves_nothing_behind() {
        let token = CancelToken::new();
        let mut cx = Context::from_waker(Waker::noop());
        let mut waits = Box::pin(token.cancelled());
        assert!(waits.as_mut().poll(&mut cx).is_pending());
        assert!(waits.as_mut().poll(&mut cx).is_pending());
        assert_eq!(token.0.waiting().wakers.len(), 1, "one entry, however often it is polled");
        drop(waits);
        assert_eq!(token.0.waiting().wakers.len(), 0);

        let mut waits = Box::pin(token.cancelled());
        assert!(waits.as_mut().poll(&mut cx).is_pending());
        token.clone().cancel();
        assert!(waits.as_mut().poll(&mut cx).is_ready());
        assert!(Box::pin(token.cancelled()).as_mut().poll(&mut cx).is_ready(), "set for ever");
        assert!(token.is_cancelled());
    }

    #[test]
    fn a_thread_that_waits_is_woken_by_another() {
        struct Unpark(std::thread::Thread);
        impl std::task::Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        for _ in 0..200 {
            let token = CancelToken::new();
            let other = token.clone();
            let thread = std::thread::spawn(move || other.cancel());
            let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
            let mut waits = Box::pin(token.cancelled());
            while waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                std::thread::park();
            }
            thread.join().unwrap();
        }
    }
}
