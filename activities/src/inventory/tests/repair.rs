//! The narrow repair's findings, and the operation that a manifest gives (*catalog* §6.7).

use catalog_rules::inventory::{Document as _, Mode, Repair, Root};
use catalog_rules::seal_journal::JournalEntry;

use super::*;

fn journal(store: &dyn Store, n: u64) {
    let entry = JournalEntry {
        product_id: product("p"),
        edition_id: edition(n),
        previous: None,
        sealed_at: "2026-10-09T12:30:00Z".parse().unwrap(),
    };
    store.create(&layout::journal(&product("p"), &edition(n)), &Bytes::from(entry.encode())).unwrap();
}

#[test]
fn only_what_the_journal_lists_and_no_version_named_is_to_be_recorded() {
    let store = catalog(false);
    let writer = Writer::open(Arc::clone(&store)).unwrap();
    let found = |mode| repairs(&store, &product("p"), mode).unwrap();
    assert_eq!(found(Mode::Local), []);
    // 1 is recorded, 2 only sealed, 3 not even that; 4 is sealed, and in no journal.
    writer.commit(&seal(store.as_ref(), &manifest("p", 1, None), None), &by("run-1")).unwrap();
    for n in [3, 2, 1] {
        journal(store.as_ref(), n);
    }
    for n in [2, 4] {
        seal(store.as_ref(), &manifest("p", n, Some(1)), None);
    }
    let clear = Repair::Clear { edition: edition(1), mark: Mark::Live };
    let unfinished = Repair::Unfinished { edition: edition(3) };
    let record = Repair::Record { edition: edition(2) };
    assert_eq!(found(Mode::Local), [clear.clone(), record, unfinished.clone()]);
    assert_eq!(found(Mode::Server), [clear, Repair::ResumeRun { edition: edition(2) }, unfinished]);
    assert_eq!(repairs(&store, &product("other"), Mode::Local).unwrap(), []);
}

#[test]
fn an_edition_that_a_restore_took_out_is_not_recorded_again() {
    let store = catalog(false);
    let writer = Writer::open(Arc::clone(&store)).unwrap();
    journal(store.as_ref(), 1);
    writer.commit(&seal(store.as_ref(), &manifest("p", 1, None), None), &by("run-1")).unwrap();
    let base = store.get(&layout::root(Seq::FIRST)).unwrap().unwrap();
    let mut root = Root::decode(&base).unwrap();
    (root.seq, root.previous_inventory) = (Seq::new(3).unwrap(), Seq::new(2));
    (root.previous_root_sha256, root.changes) = (None, None);
    store.create(&layout::root(root.seq), &Bytes::from(root.encode().unwrap())).unwrap();
    let gone = Repair::Gone { edition: edition(1), seq: Seq::new(2).unwrap() };
    assert_eq!(repairs(&store, &product("p"), Mode::Local).unwrap(), [gone]);
}

#[test]
fn a_journal_that_cannot_be_read_is_for_a_person() {
    let store = catalog(false);
    store.create(&layout::journal(&product("p"), &edition(1)), &Bytes::from_static(b"{}")).unwrap();
    let error = repairs(&store, &product("p"), Mode::Local).unwrap_err();
    assert_eq!((error.code(), error.disposition()), ("catalog.journal", Disposition::Operator));
    assert!(error.to_string().contains(edition(1).as_str()), "{error}");
}

#[test]
fn the_operation_is_made_from_the_manifest_that_was_sealed() {
    let store = catalog(false);
    let sealed = manifest("p", 1, None);
    let expected = seal(store.as_ref(), &sealed, None);
    let sha256 = Sha256Hex::of(&sealed.encode());
    let make = |p: &str, n: u64, sha256: &Sha256Hex| {
        record_operation(store.as_ref(), &product(p), &edition(n), sha256, None, None)
    };
    assert_eq!(make("p", 1, &sha256).unwrap(), expected);
    assert_eq!(make("p", 2, &sha256).unwrap_err().code(), "catalog.manifest_missing");
    assert_eq!(make("p", 1, &Sha256Hex::of(b"x")).unwrap_err().code(), "catalog.manifest_differs");
    // In another edition's folder, and no manifest at all.
    store.create(&layout::manifest(&product("p"), &edition(3)), &Bytes::from(sealed.encode())).unwrap();
    assert_eq!(make("p", 3, &sha256).unwrap_err().code(), "catalog.misplaced_manifest");
    store.create(&layout::manifest(&product("p"), &edition(4)), &Bytes::from_static(b"{}")).unwrap();
    assert_eq!(make("p", 4, &Sha256Hex::of(b"{}")).unwrap_err().code(), "catalog.manifest");
}
