//! `jobctl verify`: a whole catalog has no findings, and each kind of damage has its own.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::env::Env;
use crate::support::table::Table;

const PRODUCT: &str = "99100001";

/// A catalog with a superseded and a live edition, and the live one's id.
fn world() -> (Env, String) {
    let env = Env::with_catalog();
    let ids = [0, 100].map(|revision| {
        let source = env.path(&format!("{revision}.zip"));
        Table { revision, ..Table::new(PRODUCT, 3) }.write_zip(&source);
        env.publish(PRODUCT, &source)["output"]["edition_id"].as_str().unwrap().to_owned()
    });
    (env, ids[1].clone())
}

fn root(env: &Env, seq: u64) -> PathBuf {
    env.path(&format!("catalog/inventory/{seq:012}.json"))
}

/// The leaf of the product in version `seq`.
fn leaf(env: &Env, seq: u64) -> PathBuf {
    let root: Value = serde_json::from_slice(&std::fs::read(root(env, seq)).unwrap()).unwrap();
    env.path(&format!("catalog/{}", root["products"][PRODUCT]["leaf"].as_str().unwrap()))
}

fn data_file(env: &Env) -> PathBuf {
    let data = env.path(&format!("catalog/products/{PRODUCT}/data/codr/t{PRODUCT}"));
    let mut files: Vec<_> = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.remove(0)
}

fn flip(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

/// What `verify` finds, as codes with their subjects; nothing of the catalog changes by looking.
#[track_caller]
fn findings(env: &Env, args: &[&str]) -> Vec<(String, String)> {
    let before = env.catalog_bytes();
    let ran = env.jobctl(["verify", "--json"].iter().chain(args));
    let document = ran.json();
    assert_eq!(document["schema"], "jobctl.verify/1");
    let findings = document["findings"].as_array().unwrap();
    assert_eq!(ran.code, Some(if findings.is_empty() { 0 } else { 6 }), "{ran:?}");
    for finding in findings {
        for key in ["found", "expected", "fix"] {
            assert!(!finding[key].as_str().unwrap().is_empty(), "{key}: {finding}");
        }
    }
    assert_eq!(env.catalog_bytes(), before, "a look changes nothing");
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    findings.iter().map(|finding| (text(finding, "code"), text(finding, "subject"))).collect()
}

fn in_catalog(env: &Env, path: &Path) -> String {
    path.strip_prefix(env.path("catalog")).unwrap().display().to_string()
}

#[test]
fn a_whole_catalog_has_no_finding_and_needs_no_state() {
    let (env, _) = world();
    std::fs::remove_dir_all(env.path("state")).unwrap();
    for args in [&[][..], &["--full"]] {
        assert_eq!(findings(&env, args), []);
    }
    let document = env.json(["verify", "--full"]);
    assert_eq!(json!([document["versions"], document["leaves"], document["editions"]]), json!([3, 2, 2]));
    assert!(document["files"].as_u64() >= Some(5) && document["hashed_bytes"].as_u64() > Some(10_000), "{document}");
    assert_eq!(env.json(["verify"])["hashed_bytes"], 0);
    env.jobctl(["verify"]).exits(0).says(&["version 3", "no finding"]);
    assert!(!env.path("state").exists());
}

/// One catalog for all, since a publish takes its time: each leaves what it damaged, and the next finds it whole.
#[test]
fn each_damage_of_a_catalog_has_its_own_finding_and_no_other() {
    let (env, edition) = world();
    let whole = env.catalog_bytes();
    let copy = env.path("copy");
    copy_folder(&env.path("catalog"), &copy);
    let damages: [fn(&Env, &str); 7] = [
        a_leaf_with_a_flipped_byte_is_found_in_the_newest_and_in_an_older_version,
        a_truncated_or_missing_root_is_found_wherever_it_is,
        a_root_that_was_changed_breaks_the_chain_after_it,
        a_change_list_that_says_something_else_is_found,
        a_data_file_that_is_missing_or_resized_is_found_and_one_that_changed_by_hashing,
        a_manifest_that_is_missing_or_another_one_is_found,
        a_current_that_is_behind_or_no_hint_is_found,
    ];
    for damage in damages {
        damage(&env, &edition);
        std::fs::remove_dir_all(env.path("catalog")).unwrap();
        copy_folder(&copy, &env.path("catalog"));
        assert_eq!(env.catalog_bytes(), whole);
        assert_eq!(findings(&env, &[]), []);
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn a_leaf_with_a_flipped_byte_is_found_in_the_newest_and_in_an_older_version(env: &Env, _: &str) {
    for seq in [2, 3] {
        let leaf = leaf(env, seq);
        let bytes = std::fs::read(&leaf).unwrap();
        flip(&leaf);
        assert_eq!(findings(env, &[]), [("leaf.digest".to_owned(), in_catalog(env, &leaf))]);
        std::fs::remove_file(&leaf).unwrap();
        assert_eq!(findings(env, &[]), [("leaf.missing".to_owned(), in_catalog(env, &leaf))]);
        env.jobctl(["verify"]).exits(6).says(&["leaf.missing", "restore it from a backup", PRODUCT]);
        std::fs::write(&leaf, bytes).unwrap();
        assert_eq!(findings(env, &[]), []);
    }
}

fn a_truncated_or_missing_root_is_found_wherever_it_is(env: &Env, _: &str) {
    for seq in [1, 2, 3] {
        let root = root(env, seq);
        let bytes = std::fs::read(&root).unwrap();
        for length in [0, bytes.len() / 2] {
            std::fs::write(&root, &bytes[..length]).unwrap();
            assert_eq!(findings(env, &[]), [("root.invalid".to_owned(), in_catalog(env, &root))], "{seq}, {length}");
        }
        std::fs::remove_file(&root).unwrap();
        // Without it, nobody knows of the newest version but CURRENT.
        let expected = match seq {
            3 => ("current.absent".to_owned(), "CURRENT".to_owned()),
            _ => ("root.missing".to_owned(), in_catalog(env, &root)),
        };
        assert_eq!(findings(env, &[]), [expected], "{seq}");
        std::fs::write(&root, bytes).unwrap();
        assert_eq!(findings(env, &[]), []);
    }
}

fn a_root_that_was_changed_breaks_the_chain_after_it(env: &Env, _: &str) {
    let path = root(env, 2);
    let text = std::fs::read_to_string(&path).unwrap();
    let actor = serde_json::from_str::<Value>(&text).unwrap()["event"]["actor"].as_str().unwrap().to_owned();
    std::fs::write(&path, text.replace(&format!("\"{actor}\""), "\"somebody@else\"")).unwrap();
    assert_eq!(findings(env, &[]), [("step.chain".to_owned(), in_catalog(env, &root(env, 3)))]);
    // At the head, CURRENT knows.
    std::fs::write(&path, text).unwrap();
    let path = root(env, 3);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace(&format!("\"{actor}\""), "\"somebody@else\"")).unwrap();
    assert_eq!(findings(env, &[]), [("root.invalid".to_owned(), in_catalog(env, &path))]);
}

fn a_change_list_that_says_something_else_is_found(env: &Env, _: &str) {
    let path = root(env, 3);
    let mut document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    document["changes"][0]["entries"].as_array_mut().unwrap().remove(0);
    std::fs::write(&path, document.to_string()).unwrap();
    std::fs::remove_file(env.path("catalog/CURRENT")).unwrap();
    let found = findings(env, &[]);
    let expected = [("current.missing", "CURRENT".to_owned()), ("step.changes", in_catalog(env, &path))];
    assert_eq!(found, expected.map(|(code, subject)| (code.to_owned(), subject)));
}

fn a_data_file_that_is_missing_or_resized_is_found_and_one_that_changed_by_hashing(env: &Env, _: &str) {
    let file = data_file(env);
    let bytes = std::fs::read(&file).unwrap();
    let subject = in_catalog(env, &file);
    flip(&file);
    assert_eq!(findings(env, &[]), [], "the size is the same");
    assert_eq!(findings(env, &["--full"]), [("file.digest".to_owned(), subject.clone())]);
    std::fs::write(&file, &bytes[1..]).unwrap();
    for args in [&[][..], &["--full"]] {
        assert_eq!(findings(env, args), [("file.size".to_owned(), subject.clone())]);
    }
    std::fs::remove_file(&file).unwrap();
    assert_eq!(findings(env, &[]), [("file.missing".to_owned(), subject.clone())]);
    env.jobctl(["verify"]).exits(6).says(&["file.missing", &subject, "edition check"]);
    std::fs::write(&file, &bytes).unwrap();
    assert_eq!(findings(env, &["--full"]), []);
}

fn a_manifest_that_is_missing_or_another_one_is_found(env: &Env, edition: &str) {
    let path = env.path(&format!("catalog/products/{PRODUCT}/{edition}/manifest.json"));
    let subject = in_catalog(env, &path);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text} ")).unwrap();
    assert_eq!(findings(env, &[]), [("manifest.digest".to_owned(), subject.clone())]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(findings(env, &[]), [("manifest.missing".to_owned(), subject)]);
}

fn a_current_that_is_behind_or_no_hint_is_found(env: &Env, _: &str) {
    let bytes = std::fs::read(root(env, 2)).unwrap();
    let sha256 = catalog_rules::ids::Sha256Hex::of(&bytes);
    let behind = format!(r#"{{"seq":2,"root_sha256":"{sha256}","restore_epoch":0}}"#);
    for (bytes, code) in [(behind.as_str(), "current.behind"), ("{", "current.unreadable")] {
        std::fs::write(env.path("catalog/CURRENT"), bytes).unwrap();
        assert_eq!(findings(env, &[]), [(code.to_owned(), "CURRENT".to_owned())]);
    }
}

#[test]
fn what_is_no_catalog_is_refused_and_has_no_findings() {
    let env = Env::empty();
    env.jobctl(["verify", "--catalog", "nowhere"]).exits(3).says(&["not a catalog", "jobctl init"]);
}
