//! A person ends a family.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use engine::{EngineError, Outcome, StartRun};
use engine_rules::failure::Disposition;
use engine_rules::state::RunState;
use serde_json::json;

use super::{Fan, driving, eventually, kids_of, nursery, start_fan, state_of, states_of, survivors};
use crate::child::log;
use crate::support::{Broken, detail, jane, open, outsider, registry, sleep_ms, start, succeeded};

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_grandparent_ends_after_all_that_came_of_it_and_each_cleans_up() {
    for elsewhere in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let bodies = Arc::new(AtomicI64::new(0));
        let count = bodies.clone();
        let engine = nursery(folder.path(), move |ctx, _kid| {
            count.fetch_add(1, Ordering::SeqCst);
            async move {
                ctx.cancel.cancelled().await;
                Err(Broken("stopped", Disposition::Retry))
            }
        })
        .await;
        let run = start(&engine, StartRun::new("tree", json!(2), "jane")).await;
        let grandparent = driving(&engine, run);
        crate::support::until("the leaves are at work", || bodies.load(Ordering::SeqCst) == 4).await;
        if elsewhere {
            open(folder.path(), registry()).await.cancel(run, &jane()).await.expect("it is cancelled");
        } else {
            engine.cancel(run, &jane()).await.expect("it is cancelled");
        }
        assert_eq!(grandparent.await.expect("no panic"), Outcome::Cancelled);
        let cleaned = log(folder.path()).lines();
        let expected: Vec<_> = [vec!["clean tree 0"; 4], vec!["clean tree 1"; 2], vec!["clean tree 2"]].concat();
        let mut in_order = cleaned.clone();
        in_order.sort();
        assert_eq!(in_order, expected);
        assert_eq!(cleaned.last().map(String::as_str), Some("clean tree 2"), "the children first: {cleaned:?}");
        assert_eq!(survivors(&engine).await, []);
        let seen = detail(&engine, run).await;
        let code = seen.steps[0].failure.as_ref().map(|failure| failure.code.as_str());
        assert_eq!(code, Some("engine.cancelled"));
        assert_eq!(seen.children.by_state.into_iter().collect::<Vec<_>>(), [(RunState::Cancelled, 2)]);
        let branch = kids_of(&engine, run).await[0].run_id;
        assert_eq!(detail(&engine, branch).await.children.total(), 2, "the third was never started");
        sleep_ms(50).await;
        assert_eq!(bodies.load(Ordering::SeqCst), 4, "no body began after the cancel");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_during_the_creation_of_children_leaves_no_survivor() {
    // At another moment each time; from this process, and from another one.
    for round in 0..16_u64 {
        let folder = tempfile::tempdir().expect("a folder");
        let engine = nursery(folder.path(), |_ctx, kid| async move {
            sleep_ms(u64::try_from(kid % 3).expect("a delay")).await;
            Ok(kid)
        })
        .await;
        let other = open(folder.path(), registry()).await;
        // The database itself tells of a child that is recorded after its parent was cancelled.
        let mut outside = outsider(folder.path()).await;
        for statement in [
            "CREATE TABLE late (run_id TEXT)",
            "CREATE TRIGGER see AFTER INSERT ON run WHEN EXISTS (SELECT 1 FROM run p WHERE p.run_id = NEW.parent_run_id \
             AND p.cancel_requested_at_ms IS NOT NULL) BEGIN INSERT INTO late VALUES (NEW.run_id); END",
        ] {
            sqlx::query(statement).execute(&mut outside).await.expect("the table");
        }
        let run = start(&engine, start_fan(&Fan::of(0..2_000, 16))).await;
        let parent = tokio::spawn({
            let engine = engine.clone();
            async move { engine.drive(run).await }
        });
        sleep_ms(4 * round).await;
        let canceller = if round % 2 == 0 { &engine } else { &other };
        canceller.cancel(run, &jane()).await.unwrap_or_else(|error| panic!("round {round}: {error:?}"));
        match parent.await.expect("no panic") {
            Ok(outcome) => assert_eq!(outcome, Outcome::Cancelled, "round {round}"),
            // The cancel came before the run began here, and carries it out to its end.
            Err(EngineError::AlreadyDriven { .. }) => {
                eventually("it ended", || async { state_of(&engine, run).await == RunState::Cancelled }).await;
            }
            Err(error) => panic!("round {round}: {error:?}"),
        }
        assert_eq!(survivors(&engine).await, [], "round {round}");
        let kids = kids_of(&engine, run).await;
        let begun = kids.len();
        let ended = |state| kids.iter().filter(|kid| kid.state == state).count();
        assert_eq!(ended(RunState::Succeeded) + ended(RunState::Cancelled), begun, "round {round}");
        let late: Vec<String> =
            sqlx::query_scalar("SELECT run_id FROM late").fetch_all(&mut outside).await.expect("those that were late");
        assert!(late.is_empty(), "round {round}: {late:?}");
        sleep_ms(20).await;
        assert_eq!(kids_of(&engine, run).await.len(), begun, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_parent_ends_also_the_children_that_a_person_holds_and_those_in_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = nursery(folder.path(), |ctx, kid| async move {
        match kid {
            0 => Err(Broken("a person must look", Disposition::Operator)),
            _ => {
                ctx.cancel.cancelled().await;
                Err(Broken("stopped", Disposition::Retry))
            }
        }
    })
    .await;
    let held = StartRun::new("kid", json!(9), "jane").key("the key", engine::KeyPolicy::Forbid);
    let foreign = start(&engine, held).await;
    let holding = driving(&engine, foreign);
    let run = start(&engine, start_fan(&Fan::of(0..4, 4).key(1, "the key"))).await;
    let parent = driving(&engine, run);
    let expected = [(0, RunState::Blocked), (1, RunState::Queued), (2, RunState::Running), (3, RunState::Running)];
    eventually("they stand so", || async { states_of(&engine, run).await == expected }).await;
    engine.cancel(run, &jane()).await.expect("it is cancelled");
    assert_eq!(parent.await.expect("no panic"), Outcome::Cancelled);
    assert!(kids_of(&engine, run).await.iter().all(|kid| kid.state == RunState::Cancelled));
    let cleaned = log(folder.path()).lines();
    assert!(cleaned.contains(&"clean kid 0".to_owned()), "{cleaned:?}");
    assert!(!cleaned.contains(&"clean kid 1".to_owned()), "it never began");
    assert_eq!(state_of(&engine, foreign).await, RunState::Running, "it is no child");
    engine.cancel(foreign, &jane()).await.expect("it is cancelled");
    holding.await.expect("no panic");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_a_person_cancels_ends_alone_and_its_parent_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let go = Arc::new(AtomicBool::new(false));
    let gate = go.clone();
    let engine = nursery(folder.path(), move |ctx, kid| {
        let gate = gate.clone();
        async move {
            while !gate.load(Ordering::SeqCst) {
                if ctx.cancel.is_cancelled() {
                    return Err(Broken("stopped", Disposition::Retry));
                }
                sleep_ms(2).await;
            }
            Ok(kid)
        }
    })
    .await;
    let run = start(&engine, start_fan(&Fan::of(0..3, 3))).await;
    let parent = driving(&engine, run);
    eventually("they began", || async { kids_of(&engine, run).await.len() == 3 }).await;
    let second = kids_of(&engine, run).await[1].run_id;
    engine.cancel(second, &jane()).await.expect("it is cancelled");
    eventually("it ended", || async { state_of(&engine, second).await == RunState::Cancelled }).await;
    go.store(true, Ordering::SeqCst);
    let ends = succeeded(parent.await.expect("no panic"));
    assert_eq!(ends, json!([{ "succeeded": 0 }, "cancelled", { "succeeded": 2 }]));

    go.store(false, Ordering::SeqCst);
    let run = start(&engine, StartRun::new("one", json!(1), "jane")).await;
    let parent = driving(&engine, run);
    eventually("it began", || async { kids_of(&engine, run).await.len() == 1 }).await;
    let only = kids_of(&engine, run).await[0].run_id;
    engine.cancel(only, &jane()).await.expect("it is cancelled");
    let outcome = parent.await.expect("no panic");
    let Outcome::Failed { failure, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.code, "engine.child_cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_whose_child_hears_of_the_cancel_first_is_cancelled_and_not_failed() {
    // The child is at work in the process that cancels; its parent learns of either in one or the other order.
    for round in 0..8 {
        let folder = tempfile::tempdir().expect("a folder");
        let engine =
            nursery(
                folder.path(),
                |_ctx, _kid| async move { Err(Broken("a person must look", Disposition::Operator)) },
            )
            .await;
        let begun = Arc::new(AtomicBool::new(false));
        let flag = begun.clone();
        let other = nursery(folder.path(), move |ctx, _kid| {
            flag.store(true, Ordering::SeqCst);
            async move {
                ctx.cancel.cancelled().await;
                Err(Broken("stopped", Disposition::Retry))
            }
        })
        .await;
        let run = start(&engine, StartRun::new("one", json!(1), "jane")).await;
        assert!(matches!(engine.drive(run).await, Ok(Outcome::Blocked { .. })), "round {round}");
        let child = kids_of(&engine, run).await[0].run_id;
        other.resume(child, &jane()).await.expect("it is resumed");
        let at_work = driving(&other, child);
        crate::support::until("it is at work there", || begun.load(Ordering::SeqCst)).await;
        engine.resume(run, &jane()).await.expect("it is resumed");
        let parent = driving(&engine, run);
        eventually("it waits", || async { state_of(&engine, run).await == RunState::Waiting }).await;
        sleep_ms(60 * round).await;
        other.cancel(run, &jane()).await.expect("it is cancelled");
        assert_eq!(at_work.await.expect("no panic"), Outcome::Cancelled, "round {round}");
        assert_eq!(parent.await.expect("no panic"), Outcome::Cancelled, "round {round}");
        let cleaned = log(folder.path()).lines();
        assert_eq!(cleaned, ["clean kid 1", "clean one"], "round {round}");
    }
}
