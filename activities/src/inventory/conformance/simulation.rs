//! Several writers with random operations on one store that fails by chance, all from one seed (DESIGN §7, 6).
//!
//! After every run: no acknowledged version is lost, what each writer was told is what the chain says, every version
//! holds and follows from the one before it, no name is used twice, and everything that is asked for again converges.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use catalog_rules::ids::{EditionId, ProductId, Sha256Hex};
use catalog_rules::inventory::{
    By, EntryState, Leaf, LeafEntry, Mark, Operation, Release, Replay, RollbackMove, Seq, rollback_moves,
};
use engine_rules::failure::{ActivityError as _, Disposition};

use super::world::{
    Edition, Failure, Held, Place, World, alerts, by, data, describe, differs, equal, holds, some, structure,
};
use crate::inventory::{Committed, FullInventory, InventoryError, Writer};
use crate::store::simulated::{Chance, Job, Odds, Simulated};

/// How often a writer asks again before it leaves an operation unknown.
const ATTEMPTS: usize = 5;

/// What a run of the simulation came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Versions in the chain.
    pub versions: usize,
    /// Operations that a rule refused.
    pub refused: usize,
    /// Operations of which their writer did not learn what became.
    pub unknown: usize,
    /// Calls that failed, or were answered with something else than what became of them.
    pub faults: usize,
    /// Operations that were found done when they were asked for again.
    pub recognised: usize,
}

/// What a writer was told of an operation in the end.
enum Told {
    Done(Box<Committed>),
    Refused(&'static str),
    Unknown,
}

/// One operation of one run.
struct Asked {
    operation: Operation,
    by: By,
    run: String,
    told: Told,
    attempts: usize,
}

/// What one writer did and saw.
#[derive(Default)]
struct Diary {
    asked: Vec<Asked>,
    /// The versions that its reader took for the newest.
    seen: Vec<(Seq, Sha256Hex)>,
}

/// Two or three writers on a catalog in `place`, whose store has no lock, all by `seed`.
///
/// # Errors
/// [`Failure`] with the first thing that does not hold.
pub fn simulate(place: &Place, seed: u64) -> Result<Tally, Failure> {
    let mut chance = Chance::new(seed);
    let world = World::create(place, chance.happens(500))?;
    let sim = Simulated::new(Arc::clone(&place.store));
    let writers = 2 + chance.below(2);
    let odds = Odds {
        reads: u32::try_from(chance.below(25)).unwrap_or_default(),
        writes: u32::try_from(chance.below(250)).unwrap_or_default(),
        kills: u32::try_from(chance.below(12)).unwrap_or_default(),
        late_calls: 80,
        late_ms: 60_000,
    };
    sim.fail_by_chance(chance.next_u64(), odds);
    let turns = chance.next_u64();
    let newest_current = AtomicU64::new(0);
    let jobs = (0..writers).map(|client| -> Job<'_, Result<Diary, Failure>> {
        let (world, sim, newest_current, chance) = (&world, &sim, &newest_current, Chance::new(chance.next_u64()));
        Box::new(move |store| {
            Actor {
                client,
                world,
                sim,
                through: world.through(store),
                chance,
                writer: None,
                sealed: BTreeMap::new(),
                newest_current,
            }
            .act()
        })
    });
    let diaries: Result<Vec<Diary>, Failure> = sim.race(turns, jobs.collect()).into_iter().collect();
    let faults = sim.calls().iter().filter(|call| call.fault.is_some()).count();
    sim.calm();
    sim.land_all();
    check(&world, &sim, diaries?, faults)
}

/// One of the writers.
struct Actor<'a> {
    client: usize,
    /// The catalog where nothing fails, for what is not part of the race: sealing.
    world: &'a World,
    sim: &'a Arc<Simulated>,
    through: World,
    chance: Chance,
    /// The writer of its process.
    writer: Option<Writer>,
    /// What this writer sealed.
    sealed: BTreeMap<EditionId, Edition>,
    /// The newest version that anybody saw `CURRENT` name.
    newest_current: &'a AtomicU64,
}

impl Actor<'_> {
    /// `CURRENT` never goes back. Nobody else calls between the look and the comparison.
    fn look_at_current(&self) -> Result<(), Failure> {
        let named = some("CURRENT", self.world.current()?)?.seq.get();
        let newest = self.newest_current.fetch_max(named, Ordering::SeqCst);
        holds("CURRENT goes forward", named >= newest)
    }

    fn act(mut self) -> Result<Diary, Failure> {
        let mut diary = Diary::default();
        let mut held: Option<FullInventory> = None;
        for n in 0..(4 + self.chance.below(5)) {
            self.sim.revive(self.client);
            self.look_at_current()?;
            // A reader that it keeps, and that never goes back.
            let looked = match held.as_mut() {
                Some(inventory) => inventory.refresh().map(drop),
                None => self.through.full().map(|inventory| held = Some(inventory)).or(Ok(())),
            };
            let Some(inventory) = held.as_ref().filter(|_| looked.is_ok()) else { continue };
            equal("what a reader passed over", alerts(inventory.alerts()), String::new())?;
            let head = inventory.head();
            if let Some((last, _)) = diary.seen.last() {
                holds("a reader goes forward", head.seq() >= *last)?;
            }
            diary.seen.push((head.seq(), head.root_sha256.clone()));
            let Ok(leaves) = inventory.leaves() else { continue };
            let leaves: Vec<Arc<Leaf>> = leaves.into_values().collect();
            let now = (usize::try_from(head.seq().get()).unwrap_or_default(), head.root.embargo);
            let tombstones: Vec<_> = head.root.retired.iter().map(|t| t.edition_id.clone()).collect();
            let Some(operation) = self.operation(n, &leaves, &tombstones, now)? else { continue };
            diary.asked.push(self.ask(operation, n)?);
            self.look_at_current()?;
        }
        Ok(diary)
    }

    /// Asks until it is told, by a new process each time that it was killed.
    fn ask(&mut self, operation: Operation, n: usize) -> Result<Asked, Failure> {
        let run = self.world.edition(900_000 + (self.client * 1000 + n) as u64)?.to_string();
        let by = by(&run);
        let mut told = Told::Unknown;
        let mut attempts = 0;
        while attempts < ATTEMPTS && matches!(told, Told::Unknown) {
            attempts += 1;
            self.sim.revive(self.client);
            let writer = match self.writer.take() {
                Some(writer) => Ok(writer),
                None => self.through.writer(),
            };
            let outcome = writer.and_then(|writer| {
                let outcome = writer.commit(&operation, &by);
                // One that failed is a process that ended, or not: both are tried.
                if outcome.is_ok() || self.chance.happens(500) {
                    self.writer = Some(writer);
                }
                Ok(outcome?)
            });
            match outcome {
                Ok(committed) => told = Told::Done(Box::new(committed)),
                Err(Failure::Inventory(error)) => match (error.disposition(), &error) {
                    (_, InventoryError::Refused(refusal)) => told = Told::Refused(refusal.code()),
                    (Disposition::Retry, _) => {
                        if self.chance.happens(400) {
                            self.sim.advance_ms(i64::try_from(self.chance.below(45_000)).unwrap_or_default());
                        }
                    }
                    (Disposition::Terminal | Disposition::Operator, _) => return Err(error.into()),
                },
                Err(other) => return Err(other),
            }
        }
        Ok(Asked { operation, by, run, told, attempts })
    }

    fn held(&mut self) -> Vec<Held> {
        match self.chance.below(6) {
            0 => vec![("SHARED", "v1", None)],
            1 => vec![("SHARED", "v2", None)],
            2 => vec![("HOME", "cut", Some("v1"))],
            3 => vec![("HOME", "cut", Some("v2"))],
            _ => Vec::new(),
        }
    }

    /// A new edition, mostly on the live one.
    fn edition(&mut self, n: usize, leaves: &[Arc<Leaf>], embargo: bool) -> Result<Edition, Failure> {
        let id = (1000 * (self.client + 1) + n) as u64;
        let name = *some("a product", self.chance.pick(&["a", "b", "c", "s"]))?;
        let number = |entry: &LeafEntry| u64::from_str_radix(entry.edition_id.as_str().rsplit('-').next()?, 16).ok();
        let leaf = leaves.iter().find(|leaf| leaf.product_id.as_str() == name);
        let entries: Vec<_> = leaf.iter().flat_map(|leaf| &leaf.editions).collect();
        let previous = if self.chance.happens(900) {
            leaf.and_then(|leaf| leaf.live().next()).and_then(number)
        } else {
            self.chance.pick(&entries).and_then(|entry| number(entry))
        };
        let mut new = if name == "s" {
            let held = *some("a text", self.chance.pick(&["v1", "v2"]))?;
            structure(name, id, previous, &[("HOME", held, None)])
        } else {
            let held = self.held();
            data(name, id, previous).holds(&held)
        };
        if embargo && self.chance.happens(700) {
            let ms = i64::try_from(self.chance.below(60_000)).unwrap_or_default();
            new.release_at = Some(self.world.store.now()?.plus_ms(ms - 20_000));
        }
        Ok(new)
    }

    /// What to do next, by what this writer saw, which need not be so any more.
    fn operation(
        &mut self,
        n: usize,
        leaves: &[Arc<Leaf>],
        tombstones: &[EditionId],
        (newest, embargo): (usize, bool),
    ) -> Result<Option<Operation>, Failure> {
        let any = |state: &[EntryState]| -> Vec<(ProductId, EditionId)> {
            let entries = leaves.iter().flat_map(|leaf| leaf.editions.iter().map(|entry| (&leaf.product_id, entry)));
            let found = entries.filter(|(_, entry)| state.contains(&entry.state));
            found.map(|(product, entry)| (product.clone(), entry.edition_id.clone())).collect()
        };
        use EntryState::{Embargoed, Superseded, Withdrawn};
        let one = |chance: &mut Chance, of: &[EntryState]| chance.pick(&any(of)).cloned();
        Ok(match self.chance.below(22) {
            0..7 => {
                let edition = self.edition(n, leaves, embargo)?;
                let operation = self.world.seal(&edition)?;
                self.sealed.insert(self.world.edition(edition.n)?, edition);
                Some(operation)
            }
            7 | 8 => Some(Operation::Release(Release::Due)),
            9 => one(&mut self.chance, &[Embargoed])
                .map(|(product, _)| Operation::Release(Release::Products(BTreeSet::from([product])))),
            10 => one(&mut self.chance, &[Embargoed])
                .map(|edition| Operation::Release(Release::Editions(BTreeSet::from([edition])))),
            11..14 => self.chance.pick(leaves).and_then(|leaf| {
                let moves: Vec<RollbackMove> = rollback_moves(leaf, &BTreeSet::new()).ok()?;
                Some(Operation::Rollback(BTreeMap::from([(leaf.product_id.clone(), moves)])))
            }),
            14 => one(&mut self.chance, &[Embargoed])
                .map(|(product_id, edition_id)| Operation::Cancel { product_id, edition_id }),
            15 => self.chance.pick(leaves).map(|leaf| Operation::WithdrawLive {
                product_id: leaf.product_id.clone(),
                if_live: leaf.live().map(|entry| entry.edition_id.clone()).collect(),
            }),
            16 => one(&mut self.chance, &[Superseded, Withdrawn])
                .map(|edition| Operation::Retire { editions: BTreeSet::from([edition]), before_window: true }),
            17 => one(&mut self.chance, &[Embargoed]).map(|(product_id, edition_id)| Operation::Reschedule {
                product_id,
                edition_id,
                release_at: None,
            }),
            18 => Some(Operation::Embargo(!embargo)),
            19 => {
                let own: Vec<_> = tombstones.iter().filter_map(|id| self.sealed.get(id)).collect();
                self.chance.pick(&own).map(|edition| self.world.reinstate(edition)).transpose()?
            }
            20 => Some(self.world.correct(1 + self.chance.below(newest) as u64)?),
            _ => Some(describe((1000 * (self.client + 1) + n) as u64)),
        })
    }
}

fn check(world: &World, sim: &Arc<Simulated>, diaries: Vec<Diary>, faults: usize) -> Result<Tally, Failure> {
    let mut tally = Tally { faults, ..Tally::default() };
    let (mut asked, mut seen) = (Vec::new(), Vec::new());
    for diary in diaries {
        asked.extend(diary.asked);
        seen.extend(diary.seen);
    }
    // Everything is asked for once more, where nothing fails: what nobody knows is done or refused now, and what was
    // told stays as it was.
    let calm = world.through(sim.client(99));
    told_as_it_is(&calm, &asked, &seen)?;
    for asked in &asked {
        let before = calm.head()?.seq();
        let again = calm.writer()?.commit(&asked.operation, &asked.by);
        tally.recognised += usize::from(asked.attempts > 1 && again.as_ref().is_ok_and(|again| again.already));
        match (&asked.told, again) {
            (Told::Done(told), Ok(again)) if !told.already => {
                equal("a rerun writes nothing", (again.already, calm.head()?.seq()), (true, before))?;
                equal("the version that a rerun names", again.root_sha256, told.root_sha256.clone())?;
            }
            (Told::Unknown, outcome) => {
                tally.unknown += 1;
                if let Err(error) = outcome
                    && !matches!(error, InventoryError::Refused(_))
                {
                    return Err(error.into());
                }
            }
            (Told::Refused(_), _) => tally.refused += 1,
            // Somebody else had done it; meanwhile it may be undone, and forbidden.
            (Told::Done(_), Ok(_) | Err(InventoryError::Refused(_))) => {}
            (Told::Done(_), Err(error)) => return Err(error.into()),
        }
    }
    tally.versions = calm.head()?.seq().get().try_into().unwrap_or_default();
    calm.writer()?.advance_current()?;
    let runs = calm.sound()?;
    let runs: Vec<_> = runs.into_iter().filter(|run| !run.is_empty()).collect();
    equal("every run wrote once", runs.iter().collect::<BTreeSet<_>>().len(), runs.len())?;
    followed(&calm)?;
    Ok(tally)
}

/// What the writers were told, and what their readers saw, against the chain.
fn told_as_it_is(calm: &World, asked: &[Asked], seen: &[(Seq, Sha256Hex)]) -> Result<(), Failure> {
    let inventory = calm.full()?;
    let runs = calm.chain(&inventory)?;
    let hash = |seq: Seq| -> Result<Sha256Hex, Failure> {
        Ok(some(&format!("version {seq}, which was acknowledged"), inventory.version(seq)?)?.root_sha256)
    };
    for (seq, sha256) in seen {
        equal("a version that a reader saw", &hash(*seq)?, sha256)?;
    }
    for asked in asked {
        let wrote = (1..).zip(&runs).filter(|(_, run)| **run == asked.run).map(|(seq, _): (u64, _)| seq);
        let wrote: Vec<_> = wrote.collect();
        match &asked.told {
            Told::Done(told) => {
                equal("a version that was acknowledged", hash(told.seq)?, told.root_sha256.clone())?;
                if !told.already {
                    equal("the versions of a run that was told of one", wrote, vec![told.seq.get()])?;
                }
                // An edition that was recorded is known for good.
                if let (Operation::Record(record), false) = (&asked.operation, told.already) {
                    let marks = inventory.marks(&record.product_id)?;
                    holds("a recorded edition is known", marks.contains_key(&record.entry.edition_id))?;
                }
            }
            Told::Refused(code) if !wrote.is_empty() => {
                return Err(differs(&format!("the versions of a run that was refused by {code}"), &wrote, &"none"));
            }
            Told::Refused(_) => {}
            Told::Unknown => holds("a run without an answer wrote once or not at all", wrote.len() <= 1)?,
        }
    }
    let known: BTreeSet<_> = asked.iter().map(|asked| &asked.run).collect();
    let strangers: Vec<_> = runs.iter().filter(|run| !run.is_empty() && !known.contains(run)).collect();
    equal("the versions that nobody asked for", strangers.len(), 0)
}

/// The change lists tell the states, each from the ones before it, and no version goes against the embargo of its base.
fn followed(calm: &World) -> Result<(), Failure> {
    let inventory = calm.full()?;
    let mut replay = Replay::default();
    let mut embargo = None;
    for n in 1..=inventory.head().seq().get() {
        let root = calm.root(n)?;
        let changes = root.changes.clone().unwrap_or_default();
        for item in changes.iter().flat_map(|change| &change.entries) {
            holds("no edition is forgotten", item.to.is_some())?;
            match (item.from, item.to) {
                (None, Some(Mark::Live)) => {
                    equal("the embargo under which one was recorded live", embargo, Some(false))?
                }
                (None, Some(Mark::Embargoed)) => equal("the embargo under which one waits", embargo, Some(true))?,
                (Some(Mark::Withdrawn | Mark::Tombstone), Some(Mark::Live | Mark::Embargoed)) => {
                    return Err(differs("an edition that was taken back", &item.to, &"never routed again by itself"));
                }
                _ => {}
            }
        }
        let followed =
            replay.apply(root.seq, &changes).map_err(|error| differs("a change list", &error.to_string(), &""));
        followed?;
        embargo = Some(root.embargo);
    }
    equal("the states by the change lists", replay, Replay::at(&inventory.head().root, &inventory.leaves()?))
}
