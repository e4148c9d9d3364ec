//! Everything that touches the world: files, stores, DuckDB, sources.

pub mod metadata_store;
pub mod sources;

#[cfg(test)]
#[path = "../../tests/support/shared.rs"]
mod shared;
