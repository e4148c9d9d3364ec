//! The dependency edges of ARCHITECTURE.md, held against what cargo sees.

use std::collections::BTreeMap;

use cargo_metadata::{DependencyKind, MetadataCommand};

/// Who may depend on whom inside the workspace.
const EDGES: [(&str, &[&str]); 6] = [
    ("jobctl", &["activities", "catalog-rules", "engine", "engine-rules", "workflows"]),
    ("engine", &["engine-rules"]),
    ("workflows", &["catalog-rules", "engine-rules"]),
    ("activities", &["catalog-rules", "engine-rules"]),
    ("engine-rules", &[]),
    ("catalog-rules", &[]),
];

/// What a crate that only decides may use: nothing that knows a disk, a network, a clock or a runtime.
const PURE: [(&str, &[&str]); 2] = [
    ("engine-rules", &["cron", "jiff", "serde", "serde_json", "sha2", "thiserror", "uuid"]),
    ("catalog-rules", &["jiff", "serde", "serde_json", "sha2", "thiserror", "uuid"]),
];

fn normal_dependencies() -> BTreeMap<String, Vec<(String, bool)>> {
    let metadata = MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .no_deps()
        .other_options(vec!["--offline".to_owned()])
        .exec()
        .unwrap();
    metadata
        .packages
        .iter()
        .map(|package| {
            let dependencies = package.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal);
            (package.name.to_string(), dependencies.map(|d| (d.name.clone(), d.path.is_some())).collect())
        })
        .collect()
}

#[test]
fn the_crates_depend_on_each_other_only_as_the_architecture_says() {
    let found = normal_dependencies();
    assert_eq!(found.len(), EDGES.len(), "a crate came or went: {:?}", found.keys());
    for (name, allowed) in EDGES {
        for (dependency, is_local) in &found[name] {
            assert!(!is_local || allowed.contains(&dependency.as_str()), "{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn the_rules_crates_use_nothing_that_touches_the_world() {
    let found = normal_dependencies();
    for (name, allowed) in PURE {
        for (dependency, _) in &found[name] {
            assert!(allowed.contains(&dependency.as_str()), "{name} decides only, and {dependency} is not on its list");
        }
    }
}

#[test]
fn the_engine_never_sees_the_catalog_and_workflows_never_build_duckdb() {
    let found = normal_dependencies();
    for (name, never) in
        [("engine", "duckdb"), ("engine", "catalog-rules"), ("workflows", "duckdb"), ("workflows", "sqlx")]
    {
        assert!(found[name].iter().all(|(dependency, _)| dependency != never), "{name} depends on {never}");
    }
}
