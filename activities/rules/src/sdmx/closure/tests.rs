use super::*;
use crate::sdmx::vectors::Product;

#[test]
fn the_closures_of_whole_products_are_reached() {
    for name in ["tiny", "statcan_1"] {
        let Some(product) = Product::load(name) else { return };
        let (texts, rows) = (product.texts(), product.references());
        let edges = rows.iter().map(|(source, target, ..)| (source.as_str(), target.as_str()));
        let graph = Graph::new(texts.keys().map(String::as_str), edges);
        for (dataflow, expected) in product.vectors["closures_3_0"].as_object().unwrap() {
            let expected: BTreeSet<UrnText> =
                expected.as_array().unwrap().iter().map(|urn| urn.as_str().unwrap().to_owned()).collect();
            assert_eq!(graph.closure(dataflow), expected, "{name}");
        }
    }
}

fn urn(class: &str, id: &str) -> String {
    format!("urn:sdmx:org.sdmx.infomodel.datastructure.{class}=STC:{id}")
}

/// The ids of a closure of `DF(1.0)`, where `held` are artefacts and `edges` references, each as class and id.
fn closure(held: &[(&str, &str)], edges: &[[(&str, &str); 2]]) -> Vec<String> {
    let held: Vec<String> = held.iter().map(|(class, id)| urn(class, id)).collect();
    let edges: Vec<_> = edges.iter().map(|[(a, b), (c, d)]| (urn(a, b), urn(c, d))).collect();
    let graph =
        Graph::new(held.iter().map(String::as_str), edges.iter().map(|(from, to)| (from.as_str(), to.as_str())));
    let closure = graph.closure(&urn("Dataflow", "DF(1.0)"));
    closure.iter().map(|urn| urn.split_once(':').unwrap().1.split_once("STC:").unwrap().1.to_owned()).collect()
}

const FLOW: (&str, &str) = ("Dataflow", "DF(1.0)");
const STRUCTURE: (&str, &str) = ("DataStructure", "DSD(1.0)");

#[test]
fn a_sibling_and_a_binding_are_left_out_and_a_constraint_is_not() {
    let held = [
        FLOW,
        STRUCTURE,
        ("Dataflow", "SIBLING(1.0)"),
        ("DataConstraint", "CR(1.0)"),
        ("DataflowBinding", "DF(1.0)"),
        ("Codelist", "OTHER(1.0)"),
    ];
    let edges = [
        [FLOW, STRUCTURE],
        [("Dataflow", "SIBLING(1.0)"), STRUCTURE],
        [("DataConstraint", "CR(1.0)"), ("Dimension", "DSD(1.0).GEO")],
        [("DataflowBinding", "DF(1.0)"), FLOW],
    ];
    assert_eq!(closure(&held, &edges), ["CR(1.0)", "DSD(1.0)", "DF(1.0)"]);
}

#[test]
fn only_referrers_of_the_dataflow_and_its_structure_count() {
    // What refers to a codelist of the structure is no part of the closure; what a referrer refers to is.
    let held = [FLOW, STRUCTURE, ("DataConstraint", "CR(1.0)"), ("Categorisation", "C(1.0)"), ("X", "TARGET(1.0)")];
    let edges = [
        [FLOW, STRUCTURE],
        [("Categorisation", "C(1.0)"), FLOW],
        [("Categorisation", "C(1.0)"), ("X", "TARGET(1.0)")],
        [("DataConstraint", "CR(1.0)"), ("X", "TARGET(1.0)")],
    ];
    assert_eq!(closure(&held, &edges), ["C(1.0)", "DSD(1.0)", "DF(1.0)", "TARGET(1.0)"]);
}

#[test]
fn a_reference_without_a_version_is_to_the_latest_and_a_loop_ends() {
    let held = [FLOW, ("DataStructure", "DSD(1.9)"), ("DataStructure", "DSD(1.10)"), ("DataStructure", "DSD(1.10-x)")];
    let edges = [[FLOW, ("DataStructure", "DSD")], [("DataStructure", "DSD(1.10)"), FLOW]];
    assert_eq!(closure(&held, &edges), ["DSD(1.10)", "DF(1.0)"]);
}

#[test]
fn what_is_not_held_is_in_no_closure() {
    assert_eq!(closure(&[FLOW], &[[FLOW, STRUCTURE]]), ["DF(1.0)"]);
    assert_eq!(closure(&[STRUCTURE], &[[FLOW, STRUCTURE]]), Vec::<String>::new());
}
