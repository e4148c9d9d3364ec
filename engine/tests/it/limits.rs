//! What the journal does not hold is refused with its size and the way out.

use std::collections::BTreeMap;

use engine::{EngineContext, EngineError, ExportError, IfOther, Mutation, Outcome, PurgePlan, RunFilter, StartRun};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::failure::{ActivityError, Disposition, Failure};
use engine_rules::limits::{
    MESSAGE_LIMIT_BYTES, NAME_LIMIT_BYTES, PAYLOAD_LIMIT_BYTES, REASON_LIMIT_BYTES, check_payload,
};
use engine_rules::retention::Cutoff;
use serde_json::json;

use crate::support::{Broken, QUICK, detail, jane, open, registry, start, succeeded};

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

/// How much must not come in by any door.
const FLOOD: usize = 64 * 1024 * 1024;

/// Words of a workflow of its own.
async fn wordy<C: Context>(_ctx: &mut C, disposition: Disposition) -> Result<(), Interrupt> {
    let words = "x".repeat(FLOOD);
    Err(Interrupt::Failed(Failure { code: words.clone(), message: words.clone(), disposition, hint: Some(words) }))
}

async fn flooded<C: Context>(_ctx: &mut C, _: ()) -> Result<String, Interrupt> {
    Ok("x".repeat(FLOOD))
}

async fn told<C: Context>(ctx: &mut C, _: ()) -> Result<(), Interrupt> {
    ctx.step(&TOLD, &()).await
}

const TOLD: StepDef<(), ()> = StepDef::new("told", "test.told", QUICK);

/// An error with a great deal to say.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Flood(String, Disposition);

impl ActivityError for Flood {
    fn code(&self) -> &'static str {
        "test.flood"
    }

    fn disposition(&self) -> Disposition {
        self.1
    }

    fn hint(&self) -> Option<String> {
        Some(self.0.clone())
    }
}

/// Whatever a person, a workflow or an activity gives, the state stays small.
#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_mebibytes_cannot_enter_the_journal_by_any_door() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut registry = registry();
    registry.workflow("wordy", 1, wordy::<EngineContext>);
    registry.workflow("flooded", 1, flooded::<EngineContext>);
    registry.workflow("told", 1, told::<EngineContext>);
    registry.workflow("large", 1, large::<EngineContext>);
    registry.activity("test.told", |ctx, (): ()| async move {
        let disposition = if ctx.attempt == 1 { Disposition::Retry } else { Disposition::Operator };
        Err::<(), _>(Flood("x".repeat(FLOOD), disposition))
    });
    registry.activity("test.grow", |_ctx, size: usize| async move { Ok::<_, Broken>("x".repeat(size)) });
    registry.activity("test.take", |_ctx, text: String| async move { Ok::<_, Broken>(text.len()) });
    let engine = open(folder.path(), registry).await;
    let flood = || "x".repeat(FLOOD);
    let fine = || StartRun::new("sum", json!([1, 2]), "jane");

    // At the start.
    let many: BTreeMap<String, String> = (0..100).map(|n| (format!("label {n}"), "x".repeat(499))).collect();
    for run in [
        StartRun::new("sum", json!(flood()), "jane"),
        StartRun { actor: flood(), ..fine() },
        StartRun { reason: Some(flood()), ..fine() },
        StartRun { concurrency_key: Some(flood()), ..fine() },
        StartRun { idempotency_key: Some(flood()), ..fine() },
        StartRun { origin_step: Some(flood()), ..fine() },
        StartRun { schedule: Some(flood()), ..fine() },
        fine().label("product", flood()),
        fine().label(flood(), "14100287"),
        StartRun { labels: many, ..fine() },
    ] {
        let error = engine.start(run).await.expect_err("too large");
        let size = match &error {
            EngineError::PayloadTooLarge(refused) => refused.size_bytes,
            EngineError::TextTooLong { size_bytes, .. } => *size_bytes,
            other => panic!("{other:?}"),
        };
        assert!(size >= 49_900 && error.to_string().contains(&size.to_string()), "{error}");
        assert!(error.hint().is_some());
    }
    assert_eq!(engine.reader().runs(&RunFilter::default()).await.expect("they are listed"), []);

    // From a step, from a workflow, in words and as a value.
    let small = |failure: &Failure| {
        let hint = failure.hint.as_ref().map_or(0, String::len);
        failure.code.len() <= NAME_LIMIT_BYTES
            && failure.message.len() <= MESSAGE_LIMIT_BYTES
            && hint <= REASON_LIMIT_BYTES
    };
    for (workflow, input) in [
        ("wordy", json!("terminal")),
        ("wordy", json!("operator")),
        ("flooded", json!(null)),
        ("told", json!(null)),
        ("large", json!([FLOOD, 1])),
        ("large", json!([1, FLOOD])),
        // The parser repeats what does not fit.
        ("sum", json!("x".repeat(1_000_000))),
    ] {
        let run = start(&engine, StartRun::new(workflow, input, "jane")).await;
        let failure = match engine.drive(run).await.expect("it is driven") {
            Outcome::Failed { failure, .. } | Outcome::Blocked { failure, .. } => failure,
            other => panic!("{workflow}: {other:?}"),
        };
        assert!(small(&failure), "{workflow}: {}", failure.code);
        let seen = detail(&engine, run).await;
        assert_eq!(seen.run.failure, Some(failure), "what is seen is what is recorded");
        let steps =
            seen.steps.iter().flat_map(|step| step.failure.iter().chain(step.attempts.iter().flat_map(|a| &a.failure)));
        assert!(steps.into_iter().all(small), "{workflow}");
    }

    // By the hand of a person, and by the signals of those who build them.
    let run = start(&engine, StartRun { detached: true, ..fine() }).await;
    for by in [Mutation { actor: flood(), ..jane() }, Mutation { reason: flood(), ..jane() }] {
        for error in [
            engine.cancel(run, &by).await.map(|()| "cancelled"),
            engine.resume(run, &by).await.map(|()| "resumed"),
            engine.purge(PurgePlan::new(NOTHING, by.clone())).await.map(|_| "purged"),
        ] {
            assert!(matches!(error, Err(EngineError::TextTooLong { size_bytes: FLOOD, .. })), "{error:?}");
        }
    }
    let error = engine.import(&flood(), &jane(), IfOther::Refuse).await.expect_err("too large");
    assert!(matches!(error, ExportError::TooLarge { .. }), "{error:?}");
    let refused = check_payload("the signal's payload", FLOOD).expect_err("too large");
    assert!(refused.to_string().contains("67108864"), "{refused}");

    engine.close().await;
    let size = std::fs::metadata(folder.path().join("state.db")).expect("the state").len();
    assert!(size < 4 * 1024 * 1024, "the state has {size} bytes");
}

const NOTHING: Cutoff = Cutoff { ended_before_ms: 0, failed_ended_before_ms: None };
