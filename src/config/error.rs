//! Why a configuration cannot be used.

use std::path::PathBuf;

use engine::EngineError;
use engine_rules::failure::{ActivityError as _, Failure};
use engine_rules::schedule::CronFault;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file that was named cannot be read.
    #[error("the configuration {} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is not what it should be: the message names the key and the line.
    #[error("{}: {}", path.display(), source.to_string().trim_end())]
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
    /// A key has a value that cannot be meant.
    #[error("{origin}: {key} is {found}; expected {expected}")]
    BadSetting {
        /// The file, or the option of the command line.
        origin: String,
        /// The key.
        key: String,
        /// Its value.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A schedule has a cron expression that is refused.
    #[error("{origin}: {key}: {source}")]
    BadCron {
        /// The file.
        origin: String,
        /// The key.
        key: String,
        /// What was found, and what was expected.
        source: Box<CronFault>,
    },
    /// A time zone is none, or another setting of a schedule is refused.
    #[error("{origin}: {key}: {source}")]
    BadSchedule {
        /// The file.
        origin: String,
        /// The key.
        key: String,
        /// What was found, and what was expected.
        source: Box<EngineError>,
    },
    /// What a schedule runs is no run.
    #[error("{origin}: {key} is {words:?}: {}", failure.message)]
    BadRun {
        /// The file.
        origin: String,
        /// The key.
        key: String,
        /// The words as they stand there.
        words: String,
        /// What `jobctl run` says of them.
        failure: Box<Failure>,
    },
    /// A folder was expected where something else is.
    #[error("{} is not a folder; expected the folder of {what}", path.display())]
    NotAFolder {
        /// What the folder is for.
        what: &'static str,
        /// The place.
        path: PathBuf,
    },
    /// The state would lie among the catalog's own files.
    #[error(
        "the state database is at {}, among the files of the catalog {}; expected a folder of its own, since a catalog \
         is copied and the state belongs to this machine",
        state.display(),
        catalog.display()
    )]
    StateInCatalog {
        /// The folder of the state database.
        state: PathBuf,
        /// The catalog's folder.
        catalog: PathBuf,
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

impl ConfigError {
    /// What to do.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unreadable { .. } => {
                "name a file that this user may read with --config, or let jobctl init write one".to_owned()
            }
            Self::Invalid { path, .. } | Self::BadProduct { path, .. } => {
                format!("correct {}, or name another configuration with --config", path.display())
            }
            Self::BadSetting { origin, .. } => format!("correct it in {origin}"),
            Self::BadCron { origin, source, .. } => source.hint().unwrap_or_else(|| format!("correct it in {origin}")),
            Self::BadSchedule { origin, source, .. } => {
                source.hint().unwrap_or_else(|| format!("correct it in {origin}"))
            }
            Self::BadRun { .. } => "write the words that follow `jobctl run`, such as \
                                    \"publish --product 14100287\"; jobctl run publish --help names them"
                .to_owned(),
            Self::NotAFolder { what: "the catalog", .. } => {
                "name another place with --catalog, or with url under [catalog] in jobctl.toml".to_owned()
            }
            Self::NotAFolder { .. } | Self::StateInCatalog { .. } => {
                "name another place with --state, or with path under [state] in jobctl.toml".to_owned()
            }
            Self::UnknownScheme { .. } => {
                "name a folder with --catalog, or with url under [catalog] in jobctl.toml".to_owned()
            }
        }
    }
}
