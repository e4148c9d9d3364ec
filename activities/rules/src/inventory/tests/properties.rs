//! Random sequences of records: whatever is accepted keeps the invariants.

use std::cell::RefCell;
use std::hash::{BuildHasher as _, RandomState};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::*;

/// A runner whose seed is printed, and taken from `JOBCTL_TEST_SEED` where that is set; `JOBCTL_TEST_CASES` is for a
/// longer search by hand.
pub(super) fn runner(cases: u32) -> TestRunner {
    let seed = std::env::var("JOBCTL_TEST_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| RandomState::new().hash_one(0_u8));
    println!("JOBCTL_TEST_SEED={seed}");
    let cases = std::env::var("JOBCTL_TEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(cases);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    TestRunner::new_with_rng(Config { cases, failure_persistence: None, ..Config::default() }, rng)
}

/// One attempt: which product, which schema, what it is built on, which artefacts.
#[derive(Debug, Clone)]
struct Attempt {
    product: usize,
    schema: usize,
    built_on: u8,
    artefact: usize,
    again: bool,
    clock_ms: i64,
}

fn attempts() -> impl Strategy<Value = Vec<Attempt>> {
    let one = (0..4_usize, 0..2_usize, 0..8_u8, 0..4_usize, proptest::bool::weighted(0.1), -200_000..2_000_i64)
        .prop_map(|(product, schema, built_on, artefact, again, clock_ms)| Attempt {
            product,
            schema,
            built_on,
            artefact,
            again,
            clock_ms,
        });
    proptest::collection::vec(one, 1..40)
}

const PRODUCTS: [&str; 4] = ["a", "b", "c", "structures"];
const SCHEMAS: [&str; 2] = ["2.51", "2.52"];

impl Attempt {
    fn record(&self, world: &World, n: u64) -> Record {
        let name = PRODUCTS[self.product];
        let schema = SchemaVersion::new(SCHEMAS[self.schema]);
        let leaf = world.leaves.get(&product(name)).map(Arc::as_ref);
        let head = expected_previous(leaf, &schema).ok().flatten().map(|entry| entry.edition_id.clone());
        let oldest = leaf.and_then(|leaf| leaf.editions.first()).map(|entry| entry.edition_id.clone());
        let n = if self.again { n.saturating_sub(3).max(1) } else { n };
        let mut new = record(name, n, None);
        new.entry.schema_version = schema;
        new.entry.previous = match self.built_on {
            0 => None,
            1 => oldest,
            _ => head,
        };
        let artefacts: &[(&str, &str, Option<&str>)] = match (name, self.artefact) {
            ("structures", 0) => &[("urn:home", "h1", None)],
            ("structures", _) => &[("urn:home", "h2", None)],
            (_, 0) => &[("urn:shared", "s1", None)],
            (_, 1) => &[("urn:shared", "s2", None)],
            (_, 2) => &[("urn:home", "cut", Some("h1"))],
            (_, _) => &[("urn:home", "h2", None), ("urn:shared", "s1", None)],
        };
        new = holds(new, artefacts);
        if name == "structures" {
            new.kind = Kind::Structure;
        }
        new
    }
}

/// The editions of each product, as the change lists alone tell.
#[derive(Default)]
struct Replay(BTreeMap<ProductId, BTreeMap<EditionId, EntrySummary>>);

impl Replay {
    fn apply(&mut self, changes: &[Change]) {
        for change in changes {
            let editions = self.0.entry(change.product_id.clone()).or_default();
            for item in &change.entries {
                assert_eq!(editions.get(&item.edition_id).map(|entry| entry.state.into()), item.from, "{change:?}");
                match &item.entry {
                    Some(entry) => drop(editions.insert(item.edition_id.clone(), entry.clone())),
                    None => drop(editions.remove(&item.edition_id)),
                }
            }
        }
    }

    fn check(&self, leaves: &BTreeMap<ProductId, Arc<Leaf>>) {
        let told: BTreeMap<_, _> = leaves
            .iter()
            .map(|(p, leaf)| {
                let entries = leaf.editions.iter().map(|entry| (entry.edition_id.clone(), EntrySummary::from(entry)));
                (p.clone(), entries.collect::<BTreeMap<_, _>>())
            })
            .collect();
        assert_eq!(self.0, told, "the change lists do not lead to the leaves");
    }
}

fn check_invariants(world: &World, before: &Root, before_sha256: &Sha256Hex) {
    assert_eq!(world.root.seq, before.seq.next());
    assert_eq!(world.root.previous_inventory, Some(before.seq));
    assert_eq!(world.root.previous_root_sha256, Some(Some(before_sha256.clone())), "the chain is broken");
    assert!(world.root.created_at >= before.created_at.plus_ms(1));
    let mut shared: BTreeMap<&str, &str> = BTreeMap::new();
    for (p, leaf) in &world.leaves {
        assert_eq!(Sha256Hex::of(&leaf.encode().unwrap()), *world.root.leaf_sha256(p).unwrap());
        for schema in SCHEMAS {
            let live = leaf.live().filter(|entry| entry.schema_version.as_str() == schema).count();
            assert!(live <= 1, "{live} live editions of {p} at {schema}");
        }
        for entry in &leaf.editions {
            assert!(entry.previous.as_ref().is_none_or(|previous| leaf.entry(previous).is_some()), "{entry:?}");
        }
        for (urn, record) in leaf.live().flat_map(|entry| entry.artefacts.as_ref().unwrap()) {
            if leaf.kind == Kind::Data && urn == "urn:shared" && leaf.live().count() == 1 {
                let first = shared.entry(urn).or_insert(&record.fingerprint);
                assert_eq!(first, &record.fingerprint, "two fingerprints of {urn} are live");
            }
        }
    }
}

/// How often each outcome was reached.
#[derive(Debug, Default)]
struct Counts {
    accepted: u32,
    known: u32,
    refused: BTreeMap<&'static str, u32>,
}

#[test]
fn no_sequence_of_accepted_records_breaks_an_invariant() {
    let counts = RefCell::new(Counts::default());
    let mut runner = runner(150);
    runner
        .run(&(any::<bool>(), attempts()), |(embargo, attempts)| {
            let mut world = World::new(embargo);
            let mut replay = Replay::default();
            for (n, attempt) in (1..).zip(&attempts) {
                let new = attempt.record(&world, n);
                world.now = world.root.created_at.plus_ms(attempt.clock_ms);
                match world.plan(&new, &facts(&new)) {
                    Ok(Decision::Write(version)) => {
                        let (before, before_sha256) = (world.root.clone(), world.root_sha256.clone());
                        world.apply(*version);
                        check_invariants(&world, &before, &before_sha256);
                        replay.apply(world.root.changes.as_ref().unwrap());
                        replay.check(&world.leaves);
                        counts.borrow_mut().accepted += 1;
                    }
                    Ok(Decision::Already(Done { mark, .. })) => {
                        let state = world.leaves[&new.product_id].entry(&new.entry.edition_id).map(|e| e.state.into());
                        assert_eq!(mark, state);
                        counts.borrow_mut().known += 1;
                    }
                    Err(refusal) => *counts.borrow_mut().refused.entry(refusal.code()).or_default() += 1,
                }
            }
            Ok(())
        })
        .unwrap();
    let Counts { accepted, known, refused } = counts.into_inner();
    println!("accepted {accepted}, known {known}, refused {refused:?}");
    assert!(accepted > 250 && known > 10, "the sequences reach too little: {accepted} accepted, {known} known");
    for code in ["catalog.not_fast_forward", "catalog.shared_artefact_differs", "catalog.not_as_at_home"] {
        assert!(refused.contains_key(code), "{code} was never reached: {refused:?}");
    }
}
