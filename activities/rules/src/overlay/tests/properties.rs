//! Random overlays: the order, the audience and the digest hold whatever is in them.

use std::hash::{BuildHasher as _, RandomState};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use super::super::target::{Target, each_target};
use super::*;

/// A runner whose seed is printed, and taken from `JOBCTL_TEST_SEED` where that is set.
fn runner(cases: u32) -> TestRunner {
    let seed = std::env::var("JOBCTL_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0_u8));
    println!("JOBCTL_TEST_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    TestRunner::new_with_rng(Config { cases, failure_persistence: None, ..Config::default() }, rng)
}

const SELECTORS: [&str; 12] = [
    "*",
    "Codelist",
    "Code",
    "Attribute",
    "DataAttribute",
    "Concept",
    "STC:CL_GEO",
    "STC:DSD",
    LIST,
    CODE,
    SCHEME,
    "urn:sdmx:org.sdmx.infomodel.datastructure.DataAttribute=STC:DSD(1.0).STATUS",
];
const AUDIENCES: [&str; 3] = ["public", "internal", "é"];

fn scopes() -> impl Strategy<Value = Value> {
    prop_oneof![Just(Value::Null), select(&AUDIENCES[..]).prop_map(Value::from)]
}

/// Text of every kind that an escape has to do with.
fn words() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[a-c\"\\\\/\u{0}-\u{1f}\u{7f}é\u{2028}😀]{0,4}").unwrap()
}

fn entries() -> impl Strategy<Value = Value> {
    let annotation = (proptest::option::of(words()), words(), proptest::collection::btree_map(words(), words(), 0..3))
        .prop_map(|(id, value, text)| json!({ "id": id, "title": null, "value": value, "text": text }));
    (select(&SELECTORS[..]), select(vec!["set", "add", "remove"]), select(vec!["NOTE", "ORDER"]), annotation, scopes())
        .prop_map(|(selector, op, kind, annotation, scope)| {
            let annotation = if op == "remove" { Value::Null } else { annotation };
            json!({ "selector": selector, "op": op, "type": kind, "annotation": annotation, "scope": scope })
        })
}

fn texts() -> impl Strategy<Value = Value> {
    let field = select(vec!["name", "description"]);
    (select(&SELECTORS[..]), field, select(vec!["en", "fr", "de"]), words(), scopes()).prop_map(
        |(selector, field, lang, text, scope)| {
            json!({ "selector": selector, "op": "set", "field": field, "lang": lang, "text": text, "scope": scope })
        },
    )
}

fn documents() -> impl Strategy<Value = Vec<Value>> {
    let entries = proptest::collection::vec(entries(), 0..8);
    let texts = proptest::collection::vec(texts(), 0..4);
    let document = (words(), entries, texts).prop_map(
        |(id, entries, texts)| json!({ "format_version": "1.2", "id": id, "entries": entries, "texts": texts }),
    );
    proptest::collection::vec(document, 0..4)
}

fn read(documents: &[Value]) -> Vec<Overlay> {
    documents.iter().map(|document| decode(&document.to_string())).collect()
}

/// Whether the selector reaches the target, as *edition* §5.2 has it in words.
fn selects(selector: &str, artefact: &Artefact, target: &Target<'_>) -> bool {
    let urn = artefact.urn();
    let identity = urn.split_once('=').unwrap().1;
    let of_agency = format!("{}:{}", artefact.common().maintainer, artefact.common().id);
    let classes = target.named.classes;
    let is_urn = |class: &&str| {
        let head = format!("urn:sdmx:org.sdmx.infomodel.{}.{class}=", target.named.package);
        match target.named.item {
            Some(item) => selector == format!("{head}{identity}.{item}"),
            None => selector == format!("{head}{identity}"),
        }
    };
    selector == "*"
        || classes.contains(&selector)
        || (target.named.item.is_none() && selector == of_agency)
        || classes.iter().any(is_urn)
}

/// The artefacts after the overlays, by the words of the specification and nothing clever.
fn naively(overlays: &[Overlay], audience: Option<&str>) -> Vec<Artefact> {
    let mut entries: Vec<&OverlayEntry> = overlays.iter().flat_map(|overlay| &overlay.entries).collect();
    let mut texts: Vec<&OverlayText> = overlays.iter().flat_map(|overlay| &overlay.texts).collect();
    let is_for = |scope: &Option<Audience>| match (scope, audience) {
        (Some(scope), Some(audience)) => scope.as_str() == audience,
        (None, _) | (_, None) => true,
    };
    entries.retain(|entry| is_for(&entry.scope));
    texts.retain(|text| is_for(&text.scope));
    let mut artefacts = artefacts();
    for artefact in &mut artefacts {
        let whole = artefact.clone();
        each_target(artefact, |mut target| {
            for specificity in 0..4 {
                for entry in entries.iter().filter(|entry| entry.selector.specificity() == specificity) {
                    if !selects(entry.selector.as_str(), &whole, &target) {
                        continue;
                    }
                    let is_add = matches!(entry.operation, EntryOperation::Add(_));
                    target.annotations.retain(|one| is_add || one.r#type.as_deref() != Some(&entry.annotation_type));
                    if let Some(OverlayAnnotation { id, title, value, text }) = entry.operation.annotation().cloned() {
                        let r#type = Some(entry.annotation_type.clone());
                        target.annotations.push(Annotation { id, title, r#type, urls: Vec::new(), text, value });
                    }
                }
            }
            for specificity in 0..4 {
                for text in texts.iter().filter(|text| text.selector.specificity() == specificity) {
                    if !selects(text.selector.as_str(), &whole, &target) {
                        continue;
                    }
                    let TextOperation::Set(new) = &text.operation else { panic!("only set is made here") };
                    if let Some(held) = target.texts.as_mut() {
                        let languages = match text.field {
                            TextField::Name => &mut *held.name,
                            TextField::Description => &mut *held.description,
                        };
                        languages.insert(text.lang.clone(), new.clone());
                    }
                }
            }
            Ok::<(), ()>(())
        })
        .unwrap();
    }
    artefacts
}

#[test]
fn any_overlays_apply_in_the_order_of_the_specification() {
    let audience = proptest::option::of(select(&AUDIENCES[..]));
    let changes = std::cell::Cell::new(0);
    let held = runner(256).run(&(documents(), audience), |(documents, audience)| {
        let overlays = read(&documents);
        let applied = folded(&overlays, audience).unwrap();
        prop_assert_eq!(&applied.artefacts, &naively(&overlays, audience));
        // What is told as changed is what is no longer what it was.
        let pairs = artefacts().into_iter().zip(&applied.artefacts);
        let others = pairs.filter(|(before, after)| before != *after).map(|(before, _)| before.urn());
        prop_assert_eq!(others.collect::<std::collections::BTreeSet<_>>(), applied.changed.clone());
        changes.set(changes.get() + applied.changed.len());
        Ok(())
    });
    held.unwrap_or_else(|fault| panic!("{fault}"));
    assert!(changes.get() > 100, "only {} artefacts changed: nothing was tried", changes.get());
}

#[test]
fn an_audience_is_served_as_if_the_other_entries_were_not_there() {
    let held = runner(256).run(&(documents(), select(&AUDIENCES[..])), |(documents, audience)| {
        let (overlays, for_it) = (read(&documents), Audience::new(audience));
        let reduced: Vec<Overlay> = overlays.iter().map(|overlay| overlay.as_applied(Some(&for_it))).collect();
        prop_assert_eq!(folded(&overlays, Some(audience)).unwrap(), {
            let mut applied = folded(&reduced, None).unwrap();
            // The same steps under the numbers that they had.
            let whole = Applying::new(&overlays, Some(&for_it), Purpose::Folding).unwrap();
            applied.entries.iter_mut().zip(whole.entries()).for_each(|(effect, (source, _))| effect.source = source);
            applied.texts.iter_mut().zip(whole.texts()).for_each(|(effect, (source, _))| effect.source = source);
            applied
        });
        for (overlay, reduced) in overlays.iter().zip(&reduced) {
            prop_assert_eq!(overlay.digest(Some(&for_it)), reduced.digest(None));
            let is_whole = overlay == reduced;
            prop_assert_eq!(overlay.digest(None) == reduced.digest(None), is_whole);
        }
        Ok(())
    });
    held.unwrap_or_else(|fault| panic!("{fault}"));
}

/// The document written in another way: keys backwards, spaces, what is null or empty left out.
fn otherwise(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            out.push_str("{ ");
            let is_text = fields.values().all(Value::is_string);
            let mut kept: Vec<_> = fields.iter().filter(|(_, value)| is_text || !value.is_null()).collect();
            kept.retain(|(key, value)| *key != "texts" || value.as_array().is_none_or(|texts| !texts.is_empty()));
            kept.reverse();
            for (at, (key, value)) in kept.into_iter().enumerate() {
                out.push_str(if at > 0 { " ,\n" } else { "" });
                // Every character as an escape.
                let escaped: String = key.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
                out.push_str(&format!("\"{escaped}\" : "));
                otherwise(value, out);
            }
            out.push('}');
        }
        Value::Array(elements) => {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                out.push_str(if at > 0 { ",\t" } else { "" });
                otherwise(element, out);
            }
            out.push_str(" ]");
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => out.push_str(&value.to_string()),
    }
}

#[test]
fn a_digest_does_not_move_with_how_a_document_is_written_and_moves_with_what_it_says() {
    let held = runner(256).run(&documents(), |documents| {
        let overlays = read(&documents);
        for (overlay, document) in overlays.iter().zip(&documents) {
            let canonical = overlay.canonical_json(None);
            prop_assert_eq!(&decode(&canonical), overlay);
            let mut written = String::new();
            otherwise(document, &mut written);
            prop_assert_eq!(decode(&written).canonical_json(None), canonical.clone(), "{}", written);
            // Sorted keys at every level, and no character that needs none is escaped.
            let sorted: Value = serde_json::from_str(&canonical).unwrap();
            prop_assert_eq!(sorted.to_string(), canonical);
        }
        for (one, other) in overlays.iter().zip(overlays.iter().skip(1)) {
            prop_assert_eq!(one == other, one.digest(None) == other.digest(None));
        }
        Ok(())
    });
    held.unwrap_or_else(|fault| panic!("{fault}"));
}

#[test]
fn a_token_moves_with_every_overlay_and_with_their_order() {
    let edition = "0192f6a0-5c1e-7c3a-9f00-0a1b2c3d4e5f".parse().unwrap();
    let held = runner(128).run(&documents(), |documents| {
        let mut overlays = read(&documents);
        overlays.iter_mut().for_each(|overlay| overlay.texts.clear());
        let token = |overlays: &[Overlay]| effective_token(&edition, overlays, None, &Hooks::none()).unwrap();
        let whole = token(&overlays);
        for at in 0..overlays.len() {
            let mut fewer = overlays.clone();
            fewer.remove(at);
            prop_assert_ne!(token(&fewer), whole.clone());
            let mut turned = overlays.clone();
            turned.swap(at, 0);
            prop_assert_eq!(token(&turned) == whole, turned == overlays);
        }
        Ok(())
    });
    held.unwrap_or_else(|fault| panic!("{fault}"));
}

#[test]
fn no_prefix_and_no_changed_byte_of_a_document_is_more_than_refused() {
    let whole =
        std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/examples/overlay.json"))
            .unwrap();
    let examples: Value = serde_json::from_str(&whole).unwrap();
    for example in examples["valid"].as_array().unwrap() {
        let bytes = example.to_string().into_bytes();
        for at in 0..bytes.len() {
            assert!(Overlay::decode(&bytes[..at]).is_err(), "the first {at} bytes of {example}");
            for flip in [0x01, 0x20, 0x80] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                // Another document, or none: never a panic.
                let _ = check(&changed);
            }
        }
    }
}
