//! The engine on real files.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests are tests")]

mod attempts;
mod blocked;
mod busy;
mod cancel;
mod child;
mod children;
mod crash;
mod crowd;
mod events;
mod export;
mod fencing;
mod keys;
mod limits;
mod limits_of_attempts;
mod locked;
mod log_size;
mod open;
mod purge;
mod read;
mod recover;
mod recovery;
mod rehearsals;
mod replay;
mod replay_children;
mod replays;
mod schedules;
mod sections;
mod serve;
mod sim;
mod stops;
mod straight;
mod support;
mod upgrade;
mod waits;
mod worker;
