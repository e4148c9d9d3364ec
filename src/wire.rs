//! Where names meet implementations: the only place that knows workflows, activities and the engine at once.

use std::sync::Arc;

use activities::duck::{DuckSettings, EXTENSIONS_VARIABLE};
use activities::fs::{Fs, RealFs};
use activities::publish::{self, PublishDeps};
use activities::store::{LocalStore, Store};
use catalog_rules::contracts::{edition as edition_contract, fold as fold_contract, publish as contract};
use engine::{Engine, EngineConfig, EngineContext, Registry, SystemClock};
use engine_rules::clock::Clock;
use engine_rules::failure::ActivityError;
use engine_rules::state::RunState;

use crate::cli::with_run;
use crate::config::Config;
use crate::exit::{Ended, Exit};

/// What the commands work with.
pub struct World {
    /// The configuration.
    pub config: Config,
    /// Time, ids and chance.
    pub clock: Arc<dyn Clock>,
    /// The filesystem.
    pub fs: Arc<dyn Fs>,
    /// The catalog.
    pub store: Arc<dyn Store>,
    /// How DuckDB is opened.
    pub duck: DuckSettings,
    /// Who works.
    pub actor: String,
}

impl World {
    /// The world that `config` describes. Touches nothing.
    pub fn new(config: Config) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let fs: Arc<dyn Fs> = Arc::new(RealFs);
        let store: Arc<dyn Store> = Arc::new(LocalStore::new(config.catalog.clone(), fs.clone(), clock.clone()));
        let duck = duck_settings(&config);
        Self { config, clock, fs, store, duck, actor: actor() }
    }

    /// The engine on the state database, with every workflow and activity.
    pub async fn engine(&self) -> Result<Engine, Ended> {
        let mut configuration = EngineConfig::new(self.config.state.clone());
        configuration.clock = self.clock.clone();
        Engine::open(configuration, self.registry()).await.map_err(|error| engine_error(&error))
    }

    /// What the publish activities work with.
    pub fn publish_deps(&self) -> Arc<PublishDeps> {
        Arc::new(PublishDeps::new(
            self.config.catalog.clone(),
            self.store.clone(),
            self.fs.clone(),
            self.clock.clone(),
            self.duck.clone(),
        ))
    }

    /// Every workflow and activity of this program.
    pub fn registry(&self) -> Registry {
        let deps = self.publish_deps();
        let mut registry = Registry::new();
        registry.workflow(
            workflows::publish::NAME,
            workflows::publish::VERSION,
            workflows::publish::publish::<EngineContext>,
        );
        registry.workflow(
            workflows::discard::NAME,
            workflows::discard::VERSION,
            workflows::discard::discard::<EngineContext>,
        );
        registry.workflow(workflows::fold::NAME, workflows::fold::VERSION, workflows::fold::fold::<EngineContext>);
        // A sealed edition is never written again: what begins at its seal or before it makes another.
        registry.mints(workflows::publish::NAME, "open", "seal");
        registry.mints(workflows::fold::NAME, "open", "seal");
        macro_rules! activity {
            ($name:expr, $function:path) => {{
                let deps = deps.clone();
                registry.blocking_activity($name, move |ctx, input| $function(&deps, &ctx, input));
            }};
        }
        activity!(contract::OPEN, publish::open);
        activity!(contract::RESOLVE_SOURCE, publish::resolve_source);
        activity!(contract::BUILD, publish::build);
        activity!(contract::SEAL, publish::seal);
        activity!(contract::CHECK, publish::check);
        activity!(contract::RECORD, publish::record);
        activity!(contract::ABANDON, publish::abandon);
        activity!(edition_contract::DISCARD, publish::discard);
        activity!(fold_contract::RESOLVE_OVERLAYS, publish::resolve_overlays);
        activity!(fold_contract::FOLD, publish::fold);
        registry
    }
}

/// An error of the engine as a command ends with it.
pub fn engine_error(error: &engine::EngineError) -> Ended {
    let mut ended = Ended::from(error.to_failure());
    if let engine::EngineError::WrongState { run, .. }
    | engine::EngineError::OwnedElsewhere { run, .. }
    | engine::EngineError::NotEnded { run, .. }
    | engine::EngineError::UnknownStep { run, .. }
    | engine::EngineError::AlreadyDriven { run }
    | engine::EngineError::Imported { run } = error
    {
        ended.failure.hint = ended.failure.hint.map(|hint| with_run(&hint, *run));
    }
    if let engine::EngineError::ScheduleHeld { holder, .. } = error {
        ended.failure.hint = ended.failure.hint.map(|hint| with_run(&hint, *holder));
        return ended.with_exit(Exit::Busy);
    }
    let is_busy =
        matches!(error, engine::EngineError::OwnedElsewhere { .. } | engine::EngineError::AlreadyDriven { .. });
    if is_busy {
        return ended.with_exit(Exit::Busy);
    }
    let is_usage = matches!(
        error,
        engine::EngineError::UnknownRun { .. }
            | engine::EngineError::AmbiguousRun { .. }
            | engine::EngineError::UnknownSchedule { .. }
            | engine::EngineError::ScheduleRemoved { .. }
            | engine::EngineError::BadCron { .. }
            | engine::EngineError::UnknownTimeZone { .. }
            | engine::EngineError::UnknownStep { .. }
            | engine::EngineError::InputRefused { .. }
    );
    let exit = match error {
        engine::EngineError::NotEnded { state: RunState::Paused | RunState::Blocked, .. } => Exit::Blocked,
        engine::EngineError::NotEnded { .. } => Exit::Busy,
        _ if is_usage => Exit::Usage,
        _ => ended.exit,
    };
    ended.with_exit(exit)
}

fn duck_settings(config: &Config) -> DuckSettings {
    // DuckDB spills beside the state, never into an edition.
    let mut settings = DuckSettings::new(config.state.join("tmp"));
    if std::env::var_os(EXTENSIONS_VARIABLE).is_none() && config.duckdb_extensions.is_some() {
        settings.extension_directory.clone_from(&config.duckdb_extensions);
    }
    if let Some(limit) = config.duckdb_memory_limit_mb {
        settings.memory_limit_mb = limit;
    }
    if let Some(threads) = config.duckdb_threads {
        settings.threads = threads;
    }
    settings
}

/// Who runs this process, as the system knows them.
fn actor() -> String {
    let user = whoami::username().unwrap_or_else(|_| "unknown".to_owned());
    let host = whoami::hostname().unwrap_or_else(|_| "unknown".to_owned());
    format!("{user}@{host}")
}
