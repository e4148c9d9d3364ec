//! What public reports on systems of this kind tell of, beyond what the other modules hold.

use std::sync::Arc;

use catalog_rules::inventory::Mark;
use catalog_rules::layout;
use engine_rules::failure::ActivityError as _;

use super::world::{Checked, Place, World, by, contains, data, describe, equal, holds, product, seq, some};
use crate::inventory::InventoryError;
use crate::store::simulated::{Act, CallKind, Fault, Late, On, Simulated};

/// A kill between root and CURRENT: the next writer advances CURRENT and commits.
pub(super) fn a_killed_writer_between_root_and_current_is_followed_by_the_next_one(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let operation = world.seal(&data("p", 1, None))?;
    let sim = Simulated::new(Arc::clone(&place.store));
    sim.at(On::Current, 0, Act::Fault(Fault::Killed));
    let killed = world.through(sim.client(0)).writer()?.commit(&operation, &by("run-a"));
    holds("the killed one told nothing", killed.is_err())?;
    equal("CURRENT", world.current()?.map(|current| current.seq), Some(seq(1)?))?;
    // Readers are there already.
    equal("what the public sees", world.shown()?, world.editions(&[1])?)?;
    let next = world.publish(&data("q", 2, None))?;
    equal("the next version", next.seq, seq(3)?)?;
    equal("CURRENT", world.current()?.map(|current| current.seq), Some(seq(3)?))?;
    let again = world.writer()?.commit(&operation, &by("run-a"))?;
    equal("what its next run is told", (again.seq, again.already, again.state), (seq(2)?, true, Some(Mark::Live)))?;
    world.sound().map(drop)
}

/// A commit that lands 30 seconds after the client gave up, with another writer in between: its name is taken.
pub(super) fn a_late_root_that_lost_to_another_writer_is_written_once(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let operation = world.seal(&data("p", 1, None))?;
    let sim = Simulated::new(Arc::clone(&place.store));
    let faulty = world.through(sim.client(0));
    sim.at(On::Root, 0, Act::Fault(Fault::Late(Late::Ms(30_000))));
    let gave_up = some("an error", faulty.writer()?.commit(&operation, &by("run-a")).err())?;
    equal("what the client is told", gave_up.code(), "store.unsettled")?;
    equal("the other writer's version", faulty.publish(&data("q", 2, None))?.seq, seq(2)?)?;
    sim.advance_ms(30_000);
    equal("what is under way", sim.under_way(), 0)?;
    equal("the head", world.head()?.seq(), seq(2)?)?;
    let again = faulty.writer()?.commit(&operation, &by("run-a"))?;
    equal("its version", (again.seq, again.already), (seq(3)?, false))?;
    equal("the runs", world.sound()?.iter().filter(|run| *run == "run-a").count(), 1)
}

/// The same, where it landed first, and somebody built on it and took it back meanwhile.
pub(super) fn a_late_root_that_another_writer_built_on_is_recognised_with_what_became_of_it(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    let operation = world.seal(&data("p", 2, Some(1)))?;
    let sim = Simulated::new(Arc::clone(&place.store));
    let faulty = world.through(sim.client(0));
    sim.at(On::Root, 0, Act::Fault(Fault::Late(Late::Ms(30_000))));
    holds("the client gave up", faulty.writer()?.commit(&operation, &by("run-a")).is_err())?;
    sim.advance_ms(30_000);
    faulty.commit(&world.rollback("p")?)?;
    let again = faulty.writer()?.commit(&operation, &by("run-a"))?;
    equal("its version", (again.seq, again.already, again.state), (seq(3)?, true, Some(Mark::Withdrawn)))?;
    equal("the head", world.head()?.seq(), seq(4)?)?;
    equal("what the public sees", world.shown()?, world.editions(&[1])?)?;
    world.sound().map(drop)
}

/// A leaf deleted between its existence check and the root: readers and writers name it, and nobody takes the product
/// for gone.
pub(super) fn a_leaf_deleted_before_the_root_is_missed_and_named(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let other = world.publish(&data("q", 2, None))?;
    let operation = world.seal(&data("p", 1, None))?;
    let rival = world.meanwhile(&On::Root, Act::Before, |rival| {
        let head = rival.head()?.root;
        let kept = head.leaf_sha256(&product("q")?).map(layout::leaf);
        for name in rival.store.list(layout::LEAVES)?.objects {
            let path = format!("{}/{name}", layout::LEAVES);
            if Some(&path) != kept.as_ref() {
                rival.store.delete(&path)?;
            }
        }
        Ok(())
    });
    // The root is the commit point: the version stands whatever its writer is told.
    let _ = rival.world.writer()?.commit(&operation, &by("run-a"));
    rival.happened()?;
    holds("the version is there", world.head()?.seq() > other.seq)?;
    let path = world.head()?.root.leaf_sha256(&product("p")?).map(layout::leaf);
    let named = |error: Option<InventoryError>| -> Checked {
        let error = some("an error", error)?;
        equal("the error", error.code(), "catalog.leaf")?;
        contains("the error", &error.to_string(), &["product p", "is missing", path.as_deref().unwrap_or("a path")])?;
        contains("its fix", &error.hint().unwrap_or_default(), &["restore inventory/leaves/", "from a backup"])
    };
    named(world.live()?.editions().err())?;
    named(world.full()?.leaf(&product("p")?).err())?;
    named(world.writer()?.commit(&world.seal(&data("p", 3, Some(1)))?, &by("run-b")).err())?;
    equal("the other product", world.live()?.product(&product("q")?)?.len(), 1)?;
    equal("the head", world.head()?.seq(), other.seq.next())
}

/// A rollback in the middle of a publish: its edition was built on what is withdrawn now (D24 looks at build, too).
pub(super) fn a_rollback_in_the_middle_of_a_publish_refuses_its_record(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    world.publish(&data("p", 2, Some(1)))?;
    let sealed = world.seal(&data("p", 3, Some(2)))?;
    // Before the record, and while it is under way.
    let rival = world.meanwhile(&On::Root, Act::Before, |rival| rival.commit(&rival.rollback("p")?).map(drop));
    let raced = rival.world.writer()?.commit(&sealed, &by("run-a")).err();
    rival.happened()?;
    let later = world.writer()?.commit(&sealed, &by("run-a")).err();
    for refused in [raced, later] {
        let refused = some("a refusal", refused)?;
        equal("the refusal", refused.code(), "catalog.built_on_withdrawn")?;
        let [edition, base, live] = [world.edition(3)?, world.edition(2)?, world.edition(1)?];
        contains("the refusal", &refused.to_string(), &[edition.as_str(), base.as_str(), live.as_str(), "withdrawn"])?;
        let fix = refused.hint().unwrap_or_default();
        contains("its fix", &fix, &["jobctl edition discard", "jobctl run publish --product p"])?;
    }
    // The fix: discard it, then build from the live edition.
    world.publish(&data("p", 4, Some(1)))?;
    world.is("p", &[(1, Mark::Superseded), (2, Mark::Withdrawn), (4, Mark::Live)])?;
    world.sound().map(drop)
}

/// The store commits, drops the answer, and cannot be read either.
pub(super) fn a_lost_answer_whose_reading_back_fails_too_is_settled_by_the_rerun(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let operation = describe(1);
    let sim = Simulated::new(Arc::clone(&place.store));
    let faulty = world.through(sim.client(0));
    sim.at(On::Root, 0, Act::Fault(Fault::Done));
    // The first look at that name finds it free; the second reads back.
    sim.at(On::At(CallKind::Get, layout::root(seq(2)?)), 1, Act::Fault(Fault::Refused));
    holds("the first attempt told nothing", faulty.writer()?.commit(&operation, &by("run-a")).is_err())?;
    holds("both happened", sim.is_played())?;
    let again = faulty.writer()?.commit(&operation, &by("run-a"))?;
    equal("its version", (again.seq, again.already), (seq(2)?, true))?;
    world.sound().map(drop)
}
