//! Writing a version (*catalog* §6.6).

use std::collections::BTreeSet;
use std::sync::Arc;

use catalog_rules::inventory::{EventKind, Mark, Operation, Release};
use catalog_rules::layout;
use engine_rules::failure::ActivityError as _;

use super::readers::{epoch, opt_in};
use super::world::{Checked, Place, World, by, contains, data, describe, equal, holds, product, seq, some};
use crate::inventory::advance_current;
use crate::store::simulated::{Act, CallKind, On, Simulated};

const MINUTE: i64 = 60_000;

/// The write order, under the lock from the first leaf on.
pub(super) fn a_version_is_written_as_leaves_then_root_then_current(place: &Place) -> Checked {
    let world = World::create(place, true)?;
    for (n, name) in (1..).zip(["a", "b", "c"]) {
        world.publish(&data(name, n, None))?;
    }
    let operation = world.release(&["a", "b", "c"])?;
    let sim = Simulated::new(Arc::clone(&place.store));
    world.through(sim.client(0)).commit(&operation)?;
    let calls = sim.calls();
    let asked = |call: &crate::store::simulated::Call| call.kind.is_write() || call.kind == CallKind::Lock;
    let order: Vec<_> = calls
        .iter()
        .filter(|call| asked(call))
        .map(|call| match call.kind {
            CallKind::Lock => "lock",
            _ if On::Leaf.is(call.kind, &call.path) => "leaf",
            _ if On::Root.is(call.kind, &call.path) => "root",
            _ if On::Current.is(call.kind, &call.path) => "CURRENT",
            _ => "something else",
        })
        .collect();
    equal("the writes", order, vec!["lock", "leaf", "leaf", "leaf", "root", "CURRENT"])?;
    let lists = calls.iter().filter(|call| call.kind == CallKind::List).count();
    equal("the lists", lists, 0)?;
    world.sound().map(drop)
}

/// Retry; §6.9: a writer that loses the race rebuilds its change list against the new head.
pub(super) fn a_writer_that_lost_the_race_builds_on_the_new_head(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let operation = world.seal(&data("p", 1, None))?;
    let rival = world.meanwhile(&On::Root, Act::Before, |rival| {
        rival.publish(&data("q", 2, None))?;
        rival.publish(&data("r", 3, None)).map(drop)
    });
    let committed = rival.world.commit(&operation)?;
    rival.happened()?;
    equal("the version", (committed.seq.get(), committed.already), (4, false))?;
    let changes = world.head()?.root.changes.unwrap_or_default();
    equal("its change list", changes.iter().map(|change| change.product_id.clone()).collect(), vec![product("p")?])?;
    world.sound().map(drop)
}

/// Retry: fast-forward, the expected live edition, the release time.
pub(super) fn a_writer_that_lost_the_race_asks_every_precondition_again(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    world.publish(&data("p", 2, Some(1)))?;
    // A record whose base is not live any more.
    let record = world.seal(&data("p", 3, Some(2)))?;
    let rival = world.meanwhile(&On::Root, Act::Before, |rival| rival.publish(&data("p", 4, Some(2))).map(drop));
    let refused = rival.world.writer()?.commit(&record, &by("run-a")).err();
    rival.happened()?;
    equal("the record", refused.map(|error| error.code()), Some("catalog.not_fast_forward"))?;
    // A rollback of what is not live any more.
    let rollback = world.rollback("p")?;
    let rival = world.meanwhile(&On::Root, Act::Before, |rival| rival.publish(&data("p", 5, Some(4))).map(drop));
    let refused = rival.world.writer()?.commit(&rollback, &by("run-b")).err();
    rival.happened()?;
    equal("the rollback", refused.map(|error| error.code()), Some("catalog.live_changed"))?;
    // A release of what was put off.
    world.commit(&Operation::Embargo(true))?;
    world.publish(&data("q", 6, None).due(place.now()?.plus_ms(-1)))?;
    let rival =
        world.meanwhile(&On::Root, Act::Before, |rival| rival.commit(&rival.reschedule("q", 6, None)?).map(drop));
    let committed = rival.world.commit(&Operation::Release(Release::Due))?;
    rival.happened()?;
    holds("nothing is due any more", committed.already)?;
    equal("the edition", world.mark("q", 6)?, Some(Mark::Embargoed))?;
    world.sound().map(drop)
}

/// The embargo header: a hard case.
pub(super) fn a_stale_automatic_release_writes_nothing_live_after_embargo_was_turned_on(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    let operation = world.seal(&data("p", 2, Some(1)))?;
    let rival = world.meanwhile(&On::Root, Act::Before, |rival| rival.commit(&Operation::Embargo(true)).map(drop));
    let committed = rival.world.commit(&operation)?;
    rival.happened()?;
    equal("the edition", committed.state, Some(Mark::Embargoed))?;
    equal("what the public sees", world.shown()?, world.editions(&[1])?)?;
    world.sound().map(drop)
}

/// `created_at`.
pub(super) fn time_rises_by_a_millisecond_after_a_base_that_is_ahead(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let ahead = place.now()?.plus_ms(4 * MINUTE);
    let base = world.rewrite(1, |root| root.created_at = ahead)?;
    world.hint(1, base, 0)?;
    world.publish(&data("p", 1, None))?;
    equal("the time", world.head()?.root.created_at, ahead.plus_ms(1))?;
    let since = world.leaf("p")?.editions.first().map(|entry| entry.state_changed_at);
    equal("the entry's time", since, Some(ahead.plus_ms(1)))?;
    world.sound().map(drop)
}

/// `created_at`; a hard case: a root in the future.
pub(super) fn a_base_more_than_five_minutes_ahead_is_refused_by_its_time(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let ahead = place.now()?.plus_ms(7 * MINUTE);
    let base = world.rewrite(1, |root| root.created_at = ahead)?;
    world.hint(1, base, 0)?;
    let refused = world.refuse_edition(&data("p", 1, None), "catalog.clock_behind")?;
    contains("the refusal", &refused.to_string(), &["§6.6", &ahead.to_string(), "5 minutes"])?;
    // A reader does not mind.
    equal("the head", world.head()?.root.created_at, ahead)
}

/// `created_at`, §6.9: monotone across an epoch change.
pub(super) fn time_rises_across_a_change_of_epoch(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.commit(&describe(1))?;
    let ahead = place.now()?.plus_ms(4 * MINUTE);
    let base = world.rewrite(2, |root| root.created_at = ahead)?;
    epoch(&world, 1)?;
    let mut restored = world.root(2)?;
    restored.seq = seq(3)?;
    restored.restore_epoch = 1;
    restored.previous_inventory = Some(seq(2)?);
    restored.previous_root_sha256 = Some(Some(base));
    restored.changes = Some(Vec::new());
    restored.created_at = ahead.plus_ms(1);
    restored.event.kind = EventKind::Restore;
    let bytes = catalog_rules::inventory::Document::encode(&restored)?;
    world.put(&layout::root(seq(3)?), &bytes)?;
    world.hint(3, catalog_rules::ids::Sha256Hex::of(&bytes), 1)?;
    world.commit(&describe(2))?;
    let root = world.head()?.root;
    equal("the version", (root.seq.get(), root.restore_epoch, root.created_at), (4, 1, ahead.plus_ms(2)))?;
    world.sound().map(drop)
}

/// D15.
pub(super) fn a_restore_that_was_not_finished_blocks_every_writer(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    epoch(&world, 1)?;
    let refused = world.refuse(&describe(1), "catalog.unfinished_restore")?;
    contains("the refusal", &refused.to_string(), &["catalog.json has restore epoch 1", "newest version 0"])
}

/// D1: the epoch changed between the look at the head and the root.
pub(super) fn a_version_of_an_old_epoch_is_taken_back(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let operation = world.seal(&data("p", 1, None))?;
    let rival = world.meanwhile(&On::Root, Act::After, |rival| epoch(rival, 1));
    let refused = rival.world.writer()?.commit(&operation, &by("run-a")).err();
    rival.happened()?;
    equal("the commit", refused.map(|error| error.code()), Some("catalog.unfinished_restore"))?;
    equal("its root", place.get(&layout::root(seq(2)?))?, None)?;
    equal("the head", world.head()?.seq(), seq(1)?)
}

/// D1, §6.9: `expired_through` is looked at again after the root.
pub(super) fn a_version_under_a_number_that_expired_is_taken_back(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let operation = world.seal(&data("p", 1, None))?;
    let rival = world.meanwhile(&On::Root, Act::After, |rival| opt_in(rival, 0, Some(2)));
    let refused = rival.world.writer()?.commit(&operation, &by("run-a")).err();
    rival.happened()?;
    // Once more on the new head: and this writer knows nothing of expiry.
    equal("the commit", refused.map(|error| error.code()), Some("catalog.expires"))?;
    equal("its root", place.get(&layout::root(seq(2)?))?, None)
}

/// `CURRENT`, forward only; D32.
pub(super) fn current_only_moves_forward(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    for n in 1..=4 {
        world.commit(&describe(n))?;
    }
    let newest = world.current()?;
    let third = some("version 3", world.full()?.version(seq(3)?)?)?;
    advance_current(place.store.as_ref(), &third)?;
    equal("CURRENT", world.current()?, newest.clone())?;
    // A newer one that is not there, or not as the hint says, holds nobody back.
    for n in [9, 5] {
        world.hint(n, catalog_rules::ids::Sha256Hex::of(b"x"), 0)?;
        advance_current(place.store.as_ref(), &third)?;
        equal("CURRENT", world.current()?, Some(third.current()))?;
    }
    // Nobody's write in between is lost: the newer one of two stays.
    let rival = world.meanwhile(&On::Current, Act::Before, |rival| rival.commit(&describe(9)).map(drop));
    let fifth = some("version 5", world.full()?.version(seq(5)?)?)?;
    advance_current(rival.world.store.as_ref(), &fifth)?;
    rival.happened()?;
    equal("CURRENT", world.current()?.map(|current| current.seq), Some(seq(6)?))?;
    world.sound().map(drop)
}

/// "The release job brings CURRENT up to the newest root on startup."
pub(super) fn a_release_brings_current_up_when_it_starts(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    for n in 1..=4 {
        world.commit(&describe(n))?;
    }
    world.hint_at(2)?;
    equal("the head", world.writer()?.advance_current()?, seq(5)?)?;
    equal("CURRENT", world.current()?.map(|current| current.seq), Some(seq(5)?))?;
    place.delete(layout::CURRENT)?;
    world.writer()?.advance_current()?;
    equal("what the public sees", world.shown()?, BTreeSet::new())?;
    world.sound().map(drop)
}
