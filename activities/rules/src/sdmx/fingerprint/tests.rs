use super::*;
use crate::sdmx::closure::Graph;
use crate::sdmx::vectors::Product;

/// Every artefact fingerprint of a product: computed for the classes of the model, hashed from the text for the others.
fn fingerprints(product: &Product) -> BTreeMap<UrnText, Sha256Hex> {
    let mut all: BTreeMap<UrnText, Sha256Hex> =
        product.texts().into_iter().map(|(urn, text)| (urn, Sha256Hex::of(text.as_bytes()))).collect();
    let artefacts = product.artefacts();
    assert!(artefacts.len() >= 5);
    for artefact in artefacts {
        let computed = artefact_fingerprint(&artefact).unwrap();
        assert_eq!(all.insert(artefact.urn(), computed.clone()), Some(computed), "{}", artefact.urn());
    }
    all
}

#[test]
fn the_fingerprints_of_whole_products_are_reached() {
    for name in ["tiny", "statcan_1"] {
        let Some(product) = Product::load(name) else { return };
        let fingerprints = fingerprints(&product);
        let entries = product.manifest["artefacts"].as_array().unwrap();
        assert_eq!(entries.len(), fingerprints.len());
        for entry in entries {
            assert_eq!(fingerprints[entry["urn"].as_str().unwrap()].as_str(), entry["fingerprint"].as_str().unwrap());
        }

        let rows = product.references();
        let graph = Graph::new(
            fingerprints.keys().map(String::as_str),
            rows.iter().map(|(source, target, ..)| (source.as_str(), target.as_str())),
        );
        let mut bindings = BTreeMap::new();
        for binding in product.manifest["bindings"].as_array().unwrap() {
            let dataflow = binding["dataflow"].as_str().unwrap();
            let closure = graph.closure(dataflow);
            let closed = closure.into_iter().map(|urn| (urn.clone(), fingerprints[&urn].clone())).collect();
            assert_eq!(
                structure_fingerprint(&closed).as_str(),
                product.vectors["structure_fingerprint_3_0_computed"][dataflow].as_str().unwrap(),
                "{name}"
            );
            bindings.insert(dataflow.to_owned(), binding["fingerprint"].as_str().unwrap().parse().unwrap());
        }
        assert_eq!(
            content_fingerprint(&fingerprints, &bindings).as_str(),
            product.manifest["content_fingerprint"].as_str().unwrap(),
            "{name}"
        );
    }
}

#[test]
fn a_table_fingerprint_is_the_sum_of_its_parts() {
    let part = |text: &str| text.parse::<TableFingerprint>().unwrap();
    let parts = [part("49295231726113820520:24"), TableFingerprint::EMPTY, part("4611686018427387903:1")];
    assert_eq!(TableFingerprint::total(parts).unwrap().to_string(), "53906917744541208423:25");
    assert_eq!(TableFingerprint::total([]).unwrap().to_string(), "0:0");
    assert_eq!(part("1:18446744073709551615").plus(part("1:1")), None);
    for bad in ["", "1", ":", "1:", ":1", "-1:1", "1:1:1", "+1:1", "01:1", " 1:1", "1:1.0"] {
        assert!(bad.parse::<TableFingerprint>().is_err(), "{bad:?} passed");
    }
}
