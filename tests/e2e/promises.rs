//! Each promise of the README names a test that is there.

use std::path::{Path, PathBuf};

/// The Rust files at `path`: itself, or all of a folder.
fn sources(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    entries
        .flat_map(|entry| sources(&entry.unwrap().path()))
        .filter(|path| path.extension().is_some_and(|it| it == "rs"))
        .collect()
}

#[test]
fn every_promise_names_a_test_that_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let table = readme.split("| promise | held by |").nth(1).unwrap();
    let rows: Vec<_> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 10, "{} promises", rows.len());
    for row in rows {
        let held_by = row.split('|').nth(2).unwrap();
        let mut tests: Vec<&str> = Vec::new();
        let mut named = 0;
        for word in held_by.split('`').skip(1).step_by(2) {
            if !word.contains(['.', '/']) {
                tests.push(word);
                continue;
            }
            let at_root = root.join(word);
            let path = if at_root.exists() { at_root } else { root.join("engine/tests/it").join(word) };
            let texts: Vec<_> = sources(&path).iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
            assert!(!texts.is_empty(), "{word} is not there: {row}");
            for test in tests.drain(..) {
                named += 1;
                let function = format!("fn {test}(");
                assert!(texts.iter().any(|text| text.contains(&function)), "{test} is not in {word}: {row}");
            }
        }
        assert!(tests.is_empty() && named > 0, "tests without a file: {tests:?} in {row}");
    }
}
