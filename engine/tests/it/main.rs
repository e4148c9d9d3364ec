//! The engine on real files.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests are tests")]

mod attempts;
mod blocked;
mod busy;
mod cancel;
mod child;
mod crash;
mod crowd;
mod events;
mod fencing;
mod keys;
mod limits;
mod locked;
mod log_size;
mod open;
mod read;
mod recovery;
mod replay;
mod sections;
mod straight;
mod support;
mod upgrade;
mod worker;
