//! A year, due tick by due tick.

use std::collections::{BTreeMap, BTreeSet};

use engine::{FiredOutcome, ScheduleDef, find_time_zone};
use engine_rules::clock::Clock as _;

use super::{count, fire, schedule};
use crate::sim::{SimClock, open_at};
use crate::support::registry;

/// Each pass of the loop is what a daemon does: sleep until something is due, decide it.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_year_starts_exactly_one_run_per_local_day_in_every_zone() {
    let folder = tempfile::tempdir().expect("a folder");
    let zones = ["America/Toronto", "Europe/London", "Australia/Lord_Howe", "UTC"];
    let times = ["30 1 * * *", "30 2 * * *", "30 8 * * *"];
    // New Year's Eve, 23:59 in each zone, up to the same a year later: the schedules of a zone begin together.
    let mut runs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let clock = SimClock::at("2025-12-30T00:00:00Z");
    let engine = open_at(folder.path(), registry(), &clock).await;
    let mut schedules: Vec<ScheduleDef> = Vec::new();
    for zone in zones {
        for time in times {
            let name = format!("{zone} {time}");
            schedules.push(ScheduleDef { time_zone: zone.to_owned(), ..schedule(&name, time) });
        }
    }
    engine.sync_schedules(&schedules).await.expect("they are loaded");
    let end_ms = crate::sim::instant_ms("2027-01-02T00:00:00Z");
    loop {
        let due_ms = engine.next_due_ms().await.expect("a look").expect("there are schedules");
        assert!(due_ms > clock.now_ms(), "what is due was decided");
        if due_ms > end_ms {
            break;
        }
        // A daemon wakes a little late.
        clock.set_wall_ms(due_ms + 250);
        let fired = fire(&engine).await;
        assert!(!fired.is_empty(), "it was woken for something");
        for tick in fired {
            assert!(matches!(tick.outcome, FiredOutcome::Started(_)), "{tick:?}");
            let zone = tick.schedule.split(' ').next().expect("a zone");
            let due = jiff::Timestamp::from_millisecond(tick.due_at_ms).expect("an instant");
            let day = find_time_zone(zone).expect("a zone").to_datetime(due).date();
            runs.entry(tick.schedule).or_default().push(day.to_string());
        }
    }
    assert_eq!(runs.len(), schedules.len());
    for (schedule, days) in &runs {
        let of_2026: Vec<_> = days.iter().filter(|day| day.starts_with("2026")).collect();
        assert_eq!(of_2026.len(), 365, "{schedule}");
        assert_eq!(of_2026.iter().collect::<BTreeSet<_>>().len(), 365, "{schedule}");
    }
    let started = i64::try_from(runs.values().map(Vec::len).sum::<usize>()).expect("a count");
    assert_eq!(count(folder.path()).await, (started, started, 0));
}
