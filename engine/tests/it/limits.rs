//! What the journal does not hold is refused with its size and the way out.

use engine::{EngineContext, EngineError, Outcome, StartRun};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::failure::ActivityError as _;
use engine_rules::limits::PAYLOAD_LIMIT_BYTES;
use serde_json::json;

use crate::support::{Broken, QUICK, detail, open, registry, start, succeeded};

const GROW: StepDef<usize, String> = StepDef::new("grow", "test.grow", QUICK);
const TAKE: StepDef<String, usize> = StepDef::new("take", "test.take", QUICK);

async fn large<C: Context>(ctx: &mut C, (output, input): (usize, usize)) -> Result<usize, Interrupt> {
    ctx.step(&GROW, &output).await?;
    ctx.step(&TAKE, &"x".repeat(input)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_over_the_limit_is_refused_with_its_size_and_the_way_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut registry = registry();
    registry.workflow("large", 1, large::<EngineContext>);
    registry.activity("test.grow", |_ctx, size: usize| async move { Ok::<_, Broken>("x".repeat(size)) });
    registry.activity("test.take", |_ctx, text: String| async move { Ok::<_, Broken>(text.len()) });
    let engine = open(folder.path(), registry).await;

    // With its quotation marks it is exactly the limit.
    let fits = PAYLOAD_LIMIT_BYTES - 2;
    let run = start(&engine, StartRun::new("large", json!([fits, fits]), "jane")).await;
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(fits));

    for (sizes, step) in [([fits + 1, 0], "grow"), ([0, fits + 1], "take"), ([64 * 1024 * 1024, 0], "grow")] {
        let run = start(&engine, StartRun::new("large", json!(sizes), "jane")).await;
        let outcome = engine.drive(run).await.expect("it is driven");
        let Outcome::Failed { failure, step: failed } = outcome else { panic!("{outcome:?}") };
        assert_eq!((failure.code.as_str(), failed.as_deref()), ("engine.payload_too_large", Some(step)));
        let size = sizes.iter().max().expect("two sizes") + 2;
        assert!(failure.message.contains(&size.to_string()), "{}", failure.message);
        assert!(failure.hint.expect("a way out").contains("digest"));
        let seen = detail(&engine, run).await;
        let refused = seen.steps.iter().find(|found| found.label == step).expect("the step is recorded");
        assert_eq!((refused.attempts.len(), refused.output.clone()), (1, None), "it is not tried again");
    }

    let error = engine.start(StartRun::new("large", json!("x".repeat(fits + 1)), "jane")).await.expect_err("too large");
    assert!(matches!(&error, EngineError::PayloadTooLarge(refused) if refused.size_bytes == fits + 3), "{error:?}");
    assert!(error.hint().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_over_the_limit_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), registry()).await;
    let fine = StartRun::new("sum", json!([1, 2]), "jane");
    let long = "x".repeat(5_000);
    for run in [
        StartRun { actor: long.clone(), ..fine.clone() },
        StartRun { reason: Some(long.clone()), ..fine.clone() },
        StartRun { concurrency_key: Some(long.clone()), ..fine.clone() },
        StartRun { idempotency_key: Some(long.clone()), ..fine.clone() },
        fine.clone().label("product", long.clone()),
    ] {
        let error = engine.start(run).await.expect_err("too long");
        assert!(matches!(error, EngineError::TextTooLong { size_bytes: 5_000, .. }), "{error:?}");
    }
    let error = engine.start(StartRun::new("summ", json!([1, 2]), "jane")).await.expect_err("a typing error");
    assert!(matches!(&error, EngineError::UnknownWorkflow { known, .. } if known == &["sum"]), "{error:?}");
}
