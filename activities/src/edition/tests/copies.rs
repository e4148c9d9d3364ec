//! Copies of an edition, and editions read elsewhere by another process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use catalog_rules::manifest::Tier;

use super::support::{SMALL, World, copy_tree, snapshot};
use crate::duck::{DuckSettings, Session};
use crate::edition::testing::Synthetic;
use crate::edition::*;
use crate::fs::RealFs;
use crate::fs::testing::RecordingFs;

const ALL: [Tier; 3] = [Tier::Required, Tier::Lazy, Tier::Remote];
const MOVED: &str = "JOBCTL_TEST_MOVED_EDITION";

#[test]
fn child_that_reads_a_moved_edition() {
    let Some(edition) = std::env::var_os(MOVED).map(PathBuf::from) else { return };
    let scratch = tempfile::tempdir().unwrap();
    let session = Session::open(&DuckSettings::new(scratch.path().to_owned()), "reader").unwrap();
    // As a reader that knows nothing of this program would: DuckDB, the extension, the two databases.
    let data = edition.parent().unwrap().join("data");
    session
        .run(
            "attach",
            &format!(
                "ATTACH 'ducklake:{0}/tables.ducklake' AS l (READ_ONLY, DATA_PATH '{1}/', OVERRIDE_DATA_PATH true);
                 ATTACH '{0}/metadata.duckdb' AS m (READ_ONLY)",
                edition.display(),
                data.display()
            ),
        )
        .unwrap();
    let (rows, sum, files): (u64, String, u64) = session
        .row(
            "read",
            &format!(
                "SELECT count(*), (sum(OBS_VALUE) * 100)::BIGINT::VARCHAR,
                   count(DISTINCT filename) FILTER (WHERE starts_with(filename, '{}/'))
                 FROM l.codr.t99100001",
                data.display()
            ),
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .unwrap();
    assert_eq!((rows, sum), (SMALL.rows(), SMALL.sum_in_hundredths().to_string()));
    assert_eq!(files, 1, "the rows came from elsewhere than the copy");
    let codes: u64 = session.row("read", "SELECT count(*) FROM m.sdmx.code", |row| row.get(0)).unwrap();
    assert_eq!(codes, SMALL.members + SMALL.products + 2 + 2);
    println!("read {rows} rows");
}

#[test]
fn a_moved_product_is_read_by_another_process_and_does_not_change() {
    let world = World::new();
    world.publish(1, None, &SMALL);
    let moved = world.dir.path().join("moved");
    copy_tree(&world.product(), &moved);
    // The original is gone, so that nothing can be read from there.
    fs::remove_dir_all(world.product()).unwrap();
    let before = snapshot(&moved);
    for _ in 0..2 {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "edition::tests::copies::child_that_reads_a_moved_edition", "--nocapture"])
            .env(MOVED, moved.join(Synthetic::edition_id(1).as_str()))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{text}{}", String::from_utf8_lossy(&child.stderr));
        assert!(text.contains(&format!("read {} rows", SMALL.rows())), "{text}");
    }
    assert_eq!(snapshot(&moved), before, "reading changed a byte");
    let moved_edition = moved.join(Synthetic::edition_id(1).as_str());
    let report = check(&world.tools(&RealFs), &moved_edition, &CheckOptions::at(Profile::Publish)).unwrap();
    assert_eq!(report.findings, []);
}

#[test]
fn the_catalog_says_nothing_of_where_it_was_built() {
    let world = World::new();
    world.publish(1, None, &SMALL);
    for name in ["tables.ducklake", "metadata.duckdb", "manifest.json"] {
        let bytes = fs::read(world.edition(1).join(name)).unwrap();
        let place = world.dir.path().to_str().unwrap().as_bytes().to_vec();
        assert!(!bytes.windows(place.len()).any(|window| window == place), "{name} holds the build's path");
    }
}

fn destination(world: &World) -> PathBuf {
    world.dir.path().join("mirror/99100001").join(Synthetic::edition_id(1).as_str())
}

fn copy_to(world: &World, to: &Path, tiers: &[Tier]) -> Result<Copied, EditionError> {
    copy(&world.tools(&RealFs), &world.edition(1), to, tiers)
}

#[test]
fn a_copy_brings_every_file_then_the_signature_then_the_manifest() {
    let world = World::new();
    world.publish(1, None, &SMALL);
    fs::write(world.edition(1).join("manifest.json.sig"), b"signed").unwrap();
    let to = destination(&world);
    let recording = RecordingFs::new();
    let copied = copy(&world.tools(&recording), &world.edition(1), &to, &ALL).unwrap();
    assert_eq!((copied.copied_files, copied.kept_files), (3, 0));
    let calls = recording.calls();
    let of_last = |operation: &str, end: &str| {
        let is = |path: &str| path.ends_with(end);
        calls
            .iter()
            .rposition(|call| call.operation == operation && (is(&call.path) || call.to.as_deref().is_some_and(is)))
    };
    let signature = of_last("rename", "manifest.json.sig").unwrap();
    let manifest = of_last("rename_new", "manifest.json").unwrap();
    assert!(signature < manifest);
    for name in [".parquet", "metadata.duckdb", "tables.ducklake"] {
        assert!(of_last("fsync_file", name).unwrap() < signature, "{name}");
    }
    for folder in ["99100001", "data", "data/codr", "data/codr/t99100001"] {
        let folder =
            to.parent().unwrap().parent().unwrap().join("99100001").join(folder.trim_start_matches("99100001"));
        let made = folder.display().to_string();
        let made = made.trim_end_matches('/');
        assert!(Path::new(made).is_dir(), "{made}");
    }
    assert_eq!(calls.last().map(|call| call.operation), Some("fsync_dir"));
    let strip = |snapshot: std::collections::BTreeMap<String, _>| {
        snapshot.into_iter().filter(|(name, _)| !name.starts_with("journal/")).collect::<Vec<_>>()
    };
    assert_eq!(strip(snapshot(to.parent().unwrap())), strip(snapshot(&world.product())));
    let report = check(&world.tools(&RealFs), &to, &CheckOptions::at(Profile::Receive)).unwrap();
    assert_eq!(report.findings, []);
    let again = copy_to(&world, &to, &ALL).unwrap();
    assert_eq!((again.copied_files, again.kept_files), (0, 3));
}

#[test]
fn a_copy_that_failed_at_any_call_is_completed_by_the_next() {
    let world = World::new();
    world.publish(1, None, &SMALL);
    let to = destination(&world);
    let mut failed = 0;
    loop {
        let _ = fs::remove_dir_all(to.parent().unwrap());
        let failing = RecordingFs::failing_at(failed);
        if copy(&world.tools(&failing), &world.edition(1), &to, &ALL).is_ok() {
            break;
        }
        let sealed = to.join("manifest.json").exists();
        assert!(!sealed || failing.calls().last().is_some_and(|call| call.operation == "fsync_dir"), "call {failed}");
        copy_to(&world, &to, &ALL).unwrap();
        let report = check(&world.tools(&RealFs), &to, &CheckOptions::at(Profile::Publish)).unwrap();
        assert_eq!(report.findings, [], "call {failed}");
        failed += 1;
    }
    assert!(failed > 12, "only {failed} calls were failed");
}

#[test]
fn a_copy_of_some_tiers_is_added_to_and_the_list_names_what_it_needs() {
    let world = World::new();
    let (_, sealed) = world.publish(1, None, &SMALL);
    let id = Synthetic::edition_id(1);
    let local = files(&sealed.manifest, &[Tier::Required, Tier::Lazy]);
    assert_eq!(local, [format!("{id}/metadata.duckdb"), format!("{id}/tables.ducklake")]);
    let all = files(&sealed.manifest, &ALL);
    assert!(all[0].starts_with("data/codr/t99100001/ducklake-") && all.len() == 3, "{all:?}");
    let to = destination(&world);
    copy_to(&world, &to, &[Tier::Required, Tier::Lazy]).unwrap();
    let report = check(&world.tools(&RealFs), &to, &CheckOptions::at(Profile::Receive)).unwrap();
    assert!(report.findings.iter().any(|finding| finding.detail == FindingDetail::Missing), "{report:?}");
    let report = check(&world.tools(&RealFs), &to, &CheckOptions::at(Profile::Open)).unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(copy_to(&world, &to, &ALL).unwrap().copied_files, 1);
    let report = check(&world.tools(&RealFs), &to, &CheckOptions::at(Profile::Receive)).unwrap();
    assert_eq!(report.findings, []);
}

#[test]
fn a_damaged_file_is_not_copied_and_another_edition_is_not_overwritten() {
    let world = World::new();
    world.publish(1, None, &SMALL);
    let to = destination(&world);
    fs::create_dir_all(&to).unwrap();
    fs::write(to.join("manifest.json"), b"{}").unwrap();
    assert!(matches!(copy_to(&world, &to, &ALL), Err(EditionError::CopyTaken { .. })));
    fs::remove_file(to.join("manifest.json")).unwrap();
    let store = world.edition(1).join("metadata.duckdb");
    let mut bytes = fs::read(&store).unwrap();
    bytes[100_000] ^= 1;
    fs::write(&store, bytes).unwrap();
    assert!(matches!(copy_to(&world, &to, &ALL), Err(EditionError::CopyDiffers { .. })));
    assert!(!to.join("manifest.json").exists() && !to.join("metadata.duckdb").exists());
    let unsealed = world.dir.path().join("nothing");
    fs::create_dir_all(&unsealed).unwrap();
    let error = copy(&world.tools(&RealFs), &unsealed, &to, &ALL).unwrap_err();
    assert!(matches!(error, EditionError::NotSealed { .. }), "{error:?}");
}
