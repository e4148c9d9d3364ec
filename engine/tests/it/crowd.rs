//! Many processes on one state database.

use std::path::Path;

use engine::RunFilter;
use engine_rules::state::RunState;

use crate::child::log;
use crate::support::{open, outsider};
use crate::worker::{Work, ends_well, recover, spawn, worker_registry};

/// Eight processes that work and four that read, for so long; every `kill_every_ms` one that works is killed and another
/// takes its place.
async fn crowd(folder: &Path, for_ms: u64, kill_every_ms: u64) {
    let mut workers: Vec<_> = (0..8).map(|_| spawn(folder, &Work::Everything { for_ms })).collect();
    let readers: Vec<_> = (0..4).map(|_| spawn(folder, &Work::Read { for_ms })).collect();
    let mut left_ms = for_ms;
    let mut killed = 0;
    while left_ms > kill_every_ms {
        crate::support::sleep_ms(kill_every_ms).await;
        left_ms -= kill_every_ms;
        let mut worker = workers.remove(0);
        worker.kill().expect("it is killed");
        worker.wait().expect("it is dead");
        killed += 1;
        workers.push(spawn(folder, &Work::Everything { for_ms: left_ms }));
    }
    for worker in workers {
        let said = ends_well(worker);
        assert!(!said.contains("carried out 0,"), "every worker has its turn: {said}");
    }
    for reader in readers {
        let said = ends_well(reader);
        assert!(!said.contains("looked 0"), "every reader has its turn: {said}");
    }
    let engine = open(folder, worker_registry(folder)).await;
    recover(&engine).await;
    let runs = engine.reader().runs(&RunFilter::default()).await.expect("the runs read");
    assert!(runs.len() > 50, "{} runs in {for_ms} ms", runs.len());
    // A killed worker may have taken a run from the queue and not begun it; nothing of it is lost.
    for run in &runs {
        assert_eq!(run.state, RunState::Succeeded, "{run:?}");
    }
    let mut other = outsider(folder).await;
    let check: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut other).await.expect("a check");
    assert_eq!(check, "ok");
    assert!(killed > 0 && log(folder).lines().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_workers_and_four_readers_never_see_a_locked_database() {
    let folder = tempfile::tempdir().expect("a folder");
    crowd(folder.path(), 10_000, 3_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nightly_eight_workers_and_four_readers_for_three_minutes() {
    let folder = tempfile::tempdir().expect("a folder");
    crowd(folder.path(), 180_000, 10_000).await;
}
