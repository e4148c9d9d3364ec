//! Another process holds the database.

use engine::{Reader, RunFilter, StartRun, SystemClock};
use engine_rules::clock::Clock as _;
use serde_json::json;
use std::sync::Arc;

use crate::child::{Order, spawn};
use crate::support::{open, outsider, registry, sleep_ms, start, succeeded};

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_held_for_ten_seconds_delays_a_run_and_does_not_fail_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(folder.path(), registry()).await;
    let mut other = outsider(folder.path()).await;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.expect("the lock is free");
    let clock = SystemClock::new();
    let began_us = clock.monotonic_us();
    let running = {
        let engine = engine.clone();
        tokio::spawn(async move {
            let run = start(&engine, StartRun::new("sum", json!([1, 2]), "jane")).await;
            engine.drive(run).await
        })
    };
    sleep_ms(9_000).await;
    assert!(!running.is_finished(), "nothing can be recorded, so nothing is acknowledged");
    // Who only reads is not held up.
    let reader = Reader::open(folder.path(), Arc::new(SystemClock::new())).await.expect("it opens");
    assert_eq!(reader.runs(&RunFilter::default()).await.expect("the runs read"), []);
    sleep_ms(1_000).await;
    sqlx::query("COMMIT").execute(&mut other).await.expect("the lock is given back");
    let outcome = running.await.expect("no panic").expect("it is driven");
    assert_eq!(succeeded(outcome), json!(6));
    assert!(clock.monotonic_us() - began_us >= 10_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn four_processes_on_one_database_do_not_get_in_each_others_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let order = Order::Many { runs: 60 };
    let children: Vec<_> = (0..4).map(|_| spawn(folder.path(), &order)).collect();
    let reader_folder = folder.path().to_owned();
    let reading = tokio::spawn(async move {
        let mut looks = 0;
        while looks < 50 {
            if let Ok(reader) = Reader::open(&reader_folder, Arc::new(SystemClock::new())).await {
                reader.runs(&RunFilter::default()).await.expect("the runs read");
                looks += 1;
            }
            sleep_ms(10).await;
        }
    });
    for child in children {
        let output = child.wait_with_output().expect("the child ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    reading.await.expect("the reader read");
    let engine = open(folder.path(), registry()).await;
    let runs = engine.reader().runs(&RunFilter::default()).await.expect("the runs read");
    assert_eq!(runs.len(), 240);
    assert!(runs.iter().all(|run| run.state == engine_rules::state::RunState::Succeeded));
}
