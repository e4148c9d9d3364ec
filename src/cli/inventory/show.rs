//! `jobctl inventory show`: the newest version.

use activities::inventory::FullInventory;
use catalog_rules::instant::Instant;
use catalog_rules::inventory::{EntryState, refused_in};
use serde_json::json;

use super::version::{headline, tell_waiting, waiting};
use super::{alert_text, ended};
use crate::exit::{Ended, Exit};
use crate::output::{Output, moment};

pub(super) fn show(inventory: &FullInventory, out: Output, now_ms: i64) -> Result<Exit, Ended> {
    let head = inventory.head();
    let leaves = inventory.leaves().map_err(ended)?;
    let mut rows = Vec::new();
    let mut products = Vec::new();
    for (product_id, leaf) in &leaves {
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
    let waiting = waiting(inventory, head, &leaves, Instant::from_ms(now_ms))?;
    out.line(headline(&head.root));
    out.line(format!("embargo {}", if head.root.embargo { "on" } else { "off" }));
    if rows.is_empty() {
        out.line("no product yet");
    } else {
        out.table(["PRODUCT", "STATE", "EDITION", "SINCE", "SCHEMA"], rows);
    }
    tell_waiting(out, &waiting);
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
            "changes": head.root.changes,
            "refused": refused_in(&head.root),
            "products": products,
            "embargoed": waiting,
            "retired": head.root.retired,
            "alerts": inventory.alerts().iter().map(alert_text).collect::<Vec<_>>(),
        }),
    );
    Ok(Exit::Done)
}
