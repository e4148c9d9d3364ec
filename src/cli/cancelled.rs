//! What a cancelled publish or fold leaves behind: its seal is taken back, so that no repair makes live what a person stopped.
//!
//! The narrow repair (*catalog* §6.7) cannot tell a seal that a crash interrupted from one that a person cancelled; the
//! journal of the runs can. The workflow takes the entry back when it is told of the cancel; should that have failed, the
//! entry goes here, when the cancel is told of, or before the product's next publish begins.

use std::sync::Arc;

use activities::edition::{EditionState, list};
use activities::inventory::{FullInventory, fetch_from};
use activities::publish::abandon;
use catalog_rules::contracts::publish::{AbandonInput, OpenOutput};
use catalog_rules::ids::{EditionId, ProductId};
use catalog_rules::instant::Instant;
use catalog_rules::layout;
use engine::{Reader, RunDetail, RunFilter, RunId};
use engine_rules::activity::ActivityContext;
use engine_rules::failure::ActivityError as _;
use engine_rules::state::RunState;
use serde_json::{Value, json};

use crate::exit::Ended;
use crate::output::Output;
use crate::wire::{World, engine_error};

/// The workflows that seal an edition, each with a first step `open` that minted its id and with the product in its
/// input.
const SEALING: [&str; 2] = [workflows::publish::NAME, workflows::fold::NAME];

/// What stands in the catalog of a publish that was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The run came to record it before it was cancelled.
    Recorded,
    /// A sealed edition that no version names, and that none will name.
    Sealed,
    /// A half-written edition, which stands in the way of the product's next publish.
    Unsealed,
}

/// What a cancelled run leaves in the catalog.
#[derive(Debug)]
pub enum Remains {
    /// The edition of a publish or a fold, and what becomes of it.
    Edition {
        /// The product.
        product_id: ProductId,
        /// The edition.
        edition_id: EditionId,
        /// What stands of it.
        left: Left,
    },
    /// The versions that an operation wrote before it was told, oldest first, each with its kind.
    Versions(Vec<(u64, String)>),
}

impl Remains {
    /// Says it, with what there is to do.
    pub fn tell(&self, out: Output) {
        out.line(self.text());
    }

    /// It as a person reads it, with what there is to do.
    pub fn text(&self) -> String {
        match self {
            Self::Edition { edition_id, left: Left::Recorded, .. } => {
                format!("edition {edition_id} was recorded before, and stays as it is")
            }
            Self::Edition { edition_id, left: Left::Sealed, .. } => {
                format!("edition {edition_id} was sealed, and will not be recorded")
            }
            Self::Edition { product_id, edition_id, left: Left::Unsealed } => format!(
                "edition {edition_id} is half written; before the next publish: jobctl edition discard {edition_id} \
                 --product {product_id} --reason …"
            ),
            Self::Versions(versions) => {
                let told = |(seq, kind): &(u64, String)| format!("version {seq} ({kind})");
                let told: Vec<_> = versions.iter().map(told).collect();
                format!(
                    "{} was written before the cancel, and stands: jobctl inventory log says what it did",
                    told.join(" and ")
                )
            }
        }
    }

    /// The edition as a document.
    pub fn edition(&self) -> Option<Value> {
        let Self::Edition { product_id, edition_id, left } = self else { return None };
        let left = match left {
            Left::Recorded => "recorded",
            Left::Sealed => "sealed",
            Left::Unsealed => "unsealed",
        };
        Some(json!({ "product_id": product_id, "edition_id": edition_id, "left": left }))
    }

    /// The versions as a document.
    pub fn versions(&self) -> Option<Value> {
        let Self::Versions(versions) = self else { return None };
        Some(versions.iter().map(|(seq, kind)| json!({ "seq": seq, "kind": kind })).collect())
    }
}

/// Takes back the seal of the run, if it is a publish that ended as cancelled and had begun an edition. Returns what it
/// leaves in the catalog. Repeats are safe.
///
/// # Errors
/// What the engine, the catalog or the disk fails with; the entry may then still be there, and goes before the product's
/// next publish.
pub async fn take_back(world: &World, reader: &Reader, run_id: RunId) -> Result<Option<Remains>, Ended> {
    let detail = reader.run(run_id).await.map_err(|error| engine_error(&error))?;
    let Some((product_id, edition_id)) = edition_of(&detail) else { return versions_of(world, &detail) };
    remove_entry(world, &product_id, &edition_id).await?;
    let marks = FullInventory::open(fetch_from(Arc::clone(&world.store)))
        .and_then(|inventory| inventory.marks(&product_id))
        .map_err(|error| Ended::from(error.to_failure()))?;
    let editions = list(&world.config.catalog.join(layout::product(&product_id)))
        .map_err(|error| Ended::from(error.to_failure()))?;
    let there = editions.into_iter().find(|edition| edition.edition_id == edition_id);
    let left = match there.map(|edition| edition.state) {
        _ if marks.contains_key(&edition_id) => Left::Recorded,
        Some(EditionState::Sealed(_) | EditionState::Unreadable(_)) => Left::Sealed,
        Some(EditionState::Unsealed) => Left::Unsealed,
        None => return Ok(None),
    };
    Ok(Some(Remains::Edition { product_id, edition_id, left }))
}

/// Takes back the seals of the product's cancelled publishes whose process died before it did so itself.
///
/// # Errors
/// As [`take_back`].
pub async fn take_back_all(world: &World, reader: &Reader, product_id: &ProductId) -> Result<(), Ended> {
    let entries = world.store.list(&layout::journals(product_id)).map_err(|error| Ended::from(error.to_failure()))?;
    if entries.objects.is_empty() {
        return Ok(());
    }
    for workflow in SEALING {
        let filter = RunFilter {
            states: vec![RunState::Cancelled],
            workflow: Some(workflow.to_owned()),
            labels: [("product".to_owned(), product_id.to_string())].into(),
            ..RunFilter::default()
        };
        for run in reader.runs(&filter).await.map_err(|error| engine_error(&error))? {
            let detail = reader.run(run.run_id).await.map_err(|error| engine_error(&error))?;
            if let Some((product_id, edition_id)) = edition_of(&detail)
                && entries.objects.contains(&format!("{edition_id}.json"))
            {
                remove_entry(world, &product_id, &edition_id).await?;
            }
        }
    }
    Ok(())
}

/// The same for every product: before the records of runs are deleted, which tell a cancelled seal from a crashed one.
///
/// # Errors
/// As [`take_back`].
pub async fn take_back_every(world: &World, reader: &Reader) -> Result<(), Ended> {
    let products = world.store.list(layout::PRODUCTS).map_err(|error| Ended::from(error.to_failure()))?;
    for product_id in products.folders.iter().filter_map(|name| name.parse().ok()) {
        take_back_all(world, reader, &product_id).await?;
    }
    Ok(())
}

/// The versions that a cancelled operation had written: a crash, or the end of its last attempt, came between the version
/// and its record.
fn versions_of(world: &World, detail: &RunDetail) -> Result<Option<Remains>, Ended> {
    if detail.run.state != RunState::Cancelled || world.store.get(layout::CATALOG).ok().flatten().is_none() {
        return Ok(None);
    }
    let since = Instant::from_ms(detail.run.created_at_ms);
    let versions = FullInventory::open(fetch_from(Arc::clone(&world.store)))
        .and_then(|inventory| inventory.written_by(&detail.run.run_id.to_string(), since))
        .map_err(|error| Ended::from(error.to_failure()))?;
    let told = versions.iter().rev().map(|version| (version.seq().get(), version.root.event.kind.to_string()));
    let told: Vec<_> = told.collect();
    Ok((!told.is_empty()).then_some(Remains::Versions(told)))
}

/// The edition that a cancelled publish or fold had begun.
fn edition_of(detail: &RunDetail) -> Option<(ProductId, EditionId)> {
    if detail.run.state != RunState::Cancelled || !SEALING.contains(&detail.run.workflow.as_str()) {
        return None;
    }
    let product_id = detail.run.input["product_id"].as_str()?.parse().ok()?;
    let open = detail.steps.iter().find(|step| step.name == "open")?.output.clone()?;
    let open: OpenOutput = serde_json::from_value(open).ok()?;
    Some((product_id, open.edition_id))
}

async fn remove_entry(world: &World, product_id: &ProductId, edition_id: &EditionId) -> Result<(), Ended> {
    let input = AbandonInput { product_id: product_id.clone(), edition_id: edition_id.clone(), discard_unsealed: true };
    let deps = world.publish_deps();
    let removed = tokio::task::spawn_blocking(move || abandon(&deps, &ActivityContext::detached(), input)).await;
    match removed {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_failure().into()),
        Err(error) => Err(Ended::usage(format!("the seal journal's entry was not taken back: {error}"))),
    }
}
