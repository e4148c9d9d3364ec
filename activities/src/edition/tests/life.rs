//! From rows to a sealed edition, and on to the next.

use std::fs;

use catalog_rules::manifest::{Manifest, Root};

use super::support::{SMALL, World, snapshot};
use crate::duck::{Session, identifier, path_literal, storage_version};
use crate::edition::testing::Synthetic;
use crate::edition::*;
use crate::fs::RealFs;

#[test]
fn an_edition_is_built_sealed_and_clean() {
    let world = World::new();
    let (built, sealed) = world.publish(1, None, &SMALL);
    assert_eq!(built.rows, SMALL.rows());
    let manifest = &sealed.manifest;
    assert_eq!(manifest.validate(), []);
    assert_eq!(manifest.bindings[0].observations, SMALL.rows());
    assert_eq!(manifest.artefacts.len(), SMALL.artefacts().len());
    assert_eq!(manifest.schema_version, "2.52-jobctl.1");
    assert!(manifest.sdmxlib_version.starts_with("0+jobctl."), "{}", manifest.sdmxlib_version);
    assert_eq!(manifest.producer.name, "jobctl");
    let storage =
        ["metadata.duckdb", "tables.ducklake"].map(|name| storage_version(&world.edition(1).join(name)).unwrap());
    assert_eq!(manifest.duckdb_storage_version, storage[0].max(storage[1]));
    let bytes = fs::read(world.edition(1).join("manifest.json")).unwrap();
    assert_eq!(Manifest::decode(&bytes).unwrap(), *manifest);
    assert_eq!(sealed.manifest_sha256, catalog_rules::ids::Sha256Hex::of(&bytes));
    let phases: Vec<_> = sealed.phases.iter().map(|phase| phase.name).collect();
    assert_eq!(phases, ["journal", "lake", "store", "availability", "artefacts", "fingerprint", "files", "manifest"]);
    let journal = read_journal(&RealFs, &world.product()).unwrap();
    assert_eq!(journal.len(), 1, "the entry stays until the Inventory records the edition");
    assert_eq!((&journal[0].edition_id, &journal[0].previous), (&Synthetic::edition_id(1), &None));

    let before = snapshot(&world.product());
    for at in [Profile::Publish, Profile::Receive, Profile::Open] {
        assert_eq!(world.findings(1, at), [""; 0], "{at:?}");
    }
    let checks = |at| world.check(1, at).checked;
    use CheckName as C;
    assert_eq!(
        checks(Profile::Publish),
        [C::Manifest, C::Files, C::Lake, C::Bindings, C::References, C::Fingerprints, C::Availability]
    );
    assert_eq!(checks(Profile::Receive), [C::Manifest, C::Files, C::Lake, C::Bindings, C::References]);
    assert_eq!(checks(Profile::Open), [C::Manifest, C::Files]);
    let reader = EditionReader::open(&world.duck, &world.edition(1)).unwrap();
    let sum: String = reader
        .session()
        .row("sum", "SELECT (sum(OBS_VALUE) * 100)::BIGINT::VARCHAR FROM lake.codr.t99100001", |row| row.get(0))
        .unwrap();
    assert_eq!(sum, SMALL.sum_in_hundredths().to_string());
    drop(reader);
    assert_eq!(snapshot(&world.product()), before, "reading changed a byte");

    let again = world.seal(1, None);
    assert!(again.was_sealed);
    assert_eq!(again.manifest, *manifest);
    clear_journal(&RealFs, &world.product(), &Synthetic::edition_id(1)).unwrap();
    clear_journal(&RealFs, &world.product(), &Synthetic::edition_id(1)).unwrap();
    assert_eq!(read_journal(&RealFs, &world.product()).unwrap(), []);
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
    // A row more: the file of the rows before stays, and a new one is beside it.
    let rows_of =
        |manifest: &Manifest| -> Vec<String> { manifest.files_of(Root::Data).map(|file| file.path.clone()).collect() };
    assert_eq!(rows_of(&third.manifest).len(), 1);
    let (built, fourth) = world.publish(4, Some(1), &Appended(SMALL));
    assert_eq!(built.rows, SMALL.rows() + 1);
    assert_eq!((built.tables[0].new_rows, built.tables[0].kept_files), (1, 1));
    assert_eq!((fourth.carried_files(), rows_of(&fourth.manifest).len()), (1, 2));
    let parts = fourth.manifest.jobctl().unwrap().fingerprints.remove(&Synthetic::dataflow()).unwrap();
    assert_eq!(parts.files.len(), 2, "each file has its part of the fingerprint");
    // The table of an edition that starts anew has the same content, and so the same fingerprint.
    let (built, fifth) = world.publish(5, None, &Appended(SMALL));
    assert_eq!((built.tables[0].new_rows, built.tables[0].kept_files), (SMALL.rows() + 1, 0));
    assert_eq!(fifth.manifest.content_fingerprint, fourth.manifest.content_fingerprint);
    for n in 1..=5 {
        assert_eq!(world.findings(n, Profile::Publish), [""; 0], "edition {n}");
    }
}

/// The rows of a made-up product and one more.
struct Appended(Synthetic);

impl ObservationSource for Appended {
    fn columns(&self) -> Vec<ObservationColumn> {
        self.0.columns()
    }

    fn for_each_batch(
        &self,
        each: &mut dyn FnMut(duckdb::arrow::array::RecordBatch) -> Result<(), Stop>,
    ) -> Result<(), SourceError> {
        let mut last = None;
        self.0.for_each_batch(&mut |batch| {
            last = Some(batch.slice(batch.num_rows() - 1, 1));
            each(batch)
        })?;
        use duckdb::arrow::array::{RecordBatch, StringArray};
        let last = last.unwrap();
        let mut columns = last.columns().to_vec();
        columns[3] = std::sync::Arc::new(StringArray::from(vec!["2099"]));
        each(RecordBatch::try_new(last.schema(), columns).unwrap())?;
        Ok(())
    }
}

#[test]
fn a_changed_scale_or_structure_starts_the_table_anew() {
    let mut world = World::new();
    world.publish(1, None, &SMALL);
    // The binding loses a column: the table has other columns, and so has every row's text.
    world.binding.attribute_columns.remove("VECTOR");
    let (built, sealed) = world.publish(2, Some(1), &WithoutVector(SMALL));
    assert_eq!((built.tables[0].new_rows, built.tables[0].kept_files), (SMALL.rows(), 0));
    assert_eq!(sealed.carried_files(), 0);
    assert_eq!(world.findings(2, Profile::Publish), [""; 0]);
    assert_eq!(world.findings(1, Profile::Publish), [""; 0], "the first edition still stands");
}

struct WithoutVector(Synthetic);

impl ObservationSource for WithoutVector {
    fn columns(&self) -> Vec<ObservationColumn> {
        self.0.columns().into_iter().filter(|column| column.name != "VECTOR").collect()
    }

    fn for_each_batch(
        &self,
        each: &mut dyn FnMut(duckdb::arrow::array::RecordBatch) -> Result<(), Stop>,
    ) -> Result<(), SourceError> {
        self.0.for_each_batch(&mut |mut batch| {
            batch.remove_column(6);
            each(batch)
        })
    }
}

#[test]
fn changed_artefacts_replace_stored_ones_and_others_go() {
    use catalog_rules::sdmx::model::Artefact;
    let mut world = World::new();
    let (_, first) = world.publish(1, None, &SMALL);
    for artefact in &mut world.artefacts {
        if let Artefact::Codelist(list) = artefact
            && list.common.id == "CL_OBS_STATUS"
        {
            list.codes[0].name.insert("fr".to_owned(), "Provisoire".to_owned());
        }
    }
    let (_, second) = world.publish(2, Some(1), &SMALL);
    let changed = |a: &Manifest, b: &Manifest| -> Vec<String> {
        let entries = a.artefacts.iter().zip(&b.artefacts);
        entries.filter(|(a, b)| a.fingerprint != b.fingerprint).map(|(a, _)| a.urn.clone()).collect()
    };
    assert_eq!(
        changed(&first.manifest, &second.manifest),
        ["urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_OBS_STATUS(1.0)"]
    );
    assert_ne!(second.manifest.bindings[0].structure_fingerprint, first.manifest.bindings[0].structure_fingerprint);
    assert_eq!(second.manifest.bindings[0].fingerprint, first.manifest.bindings[0].fingerprint);
    assert_eq!(world.findings(2, Profile::Publish), [""; 0]);
    let expect = CheckOptions { expect: Some(&first.manifest), ..CheckOptions::at(Profile::Open) };
    let report = check(&world.tools(&RealFs), &world.edition(2), &expect).unwrap();
    assert!(report.checked.contains(&CheckName::Expect));
    let subjects: Vec<_> = report.findings.iter().map(|finding| finding.subject.as_str()).collect();
    assert_eq!(
        subjects,
        [
            "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_OBS_STATUS(1.0)",
            &Synthetic::dataflow(),
            "content_fingerprint"
        ]
    );
}

#[test]
fn files_of_the_producer_are_listed_and_lazy_ones_go_along() {
    let world = World::new();
    world.build(1, None, &SMALL);
    let edition = world.edition(1);
    fs::create_dir_all(edition.join("search/fr")).unwrap();
    fs::write(edition.join("search/fr/index"), b"words").unwrap();
    let sealed = world.seal(1, None);
    let listed = sealed.manifest.files_of(Root::Edition).map(|file| file.path.as_str()).collect::<Vec<_>>();
    assert_eq!(listed, ["metadata.duckdb", "search/fr/index", "tables.ducklake"]);
    world.publish(2, Some(1), &SMALL);
    assert_eq!(fs::read(world.edition(2).join("search/fr/index")).unwrap(), b"words");
    assert_eq!(world.findings(2, Profile::Publish), [""; 0]);
}

#[test]
fn a_final_product_ends_in_one_file() {
    let world = World::new();
    world.publish(1, None, &SMALL);
    world.build(2, Some(1), &Appended(SMALL));
    let (product_id, edition_id, previous) =
        (Synthetic::product_id(), Synthetic::edition_id(2), Synthetic::edition_id(1));
    let order = SealOrder {
        product_dir: &world.product(),
        product_id: &product_id,
        edition_id: &edition_id,
        previous: Some(&previous),
        producer: None,
        is_final: true,
        tiers: &[],
        producer_fields: serde_json::Map::new(),
        extensions: std::collections::BTreeMap::new(),
        provenance: None,
    };
    let sealed = seal(&world.tools(&RealFs), &order).unwrap();
    assert_eq!(sealed.manifest.files_of(Root::Data).count(), 1);
    assert_eq!(sealed.manifest.bindings[0].observations, SMALL.rows() + 1);
    assert_eq!(world.findings(2, Profile::Publish), [""; 0]);
    assert_eq!(world.findings(1, Profile::Publish), [""; 0], "merging took a file from the first edition");
}

#[test]
fn editions_are_listed_and_only_an_unsealed_one_is_discarded() {
    let world = World::new();
    assert!(list(&world.product()).unwrap().is_empty());
    world.publish(1, None, &SMALL);
    world.build(2, Some(1), &SMALL);
    let listed = list(&world.product()).unwrap();
    assert!(matches!(&listed[0].state, EditionState::Sealed(manifest) if manifest.previous.is_none()));
    assert!(matches!(listed[1].state, EditionState::Unsealed));
    assert_eq!(listed[1].started_at_ms(), 0x019a_0000_0000 + 2);
    assert_eq!(unsealed(&world.product()).unwrap(), [Synthetic::edition_id(2)]);
    let files = snapshot(&world.product().join("data"));
    let refused = discard(&RealFs, &world.product(), &Synthetic::edition_id(1)).unwrap_err();
    assert!(matches!(refused, EditionError::DiscardsSealed { .. }), "{refused:?}");
    for _ in 0..2 {
        discard(&RealFs, &world.product(), &Synthetic::edition_id(2)).unwrap();
    }
    assert!(!world.edition(2).exists());
    assert_eq!(snapshot(&world.product().join("data")), files);
    assert_eq!(world.findings(1, Profile::Publish), [""; 0]);
}

#[test]
fn an_edition_without_tables_has_no_lake() {
    let world = World::new();
    let (product_id, edition_id) = (Synthetic::product_id(), Synthetic::edition_id(1));
    let built = build(
        &world.tools(&RealFs),
        &BuildOrder {
            product_dir: &world.product(),
            product_id: &product_id,
            edition_id: &edition_id,
            previous: None,
            artefacts: &world.artefacts,
            tables: &[],
        },
    );
    assert_eq!(built.unwrap().rows, 0);
    let sealed = world.seal(1, None);
    assert_eq!(sealed.manifest.ducklake_version, None);
    assert_eq!(sealed.manifest.files.len(), 1);
    assert_eq!(world.findings(1, Profile::Publish), [""; 0]);
}

#[test]
fn a_large_table_is_cut_so_that_revisions_leave_the_old_periods_alone() {
    let large = Synthetic { members: 250, products: 10, periods: 50, revision: 0 };
    assert_eq!(large.rows(), 250_000);
    let mut world = World::new();
    world.artefacts = large.artefacts();
    let (_, first) = world.publish(1, None, &large);
    let sizes = |manifest: &Manifest| manifest.files_of(Root::Data).map(|file| file.size_bytes).collect::<Vec<_>>();
    assert_eq!(sizes(&first.manifest).len(), 2);
    for file in first.manifest.files_of(Root::Data) {
        assert_eq!(
            steps_back(&world, &world.product().join("data").join(&file.path)),
            0,
            "{} is not sorted",
            file.path
        );
    }
    let (built, second) = world.publish(2, Some(1), &Synthetic { revision: 1, ..large });
    assert_eq!(built.tables[0].kept_files, 1);
    assert!(built.tables[0].new_rows * 5 < large.rows(), "{built:?}");
    assert_eq!(second.carried_files(), 1);
    let carried = second.manifest.files_of(Root::Data).find(|file| file.carried_from.is_some()).unwrap();
    assert_eq!(Some(&carried.size_bytes), sizes(&first.manifest).iter().max(), "the larger file is the one that stays");
    assert_eq!(world.findings(2, Profile::Publish), [""; 0]);
}

/// How often a row of a data file comes before the one in front of it, over all of its row groups.
fn steps_back(world: &World, file: &std::path::Path) -> i64 {
    let session = Session::open(&world.duck, "sorted").unwrap();
    let key = Synthetic::binding().dimension_columns;
    let list: Vec<String> = session
        .rows(
            "read the columns",
            &format!("SELECT column_name FROM (DESCRIBE SELECT * FROM {})", path_literal(file).unwrap()),
            [],
            |row| row.get::<_, String>(0),
        )
        .unwrap()
        .into_iter()
        .filter(|name| key.contains_key(name))
        .map(|name| identifier(&name))
        .collect();
    let key = format!("row({})", list.join(", "));
    let sql = format!(
        "SELECT count(*) FROM (SELECT {key} AS here, lag({key}) OVER (ORDER BY file_row_number) AS before
         FROM read_parquet({}, file_row_number = true)) WHERE before > here",
        path_literal(file).unwrap()
    );
    session.row("compare neighbours", &sql, |row| row.get(0)).unwrap()
}
