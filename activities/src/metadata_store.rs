//! The artefact store: `metadata.duckdb`, the artefacts and bindings of one edition in the tables of schema `sdmx`
//! (*edition* §1, §4).
//!
//! [`MetadataStore`] works over a connection of the caller's to which the file is attached. What is written is read back
//! whole, so that fingerprints are computed from what is stored: the canonical text of a stored artefact is that of the
//! artefact that was written, byte for byte. [`compact`] rewrites a store into the form in which it is sealed.
//!
//! # Where the tables differ from sdmxlib's schema 2.48
//!
//! The columns of 2.52 are not known in full, so that [`SCHEMA_VERSION`] names a schema of our own, of which 2.48 is the
//! base. There are only the tables of the classes that a product built here holds. Further:
//!
//! - `dataflow_binding` has no `partition_layout` and no `sort_order`: the lake's catalog records both.
//! - `availability (dataflow_urn, observations)` and `availability_value (dataflow_urn, dimension_position,
//!   dimension_id, position, value)` hold the availability of each binding: the dimensions in order, and the values of
//!   each in order.
//! - `agency`, `dsd_group` and `group_dimension` have a `position`, `data_structure` has `has_groups` (a structure with
//!   no groups and one with an empty list have different texts), and `concept` and `dsd_component` have
//!   `enum_sentinel_values`. Without them the order or the content would depend on how the rows happen to lie.
//! - `version_sort` of a draft ends in its extension, which sorts before the `~` of a release.
//! - `repr_kind` is `enumerated`, `text` or null. Enums are stored by value, such as `observation`.
//!
//! # Keys and indexes
//!
//! A store under construction has every primary key, so that a row written twice is refused. A sealed one has all but
//! that of `artefact_ref` (*edition* §7). Nothing else of 2.48's exists in either form:
//!
//! - Its unique keys say again what the primary keys say, since a URN holds the scheme and the id. Of a list of 500,000
//!   codes, that of `code` took 2.7 of the 4.5 s to write it and 41 of the 50 s to delete it.
//! - Its other indexes, `idx_ref_role` and `idx_ref_target` among them, serve lookups that nothing here makes: rows are
//!   read and deleted for whole artefacts, and a reader must not rely on an index. A DuckDB index of any
//!   rows takes at least a block of 256 KiB, which for most products is more than the rows do. In a compacted store the rows lie in the order of their
//!   owners, so that a scan for one owner skips nearly all row groups.

mod bindings;
mod compact;
mod cursor;
mod error;
mod lineage;
mod read;
mod references;
mod rows;
mod schema;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use catalog_rules::ids::{EditionId, Sha256Hex};
use catalog_rules::sdmx::fingerprint::artefact_fingerprint;
use catalog_rules::sdmx::model::{Artefact, UrnText};
use duckdb::Connection;

pub use self::bindings::{Availability, DimensionValues};
pub use self::compact::compact;
pub use self::error::MetadataError;
pub use self::references::Unresolved;
pub use self::schema::Form;

use self::rows::{Target, literal};
use self::schema::{Owner, TABLES, Table, ddl};
use self::write::Writer;

/// The schema of the store, as the manifest and `_meta` record it. A reader opens no other.
pub const SCHEMA_VERSION: &str = "2.52-jobctl.1";

/// The schema that holds the tables.
pub const SCHEMA: &str = "sdmx";

/// What a manifest records as `sdmxlib_version`: no sdmxlib, and which version of this program instead.
#[must_use]
pub fn sdmxlib_version() -> String {
    format!("0+jobctl.{}", env!("CARGO_PKG_VERSION"))
}

/// The artefact store in a database that is attached to a connection.
///
/// Each writing call is one transaction: one that fails leaves the store as it was. The connection must not be in a
/// transaction of the caller's.
#[derive(Clone, Copy)]
pub struct MetadataStore<'c> {
    target: Target<'c>,
}

impl<'c> MetadataStore<'c> {
    /// The store in the database attached to `conn` as `catalog`, a name without a double quote: DuckDB cannot name a
    /// sequence in another.
    #[must_use]
    pub fn new(conn: &'c Connection, catalog: &'c str) -> Self {
        Self { target: Target { conn, catalog, schema: SCHEMA } }
    }

    /// Creates the schema and its tables in `form`, with the schema version in `_meta`.
    ///
    /// # Errors
    /// [`MetadataError::DuckDb`], also when the schema exists.
    pub fn create(&self, form: Form) -> Result<(), MetadataError> {
        let starts = vec![1; schema::SEQUENCES.len()];
        self.transaction(|| {
            self.batch("create the tables", &ddl(&self.target.qualified(), form, &starts))?;
            self.set_meta("schema_version", Some(SCHEMA_VERSION))
        })
    }

    /// Records which edition this is and which one it extends. An edition that extends none has no row `previous`.
    ///
    /// # Errors
    /// [`MetadataError::DuckDb`].
    pub fn set_edition(&self, edition_id: &EditionId, previous: Option<&EditionId>) -> Result<(), MetadataError> {
        self.transaction(|| {
            self.set_meta("edition_id", Some(edition_id.as_str()))?;
            self.set_meta("previous", previous.map(EditionId::as_str))
        })
    }

    fn set_meta(&self, key: &str, value: Option<&str>) -> Result<(), MetadataError> {
        let (schema, key) = (self.target.qualified(), literal(key));
        let sql = match value {
            Some(value) => format!("INSERT OR REPLACE INTO {schema}._meta VALUES ({key}, {})", literal(value)),
            None => format!("DELETE FROM {schema}._meta WHERE key = {key}"),
        };
        self.batch("write _meta", &sql)
    }

    /// What `_meta` holds: `schema_version`, `edition_id`, and `previous` where there is one.
    ///
    /// # Errors
    /// [`MetadataError`] when it cannot be read.
    pub fn meta(&self) -> Result<BTreeMap<String, String>, MetadataError> {
        let mut meta = BTreeMap::new();
        cursor::scan(&self.target, &schema::META, |row| {
            meta.insert(row.text()?, row.text()?);
            Ok(())
        })?;
        Ok(meta)
    }

    /// Writes `artefacts`, each in place of the stored one of its URN. One whose canonical text is that of the stored
    /// one is left as it is: replacing a large list costs several times what writing it does. Safe to repeat.
    ///
    /// # Errors
    /// [`MetadataError::Duplicate`], [`MetadataError::ParentLoop`] or [`MetadataError::OutOfRange`] for an artefact that
    /// cannot be stored whole, an error of [`Self::read_artefacts`] when the stored ones cannot be read,
    /// [`MetadataError::DuckDb`] otherwise. Nothing is written then.
    pub fn write_artefacts(&self, artefacts: &[Artefact]) -> Result<(), MetadataError> {
        let mut urns = BTreeSet::new();
        for artefact in artefacts {
            let urn = artefact.urn();
            if let Some(urn) = urns.replace(urn) {
                return Err(MetadataError::Duplicate { urn });
            }
        }
        let stored = self.urns()?;
        let unchanged = if urns.is_disjoint(&stored) { BTreeSet::new() } else { self.unchanged(artefacts)? };
        self.transaction(|| {
            self.delete(urns.difference(&unchanged))?;
            let mut writer = Writer::new(self.target);
            let changed = artefacts.iter().filter(|artefact| !unchanged.contains(&artefact.urn()));
            changed.into_iter().try_for_each(|artefact| writer.artefact(artefact))?;
            writer.finish()
        })
    }

    /// The URNs of those of `artefacts` that are stored already. It is their texts that are compared: as values, 0.0
    /// and -0.0 are equal.
    fn unchanged(&self, artefacts: &[Artefact]) -> Result<BTreeSet<UrnText>, MetadataError> {
        let by_urn = |artefact: &Artefact| Some((artefact.urn(), artefact_fingerprint(artefact).ok()?));
        let stored: BTreeMap<UrnText, Sha256Hex> = self.read_artefacts()?.iter().filter_map(by_urn).collect();
        let given = artefacts.iter().filter_map(by_urn);
        Ok(given.filter(|(urn, text)| stored.get(urn) == Some(text)).map(|(urn, _)| urn).collect())
    }

    /// Deletes every artefact that is not in `keep`, and the binding and availability of every dataflow that is not.
    /// Safe to repeat.
    ///
    /// # Errors
    /// [`MetadataError::DuckDb`].
    pub fn retain(&self, keep: &BTreeSet<UrnText>) -> Result<(), MetadataError> {
        self.transaction(|| {
            self.delete(self.urns()?.difference(keep))?;
            self.retain_bindings(keep)
        })
    }

    /// Every stored artefact, by URN, whole.
    ///
    /// # Errors
    /// [`MetadataError::Class`] for one of a class that is not read here, [`MetadataError::Orphan`] or
    /// [`MetadataError::Value`] for rows that were not written here, [`MetadataError::DuckDb`] otherwise.
    pub fn read_artefacts(&self) -> Result<Vec<Artefact>, MetadataError> {
        read::artefacts(&self.target)
    }

    /// The URNs of the stored artefacts. Bindings are none.
    fn urns(&self) -> Result<BTreeSet<UrnText>, MetadataError> {
        let sql = format!(
            "SELECT urn FROM {}.artefact WHERE artefact_type <> {}",
            self.target.qualified(),
            literal(bindings::CLASS)
        );
        let failed = || MetadataError::duckdb("read the URNs of artefact");
        let mut statement = self.target.conn.prepare(&sql).map_err(failed())?;
        let urns = statement.query_map([], |row| row.get(0)).map_err(failed())?;
        urns.collect::<Result<_, _>>().map_err(failed())
    }

    /// Deletes the rows that belong to the artefacts or bindings `urns`.
    fn delete<'a>(&self, urns: impl Iterator<Item = &'a UrnText>) -> Result<(), MetadataError> {
        let list = urns.map(|urn| literal(urn)).collect::<Vec<_>>().join(", ");
        if list.is_empty() {
            return Ok(());
        }
        let schema = self.target.qualified();
        let held: i64 = self
            .target
            .conn
            .query_row(&format!("SELECT count(*) FROM {schema}.artefact WHERE urn IN ({list})"), [], |row| row.get(0))
            .map_err(MetadataError::duckdb("look for artefacts to replace"))?;
        if held == 0 {
            return Ok(());
        }
        for table in TABLES {
            let owned = match table.owner {
                Owner::Nobody => continue,
                Owner::Column(column) => format!("\"{column}\" IN ({list})"),
                Owner::Through { column, table, key, owner } => {
                    format!(
                        "\"{column}\" IN (SELECT \"{key}\" FROM {schema}.\"{table}\" WHERE \"{owner}\" IN ({list}))"
                    )
                }
            };
            let sql = format!("DELETE FROM {schema}.\"{}\" WHERE {owned}", table.name);
            self.batch(&format!("delete from {}", table.name), &sql)?;
        }
        Ok(())
    }

    fn batch(&self, doing: &str, sql: &str) -> Result<(), MetadataError> {
        self.target.conn.execute_batch(sql).map_err(MetadataError::duckdb(doing))
    }

    /// Runs `work` in a transaction.
    fn transaction<T>(&self, work: impl FnOnce() -> Result<T, MetadataError>) -> Result<T, MetadataError> {
        self.batch("begin", "BEGIN TRANSACTION")?;
        let done = work().and_then(|value| self.batch("commit", "COMMIT").map(|()| value));
        if done.is_err() {
            // What failed is told; a failed commit has rolled back already.
            let _ = self.target.conn.execute_batch("ROLLBACK");
        }
        done
    }
}

#[cfg(test)]
mod tests;
