//! The conformance cases of *catalog* §6.9 on expiry, by their names there, and the rules around them.

use super::model::*;
use crate::history::*;
use crate::inventory::{Current, Document, FormatVersion, Retention, Root, SegmentKind, Seq};
use crate::layout;

/// Versions 1 to 7 in January, all past the window: 1 is the checkpoint, and the newest two stay.
fn seven() -> World {
    let mut world = World::opted_in();
    for name in ["a", "b", "a", "a", "b", "a"] {
        world.seal(name);
    }
    world.days(60);
    world
}

#[test]
fn an_expiry_moves_the_old_versions_into_segments_and_keeps_checkpoints_and_the_newest() {
    let mut world = seven();
    let before = world.clone();
    let plan = world.expire().unwrap();
    assert_eq!(seqs(&plan.choice.candidates), [2, 3, 4, 5]);
    assert_eq!(plan.choice.stop, Stop::Newest { seq: seq(6) });
    assert_eq!(world.store.roots().into_keys().map(Seq::get).collect::<Vec<_>>(), [1, 6, 7]);
    let history = world.history();
    assert_eq!(history.expired_through, 5);
    assert!(history.newest_segment.is_some() && history.cleaned_through == history.newest_segment);
    let chain = world.chain();
    assert_eq!(chain.iter().map(|segment| seqs(&segment.header.roots)).collect::<Vec<_>>(), [[2, 3], [4, 5]]);
    for (segment, before) in chain.iter().zip([None, chain.first()]) {
        assert_eq!(segment.header.kind, SegmentKind::Expiry);
        let name = layout::segment_name(segment.header.previous_segment.as_deref().unwrap_or_default());
        assert_eq!(name.map(|name| name.first), before.map(|before| before.header.first));
    }
    // A line is the root as it was, but for products and retired.
    for (_, _, line) in world.lines() {
        let bytes = before.store.get(&layout::root(line.seq)).unwrap();
        let root = Root::decode(bytes).unwrap();
        assert_eq!((line.created_at, &line.changes), (root.created_at, &root.changes));
        assert_eq!(line.root_sha256, crate::ids::Sha256Hex::of(bytes));
    }
    // Each object that went has a line in the log, and nothing else has.
    let gone = before.store.objects.keys().filter(|path| !world.store.objects.contains_key(*path));
    let mut logged: Vec<_> = world.log.iter().map(|line| line.path.as_str()).collect();
    logged.sort_unstable();
    assert!(gone.eq(logged), "{:?}", world.log);
    // The leaves that versions 2, 3 and 4 brought. The one of version 5 is named by 6, too.
    assert_eq!(world.log.iter().filter(|line| line.path.starts_with("inventory/leaves/")).count(), 3);
    world.check(false);
    assert!(world.expire().unwrap().is_nothing(), "a second run finds nothing to do");
}

#[test]
fn a_version_stays_for_the_window_from_the_time_of_the_one_that_replaced_it() {
    let mut world = World::opted_in();
    world.seal("a");
    world.days(40);
    for _ in 0..4 {
        world.seal("a");
    }
    // Version 2 is old, and was replaced now. The month changed with version 3.
    assert!(world.plan().unwrap().is_nothing());
    world.days(36);
    assert!(world.plan().unwrap().is_nothing(), "exactly W is not yet older than W");
    world.now = world.now.plus_ms(1);
    assert_eq!(seqs(&world.plan().unwrap().choice.candidates), [2], "3 is a checkpoint, 4 was replaced 3 ms later");
    world.days(1);
    let plan = world.expire().unwrap();
    assert_eq!((seqs(&plan.choice.candidates), seqs(&plan.choice.checkpoints)), (vec![2, 4], vec![1, 3]));
    world.check(false);
}

#[test]
fn with_current_lagging_by_more_than_k_step_0_advances_it_and_step_1_takes_no_root_at_or_above_it() {
    let mut world = seven();
    let lagging = Current { seq: seq(3), root_sha256: world.sha(seq(3)), restore_epoch: 0 };
    world.store.put(layout::CURRENT, lagging.encode()).unwrap();
    let plan = world.plan().unwrap();
    assert_eq!(seqs(&plan.choice.candidates), [2], "without step 0");
    assert_eq!(plan.choice.stop, Stop::Current { seq: seq(3) });
    assert_eq!(world.crash_rule().step, Some(ExpiryStep::AdvanceCurrent));
    let plan = world.expire().unwrap();
    assert_eq!(seqs(&plan.choice.candidates), [2, 3, 4, 5]);
    assert_eq!(world.current().unwrap().seq, seq(7));
    world.check(false);
}

/// Takes the history fields out of a root, and links the next one to the new bytes.
fn without_fields(world: &mut World, n: u64) {
    let mut root = world.root(seq(n));
    (root.changes, root.previous_root_sha256) = (None, None);
    world.store.put(&layout::root(seq(n)), root.encode().unwrap()).unwrap();
    world.committed.insert((root.restore_epoch, seq(n)), world.sha(seq(n)));
    if world.store.get(&layout::root(seq(n + 1))).is_some() {
        let mut next = world.root(seq(n + 1));
        if next.has_history() {
            next.previous_root_sha256 = Some(Some(world.sha(seq(n))));
        }
        world.store.put(&layout::root(seq(n + 1)), next.encode().unwrap()).unwrap();
        world.committed.insert((next.restore_epoch, seq(n + 1)), world.sha(seq(n + 1)));
    }
}

#[test]
fn expiry_stops_at_a_root_above_since_seq_that_lacks_the_history_fields() {
    let mut world = World::opted_in();
    for _ in 0..4 {
        world.seal("a");
    }
    without_fields(&mut world, 5);
    for _ in 0..5 {
        world.seal("a");
    }
    world.days(60);
    let plan = world.expire().unwrap();
    assert_eq!(seqs(&plan.choice.candidates), [2, 3, 4]);
    assert_eq!(plan.choice.stop, Stop::NoHistoryFields { seq: seq(5) });
    let findings = world.findings();
    assert_eq!(findings, [HistoryFinding::NoHistoryFields { seq: seq(5), since_seq: seq(1) }]);
}

#[test]
fn roots_below_since_seq_never_expire() {
    let mut world = World::new();
    for _ in 0..3 {
        world.seal("a");
    }
    for n in 1..=3 {
        without_fields(&mut world, n);
    }
    world.opt_in().unwrap();
    assert_eq!(world.catalog().history.unwrap().since_seq, seq(4));
    for _ in 0..4 {
        world.seal("a");
    }
    world.days(60);
    let plan = world.expire().unwrap();
    assert_eq!(seqs(&plan.choice.candidates), [5, 6]);
    let kept: Vec<_> = plan.kept.iter().map(|kept| (kept.seq.get(), kept.why)).collect();
    let before = Why::BeforeHistory;
    assert_eq!(kept, [(1, before), (2, before), (3, before), (4, Why::Checkpoint)]);
    world.check(false);
}

#[test]
fn a_root_below_expired_through_with_no_matching_line_is_kept() {
    let mut world = seven();
    let old = world.store.get(&layout::root(seq(3))).unwrap().to_vec();
    world.expire().unwrap();
    // A stale writer, who read version 2 long ago, creates version 3 once more.
    let mut stale = Root::decode(&old).unwrap();
    stale.event.reason = "stale".to_owned();
    world.store.create(&layout::root(seq(3)), stale.encode().unwrap()).unwrap();
    for _ in 0..4 {
        world.seal("a");
    }
    world.days(60);
    let plan = world.expire().unwrap();
    let alerts: Vec<_> = plan.alerts().collect();
    assert_eq!(alerts.len(), 1);
    assert_eq!((alerts[0].seq, alerts[0].why), (seq(3), Why::Unmatched));
    assert!(world.store.get(&layout::root(seq(3))).is_some(), "it is kept");
    for leaf in stale.products.values() {
        assert!(world.store.get(&layout::leaf(&leaf.leaf_sha256)).is_none(), "its leaves went before it came");
    }
    let findings = world.findings();
    let codes: Vec<_> = findings.iter().map(HistoryFinding::code).collect();
    assert_eq!(codes, ["version.two_hashes", "leaf.missing", "leaf.missing"], "{findings:?}");
}

#[test]
fn a_root_of_a_pending_segment_that_does_not_match_its_line_is_kept() {
    let mut world = seven();
    let mut stale = world.root(seq(2));
    stale.event.reason = "stale".to_owned();
    // Two segments, HISTORY, and root 2.
    world.store.writes_left = Some(4);
    assert!(matches!(world.expire(), Err(Stopped::Crashed)));
    world.store.writes_left = None;
    world.store.create(&layout::root(seq(2)), stale.encode().unwrap()).unwrap();
    assert_eq!(seqs(&world.crash_rule().roots_left), [3, 4, 5]);
    let plan = world.expire().unwrap();
    assert_eq!(plan.alerts().map(|kept| kept.seq).collect::<Vec<_>>(), [seq(2)]);
    assert_eq!(world.store.roots().into_keys().map(Seq::get).collect::<Vec<_>>(), [1, 2, 6, 7]);
    for leaf in stale.products.values() {
        assert!(world.store.get(&layout::leaf(&leaf.leaf_sha256)).is_some(), "and so are its leaves");
    }
}

#[test]
fn a_kept_root_keeps_its_leaves() {
    let mut world = seven();
    // A stale writer's root from before the expiry: it stands where no line will match it.
    let mut stale = world.root(seq(6));
    stale.event.reason = "stale".to_owned();
    let leaves: Vec<_> = stale.products.values().map(|leaf| leaf.leaf_sha256.clone()).collect();
    world.expire().unwrap();
    stale.seq = seq(3);
    stale.previous_inventory = Some(seq(2));
    world.store.create(&layout::root(seq(3)), stale.encode().unwrap()).unwrap();
    for _ in 0..4 {
        world.seal("a");
        world.seal("b");
    }
    world.days(60);
    let plan = world.expire().unwrap();
    assert!(plan.choice.candidates.contains(&seq(6)), "the other version with these leaves goes");
    for leaf in leaves {
        assert!(world.store.get(&layout::leaf(&leaf)).is_some());
    }
}

#[test]
fn a_leaf_that_is_used_again_stays() {
    let mut world = World::opted_in();
    let first = world.seal("a");
    let leaf = world.root(first).leaf_sha256(&product("a")).unwrap().clone();
    world.seal("a");
    world.revert("a", first);
    for _ in 0..3 {
        world.describe();
    }
    world.days(60);
    let plan = world.expire().unwrap();
    assert_eq!(seqs(&plan.choice.candidates), [2, 3, 4, 5]);
    assert!(!plan.header_leaves.contains(&leaf));
    assert_eq!(plan.leaves.len(), 1, "the one of version 3");
    world.check(false);
}

#[test]
fn a_leaf_that_a_writer_puts_again_before_the_delete_stays() {
    let mut world = seven();
    let mut known = world.known();
    let plan = world.drive(&mut known, |known| plan_expiry(known, &world.rules, world.now)).unwrap();
    let etags = world.store.leaves();
    let leaf = plan.leaves.first().unwrap().clone();
    // Put after the LIST of the leaves, and not yet named by a root.
    let bytes = world.store.get(&layout::leaf(&leaf)).unwrap().to_vec();
    world.store.put(&layout::leaf(&leaf), bytes).unwrap();
    for delete in &plan.root_deletes {
        known.roots.remove(&delete.seq);
    }
    let deletes = world.drive(&mut known, |known| leaf_deletes(known, &plan.header_leaves, &etags)).unwrap();
    let delete = deletes.iter().find(|delete| delete.leaf_sha256 == leaf).unwrap();
    assert!(!world.store.delete(&delete.path, &delete.etag).unwrap(), "If-Match does not hold any more");
}

#[test]
fn a_chain_that_does_not_hold_stops_the_expiry_before_anything_is_written() {
    // Version 6 is the first retained one above: it tells of version 5.
    for n in [2, 4, 5] {
        let mut world = seven();
        world.store.tamper(&layout::root(seq(n)), |text| text.replace("because", "Because"));
        let before = world.store.objects.clone();
        let Err(Stopped::Refused(refusal)) = world.expire() else { panic!("an altered version {n} passed") };
        assert_eq!(refusal.code(), "history.chain_broken", "{refusal}");
        assert!(refusal.to_string().contains(&format!("version {}", n + 1)), "{refusal}");
        assert_eq!(world.store.objects, before);
    }
}

#[test]
fn a_missing_or_damaged_root_stops_the_expiry() {
    let mut world = seven();
    world.store.objects.remove(&layout::root(seq(4)));
    let Err(Stopped::Refused(refusal)) = world.expire() else { panic!("a gap passed") };
    assert_eq!(refusal.code(), "history.root_missing");
    // A retained root that cannot be read may name any leaf.
    let mut world = seven();
    world.store.put(&layout::root(seq(7)), b"{}".to_vec()).unwrap();
    world.seal_on(seq(6));
    let Err(Stopped::Refused(refusal)) = world.expire() else { panic!("a damaged root passed") };
    assert_eq!(refusal.code(), "history.root_damaged");
}

impl World {
    /// Leaves the damaged head as it is: `head` is the newest valid version.
    fn seal_on(&mut self, head: Seq) {
        assert_eq!(self.head().seq, head);
        let current = Current { seq: head, root_sha256: self.sha(head), restore_epoch: 0 };
        self.store.put(layout::CURRENT, current.encode()).unwrap();
    }
}

#[test]
fn a_catalog_that_has_not_opted_in_and_windows_that_contradict_expire_nothing() {
    let mut world = seven();
    let mut catalog = world.catalog();
    (catalog.format_version, catalog.history) = (FormatVersion { major: 1, minor: 0 }, None);
    world.store.put(layout::CATALOG, catalog.encode().unwrap()).unwrap();
    let refusal = world.plan().unwrap_err();
    assert_eq!(refusal.code(), "history.not_opted_in");
    assert!(refusal.fix().contains("jobctl run opt-in-expiry"));
    let bad = Retention { version_days: 10, ..Retention::default() };
    assert_eq!(ExpiryRules::of(&bad).unwrap_err().code(), "retention.versions_below_gc");
    let rules = ExpiryRules::of(&Retention::default()).unwrap();
    assert_eq!((rules.window_ms, rules.keep_roots, rules.limits.lines), (36 * 86_400_000, 10, 1_000));
}

#[test]
fn a_segment_is_split_at_its_size_and_an_epoch_has_its_own() {
    let mut world = seven();
    world.rules.limits = SegmentLimits::default();
    let one = world.plan().unwrap();
    assert_eq!(one.drafts.len(), 1);
    let whole = {
        let mut world = world.clone();
        world.expire().unwrap();
        world.store.get(&world.history().newest_segment.unwrap()).unwrap().len()
    };
    // Any size: no segment is longer, but for one of a single root.
    for bytes in [1, 2_500, 3_000, 4_000, 5_000, 6_000, u64::try_from(whole).unwrap()] {
        let mut world = world.clone();
        world.rules.limits.bytes = bytes;
        world.expire().unwrap();
        for path in world.store.segments() {
            let length = u64::try_from(world.store.get(&path).unwrap().len()).unwrap();
            let name = layout::segment_name(&path).unwrap();
            assert!(length <= bytes || name.first == name.last, "{path} has {length} bytes, of {bytes}");
        }
        world.check(false);
    }
}

#[test]
fn a_later_run_reads_the_new_roots_and_no_segment() {
    let mut world = seven();
    *world.reads.borrow_mut() = Reads::default();
    world.expire().unwrap();
    let first = world.reads.take();
    assert_eq!(first.roots.len(), 7, "the first run reads every root once");
    assert!(first.stamps.len() <= 5, "{first:?}");
    for _ in 0..3 {
        world.seal("a");
    }
    world.days(60);
    world.expire().unwrap();
    let later = world.reads.take();
    assert_eq!((seqs(&later.roots), later.segments), (vec![8, 9, 10], vec![]), "only what is new");
    world.expire().unwrap();
    assert_eq!(world.reads.take(), Reads::default(), "nothing to do, nothing to read");
    world.seal("a");
    // Without a cache everything is read again, and the plan is the same.
    world.days(60);
    let mut fresh = world.clone();
    fresh.cache = Cache::default();
    assert_eq!(world.plan().unwrap(), fresh.plan().unwrap());
    // A cache survives being written and read; one whose ETags are others counts for nothing.
    let text = serde_json::to_vec(&world.cache).unwrap();
    let again: Cache = serde_json::from_slice(&text).unwrap();
    assert_eq!(again, world.cache);
    let bytes = world.store.get(&layout::root(seq(9))).unwrap().to_vec();
    world.store.put(&layout::root(seq(9)), bytes).unwrap();
    world.reads.take();
    world.plan().unwrap();
    assert_eq!(seqs(&world.reads.take().roots), [9, 11], "another ETag forces a read");
}

#[test]
fn a_long_history_is_cut_by_few_ranged_reads() {
    let mut world = World::opted_in();
    for _ in 0..200 {
        world.describe();
    }
    world.days(37);
    for _ in 0..100 {
        world.describe();
    }
    world.reads.take();
    // Version 2 is too young while the window is long: two beginnings tell.
    let mut long = world.clone();
    long.rules.window_ms = 1_000 * 86_400_000;
    assert!(long.plan().unwrap().is_nothing());
    assert_eq!(long.reads.take(), Reads { stamps: vec![seq(301), seq(2)], ..Reads::default() });
    let plan = world.plan().unwrap();
    assert_eq!(plan.choice.candidates.len(), 199);
    let reads = world.reads.take();
    assert!(reads.stamps.len() <= 12, "{:?}", reads.stamps);
    assert_eq!(reads.roots.len(), 301);
}

#[test]
fn the_beginning_of_a_root_tells_its_epoch_and_time() {
    let world = seven();
    let root = world.root(seq(5));
    let bytes = root.encode().unwrap();
    let stamp = RootStamp { restore_epoch: 0, created_at: root.created_at };
    assert!(bytes.len() > 1024);
    assert_eq!(RootStamp::of(&bytes[..1024]), Some(stamp));
    assert_eq!(RootStamp::of(&bytes[..130]), Some(stamp));
    assert_eq!(RootStamp::of(&bytes), Some(stamp));
    for cut in 0..60 {
        assert_eq!(RootStamp::of(&bytes[..cut]), None);
    }
    assert_eq!(RootStamp::of(b"[1]"), None);
}

#[test]
fn what_expiries_and_restores_write_is_as_the_schemas_say() {
    let validator = |name: &str| {
        let path = format!("{}/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
        jsonschema::validator_for(&serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).unwrap()
    };
    let (header, line) = (validator("segment-header"), validator("segment-line"));
    let (history, catalog, root) = (validator("history"), validator("catalog"), validator("root"));
    let mut world = seven();
    world.expire().unwrap();
    world.store.objects.remove(&layout::root(seq(7)));
    world.store.put(&layout::root(seq(7)), b"{}".to_vec()).unwrap();
    world.seal_on(seq(6));
    world.restore(seq(6), &[7]).unwrap();
    let mut seen = 0;
    for path in world.store.segments() {
        let text = String::from_utf8(world.store.get(&path).unwrap().to_vec()).unwrap();
        for (n, document) in text.lines().enumerate() {
            let document = serde_json::from_str(document).unwrap();
            let schema = if n == 0 { &header } else { &line };
            schema.validate(&document).unwrap_or_else(|error| panic!("{path}: {error}"));
            seen += 1;
        }
    }
    assert_eq!(seen, 7, "two segments of two lines, and one of a version that could not be read");
    for (schema, path) in
        [(history, layout::HISTORY.to_owned()), (catalog, layout::CATALOG.to_owned()), (root, layout::root(seq(7)))]
    {
        let document = serde_json::from_slice(world.store.get(&path).unwrap()).unwrap();
        schema.validate(&document).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}
