//! The canonical text of an artefact, form 1 (*edition* §9): what its fingerprint hashes.
//!
//! Compact JSON in UTF-8. Each object's keys are sorted by code point and the first is `$class`; a set is sorted by the
//! text of its elements; a float has its shortest form that reads back the same; an instant is UTC with microseconds.
//! The text is streamed into a [`Sink`], so that the text of a list of half a million codes never has to exist.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::civil::Date;

use super::model::{Artefact, InternationalString, MappedValues, ReportedValue, Representation};
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
    let mut encoder = Encoder { sink, field: "", fault: None };
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

/// A value that the canonical text spells.
pub(in crate::sdmx) trait Spelt {
    /// Writes the value.
    fn spell(&self, to: &mut Encoder<'_>);
}

/// Writes canonical text. Objects are written by [`super::class`] and [`Encoder::artefact`], which know their keys.
pub(in crate::sdmx) struct Encoder<'a> {
    sink: &'a mut dyn Sink,
    /// The key that was written last.
    field: &'static str,
    /// The first value that could not be spelt.
    fault: Option<Fault>,
}

impl Encoder<'_> {
    fn put(&mut self, text: &str) {
        self.sink.put(text);
    }

    fn fault(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    fn artefact(&mut self, artefact: &Artefact) {
        let (common, lacks) = (artefact.common(), artefact.lacks());
        if let Some(field) = common.not_in_class(lacks) {
            self.fault(Fault::NotInClass(field));
        }
        let mut fields = common.fields(lacks);
        fields.extend(artefact.own());
        fields.sort_unstable_by_key(|(key, _)| *key);
        self.open(artefact.class());
        for (key, value) in fields {
            self.field(key, value);
        }
        self.close();
    }

    /// Begins an object; each further call adds a key until [`Self::close`].
    pub(in crate::sdmx) fn open(&mut self, class: &str) {
        self.put("{\"$class\":\"");
        self.put(class);
        self.put("\"");
    }

    pub(in crate::sdmx) fn close(&mut self) {
        self.put("}");
    }

    /// Writes a key of an object and its value.
    pub(in crate::sdmx) fn field(&mut self, key: &'static str, value: &dyn Spelt) {
        self.put(",\"");
        self.put(key);
        self.put("\":");
        self.field = key;
        value.spell(self);
    }

    /// A string with the escapes of JSON and no other: the control characters, `"` and `\`.
    pub(in crate::sdmx) fn string(&mut self, text: &str) {
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

    fn list<T>(&mut self, elements: impl IntoIterator<Item = T>, mut each: impl FnMut(&mut Self, T)) {
        self.put("[");
        for (at, element) in elements.into_iter().enumerate() {
            if at > 0 {
                self.put(",");
            }
            each(self, element);
        }
        self.put("]");
    }
}

impl Spelt for String {
    fn spell(&self, to: &mut Encoder<'_>) {
        to.string(self);
    }
}

impl Spelt for bool {
    fn spell(&self, to: &mut Encoder<'_>) {
        to.put(if *self { "true" } else { "false" });
    }
}

impl Spelt for i64 {
    fn spell(&self, to: &mut Encoder<'_>) {
        to.put(&self.to_string());
    }
}

impl Spelt for f64 {
    fn spell(&self, to: &mut Encoder<'_>) {
        if !self.is_finite() {
            to.fault(Fault::NonFinite(to.field, *self));
        }
        to.put(&float_text(*self));
    }
}

impl Spelt for Instant {
    fn spell(&self, to: &mut Encoder<'_>) {
        to.string(&self.to_string());
    }
}

impl Spelt for Date {
    fn spell(&self, to: &mut Encoder<'_>) {
        to.string(&self.to_string());
    }
}

impl<T: Spelt> Spelt for Option<T> {
    fn spell(&self, to: &mut Encoder<'_>) {
        match self {
            Some(value) => value.spell(to),
            None => to.put("null"),
        }
    }
}

impl<T: Spelt> Spelt for Arc<T> {
    fn spell(&self, to: &mut Encoder<'_>) {
        T::spell(self, to);
    }
}

impl<T: Spelt> Spelt for Vec<T> {
    fn spell(&self, to: &mut Encoder<'_>) {
        to.list(self, |to, element| element.spell(to));
    }
}

impl Spelt for (String, String) {
    fn spell(&self, to: &mut Encoder<'_>) {
        to.list([&self.0, &self.1], |to, element| element.spell(to));
    }
}

/// A set: sorted by the text of each element, which for strings differs from their own order where one holds an escape
/// or ends within another (`"a b"` comes before `"a"`).
impl<T: Spelt> Spelt for BTreeSet<T> {
    fn spell(&self, to: &mut Encoder<'_>) {
        let mut spelt = Vec::with_capacity(self.len());
        for element in self {
            let mut text = String::new();
            let mut encoder = Encoder { sink: &mut text, field: to.field, fault: None };
            element.spell(&mut encoder);
            if let Some(fault) = encoder.fault {
                to.fault(fault);
            }
            spelt.push(text);
        }
        spelt.sort_unstable();
        to.list(&spelt, |to, text| to.put(text));
    }
}

impl Spelt for InternationalString {
    fn spell(&self, to: &mut Encoder<'_>) {
        to.put("{");
        for (at, (language, text)) in self.iter().enumerate() {
            if at > 0 {
                to.put(",");
            }
            to.string(language);
            to.put(":");
            to.string(text);
        }
        to.put("}");
    }
}

impl Spelt for Representation {
    fn spell(&self, to: &mut Encoder<'_>) {
        match self {
            Self::Enumerated(urn) => urn.spell(to),
            Self::Text(facet) => facet.spell(to),
        }
    }
}

impl Spelt for MappedValues {
    fn spell(&self, to: &mut Encoder<'_>) {
        match self {
            Self::List(urn) => urn.spell(to),
            Self::Type(data_type) => data_type.spell(to),
        }
    }
}

impl Spelt for ReportedValue {
    fn spell(&self, to: &mut Encoder<'_>) {
        match self {
            Self::Text(text) => text.spell(to),
            Self::Languages(texts) => texts.spell(to),
            Self::Flag(flag) => flag.spell(to),
            Self::Integer(number) => number.spell(to),
            Self::Number(number) => number.spell(to),
        }
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

#[cfg(test)]
mod tests;
