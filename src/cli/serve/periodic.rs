//! What the daemon does over and over beside its runs: starting what the schedules say, and purging what is old.

use std::sync::Arc;

use engine::{Engine, Fired, Mutation, Periodic, PurgeReport};
use tokio::sync::mpsc::UnboundedSender;

use crate::cli::runs::purge;
use crate::wire::World;

/// How often the schedules are looked at in any case, in milliseconds: a person may change one, and a clock may be set.
const SCHEDULES_MS: u64 = 1_000;

/// How often what is old is purged, in milliseconds: each hour; and for how long at once at most, so that the writer is
/// the runs' again.
const PURGE_MS: u64 = 60 * 60 * 1_000;
const PURGE_BUDGET_MS: u64 = 5 * 60 * 1_000;

/// What is told of it.
pub(super) enum Note {
    Fired(Fired),
    Purged(PurgeReport),
}

/// Fires the ticks that are due, each when it is.
pub(super) fn schedules(world: &World, notes: UnboundedSender<Note>) -> Periodic {
    let clock = world.clock.clone();
    Periodic::new("schedules", SCHEDULES_MS, move |engine: Engine| {
        let (clock, notes) = (clock.clone(), notes.clone());
        async move {
            for fired in engine.fire_due_schedules().await? {
                // Nobody listens any more once the daemon ends.
                let _ = notes.send(Note::Fired(fired));
            }
            let due_at_ms = engine.next_due_ms().await?;
            Ok(due_at_ms.map(|at_ms| u64::try_from(at_ms.saturating_sub(clock.now_ms())).unwrap_or(0)))
        }
    })
}

/// Purges what `[retention]` lets go.
pub(super) fn retention(world: &World, notes: UnboundedSender<Note>) -> Periodic {
    let world = Arc::new(World::new(world.config.clone()));
    Periodic::new("retention", PURGE_MS, move |engine: Engine| {
        let (world, notes) = (world.clone(), notes.clone());
        async move {
            let by = Mutation { actor: world.actor.clone(), reason: "[retention] of jobctl.toml".to_owned() };
            let mut plan = purge::by_retention(world.config.retention, world.clock.now_ms(), by);
            plan.budget_ms = Some(PURGE_BUDGET_MS);
            match purge::carry_out(&world, &engine, plan).await {
                Ok(report) => {
                    let _ = notes.send(Note::Purged(report));
                }
                Err(ended) => {
                    let failure = ended.failure;
                    tracing::warn!(code = failure.code, "nothing is purged for now: {}", failure.message);
                }
            }
            Ok(None)
        }
    })
}
