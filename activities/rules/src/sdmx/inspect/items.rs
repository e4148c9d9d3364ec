//! The items of an artefact, one view for every class.

use crate::sdmx::model::{Artefact, Category, HierarchicalCode, InternationalString, MetadataAttribute};

/// Which ids are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// Letters, digits and `@ $ _ -`, as codes and most artefacts have.
    Id,
    /// As [`Rule::Id`], and beginning with a letter, as components, concepts and agencies have.
    NcName,
    /// Any text, as values have.
    Any,
}

impl Rule {
    pub(super) fn allows(self, id: &str) -> bool {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        match self {
            Self::Id => !id.is_empty() && id.bytes().all(|byte| inner(byte) || matches!(byte, b'@' | b'$')),
            Self::NcName => id.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic()) && id.bytes().all(inner),
            Self::Any => !id.is_empty(),
        }
    }

    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Id => "letters, digits, @, $, _ and -",
            Self::NcName => "a letter, then letters, digits, _ and -",
            Self::Any => "a text that is not empty",
        }
    }
}

/// An item. Without a description for an item that has no names.
pub(super) struct Item<'a> {
    pub id: &'a str,
    pub parent: Option<&'a str>,
    pub name: Option<&'a InternationalString>,
    pub description: Option<&'a InternationalString>,
    pub nested: Vec<List<'a>>,
}

/// A list of items whose ids must differ.
pub(super) struct List<'a> {
    pub place: String,
    pub rule: Rule,
    pub items: Vec<Item<'a>>,
}

macro_rules! named {
    ($items:expr) => {
        $items.iter().map(|item| Item {
            id: &item.id,
            parent: None,
            name: Some(&item.name),
            description: Some(&item.description),
            nested: Vec::new(),
        })
    };
}

macro_rules! with_parent {
    ($items:expr) => {
        $items.iter().map(|item| Item {
            id: &item.id,
            parent: item.parent_id.as_deref(),
            name: Some(&item.name),
            description: Some(&item.description),
            nested: Vec::new(),
        })
    };
}

fn bare(id: &str) -> Item<'_> {
    Item { id, parent: None, name: None, description: None, nested: Vec::new() }
}

fn list<'a>(place: &str, rule: Rule, items: impl Iterator<Item = Item<'a>>) -> Vec<List<'a>> {
    vec![List { place: place.to_owned(), rule, items: items.collect() }]
}

/// The lists of items of an artefact.
pub(super) fn items(artefact: &Artefact) -> Vec<List<'_>> {
    match artefact {
        Artefact::AgencyScheme(a) => list("agencies", Rule::NcName, named!(a.agencies)),
        Artefact::DataProviderScheme(a) => list("providers", Rule::Id, named!(a.providers)),
        Artefact::MetadataProviderScheme(a) => list("providers", Rule::Id, named!(a.providers)),
        Artefact::DataConsumerScheme(a) => list("consumers", Rule::Id, named!(a.consumers)),
        Artefact::OrganisationUnitScheme(a) => list("organisation_units", Rule::Id, with_parent!(a.organisation_units)),
        Artefact::Codelist(a) => list("codes", Rule::Id, with_parent!(a.codes)),
        Artefact::GeographicCodelist(a) => list("codes", Rule::Id, with_parent!(a.codes)),
        Artefact::GeoGridCodelist(a) => list("codes", Rule::Id, with_parent!(a.codes)),
        // A value needs no name.
        Artefact::ValueList(a) => list(
            "items",
            Rule::Any,
            a.items.iter().map(|item| Item { description: Some(&item.description), ..bare(&item.id) }),
        ),
        Artefact::ConceptScheme(a) => list("concepts", Rule::NcName, with_parent!(a.concepts)),
        Artefact::CategoryScheme(a) => vec![categories(&a.categories)],
        Artefact::Hierarchy(a) => {
            let mut lists = list("levels", Rule::Id, named!(a.levels));
            lists.push(nodes(&a.tree));
            lists
        }
        Artefact::DataStructure(a) => {
            let ids = a.dimensions.iter().map(|one| &one.id);
            let ids = ids.chain(a.time_dimension.iter().map(|one| &one.id));
            let ids = ids.chain(a.measure_dimension.iter().map(|one| &one.id));
            let ids = ids.chain(a.attributes.iter().map(|one| &one.id)).chain(a.measures.iter().map(|one| &one.id));
            let mut lists = list("components", Rule::NcName, ids.map(|id| bare(id)));
            lists.extend(list("groups", Rule::Id, a.groups.iter().flatten().map(|one| bare(&one.id))));
            lists
        }
        Artefact::MetadataStructure(a) => vec![metadata_attributes(&a.attributes)],
        Artefact::AttachmentConstraint(_)
        | Artefact::Categorisation(_)
        | Artefact::CategorySchemeMap(_)
        | Artefact::ConceptSchemeMap(_)
        | Artefact::DataConstraint(_)
        | Artefact::Dataflow(_)
        | Artefact::HierarchicalCodelist(_)
        | Artefact::HierarchyAssociation(_)
        | Artefact::MetadataProvisionAgreement(_)
        | Artefact::MetadataSet(_)
        | Artefact::Metadataflow(_)
        | Artefact::OrganisationSchemeMap(_)
        | Artefact::ProvisionAgreement(_)
        | Artefact::RepresentationMap(_)
        | Artefact::StructureMap(_)
        | Artefact::StructureSet(_) => Vec::new(),
    }
}

fn categories(categories: &[Category]) -> List<'_> {
    let items = categories.iter().map(|item| Item {
        id: &item.id,
        parent: None,
        name: Some(&item.name),
        description: Some(&item.description),
        nested: if item.categories.is_empty() { Vec::new() } else { vec![self::categories(&item.categories)] },
    });
    List { place: "categories".to_owned(), rule: Rule::Id, items: items.collect() }
}

fn nodes(nodes: &[HierarchicalCode]) -> List<'_> {
    let items = nodes.iter().map(|node| Item {
        nested: if node.children.is_empty() { Vec::new() } else { vec![self::nodes(&node.children)] },
        ..bare(&node.id)
    });
    List { place: "tree".to_owned(), rule: Rule::Id, items: items.collect() }
}

fn metadata_attributes(attributes: &[MetadataAttribute]) -> List<'_> {
    let items = attributes.iter().map(|attribute| Item {
        nested: match attribute.children.as_slice() {
            [] => Vec::new(),
            children => vec![metadata_attributes(children)],
        },
        ..bare(&attribute.id)
    });
    List { place: "attributes".to_owned(), rule: Rule::NcName, items: items.collect() }
}
