//! `jobctl overlay`: what is wrong with overlays is told with its place, and digests and tokens are those of the format.

use serde_json::json;

use crate::support::env::Env;
use crate::support::reference::shared;
use crate::support::table::Table;

const LABELS: &str = r#"{"format_version": "1.0", "id": "labels", "entries": [
  {"selector": "Codelist", "op": "set", "type": "NOTE",
   "annotation": {"text": {"en": "Ünïcode"}}}]}"#;
const LABELS_DIGEST: &str = "1903c3b4ad0c0ec6dd9ae8111675d2eec167b4c94921b62fba9e9ac09230777a";

/// One entry for an audience, one text for another.
const SCOPED: &str = r#"{"format_version":"1.2","id":"scoped","entries":[
  {"selector":"*","op":"remove","type":"DRAFT","scope":"public"}],"texts":[
  {"selector":"Code","op":"remove","field":"description","lang":"en","scope":"internal"}]}"#;

#[test]
fn every_fault_of_an_overlay_is_told_with_its_place_and_exit_code_6() {
    let env = Env::empty();
    std::fs::write(env.path("labels.overlay.json"), LABELS).unwrap();
    std::fs::write(
        env.path("bad.overlay.json"),
        r#"{"format_version":"1.2","id":"x","entries":[{"selector":"STC:CL(1.0)","op":"set","typ":"N","annotation":{"titel":"t"}}]}"#,
    )
    .unwrap();
    std::fs::write(
        env.path("odd.overlay.json"),
        r#"{"format_version":"1.2","id":"x","entries":[{"selector":"Codlist","op":"remove","type":"N"}]}"#,
    )
    .unwrap();
    env.jobctl(["overlay", "check", "labels.overlay.json"]).exits(0).says(&["\"labels\"", "1 entry", "no finding"]);
    env.jobctl(["overlay", "check", "labels.overlay.json", "bad.overlay.json"]).exits(6).says(&[
        "labels.overlay.json: overlay",
        "bad.overlay.json",
        "entries[0].typ ",
        "entries[0].annotation.titel",
        "overlay.not_a_selector",
        "one of id, title, value, text",
    ]);
    let checked = env.jobctl(["overlay", "check", "bad.overlay.json", "odd.overlay.json", "--json"]).exits(6).json();
    assert_eq!(checked["schema"], "jobctl.overlay.check/1");
    let [bad, odd] = [&checked["overlays"][0], &checked["overlays"][1]];
    assert_eq!((&bad["valid"], &bad["digest"]), (&json!(false), &json!(null)));
    let told: Vec<_> =
        bad["findings"].as_array().unwrap().iter().map(|it| json!([it["place"], it["code"], it["refused"]])).collect();
    assert_eq!(
        told,
        [
            json!(["entries[0].typ", "overlay.unknown_field", true]),
            json!(["entries[0].selector", "overlay.not_a_selector", true]),
            json!(["entries[0].type", "overlay.missing_field", true]),
            json!(["entries[0].annotation.titel", "overlay.unknown_field", true]),
        ]
    );
    // What only cannot have an effect leaves the overlay valid.
    assert_eq!(odd["valid"], true);
    assert_eq!(
        json!([odd["findings"][0]["code"], odd["findings"][0]["refused"]]),
        json!(["overlay.unknown_class", false])
    );
    env.jobctl(["overlay", "digest", "odd.overlay.json"]).exits(0);

    env.jobctl(["overlay", "digest", "bad.overlay.json"]).exits(3).says(&["entries[0].typ", "overlay check"]);
    env.jobctl(["overlay", "check", "none.json"]).exits(2).says(&["none.json"]);
    env.jobctl(["overlay", "check"]).exits(2).says(&["FILE"]);
}

#[test]
fn a_digest_is_that_of_the_format_for_each_audience() {
    let env = Env::empty();
    std::fs::write(env.path("labels"), LABELS).unwrap();
    std::fs::write(env.path("scoped"), SCOPED).unwrap();
    let ran = env.jobctl(["overlay", "digest", "labels"]).exits(0);
    assert_eq!(ran.stdout, format!("{LABELS_DIGEST}  labels\n"));
    let digest = |audience: &[&str]| {
        let args = ["overlay", "digest", "labels", "scoped", "--json"].iter().chain(audience);
        let document = env.jobctl(args).exits(0).json();
        assert_eq!(document["schema"], "jobctl.overlay.digest/1");
        assert_eq!(document["overlays"][0]["digest"], LABELS_DIGEST);
        document["overlays"][1]["digest"].as_str().unwrap().to_owned()
    };
    let (all, public, other) = (digest(&[]), digest(&["--audience", "public"]), digest(&["--audience", "other"]));
    assert!(all != public && public != other && all != other);
    assert_eq!(other, digest(&["--audience", "nobody"]));
}

#[test]
fn every_digest_of_the_reference_data_is_printed() {
    let Some(path) = shared("vectors/fingerprints/overlays_effective_tokens.json") else { return };
    let vectors: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let env = Env::empty();
    for vector in vectors["overlays"].as_array().unwrap() {
        std::fs::write(env.path("it"), vector["document"].to_string()).unwrap();
        for (audience, digest) in vector["digest_by_audience"].as_object().unwrap() {
            let audience = if audience == "None" { vec![] } else { vec!["--audience", audience] };
            let printed = env.jobctl(["overlay", "digest", "it"].iter().chain(&audience)).exits(0).stdout;
            assert_eq!(printed, format!("{}  it\n", digest.as_str().unwrap()), "{}", vector["name"]);
        }
    }
}

#[test]
fn a_token_is_of_the_live_edition_or_of_one_that_is_named() {
    const PRODUCT: &str = "99100001";
    let env = Env::with_catalog();
    let ids = [0, 100].map(|revision| {
        let source = env.path(&format!("{revision}.zip"));
        Table { revision, ..Table::new(PRODUCT, 3) }.write_zip(&source);
        env.publish(PRODUCT, &source)["output"]["edition_id"].as_str().unwrap().to_owned()
    });
    std::fs::write(env.path("labels"), LABELS).unwrap();
    std::fs::write(env.path("scoped"), SCOPED).unwrap();
    let before = env.catalog_bytes();
    let token = |args: &[&str]| {
        let args = ["overlay", "token", "--product", PRODUCT].iter().chain(args).copied();
        env.jobctl(args).exits(0).stdout.trim_end().to_owned()
    };
    // The text that is hashed, as edition §5.4 spells it.
    let expected = |edition: &str, hooks: &str, digests: &[&str]| {
        let text = [&["v3", edition, hooks], digests].concat().join("\n");
        catalog_rules::ids::Sha256Hex::of(text.as_bytes()).to_string()
    };
    assert_eq!(token(&[]), ids[1]);
    assert_eq!(token(&["labels"]), expected(&ids[1], "default", &[LABELS_DIGEST]));
    assert_eq!(token(&["labels", "--edition", &ids[0]]), expected(&ids[0], "default", &[LABELS_DIGEST]));
    let hooks = ["labels", "--hook", "ORDER=b:c@1", "--hook", "NOTE=acme-labels:notes@1.2"];
    let line = "NOTE=acme-labels:notes@1.2,ORDER=b:c@1";
    assert_eq!(token(&hooks), expected(&ids[1], line, &[LABELS_DIGEST]));
    let public = env.json(["overlay", "digest", "scoped", "--audience", "public"]);
    let public = public["overlays"][0]["digest"].as_str().unwrap();
    let both = ["scoped", "labels", "--audience", "public"];
    assert_eq!(token(&both), expected(&ids[1], "default", &[public, LABELS_DIGEST]));
    let document = env.json(["overlay", "token", "--product", PRODUCT, "labels"]);
    assert_eq!(
        json!([document["schema"], document["edition_id"], document["hooks"], document["overlays"][0]["id"]]),
        json!(["jobctl.overlay.token/1", ids[1], "default", "labels"])
    );

    let refused = |args: &[&str]| env.jobctl(["overlay", "token", "--product", PRODUCT].iter().chain(args).copied());
    // A name is never served: the whole overlay, and the audience that it is for.
    refused(&["scoped"]).exits(3).says(&["texts[0]", "catalog.overlay_texts", "jobctl run fold"]);
    refused(&["scoped", "--audience", "internal"]).exits(3).says(&["texts[0]"]);
    refused(&["--hook", "NOTE=x"]).exits(2).says(&["TYPE=PACKAGE:NAME@VERSION"]);
    refused(&["--hook", "NOTE=a:b@1", "--hook", "NOTE=a:b@2"]).exits(2).says(&["two hooks", "a:b@1", "a:b@2"]);
    refused(&["--edition", "0000"]).exits(2).says(&["no edition 0000"]);
    env.jobctl(["overlay", "token", "--product", "99100002", "labels"]).exits(2).says(&["99100002", "--edition"]);
    assert_eq!(env.catalog_bytes(), before);
}
