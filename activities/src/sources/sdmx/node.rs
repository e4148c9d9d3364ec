//! A piece of a message as a small tree, in one shape for XML and for JSON.
//!
//! An XML attribute and a scalar of a JSON object are attributes here; an XML element, and each element of a JSON array,
//! is a child under its name. Whoever makes something of a node takes out what it understands, so that what is left is
//! what nobody understood: [`super::context::Context::done`] reports it.

use catalog_rules::sdmx::model::{
    Agency, Category, Code, Concept, DataConsumer, DataKey, DataProvider, GeoFeatureSetCode, GeoGridCode,
    HierarchicalCode, MetadataProvider, OrganisationUnit, RepresentationMapping, ValueItem,
};

/// An element of XML, or a value of JSON.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// The name without its prefix; in JSON the key.
    pub name: String,
    /// The line of an XML element; 0 in JSON.
    pub line: u64,
    /// Where the node is in a JSON document, for artefacts and items.
    pub path: Option<String>,
    pub attributes: Vec<(String, String)>,
    pub children: Vec<Node>,
    pub text: String,
    /// The keys of those attributes that are no strings in JSON: numbers and flags.
    pub literals: Vec<&'static str>,
    /// The items among the children, already in the model.
    pub items: Vec<Folded>,
    /// How many bytes the tree holds, beside its items.
    pub held_bytes: usize,
}

/// What a node costs beside its texts.
const NODE_BYTES: usize = 160;

impl Node {
    pub fn new(name: &str, line: u64) -> Self {
        Self { name: name.to_owned(), line, held_bytes: NODE_BYTES + name.len(), ..Self::default() }
    }

    /// Takes the first attribute that has one of `names` (separated by `|`).
    pub fn attribute(&mut self, names: &str) -> Option<String> {
        let at = self.attributes.iter().position(|(name, _)| is_one_of(name, names))?;
        Some(self.attributes.remove(at).1)
    }

    /// The attribute `name`, which stays.
    pub fn peek(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Takes the first child that has one of `names`.
    pub fn child(&mut self, names: &str) -> Option<Self> {
        let at = self.children.iter().position(|child| is_one_of(&child.name, names))?;
        Some(self.children.remove(at))
    }

    /// Takes every child that has one of `names`, in document order.
    pub fn children(&mut self, names: &str) -> Vec<Self> {
        let all = std::mem::take(&mut self.children);
        let (taken, left) = all.into_iter().partition(|child| is_one_of(&child.name, names));
        self.children = left;
        taken
    }
}

pub(super) fn is_one_of(name: &str, names: &str) -> bool {
    names.split('|').any(|one| one == name)
}

/// An item of an artefact that was made as soon as its element ended, so that its tree could go.
#[derive(Debug)]
pub(super) enum Folded {
    Agency(Box<Agency>),
    Category(Box<Category>),
    Code(Box<Code>),
    Concept(Box<Concept>),
    DataConsumer(Box<DataConsumer>),
    DataKey(Box<DataKey>),
    DataProvider(Box<DataProvider>),
    GeoFeatureSetCode(Box<GeoFeatureSetCode>),
    GeoGridCode(Box<GeoGridCode>),
    HierarchicalCode(Box<HierarchicalCode>),
    MetadataProvider(Box<MetadataProvider>),
    OrganisationUnit(Box<OrganisationUnit>),
    RepresentationMapping(Box<RepresentationMapping>),
    ValueItem(Box<ValueItem>),
}

/// Takes the items of one kind out of a node.
macro_rules! items {
    ($node:expr, $kind:ident) => {{
        let mut taken = Vec::new();
        for item in std::mem::take(&mut $node.items) {
            match item {
                $crate::sources::sdmx::node::Folded::$kind(item) => taken.push(*item),
                other => $node.items.push(other),
            }
        }
        taken
    }};
}
pub(super) use items;

/// Which items become model as soon as they end: the kind, the parents and the names that they have in XML and JSON.
/// XML's `Code` is an item of a codelist and a reference of a hierarchical code, so that the parent counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    Agency,
    Category,
    Code,
    Concept,
    DataConsumer,
    DataKey,
    DataProvider,
    GeoFeatureSetCode,
    GeoGridCode,
    HierarchicalCode,
    MetadataProvider,
    OrganisationUnit,
    RepresentationMapping,
    ValueItem,
}

const FOLDS: &[(Fold, &str, &str)] = &[
    (Fold::Agency, "AgencyScheme|agencySchemes", "Agency|agencies"),
    (Fold::Category, "CategoryScheme|categorySchemes|Category|categories", "Category|categories"),
    (Fold::Code, "Codelist|codelists", "Code|codes"),
    (Fold::Concept, "ConceptScheme|conceptSchemes", "Concept|concepts"),
    (Fold::DataConsumer, "DataConsumerScheme|dataConsumerSchemes", "DataConsumer|dataConsumers"),
    (Fold::DataKey, "DataKeySet|dataKeySets", "Key|keys"),
    (Fold::DataProvider, "DataProviderScheme|dataProviderSchemes", "DataProvider|dataProviders"),
    (Fold::GeoFeatureSetCode, "GeographicCodelist|geographicCodelists", "GeoFeatureSetCode|geoFeatureSetCodes"),
    (Fold::GeoGridCode, "GeoGridCodelist|geoGridCodelists", "GeoGridCode|geoGridCodes"),
    (
        Fold::HierarchicalCode,
        "Hierarchy|hierarchies|HierarchicalCode|hierarchicalCodes",
        "HierarchicalCode|hierarchicalCodes",
    ),
    (Fold::MetadataProvider, "MetadataProviderScheme|metadataProviderSchemes", "MetadataProvider|metadataProviders"),
    (Fold::OrganisationUnit, "OrganisationUnitScheme|organisationUnitSchemes", "OrganisationUnit|organisationUnits"),
    (
        Fold::RepresentationMapping,
        "RepresentationMap|representationMaps",
        "RepresentationMapping|representationMappings",
    ),
    (Fold::ValueItem, "ValueList|valueLists", "ValueItem|valueItems"),
];

impl Fold {
    /// What the child `name` of `parent` becomes.
    pub fn of(parent: &str, name: &str) -> Option<Self> {
        let found = FOLDS.iter().find(|(_, parents, names)| is_one_of(name, names) && is_one_of(parent, parents));
        found.map(|(fold, ..)| *fold)
    }
}
