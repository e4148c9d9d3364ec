//! What this program keeps in a manifest for itself: `extensions.jobctl`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::TableFingerprint;
use crate::ids::Sha256Hex;

/// The key of the section in `extensions`.
pub const EXTENSION_NAME: &str = "jobctl";
/// The section's own format.
pub const EXTENSION_FORMAT: &str = "1.0";

/// The section of this program. It holds what makes the next seal cheap, never what a reader needs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JobctlExtension {
    /// [`EXTENSION_FORMAT`].
    pub format_version: String,
    /// By bound dataflow: the parts that its table fingerprint is the sum of (D5).
    #[serde(default)]
    pub fingerprints: BTreeMap<String, TableParts>,
}

/// The parts of one table's fingerprint, and what must be unchanged for a part to hold in the next edition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableParts {
    /// The table, as `schema.table`.
    pub table: String,
    /// The digest of the ordered columns: name, type, nested fields, initial default. Adding, renaming or retyping a
    /// column changes the text of rows whose file stays as it is.
    pub columns: Sha256Hex,
    /// The DuckDB release that rendered the rows.
    pub duckdb_version: String,
    /// The canonical form of the row text.
    pub canonical_form: String,
    /// By data file, as its path under `data_path`.
    pub files: BTreeMap<String, FilePart>,
}

/// The part of a table's fingerprint that one data file holds.
pub type FilePart = TableFingerprint;

impl JobctlExtension {
    /// The section as it stands in the manifest.
    #[must_use]
    pub fn write(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(section)) => section,
            // Text keys and numbers only: there is no other outcome, and an empty section is a valid one.
            Ok(_) | Err(_) => Map::new(),
        }
    }

    /// The section in `section`, `None` when it is of another major format or not readable: then nothing is carried.
    #[must_use]
    pub fn read(section: &Map<String, Value>) -> Option<Self> {
        let read: Self = serde_json::from_value(Value::Object(section.clone())).ok()?;
        read.format_version.starts_with("1.").then_some(read)
    }
}
