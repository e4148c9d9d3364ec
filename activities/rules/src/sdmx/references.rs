//! What an artefact refers to: the rows of `artefact_ref` in the store.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::model::{
    Artefact, CodelistExtension, ConstraintAttachment, DataStructure, HierarchicalCode, MappedValues,
    MetadataAttribute, Representation, UrnText,
};

/// One reference of an artefact.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    /// The artefact that holds the reference, by URN.
    pub source: UrnText,
    /// What it refers to, by URN: an artefact or an item.
    pub target: UrnText,
    /// What for.
    pub role: Cow<'static, str>,
    /// The place of the item or component that refers, from 0, where there is one.
    pub ordinal: Option<i32>,
}

/// The references of `artefact`, in the order of its fields. Two items that refer to the same target in the same role
/// count once, with the first one's ordinal, as the key of `artefact_ref` has it.
///
/// The components of a data structure are numbered through: dimensions, the time dimension, a measure dimension,
/// attributes, measures. The nodes of a tree are numbered from the top down, each before its children.
///
/// The roles are those of the reference implementation, as far as it shows them; `attachment_provision`,
/// `attachment_data_provider` and `attachment_data_set` are named here.
#[must_use]
pub fn references(artefact: &Artefact) -> Vec<Reference> {
    let mut to = Collector { source: artefact.urn(), seen: BTreeSet::new(), found: Vec::new() };
    match artefact {
        Artefact::AgencyScheme(_)
        | Artefact::CategoryScheme(_)
        | Artefact::DataConsumerScheme(_)
        | Artefact::DataProviderScheme(_)
        | Artefact::MetadataProviderScheme(_)
        | Artefact::OrganisationUnitScheme(_)
        | Artefact::ValueList(_) => {}
        Artefact::AttachmentConstraint(constraint) => to.attachment(&constraint.attachment),
        Artefact::Categorisation(a) => to.ends(a.source.as_ref(), a.target.as_ref()),
        Artefact::CategorySchemeMap(a) => to.ends(a.source.as_ref(), a.target.as_ref()),
        Artefact::ConceptSchemeMap(a) => to.ends(a.source.as_ref(), a.target.as_ref()),
        Artefact::OrganisationSchemeMap(a) => to.ends(a.source.as_ref(), a.target.as_ref()),
        Artefact::Codelist(list) => to.extensions(&list.extensions),
        Artefact::GeoGridCodelist(list) => to.extensions(&list.extensions),
        Artefact::GeographicCodelist(list) => to.extensions(&list.extensions),
        Artefact::ConceptScheme(scheme) => {
            for (at, concept) in scheme.concepts.iter().enumerate() {
                to.add(enumerated(concept.core_representation.as_ref()), "core_representation", Some(at));
            }
        }
        Artefact::DataConstraint(constraint) => to.attachment(&constraint.attachment),
        Artefact::DataStructure(structure) => to.structure(structure),
        Artefact::Dataflow(flow) => to.add(flow.structure.as_ref(), "structure", None),
        Artefact::HierarchicalCodelist(list) => {
            to.each(&list.hierarchies, "hierarchies");
            to.each(&list.included_codelists, "included_codelists");
        }
        Artefact::Hierarchy(hierarchy) => to.nodes(&hierarchy.tree, &mut 0),
        Artefact::HierarchyAssociation(association) => {
            to.add(association.linked_hierarchy.as_ref(), "linked_hierarchy", None);
            to.add(association.linked_object.as_ref(), "linked_object", None);
            to.add(association.context_object.as_ref(), "context_object", None);
        }
        Artefact::MetadataProvisionAgreement(agreement) => {
            to.add(agreement.metadataflow.as_ref(), "metadataflow", None);
            to.add(agreement.metadata_provider.as_ref(), "metadata_provider", None);
        }
        Artefact::MetadataSet(set) => {
            to.add(Some(&set.structure), "structure", None);
            for (at, target) in set.targets.iter().enumerate() {
                to.add_as(Some(target), format!("target[{at}]"), Some(at));
            }
        }
        Artefact::MetadataStructure(structure) => to.metadata_attributes(&structure.attributes, &mut 0),
        Artefact::Metadataflow(flow) => to.add(flow.structure.as_ref(), "structure", None),
        Artefact::ProvisionAgreement(agreement) => {
            to.add(agreement.dataflow.as_ref(), "dataflow", None);
            to.add(agreement.data_provider.as_ref(), "data_provider", None);
        }
        Artefact::RepresentationMap(map) => {
            to.mapped(&map.sources, "source_codelist");
            to.mapped(&map.targets, "target_codelist");
        }
        Artefact::StructureMap(map) => {
            to.ends(map.source.as_ref(), map.target.as_ref());
            for (at, component) in map.maps.iter().enumerate() {
                to.add(component.representation_map.as_ref(), "representation_map", Some(at));
            }
        }
        Artefact::StructureSet(set) => {
            to.each(&set.maps, "maps");
            to.each(&set.related_structures, "related_structures");
        }
    }
    to.found
}

fn enumerated(representation: Option<&Representation>) -> Option<&UrnText> {
    match representation {
        Some(Representation::Enumerated(urn)) => Some(urn),
        Some(Representation::Text(_)) | None => None,
    }
}

struct Collector {
    source: UrnText,
    seen: BTreeSet<(Cow<'static, str>, UrnText)>,
    found: Vec<Reference>,
}

impl Collector {
    fn add(&mut self, target: Option<&UrnText>, role: &'static str, ordinal: Option<usize>) {
        self.add_as(target, role, ordinal);
    }

    fn add_as(&mut self, target: Option<&UrnText>, role: impl Into<Cow<'static, str>>, ordinal: Option<usize>) {
        let (Some(target), role) = (target, role.into()) else { return };
        if self.seen.insert((role.clone(), target.clone())) {
            let ordinal = ordinal.map(|at| i32::try_from(at).unwrap_or(i32::MAX));
            self.found.push(Reference { source: self.source.clone(), target: target.clone(), role, ordinal });
        }
    }

    fn ends(&mut self, source: Option<&UrnText>, target: Option<&UrnText>) {
        self.add(source, "source", None);
        self.add(target, "target", None);
    }

    fn each(&mut self, targets: &[UrnText], role: &'static str) {
        for (at, target) in targets.iter().enumerate() {
            self.add(Some(target), role, Some(at));
        }
    }

    fn extensions(&mut self, extensions: &[CodelistExtension]) {
        for (at, extension) in extensions.iter().enumerate() {
            self.add(Some(&extension.codelist), "extends", Some(at));
        }
    }

    fn attachment(&mut self, attachment: &ConstraintAttachment) {
        self.add(attachment.data_provider.as_ref(), "attachment_data_provider", None);
        for (at, set) in attachment.data_sets.iter().enumerate() {
            self.add(Some(&set.data_provider), "attachment_data_set", Some(at));
        }
        self.each(&attachment.data_structures, "attachment_dsd");
        self.each(&attachment.dataflows, "attachment_dataflow");
        self.each(&attachment.provision_agreements, "attachment_provision");
    }

    fn nodes(&mut self, nodes: &[HierarchicalCode], next: &mut usize) {
        for node in nodes {
            self.add(node.code.as_ref(), "code", Some(*next));
            *next += 1;
            self.nodes(&node.children, next);
        }
    }

    fn metadata_attributes(&mut self, attributes: &[MetadataAttribute], next: &mut usize) {
        for attribute in attributes {
            self.component(*next, attribute.concept.as_ref(), enumerated(attribute.representation.as_ref()));
            *next += 1;
            self.metadata_attributes(&attribute.children, next);
        }
    }

    fn mapped(&mut self, values: &[MappedValues], role: &'static str) {
        for (at, values) in values.iter().enumerate() {
            match values {
                MappedValues::List(urn) => self.add(Some(urn), role, Some(at)),
                MappedValues::Type(_) => {}
            }
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
