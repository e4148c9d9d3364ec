//! Measures the Inventory on a made-up catalog of 7,000 products: the live view, one version, a release, a reload,
//! `verify`. One JSON object a line; each case is a process of its own, so that its peak memory is its own.
//!
//!     cargo bench -p activities --bench inventory -- [--products N] [--tombstones N] [--keep FOLDER]
//!
//! What is on the disk: leaves, roots and manifests as a publish writes them, and every listed file, but with a line of
//! text in place of tables (`activities::inventory::testing`). "Cold" is a new process; the files are in the system's
//! memory, except in the case that says `from_disk`.

#[path = "inventory/measure.rs"]
mod measure;

use std::collections::BTreeSet;
use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use activities::inventory::testing::{EDITIONS, SyntheticCatalog};
use activities::inventory::{Committed, FullInventory, LiveInventory, Writer, fetch_from, verify};
use activities::store::{LocalStore, Store};
use catalog_rules::ids::Sha256Hex;
use catalog_rules::instant::Instant;
use catalog_rules::inventory::{By, EntryState, Mark, Operation, Producer, Record, Release};
use catalog_rules::layout;
use engine_rules::clock::Clock as _;
use measure::{Seen, WallClock, WatchedFs, cpu_us, forget, fsync_us, median, ms, peak_rss_mb};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn Error>>;

const DATA_PRODUCTS: u64 = 6_988;
const STRUCTURE_PRODUCTS: u64 = 12;
const RELEASED: u64 = 200;
const TOMBSTONES: u64 = 50_000;
/// Versions of one product that are written one after another.
const VERSIONS: usize = 5;

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let value = |name: &str| args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1));
    let number = |name: &str, default: u64| value(name).map_or(Ok(default), |text| text.parse());
    let shape = SyntheticCatalog {
        data_products: number("--products", DATA_PRODUCTS + STRUCTURE_PRODUCTS)?.saturating_sub(STRUCTURE_PRODUCTS),
        structure_products: STRUCTURE_PRODUCTS,
        due: RELEASED,
        waiting: RELEASED,
        tombstones: number("--tombstones", 0)?,
        embargo: false,
        without_records: false,
    };
    if let (Some(case), Some(folder)) = (value("--case"), value("--folder")) {
        return Case { shape, folder: PathBuf::from(folder), clock: Arc::new(WallClock::new()) }.run(case);
    }
    let given = value("--tombstones").is_some();
    let both = [0, TOMBSTONES];
    let tombstones = if given { std::slice::from_ref(&shape.tombstones) } else { &both[..] };
    for tombstones in tombstones {
        all_cases(&SyntheticCatalog { tombstones: *tombstones, ..shape }, value("--keep").map(Path::new))?;
    }
    Ok(())
}

/// Makes the catalog and runs each case in a process of its own.
fn all_cases(shape: &SyntheticCatalog, keep: Option<&Path>) -> Outcome {
    let dir = tempfile::Builder::new().prefix("jobctl-bench-").tempdir_in(keep.unwrap_or(&std::env::temp_dir()))?;
    let folder = if keep.is_some() { dir.keep() } else { dir.path().to_owned() };
    let clock = WallClock::new();
    let start_us = clock.monotonic_us();
    let head = shape.generate(&folder.join("catalog"), Instant::from_ms(clock.now_ms()))?;
    let root_bytes = std::fs::metadata(folder.join("catalog").join(layout::root(head.seq())))?.len();
    let leaf_bytes = std::fs::read_dir(folder.join("catalog").join(layout::LEAVES))?
        .try_fold(0, |sum, entry| entry.and_then(|entry| entry.metadata()).map(|found| sum + found.len()))?;
    print(&json!({
        "bench": "inventory",
        "case": "generate",
        "products": head.root.products.len(),
        "tombstones": head.root.retired.len(),
        "root_bytes": root_bytes,
        "leaf_bytes": leaf_bytes,
        "took_ms": ms(clock.monotonic_us() - start_us),
    }))?;
    // From here on the disk has nothing of ours to write any more.
    rustix::fs::sync();
    for case in CASES {
        let status = Command::new(std::env::current_exe()?)
            .args(["--case", case, "--folder"])
            .arg(&folder)
            .args(["--products", &(shape.data_products + shape.structure_products).to_string()])
            .args(["--tombstones", &shape.tombstones.to_string()])
            .status()?;
        if !status.success() {
            return Err(format!("the case {case} failed").into());
        }
    }
    Ok(())
}

fn print(line: &Value) -> Outcome {
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}

/// In the order in which they run: the ones that change the catalog come last.
const CASES: [&str; 9] = [
    "live_cold",
    "live_cold_from_disk",
    "full_cold",
    "verify",
    "one_product_without_cache",
    "one_product_first_cache",
    "one_product_with_cache",
    "release",
    "verify_after",
];

struct Case {
    shape: SyntheticCatalog,
    folder: PathBuf,
    clock: Arc<WallClock>,
}

impl Case {
    fn run(&self, case: &str) -> Outcome {
        match case {
            "live_cold" => self.live_cold(case),
            "live_cold_from_disk" => {
                forget(&self.catalog().join(layout::INVENTORY))?;
                forget(&self.catalog().join(layout::LEAVES))?;
                self.live_cold(case)
            }
            "full_cold" => self.full_cold(case),
            "verify" | "verify_after" => self.verify(case),
            "one_product_without_cache" => self.one_product(case, 0, VERSIONS),
            "one_product_first_cache" => self.one_product(case, VERSIONS, 1),
            "one_product_with_cache" => self.one_product(case, VERSIONS + 1, VERSIONS),
            "release" => self.release(),
            other => Err(format!("there is no case {other}").into()),
        }
    }

    fn catalog(&self) -> PathBuf {
        self.folder.join("catalog")
    }

    fn store(&self) -> (Arc<WatchedFs>, Arc<dyn Store>) {
        let fs = Arc::new(WatchedFs::default());
        let store = LocalStore::new(self.catalog(), fs.clone(), self.clock.clone());
        (fs, Arc::new(store))
    }

    fn line(&self, case: &str) -> Value {
        json!({"bench": "inventory", "case": case, "tombstones": self.shape.tombstones})
    }

    fn by() -> By {
        By {
            actor: "bench@here".to_owned(),
            reason: "measured".to_owned(),
            producer: Producer { name: "jobctl".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            own_work: None,
        }
    }

    fn live_cold(&self, case: &str) -> Outcome {
        let (_, store) = self.store();
        let (start_us, start_cpu) = (self.clock.monotonic_us(), cpu_us());
        let live = LiveInventory::open(fetch_from(store))?;
        let opened_us = self.clock.monotonic_us();
        let editions = live.editions()?.len() as u64;
        let read_us = self.clock.monotonic_us();
        let expected = self.shape.data_products + self.shape.structure_products;
        if editions != expected {
            return Err(format!("{editions} live editions, expected {expected}").into());
        }
        let mut line = self.line(case);
        line["editions"] = json!(editions);
        line["open_ms"] = ms(opened_us - start_us);
        line["took_ms"] = ms(read_us - start_us);
        line["cpu_ms"] = ms(cpu_us() - start_cpu);
        line["peak_rss_mb"] = json!(peak_rss_mb());
        line["bar_ms"] = json!(600);
        line["bar_peak_rss_mb"] = json!(200);
        print(&line)
    }

    fn full_cold(&self, case: &str) -> Outcome {
        let (fs, store) = self.store();
        let start_us = self.clock.monotonic_us();
        let full = FullInventory::open(fetch_from(store))?;
        let leaves = full.leaves()?.len();
        let took_us = self.clock.monotonic_us() - start_us;
        let again = full.embargoed()?.len() as u64;
        let seen = fs.take();
        let mut line = self.line(case);
        line["leaves"] = json!(leaves);
        line["embargoed"] = json!(again);
        line["took_ms"] = ms(took_us);
        line["leaf_reads"] = json!(seen.reads.get("leaf"));
        line["peak_rss_mb"] = json!(peak_rss_mb());
        print(&line)
    }

    fn verify(&self, case: &str) -> Outcome {
        let (fs, store) = self.store();
        let (start_us, start_cpu) = (self.clock.monotonic_us(), cpu_us());
        let verified = verify(store.as_ref(), &self.catalog(), false)?;
        let took_us = self.clock.monotonic_us() - start_us;
        if let Some(finding) = verified.findings.first() {
            return Err(format!("{} findings, first {finding:?}", verified.findings.len()).into());
        }
        let seen = fs.take();
        let mut line = self.line(case);
        line["versions"] = json!(verified.versions);
        line["leaves"] = json!(verified.leaves);
        line["manifests"] = json!(seen.reads.get("manifest"));
        line["files"] = json!(verified.files);
        line["took_ms"] = ms(took_us);
        line["cpu_ms"] = ms(cpu_us() - start_cpu);
        line["peak_rss_mb"] = json!(peak_rss_mb());
        line["bar_ms"] = json!(3000);
        print(&line)
    }

    /// Puts the manifest of a new edition of product `of` on the disk, and gives the operation that records it.
    fn sealed(&self, of: u64, n: i64) -> Result<Operation, Box<dyn Error>> {
        let (manifest, files) = self.shape.manifest(of, n);
        let bytes = manifest.encode();
        let path = layout::manifest(&manifest.product_id, &manifest.edition_id);
        for (path, content) in files.iter().map(|(path, bytes)| (path, bytes)).chain([(&path, &bytes)]) {
            let path = self.catalog().join(path);
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            std::fs::write(path, content)?;
        }
        rustix::fs::sync();
        Ok(Operation::Record(Box::new(Record::from_manifest(&manifest, Sha256Hex::of(&bytes), None, None)?)))
    }

    /// The products that hold parts and whose newest edition is live, some way apart.
    fn live_products(&self) -> impl Iterator<Item = u64> {
        let fits = |n: &u64| SyntheticCatalog::holds_parts(*n) && self.shape.newest(*n) == EntryState::Live;
        (0..self.shape.data_products).filter(fits).step_by(100)
    }

    /// Versions of one product each, each by a writer of its own, as a publish opens one.
    fn one_product(&self, case: &str, from: usize, versions: usize) -> Outcome {
        let cached = !case.ends_with("without_cache");
        let (fs, store) = self.store();
        let (mut took, mut over, mut fsync, mut cpu) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut last = Seen::default();
        for of in self.live_products().skip(from).take(versions) {
            let operation = self.sealed(of, EDITIONS.cast_signed())?;
            fs.take();
            let (start_us, start_cpu) = (self.clock.monotonic_us(), cpu_us());
            let committed = self.writer(store.clone(), cached)?.commit(&operation, &Self::by())?;
            let took_us = self.clock.monotonic_us() - start_us;
            cpu.push(cpu_us() - start_cpu);
            last = fs.take();
            expect(&committed, Mark::Live)?;
            let writes = (last.writes.get("leaf"), last.writes.get("root"), last.writes.get("current"));
            if writes != (Some(&1), Some(&1), Some(&1)) {
                return Err(format!("a version of one product wrote {:?}", last.writes).into());
            }
            took.push(took_us);
            over.push(took_us.saturating_sub(last.fsync_us));
            fsync.push(last.fsync_us);
        }
        let (file_us, folder_us) = fsync_us(&self.folder)?;
        let mut line = self.line(case);
        line["versions"] = json!(versions);
        line["first_over_fsync_ms"] = ms(over[0]);
        line["over_fsync_ms"] = ms(median(&mut over));
        line["took_ms"] = ms(median(&mut took));
        line["cpu_ms"] = ms(median(&mut cpu));
        line["fsync_in_it_ms"] = ms(median(&mut fsync));
        line["fsyncs"] = json!(last.fsyncs);
        line["fsync_file_now_ms"] = ms(file_us);
        line["fsync_folder_now_ms"] = ms(folder_us);
        line["leaves_read"] = json!(last.reads.get("leaf"));
        line["leaves_written"] = json!(last.writes.get("leaf"));
        line["roots_written"] = json!(last.writes.get("root"));
        line["peak_rss_mb"] = json!(peak_rss_mb());
        line["bar_over_fsync_ms"] = json!(if case.ends_with("with_cache") { 40 } else { 500 });
        if cached {
            let cache = std::fs::read_dir(self.cache())?.map(|entry| entry?.metadata());
            line["cache_bytes"] =
                json!(cache.map(|found| found.map(|found| found.len())).sum::<std::io::Result<u64>>()?);
        }
        print(&line)
    }

    fn cache(&self) -> PathBuf {
        self.folder.join("cache")
    }

    fn writer(&self, store: Arc<dyn Store>, cached: bool) -> Result<Writer, Box<dyn Error>> {
        let writer = Writer::open(store)?;
        Ok(if cached { writer.cached_in(self.cache()) } else { writer })
    }

    /// A release of what is due in one version, and what a reader that was there before reads then.
    fn release(&self) -> Outcome {
        let (reader_fs, reader_store) = self.store();
        let mut live = LiveInventory::open(fetch_from(reader_store))?;
        let before = live.editions()?.len();
        let (fs, store) = self.store();
        let writer = self.writer(store, true)?;
        let (start_us, start_cpu) = (self.clock.monotonic_us(), cpu_us());
        let committed = writer.commit(&Operation::Release(Release::Due), &Self::by())?;
        let took_us = self.clock.monotonic_us() - start_us;
        let (seen, release_cpu) = (fs.take(), cpu_us() - start_cpu);
        expect(&committed, Mark::Live)?;
        if !committed.refused.is_empty() || seen.writes.get("leaf") != Some(&self.shape.due) {
            return Err(format!("{} refused, wrote {:?}", committed.refused.len(), seen.writes).into());
        }
        let (file_us, folder_us) = fsync_us(&self.folder)?;
        let mut line = self.line("release_200");
        line["released"] = json!(self.shape.due);
        line["took_ms"] = ms(took_us);
        line["cpu_ms"] = ms(release_cpu);
        // Those of the leaves run beside one another, so their sum may be more than what they took.
        line["over_fsync_ms"] = ms(took_us.saturating_sub(seen.fsync_us));
        line["fsyncs"] = json!(seen.fsyncs);
        line["fsync_in_it_ms"] = ms(seen.fsync_us);
        line["fsync_file_now_ms"] = ms(file_us);
        line["fsync_folder_now_ms"] = ms(folder_us);
        line["leaves_read"] = json!(seen.reads.get("leaf"));
        line["leaves_written"] = json!(seen.writes.get("leaf"));
        line["bar_ms"] = json!(600);
        print(&line)?;

        reader_fs.take();
        let start_us = self.clock.monotonic_us();
        let moved = live.refresh()?;
        let after = live.editions()?;
        let took_us = self.clock.monotonic_us() - start_us;
        let seen = reader_fs.take();
        let products: BTreeSet<_> = after.iter().map(|edition| &edition.product_id).collect();
        if !moved || after.len() != before || products.len() != before {
            return Err(format!("{} live editions after the release, {before} before", after.len()).into());
        }
        let mut line = self.line("reload_after_release");
        line["took_ms"] = ms(took_us);
        // The root of the new version, and the name of the one after it, which is not there.
        line["root_reads"] = json!(seen.reads.get("root"));
        line["leaf_reads"] = json!(seen.reads.get("leaf"));
        line["current_reads"] = json!(seen.reads.get("current"));
        line["all_reads"] = json!(seen.reads.values().sum::<u64>());
        print(&line)
    }
}

fn expect(committed: &Committed, mark: Mark) -> Outcome {
    if committed.state == Some(mark) && !committed.already {
        return Ok(());
    }
    Err(format!("expected {mark}, and it is {committed:?}").into())
}
