//! The engine on real files.

#![allow(clippy::expect_used, reason = "helpers of tests are tests")]

mod straight;
mod support;
