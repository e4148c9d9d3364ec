//! The operations of a release team, one by one (*catalog* §6.4; D21, D22, D27, D30).

use super::*;

use EntryState::{Embargoed, Live, Superseded, Withdrawn};

fn published(world: &mut World, p: &str, n: u64, previous: Option<u64>, schema: &str) {
    world.publish(at_schema(record(p, n, previous), schema));
}

#[test]
fn a_rollback_withdraws_the_live_edition_and_makes_an_earlier_one_live() {
    let mut world = World::new(false);
    for n in 1..=3 {
        world.publish(record("p", n, n.checked_sub(1).filter(|n| *n > 0)));
    }
    world.publish(record("q", 9, None));
    let q = world.root.products[&product("q")].clone();
    let back = rollback(&world, "p", &[]);
    assert_eq!(back, moves("p", &[(3, Some(2))]), "the edition that the live one was built on");
    world.act(&back);
    assert_eq!([1, 2, 3].map(|n| world.state("p", n).unwrap()), [Superseded, Live, Withdrawn]);
    assert_eq!(world.root.event.kind, EventKind::Rollback);
    assert_eq!(world.root.products[&product("q")], q, "no other product moves");
    // A retry does not take back one more.
    let refusal = world.no(&back);
    assert_eq!(refusal.code(), "catalog.live_changed");
    assert!(refusal.to_string().contains(edition(2).as_str()) && refusal.to_string().contains(edition(3).as_str()));
    // Forward again, to an edition that a person names.
    world.act(&rollback(&world, "p", &[1]));
    assert_eq!([1, 2, 3].map(|n| world.state("p", n).unwrap()), [Live, Withdrawn, Withdrawn]);
    assert_eq!(
        rollback_moves(&world.leaves[&product("p")], &ids(&[])).unwrap_err().code(),
        "catalog.nothing_to_roll_back_to"
    );
    for (to, code) in [(3, "catalog.wrong_state"), (9, "catalog.unknown_edition")] {
        assert_eq!(rollback_moves(&world.leaves[&product("p")], &ids(&[to])).unwrap_err().code(), code);
    }
}

#[test]
fn without_its_base_a_rollback_goes_to_the_edition_that_was_superseded_last() {
    let mut world = World::new(false);
    for n in 1..=4 {
        world.publish(record("p", n, n.checked_sub(1).filter(|n| *n > 0)));
    }
    // 4 back to 1; then 5 on 1, which supersedes it.
    world.act(&rollback(&world, "p", &[1]));
    world.publish(record("p", 5, Some(1)));
    world.act(&retire("p", 1));
    assert_eq!(rollback(&world, "p", &[]), moves("p", &[(5, Some(3))]));
    // With its base it goes there, though another one was superseded later, by coming back.
    world.act(&reinstate(&world, "p", 1));
    world.act(&retire("p", 2));
    world.act(&reinstate(&world, "p", 2));
    assert_eq!(rollback(&world, "p", &[]), moves("p", &[(5, Some(1))]));
}

#[test]
fn products_that_changed_together_go_back_together() {
    let mut world = World::new(false);
    world.publish(structure("s", 1, None, &[("urn:cl", "f1", None)]));
    world.publish(holds(record("p", 2, None), &[("urn:cl", "cut", Some("f1")), ("urn:x", "g1", None)]));
    world.publish(holds(record("q", 3, None), &[("urn:x", "g1", None)]));
    world.act(&Operation::Embargo(true));
    world.publish(structure("s", 4, Some(1), &[("urn:cl", "f2", None)]));
    world.publish(holds(record("p", 5, Some(2)), &[("urn:cl", "cut", Some("f2")), ("urn:x", "g2", None)]));
    world.publish(holds(record("q", 6, Some(3)), &[("urn:x", "g2", None)]));
    world.act(&release(&["s", "p", "q"]));
    let refusal = world.no(&rollback(&world, "q", &[]));
    assert_eq!(refusal.code(), "catalog.shared_artefact_differs");
    let all = ["s", "p", "q"].map(|p| {
        let Operation::Rollback(moves) = rollback(&world, p, &[]) else { unreachable!() };
        moves
    });
    world.act(&Operation::Rollback(all.into_iter().flatten().collect()));
    assert_eq!([("s", 1), ("p", 2), ("q", 3)].map(|(p, n)| world.state(p, n).unwrap()), [Live; 3]);
    assert_eq!([("s", 4), ("p", 5), ("q", 6)].map(|(p, n)| world.state(p, n).unwrap()), [Withdrawn; 3]);
}

#[test]
fn a_rollback_takes_back_every_live_schema_version() {
    let mut world = World::new(false);
    published(&mut world, "p", 1, None, "2.51");
    published(&mut world, "p", 2, Some(1), "2.51");
    published(&mut world, "p", 3, Some(2), "2.52");
    assert_eq!([2, 3].map(|n| world.state("p", n).unwrap()), [Live, Live]);
    let back = rollback(&world, "p", &[]);
    assert_eq!(back, moves("p", &[(2, Some(1)), (3, None)]));
    assert_eq!(world.no(&moves("p", &[(2, Some(1))])).code(), "catalog.rollback_incomplete");
    world.act(&back);
    assert_eq!([1, 2, 3].map(|n| world.state("p", n).unwrap()), [Live, Withdrawn, Withdrawn]);
    let to = rollback_moves(&world.leaves[&product("p")], &ids(&[1])).unwrap_err();
    assert_eq!(to.code(), "catalog.wrong_state");
}

#[test]
fn a_rollback_keeps_the_rules_of_what_comes_in() {
    let mut world = World::new(false);
    world.publish(structure("s", 1, None, &[("urn:cl", "f1", None)]));
    world.publish(holds(record("p", 2, None), &[("urn:cl", "cut", Some("f1"))]));
    world.publish(structure("s", 3, Some(1), &[("urn:cl", "f2", None)]));
    world.publish(holds(record("p", 4, Some(2)), &[("urn:cl", "cut", Some("f2"))]));
    let back = rollback(&world, "p", &[]);
    assert_eq!(world.no(&back).code(), "catalog.not_as_at_home", "edition 2 is stale");
    // The structure product itself goes back: its data editions are stale then, and stay live.
    world.act(&rollback(&world, "s", &[]));
    assert_eq!(world.state("p", 4), Some(Live));
    world.act(&back);
    assert_eq!(world.state("p", 2), Some(Live));
    // And an edition whose manifest is gone is nothing to go back to.
    let mut world = World::new(false);
    world.publish(record("p", 1, None));
    world.publish(record("p", 2, Some(1)));
    world.sealed.remove(&edition(1));
    assert_eq!(world.no(&moves("p", &[(2, Some(1))])).code(), "catalog.manifest_missing");
}

#[test]
fn what_was_built_on_a_withdrawn_edition_is_refused_with_the_fix() {
    let mut world = World::new(false);
    world.publish(record("p", 1, None));
    world.publish(record("p", 2, Some(1)));
    world.act(&rollback(&world, "p", &[]));
    let operation = world.seal(record("p", 3, Some(2)));
    let refusal = world.no(&operation);
    assert_eq!(refusal.code(), "catalog.built_on_withdrawn");
    for n in [1, 2, 3] {
        assert!(refusal.to_string().contains(edition(n).as_str()), "{refusal}");
    }
    assert!(refusal.fix().contains("discard") && refusal.fix().contains("jobctl run publish --product p"));
    // Through a tombstone it is an edition again, and something to go forward to.
    world.act(&retire("p", 2));
    world.act(&reinstate(&world, "p", 2));
    assert_eq!(world.state("p", 2), Some(Superseded));
    assert_eq!(world.root.event.kind, EventKind::Reinstate);
    world.act(&rollback(&world, "p", &[2]));
    assert_eq!([1, 2].map(|n| world.state("p", n).unwrap()), [Withdrawn, Live]);
    world.publish(record("p", 4, Some(2)));
}

#[test]
fn an_embargoed_edition_is_cancelled_and_stays_so() {
    let mut world = World::new(true);
    world.publish(Record { release_at: Some(noon()), ..record("p", 1, None) });
    world.act(&cancel("p", 1));
    assert_eq!(world.state("p", 1), Some(Withdrawn));
    assert_eq!(world.leaves[&product("p")].editions[0].release_at, None);
    assert_eq!(world.root.event.kind, EventKind::Withdraw);
    assert_eq!(world.is_done(&cancel("p", 1)).mark, Some(Mark::Withdrawn));
    assert_eq!(world.is_done(&Operation::Release(Release::Due)), Done::default());
    let again = Operation::Record(Box::new(record("p", 1, None)));
    assert_eq!(world.is_done(&again).mark, Some(Mark::Withdrawn), "never recorded again");
}

#[test]
fn withdrawing_what_is_live_leaves_no_head() {
    let mut world = World::new(false);
    published(&mut world, "p", 1, None, "2.51");
    published(&mut world, "p", 2, Some(1), "2.52");
    assert_eq!(world.no(&withdraw("p", &[2])).code(), "catalog.live_changed");
    world.act(&withdraw("p", &[1, 2]));
    assert_eq!(world.leaves[&product("p")].live().count(), 0);
    assert_eq!(world.is_done(&withdraw("p", &[1, 2])).mark, Some(Mark::Withdrawn));
    // The next edition starts anew: nothing is live that it could be built on.
    world.publish(record("p", 3, None));
    assert_eq!(world.state("p", 3), Some(Live));
}

#[test]
fn retiring_waits_for_its_window_and_never_takes_what_is_cited() {
    let urn = "urn:cl";
    let mut world = World::new(false);
    world.publish(structure("s", 1, None, &[(urn, "f1", None)]));
    world.publish(holds(record("p", 2, None), &[(urn, "cut", Some("f1"))]));
    world.publish(structure("s", 3, Some(1), &[(urn, "f2", None)]));
    world.publish(record("q", 4, None));
    world.publish(record("q", 5, Some(4)));
    world.publish(record("q", 6, Some(5)));
    let past = Operation::Retire { editions: one("q", 4), before_window: false };
    let since = world.leaves[&product("q")].entry(&edition(4)).unwrap().state_changed_at;
    world.now = since.plus_ms(world.retention.retire_ms() - 1);
    assert_eq!(world.no(&past).code(), "catalog.inside_window");
    world.now = since.plus_ms(world.retention.retire_ms());
    // What a prune would take: not the last superseded one, not the cited one.
    let facts = Facts::default();
    let later = world.now.plus_ms(DAY_MS);
    assert_eq!(retirable(&world.base(), &facts, &world.retention, later).unwrap(), one("q", 4));
    world.act(&past);
    assert_eq!(world.state("q", 4), None);
    assert_eq!(world.root.tombstone(&product("q"), &edition(4)).unwrap().retired_at, world.root.created_at);
    assert_eq!(world.is_done(&past).mark, Some(Mark::Tombstone));
    for (p, n, code) in
        [("q", 6, "catalog.wrong_state"), ("s", 1, "catalog.cited"), ("q", 9, "catalog.unknown_edition")]
    {
        assert_eq!(world.no(&retire(p, n)).code(), code);
    }
    // All of them, or none.
    let both = Operation::Retire { editions: &one("q", 5) | &one("s", 1), before_window: true };
    assert_eq!(world.no(&both).code(), "catalog.cited");
    // Another edition that holds the same artefact serves as well.
    world.publish(structure("s", 7, Some(3), &[(urn, "f1", None)]));
    world.act(&both);
    assert_eq!(world.root.retired.len(), 3);
    assert_eq!(world.root.event.kind, EventKind::Retire);
}

#[test]
fn a_tombstone_comes_back_whole_and_in_time_only() {
    let mut world = World::new(false);
    world.publish(holds(record("p", 1, None), &[("urn:x", "f1", None)]));
    world.publish(record("p", 2, Some(1)));
    world.act(&retire("p", 1));
    let retired_at = world.root.created_at;
    world.broken.insert(edition(1));
    assert_eq!(world.no(&reinstate(&world, "p", 1)).code(), "catalog.not_verified");
    world.broken.clear();
    let back = reinstate(&world, "p", 1);
    // A day before GC may delete its bytes.
    let closes = retired_at.plus_ms(world.retention.gc_ms() - DAY_MS);
    world.now = closes;
    assert_eq!(world.no(&back).code(), "catalog.window_closes");
    world.now = closes.plus_ms(-1);
    world.act(&back);
    let entry = world.leaves[&product("p")].entry(&edition(1)).unwrap().clone();
    assert_eq!(entry.state, Superseded);
    assert_eq!(entry.dataflows.unwrap(), ["urn:a", "urn:b"]);
    assert_eq!(entry.pull_bytes, Some(10));
    assert_eq!(entry.artefacts.unwrap().len(), 1);
    assert_eq!(world.root.retired, []);
    let item = &world.root.changes.as_ref().unwrap()[0].entries[0];
    assert_eq!((item.from, item.to), (Some(Mark::Tombstone), Some(Mark::Superseded)));
    assert_eq!(world.is_done(&back).mark, Some(Mark::Superseded));
    assert_eq!(world.no(&reinstate(&world, "p", 2)).code(), "catalog.wrong_state");
    assert_eq!(world.no(&reinstate(&world, "p", 8)).code(), "catalog.unknown_edition");
}

#[test]
fn a_time_of_release_is_moved_and_the_edition_keeps_its_state() {
    let mut world = World::new(true);
    world.publish(record("p", 1, None));
    let since = world.root.created_at;
    let at = Some(noon().plus_ms(86_400_000));
    world.act(&reschedule("p", 1, at));
    let entry = &world.leaves[&product("p")].editions[0];
    assert_eq!((entry.state, entry.state_changed_at, entry.release_at), (Embargoed, since, at));
    assert_eq!(world.root.event.kind, EventKind::EmbargoChange);
    let item = &world.root.changes.as_ref().unwrap()[0].entries[0];
    assert_eq!((item.from, item.to), (Some(Mark::Embargoed), Some(Mark::Embargoed)));
    world.is_done(&reschedule("p", 1, at));
    world.act(&reschedule("p", 1, None));
    world.act(&release(&["p"]));
    assert_eq!(world.no(&reschedule("p", 1, at)).code(), "catalog.wrong_state");
}

#[test]
fn an_old_schema_is_superseded_where_a_newer_one_is_live() {
    let mut world = World::new(false);
    for (p, old, new) in [("p", 1, 2), ("q", 3, 4)] {
        published(&mut world, p, old, None, "2.51");
        published(&mut world, p, new, Some(old), "2.52");
    }
    published(&mut world, "r", 5, None, "2.51");
    assert_eq!(world.no(&supersede_schema("2.51", Some(&["p", "r"]))).code(), "catalog.no_newer_schema");
    let refused = world.act(&supersede_schema("2.51", None));
    assert_eq!(refused.len(), 1);
    assert_eq!((refused[0].product_id.as_str(), refused[0].code.as_str()), ("r", "catalog.no_newer_schema"));
    assert_eq!([("p", 1), ("q", 3), ("r", 5)].map(|(p, n)| world.state(p, n).unwrap()), [Superseded, Superseded, Live]);
    assert_eq!(world.root.event.kind, EventKind::Release);
    world.is_done(&supersede_schema("2.51", Some(&["p", "q"])));
    // Nothing newer than the newest.
    assert_eq!(world.no(&supersede_schema("2.52", Some(&["p"]))).code(), "catalog.no_newer_schema");
    published(&mut world, "p", 6, Some(2), "2.53");
    assert_eq!(world.no(&supersede_schema("2.53", Some(&["p"]))).code(), "catalog.no_newer_schema");
    // And it may be rolled back to no more, since nothing is live at it.
    let refusal = rollback_moves(&world.leaves[&product("p")], &ids(&[1])).unwrap_err();
    assert_eq!(refusal.code(), "catalog.rollback_schema");
}

#[test]
fn a_lifecycle_changes_without_an_entry() {
    let mut world = World::new(false);
    world.publish(record("p", 1, None));
    world.act(&set_lifecycle("p", Lifecycle::Final));
    let change = world.root.changes.as_ref().unwrap()[0].clone();
    assert_eq!(change.entries, []);
    assert_ne!(change.leaf_sha256.from, change.leaf_sha256.to);
    assert_eq!(world.root.event.kind, EventKind::Seal);
    world.is_done(&set_lifecycle("p", Lifecycle::Final));
    let new = world.seal(record("p", 2, Some(1)));
    assert_eq!(world.no(&new).code(), "catalog.final_changed");
    world.act(&set_lifecycle("p", Lifecycle::Revisable));
    world.act(&new);
}

#[test]
fn a_final_edition_that_waited_is_released() {
    let mut world = World::new(false);
    world.publish(record("p", 1, None));
    world.act(&Operation::Embargo(true));
    world.publish(Record { lifecycle: Some(Lifecycle::Final), ..record("p", 2, Some(1)) });
    assert_eq!(world.leaves[&product("p")].lifecycle, Lifecycle::Final);
    world.act(&release(&["p"]));
    assert_eq!(world.state("p", 2), Some(Live));
}

#[test]
fn turning_the_embargo_off_releases_nothing_and_on_stops_a_stale_release() {
    let mut world = World::new(true);
    world.publish(Record { release_at: Some(noon()), ..record("p", 1, None) });
    world.act(&Operation::Embargo(false));
    assert_eq!(world.root.event.kind, EventKind::EmbargoChange);
    assert_eq!(world.root.changes, Some(vec![]));
    assert!(!world.root.embargo);
    assert_eq!(world.state("p", 1), Some(Embargoed));
    world.is_done(&Operation::Embargo(false));
    // A record that was to be live: somebody turns the embargo on before it, and it waits.
    let stale = world.seal(record("q", 2, None));
    assert!(matches!(world.decide(&stale), Ok(Decision::Write(version)) if version.mark == Some(Mark::Live)));
    world.act(&Operation::Embargo(true));
    world.act(&stale);
    assert_eq!(world.state("q", 2), Some(Embargoed));
    world.act(&Operation::Release(Release::Due));
    assert_eq!(world.state("p", 1), Some(Live));
}
