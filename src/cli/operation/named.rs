//! Editions as a person names them: in full, or in the form that tables show.

use std::sync::Arc;

use activities::inventory::{FullInventory, fetch_from};
use catalog_rules::ids::{EditionId, ProductId};
use engine_rules::failure::ActivityError as _;

use crate::args::Run;
use crate::exit::Ended;
use crate::wire::World;

/// Puts the whole id in the place of each edition that is named by its beginning, its end or both with `…` between: a run
/// records whole ids.
///
/// # Errors
/// Usage: a name that is no edition's of the products, or several'.
pub fn in_full(world: &World, run: &mut Run) -> Result<(), Ended> {
    let (products, editions): (Vec<&String>, Vec<&mut String>) = match run {
        Run::Release(args) => (args.product.iter().collect(), args.edition.iter_mut().collect()),
        Run::Rollback(args) => (args.product.iter().collect(), args.to.iter_mut().chain(&mut args.if_live).collect()),
        Run::Withdraw(args) => (vec![&args.product], args.what.edition.iter_mut().chain(&mut args.if_live).collect()),
        Run::Supersede(args) => (vec![&args.product], vec![&mut args.edition, &mut args.by]),
        Run::Reinstate(args) => (vec![&args.product], vec![&mut args.edition]),
        Run::Retire(args) => (args.product.iter().collect(), args.edition.iter_mut().collect()),
        Run::Reschedule(args) => (vec![&args.product], vec![&mut args.edition]),
        Run::Publish(_)
        | Run::Fold(_)
        | Run::Recovery(_)
        | Run::SupersedeSchema(_)
        | Run::SetLifecycle(_)
        | Run::Embargo(_)
        | Run::Describe(_)
        | Run::Correct(_) => return Ok(()),
    };
    let mut known: Option<Vec<EditionId>> = None;
    for name in editions {
        if name.parse::<EditionId>().is_ok() {
            continue;
        }
        let known = match &mut known {
            Some(known) => known,
            None => known.insert(editions_of(world, &products)?),
        };
        *name = whole(name, known, &products)?;
    }
    Ok(())
}

/// Every edition that the newest version knows of the products.
fn editions_of(world: &World, products: &[&String]) -> Result<Vec<EditionId>, Ended> {
    let failed = |error: activities::inventory::InventoryError| Ended::from(error.to_failure());
    let inventory = FullInventory::open(fetch_from(Arc::clone(&world.store))).map_err(failed)?;
    let mut editions = Vec::new();
    for product in products {
        let product: ProductId = product.parse()?;
        editions.extend(inventory.marks(&product).map_err(failed)?.into_keys());
    }
    Ok(editions)
}

fn whole(name: &str, known: &[EditionId], products: &[&String]) -> Result<String, Ended> {
    let (beginning, end) = name.split_once('…').or_else(|| name.split_once("...")).unwrap_or((name, ""));
    let fits = |id: &&EditionId| {
        let id = id.as_str();
        match end {
            "" => id.starts_with(beginning) || id.ends_with(beginning),
            end => id.starts_with(beginning) && id.ends_with(end),
        }
    };
    let found: Vec<_> = if name.is_empty() { Vec::new() } else { known.iter().filter(fits).collect() };
    let products = products.iter().map(|product| product.as_str()).collect::<Vec<_>>().join(", ");
    match found.as_slice() {
        [one] => Ok(one.to_string()),
        [] => Err(Ended::usage(format!("the Inventory has no edition {name:?} of {products}"))
            .with_hint("jobctl inventory product PRODUCT names them")),
        several => {
            let ids: Vec<_> = several.iter().map(ToString::to_string).collect();
            Err(Ended::usage(format!("{name:?} names several editions of {products}: {}", ids.join(", "))))
        }
    }
}
