//! Leaves, each fetched once: several at a time, verified, and kept by hash.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use catalog_rules::ids::{ProductId, Sha256Hex};
use catalog_rules::inventory::{Document as _, Leaf, Root};
use catalog_rules::layout;

use super::error::{InventoryError, LeafFault};
use super::head::FetchRef;

/// How many threads fetch and decode: enough that a store far away is not asked one leaf after the other.
const THREADS: usize = 8;
/// Fewer objects than so many a thread are not worth another one.
const ITEMS_A_THREAD: usize = 32;

/// What is kept of a leaf.
pub(super) trait Kept: Send + Sync {
    /// What `leaf` leaves behind.
    fn of(leaf: Leaf) -> Self;
    /// Its product.
    fn product(&self) -> &ProductId;
}

impl Kept for Leaf {
    fn of(leaf: Leaf) -> Self {
        leaf
    }

    fn product(&self) -> &ProductId {
        &self.product_id
    }
}

/// The leaves that were read, by their hash. A leaf never changes, so one that was read is not read again until it is
/// forgotten.
pub(super) struct Leaves<T>(Mutex<HashMap<Sha256Hex, Arc<T>>>);

impl<T> Default for Leaves<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> fmt::Debug for Leaves<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaves").finish_non_exhaustive()
    }
}

impl<T: Kept> Leaves<T> {
    /// The leaf of `product` with this hash, fetched and verified.
    pub(super) fn one(
        &self,
        fetch: FetchRef<'_>,
        product: &ProductId,
        sha256: &Sha256Hex,
    ) -> Result<Arc<T>, InventoryError> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(sha256).map(Arc::clone);
        if let Some(leaf) = known {
            return of_product(leaf, product, sha256);
        }
        let leaf = Arc::new(T::of(fetch_leaf(fetch, product, sha256)?));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(sha256.clone(), Arc::clone(&leaf));
        Ok(leaf)
    }

    /// The leaves of `wanted`, by product, those that are not known fetched on several threads.
    pub(super) fn some<'a>(
        &self,
        fetch: FetchRef<'_>,
        wanted: impl IntoIterator<Item = (&'a ProductId, &'a Sha256Hex)>,
    ) -> Result<BTreeMap<ProductId, Arc<T>>, InventoryError> {
        let (mut leaves, mut missing) = (BTreeMap::new(), Vec::new());
        {
            let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            for (product, sha256) in wanted {
                match known.get(sha256) {
                    Some(leaf) => drop(leaves.insert(product.clone(), of_product(Arc::clone(leaf), product, sha256)?)),
                    None => missing.push((product, sha256)),
                }
            }
        }
        let fetched = several(&missing, |(product, sha256)| {
            fetch_leaf(fetch, product, sha256).map(|leaf| Arc::new(T::of(leaf)))
        })?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for ((product, sha256), leaf) in missing.into_iter().zip(fetched) {
            known.insert(sha256.clone(), Arc::clone(&leaf));
            leaves.insert(product.clone(), leaf);
        }
        Ok(leaves)
    }

    /// Every leaf of `root`.
    pub(super) fn all(&self, fetch: FetchRef<'_>, root: &Root) -> Result<BTreeMap<ProductId, Arc<T>>, InventoryError> {
        self.some(fetch, root.products.iter().map(|(product, reference)| (product, &reference.leaf_sha256)))
    }

    /// Forgets the leaves that `root` does not name.
    pub(super) fn keep(&self, root: &Root) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return;
        }
        let named: HashSet<_> = root.products.values().map(|reference| &reference.leaf_sha256).collect();
        known.retain(|sha256, _| named.contains(sha256));
    }
}

fn of_product<T: Kept>(leaf: Arc<T>, product: &ProductId, sha256: &Sha256Hex) -> Result<Arc<T>, InventoryError> {
    if leaf.product() == product {
        return Ok(leaf);
    }
    Err(fault(product, sha256, LeafFault::Product { found: leaf.product().clone() }))
}

fn fault(product: &ProductId, sha256: &Sha256Hex, fault: LeafFault) -> InventoryError {
    InventoryError::Leaf { product: product.clone(), path: layout::leaf(sha256), fault }
}

/// The leaf in `bytes`, which must be the one with this hash, of this product.
pub(super) fn decode_leaf(bytes: Option<&[u8]>, product: &ProductId, sha256: &Sha256Hex) -> Result<Leaf, LeafFault> {
    let bytes = bytes.ok_or(LeafFault::Missing)?;
    let found = Sha256Hex::of(bytes);
    if found != *sha256 {
        return Err(LeafFault::Hash { found });
    }
    let leaf = Leaf::decode(bytes).map_err(LeafFault::Document)?;
    if leaf.product_id == *product { Ok(leaf) } else { Err(LeafFault::Product { found: leaf.product_id }) }
}

/// The leaf of `product` with this hash.
pub(super) fn fetch_leaf(fetch: FetchRef<'_>, product: &ProductId, sha256: &Sha256Hex) -> Result<Leaf, InventoryError> {
    let bytes = fetch(&layout::leaf(sha256))?;
    decode_leaf(bytes.as_deref(), product, sha256).map_err(|found| fault(product, sha256, found))
}

/// What `work` makes of each of `items`, in their order, done on several threads when there are many.
///
/// # Errors
/// That of the first item, in their order, of those that were tried: after an error no further one is.
pub(super) fn several<I: Sync, T: Send, E: Send>(
    items: &[I],
    work: impl Fn(&I) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let threads = THREADS.min(items.len() / ITEMS_A_THREAD);
    if threads < 2 {
        return items.iter().map(work).collect();
    }
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let one_thread = || {
        let mut done = Vec::with_capacity(items.len() / threads + 1);
        while !failed.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            let result = work(item);
            if result.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            done.push((at, result));
        }
        done
    };
    let mut all = Vec::with_capacity(items.len());
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(one_thread)).collect();
        all.extend(one_thread());
        for other in others {
            match other.join() {
                Ok(done) => all.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn what_is_done_on_several_threads_comes_in_order_and_fails_with_the_first_error() {
        let items: Vec<usize> = (0..1000).collect();
        let threads = Mutex::new(BTreeSet::new());
        let work = |item: &usize| {
            threads.lock().unwrap().insert(format!("{:?}", thread::current().id()));
            // The first items take long, so that the others are on other threads.
            let slow: u64 = (0..if *item < 8 { 3_000_000 } else { 10 }).fold(1, |a: u64, b| a.wrapping_mul(31) ^ b);
            Ok::<_, String>((*item, std::hint::black_box(slow)).0)
        };
        assert_eq!(several(&items, work).unwrap(), items);
        assert!(threads.lock().unwrap().len() > 1);
        // Fewer are done where the caller is.
        threads.lock().unwrap().clear();
        assert_eq!(several(&items[..ITEMS_A_THREAD], work).unwrap(), items[..ITEMS_A_THREAD]);
        assert_eq!(threads.lock().unwrap().len(), 1);

        let tried = AtomicUsize::new(0);
        let failing = |item: &usize| {
            tried.fetch_add(1, Ordering::Relaxed);
            if *item >= 20 { Err(*item) } else { Ok(*item) }
        };
        assert_eq!(several(&items, failing), Err(20));
        let tried = tried.load(Ordering::Relaxed);
        assert!((21..21 + 2 * THREADS).contains(&tried), "{tried} were tried");
    }
}
