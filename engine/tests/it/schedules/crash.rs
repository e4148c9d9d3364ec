//! A daemon dies while it fires.

use engine::{SCHEDULE_CRASH_POINTS, ScheduleDef, SystemClock};
use engine_rules::clock::Clock as _;
use engine_rules::schedule::Misfire;

use super::{HOUR_MS, MINUTE_MS, count, fire, schedule};
use crate::child::{Order, aborts};
use crate::sim::{SimClock, open_at};
use crate::support::{open, registry};

#[tokio::test(flavor = "multi_thread")]
async fn a_tick_its_run_and_the_cursor_are_there_together_or_not_at_all() {
    for point in SCHEDULE_CRASH_POINTS {
        let folder = tempfile::tempdir().expect("a folder");
        // Loaded half an hour ago, so that the child, which lives by the real time, finds some thirty ticks due.
        let clock = SimClock::at_ms(SystemClock::new().now_ms() - 30 * MINUTE_MS);
        let engine = open_at(folder.path(), registry(), &clock).await;
        let minutely =
            ScheduleDef { misfire: Misfire::RunAll, catch_up_ms: HOUR_MS, ..schedule("minutely", "* * * * *") };
        engine.sync_schedules(&[minutely]).await.expect("it is loaded");
        let before = engine.reader().schedules().await.expect("they read");
        engine.close().await;
        aborts(folder.path(), &Order::Fire { point: (*point).to_owned(), hit: 1 });
        let engine = open(folder.path(), registry()).await;
        let (runs, started, skipped) = count(folder.path()).await;
        assert_eq!((runs, skipped), (started, 0), "{point}: a run a tick");
        let after = engine.reader().schedules().await.expect("they read");
        let is_whole = *point == "engine.ticks.after";
        assert_eq!(started > 0, is_whole, "{point}: {started}");
        assert_eq!(after != before, is_whole, "{point}: {after:?}");
        // The next daemon goes on where the cursor stands.
        fire(&engine).await;
        let (runs, started, skipped) = count(folder.path()).await;
        assert_eq!((runs, skipped), (started, 0), "{point}: a run a tick");
        assert!((30..=32).contains(&runs), "{point}: {runs}");
    }
}
