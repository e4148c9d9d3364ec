//! Programs beneath a supervisor, which is this test binary again.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use engine_rules::activity::{ActivityContext, CancelToken};
use engine_rules::clock::Clock;
use engine_rules::failure::{ActivityError as _, Disposition};
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process};

use super::*;

/// What libtest writes to standard output before the supervisor begins. It comes from the test binary, not from the
/// program, so the tests take it off.
const PREAMBLE: &str = "\nrunning 1 test\n";

struct TestClock(std::time::Instant);

impl TestClock {
    #[expect(clippy::disallowed_methods, reason = "these tests run programs, which take real time")]
    fn new() -> Self {
        Self(std::time::Instant::now())
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> i64 {
        0
    }

    fn monotonic_us(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap()
    }

    fn new_id(&self) -> uuid::Uuid {
        uuid::Uuid::nil()
    }

    fn chance(&self) -> f64 {
        0.0
    }

    fn sleep_ms(&self, ms: u64) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move { pause(ms) })
    }
}

fn pause(ms: u64) {
    readable(&[], ms).unwrap();
}

#[test]
#[ignore = "what the other tests run as the supervisor"]
#[expect(clippy::disallowed_methods, reason = "libtest must not add its own lines to the program's output")]
fn supervises() {
    let code = i32::from(supervise(&TestClock::new()).is_err());
    std::process::exit(code);
}

#[test]
#[ignore = "what the other tests run as a process that they kill"]
fn runs_and_is_killed() {
    let Some(folder) = std::env::var_os("PROCESS_TEST_FOLDER") else { return };
    let folder = PathBuf::from(folder);
    let script = "sh -c 'echo $$ > grandchild; exec sleep 600' & echo $$ > child; wait";
    let ended = run(&context(), &host(&folder), &shell(&folder, script));
    panic!("{ended:?}, and the parent was not killed");
}

fn host(folder: &Path) -> CommandHost {
    CommandHost {
        supervisor: std::env::current_exe().unwrap(),
        supervisor_args: ["process::tests::supervises", "--exact", "--ignored", "--test-threads=2"]
            .map(Into::into)
            .into(),
        locks: folder.join("locks"),
        clock: Arc::new(TestClock::new()),
    }
}

fn context() -> ActivityContext {
    ActivityContext::detached()
}

/// The same step, with its token.
fn cancellable() -> (ActivityContext, CancelToken) {
    let cancel = CancelToken::new();
    let ctx = ActivityContext::new("detached".to_owned(), "detached".to_owned(), 1, cancel.clone(), Arc::new(|_| {}));
    (ctx, cancel)
}

fn shell(folder: &Path, script: &str) -> CommandSpec {
    CommandSpec { folder: Some(folder.to_owned()), ..CommandSpec::new("sh", ["-c", script]) }
}

fn text(captured: &Captured) -> String {
    captured.text().strip_prefix(PREAMBLE).expect("libtest's first lines").to_owned()
}

fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if condition() {
            return;
        }
        pause(5);
    }
    panic!("ten seconds passed, and not yet: {what}");
}

/// The number that a script wrote into `name`.
fn pid(folder: &Path, name: &str) -> Pid {
    let read = || fs::read_to_string(folder.join(name)).ok()?.trim().parse::<i32>().ok();
    until(name, || read().is_some());
    Pid::from_raw(read().unwrap()).unwrap()
}

fn is_dead(pid: Pid) -> bool {
    test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
}

/// Whether a lock says which process group has it: the supervisor writes that just before it tells it.
fn told_of_a_group(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder.join("locks")) else { return false };
    entries.flatten().any(|entry| fs::read_to_string(entry.path()).is_ok_and(|text| text.contains("process group")))
}

fn locks(folder: &Path) -> usize {
    fs::read_dir(folder.join("locks")).map_or(0, Iterator::count)
}

#[test]
fn a_program_that_ends_well_gives_its_output() {
    let dir = tempfile::tempdir().unwrap();
    let folder = fs::canonicalize(dir.path()).unwrap();
    let mut spec = shell(&folder, "cat; pwd; echo $JOBCTL_TEST $HOME; echo aside > /dev/stderr");
    spec.env = vec![("JOBCTL_TEST".into(), "set".into())];
    let input = "ü\0".repeat(400_000);
    spec.stdin = Some(input.clone().into());
    spec.stdout_limit_bytes = 4 << 20;
    let output = run(&context(), &host(&folder), &spec).unwrap();
    let home = std::env::var("HOME").unwrap();
    assert!(text(&output.stdout) == format!("{input}{}\nset {home}\n", folder.display()), "the output differs");
    assert_eq!(output.stderr.text(), "aside\n");
    assert_eq!(locks(&folder), 0, "the lock is cleared away");
    // Nothing is there to be read, and a program that does not read is not waited for.
    assert_eq!(text(&run(&context(), &host(&folder), &shell(&folder, "cat; echo end")).unwrap().stdout), "end\n");
    let deaf = CommandSpec { stdin: Some(vec![b'x'; 1 << 20]), ..shell(&folder, "echo deaf") };
    assert_eq!(text(&run(&context(), &host(&folder), &deaf).unwrap().stdout), "deaf\n");
}

#[test]
fn a_program_that_fails_is_told_with_its_code_and_its_last_lines() {
    let dir = tempfile::tempdir().unwrap();
    let script = "i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo \"line $i\" >&2; done; exit 3";
    let error = run(&context(), &host(dir.path()), &shell(dir.path(), script)).unwrap_err();
    assert!(matches!(error, CommandError::Failed { code: 3, .. }), "{error:?}");
    let failure = error.to_failure();
    assert_eq!((failure.code.as_str(), failure.disposition), ("command.failed", Disposition::Retry));
    assert!(failure.message.contains("exit code 3") && failure.message.ends_with("line 199\nline 200"), "{failure}");
    assert!(!failure.message.contains("line 100\n"), "{failure}");

    let error = run(&context(), &host(dir.path()), &shell(dir.path(), "echo x >&2; kill -SEGV $$")).unwrap_err();
    assert!(matches!(error, CommandError::Signalled { signal: 11, .. }), "{error:?}");
    assert!(error.to_string().contains("signal 11 (SIGSEGV)") && error.to_string().ends_with('x'), "{error}");
}

#[test]
fn a_program_that_is_not_there_or_no_program_is_a_persons_business() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    fs::write(&plain, "no program").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
    let nowhere = CommandSpec { folder: Some(dir.path().join("nowhere")), ..CommandSpec::new("true", [""; 0]) };
    for (spec, code) in [
        (CommandSpec::new("jobctl-no-such-program", ["x"]), "command.not_found"),
        (CommandSpec::new(&plain, [""; 0]), "command.not_started"),
        (nowhere, "command.no_folder"),
    ] {
        let error = run(&context(), &host(dir.path()), &spec).unwrap_err();
        assert_eq!((error.code(), error.disposition()), (code, Disposition::Operator), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("jobctl runs resume RUN")), "{error}");
    }
    assert_eq!(locks(dir.path()), 0);
}

/// Cancels once the script has written the file `child`.
fn cancel_when_it_runs(folder: &Path, cancel: CancelToken) -> thread::JoinHandle<()> {
    let folder = folder.to_owned();
    thread::spawn(move || {
        pid(&folder, "child");
        cancel.cancel();
    })
}

#[test]
fn a_cancelled_program_that_ignores_sigterm_is_killed_with_its_children() {
    let dir = tempfile::tempdir().unwrap();
    let (ctx, cancel) = cancellable();
    let script = "trap '' TERM; sh -c 'echo $$ > grandchild; while :; do sleep 1; done' & \
                  while [ ! -s grandchild ]; do sleep 0.01; done; echo going >&2; echo $$ > child; \
                  while :; do sleep 1; done";
    let cancelling = cancel_when_it_runs(dir.path(), cancel);
    let spec = CommandSpec { grace_ms: 300, ..shell(dir.path(), script) };
    let error = run(&ctx, &host(dir.path()), &spec).unwrap_err();
    assert!(is_dead(pid(dir.path(), "child")) && is_dead(pid(dir.path(), "grandchild")), "dead when it returns");
    assert!(matches!(&error, CommandError::Cancelled { stderr, .. } if stderr == "going"), "{error:?}");
    cancelling.join().unwrap();
    assert!(matches!(run(&ctx, &host(dir.path()), &spec), Err(CommandError::Cancelled { .. })), "not begun at all");
}

#[test]
fn a_cancelled_program_may_clean_up_within_its_grace() {
    let dir = tempfile::tempdir().unwrap();
    let (ctx, cancel) = cancellable();
    let script = "trap 'echo cleaned > clean; exit 0' TERM; echo $$ > child; while :; do sleep 0.05; done";
    let cancelling = cancel_when_it_runs(dir.path(), cancel);
    let error = run(&ctx, &host(dir.path()), &shell(dir.path(), script)).unwrap_err();
    assert!(matches!(error, CommandError::Cancelled { .. }), "also where it ended with 0: {error:?}");
    assert_eq!(fs::read_to_string(dir.path().join("clean")).unwrap(), "cleaned\n");
    cancelling.join().unwrap();
}

#[test]
fn a_program_that_runs_too_long_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let spec = CommandSpec { timeout_ms: Some(300), ..shell(dir.path(), "echo $$ > child; sleep 600") };
    let clock = TestClock::new();
    let error = run(&context(), &host(dir.path()), &spec).unwrap_err();
    assert!(matches!(error, CommandError::TimedOut { timeout_ms: 300, .. }), "{error:?}");
    assert!(is_dead(pid(dir.path(), "child")));
    assert!(clock.monotonic_us() < 5_000_000, "SIGTERM was enough");
}

#[test]
fn what_a_program_leaves_in_its_group_is_dead_before_its_step_ends() {
    let dir = tempfile::tempdir().unwrap();
    let script = "sleep 600 & echo $! > left; sh -c 'sleep 0.2; echo late'& echo early";
    let output = run(&context(), &host(dir.path()), &shell(dir.path(), script)).unwrap();
    assert!(is_dead(pid(dir.path(), "left")));
    assert_eq!(text(&output.stdout), "early\nlate\n", "the end of a pipe may write what it still has");
}

#[test]
fn a_hundred_megabytes_of_output_do_not_fill_the_memory() {
    let dir = tempfile::tempdir().unwrap();
    let script = "head -c 100000000 /dev/zero; head -c 1000000 /dev/zero | tr '\\0' e >&2";
    let before = peak_kib();
    let output = run(&context(), &host(dir.path()), &shell(dir.path(), script)).unwrap();
    assert_eq!(output.stdout.total_bytes, 100_000_000 + PREAMBLE.len() as u64);
    assert_eq!(output.stdout.bytes.len(), OUTPUT_LIMIT_BYTES);
    assert_eq!((output.stderr.total_bytes, output.stderr.bytes.len()), (1_000_000, OUTPUT_LIMIT_BYTES));
    assert!(output.stdout.is_cut() && output.stderr.is_cut());
    if let (Some(before), Some(after)) = (before, peak_kib()) {
        assert!(after < before + 16 * 1024, "{before} KiB, then {after} KiB");
    }
}

/// The most memory that this process ever had, where the system tells it.
fn peak_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?.parse().ok()
}

/// A process that runs a program with a grandchild, once both live.
fn parent_with_program(folder: &Path) -> (Child, Pid, Pid) {
    let parent = Command::new(std::env::current_exe().unwrap())
        .args(["process::tests::runs_and_is_killed", "--exact", "--ignored", "--nocapture"])
        .env("PROCESS_TEST_FOLDER", folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (child, grandchild) = (pid(folder, "child"), pid(folder, "grandchild"));
    assert!(!is_dead(child) && !is_dead(grandchild));
    (parent, child, grandchild)
}

#[test]
fn kill_9_of_the_parent_kills_the_child_and_the_grandchild() {
    let dir = tempfile::tempdir().unwrap();
    let (mut parent, child, grandchild) = parent_with_program(dir.path());
    parent.kill().unwrap();
    // As another process would that takes the run over at this very moment.
    let script = format!(
        "kill -0 {child} || kill -0 {grandchild} || echo both are dead",
        child = child.as_raw_nonzero(),
        grandchild = grandchild.as_raw_nonzero()
    );
    let output = run(&context(), &host(dir.path()), &shell(dir.path(), &script)).unwrap();
    assert_eq!(text(&output.stdout), "both are dead\n");
    assert!(is_dead(child) && is_dead(grandchild));
    parent.wait().unwrap();
}

/// The process that watches over the program, by its command line.
#[cfg(target_os = "linux")]
fn supervisor_of(program: Pid) -> Pid {
    let stat = fs::read_to_string(format!("/proc/{}/stat", program.as_raw_nonzero())).unwrap();
    let parent = stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    Pid::from_raw(parent).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_outlives_parent_and_supervisor_keeps_its_step_from_running_twice() {
    let dir = tempfile::tempdir().unwrap();
    let (mut parent, child, grandchild) = parent_with_program(dir.path());
    let supervisor = supervisor_of(child);
    // The parent does not live to see that the supervisor is gone.
    let stopped = Pid::from_child(&parent);
    kill_process(stopped, Signal::STOP).unwrap();
    kill_process(supervisor, Signal::KILL).unwrap();
    parent.kill().unwrap();
    parent.wait().unwrap();
    until("the supervisor is dead", || is_dead(supervisor));
    assert!(!is_dead(child) && !is_dead(grandchild));
    let again = thread::spawn({
        let folder = dir.path().to_owned();
        move || run(&context(), &host(&folder), &shell(&folder, "echo ran > again"))
    });
    thread::park_timeout(Duration::from_millis(300));
    assert!(!again.is_finished() && !dir.path().join("again").exists(), "it waits for the lock");
    kill_process_group(child, Signal::KILL).unwrap();
    again.join().unwrap().unwrap();
    assert!(dir.path().join("again").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_supervisor_that_is_killed_takes_its_program_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let killing = thread::spawn({
        let folder = dir.path().to_owned();
        move || {
            let supervisor = supervisor_of(pid(&folder, "child"));
            // Once it has told whom it watches. One that is killed before leaves a program that keeps its step's lock.
            until("it has told", || told_of_a_group(&folder));
            thread::park_timeout(Duration::from_millis(200));
            kill_process(supervisor, Signal::KILL).unwrap();
        }
    });
    let error = run(&context(), &host(dir.path()), &shell(dir.path(), "echo $$ > child; sleep 600")).unwrap_err();
    killing.join().unwrap();
    assert!(matches!(error, CommandError::Supervisor { .. }), "{error:?}");
    let child = pid(dir.path(), "child");
    until("the program is dead", || is_dead(child));
}

#[test]
fn a_service_manager_that_ends_all_processes_leaves_the_program_to_its_step() {
    let dir = tempfile::tempdir().unwrap();
    // The supervisor is the shell's parent.
    let script = "kill -TERM $PPID; kill -INT $PPID; kill -HUP $PPID; sleep 0.1; echo still here";
    let output = run(&context(), &host(dir.path()), &shell(dir.path(), script)).unwrap();
    assert_eq!(text(&output.stdout), "still here\n");
}

/// `setsid` is not on every system.
#[cfg(target_os = "linux")]
#[test]
fn a_program_that_leaves_its_group_is_not_waited_for_and_still_keeps_its_step_to_itself() {
    let dir = tempfile::tempdir().unwrap();
    let script = "setsid sh -c 'echo $$ > daemon; exec sleep 600' & while [ ! -s daemon ]; do sleep 0.01; done";
    run(&context(), &host(dir.path()), &shell(dir.path(), script)).unwrap();
    let daemon = pid(dir.path(), "daemon");
    assert!(!is_dead(daemon));
    assert_eq!(locks(dir.path()), 1);
    let (waiting, cancel) = cancellable();
    let again = thread::spawn({
        let folder = dir.path().to_owned();
        move || run(&waiting, &host(&folder), &shell(&folder, "echo ran > again"))
    });
    thread::park_timeout(Duration::from_millis(200));
    assert!(!again.is_finished());
    cancel.cancel();
    assert!(matches!(again.join().unwrap(), Err(CommandError::Cancelled { .. })));
    assert!(!dir.path().join("again").exists());
    kill_process(daemon, Signal::KILL).unwrap();
    run(&context(), &host(dir.path()), &shell(dir.path(), "true")).unwrap();
    assert_eq!(locks(dir.path()), 0);
}

/// Ten seconds are waited for the lock.
#[cfg(target_os = "linux")]
#[test]
fn nightly_who_still_runs_after_an_earlier_attempt_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let script = "setsid sh -c 'echo $$ > daemon; exec sleep 600' & while [ ! -s daemon ]; do sleep 0.01; done; \
                  echo $$ > group";
    run(&context(), &host(dir.path()), &shell(dir.path(), script)).unwrap();
    let error = run(&context(), &host(dir.path()), &shell(dir.path(), "echo ran > again")).unwrap_err();
    kill_process(pid(dir.path(), "daemon"), Signal::KILL).unwrap();
    let group = pid(dir.path(), "group").as_raw_nonzero();
    assert!(error.to_string().contains(&format!("(process group {group})")), "{error}");
    assert_eq!((error.code(), error.disposition()), ("command.still_runs", Disposition::Retry));
    assert!(error.hint().is_some_and(|hint| hint.contains("fuser -v ")), "{error}");
    assert!(!dir.path().join("again").exists());
}
