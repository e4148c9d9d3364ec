//! A sealed edition, opened to be read (*edition* §4).

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use catalog_rules::ids::{EditionId, ProductId};
use catalog_rules::manifest::Manifest;

use super::error::{EditionError, io_error};
use super::layout::EditionFolder;
use crate::duck::{Access, DuckError, DuckSettings, STORE, Session, storage_version};
use crate::metadata_store::SCHEMA_VERSION;

static SESSIONS: AtomicU64 = AtomicU64::new(0);

/// A session name that no other open session of this machine has.
pub fn session_name(purpose: &str) -> String {
    format!("{purpose}-{}-{}", std::process::id(), SESSIONS.fetch_add(1, Ordering::Relaxed))
}

/// A sealed edition: its manifest, and a session with the artefact store attached as [`STORE`] and the lake, where
/// there is one, as [`LAKE`](crate::duck::LAKE). Both are attached read-only, and no byte of the edition changes.
#[derive(Debug)]
pub struct EditionReader {
    manifest: Manifest,
    session: Session,
}

impl EditionReader {
    /// Opens the edition in the folder `edition`.
    ///
    /// # Errors
    /// [`EditionError::NotSealed`] without a manifest, [`EditionError::Manifest`] for one that is not read here,
    /// [`EditionError::Version`] for an edition of a schema or format that is not, with its files unopened; a write-ahead
    /// log beside a database is refused.
    pub fn open(settings: &DuckSettings, edition: &Path) -> Result<Self, EditionError> {
        let folder = EditionFolder::at(edition).map_err(io_error("find", edition))?;
        let (_, manifest) = read_manifest_at(&folder)?;
        let session = Session::open(settings, &session_name("read"))?;
        refuse_versions(&session, &folder, &manifest)?;
        attach(&session, &folder)?;
        Ok(Self { manifest, session })
    }

    /// The manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The session over the edition's databases.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }
}

/// A version in a manifest that keeps its files from being opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionFault {
    /// The manifest's field.
    pub field: &'static str,
    /// What is compared, as the beginning of a sentence.
    pub what: &'static str,
    pub found: String,
    pub expected: String,
}

/// The versions that forbid opening the files (*edition* §4): the schema must be this one, the storage version and
/// DuckLake's format at most the newest that this engine writes. Only file headers are read.
pub fn version_faults(
    session: &Session,
    folder: &EditionFolder,
    manifest: &Manifest,
) -> Result<Vec<VersionFault>, DuckError> {
    let mut faults = Vec::new();
    if manifest.schema_version != SCHEMA_VERSION {
        faults.push(VersionFault {
            field: "schema_version",
            what: "the store schema is",
            found: manifest.schema_version.clone(),
            expected: SCHEMA_VERSION.to_owned(),
        });
    }
    let limits = session.limits()?;
    let storage = match manifest.duckdb_storage_version {
        // Recorded by an early writer in place of the version: the headers tell.
        999 => newest_storage(folder)?,
        recorded => recorded,
    };
    if storage > limits.storage_version {
        faults.push(VersionFault {
            field: "duckdb_storage_version",
            what: "the storage version is",
            found: storage.to_string(),
            expected: format!("at most {}, the newest that this DuckDB reads", limits.storage_version),
        });
    }
    if let Some(found) = &manifest.ducklake_spec_version
        && is_newer(found, &limits.ducklake_spec_version)
    {
        faults.push(VersionFault {
            field: "ducklake_spec_version",
            what: "the DuckLake format is",
            found: found.clone(),
            expected: format!("at most {}, the newest that this DuckLake reads", limits.ducklake_spec_version),
        });
    }
    Ok(faults)
}

/// Refuses an edition with the first of its [`version_faults`].
pub fn refuse_versions(session: &Session, folder: &EditionFolder, manifest: &Manifest) -> Result<(), EditionError> {
    match version_faults(session, folder, manifest)?.into_iter().next() {
        None => Ok(()),
        Some(VersionFault { field, what: _, found, expected }) => {
            Err(EditionError::Version { path: folder.manifest(), field, found, expected })
        }
    }
}

/// The newest storage version among an edition's databases, by their headers.
pub fn newest_storage(folder: &EditionFolder) -> Result<u64, DuckError> {
    let store = storage_version(&folder.store())?;
    if folder.lake().exists() { Ok(store.max(storage_version(&folder.lake())?)) } else { Ok(store) }
}

/// Whether the dotted version `found` is newer than `newest`; one that cannot be read counts as newer.
fn is_newer(found: &str, newest: &str) -> bool {
    let parts = |text: &str| text.split('.').map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<u64>>>();
    match (parts(found), parts(newest)) {
        (Some(found), Some(newest)) => found > newest,
        (_, _) => true,
    }
}

/// Attaches the databases of an edition read-only. Returns whether there is a lake.
pub fn attach(session: &Session, folder: &EditionFolder) -> Result<bool, EditionError> {
    session.attach(&folder.store(), STORE, Access::Read)?;
    let has_lake = folder.lake().exists();
    if has_lake {
        session.attach_lake(&folder.lake(), folder.data(), Access::Read)?;
    }
    Ok(has_lake)
}

/// The manifest of the edition in `folder`, with its bytes.
pub fn read_manifest_at(folder: &EditionFolder) -> Result<(Vec<u8>, Manifest), EditionError> {
    let path = folder.manifest();
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(EditionError::NotSealed { path: folder.path().to_owned() });
        }
        Err(error) => return Err(io_error("read", &path)(error)),
    };
    let manifest = Manifest::decode(&bytes).map_err(|source| EditionError::Manifest { path, source })?;
    Ok((bytes, manifest))
}

/// The manifest in `folder`, which must be that of the edition `id` of `product`.
pub fn read_manifest(folder: &EditionFolder, product: &ProductId, id: &EditionId) -> Result<Manifest, EditionError> {
    let (_, manifest) = read_manifest_at(folder)?;
    let other = |field, found: &str, expected: &str| EditionError::OtherEdition {
        path: folder.manifest(),
        field,
        found: found.to_owned(),
        expected: expected.to_owned(),
    };
    if manifest.product_id != *product {
        return Err(other("product_id", manifest.product_id.as_str(), product.as_str()));
    }
    if manifest.edition_id != *id {
        return Err(other("edition_id", manifest.edition_id.as_str(), id.as_str()));
    }
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_compared_by_number() {
        for (found, newest) in
            [("1.1", "1.0"), ("1.10", "1.9"), ("2.0", "1.9"), ("1.0.1", "1.0"), ("x", "1.0"), ("", "1.0")]
        {
            assert!(is_newer(found, newest), "{found} against {newest}");
        }
        for (found, newest) in [("1.0", "1.0"), ("0.9", "1.0"), ("1.9", "1.10"), ("1", "1.0")] {
            assert!(!is_newer(found, newest), "{found} against {newest}");
        }
    }
}
