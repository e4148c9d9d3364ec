use std::fs;

use super::*;

fn settings(folder: &Path) -> DuckSettings {
    DuckSettings { threads: 2, ..DuckSettings::new(folder.join("temp")) }
}

fn scratch_folders(settings: &DuckSettings) -> usize {
    let entries = fs::read_dir(&settings.temp_directory).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count()
}

#[test]
fn a_session_has_the_settings_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path());
    let session = Session::open(&settings, "x").unwrap();
    let setting = |name: &str| -> String {
        session.row("read", &format!("SELECT current_setting('{name}')::VARCHAR"), |row| row.get(0)).unwrap()
    };
    assert_eq!(setting("TimeZone"), "UTC");
    assert_eq!(setting("threads"), "2");
    assert_eq!(setting("autoinstall_known_extensions"), "false");
    assert_eq!(setting("autoload_known_extensions"), "false");
    assert_eq!(setting("memory_limit"), format!("{}.0 MiB", settings.memory_limit_mb));
    assert!(setting("temp_directory").starts_with(dir.path().to_str().unwrap()));
    let versions = session.versions().unwrap();
    assert!(versions.duckdb.starts_with(|c: char| c.is_ascii_digit()), "{versions:?}");
    assert!(!versions.ducklake.is_empty());
    drop(session);
    assert_eq!(scratch_folders(&settings), 0);
}

#[test]
fn what_a_killed_session_left_is_cleared_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let settings = settings(dir.path());
    let left = settings.temp_directory.join("jobctl-x/stage.duckdb");
    fs::create_dir_all(left.parent().unwrap()).unwrap();
    fs::write(&left, b"half a database").unwrap();
    let session = Session::open_on_disk(&settings, "x").unwrap();
    session.run("write", "CREATE TABLE t AS SELECT 1").unwrap();
    drop(session);
    assert!(!left.exists());
}

#[test]
fn a_missing_extension_is_one_sentence_with_the_command() {
    use engine_rules::failure::{ActivityError as _, Disposition};
    let dir = tempfile::tempdir().unwrap();
    let empty = dir.path().join("no-extensions");
    let settings = DuckSettings { extension_directory: Some(empty.clone()), ..settings(dir.path()) };
    let error = Session::open(&settings, "x").unwrap_err();
    let text = error.to_string();
    assert!(text.contains(empty.to_str().unwrap()) && text.ends_with("bring it with: make setup"), "{text}");
    assert!(!text.contains('\n'), "{text}");
    assert_eq!(error.disposition(), Disposition::Operator);
    assert_eq!(scratch_folders(&settings), 0, "the scratch folder stayed");
}

#[test]
fn the_limits_are_those_of_the_engine_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    let session = Session::open(&settings(dir.path()), "x").unwrap();
    let limits = session.limits().unwrap();
    assert!(limits.storage_version >= 68, "{limits:?}");
    assert!(limits.ducklake_spec_version.split_once('.').is_some(), "{limits:?}");
    // A fresh database has an older version than the newest that the engine can write (vectors/README).
    let fresh = dir.path().join("fresh.duckdb");
    session.attach(&fresh, "fresh", Access::Write).unwrap();
    session.run("write", "CREATE TABLE fresh.t(i INTEGER)").unwrap();
    session.detach("fresh").unwrap();
    assert_eq!(storage_version(&fresh).unwrap(), 64);
    assert_eq!(session.limits().unwrap(), limits, "the second answer differs");
}

#[test]
fn a_write_ahead_log_is_refused_by_a_reader() {
    let dir = tempfile::tempdir().unwrap();
    let session = Session::open(&settings(dir.path()), "x").unwrap();
    let path = dir.path().join("it's.duckdb");
    session.attach(&path, "a", Access::Write).unwrap();
    session.run("write", "CREATE TABLE a.t(i INTEGER)").unwrap();
    session.detach("a").unwrap();
    session.attach(&path, "a", Access::Read).unwrap();
    session.detach("a").unwrap();
    fs::write(wal_of(&path), b"").unwrap();
    assert!(matches!(session.attach(&path, "a", Access::Read), Err(DuckError::WriteAheadLog { .. })));
    assert!(matches!(session.attach_lake(&path, dir.path(), Access::Read), Err(DuckError::WriteAheadLog { .. })));
}

#[test]
fn names_and_texts_are_quoted() {
    assert_eq!(identifier("a\"b"), "\"a\"\"b\"");
    assert_eq!(literal("it's"), "'it''s'");
    let dir = tempfile::tempdir().unwrap();
    let session = Session::open(&settings(dir.path()), "x").unwrap();
    let odd = "O\"B'S; DROP";
    session.run("create", &format!("CREATE TABLE t AS SELECT {} AS {}", literal(odd), identifier(odd))).unwrap();
    let read: String = session.row("read", &format!("SELECT {} FROM t", identifier(odd)), |row| row.get(0)).unwrap();
    assert_eq!(read, odd);
}

#[test]
fn a_long_statement_is_interrupted_when_its_run_is_cancelled() {
    let dir = tempfile::tempdir().unwrap();
    let mut session = Session::open(&settings(dir.path()), "x").unwrap();
    let token = engine_rules::activity::CancelToken::new();
    session.heed(&token);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::park_timeout(std::time::Duration::from_millis(300));
            token.cancel();
        });
        let long = "SELECT sum(a.range * b.range) FROM range(10_000_000) a, range(10_000_000) b";
        let error = session.row("count for days", long, |row| row.get::<_, f64>(0)).unwrap_err();
        assert!(format!("{error:?}").contains("INTERRUPT"), "{error:?}");
    });
    let next = session.run("go on", "SELECT 1").unwrap_err();
    assert!(matches!(next, DuckError::Stopped { .. }), "{next:?}");
}
