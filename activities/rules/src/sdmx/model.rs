//! The artefacts of a product: what [`crate::sdmx`] stores, compares and fingerprints.
//!
//! Each struct holds every field that the reference model takes at construction, so that its canonical text is whole
//! (*edition* §9). A reference is its URN and is never followed.

mod base;
mod codelist;
mod concept;
mod constraint;
mod hierarchy;
mod mapping;
mod metadata;
mod organisation;
mod structure;

pub(in crate::sdmx) use base::Maintainable;
pub use base::{
    Annotation, AnnotationUrl, Facet, InternationalString, Link, Maintained, Representation, SentinelValue, UrnText,
};
pub use codelist::{
    CascadeSelection, Code, CodeSelection, Codelist, CodelistExtension, GeoFeatureSetCode, GeoGridCode,
    GeoGridCodelist, GeographicCodelist, InclusionMode, MemberValue, ValueItem, ValueList,
};
pub use concept::{Categorisation, Category, CategoryScheme, Concept, ConceptScheme, IsoConceptReference};
pub use constraint::{
    AttachmentConstraint, ComponentValueSet, ConstraintAttachment, ConstraintType, CubeRegion, DataConstraint, DataKey,
    DataKeySet, DataSetReference, KeyValue, QueryableDataSource, ReferencePeriod, RegionValue, ReleaseCalendar,
    TimeBound, TimeRange,
};
pub use hierarchy::{HierarchicalCode, HierarchicalCodelist, Hierarchy, HierarchyAssociation, Level};
pub use mapping::{
    CategorySchemeMap, ComponentMap, ConceptSchemeMap, DatePatternMap, EpochMap, EpochPeriod, FixedValueMap,
    FrequencyFormatMapping, ItemMap, MapDataType, MappedValues, OrganisationSchemeMap, RepresentationMap,
    RepresentationMapping, ResolvePeriod, SourceValue, StructureMap, StructureSet, ToValueType,
};
pub use metadata::{
    MetadataAttribute, MetadataProvisionAgreement, MetadataSet, MetadataStructure, MetadataTarget, Metadataflow,
    ReportStructure, ReportedAttribute, ReportedValue, TargetObject,
};
pub use organisation::{
    Agency, AgencyScheme, Contact, DataConsumer, DataConsumerScheme, DataProvider, DataProviderScheme,
    MetadataProvider, MetadataProviderScheme, OrganisationUnit, OrganisationUnitScheme,
};
pub use structure::{
    AttachmentLevel, Attribute, DataStructure, Dataflow, DataflowBinding, Dimension, Group, Measure, MeasureDimension,
    MetadataAttributeUsage, ProvisionAgreement, TimeDimension, Usage,
};

use super::canonical::Spelt;
use super::decode::{Decoded, Fields};

/// Declares [`Artefact`] over the maintainable classes: the class, what holds it, and package and class of its URN.
macro_rules! artefacts {
    ($( $(#[$meta:meta])* $class:ident ($holder:ty) $package:literal $urn_class:literal ),+ $(,)?) => {
        /// A maintainable artefact of the SDMX information model.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Artefact { $( $(#[$meta])* $class($holder) ),+ }

        impl Artefact {
            /// The name of its class, as in the canonical text.
            #[must_use]
            pub fn class(&self) -> &'static str {
                match self { $( Self::$class(_) => stringify!($class) ),+ }
            }

            /// The name of its class as in its URN: a geographic codelist's is `Codelist`.
            #[must_use]
            pub fn urn_class(&self) -> &'static str {
                match self { $( Self::$class(_) => $urn_class ),+ }
            }

            /// The package of its class, as in its URN.
            #[must_use]
            pub fn package(&self) -> &'static str {
                match self { $( Self::$class(_) => $package ),+ }
            }

            /// What it has in common with every maintainable artefact.
            #[must_use]
            pub fn common(&self) -> &Maintained {
                match self { $( Self::$class(artefact) => &artefact.common ),+ }
            }

            /// As [`Self::common`], to change it.
            pub fn common_mut(&mut self) -> &mut Maintained {
                match self { $( Self::$class(artefact) => &mut artefact.common ),+ }
            }

            /// Whether its class has [`Maintained::legacy_is_final`].
            #[must_use]
            pub fn has_legacy_is_final(&self) -> bool {
                !self.lacks().contains(&"legacy_is_final")
            }

            /// Whether its class has [`Maintained::links`].
            #[must_use]
            pub fn has_links(&self) -> bool {
                !self.lacks().contains(&"links")
            }

            /// The fields of [`Maintained`] that its class does not have.
            pub(in crate::sdmx) fn lacks(&self) -> &'static [&'static str] {
                match self { $( Self::$class(_) => <$class as Maintainable>::LACKS ),+ }
            }

            /// The fields that only its class has, with their keys.
            pub(in crate::sdmx) fn own(&self) -> Vec<(&'static str, &dyn Spelt)> {
                match self { $( Self::$class(artefact) => artefact.own() ),+ }
            }

            /// Reads the fields of an artefact of `class`. `None` for a class that is not maintainable.
            pub(in crate::sdmx) fn read(class: &str, fields: &mut Fields) -> Option<Decoded<Self>> {
                Some(match class {
                    $( stringify!($class) =>
                        <$class as Maintainable>::read(fields).map(|artefact| Self::$class(artefact.into())), )+
                    _ => return None,
                })
            }
        }

        /// The names of the maintainable classes, as in the canonical text.
        pub const CLASSES: &[&str] = &[$( stringify!($class) ),+];

        /// Class of a URN and its package, for every maintainable class.
        pub(in crate::sdmx) const URN_CLASSES: &[(&str, &str)] = &[$( ($urn_class, $package) ),+];
    };
}

artefacts! {
    /// Agencies and their names.
    AgencyScheme(AgencyScheme) "base" "AgencyScheme",
    /// SDMX 2.1's constraint of where attributes attach.
    AttachmentConstraint(AttachmentConstraint) "registry" "AttachmentConstraint",
    /// The place of an artefact in a category.
    Categorisation(Categorisation) "categoryscheme" "Categorisation",
    /// Categories, nested.
    CategoryScheme(CategoryScheme) "categoryscheme" "CategoryScheme",
    /// A map between categories.
    CategorySchemeMap(CategorySchemeMap) "structuremapping" "CategorySchemeMap",
    /// Codes of one dimension or attribute.
    Codelist(Codelist) "codelist" "Codelist",
    /// Concepts that components take their meaning from.
    ConceptScheme(ConceptScheme) "conceptscheme" "ConceptScheme",
    /// A map between concepts.
    ConceptSchemeMap(ConceptSchemeMap) "structuremapping" "ConceptSchemeMap",
    /// Which keys and values data may or does have.
    DataConstraint(Box<DataConstraint>) "registry" "DataConstraint",
    /// Users of data.
    DataConsumerScheme(DataConsumerScheme) "base" "DataConsumerScheme",
    /// Providers of data.
    DataProviderScheme(DataProviderScheme) "base" "DataProviderScheme",
    /// Dimensions, attributes and measures of a data structure.
    DataStructure(Box<DataStructure>) "datastructure" "DataStructure",
    /// What is published with a data structure.
    Dataflow(Box<Dataflow>) "datastructure" "Dataflow",
    /// Codes that are the cells of a grid.
    GeoGridCodelist(GeoGridCodelist) "codelist" "Codelist",
    /// Codes that are geographic features.
    GeographicCodelist(GeographicCodelist) "codelist" "Codelist",
    /// SDMX 2.1's list of hierarchies.
    HierarchicalCodelist(HierarchicalCodelist) "codelist" "HierarchicalCodelist",
    /// A tree of codes.
    Hierarchy(Hierarchy) "codelist" "Hierarchy",
    /// What a hierarchy is for.
    HierarchyAssociation(HierarchyAssociation) "codelist" "HierarchyAssociation",
    /// Providers of reference metadata.
    MetadataProviderScheme(MetadataProviderScheme) "base" "MetadataProviderScheme",
    /// Who provides the metadata of a metadataflow.
    MetadataProvisionAgreement(MetadataProvisionAgreement) "registry" "MetadataProvisionAgreement",
    /// Reported reference metadata.
    MetadataSet(MetadataSet) "metadatastructure" "MetadataSet",
    /// Attributes of reference metadata.
    MetadataStructure(Box<MetadataStructure>) "metadatastructure" "MetadataStructure",
    /// What is published with a metadata structure.
    Metadataflow(Metadataflow) "metadatastructure" "Metadataflow",
    /// A map between organisations.
    OrganisationSchemeMap(OrganisationSchemeMap) "structuremapping" "OrganisationSchemeMap",
    /// Units of an organisation.
    OrganisationUnitScheme(OrganisationUnitScheme) "base" "OrganisationUnitScheme",
    /// Who provides the data of a dataflow.
    ProvisionAgreement(ProvisionAgreement) "registry" "ProvisionAgreement",
    /// A map between values.
    RepresentationMap(RepresentationMap) "structuremapping" "RepresentationMap",
    /// A map between data structures.
    StructureMap(Box<StructureMap>) "structuremapping" "StructureMap",
    /// SDMX 2.1's set of maps.
    StructureSet(StructureSet) "structuremapping" "StructureSet",
    /// Values of a component that need not be codes.
    ValueList(ValueList) "codelist" "ValueList",
}
