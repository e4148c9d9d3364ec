//! The reference values that tests compare with.

use std::collections::BTreeMap;

use serde_json::Value;

use super::model::{Artefact, UrnText};
use crate::shared::shared;

/// The classes that the model holds.
pub const CLASSES: [&str; 5] = ["AgencyScheme", "Codelist", "ConceptScheme", "DataStructure", "Dataflow"];

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

/// Every canonical text of the model's classes: the corpus by class, and what the whole messages hold.
pub fn texts() -> Option<Vec<Text>> {
    let mut texts = Vec::new();
    for class in CLASSES {
        for vector in json(&format!("vectors/canonical/{class}.json"))?["vectors"].as_array().unwrap() {
            texts.push(Text {
                name: format!("{class} {}", string(&vector["name"])),
                urn: string(&vector["urn"]),
                text: string(&vector["model_canonical"]),
                sha256: string(&vector["model_sha256"]),
            });
        }
    }
    for message in ["edge_ml21.xml", "edge_ml30.xml", "statcan_14100287_ml21.xml", "statcan_14100287_json20.json"] {
        for (urn, artefact) in json(&format!("vectors/messages/{message}.canonical.json"))?["artefacts"].as_object()? {
            if CLASSES.contains(&artefact["class"].as_str().unwrap()) {
                texts.push(Text {
                    name: format!("{message} {urn}"),
                    urn: urn.clone(),
                    text: string(&artefact["canonical"]),
                    sha256: string(&artefact["sha256"]),
                });
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

    /// The artefacts of the classes that the model holds.
    pub fn artefacts(&self) -> Vec<Artefact> {
        let texts = self.texts().into_iter();
        let ours = texts.filter(|(_, text)| CLASSES.iter().any(|c| text.starts_with(&format!("{{\"$class\":\"{c}\""))));
        ours.map(|(_, text)| super::decode::decode(&text).unwrap()).collect()
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
