//! The system's time and randomness: the only place that asks for them.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use engine_rules::clock::Clock;
use uuid::Uuid;

/// The clock of the machine.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
    last_id: Mutex<u128>,
}

impl SystemClock {
    /// The clock of the machine, with its own sequence of ids.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the home of time")]
    pub fn new() -> Self {
        Self { start: Instant::now(), last_id: Mutex::new(0) }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

/// The 74 bits of a UUIDv7 that are neither time nor version nor variant, as one number, and back.
mod random_part {
    const LOW_BITS: u32 = 62;
    const LOW: u128 = (1 << LOW_BITS) - 1;
    const HIGH: u128 = 0xfff;

    pub(super) fn of(id: u128) -> u128 {
        ((id >> 64) & HIGH) << LOW_BITS | (id & LOW)
    }

    pub(super) fn id(time_ms: u128, random: u128) -> u128 {
        const VERSION_7: u128 = 7 << 76;
        const VARIANT: u128 = 0b10 << 62;
        (time_ms & 0xffff_ffff_ffff) << 80 | VERSION_7 | ((random >> LOW_BITS) & HIGH) << 64 | VARIANT | (random & LOW)
    }

    pub(super) const MAX: u128 = (1 << 74) - 1;
}

/// The id after `last` at `time_ms`: of that time, or just above `last` where the clock stood still or went back.
fn next_id(last: u128, time_ms: u128, random: u128) -> u128 {
    let candidate = random_part::id(time_ms, random);
    if candidate > last {
        return candidate;
    }
    // A small random step keeps the rest of the id from being guessed, and leaves room for very many of them.
    let step = (random & 0xffff_ffff) + 1;
    let (last_ms, last_random) = (last >> 80, random_part::of(last));
    if last_random <= random_part::MAX - step {
        random_part::id(last_ms, last_random + step)
    } else {
        random_part::id(last_ms + 1, random >> 1)
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the home of time")]
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    fn monotonic_us(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the home of randomness")]
    fn new_id(&self) -> Uuid {
        let time_ms = u128::try_from(self.now_ms()).unwrap_or_default();
        let random: u128 = rand::random();
        let mut last = self.last_id.lock().unwrap_or_else(PoisonError::into_inner);
        *last = next_id(*last, time_ms, random);
        Uuid::from_u128(*last)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the home of randomness")]
    fn chance(&self) -> f64 {
        rand::random()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the home of time")]
    fn sleep_ms(&self, ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(tokio::time::sleep(Duration::from_millis(ms)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_7_and_always_rise() {
        let clock = SystemClock::new();
        let before = clock.now_ms();
        let mut last = Uuid::nil();
        for _ in 0..20_000 {
            let id = clock.new_id();
            assert!(id > last, "{id} after {last}");
            assert_eq!(id.get_version_num(), 7);
            assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
            last = id;
        }
        let (seconds, nanos) = last.get_timestamp().expect("a UUIDv7 has a time").to_unix();
        let at_ms = i64::try_from(seconds * 1_000 + u64::from(nanos) / 1_000_000).expect("a time of this century");
        assert!((before - 1..=clock.now_ms() + 1).contains(&at_ms), "{at_ms} is not now");
    }

    #[test]
    fn ids_rise_when_the_clock_goes_back_and_when_a_millisecond_is_full() {
        let first = next_id(0, 1_000_000, u128::MAX);
        let back = next_id(first, 10, 7);
        assert!(back > first);
        assert_eq!(back >> 80, 1_000_001, "the millisecond was full, so the next one begins");
        let mut last = back;
        for random in 0..1_000 {
            let id = next_id(last, 10, random << 40);
            assert!(id > last);
            assert_eq!(Uuid::from_u128(id).get_version_num(), 7);
            last = id;
        }
    }

    #[test]
    fn chance_is_below_one() {
        let clock = SystemClock::new();
        for _ in 0..1_000 {
            assert!((0.0..1.0).contains(&clock.chance()));
        }
    }
}
