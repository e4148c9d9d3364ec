use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::shared::shared;

/// What the store has beside schema 2.48: see the module's documentation.
const ADDED: &[(&str, &str)] = &[
    ("agency", "position"),
    ("concept", "enum_sentinel_values"),
    ("data_structure", "has_groups"),
    ("dsd_component", "enum_sentinel_values"),
    ("dsd_group", "position"),
    ("group_dimension", "position"),
];
const REMOVED: &[(&str, &str)] = &[("dataflow_binding", "partition_layout"), ("dataflow_binding", "sort_order")];

fn declared(column: &Value) -> String {
    let mut declared = column["type"].as_str().unwrap().to_owned();
    if !column["nullable"].as_bool().unwrap() {
        declared.push_str(" NOT NULL");
    }
    if let Some(default) = column["default"].as_str() {
        let default = default.replace("CAST('f' AS BOOLEAN)", "false");
        declared.push_str(&format!(" DEFAULT {default}"));
    }
    declared
}

fn names(columns: &Value) -> Vec<&str> {
    columns.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

#[test]
fn the_tables_are_those_of_the_reference_schema_but_for_what_is_said() {
    let Some(path) = shared("vectors/store_schema.json") else { return };
    let reference: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    for table in TABLES {
        let expected = &reference["tables"][table.name];
        if expected.is_null() {
            assert!(table.name.starts_with("availability"), "{}", table.name);
            continue;
        }
        let among = |differences: &[(&str, &str)], column: &str| differences.contains(&(table.name, column));
        let expected_columns: Vec<(&str, String)> = expected["columns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| (column["name"].as_str().unwrap(), declared(column)))
            .filter(|(name, _)| !among(REMOVED, name))
            .collect();
        let columns: Vec<(&str, String)> = table
            .columns()
            .map(|(name, declared)| (name, declared.to_owned()))
            .filter(|(name, _)| !among(ADDED, name))
            .collect();
        assert_eq!(columns, expected_columns, "{}", table.name);
        for constraint in expected["constraints"].as_array().unwrap() {
            let columns = names(&constraint["columns"]);
            match constraint["kind"].as_str().unwrap() {
                "PRIMARY KEY" => assert_eq!(table.key, columns, "{}", table.name),
                // Each is in the key, as part of a URN.
                "UNIQUE" => assert!(["agency", "code", "concept"].contains(&table.name), "{}", table.name),
                other => panic!("{other} of {}", table.name),
            }
        }
    }
    let sequences: Vec<&str> = SEQUENCES.iter().map(|(name, _)| *name).collect();
    assert_eq!(sequences, names(&reference["sequences"]));
}

#[test]
fn every_table_says_how_its_rows_lie_by_columns_of_its_own() {
    for table in TABLES {
        let columns: BTreeSet<&str> = table.columns().map(|(name, _)| name).collect();
        assert!(!table.order.is_empty(), "{}", table.name);
        assert!(table.order.iter().chain(table.key).all(|name| columns.contains(name)));
        if let Owner::Column(column) = table.owner {
            assert!(columns.contains(column), "{}", table.name);
        }
    }
}

#[test]
fn a_table_owned_through_another_stands_before_it() {
    let place = |name: &str| TABLES.iter().position(|table| table.name == name).unwrap();
    let mut seen = 0;
    for table in TABLES {
        if let Owner::Through { table: through, .. } = table.owner {
            assert!(place(table.name) < place(through), "{}", table.name);
            seen += 1;
        }
    }
    assert_eq!(seen, 3);
}
