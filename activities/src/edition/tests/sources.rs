//! Statements that must never be in the program's text.

use std::fs;
use std::path::Path;

/// Words of the statements that clean up `data/`, put together here so that this file holds none of them.
fn forbidden() -> Vec<String> {
    let checkpoint = ["check", "point"].concat();
    let mut forbidden: Vec<String> = [" lake", " {lake}", " {alias}", " \\\"lake", "\"", ";"]
        .iter()
        .map(|rest| format!("{checkpoint}{rest}"))
        .collect();
    forbidden.push(["ducklake_cleanup", "_old_files"].concat());
    forbidden.push(["ducklake_delete", "_orphaned_files"].concat());
    forbidden
}

fn search(folder: &Path, files: &mut usize, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "target" && name != ".git" {
                search(&path, files, found);
            }
        } else if name.ends_with(".rs") || name.ends_with(".sql") {
            *files += 1;
            // SQLite's own, of the state database, is another thing.
            let sqlite = ["wal_check", "point"].concat();
            let text = fs::read_to_string(&path).unwrap().to_lowercase().replace(&sqlite, "");
            found.extend(
                forbidden().iter().filter(|word| text.contains(*word)).map(|w| format!("{}: {w}", path.display())),
            );
        }
    }
}

#[test]
fn nothing_checkpoints_a_lake_or_cleans_up_its_data() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut files, mut found) = (0, Vec::new());
    search(workspace, &mut files, &mut found);
    assert!(files > 50, "only {files} files were searched");
    assert_eq!(found, [""; 0], "DuckLake's maintenance deletes files that other editions list");
}
