use super::*;
use crate::ids::Sha256Hex;
use crate::sdmx::fingerprint::artefact_fingerprint;
use crate::sdmx::vectors;

#[test]
fn every_reference_text_is_read_and_written_the_same() {
    let Some(texts) = vectors::texts() else { return };
    assert!(texts.len() > 30, "{}", texts.len());
    for text in texts {
        let artefact = decode(&text.text).unwrap_or_else(|error| panic!("{}: {error}", text.name));
        assert_eq!(canonical_text(&artefact).unwrap(), text.text, "{}", text.name);
        assert_eq!(artefact_fingerprint(&artefact).unwrap().as_str(), text.sha256, "{}", text.name);
        assert_eq!(artefact.urn(), text.urn, "{}", text.name);
    }
}

const LIST: &str = r#"{"$class":"Codelist","annotations":[],"codes":[],"description":{},"extensions":[],"id":"CL","is_external_reference":false,"is_partial":false,"is_partial_language":false,"legacy_is_final":null,"links":[],"maintainer":"STC","name":{"en":"A"},"service_url":null,"structure_url":null,"uri":null,"valid_from":null,"valid_to":null,"version":"1.0"}"#;

#[test]
fn nothing_is_dropped() {
    assert!(decode(LIST).is_ok());
    for (from, to, expected) in [
        ("\"codes\":[]", "\"codes\":[],\"colour\":1", "Codelist.colour is no field"),
        ("\"codes\":[],", "", "Codelist.codes is missing"),
        ("\"codes\":[]", "\"codes\":[1]", "Codelist.codes[0] is 1: expected an object"),
        ("\"uri\":null", "\"uri\":1", "Codelist.uri is 1: expected a string"),
        ("\"valid_to\":null", "\"valid_to\":\"2020\"", "Codelist.valid_to is \"2020\": expected an instant"),
        ("\"is_partial\":false", "\"is_partial\":null", "Codelist.is_partial is null: expected true or false"),
        ("{\"en\":\"A\"}", "[\"A\"]", "Codelist.name is [\"A\"]: expected an object of language to text"),
        ("Codelist", "ValueList", "ValueList.items is missing"),
        ("Codelist", "Colour", "\"Colour\" is no class of maintainable artefacts: expected one of AgencyScheme, "),
        ("\"id\":\"CL\"", "\"id\": \"CL\"", "not in canonical form 1"),
        ("\"name\":{\"en\":\"A\"}", "\"name\":{\"en\":\"B\",\"en\":\"A\"}", "not in canonical form 1"),
        ("\"valid_to\":null", "\"valid_to\":\"2020-01-01T00:00:00Z\"", "not in canonical form 1"),
        ("{\"$class\"", "\"$class\"", "is not"),
    ] {
        let text = LIST.replacen(from, to, 1);
        assert_ne!(text, LIST, "{from}");
        let error = decode(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
}

#[test]
fn an_integer_in_a_float_field_is_refused() {
    let Some(texts) = vectors::texts() else { return };
    let full = texts.iter().find(|text| text.name == "ConceptScheme full").unwrap();
    assert_eq!(Sha256Hex::of(full.text.as_bytes()).as_str(), full.sha256);
    let text = full.text.replacen("\"max_value\":100.0", "\"max_value\":100", 1);
    let error = decode(&text).unwrap_err().to_string();
    assert!(error.contains("core_representation.max_value is 100: expected a number with a fraction"), "{error}");
}
