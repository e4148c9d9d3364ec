//! The digests and tokens that the reference implementation computed, and those of the specification.

use serde_json::Value;

use super::*;
use crate::ids::EditionId;
use crate::shared::shared;

const LABELS: &str = r#"{"format_version": "1.0", "id": "labels", "entries": [
  {"selector": "Codelist", "op": "set", "type": "NOTE",
   "annotation": {"text": {"en": "Ünïcode"}}}]}"#;

#[test]
fn the_example_of_the_specification_has_its_text_its_digest_and_both_its_tokens() {
    let labels = decode(LABELS);
    assert_eq!(
        labels.canonical_json(None),
        r#"{"entries":[{"annotation":{"id":null,"text":{"en":"Ünïcode"},"title":null,"value":null},"op":"set","scope":null,"selector":"Codelist","type":"NOTE"}],"format_version":"1.0","id":"labels"}"#
    );
    assert_eq!(labels.digest(None).as_str(), "1903c3b4ad0c0ec6dd9ae8111675d2eec167b4c94921b62fba9e9ac09230777a");
    let edition: EditionId = "0192f6a0-5c1e-7c3a-9f00-0a1b2c3d4e5f".parse().unwrap();
    let token = |hooks: &Hooks| effective_token(&edition, std::slice::from_ref(&labels), None, hooks).unwrap();
    assert_eq!(token(&Hooks::none()).as_str(), "f6850812689c5af4872b4c931d684127e37a8c47c0b9e76e29e72095645ce93b");
    assert_eq!(
        token(&"NOTE=acme-labels:notes@1.2".parse().unwrap()).as_str(),
        "5d778ce03b5557a0e17535898bd6c75c34f8c3693856fccbfb8f22ee2e19d84e"
    );
    assert_eq!(effective_token(&edition, &[], None, &Hooks::none()).unwrap().as_str(), edition.as_str());
}

#[test]
fn every_digest_and_token_of_the_reference_data_is_reached() {
    let Some(path) = shared("vectors/fingerprints/overlays_effective_tokens.json") else { return };
    let vectors: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut overlays = BTreeMap::new();
    for vector in vectors["overlays"].as_array().unwrap() {
        let overlay = Overlay::decode(vector["document"].to_string().as_bytes()).unwrap();
        assert_eq!(overlay.digest(None).as_str(), vector["digest"], "{}", vector["name"]);
        for (audience, digest) in vector["digest_by_audience"].as_object().unwrap() {
            let audience = (audience != "None").then(|| Audience::new(audience));
            assert_eq!(overlay.digest(audience.as_ref()).as_str(), digest, "{} for {audience:?}", vector["name"]);
        }
        overlays.insert(text(&vector["name"]), overlay);
    }
    let tokens = vectors["tokens"].as_array().unwrap();
    for vector in tokens {
        let applied: Vec<Overlay> =
            vector["overlays"].as_array().unwrap().iter().map(|name| overlays[&text(name)].clone()).collect();
        let audience = vector["audience"].as_str().map(Audience::new);
        assert_eq!(vector["hooks"], "default", "a vector with hooks: read them here");
        let edition = text(&vector["edition_id"]).parse().unwrap();
        for (format, key) in [(TokenFormat::V2, "v2_from_sdmxlib_0.74"), (TokenFormat::V3, "v3_computed_per_seed_5_4")]
        {
            let token = token_in(format, &edition, &applied, audience.as_ref(), &Hooks::none()).unwrap();
            assert_eq!(token.as_str(), vector[key], "{key} of {vector}");
        }
    }
    assert!(overlays.len() >= 3 && tokens.len() >= 16, "{} overlays, {} tokens", overlays.len(), tokens.len());
}
