//! The fingerprints that a manifest is made of (*edition* §9), as far as they need no store.

use std::fmt;
use std::ops::AddAssign;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{ArtefactEntry, BindingCount};
use crate::ids::Sha256Hex;

/// The fingerprint of a table or of a part of one: the sum over its rows of the lower half of each row's MD5 modulo
/// 2^62, and the number of rows. Written `<sum>:<count>`. It is a sum, so those of a table's files add up to its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TableFingerprint {
    /// The sum of the rows' terms, each below 2^62.
    pub sum: u128,
    /// The number of rows.
    pub rows: u64,
}

/// A text that is no table fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a table fingerprint: expected <sum>:<count> in decimal digits, such as 0:0 (edition §9)")]
pub struct BadTableFingerprint {
    /// The text as it was found.
    pub found: String,
}

impl fmt::Display for TableFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.sum, self.rows)
    }
}

impl FromStr for TableFingerprint {
    type Err = BadTableFingerprint;
    fn from_str(text: &str) -> Result<Self, BadTableFingerprint> {
        let parsed = text.split_once(':').and_then(|(sum, rows)| {
            let found = Self { sum: sum.parse().ok()?, rows: rows.parse().ok()? };
            // One text for one value: no sign, no leading zero.
            (found.to_string() == text).then_some(found)
        });
        parsed.ok_or_else(|| BadTableFingerprint { found: text.to_owned() })
    }
}

impl TryFrom<String> for TableFingerprint {
    type Error = BadTableFingerprint;
    fn try_from(text: String) -> Result<Self, BadTableFingerprint> {
        text.parse()
    }
}

impl From<TableFingerprint> for String {
    fn from(fingerprint: TableFingerprint) -> String {
        fingerprint.to_string()
    }
}

impl AddAssign for TableFingerprint {
    fn add_assign(&mut self, other: Self) {
        // 2^64 rows of terms below 2^62 stay below 2^126.
        self.sum = self.sum.saturating_add(other.sum);
        self.rows = self.rows.saturating_add(other.rows);
    }
}

/// The structure fingerprint of a dataflow: the SHA-256 of the artefact fingerprints of its closure, which `closure`
/// holds with their URNs in any order (*edition* §9).
#[must_use]
pub fn structure_fingerprint<'a>(closure: impl IntoIterator<Item = (&'a str, &'a Sha256Hex)>) -> Sha256Hex {
    let mut closure: Vec<_> = closure.into_iter().collect();
    closure.sort_unstable_by_key(|(urn, _)| *urn);
    let lines: Vec<&str> = closure.iter().map(|(_, fingerprint)| fingerprint.as_str()).collect();
    Sha256Hex::of(lines.join("\n").as_bytes())
}

/// The product fingerprint over every artefact and every binding, in any order (*edition* §9).
#[must_use]
pub fn content_fingerprint(artefacts: &[ArtefactEntry], bindings: &[BindingCount]) -> Sha256Hex {
    let mut artefacts: Vec<_> = artefacts.iter().map(|entry| (&entry.urn, &entry.fingerprint)).collect();
    artefacts.sort_unstable();
    let mut tables: Vec<_> = bindings.iter().map(|binding| (&binding.dataflow, binding.fingerprint)).collect();
    tables.sort_unstable_by_key(|(dataflow, _)| *dataflow);
    let lines: Vec<String> = std::iter::once("artefacts:".to_owned())
        .chain(artefacts.iter().map(|(_, fingerprint)| fingerprint.to_string()))
        .chain(std::iter::once("bindings:".to_owned()))
        .chain(tables.iter().map(|(dataflow, fingerprint)| format!("{dataflow}\t{fingerprint}")))
        .collect();
    Sha256Hex::of(lines.join("\n").as_bytes())
}
