//! What is wrong with an overlay, and where.

use std::fmt;

/// One thing that is wrong with an overlay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlayFinding {
    /// Where: `entries[2].annotation.titel`; empty for the document as a whole.
    pub place: String,
    /// What.
    pub fault: OverlayFault,
}

/// What is wrong. The first group is refused (*edition* §5.1, §5.2); the second cannot have an effect and is told by
/// [`check`](super::check).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OverlayFault {
    /// No JSON, with what the reader says and where.
    NotJson {
        /// Line, column and what was found.
        detail: String,
    },
    /// Another major version.
    OtherMajor {
        /// The version.
        found: String,
    },
    /// No `major.minor`.
    BadFormatVersion {
        /// The value.
        found: String,
    },
    /// A key that is in its object more than once.
    DuplicateKey,
    /// A field that the format does not have there.
    UnknownField {
        /// The fields that it has.
        known: &'static [&'static str],
    },
    /// A field that must be there.
    MissingField {
        /// What it holds.
        expected: &'static str,
    },
    /// A value of another kind.
    WrongType {
        /// The kind that is there.
        found: &'static str,
        /// The kind that the format has.
        expected: &'static str,
    },
    /// A word that is none of those which the format has there.
    UnknownWord {
        /// The word.
        found: String,
        /// Those of the format.
        known: &'static [&'static str],
    },
    /// A text that is no selector.
    NotASelector {
        /// The text.
        found: String,
    },
    /// What the operation writes is not there.
    NothingToWrite {
        /// The operation.
        operation: &'static str,
    },
    /// Something to write beside an operation that writes nothing.
    NotWritten {
        /// The operation.
        operation: &'static str,
        /// What is there instead of nothing.
        found: &'static str,
    },

    /// A class that no artefact and no item has.
    UnknownClass {
        /// The name.
        found: String,
    },
    /// A URN without a version, which no artefact has.
    NoVersion {
        /// The URN.
        found: String,
    },
    /// A class that has no name and no description.
    NoNames {
        /// The class.
        found: String,
    },
    /// A language that is no tag.
    NotALanguage {
        /// The text.
        found: String,
    },
    /// An empty text where one is asked for.
    Empty,
}

impl OverlayFault {
    /// The stable name of the fault.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotJson { .. } => "overlay.not_json",
            Self::OtherMajor { .. } => "overlay.other_major",
            Self::BadFormatVersion { .. } => "overlay.bad_format_version",
            Self::DuplicateKey => "overlay.duplicate_key",
            Self::UnknownField { .. } => "overlay.unknown_field",
            Self::MissingField { .. } => "overlay.missing_field",
            Self::WrongType { .. } => "overlay.wrong_type",
            Self::UnknownWord { .. } => "overlay.unknown_word",
            Self::NotASelector { .. } => "overlay.not_a_selector",
            Self::NothingToWrite { .. } => "overlay.nothing_to_write",
            Self::NotWritten { .. } => "overlay.not_written",
            Self::UnknownClass { .. } => "overlay.unknown_class",
            Self::NoVersion { .. } => "overlay.no_version",
            Self::NoNames { .. } => "overlay.no_names",
            Self::NotALanguage { .. } => "overlay.not_a_language",
            Self::Empty => "overlay.empty",
        }
    }

    /// Whether a reader must refuse the overlay for it. Anything else only cannot have the effect that was meant.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        match self {
            Self::NotJson { .. }
            | Self::OtherMajor { .. }
            | Self::BadFormatVersion { .. }
            | Self::DuplicateKey
            | Self::UnknownField { .. }
            | Self::MissingField { .. }
            | Self::WrongType { .. }
            | Self::UnknownWord { .. }
            | Self::NotASelector { .. }
            | Self::NothingToWrite { .. }
            | Self::NotWritten { .. } => true,
            Self::UnknownClass { .. }
            | Self::NoVersion { .. }
            | Self::NoNames { .. }
            | Self::NotALanguage { .. }
            | Self::Empty => false,
        }
    }

    /// The section that says so.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::NotASelector { .. } | Self::UnknownClass { .. } | Self::NoVersion { .. } => "edition §5.2",
            Self::NoNames { .. } => "edition §5.6",
            Self::NotJson { .. }
            | Self::OtherMajor { .. }
            | Self::BadFormatVersion { .. }
            | Self::DuplicateKey
            | Self::UnknownField { .. }
            | Self::MissingField { .. }
            | Self::WrongType { .. }
            | Self::UnknownWord { .. }
            | Self::NothingToWrite { .. }
            | Self::NotWritten { .. }
            | Self::NotALanguage { .. }
            | Self::Empty => "edition §5.1",
        }
    }

    /// What is there.
    #[must_use]
    pub fn found(&self) -> String {
        match self {
            Self::NotJson { detail } => detail.clone(),
            Self::OtherMajor { found }
            | Self::BadFormatVersion { found }
            | Self::UnknownWord { found, .. }
            | Self::NotASelector { found }
            | Self::UnknownClass { found }
            | Self::NoVersion { found }
            | Self::NoNames { found }
            | Self::NotALanguage { found } => format!("{found:?}"),
            Self::DuplicateKey => "the key more than once".to_owned(),
            Self::UnknownField { .. } => "a field that the format does not have".to_owned(),
            Self::MissingField { .. } => "nothing".to_owned(),
            Self::WrongType { found, .. } => (*found).to_owned(),
            Self::NothingToWrite { operation } => format!("nothing that {operation} could write"),
            Self::NotWritten { operation, found } => format!("{found}, and {operation} writes nothing"),
            Self::Empty => "an empty text".to_owned(),
        }
    }

    /// What should be there.
    #[must_use]
    pub fn expected(&self) -> String {
        match self {
            Self::NotJson { .. } => "a JSON object in UTF-8".to_owned(),
            Self::OtherMajor { .. } => "1.0, 1.1 or 1.2; another major needs a newer jobctl".to_owned(),
            Self::BadFormatVersion { .. } => "\"major.minor\", such as \"1.2\"".to_owned(),
            Self::DuplicateKey => "each key once".to_owned(),
            Self::UnknownField { known } => format!("one of {}", known.join(", ")),
            Self::MissingField { expected } | Self::WrongType { expected, .. } => (*expected).to_owned(),
            Self::UnknownWord { known, .. } => format!("one of {}", known.join(", ")),
            Self::NotASelector { .. } => super::selector::SELECTOR_FORMS.to_owned(),
            Self::NothingToWrite { .. } => "what is to be written".to_owned(),
            Self::NotWritten { .. } => "nothing, or null".to_owned(),
            Self::UnknownClass { .. } => "a class of SDMX, such as Codelist, Code or Dataflow".to_owned(),
            Self::NoVersion { .. } => {
                "a version in the URN, or AGENCY:ID for every version: it selects nothing".to_owned()
            }
            Self::NoNames { .. } => "an artefact or item that has a name: components have none".to_owned(),
            Self::NotALanguage { .. } => "a language tag such as en or fr-CA".to_owned(),
            Self::Empty => "a text".to_owned(),
        }
    }
}

impl fmt::Display for OverlayFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.place.is_empty() { "the document" } else { &self.place };
        let (rule, found, expected) = (self.fault.rule(), self.fault.found(), self.fault.expected());
        write!(f, "{rule}: {place}: found {found}; expected {expected}")
    }
}

/// Why a document is not an overlay: everything that a reader must refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is not a valid overlay:{}", list(.findings))]
pub struct OverlayError {
    /// Each of them, in document order.
    pub findings: Vec<OverlayFinding>,
}

/// How many findings an error tells one by one.
const TOLD: usize = 20;

fn list(findings: &[OverlayFinding]) -> String {
    let mut text: String = findings.iter().take(TOLD).map(|finding| format!("\n  {finding}")).collect();
    if findings.len() > TOLD {
        text.push_str(&format!("\n  and {} more", findings.len() - TOLD));
    }
    text
}
