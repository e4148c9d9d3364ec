//! Data structures on their way out of the tables.

use std::collections::HashMap;

use catalog_rules::sdmx::model::{
    Annotation, AttachmentLevel, Attribute, DataStructure, Dimension, Group, Link, Measure, MeasureDimension,
    MetadataAttributeUsage, TimeDimension, UrnText, Usage,
};

use super::super::write::structure::{DESCRIPTORS, GROUP_CLASS, METADATA_ATTRIBUTE_CLASS, part_urn};
use super::{By, Cursor, MetadataError, Parts, Represented, Target, facet, scan, schema, with_sentinels};

/// Every data structure without what it has in common with other artefacts, by URN.
pub(super) fn structures(target: &Target<'_>, parts: &mut Parts) -> Result<By<DataStructure>, MetadataError> {
    let mut components = components(target, parts)?;
    let mut groups = groups(target, parts)?;
    let mut usages = metadata_attributes(target, parts)?;
    let mut metadata = metadata(target)?;
    let mut by = By::new("data_structure");
    scan(target, &schema::DATA_STRUCTURE, |row| {
        let urn = row.text()?;
        let [dimension, attribute, measure] = DESCRIPTORS.map(|class| descriptor(parts, &urn, class));
        let mut structure = DataStructure {
            dimension_descriptor_annotations: dimension.0,
            attribute_descriptor_annotations: attribute.0,
            measure_descriptor_annotations: measure.0,
            dimension_descriptor_links: dimension.1,
            attribute_descriptor_links: attribute.1,
            measure_descriptor_links: measure.1,
            dimension_descriptor_uri: row.opt_text()?,
            attribute_descriptor_uri: row.opt_text()?,
            measure_descriptor_uri: row.opt_text()?,
            evolving_structure: row.bool()?,
            metadata_attributes: usages.take(&urn),
            metadata: metadata.remove(&urn),
            ..DataStructure::default()
        };
        let groups = groups.take(&urn);
        structure.groups = row.bool()?.then_some(groups);
        for component in components.take(&urn) {
            match component {
                Component::Dimension(dimension) => structure.dimensions.push(dimension),
                Component::Time(dimension) => structure.time_dimension = Some(dimension),
                Component::MeasureDimension(dimension) => structure.measure_dimension = Some(dimension),
                Component::Attribute(attribute) => structure.attributes.push(attribute),
                Component::Measure(measure) => structure.measures.push(measure),
            }
        }
        by.add(urn, structure);
        Ok(())
    })?;
    components.none_left()?;
    groups.none_left()?;
    usages.none_left()?;
    Ok(by)
}

fn descriptor(parts: &mut Parts, structure: &str, class: &str) -> (Vec<Annotation>, Vec<Link>) {
    let owner = part_urn(structure, class, class);
    (parts.annotations.take(&owner), parts.links.take(&owner))
}

/// The metadata structure of each data structure. It has no column of its own: the reference is all there is.
fn metadata(target: &Target<'_>) -> Result<HashMap<UrnText, UrnText>, MetadataError> {
    let mut metadata = HashMap::new();
    scan(target, &schema::ARTEFACT_REF, |row| {
        let (source, target, role) = (row.text()?, row.text()?, row.text()?);
        if role == "metadata" {
            metadata.insert(source, target);
        }
        Ok(())
    })?;
    Ok(metadata)
}

enum Component {
    Dimension(Dimension),
    Time(TimeDimension),
    MeasureDimension(MeasureDimension),
    Attribute(Attribute),
    Measure(Measure),
}

fn components(target: &Target<'_>, parts: &mut Parts) -> Result<By<Component>, MetadataError> {
    let mut by = By::new("dsd_component");
    scan(target, &schema::DSD_COMPONENT, |row| {
        let urn = row.text()?;
        let component = component(row, &urn, parts)?;
        by.add(urn, component);
        Ok(())
    })?;
    Ok(by)
}

fn component(row: &mut Cursor<'_>, structure: &str, parts: &mut Parts) -> Result<Component, MetadataError> {
    let (id, class) = (row.text()?, row.text()?);
    if !["Dimension", "TimeDimension", "MeasureDimension", "Attribute", "Measure"].contains(&class.as_str()) {
        return Err(row.bad(class, "Dimension, TimeDimension, MeasureDimension, Attribute or Measure"));
    }
    row.skip(1);
    let concept = row.opt_text()?;
    let mut represented = Represented::read(row)?;
    let format = facet(row)?;
    let usage = usage(row)?;
    let attachment = row.opt_member("dataset, observation, series or group", AttachmentLevel::from_value)?;
    let (related_group, related_dimensions) = (row.opt_text()?, row.opt_texts()?);
    let measure_usage = self::usage(row)?;
    let (concept_role, uri) = (row.texts()?, row.opt_text()?);
    let (optional_dimensions, related_measures) = (row.texts()?, row.opt_texts()?);
    let (min_occurs, max_occurs) = (row.int()?, row.opt_int()?);
    represented.facet.sentinel_values = row.sentinels()?;
    let attachment_groups = row.texts()?;
    let enumeration_format = with_sentinels(format, row)?;
    let owner = part_urn(structure, &class, &id);
    let (annotations, links) = (parts.annotations.take(&owner), parts.links.take(&owner));
    Ok(match class.as_str() {
        "Dimension" => Component::Dimension(Dimension {
            id,
            concept,
            representation: represented.finish(),
            enumeration_format,
            annotations,
            concept_role,
            uri,
            links,
        }),
        "TimeDimension" => {
            let representation = represented.facet;
            Component::Time(TimeDimension { id, concept, representation, annotations, uri, links })
        }
        "MeasureDimension" => {
            let representation = represented.finish();
            Component::MeasureDimension(MeasureDimension {
                id,
                concept,
                representation,
                annotations,
                concept_role,
                uri,
            })
        }
        "Attribute" => Component::Attribute(Attribute {
            id,
            usage: usage.unwrap_or_default(),
            attachment: attachment.ok_or_else(|| row.bad("no attachment_level", "one for an attribute"))?,
            related_dimensions,
            optional_dimensions: optional_dimensions.into_iter().collect(),
            related_measures,
            related_group,
            attachment_groups,
            concept,
            representation: represented.finish(),
            enumeration_format,
            min_occurs,
            max_occurs,
            annotations,
            concept_role,
            uri,
            links,
        }),
        _ => Component::Measure(Measure {
            id,
            concept,
            representation: represented.finish(),
            enumeration_format,
            min_occurs,
            max_occurs,
            usage: measure_usage.unwrap_or_default(),
            annotations,
            concept_role,
            uri,
            links,
        }),
    })
}

fn usage(row: &mut Cursor<'_>) -> Result<Option<Usage>, MetadataError> {
    row.opt_member("mandatory or optional", Usage::from_value)
}

fn groups(target: &Target<'_>, parts: &mut Parts) -> Result<By<Group>, MetadataError> {
    let mut dimensions: HashMap<(String, String), Vec<String>> = HashMap::new();
    scan(target, &schema::GROUP_DIMENSION, |row| {
        dimensions.entry((row.text()?, row.text()?)).or_default().push(row.text()?);
        Ok(())
    })?;
    let mut by = By::new("dsd_group");
    scan(target, &schema::DSD_GROUP, |row| {
        let key = (row.text()?, row.text()?);
        let group = Group {
            uri: row.opt_text()?,
            attachment_constraint: row.opt_text()?,
            dimension_ids: dimensions.remove(&key).unwrap_or_default(),
            annotations: parts.annotations.take(&part_urn(&key.0, GROUP_CLASS, &key.1)),
            id: key.1,
        };
        by.add(key.0, group);
        Ok(())
    })?;
    match dimensions.keys().min() {
        None => Ok(by),
        Some((structure, group)) => {
            Err(MetadataError::Orphan { table: "group_dimension", owner: format!("group {group} of {structure}") })
        }
    }
}

fn metadata_attributes(target: &Target<'_>, parts: &mut Parts) -> Result<By<MetadataAttributeUsage>, MetadataError> {
    let mut by = By::new("dsd_metadata_attribute");
    scan(target, &schema::DSD_METADATA_ATTRIBUTE, |row| {
        let (structure, id) = (row.text()?, row.text()?);
        row.skip(1);
        let attachment = row.opt_member("dataset, observation, series or group", AttachmentLevel::from_value)?;
        let attachment = attachment.ok_or_else(|| row.bad("NULL", "an attachment level"))?;
        let owner = part_urn(&structure, METADATA_ATTRIBUTE_CLASS, &id);
        let usage = MetadataAttributeUsage {
            id,
            attachment,
            related_group: row.opt_text()?,
            related_dimensions: row.opt_texts()?,
            optional_dimensions: row.texts()?.into_iter().collect(),
            annotations: parts.annotations.take(&owner),
            uri: row.opt_text()?,
            links: parts.links.take(&owner),
        };
        by.add(structure, usage);
        Ok(())
    })?;
    Ok(by)
}
