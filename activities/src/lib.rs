//! Everything that touches the world: files, stores, DuckDB, sources.

pub mod digest;
pub mod duck;
pub mod edition;
pub mod fs;
pub mod metadata_store;

#[cfg(test)]
#[path = "../../tests/support/shared.rs"]
mod shared;
