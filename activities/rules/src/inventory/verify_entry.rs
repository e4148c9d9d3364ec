//! A recorded entry against the manifest that it names (*catalog* §6.3, §6.5 items 2 and 3, §10.3).

use super::leaf::LeafEntry;
use super::operation::{ContentFingerprint, NewEntry};
use super::{CANONICAL_FORMS, EntryState};
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::manifest::Manifest;

/// What is wrong with an entry and its manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryFinding {
    /// The manifest is not there.
    #[error("catalog §10.3: {state} edition {edition} of {product} has no manifest")]
    Missing {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// Its state.
        state: EntryState,
    },
    /// The manifest is another one.
    #[error(
        "catalog §6.5 item 2: the manifest of edition {edition} of {product} has SHA-256 {found}; expected {expected}"
    )]
    Differs {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The SHA-256 of its bytes.
        found: Sha256Hex,
        /// The SHA-256 that the entry names.
        expected: Sha256Hex,
    },
    /// The manifest cannot be read here, though it is the one that was recorded.
    #[error("catalog §6.5 item 3: the manifest of edition {edition} of {product} cannot be read: {reason}")]
    Unreadable {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// Why.
        reason: String,
    },
    /// A filled field is not the manifest's.
    #[error("catalog §6.3: the entry of edition {edition} of {product} has another {field} than its manifest gives")]
    Field {
        /// The product.
        product: ProductId,
        /// The edition.
        edition: EditionId,
        /// The field.
        field: &'static str,
    },
}

impl EntryFinding {
    /// What a person can do about it.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::Missing { product, edition, .. } | Self::Differs { product, edition, .. } => {
                format!("restore products/{product}/{edition} from a backup (catalog §10.3)")
            }
            Self::Unreadable { .. } => "use the jobctl that sealed the edition, or a newer one".to_owned(),
            Self::Field { product, .. } => {
                format!(
                    "the leaf was written wrongly: publish the product again: jobctl run publish --product {product}"
                )
            }
        }
    }
}

/// Everything that is wrong with `entry` of `product`, given the bytes of its manifest as they are stored. The fields
/// that the entry lacks are not asked for (*catalog* §6.3: a writer of an older format did not have them).
#[must_use]
pub fn check_entry(product: &ProductId, entry: &LeafEntry, manifest: Option<&[u8]>) -> Vec<EntryFinding> {
    read_entry(product, entry, manifest).0
}

/// What [`check_entry`] finds, and the manifest itself, when the bytes are those that were recorded and can be read.
#[must_use]
pub fn read_entry(
    product: &ProductId,
    entry: &LeafEntry,
    manifest: Option<&[u8]>,
) -> (Vec<EntryFinding>, Option<Manifest>) {
    let (id, edition) = (|| product.clone(), || entry.edition_id.clone());
    let Some(bytes) = manifest else {
        return (vec![EntryFinding::Missing { product: id(), edition: edition(), state: entry.state }], None);
    };
    let found = Sha256Hex::of(bytes);
    if found != entry.manifest_sha256 {
        let expected = entry.manifest_sha256.clone();
        return (vec![EntryFinding::Differs { product: id(), edition: edition(), found, expected }], None);
    }
    match Manifest::decode(bytes) {
        Ok(manifest) => (check_fields(product, entry, &manifest, found), Some(manifest)),
        Err(error) => {
            let reason = error.to_string();
            (vec![EntryFinding::Unreadable { product: id(), edition: edition(), reason }], None)
        }
    }
}

/// The entry against the manifest that it names, whose bytes have the SHA-256 `sha256`.
fn check_fields(product: &ProductId, entry: &LeafEntry, manifest: &Manifest, sha256: Sha256Hex) -> Vec<EntryFinding> {
    let (id, edition) = (|| product.clone(), || entry.edition_id.clone());
    let unreadable = |reason: String| vec![EntryFinding::Unreadable { product: id(), edition: edition(), reason }];
    let form = ContentFingerprint::from(manifest).canonical_form;
    if !CANONICAL_FORMS.contains(&form.as_str()) {
        return unreadable(format!("canonical form {form:?}"));
    }
    let given = match NewEntry::from_manifest(manifest, sha256) {
        Ok(given) => given.into_entry(entry.state, entry.state_changed_at, entry.release_at),
        Err(refusal) => return unreadable(refusal.to_string()),
    };
    let fields = [
        ("product_id", manifest.product_id == *product),
        ("edition_id", given.edition_id == entry.edition_id),
        ("previous", given.previous == entry.previous),
        ("schema_version", given.schema_version == entry.schema_version),
        ("artefacts", entry.artefacts.is_none() || given.artefacts == entry.artefacts),
        ("dataflows", entry.dataflows.is_none() || given.dataflows == entry.dataflows),
        ("pull_bytes", entry.pull_bytes.is_none() || given.pull_bytes == entry.pull_bytes),
    ];
    let differs = fields.into_iter().filter(|(_, same)| !same);
    differs.map(|(field, _)| EntryFinding::Field { product: id(), edition: edition(), field }).collect()
}
