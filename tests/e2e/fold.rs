//! `jobctl run fold`: overlays become an edition over the same data files, or nothing happens.

use std::collections::BTreeMap;

use activities::duck::{DuckSettings, STORE};
use activities::edition::EditionReader;
use activities::metadata_store::MetadataStore;
use catalog_rules::sdmx::model::{Artefact, Codelist};
use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::table::Table;

const PRODUCT: &str = "99100001";

/// A catalog in which one edition of the product is live; and its id.
fn world() -> (Env, String) {
    let env = Env::with_catalog();
    let source = env.path("table.zip");
    Table::new(PRODUCT, 3).write_zip(&source);
    let first = env.publish(PRODUCT, &source)["output"]["edition_id"].as_str().unwrap().to_owned();
    (env, first)
}

fn artefacts(env: &Env, edition: &str) -> Vec<Artefact> {
    let duck = DuckSettings::new(env.path("temp"));
    let folder = env.path(&format!("catalog/products/{PRODUCT}/{edition}"));
    let reader = EditionReader::open(&duck, &folder).unwrap();
    MetadataStore::new(reader.session().connection(), STORE).read_artefacts().unwrap()
}

fn geography(artefacts: &[Artefact]) -> &Codelist {
    let lists = artefacts.iter().filter_map(|artefact| match artefact {
        Artefact::Codelist(list) => Some(list),
        _ => None,
    });
    lists.max_by_key(|list| list.codes.len()).unwrap()
}

/// An overlay that gives the first code a French name and every codelist a note.
fn overlay(artefacts: &[Artefact]) -> Value {
    let list = geography(artefacts);
    let code = format!(
        "urn:sdmx:org.sdmx.infomodel.codelist.Code={}:{}({}).{}",
        list.common.maintainer, list.common.id, list.common.version, list.codes[0].id
    );
    json!({
        "format_version": "1.2",
        "id": "mended",
        "entries": [
            {"selector": "Codelist", "op": "set", "type": "NOTE", "annotation": {"value": "mended"}, "scope": "public"},
            {"selector": "STC:NOWHERE", "op": "remove", "type": "NOTE"},
        ],
        "texts": [{"selector": code, "op": "set", "field": "name", "lang": "fr", "text": "Un nom corrigé"}],
    })
}

fn manifest(env: &Env, edition: &str) -> Value {
    env.json(["edition", "show", edition, "--product", PRODUCT])["manifest"].clone()
}

/// Path, size and SHA-256 of each data file.
fn data(manifest: &Value) -> Vec<Value> {
    let files = manifest["files"].as_array().unwrap().iter().filter(|file| file["root"] == "data");
    files.map(|file| json!([file["path"], file["size"], file["digests"]["sha256"]])).collect()
}

fn fingerprints(manifest: &Value) -> BTreeMap<String, String> {
    let entries = manifest["artefacts"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    entries.map(|entry| (text(&entry["urn"]), text(&entry["fingerprint"]))).collect()
}

const FOLD: [&str; 6] = ["run", "fold", "--product", PRODUCT, "--overlay", "mended.json"];

#[test]
fn a_fold_makes_a_new_live_edition_over_the_same_data_files() {
    let (env, first) = world();
    let before = artefacts(&env, &first);
    std::fs::write(env.path("mended.json"), overlay(&before).to_string()).unwrap();
    let ran = env.jobctl(FOLD.iter().chain(&["--reason", "a misspelt name", "--json"])).exits(0).json();
    assert_eq!((&ran["schema"], &ran["state"]), (&json!("jobctl.run.fold/1"), &json!("succeeded")));
    let output = &ran["output"];
    let second = output["edition_id"].as_str().unwrap();
    assert_eq!(json!([output["previous"], output["state"], output["seq"]]), json!([first, "live", 3]));

    // What changed is what the overlay says, and nothing else.
    let after = artefacts(&env, second);
    let (list, old) = (geography(&after), geography(&before));
    assert_eq!(list.codes[0].name["fr"], "Un nom corrigé");
    assert_eq!(list.codes[0].name["en"], old.codes[0].name["en"]);
    assert_eq!(list.codes[1..], old.codes[1..]);
    assert_eq!(list.common.annotations.last().unwrap().value.as_deref(), Some("mended"));
    let (old, new) = (manifest(&env, &first), manifest(&env, second));
    assert_eq!(data(&old), data(&new));
    let (was, is) = (fingerprints(&old), fingerprints(&new));
    assert!(was.keys().eq(is.keys()));
    for (urn, fingerprint) in &was {
        assert_eq!(is[urn] != *fingerprint, urn.contains(".Codelist="), "{urn}");
    }
    let changed = is.iter().filter(|(urn, fingerprint)| was[*urn] != **fingerprint).count();
    assert_eq!(output["changed"], changed);
    assert_eq!(old["bindings"][0]["fingerprint"], new["bindings"][0]["fingerprint"]);
    assert_eq!(old["producer"], new["producer"]);

    // It is checked, recorded with its reason, and the folded edition is as it was.
    env.jobctl(["edition", "check", second, "--product", PRODUCT]).exits(0);
    env.jobctl(["edition", "check", &first, "--product", PRODUCT]).exits(0);
    env.jobctl(["verify", "--full"]).exits(0);
    env.jobctl(["inventory", "product", PRODUCT]).exits(0).says(&["superseded", "live", "a misspelt name"]);
    let shown = env.json(["runs", "show", ran["run_id"].as_str().unwrap()]);
    let fold = shown["steps"].as_array().unwrap().iter().find(|step| step["name"] == "fold").unwrap();
    assert_eq!(json!([fold["output"]["applied"], fold["output"]["untargeted"]]), json!([3, ["entries[1] of mended"]]));

    // A second time there is nothing to do, and a publish goes on upon it.
    let bytes = env.catalog_bytes();
    env.jobctl(FOLD.iter().chain(&["--reason", "again"])).exits(3).says(&["catalog.overlay_changes_nothing", second]);
    assert_eq!(env.catalog_bytes(), bytes);
    let third = env.publish(PRODUCT, &env.path("table.zip"));
    assert_eq!(third["output"]["previous"], second);
}

#[test]
fn an_audience_folds_its_entries_alone() {
    let (env, first) = world();
    let before = artefacts(&env, &first);
    let mut overlay = overlay(&before);
    overlay["texts"][0]["scope"] = json!("internal");
    std::fs::write(env.path("mended.json"), overlay.to_string()).unwrap();
    let ran = env.jobctl(FOLD.iter().chain(&["--audience", "public", "--reason", "r", "--json"])).exits(0).json();
    let after = artefacts(&env, ran["output"]["edition_id"].as_str().unwrap());
    assert_eq!(geography(&after).codes, geography(&before).codes);
    assert_ne!(geography(&after).common.annotations, geography(&before).common.annotations);
    // Nothing of it is for this audience.
    env.jobctl(FOLD.iter().chain(&["--audience", "nobody", "--reason", "r"]))
        .exits(3)
        .says(&["catalog.overlay_changes_nothing"]);
}

#[test]
fn what_cannot_be_folded_is_refused_and_leaves_the_catalog_as_it_was() {
    let (env, first) = world();
    let before = artefacts(&env, &first);
    let bytes = env.catalog_bytes();
    let fold = |overlay: &Value, code: i32, words: &[&str]| {
        std::fs::write(env.path("mended.json"), overlay.to_string()).unwrap();
        env.jobctl(FOLD.iter().chain(&["--reason", "r"])).exits(code).says(words);
        assert_eq!(env.catalog_bytes(), bytes, "{words:?}");
        assert_eq!(std::fs::read_dir(env.path(&format!("catalog/products/{PRODUCT}"))).unwrap().count(), 3);
    };
    let mut last = overlay(&before);
    last["texts"] = geography(&before).codes[0]
        .name
        .keys()
        .map(|lang| {
            let selector = &overlay(&before)["texts"][0]["selector"];
            json!({"selector": selector, "op": "remove", "field": "name", "lang": lang})
        })
        .collect();
    fold(&last, 3, &["catalog.overlay_last_name", "the last language of the name", "Code=STC:"]);
    let mut misspelt = overlay(&before);
    misspelt["entries"][0]["annotation"]["titel"] = json!("x");
    fold(&misspelt, 1, &["overlay.invalid", "entries[0].annotation.titel", "one of id, title, value, text"]);
    let elsewhere = json!({"format_version": "1.0", "id": "x", "entries": [
        {"selector": "STC:ELSEWHERE", "op": "add", "type": "NOTE", "annotation": {}}]});
    fold(&elsewhere, 3, &["catalog.overlay_changes_nothing", "another product"]);

    let product = |product: &'static str, file: &'static str| {
        env.jobctl(["run", "fold", "--product", product, "--overlay", file, "--reason", "r"])
    };
    product(PRODUCT, "none.json").exits(1).says(&["overlay.unreadable", "none.json"]);
    product("99100002", "mended.json")
        .exits(3)
        .says(&["catalog.nothing_live", "jobctl run publish --product 99100002"]);
    product("..", "mended.json").exits(2).says(&["product id"]);
    env.jobctl(FOLD).exits(2).says(&["--reason"]);
    assert_eq!(env.json(["inventory", "show"])["products"].as_array().unwrap().len(), 1);
}

#[test]
fn a_fold_under_embargo_waits_for_its_release() {
    let env = Env::empty();
    env.jobctl(["init", "--embargo", "on"]).exits(0);
    Table::new(PRODUCT, 3).write_zip(&env.path("table.zip"));
    env.publish(PRODUCT, &env.path("table.zip"));
    let anything = json!({"format_version": "1.0", "id": "x", "entries": [
        {"selector": "*", "op": "add", "type": "NOTE", "annotation": {}}]});
    std::fs::write(env.path("mended.json"), anything.to_string()).unwrap();
    // What is embargoed is not live, and only what is live is folded.
    env.jobctl(FOLD.iter().chain(&["--reason", "r"])).exits(3).says(&["catalog.nothing_live"]);
    env.jobctl(["run", "release", "--product", PRODUCT]).exits(0);
    let words = ["--release-at", "2099-12-04T13:30:00Z", "--reason", "r", "--json"];
    let ran = env.jobctl(FOLD.iter().chain(&words)).exits(0).json();
    assert_eq!(ran["output"]["state"], "embargoed");
    let products = env.json(["inventory", "products"]);
    assert_eq!(products["embargoed"][0]["edition_id"], ran["output"]["edition_id"]);
    assert_eq!(products["embargoed"][0]["release_at"], "2099-12-04T13:30:00.000000Z");
    assert_eq!(products["products"][0]["heads"][0]["edition_id"], ran["output"]["previous"]);
}
