//! Finding the newest version (*catalog* §6.6; *history*, The reader; H13, D32), and §6.9's cases of a reader.

use std::sync::Arc;

use bytes::Bytes;
use catalog_rules::ids::Sha256Hex;
use catalog_rules::inventory::Document as _;
use catalog_rules::layout;
use engine_rules::failure::ActivityError as _;
use serde_json::{Value, json};

use super::world::{
    Checked, Failure, Place, World, alerts, by, contains, data, describe, equal, holds, product, seq, some,
};
use crate::inventory::{FullInventory, LiveInventory, fetch_from};
use crate::store::simulated::{CallKind, On, Simulated};

/// A catalog of five versions without a product.
fn five(place: &Place) -> Result<World, Failure> {
    let world = World::create(place, false)?;
    for n in 2..=5 {
        world.commit(&describe(n))?;
    }
    Ok(world)
}

fn catalog(world: &World) -> Result<Value, Failure> {
    Ok(serde_json::from_slice(&some("catalog.json", world.store.get(layout::CATALOG)?)?)?)
}

/// `catalog.json` of another epoch.
pub(super) fn epoch(world: &World, epoch: u64) -> Checked {
    let mut document = catalog(world)?;
    document["restore_epoch"] = json!(epoch);
    world.put(layout::CATALOG, document.to_string())
}

/// A catalog that expires, in `restore_epoch`, whose versions up to `expired_through` are gone; without HISTORY if that
/// is `None`.
pub(super) fn opt_in(world: &World, restore_epoch: u64, expired_through: Option<u64>) -> Checked {
    let mut document = catalog(world)?;
    document["format_version"] = json!("2.0");
    document["history"] = json!({"since_seq": 1});
    world.put(layout::CATALOG, document.to_string())?;
    let Some(expired_through) = expired_through else { return Ok(()) };
    let history = json!({"format_version": "1.0", "catalog_id": document["catalog_id"], "restore_epoch": restore_epoch,
        "expired_through": expired_through, "newest_segment": null, "newest_segment_sha256": null,
        "cleaned_through": null});
    world.put(layout::HISTORY, history.to_string())
}

/// What a new reader finds, and what it passed over.
fn found(world: &World) -> Result<(u64, String), Failure> {
    let inventory = world.full()?;
    Ok((inventory.head().seq().get(), alerts(inventory.alerts())))
}

/// The code of what a new reader fails with.
fn fails(world: &World) -> Option<&'static str> {
    FullInventory::open(fetch_from(Arc::clone(&world.store))).err().map(|error| error.code())
}

/// No LIST; CURRENT and roots only while CURRENT verifies.
pub(super) fn a_reader_probes_forward_and_lists_nothing(place: &Place) -> Checked {
    five(place)?;
    let sim = Simulated::new(Arc::clone(&place.store));
    FullInventory::open(fetch_from(sim.client(0)))?;
    let read: Vec<_> = sim.calls().into_iter().map(|call| (call.kind, call.path)).collect();
    let get = |path: String| (CallKind::Get, path);
    let expected = [layout::CURRENT.to_owned(), layout::root(seq(5)?), layout::root(seq(6)?)].map(get);
    equal("the calls", read, expected.to_vec())
}

/// A hard case.
pub(super) fn current_three_versions_behind_costs_three_probes(place: &Place) -> Checked {
    let world = five(place)?;
    world.hint_at(2)?;
    let sim = Simulated::new(Arc::clone(&place.store));
    let inventory = FullInventory::open(fetch_from(sim.client(0)))?;
    equal("the head", (inventory.head().seq(), alerts(inventory.alerts())), (seq(5)?, String::new()))?;
    equal("the reads: CURRENT, its root, three versions, and one that is not there", sim.calls().len(), 6)?;
    // And a writer builds on the newest one.
    equal("the version", world.commit(&describe(9))?.seq, seq(6)?)?;
    world.sound().map(drop)
}

/// D32; a hard case: `CURRENT` with seq 2^53.
pub(super) fn current_with_an_absurd_number_counts_as_missing(place: &Place) -> Checked {
    let world = five(place)?;
    for n in [1 << 53, (1 << 53) + 1, 999_999_999_999, 7] {
        world.hint(n, Sha256Hex::of(b"x"), 0)?;
        let sim = Simulated::new(Arc::clone(&place.store));
        let inventory = FullInventory::open(fetch_from(sim.client(0)))?;
        equal("the head", inventory.head().seq(), seq(5)?)?;
        contains("the alert", &alerts(inventory.alerts()), &[&format!("names version {n}, which is not there")])?;
        holds("no walk back from there", sim.calls().len() < 12)?;
    }
    equal("the version", world.commit(&describe(9))?.seq, seq(6)?)?;
    world.sound().map(drop)
}

/// §6.9: CURRENT missing on a 1.x catalog.
pub(super) fn current_is_missing_on_a_catalog_that_keeps_its_versions(place: &Place) -> Checked {
    let world = five(place)?;
    for damage in [None, Some(""), Some("{\"seq\":5,")] {
        place.delete(layout::CURRENT)?;
        if let Some(bytes) = damage {
            world.put(layout::CURRENT, bytes)?;
        }
        let (head, said) = found(&world)?;
        equal("the head", head, 5)?;
        contains("the alert", &said, &["CURRENT"])?;
    }
    world.commit(&describe(9))?;
    world.sound().map(drop)
}

/// §6.9: CURRENT missing on a 2.x catalog: nothing at or below `expired_through` is looked at.
pub(super) fn current_is_missing_on_a_catalog_that_expires(place: &Place) -> Checked {
    let world = five(place)?;
    opt_in(&world, 0, Some(3))?;
    // Version 1 is a checkpoint, and not the head.
    for n in [2, 3] {
        place.delete(&layout::root(seq(n)?))?;
    }
    place.delete(layout::CURRENT)?;
    let sim = Simulated::new(Arc::clone(&place.store));
    let inventory = FullInventory::open(fetch_from(sim.client(0)))?;
    equal("the head", inventory.head().seq(), seq(5)?)?;
    let roots = sim.calls().iter().filter(|call| layout::seq_of_root(&call.path).is_some()).count();
    equal("the roots that were asked for: 4, 5 and the absent 6", roots, 3)?;
    opt_in(&world, 0, Some(5))?;
    equal("a reader with nothing above what expired", fails(&world), Some("catalog.no_version"))
}

/// §6.9.
pub(super) fn without_history_a_catalog_that_expires_fails_closed(place: &Place) -> Checked {
    let world = five(place)?;
    opt_in(&world, 0, None)?;
    equal("with CURRENT", found(&world)?, (5, String::new()))?;
    place.delete(layout::CURRENT)?;
    equal("without", fails(&world), Some("catalog.no_history"))
}

/// §6.9.
pub(super) fn a_held_version_that_expired_is_dropped(place: &Place) -> Checked {
    let world = five(place)?;
    let mut held = world.full()?;
    place.delete(layout::CURRENT)?;
    opt_in(&world, 0, Some(5))?;
    equal("a refresh", held.refresh().err().map(|error| error.code()), Some("catalog.no_version"))?;
    opt_in(&world, 0, Some(4))?;
    holds("nothing newer is there", !held.refresh()?)?;
    equal("the head", held.head().seq(), seq(5)?)
}

/// §6.9: from HISTORY on a 2.x catalog and from catalog.json on a 1.x one.
pub(super) fn the_epoch_is_from_history_where_versions_expire_and_else_from_the_catalog(place: &Place) -> Checked {
    let world = five(place)?;
    place.delete(layout::CURRENT)?;
    let restored = world.rewrite(5, |root| root.restore_epoch = 1)?;
    // 1.x, epoch 0: version 5 is of an epoch that the catalog never had.
    equal("the head", found(&world)?.0, 4)?;
    epoch(&world, 1)?;
    equal("the head", found(&world)?.0, 5)?;
    // 2.x: HISTORY is written first, catalog.json still says 0.
    epoch(&world, 0)?;
    opt_in(&world, 1, Some(0))?;
    equal("the head", found(&world)?.0, 5)?;
    equal("its hash", world.head()?.root_sha256, restored)?;
    // A crash of a restore between HISTORY and its root: no root of the new epoch.
    opt_in(&world, 2, Some(0))?;
    equal("a reader of an epoch without a root", fails(&world), Some("catalog.no_version"))
}

/// §6.6: an epoch only rises along the chain, whatever is left under higher numbers.
pub(super) fn a_root_from_before_a_restore_is_passed_over(place: &Place) -> Checked {
    let world = five(place)?;
    epoch(&world, 1)?;
    let restored = world.rewrite(4, |root| root.restore_epoch = 1)?;
    world.hint(4, restored, 1)?;
    for current in [true, false] {
        if !current {
            place.delete(layout::CURRENT)?;
        }
        let inventory = world.full()?;
        equal("the head", inventory.head().seq(), seq(4)?)?;
        // By the fallback it is no fault, since the restore deletes it in a moment.
        if current {
            contains(
                "the alert",
                &alerts(inventory.alerts()),
                &["version 5", "its restore epoch is 0, and 1 was expected"],
            )?;
        }
    }
    Ok(())
}

/// The fallback: the version before it, and the ones after it.
pub(super) fn a_root_that_current_does_not_verify_is_walked_back_from(place: &Place) -> Checked {
    let world = five(place)?;
    world.hint(5, Sha256Hex::of(b"x"), 0)?;
    let (head, said) = found(&world)?;
    equal("the head", head, 4)?;
    contains("the alert", &said, &["version 5 is not valid"])?;
    world.hint(3, Sha256Hex::of(b"x"), 0)?;
    equal("the head", found(&world)?.0, 5)?;
    // With two damaged ones, and with a reader that holds version 4.
    world.hint_at(4)?;
    let mut held = world.full()?;
    equal("the head", held.head().seq(), seq(5)?)?;
    for n in [4, 5] {
        world.put(&layout::root(seq(n)?), b"{}")?;
    }
    equal("the head", found(&world)?.0, 3)?;
    holds("nothing moves", !held.refresh()?)?;
    equal("the held one", held.head().seq(), seq(5)?)
}

/// "Never accepts a lower seq than one it already holds, unless restore_epoch changed."
pub(super) fn a_reader_never_goes_back_within_an_epoch(place: &Place) -> Checked {
    let world = five(place)?;
    let mut held = world.full()?;
    for n in [4, 5] {
        place.delete(&layout::root(seq(n)?))?;
    }
    world.hint_at(3)?;
    holds("nothing moves", !held.refresh()?)?;
    place.delete(layout::CURRENT)?;
    holds("without CURRENT as well", !held.refresh()?)?;
    equal("the held one", held.head().seq(), seq(5)?)?;
    equal("a new reader knows no better", found(&world)?.0, 3)?;
    epoch(&world, 1)?;
    let restored = world.rewrite(3, |root| root.restore_epoch = 1)?;
    world.hint(3, restored, 1)?;
    holds("another epoch resets the floor", held.refresh()?)?;
    equal("the held one", held.head().seq(), seq(3)?)?;
    world.hint(2, Sha256Hex::of(b"x"), 0)?;
    holds("an older epoch does not", !held.refresh()?)?;
    contains("the alert", &alerts(held.alerts()), &["CURRENT is of restore epoch 0, before 1"])
}

/// A damaged root is planted at the head: the writer refuses and names `repair-head`, readers stay on the last valid
/// version and say so (D16).
fn planted(place: &Place, damage: impl Fn(&[u8]) -> Bytes) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    let mut held = world.full()?;
    let whole = world.root_bytes(2)?;
    let operation = world.seal(&data("p", 2, Some(1)))?;
    // Beyond the head, as a crash of a writer that is not ours leaves it; then with CURRENT on it.
    world.put(&layout::root(seq(3)?), damage(&whole))?;
    for current in [false, true] {
        if current {
            world.hint(3, Sha256Hex::of(&whole), 0)?;
        }
        let error = world.writer()?.commit(&operation, &by("run-a")).err();
        let error = some("a refusal", error)?;
        equal("the refusal", error.code(), "catalog.head_invalid")?;
        contains("the refusal", &error.to_string(), &["version 3 at the head", "not valid"])?;
        contains("its fix", &error.hint().unwrap_or_default(), &["jobctl run repair-head --seq 3"])?;
        equal("the next version", place.get(&layout::root(seq(4)?))?, None)?;
        let (head, said) = found(&world)?;
        equal("the head", head, 2)?;
        contains("the alert", &said, &["version 3 is not valid and was passed over"])?;
        holds("nothing moves", !held.refresh()?)?;
        contains("the alert", &alerts(held.alerts()), &["version 3 is not valid"])?;
        equal("what the public sees", world.shown()?, world.editions(&[1])?)?;
    }
    // Once it is gone, everything goes on.
    place.delete(&layout::root(seq(3)?))?;
    equal("the version", world.commit(&operation)?.seq, seq(3)?)?;
    holds("the reader moves on", held.refresh()?)?;
    world.sound().map(drop)
}

/// A hard case.
pub(super) fn an_empty_root_at_the_head_stops_writers_and_no_reader(place: &Place) -> Checked {
    planted(place, |_| Bytes::new())
}

/// A hard case.
pub(super) fn half_a_root_at_the_head_stops_writers_and_no_reader(place: &Place) -> Checked {
    planted(place, |whole| Bytes::copy_from_slice(&whole[..whole.len() / 2]))
}

/// Conditional reload.
pub(super) fn a_reload_reads_the_changed_leaves_and_nothing_else(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    for (n, name) in (1..).zip(["a", "b", "c"]) {
        world.publish(&data(name, n, None))?;
    }
    let sim = Simulated::new(Arc::clone(&place.store));
    let mut live = LiveInventory::open(fetch_from(sim.client(0)))?;
    equal("what is live", live.editions()?.len(), 3)?;
    let before = sim.calls().len();
    world.publish(&data("b", 9, Some(2)))?;
    holds("there is a newer version", live.refresh()?)?;
    equal("what is live", live.editions()?.len(), 3)?;
    let root = world.head()?.root;
    let leaf = some("the leaf", root.leaf_sha256(&product("b")?))?;
    let read: Vec<_> = sim.calls().into_iter().skip(before).map(|call| call.path).collect();
    let (five, six) = (layout::root(seq(5)?), layout::root(seq(6)?));
    equal("what was read", read, vec![layout::CURRENT.to_owned(), five, six, layout::leaf(leaf)])?;
    equal("the root that was read is whole", root.encode()?.is_empty(), false)?;
    equal("the lists", sim.count(&On::Kind(CallKind::List)), 0)
}
