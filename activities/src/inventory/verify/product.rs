//! One product of the newest version: its manifests, what its entries say of them, and the files that they list.

use std::collections::BTreeMap;

use catalog_rules::ids::{EditionId, ProductId};
use catalog_rules::inventory::{ArtefactRecords, LeafEntry, artefact_records, read_entry};
use catalog_rules::layout;

use super::files::{Files, FilesAsked};
use super::finding::Finding;
use crate::store::{Store, StoreError};

/// What was looked at of a product, and what was found.
#[derive(Debug, Default)]
pub(super) struct LookedAt {
    pub(super) editions: u64,
    pub(super) files: u64,
    pub(super) hashed_bytes: u64,
    pub(super) findings: Vec<Finding>,
    /// The artefact records of entries that lack them.
    pub(super) records: BTreeMap<EditionId, ArtefactRecords>,
}

impl LookedAt {
    /// Looks at `entries` of `product`. No other product lists a file of it.
    pub(super) fn product<'e>(
        store: &dyn Store,
        asked: &FilesAsked<'_>,
        product: &ProductId,
        entries: impl Iterator<Item = &'e LeafEntry>,
    ) -> Result<Self, StoreError> {
        let mut looked_at = Self::default();
        let mut files = Files::new(asked);
        for entry in entries {
            looked_at.editions += 1;
            let path = layout::manifest(product, &entry.edition_id);
            let bytes = store.get(&path)?;
            let (findings, manifest) = read_entry(product, entry, bytes.as_deref());
            looked_at.findings.extend(findings.iter().map(|finding| Finding::of_entry(path.clone(), finding)));
            // What another manifest lists says nothing of the recorded edition.
            let Some(manifest) = manifest else { continue };
            looked_at.findings.extend(files.of(product, &manifest));
            if entry.artefacts.is_none()
                && let Ok(records) = artefact_records(&manifest)
            {
                looked_at.records.insert(entry.edition_id.clone(), records);
            }
        }
        looked_at.files = files.looked_at;
        looked_at.hashed_bytes = files.hashed_bytes;
        Ok(looked_at)
    }
}
