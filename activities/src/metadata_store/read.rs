//! The model on its way out of the tables.

mod structure;

use std::collections::HashMap;

use catalog_rules::sdmx::model::{
    Agency, AgencyScheme, Annotation, AnnotationUrl, Artefact, CascadeSelection, Code, CodeSelection, Codelist,
    CodelistExtension, Concept, ConceptScheme, Contact, Dataflow, Facet, InclusionMode, InternationalString,
    IsoConceptReference, Link, Maintained, MemberValue, Representation, UrnText,
};

use super::cursor::{Cursor, scan};
use super::error::MetadataError;
use super::rows::Target;
use super::schema;
use super::write::{ENUMERATED, TEXT};

/// Rows by the URN of what they belong to, in order. What is taken out is gone, so that what is left at the end belongs
/// to nothing.
struct By<T> {
    table: &'static str,
    rows: HashMap<UrnText, Vec<T>>,
}

impl<T> By<T> {
    fn new(table: &'static str) -> Self {
        Self { table, rows: HashMap::new() }
    }

    fn add(&mut self, owner: String, row: T) {
        self.rows.entry(owner).or_default().push(row);
    }

    fn take(&mut self, owner: &str) -> Vec<T> {
        // Most items have neither annotations nor links.
        if self.rows.is_empty() { Vec::new() } else { self.rows.remove(owner).unwrap_or_default() }
    }

    fn none_left(&self) -> Result<(), MetadataError> {
        match self.rows.keys().min() {
            None => Ok(()),
            Some(owner) => Err(MetadataError::Orphan { table: self.table, owner: owner.clone() }),
        }
    }
}

/// What is read before the artefacts that it belongs to.
struct Parts {
    texts: By<(String, String, String)>,
    annotations: By<Annotation>,
    links: By<Link>,
}

/// Every artefact of the store, by URN. Bindings are none.
pub(super) fn artefacts(target: &Target<'_>) -> Result<Vec<Artefact>, MetadataError> {
    let mut parts = Parts { texts: texts(target)?, annotations: annotations(target)?, links: links(target)? };
    let mut agencies = agencies(target, &mut parts)?;
    let mut codes = codes(target, &mut parts)?;
    let mut extensions = extensions(target)?;
    let mut concepts = concepts(target, &mut parts)?;
    let mut structures = structure::structures(target, &mut parts)?;
    let mut flows = dataflows(target)?;

    let mut artefacts = Vec::new();
    scan(target, &schema::ARTEFACT, |row| {
        let (urn, class) = (row.text()?, row.text()?);
        let mut common =
            Maintained { maintainer: row.text()?, id: row.text()?, version: row.text()?, ..Maintained::default() };
        // version_sort and is_final follow from the version and from legacy_is_final.
        row.skip(2);
        common.legacy_is_final = row.opt_bool()?;
        common.is_external_reference = row.bool()?;
        common.service_url = row.opt_text()?;
        common.structure_url = row.opt_text()?;
        let is_partial = row.bool()?;
        common.is_partial_language = row.bool()?;
        common.valid_from = row.opt_time()?;
        common.valid_to = row.opt_time()?;
        row.skip(2);
        common.uri = row.opt_text()?;
        if class == super::bindings::CLASS {
            return Ok(());
        }
        for (field, language, text) in parts.texts.take(&urn) {
            let texts = if field == "name" { &mut common.name } else { &mut common.description };
            texts.insert(language, text);
        }
        common.annotations = parts.annotations.take(&urn);
        common.links = parts.links.take(&urn);
        artefacts.push(match class.as_str() {
            "AgencyScheme" => {
                Artefact::AgencyScheme(AgencyScheme { common, agencies: agencies.take(&urn), is_partial })
            }
            "Codelist" => Artefact::Codelist(Codelist {
                common,
                codes: codes.take(&urn),
                extensions: extensions.take(&urn),
                is_partial,
            }),
            "ConceptScheme" => {
                Artefact::ConceptScheme(ConceptScheme { common, concepts: concepts.take(&urn), is_partial })
            }
            "DataStructure" => {
                let mut structure = structures.take(&urn).pop().ok_or_else(|| without_row(&urn))?;
                structure.common = common;
                Artefact::DataStructure(Box::new(structure))
            }
            "Dataflow" => {
                let mut flow = flows.take(&urn).pop().ok_or_else(|| without_row(&urn))?;
                flow.common = common;
                Artefact::Dataflow(Box::new(flow))
            }
            _ => return Err(MetadataError::Class { urn, found: class }),
        });
        Ok(())
    })?;

    parts.texts.none_left()?;
    parts.annotations.none_left()?;
    parts.links.none_left()?;
    agencies.none_left()?;
    codes.none_left()?;
    extensions.none_left()?;
    concepts.none_left()?;
    structures.none_left()?;
    flows.none_left()?;
    Ok(artefacts)
}

/// A data structure or a dataflow that stands in `artefact` alone.
fn without_row(urn: &str) -> MetadataError {
    MetadataError::Orphan { table: "artefact", owner: format!("the row of its class's own table for {urn}") }
}

fn texts(target: &Target<'_>) -> Result<By<(String, String, String)>, MetadataError> {
    let mut by = By::new("localized_text");
    scan(target, &schema::LOCALIZED_TEXT, |row| {
        let owner = row.text()?;
        let field = row.text()?;
        if field != "name" && field != "description" {
            return Err(row.bad(field, "name or description"));
        }
        by.add(owner, (field, row.text()?, row.text()?));
        Ok(())
    })?;
    Ok(by)
}

fn annotations(target: &Target<'_>) -> Result<By<Annotation>, MetadataError> {
    let mut texts: HashMap<i64, InternationalString> = HashMap::new();
    scan(target, &schema::ANNOTATION_TEXT, |row| {
        texts.entry(row.big()?).or_default().insert(row.text()?, row.text()?);
        Ok(())
    })?;
    let mut urls: HashMap<i64, Vec<AnnotationUrl>> = HashMap::new();
    scan(target, &schema::ANNOTATION_URL, |row| {
        let id = row.big()?;
        row.skip(1);
        urls.entry(id).or_default().push(AnnotationUrl {
            url: row.text()?,
            lang: row.opt_text()?,
            urn: row.opt_text()?,
            r#type: row.opt_text()?,
        });
        Ok(())
    })?;
    let mut by = By::new("annotation");
    scan(target, &schema::ANNOTATION, |row| {
        let (id, owner) = (row.big()?, row.text()?);
        row.skip(2);
        let annotation = Annotation {
            id: row.opt_text()?,
            title: row.opt_text()?,
            r#type: row.opt_text()?,
            value: row.opt_text()?,
            text: texts.remove(&id).unwrap_or_default(),
            urls: urls.remove(&id).unwrap_or_default(),
        };
        by.add(owner, annotation);
        Ok(())
    })?;
    for (table, left) in [("annotation_text", texts.keys().min()), ("annotation_url", urls.keys().min())] {
        if let Some(id) = left {
            return Err(MetadataError::Orphan { table, owner: format!("annotation {id}") });
        }
    }
    Ok(by)
}

fn links(target: &Target<'_>) -> Result<By<Link>, MetadataError> {
    let mut by = By::new("link");
    scan(target, &schema::LINK, |row| {
        let owner = row.text()?;
        row.skip(2);
        let link = Link {
            rel: row.text()?,
            url: row.text()?,
            urn: row.opt_text()?,
            r#type: row.opt_text()?,
            hreflang: row.opt_text()?,
        };
        by.add(owner, link);
        Ok(())
    })?;
    Ok(by)
}

fn agencies(target: &Target<'_>, parts: &mut Parts) -> Result<By<Agency>, MetadataError> {
    let mut contacts = By::new("organisation_contact");
    scan(target, &schema::ORGANISATION_CONTACT, |row| {
        row.skip(1);
        let owner = row.text()?;
        row.skip(1);
        let contact = Contact {
            name: row.languages()?,
            department: row.languages()?,
            role: row.languages()?,
            phones: row.texts()?,
            faxes: row.texts()?,
            x400s: row.texts()?,
            uris: row.texts()?,
            emails: row.texts()?,
            id: row.opt_text()?,
        };
        contacts.add(owner, contact);
        Ok(())
    })?;
    let mut by = By::new("agency");
    scan(target, &schema::AGENCY, |row| {
        let (urn, scheme) = (row.text()?, row.text()?);
        let agency = Agency {
            id: row.text()?,
            name: row.languages()?,
            description: row.languages()?,
            uri: row.opt_text()?,
            contacts: contacts.take(&urn),
            annotations: parts.annotations.take(&urn),
            links: parts.links.take(&urn),
        };
        by.add(scheme, agency);
        Ok(())
    })?;
    contacts.none_left()?;
    Ok(by)
}

fn codes(target: &Target<'_>, parts: &mut Parts) -> Result<By<Code>, MetadataError> {
    let mut by = By::new("code");
    scan(target, &schema::CODE, |row| {
        let (urn, list) = (row.text()?, row.text()?);
        let (id, parent_id) = (row.text()?, row.opt_text()?);
        row.skip(1);
        let (name, description) = (row.languages()?, row.languages()?);
        row.skip(2);
        let code = Code {
            id,
            name,
            description,
            parent_id,
            uri: row.opt_text()?,
            annotations: parts.annotations.take(&urn),
            links: parts.links.take(&urn),
        };
        by.add(list, code);
        Ok(())
    })?;
    Ok(by)
}

fn extensions(target: &Target<'_>) -> Result<By<CodelistExtension>, MetadataError> {
    let mut members: HashMap<(String, i64), Vec<MemberValue>> = HashMap::new();
    scan(target, &schema::CODE_SELECTION_MEMBER, |row| {
        let (list, position) = (row.text()?, row.opt_small()?.unwrap_or_default());
        row.skip(1);
        let value = row.text()?;
        let cascade = row.opt_member("true, false or excluderoot", CascadeSelection::from_value)?;
        members.entry((list, position)).or_default().push(MemberValue { value, cascade });
        Ok(())
    })?;
    let mut by = By::new("codelist_extension");
    scan(target, &schema::CODELIST_EXTENSION, |row| {
        let (list, position) = (row.text()?, row.opt_small()?.unwrap_or_default());
        let (codelist, prefix) = (row.text()?, row.opt_text()?);
        let mode = row.opt_member("inclusive or exclusive", InclusionMode::from_value)?;
        let key = (list, position);
        let selection = mode.map(|mode| CodeSelection { mode, members: members.remove(&key).unwrap_or_default() });
        by.add(key.0, CodelistExtension { codelist, selection, prefix });
        Ok(())
    })?;
    match members.keys().min() {
        None => Ok(by),
        Some((list, _)) => Err(MetadataError::Orphan { table: "code_selection_member", owner: list.clone() }),
    }
}

fn concepts(target: &Target<'_>, parts: &mut Parts) -> Result<By<Concept>, MetadataError> {
    let mut by = By::new("concept");
    scan(target, &schema::CONCEPT, |row| {
        let (urn, scheme) = (row.text()?, row.text()?);
        let mut concept = Concept { id: row.text()?, parent_id: row.opt_text()?, ..Concept::default() };
        row.skip(1);
        concept.name = row.languages()?;
        concept.description = row.languages()?;
        row.skip(2);
        concept.uri = row.opt_text()?;
        let mut represented = Represented::read(row)?;
        represented.facet.sentinel_values = row.sentinels()?;
        let format = facet(row)?;
        let iso = (row.opt_text()?, row.opt_text()?, row.opt_text()?);
        concept.min_occurs = row.int()?;
        concept.max_occurs = row.opt_int()?;
        concept.core_representation = represented.finish();
        concept.enumeration_format = with_sentinels(format, row)?;
        concept.iso_concept_reference = match iso {
            (Some(concept_agency), Some(concept_scheme_id), Some(concept_id)) => {
                Some(IsoConceptReference { concept_agency, concept_scheme_id, concept_id })
            }
            (None, None, None) => None,
            partial => return Err(row.bad(partial, "all three parts of an ISO reference or none")),
        };
        concept.annotations = parts.annotations.take(&urn);
        concept.links = parts.links.take(&urn);
        by.add(scheme, concept);
        Ok(())
    })?;
    Ok(by)
}

fn dataflows(target: &Target<'_>) -> Result<By<Dataflow>, MetadataError> {
    let mut by = By::new("dataflow");
    scan(target, &schema::DATAFLOW, |row| {
        let urn = row.text()?;
        let flow = Dataflow { structure: row.opt_text()?, dimension_constraint: row.texts()?, ..Dataflow::default() };
        by.add(urn, flow);
        Ok(())
    })?;
    Ok(by)
}

/// A representation in its columns.
struct Represented {
    kind: Kind,
    enumeration: Option<UrnText>,
    facet: Facet,
}

enum Kind {
    None,
    Enumerated,
    Text,
}

impl Represented {
    fn read(row: &mut Cursor<'_>) -> Result<Self, MetadataError> {
        let kind = row.opt_member("enumerated or text", |kind| match kind {
            ENUMERATED => Some(Kind::Enumerated),
            TEXT => Some(Kind::Text),
            _ => None,
        })?;
        let (kind, enumeration) = (kind.unwrap_or(Kind::None), row.opt_text()?);
        if matches!(kind, Kind::Enumerated) != enumeration.is_some() {
            return Err(row.bad(enumeration, "the URN of an enumeration where repr_kind says so, and no other"));
        }
        Ok(Self { kind, enumeration, facet: facet(row)?.unwrap_or_default() })
    }

    fn finish(self) -> Option<Representation> {
        match self.kind {
            Kind::None => None,
            Kind::Enumerated => self.enumeration.map(Representation::Enumerated),
            Kind::Text => Some(Representation::Text(Box::new(self.facet))),
        }
    }
}

/// The columns of a format. There is one when `is_multilingual` is not null.
fn facet(row: &mut Cursor<'_>) -> Result<Option<Facet>, MetadataError> {
    let mut facet = Facet {
        data_type: row.opt_text()?,
        min_length: row.opt_int()?,
        max_length: row.opt_int()?,
        min_value: row.opt_double()?,
        max_value: row.opt_double()?,
        decimals: row.opt_small()?,
        pattern: row.opt_text()?,
        is_sequence: row.opt_bool()?,
        start_value: row.opt_double()?,
        end_value: row.opt_double()?,
        ..Facet::default()
    };
    let is_multilingual = row.opt_bool()?;
    facet.interval = row.opt_double()?;
    facet.time_interval = row.opt_text()?;
    facet.start_time = row.opt_text()?;
    facet.end_time = row.opt_text()?;
    Ok(is_multilingual.map(|is_multilingual| Facet { is_multilingual, ..facet }))
}

fn with_sentinels(facet: Option<Facet>, row: &mut Cursor<'_>) -> Result<Option<Facet>, MetadataError> {
    let sentinel_values = row.sentinels()?;
    Ok(facet.map(|facet| Facet { sentinel_values, ..facet }))
}
