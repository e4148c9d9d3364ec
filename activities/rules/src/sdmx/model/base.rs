//! What every artefact has, and what artefacts are made of.

use std::collections::BTreeMap;

use crate::instant::Instant;
use crate::sdmx::canonical::Spelt;
use crate::sdmx::decode::{Decoded, Fields};

/// A text in each language at hand: language tag to text.
pub type InternationalString = BTreeMap<String, String>;

/// A URN as it is written in documents, such as
/// `urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_GEO(1.0)`. A reference in the model is one of these.
pub type UrnText = String;

/// What every maintainable artefact has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Maintained {
    /// The artefact's id, unique for its class, agency and version.
    pub id: String,
    /// The id of the agency that maintains it.
    pub maintainer: String,
    /// The version, `1.0` unless the source says otherwise.
    pub version: String,
    /// The name, at least one language.
    pub name: InternationalString,
    /// The description, empty for none.
    pub description: InternationalString,
    /// SDMX 2.1's `isFinal`, where the source had it and the version alone does not say the same.
    pub legacy_is_final: Option<bool>,
    /// Annotations in document order.
    pub annotations: Vec<Annotation>,
    /// The start of validity.
    pub valid_from: Option<Instant>,
    /// The end of validity.
    pub valid_to: Option<Instant>,
    /// An address of the artefact.
    pub uri: Option<String>,
    /// Links in document order.
    pub links: Vec<Link>,
    /// Whether only a stub stands here and the content elsewhere.
    pub is_external_reference: bool,
    /// Where a service answers for an external reference.
    pub service_url: Option<String>,
    /// Where the structure of an external reference is.
    pub structure_url: Option<String>,
    /// Whether some languages were left out.
    pub is_partial_language: bool,
}

/// A class of maintainable artefacts.
pub(in crate::sdmx) trait Maintainable: Sized {
    /// The fields of [`Maintained`] that the class does not have.
    const LACKS: &'static [&'static str];

    /// The fields that only this class has, with their keys.
    fn own(&self) -> Vec<(&'static str, &dyn Spelt)>;

    /// Reads all fields of the class.
    fn read(fields: &mut Fields) -> Decoded<Self>;
}

impl Maintained {
    /// The fields that a class with these `lacks` has, with their keys.
    pub(in crate::sdmx) fn fields(&self, lacks: &[&str]) -> Vec<(&'static str, &dyn Spelt)> {
        let mut fields: Vec<(&'static str, &dyn Spelt)> = vec![
            ("annotations", &self.annotations),
            ("description", &self.description),
            ("id", &self.id),
            ("is_external_reference", &self.is_external_reference),
            ("is_partial_language", &self.is_partial_language),
            ("legacy_is_final", &self.legacy_is_final),
            ("links", &self.links),
            ("maintainer", &self.maintainer),
            ("name", &self.name),
            ("service_url", &self.service_url),
            ("structure_url", &self.structure_url),
            ("uri", &self.uri),
            ("valid_from", &self.valid_from),
            ("valid_to", &self.valid_to),
            ("version", &self.version),
        ];
        fields.retain(|(key, _)| !lacks.contains(key));
        fields
    }

    /// The first field that holds something although a class with these `lacks` does not have it.
    pub(in crate::sdmx) fn not_in_class(&self, lacks: &[&str]) -> Option<&'static str> {
        let held = [("legacy_is_final", self.legacy_is_final.is_some()), ("links", !self.links.is_empty())];
        held.into_iter().find(|(key, is_held)| *is_held && lacks.contains(key)).map(|(key, _)| key)
    }

    /// Reads the fields that a class with these `lacks` has.
    pub(in crate::sdmx) fn read(f: &mut Fields, lacks: &[&str]) -> Decoded<Self> {
        Ok(Self {
            id: f.field("id")?,
            maintainer: f.field("maintainer")?,
            version: f.field("version")?,
            name: f.field("name")?,
            description: f.field("description")?,
            legacy_is_final: if lacks.contains(&"legacy_is_final") { None } else { f.field("legacy_is_final")? },
            annotations: f.field("annotations")?,
            valid_from: f.field("valid_from")?,
            valid_to: f.field("valid_to")?,
            uri: f.field("uri")?,
            links: if lacks.contains(&"links") { Vec::new() } else { f.field("links")? },
            is_external_reference: f.field("is_external_reference")?,
            service_url: f.field("service_url")?,
            structure_url: f.field("structure_url")?,
            is_partial_language: f.field("is_partial_language")?,
        })
    }
}

class! {
    /// A note attached to an artefact, an item or a component.
    #[derive(Eq, Default)]
    Annotation {
        id: Option<String>,
        title: Option<String>,
        r#type as "type": Option<String>,
        urls: Vec<AnnotationUrl>,
        text: InternationalString,
        value: Option<String>,
    }
}

class! {
    /// An address in an annotation.
    #[derive(Eq, Default)]
    AnnotationUrl = "AnnotationURL" {
        url: String,
        lang: Option<String>,
        urn: Option<String>,
        r#type as "type": Option<String>,
    }
}

class! {
    /// A link of an artefact to a resource elsewhere.
    #[derive(Eq, Default)]
    Link {
        rel: String,
        url: String,
        urn: Option<String>,
        r#type as "type": Option<String>,
        hreflang: Option<String>,
    }
}

/// What a value is drawn from: an enumeration by URN, or a format.
#[derive(Debug, Clone, PartialEq)]
pub enum Representation {
    /// A codelist or value list, by URN.
    Enumerated(UrnText),
    /// A format of text.
    Text(Box<Facet>),
}

class! {
    /// The format of a value. `data_type` is the reference model's `type`, a name such as `String` or `Decimal`.
    #[derive(Default)]
    Facet {
        data_type as "type": Option<String>,
        max_length: Option<i64>,
        min_length: Option<i64>,
        max_value: Option<f64>,
        min_value: Option<f64>,
        decimals: Option<i64>,
        pattern: Option<String>,
        start_value: Option<f64>,
        end_value: Option<f64>,
        is_sequence: Option<bool>,
        is_multilingual: bool,
        interval: Option<f64>,
        time_interval: Option<String>,
        start_time: Option<String>,
        end_time: Option<String>,
        sentinel_values: Vec<SentinelValue>,
    }
}

class! {
    /// A value that stands for something else than itself.
    #[derive(Eq, Default)]
    SentinelValue { value: String, name: InternationalString, description: InternationalString }
}
