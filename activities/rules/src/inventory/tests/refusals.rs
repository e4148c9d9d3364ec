//! Every refusal by its name, met by an operation: [`table`] holds what each of them says.

mod table;

use super::*;
use serde_json::json;

const DAY: i64 = DAY_MS;

fn err<T: std::fmt::Debug>(result: Result<T, Box<Refusal>>) -> Refusal {
    *result.unwrap_err()
}

/// A world with embargo off in which `p` has edition 1 superseded and edition 2 live.
fn two() -> World {
    let mut world = World::new(false);
    world.publish(record("p", 1, None));
    world.publish(record("p", 2, Some(1)));
    world
}

/// A world with embargo on in which `p` has edition 1 live and editions 2 and 3 embargoed on it.
fn rivals() -> World {
    let mut world = World::new(false);
    world.publish(record("p", 1, None));
    world.act(&Operation::Embargo(true));
    world.publish(record("p", 2, Some(1)));
    world.publish(record("p", 3, Some(1)));
    world
}

fn of_documents() -> Vec<Refusal> {
    let catalog = CatalogJson {
        format_version: FormatVersion { major: 2, minor: 0 },
        history: Some(CatalogHistory { since_seq: Seq::FIRST }),
        ..CatalogJson::new("01a18e76-2bad-7480-abfe-2ba8a6889a45".parse().unwrap())
    };
    let none = |_: &ProductId| None;
    let two = two();
    let side = |retired| Side { products: &two.root.products, retired, leaf: &none };
    let tombstone = Tombstone { product_id: product("p"), edition_id: edition(1), retired_at: noon() };
    let missing = changes_between(&side(&[]), &side(&[tombstone])).unwrap_err();
    let history = |restore_epoch: u64, expired_through: u64| History {
        format_version: FormatVersion { major: 1, minor: 0 },
        catalog_id: catalog.catalog_id.clone(),
        restore_epoch,
        expired_through,
        newest_segment: None,
        newest_segment_sha256: None,
        cleaned_through: None,
        other: Map::new(),
    };
    admit_base(&catalog, Some(&history(0, 2)), &two.root).unwrap();
    let one = CatalogJson::new(catalog.catalog_id.clone());
    admit_base(&one, None, &two.root).unwrap();
    let other_epoch = Root { restore_epoch: 1, ..two.root.clone() };
    assert_eq!(err(admit_base(&one, None, &other_epoch)).code(), "catalog.unfinished_restore");
    let ahead = |ms: i64| store_time(noon(), noon().plus_ms(ms));
    assert_eq!(ahead(60_000).unwrap(), noon());
    assert_eq!(ahead(-DAY).unwrap(), noon(), "a clock that is behind waits");
    vec![
        err(admit_base(&catalog, None, &two.root)),
        err(admit_base(&catalog, Some(&history(1, 0)), &two.root)),
        err(check_committed(&catalog, Some(&history(0, 3)), &two.root)),
        err(ahead(60_001)),
        err(catalog.admit_writer(WriterStage::One)),
        err(created_at(&two.root, Instant::from_ms(0))),
        Refusal::from(Root::decode(b"{}").unwrap_err()),
        Refusal::from(missing),
    ]
}

fn of_records() -> Vec<Refusal> {
    let mut world = two();
    let unsealed = Operation::Record(Box::new(record("p", 3, Some(2))));
    let missing = world.no(&unsealed);
    let other = Record {
        entry: NewEntry { manifest_sha256: manifest_sha256(9), ..record("p", 3, Some(2)).entry },
        ..record("p", 3, Some(2))
    };
    world.sealed.insert(edition(3), other);
    let differs = world.no(&unsealed);
    let form = ContentFingerprint { canonical_form: "2".to_owned(), value: None };
    let mut refuse = |record: Record| {
        let operation = world.seal(record);
        world.no(&operation)
    };
    let mut found = vec![
        missing,
        differs,
        refuse(record("p", 4, Some(1))),
        refuse(at_schema(record("p", 5, None), "2.40")),
        refuse(Record { content: form, ..record("p", 6, Some(2)) }),
        refuse(Record { kind: Kind::Structure, ..record("p", 7, Some(2)) }),
        refuse(Record { release_at: Some(noon().plus_ms(DAY)), ..record("p", 8, Some(2)) }),
        refuse(holds(record("q", 9, None), &[("urn:cl", "cut", Some("f1"))])),
    ];
    world.act(&set_lifecycle("p", Lifecycle::Final));
    for lifecycle in [None, Some(Lifecycle::Revisable)] {
        let operation = world.seal(Record { lifecycle, ..record("p", 10, Some(2)) });
        found.push(world.no(&operation));
    }
    found
}

fn of_chains() -> Vec<Refusal> {
    let mut world = two();
    let mut leaf = world.leaves[&product("p")].as_ref().clone();
    leaf.editions.remove(0);
    world.leaves.insert(product("p"), Arc::new(leaf));
    let operation = world.seal(record("p", 3, Some(2)));
    let broken = world.no(&operation);
    let tombstone = |n: u64| Tombstone { product_id: product("p"), edition_id: edition(n), retired_at: noon() };
    world.root.retired.extend([tombstone(1), tombstone(2)]);
    vec![broken, world.no(&operation)]
}

fn of_structures() -> Vec<Refusal> {
    let urn = "urn:cl";
    let mut world = World::new(false);
    world.publish(holds(record("p", 1, None), &[("urn:dsd", "d1", None)]));
    world.publish(structure("s", 2, None, &[(urn, "f1", None)]));
    let mut refuse = |record: Record| {
        let operation = world.seal(record);
        world.no(&operation)
    };
    let mut found = vec![
        refuse(holds(record("q", 3, None), &[("urn:dsd", "d2", None)])),
        refuse(holds(record("q", 4, None), &[(urn, "cut", Some("f0"))])),
        refuse(structure("t", 5, None, &[(urn, "f1", None)])),
    ];
    let mut leaf = world.leaves[&product("p")].as_ref().clone();
    leaf.editions[0].artefacts = None;
    world.sealed.remove(&edition(1));
    world.leaves.insert(product("p"), Arc::new(leaf));
    let operation = world.seal(holds(record("q", 6, None), &[(urn, "cut", Some("f1"))]));
    found.push(world.no(&operation));

    let mut world = World::new(true);
    world.publish(structure("s", 1, None, &[(urn, "f1", None)]));
    world.publish(holds(record("p", 2, None), &[(urn, "cut", Some("f1"))]));
    found.push(world.no(&release(&["p"])));
    found
}

fn of_manifests() -> Vec<Refusal> {
    use crate::manifest::Manifest;
    let mut world = World::new(true);
    world.publish(record("p", 1, None));
    let operation = release(&["p"]);
    let mut facts = world.facts_for(&operation);
    facts.manifests.get_mut(&edition(1)).unwrap().content = None;
    let unreadable = err(plan(&world.base(), 0, &operation, &facts, &by(), world.now));
    let sha = |text: &str| Sha256Hex::of(text.as_bytes());
    let manifest: Manifest = serde_json::from_value(json!({
        "format_version": "3.0", "product_id": "p", "edition_id": edition(2), "previous": null,
        "created_at": "2026-10-09T12:30:00.000000Z", "producer": {"name": "n", "version": "v"},
        "sdmxlib_version": "0", "schema_version": "2.52", "duckdb_version": "1.5.5", "duckdb_storage_version": 68,
        "ducklake_version": null, "ducklake_spec_version": null, "data_path": "../data/", "files": [], "bindings": [],
        "artefacts": [{"urn": "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL(1.0)", "stability": "legacy",
                       "partial": true, "fingerprint": sha("p")}],
        "canonical_form": "1",
    }))
    .unwrap();
    vec![unreadable, err(artefact_records(&manifest))]
}

fn of_states() -> Vec<Refusal> {
    let world = two();
    let mut found = vec![
        world.no(&cancel("nobody", 1)),
        world.no(&cancel("p", 9)),
        world.no(&cancel("p", 2)),
        world.no(&release(&["p"])),
        world.no(&moves("p", &[(1, Some(2))])),
        world.no(&supersede_schema("2.52", Some(&["p"]))),
        world.no(&supersede_schema("1.0", None)),
    ];
    let mut world = two();
    world.act(&rollback(&world, "p", &[]));
    let operation = world.seal(record("p", 3, Some(2)));
    found.push(world.no(&operation));
    found.push(world.no(&Operation::Retire { editions: one("p", 2), before_window: false }));
    world.act(&retire("p", 2));
    found.push(world.no(&cancel("p", 2)));
    world.broken.insert(edition(2));
    found.push(world.no(&reinstate(&world, "p", 2)));
    world.now = world.now.plus_ms((i64::from(world.retention.gc_days) - 1) * DAY);
    found.push(world.no(&reinstate(&world, "p", 2)));
    world.root.extensions.insert("jobctl".to_owned(), json!({"expunged": [{"edition_id": edition(2)}]}));
    found.push(world.no(&reinstate(&world, "p", 2)));
    world.act(&withdraw("p", &[1]));
    found.push(world.no(&withdraw("p", &[])));
    found
}

fn of_rollbacks() -> Vec<Refusal> {
    let mut world = World::new(false);
    world.publish(at_schema(record("p", 1, None), "2.51"));
    let nothing = err(rollback_moves(&world.leaves[&product("p")], &ids(&[])));
    world.publish(at_schema(record("p", 2, Some(1)), "2.51"));
    world.publish(record("p", 3, Some(2)));
    world.publish(record("p", 4, Some(3)));
    vec![nothing, world.no(&moves("p", &[(4, Some(3))])), world.no(&moves("p", &[(2, Some(3)), (4, Some(1))]))]
}

fn of_waiting() -> Vec<Refusal> {
    let mut world = rivals();
    let mut found = vec![world.no(&release(&["p"])), world.no(&set_lifecycle("p", Lifecycle::Final))];
    let pending = |n: u64| registration(&record("p", n, Some(1))).pending;
    let inbox = [pending(2), pending(7)];
    // What is folded stands in nobody's way, and a registration not in its own.
    admit_registration(&world.base(), &inbox[..1], &pending(8)).unwrap();
    admit_registration(&world.base(), &inbox, &pending(7)).unwrap();
    found.push(err(admit_registration(&world.base(), &inbox, &pending(8))));
    world.publish(at_schema(record("p", 4, Some(1)), "2.53"));
    found.push(world.no(&supersede("p", 2, 4)));

    let mut world = World::new(false);
    world.publish(structure("s", 1, None, &[("urn:cl", "f1", None)]));
    world.publish(holds(record("p", 2, None), &[("urn:cl", "cut", Some("f1"))]));
    world.publish(structure("s", 3, Some(1), &[("urn:cl", "f2", None)]));
    found.push(world.no(&retire("s", 1)));
    found
}

/// The refusals of a fold are data.
fn of_folds() -> Vec<RefusedEdition> {
    let mut world = World::new(true);
    let mut other = registration(&record("p", 1, None));
    other.pending.kind = Kind::Structure;
    let differs = world.is_done(&Operation::Fold(vec![other])).refused;
    let operation = fold(&mut world, &[record("p", 1, None)]);
    world.now = Instant::from_ms(edition(1).minted_at_ms().try_into().unwrap()).plus_ms(91 * DAY);
    let old = world.is_done(&operation).refused;
    [differs, old].concat()
}

fn of_corrections() -> Vec<Refusal> {
    let world = two();
    let operation = correct(2, None);
    let without = |edit: &dyn Fn(&mut CorrectionFacts)| {
        let mut facts = world.facts_for(&operation);
        edit(&mut facts.correction);
        err(plan(&world.base(), 0, &operation, &facts, &by(), world.now))
    };
    vec![
        world.no(&correct(9, None)),
        without(&|correction| correction.root = None),
        without(&|correction| drop(correction.since.insert(Seq::new(3).unwrap(), None))),
    ]
}

fn of_heads() -> Vec<Refusal> {
    let world = two();
    let seq = |n: u64| Seq::new(n).unwrap();
    let bytes = world.root.encode().unwrap();
    let newer = String::from_utf8(bytes.clone()).unwrap().replace("\"1.2\"", "\"2.0\"");
    let current = Current { seq: seq(3), root_sha256: world.root_sha256.clone(), restore_epoch: 0 };
    let repair = |n: u64, last: u64, bytes: Option<&[u8]>, after: &[(Seq, RootFound)], current: Option<&Current>| {
        err(repair_head(seq(n), &HeadFacts { last_valid: seq(last), base: None, bytes, after, current }, false))
    };
    vec![
        repair(4, 3, None, &[], None),
        repair(3, 3, Some(&bytes), &[], None),
        repair(3, 2, Some(newer.as_bytes()), &[], None),
        repair(5, 3, Some(b""), &[], None),
        repair(3, 4, Some(b""), &[(seq(4), RootFound::Valid)], None),
        repair(3, 2, Some(b""), &[(seq(4), RootFound::Newer(FormatVersion { major: 2, minor: 0 }))], None),
        repair(3, 2, Some(b""), &[], Some(&current)),
    ]
}

fn of_rebuilds() -> Vec<Refusal> {
    let catalog = CatalogJson::new("01a18e76-2bad-7480-abfe-2ba8a6889a45".parse().unwrap());
    let mut world = two();
    let current = Current { seq: world.root.seq, root_sha256: world.root_sha256.clone(), restore_epoch: 0 };
    let rebuild = |remains: &Remains, records: &[Record], lost_through: Option<u64>| {
        let asked = RebuildAsked { embargo: false, lost_through };
        let facts = records.iter().flat_map(|record| facts(record).manifests).collect();
        let facts = Facts { manifests: facts, ..Facts::default() };
        err(rebuild_inventory(&catalog, remains, records, asked, &facts, &by(), noon()))
    };
    world.act(&rollback(&world, "p", &[]));
    let leaves = vec![world.leaves[&product("p")].as_ref().clone()];
    vec![
        rebuild(&Remains { valid: Some(Seq::FIRST), ..Remains::default() }, &[], None),
        rebuild(
            &Remains { objects: vec!["inventory/000000000001.json".to_owned()], ..Remains::default() },
            &[],
            Some(0),
        ),
        rebuild(&Remains { current: Some(current), ..Remains::default() }, &[], Some(0)),
        rebuild(&Remains { leaves, ..Remains::default() }, &[], Some(0)),
        rebuild(&Remains::default(), &[record("p", 1, None), record("p", 2, None)], Some(0)),
    ]
}

/// Every refusal that the operations above meet.
fn met() -> Vec<Refusal> {
    let of: [fn() -> Vec<Refusal>; 11] = [
        of_documents,
        of_records,
        of_chains,
        of_structures,
        of_manifests,
        of_states,
        of_rollbacks,
        of_waiting,
        of_corrections,
        of_heads,
        of_rebuilds,
    ];
    of.into_iter().flat_map(|of| of()).collect()
}

#[test]
fn every_inequality_of_retention_is_checked() {
    let good = Retention::default();
    assert_eq!(good.check(), []);
    let one = |retention: Retention| {
        let faults = retention.check();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].to_string().starts_with("catalog §11.6"), "{}", faults[0]);
        assert!(faults[0].fix().contains("[retention]"), "{}", faults[0].fix());
        faults[0].code()
    };
    assert_eq!(one(Retention { backup_days: 36, ..good.clone() }), "retention.backup_above_gc");
    assert_eq!(one(Retention { tombstone_days: 34, ..good.clone() }), "retention.gc_above_tombstone");
    assert_eq!(one(Retention { version_days: 35, ..good.clone() }), "retention.versions_below_gc");
    assert_eq!(one(Retention { poll_and_fetch_s: 36 * 86_400, ..good.clone() }), "retention.poll_above_versions");
    assert_eq!(one(Retention { keep_roots: 1, ..good.clone() }), "retention.too_few_roots");
    // Each bound itself is allowed.
    let bounds =
        Retention { backup_days: 35, gc_days: 35, tombstone_days: 35, version_days: 36, keep_roots: 2, ..good };
    assert_eq!(Retention { poll_and_fetch_s: 36 * 86_400 - 1, ..bounds }.check(), []);
    let all = Retention {
        backup_days: 9,
        gc_days: 8,
        tombstone_days: 7,
        version_days: 0,
        keep_roots: 0,
        ..Retention::default()
    };
    assert_eq!(all.check().len(), 5);
    assert!(serde_json::from_str::<Retention>(r#"{"gc_dayz": 3}"#).is_err());
    assert_eq!(serde_json::from_str::<Retention>(r#"{"gc_days": 3}"#).unwrap().gc_days, 3);
}
