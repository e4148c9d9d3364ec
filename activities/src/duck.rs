//! DuckDB and DuckLake as this program runs them: which settings every connection has, how an edition's files are
//! attached, and what the engine says of itself.
//!
//! An extension is loaded from a folder, never downloaded. The spill folder is never inside an edition, because a
//! sealed edition is never written (*edition* §4). The time zone is UTC, because a row's text depends on it.

mod error;
mod header;
mod quote;
mod scratch;
mod session;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use error::DuckError;
pub use header::storage_version;
pub use quote::{identifier, literal, path_literal};
pub use session::{Access, EngineLimits, LAKE, STORE, Session, Versions, wal_of};

/// The environment variable that names the folder of DuckDB's extensions.
pub const EXTENSIONS_VARIABLE: &str = "JOBCTL_DUCKDB_EXTENSIONS";
/// The command that brings DuckDB and its extension.
pub const SETUP_COMMAND: &str = "make setup";

/// Memory for one connection unless the configuration says otherwise. A sort or a join that needs more spills.
pub const DEFAULT_MEMORY_LIMIT_MB: u32 = 256;

/// How DuckDB is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuckSettings {
    /// The folder that holds `v<version>/<platform>/ducklake.duckdb_extension`; `None` for DuckDB's own default.
    pub extension_directory: Option<PathBuf>,
    /// Where connections spill and stage. Outside every product; it is created when it is needed.
    pub temp_directory: PathBuf,
    /// The memory that DuckDB's buffers may take, in MiB.
    pub memory_limit_mb: u32,
    /// How many threads a query may use.
    pub threads: u32,
}

impl DuckSettings {
    /// The settings of this machine: extensions from [`find_extensions`], all processors, and `temp_directory` for
    /// whatever does not fit into memory.
    #[must_use]
    pub fn new(temp_directory: PathBuf) -> Self {
        Self {
            extension_directory: find_extensions(),
            temp_directory,
            memory_limit_mb: DEFAULT_MEMORY_LIMIT_MB,
            threads: std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
        }
    }
}

/// The folder of extensions: the one that [`EXTENSIONS_VARIABLE`] names, else `extensions` beside the program, else
/// the one that the setup filled beside the library this program was linked with. `None` when there is none.
#[must_use]
pub fn find_extensions() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(EXTENSIONS_VARIABLE) {
        return Some(PathBuf::from(named));
    }
    let beside_program = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join("extensions")));
    let beside_library =
        option_env!("DUCKDB_LIB_DIR").and_then(|lib| Some(Path::new(lib).parent()?.join("extensions")));
    beside_program.into_iter().chain(beside_library).find(|folder| folder.is_dir())
}
