//! A writer with the index decides what a writer without it decides, and reads fewer leaves.

use std::io;
use std::sync::atomic::AtomicUsize;

use catalog_rules::inventory::{Record, Release, RollbackMove};
use catalog_rules::layout;
use catalog_rules::manifest::Manifest;

use super::*;
use crate::fs::Fs;
use crate::store::OverlayStore;

/// The disk, counting how often a leaf is read and a leaf or a root is made.
#[derive(Default)]
struct Counting {
    leaves_read: AtomicUsize,
    leaves_made: AtomicUsize,
    roots_made: AtomicUsize,
}

impl Counting {
    fn take(&self) -> [usize; 3] {
        [&self.leaves_read, &self.leaves_made, &self.roots_made].map(|count| count.swap(0, Ordering::Relaxed))
    }
}

fn is_in(path: &Path, folder: &str) -> bool {
    path.parent().is_some_and(|parent| parent.ends_with(folder))
}

impl Fs for Counting {
    fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        if is_in(path, layout::LEAVES) {
            self.leaves_read.fetch_add(1, Ordering::Relaxed);
        }
        RealFs.read(path)
    }
    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        RealFs.write_new(path, bytes)
    }
    fn fsync_file(&self, path: &Path) -> io::Result<()> {
        RealFs.fsync_file(path)
    }
    fn fsync_dir(&self, path: &Path) -> io::Result<()> {
        RealFs.fsync_dir(path)
    }
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        for (folder, count) in [(layout::LEAVES, &self.leaves_made), (layout::INVENTORY, &self.roots_made)] {
            if is_in(to, folder) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
        RealFs.rename_new(from, to)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealFs.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<bool> {
        RealFs.remove_file(path)
    }
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        RealFs.create_dir_all(path)
    }
}

/// Puts the manifest in its place and gives the operation that records its edition.
fn sealed(world: &World, manifest: &Manifest) -> Operation {
    let bytes = Bytes::from(manifest.encode());
    let path = world.dir.path().join("catalog").join(layout::manifest(&manifest.product_id, &manifest.edition_id));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, &bytes).unwrap();
    Operation::Record(Box::new(Record::from_manifest(manifest, Sha256Hex::of(&bytes), None, None).unwrap()))
}

/// The next edition of data product `of`, changed by `change`.
fn next(world: &World, shape: &SyntheticCatalog, of: u64, change: impl FnOnce(&mut Manifest)) -> Operation {
    let mut manifest = shape.manifest(of, 3).0;
    change(&mut manifest);
    manifest.content_fingerprint = Some(manifest.computed_content_fingerprint());
    sealed(world, &manifest)
}

fn operations(world: &World, shape: &SyntheticCatalog) -> Vec<(&'static str, Operation)> {
    let live: Vec<u64> = (0..shape.data_products).filter(|n| shape.newest(*n) == EntryState::Live).collect();
    let parts = *live.iter().find(|n| SyntheticCatalog::holds_parts(**n)).unwrap();
    let waiting = (0..shape.data_products).find(|n| shape.newest(*n) == EntryState::Embargoed).unwrap();
    let edit = |manifest: &mut Manifest, name: &str| {
        let entry = manifest.artefacts.iter_mut().find(|entry| entry.urn.contains(name)).unwrap();
        entry.fingerprint = Sha256Hex::of(b"edited");
    };
    let cut_from = |manifest: &mut Manifest| {
        let entry = manifest.artefacts.iter_mut().find(|entry| entry.partial).unwrap();
        entry.partial_of = Some(Sha256Hex::of(b"another"));
    };
    let homeless = |manifest: &mut Manifest| {
        let entry = manifest.artefacts.iter_mut().find(|entry| entry.partial).unwrap();
        entry.urn = "urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:CL_ZZ(1.0)".to_owned();
        manifest.sort();
    };
    let product = SyntheticCatalog::data_product;
    let back = |n: u64| {
        let edition = |k| SyntheticCatalog::edition_id(n, k);
        (product(n), vec![RollbackMove { from: edition(2), to: Some(edition(1)) }])
    };
    vec![
        ("its own artefact", next(world, shape, live[1], |manifest| edit(manifest, "CS_"))),
        ("parts", next(world, shape, parts, |_| ())),
        ("a shared artefact", next(world, shape, live[2], |manifest| edit(manifest, "CL_SYMBOL"))),
        ("parts of another edition", next(world, shape, live[5], |manifest| edit(manifest, "DSD_"))),
        ("parts of what nobody has", next(world, shape, parts, homeless)),
        ("parts of another", next(world, shape, parts, cut_from)),
        ("what is due", Operation::Release(Release::Due)),
        ("one that waits", Operation::Release(Release::Products(BTreeSet::from([product(waiting)])))),
        ("none that waits", Operation::Release(Release::Products(BTreeSet::from([product(live[0])])))),
        ("back", Operation::Rollback(BTreeMap::from([back(live[3]), back(live[4])]))),
    ]
}

fn compare(shape: &SyntheticCatalog) {
    let world = world(shape);
    let (_, read) = world.brought();
    assert_eq!(read, 63);
    let (mut written, mut refused) = (0, 0);
    for (what, operation) in operations(&world, shape) {
        // Each on the same version at the same time; equal roots are equal versions.
        let now = Instant::from_ms(NOON_MS.cast_signed() + 1000);
        let on_top = || Writer::open(Arc::new(OverlayStore::over(Arc::clone(&world.store)).at(now))).unwrap();
        let plain = on_top().commit(&operation, &by());
        let cached = on_top().cached_in(world.folder()).commit(&operation, &by());
        match (plain, cached) {
            (Ok(plain), Ok(cached)) => {
                assert_eq!(plain, cached, "{what} becomes something else with the index");
                written += usize::from(!cached.already);
            }
            (Err(plain), Err(cached)) => {
                assert_eq!(plain.to_string(), cached.to_string(), "{what}");
                refused += 1;
            }
            (plain, cached) => panic!("{what}: {plain:?} without the index, {cached:?} with it"),
        }
    }
    // Both kinds of answers were compared.
    assert!(written >= 5 && refused >= 3, "{written} written, {refused} refused");
}

#[test]
fn a_decision_is_the_same_with_the_index_and_without_it() {
    compare(&SHAPE);
    // Editions of older writers, whose leaves are read in full.
    compare(&SyntheticCatalog { without_records: true, ..SHAPE });
}

#[test]
fn a_version_of_one_product_reads_and_writes_one_leaf() {
    let world = world(&SHAPE);
    let counting = Arc::new(Counting::default());
    let root = world.dir.path().join("catalog");
    let store: Arc<dyn Store> = Arc::new(LocalStore::new(root, counting.clone(), TestClock::at_ms(NOON_MS + 1000)));
    let commit = |operation: &Operation| {
        let writer = Writer::open(Arc::clone(&store)).unwrap().cached_in(world.folder());
        counting.take();
        let committed = writer.commit(operation, &by()).unwrap();
        assert!(!committed.already && committed.refused.is_empty());
        counting.take()
    };
    let live: Vec<u64> = (0..SHAPE.data_products).filter(|n| SHAPE.newest(*n) == EntryState::Live).collect();
    // The first one builds the index. Each later one reads what the ones before it wrote, and its own.
    assert_eq!(commit(&next(&world, &SHAPE, live[0], |_| ())), [63 + 1, 1, 1]);
    assert_eq!(commit(&next(&world, &SHAPE, live[1], |_| ())), [1 + 1, 1, 1]);
    assert_eq!(commit(&next(&world, &SHAPE, live[2], |_| ())), [2 + 1, 1, 1]);
    // A release reads the leaves of the ten products with an embargoed edition, and the three.
    assert_eq!(commit(&Operation::Release(Release::Due)), [3 + 10, 6, 1]);
    // A folder that cannot be made costs the time to read every leaf, and nothing else.
    fs::remove_dir_all(world.folder()).unwrap();
    fs::write(world.folder(), b"a file").unwrap();
    assert_eq!(commit(&next(&world, &SHAPE, live[3], |_| ())), [63 + 1, 1, 1]);
}
