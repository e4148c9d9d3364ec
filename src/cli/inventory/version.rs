//! The version that a person asked for, and how versions and what waits in them are told.

use std::collections::BTreeMap;
use std::sync::Arc;

use activities::inventory::{FullInventory, Head, InventoryError};
use catalog_rules::ids::ProductId;
use catalog_rules::instant::Instant;
use catalog_rules::inventory::{
    EmbargoedView, EntryState, Leaf, Mark, RefusedEdition, Root, Seq, embargoed, refused_in,
};

use super::ended;
use crate::args::InventoryAt;
use crate::cli::when;
use crate::exit::Ended;
use crate::output::{Output, moment};

/// A version that was asked for, and the time at which its embargoes are looked at.
pub(super) struct Asked {
    pub(super) version: Head,
    pub(super) now: Instant,
}

/// The version that `--at` or `--seq` names, or the newest.
pub(super) fn asked(inventory: &FullInventory, at: &InventoryAt, now_ms: i64) -> Result<Asked, Ended> {
    let (version, now) = match (at.seq, &at.at) {
        (Some(seq), _) => {
            let version = numbered(inventory, seq)?;
            let now = if version.seq() == inventory.head().seq() {
                Instant::from_ms(now_ms)
            } else {
                version.root.created_at
            };
            (version, now)
        }
        (None, Some(text)) => {
            let at = Instant::from_ms(whole_second(when::point("--at", text, now_ms)?, text));
            let version = inventory.version_at(at).map_err(ended)?.ok_or_else(|| {
                let message = format!("there was no version of the Inventory at {}", moment(at.as_ms()));
                Ended::usage(message).with_hint("jobctl inventory log has the versions and their times")
            })?;
            (version, at)
        }
        (None, None) => (inventory.head().clone(), Instant::from_ms(now_ms)),
    };
    Ok(Asked { version, now })
}

/// The end of the second that `text` names: what came in it counts, as a time that was copied from `inventory log` does,
/// which shows no fractions. A time with a fraction means what it says.
fn whole_second(at_ms: i64, text: &str) -> i64 {
    if at_ms % 1000 == 0 && !text.contains('.') { at_ms + 999 } else { at_ms }
}

/// Version `seq`.
pub(super) fn numbered(inventory: &FullInventory, seq: u64) -> Result<Head, Ended> {
    let newest = inventory.head().seq();
    let found = match Seq::new(seq).filter(|seq| *seq <= newest) {
        Some(seq) => inventory.version(seq).map_err(ended)?,
        None => None,
    };
    found.ok_or_else(|| {
        Ended::usage(format!("there is no version {seq} of the Inventory; the newest is {newest}"))
            .with_hint("jobctl inventory log names them")
    })
}

/// The refusal of a product that `root` does not have.
pub(super) fn unknown_product(root: &Root, product: &ProductId) -> Ended {
    const TOLD: usize = 5;
    let names: Vec<_> = root.products.keys().take(TOLD).map(ProductId::to_string).collect();
    let what = match root.products.len() {
        0 => "which has none yet".to_owned(),
        n if n > TOLD => format!("which has {n}: {} and others", names.join(", ")),
        _ => format!("which has {}", names.join(", ")),
    };
    Ended::usage(format!("there is no product {product} in version {}, {what}", root.seq))
        .with_hint("jobctl inventory products names them")
}

/// A version in a line: its number, when, who, why.
pub(super) fn headline(root: &Root) -> String {
    format!(
        "version {} of {}, {} by {}: {}",
        root.seq,
        moment(root.created_at.as_ms()),
        root.event.kind,
        root.event.actor,
        root.event.reason
    )
}

/// What waits for a release in `version`, with why the newest batch up to it refused what it refused.
pub(super) fn waiting(
    inventory: &FullInventory,
    version: &Head,
    leaves: &BTreeMap<ProductId, Arc<Leaf>>,
    now: Instant,
) -> Result<Vec<EmbargoedView>, Ended> {
    let entries = leaves.values().flat_map(|leaf| &leaf.editions);
    let since = entries.filter(|entry| entry.state == EntryState::Embargoed).map(|entry| entry.state_changed_at).min();
    let refused = match since {
        Some(since) => newest_refusals(inventory, version, since)?,
        None => Vec::new(),
    };
    Ok(embargoed(leaves, &refused, now))
}

/// The refusals of the newest version up to `version` that has any. Before `since` nothing of what waits was recorded.
fn newest_refusals(inventory: &FullInventory, version: &Head, since: Instant) -> Result<Vec<RefusedEdition>, Ended> {
    let mut found = Vec::new();
    back_from(inventory, version, |version| {
        found = refused_in(&version.root);
        found.is_empty() && version.root.created_at >= since
    })?;
    Ok(found)
}

/// Goes from `version` towards the first, until `visit` says that it has seen enough. Roots that are not valid are passed
/// over; one that is not there ends it.
pub(super) fn back_from(
    inventory: &FullInventory,
    version: &Head,
    mut visit: impl FnMut(&Head) -> bool,
) -> Result<(), Ended> {
    if !visit(version) {
        return Ok(());
    }
    let mut next = version.seq().before();
    while let Some(seq) = next {
        match inventory.version(seq) {
            Ok(Some(version)) if visit(&version) => {}
            Ok(Some(_) | None) => return Ok(()),
            Err(InventoryError::VersionInvalid { .. }) => {}
            Err(error) => return Err(ended(error)),
        }
        next = seq.before();
    }
    Ok(())
}

/// Prints what waits for a release; nothing when nothing does.
pub(super) fn tell_waiting(out: Output, waiting: &[EmbargoedView]) {
    if waiting.is_empty() {
        return;
    }
    let rows = waiting.iter().map(|view| {
        let until = match view.release_at {
            Some(at) if view.due => format!("{}, due", moment(at.as_ms())),
            Some(at) => moment(at.as_ms()),
            None => "no time is set".to_owned(),
        };
        let why = view.refused.as_ref().map(|refused| format!("{}; {}", refused.message, refused.fix));
        [view.product_id.to_string(), view.edition_id.to_string(), until, why.unwrap_or_default()]
    });
    out.line("embargoed:");
    out.table(["PRODUCT", "EDITION", "UNTIL", "REFUSED"], rows.collect());
}

/// A mark, or what the absence of one means.
pub(super) fn mark_text(mark: Option<Mark>) -> String {
    mark.map_or_else(|| "-".to_owned(), |mark| mark.to_string())
}
