//! End to end: the binary as a person runs it, on a real catalog.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test ends by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod commands;
mod corpus;
mod damage;
mod fold;
mod interrupt;
mod inventory;
mod layers;
mod operations;
mod overlay;
mod promises;
mod publish;
mod real_files;
mod recovery;
mod refusals;
mod replay;
mod runs_export;
mod runs_list;
mod runs_purge;
mod schedules;
mod sdmx;
mod serve;
mod supervise;
mod verify;
