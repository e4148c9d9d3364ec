use std::collections::BTreeSet;

use super::super::tests::{FRENCH_HEADER, FRENCH_META, FRENCH_ROWS, HEADER, META, ROWS, kinds, read_text};
use super::super::{ColumnRole, FindingKind, ProductStructure};
use super::*;

fn product() -> ProductStructure {
    read_text(&format!("{HEADER}{ROWS}"), Some(META)).unwrap().0
}

fn parts_of(structure: &ProductStructure) -> (Vec<&Codelist>, &ConceptScheme, &DataStructure, &Dataflow) {
    let (mut lists, mut scheme, mut dsd, mut flow) = (Vec::new(), None, None, None);
    for artefact in &structure.artefacts {
        match artefact {
            Artefact::Codelist(list) => lists.push(list),
            Artefact::ConceptScheme(found) => assert!(scheme.replace(found).is_none()),
            Artefact::DataStructure(found) => assert!(dsd.replace(&**found).is_none()),
            Artefact::Dataflow(found) => assert!(flow.replace(&**found).is_none()),
            other => panic!("no {} is made", other.class()),
        }
    }
    (lists, scheme.unwrap(), dsd.unwrap(), flow.unwrap())
}

#[test]
fn every_reference_leads_to_an_artefact_of_the_product() {
    for structure in [product(), read_text(&format!("{FRENCH_HEADER}{FRENCH_ROWS}"), Some(FRENCH_META)).unwrap().0] {
        let (lists, scheme, dsd, flow) = parts_of(&structure);
        let urns: BTreeSet<String> = lists.iter().map(|list| codelist_urn(&list.common.id)).collect();
        assert_eq!(urns.len(), lists.len());
        let concepts: BTreeSet<String> = scheme
            .concepts
            .iter()
            .map(|concept| {
                format!("urn:sdmx:org.sdmx.infomodel.conceptscheme.Concept=STC:CS_99100001(1.0).{}", concept.id)
            })
            .collect();
        let mut components: Vec<(&str, ColumnRole)> = Vec::new();
        let check = |concept: &Option<String>, representation: Option<&Representation>| {
            assert!(concepts.contains(concept.as_ref().unwrap()), "{concept:?}");
            if let Some(Representation::Enumerated(urn)) = representation {
                assert!(urns.contains(urn), "{urn}");
            }
        };
        for dimension in &dsd.dimensions {
            check(&dimension.concept, dimension.representation.as_ref());
            components.push((&dimension.id, ColumnRole::Dimension));
        }
        let time = dsd.time_dimension.as_ref().unwrap();
        check(&time.concept, None);
        components.push((&time.id, ColumnRole::Time));
        for measure in &dsd.measures {
            check(&measure.concept, measure.representation.as_ref());
            components.push((&measure.id, ColumnRole::Measure));
        }
        for attribute in &dsd.attributes {
            check(&attribute.concept, attribute.representation.as_ref());
            components.push((&attribute.id, ColumnRole::Attribute));
        }
        // Each component has its column, in the same order.
        let columns: Vec<(&str, ColumnRole)> =
            structure.table.columns.iter().map(|column| (column.component.as_str(), column.role)).collect();
        assert_eq!(columns, components);
        assert_eq!(flow.structure.as_deref(), Some(structure.data_structure.as_str()));
        assert_eq!(
            structure.data_structure,
            "urn:sdmx:org.sdmx.infomodel.datastructure.DataStructure=STC:DSD_99100001(1.0)"
        );
        assert_eq!(structure.dataflow, "urn:sdmx:org.sdmx.infomodel.datastructure.Dataflow=STC:DF_99100001(1.0)");
        for list in lists {
            assert!(!list.common.name.is_empty());
            let ids: BTreeSet<&str> = list.codes.iter().map(|code| code.id.as_str()).collect();
            assert_eq!(ids.len(), list.codes.len());
            for code in &list.codes {
                assert!(!code.name.is_empty());
                assert!(code.parent_id.as_deref().is_none_or(|parent| ids.contains(parent)));
            }
        }
    }
}

#[test]
fn the_closure_of_the_dataflow_is_the_whole_product() {
    use catalog_rules::sdmx::closure::Graph;
    use catalog_rules::sdmx::references::references;
    let structure = product();
    let urns: BTreeSet<String> = structure.artefacts.iter().map(Artefact::urn).collect();
    let edges: Vec<_> = structure.artefacts.iter().flat_map(references).collect();
    let graph = Graph::new(
        urns.iter().map(String::as_str),
        edges.iter().map(|edge| (edge.source.as_str(), edge.target.as_str())),
    );
    assert_eq!(graph.closure(&structure.dataflow), urns);
}

#[test]
fn members_keep_their_tree_and_their_facts() {
    let structure = product();
    let (lists, ..) = parts_of(&structure);
    let ids: Vec<&str> = lists.iter().map(|list| list.common.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "CL_99100001_GEO",
            "CL_99100001_DIM_2",
            "CL_99100001_UNIT_MEASURE",
            "CL_UNIT_MULT",
            "CL_OBS_STATUS",
            "CL_SYMBOL"
        ]
    );
    let meat = &lists[1].codes[1];
    assert_eq!((meat.id.as_str(), meat.parent_id.as_deref()), ("10", Some("1")));
    let annotations: Vec<(&str, &str)> =
        meat.annotations.iter().map(|a| (a.r#type.as_deref().unwrap(), a.value.as_deref().unwrap())).collect();
    assert_eq!(annotations, [("CLASSIFICATION_CODE", "P11"), ("TERMINATED", "true"), ("NOTES", "1;2")]);
}

#[test]
fn the_dataflow_says_what_the_table_is() {
    let structure = product();
    let (.., flow) = parts_of(&structure);
    assert_eq!(flow.common.name["en"], "A table");
    let told: Vec<(&str, String)> = flow
        .common
        .annotations
        .iter()
        .map(|a| {
            let text = a.value.clone().or_else(|| a.text.get("en").cloned());
            (a.r#type.as_deref().unwrap(), text.or_else(|| a.urls.first().map(|url| url.url.clone())).unwrap())
        })
        .collect();
    let expected = [
        ("PRODUCT_ID", "99100001"),
        ("CANSIM_ID", "051-0005"),
        ("FREQUENCY", "Monthly"),
        ("ARCHIVE_STATUS", "CURRENT - x"),
        ("START_PERIOD", "2001-01-01"),
        ("END_PERIOD", "2001-02-01"),
        ("SOURCE", "https://example.org/en"),
        ("TABLE_NOTES", "1"),
        ("SURVEY", "A survey"),
        ("NOTE", "A \"note\"."),
    ];
    assert_eq!(told, expected.map(|(kind, text)| (kind, text.to_owned())));
}

#[test]
fn notes_are_bounded() {
    let mut meta = META.to_owned();
    for id in 2..60 {
        meta.push_str(&format!("{id},\"{}\"\n", "é".repeat(9_000)));
    }
    let (structure, _) = read_text(&format!("{HEADER}{ROWS}"), Some(&meta)).unwrap();
    let (.., flow) = parts_of(&structure);
    let size: usize = flow.common.annotations.iter().flat_map(|a| a.text.values()).map(String::len).sum();
    assert!(size < 300_000, "{size} bytes");
    assert_eq!(flow.common.annotations.last().unwrap().r#type.as_deref(), Some("NOTES_LEFT_OUT"));
    assert_eq!(kinds(&structure), [FindingKind::NotesLeftOut]);
    let longest = flow.common.annotations.iter().flat_map(|a| a.text.values()).map(|t| t.chars().count()).max();
    assert_eq!(longest, Some(8_001));
}

#[test]
fn the_order_of_the_member_list_changes_nothing() {
    let (head, members) = META.split_once("\"2\",\"Meat").unwrap();
    let (meat, rest) = members.split_once('\n').unwrap();
    let (all_items, rest) = rest.split_once('\n').unwrap();
    let other = format!("{head}{all_items}\n\"2\",\"Meat{meat}\n{rest}");
    assert_ne!(other, META);
    let (structure, _) = read_text(&format!("{HEADER}{ROWS}"), Some(&other)).unwrap();
    assert_eq!(structure.artefacts, product().artefacts);
}
