//! The artefacts of a product: what [`crate::sdmx`] stores, compares and fingerprints.
//!
//! Each struct holds every field that the reference model takes at construction, so that its canonical text is whole
//! (*edition* §9). A reference is its URN and is never followed.

use std::collections::BTreeMap;

use crate::instant::Instant;

/// A text in each language at hand: language tag to text.
pub type InternationalString = BTreeMap<String, String>;

/// A URN as it is written in documents, such as
/// `urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_GEO(1.0)`. A reference in the model is one of these.
pub type UrnText = String;

/// What every maintainable artefact has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Maintained {
    /// The artefact's id, unique for its class, agency and version.
    pub id: String,
    /// The id of the agency that maintains it.
    pub maintainer: String,
    /// The version, `1.0` unless the source says otherwise.
    pub version: String,
    /// The name, at least one language.
    pub name: InternationalString,
    /// The description, empty for none.
    pub description: InternationalString,
    /// SDMX 2.1's `isFinal`, where the source had it.
    pub legacy_is_final: Option<bool>,
    /// Annotations in document order.
    pub annotations: Vec<Annotation>,
    /// The start of validity.
    pub valid_from: Option<Instant>,
    /// The end of validity.
    pub valid_to: Option<Instant>,
    /// An address of the artefact.
    pub uri: Option<String>,
    /// Links in document order.
    pub links: Vec<Link>,
    /// Whether only a stub stands here and the content elsewhere.
    pub is_external_reference: bool,
    /// Where a service answers for an external reference.
    pub service_url: Option<String>,
    /// Where the structure of an external reference is.
    pub structure_url: Option<String>,
    /// Whether some languages were left out.
    pub is_partial_language: bool,
}

/// A maintainable artefact of one of the classes that a product built here holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Artefact {
    /// Agencies and their names.
    AgencyScheme(AgencyScheme),
    /// Codes of one dimension or attribute.
    Codelist(Codelist),
    /// Concepts that components take their meaning from.
    ConceptScheme(ConceptScheme),
    /// Dimensions, attributes and measures of a data structure.
    DataStructure(Box<DataStructure>),
    /// What is published with a data structure.
    Dataflow(Box<Dataflow>),
}

/// A note attached to an artefact, an item or a component.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct Annotation {
    pub id: Option<String>,
    pub title: Option<String>,
    pub r#type: Option<String>,
    pub urls: Vec<AnnotationUrl>,
    pub text: InternationalString,
    pub value: Option<String>,
}

/// An address in an annotation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct AnnotationUrl {
    pub url: String,
    pub lang: Option<String>,
    pub urn: Option<String>,
    pub r#type: Option<String>,
}

/// A link of an artefact to a resource elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct Link {
    pub rel: String,
    pub url: String,
    pub urn: Option<String>,
    pub r#type: Option<String>,
    pub hreflang: Option<String>,
}

/// A person or a desk to ask.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct Contact {
    pub name: InternationalString,
    pub department: InternationalString,
    pub role: InternationalString,
    pub phones: Vec<String>,
    pub faxes: Vec<String>,
    pub x400s: Vec<String>,
    pub uris: Vec<String>,
    pub emails: Vec<String>,
    pub id: Option<String>,
}

/// An organisation that maintains artefacts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct Agency {
    pub id: String,
    pub name: InternationalString,
    pub description: InternationalString,
    pub contacts: Vec<Contact>,
    pub annotations: Vec<Annotation>,
    pub uri: Option<String>,
    pub links: Vec<Link>,
}

/// The agencies known to a product. It has no `legacy_is_final` in the reference model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgencyScheme {
    /// What every maintainable artefact has.
    pub common: Maintained,
    /// The agencies, in document order.
    pub agencies: Vec<Agency>,
    /// Whether this is a subset of the full scheme.
    pub is_partial: bool,
}

/// One code of a codelist.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct Code {
    pub id: String,
    pub name: InternationalString,
    pub description: InternationalString,
    pub parent_id: Option<String>,
    pub annotations: Vec<Annotation>,
    pub uri: Option<String>,
    pub links: Vec<Link>,
}

/// A list of codes, each with at most one parent in the same list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Codelist {
    /// What every maintainable artefact has.
    pub common: Maintained,
    /// The codes, in document order.
    pub codes: Vec<Code>,
    /// The lists whose codes it takes in, in order of their precedence.
    pub extensions: Vec<CodelistExtension>,
    /// Whether this is a subset of the full list.
    pub is_partial: bool,
}

/// Another codelist whose codes a codelist takes in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CodelistExtension {
    /// The other codelist, by URN.
    pub codelist: UrnText,
    /// Which of its codes; all of them without a selection.
    pub selection: Option<CodeSelection>,
    /// What is put before each of its codes.
    pub prefix: Option<String>,
}

/// Which codes of another list are taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeSelection {
    /// Whether the members are taken or left.
    pub mode: InclusionMode,
    /// The members, in document order.
    pub members: Vec<MemberValue>,
}

/// Whether the members of a selection are taken or left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the members are those of the SDMX information model, under their own names")]
pub enum InclusionMode {
    Include,
    Exclude,
}

/// One member of a selection: a code, or a pattern with `%`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct MemberValue {
    pub value: String,
    pub cascade: Option<CascadeSelection>,
}

/// Whether a member of a selection stands for its descendants too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the members are those of the SDMX information model, under their own names")]
pub enum CascadeSelection {
    IncludeDescendants,
    SelfOnly,
    ExcludeRoot,
}

/// What a value is drawn from: an enumeration by URN, or a format.
#[derive(Debug, Clone, PartialEq)]
pub enum Representation {
    /// A codelist or value list, by URN.
    Enumerated(UrnText),
    /// A format of text.
    Text(Box<Facet>),
}

/// The format of a value. `data_type` is the reference model's `type`, a name such as `String` or `Decimal`.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct Facet {
    pub data_type: Option<String>,
    pub max_length: Option<i64>,
    pub min_length: Option<i64>,
    pub max_value: Option<f64>,
    pub min_value: Option<f64>,
    pub decimals: Option<i64>,
    pub pattern: Option<String>,
    pub start_value: Option<f64>,
    pub end_value: Option<f64>,
    pub is_sequence: Option<bool>,
    pub is_multilingual: bool,
    pub interval: Option<f64>,
    pub time_interval: Option<String>,
    pub start_time: Option<String>,
    pub end_time: Option<String>,
    pub sentinel_values: Vec<SentinelValue>,
}

/// A value that stands for something else than itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct SentinelValue {
    pub value: String,
    pub name: InternationalString,
    pub description: InternationalString,
}

/// The ISO 11179 concept that a concept refers to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct IsoConceptReference {
    pub concept_agency: String,
    pub concept_scheme_id: String,
    pub concept_id: String,
}

/// A concept: what a component means.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct Concept {
    pub id: String,
    pub name: InternationalString,
    pub description: InternationalString,
    pub core_representation: Option<Representation>,
    pub parent_id: Option<String>,
    pub enumeration_format: Option<Facet>,
    pub iso_concept_reference: Option<IsoConceptReference>,
    pub min_occurs: i64,
    pub max_occurs: Option<i64>,
    pub annotations: Vec<Annotation>,
    pub uri: Option<String>,
    pub links: Vec<Link>,
}

impl Default for Concept {
    fn default() -> Self {
        Self {
            id: String::new(),
            name: InternationalString::new(),
            description: InternationalString::new(),
            core_representation: None,
            parent_id: None,
            enumeration_format: None,
            iso_concept_reference: None,
            min_occurs: 1,
            max_occurs: Some(1),
            annotations: Vec::new(),
            uri: None,
            links: Vec::new(),
        }
    }
}

/// A scheme of concepts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConceptScheme {
    /// What every maintainable artefact has.
    pub common: Maintained,
    /// The concepts, in document order.
    pub concepts: Vec<Concept>,
    /// Whether this is a subset of the full scheme.
    pub is_partial: bool,
}

/// Whether a value must be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Usage {
    /// Each observation must have it.
    Mandatory,
    /// It may be absent.
    #[default]
    Optional,
}

/// What an attribute is attached to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentLevel {
    /// The data set.
    DataSet,
    /// One observation.
    Observation,
    /// A series: the dimensions named with it.
    Series,
    /// A group.
    Group,
}

/// A dimension: part of the key.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct Dimension {
    pub id: String,
    pub concept: Option<UrnText>,
    pub representation: Option<Representation>,
    pub enumeration_format: Option<Facet>,
    pub annotations: Vec<Annotation>,
    pub concept_role: Vec<String>,
    pub uri: Option<String>,
    pub links: Vec<Link>,
}

/// The dimension of time; its id is `TIME_PERIOD`.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct TimeDimension {
    pub id: String,
    pub concept: Option<UrnText>,
    pub representation: Facet,
    pub annotations: Vec<Annotation>,
    pub uri: Option<String>,
    pub links: Vec<Link>,
}

/// An attribute: what is said of an observation, a series or the data set.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct Attribute {
    pub id: String,
    pub usage: Usage,
    pub attachment: AttachmentLevel,
    pub related_dimensions: Option<Vec<String>>,
    pub optional_dimensions: std::collections::BTreeSet<String>,
    pub related_measures: Option<Vec<String>>,
    pub related_group: Option<String>,
    pub attachment_groups: Vec<String>,
    pub concept: Option<UrnText>,
    pub representation: Option<Representation>,
    pub enumeration_format: Option<Facet>,
    pub min_occurs: i64,
    pub max_occurs: Option<i64>,
    pub annotations: Vec<Annotation>,
    pub concept_role: Vec<String>,
    pub uri: Option<String>,
    pub links: Vec<Link>,
}

/// A measure: what was observed.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct Measure {
    pub id: String,
    pub concept: Option<UrnText>,
    pub representation: Option<Representation>,
    pub enumeration_format: Option<Facet>,
    pub min_occurs: i64,
    pub max_occurs: Option<i64>,
    pub usage: Usage,
    pub annotations: Vec<Annotation>,
    pub concept_role: Vec<String>,
    pub uri: Option<String>,
    pub links: Vec<Link>,
}

/// SDMX 2.0's and 2.1's dimension over measures. `representation` names a concept scheme, or is a format.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct MeasureDimension {
    pub id: String,
    pub concept: Option<UrnText>,
    pub representation: Option<Representation>,
    pub annotations: Vec<Annotation>,
    pub concept_role: Vec<String>,
    pub uri: Option<String>,
}

/// A metadata attribute that a data structure lets a data set report.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct MetadataAttributeUsage {
    pub id: String,
    pub attachment: AttachmentLevel,
    pub related_dimensions: Option<Vec<String>>,
    pub optional_dimensions: std::collections::BTreeSet<String>,
    pub related_group: Option<String>,
    pub annotations: Vec<Annotation>,
    pub uri: Option<String>,
    pub links: Vec<Link>,
}

/// A group of dimensions that attributes attach to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct Group {
    pub id: String,
    pub dimension_ids: Vec<String>,
    pub attachment_constraint: Option<UrnText>,
    pub annotations: Vec<Annotation>,
    pub uri: Option<String>,
}

/// A data structure definition. `metadata` is the URN of a metadata structure.
#[derive(Debug, Clone, PartialEq, Default)]
#[allow(missing_docs, reason = "the fields are those of the SDMX information model, under their own names")]
pub struct DataStructure {
    pub common: Maintained,
    pub dimensions: Vec<Dimension>,
    pub time_dimension: Option<TimeDimension>,
    pub measure_dimension: Option<MeasureDimension>,
    pub attributes: Vec<Attribute>,
    pub measures: Vec<Measure>,
    pub groups: Option<Vec<Group>>,
    pub dimension_descriptor_annotations: Vec<Annotation>,
    pub attribute_descriptor_annotations: Vec<Annotation>,
    pub measure_descriptor_annotations: Vec<Annotation>,
    pub dimension_descriptor_uri: Option<String>,
    pub attribute_descriptor_uri: Option<String>,
    pub measure_descriptor_uri: Option<String>,
    pub dimension_descriptor_links: Vec<Link>,
    pub attribute_descriptor_links: Vec<Link>,
    pub measure_descriptor_links: Vec<Link>,
    pub evolving_structure: bool,
    pub metadata: Option<UrnText>,
    pub metadata_attributes: Vec<MetadataAttributeUsage>,
}

/// A dataflow: a data structure as it is published.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dataflow {
    /// What every maintainable artefact has.
    pub common: Maintained,
    /// The URN of its data structure.
    pub structure: Option<UrnText>,
    /// The dimensions that it holds constant.
    pub dimension_constraint: Vec<String>,
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
