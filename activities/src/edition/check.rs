//! Whether a sealed edition is what its manifest says (*edition* §6, *catalog* §4.6).

mod files;
mod finding;
mod stored;

use std::path::Path;

use catalog_rules::manifest::Manifest;

pub use files::first_file_difference;
pub use finding::{CheckName, Finding, FindingDetail, Profile, Report};

use self::finding::Findings;
use super::error::{EditionError, io_error};
use super::layout::EditionFolder;
use super::reader::{VersionFault, read_manifest_at, session_name, version_faults};
use super::structures::Structures;
use super::{Tools, lake};
use crate::duck::{Access, STORE, Session};

/// What to check.
#[derive(Debug, Clone, Copy)]
pub struct CheckOptions<'a> {
    /// Where the check runs.
    pub at: Profile,
    /// Whether every fingerprint is computed again. The process that sealed the edition may leave it out right after
    /// the seal; whoever got the edition from elsewhere may not (*edition* §6).
    pub fingerprints: bool,
    /// An earlier manifest whose content this edition must have, for a rebuild that is to change none.
    pub expect: Option<&'a Manifest>,
}

impl CheckOptions<'_> {
    /// The checks of `at` as the specification has them: fingerprints at publish only, no expectation.
    #[must_use]
    pub fn at(at: Profile) -> Self {
        Self { at, fingerprints: at == Profile::Publish, expect: None }
    }
}

/// Checks the sealed edition in the folder `edition`, in the specification's order, and reports every finding. It only
/// reads, and no byte of the edition changes.
///
/// # Errors
/// What keeps the check itself from running: no DuckDB extension, a scratch folder that cannot be written, or
/// [`EditionError::Cancelled`]. What is wrong with the edition is a finding.
pub fn check(tools: &Tools<'_>, edition: &Path, options: &CheckOptions<'_>) -> Result<Report, EditionError> {
    let folder = EditionFolder::at(edition).map_err(io_error("find", edition))?;
    let mut findings = Findings::new(options.at);
    run(tools, &folder, options, &mut findings)?;
    Ok(findings.report())
}

fn run(
    tools: &Tools<'_>,
    folder: &EditionFolder,
    options: &CheckOptions<'_>,
    findings: &mut Findings,
) -> Result<(), EditionError> {
    findings.begin(CheckName::Manifest);
    let manifest = match read_manifest_at(folder) {
        Ok((_, manifest)) => manifest,
        Err(EditionError::NotSealed { .. }) => {
            findings.add("manifest.json", FindingDetail::Unsealed);
            return Ok(());
        }
        Err(EditionError::Manifest {
            source: catalog_rules::manifest::ManifestError::Invalid { problems }, ..
        }) => {
            for problem in problems {
                findings.add(problem.field.clone(), FindingDetail::ManifestProblem(problem));
            }
            return Ok(());
        }
        Err(error) => {
            findings.add("manifest.json", FindingDetail::Unreadable(cause(&error)));
            return Ok(());
        }
    };
    if folder.path().file_name().and_then(|name| name.to_str()) != Some(manifest.edition_id.as_str()) {
        let found = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        findings.differs("edition_id", "the folder is named", found, manifest.edition_id.to_string());
    }
    findings.begin(CheckName::Files);
    files::edition_files(folder, &manifest, options.at, findings);
    files::data_files(tools, folder, &manifest, options.at, findings)?;
    if let Some(expected) = options.expect {
        findings.begin(CheckName::Expect);
        expect(&manifest, expected, findings);
    }

    findings.begin(CheckName::Manifest);
    let mut session = Session::open(tools.duck, &session_name("check"))?;
    session.heed(&tools.context.cancel);
    let faults = match version_faults(&session, folder, &manifest) {
        Ok(faults) => faults,
        Err(error) => return findings.unreadable("duckdb_storage_version", error.into()),
    };
    for VersionFault { field, what, found, expected } in &faults {
        findings.differs(*field, what, found, expected);
    }
    if !faults.is_empty() || options.at == Profile::Open {
        return Ok(());
    }
    let has_lake = folder.lake().exists();
    if has_lake {
        findings.begin(CheckName::Lake);
        match lake::inlined_rows(&session, &folder.lake()) {
            Ok(0) => {}
            Ok(rows) => findings.add("tables.ducklake", FindingDetail::InlinedRows(rows)),
            Err(error) => {
                findings.unreadable("tables.ducklake", error.into())?;
                return Ok(());
            }
        }
        let attached = session.attach_lake(&folder.lake(), folder.data(), Access::Read);
        if !findings.readable("tables.ducklake", attached)? {
            return Ok(());
        }
        let checked = stored::lake_files(&session, folder, &manifest, findings);
        if !findings.readable("tables.ducklake", checked)? {
            return Ok(());
        }
    }
    findings.begin(CheckName::Bindings);
    let attached = session.attach(&folder.store(), STORE, Access::Read);
    if !findings.readable("metadata.duckdb", attached)? {
        return Ok(());
    }
    let structures = match Structures::read(&session) {
        Ok(structures) => structures,
        Err(error) => {
            findings.unreadable("metadata.duckdb", error)?;
            return Ok(());
        }
    };
    stored::checks(tools, &session, folder, &manifest, &structures, has_lake, options, findings)
}

/// Compares every fingerprint with an earlier manifest's.
fn expect(manifest: &Manifest, expected: &Manifest, findings: &mut Findings) {
    if manifest.canonical_form != expected.canonical_form {
        // Fingerprints of different forms are never compared.
        findings.differs("canonical_form", "the form is", &manifest.canonical_form, &expected.canonical_form);
        return;
    }
    let artefacts = |manifest: &Manifest| -> Vec<(String, String)> {
        manifest.artefacts.iter().map(|entry| (entry.urn.clone(), entry.fingerprint.to_string())).collect()
    };
    findings.same_entries("the fingerprint is", artefacts(manifest), artefacts(expected));
    let bindings = |manifest: &Manifest| -> Vec<(String, String)> {
        let text = |binding: &catalog_rules::manifest::BindingCount| {
            format!("table {}, structure {}", binding.fingerprint, binding.structure_fingerprint)
        };
        manifest.bindings.iter().map(|binding| (binding.dataflow.clone(), text(binding))).collect()
    };
    findings.same_entries("the fingerprints are", bindings(manifest), bindings(expected));
    let content = |manifest: &Manifest| match &manifest.content_fingerprint {
        Some(fingerprint) => fingerprint.to_string(),
        None => "null".to_owned(),
    };
    if content(manifest) != content(expected) {
        findings.differs("content_fingerprint", "the fingerprint is", content(manifest), content(expected));
    }
}

/// An error with its sources, in one line.
fn cause(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = cause.source();
    }
    text.replace('\n', "; ")
}
