//! Sealed editions that lost something: nothing is built on them, nothing of them is deleted, and the run waits.

use std::path::{Path, PathBuf};

use crate::support::env::Env;
use crate::support::table::Table;

const PRODUCT: &str = "99100001";

/// A catalog with one live edition, the edition's folder, and a revision.
fn world() -> (Env, PathBuf, PathBuf) {
    let env = Env::with_catalog();
    Table::new(PRODUCT, 3).write_zip(&env.path("0.zip"));
    let live = env.publish(PRODUCT, &env.path("0.zip"));
    let revision = env.path("1.zip");
    Table { revision: 100, ..Table::new(PRODUCT, 3) }.write_zip(&revision);
    let folder = env.path(&format!("catalog/products/{PRODUCT}/{}", live["output"]["edition_id"].as_str().unwrap()));
    (env, folder, revision)
}

fn publish(env: &Env, source: &Path) -> crate::support::env::Ran {
    let source = source.display().to_string();
    env.jobctl(["run", "publish", "--product", PRODUCT, "--source", &source])
}

fn data_file(folder: &Path) -> PathBuf {
    let data = folder.parent().unwrap().join(format!("data/codr/t{PRODUCT}"));
    std::fs::read_dir(data).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn a_live_edition_that_lost_a_file_blocks_the_publish_until_it_is_back() {
    type Find = fn(&Path) -> PathBuf;
    let lost: [(&str, Find); 3] = [
        ("metadata.duckdb", |folder| folder.join("metadata.duckdb")),
        ("tables.ducklake", |folder| folder.join("tables.ducklake")),
        (".parquet", data_file),
    ];
    for (name, path) in lost {
        let (env, folder, revision) = world();
        let path = path(&folder);
        let bytes = std::fs::read(&path).unwrap();
        for damaged in [None, Some(&bytes[..bytes.len() / 2])] {
            match damaged {
                None => std::fs::remove_file(&path).unwrap(),
                Some(part) => std::fs::write(&path, part).unwrap(),
            }
            let before = env.catalog_bytes();
            let blocked = publish(&env, &revision).exits(5);
            blocked.says(&["catalog.previous_damaged", name, "restore it from a backup"]);
            assert_eq!(env.catalog_bytes(), before, "{name}: nothing is begun on a damaged edition");
            std::fs::write(&path, &bytes).unwrap();
            let run = env.json(["runs", "list"])["runs"][0]["run_id"].as_str().unwrap().to_owned();
            if damaged.is_none() {
                env.jobctl(["runs", "cancel", &run, "--reason", "once more"]).exits(0);
            } else {
                env.jobctl(["runs", "resume", &run]).exits(0);
            }
        }
    }
}

#[test]
fn a_log_beside_a_sealed_edition_is_refused_and_never_taken_in() {
    for name in ["metadata.duckdb.wal", "tables.ducklake.wal"] {
        let (env, folder, revision) = world();
        std::fs::write(folder.join(name), b"rows that nobody sealed").unwrap();
        publish(&env, &revision).exits(5).says(&["catalog.previous_damaged", name]);
        std::fs::remove_file(folder.join(name)).unwrap();
        env.jobctl(["runs", "resume"]).exits(0);
        let run = env.json(["runs", "list"])["runs"][0]["run_id"].as_str().unwrap().to_owned();
        env.jobctl(["runs", "resume", &run]).exits(0);
    }
}

#[test]
fn a_live_edition_without_its_manifest_is_no_unsealed_edition() {
    let (env, folder, revision) = world();
    let manifest = std::fs::read(folder.join("manifest.json")).unwrap();
    std::fs::remove_file(folder.join("manifest.json")).unwrap();
    let blocked = publish(&env, &revision).exits(5);
    assert!(!format!("{}{}", blocked.stdout, blocked.stderr).contains("edition discard"), "{blocked:?}");
    blocked.says(&["catalog.manifest_lost", "live", "restore"]);
    let run = env.json(["runs", "list"])["runs"][0]["run_id"].as_str().unwrap().to_owned();
    env.jobctl(["runs", "cancel", &run, "--reason", "test"]).exits(0);
    let edition = folder.file_name().unwrap().to_str().unwrap();
    let refused = env.jobctl(["edition", "discard", edition, "--product", PRODUCT, "--reason", "test"]);
    refused.exits(3).says(&["catalog.manifest_lost", "not discarded"]);
    assert!(folder.join("metadata.duckdb").exists());
    std::fs::write(folder.join("manifest.json"), manifest).unwrap();
    publish(&env, &revision).exits(0);
}

#[test]
fn a_damaged_state_database_says_so_and_the_catalog_does_without_it() {
    let (env, _, revision) = world();
    let state = env.path("state");
    for log in ["state.db-wal", "state.db-shm"] {
        let _ = std::fs::remove_file(state.join(log));
    }
    std::fs::write(state.join("state.db"), vec![7_u8; 40_000]).unwrap();
    publish(&env, &revision).exits(5).says(&["the state database is damaged", "move it away"]);
    std::fs::rename(&state, env.path("state.damaged")).unwrap();
    publish(&env, &revision).exits(0);
}
