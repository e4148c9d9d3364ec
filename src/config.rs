//! `jobctl.toml`: what it may hold, where it is looked for, and how its paths are read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use catalog_rules::contracts::publish::SourceInput;
use catalog_rules::ids::ProductId;
use serde::Deserialize;

/// The name of the configuration file.
pub const FILE_NAME: &str = "jobctl.toml";

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
    sources: BTreeMap<String, SourceSection>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogSection {
    url: Option<String>,
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
#[derive(Debug)]
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
    /// The sources by product.
    pub sources: BTreeMap<ProductId, SourceInput>,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file that was named cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is not what it should be: the message names the key and the line.
    #[error("{}: {source}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What the parser found.
        source: Box<toml::de::Error>,
    },
    /// A table under `[sources]` is not named by a product.
    #[error("{}: [sources.{found}]: {source}", path.display())]
    BadProduct {
        /// The file.
        path: PathBuf,
        /// The name as it stands there.
        found: String,
        /// What a product id is.
        source: catalog_rules::ids::BadId,
    },
    /// The catalog is at a place that this version cannot reach.
    #[error(
        "the catalog is at {url}, and this version keeps catalogs in local folders only: name a folder, or a file:// URL"
    )]
    UnknownScheme {
        /// The place.
        url: String,
    },
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
        let catalog = match (&overrides.catalog, &written.catalog.url) {
            (Some(url), _) => local_folder(url, working_folder)?,
            (None, Some(url)) => local_folder(url, &base)?,
            (None, None) => base.join("catalog"),
        };
        let state = match (&overrides.state, &written.state.path) {
            (Some(path), _) => working_folder.join(path),
            (None, Some(path)) => base.join(path),
            (None, None) => base.join("state"),
        };
        let mut sources = BTreeMap::new();
        for (name, section) in written.sources {
            let product_id: ProductId = name.parse().map_err(|source| ConfigError::BadProduct {
                path: file.clone().unwrap_or_default(),
                found: name.clone(),
                source,
            })?;
            let SourceKind::Codr = section.kind;
            let text = |path: &PathBuf| base.join(path).display().to_string();
            let input = SourceInput::Codr {
                files: section.files.iter().map(text).collect(),
                metadata: section.metadata.iter().map(text).collect(),
            };
            sources.insert(product_id, input);
        }
        Ok(Self {
            file,
            catalog,
            state,
            duckdb_memory_limit_mb: written.duckdb.memory_limit_mb,
            duckdb_threads: written.duckdb.threads,
            duckdb_extensions: written.duckdb.extension_directory.map(|path| base.join(path)),
            sources,
        })
    }
}

fn read(path: &Path) -> Result<Written, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    toml::from_str(&text).map_err(|source| ConfigError::Invalid { path: path.to_owned(), source: Box::new(source) })
}

fn local_folder(url: &str, base: &Path) -> Result<PathBuf, ConfigError> {
    if let Some(path) = url.strip_prefix("file://") {
        return Ok(PathBuf::from(path));
    }
    match url.split_once("://") {
        Some(_) => Err(ConfigError::UnknownScheme { url: url.to_owned() }),
        None => Ok(base.join(url)),
    }
}

/// The configuration that `jobctl init` writes.
#[must_use]
pub fn template(catalog: &str) -> String {
    format!(
        r#"# jobctl's configuration. Relative paths are relative to this file. An unknown key is an error.

[catalog]
# The catalog's folder.
url = {catalog:?}

[state]
# Where the runs are kept: a SQLite database on a local disk, for this machine only.
path = "state"

# [duckdb]
# memory_limit_mb = 1000
# threads = 2

# One table a product. `files` holds a full-table zip, a CSV, or a folder with both CSVs; one, or one a language.
# [sources.14100287]
# kind = "codr"
# files = ["14100287-eng.zip", "14100287-fra.zip"]
# metadata = ["14100287_MetaData.csv"]   # only where it stands elsewhere than beside the data
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
        let config = load(&template("catalog")).unwrap();
        assert!(config.catalog.ends_with("catalog") && config.state.ends_with("state"));
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_it_and_its_line() {
        for (text, key, line) in [
            ("[catalog]\nurl = 'x'\nurll = 'y'\n", "urll", "line 3"),
            ("[schedule]\n", "schedule", "line 1"),
            ("[sources.1]\nkind = 'codr'\nfiles = []\nfile = 'x'\n", "file", "line 4"),
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
