//! Why data was not read.

use engine_rules::failure::{ActivityError, Disposition};

/// A file that is no SDMX-CSV, or a row that is not of its header's form.
#[derive(Debug, thiserror::Error)]
pub enum CsvError {
    /// The bytes could not be read.
    #[error("the data could not be read to its end")]
    Io(#[source] std::io::Error),
    /// Nothing at all. An answer of a service that has no data still has a header.
    #[error("the file is empty: SDMX-CSV has a header even without rows; ask for the data again")]
    Empty,
    /// Another first column.
    #[error(
        "the file begins with {found:?}: SDMX-CSV begins with DATAFLOW (1.0) or STRUCTURE (2.0) and a separator; give the \
         data as SDMX-CSV"
    )]
    NotSdmxCsv {
        /// The first line, cut short.
        found: String,
    },
    /// A column that must be there is not.
    #[error("the header has no column {expected}; give the data as SDMX-CSV 2.0")]
    NoColumn {
        /// The column.
        expected: &'static str,
    },
    /// Two columns of one name.
    #[error("the header has the column {found:?} twice; a component has one column")]
    ColumnTwice {
        /// The column.
        found: String,
    },
    /// A column of several values in a message that does not say how they are separated.
    #[error(
        "the column {found:?} has several values, and the first header does not say what is between them: expected STRUCTURE[;]"
    )]
    NoSeparatorWithin {
        /// The column.
        found: String,
    },
    /// A row of another width.
    #[error("line {line}: {found} fields, and the header has {expected}; quote a field that holds the separator")]
    Width {
        /// The line.
        line: u64,
        /// Its fields.
        found: usize,
        /// The header's.
        expected: usize,
    },
    /// Another kind of structure.
    #[error("line {line}: {found:?} is no kind of structure: expected dataflow, datastructure or dataprovision")]
    Kind {
        /// The line.
        line: u64,
        /// The kind.
        found: String,
    },
    /// What names no structure.
    #[error("line {line}: {found:?} names no structure: expected such as ESTAT:NA_MAIN(1.6.0)")]
    Id {
        /// The line.
        line: u64,
        /// The name.
        found: String,
    },
    /// Another action.
    #[error("line {line}: {found:?} is no action: expected I, A, M, R or D")]
    Action {
        /// The line.
        line: u64,
        /// The action.
        found: String,
    },
    /// A record that is no UTF-8.
    #[error("line {line}: this is not UTF-8; convert the file first")]
    Encoding {
        /// The line.
        line: u64,
    },
    /// A record larger than the limit.
    #[error("line {line}: a row is larger than {limit_bytes} bytes; a quote may not be closed")]
    TooLarge {
        /// The line on which it begins.
        line: u64,
        /// How large it may be.
        limit_bytes: usize,
    },
    /// What the CSV reader refuses besides.
    #[error("line {line}: this is not well-formed CSV: {found}")]
    Malformed {
        /// The line.
        line: u64,
        /// What is wrong.
        found: String,
    },
}

impl ActivityError for CsvError {
    fn code(&self) -> &'static str {
        match self {
            Self::Io(_) => "sdmx_csv.io",
            Self::Empty => "sdmx_csv.empty",
            Self::NotSdmxCsv { .. } => "sdmx_csv.not_sdmx_csv",
            Self::NoColumn { .. } => "sdmx_csv.no_column",
            Self::ColumnTwice { .. } => "sdmx_csv.column_twice",
            Self::NoSeparatorWithin { .. } => "sdmx_csv.no_separator_within",
            Self::Width { .. } => "sdmx_csv.width",
            Self::Kind { .. } => "sdmx_csv.kind",
            Self::Id { .. } => "sdmx_csv.id",
            Self::Action { .. } => "sdmx_csv.action",
            Self::Encoding { .. } => "sdmx_csv.encoding",
            Self::TooLarge { .. } => "sdmx_csv.too_large",
            Self::Malformed { .. } => "sdmx_csv.malformed",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Io(_) => Disposition::Retry,
            Self::Empty
            | Self::NotSdmxCsv { .. }
            | Self::NoColumn { .. }
            | Self::ColumnTwice { .. }
            | Self::NoSeparatorWithin { .. }
            | Self::Width { .. }
            | Self::Kind { .. }
            | Self::Id { .. }
            | Self::Action { .. }
            | Self::Encoding { .. }
            | Self::TooLarge { .. }
            | Self::Malformed { .. } => Disposition::Terminal,
        }
    }
}
