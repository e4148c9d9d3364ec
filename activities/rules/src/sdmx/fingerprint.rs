//! Fingerprints: what an edition holds, whatever its ids, file bytes and file layout (*edition* §9).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

use super::canonical::{CanonicalError, Sink, write_canonical};
use super::model::{Artefact, UrnText};
use crate::ids::Sha256Hex;

/// Hashes canonical text in blocks, so that its many small pieces do not each reach the hash.
struct HashSink {
    hash: Sha256,
    block: String,
}

const BLOCK_BYTES: usize = 16 * 1024;

impl Sink for HashSink {
    fn put(&mut self, piece: &str) {
        self.block.push_str(piece);
        if self.block.len() >= BLOCK_BYTES {
            self.hash.update(&self.block);
            self.block.clear();
        }
    }
}

/// The artefact fingerprint: the SHA-256 of the artefact's canonical text.
///
/// # Errors
/// [`CanonicalError`] for a value that the text cannot spell.
pub fn artefact_fingerprint(artefact: &Artefact) -> Result<Sha256Hex, CanonicalError> {
    let mut sink = HashSink { hash: Sha256::new(), block: String::with_capacity(BLOCK_BYTES + 1024) };
    write_canonical(artefact, &mut sink)?;
    sink.hash.update(&sink.block);
    Ok(Sha256Hex::from_digest(&sink.hash.finalize().into()))
}

/// The structure fingerprint of a dataflow: over the artefact fingerprints of its closure, by URN.
/// [`super::closure::Graph::closure`] says what the closure is.
#[must_use]
pub fn structure_fingerprint(closure: &BTreeMap<UrnText, Sha256Hex>) -> Sha256Hex {
    let lines: Vec<&str> = closure.values().map(Sha256Hex::as_str).collect();
    Sha256Hex::of(lines.join("\n").as_bytes())
}

/// The product fingerprint (`content_fingerprint` in the manifest): over every artefact fingerprint by URN, and every
/// binding's table fingerprint by dataflow URN.
#[must_use]
pub fn content_fingerprint(
    artefacts: &BTreeMap<UrnText, Sha256Hex>,
    bindings: &BTreeMap<UrnText, TableFingerprint>,
) -> Sha256Hex {
    let mut lines = vec!["artefacts:".to_owned()];
    lines.extend(artefacts.values().map(|fingerprint| fingerprint.as_str().to_owned()));
    lines.push("bindings:".to_owned());
    lines.extend(bindings.iter().map(|(dataflow, fingerprint)| format!("{dataflow}\t{fingerprint}")));
    Sha256Hex::of(lines.join("\n").as_bytes())
}

/// The fingerprint of a table, `<sum>:<count>`: the sum over its rows of each row's hash below 2^62, and how many rows
/// there are. The parts of a table add up to it, in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableFingerprint {
    /// The sum of the rows' hashes.
    pub sum: u128,
    /// The number of rows.
    pub rows: u64,
}

impl TableFingerprint {
    /// The fingerprint of no rows, `0:0`.
    pub const EMPTY: Self = Self { sum: 0, rows: 0 };

    /// The fingerprint of both tables' rows together. `None` beyond 2^64 rows.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        Some(Self { sum: self.sum.checked_add(other.sum)?, rows: self.rows.checked_add(other.rows)? })
    }

    /// The fingerprint of the rows of all `parts` together, such as one part for each data file. `None` beyond 2^64
    /// rows.
    pub fn total(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        parts.into_iter().try_fold(Self::EMPTY, Self::plus)
    }
}

impl fmt::Display for TableFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.sum, self.rows)
    }
}

/// A text that is not a table fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a table fingerprint (edition §9): expected <sum>:<count>, such as 49295231726113820520:24")]
pub struct BadTableFingerprint {
    /// The text as it was found.
    pub found: String,
}

impl FromStr for TableFingerprint {
    type Err = BadTableFingerprint;

    fn from_str(text: &str) -> Result<Self, BadTableFingerprint> {
        let parsed = text.split_once(':').and_then(|(sum, rows)| {
            Some(Self { sum: sum.parse().ok()?, rows: rows.parse().ok()? }).filter(|read| read.to_string() == text)
        });
        parsed.ok_or_else(|| BadTableFingerprint { found: text.to_owned() })
    }
}

#[cfg(test)]
mod tests;
