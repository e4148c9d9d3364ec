use std::collections::BTreeMap;

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn timing(cron: &str, zone: &str, misfire: Misfire, catch_up_ms: i64) -> Timing {
    Timing { cron: cron.parse().unwrap(), time_zone: TimeZone::get(zone).unwrap(), misfire, catch_up_ms }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn later(from: Timestamp, ms: i64) -> Timestamp {
    from.checked_add(SignedDuration::from_millis(ms)).unwrap()
}

/// How many fired, and of the others how many for each kind of reason.
fn tally(decisions: &[Decision]) -> (usize, BTreeMap<&'static str, usize>) {
    let mut fired = 0;
    let mut skipped = BTreeMap::new();
    for decision in decisions {
        let kind = match &decision.decided {
            Decided::Fire { .. } => {
                fired += 1;
                continue;
            }
            Decided::Skip(SkipReason::Paused { .. }) => "paused",
            Decided::Skip(SkipReason::Changed) => "changed",
            Decided::Skip(SkipReason::Removed) => "removed",
            Decided::Skip(SkipReason::TooOld { .. }) => "too old",
            Decided::Skip(SkipReason::Missed { .. }) => "missed",
            Decided::Skip(SkipReason::MadeUpFor { .. }) => "made up for",
        };
        *skipped.entry(kind).or_default() += 1;
    }
    (fired, skipped)
}

fn planned(timing: &Timing, cursor: Timestamp, now: Timestamp) -> Vec<Decision> {
    let cursor = Cursor::now(cursor, &timing.time_zone);
    let plan = plan_ticks(timing, cursor, now, &Standing::Live, usize::MAX);
    assert!(!plan.is_more);
    plan.decisions
}

#[test]
fn a_jump_of_78_minutes_is_decided_by_the_policy_minutely() {
    let from = at("2026-11-30T12:00:10Z");
    let now = later(from, 78 * 60_000);
    // 78 ticks are due: the last at 13:18:00 is ten seconds old, those before it were missed.
    for (misfire, fired, why) in
        [(Misfire::RunOnce, 1, "made up for"), (Misfire::Skip, 1, "missed"), (Misfire::RunAll, 78, "")]
    {
        let decisions = planned(&timing("* * * * *", "America/Toronto", misfire, DAY_MS), from, now);
        let (found, skipped) = tally(&decisions);
        assert_eq!((decisions.len(), found), (78, fired), "{misfire}");
        assert_eq!(skipped.get(why).copied().unwrap_or(0), 78 - fired, "{misfire}: {skipped:?}");
    }
}

#[test]
fn a_jump_of_78_minutes_is_decided_by_the_policy_daily() {
    // Over 08:30 in Toronto, an hour and a bit late.
    let (from, now) = (at("2026-11-30T13:20:00Z"), at("2026-11-30T14:38:00Z"));
    for (misfire, fired) in [(Misfire::RunOnce, 1), (Misfire::Skip, 0), (Misfire::RunAll, 1)] {
        let decisions = planned(&timing("30 8 * * *", "America/Toronto", misfire, DAY_MS), from, now);
        assert_eq!((decisions.len(), tally(&decisions).0), (1, fired), "{misfire}");
    }
}

#[test]
fn a_jump_of_30_days_is_decided_by_the_policy() {
    let from = at("2026-11-30T14:00:30Z");
    let now = later(from, 30 * DAY_MS);
    for (cron, misfire, fired, skipped) in [
        // The newest of 30 is half an hour old.
        ("30 8 * * *", Misfire::RunOnce, 1, vec![("made up for", 0), ("too old", 29)]),
        ("30 8 * * *", Misfire::Skip, 0, vec![("missed", 30)]),
        ("30 8 * * *", Misfire::RunAll, 1, vec![("too old", 29)]),
        // 43,200 ticks; 1,439 of the missed ones are within a day, and one tick is on time.
        ("* * * * *", Misfire::RunOnce, 1, vec![("made up for", 1_439), ("too old", 41_760)]),
        ("* * * * *", Misfire::Skip, 1, vec![("missed", 43_199)]),
        ("* * * * *", Misfire::RunAll, 1_440, vec![("too old", 41_760)]),
    ] {
        let decisions = planned(&timing(cron, "America/Toronto", misfire, DAY_MS), from, now);
        let (found, reasons) = tally(&decisions);
        assert_eq!(found, fired, "{cron} {misfire}: {reasons:?}");
        for (why, count) in skipped {
            assert_eq!(reasons.get(why).copied().unwrap_or(0), count, "{cron} {misfire} {why}: {reasons:?}");
        }
    }
}

#[test]
fn the_tolerance_and_the_catch_up_window_include_their_ends() {
    let due = at("2026-11-30T13:30:00Z");
    let from = at("2026-11-30T13:00:00Z");
    for (misfire, late_ms, fires) in [
        (Misfire::Skip, 0, true),
        (Misfire::Skip, ON_TIME_TOLERANCE_MS, true),
        (Misfire::Skip, ON_TIME_TOLERANCE_MS + 1, false),
        (Misfire::RunOnce, DAY_MS / 2, true),
        (Misfire::RunOnce, DAY_MS / 2 + 1, false),
        (Misfire::RunAll, DAY_MS / 2, true),
        (Misfire::RunAll, DAY_MS / 2 + 1, false),
    ] {
        let decisions =
            planned(&timing("30 8 * * *", "America/Toronto", misfire, DAY_MS / 2), from, later(due, late_ms));
        assert_eq!(tally(&decisions).0 == 1, fires, "{misfire} {late_ms}");
    }
}

#[test]
fn a_catch_up_window_of_nothing_still_fires_what_is_on_time() {
    let (from, now) = (at("2026-11-30T13:00:00Z"), at("2026-11-30T13:30:20Z"));
    for misfire in [Misfire::RunOnce, Misfire::Skip, Misfire::RunAll] {
        assert_eq!(tally(&planned(&timing("30 8 * * *", "America/Toronto", misfire, 0), from, now)).0, 1);
    }
}

#[test]
fn nothing_fires_while_paused_changed_or_removed_and_the_reason_is_in_words() {
    let timing = timing("30 8 * * *", "America/Toronto", Misfire::RunAll, DAY_MS);
    let cursor = Cursor::now(at("2026-11-30T13:00:00Z"), &timing.time_zone);
    let paused = Standing::Paused { by: "jane".to_owned(), reason: "the source is late".to_owned() };
    for (standing, words) in [
        (paused, "paused by jane: the source is late"),
        (Standing::Changed, "changed before this tick was decided"),
        (Standing::Removed, "left the configuration"),
    ] {
        let plan = plan_ticks(&timing, cursor, at("2026-12-02T13:30:00Z"), &standing, 10);
        assert_eq!(plan.decisions.len(), 3);
        for decision in plan.decisions {
            let Decided::Skip(reason) = decision.decided else { panic!("{standing:?}") };
            assert!(reason.to_string().contains(words), "{reason}");
        }
    }
}

#[test]
fn reasons_name_the_span_and_the_policy() {
    for (reason, text) in [
        (SkipReason::Missed { late_ms: 78_000 }, "missed by 78 s, and the policy skip runs no missed tick"),
        (
            SkipReason::TooOld { late_ms: 30 * DAY_MS + 3_600_000, catch_up_ms: DAY_MS },
            "missed by 30 d 1 h, which is more than the catch-up window of 1 d",
        ),
        (
            SkipReason::MadeUpFor { late_ms: 12_000_000 },
            "missed by 3 h 20 min; the policy run-once starts one run for all ticks that were missed, and a later one is due",
        ),
    ] {
        assert_eq!(reason.to_string(), text);
    }
}

#[test]
fn a_backward_jump_fires_nothing_twice() {
    let timing = timing("*/5 * * * *", "Europe/London", Misfire::RunAll, DAY_MS);
    let now = at("2026-11-30T12:00:00Z");
    let first = plan_ticks(&timing, Cursor::now(later(now, -3_600_000), &timing.time_zone), now, &Standing::Live, 100);
    assert_eq!(first.decisions.len(), 12);
    for back_ms in [1, 60_000, 78 * 60_000, 30 * DAY_MS] {
        let again = plan_ticks(&timing, first.cursor, later(now, -back_ms), &Standing::Live, 100);
        assert_eq!((again.decisions.len(), again.cursor), (0, first.cursor));
    }
}

#[test]
fn misfire_policies_have_names() {
    for misfire in [Misfire::RunOnce, Misfire::Skip, Misfire::RunAll] {
        assert_eq!(Misfire::from_name(misfire.as_str()), Some(misfire));
    }
    assert_eq!(Misfire::from_name("runonce"), None);
}

fn misfires() -> impl Strategy<Value = Misfire> {
    prop::sample::select(vec![Misfire::RunOnce, Misfire::Skip, Misfire::RunAll])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn batches_decide_what_one_plan_decides(
        cron in prop::sample::select(vec!["30 8 * * *", "*/20 * * * *", "15,45 1,2 * * *", "@hourly"]),
        misfire in misfires(),
        start_h in 0..8_760_i64,
        jump_min in 0..5_000_i64,
        most in 1..9_usize,
    ) {
        let timing = timing(cron, "America/Toronto", misfire, DAY_MS / 2);
        let from = Timestamp::from_second(1_767_225_600 + start_h * 3_600).unwrap();
        let now = later(from, jump_min * 60_000);
        let mut cursor = Cursor::now(from, &timing.time_zone);
        let whole = plan_ticks(&timing, cursor, now, &Standing::Live, usize::MAX);
        let mut parts = Vec::new();
        loop {
            let part = plan_ticks(&timing, cursor, now, &Standing::Live, most);
            prop_assert!(part.decisions.len() <= most);
            cursor = part.cursor;
            parts.extend(part.decisions);
            if !part.is_more {
                break;
            }
        }
        prop_assert_eq!(parts, whole.decisions);
        prop_assert_eq!(cursor, whole.cursor);
    }

    #[test]
    fn whatever_the_clock_does_each_tick_is_decided_once_and_none_is_left_out(
        cron in prop::sample::select(vec!["30 1 * * *", "30 2 * * *", "*/15 * * * *", "40 * * * *", "15,45 2 * * *"]),
        zone in prop::sample::select(vec!["America/Toronto", "Europe/London", "Australia/Lord_Howe", "UTC"]),
        misfire in misfires(),
        start_h in 0..8_760_i64,
        steps in prop::collection::vec(-600..2_000_i64, 1..30),
    ) {
        let timing = timing(cron, zone, misfire, DAY_MS);
        let from = Timestamp::from_second(1_767_225_600 + start_h * 3_600).unwrap();
        let mut cursor = Cursor::now(from, &timing.time_zone);
        let (mut now, mut latest) = (from, from);
        let mut decided = Vec::new();
        for step_min in steps {
            now = later(now, step_min * 60_000);
            latest = latest.max(now);
            let plan = plan_ticks(&timing, cursor, now, &Standing::Live, usize::MAX);
            cursor = plan.cursor;
            let on_time = plan.decisions.iter().filter(|d| matches!(d.decided, Decided::Fire { late_ms } if late_ms <= ON_TIME_TOLERANCE_MS)).count();
            let caught_up = tally(&plan.decisions).0 - on_time;
            match misfire {
                Misfire::Skip => prop_assert_eq!(caught_up, 0),
                Misfire::RunOnce => prop_assert!(caught_up <= 1 && (caught_up == 0 || on_time == 0)),
                Misfire::RunAll => {}
            }
            decided.extend(plan.decisions.into_iter().map(|decision| decision.tick));
        }
        let all: Vec<Tick> = timing
            .ticks_after(Cursor::now(from, &timing.time_zone))
            .take_while(|tick| tick.at <= latest)
            .collect();
        prop_assert_eq!(decided, all);
    }
}
