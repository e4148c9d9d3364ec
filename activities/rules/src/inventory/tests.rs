mod batches;
mod corrections;
mod documents;
mod operations;
mod properties;
mod queries;
mod refusals;
mod repairs;
mod roundtrip;
mod schemas;
mod segments;
mod sequences;
mod transitions;

use super::*;
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;
use serde_json::Map;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Edition `n`: a UUIDv7 that rises with `n`.
fn edition(n: u64) -> EditionId {
    format!("01a18e76-2bad-7000-8000-{n:012x}").parse().unwrap()
}

fn product(name: &str) -> ProductId {
    name.parse().unwrap()
}

fn noon() -> Instant {
    "2026-10-09T12:30:00.412Z".parse().unwrap()
}

fn by() -> By {
    By {
        actor: "tester@here".to_owned(),
        reason: "because".to_owned(),
        producer: Producer { name: "jobctl".to_owned(), version: "0.1.0".to_owned() },
        own_work: Some(OwnWork { run_id: "run-1".to_owned(), step: "record".to_owned() }),
    }
}

fn manifest_sha256(n: u64) -> Sha256Hex {
    Sha256Hex::of(format!("manifest {n}").as_bytes())
}

/// The record of data edition `n` of `p`, built on `previous`, at schema 2.52, without artefacts.
fn record(p: &str, n: u64, previous: Option<u64>) -> Record {
    Record {
        product_id: product(p),
        kind: Kind::Data,
        lifecycle: None,
        entry: NewEntry {
            edition_id: edition(n),
            previous: previous.map(edition),
            manifest_sha256: manifest_sha256(n),
            schema_version: SchemaVersion::new("2.52"),
            structure_source: None,
            artefacts: BTreeMap::new(),
            dataflows: vec!["urn:b".to_owned(), "urn:a".to_owned()],
            pull_bytes: 10 * n,
        },
        content: ContentFingerprint { canonical_form: "1".to_owned(), value: Some(format!("content {n}")) },
        release_at: None,
        supersedes: None,
    }
}

fn holds(mut record: Record, artefacts: &[(&str, &str, Option<&str>)]) -> Record {
    record.entry.artefacts = artefacts
        .iter()
        .map(|(urn, fingerprint, partial_of)| {
            let record = ArtefactRecord {
                fingerprint: (*fingerprint).to_owned(),
                partial_of: partial_of.map(ToOwned::to_owned),
            };
            ((*urn).to_owned(), record)
        })
        .collect();
    record
}

fn structure(p: &str, n: u64, previous: Option<u64>, artefacts: &[(&str, &str, Option<&str>)]) -> Record {
    Record { kind: Kind::Structure, ..holds(record(p, n, previous), artefacts) }
}

fn facts(record: &Record) -> Facts {
    let manifest =
        ManifestFacts { sha256: record.entry.manifest_sha256.clone(), content: Some(record.content.clone()) };
    Facts { manifests: BTreeMap::from([(record.entry.edition_id.clone(), manifest)]), ..Facts::default() }
}

/// An index of holders as a writer may keep it: no more than two products for one kind, fingerprint and state.
#[derive(Debug)]
struct Index(BTreeMap<String, Vec<Holder>>);

impl Index {
    fn of(leaves: &BTreeMap<ProductId, Arc<Leaf>>, records: &BTreeMap<EditionId, ArtefactRecords>) -> Self {
        let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for leaf in leaves.values() {
            for (urn, holder) in holders_in(leaf, records).unwrap_or_default() {
                found.entry(urn.to_owned()).or_default().push(holder);
            }
        }
        Self(found)
    }
}

impl Holders for Index {
    fn full(&self, urn: &str, except: &dyn Fn(&ProductId) -> bool) -> Vec<Holder> {
        let mut given: BTreeMap<(bool, bool, &str), BTreeSet<&ProductId>> = BTreeMap::new();
        let holders = self.0.get(urn).into_iter().flatten().filter(|holder| !except(&holder.product_id));
        let few = holders.filter(|holder| {
            let same = given.entry((holder.kind == Kind::Data, holder.is_live, &holder.fingerprint)).or_default();
            same.insert(&holder.product_id);
            same.len() <= 2
        });
        few.cloned().collect()
    }
}

/// An Inventory in memory: every version with its leaves, and the manifests that were sealed.
struct World {
    root: Root,
    root_sha256: Sha256Hex,
    leaves: BTreeMap<ProductId, Arc<Leaf>>,
    now: Instant,
    /// The versions before the newest one.
    past: Vec<(Root, Sha256Hex, BTreeMap<ProductId, Arc<Leaf>>)>,
    /// What was sealed, whether it was recorded or not.
    sealed: BTreeMap<EditionId, Record>,
    /// The editions whose files do not verify.
    broken: BTreeSet<EditionId>,
    retention: Retention,
}

impl World {
    fn new(embargo: bool) -> Self {
        let first = first_version(0, embargo, None, &by(), noon()).unwrap();
        Self {
            root: first.root,
            root_sha256: first.root_sha256,
            leaves: BTreeMap::new(),
            now: noon(),
            past: Vec::new(),
            sealed: BTreeMap::new(),
            broken: BTreeSet::new(),
            retention: Retention::default(),
        }
    }

    fn base(&self) -> Base<'_> {
        Base::whole(&self.root, &self.root_sha256, &self.leaves)
    }

    fn plan(&self, record: &Record, facts: &Facts) -> Result<Decision, Box<Refusal>> {
        let operation = Operation::Record(Box::new(record.clone()));
        plan(&self.base(), self.root.restore_epoch, &operation, facts, &by(), self.now)
    }

    /// Makes the version the newest one.
    fn apply(&mut self, version: NextVersion) {
        self.past.push((self.root.clone(), self.root_sha256.clone(), self.leaves.clone()));
        for leaf in version.leaves {
            assert_eq!(Sha256Hex::of(&leaf.bytes), leaf.sha256);
            self.leaves.insert(leaf.product_id, Arc::new(Leaf::decode(&leaf.bytes).unwrap()));
        }
        assert_eq!(Sha256Hex::of(&version.root_bytes), version.root_sha256);
        self.root = Root::decode(&version.root_bytes).unwrap();
        assert_eq!(self.root, version.root);
        self.root_sha256 = version.root_sha256;
    }

    /// What a writer would read for `operation`: no more than [`needs`] asks for.
    fn facts_for(&self, operation: &Operation) -> Facts {
        let mut facts = Facts { retention: self.retention.clone(), ..Facts::default() };
        if let Operation::Correct { to, .. } = operation {
            let older = self.past.iter().find(|(root, ..)| root.seq == *to);
            let roots = self.past.iter().map(|(root, ..)| root).chain([&self.root]);
            facts.correction = CorrectionFacts {
                root: older.map(|(root, ..)| root.clone()),
                leaves: older.map(|(.., leaves)| leaves.clone()).unwrap_or_default(),
                since: roots.filter(|root| root.seq > *to).map(|root| (root.seq, root.changes.clone())).collect(),
            };
        }
        let needs = needs(&self.base(), operation, &facts, self.now);
        for (_, edition) in needs.manifests {
            if let Some(record) = self.sealed.get(&edition) {
                facts.manifests.extend(self::facts(record).manifests);
            }
        }
        for (_, edition) in needs.records {
            if let Some(record) = self.sealed.get(&edition) {
                facts.records.insert(edition, record.entry.artefacts.clone());
            }
        }
        for (_, edition) in needs.files {
            let findings = self.broken.contains(&edition).then(|| "a file is gone".to_owned());
            facts.files.insert(edition, findings.into_iter().collect());
        }
        facts
    }

    /// The leaves that a writer would hand over for `operation`.
    fn leaves_for(&self, operation: &Operation) -> BTreeMap<ProductId, Arc<Leaf>> {
        match operation.leaves_needed() {
            LeavesNeeded::None => BTreeMap::new(),
            LeavesNeeded::All => self.leaves.clone(),
            LeavesNeeded::WithEmbargoed => {
                let waits = |leaf: &Leaf| leaf.editions.iter().any(|entry| entry.state == EntryState::Embargoed);
                let waiting = self.leaves.iter().filter(|(_, leaf)| waits(leaf));
                waiting.map(|(product, leaf)| (product.clone(), Arc::clone(leaf))).collect()
            }
            LeavesNeeded::Of(products) | LeavesNeeded::Across(products) => {
                let named = self.leaves.iter().filter(|(product, _)| products.contains(*product));
                named.map(|(product, leaf)| (product.clone(), Arc::clone(leaf))).collect()
            }
        }
    }

    fn decide(&self, operation: &Operation) -> Result<Decision, Box<Refusal>> {
        let facts = self.facts_for(operation);
        let plan = |base: &Base<'_>| plan(base, self.root.restore_epoch, operation, &facts, &by(), self.now);
        let whole = plan(&self.base());
        if whole.as_ref().is_err_and(|refusal| refusal.code() == "catalog.records_unread") {
            return whole;
        }
        // With no more leaves than needed, and an index instead of the others, the answer is the same.
        let (leaves, index) = (self.leaves_for(operation), Index::of(&self.leaves, &facts.records));
        let across = matches!(operation.leaves_needed(), LeavesNeeded::Across(_) | LeavesNeeded::WithEmbargoed);
        let across = across.then_some(&index as &dyn Holders);
        let least = plan(&Base { leaves: &leaves, holders: across, ..self.base() });
        match (&whole, &least) {
            (Ok(whole), Ok(least)) => assert!(whole == least, "{operation:?} becomes something else with the least"),
            (Err(whole), Err(least)) => assert_eq!(whole.to_string(), least.to_string()),
            (Ok(_), Err(refusal)) => panic!("{operation:?} is refused with the least: {refusal}"),
            (Err(refusal), Ok(_)) => panic!("{operation:?} is refused with every leaf: {refusal}"),
        }
        least
    }

    /// Carries out an operation that must be accepted, and gives what the batch refused.
    fn act(&mut self, operation: &Operation) -> Vec<RefusedEdition> {
        match self.decide(operation) {
            Ok(Decision::Write(version)) => {
                let refused = version.refused.clone();
                assert_eq!(refused_in(&version.root), refused);
                self.apply(*version);
                self.now = self.root.created_at.plus_ms(1000);
                refused
            }
            other => panic!("{operation:?} was not accepted: {other:?}"),
        }
    }

    /// The operation must have been done already.
    fn is_done(&self, operation: &Operation) -> Done {
        match self.decide(operation) {
            Ok(Decision::Already(done)) => done,
            other => panic!("{operation:?} was not done: {other:?}"),
        }
    }

    fn no(&self, operation: &Operation) -> Refusal {
        *self.decide(operation).unwrap_err()
    }

    /// Seals an edition, and gives the operation that records it.
    fn seal(&mut self, record: Record) -> Operation {
        self.sealed.insert(record.entry.edition_id.clone(), record.clone());
        Operation::Record(Box::new(record))
    }

    /// Seals and records an edition.
    fn publish(&mut self, record: Record) {
        let operation = self.seal(record);
        self.act(&operation);
    }

    /// Records the edition, which must be accepted.
    fn take(&mut self, record: &Record) -> Mark {
        match self.plan(record, &facts(record)) {
            Ok(Decision::Write(version)) => {
                let mark = version.mark.unwrap();
                self.sealed.insert(record.entry.edition_id.clone(), record.clone());
                self.apply(*version);
                mark
            }
            other => panic!("not accepted: {other:?}"),
        }
    }

    fn refuse(&self, record: &Record) -> Refusal {
        *self.plan(record, &facts(record)).unwrap_err()
    }

    fn state(&self, p: &str, n: u64) -> Option<EntryState> {
        self.leaves.get(&product(p))?.entry(&edition(n)).map(|entry| entry.state)
    }
}

fn at_schema(mut record: Record, schema: &str) -> Record {
    record.entry.schema_version = SchemaVersion::new(schema);
    record
}

fn ids(editions: &[u64]) -> BTreeSet<EditionId> {
    editions.iter().copied().map(edition).collect()
}

fn one(p: &str, n: u64) -> BTreeSet<(ProductId, EditionId)> {
    BTreeSet::from([(product(p), edition(n))])
}

fn release(products: &[&str]) -> Operation {
    Operation::Release(Release::Products(products.iter().map(|p| product(p)).collect()))
}

fn rollback(world: &World, p: &str, to: &[u64]) -> Operation {
    let moves = rollback_moves(&world.leaves[&product(p)], &ids(to)).unwrap();
    Operation::Rollback(BTreeMap::from([(product(p), moves)]))
}

fn moves(p: &str, moves: &[(u64, Option<u64>)]) -> Operation {
    let step = |(from, to): &(u64, Option<u64>)| RollbackMove { from: edition(*from), to: to.map(edition) };
    Operation::Rollback(BTreeMap::from([(product(p), moves.iter().map(step).collect())]))
}

fn cancel(p: &str, n: u64) -> Operation {
    Operation::Cancel { product_id: product(p), edition_id: edition(n) }
}

fn withdraw(p: &str, if_live: &[u64]) -> Operation {
    Operation::WithdrawLive { product_id: product(p), if_live: ids(if_live) }
}

fn supersede(p: &str, n: u64, by: u64) -> Operation {
    Operation::Supersede { product_id: product(p), edition_id: edition(n), by: edition(by) }
}

fn retire(p: &str, n: u64) -> Operation {
    Operation::Retire { editions: one(p, n), before_window: true }
}

fn reinstate(world: &World, p: &str, n: u64) -> Operation {
    let entry = world.sealed.get(&edition(n)).map(|record| record.entry.clone());
    let entry = entry.unwrap_or_else(|| record(p, n, None).entry);
    Operation::Reinstate { product_id: product(p), entry: Box::new(entry) }
}

fn reschedule(p: &str, n: u64, release_at: Option<Instant>) -> Operation {
    Operation::Reschedule { product_id: product(p), edition_id: edition(n), release_at }
}

fn supersede_schema(schema: &str, products: Option<&[&str]>) -> Operation {
    Operation::SupersedeSchema {
        schema_version: SchemaVersion::new(schema),
        products: products.map(|products| products.iter().map(|p| product(p)).collect()),
    }
}

fn set_lifecycle(p: &str, lifecycle: Lifecycle) -> Operation {
    Operation::SetLifecycle { product_id: product(p), lifecycle }
}

fn correct(to: u64, products: Option<&[&str]>) -> Operation {
    Operation::Correct {
        to: Seq::new(to).unwrap(),
        products: products.map(|products| products.iter().map(|p| product(p)).collect()),
        confirmed_unread: BTreeSet::new(),
    }
}

/// The registration of a sealed edition in the inbox.
fn registration(record: &Record) -> Registration {
    let pending = PendingRegistration {
        format_version: PENDING_FORMAT,
        product_id: record.product_id.clone(),
        edition_id: record.entry.edition_id.clone(),
        previous: record.entry.previous.clone(),
        manifest_sha256: record.entry.manifest_sha256.clone(),
        release_at: record.release_at,
        kind: record.kind,
        lifecycle: record.lifecycle,
        structure_source: None,
        supersedes: record.supersedes.clone(),
        actor: "publisher@build".to_owned(),
        reason: "monthly".to_owned(),
        other: Map::new(),
    };
    Registration { pending, record: Ok(Box::new(record.clone())) }
}

/// Folds the inbox that holds these editions, which are sealed first.
fn fold(world: &mut World, records: &[Record]) -> Operation {
    for record in records {
        world.seal(record.clone());
    }
    Operation::Fold(records.iter().map(registration).collect())
}
