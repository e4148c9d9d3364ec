//! Where everything is in a catalog (*catalog* §4.1): paths relative to the catalog's root, `/` between the parts, the
//! same on a disk and in a container.

use uuid::Uuid;

use crate::ids::{EditionId, ProductId, Sha256Hex};
use crate::inventory::Seq;

/// The catalog's identity and epoch.
pub const CATALOG: &str = "catalog.json";
/// The hint that names the newest Inventory version.
pub const CURRENT: &str = "CURRENT";
/// The local catalog lock: created once, never deleted (*catalog* §6.9).
pub const LOCK: &str = "LOCK";
/// The folder of the Inventory's roots.
pub const INVENTORY: &str = "inventory";
/// The folder of the Inventory's leaves.
pub const LEAVES: &str = "inventory/leaves";
/// What an opted-in catalog knows of its expired versions (*catalog* §6.9).
pub const HISTORY: &str = "inventory/HISTORY";
/// The folder of the history segments.
pub const SEGMENTS: &str = "history";
/// The upload inbox (*catalog* §11.2).
pub const PENDING: &str = "pending";
/// The folder of all products.
pub const PRODUCTS: &str = "products";

/// Files at the root of a folder that mark it as an older layout, which is refused (*catalog* §4.1).
pub const OTHER_LAYOUTS: [&str; 2] = ["meta.duckdb", "bundle.manifest.json"];

/// The root of version `seq`: `inventory/<seq, 12 digits>.json`.
#[must_use]
pub fn root(seq: Seq) -> String {
    format!("{INVENTORY}/{:012}.json", seq.get())
}

/// The version whose root is at `path`, if `path` is a root's.
#[must_use]
pub fn seq_of_root(path: &str) -> Option<Seq> {
    let digits = path.strip_prefix("inventory/")?.strip_suffix(".json")?;
    let seq = Seq::new(digits.parse().ok()?)?;
    (root(seq) == path).then_some(seq)
}

/// The leaf whose bytes have this SHA-256: `inventory/leaves/<sha256>.json`.
#[must_use]
pub fn leaf(sha256: &Sha256Hex) -> String {
    format!("{LEAVES}/{sha256}.json")
}

/// A history segment: `history/<restore_epoch>/<first>-<last>-<uuid7>.jsonl`.
#[must_use]
pub fn segment(restore_epoch: u64, first: Seq, last: Seq, id: Uuid) -> String {
    format!("{SEGMENTS}/{restore_epoch}/{:012}-{:012}-{}.jsonl", first.get(), last.get(), id.hyphenated())
}

/// What the name of a history segment says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentName {
    /// The epoch of its roots.
    pub restore_epoch: u64,
    /// The lowest of its roots.
    pub first: Seq,
    /// The highest of its roots.
    pub last: Seq,
    /// What makes the name unique.
    pub id: Uuid,
}

/// The segment whose path is `path`, if `path` is a segment's.
#[must_use]
pub fn segment_name(path: &str) -> Option<SegmentName> {
    let (epoch, name) = path.strip_prefix("history/")?.split_once('/')?;
    let (first, rest) = name.strip_suffix(".jsonl")?.split_once('-')?;
    let (last, id) = rest.split_once('-')?;
    let seq = |digits: &str| Seq::new(digits.parse().ok()?);
    let (restore_epoch, first, last) = (epoch.parse().ok()?, seq(first)?, seq(last)?);
    let id = Uuid::parse_str(id).ok()?;
    (segment(restore_epoch, first, last, id) == path).then_some(SegmentName { restore_epoch, first, last, id })
}

/// The registration of an uploaded edition: `pending/<product_id>/<edition_id>.json`.
#[must_use]
pub fn pending(product: &ProductId, edition: &EditionId) -> String {
    format!("{PENDING}/{product}/{edition}.json")
}

/// A product's folder: `products/<product_id>`.
#[must_use]
pub fn product(product: &ProductId) -> String {
    format!("{PRODUCTS}/{product}")
}

/// The data files that all editions of a product share: `products/<product_id>/data`.
#[must_use]
pub fn data(product: &ProductId) -> String {
    format!("{PRODUCTS}/{product}/data")
}

/// The folder of a product's seal journal: `products/<product_id>/journal`.
#[must_use]
pub fn journals(product: &ProductId) -> String {
    format!("{PRODUCTS}/{product}/journal")
}

/// The seal journal's entry of an edition: `products/<product_id>/journal/<edition_id>.json`.
#[must_use]
pub fn journal(product: &ProductId, edition: &EditionId) -> String {
    format!("{PRODUCTS}/{product}/journal/{edition}.json")
}

/// An edition's folder: `products/<product_id>/<edition_id>`.
#[must_use]
pub fn edition(product: &ProductId, edition: &EditionId) -> String {
    format!("{PRODUCTS}/{product}/{edition}")
}

/// An edition's manifest, whose presence makes it sealed: `products/<product_id>/<edition_id>/manifest.json`.
#[must_use]
pub fn manifest(product: &ProductId, edition: &EditionId) -> String {
    format!("{PRODUCTS}/{product}/{edition}/manifest.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_are_those_of_the_specification() {
        let seq = Seq::new(42).unwrap();
        let p: ProductId = "14100287".parse().unwrap();
        let e: EditionId = "01a18e76-2bad-7480-abfe-2ba8a6889a45".parse().unwrap();
        let sha = Sha256Hex::of(b"");
        assert_eq!(root(seq), "inventory/000000000042.json");
        assert_eq!(seq_of_root("inventory/000000000042.json"), Some(seq));
        for other in
            ["inventory/42.json", "inventory/000000000000.json", "inventory/HISTORY", "inventory/leaves/x.json"]
        {
            assert_eq!(seq_of_root(other), None, "{other}");
        }
        assert_eq!(leaf(&sha), format!("inventory/leaves/{sha}.json"));
        assert_eq!(pending(&p, &e), "pending/14100287/01a18e76-2bad-7480-abfe-2ba8a6889a45.json");
        assert_eq!(product(&p), "products/14100287");
        assert_eq!(data(&p), "products/14100287/data");
        assert_eq!(journal(&p, &e), format!("{}/{e}.json", journals(&p)));
        assert_eq!(manifest(&p, &e), format!("{}/manifest.json", edition(&p, &e)));
        let id = Uuid::parse_str("01a18e76-2bad-7480-abfe-2ba8a6889a45").unwrap();
        let path = "history/1/000000000001-000000000042-01a18e76-2bad-7480-abfe-2ba8a6889a45.jsonl";
        assert_eq!(segment(1, Seq::FIRST, seq, id), path);
        let name = SegmentName { restore_epoch: 1, first: Seq::FIRST, last: seq, id };
        assert_eq!(segment_name(path), Some(name));
        for (from, to) in [("history/1", "history/01"), ("000000000001-", "1-"), (".jsonl", ".json"), ("a45", "A45")] {
            assert_eq!(segment_name(&path.replace(from, to)), None, "{from} as {to}");
        }
    }
}
