//! Checks the sealed edition where it was sealed (*edition* §6, profile `publish`).

use catalog_rules::contracts::publish::{CheckInput, CheckOutput};
use catalog_rules::ids::{EditionId, ProductId, Sha256Hex};
use catalog_rules::layout;
use engine_rules::activity::ActivityContext;
use engine_rules::failure::{ActivityError, Disposition};

use super::PublishDeps;
use crate::edition::{self, CheckOptions, EditionError, Finding, Profile};
use crate::store::StoreError;

/// How many findings a failure tells one by one.
const TOLD: usize = 20;

/// Why an edition was not passed.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// It has findings.
    #[error("edition {edition} of product {product_id} is not what its manifest says (edition §6): {findings}")]
    Findings {
        /// The product.
        product_id: ProductId,
        /// The edition.
        edition: EditionId,
        /// The findings, one a line.
        findings: String,
    },
    /// It has another manifest than the seal wrote.
    #[error(
        "edition {edition} of product {product_id}: its manifest.json has SHA-256 {}, expected {expected}, as it was sealed",
        found.as_ref().map_or("none: there is no such file", Sha256Hex::as_str)
    )]
    ManifestDiffers {
        /// The product.
        product_id: ProductId,
        /// The edition.
        edition: EditionId,
        /// What is there.
        found: Option<Sha256Hex>,
        /// What was sealed.
        expected: Sha256Hex,
    },
    /// The check could not run.
    #[error(transparent)]
    Edition(#[from] Box<EditionError>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder of the product cannot be named.
    #[error("the folder of product {product_id}: {source}")]
    Folder {
        /// The product.
        product_id: ProductId,
        /// What the system says.
        source: std::io::Error,
    },
}

impl ActivityError for CheckError {
    fn code(&self) -> &'static str {
        match self {
            Self::Findings { .. } => "catalog.check_findings",
            Self::ManifestDiffers { .. } => "catalog.manifest_differs",
            Self::Edition(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::Folder { .. } => "publish.folder",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Findings { .. } | Self::ManifestDiffers { .. } => Disposition::Terminal,
            Self::Edition(error) => error.disposition(),
            Self::Store(error) => error.disposition(),
            Self::Folder { .. } => Disposition::Retry,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Findings { product_id, edition, .. } => Some(format!(
                "the edition was not recorded and stays for you to look at: jobctl edition check {edition} --product \
                 {product_id}; if the disk is sound, publish again"
            )),
            Self::ManifestDiffers { .. } => {
                Some("somebody changed the sealed edition: find out who, then publish again".to_owned())
            }
            Self::Edition(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::Folder { .. } => None,
        }
    }
}

/// Checks the edition in full. The fingerprints are left out only in the process that sealed it, which computed each of
/// them from what it wrote; resumed in another process they are computed again. Changes nothing; repeats are safe.
///
/// # Errors
/// [`CheckError::Findings`] with every finding; [`CheckError`] otherwise.
pub fn check(deps: &PublishDeps, ctx: &ActivityContext, input: CheckInput) -> Result<CheckOutput, CheckError> {
    let CheckInput { product_id, edition_id, manifest_sha256 } = input;
    let found = deps.store.get(&layout::manifest(&product_id, &edition_id))?.map(|bytes| Sha256Hex::of(&bytes));
    if found.as_ref() != Some(&manifest_sha256) {
        return Err(CheckError::ManifestDiffers { product_id, edition: edition_id, found, expected: manifest_sha256 });
    }
    let folder = deps
        .product(&product_id)
        .map_err(|source| CheckError::Folder { product_id: product_id.clone(), source })?
        .edition(&edition_id);
    let fingerprints = !deps.was_sealed_here(&edition_id);
    let options = CheckOptions { fingerprints, ..CheckOptions::at(Profile::Publish) };
    let report = edition::check(&deps.tools(ctx), folder.path(), &options).map_err(Box::new)?;
    if ctx.cancel.is_cancelled() {
        // What was interrupted reads like damage, and is none.
        return Err(Box::new(EditionError::Cancelled).into());
    }
    if !report.findings.is_empty() {
        let findings = findings_text(&report.findings);
        return Err(CheckError::Findings { product_id, edition: edition_id, findings });
    }
    Ok(CheckOutput {
        checks: report.checked.iter().map(|check| check.as_str().to_owned()).collect(),
        fingerprints_recomputed: fingerprints,
    })
}

/// Findings for a person, one a line.
pub(super) fn findings_text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings.iter().take(TOLD) {
        text.push_str(&format!("\n  {finding}"));
    }
    if findings.len() > TOLD {
        text.push_str(&format!("\n  and {} more", findings.len() - TOLD));
    }
    text
}
