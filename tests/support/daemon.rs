//! A `jobctl serve` at work, and what it tells.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::env::Env;

/// How long anything may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(200);

pub struct Daemon {
    child: Child,
    events: Receiver<Value>,
    /// What it told so far.
    pub told: Vec<Value>,
}

impl Daemon {
    /// Starts it in the folder; `point` is where it is to abort.
    pub fn start(env: &Env, args: &[&str], point: Option<&str>) -> Self {
        let mut command = env.command(["serve", "--jsonl"].iter().chain(args));
        if let Some(point) = point {
            command.env("JOBCTL_CRASH_AT", point);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, events) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let event: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                assert_eq!(event["schema"], "jobctl.serve/1", "{line}");
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        let mut daemon = Self { child, events, told: Vec::new() };
        daemon.until("it serves", |event| event["event"] == "serving");
        daemon
    }

    /// Waits until it tells such an event.
    #[track_caller]
    pub fn until(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut left = PATIENCE;
        loop {
            match self.events.recv_timeout(SHORT) {
                Ok(event) => {
                    self.told.push(event.clone());
                    if is_it(&event) {
                        return event;
                    }
                }
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => left -= SHORT,
                Err(RecvTimeoutError::Timeout) => panic!("a minute passed, and not yet: {what}: {:?}", self.told),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended, and not yet: {what}: {:?}", self.told),
            }
        }
    }

    /// Waits until the run has ended, and gives that event.
    #[track_caller]
    pub fn until_ended(&mut self, run: &str) -> Value {
        let is_it = |event: &Value| event["event"] == "run_ended" && event["run_id"] == run;
        if let Some(event) = self.told.iter().find(|event| is_it(event)) {
            return event.clone();
        }
        self.until(&format!("run {run} has ended"), is_it)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end.
    pub fn wait(mut self) -> (ExitStatus, Vec<Value>) {
        let mut looks = 0;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            looks += 1;
            assert!(
                looks < 6_000,
                "a minute passed, and it has not ended: {:?}",
                self.events.try_iter().collect::<Vec<_>>()
            );
            #[allow(clippy::disallowed_methods, reason = "another process is waited for")]
            std::thread::sleep(Duration::from_millis(10));
        };
        while let Ok(event) = self.events.recv_timeout(PATIENCE) {
            self.told.push(event);
        }
        (status, std::mem::take(&mut self.told))
    }

    /// Ends it in order, and gives its report.
    #[track_caller]
    pub fn end(self) -> Value {
        self.signal(Signal::TERM);
        let (status, told) = self.wait();
        assert_eq!(status.code(), Some(0), "{told:?}");
        let ended = told.last().unwrap();
        assert_eq!(ended["event"], "ended", "{told:?}");
        ended["report"].clone()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A test that failed leaves no process behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
