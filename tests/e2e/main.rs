//! End to end: the binary as a person runs it, on a real catalog.

#[path = "../support/mod.rs"]
mod support;

mod commands;
mod layers;
mod publish;
mod real_files;
mod refusals;
