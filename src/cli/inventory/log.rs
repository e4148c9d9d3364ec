//! `jobctl inventory log`: the versions, newest first.

use activities::inventory::FullInventory;
use catalog_rules::ids::ProductId;
use catalog_rules::inventory::{Root, folded_in, refused_in};
use serde_json::{Value, json};

use super::ended;
use crate::exit::{Ended, Exit};
use crate::output::{Output, moment, short};

pub(super) fn log(inventory: &FullInventory, out: Output, product: Option<&str>, limit: u32) -> Result<Exit, Ended> {
    let product: Option<ProductId> = product.map(str::parse).transpose()?;
    let mut versions = Vec::new();
    let mut rows = Vec::new();
    let mut next = Some(inventory.head().seq());
    while let Some(seq) = next.filter(|_| versions.len() < limit as usize) {
        let Some(version) = inventory.version(seq).map_err(ended)? else { break };
        next = seq.before();
        if !product.as_ref().is_none_or(|product| concerns(&version.root, product)) {
            continue;
        }
        rows.push([
            seq.to_string(),
            moment(version.root.created_at.as_ms()),
            version.root.event.kind.to_string(),
            changes(&version.root),
            version.root.event.actor.clone(),
            version.root.event.reason.clone(),
        ]);
        versions.push(version_json(&version.root, version.root_sha256.as_str()));
    }
    match &product {
        Some(product) if rows.is_empty() => out.line(format!("no version that is here changed product {product}")),
        Some(_) | None => out.table(["VERSION", "AT", "KIND", "CHANGES", "BY", "REASON"], rows),
    }
    out.document("inventory.log", json!({ "versions": versions }));
    Ok(Exit::Done)
}

/// Whether a version changed `product` or refused an edition of it. A root without a change list does not tell.
fn concerns(root: &Root, product: &ProductId) -> bool {
    root.changes.iter().flatten().any(|change| change.product_id == *product)
        || refused_in(root).iter().any(|refused| refused.product_id == *product)
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
    for refused in refused_in(root).iter().take(TOLD) {
        told.push(format!("{}: {} refused ({})", refused.product_id, short(refused.edition_id.as_str()), refused.code));
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
        "refused": refused_in(root),
        "folded": folded_in(root),
        "extensions": root.extensions,
    })
}
