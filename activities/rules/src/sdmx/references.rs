//! What an artefact refers to: the rows of `artefact_ref` in the store.

use std::collections::BTreeSet;

use super::model::{Artefact, DataStructure, Representation, UrnText};

/// One reference of an artefact.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The artefact that holds the reference, by URN.
    pub source: UrnText,
    /// What it refers to, by URN: an artefact or an item.
    pub target: UrnText,
    /// What for.
    pub role: &'static str,
    /// The place of the item or component that refers, from 0, where there is one.
    pub ordinal: Option<i32>,
}

/// The references of `artefact`, in the order of its fields. Two components that refer to the same target in the same
/// role count once, with the first one's ordinal, as the key of `artefact_ref` has it.
///
/// The components of a data structure are numbered through: dimensions, the time dimension, a measure dimension,
/// attributes, measures.
#[must_use]
pub fn references(artefact: &Artefact) -> Vec<Reference> {
    let mut collector = Collector { source: artefact.urn(), seen: BTreeSet::new(), found: Vec::new() };
    match artefact {
        Artefact::AgencyScheme(_) => {}
        Artefact::Codelist(list) => {
            for (at, extension) in list.extensions.iter().enumerate() {
                collector.add(Some(&extension.codelist), "extends", Some(at));
            }
        }
        Artefact::ConceptScheme(scheme) => {
            for (at, concept) in scheme.concepts.iter().enumerate() {
                collector.add(enumerated(concept.core_representation.as_ref()), "core_representation", Some(at));
            }
        }
        Artefact::DataStructure(structure) => collector.structure(structure),
        Artefact::Dataflow(flow) => collector.add(flow.structure.as_ref(), "structure", None),
    }
    collector.found
}

fn enumerated(representation: Option<&Representation>) -> Option<&UrnText> {
    match representation {
        Some(Representation::Enumerated(urn)) => Some(urn),
        Some(Representation::Text(_)) | None => None,
    }
}

struct Collector {
    source: UrnText,
    seen: BTreeSet<(&'static str, UrnText)>,
    found: Vec<Reference>,
}

impl Collector {
    fn add(&mut self, target: Option<&UrnText>, role: &'static str, ordinal: Option<usize>) {
        let Some(target) = target else { return };
        if self.seen.insert((role, target.clone())) {
            let ordinal = ordinal.map(|at| i32::try_from(at).unwrap_or(i32::MAX));
            self.found.push(Reference { source: self.source.clone(), target: target.clone(), role, ordinal });
        }
    }

    fn component(&mut self, at: usize, concept: Option<&UrnText>, representation: Option<&UrnText>) {
        self.add(concept, "concept_identity", Some(at));
        self.add(representation, "enumeration", Some(at));
    }

    fn structure(&mut self, structure: &DataStructure) {
        let mut next = 0;
        let mut place = || {
            next += 1;
            next - 1
        };
        for dimension in &structure.dimensions {
            self.component(place(), dimension.concept.as_ref(), enumerated(dimension.representation.as_ref()));
        }
        if let Some(dimension) = &structure.time_dimension {
            self.component(place(), dimension.concept.as_ref(), None);
        }
        if let Some(dimension) = &structure.measure_dimension {
            self.component(place(), dimension.concept.as_ref(), enumerated(dimension.representation.as_ref()));
        }
        for attribute in &structure.attributes {
            self.component(place(), attribute.concept.as_ref(), enumerated(attribute.representation.as_ref()));
        }
        for measure in &structure.measures {
            self.component(place(), measure.concept.as_ref(), enumerated(measure.representation.as_ref()));
        }
        for (at, group) in structure.groups.iter().flatten().enumerate() {
            self.add(group.attachment_constraint.as_ref(), "attachment_constraint", Some(at));
        }
        self.add(structure.metadata.as_ref(), "metadata", None);
    }
}

#[cfg(test)]
mod tests;
