//! This process as an owner: its row, its lease, and the orders that reach it through the journal.

use std::sync::{Arc, Weak};

use engine_rules::clock::Clock;

use crate::engine::Inner;
use crate::error::EngineError;
use crate::owner::{LEASE_MS, OwnerLock, RENEW_MS, remove_dead};
use crate::writer::Writer;

use super::orders::pass_orders;

/// How often the journal is asked for orders of other processes, in milliseconds: a cancel must arrive within a second.
const LOOK_EVERY_MS: u64 = 250;

/// Records this process as an owner, once it holds its lock.
pub(crate) async fn register_owner(writer: &Writer, lock: &OwnerLock, now_ms: i64) -> Result<i64, EngineError> {
    let owner_id = lock.id.to_string();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    writer
        .exclusive("register this process", move |connection| {
            let (owner_id, host) = (owner_id.clone(), host.clone());
            Box::pin(async move {
                sqlx::query_scalar(
                    "INSERT INTO owner (owner_id, pid, host, version, started_at_ms, lease_until_at_ms) \
                     VALUES (?, ?, ?, ?, ?, ?) RETURNING owner_no",
                )
                .bind(owner_id)
                .bind(i64::from(std::process::id()))
                .bind(host)
                .bind(env!("CARGO_PKG_VERSION"))
                .bind(now_ms)
                .bind(now_ms.saturating_add(LEASE_MS))
                .fetch_one(connection)
                .await
            })
        })
        .await
}

/// Records that this process ended in order.
pub(crate) async fn end_owner(inner: &Inner) {
    let (owner_no, now_ms) = (inner.owner_no, inner.clock.now_ms());
    let ended = inner.writer.exclusive("sign off", move |connection| {
        Box::pin(async move {
            sqlx::query("UPDATE owner SET ended_at_ms = ? WHERE owner_no = ?")
                .bind(now_ms)
                .bind(owner_no)
                .execute(connection)
                .await
                .map(|_| ())
        })
    });
    if let Err(error) = ended.await {
        // The lock tells the same.
        tracing::warn!(%error, "this process could not sign off");
    }
}

/// Removes the lock files of dead owners without runs. Files that stay are found again at the next start.
pub(crate) async fn clear_dead_locks(inner: &Inner) {
    let Ok(entries) = std::fs::read_dir(inner.state_dir.join("owners")) else { return };
    let own = inner.lock.as_ref().map(|lock| lock.id.to_string()).unwrap_or_default();
    let names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).filter(|name| *name != own).collect();
    let Ok(names) = serde_json::to_string(&names) else { return };
    // Only those that are in the journal: a process that is about to take its lock is not.
    let idle: Result<Vec<String>, _> = sqlx::query_scalar(
        "SELECT owner_id FROM owner WHERE owner_id IN (SELECT value FROM json_each(?)) AND owner_no NOT IN \
         (SELECT owner_no FROM run WHERE owner_no IS NOT NULL AND state IN ('running', 'waiting'))",
    )
    .bind(names)
    .fetch_all(&inner.readers)
    .await;
    for owner_id in idle.unwrap_or_default() {
        remove_dead(&inner.state_dir, &owner_id);
    }
}

/// Renews the lease and passes orders on, until the engine is gone.
pub(crate) async fn keep_alive(inner: Weak<Inner>, clock: Arc<dyn Clock>) {
    let mut since_renewed_ms = 0;
    loop {
        clock.sleep_ms(LOOK_EVERY_MS).await;
        let Some(inner) = inner.upgrade() else { return };
        if let Err(error) = pass_orders(&inner).await {
            tracing::warn!(%error, "the journal could not be asked for orders");
        }
        since_renewed_ms += LOOK_EVERY_MS;
        if since_renewed_ms >= RENEW_MS {
            since_renewed_ms = 0;
            if let Some(Err(error)) = inner.lock.as_ref().map(|lock| lock.keep(&inner.state_dir)) {
                tracing::warn!(%error, "the lock of this process could not be taken again");
            }
            match renew(&inner).await {
                Ok(()) => {}
                Err(EngineError::Closed) => return,
                Err(error) => tracing::warn!(%error, "the lease of this process could not be renewed"),
            }
        }
    }
}

async fn renew(inner: &Inner) -> Result<(), EngineError> {
    let (owner_no, until) = (inner.owner_no, inner.clock.now_ms().saturating_add(LEASE_MS));
    inner
        .writer
        .exclusive("renew the lease", move |connection| {
            Box::pin(async move {
                sqlx::query("UPDATE owner SET lease_until_at_ms = ? WHERE owner_no = ?")
                    .bind(until)
                    .bind(owner_no)
                    .execute(connection)
                    .await
                    .map(|_| ())
            })
        })
        .await
}
