//! Constraints: which keys and values data may or does have.

use std::collections::BTreeSet;

use super::base::{Annotation, UrnText};
use super::codelist::CascadeSelection;
use crate::instant::Instant;

members! {
    /// Whether a constraint says what may be, or what is.
    #[derive(Default)]
    ConstraintType {
        #[default]
        Allowed "ALLOWED" "Allowed",
        Actual "ACTUAL" "Actual",
    }
}

class! {
    /// One end of a range of time.
    #[derive(Eq, PartialOrd, Ord)]
    TimeBound { period: String, inclusive: bool }
}

class! {
    /// A range of time, open where an end is absent.
    #[derive(Eq, PartialOrd, Ord, Default)]
    TimeRange {
        start: Option<TimeBound>,
        end: Option<TimeBound>,
        valid_from: Option<String>,
        valid_to: Option<String>,
    }
}

class! {
    /// One value of a region.
    #[derive(Eq, PartialOrd, Ord, Default)]
    RegionValue {
        value: String,
        cascade: CascadeSelection,
        lang: Option<String>,
        valid_from: Option<String>,
        valid_to: Option<String>,
    }
}

class! {
    /// The values of a dimension in a region.
    #[derive(Eq)]
    KeyValue {
        dimension_id: String,
        values: BTreeSet<RegionValue>,
        time_range: Option<TimeRange>,
        include: bool,
        remove_prefix: bool,
        valid_from: Option<String>,
        valid_to: Option<String>,
    }
}

class! {
    /// The values of an attribute or a measure in a region or a key.
    #[derive(Eq)]
    ComponentValueSet {
        component_id: String,
        values: BTreeSet<RegionValue>,
        time_range: Option<TimeRange>,
        include: bool,
        remove_prefix: bool,
    }
}

class! {
    /// A key: dimension id and value, in document order.
    #[derive(Eq, Default)]
    DataKey {
        values: Vec<(String, String)>,
        annotations: Vec<Annotation>,
        valid_from: Option<String>,
        valid_to: Option<String>,
        components: Vec<ComponentValueSet>,
    }
}

class! {
    /// Keys that are in or out.
    #[derive(Eq)]
    DataKeySet { is_included: bool, keys: Vec<DataKey> }
}

class! {
    /// A region of the cube that is in or out.
    #[derive(Eq)]
    CubeRegion {
        include: bool,
        keys: Vec<KeyValue>,
        components: Vec<ComponentValueSet>,
        annotations: Vec<Annotation>,
    }
}

class! {
    /// The period that the data of a constraint is of.
    #[derive(Eq)]
    ReferencePeriod { start_period: Instant, end_period: Instant }
}

class! {
    /// When data comes out: durations such as `P1M`.
    #[derive(Eq, Default)]
    ReleaseCalendar { periodicity: String, offset: String, tolerance: String }
}

class! {
    /// A service that data can be asked of.
    #[derive(Eq, Default)]
    QueryableDataSource {
        data_url: String,
        is_rest_datasource: bool,
        is_web_service_datasource: bool,
        wsdl_url: Option<String>,
        wadl_url: Option<String>,
    }
}

class! {
    /// One data set of a provider.
    #[derive(Eq, Default)]
    DataSetReference { data_provider: UrnText, id: String }
}

class! {
    /// What a constraint is attached to.
    #[derive(Eq, Default)]
    ConstraintAttachment {
        data_provider: Option<UrnText>,
        data_sets: Vec<DataSetReference>,
        simple_data_sources: Vec<String>,
        data_structures: Vec<UrnText>,
        dataflows: Vec<UrnText>,
        provision_agreements: Vec<UrnText>,
        queryable_data_sources: Vec<QueryableDataSource>,
    }
}

maintainable! {
    /// A constraint of data: SDMX 2.1's content constraint.
    #[derive(Eq)]
    DataConstraint lacks [] {
        constraint_type: ConstraintType,
        attachment: ConstraintAttachment,
        regions: Vec<CubeRegion>,
        data_key_sets: Vec<DataKeySet>,
        reference_period: Option<ReferencePeriod>,
        release_calendar: Option<ReleaseCalendar>,
    }
}

maintainable! {
    /// SDMX 2.1's constraint of where attributes attach.
    #[derive(Eq)]
    AttachmentConstraint lacks ["links"] { attachment: ConstraintAttachment, data_key_sets: Vec<DataKeySet> }
}
