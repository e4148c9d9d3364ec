use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

fn cron(text: &str) -> CronExpression {
    text.parse().unwrap()
}

/// The ids and instants of the ticks from `from` (an instant) up to `until`.
fn ticks(text: &str, zone_name: &str, from: &str, until: &str) -> Vec<(String, String)> {
    let (cron, zone) = (cron(text), zone(zone_name));
    let (from, until): (Timestamp, Timestamp) = (from.parse().unwrap(), until.parse().unwrap());
    Ticks::after(&cron, &zone, Cursor::before(from, &zone))
        .take_while(|tick| tick.at < until)
        .map(|tick| (tick.id().0, tick.at.to_string()))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(id, at)| ((*id).to_owned(), (*at).to_owned())).collect()
}

#[test]
fn a_fixed_time_in_a_gap_fires_at_the_first_instant_after_it() {
    // Toronto: 02:00 -05:00 becomes 03:00 -04:00 on 2026-03-08, at 07:00Z.
    assert_eq!(
        ticks("30 2 * * *", "America/Toronto", "2026-03-07T00:00:00Z", "2026-03-10T00:00:00Z"),
        pairs(&[
            ("2026-03-07T02:30:00", "2026-03-07T07:30:00Z"),
            ("2026-03-08T02:30:00", "2026-03-08T07:00:00Z"),
            ("2026-03-09T02:30:00", "2026-03-09T06:30:00Z"),
        ])
    );
    // Lord Howe: half an hour, 02:00 +10:30 becomes 02:30 +11:00 on 2026-10-04, at 15:30Z the day before.
    assert_eq!(
        ticks("10 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-04T16:00:00Z"),
        pairs(&[("2026-10-04T02:10:00", "2026-10-03T15:30:00Z"), ("2026-10-05T02:10:00", "2026-10-04T15:10:00Z"),])
    );
    // Samoa left out 2011-12-30 altogether.
    assert_eq!(
        ticks("30 8 * * *", "Pacific/Apia", "2011-12-29T18:00:00Z", "2011-12-31T00:00:00Z"),
        pairs(&[
            ("2011-12-29T08:30:00", "2011-12-29T18:30:00Z"),
            ("2011-12-30T08:30:00", "2011-12-30T10:00:00Z"),
            ("2011-12-31T08:30:00", "2011-12-30T18:30:00Z"),
        ])
    );
}

#[test]
fn a_fixed_time_in_a_fold_fires_at_its_first_occurrence_only() {
    assert_eq!(
        ticks("30 1 * * *", "America/Toronto", "2026-10-31T00:00:00Z", "2026-11-03T00:00:00Z"),
        pairs(&[
            ("2026-10-31T01:30:00", "2026-10-31T05:30:00Z"),
            ("2026-11-01T01:30:00", "2026-11-01T05:30:00Z"),
            ("2026-11-02T01:30:00", "2026-11-02T06:30:00Z"),
        ])
    );
}

#[test]
fn several_fixed_times_in_one_gap_each_fire() {
    assert_eq!(
        ticks("15,45 2 * * *", "America/Toronto", "2026-03-08T06:00:00Z", "2026-03-09T00:00:00Z"),
        pairs(&[("2026-03-08T02:15:00", "2026-03-08T07:00:00Z"), ("2026-03-08T02:45:00", "2026-03-08T07:00:00Z")])
    );
    // And a cursor between the two keeps the second.
    let (cron, zone) = (cron("15,45 2 * * *"), zone("America/Toronto"));
    let from: Timestamp = "2026-03-08T06:00:00Z".parse().unwrap();
    let first = Ticks::after(&cron, &zone, Cursor::now(from, &zone)).next().unwrap();
    let second = Ticks::after(&cron, &zone, first.cursor()).next().unwrap();
    assert_eq!((second.id().0.as_str(), second.at), ("2026-03-08T02:45:00", first.at));
}

#[test]
fn a_schedule_that_begins_within_the_second_half_of_a_fold_fires_nothing_of_the_first() {
    let (cron, zone) = (cron("50 1 * * *"), zone("America/Toronto"));
    // 01:40 for the second time.
    let now: Timestamp = "2026-11-01T06:40:00Z".parse().unwrap();
    let next = Ticks::after(&cron, &zone, Cursor::now(now, &zone)).next().unwrap();
    assert_eq!(next.id().0, "2026-11-02T01:50:00");
}

#[test]
fn elapsed_time_fires_both_instants_of_a_fold() {
    assert_eq!(
        ticks("*/30 * * * *", "America/Toronto", "2026-11-01T05:00:00Z", "2026-11-01T07:30:00Z"),
        pairs(&[
            ("2026-11-01T01:00:00-04:00", "2026-11-01T05:00:00Z"),
            ("2026-11-01T01:30:00-04:00", "2026-11-01T05:30:00Z"),
            ("2026-11-01T01:00:00-05:00", "2026-11-01T06:00:00Z"),
            ("2026-11-01T01:30:00-05:00", "2026-11-01T06:30:00Z"),
            ("2026-11-01T02:00:00-05:00", "2026-11-01T07:00:00Z"),
        ])
    );
}

#[test]
fn elapsed_ticks_that_coincide_at_the_end_of_a_gap_are_one() {
    assert_eq!(
        ticks("*/30 * * * *", "America/Toronto", "2026-03-08T06:30:00Z", "2026-03-08T08:00:00Z"),
        pairs(&[
            ("2026-03-08T01:30:00-05:00", "2026-03-08T06:30:00Z"),
            ("2026-03-08T03:00:00-04:00", "2026-03-08T07:00:00Z"),
            ("2026-03-08T03:30:00-04:00", "2026-03-08T07:30:00Z"),
        ])
    );
    // What falls into the gap alone fires at its end.
    assert_eq!(
        ticks("40 * * * *", "America/Toronto", "2026-03-08T06:00:00Z", "2026-03-08T08:00:00Z"),
        pairs(&[
            ("2026-03-08T01:40:00-05:00", "2026-03-08T06:40:00Z"),
            ("2026-03-08T03:00:00-04:00", "2026-03-08T07:00:00Z"),
            ("2026-03-08T03:40:00-04:00", "2026-03-08T07:40:00Z"),
        ])
    );
    // Nothing matches within the gap or at its end: nothing fires there.
    assert_eq!(
        ticks("40 5-23 * * *", "America/Toronto", "2026-03-08T06:00:00Z", "2026-03-08T10:00:00Z"),
        pairs(&[("2026-03-08T05:40:00-04:00", "2026-03-08T09:40:00Z")])
    );
}

#[test]
fn a_tick_says_how_its_local_time_came_to_its_instant() {
    let mapping = |text: &str, from: &str| {
        let (cron, zone) = (cron(text), zone("America/Toronto"));
        let cursor = Cursor::before(from.parse().unwrap(), &zone);
        Ticks::after(&cron, &zone, cursor).next().unwrap().mapping
    };
    for (text, from, expected) in [
        ("30 8 * * *", "2026-03-08T06:00:00Z", Mapping::Plain),
        ("30 2 * * *", "2026-03-08T06:00:00Z", Mapping::Gap),
        ("30 1 * * *", "2026-11-01T05:00:00Z", Mapping::FoldFirst),
        ("30 * * * *", "2026-11-01T05:00:00Z", Mapping::FoldFirst),
        ("30 * * * *", "2026-11-01T06:00:00Z", Mapping::FoldSecond),
        ("40 * * * *", "2026-03-08T06:50:00Z", Mapping::Gap),
        ("0 * * * *", "2026-03-08T06:50:00Z", Mapping::Plain),
    ] {
        assert_eq!(mapping(text, from), expected, "{text} from {from}");
    }
}

#[test]
fn a_full_year_has_one_tick_a_local_day_in_every_zone() {
    for zone_name in ["America/Toronto", "Europe/London", "Australia/Lord_Howe", "UTC"] {
        for text in ["30 1 * * *", "30 2 * * *", "30 8 * * *"] {
            let (cron, zone) = (cron(text), zone(zone_name));
            let start: Timestamp = zone.to_timestamp("2026-01-01T00:00".parse().unwrap()).unwrap();
            let end: Timestamp = zone.to_timestamp("2027-01-01T00:00".parse().unwrap()).unwrap();
            let ticks: Vec<Tick> =
                Ticks::after(&cron, &zone, Cursor::before(start, &zone)).take_while(|tick| tick.at < end).collect();
            assert_eq!(ticks.len(), 365, "{text} in {zone_name}");
            // By the day that the zone's clock shows when the tick is due, not only by the tick's own name.
            let days: BTreeSet<_> = ticks.iter().map(|tick| zone.to_datetime(tick.at).date()).collect();
            assert_eq!(days.len(), 365, "{text} in {zone_name}");
            assert!(ticks.is_sorted_by(|a, b| a.at < b.at));
        }
    }
}

/// Every whole minute of `minutes` from `from`, as the zone's clock shows it.
fn minutes(zone: &TimeZone, from: Timestamp, minutes: i64) -> impl Iterator<Item = (Timestamp, DateTime)> + '_ {
    (0..minutes).map(move |n| {
        let at = from.checked_add(SignedDuration::from_mins(n)).unwrap();
        (at, zone.to_datetime(at))
    })
}

fn minute_after(local: DateTime) -> DateTime {
    local.checked_add(SignedDuration::from_mins(1)).unwrap()
}

/// The ticks by looking at every minute: for elapsed time, a minute that matches or that ends a gap in which one does; for
/// the wall clock, each local time once, when the clock first shows it or a later one.
fn by_looking(cron: &CronExpression, zone: &TimeZone, from: Timestamp, count: i64) -> Vec<(Timestamp, String)> {
    let mut found = Vec::new();
    let before = from.checked_sub(SignedDuration::from_mins(1)).unwrap();
    let mut last = zone.to_datetime(before);
    let mut furthest = last;
    for (at, local) in minutes(zone, from, count) {
        match cron.kind() {
            CronKind::Elapsed => {
                let mut shown = minute_after(last);
                let mut matches = cron.matches(local);
                while shown < local {
                    matches |= cron.matches(shown);
                    shown = minute_after(shown);
                }
                if matches {
                    let offset = offset_text(zone.to_offset(at));
                    found.push((at, format!("{}{offset}", local_text(local))));
                }
            }
            CronKind::WallClock => {
                while furthest < local {
                    furthest = minute_after(furthest);
                    if cron.matches(furthest) {
                        found.push((at, local_text(furthest)));
                    }
                }
            }
        }
        last = local;
    }
    found
}

fn fields() -> impl Strategy<Value = String> {
    let minute = prop_oneof![
        Just("*".to_owned()),
        (0..60_u32).prop_map(|n| n.to_string()),
        Just("*/7".to_owned()),
        (0..30_u32, 30..60_u32).prop_map(|(a, b)| format!("{a},{b}"))
    ];
    let hour = prop_oneof![
        Just("*".to_owned()),
        (0..5_u32).prop_map(|n| n.to_string()),
        Just("1,2,3".to_owned()),
        Just("0-3".to_owned()),
        Just("*/2".to_owned())
    ];
    let days = prop_oneof![
        Just("* * *".to_owned()),
        Just("* * SAT,SUN".to_owned()),
        Just("1-7 * *".to_owned()),
        Just("* MAR,APR,OCT,NOV *".to_owned())
    ];
    (minute, hour, days).prop_map(|(minute, hour, days)| format!("{minute} {hour} {days}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_ticks_are_those_that_one_finds_by_looking_at_every_minute(
        text in fields(),
        // Each zone with a day on which its clock is changed.
        (zone_name, day) in prop::sample::select(vec![
            ("America/Toronto", "2026-03-08"), ("America/Toronto", "2026-11-01"),
            ("Europe/London", "2026-03-29"), ("Europe/London", "2026-10-25"),
            ("Australia/Lord_Howe", "2026-04-05"), ("Australia/Lord_Howe", "2026-10-04"),
            ("America/St_Johns", "2026-03-08"), ("Africa/Cairo", "2026-04-24"), ("UTC", "2026-03-29"),
        ]),
        lead_minutes in 0..2_880_i64,
    ) {
        let (cron, zone) = (cron(&text), zone(zone_name));
        let day: DateTime = format!("{day}T00:00").parse().unwrap();
        let noon = zone.to_timestamp(day.checked_add(SignedDuration::from_hours(12)).unwrap()).unwrap();
        let from = noon.checked_sub(SignedDuration::from_mins(lead_minutes)).unwrap();
        let until = from.checked_add(SignedDuration::from_hours(72)).unwrap();
        let looked = by_looking(&cron, &zone, from, 72 * 60);
        // Where it begins inside the second half of a fold, looking begins with a time that was shown before.
        let looked: Vec<_> = looked.into_iter().filter(|(at, _)| *at >= from).collect();
        let cursor = Cursor::before(from, &zone);
        let ticks: Vec<_> = Ticks::after(&cron, &zone, cursor)
            .take_while(|tick| tick.at < until)
            .map(|tick| (tick.at, tick.id().0))
            .collect();
        if cron.kind() == CronKind::WallClock {
            let first = zone.to_ambiguous_timestamp(zone.to_datetime(from));
            prop_assume!(!matches!(first.offset(), AmbiguousOffset::Fold { .. }));
        }
        prop_assert_eq!(ticks, looked);
    }

    #[test]
    fn the_ticks_after_a_tick_are_the_rest_of_them(text in fields(), start_h in 0..8_000_i64, cut in 0..40_usize) {
        let (cron, zone) = (cron(&text), zone("America/Toronto"));
        let start = Timestamp::from_second(1_767_225_600 + start_h * 3_600).unwrap();
        let all: Vec<Tick> = Ticks::after(&cron, &zone, Cursor::now(start, &zone)).take(41).collect();
        let rest: Vec<Tick> = Ticks::after(&cron, &zone, all[cut].cursor()).take(40 - cut).collect();
        prop_assert_eq!(&all[cut + 1..], rest.as_slice());
        let ids: BTreeSet<_> = all.iter().map(Tick::id).collect();
        prop_assert_eq!(ids.len(), all.len(), "no two ticks share a name");
        prop_assert!(all.is_sorted_by(|a, b| a.at <= b.at));
    }
}
