//! Releases and folds: what can go in does, the rest is refused and told (*catalog* §6.4, §11.2, D20, D27).

use super::*;

fn due(n: u64, artefacts: &[(&str, &str, Option<&str>)], p: &str, previous: Option<u64>) -> Record {
    Record { release_at: Some(noon()), ..holds(record(p, n, previous), artefacts) }
}

fn due_structure(n: u64, artefacts: &[(&str, &str, Option<&str>)], previous: Option<u64>) -> Record {
    Record { release_at: Some(noon()), ..structure("s", n, previous, artefacts) }
}

/// A world with embargo on, and these editions live.
fn live(records: Vec<Record>) -> World {
    let mut world = World::new(false);
    for record in records {
        world.publish(Record { release_at: None, ..record });
    }
    world.act(&Operation::Embargo(true));
    world
}

const DUE: Operation = Operation::Release(Release::Due);

fn codes(refused: &[RefusedEdition]) -> Vec<(&str, &str)> {
    refused.iter().map(|refused| (refused.product_id.as_str(), refused.code.as_str())).collect()
}

#[test]
fn what_is_due_goes_live_in_one_version_and_what_is_not_stays() {
    let mut world = live(vec![record("p", 1, None)]);
    world.publish(due(2, &[], "p", Some(1)));
    world.publish(due(3, &[], "q", None));
    world.publish(Record { release_at: Some(noon().plus_ms(3_600_000)), ..record("r", 4, None) });
    world.publish(record("t", 5, None));
    let seq = world.root.seq;
    assert_eq!(world.act(&DUE), []);
    assert_eq!(world.root.seq, seq.next());
    assert_eq!(world.root.event.kind, EventKind::Release);
    let states = [("p", 1), ("p", 2), ("q", 3), ("r", 4), ("t", 5)].map(|(p, n)| world.state(p, n).unwrap());
    use EntryState::{Embargoed, Live, Superseded};
    assert_eq!(states, [Superseded, Live, Live, Embargoed, Embargoed]);
    let entry = world.leaves[&product("q")].entry(&edition(3)).unwrap().clone();
    assert_eq!((entry.release_at, entry.state_changed_at), (None, world.root.created_at));
    assert_eq!(world.is_done(&DUE), Done::default(), "nothing is left");
    // A time that is null is never due; a person names the product.
    world.act(&release(&["r", "t"]));
    assert_eq!(world.state("t", 5), Some(Live));
    let editions = Operation::Release(Release::Editions(one("t", 5)));
    assert_eq!(world.is_done(&editions).mark, Some(Mark::Live));
}

#[test]
fn due_is_by_the_clock_of_the_store_and_not_by_the_time_of_the_version() {
    let mut world = live(vec![]);
    world.publish(Record { release_at: Some(noon().plus_ms(60_000)), ..record("p", 1, None) });
    // The base version is ahead of the clock, so the new version's time is later than now.
    world.root.created_at = noon().plus_ms(120_000);
    world.now = noon().plus_ms(59_999);
    assert_eq!(world.is_done(&DUE), Done::default());
    world.now = noon().plus_ms(60_000);
    world.act(&DUE);
    assert_eq!(world.state("p", 1), Some(EntryState::Live));
}

#[test]
fn products_that_share_a_changed_artefact_are_released_together_and_refused_apart() {
    let old = |p: &str, n: u64| holds(record(p, n, None), &[("urn:x", "f1", None)]);
    let world = || live(vec![old("p", 1), old("q", 2), old("r", 3)]);
    let new = |p: &str, n: u64, previous: u64| due(n, &[("urn:x", "f2", None)], p, Some(previous));

    let mut all = world();
    for (p, n) in [("p", 1), ("q", 2), ("r", 3)] {
        all.publish(new(p, n + 10, n));
    }
    assert_eq!(all.act(&DUE), []);
    assert_eq!(["p", "q", "r"].map(|p| all.leaves[&product(p)].live().count()), [1, 1, 1]);

    // One of the group is not due, so the group is refused; who has nothing to do with it is released.
    let mut two = world();
    two.publish(new("p", 11, 1));
    two.publish(new("q", 12, 2));
    two.publish(due(14, &[("urn:y", "g1", None)], "t", None));
    let refused = two.act(&DUE);
    let differs = "catalog.shared_artefact_differs";
    assert_eq!(codes(&refused), [("p", differs), ("q", differs)]);
    assert!(refused[0].message.contains(edition(3).as_str()), "{}", refused[0].message);
    assert_eq!(two.state("t", 14), Some(EntryState::Live));
    assert_eq!(two.state("p", 11), Some(EntryState::Embargoed));
    assert_eq!(refused_in(&two.root), refused, "persisted with the version");
    // Asked for by name, one alone is refused, and nothing of the rest is released either.
    assert_eq!(two.no(&release(&["p"])).code(), differs);
    let seq = two.root.seq;
    assert_eq!(two.is_done(&DUE).refused, refused, "the same refusals are not written again");
    assert_eq!(two.root.seq, seq);
    // And once the third is there, all of them go.
    two.publish(new("r", 13, 3));
    assert_eq!(two.act(&DUE), []);
    assert_eq!(two.state("r", 13), Some(EntryState::Live));
}

#[test]
fn refusing_one_member_refuses_the_group_to_the_fixpoint() {
    // p and q share x, q and r share y, r and t share z: r's structures are unknown, so the whole chain is refused.
    let old = |p: &str, n: u64, urns: &[&str]| {
        let artefacts: Vec<_> = urns.iter().map(|urn| (*urn, "f1", None)).collect();
        holds(record(p, n, None), &artefacts)
    };
    let mut world = live(vec![
        old("p", 1, &["urn:x"]),
        old("q", 2, &["urn:x", "urn:y"]),
        old("r", 3, &["urn:y", "urn:z"]),
        old("t", 4, &["urn:z"]),
        old("u", 5, &["urn:w"]),
    ]);
    let new = |p: &str, n: u64, urns: &[&str]| {
        let artefacts: Vec<_> = urns.iter().map(|urn| (*urn, "f2", None)).collect();
        due(n + 10, &artefacts, p, Some(n))
    };
    world.publish(new("p", 1, &["urn:x"]));
    world.publish(new("q", 2, &["urn:x", "urn:y"]));
    world.publish(new("r", 3, &["urn:y", "urn:z"]));
    world.publish(new("t", 4, &["urn:z"]));
    world.publish(new("u", 5, &["urn:w"]));
    world.sealed.remove(&edition(13));
    let refused = world.act(&DUE);
    let differs = "catalog.shared_artefact_differs";
    assert_eq!(codes(&refused), [("p", differs), ("q", differs), ("r", "catalog.manifest_missing"), ("t", differs)]);
    assert_eq!(world.state("u", 15), Some(EntryState::Live));
}

#[test]
fn who_only_stands_in_the_way_of_a_refused_edition_is_released() {
    let old = |p: &str, n: u64| holds(record(p, n, None), &[("urn:x", "f1", None)]);
    let mut world = live(vec![old("p", 1), old("q", 2), old("r", 3)]);
    // p changes x alone; q is released with the x of now.
    world.publish(due(11, &[("urn:x", "f2", None)], "p", Some(1)));
    world.publish(due(12, &[("urn:x", "f1", None)], "q", Some(2)));
    let refused = world.act(&DUE);
    assert_eq!(codes(&refused), [("p", "catalog.shared_artefact_differs")]);
    assert_eq!(world.state("q", 12), Some(EntryState::Live));
}

#[test]
fn structure_editions_come_first_and_a_refused_one_leaves_the_old_home() {
    let urn = "urn:cl";
    let part = |of: &'static str| [(urn, "cut", Some(of))];
    let start = || live(vec![structure("s", 1, None, &[(urn, "f1", None)]), holds(record("p", 2, None), &part("f1"))]);
    // The home is edited: what was cut from the new one goes live with it, what was cut from the old one is stale.
    let mut world = start();
    world.publish(due_structure(3, &[(urn, "f2", None)], Some(1)));
    world.publish(due(4, &part("f2"), "p", Some(2)));
    world.publish(due(5, &part("f1"), "q", None));
    let refused = world.act(&DUE);
    assert_eq!(codes(&refused), [("q", "catalog.not_as_at_home")]);
    assert_eq!((world.state("s", 3), world.state("p", 4)), (Some(EntryState::Live), Some(EntryState::Live)));
    // The edit is refused for a reason of its own: then the old home holds, and the other way round.
    let mut world = start();
    world.publish(due_structure(3, &[(urn, "f2", None)], Some(1)));
    world.publish(due(4, &part("f2"), "p", Some(2)));
    world.publish(due(5, &part("f1"), "q", None));
    world.sealed.remove(&edition(3));
    let refused = world.act(&DUE);
    assert_eq!(codes(&refused), [("p", "catalog.publish_order"), ("s", "catalog.manifest_missing")]);
    assert_eq!(world.state("q", 5), Some(EntryState::Live));
}

#[test]
fn an_artefact_may_move_from_one_home_to_another_in_one_version() {
    let mut world = live(vec![structure("s", 1, None, &[("urn:cl", "f1", None)])]);
    world.publish(due_structure(2, &[], Some(1)));
    let other = |n: u64| Record { release_at: Some(noon()), ..structure("t", n, None, &[("urn:cl", "f1", None)]) };
    world.publish(other(3));
    assert_eq!(world.act(&DUE), []);
    // And not before the old home gave it up.
    let mut world = live(vec![structure("s", 1, None, &[("urn:cl", "f1", None)])]);
    world.publish(other(3));
    assert_eq!(codes(&world.act(&DUE)), [("t", "catalog.two_homes")]);
}

#[test]
fn two_editions_for_one_place_are_both_refused_and_the_others_released() {
    let mut world = live(vec![record("p", 1, None)]);
    world.publish(due(2, &[], "p", Some(1)));
    world.publish(due(3, &[], "p", Some(1)));
    world.publish(due(4, &[], "q", None));
    let refused = world.act(&DUE);
    assert_eq!(codes(&refused), [("p", "catalog.two_pending"), ("p", "catalog.two_pending")]);
    assert!(refused[0].fix.contains(edition(3).as_str()), "{}", refused[0].fix);
    world.act(&supersede("p", 2, 3));
    assert_eq!(world.act(&DUE), []);
    assert_eq!((world.state("p", 2), world.state("p", 3)), (Some(EntryState::Withdrawn), Some(EntryState::Live)));
}

#[test]
fn editions_of_two_schema_versions_are_released_together() {
    let mut world = live(vec![at_schema(record("p", 1, None), "2.51")]);
    world.publish(at_schema(due(2, &[], "p", Some(1)), "2.51"));
    world.publish(at_schema(due(3, &[], "p", Some(1)), "2.52"));
    assert_eq!(world.act(&DUE), []);
    use EntryState::{Live, Superseded};
    assert_eq!([1, 2, 3].map(|n| world.state("p", n).unwrap()), [Superseded, Live, Live]);
}

#[test]
fn a_release_knows_the_canonical_form_of_what_it_releases() {
    let mut world = live(vec![]);
    world.publish(due(1, &[], "p", None));
    world.sealed.get_mut(&edition(1)).unwrap().content.canonical_form = "2".to_owned();
    assert_eq!(codes(&world.act(&DUE)), [("p", "catalog.canonical_form")]);
}

#[test]
fn a_release_after_a_rollback_names_the_withdrawn_base_and_the_fix() {
    let mut world = World::new(false);
    world.publish(record("p", 1, None));
    world.publish(record("p", 2, Some(1)));
    world.act(&Operation::Embargo(true));
    world.publish(due(3, &[], "p", Some(2)));
    world.act(&rollback(&world, "p", &[]));
    let refused = world.act(&DUE);
    assert_eq!(codes(&refused), [("p", "catalog.built_on_withdrawn")]);
    for n in [1, 2, 3] {
        assert!(refused[0].message.contains(edition(n).as_str()), "{}", refused[0].message);
    }
    assert!(refused[0].fix.contains("jobctl run withdraw") && refused[0].fix.contains("jobctl run publish"));
}

#[test]
fn a_fold_records_what_it_can_and_a_rerun_writes_nothing() {
    let mut world = live(vec![record("p", 1, None)]);
    let records = [
        Record { release_at: Some(noon()), ..record("p", 2, Some(1)) },
        record("q", 3, None),
        record("q", 4, None),
        record("r", 5, Some(9)),
    ];
    let inbox = fold(&mut world, &records);
    let refused = world.act(&inbox);
    let (two, fork) = ("catalog.two_pending", "catalog.not_fast_forward");
    assert_eq!(
        refused.iter().map(|r| (r.product_id.as_str(), r.code.as_str())).collect::<BTreeSet<_>>(),
        BTreeSet::from([("q", two), ("r", fork)])
    );
    assert_eq!(world.state("p", 2), Some(EntryState::Embargoed));
    assert_eq!(world.root.event.kind, EventKind::Seal);
    let folded = folded_in(&world.root);
    assert_eq!((folded.len(), folded[0].actor.as_str()), (1, "publisher@build"));
    let again = world.is_done(&inbox);
    assert_eq!(again.refused.len(), 3, "told again, and nothing was written");
    // Withdrawn or retired, it is never folded again.
    world.act(&cancel("p", 2));
    world.is_done(&inbox);
    world.act(&retire("p", 2));
    world.is_done(&inbox);
    // A later rival of a recorded one is refused; one that supersedes it is not.
    world.act(&Operation::Fold(vec![registration(&records[1])]));
    let rival = fold(&mut world, &[record("q", 6, None)]);
    assert_eq!(codes(&world.is_done(&rival).refused), [("q", two)]);
    let instead = fold(&mut world, &[Record { supersedes: Some(edition(3)), ..record("q", 7, None) }]);
    assert_eq!(world.act(&instead), []);
    assert_eq!((world.state("q", 3), world.state("q", 7)), (Some(EntryState::Withdrawn), Some(EntryState::Embargoed)));
}

#[test]
fn a_fold_takes_a_structure_edition_and_what_was_cut_from_it_together() {
    let mut world = live(vec![]);
    let records = [
        holds(record("p", 1, None), &[("urn:cl", "cut", Some("f1"))]),
        structure("s", 2, None, &[("urn:cl", "f1", None)]),
    ];
    let inbox = fold(&mut world, &records);
    assert_eq!(world.act(&inbox), []);
    let mut other = live(vec![]);
    let inbox = fold(&mut other, &records[..1]);
    assert_eq!(codes(&other.is_done(&inbox).refused), [("p", "catalog.partial_without_home")]);
}

#[test]
fn an_embargoed_edition_whose_manifest_is_lost_stops_nobody_else() {
    let mut world = live(vec![]);
    world.publish(due(1, &[("urn:x", "f1", None)], "p", None));
    world.publish(due(2, &[("urn:x", "f1", None)], "q", None));
    let mut old = world.leaves[&product("p")].as_ref().clone();
    old.editions[0].artefacts = None;
    world.leaves.insert(product("p"), Arc::new(old));
    world.sealed.remove(&edition(1));
    assert_eq!(codes(&world.act(&DUE)), [("p", "catalog.manifest_missing")]);
    assert_eq!(world.state("q", 2), Some(EntryState::Live));
}

#[test]
fn a_registration_on_another_base_is_no_rival_and_fails_alone() {
    let mut world = live(vec![record("p", 1, None)]);
    let right = record("p", 2, Some(1));
    let inbox = fold(&mut world, &[right.clone(), record("p", 3, None), right]);
    assert_eq!(codes(&world.act(&inbox)), [("p", "catalog.not_fast_forward")]);
    assert_eq!(world.state("p", 2), Some(EntryState::Embargoed));
}

#[test]
fn a_decision_asks_for_what_it_needs_and_for_no_more() {
    let mut world = live(vec![record("p", 1, None), record("q", 2, None)]);
    world.publish(due(3, &[], "p", Some(1)));
    let mut old = world.leaves[&product("q")].as_ref().clone();
    old.editions[0].artefacts = None;
    world.leaves.insert(product("q"), Arc::new(old));
    let asked = |operation: &Operation| needs(&world.base(), operation, &Facts::default(), world.now);
    let release = asked(&DUE);
    assert_eq!((release.manifests, release.records), (one("p", 3), one("q", 2)));
    assert_eq!(asked(&cancel("p", 3)), Needs::default());
    assert_eq!(asked(&Operation::Embargo(false)), Needs::default());
    assert_eq!(asked(&reinstate(&world, "p", 1)).files, one("p", 1));
    assert_eq!(asked(&retire("p", 1)), Needs::default(), "nobody cites a data edition");
    let back = Operation::Rollback(BTreeMap::from([(
        product("q"),
        vec![RollbackMove { from: edition(9), to: Some(edition(2)) }],
    )]));
    assert_eq!((asked(&back).manifests, asked(&back).records), (one("q", 2), one("q", 2)));
    assert_eq!(cancel("p", 3).leaves_needed(), LeavesNeeded::Of(BTreeSet::from([product("p")])));
    assert_eq!(Operation::Embargo(true).leaves_needed(), LeavesNeeded::None);
    assert_eq!(DUE.leaves_needed(), LeavesNeeded::WithEmbargoed);
}

#[test]
fn with_the_embargo_off_a_fold_makes_live() {
    let mut world = World::new(false);
    let inbox = fold(&mut world, &[record("p", 1, None), structure("s", 2, None, &[("urn:cl", "f1", None)])]);
    assert_eq!(world.act(&inbox), []);
    assert_eq!(world.state("p", 1), Some(EntryState::Live));
}
