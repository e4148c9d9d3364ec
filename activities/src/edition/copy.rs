//! A copy of a sealed edition (*edition* §8): how a server receives one and how a mirror is made.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use catalog_rules::manifest::{EditionFile, Manifest, Root, Tier};

use super::Tools;
use super::error::{EditionError, io_error};
use super::layout::EditionFolder;
use super::reader::read_manifest_at;
use crate::digest::digest_file;
use crate::fs::{Create, TEMPORARY_PREFIX, create_exclusive, replace, sweep_temporaries};

/// What a copy did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Copied {
    /// Files that were copied.
    pub copied_files: u64,
    /// Their bytes.
    pub copied_bytes: u64,
    /// Files that were at the destination with the listed digests.
    pub kept_files: u64,
}

/// The paths that a pull of the given tiers needs, under the product's folder: data files as `data/…`, then the
/// edition's own as `<edition_id>/…`. The manifest is not among them: it goes last (*edition* §8).
#[must_use]
pub fn files(manifest: &Manifest, tiers: &[Tier]) -> Vec<String> {
    let wanted = manifest.files.iter().filter(|file| tiers.contains(&file.tier));
    wanted.map(|file| path_in_product(manifest, file)).collect()
}

fn path_in_product(manifest: &Manifest, file: &EditionFile) -> String {
    match file.root {
        Root::Data => format!("data/{}", file.path),
        Root::Edition => format!("{}/{}", manifest.edition_id, file.path),
    }
}

/// Copies the sealed edition in the folder `source` to the folder `destination`, its data files beside it: the files of
/// the given tiers, each checked against its size and every digest, then the signature where there is one, then the
/// manifest, byte for byte. Every file and folder is fsynced before the manifest is there.
///
/// Safe to repeat: a file that is there with the listed digests is kept, so a copy that was interrupted goes on, one of
/// more tiers adds to one of fewer, and the next edition of a product brings only its new data files.
///
/// # Errors
/// [`EditionError::NotSealed`] or [`EditionError::Manifest`] for the source, [`EditionError::CopyDiffers`] when a file
/// is not what the manifest lists, [`EditionError::CopyTaken`] when another manifest is at the destination.
pub fn copy(tools: &Tools<'_>, source: &Path, destination: &Path, tiers: &[Tier]) -> Result<Copied, EditionError> {
    let from = EditionFolder::at(source).map_err(io_error("find", source))?;
    let to = EditionFolder::at(destination).map_err(io_error("find", destination))?;
    let (bytes, manifest) = read_manifest_at(&from)?;
    let taken = |found: Option<Vec<u8>>| match found {
        Some(found) if found != bytes => Err(EditionError::CopyTaken { path: to.manifest() }),
        Some(_) | None => Ok(()),
    };
    taken(tools.fs.read(&to.manifest()).map_err(io_error("read", &to.manifest()))?)?;
    create(tools, to.path())?;
    sweep_temporaries(tools.fs, to.path()).map_err(io_error("sweep", to.path()))?;

    let wanted: Vec<&EditionFile> = manifest.files.iter().filter(|file| tiers.contains(&file.tier)).collect();
    let mut done = Copied::default();
    let mut folders = BTreeSet::from([to.path().to_owned()]);
    for (number, file) in wanted.iter().enumerate() {
        if tools.context.cancel.is_cancelled() {
            return Err(EditionError::Cancelled);
        }
        let target = to.file(file.root, &file.path);
        if difference(&target, file)?.is_none() {
            done.kept_files += 1;
        } else {
            one(tools, &from.file(file.root, &file.path), &target, file)?;
            done.copied_files += 1;
            done.copied_bytes += file.size_bytes;
        }
        // A file kept from an interrupted copy may not be on the disk yet.
        tools.fs.fsync_file(&target).map_err(io_error("fsync", &target))?;
        folders.extend(target.parent().map(Path::to_owned));
        tools.context.progress("files", number as u64 + 1, Some(wanted.len() as u64));
    }
    for folder in &folders {
        tools.fs.fsync_dir(folder).map_err(io_error("fsync", folder))?;
    }
    if let Some(signature) = tools.fs.read(&from.signature()).map_err(io_error("read", &from.signature()))? {
        replace(tools.fs, &to.signature(), &signature).map_err(io_error("copy", &to.signature()))?;
    }
    let path = to.manifest();
    match create_exclusive(tools.fs, &path, &bytes).map_err(io_error("create", &path))? {
        Create::Won => {}
        Create::Exists => {
            taken(tools.fs.read(&path).map_err(io_error("read", &path))?)?;
            tools.fs.fsync_dir(to.path()).map_err(io_error("fsync", to.path()))?;
        }
    }
    Ok(done)
}

fn create(tools: &Tools<'_>, folder: &Path) -> Result<(), EditionError> {
    tools.fs.create_dir_all(folder).map_err(io_error("create", folder))
}

/// Copies one file under a temporary name, and gives it its own once it is what the manifest lists.
fn one(tools: &Tools<'_>, source: &Path, target: &Path, file: &EditionFile) -> Result<(), EditionError> {
    let folder = target.parent().unwrap_or(target);
    create(tools, folder)?;
    let temporary = temporary_of(target);
    fs::copy(source, &temporary).map_err(io_error("copy", source))?;
    if let Some((found, expected)) = difference(&temporary, file)? {
        let _ = tools.fs.remove_file(&temporary);
        return Err(EditionError::CopyDiffers { path: file.path.clone(), found, expected });
    }
    tools.fs.fsync_file(&temporary).map_err(io_error("fsync", &temporary))?;
    tools.fs.rename(&temporary, target).map_err(io_error("rename", &temporary))
}

/// One temporary name for each target, so that a copy that was killed leaves at most one of each, which the next copy
/// writes over.
fn temporary_of(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!("{TEMPORARY_PREFIX}{name}"))
}

/// How the file at `path` differs from the manifest's entry, found and expected; `None` when it does not.
fn difference(path: &Path, file: &EditionFile) -> Result<Option<(String, String)>, EditionError> {
    let size = match fs::metadata(path) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Some(("no file".to_owned(), "one".to_owned())));
        }
        Err(error) => return Err(io_error("look at", path)(error)),
    };
    if size != file.size_bytes {
        return Ok(Some((format!("{size} bytes"), format!("{} bytes", file.size_bytes))));
    }
    let found = digest_file(path).map_err(io_error("read", path))?.digests;
    let listed = &file.digests;
    let digests = [
        ("SHA-256", found.sha256.as_str(), listed.sha256.as_str()),
        ("MD5", &found.md5, &listed.md5),
        ("CRC-32C", &found.crc32c, &listed.crc32c),
    ];
    let differing = digests.into_iter().find(|(_, found, listed)| found != listed);
    Ok(differing.map(|(name, found, listed)| (format!("{name} {found}"), format!("{name} {listed}"))))
}
