//! Strict reading: a field that the format does not know is refused at every level, with its place.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{
    Audience, EntryOperation, OVERLAY_FORMAT, Overlay, OverlayAnnotation, OverlayEntry, OverlayText, TextField,
    TextOperation,
};
use super::finding::{OverlayError, OverlayFault, OverlayFinding};
use super::selector::Selector;
use super::tree::Tree;
use crate::inventory::FormatVersion;

const OVERLAY: &[&str] = &["format_version", "id", "entries", "texts"];
const ENTRY: &[&str] = &["selector", "op", "type", "annotation", "scope"];
const ANNOTATION: &[&str] = &["id", "title", "value", "text"];
const TEXT: &[&str] = &["selector", "op", "field", "lang", "text", "scope"];

const ENTRY_OPERATIONS: &[&str] = &["set", "add", "remove"];
const TEXT_OPERATIONS: &[&str] = &["set", "remove"];
const FIELDS: &[&str] = &["name", "description"];

impl Overlay {
    /// The overlay in `bytes`.
    ///
    /// # Errors
    /// [`OverlayError`] with everything for which a reader refuses it (*edition* §5.1): no JSON, another major, a field
    /// that the format does not know, a key twice, a value of another kind, a text that is no selector, an operation
    /// without what it writes or with what it does not.
    pub fn decode(bytes: &[u8]) -> Result<Self, OverlayError> {
        let mut reader = Reader { findings: Vec::new() };
        let refuse = |fault| OverlayError { findings: vec![OverlayFinding { place: String::new(), fault }] };
        let tree: Tree = serde_json::from_slice(bytes)
            .map_err(|error| refuse(OverlayFault::NotJson { detail: error.to_string() }))?;
        match reader.overlay(&tree) {
            Some(overlay) if reader.findings.is_empty() => Ok(overlay),
            Some(_) | None => Err(OverlayError { findings: reader.findings }),
        }
    }
}

/// Where in the document something is.
#[derive(Clone)]
struct Place(String);

impl Place {
    fn field(&self, name: &str) -> Self {
        let is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        match (self.0.is_empty(), is_plain) {
            (true, true) => Self(name.to_owned()),
            (false, true) => Self(format!("{}.{name}", self.0)),
            (_, false) => Self(format!("{}[{name:?}]", self.0)),
        }
    }

    fn at(&self, position: usize) -> Self {
        Self(format!("{}[{position}]", self.0))
    }
}

/// The fields of an object, with its place.
struct Fields<'t> {
    place: Place,
    fields: &'t [(String, Tree)],
}

impl<'t> Fields<'t> {
    fn get(&self, name: &str) -> Option<&'t Tree> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

/// Reads on after a finding, so that a person sees all of them at once.
struct Reader {
    findings: Vec<OverlayFinding>,
}

impl Reader {
    fn add(&mut self, place: &Place, fault: OverlayFault) {
        self.findings.push(OverlayFinding { place: place.0.clone(), fault });
    }

    fn overlay(&mut self, tree: &Tree) -> Option<Overlay> {
        let root = Place(String::new());
        // Another major may well have other fields: then that is what is wrong with it.
        if let Tree::Object(fields) = tree
            && let Some((_, Tree::Text(text))) = fields.iter().find(|(key, _)| key == "format_version")
            && let Ok(version) = text.parse::<FormatVersion>()
            && version.major != OVERLAY_FORMAT.major
        {
            self.add(&root.field("format_version"), OverlayFault::OtherMajor { found: text.clone() });
            return None;
        }
        let fields = self.object(tree, &root, "an object: an overlay", OVERLAY)?;
        let format_version = self.format_version(&fields);
        let id = self.required_text(&fields, "id", "a string: the overlay's name");
        let entries = self.required(&fields, "entries", "an array of entries");
        let entries = entries.and_then(|tree| self.list(tree, &root.field("entries"), Self::entry));
        let texts = match fields.get("texts") {
            Some(tree) => self.list(tree, &root.field("texts"), Self::text),
            None => Some(Vec::new()),
        };
        Some(Overlay { format_version: format_version?, id: id?, entries: entries?, texts: texts? })
    }

    fn format_version(&mut self, fields: &Fields<'_>) -> Option<FormatVersion> {
        let text = self.required_text(fields, "format_version", "a string: \"major.minor\", such as \"1.2\"")?;
        match text.parse() {
            Ok(version) => Some(version),
            Err(_) => {
                self.add(&fields.place.field("format_version"), OverlayFault::BadFormatVersion { found: text });
                None
            }
        }
    }

    fn entry(&mut self, tree: &Tree, place: &Place) -> Option<OverlayEntry> {
        let fields = self.object(tree, place, "an object: an entry", ENTRY)?;
        let selector = self.selector(&fields);
        let word = self.word(&fields, "op", ENTRY_OPERATIONS);
        let annotation_type = self.required_text(&fields, "type", "a string: the annotation type");
        let at = place.field("annotation");
        let annotation = match fields.get("annotation") {
            None | Some(Tree::Null) => Some(None),
            Some(tree) => self.annotation(tree, &at).map(Some),
        };
        let scope = self.optional_text(&fields, "scope").map(|scope| scope.map(Audience::new));
        let operation = match (word, annotation) {
            (Some("remove"), Some(None)) => Some(EntryOperation::Remove),
            (Some("remove"), Some(Some(_)) | None) => {
                self.add(&at, OverlayFault::NotWritten { operation: "remove", found: "an annotation" });
                None
            }
            (Some(operation), Some(None)) => {
                self.add(&at, OverlayFault::NothingToWrite { operation });
                None
            }
            (Some("add"), Some(Some(annotation))) => Some(EntryOperation::Add(annotation)),
            (Some(_), Some(Some(annotation))) => Some(EntryOperation::Set(annotation)),
            (None, _) | (_, None) => None,
        };
        Some(OverlayEntry {
            selector: selector?,
            annotation_type: annotation_type?,
            operation: operation?,
            scope: scope?,
        })
    }

    fn annotation(&mut self, tree: &Tree, place: &Place) -> Option<OverlayAnnotation> {
        let fields = self.object(tree, place, "an object: an annotation", ANNOTATION)?;
        let id = self.optional_text(&fields, "id");
        let title = self.optional_text(&fields, "title");
        let value = self.optional_text(&fields, "value");
        let text = match fields.get("text") {
            None => Some(BTreeMap::new()),
            Some(tree) => self.languages(tree, &place.field("text")),
        };
        Some(OverlayAnnotation { id: id?, title: title?, value: value?, text: text? })
    }

    fn languages(&mut self, tree: &Tree, place: &Place) -> Option<BTreeMap<String, String>> {
        let expected = "an object: language tag to string";
        let Tree::Object(fields) = tree else {
            self.add(place, OverlayFault::WrongType { found: tree.kind(), expected });
            return None;
        };
        self.no_key_twice(fields, place);
        let mut texts = BTreeMap::new();
        for (language, text) in fields {
            match text {
                Tree::Text(text) => drop(texts.insert(language.clone(), text.clone())),
                Tree::Null | Tree::Flag(_) | Tree::Number(_) | Tree::List(_) | Tree::Object(_) => {
                    let fault = OverlayFault::WrongType { found: text.kind(), expected: "a string" };
                    self.add(&place.field(language), fault);
                }
            }
        }
        Some(texts)
    }

    fn text(&mut self, tree: &Tree, place: &Place) -> Option<OverlayText> {
        let fields = self.object(tree, place, "an object: a text", TEXT)?;
        let selector = self.selector(&fields);
        let word = self.word(&fields, "op", TEXT_OPERATIONS);
        let field = self.word(&fields, "field", FIELDS);
        let lang = self.required_text(&fields, "lang", "a string: the language tag");
        let text = self.optional_text(&fields, "text");
        let scope = self.optional_text(&fields, "scope").map(|scope| scope.map(Audience::new));
        let at = place.field("text");
        let operation = match (word, text) {
            (Some("remove"), Some(None)) => Some(TextOperation::Remove),
            (Some("remove"), Some(Some(_))) => {
                self.add(&at, OverlayFault::NotWritten { operation: "remove", found: "a string" });
                None
            }
            (Some(operation), Some(None)) => {
                self.add(&at, OverlayFault::NothingToWrite { operation });
                None
            }
            (Some(_), Some(Some(text))) => Some(TextOperation::Set(text)),
            (None, _) | (_, None) => None,
        };
        let field = field.map(|word| if word == "name" { TextField::Name } else { TextField::Description });
        Some(OverlayText { selector: selector?, field: field?, lang: lang?, operation: operation?, scope: scope? })
    }

    fn object<'t>(
        &mut self,
        tree: &'t Tree,
        place: &Place,
        expected: &'static str,
        known: &'static [&'static str],
    ) -> Option<Fields<'t>> {
        let Tree::Object(fields) = tree else {
            self.add(place, OverlayFault::WrongType { found: tree.kind(), expected });
            return None;
        };
        self.no_key_twice(fields, place);
        for (key, _) in fields.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            self.add(&place.field(key), OverlayFault::UnknownField { known });
        }
        Some(Fields { place: place.clone(), fields })
    }

    fn no_key_twice(&mut self, fields: &[(String, Tree)], place: &Place) {
        let mut keys = BTreeSet::new();
        for (key, _) in fields {
            if !keys.insert(key) {
                self.add(&place.field(key), OverlayFault::DuplicateKey);
            }
        }
    }

    fn list<T>(
        &mut self,
        tree: &Tree,
        place: &Place,
        each: impl Fn(&mut Self, &Tree, &Place) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Tree::List(elements) = tree else {
            self.add(place, OverlayFault::WrongType { found: tree.kind(), expected: "an array" });
            return None;
        };
        let read: Vec<Option<T>> =
            elements.iter().enumerate().map(|(n, element)| each(self, element, &place.at(n))).collect();
        read.into_iter().collect()
    }

    fn required<'t>(&mut self, fields: &Fields<'t>, name: &str, expected: &'static str) -> Option<&'t Tree> {
        let found = fields.get(name);
        if found.is_none() {
            self.add(&fields.place.field(name), OverlayFault::MissingField { expected });
        }
        found
    }

    fn required_text(&mut self, fields: &Fields<'_>, name: &str, expected: &'static str) -> Option<String> {
        match self.required(fields, name, expected)? {
            Tree::Text(text) => Some(text.clone()),
            other => {
                self.add(&fields.place.field(name), OverlayFault::WrongType { found: other.kind(), expected });
                None
            }
        }
    }

    /// The text of a field that may be absent or null; the outer `None` for one of another kind.
    fn optional_text(&mut self, fields: &Fields<'_>, name: &str) -> Option<Option<String>> {
        match fields.get(name) {
            None | Some(Tree::Null) => Some(None),
            Some(Tree::Text(text)) => Some(Some(text.clone())),
            Some(other) => {
                let fault = OverlayFault::WrongType { found: other.kind(), expected: "a string, or null" };
                self.add(&fields.place.field(name), fault);
                None
            }
        }
    }

    fn word(&mut self, fields: &Fields<'_>, name: &str, known: &'static [&'static str]) -> Option<&'static str> {
        let text = self.required_text(fields, name, "a string")?;
        let word = known.iter().find(|word| **word == text).copied();
        if word.is_none() {
            self.add(&fields.place.field(name), OverlayFault::UnknownWord { found: text, known });
        }
        word
    }

    fn selector(&mut self, fields: &Fields<'_>) -> Option<Selector> {
        let text = self.required_text(fields, "selector", "a string: a selector")?;
        match text.parse() {
            Ok(selector) => Some(selector),
            Err(_) => {
                self.add(&fields.place.field("selector"), OverlayFault::NotASelector { found: text });
                None
            }
        }
    }
}
