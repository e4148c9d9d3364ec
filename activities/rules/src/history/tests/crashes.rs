//! Expiries and restores that are interrupted after any single write or delete, and run again.

use super::holds::same;
use super::model::*;
use crate::history::*;
use crate::ids::Sha256Hex;
use crate::inventory::{Document, SegmentKind, Seq};
use crate::layout;

/// Two epochs, three segments of the first and two of the second to come, leaves that are used again, a kept one.
fn two_epochs() -> World {
    let mut world = World::opted_in();
    for name in ["a", "b", "a", "c", "a", "b"] {
        world.seal(name);
    }
    world.seal("c");
    world.restore(seq(7), &[]).unwrap();
    for name in ["b", "a", "c"] {
        world.seal(name);
    }
    world.revert("a", seq(2));
    world.seal("b");
    world.seal("a");
    world.days(60);
    world
}

/// Interrupts `run` after each write in turn, runs it again, and holds the result against an undisturbed run's.
fn sweep(world: &World, run: &dyn Fn(&mut World) -> Result<(), Stopped>) -> u32 {
    let mut whole = world.clone();
    let before = whole.store.writes;
    run(&mut whole).unwrap();
    whole.check(false);
    let writes = whole.store.writes - before;
    for n in 1..=writes {
        let mut broken = world.clone();
        broken.store.writes_left = Some(n);
        match run(&mut broken) {
            Err(Stopped::Crashed) => {}
            other => panic!("write {n} of {writes} was not reached: {other:?}"),
        }
        broken.store.writes_left = None;
        broken.check(true);
        if n == writes {
            same(&broken, &whole, "after the last write");
            break;
        }
        run(&mut broken).unwrap_or_else(|stopped| panic!("the rerun after write {n} of {writes}: {stopped:?}"));
        broken.check(false);
        same(&broken, &whole, &format!("after a crash at write {n} of {writes}"));
    }
    writes
}

#[test]
fn an_expiry_crash_after_each_step_in_a_run_of_several_segments_ends_as_an_undisturbed_run() {
    let world = two_epochs();
    let plan = world.plan().unwrap();
    let epochs: Vec<_> = plan.drafts.iter().map(|draft| (draft.restore_epoch, seqs(&draft.seqs()))).collect();
    assert_eq!(epochs, [(0, vec![2, 3]), (0, vec![4, 5]), (0, vec![6, 7]), (1, vec![9, 10]), (1, vec![11, 12])]);
    assert_eq!(seqs(&plan.choice.checkpoints), [1, 8], "version 8 is the first of its epoch");
    let writes = sweep(&world, &|world| world.expire().map(drop));
    // Five segments, HISTORY, ten roots, leaves, HISTORY.
    assert!(writes > 20, "{writes}");
    // A crash at any point, and then another one at any point of the rerun.
    for first in (2..=writes).step_by(8) {
        let mut broken = world.clone();
        broken.store.writes_left = Some(first);
        assert!(broken.expire().is_err());
        broken.store.writes_left = None;
        let left = sweep(&broken, &|world| world.expire().map(drop));
        assert!(left <= writes);
    }
}

#[test]
fn the_crash_rule_tells_where_an_interrupted_expiry_goes_on() {
    let world = two_epochs();
    assert_eq!(world.crash_rule(), CrashRule { step: None, pending: vec![], roots_left: vec![], orphans: vec![] });
    let plan = world.plan().unwrap();
    let (segments, roots) = (plan.drafts.len(), plan.root_deletes.len());
    let mut seen = Vec::new();
    let mut n = 1;
    loop {
        let mut broken = world.clone();
        broken.store.writes_left = Some(n);
        if !matches!(broken.expire(), Err(Stopped::Crashed)) {
            break;
        }
        let rule = broken.crash_rule();
        let at = usize::try_from(n).unwrap();
        if at <= segments {
            assert_eq!((rule.step, rule.orphans.len()), (Some(ExpiryStep::WriteSegments), at));
        } else if at <= segments + roots {
            assert_eq!(rule.step, Some(ExpiryStep::DeleteRoots), "write {n}");
            assert_eq!((rule.pending.len(), rule.roots_left.len()), (segments, roots + segments + 1 - at));
        }
        seen.push(rule.step.map(ExpiryStep::as_str));
        n += 1;
    }
    seen.dedup();
    let told = ["expire.3_write_segments", "expire.5_delete_roots", "expire.6_delete_leaves"];
    let told: Vec<_> = told.into_iter().map(Some).chain([None]).collect();
    assert_eq!(seen, told);
    assert_eq!(ExpiryStep::ALL.len(), 9);
    for (n, step) in ExpiryStep::ALL.iter().enumerate() {
        assert!(step.as_str().starts_with(&format!("expire.{n}_")));
    }
}

/// `seven`-like: one epoch, three segments to come.
fn one_epoch() -> World {
    let mut world = World::opted_in();
    for _ in 0..8 {
        world.seal("a");
    }
    world.days(60);
    world
}

fn crashed_after(world: &World, writes: u32) -> World {
    let mut broken = world.clone();
    broken.store.writes_left = Some(writes);
    assert!(matches!(broken.expire(), Err(Stopped::Crashed)));
    broken.store.writes_left = None;
    broken
}

#[test]
fn linked_orphans_are_adopted_also_when_more_versions_expire_by_then() {
    let mut world = crashed_after(&one_epoch(), 2);
    for _ in 0..3 {
        world.seal("a");
    }
    world.days(60);
    let plan = world.plan().unwrap();
    assert_eq!((plan.adopted.len(), plan.orphans.len()), (2, 0));
    assert_eq!(seqs(&plan.choice.candidates), [2, 3, 4, 5, 6, 7, 8, 9]);
    let written: Vec<_> = plan.drafts.iter().map(|draft| seqs(&draft.seqs())).collect();
    assert_eq!(written, [[6, 7], [8, 9]]);
    world.expire().unwrap();
    world.check(false);
    assert_eq!(world.chain().len(), 4);
}

#[test]
fn an_unlinked_orphan_is_left() {
    let base = crashed_after(&one_epoch(), 1);
    let orphan = base.store.segments().into_iter().next().unwrap();
    let edits: [(&str, &str, &str); 5] = [
        (r#""kind":"expiry""#, r#""kind":"restore""#, "another kind"),
        (r#""previous_segment":null"#, r#""previous_segment":"history/0/x""#, "not the newest"),
        (r#""catalog_id":"01a18e76"#, r#""catalog_id":"01a18e77"#, "of catalog"),
        (r#""root_sha256":""#, r#""root_sha256":"0"#, "cannot be read"),
        ("because", "Because", ""),
    ];
    for (from, to, expected) in edits {
        let mut world = base.clone();
        world.store.tamper(&orphan, |text| {
            let text = text.replace(from, to);
            let text = text.replace(
                r#""history/0/x","previous_segment_sha256":null"#,
                &format!(r#""history/0/x","previous_segment_sha256":"{}""#, Sha256Hex::of(b"x")),
            );
            // A restore's header has no leaves.
            if to.contains("restore") {
                let start = text.find(r#""leaves":["#).unwrap();
                let end = start + text[start..].find(']').unwrap();
                format!("{}\"leaves\":[{}", &text[..start], &text[end..])
            } else {
                text
            }
        });
        let plan = world.plan().unwrap();
        if expected.is_empty() {
            // Words in a line are not what a root's bytes can be held against: only its hash is, and it holds.
            assert_eq!(plan.adopted.len(), 1);
            continue;
        }
        assert_eq!((plan.adopted.len(), plan.orphans.len()), (0, 1), "{from}");
        assert!(plan.orphans[0].why.contains(expected), "{}", plan.orphans[0].why);
        world.left.insert(orphan.clone());
        world.expire().unwrap();
        assert!(world.store.get(&orphan).is_some(), "nothing under history/ is deleted");
        world.check(false);
    }
    // Lines that are not the next ones: K was raised since, so the versions do not go any more.
    let mut world = base.clone();
    world.rules.keep_roots = 8;
    world.expire().unwrap();
    assert!(world.store.segments().contains(&orphan));
    assert_eq!(world.history().newest_segment, None);
    // And a line that is not the root as it is stored.
    let mut world = base;
    let mut root = world.root(seq(2));
    root.event.reason = "another".to_owned();
    world.store.put(&layout::root(seq(2)), root.encode().unwrap()).unwrap();
    let mut next = world.root(seq(3));
    next.previous_root_sha256 = Some(Some(world.sha(seq(2))));
    world.store.put(&layout::root(seq(3)), next.encode().unwrap()).unwrap();
    let mut after = world.root(seq(4));
    after.previous_root_sha256 = Some(Some(world.sha(seq(3))));
    world.store.put(&layout::root(seq(4)), after.encode().unwrap()).unwrap();
    let refusal = world.plan().unwrap_err();
    assert_eq!(refusal.code(), "history.chain_broken", "{refusal}");
}

#[test]
fn of_two_orphans_after_one_segment_the_first_that_fits_is_adopted_and_the_other_left() {
    let mut world = crashed_after(&one_epoch(), 1);
    let first = world.store.segments().into_iter().next().unwrap();
    let bytes = world.store.get(&first).unwrap().to_vec();
    let id = world.id();
    let other = layout::segment(0, seq(2), seq(3), id);
    world.store.create(&other, bytes).unwrap();
    let plan = world.plan().unwrap();
    assert_eq!((plan.adopted[0].at.path.as_str(), plan.orphans.len()), (first.as_str(), 1));
    assert_eq!(plan.orphans[0].path, other);
    world.left.insert(other);
    world.expire().unwrap();
    world.check(false);
}

#[test]
fn cleaned_through_limits_the_crash_rule() {
    let mut world = one_epoch();
    let old = world.store.get(&layout::root(seq(3))).unwrap().to_vec();
    world.expire().unwrap();
    // A backup brings back what a cleaned segment records: it is reported and kept.
    world.store.create(&layout::root(seq(3)), old).unwrap();
    for _ in 0..3 {
        world.seal("a");
    }
    world.days(60);
    let crashed = crashed_after(&world, 4);
    let plan = crashed.plan().unwrap();
    let pending: Vec<_> = plan.pending.iter().map(|segment| seqs(&segment.roots)).collect();
    assert_eq!(pending, [vec![8, 9]], "the segments up to cleaned_through are not looked at");
    assert!(plan.root_deletes.iter().all(|delete| delete.seq != seq(3)));
    let kept: Vec<_> = plan.alerts().map(|kept| kept.seq.get()).collect();
    assert_eq!(kept, [3]);
    let codes: Vec<_> = crashed.findings().iter().map(HistoryFinding::code).collect();
    assert!(codes.contains(&"history.interrupted_expiry") && codes.contains(&"root.not_deleted"), "{codes:?}");
}

#[test]
fn a_leaf_that_is_used_again_before_the_rerun_stays_though_the_header_lists_it() {
    // HISTORY names the segments of 2 to 7, and every root is still there.
    let mut world = crashed_after(&one_epoch(), 4);
    let leaf = world.root(seq(4)).leaf_sha256(&product("a")).unwrap().clone();
    let planned = world.plan().unwrap();
    assert!(planned.header_leaves.contains(&leaf) && planned.leaves.contains(&leaf));
    world.revert("a", seq(4));
    let plan = world.plan().unwrap();
    assert!(plan.header_leaves.contains(&leaf) && !plan.leaves.contains(&leaf));
    world.expire().unwrap();
    assert!(world.store.get(&layout::leaf(&leaf)).is_some());
    world.check(false);
}

#[test]
fn an_expiry_that_was_interrupted_before_a_restore_is_finished_after_it() {
    // HISTORY names the segments of 2 to 7; of the roots only 2 is deleted.
    let mut world = crashed_after(&one_epoch(), 5);
    world.check(true);
    assert_eq!(world.history().expired_through, 7);
    // Back to the checkpoint 1: what is recorded already gets no second line.
    let plan = world.plan_restore(seq(1), &[]).unwrap();
    let written: Vec<_> = plan.drafts.iter().map(|draft| seqs(&draft.seqs())).collect();
    assert_eq!(written, [[8, 9]]);
    let gone: Vec<_> = plan.deletes.iter().map(|delete| delete.seq.get()).collect();
    assert_eq!(gone, [9, 8, 7, 6, 5, 4, 3], "from the highest down");
    world.restore(seq(1), &[]).unwrap();
    assert_eq!(world.history().expired_through, 1);
    let codes: Vec<_> = world.findings().iter().map(HistoryFinding::code).collect();
    assert_eq!(codes, ["history.interrupted_expiry"; 3], "the leaves of the old segments");
    let leaves = world.store.leaves().len();
    let plan = world.expire().unwrap();
    assert!(!plan.is_nothing() && plan.choice.candidates.is_empty());
    assert!(world.store.leaves().len() < leaves);
    world.check(false);
}

#[test]
fn a_restore_that_is_interrupted_after_each_write_ends_as_an_undisturbed_one() {
    let world = two_epochs();
    for to in [14, 8, 3] {
        let writes = sweep(&world, &|world| world.restore(seq(to), &[]).map(drop));
        let roots = u32::try_from(14 - to).unwrap();
        assert!(writes >= roots + 4, "{to}: {writes}");
    }
    // From an expired catalog, back to a checkpoint below expired_through.
    let mut world = world;
    world.expire().unwrap();
    for to in [13, 8, 1] {
        let mut once = world.clone();
        sweep(&world, &|world| world.restore(seq(to), &[]).map(drop));
        once.restore(seq(to), &[]).unwrap();
        assert_eq!(once.history().expired_through, to.min(12));
        once.seal("a");
        once.days(90);
        once.expire().unwrap();
        once.check(false);
    }
}

#[test]
fn a_restore_crash_after_its_history_write_fails_closed_until_root_s_plus_1_exists() {
    let world = two_epochs();
    let to = seq(10);
    let segments = u32::try_from(world.plan_restore(to, &[]).unwrap().drafts.len()).unwrap();
    let mut n = segments + 1;
    let mut steps = Vec::new();
    loop {
        let mut broken = world.clone();
        broken.store.writes_left = Some(n);
        if !matches!(broken.restore(to, &[]), Err(Stopped::Crashed)) {
            break;
        }
        broken.store.writes_left = None;
        let found = broken.drive(&mut broken.known(), restore_found).unwrap();
        let Some(restore) = found else { break };
        assert_eq!((restore.to, restore.restore_epoch), (to, 2));
        steps.push(restore.step);
        n += 1;
        if restore.step == RestoreStep::WriteCurrent {
            // Root S + 1 is there: readers find it without CURRENT, and writers go on.
            assert_eq!((broken.head().seq, broken.head().restore_epoch), (to.next(), 2));
            broken.expire().unwrap();
            continue;
        }
        // Every other writer stops: expiry, another restore, and by admit_base a commit.
        let Err(Stopped::Refused(refusal)) = broken.clone().expire() else { panic!("an expiry passed") };
        assert_eq!(refusal.code(), "history.unfinished_restore");
        let other = broken.plan_restore(seq(1), &[]).unwrap_err();
        assert_eq!(other.code(), "history.restore_unfinished");
        assert!(other.fix().contains("--to-seq 10"), "{}", other.fix());
        let (catalog, history, head) = (broken.catalog(), broken.history(), broken.head());
        assert!(crate::inventory::admit_base(&catalog, Some(&history), &head).is_err());
        let findings = broken.findings();
        let told = findings.iter().find(|finding| finding.code() == "history.unfinished_restore").unwrap();
        assert!(told.fix().ends_with("jobctl run restore --to-seq 10"), "{}", told.fix());
    }
    steps.dedup();
    assert_eq!(steps, RestoreStep::ALL[2..]);
}

#[test]
fn a_restore_that_bumps_the_epoch_writes_a_restore_segment() {
    let mut world = two_epochs();
    let before = world.clone();
    world.restore(seq(5), &[]).unwrap();
    let chain = world.chain();
    let told: Vec<_> =
        chain.iter().map(|segment| (segment.header.restore_epoch, seqs(&segment.header.roots))).collect();
    let expected =
        [(0, vec![8]), (0, vec![6, 7]), (1, vec![8, 9]), (1, vec![10, 11]), (1, vec![12, 13]), (1, vec![14])];
    assert_eq!(told, expected, "the first is of the restore before");
    assert!(
        chain.iter().all(|segment| segment.header.kind == SegmentKind::Restore && segment.header.leaves.is_empty())
    );
    assert_eq!((world.catalog().restore_epoch, world.history().restore_epoch), (2, 2));
    let head = world.head();
    assert_eq!((head.seq, head.restore_epoch, head.previous_inventory), (seq(6), 2, Some(seq(5))));
    assert_eq!(head.previous_root_sha256, Some(Some(before.sha(seq(5)))));
    assert_eq!(head.event.kind.as_str(), "restore");
    assert_eq!(world.current().unwrap().seq, seq(6));
    assert_eq!(before.store.leaves().len(), world.store.leaves().len(), "a restore deletes no leaf");
    world.check(false);
    // Its checkpoints: the first of the epoch.
    for _ in 0..5 {
        world.seal("a");
    }
    world.days(60);
    let plan = world.expire().unwrap();
    assert!(plan.choice.checkpoints.contains(&Seq::new(6).unwrap()));
    world.check(false);
}
