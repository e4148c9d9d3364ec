//! The activities that recover an Inventory, each one call of [`crate::inventory`] under the catalog's lock.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use catalog_rules::contracts::publish::Cause;
use catalog_rules::contracts::recovery::{
    RebuildInventoryInput, RebuildInventoryOutput, RepairHeadInput, RepairHeadOutput,
};
use catalog_rules::inventory::{By, OwnWork, RebuildAsked, Seq};
use engine_rules::activity::ActivityContext;
use engine_rules::failure::{ActivityError, Disposition};

use crate::fs::Fs;
use crate::inventory::{
    HeadRepair, InventoryError, RebuildInventory, RebuiltInventory, RepairedHead, rebuild_inventory as rebuild,
    repair_head as repair,
};
use crate::publish::producer;
use crate::store::Store;

/// What the recoveries work with.
pub struct RecoveryDeps {
    store: Arc<dyn Store>,
    fs: Arc<dyn Fs>,
    kept: PathBuf,
}

impl std::fmt::Debug for RecoveryDeps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecoveryDeps").field("kept", &self.kept).finish_non_exhaustive()
    }
}

/// Why a recovery was not done.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// A rule, the Inventory, the store or the disk.
    #[error(transparent)]
    Inventory(#[from] Box<InventoryError>),
    /// No version has this number.
    #[error("catalog §6.2: versions are counted from 1; found --seq 0, expected the number of the damaged version")]
    NoSeq,
}

impl From<InventoryError> for RecoveryError {
    fn from(error: InventoryError) -> Self {
        Self::Inventory(Box::new(error))
    }
}

impl ActivityError for RecoveryError {
    fn code(&self) -> &'static str {
        match self {
            Self::Inventory(error) => error.code(),
            Self::NoSeq => "catalog.no_seq",
        }
    }

    fn disposition(&self) -> Disposition {
        match self {
            Self::Inventory(error) => error.disposition(),
            Self::NoSeq => Disposition::Terminal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Inventory(error) => error.hint(),
            Self::NoSeq => Some("name the damaged version that the refusal of a writer named".to_owned()),
        }
    }
}

impl RecoveryDeps {
    /// The means to recover the Inventory in `store`. Copies of what is deleted are kept below the folder `kept`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, fs: Arc<dyn Fs>, kept: PathBuf) -> Self {
        Self { store, fs, kept }
    }

    /// Deletes, or only judges, the damaged head that `input` names, for the run `run_id`.
    ///
    /// # Errors
    /// [`RecoveryError`]; see [`repair`].
    pub fn head(&self, input: &RepairHeadInput, run_id: &str, dry_run: bool) -> Result<RepairedHead, RecoveryError> {
        let seq = Seq::new(input.seq).ok_or(RecoveryError::NoSeq)?;
        let (keep, confirm_committed) = (&self.kept.join(run_id), input.confirm_committed);
        let asked = HeadRepair { seq, confirm_committed, keep, fs: self.fs.as_ref(), dry_run };
        Ok(repair(self.store.as_ref(), &asked)?)
    }

    /// Rebuilds the Inventory, or only decides on it.
    ///
    /// # Errors
    /// [`RecoveryError`]; see [`rebuild`].
    pub fn inventory(
        &self,
        input: &RebuildInventoryInput,
        by: &By,
        dry_run: bool,
    ) -> Result<RebuiltInventory, RecoveryError> {
        let asked = RebuildAsked { embargo: input.embargo, lost_through: input.lost_through };
        Ok(rebuild(self.store.as_ref(), RebuildInventory { asked, dry_run }, by)?)
    }
}

/// Deletes the damaged root at the head (D16). After it returns, a copy is in the state directory, the root is gone, and
/// `CURRENT` names the last valid version. Repeats by the same run are safe.
///
/// # Errors
/// [`RecoveryError`]; a refusal is `Terminal` and nothing was deleted.
pub fn repair_head(
    deps: &RecoveryDeps,
    ctx: &ActivityContext,
    input: RepairHeadInput,
) -> Result<RepairHeadOutput, RecoveryError> {
    let RepairedHead { seq, sha256, head, kept, already } = deps.head(&input, &ctx.run_id, false)?;
    let kept = kept.display().to_string();
    let Cause { actor, reason } = input.cause;
    tracing::warn!(actor, reason, %seq, %head, kept, "a damaged head was deleted");
    Ok(RepairHeadOutput { seq: seq.get(), sha256, head: head.get(), kept, already })
}

/// Builds an Inventory from the manifests (*catalog* §6.7). After it returns, version 1 of a new epoch is the newest, and
/// `CURRENT` names it. Repeats by the same step are safe.
///
/// # Errors
/// [`RecoveryError`]; a refusal is `Terminal`, names what would be lost, and nothing was written.
pub fn rebuild_inventory(
    deps: &RecoveryDeps,
    ctx: &ActivityContext,
    input: RebuildInventoryInput,
) -> Result<RebuildInventoryOutput, RecoveryError> {
    let own = OwnWork { run_id: ctx.run_id.clone(), step: ctx.step.clone() };
    let rebuilt = deps.inventory(&input, &by(&input.cause, Some(own)), false)?;
    Ok(told(&rebuilt))
}

/// Who rebuilds an Inventory.
#[must_use]
pub fn by(cause: &Cause, own_work: Option<OwnWork>) -> By {
    By { actor: cause.actor.clone(), reason: cause.reason.clone(), producer: producer(), own_work }
}

/// What a rebuild has done, as a run's record tells it: counts, since a catalog may have 30,000 editions.
#[must_use]
pub fn told(rebuilt: &RebuiltInventory) -> RebuildInventoryOutput {
    let mut states: BTreeMap<String, u64> = BTreeMap::new();
    for (_, _, state) in &rebuilt.editions {
        *states.entry(state.clone()).or_default() += 1;
    }
    RebuildInventoryOutput {
        restore_epoch: rebuilt.restore_epoch,
        root_sha256: rebuilt.root_sha256.clone(),
        products: u64::try_from(rebuilt.products).unwrap_or(u64::MAX),
        states,
        already: rebuilt.already,
    }
}
