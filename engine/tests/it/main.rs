//! The engine on real files.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests are tests")]

mod attempts;
mod blocked;
mod busy;
mod cancel;
mod child;
mod crash;
mod events;
mod fencing;
mod keys;
mod limits;
mod open;
mod read;
mod rehearsals;
mod replay;
mod replays;
mod sections;
mod straight;
mod support;
