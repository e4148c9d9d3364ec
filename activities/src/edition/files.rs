//! The files of an edition: which there are, and what the manifest says of them.

use std::fs;
use std::path::Path;

use catalog_rules::ids::EditionId;
use catalog_rules::manifest::{
    EditionFile, LAKE_NAME, MANIFEST_NAME, Manifest, Root, SIGNATURE_NAME, STORE_NAME, Tier,
};

use super::error::{EditionError, SizeFound, io_error};
use super::layout::EditionFolder;
use crate::digest::digest_file;

/// A placement of the producer's: files whose path begins with `prefix` are of `tier`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierRule {
    /// The beginning of a path in the edition's folder, such as `search/`.
    pub prefix: String,
    /// Where such a file is placed.
    pub tier: Tier,
}

/// The paths of the files in an edition's folder but for the manifest and its signature, sorted.
///
/// # Errors
/// [`EditionError::NotListable`] for what no manifest can list.
pub fn edition_paths(folder: &Path) -> Result<Vec<String>, EditionError> {
    let mut paths = Vec::new();
    walk(folder, "", &mut paths)?;
    paths.retain(|path| path != MANIFEST_NAME && path != SIGNATURE_NAME);
    paths.sort();
    Ok(paths)
}

fn walk(folder: &Path, prefix: &str, paths: &mut Vec<String>) -> Result<(), EditionError> {
    for entry in fs::read_dir(folder).map_err(io_error("list", folder))? {
        let entry = entry.map_err(io_error("list", folder))?;
        let path = entry.path();
        let not_listable = |found| EditionError::NotListable { path: path.clone(), found };
        let name = entry.file_name();
        let name = name.to_str().filter(|name| !name.contains('\\')).ok_or_else(|| not_listable("of another name"))?;
        let inner = format!("{prefix}{name}");
        let kind = entry.file_type().map_err(io_error("look at", &path))?;
        if kind.is_dir() {
            walk(&path, &format!("{inner}/"), paths)?;
        } else if kind.is_file() {
            paths.push(inner);
        } else if kind.is_symlink() {
            return Err(not_listable("a symbolic link"));
        } else {
            return Err(not_listable("no file"));
        }
    }
    Ok(())
}

/// The tier of a file in the edition's folder: the longest rule that matches, else `required` for the two databases and
/// `lazy` for others (*edition* §7).
#[must_use]
pub fn tier_of(path: &str, rules: &[TierRule]) -> Tier {
    let matching = rules.iter().filter(|rule| path.starts_with(&rule.prefix));
    match matching.max_by_key(|rule| rule.prefix.len()) {
        Some(rule) => rule.tier,
        None if matches!(path, STORE_NAME | LAKE_NAME) => Tier::Required,
        None => Tier::Lazy,
    }
}

/// The manifest's entry of a file in the edition's folder, hashed now.
pub fn edition_entry(folder: &EditionFolder, path: &str, rules: &[TierRule]) -> Result<EditionFile, EditionError> {
    hashed(folder, Root::Edition, path, tier_of(path, rules))
}

/// The manifest's entry of a data file of `size_bytes`: as the previous manifest has it at the same size, else hashed
/// now.
pub fn data_entry(
    folder: &EditionFolder,
    path: &str,
    size_bytes: u64,
    previous: Option<(&EditionId, &Manifest)>,
) -> Result<EditionFile, EditionError> {
    let on_disk = folder.data().join(path);
    let found = SizeFound(fs::metadata(&on_disk).ok().map(|file| file.len()));
    if found != SizeFound(Some(size_bytes)) {
        return Err(EditionError::DataSize { path: on_disk, found, expected: size_bytes });
    }
    let listed = previous.and_then(|(id, manifest)| {
        let entry = manifest.files_of(Root::Data).find(|file| file.path == path && file.size_bytes == size_bytes)?;
        Some(EditionFile { carried_from: Some(id.clone()), ..entry.clone() })
    });
    match listed {
        Some(entry) => Ok(entry),
        None => hashed(folder, Root::Data, path, Tier::Remote),
    }
}

fn hashed(folder: &EditionFolder, root: Root, path: &str, tier: Tier) -> Result<EditionFile, EditionError> {
    let on_disk = folder.file(root, path);
    let found = digest_file(&on_disk).map_err(io_error("read", &on_disk))?;
    Ok(EditionFile {
        path: path.to_owned(),
        size_bytes: found.size_bytes,
        digests: found.digests,
        root,
        tier,
        carried_from: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_rule_places_a_file() {
        let rules = [
            TierRule { prefix: "search/".to_owned(), tier: Tier::Lazy },
            TierRule { prefix: "search/index.json".to_owned(), tier: Tier::Required },
        ];
        assert_eq!(tier_of("search/fr/a.lance", &rules), Tier::Lazy);
        assert_eq!(tier_of("search/index.json", &rules), Tier::Required);
        assert_eq!(tier_of(STORE_NAME, &rules), Tier::Required);
        assert_eq!(tier_of(LAKE_NAME, &[]), Tier::Required);
        assert_eq!(tier_of("notes.txt", &[]), Tier::Lazy);
    }

    #[test]
    fn only_plain_files_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("search/fr")).unwrap();
        for name in ["manifest.json", "manifest.json.sig", "metadata.duckdb", "search/fr/a", "search/manifest.json"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        assert_eq!(edition_paths(dir.path()).unwrap(), ["metadata.duckdb", "search/fr/a", "search/manifest.json"]);
        std::os::unix::fs::symlink("metadata.duckdb", dir.path().join("link")).unwrap();
        assert!(matches!(edition_paths(dir.path()), Err(EditionError::NotListable { .. })));
    }
}
