//! Documents as they are written (*catalog* §6.1–6.3), and what of them the writer keeps.

use std::sync::Arc;

use catalog_rules::ids::Sha256Hex;
use catalog_rules::inventory::{Document as _, EventKind, Leaf, Mark, Operation, check_entry};
use catalog_rules::layout;
use engine_rules::failure::ActivityError as _;
use serde_json::json;

use super::crashes;
use super::readers::opt_in;
use super::world::{Checked, Place, World, data, describe, differs, equal, holds, product, seq, some};
use crate::inventory::Writer;
use crate::store::simulated::{CallKind, Simulated};

/// §6.1, H6; §6.9: a writer without stage-2 support refuses a 2.x catalog, decoded at every commit.
pub(super) fn a_writer_refuses_a_catalog_that_expires(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let writer = world.writer()?;
    opt_in(&world, 0, Some(0))?;
    for error in
        [Writer::open(Arc::clone(&place.store)).err(), writer.commit(&describe(1), &super::world::by("")).err()]
    {
        equal("the refusal", error.map(|error| error.code()), Some("catalog.expires"))?;
    }
    equal("the head", world.head()?.seq(), seq(1)?)
}

/// §6.2: both history fields in every version, on every catalog.
pub(super) fn every_kind_of_version_carries_the_history_fields(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    for step in crashes::STORY {
        let operation = step(&world)?;
        holds("an operation of the story writes a version", !world.commit(&operation)?.already)?;
    }
    let kinds: std::collections::BTreeSet<_> = world.story()?.into_iter().map(|(kind, _)| kind.to_string()).collect();
    let expected =
        ["correct", "describe", "embargo-change", "reinstate", "release", "retire", "rollback", "seal", "withdraw"];
    equal("the kinds", kinds.iter().map(String::as_str).collect::<Vec<_>>(), expected.to_vec())?;
    // Every version but a correction was built from the one before it.
    let full = world.full()?;
    for n in 2..=full.head().seq().get() {
        let root = world.root(n)?;
        let correct = root.event.kind == EventKind::Correct;
        equal("built from the version before", root.previous_inventory == seq(n)?.before(), !correct)?;
    }
    world.sound().map(drop)
}

/// §6.3: every other leaf is reused by hash.
pub(super) fn a_one_product_change_writes_one_leaf_and_one_root(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    for (n, name) in (1..).zip(["a", "b", "c"]) {
        world.publish(&data(name, n, None))?;
    }
    let before = world.head()?;
    let operation = world.seal(&data("b", 9, Some(2)))?;
    let sim = Simulated::new(Arc::clone(&place.store));
    world.through(sim.client(0)).commit(&operation)?;
    let written: Vec<_> = sim.calls().into_iter().filter(|call| call.kind.is_write()).map(|call| call.path).collect();
    let after = world.head()?;
    let leaf = some("the leaf", after.root.leaf_sha256(&product("b")?))?;
    equal(
        "what was written",
        written,
        vec![layout::leaf(leaf), layout::root(after.seq()), layout::CURRENT.to_owned()],
    )?;
    for name in ["a", "c"] {
        let name = product(name)?;
        equal("another leaf", after.root.leaf_sha256(&name), before.root.leaf_sha256(&name))?;
    }
    equal("a leaf's name", Sha256Hex::of(&some("a leaf", place.get(&layout::leaf(leaf))?)?), leaf.clone())
}

/// §6.3, §6.9: an entry that changes and keeps its state.
pub(super) fn the_change_list_tells_an_entry_that_changes_and_keeps_its_state(place: &Place) -> Checked {
    let world = World::create(place, true)?;
    world.publish(&data("p", 1, None))?;
    let at = place.now()?.plus_ms(1000);
    world.commit(&world.reschedule("p", 1, Some(at))?)?;
    let changes = world.head()?.root.changes.unwrap_or_default();
    let item = some("the change", changes.first().and_then(|change| change.entries.first()))?;
    equal("from and to", (item.from, item.to), (Some(Mark::Embargoed), Some(Mark::Embargoed)))?;
    equal("its entry", item.entry.as_ref().and_then(|entry| entry.release_at), Some(at))?;
    world.sound().map(drop)
}

/// §6.3, H18, §6.9: a tombstone is marked as one and carries no entry; reinstate gives it one again.
pub(super) fn the_change_list_tells_a_retire_and_a_reinstate(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let first = data("p", 1, None);
    world.publish(&first)?;
    world.publish(&data("p", 2, Some(1)))?;
    for (operation, from, to) in [
        (world.retire("p", 1)?, Mark::Superseded, Mark::Tombstone),
        (world.reinstate(&first)?, Mark::Tombstone, Mark::Superseded),
    ] {
        world.commit(&operation)?;
        let changes = world.head()?.root.changes.unwrap_or_default();
        let change = some("the change", changes.first())?;
        let item = some("the item", change.entries.first())?;
        equal("from and to", (item.from, item.to), (Some(from), Some(to)))?;
        equal("an entry with a state", item.entry.is_some(), to == Mark::Superseded)?;
        equal("the number of items", change.entries.len(), 1)?;
        let leaf = world.head()?.root.leaf_sha256(&product("p")?).cloned();
        equal("the leaf's new name", change.leaf_sha256.to.clone(), leaf)?;
    }
    let retired = world.head()?.root.retired;
    equal("the tombstones", retired, Vec::new())?;
    world.sound().map(drop)
}

/// §6.2.
pub(super) fn a_version_that_changes_no_edition_has_an_empty_change_list(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    for operation in [Operation::Embargo(true), describe(1)] {
        world.commit(&operation)?;
        equal("the change list", world.head()?.root.changes, Some(Vec::new()))?;
    }
    world.sound().map(drop)
}

/// H10, §6.9: a correction built from an older version links root `seq - 1` and diffs against it.
pub(super) fn a_correction_built_from_an_older_version_links_the_one_before_it(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    world.publish(&data("p", 2, Some(1)))?;
    let base = world.head()?;
    world.commit(&world.correct(2)?)?;
    let root = world.head()?.root;
    equal("built from", root.previous_inventory, Some(seq(2)?))?;
    equal("the version before it", root.previous_root_sha256, Some(Some(base.root_sha256)))?;
    equal("the kind", root.event.kind, EventKind::Correct)?;
    world.is("p", &[(1, Mark::Live), (2, Mark::Superseded)])?;
    let items = root.changes.unwrap_or_default().iter().map(|change| change.entries.len()).sum::<usize>();
    equal("the items of the change list", items, 2)?;
    world.sound().map(drop)
}

/// §6.3, filled artefacts and the routing fields.
pub(super) fn a_recorded_and_a_reinstated_entry_say_what_the_manifest_says(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let first = data("p", 1, None).holds(&[("DSD", "d1", None)]);
    world.publish(&first)?;
    world.publish(&data("p", 2, Some(1)))?;
    let (name, edition) = (product("p")?, world.edition(1)?);
    let check = || -> Checked {
        let leaf = world.leaf("p")?;
        let entry = some("the entry", leaf.entry(&edition))?;
        let manifest = place.get(&layout::manifest(&name, &edition))?;
        let filled = entry.artefacts.is_some() && entry.dataflows.is_some() && entry.pull_bytes.is_some();
        holds("artefacts, dataflows and pull_bytes are filled", filled)?;
        let findings: Vec<_> = check_entry(&name, entry, manifest.as_deref()).iter().map(ToString::to_string).collect();
        equal("what differs from the manifest", findings, Vec::new())
    };
    check()?;
    world.commit(&world.retire("p", 1)?)?;
    world.commit(&world.reinstate(&first)?)?;
    check()
}

/// §6.2, Versioning: an unknown kind still reads.
pub(super) fn a_kind_of_event_that_is_newer_is_read_and_built_on(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    let newer = world.rewrite(2, |root| root.event.kind = EventKind::Other("audit".to_owned()))?;
    world.hint(2, newer, 0)?;
    equal("the kind", world.head()?.root.event.kind.to_string(), "audit".to_owned())?;
    world.publish(&data("p", 2, Some(1)))?;
    world.sound().map(drop)
}

/// §6.3, Versioning: what a newer writer put into a leaf and its entries is kept by a transition, and roots of a newer
/// major are no heads.
pub(super) fn what_a_newer_minor_added_is_carried_on(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    let mut leaf = world.leaf("p")?.as_ref().clone();
    leaf.format_version.minor += 1;
    leaf.other.insert("pool".to_owned(), json!("hot"));
    for entry in &mut leaf.editions {
        entry.other.insert("pinned".to_owned(), json!(true));
    }
    let bytes = leaf.encode()?;
    let sha256 = Sha256Hex::of(&bytes);
    world.put(&layout::leaf(&sha256), &bytes)?;
    let name = product("p")?;
    let root = world.rewrite(2, |root| {
        for change in root.changes.iter_mut().flatten() {
            change.leaf_sha256.to = Some(sha256.clone());
        }
        if let Some(reference) = root.products.get_mut(&name) {
            reference.leaf_sha256 = sha256.clone();
        }
    })?;
    world.hint(2, root, 0)?;
    world.publish(&data("p", 2, Some(1)))?;
    let kept: Leaf = world.leaf("p")?.as_ref().clone();
    equal("the leaf's field", kept.other.get("pool"), Some(&json!("hot")))?;
    equal("the leaf's version", kept.format_version, leaf.format_version)?;
    let first = some("the entry", kept.entry(&world.edition(1)?))?;
    equal("the entry's field", first.other.get("pinned"), Some(&json!(true)))?;
    let sim = Simulated::new(Arc::clone(&place.store));
    world.through(sim.client(0)).sound()?;
    if sim.calls().iter().any(|call| call.kind == CallKind::List) {
        return Err(differs("a reader's calls", &"a list", &"none"));
    }
    Ok(())
}
