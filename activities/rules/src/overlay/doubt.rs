//! What of a valid overlay cannot have the effect that was meant.

use super::document::{Overlay, TextOperation};
use super::finding::{OverlayFault, OverlayFinding};
use super::selector::{Selector, SelectorKind};

/// The classes of SDMX that have a name: artefacts, and items of schemes and lists.
const WITH_NAMES: &[&str] = &[
    "Agency",
    "AgencyScheme",
    "AttachmentConstraint",
    "Categorisation",
    "Category",
    "CategoryScheme",
    "CategorySchemeMap",
    "Code",
    "Codelist",
    "Concept",
    "ConceptScheme",
    "ConceptSchemeMap",
    "DataConstraint",
    "DataConsumer",
    "DataConsumerScheme",
    "DataProvider",
    "DataProviderScheme",
    "DataStructure",
    "Dataflow",
    "GeoFeatureSetCode",
    "GeoGridCode",
    "GeoGridCodelist",
    "GeographicCodelist",
    "HierarchicalCodelist",
    "Hierarchy",
    "HierarchyAssociation",
    "Level",
    "MetadataProvider",
    "MetadataProviderScheme",
    "MetadataProvisionAgreement",
    "MetadataSet",
    "MetadataStructure",
    "Metadataflow",
    "OrganisationSchemeMap",
    "OrganisationUnit",
    "OrganisationUnitScheme",
    "ProvisionAgreement",
    "RepresentationMap",
    "StructureMap",
    "StructureSet",
    "Value",
    "ValueItem",
    "ValueList",
];

/// Those that have none: components, and places in a tree.
const WITHOUT_NAMES: &[&str] = &[
    "Attribute",
    "DataAttribute",
    "DatePatternMap",
    "Dimension",
    "EpochMap",
    "FrequencyFormatMapping",
    "Group",
    "GroupDimensionDescriptor",
    "HierarchicalCode",
    "Measure",
    "MeasureDimension",
    "MetadataAttribute",
    "PrimaryMeasure",
    "TimeDimension",
];

/// A document and everything that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The overlay, unless a reader must refuse it.
    pub overlay: Option<Overlay>,
    /// The refusals; without any, what cannot have the effect that was meant.
    pub findings: Vec<OverlayFinding>,
}

/// Reads a document and tells everything that is wrong with it.
#[must_use]
pub fn check(bytes: &[u8]) -> Checked {
    match Overlay::decode(bytes) {
        Ok(overlay) => {
            let findings = doubts(&overlay);
            Checked { overlay: Some(overlay), findings }
        }
        Err(refused) => Checked { overlay: None, findings: refused.findings },
    }
}

fn doubts(overlay: &Overlay) -> Vec<OverlayFinding> {
    let mut doubts = Doubts(Vec::new());
    doubts.empty("id", &overlay.id);
    for (n, entry) in overlay.entries.iter().enumerate() {
        let at = |field: &str| format!("entries[{n}].{field}");
        doubts.selector(&at("selector"), &entry.selector);
        doubts.empty(&at("type"), &entry.annotation_type);
        if let Some(annotation) = entry.operation.annotation() {
            for language in annotation.text.keys() {
                doubts.language(&at("annotation.text"), language);
            }
        }
        if let Some(scope) = &entry.scope {
            doubts.empty(&at("scope"), scope.as_str());
        }
    }
    for (n, text) in overlay.texts.iter().enumerate() {
        let at = |field: &str| format!("texts[{n}].{field}");
        doubts.selector(&at("selector"), &text.selector);
        if let Some(class) = class(&text.selector).filter(|class| WITHOUT_NAMES.contains(class)) {
            doubts.add(&at("selector"), OverlayFault::NoNames { found: class.to_owned() });
        }
        doubts.language(&at("lang"), &text.lang);
        if let TextOperation::Set(text) = &text.operation {
            doubts.empty(&at("text"), text);
        }
        if let Some(scope) = &text.scope {
            doubts.empty(&at("scope"), scope.as_str());
        }
    }
    doubts.0
}

/// The class that a selector names.
fn class(selector: &Selector) -> Option<&str> {
    match selector.kind() {
        SelectorKind::Class => Some(selector.as_str()),
        SelectorKind::Urn(urn) => Some(&urn.class),
        SelectorKind::All | SelectorKind::Artefact { .. } => None,
    }
}

struct Doubts(Vec<OverlayFinding>);

impl Doubts {
    fn add(&mut self, place: &str, fault: OverlayFault) {
        self.0.push(OverlayFinding { place: place.to_owned(), fault });
    }

    fn selector(&mut self, place: &str, selector: &Selector) {
        if let Some(class) =
            class(selector).filter(|class| !WITH_NAMES.contains(class) && !WITHOUT_NAMES.contains(class))
        {
            self.add(place, OverlayFault::UnknownClass { found: class.to_owned() });
        }
        if let SelectorKind::Urn(urn) = selector.kind()
            && urn.version.is_none()
        {
            self.add(place, OverlayFault::NoVersion { found: selector.as_str().to_owned() });
        }
    }

    fn empty(&mut self, place: &str, text: &str) {
        if text.is_empty() {
            self.add(place, OverlayFault::Empty);
        }
    }

    fn language(&mut self, place: &str, language: &str) {
        // `_default` is the language of a name that came without one.
        let is_part =
            |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_tag =
            language.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic()) && language.split('-').all(is_part);
        if !is_tag && language != "_default" {
            self.add(place, OverlayFault::NotALanguage { found: language.to_owned() });
        }
    }
}
