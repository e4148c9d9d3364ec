//! What reaches a run at work from outside.

use std::sync::atomic::{AtomicBool, Ordering};

use engine_rules::activity::CancelToken;
use tokio::sync::Notify;

/// The orders of persons to one run that this process works on.
#[derive(Debug, Default)]
pub(crate) struct RunControl {
    /// The run is to end.
    pub cancel: CancelToken,
    is_paused: AtomicBool,
    /// Something came that a run that waits should look at: a signal, an order, the end of a child.
    pub news: Notify,
}

impl RunControl {
    /// The run is to end: its token is set, and whatever it waits for is over.
    pub fn cancel(&self) {
        self.cancel.cancel();
        self.tell();
    }

    /// The run is to stop before its next step.
    pub fn pause(&self) {
        self.is_paused.store(true, Ordering::SeqCst);
        self.tell();
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    pub fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::SeqCst)
    }

    /// Wakes the run where it waits; where it does not wait, its next wait looks at once.
    pub fn tell(&self) {
        self.news.notify_one();
    }
}
