//! Reference metadata.

use catalog_rules::sdmx::finding::FindingCode;
use catalog_rules::sdmx::model::{
    Annotation, Artefact, InternationalString, Maintained, MetadataAttribute, MetadataProvisionAgreement, MetadataSet,
    MetadataStructure, MetadataTarget, Metadataflow, ReportStructure, ReportedAttribute, ReportedValue, Representation,
    TargetObject,
};

use super::super::context::Context;
use super::super::node::Node;
use super::common::{
    Defaults, Identified, annotations, identified, languages, locals, occurs, reference, references, values,
};

/// The type of the annotation by which a writer of SDMX-ML 2.1 marks the target and the report that 2.1 asks for and
/// that the structure does not have.
const SYNTHETIC: &str = "sdmxlib:synthetic-report-layer";

pub(super) fn structure(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    let mut structure = MetadataStructure { common, ..MetadataStructure::default() };
    if let Some(mut components) = node.child("MetadataStructureComponents|metadataStructureComponents") {
        if let Some(mut list) = components.child("MetadataAttributeList|metadataAttributeList") {
            let found = identified(context, &mut list);
            if !found.id.is_empty() && found.id != "MetadataAttributeDescriptor" {
                let message = format!("the id {:?} of the list is not MetadataAttributeDescriptor; left out", found.id);
                context.find_at(&list, FindingCode::NotRepresented, message);
            }
            structure.attribute_list_annotations = found.annotations;
            structure.attribute_list_uri = found.uri;
            structure.attribute_list_links = found.links;
            structure.attributes = attributes(context, &mut list);
            context.done(list);
        }
        for target in components.children("MetadataTarget") {
            structure.targets.extend(self::target(context, target));
        }
        for report in components.children("ReportStructure") {
            self::report(context, report, &mut structure);
        }
        context.done(components);
    }
    Artefact::MetadataStructure(Box::new(structure))
}

fn attributes(context: &mut Context, node: &mut Node) -> Vec<MetadataAttribute> {
    let nodes = node.children("MetadataAttribute|metadataAttributes");
    nodes.into_iter().map(|node| attribute(context, node)).collect()
}

fn attribute(context: &mut Context, mut node: Node) -> MetadataAttribute {
    let Identified { mut id, annotations, uri, links } = identified(context, &mut node);
    let concept = reference(context, &mut node, "ConceptIdentity|conceptIdentity", "Concept");
    if id.is_empty() {
        id = concept.as_deref().map(super::common::item_of).unwrap_or_default();
    }
    let defaults = Defaults::multilingual(context);
    let local = values(context, &mut node, "LocalRepresentation|localRepresentation", "Codelist", defaults);
    let (min_occurs, max_occurs) = occurs(context, &mut node);
    let made = MetadataAttribute {
        id,
        concept,
        representation: local.representation,
        enumeration_format: local.enumeration_format,
        min_occurs: min_occurs.unwrap_or(1),
        max_occurs: max_occurs.unwrap_or(Some(1)),
        is_presentational: context.flag(&mut node, "isPresentational").unwrap_or_default(),
        children: attributes(context, &mut node),
        annotations,
        uri,
        links,
    };
    context.done(node);
    made
}

fn is_synthetic(annotations: &[Annotation]) -> bool {
    annotations.iter().any(|annotation| annotation.r#type.as_deref() == Some(SYNTHETIC))
}

/// A target of SDMX 2.1; none for one that a writer made up.
fn target(context: &mut Context, mut node: Node) -> Option<MetadataTarget> {
    let Identified { id, annotations, uri, links } = identified(context, &mut node);
    if is_synthetic(&annotations) {
        return None;
    }
    let kinds = "KeyDescriptorValuesTarget|DataSetTarget|ConstraintContentTarget|ReportPeriodTarget|\
                 IdentifiableObjectTarget";
    let nodes = node.children(kinds);
    let target_objects = nodes.into_iter().map(|node| target_object(context, node)).collect();
    if !links.is_empty() {
        let message = "the links of a target have no place in the model and are left out".to_owned();
        context.find_at(&node, FindingCode::NotRepresented, message);
    }
    context.done(node);
    Some(MetadataTarget { id, target_objects, annotations, uri })
}

fn target_object(context: &mut Context, mut node: Node) -> TargetObject {
    let Identified { id, annotations, uri, .. } = identified(context, &mut node);
    let local = values(context, &mut node, "LocalRepresentation", "Codelist", Defaults::PLAIN);
    let representation = match local.representation {
        Some(Representation::Text(facet)) => Some(*facet),
        Some(Representation::Enumerated(urn)) => {
            let message = format!("the enumeration {urn} of a target object has no place in the model; left out");
            context.find_at(&node, FindingCode::NotRepresented, message);
            None
        }
        None => None,
    };
    let kind = node.name.clone();
    let object_type = context.word(&mut node, "objectType");
    context.done(node);
    TargetObject { id, kind, object_type, representation, annotations, uri }
}

fn report(context: &mut Context, mut node: Node, structure: &mut MetadataStructure) {
    let Identified { id, annotations, uri, .. } = identified(context, &mut node);
    let attributes = attributes(context, &mut node);
    let target_ids = locals(context, &mut node, "MetadataTarget");
    context.done(node);
    if !is_synthetic(&annotations) {
        let attribute_ids = attributes.iter().map(|attribute| attribute.id.clone()).collect();
        structure.report_structures.push(ReportStructure { id, attribute_ids, target_ids, annotations, uri });
    }
    structure.attributes.extend(attributes);
}

pub(super) fn flow(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    Artefact::Metadataflow(Metadataflow {
        common,
        structure: reference(context, node, "Structure|structure", "MetadataStructure"),
        targets: context.words(node, "Target|targets"),
    })
}

pub(super) fn provision_agreement(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    Artefact::MetadataProvisionAgreement(MetadataProvisionAgreement {
        common,
        metadataflow: reference(context, node, "Metadataflow|metadataflow|StructureUsage", "Metadataflow"),
        metadata_provider: reference(context, node, "MetadataProvider|metadataProvider", "MetadataProvider"),
        targets: context.words(node, "Target|targets"),
    })
}

pub(super) fn set(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    let flow = reference(context, node, "Metadataflow|metadataflow", "Metadataflow");
    let names = "MetadataProvisionAgreement|metadataProvisionAgreement";
    let agreement = reference(context, node, names, "MetadataProvisionAgreement");
    if flow.is_none() && agreement.is_none() {
        let message = "the set names neither a metadataflow nor a metadata provision agreement".to_owned();
        context.find_at(node, FindingCode::BadReference, message);
    }
    Artefact::MetadataSet(MetadataSet {
        common,
        structure: flow.or(agreement).unwrap_or_default(),
        targets: references(context, node, "Target|targets", ""),
        attributes: reported(context, node),
    })
}

fn reported(context: &mut Context, node: &mut Node) -> Vec<ReportedAttribute> {
    let nodes = node.children("Attribute|attributes");
    nodes.into_iter().flat_map(|node| reported_attribute(context, node)).collect()
}

/// An attribute as it is reported. SDMX-ML gives several values within one attribute, which the model has beside each
/// other.
fn reported_attribute(context: &mut Context, mut node: Node) -> Vec<ReportedAttribute> {
    let id = context.word(&mut node, "id").unwrap_or_default();
    let texts = languages(context, &mut node, "Text|texts", "text");
    let is_literal = node.literals.contains(&"value");
    let mut values = Vec::new();
    // In JSON a value may be an object of language to text.
    for mut child in node.children("value") {
        let texts: InternationalString = std::mem::take(&mut child.attributes).into_iter().collect();
        let text = std::mem::take(&mut child.text);
        values.push(if texts.is_empty() { ReportedValue::Text(text) } else { ReportedValue::Languages(texts) });
        context.done(child);
    }
    let single = context.texts(&mut node, "Value|value");
    values.extend(single.into_iter().map(|text| if is_literal { literal(text) } else { ReportedValue::Text(text) }));
    if !texts.is_empty() {
        values.push(ReportedValue::Languages(texts));
    }
    let mut values = values.into_iter();
    let mut made = vec![ReportedAttribute {
        value: values.next(),
        children: reported(context, &mut node),
        annotations: annotations(context, &mut node),
        uri: context.text(&mut node, "uri"),
        id: id.clone(),
    }];
    made.extend(values.map(|value| ReportedAttribute {
        id: id.clone(),
        value: Some(value),
        ..ReportedAttribute::default()
    }));
    context.done(node);
    made
}

/// A number or a flag of JSON.
fn literal(text: String) -> ReportedValue {
    match text.as_str() {
        "true" => ReportedValue::Flag(true),
        "false" => ReportedValue::Flag(false),
        number => match (number.parse::<i64>(), number.parse::<f64>()) {
            (Ok(number), _) => ReportedValue::Integer(number),
            (Err(_), Ok(number)) if number.is_finite() => ReportedValue::Number(number),
            (Err(_), Ok(_) | Err(_)) => ReportedValue::Text(text),
        },
    }
}
