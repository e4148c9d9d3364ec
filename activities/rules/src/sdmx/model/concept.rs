//! Concepts and categories.

use super::base::{Annotation, Facet, InternationalString, Link, Representation, UrnText};

class! {
    /// The ISO 11179 concept that a concept refers to.
    #[derive(Eq, Default)]
    IsoConceptReference = "ISOConceptReference" {
        concept_agency as "agency": String,
        concept_scheme_id: String,
        concept_id: String,
    }
}

class! {
    /// A concept: what a component means.
    Concept {
        id: String,
        name: InternationalString,
        description: InternationalString,
        core_representation: Option<Representation>,
        parent_id: Option<String>,
        enumeration_format: Option<Facet>,
        iso_concept_reference: Option<IsoConceptReference>,
        min_occurs: i64,
        max_occurs: Option<i64>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

impl Default for Concept {
    fn default() -> Self {
        Self {
            id: String::new(),
            name: InternationalString::new(),
            description: InternationalString::new(),
            core_representation: None,
            parent_id: None,
            enumeration_format: None,
            iso_concept_reference: None,
            min_occurs: 1,
            max_occurs: Some(1),
            annotations: Vec::new(),
            uri: None,
            links: Vec::new(),
        }
    }
}

maintainable! {
    /// A scheme of concepts.
    ConceptScheme lacks [] {
        /// The concepts, in document order.
        concepts: Vec<Concept>,
        /// Whether this is a subset of the full scheme.
        is_partial: bool,
    }
}

class! {
    /// A category, with the categories within it.
    #[derive(Eq, Default)]
    Category {
        id: String,
        name: InternationalString,
        description: InternationalString,
        categories: Vec<Category>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

maintainable! {
    /// A scheme of categories.
    #[derive(Eq)]
    CategoryScheme lacks [] { categories: Vec<Category>, is_partial: bool }
}

maintainable! {
    /// The place of an artefact or item (`source`) in a category (`target`).
    #[derive(Eq)]
    Categorisation lacks [] { source: Option<UrnText>, target: Option<UrnText> }
}
