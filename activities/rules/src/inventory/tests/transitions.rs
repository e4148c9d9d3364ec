use super::*;
use serde_json::json;

#[test]
fn with_embargo_off_an_edition_goes_live_and_supersedes_the_one_before() {
    let mut world = World::new(false);
    assert_eq!(world.take(&record("p", 1, None)), Mark::Live);
    assert_eq!(world.take(&record("q", 5, None)), Mark::Live);
    let q = world.root.products[&product("q")].clone();
    assert_eq!(world.take(&record("p", 2, Some(1))), Mark::Live);
    assert_eq!(world.state("p", 1), Some(EntryState::Superseded));
    assert_eq!(world.state("p", 2), Some(EntryState::Live));
    assert_eq!(world.root.products[&product("q")], q, "the other product keeps its leaf");
    let at = world.root.created_at;
    for n in [1, 2] {
        let leaf = &world.leaves[&product("p")];
        assert_eq!(leaf.entry(&edition(n)).unwrap().state_changed_at, at);
    }
    assert_eq!(world.root.event.kind, EventKind::Seal);
    assert_eq!(world.root.seq.get(), 4);
}

#[test]
fn with_embargo_on_an_edition_waits() {
    let mut world = World::new(true);
    let at = noon().plus_ms(3_600_000);
    assert_eq!(world.take(&Record { release_at: Some(at), ..record("p", 1, None) }), Mark::Embargoed);
    let leaf = &world.leaves[&product("p")];
    assert_eq!(leaf.entry(&edition(1)).unwrap().release_at, Some(at));
    assert_eq!(leaf.live().count(), 0);
    // The same check as for a release: nothing is live, so nothing may be built on it yet.
    assert_eq!(world.refuse(&record("p", 2, Some(1))).code(), "catalog.not_fast_forward");
    assert_eq!(world.take(&record("p", 3, None)), Mark::Embargoed);
}

#[test]
fn a_fork_is_refused_with_both_editions_and_the_fix() {
    let mut world = World::new(false);
    world.take(&record("p", 1, None));
    world.take(&record("p", 2, Some(1)));
    for previous in [None, Some(1), Some(9)] {
        let refusal = world.refuse(&record("p", 3, previous));
        let text = refusal.to_string();
        assert_eq!(refusal.code(), "catalog.not_fast_forward");
        assert!(text.contains("catalog §6.4") && text.contains(edition(2).as_str()), "{text}");
        if let Some(previous) = previous {
            assert!(text.contains(edition(previous).as_str()), "{text}");
        }
        assert!(refusal.fix().contains("jobctl run publish --product p"));
    }
    let refusal = world.refuse(&record("new", 3, Some(1)));
    assert!(refusal.to_string().contains("no edition of the product is live"), "{refusal}");
}

#[test]
fn at_a_new_schema_an_edition_is_built_on_the_newest_older_one() {
    let at = |record: Record, schema: &str| {
        let mut record = record;
        record.entry.schema_version = SchemaVersion::new(schema);
        record
    };
    let mut world = World::new(false);
    world.take(&at(record("p", 1, None), "2.50"));
    world.take(&at(record("p", 2, Some(1)), "2.51"));
    assert_eq!(world.refuse(&at(record("p", 3, Some(1)), "2.52")).code(), "catalog.not_fast_forward");
    assert_eq!(world.refuse(&at(record("p", 3, None), "2.52")).code(), "catalog.not_fast_forward");
    world.take(&at(record("p", 3, Some(2)), "2.52"));
    for n in [1, 2, 3] {
        assert_eq!(world.state("p", n), Some(EntryState::Live), "one live edition a schema version");
    }
    // An old schema goes on on its own line.
    world.take(&at(record("p", 4, Some(2)), "2.51"));
    assert_eq!(world.state("p", 2), Some(EntryState::Superseded));
    // Older than every live one: there is nothing that it could be built on.
    let refusal = world.refuse(&at(record("p", 5, None), "2.40"));
    assert_eq!(refusal.code(), "catalog.schema_behind");
    assert!(refusal.to_string().contains("2.50"), "{refusal}");
}

#[test]
fn an_edition_that_is_known_is_never_recorded_again() {
    let mut world = World::new(false);
    world.take(&record("p", 1, None));
    world.take(&record("p", 2, Some(1)));
    let already = |world: &World, n: u64, previous: Option<u64>| {
        let record = record("p", n, previous);
        match world.plan(&record, &facts(&record)).unwrap() {
            Decision::Already(done) => done.mark,
            Decision::Write(_) => panic!("edition {n} would be written again"),
        }
    };
    assert_eq!(already(&world, 1, None), Some(Mark::Superseded));
    assert_eq!(already(&world, 2, Some(1)), Some(Mark::Live));
    // Whatever became of it, and though its manifest is gone.
    let mut leaf = world.leaves[&product("p")].as_ref().clone();
    leaf.editions[1].state = EntryState::Withdrawn;
    world.leaves.insert(product("p"), Arc::new(leaf.clone()));
    assert_eq!(already(&world, 2, Some(1)), Some(Mark::Withdrawn));
    leaf.editions.remove(0);
    world.leaves.insert(product("p"), Arc::new(leaf));
    world.root.retired.push(Tombstone { product_id: product("p"), edition_id: edition(1), retired_at: noon() });
    assert_eq!(already(&world, 1, None), Some(Mark::Tombstone));
    // But not with another manifest.
    let mut other = record("p", 2, Some(1));
    other.entry.manifest_sha256 = manifest_sha256(77);
    assert_eq!(world.refuse(&other).code(), "catalog.manifest_differs");
}

#[test]
fn a_chain_may_lead_to_a_tombstone_and_not_to_nothing() {
    let mut world = World::new(false);
    world.take(&record("p", 1, None));
    world.take(&record("p", 2, Some(1)));
    let mut leaf = world.leaves[&product("p")].as_ref().clone();
    leaf.editions.remove(0);
    world.leaves.insert(product("p"), Arc::new(leaf));
    let refusal = world.refuse(&record("p", 3, Some(2)));
    assert_eq!(refusal.code(), "catalog.chain_broken");
    assert!(refusal.to_string().contains(edition(1).as_str()), "{refusal}");
    let tombstone = |n: u64| Tombstone { product_id: product("p"), edition_id: edition(n), retired_at: noon() };
    world.root.retired.push(tombstone(1));
    world.take(&record("p", 3, Some(2)));
    world.root.retired.push(tombstone(3));
    assert_eq!(world.refuse(&record("p", 4, Some(3))).code(), "catalog.recorded_and_retired");
}

#[test]
fn what_a_manifest_must_be() {
    let world = World::new(false);
    let new = record("p", 1, None);
    let missing = world.plan(&new, &Facts::default()).unwrap_err();
    assert_eq!(missing.code(), "catalog.manifest_missing");
    let other = facts(&record("p", 2, None)).manifests.remove(&edition(2)).unwrap();
    let other = Facts { manifests: BTreeMap::from([(edition(1), other)]), ..Facts::default() };
    assert_eq!(world.plan(&new, &other).unwrap_err().code(), "catalog.manifest_differs");
    let mut form = new.clone();
    form.content.canonical_form = "2".to_owned();
    assert_eq!(world.refuse(&form).code(), "catalog.canonical_form");
}

#[test]
fn a_product_stays_what_it_is() {
    let mut world = World::new(false);
    world.take(&record("p", 1, None));
    assert_eq!(world.refuse(&structure("p", 2, Some(1), &[])).code(), "catalog.kind_differs");
}

#[test]
fn a_time_of_release_needs_an_embargo() {
    let world = World::new(false);
    let at = |ms: i64| Record { release_at: Some(world.now.plus_ms(ms)), ..record("p", 1, None) };
    assert_eq!(world.refuse(&at(1)).code(), "catalog.release_at_without_embargo");
    let Decision::Write(version) = world.plan(&at(0), &facts(&at(0))).unwrap() else { panic!("nothing to write") };
    assert_eq!(version.mark, Some(Mark::Live), "its time has come");
}

#[test]
fn final_means_final() {
    let mut world = World::new(false);
    world.take(&record("p", 1, None));
    // A revisable product becomes final with an edition that is.
    world.take(&Record { lifecycle: Some(Lifecycle::Final), ..record("p", 2, Some(1)) });
    assert_eq!(world.leaves[&product("p")].lifecycle, Lifecycle::Final);
    let content = |form: &str, n: u64| ContentFingerprint {
        canonical_form: form.to_owned(),
        value: Some(format!("content {n}")),
    };
    let plan = |new: &Record, previous: Option<ContentFingerprint>| {
        let mut facts = facts(new);
        if previous.is_some() {
            facts.manifests.insert(edition(2), ManifestFacts { sha256: manifest_sha256(2), content: previous });
        }
        world.plan(new, &facts)
    };
    let mut same = record("p", 3, Some(2));
    assert_eq!(plan(&same, Some(content("1", 2))).unwrap_err().code(), "catalog.final_changed");
    same.content = content("1", 2);
    assert!(matches!(plan(&same, Some(content("1", 2))).unwrap(), Decision::Write(_)));
    assert_eq!(plan(&same, Some(content("0", 2))).unwrap_err().code(), "catalog.final_changed", "forms never compare");
    assert_eq!(plan(&same, None).unwrap_err().code(), "catalog.manifest_missing", "nothing to compare with");
    let none = ContentFingerprint { value: None, ..content("1", 2) };
    assert_eq!(
        plan(&Record { content: none.clone(), ..same.clone() }, Some(none)).unwrap_err().code(),
        "catalog.final_changed"
    );
    let reopened = Record { lifecycle: Some(Lifecycle::Revisable), ..same.clone() };
    assert_eq!(plan(&reopened, Some(content("1", 2))).unwrap_err().code(), "catalog.final_reopened");
}

#[test]
fn a_shared_artefact_without_a_home_has_one_fingerprint_among_live_editions() {
    let mut world = World::new(false);
    world.take(&holds(record("p", 1, None), &[("urn:x", "f1", None)]));
    let refusal = world.refuse(&holds(record("q", 2, None), &[("urn:x", "f2", None)]));
    assert_eq!(refusal.code(), "catalog.shared_artefact_differs");
    let text = refusal.to_string();
    assert!(
        text.contains("item 4") && text.contains("f1") && text.contains("f2") && text.contains("live edition"),
        "{text}"
    );
    world.take(&holds(record("q", 2, None), &[("urn:x", "f1", None)]));
    // The product's own old edition is not compared, the other product's is.
    assert_eq!(
        world.refuse(&holds(record("p", 3, Some(1)), &[("urn:x", "f2", None)])).code(),
        "catalog.shared_artefact_differs"
    );
    // An embargoed one is compared when it enters live.
    world.root.embargo = true;
    world.take(&holds(record("p", 3, Some(1)), &[("urn:x", "f2", None)]));
}

#[test]
fn a_structure_product_is_home_to_what_it_holds() {
    let urn = "urn:cl";
    let mut world = World::new(false);
    assert_eq!(
        world.refuse(&holds(record("p", 1, None), &[(urn, "cut", Some("f1"))])).code(),
        "catalog.partial_without_home"
    );
    world.take(&structure("s", 10, None, &[(urn, "f1", None)]));
    // Full and partial must be the home's.
    assert_eq!(world.refuse(&holds(record("p", 1, None), &[(urn, "f2", None)])).code(), "catalog.not_as_at_home");
    assert_eq!(
        world.refuse(&holds(record("p", 1, None), &[(urn, "cut", Some("f2"))])).code(),
        "catalog.not_as_at_home"
    );
    world.take(&holds(record("p", 1, None), &[(urn, "cut", Some("f1"))]));
    world.take(&holds(record("q", 2, None), &[(urn, "f1", None)]));
    // One home.
    assert_eq!(world.refuse(&structure("t", 11, None, &[(urn, "f1", None)])).code(), "catalog.two_homes");
    // A structure edit is accepted; the data editions are stale and stay live.
    world.take(&structure("s", 12, Some(10), &[(urn, "f2", None)]));
    assert_eq!(world.state("p", 1), Some(EntryState::Live));
    assert_eq!(
        world.refuse(&holds(record("p", 3, Some(1)), &[(urn, "cut", Some("f1"))])).code(),
        "catalog.not_as_at_home"
    );
    world.take(&holds(record("p", 3, Some(1)), &[(urn, "cut", Some("f2"))]));
}

#[test]
fn a_data_edition_waits_for_its_structure_edition() {
    let urn = "urn:cl";
    let mut world = World::new(true);
    world.take(&structure("s", 10, None, &[(urn, "f1", None)]));
    world.take(&holds(record("p", 1, None), &[(urn, "f1", None)]));
    world.root.embargo = false;
    let refusal = world.refuse(&holds(record("q", 2, None), &[(urn, "cut", Some("f1"))]));
    assert_eq!(refusal.code(), "catalog.publish_order");
    assert!(refusal.to_string().contains(edition(10).as_str()), "{refusal}");
}

#[test]
fn entries_of_older_writers_take_their_records_from_the_manifests() {
    let mut world = World::new(false);
    world.take(&holds(record("p", 1, None), &[("urn:x", "f1", None)]));
    let mut leaf = world.leaves[&product("p")].as_ref().clone();
    let records = leaf.editions[0].artefacts.take().unwrap();
    world.leaves.insert(product("p"), Arc::new(leaf));
    let new = holds(record("q", 2, None), &[("urn:x", "f2", None)]);
    assert_eq!(world.refuse(&new).code(), "catalog.records_unread");
    let facts = Facts { records: BTreeMap::from([(edition(1), records)]), ..facts(&new) };
    assert_eq!(world.plan(&new, &facts).unwrap_err().code(), "catalog.shared_artefact_differs");
}

#[test]
fn time_rises_along_the_chain_and_a_fast_clock_cannot_pin_it() {
    let world = World::new(false);
    let base = world.root.created_at;
    assert_eq!(created_at(&world.root, base.plus_ms(5)).unwrap(), base.plus_ms(5));
    for behind in [0, -1, -300_000] {
        assert_eq!(created_at(&world.root, base.plus_ms(behind)).unwrap(), base.plus_ms(1));
    }
    let refusal = created_at(&world.root, base.plus_ms(-300_001)).unwrap_err();
    assert_eq!(refusal.code(), "catalog.clock_behind");
    assert!(refusal.to_string().contains(&base.to_string()), "{refusal}");
    // Across a change of epoch as well.
    let operation = Operation::Describe(Map::new());
    let decision = plan(&world.base(), 7, &operation, &Facts::default(), &by(), base.plus_ms(-9)).unwrap();
    let Decision::Write(version) = decision else { panic!("nothing to write") };
    assert_eq!((version.root.restore_epoch, version.root.created_at), (7, base.plus_ms(1)));
}

#[test]
fn a_description_changes_itself_and_nothing_else() {
    let mut world = World::new(true);
    world.take(&record("p", 1, None));
    let section = json!({"format_version": "3", "description": {"title": {"en": "T"}}}).as_object().cloned().unwrap();
    let operation = Operation::Describe(section.clone());
    // No leaf is needed for it.
    let base = Base { leaves: &BTreeMap::new(), ..world.base() };
    let Decision::Write(version) = plan(&base, 0, &operation, &Facts::default(), &by(), noon()).unwrap() else {
        panic!("nothing to write")
    };
    assert_eq!(version.root.extensions["statcat"], json!(section));
    assert_eq!(version.root.changes, Some(vec![]));
    assert_eq!(version.root.products, world.root.products);
    assert_eq!(version.root.event.kind, EventKind::Describe);
    assert!(version.leaves.is_empty());
    world.apply(*version);
    let again = plan(&world.base(), 0, &operation, &Facts::default(), &by(), noon()).unwrap();
    assert_eq!(again, Decision::Already(Done::default()));
}

#[test]
fn sections_of_others_are_carried_on_and_ours_speaks_of_its_version() {
    let mut world = World::new(false);
    world.root.extensions.insert("other".to_owned(), json!({"a": 1}));
    let ours = json!({"format_version": "1.0", "run_id": "old", "step": "old", "refusals": [1], "expunged": ["e"]});
    world.root.extensions.insert("jobctl".to_owned(), ours);
    world.take(&record("p", 1, None));
    assert_eq!(world.root.extensions["other"], json!({"a": 1}));
    let expected = json!({"format_version": "1.0", "run_id": "run-1", "step": "record", "expunged": ["e"]});
    assert_eq!(world.root.extensions["jobctl"], expected);
    let own = |run: &str, step: &str| OwnWork { run_id: run.to_owned(), step: step.to_owned() };
    assert!(own("run-1", "record").wrote(&world.root));
    assert!(!own("run-1", "describe").wrote(&world.root));
    assert!(!own("run-2", "record").wrote(&world.root));
}

#[test]
fn a_change_list_records_every_kind_of_difference() {
    let mut world = World::new(true);
    for (p, n) in [("a", 1), ("b", 2), ("c", 3)] {
        world.take(&record(p, n, None));
    }
    let before = (world.root.products.clone(), world.leaves.clone());
    let tomb = |p: &str, n: u64| Tombstone { product_id: product(p), edition_id: edition(n), retired_at: noon() };
    let (old_retired, mut products, mut leaves) = (vec![tomb("z", 26)], before.0.clone(), before.1.clone());
    // a: the entry keeps its state; b: it becomes a tombstone; c: the product goes; z: a tombstone is dropped.
    let mut change = |p: &str, edit: &dyn Fn(&mut Leaf)| {
        let mut leaf = leaves[&product(p)].as_ref().clone();
        edit(&mut leaf);
        let sha = Sha256Hex::of(&leaf.encode().unwrap());
        products.insert(product(p), ProductRef { leaf_sha256: sha });
        leaves.insert(product(p), Arc::new(leaf));
    };
    change("a", &|leaf| leaf.editions[0].release_at = Some(noon()));
    change("b", &|leaf| leaf.editions.clear());
    products.remove(&product("c"));
    let retired = vec![tomb("b", 2)];
    let old = |p: &ProductId| before.1.get(p).map(Arc::as_ref);
    let new = |p: &ProductId| leaves.get(p).map(Arc::as_ref);
    let changes = changes_between(
        &Side { products: &before.0, retired: &old_retired, leaf: &old },
        &Side { products: &products, retired: &retired, leaf: &new },
    )
    .unwrap();
    let summary: Vec<_> = changes
        .iter()
        .flat_map(|change| {
            change.entries.iter().map(|item| (change.product_id.as_str(), item.from, item.to, item.entry.is_some()))
        })
        .collect();
    assert_eq!(
        summary,
        [
            ("a", Some(Mark::Embargoed), Some(Mark::Embargoed), true),
            ("b", Some(Mark::Embargoed), Some(Mark::Tombstone), false),
            ("c", Some(Mark::Embargoed), None, false),
            ("z", Some(Mark::Tombstone), None, false),
        ]
    );
    assert_eq!(changes[0].entries[0].entry.as_ref().unwrap().release_at, Some(noon()));
    assert_eq!(changes[2].leaf_sha256.to, None);
    assert_eq!(changes[3].leaf_sha256, LeafChange { from: None, to: None });

    let none = |_: &ProductId| None;
    let missing = changes_between(
        &Side { products: &before.0, retired: &[], leaf: &none },
        &Side { products: &products, retired: &[], leaf: &new },
    );
    assert_eq!(missing.unwrap_err().product, product("a"));
}

#[test]
fn a_refusal_names_its_rule_and_what_to_do() {
    let world = World::new(false);
    let refusals = [
        world.refuse(&record("p", 1, Some(2))),
        world.refuse(&Record { release_at: Some(noon().plus_ms(1)), ..record("p", 1, None) }),
        world.refuse(&holds(record("p", 1, None), &[("urn:x", "f", Some("g"))])),
        *created_at(&world.root, Instant::from_ms(0)).unwrap_err(),
    ];
    for refusal in refusals {
        assert!(refusal.to_string().starts_with("catalog §6."), "{refusal}");
        assert!(refusal.code().starts_with("catalog."), "{refusal}");
        assert!(refusal.fix().len() > 20, "{refusal}");
    }
}
