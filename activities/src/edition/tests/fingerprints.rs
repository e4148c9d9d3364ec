//! Table fingerprints against values that another implementation computed.

use serde_json::Value;

use super::support::World;
use crate::duck::{Access, LAKE, Session, path_literal};
use crate::edition::lake::{self, LakeTable};
use crate::shared::shared;

fn read(path: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn lake(world: &World) -> Session {
    let session = Session::open(&world.duck, "fingerprints").unwrap();
    let data = world.dir.path().join("data");
    session.attach_lake(&world.dir.path().join("tables.ducklake"), &data, Access::Write).unwrap();
    session
}

fn main_table(name: &str) -> LakeTable {
    LakeTable { schema: "main".to_owned(), name: name.to_owned() }
}

#[test]
fn every_column_type_has_the_row_text_and_fingerprint_of_the_vectors() {
    let Some(path) = shared("vectors/table_fingerprints_duckdb_1.5.5.json") else { return };
    let vectors = read(&path);
    let world = World::new();
    let session = lake(&world);
    let mut in_lake = 0;
    for (name, column) in vectors["columns"].as_object().unwrap() {
        let kind = column["type"].as_str().unwrap();
        let rows = column["rows"].as_array().unwrap();
        let sql = |row: &Value| format!("({}::{kind})", row["sql"].as_str().unwrap());
        let values = rows.iter().map(sql).collect::<Vec<_>>().join(", ");
        let expected = column["table_fingerprint"].as_str().unwrap();
        // DuckLake does not store every type, and Parquet holds some as another; the text and the sum are DuckDB's in
        // either place.
        let stored = !matches!(name.as_str(), "hugeint" | "uhugeint" | "timetz")
            && session.run("create", &format!("CREATE TABLE lake.main.{name} (v {kind})")).is_ok();
        let place = if stored { "lake.main" } else { "memory.main" };
        if !stored {
            session.run("create", &format!("CREATE TABLE {place}.{name} (v {kind})")).unwrap();
        }
        session.run("insert", &format!("INSERT INTO {place}.{name} VALUES {values}")).unwrap();
        for row in rows {
            let text: String = session
                .row("text", &format!("SELECT to_json(t)::VARCHAR FROM (SELECT {} AS v) AS t", sql(row)), |row| {
                    row.get(0)
                })
                .unwrap();
            assert_eq!(text, row["json"].as_str().unwrap(), "{name}");
        }
        if stored {
            in_lake += 1;
            let table = main_table(name);
            assert_eq!(lake::fingerprint(&session, &table).unwrap().to_string(), expected, "{name}");
            let parts = lake::fingerprint_parts(&session, &world.dir.path().join("data"), &table, None).unwrap();
            let total = catalog_rules::manifest::TableFingerprint::total(parts.into_values()).unwrap();
            assert_eq!(total.to_string(), expected, "{name} by file");
        } else {
            let sum: String = session
                .row(
                    "fingerprint",
                    &format!(
                        "SELECT sum((md5_number_lower(to_json(t)) % 4611686018427387904)::HUGEINT)::VARCHAR || ':' || \
                         count(*) FROM {place}.{name} AS t"
                    ),
                    |row| row.get(0),
                )
                .unwrap();
            assert_eq!(sum, expected, "{name}");
        }
    }
    assert!(in_lake > 30, "only {in_lake} types were stored in a lake");
    let obs = &vectors["obs100k"];
    session
        .run(
            "create",
            &format!(
                "CREATE TABLE lake.main.obs100k AS SELECT {}",
                obs["sql"]
                    .as_str()
                    .unwrap()
                    .replacen("'D1_'||(i%100)", "'D1_'||(i%100) AS DIM_1", 1)
                    .replacen("'X'||(i%7)", "'X'||(i%7) AS DIM_2", 1)
                    .replacen("(2000+i%10)::VARCHAR", "(2000+i%10)::VARCHAR AS TIME_PERIOD", 1)
                    .replacen("(i*0.37+0.001)::DOUBLE", "(i*0.37+0.001)::DOUBLE AS OBS_VALUE", 1)
                    .replacen(" from range(100000)", " AS ATTR_1 from range(100000) t(i)", 1)
            ),
        )
        .unwrap();
    assert_eq!(
        lake::fingerprint(&session, &main_table("obs100k")).unwrap().to_string(),
        obs["fingerprint"].as_str().unwrap()
    );
    session.run("create", "CREATE TABLE lake.main.nothing (v VARCHAR)").unwrap();
    let empty = lake::fingerprint(&session, &main_table("nothing")).unwrap().to_string();
    assert_eq!(empty, vectors["empty"].as_str().unwrap());
    session.detach(LAKE).unwrap();
}

#[test]
fn the_rows_of_both_products_have_their_manifests_fingerprints() {
    for product in ["tiny", "statcan_1"] {
        let Some(folder) = shared(&format!("vectors/fingerprints/{product}")) else { return };
        let world = World::new();
        let session = lake(&world);
        let rows = path_literal(&folder.join("rows.parquet")).unwrap();
        session.run("create", &format!("CREATE TABLE lake.main.rows AS SELECT * FROM read_parquet({rows})")).unwrap();
        let found = lake::fingerprint(&session, &main_table("rows")).unwrap();
        let manifest = read(&folder.join("bundle.manifest.json"));
        assert_eq!(found.to_string(), manifest["bindings"][0]["fingerprint"].as_str().unwrap(), "{product}");
        // In two files, and in another order: the same.
        session
            .run(
                "split",
                "CREATE TABLE lake.main.split AS SELECT * FROM lake.main.rows WHERE OBS_VALUE > 5600 ORDER BY ALL DESC;
                 INSERT INTO lake.main.split SELECT * FROM lake.main.rows WHERE (OBS_VALUE > 5600) IS NOT TRUE",
            )
            .unwrap();
        let parts =
            lake::fingerprint_parts(&session, &world.dir.path().join("data"), &main_table("split"), None).unwrap();
        assert_eq!(parts.len(), 2, "{product}");
        let one = parts.keys().next().unwrap().as_str();
        let alone =
            lake::fingerprint_parts(&session, &world.dir.path().join("data"), &main_table("split"), Some(&[one]))
                .unwrap();
        assert_eq!(alone.len(), 1);
        assert_eq!(alone[one], parts[one]);
        let total = catalog_rules::manifest::TableFingerprint::total(parts.into_values()).unwrap();
        assert_eq!(total, found, "{product} in two files");
    }
}

#[test]
fn the_digest_of_the_columns_moves_with_name_type_and_default() {
    let world = World::new();
    let session = lake(&world);
    let table = main_table("t");
    let mut digests = std::collections::BTreeSet::new();
    session.run("create", "CREATE TABLE lake.main.t (a VARCHAR, b INTEGER, s STRUCT(x INTEGER))").unwrap();
    digests.insert(lake::columns_digest(&session, &table).unwrap());
    session.run("insert", "INSERT INTO lake.main.t VALUES ('x', 1, {x: 1})").unwrap();
    assert!(!digests.insert(lake::columns_digest(&session, &table).unwrap()), "a row is no column");
    for change in [
        "ADD COLUMN c VARCHAR",
        "ADD COLUMN d VARCHAR DEFAULT 'n'",
        "RENAME COLUMN a TO z",
        "ALTER COLUMN b SET DATA TYPE BIGINT",
        "DROP COLUMN c",
    ] {
        session.run("alter", &format!("ALTER TABLE lake.main.t {change}")).unwrap();
        assert!(digests.insert(lake::columns_digest(&session, &table).unwrap()), "{change}");
    }
}
