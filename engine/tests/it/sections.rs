//! Steps under a lock of the catalog start again together, on a fresh lock (D9).

use engine::{EngineContext, StartRun};
use engine_rules::context::{Context, Interrupt};
use engine_rules::state::StepState;
use serde_json::json;

use crate::child::{Order, aborts, log, work_registry};
use crate::support::{blocked, detail, jane, open, registry, start, succeeded};

fn labels(detail: &engine::RunDetail) -> Vec<(&str, StepState)> {
    detail.steps.iter().map(|step| (step.label.as_str(), step.state)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_section_that_did_not_end_starts_again_as_a_new_iteration() {
    let folder = tempfile::tempdir().expect("a folder");
    aborts(folder.path(), &Order::Run { workflow: "locked".to_owned(), point: "test.second".to_owned(), hit: 1 });
    let log = log(folder.path());
    assert_eq!(log.lines(), ["first", "second"]);
    let engine = open(folder.path(), work_registry(&log)).await;
    let run = engine.interrupted().await.expect("they are listed")[0];
    let output = succeeded(engine.drive(run).await.expect("it is driven"));
    assert_eq!(output, json!([2, [3, 4, 5]]), "the second iteration, with results of its own");
    assert_eq!(log.lines(), ["first", "second", "first", "second", "third"]);
    let seen = detail(&engine, run).await;
    use StepState::{Abandoned, Succeeded};
    assert_eq!(
        labels(&seen),
        [
            ("new_id", Succeeded),
            ("now", Succeeded),
            ("locked#1 section", Abandoned),
            ("locked.first", Abandoned),
            ("locked#2 section", Succeeded),
            ("locked#2.first", Succeeded),
            ("locked#2.second", Succeeded),
            ("locked#2 section_end", Succeeded),
            ("third", Succeeded),
        ]
    );
    assert_eq!(seen.steps[3].output, Some(json!(1)), "what the old iteration recorded is kept to be read");
    let places: Vec<_> = seen.steps.iter().map(|step| step.position.as_str()).collect();
    assert_eq!(places, ["1", "2", "3", "3.1", "3#2", "3#2.1", "3#2.2", "3#2.3", "4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_section_that_ended_is_replayed_like_any_step() {
    let folder = tempfile::tempdir().expect("a folder");
    aborts(folder.path(), &Order::Run { workflow: "locked".to_owned(), point: "test.third".to_owned(), hit: 1 });
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let run = engine.interrupted().await.expect("they are listed")[0];
    let output = succeeded(engine.drive(run).await.expect("it is driven"));
    assert_eq!(output, json!([1, [1, 2, 4]]));
    assert_eq!(log.lines(), ["first", "second", "third", "third"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_section_that_keeps_killing_its_process_asks_a_person() {
    let folder = tempfile::tempdir().expect("a folder");
    let point = || "test.second".to_owned();
    aborts(folder.path(), &Order::Run { workflow: "locked".to_owned(), point: point(), hit: 1 });
    for _ in 2..=10 {
        aborts(folder.path(), &Order::Resume { point: point(), hit: 1 });
    }
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let run = engine.interrupted().await.expect("they are listed")[0];
    let failure = blocked(engine.drive(run).await.expect("it is driven"));
    assert_eq!(failure.code, "engine.section_restarted_too_often");
    assert_eq!(log.count("second"), 10);
    engine.resume(run, &jane()).await.expect("it is resumed");
    let output = succeeded(engine.drive(run).await.expect("it is driven"));
    assert_eq!(output[0], json!(11));
}

async fn never_ends(ctx: &mut EngineContext, _input: ()) -> Result<(), Interrupt> {
    ctx.begin_section("locked").await?;
    Ok(())
}

async fn nests(ctx: &mut EngineContext, _input: ()) -> Result<(), Interrupt> {
    ctx.begin_section("outer").await?;
    ctx.begin_section("inner").await?;
    Ok(())
}

async fn only_ends(ctx: &mut EngineContext, _input: ()) -> Result<(), Interrupt> {
    ctx.end_section().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_section_that_is_used_wrongly_blocks_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut registry = registry();
    registry.workflow("never_ends", 1, never_ends).workflow("nests", 1, nests).workflow("only_ends", 1, only_ends);
    let engine = open(folder.path(), registry).await;
    for (workflow, code) in
        [("never_ends", "engine.open_section"), ("nests", "engine.nested_section"), ("only_ends", "engine.no_section")]
    {
        let run = start(&engine, StartRun::new(workflow, json!(null), "jane")).await;
        assert_eq!(blocked(engine.drive(run).await.expect("it is driven")).code, code);
    }
}
