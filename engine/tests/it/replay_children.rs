//! A run with children is replayed from before its fan-out, and from after it.

use std::path::Path;
use std::sync::Arc;

use engine::{Engine, EngineContext, Registry, ReplayFrom, RunFilter, RunId, RunRow, Start, StartRun, SystemClock};
use engine_rules::context::{ChildDef, ChildEnd, ChildStart, Context, Interrupt, StepDef};
use engine_rules::failure::Disposition;
use engine_rules::state::RunState;
use serde_json::{Value, json};

use crate::child::log;
use crate::support::{Broken, QUICK, detail, jane, open, start, succeeded};

const BEFORE: StepDef<(), i64> = StepDef::new("before", "fan.before", QUICK);
const BODY: StepDef<i64, i64> = StepDef::new("body", "fan.body", QUICK);
const AFTER: StepDef<i64, i64> = StepDef::new("after", "fan.after", QUICK);
const PARTS: ChildDef<i64, i64> = ChildDef::new("parts", "part");
const LAST: ChildDef<i64, i64> = ChildDef::new("last", "part");

async fn part(ctx: &mut EngineContext, number: i64) -> Result<i64, Interrupt> {
    ctx.step(&BODY, &number).await
}

/// A step, three children of which the third fails, one child more, and a step on their sum.
async fn fan(ctx: &mut EngineContext, _input: ()) -> Result<i64, Interrupt> {
    let base = ctx.step(&BEFORE, &()).await?;
    let parts: Vec<_> = (1..=3).map(|part| ChildStart::new(base + part)).collect();
    let ends = ctx.fan_out(&PARTS, &parts, 2).await?;
    let sum = ends.iter().map(|end| if let ChildEnd::Succeeded(gave) = end { *gave } else { 0 }).sum::<i64>();
    let last = ctx.child(&LAST, &ChildStart::new(7)).await?;
    ctx.step(&AFTER, &(sum + last)).await
}

fn fanning(folder: &Path) -> Registry {
    let mut registry = Registry::new();
    registry.workflow("fan", 1, fan).workflow("part", 1, part);
    for name in ["before", "body", "after"] {
        let log = log(folder);
        registry.activity(&format!("fan.{name}"), move |_ctx, input: Value| {
            log.add(name);
            async move {
                match input.as_i64() {
                    Some(13) => Err(Broken("a part of bad luck", Disposition::Terminal)),
                    Some(number) => Ok(number),
                    None => Ok(10),
                }
            }
        });
    }
    registry
}

async fn replay(engine: &Engine, run: RunId, step: &str) -> (RunId, Value) {
    let from = ReplayFrom { step: step.to_owned(), input: None, detached: false };
    let Start::Started(started) = engine.replay(run, &from, &jane()).await.expect("it is replayed") else {
        panic!("it has no key");
    };
    (started.run_id, succeeded(engine.drive(started.run_id).await.expect("it is driven")))
}

async fn children(engine: &Engine, parent: RunId) -> Vec<RunRow> {
    let runs = engine.reader().runs(&RunFilter::default()).await.expect("the runs read");
    runs.into_iter().filter(|run| run.parent_run_id == Some(parent)).collect()
}

fn carried(detail: &engine::RunDetail) -> Vec<&str> {
    detail.steps.iter().filter(|step| step.carried_from.is_some()).map(|step| step.label.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn from_before_a_fan_out_its_children_run_anew_and_from_after_it_their_ends_are_carried_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), fanning(folder.path())).await;
    let origin = start(&engine, StartRun::new("fan", json!(null), "joe")).await;
    assert_eq!(succeeded(engine.drive(origin).await.expect("it is driven")), json!(30));
    let made = children(&engine, origin).await;
    assert_eq!((made.len(), log.count("body")), (4, 4));

    let (after, output) = replay(&engine, origin, "after").await;
    let seen = detail(&engine, after).await;
    assert_eq!((output, carried(&seen)), (json!(30), vec!["before", "parts", "last"]));
    assert_eq!((children(&engine, after).await, log.count("body"), log.count("after")), (Vec::new(), 4, 2));
    let of = |detail: &engine::RunDetail| detail.steps[1].output.clone();
    assert_eq!(of(&seen), of(&detail(&engine, origin).await), "the failure among the ends as well");

    // Also of the replay, which has no children itself.
    for run in [origin, after] {
        let before = log.count("body");
        let (anew, output) = replay(&engine, run, "parts").await;
        assert_eq!((output, carried(&detail(&engine, anew).await)), (json!(30), vec!["before"]));
        let own = children(&engine, anew).await;
        assert_eq!((own.len(), log.count("body")), (4, before + 4), "each runs anew, once");
        assert!(own.iter().all(|child| made.iter().all(|other| other.run_id != child.run_id)));
        assert_eq!(own.iter().filter(|child| child.state == RunState::Failed).count(), 1);
    }
    assert_eq!(children(&engine, origin).await, made, "the origin's are as they were");

    let history = detail(&engine, origin).await.into();
    let told = fanning(folder.path()).rehearse(Arc::new(SystemClock::new()), &history).await;
    assert_eq!((told.agreed, told.difference), (4, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_is_replayed_by_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), fanning(folder.path())).await;
    let origin = start(&engine, StartRun::new("fan", json!(null), "joe")).await;
    engine.drive(origin).await.expect("it is driven");
    let child = children(&engine, origin).await.into_iter().find(|child| child.input == json!(7)).expect("the last");
    let (run, output) = replay(&engine, child.run_id, "body").await;
    let seen = detail(&engine, run).await.run;
    assert_eq!((output, seen.parent_run_id, seen.origin_run_id), (json!(7), None, Some(child.run_id)));
}
