//! When a failed step is tried again.

use serde::{Deserialize, Serialize};

/// How often and after which delays a step is tried again. The delay before attempt n + 1 is
/// `first_delay_ms · factor^(n-1)`, at most `cap_ms`, less a random part of up to `jitter_percent`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// The delay after the first attempt, in milliseconds.
    pub first_delay_ms: u64,
    /// What each further delay is multiplied by.
    pub factor: f64,
    /// The longest delay, in milliseconds.
    pub cap_ms: u64,
    /// How many attempts there are in all, at least 1.
    pub attempts: u32,
    /// How much of a delay may be taken off at random, 0 to 100.
    pub jitter_percent: u8,
}

impl RetryPolicy {
    /// One attempt and no other.
    pub const NEVER: Self = Self { first_delay_ms: 0, factor: 1.0, cap_ms: 0, attempts: 1, jitter_percent: 0 };

    /// Five attempts within about half a minute, for work on a local disk.
    pub const LOCAL: Self = Self { first_delay_ms: 500, factor: 3.0, cap_ms: 15_000, attempts: 5, jitter_percent: 20 };
}
