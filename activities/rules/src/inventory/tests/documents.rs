use super::*;
use serde_json::json;

fn text(document: &impl Document) -> String {
    String::from_utf8(document.encode().unwrap()).unwrap()
}

/// Reads, and writes again byte for byte.
fn round<D: Document>(bytes: &str) -> D {
    let document = D::decode(bytes.as_bytes()).unwrap();
    assert_eq!(text(&document), bytes);
    document
}

fn fault<D: Document + std::fmt::Debug>(bytes: &str) -> String {
    D::decode(bytes.as_bytes()).unwrap_err().to_string()
}

const CATALOG_1: &str =
    r#"{"format_version":"1.0","catalog_id":"01a18e76-2bad-7480-abfe-2ba8a6889a45","restore_epoch":0}"#;
const CATALOG_2: &str = r#"{"format_version":"2.0","catalog_id":"01a18e76-2bad-7480-abfe-2ba8a6889a45","restore_epoch":3,"history":{"since_seq":7}}"#;

#[test]
fn catalog_json_is_written_and_read_in_both_majors() {
    let catalog: CatalogJson = round(CATALOG_1);
    assert_eq!(catalog, CatalogJson::new("01a18e76-2bad-7480-abfe-2ba8a6889a45".parse().unwrap()));
    catalog.admit_writer(WriterStage::One).unwrap();
    let catalog: CatalogJson = round(CATALOG_2);
    assert_eq!(catalog.history.as_ref().unwrap().since_seq.get(), 7);
    catalog.admit_writer(WriterStage::Two).unwrap();
    let refusal = catalog.admit_writer(WriterStage::One).unwrap_err();
    assert_eq!(refusal.code(), "catalog.expires");
    // A field of a newer minor survives.
    round::<CatalogJson>(&CATALOG_1.replace(r#""1.0""#, r#""1.7""#).replace('}', r#","note":{"a":1}}"#));
}

#[test]
fn catalog_json_against_its_rule_is_refused() {
    for (bytes, expected) in [
        (CATALOG_1.replace(r#""1.0""#, r#""3.0""#), "format 3.0, and this program reads major 1 and 2"),
        (CATALOG_1.replace(r#""1.0""#, r#""2.0""#), "format 2.0 without history"),
        (CATALOG_2.replace(r#""2.0""#, r#""1.0""#), "format 1.0 with history"),
        (CATALOG_1.replace("7480", "4480"), "a catalog id"),
        (CATALOG_1.replace("restore_epoch", "epoch"), "missing field `restore_epoch`"),
        (CATALOG_2.replace(":7", ":0"), "nonzero"),
        (r#"{"format_version":"9.0"}"#.to_owned(), "format 9.0"),
        (r#"{"format_version":1}"#.to_owned(), "not a valid catalog.json"),
        (r#"{"format_version":"1"}"#.to_owned(), "is not a format version"),
        (String::new(), "EOF"),
    ] {
        let found = fault::<CatalogJson>(&bytes);
        assert!(found.contains(expected) && found.starts_with("catalog §6.1"), "{found} for {bytes}");
    }
}

#[test]
fn current_is_a_hint_and_anything_else_is_none() {
    let bytes = format!(r#"{{"seq":42,"root_sha256":"{}","restore_epoch":1}}"#, "a".repeat(64));
    let current = Current::decode(bytes.as_bytes()).unwrap();
    assert_eq!(current.encode(), bytes.as_bytes());
    assert_eq!(current.seq.get(), 42);
    let far = bytes.replace("42", "9007199254740992");
    assert_eq!(Current::decode(far.as_bytes()).unwrap().seq.get(), 1 << 53);
    for bad in
        [String::new(), "{}".to_owned(), bytes.replace("42", "0"), bytes.replace("42", "-1"), bytes.replace('a', "A")]
    {
        assert_eq!(Current::decode(bad.as_bytes()), None, "{bad}");
    }
}

#[test]
fn history_is_read() {
    let bytes = r#"{"format_version":"1.0","catalog_id":"01a18e76-2bad-7480-abfe-2ba8a6889a45","restore_epoch":2,"expired_through":9,"newest_segment":null,"newest_segment_sha256":null,"cleaned_through":null}"#;
    assert_eq!(round::<History>(bytes).expired_through, 9);
    assert!(fault::<History>(&bytes.replace("1.0", "2.0")).contains("format 2.0"));
    assert!(
        fault::<History>(&bytes.replace(r#""newest_segment":null"#, r#""newest_segment":"x""#))
            .contains("both or neither")
    );
    assert!(fault::<History>(&bytes.replace(r#","cleaned_through":null"#, "")).contains("cleaned_through"));
}

/// The leaf and the root of a catalog with one product, as written by hand from *catalog* §6.2 and §6.3.
fn golden() -> (String, String, String) {
    let (e1, e2) = (edition(1), edition(2));
    let (m1, m2) = (manifest_sha256(1), manifest_sha256(2));
    let head = |e: &EditionId, previous: &str, state: &str, m: &Sha256Hex, at: &str| {
        format!(
            r#"{{"edition_id":"{e}","previous":{previous},"state":"{state}","manifest_sha256":"{m}","schema_version":"2.52","state_changed_at":"{at}","release_at":null"#
        )
    };
    let (at1, at2) = ("2026-10-09T12:30:00.413000Z", "2026-10-09T12:30:00.414000Z");
    let old_live = head(&e1, "null", "live", &m1, at1);
    let old = head(&e1, "null", "superseded", &m1, at2);
    let new = head(&e2, &format!("\"{e1}\""), "live", &m2, at2);
    let more = |artefacts: &str, n: u64| {
        format!(r#","artefacts":{artefacts},"dataflows":["urn:a","urn:b"],"pull_bytes":{}}}"#, n * 10)
    };
    let artefacts = r#"{"urn:full":{"fingerprint":"f1"}}"#;
    let leaf = |entries: &str| {
        format!(
            r#"{{"format_version":"1.2","product_id":"14100287","kind":"data","lifecycle":"revisable","editions":[{entries}]}}"#
        )
    };
    let before = leaf(&format!("{old_live}{}", more("{}", 1)));
    let after = leaf(&format!("{old}{},{new}{}", more("{}", 1), more(artefacts, 2)));
    let (from, to) = (Sha256Hex::of(before.as_bytes()), Sha256Hex::of(after.as_bytes()));
    let root = format!(
        r#"{{"format_version":"1.2","seq":3,"previous_inventory":2,"restore_epoch":0,"created_at":"{at2}","producer":{{"name":"jobctl","version":"0.1.0"}},"embargo":false,"products":{{"14100287":{{"leaf":"inventory/leaves/{to}.json","leaf_sha256":"{to}"}}}},"retired":[],"event":{{"actor":"tester@here","reason":"because","kind":"seal"}},"extensions":{{"jobctl":{{"format_version":"1.0","run_id":"run-1","step":"record"}}}},"previous_root_sha256":"@base","changes":[{{"product_id":"14100287","leaf_sha256":{{"from":"{from}","to":"{to}"}},"entries":[{{"edition_id":"{e1}","from":"live","to":"superseded","entry":{old}}}}},{{"edition_id":"{e2}","from":null,"to":"live","entry":{new}}}}}]}}]}}"#
    );
    (before, after, root)
}

#[test]
fn root_and_leaf_are_written_byte_for_byte() {
    let (before, after, root) = golden();
    let mut world = World::new(false);
    world.take(&record("14100287", 1, None));
    assert_eq!(text(world.leaves[&product("14100287")].as_ref()), before);
    let base = world.root_sha256.to_string();
    world.take(&holds(record("14100287", 2, Some(1)), &[("urn:full", "f1", None)]));
    assert_eq!(text(world.leaves[&product("14100287")].as_ref()), after);
    assert_eq!(text(&world.root), root.replace("@base", &base));
}

#[test]
fn version_1_is_written_byte_for_byte() {
    let section = json!({"format_version": "3", "description": {"title": {"en": "T"}}});
    let by = By { own_work: None, ..by() };
    let first = first_version(0, true, section.as_object().cloned(), &by, noon()).unwrap();
    assert_eq!(
        text(&first.root),
        r#"{"format_version":"1.2","seq":1,"previous_inventory":null,"restore_epoch":0,"created_at":"2026-10-09T12:30:00.412000Z","producer":{"name":"jobctl","version":"0.1.0"},"embargo":true,"products":{},"retired":[],"event":{"actor":"tester@here","reason":"because","kind":"describe"},"extensions":{"statcat":{"description":{"title":{"en":"T"}},"format_version":"3"}},"previous_root_sha256":null,"changes":[]}"#
    );
}

#[test]
fn created_at_is_the_fifth_field_and_within_the_first_kilobyte() {
    let (_, _, root) = golden();
    let keys: Vec<&str> = root.split("\":").take(5).map(|part| part.rsplit('"').next().unwrap()).collect();
    assert_eq!(keys, ["format_version", "seq", "previous_inventory", "restore_epoch", "created_at"]);
    assert!(root.find("created_at").unwrap() < 1024);
}

#[test]
fn what_a_newer_minor_adds_is_read_and_kept() {
    let (_, leaf, root) = golden();
    let root = root.replace("@base", &"b".repeat(64));
    round::<Root>(&root);
    let root = root.replace(r#""1.2""#, r#""1.9""#).replace(r#""kind":"seal""#, r#""kind":"search""#);
    let root = format!(r#"{},"zz":[1]}}"#, &root[..root.len() - 1]);
    let read: Root = round(&root);
    assert_eq!(read.event.kind, EventKind::Other("search".to_owned()));

    let leaf = leaf.replace(r#""pull_bytes":20}"#, r#""pull_bytes":20,"pool":"hot"}"#);
    let leaf = format!(r#"{},"pinned":true}}"#, &leaf[..leaf.len() - 1]);
    let mut read: Leaf = round(&leaf);
    assert_eq!(read.editions[1].other["pool"], "hot");
    // And a transition copies it.
    let mut world = World::new(false);
    world.take(&record("14100287", 1, None));
    world.take(&record("14100287", 2, Some(1)));
    read.editions[1].manifest_sha256 = manifest_sha256(2);
    world.leaves.insert(product("14100287"), Arc::new(read));
    world.take(&record("14100287", 3, Some(2)));
    let after = &world.leaves[&product("14100287")];
    assert_eq!(after.other["pinned"], true);
    assert_eq!(after.entry(&edition(2)).unwrap().other["pool"], "hot");
    assert_eq!(after.entry(&edition(2)).unwrap().state, EntryState::Superseded);
}

#[test]
fn a_root_without_history_fields_is_read() {
    let (_, _, root) = golden();
    let start = root.find(r#","previous_root_sha256""#).unwrap();
    let old = format!("{}}}", &root[..start]).replace(r#""1.2""#, r#""1.0""#);
    assert!(!round::<Root>(&old).has_history());
}

#[test]
fn a_root_against_a_rule_is_refused() {
    let (_, _, root) = golden();
    let root = root.replace("@base", &"b".repeat(64));
    let tombstone =
        format!(r#"{{"product_id":"p","edition_id":"{}","retired_at":"2026-10-09T12:30:00Z"}}"#, edition(9));
    let change = &root[root.find(r#"[{"product_id""#).unwrap()..root.len() - 1];
    let item = &change[1..change.len() - 1];
    for (from, to, expected) in [
        (r#""1.2""#, r#""2.0""#, "format 2.0, and this program reads major 1"),
        (r#""seq":3,"#, "", "missing field `seq`"),
        (r#""previous_inventory":2"#, r#""previous_inventory":3"#, "seq 3 built from 3"),
        (r#""previous_inventory":2"#, r#""previous_inventory":null"#, "seq 3 and no previous_inventory"),
        (r#""previous_inventory":2,"#, "", "missing field `previous_inventory`"),
        (r#""leaf":"inventory/leaves/"#, r#""leaf":"inventory/"#, "where leaf_sha256 gives"),
        (r#""previous_root_sha256":"#, r#""previous_root":"#, "one of previous_root_sha256 and changes"),
        (r#""changes":["#, r#""change":["#, "one of previous_root_sha256 and changes"),
        (&format!(r#""{}""#, "b".repeat(64)), "null", "previous_root_sha256 null"),
        (r#""retired":[]"#, &format!(r#""retired":[{tombstone},{tombstone}]"#), "an edition retired twice"),
        (r#""embargo":false"#, r#""embargo":null"#, "not a valid Inventory root"),
        ("2026-10-09T12:30:00.414000Z\",\"producer", "2026-10-09T12:30:00\",\"producer", "RFC 3339"),
        (change, &format!("[{item},{item}]"), "changes out of order"),
        (r#","to":"live""#, r#","to":"tombstone""#, "`entry` missing or too much"),
        (r#","to":"live""#, r#","to":"embargoed""#, "not what `to` says"),
        (r#""from":null,"#, "", "missing field `from`"),
        (r#""from":null"#, r#""from":"retired""#, "unknown variant"),
    ] {
        let bad = root.replacen(from, to, 1);
        assert_ne!(bad, root, "{from} is not in the root");
        let found = fault::<Root>(&bad);
        assert!(found.contains(expected), "{found}\nfor {from} -> {to}");
        assert!(found.starts_with("catalog §6."), "{found}");
    }
    let other_leaf = root.replacen(r#""to":""#, r#""to":"0"#, 1);
    assert!(fault::<Root>(&other_leaf).contains("SHA-256"), "one digit too many");
}

#[test]
fn a_leaf_against_a_rule_is_refused() {
    let (_, leaf, _) = golden();
    round::<Leaf>(&leaf);
    let (e1, e2) = (edition(1).to_string(), edition(2).to_string());
    for (from, to, expected) in [
        (r#""1.2""#, r#""2.1""#, "format 2.1"),
        (r#""kind":"data""#, r#""kind":"both""#, "unknown variant `both`"),
        (r#""state":"superseded""#, r#""state":"retired""#, "unknown variant `retired`"),
        (r#""state":"superseded""#, r#""state":"live""#, "two live editions of 14100287 at one schema version"),
        (r#""release_at":null"#, r#""release_at":"2026-10-09T12:30:00Z""#, "superseded edition"),
        (r#""release_at":null,"#, "", "missing field `release_at`"),
        (r#","pull_bytes":10"#, "", "one of dataflows and pull_bytes"),
        (r#""dataflows":["urn:a","urn:b"],"#, "", "one of dataflows and pull_bytes"),
        (r#"["urn:a","urn:b"]"#, r#"["urn:b","urn:a"]"#, "unsorted or repeated dataflows"),
        (r#"["urn:a","urn:b"]"#, r#"["urn:a","urn:a"]"#, "unsorted or repeated dataflows"),
        (r#""pull_bytes":10"#, r#""pull_bytes":-1"#, "invalid value: integer `-1`"),
        (&format!(r#""previous":"{e1}""#), &format!(r#""previous":"{e2}""#), "as its own previous"),
        (&format!(r#""edition_id":"{e1}""#), &format!(r#""edition_id":"{e2}""#), "out of order or twice"),
    ] {
        let bad = leaf.replacen(from, to, 1);
        assert_ne!(bad, leaf, "{from} is not in the leaf");
        let found = fault::<Leaf>(&bad);
        assert!(found.contains(expected), "{found}\nfor {from} -> {to}");
        assert!(found.starts_with("catalog §6."), "{found}");
    }
}

#[test]
fn schema_versions_are_ordered_by_their_numbers() {
    let ordered = ["2.9", "2.52-jobctl.1", "2.52-jobctl.2", "2.52-jobctl.10", "2.52", "2.52.1", "2.100", "10.0"];
    for (i, a) in ordered.iter().enumerate() {
        for (j, b) in ordered.iter().enumerate() {
            assert_eq!(SchemaVersion::new(*a).cmp(&SchemaVersion::new(*b)), i.cmp(&j), "{a} and {b}");
        }
    }
}

#[test]
fn every_kind_of_event_is_written_as_the_specification_says() {
    let kinds = [
        (EventKind::Seal, "seal"),
        (EventKind::Release, "release"),
        (EventKind::Rollback, "rollback"),
        (EventKind::Withdraw, "withdraw"),
        (EventKind::Retire, "retire"),
        (EventKind::Reinstate, "reinstate"),
        (EventKind::EmbargoChange, "embargo-change"),
        (EventKind::Restore, "restore"),
        (EventKind::Correct, "correct"),
        (EventKind::Describe, "describe"),
    ];
    for (kind, text) in kinds {
        assert_eq!(serde_json::to_value(&kind).unwrap(), text);
        assert_eq!(EventKind::from(text.to_owned()), kind);
    }
}

#[test]
fn an_entry_takes_from_the_manifest_what_the_specification_says() {
    use crate::manifest::Manifest;
    let sha = |text: &str| Sha256Hex::of(text.as_bytes());
    let urn = |class: &str, id: &str| format!("urn:sdmx:org.sdmx.infomodel.x.{class}=STC:{id}(1.0)");
    let file = |path: &str, root: &str, tier: &str, size: u64| {
        json!({"path": path, "size": size, "root": root, "tier": tier,
               "digests": {"sha256": sha(path), "md5": "0".repeat(32), "crc32c": "00000000"}})
    };
    let binding = |id: &str| {
        json!({"dataflow": urn("Dataflow", id), "observations": 1, "structural_version": urn("DataStructure", "D"),
               "fingerprint": "5:1", "structure_fingerprint": sha("s")})
    };
    let mut value = json!({
        "format_version": "3.0", "product_id": "p", "edition_id": edition(2), "previous": edition(1),
        "created_at": "2026-10-09T12:30:00.000000Z", "producer": {"name": "n", "version": "v"},
        "sdmxlib_version": "0+jobctl.0.1.0", "schema_version": "2.52", "duckdb_version": "1.5.5",
        "duckdb_storage_version": 68, "ducklake_version": null, "ducklake_spec_version": null, "data_path": "../data/",
        "files": [file("a.parquet", "data", "remote", 7), file("metadata.duckdb", "edition", "required", 100),
                  file("search/x", "edition", "lazy", 9), file("tables.ducklake", "edition", "required", 20)],
        "bindings": [binding("B"), binding("A")],
        "artefacts": [
            {"urn": urn("Codelist", "CL"), "stability": "semantic", "partial": true, "fingerprint": sha("p"), "partial_of": sha("f")},
            {"urn": urn("DataStructure", "D"), "stability": "semantic", "partial": false, "fingerprint": sha("d")}],
        "canonical_form": "1", "content_fingerprint": sha("c"),
    });
    let manifest: Manifest = serde_json::from_value(value.clone()).unwrap();
    let record = Record::from_manifest(&manifest, sha("m"), Some(Lifecycle::Final), None).unwrap();
    assert_eq!(record.kind, Kind::Data);
    assert_eq!(record.entry.pull_bytes, 120, "required files only");
    assert_eq!(record.entry.artefacts.len(), 2);
    assert_eq!(record.entry.artefacts[&urn("Codelist", "CL")].partial_of, Some(sha("f").to_string()));
    assert_eq!(record.entry.artefacts[&urn("DataStructure", "D")].partial_of, None);
    assert_eq!(record.content.value, Some(sha("c").to_string()));

    value["bindings"] = json!([]);
    let manifest: Manifest = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(Record::from_manifest(&manifest, sha("m"), None, None).unwrap().kind, Kind::Structure);
    value["artefacts"][0].as_object_mut().unwrap().remove("partial_of");
    let manifest: Manifest = serde_json::from_value(value).unwrap();
    let refusal = Record::from_manifest(&manifest, sha("m"), None, None).unwrap_err();
    assert_eq!(refusal.code(), "catalog.partial_without_base");
}
