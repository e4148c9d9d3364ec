//! What the cases measure with: time, memory, and every call that reaches the disk.

use std::collections::BTreeMap;
use std::fs::File;
use std::future::Future;
use std::io::{self, Write as _};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use activities::fs::{Fs, RealFs};
use engine_rules::clock::Clock;
use serde_json::{Value, json};

/// The machine's clock.
pub struct WallClock(Instant);

impl WallClock {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures the machine's time")]
    pub fn new() -> Self {
        Self(Instant::now())
    }
}

impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "a benchmark runs at the machine's time")]
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    fn monotonic_us(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn new_id(&self) -> uuid::Uuid {
        uuid::Uuid::nil()
    }

    fn chance(&self) -> f64 {
        0.5
    }

    fn sleep_ms(&self, _: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::ready(()))
    }
}

/// What reached the disk.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// How often a file of each kind was read.
    pub reads: BTreeMap<&'static str, u64>,
    /// How many files of each kind were created or replaced.
    pub writes: BTreeMap<&'static str, u64>,
    pub fsyncs: u64,
    pub fsync_us: u64,
}

/// The kind of the object at a path of a catalog.
pub fn kind(path: &Path) -> &'static str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    match (folder, name) {
        (_, "CURRENT") => "current",
        (_, "catalog.json") => "catalog_json",
        (_, "manifest.json") => "manifest",
        ("inventory", _) => "root",
        ("leaves", _) => "leaf",
        _ => "other",
    }
}

/// The disk, watched.
#[derive(Debug, Default)]
pub struct WatchedFs {
    seen: Mutex<Seen>,
}

impl WatchedFs {
    /// What was seen since the last time.
    pub fn take(&self) -> Seen {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, note: impl FnOnce(&mut Seen)) {
        note(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner));
    }

    #[expect(clippy::disallowed_methods, reason = "a benchmark measures the machine's time")]
    fn synced(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let start = Instant::now();
        let result = sync();
        let us = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.note(|seen| {
            seen.fsyncs += 1;
            seen.fsync_us += us;
        });
        result
    }
}

impl Fs for WatchedFs {
    fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        self.note(|seen| *seen.reads.entry(kind(path)).or_default() += 1);
        RealFs.read(path)
    }
    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        RealFs.write_new(path, bytes)
    }
    fn fsync_file(&self, path: &Path) -> io::Result<()> {
        self.synced(|| RealFs.fsync_file(path))
    }
    fn fsync_dir(&self, path: &Path) -> io::Result<()> {
        self.synced(|| RealFs.fsync_dir(path))
    }
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note(|seen| *seen.writes.entry(kind(to)).or_default() += 1);
        RealFs.rename_new(from, to)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note(|seen| *seen.writes.entry(kind(to)).or_default() += 1);
        RealFs.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<bool> {
        RealFs.remove_file(path)
    }
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        RealFs.create_dir_all(path)
    }
}

/// The most memory that this process ever had, in MB of a million bytes.
pub fn peak_rss_mb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some((kib * 1024).div_ceil(1_000_000))
}

/// Processor time of this process so far, all threads, in microseconds: what hardly depends on who else is at work.
pub fn cpu_us() -> u64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    u64::try_from(spent.tv_sec * 1_000_000 + spent.tv_nsec / 1000).unwrap_or_default()
}

/// Milliseconds with three digits.
pub fn ms(us: u64) -> Value {
    json!(us as f64 / 1000.0)
}

/// What a small file's fsync and its folder's cost just now, in microseconds: the median of twenty of each.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures the machine's time")]
pub fn fsync_us(folder: &Path) -> io::Result<(u64, u64)> {
    let dir = tempfile::tempdir_in(folder)?;
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    let us = |start: Instant| u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
    for n in 0..20 {
        let mut file = File::create(dir.path().join(n.to_string()))?;
        file.write_all(&[0; 4096])?;
        let start = Instant::now();
        file.sync_all()?;
        files.push(us(start));
        let start = Instant::now();
        File::open(dir.path())?.sync_all()?;
        folders.push(us(start));
    }
    Ok((median(&mut files), median(&mut folders)))
}

/// The middle one.
pub fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Asks the system to forget what it holds of the files in `folder`, so that the next read comes from the disk.
pub fn forget(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let file = File::open(entry.path())?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
        }
    }
    Ok(())
}
