use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use engine_rules::clock::Clock;
use uuid::Uuid;

use super::*;
use crate::fs::RealFs;
use crate::fs::testing::RecordingFs;

/// A clock that moves by a microsecond whenever it is asked, and that really waits.
#[derive(Debug)]
pub(crate) struct TestClock {
    us: AtomicU64,
}

impl TestClock {
    pub(crate) fn at_ms(ms: u64) -> Arc<Self> {
        Arc::new(Self { us: AtomicU64::new(ms * 1000) })
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> i64 {
        i64::try_from(self.us.fetch_add(1, Ordering::SeqCst) / 1000).unwrap()
    }

    fn monotonic_us(&self) -> u64 {
        self.us.fetch_add(1, Ordering::SeqCst)
    }

    fn new_id(&self) -> Uuid {
        let us = self.us.fetch_add(1, Ordering::SeqCst);
        Uuid::from_u128(u128::from(us / 1000) << 80 | 7 << 76 | 1 << 63 | u128::from(us))
    }

    fn chance(&self) -> f64 {
        0.5
    }

    fn sleep_ms(&self, ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            // A real pause, since the thread that is waited for runs in real time.
            std::thread::park_timeout(std::time::Duration::from_millis(ms));
            self.us.fetch_add(ms * 1000, Ordering::SeqCst);
        })
    }
}

/// 2026-10-09T12:30:00Z.
pub(crate) const NOON_MS: u64 = 1_791_549_000_000;

fn local(root: PathBuf, fs: Arc<dyn Fs>) -> LocalStore {
    LocalStore::new(root, fs, TestClock::at_ms(NOON_MS))
}

use crate::fs::Fs;

#[test]
fn the_local_store_keeps_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    let n = AtomicU64::new(0);
    contract::suite(&|| {
        let n = n.fetch_add(1, Ordering::SeqCst);
        Arc::new(local(dir.path().join(n.to_string()), Arc::new(RealFs)))
    })
    .unwrap();
}

#[test]
fn the_memory_store_keeps_the_contract() {
    contract::suite(&|| Arc::new(MemoryStore::new(TestClock::at_ms(NOON_MS)))).unwrap();
}

#[test]
fn the_overlay_keeps_the_contract() {
    let beneath = || Arc::new(MemoryStore::new(TestClock::at_ms(NOON_MS)));
    contract::suite(&|| Arc::new(OverlayStore::over(beneath()))).unwrap();
}

#[test]
fn nothing_beneath_an_overlay_changes() {
    let (kept, new) = (Bytes::from_static(b"kept"), Bytes::from_static(b"new"));
    let beneath = Arc::new(MemoryStore::new(TestClock::at_ms(NOON_MS)));
    for path in ["CURRENT", "a/one", "a/two", "a/b/three"] {
        beneath.create(path, &kept).unwrap();
    }
    let overlay = OverlayStore::over(beneath.clone()).at(Instant::from_ms(7));
    assert_eq!(overlay.create("a/one", &new).unwrap(), Create::Lost(kept.clone()));
    assert_eq!(overlay.replace("CURRENT", Some(&kept), &new).unwrap(), Replace::Done);
    assert_eq!(overlay.replace("CURRENT", Some(&kept), &new).unwrap(), Replace::Done, "it has these bytes");
    assert_eq!(overlay.create("a/c/four", &new).unwrap(), Create::Won);
    assert!(overlay.delete("a/one").unwrap() && !overlay.delete("a/one").unwrap());
    assert_eq!(overlay.delete_if("a/two", &new).unwrap(), Delete::Changed(kept.clone()));
    let listing = overlay.list("a").unwrap();
    assert_eq!((listing.objects, listing.folders), (vec!["two".to_owned()], vec!["b".to_owned(), "c".to_owned()]));
    assert_eq!((overlay.get("a/one").unwrap(), overlay.get("CURRENT").unwrap()), (None, Some(new)));
    assert_eq!(overlay.now().unwrap(), Instant::from_ms(7));
    for path in ["CURRENT", "a/one", "a/two", "a/b/three"] {
        assert_eq!(beneath.get(path).unwrap(), Some(kept.clone()), "{path}");
    }
    assert_eq!(beneath.list("a").unwrap().folders, ["b"]);
}

#[test]
fn a_create_that_failed_late_is_settled_by_reading_back() {
    // Call by call: folder, its parents, temporary file, fsync, rename, fsync of the folder.
    let operations = |recording: &RecordingFs| recording.calls().into_iter().map(|c| c.operation).collect::<Vec<_>>();
    let dir = tempfile::tempdir().unwrap();
    let recording = Arc::new(RecordingFs::new());
    let store = local(dir.path().join("whole"), recording.clone());
    assert_eq!(store.create("inventory/x", &Bytes::from_static(b"x")).unwrap(), Create::Won);
    let whole = operations(&recording);
    assert_eq!(whole, ["create_dir_all", "fsync_dir", "write_new", "fsync_file", "rename_new", "fsync_dir"]);

    for n in 0..whole.len() {
        let failing = Arc::new(RecordingFs::failing_at(n));
        let store = local(dir.path().join(n.to_string()), failing.clone());
        let outcome = store.create("inventory/x", &Bytes::from_static(b"x"));
        let there = store.get("inventory/x").unwrap();
        if n + 1 == whole.len() {
            // The name was there before the folder's fsync failed: it is made durable again, and then it counts.
            assert_eq!(outcome.unwrap(), Create::Won);
            assert_eq!(operations(&failing)[n + 1..], ["fsync_file", "fsync_dir"]);
        } else {
            assert!(outcome.is_err(), "call {n}");
            assert_eq!(there, None, "call {n}");
        }
        assert_eq!(store.create("inventory/x", &Bytes::from_static(b"x")).unwrap(), Create::Won, "again after {n}");
        assert_eq!(store.list("inventory").unwrap().objects, ["x"]);
    }
}

#[test]
fn a_full_disk_is_for_a_person_and_says_so() {
    use engine_rules::failure::{ActivityError as _, Disposition};
    let dir = tempfile::tempdir().unwrap();
    let store = local(dir.path().join("c"), Arc::new(RecordingFs::failing_at(2)));
    let error = store.create("CURRENT", &Bytes::from_static(b"x")).unwrap_err();
    assert_eq!(error.code(), "store.unsettled");
    assert_eq!(error.disposition(), Disposition::Operator);
    assert!(error.hint().unwrap().contains("make room"), "{error}");
}

#[test]
fn what_killed_writers_left_goes_with_the_next_lock() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("c");
    let store = local(root.clone(), Arc::new(RealFs));
    store.create("inventory/leaves/x", &Bytes::from_static(b"x")).unwrap();
    let left = ["", "inventory", "inventory/leaves"].map(|folder| root.join(folder).join(".jobctl-tmp-7-0"));
    for path in &left {
        std::fs::write(path, b"half").unwrap();
    }
    // A process that already swept does not do so again; another one does.
    let other = local(root.clone(), Arc::new(RealFs));
    drop(other.lock().unwrap());
    for path in &left {
        assert!(!path.exists(), "{}", path.display());
    }
    assert_eq!(store.get("inventory/leaves/x").unwrap().unwrap(), b"x".as_slice());
}
