//! A run that is exported in one state and read in another.

use std::path::Path;

use crate::support::env::Env;
use crate::support::table::Table;

const PRODUCT: &str = "99100001";

fn published() -> (Env, String) {
    let env = Env::with_catalog();
    Table::new(PRODUCT, 3).write_zip(&env.path("1.zip"));
    let run = env.publish(PRODUCT, &env.path("1.zip"));
    let id = run["run_id"].as_str().unwrap().to_owned();
    (env, id)
}

fn copy(from: &Env, to: &Env, name: &str) {
    std::fs::copy(from.path(name), to.path(name)).unwrap();
}

#[test]
fn an_exported_run_is_shown_elsewhere_as_it_was_and_marked_as_imported() {
    let (env, id) = published();
    let there = env.json(["runs", "show", &id]);
    env.jobctl(["runs", "export", &id[..20], "--output", "run.json"]).exits(0).says(&[&id, "run.json", "kB"]);
    let document: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(env.path("run.json")).unwrap()).unwrap();
    assert_eq!((&document["schema"], &document["format_version"]), (&"jobctl.runs.export/1".into(), &1.into()));
    // The same on standard output, whether JSON is asked for or not.
    for args in [vec!["runs", "export", &id], vec!["runs", "export", &id, "--json"]] {
        assert_eq!(env.jobctl(args).exits(0).json()["digests"], document["digests"]);
    }

    let other = Env::empty();
    copy(&env, &other, "run.json");
    let answer = other.json(["runs", "import", "run.json", "--reason", "to see why"]);
    assert_eq!((&answer["run_id"], &answer["changed"]), (&id.as_str().into(), &true.into()));
    let again = other.json(["runs", "import", "run.json", "--reason", "once more"]);
    assert_eq!(again["changed"], false);

    let here = other.json(["runs", "show", &id[id.len() - 6..]]);
    assert_eq!(here["steps"], there["steps"]);
    assert_eq!(here["run"]["output"], there["run"]["output"]);
    assert_eq!(here["imported"]["reason"], "to see why");
    other.jobctl(["runs", "show", &id]).exits(0).says(&["imported 20", "to see why", "to be read only", "record"]);
    assert_eq!(other.json(["runs", "list"])["runs"], serde_json::json!([]));
    let listed = other.json(["runs", "list", "--imported"]);
    assert_eq!(listed["runs"][0]["run_id"], id);
    assert_eq!(listed["runs"][0]["imported"]["digest"], answer["digest"]);
    other.jobctl(["runs", "list", "--imported"]).exits(0).says(&["IMPORTED", "publish", PRODUCT]);
    other.jobctl(["runs", "list", "--imported", "--product", "1"]).exits(0).says(&["no imported runs"]);

    // Nothing else takes it for a run of this state.
    for args in [vec!["runs", "resume", &id], vec!["runs", "cancel", &id, "--reason", "x"], vec!["runs", "export", &id]]
    {
        let ran = other.jobctl(args.clone()).exits(1).says(&["was imported", "hint:"]);
        assert!(ran.stderr.contains(&format!("jobctl runs show {id}")), "{args:?}: {}", ran.stderr);
    }
    other.jobctl(["runs", "resume"]).exits(0).says(&["no run is interrupted"]);
    other.jobctl(["runs", "purge", "--older-than", "0s", "--reason", "x"]).exits(0).says(&["purged 0 runs"]);
    other.jobctl(["runs", "show", &id]).exits(0);
}

#[test]
fn what_is_no_export_or_stands_here_already_is_refused_and_leaves_nothing() {
    let (env, id) = published();
    env.jobctl(["runs", "export", &id, "-o", "run.json"]).exits(0);
    env.jobctl(["runs", "export", &id, "-o", "run.json"]).exits(2).says(&["run.json", "not there yet"]);
    env.jobctl(["runs", "import", "run.json", "--reason", "x"]).exits(1).says(&["in this state itself"]);
    env.jobctl(["runs", "import", "run.json"]).exits(2).says(&["--reason"]);

    let other = Env::empty();
    let text = std::fs::read_to_string(env.path("run.json")).unwrap();
    let damaged = text.replacen(PRODUCT, "99100002", 1);
    std::fs::write(other.path("damaged.json"), damaged).unwrap();
    std::fs::write(other.path("cut.json"), &text[..1_000]).unwrap();
    std::fs::write(other.path("foreign.json"), "{\"schema\": \"jobctl.runs.show/1\"}").unwrap();
    std::fs::write(other.path("bytes.json"), b"{\n \"\xff\"}").unwrap();
    let large = std::fs::File::create(other.path("large.json")).unwrap();
    large.set_len(40 * 1024 * 1024).unwrap();
    for (file, words) in [
        ("damaged.json", vec!["digest"]),
        ("cut.json", vec!["line", "column"]),
        ("foreign.json", vec!["jobctl.runs.show/1", "jobctl.runs.export/1"]),
        ("bytes.json", vec!["line 2, column 3", "UTF-8"]),
        ("large.json", vec!["41943040", "33554432"]),
    ] {
        other.jobctl(["runs", "import", file, "--reason", "x"]).exits(1).says(&words).says(&["hint:"]);
    }
    other.jobctl(["runs", "import", "nowhere.json", "--reason", "x"]).exits(2).says(&["nowhere.json"]);
    assert!(!Path::new(&other.path("state")).exists(), "no state was created for what was refused");
    other.jobctl(["runs", "show", &id]).exits(2).says(&["no run"]);
}
