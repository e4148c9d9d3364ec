//! A run has one owner.

use engine::{EngineError, Outcome, StartRun};
use engine_rules::state::StepState;
use serde_json::json;

use crate::child::{Order, aborts, log, work_registry};
use crate::support::{detail, open, outsider, start, succeeded, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_late_result_of_a_fenced_attempt_is_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), work_registry(&log(folder.path()))).await;
    let run = start(&engine, StartRun::new("slow", json!(null), "jane")).await;
    let driving = tokio::spawn({
        let engine = engine.clone();
        async move { engine.drive(run).await }
    });
    let log = log(folder.path());
    until("the body runs", || log.count("slow") == 1).await;
    // As an owner would that took this process for dead.
    let mut other = outsider(folder.path()).await;
    let taken = sqlx::query("UPDATE run SET epoch = epoch + 1").execute(&mut other).await.expect("it is taken");
    assert_eq!(taken.rows_affected(), 1);
    assert_eq!(driving.await.expect("no panic").expect("it is driven"), Outcome::Fenced);
    let seen = detail(&engine, run).await;
    assert!(seen.steps.iter().all(|step| step.state != StepState::Succeeded && step.output.is_none()), "{seen:?}");
    assert!(seen.run.output.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_owner_is_left_alone_and_a_dead_one_is_replaced_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = open(folder.path(), work_registry(&log(folder.path()))).await;
    let run = start(&first, StartRun::new("slow", json!(null), "jane")).await;
    let second = open(folder.path(), work_registry(&log(folder.path()))).await;
    assert_eq!(second.interrupted().await.expect("they are listed"), []);
    for refused in [second.take_over(run).await, second.drive(run).await.map(|_| ())] {
        assert!(matches!(refused, Err(EngineError::OwnedElsewhere { .. })), "{refused:?}");
    }
    drop(first);
    until("the first owner's lock is free", || {
        let folder = folder.path().join("owners");
        std::fs::read_dir(folder).expect("the locks").any(|entry| {
            let file = std::fs::File::open(entry.expect("a lock").path()).expect("a lock");
            file.try_lock_shared().is_ok()
        })
    })
    .await;
    assert_eq!(second.interrupted().await.expect("they are listed"), [run]);
    succeeded(second.drive(run).await.expect("it is driven"));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_recover_at_once_one_runs_the_body() {
    let folder = tempfile::tempdir().expect("a folder");
    aborts(folder.path(), &Order::Run { workflow: "slow".to_owned(), point: "test.slow".to_owned(), hit: 1 });
    let log = log(folder.path());
    let one = open(folder.path(), work_registry(&log)).await;
    let two = open(folder.path(), work_registry(&log)).await;
    let run = one.interrupted().await.expect("they are listed")[0];
    let (first, second) = tokio::join!(one.drive(run), two.drive(run));
    let (won, lost): (Vec<_>, Vec<_>) = [first, second].into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 1), "{won:?} {lost:?}");
    assert!(matches!(lost[0], Err(EngineError::OwnedElsewhere { .. })), "{lost:?}");
    assert_eq!(log.count("slow"), 2, "once before the crash, once after it");
    assert_eq!(detail(&one, run).await.run.epoch, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_drive_a_run_in_one_process_one_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let run = start(&engine, StartRun::new("slow", json!(null), "jane")).await;
    let (first, second) = tokio::join!(engine.drive(run), engine.drive(run));
    let refused = [&first, &second].into_iter().filter(|r| matches!(r, Err(EngineError::AlreadyDriven { .. }))).count();
    assert_eq!(refused, 1, "{first:?} {second:?}");
    assert_eq!(log.count("slow"), 1);
    assert_eq!(engine.interrupted().await.expect("they are listed"), []);
}

/// Who stops waiting does not stop the run.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_when_nobody_waits_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let run = start(&engine, StartRun::new("slow", json!(null), "jane")).await;
    {
        let mut driving = std::pin::pin!(engine.drive(run));
        tokio::select! {
            biased;
            outcome = &mut driving => panic!("{outcome:?} at once"),
            () = crate::support::sleep_ms(20) => {}
        }
    }
    assert!(matches!(engine.drive(run).await, Err(EngineError::AlreadyDriven { .. })));
    for _ in 0..500 {
        if detail(&engine, run).await.run.state.is_terminal() {
            return;
        }
        crate::support::sleep_ms(10).await;
    }
    panic!("the run did not end");
}

/// What is recorded is immutable in the database itself, whoever writes.
#[tokio::test(flavor = "multi_thread")]
async fn the_database_refuses_to_change_a_result_or_an_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), crate::support::registry()).await;
    let run = start(&engine, StartRun::new("sum", json!([1, 2]), "jane")).await;
    succeeded(engine.drive(run).await.expect("it is driven"));
    let mut other = outsider(folder.path()).await;
    for (statement, reason) in [
        ("UPDATE step SET output = '7'", "a recorded result never changes"),
        ("UPDATE step SET state = 'running'", "a recorded result never changes"),
        ("UPDATE step SET state = 'abandoned'", "a recorded result never changes"),
        ("UPDATE run SET state = 'running'", "a run that ended never changes"),
        ("UPDATE run SET output = '7'", "a run that ended never changes"),
    ] {
        let error = sqlx::query(statement).execute(&mut other).await.expect_err(statement);
        assert!(error.to_string().contains(reason), "{statement}: {error}");
    }
}
