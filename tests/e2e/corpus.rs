//! Histories of runs as earlier programs recorded them: today's definitions must go on with each.
//!
//! A file of `tests/corpus` that fails here is a run that an upgrade would strand. A definition that asks for other things
//! gets a new version, and the old one stays beside it as long as runs of it may be open. A file is never changed: what a
//! new version records is a further file, written by `regenerates_the_corpus` into an empty folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{Reader, RunDetail, SystemClock};
use engine_rules::digest::{canonical_json, digest_text};
use serde_json::{Value, json};

use crate::replay::{crash_at, damaged, refused_at_check};
use crate::support::env::Env;
use crate::support::table::Table;

const PRODUCT: &str = "99100001";
/// An overlay that changes something in every product.
const NOTE: &str = r#"{"format_version":"1.2","id":"note","entries":[
  {"selector":"Dataflow","op":"set","type":"NOTE","annotation":{"text":{"en":"A note"}}}]}"#;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn corpus() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|it| it == "json")).collect();
    files.sort();
    files
}

fn history(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The workflows beside publish.
const OTHERS: [(&str, u32); 14] = [
    (workflows::correct::NAME, workflows::correct::VERSION),
    (workflows::describe::NAME, workflows::describe::VERSION),
    (workflows::discard::NAME, workflows::discard::VERSION),
    (workflows::embargo::NAME, workflows::embargo::VERSION),
    (workflows::fold::NAME, workflows::fold::VERSION),
    (workflows::reinstate::NAME, workflows::reinstate::VERSION),
    (workflows::release::NAME, workflows::release::VERSION),
    (workflows::reschedule::NAME, workflows::reschedule::VERSION),
    (workflows::retire::NAME, workflows::retire::VERSION),
    (workflows::rollback::NAME, workflows::rollback::VERSION),
    (workflows::set_lifecycle::NAME, workflows::set_lifecycle::VERSION),
    (workflows::supersede::NAME, workflows::supersede::VERSION),
    (workflows::supersede_schema::NAME, workflows::supersede_schema::VERSION),
    (workflows::withdraw::NAME, workflows::withdraw::VERSION),
];

#[test]
fn todays_program_goes_on_with_every_run_of_the_corpus() {
    let env = Env::empty();
    let files = corpus();
    let words = ["runs", "rehearse", "--json"].map(Into::into);
    let told = env.jobctl(words.into_iter().chain(files.iter().cloned())).exits(0).json();
    let histories = told["histories"].as_array().unwrap();
    assert_eq!(histories.len(), files.len());
    for told in histories {
        assert_eq!((&told["agrees"], &told["agreed"]), (&true.into(), &told["recorded"]), "{told}");
    }
    assert_eq!(std::fs::read_dir(env.path("")).unwrap().count(), 0, "a rehearsal leaves nothing");
    // What the corpus is for: each definition of this program, and each way in which a run ends.
    let kept: BTreeSet<_> = files
        .iter()
        .map(|path| history(path)["run"].clone())
        .map(|run| {
            (
                run["workflow"].as_str().unwrap().to_owned(),
                run["version"].as_u64().unwrap(),
                run["state"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    let publish =
        |state: &str| (workflows::publish::NAME.to_owned(), u64::from(workflows::publish::VERSION), state.to_owned());
    for state in ["succeeded", "failed", "cancelled"] {
        assert!(kept.contains(&publish(state)), "no publish that {state}: {kept:?}");
    }
    for (name, version) in OTHERS {
        assert!(kept.contains(&(name.to_owned(), u64::from(version), "succeeded".to_owned())), "no {name}: {kept:?}");
    }
}

#[test]
fn a_changed_history_fails_with_both_sides_shown() {
    let env = Env::empty();
    let succeeded = corpus().into_iter().find(|path| path.ends_with("publish_succeeded.json")).unwrap();
    let digest = history(&succeeded)["steps"][4]["input_digest"].as_str().unwrap().to_owned();
    let zeros = "0".repeat(64);
    type Change = fn(&mut Value);
    let changes: [(Change, &[&str]); 5] = [
        (
            |it| it["steps"][3]["name"] = json!("close"),
            &["at 4", "recorded step close", "requested step seal", "3 of 6"],
        ),
        (|it| it["steps"][4]["input_digest"] = json!("0".repeat(64)), &["at 5", "recorded", &zeros, &digest]),
        (|it| it["run"]["version"] = json!(9), &["version 9", "[1]"]),
        (|it| it["steps"][0]["output"]["edition_id"] = json!("no id"), &["the recorded output of open", "no id"]),
        (|it| _ = it["steps"].as_array_mut().unwrap().pop(), &["recorded the end", "requested step record at 6"]),
    ];
    for (number, (change, words)) in changes.into_iter().enumerate() {
        let mut changed = history(&succeeded);
        change(&mut changed);
        let file = format!("changed{number}.json");
        std::fs::write(env.path(&file), changed.to_string()).unwrap();
        env.jobctl(["runs", "rehearse", &file, &succeeded.display().to_string()])
            .exits(5)
            .says(words)
            .says(&["differs", "agrees"]);
    }
    std::fs::write(env.path("broken.json"), "{").unwrap();
    env.jobctl(["runs", "rehearse", "broken.json"]).exits(2).says(&["broken.json", "export"]);
    env.jobctl(["runs", "rehearse", "nowhere.json"]).exits(2).says(&["nowhere.json"]);
    env.jobctl(["runs", "rehearse", "01a2"]).exits(2).says(&["01a2"]);
}

#[test]
fn an_export_is_rehearsed_only_as_it_was_written() {
    let env = Env::with_catalog();
    Table::new(PRODUCT, 3).write_zip(&env.path("table.zip"));
    let run = env.publish(PRODUCT, &env.path("table.zip"))["run_id"].as_str().unwrap().to_owned();
    let file = env.path("run.json");
    let path = file.display().to_string();
    env.jobctl(["runs", "export", &run, "--output", &path]).exits(0);
    env.jobctl(["runs", "rehearse", &path]).exits(0).says(&["agrees"]);
    let text = std::fs::read_to_string(&file).unwrap();
    for (from, to) in [("\"rows\": 18", "\"rows\": 19"), ("\"format_version\": 1", "\"format_version\": 2")] {
        assert!(text.contains(from), "{from}: {text}");
        std::fs::write(&file, text.replacen(from, to, 1)).unwrap();
        let ran = env.jobctl(["runs", "rehearse", &path]);
        assert_ne!(ran.code, Some(0), "{to}: {ran:?}");
    }
}

#[test]
fn a_run_of_the_state_is_rehearsed_where_it_stands() {
    let env = Env::with_catalog();
    Table::new(PRODUCT, 3).write_zip(&env.path("table.zip"));
    let run = crash_at(&env, "engine.result.after:2", "table.zip");
    env.jobctl(["runs", "rehearse", &run]).exits(0).says(&["publish version 1", "2 of 2 recorded", "2 resolve_source"]);
}

/// Writes the corpus anew, into `target/corpus`. What is new of it is copied to `tests/corpus` by hand.
#[test]
#[ignore = "makes the corpus; a person decides what of it is kept"]
fn regenerates_the_corpus() {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("corpus");
    std::fs::create_dir_all(&target).unwrap();
    let env = Env::with_catalog();
    let keep = |name: &str, run: &str| {
        let detail = neutral(&env, &read(&env, run));
        let text = serde_json::to_string_pretty(&detail).unwrap();
        std::fs::write(target.join(format!("{name}.json")), text + "\n").unwrap();
        println!("{}", target.join(format!("{name}.json")).display());
    };
    let newest = || env.json(["runs", "list"])["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let publish = || env.jobctl(["run", "publish", "--product", PRODUCT, "--source", "table.zip"]);

    Table::new(PRODUCT, 6).write_zip(&env.path("table.zip"));
    publish().exits(0);
    keep("publish_succeeded", &newest());
    env.jobctl(["runs", "replay", &newest(), "--from", "check", "--reason", "a second look"]).exits(0);
    keep("publish_replayed_from_check", &newest());
    keep("publish_refused_at_check", &refused_at_check(&env));
    damaged().write_zip(&env.path("table.zip"));
    publish().exits(1);
    keep("publish_failed_at_build", &newest());
    Table::new(PRODUCT, 7).write_zip(&env.path("table.zip"));
    let half = crash_at(&env, "edition.build.rows_written", "table.zip");
    env.jobctl(["runs", "cancel", &half, "--reason", "the wrong month"]).exits(0);
    keep("publish_cancelled", &half);
    // A run that nobody here knows leaves an edition half written.
    let words = ["run", "publish", "--product", PRODUCT, "--source", "table.zip", "--state", "elsewhere"];
    let crashed = env.command(words).env("JOBCTL_CRASH_AT", "edition.build.rows_written").output().unwrap();
    assert!(!crashed.status.success());
    let editions = env.json(["edition", "list", "--product", PRODUCT]);
    let unsealed = editions["editions"].as_array().unwrap().iter().find(|edition| edition["sealed"] == false).unwrap();
    let edition = unsealed["edition_id"].as_str().unwrap().to_owned();
    env.jobctl(["edition", "discard", &edition, "--product", PRODUCT, "--reason", "half written"]).exits(0);
    keep("discard_succeeded", &newest());
    std::fs::write(env.path("note.json"), NOTE).unwrap();
    env.jobctl(["run", "fold", "--product", PRODUCT, "--overlay", "note.json", "--reason", "a note"]).exits(0);
    keep("fold_succeeded", &newest());

    // The operations: on a product of its own, whose editions are live, embargoed and retired in turn.
    let publish = || {
        let words = ["run", "publish", "--product", "99100002", "--source", "other.zip", "--json"];
        let run = env.jobctl(words).exits(0).json();
        run["output"]["edition_id"].as_str().unwrap().to_owned()
    };
    let operate = |name: &str, words: &str, code: i32| {
        env.jobctl(["run"].into_iter().chain(words.split(' '))).exits(code);
        keep(name, &newest());
    };
    let of = |words: &str, edition: &str| format!("{words} --product 99100002 --edition {edition}");
    Table::new("99100002", 3).write_zip(&env.path("other.zip"));
    let [_, second] = [publish(), publish()];
    operate("rollback_succeeded", "rollback --product 99100002 --reason wrong", 0);
    operate("rollback_refused", "rollback --product 99100002 --reason wrong", 3);
    operate("retire_named_succeeded", &format!("{} --before-window --reason r", of("retire", &second)), 0);
    operate("retire_succeeded", "retire", 0);
    operate("reinstate_succeeded", &of("reinstate", &second), 0);
    operate("embargo_succeeded", "embargo on", 0);
    let (third, fourth) = (publish(), publish());
    operate("supersede_succeeded", &format!("{} --by {fourth}", of("supersede", &third)), 0);
    operate("reschedule_succeeded", &format!("{} --release-at 2026-01-05T13:30:00Z", of("reschedule", &fourth)), 0);
    operate("release_due_succeeded", "release", 0);
    let fifth = publish();
    operate("withdraw_cancel_succeeded", &format!("{} --reason r", of("withdraw", &fifth)), 0);
    publish();
    operate("release_named_succeeded", "release --product 99100002", 0);
    operate("set_lifecycle_succeeded", "set-lifecycle --product 99100002 --lifecycle final", 0);
    operate("describe_succeeded", "describe --title Labour", 0);
    operate("correct_succeeded", "correct --to 3 --reason r", 0);
    operate("supersede_schema_succeeded", "supersede-schema --schema 2.52-jobctl.1", 3);
    operate("withdraw_live_succeeded", "withdraw --product 99100002 --live --reason r", 0);
}

fn read(env: &Env, run: &str) -> RunDetail {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let reader = Reader::open(&env.path("state"), Arc::new(SystemClock::new())).await.unwrap();
        reader.run(run.parse().unwrap()).await.unwrap()
    })
}

/// The history without the folder, the user and the machine that it was made with; the digests follow.
fn neutral(env: &Env, detail: &RunDetail) -> RunDetail {
    let mut text = serde_json::to_string(detail).unwrap();
    text = text.replace(&env.path("").display().to_string().trim_end_matches('/').to_owned(), "/data");
    text = text.replace(&detail.run.actor, "jane@build-1");
    let mut neutral: RunDetail = serde_json::from_str(&text).unwrap();
    if let Some(owner) = &mut neutral.run.owner {
        "build-1".clone_into(&mut owner.host);
        owner.pid = 1;
    }
    for (old, new) in detail.steps.iter().zip(&mut neutral.steps) {
        let digest = |input: &Value| digest_text(&canonical_json(input));
        if let (Some(before), Some(after)) = (&old.input, &new.input) {
            assert_eq!(digest(before), old.input_digest, "the digest is that of the input");
            new.input_digest = digest(after);
        }
    }
    neutral
}
