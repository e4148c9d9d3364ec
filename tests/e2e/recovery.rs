//! What an operator does about a damaged or a lost Inventory.

use crate::support::env::Env;
use crate::support::table::Table;

#[test]
fn a_damaged_head_is_refused_by_writers_and_repaired_by_a_run_that_keeps_a_copy() {
    let env = Env::with_catalog();
    env.jobctl(["run", "embargo", "on"]).exits(0).says(&["version 2"]);
    // A writer died, and what it had begun became visible, as on a disk that lost its cache.
    let root = env.path("catalog/inventory/000000000003.json");
    std::fs::write(&root, b"{\"format_version\": \"1.2\",").unwrap();

    env.jobctl(["inventory", "show"]).exits(0).says(&["version 3 is not valid", "version 2"]);
    env.jobctl(["run", "embargo", "off"]).exits(5).says(&["version 3", "jobctl run repair-head --seq 3"]);
    env.jobctl(["run", "repair-head", "--seq", "3"]).exits(2).says(&["a reason is missing"]);
    let repair = |seq: &str, more: &[&str]| {
        let words = ["run", "repair-head", "--seq", seq, "--reason", "power cut"];
        env.jobctl(words.iter().chain(more))
    };
    repair("2", &[]).exits(3).says(&["version 2 is valid"]);
    repair("4", &["--dry-run"]).exits(3).says(&["there is no root of version 4"]);
    repair("3", &["--dry-run"]).exits(0).says(&["version 3 deleted, a copy kept, and version 2 the newest"]);
    assert!(root.exists() && !env.path("state/repaired").exists(), "a dry run changed something");

    let done = repair("3", &["--json"]).exits(0).json();
    assert!(!root.exists());
    assert_eq!(done["output"]["head"], 2);
    let kept = done["output"]["kept"].as_str().unwrap();
    assert_eq!(std::fs::read(kept).unwrap(), b"{\"format_version\": \"1.2\",");
    env.jobctl(["runs", "show", done["run_id"].as_str().unwrap()]).exits(0).says(&["repair_head", "power cut"]);
    // The run that the damage held up goes on by itself: it is blocked, not lost.
    let runs = env.json(["runs", "list", "--in", "blocked"]);
    let blocked = runs["runs"][0]["run_id"].as_str().unwrap();
    env.jobctl(["runs", "resume", blocked]).exits(0).says(&["version 3"]);
    env.jobctl(["verify"]).exits(0);
}

#[test]
fn an_inventory_that_is_gone_is_rebuilt_once_somebody_vouches_for_what_was_lost() {
    let env = Env::with_catalog();
    Table::new("99100001", 2).write_zip(&env.path("in.zip"));
    let first = env.publish("99100001", &env.path("in.zip"));
    let second = env.publish("99100001", &env.path("in.zip"));
    let rebuild = |more: &[&str]| {
        let words = ["run", "rebuild-inventory", "--embargo", "off", "--reason", "disk lost"];
        env.jobctl(words.iter().chain(more))
    };
    rebuild(&[]).exits(3).says(&["version 3 is valid"]);

    std::fs::remove_dir_all(env.path("catalog/inventory")).unwrap();
    rebuild(&[]).exits(3).says(&["versions 1 to 3", "--lost-through 3"]);
    rebuild(&["--lost-through", "2"]).exits(3).says(&["--lost-through 3"]);
    rebuild(&["--lost-through", "3", "--dry-run"]).exits(0).says(&["1 product,", "1 live, 1 superseded"]);
    assert!(!env.path("catalog/inventory").exists(), "a dry run wrote");
    rebuild(&["--lost-through", "3"]).exits(0).says(&["version 1 of restore epoch 1"]);

    let product = env.json(["inventory", "product", "99100001"]);
    let mark = |run: &serde_json::Value| {
        let editions = product["editions"].as_array().unwrap();
        editions.iter().find(|it| it["edition_id"] == run["output"]["edition_id"]).unwrap()["mark"].clone()
    };
    assert_eq!((mark(&first), mark(&second)), ("superseded".into(), "live".into()));
    env.jobctl(["verify"]).exits(0);
    let third = env.publish("99100001", &env.path("in.zip"));
    assert_eq!(third["output"]["previous"], second["output"]["edition_id"]);

    // Rolled back, and lost again: the manifests cannot tell, but a leaf that is left does.
    env.jobctl(["run", "rollback", "--product", "99100001", "--reason", "wrong"]).exits(0);
    for file in ["000000000001.json", "000000000002.json", "000000000003.json"] {
        std::fs::remove_file(env.path("catalog/inventory").join(file)).unwrap();
    }
    let withdrawn = third["output"]["edition_id"].as_str().unwrap();
    rebuild(&["--lost-through", "3"]).exits(3).says(&[withdrawn, "withdrawn"]);
}
