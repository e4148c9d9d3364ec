//! How a person or the system tells this process to end.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Ended;

/// SIGINT and SIGTERM, from when this is made on.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to listen: neither signal ends the process by itself any more.
    ///
    /// # Errors
    /// Where the system refuses.
    pub fn listen() -> Result<Self, Ended> {
        let listen = |kind| {
            signal(kind).map_err(|error| Ended::usage(format!("the signals of the system cannot be heard: {error}")))
        };
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// The next of them.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Ends this process at once when it is told to end once more, whatever it is at: as if it were killed, which every step
/// survives. On a thread of its own, so that nothing that the process is at holds it up.
pub fn end_at_next() {
    std::thread::spawn(|| {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            if let Ok(mut signals) = Signals::listen() {
                signals.next().await;
                let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            }
        });
    });
}
