//! Rows and orders that are refused: what is said, and that nothing changed.

use super::support::{Rows, SMALL, World, snapshot};
use crate::edition::testing::Synthetic;
use crate::edition::*;
use crate::fs::RealFs;
use engine_rules::activity::{ActivityContext, CancelToken};
use engine_rules::failure::{ActivityError as _, Disposition, Failure};

fn three_columns(world: &mut World) {
    world.binding.dimension_columns.retain(|id, _| id == "GEO" || id == "TIME_PERIOD");
    world.binding.attribute_columns.clear();
}

type Row = (Option<&'static str>, Option<&'static str>, Option<&'static str>);

#[test]
fn faults_of_rows_are_named_by_line_and_change_nothing() {
    let mut world = World::new();
    world.publish(1, None, &SMALL);
    three_columns(&mut world);
    let before = snapshot(&world.product());
    let good: Row = (Some("G1"), Some("2000"), Some("1.5"));
    let cases: [(Vec<Row>, &[&str]); 6] = [
        (vec![good, (Some("G2"), Some("2000"), None), good], &["lines 2 and 4", "GEO G1, TIME_PERIOD 2000"]),
        (vec![good, (None, Some("2001"), None)], &["line 3", "GEO is empty"]),
        (vec![good, (Some("G1"), None, None)], &["line 3", "TIME_PERIOD is empty"]),
        (vec![good, (Some("G1"), Some("2001"), Some("1e5"))], &["line 3", "OBS_VALUE is \"1e5\""]),
        (vec![good, (Some("G1"), Some("2001"), Some(""))], &["line 3", "OBS_VALUE is \"\""]),
        (vec![good, (Some("NOWHERE"), Some("2001"), None)], &["GEO", "\"NOWHERE\" in 1 rows", "CL_GEO(1.0)"]),
    ];
    for (rows, expected) in cases {
        let error = world.build_with(&RealFs, 2, Some(1), &Rows(rows)).unwrap_err();
        let text = error.to_string();
        assert!(expected.iter().all(|part| text.contains(part)), "{text}");
        assert_eq!(error.disposition(), Disposition::Terminal);
        assert_eq!(snapshot(&world.product()), before, "{text}");
    }
    world.build_with(&RealFs, 2, Some(1), &Rows(vec![good])).unwrap();
}

struct Refusing;

impl ObservationSource for Refusing {
    fn columns(&self) -> Vec<ObservationColumn> {
        Rows(Vec::new()).columns()
    }

    fn for_each_batch(
        &self,
        each: &mut dyn FnMut(duckdb::arrow::array::RecordBatch) -> Result<(), Stop>,
    ) -> Result<(), SourceError> {
        Rows(vec![(Some("G1"), Some("2000"), None)]).for_each_batch(each)?;
        Err(SourceError::Refused(Failure {
            code: "codr.truncated".to_owned(),
            message: "the file ends in line 3".to_owned(),
            disposition: Disposition::Terminal,
            hint: Some("download it again".to_owned()),
        }))
    }
}

#[test]
fn a_source_that_is_refused_half_way_keeps_its_own_words() {
    let mut world = World::new();
    three_columns(&mut world);
    let failure = world.build_with(&RealFs, 1, None, &Refusing).unwrap_err().to_failure();
    assert_eq!((failure.code.as_str(), failure.hint.as_deref()), ("codr.truncated", Some("download it again")));
    assert!(!world.product().exists(), "a refused first edition left a folder");
}

#[test]
fn a_cancelled_build_stops_between_batches() {
    let mut world = World::new();
    three_columns(&mut world);
    let cancel = CancelToken::new();
    let seen = cancel.clone();
    world.context = ActivityContext::new(
        "run".to_owned(),
        "build".to_owned(),
        1,
        cancel,
        std::sync::Arc::new(move |beat| {
            let engine_rules::activity::Beat::Progress(progress) = beat else { panic!("{beat:?}") };
            assert_eq!(progress.unit, "rows");
            assert!(progress.done <= 1, "went on after the cancel");
            seen.cancel();
        }),
    );
    let rows =
        vec![(Some("G1"), Some("2000"), None), (Some("G1"), Some("2001"), None), (Some("G1"), Some("2002"), None)];
    let error = world.build_with(&RealFs, 1, None, &Rows(rows)).unwrap_err();
    assert!(matches!(error, EditionError::Cancelled), "{error:?}");
    assert!(!world.product().exists());
}

struct Columns(Vec<(&'static str, ColumnRole)>);

impl ObservationSource for Columns {
    fn columns(&self) -> Vec<ObservationColumn> {
        // `N` alone is no text.
        let typed = |name: &str| if name == "N" { ColumnType::SmallInt } else { ColumnType::Text };
        let column = |(name, role): &(&str, ColumnRole)| ObservationColumn {
            name: (*name).to_owned(),
            role: *role,
            column_type: typed(name),
        };
        self.0.iter().map(column).collect()
    }

    fn for_each_batch(
        &self,
        each: &mut dyn FnMut(duckdb::arrow::array::RecordBatch) -> Result<(), Stop>,
    ) -> Result<(), SourceError> {
        Rows(vec![(Some("G1"), Some("2000"), None)]).for_each_batch(each)
    }
}

#[test]
fn columns_that_are_no_observations_are_refused() {
    use ColumnRole::{Attribute, Dimension, Measure, TimePeriod};
    let mut world = World::new();
    three_columns(&mut world);
    let base = [("GEO", Dimension), ("TIME_PERIOD", TimePeriod), ("OBS_VALUE", Measure)];
    let cases: [(&[(&'static str, ColumnRole)], ColumnFault); 7] = [
        (&[("filename", Attribute)], ColumnFault::Reserved),
        (&[("_LINE", Attribute)], ColumnFault::Reserved),
        (&[("", Attribute)], ColumnFault::Reserved),
        (&[("geo", Attribute)], ColumnFault::Twice),
        (&[("T2", TimePeriod)], ColumnFault::SecondTime),
        (&[("N", Dimension)], ColumnFault::NotText),
        (&[("N", Measure)], ColumnFault::NotText),
    ];
    for (more, expected) in cases {
        let columns = Columns(base.iter().chain(more).copied().collect());
        let error = world.build_with(&RealFs, 1, None, &columns).unwrap_err();
        assert!(matches!(&error, EditionError::Columns { fault, .. } if *fault == expected), "{error:?}");
    }
    let keyless = Columns(base.iter().map(|(name, _)| (*name, Attribute)).collect());
    let error = world.build_with(&RealFs, 1, None, &keyless).unwrap_err();
    assert!(matches!(error, EditionError::Columns { fault: ColumnFault::NoKey, .. }), "{error:?}");
    let other =
        Columns(vec![("GEO", Dimension), ("TIME_PERIOD", TimePeriod), ("OBS_VALUE", Measure), ("X", Attribute)]);
    let error = world.build_with(&RealFs, 1, None, &other).unwrap_err();
    assert!(matches!(error, EditionError::Batch { .. }), "{error:?}");
    let unbound = Columns(vec![("GEO", Dimension), ("OBS_VALUE", Measure)]);
    let error = world.build_with(&RealFs, 1, None, &unbound).unwrap_err();
    assert!(matches!(&error, EditionError::BoundColumn { column, .. } if column == "TIME_PERIOD"), "{error:?}");
    assert!(!world.product().exists());
}

#[test]
fn a_product_has_one_unsealed_edition() {
    let world = World::new();
    world.publish(1, None, &SMALL);
    world.build(2, Some(1), &SMALL);
    let before = snapshot(&world.product());
    let error = world.build_with(&RealFs, 3, Some(1), &SMALL).unwrap_err();
    let text = format!("{error} {}", error.hint().unwrap());
    for part in [Synthetic::edition_id(2).as_str(), "runs resume", "edition discard", "edition §1"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(snapshot(&world.product()), before);
    let error = world.build_with(&RealFs, 1, None, &SMALL).unwrap_err();
    assert!(matches!(error, EditionError::AlreadySealed { .. }), "{error:?}");
    // The same edition is built again, from the start.
    std::fs::write(world.edition(2).join("tables.ducklake.wal"), b"half").unwrap();
    world.build(2, Some(1), &SMALL);
    world.seal(2, Some(1));
    assert_eq!(world.findings(2, Profile::Publish), [""; 0]);
}

#[test]
fn what_was_not_built_or_was_built_otherwise_is_not_sealed() {
    let world = World::new();
    let error = world.seal_with(&RealFs, 1, None).unwrap_err();
    assert!(matches!(error, EditionError::NotBuilt { .. }), "{error:?}");
    world.publish(1, None, &SMALL);
    world.build(2, Some(1), &SMALL);
    let error = world.seal_with(&RealFs, 2, None).unwrap_err();
    assert!(matches!(&error, EditionError::OtherEdition { field: "previous", .. }), "{error:?}");
    let error = world.seal_with(&RealFs, 2, Some(7)).unwrap_err();
    assert!(matches!(error, EditionError::NotSealed { .. }), "{error:?}");
    world.seal(2, Some(1));
    let error = world.seal_with(&RealFs, 2, None).unwrap_err();
    assert!(matches!(&error, EditionError::OtherEdition { field: "previous", .. }), "{error:?}");
    // A sealed edition whose files are others is never taken.
    let store = world.edition(2).join("metadata.duckdb");
    let mut bytes = std::fs::read(&store).unwrap();
    bytes[5000] ^= 1;
    std::fs::write(&store, bytes).unwrap();
    let error = world.seal_with(&RealFs, 2, Some(1)).unwrap_err();
    assert!(matches!(&error, EditionError::SealedOtherwise { detail, .. } if detail.contains("SHA-256")), "{error:?}");
}

#[test]
fn artefacts_that_cannot_be_stored_change_nothing() {
    use catalog_rules::sdmx::model::Artefact;
    let mut world = World::new();
    world.publish(1, None, &SMALL);
    let before = snapshot(&world.product());
    let Artefact::Codelist(list) = &mut world.artefacts[0] else { panic!("not the codelist") };
    list.codes[0].parent_id = Some("G5".to_owned());
    let error = world.build_with(&RealFs, 2, Some(1), &SMALL).unwrap_err();
    assert_eq!(error.disposition(), Disposition::Terminal);
    assert_eq!(snapshot(&world.product()), before, "{error}");
    assert_eq!(unsealed(&world.product()).unwrap(), []);
}

#[test]
fn an_edition_of_another_schema_is_neither_read_nor_extended() {
    let world = World::new();
    world.publish(1, None, &SMALL);
    let path = world.edition(1).join("manifest.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("2.52-jobctl.1", "2.51")).unwrap();
    let errors = [
        EditionReader::open(&world.duck, &world.edition(1)).unwrap_err(),
        world.build_with(&RealFs, 2, Some(1), &SMALL).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(&error, EditionError::Version { field: "schema_version", .. }), "{error:?}");
        assert!(error.to_string().contains("2.51, expected 2.52-jobctl.1"), "{error}");
    }
}
