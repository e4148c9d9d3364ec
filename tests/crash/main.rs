//! Crashes: the binary ended at named points and at random moments, and what it makes of it afterwards.

#[path = "../support/mod.rs"]
mod support;

mod kill;
mod sweep;
mod world;
