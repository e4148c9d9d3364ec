//! From rows to a sealed edition, and on to the next.

use super::support::{SMALL, World, snapshot};
use crate::edition::testing::Synthetic;
use crate::edition::*;

#[test]
fn an_edition_is_built_sealed_and_clean() {
    let world = World::new();
    let (built, sealed) = world.publish(1, None, &SMALL);
    assert_eq!(built.rows, SMALL.rows());
    assert_eq!(sealed.manifest.bindings[0].observations, SMALL.rows());
    let before = snapshot(&world.product());
    for at in [Profile::Publish, Profile::Receive, Profile::Open] {
        assert_eq!(world.findings(1, at), [""; 0], "{at:?}");
    }
    assert_eq!(snapshot(&world.product()), before, "a check changed a byte");
}

#[test]
fn revisions_carry_what_did_not_change() {
    let world = World::new();
    let (_, first) = world.publish(1, None, &SMALL);
    let (built, second) = world.publish(2, Some(1), &SMALL);
    assert_eq!((built.tables[0].new_rows, built.tables[0].kept_files), (0, 1));
    assert_eq!(second.carried_files(), 1);
    assert_eq!(second.manifest.content_fingerprint, first.manifest.content_fingerprint);
    assert_eq!(second.manifest.files[0].digests, first.manifest.files[0].digests);
    assert_eq!(second.manifest.files[0].carried_from, Some(Synthetic::edition_id(1)));
    let revised = Synthetic { revision: 1, ..SMALL };
    let (built, third) = world.publish(3, Some(2), &revised);
    assert_eq!(built.rows, SMALL.rows());
    assert_ne!(third.manifest.content_fingerprint, first.manifest.content_fingerprint);
    for n in 1..=3 {
        assert_eq!(world.findings(n, Profile::Publish), [""; 0], "edition {n}");
    }
}
