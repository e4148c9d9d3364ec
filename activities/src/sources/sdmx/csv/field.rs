//! One field of a record.

use std::borrow::Cow;

use catalog_rules::sdmx::model::UrnText;
use catalog_rules::sdmx::urn::Urn;

use super::Cell;
use super::error::CsvError;
use super::header::{Header, Shape, Version};

/// The URN of what a row is data of: `dataflow` and `ESTAT:NA_MAIN(1.6.0)`, with its name after it or not. A structure
/// without a version has a URN without one.
pub(super) fn structure(kind: &str, id: &str, line: u64) -> Result<UrnText, CsvError> {
    let (package, class) = match kind.trim() {
        "dataflow" => ("datastructure", "Dataflow"),
        "datastructure" => ("datastructure", "DataStructure"),
        "dataprovision" => ("registry", "ProvisionAgreement"),
        _ => return Err(CsvError::Kind { line, found: kind.to_owned() }),
    };
    let own = id.split_once(": ").map_or(id, |(own, _)| own).trim();
    let urn = format!("urn:sdmx:org.sdmx.infomodel.{package}.{class}={own}");
    match urn.parse::<Urn>() {
        Ok(parsed) if parsed.item.is_none() => Ok(urn),
        Ok(_) | Err(_) => Err(CsvError::Id { line, found: id.to_owned() }),
    }
}

/// What a field says.
pub(super) fn cell<'a>(text: &'a str, header: &Header, shape: &Shape, is_coded: bool) -> Cell<'a> {
    match text {
        "" => return Cell::Omitted,
        "~" if header.version == Version::V2 => return Cell::SwitchedOff,
        "#N/A" => return Cell::Missing,
        "NaN" if !is_coded => return Cell::Missing,
        _ => {}
    }
    match shape {
        Shape::Single if header.has_labels => Cell::Value(Cow::Borrowed(without_label(text, is_coded))),
        Shape::Single | Shape::Many | Shape::Languages(_) => Cell::Value(Cow::Borrowed(text)),
    }
}

/// A value without the name after it (`labels=both`). What is no code has none, but some writers repeat it.
fn without_label(text: &str, is_coded: bool) -> &str {
    match text.split_once(": ") {
        Some((id, _)) if is_coded => id,
        Some((value, again)) if value == again => value,
        Some(_) | None => text,
    }
}

/// The values of a field of [`Shape::Many`] or [`Shape::Languages`]. Each is as it stands: a set of languages within
/// quotes has still its own separators. An empty value is one: a nested attribute has none there.
#[must_use]
pub fn values(text: &str, between: char) -> Vec<Cow<'_, str>> {
    let mut values = Vec::new();
    let (mut start, mut is_quoted) = (0, false);
    for (at, character) in text.char_indices() {
        match character {
            '"' => is_quoted = !is_quoted,
            other if other == between && !is_quoted => {
                values.push(unquoted(&text[start..at]));
                start = at + other.len_utf8();
            }
            _ => {}
        }
    }
    values.push(unquoted(&text[start..]));
    values
}

fn unquoted(text: &str) -> Cow<'_, str> {
    match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(inner) => Cow::Owned(inner.replace("\"\"", "\"")),
        None => Cow::Borrowed(text),
    }
}
