//! Overlays on a small catalog of artefacts.

mod applying;
mod properties;
mod reading;
mod vectors;

use std::collections::BTreeMap;

use super::*;
use crate::sdmx::model::{
    Annotation, Artefact, AttachmentLevel, Attribute, Code, Codelist, Concept, ConceptScheme, DataStructure, Dataflow,
    Dimension, Group, InternationalString, Maintained, TimeDimension, Usage,
};

const LIST: &str = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_GEO(1.0)";
const CODE: &str = "urn:sdmx:org.sdmx.infomodel.codelist.Code=STC:CL_GEO(1.0).35";
const SCHEME: &str = "urn:sdmx:org.sdmx.infomodel.conceptscheme.ConceptScheme=STC:CL_GEO(1.0)";

fn languages(texts: &[(&str, &str)]) -> InternationalString {
    texts.iter().map(|(language, text)| ((*language).to_owned(), (*text).to_owned())).collect()
}

fn note(annotation_type: &str, value: &str) -> Annotation {
    Annotation { r#type: Some(annotation_type.to_owned()), value: Some(value.to_owned()), ..Annotation::default() }
}

fn common(id: &str, version: &str) -> Maintained {
    Maintained {
        id: id.to_owned(),
        maintainer: "STC".to_owned(),
        version: version.to_owned(),
        name: languages(&[("en", id)]),
        ..Maintained::default()
    }
}

fn code(id: &str) -> Code {
    Code { id: id.to_owned(), name: languages(&[("en", id), ("fr", id)]), ..Code::default() }
}

/// Two versions of a list, a concept scheme with the list's id, a data structure, a dataflow.
fn artefacts() -> Vec<Artefact> {
    let list = |version: &str| {
        let mut on = code("35");
        on.annotations = vec![note("NOTE", "old"), note("ORDER", "1"), note("NOTE", "older")];
        Artefact::Codelist(Codelist {
            common: Maintained { annotations: vec![note("NOTE", "list")], ..common("CL_GEO", version) },
            codes: vec![code("11124"), on],
            ..Codelist::default()
        })
    };
    let concept = Concept { id: "GEO".to_owned(), name: languages(&[("en", "Geography")]), ..Concept::default() };
    let attribute = Attribute {
        id: "STATUS".to_owned(),
        usage: Usage::Optional,
        attachment: AttachmentLevel::Observation,
        related_dimensions: None,
        optional_dimensions: Default::default(),
        related_measures: None,
        related_group: None,
        attachment_groups: Vec::new(),
        concept: None,
        representation: None,
        enumeration_format: None,
        min_occurs: 1,
        max_occurs: Some(1),
        annotations: Vec::new(),
        concept_role: Vec::new(),
        uri: None,
        links: Vec::new(),
    };
    vec![
        list("1.0"),
        list("2.0"),
        Artefact::ConceptScheme(ConceptScheme {
            common: common("CL_GEO", "1.0"),
            concepts: vec![concept],
            ..ConceptScheme::default()
        }),
        Artefact::DataStructure(Box::new(DataStructure {
            common: common("DSD", "1.0"),
            dimensions: vec![Dimension { id: "GEO".to_owned(), ..Dimension::default() }],
            time_dimension: Some(TimeDimension { id: "TIME_PERIOD".to_owned(), ..TimeDimension::default() }),
            attributes: vec![attribute],
            groups: Some(vec![Group { id: "SIBLING".to_owned(), ..Group::default() }]),
            ..DataStructure::default()
        })),
        Artefact::Dataflow(Box::new(Dataflow { common: common("DF", "1.0"), ..Dataflow::default() })),
    ]
}

fn decode(json: &str) -> Overlay {
    Overlay::decode(json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}"))
}

/// An overlay of these entries and texts, each as JSON.
fn overlay(entries: &[&str], texts: &[&str]) -> Overlay {
    let (entries, texts) = (entries.join(","), texts.join(","));
    decode(&format!(r#"{{"format_version":"1.2","id":"o","entries":[{entries}],"texts":[{texts}]}}"#))
}

fn no_hooks() -> BTreeMap<String, MergeHook<'static>> {
    BTreeMap::new()
}

/// Folds the overlays into [`artefacts`].
fn folded(overlays: &[Overlay], audience: Option<&str>) -> Result<Applied, ApplyError> {
    let audience = audience.map(Audience::new);
    Applying::new(overlays, audience.as_ref(), Purpose::Folding).unwrap().apply(artefacts(), &no_hooks())
}
