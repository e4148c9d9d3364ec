//! An index over the leaves of a version, kept between processes (*catalog* §6.5): who holds which full artefact, and
//! which products have an embargoed edition. With it a version of one product reads one leaf instead of all.
//!
//! It is keyed by the leaves' hashes and says which root it reflects; brought to another root, it reads the leaves whose
//! hash differs and no other. It is only ever a saving: the file may be deleted, damaged, of another catalog or of
//! another format at any time, and several processes may use it at once. A file is believed when its SHA-256 is right and
//! its format and catalog are the asked-for ones; else the index is built again from the leaves.

mod project;
mod snapshot;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use catalog_rules::ids::{CatalogId, ProductId, Sha256Hex};
use catalog_rules::inventory::{Holder, Holders, Kind, Root};

use super::error::InventoryError;
use super::head::FetchRef;
use super::leaves::{fetch_leaf, several};
use project::{Held, Product, key, raw_sha256};
pub use snapshot::Reflected;
use snapshot::{Snapshot, Source, Stored, edition_id, encode};

/// So many changed products are kept beside the file before it is written anew: reading their leaves again costs less
/// than writing the file.
const KEPT_BESIDE: usize = 16;

/// The index of one catalog. See the module.
#[derive(Debug)]
pub struct LeafCache {
    path: PathBuf,
    catalog_id: CatalogId,
    stored: Option<Snapshot>,
    /// What changed since `stored`: `None` for a product that is gone.
    beside: BTreeMap<ProductId, Option<Product>>,
    reflects: Option<Reflected>,
    /// Whether `stored` is newer than the file.
    is_unsaved: bool,
}

/// What it took to bring an index to a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Brought {
    /// How many leaves were read.
    pub leaves_read: usize,
}

impl LeafCache {
    /// The index of catalog `catalog_id` in `folder`, which need not exist; an empty one when there is no file, or none
    /// that can be believed. Nothing is written.
    #[must_use]
    pub fn open(folder: &Path, catalog_id: &CatalogId) -> Self {
        let path = folder.join(format!("{catalog_id}.leaves"));
        let stored = fs::read(&path).ok().and_then(|bytes| Snapshot::parse(bytes, catalog_id));
        let reflects = stored.as_ref().map(|stored| stored.reflects().clone());
        Self { path, catalog_id: catalog_id.clone(), stored, beside: BTreeMap::new(), reflects, is_unsaved: false }
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version that it reflects; `None` for an empty one.
    #[must_use]
    pub fn reflects(&self) -> Option<&Reflected> {
        self.reflects.as_ref()
    }

    /// Brings it to the version of `root`, whose stored bytes have the SHA-256 `root_sha256`: the leaves whose hash it
    /// does not know are fetched, no other. Safe to repeat; after an error it is as before.
    ///
    /// # Errors
    /// [`InventoryError`] when a leaf cannot be fetched or is damaged.
    pub fn bring_to(
        &mut self,
        root: &Root,
        root_sha256: &Sha256Hex,
        fetch: FetchRef<'_>,
    ) -> Result<Brought, InventoryError> {
        if self.reflects.as_ref().is_some_and(|reflects| reflects.root_sha256 == *root_sha256) {
            return Ok(Brought::default());
        }
        let (mut wanted, mut gone) = (Vec::new(), Vec::new());
        let mut known = self.known();
        let mut next = known.next();
        for (product, reference) in &root.products {
            while let Some((before, _)) = next.filter(|(known, _)| *known < product) {
                gone.push(before.clone());
                next = known.next();
            }
            let leaf = next.filter(|(known, _)| *known == product).map(|(_, leaf)| leaf);
            if leaf.is_some() {
                next = known.next();
            }
            let asked = raw_sha256(reference.leaf_sha256.as_str());
            if leaf.is_none() || asked.as_ref().map(<[u8; 32]>::as_slice) != leaf {
                wanted.push((product, &reference.leaf_sha256));
            }
        }
        gone.extend(next.into_iter().chain(known).map(|(product, _)| product.clone()));

        let read = several(&wanted, |(product, sha256)| {
            fetch_leaf(fetch, product, sha256).map(|leaf| Product::of(&leaf, sha256))
        })?;
        let leaves_read = read.len();
        self.beside.extend(wanted.iter().zip(read).map(|((product, _), read)| ((*product).clone(), Some(read))));
        self.beside.extend(gone.into_iter().map(|product| (product, None)));
        self.reflects = Some(Reflected { seq: root.seq, root_sha256: root_sha256.clone() });
        if self.beside.len() > KEPT_BESIDE {
            self.fold();
        }
        Ok(Brought { leaves_read })
    }

    /// Writes the file, if enough changed since it was written. Whoever reads it at the same time sees the old or the
    /// new one; when another process is writing it, that one's is left to stand. No power cut matters, since a file that
    /// is not whole is not believed.
    ///
    /// # Errors
    /// Whatever the system says. The index is as good as before.
    pub fn save(&mut self) -> io::Result<()> {
        let Some(stored) = self.stored.as_ref().filter(|_| self.is_unsaved) else { return Ok(()) };
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let new = self.path.with_extension("leaves-new");
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(&new)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Another process may have given the file its name between the opening and the lock: it is the index now.
        if !is_at(&file, &new)? {
            return Ok(());
        }
        file.set_len(0)?;
        file.write_all(stored.bytes())?;
        fs::rename(&new, &self.path)?;
        self.is_unsaved = false;
        Ok(())
    }

    /// The products with an embargoed edition.
    #[must_use]
    pub fn with_embargoed(&self) -> BTreeSet<ProductId> {
        self.those(|stored| stored.has_embargoed(), |product| product.has_embargoed)
    }

    /// The products of which it cannot tell what they hold, since an entry of an older writer has no artefact records:
    /// their leaves have to be read whatever is asked.
    #[must_use]
    pub fn opaque(&self) -> BTreeSet<ProductId> {
        self.those(|stored| stored.is_opaque(), |product| product.is_opaque)
    }

    fn those(&self, stored: impl Fn(&Stored<'_>) -> bool, beside: impl Fn(&Product) -> bool) -> BTreeSet<ProductId> {
        let unchanged = self.unchanged().filter(stored).map(|stored| stored.product_id);
        let changed = self.changed().filter(|(_, product)| beside(product)).map(|(id, _)| id);
        unchanged.chain(changed).cloned().collect()
    }

    /// The products of the file that did not change since.
    fn unchanged(&self) -> impl Iterator<Item = Stored<'_>> {
        let stored = self.stored.iter().flat_map(Snapshot::products);
        stored.filter(|stored| !self.beside.contains_key(stored.product_id))
    }

    fn changed(&self) -> impl Iterator<Item = (&ProductId, &Product)> {
        self.beside.iter().filter_map(|(id, product)| Some((id, product.as_ref()?)))
    }

    /// Every product with its leaf's hash, by id.
    fn known(&self) -> impl Iterator<Item = (&ProductId, &[u8])> {
        self.sources().map(|source| match source {
            Source::Stored(stored) => (stored.product_id, stored.leaf),
            Source::Read(id, product) => (id, product.leaf.as_slice()),
        })
    }

    /// Every product as it is now, by id.
    fn sources(&self) -> impl Iterator<Item = Source<'_>> {
        let (mut unchanged, mut changed) = (self.unchanged().peekable(), self.changed().peekable());
        std::iter::from_fn(move || {
            let stored_first = match (unchanged.peek(), changed.peek()) {
                (Some(stored), Some((id, _))) => stored.product_id < *id,
                (Some(_), None) => true,
                (None, _) => false,
            };
            if stored_first {
                return unchanged.next().map(Source::Stored);
            }
            changed.next().map(|(id, product)| Source::Read(id, product))
        })
    }

    /// Puts what changed into one snapshot with the rest. Should it not fit the form, it stays beside.
    fn fold(&mut self) {
        let Some(reflects) = &self.reflects else { return };
        let sources: Vec<_> = self.sources().collect();
        let bytes = encode(&self.catalog_id, reflects, self.stored.as_ref(), &sources);
        if let Some(stored) = bytes.and_then(|bytes| Snapshot::parse(bytes, &self.catalog_id)) {
            self.stored = Some(stored);
            self.beside.clear();
            self.is_unsaved = true;
        }
    }
}

/// Whether `file` is what stands at `path`.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// A system that does not rename an open file has no such case.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

impl Holders for LeafCache {
    fn full(&self, urn: &str, except: &dyn Fn(&ProductId) -> bool) -> Vec<Holder> {
        let key = key(urn);
        let stored = self.stored.iter().flat_map(|stored| stored.holding(&key));
        let stored = stored.map(|(stored, held)| (stored.product_id, stored.kind(), held));
        let stored = stored.filter(|(product, ..)| !self.beside.contains_key(*product));
        let beside = self.changed().flat_map(|(id, product)| {
            let held = product.held.iter().filter(move |(held, _)| *held == key);
            held.map(move |(_, held)| (id, product.kind, *held))
        });
        let mut enough = Enough::default();
        let mut found = Vec::new();
        let (mut stored, mut beside) = (stored.peekable(), beside.peekable());
        loop {
            let stored_first = match (stored.peek(), beside.peek()) {
                (Some((a, ..)), Some((b, ..))) => a < b,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => return found,
            };
            let next = if stored_first { stored.next() } else { beside.next() };
            let Some((product, kind, held)) = next else { return found };
            if enough.has(product, kind, held) || except(product) {
                continue;
            }
            if let Some(edition_id) = edition_id(held.edition) {
                enough.add(product, kind, held);
                found.push(Holder {
                    product_id: product.clone(),
                    kind,
                    edition_id,
                    is_live: held.is_live,
                    fingerprint: Sha256Hex::from_digest(&held.fingerprint).to_string(),
                });
            }
        }
    }
}

/// What is told of holders: two products for one kind, fingerprint and state say all that the rules ask.
#[derive(Default)]
struct Enough<'a>(HashMap<Class, [Option<&'a ProductId>; 2]>);

/// Whether of a data product, whether live, and the fingerprint.
type Class = (bool, bool, [u8; 32]);

impl<'a> Enough<'a> {
    fn class(kind: Kind, held: Held) -> Class {
        (kind == Kind::Data, held.is_live, held.fingerprint)
    }

    /// Whether two other products were told.
    fn has(&self, product: &ProductId, kind: Kind, held: Held) -> bool {
        let told = self.0.get(&Self::class(kind, held));
        told.is_some_and(|told| told.iter().all(|told| told.is_some_and(|told| told != product)))
    }

    fn add(&mut self, product: &'a ProductId, kind: Kind, held: Held) {
        let told = self.0.entry(Self::class(kind, held)).or_default();
        if !told.contains(&Some(product))
            && let Some(free) = told.iter_mut().find(|told| told.is_none())
        {
            *free = Some(product);
        }
    }
}
