//! `jobctl runs purge` as a person uses it.

use crate::support::env::Env;
use crate::support::table::Table;

const PRODUCT: &str = "99100001";

#[test]
fn old_runs_are_purged_with_a_reason_and_failed_ones_when_they_are_asked_for() {
    let env = Env::with_catalog();
    env.jobctl(["runs", "purge", "--dry-run"]).exits(0).says(&["would purge 0 runs"]);
    assert!(!env.path("state").exists(), "looking creates no state");
    let mut table = Table::new(PRODUCT, 3);
    table.write_zip(&env.path("1.zip"));
    let run = env.publish(PRODUCT, &env.path("1.zip"));
    table.last_line = Some("\"not a row\"".to_owned());
    table.write_zip(&env.path("bad.zip"));
    env.jobctl(["run", "publish", "--product", PRODUCT, "--source", "bad.zip"]).exits(1);
    let count = || env.json(["runs", "list"])["runs"].as_array().unwrap().len();

    env.jobctl(["runs", "purge", "--older-than", "0s"]).exits(2).says(&["--reason"]);
    env.jobctl(["runs", "purge", "--older-than", "soon", "--reason", "x"]).exits(2).says(&["90d"]);
    env.jobctl(["runs", "purge", "--failed-too", "--reason", "x"]).exits(2).says(&["--older-than"]);
    // By the configuration: nothing is 90 days old.
    let report = env.json(["runs", "purge", "--reason", "by the book"]);
    assert_eq!((&report["runs"], count()), (&0.into(), 2));
    let dry = env.json(["runs", "purge", "--older-than", "0s", "--dry-run"]);
    assert_eq!((&dry["runs"], &dry["stay"]["failed"], count()), (&1.into(), &1.into(), 2));

    let ran = env.jobctl(["runs", "purge", "--older-than", "0s", "--reason", "the disk is full"]).exits(0);
    ran.says(&["purged 1 run with 6 steps", "1 stay: they failed: --failed-too"]);
    let id = run["run_id"].as_str().unwrap();
    env.jobctl(["runs", "show", id]).exits(2).says(&["no run"]);
    let report = env.json(["runs", "purge", "--older-than", "0s", "--failed-too", "--reason", "all of it"]);
    assert_eq!((&report["runs"], &report["finished"], count()), (&1.into(), &true.into(), 0));
    // What was published does not hang on the record of its run.
    table.last_line = None;
    Table::new(PRODUCT, 4).write_zip(&env.path("2.zip"));
    env.publish(PRODUCT, &env.path("2.zip"));
}
