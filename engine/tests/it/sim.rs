//! A clock that a test moves by hand.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use engine::{Engine, EngineConfig, Registry, SystemClock};
use engine_rules::clock::Clock;
use tokio::sync::watch;
use uuid::Uuid;

/// Time as a test says. The wall's time is set; what passes wakes those who sleep. Ids and chance are the system's.
#[derive(Debug)]
pub struct SimClock {
    wall_ms: AtomicI64,
    passed_ms: watch::Sender<u64>,
    sleepers: AtomicU64,
    ids: Mutex<SystemClock>,
}

impl SimClock {
    /// A clock that shows `wall_ms` and stands still.
    pub fn at_ms(wall_ms: i64) -> Arc<Self> {
        Arc::new(Self {
            wall_ms: AtomicI64::new(wall_ms),
            passed_ms: watch::Sender::new(0),
            sleepers: AtomicU64::new(0),
            ids: Mutex::new(SystemClock::new()),
        })
    }

    /// A clock that shows this instant, such as `2026-11-30T13:30:00Z`.
    pub fn at(instant: &str) -> Arc<Self> {
        Self::at_ms(instant_ms(instant))
    }

    /// The wall shows another time, as when an administrator or a time server sets it. Nobody who sleeps is woken.
    pub fn set_wall_ms(&self, wall_ms: i64) {
        self.wall_ms.store(wall_ms, Ordering::SeqCst);
    }

    /// Time passes: the wall moves, and those whose sleep is over are woken.
    pub fn advance(&self, ms: u64) {
        self.wall_ms.fetch_add(i64::try_from(ms).expect("a span"), Ordering::SeqCst);
        self.passed_ms.send_modify(|passed| *passed += ms);
    }

    /// How many sleep now.
    #[allow(dead_code, reason = "for tests that advance once somebody sleeps")]
    pub fn sleepers(&self) -> u64 {
        self.sleepers.load(Ordering::SeqCst)
    }
}

pub fn instant_ms(instant: &str) -> i64 {
    instant.parse::<jiff::Timestamp>().expect("an instant").as_millisecond()
}

impl Clock for SimClock {
    fn now_ms(&self) -> i64 {
        self.wall_ms.load(Ordering::SeqCst)
    }

    fn monotonic_us(&self) -> u64 {
        *self.passed_ms.borrow() * 1_000
    }

    fn new_id(&self) -> Uuid {
        self.ids.lock().expect("no test panics with it").new_id()
    }

    fn chance(&self) -> f64 {
        0.5
    }

    fn sleep_ms(&self, ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut passed = self.passed_ms.subscribe();
        let until = *passed.borrow() + ms;
        Box::pin(async move {
            self.sleepers.fetch_add(1, Ordering::SeqCst);
            let _ = passed.wait_for(|passed| *passed >= until).await;
            self.sleepers.fetch_sub(1, Ordering::SeqCst);
        })
    }
}

/// An engine that lives by `clock`.
pub async fn open_at(state: &Path, registry: Registry, clock: &Arc<SimClock>) -> Engine {
    let mut config = EngineConfig::new(state);
    config.clock = clock.clone();
    Engine::open(config, registry).await.expect("the engine opens")
}
