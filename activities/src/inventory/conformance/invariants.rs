//! Invariants (*catalog* §6.5), an item each; item 9 is the publish check's.

use std::collections::BTreeMap;

use bytes::Bytes;
use catalog_rules::inventory::{Lifecycle, Mark, Operation, Record, Release, VersionFinding, check_version};
use catalog_rules::layout;
use engine_rules::failure::ActivityError as _;

use super::world::{Checked, Failure, Place, World, codelist, contains, data, equal, holds, product, structure};

/// Item 1.
pub(super) fn one_edition_is_live_for_each_schema_version(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None).at_schema("2.51"))?;
    world.publish(&data("p", 2, Some(1)).at_schema("2.52"))?;
    world.is("p", &[(1, Mark::Live), (2, Mark::Live)])?;
    world.publish(&data("p", 3, Some(2)).at_schema("2.52"))?;
    world.is("p", &[(1, Mark::Live), (2, Mark::Superseded), (3, Mark::Live)])?;
    for schema in ["2.51", "2.52"] {
        let head = world.live()?.head(&product("p")?, &catalog_rules::inventory::SchemaVersion::new(schema))?;
        let expected = if schema == "2.51" { 1 } else { 3 };
        equal("the head", head.map(|head| head.edition_id), Some(world.edition(expected)?))?;
    }
    // A schema from before every live one has nothing to be built on.
    world.refuse_edition(&data("p", 4, None).at_schema("2.50"), "catalog.schema_behind")?;
    world.sound().map(drop)
}

/// Item 2.
pub(super) fn a_manifest_that_is_missing_or_changed_is_refused(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let operation = world.seal(&data("p", 1, None))?;
    let path = layout::manifest(&product("p")?, &world.edition(1)?);
    place.delete(&path)?;
    world.refuse(&operation, "catalog.manifest_missing")?;
    place.create(&path, &Bytes::from_static(b"{}"))?;
    let refused = world.refuse(&operation, "catalog.manifest_differs")?;
    contains("the refusal", &refused.to_string(), &["§6.5 item 2", "SHA-256"])?;
    equal("the leaves that were written", place.list(layout::LEAVES)?.objects, Vec::new())?;
    // At a release as well, and a recorded edition is not recorded with another manifest.
    world.commit(&Operation::Embargo(true))?;
    place.delete(&path)?;
    world.publish(&data("p", 1, None))?;
    let Operation::Record(mut record) = world.seal(&data("p", 1, None))? else { return Ok(()) };
    record.entry.manifest_sha256 = catalog_rules::ids::Sha256Hex::of(b"another");
    world.refuse(&Operation::Record(record), "catalog.manifest_differs")?;
    world.put(&path, b"{}")?;
    world.refuse(&world.release(&["p"])?, "catalog.manifest_differs")?;
    world.sound().map(drop)
}

/// Item 3.
pub(super) fn a_canonical_form_that_is_unknown_is_refused(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let mut record: Record = world.record(&data("p", 1, None))?;
    record.content.canonical_form = "2".to_owned();
    let refused = world.refuse(&Operation::Record(Box::new(record)), "catalog.canonical_form")?;
    contains("the refusal", &refused.to_string(), &["§6.5 item 3", "\"2\"", "\"1\""])
}

/// Item 4, a URN with a structure home: the home wins.
pub(super) fn a_copy_that_is_not_as_at_its_home_is_refused(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&structure("s", 1, None, &[("CL", "v1", None)]))?;
    world.publish(&data("p", 2, None).holds(&[("CL", "v1", None)]))?;
    world.publish(&data("q", 3, None).holds(&[("CL", "cut", Some("v1"))]))?;
    for (n, held) in [(4, ("CL", "v2", None)), (5, ("CL", "cut", Some("v2")))] {
        let refused = world.refuse_edition(&data("r", n, None).holds(&[held]), "catalog.not_as_at_home")?;
        contains("the refusal", &refused.to_string(), &["§6.5 item 4", &codelist("CL"), "structure product s"])?;
    }
    world.sound().map(drop)
}

/// Item 4: a part names a full artefact that somebody holds.
pub(super) fn a_part_without_a_home_is_refused(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None).holds(&[("CL", "v1", None)]))?;
    let part = data("q", 2, None).holds(&[("CL", "cut", Some("v1"))]);
    let refused = world.refuse_edition(&part, "catalog.partial_without_home")?;
    contains("the refusal", &refused.to_string(), &["§6.5 item 4", &codelist("CL")])
}

/// Item 4, Stale: derived, never recorded.
pub(super) fn an_edit_of_a_home_is_accepted_and_makes_its_copies_stale(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&structure("s", 1, None, &[("CL", "v1", None)]))?;
    world.publish(&data("p", 2, None).holds(&[("CL", "cut", Some("v1"))]))?;
    let stale = || -> Result<Vec<String>, Failure> {
        let head = world.full()?;
        let leaves = head.leaves()?;
        let findings = check_version(&head.head().root, &leaves, &BTreeMap::new());
        let products = findings.into_iter().filter_map(|finding| match finding {
            VersionFinding::Stale(stale) => Some(stale.product.to_string()),
            VersionFinding::Leaf { .. }
            | VersionFinding::Rule(_)
            | VersionFinding::SharedDiffers { .. }
            | VersionFinding::Orphan { .. } => None,
        });
        Ok(products.collect())
    };
    equal("what is stale", stale()?, Vec::new())?;
    world.publish(&structure("s", 3, Some(1), &[("CL", "v2", None)]))?;
    equal("what is stale", stale()?, vec!["p".to_owned()])?;
    equal("what the public sees", world.shown()?, world.editions(&[2, 3])?)?;
    // What a live edition cites stays, as long as it does.
    world.refuse(&world.retire("s", 1)?, "catalog.cited")?;
    world.publish(&data("p", 4, Some(2)).holds(&[("CL", "cut", Some("v2"))]))?;
    equal("what is stale", stale()?, Vec::new())?;
    world.commit(&world.retire("s", 1)?)?;
    world.sound().map(drop)
}

/// Item 4, a full artefact with no home: every product that holds it changes it in one version.
pub(super) fn a_shared_artefact_changes_in_one_version_and_is_refused_in_two(place: &Place) -> Checked {
    let world = World::create(place, true)?;
    let shared = |text| [("DSD", text, None)];
    world.publish(&data("p", 1, None).holds(&shared("d1")))?;
    world.publish(&data("q", 2, None).holds(&shared("d1")))?;
    world.commit(&world.release(&["p", "q"])?)?;
    let due = place.now()?.plus_ms(-1);
    world.publish(&data("p", 3, Some(1)).holds(&shared("d2")).due(due))?;
    // Alone it is refused, by name and in a batch.
    let refused = world.refuse(&world.release(&["p"])?, "catalog.shared_artefact_differs")?;
    contains("the refusal", &refused.to_string(), &["§6.5 item 4", &codelist("DSD"), world.edition(2)?.as_str()])?;
    contains("its fix", &refused.hint().unwrap_or_default(), &["jobctl run release --product p --product q"])?;
    let alone = world.commit(&Operation::Release(Release::Due))?;
    let codes: Vec<_> = alone.refused.iter().map(|refused| refused.code.as_str()).collect();
    equal("what the batch refused", codes, vec!["catalog.shared_artefact_differs"])?;
    equal("what the public sees", world.shown()?, world.editions(&[1, 2])?)?;
    world.publish(&data("q", 4, Some(2)).holds(&shared("d2")).due(due))?;
    world.commit(&Operation::Release(Release::Due))?;
    equal("what the public sees", world.shown()?, world.editions(&[3, 4])?)?;
    // And back: one alone is refused, both together go.
    world.refuse(&world.rollback("p")?, "catalog.shared_artefact_differs")?;
    let (Operation::Rollback(mut both), Operation::Rollback(other)) = (world.rollback("p")?, world.rollback("q")?)
    else {
        return Ok(());
    };
    both.extend(other);
    world.commit(&Operation::Rollback(both))?;
    equal("what the public sees", world.shown()?, world.editions(&[1, 2])?)?;
    world.sound().map(drop)
}

/// Item 5.
pub(super) fn final_means_final(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    let mut first = data("p", 1, None);
    first.lifecycle = Some(Lifecycle::Final);
    world.publish(&first)?;
    world.refuse_edition(&data("p", 2, Some(1)), "catalog.final_changed")?;
    let mut same = data("p", 3, Some(1));
    same.observations = 1;
    let mut reopened = same.clone();
    reopened.lifecycle = Some(Lifecycle::Revisable);
    reopened.n = 4;
    world.refuse_edition(&reopened, "catalog.final_reopened")?;
    world.publish(&same)?;
    world.commit(&Operation::SetLifecycle { product_id: product("p")?, lifecycle: Lifecycle::Revisable })?;
    world.publish(&data("p", 5, Some(3)))?;
    world.sound().map(drop)
}

/// Item 6.
pub(super) fn an_edition_built_on_one_that_nobody_knows_is_refused(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&data("p", 1, None))?;
    world.publish(&data("p", 2, Some(1)))?;
    world.refuse_edition(&data("p", 9, Some(7)), "catalog.not_fast_forward")?;
    // A retired one is known.
    world.commit(&world.retire("p", 1)?)?;
    world.publish(&data("p", 3, Some(2)))?;
    world.sound()?;
    // A chain that lost its base is not built on.
    let mut root = world.head()?.root;
    root.retired.clear();
    let n = root.seq.get();
    let damaged = world.rewrite(n, |found| *found = root)?;
    world.hint(n, damaged, 0)?;
    let refused = world.refuse_edition(&data("p", 4, Some(3)), "catalog.chain_broken")?;
    contains("the refusal", &refused.to_string(), &["§6.5 item 6", world.edition(1)?.as_str()])
}

/// Item 7.
pub(super) fn an_artefact_has_one_home(place: &Place) -> Checked {
    let world = World::create(place, false)?;
    world.publish(&structure("s", 1, None, &[("CL", "v1", None)]))?;
    let refused = world.refuse_edition(&structure("t", 2, None, &[("CL", "v1", None)]), "catalog.two_homes")?;
    contains("the refusal", &refused.to_string(), &["§6.5 item 7", &codelist("CL"), "product s"])?;
    world.publish(&structure("s", 3, Some(1), &[("OTHER", "v1", None)]))?;
    world.publish(&structure("t", 4, None, &[("CL", "v1", None)]))?;
    world.sound().map(drop)
}

/// Item 8.
pub(super) fn a_structure_edition_is_live_before_what_was_cut_from_it(place: &Place) -> Checked {
    let world = World::create(place, true)?;
    let due = place.now()?.plus_ms(-1);
    world.publish(&structure("s", 1, None, &[("CL", "v1", None)]))?;
    world.publish(&data("p", 2, None).holds(&[("CL", "cut", Some("v1"))]).due(due))?;
    let refused = world.refuse(&world.release(&["p"])?, "catalog.publish_order")?;
    contains("the refusal", &refused.to_string(), &["§6.5 item 8", world.edition(1)?.as_str()])?;
    contains("its fix", &refused.hint().unwrap_or_default(), &["jobctl run release --product s"])?;
    let batch = world.commit(&Operation::Release(Release::Due))?;
    equal("what the batch refused", batch.refused.len(), 1)?;
    // In one version, whatever the order of their names.
    world.commit(&world.release(&["p", "s"])?)?;
    equal("what the public sees", world.shown()?, world.editions(&[1, 2])?)?;
    holds("both went live in one version", world.head()?.root.changes.is_some_and(|changes| changes.len() == 2))?;
    world.sound().map(drop)
}
