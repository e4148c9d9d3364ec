//! The fields of each class.

use serde_json::Value;

use super::{DecodeError, Decoded, Fields};
use crate::sdmx::model::{
    Agency, AgencyScheme, Annotation, AnnotationUrl, Artefact, AttachmentLevel, Attribute, CascadeSelection, Code,
    CodeSelection, Codelist, CodelistExtension, Concept, ConceptScheme, Contact, DataStructure, Dataflow, Dimension,
    Facet, Group, InclusionMode, IsoConceptReference, Link, Maintained, Measure, MeasureDimension, MemberValue,
    MetadataAttributeUsage, Representation, SentinelValue, TimeDimension, Usage,
};

pub(super) fn artefact(value: Value) -> Decoded<Artefact> {
    let class = value.get("$class").and_then(Value::as_str).unwrap_or_default().to_owned();
    match class.as_str() {
        "AgencyScheme" => {
            let mut f = Fields::of(value, "AgencyScheme", "AgencyScheme")?;
            let agencies = f.list("agencies", agency)?;
            let scheme = AgencyScheme { common: common(&mut f, false)?, agencies, is_partial: f.flag("is_partial")? };
            f.done()?;
            Ok(Artefact::AgencyScheme(scheme))
        }
        "Codelist" => {
            let mut f = Fields::of(value, "Codelist", "Codelist")?;
            let codes = f.list("codes", code)?;
            let extensions = f.list("extensions", extension)?;
            let list = Codelist { common: common(&mut f, true)?, codes, extensions, is_partial: f.flag("is_partial")? };
            f.done()?;
            Ok(Artefact::Codelist(list))
        }
        "ConceptScheme" => {
            let mut f = Fields::of(value, "ConceptScheme", "ConceptScheme")?;
            let concepts = f.list("concepts", concept)?;
            let scheme = ConceptScheme { common: common(&mut f, true)?, concepts, is_partial: f.flag("is_partial")? };
            f.done()?;
            Ok(Artefact::ConceptScheme(scheme))
        }
        "DataStructure" => structure(value).map(|structure| Artefact::DataStructure(Box::new(structure))),
        "Dataflow" => {
            let mut f = Fields::of(value, "Dataflow", "Dataflow")?;
            let flow = Dataflow {
                common: common(&mut f, true)?,
                structure: f.opt_text("structure")?,
                dimension_constraint: f.texts("dimension_constraint")?,
            };
            f.done()?;
            Ok(Artefact::Dataflow(Box::new(flow)))
        }
        other => Err(DecodeError::Class { found: other.to_owned() }),
    }
}

fn common(f: &mut Fields, has_legacy_is_final: bool) -> Decoded<Maintained> {
    Ok(Maintained {
        id: f.text("id")?,
        maintainer: f.text("maintainer")?,
        version: f.text("version")?,
        name: f.languages("name")?,
        description: f.languages("description")?,
        legacy_is_final: if has_legacy_is_final { f.opt_flag("legacy_is_final")? } else { None },
        annotations: f.list("annotations", annotation)?,
        valid_from: f.opt_instant("valid_from")?,
        valid_to: f.opt_instant("valid_to")?,
        uri: f.opt_text("uri")?,
        links: f.list("links", link)?,
        is_external_reference: f.flag("is_external_reference")?,
        service_url: f.opt_text("service_url")?,
        structure_url: f.opt_text("structure_url")?,
        is_partial_language: f.flag("is_partial_language")?,
    })
}

fn structure(value: Value) -> Decoded<DataStructure> {
    let mut f = Fields::of(value, "DataStructure", "DataStructure")?;
    let structure = DataStructure {
        common: common(&mut f, true)?,
        dimensions: f.list("dimensions", dimension)?,
        time_dimension: f.opt("time_dimension", time_dimension)?,
        measure_dimension: f.opt("measure_dimension", measure_dimension)?,
        attributes: f.list("attributes", attribute)?,
        measures: f.list("measures", measure)?,
        groups: f.opt("groups", |place, value| super::list(place, value, group))?,
        dimension_descriptor_annotations: f.list("dimension_descriptor_annotations", annotation)?,
        attribute_descriptor_annotations: f.list("attribute_descriptor_annotations", annotation)?,
        measure_descriptor_annotations: f.list("measure_descriptor_annotations", annotation)?,
        dimension_descriptor_uri: f.opt_text("dimension_descriptor_uri")?,
        attribute_descriptor_uri: f.opt_text("attribute_descriptor_uri")?,
        measure_descriptor_uri: f.opt_text("measure_descriptor_uri")?,
        dimension_descriptor_links: f.list("dimension_descriptor_links", link)?,
        attribute_descriptor_links: f.list("attribute_descriptor_links", link)?,
        measure_descriptor_links: f.list("measure_descriptor_links", link)?,
        evolving_structure: f.flag("evolving_structure")?,
        metadata: f.opt_text("metadata")?,
        metadata_attributes: f.list("metadata_attributes", metadata_attribute)?,
    };
    f.done()?;
    Ok(structure)
}

/// Reads an object of `class`: `read` takes its fields, and none may be left.
fn object<T>(
    value: Value,
    class: &'static str,
    place: &str,
    read: impl FnOnce(&mut Fields) -> Decoded<T>,
) -> Decoded<T> {
    let mut f = Fields::of(value, class, place)?;
    let read = read(&mut f)?;
    f.done()?;
    Ok(read)
}

fn annotation(place: &str, value: Value) -> Decoded<Annotation> {
    object(value, "Annotation", place, |f| {
        Ok(Annotation {
            id: f.opt_text("id")?,
            title: f.opt_text("title")?,
            r#type: f.opt_text("type")?,
            urls: f.list("urls", annotation_url)?,
            text: f.languages("text")?,
            value: f.opt_text("value")?,
        })
    })
}

fn annotation_url(place: &str, value: Value) -> Decoded<AnnotationUrl> {
    object(value, "AnnotationURL", place, |f| {
        Ok(AnnotationUrl {
            url: f.text("url")?,
            lang: f.opt_text("lang")?,
            urn: f.opt_text("urn")?,
            r#type: f.opt_text("type")?,
        })
    })
}

fn link(place: &str, value: Value) -> Decoded<Link> {
    object(value, "Link", place, |f| {
        Ok(Link {
            rel: f.text("rel")?,
            url: f.text("url")?,
            urn: f.opt_text("urn")?,
            r#type: f.opt_text("type")?,
            hreflang: f.opt_text("hreflang")?,
        })
    })
}

fn agency(place: &str, value: Value) -> Decoded<Agency> {
    object(value, "Agency", place, |f| {
        Ok(Agency {
            id: f.text("id")?,
            name: f.languages("name")?,
            description: f.languages("description")?,
            contacts: f.list("contacts", contact)?,
            annotations: f.list("annotations", annotation)?,
            uri: f.opt_text("uri")?,
            links: f.list("links", link)?,
        })
    })
}

fn contact(place: &str, value: Value) -> Decoded<Contact> {
    object(value, "Contact", place, |f| {
        Ok(Contact {
            name: f.languages("name")?,
            department: f.languages("department")?,
            role: f.languages("role")?,
            phones: f.texts("phones")?,
            faxes: f.texts("faxes")?,
            x400s: f.texts("x400s")?,
            uris: f.texts("uris")?,
            emails: f.texts("emails")?,
            id: f.opt_text("id")?,
        })
    })
}

fn code(place: &str, value: Value) -> Decoded<Code> {
    object(value, "Code", place, |f| {
        Ok(Code {
            id: f.text("id")?,
            name: f.languages("name")?,
            description: f.languages("description")?,
            parent_id: f.opt_text("parent_id")?,
            annotations: f.list("annotations", annotation)?,
            uri: f.opt_text("uri")?,
            links: f.list("links", link)?,
        })
    })
}

fn extension(place: &str, value: Value) -> Decoded<CodelistExtension> {
    object(value, "CodelistExtension", place, |f| {
        Ok(CodelistExtension {
            codelist: f.text("codelist")?,
            selection: f.opt("selection", selection)?,
            prefix: f.opt_text("prefix")?,
        })
    })
}

fn selection(place: &str, value: Value) -> Decoded<CodeSelection> {
    object(value, "CodeSelection", place, |f| {
        Ok(CodeSelection {
            mode: f.member("mode", "INCLUDE or EXCLUDE", InclusionMode::from_name)?,
            members: f.list("members", member)?,
        })
    })
}

fn member(place: &str, value: Value) -> Decoded<MemberValue> {
    object(value, "MemberValue", place, |f| {
        let cascade = f.opt("cascade", |place, value| match value.as_str().and_then(CascadeSelection::from_name) {
            Some(cascade) => Ok(cascade),
            None => super::kind(place.to_owned(), "INCLUDE_DESCENDANTS, SELF_ONLY or EXCLUDE_ROOT", &value),
        })?;
        Ok(MemberValue { value: f.text("value")?, cascade })
    })
}

fn concept(place: &str, value: Value) -> Decoded<Concept> {
    object(value, "Concept", place, |f| {
        Ok(Concept {
            id: f.text("id")?,
            name: f.languages("name")?,
            description: f.languages("description")?,
            core_representation: f.opt("core_representation", representation)?,
            parent_id: f.opt_text("parent_id")?,
            enumeration_format: f.opt("enumeration_format", facet)?,
            iso_concept_reference: f.opt("iso_concept_reference", iso_reference)?,
            min_occurs: f.integer("min_occurs")?,
            max_occurs: f.opt_integer("max_occurs")?,
            annotations: f.list("annotations", annotation)?,
            uri: f.opt_text("uri")?,
            links: f.list("links", link)?,
        })
    })
}

fn iso_reference(place: &str, value: Value) -> Decoded<IsoConceptReference> {
    object(value, "ISOConceptReference", place, |f| {
        Ok(IsoConceptReference {
            concept_agency: f.text("agency")?,
            concept_scheme_id: f.text("concept_scheme_id")?,
            concept_id: f.text("concept_id")?,
        })
    })
}

fn representation(place: &str, value: Value) -> Decoded<Representation> {
    match value {
        Value::String(urn) => Ok(Representation::Enumerated(urn)),
        value => facet(place, value).map(|facet| Representation::Text(Box::new(facet))),
    }
}

fn facet(place: &str, value: Value) -> Decoded<Facet> {
    object(value, "Facet", place, |f| {
        Ok(Facet {
            data_type: f.opt_text("type")?,
            max_length: f.opt_integer("max_length")?,
            min_length: f.opt_integer("min_length")?,
            max_value: f.opt_float("max_value")?,
            min_value: f.opt_float("min_value")?,
            decimals: f.opt_integer("decimals")?,
            pattern: f.opt_text("pattern")?,
            start_value: f.opt_float("start_value")?,
            end_value: f.opt_float("end_value")?,
            is_sequence: f.opt_flag("is_sequence")?,
            is_multilingual: f.flag("is_multilingual")?,
            interval: f.opt_float("interval")?,
            time_interval: f.opt_text("time_interval")?,
            start_time: f.opt_text("start_time")?,
            end_time: f.opt_text("end_time")?,
            sentinel_values: f.list("sentinel_values", sentinel)?,
        })
    })
}

fn sentinel(place: &str, value: Value) -> Decoded<SentinelValue> {
    object(value, "SentinelValue", place, |f| {
        Ok(SentinelValue {
            value: f.text("value")?,
            name: f.languages("name")?,
            description: f.languages("description")?,
        })
    })
}

fn dimension(place: &str, value: Value) -> Decoded<Dimension> {
    object(value, "Dimension", place, |f| {
        Ok(Dimension {
            id: f.text("id")?,
            concept: f.opt_text("concept")?,
            representation: f.opt("representation", representation)?,
            enumeration_format: f.opt("enumeration_format", facet)?,
            annotations: f.list("annotations", annotation)?,
            concept_role: f.texts("concept_role")?,
            uri: f.opt_text("uri")?,
            links: f.list("links", link)?,
        })
    })
}

fn time_dimension(place: &str, value: Value) -> Decoded<TimeDimension> {
    object(value, "TimeDimension", place, |f| {
        let representation = f.take("representation")?;
        Ok(TimeDimension {
            id: f.text("id")?,
            concept: f.opt_text("concept")?,
            representation: facet(&f.at("representation"), representation)?,
            annotations: f.list("annotations", annotation)?,
            uri: f.opt_text("uri")?,
            links: f.list("links", link)?,
        })
    })
}

fn measure_dimension(place: &str, value: Value) -> Decoded<MeasureDimension> {
    object(value, "MeasureDimension", place, |f| {
        Ok(MeasureDimension {
            id: f.text("id")?,
            concept: f.opt_text("concept")?,
            representation: f.opt("representation", representation)?,
            annotations: f.list("annotations", annotation)?,
            concept_role: f.texts("concept_role")?,
            uri: f.opt_text("uri")?,
        })
    })
}

fn attachment(f: &mut Fields) -> Decoded<AttachmentLevel> {
    f.member("attachment", "DATASET, OBSERVATION, SERIES or GROUP", AttachmentLevel::from_name)
}

fn usage(f: &mut Fields) -> Decoded<Usage> {
    f.member("usage", "MANDATORY or OPTIONAL", Usage::from_name)
}

fn attribute(place: &str, value: Value) -> Decoded<Attribute> {
    object(value, "Attribute", place, |f| {
        Ok(Attribute {
            id: f.text("id")?,
            usage: usage(f)?,
            attachment: attachment(f)?,
            related_dimensions: f.opt_texts("related_dimensions")?,
            optional_dimensions: f.texts("optional_dimensions")?.into_iter().collect(),
            related_measures: f.opt_texts("related_measures")?,
            related_group: f.opt_text("related_group")?,
            attachment_groups: f.texts("attachment_groups")?,
            concept: f.opt_text("concept")?,
            representation: f.opt("representation", representation)?,
            enumeration_format: f.opt("enumeration_format", facet)?,
            min_occurs: f.integer("min_occurs")?,
            max_occurs: f.opt_integer("max_occurs")?,
            annotations: f.list("annotations", annotation)?,
            concept_role: f.texts("concept_role")?,
            uri: f.opt_text("uri")?,
            links: f.list("links", link)?,
        })
    })
}

fn measure(place: &str, value: Value) -> Decoded<Measure> {
    object(value, "Measure", place, |f| {
        Ok(Measure {
            id: f.text("id")?,
            concept: f.opt_text("concept")?,
            representation: f.opt("representation", representation)?,
            enumeration_format: f.opt("enumeration_format", facet)?,
            min_occurs: f.integer("min_occurs")?,
            max_occurs: f.opt_integer("max_occurs")?,
            usage: usage(f)?,
            annotations: f.list("annotations", annotation)?,
            concept_role: f.texts("concept_role")?,
            uri: f.opt_text("uri")?,
            links: f.list("links", link)?,
        })
    })
}

fn group(place: &str, value: Value) -> Decoded<Group> {
    object(value, "Group", place, |f| {
        Ok(Group {
            id: f.text("id")?,
            dimension_ids: f.texts("dimension_ids")?,
            attachment_constraint: f.opt_text("attachment_constraint")?,
            annotations: f.list("annotations", annotation)?,
            uri: f.opt_text("uri")?,
        })
    })
}

fn metadata_attribute(place: &str, value: Value) -> Decoded<MetadataAttributeUsage> {
    object(value, "MetadataAttributeUsage", place, |f| {
        Ok(MetadataAttributeUsage {
            id: f.text("id")?,
            attachment: attachment(f)?,
            related_dimensions: f.opt_texts("related_dimensions")?,
            optional_dimensions: f.texts("optional_dimensions")?.into_iter().collect(),
            related_group: f.opt_text("related_group")?,
            annotations: f.list("annotations", annotation)?,
            uri: f.opt_text("uri")?,
            links: f.list("links", link)?,
        })
    })
}
