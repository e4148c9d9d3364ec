//! Everything that touches the world: files, stores, DuckDB, sources.

pub mod digest;
pub mod duck;
pub mod edition;
pub mod fs;
pub mod hint;
pub mod inventory;
pub mod inventory_jobs;
pub mod lock;
pub mod metadata_store;
pub mod process;
pub mod publish;
pub mod recovery;
pub mod sources;
pub mod store;

#[cfg(test)]
#[path = "../../tests/support/shared.rs"]
mod shared;
