//! What a lake that is attached as [`LAKE`] holds.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use catalog_rules::ids::Sha256Hex;
use catalog_rules::manifest::TableFingerprint;
use catalog_rules::sdmx::model::DataflowBinding;

use super::error::EditionError;
use crate::duck::{Access, DuckError, LAKE, Session, identifier, literal};

/// The database in which DuckLake keeps its catalog, once the lake is attached.
pub const CATALOG: &str = "__ducklake_metadata_lake";

/// The term that a row adds to its table's fingerprint (*edition* §9), of the row `t`.
const ROW_TERM: &str = "(md5_number_lower(to_json(t)) % 4611686018427387904)::HUGEINT";

/// A table of the lake.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LakeTable {
    pub schema: String,
    pub name: String,
}

impl LakeTable {
    /// The table of `binding`, which names it as `schema.table`.
    pub fn of(binding: &DataflowBinding) -> Result<Self, EditionError> {
        match binding.table_location.split_once('.') {
            Some((schema, name)) if !schema.is_empty() && !name.is_empty() => {
                Ok(Self { schema: schema.to_owned(), name: name.to_owned() })
            }
            Some(_) | None => Err(EditionError::TableLocation {
                dataflow: binding.dataflow.clone(),
                found: binding.table_location.clone(),
            }),
        }
    }

    /// The table as SQL names it.
    pub fn sql(&self) -> String {
        format!("{LAKE}.{}.{}", identifier(&self.schema), identifier(&self.name))
    }
}

impl fmt::Display for LakeTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// A file that the lake's catalog references.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LakeFile {
    /// Its path under `data/`, or as the catalog has it when it is elsewhere.
    pub path: String,
    /// The table that it is a part of.
    pub table: LakeTable,
    /// Whether the path is under `data/`.
    pub is_relative: bool,
    /// The size that DuckLake recorded.
    pub size_bytes: u64,
    /// Whether the current snapshot references it.
    pub is_current: bool,
    /// Whether it holds deletions and no rows.
    pub deletes: bool,
}

/// The tables of the current snapshot.
pub fn tables(session: &Session) -> Result<Vec<LakeTable>, DuckError> {
    let sql =
        format!("SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = '{LAKE}' ORDER BY ALL");
    session
        .rows("list the tables of the lake", &sql, [], |row| Ok(LakeTable { schema: row.get(0)?, name: row.get(1)? }))
}

/// The columns of a table, name and type, in order; none when there is no such table.
pub fn columns(session: &Session, table: &LakeTable) -> Result<Vec<(String, String)>, DuckError> {
    let sql = format!(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE database_name = '{LAKE}' AND schema_name = {} AND \
         table_name = {} ORDER BY column_index",
        literal(&table.schema),
        literal(&table.name)
    );
    session.rows("read the columns of a table", &sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// The digest of what a row's text depends on beside its file: each column's name, type, nesting and initial default,
/// in order (D5).
pub fn columns_digest(session: &Session, table: &LakeTable) -> Result<Sha256Hex, DuckError> {
    let sql = format!(
        "SELECT to_json([c.column_id::VARCHAR, c.parent_column::VARCHAR, c.column_name, c.column_type,
                         c.initial_default::VARCHAR])::VARCHAR
         FROM {CATALOG}.ducklake_column c
         JOIN {CATALOG}.ducklake_table t ON t.table_id = c.table_id AND t.end_snapshot IS NULL
         JOIN {CATALOG}.ducklake_schema s ON s.schema_id = t.schema_id AND s.end_snapshot IS NULL
         WHERE c.end_snapshot IS NULL AND s.schema_name = {} AND t.table_name = {}
         ORDER BY c.column_order, c.column_id",
        literal(&table.schema),
        literal(&table.name)
    );
    let lines: Vec<String> = session.rows("read the columns of a table", &sql, [], |row| row.get(0))?;
    Ok(Sha256Hex::of(lines.join("\n").as_bytes()))
}

/// Every file that the catalog references from any snapshot that it keeps, by path.
pub fn referenced_files(session: &Session) -> Result<Vec<LakeFile>, DuckError> {
    let of = |files: &str, deletes: bool| {
        format!(
            "SELECT DISTINCT
               CASE WHEN NOT f.path_is_relative THEN f.path
                    WHEN NOT t.path_is_relative THEN t.path || f.path
                    ELSE s.path || t.path || f.path END,
               s.schema_name, t.table_name,
               f.path_is_relative AND t.path_is_relative AND s.path_is_relative,
               f.file_size_bytes,
               f.end_snapshot IS NULL,
               {deletes}
             FROM {CATALOG}.{files} f
             JOIN {CATALOG}.ducklake_table t USING (table_id)
             JOIN {CATALOG}.ducklake_schema s USING (schema_id)"
        )
    };
    let sql =
        format!("{} UNION ALL {} ORDER BY ALL", of("ducklake_data_file", false), of("ducklake_delete_file", true));
    session.rows("list the files of the lake", &sql, [], |row| {
        Ok(LakeFile {
            path: row.get(0)?,
            table: LakeTable { schema: row.get(1)?, name: row.get(2)? },
            is_relative: row.get(3)?,
            size_bytes: row.get(4)?,
            is_current: row.get(5)?,
            deletes: row.get(6)?,
        })
    })
}

/// How many rows and deletions the catalog at `path` itself holds; none in a settled lake. The lake must not be
/// attached: DuckLake hides its own tables, so the file is attached as the plain database that it is.
pub fn inlined_rows(session: &Session, path: &Path) -> Result<u64, DuckError> {
    const PURPOSE: &str = "look for rows in the lake's catalog";
    const PLAIN: &str = "plain_catalog";
    session.attach(path, PLAIN, Access::Read)?;
    let sql = format!(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = '{PLAIN}'
           AND (starts_with(table_name, 'ducklake_inlined_data_') OR starts_with(table_name, 'ducklake_inlined_delete_'))
           AND table_name <> 'ducklake_inlined_data_tables'"
    );
    let tables: Vec<String> = session.rows(PURPOSE, &sql, [], |row| row.get(0))?;
    let mut rows = 0;
    for table in tables {
        let sql = format!("SELECT count(*) FROM {PLAIN}.{}", identifier(&table));
        rows += session.row(PURPOSE, &sql, |row| row.get::<_, u64>(0))?;
    }
    session.detach(PLAIN)?;
    Ok(rows)
}

/// The format that the catalog records, such as `1.0`.
pub fn spec_version(session: &Session) -> Result<String, DuckError> {
    let sql = format!("SELECT value FROM {CATALOG}.ducklake_metadata WHERE key = 'version'");
    session.row("read the format of the lake", &sql, |row| row.get(0))
}

/// How many rows a table has.
pub fn count(session: &Session, table: &LakeTable) -> Result<u64, DuckError> {
    session.row("count rows", &format!("SELECT count(*) FROM {}", table.sql()), |row| row.get(0))
}

/// The fingerprint of a whole table (*edition* §9).
pub fn fingerprint(session: &Session, table: &LakeTable) -> Result<TableFingerprint, DuckError> {
    let sql = format!("SELECT coalesce(sum({ROW_TERM}), 0)::VARCHAR, count(*) FROM {} AS t", table.sql());
    session.row("compute a table fingerprint", &sql, read_fingerprint(0))
}

/// The part of a table's fingerprint that each data file holds, by the file's path under `data/`: of `files`, or of all.
/// A file without rows has no part.
pub fn fingerprint_parts(
    session: &Session,
    data: &Path,
    table: &LakeTable,
    files: Option<&[&str]>,
) -> Result<BTreeMap<String, TableFingerprint>, DuckError> {
    let filter = match files {
        Some([]) => return Ok(BTreeMap::new()),
        Some(files) => {
            let list: Vec<String> = files.iter().map(|file| literal(&data.join(file).to_string_lossy())).collect();
            // DuckLake reads only the files that the filter names.
            format!("WHERE filename IN ({})", list.join(", "))
        }
        None => String::new(),
    };
    let sql = format!(
        "SELECT filename, coalesce(sum({ROW_TERM}), 0)::VARCHAR, count(*) FROM {} AS t {filter} GROUP BY filename",
        table.sql()
    );
    let parts = session.rows("compute a table fingerprint", &sql, [], |row| {
        Ok((row.get::<_, String>(0)?, read_fingerprint(1)(row)?))
    })?;
    Ok(parts.into_iter().map(|(file, part)| (under(data, &file), part)).collect())
}

fn read_fingerprint(at: usize) -> impl FnOnce(&duckdb::Row<'_>) -> duckdb::Result<TableFingerprint> {
    move |row| {
        let sum: String = row.get(at)?;
        let sum = sum.parse().map_err(|error| {
            duckdb::Error::FromSqlConversionFailure(at, duckdb::types::Type::HugeInt, Box::new(error))
        })?;
        Ok(TableFingerprint { sum, rows: row.get(at + 1)? })
    }
}

/// The path under `data` of the file that DuckLake names as `file`; rows elsewhere keep DuckLake's name for the place.
fn under(data: &Path, file: &str) -> String {
    let inside = Path::new(file).strip_prefix(data).ok().and_then(Path::to_str);
    inside.unwrap_or(file).to_owned()
}
