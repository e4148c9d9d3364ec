//! Everything that touches the world: files, stores, DuckDB, sources.

pub mod fs;
pub mod inventory;
pub mod lock;
pub mod store;
