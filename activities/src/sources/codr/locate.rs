//! Which files a source is, and what is in them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use catalog_rules::ids::{ProductId, Sha256Hex, hex};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use zip::ZipArchive;
use zip::result::ZipError;

use super::error::CodrError;

/// What a person gives: the files of one product.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceSpec {
    /// The product that the files are expected to hold, such as 14100287.
    pub product_id: ProductId,
    /// One path, or two of which one is French: each a full-table zip, a CSV, or a folder with `<product>.csv`. The
    /// language is read from the header.
    pub files: Vec<PathBuf>,
    /// Metadata CSVs, at most one a language. They come before those in an archive or beside a CSV.
    #[serde(default)]
    pub metadata: Vec<PathBuf>,
    /// How many observations the table has by its description, where that is known.
    #[serde(default)]
    pub expected_rows: Option<u64>,
}

/// One file as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// The path, as the specification leads to it.
    pub path: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// The SHA-256 of its bytes.
    pub sha256: Sha256Hex,
    /// The members that are read, where it is an archive.
    #[serde(default)]
    pub members: Vec<String>,
}

/// Which bytes a source is. It is recorded in a run's first step and compared before the rows are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceIdentity {
    /// The files in the order of the specification, data before metadata.
    pub files: Vec<FileIdentity>,
    /// The SHA-256 over the files' digests in order: equal for equal bytes, wherever they are.
    pub digest: Sha256Hex,
}

impl SourceIdentity {
    fn of(files: Vec<FileIdentity>) -> Self {
        let lines: String = files.iter().map(|file| format!("{}\n", file.sha256)).collect();
        Self { digest: Sha256Hex::of(lines.as_bytes()), files }
    }

    /// Compares what is found now with `self`, the recorded identity.
    ///
    /// # Errors
    /// [`CodrError::SourceChanged`] for the first file that differs, is gone or is new.
    pub fn compare(&self, found: &Self) -> Result<(), CodrError> {
        let count = self.files.len().max(found.files.len());
        for at in 0..count {
            let (one, two) = (self.files.get(at), found.files.get(at));
            if one.map(|file| &file.sha256) == two.map(|file| &file.sha256) {
                continue;
            }
            let told = |file: Option<&FileIdentity>| {
                file.map_or_else(
                    || "nothing".to_owned(),
                    |file| format!("sha256 {} ({} bytes)", file.sha256, file.size_bytes),
                )
            };
            return Err(CodrError::SourceChanged {
                file: two.or(one).map_or_else(String::new, |file| file.path.clone()),
                recorded: told(one),
                found: told(two),
            });
        }
        Ok(())
    }
}

/// A file that stays open from its digest to its last row, so that a rename over it changes nothing.
pub(super) struct OpenFile {
    pub(super) path: String,
    file: File,
    identity: FileIdentity,
    seen: (u64, Option<SystemTime>),
}

impl OpenFile {
    fn open(path: &Path) -> Result<Self, CodrError> {
        let name = path.display().to_string();
        let fault = |doing| {
            let file = name.clone();
            move |source: io::Error| CodrError::Io { file, doing, source }
        };
        let mut file = match File::open(path) {
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                return Err(CodrError::NotFound { file: name, expected: "a full-table zip, a CSV or a folder" });
            }
            other => other.map_err(fault("opening it"))?,
        };
        let about = file.metadata().map_err(fault("looking at it"))?;
        let seen = (about.len(), about.modified().ok());
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 1 << 20];
        let mut size_bytes = 0;
        loop {
            let read = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(source) if source.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(fault("taking its digest")(source)),
            };
            hasher.update(&buffer[..read]);
            size_bytes += read as u64;
        }
        let digest = hex(&hasher.finalize()).parse();
        let sha256 = digest.map_err(|fault| CodrError::Io {
            file: name.clone(),
            doing: "taking its digest",
            source: io::Error::other(fault),
        })?;
        let identity = FileIdentity { path: name.clone(), size_bytes, sha256, members: Vec::new() };
        Ok(Self { path: name, file, identity, seen })
    }

    /// A second handle at the start of the same bytes.
    fn rewound(&self) -> Result<File, CodrError> {
        let fault = |source| CodrError::Io { file: self.path.clone(), doing: "going back to its start", source };
        let mut file = self.file.try_clone().map_err(fault)?;
        file.seek(SeekFrom::Start(0)).map_err(fault)?;
        Ok(file)
    }

    /// Refuses when the file was written to since its digest was taken.
    pub(super) fn unchanged(&self) -> Result<(), CodrError> {
        let about = self.file.metadata().map_err(|source| CodrError::Io {
            file: self.path.clone(),
            doing: "looking at it",
            source,
        })?;
        if (about.len(), about.modified().ok()) == self.seen {
            return Ok(());
        }
        Err(CodrError::SourceChanged {
            file: self.path.clone(),
            recorded: format!("sha256 {} ({} bytes)", self.identity.sha256, self.identity.size_bytes),
            found: format!("{} bytes, written to while it was read", about.len()),
        })
    }

    fn starts_with(&self, magic: &[u8]) -> Result<bool, CodrError> {
        let mut found = vec![0; magic.len()];
        match self.rewound()?.read_exact(&mut found) {
            Ok(()) => Ok(found == magic),
            Err(fault) if fault.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(source) => Err(CodrError::Io { file: self.path.clone(), doing: "reading its start", source }),
        }
    }
}

/// The rows of a table: a file, or a member of an archive.
pub(super) struct DataFile {
    pub(super) open: OpenFile,
    /// The name for messages.
    pub(super) name: Arc<str>,
    /// The member's place in the archive.
    member: Option<usize>,
}

impl DataFile {
    /// Whether it is a member of an archive.
    pub(super) fn archived(&self) -> bool {
        self.member.is_some()
    }

    /// Hands the rows' bytes to `read`, from the start.
    pub(super) fn with_reader<T, E: From<CodrError>>(
        &self,
        read: impl FnOnce(&mut dyn Read) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut file = self.open.rewound()?;
        match self.member {
            None => read(&mut file),
            Some(at) => {
                let mut archive =
                    ZipArchive::new(io::BufReader::new(file)).map_err(|e| bad_archive(&self.open.path, e))?;
                let mut member = archive.by_index(at).map_err(|e| bad_archive(&self.open.path, e))?;
                read(&mut member)
            }
        }
    }
}

/// The bytes of a metadata CSV.
pub(super) struct MetadataFile {
    pub(super) name: Arc<str>,
    pub(super) bytes: Vec<u8>,
}

/// A specification's files, opened.
pub(super) struct Located {
    pub(super) data: Vec<DataFile>,
    /// In the order of preference: those given, then those in archives and beside CSVs.
    pub(super) metadata: Vec<MetadataFile>,
    pub(super) identity: SourceIdentity,
}

/// No metadata CSV comes near this size: the largest censuses have some ten thousand members of a few hundred bytes.
const METADATA_LIMIT: u64 = 256 << 20;

/// Opens the files of `spec` and takes their digests, in one pass over each.
///
/// # Errors
/// What is missing, cannot be read, is no whole archive or holds other members.
pub(super) fn locate(spec: &SourceSpec) -> Result<Located, CodrError> {
    if !(1..=2).contains(&spec.files.len()) {
        let product_id = spec.product_id.to_string();
        return Err(CodrError::FileCount { product_id, found: spec.files.len() });
    }
    let mut data = Vec::new();
    let mut given = Vec::new();
    let mut beside = Vec::new();
    let mut identities = Vec::new();
    let mut sidecars: Vec<(PathBuf, FileIdentity)> = Vec::new();
    for path in &spec.metadata {
        let (file, identity) = read_metadata(path)?;
        given.push(file);
        sidecars.push((path.clone(), identity));
    }
    for path in &spec.files {
        let path = data_path(path, &spec.product_id)?;
        let mut open = OpenFile::open(&path)?;
        let zip = open.starts_with(b"PK\x03\x04")? || open.starts_with(b"PK\x05\x06")?;
        let named_zip = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zip"));
        let (name, member) = if zip || named_zip {
            let (name, at, metadata) = read_archive(&mut open, &spec.product_id)?;
            beside.push(metadata);
            (name, Some(at))
        } else {
            if let Some(path) = sidecar(&path, &spec.product_id)?
                && !sidecars.iter().any(|(known, _)| *known == path)
            {
                let (file, identity) = read_metadata(&path)?;
                beside.push(file);
                sidecars.push((path, identity));
            }
            (Arc::from(open.path.as_str()), None)
        };
        identities.push(open.identity.clone());
        data.push(DataFile { open, name, member });
    }
    identities.extend(sidecars.into_iter().map(|(_, identity)| identity));
    given.append(&mut beside);
    Ok(Located { data, metadata: given, identity: SourceIdentity::of(identities) })
}

/// The file that holds the rows: `path`, or `<product>.csv` in the folder `path`.
fn data_path(path: &Path, product_id: &ProductId) -> Result<PathBuf, CodrError> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let expected = format!("{product_id}.csv");
    find_file(path, &expected)?.ok_or_else(|| CodrError::NoDataFile { folder: path.display().to_string(), expected })
}

/// The metadata CSV beside the CSV `path`: named after it, or after the product.
fn sidecar(path: &Path, product_id: &ProductId) -> Result<Option<PathBuf>, CodrError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Some(stem) = path.file_stem().and_then(|stem| stem.to_str())
        && let Some(found) = find_file(folder, &format!("{stem}_MetaData.csv"))?
    {
        return Ok(Some(found));
    }
    find_file(folder, &format!("{product_id}_MetaData.csv"))
}

/// The file called `name` in `folder`, whatever its case.
fn find_file(folder: &Path, name: &str) -> Result<Option<PathBuf>, CodrError> {
    let fault = |source| CodrError::Io { file: folder.display().to_string(), doing: "listing it", source };
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        if entry.file_name().to_str().is_some_and(|known| known.eq_ignore_ascii_case(name)) {
            found.push(entry.path());
        }
    }
    // The order of a folder's entries is not fixed.
    found.sort();
    Ok(found.into_iter().next())
}

fn read_metadata(path: &Path) -> Result<(MetadataFile, FileIdentity), CodrError> {
    let open = OpenFile::open(path)?;
    let bytes = whole(&open.path, &mut open.rewound()?, false)?;
    open.unchanged()?;
    Ok((MetadataFile { name: open.path.as_str().into(), bytes }, open.identity))
}

fn whole(name: &str, input: &mut dyn Read, archived: bool) -> Result<Vec<u8>, CodrError> {
    let mut bytes = Vec::new();
    match input.take(METADATA_LIMIT + 1).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 > METADATA_LIMIT => {
            Err(CodrError::MetadataTooLarge { file: name.to_owned(), limit: METADATA_LIMIT })
        }
        Ok(_) => Ok(bytes),
        Err(source) if archived && is_damage(&source) => Err(CodrError::BadArchive { file: name.to_owned(), source }),
        Err(source) => Err(CodrError::Io { file: name.to_owned(), doing: "reading it", source }),
    }
}

/// Whether a fault lies in the bytes of an archive, and not in the disk that they are read from.
pub(super) fn is_damage(fault: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    matches!(fault.kind(), InvalidData | InvalidInput | Other | UnexpectedEof)
}

fn bad_archive(path: &str, fault: ZipError) -> CodrError {
    let file = path.to_owned();
    match fault {
        ZipError::Io(source) if !is_damage(&source) => CodrError::Io { file, doing: "reading the archive", source },
        other => CodrError::BadArchive { file, source: io::Error::other(other) },
    }
}

/// Finds the two members of a full-table archive: the name and place of the rows, and the metadata.
fn read_archive(open: &mut OpenFile, product_id: &ProductId) -> Result<(Arc<str>, usize, MetadataFile), CodrError> {
    let file = open.rewound()?;
    let mut archive = ZipArchive::new(io::BufReader::new(file)).map_err(|e| bad_archive(&open.path, e))?;
    let mut names = Vec::new();
    for at in 0..archive.len() {
        let member = archive.by_index_raw(at).map_err(|e| bad_archive(&open.path, e))?;
        names.push(String::from_utf8_lossy(member.name_raw()).into_owned());
    }
    let (rows, metadata) = (format!("{product_id}.csv"), format!("{product_id}_MetaData.csv"));
    let place = |expected: &str| names.iter().position(|name| name.eq_ignore_ascii_case(expected));
    let (Some(rows_at), Some(metadata_at), 2) = (place(&rows), place(&metadata), names.len()) else {
        // A full table of another product.
        let other = names.iter().find_map(|name| {
            let (table, rest) = name.split_at_checked(8)?;
            let digits = table.bytes().all(|b| b.is_ascii_digit());
            (digits && rest.eq_ignore_ascii_case("_MetaData.csv") && table != product_id.as_str()).then_some(table)
        });
        if let Some(table) = other {
            return Err(CodrError::NamedForOther {
                file: open.path.clone(),
                found: table.to_owned(),
                expected: product_id.to_string(),
            });
        }
        let expected = format!("{rows:?} and {metadata:?}");
        return Err(CodrError::ArchiveMembers { file: open.path.clone(), found: names, expected });
    };
    let name: Arc<str> = format!("{}!{}", open.path, names[metadata_at]).into();
    let mut member = archive.by_index(metadata_at).map_err(|e| bad_archive(&open.path, e))?;
    let bytes = whole(&name, &mut member, true)?;
    let rows_name = format!("{}!{}", open.path, names[rows_at]).into();
    open.identity.members = names;
    Ok((rows_name, rows_at, MetadataFile { name, bytes }))
}
