//! A run that a person cancelled: what it had sealed never goes live.

use std::process::Stdio;

use serde_json::Value;

use crate::support::env::Env;
use crate::support::table::Table;

const PRODUCT: &str = "99100001";

/// A catalog with one live edition, two revisions, and the command that publishes the first of them.
fn world() -> (Env, [std::path::PathBuf; 2]) {
    let env = Env::with_catalog();
    let table = Table::new(PRODUCT, 3);
    table.write_zip(&env.path("0.zip"));
    env.publish(PRODUCT, &env.path("0.zip"));
    let revisions = [1, 2].map(|revision| {
        let path = env.path(&format!("{revision}.zip"));
        Table { revision: revision * 100, ..Table::new(PRODUCT, 3) }.write_zip(&path);
        path
    });
    (env, revisions)
}

fn crash_at(env: &Env, point: &str, source: &std::path::Path) -> String {
    let source = source.display().to_string();
    let mut command = env.command(["run", "publish", "--product", PRODUCT, "--source", &source]);
    let output = command.env("JOBCTL_CRASH_AT", point).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.code().is_none(), "{point} was not reached: {output:?}");
    env.json(["runs", "list"])["runs"][0]["run_id"].as_str().unwrap().to_owned()
}

fn journal(env: &Env) -> usize {
    std::fs::read_dir(env.path(&format!("catalog/products/{PRODUCT}/journal"))).unwrap().count()
}

#[test]
fn what_a_cancelled_run_had_sealed_is_never_recorded() {
    for point in ["edition.seal.after_manifest", "inventory.after_leaves"] {
        let (env, [wrong, right]) = world();
        let run = crash_at(&env, point, &wrong);
        let cancelled = env.json(["runs", "cancel", &run, "--reason", "wrong numbers"]);
        assert_eq!(cancelled["edition"]["left"], "sealed", "{point}: {cancelled}");
        assert_eq!(journal(&env), 0, "{point}: the entry is left");
        env.publish(PRODUCT, &right);
        let log = env.json(["inventory", "log"]);
        assert_eq!(log["versions"].as_array().unwrap().len(), 3, "{point}: init, first, right: {log}");
    }
}

#[test]
fn it_is_not_recorded_either_when_the_cancelling_process_died_half_way() {
    let (env, [wrong, right]) = world();
    let run = crash_at(&env, "edition.seal.after_manifest", &wrong);
    let entries = env.path(&format!("catalog/products/{PRODUCT}/journal"));
    let entry = std::fs::read_dir(&entries).unwrap().next().unwrap().unwrap().path();
    let bytes = std::fs::read(&entry).unwrap();
    env.jobctl(["runs", "cancel", &run, "--reason", "wrong numbers"]).exits(0);
    // As if it had died after the run was recorded as cancelled, and before the entry went.
    std::fs::write(&entry, bytes).unwrap();
    env.publish(PRODUCT, &right);
    assert_eq!(env.json(["inventory", "log"])["versions"].as_array().unwrap().len(), 3);
    assert_eq!(journal(&env), 0);
}

/// The record of the run is what tells a cancelled seal from a crashed one, so the entry must go before the record does.
#[test]
fn it_is_not_recorded_either_when_the_record_of_the_cancelled_run_is_purged() {
    let (env, [wrong, right]) = world();
    let run = crash_at(&env, "edition.seal.after_manifest", &wrong);
    let entries = env.path(&format!("catalog/products/{PRODUCT}/journal"));
    let entry = std::fs::read_dir(&entries).unwrap().next().unwrap().unwrap().path();
    let bytes = std::fs::read(&entry).unwrap();
    env.jobctl(["runs", "cancel", &run, "--reason", "wrong numbers"]).exits(0);
    std::fs::write(&entry, bytes).unwrap();
    env.jobctl(["runs", "purge", "--older-than", "0s", "--dry-run"]).exits(0);
    assert_eq!(journal(&env), 1, "counting changes nothing");
    let purged = env.json(["runs", "purge", "--older-than", "0s", "--reason", "make room"]);
    assert_eq!(purged["runs"], 2);
    env.publish(PRODUCT, &right);
    let log = env.json(["inventory", "log"]);
    assert_eq!(log["versions"].as_array().unwrap().len(), 3, "init, first, right: {log}");
}

#[test]
fn a_half_written_edition_goes_with_the_cancel() {
    for point in ["edition.build.rows_written", "edition.seal.journal_written"] {
        let (env, [wrong, right]) = world();
        let run = crash_at(&env, point, &wrong);
        let cancelled = env.json(["runs", "cancel", &run, "--reason", "wrong numbers"]);
        assert_eq!((&cancelled["state"], &cancelled["edition"]), (&"cancelled".into(), &Value::Null), "{point}");
        let editions = env.json(["edition", "list", "--product", PRODUCT]);
        let editions = editions["editions"].as_array().unwrap();
        assert!(editions.iter().all(|edition| edition["sealed"] == true), "{point}: {editions:?}");
        let steps = env.json(["runs", "show", &run])["steps"].as_array().unwrap().clone();
        assert_eq!(steps.last().unwrap()["output"]["discarded"], true, "{point}: {steps:?}");
        // Nothing stands in the way of the product's next publish.
        env.publish(PRODUCT, &right);
    }
}

#[test]
fn what_was_recorded_before_the_cancel_stays() {
    let (env, [first, _]) = world();
    let run = crash_at(&env, "inventory.after_root", &first);
    let cancelled = env.json(["runs", "cancel", &run, "--reason", "too late"]);
    assert_eq!(cancelled["edition"]["left"], "recorded", "{cancelled}");
    assert_eq!(env.json(["inventory", "log"])["versions"].as_array().unwrap().len(), 3);
}
