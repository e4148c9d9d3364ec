//! The two languages of a table.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The language of a file, as its header tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Language {
    /// English.
    #[serde(rename = "en")]
    English,
    /// French.
    #[serde(rename = "fr")]
    French,
}

impl Language {
    /// The language tag of names and annotations.
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::French => "fr",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::English => "English",
            Self::French => "French",
        })
    }
}

/// `text` in lowercase, without accents, outer spaces and typographic apostrophes: header cells are compared so.
pub(super) fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim().chars() {
        match c {
            'À' | 'Â' | 'à' | 'â' => out.push('a'),
            'É' | 'È' | 'Ê' | 'Ë' | 'é' | 'è' | 'ê' | 'ë' => out.push('e'),
            'Î' | 'Ï' | 'î' | 'ï' => out.push('i'),
            'Ô' | 'ô' => out.push('o'),
            'Ù' | 'Û' | 'Ü' | 'ù' | 'û' | 'ü' => out.push('u'),
            'Ç' | 'ç' => out.push('c'),
            '’' => out.push('\''),
            '\u{a0}' | '\u{202f}' => out.push(' '),
            other => out.extend(other.to_lowercase()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_cells_fold_to_plain_lowercase() {
        assert_eq!(folded("  PÉRIODE DE RÉFÉRENCE "), "periode de reference");
        assert_eq!(folded("IDENTIFICATEUR D’UNITÉ DE MESURE"), "identificateur d'unite de mesure");
    }
}
