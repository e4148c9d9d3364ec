//! From the trees of a message to the model. What is the same for every class is in [`common`]; the classes are in the
//! other modules. Names are given for XML and JSON at once, separated by `|`.

mod common;
mod constraint;
mod hierarchy;
mod items;
mod mapping;
mod metadata;
mod structure;

use catalog_rules::sdmx::finding::FindingCode;
use catalog_rules::sdmx::model::Artefact;

use super::context::Context;
use super::node::{Fold, Folded, Node, is_one_of};
pub(super) use structure::time_format;

/// The classes of artefacts by their element in XML and their key in JSON, with package and class of their URN, and
/// whether the model has them. SDMX 2.1's content constraint is a data constraint.
const CLASSES: &[(&str, &str, &str, bool)] = &[
    ("AgencyScheme|agencySchemes", "base", "AgencyScheme", true),
    ("AttachmentConstraint", "registry", "AttachmentConstraint", true),
    ("Categorisation|categorisations", "categoryscheme", "Categorisation", true),
    ("CategoryScheme|categorySchemes", "categoryscheme", "CategoryScheme", true),
    ("CategorySchemeMap|categorySchemeMaps", "structuremapping", "CategorySchemeMap", true),
    ("Codelist|codelists", "codelist", "Codelist", true),
    ("ConceptScheme|conceptSchemes", "conceptscheme", "ConceptScheme", true),
    ("ConceptSchemeMap|conceptSchemeMaps", "structuremapping", "ConceptSchemeMap", true),
    ("DataConstraint|ContentConstraint|dataConstraints|contentConstraints", "registry", "DataConstraint", true),
    ("DataConsumerScheme|dataConsumerSchemes", "base", "DataConsumerScheme", true),
    ("DataProviderScheme|dataProviderSchemes", "base", "DataProviderScheme", true),
    ("DataStructure|dataStructures", "datastructure", "DataStructure", true),
    ("Dataflow|dataflows", "datastructure", "Dataflow", true),
    ("GeoGridCodelist|geoGridCodelists", "codelist", "Codelist", true),
    ("GeographicCodelist|geographicCodelists", "codelist", "Codelist", true),
    ("HierarchicalCodelist", "codelist", "HierarchicalCodelist", true),
    ("Hierarchy|hierarchies", "codelist", "Hierarchy", true),
    ("HierarchyAssociation|hierarchyAssociations", "codelist", "HierarchyAssociation", true),
    ("MetadataProviderScheme|metadataProviderSchemes", "base", "MetadataProviderScheme", true),
    ("MetadataProvisionAgreement|metadataProvisionAgreements", "registry", "MetadataProvisionAgreement", true),
    ("MetadataSet|metadataSets", "metadatastructure", "MetadataSet", true),
    ("MetadataStructure|metadataStructures", "metadatastructure", "MetadataStructure", true),
    ("Metadataflow|metadataflows", "metadatastructure", "Metadataflow", true),
    ("OrganisationSchemeMap|organisationSchemeMaps", "structuremapping", "OrganisationSchemeMap", true),
    ("OrganisationUnitScheme|organisationUnitSchemes", "base", "OrganisationUnitScheme", true),
    ("ProvisionAgreement|provisionAgreements", "registry", "ProvisionAgreement", true),
    ("RepresentationMap|representationMaps", "structuremapping", "RepresentationMap", true),
    ("StructureMap|structureMaps", "structuremapping", "StructureMap", true),
    ("StructureSet", "structuremapping", "StructureSet", true),
    ("ValueList|valueLists|valuelists", "codelist", "ValueList", true),
    ("CustomTypeScheme|customTypeSchemes", "transformation", "CustomTypeScheme", false),
    ("MetadataConstraint|metadataConstraints", "registry", "MetadataConstraint", false),
    ("NamePersonalisationScheme|namePersonalisationSchemes", "transformation", "NamePersonalisationScheme", false),
    ("Process|processes", "process", "Process", false),
    ("ReportingTaxonomy|reportingTaxonomies", "categoryscheme", "ReportingTaxonomy", false),
    ("ReportingTaxonomyMap|reportingTaxonomyMaps", "structuremapping", "ReportingTaxonomyMap", false),
    ("RulesetScheme|rulesetSchemes", "transformation", "RulesetScheme", false),
    ("TransformationScheme|transformationSchemes", "transformation", "TransformationScheme", false),
    ("UserDefinedOperatorScheme|userDefinedOperatorSchemes", "transformation", "UserDefinedOperatorScheme", false),
    ("VtlMappingScheme|vtlMappingSchemes", "transformation", "VtlMappingScheme", false),
    ("AvailabilityConstraint|availabilityConstraints", "registry", "AvailabilityConstraint", false),
];

/// What is known of an element of this name: package and class of its URN, and whether the model has the class.
pub(super) fn class(name: &str) -> Option<(&'static str, &'static str, bool)> {
    let found = CLASSES.iter().find(|(names, ..)| is_one_of(name, names));
    found.map(|(_, package, class, is_held)| (*package, *class, *is_held))
}

/// The URN of an artefact from its attributes, as far as they are there. `default_agency` and `default_version` stand
/// in where an artefact of SDMX 2.1 is within another.
pub(super) fn urn(node: &Node) -> Option<String> {
    let (package, class, _) = class(&node.name)?;
    let (agency, id) = (node.peek("agencyID")?.trim(), node.peek("id")?.trim());
    let version = node.peek("version").map_or(common::default_version(&node.name), str::trim);
    Some(format!("urn:sdmx:org.sdmx.infomodel.{package}.{class}={agency}:{id}({version})"))
}

/// Makes an item of the model out of its tree.
pub(super) fn fold(context: &mut Context, fold: Fold, node: Node) -> Folded {
    match fold {
        Fold::Agency => Folded::Agency(Box::new(items::agency(context, node))),
        Fold::Category => Folded::Category(Box::new(items::category(context, node))),
        Fold::Code => Folded::Code(Box::new(items::code(context, node))),
        Fold::Concept => Folded::Concept(Box::new(items::concept(context, node))),
        Fold::DataConsumer => Folded::DataConsumer(Box::new(items::data_consumer(context, node))),
        Fold::DataKey => Folded::DataKey(Box::new(constraint::data_key(context, node))),
        Fold::DataProvider => Folded::DataProvider(Box::new(items::data_provider(context, node))),
        Fold::GeoFeatureSetCode => Folded::GeoFeatureSetCode(Box::new(items::geo_feature_set_code(context, node))),
        Fold::GeoGridCode => Folded::GeoGridCode(Box::new(items::geo_grid_code(context, node))),
        Fold::HierarchicalCode => Folded::HierarchicalCode(Box::new(hierarchy::node(context, node))),
        Fold::MetadataProvider => Folded::MetadataProvider(Box::new(items::metadata_provider(context, node))),
        Fold::OrganisationUnit => Folded::OrganisationUnit(Box::new(items::organisation_unit(context, node))),
        Fold::RepresentationMapping => {
            Folded::RepresentationMapping(Box::new(mapping::representation_mapping(context, node)))
        }
        Fold::ValueItem => Folded::ValueItem(Box::new(items::value_item(context, node))),
    }
}

/// Makes the artefacts of an element of a class that the model holds. It is more than one for SDMX 2.1's hierarchical
/// codelists and structure sets; none, with a finding, for an artefact that cannot be named.
pub(super) fn artefacts(context: &mut Context, node: Node) -> Vec<Artefact> {
    let mut node = node;
    if ["id", "agencyID"].iter().any(|name| node.peek(name).is_none_or(|text| text.trim().is_empty())) {
        let message = format!("a {} without id or agencyID has no URN, and is left out", node.name);
        context.find_at(&node, FindingCode::LeftOut, message);
        return Vec::new();
    }
    let mut made = Vec::new();
    let common = common::maintained(context, &mut node);
    let name = node.name.clone();
    match name.as_str() {
        "AgencyScheme" | "agencySchemes" => made.push(items::agency_scheme(context, common, &mut node)),
        "AttachmentConstraint" => made.push(constraint::attachment_constraint(context, common, &mut node)),
        "Categorisation" | "categorisations" => made.push(items::categorisation(context, common, &mut node)),
        "CategoryScheme" | "categorySchemes" => made.push(items::category_scheme(context, common, &mut node)),
        "CategorySchemeMap"
        | "categorySchemeMaps"
        | "ConceptSchemeMap"
        | "conceptSchemeMaps"
        | "OrganisationSchemeMap"
        | "organisationSchemeMaps" => {
            made.push(mapping::item_scheme_map(context, common, &mut node));
        }
        "Codelist" | "codelists" => made.push(items::codelist(context, common, &mut node)),
        "ConceptScheme" | "conceptSchemes" => made.push(items::concept_scheme(context, common, &mut node)),
        "DataConstraint" | "ContentConstraint" | "dataConstraints" | "contentConstraints" => {
            made.push(constraint::data_constraint(context, common, &mut node));
        }
        "DataConsumerScheme" | "dataConsumerSchemes" => {
            made.push(items::data_consumer_scheme(context, common, &mut node));
        }
        "DataProviderScheme" | "dataProviderSchemes" => {
            made.push(items::data_provider_scheme(context, common, &mut node));
        }
        "DataStructure" | "dataStructures" => made.push(structure::data_structure(context, common, &mut node)),
        "Dataflow" | "dataflows" => made.push(structure::dataflow(context, common, &mut node)),
        "GeoGridCodelist" | "geoGridCodelists" => made.push(items::geo_grid_codelist(context, common, &mut node)),
        "GeographicCodelist" | "geographicCodelists" => {
            made.push(items::geographic_codelist(context, common, &mut node));
        }
        "HierarchicalCodelist" => hierarchy::hierarchical_codelist(context, common, &mut node, &mut made),
        "Hierarchy" | "hierarchies" => made.push(hierarchy::hierarchy(context, common, &mut node)),
        "HierarchyAssociation" | "hierarchyAssociations" => {
            made.push(hierarchy::association(context, common, &mut node));
        }
        "MetadataProviderScheme" | "metadataProviderSchemes" => {
            made.push(items::metadata_provider_scheme(context, common, &mut node));
        }
        "MetadataProvisionAgreement" | "metadataProvisionAgreements" => {
            made.push(metadata::provision_agreement(context, common, &mut node));
        }
        "MetadataSet" | "metadataSets" => made.push(metadata::set(context, common, &mut node)),
        "MetadataStructure" | "metadataStructures" => made.push(metadata::structure(context, common, &mut node)),
        "Metadataflow" | "metadataflows" => made.push(metadata::flow(context, common, &mut node)),
        "OrganisationUnitScheme" | "organisationUnitSchemes" => {
            made.push(items::organisation_unit_scheme(context, common, &mut node));
        }
        "ProvisionAgreement" | "provisionAgreements" => {
            made.push(structure::provision_agreement(context, common, &mut node));
        }
        "RepresentationMap" | "representationMaps" => {
            made.push(mapping::representation_map(context, common, &mut node));
        }
        "StructureMap" | "structureMaps" => made.push(mapping::structure_map(context, common, &mut node)),
        "StructureSet" => mapping::structure_set(context, common, &mut node, &mut made),
        "ValueList" | "valueLists" | "valuelists" => made.push(items::value_list(common, &mut node)),
        other => {
            // The caller asks only for classes that the model holds.
            let message = format!("artefacts of the class {other} are not in the model, and it is left out");
            context.find_at(&node, FindingCode::UnsupportedClass, message);
            return Vec::new();
        }
    }
    // Of a class that is never partial, this says nothing.
    if node.peek("isPartial") == Some("false") {
        let _ = node.attribute("isPartial");
    }
    context.done(node);
    made
}
