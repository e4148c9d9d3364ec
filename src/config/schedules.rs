//! `[schedules.<name>]`: what runs, when, and what becomes of ticks that were missed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use catalog_rules::contracts::publish::SourceInput;
use catalog_rules::ids::ProductId;
use clap::Parser as _;
use engine::{ScheduleDef, find_time_zone};
use engine_rules::limits::NAME_LIMIT_BYTES;
use engine_rules::schedule::{CronExpression, Misfire};
use jiff::tz::TimeZone;
use serde::Deserialize;

use super::ConfigError;
use crate::args::RunWords;
use crate::exit::Ended;
use crate::start::{Origin, start_run};

/// The catch-up window unless the table says otherwise, in minutes: a day.
const CATCH_UP_MINUTES: u32 = 24 * 60;
/// The catch-up windows that can be meant, in minutes: up to a leap year.
const CATCH_UP_RANGE: RangeInclusive<u32> = 0..=366 * 24 * 60;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScheduleSection {
    run: String,
    cron: String,
    time_zone: String,
    misfire: Option<MisfireName>,
    catch_up_minutes: Option<u32>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum MisfireName {
    RunOnce,
    Skip,
    RunAll,
}

/// The schedules of the file, each refused where it could never do what it says. Relative paths in `run` are relative to
/// `folder`.
pub(super) fn read(
    sections: BTreeMap<String, ScheduleSection>,
    sources: &BTreeMap<ProductId, SourceInput>,
    zone: &TimeZone,
    folder: &Path,
    origin: &str,
) -> Result<Vec<ScheduleDef>, ConfigError> {
    let asks = Asks { sources, zone, folder };
    sections.into_iter().map(|(name, section)| schedule(&name, section, &asks, origin)).collect()
}

/// What the words of a schedule are read with.
struct Asks<'a> {
    sources: &'a BTreeMap<ProductId, SourceInput>,
    zone: &'a TimeZone,
    folder: &'a Path,
}

fn schedule(name: &str, section: ScheduleSection, asks: &Asks<'_>, origin: &str) -> Result<ScheduleDef, ConfigError> {
    let bad = |key: String, found: String, expected: &'static str| ConfigError::BadSetting {
        origin: origin.to_owned(),
        key,
        found,
        expected,
    };
    if name.trim().is_empty() || name.len() > NAME_LIMIT_BYTES || name.chars().any(char::is_control) {
        return Err(bad(
            "the name of a schedule".to_owned(),
            format!("{name:?}"),
            "1 to 200 bytes of text on one line",
        ));
    }
    let key = |setting: &str| format!("schedules.{name}.{setting}");
    let cron: CronExpression = section.cron.parse().map_err(|source| ConfigError::BadCron {
        origin: origin.to_owned(),
        key: key("cron"),
        source: Box::new(source),
    })?;
    find_time_zone(&section.time_zone).map_err(|source| ConfigError::BadSchedule {
        origin: origin.to_owned(),
        key: key("time_zone"),
        source: Box::new(source),
    })?;
    let catch_up_minutes = section.catch_up_minutes.unwrap_or(CATCH_UP_MINUTES);
    if !CATCH_UP_RANGE.contains(&catch_up_minutes) {
        return Err(bad(
            key("catch_up_minutes"),
            catch_up_minutes.to_string(),
            "0 to 527040 minutes, which are 366 days",
        ));
    }
    let run = run(name, &section.run, asks).map_err(|ended| ConfigError::BadRun {
        origin: origin.to_owned(),
        key: key("run"),
        words: section.run.clone(),
        failure: Box::new(ended.failure),
    })?;
    Ok(ScheduleDef {
        name: name.to_owned(),
        workflow: run.workflow,
        input: run.input,
        cron: cron.to_string(),
        time_zone: section.time_zone,
        misfire: match section.misfire {
            None | Some(MisfireName::RunOnce) => Misfire::RunOnce,
            Some(MisfireName::Skip) => Misfire::Skip,
            Some(MisfireName::RunAll) => Misfire::RunAll,
        },
        catch_up_ms: i64::from(catch_up_minutes) * 60_000,
        concurrency_key: run.concurrency_key,
        key_policy: run.key_policy,
        labels: run.labels,
    })
}

/// What the words after `jobctl run` ask for. Who asks is the schedule, whoever reads the file: the same file is the same
/// schedule.
fn run(name: &str, words: &str, asks: &Asks<'_>) -> Result<engine::StartRun, Ended> {
    let words =
        shlex::split(words).ok_or_else(|| Ended::usage("a quote is not closed; expected words as in a shell"))?;
    let parsed = RunWords::try_parse_from(words)?;
    let Asks { sources, zone, folder } = *asks;
    let origin =
        Origin { sources, zone, folder, actor: format!("schedule:{name}"), reason: format!("schedule {name}") };
    start_run(&parsed.run, &origin)
}

#[cfg(test)]
mod tests {
    use engine::KeyPolicy;
    use serde_json::json;

    use super::super::{Config, FILE_NAME, Overrides};
    use super::*;

    fn load_in(folder: &Path, schedule: &str) -> Result<Config, ConfigError> {
        let text = format!("[sources.1]\nkind='codr'\nfiles=['a.zip']\n[schedules.daily]\n{schedule}");
        std::fs::write(folder.join(FILE_NAME), text).unwrap();
        Config::load(&Overrides::default(), folder)
    }

    fn load(schedule: &str) -> Result<Config, ConfigError> {
        load_in(tempfile::tempdir().unwrap().path(), schedule)
    }

    const GOOD: &str = "run='publish --product 1'\ncron='30 8 * * *'\ntime_zone='America/Toronto'\n";

    #[test]
    fn a_schedule_is_the_run_that_its_words_ask_for() {
        let dir = tempfile::tempdir().unwrap();
        let config = load_in(dir.path(), GOOD).unwrap();
        let [daily] = config.schedules.as_slice() else { panic!("{config:?}") };
        assert_eq!((daily.misfire, daily.catch_up_ms), (Misfire::RunOnce, 24 * 60 * 60 * 1000));
        assert_eq!((daily.concurrency_key.as_deref(), daily.key_policy), (Some("publish:1"), KeyPolicy::Forbid));
        assert_eq!(daily.labels["product"], "1");
        assert_eq!(daily.input["source"]["files"], json!([dir.path().join("a.zip").display().to_string()]));
        assert_eq!(daily.input["cause"], json!({"actor": "schedule:daily", "reason": "schedule daily"}));

        let config = load_in(
            dir.path(),
            "run='''publish --product 1 --source \"in/my file.zip\" --final --wait --reason 'the daily release' '''\n\
             cron='@hourly'\ntime_zone='UTC'\nmisfire='run-all'\ncatch_up_minutes=0\n",
        )
        .unwrap();
        let [daily] = config.schedules.as_slice() else { panic!("{config:?}") };
        assert_eq!((daily.misfire, daily.catch_up_ms, daily.key_policy), (Misfire::RunAll, 0, KeyPolicy::Queue));
        assert_eq!(daily.input["source"]["files"], json!([dir.path().join("in/my file.zip").display().to_string()]));
        assert_eq!(daily.input["cause"]["reason"], "the daily release");
        assert_eq!(daily.input["lifecycle"], "final");
        assert_eq!(load_in(dir.path(), GOOD).unwrap().schedules, load_in(dir.path(), GOOD).unwrap().schedules);
    }

    #[test]
    fn an_operation_is_scheduled_like_a_publish() {
        const NAMED: &str = "--product 1 --edition 01a18e76-2bad-7480-abfe-2ba8a6889a45";
        let cause = json!({"actor": "schedule:daily", "reason": "schedule daily"});
        for (words, workflow, key, input) in [
            ("release".to_owned(), "release", Some("release"), json!({})),
            ("release --product 1".to_owned(), "release", Some("release"), json!({"products": ["1"]})),
            ("retire".to_owned(), "retire", None, json!({})),
            ("rollback --product 1".to_owned(), "rollback", Some("take-back:1"), json!({"products": ["1"]})),
            ("withdraw --product 1 --live".to_owned(), "withdraw", Some("take-back:1"), json!({"product_id": "1"})),
            (
                format!("reschedule {NAMED} --release-at 2026-12-04T08:30"),
                "reschedule",
                None,
                json!({
                    "product_id": "1",
                    "edition_id": "01a18e76-2bad-7480-abfe-2ba8a6889a45",
                    "release_at": "2026-12-04T13:30:00.000000Z",
                }),
            ),
            ("embargo off".to_owned(), "embargo", None, json!({"on": false})),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let text = format!(
                "[catalog]\ntime_zone='America/Toronto'\n[schedules.daily]\n{}",
                GOOD.replace("publish --product 1", &words)
            );
            std::fs::write(dir.path().join(FILE_NAME), text).unwrap();
            let config =
                Config::load(&Overrides::default(), dir.path()).unwrap_or_else(|error| panic!("{words}: {error}"));
            let [daily] = config.schedules.as_slice() else { panic!("{config:?}") };
            assert_eq!((daily.workflow.as_str(), daily.concurrency_key.as_deref()), (workflow, key), "{words}");
            assert_eq!(daily.key_policy, KeyPolicy::Forbid, "{words}");
            assert_eq!(daily.labels.contains_key("product"), words.contains("--product"), "{words}");
            let mut expected = input;
            expected["cause"] = cause.clone();
            assert_eq!(daily.input, expected, "{words}");
        }
        for (words, word) in [
            ("release --dry-run", "starts no run"),
            ("release --edition x", "--product"),
            ("release --product 1 --edition 5ed2", "5ed2"),
            ("rollback", "--product"),
            ("withdraw --product 1", "--live"),
            ("correct --to 0", "--to"),
        ] {
            let error = load(&GOOD.replace("publish --product 1", words)).expect_err(words).to_string();
            assert!(error.contains(word) && error.contains("schedules.daily.run"), "{words}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_is_refused_with_the_schedule_the_key_and_the_fix() {
        for (from, to, words, hint) in [
            ("30 8 * * *", "30 8 * * 1-5", vec!["schedules.daily.cron", "1-5"], "MON-FRI"),
            ("30 8 * * *", "0 8 31 2 *", vec!["schedules.daily.cron", "never matches"], "correct"),
            ("30 8 * * *", "0 30 8 * * *", vec!["schedules.daily.cron", "6 fields"], "30 8 * * *"),
            ("America/Toronto", "Toronto", vec!["schedules.daily.time_zone", "\"Toronto\""], "zone"),
            ("--product 1", "--produkt 1", vec!["schedules.daily.run", "--produkt"], "publish --product"),
            ("--product 1", "", vec!["schedules.daily.run", "--product"], "publish --product"),
            ("--product 1", "--product 2", vec!["schedules.daily.run", "product 2 has no source"], "publish"),
            ("--product 1", "--product ../1", vec!["schedules.daily.run", "../1"], "publish"),
            ("--product 1", "--product 1 --json", vec!["schedules.daily.run", "--json"], "publish"),
            ("--product 1", "--product 1 --help", vec!["schedules.daily.run", "--help"], "publish"),
            ("--product 1", "--product 1 --source \"\"", vec!["schedules.daily.run", "--source"], "publish"),
            ("--product 1", "--product \"1", vec!["schedules.daily.run", "a quote is not closed"], "publish"),
            ("publish", "publsh", vec!["schedules.daily.run", "publsh"], "publish --product"),
            ("publish", "jobctl run publish", vec!["schedules.daily.run", "jobctl"], "follow `jobctl run`"),
            ("publish --product 1", "", vec!["schedules.daily.run"], "publish --product"),
        ] {
            assert!(GOOD.contains(from));
            let error = load(&GOOD.replace(from, to)).expect_err(to);
            for word in words {
                assert!(error.to_string().contains(word), "{to}: {error}");
            }
            assert!(error.hint().contains(hint), "{to}: {}", error.hint());
        }
        for (more, words) in [
            ("misfire='runonce'", vec!["line 8", "runonce", "run-once", "skip", "run-all"]),
            ("catch_up_minutes=-1", vec!["line 8"]),
            ("catch_up_minutes=600000", vec!["schedules.daily.catch_up_minutes", "600000", "527040"]),
            ("timezone='UTC'", vec!["line 8", "timezone", "time_zone"]),
        ] {
            let error = load(&format!("{GOOD}{more}\n")).expect_err(more).to_string();
            for word in words {
                assert!(error.contains(word), "{more}: {error}");
            }
        }
        for line in GOOD.lines() {
            let key = line.split('=').next().unwrap();
            let error = load(&GOOD.replace(line, "")).expect_err(key).to_string();
            assert!(error.contains(key), "{error}");
        }
        let error = load("").expect_err("nothing").to_string();
        assert!(error.contains("run"), "{error}");
    }

    #[test]
    fn a_name_that_a_table_cannot_show_is_refused() {
        for name in ["''", "' '", "\"a\\nb\""] {
            let dir = tempfile::tempdir().unwrap();
            let text = format!("[sources.1]\nkind='codr'\nfiles=['a.zip']\n[schedules.{name}]\n{GOOD}");
            std::fs::write(dir.path().join(FILE_NAME), text).unwrap();
            let error = Config::load(&Overrides::default(), dir.path()).expect_err(name).to_string();
            assert!(error.contains("the name of a schedule"), "{error}");
        }
    }

    #[test]
    fn the_templates_example_is_a_schedule() {
        let template = super::super::template("catalog", "state");
        let (_, example) = template.split_once("# [sources.14100287]").unwrap();
        let text: String = format!("# [sources.14100287]{example}")
            .lines()
            .filter(|line| !line.starts_with("# One table"))
            .map(|line| format!("{}\n", line.trim_start_matches("# ")))
            .collect();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE_NAME), &text).unwrap();
        let config = Config::load(&Overrides::default(), dir.path()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(config.schedules[0].name, "daily-14100287");
    }
}
