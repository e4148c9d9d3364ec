//! Races, crashes and full disks, beside what the conformance suite holds of every store: no version is lost, none is
//! written twice, and a rerun converges.

use std::cell::RefCell;
use std::path::Path;

use catalog_rules::inventory::{Document as _, Leaf, Root};
use engine_rules::crash;

use super::*;
use crate::fs::TEMPORARY_PREFIX;
use crate::fs::testing::RecordingFs;
use crate::store::simulated::{Act, On, Simulated};

/// Reads every version from the head to the first and checks chain, leaves and change lists. Gives the runs that wrote
/// them, newest first.
fn verified_runs(store: &Arc<dyn Store>) -> Vec<String> {
    let inventory = full(store);
    assert_eq!(alerts(&inventory), "");
    let mut runs = Vec::new();
    let mut next = Some(inventory.head().seq());
    let mut expected: Option<Sha256Hex> = None;
    while let Some(seq) = next {
        let head = inventory.version(seq).unwrap().expect("a version is missing");
        assert!(expected.is_none_or(|expected| expected == head.root_sha256), "the chain breaks at {seq}");
        for (product, reference) in &head.root.products {
            let bytes = store.get(&layout::leaf(&reference.leaf_sha256)).unwrap().expect("a leaf is missing");
            assert_eq!(Sha256Hex::of(&bytes), reference.leaf_sha256);
            assert_eq!(Leaf::decode(&bytes).unwrap().product_id, *product);
        }
        assert!(head.root.has_history());
        runs.push(head.root.extensions.get("jobctl").map_or("", |own| own["run_id"].as_str().unwrap()).to_owned());
        expected = head.root.previous_root_sha256.clone().unwrap();
        next = seq.before();
    }
    assert_eq!(expected, None, "version 1 has a base");
    runs
}

fn alerts(inventory: &FullInventory) -> String {
    inventory.alerts().iter().map(|alert| format!("{alert}; ")).collect()
}

/// Writers in threads, each with a product of its own.
fn race(store: &Arc<dyn Store>, writers: &[Arc<dyn Store>], each: u64) {
    let gate = std::sync::Barrier::new(writers.len());
    let mut written: Vec<(u64, String)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..)
            .zip(writers)
            .map(|(n, store)| {
                let gate = &gate;
                scope.spawn(move || {
                    let writer = Writer::open(Arc::clone(store)).unwrap();
                    let name = format!("p{n}");
                    let operations: Vec<_> = (0..each)
                        .map(|i| {
                            let manifest = manifest(&name, n * 1000 + i, i.checked_sub(1).map(|i| n * 1000 + i));
                            seal(store.as_ref(), &manifest, None)
                        })
                        .collect();
                    gate.wait();
                    let mut written = Vec::new();
                    for (i, operation) in operations.iter().enumerate() {
                        let run = format!("run-{n}-{i}");
                        let committed = writer.commit(operation, &by(&run)).unwrap();
                        assert!(!committed.already);
                        written.push((committed.seq.get(), run));
                    }
                    written
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    written.sort_unstable();
    let seqs: Vec<u64> = written.iter().map(|(seq, _)| *seq).collect();
    let total = writers.len() as u64 * each;
    assert_eq!(seqs, (2..2 + total).collect::<Vec<_>>(), "consecutive, and none twice");
    let mut runs = verified_runs(store);
    assert_eq!(runs.pop().as_deref(), Some(""), "the first version");
    runs.reverse();
    assert_eq!(runs, written.into_iter().map(|(_, run)| run).collect::<Vec<_>>(), "what was reported is what is there");
    assert_eq!(current(store.as_ref()).unwrap().seq.get(), 1 + total);
    assert_eq!(LiveInventory::open(fetch_from(Arc::clone(store))).unwrap().editions().unwrap().len(), writers.len());
}

#[test]
fn writers_that_race_on_one_local_store_all_land() {
    let dir = tempfile::tempdir().unwrap();
    let store = local(&dir.path().join("c"), Arc::new(RealFs));
    init_catalog(store.as_ref(), &init(false), &by("")).unwrap();
    race(&store, &[Arc::clone(&store), Arc::clone(&store)], 10);
}

#[test]
fn writers_with_a_store_each_on_one_folder_all_land() {
    let dir = tempfile::tempdir().unwrap();
    let store = || local(&dir.path().join("c"), Arc::new(RealFs));
    init_catalog(store().as_ref(), &init(false), &by("")).unwrap();
    race(&store(), &[store(), store(), store()], 5);
}

#[test]
fn writers_that_race_without_a_lock_all_land() {
    for _ in 0..5 {
        let store = catalog(false);
        race(&store, &vec![Arc::clone(&store); 4], 10);
    }
}

thread_local! {
    static CRASH_AT: RefCell<Option<&'static str>> = const { RefCell::new(None) };
}

/// Runs `work` as a process that ends at `point`. Gives what it gave, if it came past.
pub(in crate::inventory) fn crashing_at<T>(point: &'static str, work: impl FnOnce() -> T) -> Option<T> {
    crash::install(|name| {
        if CRASH_AT.with_borrow(|at| *at == Some(name)) {
            std::panic::resume_unwind(Box::new("the test's crash"));
        }
    });
    CRASH_AT.set(Some(point));
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    CRASH_AT.set(None);
    outcome.ok()
}

#[test]
fn a_crash_at_any_point_of_a_version_is_finished_by_the_next_run() {
    for (i, point) in CRASH_POINTS.iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let store = local(&dir.path().join("c"), Arc::new(RealFs));
        init_catalog(store.as_ref(), &init(false), &by("")).unwrap();
        let operation = seal(store.as_ref(), &manifest("p", 1, None), None);
        let commit = || Writer::open(Arc::clone(&store)).unwrap().commit(&operation, &by("run-1")).unwrap();
        assert!(crashing_at(point, commit).is_none(), "{point} was not reached");

        let written = i >= 2;
        assert_eq!(full(&store).head().seq().get(), if written { 2 } else { 1 }, "{point}");
        assert_eq!(current(store.as_ref()).unwrap().seq.get(), if i == 3 { 2 } else { 1 }, "{point}");
        let committed = commit();
        assert_eq!(
            (committed.seq.get(), committed.state, committed.already),
            (2, Some(Mark::Live), written),
            "{point}"
        );
        assert_eq!(verified_runs(&store), ["run-1", ""], "{point}");
        assert_eq!(current(store.as_ref()).unwrap().seq.get(), 2, "{point}");
    }
}

#[test]
fn a_crash_at_any_point_of_the_creation_is_finished_by_the_next_call() {
    for point in INIT_CRASH_POINTS {
        let dir = tempfile::tempdir().unwrap();
        let store = local(&dir.path().join("c"), Arc::new(RealFs));
        let new = || init_catalog(store.as_ref(), &init(true), &by("")).unwrap();
        assert!(crashing_at(point, new).is_none(), "{point} was not reached");
        let made = new();
        assert_eq!(verified_runs(&store), [""], "{point}");
        assert_eq!(current(store.as_ref()).unwrap().root_sha256, made.root_sha256);
        assert_eq!(full(&store).head().root_sha256, made.root_sha256);
    }
    // A run's step that created it and lost its answer.
    let store = memory();
    let made = init_catalog(store.as_ref(), &init(true), &by("run-1")).unwrap();
    let again = init_catalog(store.as_ref(), &init(true), &by("run-1")).unwrap();
    assert_eq!(again, Initialised { already: true, ..made });
}

fn temporaries(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(temporaries(&entry.path()));
        } else if entry.file_name().to_string_lossy().starts_with(TEMPORARY_PREFIX) {
            found.push(entry.path().display().to_string());
        }
    }
    found
}

#[test]
fn a_disk_that_fails_at_any_call_leaves_a_readable_inventory_and_a_rerun_converges() {
    let mut failed = 0;
    for n in 0.. {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("c");
        let sound = local(&root, Arc::new(RealFs));
        init_catalog(sound.as_ref(), &init(false), &by("")).unwrap();
        let operation = seal(sound.as_ref(), &manifest("p", 1, None), None);
        let fs = Arc::new(RecordingFs::failing_at(n));
        let outcome = Writer::open(local(&root, fs.clone())).unwrap().commit(&operation, &by("run-1"));
        let reached = fs.calls().len() > n;

        assert_eq!(alerts(&full(&sound)), "", "call {n}");
        assert!(full(&sound).head().seq().get() <= 2);
        assert_eq!(temporaries(&root), Vec::<String>::new(), "call {n}");
        if let Err(error) = &outcome {
            failed += 1;
            assert_eq!(error.disposition(), Disposition::Operator, "a full disk is for a person: {error}");
        }
        let again = Writer::open(Arc::clone(&sound)).unwrap().commit(&operation, &by("run-1")).unwrap();
        assert_eq!((again.seq.get(), again.state), (2, Some(Mark::Live)), "call {n}");
        assert_eq!(verified_runs(&sound), ["run-1", ""], "call {n}");
        assert_eq!(current(sound.as_ref()).unwrap().seq.get(), 2, "call {n}");
        if !reached {
            assert!(outcome.is_ok());
            assert!(n > 12, "a version takes more calls than {n}");
            break;
        }
    }
    assert!(failed > 8, "only {failed} calls failed the version");
}

#[test]
fn a_disk_that_fails_at_any_call_of_the_creation_leaves_what_the_next_call_finishes() {
    for n in 0.. {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("c");
        let fs = Arc::new(RecordingFs::failing_at(n));
        let outcome = init_catalog(local(&root, fs.clone()).as_ref(), &init(true), &by(""));
        let reached = fs.calls().len() > n;
        let sound = local(&root, Arc::new(RealFs));
        if outcome.is_err() {
            init_catalog(sound.as_ref(), &init(true), &by("")).unwrap();
        }
        assert_eq!(verified_runs(&sound), [""], "call {n}");
        assert_eq!(current(sound.as_ref()).unwrap().seq, Seq::FIRST, "call {n}");
        if !reached {
            assert!(outcome.is_ok() && n > 10, "the creation takes more calls than {n}");
            break;
        }
    }
}

#[test]
fn a_version_is_written_as_leaves_then_root_then_current_each_durable_before_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("c");
    let fs = Arc::new(RecordingFs::new());
    let store = local(&root, fs.clone());
    init_catalog(store.as_ref(), &init(false), &by("")).unwrap();
    let operation = seal(store.as_ref(), &manifest("p", 1, None), None);
    let writer = Writer::open(Arc::clone(&store)).unwrap();
    // Once before, so that the folders are there.
    writer.commit(&seal(store.as_ref(), &manifest("q", 9, None), None), &by("")).unwrap();
    let before = fs.calls().len();
    writer.commit(&operation, &by("")).unwrap();
    let sha256 = full(&store).head().root.leaf_sha256(&product("p")).unwrap().clone();
    let name = |path: &str| path.strip_prefix(&format!("{}/", root.display())).unwrap_or("").to_owned();
    let calls: Vec<_> = fs.calls()[before..]
        .iter()
        .map(|call| match &call.to {
            Some(to) => (call.operation, name(to)),
            None if call.path.contains(TEMPORARY_PREFIX) => (call.operation, "temporary".to_owned()),
            None => (call.operation, name(&call.path)),
        })
        .collect();
    let write = |rename: &'static str, path: String, folder: &str| {
        vec![
            ("write_new", "temporary".to_owned()),
            ("fsync_file", "temporary".to_owned()),
            (rename, path),
            ("fsync_dir", folder.to_owned()),
        ]
    };
    let expected = [
        write("rename_new", layout::leaf(&sha256), "inventory/leaves"),
        write("rename_new", layout::root(Seq::new(3).unwrap()), "inventory"),
        write("rename", layout::CURRENT.to_owned(), ""),
    ]
    .concat();
    assert_eq!(calls, expected);
}

/// Commits edition 1 while `rival` writes just before the root.
fn commit_against(
    rival: impl FnOnce(&dyn Store) + Send + 'static,
) -> (Arc<dyn Store>, Result<Committed, InventoryError>) {
    let store = catalog(false);
    let operation = seal(store.as_ref(), &manifest("p", 1, None), None);
    let sim = Simulated::new(Arc::clone(&store));
    sim.at(On::Root, 0, Act::Before(Box::new(|store| rival(store.as_ref()))));
    let outcome = Writer::open(sim.client(0)).unwrap().commit(&operation, &by("run-1"));
    assert!(sim.is_played(), "the rival never wrote");
    (store, outcome)
}

/// Writes the next version as another program does.
fn next_root(store: &dyn Store, edit: impl FnOnce(&mut Root)) {
    let mut seq = Seq::FIRST;
    while store.get(&layout::root(seq.next())).unwrap().is_some() {
        seq = seq.next();
    }
    let base = store.get(&layout::root(seq)).unwrap().unwrap();
    let mut root = Root::decode(&base).unwrap();
    (root.seq, root.previous_inventory) = (seq.next(), Some(seq));
    root.previous_root_sha256 = Some(Some(Sha256Hex::of(&base)));
    edit(&mut root);
    store.create(&layout::root(root.seq), &Bytes::from(root.encode().unwrap())).unwrap();
}

#[test]
fn a_record_that_lost_to_a_fast_clock_is_refused() {
    let ahead = |root: &mut Root| root.created_at = root.created_at.plus_ms(400_000);
    let (store, outcome) = commit_against(move |store| next_root(store, ahead));
    assert_eq!(outcome.unwrap_err().code(), "catalog.clock_behind");
    assert_eq!(full(&store).head().seq().get(), 2);
}

#[test]
fn a_record_that_lost_to_a_damaged_root_is_refused() {
    let (store, outcome) = commit_against(|store| {
        store.create(&layout::root(Seq::FIRST.next()), &Bytes::new()).unwrap();
    });
    assert_eq!(outcome.unwrap_err().code(), "catalog.head_invalid");
    assert_eq!(full(&store).head().seq(), Seq::FIRST);
}

#[test]
fn a_record_that_lost_every_race_says_so() {
    // Somebody takes the name each time, so that it is there when the root is to be created.
    let store = catalog(false);
    let operation = seal(store.as_ref(), &manifest("p", 1, None), None);
    let sim = Simulated::new(Arc::clone(&store));
    for n in 0..64 {
        sim.at(On::Root, n, Act::Before(Box::new(|store| next_root(store.as_ref(), |_| {}))));
    }
    let error = Writer::open(sim.client(0)).unwrap().commit(&operation, &by("run-1")).unwrap_err();
    assert_eq!((error.code(), error.disposition()), ("catalog.contended", Disposition::Retry));
    assert!(sim.is_played());
    assert_eq!(full(&store).head().seq().get(), 65);
}

#[test]
fn a_catalog_that_somebody_else_writes_to_is_busy() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("c");
    let store = local(&root, Arc::new(RealFs));
    init_catalog(store.as_ref(), &init(false), &by("")).unwrap();
    let held = store.lock().unwrap();
    let impatient = LocalStore::new(root, Arc::new(RealFs), TestClock::at_ms(NOON_MS)).with_lock_wait_ms(20);
    let operation = seal(store.as_ref(), &manifest("p", 1, None), None);
    let writer = Writer::open(Arc::new(impatient)).unwrap();
    let error = writer.commit(&operation, &by("run-1")).unwrap_err();
    assert_eq!(error.code(), "catalog.busy");
    assert!(error.to_string().contains(" ms"), "{error}");
    drop(held);
    writer.commit(&operation, &by("run-1")).unwrap();
}
