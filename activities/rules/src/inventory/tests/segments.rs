//! History segments, registrations and the rest of the documents.

use super::*;
use serde_json::json;

fn line(n: u64, world: &World) -> SegmentLine {
    let at = world.past.iter().find(|(root, ..)| root.seq.get() == n).unwrap();
    SegmentLine::of(&at.0, at.1.clone())
}

/// The segment of versions 1 to 3 of a catalog, as an expiry writes it.
fn segment() -> (World, Segment) {
    let mut world = World::new(false);
    for n in 1..=4 {
        world.publish(record("p", n, n.checked_sub(1).filter(|n| *n > 0)));
    }
    let header = SegmentHeader {
        format_version: FormatVersion { major: 1, minor: 0 },
        catalog_id: "01a18e76-2bad-7480-abfe-2ba8a6889a45".parse().unwrap(),
        kind: SegmentKind::Expiry,
        restore_epoch: 0,
        first: Seq::FIRST,
        last: Seq::new(3).unwrap(),
        previous_segment: None,
        previous_segment_sha256: None,
        expired_at: noon(),
        actor: "release-job@stc".to_owned(),
        roots: (1..=3).map(|n| Seq::new(n).unwrap()).collect(),
        leaves: vec![Sha256Hex::of(b"leaf")],
        unread: vec![],
        other: Map::new(),
    };
    let lines = (1..=3).map(|n| line(n, &world)).collect();
    (world, Segment { header, lines })
}

#[test]
fn a_segment_is_lines_of_compact_json_in_the_order_of_the_root() {
    let (world, segment) = segment();
    let bytes = segment.encode().unwrap();
    assert_eq!(Segment::decode(&bytes).unwrap(), segment);
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.ends_with("}\n") && text.lines().count() == 4);
    let leaf = Sha256Hex::of(b"leaf");
    assert_eq!(
        text.lines().next().unwrap(),
        format!(
            r#"{{"format_version":"1.0","catalog_id":"01a18e76-2bad-7480-abfe-2ba8a6889a45","kind":"expiry","restore_epoch":0,"first":1,"last":3,"previous_segment":null,"previous_segment_sha256":null,"expired_at":"{}","actor":"release-job@stc","roots":[1,2,3],"leaves":["{leaf}"],"unread":[]}}"#,
            noon()
        )
    );
    // A line is its root without products and retired, and the hash of the root's bytes at its end.
    let (root, sha256, _) = &world.past[1];
    let root = String::from_utf8(root.encode().unwrap()).unwrap();
    let start = root.find(r#""products":"#).unwrap();
    let end = root.find(r#""event":"#).unwrap();
    let expected = format!(r#"{}{},"root_sha256":"{sha256}"}}"#, &root[..start], &root[end..root.len() - 1]);
    assert_eq!(text.lines().nth(2).unwrap(), expected);
}

#[test]
fn a_segment_that_is_not_whole_is_refused() {
    let (world, good) = segment();
    let text = String::from_utf8(good.encode().unwrap()).unwrap();
    for (bad, expected) in [
        (text.trim_end().to_owned(), "no newline at its end"),
        (format!("{text}\n"), "not a valid line"),
        (text.lines().take(3).map(|line| format!("{line}\n")).collect(), "other roots than its header names"),
        (text.replacen("\"1.0\"", "\"2.0\"", 1), "format 2.0"),
        (text.replacen("\"last\":3", "\"last\":4", 1), "first and last"),
        (text.replacen("\"unread\":[]", "\"unread\":[2]", 1), "unread roots in an expiry"),
        (text.replacen("\"previous_segment\":null", "\"previous_segment\":\"x\"", 1), "both or neither"),
        (text.replacen("[1,2,3]", "[1,3,2]", 1), "out of order"),
        (text.replacen("\"restore_epoch\":0", "\"restore_epoch\":1", 1), "another restore_epoch"),
        (text.replacen("\"previous_root_sha256\":null", "\"x\":null", 1), "both or neither"),
        (String::new(), "no newline"),
    ] {
        assert_ne!(bad, text);
        let found = Segment::decode(bad.as_bytes()).unwrap_err().to_string();
        assert!(found.contains(expected) && found.starts_with("catalog §6.9"), "{found}: {expected}");
    }
    let restore =
        SegmentHeader { kind: SegmentKind::Restore, unread: vec![Seq::new(2).unwrap()], ..good.header.clone() };
    let lines = vec![line(1, &world), line(3, &world)];
    let with_leaves = Segment { header: restore.clone(), lines: lines.clone() };
    assert!(with_leaves.encode().unwrap_err().to_string().contains("leaves in a restore"));
    let mut old = lines;
    (old[1].changes, old[1].previous_root_sha256) = (None, None);
    let restore = Segment { header: SegmentHeader { leaves: vec![], ..restore }, lines: old.clone() };
    assert_eq!(Segment::decode(&restore.encode().unwrap()).unwrap(), restore, "unread roots have no line");
    let header = SegmentHeader { roots: vec![Seq::FIRST, Seq::new(3).unwrap()], ..good.header };
    let expiry = Segment { header, lines: old };
    assert!(expiry.encode().unwrap_err().to_string().contains("history fields in every line of an expiry"));
}

#[test]
fn a_registration_is_written_and_read_as_specified() {
    let record = Record { release_at: Some(noon()), ..record("p", 2, Some(1)) };
    let pending = registration(&record).pending;
    let text = String::from_utf8(pending.encode().unwrap()).unwrap();
    assert_eq!(
        text,
        format!(
            r#"{{"format_version":"1.0","product_id":"p","edition_id":"{}","previous":"{}","manifest_sha256":"{}","release_at":"{}","kind":"data","lifecycle":null,"structure_source":null,"supersedes":null,"actor":"publisher@build","reason":"monthly"}}"#,
            edition(2),
            edition(1),
            manifest_sha256(2),
            noon()
        )
    );
    assert_eq!(PendingRegistration::decode(text.as_bytes()).unwrap(), pending);
    let with_more = text.replace("\"1.0\"", "\"1.4\"").replace(r#""monthly"}"#, r#""monthly","more":[1]}"#);
    let read = PendingRegistration::decode(with_more.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(read.encode().unwrap()).unwrap(), with_more);
    for (from, to, expected) in [
        ("\"1.0\"", "\"2.0\"", "format 2.0"),
        ("\"supersedes\":null,", "", "missing field `supersedes`"),
        ("\"kind\":\"data\"", "\"kind\":\"x\"", "unknown variant"),
        (&format!("\"previous\":\"{}\"", edition(1)), &format!("\"previous\":\"{}\"", edition(2)), "its own previous"),
    ] {
        let bad = text.replace(from, to);
        assert_ne!(bad, text);
        let found = PendingRegistration::decode(bad.as_bytes()).unwrap_err().to_string();
        assert!(found.contains(expected) && found.starts_with("catalog §11.2"), "{found}: {expected}");
    }
}

#[test]
fn a_registration_without_a_sound_manifest_is_refused_when_it_is_folded() {
    let pending = registration(&record("p", 1, None)).pending;
    let code = |bytes: Option<&[u8]>| Registration::new(pending.clone(), bytes).record.unwrap_err().code;
    assert_eq!(code(None), "catalog.manifest_missing");
    assert_eq!(code(Some(b"{}")), "catalog.manifest_unreadable");
    let world = World::new(true);
    let inbox = Operation::Fold(vec![Registration::new(pending.clone(), None)]);
    assert_eq!(world.is_done(&inbox).refused[0].code, "catalog.manifest_missing");

    let sha = |text: &str| Sha256Hex::of(text.as_bytes());
    let manifest = json!({
        "format_version": "3.0", "product_id": "p", "edition_id": edition(1), "previous": null,
        "created_at": "2026-10-09T12:30:00.000000Z", "producer": {"name": "n", "version": "v"},
        "sdmxlib_version": "0", "schema_version": "2.52", "duckdb_version": "1.5.5", "duckdb_storage_version": 68,
        "ducklake_version": null, "ducklake_spec_version": null, "data_path": "../data/",
        "files": [{"path": "metadata.duckdb", "size": 9, "root": "edition", "tier": "required",
                   "digests": {"sha256": sha("m"), "md5": "0".repeat(32), "crc32c": "00000000"}}],
        "bindings": [], "artefacts": [], "canonical_form": "1", "content_fingerprint": sha("artefacts:bindings:"),
    });
    let mut manifest: crate::manifest::Manifest = serde_json::from_value(manifest).unwrap();
    manifest.content_fingerprint = Some(manifest.computed_content_fingerprint());
    let bytes = manifest.encode();
    let source = Map::from_iter([("registry".to_owned(), json!("FMR"))]);
    let full = PendingRegistration {
        manifest_sha256: Sha256Hex::of(&bytes),
        kind: Kind::Structure,
        lifecycle: Some(Lifecycle::Final),
        structure_source: Some(source.clone()),
        release_at: Some(noon()),
        ..pending
    };
    let registration = Registration::new(full, Some(&bytes));
    let record = registration.record.clone().unwrap();
    assert_eq!(record.entry.structure_source, Some(source));
    assert_eq!(
        (record.lifecycle, record.release_at, record.kind),
        (Some(Lifecycle::Final), Some(noon()), Kind::Structure)
    );
    let mut world = World::new(true);
    let facts = Facts { manifests: BTreeMap::from([(edition(1), ManifestFacts::of(&bytes))]), ..Facts::default() };
    let decision = plan(&world.base(), 0, &Operation::Fold(vec![registration]), &facts, &by(), noon()).unwrap();
    let Decision::Write(version) = decision else { panic!("{decision:?}") };
    world.apply(*version);
    assert_eq!(world.leaves[&product("p")].editions[0].structure_source.as_ref().unwrap()["registry"], "FMR");
}
