//! What an entry applies to (*edition* §5.2).

use std::fmt;
use std::str::FromStr;

use crate::sdmx::urn::Urn;

/// A selector as it was written, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    text: String,
    kind: SelectorKind,
}

/// The four forms of a selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SelectorKind {
    /// `*`: every artefact and every item.
    All,
    /// A class name: every artefact or item of that class.
    Class,
    /// `AGENCY:ID`: the artefacts of that agency and id, at every version and of every class. Never an item.
    Artefact {
        /// The agency.
        agency: String,
        /// The id.
        id: String,
    },
    /// A URN: one artefact, or one item.
    Urn(Urn),
}

/// A text that is no selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is no selector (edition §5.2): expected {}", SELECTOR_FORMS)]
pub struct BadSelector {
    /// The text.
    pub found: String,
}

/// The forms, for a person.
pub(super) const SELECTOR_FORMS: &str = "*, a class name such as Codelist, AGENCY:ID such as STC:CL_GEO, or a URN such \
                                         as urn:sdmx:org.sdmx.infomodel.codelist.Code=STC:CL_GEO(1.0).35";

impl Selector {
    /// The selector as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What it says.
    #[must_use]
    pub fn kind(&self) -> &SelectorKind {
        &self.kind
    }

    /// How specific it is: 0 for `*` up to 3 for a URN. The most specific applies last.
    #[must_use]
    pub fn specificity(&self) -> u8 {
        match self.kind {
            SelectorKind::All => 0,
            SelectorKind::Class => 1,
            SelectorKind::Artefact { .. } => 2,
            SelectorKind::Urn(_) => 3,
        }
    }
}

impl FromStr for Selector {
    type Err = BadSelector;

    fn from_str(text: &str) -> Result<Self, BadSelector> {
        let kind = match text {
            "*" => Some(SelectorKind::All),
            _ if text.starts_with("urn:") => text.parse().ok().map(SelectorKind::Urn),
            _ => match text.split_once(':') {
                Some((agency, id)) if is_agency(agency) && is_id(id) => {
                    Some(SelectorKind::Artefact { agency: agency.to_owned(), id: id.to_owned() })
                }
                Some(_) => None,
                None => is_class(text).then_some(SelectorKind::Class),
            },
        };
        kind.map(|kind| Self { text: text.to_owned(), kind }).ok_or_else(|| BadSelector { found: text.to_owned() })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// An agency: ids with a dot between an agency and its sub-agency.
fn is_agency(text: &str) -> bool {
    text.split('.').all(is_id)
}

/// SDMX's `IDType`.
fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'@' | b'$'))
}

fn is_class(text: &str) -> bool {
    text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
