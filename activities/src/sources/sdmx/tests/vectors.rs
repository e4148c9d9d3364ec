//! The reader against the messages of the reference data: what each gives must have the text that the reference
//! implementation gave, to the byte. One test a file; a failure shows the first character that differs.

use std::collections::BTreeMap;

use catalog_rules::sdmx::canonical::canonical_text;
use catalog_rules::sdmx::fingerprint::artefact_fingerprint;
use serde_json::Value;

use super::super::{Message, read_message};
use crate::shared::shared;

fn json(inner: &str) -> Option<Value> {
    Some(serde_json::from_slice(&std::fs::read(shared(inner)?).unwrap()).unwrap())
}

fn string<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

fn by_urn(message: &Message) -> BTreeMap<String, (String, String)> {
    let mut texts = BTreeMap::new();
    for artefact in &message.artefacts {
        let fingerprint = artefact_fingerprint(artefact).unwrap().to_string();
        let before = texts.insert(artefact.urn(), (canonical_text(artefact).unwrap(), fingerprint));
        assert!(before.is_none(), "{} twice", artefact.urn());
    }
    texts
}

/// Where two texts part.
fn difference(found: &str, expected: &str) -> String {
    let at = found.chars().zip(expected.chars()).take_while(|(a, b)| a == b).count();
    let from = |text: &str| text.chars().skip(at.saturating_sub(60)).take(130).collect::<String>();
    format!("character {at} differs\n   found …{}…\nexpected …{}…", from(found), from(expected))
}

/// Reads every message of a class's file. What the reference implementation could not write, or wrote without the
/// artefact, is no message to read.
fn class(class: &str) {
    let Some(file) = json(&format!("vectors/canonical/{class}.json")) else { return };
    let (mut read, mut failed) = (0, Vec::new());
    for vector in file["vectors"].as_array().unwrap() {
        for message in vector["messages"].as_array().unwrap() {
            let Some(text) = message.get("message").and_then(Value::as_str) else { continue };
            if message.get("not_carried").is_some() {
                continue;
            }
            let name = format!("{class} {} from {}", string(vector, "name"), string(message, "format"));
            let expected = match message.get("canonical") {
                Some(canonical) => canonical.as_str().unwrap(),
                None => string(vector, "model_canonical"),
            };
            read += 1;
            match read_message(text.as_bytes()) {
                Err(error) => failed.push(format!("{name}: {error}")),
                Ok(message_read) => match by_urn(&message_read).get(string(vector, "urn")) {
                    None => failed.push(format!("{name}: not among what was read")),
                    Some((found, _)) if found != expected => {
                        failed.push(format!("{name}: {}", difference(found, expected)));
                    }
                    Some((_, fingerprint)) => assert_eq!(fingerprint, string(message, "sha256"), "{name}"),
                },
            }
        }
    }
    assert!(read > 0);
    assert!(failed.is_empty(), "{} of {read}:\n{}", failed.len(), failed.join("\n"));
}

/// Reads a whole message.
fn message(file: &str) {
    let Some(path) = shared(&format!("vectors/messages/{file}")) else { return };
    let Some(expected) = json(&format!("vectors/messages/{file}.canonical.json")) else { return };
    let read = read_message(std::fs::File::open(path).unwrap()).unwrap();
    let mut found = by_urn(&read);
    let mut failed = Vec::new();
    for (urn, artefact) in expected["artefacts"].as_object().unwrap() {
        match found.remove(urn) {
            None => failed.push(format!("{urn}: not among what was read")),
            Some((text, _)) if text != string(artefact, "canonical") => {
                failed.push(format!("{urn}: {}", difference(&text, string(artefact, "canonical"))));
            }
            Some((_, fingerprint)) => assert_eq!(fingerprint, string(artefact, "sha256"), "{urn}"),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(found.is_empty(), "{:?}", found.keys());
}

macro_rules! tests {
    ($($test:ident $check:ident $file:literal),+ $(,)?) => {
        $(
            #[test]
            fn $test() {
                $check($file);
            }
        )+
    };
}

tests! {
    agency_scheme class "AgencyScheme",
    categorisation class "Categorisation",
    category_scheme class "CategoryScheme",
    codelist class "Codelist",
    concept_scheme class "ConceptScheme",
    data_constraint class "DataConstraint",
    data_provider_scheme class "DataProviderScheme",
    data_structure class "DataStructure",
    dataflow class "Dataflow",
    geographic_codelist class "GeographicCodelist",
    hierarchy class "Hierarchy",
    hierarchy_association class "HierarchyAssociation",
    metadata_structure class "MetadataStructure",
    metadataflow class "Metadataflow",
    provision_agreement class "ProvisionAgreement",
    representation_map class "RepresentationMap",
    structure_map class "StructureMap",
    value_list class "ValueList",
    edge_ml21 message "edge_ml21.xml",
    edge_ml30 message "edge_ml30.xml",
    statcan_ml21 message "statcan_14100287_ml21.xml",
    statcan_ml30 message "statcan_14100287_ml30.xml",
    statcan_ml31 message "statcan_14100287_ml31.xml",
    statcan_json20 message "statcan_14100287_json20.json",
}
