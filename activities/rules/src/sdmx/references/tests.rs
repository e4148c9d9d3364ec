use super::*;
use crate::sdmx::model::{DataStructure, Dimension, Maintained, MeasureDimension, TimeDimension};
use crate::sdmx::vectors::Product;

#[test]
fn the_references_of_whole_products_are_the_stored_ones() {
    for name in ["tiny", "statcan_1"] {
        let Some(product) = Product::load(name) else { return };
        let artefacts = product.artefacts();
        let urns: BTreeSet<UrnText> = artefacts.iter().map(super::Artefact::urn).collect();
        let mut found: Vec<_> = artefacts
            .iter()
            .flat_map(references)
            .map(|r| (r.source, r.target, r.role.into_owned(), r.ordinal))
            .collect();
        found.sort();
        let mut expected = product.references();
        expected.retain(|(source, ..)| urns.contains(source));
        expected.sort();
        assert!(!expected.is_empty());
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_target_counts_once_for_each_role() {
    let list = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL(1.0)".to_owned();
    let scheme = "urn:sdmx:org.sdmx.infomodel.conceptscheme.ConceptScheme=STC:CS(1.0)".to_owned();
    let dimension = |id: &str| Dimension {
        id: id.to_owned(),
        representation: Some(Representation::Enumerated(list.clone())),
        ..Dimension::default()
    };
    let structure = DataStructure {
        common: Maintained { id: "D".into(), maintainer: "STC".into(), version: "1.0".into(), ..Default::default() },
        dimensions: vec![dimension("A"), dimension("B")],
        time_dimension: Some(TimeDimension::default()),
        measure_dimension: Some(MeasureDimension {
            representation: Some(Representation::Enumerated(scheme.clone())),
            ..MeasureDimension::default()
        }),
        metadata: Some("urn:sdmx:org.sdmx.infomodel.metadatastructure.MetadataStructure=STC:M(1.0)".into()),
        ..DataStructure::default()
    };
    let found = references(&Artefact::DataStructure(Box::new(structure)));
    let short: Vec<_> = found.iter().map(|r| (r.target.as_str(), r.role.as_ref(), r.ordinal)).collect();
    assert_eq!(
        short,
        [
            (list.as_str(), "enumeration", Some(0)),
            (scheme.as_str(), "enumeration", Some(3)),
            ("urn:sdmx:org.sdmx.infomodel.metadatastructure.MetadataStructure=STC:M(1.0)", "metadata", None),
        ]
    );
}
