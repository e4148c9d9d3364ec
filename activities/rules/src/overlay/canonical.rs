//! The canonical JSON of an overlay, and the digest over it (*edition* §5.4).
//!
//! No whitespace, the keys of every object by code point, every field there: `null` for one that is absent, `{}` for
//! an empty text. `texts` alone is left out where it is empty, so that an overlay that changes no name digests as it
//! did before there were texts. Characters beyond ASCII stand for themselves.

use super::document::{Audience, Overlay, OverlayAnnotation, OverlayEntry, OverlayText, TextOperation, applies};
use crate::ids::Sha256Hex;

impl Overlay {
    /// The canonical JSON of the overlay as `audience` sees it.
    #[must_use]
    pub fn canonical_json(&self, audience: Option<&Audience>) -> String {
        let mut out = String::from("{\"entries\":[");
        let entries = self.entries.iter().filter(|entry| applies(entry.scope.as_ref(), audience));
        separated(&mut out, entries, entry);
        out.push_str("],\"format_version\":");
        string(&mut out, &self.format_version.to_string());
        out.push_str(",\"id\":");
        string(&mut out, &self.id);
        let mut texts = self.texts.iter().filter(|text| applies(text.scope.as_ref(), audience)).peekable();
        if texts.peek().is_some() {
            out.push_str(",\"texts\":[");
            separated(&mut out, texts, text);
            out.push(']');
        }
        out.push('}');
        out
    }

    /// The overlay's digest as `audience` sees it: the SHA-256 of its canonical JSON.
    #[must_use]
    pub fn digest(&self, audience: Option<&Audience>) -> Sha256Hex {
        Sha256Hex::of(self.canonical_json(audience).as_bytes())
    }
}

fn separated<T>(out: &mut String, elements: impl Iterator<Item = T>, each: impl Fn(&mut String, T)) {
    for (at, element) in elements.enumerate() {
        if at > 0 {
            out.push(',');
        }
        each(out, element);
    }
}

fn entry(out: &mut String, entry: &OverlayEntry) {
    out.push_str("{\"annotation\":");
    match entry.operation.annotation() {
        Some(OverlayAnnotation { id, title, value, text }) => {
            out.push_str("{\"id\":");
            optional(out, id.as_deref());
            out.push_str(",\"text\":{");
            // A map of strings is in the order of their bytes, which in UTF-8 is that of their code points.
            separated(out, text.iter(), |out, (language, text)| {
                string(out, language);
                out.push(':');
                string(out, text);
            });
            out.push_str("},\"title\":");
            optional(out, title.as_deref());
            out.push_str(",\"value\":");
            optional(out, value.as_deref());
            out.push('}');
        }
        None => out.push_str("null"),
    }
    out.push_str(",\"op\":");
    string(out, entry.operation.word());
    out.push_str(",\"scope\":");
    optional(out, entry.scope.as_ref().map(Audience::as_str));
    out.push_str(",\"selector\":");
    string(out, entry.selector.as_str());
    out.push_str(",\"type\":");
    string(out, &entry.annotation_type);
    out.push('}');
}

fn text(out: &mut String, text: &OverlayText) {
    out.push_str("{\"field\":");
    string(out, text.field.word());
    out.push_str(",\"lang\":");
    string(out, &text.lang);
    out.push_str(",\"op\":");
    string(out, text.operation.word());
    out.push_str(",\"scope\":");
    optional(out, text.scope.as_ref().map(Audience::as_str));
    out.push_str(",\"selector\":");
    string(out, text.selector.as_str());
    out.push_str(",\"text\":");
    optional(
        out,
        match &text.operation {
            TextOperation::Set(text) => Some(text),
            TextOperation::Remove => None,
        },
    );
    out.push('}');
}

fn optional(out: &mut String, text: Option<&str>) {
    match text {
        Some(text) => string(out, text),
        None => out.push_str("null"),
    }
}

/// A string with the escapes that JSON asks for and no other, in lowercase.
fn string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
}
