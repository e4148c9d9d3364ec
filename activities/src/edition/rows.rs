//! Staged rows into the lake: only what changed is written, and files that hold no change stay.
//!
//! DuckLake replaces whole files, so what a revision costs depends on what it shares files with. A large write is
//! therefore cut in two by period: revisions and new periods fall into the small recent file, and the large old one is
//! carried from edition to edition.

use std::collections::BTreeSet;

use super::error::EditionError;
use super::lake::{self, LakeTable};
use super::source::ColumnRole;
use super::stage::{LakeColumn, Staged};
use crate::duck::{DuckError, LAKE, Session, identifier, literal};

/// From this many rows on, a write is cut into old and recent periods.
const CUT_FROM_ROWS: u64 = 250_000;
/// The share of rows that count as old when a write is cut.
const OLD_SHARE: &str = "0.875";
/// A file below this share of the table's rows is small.
const SMALL_SHARE: u64 = 16;
/// So many small files stay beside the others; one more, and they are written together again.
const SMALL_FILES: usize = 8;

/// What became of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Data files of the previous edition that hold no change and stay.
    pub kept_files: u64,
    /// Rows that were written into new files.
    pub new_rows: u64,
}

/// A file of a table, by DuckLake's name for it.
#[derive(Debug)]
struct Held {
    filename: String,
    rows: u64,
}

/// Makes `table` hold exactly the rows of `staged`, in columns and sort order of theirs. Safe to repeat.
///
/// # Errors
/// [`EditionError::Duck`]; the lake is then as it was before or holds the rows.
pub fn write(session: &Session, table: &LakeTable, staged: &Staged) -> Result<Written, EditionError> {
    let wanted: Vec<(String, String)> =
        staged.columns.iter().map(|column| (column.name.clone(), column.sql_type.clone())).collect();
    let found = lake::columns(session, table)?;
    if found != wanted {
        create(session, table, staged, !found.is_empty())?;
        insert(session, table, staged, "", staged.rows)?;
        return Ok(Written { kept_files: 0, new_rows: staged.rows });
    }
    let held = held(session, table)?;
    let changed = changed(session, table, staged)?;
    let kept = keep(&held, &changed, staged.rows);
    let kept_rows: u64 = held.iter().filter(|file| kept.contains(&file.filename)).map(|file| file.rows).sum();
    if !kept.is_empty() {
        let dropped: Vec<&Held> = held.iter().filter(|file| !kept.contains(&file.filename)).collect();
        if dropped.is_empty() && kept_rows == staged.rows && is_covered(session, table, staged)? {
            return Ok(Written { kept_files: kept.len() as u64, new_rows: 0 });
        }
        if replace_files(session, table, staged, &dropped, staged.rows.saturating_sub(kept_rows))? {
            return Ok(Written { kept_files: kept.len() as u64, new_rows: staged.rows - kept_rows });
        }
    }
    replace_all(session, table, staged)?;
    Ok(Written { kept_files: 0, new_rows: staged.rows })
}

/// Drops every table of the lake that is not in `keep`.
pub fn drop_others(session: &Session, keep: &BTreeSet<LakeTable>) -> Result<(), DuckError> {
    for table in lake::tables(session)?.iter().filter(|table| !keep.contains(table)) {
        session.run("drop a table of the lake", &format!("DROP TABLE {}", table.sql()))?;
    }
    Ok(())
}

fn create(session: &Session, table: &LakeTable, staged: &Staged, exists: bool) -> Result<(), DuckError> {
    if exists {
        session.run("drop a table of other columns", &format!("DROP TABLE {}", table.sql()))?;
    }
    let columns: Vec<String> = staged
        .columns
        .iter()
        .map(|LakeColumn { name, sql_type, .. }| format!("{} {sql_type}", identifier(name)))
        .collect();
    session.run(
        "create a table of the lake",
        &format!(
            "CREATE SCHEMA IF NOT EXISTS {LAKE}.{}; CREATE TABLE {} ({}); ALTER TABLE {} SET SORTED BY ({})",
            identifier(&table.schema),
            table.sql(),
            columns.join(", "),
            table.sql(),
            staged.key().join(", ")
        ),
    )
}

fn held(session: &Session, table: &LakeTable) -> Result<Vec<Held>, DuckError> {
    let sql = format!("SELECT filename, count(*) FROM {} GROUP BY filename ORDER BY filename", table.sql());
    session.rows("count the rows of each file", &sql, [], |row| Ok(Held { filename: row.get(0)?, rows: row.get(1)? }))
}

/// The condition under which row `a` and row `b` are equal.
fn equal(staged: &Staged, a: &str, b: &str) -> String {
    let terms: Vec<String> = staged
        .columns
        .iter()
        .map(|column| {
            let name = identifier(&column.name);
            match column.role {
                ColumnRole::Dimension | ColumnRole::TimePeriod => format!("{a}.{name} = {b}.{name}"),
                ColumnRole::Measure | ColumnRole::Attribute => format!("{a}.{name} IS NOT DISTINCT FROM {b}.{name}"),
            }
        })
        .collect();
    terms.join(" AND ")
}

/// The files with a row that the staged rows do not hold.
fn changed(session: &Session, table: &LakeTable, staged: &Staged) -> Result<BTreeSet<String>, DuckError> {
    let sql = format!(
        "SELECT DISTINCT old.filename FROM {} AS old
         WHERE NOT EXISTS (SELECT 1 FROM ({}) AS new WHERE {})",
        table.sql(),
        staged.select(),
        equal(staged, "new", "old")
    );
    Ok(session.rows("compare the rows with the previous edition", &sql, [], |row| row.get(0))?.into_iter().collect())
}

/// The condition under which a staged row `new` is in the table already.
fn is_held(table: &LakeTable, staged: &Staged) -> String {
    format!("EXISTS (SELECT 1 FROM {} AS old WHERE {})", table.sql(), equal(staged, "new", "old"))
}

fn is_covered(session: &Session, table: &LakeTable, staged: &Staged) -> Result<bool, DuckError> {
    let sql = format!("SELECT count(*) = 0 FROM ({}) AS new WHERE NOT {}", staged.select(), is_held(table, staged));
    session.row("compare the rows with the previous edition", &sql, |row| row.get(0))
}

/// The files that stay: those without a change, unless the small ones among them have become too many or all of them
/// together hold less than half of the rows.
fn keep(held: &[Held], changed: &BTreeSet<String>, rows: u64) -> BTreeSet<String> {
    let unchanged: Vec<&Held> = held.iter().filter(|file| !changed.contains(&file.filename)).collect();
    let is_small = |file: &Held| file.rows < rows / SMALL_SHARE;
    let merges = unchanged.iter().filter(|file| is_small(file)).count() > SMALL_FILES;
    let kept: Vec<&Held> = unchanged.into_iter().filter(|file| !(merges && is_small(file))).collect();
    if kept.iter().map(|file| file.rows).sum::<u64>() < rows.div_ceil(2) {
        return BTreeSet::new();
    }
    kept.into_iter().map(|file| file.filename.clone()).collect()
}

/// Takes the files `dropped` out and writes the staged rows that are in none of the others. `false`, with the lake as
/// it was, when the table does not hold exactly the staged rows afterwards: the previous edition held one twice.
fn replace_files(
    session: &Session,
    table: &LakeTable,
    staged: &Staged,
    dropped: &[&Held],
    new_rows: u64,
) -> Result<bool, DuckError> {
    session.run("begin", "BEGIN TRANSACTION")?;
    let done = (|| {
        if !dropped.is_empty() {
            let list: Vec<String> = dropped.iter().map(|file| literal(&file.filename)).collect();
            let sql = format!("DELETE FROM {} WHERE filename IN ({})", table.sql(), list.join(", "));
            session.run("take out changed files", &sql)?;
        }
        insert(session, table, staged, &format!("WHERE NOT {}", is_held(table, staged)), new_rows)?;
        Ok(lake::count(session, table)? == staged.rows)
    })();
    match done {
        Ok(true) => session.run("commit", "COMMIT").map(|()| true),
        Ok(false) => session.run("roll back", "ROLLBACK").map(|()| false),
        Err(error) => {
            // What failed is told; a failed statement may have rolled back already.
            let _ = session.run("roll back", "ROLLBACK");
            Err(error)
        }
    }
}

fn replace_all(session: &Session, table: &LakeTable, staged: &Staged) -> Result<(), DuckError> {
    session.run("begin", "BEGIN TRANSACTION")?;
    let done = session
        .run("take out changed files", &format!("DELETE FROM {}", table.sql()))
        .and_then(|()| insert(session, table, staged, "", staged.rows))
        .and_then(|()| session.run("commit", "COMMIT"));
    if done.is_err() {
        // What failed is told; a failed commit has rolled back already.
        let _ = session.run("roll back", "ROLLBACK");
    }
    done
}

/// Writes the staged rows that `filter` lets through, `rows` of them, sorted by key (the table's own order).
fn insert(session: &Session, table: &LakeTable, staged: &Staged, filter: &str, rows: u64) -> Result<(), DuckError> {
    // Several threads would each sort a part, and a file's row groups would then stand in any order.
    let threads: i64 = session.row("read a setting", "SELECT current_setting('threads')", |row| row.get(0))?;
    session.run("use one thread", "SET threads TO 1")?;
    let inserted = insert_sorted(session, table, staged, filter, rows);
    let restored = session.run("use all threads again", &format!("SET threads TO {threads}"));
    inserted.and(restored)
}

fn insert_sorted(
    session: &Session,
    table: &LakeTable,
    staged: &Staged,
    filter: &str,
    rows: u64,
) -> Result<(), DuckError> {
    const PURPOSE: &str = "write rows into the lake";
    let into = format!("INSERT INTO {} SELECT * FROM ({}) AS new {filter}", table.sql(), staged.select());
    let cut = match staged.time() {
        Some(time) if rows >= CUT_FROM_ROWS => cut(session, staged, &time)?.map(|period| (time, literal(&period))),
        Some(_) | None => None,
    };
    let Some((time, period)) = cut else { return session.run(PURPOSE, &into) };
    let also = if filter.is_empty() { "WHERE" } else { "AND" };
    // The second sees what the first wrote, and finds none of its own rows there: the periods are others.
    session.run(PURPOSE, &format!("{into} {also} {time} < {period}"))?;
    session.run(PURPOSE, &format!("{into} {also} {time} >= {period}"))
}

/// The period from which on rows count as recent, `None` when that is all of them.
fn cut(session: &Session, staged: &Staged, time: &str) -> Result<Option<String>, DuckError> {
    let sql = format!("SELECT nullif(quantile_disc({time}, {OLD_SHARE}), min({time})) FROM {}", staged.table);
    session.row("find the recent periods", &sql, |row| row.get(0))
}

#[cfg(test)]
mod tests;
