//! What an operation makes of the head, or the rule that refuses it (*catalog* §6.4), and what it needs to know.

use std::collections::BTreeSet;

use super::correct::{Correction, correct};
use super::invariants::{counts, is_compared};
use super::leaf::{EntryState, Kind, LeafEntry, Lifecycle};
use super::operation::{Base, Facts, Operation, Record, Release, Times, Verdict};
use super::refusal::Refusal;
use super::{record, release, rollback, settings, tombstone};
use crate::ids::{EditionId, ProductId};
use crate::instant::Instant;

/// What `operation` makes of `base` (*catalog* §6.4, §6.5).
///
/// What the base knows already is [`Verdict::Already`]: so a step that committed and lost its answer finds its own
/// work, and a withdrawn edition never goes live again by itself.
///
/// # Errors
/// [`Refusal`] with the first rule that forbids it.
pub fn verdict(base: &Base<'_>, operation: &Operation, facts: &Facts, times: Times) -> Result<Verdict, Box<Refusal>> {
    match operation {
        Operation::Record(new) => record::record(base, new, facts, times),
        Operation::Fold(inbox) => record::fold(base, inbox, facts, times),
        Operation::Release(selection) => release::release(base, selection, facts, times),
        Operation::Rollback(products) => rollback::rollback(base, products, facts, times),
        Operation::Cancel { product_id, edition_id } => rollback::cancel(base, product_id, edition_id, facts, times),
        Operation::WithdrawLive { product_id, if_live } => {
            rollback::withdraw_live(base, product_id, if_live, facts, times)
        }
        Operation::Supersede { product_id, edition_id, by } => {
            rollback::supersede(base, product_id, edition_id, by, facts, times)
        }
        Operation::Reinstate { product_id, entry } => tombstone::reinstate(base, product_id, entry, facts, times),
        Operation::Retire { editions, before_window } => {
            tombstone::retire(base, editions, *before_window, facts, times)
        }
        Operation::Reschedule { product_id, edition_id, release_at } => {
            settings::reschedule(base, product_id, edition_id, *release_at, facts, times)
        }
        Operation::SupersedeSchema { schema_version, products } => {
            release::supersede_schema(base, schema_version, products.as_ref(), facts, times)
        }
        Operation::SetLifecycle { product_id, lifecycle } => {
            settings::set_lifecycle(base, product_id, *lifecycle, facts, times)
        }
        Operation::Embargo(on) => Ok(settings::embargo(base, *on)),
        Operation::Describe(section) => Ok(settings::describe(base, section)),
        Operation::Correct { to, products, confirmed_unread } => {
            let asked = Correction { to: *to, products: products.as_ref(), confirmed_unread };
            correct(base, &asked, facts, times)
        }
    }
}

/// Which leaves of the head a decision needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeavesNeeded {
    /// None.
    None,
    /// Those of these products.
    Of(BTreeSet<ProductId>),
    /// Those of these products; and since editions come in, for which the structure rules look across products, either
    /// all others too or [`Base::holders`].
    Across(BTreeSet<ProductId>),
    /// Those of every product with an embargoed edition; and, as for [`LeavesNeeded::Across`], either all others too or
    /// [`Base::holders`].
    WithEmbargoed,
    /// All of them.
    All,
}

impl Operation {
    /// The leaves that [`Base`] must hold for this operation; more do no harm.
    #[must_use]
    pub fn leaves_needed(&self) -> LeavesNeeded {
        match self {
            Self::Embargo(_) | Self::Describe(_) => LeavesNeeded::None,
            Self::Cancel { product_id, .. }
            | Self::WithdrawLive { product_id, .. }
            | Self::Supersede { product_id, .. }
            | Self::Reinstate { product_id, .. }
            | Self::Reschedule { product_id, .. }
            | Self::SetLifecycle { product_id, .. } => LeavesNeeded::Of(BTreeSet::from([product_id.clone()])),
            Self::Record(new) => LeavesNeeded::Across(BTreeSet::from([new.product_id.clone()])),
            Self::Rollback(products) => LeavesNeeded::Across(products.keys().cloned().collect()),
            Self::Fold(inbox) => {
                LeavesNeeded::Across(inbox.iter().map(|found| found.pending.product_id.clone()).collect())
            }
            Self::Release(Release::Products(products)) => LeavesNeeded::Across(products.clone()),
            Self::Release(Release::Editions(editions)) => {
                LeavesNeeded::Across(editions.iter().map(|(product, _)| product.clone()).collect())
            }
            Self::Release(Release::Due) => LeavesNeeded::WithEmbargoed,
            Self::Retire { .. } | Self::SupersedeSchema { .. } | Self::Correct { .. } => LeavesNeeded::All,
        }
    }
}

/// What has to be read for a decision beside the head and its leaves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// The manifests to fetch: their bytes' SHA-256 and their content go into [`Facts::manifests`].
    pub manifests: BTreeSet<(ProductId, EditionId)>,
    /// The recorded editions whose entries lack artefact records: those of their manifests go into
    /// [`Facts::records`].
    pub records: BTreeSet<(ProductId, EditionId)>,
    /// The editions whose every listed file is to be checked, for [`Facts::files`].
    pub files: BTreeSet<(ProductId, EditionId)>,
}

/// What `operation` needs to know for a decision on `base` at the instant `now`. A correction needs older versions too,
/// by [`CorrectionFacts`](super::CorrectionFacts), which have to be in `facts` when this is asked.
#[must_use]
pub fn needs(base: &Base<'_>, operation: &Operation, facts: &Facts, now: Instant) -> Needs {
    let mut needs = Needs::default();
    match operation {
        Operation::Record(new) => needs.record(base, new),
        Operation::Fold(inbox) => {
            for registration in inbox {
                if let Ok(new) = &registration.record {
                    needs.record(base, new);
                }
            }
        }
        Operation::Release(selection) => needs.release(base, selection, now),
        Operation::Rollback(products) => {
            for (product, moves) in products {
                let targets = moves.iter().filter_map(|step| step.to.clone());
                needs.manifests.extend(targets.map(|to| (product.clone(), to)));
            }
        }
        Operation::Reinstate { product_id, entry } => {
            let edition = (product_id.clone(), entry.edition_id.clone());
            needs.manifests.insert(edition.clone());
            needs.files.insert(edition);
        }
        Operation::Correct { .. } => {
            for (product, leaf) in &facts.correction.leaves {
                let entries =
                    leaf.editions.iter().chain(base.leaf(product).into_iter().flat_map(|leaf| &leaf.editions));
                let counting = entries.filter(|entry| counts(entry));
                needs.manifests.extend(counting.map(|entry| (product.clone(), entry.edition_id.clone())));
            }
        }
        Operation::Retire { editions, .. } => {
            let structure = |product: &ProductId| base.leaf(product).is_some_and(|leaf| leaf.kind == Kind::Structure);
            if !editions.iter().any(|(product, _)| structure(product)) {
                return needs;
            }
            for (product, edition) in editions {
                let entry = base.leaf(product).and_then(|leaf| leaf.entry(edition));
                if entry.is_some_and(|entry| entry.artefacts.is_none()) {
                    needs.records.insert((product.clone(), edition.clone()));
                }
            }
        }
        Operation::Cancel { .. }
        | Operation::WithdrawLive { .. }
        | Operation::Supersede { .. }
        | Operation::Reschedule { .. }
        | Operation::SupersedeSchema { .. }
        | Operation::SetLifecycle { .. }
        | Operation::Embargo(_)
        | Operation::Describe(_) => return needs,
    }
    // Parts are cited by embargoed editions too; the rules of what comes in compare with fewer.
    let retires = matches!(operation, Operation::Retire { .. });
    needs.unrecorded(base, |kind, entry| is_compared(kind, entry) || (retires && counts(entry)));
    // What comes in again, out of a superseded entry of an older writer.
    for (product, edition) in &needs.manifests {
        let entry = base.leaf(product).and_then(|leaf| leaf.entry(edition));
        if entry.is_some_and(|entry| entry.artefacts.is_none()) {
            needs.records.insert((product.clone(), edition.clone()));
        }
    }
    needs
}

impl Needs {
    fn record(&mut self, base: &Base<'_>, new: &Record) {
        self.manifests.insert((new.product_id.clone(), new.entry.edition_id.clone()));
        let lifecycle = base.leaf(&new.product_id).map(|leaf| leaf.lifecycle);
        if let (Some(Lifecycle::Final), Some(previous)) = (lifecycle, &new.entry.previous) {
            self.manifests.insert((new.product_id.clone(), previous.clone()));
        }
    }

    fn release(&mut self, base: &Base<'_>, selection: &Release, now: Instant) {
        match selection {
            Release::Due => {
                let due = release::due(base, Times { now, at: now });
                let ids = due.iter().map(|(leaf, entry)| (leaf.product_id.clone(), entry.edition_id.clone()));
                self.manifests.extend(ids);
            }
            Release::Products(products) => {
                for leaf in products.iter().filter_map(|product| base.leaf(product)) {
                    let waiting = leaf.editions.iter().filter(|entry| entry.state == EntryState::Embargoed);
                    self.manifests.extend(waiting.map(|entry| (leaf.product_id.clone(), entry.edition_id.clone())));
                }
            }
            Release::Editions(editions) => self.manifests.extend(editions.iter().cloned()),
        }
    }

    /// The entries that the structure rules look at and that have no records of their own.
    fn unrecorded(&mut self, base: &Base<'_>, asked: impl Fn(Kind, &LeafEntry) -> bool) {
        for (product, leaf) in base.leaves {
            let unrecorded = |entry: &&LeafEntry| asked(leaf.kind, entry) && entry.artefacts.is_none();
            for entry in leaf.editions.iter().filter(unrecorded) {
                self.records.insert((product.clone(), entry.edition_id.clone()));
            }
        }
    }
}
