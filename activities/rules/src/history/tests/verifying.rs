//! `verify` over roots and segments, and anchors: everything that *catalog* §6.9 lists, each found when it is made.

use super::model::*;
use crate::history::*;
use crate::inventory::{Document, History, Segment};
use crate::layout;

/// Three epochs with expired segments in the first two, and a restore that discarded both.
fn rich() -> World {
    let mut world = World::opted_in();
    for name in ["a", "b", "a", "c", "a", "b", "a"] {
        world.seal(name);
    }
    world.days(60);
    world.expire().unwrap();
    world.restore(seq(7), &[]).unwrap();
    for name in ["a", "b", "c", "a", "b"] {
        world.seal(name);
    }
    world.days(60);
    world.expire().unwrap();
    world.seal("a");
    world.restore(seq(13), &[]).unwrap();
    world.seal("b");
    world.check(false);
    world
}

fn codes(world: &World) -> Vec<&'static str> {
    let mut codes: Vec<_> = world.findings().iter().map(HistoryFinding::code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

#[test]
fn verify_catalog_keys_by_restore_epoch_and_seq_across_a_restore() {
    let world = rich();
    let lines = world.lines();
    let of = |n: u64| lines.iter().filter(move |(_, _, line)| line.seq == seq(n)).map(|(.., line)| line.restore_epoch);
    // Version 8 was written in epoch 0, discarded, and written again in epoch 1, where it is a checkpoint.
    assert_eq!(of(8).collect::<Vec<_>>(), [0]);
    assert_eq!(world.root(seq(8)).restore_epoch, 1);
    assert_eq!(of(14).collect::<Vec<_>>(), [1]);
    assert_eq!(world.root(seq(14)).restore_epoch, 2);
    assert_eq!(world.findings(), []);
}

#[test]
fn every_edit_of_a_segment_or_root_is_detected() {
    let good = rich();
    let paths: Vec<_> =
        good.store.segments().into_iter().chain(good.store.roots().into_keys().map(layout::root)).collect();
    for path in paths {
        // The head alone has nothing above it that tells: that is what an anchor is for.
        let is_head = path == layout::root(good.head().seq);
        for (from, to) in [("because", "Because"), ("tester", "Tester"), ("\"embargo\":false", "\"embargo\":true")] {
            let mut world = good.clone();
            world.store.tamper(&path, |text| text.replacen(from, to, 1));
            let found = codes(&world);
            assert_eq!(found.is_empty(), is_head, "{path}, {from}: {found:?}");
            if path.starts_with("history/") {
                assert!(found.contains(&"segment.changed"), "{path}, {from}: {found:?}");
            } else if !is_head {
                assert!(found.contains(&"version.chain"), "{path}, {from}: {found:?}");
            }
        }
    }
}

#[test]
fn every_deleted_root_segment_and_leaf_is_detected() {
    let good = rich();
    let head = layout::root(good.head().seq);
    for path in good.store.objects.keys() {
        let mut world = good.clone();
        let expected = if path.starts_with("history/") {
            "segment.missing"
        } else if path.starts_with("inventory/leaves/") {
            // A leaf of a discarded version is named by nobody.
            let sha = path["inventory/leaves/".len()..path.len() - 5].parse().unwrap();
            let mut roots = good.store.roots().into_keys();
            if !roots.any(|seq| good.root(seq).products.values().any(|leaf| leaf.leaf_sha256 == sha)) {
                continue;
            }
            "leaf.missing"
        } else if layout::seq_of_root(path).is_some() && *path != head {
            "version.missing"
        } else {
            continue;
        };
        world.store.objects.remove(path);
        let found = codes(&world);
        assert!(found.contains(&expected), "{path}: {found:?}");
        for finding in world.findings() {
            assert!(!finding.fix().is_empty() && !finding.to_string().is_empty() && !finding.subject().is_empty());
        }
    }
}

#[test]
fn each_finding_on_history_is_told() {
    let good = rich();
    let history = good.history();
    let chain = good.chain();
    let name = |n: usize| -> String {
        let header = &chain[n + 1].header;
        header.previous_segment.clone().unwrap()
    };
    let other = "01a18e77-2bad-7480-abfe-2ba8a6889a45".parse().unwrap();
    let edits: [(History, &[&str]); 6] = [
        (History { expired_through: 9, ..history.clone() }, &["root.missing"]),
        (
            History { cleaned_through: Some("history/0/x".to_owned()), ..history.clone() },
            &["history.cleaned_off_chain"],
        ),
        (History { cleaned_through: Some(name(0)), ..history.clone() }, &["history.interrupted_expiry"]),
        (History { restore_epoch: 3, ..history.clone() }, &["history.unfinished_restore"]),
        (History { catalog_id: other, ..history.clone() }, &["history.other_catalog"]),
        // An older HISTORY: newer segments are unlinked, and their versions recorded nowhere.
        (
            History {
                newest_segment: Some(name(1)),
                newest_segment_sha256: chain[2].header.previous_segment_sha256.clone(),
                cleaned_through: Some(name(1)),
                ..history
            },
            &["segment.orphan", "segment.unlinked", "version.missing"],
        ),
    ];
    for (history, expected) in edits {
        let mut world = good.clone();
        world.store.put(layout::HISTORY, history.encode().unwrap()).unwrap();
        let found = codes(&world);
        assert!(expected.iter().all(|code| found.contains(code)), "{history:?}: {found:?}, expected {expected:?}");
    }
}

/// Writes the newest segment anew with changes, and lets HISTORY name it.
fn rewrite_newest(world: &mut World, change: impl FnOnce(&mut Segment)) {
    let mut history = world.history();
    let old = history.newest_segment.clone().unwrap();
    let mut segment = Segment::decode(world.store.get(&old).unwrap()).unwrap();
    change(&mut segment);
    let header = &mut segment.header;
    header.roots = segment.lines.iter().map(|line| line.seq).collect();
    (header.first, header.last) = (header.roots[0], *header.roots.last().unwrap());
    let id = layout::segment_name(&old).unwrap().id;
    let path = layout::segment(header.restore_epoch, header.first, header.last, id);
    let bytes = segment.encode().unwrap();
    history.newest_segment_sha256 = Some(crate::ids::Sha256Hex::of(&bytes));
    history.newest_segment = Some(path.clone());
    history.cleaned_through = Some(path.clone());
    world.store.objects.remove(&old);
    world.store.put(&path, bytes).unwrap();
    world.store.put(layout::HISTORY, history.encode().unwrap()).unwrap();
}

#[test]
fn a_checkpoint_that_expired_a_version_in_two_places_and_an_overlap_are_told() {
    let mut base = World::opted_in();
    for _ in 0..8 {
        base.seal("a");
    }
    base.days(60);
    base.expire().unwrap();
    // A line of a root that stays: the checkpoint is told twice, and a root is there that a cleaned segment records.
    let mut world = base.clone();
    let first = world.root(seq(1));
    let line = crate::inventory::SegmentLine::of(&first, world.sha(seq(1)));
    rewrite_newest(&mut world, |segment| segment.lines.insert(0, line));
    assert_eq!(codes(&world), ["root.not_deleted"]);
    world.store.objects.remove(&layout::root(seq(1)));
    // since_seq is 2 now, so that the first of the month is what makes a checkpoint of nothing but 2.
    let found = codes(&world);
    assert_eq!(found, Vec::<&str>::new(), "version 1 has none before it to tell a checkpoint by");
    // Another hash for the same version.
    let mut world = base.clone();
    rewrite_newest(&mut world, |segment| segment.lines[1].root_sha256 = crate::ids::Sha256Hex::of(b"x"));
    assert!(codes(&world).contains(&"version.chain"));
    // The same versions in two segments.
    let mut world = base.clone();
    let earlier = world.chain()[0].lines.clone();
    rewrite_newest(&mut world, |segment| segment.lines.splice(0..0, earlier).for_each(drop));
    assert_eq!(codes(&world), ["segment.overlap"]);
    // A month begins with an expired version.
    let mut world = World::opted_in();
    world.days(20);
    for _ in 0..8 {
        world.seal("a");
    }
    world.days(60);
    world.expire().unwrap();
    let february = world.root(seq(2));
    let sha = world.sha(seq(2));
    world.store.objects.remove(&layout::root(seq(2)));
    assert_eq!(codes(&world), ["version.missing"]);
    let line = crate::inventory::SegmentLine::of(&february, sha);
    let first = world.chain()[0].header.first;
    assert_eq!(first, seq(3));
    rewrite_newest(&mut world, |segment| segment.lines.insert(0, line));
    assert_eq!(codes(&world), ["checkpoint.expired"]);
}

#[test]
fn a_root_that_nobody_built_on_is_told_and_unlinked_segments_are() {
    let good = rich();
    let mut world = good.clone();
    // A stale writer's root, of a number that no line records.
    let mut stale = world.root(seq(13));
    stale.seq = seq(16);
    stale.previous_inventory = Some(seq(13));
    world.store.create(&layout::root(seq(16)), stale.encode().unwrap()).unwrap();
    let head = good.head();
    let mut known = world.known();
    known.head = head.seq;
    known.cache = Cache::default();
    let found = world.drive(&mut known, |known| check_history(&Evidence { known, leaves: None })).unwrap();
    assert!(found.iter().any(|finding| finding.code() == "root.off_chain"), "{found:?}");
    let mut world = good;
    let id = world.id();
    let bytes = world.store.get(&world.history().newest_segment.unwrap()).unwrap().to_vec();
    let name = layout::segment_name(&world.history().newest_segment.unwrap()).unwrap();
    let copy = layout::segment(name.restore_epoch, name.first, name.last, id);
    world.store.create(&copy, bytes).unwrap();
    assert_eq!(world.findings(), [HistoryFinding::SegmentUnlinked { path: copy, is_orphan: false }]);
    let junk = "history/0/note.txt".to_owned();
    world.store.create(&junk, b"x".to_vec()).unwrap();
    assert_eq!(world.findings().len(), 2);
}

fn anchored(world: &World, anchor: &Anchor) -> Vec<&'static str> {
    let mut known = world.known();
    known.cache = Cache::default();
    let found = world.drive(&mut known, |known| check_anchor(known, anchor)).unwrap();
    found.iter().map(HistoryFinding::code).collect()
}

#[test]
fn an_anchor_proves_that_nothing_below_it_was_altered_or_removed() {
    let mut world = rich();
    let anchor = world.drive(&mut world.known(), newest_anchor).unwrap();
    assert_eq!((anchor.root.seq, anchor.root.restore_epoch), (world.head().seq, 2));
    let text = serde_json::to_string(&anchor).unwrap();
    assert_eq!(serde_json::from_str::<Anchor>(&text).unwrap(), anchor);
    assert_eq!(anchored(&world, &anchor), Vec::<&str>::new());
    let then = world.clone();
    // Later versions, expiries and restores leave it standing, also when they discard the anchored version.
    for _ in 0..4 {
        world.seal("a");
    }
    world.days(60);
    world.expire().unwrap();
    assert_eq!(anchored(&world, &anchor), Vec::<&str>::new());
    world.restore(seq(14), &[]).unwrap();
    world.check(false);
    assert_eq!(anchored(&world, &anchor), Vec::<&str>::new(), "a discarded version is a line");

    // A head that was altered, with everything else made to fit: only the anchor tells.
    let mut forged = then.clone();
    let head = layout::root(forged.head().seq);
    forged.store.tamper(&head, |text| text.replace("because", "Because"));
    assert_eq!(forged.findings(), []);
    assert_eq!(anchored(&forged, &anchor), ["anchor.root"]);
    // A HISTORY that went back in time.
    let mut older = then.clone();
    let previous = older.chain().last().unwrap().header.clone();
    let history = History {
        newest_segment: previous.previous_segment,
        newest_segment_sha256: previous.previous_segment_sha256,
        ..older.history()
    };
    older.store.put(layout::HISTORY, history.encode().unwrap()).unwrap();
    assert!(anchored(&older, &anchor).contains(&"anchor.segment"));
    // Anything below, edited or removed.
    for path in then.store.segments().into_iter().chain(then.store.roots().into_keys().map(layout::root)) {
        let mut world = then.clone();
        world.store.objects.remove(&path);
        if path != head {
            assert!(!anchored(&world, &anchor).is_empty(), "{path} was removed");
        }
        let mut world = then.clone();
        world.store.tamper(&path, |text| text.replacen("because", "Because", 1));
        assert!(!anchored(&world, &anchor).is_empty(), "{path} was edited");
    }
}
