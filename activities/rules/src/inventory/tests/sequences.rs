//! Random sequences of all operations: whatever is accepted keeps every invariant, follows from the version before it,
//! and is told by its change list.

use std::cell::RefCell;

use proptest::prelude::*;

use super::properties::runner;
use super::*;

const PRODUCTS: [&str; 5] = ["a", "b", "c", "s", "t"];
const SCHEMAS: [&str; 2] = ["2.51", "2.52"];

/// What is tried next; the numbers pick from what there is.
#[derive(Debug, Clone, Copy)]
struct Step {
    kind: u8,
    a: u8,
    b: u8,
    c: u8,
    later_ms: i64,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let later = prop_oneof![8 => 0..1_000_i64, 1 => -60_000..0_i64, 1 => 0..(20 * DAY_MS)];
    let one = (0..28_u8, any::<u8>(), any::<u8>(), any::<u8>(), later).prop_map(|(kind, a, b, c, later_ms)| Step {
        kind,
        a,
        b,
        c,
        later_ms,
    });
    proptest::collection::vec(one, 1..60)
}

fn pick<T: Clone>(of: &[T], n: u8) -> Option<T> {
    of.get(usize::from(n) % of.len().max(1)).cloned()
}

impl Step {
    fn product(self) -> ProductId {
        product(PRODUCTS[usize::from(self.a) % PRODUCTS.len()])
    }

    fn entries(self, world: &World) -> Vec<LeafEntry> {
        world.leaves.get(&self.product()).map(|leaf| leaf.editions.clone()).unwrap_or_default()
    }

    /// Any edition of the product, or one that nobody knows.
    fn edition(self, world: &World, n: u8) -> EditionId {
        pick(&self.entries(world), n).map_or_else(|| edition(0), |entry| entry.edition_id)
    }

    /// An edition of any product in one of the states, mostly; else any one.
    fn in_state(self, world: &World, states: &[EntryState]) -> (ProductId, EditionId) {
        let entries = world.leaves.iter().flat_map(|(p, leaf)| leaf.editions.iter().map(move |entry| (p, entry)));
        let found = entries.filter(|(_, entry)| states.contains(&entry.state) || self.c < 25);
        let found: Vec<_> = found.map(|(p, entry)| (p.clone(), entry.edition_id.clone())).collect();
        pick(&found, self.b).unwrap_or_else(|| (self.product(), edition(0)))
    }

    fn record(self, world: &World, n: u64) -> Record {
        let p = self.product();
        let schema = SCHEMAS[usize::from(self.b % 4 / 3)];
        let artefacts: &[(&str, &str, Option<&str>)] = match (p.as_str(), self.c % 8) {
            ("s" | "t", 0 | 1) => &[("urn:home", "h1", None)],
            ("s" | "t", 2 | 3) => &[("urn:home", "h2", None)],
            ("s" | "t", _) => &[],
            (_, 0) => &[("urn:home", "cut", Some("h1"))],
            (_, 1) => &[("urn:home", "cut", Some("h2")), ("urn:shared", "s1", None)],
            (_, 2) => &[("urn:home", "h1", None)],
            (_, 3 | 4) => &[("urn:shared", "s2", None)],
            (_, _) => &[("urn:shared", "s1", None)],
        };
        let mut new = at_schema(holds(record(p.as_str(), n, None), artefacts), schema);
        let leaf = world.leaves.get(&p).map(Arc::as_ref);
        let head = expected_previous(leaf, &new.entry.schema_version).ok().flatten();
        new.entry.previous = match self.b / 4 % 8 {
            0 => pick(&self.entries(world), self.c).map(|entry| entry.edition_id),
            _ => head.map(|entry| entry.edition_id.clone()),
        };
        new.content.value = Some(format!("content {}", self.c % 2));
        new.kind = if ["s", "t"].contains(&p.as_str()) { Kind::Structure } else { Kind::Data };
        if world.root.embargo {
            new.release_at = (!self.b.is_multiple_of(3)).then(|| world.now.plus_ms(i64::from(self.c) * 20));
        }
        let waiting = self.entries(world).into_iter().find(|entry| entry.state == EntryState::Embargoed);
        if self.a > 200 {
            new.supersedes = waiting.map(|entry| entry.edition_id);
        }
        new
    }

    fn operation(self, world: &mut World, n: u64) -> Operation {
        use EntryState::{Embargoed, Live, Superseded, Withdrawn};
        let (p, edition_id) = match self.kind {
            14 | 17 | 19 | 23 => self.in_state(world, &[Embargoed]),
            15 | 18 | 24 | 25 => self.in_state(world, &[Live]),
            16 => self.in_state(world, &[Superseded]),
            20..23 => self.in_state(world, &[Superseded, Withdrawn]),
            _ => (self.product(), self.edition(world, self.b)),
        };
        let editions = || BTreeSet::from([(p.clone(), edition_id.clone())]);
        match self.kind {
            0..9 => {
                let record = self.record(world, n);
                world.seal(record)
            }
            9 => {
                let other = Step { a: self.b, b: self.a, c: self.c.wrapping_mul(3), ..self };
                let records = [self.record(world, n), other.record(world, n + 1)];
                fold(world, &records)
            }
            10..13 => Operation::Release(Release::Due),
            13 => Operation::Release(Release::Products(BTreeSet::from([p, product("s")]))),
            14 => Operation::Release(Release::Editions(editions())),
            15 | 16 => {
                let to = if self.c.is_multiple_of(2) { BTreeSet::new() } else { BTreeSet::from([edition_id.clone()]) };
                let moves = world.leaves.get(&p).and_then(|leaf| rollback_moves(leaf, &to).ok());
                let any = || vec![RollbackMove { from: self.edition(world, self.c), to: Some(edition_id.clone()) }];
                let mut products = BTreeMap::from([(p.clone(), moves.unwrap_or_else(any))]);
                // Sometimes its home with it.
                let home = world.leaves.get(&product("s")).filter(|_| self.b.is_multiple_of(3));
                products
                    .extend(home.and_then(|leaf| Some((product("s"), rollback_moves(leaf, &BTreeSet::new()).ok()?))));
                Operation::Rollback(products)
            }
            17 => Operation::Cancel { product_id: p, edition_id },
            18 => {
                let live = world.leaves.get(&p).into_iter().flat_map(|leaf| leaf.live());
                let live = live.filter(|_| self.c != 77).map(|entry| entry.edition_id.clone());
                Operation::WithdrawLive { if_live: live.collect(), product_id: p }
            }
            19 => {
                let rivals = world.leaves.get(&p).into_iter().flat_map(|leaf| leaf.editions.iter());
                let rival = rivals.rev().find(|entry| entry.state == Embargoed || self.c > 200);
                let by = rival.map_or_else(|| edition(0), |entry| entry.edition_id.clone());
                Operation::Supersede { product_id: p, edition_id, by }
            }
            20 => {
                let known = || (p, edition_id);
                let of = |tombstone: Tombstone| (tombstone.product_id, tombstone.edition_id);
                let (p, id) = pick(&world.root.retired, self.b).map_or_else(known, of);
                let entry =
                    world.sealed.get(&id).map_or_else(|| record(p.as_str(), 0, None).entry, |r| r.entry.clone());
                Operation::Reinstate { product_id: p, entry: Box::new(entry) }
            }
            21 | 22 => Operation::Retire { editions: editions(), before_window: self.c.is_multiple_of(2) },
            23 => {
                let release_at = (self.c > 99).then(|| world.now.plus_ms(i64::from(self.c)));
                Operation::Reschedule { product_id: p, edition_id, release_at }
            }
            24 => Operation::SupersedeSchema {
                schema_version: SchemaVersion::new(SCHEMAS[0]),
                products: (self.c > 99).then(|| BTreeSet::from([p])),
            },
            25 => {
                let lifecycle = if self.c < 99 { Lifecycle::Final } else { Lifecycle::Revisable };
                Operation::SetLifecycle { product_id: p, lifecycle }
            }
            26 => Operation::Embargo(self.c > 80),
            _ => Operation::Correct {
                to: Seq::new(u64::from(self.b) % world.root.seq.get() + 1).unwrap(),
                products: (self.c > 99).then(|| BTreeSet::from([p])),
                confirmed_unread: BTreeSet::new(),
            },
        }
    }
}

/// The transitions of *catalog* §6.4 and D14, and which kinds of event may bring them.
fn is_allowed(kind: &EventKind, from: Option<Mark>, to: Option<Mark>) -> bool {
    use EventKind::*;
    use Mark::{Embargoed as E, Live as L, Superseded as S, Tombstone as T, Withdrawn as W};
    match (from, to) {
        (None, Some(E | L)) => *kind == Seal,
        (Some(E), Some(L)) => [Release, Correct].contains(kind),
        (Some(E), Some(W)) => [Withdraw, Seal].contains(kind),
        (Some(L), Some(S)) => [Seal, Release, Correct].contains(kind),
        (Some(L), Some(W)) => [Rollback, Withdraw].contains(kind),
        (Some(S), Some(L)) => [Rollback, Correct].contains(kind),
        (Some(S | W), Some(T)) => *kind == Retire,
        (Some(T), Some(S)) => *kind == Reinstate,
        (Some(E), Some(E)) => [EmbargoChange, Correct].contains(kind),
        (Some(E | L | S), Some(E | S)) => *kind == Correct,
        _ => false,
    }
}

fn check(world: &World, replay: &mut Replay) {
    let (base, base_sha256, base_leaves) = world.past.last().unwrap();
    let old = Whole { root: base, root_sha256: base_sha256, leaves: base_leaves };
    let new = Whole { root: &world.root, root_sha256: &world.root_sha256, leaves: &world.leaves };
    assert_eq!(check_step(&old, &new), []);
    for finding in check_version(&world.root, &world.leaves, &BTreeMap::new()) {
        // These follow from an accepted edit of a home, or from its withdrawal.
        let expected = matches!(finding, VersionFinding::Stale(_) | VersionFinding::Orphan { .. });
        let moved = matches!(&finding, VersionFinding::SharedDiffers { urn, .. } if urn == "urn:home");
        assert!(expected || moved, "{finding}");
    }
    replay.apply(world.root.seq, world.root.changes.as_ref().unwrap()).unwrap();
    assert_eq!(*replay, Replay::at(&world.root, &world.leaves));
    for change in world.root.changes.as_ref().unwrap() {
        let leaf = &world.leaves[&change.product_id];
        let before = base_leaves.get(&change.product_id);
        for item in &change.entries {
            let kind = &world.root.event.kind;
            assert!(is_allowed(kind, item.from, item.to), "{kind}: {:?} to {:?}", item.from, item.to);
            let entry = leaf.entry(&item.edition_id);
            if let (Some(entry), Some(old)) = (entry, before.and_then(|leaf| leaf.entry(&item.edition_id))) {
                let same = LeafEntry {
                    state: old.state,
                    state_changed_at: old.state_changed_at,
                    release_at: old.release_at,
                    ..entry.clone()
                };
                assert_eq!(&same, old, "a transition changes no more than the state");
                let at = if entry.state == old.state { old.state_changed_at } else { world.root.created_at };
                assert_eq!(entry.state_changed_at, at);
            }
            let is_final = before.is_some_and(|leaf| leaf.lifecycle == Lifecycle::Final);
            if let (None, Some(entry), true) = (item.from, entry, is_final) {
                let content = |edition: &EditionId| &world.sealed[edition].content;
                assert_eq!(content(&item.edition_id), content(entry.previous.as_ref().unwrap()), "final means final");
            }
        }
    }
}

/// What was refused alone was not refused for the sake of another one.
fn check_refused(world: &World, refused: &[RefusedEdition]) {
    let mutual = ["catalog.two_pending", "catalog.shared_artefact_differs", "catalog.two_homes"];
    for refused in refused.iter().filter(|refused| !mutual.contains(&refused.code.as_str())) {
        let editions = BTreeSet::from([(refused.product_id.clone(), refused.edition_id.clone())]);
        let alone = world.decide(&Operation::Release(Release::Editions(editions)));
        assert!(alone.is_err(), "{refused:?} was refused, and goes live when it is asked for alone");
    }
}

#[derive(Default)]
struct Counts {
    accepted: BTreeMap<String, u32>,
    refused: BTreeMap<&'static str, u32>,
    batch_refused: BTreeMap<String, u32>,
}

#[test]
fn no_sequence_of_accepted_operations_breaks_an_invariant() {
    let counts = RefCell::new(Counts::default());
    runner(200)
        .run(&(any::<bool>(), steps()), |(embargo, steps)| {
            let mut world = World::new(embargo);
            let mut replay = Replay::default();
            for (n, step) in (1..).zip(steps) {
                world.now = world.now.plus_ms(step.later_ms).max(world.root.created_at.plus_ms(-60_000));
                let operation = step.operation(&mut world, 2 * n);
                match world.decide(&operation) {
                    Ok(Decision::Write(version)) => {
                        let refused = version.refused.clone();
                        world.apply(*version);
                        check(&world, &mut replay);
                        if operation == Operation::Release(Release::Due) {
                            check_refused(&world, &refused);
                        }
                        let mut counts = counts.borrow_mut();
                        *counts.accepted.entry(world.root.event.kind.to_string()).or_default() += 1;
                        for refused in refused {
                            *counts.batch_refused.entry(refused.code).or_default() += 1;
                        }
                        // And once more: either it is done, or a rule stands against doing it twice.
                        if let Ok(Decision::Write(again)) = world.decide(&operation) {
                            let repeats =
                                matches!(&operation, Operation::SupersedeSchema { .. } | Operation::Correct { .. });
                            assert!(!repeats, "{operation:?} changes something each time: {:?}", again.root.changes);
                            let due = operation == Operation::Release(Release::Due);
                            let releases = matches!(&operation, Operation::Release(Release::Products(_)));
                            assert!(due || releases, "{operation:?} does it twice: {:?}", again.root.changes);
                        }
                    }
                    Ok(Decision::Already(_)) => {}
                    Err(refusal) => {
                        let code = refusal.code();
                        // Everything was sealed and verifies, so what was not read was not asked for.
                        assert!(
                            !["catalog.manifest_missing", "catalog.records_unread", "catalog.not_verified"]
                                .contains(&code),
                            "{operation:?}: {refusal}"
                        );
                        assert!(!["catalog.invalid_version", "catalog.missing_leaf"].contains(&code), "{refusal}");
                        *counts.borrow_mut().refused.entry(code).or_default() += 1;
                    }
                }
            }
            Ok(())
        })
        .unwrap();
    let Counts { accepted, refused, batch_refused } = counts.into_inner();
    println!("accepted {accepted:?}\nrefused {refused:?}\nin batches {batch_refused:?}");
    for kind in ["seal", "release", "rollback", "withdraw", "retire", "reinstate", "embargo-change", "correct"] {
        assert!(accepted.get(kind).is_some_and(|n| *n > 3), "{kind} was hardly reached: {accepted:?}");
    }
    assert!(refused.len() > 15, "the sequences reach few rules: {refused:?}");
    assert!(batch_refused.len() > 3, "the batches refuse little: {batch_refused:?}");
}
