//! What would hold a release up, looked at before it (*catalog* §6.4, §11.6; D33).

use catalog_rules::contracts::inventory::{Nothing, PreflightOutput, Warning};
use catalog_rules::instant::Instant;
use catalog_rules::inventory::store_time;
use engine_rules::activity::ActivityContext;

use super::InventoryDeps;
use crate::inventory::InventoryError;

/// Holds this machine's clock against the store's, and the windows against each other. An inequality of the windows that
/// does not hold is a warning: it blocks gc, prune and expiry, and no release (D33). Changes nothing.
///
/// # Errors
/// [`InventoryError::Refused`] with `catalog.clock_ahead` when this machine's clock is more than a minute ahead of the
/// store's: an edition could be released before its time.
pub fn preflight(
    deps: &InventoryDeps,
    _ctx: &ActivityContext,
    _input: Nothing,
) -> Result<PreflightOutput, InventoryError> {
    store_time(deps.store.now()?, Instant::from_ms(deps.clock.now_ms()))?;
    let faults = deps.retention.check().into_iter();
    let warnings =
        faults.map(|fault| Warning { code: fault.code().to_owned(), message: fault.to_string(), fix: fault.fix() });
    Ok(PreflightOutput { warnings: warnings.collect() })
}
