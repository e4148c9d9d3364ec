//! An artefact read back from its canonical text (*edition* §9).
//!
//! Nothing is dropped: a field that the model does not have is an error, and the artefact that was read is written
//! again and must give the same text.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::civil::Date;
use serde_json::{Map, Value};

use super::canonical::{CanonicalError, canonical_text};
use super::model::{Artefact, Facet, InternationalString, MapDataType, MappedValues, ReportedValue, Representation};
use crate::instant::Instant;

/// Why a text is not the canonical text of an artefact that the model holds.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The text is not JSON.
    #[error("canonical text is JSON (edition §9), and this is not")]
    Json(#[from] serde_json::Error),
    /// A class that is none of the model's maintainable ones.
    #[error(
        "{found:?} is no class of maintainable artefacts: expected one of {}; read the artefact with a version of this \
         program that knows the class",
        super::model::CLASSES.join(", ")
    )]
    Class {
        /// The class that the text names.
        found: String,
    },
    /// A field that the class has is not there.
    #[error("{place} is missing: canonical text holds every field of its class (edition §9)")]
    Missing {
        /// The path of the field.
        place: String,
    },
    /// A field that the class does not have.
    #[error("{place} is no field that is read here, and dropping it would change the fingerprint (edition §9)")]
    Unknown {
        /// The path of the field.
        place: String,
    },
    /// A value of another kind than the field's.
    #[error("{place} is {found}: expected {expected} (edition §9)")]
    Kind {
        /// The path of the field.
        place: String,
        /// What a value there looks like.
        expected: &'static str,
        /// The value, cut short.
        found: String,
    },
    /// What was read gives another text.
    #[error(
        "the text is not in canonical form {form} (edition §9): at byte {at} it has {found:?}, and writing what was \
         read gives {written:?}; write it again from its source",
        form = super::canonical::CANONICAL_FORM
    )]
    NotCanonical {
        /// The first byte that differs.
        at: usize,
        /// The text from there, cut short.
        found: String,
        /// What is written instead, cut short.
        written: String,
    },
    /// What was read cannot be written.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
}

/// The artefact whose canonical text is `text`.
///
/// # Errors
/// [`DecodeError`], naming the field, when the text is of another form or of a class or field that the model does not
/// have.
pub fn decode(text: &str) -> Result<Artefact, DecodeError> {
    let artefact = artefact(serde_json::from_str(text)?)?;
    let written = canonical_text(&artefact)?;
    if written == text {
        return Ok(artefact);
    }
    let at = text.bytes().zip(written.bytes()).take_while(|(a, b)| a == b).count();
    let excerpt = |text: &str| String::from_utf8_lossy(&text.as_bytes()[at..text.len().min(at + 40)]).into_owned();
    Err(DecodeError::NotCanonical { at, found: excerpt(text), written: excerpt(&written) })
}

fn artefact(value: Value) -> Decoded<Artefact> {
    let class = value.get("$class").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut fields = Fields::of(value, &class, &class)?;
    let artefact = Artefact::read(&class, &mut fields).ok_or(DecodeError::Class { found: class })??;
    fields.done()?;
    Ok(artefact)
}

pub(in crate::sdmx) type Decoded<T> = Result<T, DecodeError>;

/// A value that is read back from the canonical text.
pub(in crate::sdmx) trait Unspelt: Sized {
    /// Reads the value that stands at `place`.
    fn read(place: &str, value: Value) -> Decoded<Self>;
}

/// The fields of one object that were not read yet.
pub(in crate::sdmx) struct Fields {
    place: String,
    fields: Map<String, Value>,
}

/// The error for a value of another kind than `expected`.
pub(in crate::sdmx) fn kind<T>(place: String, expected: &'static str, found: &Value) -> Decoded<T> {
    let found = found.to_string().chars().take(60).collect();
    Err(DecodeError::Kind { place, expected, found })
}

impl Fields {
    /// The fields of `value`, an object of `class` at `place`.
    pub(in crate::sdmx) fn of(value: Value, class: &str, place: &str) -> Decoded<Self> {
        let Value::Object(fields) = value else { return kind(place.to_owned(), "an object", &value) };
        let mut fields = Self { place: place.to_owned(), fields };
        match fields.take("$class")? {
            Value::String(found) if found == class => Ok(fields),
            found => kind(fields.at("$class"), "the class that belongs here", &found),
        }
    }

    fn at(&self, key: &str) -> String {
        format!("{}.{key}", self.place)
    }

    fn take(&mut self, key: &'static str) -> Decoded<Value> {
        self.fields.remove(key).ok_or_else(|| DecodeError::Missing { place: self.at(key) })
    }

    /// Reads the field `key`, which must be there.
    pub(in crate::sdmx) fn field<T: Unspelt>(&mut self, key: &'static str) -> Decoded<T> {
        let value = self.take(key)?;
        T::read(&self.at(key), value)
    }

    /// Says that every field was read.
    pub(in crate::sdmx) fn done(self) -> Decoded<()> {
        match self.fields.keys().next() {
            None => Ok(()),
            Some(key) => Err(DecodeError::Unknown { place: self.at(key) }),
        }
    }
}

impl Unspelt for String {
    fn read(place: &str, value: Value) -> Decoded<Self> {
        match value {
            Value::String(text) => Ok(text),
            value => kind(place.to_owned(), "a string", &value),
        }
    }
}

impl Unspelt for bool {
    fn read(place: &str, value: Value) -> Decoded<Self> {
        value.as_bool().map_or_else(|| kind(place.to_owned(), "true or false", &value), Ok)
    }
}

impl Unspelt for i64 {
    fn read(place: &str, value: Value) -> Decoded<Self> {
        value.as_i64().map_or_else(|| kind(place.to_owned(), "an integer", &value), Ok)
    }
}

impl Unspelt for f64 {
    fn read(place: &str, value: Value) -> Decoded<Self> {
        // An integer here would be written with a fraction: another text.
        match value.as_number().filter(|number| number.is_f64()).and_then(|number| number.as_f64()) {
            Some(number) => Ok(number),
            None => kind(place.to_owned(), "a number with a fraction or an exponent", &value),
        }
    }
}

impl Unspelt for Instant {
    fn read(place: &str, value: Value) -> Decoded<Self> {
        match value.as_str().and_then(|text| text.parse().ok()) {
            Some(instant) => Ok(instant),
            None => kind(place.to_owned(), "an instant such as 2020-01-01T00:00:00.000000Z", &value),
        }
    }
}

impl Unspelt for Date {
    fn read(place: &str, value: Value) -> Decoded<Self> {
        match value.as_str().and_then(|text| text.parse().ok()) {
            Some(date) => Ok(date),
            None => kind(place.to_owned(), "a date such as 2020-01-01", &value),
        }
    }
}

impl<T: Unspelt> Unspelt for Option<T> {
    fn read(place: &str, value: Value) -> Decoded<Self> {
        match value {
            Value::Null => Ok(None),
            value => T::read(place, value).map(Some),
        }
    }
}

impl<T: Unspelt> Unspelt for Arc<T> {
    fn read(place: &str, value: Value) -> Decoded<Self> {
        T::read(place, value).map(Self::new)
    }
}

impl<T: Unspelt> Unspelt for Vec<T> {
    fn read(place: &str, value: Value) -> Decoded<Self> {
        match value {
            Value::Array(elements) => {
                let read_at = |(at, element)| T::read(&format!("{place}[{at}]"), element);
                elements.into_iter().enumerate().map(read_at).collect()
            }
            value => kind(place.to_owned(), "an array", &value),
        }
    }
}

impl<T: Unspelt + Ord> Unspelt for BTreeSet<T> {
    fn read(place: &str, value: Value) -> Decoded<Self> {
        Vec::read(place, value).map(|elements| elements.into_iter().collect())
    }
}

impl Unspelt for (String, String) {
    fn read(place: &str, value: Value) -> Decoded<Self> {
        let found = value.to_string();
        match <[String; 2]>::try_from(Vec::<String>::read(place, value)?) {
            Ok([first, second]) => Ok((first, second)),
            Err(_) => kind(place.to_owned(), "an array of two strings", &Value::String(found)),
        }
    }
}

impl Unspelt for InternationalString {
    fn read(place: &str, value: Value) -> Decoded<Self> {
        match value {
            Value::Object(texts) => {
                texts.into_iter().map(|(language, value)| Ok((language, String::read(place, value)?))).collect()
            }
            value => kind(place.to_owned(), "an object of language to text", &value),
        }
    }
}

impl Unspelt for Representation {
    fn read(place: &str, value: Value) -> Decoded<Self> {
        match value {
            Value::String(urn) => Ok(Self::Enumerated(urn)),
            value => Facet::read(place, value).map(|facet| Self::Text(Box::new(facet))),
        }
    }
}

impl Unspelt for MappedValues {
    fn read(place: &str, value: Value) -> Decoded<Self> {
        match value {
            Value::String(urn) => Ok(Self::List(urn)),
            value => MapDataType::read(place, value).map(Self::Type),
        }
    }
}

impl Unspelt for ReportedValue {
    fn read(place: &str, value: Value) -> Decoded<Self> {
        match value {
            Value::String(text) => Ok(Self::Text(text)),
            Value::Bool(flag) => Ok(Self::Flag(flag)),
            Value::Number(number) if number.is_f64() => f64::read(place, Value::Number(number)).map(Self::Number),
            Value::Number(number) => i64::read(place, Value::Number(number)).map(Self::Integer),
            value @ (Value::Null | Value::Array(_) | Value::Object(_)) => {
                InternationalString::read(place, value).map(Self::Languages)
            }
        }
    }
}

#[cfg(test)]
mod tests;
