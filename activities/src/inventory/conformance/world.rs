//! A small catalog on any store, made without an edition's files being real ones: what the cases act on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};

use bytes::Bytes;
use catalog_rules::ids::{BadId, CatalogId, EditionId, ProductId, Sha256Hex};
use catalog_rules::instant::Instant;
use catalog_rules::inventory::{
    By, Change, Current, Document as _, DocumentError, EventKind, Leaf, Lifecycle, Mark, Operation, OwnWork, Producer,
    Record, Refusal, Release, RollbackMove, Root, Seq, VersionFinding, Whole, check_step, check_version,
    rollback_moves,
};
use catalog_rules::layout;
use catalog_rules::manifest::Manifest;
use engine_rules::failure::ActivityError as _;
use serde_json::{Value, json};

use super::super::{
    Alert, Committed, FullInventory, Head, Init, InventoryError, LiveInventory, Writer, fetch_from, init_catalog,
};
use crate::store::simulated::{Act, Hook, On, Simulated};
use crate::store::{Store, StoreError};

/// Why a case failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Something is not as the rule has it.
    #[error("{what}: found {found}; expected {expected}")]
    Differs {
        /// What was looked at.
        what: String,
        /// What is there.
        found: String,
        /// What the rule asks for.
        expected: String,
    },
    /// The Inventory failed where it should not.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// The store failed where it should not.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A rule refused what it should not.
    #[error(transparent)]
    Refused(#[from] Box<Refusal>),
    /// A document of the Inventory that cannot be read.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A name that the case made up is none.
    #[error(transparent)]
    Name(#[from] BadId),
    /// A document that the case made up is none.
    #[error(transparent)]
    Fixture(#[from] serde_json::Error),
}

/// What a case gives.
pub type Checked = Result<(), Failure>;

pub(super) fn differs(what: &str, found: &dyn Debug, expected: &dyn Debug) -> Failure {
    Failure::Differs { what: what.to_owned(), found: format!("{found:?}"), expected: format!("{expected:?}") }
}

pub(super) fn equal<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Checked {
    if found == expected { Ok(()) } else { Err(differs(what, &found, &expected)) }
}

pub(super) fn holds(what: &str, found: bool) -> Checked {
    equal(what, found, true)
}

pub(super) fn contains(what: &str, text: &str, parts: &[&str]) -> Checked {
    match parts.iter().find(|part| !text.contains(**part)) {
        None => Ok(()),
        Some(part) => Err(differs(what, &text, part)),
    }
}

pub(super) fn some<T>(what: &str, found: Option<T>) -> Result<T, Failure> {
    found.ok_or_else(|| differs(what, &"none", &"one"))
}

pub(super) fn seq(n: u64) -> Result<Seq, Failure> {
    some("a version number", Seq::new(n))
}

pub(super) fn product(name: &str) -> Result<ProductId, Failure> {
    Ok(name.parse()?)
}

pub(super) fn by(run: &str) -> By {
    By {
        actor: "tester@here".to_owned(),
        reason: "because".to_owned(),
        producer: Producer { name: "jobctl".to_owned(), version: "0.1.0".to_owned() },
        own_work: (!run.is_empty()).then(|| OwnWork { run_id: run.to_owned(), step: "record".to_owned() }),
    }
}

/// An artefact that an edition holds: its id, the text that its fingerprint is of, and for a part the text of the whole.
pub(super) type Held = (&'static str, &'static str, Option<&'static str>);

pub(super) fn codelist(id: &str) -> String {
    format!("urn:sdmx:org.sdmx.infomodel.codelist.Codelist=STC:{id}(1.0)")
}

/// An edition to be sealed.
#[derive(Debug, Clone)]
pub(super) struct Edition {
    pub(super) product: &'static str,
    pub(super) n: u64,
    pub(super) previous: Option<u64>,
    pub(super) schema: &'static str,
    pub(super) holds: Vec<Held>,
    pub(super) is_structure: bool,
    pub(super) lifecycle: Option<Lifecycle>,
    pub(super) release_at: Option<Instant>,
    pub(super) supersedes: Option<u64>,
    pub(super) observations: u64,
}

/// Data edition `n` of `product`, built on edition `previous`.
pub(super) fn data(product: &'static str, n: u64, previous: Option<u64>) -> Edition {
    Edition {
        product,
        n,
        previous,
        schema: "2.52-jobctl.1",
        holds: Vec::new(),
        is_structure: false,
        lifecycle: None,
        release_at: None,
        supersedes: None,
        observations: n,
    }
}

/// Structure edition `n` of `product`.
pub(super) fn structure(product: &'static str, n: u64, previous: Option<u64>, holds: &[Held]) -> Edition {
    Edition { is_structure: true, ..data(product, n, previous).holds(holds) }
}

impl Edition {
    pub(super) fn holds(mut self, held: &[Held]) -> Self {
        self.holds = held.to_vec();
        self
    }

    pub(super) fn at_schema(mut self, schema: &'static str) -> Self {
        self.schema = schema;
        self
    }

    pub(super) fn due(mut self, at: Instant) -> Self {
        self.release_at = Some(at);
        self
    }
}

/// Where a case makes its catalog.
#[derive(Clone)]
pub struct Place {
    /// An empty store.
    pub store: Arc<dyn Store>,
    /// The folder in which its writers keep a [`LeafCache`](super::super::LeafCache), as those of one state directory
    /// do; `None` for writers without one.
    pub cache: Option<PathBuf>,
}

impl Deref for Place {
    type Target = dyn Store;
    fn deref(&self) -> &Self::Target {
        self.store.as_ref()
    }
}

/// A catalog, and the store that it is in.
pub(super) struct World {
    pub(super) store: Arc<dyn Store>,
    cache: Option<PathBuf>,
    /// A writer with a cache is kept, as a process keeps it, so that it meets heads that others wrote.
    kept: OnceLock<Writer>,
    minted_ms: u64,
    runs: Arc<AtomicU64>,
}

impl World {
    /// The catalog that is there.
    pub(super) fn open(place: &Place) -> Result<Self, Failure> {
        let Place { store, cache } = place.clone();
        let minted_ms = u64::try_from(store.now()?.as_ms()).unwrap_or_default();
        Ok(Self { store, cache, kept: OnceLock::new(), minted_ms, runs: Arc::default() })
    }

    /// A new catalog in an empty store.
    pub(super) fn create(place: &Place, embargo: bool) -> Result<Self, Failure> {
        let world = Self::open(place)?;
        let catalog_id: CatalogId = world.id(0).parse()?;
        let init = Init { catalog_id, embargo, title: BTreeMap::new(), beside: Vec::new() };
        init_catalog(world.store.as_ref(), &init, &by(""))?;
        Ok(world)
    }

    /// The same catalog through another store, such as one that fails.
    pub(super) fn through(&self, store: Arc<dyn Store>) -> Self {
        let (cache, runs) = (self.cache.clone(), Arc::clone(&self.runs));
        Self { store, cache, kept: OnceLock::new(), minted_ms: self.minted_ms, runs }
    }

    fn id(&self, n: u64) -> String {
        format!("{:08x}-{:04x}-7000-8000-{n:012x}", self.minted_ms >> 16, self.minted_ms & 0xffff)
    }

    /// An edition id that rises with `n`, minted when the catalog was created.
    pub(super) fn edition(&self, n: u64) -> Result<EditionId, Failure> {
        Ok(self.id(n).parse()?)
    }

    pub(super) fn editions(&self, of: &[u64]) -> Result<BTreeSet<EditionId>, Failure> {
        of.iter().map(|n| self.edition(*n)).collect()
    }

    pub(super) fn writer(&self) -> Result<Writer, Failure> {
        let writer = Writer::open(Arc::clone(&self.store))?;
        Ok(match &self.cache {
            Some(folder) => writer.cached_in(folder.clone()),
            None => writer,
        })
    }

    fn run(&self) -> By {
        by(&format!("run-{}", self.runs.fetch_add(1, Ordering::SeqCst)))
    }

    pub(super) fn manifest(&self, edition: &Edition) -> Result<Manifest, Failure> {
        let sha = |text: &str| Sha256Hex::of(text.as_bytes()).to_string();
        let file = |name: &str| {
            let bytes = Self::file(edition, name);
            json!({"path": name, "size": bytes.len(), "root": "edition", "tier": "required", "digests":
                {"sha256": Sha256Hex::of(bytes.as_bytes()), "md5": "0".repeat(32), "crc32c": "00000000"}})
        };
        let urn = |class: &str, id: &str| format!("urn:sdmx:org.sdmx.infomodel.datastructure.{class}=STC:{id}(1.0)");
        let binding = json!({"dataflow": urn("Dataflow", edition.product), "observations": edition.observations,
            "structural_version": urn("DataStructure", edition.product),
            "fingerprint": format!("{0}:{0}", edition.observations), "structure_fingerprint": sha("structure")});
        let artefact = |(id, text, partial_of): &Held| {
            let mut entry = json!({"urn": codelist(id), "stability": "legacy", "partial": partial_of.is_some(),
                "fingerprint": sha(text)});
            if let (Some(whole), Some(entry)) = (partial_of, entry.as_object_mut()) {
                entry.insert("partial_of".to_owned(), Value::String(sha(whole)));
            }
            entry
        };
        let mut manifest: Manifest = serde_json::from_value(json!({
            "format_version": "3.0",
            "product_id": edition.product,
            "edition_id": self.edition(edition.n)?,
            "previous": edition.previous.map(|n| self.edition(n)).transpose()?,
            "created_at": Instant::from_ms(i64::try_from(self.minted_ms).unwrap_or_default()),
            "producer": {"name": "jobctl", "version": "0.1.0"},
            "sdmxlib_version": "0+jobctl.0.1.0",
            "schema_version": edition.schema,
            "duckdb_version": "1.5.5",
            "duckdb_storage_version": 68,
            "ducklake_version": "d8a1881e",
            "ducklake_spec_version": "1.0",
            "data_path": "../data/",
            "files": [file("metadata.duckdb"), file("tables.ducklake")],
            "bindings": if edition.is_structure { Vec::new() } else { vec![binding] },
            "artefacts": edition.holds.iter().map(artefact).collect::<Vec<_>>(),
            "canonical_form": "1",
        }))?;
        manifest.sort();
        manifest.content_fingerprint = Some(manifest.computed_content_fingerprint());
        Ok(manifest)
    }

    fn file(edition: &Edition, name: &str) -> String {
        format!("{name} of edition {} of {}", edition.n, edition.product)
    }

    /// The path of one of the edition's files.
    pub(super) fn file_path(&self, edition: &Edition, name: &str) -> Result<String, Failure> {
        Ok(format!("{}/{name}", layout::edition(&product(edition.product)?, &self.edition(edition.n)?)))
    }

    /// Puts the edition's manifest in its place, and gives what records it.
    pub(super) fn seal(&self, edition: &Edition) -> Result<Operation, Failure> {
        Ok(Operation::Record(Box::new(self.record(edition)?)))
    }

    /// What records the edition, whose manifest is put in its place; the files that it lists are not.
    pub(super) fn record(&self, edition: &Edition) -> Result<Record, Failure> {
        let manifest = self.manifest(edition)?;
        let bytes = Bytes::from(manifest.encode());
        self.store.create(&layout::manifest(&manifest.product_id, &manifest.edition_id), &bytes)?;
        let sha256 = Sha256Hex::of(&bytes);
        let mut record = Record::from_manifest(&manifest, sha256, edition.lifecycle, edition.release_at)?;
        record.supersedes = edition.supersedes.map(|n| self.edition(n)).transpose()?;
        Ok(record)
    }

    /// Commits as a run of its own.
    pub(super) fn commit(&self, operation: &Operation) -> Result<Committed, Failure> {
        if self.cache.is_none() {
            return Ok(self.writer()?.commit(operation, &self.run())?);
        }
        let kept = match self.kept.get() {
            Some(kept) => kept,
            None => {
                let writer = self.writer()?;
                self.kept.get_or_init(|| writer)
            }
        };
        Ok(kept.commit(operation, &self.run())?)
    }

    /// Seals and records an edition.
    pub(super) fn publish(&self, edition: &Edition) -> Result<Committed, Failure> {
        let operation = self.seal(edition)?;
        self.commit(&operation)
    }

    /// The operation must be refused by the rule of this code, with a fix, and nothing may be written.
    pub(super) fn refuse(&self, operation: &Operation, code: &str) -> Result<InventoryError, Failure> {
        let before = self.head()?;
        let error = match self.writer()?.commit(operation, &self.run()) {
            Ok(committed) => return Err(differs(&format!("a commit that {code} forbids"), &committed, &code)),
            Err(error) => error,
        };
        if error.code() != code {
            return Err(differs("the code of the refusal", &error.to_string(), &code));
        }
        holds("the refusal says what to do", error.hint().is_some())?;
        equal("the head after a refusal", self.head()?.root_sha256, before.root_sha256)?;
        Ok(error)
    }

    pub(super) fn refuse_edition(&self, edition: &Edition, code: &str) -> Result<InventoryError, Failure> {
        let operation = self.seal(edition)?;
        self.refuse(&operation, code)
    }

    pub(super) fn full(&self) -> Result<FullInventory, Failure> {
        Ok(FullInventory::open(fetch_from(Arc::clone(&self.store)))?)
    }

    pub(super) fn live(&self) -> Result<LiveInventory, Failure> {
        Ok(LiveInventory::open(fetch_from(Arc::clone(&self.store)))?)
    }

    /// The editions that a public reader sees.
    pub(super) fn shown(&self) -> Result<BTreeSet<EditionId>, Failure> {
        Ok(self.live()?.editions()?.into_iter().map(|live| live.edition_id).collect())
    }

    pub(super) fn head(&self) -> Result<Head, Failure> {
        Ok(self.full()?.head().clone())
    }

    pub(super) fn mark(&self, name: &str, n: u64) -> Result<Option<Mark>, Failure> {
        Ok(self.full()?.marks(&product(name)?)?.get(&self.edition(n)?).copied())
    }

    /// The states of the product's editions.
    pub(super) fn is(&self, name: &str, marks: &[(u64, Mark)]) -> Checked {
        let expected: Result<BTreeMap<_, _>, Failure> =
            marks.iter().map(|(n, mark)| Ok((self.edition(*n)?, *mark))).collect();
        equal(&format!("the editions of {name}"), self.full()?.marks(&product(name)?)?, expected?)
    }

    pub(super) fn leaf(&self, name: &str) -> Result<Arc<Leaf>, Failure> {
        some("the product's leaf", self.full()?.leaf(&product(name)?)?)
    }

    pub(super) fn current(&self) -> Result<Option<Current>, Failure> {
        Ok(self.store.get(layout::CURRENT)?.as_deref().and_then(Current::decode))
    }

    pub(super) fn put(&self, path: &str, bytes: impl AsRef<[u8]>) -> Checked {
        self.store.delete(path)?;
        self.store.create(path, &Bytes::copy_from_slice(bytes.as_ref()))?;
        Ok(())
    }

    pub(super) fn root_bytes(&self, n: u64) -> Result<Bytes, Failure> {
        some("a root", self.store.get(&layout::root(seq(n)?))?)
    }

    pub(super) fn root(&self, n: u64) -> Result<Root, Failure> {
        Ok(Root::decode(&self.root_bytes(n)?)?)
    }

    /// Puts root `n` back with `edit`, and gives its new hash.
    pub(super) fn rewrite(&self, n: u64, edit: impl FnOnce(&mut Root)) -> Result<Sha256Hex, Failure> {
        let mut root = self.root(n)?;
        edit(&mut root);
        let bytes = root.encode()?;
        self.put(&layout::root(seq(n)?), &bytes)?;
        Ok(Sha256Hex::of(&bytes))
    }

    pub(super) fn hint(&self, n: u64, root_sha256: Sha256Hex, restore_epoch: u64) -> Checked {
        let current = Current { seq: seq(n)?, root_sha256, restore_epoch };
        self.put(layout::CURRENT, current.encode())
    }

    pub(super) fn hint_at(&self, n: u64) -> Checked {
        let root_sha256 = Sha256Hex::of(&self.root_bytes(n)?);
        self.hint(n, root_sha256, 0)
    }

    /// The whole chain, from the head to version 1: every version valid, and what its change list says; `CURRENT` on
    /// the head; nothing passed over. Gives the versions' runs, oldest first.
    pub(super) fn sound(&self) -> Result<Vec<String>, Failure> {
        let inventory = self.full()?;
        equal("what the reader passed over", alerts(inventory.alerts()), String::new())?;
        let head = inventory.head().clone();
        equal("CURRENT", self.current()?.map(|current| current.root_sha256), Some(head.root_sha256.clone()))?;
        self.chain(&inventory)
    }

    /// The same without a look at `CURRENT`.
    pub(super) fn chain(&self, inventory: &FullInventory) -> Result<Vec<String>, Failure> {
        let mut runs = Vec::new();
        let mut newer: Option<(Head, BTreeMap<ProductId, Arc<Leaf>>)> = None;
        let mut next = Some(inventory.head().seq());
        while let Some(seq) = next {
            let version = some("a version of the chain", inventory.version(seq)?)?;
            let leaves = inventory.leaves_in(&version, version.root.products.keys())?;
            let findings = check_version(&version.root, &leaves, &BTreeMap::new()).into_iter().filter(|finding| {
                // What follows from an accepted edit of a home, or from its withdrawal, is no fault of a version.
                match finding {
                    VersionFinding::Stale(_) | VersionFinding::Orphan { .. } => false,
                    VersionFinding::Leaf { .. } | VersionFinding::Rule(_) | VersionFinding::SharedDiffers { .. } => {
                        true
                    }
                }
            });
            let findings: Vec<_> = findings.map(|finding| finding.to_string()).collect();
            equal("what is wrong with a version", findings, Vec::new())?;
            holds("a version carries the history fields", version.root.has_history())?;
            if let Some((newer, newer_leaves)) = &newer {
                let base = Whole { root: &version.root, root_sha256: &version.root_sha256, leaves: &leaves };
                let step = Whole { root: &newer.root, root_sha256: &newer.root_sha256, leaves: newer_leaves };
                equal("what is wrong with a step", check_step(&base, &step), Vec::new())?;
            }
            let run = version.root.extensions.get("jobctl").and_then(|own| own.get("run_id")).and_then(Value::as_str);
            runs.push(run.unwrap_or_default().to_owned());
            next = seq.before();
            newer = Some((version, leaves));
        }
        runs.reverse();
        Ok(runs)
    }

    /// What each version did: its kind and its change list without the times.
    pub(super) fn story(&self) -> Result<Vec<(EventKind, String)>, Failure> {
        let inventory = self.full()?;
        let mut story = Vec::new();
        let mut next = Some(inventory.head().seq());
        while let Some(seq) = next {
            let version = some("a version of the chain", inventory.version(seq)?)?;
            let items = version.root.changes.iter().flatten().flat_map(items);
            story.push((version.root.event.kind, items.collect::<Vec<_>>().join(" ")));
            next = seq.before();
        }
        story.reverse();
        Ok(story)
    }

    // Operations.

    pub(super) fn release(&self, products: &[&str]) -> Result<Operation, Failure> {
        let products: Result<_, Failure> = products.iter().map(|name| product(name)).collect();
        Ok(Operation::Release(Release::Products(products?)))
    }

    pub(super) fn one(&self, name: &str, n: u64) -> Result<BTreeSet<(ProductId, EditionId)>, Failure> {
        Ok(BTreeSet::from([(product(name)?, self.edition(n)?)]))
    }

    pub(super) fn rollback(&self, name: &str) -> Result<Operation, Failure> {
        let leaf = self.leaf(name)?;
        let moves = rollback_moves(&leaf, &BTreeSet::new())?;
        Ok(Operation::Rollback(BTreeMap::from([(product(name)?, moves)])))
    }

    pub(super) fn back(&self, name: &str, from: u64, to: u64) -> Result<Operation, Failure> {
        let step = RollbackMove { from: self.edition(from)?, to: Some(self.edition(to)?) };
        Ok(Operation::Rollback(BTreeMap::from([(product(name)?, vec![step])])))
    }

    pub(super) fn cancel(&self, name: &str, n: u64) -> Result<Operation, Failure> {
        Ok(Operation::Cancel { product_id: product(name)?, edition_id: self.edition(n)? })
    }

    pub(super) fn retire(&self, name: &str, n: u64) -> Result<Operation, Failure> {
        Ok(Operation::Retire { editions: self.one(name, n)?, before_window: true })
    }

    /// Brings the edition back; the files that it lists are put in their place.
    pub(super) fn reinstate(&self, edition: &Edition) -> Result<Operation, Failure> {
        for name in ["metadata.duckdb", "tables.ducklake"] {
            self.store.create(&self.file_path(edition, name)?, &Bytes::from(Self::file(edition, name)))?;
        }
        let entry = Box::new(self.record(edition)?.entry);
        Ok(Operation::Reinstate { product_id: product(edition.product)?, entry })
    }

    pub(super) fn reschedule(&self, name: &str, n: u64, release_at: Option<Instant>) -> Result<Operation, Failure> {
        Ok(Operation::Reschedule { product_id: product(name)?, edition_id: self.edition(n)?, release_at })
    }

    pub(super) fn correct(&self, to: u64) -> Result<Operation, Failure> {
        Ok(Operation::Correct { to: seq(to)?, products: None, confirmed_unread: BTreeSet::new() })
    }
}

/// A description with one number in it.
pub(super) fn describe(n: u64) -> Operation {
    Operation::Describe(serde_json::Map::from_iter([("version".to_owned(), json!(n))]))
}

pub(super) fn alerts(alerts: &[Alert]) -> String {
    alerts.iter().map(|alert| format!("{alert}; ")).collect()
}

fn items(change: &Change) -> Vec<String> {
    let of = |mark: Option<Mark>| mark.map_or_else(|| "nothing".to_owned(), |mark| mark.to_string());
    let short = |edition: &EditionId| {
        edition.as_str().chars().rev().take(3).collect::<Vec<_>>().iter().rev().collect::<String>()
    };
    let items = change.entries.iter();
    items
        .map(|item| format!("{}/{}:{}>{}", change.product_id, short(&item.edition_id), of(item.from), of(item.to)))
        .collect()
}

/// Something that happens at one call of a writer.
pub(super) struct Meanwhile {
    /// The catalog through the store at whose call it happens.
    pub(super) world: World,
    outcome: mpsc::Receiver<Checked>,
}

impl Meanwhile {
    /// What became of it; a failure when the call never came.
    pub(super) fn happened(self) -> Checked {
        self.outcome.try_recv().unwrap_or_else(|_| Err(differs("the moment", &"never", &"once")))
    }
}

impl World {
    /// Lets `work` happen just before or after the first call that `on` means, as by somebody who takes no lock.
    pub(super) fn meanwhile(
        &self,
        on: &On,
        when: fn(Hook) -> Act,
        work: impl FnOnce(&World) -> Checked + Send + 'static,
    ) -> Meanwhile {
        let (tell, outcome) = mpsc::channel();
        let sim = Simulated::new(Arc::clone(&self.store));
        let rival = self.through(Simulated::without_lock(Arc::clone(&self.store)).client(0));
        let hook: Hook = Box::new(move |_| {
            // Nobody listens any more when the case failed already.
            let _ = tell.send(work(&rival));
        });
        sim.at(on.clone(), 0, when(hook));
        Meanwhile { world: self.through(sim.client(0)), outcome }
    }
}
