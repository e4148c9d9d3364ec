//! A parent's process dies.

use engine::{Outcome, RunFilter, RunRow};
use engine_rules::state::RunState;
use serde_json::json;

use super::{kids_of, survivors};
use crate::child::{Order, aborts, log, spawn, work_registry};
use crate::support::{Log, detail, jane, open, succeeded, until};

fn fifty(point: &str, hit: u32) -> Order {
    Order::Run { workflow: "fifty".to_owned(), point: point.to_owned(), hit }
}

fn ends(log: &Log) -> usize {
    log.lines().iter().filter(|line| line.starts_with("end ")).count()
}

/// Each body ran to its end, and again only where its result had not been recorded when its process died.
fn each_as_often_as_allowed(log: &Log, before: &[RunRow]) {
    for kid in 0..50 {
        let row = before.iter().find(|row| row.input == json!(kid));
        let ran = log.count(&format!("end {kid}"));
        let most = match row.map(|row| row.state) {
            Some(RunState::Running | RunState::Waiting) => 2,
            Some(RunState::Succeeded) | None => 1,
            Some(other) => panic!("kid {kid} was {other}"),
        };
        assert!((1..=most).contains(&ran), "kid {kid} ran {ran} times to its end, and at most {most} are allowed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_whose_process_was_killed_goes_on_with_each_child_where_that_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let mut child = spawn(folder.path(), &fifty("never", 1));
    until("it is in the middle", || ends(&log) >= 20).await;
    child.kill().expect("it is killed");
    child.wait().expect("it is dead");
    let engine = open(folder.path(), work_registry(&log)).await;
    let run = engine.interrupted().await.expect("they are listed")[0];
    let before = kids_of(&engine, run).await;
    let live = before.iter().filter(|kid| kid.state == RunState::Running).count();
    assert!(live <= 8, "{live} were at work, with places for eight");
    assert!(before.len() < 50, "it was killed in the middle");
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(50));
    each_as_often_as_allowed(&log, &before);
    let kids = kids_of(&engine, run).await;
    assert_eq!(kids.len(), 50);
    for kid in &kids {
        let taken_over = before.iter().any(|row| row.run_id == kid.run_id && row.state == RunState::Running);
        assert_eq!(kid.epoch, if taken_over { 2 } else { 1 });
    }
    assert_eq!(detail(&engine, run).await.steps.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_while_it_creates_children_starts_none_twice_and_leaves_no_survivor_of_a_cancel() {
    for point in engine::CHILD_CRASH_POINTS.iter().copied() {
        for hit in [1, 2, 4] {
            for cancel in [false, true] {
                let folder = tempfile::tempdir().expect("a folder");
                aborts(folder.path(), &fifty(point, hit));
                let log = log(folder.path());
                let engine = open(folder.path(), work_registry(&log)).await;
                let run = *engine.interrupted().await.expect("they are listed").first().expect("the parent");
                let before = kids_of(&engine, run).await;
                assert_eq!(before.is_empty(), point == "engine.child_rows.before" && hit == 1, "{point} {hit}");
                if !cancel {
                    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(50));
                    each_as_often_as_allowed(&log, &before);
                    assert_eq!(kids_of(&engine, run).await.len(), 50, "{point} {hit}");
                    continue;
                }
                engine.cancel(run, &jane()).await.expect("it is cancelled");
                assert_eq!(engine.drive(run).await.expect("it ended"), Outcome::Cancelled, "{point} {hit}");
                assert_eq!(survivors(&engine).await, [], "{point} {hit}");
                assert_eq!(kids_of(&engine, run).await.len(), before.len(), "none was started after the cancel");
                assert_eq!(engine.interrupted().await.expect("they are listed"), []);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_family_that_died_is_found_once_whoever_takes_which_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    aborts(folder.path(), &fifty("engine.child_rows.after", 3));
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let dead = engine.interrupted().await.expect("they are listed");
    let before = kids_of(&engine, dead[0]).await;
    assert!(dead.len() > 1, "the children are listed too");
    // As a daemon does: each is taken over by itself, and so is the parent, in whatever order.
    let mut flight = tokio::task::JoinSet::new();
    for run in dead.iter().rev().copied() {
        let engine = engine.clone();
        flight.spawn(async move { engine.drive(run).await });
    }
    while let Some(landed) = flight.join_next().await {
        match landed.expect("no panic") {
            Ok(Outcome::Succeeded(_) | Outcome::Fenced) => {}
            // Its parent was faster.
            Err(engine::EngineError::AlreadyDriven { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    each_as_often_as_allowed(&log, &before);
    let runs = engine.reader().runs(&RunFilter::default()).await.expect("the runs read");
    assert!(runs.iter().all(|run| run.state == RunState::Succeeded && run.epoch <= 2));
    assert_eq!(runs.len(), 51);
}
