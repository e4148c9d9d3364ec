//! Takes back the seal journal's entry of an edition that was refused (D11).

use catalog_rules::contracts::publish::{AbandonInput, AbandonOutput};
use catalog_rules::layout;
use engine_rules::activity::ActivityContext;
use engine_rules::failure::{ActivityError, Disposition};

use super::PublishDeps;
use crate::store::StoreError;

/// Why an entry was not taken back.
#[derive(Debug, thiserror::Error)]
pub enum AbandonError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ActivityError for AbandonError {
    fn code(&self) -> &'static str {
        match self {
            Self::Store(error) => error.code(),
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Store(error) => error.disposition(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Store(error) => error.hint(),
        }
    }
}

/// Removes the journal's entry of the edition, durably, so that no later repair records what was refused. The edition
/// itself stays for a person to look at. Repeats are safe.
///
/// # Errors
/// [`AbandonError::Store`] when the entry may still be there.
pub fn abandon(deps: &PublishDeps, _ctx: &ActivityContext, input: AbandonInput) -> Result<AbandonOutput, AbandonError> {
    let had_entry = deps.store.delete(&layout::journal(&input.product_id, &input.edition_id))?;
    Ok(AbandonOutput { had_entry })
}
