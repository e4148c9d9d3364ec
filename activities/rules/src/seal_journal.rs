//! The seal journal: a seal that was started, until the Inventory records it (*edition* §1, *catalog* §6.7).

use serde::{Deserialize, Serialize};

use crate::ids::{EditionId, ProductId};
use crate::instant::Instant;

/// `journal/<edition_id>.json`: written before the manifest, removed by the writer that records the edition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// The product.
    pub product_id: ProductId,
    /// The edition that is being sealed.
    pub edition_id: EditionId,
    /// The edition that it extends.
    #[serde(deserialize_with = "crate::manifest::nullable")]
    pub previous: Option<EditionId>,
    /// When the seal started.
    pub sealed_at: Instant,
}

/// Why a journal entry cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The bytes are no entry.
    #[error("edition §1: a seal journal entry holds product_id, edition_id, previous and sealed_at; this one does not")]
    Malformed {
        /// Where and why.
        #[source]
        detail: serde_json::Error,
    },
    /// The file is named by another edition than the one it speaks of.
    #[error("edition §1: the seal journal file of edition {file} speaks of edition {found}")]
    Misnamed {
        /// The edition by the file's name.
        file: EditionId,
        /// The edition by its content.
        found: EditionId,
    },
}

impl JournalEntry {
    /// The entry in `bytes`, read from the journal file of `edition_id`. Fields that this version does not know are
    /// ignored.
    ///
    /// # Errors
    /// [`JournalError`] when the bytes are no entry, or the entry of another edition.
    pub fn decode(edition_id: &EditionId, bytes: &[u8]) -> Result<Self, JournalError> {
        let entry: Self = serde_json::from_slice(bytes).map_err(|detail| JournalError::Malformed { detail })?;
        if entry.edition_id == *edition_id {
            Ok(entry)
        } else {
            Err(JournalError::Misnamed { file: edition_id.clone(), found: entry.edition_id })
        }
    }

    /// The entry as it is written: a JSON object indented by two spaces.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        crate::manifest::pretty(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "01a18e76-2bad-7480-abfe-2ba8a6889a45";

    #[test]
    fn an_entry_survives_the_way_through_its_bytes() {
        let entry = JournalEntry {
            product_id: "14100287".parse().unwrap(),
            edition_id: ID.parse().unwrap(),
            previous: None,
            sealed_at: "2026-10-30T12:30:00.000000Z".parse().unwrap(),
        };
        assert_eq!(JournalEntry::decode(&entry.edition_id, &entry.encode()).unwrap(), entry);
        let text = String::from_utf8(entry.encode()).unwrap();
        assert!(text.contains("\"previous\": null"), "{text}");
    }

    #[test]
    fn an_entry_of_another_edition_or_of_no_edition_is_refused() {
        let id: EditionId = ID.parse().unwrap();
        let other = "01a18e76-2bad-7480-abfe-2ba8a6889a46";
        let text = format!(
            r#"{{"product_id": "p", "edition_id": "{other}", "previous": null, "sealed_at": "2026-10-30T12:30:00Z"}}"#
        );
        assert!(matches!(JournalEntry::decode(&id, text.as_bytes()), Err(JournalError::Misnamed { .. })));
        let whole = text.replace(other, ID);
        assert!(JournalEntry::decode(&id, whole.as_bytes()).is_ok());
        for field in ["product_id", "edition_id", "previous", "sealed_at"] {
            let without = whole.replace(field, "x");
            assert!(JournalEntry::decode(&id, without.as_bytes()).is_err(), "read without {field}");
        }
        assert!(JournalEntry::decode(&id, b"").is_err());
    }
}
