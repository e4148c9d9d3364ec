//! What versions tell (*history*, "What a reader can answer"), and what `verify` finds in them.

use super::*;
use serde_json::json;

/// Two products over six versions, with an embargo, a release, a rollback and a retirement.
fn story() -> World {
    let mut world = World::new(false);
    world.publish(record("p", 1, None));
    world.publish(record("p", 2, Some(1)));
    world.act(&Operation::Embargo(true));
    world.publish(Record { release_at: Some(noon().plus_ms(3_600_000)), ..record("q", 3, None) });
    world.publish(record("r", 4, None));
    world.act(&rollback(&world, "p", &[]));
    world.act(&retire("p", 2));
    world.act(&set_lifecycle("p", Lifecycle::Final));
    world
}

#[test]
fn a_version_says_what_changed_who_did_it_and_why() {
    let world = story();
    let summary = VersionSummary::of(&world.past.last().unwrap().0);
    assert_eq!((summary.event.kind.as_str(), summary.event.actor.as_str()), ("retire", "tester@here"));
    assert_eq!(summary.event.reason, "because");
    let item = &summary.changes.as_ref().unwrap()[0].entries[0];
    assert_eq!(
        (item.from, item.to, item.edition_id.clone()),
        (Some(Mark::Withdrawn), Some(Mark::Tombstone), edition(2))
    );
    assert_eq!(serde_json::to_value(&summary).unwrap()["changes"][0]["product_id"], "p");
}

#[test]
fn two_versions_are_compared_near_and_far_and_backwards() {
    let world = story();
    let (first, _, first_leaves) = &world.past[2];
    let from = VersionView { root: first, leaves: first_leaves };
    let to = VersionView { root: &world.root, leaves: &world.leaves };
    let forward = diff(&from, &to).unwrap();
    let items = |diff: &Diff| -> Vec<_> {
        let entries = diff.changes.iter().flat_map(|change| &change.entries);
        entries.map(|item| (item.edition_id.clone(), item.from, item.to)).collect()
    };
    assert_eq!(
        items(&forward),
        [
            (edition(1), Some(Mark::Superseded), Some(Mark::Live)),
            (edition(2), Some(Mark::Live), Some(Mark::Tombstone)),
            (edition(3), None, Some(Mark::Embargoed)),
            (edition(4), None, Some(Mark::Embargoed)),
        ]
    );
    assert_eq!(forward.embargo, Some(true));
    assert!(!forward.description);
    let lifecycles: Vec<_> = forward.lifecycles.iter().map(|change| (change.product_id.as_str(), change.to)).collect();
    assert_eq!(lifecycles, [("p", Some(Lifecycle::Final))], "a product that is new has changed nothing");
    let backward = diff(&to, &from).unwrap();
    let mirrored: Vec<_> = items(&backward).into_iter().map(|(edition, from, to)| (edition, to, from)).collect();
    assert_eq!(mirrored, items(&forward));
    assert_eq!(diff(&to, &to).unwrap().changes, []);
    assert_eq!(diff(&from, &VersionView { leaves: &BTreeMap::new(), ..to }).unwrap_err().product, product("p"));
}

#[test]
fn a_product_shows_every_edition_and_its_heads() {
    let world = story();
    let view = product_view(&world.root, &world.leaves[&product("p")]);
    let marks: Vec<_> = view.editions.iter().map(|e| (e.edition_id.clone(), e.mark)).collect();
    assert_eq!(marks, [(edition(1), Mark::Live), (edition(2), Mark::Tombstone)]);
    assert_eq!(view.heads.len(), 1);
    assert_eq!((view.lifecycle, view.heads[0].edition_id.clone()), (Lifecycle::Final, edition(1)));
    let rows = product_rows(&world.root, &world.leaves);
    let counts: Vec<_> =
        rows.iter().map(|r| (r.product_id.as_str(), r.heads.len(), r.embargoed, r.withdrawn, r.tombstones)).collect();
    assert_eq!(counts, [("p", 1, 0, 0, 1), ("q", 0, 1, 0, 0), ("r", 0, 1, 0, 0)]);
    assert_eq!(rows[1].next_release_at, Some(noon().plus_ms(3_600_000)));
}

#[test]
fn what_is_embargoed_is_listed_by_its_release_with_the_reason_it_still_waits() {
    let mut world = story();
    world.now = noon().plus_ms(3_600_000);
    world.sealed.remove(&edition(3));
    let refused = world.act(&Operation::Release(Release::Due));
    let list = embargoed(&world.leaves, &refused_in(&world.root), world.now);
    let told: Vec<_> =
        list.iter().map(|e| (e.product_id.as_str(), e.due, e.refused.as_ref().map(|r| r.code.as_str()))).collect();
    assert_eq!(told, [("q", true, Some("catalog.manifest_missing")), ("r", false, None)]);
    assert_eq!(refused.len(), 1);
}

#[test]
fn what_was_live_at_a_time_is_replayed_from_change_lists_alone() {
    let world = story();
    let versions: Vec<_> =
        world.past.iter().map(|(root, _, leaves)| (root, leaves)).chain([(&world.root, &world.leaves)]).collect();
    let times = || versions.iter().map(|(root, _)| (root.seq, root.created_at));
    assert_eq!(version_at(times(), noon().plus_ms(-1)), None);
    for (from, (checkpoint, leaves)) in versions.iter().enumerate() {
        let mut replay = Replay::at(checkpoint, leaves);
        for (root, leaves) in &versions[from + 1..] {
            replay.apply(root.seq, root.changes.as_ref().unwrap()).unwrap();
            assert_eq!(replay, Replay::at(root, leaves), "version {}", root.seq);
            assert_eq!(version_at(times(), root.created_at), Some(root.seq));
            assert_eq!(version_at(times(), root.created_at.plus_ms(-1)), root.seq.before());
        }
    }
    let third = Replay::at(versions[2].0, versions[2].1);
    let live: Vec<_> = third.live().map(|(product, entry)| (product.as_str(), entry.edition_id.clone())).collect();
    assert_eq!(live, [("p", edition(2))]);
    let last = Replay::at(&world.root, &world.leaves);
    assert_eq!(last.mark(&product("p"), &edition(2)), Some(Mark::Tombstone));
    assert_eq!(last.mark(&product("p"), &edition(8)), None);
    let broken = Replay::default().apply(versions[3].0.seq, versions.last().unwrap().0.changes.as_ref().unwrap());
    assert!(broken.is_ok(), "a lifecycle changes no edition");
    let rolled = versions.iter().find(|(root, _)| root.event.kind == EventKind::Rollback).unwrap().0;
    let broken = Replay::default().apply(rolled.seq, rolled.changes.as_ref().unwrap()).unwrap_err();
    assert_eq!((broken.found, broken.expected), (Some(Mark::Superseded), None));
}

#[test]
fn a_stale_edition_is_found_and_stays_live() {
    let mut world = World::new(false);
    world.publish(structure("s", 1, None, &[("urn:cl", "f1", None), ("urn:cs", "g1", None)]));
    world.publish(holds(record("p", 2, None), &[("urn:cl", "cut", Some("f1")), ("urn:cs", "g1", None)]));
    let check = |world: &World| check_version(&world.root, &world.leaves, &BTreeMap::new());
    assert!(check(&world).is_empty());
    world.publish(structure("s", 3, Some(1), &[("urn:cl", "f2", None), ("urn:cs", "g1", None)]));
    let found = check(&world);
    let [VersionFinding::Stale(stale)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((stale.product.as_str(), stale.urn.as_str(), stale.found.as_str()), ("p", "urn:cl", "f1"));
    assert_eq!(stale.home, (product("s"), Some(edition(3))));
    assert_eq!(stale.state, EntryState::Live);
    let text = found[0].to_string();
    assert!(text.contains("stale") && text.contains(edition(3).as_str()), "{text}");
    assert!(found[0].fix().contains("jobctl run publish --product p"));
    // Without any home it is an orphan.
    world.act(&withdraw("s", &[3]));
    assert!(matches!(check(&world).as_slice(), [VersionFinding::Orphan { .. }]));
}

#[test]
fn a_version_that_breaks_an_invariant_is_found_out() {
    let mut world = World::new(false);
    world.publish(structure("s", 1, None, &[("urn:cl", "f1", None)]));
    world.publish(holds(record("p", 2, None), &[("urn:x", "f1", None)]));
    world.publish(record("p", 3, Some(2)));
    let edit = |p: &str, change: &dyn Fn(&mut Leaf)| {
        let mut leaves = world.leaves.clone();
        let mut leaf = leaves[&product(p)].as_ref().clone();
        change(&mut leaf);
        leaves.insert(product(p), Arc::new(leaf));
        check_version(&world.root, &leaves, &BTreeMap::new()).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let one =
        |found: Vec<String>, part: &str| assert!(found.len() == 1 && found[0].contains(part), "{found:?}: {part}");
    one(edit("p", &|leaf| leaf.editions[0].state = EntryState::Live), "item 1");
    one(edit("p", &|leaf| drop(leaf.editions.remove(0))), "item 6");
    one(edit("p", &|leaf| leaf.product_id = product("q")), "another product");
    let second = |kind: Kind, print: &str| {
        let mut leaves = world.leaves.clone();
        let mut leaf = leaves[&product("s")].as_ref().clone();
        leaf.product_id = product("t");
        leaf.kind = kind;
        leaf.editions[0].artefacts = Some(BTreeMap::from([(
            if kind == Kind::Structure { "urn:cl" } else { "urn:x" }.to_owned(),
            ArtefactRecord { fingerprint: print.to_owned(), partial_of: None },
        )]));
        let mut root = world.root.clone();
        root.products.insert(product("t"), root.products[&product("s")].clone());
        leaves.insert(product("t"), Arc::new(leaf));
        let mut p = leaves[&product("p")].as_ref().clone();
        p.editions.swap(0, 1);
        p.editions[1].state = EntryState::Live;
        p.editions[0].state = EntryState::Superseded;
        p.editions.swap(0, 1);
        leaves.insert(product("p"), Arc::new(p));
        check_version(&root, &leaves, &BTreeMap::new()).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    one(second(Kind::Structure, "f1"), "item 7");
    one(second(Kind::Data, "f2"), "live with 2 fingerprints");
    assert_eq!(second(Kind::Data, "f1"), Vec::<String>::new());
}

#[test]
fn a_version_that_does_not_follow_is_found_out() {
    let world = story();
    let (base, base_sha256, base_leaves) = world.past.last().unwrap();
    let check = |change: &dyn Fn(&mut Root)| {
        let mut root = world.root.clone();
        change(&mut root);
        let base = Whole { root: base, root_sha256: base_sha256, leaves: base_leaves };
        let new = Whole { root: &root, root_sha256: &world.root_sha256, leaves: &world.leaves };
        check_step(&base, &new).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(check(&|_| ()), Vec::<String>::new());
    let one =
        |found: Vec<String>, part: &str| assert!(found.len() == 1 && found[0].contains(part), "{found:?}: {part}");
    one(
        check(&|root| root.previous_root_sha256 = Some(Some(Sha256Hex::of(b"x")))),
        "as the SHA-256 of the version before it",
    );
    one(check(&|root| root.created_at = base.created_at), "or later");
    one(check(&|root| root.changes = Some(vec![])), "first at product p");
    one(check(&|root| root.seq = root.seq.next()), "follows version");
    let raised = Root { restore_epoch: 5, ..base.clone() };
    let below = Whole { root: &raised, root_sha256: base_sha256, leaves: base_leaves };
    let new = Whole { root: &world.root, root_sha256: &world.root_sha256, leaves: &world.leaves };
    assert!(matches!(check_step(&below, &new).as_slice(), [StepFinding::Epoch { found: 0, base: 5, .. }]));
    one(check(&|root| root.previous_inventory = Some(Seq::FIRST)), "built from");
    assert_eq!(
        check(&|root| {
            root.previous_inventory = Some(Seq::FIRST);
            root.event.kind = EventKind::Correct;
        }),
        Vec::<String>::new()
    );
    // Without history fields there is nothing to compare (H19).
    let old = |root: &mut Root| {
        (root.changes, root.previous_root_sha256) = (None, None);
        root.created_at = base.created_at;
    };
    assert_eq!(check(&old), Vec::<String>::new());
}

#[test]
fn the_publish_check_of_a_structure_edition_is_given_the_others() {
    let mut world = World::new(true);
    world.publish(structure("s", 1, None, &[]));
    world.publish(structure("t", 2, None, &[]));
    world.publish(record("p", 3, None));
    world.act(&cancel("s", 1));
    world.publish(structure("s", 4, None, &[]));
    let beside = |p: &str| -> Vec<_> {
        structures_beside(&world.leaves, &product(p)).into_iter().map(|(p, e, _)| (p.to_string(), e)).collect()
    };
    assert_eq!(beside("t"), [("s".to_owned(), edition(4))]);
    assert_eq!(beside("p").len(), 2);
}

#[test]
fn refusals_and_expunged_editions_are_read_as_they_stand() {
    let mut world = World::new(false);
    let id = edition(7);
    world
        .root
        .extensions
        .insert("jobctl".to_owned(), json!({"refusals": "?", "expunged": [id, {"edition_id": edition(8)}, 9]}));
    assert_eq!(refused_in(&world.root), []);
    assert_eq!(expunged(&world.root), ids(&[7, 8]));
}

#[test]
fn an_entry_is_held_against_its_manifest_field_by_field() {
    let sha = |text: &str| Sha256Hex::of(text.as_bytes());
    let urn = |class: &str, id: &str| format!("urn:sdmx:org.sdmx.infomodel.x.{class}=STC:{id}(1.0)");
    let manifest = json!({
        "format_version": "3.0", "product_id": "p", "edition_id": edition(2), "previous": edition(1),
        "created_at": "2026-10-09T12:30:00.000000Z", "producer": {"name": "n", "version": "v"},
        "sdmxlib_version": "0", "schema_version": "2.52", "duckdb_version": "1.5.5", "duckdb_storage_version": 68,
        "ducklake_version": null, "ducklake_spec_version": null, "data_path": "../data/",
        "files": [{"path": "metadata.duckdb", "size": 9, "root": "edition", "tier": "required",
                   "digests": {"sha256": sha("m"), "md5": "0".repeat(32), "crc32c": "00000000"}}],
        "bindings": [],
        "artefacts": [{"urn": urn("Codelist", "CL"), "stability": "semantic", "partial": false, "fingerprint": sha("f")}],
        "canonical_form": "1",
    });
    let mut manifest: crate::manifest::Manifest = serde_json::from_value(manifest).unwrap();
    manifest.content_fingerprint = Some(manifest.computed_content_fingerprint());
    let bytes = manifest.encode();
    let new = NewEntry::from_manifest(&manifest, Sha256Hex::of(&bytes)).unwrap();
    let good = new.into_entry(EntryState::Live, noon(), None);
    let check = |entry: &LeafEntry| check_entry(&product("p"), entry, Some(&bytes));
    assert_eq!(check(&good), []);
    let old = LeafEntry { artefacts: None, dataflows: None, pull_bytes: None, ..good.clone() };
    assert_eq!(check(&old), [], "an entry of an older writer");
    let fields = |entry: LeafEntry| {
        let field = |finding: EntryFinding| match finding {
            EntryFinding::Field { field, .. } => field,
            other => panic!("{other}"),
        };
        check(&entry).into_iter().map(field).collect::<Vec<_>>()
    };
    assert_eq!(fields(LeafEntry { previous: None, ..good.clone() }), ["previous"]);
    assert_eq!(fields(LeafEntry { edition_id: edition(3), ..good.clone() }), ["edition_id"]);
    assert_eq!(fields(LeafEntry { schema_version: SchemaVersion::new("2.51"), ..good.clone() }), ["schema_version"]);
    assert_eq!(fields(LeafEntry { artefacts: Some(BTreeMap::new()), ..good.clone() }), ["artefacts"]);
    let routing = LeafEntry { dataflows: Some(vec!["x".to_owned()]), pull_bytes: Some(1), ..good.clone() };
    assert_eq!(fields(routing), ["dataflows", "pull_bytes"]);
    let other = check_entry(&product("q"), &good, Some(&bytes));
    assert!(matches!(other.as_slice(), [EntryFinding::Field { field: "product_id", .. }]));
    assert!(matches!(check_entry(&product("p"), &good, None).as_slice(), [EntryFinding::Missing { .. }]));
    assert!(matches!(check_entry(&product("p"), &good, Some(b"{}")).as_slice(), [EntryFinding::Differs { .. }]));
    let stray = LeafEntry { manifest_sha256: Sha256Hex::of(b"{}"), ..good };
    let found = check_entry(&product("p"), &stray, Some(b"{}"));
    assert!(matches!(found.as_slice(), [EntryFinding::Unreadable { .. }]) && !found[0].fix().is_empty(), "{found:?}");
}
