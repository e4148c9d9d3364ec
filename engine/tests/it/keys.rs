//! Concurrency keys and idempotency keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use engine::{EngineContext, EngineError, KeyPolicy, Start, StartRun};
use engine_rules::context::{Context, Interrupt, StepDef};
use serde_json::json;

use crate::child::{Order, log, spawn};
use crate::support::{Broken, QUICK, open, registry, sleep_ms, start, succeeded, until};

#[tokio::test(flavor = "multi_thread")]
async fn of_several_processes_that_race_for_a_key_one_gets_it() {
    const RACERS: usize = 6;
    let folder = tempfile::tempdir().expect("a folder");
    let children: Vec<_> = (0..RACERS).map(|_| spawn(folder.path(), &Order::Race)).collect();
    let ready = log(folder.path());
    until("all stand ready", || ready.count("ready") == RACERS).await;
    std::fs::write(folder.path().join("go"), "").expect("the signal");
    let mut started = Vec::new();
    let mut holders = Vec::new();
    for child in children {
        let output = child.wait_with_output().expect("the child ends");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        for line in text.lines() {
            if let Some(run) = line.strip_prefix("started ") {
                started.push(run.to_owned());
            }
            if let Some(run) = line.strip_prefix("busy ") {
                holders.push(run.to_owned());
            }
        }
    }
    assert_eq!((started.len(), holders.len()), (1, RACERS - 1), "{started:?} {holders:?}");
    assert!(holders.iter().all(|holder| *holder == started[0]), "all are told who holds it");
}

const ALONE: StepDef<(), ()> = StepDef::new("alone", "test.alone", QUICK);

async fn alone<C: Context>(ctx: &mut C, _input: ()) -> Result<(), Interrupt> {
    ctx.step(&ALONE, &()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_queue_for_a_key_run_one_after_the_other_in_their_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut registry = registry();
    registry.workflow("alone", 1, alone::<EngineContext>);
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (running, log) = ((now.clone(), most.clone()), log(folder.path()));
    let lines = log.clone();
    registry.activity("test.alone", move |ctx, (): ()| {
        let ((now, most), log) = (running.clone(), lines.clone());
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            sleep_ms(20).await;
            log.add(&ctx.run_id);
            now.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, Broken>(())
        }
    });
    let engine = open(folder.path(), registry).await;
    let mut runs = Vec::new();
    for number in 0..4 {
        let run = StartRun::new("alone", json!(null), "jane").key("the key", KeyPolicy::Queue);
        match engine.start(run).await.expect("it is answered") {
            Start::Started(started) => {
                assert_eq!(started.queued, number > 0);
                runs.push(started.run_id);
            }
            Start::Busy { holder } => panic!("{holder}"),
        }
    }
    let forbid = StartRun::new("alone", json!(null), "jane").key("the key", KeyPolicy::Forbid);
    assert_eq!(engine.start(forbid).await.expect("it is answered"), Start::Busy { holder: runs[0] });
    let mut driving = tokio::task::JoinSet::new();
    for run in runs.iter().rev().copied() {
        let engine = engine.clone();
        driving.spawn(async move { succeeded(engine.drive(run).await.expect("it is driven")) });
    }
    driving.join_all().await;
    assert_eq!(most.load(Ordering::SeqCst), 1);
    assert_eq!(log.lines(), runs.iter().map(ToString::to_string).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_drained_within_its_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), registry()).await;
    for number in 0..30 {
        let key = format!("key {}", number % 3);
        let run = StartRun { detached: true, ..StartRun::new("sum", json!([number, 1]), "jane") };
        start(&engine, run.key(key, KeyPolicy::Queue)).await;
    }
    assert_eq!(engine.drain(8).await.expect("it drains"), 30);
    assert_eq!(engine.drain(8).await.expect("it drains"), 0);
    let runs = engine.reader().runs(&engine::RunFilter::default()).await.expect("the runs read");
    assert!(runs.iter().all(|run| run.state.is_terminal() && run.output.is_some()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_names_the_run_that_it_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), registry()).await;
    let once = |input| StartRun { idempotency_key: Some("08:30".to_owned()), ..StartRun::new("sum", input, "jane") };
    // All at once, so that they meet in one batch.
    let (first, second, third) = tokio::join!(
        engine.start(once(json!([1, 2]))),
        engine.start(once(json!([1, 2]))),
        engine.start(once(json!([1, 2])))
    );
    let answers: Vec<_> = [first, second, third]
        .into_iter()
        .map(|answer| match answer.expect("it is answered") {
            Start::Started(started) => started,
            Start::Busy { holder } => panic!("{holder}"),
        })
        .collect();
    assert_eq!(answers.iter().filter(|started| !started.existing).count(), 1);
    assert!(answers.iter().all(|started| started.run_id == answers[0].run_id));
    succeeded(engine.drive(answers[0].run_id).await.expect("it is driven"));
    let error = engine.start(once(json!([1, 3]))).await.expect_err("another input is another order");
    assert!(matches!(error, EngineError::IdempotencyConflict { run, .. } if run == answers[0].run_id), "{error:?}");

    // Once its window ended, the key is new again.
    let short = StartRun { idempotency_window_ms: 0, idempotency_key: Some("now".to_owned()), ..once(json!([1, 2])) };
    let first = start(&engine, short.clone()).await;
    sleep_ms(2).await;
    assert_ne!(start(&engine, short).await, first);
}
