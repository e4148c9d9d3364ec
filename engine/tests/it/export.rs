//! A run as a file, and in another state to be read.

use engine::{
    EngineContext, EngineError, ExportError, IfOther, Imported, Mutation, Outcome, PurgePlan, RunExport, RunFilter,
    RunId, StartRun,
};
use engine_rules::context::{Context, Interrupt, StepDef};
use engine_rules::failure::{ActivityError as _, Disposition};
use engine_rules::limits::EXPORT_LIMIT_BYTES;
use engine_rules::retention::Cutoff;
use engine_rules::state::RunState;
use serde_json::{Value, json};

use crate::support::{ADD, Broken, QUICK, detail, jane, open, outsider, registry, start, succeeded};

const SHAKY: StepDef<i64, f64> = StepDef::new("shaky", "test.shaky", QUICK);
const GROW: StepDef<u32, String> = StepDef::new("grow", "test.grow", QUICK);

async fn rich<C: Context>(ctx: &mut C, input: (i64, i64)) -> Result<f64, Interrupt> {
    ctx.new_id().await?;
    ctx.begin_section("locked").await?;
    let sum = ctx.step(&ADD, &input).await?;
    ctx.end_section().await?;
    ctx.step(&SHAKY, &sum).await
}

async fn growing<C: Context>(ctx: &mut C, steps: u32) -> Result<(), Interrupt> {
    for step in 0..steps {
        ctx.step(&GROW, &step).await?;
    }
    Ok(())
}

/// An engine whose step fails once before it gives a fraction.
async fn rich_engine(state: &std::path::Path) -> engine::Engine {
    let mut registry = registry();
    registry.workflow("rich", 1, rich::<EngineContext>);
    registry.workflow("growing", 1, growing::<EngineContext>);
    registry.activity("test.shaky", |ctx, sum: i64| async move {
        if ctx.attempt == 1 { Err(Broken("the disk is \"away\"", Disposition::Retry)) } else { Ok(sum as f64 / 10.0) }
    });
    registry.activity("test.grow", |_ctx, _: u32| async { Ok::<_, Broken>("é".repeat(400_000)) });
    open(state, registry).await
}

/// A run with all that a run can have, ended; and its export.
async fn exported(state: &std::path::Path) -> (RunId, RunExport) {
    let engine = rich_engine(state).await;
    let run = StartRun::new("rich", json!([1, 2]), "jane").label("product", "14100287");
    let run = start(&engine, StartRun { reason: Some("é \u{1f600}".to_owned()), ..run }).await;
    let child =
        start(&engine, StartRun { parent_run_id: Some(run), ..StartRun::new("sum", json!([1, 2]), "jane") }).await;
    succeeded(engine.drive(child).await.expect("it is driven"));
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(0.3));
    let mut db = outsider(state).await;
    sqlx::query(
        "INSERT INTO signal (run_no, name, payload, actor, sent_at_ms, taken_by, taken_at_ms) \
         SELECT run_no, 'approve', '{\"by\":\"jane\"}', 'jane', 1, '3.1.0', 2 FROM run WHERE run_id = ?",
    )
    .bind(run.to_string())
    .execute(&mut db)
    .await
    .expect("a signal");
    sqlx::query("INSERT INTO audit (at_ms, actor, action, run_id, reason) VALUES (1, 'jane', 'resume', ?, 'because')")
        .bind(run.to_string())
        .execute(&mut db)
        .await
        .expect("an audit row");
    let export = engine.reader().export(run, "jane").await.expect("it is exported");
    let seen = detail(&engine, run).await;
    assert_eq!((&export.steps, &export.audit), (&seen.steps, &seen.audit));
    assert!(export.steps.iter().any(|step| step.attempts.len() == 2));
    assert_eq!((export.signals.len(), export.children.len()), (1, 1));
    assert_eq!((export.children[0].run_id, export.children[0].state), (child, RunState::Succeeded));
    let again = engine.reader().export(run, "joe").await.expect("it is exported");
    assert_eq!(again.digest(), export.digest(), "whoever exports it, the content is the same");
    engine.close().await;
    (run, export)
}

fn by() -> Mutation {
    Mutation { actor: "joe".to_owned(), reason: "to see what happened".to_owned() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exported_run_is_read_elsewhere_as_it_was_and_can_be_nothing_but_read() {
    let (one, two) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (run, export) = exported(one.path()).await;
    let text = export.to_text();
    assert_eq!(RunExport::parse(&text).expect("it reads back"), export);

    let engine = open(two.path(), registry()).await;
    let first = engine.import(&text, &by(), IfOther::Refuse).await.expect("it is imported");
    assert_eq!(first, Imported { run_id: run, digest: export.digest(), changed: true });
    let again = engine.import(&text, &by(), IfOther::Refuse).await.expect("the same again");
    assert!(!again.changed);
    let reader = engine.reader();
    let (row, read) = reader.imported_run(run).await.expect("it is read");
    assert_eq!(read, export);
    assert_eq!((row.by.as_str(), row.reason.as_str()), ("joe", "to see what happened"));
    assert_eq!(reader.imported_ids().await.expect("they are listed"), [run]);
    let of = |workflow: &str| RunFilter { workflow: Some(workflow.to_owned()), ..RunFilter::default() };
    assert_eq!(reader.imported(&of("rich")).await.expect("they are listed"), [row]);
    assert_eq!(reader.imported(&of("sum")).await.expect("they are listed"), []);

    // Nothing takes it for a run of this state.
    assert_eq!(reader.runs(&RunFilter::default()).await.expect("they are listed"), []);
    assert_eq!(engine.interrupted().await.expect("they are listed"), []);
    assert_eq!(engine.drain(4).await.expect("nothing is queued"), 0);
    for error in [
        engine.drive(run).await.map(|_| ()).expect_err("drive"),
        engine.resume(run, &jane()).await.expect_err("resume"),
        engine.take_over(run).await.expect_err("take over"),
        engine.cancel(run, &jane()).await.expect_err("cancel"),
    ] {
        assert!(matches!(error, EngineError::UnknownRun { .. }), "{error:?}");
    }
    let all = Cutoff { ended_before_ms: i64::MAX, failed_ended_before_ms: Some(i64::MAX) };
    assert_eq!(engine.purge(PurgePlan::new(all, jane())).await.expect("it is purged").runs, 0);
    assert_eq!(reader.imported_run(run).await.expect("it is still read").1, export);

    let mut db = outsider(two.path()).await;
    let audit: Vec<(String, String)> = sqlx::query_as("SELECT actor, details FROM audit WHERE action = 'import'")
        .fetch_all(&mut db)
        .await
        .expect("the audit trail");
    assert_eq!((audit.len(), audit[0].0.as_str()), (1, "joe"), "one row for what changed something");
    assert!(audit[0].1.contains(&export.digest()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_this_state_and_other_content_are_not_written_over() {
    let (one, two) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (run, mut export) = exported(one.path()).await;
    let text = export.to_text();
    let engine = rich_engine(one.path()).await;
    let error = engine.import(&text, &by(), IfOther::Replace).await.expect_err("it lives here");
    assert!(matches!(error, ExportError::Lives { run: found } if found == run), "{error:?}");
    assert_eq!(engine.reader().imported_ids().await.expect("they are listed"), []);

    let other = open(two.path(), registry()).await;
    other.import(&text, &by(), IfOther::Refuse).await.expect("it is imported");
    let kept = export.digest();
    export.run.reason = Some("another".to_owned());
    let part = serde_json::to_value(&export.run).expect("JSON");
    export.digests.insert("run".to_owned(), engine_rules::digest::input_digest(&part));
    let error = other.import(&export.to_text(), &by(), IfOther::Refuse).await.expect_err("other content");
    assert!(matches!(&error, ExportError::Differs { kept: found, .. } if *found == kept), "{error:?}");
    assert!(error.hint().expect("a way out").contains("--replace"));
    assert_eq!(other.reader().imported_run(run).await.expect("it is read").0.digest, kept);
    assert!(other.import(&export.to_text(), &by(), IfOther::Replace).await.expect("it is replaced").changed);
    assert_eq!(other.reader().imported_run(run).await.expect("it is read").1, export);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_or_foreign_file_is_refused_saying_where() {
    let (one, two) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (_, export) = exported(one.path()).await;
    let text = export.to_text();
    let engine = open(two.path(), registry()).await;
    let with = |change: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(&text).expect("JSON");
        change(&mut value);
        value.to_string()
    };
    let step = export.steps.iter().position(|step| step.name == "shaky").expect("the step");
    for (damaged, code, words) in [
        (String::new(), "engine.import_unreadable", vec!["line 1"]),
        (text[..text.len() / 2].to_owned(), "engine.import_unreadable", vec!["line ", "column ", "EOF"]),
        (text.replace("\"succeeded\"", "\"suceeded\""), "engine.import_unreadable", vec!["line ", "suceeded"]),
        (with(&|value| value["steps"] = json!(7)), "engine.import_unreadable", vec!["integer `7`", "sequence"]),
        ("[]".to_owned(), "engine.import_foreign", vec!["absent", "jobctl.runs.export/1"]),
        ("{\"schema\":\"jobctl.runs.show/1\"}".to_owned(), "engine.import_foreign", vec!["jobctl.runs.show/1"]),
        (with(&|value| value["format_version"] = json!(2)), "engine.import_version", vec!["is 2", "reads 1"]),
        (with(&|value| value["steps"][step]["input"] = json!(4)), "engine.import_damaged", vec!["shaky", "steps"]),
        (with(&|value| value["steps"][step]["output"] = json!(0.4)), "engine.import_damaged", vec!["\"steps\""]),
        (with(&|value| value["run"]["actor"] = json!("joe")), "engine.import_damaged", vec!["\"run\""]),
        (with(&|value| value["audit"] = json!([])), "engine.import_damaged", vec!["\"audit\""]),
        (with(&|value| value["signals"][0]["payload"] = json!(1)), "engine.import_damaged", vec!["\"signals\""]),
        (with(&|value| value["children"] = json!([])), "engine.import_damaged", vec!["\"children\""]),
        (with(&|value| value["digests"] = json!({})), "engine.import_damaged", vec!["none is recorded"]),
        (" ".repeat(EXPORT_LIMIT_BYTES + 1), "engine.export_too_large", vec!["33554433", "33554432"]),
    ] {
        let error = engine.import(&damaged, &by(), IfOther::Refuse).await.expect_err(code);
        assert_eq!(error.code(), code, "{error}");
        for word in words {
            assert!(error.to_string().contains(word), "{word:?} is not in {error}");
        }
        assert!(error.hint().is_some(), "{error}");
    }
    assert_eq!(engine.reader().imported_ids().await.expect("they are listed"), [], "nothing was kept");
    let long = Mutation { reason: "x".repeat(5_000), ..by() };
    let error = engine.import(&text, &long, IfOther::Refuse).await.expect_err("too long a reason");
    assert!(matches!(error, ExportError::Engine(EngineError::TextTooLong { .. })), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_no_import_would_take_is_not_exported_and_not_read_either() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = rich_engine(folder.path()).await;
    let run = start(&engine, StartRun::new("growing", json!(45), "jane")).await;
    assert!(matches!(engine.drive(run).await.expect("it is driven"), Outcome::Succeeded(_)));
    let error = engine.reader().export(run, "jane").await.expect_err("36 MB");
    assert!(
        matches!(
            error,
            ExportError::TooLarge { size_bytes: 36_000_000..37_000_000, limit_bytes: EXPORT_LIMIT_BYTES, .. }
        ),
        "{error:?}"
    );
    let unknown = RunId(uuid::Uuid::from_u128(7));
    let error = engine.reader().export(unknown, "jane").await.expect_err("no such run");
    assert!(matches!(error, ExportError::Engine(EngineError::UnknownRun { .. })), "{error:?}");
}
