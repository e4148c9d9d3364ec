//! The files check: sizes, digests, and nothing unlisted (*edition* §6).

use std::collections::BTreeSet;
use std::fs;

use catalog_rules::manifest::{EditionFile, LAKE_NAME, Manifest, Root, STORE_NAME};

use super::finding::{CheckName, FindingDetail, Findings, Profile};
use crate::digest::digest_file;
use crate::edition::Tools;
use crate::edition::error::{EditionError, io_error};
use crate::edition::files::edition_paths;
use crate::edition::layout::EditionFolder;

/// Whether a file is compared by its size alone or by its digests too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Size,
    Digests,
}

/// The files of the edition's folder.
pub fn edition_files(folder: &EditionFolder, manifest: &Manifest, at: Profile, findings: &mut Findings) {
    let depth = match at {
        Profile::Publish | Profile::Receive => Depth::Digests,
        Profile::Open => Depth::Size,
    };
    for file in manifest.files_of(Root::Edition) {
        one(folder, file, depth, findings);
    }
    let listed: BTreeSet<&str> = manifest.files_of(Root::Edition).map(|file| file.path.as_str()).collect();
    match edition_paths(folder.path()) {
        Ok(paths) => {
            for path in paths.into_iter().filter(|path| !listed.contains(path.as_str())) {
                let is_log = [STORE_NAME, LAKE_NAME].iter().any(|name| path == format!("{name}.wal"));
                findings.add(path, if is_log { FindingDetail::WriteAheadLog } else { FindingDetail::Unlisted });
            }
        }
        Err(error) => findings.add(".", FindingDetail::Unreadable(super::cause(&error))),
    }
}

/// The data files that the manifest lists. Others in `data/` belong to other editions.
pub fn data_files(
    tools: &Tools<'_>,
    folder: &EditionFolder,
    manifest: &Manifest,
    at: Profile,
    findings: &mut Findings,
) -> Result<(), EditionError> {
    let depth = match at {
        Profile::Publish => Depth::Digests,
        Profile::Receive => Depth::Size,
        Profile::Open => return Ok(()),
    };
    for file in manifest.files_of(Root::Data) {
        if tools.context.cancel.is_cancelled() {
            return Err(EditionError::Cancelled);
        }
        one(folder, file, depth, findings);
    }
    Ok(())
}

/// The first difference between the files and a manifest, in words; everything is hashed.
pub fn first_file_difference(folder: &EditionFolder, manifest: &Manifest) -> Result<Option<String>, EditionError> {
    let mut findings = Findings::new(Profile::Publish);
    findings.begin(CheckName::Files);
    edition_files(folder, manifest, Profile::Publish, &mut findings);
    for file in manifest.files_of(Root::Data) {
        one(folder, file, Depth::Digests, &mut findings);
    }
    // A disk that fails is no difference.
    fs::read_dir(folder.path()).map_err(io_error("list", folder.path()))?;
    Ok(findings.report().findings.first().map(ToString::to_string))
}

fn one(folder: &EditionFolder, file: &EditionFile, depth: Depth, findings: &mut Findings) {
    let path = folder.file(file.root, &file.path);
    let subject = || match file.root {
        Root::Edition => file.path.clone(),
        Root::Data => format!("data/{}", file.path),
    };
    let found = match fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() => found,
        Ok(_) => {
            findings.differs(subject(), "it is", "no plain file", "a plain file");
            return;
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            findings.add(subject(), FindingDetail::Missing);
            return;
        }
        Err(error) => {
            findings.add(subject(), FindingDetail::Unreadable(error.to_string()));
            return;
        }
    };
    if found.len() != file.size_bytes {
        findings.differs(subject(), "the size is", found.len().to_string(), format!("{} bytes", file.size_bytes));
        return;
    }
    if depth == Depth::Size {
        return;
    }
    match digest_file(&path) {
        Ok(found) => {
            let (found, listed) = (&found.digests, &file.digests);
            for (what, found, listed) in [
                ("the SHA-256 is", found.sha256.as_str(), listed.sha256.as_str()),
                ("the MD5 is", &found.md5, &listed.md5),
                ("the CRC-32C is", &found.crc32c, &listed.crc32c),
            ] {
                if found != listed {
                    findings.differs(subject(), what, found, listed);
                }
            }
        }
        Err(error) => findings.add(subject(), FindingDetail::Unreadable(error.to_string())),
    }
}
