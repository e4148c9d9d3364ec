//! `jobctl inventory diff`: what differs between two versions, and who and why.

use std::collections::BTreeSet;

use activities::inventory::{FullInventory, Head};
use catalog_rules::ids::ProductId;
use catalog_rules::instant::Instant;
use catalog_rules::inventory::{Diff, Lifecycle, Refusal, VersionSummary, VersionView, diff as rules_diff};
use serde_json::json;

use super::ended;
use super::version::{headline, mark_text, numbered};
use crate::exit::{Ended, Exit};
use crate::output::{Output, moment};

pub(super) fn diff(inventory: &FullInventory, out: Output, from: Option<u64>, to: Option<u64>) -> Result<Exit, Ended> {
    let to = match to {
        Some(seq) => numbered(inventory, seq)?,
        None => inventory.head().clone(),
    };
    let from = match (from, to.seq().before()) {
        (Some(seq), _) => numbered(inventory, seq)?,
        (None, Some(before)) => numbered(inventory, before.get())?,
        (None, None) => {
            return Err(Ended::usage("version 1 is the newest version, and there is none before it to compare with")
                .with_hint("jobctl inventory show says what it holds"));
        }
    };
    let products = differing(&from, &to);
    let (before, after) =
        (inventory.leaves_in(&from, &products).map_err(ended)?, inventory.leaves_in(&to, &products).map_err(ended)?);
    let found =
        rules_diff(&VersionView { root: &from.root, leaves: &before }, &VersionView { root: &to.root, leaves: &after })
            .map_err(|missing| ended(Box::<Refusal>::from(missing).into()))?;
    tell(out, &from, &to, &found);
    out.document(
        "inventory.diff",
        json!({
            "from": VersionSummary::of(&from.root),
            "to": VersionSummary::of(&to.root),
            "changes": found.changes,
            "lifecycles": found.lifecycles,
            "embargo": found.embargo,
            "description": found.description,
        }),
    );
    Ok(Exit::Done)
}

/// The products whose leaf or tombstones are others.
fn differing(from: &Head, to: &Head) -> BTreeSet<ProductId> {
    let (old, new) = (&from.root, &to.root);
    let changed = new.products.iter().filter(|(product, leaf)| old.products.get(*product) != Some(*leaf));
    let gone = old.products.keys().filter(|product| !new.products.contains_key(*product));
    let mut products: BTreeSet<_> = changed.map(|(product, _)| product).chain(gone).cloned().collect();
    let (before, after): (BTreeSet<_>, BTreeSet<_>) = (old.retired.iter().collect(), new.retired.iter().collect());
    products.extend(before.symmetric_difference(&after).map(|tombstone| tombstone.product_id.clone()));
    products
}

fn tell(out: Output, from: &Head, to: &Head, diff: &Diff) {
    out.line(format!("from {}", headline(&from.root)));
    out.line(format!("to   {}", headline(&to.root)));
    if from.seq().next() < to.seq() {
        out.line("the versions between them, with who and why: jobctl inventory log");
    }
    if let Some(embargo) = diff.embargo {
        out.line(format!("embargo is {}", if embargo { "on" } else { "off" }));
    }
    if diff.description {
        out.line("the catalog's description is another");
    }
    for change in &diff.lifecycles {
        let name = |lifecycle: Option<Lifecycle>| match lifecycle {
            Some(Lifecycle::Revisable) => "revisable",
            Some(Lifecycle::Final) => "final",
            None => "not there",
        };
        out.line(format!("product {} was {}, and is {}", change.product_id, name(change.from), name(change.to)));
    }
    let mut rows = Vec::new();
    for change in &diff.changes {
        for item in &change.entries {
            let entry = item.entry.as_ref();
            let at = |at: Option<Instant>| at.map(|at| moment(at.as_ms())).unwrap_or_default();
            rows.push([
                change.product_id.to_string(),
                item.edition_id.to_string(),
                mark_text(item.from),
                mark_text(item.to),
                at(entry.map(|entry| entry.state_changed_at)),
                at(entry.and_then(|entry| entry.release_at)),
            ]);
        }
    }
    for refused in VersionSummary::of(&to.root).refused {
        out.line(format!("refused: {}; {}", refused.message, refused.fix));
    }
    if rows.is_empty() {
        out.line("no edition differs");
    } else {
        out.table(["PRODUCT", "EDITION", "FROM", "TO", "SINCE", "RELEASE AT"], rows);
    }
}
