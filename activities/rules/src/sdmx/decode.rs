//! An artefact read back from its canonical text (*edition* §9).
//!
//! Nothing is dropped: a field that the model does not have is an error, and the artefact that was read is written
//! again and must give the same text.

mod classes;

use serde_json::{Map, Value};

use super::canonical::{CanonicalError, canonical_text};
use super::model::{Artefact, InternationalString};
use crate::instant::Instant;

/// Why a text is not the canonical text of an artefact that the model holds.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The text is not JSON.
    #[error("canonical text is JSON (edition §9), and this is not")]
    Json(#[from] serde_json::Error),
    /// A class that is none of the model's maintainable ones.
    #[error(
        "{found:?} is no class that is read here: expected AgencyScheme, Codelist, ConceptScheme, DataStructure or \
         Dataflow; read the artefact with a version of this program that knows the class"
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
    let artefact = classes::artefact(serde_json::from_str(text)?)?;
    let written = canonical_text(&artefact)?;
    if written == text {
        return Ok(artefact);
    }
    let at = text.bytes().zip(written.bytes()).take_while(|(a, b)| a == b).count();
    let excerpt = |text: &str| String::from_utf8_lossy(&text.as_bytes()[at..text.len().min(at + 40)]).into_owned();
    Err(DecodeError::NotCanonical { at, found: excerpt(text), written: excerpt(&written) })
}

type Decoded<T> = Result<T, DecodeError>;

/// The fields of one object that were not read yet.
struct Fields {
    place: String,
    fields: Map<String, Value>,
}

fn kind<T>(place: String, expected: &'static str, found: &Value) -> Decoded<T> {
    let found = found.to_string().chars().take(60).collect();
    Err(DecodeError::Kind { place, expected, found })
}

impl Fields {
    /// The fields of `value`, an object of `class` at `place`.
    fn of(value: Value, class: &'static str, place: &str) -> Decoded<Self> {
        let Value::Object(fields) = value else { return kind(place.to_owned(), "an object", &value) };
        let mut fields = Self { place: place.to_owned(), fields };
        match fields.take("$class")? {
            Value::String(found) if found == class => Ok(fields),
            found => kind(fields.at("$class"), class, &found),
        }
    }

    fn at(&self, key: &str) -> String {
        format!("{}.{key}", self.place)
    }

    fn take(&mut self, key: &'static str) -> Decoded<Value> {
        self.fields.remove(key).ok_or_else(|| DecodeError::Missing { place: self.at(key) })
    }

    /// Says that every field was read.
    fn done(self) -> Decoded<()> {
        match self.fields.keys().next() {
            None => Ok(()),
            Some(key) => Err(DecodeError::Unknown { place: self.at(key) }),
        }
    }

    fn opt<T>(&mut self, key: &'static str, read: impl FnOnce(&str, Value) -> Decoded<T>) -> Decoded<Option<T>> {
        match self.take(key)? {
            Value::Null => Ok(None),
            value => read(&self.at(key), value).map(Some),
        }
    }

    fn list<T>(&mut self, key: &'static str, read: impl Fn(&str, Value) -> Decoded<T>) -> Decoded<Vec<T>> {
        let value = self.take(key)?;
        list(&self.at(key), value, read)
    }

    fn text(&mut self, key: &'static str) -> Decoded<String> {
        let value = self.take(key)?;
        text(&self.at(key), value)
    }

    fn opt_text(&mut self, key: &'static str) -> Decoded<Option<String>> {
        self.opt(key, text)
    }

    fn texts(&mut self, key: &'static str) -> Decoded<Vec<String>> {
        self.list(key, text)
    }

    fn opt_texts(&mut self, key: &'static str) -> Decoded<Option<Vec<String>>> {
        self.opt(key, |place, value| list(place, value, text))
    }

    fn flag(&mut self, key: &'static str) -> Decoded<bool> {
        let value = self.take(key)?;
        flag(&self.at(key), value)
    }

    fn opt_flag(&mut self, key: &'static str) -> Decoded<Option<bool>> {
        self.opt(key, flag)
    }

    fn opt_integer(&mut self, key: &'static str) -> Decoded<Option<i64>> {
        self.opt(key, integer)
    }

    fn integer(&mut self, key: &'static str) -> Decoded<i64> {
        let value = self.take(key)?;
        integer(&self.at(key), value)
    }

    fn opt_float(&mut self, key: &'static str) -> Decoded<Option<f64>> {
        // An integer here would be written with a fraction: another text.
        self.opt(key, |place, value| {
            match value.as_number().filter(|number| number.is_f64()).and_then(|n| n.as_f64()) {
                Some(number) => Ok(number),
                None => kind(place.to_owned(), "a number with a fraction or an exponent", &value),
            }
        })
    }

    fn opt_instant(&mut self, key: &'static str) -> Decoded<Option<Instant>> {
        self.opt(key, |place, value| match value.as_str().and_then(|text| text.parse().ok()) {
            Some(instant) => Ok(instant),
            None => kind(place.to_owned(), "an instant such as 2020-01-01T00:00:00.000000Z", &value),
        })
    }

    fn languages(&mut self, key: &'static str) -> Decoded<InternationalString> {
        let place = self.at(key);
        match self.take(key)? {
            Value::Object(texts) => {
                texts.into_iter().map(|(language, value)| Ok((language, text(&place, value)?))).collect()
            }
            value => kind(place, "an object of language to text", &value),
        }
    }

    /// A member of an enum, by its name.
    fn member<T>(
        &mut self,
        key: &'static str,
        expected: &'static str,
        named: impl Fn(&str) -> Option<T>,
    ) -> Decoded<T> {
        let value = self.take(key)?;
        match value.as_str().and_then(named) {
            Some(member) => Ok(member),
            None => kind(self.at(key), expected, &value),
        }
    }
}

fn list<T>(place: &str, value: Value, read: impl Fn(&str, Value) -> Decoded<T>) -> Decoded<Vec<T>> {
    match value {
        Value::Array(elements) => {
            let read_at = |(at, element)| read(&format!("{place}[{at}]"), element);
            elements.into_iter().enumerate().map(read_at).collect()
        }
        value => kind(place.to_owned(), "an array", &value),
    }
}

fn text(place: &str, value: Value) -> Decoded<String> {
    match value {
        Value::String(text) => Ok(text),
        value => kind(place.to_owned(), "a string", &value),
    }
}

fn flag(place: &str, value: Value) -> Decoded<bool> {
    value.as_bool().map_or_else(|| kind(place.to_owned(), "true or false", &value), Ok)
}

fn integer(place: &str, value: Value) -> Decoded<i64> {
    value.as_i64().map_or_else(|| kind(place.to_owned(), "an integer", &value), Ok)
}

#[cfg(test)]
mod tests;
