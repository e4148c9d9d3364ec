//! What always holds of a catalog, and whether two are the same.

use std::collections::{BTreeMap, BTreeSet};

use super::model::*;
use crate::layout;

impl World {
    /// Nothing retained is lost, every version is in exactly one place, and the chain verifies. `interrupted` allows what
    /// a crash leaves until the rerun.
    pub(super) fn check(&self, interrupted: bool) {
        if self.catalog().format_version.major < 2 {
            return;
        }
        let roots = self.store.roots();
        let lines = self.lines();
        for ((epoch, seq), sha256) in &self.committed {
            let is_root = roots.contains_key(seq) && self.sha(*seq) == *sha256;
            let told = lines.iter().filter(|(_, _, line)| (line.restore_epoch, line.seq) == (*epoch, *seq));
            let told: Vec<_> = told.collect();
            assert!(told.iter().all(|(_, _, line)| line.root_sha256 == *sha256), "{epoch}/{seq} is told wrong");
            let places = told.len() + usize::from(is_root);
            assert!(
                places == 1 || interrupted && places == 2 && is_root,
                "version {seq} of epoch {epoch} is in {places} places, interrupted: {interrupted}"
            );
        }
        let leaves = self.store.leaves();
        for seq in roots.keys() {
            for reference in self.root(*seq).products.values() {
                assert!(leaves.contains_key(&reference.leaf_sha256), "version {seq} lost a leaf");
            }
        }
        if interrupted {
            return;
        }
        let left: BTreeSet<_> = self.left.iter().cloned().collect();
        let findings: Vec<_> = self.findings().into_iter().filter(|found| !left.contains(&found.subject())).collect();
        assert_eq!(findings, [], "the catalog does not verify");
    }

    /// Everything but what may differ between two runs: names and times of segments.
    pub(super) fn essence(&self) -> BTreeMap<String, String> {
        let mut essence: BTreeMap<String, String> = BTreeMap::new();
        for (path, (_, bytes)) in &self.store.objects {
            if !path.starts_with("history/") && path != layout::HISTORY {
                essence.insert(path.clone(), String::from_utf8_lossy(bytes).into_owned());
            }
        }
        let segments = self.chain();
        let history = self.history();
        let place = |path: &Option<String>| {
            let at = segments.iter().position(|segment| match path {
                None => false,
                Some(path) => layout::segment_name(path).is_some_and(|name| {
                    (name.restore_epoch, name.first, name.last)
                        == (segment.header.restore_epoch, segment.header.first, segment.header.last)
                }),
            });
            format!("{at:?}")
        };
        let told = format!(
            "{} {} {} {}",
            history.restore_epoch,
            history.expired_through,
            place(&history.newest_segment),
            place(&history.cleaned_through)
        );
        essence.insert(layout::HISTORY.to_owned(), told);
        for (n, segment) in segments.iter().enumerate() {
            let header = &segment.header;
            let told = format!(
                "{:?} {} {:?} {:?} {:?} {:?}",
                header.kind, header.restore_epoch, header.roots, header.leaves, header.unread, segment.lines
            );
            essence.insert(format!("segment {n}"), told);
        }
        let orphans = self.store.segments().len() - segments.len();
        essence.insert("orphans".to_owned(), orphans.to_string());
        essence
    }
}

/// Panics at the first object that differs.
pub(super) fn same(found: &World, expected: &World, what: &str) {
    let (found, expected) = (found.essence(), expected.essence());
    for key in found.keys().chain(expected.keys()) {
        assert_eq!(found.get(key), expected.get(key), "{what}: {key}");
    }
}
