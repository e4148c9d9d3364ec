use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::tests::{NOON_MS, TestClock};
use super::super::{Create, MemoryStore, Replace, contract};
use super::*;

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(TestClock::at_ms(NOON_MS)))
}

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[test]
fn while_nothing_is_asked_of_it_it_keeps_the_contract() {
    contract::suite(&|| Simulated::new(memory()).client(0)).unwrap();
}

#[test]
fn each_fault_does_what_it_says_and_the_answer_is_settled_by_reading_back() {
    let late = Fault::Late(Late::Calls(100));
    // What `create` makes of it, and whether the object is there.
    for (fault, expected, there) in [
        (Fault::Refused, Err("store.io"), false),
        (Fault::NotDone, Err("store.unsettled"), false),
        (Fault::Done, Ok(Create::Won), true),
        (Fault::DoneAndTaken, Ok(Create::Won), true),
        (late, Err("store.unsettled"), false),
        (Fault::Killed, Err("store.io"), false),
        (Fault::KilledAfter, Err("store.io"), true),
    ] {
        use engine_rules::failure::{ActivityError as _, Disposition};
        let sim = Simulated::new(memory());
        sim.at(On::Writes, 0, Act::Fault(fault));
        let told = sim.client(0).create("a/x", &bytes("x")).map_err(|error| {
            assert_eq!(error.disposition(), Disposition::Retry, "{fault:?}: {error}");
            error.code()
        });
        assert_eq!(told, expected, "{fault:?}");
        assert_eq!(sim.inner().get("a/x").unwrap().is_some(), there, "{fault:?}");
        assert_eq!(sim.calls()[0].fault, Some(fault));
        // A replacement by the same faults.
        let sim = Simulated::new(memory());
        sim.inner().create("CURRENT", &bytes("1")).unwrap();
        sim.at(On::Current, 0, Act::Fault(fault));
        let told = sim.client(0).replace("CURRENT", Some(&bytes("1")), &bytes("2")).map_err(|error| error.code());
        assert_eq!(told.is_ok_and(|told| told == Replace::Done), expected.is_ok(), "{fault:?}");
        assert_eq!(sim.inner().get("CURRENT").unwrap() == Some(bytes("2")), there, "{fault:?}");
        // And a conditional delete, whose answer cannot be read back.
        let sim = Simulated::new(memory());
        sim.inner().create("a/x", &bytes("x")).unwrap();
        sim.at(On::Kind(CallKind::DeleteIf), 0, Act::Fault(fault));
        let told = sim.client(0).delete_if("a/x", &bytes("x"));
        assert_eq!(told.ok(), (fault == Fault::DoneAndTaken).then_some(Delete::Absent), "{fault:?}");
        assert_eq!(sim.inner().get("a/x").unwrap().is_none(), there, "{fault:?}");
    }
}

#[test]
fn a_late_write_lands_when_its_time_has_come_and_by_its_condition() {
    for late in [Late::Calls(3), Late::Ms(30_000)] {
        for taken in [false, true] {
            let sim = Simulated::new(memory());
            let client = sim.client(0);
            sim.at(On::Writes, 0, Act::Fault(Fault::Late(late)));
            client.create("a/x", &bytes("late")).unwrap_err();
            assert_eq!((sim.under_way(), client.get("a/x").unwrap()), (1, None), "{late:?}");
            if taken {
                assert_eq!(client.create("a/x", &bytes("other")).unwrap(), Create::Won);
            }
            match late {
                Late::Calls(_) => (0..3).for_each(|_| drop(client.get("b").unwrap())),
                Late::Ms(ms) => {
                    let before = client.now().unwrap();
                    sim.advance_ms(ms - 1000);
                    assert_eq!(sim.under_way(), 1);
                    sim.advance_ms(1000);
                    assert!(client.now().unwrap() >= before.plus_ms(ms));
                }
            }
            assert_eq!(sim.under_way(), 0, "{late:?}");
            assert_eq!(client.get("a/x").unwrap(), Some(bytes(if taken { "other" } else { "late" })));
        }
    }
}

#[test]
fn a_killed_client_fails_until_it_is_revived_and_nobody_else_does() {
    let sim = Simulated::new(memory());
    let (killed, other) = (sim.client(1), sim.client(2));
    sim.at(On::At(CallKind::Get, "a/x".to_owned()), 1, Act::Fault(Fault::Killed));
    assert_eq!(killed.get("a/x").unwrap(), None);
    assert_eq!(other.get("a/y").unwrap(), None);
    killed.get("a/x").unwrap_err();
    killed.list("").unwrap_err();
    killed.now().unwrap_err();
    killed.lock().unwrap_err();
    other.create("a/x", &bytes("x")).unwrap();
    sim.revive(1);
    assert_eq!(killed.get("a/x").unwrap(), Some(bytes("x")));
}

#[test]
fn calls_are_counted_by_kind_and_path_and_hooks_come_at_theirs() {
    let sim = Simulated::new(memory());
    let client = sim.client(7);
    let (before, after) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for (seen, when) in [(&before, Act::Before as fn(Hook) -> Act), (&after, Act::After)] {
        let seen = Arc::clone(seen);
        let hook: Hook = Box::new(move |store| {
            seen.store(1 + store.get("CURRENT").unwrap().map_or(0, |found| found.len()), Ordering::SeqCst);
        });
        sim.at(On::Current, 1, when(hook));
    }
    assert_eq!(client.replace("CURRENT", None, &bytes("1")).unwrap(), Replace::Done);
    assert!(!sim.is_played());
    assert_eq!(client.replace("CURRENT", Some(&bytes("1")), &bytes("twelve")).unwrap(), Replace::Done);
    assert!(sim.is_played());
    assert_eq!((before.load(Ordering::SeqCst), after.load(Ordering::SeqCst)), (2, 7), "with one byte, with six");
    client.create("inventory/000000000002.json", &bytes("x")).unwrap();
    client.create("inventory/leaves/x.json", &bytes("x")).unwrap();
    client.get("inventory/000000000002.json").unwrap();
    let count = |on: On| sim.count(&on);
    assert_eq!(
        (count(On::Root), count(On::Leaf), count(On::Current), count(On::Writes), count(On::Any)),
        (1, 1, 2, 4, 5)
    );
    assert_eq!(count(On::Kind(CallKind::Get)), 1);
    assert!(sim.calls().iter().enumerate().all(|(n, call)| call.n == n && call.client == 7 && call.fault.is_none()));
}

#[test]
fn the_same_seed_fails_the_same_calls() {
    let odds = Odds { reads: 100, writes: 300, kills: 20, late_calls: 10, late_ms: 1000 };
    let calls = |seed: u64| {
        let sim = Simulated::new(memory());
        sim.fail_by_chance(seed, odds);
        let client = sim.client(0);
        for n in 0..300 {
            let path = format!("a/{n}");
            // What becomes of them is what is looked at.
            let _ = (client.create(&path, &bytes("x")), client.get(&path), client.delete(&path));
            sim.revive(0);
        }
        sim.calls()
    };
    assert_eq!(calls(1), calls(1));
    assert_ne!(calls(1), calls(2));
    let faults: std::collections::BTreeSet<_> = calls(1)
        .into_iter()
        .filter_map(|call| Some(format!("{:?}", call.fault?).split('(').next()?.to_owned()))
        .collect();
    let all = ["Done", "DoneAndTaken", "Killed", "KilledAfter", "Late", "NotDone", "Refused"];
    assert_eq!(faults.iter().map(String::as_str).collect::<Vec<_>>(), all);
}

#[test]
fn those_who_race_take_turns_by_the_seed() {
    let order = |seed: u64| {
        let sim = Simulated::new(memory());
        let running = AtomicUsize::new(0);
        let running = &running;
        let jobs = (0..3).map(|_| -> Job<'_, ()> {
            Box::new(move |store| {
                for _ in 0..20 {
                    assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                    std::thread::yield_now();
                    running.fetch_sub(1, Ordering::SeqCst);
                    store.get("a").unwrap();
                }
            })
        });
        sim.race(seed, jobs.collect());
        sim.calls().into_iter().map(|call| call.client).collect::<Vec<_>>()
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
    assert_eq!(order(3).len(), 60);
    let switches = order(1).windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(switches > 20, "only {switches} switches");
}
