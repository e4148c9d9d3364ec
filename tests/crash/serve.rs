//! The daemon, killed in the middle of a run.

use std::os::unix::process::ExitStatusExt as _;

use crate::support::daemon::Daemon;
use crate::world::{PRODUCT, World};

fn detach(world: &World) -> String {
    let output = world.publish_revision().arg("--detach").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    run["run_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_daemon_that_is_killed_in_the_middle_of_a_run_is_replaced_by_another() {
    let reference = World::new();
    assert!(reference.publish_revision().output().unwrap().status.success());
    let fingerprint = reference.live_fingerprint();
    for point in ["engine.take_over.before", "inventory.after_root"] {
        let world = World::new();
        let run = detach(&world);
        let is_early = point.starts_with("engine.");
        if is_early {
            // A first daemon leaves the run interrupted; the second dies as it takes it over.
            let first = Daemon::start(&world.env, &[], Some("engine.result.before:2"));
            assert_eq!(first.wait().0.signal(), Some(6));
        }
        let daemon = Daemon::start(&world.env, &[], Some(point));
        let (status, told) = daemon.wait();
        assert_eq!(status.signal(), Some(6), "{point} was not reached: {told:?}");
        world.assert_one_live(point);
        let mut daemon = Daemon::start(&world.env, &[], None);
        assert_eq!(daemon.until_ended(&run)["state"], "succeeded", "{point}");
        let report = daemon.end();
        assert_eq!((&report["taken_over"], &report["taken"]), (&1.into(), &0.into()), "{point}: {report}");
        world.assert_published(&fingerprint, point);
    }
}

#[test]
fn a_daemon_at_work_takes_over_what_a_killed_process_was_at() {
    let world = World::new();
    let mut daemon = Daemon::start(&world.env, &[], None);
    let output = world.publish_revision().env("JOBCTL_CRASH_AT", "edition.seal.after_manifest").output().unwrap();
    assert_eq!(output.status.signal(), Some(6), "{output:?}");
    let over = daemon.until("it is taken over", |event| event["event"] == "run_taken_over");
    assert_eq!(over["product"], PRODUCT);
    let run = over["run_id"].as_str().unwrap().to_owned();
    assert_eq!(daemon.until_ended(&run)["state"], "succeeded");
    assert_eq!(daemon.end()["taken_over"], 1);
}

#[test]
fn what_a_run_that_was_cancelled_at_the_daemon_had_sealed_is_never_recorded() {
    let world = World::new();
    let run = detach(&world);
    let daemon = Daemon::start(&world.env, &[], Some("edition.seal.after_manifest"));
    assert_eq!(daemon.wait().0.signal(), Some(6));
    let cancelled = world.env.json(["runs", "cancel", &run, "--reason", "wrong numbers"]);
    assert_eq!(cancelled["state"], "cancelled", "{cancelled}");
    // The daemon that comes finds nothing to do, and the next publish does not make it live.
    let daemon = Daemon::start(&world.env, &[], None);
    let report = daemon.end();
    assert_eq!((&report["taken_over"], &report["taken"]), (&0.into(), &0.into()), "{report}");
    assert_eq!(world.env.json(["inventory", "log"])["versions"].as_array().unwrap().len(), 2);
}
