//! Finds the source and records which bytes it is.

use catalog_rules::contracts::publish::{ResolveSourceInput, ResolveSourceOutput, SourceFile};
use engine_rules::activity::ActivityContext;
use engine_rules::failure::{ActivityError, Disposition, Failure};

use super::PublishDeps;
use super::source::{refusal, spec};
use crate::sources::codr::{self, CodrError};

/// Why a source cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ResolveSourceError {
    /// It is not what it says.
    #[error(transparent)]
    Codr(#[from] CodrError),
}

impl ActivityError for ResolveSourceError {
    fn code(&self) -> &'static str {
        match self {
            Self::Codr(error) => error.code(),
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Codr(error) => error.disposition(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Codr(error) => error.hint(),
        }
    }

    fn to_failure(&self) -> Failure {
        match self {
            Self::Codr(error) => refusal(error.to_failure()),
        }
    }
}

/// The files of the source with their digests. Headers and metadata are read as well, so that a wrong file is refused
/// here, before anything is built. Changes nothing; repeats are safe.
///
/// # Errors
/// [`ResolveSourceError::Codr`] naming the file and what is wrong with it.
pub fn resolve_source(
    _deps: &PublishDeps,
    _ctx: &ActivityContext,
    input: ResolveSourceInput,
) -> Result<ResolveSourceOutput, ResolveSourceError> {
    let identity = codr::identify(&spec(&input.product_id, &input.source))?;
    let files = identity.files.into_iter().map(|file| SourceFile {
        path: file.path,
        size_bytes: file.size_bytes,
        sha256: file.sha256,
        members: file.members,
    });
    Ok(ResolveSourceOutput { files: files.collect(), sha256: identity.digest })
}
