//! `jobctl.toml`: what it may hold, where it is looked for, and how its paths are read.

mod error;
mod schedules;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};

use catalog_rules::contracts::publish::SourceInput;
use catalog_rules::ids::ProductId;
use catalog_rules::inventory::Retention as Windows;
use catalog_rules::layout;
use engine::{ScheduleDef, find_time_zone};
use jiff::tz::TimeZone;
use serde::Deserialize;

pub use error::ConfigError;

/// The name of the configuration file.
pub const FILE_NAME: &str = "jobctl.toml";

/// What DuckDB may be given, in MiB: below it no table can be built, above it lies no machine.
const MEMORY_LIMIT_MB: RangeInclusive<u32> = 128..=16 << 20;
/// How many threads DuckDB may be given: it starts them all at once.
const THREADS: RangeInclusive<u32> = 1..=1024;

/// How long runs may be kept, in days: a day at least, so that a slip never empties the history, and no longer than a
/// century.
const RETENTION_DAYS: RangeInclusive<u32> = 1..=36_500;
/// The windows that can be meant, in days. Which of them may be shorter than which is told by a release.
const WINDOW_DAYS: RangeInclusive<u32> = 0..=36_500;
/// How long runs that succeeded or were cancelled are kept where nothing else is said.
const FINISHED_RUNS_DAYS: u32 = 90;
/// And runs that failed, unless the others are kept longer: they are what a person looks for.
const FAILED_RUNS_DAYS: u32 = 365;

/// The configuration as it is written. Relative paths are relative to the folder of the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    catalog: CatalogSection,
    #[serde(default)]
    state: StateSection,
    #[serde(default)]
    duckdb: DuckDbSection,
    #[serde(default)]
    retention: RetentionSection,
    #[serde(default)]
    sources: BTreeMap<String, SourceSection>,
    #[serde(default)]
    schedules: BTreeMap<String, schedules::ScheduleSection>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogSection {
    url: Option<String>,
    time_zone: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateSection {
    path: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DuckDbSection {
    memory_limit_mb: Option<u32>,
    threads: Option<u32>,
    extension_directory: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RetentionSection {
    finished_runs_days: Option<u32>,
    failed_runs_days: Option<u32>,
    backup_days: Option<u32>,
    gc_days: Option<u32>,
    tombstone_days: Option<u32>,
    version_days: Option<u32>,
    keep_roots: Option<u64>,
    retire_days: Option<u32>,
    results_grace_days: Option<u32>,
    poll_and_fetch_s: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceSection {
    kind: SourceKind,
    files: Vec<PathBuf>,
    #[serde(default)]
    metadata: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SourceKind {
    Codr,
}

/// The configuration as the commands use it: every path absolute.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file that it was read from, if there is one.
    pub file: Option<PathBuf>,
    /// The catalog's folder.
    pub catalog: PathBuf,
    /// The folder of the state database.
    pub state: PathBuf,
    /// How much memory DuckDB's buffers may take, in MiB.
    pub duckdb_memory_limit_mb: Option<u32>,
    /// How many threads a query of DuckDB may use.
    pub duckdb_threads: Option<u32>,
    /// Where DuckDB's extensions are.
    pub duckdb_extensions: Option<PathBuf>,
    /// The time zone of the local times of releases; this machine's unless the file says otherwise.
    pub time_zone: TimeZone,
    /// How long finished runs are kept.
    pub retention: Retention,
    /// The windows of the catalog (*catalog* §11.6).
    pub windows: Windows,
    /// The sources by product.
    pub sources: BTreeMap<ProductId, SourceInput>,
    /// The schedules, by name.
    pub schedules: Vec<ScheduleDef>,
}

/// How long finished runs are kept, in days after their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Those that succeeded or were cancelled.
    pub finished_runs_days: u32,
    /// Those that failed.
    pub failed_runs_days: u32,
}

/// What the command line says instead of the file.
#[derive(Debug, Default)]
pub struct Overrides {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--catalog`.
    pub catalog: Option<String>,
    /// `--state`.
    pub state: Option<PathBuf>,
}

impl Config {
    /// Reads the configuration: the file named on the command line, else `jobctl.toml` in the working folder, else
    /// none. What the command line says wins over the file.
    ///
    /// # Errors
    /// [`ConfigError`], naming the file and the key.
    pub fn load(overrides: &Overrides, working_folder: &Path) -> Result<Self, ConfigError> {
        let named = overrides.config.as_ref().map(|path| working_folder.join(path));
        let default = working_folder.join(FILE_NAME);
        let file = named.or_else(|| default.exists().then_some(default));
        let written = match &file {
            Some(path) => read(path)?,
            None => Written::default(),
        };
        let base = file.as_deref().and_then(Path::parent).unwrap_or(working_folder).to_owned();
        let origin = file.as_deref().unwrap_or(Path::new(FILE_NAME)).display().to_string();
        let blank = |key: String| ConfigError::BadSetting {
            origin: origin.clone(),
            key,
            found: "blank".to_owned(),
            expected: "a path",
        };
        let catalog = match (&overrides.catalog, &written.catalog.url) {
            (Some(url), _) => local_folder(url, "the command line", "--catalog", working_folder)?,
            (None, Some(url)) => local_folder(url, &origin, "catalog.url", &base)?,
            (None, None) => base.join("catalog"),
        };
        let state = match (&overrides.state, &written.state.path) {
            (Some(path), _) => working_folder.join(path),
            (None, Some(path)) if is_blank(path) => return Err(blank("state.path".to_owned())),
            (None, Some(path)) => base.join(path),
            (None, None) => base.join("state"),
        };
        for (what, path) in [("the catalog", &catalog), ("the state database", &state)] {
            if path.exists() && !path.is_dir() {
                return Err(ConfigError::NotAFolder { what, path: path.clone() });
            }
        }
        // A catalog may be the working folder itself, with the state in a folder of its own beside the catalog's.
        let own = [layout::PRODUCTS, layout::INVENTORY].map(|folder| catalog.join(folder));
        if same_place(&state, &catalog) || own.iter().any(|folder| plain(&state).starts_with(plain(folder))) {
            return Err(ConfigError::StateInCatalog { state, catalog });
        }
        let within = |key: &str, value: Option<u32>, range: RangeInclusive<u32>, expected: &'static str| match value {
            Some(found) if !range.contains(&found) => Err(ConfigError::BadSetting {
                origin: origin.clone(),
                key: key.to_owned(),
                found: found.to_string(),
                expected,
            }),
            other => Ok(other),
        };
        let memory = written.duckdb.memory_limit_mb;
        let memory = within("duckdb.memory_limit_mb", memory, MEMORY_LIMIT_MB, "128 to 16777216 MiB")?;
        let threads = within("duckdb.threads", written.duckdb.threads, THREADS, "1 to 1024")?;
        let days = |key, value| within(key, value, RETENTION_DAYS, "1 to 36500 days");
        let finished = days("retention.finished_runs_days", written.retention.finished_runs_days)?;
        let finished_runs_days = finished.unwrap_or(FINISHED_RUNS_DAYS);
        let failed = days("retention.failed_runs_days", written.retention.failed_runs_days)?;
        let failed_runs_days = failed.unwrap_or(FAILED_RUNS_DAYS.max(finished_runs_days));
        let windows = windows(&written.retention, |key, value| within(key, value, WINDOW_DAYS, "0 to 36500 days"))?;
        let time_zone = match &written.catalog.time_zone {
            Some(name) => find_time_zone(name).map_err(|source| ConfigError::BadSchedule {
                origin: origin.clone(),
                key: "catalog.time_zone".to_owned(),
                source: Box::new(source),
            })?,
            None => TimeZone::system(),
        };
        let mut sources = BTreeMap::new();
        for (name, section) in written.sources {
            let product_id: ProductId = name.parse().map_err(|source| ConfigError::BadProduct {
                path: file.clone().unwrap_or_default(),
                found: name.clone(),
                source,
            })?;
            let SourceKind::Codr = section.kind;
            for (key, paths) in [("files", &section.files), ("metadata", &section.metadata)] {
                if paths.iter().any(|path| is_blank(path)) {
                    return Err(blank(format!("a path in sources.{product_id}.{key}")));
                }
            }
            if !(1..=2).contains(&section.files.len()) {
                return Err(ConfigError::BadSetting {
                    origin,
                    key: format!("sources.{product_id}.files"),
                    found: format!("a list of {}", section.files.len()),
                    expected: "one path, or two of which one is French",
                });
            }
            let text = |path: &PathBuf| base.join(path).display().to_string();
            let input = SourceInput::Codr {
                files: section.files.iter().map(text).collect(),
                metadata: section.metadata.iter().map(text).collect(),
            };
            sources.insert(product_id, input);
        }
        let schedules = schedules::read(written.schedules, &sources, &time_zone, &base, &origin)?;
        Ok(Self {
            schedules,
            file,
            catalog,
            state,
            duckdb_memory_limit_mb: memory,
            duckdb_threads: threads,
            duckdb_extensions: written.duckdb.extension_directory.map(|path| base.join(path)),
            time_zone,
            retention: Retention { finished_runs_days, failed_runs_days },
            windows,
            sources,
        })
    }
}

/// The catalog's windows, each as it is written or as it is by default; `days` refuses what cannot be meant.
fn windows(
    written: &RetentionSection,
    days: impl Fn(&str, Option<u32>) -> Result<Option<u32>, ConfigError>,
) -> Result<Windows, ConfigError> {
    let plain = Windows::default();
    Ok(Windows {
        backup_days: days("retention.backup_days", written.backup_days)?.unwrap_or(plain.backup_days),
        gc_days: days("retention.gc_days", written.gc_days)?.unwrap_or(plain.gc_days),
        tombstone_days: days("retention.tombstone_days", written.tombstone_days)?.unwrap_or(plain.tombstone_days),
        version_days: days("retention.version_days", written.version_days)?.unwrap_or(plain.version_days),
        keep_roots: written.keep_roots.unwrap_or(plain.keep_roots),
        retire_days: days("retention.retire_days", written.retire_days)?.unwrap_or(plain.retire_days),
        results_grace_days: days("retention.results_grace_days", written.results_grace_days)?
            .unwrap_or(plain.results_grace_days),
        poll_and_fetch_s: written.poll_and_fetch_s.unwrap_or(plain.poll_and_fetch_s),
    })
}

fn read(path: &Path) -> Result<Written, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    toml::from_str(&text).map_err(|source| ConfigError::Invalid { path: path.to_owned(), source: Box::new(source) })
}

fn is_blank(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.trim().is_empty())
}

/// `path` with `.` and `..` taken out of its text, so that two spellings of one place compare as equal.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

fn same_place(one: &Path, two: &Path) -> bool {
    plain(one) == plain(two)
}

/// The folder that `url` names: a path relative to `base`, or a `file://` URL.
fn local_folder(url: &str, origin: &str, key: &str, base: &Path) -> Result<PathBuf, ConfigError> {
    let bad = |expected| ConfigError::BadSetting {
        origin: origin.to_owned(),
        key: key.to_owned(),
        found: format!("{url:?}"),
        expected,
    };
    if url.trim().is_empty() {
        return Err(bad("a folder, or a file:// URL"));
    }
    if let Some(rest) = url.strip_prefix("file://") {
        let path = rest.strip_prefix("localhost").unwrap_or(rest);
        if !path.starts_with('/') {
            return Err(bad("a URL of this machine with an absolute path, such as file:///srv/catalog"));
        }
        return percent_decoded(path)
            .map(PathBuf::from)
            .ok_or_else(|| bad("two hexadecimal digits after each %, and UTF-8"));
    }
    match url.split_once("://") {
        Some(_) => Err(ConfigError::UnknownScheme { url: url.to_owned() }),
        None => Ok(base.join(url)),
    }
}

/// `text` with each `%` and its two hexadecimal digits made the byte that they stand for.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(more.get(..2)?).ok().filter(|text| !text.starts_with('+'))?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &more[2..];
        } else {
            bytes.push(*first);
            rest = more;
        }
    }
    String::from_utf8(bytes).ok()
}

/// The configuration that `jobctl init` writes.
#[must_use]
pub fn template(catalog: &str, state: &str) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let (catalog, state) = (quoted(catalog), quoted(state));
    format!(
        r#"# jobctl's configuration. Relative paths are relative to this file. An unknown key is an error.

[catalog]
# The catalog's folder.
url = {catalog}
# The time zone of the local times of releases; this machine's if it is left out.
# time_zone = "America/Toronto"

[state]
# Where the runs are kept: a SQLite database on a local disk, for this machine only.
path = {state}

# [duckdb]
# memory_limit_mb = 1000
# threads = 2

# [retention]
# How long finished runs are kept, in days after their end: those that succeeded or were cancelled, and those that failed.
# finished_runs_days = 90
# failed_runs_days = 365
# The catalog's windows, in days unless the name says otherwise: backup_days <= gc_days <= tombstone_days, and version_days
# >= gc_days + 1. A release warns where that does not hold.
# backup_days = 35          # how long a backup is kept
# gc_days = 35              # how long the files of a retired edition stay
# tombstone_days = 90       # how long a retired edition is told from one that was never recorded
# version_days = 36         # how long an Inventory version stays
# keep_roots = 10           # how many of the newest versions always stay
# retire_days = 30          # how long an edition is superseded or withdrawn before it may be retired
# results_grace_days = 30   # how long a result that no live edition needs stays
# poll_and_fetch_s = 300    # the longest time from a reader's poll to the end of its next fetch

# One table a product. `files` holds a full-table zip, a CSV, or a folder with both CSVs; one, or one a language.
# [sources.14100287]
# kind = "codr"
# files = ["14100287-eng.zip", "14100287-fra.zip"]
# metadata = ["14100287_MetaData.csv"]   # only where it stands elsewhere than beside the data

# One table a schedule. `jobctl schedules next` shows when they fire, and `jobctl serve` fires them.
# [schedules.daily-14100287]
# run = "publish --product 14100287"   # the words after `jobctl run`; --wait queues instead of letting the tick pass
# cron = "30 8 * * MON-FRI"            # minute, hour, day of the month, month, day of the week
# time_zone = "America/Toronto"
# misfire = "run-once"                 # for ticks that were missed: run-once (one run for all), skip or run-all
# catch_up_minutes = 1440              # a missed tick that is older starts nothing
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Config, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE_NAME), text).unwrap();
        Config::load(&Overrides::default(), dir.path())
    }

    #[test]
    fn the_template_is_a_configuration() {
        let config = load(&template("catalog", "state")).unwrap();
        assert!(config.catalog.ends_with("catalog") && config.state.ends_with("state"));
    }

    #[test]
    fn the_template_holds_any_path() {
        for name in ["with space", "a\"b'c", "é\u{301}", "back\\slash", "new\nline", "\u{7f}"] {
            let config = load(&template(name, &format!("state of {name}"))).unwrap();
            assert!(config.catalog.ends_with(name), "{name:?}: {config:?}");
            assert!(config.state.ends_with(format!("state of {name}")), "{name:?}: {config:?}");
        }
    }

    #[test]
    fn a_value_that_cannot_be_meant_is_refused_with_its_key() {
        for (text, key) in [
            ("[catalog]\nurl=''\n", "catalog.url"),
            ("[catalog]\nurl='file://catalog'\n", "catalog.url"),
            ("[catalog]\nurl='file:///a%2'\n", "catalog.url"),
            ("[catalog]\nurl='jobctl.toml'\n", "catalog"),
            ("[state]\npath=''\n", "state.path"),
            ("[state]\npath='jobctl.toml'\n", "state"),
            ("[state]\npath='./catalog/'\n", "state"),
            ("[state]\npath='x/../catalog/products/1'\n", "state"),
            ("[state]\npath='catalog/inventory'\n", "state"),
            ("[sources.1]\nkind='codr'\nfiles=['']\n", "sources.1.files"),
            ("[sources.1]\nkind='codr'\nfiles=[]\n", "sources.1.files"),
            ("[sources.1]\nkind='codr'\nfiles=['a','b','c']\n", "sources.1.files"),
            ("[sources.1]\nkind='codr'\nfiles=['a']\nmetadata=[' ']\n", "sources.1.metadata"),
            ("[duckdb]\nmemory_limit_mb=0\n", "duckdb.memory_limit_mb"),
            ("[duckdb]\nmemory_limit_mb=127\n", "duckdb.memory_limit_mb"),
            ("[duckdb]\nmemory_limit_mb=4294967295\n", "duckdb.memory_limit_mb"),
            ("[duckdb]\nthreads=0\n", "duckdb.threads"),
            ("[duckdb]\nthreads=1000000\n", "duckdb.threads"),
            ("[retention]\nfinished_runs_days=0\n", "retention.finished_runs_days"),
            ("[retention]\nfailed_runs_days=36501\n", "retention.failed_runs_days"),
            ("[retention]\ngc_days=36501\n", "retention.gc_days"),
            ("[retention]\nretire_days=99999\n", "retention.retire_days"),
        ] {
            let error = load(text).unwrap_err();
            let message = error.to_string();
            assert!(message.contains(key) && message.contains("expected"), "{text}: {message}");
            assert!(!error.hint().is_empty());
        }
        load("[catalog]\nurl='.'\n[duckdb]\nmemory_limit_mb=128\nthreads=1\n").unwrap();
    }

    #[test]
    fn runs_are_kept_as_long_as_the_file_says_and_failed_ones_no_shorter_unless_it_says_so() {
        for (text, finished_runs_days, failed_runs_days) in [
            ("", 90, 365),
            ("[retention]\nfinished_runs_days=7\n", 7, 365),
            ("[retention]\nfinished_runs_days=1000\n", 1_000, 1_000),
            ("[retention]\nfinished_runs_days=30\nfailed_runs_days=10\n", 30, 10),
        ] {
            assert_eq!(load(text).unwrap().retention, Retention { finished_runs_days, failed_runs_days }, "{text}");
        }
    }

    #[test]
    fn the_windows_are_those_of_the_file_and_else_the_defaults() {
        let windows = |text: &str| load(text).unwrap().windows;
        assert_eq!(windows(""), Windows::default());
        let found = windows("[retention]\nretire_days=0\ngc_days=20\nkeep_roots=3\nfinished_runs_days=7\n");
        assert_eq!(found, Windows { retire_days: 0, gc_days: 20, keep_roots: 3, ..Windows::default() });
        // The template tells the defaults.
        let text = template("catalog", "state");
        let (_, told) = text.split_once("# backup_days").unwrap();
        let (told, _) = told.split_once("\n\n").unwrap();
        let told = format!("[retention]\nbackup_days{}", told.replace("\n# ", "\n"));
        assert_eq!(windows(&told), Windows::default());
        let zone = load("[catalog]\ntime_zone='America/Toronto'\n").unwrap().time_zone;
        assert_eq!(zone.iana_name(), Some("America/Toronto"));
        let error = load("[catalog]\ntime_zone='Toronto'\n").unwrap_err();
        assert!(error.to_string().contains("catalog.time_zone") && error.to_string().contains("Toronto"), "{error}");
    }

    #[test]
    fn a_file_url_names_a_folder_of_this_machine() {
        for (url, path) in [
            ("file:///srv/my%20catalog", "/srv/my catalog"),
            ("file://localhost/srv/c", "/srv/c"),
            ("file:///srv/%C3%A9", "/srv/é"),
        ] {
            let config = load(&format!("[catalog]\nurl='{url}'\n")).unwrap();
            assert_eq!(config.catalog, Path::new(path), "{url}");
        }
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_it_and_its_line() {
        for (text, key, line) in [
            ("[catalog]\nurl = 'x'\nurll = 'y'\n", "urll", "line 3"),
            ("[schedule]\n", "schedule", "line 1"),
            ("[sources.1]\nkind = 'codr'\nfiles = ['a']\nfile = 'x'\n", "file", "line 4"),
        ] {
            let message = load(text).unwrap_err().to_string();
            assert!(message.contains(key) && message.contains(line), "{message}");
        }
    }

    #[test]
    fn paths_are_relative_to_the_file_and_the_command_line_wins() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("conf");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(inner.join("a.toml"), "[catalog]\nurl='c'\n[sources.1]\nkind='codr'\nfiles=['x.zip']\n")
            .unwrap();
        let overrides = Overrides { config: Some("conf/a.toml".into()), state: Some("s".into()), catalog: None };
        let config = Config::load(&overrides, dir.path()).unwrap();
        assert_eq!(config.catalog, inner.join("c"));
        assert_eq!(config.state, dir.path().join("s"));
        let SourceInput::Codr { files, .. } = config.sources.values().next().unwrap();
        assert_eq!(files[0], inner.join("x.zip").display().to_string());
    }

    #[test]
    fn a_product_that_leaves_its_folder_and_a_remote_catalog_are_refused() {
        assert!(load("[sources.'../x']\nkind='codr'\nfiles=['x']\n").unwrap_err().to_string().contains("../x"));
        assert!(load("[catalog]\nurl='s3://bucket'\n").unwrap_err().to_string().contains("s3://bucket"));
    }
}
