//! Creating a catalog, and telling one from anything else (*catalog* §4.1, §6.1, D27).

use std::collections::BTreeMap;

use bytes::Bytes;
use catalog_rules::ids::{CatalogId, Sha256Hex};
use catalog_rules::inventory::{By, CatalogJson, Document as _, Seq, first_version};
use catalog_rules::layout;
use engine_rules::crash;
use serde_json::{Map, Value, json};

use super::error::InventoryError;
use super::head::{Head, find_head, read_catalog};
use super::writer::advance_current;
use crate::store::{Create, Store};

/// A catalog to be created.
#[derive(Debug, Clone)]
pub struct Init {
    /// Its name; kept when an interrupted creation is finished, which keeps the name that it had begun with.
    pub catalog_id: CatalogId,
    /// Whether sealed editions wait for their release.
    pub embargo: bool,
    /// Its title by language; empty for none.
    pub title: BTreeMap<String, String>,
    /// Files at the root of the folder that may be there already, such as the caller's configuration.
    pub beside: Vec<String>,
}

/// A catalog that was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initialised {
    /// Its name.
    pub catalog_id: CatalogId,
    /// The SHA-256 of root 1.
    pub root_sha256: Sha256Hex,
    /// Whether it was there already, by the same step, or all but its `CURRENT`.
    pub already: bool,
}

/// Creates a catalog: `catalog.json`, then version 1, then `CURRENT`.
///
/// Complete or resumable: after a crash the same call finishes what is there. A folder that holds anything else, or a
/// catalog that is complete, is refused and nothing is created.
///
/// # Errors
/// [`InventoryError::NotEmpty`], [`InventoryError::OtherLayout`], [`InventoryError::Exists`]; else what the store or a
/// document fails with.
pub fn init_catalog(store: &dyn Store, init: &Init, by: &By) -> Result<Initialised, InventoryError> {
    refuse_other_content(store, &init.beside)?;
    store.prepare()?;
    let _lock = store.lock()?;
    refuse_other_content(store, &init.beside)?;

    let document = CatalogJson::new(init.catalog_id.clone());
    let bytes = document.encode().map_err(|source| document_error(layout::CATALOG, source))?;
    let catalog = match store.create(layout::CATALOG, &Bytes::from(bytes))? {
        Create::Won => document,
        Create::Lost(found) => CatalogJson::decode(&found).map_err(|source| document_error(layout::CATALOG, source))?,
    };
    crash::point("inventory.after_catalog_json");

    let (head, already) = match newest(store)? {
        Some(newest) => (finish(store, &catalog, newest, by)?, true),
        None => (write_first(store, &catalog, init, by)?, false),
    };
    crash::point("inventory.after_first_root");
    advance_current(store, &head)?;
    Ok(Initialised { catalog_id: catalog.catalog_id, root_sha256: head.root_sha256, already })
}

/// The newest version of a catalog that was found, or `None` when its creation did not come to version 1.
fn newest(store: &dyn Store) -> Result<Option<Head>, InventoryError> {
    match find_head(&|path| store.get(path), None) {
        Ok(found) => Ok(Some(found.head)),
        Err(InventoryError::NoVersion { .. }) if store.get(&layout::root(Seq::FIRST))?.is_none() => Ok(None),
        Err(error) => Err(error),
    }
}

fn write_first(store: &dyn Store, catalog: &CatalogJson, init: &Init, by: &By) -> Result<Head, InventoryError> {
    let first = first_version(catalog.restore_epoch, init.embargo, description(&init.title), by, store.now()?)?;
    match store.create(&layout::root(Seq::FIRST), &Bytes::from(first.root_bytes))? {
        Create::Won => Ok(Head { root: first.root, root_sha256: first.root_sha256 }),
        Create::Lost(_) => Err(InventoryError::Exists {
            place: store.place(),
            catalog_id: catalog.catalog_id.clone(),
            seq: Seq::FIRST,
        }),
    }
}

/// The catalog has a version: either this step wrote it, or a crash came before `CURRENT`, or the catalog is complete.
fn finish(store: &dyn Store, catalog: &CatalogJson, newest: Head, by: &By) -> Result<Head, InventoryError> {
    let first = newest.seq() == Seq::FIRST;
    let own = first && by.own_work.as_ref().is_some_and(|own| own.wrote(&newest.root));
    if own || (first && store.get(layout::CURRENT)?.is_none()) {
        store.persist(&layout::root(Seq::FIRST))?;
        return Ok(newest);
    }
    Err(InventoryError::Exists { place: store.place(), catalog_id: catalog.catalog_id.clone(), seq: newest.seq() })
}

/// Opens a place as a catalog: its `catalog.json`, whatever major a reader knows.
///
/// # Errors
/// [`InventoryError::OtherLayout`] and [`InventoryError::NotACatalog`] for anything else, with nothing created;
/// [`InventoryError::Document`] when `catalog.json` cannot be read.
pub fn open_catalog(store: &dyn Store) -> Result<CatalogJson, InventoryError> {
    if store.get(layout::CATALOG)?.is_some() {
        for found in layout::OTHER_LAYOUTS {
            if store.get(found)?.is_some() {
                return Err(InventoryError::OtherLayout { place: store.place(), found: found.to_owned() });
            }
        }
        return read_catalog(&|path| store.get(path));
    }
    let listing = store.list("")?;
    let place = store.place();
    match listing.objects.iter().find(|name| layout::OTHER_LAYOUTS.contains(&name.as_str())) {
        Some(found) => Err(InventoryError::OtherLayout { place, found: found.clone() }),
        None => {
            let found = listing.objects.into_iter().chain(listing.folders).find(|name| name != layout::LOCK);
            Err(InventoryError::NotACatalog { place, found })
        }
    }
}

/// Refuses a folder that holds what no creation of a catalog leaves there.
fn refuse_other_content(store: &dyn Store, beside: &[String]) -> Result<(), InventoryError> {
    let listing = store.list("")?;
    if let Some(found) = listing.objects.iter().find(|name| layout::OTHER_LAYOUTS.contains(&name.as_str())) {
        return Err(InventoryError::OtherLayout { place: store.place(), found: found.clone() });
    }
    // A catalog, complete or not: what is in it is looked at later.
    if listing.objects.iter().any(|name| name == layout::CATALOG) {
        return Ok(());
    }
    let ours = |name: &&String| *name == layout::LOCK || beside.contains(*name);
    match listing.objects.iter().chain(&listing.folders).find(|name| !ours(name)) {
        None => Ok(()),
        Some(found) => Err(InventoryError::NotEmpty { place: store.place(), found: found.clone() }),
    }
}

/// The catalog's description with a title (*catalog* §6.2, `extensions.statcat`).
fn description(title: &BTreeMap<String, String>) -> Option<Map<String, Value>> {
    if title.is_empty() {
        return None;
    }
    let description = json!({ "title": title });
    Some(Map::from_iter([("format_version".to_owned(), json!("3")), ("description".to_owned(), description)]))
}

fn document_error(path: &str, source: catalog_rules::inventory::DocumentError) -> InventoryError {
    InventoryError::Document { path: path.to_owned(), source }
}
