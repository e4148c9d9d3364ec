//! The order of the seal's calls on the filesystem, and what a failure of each leaves behind (*edition* §7).

use std::fs;

use super::support::{SMALL, World, copy_tree};
use crate::edition::testing::Synthetic;
use crate::edition::*;
use crate::fs::RealFs;
use crate::fs::testing::{Call, RecordingFs};

/// The calls with the product's folder and the numbers of temporary files left out.
fn readable(world: &World, calls: &[Call]) -> Vec<String> {
    let product = world.product().display().to_string();
    let edition = Synthetic::edition_id(1).to_string();
    let short = |path: &str| -> String {
        let path = path.replace(&product, "P").replace(&edition, "E");
        let name = path.rsplit('/').next().unwrap();
        let folder = path.strip_suffix(name).unwrap();
        let name = match name {
            name if name.ends_with(".parquet") => "PARQUET".to_owned(),
            name if name.ends_with("metadata.duckdb") && name.starts_with(".jobctl-tmp-") => "TEMPORARY".to_owned(),
            name if name.starts_with(".jobctl-tmp-") => "TEMPORARY".to_owned(),
            name => name.to_owned(),
        };
        format!("{folder}{name}")
    };
    let line = |call: &Call| match &call.to {
        Some(to) => format!("{} {} -> {}", call.operation, short(&call.path), short(to)),
        None => format!("{} {}", call.operation, short(&call.path)),
    };
    calls.iter().map(line).collect()
}

#[test]
fn everything_is_durable_before_the_manifest_is_there() {
    let world = World::new();
    world.build(1, None, &SMALL);
    let recording = RecordingFs::new();
    world.seal_with(&recording, 1, None).unwrap();
    assert_eq!(
        readable(&world, &recording.calls()),
        [
            "create_dir_all P/journal",
            "write_new P/journal/TEMPORARY",
            "fsync_file P/journal/TEMPORARY",
            "rename_new P/journal/TEMPORARY -> P/journal/E.json",
            "fsync_dir P/journal",
            "fsync_file P/E/TEMPORARY",
            "rename P/E/TEMPORARY -> P/E/metadata.duckdb",
            "fsync_dir P/E",
            "fsync_file P/data/codr/t99100001/PARQUET",
            "fsync_file P/E/metadata.duckdb",
            "fsync_file P/E/tables.ducklake",
            "fsync_dir P/data/codr/t99100001",
            "fsync_dir P/data/codr",
            "fsync_dir P/E",
            "fsync_dir P/data",
            "fsync_dir P",
            "write_new P/E/TEMPORARY",
            "fsync_file P/E/TEMPORARY",
            "rename_new P/E/TEMPORARY -> P/E/manifest.json",
            "fsync_dir P/E",
        ]
    );
}

#[test]
fn a_seal_that_failed_at_any_call_is_sealed_by_the_next() {
    let world = World::new();
    world.build(1, None, &SMALL);
    let built = world.dir.path().join("built");
    copy_tree(&world.product(), &built);
    let expected = world.seal(1, None).manifest;
    let mut failed = 0;
    loop {
        fs::remove_dir_all(world.product()).unwrap();
        copy_tree(&built, &world.product());
        let failing = RecordingFs::failing_at(failed);
        let Err(error) = world.seal_with(&failing, 1, None) else { break };
        assert!(matches!(error, EditionError::Io { .. }), "call {failed}: {error:?}");
        let calls = readable(&world, &failing.calls());
        let sealed = world.seal(1, None);
        // Only the last call of all comes after the manifest.
        assert_eq!(sealed.was_sealed, failed == 19, "call {failed}: {:?}", calls.last());
        assert_eq!(sealed.manifest.content_fingerprint, expected.content_fingerprint);
        assert_eq!(sealed.manifest.bindings, expected.bindings);
        let entries = read_journal(&RealFs, &world.product()).unwrap();
        assert_eq!(entries.len(), 1, "call {failed}");
        assert_eq!(world.findings(1, Profile::Receive), [""; 0], "call {failed}: {:?}", calls.last());
        failed += 1;
    }
    assert_eq!(failed, 20, "not every call was failed");
}

#[test]
fn a_log_is_refused_unless_a_seal_of_this_edition_left_it() {
    let world = World::new();
    world.build(1, None, &SMALL);
    for name in ["metadata.duckdb.wal", "tables.ducklake.wal"] {
        let wal = world.edition(1).join(name);
        fs::write(&wal, b"").unwrap();
        let error = world.seal_with(&RealFs, 1, None).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(read_journal(&RealFs, &world.product()).unwrap(), [], "a refused seal left its entry");
        fs::remove_file(&wal).unwrap();
    }
    world.seal(1, None);
}

#[test]
fn a_refused_code_leaves_no_journal_entry_and_names_value_and_rows() {
    use crate::duck::{Access, LAKE, Session};
    let world = World::new();
    world.build(1, None, &SMALL);
    // Something else than the build wrote here.
    let session = Session::open(&world.duck, "test").unwrap();
    session
        .attach_lake(&world.edition(1).join("tables.ducklake"), &world.product().join("data"), Access::Write)
        .unwrap();
    session
        .run("write", "UPDATE lake.codr.t99100001 SET OBS_STATUS = '' WHERE GEO = 'G7' AND OBS_STATUS IS NULL")
        .unwrap();
    session.detach(LAKE).unwrap();
    drop(session);
    let error = world.seal_with(&RealFs, 1, None).unwrap_err();
    let EditionError::Uncoded { column, values, more, .. } = &error else { panic!("{error:?}") };
    assert_eq!((column.as_str(), values.len(), *more), ("OBS_STATUS", 1, 0));
    assert_eq!(values[0].value, "");
    assert!(values[0].rows > 0 && error.to_string().contains("expected its codes or NULL"), "{error}");
    assert_eq!(read_journal(&RealFs, &world.product()).unwrap(), []);
    assert!(!world.edition(1).join("manifest.json").exists());
}

#[test]
fn deletions_are_rewritten_and_the_fingerprint_is_that_of_the_rows_left() {
    use crate::duck::{Access, LAKE, Session};
    let world = World::new();
    world.build(1, None, &SMALL);
    let session = Session::open(&world.duck, "test").unwrap();
    let lake = world.edition(1).join("tables.ducklake");
    session.attach_lake(&lake, &world.product().join("data"), Access::Write).unwrap();
    session.run("write", "DELETE FROM lake.codr.t99100001 WHERE GEO = 'G7'").unwrap();
    session.detach(LAKE).unwrap();
    drop(session);
    let sealed = world.seal(1, None);
    assert_eq!(sealed.manifest.bindings[0].observations, SMALL.rows() - SMALL.rows() / SMALL.members);
    assert_eq!(world.findings(1, Profile::Publish), [""; 0]);
}
