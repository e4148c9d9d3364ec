//! Deleting the history that is no longer wanted, in transactions of a bounded size (DESIGN §2.2, Retention).
//!
//! What goes is looked for on the readers' connections, which hold nobody up; the transaction that deletes it looks again
//! only at what could have changed since: a run that ended never changes, but a live run may have begun to replay it, or
//! have been started as its child.

mod family;
mod portion;
mod rest;

use std::sync::Arc;

use engine_rules::retention::{Cutoff, Portion, Stays, Weight};
use serde::Serialize;
use serde_json::json;
use sqlx::SqliteConnection;

use crate::BoxFuture;
use crate::engine::{Inner, Mutation};
use crate::error::EngineError;

/// What one transaction deletes at most, unless the plan says otherwise: 300 runs, 3,000 rows, 16 MiB of payload. Some
/// milliseconds of work, so that whoever waits for the database does not notice.
const PORTION: Portion = Portion { items: 300, weight: Weight { rows: 3_000, bytes: 16 * 1024 * 1024 } };

/// How long the database is left to others after a transaction, in milliseconds: as long as the transaction took, within
/// these. Writers of other processes ask for it from time to time only, so a gap must be wide enough to be met.
const PAUSE_MS: (u64, u64) = (5, 100);

/// What is to be purged, and how much of it at once.
#[derive(Debug, Clone)]
pub struct PurgePlan {
    /// Which runs, by their end. Never one that is not finished, that has a live ancestor or descendant, or that a live
    /// run replays; children go with their parent. Owners and ticks go by [`Cutoff::ended_before_ms`], idempotency keys
    /// when their own window ended.
    pub cutoff: Cutoff,
    /// Stop after this time, in milliseconds; the next purge goes on. Without it, all goes.
    pub budget_ms: Option<u64>,
    /// Count what would go, and delete nothing.
    pub dry_run: bool,
    /// What one transaction deletes at most.
    pub portion: Portion,
    /// Who purges, and why. One row of the audit trail for the whole purge, if it deleted anything; it is up to date
    /// after each transaction.
    pub by: Mutation,
}

impl PurgePlan {
    /// All that `cutoff` lets go.
    #[must_use]
    pub fn new(cutoff: Cutoff, by: Mutation) -> Self {
        Self { cutoff, budget_ms: None, dry_run: false, portion: PORTION, by }
    }
}

/// What a purge did, or would do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PurgeReport {
    /// Runs that went.
    pub runs: u64,
    /// Their steps.
    pub steps: u64,
    /// Idempotency keys whose window had ended.
    pub idempotency_keys: u64,
    /// Processes that were gone and that no run names.
    pub owners: u64,
    /// Ticks of schedules; of each schedule the last one stays.
    pub ticks: u64,
    /// Runs without a parent that are old enough and stay, because they or runs that belong to them are not finished.
    pub stay_live: u64,
    /// … because a run that is not finished replays them.
    pub stay_replayed: u64,
    /// … because they failed and failed runs stay longer.
    pub stay_failed: u64,
    /// … because they or runs that belong to them ended too late.
    pub stay_recent: u64,
    /// How many transactions it took.
    pub transactions: u64,
    /// The longest of them, with the wait for it, in microseconds.
    pub longest_transaction_us: u64,
    /// Nothing is left to be purged; otherwise the time was up.
    pub finished: bool,
}

/// What one transaction deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Gone {
    runs: u64,
    steps: u64,
    idempotency_keys: u64,
    owners: u64,
    ticks: u64,
}

impl PurgeReport {
    fn add(&mut self, gone: Gone) {
        self.runs += gone.runs;
        self.steps += gone.steps;
        self.idempotency_keys += gone.idempotency_keys;
        self.owners += gone.owners;
        self.ticks += gone.ticks;
    }

    fn stays(&mut self, why: Stays) {
        match why {
            Stays::Live => self.stay_live += 1,
            Stays::Replayed => self.stay_replayed += 1,
            Stays::Failed => self.stay_failed += 1,
            Stays::Recent => self.stay_recent += 1,
        }
    }
}

/// A purge under way.
struct Purge<'a> {
    inner: &'a Inner,
    plan: PurgePlan,
    now_ms: i64,
    begun_us: u64,
    report: PurgeReport,
    /// Its row in the audit trail, once something is deleted.
    audit_no: Option<i64>,
}

pub(crate) async fn purge(inner: &Arc<Inner>, plan: PurgePlan) -> Result<PurgeReport, EngineError> {
    let mut purge = Purge {
        inner,
        now_ms: inner.clock.now_ms(),
        begun_us: inner.clock.monotonic_us(),
        report: PurgeReport::default(),
        audit_no: None,
        plan,
    };
    purge.begun_families().await?;
    purge.families().await?;
    purge.idempotency_keys().await?;
    purge.owners().await?;
    purge.ticks().await?;
    purge.report.finished = !purge.is_over();
    if purge.audit_no.is_some() {
        purge.commit(|_| Box::pin(async { Ok(Gone::default()) })).await?;
    }
    Ok(purge.report)
}

impl Purge<'_> {
    /// Whether the time is up.
    fn is_over(&self) -> bool {
        let spent_us = self.inner.clock.monotonic_us().saturating_sub(self.begun_us);
        self.plan.budget_ms.is_some_and(|budget_ms| spent_us / 1_000 >= budget_ms)
    }

    /// Carries out `work` and brings the audit trail up to date, in one transaction; then leaves the database to others.
    /// When it returns, what was deleted stays so.
    async fn commit<W>(&mut self, work: W) -> Result<Gone, EngineError>
    where
        W: for<'c> Fn(&'c mut SqliteConnection) -> BoxFuture<'c, Result<Gone, sqlx::Error>> + Send + Sync + 'static,
    {
        let work = Arc::new(work);
        let (before, audit_no, now_ms) = (self.report, self.audit_no, self.now_ms);
        let (cutoff, by) = (self.plan.cutoff, self.plan.by.clone());
        let begun_us = self.inner.clock.monotonic_us();
        let (gone, audit_no) = self
            .inner
            .writer
            .exclusive("purge finished runs", move |connection| {
                let (work, by) = (work.clone(), by.clone());
                Box::pin(async move {
                    let gone = work(&mut *connection).await?;
                    if gone == Gone::default() && audit_no.is_none() {
                        return Ok((gone, None));
                    }
                    let mut report = before;
                    report.add(gone);
                    let audit_no = audit(connection, audit_no, now_ms, &by, details(&report, &cutoff)).await?;
                    Ok((gone, Some(audit_no)))
                })
            })
            .await?;
        let took_us = self.inner.clock.monotonic_us().saturating_sub(begun_us);
        self.audit_no = audit_no;
        self.report.add(gone);
        self.report.transactions += 1;
        self.report.longest_transaction_us = self.report.longest_transaction_us.max(took_us);
        if !self.report.finished {
            self.inner.clock.sleep_ms((took_us / 1_000).clamp(PAUSE_MS.0, PAUSE_MS.1)).await;
        }
        Ok(gone)
    }
}

/// Rows of the audit trail are kept for ever: they are few and short, and say what is no longer there.
async fn audit(
    connection: &mut SqliteConnection,
    audit_no: Option<i64>,
    now_ms: i64,
    by: &Mutation,
    details: String,
) -> Result<i64, sqlx::Error> {
    if let Some(audit_no) = audit_no {
        sqlx::query("UPDATE audit SET details = ? WHERE audit_no = ?")
            .bind(details)
            .bind(audit_no)
            .execute(connection)
            .await?;
        return Ok(audit_no);
    }
    sqlx::query_scalar(
        "INSERT INTO audit (at_ms, actor, action, reason, details) VALUES (?, ?, 'purge', ?, ?) RETURNING audit_no",
    )
    .bind(now_ms)
    .bind(&by.actor)
    .bind(&by.reason)
    .bind(details)
    .fetch_one(connection)
    .await
}

fn details(report: &PurgeReport, cutoff: &Cutoff) -> String {
    json!({
        "ended_before_ms": cutoff.ended_before_ms,
        "failed_ended_before_ms": cutoff.failed_ended_before_ms,
        "runs": report.runs,
        "steps": report.steps,
        "idempotency_keys": report.idempotency_keys,
        "owners": report.owners,
        "ticks": report.ticks,
        "finished": report.finished,
    })
    .to_string()
}
