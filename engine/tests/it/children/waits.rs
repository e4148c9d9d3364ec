//! What a parent waits for: keys, persons, other processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use engine::{Engine, KeyPolicy, Outcome, RunId, StartRun};
use engine_rules::failure::Disposition;
use engine_rules::state::RunState;
use serde_json::json;

use super::{Fan, driving, eventually, kids_of, nursery, start_fan, state_of, states_of};
use crate::support::{Broken, blocked, detail, jane, outsider, sleep_ms, start, succeeded};

/// Kids of at least this number wait for the gate; all are counted as they begin.
async fn gated(folder: &std::path::Path, from: i64) -> (Engine, Arc<AtomicBool>, Arc<AtomicI64>) {
    let (go, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI64::new(0)));
    let (gate, count) = (go.clone(), begun.clone());
    let engine = nursery(folder, move |_ctx, kid| {
        count.fetch_add(1, Ordering::SeqCst);
        let gate = gate.clone();
        async move {
            while kid >= from && !gate.load(Ordering::SeqCst) {
                sleep_ms(2).await;
            }
            Ok(kid)
        }
    })
    .await;
    (engine, go, begun)
}

/// The process that works on `run` is taken for dead: nobody holds its lock any more.
async fn looks_dead(folder: &std::path::Path, engine: &Engine, run: RunId) {
    let owner = detail(engine, run).await.run.owner.expect("an owner").owner_id;
    let lock = folder.join("owners").join(owner);
    std::fs::remove_file(&lock).expect("its lock is there");
    std::fs::write(&lock, "").expect("a lock that nobody holds");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_in_line_behind_a_foreign_run_keeps_nobody_from_working_and_no_stranger_takes_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (engine, go, _) = gated(folder.path(), 100).await;
    let holds = StartRun::new("kid", json!(100), "jane").key("the key", KeyPolicy::Forbid);
    let foreign = start(&engine, holds).await;
    let holding = driving(&engine, foreign);
    // One at a time, and the first two stand in line: for the foreign run, and for each other.
    let fan = Fan::of(0..6, 1).key(0, "the key").key(1, "the key");
    let run = start(&engine, start_fan(&fan)).await;
    let parent = driving(&engine, run);
    eventually("the others ended", || async {
        let states = states_of(&engine, run).await;
        states.len() == 6 && states[2..].iter().all(|(_, state)| *state == RunState::Succeeded)
    })
    .await;
    assert_eq!(states_of(&engine, run).await[..2], [(0, RunState::Queued), (1, RunState::Queued)]);
    assert_eq!(engine.drain(8).await.expect("the queue drains"), 0);
    go.store(true, Ordering::SeqCst);
    assert_eq!(succeeded(holding.await.expect("no panic")), json!(100));
    // Its parent lives, so that nobody else takes it, now that its key is free.
    let ends = succeeded(parent.await.expect("no panic"));
    assert_eq!(ends, json!((0..6).map(|kid| json!({ "succeeded": kid })).collect::<Vec<_>>()));
    let kids = kids_of(&engine, run).await;
    assert!(kids[0].ended_at_ms <= kids[1].started_at_ms, "one after the other");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_whose_turn_comes_while_no_place_is_free_is_its_parents_until_that_stops() {
    let folder = tempfile::tempdir().expect("a folder");
    let (engine, go, begun) = gated(folder.path(), 1).await;
    let holds = StartRun::new("kid", json!(0), "jane").key("the key", KeyPolicy::Forbid);
    let foreign = start(&engine, holds).await;
    // The first stands in line, and the second has the only place.
    let run = start(&engine, start_fan(&Fan::of(0..2, 1).key(0, "the key"))).await;
    let parent = driving(&engine, run);
    crate::support::until("the second is at work", || begun.load(Ordering::SeqCst) == 1).await;
    assert_eq!(succeeded(engine.drive(foreign).await.expect("it is driven")), json!(0));
    assert_eq!(engine.drain(8).await.expect("the queue drains"), 0, "the limit holds, although the key is free");
    sleep_ms(600).await;
    assert_eq!(states_of(&engine, run).await, [(0, RunState::Queued), (1, RunState::Running)]);

    // A parent that a person holds must not hold up those who stand in line behind its child.
    engine.pause(run, &jane()).await.expect("it is paused");
    assert_eq!(parent.await.expect("no panic"), Outcome::Paused);
    assert_eq!(engine.drain(8).await.expect("the queue drains"), 1);
    go.store(true, Ordering::SeqCst);
    engine.resume(run, &jane()).await.expect("it is resumed");
    let ends = succeeded(engine.drive(run).await.expect("it is driven"));
    assert_eq!(ends, json!([{ "succeeded": 0 }, { "succeeded": 1 }]));
    assert_eq!(begun.load(Ordering::SeqCst), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn children_of_one_key_run_one_after_the_other_in_their_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let (now, most) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let seen = (now.clone(), most.clone());
    let engine = nursery(folder.path(), move |_ctx, kid| {
        let (now, most) = seen.clone();
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            sleep_ms(3).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(kid)
        }
    })
    .await;
    let fan = (0..30).fold(Fan::of(0..30, 8), |fan, kid| fan.key(kid, "the key"));
    let run = start(&engine, start_fan(&fan)).await;
    let ends = succeeded(engine.drive(run).await.expect("it is driven"));
    assert_eq!(ends.as_array().map(Vec::len), Some(30));
    assert_eq!(most.load(Ordering::SeqCst), 1);
    let starts: Vec<_> = kids_of(&engine, run).await.iter().map(|kid| kid.started_at_ms).collect();
    assert!(starts.is_sorted(), "{starts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_children_free_their_places_and_one_resume_of_the_parent_lets_all_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let mended = Arc::new(AtomicBool::new(false));
    let (flag, bodies) = (mended.clone(), Arc::new(AtomicI64::new(0)));
    let count = bodies.clone();
    let engine = nursery(folder.path(), move |_ctx, kid| {
        count.fetch_add(1, Ordering::SeqCst);
        let mended = flag.load(Ordering::SeqCst);
        async move { if kid < 12 && !mended { Err(Broken("the key is lost", Disposition::Operator)) } else { Ok(kid) } }
    })
    .await;
    // The first twelve block, with places for two.
    let run = start(&engine, start_fan(&Fan::of(0..20, 2))).await;
    let failure = blocked(engine.drive(run).await.expect("it is driven"));
    assert_eq!(failure.code, "engine.child_blocked");
    assert!(failure.message.starts_with("12 of the 20 children of kids are blocked\nchild 0, run "), "{failure}");
    assert!(failure.message.contains("test.broken: the key is lost"), "{failure}");
    assert!(failure.message.ends_with("and 2 more: jobctl runs list --in blocked"), "{failure}");
    assert!(failure.hint.as_deref().is_some_and(|hint| hint.contains("jobctl runs resume")), "{:?}", failure.hint);
    let seen = detail(&engine, run).await;
    assert_eq!((seen.run.state, seen.run.failed_step.as_deref()), (RunState::Blocked, Some("kids")));
    let counts: Vec<_> = seen.children.by_state.iter().map(|(state, count)| (*state, *count)).collect();
    assert_eq!(counts, [(RunState::Blocked, 12), (RunState::Succeeded, 8)]);
    assert_eq!(seen.children.not_succeeded.len(), 12);

    // Resumed without being mended it is blocked again, by all of them.
    engine.resume(run, &jane()).await.expect("it is resumed");
    let again = blocked(engine.drive(run).await.expect("it is driven"));
    assert_eq!(again.code, "engine.child_blocked");
    assert_eq!(bodies.load(Ordering::SeqCst), 20 + 12);

    mended.store(true, Ordering::SeqCst);
    engine.resume(run, &jane()).await.expect("it is resumed");
    let ends = succeeded(engine.drive(run).await.expect("it is driven"));
    assert_eq!(ends, json!((0..20).map(|kid| json!({ "succeeded": kid })).collect::<Vec<_>>()));
    assert_eq!(bodies.load(Ordering::SeqCst), 20 + 12 + 12);
    let first = kids_of(&engine, run).await[0].run_id;
    let audit: Vec<_> = detail(&engine, first).await.audit;
    assert_eq!(audit.len(), 2);
    assert_eq!(
        (audit[1].action.as_str(), audit[1].actor.as_str(), audit[1].reason.as_str()),
        ("resume", "jane", "for the test")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_child_that_is_resumed_by_itself_is_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let (go, mended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (gate, flag) = (go.clone(), mended.clone());
    let engine = nursery(folder.path(), move |_ctx, kid| {
        let (gate, mended) = (gate.clone(), flag.load(Ordering::SeqCst));
        async move {
            if kid == 0 && !mended {
                return Err(Broken("the key is lost", Disposition::Operator));
            }
            while kid == 1 && !gate.load(Ordering::SeqCst) {
                sleep_ms(2).await;
            }
            Ok(kid)
        }
    })
    .await;
    let run = start(&engine, start_fan(&Fan::of(0..2, 2))).await;
    let parent = driving(&engine, run);
    let expected = [(0, RunState::Blocked), (1, RunState::Running)];
    eventually("one is blocked", || async { states_of(&engine, run).await == expected }).await;
    mended.store(true, Ordering::SeqCst);
    let first = kids_of(&engine, run).await[0].run_id;
    engine.resume(first, &jane()).await.expect("it is resumed");
    assert_eq!(succeeded(engine.drive(first).await.expect("it is driven")), json!(0));
    go.store(true, Ordering::SeqCst);
    assert_eq!(succeeded(parent.await.expect("no panic")), json!([{ "succeeded": 0 }, { "succeeded": 1 }]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_parent_starts_no_further_child_and_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let (engine, go, begun) = gated(folder.path(), 0).await;
    let run = start(&engine, start_fan(&Fan::of(0..10, 3))).await;
    let parent = driving(&engine, run);
    crate::support::until("three began", || begun.load(Ordering::SeqCst) == 3).await;
    engine.pause(run, &jane()).await.expect("it is paused");
    assert_eq!(parent.await.expect("no panic"), Outcome::Paused);
    assert_eq!(state_of(&engine, run).await, RunState::Paused);
    go.store(true, Ordering::SeqCst);
    eventually("those at work ended", || async {
        kids_of(&engine, run).await.iter().all(|kid| kid.state == RunState::Succeeded)
    })
    .await;
    sleep_ms(30).await;
    assert_eq!(kids_of(&engine, run).await.len(), 3);
    engine.resume(run, &jane()).await.expect("it is resumed");
    let ends = succeeded(engine.drive(run).await.expect("it is driven"));
    assert_eq!(ends, json!((0..10).map(|kid| json!({ "succeeded": kid })).collect::<Vec<_>>()));
    assert_eq!(begun.load(Ordering::SeqCst), 10, "each body once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_that_is_resumed_while_its_children_still_work_does_not_begin_them_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let (engine, go, begun) = gated(folder.path(), 0).await;
    let run = start(&engine, start_fan(&Fan::of(0..5, 3))).await;
    let parent = driving(&engine, run);
    crate::support::until("three began", || begun.load(Ordering::SeqCst) == 3).await;
    engine.pause(run, &jane()).await.expect("it is paused");
    assert_eq!(parent.await.expect("no panic"), Outcome::Paused);
    engine.resume(run, &jane()).await.expect("it is resumed");
    let parent = driving(&engine, run);
    sleep_ms(50).await;
    assert_eq!(kids_of(&engine, run).await.len(), 3, "those at work have their places");
    go.store(true, Ordering::SeqCst);
    succeeded(parent.await.expect("no panic"));
    assert_eq!(begun.load(Ordering::SeqCst), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_ends_in_order_gives_the_whole_family_back_and_no_attempt_is_charged() {
    let folder = tempfile::tempdir().expect("a folder");
    let (engine, go, begun) = gated(folder.path(), 0).await;
    let run = start(&engine, start_fan(&Fan::of(0..10, 3))).await;
    let parent = driving(&engine, run);
    crate::support::until("three began", || begun.load(Ordering::SeqCst) == 3).await;
    engine.begin_drain();
    sleep_ms(30).await;
    assert!(!parent.is_finished(), "its children are still at work here");
    go.store(true, Ordering::SeqCst);
    assert_eq!(parent.await.expect("no panic"), Outcome::Released);
    let states = states_of(&engine, run).await;
    assert_eq!(states.len(), 3, "{states:?}");
    engine.close().await;

    let (engine, go, begun) = gated(folder.path(), 0).await;
    go.store(true, Ordering::SeqCst);
    assert_eq!(engine.interrupted().await.expect("they are listed").first(), Some(&run));
    let ends = succeeded(engine.drive(run).await.expect("it is driven"));
    assert_eq!(ends.as_array().map(Vec::len), Some(10));
    assert_eq!(begun.load(Ordering::SeqCst), 7, "what was recorded is not done again");
    for kid in kids_of(&engine, run).await {
        assert_eq!(detail(&engine, kid.run_id).await.steps[0].attempt, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_another_process_works_on_is_waited_for_and_taken_over_when_that_dies() {
    let folder = tempfile::tempdir().expect("a folder");
    let mended = Arc::new(AtomicBool::new(false));
    let flag = mended.clone();
    let engine = nursery(folder.path(), move |_ctx, kid| {
        let mended = flag.load(Ordering::SeqCst);
        async move {
            match kid {
                0 if !mended => Err(Broken("the key is lost", Disposition::Operator)),
                _ => Ok(kid),
            }
        }
    })
    .await;
    let run = start(&engine, start_fan(&Fan::of(0..3, 1))).await;
    assert_eq!(blocked(engine.drive(run).await.expect("it is driven")).code, "engine.child_blocked");
    let first = kids_of(&engine, run).await[0].run_id;

    // Another process lets the child go on, and then this one the parent.
    let (other, _, begun) = gated(folder.path(), 0).await;
    other.resume(first, &jane()).await.expect("it is resumed");
    let at_work = driving(&other, first);
    crate::support::until("it is at work there", || begun.load(Ordering::SeqCst) == 1).await;
    mended.store(true, Ordering::SeqCst);
    engine.resume(run, &jane()).await.expect("it is resumed");
    let parent = driving(&engine, run);
    sleep_ms(700).await;
    assert_eq!(states_of(&engine, run).await[0], (0, RunState::Running), "it is not taken from the living");
    assert!(!parent.is_finished());

    at_work.abort();
    looks_dead(folder.path(), &engine, first).await;
    let ends = succeeded(parent.await.expect("no panic"));
    assert_eq!(ends, json!([{ "succeeded": 0 }, { "succeeded": 1 }, { "succeeded": 2 }]));
    let seen = detail(&engine, first).await;
    assert_eq!(seen.steps[0].attempts.iter().filter(|attempt| attempt.outcome == "crashed").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_that_was_taken_over_starts_no_child_any_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let (zombie, go_there, begun_there) = gated(folder.path(), 0).await;
    let run = start(&zombie, start_fan(&Fan::of(0..6, 2))).await;
    let old = driving(&zombie, run);
    crate::support::until("two are at work", || begun_there.load(Ordering::SeqCst) == 2).await;
    let (engine, go, begun) = gated(folder.path(), 0).await;
    looks_dead(folder.path(), &engine, run).await;
    let new = driving(&engine, run);
    crate::support::until("they were taken over", || begun.load(Ordering::SeqCst) == 2).await;
    // The zombie's children end, are fenced, and leave it places for others.
    go_there.store(true, Ordering::SeqCst);
    crate::support::until("the zombie sees it", || old.is_finished()).await;
    assert_eq!(old.await.expect("no panic"), Outcome::Fenced);
    assert_eq!(begun_there.load(Ordering::SeqCst), 2);
    assert_eq!(kids_of(&engine, run).await.len(), 2);
    go.store(true, Ordering::SeqCst);
    let ends = succeeded(new.await.expect("no panic"));
    assert_eq!(ends, json!((0..6).map(|kid| json!({ "succeeded": kid })).collect::<Vec<_>>()));
    assert_eq!(begun.load(Ordering::SeqCst), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_that_was_taken_over_while_its_children_ended_records_no_further_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (zombie, go, begun) = gated(folder.path(), 0).await;
    let run = start(&zombie, start_fan(&Fan::of(0..6, 2))).await;
    let old = driving(&zombie, run);
    crate::support::until("two are at work", || begun.load(Ordering::SeqCst) == 2).await;
    let (engine, go_here, _) = gated(folder.path(), 0).await;
    looks_dead(folder.path(), &engine, run).await;
    engine.take_over(run).await.expect("it is taken over");
    // The children are still the zombie's: they end, and leave it places for others.
    go.store(true, Ordering::SeqCst);
    assert_eq!(old.await.expect("no panic"), Outcome::Fenced);
    assert_eq!(kids_of(&engine, run).await.len(), 2, "what it meant to start came too late");
    go_here.store(true, Ordering::SeqCst);
    let ends = succeeded(engine.drive(run).await.expect("it is driven"));
    assert_eq!(ends.as_array().map(Vec::len), Some(6));
    assert_eq!(begun.load(Ordering::SeqCst), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_was_removed_is_not_started_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let bodies = Arc::new(AtomicI64::new(0));
    let count = bodies.clone();
    let engine = nursery(folder.path(), move |_ctx, kid| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { if kid == 3 { Err(Broken("a person must look", Disposition::Operator)) } else { Ok(kid) } }
    })
    .await;
    let run = start(&engine, start_fan(&Fan::of(0..4, 2))).await;
    assert_eq!(blocked(engine.drive(run).await.expect("it is driven")).code, "engine.child_blocked");
    let second = kids_of(&engine, run).await[1].run_id;
    let mut other = outsider(folder.path()).await;
    let delete = || sqlx::query("DELETE FROM run WHERE run_id = ?").bind(second.to_string());
    let error = delete().execute(&mut other).await.expect_err("its parent has not ended");
    assert!(error.to_string().contains("kept until its parent has ended"), "{error}");

    sqlx::query("DROP TRIGGER run_child_is_kept").execute(&mut other).await.expect("somebody who knows better");
    delete().execute(&mut other).await.expect("it is gone");
    engine.resume(run, &jane()).await.expect("it is resumed");
    let failure = blocked(engine.drive(run).await.expect("it is driven"));
    assert_eq!(failure.code, "engine.children_missing");
    assert!(failure.message.starts_with("of the children of kids 1 "), "{failure}");
    assert_eq!(bodies.load(Ordering::SeqCst), 4);
}
