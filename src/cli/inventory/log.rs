//! `jobctl inventory log`: the versions, newest first.

use activities::inventory::{FullInventory, InventoryError};
use catalog_rules::ids::ProductId;
use catalog_rules::inventory::{Change, EntryChange, Mark, Root, folded_in, refused_in};
use serde_json::{Value, json};

use super::ended;
use crate::exit::{Ended, Exit};
use crate::output::{Output, moment, short};

pub(super) fn log(inventory: &FullInventory, out: Output, product: Option<&str>, limit: u32) -> Result<Exit, Ended> {
    let product: Option<ProductId> = product.map(str::parse).transpose()?;
    let mut versions = Vec::new();
    let mut rows = Vec::new();
    let mut missing = None;
    let mut next = Some(inventory.head().seq());
    while let Some(seq) = next.filter(|_| versions.len() < limit as usize) {
        next = seq.before();
        let version = match inventory.version(seq) {
            Ok(Some(version)) => version,
            Ok(None) => {
                missing = Some(seq);
                break;
            }
            // One that is damaged hides no other.
            Err(InventoryError::VersionInvalid { seq, fault }) => {
                let [empty, at, by, reason] = [const { String::new() }; 4];
                rows.push([seq.to_string(), at, empty, format!("cannot be read: {fault}"), by, reason]);
                versions.push(json!({ "seq": seq.get(), "invalid": fault.to_string() }));
                continue;
            }
            Err(error) => return Err(ended(error)),
        };
        if !product.as_ref().is_none_or(|product| concerns(&version.root, product)) {
            continue;
        }
        let before = next.and_then(|before| inventory.version(before).ok().flatten());
        rows.push([
            seq.to_string(),
            moment(version.root.created_at.as_ms()),
            version.root.event.kind.to_string(),
            changes(&version.root, before.as_ref().map(|before| &before.root)),
            version.root.event.actor.clone(),
            version.root.event.reason.clone(),
        ]);
        versions.push(version_json(&version.root, version.root_sha256.as_str()));
    }
    match &product {
        Some(product) if rows.is_empty() => out.line(format!("no version that is here changed product {product}")),
        Some(_) | None => out.table(["VERSION", "AT", "KIND", "CHANGES", "BY", "REASON"], rows),
    }
    if let Some(missing) = missing {
        out.line(format!(
            "version {missing} and those before it are not here: jobctl verify says whether they should be"
        ));
    }
    out.document("inventory.log", json!({ "versions": versions, "missing_from": missing }));
    Ok(Exit::Done)
}

/// Whether a version changed `product` or refused an edition of it. A root without a change list does not tell.
fn concerns(root: &Root, product: &ProductId) -> bool {
    root.changes.iter().flatten().any(|change| change.product_id == *product)
        || refused_in(root).iter().any(|refused| refused.product_id == *product)
}

/// What a version changed, in a line: the settings that are others than `before`, then each product with its editions'
/// new states, a few of them.
fn changes(root: &Root, before: Option<&Root>) -> String {
    const TOLD: usize = 3;
    let Some(changes) = &root.changes else { return "not recorded".to_owned() };
    let mut told = Vec::new();
    if before.is_some_and(|before| before.embargo != root.embargo) {
        told.push(if root.embargo { "embargo on".to_owned() } else { "embargo off".to_owned() });
    }
    if before.is_some_and(|before| before.extensions.get("statcat") != root.extensions.get("statcat")) {
        told.push("the description".to_owned());
    }
    told.extend(changes.iter().take(TOLD).map(product_change));
    if changes.len() > TOLD {
        told.push(format!("and {} more products", changes.len() - TOLD));
    }
    for refused in refused_in(root).iter().take(TOLD) {
        told.push(format!("{}: {} refused ({})", refused.product_id, short(refused.edition_id.as_str()), refused.code));
    }
    told.join("; ")
}

fn product_change(change: &Change) -> String {
    let entry = |entry: &EntryChange| {
        let to = match (entry.from, entry.to) {
            (_, None) => "forgotten".to_owned(),
            // Its state is as it was: its time is another.
            (Some(Mark::Embargoed), Some(Mark::Embargoed)) => {
                match entry.entry.as_ref().and_then(|entry| entry.release_at) {
                    Some(at) => format!("embargoed until {}", moment(at.as_ms())),
                    None => "embargoed, no time is set".to_owned(),
                }
            }
            (_, Some(mark)) => mark.to_string(),
        };
        format!("{} {to}", short(entry.edition_id.as_str()))
    };
    // A leaf that is another while its editions are as they were: what it says of the product itself.
    if change.entries.is_empty() {
        return format!("{}: its lifecycle", change.product_id);
    }
    let entries: Vec<_> = change.entries.iter().map(entry).collect();
    format!("{}: {}", change.product_id, entries.join(", "))
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
