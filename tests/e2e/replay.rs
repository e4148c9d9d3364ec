//! A run that ended begins anew at one of its steps: `jobctl runs replay`.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::support::env::{Env, Ran};
use crate::support::table::Table;

const PRODUCT: &str = "99100001";

/// The table with a row of a member that its metadata does not know.
pub fn damaged() -> Table {
    let line = r#""2020-06","Ontario","2021A000235","Part-time","Persons","249","thousands","3","v9005","10.7","1.00","","","","2""#;
    Table { last_line: Some(line.to_owned()), ..Table::new(PRODUCT, 6) }
}

/// A catalog with a live edition, and a publish that failed at its build.
fn failed_at_build() -> (Env, String) {
    let env = Env::with_catalog();
    Table::new(PRODUCT, 6).write_zip(&env.path("first.zip"));
    env.publish(PRODUCT, &env.path("first.zip"));
    damaged().write_zip(&env.path("table.zip"));
    let failed = env.jobctl(["run", "publish", "--product", PRODUCT, "--source", "table.zip"]).exits(1);
    let run = newest(&env);
    failed.says(&["line 37", "10.7", &format!("jobctl runs replay {run} --from resolve_source --set source=PATH")]);
    (env, run)
}

fn newest(env: &Env) -> String {
    env.json(["runs", "list"])["runs"][0]["run_id"].as_str().unwrap().to_owned()
}

fn runs(env: &Env) -> usize {
    env.json(["runs", "list"])["runs"].as_array().unwrap().len()
}

fn shown(env: &Env, run: &str) -> Value {
    env.json(["runs", "show", run])
}

/// Replays the run and gives the replay's document.
#[track_caller]
fn replayed(env: &Env, run: &str, from: &str, more: &[&str]) -> Value {
    let args = ["runs", "replay", run, "--from", from, "--reason", "a test", "--json"];
    env.jobctl(args.iter().chain(more)).exits(0).json()
}

/// The steps whose results a run carried over, and those that it carried out.
fn steps(run: &Value) -> (Vec<&str>, Vec<&str>) {
    let names = |carried: bool| {
        let steps = run["steps"].as_array().unwrap().iter().filter(|step| step["carried_from"].is_null() != carried);
        steps.map(|step| step["name"].as_str().unwrap()).collect()
    };
    (names(true), names(false))
}

fn edition(run: &Value) -> &str {
    run["steps"][0]["output"]["edition_id"].as_str().unwrap()
}

fn newest_event(env: &Env) -> Value {
    env.json(["inventory", "log"])["versions"][0]["event"].clone()
}

/// Publishes and ends the process at a point.
pub fn crash_at(env: &Env, point: &str, source: &str) -> String {
    let mut command = env.command(["run", "publish", "--product", PRODUCT, "--source", source]);
    let output = command.env("JOBCTL_CRASH_AT", point).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.code().is_none(), "{point} was not reached: {output:?}");
    newest(env)
}

#[test]
fn a_publish_that_failed_at_its_build_is_replayed_with_its_source_mended() {
    let (env, origin) = failed_at_build();
    Table { revision: 50, ..Table::new(PRODUCT, 6) }.write_zip(&env.path("mended.zip"));
    let before = env.catalog_bytes();
    let dry =
        env.jobctl(["runs", "replay", &origin, "--from", "resolve_source", "--set", "source=mended.zip", "--dry-run"]);
    dry.exits(0).says(&["from resolve_source", "open", "carry it out", "…"]);
    assert_eq!((env.catalog_bytes(), runs(&env)), (before, 2), "a dry run changes nothing");
    let short = format!("{}…{}", &origin[..4], &origin[origin.len() - 6..]);
    let set = ["--from", "resolve_source", "--set", "source=mended.zip", "--reason", "downloaded again"];
    env.jobctl(["runs", "replay", &short].iter().chain(&set)).exits(0).says(&[
        &format!("publish {PRODUCT} (replay of {short} from resolve_source)"),
        "mended.zip, sha256 ",
        "36 rows",
        "live in version 3",
    ]);
    let run = shown(&env, &newest(&env));
    assert_eq!((&run["run"]["origin_run_id"], &run["run"]["origin_step"]), (&origin.into(), &"resolve_source".into()));
    assert_eq!(
        run["run"]["input"]["source"]["files"][0],
        env.path("mended.zip").canonicalize().unwrap().to_str().unwrap()
    );
    assert_eq!(run["audit"][0]["reason"], "downloaded again");
    assert_eq!(newest_event(&env)["reason"], "downloaded again", "the Inventory has who published it, and why");
}

#[test]
fn a_file_that_was_mended_in_its_place_needs_no_other_input() {
    let (env, origin) = failed_at_build();
    Table { revision: 50, ..Table::new(PRODUCT, 6) }.write_zip(&env.path("table.zip"));
    // The recorded digest is the damaged file's: what is carried over must still hold.
    let ran = env.jobctl(["runs", "replay", &origin, "--from", "build", "--reason", "a test"]);
    ran.exits(1).says(&["table.zip", "carried over from"]);
    let run = replayed(&env, &origin, "resolve_source", &[]);
    assert_eq!(run["state"], "succeeded");
    assert_eq!(env.json(["inventory", "show"])["seq"], 3);
}

#[test]
fn a_publish_is_replayed_from_each_of_its_later_steps() {
    let env = Env::with_catalog();
    Table::new(PRODUCT, 6).write_zip(&env.path("table.zip"));
    let origin = env.publish(PRODUCT, &env.path("table.zip"))["run_id"].as_str().unwrap().to_owned();
    let first = shown(&env, &origin);
    // From its record or its check: the same edition, recorded already.
    for (from, carried) in [("record", 5), ("check", 4), ("5", 4)] {
        let dry = env.json(["runs", "replay", &origin, "--from", from, "--dry-run"]);
        let would = dry["steps"].as_array().unwrap().iter().filter(|step| !step["carried_from"].is_null()).count();
        assert_eq!((would, &dry["is_whole"]), (carried, &true.into()), "{dry}");
        let done = replayed(&env, &origin, from, &[]);
        let run = shown(&env, done["run_id"].as_str().unwrap());
        assert_eq!(steps(&run).0.len(), carried, "from {from}");
        assert_eq!(edition(&run), edition(&first), "from {from}");
        assert_eq!(run["steps"][5]["output"]["already"], true, "from {from}");
        assert_eq!(env.json(["inventory", "show"])["seq"], 2, "from {from}");
    }
    let check = shown(&env, &newest(&env))["steps"][4]["output"]["fingerprints_recomputed"].clone();
    assert_eq!(check, true, "another process sealed it, so everything is computed again");
    // From its seal: the id is used up, so it is another edition, on the one that is live now.
    let done = replayed(&env, &origin, "seal", &[]);
    let run = shown(&env, done["run_id"].as_str().unwrap());
    assert_eq!(steps(&run), (vec!["resolve_source"], vec!["open", "build", "seal", "check", "record"]));
    assert_ne!(edition(&run), edition(&first));
    assert_eq!((&done["output"]["previous"], &done["output"]["seq"]), (&edition(&first).into(), &3.into()));
    assert_eq!(newest_event(&env)["reason"], "a test");
    env.jobctl(["edition", "check", edition(&run)]).exits(0);
    let text = env.jobctl(["runs", "show", done["run_id"].as_str().unwrap()]).exits(0);
    text.says(&[&format!("replays run {origin} from seal"), "carried over from", "replay by", "a test"]);
    let newest = done["run_id"].as_str().unwrap();
    env.jobctl(["runs", "show", &origin]).exits(0).says(&[&format!("replay as run {newest} by"), "a test"]);
}

#[test]
fn a_replay_of_a_replay_names_the_run_that_made_each_result() {
    let (env, origin) = failed_at_build();
    Table { revision: 50, ..Table::new(PRODUCT, 6) }.write_zip(&env.path("table.zip"));
    let one = replayed(&env, &origin, "resolve_source", &[])["run_id"].as_str().unwrap().to_owned();
    let two = replayed(&env, &one, "record", &[])["run_id"].as_str().unwrap().to_owned();
    let three = replayed(&env, &two, "check", &[])["run_id"].as_str().unwrap().to_owned();
    let run = shown(&env, &three);
    let makers: Vec<_> = run["steps"].as_array().unwrap().iter().map(|step| step["carried_from"].as_str()).collect();
    let made = Some(one.as_str());
    assert_eq!(makers, [made, made, made, made, None, None]);
    assert_eq!(run["run"]["origin_run_id"], two.as_str());
}

#[test]
fn an_edition_that_its_check_refused_is_checked_again_once_it_is_mended() {
    let env = Env::with_catalog();
    Table::new(PRODUCT, 6).write_zip(&env.path("table.zip"));
    let origin = refused_at_check(&env);
    let opened = edition(&shown(&env, &origin)).to_owned();
    assert_eq!(env.json(["inventory", "show"])["seq"], 1, "it was not recorded");
    let done = replayed(&env, &origin, "check", &[]);
    let run = shown(&env, done["run_id"].as_str().unwrap());
    assert_eq!(steps(&run), (vec!["open", "resolve_source", "build", "seal"], vec!["check", "record"]));
    assert_eq!((edition(&run), &done["output"]["state"]), (opened.as_str(), &"live".into()));
}

/// A publish whose sealed edition was damaged when it was checked, and is mended since.
pub fn refused_at_check(env: &Env) -> String {
    let origin = crash_at(env, "engine.result.after:4", "table.zip");
    let opened = edition(&shown(env, &origin)).to_owned();
    let file = env.path(&format!("catalog/products/{PRODUCT}/{opened}/metadata.duckdb"));
    let bytes = std::fs::read(&file).unwrap();
    let mut damaged = bytes.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    std::fs::write(&file, damaged).unwrap();
    let refused = env.jobctl(["runs", "resume", &origin]);
    assert!(matches!(refused.code, Some(1 | 3)), "{refused:?}");
    assert_eq!(shown(env, &origin)["run"]["step"], "check", "{refused:?}");
    std::fs::write(&file, bytes).unwrap();
    origin
}

#[test]
fn a_replay_that_is_killed_at_any_step_goes_on_with_the_same_carried_results() {
    let env = Env::with_catalog();
    Table::new(PRODUCT, 3).write_zip(&env.path("table.zip"));
    let origin = env.publish(PRODUCT, &env.path("table.zip"))["run_id"].as_str().unwrap().to_owned();
    let made = shown(&env, &origin);
    for (from, points) in [
        ("check", &["engine.result.before:2", "engine.result.after:4", "engine.result.before:6"][..]),
        (
            "seal",
            &[
                "engine.result.after:2",
                "edition.build.rows_written",
                "edition.seal.after_manifest",
                "inventory.after_root",
            ],
        ),
    ] {
        for point in points {
            let mut command = env.command(["runs", "replay", &origin, "--from", from, "--reason", "a test"]);
            let output = command.env("JOBCTL_CRASH_AT", point).stdin(Stdio::null()).output().unwrap();
            assert!(output.status.code().is_none(), "{from} {point} was not reached: {output:?}");
            let run = newest(&env);
            let before = shown(&env, &run);
            env.jobctl(["runs", "resume", &run]).exits(0);
            let after = shown(&env, &run);
            for (before, after) in before["steps"].as_array().unwrap().iter().zip(after["steps"].as_array().unwrap()) {
                if before["state"] == "succeeded" {
                    assert_eq!(before, after, "{from} {point}: a recorded result never changes");
                }
            }
            let carried = if from == "check" { 0..4 } else { 1..2 };
            for step in carried {
                let (old, new) = (&made["steps"][step], &after["steps"][step]);
                assert_eq!(
                    (&new["carried_from"], &new["output"]),
                    (&origin.as_str().into(), &old["output"]),
                    "{from} {point}"
                );
            }
            assert_eq!(after["run"]["state"], "succeeded", "{from} {point}");
            assert_eq!(edition(&after) == edition(&made), from == "check", "{from} {point}");
        }
    }
    let journal = env.path(&format!("catalog/products/{PRODUCT}/journal"));
    assert_eq!(std::fs::read_dir(journal).map(|entries| entries.count()).unwrap_or_default(), 0);
    let editions = env.json(["edition", "list", "--product", PRODUCT]);
    assert!(editions["editions"].as_array().unwrap().iter().all(|edition| edition["sealed"] == true), "{editions}");
}

#[test]
fn a_cancelled_build_is_replayed_with_nothing_in_its_way() {
    let env = Env::with_catalog();
    Table::new(PRODUCT, 6).write_zip(&env.path("table.zip"));
    let origin = crash_at(&env, "edition.build.rows_written", "table.zip");
    let early = env.jobctl(["runs", "replay", &origin, "--from", "build", "--reason", "too early"]);
    early.exits(4).says(&["only a run that ended", &format!("jobctl runs cancel {origin}")]);
    env.jobctl(["runs", "cancel", &origin, "--reason", "a test"]).exits(0);
    let half = edition(&shown(&env, &origin)).to_owned();
    replayed(&env, &origin, "build", &[]);
    // As if a build had been left by a state database that is lost.
    std::fs::create_dir(env.path(&format!("catalog/products/{PRODUCT}/{half}"))).unwrap();
    env.jobctl(["edition", "discard", &half, "--product", PRODUCT, "--reason", "a test"]).exits(0);
    // A discard is a run like any other.
    let discard = env.json(["runs", "list"])["runs"][0].clone();
    assert_eq!(discard["workflow"], "discard");
    let again =
        env.jobctl(["runs", "replay", discard["run_id"].as_str().unwrap(), "--from", "1", "--reason", "a test"]);
    again.exits(0).says(&["discard"]);
}

#[test]
fn what_cannot_be_replayed_is_refused_and_nothing_is_recorded() {
    let (env, origin) = failed_at_build();
    let before = (env.catalog_bytes(), runs(&env));
    let refused = |args: &[&str], code: i32, words: &[&str]| -> Ran {
        let ran = env.jobctl(["runs", "replay"].iter().chain(args)).exits(code).says(words);
        assert_eq!((env.catalog_bytes(), runs(&env)), before, "{args:?}");
        ran
    };
    let why = ["--reason", "a test"];
    refused(&[&origin, "--from", "upload", why[0], why[1]], 2, &["upload", "1 open", "3 build"]);
    refused(&["ffffffff", "--from", "build", why[0], why[1]], 2, &["ffffffff"]);
    refused(&[&origin, "--from", "build"], 2, &["--reason"]);
    refused(&[&origin, "--from", "build", "--set", "sauce=x", why[0], why[1]], 2, &["sauce", "source"]);
    refused(&[&origin, "--from", "build", "--set", "source.kind=html", why[0], why[1]], 2, &["html", "codr"]);
    refused(&[&origin, "--from", "build", "--set", "product_id=99100002", why[0], why[1]], 2, &["same product"]);
    assert!(Path::new(&env.path("state")).exists());
}

#[test]
fn a_replay_waits_for_nobody_and_a_detached_one_for_a_process() {
    let (env, origin) = failed_at_build();
    Table { revision: 50, ..Table::new(PRODUCT, 6) }.write_zip(&env.path("table.zip"));
    let args = ["runs", "replay", &origin, "--from", "resolve_source", "--reason", "a test"];
    let queued = env.jobctl(args.iter().chain(&["--detach", "--json"])).exits(0).json();
    assert_eq!(queued["state"], "queued");
    let queued = queued["run_id"].as_str().unwrap();
    env.jobctl(args).exits(4).says(&[queued, "replay"]);
    env.jobctl(["run", "publish", "--product", PRODUCT, "--source", "table.zip"]).exits(4);
    env.jobctl(["runs", "cancel", queued, "--reason", "a test"]).exits(0);
    env.jobctl(args).exits(0);
}
