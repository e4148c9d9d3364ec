//! The model on its way into the tables.

pub(super) mod structure;

use std::collections::{BTreeMap, HashSet};

use catalog_rules::sdmx::model::{
    AgencyScheme, Annotation, Artefact, CascadeSelection, Codelist, ConceptScheme, Contact, Facet, Link, Maintained,
    Representation, SentinelValue, UrnText,
};
use catalog_rules::sdmx::references::references;
use catalog_rules::sdmx::urn::{item_urn, version_sort};

use super::error::MetadataError;
use super::lineage::ancestors;
use super::rows::{Cell, Rows, Target};
use super::schema;
use super::schema::Table;

/// What `repr_kind` holds.
pub(super) const ENUMERATED: &str = "enumerated";
pub(super) const TEXT: &str = "text";

/// Gathers the rows of artefacts. Nothing of them is in the tables before [`Writer::finish`] returns.
pub(super) struct Writer<'a, 'c> {
    target: Target<'c>,
    tables: BTreeMap<&'static str, Rows>,
    /// Annotations wait until the end, when their number and so their ids are known.
    annotations: Vec<Noted<'a>>,
    contacts: Vec<(UrnText, i32, &'a Contact)>,
}

struct Noted<'a> {
    owner: UrnText,
    artefact: UrnText,
    ordinal: i32,
    annotation: &'a Annotation,
}

impl<'a, 'c> Writer<'a, 'c> {
    pub(super) fn new(target: Target<'c>) -> Self {
        Self { target, tables: BTreeMap::new(), annotations: Vec::new(), contacts: Vec::new() }
    }

    pub(super) fn put(&mut self, table: &'static Table, row: &[Cell<'_>]) -> Result<(), MetadataError> {
        let target = self.target;
        self.tables.entry(table.name).or_insert_with(|| Rows::new(table)).push(&target, row)
    }

    pub(super) fn artefact(&mut self, artefact: &'a Artefact) -> Result<(), MetadataError> {
        let (urn, common) = (artefact.urn(), artefact.common());
        self.put(
            &schema::ARTEFACT,
            &[
                Cell::Text(&urn),
                Cell::Text(artefact.class()),
                Cell::Text(&common.maintainer),
                Cell::Text(&common.id),
                Cell::Text(&common.version),
                Cell::Text(&version_sort(&common.version)),
                Cell::Bool(common.is_final()),
                Cell::bool(common.legacy_is_final),
                Cell::Bool(common.is_external_reference),
                Cell::text(common.service_url.as_ref()),
                Cell::text(common.structure_url.as_ref()),
                Cell::Bool(artefact.is_partial()),
                Cell::Bool(common.is_partial_language),
                Cell::time(common.valid_from),
                Cell::time(common.valid_to),
                Cell::Null,
                Cell::Null,
                Cell::text(common.uri.as_ref()),
            ],
        )?;
        self.texts(&urn, common)?;
        self.annotations(&urn, &urn, &common.annotations)?;
        self.links(&urn, &urn, &common.links)?;
        for reference in references(artefact) {
            let ordinal = reference.ordinal.map_or(Cell::Null, Cell::Int);
            let row =
                [Cell::Text(&reference.source), Cell::Text(&reference.target), Cell::Text(&reference.role), ordinal];
            self.put(&schema::ARTEFACT_REF, &row)?;
        }
        match artefact {
            Artefact::AgencyScheme(scheme) => self.agencies(&urn, scheme),
            Artefact::Codelist(list) => self.codes(&urn, list),
            Artefact::ConceptScheme(scheme) => self.concepts(&urn, scheme),
            Artefact::DataStructure(structure) => self.structure(&urn, structure),
            Artefact::Dataflow(flow) => {
                let constraint = Cell::Texts(&flow.dimension_constraint);
                self.put(&schema::DATAFLOW, &[Cell::Text(&urn), Cell::text(flow.structure.as_ref()), constraint])
            }
            Artefact::AttachmentConstraint(_)
            | Artefact::Categorisation(_)
            | Artefact::CategoryScheme(_)
            | Artefact::CategorySchemeMap(_)
            | Artefact::ConceptSchemeMap(_)
            | Artefact::DataConstraint(_)
            | Artefact::DataConsumerScheme(_)
            | Artefact::DataProviderScheme(_)
            | Artefact::GeoGridCodelist(_)
            | Artefact::GeographicCodelist(_)
            | Artefact::HierarchicalCodelist(_)
            | Artefact::Hierarchy(_)
            | Artefact::HierarchyAssociation(_)
            | Artefact::MetadataProviderScheme(_)
            | Artefact::MetadataProvisionAgreement(_)
            | Artefact::MetadataSet(_)
            | Artefact::MetadataStructure(_)
            | Artefact::Metadataflow(_)
            | Artefact::OrganisationSchemeMap(_)
            | Artefact::OrganisationUnitScheme(_)
            | Artefact::ProvisionAgreement(_)
            | Artefact::RepresentationMap(_)
            | Artefact::StructureMap(_)
            | Artefact::StructureSet(_)
            | Artefact::ValueList(_) => Err(MetadataError::NotStored { urn, found: artefact.class() }),
        }
    }

    fn texts(&mut self, urn: &str, common: &Maintained) -> Result<(), MetadataError> {
        for (field, texts) in [("name", &common.name), ("description", &common.description)] {
            for (language, text) in texts {
                let row = [Cell::Text(urn), Cell::Text(field), Cell::Text(language), Cell::Text(text)];
                self.put(&schema::LOCALIZED_TEXT, &row)?;
            }
        }
        Ok(())
    }

    fn annotations(&mut self, owner: &str, artefact: &str, annotations: &'a [Annotation]) -> Result<(), MetadataError> {
        for (at, annotation) in annotations.iter().enumerate() {
            let ordinal = place(artefact, at)?;
            let (owner, artefact) = (owner.to_owned(), artefact.to_owned());
            self.annotations.push(Noted { owner, artefact, ordinal, annotation });
        }
        Ok(())
    }

    fn links(&mut self, owner: &str, artefact: &str, links: &[Link]) -> Result<(), MetadataError> {
        for (at, link) in links.iter().enumerate() {
            self.put(
                &schema::LINK,
                &[
                    Cell::Text(owner),
                    Cell::Text(artefact),
                    Cell::Int(place(artefact, at)?),
                    Cell::Text(&link.rel),
                    Cell::Text(&link.url),
                    Cell::text(link.urn.as_ref()),
                    Cell::text(link.r#type.as_ref()),
                    Cell::text(link.hreflang.as_ref()),
                ],
            )?;
        }
        Ok(())
    }

    fn agencies(&mut self, urn: &str, scheme: &'a AgencyScheme) -> Result<(), MetadataError> {
        let mut seen = HashSet::new();
        for (at, agency) in scheme.agencies.iter().enumerate() {
            let item = item_urn(urn, "base", "Agency", &agency.id);
            refuse_double(&mut seen, &agency.id, &item)?;
            self.put(
                &schema::AGENCY,
                &[
                    Cell::Text(&item),
                    Cell::Text(urn),
                    Cell::Text(&agency.id),
                    Cell::Languages(&agency.name),
                    Cell::Languages(&agency.description),
                    Cell::text(agency.uri.as_ref()),
                    Cell::Int(place(urn, at)?),
                ],
            )?;
            for (at, contact) in agency.contacts.iter().enumerate() {
                self.contacts.push((item.clone(), place(urn, at)?, contact));
            }
            self.annotations(&item, urn, &agency.annotations)?;
            self.links(&item, urn, &agency.links)?;
        }
        Ok(())
    }

    fn codes(&mut self, urn: &str, list: &'a Codelist) -> Result<(), MetadataError> {
        let items: Vec<_> = list.codes.iter().map(|code| (code.id.as_str(), code.parent_id.as_deref())).collect();
        let lineages = ancestors(urn, &items, |id| item_urn(urn, "codelist", "Code", id))?;
        for (at, (code, lineage)) in list.codes.iter().zip(&lineages).enumerate() {
            let item = item_urn(urn, "codelist", "Code", &code.id);
            self.put(
                &schema::CODE,
                &[
                    Cell::Text(&item),
                    Cell::Text(urn),
                    Cell::Text(&code.id),
                    Cell::text(code.parent_id.as_ref()),
                    Cell::Int(place(urn, at)?),
                    Cell::Languages(&code.name),
                    Cell::Languages(&code.description),
                    small(urn, "depth", lineage.len())?,
                    Cell::Texts(lineage),
                    Cell::text(code.uri.as_ref()),
                    Cell::Null,
                    Cell::Null,
                ],
            )?;
            self.annotations(&item, urn, &code.annotations)?;
            self.links(&item, urn, &code.links)?;
        }
        for (at, extension) in list.extensions.iter().enumerate() {
            let position = small(urn, "extension", at)?;
            let selection = extension.selection.as_ref();
            self.put(
                &schema::CODELIST_EXTENSION,
                &[
                    Cell::Text(urn),
                    position,
                    Cell::Text(&extension.codelist),
                    Cell::text(extension.prefix.as_ref()),
                    selection.map_or(Cell::Null, |selection| Cell::Text(selection.mode.value())),
                ],
            )?;
            for (at, member) in selection.iter().flat_map(|selection| &selection.members).enumerate() {
                let cascade = member.cascade.map(CascadeSelection::value);
                self.put(
                    &schema::CODE_SELECTION_MEMBER,
                    &[
                        Cell::Text(urn),
                        position,
                        small(urn, "member of a selection", at)?,
                        Cell::Text(&member.value),
                        cascade.map_or(Cell::Null, Cell::Text),
                    ],
                )?;
            }
        }
        Ok(())
    }

    fn concepts(&mut self, urn: &str, scheme: &'a ConceptScheme) -> Result<(), MetadataError> {
        let items: Vec<_> = scheme.concepts.iter().map(|c| (c.id.as_str(), c.parent_id.as_deref())).collect();
        let lineages = ancestors(urn, &items, |id| item_urn(urn, "conceptscheme", "Concept", id))?;
        for (at, (concept, lineage)) in scheme.concepts.iter().zip(&lineages).enumerate() {
            let item = item_urn(urn, "conceptscheme", "Concept", &concept.id);
            let represented = Represented::of(concept.core_representation.as_ref());
            let (format, iso) = (concept.enumeration_format.as_ref(), concept.iso_concept_reference.as_ref());
            let mut row = vec![
                Cell::Text(&item),
                Cell::Text(urn),
                Cell::Text(&concept.id),
                Cell::text(concept.parent_id.as_ref()),
                Cell::Int(place(urn, at)?),
                Cell::Languages(&concept.name),
                Cell::Languages(&concept.description),
                small(urn, "depth", lineage.len())?,
                Cell::Texts(lineage),
                Cell::text(concept.uri.as_ref()),
                represented.kind,
                represented.enumeration,
            ];
            row.extend(facet_cells(urn, represented.facet)?);
            row.push(sentinel_cell(represented.facet));
            row.extend(facet_cells(urn, format)?);
            row.extend([
                Cell::text(iso.map(|iso| &iso.concept_agency)),
                Cell::text(iso.map(|iso| &iso.concept_scheme_id)),
                Cell::text(iso.map(|iso| &iso.concept_id)),
                int(urn, "min_occurs", Some(concept.min_occurs))?,
                int(urn, "max_occurs", concept.max_occurs)?,
                sentinel_cell(format),
            ]);
            self.put(&schema::CONCEPT, &row)?;
            self.annotations(&item, urn, &concept.annotations)?;
            self.links(&item, urn, &concept.links)?;
        }
        Ok(())
    }

    /// Writes what waited and appends every row to its table.
    pub(super) fn finish(mut self) -> Result<(), MetadataError> {
        let annotations = std::mem::take(&mut self.annotations);
        let ids = self.draw_ids("annotation_id_seq", annotations.len())?;
        for (noted, id) in annotations.iter().zip(ids) {
            self.noted(noted, id)?;
        }
        let contacts = std::mem::take(&mut self.contacts);
        let ids = self.draw_ids("organisation_contact_id_seq", contacts.len())?;
        for ((owner, ordinal, contact), id) in contacts.iter().zip(ids) {
            self.put(
                &schema::ORGANISATION_CONTACT,
                &[
                    Cell::Big(id),
                    Cell::Text(owner),
                    Cell::Int(*ordinal),
                    Cell::Languages(&contact.name),
                    Cell::Languages(&contact.department),
                    Cell::Languages(&contact.role),
                    Cell::Texts(&contact.phones),
                    Cell::Texts(&contact.faxes),
                    Cell::Texts(&contact.x400s),
                    Cell::Texts(&contact.uris),
                    Cell::Texts(&contact.emails),
                    Cell::text(contact.id.as_ref()),
                ],
            )?;
        }
        self.tables.values_mut().try_for_each(|rows| rows.flush(&self.target))
    }

    fn noted(&mut self, noted: &Noted<'_>, id: i64) -> Result<(), MetadataError> {
        let annotation = noted.annotation;
        self.put(
            &schema::ANNOTATION,
            &[
                Cell::Big(id),
                Cell::Text(&noted.owner),
                Cell::Text(&noted.artefact),
                Cell::Int(noted.ordinal),
                Cell::text(annotation.id.as_ref()),
                Cell::text(annotation.title.as_ref()),
                Cell::text(annotation.r#type.as_ref()),
                Cell::text(annotation.value.as_ref()),
            ],
        )?;
        for (language, text) in &annotation.text {
            self.put(&schema::ANNOTATION_TEXT, &[Cell::Big(id), Cell::Text(language), Cell::Text(text)])?;
        }
        for (at, url) in annotation.urls.iter().enumerate() {
            self.put(
                &schema::ANNOTATION_URL,
                &[
                    Cell::Big(id),
                    Cell::Int(place(&noted.artefact, at)?),
                    Cell::Text(&url.url),
                    Cell::text(url.lang.as_ref()),
                    Cell::text(url.urn.as_ref()),
                    Cell::text(url.r#type.as_ref()),
                ],
            )?;
        }
        Ok(())
    }

    /// The next `count` ids of a sequence, so that it goes on behind them.
    fn draw_ids(&self, sequence: &str, count: usize) -> Result<Vec<i64>, MetadataError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let name = format!("{}.{sequence}", self.target.qualified()).replace('\'', "''");
        let failed = || MetadataError::duckdb(format!("draw ids from {sequence}"));
        let sql = format!("SELECT nextval('{name}') FROM range({count})");
        let mut statement = self.target.conn.prepare(&sql).map_err(failed())?;
        let ids = statement.query_map([], |row| row.get(0)).map_err(failed())?;
        ids.collect::<Result<_, _>>().map_err(failed())
    }
}

/// A representation in its columns.
struct Represented<'a> {
    kind: Cell<'a>,
    enumeration: Cell<'a>,
    facet: Option<&'a Facet>,
}

impl<'a> Represented<'a> {
    fn of(representation: Option<&'a Representation>) -> Self {
        match representation {
            None => Self { kind: Cell::Null, enumeration: Cell::Null, facet: None },
            Some(Representation::Enumerated(urn)) => {
                Self { kind: Cell::Text(ENUMERATED), enumeration: Cell::Text(urn), facet: None }
            }
            Some(Representation::Text(facet)) => Self::facet(facet),
        }
    }

    fn facet(facet: &'a Facet) -> Self {
        Self { kind: Cell::Text(TEXT), enumeration: Cell::Null, facet: Some(facet) }
    }
}

/// The columns of a format, all of them null without one. `is_multilingual` is never null with one.
fn facet_cells<'a>(urn: &str, facet: Option<&'a Facet>) -> Result<[Cell<'a>; 15], MetadataError> {
    let Some(facet) = facet else { return Ok([Cell::Null; 15]) };
    let decimals = match facet.decimals {
        None => Cell::Null,
        Some(found) => Cell::Small(i16::try_from(found).map_err(|_| out_of_range(urn, "decimals", found, SMALL))?),
    };
    Ok([
        Cell::text(facet.data_type.as_ref()),
        int(urn, "min_length", facet.min_length)?,
        int(urn, "max_length", facet.max_length)?,
        Cell::double(facet.min_value),
        Cell::double(facet.max_value),
        decimals,
        Cell::text(facet.pattern.as_ref()),
        Cell::bool(facet.is_sequence),
        Cell::double(facet.start_value),
        Cell::double(facet.end_value),
        Cell::Bool(facet.is_multilingual),
        Cell::double(facet.interval),
        Cell::text(facet.time_interval.as_ref()),
        Cell::text(facet.start_time.as_ref()),
        Cell::text(facet.end_time.as_ref()),
    ])
}

fn sentinel_cell(facet: Option<&Facet>) -> Cell<'_> {
    let sentinels: &[SentinelValue] = facet.map_or(&[], |facet| &facet.sentinel_values);
    if sentinels.is_empty() { Cell::Null } else { Cell::Sentinels(sentinels) }
}

const SMALL: &str = "-32768 to 32767";

fn out_of_range(urn: &str, field: &'static str, found: i64, range: &'static str) -> MetadataError {
    MetadataError::OutOfRange { urn: urn.to_owned(), field, found, range }
}

fn int(urn: &str, field: &'static str, value: Option<i64>) -> Result<Cell<'static>, MetadataError> {
    match value {
        None => Ok(Cell::Null),
        Some(found) => match i32::try_from(found) {
            Ok(value) => Ok(Cell::Int(value)),
            Err(_) => Err(out_of_range(urn, field, found, "-2147483648 to 2147483647")),
        },
    }
}

fn small(urn: &str, field: &'static str, value: usize) -> Result<Cell<'static>, MetadataError> {
    let found = i64::try_from(value).unwrap_or(i64::MAX);
    i16::try_from(value).map(Cell::Small).map_err(|_| out_of_range(urn, field, found, SMALL))
}

/// The place of an element in its list, from 0.
fn place(urn: &str, at: usize) -> Result<i32, MetadataError> {
    let found = i64::try_from(at).unwrap_or(i64::MAX);
    i32::try_from(at).map_err(|_| out_of_range(urn, "position", found, "0 to 2147483647"))
}

fn refuse_double<'s>(seen: &mut HashSet<&'s str>, id: &'s str, urn: &str) -> Result<(), MetadataError> {
    if seen.insert(id) { Ok(()) } else { Err(MetadataError::Duplicate { urn: urn.to_owned() }) }
}
