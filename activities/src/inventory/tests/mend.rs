//! A head that is valid by itself and does not follow, one that was committed and is damaged, and a hint that is: what
//! writers, readers, `verify` and `repair-head` say of each, and that what they say leads out of it (D16, D32).

use catalog_rules::inventory::Document as _;

use super::fallback::{alerts, describe, hint, put, root, seq, versions};
use super::*;
use crate::fs::RealFs;

/// Root `n`, as somebody else left it: the one of version `of` by another number, which follows nothing that is there.
fn plant(store: &dyn Store, of: u64, n: u64) -> Sha256Hex {
    let mut root = root(store, of);
    root.seq = seq(n);
    root.previous_inventory = seq(n).before();
    root.previous_root_sha256 = Some(Some(Sha256Hex::of(b"another chain")));
    root.created_at = root.created_at.plus_ms(1);
    let bytes = root.encode().unwrap();
    put(store, &layout::root(seq(n)), &bytes);
    Sha256Hex::of(&bytes)
}

fn sha256(store: &dyn Store, n: u64) -> Sha256Hex {
    Sha256Hex::of(&store.get(&layout::root(seq(n))).unwrap().unwrap())
}

fn commit(store: &Arc<dyn Store>, n: u64) -> Result<u64, InventoryError> {
    Writer::open(Arc::clone(store)).unwrap().commit(&describe(n), &by("")).map(|committed| committed.seq.get())
}

/// What a writer refuses with: version `n` at the head.
fn refused(store: &Arc<dyn Store>, n: u64) -> (String, String) {
    let error = commit(store, 99).unwrap_err();
    assert_eq!((error.code(), error.disposition()), ("catalog.head_invalid", Disposition::Operator), "{error}");
    assert!(error.to_string().contains(&format!("version {n} at the head")), "{error}");
    (error.to_string(), error.hint().unwrap())
}

fn repair(store: &Arc<dyn Store>, n: u64, confirm_committed: bool) -> Result<u64, (&'static str, String)> {
    let folder = tempfile::tempdir().unwrap();
    let asked = HeadRepair { seq: seq(n), confirm_committed, keep: folder.path(), fs: &RealFs, dry_run: false };
    let done = repair_head(store.as_ref(), &asked);
    done.map(|done| done.head.get()).map_err(|error| (error.code(), error.hint().unwrap_or_default()))
}

/// What `verify` finds: code, subject and fix.
fn findings(store: &Arc<dyn Store>) -> Vec<(&'static str, String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let found = verify(store.as_ref(), folder.path(), false).unwrap().findings;
    found.into_iter().map(|finding| (finding.code, finding.subject, finding.fix)).collect()
}

fn head(store: &Arc<dyn Store>) -> (u64, String) {
    let inventory = full(store);
    (inventory.head().seq().get(), alerts(&inventory))
}

#[test]
fn a_root_beyond_a_gap_is_found_and_never_becomes_the_head_once_the_gap_is_closed() {
    let store = versions(2);
    let planted = plant(store.as_ref(), 2, 5);
    let found = findings(&store);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].0, found[0].1.as_str()), ("root.beyond_gap", "inventory/000000000005.json"));
    assert!(found[0].2.contains("move it out of inventory/"), "{found:?}");
    assert_eq!((commit(&store, 3).unwrap(), commit(&store, 4).unwrap()), (3, 4));

    let (error, fix) = refused(&store, 5);
    let base = sha256(store.as_ref(), 4);
    assert!(error.contains(&Sha256Hex::of(b"another chain").to_string()) && error.contains(base.as_str()), "{error}");
    assert!(fix.contains("jobctl run repair-head --seq 5 --reason"), "{fix}");
    let stays = |store| {
        let (newest, said) = head(store);
        assert!(newest == 4 && said.contains("version 5 is not valid and was passed over"), "{newest}: {said}");
    };
    stays(&store);
    // A reader that holds version 4, and one without CURRENT, stay as well.
    let current = store.get(layout::CURRENT).unwrap().unwrap();
    let mut held = full(&store);
    assert!(!held.refresh().unwrap());
    store.delete(layout::CURRENT).unwrap();
    stays(&store);
    assert!(!held.refresh().unwrap());
    assert_eq!(refused(&store, 5).1, fix);
    store.create(layout::CURRENT, &current).unwrap();
    let found = findings(&store);
    assert_eq!(found, [("root.invalid", layout::root(seq(5)), fix)]);
    assert_eq!(full(&store).as_base().unwrap_err().code(), "catalog.head_invalid");

    // Something that was built on it is no head either, and repair-head deletes neither unseen.
    let mut next = root(store.as_ref(), 5);
    next.seq = seq(6);
    next.previous_root_sha256 = Some(Some(planted));
    put(store.as_ref(), &layout::root(seq(6)), next.encode().unwrap());
    stays(&store);
    assert!(head(&store).1.contains("version 6 is not valid and was passed over: it was built on version 5"));
    let (code, fix) = repair(&store, 5, true).unwrap_err();
    assert!(code == "catalog.head_built_on" && fix.contains("outside inventory/"), "{code}: {fix}");
    store.delete(&layout::root(seq(6))).unwrap();

    assert_eq!(repair(&store, 5, false), Ok(4));
    assert_eq!(findings(&store), []);
    assert_eq!(commit(&store, 5).unwrap(), 5);
}

#[test]
fn a_root_that_current_names_and_that_does_not_follow_is_no_base() {
    let store = versions(3);
    let planted = plant(store.as_ref(), 3, 4);
    hint(store.as_ref(), 4, &planted, 0);
    let (_, fix) = refused(&store, 4);
    assert!(fix.contains("restore the one that differs") && fix.contains("repair-head --seq 4"), "{fix}");
    assert_eq!(findings(&store), [("step.chain", layout::root(seq(4)), fix.clone())], "verify says the same");
    // It may be version 3 that was changed: deleting version 4 is for a person to confirm.
    let (code, fix) = repair(&store, 4, false).unwrap_err();
    assert!(code == "catalog.head_committed" && fix.contains("--confirm-committed"), "{code}: {fix}");
    assert_eq!(repair(&store, 4, true), Ok(3));
    assert_eq!(current(store.as_ref()).unwrap().seq, seq(3));
    assert_eq!(commit(&store, 4).unwrap(), 4);
}

#[test]
fn a_chain_across_a_restore_and_a_root_without_history_fields_are_accepted() {
    let store = versions(3);
    let mut old = root(store.as_ref(), 3);
    (old.previous_root_sha256, old.changes) = (None, None);
    put(store.as_ref(), &layout::root(seq(3)), old.encode().unwrap());
    store.delete(layout::CURRENT).unwrap();
    assert_eq!((head(&store).0, commit(&store, 4).unwrap()), (3, 4));
}

#[test]
fn a_damaged_version_that_was_committed_is_dropped_by_a_persons_word_only() {
    for damage in ["", "{\"format_version\":\"1.2\"", "\u{0}"] {
        let store = versions(4);
        let whole = store.get(&layout::root(seq(4))).unwrap().unwrap();
        put(store.as_ref(), &layout::root(seq(4)), damage);
        let (_, fix) = refused(&store, 4);
        assert!(fix.starts_with("restore inventory/000000000004.json from a backup"), "{fix}");
        assert!(fix.contains("where no backup has it") && fix.contains("repair-head --seq 4"), "{fix}");
        assert_eq!(findings(&store), [("root.invalid", layout::root(seq(4)), fix)], "verify says the same");

        let (code, fix) = repair(&store, 4, false).unwrap_err();
        assert_eq!(code, "catalog.head_committed");
        for said in ["restore inventory/000000000004.json from a backup", "--seq 4 --confirm-committed --reason"] {
            assert!(fix.contains(said), "{fix}");
        }
        assert_eq!(store.get(&layout::root(seq(4))).unwrap().unwrap(), damage.as_bytes(), "it was deleted");
        // The one way out, and the other.
        put(store.as_ref(), &layout::root(seq(4)), &whole);
        assert_eq!((findings(&store), head(&store).0), (vec![], 4));
        assert_eq!(repair(&store, 4, true).unwrap_err().0, "catalog.head_valid");
        put(store.as_ref(), &layout::root(seq(4)), damage);
        assert_eq!(repair(&store, 4, true), Ok(3));
        assert_eq!(current(store.as_ref()).unwrap().seq, seq(3));
        assert_eq!(commit(&store, 4).unwrap(), 4);
    }
}

#[test]
fn of_two_damaged_versions_the_lower_one_is_named_first() {
    let store = versions(4);
    for n in [3, 4] {
        put(store.as_ref(), &layout::root(seq(n)), "{}");
    }
    refused(&store, 3);
    assert_eq!(repair(&store, 3, false).unwrap_err().0, "catalog.head_committed", "CURRENT names the one after it");
    assert_eq!(repair(&store, 3, true), Ok(2));
}

#[test]
fn a_damaged_hint_at_a_sound_root_is_told_from_a_damaged_root_and_deleting_it_is_a_way_out() {
    for n in [1, 4] {
        let digest: &dyn Fn(&dyn Store) = &|store| hint(store, n, &Sha256Hex::of(b"flipped"), 0);
        let epoch: &dyn Fn(&dyn Store) = &|store| hint(store, n, &sha256(store, n), 1);
        for damage in [digest, epoch] {
            let store = versions(n);
            damage(store.as_ref());
            let (error, fix) = refused(&store, n);
            assert!(error.contains("which of the two was changed is not known"), "{error}");
            assert!(fix.contains("with a backup") && fix.contains("delete CURRENT"), "{fix}");
            assert!(!fix.contains("repair-head"), "{fix}");
            if n == 1 {
                // There is nothing before it to look at.
                let folder = tempfile::tempdir().unwrap();
                let error = verify(store.as_ref(), folder.path(), false).unwrap_err();
                assert_eq!(error.hint(), Some(fix));
            } else {
                assert_eq!(findings(&store), [("root.invalid", layout::root(seq(n)), fix)]);
                assert_eq!(head(&store).0, n - 1);
                let (code, fix) = repair(&store, n, true).unwrap_err();
                assert!(code == "catalog.head_valid" && fix.contains("jobctl verify"), "{code}: {fix}");
            }
            store.delete(layout::CURRENT).unwrap();
            assert_eq!(head(&store).0, n);
            assert_eq!(commit(&store, n + 1).unwrap(), n + 1);
            assert_eq!((current(store.as_ref()).unwrap().seq, findings(&store)), (seq(n + 1), vec![]));
        }
    }
    // At an older root it is the next version's to put right, and no root is called damaged.
    let store = versions(4);
    hint(store.as_ref(), 2, &Sha256Hex::of(b"flipped"), 0);
    let found = findings(&store);
    let codes: Vec<_> = found.iter().map(|(code, subject, _)| (*code, subject.as_str())).collect();
    assert_eq!(codes, [("current.behind", layout::CURRENT), ("current.differs", layout::CURRENT)], "{found:?}");
    assert_eq!((commit(&store, 5).unwrap(), findings(&store)), (5, vec![]));
}
