//! What `jobctl inventory` answers: what changed and who and why, what was live when, what waits.

use serde_json::json;

use crate::support::env::Env;
use crate::support::table::Table;

const PRODUCT: &str = "99100001";

/// A catalog with two editions of a product, the first superseded, and without its state database; and their ids.
fn world() -> (Env, [String; 2]) {
    let env = Env::with_catalog();
    let ids = [0, 100].map(|revision| {
        let source = env.path(&format!("{revision}.zip"));
        Table { revision, ..Table::new(PRODUCT, 3) }.write_zip(&source);
        let source = source.display().to_string();
        let reason = format!("revision {revision}");
        let run = env.json(["run", "publish", "--product", PRODUCT, "--source", &source, "--reason", &reason]);
        run["output"]["edition_id"].as_str().unwrap().to_owned()
    });
    std::fs::remove_dir_all(env.path("state")).unwrap();
    (env, ids)
}

/// One catalog for all, since a publish takes its time, and nothing is changed.
#[test]
fn the_inventory_answers_what_changed_what_was_live_and_what_became_of_a_product() {
    let (env, ids) = world();
    let before = env.catalog_bytes();
    what_the_last_version_changed_is_told_with_who_and_why(&env, &ids);
    what_was_live_then_is_told_by_time_and_by_number(&env, &ids);
    each_edition_has_its_state_since_when_by_which_version_and_why(&env, &ids);
    assert_eq!(env.catalog_bytes(), before);
    // And nothing made a state database.
    assert!(!env.path("state").exists());
}

fn what_the_last_version_changed_is_told_with_who_and_why(env: &Env, [first, second]: &[String; 2]) {
    let diff = env.json(["inventory", "diff"]);
    assert_eq!(json!([diff["from"]["seq"], diff["to"]["seq"]]), json!([2, 3]));
    assert!(diff["to"]["event"]["actor"].as_str().unwrap().contains('@'));
    assert_eq!(diff["to"]["event"]["reason"], "revision 100");
    let entries = diff["changes"][0]["entries"].as_array().unwrap();
    let told: Vec<_> = entries.iter().map(|it| json!([it["edition_id"], it["from"], it["to"]])).collect();
    assert_eq!(told, [json!([first, "live", "superseded"]), json!([second, null, "live"])]);
    env.jobctl(["inventory", "diff"]).exits(0).says(&["revision 100", first, second, "superseded", "2026", PRODUCT]);
    // Near or far, and in either direction.
    let far = env.json(["inventory", "diff", "1"]);
    assert_eq!(far["changes"][0]["entries"].as_array().unwrap().len(), 2);
    let back = env.json(["inventory", "diff", "3", "2"]);
    assert_eq!(back["changes"][0]["entries"][1]["to"], json!(null));
    env.jobctl(["inventory", "diff", "2", "2"]).exits(0).says(&["no edition differs"]);
}

fn what_was_live_then_is_told_by_time_and_by_number(env: &Env, [first, second]: &[String; 2]) {
    let log = env.json(["inventory", "log"]);
    let at = |n: usize| log["versions"][n]["created_at"].as_str().unwrap().to_owned();
    let live = |args: &[&str]| {
        let args = ["inventory", "products"].iter().chain(args).chain(&["--json"]);
        let document = env.jobctl(args).exits(0).json();
        let live = document["products"][0]["heads"][0]["edition_id"].as_str().map(str::to_owned);
        (document["version"]["seq"].as_u64().unwrap(), live)
    };
    assert_eq!(live(&[]), (3, Some(second.clone())));
    assert_eq!(live(&["--seq", "2"]), (2, Some(first.clone())));
    assert_eq!(live(&["--at", &at(0)]), (3, Some(second.clone())));
    assert_eq!(live(&["--at", &at(1)]), (2, Some(first.clone())));
    assert_eq!(live(&["--at", &at(2)]), (1, None));
    env.jobctl(["inventory", "products", "--at", "2020-01-01"]).exits(2).says(&["no version", "inventory log"]);
    env.jobctl(["inventory", "products", "--at", "yesterday"]).exits(2).says(&["--at", "expected"]);
    env.jobctl(["inventory", "products", "--seq", "4"]).exits(2).says(&["no version 4", "the newest is 3"]);
}

fn each_edition_has_its_state_since_when_by_which_version_and_why(env: &Env, [first, second]: &[String; 2]) {
    let product = env.json(["inventory", "product", PRODUCT]);
    assert_eq!(product["heads"][0]["edition_id"], second.as_str());
    let editions = product["editions"].as_array().unwrap();
    let told: Vec<_> = editions.iter().map(|it| json!([it["edition_id"], it["mark"], it["by_version"]])).collect();
    assert_eq!(told, [json!([first, "superseded", 3]), json!([second, "live", 3])]);
    assert_eq!(editions[1]["by"]["reason"], "revision 100");
    let before = env.json(["inventory", "product", PRODUCT, "--seq", "2"]);
    assert_eq!(before["editions"][0]["by_version"], 2);
    assert_eq!(before["editions"][0]["by"]["reason"], "revision 0");
    env.jobctl(["inventory", "product", PRODUCT]).exits(0).says(&[first, "superseded", "revision 100"]);
    env.jobctl(["inventory", "product", "99100002"]).exits(2).says(&["no product 99100002", "version 3", PRODUCT]);
    env.jobctl(["inventory", "product", PRODUCT, "--seq", "1"]).exits(2).says(&["version 1", "none yet"]);
    let log = env.json(["inventory", "log", "--product", PRODUCT]);
    assert_eq!(log["versions"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_embargoed_is_told_with_its_time() {
    let env = Env::empty();
    env.jobctl(["init", "--embargo", "on"]).exits(0);
    let source = env.path("0.zip");
    Table::new(PRODUCT, 3).write_zip(&source);
    let run = env.publish(PRODUCT, &source);
    let edition = run["output"]["edition_id"].as_str().unwrap();
    let products = env.json(["inventory", "products"]);
    assert_eq!(products["products"][0]["heads"], json!([]));
    assert_eq!(products["embargoed"][0]["edition_id"], edition);
    assert_eq!(products["embargoed"][0]["due"], false);
    for command in ["show", "products"] {
        env.jobctl(["inventory", command]).exits(0).says(&["embargoed", edition, "no time is set"]);
    }
}

#[test]
fn the_log_tells_what_became_of_settings_and_goes_on_past_a_damaged_version() {
    let env = Env::with_catalog();
    env.jobctl(["run", "embargo", "on", "--reason", "a release is near"]).exits(0);
    env.jobctl(["run", "describe", "--title", "Another"]).exits(0);
    env.jobctl(["inventory", "log"]).exits(0).says(&["embargo on", "a release is near", "the description"]);

    let root = |seq: u64| env.path("catalog/inventory").join(format!("{seq:012}.json"));
    std::fs::write(root(2), "{").unwrap();
    let log = env.jobctl(["inventory", "log"]).exits(0).says(&["cannot be read", "describe"]);
    assert_eq!(log.stdout.matches(" describe ").count(), 2, "versions 3 and 1 are told:\n{}", log.stdout);
    let versions = env.json(["inventory", "log"]);
    assert!(versions["versions"][1]["invalid"].is_string(), "{versions}");
    std::fs::remove_file(root(1)).unwrap();
    env.jobctl(["inventory", "log"]).exits(0).says(&["version 1 and those before it are not here"]);
}
