//! What is refused, with which words and exit code, and that nothing of the catalog changes by it.

use std::path::Path;
use std::process::Stdio;

use crate::support::env::Env;
use crate::support::table::{Language, Table};

const PRODUCT: &str = "99100001";

/// A catalog with a live edition, so that there is something that must not change.
fn world() -> (Env, Table) {
    let env = Env::with_catalog();
    let table = Table::new(PRODUCT, 6);
    table.write_zip(&env.path("good.zip"));
    env.publish(PRODUCT, &env.path("good.zip"));
    (env, table)
}

/// Publishes `source` and asserts that it is refused, that the words are there and that no byte of the catalog changed.
#[track_caller]
fn refused(env: &Env, source: &Path, words: &[&str]) {
    let before = env.catalog_bytes();
    let ran = env.jobctl(["run", "publish", "--product", PRODUCT, "--source", &source.display().to_string()]);
    assert!(matches!(ran.code, Some(1 | 3)), "{ran:?}");
    let ran = ran.says(words);
    assert!(ran.stderr.contains("hint:"), "says what to do: {}", ran.stderr);
    assert_eq!(env.catalog_bytes(), before, "the catalog changed");
    // And a good file is still published afterwards.
    env.jobctl(["run", "publish", "--product", PRODUCT, "--source", "good.zip"]).exits(0);
}

fn with_last_line(table: &Table, line: &str) -> Table {
    Table { last_line: Some(line.to_owned()), ..table.clone() }
}

#[test]
fn a_row_without_a_coordinate_names_its_line() {
    let (env, table) = world();
    let line = r#""2020-06","Ontario","2021A000235","Full-time","Persons","249","thousands","3","v9005","","1.00","","","","2""#;
    with_last_line(&table, line).write_zip(&env.path("bad.zip"));
    refused(&env, &env.path("bad.zip"), &[&format!("{PRODUCT}.csv"), "line 37", "coordinate"]);
}

#[test]
fn a_member_that_the_metadata_does_not_know_is_named() {
    let (env, table) = world();
    let line = r#""2020-06","Ontario","2021A000235","Part-time","Persons","249","thousands","3","v9005","10.7","1.00","","","","2""#;
    with_last_line(&table, line).write_zip(&env.path("bad.zip"));
    refused(&env, &env.path("bad.zip"), &["line 37", "10.7", "Characteristic"]);
}

#[test]
fn a_period_and_coordinate_that_come_twice_name_both_lines() {
    let (env, table) = world();
    let line = r#""2020-01","Canada","2021A000011124","Employment","Persons","249","thousands","3","v9000","1.1","5.00","","","","2""#;
    with_last_line(&table, line).write_zip(&env.path("bad.zip"));
    refused(&env, &env.path("bad.zip"), &["99100001.csv", "2", "37", "2020-01", "1.1"]);
}

#[test]
fn a_truncated_zip_is_told() {
    let (env, table) = world();
    table.write_zip(&env.path("bad.zip"));
    let bytes = std::fs::read(env.path("bad.zip")).unwrap();
    for length in [0, 10, bytes.len() / 2, bytes.len() - 5] {
        std::fs::write(env.path("bad.zip"), &bytes[..length]).unwrap();
        refused(&env, &env.path("bad.zip"), &["bad.zip"]);
    }
}

#[test]
fn the_metadata_of_another_product_is_told() {
    let (env, table) = world();
    Table { metadata_product: "99100002".to_owned(), ..table }.write_zip(&env.path("bad.zip"));
    refused(&env, &env.path("bad.zip"), &["99100002", PRODUCT]);
}

#[test]
fn a_display_pivot_and_renamed_columns_are_told() {
    let (env, table) = world();
    let pivot = "\u{feff}\"A small table\"\n\"Frequency: Monthly\"\n\n\"Geography\",\"Canada\"\n\"Characteristic\",\"January 2020\",\"February 2020\"\n,\"Persons\"\n\"Employment\",\"1\",\"2\"\n";
    std::fs::write(env.path("pivot.csv"), pivot).unwrap();
    refused(&env, &env.path("pivot.csv"), &["pivot.csv"]);
    let renamed =
        table.csv(Language::English).replace("\"REF_DATE\"", "\"Date\"").replace("\"COORDINATE\"", "\"coord\"");
    std::fs::write(env.path("renamed.csv"), renamed).unwrap();
    refused(&env, &env.path("renamed.csv"), &["renamed.csv"]);
}

#[test]
fn a_missing_file_is_told() {
    let (env, _) = world();
    refused(&env, &env.path("nowhere.zip"), &["nowhere.zip"]);
}

#[test]
fn a_product_id_that_leaves_its_folder_is_a_usage_error() {
    let env = Env::with_catalog();
    for bad in ["../x", "a/b", "..", ""] {
        env.jobctl(["run", "publish", "--product", bad, "--source", "x.zip"]).exits(2).says(&["product id"]);
    }
    env.jobctl(["run", "publish", "--product", PRODUCT]).exits(2).says(&[PRODUCT, "--source"]);
}

#[test]
fn a_source_that_changed_between_two_attempts_is_refused() {
    let (env, table) = world();
    table.write_zip(&env.path("moving.zip"));
    let mut publish = env.command(["run", "publish", "--product", PRODUCT, "--source", "moving.zip"]);
    // The run is ended after the source was recorded and before it is built from.
    publish.env("JOBCTL_CRASH_AT", "engine.result.after:2");
    assert!(!publish.output().unwrap().status.success());
    let recorded = catalog_rules::ids::Sha256Hex::of(&std::fs::read(env.path("moving.zip")).unwrap());
    Table { revision: 7, ..table }.write_zip(&env.path("moving.zip"));
    let found = catalog_rules::ids::Sha256Hex::of(&std::fs::read(env.path("moving.zip")).unwrap());
    let before = env.catalog_bytes();
    env.jobctl(["runs", "resume"]).exits(1).says(&["moving.zip", recorded.as_str(), found.as_str()]);
    assert_eq!(env.catalog_bytes(), before);
}

#[test]
fn a_second_publish_of_a_product_exits_4_and_one_of_another_product_does_not() {
    let (env, table) = world();
    let big = Table { months: 1200, ..table.clone() };
    big.write_zip(&env.path("big.zip"));
    let mut first = env
        .command(["run", "publish", "--product", PRODUCT, "--source", "big.zip"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It holds the key from the moment that its run is written.
    let holder = loop {
        let runs = env.json(["runs", "list", "--in", "running"]);
        if let Some(run) = runs["runs"].as_array().unwrap().first() {
            break run["run_id"].as_str().unwrap().to_owned();
        }
        assert!(first.try_wait().unwrap().is_none(), "the first publish ended before it was seen");
    };
    let second = env.jobctl(["run", "publish", "--product", PRODUCT, "--source", "good.zip"]);
    let still_running = first.try_wait().unwrap().is_none();
    assert!(still_running, "the first publish was over too soon for this test");
    second.exits(4).says(&[PRODUCT, &holder, "--wait"]);
    Table { product: "99100002".to_owned(), metadata_product: "99100002".to_owned(), ..table }
        .write_zip(&env.path("other.zip"));
    env.jobctl(["run", "publish", "--product", "99100002", "--source", "other.zip"]).exits(0);
    env.jobctl(["run", "publish", "--product", PRODUCT, "--source", "good.zip", "--wait"]).exits(0);
    assert!(first.wait().unwrap().success());
}

#[test]
fn an_unsealed_edition_of_nobody_is_refused_by_name_and_can_be_discarded() {
    let (env, table) = world();
    table.write_zip(&env.path("good2.zip"));
    let mut publish = env.command(["run", "publish", "--product", PRODUCT, "--source", "good2.zip"]);
    publish.env("JOBCTL_CRASH_AT", "edition.build.rows_written");
    assert!(!publish.output().unwrap().status.success());
    // Without the state database nobody knows the run any more.
    std::fs::remove_dir_all(env.path("state")).unwrap();
    let editions = env.json(["edition", "list", "--product", PRODUCT]);
    let unsealed = editions["editions"].as_array().unwrap().iter().find(|e| e["sealed"] == false).unwrap().clone();
    let unsealed = unsealed["edition_id"].as_str().unwrap();
    env.jobctl(["run", "publish", "--product", PRODUCT, "--source", "good.zip"]).exits(3).says(&[unsealed, "discard"]);
    env.jobctl(["edition", "discard", unsealed, "--product", PRODUCT, "--reason", "a test"]).exits(0);
    env.jobctl(["run", "publish", "--product", PRODUCT, "--source", "good.zip"]).exits(0);
    let live = env.json(["inventory", "show"])["products"][0]["edition_id"].as_str().unwrap().to_owned();
    env.jobctl(["edition", "discard", &live, "--product", PRODUCT, "--reason", "a test"]).exits(3).says(&[&live]);
}

#[test]
fn a_catalog_is_not_made_over_something_else() {
    let env = Env::empty();
    std::fs::create_dir(env.path("catalog")).unwrap();
    std::fs::write(env.path("catalog/letter.txt"), "dear").unwrap();
    env.jobctl(["init"]).exits(3).says(&["letter.txt"]);
    assert_eq!(std::fs::read_dir(env.path("catalog")).unwrap().count(), 1);
    let env = Env::with_catalog();
    env.jobctl(["init"]).exits(3).says(&["catalog"]);
    env.jobctl(["run", "publish", "--product", PRODUCT, "--source", "x.zip", "--catalog", "elsewhere"]).exits(3);
}
