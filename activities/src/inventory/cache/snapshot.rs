//! The file of a [`LeafCache`](super::LeafCache): of each product its leaf's hash and what the rules ask across products,
//! in records of fixed width that are searched as they lie in the file.
//!
//! ```text
//! header    magic 8, format u32, catalog 16, seq u64, root 32, counts of products, editions, holdings: u32 each,
//!           length of the names u32
//! products  by id: leaf 32, end of the name u32, flags u32
//! editions  by product: id 16, product u32, is live u32
//! holdings  by key, then edition: key 16, fingerprint 32, edition u32
//! names     the product ids, one after the other
//! digest    SHA-256 of everything before it
//! ```
//!
//! Numbers are little-endian. A key is the first half of a URN's SHA-256.

use std::cmp::Ordering;
use std::ops::Range;

use catalog_rules::ids::{CatalogId, EditionId, ProductId, Sha256Hex};
use catalog_rules::inventory::{Kind, Seq};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::project::{Held, Key, Product};

const MAGIC: &[u8; 8] = b"jobctlLC";
/// Raised whenever the form or the meaning of a field changes: a file of another format is built again.
pub(super) const FORMAT: u32 = 1;
const HEADER: usize = 84;
const PRODUCT: usize = 40;
const EDITION: usize = 24;
const HOLDING: usize = 52;
const DIGEST: usize = 32;

const IS_DATA: u32 = 1;
const HAS_EMBARGOED: u32 = 1 << 1;
const IS_OPAQUE: u32 = 1 << 2;

/// The version that an index reflects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reflected {
    /// Its number.
    pub seq: Seq,
    /// The SHA-256 of its root.
    pub root_sha256: Sha256Hex,
}

/// A file that was checked.
#[derive(Debug)]
pub(super) struct Snapshot {
    bytes: Vec<u8>,
    reflects: Reflected,
    products: Range<usize>,
    editions: Range<usize>,
    holdings: Range<usize>,
    names: Range<usize>,
    ids: Vec<ProductId>,
}

/// A product in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored<'a> {
    pub(super) product_id: &'a ProductId,
    pub(super) leaf: &'a [u8],
    flags: u32,
}

impl Stored<'_> {
    pub(super) fn kind(&self) -> Kind {
        if self.flags & IS_DATA != 0 { Kind::Data } else { Kind::Structure }
    }

    pub(super) fn has_embargoed(&self) -> bool {
        self.flags & HAS_EMBARGOED != 0
    }

    pub(super) fn is_opaque(&self) -> bool {
        self.flags & IS_OPAQUE != 0
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_le_bytes).unwrap_or_default()
}

fn index(bytes: &[u8], at: usize) -> usize {
    usize::try_from(number(bytes, at)).unwrap_or(usize::MAX)
}

impl Snapshot {
    /// The snapshot of `catalog` in `bytes`; `None` when they are damaged, of another format, or of another catalog.
    pub(super) fn parse(bytes: Vec<u8>, catalog: &CatalogId) -> Option<Self> {
        let body = bytes.len().checked_sub(DIGEST).filter(|body| *body >= HEADER)?;
        let header = bytes.get(..HEADER)?;
        let is_ours = header.starts_with(MAGIC) && number(header, 8) == FORMAT && header.get(12..28)? == uuid(catalog)?;
        if !is_ours || bytes.get(body..)? != Sha256::digest(bytes.get(..body)?).as_slice() {
            return None;
        }
        let seq = Seq::new(u64::from_le_bytes(header.get(28..36)?.try_into().ok()?))?;
        let reflects = Reflected { seq, root_sha256: Sha256Hex::from_digest(header.get(36..68)?.try_into().ok()?) };
        let mut at = HEADER;
        let mut section = |count: usize, width: usize| {
            let start = at;
            at = start.checked_add(count.checked_mul(width)?).filter(|end| *end <= body)?;
            Some(start..at)
        };
        let products = section(index(header, 68), PRODUCT)?;
        let editions = section(index(header, 72), EDITION)?;
        let holdings = section(index(header, 76), HOLDING)?;
        let names = section(index(header, 80), 1)?;
        if names.end != body {
            return None;
        }
        let mut snapshot = Self { bytes, reflects, products, editions, holdings, names, ids: Vec::new() };
        snapshot.ids = snapshot.checked_ids()?;
        snapshot.is_consistent().then_some(snapshot)
    }

    /// The product ids, rising.
    fn checked_ids(&self) -> Option<Vec<ProductId>> {
        let names = self.bytes.get(self.names.clone())?;
        let mut ids: Vec<ProductId> = Vec::with_capacity(self.products.len() / PRODUCT);
        let mut start = 0;
        for product in self.bytes.get(self.products.clone())?.chunks_exact(PRODUCT) {
            let end = index(product, 32);
            let id: ProductId = std::str::from_utf8(names.get(start..end)?).ok()?.parse().ok()?;
            if ids.last().is_some_and(|last| *last >= id) {
                return None;
            }
            ids.push(id);
            start = end;
        }
        (start == names.len()).then_some(ids)
    }

    /// Whether every record points at one that is there, and those that are searched are in order.
    fn is_consistent(&self) -> bool {
        let products = self.ids.len();
        let editions = self.editions.len() / EDITION;
        let mut last = 0;
        let rises = self.chunks(&self.editions, EDITION).all(|edition| {
            let product = index(edition, 16);
            let rises = product >= last;
            last = product;
            rises && product < products
        });
        let mut holdings = self.chunks(&self.holdings, HOLDING);
        let mut before: Option<&[u8]> = None;
        rises
            && holdings.all(|holding| {
                let rises = before.is_none_or(|before| order(before, holding) == Ordering::Less);
                before = Some(holding);
                rises && index(holding, 48) < editions
            })
    }

    fn chunks(&self, section: &Range<usize>, width: usize) -> std::slice::ChunksExact<'_, u8> {
        self.bytes.get(section.clone()).unwrap_or_default().chunks_exact(width)
    }

    /// The bytes of the file.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn reflects(&self) -> &Reflected {
        &self.reflects
    }

    /// Every product, by id.
    pub(super) fn products(&self) -> impl Iterator<Item = Stored<'_>> {
        let records = self.chunks(&self.products, PRODUCT);
        self.ids.iter().zip(records).map(|(product_id, record)| Stored {
            product_id,
            leaf: record.get(..32).unwrap_or_default(),
            flags: number(record, 36),
        })
    }

    /// Who holds the artefact with this key, by product.
    pub(super) fn holding(&self, key: &Key) -> impl Iterator<Item = (Stored<'_>, Held)> {
        let all = self.bytes.get(self.holdings.clone()).unwrap_or_default();
        let record = |n: usize| all.get(n * HOLDING..(n + 1) * HOLDING).unwrap_or_default();
        let count = all.len() / HOLDING;
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            if record(middle).get(..16) < Some(key.as_slice()) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let found = (low..count).map(record).take_while(|record| record.get(..16) == Some(key.as_slice()));
        found.filter_map(|record| self.held(record))
    }

    fn held(&self, record: &[u8]) -> Option<(Stored<'_>, Held)> {
        let at = self.editions.start + index(record, 48) * EDITION;
        let edition = self.bytes.get(at..at + EDITION)?;
        let product = index(edition, 16);
        let of = self.bytes.get(self.products.start + product * PRODUCT..)?.get(..PRODUCT)?;
        let stored = Stored { product_id: self.ids.get(product)?, leaf: of.get(..32)?, flags: number(of, 36) };
        let held = Held {
            edition: edition.get(..16)?.try_into().ok()?,
            is_live: number(edition, 20) != 0,
            fingerprint: record.get(16..48)?.try_into().ok()?,
        };
        Some((stored, held))
    }
}

/// By key, then edition.
fn order(a: &[u8], b: &[u8]) -> Ordering {
    (a.get(..16), number(a, 48)).cmp(&(b.get(..16), number(b, 48)))
}

fn uuid(catalog: &CatalogId) -> Option<[u8; 16]> {
    Uuid::parse_str(catalog.as_str()).ok().map(Uuid::into_bytes)
}

/// The edition id of 16 bytes.
pub(super) fn edition_id(bytes: [u8; 16]) -> Option<EditionId> {
    EditionId::from_uuid(Uuid::from_bytes(bytes)).ok()
}

/// A product as it goes into a file: what stands in an older one, or what was read.
pub(super) enum Source<'a> {
    /// Unchanged since.
    Stored(Stored<'a>),
    /// Read since.
    Read(&'a ProductId, &'a Product),
}

/// The bytes of a file: `products`, by id, of which those that are unchanged stand in `before`.
///
/// `None` when there is more than the form can number; then there is no index.
pub(super) fn encode(
    catalog: &CatalogId,
    reflects: &Reflected,
    before: Option<&Snapshot>,
    products: &[Source<'_>],
) -> Option<Vec<u8>> {
    let (mut records, mut names) = (Vec::with_capacity(products.len() * PRODUCT), Vec::new());
    let mut editions: Vec<u8> = Vec::with_capacity(products.len() * EDITION);
    let mut holdings: Vec<[u8; HOLDING]> = Vec::new();
    // Where each product and edition of `before` stands now.
    let mut moved = vec![u32::MAX; before.map_or(0, |before| before.ids.len())];
    let mut old = before.map(|before| before.ids.iter().enumerate().peekable());
    for (n, product) in (0_u32..).zip(products) {
        let (id, leaf, flags) = match product {
            Source::Stored(stored) => (stored.product_id, stored.leaf, stored.flags),
            Source::Read(id, product) => (*id, product.leaf.as_slice(), flags(product)),
        };
        names.extend_from_slice(id.as_str().as_bytes());
        records.extend_from_slice(leaf);
        records.extend_from_slice(&u32::try_from(names.len()).ok()?.to_le_bytes());
        records.extend_from_slice(&flags.to_le_bytes());
        if let (Source::Stored(_), Some(old)) = (product, &mut old) {
            let (at, _) = old.find(|(_, before)| *before == id)?;
            *moved.get_mut(at)? = n;
        }
    }
    if let Some(before) = before {
        let mut editions_moved = Vec::with_capacity(before.editions.len() / EDITION);
        for edition in before.chunks(&before.editions, EDITION) {
            let product = moved.get(index(edition, 16)).copied()?;
            editions_moved.push(product);
        }
        // The editions of unchanged products and those that were read, by product.
        let mut stands = vec![u32::MAX; editions_moved.len()];
        let mut kept = editions_moved.iter().zip(before.chunks(&before.editions, EDITION)).enumerate().peekable();
        for (n, product) in (0_u32..).zip(products) {
            match product {
                Source::Stored(_) => {
                    while let Some((at, (_, edition))) = kept.next_if(|(_, (now, _))| **now == n || **now == u32::MAX) {
                        if editions_moved.get(at) != Some(&u32::MAX) {
                            *stands.get_mut(at)? = u32::try_from(editions.len() / EDITION).ok()?;
                            push_edition(&mut editions, edition.get(..16)?, n, number(edition, 20));
                        }
                    }
                }
                Source::Read(_, product) => push_product(&mut editions, &mut holdings, n, product)?,
            }
        }
        for holding in before.chunks(&before.holdings, HOLDING) {
            let now = stands.get(index(holding, 48)).copied()?;
            if now != u32::MAX {
                let mut record: [u8; HOLDING] = holding.try_into().ok()?;
                record.get_mut(48..)?.copy_from_slice(&now.to_le_bytes());
                holdings.push(record);
            }
        }
    } else {
        for (n, product) in (0_u32..).zip(products) {
            match product {
                Source::Stored(_) => return None,
                Source::Read(_, product) => push_product(&mut editions, &mut holdings, n, product)?,
            }
        }
    }
    // Those of `before` are in order already, which this sort makes use of.
    holdings.sort_by(|a, b| order(a, b));
    let count = |n: usize| u32::try_from(n).ok().map(u32::to_le_bytes);
    let length = HEADER + records.len() + editions.len() + holdings.len() * HOLDING + names.len() + DIGEST;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(&uuid(catalog)?);
    bytes.extend_from_slice(&reflects.seq.get().to_le_bytes());
    bytes.extend_from_slice(&super::project::raw_sha256(reflects.root_sha256.as_str())?);
    bytes.extend_from_slice(&count(products.len())?);
    bytes.extend_from_slice(&count(editions.len() / EDITION)?);
    bytes.extend_from_slice(&count(holdings.len())?);
    bytes.extend_from_slice(&count(names.len())?);
    bytes.extend_from_slice(&records);
    bytes.extend_from_slice(&editions);
    bytes.extend_from_slice(holdings.as_flattened());
    bytes.extend_from_slice(&names);
    let digest = Sha256::digest(&bytes);
    bytes.extend_from_slice(&digest);
    Some(bytes)
}

fn flags(product: &Product) -> u32 {
    let flag = |set: bool, flag: u32| if set { flag } else { 0 };
    flag(product.kind == Kind::Data, IS_DATA)
        | flag(product.has_embargoed, HAS_EMBARGOED)
        | flag(product.is_opaque, IS_OPAQUE)
}

fn push_edition(editions: &mut Vec<u8>, id: &[u8], product: u32, is_live: u32) {
    editions.extend_from_slice(id);
    editions.extend_from_slice(&product.to_le_bytes());
    editions.extend_from_slice(&is_live.to_le_bytes());
}

/// What `product`, which is number `n`, holds.
fn push_product(editions: &mut Vec<u8>, holdings: &mut Vec<[u8; HOLDING]>, n: u32, product: &Product) -> Option<()> {
    let mut last: Option<[u8; 16]> = None;
    for (key, held) in &product.held {
        if last != Some(held.edition) {
            push_edition(editions, &held.edition, n, u32::from(held.is_live));
            last = Some(held.edition);
        }
        let edition = u32::try_from(editions.len() / EDITION).ok()?.checked_sub(1)?;
        let mut record = [0; HOLDING];
        record.get_mut(..16)?.copy_from_slice(key);
        record.get_mut(16..48)?.copy_from_slice(&held.fingerprint);
        record.get_mut(48..)?.copy_from_slice(&edition.to_le_bytes());
        holdings.push(record);
    }
    Some(())
}
