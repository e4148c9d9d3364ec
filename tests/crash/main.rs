//! Crashes: the binary ended at named points and at random moments, and what it makes of it afterwards.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "a test ends by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod cancel;
mod fold;
mod kill;
mod serve;
mod sweep;
mod world;
