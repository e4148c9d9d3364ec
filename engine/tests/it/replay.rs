//! A program that asks for other things than the one that began the run.

use engine::{EngineContext, Registry, StartRun};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::retry::RetryPolicy;
use serde_json::json;

use crate::child::{Order, aborts, log, work_registry};
use crate::support::{QUICK, blocked, detail, jane, open, succeeded};

const FIRST: StepDef<(), usize> = StepDef::new("first", "work.first", QUICK);
const RENAMED: StepDef<(), usize> = StepDef::new("erste", "work.first", QUICK);
const SECOND: StepDef<usize, usize> = StepDef::new("second", "work.second", QUICK);
const THIRD: StepDef<usize, usize> = StepDef::new("third", "work.third", RetryPolicy::LOCAL);

async fn renamed(ctx: &mut EngineContext, _input: ()) -> Result<usize, Interrupt> {
    ctx.step(&RENAMED, &()).await
}

async fn reordered(ctx: &mut EngineContext, _input: ()) -> Result<usize, Interrupt> {
    let first = ctx.step(&FIRST, &()).await?;
    let third = ctx.step(&THIRD, &first).await?;
    ctx.step(&SECOND, &third).await
}

async fn other_input(ctx: &mut EngineContext, _input: ()) -> Result<usize, Interrupt> {
    let first = ctx.step(&FIRST, &()).await?;
    ctx.step(&SECOND, &(first + 100)).await
}

async fn other_kind(ctx: &mut EngineContext, _input: ()) -> Result<i64, Interrupt> {
    ctx.now_ms().await
}

async fn shorter(ctx: &mut EngineContext, _input: ()) -> Result<usize, Interrupt> {
    ctx.step(&FIRST, &()).await
}

async fn swallows(ctx: &mut EngineContext, _input: ()) -> Result<usize, Interrupt> {
    // A workflow that goes on after it was told to stop does not get past the journal.
    let _ = ctx.step(&RENAMED, &()).await;
    let _ = ctx.now_ms().await;
    Ok(7)
}

type Change = (&'static str, fn(&mut Registry), &'static [&'static str]);

#[tokio::test(flavor = "multi_thread")]
async fn a_difference_blocks_the_run_and_shows_both_sides() {
    let changes: [Change; 6] = [
        ("renamed", |r| _ = r.workflow("work", 1, renamed), &["at 1", "recorded step first", "requested step erste"]),
        (
            "reordered",
            |r| _ = r.workflow("work", 1, reordered),
            &["at 2", "recorded step second", "requested step third"],
        ),
        (
            "other input",
            |r| _ = r.workflow("work", 1, other_input),
            &["at 2", "the input differs: recorded 1, requested 101"],
        ),
        ("other kind", |r| _ = r.workflow("work", 1, other_kind), &["at 1", "recorded step first", "requested now"]),
        ("shorter", |r| _ = r.workflow("work", 1, shorter), &["recorded step second at 2", "requested the end"]),
        ("swallows", |r| _ = r.workflow("work", 1, swallows), &["requested step erste"]),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    aborts(folder.path(), &Order::Run { workflow: "work".to_owned(), point: "test.third".to_owned(), hit: 1 });
    let log = log(folder.path());
    let mut run = None;
    for (name, change, expected) in changes {
        let mut registry = work_registry(&log);
        change(&mut registry);
        let engine = open(folder.path(), registry).await;
        match run {
            None => run = Some(engine.interrupted().await.expect("they are listed")[0]),
            Some(run) => engine.resume(run, &jane()).await.expect("it is resumed"),
        }
        let run = run.expect("a run");
        let failure = blocked(engine.drive(run).await.expect("it is driven"));
        assert_eq!(failure.code, "engine.replay_mismatch", "{name}");
        for part in expected {
            assert!(failure.message.contains(part), "{name}: {part:?} is not in {}", failure.message);
        }
        engine.close().await;
    }
    assert_eq!(log.lines(), ["first", "second", "third"], "nothing ran");
    let engine = open(folder.path(), work_registry(&log)).await;
    let run = run.expect("a run");
    engine.resume(run, &jane()).await.expect("it is resumed");
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!([1, 2, 4]));
    assert_eq!(detail(&engine, run).await.audit.len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_times_and_ids_are_the_same_on_every_later_run() {
    async fn values(ctx: &mut EngineContext, _input: ()) -> Result<(i64, String, usize), Interrupt> {
        let now = ctx.now_ms().await?;
        let id = ctx.new_id().await?;
        let asks: StepDef<(), usize> = StepDef::new("asks", "test.none", QUICK);
        Ok((now, id.to_string(), ctx.step(&asks, &()).await?))
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut registry = Registry::new();
    registry.workflow("values", 1, values);
    let engine = open(folder.path(), registry.clone()).await;
    let run = crate::support::start(&engine, StartRun::new("values", json!(null), "jane")).await;
    assert_eq!(blocked(engine.drive(run).await.expect("it is driven")).code, "engine.activity_missing");
    let first: Vec<_> = detail(&engine, run).await.steps.into_iter().map(|step| (step.kind, step.output)).collect();
    assert_eq!(first.iter().map(|(kind, _)| kind.as_str()).collect::<Vec<_>>(), ["now", "new_id"]);
    engine.close().await;
    registry.activity("test.none", |_ctx, (): ()| async { Ok::<_, crate::support::Broken>(7_usize) });
    let engine = open(folder.path(), registry).await;
    engine.resume(run, &jane()).await.expect("it is resumed");
    let output = succeeded(engine.drive(run).await.expect("it is driven"));
    assert_eq!(output, json!([first[0].1, first[1].1, 7]));
}
