//! Child runs and fan-outs.

mod cancel;
mod crash;
mod limits;
mod waits;

use std::future::Future;
use std::path::Path;

use engine::{Engine, EngineContext, Outcome, Registry, RunFilter, RunId, RunRow, StartRun};
use engine_rules::activity::ActivityContext;
use engine_rules::context::{ChildDef, ChildEnd, ChildStart, Context, Interrupt, StepDef};
use engine_rules::failure::Disposition;
use engine_rules::retry::RetryPolicy;
use engine_rules::state::RunState;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Broken, Log, QUICK, detail, open, registry, sleep_ms, start, succeeded};

const BODY: StepDef<i64, i64> = StepDef::new("body", "kid.body", QUICK);
const ONCE: StepDef<i64, i64> = StepDef::new("body", "kid.body", RetryPolicy::NEVER);
const CLEAN: StepDef<String, ()> = StepDef::new("clean", "kid.clean", QUICK);
const KIDS: ChildDef<i64, i64> = ChildDef::new("kids", "kid");
const BRANCHES: ChildDef<i64, i64> = ChildDef::new("branches", "tree");

/// What a parent of these tests asks for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Fan {
    kids: Vec<i64>,
    limit: u32,
    /// The key of the kid of this number.
    keys: Vec<(i64, String)>,
}

impl Fan {
    fn of(kids: impl IntoIterator<Item = i64>, limit: u32) -> Self {
        Self { kids: kids.into_iter().collect(), limit, keys: Vec::new() }
    }

    fn key(mut self, kid: i64, key: &str) -> Self {
        self.keys.push((kid, key.to_owned()));
        self
    }

    fn starts(&self) -> Vec<ChildStart<i64>> {
        let start = |kid: &i64| {
            let start = ChildStart::new(*kid).label("kid", kid.to_string());
            match self.keys.iter().find(|(of, _)| of == kid) {
                Some((_, key)) => start.key(key),
                None => start,
            }
        };
        self.kids.iter().map(start).collect()
    }
}

async fn cleaned<C: Context, T>(ctx: &mut C, who: String, ended: Result<T, Interrupt>) -> Result<T, Interrupt> {
    if let Err(Interrupt::Cancelled) = ended {
        ctx.step(&CLEAN, &who).await?;
    }
    ended
}

/// One step, and a clean-up.
async fn kid<C: Context>(ctx: &mut C, kid: i64) -> Result<i64, Interrupt> {
    let ended = ctx.step(&BODY, &kid).await;
    cleaned(ctx, format!("kid {kid}"), ended).await
}

/// One step that is never tried twice.
async fn once<C: Context>(ctx: &mut C, kid: i64) -> Result<i64, Interrupt> {
    ctx.step(&ONCE, &kid).await
}

async fn fan<C: Context>(ctx: &mut C, fan: Fan) -> Result<Vec<ChildEnd<i64>>, Interrupt> {
    let ended = ctx.fan_out(&KIDS, &fan.starts(), fan.limit).await;
    cleaned(ctx, "fan".to_owned(), ended).await
}

/// A child, and a step after it.
async fn one<C: Context>(ctx: &mut C, kid: i64) -> Result<i64, Interrupt> {
    let ended = ctx.child(&KIDS, &ChildStart::new(kid)).await;
    let gave = cleaned(ctx, "one".to_owned(), ended).await?;
    ctx.step(&BODY, &gave).await
}

/// Fifty children, eight at a time, and how many of them succeeded.
async fn fifty<C: Context>(ctx: &mut C, _input: ()) -> Result<usize, Interrupt> {
    let ends = ctx.fan_out(&KIDS, &Fan::of(0..50, 8).starts(), 8).await?;
    Ok(ends.iter().filter(|end| matches!(end, ChildEnd::Succeeded(_))).count())
}

/// Three branches at each of so many levels; the sum of what the leaves gave.
async fn tree<C: Context>(ctx: &mut C, levels: i64) -> Result<i64, Interrupt> {
    let ended = match levels {
        0 => ctx.step(&BODY, &1).await,
        _ => {
            let starts = vec![ChildStart::new(levels - 1); 3];
            let ends = ctx.fan_out(&BRANCHES, &starts, 2).await;
            ends.map(|ends| ends.iter().map(|end| if let ChildEnd::Succeeded(sum) = end { *sum } else { 0 }).sum())
        }
    };
    cleaned(ctx, format!("tree {levels}"), ended).await
}

fn workflows(registry: &mut Registry, log: &Log) {
    registry.workflow("kid", 1, kid::<EngineContext>);
    registry.workflow("one_body", 1, once::<EngineContext>);
    registry.workflow("fan", 1, fan::<EngineContext>);
    registry.workflow("one", 1, one::<EngineContext>);
    registry.workflow("fifty", 1, fifty::<EngineContext>);
    registry.workflow("tree", 1, tree::<EngineContext>);
    let log = log.clone();
    registry.blocking_activity("kid.clean", move |_ctx, who: String| {
        log.add(&format!("clean {who}"));
        Ok::<_, Broken>(())
    });
}

/// What another process of these tests runs: bodies that take a while and are counted.
pub fn add_to(registry: &mut Registry, log: &Log) {
    workflows(registry, log);
    // Another workflow has this name there.
    let log = log.clone();
    registry.activity("kid.body", move |_ctx, kid: i64| {
        let log = log.clone();
        async move {
            log.add(&format!("begin {kid}"));
            sleep_ms(15).await;
            log.add(&format!("end {kid}"));
            Ok::<_, Broken>(kid * 2)
        }
    });
}

/// An engine whose kids do this.
async fn nursery<F, R>(folder: &Path, body: F) -> Engine
where
    F: Fn(ActivityContext, i64) -> R + Send + Sync + 'static,
    R: Future<Output = Result<i64, Broken>> + Send + 'static,
{
    let mut registry = registry();
    workflows(&mut registry, &crate::child::log(folder));
    registry.activity("kid.body", body);
    open(folder, registry).await
}

fn start_fan(fan: &Fan) -> StartRun {
    StartRun::new("fan", serde_json::to_value(fan).expect("a fan"), "jane")
}

fn driving(engine: &Engine, run: RunId) -> tokio::task::JoinHandle<Outcome> {
    let engine = engine.clone();
    tokio::spawn(async move { engine.drive(run).await.expect("it is driven") })
}

async fn kids_of(engine: &Engine, parent: RunId) -> Vec<RunRow> {
    let filter = RunFilter { parent: Some(parent), ..RunFilter::default() };
    let mut kids = engine.reader().runs(&filter).await.expect("the kids read");
    kids.reverse();
    kids
}

async fn states_of(engine: &Engine, parent: RunId) -> Vec<(i64, RunState)> {
    let kids = kids_of(engine, parent).await;
    kids.iter().map(|kid| (kid.input.as_i64().expect("a number"), kid.state)).collect()
}

/// Every run that has not ended.
async fn survivors(engine: &Engine) -> Vec<RunRow> {
    let runs = engine.reader().runs(&RunFilter::default()).await.expect("the runs read");
    runs.into_iter().filter(|run| !run.state.is_terminal()).collect()
}

/// Waits until `condition` holds, at most ten seconds.
async fn eventually<F, R>(what: &str, condition: F)
where
    F: Fn() -> R,
    R: Future<Output = bool>,
{
    for _ in 0..1_000 {
        if condition().await {
            return;
        }
        sleep_ms(10).await;
    }
    panic!("ten seconds passed, and not yet: {what}");
}

async fn state_of(engine: &Engine, run: RunId) -> RunState {
    detail(engine, run).await.run.state
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ends_come_back_in_the_order_of_the_children_and_one_that_fails_stops_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = nursery(folder.path(), |_ctx, kid| async move {
        // The first ones end last.
        sleep_ms(u64::try_from(40 - 4 * kid).expect("a delay")).await;
        match kid {
            3 => Err(Broken("three is refused", Disposition::Terminal)),
            _ => Ok(kid * 10),
        }
    })
    .await;
    let run = start(&engine, start_fan(&Fan::of(0..8, 8))).await;
    let ends = succeeded(engine.drive(run).await.expect("it is driven"));
    let failure = json!({
        "code": "test.broken", "message": "three is refused", "disposition": "terminal", "hint": "mend it"
    });
    let expected: Vec<Value> = (0..8)
        .map(|kid| match kid {
            3 => json!({ "failed": failure }),
            _ => json!({ "succeeded": kid * 10 }),
        })
        .collect();
    assert_eq!(ends, json!(expected));
    let seen = detail(&engine, run).await;
    assert_eq!((seen.steps.len(), seen.steps[0].kind.as_str(), seen.steps[0].label.as_str()), (1, "fan_out", "kids"));
    assert_eq!(seen.steps[0].output.as_ref(), Some(&ends));
    assert_eq!(seen.steps[0].input.as_ref().expect("an input")["workflow"], "kid");
    let counts: Vec<_> = seen.children.by_state.iter().map(|(state, count)| (*state, *count)).collect();
    assert_eq!(counts, [(RunState::Succeeded, 7), (RunState::Failed, 1)]);
    let [listed] = seen.children.not_succeeded.as_slice() else { panic!("{:?}", seen.children) };
    assert_eq!((listed.index, listed.position.as_deref(), listed.labels["kid"].as_str()), (Some(3), Some("1"), "3"));
    let kids = kids_of(&engine, run).await;
    assert_eq!(kids[3].run_id, listed.run_id);
    assert!(kids.iter().all(|kid| kid.actor == "jane" && kid.parent_run_id == Some(run)));
    assert_eq!(kids[3].reason, Some(format!("child 3 of 8 of kids of run {run}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_of_a_child_is_its_parents_byte_for_byte_and_its_output_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = nursery(folder.path(), |_ctx, kid| async move {
        if kid == 13 { Err(Broken("no: \"é\" is not a key", Disposition::Terminal)) } else { Ok(kid + 1) }
    })
    .await;
    let run = start(&engine, StartRun::new("one", json!(1), "jane")).await;
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(3));
    let run = start(&engine, StartRun::new("one", json!(13), "jane")).await;
    let outcome = engine.drive(run).await.expect("it is driven");
    let Outcome::Failed { failure, step } = outcome else { panic!("{outcome:?}") };
    assert_eq!(step.as_deref(), Some("kids"));
    let kid = &kids_of(&engine, run).await[0];
    assert_eq!(kid.failure.as_ref(), Some(&failure));
    assert_eq!(detail(&engine, run).await.steps[0].failure, Some(failure));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_children_at_all_are_an_empty_list() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = nursery(folder.path(), |_ctx, kid| async move { Ok(kid) }).await;
    let run = start(&engine, start_fan(&Fan::of([], 4))).await;
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn grandchildren_keep_to_the_limits_of_their_parents() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = nursery(folder.path(), |_ctx, kid| async move { Ok(kid) }).await;
    let run = start(&engine, StartRun::new("tree", json!(3), "jane")).await;
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(27));
    let runs = engine.reader().runs(&RunFilter::default()).await.expect("the runs read");
    assert_eq!(runs.len(), 1 + 3 + 9 + 27);
    assert!(runs.iter().all(|run| run.state == RunState::Succeeded && run.epoch == 1));
}
