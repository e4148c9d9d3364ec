//! One connection with its scratch folder.

use std::future::Future as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Wake, Waker};

use catalog_rules::manifest::DATA_PATH;
use duckdb::{Config, Connection, InterruptHandle, Params, Row};
use engine_rules::activity::CancelToken;
use engine_rules::token::Cancelled;

use super::scratch::Scratch;
use super::{DuckError, DuckSettings, literal, path_literal, storage_version};

/// The name under which an edition's lake is attached.
pub const LAKE: &str = "lake";
/// The name under which an edition's artefact store is attached.
pub const STORE: &str = "store";

/// Whether a database is attached to be read or to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nothing of it changes, not by a byte. A write-ahead log beside it is refused.
    Read,
    /// It is extended. A write-ahead log beside it is taken in first.
    Write,
}

/// The releases that write what is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versions {
    /// DuckDB, such as `1.5.5`.
    pub duckdb: String,
    /// The DuckLake extension, such as `d8a1881e`.
    pub ducklake: String,
}

/// The newest formats that this engine writes, and so the newest that it is trusted to read (*edition* §4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineLimits {
    /// DuckDB's storage version.
    pub storage_version: u64,
    /// DuckLake's format, such as `1.0`.
    pub ducklake_spec_version: String,
}

/// A connection to a database of its own, with a scratch folder that goes when the session does.
#[derive(Debug)]
pub struct Session {
    connection: Option<Connection>,
    scratch: Scratch,
    heeds: Option<(CancelToken, Pin<Box<Cancelled>>)>,
}

/// Interrupts the statement at work when a token is set.
struct Interrupt(Arc<InterruptHandle>);

impl Wake for Interrupt {
    fn wake(self: Arc<Self>) {
        self.0.interrupt();
    }
}

impl Session {
    /// A session in memory. `name` says in the name of its scratch folder under the settings' `temp_directory` what it
    /// is for; the folder is this session's alone. What sessions of dead processes left there is removed.
    ///
    /// # Errors
    /// [`DuckError::MissingExtension`] when DuckLake cannot be loaded; others when DuckDB or the disk fails.
    pub fn open(settings: &DuckSettings, name: &str) -> Result<Self, DuckError> {
        Self::start(settings, name, |_, config| Connection::open_in_memory_with_flags(config))
    }

    /// A session whose own tables are in a file of its scratch folder, for more rows than memory holds.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_on_disk(settings: &DuckSettings, name: &str) -> Result<Self, DuckError> {
        Self::start(settings, name, |scratch, config| Connection::open_with_flags(scratch.join("stage.duckdb"), config))
    }

    fn start(
        settings: &DuckSettings,
        name: &str,
        connect: impl FnOnce(&Path, Config) -> duckdb::Result<Connection>,
    ) -> Result<Self, DuckError> {
        // From here on the scratch folder goes with the session, also on an error.
        let scratch = Scratch::create(&settings.temp_directory, name)?;
        let mut session = Self { connection: None, scratch, heeds: None };
        let config = config(settings, session.scratch()).map_err(DuckError::sql("take its settings"))?;
        session.connection = Some(connect(session.scratch(), config).map_err(DuckError::sql("open a session"))?);
        if let Err(source) = session.connection().execute_batch("LOAD ducklake") {
            return Err(DuckError::MissingExtension {
                duckdb_version: session.duckdb_version()?,
                directory: settings.extension_directory.clone(),
                source,
            });
        }
        session.run("set the time zone", "SET TimeZone = 'UTC'")?;
        Ok(session)
    }

    /// The connection itself.
    #[must_use]
    #[allow(
        clippy::missing_panics_doc,
        reason = "a session that was handed out has its connection until it is dropped"
    )]
    pub fn connection(&self) -> &Connection {
        match &self.connection {
            Some(connection) => connection,
            None => unreachable!("a session that was handed out has its connection until it is dropped"),
        }
    }

    /// From now on the statement at work is interrupted when `token` is set, and no further one begins.
    pub fn heed(&mut self, token: &CancelToken) {
        let waker = Waker::from(Arc::new(Interrupt(self.connection().interrupt_handle())));
        let mut waits = Box::pin(token.cancelled());
        // Asked once, so that the token knows whom to wake.
        let _ = waits.as_mut().poll(&mut Context::from_waker(&waker));
        self.heeds = Some((token.clone(), waits));
    }

    fn refuse_stopped(&self, purpose: &'static str) -> Result<(), DuckError> {
        match &self.heeds {
            Some((token, _)) if token.is_cancelled() => Err(DuckError::Stopped { purpose }),
            Some(_) | None => Ok(()),
        }
    }

    /// The session's scratch folder.
    #[must_use]
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Runs the statements of `sql`. `purpose` completes "DuckDB could not …".
    ///
    /// # Errors
    /// [`DuckError::Sql`] with what DuckDB said.
    pub fn run(&self, purpose: &'static str, sql: &str) -> Result<(), DuckError> {
        self.refuse_stopped(purpose)?;
        self.connection().execute_batch(sql).map_err(DuckError::sql(purpose))
    }

    /// Each row that the query gives, in its order.
    ///
    /// # Errors
    /// [`DuckError::Sql`] with what DuckDB said.
    pub fn rows<T>(
        &self,
        purpose: &'static str,
        sql: &str,
        parameters: impl Params,
        row: impl FnMut(&Row<'_>) -> duckdb::Result<T>,
    ) -> Result<Vec<T>, DuckError> {
        self.refuse_stopped(purpose)?;
        let collect =
            || -> duckdb::Result<Vec<T>> { self.connection().prepare(sql)?.query_map(parameters, row)?.collect() };
        collect().map_err(DuckError::sql(purpose))
    }

    /// The one row that the query gives.
    ///
    /// # Errors
    /// [`DuckError::Sql`] with what DuckDB said, also for no row.
    pub fn row<T>(
        &self,
        purpose: &'static str,
        sql: &str,
        row: impl FnOnce(&Row<'_>) -> duckdb::Result<T>,
    ) -> Result<T, DuckError> {
        self.refuse_stopped(purpose)?;
        self.connection().query_row(sql, [], row).map_err(DuckError::sql(purpose))
    }

    /// Attaches the DuckDB file at `path` under `alias`, creating it for [`Access::Write`].
    ///
    /// # Errors
    /// [`DuckError::WriteAheadLog`] for [`Access::Read`] when one is there; else what DuckDB said.
    pub fn attach(&self, path: &Path, alias: &str, access: Access) -> Result<(), DuckError> {
        let options = match access {
            Access::Read => {
                refuse_wal(path)?;
                "(READ_ONLY)"
            }
            Access::Write => "",
        };
        self.run("attach a database", &format!("ATTACH {} AS {alias} {options}", path_literal(path)?))
    }

    /// Attaches the DuckLake catalog at `path` as [`LAKE`] over the data files in `data`, an absolute path, creating it for
    /// [`Access::Write`].
    ///
    /// # Errors
    /// As [`Session::attach`].
    pub fn attach_lake(&self, path: &Path, data: &Path, access: Access) -> Result<(), DuckError> {
        let text = path.to_str().ok_or_else(|| DuckError::PathNotText { path: path.to_owned() })?;
        let catalog = literal(&format!("ducklake:{text}"));
        if access == Access::Write && !path.exists() {
            // What a catalog was created with stays in its freed blocks, so it never learns where it is.
            let created = format!("ATTACH {catalog} AS {LAKE} (DATA_PATH '{DATA_PATH}'); DETACH {LAKE}");
            self.run("create the lake", &created)?;
        }
        // DuckLake takes the folder as a prefix, so it must end in a slash.
        let data = path_literal(&data.join(""))?;
        let options = match access {
            Access::Read => {
                refuse_wal(path)?;
                "READ_ONLY"
            }
            // Rows never live in the catalog (D7).
            Access::Write => "DATA_INLINING_ROW_LIMIT 0",
        };
        self.run(
            "attach the lake",
            &format!("ATTACH {catalog} AS {LAKE} (DATA_PATH {data}, OVERRIDE_DATA_PATH true, {options})"),
        )
    }

    /// Detaches `alias`; its file is then whole, without a write-ahead log.
    ///
    /// # Errors
    /// [`DuckError::Sql`] with what DuckDB said.
    pub fn detach(&self, alias: &str) -> Result<(), DuckError> {
        self.run("detach a database", &format!("DETACH {alias}"))
    }

    fn duckdb_version(&self) -> Result<String, DuckError> {
        let version: String = self.row("say its version", "SELECT version()", |row| row.get(0))?;
        Ok(version.trim_start_matches('v').to_owned())
    }

    /// The releases that are running.
    ///
    /// # Errors
    /// [`DuckError::Sql`] with what DuckDB said.
    pub fn versions(&self) -> Result<Versions, DuckError> {
        let ducklake = self.row(
            "say the version of DuckLake",
            "SELECT extension_version FROM duckdb_extensions() WHERE extension_name = 'ducklake'",
            |row| row.get(0),
        )?;
        Ok(Versions { duckdb: self.duckdb_version()?, ducklake })
    }

    /// The newest formats that this engine writes, found by writing both once and reading them back.
    ///
    /// # Errors
    /// [`DuckError`] when the scratch folder cannot be written.
    pub fn limits(&self) -> Result<EngineLimits, DuckError> {
        static LIMITS: OnceLock<EngineLimits> = OnceLock::new();
        if let Some(limits) = LIMITS.get() {
            return Ok(limits.clone());
        }
        let (database, lake) = (self.scratch().join("probe.duckdb"), self.scratch().join("probe.ducklake"));
        self.run(
            "find its newest formats",
            &format!(
                "ATTACH {} AS probe (STORAGE_VERSION 'latest'); CREATE TABLE probe.t(i INTEGER); DETACH probe;
                 ATTACH {} AS probe (DATA_PATH {}); DETACH probe;
                 ATTACH {} AS probe (READ_ONLY)",
                path_literal(&database)?,
                literal(&format!("ducklake:{}", lake.display())),
                path_literal(&self.scratch().join("probe/"))?,
                path_literal(&lake)?,
            ),
        )?;
        let ducklake_spec_version = self.row(
            "find DuckLake's newest format",
            "SELECT value FROM probe.ducklake_metadata WHERE key = 'version'",
            |row| row.get(0),
        )?;
        self.detach("probe")?;
        let found = EngineLimits { storage_version: storage_version(&database)?, ducklake_spec_version };
        Ok(LIMITS.get_or_init(|| found).clone())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Nobody interrupts a connection that is gone; and the files must be closed before they go.
        self.heeds = None;
        drop(self.connection.take());
    }
}

fn config(settings: &DuckSettings, scratch: &Path) -> duckdb::Result<Config> {
    let mut config = Config::default()
        .enable_autoload_extension(false)?
        .max_memory(&format!("{}MiB", settings.memory_limit_mb))?
        .threads(i64::from(settings.threads.max(1)))?
        .with("temp_directory", scratch.join("spill").to_string_lossy())?;
    if let Some(folder) = &settings.extension_directory {
        config = config.with("extension_directory", folder.to_string_lossy())?;
    }
    Ok(config)
}

/// Where DuckDB keeps the write-ahead log of the database at `path`.
#[must_use]
pub fn wal_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".wal");
    PathBuf::from(name)
}

fn refuse_wal(path: &Path) -> Result<(), DuckError> {
    let wal = wal_of(path);
    if wal.exists() { Err(DuckError::WriteAheadLog { path: wal }) } else { Ok(()) }
}
