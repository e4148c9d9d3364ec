//! Takes back the seal journal's entry of an edition that was refused (D11).

use catalog_rules::contracts::publish::{AbandonInput, AbandonOutput};
use catalog_rules::layout;
use catalog_rules::manifest::MANIFEST_NAME;
use engine_rules::activity::ActivityContext;
use engine_rules::failure::{ActivityError, Disposition};

use super::{PublishDeps, recorded_as};
use crate::edition::{self, EditionError};
use crate::inventory::InventoryError;
use crate::store::StoreError;

/// Why an entry was not taken back.
#[derive(Debug, thiserror::Error)]
pub enum AbandonError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The unsealed edition could not be removed.
    #[error(transparent)]
    Edition(#[from] Box<EditionError>),
    /// The Inventory could not be read.
    #[error(transparent)]
    Inventory(#[from] Box<InventoryError>),
}

impl ActivityError for AbandonError {
    fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.code(),
            Self::Edition(error) => error.code(),
            Self::Inventory(error) => error.code(),
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Store(error) => error.disposition(),
            Self::Edition(error) => error.disposition(),
            Self::Inventory(error) => error.disposition(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Store(error) => error.hint(),
            Self::Edition(error) => error.hint(),
            Self::Inventory(error) => error.hint(),
        }
    }
}

/// Removes the journal's entry of the edition, durably, so that no later repair records what was refused. A sealed edition
/// itself stays for a person to look at; an unsealed one goes where the input says so, and its data files stay for garbage
/// collection. Repeats are safe.
///
/// # Errors
/// [`AbandonError::Store`] when the entry may still be there, [`AbandonError::Edition`] when the edition may.
pub fn abandon(deps: &PublishDeps, _ctx: &ActivityContext, input: AbandonInput) -> Result<AbandonOutput, AbandonError> {
    let had_entry = deps.store.delete(&layout::journal(&input.product_id, &input.edition_id))?;
    let discarded = input.discard_unsealed && discard_unsealed(deps, &input)?;
    Ok(AbandonOutput { had_entry, discarded })
}

fn discard_unsealed(deps: &PublishDeps, input: &AbandonInput) -> Result<bool, AbandonError> {
    let folder = deps.catalog.join(layout::product(&input.product_id));
    let edition = folder.join(input.edition_id.as_str());
    if !edition.is_dir() || edition.join(MANIFEST_NAME).exists() {
        return Ok(false);
    }
    // One that the Inventory names was sealed and lost its manifest: it is for a person.
    if recorded_as(deps, &input.product_id, &input.edition_id).map_err(Box::new)?.is_some() {
        return Ok(false);
    }
    edition::discard(deps.fs.as_ref(), &folder, &input.edition_id).map_err(Box::new)?;
    Ok(true)
}
