//! From a decision to the documents of the next version (*catalog* §6.2, §6.6).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::change::{Change, Mark, MissingLeaf, Side, changes_between};
use super::decide::verdict;
use super::document::Document as _;
use super::leaf::Leaf;
use super::operation::{Base, Done, Facts, Folded, Operation, Outcome, RefusedEdition, Times, Verdict};
use super::refusal::Refusal;
use super::root::{Event, EventKind, Producer, ProductRef, Root, Seq};
use super::{INVENTORY_FORMAT, MAX_BASE_AHEAD_MS, MAX_CLOCK_AHEAD_MS};
use crate::ids::{ProductId, Sha256Hex};
use crate::instant::Instant;

/// The section of a root's extensions that this program owns.
pub(super) const JOBCTL: &str = "jobctl";

/// The run and step that write a version, so that the step recognises its own root (D34).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnWork {
    /// The run.
    pub run_id: String,
    /// The step within it.
    pub step: String,
}

/// What a look at a root tells without decoding it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The root's `created_at`.
    pub created_at: Instant,
    /// Whether the step that looks wrote it.
    pub is_own: bool,
}

/// The step of the run `run_id` that wrote `root`; `None` when another run did, or none.
#[must_use]
pub fn written_by<'r>(root: &'r Root, run_id: &str) -> Option<&'r str> {
    let text = |key: &str| root.extensions.get(JOBCTL).and_then(|section| section.get(key)).and_then(Value::as_str);
    text("step").filter(|_| text("run_id") == Some(run_id))
}

impl OwnWork {
    /// The stamp of the root in `bytes`, `None` when they are no JSON object with a time. Not a validation: what it
    /// points at is decoded in full before it is believed. It spares the decoding of every product of every version
    /// since a run began.
    #[must_use]
    pub fn stamp(&self, bytes: &[u8]) -> Option<Stamp> {
        #[derive(serde::Deserialize)]
        struct Stamped {
            created_at: Instant,
            #[serde(default)]
            extensions: Map<String, Value>,
        }
        let Stamped { created_at, extensions } = serde_json::from_slice(bytes).ok()?;
        Some(Stamp { created_at, is_own: self.is_in(&extensions) })
    }

    fn is_in(&self, extensions: &Map<String, Value>) -> bool {
        let text = |key: &str| extensions.get(JOBCTL).and_then(|section| section.get(key)).and_then(Value::as_str);
        text("run_id") == Some(&self.run_id) && text("step") == Some(&self.step)
    }

    /// Whether `root` was written by this step of this run.
    #[must_use]
    pub fn wrote(&self, root: &Root) -> bool {
        self.is_in(&root.extensions)
    }
}

/// Who writes a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// The writer's identity; never from the caller.
    pub actor: String,
    /// In a person's words.
    pub reason: String,
    /// This program.
    pub producer: Producer,
    /// The run and step, for work of a run.
    pub own_work: Option<OwnWork>,
}

/// A leaf as it is to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedLeaf {
    /// The product.
    pub product_id: ProductId,
    /// The SHA-256 of `bytes`, which gives its path.
    pub sha256: Sha256Hex,
    /// The document.
    pub bytes: Vec<u8>,
}

/// Everything that has to be written for a version, in this order: leaves, root, `CURRENT`.
#[derive(Debug, Clone, PartialEq)]
pub struct NextVersion {
    /// The leaves that are new.
    pub leaves: Vec<EncodedLeaf>,
    /// The root.
    pub root: Root,
    /// Its bytes.
    pub root_bytes: Vec<u8>,
    /// Their SHA-256.
    pub root_sha256: Sha256Hex,
    /// What became of the edition that the operation is about.
    pub mark: Option<Mark>,
    /// The editions that a batch refused.
    pub refused: Vec<RefusedEdition>,
}

/// What is to be done about an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Nothing: it is done.
    Already(Done),
    /// Write this version.
    Write(Box<NextVersion>),
}

/// The time of a version after `base` (*catalog* §6.6): the writer's, but at least a millisecond after the base's.
///
/// # Errors
/// [`Refusal::ClockBehind`] when the base is more than five minutes ahead.
pub fn created_at(base: &Root, now: Instant) -> Result<Instant, Box<Refusal>> {
    if base.created_at > now.plus_ms(MAX_BASE_AHEAD_MS) {
        return Err(Box::new(Refusal::ClockBehind { base: base.created_at, now }));
    }
    Ok(now.max(base.created_at.plus_ms(1)))
}

/// The time that a decision goes by: the store's (*catalog* §6.4, D33). A clock that is behind waits on it.
///
/// # Errors
/// [`Refusal::ClockAhead`] when the job's own clock is more than a minute ahead of it.
pub fn store_time(store: Instant, clock: Instant) -> Result<Instant, Box<Refusal>> {
    if clock > store.plus_ms(MAX_CLOCK_AHEAD_MS) {
        return Err(Box::new(Refusal::ClockAhead { clock, store }));
    }
    Ok(store)
}

/// What `operation` makes of `base`, as documents. `restore_epoch` is `catalog.json`'s; `now` is the store's time.
///
/// # Errors
/// [`Refusal`] with the first rule that forbids the operation.
pub fn plan(
    base: &Base<'_>,
    restore_epoch: u64,
    operation: &Operation,
    facts: &Facts,
    by: &By,
    now: Instant,
) -> Result<Decision, Box<Refusal>> {
    let at = created_at(base.root, now)?;
    match verdict(base, operation, facts, Times { now, at })? {
        Verdict::Already(done) => Ok(Decision::Already(done)),
        Verdict::Change(outcome) => {
            next_version(base, restore_epoch, *outcome, operation.kind(), by, now).map(|v| Decision::Write(Box::new(v)))
        }
    }
}

/// The documents of the version after `base` in which `outcome` holds: history fields from the base alone, `created_at`
/// by [`created_at`], the other sections of the extensions carried on.
///
/// # Errors
/// [`Refusal::ClockBehind`]; [`Refusal::Invalid`] and [`Refusal::MissingLeaf`] should the outcome contradict the format.
pub fn next_version(
    base: &Base<'_>,
    restore_epoch: u64,
    outcome: Outcome,
    kind: EventKind,
    by: &By,
    now: Instant,
) -> Result<NextVersion, Box<Refusal>> {
    let created_at = created_at(base.root, now)?;
    let new = new_leaves(&base.root.products, &outcome)?;
    let retired = outcome.retired.clone().unwrap_or_else(|| base.root.retired.clone());
    let changes = {
        let old = |product: &ProductId| base.leaves.get(product).map(Arc::as_ref);
        let leaf = |product: &ProductId| outcome.leaves.get(product).or_else(|| old(product));
        let before = Side { products: &base.root.products, retired: &base.root.retired, leaf: &old };
        changes_between(&before, &Side { products: &new.products, retired: &retired, leaf: &leaf })?
    };
    let root = Root {
        format_version: INVENTORY_FORMAT,
        seq: base.root.seq.next(),
        previous_inventory: Some(outcome.built_from.unwrap_or(base.root.seq)),
        restore_epoch,
        created_at,
        producer: by.producer.clone(),
        embargo: outcome.embargo.unwrap_or(base.root.embargo),
        products: new.products,
        retired,
        event: Event { actor: by.actor.clone(), reason: by.reason.clone(), kind },
        extensions: extensions(&base.root.extensions, &outcome, by.own_work.as_ref()),
        previous_root_sha256: Some(Some(base.root_sha256.clone())),
        changes: Some(changes),
        other: Map::new(),
    };
    encoded(root, new.leaves, outcome)
}

/// The leaves of an outcome as documents, and the references to all leaves of its version.
struct NewLeaves {
    products: BTreeMap<ProductId, ProductRef>,
    leaves: Vec<EncodedLeaf>,
}

fn new_leaves(base: &BTreeMap<ProductId, ProductRef>, outcome: &Outcome) -> Result<NewLeaves, Box<Refusal>> {
    let mut products = base.clone();
    let mut leaves = Vec::with_capacity(outcome.leaves.len());
    for (product_id, leaf) in &outcome.leaves {
        leaf.validate()?;
        let bytes = leaf.encode()?;
        let sha256 = Sha256Hex::of(&bytes);
        let known = products.insert(product_id.clone(), ProductRef { leaf_sha256: sha256.clone() });
        if known.is_none_or(|known| known.leaf_sha256 != sha256) {
            leaves.push(EncodedLeaf { product_id: product_id.clone(), sha256, bytes });
        }
    }
    Ok(NewLeaves { products, leaves })
}

/// Version 1 of a new catalog: no product, the embargo as asked for, and the description (D27).
///
/// # Errors
/// [`Refusal::Invalid`] should the document contradict the format.
pub fn first_version(
    restore_epoch: u64,
    embargo: bool,
    statcat: Option<Map<String, Value>>,
    by: &By,
    now: Instant,
) -> Result<NextVersion, Box<Refusal>> {
    encoded(first_root(restore_epoch, embargo, EventKind::Describe, statcat, by, now), Vec::new(), Outcome::default())
}

/// The root of version 1, without a product.
pub(super) fn first_root(
    restore_epoch: u64,
    embargo: bool,
    kind: EventKind,
    statcat: Option<Map<String, Value>>,
    by: &By,
    now: Instant,
) -> Root {
    let outcome = Outcome { statcat, ..Outcome::default() };
    Root {
        format_version: INVENTORY_FORMAT,
        seq: Seq::FIRST,
        previous_inventory: None,
        restore_epoch,
        created_at: now,
        producer: by.producer.clone(),
        embargo,
        products: BTreeMap::new(),
        retired: Vec::new(),
        event: Event { actor: by.actor.clone(), reason: by.reason.clone(), kind },
        extensions: extensions(&Map::new(), &outcome, by.own_work.as_ref()),
        previous_root_sha256: Some(None),
        changes: Some(Vec::new()),
        other: Map::new(),
    }
}

/// Version 1 with the leaves of `outcome`.
pub(super) fn first_with(mut root: Root, outcome: Outcome) -> Result<NextVersion, Box<Refusal>> {
    let new = new_leaves(&BTreeMap::new(), &outcome)?;
    root.changes = Some(first_changes(&new.products, &outcome)?);
    root.products = new.products;
    encoded(root, new.leaves, outcome)
}

fn first_changes(products: &BTreeMap<ProductId, ProductRef>, outcome: &Outcome) -> Result<Vec<Change>, MissingLeaf> {
    let (nothing, none) = (BTreeMap::new(), |_: &ProductId| -> Option<&Leaf> { None });
    let leaf = |product: &ProductId| outcome.leaves.get(product);
    let before = Side { products: &nothing, retired: &[], leaf: &none };
    changes_between(&before, &Side { products, retired: &[], leaf: &leaf })
}

fn encoded(root: Root, leaves: Vec<EncodedLeaf>, outcome: Outcome) -> Result<NextVersion, Box<Refusal>> {
    root.validate()?;
    let root_bytes = root.encode()?;
    let Outcome { mark, refused, .. } = outcome;
    Ok(NextVersion { leaves, root_sha256: Sha256Hex::of(&root_bytes), root, root_bytes, mark, refused })
}

/// The editions that the version refused, as it persists them; empty when its section cannot be read.
#[must_use]
pub fn refused_in(root: &Root) -> Vec<RefusedEdition> {
    section_list(root, "refusals")
}

/// Who registered the editions that the version folded, and why.
#[must_use]
pub fn folded_in(root: &Root) -> Vec<Folded> {
    section_list(root, "folded")
}

fn section_list<T: serde::de::DeserializeOwned>(root: &Root, key: &str) -> Vec<T> {
    let listed = root.extensions.get(JOBCTL).and_then(|section| section.get(key));
    listed.and_then(|listed| serde_json::from_value(listed.clone()).ok()).unwrap_or_default()
}

/// The sections of the next root. Our own speaks of its version alone (D34), but for what was expunged (D29).
fn extensions(base: &Map<String, Value>, outcome: &Outcome, own_work: Option<&OwnWork>) -> Map<String, Value> {
    let mut sections = base.clone();
    let before = sections.remove(JOBCTL);
    if let Some(section) = &outcome.statcat {
        sections.insert("statcat".to_owned(), Value::Object(section.clone()));
    }
    let mut own = Map::new();
    if let Some(work) = own_work {
        own.insert("run_id".to_owned(), json!(work.run_id));
        own.insert("step".to_owned(), json!(work.step));
    }
    if !outcome.refused.is_empty() {
        own.insert("refusals".to_owned(), json!(outcome.refused));
    }
    if !outcome.folded.is_empty() {
        own.insert("folded".to_owned(), json!(outcome.folded));
    }
    if let Some(expunged) = before.as_ref().and_then(|section| section.get("expunged")) {
        own.insert("expunged".to_owned(), expunged.clone());
    }
    if !own.is_empty() {
        own.insert("format_version".to_owned(), json!("1.0"));
        sections.insert(JOBCTL.to_owned(), Value::Object(own));
    }
    sections
}
