//! Names and texts as parts of SQL.

use std::path::Path;

use super::DuckError;

/// `name` as a quoted identifier, whatever characters it has.
#[must_use]
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `text` as a string literal.
#[must_use]
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// `path` as a string literal.
///
/// # Errors
/// [`DuckError::PathNotText`] when the path is not UTF-8, which SQL cannot say.
pub fn path_literal(path: &Path) -> Result<String, DuckError> {
    path.to_str().map(literal).ok_or_else(|| DuckError::PathNotText { path: path.to_owned() })
}
