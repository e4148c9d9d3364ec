//! Reads overlays, and records which bytes they are.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use catalog_rules::contracts::fold::{OverlayFile, ResolveOverlaysInput, ResolveOverlaysOutput};
use catalog_rules::ids::Sha256Hex;
use catalog_rules::overlay::{self, Audience, Overlay, OverlayError};
use engine_rules::activity::ActivityContext;
use engine_rules::failure::{ActivityError, Disposition};

use super::PublishDeps;
use crate::fs::Trouble;

/// How large an overlay is read at most: a text for each of 500,000 codes in two languages is beneath it, and a wrong
/// file does not fill the memory.
pub const MAX_OVERLAY_BYTES: u64 = 256 * 1024 * 1024;

/// How many findings are recorded one by one.
const TOLD: usize = 50;

/// Why an overlay cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OverlaysError {
    /// The file cannot be read.
    #[error("the overlay {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is larger than any overlay.
    #[error("the overlay {} has more than {MAX_OVERLAY_BYTES} bytes; expected a JSON document of at most that", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is no valid overlay.
    #[error("{}: {source}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Everything that is refused.
        source: OverlayError,
    },
    /// It is not the one that the run began with.
    #[error("the overlay {} has SHA-256 {found}; expected {expected}, as when the run began", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// What is there.
        found: Sha256Hex,
        /// What the run recorded.
        expected: Sha256Hex,
    },
}

impl ActivityError for OverlaysError {
    fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "overlay.unreadable",
            Self::TooLarge { .. } => "overlay.too_large",
            Self::Invalid { .. } => "overlay.invalid",
            Self::Changed { .. } => "overlay.changed",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Unreadable { source, .. } => match source.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory => {
                    Disposition::Terminal
                }
                _ => Trouble::of(source).disposition(),
            },
            Self::TooLarge { .. } | Self::Invalid { .. } | Self::Changed { .. } => Disposition::Terminal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { source, .. } => match Trouble::of(source).hint() {
                Some(hint) => Some(hint.to_owned()),
                None => Some("name the file as it lies on this machine".to_owned()),
            },
            Self::TooLarge { .. } => None,
            Self::Invalid { path, .. } => Some(format!("jobctl overlay check {} tells the same as a table", path.display())),
            Self::Changed { .. } => Some(
                "jobctl runs replay RUN --from resolve_overlays --reason … folds it as it is now; or put back the file that \
                 the run began with"
                    .to_owned(),
            ),
        }
    }
}

/// The valid overlays with their digests as applied. Changes nothing; repeats are safe.
///
/// # Errors
/// [`OverlaysError`] naming the file and what is wrong with it.
pub fn resolve_overlays(
    _deps: &PublishDeps,
    _ctx: &ActivityContext,
    input: ResolveOverlaysInput,
) -> Result<ResolveOverlaysOutput, OverlaysError> {
    let audience = input.audience.map(Audience::new);
    let mut output = ResolveOverlaysOutput { overlays: Vec::with_capacity(input.overlays.len()), findings: Vec::new() };
    for path in input.overlays {
        let bytes = read_overlay(Path::new(&path))?;
        let overlay = decode(Path::new(&path), &bytes)?;
        for finding in overlay::check(&bytes).findings.iter().take(TOLD - output.findings.len()) {
            output.findings.push(format!("{path}: {finding}"));
        }
        output.overlays.push(OverlayFile {
            size_bytes: bytes.len() as u64,
            sha256: Sha256Hex::of(&bytes),
            digest: overlay.digest(audience.as_ref()),
            id: overlay.id,
            path,
        });
    }
    Ok(output)
}

/// The bytes of an overlay's file.
///
/// # Errors
/// [`OverlaysError::Unreadable`] or [`OverlaysError::TooLarge`].
pub fn read_overlay(path: &Path) -> Result<Vec<u8>, OverlaysError> {
    let unreadable = |source| OverlaysError::Unreadable { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_OVERLAY_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_OVERLAY_BYTES {
        return Err(OverlaysError::TooLarge { path: path.to_owned() });
    }
    Ok(bytes)
}

fn decode(path: &Path, bytes: &[u8]) -> Result<Overlay, OverlaysError> {
    Overlay::decode(bytes).map_err(|source| OverlaysError::Invalid { path: path.to_owned(), source })
}

/// The overlays that the run recorded, refused when one is another now.
pub(super) fn recorded(files: &[OverlayFile]) -> Result<Vec<Overlay>, OverlaysError> {
    let mut overlays = Vec::with_capacity(files.len());
    for file in files {
        let path = Path::new(&file.path);
        let bytes = read_overlay(path)?;
        let found = Sha256Hex::of(&bytes);
        if found != file.sha256 {
            return Err(OverlaysError::Changed { path: path.to_owned(), found, expected: file.sha256.clone() });
        }
        overlays.push(decode(path, &bytes)?);
    }
    Ok(overlays)
}
