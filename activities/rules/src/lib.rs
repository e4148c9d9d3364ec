//! What the catalog decides: the documents of the format, their transitions and their invariants.
//!
//! Nothing here reads a disk, a network or a clock. The caller fetches bytes, hands them over, and carries out what
//! comes back.

pub mod contracts;
pub mod history;
pub mod ids;
pub mod instant;
pub mod inventory;
pub mod layout;
pub mod manifest;
pub mod overlay;
pub mod sdmx;
pub mod seal_journal;

#[cfg(test)]
#[path = "../../../tests/support/shared.rs"]
mod shared;
