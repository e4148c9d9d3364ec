//! Writes one version of the Inventory (*catalog* §6.6).

use std::collections::{BTreeMap, BTreeSet};

use catalog_rules::contracts::inventory::{
    CHANGES_TOLD, CommitInput, CommitOutput, EditionChange, Intent, REFUSALS_TOLD, SettingChange,
};
use catalog_rules::contracts::operations::DescriptionChange;
use catalog_rules::ids::{EditionId, ProductId, Sha256Hex};
use catalog_rules::inventory::{
    By, Change, Leaf, Lifecycle, NewEntry, Operation, OwnWork, Refusal, RefusedEdition, Release, Root,
};
use catalog_rules::layout;
use catalog_rules::manifest::Manifest;
use engine_rules::activity::ActivityContext;
use serde_json::{Map, Value, json};

use super::InventoryDeps;
use crate::inventory::{FullInventory, Head, InventoryError};
use crate::publish::producer;

/// Writes the version that does what the intent says, or recognises that it is done.
///
/// After it returns, the newest version has what was asked for, and `CURRENT` names it or a later one. Repeats are safe:
/// a version that this step of this run wrote is recognised and told again as it was.
///
/// # Errors
/// [`InventoryError::Refused`] by a rule of the catalog, with nothing written; [`InventoryError`] otherwise.
pub fn commit(deps: &InventoryDeps, ctx: &ActivityContext, input: CommitInput) -> Result<CommitOutput, InventoryError> {
    let tells_lifecycles = matches!(input.intent, Intent::SetLifecycle { .. } | Intent::Correct { .. });
    let operation = operation(deps, input.intent)?;
    let own = OwnWork { run_id: ctx.run_id.clone(), step: ctx.step.clone() };
    let by =
        By { actor: input.cause.actor, reason: input.cause.reason, producer: producer(), own_work: Some(own.clone()) };
    let committed = deps.writer()?.commit(&operation, &by)?;
    let inventory = deps.inventory()?;
    // A version of somebody else tells of other things: only the one that this step wrote is told.
    let version = inventory.version(committed.seq)?.filter(|version| own.wrote(&version.root));
    let mut output = CommitOutput {
        seq: committed.seq.get(),
        root_sha256: committed.root_sha256,
        already: version.is_none(),
        counts: BTreeMap::new(),
        changes: Vec::new(),
        settings: Vec::new(),
        refused_count: 0,
        refused: Vec::new(),
    };
    let changes = version.as_ref().and_then(|version| version.root.changes.as_deref()).unwrap_or_default();
    tell(changes, committed.refused, &mut output);
    if let Some(version) = &version {
        let before = version.seq().before().map(|seq| inventory.version(seq)).transpose()?.flatten();
        if let Some(before) = &before {
            output.settings = settings(&before.root, &version.root);
            if tells_lifecycles {
                output.settings.extend(lifecycles(&inventory, before, version, changes)?);
            }
        }
    }
    Ok(output)
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// The operation of an intent. What it needs of the catalog beside the head is read now.
fn operation(deps: &InventoryDeps, intent: Intent) -> Result<Operation, InventoryError> {
    Ok(match intent {
        Intent::ReleaseDue => Operation::Release(Release::Due),
        Intent::ReleaseProducts { products } => Operation::Release(Release::Products(products)),
        Intent::ReleaseEditions { product_id, editions } => {
            let editions = editions.into_iter().map(|edition| (product_id.clone(), edition));
            Operation::Release(Release::Editions(editions.collect()))
        }
        Intent::Rollback { products } => Operation::Rollback(products),
        Intent::Cancel { product_id, edition_id } => Operation::Cancel { product_id, edition_id },
        Intent::WithdrawLive { product_id, if_live } => Operation::WithdrawLive { product_id, if_live },
        Intent::Supersede { product_id, edition_id, by } => Operation::Supersede { product_id, edition_id, by },
        Intent::Reinstate { product_id, edition_id, manifest_sha256 } => {
            let entry = entry(deps, &product_id, &edition_id, &manifest_sha256)?;
            Operation::Reinstate { product_id, entry: Box::new(entry) }
        }
        Intent::Retire { editions, before_window } => {
            let pairs = editions.into_iter().flat_map(|(product, editions)| {
                editions.into_iter().map(move |edition| (product.clone(), edition)).collect::<BTreeSet<_>>()
            });
            Operation::Retire { editions: pairs.collect(), before_window }
        }
        Intent::Reschedule { product_id, edition_id, release_at } => {
            Operation::Reschedule { product_id, edition_id, release_at }
        }
        Intent::SupersedeSchema { schema_version, products } => Operation::SupersedeSchema { schema_version, products },
        Intent::SetLifecycle { product_id, lifecycle } => Operation::SetLifecycle { product_id, lifecycle },
        Intent::Embargo { on } => Operation::Embargo(on),
        Intent::Describe { description } => Operation::Describe(section(deps, description)?),
        Intent::Correct { to, products, confirmed_unread } => Operation::Correct { to, products, confirmed_unread },
    })
}

/// What the manifest gives to the entry of the edition, which must be the manifest that was settled on.
fn entry(
    deps: &InventoryDeps,
    product_id: &ProductId,
    edition_id: &EditionId,
    expected: &Sha256Hex,
) -> Result<NewEntry, InventoryError> {
    let (product, edition) = (product_id.clone(), edition_id.clone());
    let Some(bytes) = deps.store.get(&layout::manifest(product_id, edition_id))? else {
        return Err(Box::new(Refusal::ManifestMissing { product, edition }).into());
    };
    let found = Sha256Hex::of(&bytes);
    if found != *expected {
        return Err(Box::new(Refusal::ManifestDiffers { product, edition, found, expected: expected.clone() }).into());
    }
    match Manifest::decode(&bytes) {
        Ok(manifest) => Ok(NewEntry::from_manifest(&manifest, found)?),
        Err(_) => Err(Box::new(Refusal::ManifestUnreadable { product, edition }).into()),
    }
}

/// The whole section that a change of the description leads to, from the section of the newest version.
fn section(deps: &InventoryDeps, change: DescriptionChange) -> Result<Map<String, Value>, InventoryError> {
    let title = match change {
        DescriptionChange::Replace { section } => return Ok(section),
        DescriptionChange::Title { title } => title,
    };
    let inventory = deps.inventory()?;
    let now = inventory.head().root.extensions.get("statcat").and_then(Value::as_object);
    let mut section = now.cloned().unwrap_or_default();
    section.entry("format_version").or_insert_with(|| json!("3"));
    let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let mut description = section.get("description").map(object).unwrap_or_default();
    let mut titles = description.get("title").map(object).unwrap_or_default();
    titles.extend(title.into_iter().map(|(language, text)| (language, Value::from(text))));
    description.insert("title".to_owned(), Value::Object(titles));
    section.insert("description".to_owned(), Value::Object(description));
    Ok(section)
}

/// What became of the editions: all of them counted, and as many named as a record may hold.
pub(super) fn tell(changes: &[Change], refused: Vec<RefusedEdition>, output: &mut CommitOutput) {
    output.refused_count = count(refused.len());
    output.refused = refused;
    output.refused.truncate(REFUSALS_TOLD);
    for change in changes {
        for item in &change.entries {
            let state = item.to.map_or_else(|| "forgotten".to_owned(), |mark| mark.to_string());
            *output.counts.entry(state).or_default() += 1;
            if output.changes.len() < CHANGES_TOLD {
                output.changes.push(EditionChange {
                    product_id: change.product_id.clone(),
                    edition_id: item.edition_id.clone(),
                    from: item.from,
                    to: item.to,
                    release_at: item.entry.as_ref().and_then(|entry| entry.release_at),
                });
            }
        }
    }
}

/// What changed of the catalog itself.
fn settings(before: &Root, after: &Root) -> Vec<SettingChange> {
    let mut settings = Vec::new();
    if before.embargo != after.embargo {
        let to = if after.embargo { "on" } else { "off" };
        settings.push(SettingChange { setting: "embargo".to_owned(), product_id: None, to: Some(to.to_owned()) });
    }
    if before.extensions.get("statcat") != after.extensions.get("statcat") {
        settings.push(SettingChange { setting: "description".to_owned(), product_id: None, to: None });
    }
    settings
}

/// The products whose lifecycle changed.
fn lifecycles(
    inventory: &FullInventory,
    before: &Head,
    after: &Head,
    changes: &[Change],
) -> Result<Vec<SettingChange>, InventoryError> {
    let products = || changes.iter().map(|change| &change.product_id);
    let (old, new) = (inventory.leaves_in(before, products())?, inventory.leaves_in(after, products())?);
    let mut settings = Vec::new();
    for (product, leaf) in &new {
        if old.get(product).is_some_and(|before| before.lifecycle != leaf.lifecycle) {
            settings.push(SettingChange {
                setting: "lifecycle".to_owned(),
                product_id: Some(product.clone()),
                to: Some(lifecycle_text(leaf)),
            });
        }
    }
    Ok(settings)
}

fn lifecycle_text(leaf: &Leaf) -> String {
    match leaf.lifecycle {
        Lifecycle::Final => "final".to_owned(),
        Lifecycle::Revisable => "revisable".to_owned(),
    }
}
