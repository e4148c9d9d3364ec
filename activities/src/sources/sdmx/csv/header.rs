//! The first record.

use ::csv::StringRecord;

use super::Components;
use super::error::CsvError;

/// The version of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// SDMX-CSV 1.0: the first column is `DATAFLOW`.
    V1,
    /// SDMX-CSV 2.0 or 2.1: the first column is `STRUCTURE`.
    V2,
}

/// How a component has its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// One value.
    Single,
    /// `ATTR[]`: values beside each other.
    Many,
    /// `ATTR[en;fr]`: a value a language, or several such sets.
    Languages(Vec<String>),
}

/// What a column is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnKind {
    /// `DATAFLOW`, or `STRUCTURE`.
    Structure,
    /// `STRUCTURE_ID`.
    StructureId,
    /// `ACTION`.
    Action,
    /// The name of what the column before it has: `STRUCTURE_NAME`, or a component's (`labels=name`).
    Label,
    /// `SERIES_KEY` or `OBS_KEY`, which say again what the dimensions say.
    Key,
    /// A component.
    Component {
        /// Its id; of a nested metadata attribute with those above it, as `CONTACT.NAME`.
        id: String,
        /// How it has its values.
        shape: Shape,
        /// Whether they are codes.
        is_coded: bool,
    },
    /// A column of the sender's own.
    Custom,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The text of the header.
    pub name: String,
    /// What it is.
    pub kind: ColumnKind,
}

/// What the first record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The version.
    pub version: Version,
    /// The character between fields.
    pub separator: char,
    /// The character between the values of one field, where the message has such fields.
    pub between_values: Option<char>,
    /// Whether ids have their names after them (`labels=both`).
    pub has_labels: bool,
    /// The columns, in their order.
    pub columns: Vec<Column>,
}

/// The separator that follows the first header.
pub(super) fn separator(start: &str) -> Result<u8, CsvError> {
    if start.trim().is_empty() {
        return Err(CsvError::Empty);
    }
    let refused =
        || CsvError::NotSdmxCsv { found: start.lines().next().unwrap_or_default().chars().take(40).collect() };
    let text = start.trim_start_matches('"');
    let rest = text.strip_prefix("DATAFLOW").or_else(|| text.strip_prefix("STRUCTURE")).ok_or_else(refused)?;
    // `STRUCTURE[;]`: the separator within fields comes first.
    let rest = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or_else(refused)?.1,
        None => rest,
    };
    match rest.trim_start_matches('"').bytes().next() {
        Some(separator @ (b',' | b';' | b'\t' | b'|')) => Ok(separator),
        Some(_) | None => Err(refused()),
    }
}

impl Header {
    pub(super) fn of(record: &StringRecord, separator: u8, components: &Components) -> Result<Self, CsvError> {
        let first = record.get(0).unwrap_or_default();
        let version = if first.starts_with("DATAFLOW") { Version::V1 } else { Version::V2 };
        let within = first.split_once('[').and_then(|(_, rest)| rest.strip_suffix(']'));
        let between_values = within.and_then(|text| text.chars().next());
        let mut header = Self {
            version,
            separator: char::from(separator),
            between_values,
            has_labels: record.iter().skip(1).any(|name| name.contains(": ")),
            columns: Vec::with_capacity(record.len()),
        };
        // Only with `labels=name` may a column be the name of the one before it.
        let has_name_columns = record.iter().any(|name| name == "STRUCTURE_NAME");
        for (at, name) in record.iter().enumerate() {
            let kind = header.kind(at, name, components, has_name_columns);
            header.columns.push(Column { name: name.to_owned(), kind });
        }
        header.check()?;
        Ok(header)
    }

    fn kind(&self, at: usize, name: &str, components: &Components, has_name_columns: bool) -> ColumnKind {
        match (self.version, name) {
            _ if at == 0 => return ColumnKind::Structure,
            (Version::V2, "STRUCTURE_ID") => return ColumnKind::StructureId,
            (Version::V2, "STRUCTURE_NAME") => return ColumnKind::Label,
            (Version::V2, "ACTION") => return ColumnKind::Action,
            (Version::V2, "SERIES_KEY" | "OBS_KEY") => return ColumnKind::Key,
            (Version::V1 | Version::V2, _) => {}
        }
        // The id ends where its name begins; the languages of a component may follow it.
        let id = name.split_once(": ").map_or(name, |(id, _)| id).trim();
        let (plain, shape) = match id.rsplit_once('[').and_then(|(plain, rest)| Some((plain, rest.strip_suffix(']')?)))
        {
            Some((plain, "")) => (plain, Shape::Many),
            Some((plain, languages)) => {
                let between = self.between_values.unwrap_or(';');
                (plain, Shape::Languages(languages.split(between).map(str::to_owned).collect()))
            }
            None => (id, Shape::Single),
        };
        if let Some(is_coded) = components.is_coded(plain) {
            // What is many above a nested attribute is in its values.
            return ColumnKind::Component { id: plain.replace("[]", ""), shape, is_coded };
        }
        let follows = self.columns.last().is_some_and(|before| matches!(before.kind, ColumnKind::Component { .. }));
        if has_name_columns && follows { ColumnKind::Label } else { ColumnKind::Custom }
    }

    fn check(&self) -> Result<(), CsvError> {
        if self.version == Version::V2 && !self.columns.iter().any(|one| one.kind == ColumnKind::StructureId) {
            return Err(CsvError::NoColumn { expected: "STRUCTURE_ID" });
        }
        let mut seen = std::collections::BTreeSet::new();
        for column in &self.columns {
            let name = match &column.kind {
                ColumnKind::Component { id, .. } => id.as_str(),
                ColumnKind::Structure
                | ColumnKind::StructureId
                | ColumnKind::Action
                | ColumnKind::Key
                | ColumnKind::Custom => column.name.as_str(),
                // Two components may have the same name.
                ColumnKind::Label => continue,
            };
            if !seen.insert(name) {
                return Err(CsvError::ColumnTwice { found: name.to_owned() });
            }
        }
        let is_split = |column: &Column| {
            matches!(&column.kind, ColumnKind::Component { shape: Shape::Many | Shape::Languages(_), .. })
        };
        match self.columns.iter().find(|column| is_split(column)) {
            Some(column) if self.between_values.is_none() => {
                Err(CsvError::NoSeparatorWithin { found: column.name.clone() })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The ids of the components, in the order of the cells of a row.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter_map(|column| match &column.kind {
            ColumnKind::Component { id, .. } => Some(id.as_str()),
            ColumnKind::Structure
            | ColumnKind::StructureId
            | ColumnKind::Action
            | ColumnKind::Label
            | ColumnKind::Key
            | ColumnKind::Custom => None,
        })
    }

    /// The columns of the sender's own, which the model has no place for.
    pub fn custom(&self) -> impl Iterator<Item = &str> {
        let custom = self.columns.iter().filter(|column| column.kind == ColumnKind::Custom);
        custom.map(|column| column.name.as_str())
    }
}
