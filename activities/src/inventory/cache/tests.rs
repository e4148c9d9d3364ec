//! The index kept between processes: what it says, and that nothing which may happen to its file makes it say else.

mod writers;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use catalog_rules::ids::{CatalogId, EditionId};
use catalog_rules::instant::Instant;
use catalog_rules::inventory::{ArtefactRecord, By, EntryState, Leaf, Operation, Producer, Release, holders_in};
use rand_like::Lcg;
use uuid::Uuid;

use super::*;
use crate::fs::RealFs;
use crate::inventory::head::Head;
use crate::inventory::testing::SyntheticCatalog;
use crate::inventory::{FullInventory, Writer, fetch_from};
use crate::store::tests::{NOON_MS, TestClock};
use crate::store::{LocalStore, Store, StoreError};

/// Numbers that look random and are the same each time.
mod rand_like {
    pub(super) struct Lcg(pub(super) u64);

    impl Lcg {
        pub(super) fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % n
        }
    }
}

const SHAPE: SyntheticCatalog = SyntheticCatalog {
    data_products: 60,
    structure_products: 3,
    due: 6,
    waiting: 4,
    tombstones: 20,
    embargo: false,
    without_records: false,
};

fn by() -> By {
    let producer = Producer { name: "jobctl".to_owned(), version: "0.1.0".to_owned() };
    By { actor: "tester@here".to_owned(), reason: "because".to_owned(), producer, own_work: None }
}

struct World {
    dir: tempfile::TempDir,
    store: Arc<dyn Store>,
    head: Head,
}

fn world(shape: &SyntheticCatalog) -> World {
    let dir = tempfile::tempdir().unwrap();
    let head = shape.generate(&dir.path().join("catalog"), Instant::from_ms(NOON_MS.cast_signed())).unwrap();
    let store = LocalStore::new(dir.path().join("catalog"), Arc::new(RealFs), TestClock::at_ms(NOON_MS + 1000));
    World { dir, store: Arc::new(store), head }
}

impl World {
    fn folder(&self) -> std::path::PathBuf {
        self.dir.path().join("cache")
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder().join(format!("{}.leaves", SyntheticCatalog::catalog_id()))
    }

    fn fetch(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        self.store.get(path)
    }

    fn open(&self) -> LeafCache {
        LeafCache::open(&self.folder(), &SyntheticCatalog::catalog_id())
    }

    /// An index at `head`, saved, and how many leaves it read.
    fn brought(&self) -> (LeafCache, usize) {
        let mut cache = self.open();
        let brought = cache.bring_to(&self.head.root, &self.head.root_sha256, &|path| self.fetch(path)).unwrap();
        cache.save().unwrap();
        (cache, brought.leaves_read)
    }

    fn leaves(&self) -> BTreeMap<ProductId, Arc<Leaf>> {
        FullInventory::open(fetch_from(Arc::clone(&self.store))).unwrap().leaves().unwrap()
    }

    fn writer(&self) -> Writer {
        Writer::open(Arc::clone(&self.store)).unwrap()
    }

    fn release(&mut self) {
        let committed = self.writer().commit(&Operation::Release(Release::Due), &by()).unwrap();
        assert_eq!(committed.refused, []);
        self.head = FullInventory::open(fetch_from(Arc::clone(&self.store))).unwrap().head().clone();
    }
}

/// The index says what the leaves say: who holds each artefact that any edition names, but for two products of a kind,
/// fingerprint and state.
fn says_what_the_leaves_say(cache: &LeafCache, leaves: &BTreeMap<ProductId, Arc<Leaf>>) {
    let none = BTreeMap::new();
    let mut all: BTreeMap<&str, Vec<Holder>> = BTreeMap::new();
    for leaf in leaves.values() {
        for entry in leaf.editions.iter().filter_map(|entry| entry.artefacts.as_ref()) {
            all.extend(entry.keys().map(|urn| (urn.as_str(), Vec::new())));
        }
    }
    for leaf in leaves.values() {
        for (urn, holder) in holders_in(leaf, &none).unwrap_or_default() {
            all.get_mut(urn).unwrap().push(holder);
        }
    }
    assert!(all.len() > 100, "{}", all.len());
    for (urn, holders) in &all {
        for except in [None, holders.first().map(|holder| holder.product_id.clone())] {
            let is_except = |product: &ProductId| except.as_ref() == Some(product);
            let mut told: HashMap<_, BTreeSet<&ProductId>> = HashMap::new();
            let mut expected = Vec::new();
            for holder in holders.iter().filter(|holder| !is_except(&holder.product_id)) {
                let class = (holder.kind == Kind::Data, holder.is_live, holder.fingerprint.clone());
                let told = told.entry(class).or_default();
                told.insert(&holder.product_id);
                if told.len() <= 2 {
                    expected.push(holder.clone());
                } else {
                    told.remove(&holder.product_id);
                }
            }
            assert_eq!(cache.full(urn, &is_except), expected, "{urn}");
        }
    }
    let waiting = leaves.iter().filter(|(_, leaf)| leaf.editions.iter().any(|e| e.state == EntryState::Embargoed));
    assert_eq!(cache.with_embargoed(), waiting.map(|(product, _)| product.clone()).collect());
    assert_eq!(cache.full("urn:nobody", &|_| false), []);
}

#[test]
fn it_says_what_the_leaves_say_and_is_read_again_without_a_leaf() {
    let mut world = world(&SHAPE);
    let (cache, read) = world.brought();
    assert_eq!(read, 63);
    let leaves = world.leaves();
    says_what_the_leaves_say(&cache, &leaves);
    assert_eq!(cache.reflects().unwrap().root_sha256, world.head.root_sha256);
    assert_eq!(cache.reflects().unwrap().seq, world.head.seq());

    let (again, read) = world.brought();
    assert_eq!((read, again.opaque()), (0, BTreeSet::new()));
    says_what_the_leaves_say(&again, &leaves);

    // A release of six: too few to write the file again, so that the next one reads them too.
    world.release();
    for _ in 0..2 {
        let (cache, read) = world.brought();
        assert_eq!((read, cache.reflects().unwrap().seq), (6, world.head.seq()));
        says_what_the_leaves_say(&cache, &world.leaves());
    }
}

#[test]
fn many_changes_are_put_into_the_file_with_what_did_not_change() {
    let shape = SyntheticCatalog { due: 20, ..SHAPE };
    let mut world = world(&shape);
    world.brought();
    world.release();
    assert_eq!(world.brought().1, 20);
    let (cache, read) = world.brought();
    assert_eq!(read, 0, "the file was written again");
    says_what_the_leaves_say(&cache, &world.leaves());
    // Back to the version before, as after a restore: the same leaves, and no other.
    let before = FullInventory::open(fetch_from(Arc::clone(&world.store))).unwrap();
    world.head = before.version(before.head().seq().before().unwrap()).unwrap().unwrap();
    let (cache, read) = world.brought();
    assert_eq!(read, 20);
    let leaves = before.leaves_in(&world.head, world.head.root.products.keys()).unwrap();
    says_what_the_leaves_say(&cache, &leaves);
}

#[test]
fn products_that_come_and_go_are_followed() {
    let world = world(&SHAPE);
    let (mut cache, _) = world.brought();
    let leaves = world.leaves();
    let mut lcg = Lcg(7);
    for round in 0..40_u64 {
        // Any part of the products, from few to all.
        let (mut root, part) = (world.head.root.clone(), 1 + lcg.below(20));
        root.products.retain(|_, _| lcg.below(20) < part);
        let kept = leaves.iter().filter(|(product, _)| root.products.contains_key(*product));
        let kept: BTreeMap<_, _> = kept.map(|(product, leaf)| (product.clone(), Arc::clone(leaf))).collect();
        let sha256 = Sha256Hex::of(&round.to_le_bytes());
        cache.bring_to(&root, &sha256, &|path| world.fetch(path)).unwrap();
        assert_eq!(cache.known().map(|(product, _)| product).collect::<Vec<_>>(), kept.keys().collect::<Vec<_>>());
        if kept.len() > 10 {
            says_what_the_leaves_say(&cache, &kept);
        }
        if round % 7 == 3 {
            cache.save().unwrap();
            cache = world.open();
        }
    }
}

#[test]
fn after_an_error_it_is_as_before() {
    let world = world(&SHAPE);
    let mut cache = world.open();
    let reads = AtomicU64::new(0);
    let failing = |path: &str| {
        if reads.fetch_add(1, Ordering::Relaxed) == 40 { Ok(None) } else { world.fetch(path) }
    };
    let error = cache.bring_to(&world.head.root, &world.head.root_sha256, &failing).unwrap_err();
    assert!(error.to_string().contains("is missing"), "{error}");
    assert_eq!((cache.reflects(), cache.known().count()), (None, 0));
    cache.save().unwrap();
    assert!(!world.file().exists(), "there is nothing to save");
    cache.bring_to(&world.head.root, &world.head.root_sha256, &|path| world.fetch(path)).unwrap();
    says_what_the_leaves_say(&cache, &world.leaves());
}

/// Whatever is done to the file, the index is right afterwards, and a file that is not whole is built again.
fn survives(world: &World, what: &str, harm: impl FnOnce(&Path), expected_read: usize) {
    world.brought();
    harm(&world.file());
    let (cache, read) = world.brought();
    assert_eq!(read, expected_read, "{what}");
    assert_eq!(cache.reflects().unwrap().root_sha256, world.head.root_sha256, "{what}");
    assert_eq!(world.brought().1, 0, "{what}: the file is whole again");
}

#[test]
fn a_file_that_is_deleted_truncated_or_foreign_is_built_again() {
    let world = world(&SHAPE);
    let all = 63;
    survives(&world, "deleted", |file| fs::remove_file(file).unwrap(), all);
    survives(&world, "its folder deleted", |file| fs::remove_dir_all(file.parent().unwrap()).unwrap(), all);
    survives(&world, "empty", |file| fs::write(file, b"").unwrap(), all);
    survives(&world, "of another program", |file| fs::write(file, b"{\"leaves\": []}").unwrap(), all);
    let length = fs::metadata(world.file()).unwrap().len();
    for cut in [1, 31, 32, 33, length / 2, length - 84, length - 1] {
        let harm = |file: &Path| {
            let file = OpenOptions::new().write(true).open(file).unwrap();
            file.set_len(length - cut).unwrap();
        };
        survives(&world, &format!("{cut} bytes short"), harm, all);
    }
    survives(&world, "longer", |file| fs::write(file, [fs::read(file).unwrap(), vec![0; 9]].concat()).unwrap(), all);
    survives(&world, "left half written", |file| fs::write(file.with_extension("leaves-new"), b"half").unwrap(), 0);
}

#[test]
fn no_flipped_bit_is_believed() {
    let world = world(&SyntheticCatalog { data_products: 20, structure_products: 1, due: 0, waiting: 2, ..SHAPE });
    world.brought();
    let whole = fs::read(world.file()).unwrap();
    let mut lcg = Lcg(11);
    // Every byte of the header and of the digest, and places in between.
    let places = (0..84).chain(whole.len() - 32..whole.len()).chain((0..300).map(|_| lcg.below(whole.len())));
    for at in places {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        assert!(Snapshot::parse(bytes, &SyntheticCatalog::catalog_id()).is_none(), "bit {} of byte {at}", at % 8);
    }
    survives(
        &world,
        "a flipped bit",
        |file| {
            let mut bytes = whole.clone();
            bytes[whole.len() / 2] ^= 4;
            fs::write(file, bytes).unwrap();
        },
        21,
    );
}

/// The digest over what was changed, as a program would write it.
fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
    use sha2::Digest as _;
    let body = bytes.len() - 32;
    let digest = sha2::Sha256::digest(&bytes[..body]);
    bytes[body..].copy_from_slice(&digest);
    bytes
}

#[test]
fn an_older_format_and_another_catalog_are_built_again() {
    let world = world(&SHAPE);
    world.brought();
    let whole = fs::read(world.file()).unwrap();
    for format in [snapshot::FORMAT - 1, snapshot::FORMAT + 1] {
        let mut other = whole.clone();
        other[8..12].copy_from_slice(&format.to_le_bytes());
        survives(&world, "another format", |file| fs::write(file, signed(other)).unwrap(), 63);
    }
    // A file of another catalog under this one's name: a catalog that was replaced by a copy under a new id, say.
    let other: CatalogId = "01a18e76-2bad-7480-abfe-2ba8a6889a46".parse().unwrap();
    let mut cache = LeafCache::open(&world.folder(), &other);
    assert_eq!(cache.reflects(), None);
    cache.bring_to(&world.head.root, &world.head.root_sha256, &|path| world.fetch(path)).unwrap();
    cache.save().unwrap();
    assert_ne!(cache.path(), world.file());
    survives(&world, "another catalog", |file| assert!(fs::copy(cache.path(), file).unwrap() > 0), 63);
    // One that contradicts itself, though its digest is right: no record leads out of it.
    for (at, what) in [(68, "products"), (72, "editions"), (76, "holdings"), (80, "names")] {
        for by in [1_u32, u32::MAX] {
            let mut wrong = whole.clone();
            let count = u32::from_le_bytes(wrong[at..at + 4].try_into().unwrap()).wrapping_add(by);
            wrong[at..at + 4].copy_from_slice(&count.to_le_bytes());
            survives(&world, what, |file| fs::write(file, signed(wrong)).unwrap(), 63);
        }
    }
    let mut lcg = Lcg(13);
    for _ in 0..2000 {
        let mut wrong = whole.clone();
        for _ in 0..4 {
            let at = 84 + lcg.below(wrong.len() - 84 - 32);
            wrong[at] = lcg.below(256) as u8;
        }
        // Taken or not, it is searched without a step out of bounds.
        if let Some(parsed) = Snapshot::parse(signed(wrong), &SyntheticCatalog::catalog_id()) {
            assert!(parsed.products().count() == 63 && parsed.holding(&key("urn:x")).count() == 0);
        }
    }
}

#[test]
fn entries_without_records_make_their_products_opaque() {
    let old = world(&SyntheticCatalog { without_records: true, ..SHAPE });
    let (cache, _) = old.brought();
    assert_eq!(cache.opaque().len(), 63);
    // A fingerprint of another form is kept out of the index too, and so is nothing else.
    let world = world(&SHAPE);
    let mut leaf = world.leaves()[&SyntheticCatalog::data_product(1)].as_ref().clone();
    let live = leaf.editions.iter_mut().find(|entry| entry.state == EntryState::Live).unwrap();
    let record = ArtefactRecord { fingerprint: "sha3:00".to_owned(), partial_of: None };
    live.artefacts.as_mut().unwrap().insert("urn:other".to_owned(), record);
    let product = Product::of(&leaf, &Sha256Hex::of(b""));
    assert!(product.is_opaque && product.held.is_empty());
    let id: EditionId = edition_id(Uuid::parse_str(live_id(&leaf).as_str()).unwrap().into_bytes()).unwrap();
    assert_eq!(id, live_id(&leaf));
}

fn live_id(leaf: &Leaf) -> EditionId {
    leaf.live().next().unwrap().edition_id.clone()
}

/// A child of this test: it brings the index up and saves it, again and again.
const WORK_IN: &str = "JOBCTL_TEST_LEAF_CACHE";

#[test]
fn two_processes_share_it() {
    let shape = SyntheticCatalog { due: 20, ..SHAPE };
    if let Some(dir) = std::env::var_os(WORK_IN) {
        let dir = std::path::PathBuf::from(dir);
        let store = LocalStore::new(dir.join("catalog"), Arc::new(RealFs), TestClock::at_ms(NOON_MS + 1000));
        work(&FullInventory::open(fetch_from(Arc::new(store))).unwrap(), &dir.join("cache"));
        return;
    }
    let mut world = world(&shape);
    world.release();
    let children: Vec<_> = (0..2)
        .map(|_| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "inventory::cache::tests::two_processes_share_it"])
                .env(WORK_IN, world.dir.path())
                .spawn()
                .unwrap()
        })
        .collect();
    work(&FullInventory::open(fetch_from(Arc::clone(&world.store))).unwrap(), &world.folder());
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let (cache, _) = world.brought();
    says_what_the_leaves_say(&cache, &world.leaves());
}

/// Opens the index anew many times, at one of two versions that differ in more than is kept beside, and saves it.
fn work(inventory: &FullInventory, folder: &Path) {
    let newest = inventory.head().clone();
    let older = inventory.version(newest.seq().before().unwrap()).unwrap().unwrap();
    let leaves: Vec<_> = [&newest, &older]
        .into_iter()
        .map(|version| (version, inventory.leaves_in(version, version.root.products.keys()).unwrap()))
        .collect();
    let served: Mutex<BTreeMap<String, Bytes>> = Mutex::default();
    for (version, leaves) in &leaves {
        for (product, leaf) in leaves {
            use catalog_rules::inventory::Document as _;
            let path = catalog_rules::layout::leaf(version.root.leaf_sha256(product).unwrap());
            served.lock().unwrap().insert(path, Bytes::from(leaf.encode().unwrap()));
        }
    }
    let fetch = |path: &str| Ok(served.lock().unwrap().get(path).cloned());
    for round in 0..40 {
        let (version, leaves) = &leaves[round % 2];
        let mut cache = LeafCache::open(folder, &SyntheticCatalog::catalog_id());
        cache.bring_to(&version.root, &version.root_sha256, &fetch).unwrap();
        says_what_the_leaves_say(&cache, leaves);
        cache.save().unwrap();
    }
}
