//! Opening the state.

use engine::{Engine, EngineConfig, EngineError, Reader, RunFilter, SystemClock};
use engine_rules::state::RunState;
use sqlx::{ConnectOptions as _, Row as _};
use std::sync::Arc;

use crate::child::{Order, log, spawn};
use crate::support::{open, outsider, registry, until};

#[tokio::test(flavor = "multi_thread")]
async fn several_processes_may_open_a_fresh_state_at_once() {
    const PROCESSES: usize = 6;
    let folder = tempfile::tempdir().expect("a folder");
    let children: Vec<_> = (0..PROCESSES).map(|_| spawn(folder.path(), &Order::Open)).collect();
    let ready = log(folder.path());
    until("all stand ready", || ready.count("ready") == PROCESSES).await;
    assert!(!folder.path().join("state.db").exists());
    std::fs::write(folder.path().join("go"), "").expect("the signal");
    for child in children {
        let output = child.wait_with_output().expect("the child ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let engine = open(folder.path(), registry()).await;
    let runs = engine.reader().runs(&RunFilter::default()).await.expect("the runs read");
    assert_eq!(runs.len(), PROCESSES);
    assert!(runs.iter().all(|run| run.state == RunState::Succeeded));
    let mut other = outsider(folder.path()).await;
    let row = sqlx::query("PRAGMA integrity_check").fetch_one(&mut other).await.expect("a check");
    assert_eq!(row.get::<String, _>(0), "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_locks_of_dead_owners_do_not_pile_up() {
    let folder = tempfile::tempdir().expect("a folder");
    for _ in 0..3 {
        open(folder.path(), registry()).await.close().await;
    }
    let engine = open(folder.path(), registry()).await;
    let locks = std::fs::read_dir(folder.path().join("owners")).expect("the locks").count();
    assert_eq!(locks, 1, "only the living one's");
    drop(engine);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_of_a_newer_program_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    open(folder.path(), registry()).await.close().await;
    let mut other = outsider(folder.path()).await;
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (9999, 'from the future', 1, x'00', 0)",
    )
    .execute(&mut other)
    .await
    .expect("a migration of tomorrow");
    let error = Engine::open(EngineConfig::new(folder.path()), registry()).await.expect_err("it is newer");
    assert!(matches!(error, EngineError::Schema { .. }), "{error:?}");
    let error = Reader::open(folder.path(), Arc::new(SystemClock::new())).await.expect_err("it is newer");
    assert!(matches!(error, EngineError::Schema { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_of_an_older_program_is_told_as_such_to_a_reader_and_brought_up_by_an_engine() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut other = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(folder.path().join("state.db"))
        .create_if_missing(true)
        .connect()
        .await
        .expect("a database");
    // As the first release left it: its migration, and the row that sqlx wrote for it.
    let core = include_str!("../../../migrations/0001_core.sql");
    sqlx::raw_sql(core).execute(&mut other).await.expect("the first schema");
    sqlx::raw_sql(
        "CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY, description TEXT NOT NULL, \
         installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, success BOOLEAN NOT NULL, checksum BLOB NOT NULL, \
         execution_time BIGINT NOT NULL)",
    )
    .execute(&mut other)
    .await
    .expect("the table of migrations");
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (1, 'core', true, unhex(?), 1)",
    )
    .bind(CORE_SHA384)
    .execute(&mut other)
    .await
    .expect("the first migration");
    let clock = Arc::new(SystemClock::new());
    let error = Reader::open(folder.path(), clock.clone()).await.expect_err("it is older");
    assert!(error.is_older_schema(), "{error:?}");
    open(folder.path(), registry()).await.close().await;
    let reader = Reader::open(folder.path(), clock).await.expect("it was brought up");
    assert_eq!(reader.imported_ids().await.expect("the new table is there"), []);
}

/// The checksum that sqlx records of the first migration.
const CORE_SHA384: &str =
    "a850c8fe5090dd5ecd79f7d969c2365016b6b587355f50843cfdc49579985b57deed578e22fed51b275e75c5b7ce56d7";

#[tokio::test(flavor = "multi_thread")]
async fn reading_where_there_is_no_state_says_so_and_creates_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = Reader::open(folder.path(), Arc::new(SystemClock::new())).await.expect_err("nothing is there");
    assert!(matches!(error, EngineError::NoState { .. }), "{error:?}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0);
}

/// The schema's text is embedded in the binary; this holds the folder and the list together.
#[test]
fn every_migration_of_the_folder_is_known_and_none_has_changed() {
    const KNOWN: &[(&str, &str)] = &[
        ("0001_core.sql", "ac421ac7471035e9df789fd469c200659bb473e88f68a819876ff47fb2ff5dc2"),
        ("0002_waiting.sql", "63d50832985442b242c347fce17784c98c9b8d220ac71e2d45ee48131bbab657"),
        ("0003_schedules.sql", "1c6d95efd0894bdc2c6bbeef58ad4b5db45ff7733d63010ad13401231247ea49"),
        ("0004_imported.sql", "8a45c3da0a3b992e2d2ae49873f01be16251f52622e5486c08a4969d624839ba"),
        ("0005_replay.sql", "64eda3d003dab3a9801b5f3e0af7f1ce41fd6de0d09a984a25c2454932dbdf26"),
    ];
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .expect("the migrations")
        .map(|entry| entry.expect("a file").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    assert_eq!(names, KNOWN.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for (name, digest) in KNOWN {
        let text = std::fs::read_to_string(folder.join(name)).expect("a migration");
        let found = engine_rules::digest::digest_text(&text);
        assert_eq!(&found, digest, "{name} was released: what comes later is a further file");
    }
}
