//! A sealed edition, opened to be read (*edition* §4).

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use catalog_rules::ids::{EditionId, ProductId};
use catalog_rules::manifest::Manifest;

use super::error::{EditionError, io_error};
use super::layout::EditionFolder;
use crate::duck::{Access, DuckSettings, STORE, Session};

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
    /// [`EditionError::NotSealed`] without a manifest, [`EditionError::Manifest`] for one that is not read here; a
    /// write-ahead log beside a database is refused.
    pub fn open(settings: &DuckSettings, edition: &Path) -> Result<Self, EditionError> {
        let folder = EditionFolder::at(edition).map_err(io_error("find", edition))?;
        let (_, manifest) = read_manifest_at(&folder)?;
        let session = Session::open(settings, &session_name("read"))?;
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
