use super::*;

fn refused(text: &str) -> (String, String) {
    let fault = text.parse::<CronExpression>().expect_err(text);
    assert_eq!(fault.disposition(), Disposition::Terminal);
    assert!(fault.code().starts_with("schedule.cron_"));
    (fault.to_string(), fault.hint().expect("a fix"))
}

#[test]
fn each_refusal_says_what_was_found_and_names_the_fix() {
    for (text, found, fix) in [
        ("", "has 0 fields", "30 8 * * *"),
        ("30 8 * *", "has 4 fields", "30 8 * * *"),
        ("0 30 8 * * *", "has 6 fields", "\"30 8 * * *\""),
        ("0 30 8 * * MON 2026", "has 7 fields", "\"30 8 * * MON\""),
        ("@reboot", "@reboot", "@daily"),
        ("@every 5m", "has 2 fields", "30 8 * * *"),
        ("30 8 * * 1-5", "\"1-5\"", "\"30 8 * * MON-FRI\""),
        ("30 8 * * 0,6", "\"0,6\"", "\"30 8 * * SUN,SAT\""),
        ("30 8 * * 7", "\"7\"", "\"30 8 * * SUN\""),
        ("30 8 * * 1-5/2", "\"1-5/2\"", "\"30 8 * * MON-FRI/2\""),
        ("30 8 * * 5-7", "\"5-7\"", "SUN, MON"),
        ("30 8 * * 9", "\"9\"", "SUN, MON"),
        ("0 8 1 * MON", "day of the month (1) and the day of the week (MON)", "two schedules"),
        ("0 8 */2 * MON-FRI", "day of the month (*/2)", "two schedules"),
        ("60 8 * * *", "the minute \"60\"", "preview"),
        ("30 24 * * *", "the hour \"24\"", "preview"),
        ("30 8 0 * *", "the day of the month \"0\"", "preview"),
        ("30 8 * 13 *", "the month \"13\"", "preview"),
        ("30 8 * Foo *", "the month \"Foo\"", "preview"),
        ("30 8 ? * MON", "the day of the month \"?\"", "write *"),
        ("30 8 L * *", "the day of the month \"L\"", "preview"),
        ("30 8 * * FRI-MON", "the day of the week \"FRI-MON\"", "FRI,SAT,SUN"),
        ("30 22-2 * * *", "the hour \"22-2\"", "22,23,0,1"),
        ("5/15 * * * *", "the minute \"5/15\"", "5-59/15"),
        ("*/90 * * * *", "step 90 of the minute", "several schedules"),
        ("*/0 * * * *", "step 0 of the minute", "several schedules"),
        ("0 */24 * * *", "step 24 of the hour", "several schedules"),
        ("30 8 * * MON,,TUE", "the day of the week \"MON,,TUE\"", "preview"),
        ("-1 8 * * *", "the minute \"-1\"", "range goes up"),
        ("0 8 31 2 *", "never matches", "correct the day"),
        ("0 8 30,31 FEB *", "never matches", "correct the day"),
        ("0 8 31 4,6,9,11 *", "never matches", "correct the day"),
    ] {
        let (message, hint) = refused(text);
        assert!(message.contains(found), "{text}: {message}");
        assert!(message.contains("expected"), "{text}: {message}");
        assert!(hint.contains(fix), "{text}: {hint}");
    }
}

#[test]
fn a_suggested_expression_is_accepted() {
    for text in ["0 30 8 * * *", "30 8 * * 1-5", "30 8 * * 0,6", "30 8 * * 2-6/2", "5/15 * * * *"] {
        let (_, hint) = refused(text);
        let suggested = hint.split('"').nth(1).expect("a quoted suggestion");
        let suggested = if suggested.contains(' ') { suggested.to_owned() } else { format!("{suggested} * * * *") };
        suggested.parse::<CronExpression>().unwrap_or_else(|fault| panic!("{text} -> {suggested}: {fault}"));
    }
}

#[test]
fn numbers_and_lists_follow_the_wall_and_everything_else_time_that_passes() {
    for (text, kind) in [
        ("30 8 * * *", CronKind::WallClock),
        ("0,30 8,16 * * MON-FRI", CronKind::WallClock),
        ("@daily", CronKind::WallClock),
        ("@weekly", CronKind::WallClock),
        ("@monthly", CronKind::WallClock),
        ("@yearly", CronKind::WallClock),
        ("@hourly", CronKind::Elapsed),
        ("* * * * *", CronKind::Elapsed),
        ("30 * * * *", CronKind::Elapsed),
        ("*/5 8 * * *", CronKind::Elapsed),
        ("30 8-8 * * *", CronKind::Elapsed),
        ("0 8,12-14 * * *", CronKind::Elapsed),
    ] {
        assert_eq!(text.parse::<CronExpression>().unwrap().kind(), kind, "{text}");
    }
}

#[test]
fn the_matches_after_a_time_are_those_of_the_calendar() {
    for (text, from, expected) in [
        ("30 8 * * *", "2026-11-30T08:29:59", vec!["2026-11-30T08:30", "2026-12-01T08:30"]),
        ("30 8 * * *", "2026-11-30T08:30:00", vec!["2026-12-01T08:30"]),
        ("  30   8 *\t* *  ", "2026-11-30T08:30:00.000000001", vec!["2026-12-01T08:30"]),
        ("30 8 * * mon-FRI", "2026-12-04T09:00", vec!["2026-12-07T08:30", "2026-12-08T08:30"]),
        ("30 8 * * SUN", "2026-12-01T00:00", vec!["2026-12-06T08:30", "2026-12-13T08:30"]),
        ("30 8 * * SAT", "2026-12-01T00:00", vec!["2026-12-05T08:30", "2026-12-12T08:30"]),
        ("0 0 29 2 *", "2026-01-01T00:00", vec!["2028-02-29T00:00", "2032-02-29T00:00"]),
        ("0 0 29 FEB *", "2096-02-29T00:00", vec!["2104-02-29T00:00"]),
        ("0 0 31 * *", "2026-01-31T00:00", vec!["2026-03-31T00:00", "2026-05-31T00:00", "2026-07-31T00:00"]),
        ("59 23 31 12 *", "2026-12-31T23:59", vec!["2027-12-31T23:59"]),
        ("*/20 */12 * * *", "2026-12-31T12:20", vec!["2026-12-31T12:40", "2027-01-01T00:00", "2027-01-01T00:20"]),
        ("10-50/20 9 1,15 JAN-DEC/6 *", "2026-01-01T09:30", vec!["2026-01-01T09:50", "2026-01-15T09:10"]),
        ("0 8 * * MON-FRI/2", "2026-11-30T08:00", vec!["2026-12-02T08:00", "2026-12-04T08:00", "2026-12-07T08:00"]),
        ("@yearly", "2026-06-01T00:00", vec!["2027-01-01T00:00"]),
        ("@ANNUALLY", "2026-06-01T00:00", vec!["2027-01-01T00:00"]),
        ("@midnight", "2026-06-01T00:00", vec!["2026-06-02T00:00"]),
        ("@weekly", "2026-11-30T00:00", vec!["2026-12-06T00:00"]),
    ] {
        let cron: CronExpression = text.parse().unwrap_or_else(|fault| panic!("{text}: {fault}"));
        let mut at: DateTime = from.parse().unwrap();
        for expected in expected {
            at = cron.next_match(at).unwrap();
            assert_eq!(at, expected.parse::<DateTime>().unwrap(), "{text} after {from}");
            assert!(cron.matches(at));
        }
    }
}

#[test]
fn the_matches_end_with_the_calendar() {
    let cron: CronExpression = "30 8 * * *".parse().unwrap();
    assert_eq!(cron.next_match("9999-12-31T08:30".parse().unwrap()), None);
}
