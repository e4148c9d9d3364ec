mod documents;
mod properties;
mod repairs;
mod transitions;

use super::*;
use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::instant::Instant;
use serde_json::Map;
use std::collections::BTreeMap;
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

/// An Inventory in memory: the newest version and all its leaves.
struct World {
    root: Root,
    root_sha256: Sha256Hex,
    leaves: BTreeMap<ProductId, Arc<Leaf>>,
    now: Instant,
}

impl World {
    fn new(embargo: bool) -> Self {
        let first = first_version(0, embargo, None, &by(), noon()).unwrap();
        Self { root: first.root, root_sha256: first.root_sha256, leaves: BTreeMap::new(), now: noon() }
    }

    fn base(&self) -> Base<'_> {
        Base { root: &self.root, root_sha256: &self.root_sha256, leaves: &self.leaves }
    }

    fn plan(&self, record: &Record, facts: &Facts) -> Result<Decision, Box<Refusal>> {
        let operation = Operation::Record(Box::new(record.clone()));
        plan(&self.base(), self.root.restore_epoch, &operation, facts, &by(), self.now)
    }

    /// Makes the version the newest one.
    fn apply(&mut self, version: NextVersion) {
        for leaf in version.leaves {
            assert_eq!(Sha256Hex::of(&leaf.bytes), leaf.sha256);
            self.leaves.insert(leaf.product_id, Arc::new(Leaf::decode(&leaf.bytes).unwrap()));
        }
        assert_eq!(Sha256Hex::of(&version.root_bytes), version.root_sha256);
        self.root = Root::decode(&version.root_bytes).unwrap();
        assert_eq!(self.root, version.root);
        self.root_sha256 = version.root_sha256;
    }

    /// Records the edition, which must be accepted.
    fn take(&mut self, record: &Record) -> Mark {
        match self.plan(record, &facts(record)) {
            Ok(Decision::Write(version)) => {
                let mark = version.mark.unwrap();
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
