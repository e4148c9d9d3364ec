//! Maps between structures and between their values.

use jiff::civil::Date;

use super::base::{Annotation, Facet, Link, UrnText};

class! {
    /// One item that stands for another.
    #[derive(Eq, Default)]
    ItemMap {
        source_id: String,
        target_id: String,
        annotations: Vec<Annotation>,
        valid_from: Option<Date>,
        valid_to: Option<Date>,
    }
}

class! {
    /// A value, or a pattern of values, that is mapped.
    #[derive(Eq, Default)]
    SourceValue { value: String, is_regex: bool, start_index: Option<i64>, end_index: Option<i64> }
}

class! {
    /// Values that stand for others.
    #[derive(Eq, Default)]
    RepresentationMapping {
        sources: Vec<SourceValue>,
        targets: Vec<String>,
        valid_from: Option<Date>,
        valid_to: Option<Date>,
        annotations: Vec<Annotation>,
    }
}

class! {
    /// A type of values that are mapped without a list.
    #[derive(Eq, Default)]
    MapDataType { data_type: String }
}

/// What the values of a representation map are: a list by URN, or a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MappedValues {
    /// A codelist or value list, by URN.
    List(UrnText),
    /// A type.
    Type(MapDataType),
}

maintainable! {
    /// A map between the values of lists or types.
    #[derive(Eq)]
    RepresentationMap lacks ["legacy_is_final"] {
        sources: Vec<MappedValues>,
        targets: Vec<MappedValues>,
        mappings: Vec<RepresentationMapping>,
    }
}

maintainable! {
    /// A map between the concepts of two schemes.
    #[derive(Eq)]
    ConceptSchemeMap lacks ["legacy_is_final"] {
        source: Option<UrnText>,
        target: Option<UrnText>,
        maps: Vec<ItemMap>,
    }
}

maintainable! {
    /// A map between the categories of two schemes.
    #[derive(Eq)]
    CategorySchemeMap lacks ["legacy_is_final"] {
        source: Option<UrnText>,
        target: Option<UrnText>,
        maps: Vec<ItemMap>,
    }
}

maintainable! {
    /// A map between the organisations of two schemes.
    #[derive(Eq)]
    OrganisationSchemeMap lacks ["legacy_is_final"] {
        source: Option<UrnText>,
        target: Option<UrnText>,
        maps: Vec<ItemMap>,
    }
}

members! {
    /// What of a coded source becomes the target's value.
    ToValueType { Value "VALUE" "Value", Name "NAME" "Name", Description "DESCRIPTION" "Description" }
}

class! {
    /// Components that stand for others.
    #[derive(Default)]
    ComponentMap {
        sources: Vec<String>,
        targets: Vec<String>,
        annotations: Vec<Annotation>,
        representation_map: Option<UrnText>,
        to_text_format: Option<Facet>,
        to_value_type: Option<ToValueType>,
    }
}

members! {
    /// What a number of an epoch counts.
    EpochPeriod {
        Nanosecond "NANOSECOND" "nanosecond",
        Millisecond "MILLISECOND" "millisecond",
        Microsecond "MICROSECOND" "microsecond",
        Second "SECOND" "second",
        Day "DAY" "day",
    }
}

members! {
    /// Which point of a period a date stands for.
    ResolvePeriod {
        StartOfPeriod "START_OF_PERIOD" "startOfPeriod",
        EndOfPeriod "END_OF_PERIOD" "endOfPeriod",
        MidPeriod "MID_PERIOD" "midPeriod",
    }
}

class! {
    /// A map from numbers since a base to periods.
    #[derive(Eq)]
    EpochMap {
        id: String,
        component_maps: Vec<(String, String)>,
        base_period: String,
        epoch_period: EpochPeriod,
        frequency_dimension: Option<String>,
        mapped_frequencies: Vec<String>,
        target_frequency_id: Option<String>,
        resolve_period: Option<ResolvePeriod>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

class! {
    /// A map from dates of a pattern to periods.
    #[derive(Eq, Default)]
    DatePatternMap {
        id: String,
        component_maps: Vec<(String, String)>,
        source_pattern: String,
        locale: String,
        frequency_dimension: Option<String>,
        mapped_frequencies: Vec<String>,
        target_frequency_id: Option<String>,
        resolve_period: Option<ResolvePeriod>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

class! {
    /// The pattern of dates at a frequency.
    #[derive(Eq, Default)]
    FrequencyFormatMapping {
        id: String,
        frequency_id: String,
        date_pattern: String,
        annotations: Vec<Annotation>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

class! {
    /// A component that always has the same values.
    #[derive(Eq, Default)]
    FixedValueMap {
        source_id: Option<String>,
        target_id: Option<String>,
        values: Vec<String>,
        annotations: Vec<Annotation>,
    }
}

maintainable! {
    /// A map between two data structures or dataflows.
    StructureMap lacks ["legacy_is_final"] {
        source: Option<UrnText>,
        target: Option<UrnText>,
        maps: Vec<ComponentMap>,
        epoch_maps: Vec<EpochMap>,
        date_pattern_maps: Vec<DatePatternMap>,
        frequency_format_mappings: Vec<FrequencyFormatMapping>,
        fixed_value_maps: Vec<FixedValueMap>,
        is_extension: bool,
    }
}

maintainable! {
    /// SDMX 2.1's set of maps.
    #[derive(Eq)]
    StructureSet lacks ["links"] { maps: Vec<UrnText>, related_structures: Vec<UrnText> }
}
