//! A made-up product, for tests and measurements: the same rows for the same numbers, whoever asks.

use std::sync::Arc;

use catalog_rules::ids::{EditionId, ProductId};
use catalog_rules::instant::Instant;
use catalog_rules::sdmx::model::{
    Artefact, AttachmentLevel, Attribute, Code, Codelist, Concept, ConceptScheme, DataStructure, Dataflow,
    DataflowBinding, Dimension, Facet, InternationalString, Maintained, Measure, Representation, TimeDimension,
    UrnText, Usage,
};
use duckdb::arrow::array::{Int64Array, RecordBatch, StringArray};
use duckdb::arrow::datatypes::{DataType, Field, Schema};
use uuid::Uuid;

use super::source::{ColumnRole, ColumnType, LINE_COLUMN, ObservationColumn, ObservationSource, SourceError, Stop};

const BATCH_ROWS: u64 = 8192;
/// Rows of the second and later revisions whose period is among the newest so many differ from the first.
const REVISED_PERIODS: u64 = 2;
const STATUSES: [Option<&str>; 4] = [None, None, None, Some("p")];

/// The shape of a made-up product. Its table has the columns `GEO`, `PRODUCT`, `GENDER`, `TIME_PERIOD`, `OBS_VALUE`,
/// `OBS_STATUS` and `VECTOR`, and a row for each member of `GEO` × `PRODUCT` × `GENDER` and period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Synthetic {
    /// Members of `GEO`, a hierarchy of ten children each.
    pub members: u64,
    /// Members of `PRODUCT`.
    pub products: u64,
    /// How many periods there are, from 2000 on.
    pub periods: u64,
    /// Which revision of the numbers: each differs from the others in the newest two periods of the first's.
    pub revision: u64,
}

const GENDERS: u64 = 2;

impl Synthetic {
    /// How many rows the table has.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.members * self.products * GENDERS * self.periods
    }

    /// The product's id.
    #[must_use]
    #[allow(clippy::missing_panics_doc, reason = "the text is a product id")]
    pub fn product_id() -> ProductId {
        ok("99100001".parse())
    }

    /// The id of edition number `n`, the later the greater.
    #[must_use]
    #[allow(clippy::missing_panics_doc, reason = "the bits are those of a UUIDv7")]
    pub fn edition_id(n: u64) -> EditionId {
        let id = u128::from(0x019a_0000_0000 + n) << 80 | 7 << 76 | 0b10 << 62 | u128::from(n);
        ok(EditionId::from_uuid(Uuid::from_u128(id)))
    }

    /// The dataflow's URN.
    #[must_use]
    pub fn dataflow() -> UrnText {
        urn("datastructure", "Dataflow", "DF_99100001")
    }

    /// The binding of the dataflow to its table.
    #[must_use]
    pub fn binding() -> DataflowBinding {
        let own = |ids: &[&str]| ids.iter().map(|id| ((*id).to_owned(), (*id).to_owned())).collect();
        DataflowBinding {
            dataflow: Self::dataflow(),
            table_location: "codr.t99100001".to_owned(),
            dimension_columns: own(&["GEO", "PRODUCT", "GENDER", "TIME_PERIOD"]),
            measure_columns: own(&["OBS_VALUE"]),
            attribute_columns: own(&["OBS_STATUS", "VECTOR"]),
            structural_version: "STC:DSD_99100001(1.0)".to_owned(),
            source_registry: "local".to_owned(),
            materialized_at: Instant::from_ms(1_790_000_000_000),
            bound_at: Instant::from_ms(1_790_000_000_000),
        }
    }

    /// The artefacts: four codelists, the concepts, the data structure and the dataflow.
    #[must_use]
    pub fn artefacts(&self) -> Vec<Artefact> {
        let mut geo: Vec<Code> = (0..self.members).map(|n| code(&geo(n), &format!("Place {n}"))).collect();
        for (n, code) in geo.iter_mut().enumerate().skip(1) {
            code.parent_id = Some(self::geo((n as u64 - 1) / 10));
        }
        let products = (0..self.products).map(|n| code(&product(n), &format!("Product {n}"))).collect();
        let genders = (0..GENDERS).map(|n| code(gender(n), &format!("Gender {n}"))).collect();
        let statuses = vec![code("p", "Preliminary"), code("r", "Revised")];
        let concept = |id: &str| Concept { id: id.to_owned(), name: english(id), ..Concept::default() };
        let columns = ["GEO", "PRODUCT", "GENDER", "TIME_PERIOD", "OBS_VALUE", "OBS_STATUS", "VECTOR"];
        let concepts = ConceptScheme {
            common: common("CS_99100001", "Concepts"),
            concepts: columns.iter().map(|id| concept(id)).collect(),
            is_partial: false,
        };
        let structure = DataStructure {
            common: common("DSD_99100001", "Structure"),
            dimensions: ["GEO", "PRODUCT", "GENDER"].iter().map(|id| dimension(id)).collect(),
            time_dimension: Some(TimeDimension {
                id: "TIME_PERIOD".to_owned(),
                concept: Some(concept_urn("TIME_PERIOD")),
                representation: Facet { data_type: Some("ObservationalTimePeriod".to_owned()), ..Facet::default() },
                ..TimeDimension::default()
            }),
            attributes: vec![attribute("OBS_STATUS", Some(enumerated("OBS_STATUS"))), attribute("VECTOR", None)],
            measures: vec![measure("OBS_VALUE")],
            ..DataStructure::default()
        };
        let dataflow = Dataflow {
            common: common("DF_99100001", "Made-up numbers"),
            structure: Some(urn("datastructure", "DataStructure", "DSD_99100001")),
            dimension_constraint: Vec::new(),
        };
        vec![
            codelist("GEO", geo),
            codelist("PRODUCT", products),
            codelist("GENDER", genders),
            codelist("OBS_STATUS", statuses),
            Artefact::ConceptScheme(concepts),
            Artefact::DataStructure(Box::new(structure)),
            Artefact::Dataflow(Box::new(dataflow)),
        ]
    }

    /// The value of row `n`, in hundredths.
    fn value(&self, n: u64, period: u64) -> u64 {
        let revision = if period + REVISED_PERIODS >= self.periods { self.revision } else { 0 };
        (n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(revision << 40) >> 33) % 10_000_000
    }

    /// The sum of all values, in hundredths.
    #[must_use]
    pub fn sum_in_hundredths(&self) -> u64 {
        (0..self.rows()).map(|n| self.value(n, n % self.periods)).sum()
    }

    fn batch(&self, from: u64, to: u64) -> Result<RecordBatch, SourceError> {
        let series = |n: u64| n / self.periods;
        let text = |value: &dyn Fn(u64) -> String| StringArray::from_iter_values((from..to).map(value));
        let columns: [StringArray; 7] = [
            text(&|n| geo(series(n) % self.members)),
            text(&|n| product(series(n) / self.members % self.products)),
            text(&|n| gender(series(n) / self.members / self.products).to_owned()),
            text(&|n| format!("{}", 2000 + n % self.periods)),
            text(&|n| {
                let hundredths = self.value(n, n % self.periods);
                format!("{}.{:02}", hundredths / 100, hundredths % 100)
            }),
            (from..to).map(|n| STATUSES[(n % 4) as usize]).collect(),
            text(&|n| format!("v{}", 1_000_000 + series(n))),
        ];
        let mut fields: Vec<Field> =
            self.columns().iter().map(|column| Field::new(&column.name, DataType::Utf8, true)).collect();
        fields.push(Field::new(LINE_COLUMN, DataType::Int64, false));
        let mut arrays: Vec<duckdb::arrow::array::ArrayRef> =
            columns.into_iter().map(|column| Arc::new(column) as _).collect();
        arrays.push(Arc::new(Int64Array::from_iter_values((from..to).map(|n| n as i64 + 2))));
        // The arrays have the length and type that the fields say.
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(|_| SourceError::Stopped)
    }
}

impl ObservationSource for Synthetic {
    fn columns(&self) -> Vec<ObservationColumn> {
        let column =
            |name: &str, role| ObservationColumn { name: name.to_owned(), role, column_type: ColumnType::Text };
        vec![
            column("GEO", ColumnRole::Dimension),
            column("PRODUCT", ColumnRole::Dimension),
            column("GENDER", ColumnRole::Dimension),
            column("TIME_PERIOD", ColumnRole::TimePeriod),
            column("OBS_VALUE", ColumnRole::Measure),
            column("OBS_STATUS", ColumnRole::Attribute),
            column("VECTOR", ColumnRole::Attribute),
        ]
    }

    fn expected_rows(&self) -> Option<u64> {
        Some(self.rows())
    }

    fn for_each_batch(&self, each: &mut dyn FnMut(RecordBatch) -> Result<(), Stop>) -> Result<(), SourceError> {
        let mut from = 0;
        while from < self.rows() {
            let to = (from + BATCH_ROWS).min(self.rows());
            each(self.batch(from, to)?)?;
            from = to;
        }
        Ok(())
    }
}

fn geo(n: u64) -> String {
    format!("G{n}")
}

fn product(n: u64) -> String {
    format!("1.{n}")
}

fn gender(n: u64) -> &'static str {
    if n == 0 { "F" } else { "M" }
}

fn urn(package: &str, class: &str, id: &str) -> UrnText {
    format!("urn:sdmx:org.sdmx.infomodel.{package}.{class}=STC:{id}(1.0)")
}

fn concept_urn(id: &str) -> UrnText {
    format!("{}.{id}", urn("conceptscheme", "Concept", "CS_99100001"))
}

fn english(text: &str) -> InternationalString {
    InternationalString::from([("en".to_owned(), text.to_owned())])
}

fn common(id: &str, name: &str) -> Maintained {
    Maintained {
        id: id.to_owned(),
        maintainer: "STC".to_owned(),
        version: "1.0".to_owned(),
        name: english(name),
        ..Maintained::default()
    }
}

fn code(id: &str, name: &str) -> Code {
    Code { id: id.to_owned(), name: english(name), ..Code::default() }
}

fn codelist(id: &str, codes: Vec<Code>) -> Artefact {
    Artefact::Codelist(Codelist { common: common(&format!("CL_{id}"), id), codes, ..Codelist::default() })
}

fn enumerated(id: &str) -> Representation {
    Representation::Enumerated(urn("codelist", "Codelist", &format!("CL_{id}")))
}

fn dimension(id: &str) -> Dimension {
    Dimension {
        id: id.to_owned(),
        concept: Some(concept_urn(id)),
        representation: Some(enumerated(id)),
        ..Dimension::default()
    }
}

fn attribute(id: &str, representation: Option<Representation>) -> Attribute {
    Attribute {
        id: id.to_owned(),
        usage: Usage::Optional,
        attachment: AttachmentLevel::Observation,
        related_dimensions: None,
        optional_dimensions: std::collections::BTreeSet::new(),
        related_measures: None,
        related_group: None,
        attachment_groups: Vec::new(),
        concept: Some(concept_urn(id)),
        representation,
        enumeration_format: None,
        min_occurs: 0,
        max_occurs: Some(1),
        annotations: Vec::new(),
        concept_role: Vec::new(),
        uri: None,
        links: Vec::new(),
    }
}

fn measure(id: &str) -> Measure {
    Measure {
        id: id.to_owned(),
        concept: Some(concept_urn(id)),
        representation: None,
        enumeration_format: None,
        min_occurs: 0,
        max_occurs: Some(1),
        usage: Usage::Optional,
        annotations: Vec::new(),
        concept_role: Vec::new(),
        uri: None,
        links: Vec::new(),
    }
}

fn ok<T, E>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(_) => unreachable!("a fixed value is of its form"),
    }
}
