//! The straight path.

use engine::StartRun;
use engine_rules::state::{RunState, StepState};
use serde_json::json;

use crate::support::{detail, open, registry, start, succeeded};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_gives_its_output_and_leaves_its_record() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), registry()).await;
    let run = start(&engine, StartRun::new("sum", json!([20, 1]), "jane").label("product", "14100287")).await;
    assert_eq!(succeeded(engine.drive(run).await.expect("it is driven")), json!(42));

    let detail = detail(&engine, run).await;
    assert_eq!(detail.run.state, RunState::Succeeded);
    assert_eq!(detail.run.output, Some(json!(42)));
    assert_eq!(detail.run.labels["product"], "14100287");
    assert!(detail.run.owner.expect("an owner").alive);
    let steps: Vec<_> =
        detail.steps.iter().map(|step| (step.label.as_str(), step.state, step.output.clone())).collect();
    assert_eq!(
        steps,
        [("add", StepState::Succeeded, Some(json!(21))), ("double", StepState::Succeeded, Some(json!(42)))]
    );
    assert_eq!(detail.steps[0].input, Some(json!([20, 1])));
    assert_eq!(detail.steps[1].attempts.len(), 1);
    assert_eq!(succeeded(engine.drive(run).await.expect("it ended")), json!(42), "a run that ended answers how");
}
