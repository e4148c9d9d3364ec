//! What is bounded: history, memory, how many are at work, how much is recorded; and what is refused.

use engine::{EngineContext, Outcome, Registry, StartRun, SystemClock};
use engine_rules::clock::Clock as _;
use engine_rules::context::{ChildDef, ChildEnd, ChildStart, Context, Interrupt};
use engine_rules::failure::{Disposition, Failure};
use engine_rules::state::{RunState, StepState};
use serde_json::json;
use sqlx::Row as _;

use super::{Fan, KIDS, kids_of, nursery, start_fan};
use crate::support::{Broken, blocked, detail, jane, open, outsider, start, succeeded};

fn failed(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed { failure, .. } => failure,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_of_seven_thousand_children_has_one_step_and_never_more_at_work_than_its_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = nursery(folder.path(), |_ctx, kid| async move { Ok(kid) }).await;
    // The database itself counts, at each child that is recorded, how many have not ended.
    let mut other = outsider(folder.path()).await;
    for statement in [
        "CREATE TABLE seen (most INTEGER)",
        "INSERT INTO seen VALUES (0)",
        "CREATE TRIGGER see AFTER INSERT ON run WHEN NEW.parent_index IS NOT NULL BEGIN UPDATE seen SET most = \
         max(most, (SELECT count(*) FROM run WHERE parent_index IS NOT NULL AND parent_run_id = NEW.parent_run_id \
         AND parent_position = '1' AND state IN ('queued', 'running', 'waiting', 'paused', 'blocked'))); END",
    ] {
        sqlx::query(statement).execute(&mut other).await.expect("the table");
    }
    let clock = SystemClock::new();
    let run = start(&engine, start_fan(&Fan::of(0..7_000, 16))).await;
    let ends = succeeded(engine.drive(run).await.expect("it is driven"));
    println!("7,000 children took {} ms", clock.monotonic_us() / 1_000);
    let ends = ends.as_array().expect("a list");
    assert_eq!(ends.len(), 7_000);
    assert!(ends.iter().zip(0..).all(|(end, kid)| *end == json!({ "succeeded": kid })));
    let seen = detail(&engine, run).await;
    assert_eq!(seen.steps.len(), 1, "the history does not grow with the children");
    assert_eq!(seen.children.by_state.into_iter().collect::<Vec<_>>(), [(RunState::Succeeded, 7_000)]);
    assert_eq!(seen.children.not_succeeded, []);
    let most: i64 = sqlx::query("SELECT most FROM seen").fetch_one(&mut other).await.expect("the count").get(0);
    assert!((2..=16).contains(&most), "{most} were live at once");
}

const TEXTS: ChildDef<String, String> = ChildDef::new("texts", "text");

/// A child for each size, which gives a text as long as its input.
async fn texts<C: Context>(ctx: &mut C, (sizes, padding): (Vec<usize>, usize)) -> Result<usize, Interrupt> {
    let starts: Vec<_> = sizes.iter().map(|size| ChildStart::new(format!("{size} {}", "i".repeat(padding)))).collect();
    Ok(ctx.fan_out(&TEXTS, &starts, 4).await?.len())
}

async fn text<C: Context>(_ctx: &mut C, input: String) -> Result<String, Interrupt> {
    let size = input.split(' ').next().and_then(|size| size.parse().ok()).expect("a size");
    Ok("o".repeat(size))
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_and_ends_over_the_limit_are_refused_with_the_size_and_the_way_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut registry = Registry::new();
    registry.workflow("texts", 1, texts::<EngineContext>);
    registry.workflow("text", 1, text::<EngineContext>);
    let engine = open(folder.path(), registry).await;

    // 64 MiB in eight inputs: no child starts, and none of it is in the journal.
    let run = start(&engine, StartRun::new("texts", json!([vec![1; 8], 8 * 1024 * 1024]), "jane")).await;
    let failure = failed(engine.drive(run).await.expect("it is driven"));
    assert_eq!(failure.code, "engine.payload_too_large");
    assert!(failure.message.contains("8 children of texts") && failure.message.contains("6710"), "{}", failure.message);
    assert!(failure.hint.as_deref().is_some_and(|hint| hint.contains("several fan-outs")), "{:?}", failure.hint);
    let seen = detail(&engine, run).await;
    assert_eq!((seen.steps[0].state, &seen.steps[0].input), (StepState::Failed, &None));
    assert_eq!(kids_of(&engine, run).await, []);

    // Each end fits, all of them together do not.
    let run = start(&engine, StartRun::new("texts", json!([vec![150_000; 7], 0]), "jane")).await;
    let failure = failed(engine.drive(run).await.expect("it is driven"));
    assert_eq!(failure.code, "engine.payload_too_large");
    assert!(failure.message.contains("1050120 bytes"), "{}", failure.message);
    assert!(failure.hint.as_deref().is_some_and(|hint| hint.contains("path and digest")), "{:?}", failure.hint);
    assert!(kids_of(&engine, run).await.iter().all(|kid| kid.state == RunState::Succeeded), "each has its own");

    let run = start(&engine, StartRun::new("texts", json!([vec![149_000; 7], 0]), "jane")).await;
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(7));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_more_than_a_hundred_failures_the_later_ones_keep_their_code_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let long: &'static str = Box::leak("x".repeat(9_000).into_boxed_str());
    let engine =
        nursery(folder.path(), move |_ctx, _kid| async move { Err(Broken(long, Disposition::Terminal)) }).await;
    let run = start(&engine, start_fan(&Fan::of(0..130, 8))).await;
    let ends = succeeded(engine.drive(run).await.expect("it is driven"));
    let ends: Vec<ChildEnd<i64>> = serde_json::from_value(ends).expect("ends");
    let messages: Vec<usize> = ends
        .iter()
        .map(|end| match end {
            ChildEnd::Failed(failure) => {
                assert_eq!(failure.code, "test.broken");
                failure.message.len()
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(messages[..100].iter().all(|bytes| (1_900..=2_000).contains(bytes)), "{messages:?}");
    assert!(messages[100..].iter().all(|bytes| *bytes == 0), "{messages:?}");
    let kid = &kids_of(&engine, run).await[129];
    assert_eq!(kid.failure.as_ref().map(|failure| failure.message.len()), Some(9_000), "its own row has it all");
}

async fn in_section<C: Context>(ctx: &mut C, _input: ()) -> Result<i64, Interrupt> {
    ctx.begin_section("locked").await?;
    let gave = ctx.child(&KIDS, &ChildStart::new(1)).await?;
    ctx.end_section().await?;
    Ok(gave)
}

async fn in_clean_up<C: Context>(ctx: &mut C, _input: ()) -> Result<i64, Interrupt> {
    match ctx.sleep_until("for_long", i64::MAX).await {
        Err(Interrupt::Cancelled) => ctx.child(&KIDS, &ChildStart::new(1)).await,
        other => other.map(|()| 0),
    }
}

async fn unknown<C: Context>(ctx: &mut C, _input: ()) -> Result<i64, Interrupt> {
    let nobody: ChildDef<i64, i64> = ChildDef::new("nobody", "nobody");
    ctx.child(&nobody, &ChildStart::new(1)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn children_that_could_outlive_their_parents_lock_or_end_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut registry = Registry::new();
    registry.workflow("in_section", 1, in_section::<EngineContext>);
    registry.workflow("in_clean_up", 1, in_clean_up::<EngineContext>);
    registry.workflow("unknown", 1, unknown::<EngineContext>);
    registry.workflow("kid", 1, super::kid::<EngineContext>);
    let engine = open(folder.path(), registry).await;

    let run = start(&engine, StartRun::new("in_section", json!(null), "jane")).await;
    let failure = blocked(engine.drive(run).await.expect("it is driven"));
    assert_eq!(failure.code, "engine.children_in_section");
    assert_eq!(kids_of(&engine, run).await, []);

    let run = start(&engine, StartRun::new("in_clean_up", json!(null), "jane")).await;
    let driving = super::driving(&engine, run);
    super::eventually("it waits", || async { super::state_of(&engine, run).await == RunState::Waiting }).await;
    engine.cancel(run, &jane()).await.expect("it is cancelled");
    assert_eq!(driving.await.expect("no panic"), Outcome::Cancelled);
    let seen = detail(&engine, run).await;
    let code = seen.run.failure.map(|failure| failure.code);
    assert_eq!(code.as_deref(), Some("engine.children_in_clean_up"), "what the clean-up came to");
    assert_eq!(kids_of(&engine, run).await, []);

    let run = start(&engine, StartRun::new("unknown", json!(null), "jane")).await;
    let failure = blocked(engine.drive(run).await.expect("it is driven"));
    assert_eq!(failure.code, "engine.definition_missing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_would_wait_for_its_own_familys_key_is_refused_instead_of_waiting_for_ever() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = nursery(folder.path(), |_ctx, kid| async move { Ok(kid) }).await;
    let fan = start_fan(&Fan::of(0..3, 2).key(1, "the key")).key("the key", engine::KeyPolicy::Forbid);
    let run = start(&engine, fan).await;
    let failure = failed(engine.drive(run).await.expect("it is driven"));
    assert_eq!(failure.code, "engine.key_held_by_family");
    assert!(failure.message.contains("child 1") && failure.message.contains(&run.to_string()), "{}", failure.message);
    assert_eq!(kids_of(&engine, run).await, []);

    let long = "k".repeat(501);
    let run = start(&engine, start_fan(&Fan::of(0..3, 2).key(2, &long))).await;
    let failure = failed(engine.drive(run).await.expect("it is driven"));
    assert_eq!(failure.code, "engine.text_too_long");
    assert!(failure.message.contains("child 2") && failure.message.contains("501"), "{}", failure.message);
}

async fn four<C: Context>(ctx: &mut C, _input: ()) -> Result<usize, Interrupt> {
    Ok(ctx.fan_out(&KIDS, &Fan::of(0..4, 2).starts(), 2).await?.len())
}

async fn five<C: Context>(ctx: &mut C, _input: ()) -> Result<usize, Interrupt> {
    Ok(ctx.fan_out(&KIDS, &Fan::of(0..5, 2).starts(), 2).await?.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn another_list_of_children_is_a_replay_mismatch_and_starts_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = |kids: i64, mends: bool| {
        let mut registry = Registry::new();
        match kids {
            4 => registry.workflow("changed", 1, four::<EngineContext>),
            _ => registry.workflow("changed", 1, five::<EngineContext>),
        };
        registry.workflow("kid", 1, super::kid::<EngineContext>);
        registry.activity("kid.body", move |_ctx, kid: i64| async move {
            if mends || kid < 3 { Ok(kid) } else { Err(Broken("not yet", Disposition::Operator)) }
        });
        registry
    };
    let engine = open(folder.path(), registry(4, false)).await;
    let run = start(&engine, StartRun::new("changed", json!(null), "jane")).await;
    assert_eq!(blocked(engine.drive(run).await.expect("it is driven")).code, "engine.child_blocked");
    engine.close().await;

    let engine = open(folder.path(), registry(5, true)).await;
    engine.resume(run, &jane()).await.expect("it is resumed");
    let failure = blocked(engine.drive(run).await.expect("it is driven"));
    assert_eq!(failure.code, "engine.replay_mismatch");
    assert_eq!(kids_of(&engine, run).await.len(), 4);
    engine.close().await;

    let engine = open(folder.path(), registry(4, true)).await;
    engine.resume(run, &jane()).await.expect("it is resumed");
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(4));
}
