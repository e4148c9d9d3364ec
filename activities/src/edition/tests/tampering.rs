//! One thing changed in a sealed edition, and what the check says of it.

use std::fs;
use std::path::{Path, PathBuf};

use catalog_rules::manifest::{Manifest, Root};
use serde_json::Value;

use super::support::{SMALL, World, copy_tree};
use crate::digest::digest_file;
use crate::duck::{Access, LAKE, STORE, Session};
use crate::edition::testing::Synthetic;
use crate::edition::*;
use crate::fs::RealFs;

struct Case {
    world: World,
    origin: PathBuf,
}

impl Case {
    fn new() -> Self {
        let world = World::new();
        world.publish(1, None, &SMALL);
        let origin = world.dir.path().join("origin");
        copy_tree(&world.product(), &origin);
        Self { world, origin }
    }

    /// A fresh copy of the sealed edition, changed by `tamper`; what the check finds, as check and subject.
    fn findings(&self, at: Profile, tamper: impl FnOnce(&World)) -> Vec<(CheckName, String)> {
        fs::remove_dir_all(self.world.product()).unwrap();
        copy_tree(&self.origin, &self.world.product());
        tamper(&self.world);
        let report = self.world.check(1, at);
        report.findings.into_iter().map(|finding| (finding.check, finding.subject)).collect()
    }

    fn expect(&self, what: &str, tamper: impl FnOnce(&World), expected: &[(CheckName, &str)]) {
        let found = self.findings(Profile::Publish, tamper);
        for (check, subject) in expected {
            let is = |(name, about): &(CheckName, String)| name == check && about.contains(subject);
            assert!(found.iter().any(is), "{what}: expected {check:?} {subject}, found {found:?}");
        }
        if expected.is_empty() {
            assert_eq!(found, [], "{what}");
        }
    }

    /// The same for a change of the manifest; then nothing else than what is expected may be found.
    fn expect_of_manifest(&self, what: &str, edit: impl FnOnce(&mut Value), expected: &[(CheckName, &str)]) {
        let found = self.findings(Profile::Publish, |world| edit_manifest(world, edit));
        let matches = |(name, about): &(CheckName, String)| {
            expected.iter().any(|(check, subject)| name == check && about.contains(subject))
        };
        assert!(found.iter().all(matches), "{what}: found {found:?}, expected {expected:?}");
        for one in expected {
            let is = |(name, about): &(CheckName, String)| *name == one.0 && about.contains(one.1);
            assert!(found.iter().any(is), "{what}: found {found:?}, expected {one:?}");
        }
    }
}

fn edit_manifest(world: &World, edit: impl FnOnce(&mut Value)) {
    let path = world.edition(1).join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    edit(&mut manifest);
    fs::write(&path, serde_json::to_vec_pretty(&manifest).unwrap()).unwrap();
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

fn data_file(world: &World) -> PathBuf {
    let folder = world.product().join("data/codr/t99100001");
    fs::read_dir(folder).unwrap().next().unwrap().unwrap().path()
}

/// Makes the manifest's entries of the edition's folder those of the files as they are now.
fn list_again(world: &World) {
    let path = world.edition(1).join("manifest.json");
    let mut manifest = Manifest::decode(&fs::read(&path).unwrap()).unwrap();
    for file in manifest.files.iter_mut().filter(|file| file.root == Root::Edition) {
        let now = digest_file(&world.edition(1).join(&file.path)).unwrap();
        (file.size_bytes, file.digests) = (now.size_bytes, now.digests);
    }
    fs::write(&path, manifest.encode()).unwrap();
}

fn write_store(world: &World, sql: &str) {
    let session = Session::open(&world.duck, "tamper").unwrap();
    session.attach(&world.edition(1).join("metadata.duckdb"), STORE, Access::Write).unwrap();
    session.run("tamper", sql).unwrap();
    session.detach(STORE).unwrap();
    list_again(world);
}

fn write_lake(world: &World, sql: &str) {
    let session = Session::open(&world.duck, "tamper").unwrap();
    let lake = world.edition(1).join("tables.ducklake");
    session.attach_lake(&lake, &world.product().join("data"), Access::Write).unwrap();
    session.run("tamper", sql).unwrap();
    session.detach(LAKE).unwrap();
    list_again(world);
}

#[test]
fn files_that_are_not_as_they_are_listed() {
    use CheckName::*;
    let case = Case::new();
    let edition = |name: &'static str| move |world: &World| world.edition(1).join(name);
    let (store, lake, manifest) = (edition("metadata.duckdb"), edition("tables.ducklake"), edition("manifest.json"));
    case.expect("nothing", |_| {}, &[]);
    case.expect("a signature", |w| fs::write(w.edition(1).join("manifest.json.sig"), b"s").unwrap(), &[]);
    case.expect("a byte of the store", |w| flip(&store(w), 2_000_000), &[(Files, "metadata.duckdb")]);
    case.expect("a byte of the lake", |w| flip(&lake(w), 3_000_000), &[(Files, "tables.ducklake")]);
    case.expect("a byte of a data file", |w| flip(&data_file(w), 500), &[(Files, "data/codr/t99100001/")]);
    case.expect("a header", |w| flip(&lake(w), 9), &[(Files, "tables.ducklake"), (Lake, "tables.ducklake")]);
    case.expect(
        "a shorter lake",
        |w| fs::write(lake(w), &fs::read(lake(w)).unwrap()[..10_000]).unwrap(),
        &[(Files, "tables.ducklake"), (Lake, "tables.ducklake")],
    );
    case.expect(
        "no store",
        |w| fs::remove_file(store(w)).unwrap(),
        &[(Files, "metadata.duckdb"), (Bindings, "metadata.duckdb")],
    );
    case.expect(
        "no data file",
        |w| fs::remove_file(data_file(w)).unwrap(),
        &[(Files, "data/codr/t99100001/"), (Lake, "data/codr/t99100001/")],
    );
    case.expect(
        "a longer data file",
        |w| fs::write(data_file(w), [fs::read(data_file(w)).unwrap(), b"x".to_vec()].concat()).unwrap(),
        &[(Files, "data/codr/t99100001/"), (Lake, "data/codr/t99100001/")],
    );
    case.expect("another file", |w| fs::write(w.edition(1).join("notes.txt"), b"x").unwrap(), &[(Files, "notes.txt")]);
    case.expect(
        "a link",
        |w| std::os::unix::fs::symlink("metadata.duckdb", w.edition(1).join("link")).unwrap(),
        &[(Files, ".")],
    );
    case.expect("another data file", |w| fs::write(w.product().join("data/other.parquet"), b"x").unwrap(), &[]);
    for (name, check) in [("metadata.duckdb.wal", Bindings), ("tables.ducklake.wal", Lake)] {
        let log = |w: &World| fs::write(w.edition(1).join(name), b"").unwrap();
        case.expect(name, log, &[(Files, name), (check, name.trim_end_matches(".wal"))]);
    }
    case.expect("no manifest", |w| fs::remove_file(manifest(w)).unwrap(), &[(Manifest, "manifest.json")]);
    case.expect("half a manifest", |w| fs::write(manifest(w), b"{").unwrap(), &[(Manifest, "manifest.json")]);

    // Where the copy lands, data files are compared by size; where it is opened, everything is.
    assert_eq!(case.findings(Profile::Receive, |w| flip(&data_file(w), 500)), []);
    assert_ne!(case.findings(Profile::Receive, |w| flip(&store(w), 2_000_000)), []);
    assert_eq!(case.findings(Profile::Open, |w| flip(&store(w), 2_000_000)), []);
    assert_ne!(case.findings(Profile::Open, |w| fs::remove_file(store(w)).unwrap()), []);
    assert_eq!(case.findings(Profile::Open, |w| fs::remove_file(data_file(w)).unwrap()), []);
}

#[test]
fn fields_of_the_manifest_that_are_not_true() {
    use CheckName::*;
    let case = Case::new();
    let dataflow = Synthetic::dataflow();
    let flow = dataflow.as_str();
    case.expect_of_manifest("nothing", |_| {}, &[]);
    let manifest_fields: [(&str, Value, &str); 8] = [
        ("format_version", "2.0".into(), "manifest.json"),
        ("edition_id", Synthetic::edition_id(9).to_string().into(), "edition_id"),
        ("previous", Synthetic::edition_id(1).to_string().into(), "previous"),
        ("schema_version", "2.52".into(), "schema_version"),
        ("duckdb_storage_version", 998.into(), "duckdb_storage_version"),
        ("ducklake_spec_version", "9.0".into(), "ducklake_spec_version"),
        ("ducklake_version", Value::Null, "ducklake_version"),
        ("data_path", "/data/".into(), "data_path"),
    ];
    for (field, value, subject) in manifest_fields {
        case.expect_of_manifest(field, |m| m[field] = value, &[(Manifest, subject)]);
    }
    // The number that names no version: the files' headers do.
    case.expect_of_manifest("999", |m| m["duckdb_storage_version"] = 999.into(), &[]);
    case.expect_of_manifest(
        "an older format of the lake",
        |m| m["ducklake_spec_version"] = "0.3".into(),
        &[(Lake, "ducklake_spec_version")],
    );
    for digest in ["sha256", "md5", "crc32c"] {
        for (file, name) in [(0, "data/codr/t99100001/"), (1, "metadata.duckdb"), (2, "tables.ducklake")] {
            let edit = |m: &mut Value| {
                let digest = &mut m["files"][file]["digests"][digest];
                let length = digest.as_str().unwrap().len();
                *digest = "0".repeat(length).into();
            };
            case.expect_of_manifest(digest, edit, &[(Files, name)]);
        }
    }
    case.expect_of_manifest("a size", |m| m["files"][0]["size"] = 7.into(), &[(Files, "data/")]);
    case.expect_of_manifest(
        "a data file less",
        |m| drop(m["files"].as_array_mut().unwrap().remove(0)),
        &[(Lake, "data/")],
    );
    case.expect_of_manifest(
        "a number of rows",
        |m| {
            m["bindings"][0]["observations"] = 7.into();
            let fingerprint = m["bindings"][0]["fingerprint"].as_str().unwrap().split(':').next().unwrap().to_owned();
            m["bindings"][0]["fingerprint"] = format!("{fingerprint}:7").into();
        },
        &[(Bindings, flow), (Fingerprints, flow), (Fingerprints, "content_fingerprint")],
    );
    case.expect_of_manifest(
        "a dataflow",
        |m| m["bindings"][0]["dataflow"] = "urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=STC:DF_X(1.0)".into(),
        &[(Bindings, flow), (Bindings, "DF_X"), (Fingerprints, "content_fingerprint")],
    );
    case.expect_of_manifest(
        "a structural version",
        |m| m["bindings"][0]["structural_version"] = "urn:x".into(),
        &[(Bindings, flow)],
    );
    case.expect_of_manifest(
        "a table fingerprint",
        |m| m["bindings"][0]["fingerprint"] = format!("1:{}", SMALL.rows()).into(),
        &[(Fingerprints, flow), (Fingerprints, "content_fingerprint")],
    );
    case.expect_of_manifest(
        "a structure fingerprint",
        |m| m["bindings"][0]["structure_fingerprint"] = "0".repeat(64).into(),
        &[(Fingerprints, flow)],
    );
    case.expect_of_manifest(
        "an artefact fingerprint",
        |m| m["artefacts"][0]["fingerprint"] = "0".repeat(64).into(),
        &[(Fingerprints, "Codelist=STC:CL_GENDER"), (Fingerprints, "content_fingerprint")],
    );
    case.expect_of_manifest(
        "an artefact less",
        |m| drop(m["artefacts"].as_array_mut().unwrap().remove(0)),
        &[(Fingerprints, "Codelist=STC:CL_GENDER"), (Fingerprints, "content_fingerprint")],
    );
    case.expect_of_manifest(
        "a stability",
        |m| m["artefacts"][0]["stability"] = "semantic".into(),
        &[(Fingerprints, "Codelist=STC:CL_GENDER")],
    );
    case.expect_of_manifest(
        "a partial",
        |m| m["artefacts"][0]["partial"] = true.into(),
        &[(Fingerprints, "Codelist=STC:CL_GENDER")],
    );
    case.expect_of_manifest("a form", |m| m["canonical_form"] = "2".into(), &[(Fingerprints, "canonical_form")]);
    case.expect_of_manifest(
        "the content's fingerprint",
        |m| m["content_fingerprint"] = "0".repeat(64).into(),
        &[(Fingerprints, "content_fingerprint")],
    );
    case.expect_of_manifest(
        "a part of a fingerprint",
        |m| {
            let files = &mut m["extensions"]["jobctl"]["fingerprints"][flow]["files"];
            let part = files.as_object_mut().unwrap().values_mut().next().unwrap();
            *part = format!("5:{}", SMALL.rows()).into();
        },
        &[(Fingerprints, flow)],
    );
}

#[test]
fn databases_that_are_listed_as_they_are_and_hold_something_else() {
    use CheckName::*;
    let case = Case::new();
    let flow = Synthetic::dataflow();
    let flow = flow.as_str();
    case.expect("no change", |w| write_store(w, "SELECT 1"), &[]);
    case.expect(
        "a code less",
        |w| write_store(w, "DELETE FROM store.sdmx.code WHERE code_id = 'p'"),
        &[(Fingerprints, "CL_OBS_STATUS"), (Availability, flow)],
    );
    case.expect(
        "an availability of another number",
        |w| write_store(w, "UPDATE store.sdmx.availability SET observations = observations + 1"),
        &[(Availability, flow)],
    );
    case.expect(
        "a value less available",
        |w| write_store(w, "DELETE FROM store.sdmx.availability_value WHERE value = 'G1'"),
        &[(Availability, "GEO")],
    );
    case.expect("no binding", |w| write_store(w, "DELETE FROM store.sdmx.dataflow_binding"), &[(Bindings, flow)]);
    case.expect(
        "a reference to what is not there",
        |w| write_store(w, "UPDATE store.sdmx.artefact_ref SET target_urn = replace(target_urn, 'CL_GEO', 'CL_NONE')"),
        &[(References, "DSD_99100001")],
    );
    case.expect(
        "a deleted row",
        |w| write_lake(w, "DELETE FROM lake.codr.t99100001 WHERE GEO = 'G1' AND TIME_PERIOD = '2001'"),
        &[(Lake, "-delete.parquet"), (Bindings, flow), (Fingerprints, flow), (Availability, flow)],
    );
    case.expect(
        "a changed value",
        |w| write_lake(w, "UPDATE lake.codr.t99100001 SET OBS_VALUE = 0 WHERE GEO = 'G1' AND TIME_PERIOD = '2001'"),
        &[(Lake, ".parquet"), (Fingerprints, flow)],
    );
    case.expect("no table", |w| write_lake(w, "DROP TABLE lake.codr.t99100001"), &[(Bindings, "lake.codr.t99100001")]);
    case.expect(
        "rows in the catalog",
        |w| {
            write_lake(
                w,
                "CALL lake.set_option('data_inlining_row_limit', 100);
                 INSERT INTO lake.codr.t99100001 SELECT * REPLACE ('2099' AS TIME_PERIOD) FROM lake.codr.t99100001 LIMIT 1",
            );
        },
        &[(Lake, "tables.ducklake"), (Bindings, flow), (Fingerprints, flow)],
    );
}

#[test]
fn leaving_fingerprints_out_leaves_only_them_out() {
    let case = Case::new();
    let tools = case.world.tools(&RealFs);
    edit_manifest(&case.world, |m| m["bindings"][0]["structure_fingerprint"] = "0".repeat(64).into());
    let options = CheckOptions { fingerprints: false, ..CheckOptions::at(Profile::Publish) };
    let report = check(&tools, &case.world.edition(1), &options).unwrap();
    assert!(report.is_clean() && !report.checked.contains(&CheckName::Fingerprints), "{report:?}");
    let options = CheckOptions { fingerprints: true, ..CheckOptions::at(Profile::Receive) };
    let report = check(&tools, &case.world.edition(1), &options).unwrap();
    assert_eq!(report.findings.len(), 1, "{report:?}");
    assert!(report.findings[0].to_string().starts_with("fingerprints (edition §6): urn:"), "{}", report.findings[0]);
}
