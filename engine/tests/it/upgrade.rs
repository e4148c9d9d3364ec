//! Another program goes on with a run, and maps that have no order.

use std::collections::{BTreeMap, HashMap};

use engine::{EngineContext, Registry, RunFilter, StartRun};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::state::RunState;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::child::{Order, aborts, log, work, work_registry};
use crate::support::{Broken, QUICK, blocked, detail, jane, open, outsider, start, succeeded};
use crate::worker::{Work, ends_well, spawn, worker_registry};

type Map = HashMap<String, HashMap<String, u32>>;

const ECHO: StepDef<Map, Map> = StepDef::new("echo", "maps.echo", QUICK);
const AGAIN: StepDef<Map, Map> = StepDef::new("again", "maps.echo", QUICK);

fn fresh(map: &Map) -> Map {
    // Copied entry by entry: each new map has an order of its own.
    map.iter().map(|(name, inner)| (name.clone(), inner.iter().map(|(k, v)| (k.clone(), *v)).collect())).collect()
}

async fn maps<C: Context>(ctx: &mut C, input: Map) -> Result<Map, Interrupt> {
    let echo = ctx.step(&ECHO, &fresh(&input)).await?;
    ctx.step(&AGAIN, &fresh(&echo)).await
}

pub fn with_maps(registry: &mut Registry) {
    registry.workflow("maps", 1, maps::<EngineContext>);
    registry.activity("maps.echo", |_ctx, map: Map| async move { Ok::<_, Broken>(fresh(&map)) });
}

pub fn map_as_json() -> Value {
    let inner: BTreeMap<String, u32> = (0..20).map(|n| (format!("inner {n}"), n)).collect();
    json!((0..40).map(|n| (format!("key {n}"), inner.clone())).collect::<HashMap<_, _>>())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_order_of_a_map_never_enters_the_journal() {
    let folder = tempfile::tempdir().expect("a folder");
    let children: Vec<_> = (0..4).map(|_| spawn(folder.path(), &Work::Maps)).collect();
    for child in children {
        ends_well(child);
    }
    let engine = open(folder.path(), worker_registry(folder.path())).await;
    for _ in 0..46 {
        let run = start(&engine, StartRun::new("maps", map_as_json(), "jane")).await;
        succeeded(engine.drive(run).await.expect("it is driven"));
    }
    let mut other = outsider(folder.path()).await;
    let steps: Vec<(i64, String, String, String)> =
        sqlx::query_as("SELECT count(*), input_digest, input, output FROM step GROUP BY input_digest, input, output")
            .fetch_all(&mut other)
            .await
            .expect("the steps");
    assert_eq!(steps.iter().map(|row| row.0).collect::<Vec<_>>(), [100], "one text for 100 steps");
    let runs: Vec<(i64, String)> =
        sqlx::query_as("SELECT count(*), input || output FROM run GROUP BY input, input_digest, output")
            .fetch_all(&mut other)
            .await
            .expect("the runs");
    assert_eq!(runs.iter().map(|row| row.0).collect::<Vec<_>>(), [50], "one text for 50 runs");
}

const FIRST: StepDef<(), usize> = StepDef::new("first", "work.first", QUICK);
const FIRST_AS_TEXT: StepDef<(), String> = StepDef::new("first", "work.first", QUICK);
const SECOND: StepDef<usize, usize> = StepDef::new("second", "work.second", QUICK);
const THIRD: StepDef<usize, usize> = StepDef::new("third", "work.third", QUICK);
const FOURTH: StepDef<usize, usize> = StepDef::new("fourth", "work.second", QUICK);

async fn other_output(ctx: &mut EngineContext, _input: ()) -> Result<String, Interrupt> {
    ctx.step(&FIRST_AS_TEXT, &()).await
}

async fn inserted(ctx: &mut EngineContext, _input: ()) -> Result<usize, Interrupt> {
    let first = ctx.step(&FIRST, &()).await?;
    let new = ctx.step(&FOURTH, &first).await?;
    ctx.step(&SECOND, &new).await
}

#[derive(Debug, Serialize, Deserialize)]
struct Order2 {
    product: String,
}

async fn other_input(ctx: &mut EngineContext, _input: Order2) -> Result<usize, Interrupt> {
    ctx.step(&FIRST, &()).await
}

async fn longer(ctx: &mut EngineContext, _input: ()) -> Result<Vec<usize>, Interrupt> {
    let first = ctx.step(&FIRST, &()).await?;
    let second = ctx.step(&SECOND, &first).await?;
    let third = ctx.step(&THIRD, &second).await?;
    Ok(vec![first, second, third, ctx.step(&FOURTH, &third).await?])
}

type Change = (&'static str, fn(&mut Registry), Result<Value, &'static str>);

/// What another program makes of a run that stands in its third step.
const CHANGES: [Change; 8] = [
    ("the definition is gone", |r| without("work", r), Err("engine.definition_missing")),
    ("the activity is gone", |r| without("work.third", r), Err("engine.activity_missing")),
    ("an output has another type", |r| _ = r.workflow("work", 1, other_output), Err("engine.output_unreadable")),
    ("a step is new in the middle", |r| _ = r.workflow("work", 1, inserted), Err("engine.replay_mismatch")),
    ("the input has another type", |r| _ = r.workflow("work", 1, other_input), Err("engine.input_unreadable")),
    ("nothing changed", |_| (), Ok(Value::Null)),
    ("there is a newer definition beside it", |r| _ = r.workflow("work", 2, other_output), Ok(Value::Null)),
    ("a step is new at the end", |r| _ = r.workflow("work", 1, longer), Ok(Value::Null)),
];

/// All of the registry of `work` but one name: a registry forgets nothing, so it is made anew.
fn without(name: &str, registry: &mut Registry) {
    let mut fewer = Registry::new();
    if name != "work" {
        fewer.workflow("work", 1, work::<EngineContext>);
    }
    for activity in ["work.second", "work.third"].iter().filter(|activity| **activity != name) {
        fewer.blocking_activity(activity, |_ctx, n: usize| Ok::<_, Broken>(n));
    }
    fewer.blocking_activity("work.first", |_ctx, (): ()| Ok::<_, Broken>(0_usize));
    *registry = fewer;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_program_in_the_middle_of_a_run_resumes_it_or_says_blocked() {
    for (name, change, expected) in CHANGES {
        let folder = tempfile::tempdir().expect("a folder");
        aborts(folder.path(), &Order::Run { workflow: "work".to_owned(), point: "test.third".to_owned(), hit: 1 });
        let log = log(folder.path());
        let mut registry = work_registry(&log);
        change(&mut registry);
        let engine = open(folder.path(), registry).await;
        let run = engine.interrupted().await.expect("they are listed")[0];
        let outcome = engine.drive(run).await.expect("it is driven");
        match expected {
            Ok(_) => {
                let output = succeeded(outcome);
                assert_eq!(output.as_array().expect("numbers")[..3], [json!(1), json!(2), json!(4)], "{name}");
                assert_eq!(detail(&engine, run).await.run.version, 1, "{name}");
            }
            Err(code) => {
                let failure = blocked(outcome);
                assert_eq!(failure.code, code, "{name}");
                assert!(failure.hint.expect("a way out").contains("jobctl runs "), "{name}");
                assert_eq!(log.lines(), ["first", "second", "third"], "{name}: nothing ran");
                engine.close().await;
                // The program that began it goes on as if nothing had been.
                let engine = open(folder.path(), work_registry(&log)).await;
                engine.resume(run, &jane()).await.expect("it is resumed");
                assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!([1, 2, 4]), "{name}");
            }
        }
    }
}

/// Also where nothing was recorded yet: a run that was started is never ended by a program that cannot read it.
#[tokio::test(flavor = "multi_thread")]
async fn another_program_before_the_first_result_does_not_end_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    aborts(folder.path(), &Order::Run { workflow: "work".to_owned(), point: "test.first".to_owned(), hit: 1 });
    let log = log(folder.path());
    let mut registry = work_registry(&log);
    registry.workflow("work", 1, other_input);
    let engine = open(folder.path(), registry).await;
    let run = engine.interrupted().await.expect("they are listed")[0];
    assert_eq!(blocked(engine.drive(run).await.expect("it is driven")).code, "engine.input_unreadable");
    engine.close().await;
    let engine = open(folder.path(), work_registry(&log)).await;
    engine.resume(run, &jane()).await.expect("it is resumed");
    succeeded(engine.drive(run).await.expect("it is driven"));
    let runs = engine.reader().runs(&RunFilter::default()).await.expect("the runs read");
    assert_eq!(runs.iter().map(|run| run.state).collect::<Vec<_>>(), [RunState::Succeeded]);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_program_does_not_end_a_run_that_it_takes_from_the_queue_and_cannot_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let run = start(&engine, StartRun { detached: true, ..StartRun::new("work", json!(null), "jane") }).await;
    engine.close().await;
    let mut registry = work_registry(&log);
    registry.workflow("work", 1, other_input);
    let engine = open(folder.path(), registry).await;
    assert_eq!(engine.drain(1).await.expect("it drains"), 1);
    let seen = detail(&engine, run).await.run;
    assert_eq!(
        (seen.state, seen.failure.map(|f| f.code).as_deref()),
        (RunState::Blocked, Some("engine.input_unreadable"))
    );
    engine.close().await;
    let engine = open(folder.path(), work_registry(&log)).await;
    engine.resume(run, &jane()).await.expect("it is resumed");
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!([1, 2, 3]));
}
