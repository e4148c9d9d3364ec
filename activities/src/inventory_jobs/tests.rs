use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use catalog_rules::contracts::inventory::{
    CHANGES_TOLD, CommitInput, CommitOutput, FindRetirableInput, Intent, LiveEditionsInput, Nothing, REFUSALS_TOLD,
    ReadManifestInput, RollbackMovesInput,
};
use catalog_rules::contracts::publish::Cause;
use catalog_rules::instant::Instant;
use catalog_rules::inventory::{By, Change, DAY_MS, EntryState, MAX_CLOCK_AHEAD_MS, Operation, RefusedEdition};
use catalog_rules::layout;
use engine_rules::activity::CancelToken;
use engine_rules::failure::{ActivityError as _, Disposition};

use super::*;
use crate::inventory::tests::{catalog, edition, manifest, product, seal};
use crate::store::OverlayStore;
use crate::store::tests::{NOON_MS, TestClock};

type ActivityContext = engine_rules::activity::ActivityContext;

fn deps_at(store: &Arc<dyn Store>, ms: u64, retention: Retention) -> InventoryDeps {
    InventoryDeps::new("nowhere".into(), Arc::clone(store), TestClock::at_ms(ms), retention)
}

fn deps(store: &Arc<dyn Store>) -> InventoryDeps {
    deps_at(store, NOON_MS, Retention::default())
}

/// A run that began at the tests' noon.
fn step(run: u64, name: &str) -> ActivityContext {
    ActivityContext::new(edition(run).to_string(), name.to_owned(), 1, CancelToken::new(), Arc::new(|_| {}))
}

fn by() -> By {
    By { actor: "a".to_owned(), reason: "r".to_owned(), producer: crate::publish::producer(), own_work: None }
}

/// Records editions 1 to `n` of the product, each on the one before it.
fn record(store: &Arc<dyn Store>, name: &str, n: u64) {
    let writer = Writer::open(Arc::clone(store)).unwrap();
    for id in 1..=n {
        let operation = seal(store.as_ref(), &manifest(name, id, (id > 1).then(|| id - 1)), None);
        writer.commit(&operation, &by()).unwrap();
    }
}

fn input(intent: Intent) -> CommitInput {
    CommitInput { intent, cause: Cause { actor: "a".to_owned(), reason: "r".to_owned() } }
}

fn settled(store: &Arc<dyn Store>, name: &str) -> Intent {
    let asked = RollbackMovesInput { products: [product(name)].into(), to: BTreeSet::new(), if_live: BTreeSet::new() };
    Intent::Rollback { products: rollback_moves(&deps(store), &step(1, "moves"), asked).unwrap().products }
}

fn state(store: &Arc<dyn Store>, name: &str, n: u64) -> EntryState {
    deps(store).inventory().unwrap().leaf(&product(name)).unwrap().unwrap().entry(&edition(n)).unwrap().state
}

#[test]
fn a_step_that_committed_and_lost_its_answer_tells_the_same_again_and_writes_nothing() {
    let store = catalog(false);
    record(&store, "p", 3);
    let intent = settled(&store, "p");
    let first = commit(&deps(&store), &step(1, "rollback"), input(intent.clone())).unwrap();
    assert_eq!((first.seq, first.already, first.counts["live"], first.counts["withdrawn"]), (5, false, 1, 1));
    // Somebody else goes on meanwhile.
    record(&store, "q", 1);
    let again = commit(&deps(&store), &step(1, "rollback"), input(intent.clone())).unwrap();
    assert_eq!(again, first);
    assert_eq!(deps(&store).inventory().unwrap().head().seq().get(), 6);
    // Another run that settled on the same editions is refused: they are not live any more.
    let refused = commit(&deps(&store), &step(2, "rollback"), input(intent)).unwrap_err();
    assert_eq!((refused.code(), refused.disposition()), ("catalog.live_changed", Disposition::Terminal));
    assert_eq!((state(&store, "p", 2), state(&store, "p", 3)), (EntryState::Live, EntryState::Withdrawn));
}

#[test]
fn what_somebody_else_did_is_not_told_as_this_steps_work() {
    let store = catalog(true);
    record(&store, "p", 1);
    let cancel = || input(Intent::Cancel { product_id: product("p"), edition_id: edition(1) });
    commit(&deps(&store), &step(1, "cancel"), cancel()).unwrap();
    let seen = commit(&deps(&store), &step(2, "cancel"), cancel()).unwrap();
    assert_eq!((seen.seq, seen.already, seen.counts.len(), seen.changes.len()), (3, true, 0, 0));
}

#[test]
fn what_is_live_must_be_what_the_caller_saw_where_they_say_it() {
    let store = catalog(false);
    record(&store, "p", 3);
    for (seen, is_so) in [(edition(3), true), (edition(2), false)] {
        let if_live = BTreeSet::from([seen]);
        let asked =
            RollbackMovesInput { products: [product("p")].into(), to: BTreeSet::new(), if_live: if_live.clone() };
        let moves = rollback_moves(&deps(&store), &step(1, "moves"), asked);
        let asked = LiveEditionsInput { product_id: product("p"), if_live };
        let live = live_editions(&deps(&store), &step(1, "live"), asked);
        assert_eq!((moves.is_ok(), live.is_ok()), (is_so, is_so));
        for code in [moves.err().map(|error| error.code()), live.err().map(|error| error.code())].into_iter().flatten()
        {
            assert_eq!(code, "catalog.live_changed");
        }
    }
}

#[test]
fn nothing_is_settled_on_an_older_version_than_the_newest() {
    let store = catalog(false);
    record(&store, "p", 2);
    store.create("inventory/000000000004.json", &Bytes::from_static(b"{")).unwrap();
    let asked = RollbackMovesInput { products: [product("p")].into(), to: BTreeSet::new(), if_live: BTreeSet::new() };
    let refused = rollback_moves(&deps(&store), &step(1, "moves"), asked).unwrap_err();
    assert_eq!((refused.code(), refused.disposition()), ("catalog.head_invalid", Disposition::Operator));
    let asked = LiveEditionsInput { product_id: product("p"), if_live: BTreeSet::new() };
    assert_eq!(live_editions(&deps(&store), &step(1, "live"), asked).unwrap_err().code(), "catalog.head_invalid");
}

#[test]
fn a_clock_that_is_ahead_of_the_stores_keeps_a_release_from_its_beginning() {
    let store = catalog(true);
    let ahead = NOON_MS + u64::try_from(MAX_CLOCK_AHEAD_MS).unwrap();
    assert!(preflight(&deps_at(&store, ahead - 10, Retention::default()), &step(1, "p"), Nothing {}).is_ok());
    let late = deps_at(&store, ahead + 1_000, Retention::default());
    let refused = preflight(&late, &step(1, "p"), Nothing {}).unwrap_err();
    assert_eq!((refused.code(), refused.disposition()), ("catalog.clock_ahead", Disposition::Operator));
    let refused = commit(&late, &step(1, "release_due"), input(Intent::ReleaseDue)).unwrap_err();
    assert_eq!(refused.code(), "catalog.clock_ahead", "the step that commits looks again");
    let faults = Retention { gc_days: 40, keep_roots: 1, ..Retention::default() };
    let told = preflight(&deps_at(&store, NOON_MS, faults), &step(1, "p"), Nothing {}).unwrap().warnings;
    let codes: Vec<_> = told.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(codes, ["retention.versions_below_gc", "retention.too_few_roots"]);
}

#[test]
fn what_is_old_enough_is_retired_but_for_the_last_that_may_be_rolled_back_to() {
    let store = catalog(false);
    record(&store, "p", 4);
    record(&store, "q", 3);
    let find = |store: &Arc<dyn Store>, products: &[&str]| {
        let products = products.iter().map(|name| product(name)).collect();
        find_retirable(&deps(store), &step(1, "find"), FindRetirableInput { products })
    };
    assert_eq!(find(&store, &[]).unwrap().editions, BTreeMap::new(), "nothing is old enough");
    // A month later, as a dry run could see it.
    let later = Instant::from_ms(i64::try_from(NOON_MS).unwrap() + 31 * DAY_MS);
    let store: Arc<dyn Store> = Arc::new(OverlayStore::over(store).at(later));
    let found = find(&store, &[]).unwrap();
    let old = |ids: &[u64]| ids.iter().map(|n| edition(*n)).collect::<BTreeSet<_>>();
    assert_eq!(found.editions, [(product("p"), old(&[1, 2])), (product("q"), old(&[1]))].into());
    assert_eq!(find(&store, &["q"]).unwrap().editions, [(product("q"), old(&[1]))].into());
    assert_eq!(find(&store, &["none"]).unwrap_err().code(), "catalog.unknown_product");
    let retire = input(Intent::Retire { editions: found.editions, before_window: false });
    let done = commit(&deps(&store), &step(1, "retire"), retire).unwrap();
    assert_eq!(done.counts, [("tombstone".to_owned(), 3)].into());
    // The last superseded one stays, and may be rolled back to.
    let intent = settled(&store, "p");
    assert_eq!(commit(&deps(&store), &step(2, "rollback"), input(intent)).unwrap().counts["live"], 1);
}

#[test]
fn a_record_of_a_release_of_a_whole_catalog_fits_the_journal() {
    // 2,400 products: more than a record tells, of which each fourth is refused.
    const PRODUCTS: u64 = 2_400;
    let mut output = CommitOutput {
        seq: 1,
        root_sha256: catalog_rules::ids::Sha256Hex::of(b""),
        already: false,
        counts: BTreeMap::new(),
        changes: Vec::new(),
        settings: Vec::new(),
        refused_count: 0,
        refused: Vec::new(),
    };
    let store = catalog(true);
    let sealed = manifest("p", 1, None);
    let Operation::Record(record) = seal(store.as_ref(), &sealed, None) else { panic!() };
    let writer = Writer::open(Arc::clone(&store)).unwrap();
    writer.commit(&Operation::Record(record), &by()).unwrap();
    let inventory = deps(&store).inventory().unwrap();
    let one = inventory.head().root.changes.as_ref().unwrap()[0].clone();
    let name = |n: u64| product(&format!("{}-{n:05}", "p".repeat(100)));
    let changes: Vec<_> = (0..PRODUCTS).map(|n| Change { product_id: name(n), ..one.clone() }).collect();
    let refusal = TransitionRefusal::TwoPending {
        product: name(1),
        edition: edition(1),
        other: edition(2),
        previous: Some(edition(3)),
        schema: catalog_rules::inventory::SchemaVersion::new("2.52"),
        registered: false,
    };
    let refused = RefusedEdition::of(&name(1), &edition(1), &refusal.into());
    commit::tell(&changes, vec![refused; 600], &mut output);
    assert_eq!((output.changes.len(), output.counts["embargoed"]), (CHANGES_TOLD, PRODUCTS));
    assert_eq!((output.refused.len(), output.refused_count), (REFUSALS_TOLD, 600));
    let size_bytes = serde_json::to_vec(&output).unwrap().len();
    assert!(engine_rules::limits::check_payload("the output", size_bytes).is_ok(), "{size_bytes}");
}

#[test]
fn a_manifest_that_is_another_than_was_settled_on_brings_nothing_back() {
    let store = catalog(false);
    record(&store, "p", 3);
    let intent = settled(&store, "p");
    commit(&deps(&store), &step(1, "rollback"), input(intent)).unwrap();
    let editions: BTreeMap<_, _> = [(product("p"), BTreeSet::from([edition(3)]))].into();
    let retire = input(Intent::Retire { editions, before_window: true });
    commit(&deps(&store), &step(2, "retire"), retire).unwrap();
    let (product_id, edition_id) = (product("p"), edition(3));
    let asked = ReadManifestInput { product_id: product_id.clone(), edition_id: edition_id.clone() };
    let manifest_sha256 = read_manifest(&deps(&store), &step(3, "read"), asked).unwrap().manifest_sha256;
    let path = layout::manifest(&product_id, &edition_id);
    let sealed = store.get(&path).unwrap().unwrap();
    store.replace(&path, Some(&sealed), &Bytes::from_static(b"{}")).unwrap();
    let reinstate =
        Intent::Reinstate { product_id: product_id.clone(), edition_id: edition_id.clone(), manifest_sha256 };
    let refused = commit(&deps(&store), &step(3, "reinstate"), input(reinstate.clone())).unwrap_err();
    assert_eq!(refused.code(), "catalog.manifest_differs");
    store.delete(&path).unwrap();
    let refused = commit(&deps(&store), &step(3, "reinstate"), input(reinstate)).unwrap_err();
    assert_eq!(refused.code(), "catalog.manifest_missing");
    let asked = ReadManifestInput { product_id, edition_id };
    let refused = read_manifest(&deps(&store), &step(3, "read"), asked).unwrap_err();
    assert_eq!(refused.code(), "catalog.manifest_missing");
}
