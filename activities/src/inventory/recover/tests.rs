use std::sync::Arc;

use bytes::Bytes;
use catalog_rules::inventory::{CatalogJson, Document as _, Mark, RebuildAsked, Seq};
use catalog_rules::layout;
use engine_rules::failure::ActivityError as _;

use super::super::tests::crash_and_race::crashing_at;
use super::super::tests::{by, catalog, current, edition, full, local, manifest, product, seal};
use super::super::*;
use crate::fs::RealFs;
use crate::store::Store;

fn seq(n: u64) -> Seq {
    Seq::new(n).unwrap()
}

/// A catalog with two versions of a product and a damaged root of version 4.
fn damaged(bytes: &'static [u8]) -> Arc<dyn Store> {
    let store = catalog(false);
    let writer = Writer::open(Arc::clone(&store)).unwrap();
    for (n, previous) in [(1, None), (2, Some(1))] {
        let operation = seal(store.as_ref(), &manifest("14100287", n, previous), None);
        writer.commit(&operation, &by("")).unwrap();
    }
    store.create(&layout::root(seq(4)), &Bytes::from_static(bytes)).unwrap();
    store
}

fn repair(store: &dyn Store, keep: &std::path::Path, n: u64, dry_run: bool) -> Result<RepairedHead, InventoryError> {
    repair_head(store, &HeadRepair { seq: seq(n), confirm_committed: false, keep, fs: &RealFs, dry_run })
}

#[test]
fn a_damaged_head_is_deleted_once_a_copy_is_kept_and_the_next_version_follows() {
    for bytes in [b"".as_slice(), b"{\"format_version\": \"1.2\", \"seq\": 4", b"\xff\xfe"] {
        let store = damaged(bytes);
        let folder = tempfile::tempdir().unwrap();
        let keep = folder.path().join("run");
        let operation = seal(store.as_ref(), &manifest("14100287", 3, Some(2)), None);
        let writer = Writer::open(Arc::clone(&store)).unwrap();
        let refused = writer.commit(&operation, &by("")).unwrap_err();
        assert_eq!(refused.code(), "catalog.head_invalid");
        assert!(refused.hint().unwrap().contains("jobctl run repair-head --seq 4"), "found {refused}");

        let planned = repair(store.as_ref(), &keep, 4, true).unwrap();
        assert_eq!((planned.head, planned.already), (seq(3), false));
        assert!(store.get(&layout::root(seq(4))).unwrap().is_some(), "a dry run deleted the root");
        assert!(!keep.exists(), "a dry run wrote a copy");

        let done = repair(store.as_ref(), &keep, 4, false).unwrap();
        assert_eq!(done, planned);
        assert_eq!(std::fs::read(&done.kept).unwrap(), bytes);
        assert_eq!(store.get(&layout::root(seq(4))).unwrap(), None);
        // The answer was lost: the run asks again.
        let again = repair(store.as_ref(), &keep, 4, false).unwrap();
        assert_eq!(again, RepairedHead { already: true, ..done });

        assert_eq!(writer.commit(&operation, &by("")).unwrap().seq, seq(4));
        assert_eq!(current(store.as_ref()).unwrap().seq, seq(4));
    }
}

#[test]
fn a_sound_head_is_not_deleted() {
    let store = damaged(b"");
    let folder = tempfile::tempdir().unwrap();
    let code = |n| repair(store.as_ref(), folder.path(), n, false).unwrap_err().code();
    assert_eq!(code(3), "catalog.head_valid");
    assert_eq!(code(5), "catalog.head_absent");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a refused repair kept a copy");
}

fn rebuild(store: &dyn Store, lost_through: Option<u64>, dry_run: bool) -> Result<RebuiltInventory, InventoryError> {
    let asked = RebuildAsked { embargo: false, lost_through };
    rebuild_inventory(store, RebuildInventory { asked, dry_run }, &by("rebuild"))
}

#[test]
fn an_inventory_that_is_gone_is_rebuilt_from_the_manifests() {
    let folder = tempfile::tempdir().unwrap();
    for store in [catalog(false), {
        let store = local(folder.path(), Arc::new(RealFs));
        init_catalog(store.as_ref(), &super::super::tests::init(false), &by("")).unwrap();
        store
    }] {
        let writer = Writer::open(Arc::clone(&store)).unwrap();
        for (name, n, previous) in [("14100287", 1, None), ("14100287", 2, Some(1)), ("18100004", 3, None)] {
            writer.commit(&seal(store.as_ref(), &manifest(name, n, previous), None), &by("")).unwrap();
        }
        let refused = rebuild(store.as_ref(), None, false).unwrap_err();
        assert_eq!(refused.code(), "catalog.still_readable", "found {refused}");

        for name in store.list(layout::INVENTORY).unwrap().objects {
            store.delete(&format!("{}/{name}", layout::INVENTORY)).unwrap();
        }
        let refused = rebuild(store.as_ref(), None, false).unwrap_err();
        assert_eq!(refused.code(), "catalog.history_lost", "found {refused}");
        assert!(refused.hint().unwrap().contains("--lost-through 4"), "found {:?}", refused.hint());

        let before = store.get(layout::CATALOG).unwrap();
        let planned = rebuild(store.as_ref(), Some(4), true).unwrap();
        assert_eq!(store.get(layout::CATALOG).unwrap(), before, "a dry run wrote catalog.json");
        let done = rebuild(store.as_ref(), Some(4), false).unwrap();
        assert_eq!(done.editions, planned.editions);
        assert_eq!((done.restore_epoch, done.products), (1, 2));
        assert_eq!(CatalogJson::decode(&store.get(layout::CATALOG).unwrap().unwrap()).unwrap().restore_epoch, 1);

        let inventory = full(&store);
        assert_eq!(inventory.head().seq(), Seq::FIRST);
        let marks = inventory.marks(&product("14100287")).unwrap();
        assert_eq!(marks[&edition(1)], Mark::Superseded);
        assert_eq!(marks[&edition(2)], Mark::Live);
        assert_eq!(current(store.as_ref()).unwrap().root_sha256, done.root_sha256);
        let again = rebuild(store.as_ref(), Some(4), false).unwrap();
        assert_eq!(again, RebuiltInventory { already: true, ..done });
        let next = seal(store.as_ref(), &manifest("14100287", 4, Some(2)), None);
        assert_eq!(writer.commit(&next, &by("")).unwrap().seq, seq(2));
    }
}

#[test]
fn a_withdrawn_edition_is_not_resurrected_by_a_rebuild() {
    let store = catalog(false);
    let writer = Writer::open(Arc::clone(&store)).unwrap();
    for (n, previous) in [(1, None), (2, Some(1))] {
        writer.commit(&seal(store.as_ref(), &manifest("14100287", n, previous), None), &by("")).unwrap();
    }
    let leaf = full(&store).leaf(&product("14100287")).unwrap().unwrap();
    let moves = catalog_rules::inventory::rollback_moves(&leaf, &Default::default()).unwrap();
    let rollback = catalog_rules::inventory::Operation::Rollback([(product("14100287"), moves)].into());
    writer.commit(&rollback, &by("")).unwrap();
    for name in store.list(layout::INVENTORY).unwrap().objects {
        store.delete(&format!("{}/{name}", layout::INVENTORY)).unwrap();
    }
    let refused = rebuild(store.as_ref(), Some(4), false).unwrap_err();
    assert_eq!(refused.code(), "catalog.rolled_back", "found {refused}");
    assert!(refused.to_string().contains(edition(2).as_str()), "found {refused}");
    assert_eq!(store.list(layout::INVENTORY).unwrap().objects, Vec::<String>::new());
}

#[test]
fn a_recovery_that_crashed_at_any_point_is_finished_by_its_next_attempt() {
    for point in RECOVERY_CRASH_POINTS.iter().filter(|point| point.starts_with("inventory.repair")) {
        let store = damaged(b"half");
        let folder = tempfile::tempdir().unwrap();
        let attempt = || repair(store.as_ref(), folder.path(), 4, false);
        assert!(crashing_at(point, attempt).is_none(), "{point} was not reached");
        let done = attempt().unwrap();
        assert_eq!(std::fs::read(&done.kept).unwrap(), b"half", "{point}");
        assert_eq!((store.get(&layout::root(seq(4))).unwrap(), done.head), (None, seq(3)), "{point}");
        assert_eq!(current(store.as_ref()).unwrap().seq, seq(3), "{point}");
    }
    for point in RECOVERY_CRASH_POINTS.iter().filter(|point| point.starts_with("inventory.rebuild")) {
        let store = catalog(false);
        let writer = Writer::open(Arc::clone(&store)).unwrap();
        writer.commit(&seal(store.as_ref(), &manifest("14100287", 1, None), None), &by("")).unwrap();
        for name in store.list(layout::INVENTORY).unwrap().objects {
            store.delete(&format!("{}/{name}", layout::INVENTORY)).unwrap();
        }
        let attempt = || rebuild(store.as_ref(), Some(2), false);
        assert!(crashing_at(point, attempt).is_none(), "{point} was not reached");
        let done = attempt().unwrap();
        assert_eq!(done.editions.len(), 1, "{point}");
        assert_eq!(current(store.as_ref()).unwrap().root_sha256, done.root_sha256, "{point}");
        assert_eq!(full(&store).head().root.restore_epoch, done.restore_epoch, "{point}");
        let next = seal(store.as_ref(), &manifest("14100287", 2, Some(1)), None);
        assert_eq!(writer.commit(&next, &by("")).unwrap().seq, seq(2), "{point}");
    }
}
