//! A row that changed after it was read.

use engine_rules::context::{Context, Interrupt};
use engine_rules::schedule::Misfire;
use jiff::SignedDuration;

use super::*;
use crate::read::TickFilter;
use crate::{Engine, EngineConfig, EngineContext, KeyPolicy, Mutation, Registry, ScheduleDef};

async fn nothing<C: Context>(_ctx: &mut C, _input: ()) -> Result<(), Interrupt> {
    Ok(())
}

async fn engine(folder: &std::path::Path) -> (Engine, ScheduleDef) {
    let mut registry = Registry::new();
    registry.workflow("nothing", 1, nothing::<EngineContext>);
    let engine = Engine::open(EngineConfig::new(folder), registry).await.expect("the engine opens");
    let minutely = ScheduleDef {
        name: "minutely".to_owned(),
        workflow: "nothing".to_owned(),
        input: serde_json::Value::Null,
        cron: "* * * * *".to_owned(),
        time_zone: "America/Toronto".to_owned(),
        misfire: Misfire::RunAll,
        catch_up_ms: 3_600_000,
        concurrency_key: None,
        key_policy: KeyPolicy::Forbid,
        labels: Default::default(),
    };
    engine.sync_schedules(std::slice::from_ref(&minutely)).await.expect("it is loaded");
    (engine, minutely)
}

async fn read(engine: &Engine) -> Stored {
    Stored::live(&engine.0, "minutely").await.expect("it is there")
}

async fn rows(engine: &Engine) -> (usize, usize) {
    let reader = engine.reader();
    let ticks = reader.ticks(&TickFilter::default()).await.expect("the ticks read").len();
    (ticks, reader.runs(&Default::default()).await.expect("the runs read").len())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_decided_from_a_row_that_changed_meanwhile_is_not_written() {
    for change in ["paused", "input", "cron", "decided", "removed"] {
        let folder = tempfile::tempdir().expect("a folder");
        let (engine, minutely) = engine(folder.path()).await;
        let stale = read(&engine).await;
        let later = now(&engine.0).checked_add(SignedDuration::from_mins(3)).expect("a time");
        let by = Mutation { actor: "jane".to_owned(), reason: "for the test".to_owned() };
        match change {
            "paused" => engine.pause_schedule("minutely", &by).await.expect("it is paused"),
            "input" => {
                let edited = ScheduleDef { catch_up_ms: 0, ..minutely };
                assert_eq!(engine.sync_schedules(&[edited]).await.expect("a change").changed, ["minutely"]);
            }
            "cron" => {
                let edited = ScheduleDef { cron: "*/2 * * * *".to_owned(), ..minutely };
                assert_eq!(engine.sync_schedules(&[edited]).await.expect("a change").changed, ["minutely"]);
            }
            "decided" => {
                let done = advance(&engine.0, &stale, &Standing::Live, later).await.expect("it is recorded");
                assert!(matches!(done, Advance::Decided { is_more: false, .. }));
            }
            _ => assert_eq!(engine.sync_schedules(&[]).await.expect("a change").removed, ["minutely"]),
        }
        let (before, row) = (rows(&engine).await, read_any(&engine).await);
        let done = advance(&engine.0, &stale, &Standing::Live, later).await.expect("it is answered");
        assert!(matches!(done, Advance::Overtaken), "{change}");
        assert_eq!(rows(&engine).await, before, "{change}");
        assert_eq!(read_any(&engine).await, row, "{change}: nor does the cursor move");
    }
}

/// The cursor and the revision.
async fn read_any(engine: &Engine) -> (Option<String>, Option<i64>, i64) {
    let stored = Stored::find(&engine.0, "minutely").await.expect("it reads").expect("it is there");
    (stored.cursor_local, stored.cursor_at_ms, stored.revision)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_input_makes_smaller_batches() {
    let folder = tempfile::tempdir().expect("a folder");
    let (engine, minutely) = engine(folder.path()).await;
    let large = ScheduleDef { input: serde_json::Value::from("x".repeat(1_000_000)), ..minutely };
    engine.sync_schedules(&[large]).await.expect("it is loaded");
    let later = now(&engine.0).checked_add(SignedDuration::from_mins(30)).expect("a time");
    let done = advance(&engine.0, &read(&engine).await, &Standing::Live, later).await.expect("it is recorded");
    let Advance::Decided { fired, is_more } = done else { panic!("ticks are due") };
    assert_eq!((fired.len(), is_more), (8, true), "8 MiB of inputs of a MB");
}
