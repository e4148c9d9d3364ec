//! A store in memory, a catalog in it, and an executor of the plans that can be stopped after any write or delete.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Map;
use uuid::Uuid;

use crate::history::*;
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;
use crate::inventory::{
    Base, By, CatalogJson, Current, DAY_MS, Document, EntryState, EventKind, History, Kind, Leaf, LeafEntry, Lifecycle,
    NextVersion, Outcome, OwnWork, Producer, Root, SchemaVersion, Seq, Tombstone, first_version, next_version,
};
use crate::layout;

pub(super) const CATALOG_ID: &str = "01a18e76-2bad-7480-abfe-2ba8a6889a45";

pub(super) fn seq(n: u64) -> Seq {
    Seq::new(n).unwrap()
}

pub(super) fn seqs(of: &[Seq]) -> Vec<u64> {
    of.iter().map(|seq| seq.get()).collect()
}

pub(super) fn product(name: &str) -> ProductId {
    name.parse().unwrap()
}

pub(super) fn edition(n: u64) -> EditionId {
    format!("01a18e76-2bad-7000-8000-{n:012x}").parse().unwrap()
}

pub(super) fn by(step: &str) -> By {
    By {
        actor: "tester@here".to_owned(),
        reason: "because".to_owned(),
        producer: Producer { name: "jobctl".to_owned(), version: "0.1.0".to_owned() },
        own_work: Some(OwnWork { run_id: "run-1".to_owned(), step: step.to_owned() }),
    }
}

/// The process ended here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Crashed;

#[derive(Debug)]
pub(super) enum Stopped {
    Crashed,
    Refused(HistoryRefusal),
}

impl From<Crashed> for Stopped {
    fn from(_: Crashed) -> Self {
        Self::Crashed
    }
}

impl From<HistoryRefusal> for Stopped {
    fn from(refusal: HistoryRefusal) -> Self {
        Self::Refused(refusal)
    }
}

/// How much was read.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Reads {
    pub(super) stamps: Vec<Seq>,
    pub(super) roots: Vec<Seq>,
    pub(super) segments: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Objects {
    pub(super) objects: BTreeMap<String, (ETag, Vec<u8>)>,
    etags: u64,
    /// After so many more writes and deletes the process ends.
    pub(super) writes_left: Option<u32>,
    pub(super) writes: u32,
}

impl Objects {
    fn written(&mut self) -> Result<(), Crashed> {
        self.writes += 1;
        match &mut self.writes_left {
            Some(0 | 1) => Err(Crashed),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub(super) fn get(&self, path: &str) -> Option<&[u8]> {
        self.objects.get(path).map(|(_, bytes)| bytes.as_slice())
    }

    pub(super) fn put(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), Crashed> {
        self.etags += 1;
        self.objects.insert(path.to_owned(), (ETag::new(format!("e{}", self.etags)), bytes));
        self.written()
    }

    pub(super) fn create(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), Crashed> {
        assert!(!self.objects.contains_key(path), "{path} is created twice");
        self.put(path, bytes)
    }

    /// Deletes with If-Match.
    pub(super) fn delete(&mut self, path: &str, etag: &ETag) -> Result<bool, Crashed> {
        if self.objects.get(path).is_none_or(|(found, _)| found != etag) {
            return Ok(false);
        }
        self.objects.remove(path);
        self.written()?;
        Ok(true)
    }

    /// Changes bytes behind everybody's back.
    pub(super) fn tamper(&mut self, path: &str, change: impl FnOnce(String) -> String) {
        let text = String::from_utf8(self.get(path).unwrap_or_else(|| panic!("no {path}")).to_vec()).unwrap();
        let changed = change(text.clone());
        assert_ne!(changed, text, "{path} was not changed");
        self.put(path, changed.into_bytes()).unwrap();
    }

    pub(super) fn roots(&self) -> BTreeMap<Seq, ETag> {
        let roots =
            self.objects.iter().filter_map(|(path, (etag, _))| Some((layout::seq_of_root(path)?, etag.clone())));
        roots.collect()
    }

    pub(super) fn leaves(&self) -> BTreeMap<Sha256Hex, ETag> {
        let leaf = |path: &str| path.strip_prefix("inventory/leaves/")?.strip_suffix(".json")?.parse().ok();
        self.objects.iter().filter_map(|(path, (etag, _))| Some((leaf(path)?, etag.clone()))).collect()
    }

    pub(super) fn segments(&self) -> BTreeSet<String> {
        self.objects.keys().filter(|path| path.starts_with("history/")).cloned().collect()
    }
}

/// A version that was committed.
pub(super) type Key = (u64, Seq);

/// A catalog, what was ever committed to it, and the cache that a job keeps between its runs.
#[derive(Clone)]
pub(super) struct World {
    pub(super) store: Objects,
    pub(super) now: Instant,
    pub(super) rules: ExpiryRules,
    pub(super) committed: BTreeMap<Key, Sha256Hex>,
    pub(super) cache: Cache,
    pub(super) reads: RefCell<Reads>,
    pub(super) editions: u64,
    pub(super) ids: u64,
    /// Segments that an interrupted run left and nobody may adopt any more.
    pub(super) left: BTreeSet<String>,
    pub(super) log: Vec<DeletionLogLine>,
}

impl World {
    /// A catalog of version 1 that has not opted in: W of 36 days, K of 2, two lines a segment.
    pub(super) fn new() -> Self {
        let now: Instant = "2026-01-20T12:00:00Z".parse().unwrap();
        let mut world = Self {
            store: Objects::default(),
            now,
            rules: ExpiryRules {
                window_ms: 36 * DAY_MS,
                keep_roots: 2,
                limits: SegmentLimits { lines: 2, ..SegmentLimits::default() },
            },
            committed: BTreeMap::new(),
            cache: Cache::default(),
            reads: RefCell::default(),
            editions: 0,
            ids: 0,
            left: BTreeSet::new(),
            log: Vec::new(),
        };
        let catalog = CatalogJson::new(CATALOG_ID.parse().unwrap());
        world.store.create(layout::CATALOG, catalog.encode().unwrap()).unwrap();
        world.write(first_version(0, false, None, &by("init"), now).unwrap()).unwrap();
        world
    }

    pub(super) fn opted_in() -> Self {
        let mut world = Self::new();
        world.opt_in().unwrap();
        world
    }

    pub(super) fn days(&mut self, days: i64) {
        self.now = self.now.plus_ms(days * DAY_MS);
    }

    pub(super) fn catalog(&self) -> CatalogJson {
        CatalogJson::decode(self.store.get(layout::CATALOG).unwrap()).unwrap()
    }

    pub(super) fn history(&self) -> History {
        History::decode(self.store.get(layout::HISTORY).unwrap()).unwrap()
    }

    pub(super) fn root(&self, seq: Seq) -> Root {
        Root::decode(self.store.get(&layout::root(seq)).unwrap()).unwrap()
    }

    pub(super) fn sha(&self, seq: Seq) -> Sha256Hex {
        Sha256Hex::of(self.store.get(&layout::root(seq)).unwrap())
    }

    /// The newest valid root of the highest epoch: where probing from CURRENT ends.
    pub(super) fn head(&self) -> Root {
        let valid = |seq: &Seq| Root::decode(self.store.get(&layout::root(*seq))?).ok();
        self.store.roots().keys().rev().find_map(valid).unwrap()
    }

    pub(super) fn current(&self) -> Option<Current> {
        self.store.get(layout::CURRENT).and_then(Current::decode)
    }

    pub(super) fn leaves(&self, root: &Root) -> BTreeMap<ProductId, Arc<Leaf>> {
        let leaf = |sha256: &Sha256Hex| {
            let bytes = self.store.get(&layout::leaf(sha256)).unwrap_or_else(|| panic!("leaf {sha256} is gone"));
            Arc::new(Leaf::decode(bytes).unwrap())
        };
        root.products.iter().map(|(product, reference)| (product.clone(), leaf(&reference.leaf_sha256))).collect()
    }

    pub(super) fn id(&mut self) -> Uuid {
        self.ids += 1;
        Uuid::parse_str(&format!("01a18e76-2bad-7000-8000-{:012x}", self.ids)).unwrap()
    }

    pub(super) fn write(&mut self, version: NextVersion) -> Result<(), Crashed> {
        for leaf in version.leaves {
            // As a writer on Azure does: an unconditional put.
            self.store.put(&layout::leaf(&leaf.sha256), leaf.bytes)?;
        }
        let root = &version.root;
        self.store.create(&layout::root(root.seq), version.root_bytes)?;
        self.committed.insert((root.restore_epoch, root.seq), version.root_sha256.clone());
        let current = Current { seq: root.seq, root_sha256: version.root_sha256, restore_epoch: root.restore_epoch };
        self.store.put(layout::CURRENT, current.encode())
    }

    /// Writes the version after the head in which `change` holds.
    pub(super) fn commit(&mut self, kind: EventKind, change: impl FnOnce(&mut Self, &Root) -> Outcome) -> Seq {
        let head = self.head();
        let outcome = change(self, &head);
        let (sha256, leaves) = (self.sha(head.seq), self.leaves(&head));
        let base = Base::whole(&head, &sha256, &leaves);
        let version = next_version(&base, head.restore_epoch, outcome, kind, &by("write"), self.now).unwrap();
        self.write(version).unwrap();
        head.seq.next()
    }

    pub(super) fn entry(&mut self, previous: Option<EditionId>, state: EntryState) -> LeafEntry {
        self.editions += 1;
        LeafEntry {
            edition_id: edition(self.editions),
            previous,
            state,
            manifest_sha256: Sha256Hex::of(format!("manifest {}", self.editions).as_bytes()),
            schema_version: SchemaVersion::new("2.52"),
            state_changed_at: self.now,
            release_at: None,
            structure_source: None,
            artefacts: None,
            dataflows: None,
            pull_bytes: None,
            other: Map::new(),
        }
    }

    /// A new live edition of `name`; the one before is superseded.
    pub(super) fn seal(&mut self, name: &str) -> Seq {
        self.commit(EventKind::Seal, |world, head| {
            let p = product(name);
            let mut leaf = world.leaf_or_empty(head, &p);
            let now = world.now;
            let live: Option<EditionId> = leaf.live().next().map(|entry| entry.edition_id.clone());
            for entry in leaf.editions.iter_mut().filter(|entry| entry.state == EntryState::Live) {
                (entry.state, entry.state_changed_at) = (EntryState::Superseded, now);
            }
            leaf.editions.push(world.entry(live, EntryState::Live));
            of_leaf(leaf)
        })
    }

    pub(super) fn leaf_or_empty(&self, root: &Root, p: &ProductId) -> Leaf {
        self.leaves(root).get(p).map_or_else(
            || Leaf {
                format_version: crate::inventory::INVENTORY_FORMAT,
                product_id: p.clone(),
                kind: Kind::Data,
                lifecycle: Lifecycle::Revisable,
                editions: Vec::new(),
                other: Map::new(),
            },
            |leaf| leaf.as_ref().clone(),
        )
    }

    /// Takes the live edition of `name` back for the newest superseded one; nothing changes without both.
    pub(super) fn rollback(&mut self, name: &str) -> Seq {
        self.commit(EventKind::Rollback, |world, head| {
            let mut leaf = world.leaf_or_empty(head, &product(name));
            let now = world.now;
            let to = leaf.editions.iter().rposition(|entry| entry.state == EntryState::Superseded);
            let from = leaf.editions.iter().position(|entry| entry.state == EntryState::Live);
            let (Some(to), Some(from)) = (to, from) else { return Outcome::default() };
            (leaf.editions[from].state, leaf.editions[from].state_changed_at) = (EntryState::Withdrawn, now);
            (leaf.editions[to].state, leaf.editions[to].state_changed_at) = (EntryState::Live, now);
            of_leaf(leaf)
        })
    }

    /// Makes tombstones of every superseded and withdrawn edition of `name`.
    pub(super) fn retire(&mut self, name: &str) -> Seq {
        self.commit(EventKind::Retire, |world, head| {
            let mut leaf = world.leaf_or_empty(head, &product(name));
            let goes = |entry: &LeafEntry| matches!(entry.state, EntryState::Superseded | EntryState::Withdrawn);
            let dead: Vec<_> = leaf.editions.iter().filter(|entry| goes(entry)).cloned().collect();
            if dead.is_empty() {
                return Outcome::default();
            }
            leaf.editions.retain(|entry| !goes(entry));
            let mut retired = head.retired.clone();
            retired.extend(dead.into_iter().map(|entry| Tombstone {
                product_id: product(name),
                edition_id: entry.edition_id,
                retired_at: world.now,
            }));
            retired.sort();
            Outcome { retired: Some(retired), ..of_leaf(leaf) }
        })
    }

    /// Gives `name` the leaf that it had in the retained version `to`: an old leaf is used again.
    pub(super) fn revert(&mut self, name: &str, to: Seq) -> Seq {
        self.commit(EventKind::Describe, |world, head| {
            let leaves = world.leaves(&world.root(to));
            let is_dead = |entry: &LeafEntry| head.tombstone(&product(name), &entry.edition_id).is_some();
            let leaf = leaves.get(&product(name)).filter(|leaf| !leaf.editions.iter().any(is_dead));
            leaf.map_or_else(Outcome::default, |leaf| of_leaf(leaf.as_ref().clone()))
        })
    }

    pub(super) fn describe(&mut self) -> Seq {
        self.commit(EventKind::Describe, |_, _| Outcome::default())
    }

    // Reading for a plan.

    pub(super) fn known(&self) -> Known {
        let current = self.current().unwrap();
        let mut known = Known::new(self.catalog(), self.history(), self.head().seq, current, self.cache.clone());
        known.roots = self.store.roots();
        known.segments = self.store.segments();
        known
    }

    /// Asks until there is an answer, and gives it what it asks for: nothing twice.
    pub(super) fn drive<T>(
        &self,
        known: &mut Known,
        ask: impl Fn(&Known) -> Result<Stage<T>, HistoryRefusal>,
    ) -> Result<T, HistoryRefusal> {
        let mut asked = BTreeSet::new();
        loop {
            let reads = match ask(known)? {
                Stage::Ready(ready) => return Ok(ready),
                Stage::Read(reads) => reads,
            };
            assert!(!reads.is_empty(), "nothing to read, and no answer");
            for read in reads {
                assert!(asked.insert(read.clone()), "{read:?} is asked for twice");
                let path = match &read {
                    Read::Stamp(seq) | Read::Root(seq) => layout::root(*seq),
                    Read::Segment(path) => path.clone(),
                };
                let Some((etag, bytes)) = self.store.objects.get(&path) else {
                    known.gone(&read);
                    continue;
                };
                let mut reads = self.reads.borrow_mut();
                match read {
                    Read::Stamp(seq) => {
                        reads.stamps.push(seq);
                        let end = bytes.len().min(usize::try_from(STAMP_BYTES).unwrap());
                        known.add_stamp(seq, etag.clone(), &bytes[..end]);
                    }
                    Read::Root(seq) => {
                        reads.roots.push(seq);
                        known.add_root(seq, etag.clone(), bytes);
                    }
                    Read::Segment(path) => {
                        known.add_segment(&path, bytes);
                        reads.segments.push(path);
                    }
                }
            }
        }
    }

    pub(super) fn plan(&self) -> Result<ExpiryPlan, HistoryRefusal> {
        self.drive(&mut self.known(), |known| plan_expiry(known, &self.rules, self.now))
    }

    pub(super) fn crash_rule(&self) -> CrashRule {
        self.drive(&mut self.known(), crash_rule).unwrap()
    }

    pub(super) fn findings(&self) -> Vec<HistoryFinding> {
        let mut known = self.known();
        known.cache = Cache::default();
        let leaves: BTreeSet<_> = self.store.leaves().into_keys().collect();
        self.drive(&mut known, |known| check_history(&Evidence { known, leaves: Some(&leaves) })).unwrap()
    }
}

pub(super) fn of_leaf(leaf: Leaf) -> Outcome {
    Outcome { leaves: BTreeMap::from([(leaf.product_id.clone(), leaf)]), ..Outcome::default() }
}
