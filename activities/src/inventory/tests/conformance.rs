//! The conformance suite, each case a test by its name on each store of this machine.

use super::*;
use crate::inventory::conformance::{CASES, Checked, Place, for_each_case, suite};
use crate::store::StoreError;

fn hold(case: &str, run: impl FnOnce() -> Checked) {
    if let Err(why) = run() {
        panic!("{case}: {why}");
    }
}

fn on_local(case: &str) {
    let dir = tempfile::tempdir().unwrap();
    let case = CASES.iter().find(|known| known.name == case).unwrap();
    let store = local(&dir.path().join("c"), Arc::new(RealFs));
    hold(case.name, || (case.run)(&Place { store, cache: Some(dir.path().join("cache")) }));
}

fn place() -> Place {
    Place { store: memory(), cache: None }
}

fn in_memory(case: &str) {
    let case = CASES.iter().find(|known| known.name == case).unwrap();
    hold(case.name, || (case.run)(&place()));
}

macro_rules! tests {
    ($($module:ident $rule:literal: [$($name:ident),* $(,)?];)*) => {
        mod on_a_local_store_with_a_cache {
            $(mod $module {
                $(#[test] fn $name() { super::super::on_local(stringify!($name)); })*
            })*
        }
        mod on_a_store_in_memory {
            $(mod $module {
                $(#[test] fn $name() { super::super::in_memory(stringify!($name)); })*
            })*
        }
    };
}
for_each_case!(tests);

#[test]
fn the_suite_tells_of_every_case_that_fails_and_not_of_the_first_only() {
    // A store that has something in it already: no case can make its catalog there.
    let new = || -> Result<Place, StoreError> {
        let place = place();
        place.create("notes.txt", &Bytes::from_static(b"x"))?;
        Ok(place)
    };
    let report = suite(&new).unwrap();
    // The ones that make a folder of their own in it hold.
    let held: Vec<_> = report.held.iter().filter(|name| !name.contains("write")).collect();
    assert_eq!(held, Vec::<&&str>::new());
    assert!(report.failed.len() > 60, "{report}");
    let told = report.to_string();
    assert!(told.contains("a_release_takes_what_is_due_by_the_stores_time (catalog §6.4): "), "{told}");
    let names: std::collections::BTreeSet<_> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), CASES.len(), "two cases with one name");
}

mod by_chance {
    use std::hash::{BuildHasher as _, RandomState};

    use super::*;
    use crate::inventory::conformance::simulation::{Tally, simulate};

    fn number(name: &str) -> Option<u64> {
        std::env::var(name).ok().and_then(|text| text.parse().ok())
    }

    fn add(a: Tally, b: Tally) -> Tally {
        Tally {
            versions: a.versions + b.versions,
            refused: a.refused + b.refused,
            unknown: a.unknown + b.unknown,
            faults: a.faults + b.faults,
            recognised: a.recognised + b.recognised,
        }
    }

    #[test]
    fn whatever_writers_do_at_once_on_a_store_that_fails_what_they_are_told_is_what_the_chain_says() {
        let first = number("JOBCTL_TEST_SEED").unwrap_or_else(|| RandomState::new().hash_one(0_u8));
        let cases = number("JOBCTL_TEST_CASES").unwrap_or(300);
        println!("JOBCTL_TEST_SEED={first}");
        let mut sum = Tally::default();
        for n in 0..cases {
            let seed = first.wrapping_add(n);
            let folder = tempfile::tempdir().unwrap();
            // Every fourth with a cache that the writers share, as the processes of one state directory do.
            let cache = n.is_multiple_of(4).then(|| folder.path().to_owned());
            match simulate(&Place { store: memory(), cache }, seed) {
                Ok(tally) => sum = add(sum, tally),
                Err(why) => panic!("JOBCTL_TEST_SEED={seed} JOBCTL_TEST_CASES=1: {why}"),
            }
        }
        println!("{cases} seeds: {sum:?}");
        if cases >= 100 {
            let cases = usize::try_from(cases).unwrap();
            assert!(sum.versions > 5 * cases && sum.faults > 4 * cases, "little happened: {sum:?}");
            assert!(sum.refused > cases && sum.recognised > cases && sum.unknown > 0, "little went wrong: {sum:?}");
        }
    }

    #[test]
    fn the_same_seed_is_the_same_race() {
        for seed in [1, 2, 3] {
            assert_eq!(simulate(&place(), seed).unwrap(), simulate(&place(), seed).unwrap());
        }
    }
}
