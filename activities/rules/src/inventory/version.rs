//! From a decision to the documents of the next version (*catalog* §6.2, §6.6).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::change::{Mark, Side, changes_between};
use super::document::Document as _;
use super::operation::{Base, Facts, Operation, Outcome, Verdict, verdict};
use super::refusal::Refusal;
use super::root::{Event, EventKind, Producer, ProductRef, Root, Seq};
use super::{INVENTORY_FORMAT, MAX_BASE_AHEAD_MS};
use crate::ids::{ProductId, Sha256Hex};
use crate::instant::Instant;

/// The section of a root's extensions that this program owns.
const JOBCTL: &str = "jobctl";

/// The run and step that write a version, so that the step recognises its own root (D34).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnWork {
    /// The run.
    pub run_id: String,
    /// The step within it.
    pub step: String,
}

impl OwnWork {
    /// Whether `root` was written by this step of this run.
    #[must_use]
    pub fn wrote(&self, root: &Root) -> bool {
        let text = |key: &str| root.extensions.get(JOBCTL).and_then(|section| section.get(key)).and_then(Value::as_str);
        text("run_id") == Some(&self.run_id) && text("step") == Some(&self.step)
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
}

/// What is to be done about an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Nothing: it is done. The mark is what the head knows of the edition.
    Already(Option<Mark>),
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
    match verdict(base, operation, facts, at)? {
        Verdict::Already(mark) => Ok(Decision::Already(mark)),
        Verdict::Change(outcome) => {
            next_version(base, restore_epoch, outcome, operation.kind(), by, now).map(|v| Decision::Write(Box::new(v)))
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
    let mut products = base.root.products.clone();
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
    let retired = outcome.retired.unwrap_or_else(|| base.root.retired.clone());
    let changes = {
        let old = |product: &ProductId| base.leaves.get(product).map(Arc::as_ref);
        let new = |product: &ProductId| outcome.leaves.get(product).or_else(|| old(product));
        let before = Side { products: &base.root.products, retired: &base.root.retired, leaf: &old };
        let after = Side { products: &products, retired: &retired, leaf: &new };
        changes_between(&before, &after)?
    };
    let root = Root {
        format_version: INVENTORY_FORMAT,
        seq: base.root.seq.next(),
        previous_inventory: Some(base.root.seq),
        restore_epoch,
        created_at,
        producer: by.producer.clone(),
        embargo: base.root.embargo,
        products,
        retired,
        event: Event { actor: by.actor.clone(), reason: by.reason.clone(), kind },
        extensions: extensions(&base.root.extensions, outcome.statcat, by.own_work.as_ref()),
        previous_root_sha256: Some(Some(base.root_sha256.clone())),
        changes: Some(changes),
        other: Map::new(),
    };
    encoded(root, leaves, outcome.mark)
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
    let root = Root {
        format_version: INVENTORY_FORMAT,
        seq: Seq::FIRST,
        previous_inventory: None,
        restore_epoch,
        created_at: now,
        producer: by.producer.clone(),
        embargo,
        products: BTreeMap::new(),
        retired: Vec::new(),
        event: Event { actor: by.actor.clone(), reason: by.reason.clone(), kind: EventKind::Describe },
        extensions: extensions(&Map::new(), statcat, by.own_work.as_ref()),
        previous_root_sha256: Some(None),
        changes: Some(Vec::new()),
        other: Map::new(),
    };
    encoded(root, Vec::new(), None)
}

fn encoded(root: Root, leaves: Vec<EncodedLeaf>, mark: Option<Mark>) -> Result<NextVersion, Box<Refusal>> {
    root.validate()?;
    let root_bytes = root.encode()?;
    Ok(NextVersion { leaves, root_sha256: Sha256Hex::of(&root_bytes), root, root_bytes, mark })
}

/// The sections of the next root. Our own speaks of its version alone (D34), but for what was expunged (D29).
fn extensions(
    base: &Map<String, Value>,
    statcat: Option<Map<String, Value>>,
    own_work: Option<&OwnWork>,
) -> Map<String, Value> {
    let mut sections = base.clone();
    let before = sections.remove(JOBCTL);
    if let Some(section) = statcat {
        sections.insert("statcat".to_owned(), Value::Object(section));
    }
    let expunged = before.as_ref().and_then(|section| section.get("expunged"));
    if own_work.is_some() || expunged.is_some() {
        let mut section = Map::from_iter([("format_version".to_owned(), json!("1.0"))]);
        if let Some(own) = own_work {
            section.insert("run_id".to_owned(), json!(own.run_id));
            section.insert("step".to_owned(), json!(own.step));
        }
        if let Some(expunged) = expunged {
            section.insert("expunged".to_owned(), expunged.clone());
        }
        sections.insert(JOBCTL.to_owned(), Value::Object(section));
    }
    sections
}
