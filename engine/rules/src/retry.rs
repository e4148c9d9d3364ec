//! When a failed step is tried again.

use serde::{Deserialize, Serialize};

use crate::failure::Disposition;
use crate::limits::ATTEMPTS_LIMIT;

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

/// What follows a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFailure {
    /// Another attempt, once `delay_ms` milliseconds have passed.
    Again {
        /// The delay in milliseconds.
        delay_ms: u64,
    },
    /// The step fails with this failure.
    Fail,
    /// The run is blocked at this step until a person resumes it.
    Block,
}

impl RetryPolicy {
    /// One attempt and no other. An attempt that crashed counts, so that a person must resume the run.
    pub const NEVER: Self = Self { first_delay_ms: 0, factor: 1.0, cap_ms: 0, attempts: 1, jitter_percent: 0 };

    /// Five attempts within about half a minute, for work on a local disk.
    pub const LOCAL: Self = Self { first_delay_ms: 500, factor: 3.0, cap_ms: 15_000, attempts: 5, jitter_percent: 20 };

    /// How many attempts the policy allows: what it says, within 1 and [`ATTEMPTS_LIMIT`].
    #[must_use]
    pub fn allowed_attempts(&self) -> u32 {
        self.attempts.clamp(1, ATTEMPTS_LIMIT)
    }

    /// The delay in milliseconds before attempt `attempt + 1`, where `attempt` (from 1) failed. `chance`, from 0 up to 1,
    /// decides how much of the jitter is taken off. Never above `cap_ms`, whatever the numbers.
    #[must_use]
    pub fn delay_ms(&self, attempt: u32, chance: f64) -> u64 {
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let cap = self.cap_ms as f64;
        let full = self.first_delay_ms as f64 * self.factor.powi(exponent);
        // A factor that is not a number, or that overflows, ends at the cap.
        let full = if full.is_finite() && full >= 0.0 { full.min(cap) } else { cap };
        let jitter = f64::from(self.jitter_percent.min(100)) / 100.0;
        let chance = if (0.0..1.0).contains(&chance) { chance } else { 0.0 };
        ((full * (1.0 - jitter * chance)).round() as u64).min(self.cap_ms)
    }

    /// What follows a failure with `disposition` of an attempt, the `used`th of those that count (from 1).
    #[must_use]
    pub fn after_failure(&self, used: u32, disposition: Disposition, chance: f64) -> AfterFailure {
        match disposition {
            Disposition::Retry if used < self.allowed_attempts() => {
                AfterFailure::Again { delay_ms: self.delay_ms(used, chance) }
            }
            Disposition::Retry | Disposition::Terminal => AfterFailure::Fail,
            Disposition::Operator => AfterFailure::Block,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn delays_grow_to_the_cap() {
        let policy = RetryPolicy { jitter_percent: 0, ..RetryPolicy::LOCAL };
        let delays: Vec<u64> = (1..=6).map(|attempt| policy.delay_ms(attempt, 0.0)).collect();
        assert_eq!(delays, [500, 1_500, 4_500, 13_500, 15_000, 15_000]);
    }

    #[test]
    fn jitter_takes_off_and_never_adds() {
        let policy = RetryPolicy::LOCAL;
        assert_eq!(policy.delay_ms(1, 0.0), 500);
        assert_eq!(policy.delay_ms(1, 0.5), 450);
        assert_eq!(policy.delay_ms(1, 0.999_999), 400);
        assert_eq!(policy.delay_ms(1, f64::NAN), 500);
    }

    #[test]
    fn what_follows_a_failure() {
        let policy = RetryPolicy { jitter_percent: 0, attempts: 3, ..RetryPolicy::LOCAL };
        assert_eq!(policy.after_failure(1, Disposition::Retry, 0.0), AfterFailure::Again { delay_ms: 500 });
        assert_eq!(policy.after_failure(2, Disposition::Retry, 0.0), AfterFailure::Again { delay_ms: 1_500 });
        assert_eq!(policy.after_failure(3, Disposition::Retry, 0.0), AfterFailure::Fail);
        assert_eq!(policy.after_failure(1, Disposition::Terminal, 0.0), AfterFailure::Fail);
        assert_eq!(policy.after_failure(3, Disposition::Operator, 0.0), AfterFailure::Block);
        assert_eq!(RetryPolicy::NEVER.after_failure(1, Disposition::Retry, 0.0), AfterFailure::Fail);
    }

    #[test]
    fn a_policy_has_at_least_one_attempt_and_a_limit() {
        assert_eq!(RetryPolicy { attempts: 0, ..RetryPolicy::LOCAL }.allowed_attempts(), 1);
        assert_eq!(RetryPolicy { attempts: u32::MAX, ..RetryPolicy::LOCAL }.allowed_attempts(), ATTEMPTS_LIMIT);
    }

    proptest! {
        #[test]
        fn a_delay_is_never_above_the_cap(
            first_delay_ms in any::<u64>(),
            factor in any::<f64>(),
            cap_ms in 0..1_u64 << 53,
            attempt in any::<u32>(),
            jitter_percent in any::<u8>(),
            chance in any::<f64>(),
        ) {
            let policy = RetryPolicy { first_delay_ms, factor, cap_ms, attempts: 3, jitter_percent };
            prop_assert!(policy.delay_ms(attempt, chance) <= cap_ms);
        }

        #[test]
        fn without_jitter_delays_never_shrink(
            first_delay_ms in 0..100_000_u64,
            factor in 1.0..10.0_f64,
            cap_ms in 0..10_000_000_u64,
            attempt in 1..100_u32,
        ) {
            let policy = RetryPolicy { first_delay_ms, factor, cap_ms, attempts: 3, jitter_percent: 0 };
            prop_assert!(policy.delay_ms(attempt, 0.3) <= policy.delay_ms(attempt + 1, 0.7));
        }
    }
}
