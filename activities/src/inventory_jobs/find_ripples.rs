//! Looks for editions that are built on what was taken back (*catalog* §6.4, rollback ripples).

use std::collections::BTreeSet;

use catalog_rules::contracts::inventory::{FindRipplesInput, FindRipplesOutput, Ripple, RippleState};
use catalog_rules::ids::{EditionId, ProductId};
use catalog_rules::inventory::{EntryState, TransitionRefusal};
use catalog_rules::layout;
use catalog_rules::seal_journal::JournalEntry;
use engine_rules::activity::ActivityContext;
use engine_rules::failure::{ActivityError, Disposition};

use super::InventoryDeps;
use crate::edition::{self, EditionError, EditionState};
use crate::inventory::{FullInventory, InventoryError};
use crate::store::StoreError;

/// Why it was not looked.
#[derive(Debug, thiserror::Error)]
pub enum RipplesError {
    /// The Inventory could not be read.
    #[error(transparent)]
    Inventory(#[from] Box<InventoryError>),
    /// A product's folder could not be read.
    #[error(transparent)]
    Edition(#[from] Box<EditionError>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<InventoryError> for RipplesError {
    fn from(error: InventoryError) -> Self {
        Self::Inventory(Box::new(error))
    }
}

impl ActivityError for RipplesError {
    fn code(&self) -> &'static str {
        match self {
            Self::Inventory(error) => error.code(),
            Self::Edition(error) => error.code(),
            Self::Store(error) => error.code(),
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Inventory(error) => error.disposition(),
            Self::Edition(error) => error.disposition(),
            Self::Store(error) => error.disposition(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Inventory(error) => error.hint(),
            Self::Edition(error) => error.hint(),
            Self::Store(error) => error.hint(),
        }
    }
}

/// The editions that fast-forward will refuse now, each with what to do: embargoed ones, sealed ones that no version
/// names, and those that are being built. Changes nothing.
///
/// # Errors
/// [`RipplesError`] when the Inventory or a product's folder cannot be read.
pub fn find_ripples(
    deps: &InventoryDeps,
    _ctx: &ActivityContext,
    input: FindRipplesInput,
) -> Result<FindRipplesOutput, RipplesError> {
    let inventory = deps.inventory()?;
    let mut ripples = Vec::new();
    for (product, withdrawn) in &input.withdrawn {
        embargoed(&inventory, product, withdrawn, &mut ripples)?;
        unrecorded(deps, &inventory, product, withdrawn, &mut ripples)?;
    }
    Ok(FindRipplesOutput { ripples })
}

fn embargoed(
    inventory: &FullInventory,
    product: &ProductId,
    withdrawn: &BTreeSet<EditionId>,
    ripples: &mut Vec<Ripple>,
) -> Result<(), RipplesError> {
    let leaf = inventory.leaf(product)?;
    let waiting = leaf.iter().flat_map(|leaf| &leaf.editions).filter(|entry| entry.state == EntryState::Embargoed);
    for entry in waiting {
        if let Some(previous) = entry.previous.as_ref().filter(|previous| withdrawn.contains(*previous)) {
            ripples.push(ripple(product, &entry.edition_id, Some(previous), RippleState::Embargoed));
        }
    }
    Ok(())
}

/// The editions of the product's folder that no version names. What a build goes on with is not told by its folder: one
/// that was begun after the withdrawn edition was is taken to be built on it, since that one was live.
fn unrecorded(
    deps: &InventoryDeps,
    inventory: &FullInventory,
    product: &ProductId,
    withdrawn: &BTreeSet<EditionId>,
    ripples: &mut Vec<Ripple>,
) -> Result<(), RipplesError> {
    let marks = inventory.marks(product)?;
    let folder = deps.catalog.join(layout::product(product));
    for listed in edition::list(&folder).map_err(Box::new)? {
        let id = &listed.edition_id;
        if marks.contains_key(id) {
            continue;
        }
        let built_on = |previous: &Option<EditionId>| previous.clone().filter(|previous| withdrawn.contains(previous));
        let found = match &listed.state {
            EditionState::Sealed(manifest) => built_on(&manifest.previous).map(|on| (Some(on), RippleState::Sealed)),
            EditionState::Unreadable(_) => None,
            EditionState::Unsealed => {
                let entry = deps.store.get(&layout::journal(product, id))?;
                match entry.and_then(|bytes| JournalEntry::decode(id, &bytes).ok()) {
                    Some(entry) => built_on(&entry.previous).map(|on| (Some(on), RippleState::Unsealed)),
                    None => withdrawn.iter().any(|on| on < id).then_some((None, RippleState::Unsealed)),
                }
            }
        };
        if let Some((built_on, state)) = found {
            ripples.push(ripple(product, id, built_on.as_ref(), state));
        }
    }
    Ok(())
}

fn ripple(product: &ProductId, edition: &EditionId, built_on: Option<&EditionId>, state: RippleState) -> Ripple {
    let refusal = |embargoed| TransitionRefusal::BuiltOnWithdrawn {
        product: product.clone(),
        edition: edition.clone(),
        previous: built_on.unwrap_or(edition).clone(),
        live: None,
        embargoed,
    };
    let fix = match state {
        RippleState::Embargoed => refusal(true).fix(),
        RippleState::Unsealed => refusal(false).fix(),
        RippleState::Sealed => {
            format!("it is left where it is; build from the live edition: jobctl run publish --product {product}")
        }
    };
    Ripple { product_id: product.clone(), edition_id: edition.clone(), built_on: built_on.cloned(), state, fix }
}
