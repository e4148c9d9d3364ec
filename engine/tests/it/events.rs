//! What a terminal is told.

use engine::{EventKind, StartRun};
use serde_json::json;

use crate::support::{open, registry, start};

#[tokio::test(flavor = "multi_thread")]
async fn those_who_watch_see_each_step_begin_and_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut registry = registry();
    registry.activity("test.add", |ctx, (a, b): (i64, i64)| async move {
        ctx.progress("numbers", 2, Some(2));
        Ok::<_, crate::support::Broken>(a + b)
    });
    let engine = open(folder.path(), registry).await;
    let mut events = engine.subscribe();
    let run = start(&engine, StartRun::new("sum", json!([1, 2]), "jane")).await;
    engine.drive(run).await.expect("it is driven");
    let mut seen = Vec::new();
    loop {
        let event = events.next().await.expect("the engine lives");
        assert_eq!(event.run_id, run);
        seen.push(match event.kind {
            EventKind::RunStarted { workflow } => format!("started {workflow}"),
            EventKind::StepStarted { position, step, attempt } => format!("{position} {step} attempt {attempt}"),
            EventKind::StepProgress { step, progress, .. } => format!("{step} {} {}", progress.done, progress.unit),
            EventKind::StepSucceeded { position, step, output, .. } => format!("{position} {step} gave {output}"),
            EventKind::RunEnded { state, .. } => {
                seen.push(format!("ended {state}"));
                break;
            }
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(
        seen,
        [
            "started sum",
            "1 add attempt 1",
            "add 2 numbers",
            "1 add gave 3",
            "2 double attempt 1",
            "2 double gave 6",
            "ended succeeded"
        ]
    );
}
