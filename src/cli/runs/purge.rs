//! `jobctl runs purge`, and the purge that the configuration asks for.

use engine::{Engine, Mutation, PurgePlan, PurgeReport};
use engine_rules::retention::Cutoff;
use serde_json::json;

use super::document::instant;
use super::reader;
use crate::args::RunsPurge;
use crate::cli::cancelled::take_back_every;
use crate::cli::reason;
use crate::cli::when;
use crate::config::Retention;
use crate::exit::{Ended, Exit};
use crate::output::{Output, grouped, moment};
use crate::wire::{World, engine_error};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// What goes by `[retention]`, at `now_ms`. A daemon gives it to [`carry_out`] each hour, with a `budget_ms` of some
/// minutes: what is left then goes an hour later.
pub fn by_retention(retention: Retention, now_ms: i64, by: Mutation) -> PurgePlan {
    let before = |days: u32| now_ms.saturating_sub(i64::from(days) * DAY_MS);
    let cutoff = Cutoff {
        ended_before_ms: before(retention.finished_runs_days),
        failed_ended_before_ms: Some(before(retention.failed_runs_days)),
    };
    PurgePlan::new(cutoff, by)
}

/// Purges. The catalog is looked at first: what a cancelled publish left in a seal journal is taken back while the record
/// of its run still tells that it was cancelled. A plan's times must lie before this is called. Repeats are safe.
///
/// # Errors
/// What the catalog or the engine fails with; nothing is purged when the catalog cannot be looked at.
pub async fn carry_out(world: &World, engine: &Engine, plan: PurgePlan) -> Result<PurgeReport, Ended> {
    if !plan.dry_run {
        take_back_every(world, &engine.reader()).await?;
    }
    engine.purge(plan).await.map_err(|error| engine_error(&error))
}

pub(super) async fn purge(world: &World, out: Output, args: RunsPurge) -> Result<Exit, Ended> {
    let RunsPurge { older_than, failed_too, dry_run, reason } = args;
    let reason = if dry_run { reason } else { Some(reason::reason(out, reason)?) };
    let now_ms = world.clock.now_ms();
    let by = Mutation { actor: world.actor.clone(), reason: reason.unwrap_or_default() };
    let mut plan = match older_than {
        None => by_retention(world.config.retention, now_ms, by),
        Some(span) => {
            let ended_before_ms = when::before("--older-than", &span, now_ms)?;
            let failed_ended_before_ms = failed_too.then_some(ended_before_ms);
            PurgePlan::new(Cutoff { ended_before_ms, failed_ended_before_ms }, by)
        }
    };
    plan.dry_run = dry_run;
    let cutoff = plan.cutoff;
    let report = match reader(world).await? {
        // Nothing was ever run here.
        None => PurgeReport { finished: true, ..PurgeReport::default() },
        Some(_) => {
            let engine = world.engine().await?;
            let report = carry_out(world, &engine, plan).await?;
            engine.close().await;
            report
        }
    };
    tell(out, &report, &cutoff, dry_run);
    out.document(
        "runs.purge",
        json!({
            "dry_run": dry_run,
            "ended_before": instant(cutoff.ended_before_ms),
            "failed_ended_before": cutoff.failed_ended_before_ms.map(instant),
            "runs": report.runs,
            "steps": report.steps,
            "idempotency_keys": report.idempotency_keys,
            "owners": report.owners,
            "ticks": report.ticks,
            "stay": {
                "live": report.stay_live,
                "replayed": report.stay_replayed,
                "failed": report.stay_failed,
                "recent": report.stay_recent,
            },
            "transactions": report.transactions,
            "longest_transaction_us": report.longest_transaction_us,
            "finished": report.finished,
        }),
    );
    Ok(Exit::Done)
}

fn tell(out: Output, report: &PurgeReport, cutoff: &Cutoff, dry_run: bool) {
    let would = if dry_run { "would purge" } else { "purged" };
    let failed = match cutoff.failed_ended_before_ms {
        Some(failed) if failed == cutoff.ended_before_ms => String::new(),
        Some(failed) => format!(", and failed ones that ended before {}", moment(failed)),
        None => ", and none that failed".to_owned(),
    };
    out.line(format!(
        "{would} {} with {} that ended before {}{failed}",
        counted(report.runs, "run"),
        counted(report.steps, "step"),
        moment(cutoff.ended_before_ms)
    ));
    for (count, what) in [
        (report.idempotency_keys, "idempotency keys whose window ended"),
        (report.owners, "processes that are gone and that no run names"),
        (report.ticks, "ticks of schedules"),
    ] {
        if count > 0 {
            out.line(format!("{would} {} {what}", grouped(count)));
        }
    }
    let failed = match cutoff.failed_ended_before_ms {
        Some(_) => "they failed, and such runs are kept longer",
        None => "they failed: --failed-too takes them",
    };
    for (count, why) in [
        (report.stay_live, "they, or runs that belong to them, are not finished"),
        (report.stay_replayed, "a run that is not finished replays them"),
        (report.stay_failed, failed),
        (report.stay_recent, "they, or runs that belong to them, ended too late"),
    ] {
        if count > 0 {
            out.line(format!("{} stay: {why}", grouped(count)));
        }
    }
}

/// `1 run`, `2 runs`.
fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configured_days_become_times() {
        let by = Mutation { actor: "jane".to_owned(), reason: String::new() };
        let retention = Retention { finished_runs_days: 2, failed_runs_days: 3 };
        let plan = by_retention(retention, 10 * DAY_MS, by);
        assert_eq!(plan.cutoff, Cutoff { ended_before_ms: 8 * DAY_MS, failed_ended_before_ms: Some(7 * DAY_MS) });
        assert!(!plan.dry_run && plan.budget_ms.is_none());
    }
}
