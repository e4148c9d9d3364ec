//! The fields of each class, in key order.

use super::{Encoder, Fault, Sink};
use crate::sdmx::model::{
    Agency, Annotation, AnnotationUrl, Artefact, Attribute, CascadeSelection, Code, CodeSelection, CodelistExtension,
    Concept, Contact, DataStructure, Dimension, Facet, Group, IsoConceptReference, Link, Maintained, Measure,
    MeasureDimension, MemberValue, MetadataAttributeUsage, Representation, SentinelValue, TimeDimension,
};

impl<S: Sink> Encoder<'_, S> {
    pub(super) fn artefact(&mut self, artefact: &Artefact) {
        self.open(artefact.class());
        let common = artefact.common();
        match artefact {
            Artefact::AgencyScheme(scheme) => {
                if common.legacy_is_final.is_some() {
                    self.fault(Fault::NotInClass("legacy_is_final"));
                }
                self.list("agencies", &scheme.agencies, Self::agency);
                self.annotations("annotations", &common.annotations);
                self.languages("description", &common.description);
                self.text("id", &common.id);
                self.flag("is_external_reference", common.is_external_reference);
                self.flag("is_partial", scheme.is_partial);
                self.flag("is_partial_language", common.is_partial_language);
                self.links("links", &common.links);
                self.text("maintainer", &common.maintainer);
                self.languages("name", &common.name);
                self.opt_text("service_url", common.service_url.as_deref());
            }
            Artefact::Codelist(list) => {
                self.annotations("annotations", &common.annotations);
                self.list("codes", &list.codes, Self::code);
                self.languages("description", &common.description);
                self.list("extensions", &list.extensions, Self::extension);
                self.identity(common, Some(list.is_partial));
                self.languages("name", &common.name);
                self.opt_text("service_url", common.service_url.as_deref());
            }
            Artefact::ConceptScheme(scheme) => {
                self.annotations("annotations", &common.annotations);
                self.list("concepts", &scheme.concepts, Self::concept);
                self.languages("description", &common.description);
                self.identity(common, Some(scheme.is_partial));
                self.languages("name", &common.name);
                self.opt_text("service_url", common.service_url.as_deref());
            }
            Artefact::DataStructure(structure) => self.structure(structure),
            Artefact::Dataflow(flow) => {
                self.annotations("annotations", &common.annotations);
                self.languages("description", &common.description);
                self.texts("dimension_constraint", &flow.dimension_constraint);
                self.identity(common, None);
                self.languages("name", &common.name);
                self.opt_text("service_url", common.service_url.as_deref());
                self.opt_text("structure", flow.structure.as_deref());
            }
        }
        self.opt_text("structure_url", common.structure_url.as_deref());
        if let Artefact::DataStructure(structure) = artefact {
            self.key("time_dimension");
            self.or_null(structure.time_dimension.as_ref(), Self::time_dimension);
        }
        self.opt_text("uri", common.uri.as_deref());
        self.instant("valid_from", common.valid_from);
        self.instant("valid_to", common.valid_to);
        self.text("version", &common.version);
        self.close();
    }

    /// From `id` to `maintainer`: nothing of a class's own lies between them but `is_partial`.
    fn identity(&mut self, common: &Maintained, is_partial: Option<bool>) {
        self.text("id", &common.id);
        self.flag("is_external_reference", common.is_external_reference);
        if let Some(is_partial) = is_partial {
            self.flag("is_partial", is_partial);
        }
        self.flag("is_partial_language", common.is_partial_language);
        self.opt_flag("legacy_is_final", common.legacy_is_final);
        self.links("links", &common.links);
        self.text("maintainer", &common.maintainer);
    }

    /// A data structure up to `service_url`.
    fn structure(&mut self, structure: &DataStructure) {
        let common = &structure.common;
        self.annotations("annotations", &common.annotations);
        self.annotations("attribute_descriptor_annotations", &structure.attribute_descriptor_annotations);
        self.links("attribute_descriptor_links", &structure.attribute_descriptor_links);
        self.opt_text("attribute_descriptor_uri", structure.attribute_descriptor_uri.as_deref());
        self.list("attributes", &structure.attributes, Self::attribute);
        self.languages("description", &common.description);
        self.annotations("dimension_descriptor_annotations", &structure.dimension_descriptor_annotations);
        self.links("dimension_descriptor_links", &structure.dimension_descriptor_links);
        self.opt_text("dimension_descriptor_uri", structure.dimension_descriptor_uri.as_deref());
        self.list("dimensions", &structure.dimensions, Self::dimension);
        self.flag("evolving_structure", structure.evolving_structure);
        self.opt_list("groups", structure.groups.as_deref(), Self::group);
        self.identity(common, None);
        self.annotations("measure_descriptor_annotations", &structure.measure_descriptor_annotations);
        self.links("measure_descriptor_links", &structure.measure_descriptor_links);
        self.opt_text("measure_descriptor_uri", structure.measure_descriptor_uri.as_deref());
        self.key("measure_dimension");
        self.or_null(structure.measure_dimension.as_ref(), Self::measure_dimension);
        self.list("measures", &structure.measures, Self::measure);
        self.opt_text("metadata", structure.metadata.as_deref());
        self.list("metadata_attributes", &structure.metadata_attributes, Self::metadata_attribute);
        self.languages("name", &common.name);
        self.opt_text("service_url", common.service_url.as_deref());
    }

    fn or_null<T>(&mut self, value: Option<&T>, each: impl Fn(&mut Self, &T)) {
        match value {
            Some(value) => each(self, value),
            None => self.put("null"),
        }
    }

    fn annotations(&mut self, key: &str, annotations: &[Annotation]) {
        self.list(key, annotations, Self::annotation);
    }

    fn links(&mut self, key: &str, links: &[Link]) {
        self.list(key, links, Self::link);
    }

    fn annotation(&mut self, annotation: &Annotation) {
        self.open("Annotation");
        self.opt_text("id", annotation.id.as_deref());
        self.languages("text", &annotation.text);
        self.opt_text("title", annotation.title.as_deref());
        self.opt_text("type", annotation.r#type.as_deref());
        self.list("urls", &annotation.urls, Self::annotation_url);
        self.opt_text("value", annotation.value.as_deref());
        self.close();
    }

    fn annotation_url(&mut self, url: &AnnotationUrl) {
        self.open("AnnotationURL");
        self.opt_text("lang", url.lang.as_deref());
        self.opt_text("type", url.r#type.as_deref());
        self.text("url", &url.url);
        self.opt_text("urn", url.urn.as_deref());
        self.close();
    }

    fn link(&mut self, link: &Link) {
        self.open("Link");
        self.opt_text("hreflang", link.hreflang.as_deref());
        self.text("rel", &link.rel);
        self.opt_text("type", link.r#type.as_deref());
        self.text("url", &link.url);
        self.opt_text("urn", link.urn.as_deref());
        self.close();
    }

    fn agency(&mut self, agency: &Agency) {
        self.open("Agency");
        self.annotations("annotations", &agency.annotations);
        self.list("contacts", &agency.contacts, Self::contact);
        self.languages("description", &agency.description);
        self.text("id", &agency.id);
        self.links("links", &agency.links);
        self.languages("name", &agency.name);
        self.opt_text("uri", agency.uri.as_deref());
        self.close();
    }

    fn contact(&mut self, contact: &Contact) {
        self.open("Contact");
        self.languages("department", &contact.department);
        self.texts("emails", &contact.emails);
        self.texts("faxes", &contact.faxes);
        self.opt_text("id", contact.id.as_deref());
        self.languages("name", &contact.name);
        self.texts("phones", &contact.phones);
        self.languages("role", &contact.role);
        self.texts("uris", &contact.uris);
        self.texts("x400s", &contact.x400s);
        self.close();
    }

    fn code(&mut self, code: &Code) {
        self.open("Code");
        self.annotations("annotations", &code.annotations);
        self.languages("description", &code.description);
        self.text("id", &code.id);
        self.links("links", &code.links);
        self.languages("name", &code.name);
        self.opt_text("parent_id", code.parent_id.as_deref());
        self.opt_text("uri", code.uri.as_deref());
        self.close();
    }

    fn extension(&mut self, extension: &CodelistExtension) {
        self.open("CodelistExtension");
        self.text("codelist", &extension.codelist);
        self.opt_text("prefix", extension.prefix.as_deref());
        self.key("selection");
        self.or_null(extension.selection.as_ref(), Self::selection);
        self.close();
    }

    fn selection(&mut self, selection: &CodeSelection) {
        self.open("CodeSelection");
        self.list("members", &selection.members, Self::member);
        self.text("mode", selection.mode.name());
        self.close();
    }

    fn member(&mut self, member: &MemberValue) {
        self.open("MemberValue");
        self.opt_text("cascade", member.cascade.map(CascadeSelection::name));
        self.text("value", &member.value);
        self.close();
    }

    fn concept(&mut self, concept: &Concept) {
        self.open("Concept");
        self.annotations("annotations", &concept.annotations);
        self.representation("core_representation", concept.core_representation.as_ref());
        self.languages("description", &concept.description);
        self.format("enumeration_format", concept.enumeration_format.as_ref());
        self.text("id", &concept.id);
        self.key("iso_concept_reference");
        self.or_null(concept.iso_concept_reference.as_ref(), Self::iso_reference);
        self.links("links", &concept.links);
        self.integer("max_occurs", concept.max_occurs);
        self.integer("min_occurs", Some(concept.min_occurs));
        self.languages("name", &concept.name);
        self.opt_text("parent_id", concept.parent_id.as_deref());
        self.opt_text("uri", concept.uri.as_deref());
        self.close();
    }

    fn iso_reference(&mut self, iso: &IsoConceptReference) {
        self.open("ISOConceptReference");
        self.text("agency", &iso.concept_agency);
        self.text("concept_id", &iso.concept_id);
        self.text("concept_scheme_id", &iso.concept_scheme_id);
        self.close();
    }

    fn representation(&mut self, key: &str, representation: Option<&Representation>) {
        self.key(key);
        match representation {
            None => self.put("null"),
            Some(Representation::Enumerated(urn)) => self.string(urn),
            Some(Representation::Text(facet)) => self.facet(facet),
        }
    }

    fn format(&mut self, key: &str, format: Option<&Facet>) {
        self.key(key);
        self.or_null(format, Self::facet);
    }

    fn facet(&mut self, facet: &Facet) {
        self.open("Facet");
        self.integer("decimals", facet.decimals);
        self.opt_text("end_time", facet.end_time.as_deref());
        self.float("end_value", facet.end_value);
        self.float("interval", facet.interval);
        self.flag("is_multilingual", facet.is_multilingual);
        self.opt_flag("is_sequence", facet.is_sequence);
        self.integer("max_length", facet.max_length);
        self.float("max_value", facet.max_value);
        self.integer("min_length", facet.min_length);
        self.float("min_value", facet.min_value);
        self.opt_text("pattern", facet.pattern.as_deref());
        self.list("sentinel_values", &facet.sentinel_values, Self::sentinel);
        self.opt_text("start_time", facet.start_time.as_deref());
        self.float("start_value", facet.start_value);
        self.opt_text("time_interval", facet.time_interval.as_deref());
        self.opt_text("type", facet.data_type.as_deref());
        self.close();
    }

    fn sentinel(&mut self, sentinel: &SentinelValue) {
        self.open("SentinelValue");
        self.languages("description", &sentinel.description);
        self.languages("name", &sentinel.name);
        self.text("value", &sentinel.value);
        self.close();
    }

    fn dimension(&mut self, dimension: &Dimension) {
        self.open("Dimension");
        self.annotations("annotations", &dimension.annotations);
        self.opt_text("concept", dimension.concept.as_deref());
        self.texts("concept_role", &dimension.concept_role);
        self.format("enumeration_format", dimension.enumeration_format.as_ref());
        self.text("id", &dimension.id);
        self.links("links", &dimension.links);
        self.representation("representation", dimension.representation.as_ref());
        self.opt_text("uri", dimension.uri.as_deref());
        self.close();
    }

    fn time_dimension(&mut self, dimension: &TimeDimension) {
        self.open("TimeDimension");
        self.annotations("annotations", &dimension.annotations);
        self.opt_text("concept", dimension.concept.as_deref());
        self.text("id", &dimension.id);
        self.links("links", &dimension.links);
        self.format("representation", Some(&dimension.representation));
        self.opt_text("uri", dimension.uri.as_deref());
        self.close();
    }

    fn measure_dimension(&mut self, dimension: &MeasureDimension) {
        self.open("MeasureDimension");
        self.annotations("annotations", &dimension.annotations);
        self.opt_text("concept", dimension.concept.as_deref());
        self.texts("concept_role", &dimension.concept_role);
        self.text("id", &dimension.id);
        self.representation("representation", dimension.representation.as_ref());
        self.opt_text("uri", dimension.uri.as_deref());
        self.close();
    }

    fn attribute(&mut self, attribute: &Attribute) {
        self.open("Attribute");
        self.annotations("annotations", &attribute.annotations);
        self.text("attachment", attribute.attachment.name());
        self.texts("attachment_groups", &attribute.attachment_groups);
        self.opt_text("concept", attribute.concept.as_deref());
        self.texts("concept_role", &attribute.concept_role);
        self.format("enumeration_format", attribute.enumeration_format.as_ref());
        self.text("id", &attribute.id);
        self.links("links", &attribute.links);
        self.integer("max_occurs", attribute.max_occurs);
        self.integer("min_occurs", Some(attribute.min_occurs));
        self.set("optional_dimensions", &attribute.optional_dimensions);
        self.opt_texts("related_dimensions", attribute.related_dimensions.as_deref());
        self.opt_text("related_group", attribute.related_group.as_deref());
        self.opt_texts("related_measures", attribute.related_measures.as_deref());
        self.representation("representation", attribute.representation.as_ref());
        self.opt_text("uri", attribute.uri.as_deref());
        self.text("usage", attribute.usage.name());
        self.close();
    }

    fn measure(&mut self, measure: &Measure) {
        self.open("Measure");
        self.annotations("annotations", &measure.annotations);
        self.opt_text("concept", measure.concept.as_deref());
        self.texts("concept_role", &measure.concept_role);
        self.format("enumeration_format", measure.enumeration_format.as_ref());
        self.text("id", &measure.id);
        self.links("links", &measure.links);
        self.integer("max_occurs", measure.max_occurs);
        self.integer("min_occurs", Some(measure.min_occurs));
        self.representation("representation", measure.representation.as_ref());
        self.opt_text("uri", measure.uri.as_deref());
        self.text("usage", measure.usage.name());
        self.close();
    }

    fn group(&mut self, group: &Group) {
        self.open("Group");
        self.annotations("annotations", &group.annotations);
        self.opt_text("attachment_constraint", group.attachment_constraint.as_deref());
        self.texts("dimension_ids", &group.dimension_ids);
        self.text("id", &group.id);
        self.opt_text("uri", group.uri.as_deref());
        self.close();
    }

    fn metadata_attribute(&mut self, usage: &MetadataAttributeUsage) {
        self.open("MetadataAttributeUsage");
        self.annotations("annotations", &usage.annotations);
        self.text("attachment", usage.attachment.name());
        self.text("id", &usage.id);
        self.links("links", &usage.links);
        self.set("optional_dimensions", &usage.optional_dimensions);
        self.opt_texts("related_dimensions", usage.related_dimensions.as_deref());
        self.opt_text("related_group", usage.related_group.as_deref());
        self.opt_text("uri", usage.uri.as_deref());
        self.close();
    }
}
