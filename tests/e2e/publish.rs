//! A table becomes an edition, and a revised table the next one.

use serde_json::Value;

use crate::support::env::Env;
use crate::support::table::{Language, Table};

const PRODUCT: &str = "99100001";

fn live<'a>(inventory: &'a Value, product: &str) -> &'a Value {
    let products = inventory["products"].as_array().unwrap();
    let live: Vec<_> = products.iter().filter(|p| p["product_id"] == product && p["state"] == "live").collect();
    assert_eq!(live.len(), 1, "{inventory}");
    live[0]
}

#[test]
fn a_table_is_published_and_each_step_is_shown() {
    let env = Env::with_catalog();
    let table = Table::new(PRODUCT, 12);
    table.write_zip(&env.path("table.zip"));
    env.jobctl(["run", "publish", "--product", PRODUCT, "--source", "table.zip"]).exits(0).says(&[
        "open",
        "the product's first",
        "resolve_source",
        "table.zip, sha256 ",
        "build",
        "72 rows, 1 new data file",
        "seal",
        "check",
        "no finding",
        "record",
        "live in version 2",
        "done in",
    ]);
    let inventory = env.json(["inventory", "show"]);
    assert_eq!(inventory["seq"], 2);
    let entry = live(&inventory, PRODUCT);
    let edition = entry["edition_id"].as_str().unwrap().to_owned();
    env.jobctl(["inventory", "show"]).exits(0).says(&[PRODUCT, &edition, "live"]);
    env.jobctl(["edition", "list"]).exits(0).says(&[PRODUCT, &edition]);
    env.jobctl(["edition", "check", &edition]).exits(0).says(&["no finding"]);
    let runs = env.json(["runs", "list"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
    let run = env.json(["runs", "show", runs["runs"][0]["run_id"].as_str().unwrap()]);
    let names: Vec<_> = run["steps"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["open", "resolve_source", "build", "seal", "check", "record"]);
    assert_eq!(run["run"]["state"], "succeeded");
    let files = env.json(["edition", "files", &edition]);
    let files: Vec<_> = files["files"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect();
    assert!(files.iter().any(|f| f.starts_with(&format!("data/codr/t{PRODUCT}/ducklake-"))), "{files:?}");
    assert!(files.contains(&format!("{edition}/metadata.duckdb").as_str()), "{files:?}");
    for file in files {
        assert!(env.path(&format!("catalog/products/{PRODUCT}/{file}")).exists(), "{file}");
    }
}

#[test]
fn a_revised_table_is_the_next_edition_built_on_the_first() {
    let env = Env::with_catalog();
    let table = Table::new(PRODUCT, 12);
    table.write_zip(&env.path("1.zip"));
    Table { revision: 25, ..table }.write_zip(&env.path("2.zip"));
    let first = env.publish(PRODUCT, &env.path("1.zip"));
    let second = env.publish(PRODUCT, &env.path("2.zip"));
    assert_eq!(second["output"]["previous"], first["output"]["edition_id"]);
    assert_ne!(second["output"]["content_fingerprint"], first["output"]["content_fingerprint"]);
    let log = env.json(["inventory", "log"]);
    let newest = &log["versions"][0];
    assert_eq!(newest["seq"], 3);
    let changes = newest["changes"][0]["entries"].as_array().unwrap();
    let states: Vec<_> = changes.iter().map(|c| (c["from"].clone(), c["to"].clone())).collect();
    assert_eq!(states, [("live".into(), "superseded".into()), (Value::Null, "live".into())], "{log}");
    assert_eq!(newest["event"]["kind"], "seal");
}

#[test]
fn the_same_table_once_more_carries_its_data_file() {
    let env = Env::with_catalog();
    Table::new(PRODUCT, 12).write_zip(&env.path("1.zip"));
    let first = env.publish(PRODUCT, &env.path("1.zip"));
    let second = env.publish(PRODUCT, &env.path("1.zip"));
    assert_eq!(second["output"]["content_fingerprint"], first["output"]["content_fingerprint"]);
    let edition = second["output"]["edition_id"].as_str().unwrap();
    let shown = env.json(["edition", "show", edition]);
    let files = shown["manifest"]["files"].as_array().unwrap();
    let data: Vec<_> = files.iter().filter(|f| f["root"] == "data").collect();
    assert_eq!(data.len(), 1, "{files:?}");
    assert_eq!(data[0]["carried_from"], first["output"]["edition_id"]);
}

#[test]
fn french_and_english_files_are_the_same_observations() {
    let env = Env::with_catalog();
    let table = Table::new(PRODUCT, 12);
    for (folder, language) in [("en", Language::English), ("fr", Language::French)] {
        std::fs::create_dir(env.path(folder)).unwrap();
        std::fs::write(env.path(&format!("{folder}/{PRODUCT}.csv")), table.csv(language)).unwrap();
    }
    let fingerprint = |folder: &str| {
        let published = env.publish(PRODUCT, &env.path(folder));
        let edition = published["output"]["edition_id"].as_str().unwrap().to_owned();
        let shown = env.json(["edition", "show", &edition]);
        shown["manifest"]["bindings"][0]["fingerprint"].as_str().unwrap().to_owned()
    };
    assert_eq!(fingerprint("en"), fingerprint("fr"));
}

#[test]
fn both_languages_give_labels_in_both() {
    let env = Env::with_catalog();
    let table = Table::new(PRODUCT, 3);
    std::fs::write(env.path(&format!("{PRODUCT}-eng.csv")), table.csv(Language::English)).unwrap();
    std::fs::write(env.path(&format!("{PRODUCT}-fra.csv")), table.csv(Language::French)).unwrap();
    let (english, french) = (format!("{PRODUCT}-eng.csv"), format!("{PRODUCT}-fra.csv"));
    let run = env.json(["run", "publish", "--product", PRODUCT, "--source", &english, "--source", &french]);
    assert_eq!(run["output"]["rows"], table.rows());
}

#[test]
fn a_configured_source_needs_no_path() {
    let env = Env::with_catalog();
    Table::new(PRODUCT, 3).write_zip(&env.path("table.zip"));
    let mut configuration = std::fs::read_to_string(env.path("jobctl.toml")).unwrap();
    configuration.push_str(&format!("\n[sources.{PRODUCT}]\nkind = \"codr\"\nfiles = [\"table.zip\"]\n"));
    std::fs::write(env.path("jobctl.toml"), configuration).unwrap();
    env.jobctl(["run", "publish", "--product", PRODUCT]).exits(0).says(&["live in version 2"]);
}

#[test]
fn under_embargo_an_edition_is_recorded_and_not_live() {
    let env = Env::empty();
    env.jobctl(["init", "--embargo", "on"]).exits(0);
    Table::new(PRODUCT, 3).write_zip(&env.path("table.zip"));
    let run = env.publish(PRODUCT, &env.path("table.zip"));
    assert_eq!(run["output"]["state"], "embargoed");
    let inventory = env.json(["inventory", "show"]);
    assert!(inventory["products"].as_array().unwrap().iter().all(|p| p["state"] != "live"), "{inventory}");
}

#[test]
fn another_process_reads_a_moved_copy_and_changes_no_byte() {
    let env = Env::with_catalog();
    let table = Table::new(PRODUCT, 12);
    table.write_zip(&env.path("1.zip"));
    let published = env.publish(PRODUCT, &env.path("1.zip"));
    let edition = published["output"]["edition_id"].as_str().unwrap();
    std::fs::rename(env.path(&format!("catalog/products/{PRODUCT}")), env.path("moved")).unwrap();
    let digests = |env: &Env| -> Vec<_> {
        let dir = std::fs::read_dir(env.path(&format!("moved/{edition}"))).unwrap();
        let mut files: Vec<_> = dir
            .map(|e| e.unwrap().path())
            .map(|path| (path.clone(), catalog_rules::ids::Sha256Hex::of(&std::fs::read(&path).unwrap())))
            .collect();
        files.sort();
        files
    };
    let before = digests(&env);
    // This test's process is another one than the binary's that wrote the edition.
    let lake = duckdb::Connection::open_in_memory().unwrap();
    let extensions = std::env::var("JOBCTL_DUCKDB_EXTENSIONS")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/target/duckdb/extensions").to_owned());
    let spill = env.path("spill");
    let statements = format!(
        "SET extension_directory = '{extensions}'; SET temp_directory = '{}'; LOAD ducklake;
         ATTACH 'ducklake:{}' AS lake (READ_ONLY, DATA_PATH '{}/', OVERRIDE_DATA_PATH true);",
        spill.display(),
        env.path(&format!("moved/{edition}/tables.ducklake")).display(),
        env.path("moved/data").display(),
    );
    lake.execute_batch(&statements).unwrap();
    let query = format!(
        "SELECT count(*), count(\"OBS_VALUE\"), (sum(\"OBS_VALUE\") * 100)::BIGINT FROM lake.codr.\"t{PRODUCT}\""
    );
    let (rows, values, sum): (u64, u64, i64) =
        lake.query_row(&query, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    assert_eq!((rows, sum), (table.rows(), table.sum_in_hundredths()));
    assert_eq!(values, table.rows() - 3, "suppressed cells are NULL and not zero");
    drop(lake);
    assert_eq!(digests(&env), before);
    env.jobctl(["edition", "check", &env.path(&format!("moved/{edition}")).display().to_string()]).exits(0);
}
