//! Where the parts of a product are (*edition* §1).

use std::io;
use std::path::{Path, PathBuf};

use catalog_rules::ids::EditionId;
use catalog_rules::manifest::{LAKE_NAME, MANIFEST_NAME, Root, SIGNATURE_NAME, STORE_NAME};

/// A product's folder, as an absolute path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProductFolder(PathBuf);

impl ProductFolder {
    /// The product at `path`, which need not exist.
    ///
    /// # Errors
    /// When `path` is empty or the current folder cannot be read.
    pub fn new(path: &Path) -> io::Result<Self> {
        std::path::absolute(path).map(Self)
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The data files that the product's editions share.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// The seal journal.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.0.join("journal")
    }

    /// The seal journal's entry of an edition.
    #[must_use]
    pub fn journal_entry(&self, id: &EditionId) -> PathBuf {
        self.journal().join(format!("{id}.json"))
    }

    /// An edition's folder.
    #[must_use]
    pub fn edition(&self, id: &EditionId) -> EditionFolder {
        EditionFolder { path: self.0.join(id.as_str()), data: self.data() }
    }
}

/// An edition's folder, and the data files beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditionFolder {
    path: PathBuf,
    data: PathBuf,
}

impl EditionFolder {
    /// The edition at `path`, with its data files in `data/` beside it.
    ///
    /// # Errors
    /// When `path` is empty or the current folder cannot be read.
    pub fn at(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let data = path.parent().unwrap_or(&path).join("data");
        Ok(Self { path, data })
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The data files, as the manifest's `data_path` resolves.
    #[must_use]
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The manifest.
    #[must_use]
    pub fn manifest(&self) -> PathBuf {
        self.path.join(MANIFEST_NAME)
    }

    /// The manifest's detached signature.
    #[must_use]
    pub fn signature(&self) -> PathBuf {
        self.path.join(SIGNATURE_NAME)
    }

    /// The artefact store.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.path.join(STORE_NAME)
    }

    /// The DuckLake catalog.
    #[must_use]
    pub fn lake(&self) -> PathBuf {
        self.path.join(LAKE_NAME)
    }

    /// Where the file of the manifest is that has `path` under `root`.
    #[must_use]
    pub fn file(&self, root: Root, path: &str) -> PathBuf {
        match root {
            Root::Edition => self.path.join(path),
            Root::Data => self.data.join(path),
        }
    }
}
