//! What the tests of the binary share: a folder with a catalog in it, and small tables in the layout of a full-table
//! download.
#![allow(dead_code, reason = "each test binary uses its part")]

pub mod daemon;
pub mod env;
#[path = "shared.rs"]
pub mod reference;
pub mod table;
