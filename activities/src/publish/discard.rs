//! Deletes an unsealed edition.

use catalog_rules::contracts::edition::{DiscardInput, DiscardOutput};
use catalog_rules::ids::{EditionId, ProductId};
use catalog_rules::inventory::Mark;
use catalog_rules::layout;
use catalog_rules::manifest::MANIFEST_NAME;
use engine_rules::activity::ActivityContext;
use engine_rules::failure::{ActivityError, Disposition};

use super::{PublishDeps, recorded_as, restore_hint};
use crate::edition::{self, EditionError};
use crate::inventory::InventoryError;

/// Why an edition was not discarded.
#[derive(Debug, thiserror::Error)]
pub enum DiscardError {
    /// It is sealed, or the disk failed.
    #[error(transparent)]
    Edition(#[from] Box<EditionError>),
    /// The Inventory names it, so it was sealed, and its manifest is lost.
    #[error(
        "edition {edition} of product {product_id} is {mark} in the Inventory, so it was sealed, and what is left of it is \
         not discarded: its manifest.json is missing"
    )]
    Recorded {
        /// The product.
        product_id: ProductId,
        /// The edition.
        edition: EditionId,
        /// What the Inventory says of it.
        mark: Mark,
    },
    /// The Inventory could not be read.
    #[error(transparent)]
    Inventory(#[from] Box<InventoryError>),
    /// The folder of the product cannot be named.
    #[error("the folder of product {product_id}: {source}")]
    Folder {
        /// The product.
        product_id: ProductId,
        /// What the system says.
        source: std::io::Error,
    },
}

impl ActivityError for DiscardError {
    fn code(&self) -> &'static str {
        match self {
            Self::Edition(error) => error.code(),
            Self::Recorded { .. } => "catalog.manifest_lost",
            Self::Inventory(error) => error.code(),
            Self::Folder { .. } => "publish.folder",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Edition(error) => error.disposition(),
            Self::Recorded { .. } => Disposition::Terminal,
            Self::Inventory(error) => error.disposition(),
            Self::Folder { .. } => Disposition::Retry,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Edition(error) => error.hint(),
            Self::Recorded { .. } => Some(restore_hint()),
            Self::Inventory(error) => error.hint(),
            Self::Folder { .. } => None,
        }
    }
}

/// Deletes the unsealed edition and its entry in the seal journal; its data files stay, for garbage collection. An
/// edition that is not there counts as discarded, so repeats are safe.
///
/// # Errors
/// [`DiscardError::Edition`] for a sealed one, [`DiscardError::Recorded`] for one that lost its manifest.
pub fn discard(deps: &PublishDeps, _ctx: &ActivityContext, input: DiscardInput) -> Result<DiscardOutput, DiscardError> {
    let folder = deps.catalog.join(layout::product(&input.product_id));
    if folder.join(input.edition_id.as_str()).join(MANIFEST_NAME).exists() {
        return Err(Box::new(EditionError::DiscardsSealed { edition_id: input.edition_id }).into());
    }
    if let Some(mark) = recorded_as(deps, &input.product_id, &input.edition_id).map_err(Box::new)? {
        return Err(DiscardError::Recorded { product_id: input.product_id, edition: input.edition_id, mark });
    }
    let product = deps
        .product(&input.product_id)
        .map_err(|source| DiscardError::Folder { product_id: input.product_id.clone(), source })?;
    edition::discard(deps.fs.as_ref(), product.path(), &input.edition_id).map_err(Box::new)?;
    Ok(DiscardOutput { edition_id: input.edition_id })
}
