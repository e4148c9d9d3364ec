//! Item schemes and their items.

use catalog_rules::sdmx::model::CascadeSelection;
use catalog_rules::sdmx::model::{
    Agency, AgencyScheme, Artefact, Categorisation, Category, CategoryScheme, Code, CodeSelection, Codelist,
    CodelistExtension, Concept, ConceptScheme, Contact, DataConsumer, DataConsumerScheme, DataProvider,
    DataProviderScheme, GeoFeatureSetCode, GeoGridCode, GeoGridCodelist, GeographicCodelist, InclusionMode,
    IsoConceptReference, Maintained, MemberValue, MetadataProvider, MetadataProviderScheme, OrganisationUnit,
    OrganisationUnitScheme, ValueItem, ValueList,
};

use super::super::context::Context;
use super::super::node::{Node, items};
use super::common::{Defaults, Identified, annotations, first_local, identified, languages, reference, values};

fn names(
    context: &mut Context,
    node: &mut Node,
) -> (catalog_rules::sdmx::model::InternationalString, catalog_rules::sdmx::model::InternationalString) {
    let name = languages(context, node, "Name|names", "name");
    (name, languages(context, node, "Description|descriptions", "description"))
}

fn is_partial(context: &mut Context, node: &mut Node) -> bool {
    context.flag(node, "isPartial").unwrap_or_default()
}

fn parent(context: &mut Context, node: &mut Node) -> Option<String> {
    first_local(context, node, "Parent|parent")
}

pub(super) fn code(context: &mut Context, mut node: Node) -> Code {
    let Identified { id, annotations, uri, links } = identified(context, &mut node);
    let (name, description) = names(context, &mut node);
    let code = Code { id, name, description, parent_id: parent(context, &mut node), annotations, uri, links };
    context.done(node);
    code
}

pub(super) fn geo_feature_set_code(context: &mut Context, mut node: Node) -> GeoFeatureSetCode {
    let value = context.text(&mut node, "value").unwrap_or_default();
    let Code { id, name, description, parent_id, annotations, uri, links } = code(context, node);
    GeoFeatureSetCode { id, name, description, parent_id, annotations, uri, links, value }
}

pub(super) fn geo_grid_code(context: &mut Context, mut node: Node) -> GeoGridCode {
    let geo_cell = context.text(&mut node, "GeoCell|geoCell").unwrap_or_default();
    let Code { id, name, description, parent_id, annotations, uri, links } = code(context, node);
    GeoGridCode { id, name, description, parent_id, annotations, uri, links, geo_cell }
}

pub(super) fn value_item(context: &mut Context, mut node: Node) -> ValueItem {
    let (name, description) = names(context, &mut node);
    // The id of a value may be any text, white space at its ends included.
    let item = ValueItem {
        id: context.text(&mut node, "id").unwrap_or_default(),
        name,
        description,
        annotations: annotations(context, &mut node),
    };
    // A value has a URN in no version of the model.
    context.done(node);
    item
}

pub(super) fn codelist(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    Artefact::Codelist(Codelist {
        common,
        codes: items!(node, Code),
        extensions: extensions(context, node),
        is_partial: is_partial(context, node),
    })
}

pub(super) fn geographic_codelist(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    let _ = node.attribute("geoType");
    Artefact::GeographicCodelist(GeographicCodelist {
        common,
        codes: items!(node, GeoFeatureSetCode),
        extensions: extensions(context, node),
        is_partial: is_partial(context, node),
    })
}

pub(super) fn geo_grid_codelist(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    let _ = node.attribute("geoType");
    Artefact::GeoGridCodelist(GeoGridCodelist {
        common,
        codes: items!(node, GeoGridCode),
        extensions: extensions(context, node),
        is_partial: is_partial(context, node),
        grid_definition: context.text(node, "GridDefinition|gridDefinition").unwrap_or_default(),
    })
}

pub(super) fn value_list(common: Maintained, node: &mut Node) -> Artefact {
    Artefact::ValueList(ValueList { common, items: items!(node, ValueItem) })
}

fn extensions(context: &mut Context, node: &mut Node) -> Vec<CodelistExtension> {
    let nodes = node.children("CodelistExtension|codelistExtensions");
    nodes
        .into_iter()
        .map(|mut node| {
            let selection = [
                ("InclusiveCodeSelection|inclusiveCodeSelection", InclusionMode::Include),
                ("ExclusiveCodeSelection|exclusiveCodeSelection", InclusionMode::Exclude),
            ]
            .into_iter()
            .find_map(|(names, mode)| node.child(names).map(|node| selection(context, node, mode)));
            let extension = CodelistExtension {
                codelist: reference(context, &mut node, "Codelist|codelist", "Codelist").unwrap_or_default(),
                prefix: context.text(&mut node, "prefix"),
                selection,
            };
            context.done(node);
            extension
        })
        .collect()
}

fn selection(context: &mut Context, mut node: Node, mode: InclusionMode) -> CodeSelection {
    let nodes = node.children("MemberValue|memberValues|wildcardedMemberValues");
    let members = nodes
        .into_iter()
        .map(|mut node| {
            let cascade = context.member(&mut node, "cascadeValues", "true, false or excluderoot", cascade);
            // In JSON a member is a text, or an object with one.
            let value = node.attribute("value").unwrap_or_else(|| std::mem::take(&mut node.text));
            context.done(node);
            MemberValue { value, cascade }
        })
        .collect();
    context.done(node);
    CodeSelection { mode, members }
}

pub(super) fn cascade(text: &str) -> Option<CascadeSelection> {
    match text {
        "1" => Some(CascadeSelection::IncludeDescendants),
        "0" => Some(CascadeSelection::SelfOnly),
        text => CascadeSelection::from_value(text),
    }
}

pub(super) fn concept(context: &mut Context, mut node: Node) -> Concept {
    let Identified { id, annotations, uri, links } = identified(context, &mut node);
    let (name, description) = names(context, &mut node);
    let defaults = Defaults::multilingual(context);
    let core = values(context, &mut node, "CoreRepresentation|coreRepresentation", "Codelist", defaults);
    let iso = node.child("ISOConceptReference|isoConceptReference").map(|mut node| {
        let iso = IsoConceptReference {
            concept_agency: context.text(&mut node, "ConceptAgency|conceptAgency").unwrap_or_default(),
            concept_scheme_id: context.text(&mut node, "ConceptSchemeID|conceptSchemeID").unwrap_or_default(),
            concept_id: context.text(&mut node, "ConceptID|conceptID").unwrap_or_default(),
        };
        context.done(node);
        iso
    });
    let concept = Concept {
        min_occurs: core.min(),
        max_occurs: core.max(),
        core_representation: core.representation,
        enumeration_format: core.enumeration_format,
        parent_id: parent(context, &mut node),
        iso_concept_reference: iso,
        id,
        name,
        description,
        annotations,
        uri,
        links,
    };
    context.done(node);
    concept
}

pub(super) fn concept_scheme(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    let scheme = ConceptScheme { common, concepts: items!(node, Concept), is_partial: is_partial(context, node) };
    Artefact::ConceptScheme(scheme)
}

pub(super) fn category(context: &mut Context, mut node: Node) -> Category {
    let Identified { id, annotations, uri, links } = identified(context, &mut node);
    let (name, description) = names(context, &mut node);
    let category = Category { id, name, description, categories: items!(node, Category), annotations, uri, links };
    context.done(node);
    category
}

pub(super) fn category_scheme(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    let scheme = CategoryScheme { common, categories: items!(node, Category), is_partial: is_partial(context, node) };
    Artefact::CategoryScheme(scheme)
}

pub(super) fn categorisation(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    Artefact::Categorisation(Categorisation {
        common,
        source: reference(context, node, "Source|source", ""),
        target: reference(context, node, "Target|target", "Category"),
    })
}

fn contacts(context: &mut Context, node: &mut Node) -> Vec<Contact> {
    let nodes = node.children("Contact|contacts");
    nodes
        .into_iter()
        .map(|mut node| {
            let contact = Contact {
                name: languages(context, &mut node, "Name|names", "name"),
                department: languages(context, &mut node, "Department|departments", "department"),
                role: languages(context, &mut node, "Role|roles", "role"),
                phones: context.texts(&mut node, "Telephone|telephones|telephone"),
                faxes: context.texts(&mut node, "Fax|faxes|fax"),
                x400s: context.texts(&mut node, "X400|x400s|x400"),
                uris: context.texts(&mut node, "URI|uris|uri"),
                emails: context.texts(&mut node, "Email|emails|email"),
                id: context.text(&mut node, "id"),
            };
            context.done(node);
            contact
        })
        .collect()
}

macro_rules! organisation {
    ($function:ident $class:ident, $scheme_function:ident $scheme:ident $field:ident) => {
        pub(super) fn $function(context: &mut Context, mut node: Node) -> $class {
            let Identified { id, annotations, uri, links } = identified(context, &mut node);
            let (name, description) = names(context, &mut node);
            let contacts = contacts(context, &mut node);
            context.done(node);
            $class { id, name, description, contacts, annotations, uri, links }
        }

        pub(super) fn $scheme_function(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
            let scheme = $scheme { common, $field: items!(node, $class), is_partial: is_partial(context, node) };
            Artefact::$scheme(scheme)
        }
    };
}

organisation!(agency Agency, agency_scheme AgencyScheme agencies);
organisation!(data_provider DataProvider, data_provider_scheme DataProviderScheme providers);
organisation!(metadata_provider MetadataProvider, metadata_provider_scheme MetadataProviderScheme providers);
organisation!(data_consumer DataConsumer, data_consumer_scheme DataConsumerScheme consumers);

pub(super) fn organisation_unit(context: &mut Context, mut node: Node) -> OrganisationUnit {
    let Identified { id, annotations, uri, links } = identified(context, &mut node);
    let (name, description) = names(context, &mut node);
    let contacts = contacts(context, &mut node);
    let parent_id = parent(context, &mut node);
    context.done(node);
    OrganisationUnit { id, name, description, contacts, annotations, parent_id, uri, links }
}

pub(super) fn organisation_unit_scheme(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    Artefact::OrganisationUnitScheme(OrganisationUnitScheme {
        common,
        organisation_units: items!(node, OrganisationUnit),
        is_partial: is_partial(context, node),
    })
}
