//! A fold that ends at any of its points is gone on with as a publish is.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;

use crate::world::{PRODUCT, World};

const ABORTED: i32 = 6;

const OVERLAY: &str = r#"{"format_version":"1.2","id":"note","entries":[
  {"selector":"Codelist","op":"add","type":"NOTE","annotation":{"text":{"en":"A note"}}}]}"#;

/// The fold of an overlay into the live edition, to be started.
fn fold(world: &World) -> Command {
    std::fs::write(world.env.path("note.json"), OVERLAY).unwrap();
    world.env.command(["run", "fold", "--product", PRODUCT, "--overlay", "note.json", "--reason", "a note"])
}

/// Ends a fold at each of `points`, goes on, and asserts that it ends as one that was not disturbed.
fn survive(points: &[&str]) {
    let undisturbed = World::new();
    assert!(fold(&undisturbed).status().unwrap().success());
    let fingerprint = undisturbed.live_fingerprint();
    undisturbed.assert_published(&fingerprint, "undisturbed");
    for point in points {
        let world = World::new();
        let output = fold(&world).env("JOBCTL_CRASH_AT", point).output().unwrap();
        assert_eq!(output.status.signal(), Some(ABORTED), "{point} was not reached: {output:?}");
        world.assert_one_live(point);
        // An annotation is added once, however often the step ran.
        world.env.jobctl(["runs", "resume"]).exits(0);
        world.assert_published(&fingerprint, point);
    }
}

#[test]
fn a_fold_is_survived_before_and_after_its_manifest() {
    survive(&["edition.build.rows_written", "edition.seal.after_manifest"]);
}

#[test]
fn nightly_a_fold_is_survived_at_its_other_points() {
    survive(&[
        "edition.build.staged",
        "edition.build.directory_created",
        "edition.build.artefacts_written",
        "edition.seal.journal_written",
        "edition.seal.store_compacted",
        "edition.seal.before_manifest",
        "inventory.after_root",
        "publish.record.before_journal_cleared",
    ]);
}

#[test]
fn an_overlay_that_changed_meanwhile_is_refused() {
    let world = World::new();
    let output = fold(&world).env("JOBCTL_CRASH_AT", "edition.build.staged").output().unwrap();
    assert_eq!(output.status.signal(), Some(ABORTED), "{output:?}");
    std::fs::write(world.env.path("note.json"), OVERLAY.replace("A note", "Another")).unwrap();
    let refused = world.env.jobctl(["runs", "resume"]).exits(1);
    refused.says(&["overlay.changed", "note.json", "--from resolve_overlays"]);
    // Folded as it is now, by the command that the refusal names.
    let run = world.newest_run().unwrap()["run"]["run_id"].as_str().unwrap().to_owned();
    world.env.jobctl(["runs", "replay", &run, "--from", "resolve_overlays", "--reason", "as it is now"]).exits(0);
    let fingerprint = world.live_fingerprint();
    world.assert_published(&fingerprint, "replayed");
}

#[test]
fn a_cancelled_fold_is_not_made_live_by_the_next_publish() {
    let world = World::new();
    let output = fold(&world).env("JOBCTL_CRASH_AT", "edition.seal.after_manifest").output().unwrap();
    assert_eq!(output.status.signal(), Some(ABORTED), "{output:?}");
    let run = world.newest_run().unwrap()["run"]["run_id"].as_str().unwrap().to_owned();
    world.env.jobctl(["runs", "cancel", &run, "--reason", "not this one"]).exits(0).says(&["will not be recorded"]);
    let output = world.publish_revision().output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let fingerprint = world.live_fingerprint();
    world.assert_published(&fingerprint, "published after the cancel");
    let log = world.env.json(["inventory", "log"]);
    assert_eq!(log["versions"].as_array().unwrap().len(), 3, "init, first, published: {log}");
}
