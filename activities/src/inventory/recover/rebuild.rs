//! Building an Inventory from the manifests, for a catalog that was never rolled back (*catalog* §6.7).

use bytes::Bytes;
use catalog_rules::ids::{EditionId, ProductId, Sha256Hex};
use catalog_rules::inventory::{
    By, CatalogJson, Current, Document as _, Facts, Leaf, ManifestFacts, OwnWork, RebuildAsked, Rebuilt, Record,
    Refusal, Remains, RootFound, Seq, WriterStage, rebuild_inventory as decide,
};
use catalog_rules::layout;
use catalog_rules::manifest::Manifest;
use engine_rules::crash;

use super::super::error::{InventoryError, LeafFault};
use super::super::head::Head;
use super::super::init::open_catalog;
use super::super::writer::advance_current;
use crate::store::{Create, Replace, Store};

/// An Inventory that is to be rebuilt.
#[derive(Debug, Clone, Copy)]
pub struct RebuildInventory {
    /// What a person says of it.
    pub asked: RebuildAsked,
    /// Only decide, and change nothing.
    pub dry_run: bool,
}

/// An Inventory that was rebuilt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuiltInventory {
    /// The new epoch.
    pub restore_epoch: u64,
    /// The SHA-256 of root 1.
    pub root_sha256: Sha256Hex,
    /// How many products it has.
    pub products: usize,
    /// The editions and their states, by product and edition.
    pub editions: Vec<(ProductId, EditionId, String)>,
    /// Whether an earlier attempt of the same step had done it already.
    pub already: bool,
}

/// Rebuilds the Inventory from every sealed edition of the catalog, under its lock: `catalog.json` with the new epoch,
/// then the leaves and root 1, then `CURRENT`. Safe to repeat: after a crash the same call goes on, with a higher epoch
/// if `catalog.json` was written already.
///
/// # Errors
/// [`InventoryError::Refused`] with [`RecoveryRefusal`](catalog_rules::inventory::RecoveryRefusal) that names what would
/// be lost, or by an invariant; nothing is written then.
pub fn rebuild_inventory(
    store: &dyn Store,
    rebuild: RebuildInventory,
    by: &By,
) -> Result<RebuiltInventory, InventoryError> {
    let _lock = if rebuild.dry_run { None } else { Some(store.lock()?) };
    let catalog = open_catalog(store)?;
    catalog.admit_writer(WriterStage::One)?;
    if let Some(own) = by.own_work.as_ref().map(|own| own_first(store, &catalog, own)).transpose()?.flatten() {
        advance_current(store, &own)?;
        return told(store, &own);
    }
    let remains = remains(store)?;
    let (editions, facts) = sealed_editions(store)?;
    let rebuilt = decide(&catalog, &remains, &editions, rebuild.asked, &facts, by, store.now()?)?;
    let leaves: Vec<_> = rebuilt.version.leaves.iter().filter_map(|leaf| Leaf::decode(&leaf.bytes).ok()).collect();
    if !rebuild.dry_run {
        write(store, &catalog, &rebuilt)?;
    }
    Ok(RebuiltInventory {
        restore_epoch: rebuilt.restore_epoch,
        root_sha256: rebuilt.version.root_sha256,
        products: leaves.len(),
        editions: states(&leaves),
        already: false,
    })
}

fn write(store: &dyn Store, catalog: &CatalogJson, rebuilt: &Rebuilt) -> Result<(), InventoryError> {
    let encode = |document: &CatalogJson| {
        let bytes = document.encode().map(Bytes::from);
        bytes.map_err(|source| InventoryError::Document { path: layout::CATALOG.to_owned(), source })
    };
    let old = store.get(layout::CATALOG)?;
    let new = encode(&CatalogJson { restore_epoch: rebuilt.restore_epoch, ..catalog.clone() })?;
    if let Replace::Changed(_) = store.replace(layout::CATALOG, old.as_ref(), &new)? {
        return Err(InventoryError::Contended { races: 1, seq: Seq::FIRST });
    }
    crash::point("inventory.rebuild.after_epoch");
    let version = &rebuilt.version;
    for leaf in &version.leaves {
        let path = layout::leaf(&leaf.sha256);
        if let Create::Lost(found) = store.create(&path, &Bytes::from(leaf.bytes.clone()))? {
            let fault = LeafFault::Hash { found: Sha256Hex::of(&found) };
            return Err(InventoryError::Leaf { product: leaf.product_id.clone(), path, fault });
        }
    }
    if let Create::Lost(_) = store.create(&layout::root(Seq::FIRST), &Bytes::from(version.root_bytes.clone()))? {
        return Err(InventoryError::Contended { races: 1, seq: Seq::FIRST });
    }
    crash::point("inventory.rebuild.after_root");
    advance_current(store, &Head { root: version.root.clone(), root_sha256: version.root_sha256.clone() })
}

/// Root 1, when this step wrote it.
fn own_first(store: &dyn Store, catalog: &CatalogJson, own: &OwnWork) -> Result<Option<Head>, InventoryError> {
    let Some(bytes) = store.get(&layout::root(Seq::FIRST))? else { return Ok(None) };
    let head = Head::decode(Seq::FIRST, &bytes).ok();
    Ok(head.filter(|head| head.root.restore_epoch == catalog.restore_epoch && own.wrote(&head.root)))
}

fn told(store: &dyn Store, own: &Head) -> Result<RebuiltInventory, InventoryError> {
    let mut leaves = Vec::new();
    for reference in own.root.products.values() {
        let bytes = store.get(&layout::leaf(&reference.leaf_sha256))?;
        leaves.extend(bytes.and_then(|bytes| Leaf::decode(&bytes).ok()));
    }
    Ok(RebuiltInventory {
        restore_epoch: own.root.restore_epoch,
        root_sha256: own.root_sha256.clone(),
        products: own.root.products.len(),
        editions: states(&leaves),
        already: true,
    })
}

fn states(leaves: &[Leaf]) -> Vec<(ProductId, EditionId, String)> {
    let of = |leaf: &Leaf| {
        let product = leaf.product_id.clone();
        let state = move |entry: &catalog_rules::inventory::LeafEntry| {
            (product.clone(), entry.edition_id.clone(), entry.state.to_string())
        };
        leaf.editions.iter().map(state).collect::<Vec<_>>()
    };
    leaves.iter().flat_map(of).collect()
}

/// What is left of the Inventory.
fn remains(store: &dyn Store) -> Result<Remains, InventoryError> {
    let mut remains = Remains::default();
    for name in store.list(layout::INVENTORY)?.objects {
        let path = format!("{}/{name}", layout::INVENTORY);
        if let Some(seq) = layout::seq_of_root(&path)
            && let RootFound::Valid = RootFound::of(seq, store.get(&path)?.as_deref())
        {
            remains.valid = remains.valid.max(Some(seq));
        }
        remains.objects.push(path);
    }
    for epoch in store.list(layout::SEGMENTS)?.folders {
        let folder = format!("{}/{epoch}", layout::SEGMENTS);
        remains.objects.extend(store.list(&folder)?.objects.into_iter().map(|name| format!("{folder}/{name}")));
    }
    for name in store.list(layout::LEAVES)?.objects {
        let bytes = store.get(&format!("{}/{name}", layout::LEAVES))?;
        remains.leaves.extend(bytes.and_then(|bytes| Leaf::decode(&bytes).ok()));
    }
    remains.current = store.get(layout::CURRENT)?.as_deref().and_then(Current::decode);
    Ok(remains)
}

/// Every sealed edition of the catalog, with its manifest as it is now.
fn sealed_editions(store: &dyn Store) -> Result<(Vec<Record>, Facts), InventoryError> {
    let (mut editions, mut facts) = (Vec::new(), Facts::default());
    for folder in store.list(layout::PRODUCTS)?.folders {
        let Ok(product) = folder.parse::<ProductId>() else { continue };
        for name in store.list(&layout::product(&product))?.folders {
            let Ok(edition) = name.parse::<EditionId>() else { continue };
            let Some(bytes) = store.get(&layout::manifest(&product, &edition))? else { continue };
            let manifest = Manifest::decode(&bytes).map_err(|_| {
                let (product, edition) = (product.clone(), edition.clone());
                Box::new(Refusal::ManifestUnreadable { product, edition })
            })?;
            editions.push(Record::from_manifest(&manifest, Sha256Hex::of(&bytes), None, None)?);
            facts.manifests.insert(edition, ManifestFacts::of(&bytes));
        }
    }
    Ok((editions, facts))
}
