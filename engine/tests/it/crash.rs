//! A process that ends at any point leaves a run that goes on.

use engine::CRASH_POINTS;
use engine_rules::state::{RunState, StepState};
use serde_json::{Value, json};

use crate::child::{Order, aborts, log, work_registry};
use crate::support::{detail, jane, open, succeeded};

/// The recorded outputs of the steps, by label.
fn outputs(detail: &engine::RunDetail) -> Vec<(String, Value)> {
    let recorded = detail.steps.iter().filter(|step| step.state == StepState::Succeeded);
    recorded.filter_map(|step| Some((step.label.clone(), step.output.clone()?))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_crash_point_of_the_engine_is_survived() {
    for (workflow, slow) in [("work", false), ("slow", true)] {
        for point in CRASH_POINTS {
            let hits = match *point {
                "engine.run_row.before" | "engine.run_row.after" | "engine.run_end.before" | "engine.run_end.after" => {
                    1
                }
                // Met on the way back, see below.
                "engine.take_over.before" | "engine.take_over.after" => continue,
                // The start of a first attempt is recorded only when its body takes a while.
                "engine.step_start.before" | "engine.step_start.after" => match slow {
                    true => 1,
                    false => continue,
                },
                _ => {
                    if slow {
                        1
                    } else {
                        3
                    }
                }
            };
            for hit in 1..=hits {
                let folder = tempfile::tempdir().expect("a folder");
                let order = Order::Run { workflow: workflow.to_owned(), point: (*point).to_owned(), hit };
                aborts(folder.path(), &order);
                let log = log(folder.path());
                let engine = open(folder.path(), work_registry(&log)).await;
                let runs = engine.reader().runs(&Default::default()).await.expect("the runs read");
                if *point == "engine.run_row.before" {
                    assert!(runs.is_empty(), "{point}: {runs:?}");
                    continue;
                }
                let [run] = runs.as_slice() else { panic!("{point}: {runs:?}") };
                let before = outputs(&detail(&engine, run.run_id).await);
                if *point == "engine.run_end.after" {
                    assert_eq!(run.state, RunState::Succeeded);
                    assert_eq!(engine.interrupted().await.expect("they are listed"), []);
                    continue;
                }
                assert_eq!((run.state, run.owner.as_ref().map(|owner| owner.alive)), (RunState::Running, Some(false)));
                assert_eq!(engine.interrupted().await.expect("they are listed"), [run.run_id]);
                engine.take_over(run.run_id).await.expect("it is taken over");
                assert_eq!(engine.interrupted().await.expect("they are listed"), [], "found once, not at every look");
                let output = succeeded(engine.drive(run.run_id).await.expect("it is driven"));
                let after = detail(&engine, run.run_id).await;
                let after = (outputs(&after), after.run);
                assert_eq!(&after.0[..before.len()], before, "{point} {hit}: no recorded result changed");
                assert_eq!(after.1.epoch, 2);
                let last = &after.0.last().expect("a step").1;
                assert_eq!(
                    if slow { &output } else { output.as_array().and_then(|all| all.last()).expect("three") },
                    last
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_while_it_takes_over_leaves_the_run_to_the_next() {
    for point in ["engine.take_over.before", "engine.take_over.after"] {
        let folder = tempfile::tempdir().expect("a folder");
        let at_second = Order::Run { workflow: "work".to_owned(), point: "test.second".to_owned(), hit: 1 };
        aborts(folder.path(), &at_second);
        aborts(folder.path(), &Order::Resume { point: point.to_owned(), hit: 1 });
        let log = log(folder.path());
        let engine = open(folder.path(), work_registry(&log)).await;
        let runs = engine.interrupted().await.expect("they are listed");
        assert_eq!(runs.len(), 1, "{point}");
        // Driving it is enough.
        let output = succeeded(engine.drive(runs[0]).await.expect("it is driven"));
        assert_eq!(output, json!([1, 3, 4]), "the first step kept its result; the second ran twice");
        assert_eq!(log.lines(), ["first", "second", "second", "third"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_crashed_in_its_last_step_is_resumed_by_a_person() {
    let folder = tempfile::tempdir().expect("a folder");
    aborts(folder.path(), &Order::Run { workflow: "work".to_owned(), point: "test.third".to_owned(), hit: 1 });
    let log = log(folder.path());
    let engine = open(folder.path(), work_registry(&log)).await;
    let runs = engine.interrupted().await.expect("they are listed");
    engine.resume(runs[0], &jane()).await.expect("it is resumed");
    assert_eq!(succeeded(engine.drive(runs[0]).await.expect("it is driven")), json!([1, 2, 4]));
    let detail = detail(&engine, runs[0]).await;
    let audit: Vec<_> = detail.audit.iter().map(|row| (row.actor.as_str(), row.action.as_str())).collect();
    assert_eq!(audit, [("jane", "resume")]);
}
