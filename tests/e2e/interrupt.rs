//! A person interrupts a run that they stay with.

use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::env::Env;
use crate::support::table::Table;

const PRODUCT: &str = "99100001";

/// A publish at its first step, which cannot end while the lock is held; and its run.
fn at_work(env: &Env) -> (std::fs::File, Child, String) {
    let lock = std::fs::File::open(env.path("catalog/LOCK")).unwrap();
    lock.lock().unwrap();
    let source = env.path("table.zip");
    Table::new(PRODUCT, 3).write_zip(&source);
    let source = source.display().to_string();
    let mut command = env.command(["run", "publish", "--product", PRODUCT, "--source", &source]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for _ in 0..1_000 {
        let runs = env.json(["runs", "list"]);
        if let Some(run) = runs["runs"][0]["run_id"].as_str()
            && env.json(["runs", "show", run])["steps"][0]["state"] == "running"
        {
            return (lock, child, run.to_owned());
        }
    }
    child.kill().unwrap();
    panic!("the run does not begin: {:?}", child.wait());
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn an_interrupted_run_is_given_back_after_its_step_and_goes_on_elsewhere() {
    let env = Env::with_catalog();
    for (number, by) in [Signal::INT, Signal::TERM].into_iter().enumerate() {
        let (lock, child, run) = at_work(&env);
        signal(&child, by);
        // The step at work comes to its end, and is recorded.
        drop(lock);
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("interrupted: the run is given back") && text.contains("given back"), "{text}");
        let shown = env.json(["runs", "show", &run]);
        assert_eq!((&shown["run"]["interrupted"], &shown["steps"][0]["state"]), (&true.into(), &"succeeded".into()));
        let listed = env.json(["runs", "list", "--in", "interrupted"]);
        assert_eq!(listed["runs"].as_array().unwrap().len(), 1, "{listed}");
        assert_eq!(listed["runs"][0]["run_id"], run.as_str());
        env.jobctl(["runs", "resume"]).exits(0);
        let shown = env.json(["runs", "show", &run]);
        assert_eq!(shown["run"]["state"], "succeeded");
        let steps = shown["steps"].as_array().unwrap();
        assert!(steps.iter().all(|step| step["attempt"] == 1), "{number}: no attempt was charged: {steps:?}");
    }
}

#[test]
fn a_second_interrupt_ends_it_at_once() {
    use std::os::unix::process::ExitStatusExt as _;
    let env = Env::with_catalog();
    let (_lock, mut child, run) = at_work(&env);
    signal(&child, Signal::INT);
    for _ in 0..600 {
        if let Some(status) = child.try_wait().unwrap() {
            assert_eq!(status.signal(), Some(9));
            assert_eq!(env.json(["runs", "show", &run])["run"]["interrupted"], true);
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(100));
        let _ = kill_process(Pid::from_child(&child), Signal::INT);
    }
    panic!("it does not end");
}
