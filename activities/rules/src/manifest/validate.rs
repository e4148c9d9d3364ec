//! What a manifest must hold beside its fields.

use std::fmt;

use super::{
    CANONICAL_FORM, DATA_PATH, Digests, EditionFile, LAKE_NAME, MANIFEST_NAME, Manifest, Root, SIGNATURE_NAME,
    STORE_NAME, Tier,
};

/// One thing that contradicts the format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestProblem {
    /// The field, with the entry's key where there is one: `files[data:a/b.parquet].digests.md5`.
    pub field: String,
    /// What is wrong with it.
    pub fault: ManifestFault,
}

/// What is wrong with a field of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManifestFault {
    /// The list is not in the specification's order, or holds a key twice.
    NotSorted {
        /// The key that does not come after the one before it.
        at: String,
    },
    /// The path leaves its directory or is not in the form of a manifest path.
    UnsafePath,
    /// The file may not be listed.
    NeverListed,
    /// A digest is not in its form.
    NotADigest {
        /// The value.
        found: String,
        /// How many hexadecimal digits it should have.
        digits: usize,
    },
    /// The value is not the one that the format allows.
    NotAllowed {
        /// The value.
        found: String,
        /// What the format allows.
        expected: String,
    },
    /// Something that the format requires is absent.
    Missing {
        /// What.
        expected: String,
    },
}

impl fmt::Display for ManifestProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "edition §2: {}: ", self.field)?;
        match &self.fault {
            ManifestFault::NotSorted { at } => write!(f, "{at:?} is out of order or there twice"),
            ManifestFault::UnsafePath => {
                f.write_str("the path must be relative, separated by '/', without '.', '..' or empty parts")
            }
            ManifestFault::NeverListed => f.write_str("the manifest and its signature are never listed"),
            ManifestFault::NotADigest { found, digits } => {
                write!(f, "{found:?} is not {digits} lowercase hexadecimal digits")
            }
            ManifestFault::NotAllowed { found, expected } => write!(f, "found {found:?}, expected {expected}"),
            ManifestFault::Missing { expected } => write!(f, "{expected} is missing"),
        }
    }
}

/// The problems, one a line.
pub(super) fn list(problems: &[ManifestProblem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

struct Problems(Vec<ManifestProblem>);

impl Problems {
    fn add(&mut self, field: impl Into<String>, fault: ManifestFault) {
        self.0.push(ManifestProblem { field: field.into(), fault });
    }

    fn not_allowed(&mut self, field: impl Into<String>, found: impl fmt::Display, expected: impl Into<String>) {
        self.add(field, ManifestFault::NotAllowed { found: found.to_string(), expected: expected.into() });
    }

    fn sorted<K: Ord + fmt::Display>(&mut self, field: &str, keys: impl Iterator<Item = K>) {
        let keys: Vec<K> = keys.collect();
        for pair in keys.windows(2) {
            if pair[0] >= pair[1] {
                self.add(field, ManifestFault::NotSorted { at: pair[1].to_string() });
            }
        }
    }

    fn hex(&mut self, field: String, found: &str, digits: usize) {
        if found.len() != digits || !found.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            self.add(field, ManifestFault::NotADigest { found: found.to_owned(), digits });
        }
    }
}

/// A file's place as one sortable, printable key.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place<'a>(Root, &'a str);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = match self.0 {
            Root::Data => "data",
            Root::Edition => "edition",
        };
        write!(f, "{root}:{}", self.1)
    }
}

/// Whether `path` names a file below its directory, on every system and whatever the directory is.
fn is_safe(path: &str) -> bool {
    !path.is_empty()
        && !path.contains(['\\', '\0', ':'])
        && path.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

pub(super) fn validate(manifest: &Manifest) -> Vec<ManifestProblem> {
    let mut problems = Problems(Vec::new());
    if manifest.previous.as_ref() == Some(&manifest.edition_id) {
        problems.not_allowed("previous", &manifest.edition_id, "another edition than this one");
    }
    if manifest.data_path != DATA_PATH {
        problems.not_allowed("data_path", &manifest.data_path, DATA_PATH);
    }
    if manifest.canonical_form.is_empty() {
        problems.not_allowed("canonical_form", "", format!("a form such as {CANONICAL_FORM:?}"));
    }
    files(manifest, &mut problems);
    problems.sorted("bindings", manifest.bindings.iter().map(|binding| &binding.dataflow));
    for binding in &manifest.bindings {
        if binding.fingerprint.rows != binding.observations {
            problems.not_allowed(
                format!("bindings[{}].fingerprint", binding.dataflow),
                binding.fingerprint,
                format!("a fingerprint over its {} observations", binding.observations),
            );
        }
    }
    problems.sorted("artefacts", manifest.artefacts.iter().map(|entry| &entry.urn));
    for entry in &manifest.artefacts {
        if let (false, Some(full)) = (entry.partial, &entry.partial_of) {
            problems.not_allowed(format!("artefacts[{}].partial_of", entry.urn), full, "none on a full artefact");
        }
    }
    problems.0
}

fn files(manifest: &Manifest, problems: &mut Problems) {
    problems.sorted("files", manifest.files.iter().map(|file| Place(file.root, &file.path)));
    for file in &manifest.files {
        one_file(file, problems);
    }
    let has = |name: &str| manifest.files_of(Root::Edition).any(|file| file.path == name);
    if !has(STORE_NAME) {
        problems.add("files", ManifestFault::Missing { expected: STORE_NAME.to_owned() });
    }
    let lake = has(LAKE_NAME);
    for (field, version) in
        [("ducklake_version", &manifest.ducklake_version), ("ducklake_spec_version", &manifest.ducklake_spec_version)]
    {
        match (lake, version) {
            (true, None) => {
                problems.add(field, ManifestFault::Missing { expected: format!("the version of {LAKE_NAME}") });
            }
            (false, Some(found)) => problems.not_allowed(field, found, format!("null without {LAKE_NAME}")),
            (true, Some(_)) | (false, None) => {}
        }
    }
    if !lake && (!manifest.bindings.is_empty() || manifest.files_of(Root::Data).next().is_some()) {
        problems.add("files", ManifestFault::Missing { expected: LAKE_NAME.to_owned() });
    }
}

fn one_file(file: &EditionFile, problems: &mut Problems) {
    let field = |rest: &str| format!("files[{}]{rest}", Place(file.root, &file.path));
    if !is_safe(&file.path) {
        problems.add(field(".path"), ManifestFault::UnsafePath);
    }
    match file.root {
        Root::Edition => {
            if matches!(file.path.as_str(), MANIFEST_NAME | SIGNATURE_NAME) {
                problems.add(field(""), ManifestFault::NeverListed);
            }
            if let Some(from) = &file.carried_from {
                problems.not_allowed(field(".carried_from"), from, "none on a file of the edition directory");
            }
        }
        Root::Data => {
            if file.tier != Tier::Remote {
                problems.not_allowed(field(".tier"), format!("{:?}", file.tier).to_lowercase(), "remote");
            }
        }
    }
    let Digests { sha256: _, md5, crc32c, others: _ } = &file.digests;
    problems.hex(field(".digests.md5"), md5, 32);
    problems.hex(field(".digests.crc32c"), crc32c, 8);
}
