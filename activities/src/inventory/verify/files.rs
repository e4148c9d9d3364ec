//! The files that manifests list, on the disk.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::Path;

use catalog_rules::ids::{ProductId, Sha256Hex};
use catalog_rules::layout;
use catalog_rules::manifest::{EditionFile, Manifest, Root};

use super::finding::{Finding, whole_edition};
use crate::digest::digest_file;

/// What is at a path.
#[derive(Debug, Clone)]
enum There {
    File { size_bytes: u64 },
    NoFile,
    Missing,
    Unreadable(String),
}

/// Which files are looked at, and how.
pub(super) struct FilesAsked<'a> {
    /// The catalog's folder.
    pub(super) folder: &'a Path,
    /// Whether they are hashed.
    pub(super) full: bool,
    /// The subjects to which the look is limited.
    pub(super) only: Option<BTreeSet<String>>,
}

/// Looks at each file of a product once, though every edition after the one that made it lists it too.
pub(super) struct Files<'a> {
    asked: &'a FilesAsked<'a>,
    there: HashMap<String, There>,
    hashed: HashMap<String, Result<Sha256Hex, String>>,
    told: HashSet<(String, u64, Sha256Hex)>,
    pub(super) looked_at: u64,
    pub(super) hashed_bytes: u64,
}

impl<'a> Files<'a> {
    pub(super) fn new(asked: &'a FilesAsked<'a>) -> Self {
        Self {
            asked,
            there: HashMap::new(),
            hashed: HashMap::new(),
            told: HashSet::new(),
            looked_at: 0,
            hashed_bytes: 0,
        }
    }

    /// What is wrong with the files that `manifest` lists.
    pub(super) fn of(&mut self, product: &ProductId, manifest: &Manifest) -> Vec<Finding> {
        let mut findings = Vec::new();
        let fix = whole_edition(product, &manifest.edition_id);
        for file in &manifest.files {
            let folder = match file.root {
                Root::Data => layout::data(product),
                Root::Edition => layout::edition(product, &manifest.edition_id),
            };
            let subject = format!("{folder}/{}", file.path);
            let is_asked = self.asked.only.as_ref().is_none_or(|only| only.contains(&subject));
            // The same of the same file, listed once more.
            let is_new = || (subject.clone(), file.size_bytes, file.digests.sha256.clone());
            if is_asked && self.told.insert(is_new()) {
                findings.extend(self.one(subject, file, &fix));
            }
        }
        findings
    }

    fn one(&mut self, subject: String, file: &EditionFile, fix: &str) -> Option<Finding> {
        let finding = |code, found: String, expected: String| {
            Some(Finding { code, subject: subject.clone(), found, expected, fix: fix.to_owned() })
        };
        let there = match self.there.get(&subject) {
            Some(there) => there.clone(),
            None => {
                self.looked_at += 1;
                let there = look(&self.asked.folder.join(&subject));
                self.there.insert(subject.clone(), there.clone());
                there
            }
        };
        let size = |bytes: u64| format!("{bytes} bytes");
        match there {
            There::Missing => return finding("file.missing", "no file".to_owned(), size(file.size_bytes)),
            There::NoFile => return finding("file.missing", "no plain file".to_owned(), size(file.size_bytes)),
            There::Unreadable(why) => return finding("file.unreadable", why, size(file.size_bytes)),
            There::File { size_bytes } if size_bytes != file.size_bytes => {
                return finding("file.size", size(size_bytes), size(file.size_bytes));
            }
            There::File { .. } if !self.asked.full => return None,
            There::File { .. } => {}
        }
        let expected = &file.digests.sha256;
        match self.sha256(&subject) {
            Ok(found) if found == *expected => None,
            Ok(found) => finding("file.digest", format!("SHA-256 {found}"), format!("SHA-256 {expected}")),
            Err(why) => finding("file.unreadable", why, format!("SHA-256 {expected}")),
        }
    }

    fn sha256(&mut self, subject: &str) -> Result<Sha256Hex, String> {
        if let Some(known) = self.hashed.get(subject) {
            return known.clone();
        }
        let found = digest_file(&self.asked.folder.join(subject)).map_err(|error| error.to_string()).map(|found| {
            self.hashed_bytes += found.size_bytes;
            found.digests.sha256
        });
        self.hashed.insert(subject.to_owned(), found.clone());
        found
    }
}

/// What is wrong with the files of one edition under the catalog's `folder`, a sentence each; every one is hashed.
pub(in crate::inventory) fn check_files(folder: &Path, product: &ProductId, manifest: &Manifest) -> Vec<String> {
    let findings = Files::new(&FilesAsked { folder, full: true, only: None }).of(product, manifest);
    let sentence = |it: Finding| format!("{}: found {}, expected {}", it.subject, it.found, it.expected);
    findings.into_iter().map(sentence).collect()
}

fn look(path: &Path) -> There {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => There::File { size_bytes: found.len() },
        Ok(_) => There::NoFile,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => There::Missing,
        Err(error) => There::Unreadable(error.to_string()),
    }
}
