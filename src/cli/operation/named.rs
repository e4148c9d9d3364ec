//! Editions as a person names them: in full, or in the form that tables show.

use std::sync::Arc;

use activities::inventory::{Alert, FullInventory, fetch_from};
use catalog_rules::ids::{EditionId, ProductId};
use catalog_rules::inventory::Mark;
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

/// Writes down what the person who asks sees now: what is live, where that is to be taken back, and what waits, where that
/// is to be released by name. A run that is carried out later, or after somebody else's, is then refused instead of doing
/// what nobody asked for. A product that is not there, or has nothing, is left to the rules.
///
/// # Errors
/// What the catalog cannot be read for.
pub fn as_seen(world: &World, run: &mut Run) -> Result<(), Ended> {
    match run {
        Run::Rollback(args) if args.if_live.is_empty() => {
            args.if_live = those(world, &args.product, Mark::Live)?;
        }
        Run::Withdraw(args) if args.what.live && args.if_live.is_empty() => {
            args.if_live = those(world, std::slice::from_ref(&args.product), Mark::Live)?;
        }
        // Editions are those of one product.
        Run::Release(args) if args.product.len() == 1 && args.edition.is_empty() => {
            args.edition = those(world, &args.product, Mark::Embargoed)?;
        }
        _ => {}
    }
    Ok(())
}

/// The editions of the products that the newest version knows in this state.
fn those(world: &World, products: &[String], asked: Mark) -> Result<Vec<String>, Ended> {
    let failed = |error: activities::inventory::InventoryError| Ended::from(error.to_failure());
    let inventory = FullInventory::open(fetch_from(Arc::clone(&world.store))).map_err(failed)?;
    let head = inventory.head().seq();
    if inventory.alerts().iter().any(|alert| matches!(alert, Alert::InvalidRoot { seq, .. } if *seq > head)) {
        // What is seen is not what is newest. The run is refused until somebody mends it, and settles on what is then.
        return Ok(Vec::new());
    }
    let mut editions = Vec::new();
    for product in products {
        let product: ProductId = product.parse()?;
        let marks = inventory.marks(&product).map_err(failed)?;
        editions.extend(marks.into_iter().filter(|(_, mark)| *mark == asked).map(|(edition, _)| edition.to_string()));
    }
    Ok(editions)
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
