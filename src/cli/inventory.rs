//! `jobctl inventory …`: which edition of each product is live, and how that came to be.

use std::sync::Arc;

use activities::inventory::{Alert, FullInventory, InventoryError, fetch_from, open_catalog};
use catalog_rules::inventory::{EntryState, Root};
use engine_rules::failure::ActivityError as _;
use serde_json::{Value, json};

use crate::args::Inventory;
use crate::exit::{Ended, Exit};
use crate::output::{Output, moment, short};
use crate::wire::World;

fn ended(error: InventoryError) -> Ended {
    Ended::from(error.to_failure())
}

/// Carries out `jobctl inventory …`. Reads only, and takes no lock.
///
/// # Errors
/// What the catalog cannot be read for.
pub fn inventory(world: &World, out: Output, args: &Inventory) -> Result<Exit, Ended> {
    open_catalog(world.store.as_ref()).map_err(ended)?;
    let inventory = FullInventory::open(fetch_from(Arc::clone(&world.store))).map_err(ended)?;
    for alert in inventory.alerts() {
        if !out.is_json() {
            out.line(format!("note: {}", alert_text(alert)));
        }
    }
    match args {
        Inventory::Show => show(&inventory, out),
        Inventory::Log { limit } => log(&inventory, out, *limit),
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

fn show(inventory: &FullInventory, out: Output) -> Result<Exit, Ended> {
    let head = inventory.head();
    let mut rows = Vec::new();
    let mut products = Vec::new();
    for (product_id, leaf) in inventory.leaves().map_err(ended)? {
        for entry in &leaf.editions {
            products.push(json!({
                "product_id": product_id,
                "kind": leaf.kind,
                "lifecycle": leaf.lifecycle,
                "edition_id": entry.edition_id,
                "previous": entry.previous,
                "state": entry.state,
                "schema_version": entry.schema_version,
                "manifest_sha256": entry.manifest_sha256,
                "state_changed_at": entry.state_changed_at,
                "release_at": entry.release_at,
                "dataflows": entry.dataflows,
                "pull_bytes": entry.pull_bytes,
            }));
            let shown = match entry.state {
                EntryState::Live | EntryState::Embargoed => true,
                EntryState::Superseded | EntryState::Withdrawn => false,
            };
            if shown {
                rows.push([
                    product_id.to_string(),
                    entry.state.to_string(),
                    entry.edition_id.to_string(),
                    moment(entry.state_changed_at.as_ms()),
                    entry.schema_version.as_str().to_owned(),
                ]);
            }
        }
    }
    out.line(format!(
        "version {} of {}, by {}: {}",
        head.seq(),
        moment(head.root.created_at.as_ms()),
        head.root.event.actor,
        head.root.event.reason
    ));
    if rows.is_empty() {
        out.line("no product yet");
    } else {
        out.table(["PRODUCT", "STATE", "EDITION", "SINCE", "SCHEMA"], rows);
    }
    products.sort_by_key(|product| (product["product_id"].to_string(), product["state"] != "live"));
    out.document(
        "inventory.show",
        json!({
            "seq": head.seq().get(),
            "root_sha256": head.root_sha256,
            "restore_epoch": head.root.restore_epoch,
            "created_at": head.root.created_at,
            "embargo": head.root.embargo,
            "event": head.root.event,
            "products": products,
            "retired": head.root.retired,
            "alerts": inventory.alerts().iter().map(alert_text).collect::<Vec<_>>(),
        }),
    );
    Ok(Exit::Done)
}

fn log(inventory: &FullInventory, out: Output, limit: u32) -> Result<Exit, Ended> {
    let mut versions = Vec::new();
    let mut rows = Vec::new();
    let mut next = Some(inventory.head().seq());
    while let Some(seq) = next.filter(|_| versions.len() < limit as usize) {
        let Some(version) = inventory.version(seq).map_err(ended)? else { break };
        rows.push([
            seq.to_string(),
            moment(version.root.created_at.as_ms()),
            version.root.event.kind.to_string(),
            changes(&version.root),
            version.root.event.actor.clone(),
            version.root.event.reason.clone(),
        ]);
        versions.push(version_json(&version.root, version.root_sha256.as_str()));
        next = seq.before();
    }
    out.table(["VERSION", "AT", "KIND", "CHANGES", "BY", "REASON"], rows);
    out.document("inventory.log", json!({ "versions": versions }));
    Ok(Exit::Done)
}

/// What a version changed, in a line: each product with its editions' new states, a few of them.
fn changes(root: &Root) -> String {
    const TOLD: usize = 3;
    let Some(changes) = &root.changes else { return "not recorded".to_owned() };
    let mut told: Vec<String> = changes
        .iter()
        .take(TOLD)
        .map(|change| {
            let entries: Vec<_> = change
                .entries
                .iter()
                .map(|entry| {
                    let to = entry.to.map_or_else(|| "forgotten".to_owned(), |mark| mark.to_string());
                    format!("{} {to}", short(entry.edition_id.as_str()))
                })
                .collect();
            format!("{}: {}", change.product_id, entries.join(", "))
        })
        .collect();
    if changes.len() > TOLD {
        told.push(format!("and {} more products", changes.len() - TOLD));
    }
    told.join("; ")
}

fn version_json(root: &Root, root_sha256: &str) -> Value {
    json!({
        "seq": root.seq.get(),
        "root_sha256": root_sha256,
        "previous_inventory": root.previous_inventory,
        "restore_epoch": root.restore_epoch,
        "created_at": root.created_at,
        "producer": root.producer,
        "embargo": root.embargo,
        "event": root.event,
        "changes": root.changes,
        "extensions": root.extensions,
    })
}
