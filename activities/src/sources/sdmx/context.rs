//! What a reader knows while it makes the model, and where its findings go.

use catalog_rules::sdmx::finding::{Finding, FindingCode, Findings};

use super::node::Node;

/// The format of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SDMX-ML 2.1.
    Ml21,
    /// SDMX-ML 3.0.
    Ml30,
    /// SDMX-ML 3.1.
    Ml31,
    /// SDMX-JSON 2.0.
    Json20,
}

impl Dialect {
    /// The name of the format, as people write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ml21 => "SDMX-ML 2.1",
            Self::Ml30 => "SDMX-ML 3.0",
            Self::Ml31 => "SDMX-ML 3.1",
            Self::Json20 => "SDMX-JSON 2.0",
        }
    }

    pub(super) fn is_json(self) -> bool {
        matches!(self, Self::Json20)
    }
}

/// The state of a reader.
pub(super) struct Context {
    pub dialect: Dialect,
    pub findings: Findings,
    /// The URN of the artefact being read, where it is known.
    pub urn: String,
    /// How many texts of the artefact have no language.
    pub texts_without_language: u64,
}

impl Context {
    pub fn new(dialect: Dialect) -> Self {
        Self { dialect, findings: Findings::default(), urn: String::new(), texts_without_language: 0 }
    }

    pub fn find(&mut self, code: FindingCode, place: String, message: String) {
        self.findings.add(Finding { code, urn: self.urn.clone(), place, message });
    }

    /// As [`Self::find`], at a node.
    pub fn find_at(&mut self, node: &Node, code: FindingCode, message: String) {
        self.find(code, place(node), message);
    }

    /// Says that everything in `node` was understood: what is left of it is reported.
    pub fn done(&mut self, node: Node) {
        let here = place(&node);
        self.left(&node, &here);
    }

    fn left(&mut self, node: &Node, here: &str) {
        for (name, value) in &node.attributes {
            self.find(
                FindingCode::NotRepresented,
                format!("{here}/@{name}"),
                format!("the value {:?} has no place in the model and is left out", cut(value)),
            );
        }
        for child in &node.children {
            let text = if child.text.trim().is_empty() { String::new() } else { format!(" {:?}", cut(&child.text)) };
            self.find(
                FindingCode::NotRepresented,
                format!("{here}/{}", child.name),
                format!("this{text} has no place in the model and is left out"),
            );
        }
        if !node.items.is_empty() {
            self.find(
                FindingCode::NotRepresented,
                here.to_owned(),
                format!("{} items have no place in the model here and are left out", node.items.len()),
            );
        }
        if !node.text.trim().is_empty() {
            self.find(
                FindingCode::NotRepresented,
                here.to_owned(),
                format!("the text {:?} has no place in the model and is left out", cut(&node.text)),
            );
        }
    }

    /// Takes the text of a node, as it is.
    pub fn raw(&mut self, mut node: Node) -> String {
        let text = std::mem::take(&mut node.text);
        self.done(node);
        text
    }

    /// Takes a text: of a child or an attribute with one of `names`.
    pub fn text(&mut self, node: &mut Node, names: &str) -> Option<String> {
        match node.child(names) {
            Some(child) => Some(self.raw(child)),
            None => node.attribute(names),
        }
    }

    /// Takes an id or another text that is a word: as [`Self::text`], without the white space around it.
    pub fn word(&mut self, node: &mut Node, names: &str) -> Option<String> {
        self.text(node, names).map(|text| trimmed(&text))
    }

    /// Takes the texts of all children with one of `names`, or of the one attribute.
    pub fn words(&mut self, node: &mut Node, names: &str) -> Vec<String> {
        let mut words: Vec<String> = node.children(names).into_iter().map(|child| trimmed(&self.raw(child))).collect();
        words.extend(node.attribute(names).map(|text| trimmed(&text)));
        words
    }

    /// Takes the texts of all children with one of `names`, as they are.
    pub fn texts(&mut self, node: &mut Node, names: &str) -> Vec<String> {
        let mut texts: Vec<String> = node.children(names).into_iter().map(|child| self.raw(child)).collect();
        texts.extend(node.attribute(names));
        texts
    }

    fn value<T>(
        &mut self,
        node: &mut Node,
        names: &str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(node, names)?;
        let value = read(text.trim());
        if value.is_none() {
            let place = format!("{}/{}", place(node), names.split('|').next().unwrap_or_default());
            let message = format!("{:?} is not {expected}; left out", cut(&text));
            self.find(FindingCode::BadValue, place, message);
        }
        value
    }

    pub fn flag(&mut self, node: &mut Node, names: &str) -> Option<bool> {
        self.value(node, names, "true or false", |text| match text {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        })
    }

    pub fn integer(&mut self, node: &mut Node, names: &str) -> Option<i64> {
        self.value(node, names, "a whole number", |text| text.strip_prefix('+').unwrap_or(text).parse().ok())
    }

    pub fn number(&mut self, node: &mut Node, names: &str) -> Option<f64> {
        self.value(node, names, "a finite number", |text| text.parse().ok().filter(|number: &f64| number.is_finite()))
    }

    pub fn instant(&mut self, node: &mut Node, names: &str) -> Option<catalog_rules::instant::Instant> {
        self.value(node, names, "a date or an instant", super::time::instant)
    }

    pub fn date(&mut self, node: &mut Node, names: &str) -> Option<jiff::civil::Date> {
        self.value(node, names, "a date", super::time::date)
    }

    /// Takes a member of an enum, by its value.
    pub fn member<T>(
        &mut self,
        node: &mut Node,
        names: &str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        self.value(node, names, expected, read)
    }
}

/// Where a node is: its line and name in XML, its path in JSON.
pub(super) fn place(node: &Node) -> String {
    match &node.path {
        Some(path) => path.clone(),
        None if node.line > 0 => format!("line {}: {}", node.line, node.name),
        None => node.name.clone(),
    }
}

/// A text for a message: not longer than a line.
pub(super) fn cut(text: &str) -> String {
    let text = text.trim();
    if text.chars().count() <= 60 { text.to_owned() } else { text.chars().take(60).chain(['…']).collect() }
}

fn trimmed(text: &str) -> String {
    text.trim().to_owned()
}
