//! The workflows, one a file.
//!
//! A workflow names its steps and hands results on; it decides nothing of the format and touches nothing. It asks for
//! its steps in the same order every time, from recorded values only.

pub mod discard;
pub mod fold;
pub mod publish;
#[cfg(test)]
mod scripted;
