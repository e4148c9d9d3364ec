//! What `runs list` and `runs show` read.

use engine::{EngineError, Reader, RunFilter, StartRun, SystemClock};
use engine_rules::state::RunState;
use serde_json::json;
use std::sync::Arc;

use crate::support::{open, registry, start, succeeded};

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_by_state_label_workflow_and_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), registry()).await;
    let mut runs = Vec::new();
    for product in ["14100287", "33100036", "14100287"] {
        let run = StartRun::new("sum", json!([1, 2]), "jane").label("product", product).label("site", "a");
        runs.push(start(&engine, run).await);
    }
    succeeded(engine.drive(runs[0]).await.expect("it is driven"));
    let reader = Reader::open(folder.path(), Arc::new(SystemClock::new())).await.expect("it opens");
    let list = async |filter: RunFilter| -> Vec<_> {
        let rows = reader.runs(&filter).await.expect("the runs read");
        rows.into_iter().map(|row| row.run_id).collect()
    };
    let label = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
    assert_eq!(list(RunFilter::default()).await, [runs[2], runs[1], runs[0]], "newest first");
    let product = RunFilter { labels: label("product", "14100287"), ..RunFilter::default() };
    assert_eq!(list(product.clone()).await, [runs[2], runs[0]]);
    assert_eq!(list(RunFilter { states: vec![RunState::Running], ..product.clone() }).await, [runs[2]]);
    assert_eq!(list(RunFilter { labels: label("site", "a"), limit: Some(1), ..RunFilter::default() }).await, [runs[2]]);
    assert_eq!(list(RunFilter { labels: label("site", "b"), ..RunFilter::default() }).await, []);
    assert_eq!(list(RunFilter { workflow: Some("other".to_owned()), ..RunFilter::default() }).await, []);
    assert_eq!(list(RunFilter { since_at_ms: Some(i64::MAX), ..RunFilter::default() }).await, []);

    let row =
        &reader.runs(&RunFilter { states: vec![RunState::Succeeded], ..RunFilter::default() }).await.expect("read")[0];
    assert_eq!((row.steps_recorded, row.current_step.as_deref()), (2, Some("double")));
    let text = serde_json::to_value(row).expect("a row is JSON");
    assert_eq!(
        (&text["state"], &text["output"], &text["labels"]["site"]),
        (&json!("succeeded"), &json!(6), &json!("a"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_found_by_the_beginning_of_its_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), registry()).await;
    let first = start(&engine, StartRun::new("sum", json!([1, 2]), "jane")).await;
    let second = start(&engine, StartRun::new("sum", json!([1, 2]), "jane")).await;
    let reader = engine.reader();
    assert_eq!(reader.find(&first.to_string()).await.expect("it is found"), first);
    assert_eq!(reader.find(&second.to_string().to_uppercase()[..35]).await.expect("it is found"), second);
    let error = reader.find(&first.to_string()[..4]).await.expect_err("both begin so");
    assert!(matches!(&error, EngineError::AmbiguousRun { runs, .. } if runs.len() == 2), "{error:?}");
    for unknown in ["", "zz", "ffff", "%"] {
        assert!(matches!(reader.find(unknown).await, Err(EngineError::UnknownRun { .. })), "{unknown:?}");
    }
}
