//! The sweep: the process ends at each point that a publish passes, each time it passes it.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::world::World;

const ABORTED: i32 = 6;

/// The points that an undisturbed publish of the revision passes, each with its number of passages so far, and the
/// fingerprint of what it publishes.
fn undisturbed() -> (Vec<String>, String) {
    let world = World::new();
    let trace = world.env.path("trace");
    let output = world.publish_revision().env("JOBCTL_CRASH_TRACE", &trace).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut passed = BTreeMap::<String, usize>::new();
    let trace = std::fs::read_to_string(&trace).unwrap();
    let points = trace.lines().map(|name| {
        let n = passed.entry(name.to_owned()).or_default();
        *n += 1;
        (name, *n)
    });
    // Whether a step's start is recorded before its result depends on how long it took; the first passage is the long
    // build's, and every other point is passed as often each time.
    let points = points.filter(|(name, n)| *n == 1 || !name.starts_with("engine.step_start."));
    (points.map(|(name, n)| format!("{name}:{n}")).collect(), world.live_fingerprint())
}

/// Ends a publish at `point`, and asserts that it was reached.
fn crash(world: &World, point: &str) {
    let output = world.publish_revision().env("JOBCTL_CRASH_AT", point).output().unwrap();
    assert_eq!(output.status.signal(), Some(ABORTED), "{point} was not reached: {output:?}");
}

fn survive(point: &str, n: usize, fingerprint: &str) {
    let world = World::new();
    crash(&world, point);
    world.assert_one_live(point);
    let newest = world.newest_run();
    let before = newest.as_ref().map(World::recorded).unwrap_or_default();
    // Once the run has ended there is nothing to take up: another publish would be one more edition.
    let has_ended = newest.as_ref().is_some_and(|run| run["run"]["state"] == "succeeded");
    // An operator resumes, or cron simply runs the publish again: both must do.
    if newest.is_some() && (n.is_multiple_of(2) || has_ended) {
        world.env.jobctl(["runs", "resume"]).exits(0);
    } else {
        let output = world.publish_revision().output().unwrap();
        assert!(output.status.success(), "{point}: {output:?}");
    }
    world.assert_published(fingerprint, point);
    let runs = world.env.json(["runs", "list"]);
    for run in runs["runs"].as_array().unwrap() {
        assert_eq!(run["state"], "succeeded", "{point}: {runs}");
    }
    let interrupted = runs["runs"].as_array().unwrap().iter().rev().nth(1).unwrap();
    let after = world.env.json(["runs", "show", interrupted["run_id"].as_str().unwrap()]);
    let after = World::recorded(&after);
    assert!(after.len() >= before.len(), "{point}: a recorded result is gone");
    for (earlier, later) in before.iter().zip(&after) {
        assert_eq!(earlier, later, "{point}: a recorded result changed");
    }
}

#[test]
fn every_point_is_survived() {
    let (points, fingerprint) = undisturbed();
    let distinct: std::collections::BTreeSet<_> = points.iter().filter_map(|p| p.split(':').next()).collect();
    assert!(distinct.len() >= 16, "only {} points: {distinct:?}", distinct.len());
    for needed in ["edition.seal.journal_written", "edition.seal.after_manifest", "inventory.after_root"] {
        assert!(distinct.contains(needed), "{needed} is not passed: {distinct:?}");
    }
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some(point) = points.get(n) else { break };
                    let survived = std::panic::catch_unwind(|| survive(point, n, &fingerprint));
                    if survived.is_err() {
                        failures.lock().unwrap().push(point.clone());
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "of {} passages these were not survived: {failures:?}", points.len());
}

#[test]
fn every_listed_point_is_passed_by_a_publish_or_a_takeover() {
    let (points, _) = undisturbed();
    let passed: std::collections::BTreeSet<_> = points.iter().filter_map(|p| p.split(':').next()).collect();
    let lists: [&[&str]; 4] = [
        engine::CRASH_POINTS,
        activities::edition::CRASH_POINTS,
        activities::inventory::CRASH_POINTS,
        activities::publish::CRASH_POINTS,
    ];
    for point in lists.into_iter().flatten().copied() {
        assert!(passed.contains(point) || point.starts_with("engine.take_over"), "{point} is listed and never passed");
    }
}

#[test]
fn a_crash_while_taking_over_is_survived_too() {
    let (_, fingerprint) = undisturbed();
    for point in ["engine.take_over.before", "engine.take_over.after"] {
        let world = World::new();
        crash(&world, "edition.seal.journal_written");
        for _ in 0..2 {
            let output = world.env.command(["runs", "resume"]).env("JOBCTL_CRASH_AT", point).output().unwrap();
            assert_eq!(output.status.signal(), Some(ABORTED), "{point} was not reached: {output:?}");
        }
        world.env.jobctl(["runs", "resume"]).exits(0);
        world.assert_published(&fingerprint, point);
    }
}

#[test]
fn a_lost_state_database_is_made_up_for_by_the_narrow_repair() {
    let (_, fingerprint) = undisturbed();
    let world = World::new();
    crash(&world, "edition.seal.after_manifest");
    std::fs::remove_dir_all(world.env.path("state")).unwrap();
    // The next publish of the product records what was sealed, then publishes the same content once more on top of it.
    let output = world.publish_revision().output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(world.live_fingerprint(), fingerprint);
    let log = world.env.json(["inventory", "log"]);
    assert_eq!(log["versions"].as_array().unwrap().len(), 4, "init, first, repaired, again: {log}");
}
