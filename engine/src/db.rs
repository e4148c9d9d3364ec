//! Opening the state database: durability is set and read back, and the schema is brought up by one process at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use engine_rules::clock::Clock;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, SqlSafeStr as _, SqliteConnection, SqlitePool};

use crate::error::{EngineError, sqlite_code, storage};

/// How long SQLite itself waits for another process before the engine is told and waits on: long, so that a wait costs
/// no work; and not for ever, so that it is logged. In milliseconds: 15 s.
pub(crate) const BUSY_WAIT_MS: u32 = 15_000;

/// How long the engine itself waits before it tries again, in milliseconds.
pub(crate) const BUSY_AGAIN_MS: u64 = 5;

/// The write-ahead log is cut back to this size, in bytes, once no reader holds it: 16 MiB.
const WAL_KEPT_BYTES: u32 = 16 * 1024 * 1024;

/// The file whose lock is held while the schema is brought up.
const SCHEMA_LOCK: &str = "schema.lock";

/// The state database's name within the state directory.
const FILE_NAME: &str = "state.db";

/// The migrations, in order. One that was released never changes; its digest is pinned by a test.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "core", include_str!("../../migrations/0001_core.sql")),
    (2, "waiting", include_str!("../../migrations/0002_waiting.sql")),
    (3, "schedules", include_str!("../../migrations/0003_schedules.sql")),
    (4, "imported", include_str!("../../migrations/0004_imported.sql")),
    (5, "replay", include_str!("../../migrations/0005_replay.sql")),
];

/// Where the state database of `state_dir` is.
pub(crate) fn path(state_dir: &Path) -> PathBuf {
    state_dir.join(FILE_NAME)
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(Duration::from_millis(BUSY_WAIT_MS.into()))
        .disable_statement_logging()
}

/// The connection of the writer. When it returns, the schema is this program's, and what is committed on the connection
/// survives a power cut: write-ahead log and `synchronous = FULL`, both read back.
///
/// # Errors
/// [`EngineError::NotDurable`] when a setting is not in force; [`EngineError::Schema`] when the database is newer.
pub(crate) async fn open_writer(state_dir: &Path) -> Result<SqliteConnection, EngineError> {
    std::fs::create_dir_all(state_dir).map_err(|source| EngineError::Io {
        path: state_dir.to_owned(),
        doing: "create the state directory",
        source,
    })?;
    let path = path(state_dir);
    let lock = lock_schema(state_dir).await?;
    let mut connection = options(&path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .pragma("journal_size_limit", WAL_KEPT_BYTES.to_string())
        .row_buffer_size(4096)
        .connect()
        .await
        .map_err(storage("be opened"))?;
    // Not `run`, whose future no task can be shown to be able to carry (sqlx says so beside it): an engine is opened in tasks.
    migrator().run_direct(None, &mut connection, false).await.map_err(|source| match source {
        // The database, not its schema.
        MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _) => {
            storage("bring its schema up")(source)
        }
        source => EngineError::Schema { path: path.clone(), source },
    })?;
    drop(lock);
    check_durable(&mut connection, &path).await?;
    Ok(connection)
}

fn migrator() -> Migrator {
    let migrations = MIGRATIONS
        .iter()
        .map(|(version, name, sql)| {
            Migration::new(*version, (*name).into(), MigrationType::Simple, (*sql).into_sql_str(), false)
        })
        .collect();
    Migrator::with_migrations(migrations)
}

/// Refuses a connection on which a commit may be lost.
async fn check_durable(connection: &mut SqliteConnection, path: &Path) -> Result<(), EngineError> {
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode")
        .fetch_one(&mut *connection)
        .await
        .map_err(storage("read back its journal mode"))?;
    let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous")
        .fetch_one(&mut *connection)
        .await
        .map_err(storage("read back its synchronous setting"))?;
    let differs = |setting, found: String, expected| {
        Err(EngineError::NotDurable { path: path.to_owned(), setting, found, expected })
    };
    if mode != "wal" {
        return differs("journal_mode", mode, "wal");
    }
    if synchronous != 2 {
        return differs("synchronous", synchronous.to_string(), "2 (FULL)");
    }
    Ok(())
}

/// Held while the schema is looked at and brought up. Where the file system has no locks, the processes go without: one
/// of them may then have to be started again.
async fn lock_schema(state_dir: &Path) -> Result<Option<File>, EngineError> {
    let path = state_dir.join(SCHEMA_LOCK);
    let error = |doing| {
        let path = path.clone();
        move |source| EngineError::Io { path, doing, source }
    };
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(error("open the lock of the schema"))?;
    match file.try_lock() {
        Ok(()) => return Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(cause)) => {
            tracing::warn!(%cause, path = %path.display(), "this file system has no locks");
            return Ok(None);
        }
    }
    let waiting = tokio::task::spawn_blocking(move || file.lock().map(|()| file));
    let locked = waiting.await.map_err(|_| EngineError::Closed)?;
    locked.map(Some).map_err(error("wait for the lock of the schema"))
}

/// Connections that only read, for as many readers at once.
///
/// # Errors
/// [`EngineError::NoState`] when there is no database, [`EngineError::Io`] when that cannot be told.
pub(crate) async fn open_readers(state_dir: &Path, most: u32) -> Result<SqlitePool, EngineError> {
    let path = path(state_dir);
    // What cannot be looked at may be there: to say that there is nothing would be a guess.
    match path.try_exists() {
        Ok(true) => {}
        Ok(false) => return Err(EngineError::NoState { path }),
        Err(source) => return Err(EngineError::Io { path, doing: "look for the state database", source }),
    }
    let pool = SqlitePoolOptions::new()
        .max_connections(most)
        .test_before_acquire(false)
        .connect_with(options(&path).read_only(true))
        .await
        .map_err(storage("be opened for reading"))?;
    Ok(pool)
}

/// A pool that nothing is read from: it opens no file.
pub(crate) fn no_readers() -> SqlitePool {
    SqlitePoolOptions::new().connect_lazy_with(SqliteConnectOptions::new().in_memory(true))
}

/// Refuses a database whose schema is not this program's; a reader never changes it.
///
/// # Errors
/// [`EngineError::NoState`] when it has no schema yet; [`EngineError::Schema`] when it is older or newer.
pub(crate) async fn check_schema(pool: &SqlitePool, path: &Path) -> Result<(), EngineError> {
    match look_at_schema(pool, path).await {
        // Another process may be about to bring it up, one file after the other.
        Err(EngineError::Schema { .. }) if upgrade_ended(path).await => look_at_schema(pool, path).await,
        looked => looked,
    }
}

/// Waits for whoever brings the schema up, and answers whether there may have been somebody. A folder that cannot be
/// written has the lock of its schema all the same, since what wrote it there left it.
async fn upgrade_ended(path: &Path) -> bool {
    let lock = path.with_file_name(SCHEMA_LOCK);
    let waiting = tokio::task::spawn_blocking(move || File::open(lock).is_ok_and(|file| file.lock_shared().is_ok()));
    waiting.await.unwrap_or(false)
}

async fn look_at_schema(pool: &SqlitePool, path: &Path) -> Result<(), EngineError> {
    let begun: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = '_sqlx_migrations')")
        .fetch_one(pool)
        .await
        .map_err(storage("read its schema"))?;
    let found: Option<i64> = match begun {
        true => sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations WHERE success")
            .fetch_one(pool)
            .await
            .map_err(storage("read its schema"))?,
        false => None,
    };
    let newest = MIGRATIONS.last().map_or(0, |(version, ..)| *version);
    let error = |source| Err(EngineError::Schema { path: path.to_owned(), source });
    match found {
        None => Err(EngineError::NoState { path: path.to_owned() }),
        Some(found) if found > newest => error(MigrateError::VersionMissing(found)),
        Some(found) if found < newest => error(MigrateError::VersionTooOld(found, newest)),
        Some(_) => Ok(()),
    }
}

/// What `read` gives, waiting as long as another process holds the database.
pub(crate) async fn patient<T, R>(clock: &dyn Clock, mut read: impl FnMut() -> R) -> Result<T, sqlx::Error>
where
    R: Future<Output = Result<T, sqlx::Error>>,
{
    loop {
        match read().await {
            Err(error) if is_busy(&error) => {
                tracing::warn!("another process holds the state database: waiting for it");
                clock.sleep_ms(BUSY_AGAIN_MS).await;
            }
            other => return other,
        }
    }
}

/// Has SQLite wait so long on `connection` before it says that another process holds the database.
pub(crate) async fn set_busy_wait(connection: &mut SqliteConnection, wait_ms: u32) -> Result<(), EngineError> {
    let pragma = sqlx::AssertSqlSafe(format!("PRAGMA busy_timeout = {wait_ms}"));
    sqlx::query(pragma).execute(connection).await.map(|_| ()).map_err(storage("be told how long to wait"))
}

/// Whether another connection held the database for so long that this one gave up: it is tried again.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    const BUSY: i32 = 5;
    const LOCKED: i32 = 6;
    // Many began to read at the same moment, and this one lost each time.
    const PROTOCOL: i32 = 15;
    sqlite_code(error).is_some_and(|code| matches!(code, BUSY | LOCKED | PROTOCOL))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn open(path: &Path, mode: SqliteJournalMode, synchronous: SqliteSynchronous) -> SqliteConnection {
        let options = options(path).create_if_missing(true).journal_mode(mode).synchronous(synchronous);
        options.connect().await.expect("it opens")
    }

    #[tokio::test]
    async fn a_connection_that_may_lose_a_commit_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        for (mode, synchronous, refused) in [
            (SqliteJournalMode::Wal, SqliteSynchronous::Full, None),
            (SqliteJournalMode::Wal, SqliteSynchronous::Normal, Some(("synchronous", "1"))),
            (SqliteJournalMode::Wal, SqliteSynchronous::Off, Some(("synchronous", "0"))),
            (SqliteJournalMode::Memory, SqliteSynchronous::Full, Some(("journal_mode", "memory"))),
        ] {
            let path = folder.path().join(format!("{mode:?}{synchronous:?}"));
            let mut connection = open(&path, mode, synchronous).await;
            let found = match check_durable(&mut connection, &path).await {
                Ok(()) => None,
                Err(EngineError::NotDurable { setting, found, .. }) => Some((setting, found)),
                Err(other) => panic!("{other}"),
            };
            assert_eq!(found, refused.map(|(setting, found)| (setting, found.to_owned())));
        }
    }

    #[tokio::test]
    async fn a_state_that_cannot_be_looked_at_is_not_told_as_none() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(open_readers(dir.path(), 1).await, Err(EngineError::NoState { .. })));
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(open_readers(&file, 1).await, Err(EngineError::Io { .. })));
    }

    #[tokio::test]
    async fn the_writer_is_durable_and_cuts_its_log_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = open_writer(folder.path()).await.expect("it opens");
        check_durable(&mut writer, &path(folder.path())).await.expect("it is durable");
        let limit: i64 =
            sqlx::query_scalar("PRAGMA journal_size_limit").fetch_one(&mut writer).await.expect("a pragma");
        assert_eq!(limit, i64::from(WAL_KEPT_BYTES));
        let timeout: i64 = sqlx::query_scalar("PRAGMA busy_timeout").fetch_one(&mut writer).await.expect("a pragma");
        assert_eq!(timeout, i64::from(BUSY_WAIT_MS));
    }

    #[tokio::test]
    async fn a_held_database_is_told_from_other_errors() {
        let folder = tempfile::tempdir().expect("a folder");
        let writer = open_writer(folder.path()).await.expect("it opens");
        sqlx::Connection::close(writer).await.expect("it closes");
        let quick =
            || async { options(&path(folder.path())).busy_timeout(Duration::ZERO).connect().await.expect("it opens") };
        let (mut one, mut two) = (quick().await, quick().await);
        sqlx::query("BEGIN IMMEDIATE").execute(&mut one).await.expect("the lock is free");
        let busy = sqlx::query("BEGIN IMMEDIATE").execute(&mut two).await.expect_err("the lock is held");
        assert!(is_busy(&busy), "{busy}");
        let other = sqlx::query("SELECT * FROM nothing").execute(&mut two).await.expect_err("no such table");
        assert!(!is_busy(&other), "{other}");
    }
}
