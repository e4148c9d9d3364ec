mod conformance;
pub(super) mod crash_and_race;
mod fallback;
mod mend;
mod verify;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use catalog_rules::ids::{CatalogId, EditionId, ProductId, Sha256Hex};
use catalog_rules::inventory::{By, Current, Lifecycle, Mark, Operation, OwnWork, Producer, Record, Seq};
use catalog_rules::layout;
use catalog_rules::manifest::Manifest;
use engine_rules::clock::Clock as _;
use engine_rules::failure::{ActivityError as _, Disposition};
use serde_json::{Map, json};

use super::*;
use crate::fs::{Fs, RealFs};
use crate::store::tests::{NOON_MS, TestClock};
use crate::store::{LocalStore, MemoryStore, Store};

/// An edition id that rises with `n`; minted at the tests' noon.
pub(crate) fn edition(n: u64) -> EditionId {
    let ms = NOON_MS;
    let text = format!("{:08x}-{:04x}-7000-8000-{n:012x}", ms >> 16, ms & 0xffff);
    text.parse().unwrap()
}

pub(crate) fn product(name: &str) -> ProductId {
    name.parse().unwrap()
}

pub(super) fn by(run: &str) -> By {
    By {
        actor: "tester@here".to_owned(),
        reason: "because".to_owned(),
        producer: Producer { name: "jobctl".to_owned(), version: "0.1.0".to_owned() },
        own_work: (!run.is_empty()).then(|| OwnWork { run_id: run.to_owned(), step: "record".to_owned() }),
    }
}

pub(super) fn init(embargo: bool) -> Init {
    Init {
        catalog_id: CatalogId::from_uuid(TestClock::at_ms(NOON_MS).new_id()).unwrap(),
        embargo,
        title: BTreeMap::from([("en".to_owned(), "Statistics".to_owned())]),
        beside: vec!["jobctl.toml".to_owned()],
    }
}

pub(super) fn local(root: &std::path::Path, fs: Arc<dyn Fs>) -> Arc<dyn Store> {
    Arc::new(LocalStore::new(root.to_owned(), fs, TestClock::at_ms(NOON_MS)))
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(TestClock::at_ms(NOON_MS)))
}

/// A catalog in memory.
pub(crate) fn catalog(embargo: bool) -> Arc<dyn Store> {
    let store = memory();
    init_catalog(store.as_ref(), &init(embargo), &by("")).unwrap();
    store
}

/// The manifest of edition `n` of `product`, built on edition `previous`.
pub(crate) fn manifest(product: &str, n: u64, previous: Option<u64>) -> Manifest {
    let sha = |text: &str| Sha256Hex::of(text.as_bytes()).to_string();
    let file = |path: &str, size: u64| {
        json!({"path": path, "size": size, "root": "edition", "tier": "required",
               "digests": {"sha256": sha(path), "md5": "0".repeat(32), "crc32c": "00000000"}})
    };
    let urn = |class: &str, id: &str| format!("urn:sdmx:org.sdmx.infomodel.datastructure.{class}=STC:{id}(1.0)");
    let mut manifest: Manifest = serde_json::from_value(json!({
        "format_version": "3.0",
        "product_id": product,
        "edition_id": edition(n),
        "previous": previous.map(edition),
        "created_at": "2026-10-09T12:30:00.000000Z",
        "producer": {"name": "jobctl", "version": "0.1.0"},
        "sdmxlib_version": "0+jobctl.0.1.0",
        "schema_version": "2.52-jobctl.1",
        "duckdb_version": "1.5.5",
        "duckdb_storage_version": 68,
        "ducklake_version": "d8a1881e",
        "ducklake_spec_version": "1.0",
        "data_path": "../data/",
        "files": [file("metadata.duckdb", 1000 + n), file("tables.ducklake", 20)],
        "bindings": [{"dataflow": urn("Dataflow", "DF"), "observations": n, "structural_version": urn("DataStructure", "DSD"),
                      "fingerprint": format!("{n}:{n}"), "structure_fingerprint": sha("structure")}],
        "artefacts": [{"urn": urn("DataStructure", &format!("DSD_{product}")), "stability": "legacy", "partial": false,
                       "fingerprint": sha("dsd")}],
        "canonical_form": "1",
    }))
    .unwrap();
    manifest.content_fingerprint = Some(manifest.computed_content_fingerprint());
    manifest
}

/// Puts the manifest in its place, as a seal does, and gives the operation that records the edition.
pub(crate) fn seal(store: &dyn Store, manifest: &Manifest, lifecycle: Option<Lifecycle>) -> Operation {
    let bytes = Bytes::from(manifest.encode());
    let path = layout::manifest(&manifest.product_id, &manifest.edition_id);
    store.create(&path, &bytes).unwrap();
    let record = Record::from_manifest(manifest, Sha256Hex::of(&bytes), lifecycle, None).unwrap();
    Operation::Record(Box::new(record))
}

pub(super) fn full(store: &Arc<dyn Store>) -> FullInventory {
    FullInventory::open(fetch_from(Arc::clone(store))).unwrap()
}

pub(super) fn current(store: &dyn Store) -> Option<Current> {
    store.get(layout::CURRENT).unwrap().as_deref().and_then(Current::decode)
}

#[test]
fn a_new_catalog_takes_editions_and_shows_them() {
    let store = catalog(false);
    let writer = Writer::open(Arc::clone(&store)).unwrap();
    let first = writer.commit(&seal(store.as_ref(), &manifest("p", 1, None), None), &by("run-1")).unwrap();
    assert_eq!((first.seq.get(), first.state, first.already), (2, Some(Mark::Live), false));
    let second = writer.commit(&seal(store.as_ref(), &manifest("p", 2, Some(1)), None), &by("run-2")).unwrap();
    assert_eq!((second.seq.get(), second.state, second.already), (3, Some(Mark::Live), false));

    let inventory = full(&store);
    assert_eq!(inventory.head().root_sha256, second.root_sha256);
    assert_eq!(inventory.alerts().len(), 0);
    let marks = inventory.marks(&product("p")).unwrap();
    assert_eq!(marks, BTreeMap::from([(edition(1), Mark::Superseded), (edition(2), Mark::Live)]));
    assert_eq!(inventory.head().root.extensions["jobctl"]["run_id"], "run-2");
    assert_eq!(inventory.head().root.extensions["statcat"]["description"]["title"]["en"], "Statistics");
    assert_eq!(current(store.as_ref()).unwrap().seq, second.seq);

    let live = LiveInventory::open(fetch_from(Arc::clone(&store))).unwrap();
    let editions = live.editions().unwrap();
    assert_eq!(editions.len(), 1);
    assert_eq!(editions[0].edition_id, edition(2));
    assert_eq!(editions[0].pull_bytes, Some(1022));
    assert_eq!(editions[0].dataflows.as_ref().unwrap().len(), 1);
    assert_eq!(live.product(&product("p")).unwrap(), editions);
    assert_eq!(live.head(&product("p"), &editions[0].schema_version).unwrap().as_ref(), editions.first());
    assert_eq!(live.product(&product("q")).unwrap(), []);
}

#[test]
fn with_embargo_an_edition_is_recorded_and_stays_unseen() {
    let store = catalog(true);
    let writer = Writer::open(Arc::clone(&store)).unwrap();
    let committed = writer.commit(&seal(store.as_ref(), &manifest("p", 1, None), None), &by("run-1")).unwrap();
    assert_eq!(committed.state, Some(Mark::Embargoed));
    assert_eq!(LiveInventory::open(fetch_from(Arc::clone(&store))).unwrap().editions().unwrap(), []);
    let embargoed = full(&store).embargoed().unwrap();
    assert_eq!(embargoed.len(), 1);
    assert_eq!(embargoed[0].1.release_at, None, "never due by itself");
}

#[test]
fn a_step_that_runs_again_finds_its_own_work() {
    let store = catalog(false);
    let writer = Writer::open(Arc::clone(&store)).unwrap();
    let one = seal(store.as_ref(), &manifest("p", 1, None), None);
    let done = writer.commit(&one, &by("run-1")).unwrap();
    let describe = Operation::Describe(Map::from_iter([("description".to_owned(), json!({"title": {"en": "A"}}))]));
    let described = writer.commit(&describe, &by("run-2")).unwrap();

    // The same step, later: its own version, and what the head knows of the edition now.
    let again = writer.commit(&one, &by("run-1")).unwrap();
    assert_eq!(again, Committed { already: true, ..done.clone() });
    let again = writer.commit(&describe, &by("run-2")).unwrap();
    assert_eq!(again, Committed { already: true, ..described.clone() });
    // Another run with the same edition: the head that knows it.
    let other = writer.commit(&one, &by("run-3")).unwrap();
    assert_eq!((other.seq, other.state, other.already), (described.seq, Some(Mark::Live), true));
    assert_eq!(full(&store).head().seq(), described.seq, "nothing was written again");
}

#[test]
fn an_edition_that_a_version_named_is_found_though_the_head_forgot_it() {
    let store = catalog(false);
    let writer = Writer::open(Arc::clone(&store)).unwrap();
    writer.commit(&seal(store.as_ref(), &manifest("p", 1, None), None), &by("run-1")).unwrap();
    let inventory = full(&store);
    assert_eq!(inventory.newest_naming(&product("p"), &edition(1)).unwrap().map(Seq::get), Some(2));
    assert_eq!(inventory.newest_naming(&product("p"), &edition(9)).unwrap(), None);
    // As after a restore of version 1: the head does not know it, an earlier version does.
    let mut root = inventory.version(Seq::FIRST).unwrap().unwrap().root;
    root.seq = Seq::new(3).unwrap();
    root.previous_inventory = Seq::new(2);
    root.previous_root_sha256 = None;
    root.changes = None;
    use catalog_rules::inventory::Document as _;
    store.create(&layout::root(root.seq), &Bytes::from(root.encode().unwrap())).unwrap();
    let inventory = full(&store);
    assert_eq!(inventory.head().seq().get(), 3);
    assert_eq!(inventory.marks(&product("p")).unwrap(), BTreeMap::new());
    assert_eq!(inventory.newest_naming(&product("p"), &edition(1)).unwrap().map(Seq::get), Some(2));
}

#[test]
fn init_refuses_what_is_not_an_empty_folder() {
    for (name, code) in [
        ("notes.txt", "catalog.not_empty"),
        ("meta.duckdb", "catalog.other_layout"),
        ("bundle.manifest.json", "catalog.other_layout"),
        ("products", "catalog.not_empty"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        if name == "products" {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        } else {
            std::fs::write(dir.path().join(name), b"x").unwrap();
        }
        let store = local(dir.path(), Arc::new(RealFs));
        let error = init_catalog(store.as_ref(), &init(false), &by("")).unwrap_err();
        assert_eq!(error.code(), code, "{name}");
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "something was created beside {name}");
        let error = Writer::open(store).unwrap_err();
        assert!(["catalog.other_layout", "catalog.not_a_catalog"].contains(&error.code()), "{error}");
    }
}

#[test]
fn init_takes_a_folder_with_a_configuration_and_refuses_a_catalog() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("jobctl.toml"), b"").unwrap();
    let store = local(dir.path(), Arc::new(RealFs));
    let made = init_catalog(store.as_ref(), &init(true), &by("")).unwrap();
    assert!(!made.already);
    assert_eq!(open_catalog(store.as_ref()).unwrap().catalog_id, made.catalog_id);
    assert!(full(&store).head().root.embargo);
    let error = init_catalog(store.as_ref(), &init(true), &by("")).unwrap_err();
    assert_eq!(error.code(), "catalog.exists");
    std::fs::write(dir.path().join("meta.duckdb"), b"").unwrap();
    assert_eq!(open_catalog(store.as_ref()).unwrap_err().code(), "catalog.other_layout");
}

#[test]
fn a_damaged_leaf_names_its_product_and_path() {
    let store = catalog(false);
    let writer = Writer::open(Arc::clone(&store)).unwrap();
    writer.commit(&seal(store.as_ref(), &manifest("p", 1, None), None), &by("run-1")).unwrap();
    let inventory = full(&store);
    let path = layout::leaf(inventory.head().root.leaf_sha256(&product("p")).unwrap());
    store.delete(&path).unwrap();
    let error = full(&store).leaf(&product("p")).unwrap_err();
    assert!(error.to_string().contains("product p") && error.to_string().contains("is missing"), "{error}");
    store.create(&path, &Bytes::from_static(b"{}")).unwrap();
    let error = full(&store).leaf(&product("p")).unwrap_err();
    assert!(error.to_string().contains("has SHA-256"), "{error}");
    assert_eq!(error.disposition(), Disposition::Operator);
}
