//! The commands that only read, their documents and their exit codes.

use crate::support::env::Env;
use crate::support::table::Table;

const PRODUCT: &str = "99100001";

#[test]
fn every_document_has_its_schema() {
    let env = Env::empty();
    let init = env.json(["init"]);
    assert_eq!(init["schema"], "jobctl.init/1");
    Table::new(PRODUCT, 3).write_zip(&env.path("1.zip"));
    let run = env.publish(PRODUCT, &env.path("1.zip"));
    assert_eq!(run["schema"], "jobctl.run.publish/1");
    let edition = run["output"]["edition_id"].as_str().unwrap();
    let id = run["run_id"].as_str().unwrap();
    for (args, schema) in [
        (vec!["runs", "list"], "jobctl.runs.list/1"),
        (vec!["runs", "show", id], "jobctl.runs.show/1"),
        (vec!["runs", "resume"], "jobctl.runs.resume/1"),
        (vec!["inventory", "show"], "jobctl.inventory.show/1"),
        (vec!["inventory", "log"], "jobctl.inventory.log/1"),
        (vec!["edition", "list"], "jobctl.edition.list/1"),
        (vec!["edition", "show", edition], "jobctl.edition.show/1"),
        (vec!["edition", "check", edition], "jobctl.edition.check/1"),
        (vec!["edition", "files", edition], "jobctl.edition.files/1"),
    ] {
        let document = env.jobctl(args.iter().copied().chain(["--json"])).exits(0).json();
        assert_eq!(document["schema"], schema, "{args:?}");
    }
}

#[test]
fn ids_are_taken_in_the_form_that_tables_show() {
    let env = Env::with_catalog();
    Table::new(PRODUCT, 3).write_zip(&env.path("1.zip"));
    let run = env.publish(PRODUCT, &env.path("1.zip"));
    let id = run["run_id"].as_str().unwrap();
    let end = &id[id.len() - 6..];
    for form in [end.to_owned(), format!("{}…{end}", &id[..4]), id[..30].to_owned()] {
        assert_eq!(env.json(["runs", "show", &form])["run"]["run_id"], id, "{form}");
    }
    env.jobctl(["runs", "show", "zzzz"]).exits(2).says(&["zzzz"]);
}

#[test]
fn a_damaged_edition_has_findings_and_exit_code_6() {
    let env = Env::with_catalog();
    Table::new(PRODUCT, 3).write_zip(&env.path("1.zip"));
    let run = env.publish(PRODUCT, &env.path("1.zip"));
    let edition = run["output"]["edition_id"].as_str().unwrap();
    let store = env.path(&format!("catalog/products/{PRODUCT}/{edition}/metadata.duckdb"));
    let mut bytes = std::fs::read(&store).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&store, bytes).unwrap();
    env.jobctl(["edition", "check", edition]).exits(6).says(&["files", "metadata.duckdb"]);
    std::fs::write(env.path(&format!("catalog/products/{PRODUCT}/{edition}/stray.txt")), "x").unwrap();
    env.jobctl(["edition", "check", edition, "--at", "open"]).exits(6).says(&["stray.txt"]);
}

#[test]
fn a_copy_is_complete_and_checks() {
    let env = Env::with_catalog();
    Table::new(PRODUCT, 3).write_zip(&env.path("1.zip"));
    let run = env.publish(PRODUCT, &env.path("1.zip"));
    let edition = run["output"]["edition_id"].as_str().unwrap();
    let signature = env.path(&format!("catalog/products/{PRODUCT}/{edition}/manifest.json.sig"));
    std::fs::write(signature, "a signature").unwrap();
    let to = format!("mirror/{edition}");
    env.jobctl(["edition", "copy", edition, &to]).exits(0);
    assert_eq!(std::fs::read_to_string(env.path(&format!("{to}/manifest.json.sig"))).unwrap(), "a signature");
    env.jobctl(["edition", "check", &to]).exits(0);
    env.jobctl(["edition", "copy", edition, &to]).exits(0);
}

#[test]
fn a_missing_extension_gives_one_sentence_and_the_command() {
    let env = Env::with_catalog();
    Table::new(PRODUCT, 3).write_zip(&env.path("1.zip"));
    std::fs::create_dir(env.path("nothing")).unwrap();
    let output = env
        .command(["run", "publish", "--product", PRODUCT, "--source", "1.zip"])
        .env("JOBCTL_DUCKDB_EXTENSIONS", env.path("nothing"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(0));
    assert!(said.contains("ducklake") && said.contains("make setup"), "{said}");
}

#[test]
fn completions_and_the_manual_are_printed() {
    let env = Env::empty();
    env.jobctl(["completions", "bash"]).exits(0).says(&["jobctl"]);
    env.jobctl(["man"]).exits(0).says(&[".TH"]);
    env.jobctl(["--help"]).exits(0).says(&["publish", "Exit codes"]);
    env.jobctl(["inventory", "show", "--catalog", "nowhere"]).exits(3).says(&["nowhere"]);
}
