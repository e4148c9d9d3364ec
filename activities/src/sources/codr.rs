//! Statistics Canada's full tables: a zip or a CSV with its metadata CSV, in English, French or both.
//!
//! [`identify`] looks at the files and says which bytes they are; a run records that in its first step. [`open`] makes
//! sure that they are still the same. [`CodrSource::for_each_batch`] reads the rows in memory that does not grow with
//! the table, and gives the table as SDMX at the end, when the units and the width of the values are known.
//!
//! A source that is not what it says is refused with the file, the line or member, what was found and what was
//! expected ([`CodrError`]); what is odd but can be published is a [`Finding`].

mod decimal;
mod dialect;
mod error;
mod finding;
mod frozen;
mod language;
mod locate;
mod marks;
mod members;
mod metadata;
mod period;
mod reader;
mod record;
mod scan;
mod sdmx;
mod table;

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog_rules::ids::ProductId;
use catalog_rules::sdmx::model::{Artefact, InternationalString};
use duckdb::arrow::record_batch::RecordBatch;

pub use error::{CodrError, OtherKind};
pub use finding::{Finding, FindingKind};
pub use language::Language;
pub use locate::{FileIdentity, SourceIdentity, SourceSpec};
pub use scan::ReadError;
pub use table::{Column, ColumnRole, LAKE_SCHEMA, LINE_COLUMN, OBS_VALUE, SqlType, TIME_PERIOD, TableLayout};

use dialect::{Dialect, Layout};
use finding::Findings;
use locate::{DataFile, Located};
use members::{Described, Dimension};
use metadata::Metadata;
use scan::{MOST_DIGITS, Numbers, Scanned, Units};

/// A data file and what its header tells.
struct Data {
    file: DataFile,
    delimiter: u8,
    dialect: Dialect,
}

/// A source whose files are open, whose header and metadata were read, and whose rows were not yet.
pub struct CodrSource {
    product_id: ProductId,
    expected_rows: Option<u64>,
    identity: SourceIdentity,
    /// English first.
    data: Vec<Data>,
    /// English first.
    metadata: Vec<Metadata>,
    dimensions: Vec<Dimension>,
    table: TableLayout,
    findings: Findings,
}

/// What a product is, once its rows were read.
#[derive(Debug, Clone, PartialEq)]
pub struct ProductStructure {
    /// Codelists, the concept scheme, the data structure and the dataflow, each reference of which is among them.
    pub artefacts: Vec<Artefact>,
    /// The URN of the dataflow.
    pub dataflow: String,
    /// The URN of the data structure.
    pub data_structure: String,
    /// The table in the lake; the measure's type holds every value exactly.
    pub table: TableLayout,
    /// How many observations the rows hold.
    pub observations: u64,
    /// The most digits of a value after the point, among values and declared decimals.
    pub max_scale: u32,
    /// The most digits of a value before the point, without leading zeros.
    pub max_integer_digits: u32,
    /// The file whose rows were delivered, and its language.
    pub rows_from: (String, Language),
    /// What a person should know.
    pub findings: Vec<Finding>,
}

/// Which files `spec` leads to, with their sizes and digests. The headers and the metadata are read too, so that a
/// wrong file is refused here. Reads each file once for its digest; changes nothing; repeats are safe.
///
/// # Errors
/// Any [`CodrError`] about the files, their headers or their metadata.
pub fn identify(spec: &SourceSpec) -> Result<SourceIdentity, CodrError> {
    load(spec, None).map(|source| source.identity)
}

/// Opens the source for reading, after making sure that its files are those of `recorded`. Repeats are safe.
///
/// # Errors
/// [`CodrError::SourceChanged`] when a file has other bytes than recorded; else as [`identify`].
pub fn open(spec: &SourceSpec, recorded: &SourceIdentity) -> Result<CodrSource, CodrError> {
    load(spec, Some(recorded))
}

fn load(spec: &SourceSpec, recorded: Option<&SourceIdentity>) -> Result<CodrSource, CodrError> {
    let Located { data, metadata, identity } = locate::locate(spec)?;
    if let Some(recorded) = recorded {
        recorded.compare(&identity)?;
    }
    let mut findings = Findings::default();
    let mut files: Vec<Data> = Vec::new();
    for file in data {
        files.push(read_header(file)?);
    }
    for file in &files {
        named_for(&file.file.open.path, spec.product_id.as_str())?;
    }
    files.sort_by_key(|file| file.dialect.language);
    if let [first, second] = files.as_slice()
        && first.dialect.language == second.dialect.language
    {
        return Err(CodrError::SameLanguage {
            first: first.file.name.to_string(),
            second: second.file.name.to_string(),
            language: first.dialect.language,
        });
    }
    let mut described: BTreeMap<Language, Metadata> = BTreeMap::new();
    for (at, file) in metadata.iter().enumerate() {
        let parsed = metadata::parse(&file.name, &file.bytes, &mut findings)?;
        parsed.of_product(spec.product_id.as_str())?;
        if at < spec.metadata.len()
            && let Some(first) = described.get(&parsed.language)
        {
            let (first, second) = (first.file.to_string(), parsed.file.to_string());
            return Err(CodrError::SameLanguage { first, second, language: parsed.language });
        }
        described.entry(parsed.language).or_insert(parsed);
    }
    let metadata: Vec<Metadata> = described.into_values().collect();
    let views: Vec<Described<'_>> =
        files.iter().map(|file| Described { file: &file.file.name, dialect: &file.dialect }).collect();
    let dimensions = members::dimensions(&views, &metadata, &mut findings)?;
    if let [first, second] = files.as_slice() {
        same_layout(first, second)?;
    }
    let table = TableLayout::of(&spec.product_id, &files[0].dialect);
    Ok(CodrSource {
        product_id: spec.product_id.clone(),
        expected_rows: spec.expected_rows,
        identity,
        data: files,
        metadata,
        dimensions,
        table,
        findings,
    })
}

fn read_header(file: DataFile) -> Result<Data, CodrError> {
    let name = Arc::clone(&file.name);
    let (delimiter, dialect) = file.with_reader(|input| -> Result<_, CodrError> {
        let mut reader = reader::RecordReader::new(input, Arc::clone(&name), file.archived())?;
        let delimiter = dialect::delimiter(&reader.first_line()?);
        reader.set_delimiter(delimiter);
        let Some(header) = reader.next()? else {
            return Err(CodrError::EmptyFile { file: name.to_string() });
        };
        let cells: Vec<&str> = (0..header.len()).map(|at| header.cell(at)).collect();
        Ok((delimiter, dialect::recognise(&name, &cells)?))
    })?;
    Ok(Data { file, delimiter, dialect })
}

/// Refuses a file that is named after another product: its name begins with eight digits that are not the product's.
fn named_for(path: &str, product_id: &str) -> Result<(), CodrError> {
    let name = std::path::Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    let table = &name[..digits.min(8)];
    // Ten digits are a table and a view of it.
    if !(digits == 8 || digits == 10) || table == product_id {
        return Ok(());
    }
    Err(CodrError::NamedForOther { file: path.to_owned(), found: table.to_owned(), expected: product_id.to_owned() })
}

/// Both languages must have the same layout, and in a census table the same members side by side.
fn same_layout(first: &Data, second: &Data) -> Result<(), CodrError> {
    let ids = |data: &Data| match &data.dialect.layout {
        Layout::Ordinary => Vec::new(),
        Layout::Census { members } => members.iter().map(|member| member.id).collect(),
    };
    if ids(first) == ids(second) {
        return Ok(());
    }
    Err(CodrError::WrongColumn {
        file: second.file.name.to_string(),
        position: 1,
        found: format!("value columns {:?}", ids(second)),
        expected: format!("value columns {:?}, as in {}", ids(first), first.file.name),
    })
}

impl CodrSource {
    /// Which bytes the source is.
    #[must_use]
    pub fn identity(&self) -> &SourceIdentity {
        &self.identity
    }

    /// The table that the batches fill. The measure is `VARCHAR` here: its exact type is known after the rows.
    #[must_use]
    pub fn table(&self) -> &TableLayout {
        &self.table
    }

    /// The URNs of the dataflow and of the data structure that the rows will have.
    #[must_use]
    pub fn urns(&self) -> (String, String) {
        let ids = sdmx::Ids::of(&self.product_id);
        (ids.flow_urn(), ids.structure_urn())
    }

    /// The file whose rows are delivered, and its language: the English one where there are both.
    #[must_use]
    pub fn rows_from(&self) -> (&str, Language) {
        (&self.data[0].file.name, self.data[0].dialect.language)
    }

    /// Reads every row and hands the observations to `receive`, in batches of the columns of [`table`](Self::table)
    /// and [`LINE_COLUMN`], in the order of the file. The measure is the exact decimal as text, NULL for a blank. With
    /// two languages the second file is read too, for its labels, and must hold the same members and as many rows.
    /// Then gives the product's structure.
    ///
    /// What it does not see is a (period, coordinate) that comes twice, since that takes memory in proportion to the
    /// table: a writer finds it by the key columns and refuses it as [`CodrError::DuplicateObservation`].
    ///
    /// # Errors
    /// [`ReadError::Source`] when the source is refused, [`ReadError::Receiver`] with `receive`'s own error. Batches
    /// delivered before an error are to be thrown away.
    pub fn for_each_batch<E>(
        mut self,
        receive: &mut dyn FnMut(RecordBatch) -> Result<(), E>,
    ) -> Result<ProductStructure, ReadError<E>> {
        let mut scans: Vec<Scanned> = Vec::with_capacity(self.data.len());
        let mut receive = Some(receive);
        for data in &self.data {
            let table = receive.take().map(|receive| (&self.table, receive));
            let source = scan::Source {
                file: &data.file.name,
                archived: data.file.archived(),
                delimiter: data.delimiter,
                dialect: &data.dialect,
                dimensions: &self.dimensions,
            };
            let findings = &mut self.findings;
            let scanned = data.file.with_reader(|input| scan::scan(input, source, findings, table))?;
            data.file.open.unchanged()?;
            scans.push(scanned);
        }
        self.finish(scans).map_err(ReadError::Source)
    }

    fn finish(mut self, scans: Vec<Scanned>) -> Result<ProductStructure, CodrError> {
        let rows = &self.data[0].file.name;
        let observations = scans[0].observations;
        if let Some(expected) = self.expected_rows
            && expected != observations
        {
            return Err(CodrError::RowCount { file: rows.to_string(), found: observations, expected });
        }
        if let [first, second] = scans.as_slice() {
            languages_agree(&self.data, first, second)?;
        }
        let mut units: BTreeMap<u32, InternationalString> = BTreeMap::new();
        for (data, scanned) in self.data.iter().zip(&scans) {
            let language = data.dialect.language;
            for (dimension, slots) in self.dimensions.iter_mut().zip(&scanned.slots) {
                members::name_from_labels(dimension, slots, language);
            }
            for (id, text) in &scanned.units.texts {
                let texts = units.entry(*id).or_default();
                if !text.is_empty() {
                    texts.insert(language.tag().to_owned(), text.clone());
                }
            }
        }
        let numbers = scans[0].numbers;
        let (scale, precision) = decimal_type(numbers);
        let mut table = self.table;
        for column in &mut table.columns {
            if column.role == ColumnRole::Measure {
                column.sql_type = SqlType::Decimal { precision, scale };
            }
        }
        let languages: Vec<Language> = self.data.iter().map(|data| data.dialect.language).collect();
        let parts = sdmx::Parts {
            product_id: &self.product_id,
            languages: &languages,
            dimensions: &self.dimensions,
            metadata: &self.metadata,
            units: (self.data[0].dialect.layout == Layout::Ordinary).then_some(&units),
        };
        let artefacts = sdmx::artefacts(&parts, rows, &mut self.findings);
        let ids = sdmx::Ids::of(&self.product_id);
        Ok(ProductStructure {
            artefacts,
            dataflow: ids.flow_urn(),
            data_structure: ids.structure_urn(),
            table,
            observations,
            max_scale: scale,
            max_integer_digits: numbers.integer_digits,
            rows_from: (rows.to_string(), languages[0]),
            findings: self.findings.into_list(),
        })
    }
}

/// The scale and precision that hold every value. Declared decimals count too, so that a release whose last digits
/// happen to be missing keeps the type of the one before.
fn decimal_type(numbers: Numbers) -> (u32, u32) {
    let declared = numbers.scale.max(numbers.declared);
    let scale = if numbers.integer_digits + declared <= MOST_DIGITS { declared } else { numbers.scale };
    let precision = if numbers.integer_digits + scale <= 18 { 18 } else { MOST_DIGITS };
    (scale, precision)
}

/// Both files must name the same members and units in as many rows.
fn languages_agree(data: &[Data], first: &Scanned, second: &Scanned) -> Result<(), CodrError> {
    let names = || (data[0].file.name.to_string(), data[1].file.name.to_string());
    if first.observations != second.observations {
        let (one, two) = names();
        return Err(CodrError::LanguageRows {
            first: one,
            second: two,
            first_rows: first.observations,
            second_rows: second.observations,
        });
    }
    for (at, (one, two)) in first.slots.iter().zip(&second.slots).enumerate() {
        let seen = |slots: &members::Slots| -> std::collections::BTreeSet<u32> {
            slots.ids.iter().zip(&slots.first_labels).filter(|(_, label)| label.is_some()).map(|(id, _)| *id).collect()
        };
        let (one, two) = (seen(one), seen(two));
        if let Some(member) = one.symmetric_difference(&two).next() {
            let told = |set: &std::collections::BTreeSet<u32>| {
                if set.contains(member) { "used" } else { "not used" }.to_owned()
            };
            let (in_first, in_second) = (told(&one), told(&two));
            let (first, second) = names();
            return Err(CodrError::LanguagesDisagree {
                first,
                second,
                position: at + 1,
                member: *member,
                in_first,
                in_second,
            });
        }
    }
    units_agree(&first.units, &second.units, names)
}

fn units_agree(first: &Units, second: &Units, names: impl FnOnce() -> (String, String)) -> Result<(), CodrError> {
    let other = first.texts.keys().find(|id| !second.texts.contains_key(id));
    let Some(unit) = other.or_else(|| second.texts.keys().find(|id| !first.texts.contains_key(id))) else {
        return Ok(());
    };
    let told = |units: &Units| if units.texts.contains_key(unit) { "used" } else { "not used" }.to_owned();
    let (in_first, in_second) = (told(first), told(second));
    let (first, second) = names();
    Err(CodrError::LanguageUnits { first, second, unit: *unit, in_first, in_second })
}

#[cfg(test)]
mod tests;
