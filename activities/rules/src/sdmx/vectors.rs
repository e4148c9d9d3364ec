//! The reference values that tests compare with.

use std::collections::BTreeMap;

use serde_json::Value;

use super::model::{Artefact, UrnText};
use crate::shared::shared;

/// A canonical text of the reference data and its SHA-256.
pub struct Text {
    pub name: String,
    pub urn: UrnText,
    pub text: String,
    pub sha256: String,
}

pub fn json(inner: &str) -> Option<Value> {
    let path = shared(inner)?;
    Some(serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
}

fn string(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Every canonical text: the corpus by class, and what the whole messages hold.
pub fn texts() -> Option<Vec<Text>> {
    let mut texts = Vec::new();
    for class in CLASSES {
        texts.extend(of_class(class)?);
    }
    for message in ["edge_ml21.xml", "edge_ml30.xml", "statcan_14100287_ml21.xml", "statcan_14100287_json20.json"] {
        for (urn, artefact) in json(&format!("vectors/messages/{message}.canonical.json"))?["artefacts"].as_object()? {
            texts.push(Text {
                name: format!("{message} {urn}"),
                urn: urn.clone(),
                text: string(&artefact["canonical"]),
                sha256: string(&artefact["sha256"]),
            });
        }
    }
    Some(texts)
}

/// The classes that the reference data has a file of.
pub const CLASSES: [&str; 18] = [
    "AgencyScheme",
    "Categorisation",
    "CategoryScheme",
    "Codelist",
    "ConceptScheme",
    "DataConstraint",
    "DataProviderScheme",
    "DataStructure",
    "Dataflow",
    "GeographicCodelist",
    "Hierarchy",
    "HierarchyAssociation",
    "MetadataStructure",
    "Metadataflow",
    "ProvisionAgreement",
    "RepresentationMap",
    "StructureMap",
    "ValueList",
];

/// The canonical texts of the file of a class: of the model, and of what messages and the store keep of it.
pub fn of_class(class: &str) -> Option<Vec<Text>> {
    let mut texts = Vec::new();
    for vector in json(&format!("vectors/canonical/{class}.json"))?["vectors"].as_array().unwrap() {
        let name = format!("{class} {}", string(&vector["name"]));
        let mut add = |name: String, text: &Value, sha256: &Value| {
            texts.push(Text { name, urn: string(&vector["urn"]), text: string(text), sha256: string(sha256) });
        };
        add(name.clone(), &vector["model_canonical"], &vector["model_sha256"]);
        if vector.get("store_canonical").is_some() {
            add(format!("{name} in the store"), &vector["store_canonical"], &vector["store_sha256"]);
        }
        for message in vector["messages"].as_array().unwrap() {
            if message.get("canonical").is_some() {
                add(format!("{name} from {}", message["format"]), &message["canonical"], &message["sha256"]);
            }
        }
    }
    Some(texts)
}

/// A whole product of the reference data.
pub struct Product {
    pub vectors: Value,
    pub manifest: Value,
}

impl Product {
    pub fn load(name: &str) -> Option<Self> {
        let folder = format!("vectors/fingerprints/{name}");
        Some(Self {
            vectors: json(&format!("{folder}/vectors.json"))?,
            manifest: json(&format!("{folder}/bundle.manifest.json"))?,
        })
    }

    /// The canonical texts by URN, of every class.
    pub fn texts(&self) -> BTreeMap<UrnText, String> {
        let texts = self.vectors["canonical"].as_object().unwrap();
        texts.iter().map(|(urn, text)| (urn.clone(), string(text))).collect()
    }

    /// The artefacts.
    pub fn artefacts(&self) -> Vec<Artefact> {
        self.texts().into_values().map(|text| super::decode::decode(&text).unwrap()).collect()
    }

    /// The stored references: source, target, role, ordinal.
    pub fn references(&self) -> Vec<(String, String, String, Option<i32>)> {
        let rows = self.vectors["artefact_ref_rows"].as_array().unwrap().iter();
        rows.map(|row| {
            let ordinal = row[3].as_i64().map(|ordinal| i32::try_from(ordinal).unwrap());
            (string(&row[0]), string(&row[1]), string(&row[2]), ordinal)
        })
        .collect()
    }
}

/// Fails with the first character that differs.
#[track_caller]
pub fn assert_same(name: &str, found: &str, expected: &str) {
    if found == expected {
        return;
    }
    let at = found.chars().zip(expected.chars()).take_while(|(a, b)| a == b).count();
    let from = |text: &str| text.chars().skip(at.saturating_sub(40)).take(100).collect::<String>();
    panic!("{name}: character {at} differs\n   found …{}…\nexpected …{}…", from(found), from(expected));
}

fn assert_file(class: &str) {
    let Some(texts) = of_class(class) else { return };
    assert!(!texts.is_empty());
    for text in texts {
        let artefact = super::decode::decode(&text.text).unwrap_or_else(|error| panic!("{}: {error}", text.name));
        assert_same(&text.name, &super::canonical::canonical_text(&artefact).unwrap(), &text.text);
        let fingerprint = super::fingerprint::artefact_fingerprint(&artefact).unwrap();
        assert_eq!(fingerprint.as_str(), text.sha256, "{}", text.name);
        assert_eq!(artefact.urn(), text.urn, "{}", text.name);
    }
}

/// One test for each file of the reference data.
macro_rules! files {
    ($($test:ident $class:literal),+ $(,)?) => {
        $(
            #[test]
            fn $test() {
                assert_file($class);
            }
        )+

        #[test]
        fn no_file_is_forgotten() {
            assert_eq!([$($class),+], CLASSES);
            let Some(folder) = shared("vectors/canonical") else { return };
            let mut there: Vec<String> = std::fs::read_dir(folder).unwrap()
                .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect();
            there.sort_unstable();
            assert_eq!(there, CLASSES);
        }
    };
}

files! {
    agency_scheme "AgencyScheme",
    categorisation "Categorisation",
    category_scheme "CategoryScheme",
    codelist "Codelist",
    concept_scheme "ConceptScheme",
    data_constraint "DataConstraint",
    data_provider_scheme "DataProviderScheme",
    data_structure "DataStructure",
    dataflow "Dataflow",
    geographic_codelist "GeographicCodelist",
    hierarchy "Hierarchy",
    hierarchy_association "HierarchyAssociation",
    metadata_structure "MetadataStructure",
    metadataflow "Metadataflow",
    provision_agreement "ProvisionAgreement",
    representation_map "RepresentationMap",
    structure_map "StructureMap",
    value_list "ValueList",
}

/// The model's classes against `model_classes.json`: every maintainable class, every field, every member of an enum.
#[test]
fn every_class_has_the_fields_of_the_reference_model() {
    let Some(classes) = json("vectors/model_classes.json") else { return };
    let classes = classes.as_object().unwrap();
    let maintainable: Vec<&str> =
        classes.iter().filter(|(_, class)| class["maintainable"] == true).map(|(name, _)| name.as_str()).collect();
    let mut ours = super::model::CLASSES.to_vec();
    ours.sort_unstable();
    assert_eq!(ours, maintainable);
    assert_eq!(ours.len(), 30);
    for class in ours {
        let fields: std::collections::BTreeSet<&str> = classes[class]["fields"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|field| field["init"] == true)
            .map(|field| field["name"].as_str().unwrap())
            .collect();
        let mut asked = std::collections::BTreeSet::new();
        let artefact = minimal(class);
        let text: Value = serde_json::from_str(&super::canonical::canonical_text(&artefact).unwrap()).unwrap();
        asked.extend(text.as_object().unwrap().keys().map(String::as_str).filter(|key| *key != "$class"));
        assert_eq!(asked, fields, "{class}");
    }
}

/// An artefact of `class` with nothing in it.
fn minimal(class: &str) -> Artefact {
    use super::model as m;
    match class {
        "AgencyScheme" => Artefact::AgencyScheme(m::AgencyScheme::default()),
        "AttachmentConstraint" => Artefact::AttachmentConstraint(m::AttachmentConstraint::default()),
        "Categorisation" => Artefact::Categorisation(m::Categorisation::default()),
        "CategoryScheme" => Artefact::CategoryScheme(m::CategoryScheme::default()),
        "CategorySchemeMap" => Artefact::CategorySchemeMap(m::CategorySchemeMap::default()),
        "Codelist" => Artefact::Codelist(m::Codelist::default()),
        "ConceptScheme" => Artefact::ConceptScheme(m::ConceptScheme::default()),
        "ConceptSchemeMap" => Artefact::ConceptSchemeMap(m::ConceptSchemeMap::default()),
        "DataConstraint" => Artefact::DataConstraint(Box::default()),
        "DataConsumerScheme" => Artefact::DataConsumerScheme(m::DataConsumerScheme::default()),
        "DataProviderScheme" => Artefact::DataProviderScheme(m::DataProviderScheme::default()),
        "DataStructure" => Artefact::DataStructure(Box::default()),
        "Dataflow" => Artefact::Dataflow(Box::default()),
        "GeoGridCodelist" => Artefact::GeoGridCodelist(m::GeoGridCodelist::default()),
        "GeographicCodelist" => Artefact::GeographicCodelist(m::GeographicCodelist::default()),
        "HierarchicalCodelist" => Artefact::HierarchicalCodelist(m::HierarchicalCodelist::default()),
        "Hierarchy" => Artefact::Hierarchy(m::Hierarchy::default()),
        "HierarchyAssociation" => Artefact::HierarchyAssociation(m::HierarchyAssociation::default()),
        "MetadataProviderScheme" => Artefact::MetadataProviderScheme(m::MetadataProviderScheme::default()),
        "MetadataProvisionAgreement" => Artefact::MetadataProvisionAgreement(m::MetadataProvisionAgreement::default()),
        "MetadataSet" => Artefact::MetadataSet(m::MetadataSet::default()),
        "MetadataStructure" => Artefact::MetadataStructure(Box::default()),
        "Metadataflow" => Artefact::Metadataflow(m::Metadataflow::default()),
        "OrganisationSchemeMap" => Artefact::OrganisationSchemeMap(m::OrganisationSchemeMap::default()),
        "OrganisationUnitScheme" => Artefact::OrganisationUnitScheme(m::OrganisationUnitScheme::default()),
        "ProvisionAgreement" => Artefact::ProvisionAgreement(m::ProvisionAgreement::default()),
        "RepresentationMap" => Artefact::RepresentationMap(m::RepresentationMap::default()),
        "StructureMap" => Artefact::StructureMap(Box::default()),
        "StructureSet" => Artefact::StructureSet(m::StructureSet::default()),
        "ValueList" => Artefact::ValueList(m::ValueList::default()),
        other => panic!("{other}"),
    }
}
