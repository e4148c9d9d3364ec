//! The canonical text of an artefact, form 1 (*edition* §9): what its fingerprint hashes.
//!
//! Compact JSON in UTF-8. Each object's keys are sorted by code point and the first is `$class`; a set is sorted by the
//! text of its elements; a float has its shortest form that reads back the same; an instant is UTC with microseconds.
//! The text is streamed into a [`Sink`], so that the text of a list of half a million codes never has to exist.

mod classes;

use std::collections::{BTreeMap, BTreeSet};

use super::model::Artefact;
use crate::instant::Instant;

/// The canonical form that is written here. Fingerprints made at different forms are never compared.
pub const CANONICAL_FORM: &str = "1";

/// Where canonical text goes.
pub trait Sink {
    /// Takes the next piece of the text.
    fn put(&mut self, piece: &str);
}

impl Sink for String {
    fn put(&mut self, piece: &str) {
        self.push_str(piece);
    }
}

/// A value that the canonical text cannot spell.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CanonicalError {
    /// Infinity, or not a number.
    #[error("edition §9 spells no non-finite number: {urn} has {found} as {field}; give a number or leave it out")]
    NonFinite {
        /// The artefact.
        urn: String,
        /// The field.
        field: &'static str,
        /// What it holds.
        found: f64,
    },
    /// A field that the artefact's class does not have.
    #[error("{urn} has {field}, which the class does not have: the text would drop it (edition §9); leave it out")]
    NotInClass {
        /// The artefact.
        urn: String,
        /// The field.
        field: &'static str,
    },
}

/// Writes the canonical text of `artefact` into `sink`.
///
/// # Errors
/// [`CanonicalError`] for a value that the text cannot spell; what the sink took by then is of no use.
pub fn write_canonical<S: Sink>(artefact: &Artefact, sink: &mut S) -> Result<(), CanonicalError> {
    let mut encoder = Encoder { sink, fault: None };
    encoder.artefact(artefact);
    let urn = || artefact.urn();
    match encoder.fault {
        None => Ok(()),
        Some(Fault::NonFinite(field, found)) => Err(CanonicalError::NonFinite { urn: urn(), field, found }),
        Some(Fault::NotInClass(field)) => Err(CanonicalError::NotInClass { urn: urn(), field }),
    }
}

/// The canonical text of `artefact`.
///
/// # Errors
/// As [`write_canonical`].
pub fn canonical_text(artefact: &Artefact) -> Result<String, CanonicalError> {
    let mut text = String::new();
    write_canonical(artefact, &mut text)?;
    Ok(text)
}

enum Fault {
    NonFinite(&'static str, f64),
    NotInClass(&'static str),
}

/// Writes objects field by field, in the order of the calls: the callers in [`classes`] call in key order.
struct Encoder<'a, S> {
    sink: &'a mut S,
    /// The first value that could not be spelt.
    fault: Option<Fault>,
}

impl<S: Sink> Encoder<'_, S> {
    fn put(&mut self, text: &str) {
        self.sink.put(text);
    }

    fn fault(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    /// Begins an object; each further call adds a key until [`Self::close`].
    fn open(&mut self, class: &str) {
        self.put("{\"$class\":\"");
        self.put(class);
        self.put("\"");
    }

    fn close(&mut self) {
        self.put("}");
    }

    fn key(&mut self, key: &str) {
        self.put(",\"");
        self.put(key);
        self.put("\":");
    }

    /// A string with the escapes of JSON and no other: the control characters, `"` and `\`.
    fn string(&mut self, text: &str) {
        self.put("\"");
        let mut done = 0;
        for (at, byte) in text.bytes().enumerate() {
            if byte >= 0x20 && byte != b'"' && byte != b'\\' {
                continue;
            }
            self.put(&text[done..at]);
            done = at + 1;
            match byte {
                b'"' => self.put("\\\""),
                b'\\' => self.put("\\\\"),
                0x08 => self.put("\\b"),
                b'\t' => self.put("\\t"),
                b'\n' => self.put("\\n"),
                0x0c => self.put("\\f"),
                b'\r' => self.put("\\r"),
                control => self.put(&format!("\\u{control:04x}")),
            }
        }
        self.put(&text[done..]);
        self.put("\"");
    }

    fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        self.string(text);
    }

    fn opt_text(&mut self, key: &str, text: Option<&str>) {
        self.key(key);
        match text {
            Some(text) => self.string(text),
            None => self.put("null"),
        }
    }

    fn flag(&mut self, key: &str, value: bool) {
        self.key(key);
        self.put(if value { "true" } else { "false" });
    }

    fn opt_flag(&mut self, key: &str, value: Option<bool>) {
        match value {
            Some(value) => self.flag(key, value),
            None => self.null(key),
        }
    }

    fn null(&mut self, key: &str) {
        self.key(key);
        self.put("null");
    }

    fn integer(&mut self, key: &str, value: Option<i64>) {
        self.key(key);
        match value {
            Some(value) => self.put(&value.to_string()),
            None => self.put("null"),
        }
    }

    fn float(&mut self, key: &'static str, value: Option<f64>) {
        let Some(value) = value else { return self.null(key) };
        if !value.is_finite() {
            self.fault(Fault::NonFinite(key, value));
        }
        self.key(key);
        self.put(&float_text(value));
    }

    fn instant(&mut self, key: &str, value: Option<Instant>) {
        let Some(value) = value else { return self.null(key) };
        self.text(key, &value.to_string());
    }

    fn languages(&mut self, key: &str, texts: &BTreeMap<String, String>) {
        self.key(key);
        self.put("{");
        for (at, (language, text)) in texts.iter().enumerate() {
            if at > 0 {
                self.put(",");
            }
            self.string(language);
            self.put(":");
            self.string(text);
        }
        self.put("}");
    }

    fn list<T>(&mut self, key: &str, elements: &[T], each: impl Fn(&mut Self, &T)) {
        self.key(key);
        self.put("[");
        for (at, element) in elements.iter().enumerate() {
            if at > 0 {
                self.put(",");
            }
            each(self, element);
        }
        self.put("]");
    }

    fn opt_list<T>(&mut self, key: &str, elements: Option<&[T]>, each: impl Fn(&mut Self, &T)) {
        match elements {
            Some(elements) => self.list(key, elements, each),
            None => self.null(key),
        }
    }

    fn texts(&mut self, key: &str, texts: &[String]) {
        self.list(key, texts, |encoder, text| encoder.string(text));
    }

    fn opt_texts(&mut self, key: &str, texts: Option<&[String]>) {
        self.opt_list(key, texts, |encoder, text| encoder.string(text));
    }

    /// A set: sorted by the text of each element, which for strings differs from their own order where one holds an
    /// escape or ends within another (`"a b"` comes before `"a"`).
    fn set(&mut self, key: &str, texts: &BTreeSet<String>) {
        let mut spelt: Vec<String> = texts.iter().map(|text| spell(text)).collect();
        spelt.sort_unstable();
        self.list(key, &spelt, |encoder, text| encoder.put(text));
    }
}

/// The shortest digits that read back as `value`. From 1e-5 up to 1e16 they are written with a point, and beyond with an
/// exponent without a plus sign.
fn float_text(value: f64) -> String {
    // Rust writes the shortest digits too, as in 1.25e-7.
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if !(-5..16).contains(&exponent) {
        return scientific;
    }
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |digits| ("-", digits));
    let digits = mantissa.replace('.', "");
    // Where the point is among the digits: within them, or some zeros before or after.
    match usize::try_from(exponent + 1) {
        Ok(point) if point > 0 && point < digits.len() => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
        Ok(point) if point > 0 => format!("{sign}{digits:0<point$}.0"),
        Ok(_) | Err(_) => format!("{sign}0.{}{digits}", "0".repeat(exponent.unsigned_abs() as usize - 1)),
    }
}

fn spell(text: &str) -> String {
    let mut spelt = String::with_capacity(text.len() + 2);
    Encoder { sink: &mut spelt, fault: None }.string(text);
    spelt
}

#[cfg(test)]
mod tests;
