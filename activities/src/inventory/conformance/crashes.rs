//! Every kind of operation, with every write of it lost, late, not done, or the last thing that its writer did
//! (*catalog* §6.6, §6.7; D2, D34).

use std::sync::Arc;

use catalog_rules::inventory::{
    Lifecycle, Mark, Mode, Operation, PENDING_FORMAT, PendingRegistration, Registration, Release, Repair,
    SchemaVersion, Sealed, Seq, repair_plan,
};
use catalog_rules::layout;
use engine_rules::failure::{ActivityError as _, Disposition};

use super::within::within;
use super::world::{Checked, Failure, Place, World, by, data, describe, differs, equal, holds, product, some};
use crate::inventory::{Committed, InventoryError};
use crate::store::simulated::{Act, CallKind, Fault, Late, On, Simulated};

/// An operation, made from what the catalog is when its turn comes.
pub(super) type Step = fn(&World) -> Result<Operation, Failure>;

/// Every kind of operation at least once, each of which writes a version: on a new catalog with embargo off.
pub(super) const STORY: &[Step] = &[
    |_| Ok(describe(1)),
    |world| world.seal(&data("p", 1, None)),
    |world| world.seal(&data("p", 2, Some(1))),
    |_| Ok(Operation::Embargo(true)),
    |world| world.seal(&data("p", 3, Some(2)).due(world.store.now()?.plus_ms(-1000))),
    |world| world.seal(&data("p", 4, Some(2))),
    |world| {
        Ok(Operation::Supersede { product_id: product("p")?, edition_id: world.edition(4)?, by: world.edition(3)? })
    },
    |world| world.reschedule("p", 3, Some(world.store.now()?.plus_ms(-500))),
    |_| Ok(Operation::Release(Release::Due)),
    |world| world.seal(&data("q", 5, None)),
    |world| world.cancel("q", 5),
    |world| world.rollback("p"),
    |world| world.retire("p", 3),
    |world| world.reinstate(&data("p", 3, Some(2)).due(world.store.now()?.plus_ms(-1000))),
    |_| Ok(Operation::SetLifecycle { product_id: product("q")?, lifecycle: Lifecycle::Final }),
    |world| world.seal(&data("p", 6, Some(2)).at_schema("2.53")),
    |world| world.release(&["p"]),
    |_| {
        let products = Some(std::collections::BTreeSet::from([product("p")?]));
        Ok(Operation::SupersedeSchema { schema_version: SchemaVersion::new("2.52-jobctl.1"), products })
    },
    |world| Ok(Operation::WithdrawLive { product_id: product("p")?, if_live: world.editions(&[6])? }),
    |_| Ok(Operation::Embargo(false)),
    |_| Ok(describe(2)),
    fold,
    |world| world.correct(18),
];

fn fold(world: &World) -> Result<Operation, Failure> {
    let record = world.record(&data("r", 7, None))?;
    let pending = PendingRegistration {
        format_version: PENDING_FORMAT,
        product_id: record.product_id.clone(),
        edition_id: record.entry.edition_id.clone(),
        previous: None,
        manifest_sha256: record.entry.manifest_sha256.clone(),
        release_at: None,
        kind: record.kind,
        lifecycle: None,
        structure_source: None,
        supersedes: None,
        actor: "publisher@build".to_owned(),
        reason: "monthly".to_owned(),
        other: serde_json::Map::new(),
    };
    let path = layout::manifest(&pending.product_id, &pending.edition_id);
    let manifest = world.store.get(&path)?;
    Ok(Operation::Fold(vec![Registration::new(pending, manifest.as_deref())]))
}

fn run(step: usize) -> String {
    format!("run-{step}")
}

/// The leaf, the root, `CURRENT`.
const WRITES: usize = 3;

type Outcome = Result<Committed, InventoryError>;

/// Tells the whole story with write `at` of every operation failing, each operation tried again by the same step; what
/// the tries gave is for `judge`. The chain must be as if nothing had failed, with every run in it once.
fn with_every_write_failing(
    place: &Place,
    fault: Fault,
    between: fn(&Simulated),
    judge: fn(&Outcome, &Committed) -> Checked,
) -> Checked {
    let folder = |n: usize| within(place, &format!("catalog-{n}"));
    let whole = World::create(&folder(WRITES), false)?;
    for (n, step) in STORY.iter().enumerate() {
        let operation = step(&whole)?;
        whole.writer()?.commit(&operation, &by(&run(n)))?;
    }
    let runs = whole.sound()?;
    for at in 0..WRITES {
        let world = World::create(&folder(at), false)?;
        let sim = Simulated::new(Arc::clone(&world.store));
        let faulty = world.through(sim.client(0));
        let mut reached = 0;
        for (n, step) in STORY.iter().enumerate() {
            let operation = step(&world)?;
            sim.at(On::Writes, at, Act::Fault(fault));
            let first = faulty.writer().map(|writer| writer.commit(&operation, &by(&run(n))));
            let was_reached = sim.is_played();
            sim.calm();
            between(&sim);
            let again = faulty.writer()?.commit(&operation, &by(&run(n)))?;
            let first = first?;
            if was_reached {
                reached += 1;
                judge(&first, &again).map_err(|why| at_step(n, at, &why))?;
            } else {
                holds("an operation whose write never came is done", first.is_ok())
                    .map_err(|why| at_step(n, at, &why))?;
            }
            sim.land_all();
        }
        holds("the write was reached by most operations", reached >= STORY.len() / 2)?;
        equal("the story", world.story()?, whole.story()?)?;
        equal("the runs", world.sound()?, runs.clone())?;
    }
    Ok(())
}

fn at_step(step: usize, write: usize, why: &Failure) -> Failure {
    Failure::Differs {
        what: format!("operation {step} of the story with write {write} failing"),
        found: why.to_string(),
        expected: "the rule to hold".to_owned(),
    }
}

fn nothing(_: &Simulated) {}

/// Done at once, and the next attempt finds it done.
fn settled(first: &Outcome, again: &Committed) -> Checked {
    match first {
        Ok(first) if !first.already => {
            equal("the version that the next attempt names", &again.root_sha256, &first.root_sha256)?;
            holds("the next attempt writes nothing", again.already)
        }
        Ok(_) | Err(_) => Err(differs("the first attempt", first, &"done")),
    }
}

/// Not known, and worth another try.
fn retried(first: &Outcome, _again: &Committed) -> Checked {
    match first {
        Ok(committed) => Err(differs("the first attempt", committed, &"an error")),
        Err(error) => equal("what the error asks for", error.disposition(), Disposition::Retry),
    }
}

/// A hard case: drop the answer after a commit on every write in turn; the store commits and answers 500.
pub(super) fn a_lost_answer_to_any_write_of_any_operation_is_settled(place: &Place) -> Checked {
    with_every_write_failing(place, Fault::Done, nothing, settled)
}

/// D2: a client that tried again by itself.
pub(super) fn a_client_that_met_its_own_write_is_not_told_that_it_lost(place: &Place) -> Checked {
    with_every_write_failing(place, Fault::DoneAndTaken, nothing, settled)
}

/// D2: nothing is assumed.
pub(super) fn a_write_that_was_not_done_is_done_by_the_next_attempt(place: &Place) -> Checked {
    with_every_write_failing(place, Fault::NotDone, nothing, retried)
}

/// The store was not there.
pub(super) fn a_write_that_was_refused_is_done_by_the_next_attempt(place: &Place) -> Checked {
    with_every_write_failing(place, Fault::Refused, nothing, retried)
}

/// A crash before every write in turn, between root and CURRENT among them.
pub(super) fn a_writer_killed_before_any_write_is_finished_by_its_next_run(place: &Place) -> Checked {
    with_every_write_failing(place, Fault::Killed, nothing, |first, _| {
        holds("the killed one told nothing", first.is_err())
    })
}

/// A crash after every write in turn.
pub(super) fn a_writer_killed_after_any_write_is_finished_by_its_next_run(place: &Place) -> Checked {
    with_every_write_failing(place, Fault::KilledAfter, nothing, |first, _| {
        holds("the killed one told nothing", first.is_err())
    })
}

const LATE: Fault = Fault::Late(Late::Ms(30_000));

/// A hard case: the commit lands 30 seconds after the client gave up, before the step tries again.
pub(super) fn a_write_that_lands_thirty_seconds_late_is_recognised(place: &Place) -> Checked {
    with_every_write_failing(place, LATE, |sim| sim.advance_ms(30_000), retried)
}

/// The same, when the step has tried again already.
pub(super) fn a_write_that_lands_after_its_retry_changes_nothing(place: &Place) -> Checked {
    with_every_write_failing(place, LATE, nothing, retried)
}

/// §6.1, D27: `catalog.json`, then version 1, then `CURRENT`; each of them failing in each way.
pub(super) fn a_creation_with_any_write_failing_is_finished_by_the_next_call(place: &Place) -> Checked {
    let faults =
        [Fault::Refused, Fault::NotDone, Fault::Done, Fault::DoneAndTaken, Fault::Killed, Fault::KilledAfter, LATE];
    for (n, fault) in faults.into_iter().enumerate() {
        for at in 0..WRITES {
            for lands_before in [true, false] {
                let place = within(place, &format!("new-{n}-{at}-{lands_before}"));
                let sim = Simulated::new(Arc::clone(&place.store));
                sim.at(On::Writes, at, Act::Fault(fault));
                let faulty = Place { store: sim.client(0), ..place.clone() };
                let first = World::create(&faulty, true);
                holds("the write was reached", sim.is_played())?;
                equal(
                    "whether the first call came through",
                    first.is_ok(),
                    matches!(fault, Fault::Done | Fault::DoneAndTaken),
                )?;
                sim.calm();
                if lands_before {
                    sim.advance_ms(30_000);
                }
                let again = World::create(&faulty, true);
                sim.land_all();
                // A catalog that is complete is refused, and it is the same one.
                let world = match (first, again) {
                    (_, Err(Failure::Inventory(error))) if error.code() == "catalog.exists" => World::open(&place)?,
                    (Err(_), Ok(world)) => world,
                    (_, Err(error)) => return Err(error),
                    (Ok(_), Ok(_)) => return Err(differs("a second creation", &"done", &"catalog.exists")),
                };
                equal("the versions", world.sound()?.len(), 1)?;
                holds("the embargo is on", world.head()?.root.embargo)?;
            }
        }
    }
    Ok(())
}

/// Each read of each operation in turn.
pub(super) fn a_read_that_fails_anywhere_leaves_what_the_next_attempt_finishes(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let sim = Simulated::new(Arc::clone(&place.store));
    let faulty = world.through(sim.client(0));
    for (n, step) in STORY.iter().enumerate() {
        let operation = step(&world)?;
        // An attempt that is not stopped does it; before that, each read has failed once.
        let mut failed = 0;
        loop {
            sim.calm();
            sim.at(On::Kind(CallKind::Get), failed, Act::Fault(Fault::Refused));
            let outcome = faulty.writer().and_then(|writer| Ok(writer.commit(&operation, &by(&run(n)))?));
            match outcome {
                Ok(_) if sim.is_played() => failed += 1,
                Ok(_) => break,
                Err(Failure::Inventory(error)) if error.disposition() == Disposition::Retry => failed += 1,
                Err(other) => return Err(other),
            }
        }
        holds("a commit reads", failed > 4)?;
    }
    equal("the number of versions", world.sound()?.len(), STORY.len() + 1)
}

/// §6.7; a hard case: a withdrawn edition that a scan would resurrect. Its manifest names the live edition as previous.
pub(super) fn a_withdrawn_edition_is_never_brought_back_by_a_repair(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    world.publish(&data("p", 2, Some(1)))?;
    world.commit(&world.rollback("p")?)?;
    let withdrawn = world.seal(&data("p", 2, Some(1)))?;
    let name = product("p")?;
    let edition = world.edition(2)?;
    // As a crash leaves it: the journal of an edition that was recorded, and taken back since.
    let journal = [Sealed { edition_id: edition.clone(), has_manifest: true }];
    let plan = |world: &World| -> Result<Vec<Repair>, Failure> {
        let inventory = world.full()?;
        let named = inventory.newest_naming(&name, &edition)?.map(|seq: Seq| (edition.clone(), seq));
        Ok(repair_plan(&journal, &inventory.marks(&name)?, &named.into_iter().collect(), Mode::Local))
    };
    let clear = |mark| vec![Repair::Clear { edition: edition.clone(), mark }];
    equal("the repair", plan(&world)?, clear(Mark::Withdrawn))?;
    let again = world.commit(&withdrawn)?;
    equal("a record of it", (again.already, again.state), (true, Some(Mark::Withdrawn)))?;
    world.commit(&world.retire("p", 2)?)?;
    equal("the repair", plan(&world)?, clear(Mark::Tombstone))?;
    let again = world.commit(&withdrawn)?;
    equal("a record of it", (again.already, again.state), (true, Some(Mark::Tombstone)))?;
    equal("what the public sees", world.shown()?, world.editions(&[1])?)?;
    world.sound()?;
    // And when the newest version has forgotten its tombstone, an earlier one has not.
    let n = world.head()?.seq().get();
    let forgotten = world.rewrite(n, |root| root.retired.clear())?;
    world.hint(n, forgotten, 0)?;
    equal("what the head knows", world.mark("p", 2)?, None)?;
    let gone = some("the repair", plan(&world)?.into_iter().next())?;
    equal("the repair", gone, Repair::Gone { edition: edition.clone(), seq: some("a version", Seq::new(n - 1))? })
}
