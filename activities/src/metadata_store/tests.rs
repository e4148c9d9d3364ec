use std::path::{Path, PathBuf};

use catalog_rules::instant::Instant;
use catalog_rules::sdmx::canonical::canonical_text;
use catalog_rules::sdmx::decode::decode;
use catalog_rules::sdmx::fingerprint::artefact_fingerprint;
use catalog_rules::sdmx::model::{
    Code, Codelist, Concept, ConceptScheme, DataStructure, DataflowBinding, Dimension, Facet, Measure, Representation,
};
use engine_rules::failure::{ActivityError as _, Disposition};
use serde_json::Value;

use super::*;
use crate::shared::shared;

mod full;

use full::{common, enumerated, full, full_structure, text};

const CLASSES: [&str; 5] = ["AgencyScheme", "Codelist", "ConceptScheme", "DataStructure", "Dataflow"];

fn json(inner: &str) -> Option<Value> {
    Some(serde_json::from_slice(&std::fs::read(shared(inner)?).unwrap()).unwrap())
}

/// The artefacts of the reference data of our classes, by where they are from; a URN occurs once in each.
fn reference() -> Option<Vec<(String, Vec<Artefact>)>> {
    let mut sets = Vec::new();
    let text = |value: &Value| decode(value.as_str().unwrap()).unwrap();
    let mut corpus = Vec::new();
    for class in CLASSES {
        let vectors = json(&format!("vectors/canonical/{class}.json"))?;
        corpus.extend(vectors["vectors"].as_array().unwrap().iter().map(|vector| text(&vector["model_canonical"])));
    }
    sets.push(("corpus".to_owned(), corpus));
    for product in ["tiny", "statcan_1"] {
        sets.push((product.to_owned(), product_artefacts(product)?));
    }
    for message in ["edge_ml21.xml", "edge_ml30.xml", "statcan_14100287_ml31.xml"] {
        let message = json(&format!("vectors/messages/{message}.canonical.json"))?;
        let ours = message["artefacts"].as_object().unwrap().values();
        let ours = ours.filter(|artefact| CLASSES.contains(&artefact["class"].as_str().unwrap()));
        sets.push((message["message"].to_string(), ours.map(|artefact| text(&artefact["canonical"])).collect()));
    }
    Some(sets)
}

fn product_artefacts(product: &str) -> Option<Vec<Artefact>> {
    let vectors = json(&format!("vectors/fingerprints/{product}/vectors.json"))?;
    let texts = vectors["canonical"].as_object().unwrap().values().map(|text| text.as_str().unwrap());
    let ours = texts.filter(|text| CLASSES.iter().any(|class| text.contains(&format!("{{\"$class\":\"{class}\""))));
    Some(ours.filter_map(|text| decode(text).ok()).collect())
}

fn by_urn(mut artefacts: Vec<Artefact>) -> Vec<Artefact> {
    artefacts.sort_by_key(Artefact::urn);
    artefacts
}

/// A folder with a store attached as a name that needs quotes.
struct Fixture {
    folder: tempfile::TempDir,
    conn: Connection,
}

const CATALOG: &str = "14-meta x.y 'z'";

impl Fixture {
    fn new() -> Self {
        let fixture = Self { folder: tempfile::tempdir().unwrap(), conn: Connection::open_in_memory().unwrap() };
        fixture.attach(&fixture.path("metadata.duckdb"), "");
        fixture.store().create(Form::Keyed).unwrap();
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn attach(&self, path: &Path, options: &str) {
        let sql = format!("ATTACH '{}' AS {} {options}", path.display(), rows::identifier(CATALOG));
        self.conn.execute_batch(&sql).unwrap();
    }

    fn detach(&self) {
        self.conn.execute_batch(&format!("DETACH {}", rows::identifier(CATALOG))).unwrap();
    }

    fn store(&self) -> MetadataStore<'_> {
        MetadataStore::new(&self.conn, CATALOG)
    }

    fn execute(&self, sql: &str) {
        self.conn.execute_batch(&sql.replace("SDMX", &self.store().target.qualified())).unwrap();
    }

    /// How many rows each table has.
    fn counts(&self) -> BTreeMap<&'static str, i64> {
        TABLES
            .iter()
            .map(|table| {
                let sql = format!("SELECT count(*) FROM {}.\"{}\"", self.store().target.qualified(), table.name);
                (table.name, self.conn.query_row(&sql, [], |row| row.get(0)).unwrap())
            })
            .collect()
    }
}

#[track_caller]
fn same(read: &[Artefact], written: &[Artefact], what: &str) {
    assert_eq!(read.len(), written.len(), "{what}");
    for (read, written) in read.iter().zip(written) {
        assert_eq!(read, written, "{what}");
        assert_eq!(canonical_text(read).unwrap(), canonical_text(written).unwrap(), "{what}");
        assert_eq!(artefact_fingerprint(read).unwrap(), artefact_fingerprint(written).unwrap(), "{what}");
    }
}

fn binding(dataflow: &str) -> DataflowBinding {
    let columns = |id: &str| BTreeMap::from([(id.to_owned(), format!("{id} column"))]);
    DataflowBinding {
        dataflow: dataflow.to_owned(),
        table_location: "codr.t1".to_owned(),
        dimension_columns: columns("GEO"),
        measure_columns: columns("OBS_VALUE"),
        attribute_columns: BTreeMap::new(),
        structural_version: "STC:DSD(1.0)".to_owned(),
        source_registry: "local".to_owned(),
        materialized_at: Instant::from_us(1),
        bound_at: Instant::from_us(2),
    }
}

#[test]
fn what_is_stored_is_what_was_written_before_and_after_compaction() {
    let mut sets = reference().unwrap_or_default();
    sets.push(("full".to_owned(), full()));
    for (name, artefacts) in sets {
        assert!(!artefacts.is_empty(), "{name}");
        let fixture = Fixture::new();
        fixture.store().write_artefacts(&artefacts).unwrap();
        let artefacts = by_urn(artefacts);
        same(&fixture.store().read_artefacts().unwrap(), &artefacts, &name);
        let counts = fixture.counts();
        fixture.detach();

        for (from, to, form) in
            [("metadata.duckdb", "sealed.duckdb", Form::Sealed), ("sealed.duckdb", "keyed.duckdb", Form::Keyed)]
        {
            compact(&fixture.conn, &fixture.path(from), &fixture.path(to), form).unwrap();
            fixture.attach(&fixture.path(to), "(READ_ONLY)");
            same(&fixture.store().read_artefacts().unwrap(), &artefacts, &format!("{name} {to}"));
            assert_eq!(fixture.counts(), counts);
            fixture.detach();
        }
    }
}

#[test]
fn an_artefact_takes_the_place_of_the_stored_one() {
    let fixture = Fixture::new();
    let store = fixture.store();
    store.write_artefacts(&full()).unwrap();
    let counts = fixture.counts();
    store.write_artefacts(&full()).unwrap();
    assert_eq!(fixture.counts(), counts);
    same(&store.read_artefacts().unwrap(), &by_urn(full()), "written twice");

    // As a value, this scheme is the stored one: its text differs.
    let mut signed = full();
    let Artefact::ConceptScheme(scheme) = &mut signed[2] else { panic!("no concept scheme") };
    let Some(Representation::Text(facet)) = &mut scheme.concepts[0].core_representation else { panic!("no format") };
    facet.min_value = Some(0.0);
    assert_eq!(signed, full());
    store.write_artefacts(&signed).unwrap();
    same(&store.read_artefacts().unwrap(), &by_urn(signed), "another sign");
    assert_eq!(fixture.counts(), counts);

    let bare = Artefact::Codelist(Codelist { common: common("CL_FULL"), ..Codelist::default() });
    store.write_artefacts(std::slice::from_ref(&bare)).unwrap();
    let read = store.read_artefacts().unwrap();
    assert_eq!(read.iter().find(|artefact| artefact.urn() == bare.urn()), Some(&bare));
    assert_eq!(read.len(), full().len());
    assert_eq!(fixture.counts()["code"], 0);
}

#[test]
fn what_a_product_no_longer_holds_goes_with_all_its_rows() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let empty = fixture.counts();
    let flow = full().into_iter().find(|artefact| artefact.class() == "Dataflow").unwrap().urn();
    let availability = Availability { dataflow: flow.clone(), observations: 1, dimensions: vec![] };
    let fill = || {
        store.write_artefacts(&full()).unwrap();
        store.write_binding(&binding(&flow)).unwrap();
        store.write_availability(std::slice::from_ref(&availability)).unwrap();
    };
    fill();
    store.retain(&BTreeSet::from([flow.clone()])).unwrap();
    assert_eq!(store.read_artefacts().unwrap().len(), 1);
    assert_eq!(store.read_bindings().unwrap(), [binding(&flow)]);
    assert_eq!(store.read_availability().unwrap(), std::slice::from_ref(&availability));

    fill();
    let all_but_flow = full().iter().map(Artefact::urn).filter(|urn| *urn != flow).collect();
    store.retain(&all_but_flow).unwrap();
    assert_eq!(store.read_artefacts().unwrap().len(), full().len() - 1);
    assert_eq!((store.read_bindings().unwrap(), store.read_availability().unwrap()), (vec![], vec![]));

    store.retain(&BTreeSet::new()).unwrap();
    assert_eq!(fixture.counts(), empty);
}

#[test]
fn a_write_that_fails_leaves_the_store_as_it_was() {
    let fixture = Fixture::new();
    let store = fixture.store();
    store.write_artefacts(&full()).unwrap();
    let code = |id: &str, parent: Option<&str>| Code {
        id: id.to_owned(),
        parent_id: parent.map(str::to_owned),
        ..Code::default()
    };
    let list = |codes| Artefact::Codelist(Codelist { common: common("CL_FULL"), codes, ..Codelist::default() });
    let dimension = Dimension { id: "X".to_owned(), ..Dimension::default() };
    let structure = DataStructure {
        common: common("DSD"),
        dimensions: vec![dimension.clone(), dimension],
        ..DataStructure::default()
    };
    let long = Facet { max_length: Some(1 << 40), ..Facet::default() };
    let concept = Concept { id: "C".to_owned(), core_representation: text(long), ..Concept::default() };
    let scheme = ConceptScheme { common: common("CS"), concepts: vec![concept], ..ConceptScheme::default() };
    for (wrong, code) in [
        (vec![list(vec![code("a", None), code("a", None)])], "metadata.duplicate"),
        (vec![list(vec![]), list(vec![])], "metadata.duplicate"),
        (vec![list(vec![code("a", Some("b")), code("b", Some("a"))])], "metadata.parent_loop"),
        (vec![Artefact::DataStructure(Box::new(structure))], "metadata.duplicate"),
        (vec![list(vec![]), Artefact::ConceptScheme(scheme)], "metadata.out_of_range"),
    ] {
        let error = store.write_artefacts(&wrong).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert_eq!(error.disposition(), Disposition::Terminal);
        assert!(error.to_string().contains("edition §4"), "{error}");
        same(&store.read_artefacts().unwrap(), &by_urn(full()), code);
    }
    let error = store.write_binding(&binding("STC:DF(1.0)")).unwrap_err();
    assert!(error.to_string().contains("dataflow_binding.dataflow_urn holds STC:DF(1.0)"), "{error}");
}

#[test]
fn bindings_and_availability_are_read_back() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let flow = |id: &str| format!("urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=STC:{id}(1.0)");
    let (a, b) = (binding(&flow("A")), DataflowBinding { table_location: "codr.t2".into(), ..binding(&flow("B")) });
    store.write_binding(&b).unwrap();
    store.write_binding(&binding(&flow("B"))).unwrap();
    store.write_binding(&b).unwrap();
    store.write_binding(&a).unwrap();
    assert_eq!(store.read_bindings().unwrap(), [a, b]);
    assert_eq!(store.read_artefacts().unwrap(), []);

    let values = |dimension: &str, values: &[&str]| DimensionValues {
        dimension: dimension.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    let one = Availability {
        dataflow: flow("A"),
        observations: 3,
        dimensions: vec![values("Z", &["2", "10"]), values("A", &["b", "a", "c"])],
    };
    let two = Availability { dataflow: flow("B"), observations: 0, dimensions: vec![] };
    store.write_availability(&[two.clone(), one.clone()]).unwrap();
    assert_eq!(store.read_availability().unwrap(), [one.clone(), two]);
    store.write_availability(std::slice::from_ref(&one)).unwrap();
    assert_eq!(store.read_availability().unwrap(), [one]);
    store.write_availability(&[]).unwrap();
    assert_eq!(store.read_availability().unwrap(), []);
}

#[test]
fn the_meta_table_says_which_edition_this_is() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let (id, previous): (EditionId, EditionId) = (
        "01a18e76-2bad-7480-abfe-2ba8a6889a45".parse().unwrap(),
        "01a18e76-2bad-7480-abfe-2ba8a6889a46".parse().unwrap(),
    );
    let meta = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(store.meta().unwrap(), meta(&[("schema_version", "2.52-jobctl.1")]));
    store.set_edition(&id, Some(&previous)).unwrap();
    assert_eq!(
        store.meta().unwrap(),
        meta(&[("schema_version", SCHEMA_VERSION), ("edition_id", id.as_str()), ("previous", previous.as_str())])
    );
    store.set_edition(&previous, None).unwrap();
    assert_eq!(store.meta().unwrap(), meta(&[("schema_version", SCHEMA_VERSION), ("edition_id", previous.as_str())]));
    assert!(sdmxlib_version().starts_with("0+jobctl."));
}

#[test]
fn the_closure_of_a_stored_product_is_the_reference_one() {
    for product in ["tiny", "statcan_1"] {
        let Some(artefacts) = product_artefacts(product) else { return };
        let vectors = json(&format!("vectors/fingerprints/{product}/vectors.json")).unwrap();
        let fixture = Fixture::new();
        let store = fixture.store();
        store.write_artefacts(&artefacts).unwrap();
        for (dataflow, closure) in vectors["closures_3_0"].as_object().unwrap() {
            store.write_binding(&binding(dataflow)).unwrap();
            let held: BTreeSet<String> = artefacts.iter().map(Artefact::urn).collect();
            let mut expected: BTreeSet<String> =
                closure.as_array().unwrap().iter().map(|urn| urn.as_str().unwrap().to_owned()).collect();
            expected.retain(|urn| held.contains(urn));
            assert_eq!(store.graph().unwrap().closure(dataflow), expected, "{product}");
        }
        assert_eq!(store.check_references().unwrap(), [], "{product}");
    }
}

#[test]
fn a_reference_to_nothing_is_found() {
    let concept = |urn: &str| format!("urn:sdmx:org.sdmx.infomodel.conceptscheme.Concept=STC:CS{urn}");
    let dimension = |id: &str, concept: String, list: &str| Dimension {
        id: id.to_owned(),
        concept: Some(concept),
        representation: enumerated(&format!("urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:{list}")),
        ..Dimension::default()
    };
    let structure = DataStructure {
        common: common("DSD"),
        dimensions: vec![
            dimension("HELD", concept("(1.0).A"), "CL(1.0)"),
            dimension("LATEST", concept(".A"), "CL"),
            dimension("ABSENT", concept("(1.0).B"), "CL(2.0)"),
            dimension("OTHER_SCHEME", concept("2.A"), "CL2"),
        ],
        ..DataStructure::default()
    };
    let a = Concept { id: "A".to_owned(), ..Concept::default() };
    let scheme = ConceptScheme { common: common("CS"), concepts: vec![a], ..ConceptScheme::default() };
    let list = Codelist { common: common("CL"), ..Codelist::default() };
    let fixture = Fixture::new();
    let store = fixture.store();
    store
        .write_artefacts(&[
            Artefact::DataStructure(Box::new(structure)),
            Artefact::ConceptScheme(scheme),
            Artefact::Codelist(list),
        ])
        .unwrap();
    let found: Vec<(String, String)> = store
        .check_references()
        .unwrap()
        .into_iter()
        .map(|finding| (finding.role, finding.target.split_once("STC:").unwrap().1.to_owned()))
        .collect();
    let expected = [
        ("concept_identity", "CS(1.0).B"),
        ("concept_identity", "CS2.A"),
        ("enumeration", "CL(2.0)"),
        ("enumeration", "CL2"),
    ];
    let expected = expected.map(|(role, target)| (role.to_owned(), target.to_owned()));
    assert_eq!(found, expected);
}

#[test]
fn a_reference_that_stands_in_a_column_alone_or_by_an_alias_is_checked_too() {
    let fixture = Fixture::new();
    let store = fixture.store();
    let measure = full_structure().measures[0].clone();
    let structure = DataStructure {
        common: common("DSD"),
        measures: vec![Measure { concept: None, ..measure }],
        ..DataStructure::default()
    };
    store.write_artefacts(&[Artefact::DataStructure(Box::new(structure))]).unwrap();
    fixture.execute(
        "INSERT INTO SDMX.artefact_ref VALUES
           ('s', 'urn:sdmx:org.sdmx.infomodel.datastructure.PrimaryMeasure=STC:DSD(1.0).M2', 'linked_object', NULL),
           ('s', 'urn:sdmx:org.sdmx.infomodel.datastructure.Measure=STC:DSD(1.0).M2', 'linked_object', NULL),
           ('s', 'urn:sdmx:org.sdmx.infomodel.datastructure.DataAttribute=STC:DSD(1.0).M2', 'linked_object', NULL)",
    );
    fixture.execute("INSERT INTO SDMX.dataflow VALUES ('f', 'nowhere', NULL)");
    let found = store.check_references().unwrap();
    let found: Vec<&str> = found.iter().map(|finding| finding.target.as_str()).collect();
    assert_eq!(found, ["nowhere", "urn:sdmx:org.sdmx.infomodel.datastructure.DataAttribute=STC:DSD(1.0).M2"]);
}

#[test]
fn rows_that_belong_to_nothing_and_values_unheard_of_are_refused() {
    for (sql, code) in [
        ("DELETE FROM SDMX.artefact WHERE artefact_type = 'Codelist'", "metadata.orphan"),
        ("DELETE FROM SDMX.dataflow", "metadata.orphan"),
        ("DELETE FROM SDMX.agency WHERE agency_id = 'A'", "metadata.orphan"),
        ("DELETE FROM SDMX.annotation WHERE ordinal = 0", "metadata.orphan"),
        ("DELETE FROM SDMX.codelist_extension WHERE position = 0", "metadata.orphan"),
        ("DELETE FROM SDMX.dsd_group WHERE group_id = 'a'", "metadata.orphan"),
        ("UPDATE SDMX.artefact SET artefact_type = 'Hierarchy' WHERE artefact_type = 'Dataflow'", "metadata.class"),
        ("UPDATE SDMX.concept SET repr_kind = 'colour' WHERE concept_id = 'a'", "metadata.value"),
        ("UPDATE SDMX.concept SET repr_kind = NULL WHERE concept_id = 'a'", "metadata.value"),
        ("UPDATE SDMX.concept SET iso_agency = NULL WHERE concept_id = 'b'", "metadata.value"),
        ("UPDATE SDMX.dsd_component SET attachment_level = NULL WHERE component_id = '1'", "metadata.value"),
        ("UPDATE SDMX.dsd_component SET component_type = 'X' WHERE component_id = 'Z'", "metadata.value"),
        ("UPDATE SDMX.localized_text SET field = 'x' WHERE lang = 'fr'", "metadata.value"),
    ] {
        let fixture = Fixture::new();
        fixture.store().write_artefacts(&full()).unwrap();
        fixture.execute(sql);
        let error = fixture.store().read_artefacts().unwrap_err();
        assert_eq!(error.code(), code, "{sql}: {error}");
    }
}

#[test]
fn a_compacted_store_is_at_rest_at_its_storage_version_and_without_the_large_key() {
    for version in ["v1.0.0", "v1.5.0"] {
        let fixture = Fixture::new();
        fixture.detach();
        let (from, to) = (fixture.path("from.duckdb"), fixture.path("to.duckdb"));
        fixture.attach(&from, &format!("(STORAGE_VERSION '{version}')"));
        fixture.store().create(Form::Keyed).unwrap();
        fixture.store().write_artefacts(&full()).unwrap();
        let keys = "SELECT string_agg(table_name, ' ') FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'";
        let tag = |sql: &str| -> String { fixture.conn.query_row(sql, [], |row| row.get(0)).unwrap() };
        assert!(tag(keys).contains("artefact_ref"));
        fixture.detach();
        compact(&fixture.conn, &from, &to, Form::Sealed).unwrap();
        let left: BTreeSet<_> =
            std::fs::read_dir(fixture.folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["from.duckdb", "metadata.duckdb", "to.duckdb"].map(Into::into).into());
        fixture.attach(&to, "(READ_ONLY)");
        assert_eq!(
            tag("SELECT tags['storage_version'] FROM duckdb_databases() WHERE database_name LIKE '14%'"),
            format!("{version}+")
        );
        assert!(tag(keys).contains("annotation_text"));
        assert!(!tag(keys).contains("artefact_ref"));
    }
}

#[test]
fn compacting_the_same_store_twice_gives_the_same_rows_in_the_same_places() {
    let fixture = Fixture::new();
    let mut shuffled = full();
    shuffled.reverse();
    fixture.store().write_artefacts(&shuffled).unwrap();
    fixture.detach();
    let rows = |from: &str, to: &str| {
        compact(&fixture.conn, &fixture.path(from), &fixture.path(to), Form::Sealed).unwrap();
        fixture.attach(&fixture.path(to), "(READ_ONLY)");
        let all: Vec<Vec<String>> = TABLES
            .iter()
            .map(|table| {
                let schema = fixture.store().target.qualified();
                let sql = format!("SELECT t::VARCHAR FROM {schema}.\"{}\" AS t ORDER BY rowid", table.name);
                let mut statement = fixture.conn.prepare(&sql).unwrap();
                let rows = statement.query_map([], |row| row.get(0)).unwrap();
                rows.map(Result::unwrap).collect()
            })
            .collect();
        fixture.detach();
        all
    };
    let first = rows("metadata.duckdb", "1.duckdb");
    assert_eq!(rows("metadata.duckdb", "2.duckdb"), first);
    assert_eq!(rows("1.duckdb", "3.duckdb"), first);
}

#[test]
fn ids_go_on_behind_those_of_a_compacted_store() {
    let fixture = Fixture::new();
    fixture.store().write_artefacts(&full()).unwrap();
    fixture.detach();
    compact(&fixture.conn, &fixture.path("metadata.duckdb"), &fixture.path("next.duckdb"), Form::Keyed).unwrap();
    fixture.attach(&fixture.path("next.duckdb"), "");
    let Artefact::AgencyScheme(mut scheme) = full().swap_remove(0) else { panic!("no agency scheme") };
    scheme.common.id = "MORE".to_owned();
    let more = Artefact::AgencyScheme(scheme);
    fixture.store().write_artefacts(std::slice::from_ref(&more)).unwrap();
    let mut all = full();
    all.push(more);
    same(&fixture.store().read_artefacts().unwrap(), &by_urn(all), "extended");
    // A row without an id of its own takes the sequence's next.
    fixture.execute(
        "INSERT INTO SDMX.annotation (owner_urn, owner_artefact_urn, ordinal)
         SELECT owner_urn, owner_artefact_urn, 99 FROM SDMX.annotation LIMIT 1",
    );
    let gap = "SELECT (SELECT max(id) FROM SDMX.annotation) - (SELECT count(*) FROM SDMX.annotation)";
    let gap = gap.replace("SDMX", &fixture.store().target.qualified());
    assert_eq!(fixture.conn.query_row(&gap, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[test]
fn compaction_refuses_what_is_there_and_leaves_nothing_when_it_fails() {
    let fixture = Fixture::new();
    let (from, to) = (fixture.path("metadata.duckdb"), fixture.path("to.duckdb"));
    fixture.store().write_artefacts(&full()).unwrap();
    // The store is still open for writing and its log is not empty.
    let error = compact(&fixture.conn, &from, &to, Form::Sealed).unwrap_err();
    assert!(matches!(error, MetadataError::WalLeft { .. }), "{error}");
    fixture.detach();

    std::fs::write(&to, "something").unwrap();
    let error = compact(&fixture.conn, &from, &to, Form::Sealed).unwrap_err();
    assert!(matches!(error, MetadataError::Exists { .. }), "{error}");
    assert_eq!(std::fs::read(&to).unwrap(), b"something");
    std::fs::remove_file(&to).unwrap();

    // A store without one of its tables fails in the middle.
    fixture.attach(&from, "");
    fixture.execute("DROP TABLE SDMX.link");
    fixture.detach();
    let before = std::fs::read(&from).unwrap();
    for _ in 0..2 {
        let error = compact(&fixture.conn, &from, &to, Form::Sealed).unwrap_err();
        assert!(error.to_string().contains("copy link"), "{error}");
        assert!(!to.exists());
    }
    assert_eq!(std::fs::read(&from).unwrap(), before);
}
