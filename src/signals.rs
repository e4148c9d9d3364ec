//! How a person or the system tells this process to end.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::exit::Ended;

/// How long after the first signal the same one is taken for its echo.
const ECHO: Duration = Duration::from_millis(200);

/// SIGINT and SIGTERM.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
        }
    }
}

/// Listens from when this returns on: what it returns is ready at the first signal. A second one ends this process at once,
/// whatever it is at: as if it were killed, which every step survives. The same one within [`ECHO`] is no second one. On a
/// thread of its own, so that nothing that the process is at holds it up.
///
/// # Errors
/// Where the system refuses.
pub fn told_to_end() -> Result<oneshot::Receiver<()>, Ended> {
    let (tell, told) = oneshot::channel();
    let (answer, listens) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let begun = runtime.and_then(|runtime| {
            let signals = runtime.block_on(async { Signals::listen() })?;
            Ok((runtime, signals))
        });
        match begun {
            Err(error) => {
                let _ = answer.send(Err(error));
            }
            Ok((runtime, mut signals)) => {
                let _ = answer.send(Ok(()));
                let first = runtime.block_on(signals.next());
                let _ = tell.send(());
                // One order may come twice at once: to the process, and to its group.
                let echo = async { while signals.next().await == first {} };
                if runtime.block_on(async { tokio::time::timeout(ECHO, echo).await }).is_err() {
                    runtime.block_on(signals.next());
                }
                let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            }
        }
    });
    match listens.recv() {
        Ok(Ok(())) => Ok(told),
        Ok(Err(error)) => Err(Ended::usage(format!("the signals of the system cannot be heard: {error}"))),
        Err(_) => Err(Ended::usage("the signals of the system cannot be heard")),
    }
}
