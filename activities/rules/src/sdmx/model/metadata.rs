//! Reference metadata: structures, flows, agreements and sets.

use super::base::{Annotation, Facet, InternationalString, Link, Representation, UrnText};

class! {
    /// SDMX 2.1's object that metadata can be about.
    #[derive(Default)]
    TargetObject {
        id: String,
        /// The element that declares it, such as `IdentifiableObjectTarget`.
        kind: String,
        object_type: Option<String>,
        representation: Option<Facet>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
    }
}

class! {
    /// SDMX 2.1's combination of objects that metadata can be about.
    #[derive(Default)]
    MetadataTarget {
        id: String,
        target_objects: Vec<TargetObject>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
    }
}

class! {
    /// SDMX 2.1's report: which attributes it has, for which targets.
    #[derive(Eq, Default)]
    ReportStructure {
        id: String,
        attribute_ids: Vec<String>,
        target_ids: Vec<String>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
    }
}

class! {
    /// An attribute of reference metadata, with those within it.
    MetadataAttribute {
        id: String,
        concept: Option<UrnText>,
        representation: Option<Representation>,
        enumeration_format: Option<Facet>,
        min_occurs: i64,
        max_occurs: Option<i64>,
        is_presentational: bool,
        children: Vec<MetadataAttribute>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

maintainable! {
    /// A metadata structure definition.
    MetadataStructure lacks [] {
        attributes: Vec<MetadataAttribute>,
        attribute_list_annotations: Vec<Annotation>,
        attribute_list_uri: Option<String>,
        attribute_list_links: Vec<Link>,
        targets: Vec<MetadataTarget>,
        report_structures: Vec<ReportStructure>,
    }
}

maintainable! {
    /// A metadataflow: a metadata structure as it is published. `targets` are URNs, which may have wildcards.
    #[derive(Eq)]
    Metadataflow lacks [] { structure: Option<UrnText>, targets: Vec<String> }
}

maintainable! {
    /// Who provides the reference metadata of a metadataflow.
    #[derive(Eq)]
    MetadataProvisionAgreement lacks ["legacy_is_final"] {
        metadataflow: Option<UrnText>,
        metadata_provider: Option<UrnText>,
        targets: Vec<String>,
    }
}

/// What a reported attribute says.
#[derive(Debug, Clone, PartialEq)]
pub enum ReportedValue {
    /// A text of no language.
    Text(String),
    /// A text in languages.
    Languages(InternationalString),
    /// True or false.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Number(f64),
}

class! {
    /// An attribute as it is reported, with those within it.
    #[derive(Default)]
    ReportedAttribute {
        id: String,
        value: Option<ReportedValue>,
        children: Vec<ReportedAttribute>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
    }
}

maintainable! {
    /// Reported reference metadata. `structure` is the URN of a metadataflow or of a metadata provision agreement.
    MetadataSet lacks ["legacy_is_final"] {
        structure: UrnText,
        targets: Vec<UrnText>,
        attributes: Vec<ReportedAttribute>,
    }
}
