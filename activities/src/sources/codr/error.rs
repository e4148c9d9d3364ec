//! Why a source is refused. Each variant names the file, the place in it, what was found and what was expected; its
//! hint says what to do.

use std::io;

use engine_rules::failure::{ActivityError, Disposition};

use crate::fs::Trouble;

/// A source that is not what it says: nothing of it is published.
///
/// `file` is a path, or `archive.zip!member.csv`; `line` is a physical line, from 1.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each field is named for what it holds, and each variant's text says the rest")]
pub enum CodrError {
    #[error("{file} cannot be read while {doing}")]
    Io { file: String, doing: &'static str, source: io::Error },

    #[error("there is no {file}; expected {expected}")]
    NotFound { file: String, expected: &'static str },

    #[error("{file} is {found}; expected a regular file: a full-table zip or a CSV")]
    NotAFile { file: String, found: &'static str },

    #[error("{found} source files were given for product {product_id}; expected one, or two of which one is French")]
    FileCount { product_id: String, found: usize },

    #[error("the folder {folder} holds no {expected}")]
    NoDataFile { folder: String, expected: String },

    #[error("{file} is not the file that this run began with: recorded {recorded}, found {found}")]
    SourceChanged { file: String, recorded: String, found: String },

    #[error("{file} is not a whole zip archive")]
    BadArchive { file: String, source: io::Error },

    #[error(
        "the archive {file} is packed in a way that is not read; expected deflated or stored members, without a password"
    )]
    ArchivePacking { file: String, source: io::Error },

    #[error("the archive {file} holds {}; expected exactly {expected}", list(.found))]
    ArchiveMembers { file: String, found: Vec<String>, expected: String },

    #[error("{file}, line {line}: the table is product {found:?}; expected {expected:?}")]
    OtherProduct { file: String, line: u64, found: String, expected: String },

    #[error("{file} is named for product {found:?}; expected {expected:?}")]
    NamedForOther { file: String, found: String, expected: String },

    #[error("{file}: dimension {position} is called {found:?}; expected {expected:?}, as in {expected_in}")]
    DimensionName { file: String, position: usize, found: String, expected: String, expected_in: String },

    #[error("{file} has {found} dimensions; expected {expected}, as in {expected_in}")]
    DimensionCount { file: String, found: usize, expected: usize, expected_in: String },

    #[error(
        "{file} is a table as it is displayed, not a table of data: its first line is {found:?}; expected a header that begins with REF_DATE, GEO, DGUID"
    )]
    DisplayPivot { file: String, found: String },

    #[error("{file} is {found}, not the rows of a table; expected a header that begins with REF_DATE, GEO, DGUID")]
    OtherKind { file: String, found: OtherKind },

    #[error("{file}, line 1: column {position} is {found:?}; expected {expected}")]
    WrongColumn { file: String, position: usize, found: String, expected: String },

    #[error("{file} is empty; expected a header and rows")]
    EmptyFile { file: String },

    #[error("{file} has a header and no rows; expected at least one row")]
    NoRows { file: String },

    #[error("{file}, line {line}: the bytes are not UTF-8")]
    NotUtf8 { file: String, line: u64 },

    #[error("{file}, line {line}: there is a zero byte; expected text")]
    ZeroByte { file: String, line: u64 },

    #[error(
        "{file}, line {line}: the record that begins here does not end within {limit} bytes; expected a closing quote"
    )]
    RecordTooLong { file: String, line: u64, limit: usize },

    #[error("{file}, line {line}: {found} cells; expected {expected}")]
    CellCount { file: String, line: u64, found: usize, expected: usize },

    #[error("{file}, line {line}: the coordinate is missing; expected {expected} member ids joined by dots")]
    MissingCoordinate { file: String, line: u64, expected: usize },

    #[error(
        "{file}, line {line}: the coordinate {found:?} has {parts} parts; expected {expected}, one member id per dimension"
    )]
    CoordinateParts { file: String, line: u64, found: String, parts: usize, expected: usize },

    #[error(
        "{file}, line {line}: part {part} of the coordinate {found:?} is no member id; expected a number without leading zeros"
    )]
    BadCoordinate { file: String, line: u64, found: String, part: usize },

    #[error(
        "{file}, line {line}: the coordinate {coordinate:?} names member {member} of dimension {position} ({dimension}), which the member list does not hold; expected one of its {members} members, {lowest} to {highest}"
    )]
    UnknownMember {
        file: String,
        line: u64,
        coordinate: String,
        position: usize,
        dimension: String,
        member: u32,
        members: usize,
        lowest: u32,
        highest: u32,
    },

    #[error("{file}, line {line}: {column} is {found:?}; expected {expected}")]
    BadValue { file: String, line: u64, column: String, found: String, expected: &'static str },

    #[error(
        "{file}, line {line}: the value {found:?} makes the column {digits} digits wide ({integer_digits} before and {scale} after the point); expected at most 38"
    )]
    ValueTooWide { file: String, line: u64, found: String, digits: u32, integer_digits: u32, scale: u32 },

    #[error("{file}, line {line}: the reference period is {found:?}; expected YYYY, YYYY-MM, YYYY-MM-DD or YYYY/YYYY")]
    BadPeriod { file: String, line: u64, found: String },

    #[error("{file}, line {line}: {column} is {found:?}; expected {expected}")]
    BadCell { file: String, line: u64, column: &'static str, found: String, expected: &'static str },

    #[error("{file}, line {line}: the status {found:?} is none that is known; expected one of {expected}")]
    UnknownStatus { file: String, line: u64, found: String, expected: &'static str },

    #[error("{file}, line {line}: a record of the block {block} is {found:?}; expected {expected}")]
    MetadataRecord { file: String, line: u64, block: &'static str, found: String, expected: &'static str },

    #[error("{file} has no block {block}; expected {expected}")]
    MetadataBlock { file: String, block: &'static str, expected: &'static str },

    #[error("{file} is larger than {limit} bytes; expected a metadata CSV, which is far smaller")]
    MetadataTooLarge { file: String, limit: u64 },

    #[error(
        "{file}, line {line}: member {member} of dimension {position} was listed before, at line {first_line}; expected each member once"
    )]
    DuplicateMember { file: String, line: u64, first_line: u64, position: usize, member: u32 },

    #[error(
        "{file}: the parents of member {member} of dimension {position} ({dimension}) lead back to itself; expected a tree"
    )]
    ParentCycle { file: String, position: usize, dimension: String, member: u32 },

    #[error("{first} and {second} are both {language}; expected one English and one French file")]
    SameLanguage { first: String, second: String, language: super::Language },

    #[error(
        "member {member} of dimension {position} is {in_first} in {first}, and {in_second} in {second}; expected the same members with the same parents in both languages"
    )]
    LanguagesDisagree {
        first: String,
        second: String,
        position: usize,
        member: u32,
        in_first: String,
        in_second: String,
    },

    #[error(
        "unit {unit} is {in_first} in {first}, and {in_second} in {second}; expected the same units in both languages"
    )]
    LanguageUnits { first: String, second: String, unit: u32, in_first: String, in_second: String },

    #[error("{first} has {first_rows} observations and {second} has {second_rows}; expected as many in both languages")]
    LanguageRows { first: String, second: String, first_rows: u64, second_rows: u64 },

    #[error("the rows of {file} do not fit their columns")]
    Batch { file: String, source: duckdb::arrow::error::ArrowError },

    #[error(
        "{file} has {found} observations; expected {expected}, the number of data points in the table's description"
    )]
    RowCount { file: String, found: u64, expected: u64 },

    #[error(
        "{file}, line {second_line}: the period {time_period:?} and coordinate {coordinate:?} were given before, at line {first_line}; expected each pair once"
    )]
    DuplicateObservation { file: String, time_period: String, coordinate: String, first_line: u64, second_line: u64 },
}

/// A file of Statistics Canada's that is no table's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherKind {
    /// The metadata CSV of a table.
    Metadata,
    /// A day's delta.
    Delta,
}

impl std::fmt::Display for OtherKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Metadata => "the metadata of a table",
            Self::Delta => "a delta file",
        })
    }
}

/// Up to ten names, quoted, and how many more there are.
fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    let told: Vec<String> = names.iter().take(10).map(|name| format!("{name:?}")).collect();
    match names.len().saturating_sub(10) {
        0 => told.join(", "),
        more => format!("{} and {more} more", told.join(", ")),
    }
}

const WHOLE_TABLE: &str = "download the table again with \"Download entire table\" (CSV); it is a zip with <product>.csv and <product>_MetaData.csv";

impl ActivityError for CodrError {
    fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "codr.io",
            Self::NotFound { .. } => "codr.not_found",
            Self::NotAFile { .. } => "codr.not_a_file",
            Self::FileCount { .. } => "codr.file_count",
            Self::NoDataFile { .. } => "codr.no_data_file",
            Self::SourceChanged { .. } => "codr.source_changed",
            Self::BadArchive { .. } => "codr.bad_archive",
            Self::ArchivePacking { .. } => "codr.archive_packing",
            Self::ArchiveMembers { .. } => "codr.archive_members",
            Self::OtherProduct { .. } | Self::NamedForOther { .. } => "codr.other_product",
            Self::DimensionName { .. } => "codr.dimension_name",
            Self::DimensionCount { .. } => "codr.dimension_count",
            Self::DisplayPivot { .. } => "codr.display_pivot",
            Self::OtherKind { .. } => "codr.other_kind",
            Self::WrongColumn { .. } => "codr.wrong_column",
            Self::EmptyFile { .. } => "codr.empty_file",
            Self::NoRows { .. } => "codr.no_rows",
            Self::NotUtf8 { .. } => "codr.not_utf8",
            Self::ZeroByte { .. } => "codr.zero_byte",
            Self::RecordTooLong { .. } => "codr.record_too_long",
            Self::CellCount { .. } => "codr.cell_count",
            Self::MissingCoordinate { .. } => "codr.missing_coordinate",
            Self::CoordinateParts { .. } => "codr.coordinate_parts",
            Self::BadCoordinate { .. } => "codr.bad_coordinate",
            Self::UnknownMember { .. } => "codr.unknown_member",
            Self::BadValue { .. } => "codr.bad_value",
            Self::ValueTooWide { .. } => "codr.value_too_wide",
            Self::BadPeriod { .. } => "codr.bad_period",
            Self::BadCell { .. } => "codr.bad_cell",
            Self::UnknownStatus { .. } => "codr.unknown_status",
            Self::MetadataRecord { .. } => "codr.metadata_record",
            Self::MetadataBlock { .. } => "codr.metadata_block",
            Self::MetadataTooLarge { .. } => "codr.metadata_too_large",
            Self::DuplicateMember { .. } => "codr.duplicate_member",
            Self::ParentCycle { .. } => "codr.parent_cycle",
            Self::SameLanguage { .. } => "codr.same_language",
            Self::LanguagesDisagree { .. } => "codr.languages_disagree",
            Self::LanguageUnits { .. } => "codr.language_units",
            Self::LanguageRows { .. } => "codr.language_rows",
            Self::Batch { .. } => "codr.batch",
            Self::RowCount { .. } => "codr.row_count",
            Self::DuplicateObservation { .. } => "codr.duplicate_observation",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            // To wait does not give a permission.
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => Disposition::Terminal,
            // A disk or a network share may answer the next time; everything else is in the files themselves.
            Self::Io { source, .. } => Trouble::of(source).disposition(),
            Self::NotFound { .. }
            | Self::NotAFile { .. }
            | Self::FileCount { .. }
            | Self::NoDataFile { .. }
            | Self::SourceChanged { .. }
            | Self::BadArchive { .. }
            | Self::ArchivePacking { .. }
            | Self::ArchiveMembers { .. }
            | Self::OtherProduct { .. }
            | Self::NamedForOther { .. }
            | Self::DimensionName { .. }
            | Self::DimensionCount { .. }
            | Self::DisplayPivot { .. }
            | Self::OtherKind { .. }
            | Self::WrongColumn { .. }
            | Self::EmptyFile { .. }
            | Self::NoRows { .. }
            | Self::NotUtf8 { .. }
            | Self::ZeroByte { .. }
            | Self::RecordTooLong { .. }
            | Self::CellCount { .. }
            | Self::MissingCoordinate { .. }
            | Self::CoordinateParts { .. }
            | Self::BadCoordinate { .. }
            | Self::UnknownMember { .. }
            | Self::BadValue { .. }
            | Self::ValueTooWide { .. }
            | Self::BadPeriod { .. }
            | Self::BadCell { .. }
            | Self::UnknownStatus { .. }
            | Self::MetadataRecord { .. }
            | Self::MetadataBlock { .. }
            | Self::MetadataTooLarge { .. }
            | Self::DuplicateMember { .. }
            | Self::ParentCycle { .. }
            | Self::SameLanguage { .. }
            | Self::LanguagesDisagree { .. }
            | Self::LanguageUnits { .. }
            | Self::LanguageRows { .. }
            | Self::Batch { .. }
            | Self::RowCount { .. }
            | Self::DuplicateObservation { .. } => Disposition::Terminal,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Io { source, .. } => match self.disposition() {
                Disposition::Operator => Trouble::of(source).hint().unwrap_or_default(),
                Disposition::Retry | Disposition::Terminal => {
                    "look at the disk and the file's permissions, then publish again"
                }
            },
            Self::NotFound { .. } | Self::NoDataFile { .. } => {
                "check the path given with --source, or the product's entry in jobctl.toml"
            }
            Self::NotAFile { .. } => {
                "the bytes are read more than once: save the download as a file on a disk, and give the path of that file"
            }
            Self::FileCount { .. } => "give one --source per language",
            Self::SourceChanged { .. } => {
                "publish again to take the file as it is now; to take the recorded one, put it back first"
            }
            Self::BadArchive { .. } => "the download is not complete: download the file again",
            Self::ArchivePacking { .. } => {
                "take the zip as it was downloaded, or unpack it and give the folder with both CSVs"
            }
            Self::OtherKind { found: OtherKind::Metadata, .. } => {
                "give this file with --metadata and the table's data with --source, or the folder or the zip that \
                 holds both"
            }
            Self::OtherKind { found: OtherKind::Delta, .. } => {
                "a delta holds changes of many tables; a publish takes one whole table: download it with \
                 \"Download entire table\" (CSV)"
            }
            Self::ArchiveMembers { .. }
            | Self::DisplayPivot { .. }
            | Self::WrongColumn { .. }
            | Self::EmptyFile { .. }
            | Self::NoRows { .. } => WHOLE_TABLE,
            Self::OtherProduct { .. } | Self::NamedForOther { .. } => {
                "give the files of the product that --product names"
            }
            Self::DimensionName { .. } | Self::DimensionCount { .. } => {
                "take the data and its metadata CSV from one download; without --metadata and without a metadata CSV \
                 beside the data, members are taken from the data"
            }
            Self::NotUtf8 { .. } => {
                "the file was saved again in another encoding: take the file as it was downloaded, in UTF-8"
            }
            Self::ZeroByte { .. }
            | Self::RecordTooLong { .. }
            | Self::CellCount { .. }
            | Self::MissingCoordinate { .. }
            | Self::CoordinateParts { .. }
            | Self::BadCoordinate { .. }
            | Self::BadPeriod { .. }
            | Self::BadCell { .. }
            | Self::UnknownStatus { .. }
            | Self::DuplicateObservation { .. } => {
                "the file was changed or cut after its download: download it again; if the original has this line, \
                 report it to the table's producer"
            }
            Self::UnknownMember { .. } => {
                "take the metadata CSV of the same release as the data; it lists every member of the table"
            }
            Self::BadValue { .. } => {
                "values are plain decimals, with a point in an English file and a comma in a French one, without \
                 exponents and thousands separators: take the file as it was downloaded"
            }
            Self::ValueTooWide { .. } => "no exact decimal column holds these values; report them to the producer",
            Self::MetadataRecord { .. }
            | Self::MetadataBlock { .. }
            | Self::MetadataTooLarge { .. }
            | Self::DuplicateMember { .. }
            | Self::ParentCycle { .. } => {
                "take the metadata CSV as it was downloaded; if the original is so, report it to the producer"
            }
            Self::SameLanguage { .. } => "give the English and the French file of one release",
            Self::LanguagesDisagree { .. } | Self::LanguageUnits { .. } | Self::LanguageRows { .. } => {
                "take both files from the same release; one of them is older"
            }
            Self::Batch { .. } => "this is a fault of the program: report it with the file",
            Self::RowCount { .. } => {
                "the file and the table's description are of different releases, or the file is cut: download both again"
            }
        };
        Some(hint.to_owned())
    }
}
