//! Where names meet implementations: the only place that knows workflows, activities and the engine at once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use activities::duck::{DuckSettings, EXTENSIONS_VARIABLE};
use activities::fs::{Fs, RealFs};
use activities::inventory_jobs::{self, InventoryDeps};
use activities::publish::{self, PublishDeps};
use activities::recovery::{self, RecoveryDeps};
use activities::store::{LocalStore, Store};
use catalog_rules::contracts::{
    edition as edition_contract, fold as fold_contract, inventory as inventory_contract, publish as contract,
    recovery as recovery_contract,
};
use engine::{Engine, EngineConfig, EngineContext, Registry, SystemClock};
use engine_rules::activity::{ActivityContext, CancelToken};
use engine_rules::clock::Clock;
use engine_rules::failure::{ActivityError, Disposition, Failure};
use engine_rules::state::RunState;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cli::with_run;
use crate::config::Config;
use crate::exit::{Ended, Exit};

/// An activity that is called by itself, outside of a run: given the run's id, the step's name and the input.
pub type Imagined = Box<dyn Fn(&str, &str, Value) -> Result<Value, Failure> + Send + Sync>;

/// Calls `$with!(name, function)` for every activity of the operations on the Inventory.
macro_rules! inventory_activities {
    ($with:ident) => {
        $with!(inventory_contract::ADVANCE_CURRENT, inventory_jobs::advance_current);
        $with!(inventory_contract::PREFLIGHT, inventory_jobs::preflight);
        $with!(inventory_contract::COMMIT, inventory_jobs::commit);
        $with!(inventory_contract::ROLLBACK_MOVES, inventory_jobs::rollback_moves);
        $with!(inventory_contract::LIVE_EDITIONS, inventory_jobs::live_editions);
        $with!(inventory_contract::FIND_RETIRABLE, inventory_jobs::find_retirable);
        $with!(inventory_contract::READ_MANIFEST, inventory_jobs::read_manifest);
        $with!(inventory_contract::FIND_RIPPLES, inventory_jobs::find_ripples);
    };
}

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
        let deps = PublishDeps::new(
            self.config.catalog.clone(),
            self.store.clone(),
            self.fs.clone(),
            self.clock.clone(),
            self.duck.clone(),
        );
        Arc::new(deps.cached_in(self.cache()))
    }

    /// Where what can be made again is kept between processes, for every catalog that this state has worked on.
    fn cache(&self) -> PathBuf {
        self.config.state.join("cache")
    }

    /// What the operations on the Inventory of the catalog in `store` work with.
    fn inventory_deps(&self, store: Arc<dyn Store>) -> InventoryDeps {
        let windows = self.config.windows.clone();
        InventoryDeps::new(self.config.catalog.clone(), store, self.clock.clone(), windows)
    }

    /// What the recoveries of the Inventory work with.
    pub fn recovery_deps(&self) -> RecoveryDeps {
        RecoveryDeps::new(self.store.clone(), self.fs.clone(), self.config.state.join("repaired"))
    }

    /// The activities of the operations on the Inventory, by name, on `store`: for a dry run on one that keeps nothing.
    pub fn imagined(&self, store: Arc<dyn Store>) -> BTreeMap<&'static str, Imagined> {
        // Without the cache of leaves: what is imagined is kept nowhere.
        let deps = Arc::new(self.inventory_deps(store));
        let mut activities = BTreeMap::new();
        macro_rules! imagined {
            ($name:expr, $function:path) => {{
                let deps = deps.clone();
                activities.insert($name, imagined(move |ctx, input| $function(&deps, &ctx, input)));
            }};
        }
        inventory_activities!(imagined);
        activities
    }

    /// Every workflow and activity of this program.
    pub fn registry(&self) -> Registry {
        let deps = self.publish_deps();
        let mut registry = Registry::new();
        macro_rules! workflow {
            ($name:ident) => {
                registry.workflow(
                    workflows::$name::NAME,
                    workflows::$name::VERSION,
                    workflows::$name::$name::<EngineContext>,
                );
            };
        }
        workflow!(publish);
        workflow!(discard);
        workflow!(fold);
        workflow!(release);
        workflow!(rollback);
        workflow!(withdraw);
        workflow!(supersede);
        workflow!(reinstate);
        workflow!(retire);
        workflow!(reschedule);
        workflow!(supersede_schema);
        workflow!(set_lifecycle);
        workflow!(embargo);
        workflow!(describe);
        workflow!(correct);
        workflow!(repair_head);
        workflow!(rebuild_inventory);
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
        let deps = Arc::new(self.inventory_deps(self.store.clone()).cached_in(self.cache()));
        macro_rules! inventory_activity {
            ($name:expr, $function:path) => {{
                let deps = deps.clone();
                registry.blocking_activity($name, move |ctx, input| $function(&deps, &ctx, input));
            }};
        }
        inventory_activities!(inventory_activity);
        let deps = Arc::new(self.recovery_deps());
        macro_rules! recovery_activity {
            ($name:expr, $function:path) => {{
                let deps = deps.clone();
                registry.blocking_activity($name, move |ctx, input| $function(&deps, &ctx, input));
            }};
        }
        recovery_activity!(recovery_contract::REPAIR_HEAD, recovery::repair_head);
        recovery_activity!(recovery_contract::REBUILD_INVENTORY, recovery::rebuild_inventory);
        registry
    }
}

/// `function` as an activity that is called by itself.
fn imagined<I, O, E>(function: impl Fn(ActivityContext, I) -> Result<O, E> + Send + Sync + 'static) -> Imagined
where
    I: DeserializeOwned,
    O: Serialize,
    E: ActivityError,
{
    let unfit = |error: serde_json::Error| Failure {
        code: "engine.unfit".to_owned(),
        message: format!("what a step was given or gave does not fit its type: {error}"),
        disposition: Disposition::Terminal,
        hint: None,
    };
    Box::new(move |run_id, step, input| {
        let input = serde_json::from_value(input).map_err(unfit)?;
        let ctx = ActivityContext::new(run_id.to_owned(), step.to_owned(), 1, CancelToken::new(), Arc::new(|_beat| {}));
        let output = function(ctx, input).map_err(|error| error.to_failure())?;
        serde_json::to_value(output).map_err(unfit)
    })
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
