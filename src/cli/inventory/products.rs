//! `jobctl inventory products` and `product`: what is live, what waits, and how it came to be, now or then.

use std::collections::BTreeMap;

use activities::inventory::{FullInventory, Head};
use catalog_rules::ids::{EditionId, ProductId};
use catalog_rules::inventory::{Event, Lifecycle, ProductView, Seq, VersionSummary, product_rows, product_view};
use serde_json::{Value, json};

use super::ended;
use super::version::{Asked, asked, back_from, headline, tell_waiting, unknown_product, waiting};
use crate::args::InventoryAt;
use crate::exit::{Ended, Exit};
use crate::output::{Output, moment, short};

pub(super) fn products(inventory: &FullInventory, out: Output, at: &InventoryAt, now_ms: i64) -> Result<Exit, Ended> {
    let Asked { version, now } = asked(inventory, at, now_ms)?;
    let leaves = inventory.leaves_in(&version, version.root.products.keys()).map_err(ended)?;
    let waiting = waiting(inventory, &version, &leaves, now)?;
    let products = product_rows(&version.root, &leaves);
    let mut rows = Vec::new();
    for row in &products {
        let line = |edition: String, since: String, schema: String| {
            [
                row.product_id.to_string(),
                row.kind.to_string(),
                lifecycle_text(row.lifecycle).to_owned(),
                edition,
                since,
                schema,
                row.embargoed.to_string(),
                row.superseded.to_string(),
                row.withdrawn.to_string(),
                row.tombstones.to_string(),
            ]
        };
        rows.extend(row.heads.iter().map(|head| {
            line(head.edition_id.to_string(), moment(head.live_since.as_ms()), head.schema_version.to_string())
        }));
        if row.heads.is_empty() {
            rows.push(line("none".to_owned(), String::new(), String::new()));
        }
    }
    out.line(headline(&version.root));
    if rows.is_empty() {
        out.line("no product yet");
    } else {
        let header = [
            "PRODUCT",
            "KIND",
            "LIFECYCLE",
            "LIVE",
            "SINCE",
            "SCHEMA",
            "EMBARGOED",
            "SUPERSEDED",
            "WITHDRAWN",
            "RETIRED",
        ];
        out.table(header, rows);
    }
    tell_waiting(out, &waiting);
    out.document(
        "inventory.products",
        json!({
            "version": VersionSummary::of(&version.root),
            "at": now,
            "products": products,
            "embargoed": waiting,
        }),
    );
    Ok(Exit::Done)
}

pub(super) fn product(
    inventory: &FullInventory,
    out: Output,
    product: &str,
    at: &InventoryAt,
    now_ms: i64,
) -> Result<Exit, Ended> {
    let Asked { version, now } = asked(inventory, at, now_ms)?;
    let product: ProductId = product.parse()?;
    let leaves = inventory.leaves_in(&version, [&product]).map_err(ended)?;
    let leaf = leaves.get(&product).ok_or_else(|| unknown_product(&version.root, &product))?;
    let waiting = waiting(inventory, &version, &leaves, now)?;
    let view = product_view(&version.root, leaf);
    let origins = origins(inventory, &version, &view)?;
    out.line(format!("as of {}", headline(&version.root)));
    out.line(format!("product {product}: {}, {}", view.kind, lifecycle_text(view.lifecycle)));
    if view.heads.is_empty() {
        out.line("nothing of it is live");
    }
    for head in &view.heads {
        out.line(format!(
            "live at schema {}: {} since {}",
            head.schema_version,
            head.edition_id,
            moment(head.live_since.as_ms())
        ));
    }
    let rows = view.editions.iter().rev().map(|edition| {
        let origin = origins.get(&edition.edition_id);
        [
            edition.edition_id.to_string(),
            edition.mark.to_string(),
            moment(edition.since.as_ms()),
            origin.map_or_else(|| "?".to_owned(), |origin| origin.seq.to_string()),
            edition.previous.as_ref().map(|previous| short(previous.as_str())).unwrap_or_default(),
            edition.schema_version.as_ref().map(ToString::to_string).unwrap_or_default(),
            origin.map(|origin| origin.event.actor.clone()).unwrap_or_default(),
            origin.map(|origin| origin.event.reason.clone()).unwrap_or_default(),
        ]
    });
    out.table(["EDITION", "STATE", "SINCE", "VERSION", "PREVIOUS", "SCHEMA", "BY", "REASON"], rows.collect());
    tell_waiting(out, &waiting);
    out.document("inventory.product", document(&version, now, &view, &origins, &waiting)?);
    Ok(Exit::Done)
}

fn document(
    version: &Head,
    now: catalog_rules::instant::Instant,
    view: &ProductView,
    origins: &BTreeMap<EditionId, Origin>,
    waiting: &[catalog_rules::inventory::EmbargoedView],
) -> Result<Value, Ended> {
    let editions = view.editions.iter().map(|edition| {
        let mut document = crate::start::to_value(edition)?;
        let origin = origins.get(&edition.edition_id);
        document["by_version"] = json!(origin.map(|origin| origin.seq));
        document["by"] = json!(origin.map(|origin| &origin.event));
        Ok(document)
    });
    Ok(json!({
        "version": VersionSummary::of(&version.root),
        "at": now,
        "product_id": view.product_id,
        "kind": view.kind,
        "lifecycle": view.lifecycle,
        "heads": view.heads,
        "editions": editions.collect::<Result<Vec<_>, Ended>>()?,
        "embargoed": waiting,
    }))
}

/// The version that gave an edition its state.
struct Origin {
    seq: Seq,
    event: Event,
}

/// Which version gave each edition of a product its state: the newest whose change list says so. Versions from before
/// any of the states was taken are not looked at; what older writers did not record stays out.
fn origins(
    inventory: &FullInventory,
    version: &Head,
    view: &ProductView,
) -> Result<BTreeMap<EditionId, Origin>, Ended> {
    let mut open: BTreeMap<&EditionId, _> =
        view.editions.iter().map(|edition| (&edition.edition_id, edition.since)).collect();
    let mut found = BTreeMap::new();
    back_from(inventory, version, |version| {
        let root = &version.root;
        for change in root.changes.iter().flatten().filter(|change| change.product_id == view.product_id) {
            for item in change.entries.iter().filter(|item| item.from != item.to) {
                if open.remove(&item.edition_id).is_some() {
                    let origin = Origin { seq: root.seq, event: root.event.clone() };
                    found.insert(item.edition_id.clone(), origin);
                }
            }
        }
        open.values().any(|since| root.created_at >= *since)
    })?;
    Ok(found)
}

fn lifecycle_text(lifecycle: Lifecycle) -> &'static str {
    match lifecycle {
        Lifecycle::Revisable => "revisable",
        Lifecycle::Final => "final",
    }
}
