//! The operations on the Inventory as the people of a release day use them: each a run, and a dry run that is none.

use serde_json::{Value, json};

use crate::support::daemon::Daemon;
use crate::support::env::{Env, Ran};
use crate::support::table::Table;

const PRODUCT: &str = "99100001";

/// A catalog with its embargo off or on, and a source.
fn world(embargo: &str) -> Env {
    let env = Env::empty();
    env.jobctl(["init", "--embargo", embargo, "--title", "A test"]).exits(0);
    Table::new(PRODUCT, 3).write_zip(&env.path("in.zip"));
    env
}

/// Publishes once more, and gives the edition.
fn publish(env: &Env, more: &[&str]) -> String {
    let words = ["run", "publish", "--product", PRODUCT, "--source", "in.zip", "--json"];
    let run = env.jobctl(words.iter().chain(more)).exits(0).json();
    run["output"]["edition_id"].as_str().unwrap().to_owned()
}

/// A publish whose process ends at the crash point.
fn publish_crashed(env: &Env, point: &str) -> String {
    let mut publish = env.command(["run", "publish", "--product", PRODUCT, "--source", "in.zip"]);
    assert!(!publish.env("JOBCTL_CRASH_AT", point).output().unwrap().status.success(), "{point} was not reached");
    let run = env.json(["runs", "list"])["runs"][0]["run_id"].as_str().unwrap().to_owned();
    let shown = env.json(["runs", "show", &run]);
    shown["steps"][0]["output"]["edition_id"].as_str().unwrap().to_owned()
}

fn run(env: &Env, words: &[&str]) -> Ran {
    env.jobctl(["run"].iter().chain(words))
}

/// The document of an operation.
fn done(env: &Env, words: &[&str]) -> Value {
    env.jobctl(["run"].iter().chain(words).chain(&["--json"])).exits(0).json()
}

/// The states of the product's editions, by id.
fn marks(env: &Env) -> Vec<(String, String)> {
    let product = env.json(["inventory", "product", PRODUCT]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    product["editions"].as_array().unwrap().iter().map(|it| (text(&it["edition_id"]), text(&it["mark"]))).collect()
}

fn mark(env: &Env, edition: &str) -> String {
    marks(env).into_iter().find(|(id, _)| id == edition).unwrap().1
}

fn short(id: &str) -> String {
    format!("{}…{}", &id[..4], &id[id.len() - 6..])
}

/// Asserts that a dry run says what the operation would do, and that it leaves neither the catalog nor the state another.
fn dry(env: &Env, words: &[&str], code: i32) -> Ran {
    let (catalog, runs) = (env.catalog_bytes(), env.json(["runs", "list"]));
    let ran = env.jobctl(["run"].iter().chain(words).chain(&["--dry-run"])).exits(code);
    assert_eq!(env.catalog_bytes(), catalog, "a dry run of {words:?} changed the catalog");
    assert_eq!(env.json(["runs", "list"]), runs, "a dry run of {words:?} left a run");
    ran
}

/// One catalog for the story of a morning, since each publish takes its time.
#[test]
fn a_wrong_release_is_rolled_back_and_what_was_built_on_it_is_named_and_refused() {
    let env = world("off");
    let (first, second) = (publish(&env, &[]), publish(&env, &[]));
    // Sealed and checked, and its process gone before it was recorded.
    let third = publish_crashed(&env, "engine.result.after:5");

    let rollback = ["rollback", "--product", PRODUCT];
    run(&env, &rollback).exits(2).says(&["a reason is missing", "--reason"]);
    let words = [format!("live {} → withdrawn", short(&second)), format!("superseded {} → live", short(&first))];
    let told: Vec<&str> = words.iter().map(String::as_str).collect();
    dry(&env, &rollback, 0).says(&told).says(&["version 4", "1 sealed edition", &short(&third), "nothing was changed"]);
    assert!(mark(&env, &second) == "live");

    // The publish is in the middle, and keeps no rollback out.
    let rolled = run(&env, &["rollback", "--product", PRODUCT, "--reason", "wrong weights"]).exits(0);
    let rolled = rolled.says(&told).says(&["1 live, 1 withdrawn in version 4", PRODUCT]);
    rolled.says(&["1 sealed edition is built on the withdrawn one", &short(&third), "jobctl run publish"]);
    assert_eq!(marks(&env), [(first.clone(), "live".to_owned()), (second.clone(), "withdrawn".to_owned())]);
    let log = env.json(["inventory", "log", "-n", "1"])["versions"][0]["event"].clone();
    assert_eq!((&log["kind"], &log["reason"]), (&json!("rollback"), &json!("wrong weights")));
    env.jobctl(["inventory", "diff"]).exits(0).says(&["wrong weights", "withdrawn", &second]);

    // The publish that goes on is refused with both editions and the fix.
    env.jobctl(["runs", "resume"]).exits(3).says(&[&third, &second, &first, "was withdrawn", "jobctl run publish"]);
    assert!(marks(&env).iter().all(|(edition, _)| *edition != third));

    // One that is still building is refused before it builds, and is in nobody's way once it is discarded.
    let fourth = publish(&env, &[]);
    let fifth = publish_crashed(&env, "edition.build.rows_written");
    let rolled = done(&env, &["rollback", "--product", PRODUCT, "--to", &short(&first), "--reason", "again"]);
    assert_eq!(rolled["schema"], "jobctl.run.rollback/1");
    assert_eq!(rolled["state"], "succeeded");
    let output = &rolled["output"];
    assert_eq!(
        json!([output["seq"], output["already"], output["counts"]]),
        json!([6, false, {"live": 1, "withdrawn": 1}])
    );
    assert_eq!(
        output["changes"][1],
        json!({"product_id": PRODUCT, "edition_id": fourth, "from": "live", "to": "withdrawn"})
    );
    let ripple = &output["ripples"][0];
    assert_eq!(json!([ripple["edition_id"], ripple["state"]]), json!([fifth, "unsealed"]));
    let fix = ripple["fix"].as_str().unwrap();
    assert!(fix.contains(&format!("jobctl edition discard {fifth} --product {PRODUCT}")), "{fix}");
    env.jobctl(["runs", "resume"]).exits(3).says(&["catalog.stale_base", &fourth, &first]);
    env.jobctl(["edition", "discard", &fifth, "--product", PRODUCT, "--reason", "stale"]).exits(0);
    let sixth = publish(&env, &[]);
    assert_eq!(mark(&env, &sixth), "live");
    env.jobctl(["verify"]).exits(0);

    // The withdrawn edition comes back only through its tombstone.
    let of_second = |command: &'static str| vec![command, "--product", PRODUCT, "--edition", second.as_str()];
    run(&env, &of_second("reinstate")).exits(3).says(&["is withdrawn", "expected a tombstone", "jobctl run retire"]);
    run(&env, &of_second("retire")).exits(3).says(&["catalog.inside_window", "--before-window"]);
    let waived: Vec<&str> = of_second("retire").into_iter().chain(["--before-window"]).collect();
    run(&env, &waived).exits(2).says(&["a reason is missing"]);
    let waived: Vec<&str> = waived.into_iter().chain(["--reason", "the weights were right"]).collect();
    run(&env, &waived).exits(0).says(&[&format!("withdrawn {} → tombstone", short(&second))]);
    run(&env, &["retire"]).exits(0).says(&["0 editions old enough", "nothing was to be changed"]);
    dry(&env, &of_second("reinstate"), 0).says(&["tombstone", "superseded"]);
    let reinstated = done(&env, &of_second("reinstate"));
    assert_eq!(reinstated["output"]["counts"], json!({"superseded": 1}));
    let again = done(&env, &of_second("reinstate"));
    assert_eq!((&again["output"]["already"], &again["output"]["changes"]), (&json!(true), &json!([])));
    run(&env, &["rollback", "--product", PRODUCT, "--to", &second, "--reason", "they were right"]).exits(0);
    assert_eq!((mark(&env, &second), mark(&env, &sixth)), ("live".to_owned(), "withdrawn".to_owned()));

    // A damaged file is found before an edition comes back.
    let sixth_of = |command: &'static str| vec![command, "--product", PRODUCT, "--edition", sixth.as_str()];
    let waived: Vec<&str> = sixth_of("retire").into_iter().chain(["--before-window", "--reason", "r"]).collect();
    run(&env, &waived).exits(0);
    let file = env.path(&format!("catalog/products/{PRODUCT}/{sixth}/metadata.duckdb"));
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[5000] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    run(&env, &sixth_of("reinstate")).exits(3).says(&["catalog.not_verified", "metadata.duckdb", "hint:"]);

    // Without a replacement.
    run(&env, &["withdraw", "--product", PRODUCT, "--live"]).exits(2).says(&["a reason is missing"]);
    run(&env, &["withdraw", "--product", PRODUCT, "--reason", "r"]).exits(2).says(&["--edition", "--live"]);
    run(&env, &["withdraw", "--product", PRODUCT, "--live", "--reason", "confidential"]).exits(0).says(&["withdrawn"]);
    assert_eq!(env.json(["inventory", "products"])["products"][0]["heads"], json!([]));
    run(&env, &["rollback", "--product", PRODUCT, "--reason", "r"]).exits(3).says(&["no edition", "is live"]);
}

#[test]
fn a_release_under_embargo_tells_what_went_live_what_waits_and_what_was_refused() {
    let env = world("on");
    let file = env.path("jobctl.toml");
    let text =
        std::fs::read_to_string(&file).unwrap().replace("[catalog]", "[catalog]\ntime_zone = \"America/Toronto\"");
    let schedule = "[schedules.daily]\nrun = \"release\"\ncron = \"30 8 * * *\"\ntime_zone = \"America/Toronto\"\n";
    let windows = "[retention]\ngc_days = 50\ntombstone_days = 40\nversion_days = 51\nbackup_days = 10\n";
    std::fs::write(&file, format!("{text}\n{windows}\n{schedule}")).unwrap();
    let first = publish(&env, &["--release-at", "2026-01-05T08:30"]);
    assert_eq!(mark(&env, &first), "embargoed");

    // What is due goes live, by a schedule's run; the windows warn and hold nothing up.
    let released = env.json(["schedules", "trigger", "daily", "--reason", "now"]);
    assert_eq!(released["state"], "succeeded");
    assert_eq!(released["output"]["counts"], json!({"live": 1}));
    assert_eq!(released["output"]["warnings"][0]["code"], "retention.gc_above_tombstone");
    let event = env.json(["inventory", "log", "-n", "1"])["versions"][0]["event"].clone();
    assert_eq!(json!([event["actor"], event["kind"]]), json!(["schedule:daily", "release"]));

    // What is not due waits: until its time, or until it is named.
    let second = publish(&env, &["--release-at", "2099-07-01T08:30"]);
    let waiting = env.json(["inventory", "products"])["embargoed"][0].clone();
    assert_eq!(waiting["release_at"], "2099-07-01T12:30:00.000000Z", "local times are the catalog's");
    run(&env, &["release"]).exits(0).says(&["nothing is due", "tombstone_days", "hint:"]);
    dry(&env, &["release", "--as-of", "2099-07-01T08:29"], 0).says(&["nothing was to be changed"]);
    let words = [format!("embargoed {} → live", short(&second)), format!("live {} → superseded", short(&first))];
    let told: Vec<&str> = words.iter().map(String::as_str).collect();
    dry(&env, &["release", "--as-of", "2099-07-01T08:30"], 0).says(&told);
    let planned = dry(&env, &["release", "--as-of", "2099-07-01T08:30", "--json"], 0).json();
    assert_eq!(planned["schema"], "jobctl.run.release/1");
    assert_eq!(json!([planned["dry_run"], planned["run_id"], planned["state"]]), json!([true, null, "would_succeed"]));
    assert_eq!(planned["output"]["counts"], json!({"live": 1, "superseded": 1}));
    let of_second = |command: &'static str| vec![command, "--product", PRODUCT, "--edition", second.as_str()];
    for (time, word) in [
        ("2026-03-08T02:30", "does not exist in America/Toronto"),
        ("2026-11-01T01:30", "comes twice in America/Toronto"),
        ("tomorrow", "expected"),
    ] {
        let words: Vec<&str> = of_second("reschedule").into_iter().chain(["--release-at", time]).collect();
        run(&env, &words).exits(2).says(&[word, time]);
    }
    let never: Vec<&str> = of_second("reschedule").into_iter().chain(["--never"]).collect();
    run(&env, &never).exits(0).says(&["no time is set"]);
    dry(&env, &["release", "--as-of", "2099-07-02T08:30"], 0).says(&["nothing was to be changed"]);
    let released = run(&env, &["release", "--product", PRODUCT]).exits(0);
    released.says(&told).says(&["1 live, 1 superseded"]);
    run(&env, &["release", "--product", PRODUCT])
        .exits(3)
        .says(&["catalog.nothing_embargoed", "jobctl inventory product"]);

    // Two that would replace the same edition: neither goes live by itself, and a person says which.
    let rivals =
        [publish(&env, &["--release-at", "2026-01-05T08:30"]), publish(&env, &["--release-at", "2026-01-05T08:30"])];
    let refused = run(&env, &["release"]).exits(3);
    let refused = refused.says(&[&rivals[0], &rivals[1], "catalog §11.2", "jobctl run supersede", "2 refused"]);
    refused.says(&[&second]);
    assert!(marks(&env).iter().filter(|(_, mark)| mark == "embargoed").count() == 2);
    env.jobctl(["inventory", "show"]).exits(0).says(&["catalog §11.2", "jobctl run supersede"]);
    let again = env.jobctl(["run", "release", "--json"]).exits(3).json();
    assert_eq!((&again["state"], &again["exit_code"]), (&json!("succeeded"), &json!(3)));
    assert_eq!(json!([again["output"]["already"], again["output"]["refused_count"]]), json!([true, 2]));
    assert_eq!(again["output"]["refused"][0]["code"], "catalog.two_pending");
    let other = short(&rivals[1]);
    run(&env, &["supersede", "--product", PRODUCT, "--edition", &rivals[0], "--by", &other]).exits(0);
    assert_eq!(mark(&env, &rivals[0]), "withdrawn");

    // What was taken back takes what is built on it with it.
    let rolled = run(&env, &["rollback", "--product", PRODUCT, "--reason", "wrong"]).exits(0);
    rolled.says(&[
        "1 pending edition is built on the withdrawn one and will be refused at release",
        &other,
        "jobctl run withdraw",
    ]);
    run(&env, &["release"]).exits(3).says(&["was withdrawn", &second, &first, "jobctl run withdraw"]);
    let cancel = ["withdraw", "--product", PRODUCT, "--edition", &rivals[1]];
    run(&env, &cancel).exits(2).says(&["a reason is missing"]);
    let cancel: Vec<&str> = cancel.into_iter().chain(["--reason", "built on a wrong one"]).collect();
    run(&env, &cancel).exits(0);
    run(&env, &["release"]).exits(0).says(&["nothing is due"]);

    // The settings of the catalog and of a product.
    run(&env, &["set-lifecycle", "--product", PRODUCT, "--lifecycle", "final"]).exits(0).says(&["final"]);
    let before = env.json(["inventory", "show"])["seq"].clone();
    run(&env, &["embargo", "off"]).exits(0).says(&["embargo off"]);
    run(&env, &["embargo", "off"]).exits(0).says(&["nothing was to be changed"]);
    run(&env, &["describe", "--title", "Labour"]).exits(0).says(&["description"]);
    run(&env, &["describe", "--title", "Travail", "--language", "fr"]).exits(0);
    let statcat = || env.json(["inventory", "log", "-n", "1"])["versions"][0]["extensions"]["statcat"].clone();
    assert_eq!(statcat()["description"]["title"], json!({"en": "Labour", "fr": "Travail"}));
    std::fs::write(env.path("description.json"), r#"{"format_version": "3", "series": [1]}"#).unwrap();
    run(&env, &["describe", "--file", "description.json"]).exits(0);
    assert_eq!(statcat(), json!({"format_version": "3", "series": [1]}));
    std::fs::write(env.path("description.json"), "[1]").unwrap();
    run(&env, &["describe", "--file", "description.json"]).exits(2).says(&["description.json", "JSON object"]);
    let before = before.to_string();
    run(&env, &["correct", "--to", &before]).exits(2).says(&["a reason is missing"]);
    dry(&env, &["correct", "--to", &before], 0).says(&["embargo on", "description changed"]);
    run(&env, &["correct", "--to", &before, "--reason", "not meant"]).exits(0).says(&["embargo on"]);
    run(&env, &["correct", "--to", "99", "--reason", "r"]).exits(3).says(&["99", "jobctl inventory log"]);
    let schema = env.json(["inventory", "products"])["products"][0]["heads"][0]["schema_version"].clone();
    let schema = schema.as_str().unwrap();
    run(&env, &["supersede-schema", "--schema", schema]).exits(3).says(&["1 refused", "newer"]);
    run(&env, &["supersede-schema", "--schema", "9.9"]).exits(3).says(&["9.9"]);
    env.jobctl(["verify"]).exits(0);
}

#[test]
fn a_rollback_that_was_killed_goes_on_and_goes_back_once() {
    let env = world("off");
    let editions = [publish(&env, &[]), publish(&env, &[]), publish(&env, &[])];
    let rollback = ["rollback", "--product", PRODUCT, "--reason", "wrong"];
    // The version is written, its step is not recorded and CURRENT does not name it yet.
    let mut command = env.command(["run"].iter().chain(&rollback));
    assert!(!command.env("JOBCTL_CRASH_AT", "inventory.after_root").output().unwrap().status.success());
    let state = |n: usize| mark(&env, &editions[n]);
    assert_eq!((state(1), state(2)), ("live".to_owned(), "withdrawn".to_owned()));
    // A second one would go back further: it is held up, and named the run that is to go on.
    let run_id = env.json(["runs", "list"])["runs"][0]["run_id"].as_str().unwrap().to_owned();
    run(&env, &rollback).exits(5).says(&[&run_id, "interrupted", "jobctl runs resume"]);
    // What has another key goes on, and so does a publish.
    run(&env, &["release"]).exits(0);
    assert_eq!(publish(&env, &[]).len(), 36);
    let resumed = env.jobctl(["runs", "resume", &run_id]).exits(0);
    resumed.says(&[&format!("live {} → withdrawn", short(&editions[2])), "version 5"]);
    assert_eq!((state(1), state(2)), ("superseded".to_owned(), "withdrawn".to_owned()));
    // Who says what they saw is held to it.
    let seen = ["--if-live", &short(&editions[2])];
    run(&env, &rollback.into_iter().chain(seen).collect::<Vec<_>>())
        .exits(3)
        .says(&["catalog.live_changed", &editions[2]]);
    let kinds = env.json(["inventory", "log"]);
    let kinds = kinds["versions"].as_array().unwrap().iter().filter(|it| it["event"]["kind"] == "rollback").count();
    assert_eq!(kinds, 1);
    // Wherever a version is interrupted, its run goes on, and there is one version of it.
    for (n, point) in activities::inventory::CRASH_POINTS.iter().enumerate() {
        let lifecycle = ["final", "revisable"][n % 2];
        let before = env.json(["inventory", "show"])["seq"].as_u64().unwrap();
        let words = ["run", "set-lifecycle", "--product", PRODUCT, "--lifecycle", lifecycle];
        let mut command = env.command(words);
        assert!(!command.env("JOBCTL_CRASH_AT", point).output().unwrap().status.success(), "{point} was not reached");
        env.jobctl(["runs", "resume"]).exits(0).says(&[lifecycle]);
        let show = env.json(["inventory", "show"]);
        assert_eq!(
            (show["seq"].as_u64().unwrap(), &show["products"][0]["lifecycle"]),
            (before + 1, &json!(lifecycle)),
            "{point}"
        );
    }
    env.jobctl(["verify"]).exits(0);
}

#[test]
fn what_stands_in_the_way_has_its_exit_code() {
    let env = world("off");
    let [first, _] = [publish(&env, &[]), publish(&env, &[])];
    // A key that is held by a run in the queue.
    let queued = run(&env, &["rollback", "--product", PRODUCT, "--reason", "r", "--detach", "--json"]).exits(0).json();
    let holder = queued["run_id"].as_str().unwrap();
    assert_eq!((&queued["schema"], &queued["state"]), (&json!("jobctl.run.rollback/1"), &json!("queued")));
    let again = ["rollback", "--product", PRODUCT, "--reason", "r"];
    run(&env, &again).exits(4).says(&[holder, "waits in the queue", "jobctl serve"]);
    run(&env, &["withdraw", "--product", PRODUCT, "--live", "--reason", "r"]).exits(4).says(&[holder]);
    run(&env, &["release"]).exits(0);
    env.jobctl(["runs", "cancel", holder, "--reason", "not meant"]).exits(0);
    // A time of release where nothing waits is refused before anything is built.
    let publish = ["publish", "--product", PRODUCT, "--source", "in.zip", "--release-at", "2099-07-01T08:30"];
    run(&env, &publish).exits(3).says(&["catalog.release_at_without_embargo", "at open", "jobctl run embargo on"]);
    // What is not there.
    run(&env, &["rollback", "--product", "99100009", "--reason", "r"])
        .exits(3)
        .says(&["99100009", "inventory products"]);
    run(&env, &["rollback", "--product", PRODUCT, "--to", "zzz", "--reason", "r"]).exits(2).says(&["zzz", PRODUCT]);
    let unknown = "01a22e09-ad3f-77ca-a710-2e7f3d5c5ed2";
    run(&env, &["rollback", "--product", PRODUCT, "--to", unknown, "--reason", "r"]).exits(3).says(&[unknown]);
    run(&env, &["retire", "--product", PRODUCT, "--product", "2", "--edition", &first]).exits(2).says(&["--edition"]);
    run(&env, &["release", "--as-of", "2026-01-05T08:30"]).exits(2).says(&["--dry-run"]);
    run(&env, &["release", "--catalog", "nowhere"]).exits(3).says(&["nowhere"]);
    let text = std::fs::read_to_string(env.path("jobctl.toml")).unwrap();
    let schedule = "[schedules.x]\nrun = \"release --dry-run\"\ncron = \"@daily\"\ntime_zone = \"UTC\"\n";
    std::fs::write(env.path("dry.toml"), format!("{text}{schedule}")).unwrap();
    env.jobctl(["--config", "dry.toml", "schedules", "list"]).exits(2).says(&["schedules.x.run", "--dry-run"]);
    // A damaged head is for a person, and the run goes on once it is mended.
    let root = env.path("catalog/inventory/000000000003.json");
    let sound = std::fs::read(&root).unwrap();
    std::fs::write(&root, "{").unwrap();
    let blocked = run(&env, &again).exits(5).says(&["catalog.head_invalid", "version 3", "jobctl runs resume"]);
    assert!(blocked.stdout.contains("blocked"), "{blocked:?}");
    std::fs::write(&root, sound).unwrap();
    let runs = env.json(["runs", "list"]);
    env.jobctl(["runs", "resume", runs["runs"][0]["run_id"].as_str().unwrap()])
        .exits(0)
        .says(&["1 live, 1 withdrawn in version 4"]);
}

#[test]
fn a_cancelled_operation_says_which_version_stands_and_a_queued_one_goes_back_no_further_than_was_seen() {
    let env = world("off");
    let [first, second, third] = [publish(&env, &[]), publish(&env, &[]), publish(&env, &[])];
    // Its process died between the version and its record, and a person ends the run.
    let mut crashed = env.command(["run", "rollback", "--product", PRODUCT, "--reason", "wrong"]);
    assert!(!crashed.env("JOBCTL_CRASH_AT", "inventory.after_root").output().unwrap().status.success());
    let runs = env.json(["runs", "list"]);
    let run_id = runs["runs"][0]["run_id"].as_str().unwrap();
    let cancelled = env.jobctl(["runs", "cancel", run_id, "--reason", "stop", "--json"]).exits(0).json();
    assert_eq!(cancelled["versions"], json!([{"seq": 5, "kind": "rollback"}]), "{cancelled}");
    assert_eq!((mark(&env, &third).as_str(), mark(&env, &second).as_str()), ("withdrawn", "live"));

    // Asked for while the second is live, and carried out after somebody else had taken that back.
    let queued = done(&env, &["rollback", "--product", PRODUCT, "--reason", "late", "--detach"]);
    let other = ["run", "rollback", "--product", PRODUCT, "--reason", "first", "--state", "other"];
    env.jobctl(other).exits(0);
    assert_eq!(mark(&env, &first), "live");
    let run_id = queued["run_id"].as_str().unwrap();
    let mut daemon = Daemon::start(&env, &[], None);
    daemon.until_ended(run_id);
    daemon.end();
    env.jobctl(["runs", "show", run_id]).exits(0).says(&["catalog.live_changed", &second, &first]);
    assert_eq!(mark(&env, &first), "live");
}
