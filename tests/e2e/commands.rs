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
        (vec!["runs", "export", id], "jobctl.runs.export/1"),
        (vec!["runs", "purge", "--dry-run"], "jobctl.runs.purge/1"),
        (vec!["inventory", "show"], "jobctl.inventory.show/1"),
        (vec!["inventory", "log"], "jobctl.inventory.log/1"),
        (vec!["inventory", "diff"], "jobctl.inventory.diff/1"),
        (vec!["inventory", "products"], "jobctl.inventory.products/1"),
        (vec!["inventory", "product", PRODUCT], "jobctl.inventory.product/1"),
        (vec!["verify"], "jobctl.verify/1"),
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

/// Operations on the Inventory that are decided and have no command yet. Each leaves this list with its command.
const WITHOUT_COMMAND: [&str; 5] = ["drop-pending", "export", "opt-in-expiry", "prune", "restore"];

/// The words of `text` after a `jobctl`, as far as they are a command and its options; and whether more than the
/// command's name is told, so that a person may copy it.
fn suggestions(text: &str) -> Vec<(Vec<String>, bool)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("jobctl ") {
        let mut words: Vec<String> = Vec::new();
        let rest = &text[at + "jobctl ".len()..];
        for word in rest.split(' ').take(12) {
            let plain = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            if plain.starts_with("--") || (words.len() < 2 && is_name(plain)) {
                words.push(plain.to_owned());
            } else if words.len() < 2 {
                break;
            }
            // The end of a clause ends the command.
            if word.ends_with([';', ',', '.', ':', ')', '"', '`']) {
                break;
            }
        }
        let is_name_alone = rest.starts_with(&format!("{}\"", words.join(" ")));
        found.push((words, !is_name_alone));
    }
    found
}

/// Whether a word may be a command's name: lowercase words with hyphens between them.
fn is_name(word: &str) -> bool {
    !word.is_empty() && word.split('-').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase()))
}

#[test]
fn every_command_that_a_message_names_is_there_with_its_options() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<_> = ["src", "engine", "workflows", "activities"].map(|name| root.join(name)).into();
    let mut texts = vec![std::fs::read_to_string(root.join("README.md")).unwrap()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !["target", "tests", "benches"].contains(&name.as_str()) {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") && name != "tests.rs" {
                let text = std::fs::read_to_string(&path).unwrap();
                // A text that goes on in the next line of the source is one line.
                let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.starts_with("//")).collect();
                texts.push(lines.join("\n").replace("\\\n", ""));
            }
        }
    }
    let env = Env::empty();
    let mut helps: std::collections::BTreeMap<Vec<String>, String> = Default::default();
    for (words, is_told) in texts.iter().flat_map(|text| text.lines()).flat_map(suggestions) {
        let known = [
            "init",
            "run",
            "runs",
            "schedules",
            "inventory",
            "edition",
            "sdmx",
            "overlay",
            "serve",
            "verify",
            "completions",
            "man",
        ];
        // `jobctl that …` is a sentence and not a command.
        if !words.first().is_some_and(|word| known.contains(&word.as_str())) {
            continue;
        }
        if words[0] == "run" && words.get(1).is_some_and(|word| WITHOUT_COMMAND.contains(&word.as_str())) {
            continue;
        }
        let has_two =
            ["run", "runs", "schedules", "inventory", "edition", "sdmx", "overlay"].contains(&words[0].as_str());
        let split = words.iter().position(|word| word.starts_with("--")).unwrap_or(words.len());
        let command = words[..split.min(if has_two { 2 } else { 1 })].to_vec();
        let help = helps
            .entry(command.clone())
            .or_insert_with(|| env.jobctl(command.iter().map(String::as_str).chain(["--help"])).exits(0).stdout);
        for option in &words[split..] {
            assert!(help.contains(option.as_str()), "{words:?}: there is no {option}");
        }
        let usage = help.lines().find(|line| line.starts_with("Usage: ")).unwrap();
        let required = usage.split(' ').filter(|word| word.starts_with("--"));
        for option in required.filter(|_| is_told && !words.contains(&"--help".to_owned())) {
            assert!(words.iter().any(|word| word == option), "{words:?} needs {option}");
        }
    }
    let run = env.jobctl(["run", "--help"]).exits(0).stdout;
    let commands: Vec<_> = run.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    for name in commands {
        assert!(!WITHOUT_COMMAND.contains(&name), "{name} has its command now");
    }
    assert!(helps.len() >= 8, "{:?}", helps.keys());
}

#[test]
fn a_command_line_that_cannot_be_read_is_one_document_too() {
    let env = Env::empty();
    for args in [
        vec!["frob"],
        vec![],
        vec!["runs"],
        vec!["runs", "list", "-n", "0"],
        vec!["run", "publish"],
        vec!["run", "publish", "--product", "1", "--metadata", "x"],
        vec!["run", "publish", "--product", "1", "--source", ""],
        vec!["run", "publish", "--product", "1", "--source", "a", "--source", "b", "--source", "c"],
        vec!["--config", "", "inventory", "show"],
        vec!["--config", "nowhere.toml", "inventory", "show"],
        vec!["--catalog", "", "inventory", "show"],
        vec!["completions", "sh"],
    ] {
        let ran = env.jobctl(args.iter().copied().chain(["--json"])).exits(2);
        let document = ran.json();
        assert_eq!(document["schema"], "jobctl.error/1", "{args:?}");
        assert_eq!(document["exit_code"], 2, "{args:?}");
        let message = document["failure"]["message"].as_str().unwrap();
        assert!(!message.is_empty() && !message.starts_with("error"), "{args:?}: {message}");
        assert!(document["failure"]["hint"].is_string(), "{args:?}");
        assert_eq!(ran.stderr, "", "{args:?}");
    }
    for (args, schema) in [(["completions", "bash"].as_slice(), "jobctl.completions/1"), (&["man"], "jobctl.man/1")] {
        let document = env.jobctl(args.iter().copied().chain(["--json"])).exits(0).json();
        assert_eq!(document["schema"], schema);
        assert!(document["text"].as_str().unwrap().contains("jobctl"));
    }
}
