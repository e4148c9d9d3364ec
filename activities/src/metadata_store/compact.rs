//! The rewrite of a store into a fresh file (*edition* §7).

use std::fs;
use std::path::{Path, PathBuf};

use duckdb::Connection;

use super::error::MetadataError;
use super::rows::{Target, literal};
use super::schema::{Form, SEQUENCES, TABLES, ddl, quoted};
use super::{SCHEMA, Table};

const FROM: &str = "jobctl_compact_from";
const TO: &str = "jobctl_compact_to";

/// Writes the store in the file `from` into the fresh file `to`, in `form`: the sealed form before an edition is sealed,
/// the keyed one for the copy that a new edition extends. `from` is only read.
///
/// `to` is written at the storage version of `from`, its rows lie in the order in which they are read, and its sequences go on
/// behind the ids in it. After it returns, `to` is checkpointed and closed and has no write-ahead log; it is not fsynced.
/// `conn` must not be in a transaction, and neither file may be attached to it. On an error there is no `to`; after a
/// crash there may be one, which the caller removes before the next attempt.
///
/// # Errors
/// [`MetadataError::WalLeft`] when a log lies beside `from`, [`MetadataError::Exists`] when `to` is there,
/// [`MetadataError::StorageVersion`] or [`MetadataError::DuckDb`].
pub fn compact(conn: &Connection, from: &Path, to: &Path, form: Form) -> Result<(), MetadataError> {
    refuse_wal(from)?;
    for path in [to.to_owned(), wal_of(to)] {
        if path.exists() {
            return Err(MetadataError::Exists { path });
        }
    }
    let copied = copy(conn, from, to, form);
    // Whatever happened, neither file stays attached; after a failure some of these fail too.
    let detached = [TO, FROM].map(|alias| conn.execute_batch(&format!("DETACH DATABASE IF EXISTS {alias}")));
    let done = copied.and_then(|()| {
        for result in detached {
            result.map_err(MetadataError::duckdb("close the compacted store"))?;
        }
        refuse_wal(to)
    });
    if done.is_err() {
        for path in [to.to_owned(), wal_of(to)] {
            // What was begun is of no use, and its absence lets the step run again.
            let _ = fs::remove_file(path);
        }
    }
    done
}

fn wal_of(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".wal");
    PathBuf::from(name)
}

fn refuse_wal(store: &Path) -> Result<(), MetadataError> {
    let path = wal_of(store);
    if path.exists() { Err(MetadataError::WalLeft { path }) } else { Ok(()) }
}

fn copy(conn: &Connection, from: &Path, to: &Path, form: Form) -> Result<(), MetadataError> {
    let run = |doing: &str, sql: &str| conn.execute_batch(sql).map_err(MetadataError::duckdb(doing));
    let path = |path: &Path| literal(&path.display().to_string());
    run("open the store to compact", &format!("ATTACH {} AS {FROM} (READ_ONLY)", path(from)))?;
    let version = storage_version(conn, from)?;
    let attach = format!("ATTACH {} AS {TO} (STORAGE_VERSION {})", path(to), literal(&version));
    run("create the compacted store", &attach)?;

    let target = |catalog| Target { conn, catalog, schema: SCHEMA }.qualified();
    let (source, copy) = (target(FROM), target(TO));
    let mut starts = Vec::with_capacity(SEQUENCES.len());
    for (_, table) in SEQUENCES {
        let sql = format!("SELECT coalesce(max(id), 0) + 1 FROM {source}.\"{}\"", table.name);
        let start: i64 =
            conn.query_row(&sql, [], |row| row.get(0)).map_err(MetadataError::duckdb("read the last id"))?;
        starts.push(start);
    }
    run("create the tables of the compacted store", &ddl(&copy, form, &starts))?;
    for table in TABLES {
        run(&format!("copy {}", table.name), &copy_sql(table, &source, &copy))?;
    }
    run("checkpoint the compacted store", &format!("CHECKPOINT {TO}"))
}

/// Copies a table in its order.
fn copy_sql(table: &Table, source: &str, copy: &str) -> String {
    let (name, columns) = (table.name, table.column_list());
    format!(
        "INSERT INTO {copy}.\"{name}\" ({columns}) SELECT {columns} FROM {source}.\"{name}\" ORDER BY {}",
        quoted(table.order)
    )
}

/// The storage version at which `from`, attached as [`FROM`], was written: `v1.0.0` for a file that DuckDB 1.0 and
/// later can read.
fn storage_version(conn: &Connection, from: &Path) -> Result<String, MetadataError> {
    let sql =
        format!("SELECT coalesce(tags['storage_version'], '') FROM duckdb_databases() WHERE database_name = '{FROM}'");
    let found: String =
        conn.query_row(&sql, [], |row| row.get(0)).map_err(MetadataError::duckdb("read the storage version"))?;
    match found.strip_suffix('+') {
        Some(version) if version.starts_with('v') => Ok(version.to_owned()),
        Some(_) | None => Err(MetadataError::StorageVersion { path: from.to_owned(), found }),
    }
}
