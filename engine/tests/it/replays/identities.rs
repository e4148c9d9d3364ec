//! What a step mints is minted anew until it is used up, and what follows a changed input is carried out anew.

use std::path::Path;

use engine::{EngineContext, Outcome, Registry, ReplayFrom, RunDetail};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::failure::Disposition;
use serde_json::{Value, json};

use super::{at, carried, driven, ended, planned, replay};
use crate::child::log;
use crate::support::{Broken, QUICK, blocked, detail, open, succeeded};

// An identity: `open` mints it, `build` and `seal` work on it, and the seal does not name the source.

const OPEN: StepDef<(), String> = StepDef::new("open", "made.open", QUICK);
const RESOLVE: StepDef<String, String> = StepDef::new("resolve", "made.resolve", QUICK);
const BUILD: StepDef<(String, String), ()> = StepDef::new("build", "made.build", QUICK);
const SEAL: StepDef<String, ()> = StepDef::new("seal", "made.seal", QUICK);
const CHECK: StepDef<String, String> = StepDef::new("check", "made.check", QUICK);

async fn make(ctx: &mut EngineContext, source: String) -> Result<String, Interrupt> {
    let id = ctx.step(&OPEN, &()).await?;
    let resolved = ctx.step(&RESOLVE, &source).await?;
    ctx.step(&BUILD, &(id.clone(), resolved)).await?;
    ctx.step(&SEAL, &id).await?;
    ctx.step(&CHECK, &id).await
}

/// What is sealed stands as a file named by its id, which holds its source; a seal never comes twice.
fn making(folder: &Path) -> Registry {
    let mut registry = Registry::new();
    registry.workflow("make", 1, make).mints("make", "open", "seal");
    let (log, made) = (log(folder), folder.to_owned());
    registry.activity("made.open", |_ctx, (): ()| async {
        Ok::<_, Broken>(engine_rules::clock::Clock::new_id(&engine::SystemClock::new()).to_string())
    });
    let bodies = log.clone();
    registry.activity("made.resolve", move |_ctx, source: String| {
        bodies.add("resolve");
        async move { Ok::<_, Broken>(source) }
    });
    let to = made.clone();
    registry.blocking_activity("made.build", move |_ctx, (id, source): (String, String)| {
        if to.join(&id).exists() {
            return Err(Broken("it is sealed", Disposition::Terminal));
        }
        if source == "bad" {
            return Err(Broken("a damaged source", Disposition::Terminal));
        }
        std::fs::write(to.join(format!("{id}.building")), source).expect("it is written");
        Ok(())
    });
    let to = made.clone();
    registry.blocking_activity("made.seal", move |_ctx, id: String| {
        std::fs::rename(to.join(format!("{id}.building")), to.join(&id)).expect("it was built");
        Ok::<_, Broken>(())
    });
    registry.blocking_activity("made.check", move |_ctx, id: String| {
        Ok::<_, Broken>(format!("{id} {}", std::fs::read_to_string(made.join(&id)).expect("it was sealed")))
    });
    registry
}

fn output(detail: &RunDetail, label: &str) -> Value {
    detail.steps.iter().find(|step| step.label == label).and_then(|step| step.output.clone()).expect("an output")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_is_minted_anew_until_it_is_used_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), making(folder.path())).await;
    let origin = ended(&engine, "make", json!("good")).await;
    let minted = output(&detail(&engine, origin).await, "open");
    for (step, plan, is_kept) in [
        ("open", "+open +resolve +build +seal +check", false),
        ("resolve", "+open +resolve +build +seal +check", false),
        ("build", "+open =resolve +build +seal +check", false),
        ("seal", "+open =resolve +build +seal +check", false),
        ("check", "=open =resolve =build =seal +check", true),
    ] {
        assert_eq!(planned(&engine, origin, &at(step)).await, plan, "from {step}");
        let run = replay(&engine, origin, &at(step)).await;
        let done = succeeded(driven(&engine, run).await);
        let seen = detail(&engine, run).await;
        let id = output(&seen, "open");
        assert_eq!(id == minted, is_kept, "from {step}");
        assert_eq!(done, json!(format!("{} good", id.as_str().expect("a text"))));
        let marks: Vec<_> = plan.split(' ').filter_map(|step| step.strip_prefix('=')).collect();
        assert_eq!(carried(&seen), marks, "as planned, from {step}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_a_changed_input_is_carried_out_anew_also_where_its_own_input_is_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), making(folder.path())).await;
    let origin = ended(&engine, "make", json!("good")).await;
    let minted = output(&detail(&engine, origin).await, "open");
    let other = ReplayFrom { input: Some(json!("better")), ..at("check") };
    assert_eq!(planned(&engine, origin, &other).await, "+open +resolve +build +seal +check");
    let run = replay(&engine, origin, &other).await;
    let done = succeeded(driven(&engine, run).await);
    let seen = detail(&engine, run).await;
    assert!(done.as_str().is_some_and(|done| done.ends_with(" better")), "{done}");
    assert_ne!(output(&seen, "open"), minted, "what was sealed is not sealed again");
    assert_eq!((seen.run.input, seen.run.origin_step.as_deref()), (json!("better"), Some("check")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_failed_is_replayed_with_its_source_mended() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), making(folder.path())).await;
    let origin = ended(&engine, "make", json!("bad")).await;
    assert_eq!(detail(&engine, origin).await.run.failed_step.as_deref(), Some("build"));
    assert_eq!(planned(&engine, origin, &at("build")).await, "+open =resolve +build …", "it may succeed this time");
    let again = replay(&engine, origin, &at("build")).await;
    assert!(matches!(driven(&engine, again).await, Outcome::Failed { .. }));
    let mended = ReplayFrom { input: Some(json!("good")), ..at("resolve") };
    let run = replay(&engine, again, &mended).await;
    assert!(succeeded(driven(&engine, run).await).as_str().is_some_and(|done| done.ends_with(" good")));
}

/// After a probe that this program has and the origin had not, the source is another.
async fn make_after_probe(ctx: &mut EngineContext, _source: String) -> Result<String, Interrupt> {
    let id = ctx.step(&OPEN, &()).await?;
    let probe: StepDef<String, String> = StepDef::new("probe", "made.resolve", QUICK);
    let probed = ctx.step(&probe, &"better".to_owned()).await?;
    let resolved = ctx.step(&RESOLVE, &probed).await?;
    ctx.step(&BUILD, &(id.clone(), resolved)).await?;
    ctx.step(&SEAL, &id).await?;
    ctx.step(&CHECK, &id).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_carried_identity_that_was_used_up_is_not_built_on_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), making(folder.path())).await;
    let origin = ended(&engine, "make", json!("good")).await;
    engine.close().await;
    let mut registry = making(folder.path());
    registry.workflow("make", 2, make_after_probe);
    let engine = open(folder.path(), registry).await;
    let run = replay(&engine, origin, &at("check")).await;
    let failure = blocked(driven(&engine, run).await);
    assert_eq!(failure.code, "engine.identity_used_up");
    for word in ["resolve", "open", "seal"] {
        assert!(failure.message.contains(word), "{}", failure.message);
    }
    let earlier = replay(&engine, origin, &at("seal")).await;
    assert!(succeeded(driven(&engine, earlier).await).as_str().is_some_and(|done| done.ends_with(" better")));
}
