//! The binary as the supervisor of the programs that it runs.

use std::process::Stdio;
use std::sync::Arc;

use activities::process::{CommandHost, CommandSpec, SUPERVISE, run};
use engine_rules::activity::ActivityContext;

use crate::support::env::JOBCTL;

#[test]
fn the_binary_watches_over_a_program() {
    let dir = tempfile::tempdir().unwrap();
    let host = CommandHost {
        supervisor: JOBCTL.into(),
        supervisor_args: vec![SUPERVISE.into()],
        locks: dir.path().join("locks"),
        clock: Arc::new(engine::SystemClock::new()),
    };
    let mut spec = CommandSpec::new("sh", ["-c", "cat; echo aside >&2; tr '\\0' ' ' < /proc/$PPID/cmdline >&2; true"]);
    spec.stdin = Some(b"to and fro".to_vec());
    let output = run(&ActivityContext::detached(), &host, &spec).unwrap();
    assert_eq!((output.stdout.text().as_str(), output.stdout.total_bytes), ("to and fro", 10));
    let said = output.stderr.text();
    assert!(said.starts_with("aside\n"), "{said}");
    if cfg!(target_os = "linux") {
        assert!(said.contains("__supervise detached detached"), "a person sees whose program it is: {said}");
    }
}

#[test]
fn a_person_who_calls_the_supervisor_is_told_what_it_is() {
    let output = std::process::Command::new(JOBCTL).arg(SUPERVISE).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("it is not for a person"), "{said}");
}
