//! A run's source, as the module that reads it wants it.

use std::path::PathBuf;

use catalog_rules::contracts::publish::{ResolveSourceOutput, SourceInput};
use catalog_rules::ids::ProductId;
use engine_rules::failure::{Disposition, Failure};

use crate::sources::codr::{FileIdentity, SourceIdentity, SourceSpec};

/// The files that a run's input names.
pub(super) fn spec(product_id: &ProductId, source: &SourceInput) -> SourceSpec {
    let SourceInput::Codr { files, metadata } = source;
    SourceSpec {
        product_id: product_id.clone(),
        files: files.iter().map(PathBuf::from).collect(),
        metadata: metadata.iter().map(PathBuf::from).collect(),
        expected_rows: None,
    }
}

/// The refusal of a source as it is recorded: with the way to go on once the source is mended.
pub(super) fn refusal(mut failure: Failure) -> Failure {
    let is_source = failure.code.starts_with("codr.") && failure.disposition == Disposition::Terminal;
    failure.hint = failure.hint.map(|hint| match is_source {
        true => format!("{hint}; then: jobctl runs replay RUN --from resolve_source --set source=PATH --reason …"),
        false => hint,
    });
    failure
}

/// The bytes that a run recorded.
pub(super) fn identity(resolved: &ResolveSourceOutput) -> SourceIdentity {
    let files = resolved.files.iter().map(|file| FileIdentity {
        path: file.path.clone(),
        size_bytes: file.size_bytes,
        sha256: file.sha256.clone(),
        members: file.members.clone(),
    });
    SourceIdentity { files: files.collect(), digest: resolved.sha256.clone() }
}
