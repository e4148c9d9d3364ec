//! Why an edition was not built, sealed, read or copied.

use std::io;
use std::path::{Path, PathBuf};

use catalog_rules::ids::EditionId;
use catalog_rules::manifest::ManifestError;
use catalog_rules::sdmx::canonical::CanonicalError;
use catalog_rules::sdmx::model::UrnText;
use catalog_rules::seal_journal::JournalError;
use engine_rules::failure::{ActivityError, Disposition, Failure};

use super::source::LINE_COLUMN;
use crate::duck::DuckError;
use crate::fs::Trouble;
use crate::metadata_store::MetadataError;

/// What is wrong with a column of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnFault {
    /// Its name is empty or has a meaning of its own.
    Reserved,
    /// Another column has the name, whatever the case of its letters.
    Twice,
    /// It is a second time dimension.
    SecondTime,
    /// It is part of the key or a measure, and is not delivered as text.
    NotText,
    /// There is no dimension at all.
    NoKey,
}

impl ColumnFault {
    fn text(self) -> &'static str {
        match self {
            Self::Reserved => "the name is empty or reserved; name the component otherwise",
            Self::Twice => "two columns have this name, and the case of letters does not tell them apart",
            Self::SecondTime => "there is a time dimension already, and a data structure has at most one",
            Self::NotText => "part of the key or a measure, and not delivered as text; deliver its exact text",
            Self::NoKey => "no column is a dimension, so nothing tells one observation from another",
        }
    }
}

/// A value of a coded column that is no code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncodedValue {
    /// The value.
    pub value: String,
    /// How many rows have it.
    pub rows: u64,
}

/// Why an operation on an edition failed.
#[derive(Debug, thiserror::Error)]
pub enum EditionError {
    /// The filesystem failed.
    #[error("cannot {operation} {}", path.display())]
    Io {
        /// What was to be done.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// DuckDB failed.
    #[error(transparent)]
    Duck(#[from] DuckError),
    /// The artefact store failed.
    #[error(transparent)]
    Store(#[from] MetadataError),
    /// A stored artefact has no canonical text.
    #[error("edition §9: {urn} has no canonical text")]
    Canonical {
        /// The artefact.
        urn: UrnText,
        /// Why.
        #[source]
        source: CanonicalError,
    },
    /// A manifest is not read here.
    #[error("{} is not a manifest that is read here", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// Why.
        #[source]
        source: ManifestError,
    },
    /// A journal entry is not read here.
    #[error("{} is not a seal journal entry", path.display())]
    Journal {
        /// The entry.
        path: PathBuf,
        /// Why.
        #[source]
        source: JournalError,
    },
    /// The step was cancelled.
    #[error("cancelled between two batches of rows; the catalog is as it was")]
    Cancelled,

    /// Another edition of the product is unsealed.
    #[error(
        "edition §1: the product in {} has the unsealed edition {found}, and a product has at most one; edition \
         {wanted} was not started",
        product.display()
    )]
    OtherUnsealed {
        /// The product's folder.
        product: PathBuf,
        /// The unsealed edition.
        found: EditionId,
        /// The edition that was to be built.
        wanted: EditionId,
    },
    /// The edition is sealed already.
    #[error("edition §7: edition {edition_id} is sealed, and a sealed edition is never written; build a new one")]
    AlreadySealed {
        /// The edition.
        edition_id: EditionId,
    },
    /// A sealed edition is not discarded.
    #[error("edition §1: edition {edition_id} is sealed; only an unsealed edition is discarded")]
    DiscardsSealed {
        /// The edition.
        edition_id: EditionId,
    },
    /// There is no sealed edition.
    #[error("edition §1: {} holds no manifest.json, so no sealed edition is there", path.display())]
    NotSealed {
        /// The edition's folder.
        path: PathBuf,
    },
    /// There is no edition to seal.
    #[error("edition §7: {} holds no edition that was built: {missing} is missing; build it first", path.display())]
    NotBuilt {
        /// The edition's folder.
        path: PathBuf,
        /// The file that is missing.
        missing: &'static str,
    },
    /// A manifest is of another edition than the one asked for.
    #[error("edition §3: {} has {field} {found}, expected {expected}", path.display())]
    OtherEdition {
        /// The manifest or journal entry.
        path: PathBuf,
        /// Which field.
        field: &'static str,
        /// What it holds.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// An edition of a schema or format that is not read here.
    #[error("edition §4: {} has {field} {found}, expected {expected}; its files were not opened", path.display())]
    Version {
        /// The manifest.
        path: PathBuf,
        /// Which field.
        field: &'static str,
        /// What it holds.
        found: String,
        /// What is read here.
        expected: String,
    },
    /// The manifest is there, and the files are not those that it lists.
    #[error("edition §7: edition {edition_id} has a manifest, and its files are not those that it lists: {detail}")]
    SealedOtherwise {
        /// The edition.
        edition_id: EditionId,
        /// The first difference.
        detail: String,
    },

    /// The source refused itself.
    #[error("{}", .0.message)]
    Source(Failure),
    /// The columns are not those of a set of observations.
    #[error("edition §4: column {column:?} of the source: {}", fault.text())]
    Columns {
        /// The column.
        column: String,
        /// What is wrong.
        fault: ColumnFault,
    },
    /// A batch does not have the columns that the source announced.
    #[error("a batch of the source has the columns {found}; expected {expected}")]
    Batch {
        /// Names and types found.
        found: String,
        /// Names and types announced, and the line.
        expected: String,
    },
    /// A dimension has no value.
    #[error("line {line}: {column} is empty, and each observation needs a value for each dimension")]
    MissingKey {
        /// The column.
        column: String,
        /// The line of the source.
        line: i64,
    },
    /// A measure is no decimal number.
    #[error("line {line}: {column} is {found:?}; expected a decimal number such as -12.50, or nothing")]
    NotADecimal {
        /// The column.
        column: String,
        /// The text.
        found: String,
        /// The line of the source.
        line: i64,
    },
    /// The values of a measure need more digits than a decimal holds.
    #[error(
        "{column} needs {whole} digits before the point (line {whole_line}) and {fraction} after it (line \
         {fraction_line}); together at most {digits} are held exactly"
    )]
    TooWide {
        /// The column.
        column: String,
        /// Digits before the point.
        whole: usize,
        /// The line that needs them.
        whole_line: i64,
        /// Digits after the point.
        fraction: usize,
        /// The line that needs them.
        fraction_line: i64,
        /// How many there may be.
        digits: usize,
    },
    /// Two rows have one key.
    #[error(
        "lines {first_line} and {second_line} are the same observation, {}; each combination of dimensions and \
         period may occur once. Take one out of the source",
        key.iter().map(|(column, value)| format!("{column} {value}")).collect::<Vec<_>>().join(", ")
    )]
    Duplicate {
        /// The dimensions' values.
        key: Vec<(String, String)>,
        /// The first line.
        first_line: i64,
        /// Another one.
        second_line: i64,
    },
    /// A binding's table is not named as `schema.table`.
    #[error("edition §4: the binding of {dataflow} has the table {found:?}; expected schema.table")]
    TableLocation {
        /// The bound dataflow.
        dataflow: UrnText,
        /// What it names.
        found: String,
    },
    /// A binding does not name the columns of its table.
    #[error(
        "edition §4: the binding of {dataflow} maps {component} to the column {column}, which {table} does not have"
    )]
    BoundColumn {
        /// The bound dataflow.
        dataflow: UrnText,
        /// The component.
        component: String,
        /// The column.
        column: String,
        /// The table.
        table: String,
    },

    /// A coded column holds what is no code.
    #[error("edition §4: {}", uncoded_text(table, column, enumeration, values, *more))]
    Uncoded {
        /// The table, as `schema.table`.
        table: String,
        /// The column.
        column: String,
        /// The codelist, by URN.
        enumeration: UrnText,
        /// Some of the values, the most frequent first.
        values: Vec<UncodedValue>,
        /// How many more there are.
        more: u64,
    },
    /// The lake is not settled although it was told to settle.
    #[error("edition §1: {}: {found} after settling; expected none", path.display())]
    Unsettled {
        /// The catalog.
        path: PathBuf,
        /// What is left, such as `2 delete files`.
        found: String,
    },
    /// The lake references a file outside `data/`.
    #[error("edition §4: the lake of {} references {found}, which is not under data/", path.display())]
    OutsideData {
        /// The catalog.
        path: PathBuf,
        /// The file.
        found: String,
    },
    /// Something in the edition's folder cannot be listed.
    #[error("edition §2: {} is {found}; an edition holds plain files with UTF-8 names only", path.display())]
    NotListable {
        /// Where.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// A data file is not as the lake's catalog says.
    #[error("edition §7: {} has {found} bytes; the lake's catalog says {expected}", path.display())]
    DataSize {
        /// The data file.
        path: PathBuf,
        /// Its size, `None` when it is not there.
        found: SizeFound,
        /// The size recorded.
        expected: u64,
    },
    /// A file of the edition that is to be extended is gone or has another size.
    #[error(
        "edition §7: edition {edition_id}, which is to be extended, is damaged: {} {found}; expected {expected}",
        path.display()
    )]
    PreviousDamaged {
        /// The edition.
        edition_id: EditionId,
        /// The file.
        path: PathBuf,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// A copied file is not what the manifest lists.
    #[error("edition §8: the copy of {path} has {found}; the manifest lists {expected}")]
    CopyDiffers {
        /// The file's path in the manifest.
        path: String,
        /// Size or digest found.
        found: String,
        /// Size or digest listed.
        expected: String,
    },
    /// Another edition's manifest is at the destination.
    #[error("edition §8: {} is another manifest than the one that is copied; it is left as it is", path.display())]
    CopyTaken {
        /// The manifest at the destination.
        path: PathBuf,
    },
}

/// The size of a file, or its absence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeFound(pub Option<u64>);

impl std::fmt::Display for SizeFound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(bytes) => write!(f, "{bytes}"),
            None => f.write_str("no"),
        }
    }
}

/// How many values a refusal names.
pub(super) const UNCODED_NAMED: usize = 5;

pub(super) fn uncoded_text(table: &str, column: &str, enumeration: &str, values: &[UncodedValue], more: u64) -> String {
    let named: Vec<String> = values.iter().map(|one| format!("{:?} in {} rows", one.value, one.rows)).collect();
    let rest = if more > 0 { format!(" and {more} more values") } else { String::new() };
    format!(
        "{table}.{column} holds what is no code of {enumeration}: {}{rest}; expected its codes or NULL",
        named.join(", ")
    )
}

/// Names what was to be done to which file or folder.
pub(super) fn io_error(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> EditionError {
    let path = path.to_owned();
    move |source| EditionError::Io { operation, path, source }
}

impl ActivityError for EditionError {
    fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "edition.io",
            Self::Duck(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::Canonical { .. } => "catalog.canonical_text",
            Self::Manifest { .. } => "catalog.manifest",
            Self::Journal { .. } => "catalog.seal_journal",
            Self::Cancelled => "edition.cancelled",
            Self::OtherUnsealed { .. } => "catalog.unsealed_edition",
            Self::AlreadySealed { .. } => "catalog.already_sealed",
            Self::DiscardsSealed { .. } => "catalog.discards_sealed",
            Self::NotSealed { .. } => "catalog.not_sealed",
            Self::NotBuilt { .. } => "edition.not_built",
            Self::OtherEdition { .. } => "catalog.other_edition",
            Self::Version { .. } => "catalog.version",
            Self::SealedOtherwise { .. } => "catalog.sealed_otherwise",
            Self::Source(_) => "edition.source",
            Self::Columns { .. } => "edition.columns",
            Self::Batch { .. } => "edition.batch",
            Self::MissingKey { .. } => "edition.missing_key",
            Self::NotADecimal { .. } => "edition.not_a_decimal",
            Self::TooWide { .. } => "edition.too_wide",
            Self::Duplicate { .. } => "edition.duplicate_observation",
            Self::TableLocation { .. } => "edition.table_location",
            Self::BoundColumn { .. } => "edition.bound_column",
            Self::Uncoded { .. } => "catalog.uncoded_value",
            Self::Unsettled { .. } => "catalog.unsettled_lake",
            Self::OutsideData { .. } => "catalog.outside_data",
            Self::NotListable { .. } => "catalog.not_listable",
            Self::DataSize { .. } => "catalog.data_size",
            Self::PreviousDamaged { .. } => "catalog.previous_damaged",
            Self::CopyDiffers { .. } => "edition.copy_differs",
            Self::CopyTaken { .. } => "catalog.copy_taken",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Io { source, .. } => Trouble::of(source).disposition(),
            Self::PreviousDamaged { .. } => Disposition::Operator,
            Self::CopyDiffers { .. } => Disposition::Retry,
            Self::Duck(error) => error.disposition(),
            Self::Store(error) => error.disposition(),
            Self::Source(failure) => failure.disposition,
            Self::Canonical { .. }
            | Self::Manifest { .. }
            | Self::Journal { .. }
            | Self::Cancelled
            | Self::OtherUnsealed { .. }
            | Self::AlreadySealed { .. }
            | Self::DiscardsSealed { .. }
            | Self::NotSealed { .. }
            | Self::NotBuilt { .. }
            | Self::OtherEdition { .. }
            | Self::Version { .. }
            | Self::SealedOtherwise { .. }
            | Self::Columns { .. }
            | Self::Batch { .. }
            | Self::MissingKey { .. }
            | Self::NotADecimal { .. }
            | Self::TooWide { .. }
            | Self::Duplicate { .. }
            | Self::TableLocation { .. }
            | Self::BoundColumn { .. }
            | Self::Uncoded { .. }
            | Self::Unsettled { .. }
            | Self::OutsideData { .. }
            | Self::NotListable { .. }
            | Self::DataSize { .. }
            | Self::CopyTaken { .. } => Disposition::Terminal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Io { source, .. } => Trouble::of(source).hint().map(ToOwned::to_owned),
            Self::Duck(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::Source(failure) => failure.hint.clone(),
            Self::OtherUnsealed { found, product, .. } => Some(format!(
                "the run that builds it may be interrupted or blocked: jobctl runs list --product names it, and jobctl runs \
                 resume goes on with it; if there is none: jobctl edition discard {} --reason …",
                crate::hint::word(&product.join(found.as_str()))
            )),
            Self::PreviousDamaged { edition_id, .. } => Some(format!(
                "restore it from a backup, or take away what does not belong there; jobctl edition check {edition_id} --at \
                 receive names every difference; then: jobctl runs resume RUN"
            )),
            Self::AlreadySealed { .. } => Some("start a new run: jobctl run publish --product …".to_owned()),
            Self::SealedOtherwise { .. } => {
                Some("jobctl edition check EDITION --at publish names every difference".to_owned())
            }
            Self::NotBuilt { .. } => Some("start a new run: jobctl run publish --product …".to_owned()),
            Self::Columns { .. } | Self::Batch { .. } => Some(format!(
                "a source gives its columns as text and then {LINE_COLUMN}; this one does not, so report it as a fault \
                 of the program"
            )),
            Self::Canonical { .. }
            | Self::Manifest { .. }
            | Self::Journal { .. }
            | Self::Cancelled
            | Self::DiscardsSealed { .. }
            | Self::NotSealed { .. }
            | Self::OtherEdition { .. }
            | Self::Version { .. }
            | Self::MissingKey { .. }
            | Self::NotADecimal { .. }
            | Self::TooWide { .. }
            | Self::Duplicate { .. }
            | Self::TableLocation { .. }
            | Self::BoundColumn { .. }
            | Self::Uncoded { .. }
            | Self::Unsettled { .. }
            | Self::OutsideData { .. }
            | Self::NotListable { .. }
            | Self::DataSize { .. }
            | Self::CopyDiffers { .. }
            | Self::CopyTaken { .. } => None,
        }
    }

    fn to_failure(&self) -> Failure {
        if let Self::Source(failure) = self {
            return failure.clone();
        }
        let mut message = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            let text = cause.to_string();
            if !message.contains(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            source = cause.source();
        }
        Failure { code: self.code().to_owned(), message, disposition: self.disposition(), hint: self.hint() }
    }
}
