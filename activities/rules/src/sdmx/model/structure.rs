//! Data structures, dataflows and who provides them.

use std::collections::{BTreeMap, BTreeSet};

use super::base::{Annotation, Facet, Link, Representation, UrnText};
use crate::instant::Instant;

members! {
    /// Whether a value must be given.
    #[derive(Default)]
    Usage {
        /// Each observation must have it.
        Mandatory "MANDATORY" "mandatory",
        /// It may be absent.
        #[default]
        Optional "OPTIONAL" "optional",
    }
}

members! {
    /// What an attribute is attached to.
    AttachmentLevel {
        /// The data set.
        DataSet "DATASET" "dataset",
        /// One observation.
        Observation "OBSERVATION" "observation",
        /// A series: the dimensions named with it.
        Series "SERIES" "series",
        /// A group.
        Group "GROUP" "group",
    }
}

class! {
    /// A dimension: part of the key.
    #[derive(Default)]
    Dimension {
        id: String,
        concept: Option<UrnText>,
        representation: Option<Representation>,
        enumeration_format: Option<Facet>,
        annotations: Vec<Annotation>,
        concept_role: Vec<String>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

class! {
    /// The dimension of time; its id is `TIME_PERIOD`.
    #[derive(Default)]
    TimeDimension {
        id: String,
        concept: Option<UrnText>,
        representation: Facet,
        annotations: Vec<Annotation>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

class! {
    /// An attribute: what is said of an observation, a series or the data set.
    Attribute {
        id: String,
        usage: Usage,
        attachment: AttachmentLevel,
        related_dimensions: Option<Vec<String>>,
        optional_dimensions: BTreeSet<String>,
        related_measures: Option<Vec<String>>,
        related_group: Option<String>,
        attachment_groups: Vec<String>,
        concept: Option<UrnText>,
        representation: Option<Representation>,
        enumeration_format: Option<Facet>,
        min_occurs: i64,
        max_occurs: Option<i64>,
        annotations: Vec<Annotation>,
        concept_role: Vec<String>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

class! {
    /// A measure: what was observed.
    Measure {
        id: String,
        concept: Option<UrnText>,
        representation: Option<Representation>,
        enumeration_format: Option<Facet>,
        min_occurs: i64,
        max_occurs: Option<i64>,
        usage: Usage,
        annotations: Vec<Annotation>,
        concept_role: Vec<String>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

class! {
    /// SDMX 2.0's and 2.1's dimension over measures. `representation` names a concept scheme, or is a format.
    #[derive(Default)]
    MeasureDimension {
        id: String,
        concept: Option<UrnText>,
        representation: Option<Representation>,
        annotations: Vec<Annotation>,
        concept_role: Vec<String>,
        uri: Option<String>,
    }
}

class! {
    /// A metadata attribute that a data structure lets a data set report.
    #[derive(Eq)]
    MetadataAttributeUsage {
        id: String,
        attachment: AttachmentLevel,
        related_dimensions: Option<Vec<String>>,
        optional_dimensions: BTreeSet<String>,
        related_group: Option<String>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
        links: Vec<Link>,
    }
}

class! {
    /// A group of dimensions that attributes attach to.
    #[derive(Eq, Default)]
    Group {
        id: String,
        dimension_ids: Vec<String>,
        attachment_constraint: Option<UrnText>,
        annotations: Vec<Annotation>,
        uri: Option<String>,
    }
}

maintainable! {
    /// A data structure definition. `metadata` is the URN of a metadata structure.
    DataStructure lacks [] {
        dimensions: Vec<Dimension>,
        time_dimension: Option<TimeDimension>,
        measure_dimension: Option<MeasureDimension>,
        attributes: Vec<Attribute>,
        measures: Vec<Measure>,
        groups: Option<Vec<Group>>,
        dimension_descriptor_annotations: Vec<Annotation>,
        attribute_descriptor_annotations: Vec<Annotation>,
        measure_descriptor_annotations: Vec<Annotation>,
        dimension_descriptor_uri: Option<String>,
        attribute_descriptor_uri: Option<String>,
        measure_descriptor_uri: Option<String>,
        dimension_descriptor_links: Vec<Link>,
        attribute_descriptor_links: Vec<Link>,
        measure_descriptor_links: Vec<Link>,
        evolving_structure: bool,
        metadata: Option<UrnText>,
        metadata_attributes: Vec<MetadataAttributeUsage>,
    }
}

maintainable! {
    /// A dataflow: a data structure as it is published.
    #[derive(Eq)]
    Dataflow lacks [] {
        /// The URN of its data structure.
        structure: Option<UrnText>,
        /// The dimensions that it holds constant.
        dimension_constraint: Vec<String>,
    }
}

maintainable! {
    /// Who provides the data of a dataflow.
    #[derive(Eq)]
    ProvisionAgreement lacks [] { dataflow: Option<UrnText>, data_provider: Option<UrnText> }
}

/// Where a dataflow's observations are: the table in the lake, and which column holds which component. It is stored in
/// `metadata.duckdb` and is no maintainable artefact (*edition* §4, Bindings).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataflowBinding {
    /// The bound dataflow's URN.
    pub dataflow: UrnText,
    /// `schema.table` in the lake.
    pub table_location: String,
    /// Dimension id to column, the time dimension included.
    pub dimension_columns: BTreeMap<String, String>,
    /// Measure id to column.
    pub measure_columns: BTreeMap<String, String>,
    /// Attribute id to column.
    pub attribute_columns: BTreeMap<String, String>,
    /// The data structure, as `STC:DSD_14100287(1.0)`.
    pub structural_version: String,
    /// Where the structures come from; `local` for a build here.
    pub source_registry: String,
    /// When the rows were written.
    pub materialized_at: Instant,
    /// When the binding was made.
    pub bound_at: Instant,
}
