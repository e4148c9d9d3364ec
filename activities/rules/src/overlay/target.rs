//! The artefacts and items that an entry can change (*edition* §5.2).

use crate::sdmx::model::{
    Annotation, Artefact, Category, HierarchicalCode, InternationalString, Maintained, MetadataAttribute,
};

/// What a selector compares.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    /// The names of its class: in the model first, then those that a URN may have.
    pub classes: &'static [&'static str],
    /// The package of its URN.
    pub package: &'static str,
    /// The item, by its id, or by its path when it is nested; `None` for the artefact itself.
    pub item: Option<&'a str>,
}

/// One artefact or item.
pub(super) struct Target<'a> {
    pub named: Named<'a>,
    pub annotations: &'a mut Vec<Annotation>,
    /// Its name and its description; `None` for a component, which has neither.
    pub texts: Option<Texts<'a>>,
}

pub(super) struct Texts<'a> {
    pub name: &'a mut InternationalString,
    pub description: &'a mut InternationalString,
}

/// Shows `visit` the artefact and then every item in it, in document order, until one is refused. A nested item comes
/// before those within it.
pub(super) fn each_target<E>(
    artefact: &mut Artefact,
    mut visit: impl FnMut(Target<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let package = artefact.package();
    let classes = classes(artefact);
    let Maintained { name, description, annotations, .. } = artefact.common_mut();
    let named = Named { classes, package, item: None };
    visit(Target { named, annotations, texts: Some(Texts { name, description }) })?;

    /// Items with a name: their fields are of the same names in every class.
    macro_rules! items {
        ($items:expr, $package:literal, $classes:expr) => {
            for item in $items.iter_mut() {
                let named = Named { classes: $classes, package: $package, item: Some(&item.id) };
                let texts = Some(Texts { name: &mut item.name, description: &mut item.description });
                visit(Target { named, annotations: &mut item.annotations, texts })?;
            }
        };
    }
    /// Components: they have no name.
    macro_rules! components {
        ($items:expr, $classes:expr) => {
            for item in $items.iter_mut() {
                let named = Named { classes: $classes, package: "datastructure", item: Some(&item.id) };
                visit(Target { named, annotations: &mut item.annotations, texts: None })?;
            }
        };
    }
    match artefact {
        Artefact::AgencyScheme(scheme) => items!(scheme.agencies, "base", &["Agency"]),
        Artefact::DataProviderScheme(scheme) => items!(scheme.providers, "base", &["DataProvider"]),
        Artefact::MetadataProviderScheme(scheme) => items!(scheme.providers, "base", &["MetadataProvider"]),
        Artefact::DataConsumerScheme(scheme) => items!(scheme.consumers, "base", &["DataConsumer"]),
        Artefact::OrganisationUnitScheme(scheme) => {
            items!(scheme.organisation_units, "base", &["OrganisationUnit"]);
        }
        Artefact::Codelist(list) => items!(list.codes, "codelist", &["Code"]),
        Artefact::GeographicCodelist(list) => items!(list.codes, "codelist", &["GeoFeatureSetCode", "Code"]),
        Artefact::GeoGridCodelist(list) => items!(list.codes, "codelist", &["GeoGridCode", "Code"]),
        Artefact::ValueList(list) => items!(list.items, "codelist", &["ValueItem"]),
        Artefact::ConceptScheme(scheme) => items!(scheme.concepts, "conceptscheme", &["Concept"]),
        Artefact::CategoryScheme(scheme) => each_category(&mut scheme.categories, None, &mut visit)?,
        Artefact::Hierarchy(hierarchy) => each_hierarchical_code(&mut hierarchy.tree, None, &mut visit)?,
        Artefact::MetadataStructure(structure) => {
            each_metadata_attribute(&mut structure.attributes, None, &mut visit)?;
        }
        Artefact::DataStructure(structure) => {
            components!(structure.dimensions, &["Dimension"]);
            components!(structure.time_dimension, &["TimeDimension"]);
            components!(structure.measure_dimension, &["MeasureDimension"]);
            components!(structure.attributes, &["Attribute", "DataAttribute"]);
            components!(structure.measures, &["Measure", "PrimaryMeasure"]);
            components!(structure.groups.as_deref_mut().unwrap_or_default(), &["Group", "GroupDimensionDescriptor"]);
        }
        // No item of these is reached. A structure map's date patterns, epochs and frequency formats have URNs, and so have
        // a hierarchy's levels above: they wait for the store, which keeps neither class yet.
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
        | Artefact::StructureSet(_) => {}
    }
    Ok(())
}

/// The path of an item within others.
fn path(within: Option<&str>, id: &str) -> String {
    within.map_or_else(|| id.to_owned(), |within| format!("{within}.{id}"))
}

fn each_category<E>(
    categories: &mut [Category],
    within: Option<&str>,
    visit: &mut impl FnMut(Target<'_>) -> Result<(), E>,
) -> Result<(), E> {
    categories.iter_mut().try_for_each(|item| {
        let path = path(within, &item.id);
        let named = Named { classes: &["Category"], package: "categoryscheme", item: Some(&path) };
        let texts = Some(Texts { name: &mut item.name, description: &mut item.description });
        visit(Target { named, annotations: &mut item.annotations, texts })?;
        each_category(&mut item.categories, Some(&path), visit)
    })
}

fn each_hierarchical_code<E>(
    codes: &mut [HierarchicalCode],
    within: Option<&str>,
    visit: &mut impl FnMut(Target<'_>) -> Result<(), E>,
) -> Result<(), E> {
    codes.iter_mut().try_for_each(|item| {
        let path = path(within, &item.id);
        let named = Named { classes: &["HierarchicalCode"], package: "codelist", item: Some(&path) };
        visit(Target { named, annotations: &mut item.annotations, texts: None })?;
        each_hierarchical_code(&mut item.children, Some(&path), visit)
    })
}

fn each_metadata_attribute<E>(
    attributes: &mut [MetadataAttribute],
    within: Option<&str>,
    visit: &mut impl FnMut(Target<'_>) -> Result<(), E>,
) -> Result<(), E> {
    attributes.iter_mut().try_for_each(|item| {
        let path = path(within, &item.id);
        let named = Named { classes: &["MetadataAttribute"], package: "metadatastructure", item: Some(&path) };
        visit(Target { named, annotations: &mut item.annotations, texts: None })?;
        each_metadata_attribute(&mut item.children, Some(&path), visit)
    })
}

/// The names by which a selector means an artefact: that of its class, and that of its URN where it is another.
fn classes(artefact: &Artefact) -> &'static [&'static str] {
    match artefact {
        Artefact::AgencyScheme(_) => &["AgencyScheme"],
        Artefact::AttachmentConstraint(_) => &["AttachmentConstraint"],
        Artefact::Categorisation(_) => &["Categorisation"],
        Artefact::CategoryScheme(_) => &["CategoryScheme"],
        Artefact::CategorySchemeMap(_) => &["CategorySchemeMap"],
        Artefact::Codelist(_) => &["Codelist"],
        Artefact::ConceptScheme(_) => &["ConceptScheme"],
        Artefact::ConceptSchemeMap(_) => &["ConceptSchemeMap"],
        Artefact::DataConstraint(_) => &["DataConstraint"],
        Artefact::DataConsumerScheme(_) => &["DataConsumerScheme"],
        Artefact::DataProviderScheme(_) => &["DataProviderScheme"],
        Artefact::DataStructure(_) => &["DataStructure"],
        Artefact::Dataflow(_) => &["Dataflow"],
        Artefact::GeoGridCodelist(_) => &["GeoGridCodelist", "Codelist"],
        Artefact::GeographicCodelist(_) => &["GeographicCodelist", "Codelist"],
        Artefact::HierarchicalCodelist(_) => &["HierarchicalCodelist"],
        Artefact::Hierarchy(_) => &["Hierarchy"],
        Artefact::HierarchyAssociation(_) => &["HierarchyAssociation"],
        Artefact::MetadataProviderScheme(_) => &["MetadataProviderScheme"],
        Artefact::MetadataProvisionAgreement(_) => &["MetadataProvisionAgreement"],
        Artefact::MetadataSet(_) => &["MetadataSet"],
        Artefact::MetadataStructure(_) => &["MetadataStructure"],
        Artefact::Metadataflow(_) => &["Metadataflow"],
        Artefact::OrganisationSchemeMap(_) => &["OrganisationSchemeMap"],
        Artefact::OrganisationUnitScheme(_) => &["OrganisationUnitScheme"],
        Artefact::ProvisionAgreement(_) => &["ProvisionAgreement"],
        Artefact::RepresentationMap(_) => &["RepresentationMap"],
        Artefact::StructureMap(_) => &["StructureMap"],
        Artefact::StructureSet(_) => &["StructureSet"],
        Artefact::ValueList(_) => &["ValueList"],
    }
}
