//! What `verify` tells, and what it does not: damage that is gone by the second look, and what follows from other damage.

use std::sync::Mutex;

use catalog_rules::instant::Instant;
use catalog_rules::inventory::{Document as _, Leaf, Root};

use super::*;
use crate::lock::LockError;
use crate::store::{Answer, Guard, Listing, StoreError};

/// A store that answers the first look at one path with other bytes, as a writer or a deletion at work may.
struct AtWork {
    inner: Arc<dyn Store>,
    first: Mutex<Option<(String, Option<Bytes>)>>,
}

impl Store for AtWork {
    fn place(&self) -> String {
        self.inner.place()
    }
    fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        let mut first = self.first.lock().unwrap();
        match first.take() {
            Some((at, bytes)) if at == path => return Ok(bytes),
            other => *first = other,
        }
        self.inner.get(path)
    }
    fn create_once(&self, path: &str, bytes: &Bytes) -> Result<Answer, StoreError> {
        self.inner.create_once(path, bytes)
    }
    fn replace_once(&self, path: &str, expected: Option<&Bytes>, bytes: &Bytes) -> Result<Answer, StoreError> {
        self.inner.replace_once(path, expected, bytes)
    }
    fn delete(&self, path: &str) -> Result<bool, StoreError> {
        self.inner.delete(path)
    }
    fn delete_if(&self, path: &str, expected: &Bytes) -> Result<crate::store::Delete, StoreError> {
        self.inner.delete_if(path, expected)
    }
    fn list(&self, folder: &str) -> Result<Listing, StoreError> {
        self.inner.list(folder)
    }
    fn now(&self) -> Result<Instant, StoreError> {
        self.inner.now()
    }
    fn persist(&self, path: &str) -> Result<(), StoreError> {
        self.inner.persist(path)
    }
    fn prepare(&self) -> Result<(), StoreError> {
        self.inner.prepare()
    }
    fn lock(&self) -> Result<Guard, LockError> {
        self.inner.lock()
    }
}

/// A catalog with editions 1 and 2 of `p`, at version 3, and the folder with the files that they list.
fn world() -> (Arc<dyn Store>, tempfile::TempDir) {
    let (store, folder) = (catalog(false), tempfile::tempdir().unwrap());
    let writer = Writer::open(Arc::clone(&store)).unwrap();
    for n in [1, 2] {
        let manifest = manifest("p", n, (n > 1).then_some(n - 1));
        writer.commit(&seal(store.as_ref(), &manifest, None), &by("")).unwrap();
        let edition = folder.path().join(layout::edition(&manifest.product_id, &manifest.edition_id));
        std::fs::create_dir_all(&edition).unwrap();
        for file in &manifest.files {
            std::fs::write(edition.join(&file.path), vec![0; usize::try_from(file.size_bytes).unwrap()]).unwrap();
        }
    }
    (store, folder)
}

/// The codes and subjects that are found.
fn found(store: &dyn Store, folder: &tempfile::TempDir) -> Vec<(&'static str, String)> {
    let verified = verify(store, folder.path(), false).unwrap();
    verified.findings.into_iter().map(|finding| (finding.code, finding.subject)).collect()
}

fn put(store: &dyn Store, path: &str, bytes: &[u8]) {
    store.delete(path).unwrap();
    store.create(path, &Bytes::copy_from_slice(bytes)).unwrap();
}

fn root(store: &dyn Store, n: u64) -> Root {
    Root::decode(&store.get(&layout::root(Seq::new(n).unwrap())).unwrap().unwrap()).unwrap()
}

#[test]
fn what_is_gone_at_a_fresh_head_is_not_reported_and_what_stays_is() {
    let (store, folder) = world();
    let head = root(store.as_ref(), 3);
    let leaf = layout::leaf(head.leaf_sha256(&product("p")).unwrap());
    let root_2 = layout::root(Seq::new(2).unwrap());
    let manifest = layout::manifest(&product("p"), &edition(2));
    for (path, bytes) in [
        (layout::CURRENT.to_owned(), None),
        (leaf.clone(), None),
        (manifest, Some(Bytes::from_static(b"{"))),
        (root_2, Some(Bytes::new())),
    ] {
        let first = Mutex::new(Some((path.clone(), bytes)));
        let at_work = AtWork { inner: Arc::clone(&store), first };
        assert_eq!(found(&at_work, &folder), [], "{path}");
        assert!(at_work.first.lock().unwrap().is_none(), "{path} was never looked at");
    }
    // The one goes away, the other stays.
    store.delete(&leaf).unwrap();
    let first = Mutex::new(Some((layout::CURRENT.to_owned(), None)));
    assert_eq!(found(&AtWork { inner: store, first }, &folder), [("leaf.missing", leaf)]);
}

#[test]
fn a_damaged_leaf_hides_no_finding_of_its_own_making() {
    let (store, folder) = world();
    assert_eq!(found(store.as_ref(), &folder), []);
    let sha256 = root(store.as_ref(), 2).leaf_sha256(&product("p")).unwrap().clone();
    put(store.as_ref(), &layout::leaf(&sha256), b"{}");
    // No change list of version 2 or 3 is called wrong for it.
    assert_eq!(found(store.as_ref(), &folder), [("leaf.digest", layout::leaf(&sha256))]);
}

#[test]
fn an_entry_that_says_something_else_than_its_manifest_is_found_with_its_field() {
    let (store, folder) = world();
    let mut head = root(store.as_ref(), 3);
    let sha256 = head.leaf_sha256(&product("p")).unwrap().clone();
    let mut leaf = Leaf::decode(&store.get(&layout::leaf(&sha256)).unwrap().unwrap()).unwrap();
    leaf.editions.iter_mut().for_each(|entry| entry.pull_bytes = entry.pull_bytes.map(|bytes| bytes + 1));
    let bytes = leaf.encode().unwrap();
    let other = Sha256Hex::of(&bytes);
    put(store.as_ref(), &layout::leaf(&other), &bytes);
    head.products.get_mut(&product("p")).unwrap().leaf_sha256 = other.clone();
    for change in head.changes.iter_mut().flatten() {
        change.leaf_sha256.to = Some(other.clone());
    }
    put(store.as_ref(), &layout::root(head.seq), &head.encode().unwrap());
    store.delete(layout::CURRENT).unwrap();
    let verified = verify(store.as_ref(), folder.path(), false).unwrap();
    let fields: Vec<_> = verified.findings.iter().filter(|finding| finding.code == "entry.field").collect();
    assert_eq!(fields.len(), 2, "{:?}", verified.findings);
    assert!(fields.iter().all(|finding| finding.expected.contains("pull_bytes")), "{fields:?}");
}

#[test]
fn a_catalog_that_expires_is_refused() {
    let (store, folder) = world();
    let text = String::from_utf8(store.get(layout::CATALOG).unwrap().unwrap().to_vec()).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
    document["format_version"] = json!("2.0");
    document["history"] = json!({"since_seq": 1});
    put(store.as_ref(), layout::CATALOG, document.to_string().as_bytes());
    let error = verify(store.as_ref(), folder.path(), false).unwrap_err();
    assert_eq!(error.code(), "catalog.expires");
    assert!(error.hint().unwrap().contains("jobctl"));
}
