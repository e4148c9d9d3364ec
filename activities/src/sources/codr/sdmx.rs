//! The table as SDMX: codelists, a concept scheme, a data structure and a dataflow (agency `STC`, version `1.0`).

mod notes;

use std::collections::BTreeMap;

use catalog_rules::ids::ProductId;
use catalog_rules::sdmx::model::{
    Annotation, Artefact, AttachmentLevel, Attribute, Code, Codelist, Concept, ConceptScheme, DataStructure, Dataflow,
    Dimension as DsdDimension, Facet, InternationalString, Maintained, Measure, Representation, TimeDimension, Usage,
};

use super::finding::{FindingKind, Findings};
use super::frozen::{self, AGENCY, MULTIPLIERS, STATUSES, SYMBOLS, VERSION, both};
use super::language::Language;
use super::members::{Dimension, Member};
use super::metadata::Metadata;
use super::table::{OBS_VALUE, TIME_PERIOD, dimension_id, identifier};

/// What a product's artefacts are made from.
pub(super) struct Parts<'a> {
    pub(super) product_id: &'a ProductId,
    pub(super) languages: &'a [Language],
    pub(super) dimensions: &'a [Dimension],
    pub(super) metadata: &'a [Metadata],
    /// The units of the rows; none for a census table, which names none.
    pub(super) units: Option<&'a BTreeMap<u32, InternationalString>>,
}

/// The ids and URNs of a product's artefacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ids(String);

impl Ids {
    pub(super) fn of(product_id: &ProductId) -> Self {
        Self(identifier(product_id))
    }

    fn codelist(&self, component: &str) -> String {
        format!("CL_{}_{component}", self.0)
    }

    fn scheme(&self) -> String {
        format!("CS_{}", self.0)
    }

    fn concept_urn(&self, component: &str) -> String {
        let scheme = self.scheme();
        format!("urn:sdmx:org.sdmx.infomodel.conceptscheme.Concept={AGENCY}:{scheme}({VERSION}).{component}")
    }

    fn structure(&self) -> String {
        format!("DSD_{}", self.0)
    }

    /// The URN of the data structure.
    pub(super) fn structure_urn(&self) -> String {
        let id = self.structure();
        format!("urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure={AGENCY}:{id}({VERSION})")
    }

    fn flow(&self) -> String {
        format!("DF_{}", self.0)
    }

    /// The URN of the dataflow.
    pub(super) fn flow_urn(&self) -> String {
        let id = self.flow();
        format!("urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow={AGENCY}:{id}({VERSION})")
    }
}

fn codelist_urn(id: &str) -> String {
    format!("urn:sdmx:org.sdmx.infomodel.codelist.Codelist={AGENCY}:{id}({VERSION})")
}

fn maintained(id: String, name: InternationalString) -> Maintained {
    Maintained { id, maintainer: AGENCY.to_owned(), version: VERSION.to_owned(), name, ..Maintained::default() }
}

/// An annotation of type `kind` with a value, or none for an empty one.
fn value_annotation(kind: &str, value: &str) -> Option<Annotation> {
    (!value.is_empty()).then(|| Annotation {
        r#type: Some(kind.to_owned()),
        value: Some(value.to_owned()),
        ..Annotation::default()
    })
}

/// The artefacts in the order codelists, concept scheme, data structure, dataflow; the shared lists among the
/// codelists. Codes stand in the order of their member ids, which a release does not change, as the order of a member
/// list may.
pub(super) fn artefacts(parts: &Parts<'_>, file: &std::sync::Arc<str>, findings: &mut Findings) -> Vec<Artefact> {
    let ids = Ids::of(parts.product_id);
    let mut artefacts: Vec<Artefact> = Vec::new();
    for dimension in parts.dimensions {
        artefacts.push(Artefact::Codelist(member_list(&ids, dimension, file, findings)));
    }
    let unit_list = ids.codelist("UNIT_MEASURE");
    if let Some(units) = parts.units {
        let codes = units.iter().map(|(id, name)| {
            let id = id.to_string();
            let name = if name.is_empty() { both(&id, &id) } else { name.clone() };
            Code { id, name, ..Code::default() }
        });
        artefacts.push(Artefact::Codelist(Codelist {
            common: maintained(unit_list.clone(), both("Unit of measure", "Unité de mesure")),
            codes: codes.collect(),
            ..Codelist::default()
        }));
        artefacts.push(Artefact::Codelist(frozen::multipliers()));
    }
    artefacts.push(Artefact::Codelist(frozen::statuses()));
    artefacts.push(Artefact::Codelist(frozen::symbols()));

    let attributes = attributes(&ids, parts, &unit_list);
    artefacts.push(Artefact::ConceptScheme(concept_scheme(&ids, parts, &attributes)));
    artefacts.push(Artefact::DataStructure(Box::new(structure(&ids, parts, attributes))));
    artefacts.push(Artefact::Dataflow(Box::new(Dataflow {
        common: Maintained {
            annotations: notes::annotations(parts, file, findings),
            ..maintained(ids.flow(), title(parts))
        },
        structure: Some(ids.structure_urn()),
        dimension_constraint: Vec::new(),
    })));
    artefacts
}

/// The table's title per language; its number where no metadata gives one.
fn title(parts: &Parts<'_>) -> InternationalString {
    let mut title = InternationalString::new();
    for metadata in parts.metadata.iter().filter(|metadata| !metadata.cube.title.is_empty()) {
        title.insert(metadata.language.tag().to_owned(), metadata.cube.title.clone());
    }
    if title.is_empty() {
        for language in parts.languages {
            let word = match language {
                Language::English => "Table",
                Language::French => "Tableau",
            };
            title.insert(language.tag().to_owned(), format!("{word} {}", parts.product_id));
        }
    }
    title
}

fn member_list(ids: &Ids, dimension: &Dimension, file: &std::sync::Arc<str>, findings: &mut Findings) -> Codelist {
    let id = ids.codelist(&dimension_id(dimension.position));
    let mut codes = Vec::with_capacity(dimension.members.len());
    for (member_id, member) in &dimension.members {
        if member.names.is_empty() {
            let position = dimension.position;
            let subject = (position as u64) << 32 | u64::from(*member_id);
            findings.note(FindingKind::UnnamedMember, file, None, subject, || {
                format!("member {member_id} of dimension {position} has no name; its id stands in")
            });
        }
        codes.push(code(*member_id, member));
    }
    Codelist { common: maintained(id, dimension.names.clone()), codes, ..Codelist::default() }
}

fn code(id: u32, member: &Member) -> Code {
    let id = id.to_string();
    let name = if member.names.is_empty() { both(&id, &id) } else { member.names.clone() };
    let mut annotations: Vec<Annotation> = [
        value_annotation("CLASSIFICATION_CODE", &member.classification),
        value_annotation("TERMINATED", if member.terminated { "true" } else { "" }),
        value_annotation("NOTES", &member.notes),
    ]
    .into_iter()
    .flatten()
    .collect();
    // The same attribute in both languages is one annotation.
    let mut attributes: BTreeMap<(&str, &str), (InternationalString, &str)> = BTreeMap::new();
    for (language, attribute) in &member.attributes {
        let entry = attributes
            .entry((&attribute.key, &attribute.value))
            .or_insert_with(|| (InternationalString::new(), &attribute.title));
        if !attribute.label.is_empty() {
            entry.0.insert(language.tag().to_owned(), attribute.label.clone());
        }
    }
    annotations.extend(attributes.into_iter().map(|((key, value), (text, title))| Annotation {
        id: some(key),
        title: some(title),
        r#type: Some("MEMBER_ATTRIBUTE".to_owned()),
        text,
        value: some(value),
        ..Annotation::default()
    }));
    Code {
        id,
        name,
        description: member.definitions.clone(),
        parent_id: member.parent.map(|parent| parent.to_string()),
        annotations,
        ..Code::default()
    }
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn facet(data_type: &str) -> Facet {
    Facet { data_type: Some(data_type.to_owned()), ..Facet::default() }
}

/// The attributes with their concepts' names. What is said of a series stands at the series, as the agency's own
/// description of a series has it; a status and a symbol are said of one observation, an identifier of a place of the
/// geography.
fn attributes(ids: &Ids, parts: &Parts<'_>, unit_list: &str) -> Vec<(Attribute, InternationalString)> {
    let series: Vec<String> = parts.dimensions.iter().map(|dimension| dimension_id(dimension.position)).collect();
    let enumerated = |id: &str| Representation::Enumerated(codelist_urn(id));
    let text = |facet: Facet| Representation::Text(Box::new(facet));
    let attribute = |id: &str, related: Option<Vec<String>>, representation| Attribute {
        id: id.to_owned(),
        usage: Usage::Optional,
        attachment: match related {
            Some(_) => AttachmentLevel::Series,
            None => AttachmentLevel::Observation,
        },
        related_dimensions: related,
        optional_dimensions: std::collections::BTreeSet::new(),
        related_measures: None,
        related_group: None,
        attachment_groups: Vec::new(),
        concept: Some(ids.concept_urn(id)),
        representation: Some(representation),
        enumeration_format: None,
        min_occurs: 1,
        max_occurs: Some(1),
        annotations: Vec::new(),
        concept_role: Vec::new(),
        uri: None,
        links: Vec::new(),
    };
    let mut attributes = vec![
        (attribute("OBS_STATUS", None, enumerated(STATUSES)), both("Observation status", "Statut de l'observation")),
        (attribute("SYMBOL", None, enumerated(SYMBOLS)), both("Symbol", "Symbole")),
        (
            attribute("DGUID", Some(vec![dimension_id(1)]), text(facet("String"))),
            both("Dissemination geography unique identifier", "Identificateur unique de la géographie de diffusion"),
        ),
    ];
    if parts.units.is_some() {
        let decimals = Facet { min_value: Some(0.0), max_value: Some(15.0), ..facet("Integer") };
        let vector = Facet { pattern: Some("v[0-9]{1,10}".to_owned()), ..facet("String") };
        attributes.extend([
            (
                attribute("UNIT_MEASURE", Some(series.clone()), enumerated(unit_list)),
                both("Unit of measure", "Unité de mesure"),
            ),
            (
                attribute("UNIT_MULT", Some(series.clone()), enumerated(MULTIPLIERS)),
                both("Unit multiplier", "Multiplicateur d'unité"),
            ),
            (attribute("DECIMALS", Some(series.clone()), text(decimals)), both("Decimals", "Décimales")),
            (attribute("VECTOR", Some(series.clone()), text(vector)), both("Vector", "Vecteur")),
            (
                attribute("TERMINATED", Some(series), text(facet("Boolean"))),
                both("Terminated series", "Série terminée"),
            ),
        ]);
    }
    attributes
}

fn concept_scheme(ids: &Ids, parts: &Parts<'_>, attributes: &[(Attribute, InternationalString)]) -> ConceptScheme {
    let concept = |id: String, name: InternationalString| Concept { id, name, ..Concept::default() };
    let mut concepts: Vec<Concept> = parts
        .dimensions
        .iter()
        .map(|dimension| Concept {
            description: dimension.definitions.clone(),
            annotations: value_annotation("NOTES", &dimension.notes).into_iter().collect(),
            ..concept(dimension_id(dimension.position), dimension.names.clone())
        })
        .collect();
    concepts.push(concept(TIME_PERIOD.to_owned(), both("Reference period", "Période de référence")));
    concepts.push(concept(OBS_VALUE.to_owned(), both("Value", "Valeur")));
    concepts.extend(attributes.iter().map(|(attribute, name)| concept(attribute.id.clone(), name.clone())));
    ConceptScheme { common: maintained(ids.scheme(), title(parts)), concepts, is_partial: false }
}

fn structure(ids: &Ids, parts: &Parts<'_>, attributes: Vec<(Attribute, InternationalString)>) -> DataStructure {
    let dimensions = parts.dimensions.iter().map(|dimension| {
        let id = dimension_id(dimension.position);
        DsdDimension {
            concept: Some(ids.concept_urn(&id)),
            representation: Some(Representation::Enumerated(codelist_urn(&ids.codelist(&id)))),
            id,
            ..DsdDimension::default()
        }
    });
    DataStructure {
        common: maintained(ids.structure(), title(parts)),
        dimensions: dimensions.collect(),
        time_dimension: Some(TimeDimension {
            id: TIME_PERIOD.to_owned(),
            concept: Some(ids.concept_urn(TIME_PERIOD)),
            representation: facet("ObservationalTimePeriod"),
            ..TimeDimension::default()
        }),
        attributes: attributes.into_iter().map(|(attribute, _)| attribute).collect(),
        measures: vec![Measure {
            id: OBS_VALUE.to_owned(),
            concept: Some(ids.concept_urn(OBS_VALUE)),
            representation: Some(Representation::Text(Box::new(facet("Decimal")))),
            enumeration_format: None,
            min_occurs: 1,
            max_occurs: Some(1),
            usage: Usage::Optional,
            annotations: Vec::new(),
            concept_role: Vec::new(),
            uri: None,
            links: Vec::new(),
        }],
        ..DataStructure::default()
    }
}

#[cfg(test)]
mod tests;
