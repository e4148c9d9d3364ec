//! Data structures on their way into the tables.

use std::collections::HashSet;

use catalog_rules::sdmx::model::{
    Annotation, AttachmentLevel, DataStructure, Facet, Group, Link, MetadataAttributeUsage, UrnText, Usage,
};
use catalog_rules::sdmx::urn::item_urn;

use super::{Cell, MetadataError, Represented, Writer, facet_cells, int, place, refuse_double, schema, sentinel_cell};

/// The URN of a component, group or descriptor of a data structure. The annotations and links of one are stored under
/// it.
pub(in crate::metadata_store) fn part_urn(structure: &str, class: &str, id: &str) -> UrnText {
    item_urn(structure, "datastructure", class, id)
}

/// A component in the columns of `dsd_component`; what a class does not have stays as here.
struct Component<'a> {
    class: &'static str,
    id: &'a str,
    concept: Option<&'a UrnText>,
    represented: Represented<'a>,
    format: Option<&'a Facet>,
    usage_status: Option<Usage>,
    attachment: Option<AttachmentLevel>,
    attachment_group: Option<&'a String>,
    related_dimensions: Option<&'a Vec<String>>,
    measure_usage: Option<Usage>,
    concept_roles: Option<&'a Vec<String>>,
    uri: Option<&'a String>,
    optional_dimensions: Option<Vec<String>>,
    related_measures: Option<&'a Vec<String>>,
    occurs: (i64, Option<i64>),
    attachment_groups: Option<&'a Vec<String>>,
    annotations: &'a [Annotation],
    links: &'a [Link],
}

impl<'a> Component<'a> {
    fn new(class: &'static str, id: &'a str, represented: Represented<'a>) -> Self {
        Self {
            class,
            id,
            concept: None,
            represented,
            format: None,
            usage_status: None,
            attachment: None,
            attachment_group: None,
            related_dimensions: None,
            measure_usage: None,
            concept_roles: None,
            uri: None,
            optional_dimensions: None,
            related_measures: None,
            occurs: (1, Some(1)),
            attachment_groups: None,
            annotations: &[],
            links: &[],
        }
    }
}

/// The components of a structure, in the order in which they are numbered through.
fn components(structure: &DataStructure) -> Vec<Component<'_>> {
    let mut components = Vec::new();
    for d in &structure.dimensions {
        components.push(Component {
            concept: d.concept.as_ref(),
            format: d.enumeration_format.as_ref(),
            concept_roles: Some(&d.concept_role),
            uri: d.uri.as_ref(),
            annotations: &d.annotations,
            links: &d.links,
            ..Component::new("Dimension", &d.id, Represented::of(d.representation.as_ref()))
        });
    }
    if let Some(d) = &structure.time_dimension {
        components.push(Component {
            concept: d.concept.as_ref(),
            uri: d.uri.as_ref(),
            annotations: &d.annotations,
            links: &d.links,
            ..Component::new("TimeDimension", &d.id, Represented::facet(&d.representation))
        });
    }
    if let Some(d) = &structure.measure_dimension {
        components.push(Component {
            concept: d.concept.as_ref(),
            concept_roles: Some(&d.concept_role),
            uri: d.uri.as_ref(),
            annotations: &d.annotations,
            ..Component::new("MeasureDimension", &d.id, Represented::of(d.representation.as_ref()))
        });
    }
    for a in &structure.attributes {
        components.push(Component {
            concept: a.concept.as_ref(),
            format: a.enumeration_format.as_ref(),
            usage_status: Some(a.usage),
            attachment: Some(a.attachment),
            attachment_group: a.related_group.as_ref(),
            related_dimensions: a.related_dimensions.as_ref(),
            concept_roles: Some(&a.concept_role),
            uri: a.uri.as_ref(),
            optional_dimensions: Some(a.optional_dimensions.iter().cloned().collect()),
            related_measures: a.related_measures.as_ref(),
            occurs: (a.min_occurs, a.max_occurs),
            attachment_groups: Some(&a.attachment_groups),
            annotations: &a.annotations,
            links: &a.links,
            ..Component::new("Attribute", &a.id, Represented::of(a.representation.as_ref()))
        });
    }
    for m in &structure.measures {
        components.push(Component {
            concept: m.concept.as_ref(),
            format: m.enumeration_format.as_ref(),
            measure_usage: Some(m.usage),
            concept_roles: Some(&m.concept_role),
            uri: m.uri.as_ref(),
            occurs: (m.min_occurs, m.max_occurs),
            annotations: &m.annotations,
            links: &m.links,
            ..Component::new("Measure", &m.id, Represented::of(m.representation.as_ref()))
        });
    }
    components
}

impl<'a> Writer<'a, '_> {
    pub(super) fn structure(&mut self, urn: &str, structure: &'a DataStructure) -> Result<(), MetadataError> {
        self.put(
            &schema::DATA_STRUCTURE,
            &[
                Cell::Text(urn),
                Cell::text(structure.dimension_descriptor_uri.as_ref()),
                Cell::text(structure.attribute_descriptor_uri.as_ref()),
                Cell::text(structure.measure_descriptor_uri.as_ref()),
                Cell::Bool(structure.evolving_structure),
                Cell::Bool(structure.groups.is_some()),
            ],
        )?;
        for (class, annotations, links) in descriptors(structure) {
            let owner = part_urn(urn, class, class);
            self.annotations(&owner, urn, annotations)?;
            self.links(&owner, urn, links)?;
        }
        let mut seen = HashSet::new();
        for (at, component) in components(structure).iter().enumerate() {
            let owner = part_urn(urn, component.class, component.id);
            refuse_double(&mut seen, component.id, &owner)?;
            self.component(urn, at, component)?;
            self.annotations(&owner, urn, component.annotations)?;
            self.links(&owner, urn, component.links)?;
        }
        let mut seen = HashSet::new();
        for (at, group) in structure.groups.iter().flatten().enumerate() {
            let owner = part_urn(urn, GROUP_CLASS, &group.id);
            refuse_double(&mut seen, &group.id, &owner)?;
            self.group(urn, at, group)?;
            self.annotations(&owner, urn, &group.annotations)?;
        }
        let mut seen = HashSet::new();
        for (at, usage) in structure.metadata_attributes.iter().enumerate() {
            let owner = part_urn(urn, METADATA_ATTRIBUTE_CLASS, &usage.id);
            refuse_double(&mut seen, &usage.id, &owner)?;
            self.metadata_attribute(urn, at, usage)?;
            self.annotations(&owner, urn, &usage.annotations)?;
            self.links(&owner, urn, &usage.links)?;
        }
        Ok(())
    }

    fn component(&mut self, urn: &str, at: usize, component: &Component<'_>) -> Result<(), MetadataError> {
        let usage = |usage: Option<Usage>| usage.map_or(Cell::Null, |usage| Cell::Text(usage.value()));
        let represented = &component.represented;
        let mut row = vec![
            Cell::Text(urn),
            Cell::Text(component.id),
            Cell::Text(component.class),
            Cell::Int(place(urn, at)?),
            Cell::text(component.concept),
            represented.kind,
            represented.enumeration,
        ];
        row.extend(facet_cells(urn, represented.facet)?);
        row.extend(facet_cells(urn, component.format)?);
        row.extend([
            usage(component.usage_status),
            component.attachment.map_or(Cell::Null, |level| Cell::Text(level.value())),
            Cell::text(component.attachment_group),
            Cell::texts(component.related_dimensions),
            usage(component.measure_usage),
            Cell::texts(component.concept_roles),
            Cell::text(component.uri),
            Cell::texts(component.optional_dimensions.as_ref()),
            Cell::texts(component.related_measures),
            int(urn, "min_occurs", Some(component.occurs.0))?,
            int(urn, "max_occurs", component.occurs.1)?,
            sentinel_cell(represented.facet),
            Cell::texts(component.attachment_groups),
            sentinel_cell(component.format),
        ]);
        self.put(&schema::DSD_COMPONENT, &row)
    }

    fn group(&mut self, urn: &str, at: usize, group: &Group) -> Result<(), MetadataError> {
        self.put(
            &schema::DSD_GROUP,
            &[
                Cell::Text(urn),
                Cell::Text(&group.id),
                Cell::text(group.uri.as_ref()),
                Cell::text(group.attachment_constraint.as_ref()),
                Cell::Int(place(urn, at)?),
            ],
        )?;
        for (at, dimension) in group.dimension_ids.iter().enumerate() {
            let row = [Cell::Text(urn), Cell::Text(&group.id), Cell::Text(dimension), Cell::Int(place(urn, at)?)];
            self.put(&schema::GROUP_DIMENSION, &row)?;
        }
        Ok(())
    }

    fn metadata_attribute(
        &mut self,
        urn: &str,
        at: usize,
        usage: &MetadataAttributeUsage,
    ) -> Result<(), MetadataError> {
        let optional: Vec<String> = usage.optional_dimensions.iter().cloned().collect();
        self.put(
            &schema::DSD_METADATA_ATTRIBUTE,
            &[
                Cell::Text(urn),
                Cell::Text(&usage.id),
                Cell::Int(place(urn, at)?),
                Cell::Text(usage.attachment.value()),
                Cell::text(usage.related_group.as_ref()),
                Cell::texts(usage.related_dimensions.as_ref()),
                Cell::Texts(&optional),
                Cell::text(usage.uri.as_ref()),
            ],
        )
    }
}

pub(in crate::metadata_store) const GROUP_CLASS: &str = "GroupDimensionDescriptor";
pub(in crate::metadata_store) const METADATA_ATTRIBUTE_CLASS: &str = "MetadataAttributeUsage";
/// The classes of the three descriptors; each is its own id within the structure.
pub(in crate::metadata_store) const DESCRIPTORS: [&str; 3] =
    ["DimensionDescriptor", "AttributeDescriptor", "MeasureDescriptor"];

fn descriptors(structure: &DataStructure) -> [(&'static str, &[Annotation], &[Link]); 3] {
    let [dimension, attribute, measure] = DESCRIPTORS;
    [
        (dimension, &structure.dimension_descriptor_annotations, &structure.dimension_descriptor_links),
        (attribute, &structure.attribute_descriptor_annotations, &structure.attribute_descriptor_links),
        (measure, &structure.measure_descriptor_annotations, &structure.measure_descriptor_links),
    ]
}
