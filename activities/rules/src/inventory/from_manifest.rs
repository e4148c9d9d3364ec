//! What a leaf entry takes from its edition's manifest (*catalog* §6.3).

use super::leaf::{ArtefactRecord, ArtefactRecords, Kind, Lifecycle, SchemaVersion};
use super::operation::{ContentFingerprint, ManifestFacts, NewEntry, Record, RefusedEdition, Registration};
use super::pending::PendingRegistration;
use super::refusal::Refusal;
use crate::ids::Sha256Hex;
use crate::instant::Instant;
use crate::manifest::{Manifest, Tier};

/// The artefact records of a manifest: every full artefact with its fingerprint, every partial with its fingerprint and
/// `partial_of`.
///
/// # Errors
/// [`Refusal::PartialWithoutBase`] for a partial that does not name what it was cut from: its record would read as a
/// full artefact's, and item 4 of *catalog* §6.5 could not be checked.
pub fn artefact_records(manifest: &Manifest) -> Result<ArtefactRecords, Box<Refusal>> {
    let record = |entry: &crate::manifest::ArtefactEntry| {
        if entry.partial && entry.partial_of.is_none() {
            return Err(Box::new(Refusal::PartialWithoutBase {
                product: manifest.product_id.clone(),
                edition: manifest.edition_id.clone(),
                urn: entry.urn.to_string(),
            }));
        }
        let record = ArtefactRecord {
            fingerprint: entry.fingerprint.to_string(),
            partial_of: entry.partial_of.as_ref().filter(|_| entry.partial).map(ToString::to_string),
        };
        Ok((entry.urn.to_string(), record))
    };
    manifest.artefacts.iter().map(record).collect()
}

impl From<&Manifest> for ContentFingerprint {
    fn from(manifest: &Manifest) -> Self {
        Self {
            canonical_form: manifest.canonical_form.clone(),
            value: manifest.content_fingerprint.as_ref().map(ToString::to_string),
        }
    }
}

impl NewEntry {
    /// The entry of the edition that `manifest` seals; `manifest_sha256` is of the manifest's bytes.
    ///
    /// # Errors
    /// See [`artefact_records`].
    pub fn from_manifest(manifest: &Manifest, manifest_sha256: Sha256Hex) -> Result<Self, Box<Refusal>> {
        let required = manifest.files.iter().filter(|file| file.tier == Tier::Required);
        Ok(Self {
            edition_id: manifest.edition_id.clone(),
            previous: manifest.previous.clone(),
            manifest_sha256,
            schema_version: SchemaVersion::new(manifest.schema_version.clone()),
            structure_source: None,
            artefacts: artefact_records(manifest)?,
            dataflows: manifest.bindings.iter().map(|binding| binding.dataflow.to_string()).collect(),
            pull_bytes: required.fold(0, |sum, file| sum.saturating_add(file.size_bytes)),
        })
    }
}

impl Record {
    /// The record of the edition that `manifest` seals. An edition without bindings is of a structure product
    /// (*catalog* §6.5 item 9).
    ///
    /// # Errors
    /// See [`artefact_records`].
    pub fn from_manifest(
        manifest: &Manifest,
        manifest_sha256: Sha256Hex,
        lifecycle: Option<Lifecycle>,
        release_at: Option<Instant>,
    ) -> Result<Self, Box<Refusal>> {
        Ok(Self {
            product_id: manifest.product_id.clone(),
            kind: if manifest.bindings.is_empty() { Kind::Structure } else { Kind::Data },
            lifecycle,
            entry: NewEntry::from_manifest(manifest, manifest_sha256)?,
            content: ContentFingerprint::from(manifest),
            release_at,
            supersedes: None,
        })
    }
}

impl ManifestFacts {
    /// What the bytes of a `manifest.json` say.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let content = Manifest::decode(bytes).ok().map(|manifest| ContentFingerprint::from(&manifest));
        Self { sha256: Sha256Hex::of(bytes), content }
    }
}

impl Registration {
    /// A registration of the inbox with the bytes of its edition's manifest, `None` when there is none. What the
    /// manifest cannot be made into is refused when the inbox is folded, and fails nobody else.
    #[must_use]
    pub fn new(pending: PendingRegistration, manifest: Option<&[u8]>) -> Self {
        let record = Self::record(&pending, manifest)
            .map_err(|refusal| RefusedEdition::of(&pending.product_id, &pending.edition_id, &refusal));
        Self { pending, record: record.map(Box::new) }
    }

    fn record(pending: &PendingRegistration, manifest: Option<&[u8]>) -> Result<Record, Box<Refusal>> {
        let (product, edition) = (|| pending.product_id.clone(), || pending.edition_id.clone());
        let bytes = manifest.ok_or_else(|| Refusal::ManifestMissing { product: product(), edition: edition() })?;
        let manifest = Manifest::decode(bytes)
            .map_err(|_| Refusal::ManifestUnreadable { product: product(), edition: edition() })?;
        let sha256 = Sha256Hex::of(bytes);
        let mut record = Record::from_manifest(&manifest, sha256, pending.lifecycle, pending.release_at)?;
        record.entry.structure_source.clone_from(&pending.structure_source);
        record.supersedes.clone_from(&pending.supersedes);
        Ok(record)
    }
}
