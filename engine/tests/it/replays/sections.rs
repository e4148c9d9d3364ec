//! A section is carried over whole, or not at all.

use engine::EngineContext;
use engine_rules::context::{Context, Interrupt};
use serde_json::json;

use super::{FIRST, PROBE, SECOND, THIRD, at, carried, driven, ended, makers, planned, replay};
use crate::child::{Order, aborts, log, work_registry};
use crate::support::{blocked, detail, jane, open, succeeded};

#[tokio::test(flavor = "multi_thread")]
async fn a_section_is_carried_over_whole_with_the_iteration_that_it_had() {
    let folder = tempfile::tempdir().expect("a folder");
    aborts(folder.path(), &Order::Run { workflow: "locked".to_owned(), point: "test.second".to_owned(), hit: 1 });
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let origin = engine.interrupted().await.expect("they are listed")[0];
    assert_eq!(succeeded(driven(&engine, origin).await), json!([2, [3, 4, 5]]));
    let run = replay(&engine, origin, &at("third")).await;
    assert_eq!(succeeded(driven(&engine, run).await), json!([2, [3, 4, 6]]));
    let seen = detail(&engine, run).await;
    let made = Some(origin.to_string());
    let expected: Vec<_> =
        ["new_id", "now", "locked#2 section", "locked#2.first", "locked#2.second", "locked#2 section_end"]
            .map(|label| (label, made.clone()))
            .into_iter()
            .chain([("third", None)])
            .collect();
    assert_eq!(makers(&seen), expected);
    // A step of the section, also of an abandoned iteration, stands for its beginning.
    for step in ["locked", "locked#2.second", "locked.first", "second", "3", "3#2.2"] {
        assert_eq!(planned(&engine, origin, &at(step)).await, "=new_id =now +locked …", "from {step}");
    }
    let run = replay(&engine, origin, &at("second")).await;
    assert_eq!(succeeded(driven(&engine, run).await), json!([1, [7, 8, 9]]), "a fresh section, from its beginning");
    let seen = detail(&engine, run).await;
    assert_eq!((carried(&seen), seen.run.origin_step.as_deref()), (vec!["new_id", "now"], Some("locked")));
}

async fn locked_differently(ctx: &mut EngineContext, _input: ()) -> Result<(u32, Vec<usize>), Interrupt> {
    ctx.new_id().await?;
    ctx.now_ms().await?;
    let iteration = ctx.begin_section("locked").await?;
    let first = ctx.step(&FIRST, &()).await?;
    let second = ctx.step(&SECOND, &(first + 100)).await?;
    ctx.end_section().await?;
    let third = ctx.step(&THIRD, &second).await?;
    Ok((iteration, vec![first, second, third]))
}

async fn probed_and_locked_differently(ctx: &mut EngineContext, _input: ()) -> Result<(u32, Vec<usize>), Interrupt> {
    ctx.step(&PROBE, &()).await?;
    locked_differently(ctx, ()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_section_that_would_differ_is_carried_out_anew_or_asks_a_person() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let origin = ended(&engine, "locked", json!(null)).await;
    engine.close().await;
    let mut registry = work_registry(&log);
    registry.workflow("locked", 2, locked_differently);
    let engine = open(folder.path(), registry).await;
    assert_eq!(planned(&engine, origin, &at("third")).await, "=new_id =now +locked …");
    let run = replay(&engine, origin, &at("third")).await;
    assert_eq!(succeeded(driven(&engine, run).await), json!([1, [4, 5, 6]]));
    engine.close().await;
    // Where it cannot be told beforehand: what the probe gives is not known.
    let mut registry = work_registry(&log);
    registry.workflow("locked", 2, probed_and_locked_differently);
    let engine = open(folder.path(), registry).await;
    let run = replay(&engine, origin, &at("third")).await;
    let failure = blocked(driven(&engine, run).await);
    assert_eq!(failure.code, "engine.carried_section_differs");
    for word in ["locked", &origin.to_string(), "the input differs"] {
        assert!(failure.message.contains(word), "{word} is not in {}", failure.message);
    }
    assert!(failure.hint.is_some_and(|hint| hint.contains(&format!("jobctl runs replay {origin} --from locked"))));
    let lines = log.lines();
    engine.resume(run, &jane()).await.expect("it is resumed");
    assert_eq!(blocked(driven(&engine, run).await).code, "engine.carried_section_differs", "and again");
    assert_eq!(log.lines(), lines, "nothing of it ran");
}
