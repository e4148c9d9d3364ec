//! Every real file is read or refused with a reason. The table is a snapshot that was looked at line by line against
//! the files and the specification.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use engine_rules::failure::ActivityError as _;

use super::super::read_message;
use crate::shared::shared;

/// Every file beneath a folder, in the order of its path.
pub(in crate::sources::sdmx) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

fn row(table: &mut String, name: &str, bytes: &[u8]) {
    match read_message(bytes) {
        Err(error) => writeln!(table, "{name}\n  refused {}: {error}", error.code()).unwrap(),
        Ok(message) => {
            let mut classes = std::collections::BTreeMap::<&str, usize>::new();
            for artefact in &message.artefacts {
                *classes.entry(artefact.class()).or_default() += 1;
            }
            let classes: Vec<String> = classes.iter().map(|(class, count)| format!("{count} {class}")).collect();
            let classes = if classes.is_empty() { "nothing".to_owned() } else { classes.join(", ") };
            writeln!(table, "{name}\n  {}: {classes}", message.dialect.name()).unwrap();
            for finding in message.findings {
                let urn = finding.urn.strip_prefix("urn:sdmx:org.sdmx.infomodel.").unwrap_or(&finding.urn);
                writeln!(table, "  - {} [{urn}] {}: {}", finding.code, finding.place, finding.message).unwrap();
            }
        }
    }
}

#[test]
fn every_real_file_is_read_or_refused_with_a_reason() {
    let Some(folder) = shared("data/sdmx") else { return };
    let mut table = String::new();
    let mut count = 0;
    for path in files(&folder) {
        let name = path.strip_prefix(&folder).unwrap().to_string_lossy().replace('\\', "/");
        row(&mut table, &name, &std::fs::read(&path).unwrap());
        count += 1;
    }
    assert!(count > 200, "{count}");
    insta::assert_snapshot!(table);
}
