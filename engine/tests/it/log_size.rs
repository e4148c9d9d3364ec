//! The write-ahead log stays small.

use std::path::Path;

use engine::{EngineContext, StartRun};
use engine_rules::context::{Context, Interrupt, StepDef};
use serde_json::json;
use sqlx::Row as _;

use crate::support::{Broken, QUICK, detail, open, outsider, registry, start, succeeded};

const GROW: StepDef<usize, String> = StepDef::new("grow", "test.grow", QUICK);

const MIB: u64 = 1024 * 1024;

/// What the engine keeps of the log.
const KEPT: u64 = 16 * MIB;

async fn grow<C: Context>(ctx: &mut C, size: usize) -> Result<usize, Interrupt> {
    Ok(ctx.step(&GROW, &size).await?.len())
}

async fn growing(folder: &Path) -> engine::Engine {
    let mut registry = registry();
    registry.workflow("grow", 1, grow::<EngineContext>);
    registry.activity("test.grow", |_ctx, size: usize| async move { Ok::<_, Broken>("x".repeat(size)) });
    open(folder, registry).await
}

async fn write(engine: &engine::Engine, bytes: usize) {
    let run = start(engine, StartRun::new("grow", json!(bytes), "jane")).await;
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(bytes));
}

fn log_bytes(folder: &Path) -> u64 {
    std::fs::metadata(folder.join("state.db-wal")).map_or(0, |found| found.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_write_ahead_log_shrinks_again_after_a_long_reader_leaves() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = growing(folder.path()).await;
    write(&engine, 10).await;
    let mut reader = outsider(folder.path()).await;
    sqlx::query("BEGIN").execute(&mut reader).await.expect("it begins");
    sqlx::query("SELECT count(*) FROM run").fetch_one(&mut reader).await.expect("it reads");
    for _ in 0..24 {
        write(&engine, 1_000_000).await;
    }
    assert!(log_bytes(folder.path()) > KEPT + 4 * MIB, "the reader holds {} bytes", log_bytes(folder.path()));
    sqlx::query("COMMIT").execute(&mut reader).await.expect("it leaves");
    for _ in 0..5 {
        write(&engine, 10).await;
    }
    assert!(log_bytes(folder.path()) <= KEPT, "{} bytes are left", log_bytes(folder.path()));
    // Without a reader that stays it never grows so far.
    for _ in 0..24 {
        write(&engine, 1_000_000).await;
    }
    assert!(log_bytes(folder.path()) <= KEPT + 2 * MIB, "{} bytes", log_bytes(folder.path()));
}

/// A reader that kept its place in the log would keep the log from ever beginning anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_into_the_journal_leaves_no_reader_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = growing(folder.path()).await;
    write(&engine, 10).await;
    let runs = engine.reader().runs(&Default::default()).await.expect("the runs read");
    detail(&engine, runs[0].run_id).await;
    engine.reader().find(&runs[0].run_id.to_string()).await.expect("it is found");
    assert_eq!(engine.interrupted().await.expect("they are listed"), []);
    let unknown: engine::RunId = "00000000-0000-7000-8000-000000000000".parse().expect("an id");
    engine.reader().run(unknown).await.expect_err("there is no such run");
    engine.drive(unknown).await.expect_err("there is no such run");
    let mut other = outsider(folder.path()).await;
    let row = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut other).await.expect("it is cut back");
    assert_eq!((row.get::<i64, _>(0), log_bytes(folder.path())), (0, 0), "busy, and bytes left");
}
