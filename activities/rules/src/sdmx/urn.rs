//! URNs of maintainable artefacts and of the items within them, and what a version says (*edition* §2, §6).

use std::fmt;
use std::str::FromStr;

use super::model::{Artefact, Maintained, URN_CLASSES, UrnText};

const PREFIX: &str = "urn:sdmx:org.sdmx.infomodel.";

/// A URN in its parts. `urn:sdmx:org.sdmx.infomodel.codelist.Code=STC:CL_GEO(1.0).35` has the item `35`; a nested item
/// has a dotted path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Urn {
    /// The package, such as `codelist`.
    pub package: String,
    /// The class, such as `Code`.
    pub class: String,
    /// The agency, dotted for a sub-agency.
    pub agency: String,
    /// The id of the maintainable artefact.
    pub id: String,
    /// Its version. A URN without one names the latest version at hand.
    pub version: Option<String>,
    /// The item within it, for the URN of an item.
    pub item: Option<String>,
}

/// A text that is not the URN of an artefact or an item.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{found:?} is not the URN of an artefact or an item: expected such as \
     urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_GEO(1.0)"
)]
pub struct BadUrn {
    /// The text as it was found.
    pub found: String,
}

impl FromStr for Urn {
    type Err = BadUrn;

    fn from_str(text: &str) -> Result<Self, BadUrn> {
        parse(text).ok_or_else(|| BadUrn { found: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<Urn> {
    let (head, tail) = text.strip_prefix(PREFIX)?.split_once('=')?;
    let (package, class) = head.split_once('.')?;
    let (agency, rest) = tail.split_once(':')?;
    let (id, version, item) = match rest.split_once('(') {
        Some((id, after)) => {
            let (version, item) = after.split_once(')')?;
            let item = match item.strip_prefix('.') {
                Some(item) => Some(item),
                None if item.is_empty() => None,
                None => return None,
            };
            (id, Some(version), item)
        }
        // An id has no dot, so that what follows one is an item.
        None => match rest.split_once('.') {
            Some((id, item)) => (id, None, Some(item)),
            None => (rest, None, None),
        },
    };
    let parts = [Some(package), Some(class), Some(agency), Some(id), version, item];
    let filled = parts.iter().flatten().all(|part| !part.is_empty());
    (filled && !class.contains('.')).then(|| Urn {
        package: package.to_owned(),
        class: class.to_owned(),
        agency: agency.to_owned(),
        id: id.to_owned(),
        version: version.map(str::to_owned),
        item: item.map(str::to_owned),
    })
}

impl fmt::Display for Urn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}.{}={}:{}", self.package, self.class, self.agency, self.id)?;
        if let Some(version) = &self.version {
            write!(f, "({version})")?;
        }
        match &self.item {
            Some(item) => write!(f, ".{item}"),
            None => Ok(()),
        }
    }
}

/// The class and package of the artefact that holds an item of a class, by the class of the item's URN.
const HOLDERS: &[(&str, &str, &str)] = &[
    ("Agency", "base", "AgencyScheme"),
    ("DataConsumer", "base", "DataConsumerScheme"),
    ("DataProvider", "base", "DataProviderScheme"),
    ("MetadataProvider", "base", "MetadataProviderScheme"),
    ("OrganisationUnit", "base", "OrganisationUnitScheme"),
    ("Category", "categoryscheme", "CategoryScheme"),
    ("Code", "codelist", "Codelist"),
    ("Value", "codelist", "ValueList"),
    ("ValueItem", "codelist", "ValueList"),
    ("HierarchicalCode", "codelist", "Hierarchy"),
    ("Level", "codelist", "Hierarchy"),
    ("Concept", "conceptscheme", "ConceptScheme"),
    ("Dimension", "datastructure", "DataStructure"),
    ("TimeDimension", "datastructure", "DataStructure"),
    ("MeasureDimension", "datastructure", "DataStructure"),
    ("Attribute", "datastructure", "DataStructure"),
    ("DataAttribute", "datastructure", "DataStructure"),
    ("Measure", "datastructure", "DataStructure"),
    ("PrimaryMeasure", "datastructure", "DataStructure"),
    ("GroupDimensionDescriptor", "datastructure", "DataStructure"),
    ("DimensionDescriptor", "datastructure", "DataStructure"),
    ("AttributeDescriptor", "datastructure", "DataStructure"),
    ("MeasureDescriptor", "datastructure", "DataStructure"),
    ("MetadataAttribute", "metadatastructure", "MetadataStructure"),
    ("DatePatternMap", "structuremapping", "StructureMap"),
    ("EpochMap", "structuremapping", "StructureMap"),
    ("FrequencyFormatMapping", "structuremapping", "StructureMap"),
];

impl Urn {
    /// The URN of the artefact that holds this one: itself for an artefact, and for an item the scheme, list or
    /// structure that it is in. `None` for an item of a class that no artefact is known to hold.
    #[must_use]
    pub fn holder(&self) -> Option<Self> {
        let (package, class) = match &self.item {
            None => (self.package.as_str(), self.class.as_str()),
            Some(_) => {
                let (_, package, class) = HOLDERS.iter().find(|(item, ..)| *item == self.class)?;
                (*package, *class)
            }
        };
        Some(Self {
            package: package.to_owned(),
            class: class.to_owned(),
            agency: self.agency.clone(),
            id: self.id.clone(),
            version: self.version.clone(),
            item: None,
        })
    }
}

/// The package of a class of artefacts or items, as in their URNs. `None` for a class that is not known here.
#[must_use]
pub fn package_of(class: &str) -> Option<&'static str> {
    let artefacts = URN_CLASSES.iter().copied();
    let items = HOLDERS.iter().map(|(item, package, _)| (*item, *package));
    artefacts.chain(items).find(|(known, _)| *known == class).map(|(_, package)| package)
}

/// The class of a URN, without taking it apart further: `Dataflow` of
/// `urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=STC:DF(1.0)`. Empty when `urn` is no URN.
#[must_use]
pub fn class_of(urn: &str) -> &str {
    urn.strip_prefix(PREFIX)
        .and_then(|rest| rest.split_once('='))
        .and_then(|(head, _)| head.split_once('.'))
        .map_or("", |(_, class)| class)
}

/// The URN of an item of `package` and `class` in the artefact `holder` (a URN with a version): the holder's agency,
/// id and version, then a dot and `item`.
#[must_use]
pub fn item_urn(holder: &str, package: &str, class: &str, item: &str) -> UrnText {
    let identity = holder.split_once('=').map_or("", |(_, identity)| identity);
    format!("{PREFIX}{package}.{class}={identity}.{item}")
}

/// The URN of the binding of a dataflow: `urn:sdmx:org.sdmx.infomodel.binding.DataflowBinding=STC:DF_14100287(1.0)`.
#[must_use]
pub fn binding_urn(dataflow: &str) -> UrnText {
    let identity = dataflow.split_once('=').map_or("", |(_, identity)| identity);
    format!("{PREFIX}binding.DataflowBinding={identity}")
}

impl Artefact {
    /// Its URN, at its version.
    #[must_use]
    pub fn urn(&self) -> UrnText {
        let common = self.common();
        let (package, class) = (self.package(), self.urn_class());
        format!("{PREFIX}{package}.{class}={}:{}({})", common.maintainer, common.id, common.version)
    }

    /// Whether it is a subset of a full item scheme (`partial` in the manifest, *edition* §2).
    #[must_use]
    pub fn is_partial(&self) -> bool {
        match self {
            Self::AgencyScheme(a) => a.is_partial,
            Self::CategoryScheme(a) => a.is_partial,
            Self::Codelist(a) => a.is_partial,
            Self::ConceptScheme(a) => a.is_partial,
            Self::DataConsumerScheme(a) => a.is_partial,
            Self::DataProviderScheme(a) => a.is_partial,
            Self::GeoGridCodelist(a) => a.is_partial,
            Self::GeographicCodelist(a) => a.is_partial,
            Self::MetadataProviderScheme(a) => a.is_partial,
            Self::OrganisationUnitScheme(a) => a.is_partial,
            Self::AttachmentConstraint(_)
            | Self::Categorisation(_)
            | Self::CategorySchemeMap(_)
            | Self::ConceptSchemeMap(_)
            | Self::DataConstraint(_)
            | Self::DataStructure(_)
            | Self::Dataflow(_)
            | Self::HierarchicalCodelist(_)
            | Self::Hierarchy(_)
            | Self::HierarchyAssociation(_)
            | Self::MetadataProvisionAgreement(_)
            | Self::MetadataSet(_)
            | Self::MetadataStructure(_)
            | Self::Metadataflow(_)
            | Self::OrganisationSchemeMap(_)
            | Self::ProvisionAgreement(_)
            | Self::RepresentationMap(_)
            | Self::StructureMap(_)
            | Self::StructureSet(_)
            | Self::ValueList(_) => false,
        }
    }
}

/// Whether SDMX 3.0 holds an artefact of this version immutable (`ArtefactEntry.stability`, *edition* §2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stability {
    /// A final semantic version: three numeric parts, no extension, major at least 1.
    Semantic,
    /// Any other version.
    Legacy,
}

impl Stability {
    /// The stability of a version.
    #[must_use]
    pub fn of(version: &str) -> Self {
        let mut parts = version.split('.');
        let mut part = || parts.next().filter(|text| is_number(text));
        let (major, minor, patch) = (part(), part(), part());
        let three = major.is_some() && minor.is_some() && patch.is_some() && parts.next().is_none();
        let from_one = major.is_some_and(|text| text.bytes().any(|digit| digit != b'0'));
        if three && from_one { Self::Semantic } else { Self::Legacy }
    }

    /// The word of the manifest: `semantic` or `legacy`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Semantic => "semantic",
            Self::Legacy => "legacy",
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Maintained {
    /// Whether the artefact never changes at its version: a final semantic version, or SDMX 2.1's `isFinal`.
    #[must_use]
    pub fn is_final(&self) -> bool {
        Stability::of(&self.version) == Stability::Semantic || self.legacy_is_final == Some(true)
    }
}

/// What a version says of itself (SDMX 3.0, section 14).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionKind {
    /// `1.2.0`: three parts.
    Semantic,
    /// `1.2.0-draft`: three parts and an extension. The artefact may still change.
    Draft,
    /// `1.0`: numbers, as before SDMX 3.0, which has one part or two of them; SDMX 2.1 allows any.
    Legacy,
    /// `1.2+.0`, `2.0.0+` or `*`: any version that fits, in a reference only.
    Wildcard,
}

impl VersionKind {
    /// The kind of a version. `None` for a text that is no version.
    #[must_use]
    pub fn of(version: &str) -> Option<Self> {
        if version == "*" {
            return Some(Self::Wildcard);
        }
        let (numbers, extension) = match version.split_once('-') {
            Some((numbers, extension)) => (numbers, Some(extension)),
            None => (version, None),
        };
        let parts: Vec<&str> = numbers.split('.').collect();
        if extension.is_none() && parts.iter().all(|part| is_number(part)) {
            let is_semantic = parts.len() == 3 && parts.iter().all(|part| is_plain_number(part));
            return Some(if is_semantic { Self::Semantic } else { Self::Legacy });
        }
        let later: Vec<bool> = parts.iter().map(|part| part.ends_with('+')).collect();
        if !parts.iter().all(|part| is_plain_number(part.strip_suffix('+').unwrap_or(part))) {
            return None;
        }
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_word = |part: &str| !part.is_empty() && part.bytes().all(letters);
        match (later.as_slice(), extension) {
            ([false, false, false], Some(extension)) => extension.split('.').all(is_word).then_some(Self::Draft),
            // Where later ones fit: in one part, or in the first and the last.
            ([true, false, _] | [false, true, false] | [false, false, true], None) => Some(Self::Wildcard),
            _ => None,
        }
    }
}

/// A number without zeros before it.
fn is_plain_number(text: &str) -> bool {
    is_number(text) && (text == "0" || !text.starts_with('0'))
}

/// A text that sorts as versions do: eight parts of nine digits, then `~` for a release or the extension, which sorts
/// before it, for a draft. `1.0` gives
/// `000000001.000000000.000000000.000000000.000000000.000000000.000000000.000000000~`.
#[must_use]
pub fn version_sort(version: &str) -> String {
    let (numbers, extension) = match version.split_once('-') {
        Some((numbers, extension)) => (numbers, Some(extension)),
        None => (version, None),
    };
    let mut parts = numbers.split('.');
    let padded: Vec<String> = (0..8).map(|_| format!("{:0>9}", parts.next().unwrap_or("0"))).collect();
    format!("{}{}", padded.join("."), extension.unwrap_or("~"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_urn_is_taken_apart_and_written_the_same() {
        for text in [
            "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_GEO(1.0)",
            "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC.SUB:CL_GEO(1.0.0-draft)",
            "urn:sdmx:org.sdmx.infomodel.categoryscheme.Category=STC:SUBJECTS(1.0).14.1410",
            "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_GEO",
            "urn:sdmx:org.sdmx.infomodel.codelist.Code=STC:CL_GEO.35",
        ] {
            assert_eq!(text.parse::<Urn>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "STC:CL_GEO(1.0)",
            "urn:sdmx:org.sdmx.infomodel.codelist=STC:CL_GEO(1.0)",
            "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=CL_GEO(1.0)",
            "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_GEO(1.0",
            "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_GEO(1.0)x",
            "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_GEO()",
            "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:(1.0)",
            "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_GEO(1.0).",
        ] {
            assert!(bad.parse::<Urn>().is_err(), "{bad:?} passed");
        }
    }

    #[test]
    fn an_item_is_held_by_its_scheme() {
        let holder = |text: &str| text.parse::<Urn>().unwrap().holder().map(|urn| urn.to_string());
        assert_eq!(
            holder("urn:sdmx:org.sdmx.infomodel.categoryscheme.Category=STC:SUBJECTS(1.0).14.1410").as_deref(),
            Some("urn:sdmx:org.sdmx.infomodel.categoryscheme.CategoryScheme=STC:SUBJECTS(1.0)")
        );
        assert_eq!(
            holder("urn:sdmx:org.sdmx.infomodel.datastructure.PrimaryMeasure=STC:DSD(1.0).OBS_VALUE").as_deref(),
            Some("urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=STC:DSD(1.0)")
        );
        let list = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL(1.0)";
        assert_eq!(holder(list).as_deref(), Some(list));
        assert_eq!(holder("urn:sdmx:org.sdmx.infomodel.codelist.Unheard=STC:CL(1.0).X"), None);
        assert_eq!(
            item_urn(list, "codelist", "Code", "35"),
            "urn:sdmx:org.sdmx.infomodel.codelist.Code=STC:CL(1.0).35"
        );
        assert_eq!(class_of(list), "Codelist");
        assert_eq!(class_of("STC:CL(1.0)"), "");
    }

    #[test]
    fn only_a_final_semantic_version_is_semantic() {
        for (version, expected) in [
            ("1.0.0", Stability::Semantic),
            ("2.0.1", Stability::Semantic),
            ("10.20.30", Stability::Semantic),
            ("1.0", Stability::Legacy),
            ("1", Stability::Legacy),
            ("0.9.0", Stability::Legacy),
            ("00.9.0", Stability::Legacy),
            ("1.0.0-draft", Stability::Legacy),
            ("1.0.0.0", Stability::Legacy),
            ("1..0", Stability::Legacy),
            ("1.0+.0", Stability::Legacy),
            ("", Stability::Legacy),
        ] {
            assert_eq!(Stability::of(version), expected, "{version}");
        }
        let common = Maintained { version: "1.0".to_owned(), legacy_is_final: Some(true), ..Maintained::default() };
        assert!(common.is_final());
        assert!(!Maintained { legacy_is_final: None, ..common }.is_final());
    }

    #[test]
    fn a_version_says_what_it_is() {
        for (version, expected) in [
            ("1.2.0", Some(VersionKind::Semantic)),
            ("0.1.0", Some(VersionKind::Semantic)),
            ("1.2.0-draft", Some(VersionKind::Draft)),
            ("1.2.0-rc.1", Some(VersionKind::Draft)),
            ("1", Some(VersionKind::Legacy)),
            ("1.0", Some(VersionKind::Legacy)),
            ("1.0.0.0", Some(VersionKind::Legacy)),
            ("01.0.0", Some(VersionKind::Legacy)),
            ("1.2+.0", Some(VersionKind::Wildcard)),
            ("2.0.0+", Some(VersionKind::Wildcard)),
            ("1+.0.0", Some(VersionKind::Wildcard)),
            ("2.0.0+-draft", None),
            ("*", Some(VersionKind::Wildcard)),
            ("1+.0.0+", Some(VersionKind::Wildcard)),
            ("+", None),
            ("1.0+", None),
            ("1+.0+.0", None),
            ("0.1.dev1", None),
            ("1.0-draft", None),
            ("1.0.0-", None),
            ("latest", None),
            ("", None),
        ] {
            assert_eq!(VersionKind::of(version), expected, "{version}");
        }
    }

    #[test]
    fn versions_sort_by_number_with_drafts_first() {
        let sorted = ["0.9", "1.0.0-draft", "1.0.0", "1.2", "1.10", "2.0"];
        let keys: Vec<String> = sorted.iter().map(|version| version_sort(version)).collect();
        assert!(keys.is_sorted(), "{keys:?}");
        assert_eq!(
            version_sort("1.0"),
            "000000001.000000000.000000000.000000000.000000000.000000000.000000000.000000000~"
        );
    }
}
