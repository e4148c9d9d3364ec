//! A product in a folder of its own, and the tools to work on it.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};

use catalog_rules::ids::{EditionId, ProductId, Sha256Hex};
use catalog_rules::sdmx::model::{Artefact, DataflowBinding};
use engine_rules::activity::ActivityContext;
use engine_rules::clock::Clock;
use tempfile::TempDir;

use crate::duck::DuckSettings;
use crate::edition::testing::Synthetic;
use crate::edition::*;
use crate::fs::{Fs, RealFs};

/// A clock that goes on by a millisecond each time it is asked.
#[derive(Debug, Default)]
pub struct TickingClock(AtomicU64);

impl Clock for TickingClock {
    fn now_ms(&self) -> i64 {
        1_790_000_000_000 + self.monotonic_us() as i64 / 1000
    }

    fn monotonic_us(&self) -> u64 {
        self.0.fetch_add(1000, Ordering::Relaxed)
    }

    fn new_id(&self) -> uuid::Uuid {
        unreachable!("editions are minted by the caller")
    }

    fn chance(&self) -> f64 {
        unreachable!("nothing here is left to chance")
    }

    fn sleep_ms(&self, _: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        unreachable!("nothing here waits")
    }
}

pub const SMALL: Synthetic = Synthetic { members: 23, products: 3, periods: 5, revision: 0 };

/// A folder that goes with the test, or one that belongs to another process.
pub enum Folder {
    Own(TempDir),
    Given(PathBuf),
}

impl Folder {
    pub fn path(&self) -> &Path {
        match self {
            Self::Own(dir) => dir.path(),
            Self::Given(path) => path,
        }
    }
}

pub struct World {
    pub dir: Folder,
    pub duck: DuckSettings,
    pub clock: TickingClock,
    pub context: ActivityContext,
    pub artefacts: Vec<Artefact>,
    pub binding: DataflowBinding,
}

impl World {
    pub fn new() -> Self {
        Self::in_folder(Folder::Own(tempfile::tempdir().unwrap()))
    }

    pub fn at(path: PathBuf) -> Self {
        Self::in_folder(Folder::Given(path))
    }

    fn in_folder(dir: Folder) -> Self {
        let duck = DuckSettings { threads: 2, ..DuckSettings::new(dir.path().join("temp")) };
        Self {
            dir,
            duck,
            clock: TickingClock::default(),
            context: ActivityContext::detached(),
            artefacts: SMALL.artefacts(),
            binding: Synthetic::binding(),
        }
    }

    pub fn product(&self) -> PathBuf {
        // DuckDB must take any folder: quotes, spaces and what it could read as a pattern.
        self.dir.path().join("it's a [cata]*log/products/99100001")
    }

    pub fn edition(&self, n: u64) -> PathBuf {
        self.product().join(Synthetic::edition_id(n).as_str())
    }

    pub fn tools<'a>(&'a self, fs: &'a dyn Fs) -> Tools<'a> {
        Tools { fs, clock: &self.clock, duck: &self.duck, context: &self.context }
    }

    pub fn build_with(
        &self,
        fs: &dyn Fs,
        n: u64,
        previous: Option<u64>,
        source: &dyn ObservationSource,
    ) -> Result<Built, EditionError> {
        let previous = previous.map(Synthetic::edition_id);
        let order = BuildOrder {
            product_dir: &self.product(),
            product_id: &Synthetic::product_id(),
            edition_id: &Synthetic::edition_id(n),
            previous: previous.as_ref(),
            artefacts: &self.artefacts,
            tables: &[BoundTable { binding: &self.binding, source }],
        };
        build(&self.tools(fs), &order)
    }

    pub fn build(&self, n: u64, previous: Option<u64>, source: &dyn ObservationSource) -> Built {
        self.build_with(&RealFs, n, previous, source).unwrap()
    }

    pub fn seal_with(&self, fs: &dyn Fs, n: u64, previous: Option<u64>) -> Result<Sealed, EditionError> {
        let product_id: ProductId = Synthetic::product_id();
        let edition_id: EditionId = Synthetic::edition_id(n);
        let previous = previous.map(Synthetic::edition_id);
        let order = SealOrder {
            product_dir: &self.product(),
            product_id: &product_id,
            edition_id: &edition_id,
            previous: previous.as_ref(),
            producer: None,
            is_final: false,
            tiers: &[],
            producer_fields: serde_json::Map::new(),
            extensions: BTreeMap::new(),
            provenance: None,
        };
        seal(&self.tools(fs), &order)
    }

    pub fn seal(&self, n: u64, previous: Option<u64>) -> Sealed {
        self.seal_with(&RealFs, n, previous).unwrap()
    }

    pub fn publish(&self, n: u64, previous: Option<u64>, source: &dyn ObservationSource) -> (Built, Sealed) {
        (self.build(n, previous, source), self.seal(n, previous))
    }

    pub fn check(&self, n: u64, at: Profile) -> Report {
        check(&self.tools(&RealFs), &self.edition(n), &CheckOptions::at(at)).unwrap()
    }

    pub fn findings(&self, n: u64, at: Profile) -> Vec<String> {
        self.check(n, at).findings.iter().map(ToString::to_string).collect()
    }
}

/// Every file below `folder` with its digest.
pub fn snapshot(folder: &Path) -> BTreeMap<String, Sha256Hex> {
    fn walk(root: &Path, folder: &Path, found: &mut BTreeMap<String, Sha256Hex>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.insert(name, Sha256Hex::of(&fs::read(&path).unwrap()));
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(folder, folder, &mut found);
    found
}

pub fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_tree(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// A source of given rows: the columns `A`, `TIME_PERIOD` and `V`, each row with its line.
pub struct Rows(pub Vec<(Option<&'static str>, Option<&'static str>, Option<&'static str>)>);

impl ObservationSource for Rows {
    fn columns(&self) -> Vec<ObservationColumn> {
        let column =
            |name: &str, role| ObservationColumn { name: name.to_owned(), role, column_type: ColumnType::Text };
        vec![
            column("GEO", ColumnRole::Dimension),
            column("TIME_PERIOD", ColumnRole::TimePeriod),
            column("OBS_VALUE", ColumnRole::Measure),
        ]
    }

    fn for_each_batch(
        &self,
        each: &mut dyn FnMut(duckdb::arrow::array::RecordBatch) -> Result<(), Stop>,
    ) -> Result<(), SourceError> {
        use duckdb::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
        use std::sync::Arc;
        // One row a batch: faults are found in later batches too.
        for (n, (geo, period, value)) in self.0.iter().enumerate() {
            let text = |value: &Option<&str>| Arc::new(StringArray::from(vec![*value])) as ArrayRef;
            let batch = RecordBatch::try_from_iter_with_nullable([
                ("GEO", text(geo), true),
                ("TIME_PERIOD", text(period), true),
                ("OBS_VALUE", text(value), true),
                (LINE_COLUMN, Arc::new(Int64Array::from(vec![n as i64 + 2])) as ArrayRef, false),
            ]);
            each(batch.unwrap())?;
        }
        Ok(())
    }
}
