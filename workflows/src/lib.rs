//! The workflows, one a file.
//!
//! A workflow names its steps and hands results on; it decides nothing of the format and touches nothing. It asks for
//! its steps in the same order every time, from recorded values only.

pub mod correct;
pub mod describe;
pub mod discard;
pub mod embargo;
pub mod fold;
pub mod publish;
pub mod rebuild_inventory;
pub mod reinstate;
pub mod release;
pub mod repair_head;
pub mod reschedule;
pub mod retire;
mod ripples;
pub mod rollback;
#[cfg(test)]
mod scripted;
pub mod set_lifecycle;
#[cfg(test)]
mod single_steps;
pub mod supersede;
pub mod supersede_schema;
pub mod withdraw;
