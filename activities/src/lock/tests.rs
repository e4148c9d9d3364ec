use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;
use crate::store::tests::{NOON_MS, TestClock};

const LOCK_OF_HOLDER: &str = "JOBCTL_TEST_LOCK";

#[test]
fn a_lock_that_stays_taken_is_busy_and_says_how_long_it_waited() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("LOCK");
    let clock = TestClock::at_ms(NOON_MS);
    let held = CatalogLock::acquire(&path, clock.as_ref(), 0).unwrap();
    let error = CatalogLock::acquire(&path, clock.as_ref(), 50).unwrap_err();
    assert!(matches!(error, LockError::Busy { waited_ms: 50..=60, .. }), "{error}");
    assert_eq!(error.code(), "catalog.busy");
    assert!(error.to_string().contains("LOCK was locked for 5"), "{error}");
    drop(held);
    drop(CatalogLock::acquire(&path, clock.as_ref(), 0).unwrap());
    assert!(path.exists(), "the lock file is never unlinked");
}

#[test]
fn threads_of_one_process_exclude_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("LOCK");
    let clock = TestClock::at_ms(NOON_MS);
    let (inside, turns) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    let _lock = CatalogLock::acquire(&path, clock.as_ref(), 60_000).unwrap();
                    assert!(!inside.swap(true, Ordering::SeqCst), "two threads held the lock");
                    turns.fetch_add(1, Ordering::SeqCst);
                    assert!(inside.swap(false, Ordering::SeqCst));
                }
            });
        }
    });
    assert_eq!(turns.load(Ordering::SeqCst), 100);
}

/// Not a test by itself: the process that the next test kills.
#[test]
fn the_holder_of_the_next_test() {
    let Some(path) = std::env::var_os(LOCK_OF_HOLDER) else { return };
    let _lock = CatalogLock::acquire(Path::new(&path), TestClock::at_ms(NOON_MS).as_ref(), 0).unwrap();
    println!("held");
    loop {
        std::thread::park();
    }
}

#[test]
fn a_killed_process_frees_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("LOCK");
    let clock = TestClock::at_ms(NOON_MS);
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lock::tests::the_holder_of_the_next_test", "--nocapture"])
        .env(LOCK_OF_HOLDER, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("held")), "the holder never held the lock");
    assert!(matches!(CatalogLock::acquire(&path, clock.as_ref(), 0), Err(LockError::Busy { .. })));
    holder.kill().unwrap();
    holder.wait().unwrap();
    drop(CatalogLock::acquire(&path, clock.as_ref(), 0).unwrap());
}
