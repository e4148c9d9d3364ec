//! SDMX-JSON 2.0.

use std::fmt;
use std::io::{ErrorKind, Read};

use catalog_rules::sdmx::finding::FindingCode;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::context::{Dialect, cut};
use super::delivery::Delivery;
use super::input::{Budget, Input};
use super::map;
use super::node::Node;
use super::{EVENT_BYTES, ReadError};

pub(super) fn read<R: Read>(input: Input<R>, delivery: &mut Delivery<'_>) -> Result<(), ReadError> {
    delivery.context.dialect = Dialect::Json20;
    let budget = input.budget();
    let mut state = State { delivery, budget, refusal: None, keys: Vec::new(), has_data: false };
    state.piece();
    let mut deserializer = serde_json::Deserializer::from_reader(input);
    let read = deserializer.deserialize_map(Root(&mut state)).and_then(|()| deserializer.end());
    match (read, state.refusal.take()) {
        (_, Some(refusal)) => Err(refusal),
        (Err(error), None) if error.io_error_kind() == Some(ErrorKind::FileTooLarge) => {
            let place = format!("line {}", error.line());
            Err(ReadError::TooLarge { place, limit_bytes: EVENT_BYTES })
        }
        (Err(error), None) if error.is_io() => Err(ReadError::Io(error.into())),
        (Err(error), None) => Err(ReadError::Json(error)),
        (Ok(()), None) if !state.has_data => {
            let keys = state.keys.join(", ");
            Err(ReadError::NotStructures { found: format!("a JSON document with the keys {}", cut(&keys)) })
        }
        (Ok(()), None) => Ok(()),
    }
}

struct State<'a, 'd> {
    delivery: &'a mut Delivery<'d>,
    budget: Budget,
    /// Why reading stopped, where it is not serde's.
    refusal: Option<ReadError>,
    /// The keys of the root.
    keys: Vec<String>,
    has_data: bool,
}

impl State<'_, '_> {
    /// Begins a piece: a key, or a scalar. No more than [`EVENT_BYTES`] of it are taken in.
    fn piece(&self) {
        self.budget.set(EVENT_BYTES);
    }

    /// Goes past a value, which may be as large as it likes, since nothing of it is held.
    fn skip<'de, A: MapAccess<'de>>(&self, map: &mut A) -> Result<(), A::Error> {
        self.budget.set(usize::MAX);
        map.next_value::<IgnoredAny>()?;
        self.piece();
        Ok(())
    }

    /// Stops reading.
    fn refuse<E: serde::de::Error>(&mut self, refusal: ReadError) -> E {
        self.refusal = Some(refusal);
        E::custom("stopped")
    }
}

struct Root<'s, 'a, 'd>(&'s mut State<'a, 'd>);

impl<'de> Visitor<'de> for Root<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a structure message of SDMX-JSON 2.0")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let state = self.0;
        while let Some(key) = map.next_key::<String>()? {
            state.piece();
            match key.as_str() {
                "data" => {
                    state.has_data = true;
                    map.next_value_seed(Data(state))?;
                }
                "meta" => {
                    let mut meta = Node::new("meta", 0);
                    map.next_value_seed(Value { state, into: &mut meta, key: "meta", path: "meta", depth: 1 })?;
                    let schema = meta.child("meta").and_then(|mut meta| meta.attribute("schema"));
                    if let Some(schema) = schema.filter(|schema| schema.contains("/1.0") || schema.contains("/1.")) {
                        let found = format!("an SDMX-JSON 1.0 message ({schema})");
                        return Err(state.refuse(ReadError::NotStructures { found }));
                    }
                }
                "errors" => {
                    let mut errors = Node::new("errors", 0);
                    map.next_value_seed(Value { state, into: &mut errors, key: "errors", path: "errors", depth: 1 })?;
                    for mut error in errors.children("errors") {
                        let text = error.attribute("title").or_else(|| error.attribute("detail")).unwrap_or_default();
                        let message = format!("the service reports an error: {:?}", cut(&text));
                        state.delivery.context.find(FindingCode::Footer, "errors".to_owned(), message);
                    }
                }
                _ => {
                    state.skip(&mut map)?;
                }
            }
            state.keys.push(key);
            state.keys.truncate(10);
        }
        Ok(())
    }
}

/// The artefacts by class.
struct Data<'s, 'a, 'd>(&'s mut State<'a, 'd>);

impl<'de> DeserializeSeed<'de> for Data<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Data<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of lists of artefacts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let state = self.0;
        while let Some(key) = map.next_key::<String>()? {
            state.piece();
            if key == "dataSets" || key == "structure" || key == "structures" {
                let found = format!("a data message (it has data.{key})");
                return Err(state.refuse(ReadError::NotStructures { found }));
            }
            match map::class(&key) {
                Some((.., is_held)) => map.next_value_seed(Artefacts { state, key: &key, is_held })?,
                None => {
                    state.skip(&mut map)?;
                    let message = "this is no list of artefacts that is known; left out".to_owned();
                    state.delivery.context.find(FindingCode::NotRepresented, format!("data.{key}"), message);
                }
            }
        }
        Ok(())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }
}

struct Artefacts<'s, 'k, 'a, 'd> {
    state: &'s mut State<'a, 'd>,
    key: &'k str,
    is_held: bool,
}

impl<'de> DeserializeSeed<'de> for Artefacts<'_, '_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Artefacts<'_, '_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of artefacts as {}", self.key)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Artefacts { state, key, is_held } = self;
        let mut at = 0_u64;
        loop {
            let path = format!("data.{key}[{at}]");
            at += 1;
            state.piece();
            let mut node = Node::new(key, 0);
            node.path = Some(path);
            let name = if is_held { key } else { "" };
            state.delivery.begin(&Node::default());
            // A class that is not held is read without folding anything: its parts are dropped as they end.
            let seed = Object { state, node, name, depth: 3, is_held };
            let Some(node) = list.next_element_seed(seed)? else { return Ok(()) };
            if is_held {
                state.delivery.artefact(node);
            } else {
                state.delivery.unsupported(&node);
            }
        }
    }
}

/// An object that becomes a node. Without `is_held` only its scalars are kept.
struct Object<'s, 'k, 'a, 'd> {
    state: &'s mut State<'a, 'd>,
    node: Node,
    name: &'k str,
    depth: usize,
    is_held: bool,
}

impl<'de> DeserializeSeed<'de> for Object<'_, '_, '_, '_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_, '_, '_, '_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object as {}", if self.name.is_empty() { "an artefact" } else { self.name })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let Object { state, mut node, depth, is_held, .. } = self;
        let path = node.path.clone().unwrap_or_default();
        if let Err(refusal) = Delivery::depth(depth, || path.clone()) {
            return Err(state.refuse(refusal));
        }
        if let Err(refusal) = state.delivery.grow(node.held_bytes + path.len(), || path.clone()) {
            return Err(state.refuse(refusal));
        }
        node.held_bytes += path.len();
        while let Some(key) = map.next_key::<String>()? {
            state.piece();
            if is_held || ["id", "agencyID", "version"].contains(&key.as_str()) {
                map.next_value_seed(Value { state, into: &mut node, key: &key, path: &path, depth })?;
                state.piece();
            } else {
                state.skip(&mut map)?;
            }
        }
        Ok(node)
    }
}

/// A value that goes into a node: a scalar as an attribute, an object as a child, a list as children.
struct Value<'s, 'k, 'a, 'd> {
    state: &'s mut State<'a, 'd>,
    into: &'k mut Node,
    key: &'k str,
    path: &'k str,
    depth: usize,
}

impl Value<'_, '_, '_, '_> {
    /// A number or a flag. Only of a `value` does it matter that it is none of a text.
    fn literal<E: serde::de::Error>(self, value: String) -> Result<(), E> {
        if self.key == "value" {
            self.into.literals.push("value");
        }
        self.scalar(value)
    }

    fn scalar<E: serde::de::Error>(self, value: String) -> Result<(), E> {
        let bytes = self.key.len() + value.len() + 48;
        if value.len() > EVENT_BYTES {
            let place = format!("{}.{}", self.path, self.key);
            return Err(self.state.refuse(ReadError::TooLarge { place, limit_bytes: EVENT_BYTES }));
        }
        let place = || format!("{}.{}", self.path, self.key);
        if let Err(refusal) = self.state.delivery.grow(bytes, place) {
            return Err(self.state.refuse(refusal));
        }
        self.into.held_bytes += bytes;
        self.into.attributes.push((self.key.to_owned(), value));
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_, '_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_, '_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.scalar(value.to_owned())
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.literal(value.to_string())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.literal(value.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.literal(value.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.literal(value.to_string())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let mut node = Node::new(self.key, 0);
        node.path = Some(format!("{}.{}", self.path, self.key));
        let object = Object { state: &mut *self.state, node, name: self.key, depth: self.depth + 1, is_held: true };
        let node = object.visit_map(map)?;
        self.state.delivery.child(self.into, node);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Value { state, into, key, path, depth } = self;
        let mut at = 0_u64;
        loop {
            let here = format!("{path}.{key}[{at}]");
            at += 1;
            state.piece();
            let element = Element { state: &mut *state, into: &mut *into, key, path: here, depth: depth + 1 };
            if list.next_element_seed(element)?.is_none() {
                return Ok(());
            }
        }
    }
}

/// An element of a list: always a child, so that a list of scalars has texts.
struct Element<'s, 'k, 'a, 'd> {
    state: &'s mut State<'a, 'd>,
    into: &'k mut Node,
    key: &'k str,
    path: String,
    depth: usize,
}

impl Element<'_, '_, '_, '_> {
    fn scalar<E: serde::de::Error>(self, value: String) -> Result<(), E> {
        let mut node = Node::new(self.key, 0);
        node.path = Some(self.path.clone());
        node.held_bytes += value.len() + self.path.len();
        node.text = value;
        if let Err(refusal) = self.state.delivery.grow(node.held_bytes, || self.path.clone()) {
            return Err(self.state.refuse(refusal));
        }
        self.state.delivery.child(self.into, node);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Element<'_, '_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Element<'_, '_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an element of a list")
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.scalar(value.to_owned())
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.scalar(value.to_string())
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.scalar(value.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        self.scalar(value.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.scalar(value.to_string())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let mut node = Node::new(self.key, 0);
        node.path = Some(self.path);
        let object = Object { state: &mut *self.state, node, name: self.key, depth: self.depth, is_held: true };
        let node = object.visit_map(map)?;
        self.state.delivery.child(self.into, node);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(A::Error::custom(format!("{}: a list within a list, which SDMX-JSON does not have", self.path)))
    }
}
