//! Verifying the files that a manifest lists, for an operation that brings an edition back (*catalog* §6.4, reinstate).

use std::path::PathBuf;
use std::sync::Arc;

use catalog_rules::ids::{ProductId, Sha256Hex};
use catalog_rules::layout;
use catalog_rules::manifest::{Manifest, Root};

use super::super::verify::check_files;
use crate::store::{Store, StoreError};

/// Something that verifies every file of an edition.
pub trait ListedFiles: Send + Sync {
    /// What is wrong with the files that `manifest` lists, a sentence each: size and SHA-256 of every one are computed
    /// now. Empty when all are as they were sealed.
    ///
    /// # Errors
    /// [`StoreError`] when the store cannot tell.
    fn check(&self, product: &ProductId, manifest: &Manifest) -> Result<Vec<String>, StoreError>;
}

/// Files in a folder of this machine, read in pieces.
#[derive(Debug, Clone)]
pub struct FolderFiles(pub PathBuf);

impl ListedFiles for FolderFiles {
    fn check(&self, product: &ProductId, manifest: &Manifest) -> Result<Vec<String>, StoreError> {
        Ok(check_files(&self.0, product, manifest))
    }
}

/// Files read through a store, one whole at a time: for stores of small files.
pub struct StoreFiles(pub Arc<dyn Store>);

impl ListedFiles for StoreFiles {
    fn check(&self, product: &ProductId, manifest: &Manifest) -> Result<Vec<String>, StoreError> {
        let mut findings = Vec::new();
        for file in &manifest.files {
            let folder = match file.root {
                Root::Data => layout::data(product),
                Root::Edition => layout::edition(product, &manifest.edition_id),
            };
            let path = format!("{folder}/{}", file.path);
            match self.0.get(&path)? {
                None => findings.push(format!("{path} is missing")),
                Some(bytes) if bytes.len() as u64 != file.size_bytes => {
                    findings.push(format!("{path} has {} bytes; expected {}", bytes.len(), file.size_bytes));
                }
                Some(bytes) => {
                    let (found, expected) = (Sha256Hex::of(&bytes), &file.digests.sha256);
                    if found != *expected {
                        findings.push(format!("{path} has SHA-256 {found}; expected {expected}"));
                    }
                }
            }
        }
        Ok(findings)
    }
}
