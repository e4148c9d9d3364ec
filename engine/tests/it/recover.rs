//! Many runs of a dead process, taken over together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Engine, RunFilter, RunRow, StartRun};
use engine_rules::state::RunState;
use serde_json::json;

use crate::child::{Order, aborts, leave, log, work_registry};
use crate::support::{detail, open, outsider, start};

async fn runs(engine: &Engine) -> Vec<RunRow> {
    engine.reader().runs(&RunFilter::default()).await.expect("the runs read")
}

/// Asserts that each run ended well, that no recorded step ran again, and that the interrupted one ran once more.
async fn assert_recovered(engine: &Engine, folder: &std::path::Path, count: usize, context: &str) {
    let log = log(folder);
    let runs = runs(engine).await;
    assert_eq!(runs.len(), count, "{context}");
    for run in &runs {
        assert_eq!(run.state, RunState::Succeeded, "{context}: {run:?}");
        assert_eq!(log.count(&format!("{} held", run.run_id)), 2, "{context}: {}", run.run_id);
        let detail = detail(engine, run.run_id).await;
        let attempts: Vec<_> = detail.steps[1].attempts.iter().map(|attempt| attempt.outcome.as_str()).collect();
        assert_eq!(attempts, ["crashed", "succeeded"], "{context}");
    }
    let ran = (log.count("first"), log.count("held"), log.count("third"));
    assert_eq!(ran, (count, 2 * count, count), "{context}");
    assert_eq!(engine.interrupted().await.expect("they are listed"), [], "{context}");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_a_dead_process_are_recovered_together_and_no_recorded_step_runs_again() {
    for in_flight in [1, 8, 1_000] {
        let folder = tempfile::tempdir().expect("a folder");
        leave(folder.path(), 30);
        let engine = open(folder.path(), work_registry(&log(folder.path()))).await;
        assert_eq!(engine.interrupted().await.expect("they are listed").len(), 30);
        assert_eq!(engine.recover(in_flight).await.expect("they are recovered"), 30);
        assert_recovered(&engine, folder.path(), 30, &format!("{in_flight} in flight")).await;
        assert!(runs(&engine).await.iter().all(|run| run.epoch == 2));
        assert_eq!(engine.recover(in_flight).await.expect("nothing is left"), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_who_recover_at_once_each_body_runs_in_one() {
    let folder = tempfile::tempdir().expect("a folder");
    leave(folder.path(), 60);
    let log = log(folder.path());
    let (one, two) = (open(folder.path(), work_registry(&log)).await, open(folder.path(), work_registry(&log)).await);
    // Twice in the one process, and in another.
    let (first, second, third) = tokio::join!(one.recover(4), one.recover(4), two.recover(4));
    let taken = [first, second, third].map(|taken| taken.expect("they are recovered"));
    assert_eq!(taken.iter().sum::<u64>(), 60, "{taken:?}");
    assert_recovered(&one, folder.path(), 60, "three recover").await;
    assert!(runs(&one).await.iter().all(|run| run.epoch == 2), "each was taken over once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_while_it_takes_many_over_leaves_them_to_the_next() {
    for (point, hit) in [
        ("engine.take_over.before", 1),
        ("engine.take_over.before", 3),
        ("engine.take_over.after", 1),
        ("engine.take_over.after", 3),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        leave(folder.path(), 20);
        aborts(folder.path(), &Order::Recover { in_flight: 4, point: point.to_owned(), hit });
        let engine = open(folder.path(), work_registry(&log(folder.path()))).await;
        let left = engine.interrupted().await.expect("they are listed").len() as u64;
        assert!(left >= 4, "{point} {hit}: {left}");
        assert_eq!(engine.recover(4).await.expect("they are recovered"), left, "{point} {hit}");
        let runs = runs(&engine).await;
        assert!(runs.iter().all(|run| run.state == RunState::Succeeded), "{point} {hit}: {runs:?}");
        let log = log(folder.path());
        // Who died after the take-over had not begun them; who died at the third had some under way.
        assert_eq!(log.count("first"), 20, "{point} {hit}");
        assert!(log.count("held") >= 40, "{point} {hit}");
        if hit == 1 {
            assert_eq!((log.count("held"), log.count("third")), (40, 20), "{point} {hit}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn recovery_never_takes_a_run_that_is_alive_in_this_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let other = open(folder.path(), work_registry(&log)).await;
    let done = Arc::new(AtomicBool::new(false));
    let recovering: Vec<_> = [&engine, &other]
        .map(|engine| {
            let (engine, done) = (engine.clone(), done.clone());
            tokio::spawn(async move {
                let (mut rounds, mut taken) = (0, 0);
                while !done.load(Ordering::SeqCst) {
                    taken += engine.recover(8).await.expect("they are looked for");
                    rounds += 1;
                }
                (rounds, taken)
            })
        })
        .into_iter()
        .collect();
    let mut flight = tokio::task::JoinSet::new();
    for number in 0..120 {
        let engine = engine.clone();
        // Driven at once, or left in the queue and drained.
        let run = StartRun { detached: number % 2 == 0, ..StartRun::new("work", json!(null), "jane") };
        flight.spawn(async move {
            let detached = run.detached;
            let run = start(&engine, run).await;
            if detached {
                engine.drain(2).await.expect("it drains");
            } else {
                engine.drive(run).await.expect("it is driven");
            }
        });
    }
    flight.join_all().await;
    done.store(true, Ordering::SeqCst);
    for recovered in recovering {
        let (rounds, taken) = recovered.await.expect("no panic");
        assert!(rounds > 0);
        assert_eq!(taken, 0, "in {rounds} rounds");
    }
    let runs = runs(&engine).await;
    assert!(runs.iter().all(|run| run.state == RunState::Succeeded && run.epoch == 1), "{runs:?}");
    assert_eq!((log.count("first"), log.count("second"), log.count("third")), (120, 120, 120));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_given_back_is_charged_no_attempt() {
    for given_back in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        // Dead between the first step and the second.
        let order = Order::Run { workflow: "work".to_owned(), point: "engine.result.after".to_owned(), hit: 1 };
        aborts(folder.path(), &order);
        if given_back {
            let mut other = outsider(folder.path()).await;
            let changed = sqlx::query("UPDATE run SET owner_no = NULL").execute(&mut other).await.expect("it is");
            assert_eq!(changed.rows_affected(), 1);
        }
        let engine = open(folder.path(), work_registry(&log(folder.path()))).await;
        assert_eq!(engine.recover(1).await.expect("it is recovered"), 1);
        let run = runs(&engine).await.remove(0);
        assert_eq!((run.state, run.epoch), (RunState::Succeeded, 2));
        let attempts = detail(&engine, run.run_id).await.steps.swap_remove(1).attempts;
        let outcomes: Vec<_> = attempts.iter().map(|attempt| attempt.outcome.as_str()).collect();
        assert_eq!(outcomes, if given_back { vec!["succeeded"] } else { vec!["crashed", "succeeded"] });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_the_database_during_recovery_strands_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    leave(folder.path(), 20);
    let engine = open(folder.path(), work_registry(&log(folder.path()))).await;
    let mut other = outsider(folder.path()).await;
    for fault in [
        // While the runs are taken over, and while what they did is recorded.
        "CREATE TRIGGER fault BEFORE UPDATE OF owner_no ON run BEGIN SELECT RAISE(ABORT, 'the disk is full'); END",
        "CREATE TRIGGER fault BEFORE INSERT ON step WHEN NEW.name = 'third' BEGIN SELECT RAISE(ABORT, 'full'); END",
    ] {
        sqlx::query(fault).execute(&mut other).await.expect("the fault is there");
        let error = engine.recover(4).await.expect_err("the database refuses");
        assert!(error.to_string().contains("state database"), "{error}");
        assert_eq!(engine.interrupted().await.expect("they are listed").len(), 20, "{fault}");
        sqlx::query("DROP TRIGGER fault").execute(&mut other).await.expect("the fault is gone");
    }
    assert_eq!(engine.recover(4).await.expect("they are recovered"), 20);
    let runs = runs(&engine).await;
    assert!(runs.iter().all(|run| run.state == RunState::Succeeded), "{runs:?}");
}
