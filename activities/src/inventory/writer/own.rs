//! Finding a root that the same step of the same run wrote (D34).

use catalog_rules::instant::Instant;
use catalog_rules::inventory::{MAX_BASE_AHEAD_MS, OwnWork};
use catalog_rules::layout;
use uuid::Uuid;

use super::super::error::InventoryError;
use super::super::head::Head;
use super::Writer;

/// How many versions back a writer looks for its own root, when the run's id does not tell when the run began.
const OWN_WORK_DEPTH: u32 = 256;

impl Writer {
    /// The version that this step of this run wrote, looking back to when the run began.
    pub(super) fn own_version(&self, head: &Head, own: &OwnWork) -> Result<Option<Head>, InventoryError> {
        let began = began(own);
        if own.wrote(&head.root) {
            return Ok(Some(head.clone()));
        }
        let (mut seq, mut at, mut depth) = (head.seq(), head.root.created_at, 0);
        loop {
            depth += 1;
            if began.is_some_and(|began| at < began) || (began.is_none() && depth >= OWN_WORK_DEPTH) {
                return Ok(None);
            }
            let Some(before) = seq.before() else { return Ok(None) };
            seq = before;
            let Some(bytes) = self.store.get(&layout::root(seq))? else { return Ok(None) };
            // One that is damaged is passed over: what it recorded, the leaves tell.
            let Some(stamp) = own.stamp(&bytes) else { continue };
            if stamp.is_own
                && let Ok(version) = Head::decode(seq, &bytes)
            {
                return Ok(Some(version));
            }
            at = stamp.created_at;
        }
    }
}

/// The earliest time that a version of the run can bear. Its id tells when it began; a base version, and so the store,
/// may be that much behind or ahead of this machine's clock.
fn began(own: &OwnWork) -> Option<Instant> {
    let (seconds, nanos) = Uuid::parse_str(&own.run_id).ok()?.get_timestamp()?.to_unix();
    let ms = i64::try_from(seconds).ok()?.saturating_mul(1000) + i64::from(nanos / 1_000_000);
    Some(Instant::from_ms(ms.saturating_sub(MAX_BASE_AHEAD_MS)))
}
