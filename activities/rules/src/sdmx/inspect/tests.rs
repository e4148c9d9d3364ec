use super::*;
use crate::sdmx::model::{
    AttachmentLevel, Code, Codelist, CodelistExtension, ConstraintAttachment, CubeRegion, DataConstraint, DataKey,
    DataKeySet, Dataflow, Dimension, Facet, Group, HierarchicalCode, Hierarchy, KeyValue, Maintained,
    MetadataAttributeUsage, RegionValue, Representation,
};

fn name(text: &str) -> InternationalString {
    [("en".to_owned(), text.to_owned())].into()
}

fn common(id: &str) -> Maintained {
    Maintained {
        id: id.to_owned(),
        maintainer: "STC".to_owned(),
        version: "1.0".to_owned(),
        name: name("A"),
        ..Maintained::default()
    }
}

fn code(id: &str, parent: Option<&str>) -> Code {
    Code { id: id.to_owned(), name: name(id), parent_id: parent.map(str::to_owned), ..Code::default() }
}

fn list(id: &str, codes: Vec<Code>) -> Artefact {
    Artefact::Codelist(Codelist { common: common(id), codes, ..Codelist::default() })
}

fn codes(found: &[Finding]) -> Vec<(&'static str, &str)> {
    found.iter().map(|finding| (finding.code.as_str(), finding.place.as_str())).collect()
}

#[test]
fn a_good_list_has_no_findings() {
    assert_eq!(artefact(&list("CL", vec![code("A", None), code("1", Some("A")), code("_T", Some("1"))])), []);
}

#[test]
fn double_missing_and_cyclic_items_are_told_once_each() {
    let found = artefact(&list(
        "CL",
        vec![
            code("A", Some("B")),
            code("B", Some("A")),
            code("C", Some("Z")),
            code("C", None),
            code("D", Some("D")),
            code("E", Some("A")),
            code("a.b", None),
        ],
    ));
    assert_eq!(
        codes(&found),
        [
            ("duplicate_item", "codes[3]"),
            ("bad_id", "codes[6]"),
            ("cyclic_parent", "codes[0]"),
            ("missing_parent", "codes[2]"),
            ("cyclic_parent", "codes[4]"),
        ]
    );
    assert!(found[2].message.contains("A → B → A"), "{}", found[2].message);
}

#[test]
fn a_long_line_of_parents_is_walked_once() {
    let mut line: Vec<Code> = (1..50_000).map(|n| code(&format!("C{n}"), Some(&format!("C{}", n - 1)))).collect();
    line.push(code("C0", None));
    assert_eq!(artefact(&list("CL", line)), []);
}

#[test]
fn names_languages_versions_and_stubs_are_looked_at() {
    let texts = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    let list = Codelist {
        common: Maintained {
            version: "1.0+".to_owned(),
            maintainer: "STC.1".to_owned(),
            name: texts(&[("en", " "), ("french", "F"), ("fr-CA", "F"), ("_default", "x"), ("", "y")]),
            is_external_reference: true,
            ..common("CL")
        },
        codes: vec![Code { name: InternationalString::new(), ..code("A", None) }],
        ..Codelist::default()
    };
    let found = artefact(&Artefact::Codelist(list));
    assert_eq!(
        codes(&found),
        [
            ("bad_version", "version"),
            ("bad_id", "maintainer"),
            ("empty_name", "name"),
            ("bad_language", "name"),
            ("bad_language", "name"),
            ("stub", ""),
            ("no_name", "codes[0].name"),
        ]
    );
    let empty = Codelist { common: common("CL"), is_partial: true, ..Codelist::default() };
    assert_eq!(codes(&artefact(&Artefact::Codelist(empty))), [("empty_partial", "")]);
}

#[test]
fn a_data_structure_is_held_to_its_own_components() {
    let structure = DataStructure {
        common: common("DSD"),
        dimensions: vec![Dimension { id: "GEO".to_owned(), ..Dimension::default() }],
        groups: Some(vec![
            Group { id: "G".to_owned(), ..Group::default() },
            Group { id: "H".to_owned(), dimension_ids: vec!["GEO".to_owned(), "SEX".to_owned()], ..Group::default() },
        ]),
        metadata_attributes: vec![MetadataAttributeUsage {
            id: "M".to_owned(),
            attachment: AttachmentLevel::Group,
            related_dimensions: None,
            optional_dimensions: BTreeSet::new(),
            related_group: Some("K".to_owned()),
            annotations: vec![],
            uri: None,
            links: vec![],
        }],
        ..DataStructure::default()
    };
    assert_eq!(
        codes(&artefact(&Artefact::DataStructure(Box::new(structure)))),
        [
            ("bad_value", "groups[0]"),
            ("unknown_component", "groups[1]"),
            ("unknown_component", "metadata_attributes[0]"),
        ]
    );
}

/// A codelist, a structure over it, a flow, and what is said of them.
fn product(constraint: DataConstraint, extra: Vec<Artefact>) -> Vec<Finding> {
    let enumerated = Representation::Enumerated("urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL(1.0)".to_owned());
    let free = Representation::Text(Box::<Facet>::default());
    let dimension = |id: &str, representation: &Representation| Dimension {
        id: id.to_owned(),
        representation: Some(representation.clone()),
        ..Dimension::default()
    };
    let structure = DataStructure {
        common: common("DSD"),
        dimensions: vec![dimension("GEO", &enumerated), dimension("NOTE", &free)],
        ..DataStructure::default()
    };
    let flow = Dataflow {
        common: common("DF"),
        structure: Some("urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=STC:DSD(1.0)".to_owned()),
        dimension_constraint: vec![],
    };
    let mut artefacts = vec![
        list("CL", vec![code("CA", None)]),
        Artefact::DataStructure(Box::new(structure)),
        Artefact::Dataflow(Box::new(flow)),
        Artefact::DataConstraint(Box::new(constraint)),
    ];
    artefacts.extend(extra);
    message(&artefacts)
}

fn on_flow() -> DataConstraint {
    let dataflows = vec!["urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=STC:DF(1.0)".to_owned()];
    DataConstraint {
        common: common("C"),
        attachment: ConstraintAttachment { dataflows, ..ConstraintAttachment::default() },
        ..DataConstraint::default()
    }
}

fn key(id: &str, values: &[&str]) -> KeyValue {
    let value = |value: &&str| RegionValue { value: (*value).to_owned(), ..RegionValue::default() };
    KeyValue {
        dimension_id: id.to_owned(),
        values: values.iter().map(value).collect(),
        time_range: None,
        include: true,
        remove_prefix: false,
        valid_from: None,
        valid_to: None,
    }
}

#[test]
fn a_constraint_is_held_to_the_components_and_codes_of_its_structure() {
    let region = CubeRegion {
        include: true,
        keys: vec![key("GEO", &["CA", "US", "U%"]), key("NOTE", &["free"]), key("SEX", &["M"])],
        components: vec![],
        annotations: vec![],
    };
    let keys = DataKeySet {
        is_included: true,
        keys: vec![DataKey { values: vec![("GEO".into(), "MX".into())], ..DataKey::default() }],
    };
    let constraint = DataConstraint { regions: vec![region], data_key_sets: vec![keys], ..on_flow() };
    let found = product(constraint, vec![]);
    assert_eq!(
        codes(&found),
        [
            ("unknown_code", "regions[0].keys[0]"),
            ("unknown_component", "regions[0].keys[2]"),
            ("unknown_code", "data_key_sets[0].keys[0]"),
        ]
    );
    assert!(found[0].message.contains("\"US\" of \"GEO\""), "{}", found[0].message);
}

#[test]
fn references_are_followed_as_far_as_the_message_holds_them() {
    let code_urn = |item: &str| format!("urn:sdmx:org.sdmx.infomodel.codelist.Code=STC:{item}");
    let node = |item: &str| HierarchicalCode {
        id: item.replace(['(', ')', '.'], "_"),
        code: Some(code_urn(item)),
        ..HierarchicalCode::default()
    };
    let hierarchy = Hierarchy {
        common: common("H"),
        tree: vec![node("CL(1.0).CA"), node("CL(1.0).XX"), node("CL_ELSE(1.0).A"), node("CL_ELSE(1.0).B")],
        ..Hierarchy::default()
    };
    let extended = Codelist {
        common: common("CL_EXT"),
        extensions: vec![CodelistExtension {
            codelist: "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL(1.0+.0)".to_owned(),
            ..CodelistExtension::default()
        }],
        ..Codelist::default()
    };
    let found = product(
        on_flow(),
        vec![
            Artefact::Hierarchy(hierarchy),
            Artefact::Codelist(extended),
            list("CL_EXT", vec![]),
            list("CL_EXT", vec![]),
        ],
    );
    assert_eq!(
        codes(&found),
        [
            ("duplicate_artefact", ""),
            ("duplicate_artefact", ""),
            ("unresolved_reference", "code[1]"),
            ("unresolved_reference", "code[2]"),
        ]
    );
    assert!(found[3].message.contains("CL_ELSE(1.0) is not in the message (2 references)"), "{}", found[3].message);
}
