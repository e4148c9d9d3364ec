//! Hierarchies of codes.

use std::sync::Arc;

use super::base::{Annotation, Facet, InternationalString, Link, UrnText};
use crate::instant::Instant;

class! {
    /// A level of a hierarchy.
    #[derive(Default)]
    Level {
        id: String,
        name: InternationalString,
        description: InternationalString,
        coding_format: Option<Facet>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

class! {
    /// A code in its place in a hierarchy, with those beneath it.
    #[derive(Default)]
    HierarchicalCode {
        id: String,
        code: Option<UrnText>,
        children: Vec<HierarchicalCode>,
        annotations: Vec<Annotation>,
        valid_from: Option<Instant>,
        valid_to: Option<Instant>,
        version: Option<String>,
        /// One of the hierarchy's levels. It is shared, so that a large hierarchy does not hold it once a node.
        level: Option<Arc<Level>>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

maintainable! {
    /// Codes of one or more codelists in a tree. `levels` are listed from the top down.
    Hierarchy lacks ["legacy_is_final"] {
        has_formal_levels: bool,
        levels: Vec<Arc<Level>>,
        tree: Vec<HierarchicalCode>,
    }
}

maintainable! {
    /// What a hierarchy is for: `linked_object` uses it within `context_object`.
    #[derive(Eq)]
    HierarchyAssociation lacks ["legacy_is_final"] {
        linked_hierarchy: Option<UrnText>,
        linked_object: Option<UrnText>,
        context_object: Option<UrnText>,
    }
}

maintainable! {
    /// SDMX 2.1's list of hierarchies.
    #[derive(Eq)]
    HierarchicalCodelist lacks ["links"] { hierarchies: Vec<UrnText>, included_codelists: Vec<UrnText> }
}
