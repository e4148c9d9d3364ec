//! What artefacts, items and components have in common.

use catalog_rules::sdmx::finding::FindingCode;
use catalog_rules::sdmx::model::{
    Annotation, AnnotationUrl, Facet, InternationalString, Link, Maintained, Representation, SentinelValue, UrnText,
};
use catalog_rules::sdmx::urn::{Stability, Urn, package_of};

use super::super::context::{Context, Dialect, cut, place};
use super::super::node::Node;

/// The language of a text in SDMX-JSON that stands alone, without its translations.
const NO_LANGUAGE: &str = "_default";

/// The version of an artefact whose message gives none.
pub(super) fn default_version(name: &str) -> &'static str {
    if super::is_one_of(name, "MetadataSet|metadataSets") { "1.0.0" } else { "1.0" }
}

/// What an identifiable thing has.
pub(super) struct Identified {
    pub id: String,
    pub annotations: Vec<Annotation>,
    pub uri: Option<String>,
    pub links: Vec<Link>,
}

/// Takes id, annotations, address and links of an item or a component.
pub(super) fn identified(context: &mut Context, node: &mut Node) -> Identified {
    let id = context.word(node, "id").unwrap_or_default();
    let (uri, links) = addresses(context, node, &id);
    Identified { annotations: annotations(context, node), uri, links, id }
}

/// Takes what every maintainable artefact has.
pub(super) fn maintained(context: &mut Context, node: &mut Node) -> Maintained {
    let id = context.word(node, "id").unwrap_or_default();
    let maintainer = context.word(node, "agencyID").unwrap_or_default();
    let version = match context.word(node, "version") {
        Some(version) => version,
        None => {
            let default = default_version(&node.name);
            // Organisation schemes have no version of their own from 3.0 on.
            let class = super::class(&node.name).map_or("", |(_, class, _)| class);
            let has_none = ORGANISATIONS.contains(&class);
            if context.dialect != Dialect::Ml21 && !has_none {
                let message = format!("the message gives no version; {default} is assumed, as SDMX 2.1 has it");
                context.find_at(node, FindingCode::Assumed, message);
            }
            default.to_owned()
        }
    };
    let annotations = annotations(context, node);
    let (uri, links) = addresses(context, node, "");
    let legacy_is_final = is_final(context, node, &version);
    let is_partial_language = context.flag(node, "isPartialLanguage").unwrap_or_default();
    Maintained {
        name: languages(context, node, "Name|names", "name"),
        description: languages(context, node, "Description|descriptions", "description"),
        valid_from: context.instant(node, "validFrom"),
        valid_to: context.instant(node, "validTo"),
        is_external_reference: context.flag(node, "isExternalReference").unwrap_or_default(),
        service_url: context.text(node, "serviceURL|serviceUrl"),
        structure_url: context.text(node, "structureURL|structureUrl"),
        id,
        maintainer,
        version,
        legacy_is_final,
        annotations,
        uri,
        links,
        is_partial_language,
    }
}

const ORGANISATIONS: [&str; 5] =
    ["AgencyScheme", "DataConsumerScheme", "DataProviderScheme", "MetadataProviderScheme", "OrganisationUnitScheme"];

/// SDMX 2.1's `isFinal`, where it says something else than the version does.
fn is_final(context: &mut Context, node: &mut Node, version: &str) -> Option<bool> {
    let is_final = context.flag(node, "isFinal")?;
    (is_final != (Stability::of(version) == Stability::Semantic)).then_some(is_final)
}

/// Takes a text in languages: in XML one element a language, in JSON an object, or one text without its language.
pub(super) fn languages(context: &mut Context, node: &mut Node, names: &str, single: &str) -> InternationalString {
    let mut texts = InternationalString::new();
    for mut child in node.children(names) {
        if context.dialect.is_json() {
            // An object of language to text.
            for (language, text) in std::mem::take(&mut child.attributes) {
                insert(context, &child, &mut texts, language, text);
            }
        } else {
            let language = child.attribute("xml:lang").unwrap_or_else(|| "en".to_owned());
            let text = std::mem::take(&mut child.text);
            insert(context, &child, &mut texts, language, text);
        }
        context.done(child);
    }
    if let Some(text) = node.attribute(single).filter(|_| context.dialect.is_json())
        && texts.is_empty()
    {
        context.texts_without_language += 1;
        texts.insert(NO_LANGUAGE.to_owned(), text);
    }
    texts
}

fn insert(context: &mut Context, at: &Node, texts: &mut InternationalString, language: String, text: String) {
    if let Some(before) = texts.insert(language.clone(), text) {
        let message = format!("a second text in {language:?}; the first, {:?}, is left out", cut(&before));
        context.find_at(at, FindingCode::DuplicateLanguage, message);
    }
}

/// Takes the annotations.
pub(super) fn annotations(context: &mut Context, node: &mut Node) -> Vec<Annotation> {
    let mut nodes = node.children("annotations");
    for mut list in node.children("Annotations") {
        nodes.extend(list.children("Annotation"));
        context.done(list);
    }
    nodes.into_iter().map(|node| annotation(context, node)).collect()
}

fn annotation(context: &mut Context, mut node: Node) -> Annotation {
    let mut urls = Vec::new();
    for mut url in node.children("AnnotationURL") {
        let lang = url.attribute("xml:lang");
        let text = std::mem::take(&mut url.text);
        context.done(url);
        urls.push(AnnotationUrl { url: text, lang, urn: None, r#type: None });
    }
    for mut link in node.children("links") {
        // The model keeps no relation of an annotation's address; `self` is what a writer gives each.
        let relation = context.text(&mut link, "rel");
        if let Some(relation) = relation.filter(|relation| relation != "self") {
            let message = format!("the relation {relation:?} of an annotation's link has no place in the model");
            context.find_at(&link, FindingCode::NotRepresented, message);
        }
        urls.push(AnnotationUrl {
            url: context.text(&mut link, "href|uri").unwrap_or_default(),
            lang: context.text(&mut link, "hreflang"),
            urn: context.text(&mut link, "urn"),
            r#type: context.text(&mut link, "type"),
        });
        context.done(link);
    }
    let annotation = Annotation {
        id: context.text(&mut node, "id"),
        title: context.text(&mut node, "AnnotationTitle|title"),
        r#type: context.text(&mut node, "AnnotationType|type"),
        text: languages(context, &mut node, "AnnotationText|texts", "text"),
        value: context.text(&mut node, "AnnotationValue|value"),
        urls,
    };
    context.done(node);
    annotation
}

/// Takes the address and the links; the URN that is given for the thing itself is compared with it. An item's ends with
/// `.` and its id; an artefact's `id` is empty, and the URN is the one of the context.
fn addresses(context: &mut Context, node: &mut Node, id: &str) -> (Option<String>, Vec<Link>) {
    let mut uri = node.attribute("uri");
    if let Some(urn) = node.attribute("urn") {
        compare_urn(context, node, id, urn.trim());
    }
    let mut links = Vec::new();
    for mut link in node.children("Link|links") {
        let relation = context.text(&mut link, "rel");
        let address = context.text(&mut link, "href|url|uri");
        let urn = context.text(&mut link, "urn");
        if context.dialect.is_json() && relation.as_deref() == Some("self") {
            if let Some(urn) = &urn {
                compare_urn(context, &link, id, urn.trim());
            }
            // Where a service has the artefact is not part of it.
            for name in ["uri", "type", "hreflang", "title", "titles"] {
                let _ = (link.attribute(name), link.child(name));
            }
            context.done(link);
            continue;
        }
        if context.dialect.is_json() && relation.as_deref() == Some("describedby") && uri.is_none() && urn.is_none() {
            uri = address;
            context.done(link);
            continue;
        }
        links.push(Link {
            rel: relation.unwrap_or_default(),
            url: address.unwrap_or_default(),
            urn,
            r#type: context.text(&mut link, "type"),
            hreflang: context.text(&mut link, "hreflang|xml:lang"),
        });
        context.done(link);
    }
    (uri, links)
}

fn compare_urn(context: &mut Context, at: &Node, id: &str, given: &str) {
    let is_own = if id.is_empty() {
        // In JSON the URN is known only when the artefact has ended, which is when this is asked.
        context.urn.is_empty() || context.urn == given
    } else {
        // An agency's own URN may be its id alone.
        given.strip_suffix(id).is_some_and(|before| before.ends_with(['.', '=']))
    };
    if !is_own {
        let own = if id.is_empty() { context.urn.clone() } else { format!("…{id}") };
        let message = format!("the URN {given:?} is given, and the attributes make {own:?}; the attributes count");
        context.find_at(at, FindingCode::UrnMismatch, message);
    }
}

/// Takes a reference to an artefact or an item: a URN, or SDMX 2.1's `Ref`, whose class is `class` where it does not
/// say.
pub(super) fn reference(context: &mut Context, node: &mut Node, names: &str, class: &str) -> Option<UrnText> {
    match node.child(names) {
        Some(child) => reference_of(context, child, class),
        None => node.attribute(names).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()),
    }
}

/// Takes all references with one of `names`.
pub(super) fn references(context: &mut Context, node: &mut Node, names: &str, class: &str) -> Vec<UrnText> {
    let children = node.children(names);
    children.into_iter().filter_map(|child| reference_of(context, child, class)).collect()
}

pub(super) fn reference_of(context: &mut Context, mut node: Node, class: &str) -> Option<UrnText> {
    let urn = context.word(&mut node, "URN").filter(|text| !text.is_empty());
    let by_parts = node.child("Ref").and_then(|mut parts| {
        let mut take = |name: &str| parts.attribute(name).map(|text| text.trim().to_owned());
        let agency = take("agencyID");
        let (id, version) = (take("id"), take("version"));
        let (parent, parent_version) = (take("maintainableParentID"), take("maintainableParentVersion"));
        let class = take("class").unwrap_or_else(|| class.to_owned());
        let package = take("package");
        let _ = (take("containerID"), take("local"));
        let (class, package) = match class.as_str() {
            "ContentConstraint" => ("DataConstraint", Some("registry")),
            class => (class, package.as_deref().or_else(|| package_of(class))),
        };
        let made = match (agency, id, package) {
            (Some(agency), Some(id), Some(package)) => Some(Urn {
                package: package.to_owned(),
                class: class.to_owned(),
                agency,
                version: Some(
                    if parent.is_some() { parent_version } else { version }.unwrap_or_else(|| "1.0".to_owned()),
                ),
                item: parent.is_some().then(|| id.clone()),
                id: parent.unwrap_or(id),
            }),
            _ => None,
        };
        if made.is_none() && urn.is_none() {
            let message = "the reference lacks its agencyID, id or class, and is left out".to_owned();
            context.find_at(&parts, FindingCode::BadReference, message);
        }
        context.done(parts);
        made.map(|urn| urn.to_string())
    });
    let text = std::mem::take(&mut node.text).trim().to_owned();
    context.done(node);
    urn.or(by_parts).or(Some(text)).filter(|text| !text.is_empty())
}

/// The id of a local reference: a text, or SDMX 2.1's `Ref` with an id.
pub(super) fn local(context: &mut Context, mut node: Node) -> String {
    if let Some(mut parts) = node.child("Ref") {
        let id = parts.attribute("id").unwrap_or_default().trim().to_owned();
        // The rest names the artefact that the reference stands in.
        for name in ["agencyID", "version", "maintainableParentID", "maintainableParentVersion", "containerID", "class"]
        {
            let _ = parts.attribute(name);
        }
        let _ = (parts.attribute("package"), parts.attribute("local"));
        context.done(parts);
        context.done(node);
        return id;
    }
    if let Some(urn) = node.child("URN") {
        let text = context.raw(urn);
        context.done(node);
        return item_of(text.trim());
    }
    context.raw(node).trim().to_owned()
}

/// The ids of all local references with one of `names`.
pub(super) fn locals(context: &mut Context, node: &mut Node, names: &str) -> Vec<String> {
    let mut ids: Vec<String> = node.children(names).into_iter().map(|child| local(context, child)).collect();
    ids.extend(node.attribute(names).map(|text| text.trim().to_owned()));
    ids
}

/// The id of the first local reference with one of `names`.
pub(super) fn first_local(context: &mut Context, node: &mut Node, names: &str) -> Option<String> {
    match node.child(names) {
        Some(child) => Some(local(context, child)),
        None => node.attribute(names).map(|text| text.trim().to_owned()),
    }
    .filter(|id| !id.is_empty())
}

/// The item that a URN names, or the text itself.
pub(super) fn item_of(urn: &str) -> String {
    urn.parse::<Urn>().ok().and_then(|urn| urn.item).unwrap_or_else(|| urn.to_owned())
}

/// What a component's values are.
#[derive(Default)]
pub(super) struct Values {
    pub representation: Option<Representation>,
    pub enumeration_format: Option<Facet>,
    pub min_occurs: Option<i64>,
    /// `Some(None)` for any number.
    pub max_occurs: Option<Option<i64>>,
}

impl Values {
    pub fn min(&self) -> i64 {
        self.min_occurs.unwrap_or(1)
    }

    pub fn max(&self) -> Option<i64> {
        self.max_occurs.unwrap_or(Some(1))
    }
}

/// What a format has where the message does not say.
#[derive(Clone, Copy)]
pub(super) struct Defaults {
    pub data_type: Option<&'static str>,
    pub is_multilingual: bool,
}

impl Defaults {
    pub const PLAIN: Self = Self { data_type: Some("String"), is_multilingual: false };
    pub const TIME: Self = Self { data_type: Some("ObservationalTimePeriod"), is_multilingual: false };
    pub const CODED: Self = Self { data_type: None, is_multilingual: false };

    /// A text that may be in languages: of concepts and metadata attributes. SDMX-ML says so unless the message does not
    /// want it, up to 3.0.
    pub fn multilingual(context: &Context) -> Self {
        Self { is_multilingual: matches!(context.dialect, Dialect::Ml21 | Dialect::Ml30), ..Self::PLAIN }
    }

    /// As [`Self::multilingual`], for attributes and measures, whose texts have no languages in SDMX-ML 2.1.
    pub fn component(context: &Context) -> Self {
        Self { is_multilingual: context.dialect == Dialect::Ml30, ..Self::PLAIN }
    }
}

/// Takes a representation. `class` is what an enumeration is where it does not say.
pub(super) fn values(context: &mut Context, node: &mut Node, names: &str, class: &str, defaults: Defaults) -> Values {
    let Some(mut node) = node.child(names) else { return Values::default() };
    let enumeration = reference(context, &mut node, "Enumeration|enumeration", class);
    let enumeration_format =
        node.child("EnumerationFormat|enumerationFormat").map(|node| facet(context, node, Defaults::CODED));
    let format = node.child("TextFormat|format|textFormat").map(|node| facet(context, node, defaults));
    let (min_occurs, max_occurs) = occurs(context, &mut node);
    let representation = match (enumeration, format) {
        (Some(urn), format) => {
            if format.is_some() {
                let message = "there are an enumeration and a format; the format is left out".to_owned();
                context.find_at(&node, FindingCode::NotRepresented, message);
            }
            Some(Representation::Enumerated(urn))
        }
        (None, Some(format)) => Some(Representation::Text(Box::new(format))),
        (None, None) => None,
    };
    context.done(node);
    Values { representation, enumeration_format, min_occurs, max_occurs }
}

/// Takes how often something may stand.
pub(super) fn occurs(context: &mut Context, node: &mut Node) -> (Option<i64>, Option<Option<i64>>) {
    let min_occurs = context.integer(node, "minOccurs");
    let max_occurs = context.member(node, "maxOccurs", "a whole number or unbounded", |text| match text {
        "unbounded" => Some(None),
        text => text.parse().ok().map(Some),
    });
    (min_occurs, max_occurs)
}

/// Makes a format.
pub(super) fn facet(context: &mut Context, mut node: Node, defaults: Defaults) -> Facet {
    let sentinels = node.children("SentinelValue|sentinelValues");
    let facet = Facet {
        data_type: context.word(&mut node, "textType|dataType").or(defaults.data_type.map(str::to_owned)),
        max_length: context.integer(&mut node, "maxLength"),
        min_length: context.integer(&mut node, "minLength"),
        max_value: context.number(&mut node, "maxValue"),
        min_value: context.number(&mut node, "minValue"),
        decimals: context.integer(&mut node, "decimals"),
        pattern: context.text(&mut node, "pattern"),
        start_value: context.number(&mut node, "startValue"),
        end_value: context.number(&mut node, "endValue"),
        is_sequence: context.flag(&mut node, "isSequence"),
        is_multilingual: context.flag(&mut node, "isMultiLingual|isMultilingual").unwrap_or(defaults.is_multilingual),
        interval: context.number(&mut node, "interval"),
        time_interval: context.word(&mut node, "timeInterval"),
        start_time: context.word(&mut node, "startTime"),
        end_time: context.word(&mut node, "endTime"),
        sentinel_values: sentinels.into_iter().map(|node| sentinel(context, node)).collect(),
    };
    if let Some(unknown) = facet.data_type.as_deref().filter(|data_type| !DATA_TYPES.contains(data_type)) {
        let message = format!("{unknown:?} is no data type of SDMX; kept as it is");
        context.find(FindingCode::BadValue, place(&node), message);
    }
    context.done(node);
    facet
}

fn sentinel(context: &mut Context, mut node: Node) -> SentinelValue {
    let sentinel = SentinelValue {
        value: context.text(&mut node, "value").unwrap_or_default(),
        name: languages(context, &mut node, "Name|names", "name"),
        description: languages(context, &mut node, "Description|descriptions", "description"),
    };
    context.done(node);
    sentinel
}

/// The data types of the information model.
const DATA_TYPES: &[&str] = &[
    "String",
    "Alpha",
    "AlphaNumeric",
    "Numeric",
    "BigInteger",
    "Integer",
    "Long",
    "Short",
    "Decimal",
    "Float",
    "Double",
    "Boolean",
    "URI",
    "Count",
    "InclusiveValueRange",
    "ExclusiveValueRange",
    "Incremental",
    "ObservationalTimePeriod",
    "StandardTimePeriod",
    "BasicTimePeriod",
    "GregorianTimePeriod",
    "GregorianYear",
    "GregorianYearMonth",
    "GregorianDay",
    "ReportingTimePeriod",
    "ReportingYear",
    "ReportingSemester",
    "ReportingTrimester",
    "ReportingQuarter",
    "ReportingMonth",
    "ReportingWeek",
    "ReportingDay",
    "DateTime",
    "Time",
    "TimeRange",
    "TimesRange",
    "Duration",
    "Month",
    "MonthDay",
    "Day",
    "XHTML",
    "KeyValues",
    "IdentifiableReference",
    "DataSetReference",
    "AttachmentConstraintReference",
    "GeospatialInformation",
];
