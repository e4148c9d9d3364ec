//! The JSON Schemas of `schemas/`, held against the types: both accept and refuse the same documents.

use std::path::PathBuf;

use jsonschema::Validator;
use serde_json::{Value, json};

use super::*;
use crate::seal_journal::JournalEntry;

/// Reads a document: the value that it is written as again, or why it is refused.
type Read = fn(&[u8]) -> Result<Value, Fault>;

#[derive(Debug, PartialEq)]
enum Fault {
    /// A field is missing or of another shape, or the major is unknown: a schema can tell.
    Shape(String),
    /// A rule over several fields: a schema may not be able to tell.
    Rule(String),
}

fn read<D: Document>(bytes: &[u8]) -> Result<Value, Fault> {
    match D::decode(bytes) {
        Ok(document) => Ok(serde_json::from_slice(&document.encode().unwrap()).unwrap()),
        Err(error @ DocumentError::Rule { .. }) => Err(Fault::Rule(error.to_string())),
        Err(error) => Err(Fault::Shape(error.to_string())),
    }
}

fn read_current(bytes: &[u8]) -> Result<Value, Fault> {
    let current = Current::decode(bytes).ok_or_else(|| Fault::Shape("no hint".to_owned()))?;
    Ok(serde_json::from_slice(&current.encode()).unwrap())
}

fn read_journal(bytes: &[u8]) -> Result<Value, Fault> {
    let edition = "01a18e76-2bad-7480-abfe-2ba8a6889a45".parse().unwrap();
    match JournalEntry::decode(&edition, bytes) {
        Ok(entry) => Ok(serde_json::from_slice(&entry.encode()).unwrap()),
        Err(error @ crate::seal_journal::JournalError::Misnamed { .. }) => Err(Fault::Rule(error.to_string())),
        Err(error) => Err(Fault::Shape(error.to_string())),
    }
}

/// An overlay (*edition* §5.1), as its canonical form has it.
fn read_overlay(bytes: &[u8]) -> Result<Value, Fault> {
    match crate::overlay::Overlay::decode(bytes) {
        Ok(overlay) => Ok(serde_json::from_str(&overlay.canonical_json(None)).unwrap()),
        Err(error) => Err(Fault::Shape(error.to_string())),
    }
}

const DOCUMENTS: [(&str, Read); 10] = [
    ("catalog", read::<CatalogJson>),
    ("current", read_current),
    ("history", read::<History>),
    ("leaf", read::<Leaf>),
    ("overlay", read_overlay),
    ("pending", read::<PendingRegistration>),
    ("root", read::<Root>),
    ("seal-journal", read_journal),
    ("segment-header", read::<SegmentHeader>),
    ("segment-line", read::<SegmentLine>),
];

fn load(path: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("schemas").join(path);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap()
}

fn validator(name: &str) -> Validator {
    let schema = load(&format!("{name}.schema.json"));
    jsonschema::meta::validate(&schema).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

fn bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).unwrap()
}

/// The place that `pointer` names, its last part as a key of what it is in.
fn parent<'v>(document: &'v mut Value, pointer: &str) -> (&'v mut Value, String) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    (document.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer} is not there")), key)
}

fn set(document: &mut Value, pointer: &str, value: Value) {
    match parent(document, pointer) {
        (Value::Object(object), key) => drop(object.insert(key, value)),
        (Value::Array(items), key) => items[key.parse::<usize>().unwrap()] = value,
        (other, key) => panic!("{key} of {other}"),
    }
}

fn remove(document: &mut Value, pointer: &str) {
    match parent(document, pointer) {
        (Value::Object(object), key) => assert!(object.remove(&key).is_some(), "{pointer} is not there"),
        (Value::Array(items), key) => drop(items.remove(key.parse().unwrap())),
        (other, key) => panic!("{key} of {other}"),
    }
}

#[test]
fn every_valid_example_is_valid_and_comes_back_as_it_was() {
    for (name, read) in DOCUMENTS {
        let schema = validator(name);
        let examples = load(&format!("examples/{name}.json"));
        let valid = examples["valid"].as_array().unwrap();
        assert!(valid.len() >= 2, "{name} has {} valid examples", valid.len());
        for example in valid {
            schema.validate(example).unwrap_or_else(|error| panic!("{name}: {error} in {example}"));
            let again = read(&bytes(example)).unwrap_or_else(|fault| panic!("{name}: {fault:?} in {example}"));
            // The seal journal's entry is of one minor only: what it does not know it ignores. An overlay comes back in
            // its canonical form, which writes down what is absent.
            let is_kept = name != "overlay" && (name != "seal-journal" || example.get("note").is_none());
            if is_kept {
                assert_eq!(again, *example, "{name}");
            }
        }
    }
}

#[test]
fn every_invalid_example_is_refused_by_schema_and_type() {
    for (name, read) in DOCUMENTS {
        let schema = validator(name);
        let examples = load(&format!("examples/{name}.json"));
        let invalid = examples["invalid"].as_array().unwrap();
        assert!(invalid.len() >= 3, "{name} has {} invalid examples", invalid.len());
        for example in invalid {
            let of = usize::try_from(example.get("of").map_or(0, |of| of.as_u64().unwrap())).unwrap();
            let mut document = examples["valid"][of].clone();
            for (pointer, value) in example.get("set").iter().flat_map(|set| set.as_object().unwrap()) {
                set(&mut document, pointer, value.clone());
            }
            for pointer in example.get("remove").iter().flat_map(|remove| remove.as_array().unwrap()) {
                remove(&mut document, pointer.as_str().unwrap());
            }
            let why = format!("{name}, {}", example["why"]);
            let (by_schema, by_type) = match example.get("found_by").map(|by| by.as_str().unwrap()) {
                None => (true, true),
                Some("decode") => (false, true),
                Some("schema") => (true, false),
                Some(other) => panic!("{why}: found_by {other}"),
            };
            assert_eq!(!schema.is_valid(&document), by_schema, "{why}: the schema");
            assert_eq!(read(&bytes(&document)).is_err(), by_type, "{why}: the type");
        }
    }
}

/// Every place of a document, as a pointer.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut deeper = |key: &str, value: &Value| {
        let place = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        found.push(place.clone());
        places(value, &place, found);
    };
    match value {
        Value::Object(object) => object.iter().for_each(|(key, value)| deeper(key, value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(n, value)| deeper(&n.to_string(), value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn schema_and_type_agree_on_every_field_that_is_missing_or_of_another_kind() {
    let others = [
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(1),
        json!("x"),
        json!("1.2"),
        json!("live"),
        json!("2026-10-09T12:30:00Z"),
        json!([]),
        json!({}),
        json!([null]),
    ];
    for (name, read) in DOCUMENTS {
        let schema = validator(name);
        let examples = load(&format!("examples/{name}.json"));
        let (mut compared, mut refused) = (0, 0);
        let mut compare = |document: &Value, what: &str| {
            compared += 1;
            let by_schema = schema.is_valid(document);
            match read(&bytes(document)) {
                Ok(_) if !by_schema => {
                    // A reader takes any kind of event (catalog §6.2).
                    assert!(what.ends_with("/event/kind"), "{name}: {what} is read, and the schema refuses it");
                }
                Err(Fault::Shape(fault)) if by_schema => {
                    panic!("{name}: {what} is refused ({fault}), and the schema accepts it")
                }
                Ok(_) => {}
                Err(Fault::Shape(_) | Fault::Rule(_)) => refused += 1,
            }
        };
        for example in examples["valid"].as_array().unwrap() {
            let mut found = Vec::new();
            places(example, "", &mut found);
            for place in found {
                let mut document = example.clone();
                remove(&mut document, &place);
                compare(&document, &format!("without {place}"));
                for other in &others {
                    let mut document = example.clone();
                    set(&mut document, &place, other.clone());
                    compare(&document, &format!("{other} at {place}"));
                }
            }
        }
        assert!(compared > 40 && refused > 20, "{name}: {refused} of {compared} refused");
    }
}

#[test]
fn what_the_writer_writes_passes_the_schemas() {
    let (root, leaf, line) = (validator("root"), validator("leaf"), validator("segment-line"));
    let mut world = World::new(true);
    world.publish(structure("s", 1, None, &[("urn:cl", "f1", None)]));
    world.publish(Record { release_at: Some(noon()), ..holds(record("p", 2, None), &[("urn:cl", "c", Some("f1"))]) });
    world.act(&release(&["s", "p"]));
    world.publish(record("p", 3, Some(2)));
    world.act(&release(&["p"]));
    world.act(&rollback(&world, "p", &[]));
    world.act(&retire("p", 3));
    world.act(&reinstate(&world, "p", 3));
    world.act(&retire("p", 3));
    world.act(&Operation::Describe(Map::new()));
    world.publish(record("p", 4, Some(2)));
    world.act(&release(&["p"]));
    world.act(&correct(4, None));
    let newest = (world.root.clone(), world.root_sha256.clone(), world.leaves.clone());
    for (version, sha256, leaves) in world.past.iter().chain([&newest]) {
        let value = serde_json::to_value(version).unwrap();
        root.validate(&value).unwrap_or_else(|error| panic!("{error} in {value}"));
        let value = serde_json::to_value(SegmentLine::of(version, sha256.clone())).unwrap();
        line.validate(&value).unwrap_or_else(|error| panic!("{error} in {value}"));
        for known in leaves.values() {
            let value = serde_json::to_value(known.as_ref()).unwrap();
            leaf.validate(&value).unwrap_or_else(|error| panic!("{error} in {value}"));
        }
    }
}
