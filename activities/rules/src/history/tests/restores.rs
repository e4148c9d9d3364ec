//! What a restore gives back, and what it does not (D14, D15).

use std::collections::BTreeMap;

use serde_json::json;

use super::holds::same;
use super::model::*;
use crate::history::*;
use crate::inventory::{Base, CatalogJson, Document, EntryState, EventKind, Mark, Outcome, Root, SegmentLine};
use crate::layout;

fn states(world: &World, name: &str) -> Vec<EntryState> {
    let head = world.head();
    world
        .leaves(&head)
        .get(&product(name))
        .map(|leaf| leaf.editions.iter().map(|entry| entry.state).collect())
        .unwrap_or_default()
}

#[test]
fn a_restore_gives_back_the_products_of_s_and_nothing_of_later_ones() {
    let mut world = World::opted_in();
    let to = world.seal("a");
    let leaf = world.root(to).leaf_sha256(&product("a")).cloned();
    world.seal("a");
    world.seal("b");
    world.restore(to, &[]).unwrap();
    let head = world.head();
    assert_eq!(head.leaf_sha256(&product("a")).cloned(), leaf, "the leaf itself, not a copy");
    assert_eq!(head.leaf_sha256(&product("b")), None);
    assert_eq!(head.changes, Some(vec![]));
    world.check(false);
}

#[test]
fn an_edition_that_was_withdrawn_or_retired_after_s_does_not_come_back() {
    use EntryState::{Live, Superseded, Withdrawn};
    let mut world = World::opted_in();
    world.seal("a");
    world.seal("a");
    world.seal("b");
    let to = world.seal("b");
    assert_eq!(states(&world, "a"), [Superseded, Live]);
    world.rollback("a");
    world.retire("b");
    world.restore(to, &[]).unwrap();
    assert_eq!(states(&world, "a"), [Live, Withdrawn], "what was live instead is, so the product keeps a head");
    assert_eq!(states(&world, "b"), [Live], "the superseded one was retired");
    let retired: Vec<_> = world.head().retired.iter().map(|dead| dead.edition_id.clone()).collect();
    assert_eq!(retired, [edition(3)]);
    world.check(false);
    // The change list tells it all: a replay from S comes to the new version.
    let head = world.head();
    let mut replay = crate::inventory::Replay::at(&world.root(to), &world.leaves(&world.root(to)));
    replay.apply(head.seq, head.changes.as_ref().unwrap()).unwrap();
    assert_eq!(replay, crate::inventory::Replay::at(&head, &world.leaves(&head)));
    assert_eq!(replay.mark(&product("a"), &edition(2)), Some(Mark::Withdrawn));
}

#[test]
fn an_edition_that_s_does_not_know_and_that_was_withdrawn_is_a_tombstone_so_that_it_is_not_folded_again() {
    let mut world = World::opted_in();
    let to = world.seal("a");
    world.seal("a");
    world.seal("a");
    world.rollback("a");
    world.restore(to, &[]).unwrap();
    assert_eq!(states(&world, "a"), [EntryState::Live]);
    let retired: Vec<_> = world.head().retired.iter().map(|dead| dead.edition_id.clone()).collect();
    assert_eq!(retired, [edition(3)], "edition 2 was never withdrawn, and may come back");
    world.check(false);
}

#[test]
fn what_expired_segments_say_of_versions_after_s_counts_as_well() {
    let mut world = World::opted_in();
    world.seal("a");
    world.seal("a");
    world.days(20);
    let to = world.describe();
    world.rollback("a");
    for _ in 0..4 {
        world.describe();
    }
    world.days(60);
    world.expire().unwrap();
    assert!(world.store.get(&layout::root(seq(5))).is_none() && world.history().expired_through > 5);
    assert!(world.store.get(&layout::root(to)).is_some(), "the checkpoint of February");
    world.restore(to, &[]).unwrap();
    assert_eq!(states(&world, "a"), [EntryState::Live, EntryState::Withdrawn]);
    assert_eq!(world.history().expired_through, to.get());
    world.check(false);
}

#[test]
fn a_restore_releases_nothing_and_turns_no_embargo_off() {
    let mut world = World::opted_in();
    let due = world.now.plus_ms(1000);
    let later = world.now.plus_ms(1_000_000_000);
    world.commit(EventKind::Seal, |world, head| {
        let mut leaf = world.leaf_or_empty(head, &product("a"));
        for at in [due, later] {
            let entry = world.entry(None, EntryState::Embargoed);
            leaf.editions.push(crate::inventory::LeafEntry { release_at: Some(at), ..entry });
        }
        of_leaf(leaf)
    });
    let to = world.head().seq;
    world.commit(EventKind::EmbargoChange, |_, _| Outcome { embargo: Some(true), ..Outcome::default() });
    world.days(1);
    world.restore(to, &[]).unwrap();
    let head = world.head();
    assert!(head.embargo && !world.root(to).embargo);
    let leaf = &world.leaves(&head)[&product("a")];
    assert_eq!(leaf.editions.iter().map(|entry| entry.release_at).collect::<Vec<_>>(), [None, Some(later)]);
    assert!(leaf.editions.iter().all(|entry| entry.state == EntryState::Embargoed));
    world.check(false);
}

#[test]
fn what_was_expunged_stays_expunged() {
    let mut world = World::opted_in();
    let to = world.seal("a");
    world.seal("a");
    let head = world.head();
    let mut root = Root { seq: head.seq.next(), previous_inventory: Some(head.seq), ..head.clone() };
    root.previous_root_sha256 = Some(Some(world.sha(head.seq)));
    (root.changes, root.created_at) = (Some(vec![]), head.created_at.plus_ms(1));
    let section = root.extensions.get_mut("jobctl").unwrap().as_object_mut().unwrap();
    section.insert("expunged".to_owned(), json!([edition(1).as_str()]));
    world.store.create(&layout::root(root.seq), root.encode().unwrap()).unwrap();
    world.committed.insert((0, root.seq), world.sha(root.seq));
    world.restore(to, &[]).unwrap();
    let own = &world.head().extensions["jobctl"];
    assert_eq!((&own["expunged"], &own["step"]), (&json!([edition(1).as_str()]), &json!("restore")));
}

#[test]
fn versions_that_cannot_be_read_are_confirmed_by_name() {
    let mut world = World::opted_in();
    for _ in 0..6 {
        world.seal("a");
    }
    world.store.objects.remove(&layout::root(seq(4)));
    world.store.put(&layout::root(seq(6)), b"{}".to_vec()).unwrap();
    for gone in [4, 6] {
        world.committed.remove(&(0, seq(gone)));
    }
    for (confirmed, missing) in [(&[][..], "4,6"), (&[4], "6"), (&[6, 5], "4")] {
        let refusal = world.plan_restore(seq(3), confirmed).unwrap_err();
        assert_eq!(refusal.code(), "history.unread_versions");
        assert!(refusal.fix().ends_with(&format!("--to-seq 3 --confirm-unread {missing}")), "{}", refusal.fix());
    }
    let whole = world.clone();
    world.restore(seq(3), &[4, 6]).unwrap();
    let unread: Vec<_> = world.chain().iter().flat_map(|segment| seqs(&segment.header.unread)).collect();
    assert_eq!(unread, [4, 6]);
    assert!(world.store.get(&layout::root(seq(6))).is_none());
    world.check(false);
    // Interrupted anywhere.
    for n in 1..=8 {
        let mut broken = whole.clone();
        broken.store.writes_left = Some(n);
        assert!(matches!(broken.restore(seq(3), &[4, 6]), Err(Stopped::Crashed)), "write {n}");
        broken.store.writes_left = None;
        broken.restore(seq(3), &[4, 6]).unwrap();
        same(&broken, &world, &format!("after write {n}"));
    }
}

#[test]
fn a_root_of_a_stale_writer_goes_with_a_restore_and_gets_no_second_line() {
    let mut world = World::opted_in();
    for _ in 0..8 {
        world.seal("a");
    }
    world.days(60);
    let mut stale = world.root(seq(5));
    world.expire().unwrap();
    stale.event.reason = "stale".to_owned();
    world.store.create(&layout::root(seq(5)), stale.encode().unwrap()).unwrap();
    let refusal = world.plan_restore(seq(5), &[]).unwrap_err();
    assert_eq!(refusal.code(), "history.target_off_chain");
    let refusal = world.plan_restore(seq(1), &[]).unwrap_err();
    assert_eq!(refusal.code(), "history.unread_versions", "nobody knows what it did");
    let whole = world.clone();
    world.restore(seq(1), &[5]).unwrap();
    assert!(world.store.get(&layout::root(seq(5))).is_none());
    world.check(false);
    for n in 1..=7 {
        let mut broken = whole.clone();
        broken.store.writes_left = Some(n);
        assert!(matches!(broken.restore(seq(1), &[5]), Err(Stopped::Crashed)), "write {n}");
        broken.store.writes_left = None;
        broken.restore(seq(1), &[5]).unwrap();
        same(&broken, &world, &format!("after write {n}"));
    }
}

#[test]
fn a_restore_goes_only_to_a_retained_readable_version() {
    let mut world = World::opted_in();
    for _ in 0..8 {
        world.seal("a");
    }
    world.days(60);
    world.expire().unwrap();
    for (to, words) in [(3, "is not in inventory/"), (12, "is above the newest version")] {
        let refusal = world.plan_restore(seq(to), &[]).unwrap_err();
        assert_eq!(refusal.code(), "history.target_unread");
        assert!(refusal.to_string().contains(words), "{refusal}");
    }
    world.store.put(&layout::root(seq(8)), b"{".to_vec()).unwrap();
    let refusal = world.plan_restore(seq(8), &[]).unwrap_err();
    assert!(refusal.to_string().contains("version 8 cannot be read"), "{refusal}");
}

#[test]
fn a_restore_to_before_since_seq_moves_it_and_one_to_the_head_writes_no_segment() {
    let mut world = World::new();
    for _ in 0..3 {
        world.seal("a");
    }
    for n in 1..=3 {
        let mut root = world.root(seq(n));
        (root.changes, root.previous_root_sha256) = (None, None);
        world.store.put(&layout::root(seq(n)), root.encode().unwrap()).unwrap();
        let mut next = world.root(seq(n + 1));
        next.previous_root_sha256 = Some(Some(world.sha(seq(n))));
        world.store.put(&layout::root(seq(n + 1)), next.encode().unwrap()).unwrap();
    }
    for n in 1..=4 {
        world.committed.insert((0, seq(n)), world.sha(seq(n)));
    }
    world.opt_in().unwrap();
    world.seal("a");
    assert_eq!(world.catalog().history.unwrap().since_seq, seq(4));
    let plan = world.restore(seq(5), &[]).unwrap();
    assert!(plan.drafts.is_empty() && world.history().newest_segment.is_none(), "no root above S, no segment");
    assert_eq!((world.head().seq, world.head().restore_epoch), (seq(6), 1));
    // Version 3 carries no change list, so a person says that it may go.
    let refusal = world.plan_restore(seq(2), &[]).unwrap_err();
    assert!(refusal.fix().ends_with("--to-seq 2 --confirm-unread 3"), "{}", refusal.fix());
    world.restore(seq(2), &[3]).unwrap();
    assert_eq!(world.catalog().history.unwrap().since_seq, seq(3));
    assert_eq!(world.chain().iter().map(|segment| segment.header.restore_epoch).collect::<Vec<_>>(), [0, 0, 1]);
    world.check(false);
    for _ in 0..4 {
        world.seal("a");
    }
    world.days(60);
    assert_eq!(seqs(&world.expire().unwrap().choice.candidates), [4, 5]);
    world.check(false);
}

#[test]
fn on_a_1_0_catalog_a_restore_writes_the_content_of_s_after_the_head() {
    let mut world = World::new();
    let to = world.seal("a");
    world.seal("a");
    world.seal("b");
    world.rollback("a");
    let head = world.head();
    let catalog = catalog_restored(&world.catalog(), to, head.restore_epoch + 1);
    assert_eq!((catalog.restore_epoch, catalog.format_version.major, &catalog.history), (1, 1, &None));
    let (good, sha256) = (world.root(to), world.sha(head.seq));
    let (leaves, good_leaves) = (world.leaves(&head), world.leaves(&good));
    let mut taken = TakenBack::default();
    for n in to.next().get()..=head.seq.get() {
        taken.add_root(&world.root(seq(n)));
    }
    let base = Base::whole(&head, &sha256, &leaves);
    let write = |leaves: &BTreeMap<_, _>| restored_version(&base, &good, leaves, &taken, 1, &by("restore"), world.now);
    let version = write(&good_leaves).unwrap();
    let root = &version.root;
    assert_eq!((root.seq, root.previous_inventory, root.restore_epoch), (head.seq.next(), Some(head.seq), 1));
    assert_eq!(root.products, good.products, "b is gone, and a is as it was");
    assert_eq!(root.retired.iter().map(|dead| dead.edition_id.clone()).collect::<Vec<_>>(), [edition(2)]);
    let changed: Vec<_> = root.changes.iter().flatten().map(|change| change.product_id.as_str()).collect();
    assert_eq!(changed, ["a", "b"]);
    assert_eq!(write(&BTreeMap::new()).unwrap_err().code(), "history.target_leaf");
    // The same told by lines.
    let mut told = TakenBack::default();
    for n in (to.next().get()..=head.seq.get()).rev() {
        told.add_line(&SegmentLine::of(&world.root(seq(n)), world.sha(seq(n))));
    }
    let again = restored_version(&base, &good, &good_leaves, &told, 1, &by("restore"), world.now).unwrap();
    assert_eq!(again, version);
    assert_eq!(world.catalog().format_version.major, 1);
}

#[test]
fn a_restore_on_a_1_0_catalog_bumps_the_epoch_once_and_asks_for_unread_versions_by_name() {
    use HistoryFields::{Both, None as No, Unreadable};
    let mut world = World::new();
    for _ in 0..4 {
        world.seal("a");
    }
    let (catalog, head) = (world.catalog(), world.head());
    let plan = |catalog: &CatalogJson, to: u64, confirmed: &[u64], of: [HistoryFields; 5]| {
        let asked = RestoreAsked { to: seq(to), confirmed_unread: confirmed.iter().map(|n| seq(*n)).collect() };
        plan_plain_restore(catalog, &head, &asked, &(1..).map(seq).zip(of).collect())
    };
    let first = plan(&catalog, 2, &[], [Both; 5]).unwrap();
    let bumped = first.catalog.unwrap();
    assert_eq!((first.restore_epoch, bumped.restore_epoch, bumped.format_version.major), (1, 1, 1));
    assert_eq!(plan(&bumped, 2, &[], [Both; 5]).unwrap(), PlainRestore { catalog: None, restore_epoch: 1 });
    assert_eq!(
        plan(&catalog_restored(&bumped, seq(2), 2), 2, &[], [Both; 5]).unwrap_err().code(),
        "history.unfinished_restore"
    );
    let refusal = plan(&catalog, 2, &[3], [No, No, No, Unreadable, Both]).unwrap_err();
    assert!(refusal.fix().ends_with("--to-seq 2 --confirm-unread 4"), "{}", refusal.fix());
    assert!(plan(&catalog, 2, &[3, 4], [No, No, No, Unreadable, Both]).is_ok());
    for (to, of) in [(2, [Both, Unreadable, Both, Both, Both]), (6, [Both; 5])] {
        assert_eq!(plan(&catalog, to, &[], of).unwrap_err().code(), "history.target_unread");
    }
}
