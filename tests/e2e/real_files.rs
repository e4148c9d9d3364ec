//! Real downloads, from the reference data beside the project.

use std::path::Path;

use serde_json::Value;

use crate::support::env::Env;
use crate::support::reference::shared;

fn manifest(env: &Env, published: &Value) -> Value {
    env.json(["edition", "show", published["output"]["edition_id"].as_str().unwrap()])["manifest"].clone()
}

/// A connection that sees the published edition's lake as `lake`.
fn lake(env: &Env, product: &str, published: &Value) -> duckdb::Connection {
    let edition = published["output"]["edition_id"].as_str().unwrap();
    let connection = duckdb::Connection::open_in_memory().unwrap();
    let extensions = std::env::var("JOBCTL_DUCKDB_EXTENSIONS")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/target/duckdb/extensions").to_owned());
    let product = env.path(&format!("catalog/products/{product}"));
    let statements = format!(
        "SET extension_directory = '{extensions}'; SET temp_directory = '{}'; LOAD ducklake;
         ATTACH 'ducklake:{}/{edition}/tables.ducklake' AS lake (READ_ONLY, DATA_PATH '{}/data/', OVERRIDE_DATA_PATH true);",
        env.path("spill").display(),
        product.display(),
        product.display(),
    );
    connection.execute_batch(&statements).unwrap();
    connection
}

fn count(lake: &duckdb::Connection, product: &str, filter: &str) -> u64 {
    lake.query_row(&format!("SELECT count(*) FROM lake.codr.\"t{product}\" WHERE {filter}"), [], |row| row.get(0))
        .unwrap()
}

#[test]
fn t33100036_has_as_many_rows_as_its_web_service_says() {
    let (Some(zip), Some(metadata)) =
        (shared("data/codr/33100036/33100036-eng.zip"), shared("data/codr/33100036/33100036.json"))
    else {
        return;
    };
    let metadata: Value = serde_json::from_slice(&std::fs::read(metadata).unwrap()).unwrap();
    let expected = find_number(&metadata, "nbDatapointsCube").expect("the web service says how many");
    let env = Env::with_catalog();
    let published = env.publish("33100036", &zip);
    assert_eq!(published["output"]["rows"], expected);
    assert_eq!(count(&lake(&env, "33100036", &published), "33100036", "true"), expected);
}

fn find_number(value: &Value, key: &str) -> Option<u64> {
    match value {
        Value::Object(map) => {
            map.get(key).and_then(Value::as_u64).or_else(|| map.values().find_map(|inner| find_number(inner, key)))
        }
        Value::Array(list) => list.iter().find_map(|inner| find_number(inner, key)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[test]
fn t10100001_keeps_1_1_and_1_10_apart() {
    let Some(zip) = shared("data/codr/10100001-eng.zip") else { return };
    let env = Env::with_catalog();
    let published = env.publish("10100001", &zip);
    let lake = lake(&env, "10100001", &published);
    let members: Vec<String> = lake
        .prepare("SELECT DISTINCT \"DIM_2\" FROM lake.codr.\"t10100001\" WHERE \"DIM_2\" IN ('1', '10') ORDER BY 1")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(members, ["1", "10"]);
}

#[test]
fn t23100309_keeps_what_is_suppressed_and_what_is_missing() {
    let Some(csv) = shared("data/codr/23100309/23100309.csv") else { return };
    let env = Env::with_catalog();
    let source = csv.display().to_string();
    env.jobctl(["run", "publish", "--product", "23100309", "--source", &source]).exits(0).says(&["note:", "metadata"]);
    let runs = env.json(["runs", "list"]);
    let published = env.json(["runs", "show", runs["runs"][0]["run_id"].as_str().unwrap()])["run"].clone();
    let lake = lake(&env, "23100309", &published);
    let table = "23100309";
    assert_eq!(count(&lake, table, "true"), 4_640);
    assert_eq!(count(&lake, table, "\"OBS_STATUS\" = 'x' AND \"OBS_VALUE\" IS NULL"), 110);
    // `..` is no id of SDMX; the code that stands for it keeps it as an annotation.
    assert_eq!(count(&lake, table, "\"OBS_STATUS\" = 'NOT_AVAILABLE' AND \"OBS_VALUE\" IS NULL"), 16);
    assert_eq!(count(&lake, table, "\"OBS_VALUE\" IS NULL"), 126, "nothing else is blank");
}

#[test]
fn t17100009_three_vintages_are_three_editions() {
    let Some(folder) = shared("data/codr/17100009") else { return };
    let env = Env::with_catalog();
    let metadata = folder.join("17100009_MetaData.csv").display().to_string();
    let publish = |file: &Path| {
        let source = file.display().to_string();
        env.json(["run", "publish", "--product", "17100009", "--source", &source, "--metadata", &metadata])
    };
    let first = publish(&folder.join("v1_to_2023-01_crlf.csv"));
    let second = publish(&folder.join("v2_to_2024-07.csv"));
    let log = env.json(["inventory", "log", "-n", "1"]);
    assert_eq!(log["versions"][0]["changes"][0]["entries"].as_array().unwrap().len(), 2, "one version, both entries");
    let third = publish(&folder.join("v3_to_2025-10.csv"));
    assert_eq!(manifest(&env, &first)["previous"], Value::Null);
    assert_eq!(manifest(&env, &second)["previous"], first["output"]["edition_id"]);
    assert_eq!(manifest(&env, &third)["previous"], second["output"]["edition_id"]);
    let inventory = env.json(["inventory", "show"]);
    assert_eq!(inventory["seq"], 4);
    assert_eq!(inventory["products"][0]["edition_id"], third["output"]["edition_id"]);
}

#[test]
fn t18100265_in_french_is_the_same_table_as_in_english() {
    let (Some(english), Some(french)) =
        (shared("data/codr/french/18100265-eng.zip"), shared("data/codr/french/18100265-fra-CONSTRUCTED.zip"))
    else {
        return;
    };
    let fingerprint = |source: &Path| {
        let env = Env::with_catalog();
        let published = env.publish("18100265", source);
        manifest(&env, &published)["bindings"][0]["fingerprint"].clone()
    };
    assert_eq!(fingerprint(&english), fingerprint(&french));
}

#[test]
fn t14100287_a_selected_data_extract_is_published() {
    let Some(folder) = shared("data/codr/14100287") else { return };
    let env = Env::with_catalog();
    let published = env.publish("14100287", &folder);
    assert_eq!(published["output"]["rows"], 480);
}

#[test]
fn what_a_person_may_hand_over_by_mistake_is_refused() {
    for (product, file) in [("14100287", "1410028701-eng.csv"), ("13100262", "13100262.csv")] {
        let Some(file) = shared(&format!("data/codr/refuse/{file}")) else { return };
        let env = Env::with_catalog();
        let before = env.catalog_bytes();
        let source = file.display().to_string();
        env.jobctl(["run", "publish", "--product", product, "--source", &source]).exits(1).says(&["hint:"]);
        assert_eq!(env.catalog_bytes(), before);
    }
}
