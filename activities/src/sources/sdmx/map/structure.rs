//! Data structures, dataflows and provision agreements.

use std::collections::BTreeSet;

use catalog_rules::sdmx::finding::FindingCode;
use catalog_rules::sdmx::model::{
    Annotation, Artefact, AttachmentLevel, Attribute, DataStructure, Dataflow, Dimension, Facet, Group, Link,
    Maintained, Measure, MeasureDimension, MetadataAttributeUsage, ProvisionAgreement, Representation, TimeDimension,
    UrnText, Usage,
};

use super::super::context::Context;
use super::super::node::Node;
use super::common::{Defaults, Identified, Values, identified, item_of, local, locals, reference, references, values};

pub(super) fn data_structure(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    let mut structure = DataStructure {
        common,
        evolving_structure: context.flag(node, "evolvingStructure").unwrap_or_default(),
        metadata: reference(context, node, "Metadata|metadata", "MetadataStructure"),
        ..DataStructure::default()
    };
    if let Some(mut components) = node.child("DataStructureComponents|dataStructureComponents") {
        if let Some(list) = components.child("DimensionList|dimensionList") {
            dimension_list(context, list, &mut structure);
        }
        let groups = components.children("Group|groups");
        if !groups.is_empty() {
            structure.groups = Some(groups.into_iter().map(|node| group(context, node)).collect());
        }
        if let Some(list) = components.child("AttributeList|attributeList") {
            attribute_list(context, list, &mut structure);
        }
        if let Some(list) = components.child("MeasureList|measureList") {
            measure_list(context, list, &mut structure);
        }
        context.done(components);
    }
    Artefact::DataStructure(Box::new(structure))
}

/// What a list of components has beside them. Its id is fixed.
fn descriptor(context: &mut Context, node: &mut Node, id: &str) -> (Vec<Annotation>, Option<String>, Vec<Link>) {
    let found = identified(context, node);
    if !found.id.is_empty() && found.id != id {
        let message = format!("the id {:?} of the list is not {id:?}, as every such list has; left out", found.id);
        context.find_at(node, FindingCode::NotRepresented, message);
    }
    (found.annotations, found.uri, found.links)
}

fn dimension_list(context: &mut Context, mut node: Node, structure: &mut DataStructure) {
    (
        structure.dimension_descriptor_annotations,
        structure.dimension_descriptor_uri,
        structure.dimension_descriptor_links,
    ) = descriptor(context, &mut node, "DimensionDescriptor");
    // SDMX 2.1 has the measure dimension among the others; positions count through.
    let mut last = i64::MIN;
    for mut child in node.children("Dimension|dimensions|MeasureDimension") {
        position(context, &mut child, &mut last);
        if child.name == "MeasureDimension" {
            structure.measure_dimension = Some(measure_dimension(context, child));
        } else {
            structure.dimensions.push(dimension(context, child));
        }
    }
    for mut child in node.children("TimeDimension|timeDimension|timeDimensions") {
        position(context, &mut child, &mut last);
        if structure.time_dimension.is_some() {
            let message = "a second time dimension; left out".to_owned();
            context.find_at(&child, FindingCode::NotRepresented, message);
            continue;
        }
        structure.time_dimension = Some(time_dimension(context, child));
    }
    context.done(node);
}

/// A position that is given only says again what the order says.
fn position(context: &mut Context, node: &mut Node, last: &mut i64) {
    let Some(given) = context.integer(node, "position") else { return };
    if given <= *last {
        let message =
            format!("the position {given} comes after {last} in the message; the order of the message counts");
        context.find_at(node, FindingCode::BadValue, message);
    }
    *last = (*last).max(given);
}

/// A component as far as all have it: without an id, it has its concept's.
struct Component {
    own: Identified,
    concept: Option<UrnText>,
    concept_role: Vec<String>,
}

fn component(context: &mut Context, node: &mut Node) -> Component {
    let mut own = identified(context, node);
    let concept = reference(context, node, "ConceptIdentity|conceptIdentity", "Concept");
    if own.id.is_empty() {
        own.id = concept.as_deref().map(item_of).unwrap_or_default();
    }
    let roles = references(context, node, "ConceptRole|conceptRoles", "Concept");
    Component { own, concept, concept_role: roles.iter().map(|urn| item_of(urn)).collect() }
}

const LOCAL: &str = "LocalRepresentation|localRepresentation";

fn dimension(context: &mut Context, mut node: Node) -> Dimension {
    let Component { own, concept, concept_role } = component(context, &mut node);
    let values = values(context, &mut node, LOCAL, "Codelist", Defaults::PLAIN);
    context.done(node);
    Dimension {
        id: own.id,
        concept,
        representation: values.representation,
        enumeration_format: values.enumeration_format,
        annotations: own.annotations,
        concept_role,
        uri: own.uri,
        links: own.links,
    }
}

fn measure_dimension(context: &mut Context, mut node: Node) -> MeasureDimension {
    let Component { own, concept, concept_role } = component(context, &mut node);
    let values = values(context, &mut node, LOCAL, "ConceptScheme", Defaults::PLAIN);
    if values.enumeration_format.is_some() {
        let message = "the format of the enumeration has no place in the model here and is left out".to_owned();
        context.find_at(&node, FindingCode::NotRepresented, message);
    }
    context.done(node);
    MeasureDimension {
        id: own.id,
        concept,
        representation: values.representation,
        annotations: own.annotations,
        concept_role,
        uri: own.uri,
    }
}

fn time_dimension(context: &mut Context, mut node: Node) -> TimeDimension {
    let id = node.peek("id").map_or("TIME_PERIOD", str::trim).to_owned();
    let Component { own, concept, concept_role } = component(context, &mut node);
    if id != "TIME_PERIOD" {
        let message = format!("the id of a time dimension is TIME_PERIOD, not {id:?}; kept as it is");
        context.find_at(&node, FindingCode::BadId, message);
    }
    if !concept_role.is_empty() {
        let message = "the role of a time dimension has no place in the model and is left out".to_owned();
        context.find_at(&node, FindingCode::NotRepresented, message);
    }
    let values = values(context, &mut node, LOCAL, "Codelist", Defaults::TIME);
    let representation = match values.representation {
        Some(Representation::Text(facet)) => *facet,
        Some(Representation::Enumerated(urn)) => {
            let message = format!("a time dimension is enumerated by {urn}, which the model cannot hold; left out");
            context.find_at(&node, FindingCode::NotRepresented, message);
            time_format()
        }
        // Its concept's, when all concepts are known.
        None => Facet::default(),
    };
    context.done(node);
    TimeDimension { id, concept, representation, annotations: own.annotations, uri: own.uri, links: own.links }
}

/// What the values of a time dimension are where the message does not say.
pub(in super::super) fn time_format() -> Facet {
    Facet { data_type: Some("ObservationalTimePeriod".to_owned()), ..Facet::default() }
}

fn group(context: &mut Context, mut node: Node) -> Group {
    let Identified { id, annotations, uri, links } = identified(context, &mut node);
    if !links.is_empty() {
        let message = "the links of a group have no place in the model and are left out".to_owned();
        context.find_at(&node, FindingCode::NotRepresented, message);
    }
    let mut dimension_ids = locals(context, &mut node, "groupDimensions");
    for mut child in node.children("GroupDimension") {
        dimension_ids.extend(locals(context, &mut child, "DimensionReference"));
        context.done(child);
    }
    let names = "AttachmentConstraint|attachmentConstraint";
    let attachment_constraint = reference(context, &mut node, names, "AttachmentConstraint");
    context.done(node);
    Group { id, dimension_ids, attachment_constraint, annotations, uri }
}

/// What an attribute is attached to.
struct Relationship {
    attachment: AttachmentLevel,
    related_dimensions: Option<Vec<String>>,
    optional_dimensions: BTreeSet<String>,
    related_group: Option<String>,
    attachment_groups: Vec<String>,
}

fn relationship(context: &mut Context, node: &mut Node) -> Relationship {
    let mut made = Relationship {
        attachment: AttachmentLevel::DataSet,
        related_dimensions: None,
        optional_dimensions: BTreeSet::new(),
        related_group: None,
        attachment_groups: Vec::new(),
    };
    let Some(mut relation) = node.child("AttributeRelationship|attributeRelationship") else {
        let message = "there is no attribute relationship; the data set is assumed".to_owned();
        context.find_at(node, FindingCode::Assumed, message);
        return made;
    };
    let mut dimensions = Vec::new();
    for mut child in relation.children("Dimension|dimensions") {
        let is_optional = context.flag(&mut child, "optional").unwrap_or_default();
        let id = local(context, child);
        if is_optional {
            made.optional_dimensions.insert(id.clone());
        }
        dimensions.push(id);
    }
    for (at, optional) in context.words(&mut relation, "areDimensionsOptional").into_iter().enumerate() {
        if optional == "true"
            && let Some(id) = dimensions.get(at)
        {
            made.optional_dimensions.insert(id.clone());
        }
    }
    made.attachment_groups = locals(context, &mut relation, "AttachmentGroup|attachmentGroups");
    let group = locals(context, &mut relation, "Group|group").into_iter().next();
    let observation = relation.children("Observation|observation|PrimaryMeasure|primaryMeasure");
    let has_observation = !observation.is_empty() || relation.attribute("primaryMeasure").is_some();
    for child in observation {
        // SDMX 2.1 names the one measure that there is.
        let _ = local(context, child);
    }
    let data_set = relation.children("None|none|Dataflow|dataflow|Dataset|dataset|DataSet");
    let has_data_set = !data_set.is_empty();
    data_set.into_iter().for_each(|child| context.done(child));
    if !dimensions.is_empty() {
        made.attachment = AttachmentLevel::Series;
        made.related_dimensions = Some(dimensions);
    } else if let Some(group) = group {
        made.attachment = AttachmentLevel::Group;
        made.related_group = Some(group);
    } else if has_observation {
        made.attachment = AttachmentLevel::Observation;
    } else if !has_data_set {
        let message = "the attribute relationship names nothing that is known; the data set is assumed".to_owned();
        context.find_at(&relation, FindingCode::Assumed, message);
    }
    context.done(relation);
    made
}

fn usage(context: &mut Context, node: &mut Node) -> Usage {
    let found = context.member(node, "usage|assignmentStatus", "mandatory, optional or conditional", |text| match text
        .to_ascii_lowercase()
        .as_str()
    {
        "mandatory" => Some(Usage::Mandatory),
        "optional" | "conditional" => Some(Usage::Optional),
        _ => None,
    });
    found.unwrap_or_default()
}

fn attribute_list(context: &mut Context, mut node: Node, structure: &mut DataStructure) {
    (
        structure.attribute_descriptor_annotations,
        structure.attribute_descriptor_uri,
        structure.attribute_descriptor_links,
    ) = descriptor(context, &mut node, "AttributeDescriptor");
    for child in node.children("Attribute|attributes|ReportingYearStartDay") {
        structure.attributes.push(attribute(context, child));
    }
    for mut child in node.children("MetadataAttributeUsage|metadataAttributeUsages") {
        let own = identified(context, &mut child);
        let names = "MetadataAttributeReference|metadataAttributeReference";
        let id = locals(context, &mut child, names).into_iter().next().unwrap_or(own.id);
        let relation = relationship(context, &mut child);
        if !relation.attachment_groups.is_empty() {
            let message = "the attachment groups have no place in the model here and are left out".to_owned();
            context.find_at(&child, FindingCode::NotRepresented, message);
        }
        context.done(child);
        structure.metadata_attributes.push(MetadataAttributeUsage {
            id,
            attachment: relation.attachment,
            related_dimensions: relation.related_dimensions,
            optional_dimensions: relation.optional_dimensions,
            related_group: relation.related_group,
            annotations: own.annotations,
            uri: own.uri,
            links: own.links,
        });
    }
    context.done(node);
}

fn attribute(context: &mut Context, mut node: Node) -> Attribute {
    let Component { mut own, concept, concept_role } = component(context, &mut node);
    let is_start_day = node.name == "ReportingYearStartDay";
    if is_start_day && own.id.is_empty() {
        "REPORTING_YEAR_START_DAY".clone_into(&mut own.id);
    }
    let mut defaults = Defaults::component(context);
    if is_start_day {
        defaults = Defaults { data_type: Some("MonthDay"), is_multilingual: false };
    }
    let values = values(context, &mut node, LOCAL, "Codelist", defaults);
    let usage = usage(context, &mut node);
    let relation = relationship(context, &mut node);
    let mut measures = locals(context, &mut node, "measureRelationship");
    for mut child in node.children("MeasureRelationship") {
        measures.extend(locals(context, &mut child, "Measure"));
        context.done(child);
    }
    context.done(node);
    let Values { min_occurs, max_occurs, .. } = values;
    Attribute {
        id: own.id,
        usage,
        attachment: relation.attachment,
        related_dimensions: relation.related_dimensions,
        optional_dimensions: relation.optional_dimensions,
        related_measures: (!measures.is_empty()).then_some(measures),
        related_group: relation.related_group,
        attachment_groups: relation.attachment_groups,
        concept,
        representation: values.representation,
        enumeration_format: values.enumeration_format,
        min_occurs: min_occurs.unwrap_or(1),
        max_occurs: max_occurs.unwrap_or(Some(1)),
        annotations: own.annotations,
        concept_role,
        uri: own.uri,
        links: own.links,
    }
}

fn measure_list(context: &mut Context, mut node: Node, structure: &mut DataStructure) {
    (structure.measure_descriptor_annotations, structure.measure_descriptor_uri, structure.measure_descriptor_links) =
        descriptor(context, &mut node, "MeasureDescriptor");
    for child in node.children("Measure|measures|PrimaryMeasure|primaryMeasure") {
        structure.measures.push(measure(context, child));
    }
    context.done(node);
}

fn measure(context: &mut Context, mut node: Node) -> Measure {
    // SDMX 2.1 fixes the id of its one measure.
    if node.name == "PrimaryMeasure" && node.peek("id").is_none() {
        node.attributes.push(("id".to_owned(), "OBS_VALUE".to_owned()));
    }
    let Component { own, concept, concept_role } = component(context, &mut node);
    let defaults = Defaults::component(context);
    let values = values(context, &mut node, LOCAL, "Codelist", defaults);
    let usage = usage(context, &mut node);
    context.done(node);
    Measure {
        id: own.id,
        concept,
        min_occurs: values.min(),
        max_occurs: values.max(),
        representation: values.representation,
        enumeration_format: values.enumeration_format,
        usage,
        annotations: own.annotations,
        concept_role,
        uri: own.uri,
        links: own.links,
    }
}

pub(super) fn dataflow(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    let structure = reference(context, node, "Structure|structure", "DataStructure");
    let mut dimension_constraint = locals(context, node, "dimensionConstraint");
    for mut child in node.children("DimensionConstraint") {
        dimension_constraint.extend(locals(context, &mut child, "Dimension|DimensionReference"));
        if !child.text.trim().is_empty() {
            dimension_constraint.push(std::mem::take(&mut child.text).trim().to_owned());
        }
        context.done(child);
    }
    Artefact::Dataflow(Box::new(Dataflow { common, structure, dimension_constraint }))
}

pub(super) fn provision_agreement(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    Artefact::ProvisionAgreement(ProvisionAgreement {
        common,
        dataflow: reference(context, node, "Dataflow|dataflow|StructureUsage|structureUsage", "Dataflow"),
        data_provider: reference(context, node, "DataProvider|dataProvider", "DataProvider"),
    })
}
