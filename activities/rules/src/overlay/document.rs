//! The document in its types. What the format forbids cannot be spelt: an operation carries what it writes.

use std::collections::BTreeMap;
use std::fmt;

use super::selector::Selector;
use crate::inventory::FormatVersion;

/// The format that is described here. Every 1.x reads the same (*edition* §5.1).
pub const OVERLAY_FORMAT: FormatVersion = FormatVersion { major: 1, minor: 2 };

/// Whom a server serves. An entry without one is for everybody.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Audience(String);

impl Audience {
    /// The audience of this name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// Its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Audience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An overlay (*edition* §5.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlay {
    /// The format that the document states; the digest covers it.
    pub format_version: FormatVersion,
    /// The overlay's name.
    pub id: String,
    /// What happens to annotations, in document order.
    pub entries: Vec<OverlayEntry>,
    /// What happens to names and descriptions, in document order. Only folding applies them.
    pub texts: Vec<OverlayText>,
}

/// What happens to the annotations of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlayEntry {
    /// Which artefacts and items it applies to.
    pub selector: Selector,
    /// The annotation type that it acts on.
    pub annotation_type: String,
    /// What it does.
    pub operation: EntryOperation,
    /// Whom it is for; `None` for everybody.
    pub scope: Option<Audience>,
}

/// What an entry does to the annotations of its type (*edition* §5.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryOperation {
    /// Drops them, and appends what the merge hook makes of them and this one; without a hook, this one.
    Set(OverlayAnnotation),
    /// Appends this one.
    Add(OverlayAnnotation),
    /// Drops them.
    Remove,
}

impl EntryOperation {
    /// `set`, `add` or `remove`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Set(_) => "set",
            Self::Add(_) => "add",
            Self::Remove => "remove",
        }
    }

    /// The annotation that it writes.
    #[must_use]
    pub fn annotation(&self) -> Option<&OverlayAnnotation> {
        match self {
            Self::Set(annotation) | Self::Add(annotation) => Some(annotation),
            Self::Remove => None,
        }
    }
}

/// An annotation that an entry writes; its type is the entry's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OverlayAnnotation {
    /// The annotation's id.
    pub id: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its value.
    pub value: Option<String>,
    /// Its text, language tag to text.
    pub text: BTreeMap<String, String>,
}

/// What happens to one language of a name or a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlayText {
    /// Which artefacts and items it applies to.
    pub selector: Selector,
    /// The name or the description.
    pub field: TextField,
    /// The language tag.
    pub lang: String,
    /// What it does.
    pub operation: TextOperation,
    /// Whom it is for; `None` for everybody.
    pub scope: Option<Audience>,
}

/// The name or the description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextField {
    /// The name.
    Name,
    /// The description.
    Description,
}

impl TextField {
    /// `name` or `description`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Description => "description",
        }
    }
}

/// What happens to a text in its language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextOperation {
    /// It becomes this.
    Set(String),
    /// It goes.
    Remove,
}

impl TextOperation {
    /// `set` or `remove`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Set(_) => "set",
            Self::Remove => "remove",
        }
    }
}

/// Whether what has this scope applies to `audience`: a server that serves no audience applies everything.
pub(super) fn applies(scope: Option<&Audience>, audience: Option<&Audience>) -> bool {
    match (scope, audience) {
        (None, _) | (_, None) => true,
        (Some(scope), Some(audience)) => scope == audience,
    }
}

impl Overlay {
    /// The overlay as `audience` sees it: without the entries and texts that are for others.
    #[must_use]
    pub fn as_applied(&self, audience: Option<&Audience>) -> Self {
        let mut overlay = self.clone();
        overlay.entries.retain(|entry| applies(entry.scope.as_ref(), audience));
        overlay.texts.retain(|text| applies(text.scope.as_ref(), audience));
        overlay
    }

    /// Every audience that an entry or a text is for, sorted.
    #[must_use]
    pub fn audiences(&self) -> Vec<&Audience> {
        let scopes = self.entries.iter().map(|entry| &entry.scope).chain(self.texts.iter().map(|text| &text.scope));
        let mut audiences: Vec<&Audience> = scopes.flatten().collect();
        audiences.sort_unstable();
        audiences.dedup();
        audiences
    }
}
