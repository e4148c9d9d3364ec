//! What the rules ask for beside the Inventory's newest version.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use catalog_rules::ids::{EditionId, ProductId, Sha256Hex};
use catalog_rules::instant::Instant;
use catalog_rules::inventory::{
    ArtefactRecords, Base, Change, CorrectionFacts, Facts, Leaf, ManifestFacts, Operation, Refusal, Root, Seq,
    artefact_records, needs,
};
use catalog_rules::layout;
use catalog_rules::manifest::Manifest;

use super::super::error::InventoryError;
use super::super::head::Head;
use super::Writer;

impl Writer {
    /// The facts that `operation` asks for: older versions for a correction, manifests as they are now, the records of
    /// entries that lack them, and every file of an edition that comes back.
    pub(super) fn facts(&self, base: &Base<'_>, operation: &Operation, now: Instant) -> Result<Facts, InventoryError> {
        let mut facts = Facts { retention: self.retention.clone(), ..Facts::default() };
        if let Operation::Correct { to, products, .. } = operation {
            facts.correction = self.correction(base.root, *to, products.as_ref())?;
        }
        let needs = needs(base, operation, &facts, now);
        for (product, edition) in needs.manifests {
            if let Some(bytes) = self.store.get(&layout::manifest(&product, &edition))? {
                facts.manifests.insert(edition, ManifestFacts::of(&bytes));
            }
        }
        for (product, edition) in needs.records {
            let older = facts.correction.leaves.get(&product).map(Arc::as_ref);
            let mut entries = base.leaf(&product).into_iter().chain(older).filter_map(|leaf| leaf.entry(&edition));
            let Some(sha256) = entries.next().map(|entry| entry.manifest_sha256.clone()) else { continue };
            if let Some(found) = self.records(&product, &edition, &sha256)? {
                facts.records.insert(edition, found);
            }
        }
        for (product, edition) in needs.files {
            let Some(bytes) = self.store.get(&layout::manifest(&product, &edition))? else { continue };
            let Ok(manifest) = Manifest::decode(&bytes) else { continue };
            facts.files.insert(edition, self.files.check(&product, &manifest)?);
        }
        Ok(facts)
    }

    fn records(
        &self,
        product: &ProductId,
        edition: &EditionId,
        sha256: &Sha256Hex,
    ) -> Result<Option<ArtefactRecords>, InventoryError> {
        let manifest = self.manifest(product, edition, sha256)?;
        Ok(manifest.as_ref().map(artefact_records).transpose()?)
    }

    /// The manifest of a recorded edition; `None` when it is not there or not readable, which the rules then refuse.
    fn manifest(
        &self,
        product: &ProductId,
        edition: &EditionId,
        sha256: &Sha256Hex,
    ) -> Result<Option<Manifest>, InventoryError> {
        let Some(bytes) = self.store.get(&layout::manifest(product, edition))? else { return Ok(None) };
        let found = Sha256Hex::of(&bytes);
        if found != *sha256 {
            let (product, edition, expected) = (product.clone(), edition.clone(), sha256.clone());
            return Err(Box::new(Refusal::ManifestDiffers { product, edition, found, expected }).into());
        }
        Ok(Manifest::decode(&bytes).ok())
    }

    /// What a correction to version `to` needs of it and of the versions since. What cannot be read is left out, and
    /// the rules refuse then.
    fn correction(
        &self,
        head: &Root,
        to: Seq,
        products: Option<&BTreeSet<ProductId>>,
    ) -> Result<CorrectionFacts, InventoryError> {
        let mut facts = CorrectionFacts::default();
        if to >= head.seq {
            return Ok(facts);
        }
        let Some(good) = self.older(to)? else { return Ok(facts) };
        for (product, reference) in &good.root.products {
            let asked = products.is_none_or(|products| products.contains(product));
            if !asked || head.products.get(product) == Some(reference) {
                continue;
            }
            if let Some(leaf) = self.older_leaf(product, &reference.leaf_sha256)? {
                facts.leaves.insert(product.clone(), leaf);
            }
        }
        facts.root = Some(good.root);
        facts.since = self.changes_since(to, head)?;
        Ok(facts)
    }

    fn changes_since(&self, to: Seq, head: &Root) -> Result<BTreeMap<Seq, Option<Vec<Change>>>, InventoryError> {
        let mut since = BTreeMap::from([(head.seq, head.changes.clone())]);
        let mut seq = to.next();
        while seq < head.seq {
            since.insert(seq, self.older(seq)?.and_then(|version| version.root.changes));
            seq = seq.next();
        }
        Ok(since)
    }

    /// An older version, `None` when its root is gone or damaged.
    fn older(&self, seq: Seq) -> Result<Option<Head>, InventoryError> {
        let bytes = self.store.get(&layout::root(seq))?;
        Ok(bytes.and_then(|bytes| Head::decode(seq, &bytes).ok()))
    }

    fn older_leaf(&self, product: &ProductId, sha256: &Sha256Hex) -> Result<Option<Arc<Leaf>>, InventoryError> {
        match self.leaves.one(&|path| self.store.get(path), product, sha256) {
            Ok(leaf) => Ok(Some(leaf)),
            Err(InventoryError::Leaf { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
