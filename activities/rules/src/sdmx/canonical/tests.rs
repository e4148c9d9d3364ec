use super::*;
use crate::ids::Sha256Hex;
use crate::sdmx::model::{
    Agency, AgencyScheme, Annotation, AttachmentLevel, Attribute, Code, Codelist, Concept, ConceptScheme, Dataflow,
    Facet, InternationalString, Maintained, Representation, Usage,
};
use crate::sdmx::vectors;

fn name(texts: &[(&str, &str)]) -> InternationalString {
    texts.iter().map(|(language, text)| ((*language).to_owned(), (*text).to_owned())).collect()
}

fn spelt(value: &dyn Spelt) -> String {
    let mut text = String::new();
    value.spell(&mut Encoder { sink: &mut text, field: "", fault: None });
    text
}

fn facet_text(facet: Facet) -> Result<String, CanonicalError> {
    let concept = Concept {
        id: "C".to_owned(),
        core_representation: Some(Representation::Text(Box::new(facet))),
        ..Concept::default()
    };
    canonical_text(&Artefact::ConceptScheme(ConceptScheme { concepts: vec![concept], ..ConceptScheme::default() }))
}

#[test]
fn artefacts_built_here_give_the_reference_texts() {
    let minimal = |id: &str, version: &str| Maintained {
        id: id.to_owned(),
        maintainer: "STC".to_owned(),
        version: version.to_owned(),
        name: name(&[("en", "Minimal")]),
        ..Maintained::default()
    };
    let list = Codelist {
        common: minimal("CL_MIN", "1.0"),
        codes: vec![
            Code { id: "A".to_owned(), name: name(&[("en", "Annual")]), ..Code::default() },
            Code {
                id: "Q".to_owned(),
                name: name(&[("fr", "Trimestriel"), ("en", "Quarterly")]),
                parent_id: Some("A".to_owned()),
                ..Code::default()
            },
        ],
        ..Codelist::default()
    };
    let scheme = ConceptScheme {
        common: minimal("CS_MIN", "1.0"),
        concepts: vec![Concept { id: "FREQ".to_owned(), name: name(&[("en", "Frequency")]), ..Concept::default() }],
        is_partial: false,
    };
    let agencies = AgencyScheme {
        common: Maintained {
            id: "AGENCIES".to_owned(),
            maintainer: "SDMX".to_owned(),
            name: name(&[("en", "Agencies")]),
            ..minimal("", "1.0")
        },
        agencies: vec![Agency {
            id: "STC".to_owned(),
            name: name(&[("en", "Statistics Canada")]),
            ..Agency::default()
        }],
        is_partial: false,
    };
    let flow = Dataflow {
        common: minimal("DF_MIN", "1.0"),
        structure: Some("urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=STC:DSD_FULL(1.2.0)".to_owned()),
        dimension_constraint: vec![],
    };
    let Some(texts) = vectors::texts() else { return };
    for (case, artefact) in [
        ("Codelist minimal", Artefact::Codelist(list)),
        ("ConceptScheme minimal", Artefact::ConceptScheme(scheme)),
        ("AgencyScheme minimal", Artefact::AgencyScheme(agencies)),
        ("Dataflow minimal", Artefact::Dataflow(Box::new(flow))),
    ] {
        let expected = texts.iter().find(|text| text.name == case).unwrap();
        assert_eq!(canonical_text(&artefact).unwrap(), expected.text, "{case}");
        assert_eq!(artefact.urn(), expected.urn, "{case}");
    }
}

#[test]
fn an_attribute_is_written_with_its_set_sorted() {
    let Some(scalars) = vectors::json("vectors/canonical_scalars.json") else { return };
    let expected = scalars["sets"][1]["canonical"].as_str().unwrap();
    let attribute = Attribute {
        id: "x".to_owned(),
        usage: Usage::Optional,
        attachment: AttachmentLevel::Series,
        related_dimensions: Some(vec!["B".to_owned(), "A".to_owned()]),
        optional_dimensions: ["é", "a", "B", "A"].map(str::to_owned).into(),
        related_measures: None,
        related_group: None,
        attachment_groups: vec![],
        concept: None,
        representation: None,
        enumeration_format: None,
        min_occurs: 1,
        max_occurs: Some(1),
        annotations: vec![],
        concept_role: vec![],
        uri: None,
        links: vec![],
    };
    let structure = crate::sdmx::model::DataStructure { attributes: vec![attribute], ..Default::default() };
    let text = canonical_text(&Artefact::DataStructure(Box::new(structure))).unwrap();
    assert!(text.contains(&format!("\"attributes\":[{expected}]")), "{text}");
}

#[test]
fn a_set_is_sorted_by_the_text_of_its_elements() {
    // Within the set of the reference data, as strings: the quote that ends an element is compared too, and a quote
    // within one is written with a backslash before it.
    let Some(scalars) = vectors::json("vectors/canonical_scalars.json") else { return };
    let reference: serde_json::Value = serde_json::from_str(scalars["sets"][0]["canonical"].as_str().unwrap()).unwrap();
    let expected: Vec<String> =
        reference["values"].as_array().unwrap().iter().map(|v| v["value"].to_string()).collect();
    let elements: BTreeSet<String> =
        expected.iter().map(|spelt| serde_json::from_str::<String>(spelt).unwrap()).collect();
    assert_ne!(elements.iter().map(|text| spelt(text)).collect::<Vec<_>>(), expected, "this set shows nothing");
    assert_eq!(spelt(&elements), format!("[{}]", expected.join(",")));
}

#[test]
fn floats_have_their_shortest_form() {
    let Some(scalars) = vectors::json("vectors/canonical_scalars.json") else { return };
    for float in scalars["floats"].as_array().unwrap() {
        let value: f64 = float["repr"].as_str().unwrap().parse().unwrap();
        let text = facet_text(Facet { min_value: Some(value), ..Facet::default() }).unwrap();
        let expected = format!("\"min_value\":{},", float["canonical"].as_str().unwrap());
        assert!(text.contains(&expected), "{value}: {text}");
    }
}

#[test]
fn strings_are_escaped_no_more_than_json_asks() {
    let Some(scalars) = vectors::json("vectors/canonical_scalars.json") else { return };
    for string in scalars["strings"].as_array().unwrap() {
        let points = string["input_codepoints"].as_array().unwrap().iter();
        let text: String = points
            .map(|point| u32::from_str_radix(point.as_str().unwrap().trim_start_matches("0x"), 16).unwrap())
            .map(|point| char::from_u32(point).unwrap())
            .collect();
        assert_eq!(spelt(&text), string["canonical"].as_str().unwrap());
        assert_eq!(crate::ids::hex(spelt(&text).as_bytes()), string["bytes_hex"].as_str().unwrap());
    }
    let keys = scalars["keys"]["input"].as_array().unwrap().iter().map(|key| (key.as_str().unwrap(), "1"));
    let texts = name(&keys.collect::<Vec<_>>());
    assert_eq!(spelt(&texts), scalars["keys"]["canonical"].as_str().unwrap().replace(":1", ":\"1\""));
}

#[test]
fn instants_are_written_in_utc_with_microseconds() {
    let Some(scalars) = vectors::json("vectors/canonical_scalars.json") else { return };
    let mut seen = 0;
    for instant in scalars["datetimes"].as_array().unwrap() {
        // Other forms of input are a reader's matter.
        let Some(input) = instant["input"].as_str().unwrap().strip_suffix("+00:00") else { continue };
        let valid_from: Instant = format!("{input}Z").parse().unwrap();
        let common = Maintained { valid_from: Some(valid_from), ..Maintained::default() };
        let text = canonical_text(&Artefact::Codelist(Codelist { common, ..Codelist::default() })).unwrap();
        assert!(text.contains(&format!("\"valid_from\":{},", instant["canonical"].as_str().unwrap())), "{text}");
        seen += 1;
    }
    assert!(seen >= 5, "{seen}");
}

#[test]
fn what_cannot_be_spelt_is_refused_by_name() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = facet_text(Facet { max_value: Some(value), ..Facet::default() }).unwrap_err();
        assert!(matches!(error, CanonicalError::NonFinite { field: "max_value", .. }), "{error}");
        assert!(error.to_string().contains("edition §9"), "{error}");
    }
    let finals = Maintained { legacy_is_final: Some(false), ..Maintained::default() };
    let scheme = AgencyScheme { common: finals, ..AgencyScheme::default() };
    let error = canonical_text(&Artefact::AgencyScheme(scheme)).unwrap_err();
    assert!(matches!(error, CanonicalError::NotInClass { field: "legacy_is_final", .. }), "{error}");
}

#[test]
fn the_first_fault_is_the_one_that_is_told() {
    let facet = Facet { end_value: Some(f64::NAN), max_value: Some(f64::INFINITY), ..Facet::default() };
    assert!(matches!(facet_text(facet), Err(CanonicalError::NonFinite { field: "end_value", .. })));
}

#[test]
fn text_does_not_depend_on_how_the_sink_takes_it() {
    struct Pieces(Vec<String>);
    impl Sink for Pieces {
        fn put(&mut self, piece: &str) {
            self.0.push(piece.to_owned());
        }
    }
    let note = Annotation { text: name(&[("en", "a \"quoted\"\n line")]), ..Annotation::default() };
    let common = Maintained { annotations: vec![note], ..Maintained::default() };
    let artefact = Artefact::Codelist(Codelist { common, ..Codelist::default() });
    let mut pieces = Pieces(Vec::new());
    write_canonical(&artefact, &mut pieces).unwrap();
    let text = canonical_text(&artefact).unwrap();
    assert_eq!(pieces.0.concat(), text);
    assert_eq!(crate::sdmx::fingerprint::artefact_fingerprint(&artefact).unwrap(), Sha256Hex::of(text.as_bytes()),);
}

proptest::proptest! {
    #[test]
    fn a_float_reads_back_and_a_string_is_json(value in proptest::num::f64::NORMAL, text in ".*") {
        proptest::prop_assert_eq!(float_text(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
        proptest::prop_assert!(float_text(value).contains(['.', 'e']));
        proptest::prop_assert_eq!(serde_json::from_str::<String>(&spelt(&text)).unwrap(), text);
    }
}
