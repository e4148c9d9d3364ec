//! Letting a run go on in whichever process comes first.

use std::sync::Arc;

use engine_rules::state::RunEvent;

use super::claim::Standing;
use super::orders::audit;
use crate::engine::{Engine, Inner, Mutation};
use crate::error::EngineError;
use crate::id::RunId;
use crate::start::check_mutation;

impl Engine {
    /// Lets a paused or blocked run go on in whichever process comes first: it is in the queue when this returns, behind
    /// whoever holds its concurrency key by now. The attempts of its open step before now no longer count. Leaves a row in
    /// the audit trail.
    ///
    /// # Errors
    /// [`EngineError::WrongState`] for a run that is neither paused nor blocked.
    pub async fn requeue(&self, run_id: RunId, by: &Mutation) -> Result<(), EngineError> {
        check_mutation(by)?;
        requeue(&self.0, run_id, by).await
    }
}

async fn requeue(inner: &Arc<Inner>, run_id: RunId, by: &Mutation) -> Result<(), EngineError> {
    loop {
        let standing = Standing::of(inner, run_id, false).await?;
        let queued = standing.state.after(RunEvent::Requeue);
        let Ok(queued) = queued else {
            return Err(EngineError::WrongState { run: run_id, state: standing.state, what: "be put into the queue" });
        };
        let (run_no, epoch, from) = (standing.run_no, standing.epoch, standing.state);
        let (now_ms, by) = (inner.clock.now_ms(), by.clone());
        let done: bool = inner
            .writer
            .exclusive("put the run into the queue", move |connection| {
                let by = by.clone();
                Box::pin(async move {
                    let changed = sqlx::query(
                        "UPDATE run SET state = ?1, owner_no = NULL, epoch = epoch + 1, failure = NULL, \
                         failed_step = NULL, pause_requested_at_ms = NULL, requeued_at_ms = ?5 WHERE run_no = ?2 AND epoch = ?3 AND state = ?4",
                    )
                    .bind(queued.as_str())
                    .bind(run_no)
                    .bind(epoch)
                    .bind(from.as_str())
                    .bind(now_ms)
                    .execute(&mut *connection)
                    .await?;
                    if changed.rows_affected() == 0 {
                        return Ok(false);
                    }
                    sqlx::query(
                        "UPDATE step SET forgiven = attempt WHERE run_no = ? AND state IN ('running', 'retrying')",
                    )
                    .bind(run_no)
                    .execute(&mut *connection)
                    .await?;
                    audit(connection, now_ms, &by, "resume", run_id).await?;
                    Ok(true)
                })
            })
            .await?;
        // Otherwise the run moved on between the look and the change: look again.
        if done {
            return Ok(());
        }
    }
}
