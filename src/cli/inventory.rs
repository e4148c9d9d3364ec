//! `jobctl inventory …`: which edition of each product is live, and how that came to be.
//!
//! The commands only read. They take no lock and need no state database (D32).

mod diff;
mod log;
mod products;
mod show;
mod version;

use std::sync::Arc;

use activities::inventory::{Alert, FullInventory, InventoryError, fetch_from, open_catalog};
use engine_rules::failure::ActivityError as _;

use crate::args::Inventory;
use crate::exit::{Ended, Exit};
use crate::output::Output;
use crate::wire::World;

fn ended(error: InventoryError) -> Ended {
    Ended::from(error.to_failure())
}

/// Carries out `jobctl inventory …`. Reads only, and takes no lock.
///
/// # Errors
/// What the catalog cannot be read for, and a version or product that is not there.
pub fn inventory(world: &World, out: Output, args: &Inventory) -> Result<Exit, Ended> {
    open_catalog(world.store.as_ref()).map_err(ended)?;
    let inventory = FullInventory::open(fetch_from(Arc::clone(&world.store))).map_err(ended)?;
    for alert in inventory.alerts() {
        if !out.is_json() {
            out.line(format!("note: {}", alert_text(alert)));
        }
    }
    let now_ms = world.clock.now_ms();
    match args {
        Inventory::Show => show::show(&inventory, out, now_ms),
        Inventory::Log { product, limit } => log::log(&inventory, out, product.as_deref(), *limit),
        Inventory::Diff { from, to } => diff::diff(&inventory, out, *from, *to),
        Inventory::Products(at) => products::products(&inventory, out, at, now_ms),
        Inventory::Product { product, at } => products::product(&inventory, out, product, at, now_ms),
    }
}

fn alert_text(alert: &Alert) -> String {
    match alert {
        Alert::InvalidRoot { seq, fault } => format!("version {seq} is not valid: {fault}"),
        Alert::CurrentMissing => "CURRENT is missing; the versions were probed".to_owned(),
        Alert::CurrentUnreadable => "CURRENT cannot be read; the versions were probed".to_owned(),
        Alert::CurrentAbsent { seq } => format!("CURRENT names version {seq}, which is not there"),
        Alert::OlderEpoch { .. } => "CURRENT is of an older restore epoch".to_owned(),
    }
}
