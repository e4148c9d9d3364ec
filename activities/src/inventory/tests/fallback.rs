//! What a reader makes of damaged hints, damaged roots, restores and expiry (*catalog* §6.6, H13, D32).

use std::sync::atomic::{AtomicUsize, Ordering};

use catalog_rules::inventory::{Document as _, Root};

use super::*;

/// A catalog of `n` versions: the first, and descriptions.
pub(super) fn versions(n: u64) -> Arc<dyn Store> {
    let store = catalog(false);
    let writer = Writer::open(Arc::clone(&store)).unwrap();
    for version in 2..=n {
        writer.commit(&describe(version), &by("")).unwrap();
    }
    store
}

pub(super) fn describe(n: u64) -> Operation {
    Operation::Describe(Map::from_iter([("version".to_owned(), json!(n))]))
}

pub(super) fn seq(n: u64) -> Seq {
    Seq::new(n).unwrap()
}

pub(super) fn put(store: &dyn Store, path: &str, bytes: impl AsRef<[u8]>) {
    store.delete(path).unwrap();
    store.create(path, &Bytes::copy_from_slice(bytes.as_ref())).unwrap();
}

pub(super) fn root(store: &dyn Store, n: u64) -> Root {
    Root::decode(&store.get(&layout::root(seq(n))).unwrap().unwrap()).unwrap()
}

/// Puts root `n` back with `edit`, and gives its new hash.
fn rewrite(store: &dyn Store, n: u64, edit: impl FnOnce(&mut Root)) -> Sha256Hex {
    let mut root = root(store, n);
    edit(&mut root);
    let bytes = root.encode().unwrap();
    put(store, &layout::root(seq(n)), &bytes);
    Sha256Hex::of(&bytes)
}

pub(super) fn hint(store: &dyn Store, n: u64, root_sha256: &Sha256Hex, restore_epoch: u64) {
    let current = Current { seq: seq(n), root_sha256: root_sha256.clone(), restore_epoch };
    put(store, layout::CURRENT, current.encode());
}

fn epoch(store: &dyn Store, epoch: u64) {
    let text = String::from_utf8(store.get(layout::CATALOG).unwrap().unwrap().to_vec()).unwrap();
    put(store, layout::CATALOG, text.replace("\"restore_epoch\":0", &format!("\"restore_epoch\":{epoch}")));
}

fn opt_in(store: &dyn Store, restore_epoch: u64, expired_through: Option<u64>) {
    let id = "01a18e76-2bad-7480-abfe-2ba8a6889a45";
    let catalog =
        json!({"format_version": "2.0", "catalog_id": id, "restore_epoch": restore_epoch, "history": {"since_seq": 1}});
    put(store, layout::CATALOG, catalog.to_string());
    if let Some(expired_through) = expired_through {
        let history = json!({"format_version": "1.0", "catalog_id": id, "restore_epoch": restore_epoch,
            "expired_through": expired_through, "newest_segment": null, "newest_segment_sha256": null, "cleaned_through": null});
        put(store, layout::HISTORY, history.to_string());
    }
}

pub(super) fn alerts(inventory: &FullInventory) -> String {
    inventory.alerts().iter().map(|alert| format!("{alert}; ")).collect()
}

/// The version that a new reader finds among five, after `damage`, and what it says about it.
fn found(damage: impl FnOnce(&dyn Store)) -> (u64, String) {
    let store = versions(5);
    damage(store.as_ref());
    let inventory = full(&store);
    (inventory.head().seq().get(), alerts(&inventory))
}

#[test]
fn a_new_reader_finds_the_newest_valid_version() {
    type Damage = Box<dyn FnOnce(&dyn Store)>;
    let sha = || Sha256Hex::of(b"another root");
    let cases: Vec<(&str, Damage, u64, &str)> = vec![
        ("nothing", Box::new(|_| {}), 5, ""),
        ("CURRENT missing", Box::new(|s| assert!(s.delete(layout::CURRENT).unwrap())), 5, "CURRENT is missing"),
        ("CURRENT empty", Box::new(|s| put(s, layout::CURRENT, "")), 5, "CURRENT cannot be read"),
        ("CURRENT cut", Box::new(|s| put(s, layout::CURRENT, r#"{"seq":5,"#)), 5, "CURRENT cannot be read"),
        ("CURRENT far ahead", Box::new(move |s| hint(s, 1 << 53, &sha(), 0)), 5, "names version 9007199254740992"),
        (
            "CURRENT behind",
            Box::new(|s| {
                let sha256 = Sha256Hex::of(&s.get(&layout::root(seq(2))).unwrap().unwrap());
                hint(s, 2, &sha256, 0);
            }),
            5,
            "",
        ),
        (
            "CURRENT names the newest root by another hash",
            Box::new(move |s| hint(s, 5, &Sha256Hex::of(b"x"), 0)),
            4,
            "version 5 is not valid and was passed over: its SHA-256 is",
        ),
        (
            "CURRENT names an older root by another hash",
            Box::new(move |s| hint(s, 3, &Sha256Hex::of(b"x"), 0)),
            5,
            "version 3 is not valid",
        ),
        ("newest root empty", Box::new(|s| put(s, &layout::root(seq(5)), "")), 4, "version 5 is not valid"),
        (
            "newest root cut, and CURRENT not there yet",
            Box::new(|s| {
                let whole = s.get(&layout::root(seq(5))).unwrap().unwrap();
                put(s, &layout::root(seq(5)), &whole[..whole.len() / 2]);
                let sha256 = Sha256Hex::of(&s.get(&layout::root(seq(4))).unwrap().unwrap());
                hint(s, 4, &sha256, 0);
            }),
            4,
            "version 5 is not valid and was passed over: catalog §6.2",
        ),
        (
            "the two newest damaged",
            Box::new(|s| {
                put(s, &layout::root(seq(5)), "");
                put(s, &layout::root(seq(4)), "{}");
            }),
            3,
            "version 4 is not valid",
        ),
        (
            "newest root of another version",
            Box::new(|s| {
                let other = s.get(&layout::root(seq(3))).unwrap().unwrap();
                put(s, &layout::root(seq(5)), other);
                s.delete(layout::CURRENT).unwrap();
            }),
            4,
            "it says that it is version 3",
        ),
        (
            "newest root of a newer major",
            Box::new(|s| {
                let sha256 = rewrite(s, 5, |root| root.format_version.major = 2);
                hint(s, 5, &sha256, 0);
            }),
            4,
            "format 2.2, and this program reads major 1",
        ),
        (
            "a damaged root in the middle",
            Box::new(|s| {
                put(s, &layout::root(seq(3)), "");
                s.delete(layout::CURRENT).unwrap();
            }),
            5,
            "version 3 is not valid",
        ),
        (
            "CURRENT and its root disagree on the epoch",
            Box::new(|s| {
                let sha256 = Sha256Hex::of(&s.get(&layout::root(seq(5))).unwrap().unwrap());
                hint(s, 5, &sha256, 1);
            }),
            4,
            "its restore epoch is 0, and 1 was expected",
        ),
        (
            "a restore in the new epoch, CURRENT still of the old one",
            Box::new(|s| {
                epoch(s, 1);
                drop(rewrite(s, 5, |root| root.restore_epoch = 1));
                let sha256 = Sha256Hex::of(&s.get(&layout::root(seq(4))).unwrap().unwrap());
                hint(s, 4, &sha256, 0);
            }),
            5,
            "",
        ),
        (
            "a restore in the new epoch, CURRENT missing",
            Box::new(|s| {
                epoch(s, 1);
                drop(rewrite(s, 5, |root| root.restore_epoch = 1));
                s.delete(layout::CURRENT).unwrap();
            }),
            5,
            "CURRENT is missing",
        ),
        (
            "a root left from before a restore",
            Box::new(|s| {
                epoch(s, 1);
                let sha256 = rewrite(s, 4, |root| root.restore_epoch = 1);
                hint(s, 4, &sha256, 1);
            }),
            4,
            "version 5 is not valid and was passed over: its restore epoch is 0, and 1 was expected",
        ),
        (
            "a root of an epoch that the catalog never had",
            Box::new(|s| {
                drop(rewrite(s, 5, |root| root.restore_epoch = 9));
                s.delete(layout::CURRENT).unwrap();
            }),
            4,
            "its restore epoch is 9, and 0 was expected",
        ),
        (
            "old versions expired, CURRENT missing",
            Box::new(|s| {
                opt_in(s, 0, Some(3));
                for n in 1..=3 {
                    s.delete(&layout::root(seq(n))).unwrap();
                }
                s.delete(layout::CURRENT).unwrap();
            }),
            5,
            "CURRENT is missing",
        ),
        (
            "a checkpoint below the expired versions is not the head",
            Box::new(|s| {
                opt_in(s, 0, Some(4));
                for n in 2..=4 {
                    s.delete(&layout::root(seq(n))).unwrap();
                }
                s.delete(layout::CURRENT).unwrap();
            }),
            5,
            "CURRENT is missing",
        ),
    ];
    for (name, damage, expected, says) in cases {
        let (head, alerts) = found(damage);
        assert_eq!(head, expected, "{name}: {alerts}");
        assert!(if says.is_empty() { alerts.is_empty() } else { alerts.contains(says) }, "{name}: {alerts}");
    }
}

#[test]
fn a_reader_without_a_version_fails_closed() {
    type Damage = Box<dyn FnOnce(&dyn Store)>;
    let cases: Vec<(&str, Damage, &str)> = vec![
        (
            "no catalog at all",
            Box::new(|s| {
                s.delete(layout::CURRENT).unwrap();
                s.delete(layout::CATALOG).unwrap();
            }),
            "catalog.not_a_catalog",
        ),
        (
            "no root",
            Box::new(|s| {
                for n in 1..=5 {
                    s.delete(&layout::root(seq(n))).unwrap();
                }
            }),
            "catalog.no_version",
        ),
        (
            "a catalog that expires, without HISTORY",
            Box::new(|s| {
                opt_in(s, 0, None);
                s.delete(layout::CURRENT).unwrap();
            }),
            "catalog.no_history",
        ),
        (
            "a restore that wrote HISTORY and no root yet",
            Box::new(|s| {
                opt_in(s, 1, Some(0));
                hint(s, 7, &Sha256Hex::of(b"x"), 0);
            }),
            "catalog.no_version",
        ),
        (
            "nothing above what expired",
            Box::new(|s| {
                opt_in(s, 0, Some(5));
                s.delete(layout::CURRENT).unwrap();
            }),
            "catalog.no_version",
        ),
        (
            "HISTORY that cannot be read",
            Box::new(|s| {
                opt_in(s, 0, None);
                put(s, layout::HISTORY, "{}");
                s.delete(layout::CURRENT).unwrap();
            }),
            "catalog.document",
        ),
    ];
    for (name, damage, code) in cases {
        let store = versions(5);
        damage(store.as_ref());
        let error = FullInventory::open(fetch_from(store)).unwrap_err();
        assert_eq!(error.code(), code, "{name}: {error}");
        assert!(error.hint().is_some(), "{name}");
    }
}

#[test]
fn a_hint_far_ahead_starts_no_endless_walk() {
    let store = versions(5);
    hint(store.as_ref(), 1 << 53, &Sha256Hex::of(b"x"), 0);
    let fetched = Arc::new(AtomicUsize::new(0));
    let counting = {
        let (store, fetched) = (Arc::clone(&store), Arc::clone(&fetched));
        Box::new(move |path: &str| {
            fetched.fetch_add(1, Ordering::SeqCst);
            store.get(path)
        })
    };
    let mut inventory = FullInventory::open(counting).unwrap();
    assert_eq!(inventory.head().seq(), seq(5));
    // CURRENT, the root it names, catalog.json, roots 1 to 5, and the absent sixth.
    assert_eq!(fetched.swap(0, Ordering::SeqCst), 9);
    assert!(!inventory.refresh().unwrap());
    // The held version is the lower bound now: CURRENT, its root, catalog.json, root 6.
    assert_eq!(fetched.swap(0, Ordering::SeqCst), 4);
    // And a writer mends the hint.
    Writer::open(Arc::clone(&store)).unwrap().advance_current().unwrap();
    assert_eq!(current(store.as_ref()).unwrap().seq, seq(5));
    inventory.refresh().unwrap();
    assert_eq!(fetched.load(Ordering::SeqCst), 2, "CURRENT and root 6");
    assert_eq!(alerts(&inventory), "");
}

#[test]
fn a_writer_builds_on_a_valid_head_only() {
    for damage in ["", "{}", "half"] {
        let store = versions(3);
        let writer = Writer::open(Arc::clone(&store)).unwrap();
        let whole = store.get(&layout::root(seq(3))).unwrap().unwrap();
        let bytes = if damage == "half" { &whole[..whole.len() / 2] } else { damage.as_bytes() };
        // At the head with the hint on it, and beyond it.
        for n in [3, 4] {
            let store = versions(3);
            let writer = Writer::open(Arc::clone(&store)).unwrap();
            put(store.as_ref(), &layout::root(seq(n)), bytes);
            let error = writer.commit(&describe(9), &by("run-9")).unwrap_err();
            assert_eq!((error.code(), error.disposition()), ("catalog.head_invalid", Disposition::Operator), "{error}");
            assert!(error.to_string().contains(&format!("version {n}")), "{error}");
            assert_eq!(store.get(&layout::root(seq(n + 1))).unwrap(), None, "something was written");
        }
        // A damaged version in the middle is for verify: the head is sound.
        put(store.as_ref(), &layout::root(seq(2)), bytes);
        writer.commit(&describe(9), &by("run-9")).unwrap();
        let error = full(&store).version(seq(2)).unwrap_err();
        assert_eq!(error.code(), "catalog.version_invalid");
    }
}
