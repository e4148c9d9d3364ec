//! What a dead process leaves, and who takes it.

use std::collections::BTreeSet;
use std::path::Path;

use engine::{CRASH_POINTS, Engine, EngineContext, EngineError, KeyPolicy, RunFilter, RunId, Start, StartRun};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::state::RunState;
use serde_json::json;

use crate::child::{Order, aborts, log, work_registry};
use crate::support::{Broken, QUICK, detail, open, outsider, sleep_ms, start, succeeded, until};
use crate::worker::{Work, all_ended, recover, run_on_a_full_disk, spawn, worker_registry};

async fn runs(engine: &Engine) -> Vec<engine::RunRow> {
    engine.reader().runs(&RunFilter::default()).await.expect("the runs read")
}

fn owners(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("owners")).expect("the locks").count()
}

/// Thirty runs at once, three recoverers, real kills: each body runs once more, and no run keeps a dead owner.
#[tokio::test(flavor = "multi_thread")]
async fn after_kill_9_no_run_is_running_without_an_owner_that_lives_and_each_body_runs_once_more() {
    const RUNS: usize = 30;
    let folder = tempfile::tempdir().expect("a folder");
    let mut child = spawn(folder.path(), &Work::Hold { runs: 30 });
    let log = log(folder.path());
    until("all bodies run", || log.lines().len() == RUNS).await;
    child.kill().expect("it is killed");
    child.wait().expect("it is dead");
    let mut engines = Vec::new();
    for _ in 0..3 {
        engines.push(open(folder.path(), worker_registry(folder.path())).await);
    }
    let recovering: Vec<_> = engines
        .iter()
        .map(|engine| {
            let engine = engine.clone();
            tokio::spawn(async move {
                let mut flight = tokio::task::JoinSet::new();
                for run in engine.interrupted().await.expect("they are listed") {
                    let engine = engine.clone();
                    flight.spawn(async move { (run, engine.drive(run).await) });
                }
                flight.join_all().await
            })
        })
        .collect();
    until("all bodies run again", || log.lines().len() == 2 * RUNS).await;
    // Every run is owned by one who lives, and is found by nobody any more.
    for engine in &engines {
        assert_eq!(engine.interrupted().await.expect("they are listed"), []);
    }
    for run in runs(&engines[0]).await {
        assert_eq!((run.state, run.owner.map(|owner| owner.alive)), (RunState::Running, Some(true)));
    }
    std::fs::write(folder.path().join("go"), "").expect("the bodies may end");
    let mut won = BTreeSet::new();
    for recovering in recovering {
        for (run, outcome) in recovering.await.expect("no panic") {
            match outcome {
                Ok(outcome) => {
                    succeeded(outcome);
                    assert!(won.insert(run), "{run} has two who recovered it");
                }
                Err(EngineError::OwnedElsewhere { .. }) => {}
                Err(other) => panic!("{run}: {other}"),
            }
        }
    }
    assert_eq!(won.len(), RUNS);
    for run in runs(&engines[0]).await {
        assert_eq!((run.state, run.epoch), (RunState::Succeeded, 2));
        assert_eq!(log.count(&run.run_id.to_string()), 2, "once before the kill, once after it");
    }
    // What is left of the dead goes with the next opening.
    assert_eq!(owners(folder.path()), 4);
    open(folder.path(), worker_registry(folder.path())).await.close().await;
    assert!(owners(folder.path()) <= 4, "the dead one's lock is cleared");
    let alive = engines.len();
    let last = open(folder.path(), worker_registry(folder.path())).await;
    assert_eq!(owners(folder.path()), alive + 1, "only those of the living are left");
    last.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recovery_never_runs_a_run_that_is_alive_in_this_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), worker_registry(folder.path())).await;
    let other = open(folder.path(), worker_registry(folder.path())).await;
    let log = log(folder.path());
    // One that is started and not driven yet, some that are driven, and some that are taken from the queue.
    let unbegun = start(&engine, StartRun::new("held", json!(null), "jane")).await;
    let mut all = vec![unbegun];
    let mut driving = tokio::task::JoinSet::new();
    for number in 0..8 {
        let detached = number % 2 == 0;
        let run = start(&engine, StartRun { detached, ..StartRun::new("held", json!(null), "jane") }).await;
        all.push(run);
        if !detached {
            let engine = engine.clone();
            driving.spawn(async move { engine.drive(run).await.map(|_| ()) });
        }
    }
    let draining = tokio::spawn({
        let engine = engine.clone();
        async move { engine.drain(8).await }
    });
    for sweep in 0..60 {
        for looks in [&engine, &other] {
            assert_eq!(looks.interrupted().await.expect("they are listed"), [], "sweep {sweep}");
        }
        for run in &all {
            let refused = engine.take_over(*run).await;
            let standing = detail(&engine, *run).await.run.state;
            match refused {
                Err(EngineError::AlreadyDriven { .. }) => {}
                Err(EngineError::WrongState { state: RunState::Queued, .. }) => {}
                other => panic!("{run} {standing}: {other:?}"),
            }
        }
        sleep_ms(5).await;
    }
    until("all bodies run", || log.lines().len() == 8).await;
    std::fs::write(folder.path().join("go"), "").expect("the bodies may end");
    succeeded(engine.drive(unbegun).await.expect("it is driven"));
    assert_eq!(draining.await.expect("no panic").expect("it drains"), 4);
    driving.join_all().await.into_iter().collect::<Result<Vec<_>, _>>().expect("they are driven");
    for run in all {
        assert_eq!((log.count(&run.to_string()), detail(&engine, run).await.run.epoch), (1, 1));
    }
}

const LONG: StepDef<u32, ()> = StepDef::new("long", "recovery.long", QUICK);

async fn long<C: Context>(ctx: &mut C, number: u32) -> Result<(), Interrupt> {
    ctx.step(&LONG, &number).await
}

/// The bodies of the others go on, so they must stay what this process works on.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_the_database_in_one_run_of_a_queue_lets_go_of_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let mut registry = work_registry(&log);
    registry.workflow("long", 1, long::<EngineContext>);
    let (lines, go) = (log.clone(), folder.path().join("go"));
    registry.blocking_activity("recovery.long", move |_ctx, number: u32| {
        lines.add(&format!("long {number}"));
        // Ten seconds at most, so that a failed test ends.
        for _ in 0..2_000 {
            if number == 0 || go.exists() {
                break;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(5));
        }
        Ok::<_, Broken>(())
    });
    let engine = open(folder.path(), registry).await;
    for number in (0..6).rev() {
        start(&engine, StartRun { detached: true, ..StartRun::new("long", json!(number), "jane") }).await;
    }
    let mut other = outsider(folder.path()).await;
    refuse(&mut other, "INSERT ON step WHEN NEW.input = '0'").await;
    let draining = tokio::spawn({
        let engine = engine.clone();
        async move { engine.drain(8).await }
    });
    let short = runs(&engine).await[0].run_id;
    let mut found = Vec::new();
    for _ in 0..500 {
        found = engine.interrupted().await.expect("they are listed");
        if !found.is_empty() {
            break;
        }
        sleep_ms(10).await;
    }
    sleep_ms(100).await;
    assert_eq!(engine.interrupted().await.expect("they are listed"), [short], "the one that was lost, and no other");
    assert_eq!(found, [short]);
    std::fs::write(folder.path().join("go"), "").expect("the bodies may end");
    let drained = draining.await.expect("no panic");
    assert!(matches!(drained, Err(EngineError::Storage { .. })), "and the caller hears of it: {drained:?}");
    allow(&mut other).await;
    recover(&engine).await;
    assert!(all_ended(&engine).await);
    for number in 1..6 {
        assert_eq!(log.count(&format!("long {number}")), 1, "the body of run {number} ran once");
    }
}

/// From now on the database refuses what `what` says, as one on a full disk does.
async fn refuse(other: &mut sqlx::SqliteConnection, what: &str) {
    let trigger = format!("CREATE TRIGGER refuse BEFORE {what} BEGIN SELECT RAISE(ABORT, 'the disk is away'); END");
    sqlx::query(sqlx::AssertSqlSafe(trigger)).execute(other).await.expect("a trigger");
}

async fn allow(other: &mut sqlx::SqliteConnection) {
    sqlx::query("DROP TRIGGER refuse").execute(other).await.expect("the trigger goes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_of_the_database_in_the_middle_of_a_recovery_strands_nothing() {
    for (name, what) in [
        ("the taking-over", "UPDATE OF owner_no ON run"),
        ("the lost attempt", "INSERT ON attempt"),
        ("the step", "INSERT ON step"),
        ("the step again", "UPDATE ON step"),
        ("the end", "UPDATE OF ended_at_ms ON run WHEN NEW.state = 'succeeded'"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        aborts(folder.path(), &Order::Run { workflow: "slow".to_owned(), point: "test.slow".to_owned(), hit: 1 });
        let engine = open(folder.path(), worker_registry(folder.path())).await;
        let mut other = outsider(folder.path()).await;
        refuse(&mut other, what).await;
        let run = engine.interrupted().await.expect("they are listed")[0];
        let error = match engine.drive(run).await {
            Err(error) => error,
            // A row that this recovery does not write.
            Ok(outcome) => {
                succeeded(outcome);
                assert_eq!(name, "the step", "{name} was written");
                continue;
            }
        };
        assert!(matches!(error, EngineError::Storage { .. }), "{name}: {error:?}");
        assert_eq!(engine.interrupted().await.expect("they are listed"), [run], "{name}: it is found again");
        let next = open(folder.path(), worker_registry(folder.path())).await;
        allow(&mut other).await;
        let taken = [recover(&next).await, recover(&engine).await].concat();
        assert_eq!(taken, [run], "{name}: by whoever may");
        assert_eq!(detail(&engine, run).await.run.state, RunState::Succeeded, "{name}");
    }
}

/// A real full disk: no file may grow beyond a limit, which lies a few more pages of the log away each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_at_any_write_of_a_recovery_strands_nothing() {
    const PAGE_IN_LOG: u64 = 4_096 + 24;
    let mut refused = BTreeSet::new();
    let mut done = 0;
    for pages in (0..30).step_by(2) {
        let folder = tempfile::tempdir().expect("a folder");
        aborts(folder.path(), &Order::Run { workflow: "work".to_owned(), point: "test.second".to_owned(), hit: 1 });
        let log = std::fs::metadata(folder.path().join("state.db-wal")).expect("the dead one's log").len();
        let blocks = u32::try_from((log + pages * PAGE_IN_LOG) / 512 + 1).expect("a small number");
        let never = Work::Recover { point: "never".to_owned(), hit: 1 };
        let output = run_on_a_full_disk(folder.path(), &never, blocks);
        match output.status.success() {
            true => done += 1,
            false => {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let doing = said.split("doing: \"").nth(1).and_then(|rest| rest.split('"').next());
                refused.insert(doing.unwrap_or_else(|| panic!("{pages} pages: {said}")).to_owned());
            }
        }
        let engine = open(folder.path(), worker_registry(folder.path())).await;
        recover(&engine).await;
        let runs = runs(&engine).await;
        assert_eq!(runs.iter().map(|run| run.state).collect::<Vec<_>>(), [RunState::Succeeded], "{pages} pages");
        engine.close().await;
        let engine = open(folder.path(), worker_registry(folder.path())).await;
        assert_eq!(owners(folder.path()), 1, "{pages} pages: no lock is left of who could not begin");
        engine.close().await;
    }
    assert!(refused.len() >= 3 && done >= 1, "refused to {refused:?}, and {done} times nothing");
}

async fn queue_goes_on(folder: &Path, what: &str, least: usize) -> usize {
    let engine = open(folder, worker_registry(folder)).await;
    recover(&engine).await;
    let runs = runs(&engine).await;
    assert!(runs.len() >= least, "{what}: {runs:?}");
    for run in &runs {
        assert_eq!(run.state, RunState::Succeeded, "{what}: {run:?}");
    }
    let next = StartRun::new("work", json!(null), "jane").key("the key", KeyPolicy::Forbid);
    match engine.start(next).await.expect("it is answered") {
        Start::Started(started) => {
            succeeded(engine.drive(started.run_id).await.expect("it is driven"));
        }
        Start::Busy { holder } => panic!("{what}: {holder} still holds the key"),
    }
    engine.close().await;
    runs.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_any_two_commits_never_blocks_a_queue_with_concurrency_one() {
    let mut reached = BTreeSet::new();
    for workflow in ["work", "slow"] {
        for point in CRASH_POINTS {
            for hit in 1..=5 {
                let folder = tempfile::tempdir().expect("a folder");
                let what = format!("{workflow} at {point}, {hit}");
                let queue = Work::Queue { workflow: workflow.to_owned(), runs: 3, point: (*point).to_owned(), hit };
                let status = spawn(folder.path(), &queue).wait_with_output().expect("it ends").status;
                let crashed = !status.success();
                if crashed {
                    reached.insert(*point);
                }
                queue_goes_on(folder.path(), &what, if *point == "engine.run_row.before" { 0 } else { 1 }).await;
                // A point that is not met so often is not met more often.
                if !crashed || (workflow == "slow" && hit == 2) {
                    break;
                }
            }
        }
    }
    // And who recovers may crash as well.
    for point in ["engine.take_over.before", "engine.take_over.after", "engine.result.after", "engine.run_end.before"] {
        let folder = tempfile::tempdir().expect("a folder");
        let end = "engine.run_end.before".to_owned();
        let queue = Work::Queue { workflow: "work".to_owned(), runs: 3, point: end, hit: 1 };
        assert!(!spawn(folder.path(), &queue).wait_with_output().expect("it ends").status.success());
        let recovers = Work::Recover { point: point.to_owned(), hit: 1 };
        assert!(!spawn(folder.path(), &recovers).wait_with_output().expect("it ends").status.success(), "{point}");
        reached.insert(point);
        queue_goes_on(folder.path(), point, 1).await;
    }
    for point in [
        "engine.run_row.before",
        "engine.run_row.after",
        "engine.take_over.before",
        "engine.take_over.after",
        "engine.step_start.before",
        "engine.step_start.after",
        "engine.result.before",
        "engine.result.after",
        "engine.run_end.before",
        "engine.run_end.after",
    ] {
        assert!(reached.contains(point), "{point} was not met: {reached:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_zombie_is_found_once_and_its_lock_is_cleared() {
    let folder = tempfile::tempdir().expect("a folder");
    aborts(folder.path(), &Order::Run { workflow: "work".to_owned(), point: "test.second".to_owned(), hit: 1 });
    let one = open(folder.path(), work_registry(&log(folder.path()))).await;
    let two = open(folder.path(), work_registry(&log(folder.path()))).await;
    let found: Vec<RunId> = two.interrupted().await.expect("they are listed");
    one.take_over(found[0]).await.expect("it is taken over");
    for _ in 0..3 {
        for engine in [&one, &two] {
            assert_eq!(engine.interrupted().await.expect("they are listed"), [], "found once, not at every sweep");
        }
    }
    assert!(matches!(two.take_over(found[0]).await, Err(EngineError::OwnedElsewhere { .. })));
    assert_eq!(owners(folder.path()), 3, "the dead one's is kept while a run may need it");
    succeeded(one.drive(found[0]).await.expect("it is driven"));
    let three = open(folder.path(), work_registry(&log(folder.path()))).await;
    assert_eq!(owners(folder.path()), 3, "the next who opens the state clears it away");
    three.close().await;
}

/// Between the commit that takes a run and the moment when somebody here works on it, it looks as if nobody did.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_taken_a_moment_ago_is_not_found_interrupted() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), worker_registry(folder.path())).await;
    for number in 0..300 {
        let run = StartRun { detached: true, ..StartRun::new("sum", json!([number, 2]), "jane") };
        start(&engine, run).await;
    }
    let mut working = tokio::task::JoinSet::new();
    working.spawn({
        let engine = engine.clone();
        async move { engine.drain(4).await.expect("it drains") }
    });
    working.spawn({
        let engine = engine.clone();
        async move {
            for number in 0..200 {
                let run = start(&engine, StartRun::new("sum", json!([number, 2]), "jane")).await;
                succeeded(engine.drive(run).await.expect("it is driven"));
            }
            200
        }
    });
    let mut sweeps = 0;
    while !working.is_empty() && sweeps < 100_000 {
        assert_eq!(engine.interrupted().await.expect("they are listed"), [], "sweep {sweeps}");
        sweeps += 1;
        while let Some(done) = working.try_join_next() {
            done.expect("no panic");
        }
    }
    assert!(sweeps > 20, "{sweeps} sweeps");
    let runs = runs(&engine).await;
    assert!(runs.len() == 500 && runs.iter().all(|run| (run.state, run.epoch) == (RunState::Succeeded, 1)));
}
