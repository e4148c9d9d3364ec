//! Another process holds the database.

use engine::{Reader, RunFilter, SystemClock};
use std::sync::Arc;

use crate::child::{Order, spawn};
use crate::support::{open, registry, sleep_ms};

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
