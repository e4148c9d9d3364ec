//! Whether today's program would go on with a run, told without carrying anything out.

use std::sync::Arc;

use engine::{EngineContext, Registry, Rehearsal, RunDetail, StartRun, SystemClock};
use engine_rules::context::{Context, Interrupt, StepDef};
use serde_json::json;

use crate::child::{Order, aborts, log, work_registry};
use crate::support::{QUICK, detail, jane, open, start};

async fn rehearse(registry: &Registry, history: &RunDetail) -> Rehearsal {
    // As it is exported and read back.
    let text = serde_json::to_string(history).expect("it is JSON");
    let history: engine::History = serde_json::from_str(&text).expect("it reads back");
    registry.rehearse(Arc::new(SystemClock::new()), &history).await
}

#[track_caller]
fn differs(rehearsal: &Rehearsal, code: &str, words: &[&str]) {
    let failure = &rehearsal.difference.as_ref().expect("a difference").failure;
    assert_eq!(failure.code, code, "{failure}");
    for word in words {
        assert!(failure.message.contains(word), "{word:?} is not in {}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_history_of_this_program_agrees_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let registry = work_registry(&log);
    let engine = open(folder.path(), registry.clone()).await;
    for (workflow, recorded) in [("work", 3), ("locked", 7), ("refused", 2)] {
        let run = start(&engine, StartRun::new(workflow, json!(null), "joe")).await;
        engine.drive(run).await.expect("it is driven");
        let lines = log.lines();
        let told = rehearse(&registry, &detail(&engine, run).await).await;
        assert_eq!((told.recorded, told.agreed, &told.difference), (recorded, recorded, &None), "{workflow}");
        assert_eq!(log.lines(), lines, "nothing was carried out");
    }
    let queued = start(&engine, StartRun { detached: true, ..StartRun::new("work", json!(null), "joe") }).await;
    engine.cancel(queued, &jane()).await.expect("it is cancelled");
    let told = rehearse(&registry, &detail(&engine, queued).await).await;
    assert_eq!((told.recorded, told.agreed, told.difference, told.last), (0, 0, None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_stands_in_the_middle_agrees_as_far_as_it_is_recorded() {
    for (workflow, agreed, last) in
        [("work", 1, ("1", "first")), ("locked", 3, ("3", "locked#1 section")), ("slow", 0, ("", ""))]
    {
        let point = if workflow == "slow" { "test.slow" } else { "test.second" };
        let folder = tempfile::tempdir().expect("a folder");
        aborts(folder.path(), &Order::Run { workflow: workflow.to_owned(), point: point.to_owned(), hit: 1 });
        let registry = work_registry(&log(folder.path()));
        let engine = open(folder.path(), registry.clone()).await;
        let run = engine.interrupted().await.expect("they are listed")[0];
        let told = rehearse(&registry, &detail(&engine, run).await).await;
        assert_eq!((told.difference, told.agreed >= agreed), (None, true), "{workflow}");
        if workflow != "slow" {
            assert_eq!(told.last, Some((last.0.to_owned(), last.1.to_owned())));
        }
    }
}

async fn shorter(ctx: &mut EngineContext, _input: ()) -> Result<usize, Interrupt> {
    ctx.step(&StepDef::<(), usize>::new("first", "work.first", QUICK), &()).await
}

async fn longer(ctx: &mut EngineContext, input: ()) -> Result<i64, Interrupt> {
    crate::child::work(ctx, input).await?;
    ctx.now_ms().await
}

async fn never_succeeds(ctx: &mut EngineContext, input: ()) -> Result<String, Interrupt> {
    crate::child::work(ctx, input).await?;
    Err(Interrupt::Cancelled)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_that_differs_fails_with_both_sides_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let registry = work_registry(&log(folder.path()));
    let engine = open(folder.path(), registry.clone()).await;
    let run = start(&engine, StartRun::new("work", json!(null), "joe")).await;
    engine.drive(run).await.expect("it is driven");
    let history = detail(&engine, run).await;

    let mut renamed = history.clone();
    renamed.steps[1].name = "zweite".to_owned();
    let told = rehearse(&registry, &renamed).await;
    differs(&told, "engine.replay_mismatch", &["at 2", "recorded step zweite", "requested step second"]);
    assert_eq!((told.agreed, told.last), (1, Some(("1".to_owned(), "first".to_owned()))));

    let mut digest = history.clone();
    digest.steps[2].input_digest = "0".repeat(64);
    let recorded = history.steps[2].input_digest.clone();
    differs(&rehearse(&registry, &digest).await, "engine.replay_mismatch", &["at 3", &"0".repeat(64), &recorded]);

    let mut output = history.clone();
    output.steps[0].output = Some(json!("one"));
    differs(&rehearse(&registry, &output).await, "engine.output_unreadable", &["first", "usize"]);

    let mut version = history.clone();
    version.run.version = 7;
    differs(&rehearse(&registry, &version).await, "engine.definition_missing", &["version 7", "[1]"]);

    let mut input = history.clone();
    input.run.input = json!("a text");
    differs(&rehearse(&registry, &input).await, "engine.input_unreadable", &["work"]);

    let mut failed = history.clone();
    failed.run.state = engine_rules::state::RunState::Failed;
    differs(&rehearse(&registry, &failed).await, "engine.replay_mismatch", &["recorded the failure", "success"]);

    type Change = fn(&mut Registry);
    let changes: [(Change, &[&str]); 3] = [
        (|r| _ = r.workflow("work", 1, shorter), &["recorded step second at 2", "requested the end"]),
        (|r| _ = r.workflow("work", 1, longer), &["recorded the end", "requested now at 4"]),
        (|r| _ = r.workflow("work", 1, never_succeeds), &["nothing told it to"]),
    ];
    for (change, words) in changes {
        let mut registry = work_registry(&log(folder.path()));
        change(&mut registry);
        differs(&rehearse(&registry, &history).await, "engine.replay_mismatch", words);
    }
}
