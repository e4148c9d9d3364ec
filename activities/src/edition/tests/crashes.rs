//! A process that ends at any of the crash points, and the one that comes after it.
//!
//! The child is this test binary itself, told by its environment where to work and where to end.

use std::path::PathBuf;
use std::process::Command;

use super::support::{SMALL, World, copy_tree};
use crate::edition::testing::Synthetic;
use crate::edition::*;
use crate::fs::RealFs;

const WHERE: &str = "JOBCTL_TEST_CRASH_DIR";
const POINT: &str = "JOBCTL_TEST_CRASH_POINT";

#[test]
fn child_that_ends_at_a_point() {
    let (Some(dir), Ok(_)) = (std::env::var_os(WHERE), std::env::var(POINT)) else { return };
    engine_rules::crash::install(|name| {
        if std::env::var(POINT).is_ok_and(|point| point == name) {
            std::process::abort();
        }
    });
    let world = World::at(PathBuf::from(dir));
    let revised = Synthetic { revision: 1, ..SMALL };
    world.publish(2, Some(1), &revised);
}

#[test]
fn a_process_that_ended_anywhere_is_followed_by_one_that_ends_as_if_undisturbed() {
    let revised = Synthetic { revision: 1, ..SMALL };
    let origin = World::new();
    origin.publish(1, None, &SMALL);
    clear_journal(&RealFs, &origin.product(), &Synthetic::edition_id(1)).unwrap();
    let undisturbed = World::new();
    copy_tree(&origin.product(), &undisturbed.product());
    let expected = undisturbed.publish(2, Some(1), &revised).1.manifest;

    for point in CRASH_POINTS {
        let world = World::new();
        copy_tree(&origin.product(), &world.product());
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "edition::tests::crashes::child_that_ends_at_a_point", "--nocapture"])
            .env(WHERE, world.dir.path())
            .env(POINT, point)
            .output()
            .unwrap();
        assert_eq!(child.status.code(), None, "{point} was not reached: {}", String::from_utf8_lossy(&child.stderr));

        if *point == "edition.seal.lake_in_log" {
            assert!(world.edition(2).join("tables.ducklake.wal").exists(), "the point no longer leaves a log");
        }
        // What a run does that is resumed: build unless the build was recorded, then seal.
        if !point.starts_with("edition.seal.") {
            world.build(2, Some(1), &revised);
        }
        let sealed = world.seal(2, Some(1));
        assert_eq!(sealed.was_sealed, *point == "edition.seal.after_manifest", "{point}");
        assert_eq!(sealed.manifest.content_fingerprint, expected.content_fingerprint, "{point}");
        assert_eq!(sealed.manifest.bindings, expected.bindings, "{point}");
        assert_eq!(sealed.manifest.artefacts, expected.artefacts, "{point}");
        assert_eq!(world.findings(2, Profile::Publish), [""; 0], "{point}");
        assert_eq!(world.findings(1, Profile::Publish), [""; 0], "{point} changed the first edition");
        assert_eq!(read_journal(&RealFs, &world.product()).unwrap().len(), 1, "{point}");
        assert_eq!(unsealed(&world.product()).unwrap(), [], "{point}");
    }
}
