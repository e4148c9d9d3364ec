//! Corrections and recoveries (D14, D16; *catalog* §6.7).

use super::*;

use EntryState::{Embargoed, Live, Superseded, Withdrawn};

fn seq(n: u64) -> Seq {
    Seq::new(n).unwrap()
}

#[test]
fn a_correction_brings_back_an_older_state_and_says_what_it_was_built_from() {
    let mut world = World::new(false);
    world.publish(record("p", 1, None));
    world.publish(record("q", 2, None));
    let good = world.root.seq;
    world.publish(record("p", 3, Some(1)));
    world.publish(record("q", 4, Some(2)));
    world.act(&set_lifecycle("p", Lifecycle::Final));
    let base = (world.root.seq, world.root_sha256.clone());
    world.act(&correct(good.get(), Some(&["p"])));
    // Built from the older version, and linked to the one before.
    assert_eq!(world.root.previous_inventory, Some(good));
    assert_eq!(world.root.previous_root_sha256, Some(Some(base.1)));
    assert_eq!(world.root.seq, base.0.next());
    assert_eq!(world.root.event.kind, EventKind::Correct);
    // The later edition is kept, and may be gone forward to.
    assert_eq!((world.state("p", 1), world.state("p", 3)), (Some(Live), Some(Superseded)));
    assert_eq!(world.leaves[&product("p")].lifecycle, Lifecycle::Revisable);
    assert_eq!((world.state("q", 2), world.state("q", 4)), (Some(Superseded), Some(Live)), "not asked for");
    assert_eq!(world.is_done(&correct(good.get(), Some(&["p"]))), Done::default());
    assert_eq!(world.no(&correct(good.get(), Some(&["nobody"]))).code(), "catalog.unknown_product");
}

#[test]
fn a_correction_takes_back_a_release_that_came_too_early() {
    let mut world = World::new(true);
    let tomorrow = noon().plus_ms(DAY_MS);
    world.publish(record("p", 1, None));
    world.act(&release(&["p"]));
    world.publish(Record { release_at: Some(tomorrow), ..record("p", 2, Some(1)) });
    let good = world.root.seq;
    world.act(&release(&["p"]));
    assert_eq!((world.state("p", 1), world.state("p", 2)), (Some(Superseded), Some(Live)));
    let later = world.now;
    world.act(&correct(good.get(), None));
    assert_eq!((world.state("p", 1), world.state("p", 2)), (Some(Live), Some(Embargoed)));
    assert_eq!(world.leaves[&product("p")].entry(&edition(2)).unwrap().release_at, Some(tomorrow));
    // Past its time it would be released at once: then it is never due by itself.
    world.act(&release(&["p"]));
    world.now = tomorrow;
    assert!(later < tomorrow);
    world.act(&correct(good.get(), None));
    assert_eq!(world.leaves[&product("p")].entry(&edition(2)).unwrap().release_at, None);
    assert_eq!(world.is_done(&Operation::Release(Release::Due)), Done::default());
}

#[test]
fn an_edition_that_is_due_stays_due_through_a_correction_of_something_else() {
    let mut world = World::new(true);
    world.publish(Record { release_at: Some(noon()), ..record("p", 1, None) });
    let good = world.root.seq;
    world.publish(record("p", 2, None));
    world.act(&cancel("p", 2));
    world.act(&reschedule("p", 1, None));
    world.act(&reschedule("p", 1, Some(noon())));
    world.act(&Operation::Describe(Map::new()));
    assert_eq!(world.is_done(&correct(good.get(), None)), Done::default());
    // Moved since, its old time has come: then a person says when.
    world.act(&reschedule("p", 1, Some(world.now.plus_ms(DAY_MS))));
    world.act(&correct(good.get(), None));
    assert_eq!(world.leaves[&product("p")].editions[0].release_at, None);
}

#[test]
fn what_was_withdrawn_or_retired_since_stays_so() {
    let mut world = World::new(false);
    for n in 1..=3 {
        world.publish(record("p", n, n.checked_sub(1).filter(|n| *n > 0)));
    }
    let good = world.root.seq;
    world.act(&rollback(&world, "p", &[2]));
    world.act(&retire("p", 1));
    let operation = correct(good.get(), None);
    // Edition 3 was live there and was taken back since; edition 2 was not live and would leave no head.
    assert_eq!(world.is_done(&operation), Done::default());
    assert_eq!([1, 2, 3].map(|n| world.state("p", n)), [None, Some(Live), Some(Withdrawn)]);
    // Brought back by a person after that, it keeps what the person gave it.
    world.act(&reinstate(&world, "p", 1));
    world.is_done(&operation);
    assert_eq!(world.state("p", 1), Some(Superseded));
    world.publish(record("p", 4, Some(2)));
    world.is_done(&operation);
    assert_eq!([2, 3, 4].map(|n| world.state("p", n)), [Some(Superseded), Some(Withdrawn), Some(Live)]);
}

#[test]
fn versions_that_nobody_read_have_to_be_confirmed_by_name() {
    let mut world = World::new(false);
    world.publish(record("p", 1, None));
    let good = world.root.seq;
    world.publish(record("p", 2, Some(1)));
    world.publish(record("q", 3, None));
    let mut operation = correct(good.get(), None);
    let mut facts = world.facts_for(&operation);
    facts.correction.since.insert(seq(3), None);
    facts.correction.since.remove(&seq(4));
    let plan = |operation: &Operation| plan(&world.base(), 0, operation, &facts, &by(), world.now);
    let refusal = plan(&operation).unwrap_err();
    assert_eq!(refusal.code(), "catalog.unread_versions");
    assert!(refusal.to_string().contains("3,4") && refusal.fix().contains("--confirm-unread 3,4"), "{refusal}");
    let Operation::Correct { confirmed_unread, .. } = &mut operation else { unreachable!() };
    confirmed_unread.insert(seq(3));
    assert!(plan(&operation).unwrap_err().to_string().contains("versions 4 after"));
    let Operation::Correct { confirmed_unread, .. } = &mut operation else { unreachable!() };
    confirmed_unread.insert(seq(4));
    assert!(matches!(plan(&operation).unwrap(), Decision::Write(_)));
}

#[test]
fn a_correction_of_everything_takes_the_description_and_never_turns_the_embargo_off() {
    let describe = |title: &str| Operation::Describe(Map::from_iter([("title".to_owned(), title.into())]));
    let mut world = World::new(false);
    world.act(&describe("good"));
    let good = world.root.seq;
    world.act(&describe("bad"));
    world.act(&Operation::Embargo(true));
    world.act(&correct(good.get(), None));
    assert_eq!(world.root.extensions["statcat"]["title"], "good");
    assert!(world.root.embargo);
    let mut world = World::new(true);
    let good = world.root.seq;
    world.act(&Operation::Embargo(false));
    world.act(&correct(good.get(), None));
    assert!(world.root.embargo);
}

#[test]
fn a_correction_keeps_the_rules_of_what_comes_in() {
    let mut world = World::new(false);
    world.publish(structure("s", 1, None, &[("urn:cl", "f1", None)]));
    world.publish(holds(record("p", 2, None), &[("urn:cl", "cut", Some("f1"))]));
    let good = world.root.seq;
    world.publish(structure("s", 3, Some(1), &[("urn:cl", "f2", None)]));
    world.publish(holds(record("p", 4, Some(2)), &[("urn:cl", "cut", Some("f2"))]));
    assert_eq!(world.no(&correct(good.get(), Some(&["p"]))).code(), "catalog.not_as_at_home");
    world.sealed.remove(&edition(2));
    assert_eq!(world.no(&correct(good.get(), None)).code(), "catalog.manifest_missing");
    world.seal(holds(record("p", 2, None), &[("urn:cl", "cut", Some("f1"))]));
    world.act(&correct(good.get(), None));
    assert_eq!((world.state("s", 1), world.state("p", 2)), (Some(Live), Some(Live)));
}

#[test]
fn a_damaged_head_may_go_and_nothing_else() {
    let damaged = b"{\"format_version\":\"1.2\",";
    let judge = |n: u64, last: u64, bytes: &[u8], after: &[(Seq, RootFound)]| {
        let facts = HeadFacts { last_valid: seq(last), base: None, bytes: Some(bytes), after, current: None };
        repair_head(seq(n), &facts, false)
    };
    let repair = judge(3, 2, damaged, &[(seq(4), RootFound::Invalid)]).unwrap();
    assert_eq!(repair, RepairHead { seq: seq(3), sha256: Sha256Hex::of(damaged), head: seq(2) });
    assert_eq!(judge(3, 2, b"", &[]).unwrap().sha256, Sha256Hex::of(b""), "an empty file");
    let mut world = World::new(false);
    world.publish(record("p", 1, None));
    let bytes = world.root.encode().unwrap();
    assert_eq!(RootFound::of(seq(2), Some(&bytes)), RootFound::Valid);
    // A sound root in the wrong place is damage.
    assert_eq!(RootFound::of(seq(3), Some(&bytes)), RootFound::Invalid);
    assert!(judge(3, 2, &bytes, &[]).is_ok());
    let newer = String::from_utf8(bytes).unwrap().replace("\"1.2\"", "\"3.0\"");
    assert_eq!(RootFound::of(seq(2), Some(newer.as_bytes())), RootFound::Newer(FormatVersion { major: 3, minor: 0 }));
    assert_eq!(RootFound::of(seq(2), None), RootFound::Absent);
}

#[test]
fn a_valid_root_that_does_not_follow_the_last_one_may_go_and_a_committed_one_only_by_a_persons_word() {
    let mut world = World::new(false);
    let (first, first_sha256) = (world.root.clone(), world.root_sha256.clone());
    world.publish(record("p", 1, None));
    let (sound, other) = (world.root.encode().unwrap(), Sha256Hex::of(b"other"));
    let judge = |base: &Sha256Hex, current: Option<&Current>, after: &[(Seq, RootFound)], confirmed: bool| {
        let base = Some((&first, base));
        let facts = HeadFacts { last_valid: seq(1), base, bytes: Some(&sound), after, current };
        repair_head(seq(2), &facts, confirmed).map(|repair| repair.seq).map_err(|refusal| refusal.code())
    };
    assert_eq!(judge(&first_sha256, None, &[], true), Err("catalog.head_valid"));
    assert_eq!(judge(&other, None, &[], false), Ok(seq(2)));
    let hint = |n: u64| Current { seq: seq(n), root_sha256: other.clone(), restore_epoch: 0 };
    let third = [(seq(3), RootFound::Invalid)];
    assert_eq!(judge(&other, Some(&hint(1)), &[], false), Ok(seq(2)), "CURRENT is behind");
    assert_eq!(judge(&other, Some(&hint(2)), &[], false), Err("catalog.head_committed"));
    assert_eq!(judge(&other, Some(&hint(3)), &third, false), Err("catalog.head_committed"));
    assert_eq!(judge(&other, Some(&hint(1 << 53)), &third, false), Ok(seq(2)), "D32: it names nothing");
    assert_eq!(judge(&other, Some(&hint(2)), &[], true), Ok(seq(2)));
    assert_eq!(judge(&first_sha256, Some(&hint(2)), &[], true), Err("catalog.head_valid"), "the word is no licence");
}

fn catalog() -> CatalogJson {
    CatalogJson::new("01a18e76-2bad-7480-abfe-2ba8a6889a45".parse().unwrap())
}

fn rebuild(remains: &Remains, records: &[Record], embargo: bool, lost: Option<u64>) -> Result<Rebuilt, Box<Refusal>> {
    let facts = Facts { manifests: records.iter().flat_map(|r| facts(r).manifests).collect(), ..Facts::default() };
    let asked = RebuildAsked { embargo, lost_through: lost };
    rebuild_inventory(&catalog(), remains, records, asked, &facts, &by(), noon())
}

#[test]
fn an_inventory_is_rebuilt_from_manifests_only_when_somebody_vouches_for_its_history() {
    let records = [
        record("p", 2, Some(1)),
        record("p", 1, None),
        at_schema(record("q", 3, None), "2.51"),
        record("q", 4, Some(3)),
        structure("s", 5, None, &[("urn:cl", "f1", None)]),
    ];
    let current = Current { seq: seq(42), root_sha256: Sha256Hex::of(b""), restore_epoch: 1 };
    let remains = Remains { current: Some(current), ..Remains::default() };
    for lost in [None, Some(41)] {
        let refusal = rebuild(&remains, &records, false, lost).unwrap_err();
        assert_eq!(refusal.code(), "catalog.history_lost");
        assert!(refusal.to_string().contains("versions 1 to 42"), "{refusal}");
        assert!(refusal.fix().contains("--lost-through 42"), "{}", refusal.fix());
    }
    let rebuilt = rebuild(&remains, &records, false, Some(42)).unwrap();
    assert_eq!(rebuilt.restore_epoch, 2, "so that readers take a lower number");
    let root = &rebuilt.version.root;
    assert_eq!((root.seq, root.restore_epoch, root.event.kind.as_str()), (Seq::FIRST, 2, "restore"));
    let mut world = World::new(false);
    world.apply(rebuilt.version);
    let states = [("p", 1), ("p", 2), ("q", 3), ("q", 4), ("s", 5)].map(|(p, n)| world.state(p, n).unwrap());
    assert_eq!(states, [Superseded, Live, Live, Live, Live]);
    let mut replay = Replay::default();
    replay.apply(Seq::FIRST, world.root.changes.as_ref().unwrap()).unwrap();
    assert_eq!(replay, Replay::at(&world.root, &world.leaves));
    // With embargo on nobody can tell whether the last edition was released.
    let rebuilt = rebuild(&remains, &records, true, Some(42)).unwrap();
    let mut world = World::new(true);
    world.apply(rebuilt.version);
    assert_eq!(
        [("p", 1), ("p", 2), ("q", 4), ("s", 5)].map(|(p, n)| world.state(p, n).unwrap()),
        [Live, Embargoed, Embargoed, Embargoed]
    );
    assert!(world.leaves.values().flat_map(|leaf| &leaf.editions).all(|entry| entry.release_at.is_none()));
}

#[test]
fn a_rebuild_is_held_to_every_rule() {
    let missing = rebuild(&Remains::default(), &[record("p", 2, Some(1))], false, Some(0)).unwrap_err();
    assert_eq!(missing.code(), "catalog.chain_broken", "a retired edition left no manifest");
    let shared =
        [holds(record("p", 1, None), &[("urn:x", "f1", None)]), holds(record("q", 2, None), &[("urn:x", "f2", None)])];
    let shared = rebuild(&Remains::default(), &shared, false, Some(0)).unwrap_err();
    assert_eq!(shared.code(), "catalog.shared_artefact_differs");
    let asked = RebuildAsked { embargo: false, lost_through: Some(0) };
    let sealed = [record("p", 1, None)];
    let unread = rebuild_inventory(&catalog(), &Remains::default(), &sealed, asked, &Facts::default(), &by(), noon());
    assert_eq!(unread.unwrap_err().code(), "catalog.manifest_missing");
    let paths = ["inventory/HISTORY", "inventory/leaves/x.json", "history/0/x.jsonl"].map(ToOwned::to_owned);
    assert_eq!(tells_history(&BTreeSet::from(paths)), ["history/0/x.jsonl", "inventory/HISTORY"]);
    let expires = CatalogJson {
        format_version: FormatVersion { major: 2, minor: 0 },
        history: Some(CatalogHistory { since_seq: Seq::FIRST }),
        ..catalog()
    };
    let refusal =
        rebuild_inventory(&expires, &Remains::default(), &[], asked, &Facts::default(), &by(), noon()).unwrap_err();
    assert_eq!(refusal.code(), "catalog.inventory_remains");
}
