//! The daemon, and runs that are left to it.

use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::daemon::Daemon;
use crate::support::env::Env;
use crate::support::table::Table;

const PRODUCT: &str = "99100001";

/// Leaves a publish of a small table in the queue and gives its run's id.
#[track_caller]
fn detach(env: &Env, product: &str, source: &Path) -> String {
    let source = source.display().to_string();
    let run = env.json(["run", "publish", "--product", product, "--source", &source, "--detach"]);
    assert_eq!((&run["state"], &run["exit_code"]), (&"queued".into(), &0.into()), "{run}");
    run["run_id"].as_str().unwrap().to_owned()
}

fn zip(env: &Env, product: &str) -> std::path::PathBuf {
    let path = env.path(&format!("{product}.zip"));
    Table::new(product, 3).write_zip(&path);
    path
}

fn live(env: &Env) -> Vec<String> {
    let inventory = env.json(["inventory", "show"]);
    let products = inventory["products"].as_array().unwrap();
    let live = products.iter().filter(|product| product["state"] == "live");
    live.map(|product| product["product_id"].as_str().unwrap().to_owned()).collect()
}

fn show(env: &Env, run: &str) -> Value {
    env.json(["runs", "show", run])
}

#[test]
fn a_detached_publish_waits_for_the_daemon_which_carries_it_out() {
    let env = Env::with_catalog();
    let source = zip(&env, PRODUCT);
    let run = detach(&env, PRODUCT, &source);
    assert_eq!(show(&env, &run)["run"]["state"], "queued");
    // Another of the product is refused, or stands in line.
    let path = source.display().to_string();
    let again = ["run", "publish", "--product", PRODUCT, "--source", &path, "--detach"];
    env.jobctl(again).exits(4).says(&["waits in the queue", "jobctl serve"]);
    let second = env.jobctl(again.into_iter().chain(["--wait", "--json"])).exits(0).json();
    let second = second["run_id"].as_str().unwrap().to_owned();
    let mut daemon = Daemon::start(&env, &["--in-flight", "2"], None);
    for run in [&run, &second] {
        assert_eq!(daemon.until_ended(run)["state"], "succeeded");
    }
    let steps: Vec<_> = daemon.told.iter().filter(|event| event["event"] == "step_succeeded").collect();
    assert_eq!(steps.len(), 12, "six of each run: {steps:?}");
    assert!(steps.iter().all(|step| step["product"] == PRODUCT && step["duration_us"].is_u64()), "{steps:?}");
    let report = daemon.end();
    assert_eq!((&report["taken"], &report["succeeded"], &report["left"]), (&2.into(), &2.into(), &0.into()));
    assert_eq!(live(&env), [PRODUCT]);
    assert_eq!(env.json(["inventory", "log"])["versions"].as_array().unwrap().len(), 3, "init and two publishes");
}

#[test]
fn the_daemon_writes_a_line_for_each_thing_that_happens() {
    let env = Env::with_catalog();
    let run = detach(&env, PRODUCT, &zip(&env, PRODUCT));
    let mut serve = env.command(["serve"]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    env.jobctl(["runs", "watch", &run]).exits(0);
    let pid = rustix::process::Pid::from_child(&serve);
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut serve.stdout.take().unwrap(), &mut text).unwrap();
    assert_eq!(serve.wait().unwrap().code(), Some(0), "{text}");
    let lines: Vec<_> = text.lines().collect();
    for line in &lines {
        let stamp: String = line.chars().take(19).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(stamp, "0000-00-00 00:00:00", "each line has its time: {line}");
    }
    for (what, more) in [
        ("serving", "2 at work at once at most"),
        ("taken", run.as_str()),
        ("seal", "fingerprint"),
        ("record", "live in version 2"),
        ("done", run.as_str()),
        ("ending", "30 s"),
        ("ended", "1 taken, 1 succeeded"),
    ] {
        assert!(lines.iter().any(|line| line.contains(what) && line.contains(more)), "{what} {more}: {text}");
    }
}

#[test]
fn two_daemons_share_a_queue() {
    let env = Env::with_catalog();
    let products: Vec<_> = (1..=3).map(|number| format!("9910000{number}")).collect();
    let runs: Vec<_> = products.iter().map(|product| detach(&env, product, &zip(&env, product))).collect();
    let daemons = [0, 1].map(|_| Daemon::start(&env, &["--in-flight", "1"], None));
    for run in &runs {
        env.jobctl(["runs", "watch", run]).exits(0);
    }
    let taken: Vec<u64> = daemons.into_iter().map(|daemon| daemon.end()["taken"].as_u64().unwrap()).collect();
    assert_eq!(taken.iter().sum::<u64>(), 3, "{taken:?}");
    assert_eq!(live(&env), products);
    for run in &runs {
        let shown = show(&env, run);
        assert_eq!(shown["run"]["epoch"], 1, "{shown}");
        assert!(shown["steps"].as_array().unwrap().iter().all(|step| step["attempt"] == 1), "{shown}");
    }
}

#[test]
fn a_daemon_that_is_told_to_end_gives_its_runs_back() {
    let env = Env::with_catalog();
    let products: Vec<_> = (1..=3).map(|number| format!("9910000{number}")).collect();
    let runs: Vec<_> = products.iter().map(|product| detach(&env, product, &zip(&env, product))).collect();
    let mut daemon = Daemon::start(&env, &["--in-flight", "1"], None);
    daemon.until("a step has ended", |event| event["event"] == "step_succeeded");
    let report = daemon.end();
    println!("{report}");
    let count = |what: &str| report[what].as_u64().unwrap();
    assert_eq!(count("taken"), count("succeeded") + count("given_back"), "{report}");
    assert!(count("taken") < 3 && count("left") == 0, "{report}");
    // The next one finishes them, and no attempt was charged.
    let mut daemon = Daemon::start(&env, &[], None);
    for run in runs.iter().filter(|run| show(&env, run)["run"]["state"] != "succeeded") {
        assert_eq!(daemon.until_ended(run)["state"], "succeeded");
    }
    let next = daemon.end();
    assert_eq!(next["taken_over"], report["given_back"], "{next}");
    assert_eq!(live(&env), products);
    for run in &runs {
        let steps = show(&env, run)["steps"].clone();
        assert!(steps.as_array().unwrap().iter().all(|step| step["attempt"] == 1), "{steps}");
    }
}

/// A daemon at the first step of a publish, which cannot end while the test holds the catalog's lock.
fn held_up(env: &Env, args: &[&str]) -> (String, std::fs::File, Daemon) {
    let lock = std::fs::File::open(env.path("catalog/LOCK")).unwrap();
    lock.lock().unwrap();
    let run = detach(env, PRODUCT, &zip(env, PRODUCT));
    let mut daemon = Daemon::start(env, args, None);
    daemon.until("it begins the run", |event| event["event"] == "run_started");
    for _ in 0..1_000 {
        if show(env, &run)["steps"][0]["state"] == "running" {
            break;
        }
    }
    assert_eq!(show(env, &run)["steps"][0]["state"], "running");
    (run, lock, daemon)
}

#[test]
fn a_step_that_outlasts_the_grace_is_the_next_owners() {
    let env = Env::with_catalog();
    let (run, lock, daemon) = held_up(&env, &["--grace", "1"]);
    let report = daemon.end();
    assert_eq!((&report["left"], &report["given_back"]), (&1.into(), &0.into()), "{report}");
    assert_eq!(show(&env, &run)["run"]["interrupted"], true);
    drop(lock);
    let mut daemon = Daemon::start(&env, &[], None);
    assert_eq!(daemon.until_ended(&run)["state"], "succeeded");
    daemon.end();
    assert_eq!(show(&env, &run)["run"]["epoch"], 2);
    assert_eq!(live(&env), [PRODUCT]);
}

#[test]
fn a_second_signal_ends_the_daemon_at_once() {
    use std::os::unix::process::ExitStatusExt as _;
    let env = Env::with_catalog();
    let (_, _lock, mut daemon) = held_up(&env, &["--grace", "3600"]);
    daemon.signal(Signal::TERM);
    daemon.until("it is ending", |event| event["event"] == "ending");
    daemon.signal(Signal::INT);
    let (status, told) = daemon.wait();
    assert_eq!(status.signal(), Some(9), "{told:?}");
}

#[test]
fn watching_follows_a_run_of_another_process_and_ends_as_it_does() {
    let env = Env::with_catalog();
    let run = detach(&env, PRODUCT, &zip(&env, PRODUCT));
    let follow = |args: &[&str]| {
        let args = ["runs", "watch", &run].into_iter().chain(args.iter().copied());
        env.command(args).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    };
    // From before it begins.
    let (text, stream) = (follow(&[]), follow(&["--jsonl"]));
    let daemon = Daemon::start(&env, &[], None);
    let (text, stream) = (text.wait_with_output().unwrap(), stream.wait_with_output().unwrap());
    daemon.end();
    assert_eq!((text.status.code(), stream.status.code()), (Some(0), Some(0)));
    let text = String::from_utf8(text.stdout).unwrap();
    for part in ["in the queue", "  open ", "  seal ", "  record ", "live in version 2", "done in", "3 rows"] {
        let part = part.replace("3 rows", "18 rows");
        assert!(text.contains(&part), "{part}: {text}");
    }
    let stream = String::from_utf8(stream.stdout).unwrap();
    let events: Vec<Value> = stream.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().all(|event| event["schema"] == "jobctl.runs.watch/1"), "{stream}");
    let steps: Vec<_> = events.iter().filter(|event| event["event"] == "step_ended").collect();
    let names: Vec<_> = steps.iter().map(|step| step["step"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["open", "resolve_source", "build", "seal", "check", "record"], "each once: {stream}");
    let last = events.last().unwrap();
    assert_eq!((&last["event"], &last["state"], &last["exit_code"]), (&"ended".into(), &"succeeded".into(), &0.into()));

    // One that ended is told in the same way.
    let again = env.jobctl(["runs", "watch", &run]).exits(0);
    assert!(
        text.ends_with(&again.stdout.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>()),
        "{again:?}"
    );
    assert_eq!(env.json(["runs", "watch", &run])["output"]["state"], "live");
}

#[test]
fn watching_a_run_that_fails_or_is_blocked_ends_with_its_exit_code() {
    let env = Env::with_catalog();
    let bad = Table { last_line: Some("not,a,row".to_owned()), ..Table::new(PRODUCT, 3) };
    bad.write_zip(&env.path("bad.zip"));
    let run = detach(&env, PRODUCT, &env.path("bad.zip"));
    let daemon = Daemon::start(&env, &[], None);
    let watched = env.jobctl(["runs", "watch", &run]);
    let failure = show(&env, &run)["run"]["failure"].clone();
    assert_eq!(watched.code, Some(1), "{watched:?}");
    watched.says(&["failed", failure["message"].as_str().unwrap().lines().next().unwrap()]);

    // A run that a person must look at.
    let missing = env.path("later.zip");
    Table::new("99100002", 3).write_zip(&missing);
    let run = detach(&env, "99100002", &missing);
    env.jobctl(["runs", "watch", &run]).exits(0);
    let report = daemon.end();
    assert_eq!((&report["failed"], &report["succeeded"]), (&1.into(), &1.into()), "{report}");
    env.jobctl(["runs", "watch", "zzzz"]).exits(2);
}
