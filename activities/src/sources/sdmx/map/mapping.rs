//! Maps, and SDMX 2.1's structure sets.

use catalog_rules::sdmx::finding::FindingCode;
use catalog_rules::sdmx::model::{
    Artefact, CategorySchemeMap, ComponentMap, ConceptSchemeMap, DatePatternMap, EpochMap, EpochPeriod, FixedValueMap,
    FrequencyFormatMapping, ItemMap, Maintained, MapDataType, MappedValues, OrganisationSchemeMap, RepresentationMap,
    RepresentationMapping, ResolvePeriod, SourceValue, StructureMap, StructureSet, ToValueType, UrnText,
};

use catalog_rules::sdmx::urn::Urn;

use super::super::context::Context;
use super::super::node::{Node, items};
use super::common::{
    Defaults, Identified, annotations, facet, identified, languages, local, locals, reference, references,
};

pub(super) fn representation_mapping(context: &mut Context, mut node: Node) -> RepresentationMapping {
    let sources = node.children("SourceValue|sourceValues");
    let mapping = RepresentationMapping {
        sources: sources.into_iter().map(|node| source_value(context, node)).collect(),
        targets: context.texts(&mut node, "TargetValue|targetValues"),
        valid_from: context.date(&mut node, "validFrom"),
        valid_to: context.date(&mut node, "validTo"),
        annotations: annotations(context, &mut node),
    };
    context.done(node);
    mapping
}

fn source_value(context: &mut Context, mut node: Node) -> SourceValue {
    let value = SourceValue {
        is_regex: context.flag(&mut node, "isRegEx").unwrap_or_default(),
        start_index: context.integer(&mut node, "startIndex"),
        end_index: context.integer(&mut node, "endIndex"),
        // In JSON a value may be an object.
        value: node.attribute("value").unwrap_or_else(|| std::mem::take(&mut node.text)),
    };
    context.done(node);
    value
}

pub(super) fn representation_map(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    let sources = node.children("SourceCodelist|SourceDataType|source");
    let targets = node.children("TargetCodelist|TargetDataType|target");
    Artefact::RepresentationMap(RepresentationMap {
        common,
        sources: sources.into_iter().filter_map(|node| mapped(context, node)).collect(),
        targets: targets.into_iter().filter_map(|node| mapped(context, node)).collect(),
        mappings: items!(node, RepresentationMapping),
    })
}

fn mapped(context: &mut Context, mut node: Node) -> Option<MappedValues> {
    if context.dialect.is_json() {
        let list = reference(context, &mut node, "codelist|valuelist|valueList", "Codelist");
        let data_type = context.word(&mut node, "dataType");
        context.done(node);
        return list
            .map(MappedValues::List)
            .or(data_type.map(|data_type| MappedValues::Type(MapDataType { data_type })));
    }
    if node.name.ends_with("DataType") {
        let data_type = context.raw(node).trim().to_owned();
        return Some(MappedValues::Type(MapDataType { data_type }));
    }
    super::common::reference_of(context, node, "Codelist").map(MappedValues::List)
}

/// A map between concept, category or organisation schemes.
pub(super) fn item_scheme_map(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    let is_concepts = node.name.starts_with('C') && node.name.contains("oncept") || node.name.starts_with("concept");
    let is_categories = node.name.contains("ategory");
    let class = match (is_concepts, is_categories) {
        (true, _) => "ConceptScheme",
        (false, true) => "CategoryScheme",
        // Which of the organisation schemes a reference of SDMX 2.1 says itself.
        (false, false) => "AgencyScheme",
    };
    let source = reference(context, node, "Source|source", class);
    let target = reference(context, node, "Target|target", class);
    let nodes = node.children("ItemMap|itemMaps|ConceptMap|CategoryMap|OrganisationMap");
    let maps = nodes.into_iter().map(|node| item_map(context, node)).collect();
    if is_concepts {
        Artefact::ConceptSchemeMap(ConceptSchemeMap { common, source, target, maps })
    } else if is_categories {
        Artefact::CategorySchemeMap(CategorySchemeMap { common, source, target, maps })
    } else {
        Artefact::OrganisationSchemeMap(OrganisationSchemeMap { common, source, target, maps })
    }
}

fn item_map(context: &mut Context, mut node: Node) -> ItemMap {
    let source_id = match node.child("SourceValue|sourceValue") {
        Some(child) => {
            let value = source_value(context, child);
            if value.is_regex || value.start_index.is_some() || value.end_index.is_some() {
                let message = format!("{:?} is a pattern or a part, which the model holds as a whole id", value.value);
                context.find_at(&node, FindingCode::NotRepresented, message);
            }
            value.value.trim().to_owned()
        }
        None => node
            .attribute("sourceValue")
            .unwrap_or_else(|| locals(context, &mut node, "Source").into_iter().next().unwrap_or_default()),
    };
    let target_id = locals(context, &mut node, "TargetValue|targetValue|Target").into_iter().next();
    let map = ItemMap {
        source_id,
        target_id: target_id.unwrap_or_default(),
        annotations: annotations(context, &mut node),
        valid_from: context.date(&mut node, "validFrom"),
        valid_to: context.date(&mut node, "validTo"),
    };
    context.done(node);
    map
}

pub(super) fn structure_map(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    let epochs = node.children("EpochMap|epochMaps");
    let patterns = node.children("DatePatternMap|datePatternMaps");
    let frequencies = node.children("FrequencyFormatMapping|frequencyFormatMappings");
    let components = node.children("ComponentMap|componentMaps");
    let fixed = node.children("FixedValueMap|fixedValueMaps");
    Artefact::StructureMap(Box::new(StructureMap {
        common,
        source: reference(context, node, "Source|source", "DataStructure"),
        target: reference(context, node, "Target|target", "DataStructure"),
        maps: components.into_iter().map(|node| component_map(context, node)).collect(),
        epoch_maps: epochs.into_iter().map(|node| epoch_map(context, node)).collect(),
        date_pattern_maps: patterns.into_iter().map(|node| date_pattern_map(context, node)).collect(),
        frequency_format_mappings: frequencies.into_iter().map(|node| frequency_format(context, node)).collect(),
        fixed_value_maps: fixed.into_iter().map(|node| fixed_value_map(context, node)).collect(),
        is_extension: context.flag(node, "isExtension").unwrap_or_default(),
    }))
}

fn component_map(context: &mut Context, mut node: Node) -> ComponentMap {
    let mut map = ComponentMap {
        sources: locals(context, &mut node, "Source|source"),
        targets: locals(context, &mut node, "Target|target"),
        annotations: annotations(context, &mut node),
        representation_map: reference(context, &mut node, "RepresentationMap|representationMap", "RepresentationMap"),
        ..ComponentMap::default()
    };
    // SDMX 2.1: a codelist map, or a format with what of a code becomes the value.
    if let Some(mut mapping) = node.child("RepresentationMapping") {
        if let Some(urn) = reference(context, &mut mapping, "CodelistMap", "RepresentationMap") {
            // A codelist map is a representation map of its own here.
            let parsed = urn.parse::<Urn>().ok().filter(|urn| urn.class == "CodelistMap");
            let renamed = parsed.map(|urn| {
                let (package, class) = ("structuremapping".to_owned(), "RepresentationMap".to_owned());
                Urn { package, class, ..urn }.to_string()
            });
            map.representation_map = Some(renamed.unwrap_or(urn));
        }
        let defaults = Defaults::multilingual(context);
        map.to_text_format = mapping.child("ToTextFormat").map(|node| facet(context, node, defaults));
        map.to_value_type =
            context.member(&mut mapping, "ToValueType", "Value, Name or Description", ToValueType::from_value);
        context.done(mapping);
    }
    context.done(node);
    map
}

/// What a map of dates has in both of its kinds.
struct DateMap {
    own: Identified,
    component_maps: Vec<(String, String)>,
    frequency_dimension: Option<String>,
    mapped_frequencies: Vec<String>,
    target_frequency_id: Option<String>,
    resolve_period: Option<ResolvePeriod>,
}

fn date_map(context: &mut Context, node: &mut Node) -> DateMap {
    let own = identified(context, node);
    let mut component_maps = Vec::new();
    for mut pair in node.children("mappedComponents") {
        let source = context.word(&mut pair, "source").unwrap_or_default();
        component_maps.push((source, context.word(&mut pair, "target").unwrap_or_default()));
        context.done(pair);
    }
    let (sources, targets) = (locals(context, node, "Source|source"), locals(context, node, "Target|target"));
    if sources.len() != targets.len() {
        let message =
            format!("{} sources and {} targets; those without the other are left out", sources.len(), targets.len());
        context.find_at(node, FindingCode::NotRepresented, message);
    }
    component_maps.extend(sources.into_iter().zip(targets));
    DateMap {
        own,
        component_maps,
        frequency_dimension: context.word(node, "FrequencyDimension|frequencyDimension"),
        mapped_frequencies: context.words(node, "MappedFrequencies|mappedFrequencies"),
        target_frequency_id: context.word(node, "TargetFrequencyID|targetFrequencyID"),
        resolve_period: context.member(
            node,
            "resolvePeriod",
            "startOfPeriod, endOfPeriod or midPeriod",
            ResolvePeriod::from_value,
        ),
    }
}

fn epoch_map(context: &mut Context, mut node: Node) -> EpochMap {
    let map = date_map(context, &mut node);
    let period = context.member(&mut node, "epochPeriod", "a unit of an epoch, such as day", EpochPeriod::from_value);
    let base_period = context.word(&mut node, "basePeriod").unwrap_or_default();
    context.done(node);
    EpochMap {
        id: map.own.id,
        component_maps: map.component_maps,
        base_period,
        epoch_period: period.unwrap_or(EpochPeriod::Day),
        frequency_dimension: map.frequency_dimension,
        mapped_frequencies: map.mapped_frequencies,
        target_frequency_id: map.target_frequency_id,
        resolve_period: map.resolve_period,
        annotations: map.own.annotations,
        uri: map.own.uri,
        links: map.own.links,
    }
}

fn date_pattern_map(context: &mut Context, mut node: Node) -> DatePatternMap {
    let map = date_map(context, &mut node);
    let source_pattern = context.text(&mut node, "sourcePattern").unwrap_or_default();
    let locale = context.text(&mut node, "locale").unwrap_or_default();
    context.done(node);
    DatePatternMap {
        id: map.own.id,
        component_maps: map.component_maps,
        source_pattern,
        locale,
        frequency_dimension: map.frequency_dimension,
        mapped_frequencies: map.mapped_frequencies,
        target_frequency_id: map.target_frequency_id,
        resolve_period: map.resolve_period,
        annotations: map.own.annotations,
        uri: map.own.uri,
        links: map.own.links,
    }
}

fn frequency_format(context: &mut Context, mut node: Node) -> FrequencyFormatMapping {
    let Identified { id, annotations, uri, links } = identified(context, &mut node);
    let made = FrequencyFormatMapping {
        id,
        frequency_id: context.word(&mut node, "FrequencyId|FrequencyID|frequencyId|frequencyID").unwrap_or_default(),
        date_pattern: context.text(&mut node, "DatePattern|datePattern").unwrap_or_default(),
        annotations,
        uri,
        links,
    };
    context.done(node);
    made
}

fn fixed_value_map(context: &mut Context, mut node: Node) -> FixedValueMap {
    let made = FixedValueMap {
        source_id: context.word(&mut node, "Source|source"),
        target_id: context.word(&mut node, "Target|target"),
        values: context.texts(&mut node, "Value|values"),
        annotations: annotations(context, &mut node),
    };
    context.done(node);
    made
}

/// A structure set, and each of its maps as an artefact of its own, under the set's agency and version. A codelist map
/// becomes a representation map.
pub(super) fn structure_set(context: &mut Context, common: Maintained, node: &mut Node, made: &mut Vec<Artefact>) {
    let mut related_structures = Vec::new();
    for mut child in node.children("RelatedStructure") {
        for inner in std::mem::take(&mut child.children) {
            let class = inner.name.clone();
            related_structures.extend(super::common::reference_of(context, inner, &class));
        }
        context.done(child);
    }
    let mut maps: Vec<UrnText> = Vec::new();
    let names = "StructureMap|CodelistMap|ConceptSchemeMap|CategorySchemeMap|OrganisationSchemeMap";
    for mut child in node.children(names) {
        let Identified { id, annotations, uri, links } = identified(context, &mut child);
        let own = Maintained {
            id,
            name: languages(context, &mut child, "Name", "name"),
            description: languages(context, &mut child, "Description", "description"),
            annotations,
            uri,
            links,
            maintainer: common.maintainer.clone(),
            version: common.version.clone(),
            valid_from: common.valid_from,
            valid_to: common.valid_to,
            ..Maintained::default()
        };
        let map = match child.name.as_str() {
            "StructureMap" => structure_map(context, own, &mut child),
            "CodelistMap" => codelist_map(context, own, &mut child),
            _ => item_scheme_map(context, own, &mut child),
        };
        context.done(child);
        maps.push(map.urn());
        made.push(map);
    }
    made.push(Artefact::StructureSet(StructureSet { common, maps, related_structures }));
}

fn codelist_map(context: &mut Context, common: Maintained, node: &mut Node) -> Artefact {
    let lists = |urns: Vec<UrnText>| urns.into_iter().map(MappedValues::List).collect();
    let sources = references(context, node, "Source", "Codelist");
    let targets = references(context, node, "Target", "Codelist");
    let mappings = node.children("CodeMap");
    Artefact::RepresentationMap(RepresentationMap {
        common,
        sources: lists(sources),
        targets: lists(targets),
        mappings: mappings
            .into_iter()
            .map(|mut node| {
                let source = node.children("Source").into_iter().map(|node| local(context, node));
                let sources = source.map(|value| SourceValue { value, ..SourceValue::default() }).collect();
                let mapping = RepresentationMapping {
                    sources,
                    targets: locals(context, &mut node, "Target"),
                    annotations: annotations(context, &mut node),
                    ..RepresentationMapping::default()
                };
                context.done(node);
                mapping
            })
            .collect(),
    })
}
