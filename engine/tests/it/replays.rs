//! A run that ended is replayed from one of its steps (DESIGN §2.2, Replay).

mod identities;
mod sections;

use engine::{
    Engine, EngineContext, EngineError, KeyPolicy, Outcome, ReplayFrom, RunDetail, RunFilter, RunId, Start, StartRun,
};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::state::{RunState, StepState};
use serde_json::{Value, json};

use crate::child::{Order, aborts, log, work_registry};
use crate::support::{Log, QUICK, detail, jane, open, outsider, start, succeeded};

fn at(step: &str) -> ReplayFrom {
    ReplayFrom { step: step.to_owned(), input: None, detached: false }
}

async fn replay(engine: &Engine, run: RunId, from: &ReplayFrom) -> RunId {
    match engine.replay(run, from, &jane()).await.expect("it is replayed") {
        Start::Started(started) => started.run_id,
        Start::Busy { holder } => panic!("{holder} holds the key"),
    }
}

async fn driven(engine: &Engine, run: RunId) -> Outcome {
    engine.drive(run).await.expect("it is driven")
}

/// Each step that counts, with who made its result.
fn makers(detail: &RunDetail) -> Vec<(&str, Option<String>)> {
    let kept = detail.steps.iter().filter(|step| step.state != StepState::Abandoned);
    kept.map(|step| (step.label.as_str(), step.carried_from.clone())).collect()
}

/// The labels of the steps whose results were carried over.
fn carried(detail: &RunDetail) -> Vec<&str> {
    detail.steps.iter().filter(|step| step.carried_from.is_some()).map(|step| step.label.as_str()).collect()
}

/// The plan, a line a step: `=` carried over, `+` carried out, and `…` where more follows.
async fn planned(engine: &Engine, run: RunId, from: &ReplayFrom) -> String {
    let plan = engine.plan_replay(run, from).await.expect("it is planned");
    let mark =
        |step: &engine::PlannedStep| format!("{}{}", if step.carried_from.is_some() { '=' } else { '+' }, step.label);
    let mut steps: Vec<_> = plan.steps.iter().map(mark).collect();
    if !plan.is_whole {
        steps.push("…".to_owned());
    }
    steps.join(" ")
}

/// An ended run of `workflow`.
async fn ended(engine: &Engine, workflow: &str, input: Value) -> RunId {
    let run = start(engine, StartRun::new(workflow, input, "joe")).await;
    driven(engine, run).await;
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_before_the_step_is_carried_over_and_the_rest_is_carried_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let begun = StartRun::new("work", json!(null), "joe").key("the key", KeyPolicy::Queue).label("product", "1");
    let origin = start(&engine, begun).await;
    assert_eq!(succeeded(driven(&engine, origin).await), json!([1, 2, 3]));
    for step in ["third", "3"] {
        assert_eq!(planned(&engine, origin, &at(step)).await, "=first =second +third");
    }
    let before = detail(&engine, origin).await;
    let run = replay(&engine, origin, &at("third")).await;
    assert_eq!(succeeded(driven(&engine, run).await), json!([1, 2, 4]), "the third body ran again, and no other");
    assert_eq!(log.lines(), ["first", "second", "third", "third"]);
    let seen = detail(&engine, run).await;
    let made = Some(origin.to_string());
    assert_eq!(makers(&seen), [("first", made.clone()), ("second", made), ("third", None)]);
    assert_eq!((seen.run.origin_run_id, seen.run.origin_step.as_deref()), (Some(origin), Some("third")));
    assert_eq!((seen.run.actor.as_str(), seen.run.reason.as_deref()), ("jane", Some("for the test")));
    assert_eq!(
        (&seen.run.concurrency_key, seen.run.concurrency_policy.as_str()),
        (&Some("the key".to_owned()), "forbid")
    );
    assert_eq!((&seen.run.labels, &seen.run.input), (&before.run.labels, &before.run.input));
    for (old, new) in before.steps.iter().zip(&seen.steps).take(2) {
        assert_eq!((&old.input, &old.output, &old.input_digest), (&new.input, &new.output, &new.input_digest));
        assert_eq!((old.duration_us, &old.activity, new.attempt), (new.duration_us, &new.activity, 1));
    }
    let after = detail(&engine, origin).await;
    assert_eq!((&after.run, &after.steps), (&before.run, &before.steps), "the origin is as it was");
    for audit in [&after.audit, &seen.audit] {
        let rows: Vec<_> =
            audit.iter().map(|row| (row.actor.as_str(), row.action.as_str(), row.reason.as_str())).collect();
        assert_eq!(rows, [("jane", "replay", "for the test")]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_of_a_replay_names_the_run_that_made_each_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let one = ended(&engine, "work", json!(null)).await;
    let two = replay(&engine, one, &at("second")).await;
    assert_eq!(succeeded(driven(&engine, two).await), json!([1, 4, 5]));
    let three = replay(&engine, two, &at("third")).await;
    assert_eq!(succeeded(driven(&engine, three).await), json!([1, 4, 6]));
    let seen = detail(&engine, three).await;
    assert_eq!(makers(&seen), [("first", Some(one.to_string())), ("second", Some(two.to_string())), ("third", None)]);
    assert_eq!(seen.run.origin_run_id, Some(two));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_replayed_is_refused_and_nothing_is_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let origin = ended(&engine, "work", json!(null)).await;
    let open_run = start(&engine, StartRun::new("work", json!(null), "joe")).await;
    let unfit = ReplayFrom { input: Some(json!({"no": "unit"})), ..at("third") };
    for (run, from, code, words) in [
        (origin, at("fourth"), "engine.unknown_step", vec!["fourth", "1 first", "2 second", "3 third"]),
        (origin, at("0"), "engine.unknown_step", vec!["no step"]),
        (open_run, at("first"), "engine.not_ended", vec!["running"]),
        (origin, unfit, "engine.input_refused", vec!["work"]),
    ] {
        let error = engine.replay(run, &from, &jane()).await.expect_err("it is refused");
        let failure = engine_rules::failure::ActivityError::to_failure(&error);
        assert_eq!(failure.code, code);
        for word in words {
            assert!(failure.message.contains(word), "{word:?} is not in {}", failure.message);
        }
        assert!(failure.hint.is_some_and(|hint| hint.contains("jobctl runs")), "{code} says what to do");
    }
    let runs = engine.reader().runs(&RunFilter::default()).await.expect("the runs read");
    assert_eq!(runs.len(), 2);
    assert!(detail(&engine, origin).await.audit.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_does_not_begin_while_another_run_holds_the_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let keyed = || StartRun::new("work", json!(null), "joe").key("the key", KeyPolicy::Forbid);
    let origin = start(&engine, keyed()).await;
    driven(&engine, origin).await;
    let holder = start(&engine, keyed()).await;
    let answer = engine.replay(origin, &at("third"), &jane()).await.expect("it is answered");
    assert_eq!(answer, Start::Busy { holder });
    assert!(detail(&engine, origin).await.audit.is_empty());
    driven(&engine, holder).await;
    let detached = ReplayFrom { detached: true, ..at("third") };
    let run = replay(&engine, origin, &detached).await;
    assert_eq!(detail(&engine, run).await.run.state, RunState::Queued);
    assert_eq!(engine.drain(1).await.expect("the queue is drained"), 1);
    assert_eq!(carried(&detail(&engine, run).await), ["first", "second"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_in_the_middle_of_a_replay_goes_on_with_the_same_carried_results() {
    // Per place, a carried result has two points; the third step is carried out.
    for (workflow, step, points) in [
        (
            "work",
            "third",
            vec![
                ("engine.run_row.after", 1),
                ("engine.result.before", 1),
                ("engine.result.after", 1),
                ("engine.result.before", 2),
                ("engine.result.after", 2),
                ("test.third", 1),
                ("engine.result.before", 3),
                ("engine.result.after", 3),
                ("engine.run_end.before", 1),
            ],
        ),
        (
            "locked",
            "third",
            vec![
                ("engine.result.before", 1),
                ("engine.result.after", 2),
                ("engine.result.before", 3),
                ("engine.result.after", 3),
                ("test.third", 1),
            ],
        ),
    ] {
        for (point, hit) in points {
            let folder = tempfile::tempdir().expect("a folder");
            let log = log(folder.path());
            let engine = open(folder.path(), work_registry(&log)).await;
            let origin = ended(&engine, workflow, json!(null)).await;
            let made = detail(&engine, origin).await;
            engine.close().await;
            aborts(folder.path(), &Order::Replay { step: step.to_owned(), point: point.to_owned(), hit });
            let engine = open(folder.path(), work_registry(&log)).await;
            let [run] = engine.interrupted().await.expect("they are listed")[..] else { panic!("{point} {hit}") };
            let before = detail(&engine, run).await;
            succeeded(driven(&engine, run).await);
            let after = detail(&engine, run).await;
            let outputs = |detail: &RunDetail| -> Vec<_> {
                let steps = detail.steps.iter().filter(|step| step.label != "third");
                steps.map(|step| (step.label.clone(), step.output.clone())).collect()
            };
            assert_eq!(outputs(&after), outputs(&made), "{workflow} {point} {hit}");
            assert!(
                after.steps.iter().all(|step| step.label == "third" || step.carried_from == Some(origin.to_string()))
            );
            for (before, after) in before.steps.iter().zip(&after.steps).filter(|(step, _)| step.carried_from.is_some())
            {
                assert_eq!(before, after, "{workflow} {point} {hit}: what was carried over never changes");
            }
            assert_eq!((log.count("first"), log.count("second")), (1, 1), "{workflow} {point} {hit}");
            let third = after.steps.last().expect("a step");
            // As in any run, what may have been at work when the process died is charged an attempt.
            let died = matches!((point, hit, workflow), ("test.third", ..) | ("engine.result.before", 3, "work"))
                || matches!(
                    (point, hit, workflow),
                    ("engine.result.after", 2, "work") | ("engine.result.after", 3, "locked")
                );
            assert!(died || third.attempt == 1, "{workflow} {point} {hit}: no attempt is charged to what never began");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_before_the_replay_is_recorded_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let origin = ended(&engine, "work", json!(null)).await;
    let point = "engine.run_row.before".to_owned();
    aborts(folder.path(), &Order::Replay { step: "third".to_owned(), point, hit: 1 });
    assert_eq!(engine.reader().runs(&RunFilter::default()).await.expect("the runs read").len(), 1);
    assert!(detail(&engine, origin).await.audit.is_empty());
}

// Definitions that differ from the one that began the run.

const FIRST: StepDef<(), usize> = StepDef::new("first", "work.first", QUICK);
const PROBE: StepDef<(), usize> = StepDef::new("probe", "work.first", QUICK);
const SECOND: StepDef<usize, usize> = StepDef::new("second", "work.second", QUICK);
const THIRD: StepDef<usize, usize> = StepDef::new("third", "work.third", QUICK);

async fn with_a_probe(ctx: &mut EngineContext, _input: ()) -> Result<Vec<usize>, Interrupt> {
    let first = ctx.step(&FIRST, &()).await?;
    let probe = ctx.step(&PROBE, &()).await?;
    let second = ctx.step(&SECOND, &first).await?;
    let third = ctx.step(&THIRD, &second).await?;
    Ok(vec![first, probe, second, third])
}

async fn second_with_another_input(ctx: &mut EngineContext, _input: ()) -> Result<Vec<usize>, Interrupt> {
    let first = ctx.step(&FIRST, &()).await?;
    let second = ctx.step(&SECOND, &(first + 100)).await?;
    let third = ctx.step(&THIRD, &second).await?;
    Ok(vec![first, second, third])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_definition_version_is_older_is_replayed_under_the_newest() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let origin = ended(&engine, "work", json!(null)).await;
    engine.close().await;
    let mut registry = work_registry(&log);
    registry.workflow("work", 2, with_a_probe);
    let engine = open(folder.path(), registry).await;
    assert_eq!(planned(&engine, origin, &at("third")).await, "=first +probe …", "what a probe gives is not known");
    let run = replay(&engine, origin, &at("third")).await;
    assert_eq!(succeeded(driven(&engine, run).await), json!([1, 4, 2, 5]));
    let seen = detail(&engine, run).await;
    assert_eq!((seen.run.version, carried(&seen)), (2, vec!["first", "second"]));
    assert_eq!(log.lines(), ["first", "second", "third", "first", "third"]);
    engine.close().await;
    let mut registry = work_registry(&log);
    registry.workflow("work", 3, second_with_another_input);
    let engine = open(folder.path(), registry).await;
    assert_eq!(planned(&engine, origin, &at("third")).await, "=first +second +third");
    let run = replay(&engine, origin, &at("third")).await;
    assert_eq!(succeeded(driven(&engine, run).await), json!([1, 6, 7]), "carried out anew, and no mismatch");
    assert_eq!(carried(&detail(&engine, run).await), ["first"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn times_ids_waits_and_a_failure_that_was_answered_are_carried_over_byte_for_byte() {
    async fn waits(ctx: &mut EngineContext, _input: ()) -> Result<(i64, String, String, usize), Interrupt> {
        let now = ctx.now_ms().await?;
        let id = ctx.new_id().await?;
        ctx.sleep_until("a while", now + 1).await?;
        let none: Option<String> = ctx.signal("word", Some(now + 2)).await?;
        assert_eq!(none, None);
        let refused: StepDef<(), usize> = StepDef::new("refused", "work.refused", QUICK);
        let Err(Interrupt::Failed(failure)) = ctx.step(&refused, &()).await else {
            return Err(Interrupt::Suspended);
        };
        let failure = serde_json::to_string(&failure).expect("a failure is JSON");
        Ok((now, id.to_string(), failure, ctx.step(&FIRST, &()).await?))
    }
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let mut registry = work_registry(&log);
    registry.workflow("waits", 1, waits);
    let engine = open(folder.path(), registry).await;
    let origin = start(&engine, StartRun::new("waits", json!(null), "joe")).await;
    let one = succeeded(driven(&engine, origin).await);
    let run = replay(&engine, origin, &at("first")).await;
    let two = succeeded(driven(&engine, run).await);
    assert_eq!((&one[0], &one[1], &one[2]), (&two[0], &two[1], &two[2]));
    assert_eq!((&one[3], &two[3]), (&json!(1), &json!(2)));
    assert_eq!(carried(&detail(&engine, run).await), ["now", "new_id", "a while", "word", "refused"]);
}

/// A slow step and another, and a third that cleans up.
async fn cleans_up(ctx: &mut EngineContext, _input: ()) -> Result<usize, Interrupt> {
    crate::child::slow(ctx, ()).await?;
    match ctx.step(&FIRST, &()).await {
        Ok(first) => ctx.step(&SECOND, &first).await,
        Err(interrupt) => {
            ctx.step(&SECOND, &0).await?;
            Err(interrupt)
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_run_was_cancelled_there_is_no_result_to_carry_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let mut registry = work_registry(&log);
    registry.workflow("cleans_up", 1, cleans_up);
    let engine = open(folder.path(), registry).await;
    let origin = start(&engine, StartRun::new("cleans_up", json!(null), "joe")).await;
    let driving = tokio::spawn({
        let engine = engine.clone();
        async move { engine.drive(origin).await.expect("it is driven") }
    });
    crate::support::until("the slow step", || log.count("slow") == 1).await;
    engine.cancel(origin, &jane()).await.expect("it is cancelled");
    assert_eq!(driving.await.expect("no panic"), Outcome::Cancelled);
    let told = detail(&engine, origin).await.steps[1].failure.clone().expect("it was told here");
    assert_eq!((told.code.as_str(), log.lines()), ("engine.cancelled", vec!["slow".to_owned(), "second".to_owned()]));
    let run = replay(&engine, origin, &at("second")).await;
    assert_eq!(succeeded(driven(&engine, run).await), json!(4));
    assert_eq!(carried(&detail(&engine, run).await), ["slow"]);
    assert_eq!(log.lines(), ["slow", "second", "first", "second"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_that_is_gone_carries_nothing_and_the_replay_still_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let origin = ended(&engine, "work", json!(null)).await;
    let run = replay(&engine, origin, &ReplayFrom { detached: true, ..at("third") }).await;
    let mut database = outsider(folder.path()).await;
    sqlx::query("DELETE FROM step WHERE run_no = (SELECT run_no FROM run WHERE run_id = ?)")
        .bind(origin.to_string())
        .execute(&mut database)
        .await
        .expect("its steps go");
    sqlx::query("DELETE FROM run WHERE run_id = ?")
        .bind(origin.to_string())
        .execute(&mut database)
        .await
        .expect("it goes");
    assert_eq!(succeeded(driven(&engine, run).await), json!([4, 5, 6]));
    assert!(matches!(engine.replay(origin, &at("first"), &jane()).await, Err(EngineError::UnknownRun { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_another_owner_took_over_carries_nothing_over_any_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let origin = ended(&engine, "work", json!(null)).await;
    let run = replay(&engine, origin, &at("third")).await;
    let mut database = outsider(folder.path()).await;
    sqlx::query("UPDATE run SET epoch = epoch + 1 WHERE run_id = ?")
        .bind(run.to_string())
        .execute(&mut database)
        .await
        .expect("it is another's");
    assert_eq!(driven(&engine, run).await, Outcome::Fenced);
    assert!(detail(&engine, run).await.steps.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_records_and_carries_out_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let log: Log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let origin = ended(&engine, "work", json!(null)).await;
    let mut events = engine.subscribe();
    assert_eq!(planned(&engine, origin, &at("second")).await, "=first +second +third");
    assert!(events.try_next().is_none(), "nobody hears of it");
    assert_eq!(log.lines(), ["first", "second", "third"]);
    assert_eq!(engine.reader().runs(&RunFilter::default()).await.expect("the runs read").len(), 1);
}
