//! What the engine decides, and what a workflow and an activity see of it.
//!
//! Nothing here reads a disk, a network or a clock, and nothing here needs an async runtime.

pub mod activity;
pub mod clock;
pub mod context;
pub mod crash;
pub mod digest;
pub mod failure;
pub mod family;
pub mod limits;
pub mod position;
pub mod recovery;
pub mod replay;
pub mod retention;
pub mod retry;
pub mod schedule;
pub mod state;
pub mod token;
