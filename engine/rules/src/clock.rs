//! Time, identity and chance as values: whoever needs one is given a [`Clock`].

use std::future::Future;
use std::pin::Pin;

use uuid::Uuid;

/// Where time, new ids and chance come from. The system's is in `engine`; a simulation has its own.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    fn now_ms(&self) -> i64;
    /// Microseconds since an arbitrary start, never going back: for durations only.
    fn monotonic_us(&self) -> u64;
    /// A new UUIDv7, greater than every one that this clock gave before.
    fn new_id(&self) -> Uuid;
    /// A number from 0 up to, but not including, 1.
    fn chance(&self) -> f64;
    /// Completes once `ms` milliseconds have passed.
    fn sleep_ms(&self, ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
