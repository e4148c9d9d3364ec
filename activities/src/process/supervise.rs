//! The supervisor: a process between the activity and its program, which kills the program when the activity's process is
//! gone.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, PipeReader, Read as _, Seek as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use engine_rules::clock::Clock;
use rustix::io::FdFlags;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getppid, kill_process_group, test_kill_process_group, waitid,
    waitpgid,
};

use super::wire::{Report, Request, STOP, readable};

/// How long the lock of an earlier attempt is waited for, in milliseconds: 10 s. Who holds it is being killed, which takes
/// milliseconds; or left its group, which takes a person.
const LOCK_WAIT_MS: u64 = 10_000;

/// How long what the program left in its group may go on by itself after the program's end, in milliseconds: long enough
/// for the end of a pipe to write what it still has.
const LINGER_MS: u64 = 1_000;

/// How long a group that was sent SIGKILL is waited for, in milliseconds: a process in a system call on a slow disk dies
/// only at its end.
const KILL_WAIT_MS: u64 = 30_000;

/// How often the group, the lock and the parent are looked at while they are waited for, in milliseconds.
const LOOK_EVERY_MS: u64 = 5;

/// How often the parent is looked at while the program runs, in milliseconds: the socket tells the same, sooner.
const PARENT_LOOK_MS: u64 = 200;

/// Why there was nothing to watch over.
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    /// Nobody sent a request.
    #[error("this command is how jobctl watches over a program that it runs; it is not for a person")]
    NoRequest(#[source] io::Error),
    /// The parent is gone, and its program with it.
    #[error("the process that asked for the program is gone; the program was ended")]
    ParentGone,
}

/// Watches over one program, as the process at the other end of standard input asks ([`super::run`]): starts it in a
/// process group of its own, with this process's standard output and error; sends it SIGTERM and, after the grace, SIGKILL
/// when it is told to stop; sends it SIGKILL when the other end closes. When it returns, the program was reaped and its
/// group is empty.
///
/// For a process that does nothing else.
///
/// # Errors
/// [`SuperviseError`].
pub fn supervise(clock: &dyn Clock) -> Result<(), SuperviseError> {
    let parent = getppid();
    ignore_requests_to_end();
    let control: UnixStream = io::stdin().as_fd().try_clone_to_owned().map_err(SuperviseError::NoRequest)?.into();
    let (request, stdin) = read_request(&control).map_err(SuperviseError::NoRequest)?;
    let mut supervisor = Supervisor { clock, control, parent, grace_ms: request.grace_ms, order: Order::Run };
    let report = supervisor.watch(&request, stdin);
    supervisor.tell(&report);
    match supervisor.order {
        Order::Kill => Err(SuperviseError::ParentGone),
        Order::Run | Order::Stop => Ok(()),
    }
}

/// A service manager sends SIGTERM to all processes of a service: what becomes of the program is for the parent to say.
/// The program itself has the defaults again, since no handler outlives its start.
fn ignore_requests_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    runtime.block_on(async {
        for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()] {
            // Where it is refused, the signal ends this process, and the parent ends the program.
            let _ = signal(kind);
        }
    });
}

fn read_request(mut control: &UnixStream) -> io::Result<(Request, Option<Vec<u8>>)> {
    let mut bytes = vec![0; Request::read_length(control)?];
    control.read_exact(&mut bytes)?;
    let request: Request = serde_json::from_slice(&bytes)?;
    let mut stdin = request.stdin_bytes.map(|bytes| vec![0; bytes]);
    if let Some(stdin) = &mut stdin {
        control.read_exact(stdin)?;
    }
    Ok((request, stdin))
}

/// The parent did not wait for the program to begin.
const NOT_BEGUN: Report = Report::Ended { code: None, signal: None, survivors: false };

/// What is to become of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Run,
    /// It is asked to end.
    Stop,
    /// The parent is gone: it must be dead before anyone carries its step out again.
    Kill,
}

struct Supervisor<'a> {
    clock: &'a dyn Clock,
    control: UnixStream,
    parent: Option<Pid>,
    grace_ms: u64,
    order: Order,
}

impl Supervisor<'_> {
    /// Tells the parent; one that is gone hears nothing.
    fn tell(&self, report: &Report) {
        if let Ok(mut line) = serde_json::to_vec(report) {
            line.push(b'\n');
            let _ = (&self.control).write_all(&line);
        }
    }

    fn now_ms(&self) -> u64 {
        self.clock.monotonic_us() / 1_000
    }

    /// Waits until the parent says something, `other` is at its end, or the time is up.
    fn listen(&mut self, other: Option<&PipeReader>, wait_ms: u64) {
        // Once the parent is gone its end can always be read.
        let listening = self.order != Order::Kill;
        let control = listening.then(|| self.control.as_fd());
        let fds: Vec<_> = control.into_iter().chain(other.map(|other| other.as_fd())).collect();
        let ready = readable(&fds, wait_ms).unwrap_or_default();
        if listening && ready.first() == Some(&true) {
            let mut byte = [0];
            match (&self.control).read(&mut byte) {
                Ok(1) if byte[0] == STOP => self.order = self.order.max(Order::Stop),
                Ok(1) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => self.order = Order::Kill,
            }
        }
        if getppid() != self.parent {
            self.order = Order::Kill;
        }
    }

    fn watch(&mut self, request: &Request, stdin: Option<Vec<u8>>) -> Report {
        let failed = |doing: &str, error: &io::Error| Report::Failed {
            doing: doing.to_owned(),
            os_error: error.raw_os_error().unwrap_or(0),
        };
        let lock_path = PathBuf::from(&request.lock);
        let mut lock = match self.take_lock(&lock_path) {
            Ok(Some(lock)) => lock,
            Ok(None) if self.order != Order::Run => return NOT_BEGUN,
            Ok(None) => {
                let holder = fs::read_to_string(&lock_path).unwrap_or_default().trim().to_owned();
                return Report::StillRuns { holder, lock: request.lock.clone() };
            }
            Err(error) => return failed("take the step's lock", &error),
        };
        if self.order != Order::Run {
            release(lock, &lock_path);
            return NOT_BEGUN;
        }
        // Those whom the program leaves behind become this process's children, so that it can reap them.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        // From here on the program and all that it starts hold the lock as well.
        if let Err(error) = rustix::io::fcntl_setfd(&lock, FdFlags::empty()) {
            return failed("hand the step's lock on", &error.into());
        }
        let mut child = match start(request, stdin) {
            Ok(child) => child,
            Err(error) => {
                release(lock, &lock_path);
                return Report::NotStarted { os_error: error.raw_os_error().unwrap_or(0) };
            }
        };
        let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
            return failed("tell the program's number", &io::ErrorKind::InvalidData.into());
        };
        let number = group.as_raw_nonzero().get();
        // For the person who finds the lock held; the lock itself is what counts.
        let _ = writeln!(lock, "process group {number}");
        self.tell(&Report::Started { pid: number });
        if let Err(error) = self.until_the_program_ended(group) {
            self.order = Order::Kill;
            let _ = kill_process_group(group, Signal::KILL);
            let _ = child.wait();
            return failed("wait for the program", &error);
        }
        let status = match child.wait() {
            Ok(status) => status,
            Err(error) => return failed("reap the program", &error),
        };
        let survivors = !self.clear(group);
        release(lock, &lock_path);
        ended(status, survivors)
    }

    /// The lock of the step, or nothing where somebody of an earlier attempt holds it for too long.
    fn take_lock(&mut self, path: &Path) -> io::Result<Option<File>> {
        let began_ms = self.now_ms();
        loop {
            let mut lock = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
            match lock.try_lock() {
                Ok(()) => {
                    // Whoever held it before may have removed the file: the lock then is nobody else's.
                    if is_at(&lock, path)? {
                        lock.set_len(0)?;
                        lock.rewind()?;
                        return Ok(Some(lock));
                    }
                }
                // On a file system without locks nothing but the parent's end guards the program.
                Err(TryLockError::Error(_)) => return Ok(Some(lock)),
                Err(TryLockError::WouldBlock) => {
                    if self.order != Order::Run || self.now_ms().saturating_sub(began_ms) >= LOCK_WAIT_MS {
                        return Ok(None);
                    }
                    self.listen(None, LOOK_EVERY_MS);
                }
            }
        }
    }

    /// Returns once the program, the leader of `group`, has ended; it is not reaped, so that its number stays its own.
    fn until_the_program_ended(&mut self, group: Pid) -> io::Result<()> {
        let (ended, notice) = io::pipe()?;
        thread::spawn(move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while waitid(WaitId::Pid(group), options).is_err_and(|error| error == rustix::io::Errno::INTR) {}
            drop(notice);
        });
        let mut asked_at_ms = None;
        loop {
            let wait_ms = match (self.order, asked_at_ms) {
                (Order::Run, _) => PARENT_LOOK_MS,
                (Order::Stop, None) => {
                    asked_at_ms = Some(self.now_ms());
                    signal(group, Signal::TERM);
                    self.grace_ms.min(PARENT_LOOK_MS)
                }
                (Order::Stop, Some(asked_at_ms)) => {
                    let left_ms = self.grace_ms.saturating_sub(self.now_ms().saturating_sub(asked_at_ms));
                    if left_ms == 0 {
                        signal(group, Signal::KILL);
                    }
                    left_ms.clamp(LOOK_EVERY_MS, PARENT_LOOK_MS)
                }
                (Order::Kill, _) => {
                    signal(group, Signal::KILL);
                    PARENT_LOOK_MS
                }
            };
            self.listen(Some(&ended), wait_ms);
            if readable(&[ended.as_fd()], 0)?[0] {
                return Ok(());
            }
        }
    }

    /// Ends what is left of the group of a program that was reaped; `false` where something cannot be ended.
    fn clear(&mut self, group: Pid) -> bool {
        let began_ms = self.now_ms();
        let linger_ms = if self.order == Order::Run { LINGER_MS } else { 0 };
        let kill_at_ms = linger_ms + self.grace_ms;
        let mut asked = false;
        loop {
            // Those who became this process's children are nobody else's to reap.
            while matches!(waitpgid(group, WaitOptions::NOHANG), Ok(Some(_))) {}
            if test_kill_process_group(group) == Err(rustix::io::Errno::SRCH) {
                return true;
            }
            let waited_ms = self.now_ms().saturating_sub(began_ms);
            if self.order == Order::Kill || waited_ms >= kill_at_ms {
                if waited_ms >= kill_at_ms + KILL_WAIT_MS {
                    return false;
                }
                signal(group, Signal::KILL);
            } else if !asked && (waited_ms >= linger_ms || self.order == Order::Stop) {
                asked = true;
                signal(group, Signal::TERM);
            }
            self.listen(None, LOOK_EVERY_MS);
        }
    }
}

impl Order {
    /// There is no way back from an order.
    fn max(self, other: Self) -> Self {
        if self == Self::Run { other } else { self }
    }
}

/// Gives the lock back, and removes its file unless somebody still holds it: a process that left the group.
fn release(lock: File, path: &Path) {
    drop(lock);
    let Ok(file) = File::open(path) else { return };
    // Who waits for this lock finds that its file is gone, and takes that of the new one. A file that stays harms nobody.
    if file.try_lock().is_ok() && is_at(&file, path).unwrap_or(false) {
        let _ = fs::remove_file(path);
    }
}

/// Whether `file` is still what the path leads to.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    Ok(fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino())))
}

/// A group that is gone needs no signal.
fn signal(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}

fn start(request: &Request, stdin: Option<Vec<u8>>) -> io::Result<Child> {
    let mut command = Command::new(&request.program);
    command
        .args(&request.args)
        .envs(request.env.iter().map(|(name, value)| (name, value)))
        .stdin(if stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .process_group(0);
    if let Some(folder) = &request.folder {
        command.current_dir(folder);
    }
    let mut child = command.spawn()?;
    if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), stdin) {
        // A program need not read its input: its end ends the thread.
        thread::spawn(move || {
            let _ = pipe.write_all(&bytes);
        });
    }
    Ok(child)
}

fn ended(status: ExitStatus, survivors: bool) -> Report {
    Report::Ended { code: status.code(), signal: status.signal(), survivors }
}
