use super::*;
use crate::shared;

const ID: &str = "01a18e76-2bad-7480-abfe-2ba8a6889a45";
const PREVIOUS: &str = "01a18e63-e292-7250-a332-b79d9b7a7efd";

fn file(root: Root, path: &str) -> EditionFile {
    EditionFile {
        path: path.to_owned(),
        size_bytes: 3,
        digests: Digests {
            sha256: Sha256Hex::of(path.as_bytes()),
            md5: "0".repeat(32),
            crc32c: "a".repeat(8),
            others: BTreeMap::new(),
        },
        root,
        tier: if root == Root::Data { Tier::Remote } else { Tier::Required },
        carried_from: None,
    }
}

fn manifest() -> Manifest {
    Manifest {
        format_version: FORMAT_VERSION.to_owned(),
        product_id: "14100287".parse().unwrap(),
        edition_id: ID.parse().unwrap(),
        previous: Some(PREVIOUS.parse().unwrap()),
        created_at: "2026-10-30T12:30:00.000000Z".parse().unwrap(),
        producer: Producer { name: "jobctl".to_owned(), version: "0.1.0".to_owned() },
        sdmxlib_version: "0+jobctl.0.1.0".to_owned(),
        schema_version: "2.52-jobctl.1".to_owned(),
        duckdb_version: "1.5.5".to_owned(),
        duckdb_storage_version: 68,
        ducklake_version: Some("d8a1881e".to_owned()),
        ducklake_spec_version: Some("1.0".to_owned()),
        data_path: DATA_PATH.to_owned(),
        files: vec![
            EditionFile { carried_from: Some(PREVIOUS.parse().unwrap()), ..file(Root::Data, "codr/t/a.parquet") },
            file(Root::Edition, STORE_NAME),
            file(Root::Edition, LAKE_NAME),
        ],
        bindings: vec![BindingCount {
            dataflow: "urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=STC:DF_1(1.0)".to_owned(),
            observations: 7,
            structural_version: "urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=STC:DSD_1(1.0)".to_owned(),
            fingerprint: TableFingerprint { sum: 12, rows: 7 },
            structure_fingerprint: Sha256Hex::of(b"s"),
        }],
        artefacts: vec![ArtefactEntry {
            urn: "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_GEO(1.0)".to_owned(),
            stability: Stability::Legacy,
            partial: true,
            fingerprint: Sha256Hex::of(b"a"),
            partial_of: Some(Sha256Hex::of(b"full")),
        }],
        canonical_form: CANONICAL_FORM.to_owned(),
        content_fingerprint: Some(Sha256Hex::of(b"c")),
        producer_fields: Map::new(),
        extensions: BTreeMap::new(),
        provenance: None,
    }
}

fn edited(edit: impl FnOnce(&mut Value)) -> Result<Manifest, ManifestError> {
    let mut value: Value = serde_json::from_slice(&manifest().encode()).unwrap();
    edit(&mut value);
    Manifest::decode(&serde_json::to_vec(&value).unwrap())
}

#[test]
fn a_manifest_survives_the_way_through_its_bytes() {
    let written = manifest();
    assert_eq!(Manifest::decode(&written.encode()).unwrap(), written);
    let text = String::from_utf8(written.encode()).unwrap();
    assert!(text.starts_with("{\n  \"format_version\": \"3.0\",\n  \"product_id\": \"14100287\""), "{text}");
    assert!(text.contains("\"size\": 3") && text.contains("\"tier\": \"remote\""), "{text}");
    assert!(text.contains("\"provenance\": null") && text.ends_with("}\n"), "{text}");
}

#[test]
fn fields_of_a_later_minor_version_are_ignored() {
    let read = edited(|m| {
        m["format_version"] = "3.7".into();
        m["new_top"] = 1.into();
        m["files"][0]["new"] = true.into();
        m["files"][0]["digests"]["sha512"] = "ff".into();
        m["bindings"][0]["new"] = Value::Null;
        m["artefacts"][0]["new"] = Value::Null;
        m["producer"]["new"] = Value::Null;
    })
    .unwrap();
    assert_eq!(read.format_version, "3.7");
    assert_eq!(read.files[0].digests.others["sha512"], "ff", "a digest that is not known is carried");
}

#[test]
fn a_required_field_cannot_be_left_out_and_an_optional_one_can() {
    let value: Value = serde_json::from_slice(&manifest().encode()).unwrap();
    let optional = ["content_fingerprint", "producer_fields", "extensions", "provenance"];
    for field in value.as_object().unwrap().keys() {
        let without = edited(|m| {
            m.as_object_mut().unwrap().remove(field);
        });
        let null = edited(|m| m[field] = Value::Null);
        let may_be_null = ["previous", "ducklake_version", "ducklake_spec_version"];
        assert_eq!(without.is_ok(), optional.contains(&field.as_str()), "{field}: {without:?}");
        if !may_be_null.contains(&field.as_str()) {
            assert_eq!(null.is_ok(), optional.contains(&field.as_str()), "{field}: {null:?}");
        }
    }
    for (list, field) in [
        ("files", "path"),
        ("files", "size"),
        ("files", "digests"),
        ("files", "root"),
        ("files", "tier"),
        ("bindings", "dataflow"),
        ("bindings", "observations"),
        ("bindings", "structural_version"),
        ("bindings", "fingerprint"),
        ("bindings", "structure_fingerprint"),
        ("artefacts", "urn"),
        ("artefacts", "stability"),
        ("artefacts", "partial"),
        ("artefacts", "fingerprint"),
    ] {
        let without = edited(|m| {
            m[list][0].as_object_mut().unwrap().remove(field);
        });
        assert!(matches!(without, Err(ManifestError::Shape { .. })), "{list}.{field}: {without:?}");
    }
    for digest in ["sha256", "md5", "crc32c"] {
        let without = edited(|m| {
            m["files"][0]["digests"].as_object_mut().unwrap().remove(digest);
        });
        assert!(matches!(without, Err(ManifestError::Shape { .. })), "{digest}: {without:?}");
    }
}

#[test]
fn another_major_version_and_no_version_are_refused() {
    for found in ["2.0", "2.1", "4.0", "30.0"] {
        let refused = edited(|m| m["format_version"] = found.into());
        assert!(matches!(refused, Err(ManifestError::OtherMajor { .. })), "{found}: {refused:?}");
    }
    for found in [Value::from("3"), Value::from("x.0"), Value::from(3), Value::Null] {
        let refused = edited(|m| m["format_version"] = found.clone());
        assert!(matches!(refused, Err(ManifestError::BadFormatVersion { .. })), "{found}: {refused:?}");
    }
    // The version decides before the fields do: a document of another format is told apart, not picked at.
    assert!(matches!(Manifest::decode(br#"{"bundle_id": "x"}"#), Err(ManifestError::NoFormatVersion)));
    assert!(matches!(Manifest::decode(br#"{"format_version": "2.0"}"#), Err(ManifestError::OtherMajor { .. })));
    assert!(matches!(Manifest::decode(b"[]"), Err(ManifestError::NotJson { .. })));
    assert!(matches!(Manifest::decode(b"{"), Err(ManifestError::NotJson { .. })));
}

#[test]
fn each_contradiction_is_named() {
    type Edit = fn(&mut Manifest);
    let cases: &[(&str, Edit)] = &[
        ("previous", |m| m.previous = Some(m.edition_id.clone())),
        ("data_path", |m| m.data_path = "/srv/data/".to_owned()),
        ("canonical_form", |m| m.canonical_form.clear()),
        ("files", |m| m.files.swap(1, 2)),
        ("files", |m| m.files.push(m.files[2].clone())),
        ("files[data:../x].path", |m| m.files[0].path = "../x".to_owned()),
        ("files[data:/x].path", |m| m.files[0].path = "/x".to_owned()),
        ("files[data:a//x].path", |m| m.files[0].path = "a//x".to_owned()),
        ("files[data:a\\x].path", |m| m.files[0].path = "a\\x".to_owned()),
        ("files[data:c:x].path", |m| m.files[0].path = "c:x".to_owned()),
        ("files[edition:manifest.json]", |m| m.files.insert(1, file(Root::Edition, MANIFEST_NAME))),
        ("files[edition:manifest.json.sig]", |m| m.files.insert(1, file(Root::Edition, SIGNATURE_NAME))),
        ("files[edition:metadata.duckdb].carried_from", |m| m.files[1].carried_from = m.previous.clone()),
        ("files[data:codr/t/a.parquet].tier", |m| m.files[0].tier = Tier::Lazy),
        ("files[data:codr/t/a.parquet].digests.md5", |m| m.files[0].digests.md5 = "0".repeat(31)),
        ("files[data:codr/t/a.parquet].digests.crc32c", |m| m.files[0].digests.crc32c = "A".repeat(8)),
        ("files", |m| drop(m.files.remove(1))),
        ("files", |m| {
            m.files.remove(2);
            (m.ducklake_version, m.ducklake_spec_version) = (None, None);
        }),
        ("ducklake_version", |m| m.ducklake_version = None),
        ("ducklake_spec_version", |m| {
            m.files = vec![file(Root::Edition, STORE_NAME)];
            m.bindings.clear();
            m.ducklake_version = None;
        }),
        ("bindings", |m| m.bindings.push(m.bindings[0].clone())),
        ("bindings[urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=STC:DF_1(1.0)].fingerprint", |m| {
            m.bindings[0].observations = 8;
        }),
        ("artefacts", |m| m.artefacts.push(m.artefacts[0].clone())),
        ("artefacts[urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_GEO(1.0)].partial_of", |m| {
            m.artefacts[0].partial = false;
        }),
    ];
    assert_eq!(manifest().validate(), []);
    for (field, edit) in cases {
        let mut broken = manifest();
        edit(&mut broken);
        let problems = broken.validate();
        assert_eq!(problems.iter().map(|p| p.field.as_str()).collect::<Vec<_>>(), [*field]);
        assert!(matches!(Manifest::decode(&broken.encode()), Err(ManifestError::Invalid { .. })), "{field}");
    }
}

#[test]
fn an_edition_without_observations_needs_no_lake() {
    let mut structures = manifest();
    structures.files = vec![file(Root::Edition, STORE_NAME)];
    structures.bindings.clear();
    (structures.ducklake_version, structures.ducklake_spec_version) = (None, None);
    assert_eq!(structures.validate(), []);
}

#[test]
fn sorting_gives_the_specified_order() {
    let mut shuffled = manifest();
    shuffled.files.reverse();
    shuffled.files.push(file(Root::Data, "a/a/0.parquet"));
    shuffled.artefacts.insert(0, ArtefactEntry { urn: "urn:z".to_owned(), ..shuffled.artefacts[0].clone() });
    shuffled.sort();
    assert_eq!(shuffled.validate(), []);
    let paths: Vec<_> = shuffled.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["a/a/0.parquet", "codr/t/a.parquet", STORE_NAME, LAKE_NAME]);
}

#[test]
fn the_section_of_this_program_is_read_back_and_another_format_is_not() {
    let parts = TableParts {
        table: "codr.t1".to_owned(),
        columns: Sha256Hex::of(b"columns"),
        duckdb_version: "v1.5.5".to_owned(),
        canonical_form: CANONICAL_FORM.to_owned(),
        files: BTreeMap::from([("codr/t1/a.parquet".to_owned(), TableFingerprint { sum: u128::MAX, rows: 3 })]),
    };
    let section = JobctlExtension {
        format_version: EXTENSION_FORMAT.to_owned(),
        fingerprints: BTreeMap::from([("urn:df".to_owned(), parts)]),
    };
    let mut with = manifest();
    with.extensions.insert(EXTENSION_NAME.to_owned(), section.write());
    let read = Manifest::decode(&with.encode()).unwrap();
    assert_eq!(read.jobctl(), Some(section));
    with.extensions.get_mut(EXTENSION_NAME).unwrap().insert("format_version".to_owned(), "2.0".into());
    assert_eq!(with.jobctl(), None);
    assert_eq!(manifest().jobctl(), None);
}

#[test]
fn entries_of_the_reference_manifests_are_read_and_give_its_content_fingerprint() {
    for product in ["tiny", "statcan_1"] {
        let Some(folder) = shared::shared(&format!("vectors/fingerprints/{product}")) else { return };
        let reference: Value =
            serde_json::from_slice(&std::fs::read(folder.join("bundle.manifest.json")).unwrap()).unwrap();
        let read = Manifest {
            artefacts: serde_json::from_value(reference["artefacts"].clone()).unwrap(),
            bindings: serde_json::from_value(reference["bindings"].clone()).unwrap(),
            ..manifest()
        };
        assert!(!read.artefacts.is_empty() && !read.bindings.is_empty());
        assert_eq!(read.validate(), []);
        assert_eq!(read.computed_content_fingerprint().as_str(), reference["content_fingerprint"]);
        for entry in &read.artefacts {
            let version = entry.urn.rsplit_once('(').unwrap().1.trim_end_matches(')');
            assert_eq!(Stability::of(version), entry.stability, "{}", entry.urn);
        }
    }
}
