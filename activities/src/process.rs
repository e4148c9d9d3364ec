//! Running another program: the one way by which an activity does it (DESIGN §2.2, Timeouts, heartbeats, cancellation).
//!
//! The program runs beneath a supervisor, which is this program once more ([`supervise`]). The supervisor leads nothing
//! and computes nothing: it starts the program in a process group of its own, holds one end of a socket whose other end
//! is here, and kills the group when that end closes, which the system does whatever this process dies of.
//!
//! A lock per step, which the program and all that it starts inherit, is held for as long as one of them lives. Whoever
//! carries the step out again, in whatever process, waits for that lock before its program starts: two programs of one
//! step never run at once, also where the supervisor was killed together with its parent.
//!
//! A program that leaves its process group (a daemon) is not followed: it still holds the lock.

mod capture;
mod error;
mod supervise;
#[cfg(test)]
mod tests;
mod wire;

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;

use engine_rules::activity::ActivityContext;
use engine_rules::clock::Clock;
use rustix::process::{Pid, Signal, kill_process_group};

pub use capture::Captured;
pub use error::CommandError;
pub use supervise::{SuperviseError, supervise};

use capture::Capture;
use wire::{Report, Request, STOP, readable};

/// The word by which `jobctl` is told to be a supervisor.
pub const SUPERVISE: &str = "__supervise";

/// How much of an output is kept unless the specification says otherwise, in bytes: 256 KiB, a quarter of what a step may
/// record.
pub const OUTPUT_LIMIT_BYTES: usize = 256 * 1024;

/// How long a program that was asked to end may take for it, in milliseconds: 5 s, well within a lease.
pub const GRACE_MS: u64 = 5_000;

/// How often the cancel token and the clock are looked at, in milliseconds: a cancel must arrive within a second.
const LOOK_EVERY_MS: u64 = 50;

/// Where programs are run from.
#[derive(Clone)]
pub struct CommandHost {
    /// The program that is the supervisor, and what precedes its request on its command line.
    pub supervisor: PathBuf,
    /// Its arguments.
    pub supervisor_args: Vec<OsString>,
    /// The folder of the steps' locks, on a local disk; created if it is not there.
    pub locks: PathBuf,
    /// What the timeout is measured by.
    pub clock: Arc<dyn Clock>,
}

impl CommandHost {
    /// This very program as the supervisor, also after its file was replaced by a newer one; `main` hands the word
    /// [`SUPERVISE`] to [`supervise`].
    ///
    /// # Errors
    /// [`CommandError::Io`] when the path of this program cannot be told.
    pub fn this_program(locks: PathBuf, clock: Arc<dyn Clock>) -> Result<Self, CommandError> {
        let supervisor = match cfg!(target_os = "linux") {
            true => PathBuf::from("/proc/self/exe"),
            false => std::env::current_exe().map_err(error::io("tell the path of this program"))?,
        };
        Ok(Self { supervisor, supervisor_args: vec![SUPERVISE.into()], locks, clock })
    }
}

impl fmt::Debug for CommandHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandHost")
            .field("supervisor", &self.supervisor)
            .field("supervisor_args", &self.supervisor_args)
            .field("locks", &self.locks)
            .finish_non_exhaustive()
    }
}

/// A program and how it is run.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    /// The program: a path, or a name that is looked up in `PATH`. No shell reads it.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// What its environment has beside that of this process.
    pub env: Vec<(OsString, OsString)>,
    /// Its working folder; this process's where there is none.
    pub folder: Option<PathBuf>,
    /// What it reads from its standard input; nothing where there is none.
    pub stdin: Option<Vec<u8>>,
    /// How much of its standard output is kept, in bytes. The rest is counted.
    pub stdout_limit_bytes: usize,
    /// How much of its standard error is kept, in bytes. The rest is counted.
    pub stderr_limit_bytes: usize,
    /// How long it may run, in milliseconds; as long as its step where there is none.
    pub timeout_ms: Option<u64>,
    /// How long it may take to end after SIGTERM before SIGKILL, in milliseconds.
    pub grace_ms: u64,
}

impl CommandSpec {
    /// `program` with `args`, without input and without a timeout of its own.
    pub fn new<A: Into<OsString>>(program: impl Into<OsString>, args: impl IntoIterator<Item = A>) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            folder: None,
            stdin: None,
            stdout_limit_bytes: OUTPUT_LIMIT_BYTES,
            stderr_limit_bytes: OUTPUT_LIMIT_BYTES,
            timeout_ms: None,
            grace_ms: GRACE_MS,
        }
    }
}

/// What a program that ended well left.
#[derive(Debug, Clone)]
pub struct CommandOutput {
    /// Its standard output.
    pub stdout: Captured,
    /// Its standard error.
    pub stderr: Captured,
    /// How long it ran, in microseconds.
    pub duration_us: u64,
}

/// Why the program was told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Cancel,
    Timeout { timeout_ms: u64 },
}

/// Runs the program and waits for its end, on this thread. When this returns, however it returns, the program was reaped
/// and its process group is empty; only [`CommandError::Survivors`] says otherwise. A cancel of `ctx` and the timeout send
/// SIGTERM to the group and, after the grace, SIGKILL.
///
/// # Errors
/// [`CommandError`]; a program that ends with another code than 0 is one.
pub fn run(ctx: &ActivityContext, host: &CommandHost, spec: &CommandSpec) -> Result<CommandOutput, CommandError> {
    if ctx.cancel.is_cancelled() {
        return Err(CommandError::Cancelled { program: name(spec), stderr: String::new() });
    }
    if let Some(folder) = spec.folder.as_ref().filter(|folder| !folder.is_dir()) {
        return Err(CommandError::NoFolder { program: name(spec), folder: folder.clone() });
    }
    fs::create_dir_all(&host.locks).map_err(error::io("create the folder of the steps' locks"))?;
    let request = Request {
        program: spec.program.clone(),
        args: spec.args.clone(),
        env: spec.env.clone(),
        folder: spec.folder.clone().map(PathBuf::into_os_string),
        grace_ms: spec.grace_ms,
        stdin_bytes: spec.stdin.as_ref().map(Vec::len),
        lock: lock_path(&host.locks, ctx).into_os_string(),
    };
    let began_us = host.clock.monotonic_us();
    let mut watched = Watched::start(host, spec, ctx)?;
    let sent = request
        .write(&watched.control)
        .and_then(|()| (&watched.control).write_all(spec.stdin.as_deref().unwrap_or_default()));
    if let Err(source) = sent {
        tracing::warn!(%source, "the supervisor did not take its request");
    }
    let stopped = watched.until_it_ends(ctx, host.clock.as_ref(), spec, began_us)?;
    let duration_us = host.clock.monotonic_us().saturating_sub(began_us);
    watched.outcome(spec, stopped, duration_us)
}

fn name(spec: &CommandSpec) -> String {
    spec.program.to_string_lossy().into_owned()
}

/// One lock for a step of a run, whatever its attempt.
fn lock_path(locks: &Path, ctx: &ActivityContext) -> PathBuf {
    let plain = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
    locks.join(format!("{}.{}.lock", plain(&ctx.run_id), plain(&ctx.step)))
}

/// The supervisor and what comes from it. Dropped, it closes its end of the socket, and waits until the supervisor has
/// killed the group and ended.
struct Watched {
    control: UnixStream,
    supervisor: Child,
    stdout: Stream,
    stderr: Stream,
    /// What of a report has come so far.
    heard: Vec<u8>,
    group: Option<Pid>,
    last: Option<Report>,
    waited: bool,
}

/// One output: the pipe until it is at its end, and what came through it.
struct Stream {
    pipe: Option<PipeReader>,
    capture: Capture,
}

impl Stream {
    fn new(pipe: PipeReader, limit_bytes: usize) -> Self {
        Self { pipe: Some(pipe), capture: Capture::new(limit_bytes) }
    }

    /// Reads once; only where something is there to be read, so that it does not wait.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        match pipe.read(buffer) {
            Ok(0) => self.pipe = None,
            Ok(bytes) => self.capture.add(&buffer[..bytes]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// What still stands in the pipe, once nobody of the group lives. A process that left the group may still hold the
    /// other end: it is not waited for.
    fn drain(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        while let Some(pipe) = &self.pipe {
            if !readable(&[pipe.as_fd()], 0)?[0] {
                return Ok(());
            }
            self.read(buffer)?;
        }
        Ok(())
    }
}

impl Watched {
    fn start(host: &CommandHost, spec: &CommandSpec, ctx: &ActivityContext) -> Result<Self, CommandError> {
        let (control, theirs) = UnixStream::pair().map_err(error::io("make the supervisor's socket"))?;
        let (stdout, stdout_end) = io::pipe().map_err(error::io("make a pipe"))?;
        let (stderr, stderr_end) = io::pipe().map_err(error::io("make a pipe"))?;
        let mut command = Command::new(&host.supervisor);
        command
            .args(&host.supervisor_args)
            // Read by nobody but the person who looks at the list of processes.
            .arg(format!("{} {}", ctx.run_id, ctx.step))
            .stdin(OwnedFd::from(theirs))
            .stdout(stdout_end)
            .stderr(stderr_end)
            // A Ctrl-C at the terminal is this process's to answer.
            .process_group(0);
        let supervisor = command.spawn().map_err(error::io("start the supervisor"))?;
        // It holds the supervisor's ends of the pipes open.
        drop(command);
        Ok(Self {
            control,
            supervisor,
            stdout: Stream::new(stdout, spec.stdout_limit_bytes),
            stderr: Stream::new(stderr, spec.stderr_limit_bytes),
            heard: Vec::new(),
            group: None,
            last: None,
            waited: false,
        })
    }

    /// Reads what comes until the supervisor has ended, and tells it to stop the program where that is due.
    fn until_it_ends(
        &mut self,
        ctx: &ActivityContext,
        clock: &dyn Clock,
        spec: &CommandSpec,
        began_us: u64,
    ) -> Result<Option<Stop>, CommandError> {
        let mut stopped = None;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let mut fds = vec![self.control.as_fd()];
            fds.extend(self.stdout.pipe.iter().map(|pipe| pipe.as_fd()));
            fds.extend(self.stderr.pipe.iter().map(|pipe| pipe.as_fd()));
            let ready = readable(&fds, LOOK_EVERY_MS).map_err(error::io("wait for the program"))?;
            let mut ready = ready.into_iter();
            let told = ready.next().unwrap_or(false);
            let out = self.stdout.pipe.is_some() && ready.next().unwrap_or(false);
            let err = self.stderr.pipe.is_some() && ready.next().unwrap_or(false);
            if out {
                self.stdout.read(&mut buffer).map_err(error::io("read the program's output"))?;
            }
            if err {
                self.stderr.read(&mut buffer).map_err(error::io("read the program's output"))?;
            }
            if told && !self.listen(&mut buffer) {
                break;
            }
            if stopped.is_none() {
                let ran_ms = clock.monotonic_us().saturating_sub(began_us) / 1_000;
                stopped = match spec.timeout_ms.filter(|timeout_ms| ran_ms >= *timeout_ms) {
                    _ if ctx.cancel.is_cancelled() => Some(Stop::Cancel),
                    Some(timeout_ms) => Some(Stop::Timeout { timeout_ms }),
                    None => None,
                };
                if stopped.is_some() {
                    // One that is gone stops nothing any more, and is found at its end of the socket.
                    let _ = (&self.control).write_all(&[STOP]);
                }
            }
        }
        self.wait();
        for stream in [&mut self.stdout, &mut self.stderr] {
            stream.drain(&mut buffer).map_err(error::io("read the program's output"))?;
        }
        Ok(stopped)
    }

    /// Takes in what the supervisor says; `false` once it has closed its end.
    fn listen(&mut self, buffer: &mut [u8]) -> bool {
        match (&self.control).read(buffer) {
            Ok(0) => return false,
            Ok(bytes) => self.heard.extend_from_slice(&buffer[..bytes]),
            Err(error) => return error.kind() == io::ErrorKind::Interrupted,
        }
        while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.heard.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(Report::Started { pid }) => self.group = Pid::from_raw(pid),
                Ok(report) => self.last = Some(report),
                Err(error) => tracing::warn!(%error, "the supervisor said what nobody understands"),
            }
        }
        true
    }

    fn wait(&mut self) {
        if !self.waited {
            self.waited = true;
            if let Err(error) = self.supervisor.wait() {
                tracing::warn!(%error, "the supervisor could not be waited for");
            }
        }
    }

    fn outcome(
        mut self,
        spec: &CommandSpec,
        stopped: Option<Stop>,
        duration_us: u64,
    ) -> Result<CommandOutput, CommandError> {
        let program = name(spec);
        let (code, signal) = match self.last.take() {
            Some(Report::Ended { survivors: true, .. }) => {
                let group = self.group.map_or(0, |group| group.as_raw_nonzero().get());
                return Err(CommandError::Survivors { program, group });
            }
            Some(Report::Ended { code, signal, .. }) => (code, signal),
            Some(Report::NotStarted { os_error }) => {
                return Err(CommandError::not_started(program, io::Error::from_raw_os_error(os_error)));
            }
            Some(Report::StillRuns { holder, lock }) => {
                return Err(CommandError::StillRuns { program, holder, lock: PathBuf::from(lock) });
            }
            Some(Report::Failed { doing, os_error }) => {
                let source = io::Error::from_raw_os_error(os_error);
                return Err(CommandError::Supervisor { program, doing, source: Some(source) });
            }
            // It was killed. Nobody else ends what it left.
            Some(Report::Started { .. }) | None => {
                self.kill_orphans();
                let doing = "say how the program ended".to_owned();
                return Err(CommandError::Supervisor { program, doing, source: None });
            }
        };
        let stderr = self.stderr.capture.last_lines();
        match (stopped, code) {
            (Some(Stop::Cancel), _) => Err(CommandError::Cancelled { program, stderr }),
            (Some(Stop::Timeout { timeout_ms }), _) => Err(CommandError::TimedOut { program, timeout_ms, stderr }),
            (None, Some(0)) => {
                let (stdout, stderr) = (self.stdout.capture.take(), self.stderr.capture.take());
                Ok(CommandOutput { stdout, stderr, duration_us })
            }
            (None, Some(code)) => Err(CommandError::Failed { program, code, stderr }),
            (None, None) => Err(CommandError::Signalled { program, signal: signal.unwrap_or(0), stderr }),
        }
    }

    /// Kills what a supervisor that was killed left. At most two seconds: what is not dead then still holds the lock.
    fn kill_orphans(&self) {
        let Some(group) = self.group else { return };
        for _ in 0..200 {
            if kill_process_group(group, Signal::KILL).is_err() {
                return;
            }
            let _ = readable(&[], 10);
        }
        tracing::warn!(group = group.as_raw_nonzero().get(), "a process group outlives its supervisor");
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.control.shutdown(std::net::Shutdown::Both);
        self.wait();
    }
}
