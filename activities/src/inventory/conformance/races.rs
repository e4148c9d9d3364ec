//! Writers at once, in threads of their own (*catalog* §6.6).

use std::collections::BTreeMap;
use std::sync::Barrier;

use catalog_rules::inventory::{Mark, Operation, Release};
use engine_rules::failure::ActivityError as _;

use super::world::{Checked, Failure, Place, World, by, data, equal, product, some};
use crate::inventory::{Committed, InventoryError};

const EIGHT: [(&str, u64); 8] = [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5), ("f", 6), ("g", 7), ("h", 8)];

type Outcome = Result<Committed, InventoryError>;

/// What the writers are told who carry these out at once, by the run of each.
fn at_once(world: &World, operations: Vec<Operation>) -> Result<Vec<(String, Outcome)>, Failure> {
    let gate = Barrier::new(operations.len());
    let writers: Result<Vec<_>, Failure> = operations.iter().map(|_| world.writer()).collect();
    let outcomes = std::thread::scope(|scope| {
        let threads: Vec<_> = writers?
            .into_iter()
            .zip(operations)
            .enumerate()
            .map(|(n, (writer, operation))| {
                let gate = &gate;
                scope.spawn(move || {
                    gate.wait();
                    let run = format!("racer-{n}");
                    let outcome = writer.commit(&operation, &by(&run));
                    (run, outcome)
                })
            })
            .collect();
        Ok::<_, Failure>(threads.into_iter().map(|thread| thread.join().ok()).collect::<Vec<_>>())
    })?;
    outcomes.into_iter().map(|outcome| some("a writer that comes back", outcome)).collect()
}

/// The chain has the version that each writer was told, by its run, once; and nobody else's.
fn told_as_it_is(world: &World, outcomes: &[(String, Outcome)]) -> Checked {
    let runs = world.sound()?;
    let mut told = BTreeMap::new();
    for (run, outcome) in outcomes {
        if let Ok(Committed { seq, already: false, root_sha256, .. }) = outcome {
            told.insert(seq.get(), run.clone());
            let version = some("the version", world.full()?.version(*seq)?)?;
            equal("the hash that was told", root_sha256, &version.root_sha256)?;
        }
    }
    let written = (1..).zip(runs).filter(|(_, run)| run.starts_with("racer-"));
    equal("the versions by the run that wrote them", told, written.collect())
}

/// A hard case.
pub(super) fn eight_racing_releases_are_told_what_the_chain_says(place: &Place) -> Checked {
    let world = World::create(place, true)?;
    for (name, n) in EIGHT {
        world.publish(&data(name, n, None))?;
    }
    let operations: Result<_, Failure> = EIGHT.iter().map(|(name, _)| world.release(&[name])).collect();
    let outcomes = at_once(&world, operations?)?;
    for (run, outcome) in &outcomes {
        let told = outcome.as_ref().map(|committed| (committed.state, committed.already));
        equal(&format!("what {run} was told"), told.map_err(|error| error.to_string()), Ok((Some(Mark::Live), false)))?;
    }
    equal("the versions", world.head()?.seq().get(), 1 + 8 + 8)?;
    equal("what the public sees", world.shown()?, world.editions(&[1, 2, 3, 4, 5, 6, 7, 8])?)?;
    told_as_it_is(&world, &outcomes)
}

/// Eight releases of one edition are one.
pub(super) fn eight_racing_releases_of_one_edition_are_one_release(place: &Place) -> Checked {
    let world = World::create(place, true)?;
    world.publish(&data("p", 1, None))?;
    let release = Operation::Release(Release::Editions(world.one("p", 1)?));
    let outcomes = at_once(&world, vec![release; 8])?;
    let mut wrote = 0;
    for (run, outcome) in &outcomes {
        let told = outcome.as_ref().map(|committed| committed.state).map_err(ToString::to_string);
        equal(&format!("what {run} was told"), told, Ok(Some(Mark::Live)))?;
        wrote += usize::from(outcome.as_ref().is_ok_and(|committed| !committed.already));
    }
    equal("how many were told that they wrote it", wrote, 1)?;
    equal("the head", world.head()?.seq().get(), 3)?;
    told_as_it_is(&world, &outcomes)
}

/// Fast-forward under a race.
pub(super) fn racing_records_on_one_base_let_one_go_live(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    let operations: Result<_, Failure> = (2..6).map(|n| world.seal(&data("p", n, Some(1)))).collect();
    let outcomes = at_once(&world, operations?)?;
    let refused: Vec<_> = outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().err()).collect();
    let codes: Vec<_> = refused.iter().map(|error| error.code()).collect();
    equal("the others", codes, vec!["catalog.not_fast_forward"; 3])?;
    equal("what is live of the product", world.live()?.product(&product("p")?)?.len(), 1)?;
    told_as_it_is(&world, &outcomes)
}
